//! MCRingBuffer, Figure 13: packets a second of the parallel monitor; and the pipelines of B-Queue's Figure 12 in a
//! real application.

use crate::contender::Kind;
use crate::contender::Unable;
use crate::measure::{Failure, Metric, Outcome, Reading};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::printed::{self, Printed};
use crate::rig::Stop;
use crate::setting::Setting;
use corelane_monitor::eve::Events;
use corelane_monitor::{
    Inspection, Plan as Spread, Progress, QueueKind, Report, Rule, Settings, Sharing, inspect, run,
};
use corelane_net::capture::Reader;
use corelane_net::synth::{self, Config, Conversations};
use cpu_time::ProcessTime;
use std::fmt::Display;
use std::sync::Mutex;
use std::time::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "monitor-rate",
    title: "packets a second of the monitor, by number of SubAnalyzers or application stages",
    repeats: "no paper: `corelane monitor` itself; the papers' application is the experiment application",
    about: "`corelane monitor --rule paper` on generated traffic in memory. The monitor joins its stages by the safe \
            designs: lamport is BasicRingBuffer's, mcring is MCRingBuffer's. As in the paper a SubAnalyzer keeps its \
            address pairs, and the queues hold 2,000; one more line is the monitor with its own defaults. The \
            single-threaded version has no queue, so its line is flat. Two more threads than SubAnalyzers run: where \
            there are fewer CPUs than that, threads share them, and more SubAnalyzers cannot be faster. The last plots \
            are of the second analysis: stages that put conversations together, tell their protocols by content and \
            read HTTP, TLS and DNS to the end, between a dispatcher and an output stage, as in the B-Queue paper's \
            testbed. Events are found, not printed. MCRingBuffer(deadlock) and MCRingBuffer(sane) are that paper's two \
            forms of MCRingBuffer, as printed, on the way to the application stages; `corelane monitor` does not offer \
            them. This traffic reaches all stages, so neither hangs, as the paper found. Where one stage gets next to \
            nothing the first does, as a test of the monitor shows: the dispatcher waits for a stage whose last items \
            are invisible.",
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
        Parameter {
            name: "queues to application stages",
            here: "8,192 items; MCRingBuffer(deadlock) and (sane): 2,048, batch 256",
            paper: Some("B-Queue: 2,048, batch 256"),
        },
        Parameter {
            name: "queues from application stages",
            here: "64 harvests, batch 1; MCRingBuffer(deadlock) and (sane): those of mcring",
            paper: Some("MCRingBuffer: batch 1"),
        },
        Parameter {
            name: "MCRingBuffer's unfinished batches",
            here: "mcring: shown to a stage that would wait; (deadlock): kept; (sane): pushed out by unused elements, for which a timer asks every 10 µs; at the end of the capture both: pushed out",
            paper: Some("B-Queue: kept, or pushed out by garbage for which a timer asks every 10 µs"),
        },
        Parameter {
            name: "who waits for a queue",
            here: "spins, yields, then sleeps; MCRingBuffer(deadlock) and (sane): yields, and gives up as a hang after 2 s",
            paper: None,
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
/// The designs of B-Queue's Figure 12, and the lane.
const QUEUES: [QueueKind; 5] =
    [QueueKind::Lane, QueueKind::BQueue, QueueKind::McRing, QueueKind::FastForward, QueueKind::Lamport];

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
        for queue in QUEUES {
            let spread = Spread { analyzers: stages, queue, ..Spread::default() };
            panel.case(queue.name(), Kind::Corelane, &[stages as f64], 1, move |setting: &Setting| {
                looked_into(setting, &spread)
            });
        }
        for printed in [Printed::deadlock(stages), Printed::sane(stages)] {
            let form = if printed.timer.is_some() { "sane" } else { "deadlock" };
            let name = format!("MCRingBuffer({form}), batch {}", printed.batch);
            panel.case(name, Kind::Paper, &[stages as f64], 1, move |setting: &Setting| {
                looked_into_as_printed(setting, &Printed { bound: setting.bound, ..printed })
            });
        }
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
    let settings = Settings { rule: Rule::Paper, probes: false, top: 0, ..Settings::default() };
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

/// The same analysis over MCRingBuffer as printed.
fn looked_into_as_printed(setting: &Setting, printed: &Printed) -> Outcome {
    looked_into_by(setting, |reader, settings, inspection| {
        let progress = Progress::new();
        let outcome = printed::inspect([reader], settings, inspection, printed, &progress, |_, _| {}, |_: &[u8]| {});
        outcome.map(|(report, _)| report).map_err(|error| match error {
            printed::Error::Hang(bound) => Stop::Hangs(bound).into(),
            error => unable(error),
        })
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
