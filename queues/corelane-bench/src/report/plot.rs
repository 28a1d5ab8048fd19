//! Plots as SVG. They take their colours from the page, so they follow light and dark.

use super::html::{STYLE, escape};
use super::scale::{Mark, Ruler};
use crate::contender::Kind;
use crate::plan::Scale;
use crate::record::{PanelRecord, Point, SeriesRecord};
use crate::stats::{Summary, short};
use std::fmt::Write;

const WIDTH: f64 = 860.0;

/// The plot of a panel: ranks if nothing varies along x, lines otherwise. Empty if there is nothing to show.
pub(super) fn panel(panel: &PanelRecord) -> String {
    match &panel.x {
        _ if panel.series.is_empty() => String::new(),
        None => ranks(panel),
        Some(_) => lines(panel),
    }
}

/// The plot of a panel as a document of its own, with the page's style and background.
pub(super) fn alone(panel: &PanelRecord) -> String {
    let plot = self::panel(panel);
    let start = plot.find('>').map_or(0, |end| end + 1);
    let (tag, content) = plot.split_at(start);
    format!(
        "{} xmlns=\"http://www.w3.org/2000/svg\"><style>{STYLE}</style>\
         <rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>{content}\n",
        tag.trim_end_matches('>')
    )
}

/// The class that gives a series its colour, the same in every plot. Each design has a colour, and its printed form
/// shares it. Other crates are grey and told apart by their labels.
fn colour(series: &SeriesRecord) -> &'static str {
    let name = series.name.to_lowercase();
    let own = matches!(series.kind, Kind::Corelane | Kind::Paper);
    match series.kind {
        Kind::Roofline => "roof",
        _ if own && name.starts_with("lane") => "c-lane",
        _ if own && (name.starts_with("bqueue") || name.starts_with("b-queue")) => "c-bqueue",
        _ if own && name.starts_with("mcring") => "c-mcring",
        _ if own && (name.starts_with("lamport") || name.starts_with("basic")) => "c-lamport",
        _ if own && (name.starts_with("fastforward") || name.starts_with("fast")) => "c-fastforward",
        _ if own && name.starts_with("multiline") => "c-multiline",
        _ if own && name.starts_with("lock") => "c-locked",
        // Synchronous queues and the pools over them reuse these colours, whose class names mean nothing here.
        _ if own && name.contains("transferqueue, push") => "c-lane",
        _ if own && (name.starts_with("hanson") || name.contains("transfer")) => "c-lamport",
        _ if own && (name.starts_with("naive") || name.ends_with("pool fixed")) => "c-multiline",
        _ if own && name.starts_with("java") && name.ends_with("unfair") => "c-fastforward",
        _ if own && name.starts_with("java") => "c-locked",
        _ if own && name.ends_with("unfair") => "c-lane",
        _ if own && (name.ends_with("eliminating") || name.ends_with("pool bounded")) => "c-mcring",
        _ if own && name.ends_with("fair") => "c-bqueue",
        // Queues of jobs, single and in batches.
        _ if own && (name.starts_with("clq") || name.starts_with("bclq")) => "c-mcring",
        _ if own && (name.starts_with("tlq") || name.starts_with("btlq")) => "c-multiline",
        _ if own && (name.starts_with("cvq") || name.starts_with("bcvq")) => "c-fastforward",
        _ if own && (name.starts_with("bwq") || name.starts_with("bbwq")) => "c-locked",
        _ if own && name.starts_with("ticket") => "c-bqueue",
        // Ways to wait.
        _ if own && name == "adaptive" => "c-lane",
        _ if own && name == "park" => "c-bqueue",
        _ if own && name.starts_with("spinpark") => "c-multiline",
        _ if own && name == "spin" => "c-fastforward",
        _ if own && name == "yield" => "c-mcring",
        _ if own => "c-other",
        _ => "c-crate",
    }
}

fn dashes(series: &SeriesRecord) -> &'static str {
    match series.kind {
        Kind::Paper => " paper",
        Kind::Corelane | Kind::Crate | Kind::Roofline => "",
    }
}

struct Svg {
    out: String,
}

impl Svg {
    fn new(height: f64, title: &str) -> Self {
        let mut out = String::new();
        let _ = write!(out, "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">", escape(title));
        Svg { out }
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let _ = write!(self.out, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>", escape(text));
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = write!(
            self.out,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    fn dot(&mut self, x: f64, y: f64, class: &str, hint: &str) {
        let _ = write!(
            self.out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" class=\"{class}\"><title>{}</title></circle>",
            escape(hint)
        );
    }

    fn end(mut self) -> String {
        self.out += "</svg>";
        self.out
    }
}

/// The width that the longest of these names takes, at least `least`.
fn room_for<'a>(names: impl IntoIterator<Item = &'a str>, least: f64) -> f64 {
    // At a height of 12 pixels few letters are wider than 7, even bold ones.
    let longest = names.into_iter().map(|name| name.chars().count()).max().unwrap_or(0);
    (longest as f64 * 6.9 + 18.0).clamp(least, WIDTH / 2.0)
}

/// A row for each contender, best first. The dot is the median, and the line goes from the least to the most.
fn ranks(panel: &PanelRecord) -> String {
    const ROW: f64 = 20.0;
    const RIGHT: f64 = 70.0;
    const TOP: f64 = 26.0;
    let Some(&x) = panel.xs().first() else { return String::new() };
    let ranked = panel.ranked(x);
    let (roofs, rows): (Vec<_>, Vec<_>) = ranked.into_iter().partition(|(series, _)| series.kind == Kind::Roofline);
    let summaries = rows.iter().chain(&roofs).filter_map(|(_, point)| point.summary());
    let ruler = Ruler::new(panel.y.scale, summaries.flat_map(|summary| [summary.least, summary.most]));
    let bottom = TOP + ROW * rows.len() as f64;
    let left = room_for(rows.iter().map(|(series, _)| series.name.as_str()), 200.0);
    let at = |value: f64| ruler.place(value).map(|place| left + place * (WIDTH - left - RIGHT));

    let mut svg = Svg::new(bottom + 44.0, &panel.title);
    for Mark { value, label } in ruler.marks() {
        if let Some(x) = at(value) {
            svg.line((x, TOP), (x, bottom), "grid");
            svg.text(x, bottom + 16.0, "mark middle", &label);
        }
    }
    let direction = if panel.higher_is_better { "more is better" } else { "less is better" };
    svg.text(
        left + (WIDTH - left - RIGHT) / 2.0,
        bottom + 36.0,
        "axis middle",
        &format!("{}{} ({direction})", panel.y.label, if panel.y.scale == Scale::Log { ", logarithmic" } else { "" }),
    );
    for (series, point) in &roofs {
        if let Some((summary, x)) = point.summary().and_then(|summary| Some((summary, at(summary.median)?))) {
            svg.line((x, TOP - 6.0), (x, bottom), "roof");
            let anchor = if x > WIDTH / 2.0 { "note end" } else { "note" };
            svg.text(x, TOP - 10.0, anchor, &format!("{} {}", series.name, short(summary.median)));
        }
    }
    for (i, (series, point)) in rows.iter().enumerate() {
        let y = TOP + ROW * (i as f64 + 0.5);
        let class = colour(series);
        svg.text(left - 10.0, y + 4.0, &format!("name end t-{class}"), &series.name);
        if let Some(stopped) = &point.stopped {
            svg.text(left + 6.0, y + 4.0, "stopped", stopped);
        }
        let Some(summary) = point.summary() else { continue };
        let (Some(least), Some(median), Some(most)) = (at(summary.least), at(summary.median), at(summary.most)) else {
            continue;
        };
        svg.line((least, y), (most, y), &format!("range {class}"));
        let hint = format!(
            "{}: median {}, {} to {} {}",
            series.name,
            short(summary.median),
            short(summary.least),
            short(summary.most),
            panel.y.label
        );
        svg.dot(median, y, &format!("dot {class}{}", dashes(series)), &hint);
        svg.text(WIDTH - RIGHT + 14.0, y + 4.0, "value", &short(summary.median));
    }
    svg.end()
}

/// A line for each contender, with its name at the line's end.
fn lines(panel: &PanelRecord) -> String {
    const LEFT: f64 = 76.0;
    const TOP: f64 = 30.0;
    const LABEL: f64 = 13.5;
    let Some(axis) = &panel.x else { return String::new() };
    let height = (LABEL * panel.series.len() as f64 + 56.0).max(376.0);
    let right = room_for(panel.series.iter().map(|series| series.name.as_str()), 214.0);
    let bottom = height - 46.0;
    let xs = panel.xs();
    let across = Ruler::new(axis.scale, xs.iter().copied());
    let summaries = panel.series.iter().flat_map(|series| &series.points).filter_map(|point| point.summary());
    let up = Ruler::new(panel.y.scale, summaries.map(|summary| summary.median));
    let at_x = |x: f64| across.place(x).map(|place| LEFT + 14.0 + place * (WIDTH - LEFT - right - 28.0));
    let at_y = |y: f64| up.place(y).map(|place| bottom - place * (bottom - TOP));

    let mut svg = Svg::new(height, &panel.title);
    for Mark { value, label } in up.marks() {
        if let Some(y) = at_y(value) {
            svg.line((LEFT, y), (WIDTH - right, y), "grid");
            let label = if panel.y.label == "ns" && panel.y.scale == Scale::Log { time(value) } else { label };
            svg.text(LEFT - 8.0, y + 4.0, "mark end", &label);
        }
    }
    let marks = if xs.len() <= 14 { Ruler::marks_at(&xs) } else { across.marks() };
    let mut last = f64::NEG_INFINITY;
    for Mark { value, label } in marks {
        let Some(x) = at_x(value) else { continue };
        svg.line((x, bottom), (x, bottom + 4.0), "grid");
        // Labels of a linear axis may come too close to each other.
        if x - last > 7.0 * label.chars().count() as f64 {
            svg.text(x, bottom + 18.0, "mark middle", &label);
            last = x;
        }
    }
    svg.text(LEFT + (WIDTH - LEFT - right) / 2.0, bottom + 38.0, "axis middle", &axis.label);
    let direction = if panel.higher_is_better { "more is better" } else { "less is better" };
    let log = if panel.y.scale == Scale::Log { ", logarithmic" } else { "" };
    // The title of the y axis lies across, above the plot, because some titles are longer than the plot is high.
    svg.text(4.0, 14.0, "axis", &format!("{}{log} ({direction})", panel.y.label));

    // Grey lines come first, so that this library's lines are drawn over them.
    let mut order: Vec<&SeriesRecord> = panel.series.iter().collect();
    order.sort_by_key(|series| match series.kind {
        Kind::Crate => 0,
        Kind::Roofline => 1,
        Kind::Paper => 2,
        Kind::Corelane => 3,
    });
    let curves: Vec<Vec<(f64, f64, &Point, Summary)>> = order
        .iter()
        .map(|series| {
            let place = |point| -> Option<_> {
                let summary = Point::summary(point)?;
                Some((at_x(point.x)?, at_y(summary.median)?, point, summary))
            };
            series.points.iter().filter_map(place).collect()
        })
        .collect();
    // A name stands where its curve ends, or near that.
    let mut ends: Vec<(usize, f64, f64)> =
        curves.iter().enumerate().filter_map(|(i, curve)| curve.last().map(|&(x, y, ..)| (i, x, y))).collect();
    ends.sort_by(|(.., a), (.., b)| a.total_cmp(b));
    let places = spread(&ends.iter().map(|(.., y)| *y).collect::<Vec<_>>(), LABEL, TOP, height - 8.0);
    let name_of = |i: usize| ends.iter().zip(&places).find(|((end, ..), _)| *end == i);

    let mut stopped_at: Vec<f64> = Vec::new();
    for (i, (series, curve)) in order.into_iter().zip(&curves).enumerate() {
        let class = format!("{}{}", colour(series), dashes(series));
        svg.out += "<g class=\"series\">";
        let mut path = String::new();
        for (x, y, ..) in curve {
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
        }
        let _ = write!(svg.out, "<path d=\"{path}\" class=\"curve {class}\"/>");
        for (x, y, point, summary) in curve {
            let hint = format!(
                "{} at {}: median {}, {} to {} {}",
                series.name,
                point.x,
                short(summary.median),
                short(summary.least),
                short(summary.most),
                panel.y.label
            );
            svg.dot(*x, *y, &format!("dot {class}"), &hint);
        }
        // Contenders that stopped stand at the foot of their x, one above the other.
        for point in series.points.iter().filter(|point| point.stopped.is_some()) {
            let Some(x) = at_x(point.x) else { continue };
            let below = stopped_at.iter().filter(|other| **other == point.x).count() as f64;
            stopped_at.push(point.x);
            let _ = write!(
                svg.out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" class=\"stopped middle\">×<title>{} at {}: {}</title></text>",
                bottom - 3.0 - 11.0 * below,
                escape(&series.name),
                point.x,
                escape(point.stopped.as_deref().unwrap_or_default())
            );
        }
        if let Some(((_, x, y), place)) = name_of(i) {
            let start = WIDTH - right + 6.0;
            let _ = write!(
                svg.out,
                "<path d=\"M{:.1} {y:.1}L{:.1} {y:.1}L{start:.1} {place:.1}\" class=\"leader\"/>",
                x + 5.0,
                WIDTH - right - 8.0
            );
            svg.text(start + 4.0, place + 4.0, &format!("name t-{}", colour(series)), &series.name);
        }
        svg.out += "</g>";
    }
    if !stopped_at.is_empty() {
        svg.text(WIDTH - right + 10.0, bottom + 18.0, "stopped", "× stopped: see the figures");
    }
    svg.end()
}

/// Nanoseconds in a unit that fits.
fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", (value * 1e3).round() / 1e3)
}

/// Places for labels that should stand at these heights, in order. They are at least `apart` from each other and within
/// the range. Apart from that they stay as near as one pass down and one pass back up bring them.
fn spread(wanted: &[f64], apart: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut places: Vec<f64> = wanted.to_vec();
    let mut least = top;
    for place in &mut places {
        *place = place.max(least);
        least = *place + apart;
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - apart;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{AxisRecord, Sample};

    #[test]
    fn labels_keep_their_distance_and_their_order() {
        let places = spread(&[10.0, 11.0, 12.0, 300.0, 399.0, 400.0], 13.0, 0.0, 400.0);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 12.999), "{places:?}");
        assert_eq!(places[3], 300.0);
        assert!(places.iter().all(|place| (0.0..=400.0).contains(place)), "{places:?}");
    }

    fn sample(value: f64) -> Sample {
        Sample { value, items: 1, wall_s: 1.0, cpu_s: 2.0, full: 0, empty: 0, counts: None }
    }

    fn example(x: Option<AxisRecord>) -> PanelRecord {
        let series = |name: &str, kind, values: [f64; 2]| SeriesRecord {
            name: name.to_owned(),
            kind,
            points: [1.0, 2.0]
                .into_iter()
                .zip(values)
                .map(|(x, value)| Point { x, samples: vec![sample(value), sample(value * 1.1)], stopped: None })
                .collect(),
        };
        let mut hanging = series("MCRingBuffer, batch 50", Kind::Paper, [1.0, 1.0]);
        for point in &mut hanging.points {
            point.samples.clear();
            point.stopped = Some("hangs: nothing moved for 2 s".to_owned());
        }
        PanelRecord {
            id: "p".to_owned(),
            title: "a < b".to_owned(),
            x,
            y: AxisRecord { label: "M items/s".to_owned(), scale: Scale::Linear },
            higher_is_better: true,
            cpus: vec![0, 1],
            series: vec![
                series("lane", Kind::Corelane, [400.0, 300.0]),
                series("rtrb", Kind::Crate, [300.0, 200.0]),
                series("raw streaming", Kind::Roofline, [1000.0, 900.0]),
                hanging,
            ],
            left_out: Vec::new(),
        }
    }

    #[test]
    fn every_contender_is_in_the_plot_also_one_that_hangs() {
        for x in [None, Some(AxisRecord { label: "bytes".to_owned(), scale: Scale::Log2 })] {
            let svg = panel(&example(x.clone()));
            for name in ["lane", "rtrb", "raw streaming", "hangs"] {
                assert!(svg.contains(name), "{name} in {svg}");
            }
            assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
        }
    }

    #[test]
    fn the_best_comes_first() {
        let svg = panel(&example(None));
        assert!(svg.find(">lane<").unwrap() < svg.find(">rtrb<").unwrap());
    }
}
