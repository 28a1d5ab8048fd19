//! Sweeps by ICMP and ARP, IP protocol scans and SCTP, in every way to run.

use crate::fragments::runs;
use crate::packets::{Capture, SECOND, START};
use corelane_monitor::{Probe, Report, Settings};
use corelane_net::capture::LinkType;
use std::net::IpAddr;

/// An Ethernet frame of an IP packet of this protocol.
fn ip(from: &str, to: &str, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
    let mut frame = vec![0; 12];
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + payload.len() as u16).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
            frame.extend([from.octets(), to.octets()].concat());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((payload.len() as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend([from.octets(), to.octets()].concat());
        }
        _ => panic!("two address families in one packet"),
    }
    frame.extend(payload);
    frame
}

fn icmp(from: &str, to: &str, kind: u8) -> Vec<u8> {
    ip(from, to, if from.contains(':') { 58 } else { 1 }, &[kind, 0, 0, 0, 0, 7, 0, 1])
}

fn arp(from: &str, to: &str, operation: u8) -> Vec<u8> {
    let octets = |address: &str| address.parse::<std::net::Ipv4Addr>().unwrap().octets();
    let mut frame = vec![0; 12];
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend([2; 6]);
    frame.extend(octets(from));
    frame.extend([0; 6]);
    frame.extend(octets(to));
    frame
}

fn sctp(from: (&str, u16), to: (&str, u16), chunk: u8) -> Vec<u8> {
    let mut payload = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
    payload.extend([0, 0, 0, 0, 0, 0, 0, 0, chunk, 0, 0, 20]);
    payload.extend([0; 16]);
    ip(from.0, to.0, 132, &payload)
}

/// A host of the net, from 1 on.
fn host(is_v6: bool, number: u64) -> String {
    if is_v6 { format!("2001:db8::1:{number}") } else { format!("10.0.7.{number}") }
}

const SCANNER: [&str; 2] = ["10.9.9.9", "2001:db8::9"];

/// These frames, ten a second, and a record long after.
fn capture(frames: impl IntoIterator<Item = Vec<u8>>) -> Capture {
    let mut capture = Capture::of(&[]);
    capture.link = LinkType::ETHERNET;
    capture.records.extend((0..).zip(frames).map(|(number, frame)| (START + number * SECOND / 10, frame)));
    capture.ending(START + 300 * SECOND)
}

/// The same scans in every way: kind of probes, kind of scan, port, count.
fn found(capture: &Capture) -> Vec<(Probe, &'static str, Option<u16>, u64)> {
    let of = |report: &Report| {
        // A flow is of TCP or UDP.
        assert_eq!((report.flows, report.pairs.unwrap_or(0), report.tcp, &report.alerts[..]), (0, 0, 0, &[][..]));
        (report.probe_scans.iter())
            .map(|found| (found.probe, found.scan.kind(), found.scan.port(), found.scan.count()))
            .collect::<Vec<_>>()
    };
    let runs: Vec<_> = runs(capture, &Settings::default()).iter().map(|(report, _)| of(report)).collect();
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    let off = Settings { probes: false, ..Settings::default() };
    assert_eq!(of(&capture.clone().run(&off)), []);
    runs[0].clone()
}

/// A question to each of these hosts or ports, and the answers of the first few.
type Ask = fn(bool, u64) -> Vec<u8>;

const TO_HOSTS: [(&str, Probe, bool, Ask, Ask); 8] = [
    ("echo", Probe::Ping, false, |v6, i| icmp(SCANNER[0], &host(v6, i), 8), |v6, i| icmp(&host(v6, i), SCANNER[0], 0)),
    (
        "timestamp",
        Probe::Ping,
        false,
        |v6, i| icmp(SCANNER[0], &host(v6, i), 13),
        |v6, i| icmp(&host(v6, i), SCANNER[0], 14),
    ),
    (
        "mask",
        Probe::Ping,
        false,
        |v6, i| icmp(SCANNER[0], &host(v6, i), 17),
        |v6, i| icmp(&host(v6, i), SCANNER[0], 18),
    ),
    (
        "echo of ICMPv6",
        Probe::Ping,
        true,
        |v6, i| icmp(SCANNER[1], &host(v6, i), 128),
        |v6, i| icmp(&host(v6, i), SCANNER[1], 129),
    ),
    ("arp", Probe::Arp, false, |v6, i| arp(SCANNER[0], &host(v6, i), 1), |v6, i| arp(&host(v6, i), SCANNER[0], 2)),
    (
        "init",
        Probe::Sctp,
        false,
        |v6, i| sctp((SCANNER[0], 50_000), (&host(v6, i), 36_412), 1),
        |v6, i| sctp((&host(v6, i), 36_412), (SCANNER[0], 50_000), 2),
    ),
    (
        "cookie",
        Probe::Sctp,
        true,
        |v6, i| sctp((SCANNER[1], 50_000), (&host(v6, i), 36_412), 10),
        |v6, i| sctp((&host(v6, i), 36_412), (SCANNER[1], 50_000), 11),
    ),
    (
        "init of IPv6",
        Probe::Sctp,
        true,
        |v6, i| sctp((SCANNER[1], 50_000), (&host(v6, i), 36_412), 1),
        |v6, i| sctp((&host(v6, i), 36_412), (SCANNER[1], 50_000), 2),
    ),
];

#[test]
fn a_sweep_is_found_where_more_is_silent_than_answers() {
    for (name, probe, v6, ask, answer) in TO_HOSTS {
        // Of SCTP one answer outweighs four, as of UDP.
        let [most, too_many] = if probe.has_port() { [5, 6] } else { [20, 21] };
        for (silent, answering, is_scan) in
            [(20, 0, false), (21, 0, true), (21, most, true), (21, too_many, false), (0, 60, false)]
        {
            let asked = (1..=silent + answering).map(|i| ask(v6, i));
            // Where time passes, answers before the first failure say nothing.
            let answers = (1..=answering).map(|i| answer(v6, 1 + i % (silent + answering)));
            let port = Some(if probe.has_port() { 36_412 } else { 0 });
            let expected = is_scan.then_some((probe, "horizontal", port, silent));
            // Asked twice, as answers may be late, and so is a scanner that asks again.
            let all = capture(asked.clone().chain(answers).chain(asked));
            assert_eq!(found(&all), Vec::from_iter(expected), "{name} {silent} {answering}");
        }
        // Once, of ARP, may have been answered where the tap does not see it.
        let once = found(&capture((1..=60).map(|i| ask(v6, i))));
        assert_eq!(once.len(), usize::from(probe != Probe::Arp), "{name}");
        // An answer without a question, as backscatter has it, says nothing.
        assert_eq!(found(&capture((1..=60).map(|i| answer(v6, i)))), [], "{name}");
    }
}

#[test]
fn ports_of_a_host_by_sctp_are_a_vertical_scan() {
    for (v6, chunk) in [(false, 1), (false, 10), (true, 1), (true, 10)] {
        let from = (SCANNER[usize::from(v6)], 50_000);
        let ask = |port| sctp(from, (&host(v6, 1), port), chunk);
        assert_eq!(found(&capture((1..=20).map(ask))), []);
        // An ABORT refuses.
        let refused = (1..=30).flat_map(|port| [ask(port), sctp((&host(v6, 1), port), from, 6)]);
        assert_eq!(found(&capture(refused)), [(Probe::Sctp, "vertical", None, 30)]);
    }
}

#[test]
fn the_first_chunk_of_sctp_is_seen_in_fragments() {
    let fragments = (1..=30_u16).flat_map(|port| {
        let whole = sctp((SCANNER[0], 50_000), (&host(false, 1), port), 1);
        let (header, payload) = whole.split_at(34);
        let pieces: Vec<_> = (payload.chunks(8).enumerate())
            .map(|(number, piece)| {
                let mut frame = [header, piece].concat();
                frame[17] = 20 + piece.len() as u8;
                frame[19] = port as u8;
                frame[20] = if (number + 1) * 8 < payload.len() { 0x20 } else { 0 };
                frame[21] = number as u8;
                frame
            })
            .collect();
        pieces
    });
    assert_eq!(found(&capture(fragments)), [(Probe::Sctp, "vertical", None, 30)]);
}

#[test]
fn protocols_of_a_host_are_a_scan_and_hosts_of_a_protocol_are_none() {
    for v6 in [false, true] {
        let from = SCANNER[usize::from(v6)];
        // From 61 to 96 none carries others.
        let ask = |number: u64, protocol: u8| ip(from, &host(v6, number), protocol, &[]);
        assert_eq!(found(&capture((61..=80).map(|protocol| ask(1, protocol)))), []);
        let scan = found(&capture((61..=96).map(|protocol| ask(1, protocol))));
        assert_eq!(scan, [(Probe::Protocol, "vertical", None, 36)], "{v6}");
        assert_eq!(found(&capture((1..=60).map(|number| ask(number, 89)))), []);
    }
}

#[test]
fn what_is_no_question_is_no_probe() {
    let scanner = SCANNER[0];
    // Errors, answers, routers' words.
    for kind in [0, 3, 4, 5, 9, 10, 11, 12, 14, 16, 18, 30] {
        assert_eq!(found(&capture((1..=60).map(|i| icmp(scanner, &host(false, i), kind)))), [], "{kind}");
    }
    for kind in [1, 2, 3, 4, 129, 130, 133, 134, 135, 136, 140, 143] {
        assert_eq!(found(&capture((1..=60).map(|i| icmp(SCANNER[1], &host(true, i), kind)))), [], "{kind}");
    }
    for chunk in [0, 3, 4, 5, 6, 7, 9, 14] {
        let frames = (1..=60).map(|i| sctp((scanner, 5), (&host(false, i), 5), chunk));
        assert_eq!(found(&capture(frames)), [], "{chunk}");
    }
    // Of a cut packet the type is not there.
    assert_eq!(found(&capture((1..=60).map(|i| ip(scanner, &host(false, i), 1, &[])))), []);
    assert_eq!(found(&capture((1..=60).map(|i| ip(scanner, &host(false, i), 132, &[0; 12])))), []);
    // To many, and from none.
    assert_eq!(found(&capture((1..=60).map(|i| icmp(scanner, &format!("224.0.1.{i}"), 8)))), []);
    assert_eq!(found(&capture((1..=60).map(|i| icmp(SCANNER[1], &format!("ff05::{i}"), 128)))), []);
    assert_eq!(found(&capture((1..=60).map(|i| icmp("0.0.0.0", &host(false, i), 8)))), []);
    // Tests and tells an address; asks for many.
    assert_eq!(found(&capture((1..=60).map(|i| arp("0.0.0.0", &host(false, i), 1)))), []);
    assert_eq!(found(&capture((1..=60).map(|i| arp(&host(false, i), &host(false, i), 1)))), []);
    assert_eq!(found(&capture((1..=60).map(|i| arp(scanner, &format!("224.0.0.{i}"), 1)))), []);
    // Other operations, other protocols, cut.
    assert_eq!(found(&capture((1..=60).map(|i| arp(scanner, &host(false, i), 8)))), []);
    let other = |at: usize, to: u8| {
        move |i| {
            let mut frame = arp(scanner, &host(false, i), 1);
            frame[at] = to;
            frame
        }
    };
    assert_eq!(found(&capture((1..=60).map(other(16, 0x86)))), []);
    let cut = (1..=60).map(|i| arp(scanner, &host(false, i), 1)[..40].to_vec());
    assert_eq!(found(&capture(cut)), []);
    // Not again, but captured twice, or long after.
    let twice = (1..=60).flat_map(|i| [arp(scanner, &host(false, i), 1), arp(scanner, &host(false, i), 1)]);
    let mut twice = capture(twice);
    for pair in twice.records.chunks_exact_mut(2) {
        pair[1].0 = pair[0].0 + 1000;
    }
    assert_eq!(found(&twice), []);
    let mut late = capture((1..=120).map(|i| arp(scanner, &host(false, 1 + i % 60), 1)));
    late.records[60..120].iter_mut().for_each(|(time_ns, _)| *time_ns += 60 * SECOND);
    assert_eq!(found(&late), []);
    // A tagged frame is one of ARP too.
    let tagged = (1..=60).map(|i| {
        let i = 1 + i % 30;
        let mut frame = arp(scanner, &host(false, i), 1);
        frame.splice(12..12, [0x81, 0, 0, 7]);
        frame
    });
    assert_eq!(found(&capture(tagged)), [(Probe::Arp, "horizontal", Some(0), 30)]);
}

/// What has no flow shares keys with none that has.
#[test]
fn questions_and_flows_leave_one_another_alone() {
    let (scanner, target) = (SCANNER[0], host(false, 1));
    let udp = |port: u16| {
        let ports = [50_000_u16.to_be_bytes(), port.to_be_bytes()].concat();
        ip(scanner, &target, 17, &[&ports[..], &[0, 8, 0, 0]].concat())
    };
    // A datagram of the same ports in the same second, before and behind.
    let frames = (1..=30).flat_map(|port| {
        [sctp((scanner, 50_000), (&target, port), 1), udp(port), sctp((scanner, 50_000), (&target, port), 1), udp(port)]
    });
    for (report, _) in runs(&capture(frames), &Settings::default()) {
        let kinds: Vec<_> = report.probe_scans.iter().map(|found| (found.probe, found.scan.count())).collect();
        assert_eq!((kinds, report.flows), (vec![(Probe::Sctp, 30), (Probe::Udp, 30)], 30));
    }
}
