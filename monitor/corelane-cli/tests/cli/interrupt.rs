//! Ctrl-C.

use crate::support::{Folder, Outcome, corelane, finish, generated, skipped};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
}

/// A signal that comes before the last one was taken is lost in it. Where the system does not say, some time has to do.
fn wait_until_taken(child: &Child) {
    let is_pending = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mut masks = status.lines().filter_map(|line| line.strip_prefix("ShdPnd:"));
        masks.any(|mask| mask.trim().bytes().any(|digit| digit != b'0'))
    };
    let start = Instant::now();
    while is_pending() {
        assert!(start.elapsed() < Duration::from_secs(30), "the signal is not taken");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A file for EVE is created after the signals were taken over and before the input is opened.
fn wait_until_ready(eve: &Path) {
    let start = Instant::now();
    while !eve.exists() {
        assert!(start.elapsed() < Duration::from_secs(30), "the run does not start");
        thread::sleep(Duration::from_millis(2));
    }
}

#[track_caller]
fn reported(outcome: Outcome, code: i32) -> u64 {
    outcome.code(code).one_line(&["interrupted"]).packets()
}

#[test]
fn in_the_middle_of_a_pipe_reports_what_was_found_so_far() {
    let (capture, _) = generated(100_000);
    for (analyzers, kind, code) in [("0", "INT", 130), ("2", "INT", 130), ("1", "TERM", 143)] {
        let mut command = corelane(["monitor", "--format", "json", "--analyzers", analyzers, "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // So much fits into no pipe and no queue on the way: when it is written, most of it has been analysed.
        stdin.write_all(&capture).unwrap();
        signal(&child, kind);
        let packets = reported(finish(child), code);
        assert!((20_000..=100_000).contains(&packets), "{packets}");
        drop(stdin);
    }
}

#[test]
fn in_the_middle_of_a_record_is_not_called_damage() {
    let (capture, _) = generated(1000);
    let folder = Folder::new();
    for (number, length) in [capture.len() - 5, 2, 10].into_iter().enumerate() {
        let eve = folder.path(&format!("eve{number}"));
        let mut command = corelane(["monitor", "--format", "json", "-", "--eve"]);
        let mut child = command.arg(&eve).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&capture[..length]).unwrap();
        wait_until_ready(&eve);
        thread::sleep(Duration::from_millis(50));
        signal(&child, "INT");
        assert!(reported(finish(child), 130) < 1000);
        drop(stdin);
    }
}

#[test]
fn while_nothing_comes() {
    let folder = Folder::new();
    for (number, option) in ["--quiet", "--preload"].into_iter().enumerate() {
        let eve = folder.path(&format!("eve{number}"));
        let mut command = corelane(["monitor", "--format", "json", option, "-", "--eve"]);
        let mut child = command.arg(&eve).stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        wait_until_ready(&eve);
        signal(&child, "INT");
        assert_eq!(reported(finish(child), 130), 0);
        drop(stdin);
    }
}

#[test]
fn while_a_named_pipe_waits_for_its_writer() {
    let folder = Folder::new();
    let (fifo, eve) = (folder.path("fifo"), folder.path("eve"));
    if !Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success()) {
        return skipped("no named pipes here");
    }
    let good = folder.file("good.pcap", &generated(1000).0);
    let mut command = corelane(["monitor", "--format", "json", "--eve"]);
    let child = command.arg(&eve).args([&good, &fifo]).spawn().unwrap();
    wait_until_ready(&eve);
    thread::sleep(Duration::from_millis(50));
    signal(&child, "INT");
    assert!(reported(finish(child), 130) <= 1000);
}

#[test]
fn a_named_pipe_is_read() {
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    if !Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success()) {
        return skipped("no named pipes here");
    }
    let child = corelane(["monitor", "--format", "json"]).arg(&fifo).spawn().unwrap();
    std::fs::write(&fifo, generated(30_000).0).unwrap();
    assert_eq!(finish(child).code(0).silent().packets(), 30_000);
}

#[test]
fn the_second_one_ends_at_once() {
    // Its output is not read on, so it waits in the middle of writing.
    let mut child = corelane(["gen", "-"]).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    thread::sleep(Duration::from_millis(200));
    signal(&child, "INT");
    thread::sleep(Duration::from_millis(100));
    wait_until_taken(&child);
    signal(&child, "INT");
    finish(child).code(130);
    drop(stdout);
}

#[test]
fn while_generating_leaves_no_file() {
    let folder = Folder::new();
    let (out, truth) = (folder.path("trace.pcap"), folder.path("truth.json"));
    let mut command = corelane(["gen", "--packets", "200M"]);
    let child = command.arg(&out).arg("--truth").arg(&truth).spawn().unwrap();
    wait_until_ready(&out);
    signal(&child, "INT");
    let outcome = finish(child).code(130);
    assert!(!out.exists() && !truth.exists());
    assert_eq!(outcome.stderr.lines().count(), 3, "{outcome:?}");
    assert!(outcome.stderr.contains("trace.pcap: removed, as it was not complete"), "{outcome:?}");
}
