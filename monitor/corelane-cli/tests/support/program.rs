//! Running the binary, never longer than a while, how it ended, and folders for its files.

use std::ffi::OsStr;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
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

/// Waits for the end of a run. One that takes too long is killed and fails the test.
#[track_caller]
pub(crate) fn finish(mut child: Child) -> Outcome {
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let code = wait(&mut child).code();
    let text = |thread: thread::JoinHandle<Vec<u8>>| String::from_utf8(thread.join().unwrap()).expect("UTF-8");
    Outcome::new(code, text(stdout), text(stderr))
}

#[track_caller]
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    end(child).unwrap_or_else(|| panic!("still running after {:?}", limit()))
}

/// `None` if it had to be killed, because it still ran after the limit.
pub(crate) fn end(child: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child to wait for") {
            return Some(status);
        }
        if start.elapsed() > limit() {
            let _ = child.kill();
            return None;
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
    /// That of a run which did not panic.
    #[track_caller]
    pub(crate) fn new(code: Option<i32>, stdout: String, stderr: String) -> Self {
        let outcome = Self { code, stdout, stderr };
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
        outcome
    }

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

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }
}
