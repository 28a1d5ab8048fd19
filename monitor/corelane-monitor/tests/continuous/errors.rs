//! Both kinds of error: innocents that are told as scans, and scans that are not told. The table of `docs/monitor.md`
//! comes from here.

use crate::packets::{Capture, Packet};
use crate::runs::run;
use crate::support::{Case, plan};
use crate::traffic::{self, Becomes};
use corelane_monitor::{Progress, ScanState, Settings};
use std::path::Path;

/// The lines that are told of it, as of a file and by steps; the same for any number of analyzers.
fn told(packets: &[Packet]) -> [usize; 2] {
    let case = Case::scans_only();
    let runs = [0, 1, 2, 4].map(|analyzers| {
        let (plan, progress, damage) = (plan(analyzers, 64), Progress::new(), |_, never| match never {});
        let report = run([Capture::of(packets)], &Settings::default(), &plan, &progress, damage).expect("a plan");
        (report.alerts, report.probe_scans, case.watch(Capture::of(packets), &plan).scans())
    });
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    let (alerts, probe_scans, by_steps) = &runs[0];
    let found = by_steps.iter().filter(|scan| scan.state == ScanState::Found).count();
    [alerts.len() + probe_scans.len(), found]
}

/// What is told wrongly today; a row that is mended leaves.
const WRONG: [&str; 3] = [
    "mail: 50 dead alone, hourly, 8 hours",
    "60 hosts in a loop of a minute",
    "40 hosts by IPv6, 10/s, pages by IPv4, 20/s",
];

#[test]
fn both_kinds_of_error_are_as_the_table_says() {
    let head = ["| **innocents** | | |\n", "| **scanners** | | |\n", "| **told wrongly** | | |\n"];
    let [mut innocents, mut scanners, mut wrong] = head.map(String::from);
    let mut names = Vec::new();
    for (name, is_scan, packets) in traffic::rows() {
        let [of_file, by_steps] = told(&packets);
        let is_right = if is_scan { of_file > 0 && by_steps > 0 } else { of_file == 0 && by_steps <= 1 };
        names.extend((!is_right).then_some(name));
        let rows = match (is_right, is_scan) {
            (false, _) => &mut wrong,
            (true, false) => &mut innocents,
            (true, true) => &mut scanners,
        };
        *rows += &format!("| {name} | {of_file} | {by_steps} |\n");
    }
    let head = "| sent by | told of a file | with `--continuous` |\n|---|---:|---:|\n";
    let table = [head, &innocents, &scanners, &wrong].concat();
    assert_eq!(names, WRONG, "{table}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitor.md");
    let page = std::fs::read_to_string(&path).expect("a page");
    let [begin, end] = ["<!-- both errors -->\n", "<!-- end of both errors -->\n"];
    let (before, rest) = page.split_once(begin).expect("a begin");
    let (there, after) = rest.split_once(end).expect("an end");
    if std::env::var_os("CORELANE_WRITE").is_some() {
        return std::fs::write(path, [before, begin, &table, end, after].concat()).expect("a page");
    }
    assert_eq!(there, table, "write docs/monitor.md by CORELANE_WRITE=1 and this test");
}

/// A timer, dead addresses that refuse, answers that come late, and several addresses of IPv6.
#[test]
fn happy_eyeballs_are_no_scan_and_a_scan_beside_pages_is_one() {
    for (apart_ms, after_ms, becomes) in [
        (2000, 250, Becomes::Silent),
        (100, 250, Becomes::Silent),
        (700, 2, Becomes::Refused),
        (3000, 1900, Becomes::Silent),
    ] {
        let mut packets = traffic::happy_eyeballs(50, 0, apart_ms, after_ms, becomes);
        packets.sort_by_key(|packet| packet.time_ns);
        assert_eq!(told(&packets), [0, 0], "{apart_ms} {after_ms} {becomes:?}");
        // Without what IPv4 says they are a scan.
        let by_v6: Vec<_> = packets.iter().filter(|packet| packet.source.is_ipv6()).copied().collect();
        assert_eq!(told(&by_v6), [1, 1]);
        // At two addresses of the client, by turns.
        let mut of_two = packets.clone();
        let [_, client] = traffic::client();
        for packet in &mut of_two {
            let is_odd = packet.source_port.max(packet.destination_port) % 2 == 1;
            for end in [&mut packet.source, &mut packet.destination] {
                if *end == client && is_odd {
                    *end = traffic::v6(0x00ff_0002);
                }
            }
        }
        assert_eq!(told(&of_two), [0, 0]);
        // Most of IPv4 is silent, too.
        let is_late = |packet: &Packet| packet.source.is_ipv4() && packet.source_port == 443;
        let silent = packets.iter().filter(|packet| !is_late(packet) || packet.destination_port % 3 == 0);
        let silent: Vec<_> = silent.copied().collect();
        assert_eq!(told(&silent)[0], 2, "by either family");
    }
    for (apart_ms, page_ms) in [(2000, 2000), (1000, 400), (300, 500), (100, 500)] {
        let mut packets = traffic::by_v6_with_pages(40, apart_ms, page_ms);
        packets.sort_by_key(|packet| packet.time_ns);
        assert_eq!(told(&packets), [1, 1], "{apart_ms} {page_ms}");
    }
}

/// What is polled is told once at most, however long that goes on. Scanners try again, too.
#[test]
fn pollers_are_told_once_and_scanners_that_try_again_are_told() {
    let of_order = |mut packets: Vec<Packet>| {
        packets.sort_by_key(|packet| packet.time_ns);
        packets
    };
    for (every_ms, rounds) in [(2000, 3000), (60_000, 300), (300_000, 60)] {
        for becomes in [Becomes::Refused, Becomes::Silent] {
            let packets = of_order(traffic::polled(30, 9100, every_ms, rounds, |_, _| becomes));
            assert_eq!(told(&packets), [0, 1], "{every_ms} {becomes:?}");
        }
    }
    for every_s in [15, 60, 300] {
        assert_eq!(told(&of_order(traffic::snmp(30, 0, every_s, 20))), [0, 1], "{every_s}");
    }
    // By nmap and masscan, by kernels, and by one that begins again when it has come to the end.
    for (tries, apart_ms) in [(2, 1000), (3, 1000), (11, 1000), (11, 1250), (2, 15_000), (3, 15_000)] {
        assert_eq!(told(&of_order(traffic::tried_again(40, tries, apart_ms))), [1, 1], "{tries} {apart_ms}");
    }
    assert_eq!(told(&of_order(traffic::connected(40, 60))), [1, 1]);
    for (every_ms, rounds) in [(5000, 6), (60_000, 5)] {
        // One that runs in a loop, at equal distances: many hosts, or ports of one.
        let hosts = of_order(traffic::polled(150, 445, every_ms, rounds, |_, _| Becomes::Silent));
        assert_eq!(told(&hosts), [1, 1], "{every_ms}");
        assert_eq!(told(&traffic::on_one_host(hosts)), [1, 1], "{every_ms}");
    }
    for run_ms in [10_000, 120_000] {
        assert_eq!(told(&of_order(traffic::repeated(64, 6, run_ms))), [1, 1], "{run_ms}");
    }
}
