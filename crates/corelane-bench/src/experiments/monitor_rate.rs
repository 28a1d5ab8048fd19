//! MCRingBuffer, Figure 13: packets a second of the parallel monitor.

use crate::contender::Kind;
use crate::contender::Unable;
use crate::measure::{Failure, Metric, Outcome, Reading, Setting};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use corelane_monitor::{Plan as Spread, Progress, QueueKind, Rule, Settings, Sharing, run};
use corelane_net::capture::Reader;
use corelane_net::synth::{self, Config};
use cpu_time::ProcessTime;
use std::sync::Mutex;
use std::time::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "monitor-rate",
    title: "packets a second of the monitor, by number of SubAnalyzers",
    repeats: "MCRingBuffer, section III-B, Figure 13",
    about: "`corelane monitor --rule paper` on generated traffic in memory. The monitor joins its stages by the safe designs: \
            lamport is BasicRingBuffer's, mcring is MCRingBuffer's. As in the paper a SubAnalyzer keeps its address pairs, \
            and the queues hold 2,000; one more line is the monitor with its own defaults. The single-threaded version has no queue, so its line \
            is flat. Two more threads than SubAnalyzers run: where there are fewer CPUs than that, threads share them, and \
            more SubAnalyzers cannot be faster.",
    parameters: &[
        Parameter { name: "packets", here: "4 million, generated", paper: Some("82 million, of a wireless network") },
        Parameter { name: "capacity", here: "2000", paper: Some("2,000") },
        Parameter {
            name: "batch",
            here: "50 to SubAnalyzers, 1 from them (mcring)",
            paper: Some("50 to SubAnalyzers, 1 from them"),
        },
        Parameter { name: "thresholds", here: "20", paper: Some("20") },
        Parameter { name: "SubAnalyzers", here: "1 to 5", paper: Some("1 to 5") },
        Parameter {
            name: "cores",
            here: "left to the kernel, and pinned in turn",
            paper: Some("8, left to the kernel"),
        },
        Parameter { name: "rounds", here: "7, medians", paper: Some("10 trials, averages") },
    ],
    plan,
};

const PACKETS: u64 = 4_000_000;
const QUICK_PACKETS: u64 = 20_000;
const ANALYZERS: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];

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
            for queue in QueueKind::ALL {
                let batch = queue.has_batch().then_some(50);
                let spread = Spread {
                    analyzers: analyzers as usize,
                    queue,
                    capacity: 2000,
                    batch,
                    sharing: Sharing::Fixed,
                    cpus: cpus.clone(),
                };
                add(panel, queue.name(), Kind::Corelane, &[analyzers], spread);
            }
            let usual = Spread { analyzers: analyzers as usize, cpus: cpus.clone(), ..Spread::default() };
            add(panel, "lane, as the monitor runs by default", Kind::Corelane, &[analyzers], usual);
        }
    }
}

fn add(panel: &mut Panel, name: &str, kind: Kind, xs: &[f64], spread: Spread) {
    let values = xs.len();
    panel.case(name, kind, xs, 1, move |setting: &Setting| packets(setting, &spread, values));
}

/// Analyses the whole capture; the value is the rate, as often as there are x.
fn packets(setting: &Setting, spread: &Spread, values: usize) -> Outcome {
    let bytes = capture(if setting.quick { QUICK_PACKETS } else { PACKETS });
    let reader = Reader::from_bytes(bytes).map_err(|error| Failure::from(Unable::because(error.to_string())))?;
    let settings = Settings { rule: Rule::Paper, top: 0, ..Settings::default() };
    let (start, cpu) = (Instant::now(), ProcessTime::now());
    let report = run([reader], &settings, spread, &Progress::new(), |_, _| {})
        .map_err(|error| Failure::from(Unable::because(error.to_string())))?;
    let (wall, cpu) = (start.elapsed(), cpu.elapsed());
    let rate = report.packets as f64 / wall.as_secs_f64() / 1e6;
    Ok(Reading { items: report.packets, wall, cpu, full: 0, empty: 0, counts: None, values: vec![rate; values] })
}

/// The traffic, made once.
fn capture(packets: u64) -> Vec<u8> {
    static MADE: Mutex<Option<(u64, Vec<u8>)>> = Mutex::new(None);
    let mut made = MADE.lock().expect("no panic with it locked");
    if made.as_ref().is_none_or(|(of, _)| *of != packets) {
        let config = Config { packets, ..Config::default() };
        *made = Some((packets, synth::capture(config).expect("a valid configuration")));
    }
    made.as_ref().map(|(_, bytes)| bytes.clone()).unwrap_or_default()
}
