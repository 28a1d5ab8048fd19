//! Runs the queues' tests under nothing, a model checker, a sanitizer or another processor, and installs the tools.

use crate::cargo::{self, End, How, Outcome, Tests};
use crate::evidence::{Records, Run};
use crate::rows::{self, Kind, Row};
use crate::tree;
use crate::workspace::{Result, root};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to run
    #[arg(value_enum)]
    tool: Tool,
    /// Only these queues
    #[arg(long)]
    row: Vec<String>,
    /// Only queues that have not passed with these very sources
    #[arg(long)]
    missing: bool,
    /// Of Miri, the part that the gate runs: a few queues, one model, one seed, ten minutes; nothing is kept
    #[arg(long, conflicts_with_all = ["missing", "row"])]
    quick: bool,
}

/// What a queue's tests run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Tool {
    /// The contract's suite, on real threads
    Contract,
    /// Random sequences of calls against a model
    Fuzzed,
    /// Recorded histories, judged by a checker of linearizability
    Histories,
    /// Loom: every interleaving of small cases
    Loom,
    /// Shuttle: drawn schedules of larger cases
    Shuttle,
    /// ThreadSanitizer, with an instrumented standard library
    ThreadSanitizer,
    /// AddressSanitizer and its leak check, with an instrumented standard library
    AddressSanitizer,
    /// Another processor, emulated
    Aarch64,
    /// Miri: what Rust's rules call undefined, by an interpreter
    Miri,
}

/// The target of the emulated system. It is statically linked: it needs no libraries of that system, and the linker
/// comes with the compiler.
const AARCH64: &str = "aarch64-unknown-linux-musl";

impl Tool {
    /// Its name on the command line and in the records.
    pub(crate) fn key(self) -> String {
        clap::ValueEnum::to_possible_value(&self).expect("none is hidden").get_name().to_owned()
    }

    /// The name of its run over a row in the records.
    pub(crate) fn of_row(self, row: &Row) -> String {
        format!("{} {}", self.key(), row.name)
    }

    /// What its runs show, and what they do not.
    pub(crate) fn claim(self) -> &'static str {
        match self {
            Self::Contract => {
                "The promises of each family hold on real threads. This processor shows few interleavings and \
                 orderings."
            }
            Self::Fuzzed => "Random calls of one thread are answered as by a simple model.",
            Self::Histories => {
                "For histories recorded of several threads there is an order in which a sequential queue answers so \
                 (Wing and Gong's check, with Lowe's memory)."
            }
            Self::Loom => {
                "Every interleaving of small cases passes, with every value that a load may see, up to a bound on \
                 preemptions. No loads behind later stores, no time, and fences instead of the asymmetric barrier."
            }
            Self::Shuttle => {
                "Drawn schedules of cases at real sizes pass, half of them at random, half by PCT of depth 3. It is a \
                 sample, in which all accesses have one order."
            }
            Self::ThreadSanitizer => {
                "No two accesses of the contract's tests race, the standard library included. It does not know \
                 stand-alone fences."
            }
            Self::AddressSanitizer => {
                "The contract's tests access nothing out of bounds or freed, and leak nothing. It does not see memory \
                 that was never written."
            }
            Self::Aarch64 => "The contract's tests pass as compiled for aarch64. The emulator hardly reorders.",
            Self::Miri => {
                "What Miri gets through of the contract's tests is defined by the language's rules, under stacked and \
                 tree borrows. A sample of few items, without membarrier."
            }
        }
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Fuzzed => Kind::Fuzzed,
            Self::Histories => Kind::Histories,
            Self::Loom => Kind::Models,
            Self::Miri => Kind::Interpreted,
            Self::Shuttle => Kind::Scenarios,
            _ => Kind::Contract,
        }
    }

    /// Installs missing tools.
    fn prepare(self) -> Result<()> {
        match self {
            Self::Contract | Self::Fuzzed | Self::Histories | Self::Loom | Self::Shuttle => Ok(()),
            Self::ThreadSanitizer | Self::AddressSanitizer => nightly(&["rust-src"]),
            Self::Miri => {
                nightly(&["miri", "rust-src"])?;
                call("cargo", &["+nightly", "miri", "setup"])
            }
            Self::Aarch64 => {
                call("rustup", &["target", "add", AARCH64])?;
                emulator().map(drop)
            }
        }
    }

    fn how(self, tests: &Tests) -> Result<How> {
        let instrumented = |name: &str| {
            let how = How::at(&format!("target/{name}-sanitizer")).with("RUSTFLAGS", format!("-Zsanitizer={name}"));
            How {
                before: &["+nightly"],
                arguments: &["-Zbuild-std", "--target", "x86_64-unknown-linux-gnu"],
                ..how.with("CORELANE_TEST_PATIENCE", 10)
            }
        };
        Ok(match self {
            Self::Contract | Self::Fuzzed | Self::Histories => How::at("target"),
            Self::Loom | Self::Shuttle => How::mutants(tests.target),
            Self::ThreadSanitizer => {
                instrumented("thread").with("TSAN_OPTIONS", "halt_on_error=1:allocator_may_return_null=1")
            }
            Self::AddressSanitizer => {
                instrumented("address").with("ASAN_OPTIONS", "detect_leaks=1:allocator_may_return_null=1")
            }
            Self::Miri => {
                let how = How::at("target/miri").with("CORELANE_TEST_PATIENCE", 30).with("RUST_BACKTRACE", 0);
                How { before: &["+nightly", "miri"], ..how }
            }
            Self::Aarch64 => {
                let emulator = emulator()?;
                let how = How::at("target/emulated").with("CORELANE_TEST_PATIENCE", 10);
                // For tests that start themselves again.
                let how = how.with("CORELANE_TEST_RUNNER", emulator.display());
                How {
                    arguments: &["--target", AARCH64],
                    runner: Some(emulator),
                    ..how.with("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld")
                }
            }
        })
    }
}

/// Miri's rounds over a row's tests: a name, flags, and words. If there are words, a test's name must contain one of
/// them.
const ROUNDS: [(&str, &str, &[&str]); 5] = [
    ("stacked borrows", "", &[]),
    ("tree borrows", "-Zmiri-tree-borrows", &[]),
    ("seed 1", "-Zmiri-tree-borrows -Zmiri-seed=1", &SEEDED),
    ("seed 2", "-Zmiri-tree-borrows -Zmiri-seed=2", &SEEDED),
    ("seed 3", "-Zmiri-tree-borrows -Zmiri-seed=3", &SEEDED),
];
/// Words in the names of tests for which other schedules are worth their time: tests of an end.
const SEEDED: [&str; 2] = ["clos", "shutdown"];

/// Runs tests in Miri's rounds. Returns the outcome of the first round, or of the first that failed, with its name.
fn interpret(binary: &cargo::Binary, how: &How, tests: &Tests) -> Result<Outcome> {
    let names = binary.names(how, tests)?;
    let mut time = Duration::ZERO;
    let mut all = None;
    for (round, flags, words) in ROUNDS {
        let is_chosen = |name: &&String| words.is_empty() || words.iter().any(|word| name.contains(word));
        let names: Vec<_> = names.iter().filter(is_chosen).cloned().collect();
        if names.is_empty() {
            continue;
        }
        // Without isolation the watchdog can read the machine's time and variables.
        let how = how.clone().with("MIRIFLAGS", format!("-Zmiri-disable-isolation {flags}"));
        let mut outcome = cargo::run_names(binary, &how, &names, LIMIT)?;
        time += outcome.time;
        match &mut outcome.end {
            End::Passed => {
                all.get_or_insert(outcome);
                continue;
            }
            End::Failed(what) | End::Died(what) => *what = format!("{what} ({round})"),
            End::TimedOut => outcome.end = End::Died(format!("a hang ({round})")),
        }
        return Ok(Outcome { time, ..outcome });
    }
    let all = all.expect("the first round is of all tests");
    Ok(Outcome { time, ..all })
}

/// Installs a nightly compiler with components. An installed one is left as it is.
fn nightly(components: &[&str]) -> Result<()> {
    let list = Command::new("rustup").args(["component", "list", "--installed", "--toolchain", "nightly"]).output();
    let list = list.map_err(|error| format!("rustup cannot be started: {error}; install it"))?;
    let installed = String::from_utf8_lossy(&list.stdout);
    if !list.status.success() {
        call("rustup", &["toolchain", "install", "nightly", "--profile", "minimal", "--no-self-update"])?;
    } else if components.iter().all(|component| installed.lines().any(|line| line.starts_with(component))) {
        return Ok(());
    }
    call("rustup", &[&["component", "add", "--toolchain", "nightly"], components].concat())
}

/// The emulator's place. If the system has no emulator, one is unpacked, not installed.
fn emulator() -> Result<PathBuf> {
    let installed = PathBuf::from("/usr/bin/qemu-aarch64-static");
    let directory = root().join("target/tools");
    let unpacked = directory.join("usr/bin/qemu-aarch64-static");
    if installed.exists() {
        return Ok(installed);
    }
    if !unpacked.exists() {
        let script = "mkdir -p \"$0\" && cd \"$0\" && { apt-get download -q qemu-user-static || { apt-get update -q && \
                      apt-get download -q qemu-user-static; } } && dpkg -x qemu-user-static_*.deb .";
        call("sh", &["-c", script, &directory.display().to_string()])?;
    }
    Ok(unpacked)
}

/// Runs a command. If the command fails, that is an error.
pub(crate) fn call(program: &str, arguments: &[&str]) -> Result<()> {
    succeed(Command::new(program).args(arguments))
}

/// Like [`call`].
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    // The toolchain with which cargo has started this program must not apply to the command.
    match command.env_remove("RUSTUP_TOOLCHAIN").current_dir(root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?} cannot be started: {error}")),
    }
}

/// The longest that a row's tests may take.
const LIMIT: Duration = Duration::from_secs(3600);

/// Runs the rows' tests under a tool, and records the outcomes. If only what is missing is asked for, rows that have
/// passed with the present sources are left out. Returns how many rows failed.
pub(crate) fn run_tool(tool: Tool, rows: &[Row], missing: bool) -> Result<usize> {
    match tool.prepare() {
        Err(error) if tool == Tool::Miri => {
            println!("miri: SKIPPED, as {error}");
            return Ok(0);
        }
        prepared => prepared?,
    }
    println!("{}: {}", tool.key(), tool.claim());
    let (records, sources) = (Records::read()?, tree::digest()?);
    let mut failures = 0;
    for row in rows {
        let Some(tests) = row.tests(tool.kind())? else { continue };
        let (key, of) = (tool.of_row(row), format!("{sources} {tests}"));
        if missing && records.has_passed(&key, &of) {
            continue;
        }
        let how = tool.how(&tests)?;
        let binary = cargo::build(&root(), tests.target, &how)?;
        if tree::digest()? != sources {
            return Err("the sources have changed while they were built; run it again".to_owned());
        }
        let outcome = match tool {
            Tool::Miri => interpret(&binary, &how, &tests)?,
            _ => cargo::run(&binary, &how, &tests, LIMIT)?,
        };
        let run = Run::new(&outcome, &tests, of);
        match &run.failed {
            None => println!("{:>8.1?}  {}: {} passed ({tests})", outcome.time, row.name, outcome.passed),
            Some(failed) => {
                failures += 1;
                println!("{:>8.1?}  {}: FAILED {failed} ({tests})\n{}", outcome.time, row.name, outcome.output);
            }
        }
        Records::add(key, run)?;
    }
    Ok(failures)
}

/// The queues whose tests Miri runs at the gate: one for each kind of memory. Their tests take three minutes on the
/// machine's cores.
const QUICK: [&str; 5] = ["lane", "fastflow", "stream", "ticket", "dual_queue"];
/// The limit for all of them, including the builds.
const QUICK_LIMIT: Duration = Duration::from_secs(600);

/// Interprets the tests of a few queues in the first round, two queues at a time. Returns how many failed. Tests that
/// are not over in time are reported but do not fail: the watchdog would end a hang, and that is a failure.
fn run_quick() -> Result<usize> {
    let begin = Instant::now();
    if let Err(error) = Tool::Miri.prepare() {
        println!("SKIPPED: Miri is shown nothing, as {error}");
        return Ok(0);
    }
    let (round, flags, _) = ROUNDS[0];
    let mut runs = Vec::new();
    for row in rows::all().iter().filter(|row| QUICK.contains(&row.name)) {
        let tests = row
            .tests(Kind::Interpreted)?
            .ok_or_else(|| format!("Miri has no tests of {}; take it out of QUICK", row.name))?;
        let how = Tool::Miri.how(&tests)?.with("MIRIFLAGS", format!("-Zmiri-disable-isolation {flags}"));
        let how = how.with("CORELANE_TEST_PATIENCE", 3);
        let binary = cargo::build(&root(), tests.target, &how)?;
        runs.push((row.name, binary.names(&how, &tests)?, binary, how));
    }
    println!("Miri, {round}: built in {:.0?}", begin.elapsed());
    let (next, failures) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<()> {
        while let Some((name, tests, binary, how)) = runs.get(next.fetch_add(1, Relaxed)) {
            let left = QUICK_LIMIT.saturating_sub(begin.elapsed());
            let outcome = cargo::run_names(binary, how, tests, left)?;
            let (time, passed, all) = (outcome.time, outcome.passed, tests.len());
            match outcome.end {
                End::Passed => println!("{time:>8.1?}  {name}: {passed} passed"),
                End::TimedOut => println!("{time:>8.1?}  {name}: NOT FINISHED: {passed} of {all} passed in the time"),
                End::Failed(what) | End::Died(what) => {
                    failures.fetch_add(1, Relaxed);
                    println!("{time:>8.1?}  {name}: FAILED {what}\n{}", outcome.output);
                }
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(work);
        work().and(other.join().expect("it returns its errors"))
    })?;
    Ok(failures.into_inner())
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let failures = if arguments.quick {
        if arguments.tool != Tool::Miri {
            return Err("--quick is for miri only; leave it out".to_owned());
        }
        run_quick()?
    } else {
        run_tool(arguments.tool, &rows::named(&arguments.row)?, arguments.missing)?
    };
    if failures == 0 { Ok(()) } else { Err(format!("{failures} of the queues failed, see FAILED above")) }
}
