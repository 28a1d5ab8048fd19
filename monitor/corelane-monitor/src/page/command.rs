//! The commands that show the packets or events behind a number.

use super::Origin;
use crate::facts::Wraps;
use corelane_net::decode::Vlans;
use std::fmt::Write;

/// Makes commands for one capture.
#[derive(Debug)]
pub(super) struct Commands {
    /// What stands for the files on a command line, and the options that say what of them is looked at.
    files: String,
    /// What writes their packets; the last `$` is the filter.
    packets: String,
    wraps: Wraps,
    /// Whether `$FILES` stands for the files.
    pub(super) has_files: bool,
    /// Whether `$FILTER` stands for the run's filter.
    pub(super) has_filter: bool,
}

/// The most bytes of all names of files in a command, and of the run's filter: a page has thousands of commands.
const LONG: usize = 160;

impl Commands {
    /// `opens_tunnels` says whether the run did.
    pub(super) fn of(origin: &Origin, wraps: Wraps, opens_tunnels: bool) -> Self {
        let mut files: Vec<_> =
            origin.files.iter().map(|file| if file == "-" { "CAPTURE".to_owned() } else { quoted(file) }).collect();
        let has_files = files.iter().map(|file| file.len() + 1).sum::<usize>() > LONG;
        if has_files {
            // Several are to be several words.
            files = vec![if files.len() == 1 { "\"$FILES\"".to_owned() } else { "$FILES".to_owned() }];
        }
        let packed = |end: &str| origin.files.iter().any(|file| file.ends_with(end));
        let mut all = files.join(" ");
        let mut has_filter = false;
        let packets = if origin.is_demo {
            all = "--demo".to_owned();
            "corelane gen demo.pcap --probe-scans 4 && tcpdump -nr demo.pcap $".to_owned()
        } else if let Some((option, filter)) = &origin.filter {
            // An expression may have lines.
            let filter = match *option {
                "--filter" => filter.split_whitespace().collect::<Vec<_>>().join(" "),
                _ => filter.clone(),
            };
            let own = quoted(&filter);
            has_filter = own.len() > LONG;
            all = format!("{all} {option} {}", if has_filter { "\"$FILTER\"" } else { &own });
            // tcpdump has one filter, which `vlan` in it changes from there on: this one comes before it.
            format!("corelane monitor {all} --write - | tcpdump -nr - $")
        } else if let [one] = &files[..]
            && !(origin.files.len() > 1 || packed(".gz") || packed(".zst"))
        {
            format!("tcpdump -nr {one} $")
        } else {
            // With -f both give out files that are not packed as they are.
            let unpack = if packed(".zst") { "zstd -dcf" } else { "gzip -dcf" };
            format!("for f in {all}; do {unpack} \"$f\" | tcpdump -nr - $; done")
        };
        if !opens_tunnels {
            all.push_str(" --tunnels=off");
        }
        Commands { files: all, packets, wraps, has_files, has_filter }
    }

    /// Shows the packets that a filter of tcpdump's language accepts, also behind VLAN tags.
    pub(super) fn packets(&self, filter: &str) -> String {
        let tags = if filter.is_empty() { 0 } else { self.wraps.tags };
        self.shown(&behind(filter, "vlan", tags))
    }

    fn shown(&self, filter: &str) -> String {
        let (before, behind) = self.packets.rsplit_once('$').unwrap_or_default();
        format!("{before}'{filter}'{behind}")
    }

    /// Shows these packets of some VLANs, or the flows that a condition accepts where packets were in what tcpdump does
    /// not look into.
    pub(super) fn traffic(&self, filter: &str, condition: &str, vlans: Vlans) -> String {
        let numbers: Vec<_> = vlans.numbers().collect();
        if self.wraps.others {
            let vlan = if numbers.is_empty() { "null".to_owned() } else { format!("{numbers:?}") };
            return self.events("flow", &format!("{condition} and .vlan == {vlan}"));
        }
        // A tag with the number 0 is of no VLAN.
        let inside = behind(filter, "vlan 0", self.wraps.tags.saturating_sub(numbers.len() as u8));
        self.shown(&numbers.iter().rfold(inside, |inside, number| format!("vlan {number} and ({inside})")))
    }

    /// Shows the packets of attempts, or the alerts that a condition accepts where packets were in what tcpdump does
    /// not look into: what failed is no flow.
    pub(super) fn attempts(&self, filter: &str, condition: &str) -> String {
        if self.wraps.others { self.events("alert", condition) } else { self.packets(filter) }
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
        let condition = name
            .chars()
            .all(is_plain)
            .then(|| format!("[{places}] | any(.[] | strings; ascii_downcase == \"{name}\")"));
        self.events(types, &condition.unwrap_or_default())
    }
}

/// Accepts what a filter does, and also behind up to so many of these tags.
fn behind(filter: &str, tag: &str, tags: u8) -> String {
    // `vlan` moves all that follows it by a tag, also where it does not hold. So each is inside the one before.
    (0..tags).fold(filter.to_owned(), |all, _| format!("({filter}) or ({tag} and ({all}))"))
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    // Programs take what begins like an option for one, and one shell looks for a program's name behind an equals sign.
    let word = if word.len() > 1 && word.starts_with(['-', '=']) { &format!("./{word}") } else { word };
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
        with(files, None, Wraps::default())
    }

    fn with(files: &[&str], filter: Option<(&'static str, String)>, wraps: Wraps) -> Commands {
        let files = files.iter().map(|&file| file.to_owned()).collect();
        Commands::of(&Origin { files, is_demo: false, filter }, wraps, true)
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
        let demo = Commands::of(&Origin { is_demo: true, ..Origin::default() }, Wraps::default(), false);
        assert_eq!(demo.events("dns", ""), "corelane monitor --demo --tunnels=off --eve - --eve-types dns");
    }

    #[test]
    fn a_file_is_no_option_and_many_files_have_a_variable() {
        assert_eq!(of(&["--write=x"]).packets("tcp"), "tcpdump -nr ./--write=x 'tcp'");
        assert_eq!(of(&["=x"]).events("dns", ""), "corelane monitor ./=x --eve - --eve-types dns");
        let long = "x".repeat(LONG);
        assert_eq!(of(&[&long]).packets("tcp"), "tcpdump -nr \"$FILES\" 'tcp'");
        let many = of(&[&long, "b"]);
        assert!(many.has_files && !of(&["a", "b"]).has_files);
        assert_eq!(many.packets("tcp"), "for f in $FILES; do gzip -dcf \"$f\" | tcpdump -nr - 'tcp'; done");
        assert_eq!(many.events("dns", ""), "corelane monitor $FILES --eve - --eve-types dns");
    }

    #[test]
    fn what_chose_packets_chooses_them_again() {
        let filtered = |filter: &str| with(&["a", "b.gz"], Some(("--filter", filter.to_owned())), Wraps::default());
        assert_eq!(
            filtered("udp port 53").packets("host 10.0.0.1"),
            "corelane monitor a b.gz --filter 'udp port 53' --write - | tcpdump -nr - 'host 10.0.0.1'"
        );
        assert_eq!(filtered("udp").events("dns", ""), "corelane monitor a b.gz --filter udp --eve - --eve-types dns");
        let long = filtered(&"udp or ".repeat(LONG));
        assert!(long.has_filter && !filtered("udp").has_filter);
        assert!(long.events("dns", "").starts_with("corelane monitor a b.gz --filter \"$FILTER\" --eve"));
    }

    #[test]
    fn tags_and_tunnels_are_looked_behind() {
        let behind = |tags, others| with(&["a"], None, Wraps { tags, others });
        let traffic = |tags| behind(tags, false).traffic("udp", ".x", Vlans::NONE);
        assert_eq!(traffic(0), "tcpdump -nr a 'udp'");
        assert_eq!(traffic(1), "tcpdump -nr a '(udp) or (vlan 0 and (udp))'");
        assert_eq!(behind(1, false).packets("udp"), "tcpdump -nr a '(udp) or (vlan and (udp))'");
        assert_eq!(behind(2, false).packets("udp"), "tcpdump -nr a '(udp) or (vlan and ((udp) or (vlan and (udp))))'");
        assert_eq!(behind(2, false).packets(""), "tcpdump -nr a ''");
        assert_eq!(
            behind(1, true).traffic("udp", ".x", Vlans::NONE),
            "corelane monitor a --eve - --eve-types flow | jq -c 'select(.x and .vlan == null)'"
        );
    }

    /// Where there is `jq`, it finds the name.
    #[test]
    fn a_condition_finds_its_name_in_an_event() {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let command = of(&["a"]).events_of_name("http", ".http.hostname, .tls.sni", "example.com");
        let condition = command.split('\'').nth(1).expect("a condition");
        let jq = Command::new("jq").args(["-c", condition]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut jq) = jq else { return eprintln!("SKIPPED: there is no jq") };
        let events = [r#"{"http":{"hostname":"Example.com"}}"#, r#"{"http":{"hostname":"example.org"}}"#, "{}"];
        jq.stdin.take().expect("a pipe").write_all(events.join("\n").as_bytes()).unwrap();
        let output = jq.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), events[0]);
    }

    #[test]
    fn a_name_never_becomes_a_part_of_the_command() {
        let command = of(&["a"]);
        let plain = command.events_of_name("http", ".http.hostname", "example.com");
        assert!(
            plain.ends_with(
                r#"| jq -c 'select([.http.hostname] | any(.[] | strings; ascii_downcase == "example.com"))'"#
            )
        );
        for name in ["'; rm -rf /; '", "a\nb", "\" or true", "$(x)", "\u{1b}[2J", "a b", "ü"] {
            assert_eq!(command.events_of_name("http", ".x", name), "corelane monitor a --eve - --eve-types http");
        }
    }
}
