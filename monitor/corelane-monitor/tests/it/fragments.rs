//! Probes whose headers come in several fragments.

use crate::packets::{ACK, Capture, FIN, Packet, RST, SECOND, START, SYN, tcp, udp};
use crate::runs::plan;
use corelane_monitor::{Continuous, Findings, Inspection, Job, Observer, Probe, Progress, Report, Settings};

/// A packet cut into fragments of so many bytes. IPv6 has a header for that.
fn cut(packet: &Packet, id: u16, size: usize) -> Vec<(u64, Vec<u8>)> {
    let frame = packet.frame();
    let header_len = if packet.source.is_ipv4() { 20 } else { 40 };
    let (header, payload) = frame.split_at(header_len);
    let pieces = payload.chunks(size).enumerate().map(|(number, piece)| {
        let (offset, more) = (number * size, (number + 1) * size < payload.len());
        let mut fragment = header.to_vec();
        if packet.source.is_ipv4() {
            fragment[2..4].copy_from_slice(&(20 + piece.len() as u16).to_be_bytes());
            fragment[4..6].copy_from_slice(&id.to_be_bytes());
            fragment[6..8].copy_from_slice(&((u16::from(more) << 13) | (offset as u16 / 8)).to_be_bytes());
        } else {
            fragment[4..6].copy_from_slice(&(8 + piece.len() as u16).to_be_bytes());
            let next = std::mem::replace(&mut fragment[6], 44);
            fragment.extend([next, 0]);
            fragment.extend((offset as u16 | u16::from(more)).to_be_bytes());
            fragment.extend(u32::from(id).to_be_bytes());
        }
        fragment.extend(piece);
        (packet.time_ns + number as u64, fragment)
    });
    pieces.collect()
}

/// Every way to run over these records; the answers of one way are the same for any number of analyzers.
pub(crate) fn runs(capture: &Capture, settings: &Settings) -> Vec<(Report, Findings)> {
    let mut runs = Vec::new();
    for continuous in [None, Some(Continuous::default())] {
        for payload in [false, true] {
            let mut of_way = Vec::new();
            for analyzers in [0, 1, 3] {
                let inspection = Inspection { payload, ..Inspection::default() };
                let job = Job { settings: settings.clone(), plan: plan(analyzers, 64), inspection, continuous };
                let observer =
                    Observer { progress: &Progress::new(), damage: &|_, never| match never {}, found: &mut |_| {} };
                let (report, findings) = job.run([capture.clone()], observer).expect("a plan");
                of_way.push((Report { analyzer_packets: vec![], dispatcher_packets: 0, ..report }, findings));
            }
            assert!(of_way.iter().all(|run| *run == of_way[0]), "{payload} {continuous:?}: {of_way:?}");
            runs.extend(of_way.pop());
        }
    }
    runs
}

const SCANNER: [&str; 2] = ["10.9.9.9 50000", "2001:db8::9 50000"];
const TARGET: [&str; 2] = ["10.0.0.2", "2001:db8::2"];

/// The record that ends a capture is malformed.
const END: u64 = 1;

/// Thirty probes in fragments of so many bytes, in order or backwards, and what comes back whole.
fn scan(v6: bool, size: usize, backwards: bool, probe: &dyn Fn(u64, &str, &str) -> Packet, answers: bool) -> Capture {
    let (from, host) = (SCANNER[usize::from(v6)], TARGET[usize::from(v6)]);
    let mut capture = Capture::of(&[]);
    for number in 1..=30 {
        let (time_ns, to) = (START + u64::from(number) * SECOND / 10, format!("{host} {}", 100 + number));
        let mut fragments = cut(&probe(time_ns, from, &to), number, size);
        if backwards {
            let times: Vec<_> = fragments.iter().map(|(time_ns, _)| *time_ns).collect();
            fragments.reverse();
            fragments.iter_mut().zip(times).for_each(|((time_ns, _), time)| *time_ns = time);
        }
        capture.records.extend(fragments);
        if answers {
            capture.records.extend(Capture::of(&[tcp(time_ns + 9, &to, from, RST | ACK)]).records);
        }
    }
    capture.ending(START + 100 * SECOND)
}

#[test]
fn a_scan_in_fragments_is_found_in_every_way() {
    let syn = |time_ns, from: &str, to: &str| tcp(time_ns, from, to, SYN);
    let fin = |time_ns, from: &str, to: &str| tcp(time_ns, from, to, FIN);
    for v6 in [false, true] {
        // As nmap -f and -ff cut them.
        for (size, backwards) in [(8, false), (8, true), (16, false), (16, true)] {
            let name = format!("{v6} {size} {backwards}");
            for answers in [false, true] {
                for (report, _) in runs(&scan(v6, size, backwards, &syn, answers), &Settings::default()) {
                    let rejected = if answers { 30 } else { 0 };
                    assert_eq!((report.rejected, report.unanswered), (rejected, 30 - rejected), "{name}");
                    assert_eq!((report.alerts.len(), report.malformed), (1, END), "{name} {answers}: {report:?}");
                    assert_eq!((report.tcp, report.flows), (30 + rejected, 30), "{name}");
                    let fragments = report.fragments;
                    assert_eq!(
                        (fragments.fragments, fragments.whole),
                        (30 * 20_u64.div_ceil(size as u64), 30),
                        "{name}"
                    );
                }
            }
            for (report, _) in runs(&scan(v6, size, backwards, &fin, true), &Settings::default()) {
                let found: Vec<_> = report.probe_scans.iter().map(|scan| (scan.probe, scan.scan.kind())).collect();
                assert_eq!(found, [(Probe::Fin, "vertical")], "{name}: {report:?}");
            }
        }
    }
}

/// A header that is whole in the first fragment counts at once and once, with the other fragments or without them.
#[test]
fn a_first_fragment_with_ports_counts_as_its_packet() {
    let datagram = |time_ns, from: &str, to: &str| udp(time_ns, from, to);
    let whole = scan(false, 8, false, &datagram, false);
    for missing in [false, true] {
        let mut capture = whole.clone();
        for (number, (_, record)) in capture.records.iter_mut().enumerate().take(30) {
            // It says that more follows.
            (record[6], record[5]) = (0x20, number as u8);
        }
        if !missing {
            let mut records = Vec::new();
            for (time_ns, record) in capture.records {
                let mut behind = record.clone();
                records.push((time_ns, record));
                if behind.len() > 20 {
                    (behind[6], behind[7]) = (0, 1);
                    records.push((time_ns + 1, behind));
                }
            }
            capture.records = records;
        }
        for (report, _) in runs(&capture, &Settings::default()) {
            assert_eq!((report.flows, report.malformed), (30, END), "{missing}");
            assert_eq!(
                report.probe_scans.first().map(|scan| scan.scan.count().min(21)),
                Some(21),
                "{missing}: {report:?}"
            );
            let fragments = report.fragments;
            let counts = (fragments.whole, fragments.timed_out);
            assert_eq!(counts, if missing { (0, 30) } else { (30, 0) }, "{missing} {fragments:?}");
        }
    }
}

/// What never becomes whole is told by name, and neither as malformed nor as TCP.
#[test]
fn a_header_that_never_is_whole_is_counted_with_its_fragments() {
    let syn = |time_ns, from: &str, to: &str| tcp(time_ns, from, to, SYN);
    let mut capture = scan(false, 8, false, &syn, false);
    capture.records.retain(|(_, record)| record.len() != 24);
    for (report, _) in runs(&capture, &Settings::default()) {
        assert_eq!((report.tcp, report.malformed, report.failed_attempts), (0, END, 0));
        assert_eq!((report.fragments.fragments, report.fragments.whole, report.fragments.timed_out), (60, 0, 30));
    }
    // A whole header that is wrong is malformed once.
    let mut capture = scan(false, 8, false, &syn, false);
    capture
        .records
        .iter_mut()
        .filter(|(_, record)| record.len() > 24 && record[7] == 1)
        .for_each(|(_, record)| record[24] = 0x40);
    for (report, _) in runs(&capture, &Settings::default()) {
        assert_eq!((report.tcp, report.malformed, report.fragments.whole), (0, 30 + END, 30));
    }
}
