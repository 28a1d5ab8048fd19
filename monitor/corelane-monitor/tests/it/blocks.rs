//! Blocks: several ports of several hosts, of each too few for a scan of its own.

use crate::fragments::runs;
use crate::packets::{Capture, FIN, Packet, RST, SECOND, START, SYN, tcp, udp};
use corelane_monitor::{Alert, Probe, Report, Settings};

/// A source asks ports of hosts, one after the other, port by port or host by host.
fn block(hosts: u64, ports: u64, by_host: bool, make: &dyn Fn(u64, &str, &str) -> Vec<Packet>) -> Capture {
    let mut packets = Vec::new();
    for number in 0..hosts * ports {
        let (host, port) = if by_host { (number / ports, number % ports) } else { (number % hosts, number / hosts) };
        let to = format!("10.0.{}.{} {}", host / 200, 1 + host % 200, 1000 + 7 * port);
        packets.extend(make(START + number * SECOND / 50, "10.9.9.9 50000", &to));
    }
    // Long enough for all to fail.
    packets.push(tcp(START + 200 * SECOND, "10.0.0.8 1", "10.0.0.9 1", RST));
    Capture::of(&packets)
}

fn found(report: &Report) -> Vec<(Option<Probe>, Alert)> {
    let by_probe = report.probe_scans.iter().map(|found| (Some(found.probe), found.scan.clone()));
    report.alerts.iter().map(|scan| (None, scan.clone())).chain(by_probe).collect()
}

type Make = fn(u64, &str, &str) -> Vec<Packet>;

const KINDS: [(Option<Probe>, Make); 4] = [
    (None, |time_ns, from, to| vec![tcp(time_ns, from, to, SYN)]),
    (None, |time_ns, from, to| vec![tcp(time_ns, from, to, SYN), tcp(time_ns + 5, to, from, RST)]),
    (Some(Probe::Fin), |time_ns, from, to| vec![tcp(time_ns, from, to, FIN)]),
    (Some(Probe::Udp), |time_ns, from, to| vec![udp(time_ns, from, to)]),
];

#[test]
fn a_block_is_found_once_in_every_way() {
    for (probe, make) in KINDS {
        for (hosts, ports) in [(15, 15), (10, 10), (20, 8), (5, 20), (20, 20)] {
            for by_host in [true, false] {
                let name = format!("{probe:?} {hosts} {ports} {by_host}");
                let capture = block(hosts, ports, by_host, &make);
                let mut first_ns = None;
                for (report, _) in runs(&capture, &Settings::default()) {
                    let scans = found(&report);
                    let [(kind, Alert::Block { source, count, time_ns })] = scans[..] else {
                        panic!("{name}: {scans:?}")
                    };
                    assert_eq!((kind, source), (probe, "10.9.9.9".parse().unwrap()), "{name}");
                    // Of each host all but four.
                    assert_eq!(count, hosts * (ports - 4), "{name}");
                    // Except that UDP fails later where time passes.
                    let at_ns = *first_ns.get_or_insert(time_ns);
                    assert!(at_ns == time_ns || probe == Some(Probe::Udp), "{name}");
                }
            }
        }
    }
}

#[test]
fn few_ports_of_many_hosts_and_many_of_few_are_no_block() {
    for (_, make) in KINDS {
        // Clients meet hosts that are away, and ask each for a few services; monitors ask more of some.
        for (hosts, ports) in [(20, 4), (8, 9), (2, 20), (13, 7)] {
            let capture = block(hosts, ports, true, &make);
            for (report, _) in runs(&capture, &Settings::default()) {
                assert_eq!(found(&report), [], "{hosts} {ports}");
            }
        }
    }
}

/// A source that has scans of its own for hosts or ports is told by these.
#[test]
fn scans_of_many_ports_of_some_hosts_are_no_block_too() {
    let (_, make) = KINDS[1];
    // One host after the other, or all at once within a second.
    for (hosts, ports, by_host, faster) in [(4, 30, true, 1), (9, 21, true, 1), (4, 30, false, 10), (9, 21, false, 10)]
    {
        let mut capture = block(hosts, ports, by_host, &make);
        capture.records.iter_mut().for_each(|(time_ns, _)| *time_ns = START + (*time_ns - START) / faster);
        for (report, _) in runs(&capture, &Settings::default()) {
            let scans = found(&report);
            assert_eq!(scans.len() as u64, hosts, "{scans:?}");
            assert!(scans.iter().all(|(_, scan)| matches!(scan, Alert::Vertical { .. })), "{scans:?}");
        }
    }
}
