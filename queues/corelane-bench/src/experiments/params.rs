//! B-Queue, Figures 13 and 14, and equation (1): queue size, workload, batch size, backtracking.

use crate::contender::{Kind, Pair};
use crate::contenders::{BQueue, Lane, PaperBQueue};
use crate::measure::{Metric, Outcome, Reading, loaded, lone, one_by_one};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View, far_above};
use crate::rig::tick_rate;
use crate::setting::Setting;
use corelane_papers::b_queue::{Adaptive, NoBacktracking, Plain};
use std::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "params",
    title: "B-Queue's parameters: queue size, workload, batch size, backtracking",
    repeats: "B-Queue, section 5.4, Figures 13 and 14; section 3.3, equation (1)",
    about: "Cycles an operation are less the workload, as in the paper; they hold the reads of the counter that say \
            when a workload is over. A lone item comes 20 µs after the one before, to a consumer that has been \
            polling: its latency as printed is what equation (1) says at most, log2(batch) times ticks.",
    parameters: &[
        Parameter { name: "queue size", here: "128 to 2048; 2048 by batch size", paper: Some("128 to 2,048") },
        Parameter { name: "workload", here: "0 to 3200 cycles", paper: Some("0 to 3,200 cycles") },
        Parameter {
            name: "batch size",
            here: "half the queue, at most 256; 4 to 1024",
            paper: Some("shown in Figure 14 only; 256 is best"),
        },
        Parameter { name: "ticks", here: "2000", paper: Some("not said; 2,000 in the example of equation (1)") },
        Parameter { name: "items", here: "about 150 ms a sample", paper: Some("one trillion") },
        Parameter { name: "rounds", here: "7, medians", paper: Some("30 trials, averages") },
    ],
    plan,
};

const LESS_WORKLOAD: View = View {
    id: "",
    label: "cycles an operation, less the workload",
    metric: Metric::Values,
    scale: Scale::Linear,
    higher_is_better: false,
};
const LATENCY: View =
    View { id: "", label: "cycles, median", metric: Metric::Values, scale: Scale::Log, higher_is_better: false };
const SIZE: usize = 2048;

fn plan(plan: &mut Plan) {
    let place = plan.usual_place();

    let axis = Axis { label: "workload, cycles", scale: Scale::Linear };
    let panel = plan.panel("workload", "by workload and queue size", place, Some(axis), LESS_WORKLOAD);
    for workload in [0, 200, 400, 800, 1600, 3200] {
        workload_at::<PaperBQueue<Adaptive, 64>>(panel, workload, "B-Queue, adaptive", 128);
        workload_at::<PaperBQueue<Adaptive, 128>>(panel, workload, "B-Queue, adaptive", 256);
        workload_at::<PaperBQueue<Adaptive, 256>>(panel, workload, "B-Queue, adaptive", 512);
        workload_at::<PaperBQueue<Adaptive, 256>>(panel, workload, "B-Queue, adaptive", 1024);
        workload_at::<PaperBQueue<Adaptive, 256>>(panel, workload, "B-Queue, adaptive", 2048);
        for size in [128, 512, 2048] {
            workload_at::<BQueue>(panel, workload, "bqueue", size);
            workload_at::<Lane>(panel, workload, "lane", size);
        }
    }

    let axis = Axis { label: "batch size", scale: Scale::Log2 };
    let panel = plan.panel("batch", "by batch size, with and without backtracking", place, Some(axis), View::CYCLES);
    batch::<4>(panel);
    batch::<16>(panel);
    batch::<64>(panel);
    batch::<128>(panel);
    batch::<256>(panel);
    batch::<512>(panel);
    batch::<1024>(panel);

    let panel = plan.panel("lone", "a lone item", place, Some(axis), LATENCY);
    for batch in [4.0, 16.0, 64.0, 256.0, 512.0, 1024.0] {
        panel.case("equation (1)", Kind::Roofline, &[batch], 1, move |setting| equation_1(setting, batch));
        lone_at::<BQueue>(panel, batch, "bqueue (adapts its batch)");
        lone_at::<Lane>(panel, batch, "lane (has no batch)");
    }
    lone_batch::<4>(panel);
    lone_batch::<16>(panel);
    lone_batch::<64>(panel);
    lone_batch::<256>(panel);
    lone_batch::<512>(panel);
    lone_batch::<1024>(panel);
    panel.leave_out("no backtracking", "a lone item is never seen");
}

fn workload_at<P: Pair<u64>>(panel: &mut Panel, workload: u64, name: &str, size: usize) {
    let name = format!("{name}, {size}");
    panel.case(name, P::KIND, &[workload as f64], far_above(size), move |setting| loaded::<P>(setting, size, workload));
}

fn batch<const BATCH: usize>(panel: &mut Panel) {
    let mut add = |name: &str, run: fn(&Setting) -> Outcome| {
        panel.case(name, Kind::Paper, &[BATCH as f64], far_above(SIZE), run);
    };
    add("B-Queue, no backtracking", |setting| one_by_one::<PaperBQueue<NoBacktracking, BATCH>, u64>(setting, SIZE));
    add("B-Queue, plain backtracking", |setting| one_by_one::<PaperBQueue<Plain, BATCH>, u64>(setting, SIZE));
    add("B-Queue, adaptive", |setting| one_by_one::<PaperBQueue<Adaptive, BATCH>, u64>(setting, SIZE));
}

fn lone_at<P: Pair<u64>>(panel: &mut Panel, x: f64, name: &str) {
    panel.case(name, P::KIND, &[x], 500, |setting| lone::<P>(setting, SIZE));
}

fn lone_batch<const BATCH: usize>(panel: &mut Panel) {
    lone_at::<PaperBQueue<Plain, BATCH>>(panel, BATCH as f64, "B-Queue, plain backtracking");
    lone_at::<PaperBQueue<Adaptive, BATCH>>(panel, BATCH as f64, "B-Queue, adaptive");
}

/// Nothing is measured here. This is the paper's formula for the worst case.
fn equation_1(setting: &Setting, batch: f64) -> Outcome {
    let cycles = batch.log2() * 2000.0;
    let wall = Duration::from_secs_f64(cycles / tick_rate());
    Ok(Reading { items: setting.count, wall, cpu: wall, full: 0, empty: 0, counts: None, values: vec![cycles] })
}
