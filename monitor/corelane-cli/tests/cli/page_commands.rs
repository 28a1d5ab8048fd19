//! The commands of a page are run, and show as many packets or events as the number has that they belong to.

use crate::html::{datagram, page_of};
use crate::support::{Folder, captures, corelane, run, skipped};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A cell of a table.
#[derive(Debug)]
struct Cell {
    /// What it sorts by.
    value: Option<u64>,
    text: String,
    command: Option<String>,
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_once(behind).map(|(inside, _)| inside)
}

fn cell(markup: &str) -> Cell {
    let command = between(markup, "<code popover", "</code>").and_then(|code| code.split_once('>'));
    let visible = markup.split("<code popover").next().unwrap_or_default();
    let text = visible.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect::<String>();
    let value = between(markup, "data-v=\"", "\"").and_then(|value| value.parse().ok());
    Cell { value, text: unescaped(&text), command: command.map(|(_, command)| unescaped(command)) }
}

/// The rows of the table with this caption.
fn table(page: &str, caption: &str) -> Vec<Vec<Cell>> {
    let table = between(page, &format!("<caption>{caption}"), "</tbody>").unwrap_or_else(|| panic!("no {caption}"));
    table
        .split("<tr")
        .skip(2)
        .map(|row| row.split("<td").skip(1).map(|td| cell(&format!("<td{td}"))).collect())
        .collect()
}

/// The command of a fact about the capture.
fn fact(page: &str, name: &str) -> Cell {
    cell(between(page, &format!("<dt>{name}</dt>"), "</dd>").unwrap_or_else(|| panic!("no {name}")))
}

fn is_there(programs: &[&str]) -> bool {
    let missing = |program: &&&str| Command::new(program).arg("--version").output().is_err();
    match programs.iter().find(missing) {
        None => true,
        Some(program) => {
            skipped(&format!("there is no {program} to run the commands of a page with"));
            false
        }
    }
}

/// What a command says, line by line.
fn lines(command: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let own = Path::new(env!("CARGO_BIN_EXE_corelane")).parent().expect("a folder");
    let path = env::join_paths(
        std::iter::once(own.to_owned()).chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PATH", path.expect("a path")).envs(variables.iter().copied());
    let outcome = run(shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()));
    assert!(outcome.code == Some(0), "{command}: {outcome:?}");
    outcome.stdout.lines().map(str::to_owned).collect()
}

/// How many packets or events a command shows.
#[track_caller]
fn check(cell: &Cell, expected: u64) {
    let command = cell.command.as_deref().unwrap_or_else(|| panic!("no command: {cell:?}"));
    assert_eq!(lines(command, &[]).len() as u64, expected, "{command}");
}

/// Those of all conversations show its packets.
fn check_conversations(page: &str) -> usize {
    let rows = table(page, "Conversations by bytes");
    rows.iter().for_each(|row| check(&row[3], row[6].value.expect("packets")));
    rows.len()
}

#[test]
fn a_command_shows_what_its_number_counts() {
    let Some(folder) = captures() else { return };
    if !is_there(&["tcpdump", "jq"]) {
        return;
    }
    let own = Folder::new();
    let page = page_of(&folder.join("http-mixed.pcap"), &own.path("page.html"));
    assert_eq!(check_conversations(&page), 136);
    for (caption, count) in
        [("Hosts of HTTP requests", 26), ("Servers named in TLS and QUIC", 1), ("Names asked for in DNS", 28)]
    {
        let rows = table(&page, caption);
        assert!(rows.len() >= count, "{caption}: {}", rows.len());
        rows.iter().step_by(5).for_each(|row| check(&row[1], row[1].value.expect("a number")));
    }
    for row in table(&page, "Protocols, by content") {
        check(&row[1], row[1].value.expect("a number"));
    }
    check(&fact(&page, "Packets"), 4631);
    check(&fact(&page, "Conversations"), 136);
    for row in table(&page, "Hosts with conversations").iter().step_by(3) {
        check(&row[4], row[4].value.expect("a number"));
    }
}

/// How many ports a scanner's SYNs went to, as `tcpdump` shows them: those that never answered, and all.
fn tried(shown: &[String], scanner: &str) -> [u64; 2] {
    let end = |line: &str, place: usize| line.split(' ').nth(place).expect("an end").trim_end_matches(':').to_owned();
    let sent = shown.iter().filter(|line| line.contains("Flags [S],") && end(line, 2).starts_with(scanner));
    let sent: BTreeSet<_> = sent.map(|line| end(line, 4)).collect();
    let answered = shown.iter().filter(|line| line.contains("Flags [S.],"));
    let answered: BTreeSet<_> = answered.map(|line| end(line, 2)).collect();
    [sent.difference(&answered).count() as u64, sent.len() as u64]
}

#[test]
fn a_scans_command_shows_its_attempts() {
    let Some(folder) = captures() else { return };
    if !is_there(&["tcpdump"]) {
        return;
    }
    let own = Folder::new();
    let connect = fs::read(folder.join("scan-connect-retries.pcap")).expect("a file");
    let in_vlan = own.file("vlan.pcap", tagged(&connect, &[0x81, 0, 0, 5], 1));
    for file in [folder.join("scan-connect-retries.pcap"), in_vlan, folder.join("scan-network-sweep.pcap")] {
        let name = file.display();
        let page = page_of(&file, &own.path("page.html"));
        let mut rows = table(&page, "Scans in order of time");
        rows.retain(|row| row[1].text.ends_with("TCP"));
        assert!(!rows.is_empty(), "{name}");
        for row in &rows {
            let shown = lines(row[3].command.as_deref().expect("a command"), &[]);
            let [silent, all] = tried(&shown, &row[0].text);
            // What has answered may fail later.
            let failed = row[3].value.expect("a number");
            assert!(all > 20 && (silent..=all).contains(&failed), "{name}: {silent} and {all}, {:?}", row[3]);
        }
    }
}

/// A capture of Ethernet frames with this before their EtherType, or every other frame.
fn tagged(capture: &[u8], tags: &[u8], every: usize) -> Vec<u8> {
    let (head, mut rest) = capture.split_at(24);
    let mut out = head.to_vec();
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let mut number = 0;
    while rest.len() >= 16 {
        let (header, behind) = rest.split_at(16);
        let (data, next) = behind.split_at(word(&header[8..12]) as usize);
        let tags = if number % every == 0 { tags } else { &[] };
        out.extend(&header[..8]);
        out.extend([&header[8..12], &header[12..]].map(word).map(|n| (n + tags.len() as u32).to_le_bytes()).concat());
        out.extend([&data[..12], tags, &data[12..]].concat());
        (rest, number) = (next, number + 1);
    }
    out
}

#[test]
fn a_command_looks_behind_tags_labels_and_tunnels() {
    let Some(folder) = captures() else { return };
    if !is_there(&["tcpdump", "jq"]) {
        return;
    }
    let own = Folder::new();
    let bare = fs::read(folder.join("http-mixed.pcap")).expect("a file");
    // All of it without a VLAN, and the same again in one; or a priority, which is no VLAN, in every other frame.
    let again = |tags| [&bare[..], &tagged(&bare, tags, 1)[24..]].concat();
    for (name, capture, vlans, conversations) in [
        ("one", again(&[0x81, 0, 0, 5]), "5", 272),
        ("two", again(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5]), "9, 5", 272),
        ("priority", tagged(&bare, &[0x81, 0, 0x20, 0], 2), "", 136),
    ] {
        let page = page_of(&own.file(name, capture), &own.path("page.html"));
        let rows = table(&page, "Conversations by bytes");
        rows.iter().step_by(7).for_each(|row| check(&row[3], row[6].value.expect("packets")));
        let inside = rows.iter().filter(|row| row[2].text.ends_with(&format!(", VLAN {vlans}"))).count();
        assert_eq!((rows.len(), inside), (conversations, conversations - 136), "{name}");
    }
    for (name, conversations) in [("vlan-mpls.pcap", 3), ("wire/tunnel-vxlan.pcap", 1)] {
        let page = page_of(&folder.join(name), &own.path("page.html"));
        let rows = table(&page, "Conversations by bytes");
        assert!(rows.len() >= conversations, "{name}: {}", rows.len());
        // A flow each.
        rows.iter().for_each(|row| check(&row[3], 1));
        let host = &table(&page, "Hosts with conversations")[0];
        check(&host[4], host[4].value.expect("conversations"));
    }
}

/// What failed is no flow: where tcpdump cannot look, the alerts say how often.
#[test]
fn commands_of_scans_show_alerts_where_tcpdump_cannot_look() {
    let Some(folder) = captures() else { return };
    if !is_there(&["jq"]) {
        return;
    }
    let own = Folder::new();
    // Three tags of one frame are enough.
    let bare = fs::read(folder.join("scan-syn-vertical.pcap")).expect("a file");
    let file = own.file("tagged.pcap", tagged(&bare, &[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3], usize::MAX));
    let page = page_of(&file, &own.path("page.html"));
    let rows = table(&page, "Scans in order of time");
    assert!(!rows.is_empty());
    for cell in rows.iter().flatten().filter(|cell| cell.command.is_some()) {
        let shown = lines(cell.command.as_deref().unwrap(), &[]);
        assert!(shown.len() == 1 && shown[0].contains("\"event_type\":\"alert\""), "{shown:?}");
    }
}

#[test]
fn a_command_keeps_the_filter_of_the_run() {
    let Some(folder) = captures() else { return };
    if !is_there(&["tcpdump", "jq"]) {
        return;
    }
    let own = Folder::new();
    let program = Command::new("tcpdump").args(["-y", "EN10MB", "-ddd", "host 10.0.0.4 and port 5005"]).output();
    let program = own.file("program", program.expect("tcpdump").stdout);
    let mut filters = vec![["--filter-program".to_owned(), program.display().to_string()]];
    if cfg!(feature = "libpcap") {
        filters.push(["--filter".to_owned(), "host 10.0.0.4 and port 5005".to_owned()]);
    }
    for filter in filters {
        let page = own.path("page.html");
        let mut command = corelane(["monitor", "--html", page.to_str().unwrap(), "--format", "json"]);
        let outcome = run(command.args(&filter).arg(folder.join("http-mixed.pcap"))).code(0);
        let page = fs::read_to_string(&page).expect("a page");
        let packets = outcome.packets();
        assert!((1..4631).contains(&packets), "{packets}");
        check(&fact(&page, "Packets"), packets);
        check(&fact(&page, "Conversations"), check_conversations(&page) as u64);
    }
}

#[test]
fn many_files_have_a_variable() {
    let own = Folder::new();
    let frame = datagram(["10.0.0.1", "10.0.0.2"].map(|host| host.parse().unwrap()), 4000);
    let files: Vec<_> = (0..40)
        .map(|number| {
            let capture = crate::support::Pcap::new(100, 101).record(number, frame.len() as u32, &frame).0;
            own.file(&format!("a-rather-long-name-{number}.pcap"), capture)
        })
        .collect();
    let page = own.path("page.html");
    run(corelane(["monitor", "--html", page.to_str().unwrap()]).args(&files)).code(0);
    let page = fs::read_to_string(&page).expect("a page");
    assert!(page.contains("$FILES stands for") && page.contains(" and 20 other files") && page.len() < 60_000);
    assert!(page.contains("<title>a-rather-long-name-0.pcap and 39 other files"));
    if is_there(&["tcpdump", "jq"]) {
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let files = files.join(" ");
        for (name, expected) in [("Packets", 40), ("Conversations", 1)] {
            let command = fact(&page, name).command.expect("a command");
            assert_eq!(lines(&command, &[("FILES", &files)]).len(), expected, "{command}");
        }
    }
}
