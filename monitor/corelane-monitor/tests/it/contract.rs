//! The monitor contract, rule by rule.

use crate::packets::{ACK, Capture, FIN, Packet, RST, SECOND, START, SYN, tcp};
use corelane_monitor::{Alert, Ignored, Report, Settings};

const CLIENT: &str = "10.0.0.1 40000";
const SERVER: &str = "10.0.0.2 80";

/// One failure is a scan of both kinds, so that alerts show the time of a single failure.
const ANY: Settings = Settings {
    syn_timeout_ns: 3 * SECOND,
    vertical_threshold: 0,
    horizontal_threshold: 0,
    probes: true,
    tunnels: false,
    ignored: Vec::new(),
    counting: None,
    table_bytes: None,
    top: 10,
    seed: 0,
};

/// After START, from client to server.
fn there(after: u64, flags: u8) -> Packet {
    tcp(START + after, CLIENT, SERVER, flags)
}

fn back(after: u64, flags: u8) -> Packet {
    tcp(START + after, SERVER, CLIENT, flags)
}

/// Rejected, unanswered, and the failures' times after START, of a capture that goes on for an hour.
fn failures(packets: &[Packet]) -> (u64, u64, Vec<u64>) {
    failures_until(packets, 3600 * SECOND)
}

fn failures_until(packets: &[Packet], end: u64) -> (u64, u64, Vec<u64>) {
    let report = Capture::of(packets).ending(START + end).run(&ANY);
    assert_eq!(report.failed_attempts, report.rejected + report.unanswered);
    let times = (report.alerts.iter()).filter(|alert| alert.kind() == "horizontal");
    (report.rejected, report.unanswered, times.map(|alert| alert.time_ns() - START).collect())
}

const NONE: (u64, u64, Vec<u64>) = (0, 0, Vec::new());

#[test]
fn an_empty_capture_is_an_empty_report() {
    let report = Capture::of(&[]).run(&ANY);
    assert_eq!(report, Report { pairs: Some(0), analyzer_packets: vec![0], ..Report::default() });
}

#[test]
fn an_answer_before_the_deadline_counts_and_one_at_it_does_not() {
    let deadline = 3 * SECOND;
    for answer in [SYN | ACK, SYN | ACK | FIN, SYN | ACK | 0xc8] {
        assert_eq!(failures(&[there(0, SYN), back(deadline - 1, answer)]), NONE);
        for late in [deadline, deadline + 1] {
            assert_eq!(failures(&[there(0, SYN), back(late, answer)]), (0, 1, vec![deadline]));
        }
    }
}

#[test]
fn an_rst_rejects_before_the_deadline_only() {
    let deadline = 3 * SECOND;
    for rst in [RST, RST | ACK, RST | SYN, RST | SYN | ACK, RST | FIN] {
        assert_eq!(failures(&[there(0, SYN), back(deadline - 1, rst)]), (1, 0, vec![deadline - 1]));
        for late in [deadline, deadline + 1] {
            assert_eq!(failures(&[there(0, SYN), back(late, rst)]), (0, 1, vec![deadline]));
        }
    }
}

#[test]
fn only_a_bare_syn_opens() {
    for flags in [SYN, SYN | 0x08, SYN | 0xe0] {
        assert_eq!(failures(&[there(0, flags)]), (0, 1, vec![3 * SECOND]), "{flags:#x}");
    }
    for flags in [0, ACK, FIN, RST, SYN | ACK, SYN | FIN, SYN | RST, SYN | ACK | FIN, 0x29] {
        assert_eq!(failures(&[there(0, flags)]), NONE, "{flags:#x}");
    }
}

#[test]
fn udp_opens_nothing() {
    let packet = Packet { flags: None, ..there(0, 0) };
    let report = Capture::of(&[packet]).run(&ANY);
    assert_eq!((report.failed_attempts, report.flows, report.tcp, report.packets), (0, 1, 0, 1));
}

#[test]
fn the_first_syn_counts_from_whatever_source_port() {
    let retry = tcp(START + SECOND, "10.0.0.1 40001", SERVER, SYN);
    assert_eq!(failures(&[there(0, SYN), there(SECOND, SYN), retry]), (0, 1, vec![3 * SECOND]));
    assert_eq!(failures(&[there(0, SYN), retry, back(2 * SECOND, RST | ACK)]), (1, 0, vec![2 * SECOND]));
    let to_the_retry = tcp(START + 2 * SECOND, SERVER, "10.0.0.1 40001", SYN | ACK);
    assert_eq!(failures(&[there(0, SYN), retry, to_the_retry]), NONE);
}

#[test]
fn answers_come_from_the_destination_and_its_port() {
    for stranger in ["10.0.0.2 81", "10.0.0.3 80"] {
        for flags in [SYN | ACK, RST] {
            let answer = tcp(START + 1, stranger, CLIENT, flags);
            assert_eq!(failures(&[there(0, SYN), answer]), (0, 1, vec![3 * SECOND]));
        }
    }
    let to_another = tcp(START + 1, SERVER, "10.0.0.9 40000", SYN | ACK);
    assert_eq!(failures(&[there(0, SYN), to_another]), (0, 1, vec![3 * SECOND]));
    assert_eq!(failures(&[there(0, SYN), there(1, RST)]), (0, 1, vec![3 * SECOND]));
}

#[test]
fn an_answer_before_its_syn_answers_nothing() {
    assert_eq!(failures(&[back(0, SYN | ACK), there(1, SYN)]), (0, 1, vec![3 * SECOND + 1]));
    assert_eq!(failures(&[back(0, RST), there(1, SYN)]), (0, 1, vec![3 * SECOND + 1]));
}

#[test]
fn file_order_decides_not_time_order() {
    // The answer is later in the file but earlier by its clock.
    assert_eq!(failures(&[there(SECOND, SYN), back(0, SYN | ACK)]), NONE);
    assert_eq!(failures(&[there(SECOND, SYN), back(0, RST)]), (1, 0, vec![0]));
}

#[test]
fn a_late_packet_of_its_own_expires_an_attempt_for_good() {
    let late = 5 * SECOND;
    for expiring in [there(late, SYN), back(late, SYN | ACK), back(late, RST)] {
        for after in [back(SECOND, SYN | ACK), back(SECOND, RST), there(SECOND, SYN)] {
            assert_eq!(failures(&[there(0, SYN), expiring, after]), (0, 1, vec![3 * SECOND]));
        }
    }
}

#[test]
fn a_packet_of_another_attempt_expires_nothing() {
    let other = [tcp(START + 100 * SECOND, CLIENT, "10.0.0.2 81", SYN), tcp(START + 100 * SECOND, SERVER, CLIENT, ACK)];
    for other in other {
        let (rejected, unanswered, _) = failures(&[there(0, SYN), other, back(SECOND, SYN | ACK)]);
        assert_eq!((rejected, unanswered), (0, u64::from(other.destination_port == 81)));
    }
}

#[test]
fn after_an_answer_a_syn_opens_a_new_attempt() {
    let first = [there(0, SYN), back(1, SYN | ACK)];
    let again = |more: &[Packet]| failures(&[&first, more].concat());
    // The service has gone down, which is no scan.
    assert_eq!(again(&[there(10 * SECOND, SYN)]), (0, 1, vec![]));
    assert_eq!(again(&[there(10 * SECOND, SYN), back(10 * SECOND + 5, RST)]), (1, 0, vec![]));
    // The answer was not yet out of doubt.
    assert_eq!(again(&[there(2 * SECOND, SYN), back(2 * SECOND + 5, RST)]), (1, 0, vec![2 * SECOND + 5]));
    assert_eq!(again(&[there(10 * SECOND, SYN), back(10 * SECOND + 5, SYN | ACK)]), NONE);
    // The end of an answered connection is no rejection.
    assert_eq!(again(&[back(2, RST)]), NONE);
    assert_eq!(again(&[back(2, SYN | ACK), back(3, RST)]), NONE);
    // But one of a closed port is, as long as an answer would have been in time.
    assert_eq!(again(&[back(3 * SECOND - 1, RST | ACK)]), (1, 0, vec![3 * SECOND - 1]));
    assert_eq!(again(&[back(3 * SECOND, RST | ACK)]), NONE);
}

#[test]
fn a_key_fails_at_most_once() {
    let failed = [there(0, SYN), back(1, RST | ACK)];
    let again = |more: &[Packet]| failures(&[&failed, more].concat());
    assert_eq!(again(&[there(2, SYN), back(3, RST | ACK)]), (1, 0, vec![1]));
    assert_eq!(again(&[there(2, SYN), back(3, SYN | ACK), there(4, SYN)]), (1, 0, vec![1]));
    assert_eq!(again(&[there(100 * SECOND, SYN)]), (1, 0, vec![1]));
}

#[test]
fn the_end_of_the_capture_ends_attempts() {
    assert_eq!(failures_until(&[there(0, SYN)], 2 * SECOND), (0, 1, vec![2 * SECOND]));
    assert_eq!(failures_until(&[there(0, SYN)], 3 * SECOND), (0, 1, vec![3 * SECOND]));
    assert_eq!(failures_until(&[there(0, SYN)], 4 * SECOND), (0, 1, vec![3 * SECOND]));
    // The end is the largest time of any record, not the last one's.
    assert_eq!(failures_until(&[back(2 * SECOND, ACK), there(0, SYN)], 0), (0, 1, vec![2 * SECOND]));
}

#[test]
fn both_directions_and_self_connections_are_attempts_of_their_own() {
    let (a, b) = ("10.0.0.1 1000", "10.0.0.2 2000");
    let crossing = [tcp(START, a, b, SYN), tcp(START + 1, b, a, SYN)];
    assert_eq!(failures(&crossing).1, 2);
    // Each side's SYN-ACK answers the other's SYN.
    let answers = [tcp(START + 2, b, a, SYN | ACK), tcp(START + 3, a, b, SYN | ACK)];
    assert_eq!(failures(&[crossing, answers].concat()), NONE);
    let land = tcp(START, a, a, SYN);
    assert_eq!(failures(&[land]), (0, 1, vec![3 * SECOND]));
    assert_eq!(failures(&[land, tcp(START + 1, a, a, RST)]), (1, 0, vec![1]));
}

#[test]
fn every_word_of_an_ipv6_address_counts() {
    let mut packets = Vec::new();
    for bit in 0..128 {
        let mut packet = tcp(START, "2001:db8::1 40000", "2001:db8::2 80", SYN);
        let flip = |address: std::net::IpAddr| match address {
            std::net::IpAddr::V6(address) => std::net::Ipv6Addr::from_bits(address.to_bits() ^ (1 << bit)).into(),
            other => other,
        };
        packet.destination = flip(packet.destination);
        packets.push(packet);
        packet = tcp(START, "2001:db8::1 40000", "2001:db8::2 80", SYN);
        packet.source = flip(packet.source);
        packets.push(packet);
    }
    let report = Capture::of(&packets).run(&Settings::default());
    assert_eq!(report.failed_attempts, 256);
    let counts: Vec<_> = report.alerts.iter().map(|alert| (alert.kind(), alert.count())).collect();
    assert_eq!(counts, [("horizontal", 128)]);
}

#[test]
fn a_flow_is_bidirectional_and_of_one_protocol() {
    let udp = Packet { flags: None, ..there(0, 0) };
    let other_port = tcp(START, "10.0.0.1 40001", SERVER, ACK);
    let report = Capture::of(&[there(0, ACK), back(0, ACK), udp, other_port]).run(&ANY);
    assert_eq!((report.flows, report.pairs), (3, Some(1)));
}

/// SYNs of one source, one a second, without an answer.
fn unanswered(targets: impl IntoIterator<Item = String>) -> Vec<Packet> {
    (0..).zip(targets).map(|(i, target)| tcp(START + i * SECOND, "10.9.9.9 5000", &target, SYN)).collect()
}

#[test]
fn a_scan_is_more_ports_or_hosts_than_its_threshold() {
    let settings = Settings { vertical_threshold: 20, horizontal_threshold: 30, ..Settings::default() };
    let alerts = |target: &dyn Fn(u64) -> String, n: u64| {
        Capture::of(&unanswered((1..=n).map(target))).ending(START + 3600 * SECOND).run(&settings).alerts
    };
    let (source, destination) = ("10.9.9.9".parse().unwrap(), "10.0.0.2".parse().unwrap());
    let port = |port: u64| format!("10.0.0.2 {port}");
    let host = |host: u64| format!("10.0.7.{host} 445");
    assert_eq!((alerts(&port, 20), alerts(&host, 30)), (vec![], vec![]));
    for count in [21, 50] {
        let expected = Alert::Vertical { source, destination, count, time_ns: START + 23 * SECOND };
        assert_eq!(alerts(&port, count), [expected], "{count}");
    }
    for count in [31, 200] {
        let expected = Alert::Horizontal { source, port: 445, count, time_ns: START + 33 * SECOND };
        assert_eq!(alerts(&host, count), [expected], "{count}");
    }
}

#[test]
fn repeats_are_not_distinct() {
    let packets: Vec<_> = (0..100).map(|i| tcp(START + i, "10.9.9.9 5000", "10.0.0.2 80", SYN)).collect();
    assert_eq!(Capture::of(&packets).run(&Settings::default()).alerts, []);
}

#[test]
fn the_crossing_is_in_order_of_failure_time_not_of_arrival() {
    // 21 silent ports opened first, then 5 that are rejected at once: the crossing is the 16th deadline.
    let mut packets: Vec<_> =
        (0..21).map(|i| tcp(START + i, "10.9.9.9 5000", &format!("10.0.0.2 {}", 100 + i), SYN)).collect();
    for i in 0..5 {
        let port = format!("10.0.0.2 {}", 200 + i);
        packets.push(tcp(START + SECOND, "10.9.9.9 5000", &port, SYN));
        packets.push(tcp(START + SECOND + 1 + i, &port, "10.9.9.9 5000", RST | ACK));
    }
    let report = Capture::of(&packets).ending(START + 3600 * SECOND).run(&Settings::default());
    let found: Vec<_> = report.alerts.iter().map(|alert| (alert.count(), alert.time_ns() - START)).collect();
    assert_eq!(found, [(26, 3 * SECOND + 15)]);
    assert_eq!((report.rejected, report.unanswered), (5, 21));
}

#[test]
fn a_huge_time_out_and_the_last_times_do_not_overflow() {
    let settings = Settings { syn_timeout_ns: u64::MAX, ..ANY };
    let packets = [tcp(u64::MAX - 1, CLIENT, SERVER, SYN), tcp(u64::MAX, SERVER, CLIENT, ACK)];
    let report = Capture::of(&packets).run(&settings);
    assert_eq!((report.unanswered, report.alerts[0].time_ns()), (1, u64::MAX));
}

/// Scans of both shapes, by SYNs and by datagrams, from two sources; and the settings that ignore these.
fn ignoring(sources: &[&str], targets: &[&str]) -> Report {
    let from = sources.iter().map(|source| format!("from={source}"));
    let to = targets.iter().map(|target| format!("to={target}"));
    ignoring_rules(from.chain(to))
}

fn ignoring_rules(rules: impl IntoIterator<Item = String>) -> Report {
    let mut packets = Vec::new();
    for source in ["10.9.9.9 50000", "10.9.9.8 50000"] {
        for i in 1..=25 {
            for target in [format!("10.0.0.2 {i}"), format!("10.0.7.{i} 161")] {
                let syn = tcp(START, source, &target, SYN);
                packets.extend([syn, Packet { flags: None, ..syn }]);
            }
        }
    }
    let ignored = rules.into_iter().map(|rule| rule.parse::<Ignored>().unwrap()).collect();
    let settings = Settings { ignored, ..Settings::default() };
    let report = Capture::of(&packets).ending(START + 3600 * SECOND).run(&settings);
    // What is no attempt is counted as ever.
    assert_eq!((report.packets, report.tcp, report.flows, report.pairs), (201, 100, 200, Some(52)));
    report
}

#[test]
fn ignored_sources_and_targets_count_for_nothing() {
    let counts = |report: Report| {
        let of = |kind| {
            let all = report.alerts.iter().chain(report.probe_scans.iter().map(|found| &found.scan));
            all.filter(|alert| alert.kind() == kind).map(|alert| alert.count()).collect::<Vec<_>>()
        };
        (report.failed_attempts, of("vertical"), of("horizontal"))
    };
    let all = || vec![25; 4];
    assert_eq!(counts(ignoring(&[], &[])), (100, all(), all()));
    assert_eq!(counts(ignoring(&["10.9.9.7", "10.10.0.0/16", "::/0"], &["10.0.8.0/24"])), (100, all(), all()));
    assert_eq!(counts(ignoring(&["10.9.9.9"], &[])), (50, vec![25; 2], vec![25; 2]));
    assert_eq!(counts(ignoring(&["10.9.9.8/31"], &[])), (0, vec![], vec![]));
    assert_eq!(counts(ignoring(&[], &["10.0.0.2"])), (50, vec![], all()));
    // A scan that also met others has fewer targets: 21 of them, and then 19.
    assert_eq!(counts(ignoring(&[], &["10.0.7.1", "10.0.7.2", "10.0.7.24/31"])), (92, all(), vec![21; 4]));
    assert_eq!(counts(ignoring(&[], &["10.0.7.20/30", "10.0.7.24/31"])), (88, all(), vec![]));
    // All of a rule have to be true, and one of the rules.
    let rules = |rules: &[&str]| counts(ignoring_rules(rules.iter().map(|rule| (*rule).to_owned())));
    assert_eq!(rules(&["port=161"]), (50, all(), vec![]));
    assert_eq!(rules(&["from=10.9.9.9,port=161"]), (75, all(), vec![25; 2]));
    assert_eq!(rules(&["from=10.9.9.9,to=10.0.0.2,port=161"]), (100, all(), all()));
    assert_eq!(rules(&["from=10.9.9.9,to=10.0.0.2", "port=161,to=10.0.7.0/24"]), (25, vec![25; 2], vec![]));
    // A host that scans and is scanned: a source is no target.
    assert_eq!(counts(ignoring(&["10.0.0.0/16"], &["10.9.9.0/24"])), (100, all(), all()));
    assert_eq!(counts(ignoring(&["10.9.9.9"], &["10.0.7.0/24"])), (25, vec![25; 2], vec![]));
}
