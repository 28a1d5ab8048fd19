//! The files of runs that follow each other, or are there at the same time.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use corelane_net::capture::{Options, Reader};
use rustix::process::Signal;

use crate::net::inside;
use crate::support::{Folder, Live, pair, query, sending, wait_for};

fn send(numbers: std::ops::Range<u32>) {
    sending(0, |sender| numbers.for_each(|number| sender.send(&query(number))));
}

/// The packets of a capture.
#[track_caller]
fn packets(path: &Path) -> usize {
    whole(path).unwrap()
}

/// The same, or why it is not a whole one.
fn whole(path: &Path) -> Result<usize, Box<dyn Error>> {
    let mut reader = Reader::open(path, &Options::default())?;
    let mut packets = 0;
    while reader.read(1000, |_| packets += 1)? > 0 {}
    Ok(packets)
}

/// The captures of a folder by name.
fn captures(folder: &Folder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().path());
    let mut captures: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "pcapng")).collect();
    captures.sort();
    captures
}

#[test]
fn each_run_has_a_copy_of_its_own_and_no_restart_empties_one() {
    inside("outputs::each_run_has_a_copy_of_its_own_and_no_restart_empties_one", || {
        let folder = Folder::new();
        let tee = folder.path("tee.pcapng");
        pair(0);
        let write = ["--write", tee.to_str().unwrap()];
        let first = Live::start(0, write);
        let second = Live::start_beside(1, 0, write);
        second.wait_until_said("tee.pcapng: is there already; the packets go to ");
        send(0..10);
        first.wait_until_received(10);
        second.wait_until_received(10);
        // They are counted before they are written.
        wait_for("the copy of the first", || whole(&tee).is_ok_and(|packets| packets == 10).then_some(()));
        first.signal(Signal::KILL);
        drop(first);
        second.stop().code(0);
        let third = Live::start(0, write);
        send(10..13);
        third.wait_until_received(3);
        third.stop().code(0);
        let all = captures(&folder);
        assert!(all.contains(&tee), "{all:?}");
        let mut counts: Vec<_> = all.iter().map(|path| packets(path)).collect();
        counts.sort_unstable();
        assert_eq!(counts, [3, 10, 10], "{all:?}");
        for path in all.iter().filter(|path| **path != tee) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let time = name.strip_prefix("tee-").expect("the name that was given");
            assert!(time.len() >= 16 && time.as_bytes()[8] == b'T' && time.contains('Z'), "{name}");
        }
        // A link to a file of an earlier run leads to no other folder.
        assert!(!tee.with_extension("pcapng.1").exists());
    });
}

/// A rotation gives a run its name again, if no other run has it.
#[test]
fn a_copy_with_a_time_in_its_name_is_rotated_to_the_name_that_was_given() {
    inside("outputs::a_copy_with_a_time_in_its_name_is_rotated_to_the_name_that_was_given", || {
        let folder = Folder::new();
        let (tee, old) = (folder.path("tee.pcapng"), folder.path("old"));
        pair(0);
        fs::write(&tee, "of an earlier run").unwrap();
        let live = Live::start(0, ["--write", tee.to_str().unwrap()]);
        send(0..4);
        live.wait_until_received(4);
        // Without a rename the run goes on where it is.
        live.signal(Signal::HUP);
        send(4..6);
        live.wait_until_received(6);
        fs::rename(&tee, &old).unwrap();
        live.signal(Signal::HUP);
        wait_for("a new file", || tee.exists().then_some(()));
        send(6..9);
        live.wait_until_received(9);
        // Another's file has the name by now.
        fs::rename(&tee, folder.path("part")).unwrap();
        fs::write(&tee, "of another run").unwrap();
        live.signal(Signal::HUP);
        wait_for("a third file", || (captures(&folder).len() == 3).then_some(()));
        send(9..10);
        live.wait_until_received(10);
        live.stop().code(0);
        assert_eq!(fs::read_to_string(&old).unwrap(), "of an earlier run");
        assert_eq!(fs::read_to_string(&tee).unwrap(), "of another run");
        let mut counts: Vec<_> = captures(&folder).iter().filter(|path| **path != tee).map(|it| packets(it)).collect();
        counts.push(packets(&folder.path("part")));
        counts.sort_unstable();
        assert_eq!(counts, [1, 3, 6]);
    });
}

#[test]
fn a_line_that_a_crash_has_torn_is_ended_before_the_next() {
    inside("outputs::a_line_that_a_crash_has_torn_is_ended_before_the_next", || {
        let folder = Folder::new();
        let torn = "{\"whole\":1}\n{\"timestamp\":\"2026-11-2";
        let (eve, timing) = (folder.file("eve.json", torn), folder.file("timing.json", torn));
        pair(0);
        let live = Live::start(0, ["--eve", eve.to_str().unwrap(), "--timing", timing.to_str().unwrap()]);
        send(0..3);
        live.wait_until_received(3);
        // So is that of a file that is found at a rotation.
        let (old, other) = (folder.path("old.json"), folder.file("other.json", torn));
        wait_for("events", || fs::read_to_string(&eve).unwrap().contains("00000002").then_some(()));
        fs::rename(&eve, &old).unwrap();
        fs::rename(other, &eve).unwrap();
        live.signal(Signal::HUP);
        send(3..6);
        live.wait_until_received(6);
        live.stop().code(0);
        for (path, least) in [(&old, 3), (&eve, 3), (&timing, 1)] {
            let text = fs::read_to_string(path).unwrap();
            let new =
                text.strip_prefix(torn).expect("what was there").strip_prefix('\n').unwrap_or_else(|| panic!("{text}"));
            assert!(new.ends_with('\n') && new.lines().count() >= least, "{text}");
            new.lines().for_each(|line| drop(serde_json::from_str::<serde_json::Value>(line).expect("JSON")));
        }
        // Nothing is added where no line is torn.
        let live = Live::start(0, ["--timing", timing.to_str().unwrap()]);
        live.stop().code(0);
        assert!(!fs::read_to_string(&timing).unwrap().contains("\n\n"));
    });
}
