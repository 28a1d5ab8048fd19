//! MCRingBuffer, Figure 13: packets a second of the parallel monitor; and the pipelines of B-Queue's Figure 12 in a
//! real application.

use crate::contender::Kind;
use crate::contender::Unable;
use crate::measure::{Failure, Metric, Outcome, Reading};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;
use corelane_monitor::eve::Events;
use corelane_monitor::{Inspection, Plan as Spread, Progress, Report, Settings, inspect, run};
use corelane_net::capture::Reader;
use corelane_net::synth::{self, Config, Conversations};
use cpu_time::ProcessTime;
use std::fmt::Display;
use std::sync::Mutex;
use std::time::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "monitor-rate",
    title: "packets a second of the monitor, by number of SubAnalyzers or application stages",
    repeats: "MCRingBuffer, section III-B, Figure 13; B-Queue, section 5.3, Figure 12, inside the application itself",
    about: "`corelane monitor` on generated traffic in memory. The single-threaded version has no queue, so its line is \
            flat. Two more threads than SubAnalyzers run: where there are fewer CPUs than that, threads share them, and \
            more SubAnalyzers cannot be faster. The last plots are of the second analysis: stages that put \
            conversations together, tell their protocols by content and read HTTP, TLS and DNS to the end, between a \
            dispatcher and an output stage, as in the B-Queue paper's testbed. Events are found, not printed.",
    parameters: &[
        Parameter { name: "packets", here: "4 million, generated", paper: Some("82 million, of a wireless network") },
        Parameter { name: "thresholds", here: "20", paper: Some("20") },
        Parameter { name: "SubAnalyzers", here: "1 to 5", paper: Some("1 to 5") },
        Parameter {
            name: "cores",
            here: "left to the kernel, and pinned in turn",
            paper: Some("8, left to the kernel"),
        },
        Parameter { name: "rounds", here: "7, medians", paper: Some("10 trials, averages") },
        Parameter {
            name: "conversations",
            here: "60,000, about a million packets, generated: half HTTP, a quarter each TLS and DNS",
            paper: None,
        },
        Parameter {
            name: "application stages",
            here: "1 to 4; none is one thread for all",
            paper: Some("B-Queue: 1 to 7 queues"),
        },
    ],
    plan,
};

const PACKETS: u64 = 4_000_000;
const QUICK_PACKETS: u64 = 20_000;
const ANALYZERS: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];
const CONVERSATIONS: u64 = 60_000;
const QUICK_CONVERSATIONS: u64 = 300;
const STAGES: [usize; 4] = [1, 2, 3, 4];

fn plan(plan: &mut Plan) {
    let all: Vec<usize> = crate::topology::cpus().iter().map(|cpu| cpu.0).collect();
    let axis = Axis { label: "SubAnalyzers", scale: Scale::Linear };
    let view = View { label: "M packets/s", metric: Metric::Values, ..View::MILLION_PER_SECOND };
    for (id, title, cpus) in [("rate", "placed by the kernel", Vec::new()), ("pinned", "pinned in turn", all)] {
        // The monitor pins its threads by itself.
        let panel = plan.panel_on(id, title, [None, None], Some(axis), view);
        let alone = Spread { analyzers: 0, cpus: cpus.clone(), ..Spread::default() };
        add(panel, "single-threaded", Kind::Roofline, &ANALYZERS, alone);
        for analyzers in ANALYZERS {
            let usual = Spread { analyzers: analyzers as usize, cpus: cpus.clone(), ..Spread::default() };
            add(panel, "lane, as the monitor runs by default", Kind::Corelane, &[analyzers], usual);
        }
    }
    conversations(plan);
}

fn add(panel: &mut Panel, name: &str, kind: Kind, xs: &[f64], spread: Spread) {
    let values = xs.len();
    panel.case(name, kind, xs, 1, move |setting: &Setting| packets(setting, &spread, values));
}

/// The application stages, placed by the kernel.
fn conversations(plan: &mut Plan) {
    let axis = Axis { label: "application stages", scale: Scale::Linear };
    let rate = View { label: "M packets/s", ..View::MILLION_PER_SECOND };
    let panel = plan.panel_on("applications", "conversations looked into", [None, None], Some(axis), rate);
    panel.view(View { id: "cycles", label: "cycles a packet", ..View::CYCLES }).view(View {
        label: "CPU ns a packet, all threads",
        scale: Scale::Linear,
        ..View::CPU_NANOSECONDS
    });
    for stages in STAGES {
        let spread = Spread { analyzers: stages, ..Spread::default() };
        panel.case("lane", Kind::Corelane, &[stages as f64], 1, move |setting: &Setting| looked_into(setting, &spread));
        let alone = Spread { analyzers: 0, ..Spread::default() };
        panel.case("single-threaded", Kind::Roofline, &[stages as f64], 1, move |setting: &Setting| {
            looked_into(setting, &alone)
        });
    }
}

/// Analyses the whole capture. The value is the rate, repeated for each x.
fn packets(setting: &Setting, spread: &Spread, values: usize) -> Outcome {
    static MADE: Made = Made::new(None);
    let packets = if setting.quick { QUICK_PACKETS } else { PACKETS };
    let make = |packets| synth::capture(Config { packets, ..Config::default() }).expect("a valid configuration");
    let settings = Settings { probes: false, top: 0, ..Settings::default() };
    let mut reading = analysis(made(&MADE, packets, make), |reader| {
        run([reader], &settings, spread, &Progress::new(), |_, _| {}).map_err(unable)
    })?;
    let rate = reading.items as f64 / reading.wall.as_secs_f64() / 1e6;
    reading.values = vec![rate; values];
    Ok(reading)
}

/// Analyses all conversations of a capture.
fn looked_into(setting: &Setting, spread: &Spread) -> Outcome {
    looked_into_by(setting, |reader, settings, inspection| {
        let outcome = inspect([reader], settings, inspection, spread, &Progress::new(), |_, _| {}, |_: &[u8]| {});
        outcome.map(|(report, _)| report).map_err(unable)
    })
}

fn looked_into_by(
    setting: &Setting,
    look: impl FnOnce(Reader, &Settings, &Inspection) -> Result<Report, Failure>,
) -> Outcome {
    static MADE: Made = Made::new(None);
    let conversations = if setting.quick { QUICK_CONVERSATIONS } else { CONVERSATIONS };
    let make = |conversations| Conversations { seed: 1, conversations, trouble: 5, spoofed: 0 }.capture();
    let settings = Settings { top: 0, ..Settings::default() };
    let inspection = Inspection { events: Events::NONE, ..Inspection::default() };
    analysis(made(&MADE, conversations, make), |reader| look(reader, &settings, &inspection))
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
