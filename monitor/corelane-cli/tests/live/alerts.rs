//! A scan is told at the end of the step in which it was found, though nothing follows it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::net::inside;
use crate::support::{Folder, Live, pair, segment, sending, wait_for};

const SYN: u8 = 0x02;
const RST: u8 = 0x14;

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Scans 30 ports. Each attempt fails `timeout` after it, or at once.
fn scan(timeout: Duration, answers: bool) {
    let folder = Folder::new();
    let eve = folder.path("eve.json");
    pair(0);
    let seconds = timeout.as_secs_f64().to_string();
    let live = Live::start(0, ["--eve", eve.to_str().unwrap(), "--syn-timeout", &seconds]);
    let sent = sending(0, |sender| {
        for port in 1..=30 {
            sender.send(&segment(1, 2, [4000, port], SYN));
            if answers {
                sender.send(&segment(2, 1, [port, 4000], RST));
            }
        }
        now()
    });
    let alert = wait_for("an alert", || {
        let text = std::fs::read_to_string(&eve).unwrap();
        text.lines().find(|line| line.contains("\"event_type\":\"alert\"")).map(str::to_owned)
    });
    let told = now();
    // On a quiet machine it was there 0.2 to 0.4 s after the end of its step.
    let fails = if answers { sent } else { sent + timeout };
    let step_ends = Duration::from_secs(fails.as_secs() + 1);
    let bound = step_ends + Duration::from_secs(5);
    assert!(told < bound, "{:?} after the end of its step", told - step_ends);
    assert!(alert.contains("\"src_ip\":\"0.0.0.1\"") && alert.contains("vertical"), "{alert}");
    let late = told.saturating_sub(step_ends);
    if std::env::var_os("CORELANE_TEST_MEASURE").is_some() {
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("told {late:?} after its step\n"));
    }
    live.stop().code(0).silent();
    let text = std::fs::read_to_string(&eve).unwrap();
    let alerts = text.lines().filter(|line| line.contains("\"event_type\":\"alert\"")).count();
    // It is told, and that it has ended.
    assert_eq!(alerts, 2, "{text}");
}

#[test]
fn a_scan_without_answers_is_told_on_a_silent_wire() {
    inside("alerts::a_scan_without_answers_is_told_on_a_silent_wire", || scan(Duration::from_secs(1), false));
}

#[test]
fn a_scan_that_is_refused_is_told_on_a_silent_wire() {
    inside("alerts::a_scan_that_is_refused_is_told_on_a_silent_wire", || scan(Duration::from_secs(3), true));
}

/// A segment of an IPv4 header of 20 bytes in fragments of 8 bytes, as nmap -f sends it.
fn fragments(segment: &[u8], id: u8) -> impl Iterator<Item = Vec<u8>> {
    let (headers, payload) = segment.split_at(14 + 20);
    payload.chunks(8).enumerate().map(move |(number, piece)| {
        let mut fragment = [headers, piece].concat();
        fragment[17] = 20 + piece.len() as u8;
        fragment[19] = id;
        (fragment[20], fragment[21]) = (if piece.len() == 8 { 0x20 } else { 0 }, number as u8);
        fragment
    })
}

/// With events, where packets are captured as a whole, and without, where the kernel keeps their headers.
#[test]
fn a_scan_in_fragments_is_told() {
    inside("alerts::a_scan_in_fragments_is_told", || {
        for (number, types) in ["alert,flow", "alert"].into_iter().enumerate() {
            let folder = Folder::new();
            let eve = folder.path("eve.json");
            let number = number as u16;
            pair(number);
            let live = Live::start(number, ["--eve", eve.to_str().unwrap(), "--eve-types", types]);
            sending(number, |sender| {
                for port in 1..=30 {
                    fragments(&segment(1, 2, [4000, port], SYN), port as u8).for_each(|frame| sender.send(&frame));
                    sender.send(&segment(2, 1, [port, 4000], RST));
                }
            });
            wait_for("an alert", || {
                let text = std::fs::read_to_string(&eve).unwrap();
                text.lines().find(|line| line.contains("\"kind\":\"vertical\"")).map(str::to_owned)
            });
            let report = live.stop().code(0).silent().json();
            assert_eq!((&report["rejected"], &report["malformed"]), (&30.into(), &0.into()), "{types}: {report}");
        }
    });
}

/// For people it is told on the standard output, as it is found.
#[test]
fn a_scan_is_told_in_text_as_it_is_found() {
    inside("alerts::a_scan_is_told_in_text_as_it_is_found", || {
        pair(0);
        let folder = Folder::new();
        let eve = folder.path("eve.json");
        // Whether events are written too, and of whatever types.
        let events = ["--eve", eve.to_str().unwrap(), "--eve-types", "alert"];
        for options in [&[][..], &events[..2], &events, &["--eve", "/dev/null", "--eve-types", "stats"]] {
            let live = Live::start(0, ["--format", "text"].into_iter().chain(options.iter().copied()));
            sending(0, |sender| {
                for port in 1..=30 {
                    sender.send(&segment(1, 2, [4000, port], SYN));
                    sender.send(&segment(2, 1, [port, 4000], RST));
                }
            });
            wait_for("the scan", || live.written().contains("0.0.0.1").then_some(()));
            assert!(!live.written().contains("packets"), "no report yet: {}", live.written());
            let outcome = live.stop().code(0).silent();
            assert!(outcome.stdout.contains("Vertical scans (1)"), "{outcome:?}");
        }
        let text = std::fs::read_to_string(&eve).unwrap();
        assert_eq!(text.matches("\"event_type\":\"alert\"").count(), 4, "{text}");
    });
}
