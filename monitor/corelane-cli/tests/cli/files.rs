//! Files that are larger than memory, or change while they are read.

use crate::support::{Folder, Outcome, corelane, finish, generated, run, skipped};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

/// The most memory that reading a file may take, with all that the program has beside.
const MOST: u64 = 64 << 20;

/// Runs it to its end, and says how many bytes of memory it had at most, where the system tells.
fn run_measured(mut child: Child, input: Option<&Path>) -> (Outcome, Option<u64>) {
    let status = format!("/proc/{}/status", child.id());
    let most = move || {
        let status = fs::read_to_string(&status).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
    };
    thread::scope(|scope| {
        if let (Some(path), Some(mut stdin)) = (input, child.stdin.take()) {
            scope.spawn(move || std::io::copy(&mut File::open(path).unwrap(), &mut stdin));
        }
        // It never falls, and is not told any more when the child has ended.
        let watch = scope.spawn(move || {
            let mut last = most();
            while let Some(now) = most() {
                last = Some(now);
                thread::sleep(Duration::from_millis(1));
            }
            last
        });
        (finish(child), watch.join().unwrap())
    })
}

#[track_caller]
fn check(path: &Path, packets: u64) {
    let folder = Folder::new();
    let eve = folder.path("eve.json");
    for options in [&[][..], &["--eve", eve.to_str().unwrap()]] {
        for from_pipe in [false, true] {
            let mut command = corelane(["monitor", "--format", "json", "--analyzers", "1"]);
            command.args(options).arg(if from_pipe { Path::new("-") } else { path });
            let child = command.stdin(if from_pipe { Stdio::piped() } else { Stdio::null() }).spawn().unwrap();
            let (outcome, most) = run_measured(child, from_pipe.then_some(path));
            assert_eq!(outcome.code(0).packets(), packets);
            let Some(most) = most else { return skipped("the system does not say how much memory was used") };
            assert!(most <= MOST, "{most} bytes, {options:?}, from a pipe: {from_pipe}");
            let _ = writeln!(std::io::stderr(), "{} MiB {options:?} {from_pipe}", most >> 20);
        }
    }
}

#[test]
fn a_long_file_takes_little_memory() {
    let folder = Folder::new();
    let path = folder.path("trace.pcap");
    let options = ["gen", "--quiet", "--packets", "300k", "--hosts", "500", "--snaplen", "65535"];
    run(corelane(options).arg(&path)).code(0);
    let length = fs::metadata(&path).unwrap().len();
    assert!(length > 2 * MOST, "{length}");
    check(&path, 300_000);
}

#[test]
fn the_longest_records_take_little_memory() {
    const LONGEST: u32 = 16 << 20;
    const RECORDS: u64 = 12;
    let folder = Folder::new();
    let path = folder.path("long.pcap");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    file.write_all(&words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, u32::MAX, 101])).unwrap();
    let mut frame = vec![0; LONGEST as usize];
    // No protocol is looked for in it.
    frame[..20].copy_from_slice(&[0x45, 0, 0xea, 0x60, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 3, 10, 0, 0, 4]);
    for number in 0..RECORDS as u32 {
        file.write_all(&words(&[number, 0, LONGEST, LONGEST])).unwrap();
        file.write_all(&frame).unwrap();
    }
    file.into_inner().unwrap();
    check(&path, RECORDS);
}

#[cfg(unix)]
#[test]
fn a_file_that_is_shortened_meanwhile_ends_early() {
    let folder = Folder::new();
    for analyzers in ["0", "1", "3"] {
        let trace = folder.file("trace.pcap", &generated(400_000).0);
        let mut command = corelane(["monitor", "--eve", "-", "--analyzers", analyzers]);
        let mut child = command.arg(&trace).spawn().unwrap();
        // While the events are not taken it does not get far.
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        File::options().write(true).open(&trace).unwrap().set_len(1_000_000).unwrap();
        let reader = thread::spawn(move || stdout.lines().map_while(Result::ok).count());
        finish(child).code(1).one_line(&["trace.pcap: record ", "the input ended early: ", " bytes are there"]);
        assert!(reader.join().unwrap() > 100);
    }
}
