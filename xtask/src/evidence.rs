//! The records of test runs, in `target/evidence`, and the table that is made of them.
//!
//! A record holds the outcome of a run, and what it was of: the digest of the sources, and the tests or the patch.
//! The table is of the present sources, and outcomes of others are not in it. `cargo xtask verify` uses the records to
//! go on where it was interrupted.

use crate::cargo::{End, Outcome, Tests};
use crate::tool::Tool;
use crate::workspace::{Result, root};
use crate::{mutants, rows, tree};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;

const RECORDS: &str = "target/evidence/records.json";

/// A run of a row's tests under a tool, or of a test that has found a mutant.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Run {
    of: String,
    pub(crate) tests: String,
    /// The first test that failed, or another way in which the run ended.
    pub(crate) failed: Option<String>,
    passed: u64,
    /// The numbers that the tests report, by their units.
    counts: BTreeMap<String, u64>,
}

impl Run {
    pub(crate) fn new(outcome: &Outcome, tests: &Tests, of: String) -> Self {
        let failed = match &outcome.end {
            End::Passed => None,
            End::Failed(how) | End::Died(how) => Some(how.clone()),
            End::TimedOut => Some("a hang".to_owned()),
        };
        Self { of, tests: tests.to_string(), failed, passed: outcome.passed, counts: outcome.counts.clone() }
    }

    /// Of a mutant that no test has found.
    pub(crate) fn survived(of: String) -> Self {
        Self { of, failed: Some("it survived".to_owned()), ..Self::default() }
    }
}

/// The latest outcomes, by column and row, and by mutant.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Records(BTreeMap<String, Run>);

impl Records {
    pub(crate) fn read() -> Result<Self> {
        match fs::read_to_string(root().join(RECORDS)) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| format!("{RECORDS}: cannot be read: {error}; correct or remove it")),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Adds to the records on disk, because another command may have written some meanwhile.
    pub(crate) fn add(key: String, run: Run) -> Result<()> {
        let mut records = Self::read()?;
        records.0.insert(key, run);
        let text = serde_json::to_string_pretty(&records).map_err(|error| error.to_string())?;
        let written = fs::create_dir_all(root().join("target/evidence"));
        let written = written.and_then(|()| fs::write(root().join(RECORDS), text));
        written.map_err(|error| format!("{RECORDS}: cannot be written: {error}"))
    }

    /// The latest run, of whatever sources.
    pub(crate) fn last(&self, key: &str) -> Option<&Run> {
        self.0.get(key)
    }

    fn get(&self, key: &str, of: &str) -> Option<&Run> {
        self.0.get(key).filter(|run| run.of == of)
    }

    pub(crate) fn has_passed(&self, key: &str, of: &str) -> bool {
        self.get(key, of).is_some_and(|run| run.failed.is_none())
    }

    /// A row of the table, of these keys and what each must be of.
    fn row(&self, claim: &str, command: &str, what: &str, keys: &[(String, String)]) -> String {
        let runs: Vec<_> = keys.iter().filter_map(|(key, of)| Some((key, self.get(key, of)?))).collect();
        let mut counts = BTreeMap::from([("tests", 0)]);
        let mut passed = 0;
        let mut failures = String::new();
        for (key, run) in runs {
            match &run.failed {
                None => passed += 1,
                Some(failed) => failures += &format!("; **failed**: {key}: {failed}"),
            }
            *counts.entry("tests").or_default() += run.passed;
            run.counts.iter().for_each(|(unit, count)| *counts.entry(unit).or_default() += count);
        }
        let counts: Vec<_> = counts.iter().map(|(unit, count)| format!("{count} {unit}")).collect();
        let all = keys.len();
        format!("| {claim} | `cargo xtask {command}` | {passed} of {all} {what}: {}{failures} |\n", counts.join(", "))
    }

    fn table(&self, rows: &[rows::Row], sources: &str) -> Result<String> {
        let mut table = "| claim | command | count |\n|---|---|---|\n".to_owned();
        for tool in Tool::value_variants() {
            let mut keys = Vec::new();
            for row in rows {
                keys.extend(row.tests(tool.kind())?.map(|tests| (tool.of_row(row), format!("{sources} {tests}"))));
            }
            table += &self.row(tool.claim(), &format!("run {}", tool.key()), "queues", &keys);
        }
        let mut mutants = mutants::all()?;
        mutants.retain(|mutant| rows.iter().any(|row| row.name == mutant.queue()));
        let keys: Vec<_> = mutants.iter().map(|mutant| (mutant.key(), mutant.of(sources))).collect();
        Ok(table + &self.row("Some test finds each hand-made fault.", "mutants", "mutants", &keys))
    }
}

#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Only of these queues
    #[arg(long)]
    row: Vec<String>,
}

/// Prints the table of what was seen of the present sources.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    print!("{}", Records::read()?.table(&rows::named(&arguments.row)?, &tree::digest()?)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_or_was_of_others_has_not_passed() {
        let run = |failed: Option<&str>, of: &str| {
            let counts = BTreeMap::from([("schedules".to_owned(), 40)]);
            Run { of: of.into(), failed: failed.map(Into::into), passed: 3, counts, ..Run::default() }
        };
        let row = |records: &Records| {
            records.row("It holds.", "run it", "queues", &["a", "b"].map(|key| (key.into(), "these".into())))
        };
        let mut records = Records::default();
        assert!(!records.has_passed("a", "these"));
        assert_eq!(row(&records), "| It holds. | `cargo xtask run it` | 0 of 2 queues: 0 tests |\n");
        records.0.insert("a".into(), run(None, "these"));
        records.0.insert("b".into(), run(None, "others"));
        assert!(records.has_passed("a", "these") && !records.has_passed("b", "these"));
        assert!(row(&records).contains("| 1 of 2 queues: 40 schedules, 3 tests |"));
        records.0.insert("a".into(), run(Some("x"), "these"));
        assert!(!records.has_passed("a", "these"));
        assert!(row(&records).contains("| 0 of 2 queues: 40 schedules, 3 tests; **failed**: a: x |"));
    }
}
