//! Test binaries: how they are built and run, and the outcomes of their runs.

use crate::tree;
use crate::workspace::{Result, root};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A test target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Its name in rows and mutants.
    pub(crate) name: &'static str,
    package: &'static str,
    test: &'static str,
    features: &'static str,
}

/// A package, features, and test targets with these: their names, `name=test` where another name is used.
const TARGETS: [(&str, &str, &str); 5] = [
    (
        "corelane",
        "",
        "contract deadlock stream properties allocation mpmc mpmc_memory select places handoff dispatch barrier \
         faults loom loom_mpmc loom_lanes loom_handoff loom_dispatch shuttle",
    ),
    ("corelane", "async", "asynchronous asynchronous_without_membarrier loom_select loom_async"),
    ("corelane-papers", "", "fastflow loom_baselines shuttle_papers=shuttle"),
    ("corelane-pool", "", "pool=conformance loom_pool=loom shuttle_pool=shuttle"),
    ("corelane-bench", "", "coherence"),
];

impl Target {
    fn named(wanted: &str) -> Result<Self> {
        for (package, features, names) in TARGETS {
            for word in names.split(' ') {
                let (name, test) = word.split_once('=').unwrap_or((word, word));
                if name == wanted {
                    return Ok(Self { name, package, test, features });
                }
            }
        }
        Err(format!("`{wanted}` is not a test target; TARGETS in xtask/src/cargo.rs lists them"))
    }

    /// The model checker that it is for, whose name is a feature and a `cfg`. Its runs do not differ: loom explores
    /// all executions, and shuttle draws its schedules from fixed seeds.
    pub(crate) fn model(&self) -> Option<&'static str> {
        ["loom", "shuttle"].into_iter().find(|model| self.test.starts_with(model))
    }

    /// Whether a run counts cache lines, in an emulator.
    pub(crate) fn counts_lines(&self) -> bool {
        self.name == "coherence"
    }
}

/// Tests of a target, written `target prefix prefix +word -word`. A test is chosen if its name starts with one of the
/// prefixes, if there are any, and contains all of the words after a plus and none of the words after a minus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tests {
    pub(crate) target: Target,
    words: Vec<String>,
}

impl Tests {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut words = text.split_whitespace();
        let target = Target::named(words.next().unwrap_or_default())?;
        Ok(Self { target, words: words.map(str::to_owned).collect() })
    }

    /// Chooses from all names of the target's tests.
    fn choose(&self, mut names: Vec<String>) -> Result<Vec<String>> {
        let marked = |mark: char| self.words.iter().filter_map(move |word| word.strip_prefix(mark));
        let prefixes: Vec<_> = self.words.iter().filter(|word| !word.starts_with(['+', '-'])).collect();
        if let Some(prefix) = prefixes.iter().find(|prefix| !names.iter().any(|name| name.starts_with(**prefix))) {
            return Err(format!("{self}: no test starts with `{prefix}`; correct the row or the mutant"));
        }
        names.retain(|name| prefixes.is_empty() || prefixes.iter().any(|prefix| name.starts_with(*prefix)));
        names
            .retain(|name| marked('+').all(|word| name.contains(word)) && !marked('-').any(|word| name.contains(word)));
        if names.is_empty() {
            Err(format!("{self}: no test has these words; correct the row or the mutant"))
        } else {
            Ok(names)
        }
    }
}

impl std::fmt::Display for Tests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.target.name)?;
        self.words.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

/// How cargo is called: a toolchain, variables, arguments, and the command that starts the binary.
#[derive(Clone, Debug, Default)]
pub(crate) struct How {
    /// Words between `cargo` and `test`.
    pub(crate) before: &'static [&'static str],
    pub(crate) variables: Vec<(&'static str, String)>,
    pub(crate) arguments: &'static [&'static str],
    /// What starts the binary.
    pub(crate) runner: Option<PathBuf>,
}

/// The build directory of mutants for real threads.
pub(crate) const REAL_THREADS: &str = "target/mutants/tests";

impl How {
    /// With a build directory.
    pub(crate) fn at(directory: &str) -> Self {
        Self::default().with("CARGO_TARGET_DIR", root().join(directory).display())
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.variables.push((name, value.to_string()));
        self
    }

    /// For models, or for mutants on real threads. Both are hardly optimized, because they are built anew for each
    /// fault. Tests that count cache lines are built as always, and fail without an emulator. The time limit of the
    /// tests is long, because a slow test must not be taken for a hang: that would be a kill.
    pub(crate) fn mutants(target: Target) -> Self {
        let small = |how: Self| how.with("CARGO_INCREMENTAL", 1);
        match target.model() {
            Some("loom") => Self {
                arguments: &["--release", "--features", "loom"],
                ..small(Self::at("target/mutants/loom"))
                    .with("RUSTFLAGS", "--cfg corelane_loom")
                    .with("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", 16)
                    .with("CARGO_PROFILE_RELEASE_OPT_LEVEL", 1)
            },
            Some(_) => Self {
                arguments: &["--features", "shuttle"],
                ..small(Self::at("target/mutants/shuttle"))
                    .with("RUSTFLAGS", "--cfg corelane_shuttle")
                    .with("CORELANE_SCHEDULES", std::env::var("CORELANE_SCHEDULES").unwrap_or("500".to_owned()))
            },
            None if target.counts_lines() => Self::at(REAL_THREADS).with("CORELANE_EMULATOR", "required"),
            None => small(Self::at(REAL_THREADS)).with("CARGO_PROFILE_TEST_OPT_LEVEL", 0),
        }
        .with("CORELANE_TEST_PATIENCE", 5)
    }

    fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        // These variables come from the cargo that started this program, for another toolchain and another crate.
        for (name, _) in std::env::vars() {
            if name.starts_with("CARGO_PKG_") || ["CARGO", "CARGO_MANIFEST_DIR", "RUSTUP_TOOLCHAIN"].contains(&&*name) {
                command.env_remove(name);
            }
        }
        command.current_dir(directory).envs(self.variables.iter().cloned());
        command
    }
}

/// A test binary.
pub(crate) struct Binary {
    /// The words that start the binary.
    words: Vec<OsString>,
    directory: PathBuf,
}

/// Builds a target in a tree. An error has the compiler's messages.
pub(crate) fn build(tree: &Path, target: Target, how: &How) -> Result<Binary> {
    let mut words = [how.before, &["test", "-p", target.package, "--test", target.test], how.arguments].concat();
    if !target.features.is_empty() {
        words.extend(["--features", target.features]);
    }
    let mut command = how.command("cargo", tree);
    let output = command.args(&words).args(["--no-run", "--message-format=json"]).output();
    let output = output.map_err(|error| format!("cargo cannot be started: {error}"))?;
    let mut errors = String::new();
    let mut found = None;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        if message["message"]["level"] == "error" {
            errors += message["message"]["rendered"].as_str().unwrap_or_default();
        }
        if message["target"]["name"] == target.test && message["profile"]["test"] == true {
            found =
                message["executable"].as_str().zip(message["manifest_path"].as_str()).map(|(executable, manifest)| {
                    (OsString::from(executable), Path::new(manifest).parent().expect("a package's place").to_owned())
                });
        }
    }
    match found {
        Some((executable, directory)) if output.status.success() => {
            let words = if how.before.contains(&"miri") {
                ["cargo"].into_iter().chain(words).chain(["--"]).map(OsString::from).collect()
            } else {
                how.runner.iter().map(OsString::from).chain([executable]).collect()
            };
            Ok(Binary { words, directory })
        }
        _ => Err(format!("{} cannot be built: {errors}{}", target.name, String::from_utf8_lossy(&output.stderr))),
    }
}

/// How a run of a test binary ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Passed,
    /// The first test that failed.
    Failed(String),
    /// The process ended without a report: by a signal, or with an exit code.
    Died(String),
    TimedOut,
}

/// The outcome of a run of a test binary.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) passed: u64,
    /// The sums of the numbers that the tests report, by their units.
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) time: Duration,
    /// The end of the run's output.
    pub(crate) output: String,
}

impl Binary {
    pub(crate) fn command(&self, how: &How) -> Command {
        let mut command = how.command(&self.words[0], &self.directory);
        command.args(&self.words[1..]).env("CARGO_MANIFEST_DIR", &self.directory).stdin(Stdio::null());
        command
    }

    /// The names of the chosen tests.
    pub(crate) fn names(&self, how: &How, tests: &Tests) -> Result<Vec<String>> {
        let list = tree::output(self.command(how).args(["--list", "--format=terse"]))?;
        tests.choose(list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }
}

/// Runs tests of a binary, and stops at the first failure.
pub(crate) fn run(binary: &Binary, how: &How, tests: &Tests, limit: Duration) -> Result<Outcome> {
    run_names(binary, how, &binary.names(how, tests)?, limit)
}

/// Like [`run`], for tests given by their names.
pub(crate) fn run_names(binary: &Binary, how: &How, names: &[String], limit: Duration) -> Result<Outcome> {
    let mut command = binary.command(how);
    watch(command.args(names).args(["--exact", "--show-output"]), limit)
}

fn watch(command: &mut Command, limit: Duration) -> Result<Outcome> {
    let start = Instant::now();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("{command:?} cannot be started: {error}"))?;
    let stdout = child.stdout.take().expect("it is piped");
    let mut stderr = child.stderr.take().expect("it is piped");
    let complaints = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout).split(b'\n').map_while(std::result::Result::ok);
        while lines.next().is_some_and(|line| sender.send(String::from_utf8_lossy(&line).into_owned()).is_ok()) {}
    });
    let (counts, time) = (BTreeMap::new(), Duration::ZERO);
    let mut outcome = Outcome { end: End::Passed, passed: 0, counts, time, output: String::new() };
    while outcome.end == End::Passed {
        match lines.recv_timeout(limit.saturating_sub(start.elapsed())) {
            Ok(line) => {
                read_line(&line, &mut outcome);
                outcome.output += &(line + "\n");
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => outcome.end = End::TimedOut,
        }
    }
    if outcome.end != End::Passed {
        kill(&mut child);
    }
    let status = child.wait().map_err(|error| format!("a test binary cannot be waited for: {error}"))?;
    outcome.time = start.elapsed();
    let complaints = complaints.join().unwrap_or_default();
    if outcome.end == End::Passed && !status.success() {
        // Miri ends a program at its first error. The last line then begins with the name of the test.
        let last = outcome.output.lines().last().unwrap_or_default();
        let test = last.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... "));
        let error = complaints.lines().find_map(|line| line.strip_prefix("error: "));
        outcome.end = End::Died(match test {
            Some(test) => format!("{test}: {}", error.unwrap_or(&status.to_string())),
            None => status.to_string(),
        });
    }
    outcome.output += &complaints;
    Ok(outcome)
}

/// Ends a process and all processes below it, because the runs that cargo started would outlive cargo.
fn kill(child: &mut Child) {
    let mut below = vec![child.id().to_string()];
    let mut at = 0;
    while let Some(process) = below.get(at) {
        let threads = entries(&Path::new("/proc").join(process).join("task"));
        let children = threads.iter().filter_map(|thread| fs::read_to_string(thread.join("children")).ok());
        let children = children.collect::<String>();
        below.extend(children.split_whitespace().map(str::to_owned));
        at += 1;
    }
    let _ = child.kill();
    let _ = Command::new("kill").arg("-KILL").args(&below[1..]).stderr(Stdio::null()).status();
}

/// The entries of a directory in their order, if it exists.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// Reads a line of a test binary's output. Loom's models print `name (barrier, preemptions): 12 executions in 1.2s`,
/// others `40 histories judged`.
fn read_line(line: &str, outcome: &mut Outcome) {
    if let Some(test) = line.strip_prefix("test ") {
        if let Some(name) = test.strip_suffix(" ... FAILED") {
            outcome.end = End::Failed(name.trim_end_matches(" - should panic").to_owned());
        } else if test.ends_with(" ... ok") {
            outcome.passed += 1;
        }
        return;
    }
    for unit in ["executions in", "schedules in", "histories judged", "sequences judged"] {
        if let Some((front, _)) = line.split_once(&format!(" {unit}"))
            && let Some(count) = front.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok())
        {
            let unit = unit.split(' ').next().expect("a word");
            *outcome.counts.entry(unit.to_owned()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> Outcome {
        watch(Command::new("sh").args(["-c", script]), limit).unwrap()
    }

    #[test]
    fn tests_are_named_by_target_and_prefixes() {
        let tests = Tests::parse("loom lane:: lamport:: -slow").unwrap();
        assert_eq!(tests.target.model(), Some("loom"));
        assert_eq!(tests.to_string(), "loom lane:: lamport:: -slow");
        let names = ["lane::a", "lane::slow", "linked::a", "lamport::a"].map(str::to_owned).to_vec();
        assert_eq!(tests.choose(names.clone()).unwrap(), ["lane::a", "lamport::a"]);
        let with = Tests::parse("loom +::a -linked").unwrap();
        assert_eq!(with.choose(names.clone()).unwrap(), ["lane::a", "lamport::a"]);
        assert!(Tests::parse("loom stream::").unwrap().choose(names.clone()).is_err());
        assert!(Tests::parse("loom lane:: +::b").unwrap().choose(names.clone()).is_err());
        assert!(Tests::parse("loom lane:: -a -slow").unwrap().choose(names).is_err());
        assert!(Tests::parse("looms lane::").is_err());
    }

    #[test]
    fn tests_on_real_threads_have_time() {
        let target = |tests| Tests::parse(tests).unwrap().target;
        for real in [target("contract lane::"), target("coherence")] {
            assert!(How::mutants(real).variables.contains(&("CORELANE_TEST_PATIENCE", "5".to_owned())));
            assert_eq!(real.model(), None);
        }
        assert!(target("loom").model().is_some() && target("shuttle_pool").model().is_some());
    }

    #[test]
    fn what_passed_is_counted() {
        let text = "test a ... ok\ntest b - should panic ... ok\ntest c ... ignored\n\
            a (Fences, 3): 12 executions in 1.2s\nb (Nothing, 1): 30 executions in 1.2s\n\
            40 histories judged\n2 sequences judged\na (random, PCT of depth 3): 40 schedules in 1.2ms\n";
        let outcome = sh(&format!("printf '%s' '{text}'"), Duration::from_secs(60));
        assert_eq!(outcome.end, End::Passed);
        let counts: Vec<_> = outcome.counts.iter().map(|(unit, count)| (unit.as_str(), *count)).collect();
        assert_eq!(outcome.passed, 2);
        assert_eq!(counts, [("executions", 42), ("histories", 40), ("schedules", 40), ("sequences", 2)]);
    }

    #[test]
    fn the_first_failure_ends_a_run() {
        let outcome = sh("echo 'test a::b ... FAILED'; exec sleep 60", Duration::from_secs(60));
        assert_eq!(outcome.end, End::Failed("a::b".into()));
        assert!(outcome.time < Duration::from_secs(30));
    }

    #[test]
    fn a_run_that_hangs_leaves_no_process_behind() {
        // This shell waits for its child, as cargo does. The pipe stays open while that child runs.
        let start = Instant::now();
        assert_eq!(sh("sh -c 'sleep 60; true'; true", Duration::from_millis(500)).end, End::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_ends_an_interpreted_program_is_named_with_its_test() {
        let end =
            sh("echo 'error: UB: a race' >&2; printf 'test a ... ok\\ntest b ... '; exit 1", Duration::from_secs(60))
                .end;
        assert_eq!(end, End::Died("b: UB: a race".into()));
    }

    #[test]
    fn a_run_that_hangs_or_dies_has_not_passed() {
        assert_eq!(sh("exec sleep 60", Duration::from_millis(10)).end, End::TimedOut);
        assert!(matches!(sh("echo 'test a ... ok'; kill -9 $$", Duration::from_secs(60)).end, End::Died(_)));
        assert!(matches!(sh("exit 3", Duration::from_secs(60)).end, End::Died(_)));
    }
}
