//! What both analyses keep stays within what they may.

use crate::support::{of, of_bytes, plan, query};
use corelane_monitor::{Inspection, PARTITIONS, Progress, Settings, Source};
use corelane_net::capture::{LinkType, Memory, Options, ReadError, Reader, Record};
use corelane_net::conversation::{LEAST_BYTES, Limits};
use corelane_net::synth::Conversations;
use serde_json::Value;
use std::convert::Infallible;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

#[test]
fn conversations_and_fragments_stay_within_their_limits() {
    let capture = Conversations { seed: 9, conversations: 5000, trouble: 50, spoofed: 100_000 }.capture();
    let inspection = Inspection { conversations: Limits::new(LEAST_BYTES), ..Inspection::default() };
    let run = of_bytes(&capture, &inspection, &plan(2, 64));
    let most = (PARTITIONS * LEAST_BYTES) as u64;
    let reserved = run.findings.conversation_bytes;
    assert!(reserved <= most && reserved > most / 4, "{reserved}");
    assert!(run.findings.conversations.evicted > 0);
}

/// Gives the same frame again and again.
struct Again(Vec<u8>, usize);

impl Source for Again {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let count = self.1.min(max);
        self.1 -= count;
        for _ in 0..count {
            let (data, wire_len) = (&self.0[..], self.0.len() as u32);
            sink(Record { time_ns: 1_700_000_000_000_000_000, wire_len, link: LinkType::RAW, data });
        }
        Ok(count)
    }
}

/// Gives a query, and then long packets, some at a time. Each is its own, as from a stream.
struct Long {
    packets: usize,
    at: usize,
    /// Packets that are at hand at a time.
    burst: usize,
    given: Arc<AtomicUsize>,
}

const LONG: usize = 60_000;

impl Source for Long {
    type Error = Infallible;

    fn read(&mut self, _: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let mut long = vec![0; LONG];
        // No protocol is looked for in it.
        long[..20].copy_from_slice(&[0x45, 0, 0xea, 0x60, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 3, 10, 0, 0, 4]);
        let count = (self.packets - self.at).min(self.burst);
        let query = query(2);
        for number in self.at..self.at + count {
            long[19] = number as u8;
            let data = if number == 0 { &query } else { &long };
            let time_ns = 1_700_000_000_000_000_000 + number as u64;
            sink(Record { time_ns, wire_len: data.len() as u32, link: LinkType::RAW, data });
            self.given.fetch_add(data.len(), Relaxed);
        }
        self.at += count;
        Ok(count)
    }
}

/// While the first event is not taken, the bytes of packets that are on their way are bounded, however long these are.
#[test]
fn packets_that_wait_are_limited_in_bytes() {
    const PACKETS: usize = 1500;
    const MOST: usize = 40 << 20;
    // Of 10 packets a chunk does not get full.
    for (analyzers, burst) in [(1, 50), (3, 50), (1, 10), (3, 10)] {
        let given = Arc::new(AtomicUsize::new(0));
        let source = Long { packets: PACKETS, at: 0, burst, given: given.clone() };
        let (mut stood, mut lines) = (None, 0);
        let ran = crate::runs::inspect(
            [source],
            &Settings::default(),
            &Inspection::default(),
            &plan(analyzers, 2048),
            &Progress::new(),
            |_, never| match never {},
            |events: &[u8]| {
                lines += events.iter().filter(|&&byte| byte == b'\n').count();
                if stood.is_none() {
                    let mut now = 0;
                    while now != given.load(Relaxed) {
                        now = given.load(Relaxed);
                        sleep(Duration::from_millis(200));
                    }
                    stood = Some(now);
                }
            },
        );
        let packets = ran.expect("a plan").0.packets;
        assert!((1..MOST).contains(&stood.expect("an event")), "{analyzers} analyzers, {burst} at a time: {stood:?}");
        assert_eq!(packets, PACKETS as u64);
        assert!(given.load(Relaxed) > 2 * MOST && lines > 0, "the test is about more than that");
    }
}

/// A reader whose records' bytes are counted as they are given.
struct Counted {
    reader: Reader,
    given: Arc<AtomicUsize>,
}

impl Source for Counted {
    type Error = ReadError;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, ReadError> {
        self.reader.read(max, |record| {
            sink(record);
            self.given.fetch_add(record.data.len(), Relaxed);
        })
    }

    fn memory(&mut self) -> Option<&Memory> {
        self.reader.memory()
    }
}

/// The same where the bytes are not copied, but lie in the blocks of a file; one record is larger than a block.
#[test]
fn blocks_of_a_file_that_wait_are_limited_in_bytes() {
    const MOST: usize = 20 << 20;
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("long.pcap");
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 101, 0, 0, 0];
    let mut long = vec![0; LONG];
    long[..20].copy_from_slice(&[0x45, 0, 0xea, 0x60, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 3, 10, 0, 0, 4]);
    for number in 0..1000_u32 {
        let mut frame = if number == 0 { query(2) } else { long.clone() };
        if number == 500 {
            frame.resize(3 << 20, 0);
        }
        let length = frame.len() as u32;
        capture.extend([number / 100, 0, length, length].into_iter().flat_map(u32::to_le_bytes));
        capture.extend(frame);
    }
    fs::write(&path, &capture).expect("a file");
    let alone = of(Reader::open(&path, &Options::default()).expect("a capture"), &Inspection::default(), &plan(0, 64));
    for analyzers in [1, 3] {
        let given = Arc::new(AtomicUsize::new(0));
        let reader = Reader::open(&path, &Options::default()).expect("a capture");
        let (mut stood, mut text) = (None, Vec::new());
        let ran = crate::runs::inspect(
            [Counted { reader, given: given.clone() }],
            &Settings::default(),
            &Inspection::default(),
            &plan(analyzers, 2048),
            &Progress::new(),
            |_, error| panic!("{error}"),
            |events: &[u8]| {
                text.extend_from_slice(events);
                if stood.is_none() {
                    let mut now = 0;
                    while now != given.load(Relaxed) {
                        now = given.load(Relaxed);
                        sleep(Duration::from_millis(200));
                    }
                    stood = Some(now);
                }
            },
        );
        assert_eq!(ran.expect("a plan").0.packets, 1000);
        assert!((1..MOST).contains(&stood.expect("an event")), "{analyzers} analyzers: {stood:?}");
        assert!(given.load(Relaxed) > 2 * MOST && text == alone.text, "the same events");
    }
}

/// A response of 1 kB with 64 answers, each two pointers to a name of which each byte is written as five.
fn amplified() -> Vec<u8> {
    let mut name = Vec::new();
    for length in [63, 63, 63, 61] {
        name.push(length);
        name.resize(name.len() + usize::from(length), 1);
    }
    name.push(0);
    let mut message = vec![0, 7, 0x81, 0x80, 0, 1, 0, 64, 0, 0, 0, 0];
    message.extend(name);
    message.extend([0, 5, 0, 1]);
    for _ in 0..64 {
        message.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12]);
    }
    let length = (message.len() as u16 + 28).to_be_bytes();
    let mut frame = vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    frame.extend([0, 53, 15, 160]);
    frame.extend((message.len() as u16 + 8).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(message);
    frame
}

#[test]
fn events_that_wait_are_limited_in_bytes() {
    const LINE: usize = 8 << 10;
    let mut texts = Vec::new();
    for analyzers in [0, 1, 3] {
        let (mut text, mut most) = (Vec::new(), 0);
        let ran = crate::runs::inspect(
            [Again(amplified(), 600)],
            &Settings::default(),
            &Inspection::default(),
            &plan(analyzers, 2048),
            &Progress::new(),
            |_, never| match never {},
            |lines: &[u8]| {
                most = most.max(lines.len());
                text.extend_from_slice(lines);
            },
        );
        ran.expect("a plan");
        assert!(most <= (64 << 10) + LINE, "{analyzers} analyzers: {most} bytes at once");
        let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::len);
        assert!(
            lines.clone().max() > Some(LINE / 2) && lines.max() <= Some(LINE),
            "an event is limited, and not empty"
        );
        texts.push(text);
    }
    assert!(texts.iter().all(|text| *text == texts[0]));
    let first: Value =
        serde_json::from_slice(texts[0].split(|&byte| byte == b'\n').next().expect("a line")).expect("JSON");
    let answers = first["dns"]["answers"].as_array().expect("answers").len();
    assert!((1..64).contains(&answers), "{answers}");
}
