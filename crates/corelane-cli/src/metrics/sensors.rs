//! The numbers of an aggregator.

use super::{By, Families, OutputState, Served, failing, items, stale};
use corelane_monitor::sensors::SensorCounts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use std::fmt;
use std::time::{Duration, Instant};

/// What an aggregator tells about itself. Totals are since its first start, as far as its snapshots know.
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
}

impl Collector for Sensors {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Families { encoder };
        let sensors = |number: fn(&SensorCounts) -> u64| {
            self.sensors.iter().map(move |counts| (counts.sensor.as_str(), number(counts)))
        };
        // A floating-point number holds the nanoseconds of no recent time, but the seconds and their millionths.
        let seconds = |time_ns| Duration::from_nanos(time_ns).as_secs_f64();
        let begun = self.sensors.iter().map(|counts| (counts.sensor.as_str(), seconds(counts.begun_ns)));
        out.counters("sensor_batches", "Batches that have counted", "sensor", sensors(|of| of.batches))?;
        out.counters("sensor_reports", "Failures that have counted", "sensor", sensors(|of| of.reports))?;
        out.counters("sensor_late", "Failures that came late", "sensor", sensors(|of| of.late))?;
        out.gauges("sensor_present", "Whether steps wait for it", "sensor", sensors(|of| of.is_present.into()))?;
        out.gauges("sensor_time_seconds", "Time up to which it has told all, since the epoch", "sensor", begun)?;
        out.gauge("time_seconds", "Time up to which all is over, since the epoch", seconds(self.begun_ns))?;
        out.gauge("scan_groups", "Groups of failures that may become scans", self.groups)?;
        out.gauge("waiting_reports", "Failures whose step is not over for all sensors", self.waiting)?;
        out.counters("evicted", "What gave way to something newer", "reason", [("groups", self.evicted)].into_iter())?;
        out.counters("refused_batches", "Batches that did not count", "reason", items(&self.refused))?;
        out.counters("alerts", "Alerts", "kind", items(&self.alerts))?;
        let outputs = |number: fn(&OutputState) -> u64| {
            self.outputs.iter().map(move |output| (output.name.as_str(), number(output)))
        };
        out.counters("output_errors", "Attempts to write that failed", "output", outputs(|of| of.errors))?;
        out.counters("output_dropped", "Lines or records that were lost", "output", outputs(|of| of.dropped))?;
        let labels = [("version", env!("CARGO_PKG_VERSION"))];
        out.encoder.encode_descriptor("build", "The program", None, MetricType::Info)?.encode_info(&labels)
    }
}
