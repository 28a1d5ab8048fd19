//! What goes over the list of protocols: every parser reads its example, and the documents have every line.

use crate::support::{data, run};
use corelane_net::protocol::fuzz::{ParserFacts, parsers};
use corelane_net::protocol::{Carrier, Event, Protocol};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_parser_reads_its_example() {
    for ParserFacts { protocol, carriers, example, .. } in parsers() {
        let steps: Vec<_> = example.into_iter().map(|(side, bytes)| (side, data(bytes))).collect();
        let events = run(carriers[0], &steps);
        let Some((Event::Identified(found), others)) = events.split_first() else { panic!("{protocol}: {events:?}") };
        assert_eq!(found.protocol, protocol);
        assert!(!others.is_empty(), "{protocol} has an event");
    }
}

#[test]
fn every_protocol_has_its_place_and_its_name() {
    for (place, protocol) in Protocol::ALL.iter().enumerate() {
        assert_eq!(*protocol as usize, place);
    }
    let names: BTreeSet<_> = Protocol::ALL.iter().map(|protocol| protocol.name()).collect();
    assert_eq!(names.len(), Protocol::ALL.len());
}

/// Compares what stands between two marks of a document, or writes it there.
fn documented(file: &str, mark: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    let page = fs::read_to_string(&path).unwrap();
    let [begin, end] = [format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->\n")];
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{file} has no {begin}"));
    let (there, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{file} has no {end}"));
    if std::env::var_os("CORELANE_WRITE").is_some() {
        fs::write(path, [before, &begin, text, &end, after].concat()).unwrap();
        return;
    }
    assert_eq!(there, text, "write docs/{file} by CORELANE_WRITE=1 and this test");
}

/// Bytes in whole KiB, rounded up, with commas.
fn kib(bytes: usize) -> String {
    let kib = bytes.div_ceil(1024);
    if kib < 1000 { format!("{kib} KiB") } else { format!("{},{:03} KiB", kib / 1000, kib % 1000) }
}

#[test]
fn the_documents_have_every_protocol() {
    let mut rows: Vec<(String, String)> = Vec::new();
    for ParserFacts { protocol, carriers, most, holds, .. } in parsers() {
        let over = |carrier: &Carrier| if *carrier == Carrier::Stream { "TCP" } else { "UDP" };
        let over = carriers.iter().map(over).collect::<Vec<_>>().join(", ");
        let facts = format!("{over} | {} | {holds}", kib(most));
        // Those with one parser share a row.
        match rows.iter_mut().find(|row| row.1 == facts) {
            Some(row) => row.0 += &format!(", `{protocol}`"),
            None => rows.push((format!("`{protocol}`"), facts)),
        }
    }
    let rows = rows.iter().map(|(names, facts)| format!("| {names} | {facts} |\n")).collect::<String>();
    let head = "| protocol | over | bytes at most | what |\n|---|---|---:|---|\n";
    documented("protocols.md", "the parsers of the list", &format!("{head}{rows}"));

    let mut lines = vec![String::new()];
    for (place, protocol) in Protocol::ALL.iter().enumerate() {
        let name = format!("`{protocol}`{}", if place + 1 < Protocol::ALL.len() { "," } else { "." });
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&name),
            Some(line) if line.len() + name.len() < 120 => *line += &format!(" {name}"),
            _ => lines.push(name),
        }
    }
    documented("eve.md", "the protocols of the list", &format!("{}\n", lines.join("\n")));
}
