//! The records of test runs, in `target/evidence`, and the table that `cargo xtask evidence` prints of them.
//!
//! A record holds the outcome of a command and the digest of the sources it ran over. The table describes one commit:
//! outcomes of other sources are not in it, and a cell without a record is empty. `cargo xtask verify` uses the records
//! to continue where it was interrupted.

use crate::cargo::{End, Outcome, Tests};
use crate::column::Column;
use crate::mutant::{self, Mutant};
use crate::rows::{ROWS, Row};
use crate::tree;
use crate::workspace::{Result, root};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const RECORDS: &str = "target/evidence/records.toml";

/// A run of a row's tests under a tool.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    /// How many tests passed.
    pub(crate) passed: usize,
    /// The first test that failed, or another way in which the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    /// How many executions loom explored, and the least and most preemptions it allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) executions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preemptions: Option<(u64, u64)>,
    /// How many schedules shuttle ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schedules: Option<u64>,
    /// How many histories, or sequences of calls, the tests report that they judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) judged: Option<u64>,
    tests: String,
    /// The digest of the sources.
    sources: String,
}

impl Run {
    pub(crate) fn new(outcome: &Outcome, tests: &Tests, sources: &str) -> Self {
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
            sources: sources.to_owned(),
        }
    }
}

/// The outcome of a mutant.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Fate {
    /// The test that found the mutant. None if it survived.
    #[serde(skip_serializing_if = "Option::is_none")]
    killed_by: Option<String>,
    /// The digest of the mutant's text.
    digest: String,
    /// The digest of the sources without the mutant.
    sources: String,
}

/// The latest outcomes, by column and row, and by mutant.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Records {
    #[serde(default)]
    runs: BTreeMap<String, BTreeMap<String, Run>>,
    #[serde(default)]
    mutants: BTreeMap<String, Fate>,
}

impl Records {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        match fs::read_to_string(root.join(RECORDS)) {
            Ok(text) => toml::from_str(&text)
                .map_err(|error| format!("{RECORDS}: cannot be read: {error}; correct or remove it")),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Adds to the records on disk, because another command may have written some since this one read them.
    pub(crate) fn update(root: &Path, add: impl FnOnce(&mut Self)) -> Result<()> {
        let mut records = Self::read(root)?;
        add(&mut records);
        let text = toml::to_string(&records).map_err(|error| error.to_string())?;
        tree::write(&root.join(RECORDS), text.as_bytes())
    }

    pub(crate) fn saw(&mut self, column: Column, row: &str, run: Run) {
        self.runs.entry(column.key().to_owned()).or_default().insert(row.to_owned(), run);
    }

    pub(crate) fn saw_mutant(&mut self, mutant: &Mutant, killed_by: Option<String>, sources: &str) {
        let fate = Fate { killed_by, digest: mutant.digest(), sources: sources.to_owned() };
        self.mutants.insert(mutant.name.clone(), fate);
    }

    /// The test that has found a mutant, with any sources, in the form that [`Tests`] parses.
    pub(crate) fn killer(&self, mutant: &Mutant) -> Option<&str> {
        let killed_by = self.mutants.get(&mutant.name)?.killed_by.as_deref()?;
        Some(killed_by.split_once(": ").map_or(killed_by, |(tests, _)| tests))
    }

    /// Whether a mutant was killed in these sources.
    pub(crate) fn was_killed_in(&self, mutant: &Mutant, sources: &str) -> bool {
        self.fate(mutant, sources).is_some_and(|fate| fate.killed_by.is_some())
    }

    /// The outcome of a mutant with its present text, in these sources.
    fn fate(&self, mutant: &Mutant, sources: &str) -> Option<&Fate> {
        self.mutants.get(&mutant.name).filter(|fate| fate.sources == sources && fate.digest == mutant.digest())
    }

    /// Whether a row has passed with these sources.
    pub(crate) fn has_passed(&self, column: Column, row: &Row, sources: &str) -> bool {
        self.run(column, row, sources).is_some_and(|run| run.failed.is_none())
    }

    /// The run of the row's present tests, in these sources.
    fn run(&self, column: Column, row: &Row, sources: &str) -> Option<&Run> {
        let present = row.tests(column.kind()).ok()??.to_string();
        self.runs.get(column.key())?.get(row.name).filter(|run| run.sources == sources && run.tests == present)
    }

    fn cell(&self, column: Column, row: &Row, sources: &str) -> String {
        let Some(run) = self.run(column, row, sources) else { return String::new() };
        if let Some(failed) = &run.failed {
            return format!("**failed**: {failed}");
        }
        let mut text = run.passed.to_string();
        if let Some(executions) = run.executions {
            let _ = write!(text, ", {}", grouped(executions));
        }
        if let Some((least, most)) = run.preemptions {
            let bound = if least == most { most.to_string() } else { format!("{least}–{most}") };
            let _ = write!(text, ", ≤ {bound}");
        }
        if let Some(schedules) = run.schedules {
            let _ = write!(text, ", {}", grouped(schedules));
        }
        if let Some(count) = run.judged {
            let _ = write!(text, ", {}", grouped(count));
        }
        text
    }

    /// The outcomes of one queue's mutants.
    fn killed(&self, queue: &str, mutants: &[Mutant], sources: &str) -> String {
        let fates: Vec<_> = mutants.iter().filter(|m| m.queue == queue).map(|m| self.fate(m, sources)).collect();
        let seen = fates.iter().flatten().count();
        if seen == 0 {
            return String::new();
        }
        let killed = fates.iter().flatten().filter(|fate| fate.killed_by.is_some()).count();
        let mut text = format!("{killed} of {}", fates.len());
        if killed != seen {
            let _ = write!(text, ", **{} survived**", seen - killed);
        }
        if seen != fates.len() {
            let _ = write!(text, ", {} not run", fates.len() - seen);
        }
        text
    }

    /// The table of these sources, which are `commit`.
    fn table(&self, mutants: &[Mutant], sources: &str, commit: &str) -> String {
        let mut table = HEAD.replace("COMMIT", commit);
        let _ = writeln!(table, "| queue | {} | mutants killed |", Column::ALL.map(Column::title).join(" | "));
        let _ = writeln!(table, "|---|{}---|", "---|".repeat(Column::ALL.len()));
        let mut family = "";
        for row in &ROWS {
            if row.family != family {
                family = row.family;
                let _ = writeln!(table, "| *{family}* |{}|", " |".repeat(Column::ALL.len()));
            }
            let cells = Column::ALL.map(|column| self.cell(column, row, sources)).join(" | ");
            let _ = writeln!(table, "| `{}` | {cells} | {} |", row.name, self.killed(row.name, mutants, sources));
        }
        table
    }
}

const HEAD: &str = "\
Commit COMMIT. A cell: tests that passed; then of loom executions and the bound on preemptions, of shuttle schedules, of
fuzzed sequences, of histories their number. Empty: no such test, or not run. `cargo xtask run --help` says what each
column proves.

";

/// The number with a space between thousands.
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

/// The table of the present sources, which are `commit`.
pub(crate) fn table(root: &Path, commit: &str) -> Result<String> {
    Ok(Records::read(root)?.table(&mutant::all(root)?, &tree::digest(root)?, commit))
}

/// Prints the table.
pub(crate) fn run() -> Result<()> {
    let root = root();
    print!("{}", table(&root, &tree::commit(&root)?)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> &'static Row {
        ROWS.iter().find(|row| row.name == name).unwrap()
    }

    fn run_of(column: Column, row: &Row, passed: usize) -> Run {
        Run {
            passed,
            failed: None,
            executions: None,
            preemptions: None,
            schedules: None,
            judged: None,
            tests: row.tests(column.kind()).unwrap().unwrap().to_string(),
            sources: "these".into(),
        }
    }

    fn run(passed: usize) -> Run {
        run_of(Column::Contract, row("lane"), passed)
    }

    /// Three mutants of one queue.
    fn lanes() -> Vec<Mutant> {
        let mut all = mutant::all(&root()).unwrap();
        all.retain(|mutant| mutant.queue == "lane");
        all.truncate(3);
        all
    }

    #[test]
    fn what_failed_or_was_seen_of_others_has_not_passed() {
        let mut records = Records::default();
        let lane = row("lane");
        assert!(!records.has_passed(Column::Contract, lane, "these"));
        records.saw(Column::Contract, "lane", run(3));
        assert!(records.has_passed(Column::Contract, lane, "these"));
        assert!(!records.has_passed(Column::Contract, lane, "others"));
        assert!(!records.has_passed(Column::Shuttle, lane, "these"));
        records.saw(Column::Contract, "lane", Run { failed: Some("a".into()), ..run(3) });
        assert!(!records.has_passed(Column::Contract, lane, "these"));
        records.saw(Column::Contract, "lane", Run { tests: "contract others::".into(), ..run(3) });
        assert!(!records.has_passed(Column::Contract, lane, "these"));
    }

    #[test]
    fn a_cell_is_empty_without_a_record_of_these_tests_and_sources() {
        let mut records = Records::default();
        let (lane, linked) = (row("lane"), row("linked"));
        let cell = |records: &Records| records.cell(Column::Contract, lane, "these");
        assert_eq!(cell(&records), "");
        records.saw(Column::Contract, "lane", Run { tests: "contract lane:: -slow".into(), ..run(7) });
        assert_eq!(cell(&records), "");
        records.saw(Column::Contract, "lane", Run { sources: "others".into(), ..run(7) });
        assert_eq!(cell(&records), "");
        records.saw(Column::Contract, "lane", run(7));
        assert_eq!(cell(&records), "7");
        let models = run_of(Column::Loom, lane, 5);
        records.saw(Column::Loom, "lane", Run { executions: Some(12345), preemptions: Some((1, 3)), ..models });
        let expected = "5, 12\u{202f}345, ≤ 1–3";
        assert_eq!(records.cell(Column::Loom, lane, "these"), expected);
        records.saw(Column::Loom, "linked", Run { failed: Some("a".into()), ..run_of(Column::Loom, linked, 5) });
        assert!(records.cell(Column::Loom, linked, "these").contains("failed"));
    }

    #[test]
    fn the_table_names_its_commit() {
        assert!(Records::default().table(&[], "these", "abc").starts_with("Commit abc."));
    }

    #[test]
    fn a_mutant_that_was_not_run_as_it_is_now_is_not_killed() {
        let mut records = Records::default();
        let mutants = lanes();
        let [a, b, c] = &*mutants else { panic!("fewer mutants than three") };
        assert_eq!(records.killed("lane", &mutants, "these"), "");
        records.saw_mutant(a, Some("loom lane::b: a hang".into()), "these");
        records.saw_mutant(b, None, "these");
        records.saw_mutant(c, Some("loom".into()), "others");
        assert_eq!(records.killed("lane", &mutants, "these"), "1 of 3, **1 survived**, 1 not run");
        assert_eq!([a, b, c].map(|mutant| records.was_killed_in(mutant, "these")), [true, false, false]);
        // The test that found it is tried first, whatever has changed.
        assert_eq!([a, b, c].map(|mutant| records.killer(mutant)), [Some("loom lane::b"), None, Some("loom")]);
        records.mutants.get_mut(&a.name).unwrap().digest = "of another text".into();
        assert!(!records.was_killed_in(a, "these"));
        assert_eq!(records.killed("lane", &mutants, "these"), "0 of 3, **1 survived**, 2 not run");
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let root = std::env::temp_dir().join(format!("corelane-records-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let mutants = lanes();
        Records::update(&root, |records| records.saw(Column::Contract, "lane", run(7))).unwrap();
        Records::update(&root, |records| records.saw_mutant(&mutants[0], None, "these")).unwrap();
        let read = Records::read(&root).unwrap();
        assert_eq!(read.cell(Column::Contract, row("lane"), "these"), "7");
        assert_eq!(read.killed("lane", &mutants, "these"), "0 of 3, **1 survived**, 2 not run");
        fs::remove_dir_all(root).unwrap();
    }
}
