//! The results of a directory as tables of one Markdown page.

use super::{day, latest};
use crate::record::{PanelRecord, Record};
use crate::stats::short;
use crate::table::cell;
use std::fmt::Write;

/// Makes the page: the latest run of each experiment on each machine.
pub(super) fn render(records: &[Record]) -> String {
    let mut out = "\
<!-- Made by `corelane-bench report --markdown`. Do not edit. -->

# Results

Medians; with one column also the least and the most of all samples.
"
    .to_owned();
    for record in latest(records) {
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
                None => by_rank(&mut out, panel),
                Some(axis) => by_x(&mut out, panel, &axis.label),
            }
        }
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{SUMMARY, read};
    use std::path::Path;

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
