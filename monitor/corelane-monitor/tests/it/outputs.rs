//! JSON, timing, EVE and summary.

use crate::packets::{Capture, SECOND, START, SYN, XMAS, tcp, udp};
use corelane_monitor::{Alert, Counting, Probe, ProbeScan, Report, ScanEvent, ScanState, Settings, Style, Timing};
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::time::Duration;

/// A scan of each kind, one of them over IPv6.
fn report() -> Report {
    let mut packets: Vec<_> =
        (1..=25).map(|i| tcp(START + i, "10.0.0.1 40000", &format!("10.0.0.2 {i}"), SYN)).collect();
    packets.extend((1..=22).map(|i| tcp(START + i, "2001:db8:0:0:1:0:0:1 40000", &format!("2001:db8::{i:x} 22"), SYN)));
    Capture::of(&packets).ending(START + 10 * SECOND).run(&Settings::default())
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("memory");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn json_has_the_keys_in_order() {
    let json = text(|out| report().write_json(out));
    let expected = concat!(
        r#"{"packets":48,"bytes":2321,"tcp":47,"flows":47,"pairs":23,"malformed":1,"undecoded":0,"#,
        r#""failed_attempts":47,"rejected":0,"unanswered":47,"alerts":["#,
        r#"{"kind":"horizontal","source":"2001:db8::1:0:0:1","port":22,"count":22,"time_ns":1003000000021},"#,
        r#"{"kind":"vertical","source":"10.0.0.1","destination":"10.0.0.2","count":25,"time_ns":1003000000021}"#,
        "]}\n"
    );
    assert_eq!(json, expected);
}

#[test]
fn timing_is_one_json_line() {
    let timing = Timing { wall: Duration::from_millis(500), cpu: Duration::from_millis(750), peak_memory: Some(9000) };
    let line = text(|out| report().write_timing(&timing, out));
    assert_eq!(line.lines().count(), 1);
    let found: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        found,
        json!({"wall_s": 0.5, "cpu_s": 0.75, "packets_per_second": 96.0, "analyzer_packets": [47],
            "peak_memory_bytes": 9000})
    );
    assert_eq!(Timing::default().per_second(10), 0.0);
}

#[test]
fn eve_has_one_alert_a_line() {
    let lines = text(|out| report().write_eve(out));
    let alerts: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        alerts,
        [
            json!({
                "timestamp": "1970-01-01T00:16:43.000000+0000", "event_type": "alert",
                "src_ip": "2001:db8::1:0:0:1", "dest_port": 22, "proto": "TCP",
                "alert": {
                    "action": "allowed", "gid": 1, "signature_id": 1_000_002, "rev": 1,
                    "signature": "CORELANE SCAN horizontal TCP port scan",
                    "category": "Detection of a Network Scan", "severity": 3
                },
                "scan": {"kind": "horizontal", "count": 22, "time_ns": 1_003_000_000_021_u64}
            }),
            json!({
                "timestamp": "1970-01-01T00:16:43.000000+0000", "event_type": "alert",
                "src_ip": "10.0.0.1", "dest_ip": "10.0.0.2", "proto": "TCP",
                "alert": {
                    "action": "allowed", "gid": 1, "signature_id": 1_000_001, "rev": 1,
                    "signature": "CORELANE SCAN vertical TCP port scan",
                    "category": "Detection of a Network Scan", "severity": 3
                },
                "scan": {"kind": "vertical", "count": 25, "time_ns": 1_003_000_000_021_u64}
            })
        ]
    );
}

/// Scans of both shapes, by three kinds of probes.
fn probed() -> Report {
    let mut packets: Vec<_> =
        (1..=25).map(|i| tcp(START + i, "10.0.0.1 40000", &format!("10.0.0.2 {i}"), XMAS)).collect();
    packets.extend((1..=22).map(|i| udp(START + 7 * SECOND, "2001:db8::9 40000", &format!("2001:db8::{i:x} 161"))));
    packets.extend((1..=23).map(|i| tcp(START, "10.0.0.3 40000", &format!("10.0.0.2 {i}"), SYN)));
    Capture::of(&packets).ending(START + 10 * SECOND).run(&Settings::default())
}

#[test]
fn json_has_other_probes_only_if_asked() {
    let plain = text(|out| probed().write_json(out));
    assert!(plain.ends_with("\"count\":23,\"time_ns\":1003000000000}]}\n"), "{plain}");
    let expected = concat!(
        r#","probe_scans":["#,
        r#"{"probe":"xmas","kind":"vertical","source":"10.0.0.1","destination":"10.0.0.2","count":25,"time_ns":1000000000021},"#,
        r#"{"probe":"udp","kind":"horizontal","source":"2001:db8::9","port":161,"count":22,"time_ns":1007000000000}"#,
        "]}\n"
    );
    let with = text(|out| probed().write_json_with_probes(out));
    assert_eq!(with, plain.replace("]}\n", "]") + expected);
}

#[test]
fn sources_are_in_the_outputs_only_if_they_are_counted() {
    let packets: Vec<_> = (1..=30_u64)
        .flat_map(|i| {
            let client = format!("10.0.0.{} {}", i % 4, 40_000 + i);
            [tcp(START, &client, "10.0.7.7 80", SYN), tcp(START, "10.0.7.7 80", &client, 0x12)]
        })
        .collect();
    let counting = NonZeroU64::new(1000).map(|every| Counting { every, top: 3 });
    let report = |counting| Capture::of(&packets).run(&Settings { counting, ..Settings::default() });
    let json = text(|out| report(counting).write_json(out));
    let expected = concat!(
        r#","alerts":[],"sources":[{"source":"10.0.7.7","connections":0,"bytes":1200},"#,
        r#"{"source":"10.0.0.1","connections":8,"bytes":320},{"source":"10.0.0.2","connections":8,"bytes":320}]}"#,
        "\n"
    );
    assert!(json.ends_with(expected), "{json}");
    let probes = text(|out| report(counting).write_json_with_probes(out));
    assert_eq!(probes, json.replace("}]}\n", "}],\"probe_scans\":[]}\n"));
    let summary = |counting| text(|out| report(counting).write_summary(&Timing::default(), Style::default(), out));
    let expected =
        "\nTop sources\n  source    bytes sent  connections begun\n  10.0.7.7     1.20 kB                  0\n";
    assert!(summary(counting).contains(expected), "{}", summary(counting));
    assert!(!text(|out| report(None).write_json(out)).contains("sources") && !summary(None).contains("sources"));
}

#[test]
fn eve_names_what_was_probed_by_in_order_of_time() {
    let lines = text(|out| probed().write_eve(out));
    let alerts: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |alert: &Value| {
        (alert["proto"].clone(), alert["alert"]["signature_id"].clone(), alert["alert"]["signature"].clone())
    };
    let expected = [
        (json!("TCP"), json!(1_000_007), json!("CORELANE SCAN vertical TCP Xmas scan")),
        (json!("TCP"), json!(1_000_001), json!("CORELANE SCAN vertical TCP port scan")),
        (json!("UDP"), json!(1_000_010), json!("CORELANE SCAN horizontal UDP port scan")),
    ];
    assert_eq!(alerts.iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(
        alerts[0]["scan"],
        json!({"kind": "vertical", "probe": "xmas", "count": 25, "time_ns": 1_000_000_000_021_u64})
    );
}

#[test]
fn the_summary_has_a_table_for_each_kind_of_probe() {
    let plain = text(|out| probed().write_summary(&Timing::default(), Style::default(), out));
    for part in [
        "Vertical scans (1)\n",
        "Vertical Xmas scans (1)\n  1970-01-01  source    host      ports\n  00:16:40    10.0.0.1  10.0.0.2     25\n",
        "Horizontal UDP scans (1)\n  1970-01-01  source       port  hosts\n  00:16:47    2001:db8::9   161     22\n",
    ] {
        assert!(plain.contains(part), "{part} is missing:\n{plain}");
    }
    assert!(!plain.contains("none found"));
}

#[test]
fn what_has_no_port_is_told_without_one() {
    let source: std::net::IpAddr = "10.0.0.1".parse().unwrap();
    let six = "2001:db8::9".parse().unwrap();
    let hosts = |source, port| Alert::Horizontal { source, port, count: 30, time_ns: 0 };
    let protocols = Alert::Vertical { source, destination: "10.0.0.2".parse().unwrap(), count: 40, time_ns: 0 };
    let all = [
        (Probe::Ping, hosts(source, 0), "ICMP", "ping", None),
        (Probe::Ping, hosts(six, 0), "IPv6-ICMP", "ping", None),
        (Probe::Arp, hosts(source, 0), "ARP", "ARP", None),
        (Probe::Protocol, protocols, "IP", "IP protocol", None),
        (Probe::Sctp, hosts(source, 0), "SCTP", "SCTP port", Some(0)),
    ];
    let lines =
        ["ping scan by 10.0.0.1: 30 hosts", "ping scan by 2001:db8::9: 30 hosts", "ARP scan by 10.0.0.1: 30 hosts"];
    let more = ["IP protocol scan of 10.0.0.2 by 10.0.0.1: 40 protocols", "SCTP scan of port 0 by 10.0.0.1: 30 hosts"];
    let mut report = Report::default();
    for ((probe, scan, proto, by, port), line) in all.into_iter().zip(lines.into_iter().chain(more)) {
        let probe_scans = vec![ProbeScan { probe, scan: scan.clone() }];
        report.probe_scans.extend(probe_scans.clone());
        let eve = text(|out| Report { probe_scans, ..Report::default() }.write_eve(out));
        let eve: Value = serde_json::from_str(&eve).unwrap();
        let signature = format!("CORELANE SCAN {} {by} scan", scan.kind());
        assert_eq!((&eve["proto"], &eve["alert"]["signature"]), (&json!(proto), &json!(signature)));
        assert_eq!(eve.get("dest_port"), port.map(|port: u16| json!(port)).as_ref());
        let (first_ns, distinct, tunnel, state) = (0, 30, None, ScanState::Found);
        let event = ScanEvent { probe: Some(probe), scan, first_ns, distinct, tunnel, state };
        assert!(event.to_string().contains(line), "{event}");
    }
    let summary = text(|out| report.write_summary(&Timing::default(), Style::default(), out));
    for part in [
        "Horizontal ping scans (2)\n  1970-01-01  source         hosts\n  00:00:00    10.0.0.1          30\n",
        "Vertical IP protocol scans (1)\n  1970-01-01  source    host      protocols\n",
    ] {
        assert!(summary.contains(part), "{summary}");
    }
}

#[test]
fn the_summary_says_everything_and_colors_only_when_asked() {
    let timing =
        Timing { wall: Duration::from_millis(2), cpu: Duration::from_millis(3), peak_memory: Some(214_000_000) };
    let mut report = report();
    report.analyzer_packets = vec![1_000_000, 3_000_000];
    report.dispatcher_packets = 1_000_000;
    let plain = text(|out| report.write_summary(&timing, Style::default(), out));
    for part in [
        "packets/s",
        "24.0 k",
        "peak memory     214 MB",
        "Vertical scans (1)\n  1970-01-01  source    host      ports\n  00:16:43    10.0.0.1  10.0.0.2     25\n",
        "Horizontal scans (1)\n  1970-01-01  source             port  hosts\n",
        "  00:16:43    2001:db8::1:0:0:1    22     22\n",
        "10.0.0.1 - 10.0.0.2",
        "SubAnalyzer 1  3,000,000  60.0 %",
        "Dispatcher     1,000,000  20.0 %",
        "3,000,000",
        "47 unanswered",
        "1970-01-01 00:16:40.000",
    ] {
        assert!(plain.contains(part), "{part} is missing:\n{plain}");
    }
    assert!(!plain.contains('\x1b'));
    assert!(plain.lines().all(|line| line == line.trim_end() && line.len() <= 120), "{plain}");
    let colored = text(|out| report.write_summary(&timing, Style { color: true }, out));
    assert!(colored.contains("\x1b[1mVertical scans (1)\x1b[0m"));
    println!("{plain}");
}

#[test]
fn scans_of_several_days_have_dates_and_long_lists_are_cut() {
    let mut report = report();
    let source = "10.0.0.1".parse().unwrap();
    report.alerts.extend((0..60).map(|port| Alert::Horizontal {
        source,
        port,
        count: 30,
        time_ns: 86_400 * SECOND + u64::from(port),
    }));
    let plain = text(|out| report.write_summary(&Timing::default(), Style::default(), out));
    assert!(
        plain.contains("  time (UTC)           source    host      ports\n  1970-01-01 00:16:43  10.0.0.1"),
        "{plain}"
    );
    assert!(plain.contains("Horizontal scans (61)\n") && plain.contains("  1970-01-02 00:00:00  10.0.0.1"), "{plain}");
    assert!(plain.contains("  and 11 more, all of which are in the JSON report\n"), "{plain}");
}

#[test]
fn a_summary_of_nothing_is_written_too() {
    let plain =
        text(|out| Capture::of(&[]).run(&Settings::default()).write_summary(&Timing::default(), Style::default(), out));
    assert!(plain.contains("none found"), "{plain}");
}
