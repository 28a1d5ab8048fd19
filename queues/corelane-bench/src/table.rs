//! Results as text.

use crate::record::{PanelRecord, Point, Record};
use crate::stats::short;
use std::fmt::Write;

/// The parts of a record that a person wants to see at once.
pub(crate) fn render(record: &Record) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "\n{}: {}", record.experiment, record.title);
    let _ = writeln!(out, "repeats {}", record.repeats);
    for line in record.machine.lines() {
        let _ = writeln!(out, "  {line}");
    }
    let _ = writeln!(
        out,
        "  {} rounds of about {} ms a sample in rotated order{}; median (least-most)",
        record.rounds,
        short(record.sample_seconds * 1e3),
        if record.quick { "; QUICK: the figures mean nothing" } else { "" }
    );
    for note in &record.notes {
        let _ = writeln!(out, "  ! {note}");
    }
    for panel in &record.panels {
        let _ = writeln!(out, "\n{}", panel.title);
        match &panel.x {
            None => by_rank(&mut out, panel),
            Some(axis) => by_x(&mut out, panel, &axis.label),
        }
        for left_out in &panel.left_out {
            let _ = writeln!(out, "  {}: {}", left_out.name, left_out.reason);
        }
    }
    out
}

/// A row for each contender, best first.
fn by_rank(out: &mut String, panel: &PanelRecord) {
    let Some(&x) = panel.xs().first() else { return };
    let ranked = panel.ranked(x);
    let width = ranked
        .iter()
        .map(|(series, _)| series.name.chars().count())
        .max()
        .unwrap_or(0)
        .max(panel.y.label.chars().count());
    let _ = writeln!(out, "  {:width$}  {:>9}  {:>19}  {:>8}", panel.y.label, "median", "least-most", "CPU/wall");
    for (series, point) in ranked {
        let _ = match (point.summary(), &point.stopped) {
            (_, Some(stopped)) => writeln!(out, "  {:width$}  {stopped}", series.name),
            (Some(summary), None) => writeln!(
                out,
                "  {:width$}  {:>9}  {:>19}  {:>8}",
                series.name,
                short(summary.median),
                format!("{}-{}", short(summary.least), short(summary.most)),
                short(cpu_per_wall(point)),
            ),
            (None, None) => Ok(()),
        };
    }
}

/// A row for each contender and a column for each x.
fn by_x(out: &mut String, panel: &PanelRecord, label: &str) {
    let xs = panel.xs();
    let width = panel.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0).max(label.len());
    let _ = write!(out, "  {label:width$}");
    for &x in &xs {
        let _ = write!(out, "  {x:>8}");
    }
    let _ = writeln!(out, "    ({})", panel.y.label);
    let mut stopped = Vec::new();
    for series in &panel.series {
        let _ = write!(out, "  {:width$}", series.name);
        for &x in &xs {
            let point = panel.point(&series.name, x);
            if let Some(Point { stopped: Some(why), .. }) = point {
                stopped.push(format!("{} at {x} {why}", series.name));
            }
            let _ = write!(out, "  {:>8}", cell(point));
        }
        out.push('\n');
    }
    for line in stopped {
        let _ = writeln!(out, "  {line}");
    }
}

/// A median, or a word for the reason why there is none.
pub(crate) fn cell(point: Option<&Point>) -> String {
    match point {
        None => String::new(),
        Some(Point { stopped: Some(why), .. }) => why.split(':').next().unwrap_or("stopped").to_owned(),
        Some(point) => point.summary().map_or("–".to_owned(), |summary| short(summary.median)),
    }
}

/// How many CPUs were busy.
pub(crate) fn cpu_per_wall(point: &Point) -> f64 {
    let (cpu, wall) = point.samples.iter().fold((0.0, 0.0), |(cpu, wall), s| (cpu + s.cpu_s, wall + s.wall_s));
    cpu / wall
}
