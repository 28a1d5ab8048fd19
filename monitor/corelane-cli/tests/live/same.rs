//! Promise 1: an interface and the copy of what it saw give the same events, byte for byte, but for those that count
//! the capture itself. Of several rings the order, the numbers of packets and the names of flows are others, and they
//! open no tunnels.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use corelane_net::capture::{Options, Reader};
use rustix::process::Signal;

use crate::captures_folder;
use crate::net::inside;
use crate::support::{
    Folder, Live, assert_same, assert_same_of, events, pair, query, replay, segment, sending, stats, wait_for,
};

/// So much that nothing is evicted. Several rings have a limit each, and evict others than one does.
const ROOMY: [&str; 2] = ["--memory-limit", "8G"];
/// The lengths of frames that Linux sends: a header of Ethernet and some more, at most the longest packet.
pub(crate) const SENDABLE: std::ops::RangeInclusive<usize> = 15..=65_549;
/// What is left of a pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A frame, and the pause before it.
pub(crate) type Frame = (Duration, Vec<u8>);

/// The captures whose link type is Ethernet, with their frames that can be sent.
fn captures() -> Option<Vec<(PathBuf, Vec<Frame>)>> {
    let found = frames(&captures_folder::captures()?);
    assert!(found.len() > 20, "only {} captures of Ethernet", found.len());
    Some(found)
}

/// The captures of a folder likewise.
pub(crate) fn frames(folder: &Path) -> Vec<(PathBuf, Vec<Frame>)> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        if !path.is_file() || !path.to_str().is_some_and(|path| path.contains(".pcap")) {
            continue;
        }
        let mut reader = Reader::open(&path, &Options::default()).unwrap();
        let (mut frames, mut last, mut is_ethernet) = (Vec::new(), None, true);
        // A capture may be damaged at its end, on purpose.
        while let Ok(1..) = reader.read(1000, |record| {
            is_ethernet &= record.link.0 == 1;
            let pause = record.time_ns.saturating_sub(last.unwrap_or(record.time_ns));
            last = Some(record.time_ns);
            if SENDABLE.contains(&record.data.len()) {
                frames.push((Duration::from_nanos(pause).min(LONGEST_PAUSE), record.data.to_vec()));
            }
        }) {}
        if is_ethernet && !frames.is_empty() {
            found.push((path, frames));
        }
    }
    found.sort();
    found
}

fn pauses(frames: &[Frame]) -> Duration {
    frames.iter().map(|(pause, _)| *pause).sum()
}

/// With how many analyzers the copy of a capture with this number, from so many rings, is replayed.
type Replays<'a> = dyn Fn(usize, u16) -> Vec<usize> + Sync + 'a;

/// Sends a capture to programs on a pair, one for each of these numbers of rings. Says how many of them brought events
/// in another way than one ring does.
fn compare(lane: u16, number: usize, name: &str, frames: &[Frame], rings: &[u16], replays: &Replays<'_>) -> usize {
    let folder = Folder::new();
    let analyzers = (number % 5).to_string();
    let runs: Vec<_> = (0..)
        .zip(rings)
        .map(|(others, &rings)| {
            let (eve, tee) = (folder.path(&format!("live-{rings}.json")), folder.path(&format!("tee-{rings}.pcapng")));
            let count = rings.to_string();
            let mut arguments = vec!["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()];
            arguments.extend(["--analyzers", &analyzers, "--rings", &count]);
            if rings > 1 {
                arguments.extend(ROOMY);
            }
            if rings > 1 && pauses(frames).is_zero() {
                // Rings are memory of the kernel's. With pauses a small one is soon full of blocks of a frame each.
                arguments.extend(["--ring-size", "16M"]);
            }
            let live = Live::start_beside(others, lane, arguments);
            (rings, live, eve, tee)
        })
        .collect();
    sending(lane, |sender| {
        for (pause, frame) in frames {
            if !pause.is_zero() {
                thread::sleep(*pause);
            }
            sender.send(frame);
        }
    });
    for (_, live, ..) in &runs {
        live.wait_until_received(frames.len());
        live.signal(Signal::TERM);
    }
    let mut rearranged = 0;
    for (rings, live, eve, tee) in runs {
        let report = live.finish().code(0).silent().json();
        assert_eq!(report["packets"], frames.len(), "{name}, {rings} rings: {report}");
        assert_eq!(report["capture"]["kernel_packets"], frames.len(), "{name}, {rings} rings: {report}");
        if rings > 1 {
            let stats = stats(&eve);
            let evicted = stats.last().expect("one at the end")["corelane"]["evicted"].as_object().expect("counts");
            assert!(evicted.values().all(|count| count == 0), "{name}, {rings} rings: {evicted:?}");
        }
        let (found, mut differs) = (events(&eve), false);
        for analyzers in replays(number, rings) {
            let what = format!("{name}, {rings} rings, {analyzers} analyzers");
            let analyzers = analyzers.to_string();
            let mut options = vec!["--analyzers", &analyzers];
            if rings > 1 {
                options.push("--tunnels=off");
                options.extend(ROOMY);
            }
            let expected = replay(std::slice::from_ref(&tee), &folder.path("replay.json"), &options);
            assert_same_of(rings, &found, &expected, &what);
            differs |= found != expected;
        }
        rearranged += usize::from(differs);
    }
    rearranged
}

/// Sends captures, several at a time. The capture of a number goes to programs with these numbers of rings. Says how
/// many of the programs brought events in another way than one ring does.
fn compare_all(
    captures: &[(PathBuf, Vec<Frame>)],
    lanes: u16,
    rings: impl Fn(usize) -> Vec<u16> + Sync,
    replays: &Replays<'_>,
) -> usize {
    let (next, rearranged) = (Mutex::new(captures.iter().enumerate()), AtomicUsize::new(0));
    thread::scope(|scope| {
        for lane in 0..lanes {
            let (next, rearranged, rings) = (&next, &rearranged, &rings);
            scope.spawn(move || {
                pair(lane);
                loop {
                    let Some((number, (path, frames))) = next.lock().unwrap().next() else { return };
                    let name = path.display().to_string();
                    rearranged.fetch_add(compare(lane, number, &name, frames, &rings(number), replays), Relaxed);
                }
            });
        }
    });
    rearranged.into_inner()
}

#[test]
fn captures_sent_at_once_give_the_events_of_their_copy() {
    inside("same::captures_sent_at_once_give_the_events_of_their_copy", || {
        let Some(mut captures) = captures() else { return };
        captures.iter_mut().flat_map(|(_, frames)| frames).for_each(|(pause, _)| *pause = Duration::ZERO);
        // Every capture with one ring and with two or three. Of one ring with two numbers of analyzers besides that of
        // the live run. All five are left to the ignored test, and so are pauses that sum up to more than seconds.
        let rearranged = compare_all(&captures, 3, one_and_several, &|number, rings| match rings {
            1 => vec![(number + 2) % 5, (number + 3) % 5],
            _ => vec![(number + 1) % 5],
        });
        assert!(rearranged >= 5, "only {rearranged} captures came to more than one ring");
    });
}

/// One ring, and by turns two or three.
fn one_and_several(number: usize) -> Vec<u16> {
    vec![1, if number.is_multiple_of(2) { 2 } else { 3 }]
}

#[test]
fn captures_with_pauses_give_the_events_of_their_copy() {
    inside("same::captures_with_pauses_give_the_events_of_their_copy", || {
        let Some(mut captures) = captures() else { return };
        captures
            .retain(|(_, frames)| (Duration::from_millis(300)..Duration::from_millis(8500)).contains(&pauses(frames)));
        assert!(captures.len() >= 5, "{}", captures.len());
        let lanes = captures.len() as u16;
        compare_all(&captures, lanes, one_and_several, &|number, rings| match rings {
            1 => vec![(number + 1) % 5, (number + 4) % 5],
            _ => vec![(number + 2) % 5],
        });
    });
}

/// Takes four minutes: the pauses of each capture, up to three minutes of them, one to three rings, and all numbers of
/// analyzers.
#[test]
#[ignore = "takes four minutes"]
fn all_captures_with_all_their_pauses() {
    inside("same::all_captures_with_all_their_pauses", || {
        let Some(mut captures) = captures() else { return };
        for (_, frames) in &mut captures {
            let mut left = Duration::from_secs(180);
            for (pause, _) in frames {
                *pause = (*pause).min(left);
                left -= *pause;
            }
        }
        let lanes = captures.len() as u16;
        compare_all(&captures, lanes, |_| vec![1, 2, 3], &|_, _| (0..5).collect());
    });
}

/// Flows that end by silence do so on a silent wire as well, and once.
#[test]
fn a_silent_wire_gives_the_events_of_its_copy() {
    inside("same::a_silent_wire_gives_the_events_of_its_copy", || {
        // A connection that is reset ends 5 s later; the query goes on for longer than the run.
        let frames = [
            segment(1, 2, [4000, 80], 0x02),
            segment(2, 1, [80, 4000], 0x12),
            segment(1, 2, [4000, 80], 0x10),
            segment(2, 1, [80, 4000], 0x14),
            query(1),
        ];
        let folder = Folder::new();
        let (eve, tee) = (folder.path("live.json"), folder.path("tee.pcapng"));
        pair(0);
        let live = Live::start(0, ["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()]);
        sending(0, |sender| frames.iter().for_each(|frame| sender.send(frame)));
        wait_for("the end of the flow", || {
            let text = std::fs::read_to_string(&eve).unwrap();
            text.contains("\"event_type\":\"flow\"").then_some(())
        });
        live.stop().code(0).silent();
        let found = events(&eve);
        for analyzers in ["0", "1", "4"] {
            let expected = replay(std::slice::from_ref(&tee), &folder.path("replay.json"), &["--analyzers", analyzers]);
            assert_same(&found, &expected, analyzers);
        }
    });
}

/// Also when nothing was captured at all.
#[test]
fn an_empty_copy_can_be_read() {
    inside("same::an_empty_copy_can_be_read", || {
        let folder = Folder::new();
        let (eve, tee) = (folder.path("live.json"), folder.path("tee.pcapng"));
        pair(0);
        Live::start(0, ["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()]).stop().code(0).silent();
        assert_same(&events(&eve), &replay(&[tee], &folder.path("replay.json"), &[]), "nothing");
    });
}
