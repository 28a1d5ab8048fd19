//! The text of `/metrics`.

use super::{By, Interface, OutputState, Sensors, Served, Snapshot};
use corelane_monitor::sensors::SensorCounts;
pub(super) use prometheus_client::collector::Collector as Collected;
pub(super) use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;
use std::time::Duration;

/// The text of `/metrics`, in Prometheus' format 0.0.4, which all that scrape can read.
pub(super) fn metrics(served: impl Served) -> String {
    let mut registry = Registry::with_prefix("corelane");
    registry.register_collector(Box::new(served));
    let mut text = String::new();
    // A `String` takes all that is written to it.
    let _ = prometheus_text::encode(&mut text, &registry);
    text
}

impl Collected for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Families { encoder };
        let interfaces = |number: fn(&Interface) -> u64| {
            self.interfaces.iter().map(move |interface| (interface.name.as_str(), number(interface)))
        };
        out.counters(
            "capture_packets",
            "Packets that passed the filter, dropped ones included",
            "interface",
            interfaces(|of| of.packets),
        )?;
        out.counters("capture_drops", "Packets that found the ring full", "interface", interfaces(|of| of.drops))?;
        out.counters("capture_freezes", "Times that the ring was full", "interface", interfaces(|of| of.freezes))?;
        out.counters(
            "capture_truncated",
            "Packets longer than what is captured of one",
            "interface",
            interfaces(|of| of.truncated),
        )?;
        out.counter("bytes", "Bytes of the analysed packets, as on the wire", self.bytes)?;
        out.gauge(
            "packet_lag_seconds",
            "Time from the arrival of the last packet to its analysis",
            self.packet_lag.as_secs_f64(),
        )?;
        let last = self.last_packet_ns.map_or(0.0, seconds);
        out.gauge(
            "last_packet_timestamp_seconds",
            "Time of the last packet since the epoch, 0 before the first",
            last,
        )?;
        out.gauge("conversations", "Open conversations", self.conversations)?;
        out.gauge("scan_groups", "Groups of failures that may become scans", self.scan_groups)?;
        out.gauges("memory_bytes", "Memory in use", "part", items(&self.memory))?;
        out.counters("refused", "What a limit of memory refused", "part", items(&self.refused))?;
        out.counters("evicted", "What gave way to something newer", "reason", items(&self.evicted))?;
        out.counters("alerts", "Alerts", "kind", items(&self.alerts))?;
        out.counters("events", "Events that were written", "type", items(&self.events))?;
        out.outputs(&self.outputs)?;
        out.gauges("queue_fill_ratio", "Fill of the queues before a stage", "stage", items(&self.queue_fill))?;
        out.build()
    }
}

impl Collected for Sensors {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Families { encoder };
        let sensors = |number: fn(&SensorCounts) -> u64| {
            self.sensors.iter().map(move |counts| (counts.sensor.as_str(), number(counts)))
        };
        let begun = self.sensors.iter().map(|counts| (counts.sensor.as_str(), seconds(counts.begun_ns)));
        out.counters("sensor_batches", "Batches that have counted", "sensor", sensors(|of| of.batches))?;
        out.counters("sensor_reports", "Failures that have counted", "sensor", sensors(|of| of.reports))?;
        out.counters("sensor_late", "Failures that came late", "sensor", sensors(|of| of.late))?;
        out.gauges("sensor_present", "Whether steps wait for it", "sensor", sensors(|of| of.is_present.into()))?;
        out.gauges("sensor_time_seconds", "Time up to which it has sent all, since the epoch", "sensor", begun)?;
        out.gauge("time_seconds", "Time up to which all is over, since the epoch", seconds(self.begun_ns))?;
        out.gauge("scan_groups", "Groups of failures that may become scans", self.groups)?;
        out.gauge("waiting_reports", "Failures whose step is not over for all sensors", self.waiting)?;
        out.counters("evicted", "What gave way to something newer", "reason", [("groups", self.evicted)].into_iter())?;
        out.counters("refused_batches", "Batches that did not count", "reason", items(&self.refused))?;
        out.counters("alerts", "Alerts", "kind", items(&self.alerts))?;
        out.outputs(&self.outputs)?;
        out.build()
    }
}

/// A time since the epoch. A floating-point number holds the nanoseconds of no recent time, but the seconds and their
/// millionths.
fn seconds(time_ns: u64) -> f64 {
    Duration::from_nanos(time_ns).as_secs_f64()
}

fn items<N: Copy>(by: &By<N>) -> impl Iterator<Item = (&str, N)> {
    by.iter().map(|(label, number)| (label.as_ref(), *number))
}

/// Writes families of metrics, those that have samples.
struct Families<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Families<'_> {
    fn outputs(&mut self, states: &[OutputState]) -> fmt::Result {
        let outputs =
            |number: fn(&OutputState) -> u64| states.iter().map(move |state| (state.name.as_str(), number(state)));
        self.counters("output_errors", "Attempts to write that failed", "output", outputs(|of| of.errors))?;
        self.counters("output_dropped", "Lines or records that were lost", "output", outputs(|of| of.dropped))
    }

    fn build(&mut self) -> fmt::Result {
        let labels = [("version", env!("CARGO_PKG_VERSION"))];
        self.encoder.encode_descriptor("build", "The program", None, MetricType::Info)?.encode_info(&labels)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        write_counter(self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?, value)
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Into<Number>) -> fmt::Result {
        write_gauge(self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?, value.into())
    }

    fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'a str, u64)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Counter, label, values, write_counter)
    }

    fn gauges<'a, N: Into<Number>>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'a str, N)>,
    ) -> fmt::Result {
        let values = values.map(|(label, value)| (label, value.into()));
        self.family(name, help, MetricType::Gauge, label, values, write_gauge)
    }

    fn family<'a, N>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        label: &str,
        values: impl Iterator<Item = (&'a str, N)>,
        write: fn(MetricEncoder<'_>, N) -> fmt::Result,
    ) -> fmt::Result {
        let mut values = values.peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let mut encoder = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (value_of_label, number) in values {
            write(encoder.encode_family(&[(label, value_of_label)])?, number)?;
        }
        Ok(())
    }
}

fn write_counter(mut encoder: MetricEncoder<'_>, value: u64) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn write_gauge(mut encoder: MetricEncoder<'_>, value: Number) -> fmt::Result {
    match value {
        Number::Whole(value) => encoder.encode_gauge(&value),
        Number::Float(value) => encoder.encode_gauge(&value),
    }
}

/// The value of a gauge. Whole numbers keep all their digits.
enum Number {
    Whole(u64),
    Float(f64),
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Number::Whole(value)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Number::Float(value)
    }
}
