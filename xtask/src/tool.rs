//! Runs the queues' tests under nothing, a model checker, a sanitizer or another processor, and installs the tools.

use crate::cargo::{self, End, How, NotBuilt, Outcome, Target, Tests};
use crate::column::Column;
use crate::evidence::{Records, Run};
use crate::rows::{Kind, ROWS, Row};
use crate::tree;
use crate::workspace::{Result, root};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to run
    #[arg(value_enum)]
    column: Column,
    /// Only these queues
    #[arg(long)]
    row: Vec<String>,
    /// Only queues that have not passed with these very sources
    #[arg(long)]
    missing: bool,
    /// Of Miri, the part that the gate runs: a few queues, one model, one seed, six minutes; nothing is kept
    #[arg(long, conflicts_with_all = ["missing", "row"])]
    quick: bool,
}

/// The target of the emulated system. It is statically linked: it needs no libraries of that system, and the linker
/// comes with the compiler.
const AARCH64: &str = "aarch64-unknown-linux-musl";
const HOST: &str = "x86_64-unknown-linux-gnu";

impl Column {
    /// Installs missing tools.
    fn prepare(self, root: &Path) -> Result<()> {
        match self {
            Self::Contract | Self::Fuzzed | Self::Histories | Self::Loom | Self::Shuttle => Ok(()),
            Self::ThreadSanitizer | Self::AddressSanitizer => nightly(&["rust-src"]),
            Self::Miri => {
                nightly(&["miri", "rust-src"])?;
                call("cargo", &["+nightly", "miri", "setup"])
            }
            Self::Aarch64 => {
                call("rustup", &["target", "add", AARCH64])?;
                emulator(root).map(drop)
            }
        }
    }

    fn how(self, root: &Path) -> Result<How> {
        let how =
            |directory: &str| How::default().with("CARGO_TARGET_DIR", root.join("target").join(directory).display());
        let instrumented = |name: &str| {
            let mut how = how(&format!("{name}-sanitizer"));
            how.toolchain = Some("nightly");
            how.arguments = ["-Zbuild-std", "--target", HOST].map(str::to_owned).into();
            how.with("RUSTFLAGS", format!("-Zsanitizer={name}")).with("CORELANE_TEST_PATIENCE", 10)
        };
        Ok(match self {
            Self::Contract | Self::Fuzzed | Self::Histories => How::plain(root),
            Self::Loom => How::loom(root),
            Self::Shuttle => How::shuttle(root),
            Self::ThreadSanitizer => instrumented("thread").with("TSAN_OPTIONS", "halt_on_error=1"),
            Self::AddressSanitizer => instrumented("address").with("ASAN_OPTIONS", "detect_leaks=1"),
            Self::Miri => {
                let mut how = how("miri").with("CORELANE_TEST_PATIENCE", 30).with("RUST_BACKTRACE", 0);
                how.toolchain = Some("nightly");
                how.is_interpreted = true;
                how
            }
            Self::Aarch64 => {
                let mut how = how("emulated").with("CORELANE_TEST_PATIENCE", 10);
                how.arguments = ["--target", AARCH64].map(str::to_owned).into();
                let emulator = emulator(root)?.display().to_string();
                how.runner.push(emulator.clone());
                // For tests that start themselves again.
                how.with("CORELANE_TEST_RUNNER", emulator)
                    .with("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld")
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
fn emulator(root: &Path) -> Result<PathBuf> {
    let installed = Path::new("/usr/bin/qemu-aarch64-static");
    if installed.exists() {
        return Ok(installed.to_owned());
    }
    let directory = root.join("target/tools");
    let unpacked = directory.join("usr/bin/qemu-aarch64-static");
    if !unpacked.exists() {
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("{}: cannot be created: {error}", directory.display()))?;
        let script = format!(
            "cd '{}' && {{ apt-get download -q qemu-user-static || {{ apt-get update -q && apt-get download -q \
             qemu-user-static; }} }} && dpkg -x qemu-user-static_*.deb .",
            directory.display()
        );
        call("sh", &["-c", &script])?;
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

/// All rows, or only those whose tests have not passed with the present sources.
pub(crate) fn rows(column: Column, missing: bool) -> Result<Vec<&'static Row>> {
    if !missing {
        return Ok(ROWS.iter().collect());
    }
    let root = root();
    let (records, sources) = (Records::read(&root)?, tree::digest(&root)?);
    let mut rows = Vec::new();
    for row in &ROWS {
        if row.tests(column.kind())?.is_some() && !records.has_passed(column, row, &sources) {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The longest that a row's tests may take.
const LIMIT: Duration = Duration::from_secs(3600);

/// Runs the rows' tests of a column, and records the outcomes. Returns how many rows failed.
pub(crate) fn run_column(column: Column, rows: &[&Row]) -> Result<usize> {
    if rows.is_empty() {
        println!("{}: every row has passed with these sources", column.title());
        return Ok(0);
    }
    let root = root();
    let sources = tree::digest(&root)?;
    match column.prepare(&root) {
        Err(error) if column == Column::Miri => {
            println!("{}: SKIPPED, as {error}", column.title());
            return Ok(0);
        }
        prepared => prepared?,
    }
    let how = column.how(&root)?;
    let proves = column.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
    println!("{}: {}", column.title(), proves.unwrap_or_default());
    let mut binaries: Vec<(Target, cargo::Binary)> = Vec::new();
    let mut failures = 0;
    for row in rows {
        let Some(tests) = row.tests(column.kind())? else { continue };
        if !binaries.iter().any(|(target, _)| *target == tests.target) {
            let binary = cargo::build(&root, tests.target, &how).map_err(|error| match error {
                NotBuilt::Refused(messages) | NotBuilt::Broken(messages) => format!("{tests}: {messages}"),
            })?;
            if tree::digest(&root)? != sources {
                return Err("the sources have changed while they were built; run it again".to_owned());
            }
            binaries.push((tests.target, binary));
        }
        let (_, binary) = binaries.iter().find(|(target, _)| *target == tests.target).expect("just built");
        let outcome = if column == Column::Miri {
            interpret(binary, &how, &tests)?
        } else {
            cargo::run(binary, &how, &tests, LIMIT)?
        };
        let run = Run::new(&outcome, &tests, &sources);
        match &run.failed {
            None => println!("{:>8.1?}  {}: {} passed ({tests})", outcome.time, row.name, outcome.passed),
            Some(failed) => {
                failures += 1;
                println!("{:>8.1?}  {}: FAILED {failed} ({tests})\n{}", outcome.time, row.name, outcome.output);
            }
        }
        Records::update(&root, |records| records.saw(column, row.name, run))?;
    }
    Ok(failures)
}

/// The queues whose tests Miri runs at the gate: one for each kind of memory. Their tests take three minutes on the
/// machine's cores.
const QUICK: [&str; 5] = ["lane", "fastflow", "stream", "ticket", "dual_queue"];
/// The limit for all of them, including the builds.
const QUICK_LIMIT: Duration = Duration::from_secs(360);

/// Interprets the tests of a few queues in the first round, two queues at a time. Returns how many failed. Tests that
/// are not over in time are reported but do not fail: the watchdog would end a hang, and that is a failure.
fn run_quick() -> Result<usize> {
    let begin = Instant::now();
    let root = root();
    if let Err(error) = Column::Miri.prepare(&root) {
        println!("SKIPPED: Miri is shown nothing, as {error}");
        return Ok(0);
    }
    let (round, flags, _) = ROUNDS[0];
    let how = Column::Miri.how(&root)?.with("MIRIFLAGS", format!("-Zmiri-disable-isolation {flags}"));
    let how = how.with("CORELANE_TEST_PATIENCE", 3);
    let mut runs = Vec::new();
    for row in ROWS.iter().filter(|row| QUICK.contains(&row.name)) {
        let tests = row
            .tests(Kind::Interpreted)?
            .ok_or_else(|| format!("Miri has no tests of {}; take it out of QUICK", row.name))?;
        let binary = cargo::build(&root, tests.target, &how).map_err(|error| match error {
            NotBuilt::Refused(messages) | NotBuilt::Broken(messages) => format!("{tests}: {messages}"),
        })?;
        runs.push((row.name, binary.names(&how, &tests)?, binary));
    }
    println!("Miri, {round}: built in {:.0?}", begin.elapsed());
    let (next, failures) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<()> {
        while let Some((name, tests, binary)) = runs.get(next.fetch_add(1, Relaxed)) {
            let left = QUICK_LIMIT.saturating_sub(begin.elapsed());
            let outcome = cargo::run_names(binary, &how, tests, left)?;
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
    if arguments.quick {
        if arguments.column != Column::Miri {
            return Err("--quick is for miri only; leave it out".to_owned());
        }
        return match run_quick()? {
            0 => Ok(()),
            failures => Err(format!("{failures} of the queues failed under Miri, see FAILED above")),
        };
    }
    if let Some(name) = arguments.row.iter().find(|name| !ROWS.iter().any(|row| row.name == **name)) {
        let known: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        return Err(format!("there is no row `{name}`; choose from {}", known.join(", ")));
    }
    let mut rows = rows(arguments.column, arguments.missing)?;
    rows.retain(|row| arguments.row.is_empty() || arguments.row.iter().any(|name| name == row.name));
    match run_column(arguments.column, &rows)? {
        0 => Ok(()),
        failures => Err(format!("{failures} of the queues failed, see FAILED above")),
    }
}
