//! The results of a directory as tables of one Markdown page.

use super::latest;
use crate::record::{PanelRecord, Point, Record};
use crate::stats::short;
use std::fmt::Write;

/// The page: the latest run of each experiment on each machine.
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
            date(record.started),
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

/// The day of a second since 1970, as the proleptic Gregorian calendar has it (Howard Hinnant, `civil_from_days`).
fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
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

/// A line a contender, best first.
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

/// A line a contender and a column an x.
fn by_x(out: &mut String, panel: &PanelRecord, label: &str) {
    let xs = panel.xs();
    head(out, [label.to_owned()].into_iter().chain(xs.iter().map(f64::to_string)).collect());
    for series in &panel.series {
        let cell = |&x: &f64| match series.point(x) {
            None => String::new(),
            Some(Point { stopped: Some(why), .. }) => why.split(':').next().unwrap_or("stopped").to_owned(),
            Some(point) => point.summary().map_or("–".to_owned(), |summary| short(summary.median)),
        };
        row(out, [series.name.clone()].into_iter().chain(xs.iter().map(cell)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{SUMMARY, read};
    use std::path::Path;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, day) in
            [(0, "1970-01-01"), (951_782_399, "2000-02-28"), (951_782_400, "2000-02-29"), (1_795_564_800, "2026-11-25")]
        {
            assert_eq!(date(seconds), day);
        }
    }

    /// What is kept was made from what is kept.
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
