//! The same bytes however the work is spread, evictions included; and the scan detector's report.

use crate::captures_folder::captures;
use crate::runs::{inspect, run};
use crate::support::{Run, of, of_bytes, plan, query};
use corelane_monitor::{Inspection, Plan, Progress, Settings, Source};
use corelane_net::capture::{LinkType, Options, Reader, Record};
use corelane_net::conversation::{LEAST_BYTES, Limits};
use corelane_net::defrag;
use corelane_net::synth::Conversations;
use std::convert::Infallible;
use std::fs;
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Some numbers of stages with some capacities.
fn plans() -> Vec<Plan> {
    [(1, 2), (2, 64), (3, 2048), (4, 3), (16, 2), (1, 2048), (2, 3), (4, 64), (3, 2)].map(|(n, c)| plan(n, c)).into()
}

fn scarce() -> Inspection {
    Inspection {
        conversations: Limits::new(LEAST_BYTES),
        fragments: defrag::Limits { datagrams: 2, bytes: 16 << 10, ..defrag::Limits::default() },
        ..Inspection::default()
    }
}

fn same(name: &str, plan: &Plan, run: &Run, alone: &Run) {
    assert!(run.text == alone.text, "{name}, {plan:?}: other events: {}", first_difference(&run.text, &alone.text));
    assert_eq!(run.findings, alone.findings, "{name}, {plan:?}");
    assert_eq!(run.report(), alone.report(), "{name}, {plan:?}");
}

fn first_difference(a: &[u8], b: &[u8]) -> String {
    let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
    let (a, b) = (lines(a), lines(b));
    let at = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    format!("{} and {} lines, line {at}: {:?} and {:?}", a.len(), b.len(), a.get(at), b.get(at))
}

fn check(name: &str, capture: &[u8], inspection: &Inspection, plans: &[Plan]) -> Run {
    let single = Plan { analyzers: 0, ..Plan::default() };
    let alone = of_bytes(capture, inspection, &single);
    for plan in plans {
        same(name, plan, &of_bytes(capture, inspection, plan), &alone);
    }
    // The scan detector does not notice, but has its own limits of fragments: why a datagram was given up may differ.
    let reader = Reader::from_bytes(capture.to_vec()).expect("a capture");
    let mut report = run([reader], &Settings::default(), &plan(2, 64), &Progress::new(), |_, _| {}).expect("a plan");
    report.dispatcher_packets = 0;
    report.analyzer_packets.clear();
    assert_eq!(alone.report().fragments.whole, report.fragments.whole, "{name}");
    report.fragments = alone.report().fragments;
    assert_eq!(alone.report(), report, "{name}");
    alone
}

#[test]
fn made_up_conversations() {
    let plans = plans();
    for (seed, trouble) in [(1, 0), (2, 20), (3, 100)] {
        let traffic = Conversations { seed, conversations: 1500, trouble, spoofed: 500 };
        // Over the seeds every plan.
        let some: Vec<_> = plans.iter().skip(seed as usize - 1).step_by(3).cloned().collect();
        let run = check("generated", &traffic.capture(), &Inspection::default(), &some);
        let seen = run.findings.seen;
        assert!(seen.http_requests > 1000 && seen.client_hellos > 200 && seen.dns_queries[0] > 500, "{seen:?}");
        assert_eq!(run.findings.conversations.evicted, 0);
        assert!(trouble == 0 || run.findings.conversations.gaps > 0);
        assert!(run.findings.fragments.whole > 0);
    }
}

#[test]
fn evictions_are_the_same_everywhere() {
    let traffic = Conversations { seed: 4, conversations: 6000, trouble: 10, spoofed: 70_000 };
    let plans: Vec<_> = plans().into_iter().step_by(2).collect();
    let run = check("scarce", &traffic.capture(), &scarce(), &plans);
    assert!(run.findings.conversations.evicted > 1000, "{:?}", run.findings.conversations);
    let ended = run.events().filter(|event| event["flow"]["reason"] == "forced").count() as u64;
    assert_eq!(ended, run.findings.conversations.evicted);
}

#[test]
fn real_captures() {
    let Some(folder) = captures() else { return };
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let plans = plans();
    let mut captures = 0;
    for (number, path) in files.iter().filter(|path| path.to_string_lossy().contains(".pcap")).enumerate() {
        let bytes = fs::read(path).expect("a file");
        // Some plans for each, so that all have their turn.
        let count = if bytes.len() < 100 << 10 { 5 } else { 2 };
        let some: Vec<_> = plans.iter().cycle().skip(number * 5).take(count).cloned().collect();
        check(&path.to_string_lossy(), &bytes, &Inspection::default(), &some);
        check(&path.to_string_lossy(), &bytes, &scarce(), &some[..1]);
        captures += 1;
    }
    assert!(captures >= 30, "{captures}");
}

/// Gives a few bytes at a time, as a pipe may.
struct Trickle(io::Cursor<Vec<u8>>, usize);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = self.1 * 7 % 10_007 + 1;
        let some = buffer.len().min(self.1);
        self.0.read(&mut buffer[..some])
    }
}

#[test]
fn bytes_that_come_bit_by_bit() {
    let capture = Conversations { seed: 5, conversations: 3000, trouble: 10, spoofed: 0 }.capture();
    assert!(capture.len() > 4 << 20, "several chunks: {}", capture.len());
    let alone = of_bytes(&capture, &Inspection::default(), &Plan { analyzers: 0, ..Plan::default() });
    for analyzers in 0..4 {
        let plan = plan(analyzers, 64);
        for bit_by_bit in [true, false] {
            let cursor = io::Cursor::new(capture.clone());
            let reader = if bit_by_bit {
                Reader::from_read(Trickle(cursor, 1), None, &Options::default())
            } else {
                Reader::from_read(cursor, None, &Options::default())
            };
            same("a stream", &plan, &of(reader.expect("a capture"), &Inspection::default(), &plan), &alone);
        }
    }
}

/// Gives some packets, and no more until what they brought about is out.
struct Live {
    frames: Vec<Vec<u8>>,
    out: mpsc::Receiver<usize>,
    expected: usize,
    seen: Arc<AtomicUsize>,
}

impl Source for Live {
    type Error = Infallible;

    fn read(&mut self, _: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        for (number, data) in (1_u64..).zip(&self.frames) {
            let wire_len = data.len() as u32;
            sink(Record { time_ns: 1_700_000_000_000_000_000 + number, wire_len, link: LinkType::RAW, data });
        }
        let count = std::mem::take(&mut self.frames).len();
        if count == 0 {
            // Only a run that has gone wrong waits for so long.
            while self.seen.load(Ordering::Relaxed) < self.expected
                && let Ok(lines) = self.out.recv_timeout(Duration::from_secs(20))
            {
                self.seen.fetch_add(lines, Ordering::Relaxed);
            }
        }
        Ok(count)
    }
}

#[test]
fn what_was_found_is_out_before_more_comes() {
    // With one pair of hosts all stages but one are quiet.
    for (hosts, analyzers) in [(20, 0), (20, 1), (20, 3), (1, 2), (3, 16)] {
        let (lines, out) = mpsc::channel();
        let seen = Arc::new(AtomicUsize::new(0));
        let expected = 20;
        let frames = (0..expected as u8).map(|number| query(2 + number % hosts)).collect();
        let source = Live { frames, out, expected, seen: seen.clone() };
        let ran = inspect(
            [source],
            &Settings::default(),
            &Inspection::default(),
            &plan(analyzers, 64),
            &Progress::new(),
            |_, never| match never {},
            move |bytes: &[u8]| {
                // What comes at the end is not waited for.
                let _ = lines.send(bytes.iter().filter(|&&byte| byte == b'\n').count());
            },
        );
        ran.expect("a plan");
        assert_eq!(seen.load(Ordering::Relaxed), expected, "{hosts} hosts, {analyzers} analyzers");
    }
}

#[test]
fn fragments_between_mapped_addresses_come_together() {
    let mut udp = vec![156, 64, 0, 53, 0, 37, 0, 0];
    udp.extend(b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01");
    let mapped = |host: u8| [&[0; 10][..], &[0xff, 0xff, 10, 0, 0, host]].concat();
    let fragment = |host: u8, offset: u8, more: u8, payload: &[u8]| {
        let mut frame = vec![0x60, 0, 0, 0, 0, 8 + payload.len() as u8, 44, 64];
        frame.extend([mapped(1), mapped(host)].concat());
        frame.extend([17, 0, 0, offset | more, 0, 0, 0, host]);
        frame.extend(payload);
        frame
    };
    let hosts = 2..22;
    let frames: Vec<_> =
        hosts.flat_map(|host| [fragment(host, 0, 1, &udp[..16]), fragment(host, 16, 0, &udp[16..])]).collect();
    for analyzers in [0, 2] {
        let (_, out) = mpsc::channel();
        let source = Live { frames: frames.clone(), out, expected: 0, seen: Arc::default() };
        let run = of(source, &Inspection::default(), &plan(analyzers, 64));
        assert_eq!(run.findings.fragments.whole, 20);
        assert_eq!(run.events().filter(|event| event["event_type"] == "dns").count(), 20);
    }
}

#[test]
fn several_captures_are_one() {
    let capture = Conversations { seed: 6, conversations: 300, trouble: 0, spoofed: 0 }.capture();
    // A pcap file has a header of 24 bytes; cut between two records, as good as anywhere.
    let mut at = 24;
    while at < capture.len() / 2 {
        at += 16 + u32::from_le_bytes(capture[at + 8..at + 12].try_into().expect("4 bytes")) as usize;
    }
    let second = [&capture[..24], &capture[at..]].concat();
    let whole = of_bytes(&capture, &Inspection::default(), &plan(2, 64));
    for analyzers in [0, 1, 3] {
        let mut text = Vec::new();
        let readers = [&capture[..at], &second].map(|bytes| Reader::from_bytes(bytes.to_vec()).expect("a capture"));
        let plan = plan(analyzers, 64);
        let out = |lines: &[u8]| text.extend_from_slice(lines);
        let ran = inspect(
            readers,
            &Settings::default(),
            &Inspection::default(),
            &plan,
            &Progress::new(),
            |_, error| panic!("{error}"),
            out,
        );
        assert_eq!(ran.expect("a plan").1, whole.findings);
        assert!(text == whole.text);
    }
}
