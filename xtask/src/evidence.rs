//! The records of what was seen, `docs/evidence.toml`, and the table that is made of them, `docs/evidence.md`.
//!
//! A record is a command that ran, at which commit, and what it came to. The table has nothing else to say: a cell without a record is
//! empty.

use crate::cargo::{End, Outcome, Tests};
use crate::rows::ROWS;
use crate::tool::Column;
use crate::{Result, mutants, root, tree};
use serde::{Deserialize, Serialize};
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
}

impl Seen {
    pub(crate) fn now(root: &Path) -> Self {
        let output = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).current_dir(root).output();
            output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let changed = output("git", &["status", "--porcelain", "--", "crates", "xtask", "Cargo.toml", "Cargo.lock"]);
        let mark = if changed.is_empty() { "" } else { "+" };
        let commit = output("git", &["rev-parse", "--short=9", "HEAD"]) + mark;
        Self { date: output("date", &["-u", "+%Y-%m-%d"]), commit }
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

impl Records {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        match fs::read_to_string(root.join(RECORDS)) {
            Ok(text) => toml::from_str(&text).map_err(|error| format!("{RECORDS}: {error}")),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Writes the records, without those of rows and mutants that are no more.
    pub(crate) fn write(&mut self, root: &Path) -> Result<()> {
        let names: Vec<_> = mutants::all(root)?.into_iter().map(|mutant| mutant.name).collect();
        self.mutants.retain(|name, _| names.contains(name));
        for rows in self.runs.values_mut() {
            rows.retain(|name, _| ROWS.iter().any(|row| row.name == *name));
        }
        let text = toml::to_string(self).map_err(|error| error.to_string())?;
        let head = "# Written by `cargo xtask`: what ran, when, of which sources, and what it came to.\n\n";
        tree::write(&root.join(RECORDS), format!("{head}{text}").as_bytes())
    }

    pub(crate) fn saw(&mut self, column: Column, row: &str, run: Run) {
        self.runs.entry(column.key().to_owned()).or_default().insert(row.to_owned(), run);
    }

    pub(crate) fn saw_mutant(&mut self, name: &str, killed_by: Option<String>, seen: &Seen) {
        self.mutants.insert(name.to_owned(), Mutant { killed_by, seen: seen.clone() });
    }

    /// The test that has found a mutant, as [`Tests`] reads it.
    pub(crate) fn killer(&self, mutant: &str) -> Option<&str> {
        let killed_by = self.mutants.get(mutant)?.killed_by.as_deref()?;
        Some(killed_by.split_once(": ").map_or(killed_by, |(tests, _)| tests))
    }

    fn cell(&self, column: Column, row: &str) -> String {
        let Some(run) = self.runs.get(column.key()).and_then(|rows| rows.get(row)) else { return String::new() };
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
            let cells = Column::ALL.map(|column| self.cell(column, row.name)).join(" | ");
            let killed = self.killed(row.name, mutants.get(row.name).copied().unwrap_or(0));
            let _ = writeln!(page, "| `{}` | {cells} | {killed} |", row.name);
        }
        page.push_str("\n## What each column says\n\n");
        for column in Column::ALL {
            let _ = writeln!(page, "- **{}**. {}", column.title(), column.meaning());
            let Some(runs) = self.runs.get(column.key()).filter(|runs| !runs.is_empty()) else {
                page.push_str("  Nothing was run.\n");
                continue;
            };
            let mut seen: Vec<_> = runs.values().map(|run| (&*run.seen.date, &*run.seen.commit)).collect();
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
test, or that nobody ran it. The commands are below the table.

";

const MUTANTS: &str = "- **mutants killed**. Hand-made faults, one at a time, each of which some test must find: an ordering weakened, a look dropped, a wake-up
  too early. `xtask/mutants` has them, with what is broken in each. A mutant that does not compile counts as nothing. `cargo xtask mutants --record`.
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

/// Writes the table from the records.
pub(crate) fn write(root: &Path) -> Result<String> {
    let page = Records::read(root)?.page(&mutants::count(root)?);
    tree::write(&root.join(TABLE), page.as_bytes())?;
    Ok(page)
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

    fn run(passed: usize) -> Run {
        Run {
            passed,
            failed: None,
            executions: None,
            preemptions: None,
            schedules: None,
            judged: None,
            tests: "contract lane::".into(),
            seen: Seen { date: "2026-01-01".into(), commit: "abc".into() },
        }
    }

    #[test]
    fn the_committed_table_is_what_the_records_make_it() {
        super::run(&Arguments { check: true }).unwrap();
    }

    #[test]
    fn a_cell_without_a_record_is_empty_and_a_failure_is_told() {
        let mut records = Records::default();
        assert_eq!(records.cell(Column::Contract, "lane"), "");
        assert_eq!(records.killed("lane", 3), "");
        records.saw(Column::Contract, "lane", run(7));
        records.saw(Column::Loom, "lane", Run { executions: Some(12345), preemptions: Some((1, 3)), ..run(5) });
        records.saw(Column::Loom, "linked", Run { failed: Some("a".into()), ..run(5) });
        assert_eq!(records.cell(Column::Contract, "lane"), "7");
        assert_eq!(records.cell(Column::Loom, "lane"), "5, 12\u{202f}345 executions, preemptions ≤ 1 to 3");
        assert!(records.cell(Column::Loom, "linked").contains("failed"));
    }

    #[test]
    fn a_mutant_that_was_not_run_is_not_killed() {
        let mut records = Records::default();
        let seen = run(0).seen;
        records.saw_mutant("lane/a", Some("loom lane::b".into()), &seen);
        records.saw_mutant("lane/c", None, &seen);
        records.saw_mutant("lanes/c", Some("loom".into()), &seen);
        assert_eq!(records.killed("lane", 3), "1 of 3, **1 survived**, 1 not run");
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let mut records = Records::default();
        records.saw(Column::Contract, "lane", run(7));
        records.saw_mutant("lane/a", None, &run(0).seen);
        let text = toml::to_string(&records).unwrap();
        let read: Records = toml::from_str(&text).unwrap();
        assert_eq!(read.cell(Column::Contract, "lane"), "7");
        assert_eq!(read.killed("lane", 1), "0 of 1, **1 survived**");
    }
}
