//! The stored form of a run: every sample, and the facts it depends on.

use crate::contenders::Kind;
use crate::counters::Counts;
use crate::machine::Machine;
use crate::plan::Scale;
use crate::stats::Summary;
use serde::{Deserialize, Serialize};

/// The version of this form.
pub(crate) const FORMAT: u32 = 1;

/// One run of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) format: u32,
    pub(crate) experiment: String,
    pub(crate) title: String,
    pub(crate) repeats: String,
    pub(crate) about: String,
    pub(crate) parameters: Vec<ParameterRecord>,
    /// A smoke run. Its figures mean nothing.
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    /// The intended time of a sample.
    pub(crate) sample_seconds: f64,
    /// When it began, in seconds since 1970 UTC.
    pub(crate) started: u64,
    /// How long the whole run took.
    pub(crate) seconds: f64,
    pub(crate) notes: Vec<String>,
    /// A raw round trip in each round, to see whether the bare machine stayed the same.
    pub(crate) bare: Vec<Bare>,
    pub(crate) machine: Machine,
    pub(crate) panels: Vec<PanelRecord>,
}

/// The raw round trips on a pair of CPUs, round by round, and the share of time in which both threads had a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bare {
    pub(crate) cpus: [usize; 2],
    pub(crate) round_trip_ns: Vec<f64>,
    pub(crate) running: Vec<f64>,
}

/// A fixed value of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ParameterRecord {
    pub(crate) name: String,
    pub(crate) here: String,
    /// The paper's value. Null if the value is ours.
    pub(crate) paper: Option<String>,
}

/// A plot and a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PanelRecord {
    pub(crate) id: String,
    pub(crate) title: String,
    /// The quantity that varies. Null if none does.
    pub(crate) x: Option<AxisRecord>,
    pub(crate) y: AxisRecord,
    pub(crate) higher_is_better: bool,
    /// The CPUs of the producer and the consumer, if they were pinned.
    pub(crate) cpus: Vec<usize>,
    pub(crate) series: Vec<SeriesRecord>,
    pub(crate) left_out: Vec<LeftOut>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AxisRecord {
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

/// A contender that is not in a panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// A contender in a panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeriesRecord {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) points: Vec<Point>,
}

/// A contender at one x.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) samples: Vec<Sample>,
    /// The reason why there is no further sample: a hang, a wrong item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped: Option<String>,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) value: f64,
    pub(crate) items: u64,
    pub(crate) wall_s: f64,
    /// Of all threads together.
    pub(crate) cpu_s: f64,
    /// How many tries found no room, and how many found no item.
    pub(crate) full: u64,
    pub(crate) empty: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) counts: Option<Counts>,
}

impl Point {
    /// Of all samples; `None` without any.
    pub(crate) fn summary(&self) -> Option<Summary> {
        Summary::of(self.samples.iter().map(|sample| sample.value))
    }
}

impl SeriesRecord {
    /// The contender's result at an x.
    pub(crate) fn point(&self, x: f64) -> Option<&Point> {
        self.points.iter().find(|point| point.x == x)
    }
}

impl PanelRecord {
    /// Every x there is, in order.
    pub(crate) fn xs(&self) -> Vec<f64> {
        let mut xs: Vec<f64> = self.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// A contender's result at an x.
    pub(crate) fn point(&self, series: &str, x: f64) -> Option<&Point> {
        self.series.iter().find(|s| s.name == series)?.point(x)
    }

    /// The series, best median first at the given x. Series without a figure come last.
    pub(crate) fn ranked(&self, x: f64) -> Vec<(&SeriesRecord, &Point)> {
        let mut ranked: Vec<_> = self
            .series
            .iter()
            .filter_map(|series| Some((series, series.points.iter().find(|point| point.x == x)?)))
            .collect();
        ranked.sort_by(|(_, a), (_, b)| {
            let key = |point: &Point| match point.summary() {
                Some(summary) if self.higher_is_better => -summary.median,
                Some(summary) => summary.median,
                None => f64::INFINITY,
            };
            key(a).total_cmp(&key(b))
        });
        ranked
    }
}
