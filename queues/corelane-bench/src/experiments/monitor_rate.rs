//! Packets a second of the monitor as it runs by default, by number of its threads.

use crate::contenders::{Kind, Unable};
use crate::measure::{Failure, Outcome, Reading};
use crate::plan::{Axis, Panel, Plan, Scale, View};
use crate::setting::Setting;
use corelane_monitor::eve::Events;
use corelane_monitor::{Inspection, Job, Observer, Plan as Spread, Progress, Report, Settings};
use corelane_net::capture::Reader;
use corelane_net::synth::{self, Config, Conversations};
use cpu_time::ProcessTime;
use std::fmt::Display;
use std::sync::Mutex;
use std::time::Instant;

const PACKETS: u64 = 4_000_000;
const QUICK_PACKETS: u64 = 20_000;
const ANALYZERS: [usize; 5] = [1, 2, 3, 4, 5];
const CONVERSATIONS: u64 = 60_000;
const QUICK_CONVERSATIONS: u64 = 300;
const STAGES: [usize; 4] = [1, 2, 3, 4];

pub(super) fn plan(plan: &mut Plan) {
    let all: Vec<usize> = crate::topology::cpus().iter().map(|cpu| cpu.0).collect();
    let axis = Axis { label: "SubAnalyzers", scale: Scale::Linear };
    let rate = View { label: "M packets/s", ..View::MILLION_PER_SECOND };
    for (id, title, cpus) in [("rate", "placed by the kernel", Vec::new()), ("pinned", "pinned in turn", all)] {
        // The monitor pins its threads by itself.
        let panel = plan.panel_on(id, title, [None, None], Some(axis), rate);
        for analyzers in ANALYZERS {
            let spread = Spread { analyzers, cpus: cpus.clone(), ..Spread::default() };
            both(panel, "lane, as the monitor runs by default", &spread, packets);
        }
    }
    let axis = Axis { label: "application stages", scale: Scale::Linear };
    let panel = plan.panel_on("applications", "conversations looked into", [None, None], Some(axis), rate);
    panel.view(View { id: "cycles", label: "cycles a packet", ..View::CYCLES }).view(View {
        label: "CPU ns a packet, all threads",
        scale: Scale::Linear,
        ..View::CPU_NANOSECONDS
    });
    for analyzers in STAGES {
        both(panel, "lane", &Spread { analyzers, ..Spread::default() }, looked_into);
    }
}

/// Adds the monitor as spread over threads, and in one thread.
fn both(panel: &mut Panel, name: &str, spread: &Spread, measure: fn(&Setting, &Spread) -> Outcome) {
    let x = spread.analyzers as f64;
    let alone = Spread { analyzers: 0, ..spread.clone() };
    for (name, kind, spread) in [(name, Kind::Corelane, spread.clone()), ("single-threaded", Kind::Roofline, alone)] {
        panel.case(name, kind, &[x], 1, move |setting: &Setting| measure(setting, &spread));
    }
}

/// Looks for scans in a whole capture.
fn packets(setting: &Setting, spread: &Spread) -> Outcome {
    static MADE: Made = Made::new(None);
    let packets = if setting.quick { QUICK_PACKETS } else { PACKETS };
    let make = |packets| synth::capture(Config { packets, ..Config::default() }).expect("a valid configuration");
    let settings = Settings { probes: false, top: 0, ..Settings::default() };
    analysis(made(&MADE, packets, make), |reader| run(reader, &Job::scans(settings, spread.clone())))
}

/// Looks into all conversations of a capture.
fn looked_into(setting: &Setting, spread: &Spread) -> Outcome {
    static MADE: Made = Made::new(None);
    let conversations = if setting.quick { QUICK_CONVERSATIONS } else { CONVERSATIONS };
    let make = |conversations| Conversations { seed: 1, conversations, trouble: 5, spoofed: 0 }.capture();
    let settings = Settings { top: 0, ..Settings::default() };
    let inspection = Inspection { events: Events::NONE, ..Inspection::default() };
    let job = Job { settings, plan: spread.clone(), inspection, continuous: None };
    analysis(made(&MADE, conversations, make), |reader| run(reader, &job))
}

fn run(reader: Reader, job: &Job) -> Result<Report, Failure> {
    let observer = Observer { progress: &Progress::new(), damage: &|_, _| {}, found: &mut |_| {} };
    job.run([reader], observer).map(|(report, _)| report).map_err(unable)
}

fn unable(error: impl Display) -> Failure {
    Unable::because(error.to_string()).into()
}

/// Times an analysis of a capture.
fn analysis(capture: Vec<u8>, analyse: impl FnOnce(Reader) -> Result<Report, Failure>) -> Outcome {
    let reader = Reader::from_bytes(capture).map_err(unable)?;
    let (start, cpu) = (Instant::now(), ProcessTime::now());
    let report = analyse(reader)?;
    let (wall, cpu) = (start.elapsed(), cpu.elapsed());
    Ok(Reading { items: report.packets, wall, cpu, full: 0, empty: 0, counts: None, values: Vec::new() })
}

/// A capture that is made once, and its size.
type Made = Mutex<Option<(u64, Vec<u8>)>>;

/// The capture of this size.
fn made(kept: &Made, size: u64, make: impl FnOnce(u64) -> Vec<u8>) -> Vec<u8> {
    let mut kept = kept.lock().expect("no panic with it locked");
    if kept.as_ref().is_none_or(|(of, _)| *of != size) {
        *kept = Some((size, make(size)));
    }
    kept.as_ref().map(|(_, bytes)| bytes.clone()).unwrap_or_default()
}
