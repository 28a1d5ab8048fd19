//! Runs of the binary, and captures to run it on.

use corelane_net::synth::{self, Config};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

pub(crate) use crate::captures_folder::captures;
pub(crate) use crate::program::{Folder, Outcome, corelane, finish, run, wait};

/// Runs it to its end with something on its standard input, which is closed then.
#[track_caller]
pub(crate) fn run_with_stdin(command: &mut Command, input: &[u8]) -> Outcome {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    thread::scope(|scope| {
        // It may end without reading all of it.
        scope.spawn(move || drop(stdin.write_all(input)));
        finish(child)
    })
}

impl Outcome {
    #[track_caller]
    pub(crate) fn packets(&self) -> u64 {
        self.json()["packets"].as_u64().expect("a number of packets")
    }
}

/// Runs the monitor for a JSON report.
#[track_caller]
pub(crate) fn monitor(files: &[&Path], options: &[&str]) -> Outcome {
    run(corelane(["monitor", "--format", "json"]).args(options).args(files))
}

/// Ways to run that must not make a difference.
pub(crate) const WAYS: [&[&str]; 5] = [
    &[],
    &["--analyzers", "0"],
    &["--analyzers", "3"],
    &["--preload", "--analyzers", "2"],
    &["--mmap", "--analyzers", "1"],
];

/// Not through `eprintln!`, which a passing test swallows.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// A generated capture and the alerts that belong to it, as compact JSON.
pub(crate) fn generated(packets: u64) -> (Vec<u8>, String) {
    let config = Config { packets, hosts: 500, ..Config::default() };
    let mut generator = synth::Generator::new(config.clone()).expect("a valid configuration");
    while generator.next_frame().is_some() {}
    (synth::capture(config).expect("a valid configuration"), compact(&synth::truth_json(&generator.truth())))
}

/// JSON without the spaces after its separators. No string in it has any.
pub(crate) fn compact(json: &str) -> String {
    json.trim().replace(": ", ":").replace(", ", ",")
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// A pcap file by hand, little-endian, in microseconds.
pub(crate) struct Pcap(pub(crate) Vec<u8>);

impl Pcap {
    pub(crate) fn new(snaplen: u32, link: u32) -> Self {
        let words = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, snaplen, link];
        Pcap(words.into_iter().flat_map(u32::to_le_bytes).collect())
    }

    pub(crate) fn record(mut self, seconds: u32, length: u32, data: &[u8]) -> Self {
        self.0.extend([seconds, 0, length, data.len() as u32].into_iter().flat_map(u32::to_le_bytes));
        self.0.extend(data);
        self
    }
}

/// A block of a little-endian pcapng file.
pub(crate) fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = (padded as u32 + 12).to_le_bytes();
    let mut block = kind.to_le_bytes().to_vec();
    block.extend(length);
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(length);
    block
}

/// The block a pcapng file starts with.
pub(crate) fn section() -> Vec<u8> {
    let mut body = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    body.extend([1, 0, 0, 0]);
    body.extend(u64::MAX.to_le_bytes());
    block(0x0a0d_0d0a, &body)
}

/// A TCP SYN from 10.0.0.1 to a port of 10.0.0.2, as raw IPv4.
pub(crate) fn syn(port: u16) -> Vec<u8> {
    let mut frame = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40];
    frame.extend(port.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 4, 0, 0, 0, 0, 0]);
    frame
}
