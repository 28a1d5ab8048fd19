//! Probes other than a SYN, rule by rule, and what is none.

use crate::packets::{ACK, Capture, FIN, Packet, RST, SECOND, START, SYN, XMAS, probe_by, tcp, udp};
use corelane_monitor::{Alert, Probe, ProbeScan, Report, Settings};
use std::net::IpAddr;

const PSH: u8 = 0x08;
const URG: u8 = 0x20;

const SCANNER: &str = "10.9.9.9 50000";

/// The flags by which each kind probes; `None` is UDP.
const KINDS: [(Probe, Option<u8>); 6] = [
    (Probe::Fin, Some(FIN)),
    (Probe::Null, Some(0)),
    (Probe::Xmas, Some(XMAS)),
    (Probe::SynFin, Some(FIN | SYN)),
    (Probe::Odd, Some(FIN | PSH)),
    (Probe::Udp, None),
];

fn packet(after: u64, from: &str, to: &str, flags: Option<u8>) -> Packet {
    Packet { flags, ..tcp(START + after, from, to, 0) }
}

fn run(packets: &[Packet]) -> Report {
    let report = Capture::of(packets).ending(START + 3600 * SECOND).run(&Settings::default());
    // What is told of SYNs does not change by other probes.
    let without = Settings { probes: false, ..Settings::default() };
    let expected = Report { probe_scans: vec![], ..report.clone() };
    assert_eq!(Capture::of(packets).ending(START + 3600 * SECOND).run(&without), expected);
    report
}

fn scans(packets: &[Packet]) -> Vec<ProbeScan> {
    run(packets).probe_scans
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// One probe a second, each to another target.
fn probes(from: &str, targets: impl IntoIterator<Item = String>, flags: Option<u8>) -> Vec<Packet> {
    (0..).zip(targets).map(|(i, target)| packet(i * SECOND, from, &target, flags)).collect()
}

fn ports(n: u64) -> impl Iterator<Item = String> {
    (1..=n).map(|port| format!("10.0.0.2 {port}"))
}

fn hosts(n: u64, port: u16) -> impl Iterator<Item = String> {
    (1..=n).map(move |host| format!("10.0.7.{host} {port}"))
}

#[test]
fn a_scan_of_each_kind_has_its_name() {
    for (probe, flags) in KINDS {
        assert_eq!(scans(&probes(SCANNER, ports(20), flags)), [], "{probe}");
        assert_eq!(scans(&probes(SCANNER, hosts(20, 161), flags)), [], "{probe}");
        for n in [21, 50] {
            let time_ns = START + 20 * SECOND;
            let vertical = Alert::Vertical { source: ip("10.9.9.9"), destination: ip("10.0.0.2"), count: n, time_ns };
            assert_eq!(scans(&probes(SCANNER, ports(n), flags)), [ProbeScan { probe, scan: vertical }], "{probe}");
            let horizontal = Alert::Horizontal { source: ip("10.9.9.9"), port: 161, count: n, time_ns };
            let found = scans(&probes(SCANNER, hosts(n, 161), flags));
            assert_eq!(found, [ProbeScan { probe, scan: horizontal }], "{probe}");
        }
    }
}

#[test]
fn kinds_do_not_add_up_and_a_key_counts_once() {
    // Fifteen targets by each kind, five times from five ports: nowhere more than twenty.
    let mut packets = Vec::new();
    for (round, source) in (50_000..50_020).enumerate() {
        let flags = KINDS[round % 4].1;
        packets.extend(probes(&format!("10.9.9.9 {source}"), ports(15), flags));
    }
    assert_eq!(scans(&packets), []);
    packets.extend(probes("10.9.9.9 50000", ports(21), Some(FIN)));
    let found = scans(&packets);
    assert_eq!((found.len(), found[0].probe, found[0].scan.count()), (1, Probe::Fin, 21));
}

#[test]
fn a_refused_segment_counts_as_one_that_is_ignored() {
    for flags in [FIN, 0, XMAS, SYN | FIN, PSH] {
        let mut packets = Vec::new();
        for (i, target) in (0..).zip(ports(30)) {
            packets.push(packet(i * SECOND, SCANNER, &target, Some(flags)));
            if i % 2 == 0 {
                packets.push(packet(i * SECOND + 1, &target, SCANNER, Some(RST | ACK)));
            }
        }
        let report = run(&packets);
        assert_eq!((report.probe_scans.len(), report.probe_scans[0].scan.count()), (1, 30));
        // They are no attempts to connect.
        assert_eq!((report.failed_attempts, report.alerts), (0, vec![]));
    }
}

#[test]
fn only_these_flags_are_probes() {
    for flags in 0..=255_u8 {
        let found = scans(&probes(SCANNER, ports(30), Some(flags)));
        assert_eq!(found.first().map(|found| found.probe), probe_by(flags), "{flags:#x}");
    }
    assert_eq!(XMAS, FIN | PSH | URG);
}

#[test]
fn what_its_sender_sent_before_a_probe_does_not_hide_it() {
    for flags in [FIN, 0, XMAS, SYN | FIN, PSH] {
        for before in [SYN, ACK, PSH | ACK, SYN | ACK, RST] {
            for by_scanner in [true, false] {
                // At once, so that both are in one batch, or far apart.
                for wait in [1, 100 * SECOND] {
                    let mut packets = Vec::new();
                    for target in ports(30) {
                        let (from, to) = if by_scanner { (SCANNER, &target[..]) } else { (&target[..], SCANNER) };
                        packets.push(packet(0, from, to, Some(before)));
                        packets.push(packet(wait, SCANNER, &target, Some(flags)));
                    }
                    let found = scans(&packets);
                    let kinds: Vec<_> = found.iter().map(|found| (found.probe, found.scan.count())).collect();
                    // What follows a packet of the other end is an answer.
                    let expected = by_scanner.then(|| (probe_by(flags).unwrap(), 30));
                    assert_eq!(kinds, Vec::from_iter(expected), "{flags:#x} {before:#x}");
                }
            }
        }
    }
}

/// Segments with ACK to these targets, and what follows each: whether it comes back, and its flags.
fn refused(from: &str, targets: impl Iterator<Item = String>, flags: u8, then: &[(bool, u8)]) -> Vec<ProbeScan> {
    let mut packets = Vec::new();
    for (number, target) in (0..).zip(targets) {
        packets.push(packet(number * SECOND, from, &target, Some(flags)));
        for (behind, &(comes_back, flags)) in (1..).zip(then) {
            let (from, to) = if comes_back { (&target[..], from) } else { (from, &target[..]) };
            packets.push(packet(number * SECOND + behind, from, to, Some(flags)));
        }
    }
    scans(&packets)
}

#[test]
fn a_segment_with_ack_is_a_probe_if_it_begins_its_flow_and_is_refused() {
    for flags in [ACK, FIN | ACK, ACK | 0xc0] {
        for reset in [RST, RST | ACK] {
            let found = refused(SCANNER, ports(30), flags, &[(true, reset)]);
            let kinds: Vec<_> =
                found.iter().map(|found| (found.probe, found.scan.kind(), found.scan.count())).collect();
            assert_eq!(kinds, [(Probe::Ack, "vertical", 30)], "{flags:#x} {reset:#x}");
            // Also if the scanner repeats what was refused, or goes on.
            assert_eq!(refused(SCANNER, ports(30), flags, &[(true, reset), (false, flags), (true, reset)]), found);
        }
        // Hosts that wake up find many connections gone.
        assert_eq!(refused(SCANNER, hosts(30, 443), flags, &[(true, RST)]), [], "{flags:#x}");
        // Captures have one direction alone, begin within conversations, and see answers to spoofed questions.
        for then in [&[][..], &[(false, RST)], &[(true, ACK), (true, RST)], &[(false, RST), (true, RST)]] {
            assert_eq!(refused(SCANNER, ports(30), flags, then), [], "{flags:#x} {then:?}");
        }
        assert_eq!(refused("10.9.9.9 443", ports(2000).skip(1100), flags, &[(true, RST)]), [], "{flags:#x}");
    }
    for flags in [SYN | ACK, PSH | ACK, RST, RST | ACK] {
        assert_eq!(refused(SCANNER, ports(30), flags, &[(true, RST)]), [], "{flags:#x}");
    }
}

#[test]
fn what_comes_behind_a_probe_does_not_matter() {
    for flags in [FIN, 0, XMAS, SYN | FIN, PSH] {
        for behind in [ACK, RST, flags, SYN] {
            for spread in [1, 1000] {
                let first = ports(30).enumerate().map(|(i, to)| packet(i as u64 * spread, SCANNER, &to, Some(flags)));
                let then = ports(30).map(|to| packet(SECOND, &to, SCANNER, Some(behind)));
                let mut packets: Vec<_> = first.chain(then).collect();
                packets.extend(ports(30).map(|to| packet(2 * SECOND, SCANNER, &to, Some(behind))));
                let found = scans(&packets);
                assert_eq!((found.len(), found[0].scan.count()), (1, 30), "{flags:#x} {behind:#x}");
            }
        }
    }
}

/// Thirty datagrams, of which the first few are answered by these packets.
fn answered(n: usize, answer: impl Fn(&str) -> Packet) -> Vec<ProbeScan> {
    let mut packets = probes(SCANNER, ports(30), None);
    packets.extend(ports(30).take(n).map(|target| answer(&target)));
    scans(&packets)
}

#[test]
fn a_datagram_fails_unless_one_comes_back() {
    let count = |found: Vec<ProbeScan>| found.first().map(|found| found.scan.count());
    // Whenever, as a datagram may be late.
    for after in [30, 3000] {
        assert_eq!(count(answered(5, |target| udp(START + after * SECOND, target, SCANNER))), Some(25));
    }
    // Also if it is earlier by its clock.
    assert_eq!(count(answered(5, |target| udp(0, target, SCANNER))), Some(25));
    // Not from or to another port or host, and not by TCP.
    assert_eq!(count(answered(5, |_| udp(START, "10.0.0.2 9999", SCANNER))), Some(30));
    assert_eq!(count(answered(5, |target| udp(START, target, "10.9.9.9 50001"))), Some(30));
    assert_eq!(count(answered(5, |target| udp(START, target, "10.9.9.8 50000"))), Some(30));
    assert_eq!(count(answered(5, |target| tcp(START, target, SCANNER, RST))), Some(30));
    // The scanner does not answer itself.
    assert_eq!(count(answered(30, |target| udp(START, SCANNER, target))), Some(30));
}

#[test]
fn one_answer_to_a_key_is_enough() {
    // The second flow of each key is answered, before or after a third that is not.
    let flow = |port: u16, to_answer: bool| {
        let from = format!("10.9.9.9 {port}");
        ports(30).flat_map(move |target| {
            let answer = to_answer.then(|| udp(START + SECOND, &target, &from));
            std::iter::once(udp(START, &from, &target)).chain(answer)
        })
    };
    assert_eq!(scans(&flow(50_000, false).chain(flow(50_001, true)).collect::<Vec<_>>()), []);
    assert_eq!(scans(&flow(50_000, true).chain(flow(50_001, false)).collect::<Vec<_>>()), []);
    let silent = flow(50_000, false).chain(flow(50_001, false)).collect::<Vec<_>>();
    assert_eq!(scans(&silent)[0].scan.count(), 30);
}

#[test]
fn the_time_is_that_of_the_earliest_probe() {
    for (probe, flags) in KINDS {
        let late = ports(21).map(|to| packet(100 * SECOND, "10.9.9.9 50000", &to, flags));
        let early = (0..).zip(ports(21)).map(|(i, to)| packet(i, "10.9.9.9 50001", &to, flags));
        // In the order of the file the late ones come first.
        let found = scans(&late.chain(early).collect::<Vec<_>>());
        assert_eq!(found[0].scan.time_ns(), START + 20, "{probe}");
    }
}

#[test]
fn one_of_five_that_answers_makes_it_no_scan() {
    for (silent, answering, is_scan) in
        [(25, 6, true), (25, 7, false), (24, 6, false), (100, 24, true), (100, 25, false)]
    {
        let mut packets = probes(SCANNER, ports(silent + answering), None);
        packets.extend(ports(answering).map(|target| udp(START + SECOND, &target, SCANNER)));
        assert_eq!(scans(&packets).len(), usize::from(is_scan), "{silent} {answering}");
        let mut packets = probes(SCANNER, hosts(silent + answering, 53), None);
        packets.extend(hosts(answering, 53).map(|target| udp(START + SECOND, &target, SCANNER)));
        let found = scans(&packets);
        assert_eq!(found.len(), usize::from(is_scan), "{silent} {answering}");
        assert!(found.iter().all(|found| found.scan.count() == silent));
    }
}

#[test]
fn the_time_out_of_attempts_is_for_syns() {
    let settings = Settings { syn_timeout_ns: 0, ..Settings::default() };
    for (probe, flags) in KINDS {
        let report = Capture::of(&probes(SCANNER, ports(30), flags)).run(&settings);
        assert_eq!((report.probe_scans.len(), report.probe_scans[0].probe), (1, probe));
    }
}

#[test]
fn backscatter_is_no_scan() {
    let mut packets = Vec::new();
    for i in 1..200_u64 {
        // Another host has used the address 10.9.9.9, and the answers come to it.
        let (host, port) = (format!("10.0.7.{i}"), 1024 + i * 37);
        let at = |port| format!("10.9.9.9 {port}");
        packets.push(packet(i, &format!("{host} 80"), &at(port), Some(SYN | ACK)));
        packets.push(packet(i, "10.0.0.2 80", &at(port), Some(SYN | ACK)));
        packets.push(packet(i, "10.0.0.2 443", &at(port), Some(RST | ACK)));
        packets.push(packet(i, &format!("{host} 443"), &at(4000), Some(RST)));
        packets.push(packet(i, "10.0.0.3 53", &at(port), None));
        packets.push(packet(i, &format!("{host} 123"), &at(4000), None));
    }
    assert_eq!(scans(&packets), []);
}

#[test]
fn a_flood_from_spoofed_sources_is_no_scan() {
    for (probe, flags) in KINDS {
        let from = |i: u64| format!("10.{}.{}.9 {}", i / 250, i % 250, 1024 + i * 7);
        let packets: Vec<_> =
            (0..1000).map(|i| packet(i, &from(i), &format!("10.255.0.2 {}", 1 + i % 900), flags)).collect();
        assert_eq!(scans(&packets), [], "{probe}");
    }
}

#[test]
fn clients_and_resolvers_are_no_scanners() {
    let mut packets = Vec::new();
    for i in 0..500_u64 {
        // A client, a port for each question, and a resolver that answers it after having asked others, some of which
        // have gone.
        let client = format!("10.1.0.1 {}", 20_000 + i);
        packets.push(packet(i * 1000, &client, "10.1.0.53 53", None));
        let (resolver, server) = (format!("10.1.0.53 {}", 30_000 + i), format!("10.2.{}.{} 53", i % 2, i % 250));
        packets.push(packet(i * 1000 + 100, &resolver, &server, None));
        if i % 250 % 9 != 0 {
            packets.push(packet(i * 1000 + 200, &server, &resolver, None));
        }
        packets.push(packet(i * 1000 + 300, "10.1.0.53 53", &client, None));
    }
    assert_eq!(scans(&packets), []);
    // A resolver that is down is one port of one host, however often it is asked.
    let down: Vec<_> = (0..500).map(|i| packet(i, &format!("10.1.0.1 {}", 20_000 + i), "10.1.0.53 53", None)).collect();
    assert_eq!(scans(&down), []);
}

#[test]
fn peers_are_no_scanners() {
    // One port of its own, many peers at one port: two of three have gone away.
    let mut packets = Vec::new();
    for (i, peer) in (0..).zip(hosts(150, 6881)) {
        packets.push(packet(i * SECOND, "10.1.0.1 6881", &peer, None));
        if i % 3 == 0 {
            packets.push(packet(i * SECOND + 1000, &peer, "10.1.0.1 6881", None));
        }
    }
    assert_eq!(scans(&packets), []);
}

#[test]
fn a_capture_that_begins_in_the_middle_makes_no_scanners() {
    let mut packets = Vec::new();
    for i in 0..100_u64 {
        // Answers to what was asked before, data and ordinary ends of what was opened before.
        packets.push(packet(i, "10.0.0.2 53", &format!("10.1.0.1 {}", 20_000 + i), None));
        let client = format!("10.1.0.1 {}", 30_000 + i);
        packets.push(packet(i, "10.0.0.2 443", &client, Some(PSH | ACK)));
        packets.push(packet(i + 500, "10.0.0.2 443", &client, Some(FIN | ACK)));
        packets.push(packet(i + 600, &client, "10.0.0.2 443", Some(FIN | PSH | ACK)));
        // Of some only the end is there.
        packets.push(packet(i, "10.0.0.3 443", &client, Some(FIN | ACK)));
        packets.push(packet(i + 1, &client, "10.0.0.3 443", Some(ACK)));
    }
    assert_eq!(scans(&packets), []);
}

#[test]
fn traceroute_is_no_scan() {
    let trace = |base: u64, hops: u8| {
        (0..90_u64).map(move |i| Packet {
            hops: hops.min(1 + (i / 3) as u8),
            ..packet(i * SECOND, "10.1.0.1 45678", &format!("10.200.0.1 {}", base + i), None)
        })
    };
    assert_eq!(scans(&trace(33_434, 30).collect::<Vec<_>>()), []);
    assert_eq!(scans(&trace(44_444, 30).collect::<Vec<_>>()), []);
    // To others, low ports with few hops are probes, and so are high ones with many.
    assert_eq!(scans(&trace(100, 30).collect::<Vec<_>>()).len(), 1);
    let far = trace(33_434, 30).map(|packet| Packet { hops: 31, ..packet }).collect::<Vec<_>>();
    assert_eq!(scans(&far).len(), 1);
}

#[test]
fn looking_for_services_by_multicast_and_broadcast_is_no_scan() {
    let mut packets = Vec::new();
    for i in 0..100_u64 {
        for group in
            [format!("239.255.0.{i} 5004"), format!("224.0.0.251 {}", 5000 + i), format!("255.255.255.255 {i}")]
        {
            packets.push(packet(i, "10.1.0.1 40000", &group, None));
        }
        packets.push(packet(i, "fe80::1 40000", &format!("ff02::{i:x} 1900"), None));
    }
    assert_eq!(scans(&packets), []);
    // One below multicast is a host.
    let hosts = (1..=30).map(|i| format!("223.255.255.{i} 1900"));
    assert_eq!(scans(&probes(SCANNER, hosts, None)).len(), 1);
}

#[test]
fn a_datagram_from_a_port_of_servers_to_one_of_clients_is_an_answer() {
    let from = |source: u16, first: u16| {
        let targets = (0..30).map(move |i| format!("10.0.0.2 {}", first + i));
        scans(&probes(&format!("10.9.9.9 {source}"), targets, None)).len()
    };
    assert_eq!([from(1023, 1024), from(53, 40_000)], [0, 0]);
    assert_eq!([from(1024, 1024), from(1023, 900), from(53, 1)], [1, 1, 1]);
    // What the asked one says to that later, on the same flow, is no probe and no answer.
    let mut packets = Vec::new();
    for i in 0..30 {
        let client = format!("10.1.0.1 {}", 20_000 + i);
        packets.push(packet(i, "10.0.0.2 53", &client, None));
        packets.push(packet(i + SECOND, &client, &format!("10.0.0.2 {}", 53), None));
    }
    assert_eq!(scans(&packets), []);
}
