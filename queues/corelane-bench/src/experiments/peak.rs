//! B-Queue, Table 1: peak performance.

use crate::contenders::{FastForward, McRingBuffer, PaperBQueue, PaperBQueueAdaptive, each_crate, each_design};
use crate::plan::{Experiment, Parameter, Plan, Scale, View};
use corelane_papers::b_queue::Adaptive;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "peak",
    title: "peak performance, cycles an operation",
    repeats: "B-Queue, section 5.2, Table 1",
    about: "Words, one a call on both sides, as fast as they go. Cycles are those of the constant-rate counter, as in \
            the paper: on a processor that changes its frequency they are a measure of time. The paper tunes \
            FastForward's slip by hand for each machine; here the best of some four dozen is taken before the first \
            round.",
    parameters: &[
        Parameter { name: "queue size", here: "2048 (heapless 2047)", paper: Some("2,048") },
        Parameter { name: "batch size", here: "256", paper: Some("256") },
        Parameter {
            name: "ticks of B-Queue",
            here: "2000, and 0",
            paper: Some("not said; 2,000 in the example of equation (1)"),
        },
        Parameter { name: "items", here: "about 150 ms a sample", paper: Some("one trillion") },
        Parameter { name: "rounds", here: "7, medians", paper: Some("30 trials, averages") },
    ],
    plan,
};

const CAPACITY: usize = 2048;

fn plan(plan: &mut Plan) {
    for place in plan.each_place() {
        let panel = plan.panel("cycles", "peak", place, None, View::CYCLES.scale(Scale::Log));
        panel.tuned_fast_forward(1.0, CAPACITY);
        panel.one_by_one::<FastForward, u64>(1.0, CAPACITY);
        panel.one_by_one::<McRingBuffer<256>, u64>(1.0, CAPACITY);
        panel.one_by_one::<PaperBQueueAdaptive, u64>(1.0, CAPACITY);
        panel.one_by_one::<PaperBQueue<Adaptive, 256, 0>, u64>(1.0, CAPACITY);
        each_design!(P => panel.one_by_one::<P, u64>(1.0, CAPACITY));
        each_crate!(P => panel.one_by_one::<P, u64>(1.0, CAPACITY));
        panel.raw_streaming::<u64>(1.0);
    }
}
