//! The records of what was seen, `docs/evidence.toml`, and the table that is made of them, `docs/evidence.md`.
//!
//! A record is a command that ran, at which commit, and what it came to. The table has nothing else to say: a cell without a record is
//! empty. What was seen of a mutant expires when its text changes, and what was seen of a row's tests when others are chosen.

use crate::cargo::{End, Outcome, Tests};
use crate::rows::{ROWS, Row};
use crate::tool::Column;
use crate::{Result, mutants, root, tree};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Fails if the table is not what the records make it, and writes nothing
    #[arg(long)]
    check: bool,
}

const RECORDS: &str = "docs/evidence.toml";
const TABLE: &str = "docs/evidence.md";

/// When something was seen, and of which sources.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Seen {
    date: String,
    /// With a `+` if files had been changed since.
    commit: String,
    /// What had been changed.
    #[serde(skip)]
    changes: String,
}

impl Seen {
    pub(crate) fn now(root: &Path) -> Self {
        let output = |command: &mut Command| {
            command.output().map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let git = |arguments: &[&str]| output(tree::git(root).args(arguments));
        let changed = git(&["status", "--porcelain", "--", "crates", "xtask", "Cargo.toml", "Cargo.lock"]);
        let mark = if changed.is_empty() { "" } else { "+" };
        let commit = git(&["rev-parse", "--short=9", "HEAD"]) + mark;
        let changed_to = git(&["diff", "HEAD", "--", "crates", "xtask", "Cargo.toml", "Cargo.lock"]);
        let date = output(Command::new("date").args(["-u", "+%Y-%m-%d"]));
        Self { date, commit, changes: format!("{changed}\n{changed_to}") }
    }

    /// An error unless these sources are still there: what was built since is of no commit that can be named.
    pub(crate) fn still(&self, now: &Self) -> Result<()> {
        if (&self.commit, &self.changes) == (&now.commit, &now.changes) {
            return Ok(());
        }
        Err(format!("the sources have changed while they were built: from {} to {}", self.commit, now.commit))
    }
}

/// Tells which records are of the very sources that are there now.
pub(crate) struct Sources<'a> {
    root: &'a Path,
    /// What was found out, by commit and target.
    same: RefCell<BTreeMap<(String, &'static str), bool>>,
}

impl<'a> Sources<'a> {
    pub(crate) fn now(root: &'a Path) -> Self {
        Self { root, same: RefCell::default() }
    }

    /// Whether nothing has changed since that these tests depend on: not if that cannot be told.
    fn are_those_of(&self, seen: &Seen, tests: &str) -> bool {
        let Ok(Tests { target, .. }) = Tests::parse(tests) else { return false };
        let same = || {
            let git = |arguments: &[&str]| {
                let mut command = tree::git(self.root);
                command.args(arguments).arg("--").args(tree::JUDGED).args(target.without_others(self.root));
                command.output()
            };
            let unchanged = git(&["diff", "--quiet", &seen.commit]).is_ok_and(|output| output.status.success());
            unchanged
                && git(&["ls-files", "--others", "--exclude-standard"]).is_ok_and(|output| output.stdout.is_empty())
        };
        let of = (seen.commit.clone(), target.name);
        !seen.commit.ends_with('+') && *self.same.borrow_mut().entry(of).or_insert_with(same)
    }
}

/// A run of a row's tests under a tool.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    /// Tests that passed.
    pub(crate) passed: usize,
    /// The first that failed, or how the run ended otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    /// What loom explored, and the preemptions it allowed, at least and at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) executions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preemptions: Option<(u64, u64)>,
    /// Schedules that shuttle ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schedules: Option<u64>,
    /// What the tests say that they have judged: histories, or sequences of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) judged: Option<u64>,
    pub(crate) tests: String,
    #[serde(flatten)]
    pub(crate) seen: Seen,
}

impl Run {
    pub(crate) fn new(outcome: &Outcome, tests: &Tests, seen: &Seen) -> Self {
        Self {
            passed: outcome.passed,
            failed: match &outcome.end {
                End::Passed => None,
                End::Failed(test) => Some(test.clone()),
                End::Died(how) => Some(how.clone()),
                End::TimedOut => Some("a hang".to_owned()),
            },
            executions: (outcome.executions != 0).then_some(outcome.executions),
            preemptions: outcome.preemptions,
            schedules: (outcome.schedules != 0).then_some(outcome.schedules),
            judged: outcome.judged,
            tests: tests.to_string(),
            seen: seen.clone(),
        }
    }
}

/// What became of a mutant.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    /// The test that found it; none if it survived.
    #[serde(skip_serializing_if = "Option::is_none")]
    killed_by: Option<String>,
    /// Of its text. Older records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(flatten)]
    seen: Seen,
}

/// All that was seen, by column and row, and by mutant.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Records {
    #[serde(default)]
    runs: BTreeMap<String, BTreeMap<String, Run>>,
    #[serde(default)]
    mutants: BTreeMap<String, Mutant>,
}

/// Mutants whose text changed after they were seen, and before digests were kept.
const CHANGED_BEFORE: [&str; 2] = ["fastflow/a-slot-not-cleared", "fastflow/slot-relaxed"];

impl Records {
    /// What was seen of the mutants as they are now.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut records: Self = match fs::read_to_string(root.join(RECORDS)) {
            Ok(text) => toml::from_str(&text).map_err(|error| format!("{RECORDS}: {error}"))?,
            Err(_) => Self::default(),
        };
        let present = mutants::all(root)?.into_iter().map(|mutant| (mutant.digest(), mutant.name));
        records.expire(&present.map(|(digest, name)| (name, digest)).collect());
        Ok(records)
    }

    /// Forgets mutants that are no more, or have another text now, by their present digests.
    fn expire(&mut self, present: &BTreeMap<String, String>) {
        self.mutants.retain(|name, mutant| {
            if mutant.digest.is_none() && !CHANGED_BEFORE.contains(&name.as_str()) {
                mutant.digest = present.get(name).cloned();
            }
            mutant.digest.is_some() && mutant.digest.as_ref() == present.get(name)
        });
    }

    /// Adds to the records that are there now: another command may have written since they were read here.
    pub(crate) fn update(root: &Path, add: impl FnOnce(&mut Self)) -> Result<()> {
        let mut records = Self::read(root)?;
        add(&mut records);
        records.write(root).map(drop)
    }

    /// Writes the records, without those of rows that are no more, and the table. Returns the table.
    fn write(&mut self, root: &Path) -> Result<String> {
        for rows in self.runs.values_mut() {
            rows.retain(|name, _| ROWS.iter().any(|row| row.name == *name));
        }
        let text = toml::to_string(self).map_err(|error| error.to_string())?;
        let head = "# Written by `cargo xtask`: what ran, when, of which sources, and what it came to.\n\n";
        tree::write(&root.join(RECORDS), format!("{head}{text}").as_bytes())?;
        let page = self.page(&mutants::count(root)?);
        tree::write(&root.join(TABLE), page.as_bytes())?;
        Ok(page)
    }

    pub(crate) fn saw(&mut self, column: Column, row: &str, run: Run) {
        self.runs.entry(column.key().to_owned()).or_default().insert(row.to_owned(), run);
    }

    pub(crate) fn saw_mutant(&mut self, name: &str, digest: &str, killed_by: Option<String>, seen: &Seen) {
        let mutant = Mutant { killed_by, digest: Some(digest.to_owned()), seen: seen.clone() };
        self.mutants.insert(name.to_owned(), mutant);
    }

    /// The test that has found a mutant, as [`Tests`] reads it.
    pub(crate) fn killer(&self, mutant: &str) -> Option<&str> {
        let killed_by = self.mutants.get(mutant)?.killed_by.as_deref()?;
        Some(killed_by.split_once(": ").map_or(killed_by, |(tests, _)| tests))
    }

    /// Whether a mutant was killed in these sources.
    pub(crate) fn was_killed_in(&self, mutant: &str, sources: &Sources<'_>) -> bool {
        let killed = self.killer(mutant).zip(self.mutants.get(mutant));
        killed.is_some_and(|(killer, of)| sources.are_those_of(&of.seen, killer))
    }

    /// Whether a row has passed with these sources.
    pub(crate) fn has_passed(&self, column: Column, row: &Row, sources: &Sources<'_>) -> bool {
        self.run(column, row).is_some_and(|run| run.failed.is_none() && sources.are_those_of(&run.seen, &run.tests))
    }

    /// The run of those tests that the row has now.
    fn run(&self, column: Column, row: &Row) -> Option<&Run> {
        let present = row.tests(column.kind()).ok()??.to_string();
        self.runs.get(column.key())?.get(row.name).filter(|run| run.tests == present)
    }

    fn cell(&self, column: Column, row: &Row) -> String {
        let Some(run) = self.run(column, row) else { return String::new() };
        if let Some(failed) = &run.failed {
            return format!("**failed**: {failed}");
        }
        let mut text = run.passed.to_string();
        if let Some(executions) = run.executions {
            let _ = write!(text, ", {} executions", grouped(executions));
        }
        if let Some((least, most)) = run.preemptions {
            let bound = if least == most { most.to_string() } else { format!("{least} to {most}") };
            let _ = write!(text, ", preemptions ≤ {bound}");
        }
        if let Some(schedules) = run.schedules {
            let _ = write!(text, ", {} schedules", grouped(schedules));
        }
        if let (Some(count), Some(what)) = (run.judged, column.judges()) {
            let _ = write!(text, ", {} {what}", grouped(count));
        }
        text
    }

    fn killed(&self, queue: &str, count: usize) -> String {
        let of_queue = |(name, _): &(&String, &Mutant)| name.split_once('/').is_some_and(|(front, _)| front == queue);
        let (killed, survived): (Vec<_>, Vec<_>) =
            self.mutants.iter().filter(of_queue).partition(|(_, mutant)| mutant.killed_by.is_some());
        if count == 0 || killed.is_empty() && survived.is_empty() {
            return String::new();
        }
        let mut text = format!("{} of {count}", killed.len());
        if !survived.is_empty() {
            let _ = write!(text, ", **{} survived**", survived.len());
        }
        let missing = count.saturating_sub(killed.len() + survived.len());
        if missing != 0 {
            let _ = write!(text, ", {missing} not run");
        }
        text
    }

    /// The page.
    fn page(&self, mutants: &BTreeMap<String, usize>) -> String {
        let mut page = String::from(HEAD);
        let _ = writeln!(page, "| queue | {} | mutants killed |", Column::ALL.map(Column::title).join(" | "));
        let _ = writeln!(page, "|---|{}---|", "---|".repeat(Column::ALL.len()));
        let mut family = "";
        for row in &ROWS {
            if row.family != family {
                family = row.family;
                let _ = writeln!(page, "| *{family}* |{}|", " |".repeat(Column::ALL.len()));
            }
            let cells = Column::ALL.map(|column| self.cell(column, row)).join(" | ");
            let killed = self.killed(row.name, mutants.get(row.name).copied().unwrap_or(0));
            let _ = writeln!(page, "| `{}` | {cells} | {killed} |", row.name);
        }
        page.push_str("\n## What each column says\n\n");
        for column in Column::ALL {
            let _ = writeln!(page, "- **{}**. {}", column.title(), column.meaning());
            let runs: Vec<_> = ROWS.iter().filter_map(|row| self.run(column, row)).collect();
            if runs.is_empty() {
                page.push_str("  Nothing was run.\n");
                continue;
            }
            let mut seen: Vec<_> = runs.iter().map(|run| (&*run.seen.date, &*run.seen.commit)).collect();
            seen.sort_unstable();
            seen.dedup();
            let seen: Vec<_> = seen.iter().map(|(date, commit)| format!("{date} at {commit}")).collect();
            let _ = writeln!(page, "  `{}`; seen {}.", column.command(), seen.join(", "));
        }
        page.push_str(MUTANTS);
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for by in self.mutants.values().filter_map(|mutant| mutant.killed_by.as_deref()) {
            *found.entry(by.split([' ', ':']).next().unwrap_or(by)).or_default() += 1;
        }
        let found: Vec<_> = found.iter().map(|(target, count)| format!("`{target}` {count}")).collect();
        if !found.is_empty() {
            let _ = writeln!(page, "  By test target: {}.", found.join(", "));
        }
        page
    }
}

const HEAD: &str = "<!-- Made by `cargo xtask evidence` from docs/evidence.toml. Do not edit. -->

# Evidence

What was run over each queue, and what it came to. A figure is the number of tests that passed; an empty cell says that there is no such
test, or that nobody ran it as it is now. The commands are below the table.

";

const MUTANTS: &str = "- **mutants killed**. Hand-made faults, one at a time, each of which some test must find: an ordering weakened, a look dropped, a wake-up
  too early. `xtask/mutants` has them, with what is broken in each. A mutant that does not compile counts as nothing, nor does a failure on
  real threads that comes once only; one whose text has changed since counts as not run. `cargo xtask mutants --record`.
";

/// With a space between thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i != 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Writes the table from the records, and those without what has expired.
pub(crate) fn write(root: &Path) -> Result<String> {
    Records::read(root)?.write(root)
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = root();
    if !arguments.check {
        return write(&root).map(|page| print!("{page}"));
    }
    let page = Records::read(&root)?.page(&mutants::count(&root)?);
    match fs::read_to_string(root.join(TABLE)) {
        Ok(old) if old == page => Ok(()),
        _ => Err(format!("{TABLE} is not what {RECORDS} makes it: run `cargo xtask evidence`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(commit: &str, changes: &str) -> Seen {
        Seen { date: "2026-01-01".into(), commit: commit.into(), changes: changes.into() }
    }

    #[test]
    fn records_of_these_sources_are_told_from_others() {
        let root = std::env::temp_dir().join(format!("corelane-sources-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let change = |file: &str, text: &str| tree::write(&root.join(file), text.as_bytes()).unwrap();
        let git = |arguments: &str| {
            let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let plain = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")];
            let output = tree::git(&root).args(who).args(arguments.split(' ')).envs(plain).output().unwrap();
            assert!(output.status.success(), "{arguments}: {output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        for part in tree::JUDGED {
            change(&if part.contains('.') { part.to_owned() } else { format!("{part}/a.rs") }, "a");
        }
        for command in ["init -q", "add .", "commit -qm a"] {
            git(command);
        }
        let commit = git("rev-parse --short=9 HEAD");
        let of = |tests: &str, commit: &str| Sources::now(&root).are_those_of(&seen(commit, ""), tests);
        let same = |commit: &str| of("contract lane::", commit);
        assert!(same(&commit) && !same(&format!("{commit}+")) && !same("no-commit"));
        // A commit of other things.
        change("docs/a.md", "a");
        for command in ["add .", "commit -qm b"] {
            git(command);
        }
        assert!(same(&commit));
        change("crates/corelane/b.rs", "a");
        assert!(!same(&commit), "a new file");
        for command in ["add .", "commit -qm c"] {
            git(command);
        }
        assert!(!same(&commit) && same(&git("rev-parse HEAD")));
        change("crates/corelane/b.rs", "b");
        assert!(!same(&git("rev-parse HEAD")), "a change that is not committed");
        git("checkout -q crates");
        // Tests of other targets, what targets share, and modules that only some have the names of.
        change("crates/corelane/tests/mpmc/main.rs", "use corelane::mpmc; // not corelane::handoff");
        for command in ["add .", "commit -qm d"] {
            git(command);
        }
        let commit = git("rev-parse HEAD");
        for (file, changed) in [
            ("crates/corelane/tests/mpmc/calls.rs", [false, true, false]),
            ("crates/corelane/tests/loom_mpmc.rs", [false, false, false]),
            ("crates/corelane/tests/support/a.rs", [true, true, true]),
            ("crates/corelane/examples/a.rs", [false, false, false]),
            ("crates/corelane/src/a.rs", [true, true, true]),
            ("crates/corelane/src/mpmc/a.rs", [false, true, false]),
            ("crates/corelane/src/handoff/a.rs", [false, false, false]),
            // The library knows nothing of the pool.
            ("crates/corelane-pool/src/a.rs", [false, false, true]),
        ] {
            change(file, "a");
            let seen = ["contract lane::", "mpmc ticket::", "pool"].map(|tests| !of(tests, &commit));
            assert_eq!(seen, changed, "{file}");
            fs::remove_file(root.join(file)).unwrap();
        }
        assert!(!of("no-target", &commit));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_failed_or_was_seen_of_other_tests_has_not_passed() {
        let here = root();
        let sources = Sources::now(&here);
        for target in ["contract", "loom"] {
            sources.same.borrow_mut().insert(("abc".into(), target), true);
        }
        let mut records = Records::default();
        let lane = row("lane");
        assert!(!records.has_passed(Column::Contract, lane, &sources));
        records.saw(Column::Contract, "lane", run(3));
        assert!(records.has_passed(Column::Contract, lane, &sources));
        assert!(!records.has_passed(Column::Shuttle, lane, &sources));
        records.saw(Column::Contract, "lane", Run { failed: Some("a".into()), ..run(3) });
        assert!(!records.has_passed(Column::Contract, lane, &sources));
        records.saw(Column::Contract, "lane", Run { tests: "contract others::".into(), ..run(3) });
        assert!(!records.has_passed(Column::Contract, lane, &sources));
        records.saw_mutant("lane/a", "1", Some("loom a".into()), &seen("abc", ""));
        records.saw_mutant("lane/b", "1", None, &seen("abc", ""));
        records.saw_mutant("lane/c", "1", Some("loom a".into()), &seen("abc+", ""));
        let killed = ["lane/a", "lane/b", "lane/c", "lane/d"].map(|mutant| records.was_killed_in(mutant, &sources));
        assert_eq!(killed, [true, false, false, false]);
    }

    fn row(name: &str) -> &'static Row {
        ROWS.iter().find(|row| row.name == name).unwrap()
    }

    fn run(passed: usize) -> Run {
        Run {
            passed,
            failed: None,
            executions: None,
            preemptions: None,
            schedules: None,
            judged: None,
            tests: row("lane").tests(Column::Contract.kind()).unwrap().unwrap().to_string(),
            seen: seen("abc", ""),
        }
    }

    #[test]
    fn the_committed_table_is_what_the_records_make_it() {
        super::run(&Arguments { check: true }).unwrap();
    }

    #[test]
    fn a_cell_without_a_record_is_empty_and_a_failure_is_told() {
        let mut records = Records::default();
        let (lane, linked) = (row("lane"), row("linked"));
        assert_eq!(records.cell(Column::Contract, lane), "");
        assert_eq!(records.killed("lane", 3), "");
        let of = |column: Column, row: &Row| row.tests(column.kind()).unwrap().unwrap().to_string();
        let models =
            Run { tests: of(Column::Loom, lane), executions: Some(12345), preemptions: Some((1, 3)), ..run(5) };
        records.saw(Column::Contract, "lane", run(7));
        records.saw(Column::Loom, "lane", models);
        let failed = Run { tests: of(Column::Loom, linked), failed: Some("a".into()), ..run(5) };
        records.saw(Column::Loom, "linked", failed);
        assert_eq!(records.cell(Column::Contract, lane), "7");
        assert_eq!(records.cell(Column::Loom, lane), "5, 12\u{202f}345 executions, preemptions ≤ 1 to 3");
        assert!(records.cell(Column::Loom, linked).contains("failed"));
    }

    #[test]
    fn a_run_of_other_tests_than_the_row_has_now_is_none() {
        let mut records = Records::default();
        records.saw(Column::Contract, "lane", Run { tests: "contract lane:: -slow".into(), ..run(7) });
        assert_eq!(records.cell(Column::Contract, row("lane")), "");
        assert!(!records.page(&BTreeMap::new()).contains("abc"));
        records.saw(Column::Contract, "lane", run(7));
        assert_eq!(records.cell(Column::Contract, row("lane")), "7");
        assert!(records.page(&BTreeMap::new()).contains("abc"));
    }

    #[test]
    fn a_mutant_that_was_not_run_is_not_killed() {
        let mut records = Records::default();
        let seen = seen("abc", "");
        records.saw_mutant("lane/a", "1", Some("loom lane::b".into()), &seen);
        records.saw_mutant("lane/c", "2", None, &seen);
        records.saw_mutant("lanes/c", "3", Some("loom".into()), &seen);
        assert_eq!(records.killed("lane", 3), "1 of 3, **1 survived**, 1 not run");
    }

    #[test]
    fn a_kill_expires_when_the_text_changes() {
        let digests = |digests: &[(&str, &str)]| {
            digests.iter().map(|&(name, digest)| (name.to_owned(), digest.to_owned())).collect::<BTreeMap<_, _>>()
        };
        let mut records = Records::default();
        for (name, digest) in [("lane/a", "1"), ("lane/b", "2"), ("lane/gone", "3")] {
            records.saw_mutant(name, digest, Some("loom lane::a".into()), &seen("abc", ""));
        }
        records.expire(&digests(&[("lane/a", "1"), ("lane/b", "of another text")]));
        assert_eq!(records.killed("lane", 2), "1 of 2, 1 not run");
        assert_eq!((records.killer("lane/a"), records.killer("lane/b")), (Some("loom lane::a"), None));
        // Records without a digest get the present one, once, but for those that are known to have changed.
        let name = CHANGED_BEFORE[0];
        let old = format!(
            "[mutants.\"lane/a\"]\nkilled_by = \"loom\"\ndate = \"a\"\ncommit = \"b\"\n\n[mutants.\"{name}\"]\ndate = \"a\"\ncommit = \"b\"\n"
        );
        let mut records: Records = toml::from_str(&old).unwrap();
        records.expire(&digests(&[("lane/a", "1"), (name, "2")]));
        assert_eq!(records.mutants.keys().collect::<Vec<_>>(), ["lane/a"]);
        let mut records: Records = toml::from_str(&toml::to_string(&records).unwrap()).unwrap();
        records.expire(&digests(&[("lane/a", "of another text")]));
        assert!(records.mutants.is_empty());
    }

    #[test]
    fn what_is_built_of_changing_sources_is_an_error() {
        let before = seen("abc", "");
        before.still(&Seen { date: "2026-01-02".into(), ..seen("abc", "") }).unwrap();
        before.still(&seen("abd", "")).unwrap_err();
        before.still(&seen("abc+", "a change")).unwrap_err();
        seen("abc+", "a change").still(&seen("abc+", "another")).unwrap_err();
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let mut records = Records::default();
        records.saw(Column::Contract, "lane", run(7));
        records.saw_mutant("lane/a", "1", None, &seen("abc", ""));
        let text = toml::to_string(&records).unwrap();
        let read: Records = toml::from_str(&text).unwrap();
        assert_eq!(read.cell(Column::Contract, row("lane")), "7");
        assert_eq!(read.killed("lane", 1), "0 of 1, **1 survived**");
        assert_eq!(read.mutants["lane/a"].digest.as_deref(), Some("1"));
    }
}
