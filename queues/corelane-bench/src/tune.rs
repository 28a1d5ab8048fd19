//! `corelane-bench tune`: the best policy of a lane on this machine.

use crate::experiments::policies::{AGES, EXPERIMENT, KNOBS, Knob, RATES};
use crate::progress::Meter;
use crate::record::{PanelRecord, Record, SeriesRecord};
use crate::runner::{self, Effort};
use crate::stats::{Summary, short};
use crate::table;
use std::fmt::Write;
use std::time::Duration;

/// How much better than the default a value must be before it is worth a line of code.
const WORTH: f64 = 1.03;

/// Measures, and reports the best values for each kind of pair of CPUs.
pub(crate) fn run(quick: bool) -> String {
    let effort = if quick {
        Effort::quick()
    } else {
        Effort { sample: Duration::from_millis(10), ..Effort::full(Effort::LEAST_ROUNDS) }
    };
    let mut meter = Meter::new("tune");
    let record = runner::run(&EXPERIMENT, &effort, &mut meter);
    drop(meter);
    table::render(&record) + &advice(&record)
}

/// The best `Tuning` as code, for each place.
fn advice(record: &Record) -> String {
    let mut out = String::new();
    let first = KNOBS[0].name;
    for panel in record.panels.iter().filter(|panel| panel.id.starts_with(first)) {
        let place = &panel.id[first.len()..];
        let mut code = "lane::Tuning::new()".to_owned();
        let mut reasons = String::new();
        for knob in KNOBS {
            let of = |id: &str| record.panels.iter().find(|panel| panel.id == format!("{id}{place}"));
            let Some(rates) = of(knob.name) else { continue };
            let Some((value, ratio)) = best(knob, rates, of(&format!("{AGES}-{}", knob.name))) else { continue };
            if value != knob.default {
                let _ = write!(code, ".{}({value})", knob.name);
                let younger = if ratio < WORTH { ", and items are younger" } else { "" };
                let _ =
                    writeln!(reasons, "  {} {value}: {} times the default's rate{younger}", knob.name, short(ratio));
            }
        }
        let where_ = panel.title.split_once("; ").map_or("one CPU", |(_, place)| place);
        let _ = writeln!(out, "\nBest for items of 8 bytes, {where_}:\n  {code}\n{reasons}");
    }
    out
}

/// The best value, and its rate as a multiple of the default's. It is the default unless another value is worth it. If
/// ages were measured, too, it is the value with the youngest items among those that are as quick.
fn best(knob: &Knob, rates: &PanelRecord, ages: Option<&PanelRecord>) -> Option<(u32, f64)> {
    let ratio = |value: u32| {
        let series = rates.series.iter().take(RATES);
        let ratios: Vec<f64> = series.map(|series| against(series, value, knob.default)).collect::<Option<_>>()?;
        Some(ratios.iter().product::<f64>().powf(1.0 / ratios.len() as f64))
    };
    let ratios: Vec<(u32, f64)> = knob.values.iter().filter_map(|&value| Some((value, ratio(value)?))).collect();
    let most = ratios.iter().map(|(_, ratio)| *ratio).fold(f64::NAN, f64::max);
    let Some(ages) = ages.and_then(|ages| ages.series.first()) else {
        let best = ratios.iter().find(|(_, ratio)| *ratio == most)?;
        return Some(if best.1 >= WORTH { *best } else { (knob.default, 1.0) });
    };
    let age = |value: u32| ages.point(value.into())?.summary().map(|summary| summary.median);
    let quick = ratios.iter().filter(|(_, ratio)| ratio * WORTH >= most);
    let (best, youngest) =
        quick.filter_map(|best| Some((best, age(best.0)?))).min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let is_worth = age(knob.default).is_none_or(|usual| youngest * WORTH < usual) || best.1 >= WORTH;
    Some(if is_worth { *best } else { (knob.default, 1.0) })
}

/// The median ratio of one value to another in a series, round by round.
fn against(series: &SeriesRecord, value: u32, other: u32) -> Option<f64> {
    let samples = |value: u32| series.point(value.into()).map(|point| &point.samples);
    let pairs = samples(value)?.iter().zip(samples(other)?);
    Summary::of(pairs.map(|(a, b)| a.value / b.value)).map(|summary| summary.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Kind;
    use crate::plan::Scale;
    use crate::record::{AxisRecord, Point, Sample};

    /// A panel with the same values in each series, and two samples of each that differ by a fifth.
    fn panel(knob: &Knob, value: impl Fn(u32) -> f64) -> PanelRecord {
        let sample = |value| Sample { value, items: 1, wall_s: 1.0, cpu_s: 1.0, full: 0, empty: 0, counts: None };
        let points = knob.values.iter().map(|&x| Point {
            x: f64::from(x),
            samples: vec![sample(value(x)), sample(1.2 * value(x))],
            stopped: None,
        });
        let series = SeriesRecord { name: "s".to_owned(), kind: Kind::Corelane, points: points.collect() };
        let axis = || AxisRecord { label: String::new(), scale: Scale::Linear };
        PanelRecord {
            id: format!("{}.l3", knob.name),
            title: "rate; cores that share L3".to_owned(),
            x: Some(axis()),
            y: axis(),
            higher_is_better: true,
            cpus: vec![0, 1],
            series: vec![series.clone(), series.clone(), series],
            left_out: Vec::new(),
        }
    }

    #[test]
    fn the_default_is_best_unless_another_value_is_worth_it() {
        let knob = &KNOBS[0];
        let rates = |other: f64| panel(knob, move |x| if x == 128 { other } else { 100.0 });
        assert_eq!(best(knob, &rates(102.0), None), Some((knob.default, 1.0)));
        let (value, ratio) = best(knob, &rates(120.0), None).unwrap();
        assert_eq!((value, (ratio * 100.0).round()), (128, 120.0));
    }

    #[test]
    fn of_values_that_are_as_quick_the_one_with_the_youngest_items_is_best() {
        let knob = KNOBS.last().unwrap();
        let rates = panel(knob, |looks| if looks == 0 { 90.0 } else { 100.0 });
        let ages = panel(knob, |looks| 100.0 + f64::from(looks));
        assert_eq!(best(knob, &rates, Some(&ages)).unwrap().0, 5);
    }

    #[test]
    fn each_default_is_among_the_values() {
        assert!(KNOBS.iter().all(|knob| knob.values.contains(&knob.default)));
    }
}
