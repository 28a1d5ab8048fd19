//! The numbers of an aggregator.

use super::{By, OutputState, Served, failing, stale};
use corelane_monitor::sensors::SensorCounts;
use std::time::Instant;

/// The numbers of an aggregator. Totals are since its first start, as far as its snapshots know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sensors {
    /// When this was said.
    pub(crate) updated: Option<Instant>,
    pub(crate) sensors: Vec<SensorCounts>,
    /// The time up to which all is over, in nanoseconds since the epoch.
    pub(crate) begun_ns: u64,
    /// Groups of failures that may become scans.
    pub(crate) groups: u64,
    /// Reports that wait until all sensors have passed their step.
    pub(crate) waiting: u64,
    /// Groups that gave way to newer ones.
    pub(crate) evicted: u64,
    /// Batches that did not count, by reason.
    pub(crate) refused: By,
    /// Scans found, by kind.
    pub(crate) alerts: By,
    pub(crate) outputs: Vec<OutputState>,
    /// Why there are no batches, if that is so.
    pub(crate) problem: Option<String>,
    /// The protections of the process, and what the kernel gave of each.
    pub(crate) protections: Vec<(&'static str, String)>,
}

impl Served for Sensors {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = stale(self.updated).into_iter().collect();
        let is_out = |counts: &&SensorCounts| !counts.is_present && !counts.has_ended;
        problems.extend(self.sensors.iter().filter(is_out).map(|it| format!("sensor {} is left out", it.sensor)));
        problems.extend(failing(&self.outputs));
        problems.extend(self.problem.clone());
        problems
    }

    fn protections(&self) -> &[(&'static str, String)] {
        &self.protections
    }
}
