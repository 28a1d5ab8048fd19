//! MCRingBuffer, Evaluation 2: throughput versus buffer capacity.

use crate::contenders::{
    BasicRingBuffer, CrossbeamArrayQueue, Gil, LockRingBuffer, McRingBuffer, Ringbuf, Rtrb, each_design,
};
use crate::item::Block;
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "capacity",
    title: "throughput versus capacity",
    repeats: "MCRingBuffer, section II-D, Evaluation 2, Figure 9",
    about: "128-byte items, one a call on both sides. A raw MCRingBuffer with no more slots than its batch never \
            passes anything on: the run ends after two seconds in which nothing moved. The printed rings keep one slot \
            free; the safe designs and the crates use all, so at a capacity of 2 they hold two items and the printed \
            ones one.",
    parameters: &[
        Parameter { name: "item", here: "128 bytes", paper: Some("128 bytes") },
        Parameter {
            name: "capacity",
            here: "2 to 4000",
            paper: Some("shown in Figure 9 only; \"at least 400 elements\" in the text"),
        },
        Parameter {
            name: "batch",
            here: "1, 10, 50; the safe mcring adapts it to the capacity",
            paper: Some("1, 10, 50"),
        },
        Parameter { name: "items", here: "about 150 ms a sample", paper: Some("10 M") },
        Parameter { name: "rounds", here: "7, medians", paper: Some("30 trials, averages") },
    ],
    plan,
};

const CAPACITIES: [usize; 12] = [2, 4, 10, 20, 50, 100, 200, 400, 700, 1000, 2000, 4000];

fn plan(plan: &mut Plan) {
    let axis = Axis { label: "capacity", scale: Scale::Log };
    for place in plan.each_place() {
        let view = View::MILLION_PER_SECOND.scale(Scale::Log);
        let panel = plan.panel("capacity", "by capacity, 128-byte items", place, Some(axis), view);
        for capacity in CAPACITIES {
            at(panel, capacity);
        }
    }
}

fn at(panel: &mut Panel, capacity: usize) {
    type Item = Block<16>;
    let x = capacity as f64;
    panel.one_by_one::<LockRingBuffer, Item>(x, capacity);
    panel.one_by_one::<BasicRingBuffer, Item>(x, capacity);
    panel.one_by_one::<McRingBuffer<1>, Item>(x, capacity);
    panel.one_by_one::<McRingBuffer<10>, Item>(x, capacity);
    panel.one_by_one::<McRingBuffer<50>, Item>(x, capacity);
    each_design!(P => panel.one_by_one::<P, Item>(x, capacity));
    panel.one_by_one::<Rtrb, Item>(x, capacity);
    panel.one_by_one::<Ringbuf, Item>(x, capacity);
    panel.one_by_one::<Gil, Item>(x, capacity);
    panel.one_by_one::<CrossbeamArrayQueue, Item>(x, capacity);
    panel.raw_streaming::<Item>(x);
}
