//! MCRingBuffer, Evaluation 4, and B-Queue, Tables 2 and 3: hits and misses of the caches.

use crate::contenders::{BasicRingBuffer, FastForward, McRingBuffer, PaperBQueueAdaptive, Rtrb, each_design};
use crate::counters;
use crate::measure::Metric;
use crate::plan::{Experiment, Panel, Parameter, Plan, Scale, View};
use crate::topology::Place;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cache-misses",
    title: "cache misses an item",
    repeats: "MCRingBuffer, section II-D, Evaluation 4, Figure 11; B-Queue, section 5.2, Table 2",
    about: "Hardware counters of both threads, while words go one by one. The papers' profilers count on their own \
            processors' events; here the events are those that the system offers on every processor. Where the machine \
            shows no counters, as most virtual machines, there is no result. `cache-lines` counts lines in an emulator \
            instead.",
    parameters: &[
        Parameter { name: "item", here: "8 bytes", paper: Some("8 bytes") },
        Parameter {
            name: "capacity and batch",
            here: "2000 and 50; 2048 and 256",
            paper: Some("2,000 and 50; 2,048 and 256"),
        },
        Parameter { name: "event", here: "reads that miss", paper: Some("MEM_LOAD_RETIRED.L2_LINE_MISS; OProfile") },
        Parameter { name: "rounds", here: "7, medians", paper: Some("5 trials; 30 trials; averages") },
    ],
    plan,
};

const LAST_LEVEL: View = View {
    id: "",
    label: "last-level read misses an item",
    metric: Metric::LastLevelMissesEach,
    scale: Scale::Linear,
    higher_is_better: false,
};
const L1: View = View { id: "l1", label: "level-1 read misses an item", metric: Metric::L1MissesEach, ..LAST_LEVEL };
const L1_HITS: View = View {
    id: "",
    label: "% of level-1 reads that hit",
    metric: Metric::L1HitPercent,
    scale: Scale::Linear,
    higher_is_better: true,
};

fn plan(plan: &mut Plan) {
    let available = counters::available();
    if let Err(reason) = &available {
        plan.notes.push(format!("This machine shows no hardware counters ({reason}), so nothing was measured."));
    }
    for place in plan.each_place() {
        misses(plan, place);
        hits(plan, place);
        if let Err(reason) = &available {
            for panel in plan.panels.iter_mut().rev().take(2) {
                let names: Vec<String> = panel.cases.drain(..).map(|case| case.series).collect();
                for name in names {
                    panel.leave_out(name, format!("hardware counters: {reason}"));
                }
            }
        }
    }
}

fn misses(plan: &mut Plan, place: Option<Place>) {
    const CAPACITY: usize = 2000;
    let panel: &mut Panel = plan.panel("misses", "cache misses, capacity 2000", place, None, LAST_LEVEL);
    panel.view(L1).counting = true;
    panel.one_by_one::<BasicRingBuffer, u64>(1.0, CAPACITY);
    panel.one_by_one::<FastForward, u64>(1.0, CAPACITY);
    panel.one_by_one::<McRingBuffer<50>, u64>(1.0, CAPACITY);
    each_design!(P => panel.one_by_one::<P, u64>(1.0, CAPACITY));
    panel.one_by_one::<Rtrb, u64>(1.0, CAPACITY);
}

fn hits(plan: &mut Plan, place: Option<Place>) {
    const CAPACITY: usize = 2048;
    let panel: &mut Panel = plan.panel("l1", "level-1 hits, capacity 2048", place, None, L1_HITS);
    panel.counting = true;
    panel.tuned_fast_forward(1.0, CAPACITY);
    panel.one_by_one::<McRingBuffer<256>, u64>(1.0, CAPACITY);
    panel.one_by_one::<PaperBQueueAdaptive, u64>(1.0, CAPACITY);
    each_design!(P => panel.one_by_one::<P, u64>(1.0, CAPACITY));
}
