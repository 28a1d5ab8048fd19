//! Results as tables in Markdown: all of a directory as one page, or chosen ones inside of a page of prose.

use super::{day, latest, read};
use crate::record::{PanelRecord, Point, Record};
use crate::stats::short;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Makes the page: the latest run of each experiment on each machine.
pub(super) fn render(records: &[Record]) -> String {
    let mut out = "\
<!-- Made by `corelane-bench report --markdown`. Do not edit. -->

# Results

Medians; with one column also the least and the most of all samples.
"
    .to_owned();
    latest(records).into_iter().for_each(|record| section(&mut out, record));
    out
}

/// What a person wants to see at once of a run.
pub(crate) fn shown(record: &Record) -> String {
    let mut out = String::new();
    section(&mut out, record);
    let _ = writeln!(
        out,
        "\nRepeats {}.{}",
        record.repeats,
        if record.quick { " QUICK: figures mean nothing." } else { "" }
    );
    let left_out = record.panels.iter().flat_map(|panel| panel.left_out.iter().map(move |it| (panel, it)));
    left_out.for_each(|(panel, it)| _ = writeln!(out, "- {}, {}: {}", panel.title, it.name, it.reason));
    out
}

fn section(out: &mut String, record: &Record) {
    let _ = writeln!(out, "\n## {}: {}\n", record.experiment, record.title);
    record.machine.lines().iter().for_each(|line| _ = writeln!(out, "- {line}"));
    let _ = writeln!(
        out,
        "- {}, {} rounds of about {} ms a sample",
        day(record.started),
        record.rounds,
        short(record.sample_seconds * 1e3)
    );
    record.notes.iter().for_each(|note| _ = writeln!(out, "- {note}"));
    for panel in record.panels.iter().filter(|panel| !panel.series.is_empty()) {
        let _ = writeln!(out, "\n### {}, {}\n", panel.title, panel.y.label);
        match &panel.x {
            None => by_rank(out, panel),
            Some(axis) => by_x(out, panel, &axis.label),
        }
    }
}

/// A median, or a word for the reason why there is none.
fn cell(point: Option<&Point>) -> String {
    match point {
        None => String::new(),
        Some(Point { stopped: Some(why), .. }) => why.split(':').next().unwrap_or("stopped").to_owned(),
        Some(point) => point.summary().map_or("–".to_owned(), |summary| short(summary.median)),
    }
}

fn row(out: &mut String, cells: impl IntoIterator<Item = String>) {
    cells.into_iter().for_each(|cell| _ = write!(out, "| {} ", cell.replace('|', "\\|")));
    out.push_str("|\n");
}

fn head(out: &mut String, cells: Vec<String>) {
    let rule = "---:|".repeat(cells.len() - 1);
    row(out, cells);
    let _ = writeln!(out, "|---|{rule}");
}

/// A row for each contender, best first.
fn by_rank(out: &mut String, panel: &PanelRecord) {
    let Some(&x) = panel.xs().first() else { return };
    head(out, ["contender", "median", "least", "most"].map(str::to_owned).to_vec());
    for (series, point) in panel.ranked(x) {
        let figures = match (point.summary(), &point.stopped) {
            (_, Some(why)) => [why.clone(), String::new(), String::new()],
            (Some(summary), None) => [summary.median, summary.least, summary.most].map(short),
            (None, None) => continue,
        };
        row(out, [series.name.clone()].into_iter().chain(figures));
    }
}

/// A row for each contender and a column for each x.
fn by_x(out: &mut String, panel: &PanelRecord, label: &str) {
    let xs = panel.xs();
    head(out, [label.to_owned()].into_iter().chain(xs.iter().map(f64::to_string)).collect());
    for series in &panel.series {
        row(out, [series.name.clone()].into_iter().chain(xs.iter().map(|&x| cell(series.point(x)))));
    }
}

/// The lines around a table of a page of prose. The first names a directory and an experiment's panel, and behind `|`
/// contenders and columns, if not all are wanted: `zen5 crowd/even | ticket; scq | 1; 16`.
const TABLE: (&str, &str, &str) = ("<!-- table: ", " -->", "<!-- end -->");

/// Makes the tables of a page anew.
pub(super) fn fill(page: &str, results: &Path) -> Result<String, String> {
    let mut known = BTreeMap::new();
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let _ = writeln!(out, "{line}");
        let Some(wanted) = line.strip_prefix(TABLE.0) else { continue };
        let mut wanted = wanted.to_owned();
        while !wanted.ends_with(TABLE.1) {
            let next = lines.next().ok_or_else(|| format!("the page ends in '{wanted}'"))?;
            let _ = writeln!(out, "{next}");
            let _ = write!(wanted, " {next}");
        }
        let wanted = wanted.trim_end_matches(TABLE.1);
        let directory = wanted.split(' ').next().unwrap_or_default();
        if !known.contains_key(directory) {
            known.insert(directory.to_owned(), read(&results.join(directory))?);
        }
        table(&mut out, wanted, &known[directory]).ok_or_else(|| format!("no results are called '{wanted}'"))?;
        if !lines.any(|line| line == TABLE.2) {
            return Err(format!("the table '{wanted}' does not end with {}", TABLE.2));
        }
        let _ = writeln!(out, "{}", TABLE.2);
    }
    Ok(out)
}

fn table(out: &mut String, wanted: &str, records: &[Record]) -> Option<()> {
    let mut parts = wanted.split(" | ");
    let (directory, name) = parts.next()?.split_once(' ')?;
    let (experiment, id) = name.split_once('/')?;
    let record = latest(records).into_iter().find(|record| record.experiment == experiment)?;
    let mut panel = record.panels.iter().find(|panel| panel.id == id)?.clone();
    if let Some(rows) = parts.next() {
        let rows: Vec<_> = rows.split("; ").collect();
        panel.series.retain(|series| rows.contains(&series.name.as_str()));
        (panel.series.len() == rows.len()).then_some(())?;
    }
    if let Some(columns) = parts.next() {
        let columns: Vec<f64> = columns.split("; ").map(|x| x.parse().ok()).collect::<Option<_>>()?;
        panel.series.iter_mut().for_each(|series| series.points.retain(|point| columns.contains(&point.x)));
        (panel.xs().len() == columns.len()).then_some(())?;
    }
    let (title, unit, day) = (&panel.title, &panel.y.label, day(record.started));
    let _ = writeln!(out, "{experiment}: {title}, {unit} ({directory}, {day})\n");
    match &panel.x {
        None => by_rank(out, &panel),
        Some(axis) => by_x(out, &panel, &axis.label),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::SUMMARY;

    /// The tables between the prose match the committed results.
    #[test]
    fn the_tables_of_the_benchmarks_are_those_of_the_results() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = std::fs::read_to_string(root.join("docs/benchmarks.md")).unwrap();
        let results = root.join("results");
        assert!(
            page == fill(&page, &results).unwrap(),
            "run `corelane-bench report results --page docs/benchmarks.md`"
        );
        assert!(page.matches(TABLE.0).count() > 5);
        for wrong in
            ["none peers/one.l3", "amd-epyc-zen5-2-vcpus peers/none", "amd-epyc-zen5-2-vcpus peers/one.l3 | none"]
        {
            fill(&format!("<!-- table: {wrong} -->\n<!-- end -->\n"), &results).unwrap_err();
        }
        fill("<!-- table: amd-epyc-zen5-2-vcpus peers/one.l3 -->\n", &results).unwrap_err();
    }

    /// The committed tables match the committed results.
    #[test]
    fn every_summary_is_that_of_its_results() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
        let mut summaries = 0;
        for entry in std::fs::read_dir(results).unwrap() {
            let directory = entry.unwrap().path();
            let kept = std::fs::read_to_string(directory.join(SUMMARY)).unwrap_or_default();
            assert!(
                kept == render(&read(&directory).unwrap()),
                "{}: run `corelane-bench report --markdown` for it",
                directory.display()
            );
            summaries += 1;
        }
        assert!(summaries >= 3, "{summaries}");
    }
}
