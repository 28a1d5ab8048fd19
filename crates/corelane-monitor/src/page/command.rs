//! The commands that show the packets or events behind a number.

use super::Origin;
use std::fmt::Write;

/// Makes commands for one capture.
#[derive(Debug)]
pub(super) struct Commands {
    /// What stands for the files on a command line.
    files: String,
    /// What writes their packets; `$` is the filter.
    packets: String,
}

impl Commands {
    pub(super) fn of(origin: &Origin) -> Self {
        let files: Vec<_> = origin.files.iter().map(|file| quoted(file)).collect();
        let packed = |end: &str| origin.files.iter().any(|file| file.ends_with(end));
        let (files, packets) = match &files[..] {
            _ if origin.is_demo => {
                ("--demo".to_owned(), "corelane gen demo.pcap --probe-scans 4 && tcpdump -nr demo.pcap $".to_owned())
            }
            [one] if one == "-" || !(packed(".gz") || packed(".zst")) => {
                let file = if one == "-" { "CAPTURE" } else { one };
                (file.to_owned(), format!("tcpdump -nr {file} $"))
            }
            files => {
                let files = files.join(" ");
                // With -f both give out files that are not packed as they are.
                let unpack = if packed(".zst") { "zstd -dcf" } else { "gzip -dcf" };
                let packets = format!("for f in {files}; do {unpack} \"$f\" | tcpdump -nr - $; done");
                (files, packets)
            }
        };
        Commands { files, packets }
    }

    /// Shows the packets that a filter of tcpdump's language accepts.
    pub(super) fn packets(&self, filter: &str) -> String {
        let (before, behind) = self.packets.rsplit_once('$').unwrap_or_default();
        format!("{before}'{filter}'{behind}")
    }

    /// Shows the events of these types that a condition of jq's language accepts, if there is one.
    pub(super) fn events(&self, types: &str, condition: &str) -> String {
        let mut command = format!("corelane monitor {} --eve - --eve-types {types}", self.files);
        if !condition.is_empty() {
            // A String takes everything.
            let _ = write!(command, " | jq -c 'select({condition})'");
        }
        command
    }

    /// The same for events in which one of these places, or what it lists, has a name. A name with letters that a shell
    /// or a terminal may take for something else is left out: then all events of the type are shown.
    pub(super) fn events_of_name(&self, types: &str, places: &str, name: &str) -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._:*@/".contains(letter);
        let condition =
            name.chars().all(is_plain).then(|| format!("[{places}] | any(strings; ascii_downcase == \"{name}\")"));
        self.events(types, &condition.unwrap_or_default())
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-._/:+=@%,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[&str]) -> Commands {
        Commands::of(&Origin { files: files.iter().map(|&file| file.to_owned()).collect(), is_demo: false })
    }

    #[test]
    fn each_kind_of_input_has_its_command() {
        assert_eq!(of(&["a.pcap"]).packets("host 10.0.0.1"), "tcpdump -nr a.pcap 'host 10.0.0.1'");
        assert_eq!(of(&["a b's.pcap"]).packets("tcp"), r"tcpdump -nr 'a b'\''s.pcap' 'tcp'");
        assert_eq!(of(&["a.gz"]).packets("tcp"), "for f in a.gz; do gzip -dcf \"$f\" | tcpdump -nr - 'tcp'; done");
        assert_eq!(
            of(&["a", "b.zst"]).packets("tcp"),
            "for f in a b.zst; do zstd -dcf \"$f\" | tcpdump -nr - 'tcp'; done"
        );
        assert_eq!(
            of(&["a", "b"]).events("dns", ".x"),
            "corelane monitor a b --eve - --eve-types dns | jq -c 'select(.x)'"
        );
        assert_eq!(of(&["-"]).packets("udp"), "tcpdump -nr CAPTURE 'udp'");
    }

    #[test]
    fn a_name_never_becomes_a_part_of_the_command() {
        let command = of(&["a"]);
        let plain = command.events_of_name("http", ".http.hostname", "example.com");
        assert!(
            plain.ends_with(r#"| jq -c 'select([.http.hostname] | any(strings; ascii_downcase == "example.com"))'"#)
        );
        for name in ["'; rm -rf /; '", "a\nb", "\" or true", "$(x)", "\u{1b}[2J", "a b", "ü"] {
            assert_eq!(command.events_of_name("http", ".x", name), "corelane monitor a --eve - --eve-types http");
        }
    }
}
