//! Hand-made faults, one at a time: the tests must find each of them.
//!
//! The command copies the sources and builds there. It runs the tests that a mutant (`mutant.rs`) names until one
//! fails. That test must pass without the fault, and on real threads it must fail a second time: a failure by chance,
//! with or without the fault, is no kill. A mutant that does not compile is an error, not a kill.

use crate::cargo::{self, End, How, NotBuilt, Outcome, Tests};
use crate::column::Column;
use crate::evidence::{Records, Run};
use crate::mutant::{self, Mutant};
use crate::rows::{Kind, ROWS};
use crate::tool::call;
use crate::tree;
use crate::workspace::{Result, root};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these mutants, by their names: `lamport/a-name`
    #[arg(long)]
    only: Vec<String>,
    /// Only the mutants of these queues
    #[arg(long)]
    queue: Vec<String>,
    /// Only mutants that were not killed in these very sources
    #[arg(long)]
    missing: bool,
    /// Names them and what is broken in each, and runs nothing
    #[arg(long)]
    list: bool,
}

impl Arguments {
    /// Every mutant, or only those not killed in the present sources.
    pub(crate) fn all(missing: bool) -> Self {
        Self { only: Vec::new(), queue: Vec::new(), missing, list: false }
    }
}

/// The outcome of a mutant.
enum Fate {
    Killed(String),
    Survived,
}

/// The copy, its builds, and how long its tests take without a fault.
struct Bench<'a> {
    root: &'a Path,
    tree: std::path::PathBuf,
    /// A digest that tells these sources from others.
    sources: String,
    /// The tests that passed without a fault, and their times.
    baseline: HashMap<String, Duration>,
    /// Rows whose models have passed as part of a baseline.
    models: Vec<(&'static str, Run)>,
}

/// A test hangs if it takes this many times as long as without a fault, and [`AT_LEAST`] in addition.
const PATIENCE: u32 = 10;
const AT_LEAST: Duration = Duration::from_secs(60);
/// The longest that tests without a fault may take.
const BASELINE: Duration = Duration::from_secs(900);
/// How often a failed test is run again on real threads, so that it can fail a second time. Several runs also find a
/// fault that shows only by chance, in most runs.
const AGAIN: usize = 3;
/// The file that records the tests that passed without a fault.
const KNOWN: &str = "target/mutants/baseline.toml";

impl Bench<'_> {
    fn how(&self, tests: &Tests) -> How {
        if tests.target.is_shuttle {
            return How::shuttle(self.root);
        }
        if !tests.target.is_loom {
            return How::real_threads(self.root, tests.target.counts_lines());
        }
        How::loom(self.root)
    }

    /// Whether these very sources have passed the tests.
    fn has_passed(&mut self, tests: &Tests) -> bool {
        let name = tests.to_string();
        if !self.baseline.contains_key(&name)
            && let Some((sources, seconds)) = self.known().remove(&name)
            && sources == self.sources
        {
            self.baseline.insert(name.clone(), Duration::from_secs_f64(seconds));
        }
        self.baseline.contains_key(&name)
    }

    /// The tests that passed earlier, with the digest of their sources and their time.
    fn known(&self) -> BTreeMap<String, (String, f64)> {
        let text = fs::read_to_string(self.root.join(KNOWN)).unwrap_or_default();
        toml::from_str(&text).unwrap_or_default()
    }

    /// Runs tests without a fault, unless these very sources have passed them before.
    fn pass(&mut self, tests: &Tests) -> Result<()> {
        if self.has_passed(tests) {
            return Ok(());
        }
        let how = self.how(tests);
        let binary = cargo::build(&self.tree, tests.target, &how).map_err(|error| match error {
            NotBuilt::Refused(messages) | NotBuilt::Broken(messages) => format!("{tests}: {messages}"),
        })?;
        let outcome = cargo::run(&binary, &how, tests, BASELINE)?;
        if outcome.end != End::Passed || outcome.passed == 0 {
            return Err(format!(
                "{tests}: {:?} without a fault, {} passed\n{}",
                outcome.end, outcome.passed, outcome.output
            ));
        }
        println!("{:>8.1?}  {tests}: {} tests pass without a fault", outcome.time, outcome.passed);
        // If these tests are a row's models, this run counts as a run of the models.
        for row in &ROWS {
            if row.tests(Kind::Models)?.is_some_and(|models| models == *tests) {
                self.models.push((row.name, Run::new(&outcome, tests, &self.sources)));
            }
        }
        self.baseline.insert(tests.to_string(), outcome.time);
        let mut passed = self.known();
        passed.insert(tests.to_string(), (self.sources.clone(), outcome.time.as_secs_f64()));
        tree::write(&self.root.join(KNOWN), toml::to_string(&passed).map_err(|error| error.to_string())?.as_bytes())
    }

    /// Runs a mutant's tests with its fault, first the test that found it last time, if any. A test that fails with the
    /// fault must pass without it, and on real threads it must fail a second time.
    fn try_to_kill(&mut self, mutant: &Mutant, records: &Records) -> Result<Fate> {
        let last = records.killer(mutant).and_then(|last| Tests::parse(last).ok());
        for tests in last.iter().chain(&mutant.tests) {
            let path = self.tree.join(&mutant.file);
            let source =
                fs::read_to_string(&path).map_err(|error| format!("{}: cannot be read: {error}", path.display()))?;
            tree::write(&path, mutant.apply(&source)?.as_bytes())?;
            let found = self.find(mutant, tests);
            tree::write(&path, source.as_bytes())?;
            let (killer, by) = match found {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                // The test that found the fault last time has another name now.
                Err(error) if last.as_ref() == Some(tests) && error.contains("no test starts with") => continue,
                Err(error) => return Err(error),
            };
            if !self.has_passed(tests) {
                self.pass(&killer)?;
            }
            return Ok(Fate::Killed(by.map_or(killer.to_string(), |by| format!("{killer}: {by}"))));
        }
        Ok(Fate::Survived)
    }

    /// Which of these tests finds the fault in the tree. If it does not simply fail, the second value tells how it
    /// ended.
    fn find(&mut self, mutant: &Mutant, tests: &Tests) -> Result<Option<(Tests, Option<String>)>> {
        let limit =
            if self.has_passed(tests) { self.baseline[&tests.to_string()] * PATIENCE + AT_LEAST } else { BASELINE };
        let outcome = self.run(mutant, tests, limit)?;
        let one = |test: &str| Tests::parse(&format!("{} {test}", tests.target.name));
        let (killer, by) = match outcome.end {
            End::Passed => return Ok(None),
            End::Failed(test) => (one(&test)?, None),
            End::Died(how) => (test_of_death(&outcome.output).map_or(Ok(tests.clone()), one)?, Some(how)),
            End::TimedOut => (tests.clone(), Some("a hang, ended by time-out".to_owned())),
        };
        let again = || self.run(mutant, &killer, limit).map(|outcome| outcome.end != End::Passed);
        if is_found_again(&killer, again)? {
            return Ok(Some((killer, by)));
        }
        println!("          {}: {killer} has failed once only, which does not count", mutant.name);
        Ok(None)
    }

    /// Runs tests of the tree as it is.
    fn run(&self, mutant: &Mutant, tests: &Tests, limit: Duration) -> Result<Outcome> {
        let how = self.how(tests);
        let binary = cargo::build(&self.tree, tests.target, &how).map_err(|error| match error {
            NotBuilt::Refused(messages) => {
                format!("{} does not compile, so it proves nothing:\n{messages}", mutant.name)
            }
            NotBuilt::Broken(error) => error,
        })?;
        cargo::run(&binary, &how, tests, limit)
    }
}

/// Whether a first failure counts. `again` runs the test again and returns whether it failed.
fn is_found_again(killer: &Tests, mut again: impl FnMut() -> Result<bool>) -> Result<bool> {
    if !killer.target.is_on_real_threads() {
        return Ok(true);
    }
    for _ in 0..AGAIN {
        if again()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The test whose panic ended the process. A thread has the name of its test.
fn test_of_death(output: &str) -> Option<&str> {
    let panics = output.lines().filter(|line| line.contains("panicked at"));
    let is_test = |name: &&str| *name != "main" && name.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
    panics.filter_map(|line| Some(line.strip_prefix("thread '")?.split_once('\'')?.0)).rfind(is_test)
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = root();
    let mut mutants = mutant::all(&root)?;
    for name in &arguments.only {
        if !mutants.iter().any(|mutant| mutant.name == *name) {
            return Err(format!("there is no mutant `{name}`; --list names them"));
        }
    }
    for name in &arguments.queue {
        if !mutants.iter().any(|mutant| mutant.queue == *name) {
            return Err(format!("`{name}` has no mutants; --list names them"));
        }
    }
    if !(arguments.only.is_empty() && arguments.queue.is_empty()) {
        mutants.retain(|mutant| arguments.only.contains(&mutant.name) || arguments.queue.contains(&mutant.queue));
    }
    let records = Records::read(&root)?;
    if arguments.missing {
        let sources = tree::digest(&root)?;
        mutants.retain(|mutant| !records.was_killed_in(mutant, &sources));
    }
    if arguments.list {
        mutants.iter().for_each(|mutant| println!("{}: {}", mutant.name, mutant.fault));
        return Ok(());
    }
    let mut survivors = Vec::new();
    let mut errors = Vec::new();
    let count = mutants.len();
    let tree = root.join("target/mutants/tree");
    tree::copy(&root, &tree)?;
    // The digest of the built copy, whatever has changed at the root since then.
    let sources = tree::digest(&tree)?;
    if mutants.iter().flat_map(|mutant| &mutant.tests).any(|tests| tests.target.counts_lines()) {
        call("crates/corelane-bench/coherence/fetch-emulator", &[&format!("{}/emulator", cargo::REAL_THREADS)])?;
    }
    let mut bench = Bench { root: &root, tree, sources: sources.clone(), baseline: HashMap::new(), models: Vec::new() };
    for mutant in &mutants {
        let start = std::time::Instant::now();
        let fate = bench.try_to_kill(mutant, &records);
        let time = start.elapsed();
        let by = match fate {
            Ok(Fate::Killed(by)) => {
                println!("{time:>8.1?}  killed    {}  by {by}", mutant.name);
                Some(by)
            }
            Ok(Fate::Survived) => {
                println!("{time:>8.1?}  SURVIVED  {}: {}", mutant.name, mutant.fault);
                survivors.push(mutant.name.as_str());
                None
            }
            Err(error) => {
                println!("{time:>8.1?}  ERROR     {error}");
                errors.push(mutant.name.as_str());
                continue;
            }
        };
        Records::update(&root, |records| {
            for (row, run) in bench.models.drain(..) {
                records.saw(Column::Loom, row, run);
            }
            records.saw_mutant(mutant, by, &sources);
        })?;
    }
    println!("{} of {count} mutants killed", count - survivors.len() - errors.len());
    match (&*survivors, &*errors) {
        ([], []) => Ok(()),
        (survivors, errors) => {
            let (survivors, errors) = (survivors.join(", "), errors.join(", "));
            Err(format!("mutants survived: [{survivors}]; not judged, see ERROR above: [{errors}]"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_died_names_its_test() {
        let output = "test a ... ok\n\nthread 'b::c' (12) panicked at src/lib.rs:1:1:\npanic in a destructor\n";
        assert_eq!(test_of_death(output), Some("b::c"));
        assert_eq!(test_of_death("thread '<unnamed>' (12) panicked at src/lib.rs:1:1:\n"), None);
    }

    #[test]
    fn one_failure_on_real_threads_is_no_kill() {
        // `fails` has the outcomes of the further runs, in order. Returns whether the failure counts, and how many runs
        // there were.
        let found = |tests: &str, fails: &[bool]| {
            let mut runs = fails.iter();
            let is_found = is_found_again(&Tests::parse(tests).unwrap(), || Ok(*runs.next().unwrap()));
            (is_found, fails.len() - runs.len())
        };
        assert_eq!(found("contract lane::a", &[false; 9]), (Ok(false), AGAIN));
        assert_eq!(found("contract lane::a", &[true]), (Ok(true), 1));
        assert_eq!(found("contract lane::a", &[false, true]), (Ok(true), 2));
        assert_eq!(found("loom lane::a", &[]), (Ok(true), 0));
        assert_eq!(found("shuttle lane::a", &[]), (Ok(true), 0));
    }
}
