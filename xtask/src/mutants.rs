//! Hand-made faults, each of which some test must find: patches for `git apply`, in `mutants/QUEUE/NAME.patch`.
//!
//! A patch begins with the fault in a sentence, and the tests that must find it, in lines of `Test: `. Each patch is
//! applied to a copy of the sources, the tests run there until one fails, and the patch is taken back. On real threads
//! a test must fail twice. At the end, the tests that found something must pass without a fault. A mutant that does not
//! compile is an error, not a kill.

use crate::cargo::{self, End, How, Outcome, Tests};
use crate::evidence::{Records, Run};
use crate::tool::call;
use crate::tree;
use crate::workspace::{Result, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

#[derive(clap::Args, Default)]
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
        Self { missing, ..Self::default() }
    }
}

/// A fault, and the tests that must find it.
pub(crate) struct Mutant {
    /// `queue/name`.
    pub(crate) name: String,
    fault: String,
    tests: Vec<Tests>,
    patch: PathBuf,
    /// A digest of the patch.
    digest: String,
}

impl Mutant {
    pub(crate) fn queue(&self) -> &str {
        self.name.split_once('/').map_or("", |(queue, _)| queue)
    }

    /// Its name in the records.
    pub(crate) fn key(&self) -> String {
        format!("mutant {}", self.name)
    }

    /// What a record of it is of: these sources, and this patch.
    pub(crate) fn of(&self, sources: &str) -> String {
        format!("{sources} {}", self.digest)
    }

    fn read(name: String, patch: PathBuf) -> Result<Self> {
        let text =
            fs::read_to_string(&patch).map_err(|error| format!("{}: cannot be read: {error}", patch.display()))?;
        let header = text.split("\n--- ").next().unwrap_or_default();
        let tests = header.lines().filter_map(|line| line.strip_prefix("Test: "));
        let tests = tests.map(Tests::parse).collect::<Result<Vec<_>>>().map_err(|error| format!("{name}: {error}"))?;
        let fault = header.lines().next().unwrap_or_default().to_owned();
        Ok(Self { name, fault, tests, patch, digest: tree::hash(&text) })
    }

    /// Calls `git apply` in a tree. The tree may lie in another repository, which must not matter.
    fn apply(&self, tree: &Path, options: &[&str]) -> Result<()> {
        let mut command = Command::new("git");
        command.arg("apply").args(options).arg(&self.patch).current_dir(tree);
        command.env("GIT_CEILING_DIRECTORIES", tree.parent().expect("a tree lies somewhere"));
        tree::output(&mut command).map(drop)
    }
}

/// All mutants, by queue.
pub(crate) fn all() -> Result<Vec<Mutant>> {
    let directory = root().join("xtask/mutants");
    let mut mutants = Vec::new();
    for queue in cargo::entries(&directory) {
        for patch in cargo::entries(&queue) {
            let name = patch.strip_prefix(&directory).expect("it lies there").with_extension("");
            mutants.push(Mutant::read(name.display().to_string(), patch)?);
        }
    }
    Ok(mutants)
}

/// The longest that the tests of a mutant may take.
const LIMIT: Duration = Duration::from_secs(900);
/// How often a failed test is run again on real threads, so that it can fail a second time. Several runs also find a
/// fault that shows only by chance, in most runs.
const AGAIN: usize = 3;

fn run_tests(tree: &Path, tests: &Tests, limit: Duration) -> Result<Outcome> {
    let how = How::mutants(tests.target);
    cargo::run(&cargo::build(tree, tests.target, &how)?, &how, tests, limit)
}

/// The test that finds the fault in the tree, if one does.
fn find(tree: &Path, tests: &Tests, limit: Duration) -> Result<Option<Tests>> {
    let outcome = run_tests(tree, tests, limit)?;
    let one = |test: &str| Tests::parse(&format!("{} {test}", tests.target.name));
    let killer = match outcome.end {
        End::Passed => return Ok(None),
        End::Failed(test) => one(&test)?,
        End::Died(_) => test_of_death(&outcome.output).map_or(Ok(tests.clone()), one)?,
        End::TimedOut => tests.clone(),
    };
    let again = || Ok(run_tests(tree, &killer, limit)?.end != End::Passed);
    Ok(is_found_again(&killer, again)?.then_some(killer))
}

/// Whether a first failure counts. `again` runs the test again and returns whether it failed.
fn is_found_again(killer: &Tests, mut again: impl FnMut() -> Result<bool>) -> Result<bool> {
    if killer.target.model().is_some() {
        return Ok(true);
    }
    for _ in 0..AGAIN {
        if again()? {
            return Ok(true);
        }
    }
    println!("          {killer} has failed once only, which does not count");
    Ok(false)
}

/// The test whose panic ended the process. A thread has the name of its test.
fn test_of_death(output: &str) -> Option<&str> {
    let panics = output.lines().filter(|line| line.contains("panicked at"));
    let is_test = |name: &&str| *name != "main" && name.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
    panics.filter_map(|line| Some(line.strip_prefix("thread '")?.split_once('\'')?.0)).rfind(is_test)
}

/// Applies a mutant and runs its tests, first the one that found it last time, if any.
fn try_to_kill(tree: &Path, mutant: &Mutant, last: Option<Tests>) -> Result<Option<Tests>> {
    mutant.apply(tree, &[])?;
    let mut killer = Ok(None);
    for tests in last.iter().chain(&mutant.tests) {
        killer = match find(tree, tests, LIMIT) {
            // The test that found the fault last time has another name now.
            Err(_) if last.as_ref() == Some(tests) => continue,
            found => found,
        };
        if !matches!(killer, Ok(None)) {
            break;
        }
    }
    mutant.apply(tree, &["--reverse"])?;
    killer
}

fn chosen(arguments: &Arguments, records: &Records, sources: &str) -> Result<Vec<Mutant>> {
    let mut mutants = all()?;
    let unknown =
        |name: &&String| !mutants.iter().any(|mutant| [&mutant.name, mutant.queue()].contains(&name.as_str()));
    if let Some(name) = arguments.only.iter().chain(&arguments.queue).find(unknown) {
        return Err(format!("`{name}` is no mutant and has none; --list names them"));
    }
    mutants.retain(|mutant| {
        let is_named = arguments.only.contains(&mutant.name) || arguments.queue.iter().any(|it| it == mutant.queue());
        let is_asked = is_named || arguments.only.is_empty() && arguments.queue.is_empty();
        is_asked && !(arguments.missing && records.has_passed(&mutant.key(), &mutant.of(sources)))
    });
    Ok(mutants)
}

/// Runs the mutants of a queue. Returns the names of those that were not killed.
fn run_queue(tree: &Path, mutants: &[Mutant], records: &Records, sources: &str) -> Result<Vec<String>> {
    let (mut killed, mut failures) = (Vec::new(), Vec::new());
    for mutant in mutants {
        let start = Instant::now();
        let last = records.last(&mutant.key()).and_then(|last| Tests::parse(&last.tests).ok());
        let outcome = try_to_kill(tree, mutant, last);
        print!("{:>8.1?}  ", start.elapsed());
        match outcome {
            Ok(Some(killer)) => {
                println!("killed    {}  by {killer}", mutant.name);
                killed.push((mutant, killer));
                continue;
            }
            Ok(None) => {
                println!("SURVIVED  {}: {}", mutant.name, mutant.fault);
                Records::add(mutant.key(), Run::survived(mutant.of(sources)))?;
            }
            Err(error) => println!("ERROR     {}: {error}", mutant.name),
        }
        failures.push(mutant.name.clone());
    }
    // What found a fault must pass without one. By target, so that each is built once.
    killed.sort_by_key(|(_, killer)| killer.target.name);
    for (mutant, killer) in killed {
        let outcome = run_tests(tree, &killer, LIMIT)?;
        let run = Run::new(&outcome, &killer, mutant.of(sources));
        if run.failed.is_some() || outcome.passed == 0 {
            println!("{killer}: {:?} without a fault\n{}", outcome.end, outcome.output);
            failures.push(mutant.name.clone());
        } else {
            Records::add(mutant.key(), run)?;
        }
    }
    Ok(failures)
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (records, sources) = (Records::read()?, tree::digest()?);
    let mutants = chosen(arguments, &records, &sources)?;
    if arguments.list {
        mutants.iter().for_each(|mutant| println!("{}: {}", mutant.name, mutant.fault));
        return Ok(());
    }
    let tree = root().join("target/mutants/tree");
    tree::copy(&tree)?;
    if mutants.iter().flat_map(|mutant| &mutant.tests).any(|tests| tests.target.counts_lines()) {
        let emulator = format!("{}/emulator", cargo::REAL_THREADS);
        call("queues/corelane-bench/coherence/fetch-emulator", &[&emulator])?;
    }
    let mut failures = Vec::new();
    for mutants in mutants.chunk_by(|one, next| one.queue() == next.queue()) {
        failures.extend(run_queue(&tree, mutants, &records, &sources)?);
    }
    println!("{} of {} mutants killed", mutants.len() - failures.len(), mutants.len());
    if failures.is_empty() { Ok(()) } else { Err(format!("see above: {}", failures.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows;

    #[test]
    fn every_mutant_applies_where_it_belongs() {
        let (mutants, rows) = (all().unwrap(), rows::all());
        assert!(!mutants.is_empty());
        for mutant in &mutants {
            assert!(!mutant.tests.is_empty() && mutant.fault.ends_with('.'), "{}", mutant.name);
            assert!(rows.iter().any(|row| row.name == mutant.queue()), "{} is in no row of the table", mutant.name);
            mutant.apply(&root(), &["--check"]).unwrap();
            // A place that is like another may move there.
            let patch = fs::read_to_string(&mutant.patch).unwrap();
            let file = patch.lines().find_map(|line| line.strip_prefix("--- a/")).unwrap();
            let source = fs::read_to_string(root().join(file)).unwrap();
            for hunk in patch.split("\n@@ ").skip(1) {
                let lines = hunk.lines().skip(1).filter(|line| !line.starts_with('+'));
                let old: String = lines.map(|line| format!("{}\n", line.get(1..).unwrap_or_default())).collect();
                let count = source.matches(&old).count();
                assert_eq!(count, 1, "{}: more context is needed around\n{old}", mutant.name);
            }
        }
    }

    #[test]
    fn a_patch_is_applied_and_taken_back() {
        let tree = root().join(format!("target/evidence/patched-{}", std::process::id()));
        let mutant = all().unwrap().swap_remove(0);
        tree::copy(&tree).unwrap();
        mutant.apply(&tree, &["--check"]).unwrap();
        assert!(mutant.apply(&tree, &["--check", "--reverse"]).is_err());
        mutant.apply(&tree, &[]).unwrap();
        assert!(mutant.apply(&tree, &["--check"]).is_err());
        mutant.apply(&tree, &["--reverse"]).unwrap();
        mutant.apply(&tree, &["--check"]).unwrap();
        fs::remove_file(tree.with_extension("index")).unwrap();
        fs::remove_dir_all(tree).unwrap();
    }

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
