//! MCRingBuffer, Evaluation 3: comparison with FastForward.

use crate::contenders::{BasicRingBuffer, FastForward, McRingBuffer, each_design};
use crate::plan::{Experiment, Parameter, Plan, View};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "fastforward",
    title: "comparison with FastForward",
    repeats: "MCRingBuffer, section II-D, Evaluation 3, Figure 10",
    about: "Words, one a call on both sides, as fast as they go. FastForward is the paper's baseline: no slip, and its \
            two indices share a line.",
    parameters: &[
        Parameter { name: "item", here: "8 bytes", paper: Some("8 bytes") },
        Parameter { name: "capacity", here: "2000", paper: Some("2,000") },
        Parameter { name: "batch", here: "50", paper: Some("50") },
        Parameter { name: "items", here: "about 150 ms a sample", paper: Some("10 M") },
        Parameter { name: "rounds", here: "7, medians", paper: Some("30 trials, averages") },
    ],
    plan,
};

const CAPACITY: usize = 2000;

fn plan(plan: &mut Plan) {
    for place in plan.each_place() {
        let panel = plan.panel("rate", "words, capacity 2000", place, None, View::MILLION_PER_SECOND);
        panel.one_by_one::<BasicRingBuffer, u64>(1.0, CAPACITY);
        panel.one_by_one::<FastForward, u64>(1.0, CAPACITY);
        panel.one_by_one::<McRingBuffer<50>, u64>(1.0, CAPACITY);
        each_design!(P => panel.one_by_one::<P, u64>(1.0, CAPACITY));
    }
}
