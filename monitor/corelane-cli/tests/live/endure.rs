//! What happens to a service: links go down, disks fill up, logs are rotated. It goes on, and says so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use corelane_net::capture::{Options, Reader};
use rustix::process::Signal;

use crate::net::{Sender, inside, ip};
use crate::support::{
    Folder, Live, Outcome, assert_same, assert_same_of, corelane, events, labelled, pair, query, query_of, replay,
    sample, sending, stats, under_load, wait_for,
};

const UP: &str = "the interface is up";
const DOWN: &str = "the interface is down";

#[track_caller]
fn wait_for_times(live: &Live, what: &str, times: usize) {
    wait_for(&format!("{what}, {times} times"), || (live.times_said(what) >= times).then_some(()));
    assert_eq!(live.times_said(what), times, "{}", live.said());
}

/// So many lines were said, `downs` of them of a link that is down; or one more, as what is deleted goes down first.
#[track_caller]
fn assert_said_once(outcome: &Outcome, lines: usize, downs: usize) {
    let (said, down) = (outcome.stderr.lines().count(), outcome.stderr.matches(DOWN).count());
    assert!((downs..=downs + 1).contains(&down) && said == lines + down - downs, "{}", outcome.stderr);
}

fn send(numbers: std::ops::Range<u32>) {
    sending(0, |sender| numbers.for_each(|number| sender.send(&query(number))));
}

#[test]
fn a_link_that_comes_and_goes_is_said_each_time_once() {
    inside("endure::a_link_that_comes_and_goes_is_said_each_time_once", || {
        let folder = Folder::new();
        let (eve, tee) = (folder.path("eve.json"), folder.path("tee.pcapng"));
        pair(0);
        let live = Live::start(0, ["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()]);
        live.wait_until_health(200);
        send(0..10);
        for round in 1..=2 {
            ip("link set b0 down");
            assert!(live.wait_until_health(503).contains("interface b0 is down"));
            wait_for_times(&live, DOWN, round);
            ip("link set b0 up");
            live.wait_until_health(200);
            wait_for_times(&live, UP, round);
        }
        live.wait_until_received(10);
        send(10..20);
        live.wait_until_received(20);
        ip("link del b0");
        live.wait_until_health(503);
        wait_for_times(&live, "the interface is gone", 1);
        assert_eq!(labelled(&live.scrape(), "capture_packets_total", "b0"), 20.0, "counts outlive the interface");
        pair(0);
        live.wait_until_health(200);
        wait_for_times(&live, "the interface is back", 1);
        send(20..30);
        live.wait_until_received(30);
        let outcome = live.stop().code(0);
        assert_eq!(outcome.json()["packets"], 30);
        assert_said_once(&outcome, 6, 2);
        let expected = replay(&[tee], &folder.path("replay.json"), &[]);
        assert_same(&events(&eve), &expected, "over all that happened");
    });
}

#[test]
fn a_run_that_cannot_open_its_interface_again_says_what_to_do() {
    inside("endure::a_run_that_cannot_open_its_interface_again_says_what_to_do", || {
        pair(0);
        let live = Live::start(0, ["--drop-all"]);
        send(0..5);
        live.wait_until_received(5);
        ip("link del b0");
        live.wait_until_said("the interface is gone");
        pair(0);
        live.wait_until_said(
            "b0: the interface is back, but --drop-all has dropped the capability to open it; restart",
        );
        assert_eq!(live.get("/healthz").0, 503);
        let outcome = live.stop().code(0);
        assert_said_once(&outcome, 2, 0);
        assert_eq!(outcome.json()["packets"], 5);
    });
}

/// A program that is stopped while its interface is away ends at once, and with exit code 0.
#[test]
fn without_its_interface_it_can_be_ended() {
    inside("endure::without_its_interface_it_can_be_ended", || {
        pair(0);
        let live = Live::start(0, []);
        send(0..5);
        live.wait_until_received(5);
        ip("link del b0");
        live.wait_until_said("the interface is gone");
        let report = live.stop().code(0).json();
        assert_eq!((&report["packets"], &report["capture"]["kernel_packets"]), (&5.into(), &5.into()));
    });
}

/// Moves the outputs away, has them opened again, and waits for that. Each list gets the place of its old file.
#[track_caller]
fn rotate(live: &Live, rotation: usize, outputs: [(&Path, &mut Vec<PathBuf>); 2]) {
    let paths = outputs.map(|(path, all)| {
        let old = path.with_file_name(format!("{}.{rotation}", path.file_name().unwrap().to_str().unwrap()));
        std::fs::rename(path, &old).unwrap();
        all.push(old);
        path
    });
    live.signal(Signal::HUP);
    wait_for("new files", || paths.iter().all(|path| path.exists()).then_some(()));
}

const ROTATIONS: usize = 100;

/// Rotates again and again under load, with rings.
fn rotations(rings: u16) {
    let folder = Folder::new();
    let (eve, tee) = (folder.path("eve.json"), folder.path("tee.pcapng"));
    pair(0);
    let count = rings.to_string();
    let outputs = ["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()];
    let live = Live::start(0, outputs.into_iter().chain(["--rings", &count]));
    let (mut eves, mut tees) = (Vec::<PathBuf>::new(), Vec::new());
    let load = |sender: &Sender, call: u32| {
        (10 * call..10 * call + 10).for_each(|number| sender.send(&query_of(1 + number % 3, number)));
        thread::sleep(Duration::from_millis(2));
    };
    let (calls, ()) = under_load(0, load, || {
        for rotation in 0..ROTATIONS {
            rotate(&live, rotation, [(&eve, &mut eves), (&tee, &mut tees)]);
        }
    });
    let sent = 10 * calls;
    live.wait_until_received(sent as usize);
    let outcome = live.stop().code(0).silent();
    assert_eq!(outcome.json()["packets"], sent, "{outcome:?}");
    eves.push(eve);
    tees.push(tee);
    let found: Vec<String> = eves.iter().flat_map(|path| events(path)).collect();
    assert!(found.len() >= sent as usize, "{} events of {sent} queries", found.len());
    for analyzers in ["0", "2"] {
        let options = ["--analyzers", analyzers, "--tunnels=off"];
        let expected = replay(&tees, &folder.path("replay.json"), &options);
        let what = format!("{rings} rings, {analyzers} analyzers");
        assert_same_of(rings, &found, &expected, &what);
    }
    // Each part is a capture of its own. One may be empty, where nothing was read between two rotations.
    let alone = |part| replay(std::slice::from_ref(part), &folder.path("replay.json"), &[]).len();
    let alone: Vec<_> = tees[40..60].iter().map(alone).collect();
    assert!(alone.iter().any(|&count| count > 0) && alone.iter().all(|&count| count < found.len()), "{alone:?}");
}

#[test]
fn a_hundred_rotations_under_load_lose_and_tear_nothing() {
    inside("endure::a_hundred_rotations_under_load_lose_and_tear_nothing", || rotations(1));
}

#[test]
fn a_hundred_rotations_of_three_rings_under_load_lose_and_tear_nothing() {
    inside("endure::a_hundred_rotations_of_three_rings_under_load_lose_and_tear_nothing", || rotations(3));
}

/// Parts without packets are captures too, and the last one says when the capture ended.
#[test]
fn rotations_on_a_silent_wire_leave_captures() {
    inside("endure::rotations_on_a_silent_wire_leave_captures", || {
        let folder = Folder::new();
        let (eve, tee) = (folder.path("eve.json"), folder.path("tee.pcapng"));
        pair(0);
        let live = Live::start(0, ["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()]);
        let (mut eves, mut tees) = (Vec::new(), Vec::new());
        for rotation in 0..4 {
            if rotation == 2 {
                send(0..10);
                // Attempts that fail by time, so that it matters when the capture ended.
                sending(0, |sender| {
                    for port in 1..=30 {
                        sender.send(&crate::support::segment(1, 2, [4000, port], 0x02));
                    }
                });
                live.wait_until_received(40);
            }
            rotate(&live, rotation, [(&eve, &mut eves), (&tee, &mut tees)]);
        }
        wait_for("an alert", || std::fs::read_to_string(&eve).unwrap().contains("\"alert\"").then_some(()));
        live.stop().code(0).silent();
        eves.push(eve);
        tees.push(tee);
        let found: Vec<String> = eves.iter().flat_map(|path| events(path)).collect();
        assert_same(&found, &replay(&tees, &folder.path("replay.json"), &[]), "all parts");
        for part in &tees {
            replay(std::slice::from_ref(part), &folder.path("replay.json"), &[]);
        }
    });
}

/// A copy that cannot be opened again at first: what is written once it can is a capture too.
#[test]
fn a_copy_whose_place_is_taken_for_a_while_goes_on_as_captures() {
    inside("endure::a_copy_whose_place_is_taken_for_a_while_goes_on_as_captures", || {
        let folder = Folder::new();
        let (eve, tee, old) = (folder.path("eve.json"), folder.path("tee.pcapng"), folder.path("old.pcapng"));
        pair(0);
        let live = Live::start(0, ["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()]);
        send(0..10);
        live.wait_until_received(10);
        std::fs::rename(&tee, &old).unwrap();
        std::fs::create_dir(&tee).unwrap();
        live.signal(Signal::HUP);
        assert!(live.wait_until_health(503).contains("output copy: cannot be opened again"));
        send(10..20);
        live.wait_until_received(20);
        std::fs::remove_dir(&tee).unwrap();
        wait_for("a new file", || tee.exists().then_some(()));
        live.wait_until_health(200);
        send(20..30);
        live.wait_until_received(30);
        let outcome = live.stop().code(0);
        let said: Vec<_> = outcome.stderr.lines().collect();
        assert!(
            said.len() == 2 && said[0].contains("tee.pcapng: cannot be written: cannot be opened again"),
            "{said:?}"
        );
        assert!(said[1].ends_with("tee.pcapng: is written again"), "{said:?}");
        let tees = [old, tee];
        assert_same(&events(&eve), &replay(&tees, &folder.path("replay.json"), &[]), "both parts");
        assert!(!replay(&tees[1..], &folder.path("replay.json"), &[]).is_empty());
    });
}

/// A disk of 1 MiB that only this process and its children see, and that is full but for 20 KiB.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(folder: &Folder, name: &str) -> Self {
        let disk = folder.path(name);
        std::fs::create_dir(&disk).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&disk);
        let output = mount.output().expect("there is `mount`");
        assert!(output.status.success(), "{output:?}");
        std::fs::write(disk.join("ballast"), vec![0; 1004 << 10]).unwrap();
        Self(disk)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn make_room(&self) {
        std::fs::remove_file(self.path("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Else its folder stays.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn full_disks_tear_nothing_and_get_all_once_there_is_room() {
    inside("endure::full_disks_tear_nothing_and_get_all_once_there_is_room", || {
        let folder = Folder::new();
        let disks = [SmallDisk::new(&folder, "one"), SmallDisk::new(&folder, "two")];
        let (eve, tee) = (disks[0].path("eve.json"), disks[1].path("tee.pcapng"));
        pair(0);
        let options = ["--stats-interval", "1s", "--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()];
        let live = Live::start(0, options);
        live.wait_until_health(200);
        send(0..500);
        live.wait_until_received(500);
        let health = wait_for("both are full", || {
            let (status, health) = live.get("/healthz");
            (status == 503 && health.contains("output events") && health.contains("output copy")).then_some(health)
        });
        assert!(health.contains("No space left on device"), "{health}");
        let samples = live.scrape();
        for output in ["events", "copy"] {
            assert!(labelled(&samples, "output_errors_total", output) > 0.0, "{samples:?}");
            assert_eq!(labelled(&samples, "output_dropped_total", output), 0.0, "{samples:?}");
        }
        // What is there is whole.
        assert!(!events(&eve).is_empty());
        send(500..600);
        live.wait_until_received(600);
        disks.iter().for_each(SmallDisk::make_room);
        live.wait_until_health(200);
        send(600..700);
        live.wait_until_received(700);
        let outcome = live.stop().code(0);
        for path in [&eve, &tee] {
            let name = path.display();
            let said: Vec<_> = outcome.stderr.lines().filter(|line| line.contains(&name.to_string())).collect();
            assert_eq!(said.len(), 2, "{outcome:?}");
            let full = format!("corelane: {name}: cannot be written: No space left on device");
            assert!(said[0].starts_with(&full) && said[0].contains("trying again each second"), "{outcome:?}");
            assert_eq!(said[1], format!("corelane: {name}: is written again"));
        }
        assert_eq!(outcome.stderr.lines().count(), 4, "{outcome:?}");
        let found = events(&eve);
        assert_same(&found, &replay(&[tee], &folder.path("replay.json"), &[]), "after the disks were full");
        assert!(found.len() >= 700);
        let errors: Vec<_> = stats(&eve).iter().map(|one| one["corelane"]["outputs"]["errors"].as_u64()).collect();
        assert!(errors.is_sorted() && errors.last().unwrap().is_some_and(|errors| errors >= 2), "{errors:?}");
        let last = stats(&eve).pop().unwrap();
        assert_eq!(last["corelane"]["outputs"]["dropped"], 0);
    });
}

/// More than what is kept for a full disk.
#[test]
fn a_copy_that_loses_records_says_so() {
    inside("endure::a_copy_that_loses_records_says_so", || {
        let folder = Folder::new();
        let disk = SmallDisk::new(&folder, "disk");
        let (eve, tee) = (folder.path("eve.json"), disk.path("tee.pcapng"));
        pair(0);
        let live = Live::start(0, ["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()]);
        let flood = |count| {
            sending(0, |sender| {
                for number in 0..count {
                    let mut frame = query(number);
                    frame.resize(60_000, 0);
                    sender.send(&frame);
                }
            });
        };
        flood(200);
        live.wait_until_received(200);
        let health = wait_for("a loss", || {
            let lost = labelled(&live.scrape(), "output_dropped_total", "copy") > 0.0;
            lost.then(|| live.get("/healthz"))
        });
        assert_eq!(health.0, 503);
        assert!(health.1.contains("output copy"), "{health:?}");
        assert_eq!(labelled(&live.scrape(), "capture_drops_total", "b0"), 0.0, "it does not hold up the capture");
        let outcome = live.stop().code(1);
        let lost = lost(&outcome);
        // The disk is full to this day, and what fits is whole: only the count of what was lost is missing.
        let copied = replay(&[tee], &folder.path("replay.json"), &[]);
        let queries = copied.iter().filter(|line| line.contains("\"event_type\":\"dns\"")).count() as u64;
        assert_eq!(queries + lost, 200);
        let last = stats(&eve).pop().unwrap();
        assert!(last["corelane"]["outputs"]["dropped"].as_u64().unwrap() > 0, "{last}");
    });
}

/// How many packets the copy lost, by what was said.
#[track_caller]
fn lost(outcome: &Outcome) -> u64 {
    let lines: Vec<_> = outcome.stderr.lines().filter(|line| line.contains("--write")).collect();
    assert!(lines.len() == 1 && lines[0].contains("No space left on device"), "{outcome:?}");
    lines[0].split_whitespace().find_map(|word| word.parse().ok()).expect("a number")
}

#[test]
fn a_report_can_be_asked_for() {
    inside("endure::a_report_can_be_asked_for", || {
        pair(0);
        let live = Live::start(0, []);
        // Before the first packet as well.
        live.signal(Signal::USR1);
        live.wait_until_said("packets");
        send(0..123);
        live.wait_until_received(123);
        wait_for("the numbers of a step", || (sample(&live.scrape(), "bytes_total") > 0.0).then_some(()));
        live.signal(Signal::USR1);
        live.wait_until_said("123");
        let outcome = live.stop().code(0);
        assert_eq!(outcome.json()["packets"], 123);
    });
}

/// Not those of when something was found.
#[test]
fn a_report_that_is_asked_for_has_the_counts_of_now() {
    inside("endure::a_report_that_is_asked_for_has_the_counts_of_now", || {
        pair(0);
        for turn in 0..5 {
            let live = Live::start(0, ["--format", "text"]);
            // In the first second too.
            sending(0, |sender| {
                for port in 1..=60 {
                    sender.send(&crate::support::segment(1, 2, [4000, port], 0x02));
                    sender.send(&crate::support::segment(2, 1, [port, 4000], 0x14));
                }
            });
            live.wait_until_received(120);
            live.signal(Signal::USR1);
            let said = wait_for("a scan", || Some(live.said()).filter(|said| said.contains("  0.0.0.1  0.0.0.2 ")));
            let row = |name: &str| said.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
            let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let scan = said.lines().find(|line| line.contains("  0.0.0.1  0.0.0.2 ")).expect("the scan");
            assert_eq!(words(scan).last().map(String::as_str), Some("60"), "{turn}: {said}");
            assert_eq!((&*words(row("packets"))[1], &*words(row("received"))[1]), ("120", "120"), "{turn}: {said}");
            live.stop().code(0);
        }
    });
}

/// `stats` come as often as was asked for, on a silent wire too.
#[test]
fn statistics_come_at_their_interval() {
    inside("endure::statistics_come_at_their_interval", || {
        let folder = Folder::new();
        let eve = folder.path("eve.json");
        pair(0);
        let live = Live::start(0, ["--eve", eve.to_str().unwrap(), "--stats-interval", "3s"]);
        send(0..3);
        let start = std::time::Instant::now();
        wait_for("two of them", || (stats(&eve).len() >= 2).then_some(()));
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
        live.stop().code(0);
        let all = stats(&eve);
        // And the last one at the end.
        assert!(all.len() <= 4, "{}", all.len());
        assert_eq!(all[0]["decoder"]["pkts"], 3);
    });
}

#[test]
fn the_end_of_a_run_without_packets_has_its_time() {
    inside("endure::the_end_of_a_run_without_packets_has_its_time", || {
        let folder = Folder::new();
        let eve = folder.path("eve.json");
        pair(0);
        Live::start(0, ["--eve", eve.to_str().unwrap()]).stop().code(0);
        let text = std::fs::read_to_string(&eve).unwrap();
        let event: serde_json::Value = serde_json::from_str(&text).expect("one event");
        assert_eq!((&event["event_type"], &event["stats"]["uptime"]), (&"stats".into(), &0.into()));
        assert!(event["timestamp"].as_str().unwrap() > "2026", "{event}");
    });
}

/// Nobody reads the events any more: the run ends, and the copy is whole.
#[test]
fn a_reader_that_goes_away_ends_the_run() {
    inside("endure::a_reader_that_goes_away_ends_the_run", || {
        let folder = Folder::new();
        let tee = folder.path("tee.pcapng");
        pair(0);
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = corelane(["monitor", "--quiet", "-i", "b0", "--eve", "-", "--write"]);
        let mut child = command.arg(&tee).stdout(writer).spawn().unwrap();
        drop(command);
        wait_for("the copy", || std::fs::metadata(&tee).is_ok_and(|facts| facts.len() > 0).then_some(()));
        drop(reader);
        let mut sent = 0;
        let status = wait_for("its end", || {
            send(sent..sent + 10);
            sent += 10;
            child.try_wait().unwrap()
        });
        assert_eq!(status.code(), Some(0));
        let mut reader = Reader::open(&tee, &Options::default()).unwrap();
        while reader.read(1000, |_| {}).unwrap() > 0 {}
        assert!(reader.end_ns().is_some(), "the end is in the copy");
    });
}
