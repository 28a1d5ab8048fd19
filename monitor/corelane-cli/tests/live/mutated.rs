//! A frame cannot do more than be counted, whatever it holds: frames of captures with faults put into them. The seed is
//! drawn anew in each run and said when a test fails; CORELANE_SEED=7 sends those of seed 7 again.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::captures_folder;
use crate::net::inside;
use crate::random::Random;
use crate::same::{Frame, SENDABLE, frames};
use crate::support::{Folder, Live, assert_same, events, pair, replay, sample, sending};

/// Frames of a capture that follow each other, so that conversations get somewhere.
const STRETCH: usize = 100;
/// Where the headers are: every other fault is there.
const HEADERS: usize = 64;
/// With how many bytes the sender is ahead of the analysis, at most twice: less than half of the ring.
const AHEAD: u64 = 8 << 20;
/// What a frame takes in the ring beside its bytes.
const OVERHEAD: u64 = 100;
/// The kernel drops a frame whose tag of a VLAN, or what follows it, is cut, before anybody sees it.
const SHORTEST_TAGGED: usize = 20;

/// Draws frames.
struct Faulty<'a> {
    captures: &'a [(PathBuf, Vec<Frame>)],
    random: Random,
    /// What is left of the stretch.
    stretch: std::slice::Iter<'a, Frame>,
    frame: Vec<u8>,
}

impl<'a> Faulty<'a> {
    fn new(captures: &'a [(PathBuf, Vec<Frame>)], seed: u64) -> Self {
        Self { captures, random: Random::new(seed), stretch: [].iter(), frame: Vec::new() }
    }

    /// The next frame, which can be sent.
    fn next(&mut self) -> &[u8] {
        let random = &mut self.random;
        let frame = loop {
            if let Some((_, frame)) = self.stretch.next() {
                break frame;
            }
            let frames = &self.captures[random.below(self.captures.len())].1;
            let start = random.below(frames.len());
            self.stretch = frames[start..(start + STRETCH).min(frames.len())].iter();
        };
        self.frame.clone_from(frame);
        for _ in 0..=random.below(3) {
            let frames = &self.captures[random.below(self.captures.len())].1;
            let (_, other) = &frames[random.below(frames.len())];
            spoil(&mut self.frame, other, random);
            self.frame.resize(self.frame.len().clamp(*SENDABLE.start(), *SENDABLE.end()), 0);
        }
        if matches!(self.frame[12..14], [0x81, 0x00] | [0x88, 0xa8]) && self.frame.len() < SHORTEST_TAGGED {
            self.frame.resize(SHORTEST_TAGGED, 0);
        }
        &self.frame
    }
}

/// Puts one fault into a frame. One kind of fault needs another frame.
fn spoil(frame: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let end = if random.below(2) == 0 { frame.len() } else { frame.len().min(HEADERS) };
    match random.below(8) {
        0..=2 => (0..=random.below(4)).for_each(|_| frame[random.below(end)] ^= 1 << random.below(8)),
        3 => frame.truncate(random.below(end)),
        4 => {
            let (at, bytes) = (random.below(end), 1 + random.below(16));
            frame.splice(at..at, (0..bytes).map(|_| random.below(256) as u8));
        }
        5 => {
            let at = random.below(end);
            frame.drain(at..(at + 1 + random.below(16)).min(frame.len()));
        }
        // Lengths are words at even places.
        6 => {
            let [at, from] = [0, 1].map(|_| random.below(end / 2) * 2);
            let [low, high] = (frame.len() as u16).to_be_bytes();
            let word = [[0, 0], [0, 1], [255, 255], [low, high], [frame[from], frame[from + 1]]][random.below(5)];
            (frame[from], frame[from + 1]) = (frame[at], frame[at + 1]);
            (frame[at], frame[at + 1]) = (word[0], word[1]);
        }
        _ => {
            frame.truncate(random.below(end));
            frame.extend_from_slice(&other[random.below(other.len())..]);
        }
    }
}

/// The captures, those of tunnels, QUIC and SSH too.
fn captures() -> Option<Vec<(PathBuf, Vec<Frame>)>> {
    let folder = captures_folder::captures()?;
    let folders = [folder.join("wire"), folder];
    Some(folders.iter().filter(|folder| folder.is_dir()).flat_map(|folder| frames(folder)).collect())
}

/// Sends so many frames to a program, which has to end as if they were none but good ones. Gives the number that it
/// analysed.
fn endure(captures: &[(PathBuf, Vec<Frame>)], seed: u64, count: u64) -> u64 {
    eprintln!("CORELANE_SEED={seed}");
    let begun = Instant::now();
    let folder = Folder::new();
    let (eve, tee) = (folder.path("live.json"), folder.path("tee.pcapng"));
    let options = ["--analyzers", "1", "--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()];
    let live = Live::start(0, options);
    sending(0, |sender| {
        let mut faulty = Faulty::new(captures, seed);
        let (mut sent, mut unseen) = (0, 0);
        for number in 0..count {
            let frame = faulty.next();
            sender.send(frame);
            sent += frame.len() as u64;
            unseen += frame.len() as u64 + OVERHEAD;
            if unseen > AHEAD {
                unseen = 0;
                keep_pace(&live, sent, sent / (number + 1));
            }
        }
    });
    live.wait_until_received(count as usize);
    let sending = begun.elapsed();
    let outcome = live.stop().code(0);
    let report = outcome.json();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let (analysed, dropped) = (number(&report["packets"]), number(&report["capture"]["kernel_drops"]));
    assert_eq!(report["capture"]["kernel_packets"], count, "{report}");
    assert_eq!(analysed + dropped, count, "{report}");
    if dropped == 0 {
        assert_eq!(outcome.stderr, "", "{outcome:?}");
    }
    let lines = check_lines(&eve);
    let copied = std::fs::metadata(&tee).unwrap().len();
    let expected = replay(&[tee], &folder.path("replay.json"), &["--analyzers", "2"]);
    assert_same(&events(&eve), &expected, &format!("seed {seed}"));
    eprintln!(
        "{count} frames, {analysed} analysed, {} MB, {lines} events: {sending:.1?}, with the replay {:.1?}",
        copied / 1_000_000,
        begun.elapsed()
    );
    analysed
}

/// Waits until less than half of what may be ahead is, so that frames are analysed rather than dropped.
fn keep_pace(live: &Live, sent: u64, mean: u64) {
    let start = Instant::now();
    loop {
        let samples = live.scrape();
        let [analysed, dropped] = ["bytes_total", "capture_drops_total"].map(|name| sample(&samples, name) as u64);
        if analysed + dropped * mean + AHEAD >= sent {
            return;
        }
        assert!(start.elapsed() < crate::net::PATIENCE, "the analysis stands still: {samples:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Each line of the events is an object of JSON. Gives their number.
fn check_lines(eve: &Path) -> usize {
    let text = std::fs::read_to_string(eve).expect("UTF-8");
    for line in text.lines() {
        let event = serde_json::from_str::<serde_json::Value>(line);
        assert!(event.as_ref().is_ok_and(serde_json::Value::is_object), "{event:?}: {line}");
    }
    text.lines().count()
}

/// The seed to begin with.
fn seed() -> u64 {
    match std::env::var("CORELANE_SEED") {
        Ok(seed) => seed.parse().expect("CORELANE_SEED is a whole number"),
        Err(_) => RandomState::new().hash_one(0) >> 32,
    }
}

#[test]
fn a_mutated_frame_is_no_more_than_counted() {
    inside("mutated::a_mutated_frame_is_no_more_than_counted", || {
        let Some(captures) = captures() else { return };
        pair(0);
        let analysed = endure(&captures, seed(), 100_000);
        assert!(analysed > 50_000, "only {analysed} frames were analysed");
    });
}

/// Takes two minutes. Each of ten programs gets a million, so that their copy takes some hundred megabytes at a time. A
/// round that fails comes first with its seed.
#[test]
#[ignore = "takes two minutes"]
fn ten_million_mutated_frames() {
    inside("mutated::ten_million_mutated_frames", || {
        let Some(captures) = captures() else { return };
        pair(0);
        let first = seed();
        let analysed: u64 = (0..10).map(|round| endure(&captures, first.wrapping_add(round), 1_000_000)).sum();
        assert!(analysed > 5_000_000, "only {analysed} frames were analysed");
    });
}
