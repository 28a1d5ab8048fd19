//! The result of a measurement, or why there is none, and the values derived from it.

use crate::contenders::Unable;
use crate::counters::Counts;
use crate::rig::{Stop, Took, tick_rate};
use std::fmt;
use std::time::Duration;

/// The result of one measurement.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// The number of items, round trips or packets.
    pub(crate) items: u64,
    pub(crate) wall: Duration,
    /// CPU time of all threads together.
    pub(crate) cpu: Duration,
    /// How often a push found no room, or a pop found nothing.
    pub(crate) full: u64,
    pub(crate) empty: u64,
    pub(crate) counts: Option<Counts>,
    /// For measurements that are not rates: the values, one for each x of the case.
    pub(crate) values: Vec<f64>,
}

impl Reading {
    pub(crate) fn new(items: u64, took: Took) -> Self {
        Reading { items, wall: took.wall, cpu: took.cpu, full: 0, empty: 0, counts: took.counts, values: Vec::new() }
    }
}

/// Why a measurement has no result.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The contender cannot be made with these settings.
    Unable(Unable),
    /// The contender ran and did not finish.
    Stop(Stop),
}

impl From<Unable> for Failure {
    fn from(unable: Unable) -> Self {
        Failure::Unable(unable)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        Failure::Stop(stop)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unable(Unable(reason)) => f.write_str(reason),
            Failure::Stop(stop) => stop.fmt(f),
        }
    }
}

/// The return type of a measurement.
pub(crate) type Outcome = Result<Reading, Failure>;

/// The value derived from a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    MillionPerSecond,
    NanosecondsEach,
    /// Cycles of the constant-rate counter, as in the B-Queue paper.
    CyclesEach,
    /// Reads an item that missed the level-1 data cache, of both threads.
    L1MissesEach,
    /// Reads an item that missed the last level of cache, of both threads.
    LastLevelMissesEach,
    /// How many of 100 reads of the level-1 data cache hit it.
    L1HitPercent,
    /// CPU time of all threads an item.
    CpuNanosecondsEach,
    /// Context switches of all threads together, by wall-clock time.
    SwitchesPerSecond,
    /// Context switches of all threads together, of one kind.
    VoluntarySwitches,
    InvoluntarySwitches,
    /// The values that the reading itself has.
    Values,
    /// One of these values, for a measurement that has several of them and one x.
    Value(usize),
}

impl Metric {
    /// The values of a reading, one for each x. None if the machine does not count this.
    pub(crate) fn of(self, reading: &Reading) -> Vec<f64> {
        let items = reading.items as f64;
        let seconds = reading.wall.as_secs_f64();
        let counted = |value: fn(&Counts, f64) -> Option<f64>| -> Vec<f64> {
            reading.counts.and_then(|counts| value(&counts, items)).into_iter().collect()
        };
        match self {
            Metric::MillionPerSecond => vec![items / seconds / 1e6],
            Metric::NanosecondsEach => vec![seconds * 1e9 / items],
            Metric::CyclesEach => vec![seconds * tick_rate() / items],
            Metric::L1MissesEach => counted(|counts, items| Some(counts.l1_misses? as f64 / items)),
            Metric::LastLevelMissesEach => counted(|counts, items| Some(counts.llc_misses? as f64 / items)),
            Metric::L1HitPercent => counted(|counts, _| {
                let (reads, misses) = (counts.l1_reads? as f64, counts.l1_misses? as f64);
                (reads > 0.0).then(|| (1.0 - misses / reads) * 100.0)
            }),
            Metric::CpuNanosecondsEach => vec![reading.cpu.as_secs_f64() * 1e9 / items],
            Metric::SwitchesPerSecond => {
                let switches = reading.counts.and_then(|counts| counts.switches());
                switches.map(|switches| switches as f64 / seconds).into_iter().collect()
            }
            Metric::VoluntarySwitches => counted(|counts, _| Some(counts.voluntary_switches? as f64)),
            Metric::InvoluntarySwitches => counted(|counts, _| Some(counts.involuntary_switches? as f64)),
            Metric::Values => reading.values.clone(),
            Metric::Value(n) => reading.values.get(n).copied().into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> Reading {
        Reading {
            items: 1000,
            wall: Duration::from_micros(2),
            cpu: Duration::from_micros(4),
            full: 0,
            empty: 0,
            counts: Some(Counts {
                l1_reads: Some(10_000),
                l1_misses: Some(250),
                llc_misses: Some(20),
                voluntary_switches: Some(3),
                involuntary_switches: Some(1),
                ..Counts::default()
            }),
            values: vec![1.5, 2.5],
        }
    }

    #[test]
    fn metrics_are_what_they_say() {
        for (metric, value) in [
            (Metric::MillionPerSecond, 500.0),
            (Metric::NanosecondsEach, 2.0),
            (Metric::CpuNanosecondsEach, 4.0),
            (Metric::CyclesEach, tick_rate() * 2e-9),
            (Metric::L1MissesEach, 0.25),
            (Metric::LastLevelMissesEach, 0.02),
            (Metric::L1HitPercent, 97.5),
            (Metric::SwitchesPerSecond, 2e6),
            (Metric::VoluntarySwitches, 3.0),
            (Metric::InvoluntarySwitches, 1.0),
            (Metric::Value(1), 2.5),
        ] {
            let values = metric.of(&reading());
            assert!(values.len() == 1 && (values[0] / value - 1.0).abs() < 1e-9, "{metric:?}: {values:?}");
        }
        assert_eq!(Metric::Values.of(&reading()), [1.5, 2.5]);
        assert!(Metric::Value(2).of(&reading()).is_empty());
    }

    #[test]
    fn what_was_not_counted_has_no_value() {
        let none = Reading { counts: None, ..reading() };
        let some = Reading { counts: Some(Counts::default()), ..reading() };
        let counted =
            [Metric::L1MissesEach, Metric::LastLevelMissesEach, Metric::L1HitPercent, Metric::SwitchesPerSecond];
        for metric in counted {
            assert!(metric.of(&none).is_empty());
            assert!(metric.of(&some).is_empty());
        }
    }
}
