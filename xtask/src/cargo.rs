//! Test binaries: how they are built and run, and the outcomes of their runs.

use crate::workspace::Result;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A test target of a crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    package: &'static str,
    test: &'static str,
    features: &'static str,
    /// The target holds loom's models, and needs `--cfg loom`.
    pub(crate) is_loom: bool,
    /// The target holds shuttle's scenarios, and needs `--cfg shuttle`.
    pub(crate) is_shuttle: bool,
}

const fn target(name: &'static str, package: &'static str, test: &'static str, is_loom: bool) -> Target {
    Target { name, package, test, features: "", is_loom, is_shuttle: false }
}

const fn shuttle(name: &'static str, package: &'static str) -> Target {
    Target { name, package, test: "shuttle", features: "", is_loom: false, is_shuttle: true }
}

/// The test targets, under the names that rows and mutants use.
const TARGETS: &[Target] = &[
    target("contract", "corelane", "contract", false),
    target("deadlock", "corelane", "deadlock", false),
    target("stream", "corelane", "stream", false),
    target("fastflow", "corelane-papers", "fastflow", false),
    target("properties", "corelane", "properties", false),
    target("allocation", "corelane", "allocation", false),
    target("mpmc", "corelane", "mpmc", false),
    target("lanes", "corelane", "lanes", false),
    target("mpmc_memory", "corelane", "mpmc_memory", false),
    target("select", "corelane", "select", false),
    target("places", "corelane", "places", false),
    target("handoff", "corelane", "handoff", false),
    target("dispatch", "corelane", "dispatch", false),
    Target { features: "async", ..target("asynchronous", "corelane", "asynchronous", false) },
    Target {
        features: "async",
        ..target("asynchronous_without_membarrier", "corelane", "asynchronous_without_membarrier", false)
    },
    target("pool", "corelane-pool", "conformance", false),
    target("barrier", "corelane", "barrier", false),
    target("faults", "corelane", "faults", false),
    target("coherence", "corelane-bench", "coherence", false),
    target("loom", "corelane", "loom", true),
    target("loom_mpmc", "corelane", "loom_mpmc", true),
    target("loom_lanes", "corelane", "loom_lanes", true),
    Target { features: "async", ..target("loom_select", "corelane", "loom_select", true) },
    target("loom_handoff", "corelane", "loom_handoff", true),
    target("loom_dispatch", "corelane", "loom_dispatch", true),
    Target { features: "async", ..target("loom_async", "corelane", "loom_async", true) },
    target("loom_baselines", "corelane-papers", "loom_baselines", true),
    target("loom_pool", "corelane-pool", "loom", true),
    shuttle("shuttle", "corelane"),
    shuttle("shuttle_papers", "corelane-papers"),
    shuttle("shuttle_pool", "corelane-pool"),
];

impl Target {
    /// Whether a run may differ from the last one. Loom's runs do not differ. Shuttle's do not, either, because it
    /// draws its schedules from fixed seeds.
    pub(crate) fn is_on_real_threads(&self) -> bool {
        !self.is_loom && !self.is_shuttle
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
        let name = words.next().unwrap_or_default();
        let target = TARGETS.iter().find(|target| target.name == name).copied();
        let target =
            target.ok_or_else(|| format!("`{name}` is not a test target; TARGETS in xtask/src/cargo.rs lists them"))?;
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
    pub(crate) toolchain: Option<&'static str>,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) arguments: Vec<String>,
    /// Words in front of the binary.
    pub(crate) runner: Vec<String>,
    /// Words after the binary.
    pub(crate) options: Vec<String>,
    /// Miri builds and interprets the binary.
    pub(crate) is_interpreted: bool,
}

/// The build directory of mutants for real threads.
pub(crate) const REAL_THREADS: &str = "target/mutants/tests";

impl How {
    /// For the everyday tests.
    pub(crate) fn plain(tree: &Path) -> Self {
        Self::default().with("CARGO_TARGET_DIR", tree.join("target").display())
    }

    /// For loom's models. They are optimized less than in a release, because they are built anew for each fault.
    pub(crate) fn loom(root: &Path) -> Self {
        let mut how = Self::default()
            .with("CARGO_TARGET_DIR", root.join("target/mutants/loom").display())
            .with("RUSTFLAGS", "--cfg loom")
            .with("CARGO_PROFILE_RELEASE_LTO", "off")
            .with("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", 16)
            .with("CARGO_INCREMENTAL", 1)
            .with("CARGO_PROFILE_RELEASE_OPT_LEVEL", 1)
            .with("CARGO_PROFILE_RELEASE_DEBUG", 0);
        how.arguments.push("--release".to_owned());
        how
    }

    /// For mutants on real threads. They are hardly optimized, because they are built anew for each fault; tests that
    /// count cache lines are built as always. The time limit is long, because a slow test must not be taken for a hang:
    /// that would be a kill.
    pub(crate) fn real_threads(root: &Path, counts_lines: bool) -> Self {
        let how = Self::default()
            .with("CARGO_TARGET_DIR", root.join(REAL_THREADS).display())
            .with("CORELANE_TEST_PATIENCE", 5);
        if counts_lines {
            // Without an emulator, counting is an error here.
            return how.with("CORELANE_EMULATOR", "required");
        }
        how.with("CARGO_PROFILE_TEST_OPT_LEVEL", 0).with("CARGO_PROFILE_TEST_DEBUG", 0).with("CARGO_INCREMENTAL", 1)
    }

    /// For shuttle's scenarios, with `CORELANE_SCHEDULES` schedules of either scheduler.
    pub(crate) fn shuttle(root: &Path) -> Self {
        let schedules = std::env::var("CORELANE_SCHEDULES").unwrap_or_else(|_| "500".to_owned());
        Self::default()
            .with("CARGO_TARGET_DIR", root.join("target/mutants/shuttle").display())
            .with("RUSTFLAGS", "--cfg shuttle")
            .with("CARGO_INCREMENTAL", 1)
            .with("CARGO_PROFILE_TEST_OPT_LEVEL", 1)
            .with("CARGO_PROFILE_TEST_DEBUG", 0)
            .with("CORELANE_SCHEDULES", schedules)
    }

    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.variables.push((name.to_owned(), value.to_string()));
        self
    }

    fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        // These variables come from the cargo that started this program, for another toolchain and another crate.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || matches!(&*name, "CARGO" | "CARGO_MANIFEST_DIR" | "RUSTUP_TOOLCHAIN") {
                command.env_remove(&*name);
            }
        }
        command.current_dir(directory).envs(self.variables.iter().cloned());
        command
    }

    /// The words with which cargo builds a target's tests and runs them.
    fn words(&self, target: Target) -> Vec<String> {
        let mut words = vec!["cargo".to_owned()];
        words.extend(self.toolchain.map(|toolchain| format!("+{toolchain}")));
        words.extend(self.is_interpreted.then(|| "miri".to_owned()));
        words.extend(["test", "-p", target.package, "--test", target.test].map(str::to_owned));
        let model = [(target.is_loom, "loom"), (target.is_shuttle, "shuttle")];
        let model = model.into_iter().filter_map(|(is_it, name)| is_it.then_some(name));
        for feature in model.chain([target.features]).filter(|feature| !feature.is_empty()) {
            words.extend(["--features", feature].map(str::to_owned));
        }
        words.extend(self.arguments.iter().cloned());
        words
    }
}

/// A test binary.
pub(crate) struct Binary {
    /// The words that start the binary.
    words: Vec<OsString>,
    directory: PathBuf,
}

/// Why there is no binary.
pub(crate) enum NotBuilt {
    /// The compiler's messages.
    Refused(String),
    Broken(String),
}

/// Builds a target in a tree.
pub(crate) fn build(tree: &Path, target: Target, how: &How) -> std::result::Result<Binary, NotBuilt> {
    let words = how.words(target);
    let mut command = how.command(&words[0], tree);
    command.args(&words[1..]).args(["--no-run", "--message-format=json"]);
    let broken = |error: &dyn std::fmt::Display| NotBuilt::Broken(format!("cargo cannot be started: {error}"));
    let output = command.output().map_err(|error| broken(&error))?;
    let mut messages = String::new();
    let mut path = None;
    for line in output.stdout.lines().map_while(|line| line.ok()) {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        if message["message"]["level"] == "error" {
            messages += message["message"]["rendered"].as_str().unwrap_or_default();
        }
        if message["target"]["name"] == target.test && message["profile"]["test"] == true {
            path = message["executable"].as_str().map(PathBuf::from);
        }
    }
    match path {
        Some(path) if output.status.success() => {
            let words = if how.is_interpreted {
                words.into_iter().chain(["--".to_owned()]).map(Into::into).collect()
            } else {
                how.runner.iter().map(Into::into).chain([path.into()]).collect()
            };
            Ok(Binary { words, directory: tree.join("crates").join(target.package) })
        }
        _ if !messages.is_empty() => Err(NotBuilt::Refused(messages)),
        _ => Err(NotBuilt::Broken(String::from_utf8_lossy(&output.stderr).into_owned())),
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
    pub(crate) passed: usize,
    /// How many executions loom explored.
    pub(crate) executions: u64,
    /// The most and the fewest preemptions that loom's models were allowed.
    pub(crate) preemptions: Option<(u64, u64)>,
    /// How many schedules shuttle ran.
    pub(crate) schedules: u64,
    /// How many histories, or sequences of calls, the tests report that they judged.
    pub(crate) judged: Option<u64>,
    pub(crate) time: Duration,
    /// The end of the run's output.
    pub(crate) output: String,
}

impl Binary {
    fn command(&self, how: &How) -> Command {
        let mut command = how.command(&self.words[0], &self.directory);
        command.args(&self.words[1..]).env("CARGO_MANIFEST_DIR", &self.directory).stdin(Stdio::null());
        command
    }

    /// The names of the chosen tests.
    pub(crate) fn names(&self, how: &How, tests: &Tests) -> Result<Vec<String>> {
        let output = self.command(how).args(["--list", "--format=terse"]).output();
        let output = output.map_err(|error| format!("{:?}: cannot be started: {error}", self.words))?;
        if !output.status.success() {
            return Err(format!(
                "{:?}: cannot list its tests: {}",
                self.words,
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        let list = String::from_utf8_lossy(&output.stdout);
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
    command.args(names).args(&how.options).args(["--exact", "--show-output"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    watch(child.map_err(|error| format!("{:?}: cannot be started: {error}", binary.words))?, limit)
}

fn watch(mut child: Child, limit: Duration) -> Result<Outcome> {
    let start = Instant::now();
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
    let mut outcome = Outcome {
        end: End::Passed,
        passed: 0,
        executions: 0,
        preemptions: None,
        schedules: 0,
        judged: None,
        time: Duration::ZERO,
        output: String::new(),
    };
    loop {
        match lines.recv_timeout(limit.saturating_sub(start.elapsed())) {
            Ok(line) => {
                read_line(&line, &mut outcome);
                outcome.output += &line;
                outcome.output.push('\n');
                if outcome.end != End::Passed {
                    break;
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                outcome.end = End::TimedOut;
                break;
            }
        }
    }
    if outcome.end != End::Passed {
        kill(&mut child);
    }
    let status = child.wait().map_err(|error| format!("a test binary cannot be waited for: {error}"))?;
    outcome.time = start.elapsed();
    if outcome.end == End::Passed && !status.success() {
        outcome.end = End::Died(status.to_string());
    }
    let complaints = complaints.join().unwrap_or_default();
    if let End::Died(how) = &mut outcome.end {
        // Miri ends a program at its first error. The last line then begins with the name of the test.
        let last = outcome.output.lines().last().unwrap_or_default();
        if let Some(test) = last.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... ")) {
            let error = complaints.lines().find_map(|line| line.strip_prefix("error: "));
            *how = format!("{test}: {}", error.unwrap_or(how));
        }
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
        let children =
            threads.iter().map(|thread| std::fs::read_to_string(thread.join("children")).unwrap_or_default());
        let children: Vec<_> =
            children.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
        below.extend(children);
        at += 1;
    }
    let _ = child.kill();
    if below.len() > 1 {
        let _ = Command::new("kill").arg("-KILL").args(&below[1..]).stderr(Stdio::null()).status();
    }
}

/// The entries of a directory, if it exists.
fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Reads a line of a test binary's output. Loom's models print `name (barrier, preemptions): count executions in time`,
/// and shuttle's scenarios print `name (schedulers): count schedules in time`.
fn read_line(line: &str, outcome: &mut Outcome) {
    if let Some(test) = line.strip_prefix("test ") {
        if let Some(name) = test.strip_suffix(" ... FAILED") {
            outcome.end = End::Failed(name.trim_end_matches(" - should panic").to_owned());
        } else if test.ends_with(" ... ok") {
            outcome.passed += 1;
        }
    } else if let Some(count) =
        line.strip_suffix(" histories judged").or_else(|| line.strip_suffix(" sequences judged"))
    {
        *outcome.judged.get_or_insert(0) += count.parse().unwrap_or(0);
    } else if let Some((_, count)) = line.split_once("): ")
        && let Some((count, _)) = count.split_once(" schedules in ")
    {
        outcome.schedules += count.parse().unwrap_or(0);
    } else if let Some((front, count)) = line.split_once("): ")
        && let Some((count, _)) = count.split_once(" executions in ")
        && let Some((_, bound)) = front.rsplit_once(", ")
        && let (Ok(count), Ok(bound)) = (count.parse::<u64>(), bound.parse::<u64>())
    {
        outcome.executions += count;
        let (least, most) = outcome.preemptions.unwrap_or((bound, bound));
        outcome.preemptions = Some((least.min(bound), most.max(bound)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> Outcome {
        let mut command = Command::new("sh");
        let child = command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        watch(child.unwrap(), limit).unwrap()
    }

    #[test]
    fn tests_are_named_by_target_and_prefixes() {
        let tests = Tests::parse("loom lane:: lamport:: -slow").unwrap();
        assert!(tests.target.is_loom);
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
        for counts_lines in [false, true] {
            let how = How::real_threads(Path::new("root"), counts_lines);
            assert!(how.variables.contains(&("CORELANE_TEST_PATIENCE".to_owned(), "5".to_owned())));
        }
        let is_real = |tests| Tests::parse(tests).unwrap().target.is_on_real_threads();
        assert!(is_real("contract lane::") && is_real("coherence") && !is_real("loom") && !is_real("shuttle"));
    }

    #[test]
    fn what_passed_is_counted() {
        let text = "test a ... ok\ntest b - should panic ... ok\ntest c ... ignored\n\
            a (Fences, 3): 12 executions in 1.2s\nb (Nothing, 1): 30 executions in 1.2s\n\
            40 histories judged\n2 sequences judged\na (random, PCT of depth 3): 40 schedules in 1.2ms\n";
        let outcome = sh(&format!("printf '%s' '{text}'"), Duration::from_secs(60));
        assert_eq!(outcome.end, End::Passed);
        assert_eq!((outcome.passed, outcome.executions, outcome.preemptions), (2, 42, Some((1, 3))));
        assert_eq!((outcome.judged, outcome.schedules), (Some(42), 40));
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
