//! Runs of both analyses, and what they gave.

use crate::runs::inspect;
pub(crate) use crate::runs::plan;
use corelane_monitor::{Findings, Inspection, Plan, Progress, Report, Settings, Source};
use corelane_net::capture::Reader;
use serde_json::Value;

/// What a run gave.
pub(crate) struct Run {
    pub(crate) report: Report,
    pub(crate) findings: Findings,
    pub(crate) text: Vec<u8>,
}

impl Run {
    pub(crate) fn events(&self) -> impl Iterator<Item = Value> {
        self.text.split_inclusive(|&byte| byte == b'\n').map(|line| serde_json::from_slice(line).expect("JSON"))
    }

    /// The report with what alone depends on the plan left out.
    pub(crate) fn report(&self) -> Report {
        Report { analyzer_packets: Vec::new(), dispatcher_packets: 0, ..self.report.clone() }
    }
}

pub(crate) fn of<S: Source + Send>(source: S, inspection: &Inspection, plan: &Plan) -> Run {
    with(source, &Settings::default(), inspection, plan)
}

pub(crate) fn with<S: Source + Send>(source: S, settings: &Settings, inspection: &Inspection, plan: &Plan) -> Run {
    let mut text = Vec::new();
    let out = |lines: &[u8]| text.extend_from_slice(lines);
    let damage = |_, _| {};
    let ran = inspect([source], settings, inspection, plan, &Progress::new(), damage, out);
    let (report, findings) = ran.unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    Run { report, findings, text }
}

pub(crate) fn of_bytes(capture: &[u8], inspection: &Inspection, plan: &Plan) -> Run {
    of(Reader::from_bytes(capture.to_vec()).expect("a capture"), inspection, plan)
}

/// A query for example.org, in UDP, from one host to this one.
pub(crate) fn query(host: u8) -> Vec<u8> {
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01";
    let length = 28 + query.len() as u8;
    let mut frame = vec![0x45, 0, 0, length, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, host];
    frame.extend([156, 64, 0, 53, 0, length - 20, 0, 0]);
    frame.extend(query);
    frame
}
