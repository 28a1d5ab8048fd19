//! Running the binary, never longer than a while, and captures to run it on.

use corelane_net::synth::{self, Config};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing here takes seconds; a busy machine may make many of few.
const LIMIT: Duration = Duration::from_secs(60);

/// `CORELANE_TEST_PATIENCE` times as long where code runs slowly, as for the tests of the queues.
fn limit() -> Duration {
    let patience = std::env::var("CORELANE_TEST_PATIENCE").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    LIMIT * patience
}

/// The binary with these arguments, nothing on its standard input, all its output kept.
pub(crate) fn corelane<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corelane"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs it to its end, which it has to reach by itself and without a panic.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Outcome {
    finish(command.spawn().expect("the binary starts"))
}

/// The same with something on its standard input, which is closed then.
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

/// Waits for the end of a run. One that takes too long is killed and fails the test.
#[track_caller]
pub(crate) fn finish(mut child: Child) -> Outcome {
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let code = wait(&mut child).code();
    let text = |thread: thread::JoinHandle<Vec<u8>>| String::from_utf8(thread.join().unwrap()).expect("UTF-8");
    let outcome = Outcome { code, stdout: text(stdout), stderr: text(stderr) };
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    outcome
}

#[track_caller]
pub(crate) fn wait(child: &mut Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child to wait for") {
            return status;
        }
        if start.elapsed() > limit() {
            let _ = child.kill();
            panic!("still running after {:?}", limit());
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

impl Outcome {
    /// Ended with this code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Said nothing beside its output.
    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert_eq!(self.stderr, "", "{self:?}");
        self
    }

    /// Said one line, with these parts.
    #[track_caller]
    pub(crate) fn one_line(self, parts: &[&str]) -> Self {
        let lines: Vec<_> = self.stderr.lines().collect();
        assert!(lines.len() == 1 && lines[0].starts_with("corelane: "), "{self:?}");
        for part in parts {
            assert!(lines[0].contains(part), "{part:?} is not in {self:?}");
        }
        self
    }

    /// The JSON report, which has to be the whole output.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

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
    &["--analyzers", "3", "--queue", "mcring"],
    &["--preload", "--analyzers", "2"],
    &["--mmap", "--analyzers", "1"],
];

/// The folder of captures, or `None` after saying that the test is skipped.
pub(crate) fn captures() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("CORELANE_CAPTURES")
        .map_or_else(|| workspace.join("../shared/captures"), |folder| workspace.join(folder));
    if folder.join("expected-portscans.jsonl").is_file() {
        return Some(folder);
    }
    skipped(&format!("no captures in {}; set CORELANE_CAPTURES to test with them", folder.display()));
    None
}

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

/// A folder that is gone after the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }
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
