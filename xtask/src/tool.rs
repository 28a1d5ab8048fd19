//! What the queues' tests run under: nothing, a model checker, a sanitizer, another processor. Each says what it proves and what not,
//! and installs what it needs.

use crate::cargo::{self, End, How, NotBuilt, Outcome, Target, Tests};
use crate::evidence::{Records, Run};
use crate::rows::{Kind, ROWS, Row};
use crate::{Result, root, tree};
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

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Column {
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

/// What the emulated system is. Statically linked: it needs no libraries of that system, and the linker comes with the compiler.
const AARCH64: &str = "aarch64-unknown-linux-musl";
const HOST: &str = "x86_64-unknown-linux-gnu";

impl Column {
    pub(crate) const ALL: [Self; 9] = [
        Self::Contract,
        Self::Fuzzed,
        Self::Histories,
        Self::Loom,
        Self::Shuttle,
        Self::ThreadSanitizer,
        Self::AddressSanitizer,
        Self::Aarch64,
        Self::Miri,
    ];

    /// Its name in the records.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Fuzzed => "fuzzed",
            Self::Histories => "histories",
            Self::Loom => "loom",
            Self::Shuttle => "shuttle",
            Self::ThreadSanitizer => "thread-sanitizer",
            Self::AddressSanitizer => "address-sanitizer",
            Self::Aarch64 => "aarch64",
            Self::Miri => "miri",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Fuzzed => "fuzzed",
            Self::Histories => "histories",
            Self::Loom => "loom models",
            Self::Shuttle => "shuttle",
            Self::ThreadSanitizer => "ThreadSanitizer",
            Self::AddressSanitizer => "AddressSanitizer, leaks",
            Self::Aarch64 => "aarch64",
            Self::Miri => "Miri",
        }
    }

    pub(crate) fn command(self) -> String {
        format!("cargo xtask run {}", self.key())
    }

    /// What the tests judge, where that is all they do.
    pub(crate) fn judges(self) -> Option<&'static str> {
        match self {
            Self::Fuzzed => Some("sequences"),
            Self::Histories => Some("histories"),
            _ => None,
        }
    }

    /// What it proves, and what not.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Contract => {
                "The promises of the queue's family, one suite over all its members, on real threads; for a queue with options the
  suite runs over several of them. It proves what it saw: the interleavings and the orderings that this processor shows are few."
            }
            Self::Fuzzed => {
                "Random sequences of calls of one thread, each answered as a simple model would. Made smaller where they fail (proptest), or
  from fixed seeds. It says nothing of threads."
            }
            Self::Histories => {
                "Several threads note when each call began and ended and what it answered; the checker of the crate `todc-utils` (Wing and Gong's,
  with Lowe's memory) looks for an order of the calls that a sequential queue would answer so. At a hand-off puts and takes are paired by
  item first, and must overlap; then each request is two calls, the asking and the answer (`tests/handoff/history.rs`); an exchange is one,
  of both. A history that a queue never showed is not judged."
            }
            Self::Loom => {
                "Every interleaving of small cases, and every value a load may see, with at most so many preemptions an execution; the figures are
  models, and executions explored. It does not show loads that are reordered behind later stores, nor time, nor what is larger than the
  models; the asymmetric barrier is modelled by fences, and by less."
            }
            Self::Shuttle => {
                "Schedules of larger cases, at real sizes: several threads on each side, hundreds of items, calls and sizes drawn anew for each.
  Half of them change threads at random, half by PCT, in which a bug that takes three events in a certain order has a known chance; the
  figures are scenarios, and schedules run. It is a sample, and all accesses have one order: what a weaker one shows is loom's to find.
  Timed waits may end at any moment; two accesses to memory at once are a race. Another number with `CORELANE_SCHEDULES=10000`,
  others with `SHUTTLE_RANDOM_SEED=7`."
            }
            Self::ThreadSanitizer => {
                "The contract's tests with every access watched, the standard library's too: two that no synchronization orders are a
  race. It knows what happened in these runs only, and does not know stand-alone fences: no queue here orders its items by one."
            }
            Self::AddressSanitizer => {
                "The contract's tests with every access checked: what is out of bounds, freed, or left at the end. It does not see memory that was
  never written, nor a slot that is used while the buffer around it lives."
            }
            Self::Aarch64 => {
                "The contract's tests, compiled for that processor and emulated on this one: alignment, the width of things, the atomic
  instructions. It does not show weak ordering: the emulator runs on a processor that hardly reorders. Loom does."
            }
            Self::Miri => {
                "Those of the contract's tests that an interpreter gets through, by the language's rules: races, memory
  that was never written, freed or leaked, and pointers that are used against the borrow that they came of, by stacked
  borrows and by tree borrows. A load may see an older value. Tests of closing have three more seeds, which are other
  schedules. It is a sample of few items, and shows no membarrier."
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

    /// Installs what is missing.
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
                // For tests that run themselves again.
                how.with("CORELANE_TEST_RUNNER", emulator)
                    .with("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld")
            }
        })
    }
}

/// How often Miri runs a row's tests: a name, flags, and words of which a test's name must hold one, if there are any.
const ROUNDS: [(&str, &str, &[&str]); 5] = [
    ("stacked borrows", "", &[]),
    ("tree borrows", "-Zmiri-tree-borrows", &[]),
    ("seed 1", "-Zmiri-tree-borrows -Zmiri-seed=1", &SEEDED),
    ("seed 2", "-Zmiri-tree-borrows -Zmiri-seed=2", &SEEDED),
    ("seed 3", "-Zmiri-tree-borrows -Zmiri-seed=3", &SEEDED),
];
/// Tests of what is worth other schedules: an end.
const SEEDED: [&str; 2] = ["clos", "shutdown"];

/// Runs tests in Miri's rounds: what the first came to, or the first that failed, named.
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
        // The watchdog has the machine's time, and variables.
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

/// Installs a nightly compiler with components; one that is there is left as it is.
fn nightly(components: &[&str]) -> Result<()> {
    let list = Command::new("rustup").args(["component", "list", "--installed", "--toolchain", "nightly"]).output();
    let list = list.map_err(|error| format!("rustup: {error}"))?;
    let installed = String::from_utf8_lossy(&list.stdout);
    if !list.status.success() {
        call("rustup", &["toolchain", "install", "nightly", "--profile", "minimal", "--no-self-update"])?;
    } else if components.iter().all(|component| installed.lines().any(|line| line.starts_with(component))) {
        return Ok(());
    }
    call("rustup", &[&["component", "add", "--toolchain", "nightly"], components].concat())
}

/// Where the emulator is; unpacked, not installed, if the system has none.
fn emulator(root: &Path) -> Result<PathBuf> {
    let installed = Path::new("/usr/bin/qemu-aarch64-static");
    if installed.exists() {
        return Ok(installed.to_owned());
    }
    let directory = root.join("target/tools");
    let unpacked = directory.join("usr/bin/qemu-aarch64-static");
    if !unpacked.exists() {
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let script = format!(
            "cd '{}' && {{ apt-get download -q qemu-user-static || {{ apt-get update -q && apt-get download -q qemu-user-static; }} }} \
             && dpkg -x qemu-user-static_*.deb .",
            directory.display()
        );
        call("sh", &["-c", &script])?;
    }
    Ok(unpacked)
}

/// Runs a command that must succeed.
pub(crate) fn call(program: &str, arguments: &[&str]) -> Result<()> {
    succeed(Command::new(program).args(arguments))
}

/// As [`call`].
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    // The toolchain that cargo has started this program with is for this program.
    match command.env_remove("RUSTUP_TOOLCHAIN").current_dir(root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// All rows, or those whose tests have not passed with the present sources.
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

/// Runs the rows' tests of a column, and keeps what they came to; returns how many rows failed.
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
    println!("{}: {}", column.title(), column.meaning());
    let mut binaries: Vec<(Target, cargo::Binary)> = Vec::new();
    let mut failures = 0;
    for row in rows {
        let Some(tests) = row.tests(column.kind())? else { continue };
        if !binaries.iter().any(|(target, _)| *target == tests.target) {
            let binary = cargo::build(&root, tests.target, &how).map_err(|error| match error {
                NotBuilt::Refused(messages) | NotBuilt::Broken(messages) => format!("{tests}: {messages}"),
            })?;
            if tree::digest(&root)? != sources {
                return Err("the sources have changed while they were built".to_owned());
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

/// What Miri sees of the queues at the gate: one of each kind of memory. Their tests take the machine's cores three
/// minutes.
const QUICK: [&str; 5] = ["lane", "fastflow", "stream", "ticket", "dual_queue"];
/// All of it, with what is built.
const QUICK_LIMIT: Duration = Duration::from_secs(360);

/// Interprets the tests of a few queues by the first of the rounds, two queues at a time; returns how many failed. What
/// is not over in time is said, and no failure: a hang would end by the watchdog, and is one.
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
        let tests = row.tests(Kind::Interpreted)?.ok_or_else(|| format!("Miri has no tests of {}", row.name))?;
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
            return Err("only Miri has a quick part".to_owned());
        }
        return match run_quick()? {
            0 => Ok(()),
            failures => Err(format!("{failures} of the queues failed under Miri")),
        };
    }
    if let Some(name) = arguments.row.iter().find(|name| !ROWS.iter().any(|row| row.name == **name)) {
        return Err(format!("there is no row `{name}`"));
    }
    let mut rows = rows(arguments.column, arguments.missing)?;
    rows.retain(|row| arguments.row.is_empty() || arguments.row.iter().any(|name| name == row.name));
    match run_column(arguments.column, &rows)? {
        0 => Ok(()),
        failures => Err(format!("{failures} of the queues failed")),
    }
}
