//! `sensor`: what has become of a sensor. Suricata has no such event.

use crate::report::write_line;
use crate::sensors::{SensorEvent, SensorNews};
use crate::time::Timestamp;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct EveRecord<'a> {
    timestamp: String,
    event_type: &'static str,
    sensor: EveSensor<'a>,
}

#[derive(Serialize, Default)]
struct EveSensor<'a> {
    name: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ns: Option<u64>,
    /// State reports that are lost, where that is known, have come late, or waited for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reports: Option<u64>,
    /// How much it or its clock is behind; less than 0 if it is ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind_ns: Option<i64>,
}

/// Writes what has become of a sensor.
///
/// # Errors
/// Those of `out`.
pub fn write_sensor(event: &SensorEvent, mut out: impl Write) -> io::Result<()> {
    let sensor = match event.news {
        SensorNews::Began { since_ns } => {
            EveSensor { state: "began", since_ns: Some(since_ns), ..EveSensor::default() }
        }
        SensorNews::Lost { since_ns, until_ns, reports } => {
            let (since_ns, until_ns) = (Some(since_ns), Some(until_ns));
            EveSensor { state: "lost", since_ns, until_ns, reports, ..EveSensor::default() }
        }
        SensorNews::LeftOut { waiting, behind_ns } => {
            let reports = (waiting > 0).then_some(waiting);
            let behind_ns = i64::try_from(behind_ns).ok().filter(|&behind_ns| behind_ns > 0);
            EveSensor { state: "left_out", reports, behind_ns, ..EveSensor::default() }
        }
        SensorNews::Clock { behind_ns } => {
            EveSensor { state: "clock", behind_ns: Some(behind_ns), ..EveSensor::default() }
        }
        SensorNews::Back { late } => EveSensor { state: "back", reports: Some(late), ..EveSensor::default() },
        SensorNews::Ended => EveSensor { state: "ended", ..EveSensor::default() },
    };
    let sensor = EveSensor { name: event.sensor.as_str(), ..sensor };
    let timestamp = Timestamp::of(event.time_ns).eve().escape_ascii().to_string();
    write_line(&mut out, &EveRecord { timestamp, event_type: "sensor", sensor })
}
