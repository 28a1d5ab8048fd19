//! MCRingBuffer, Evaluation 1: throughput versus element size.

use crate::contenders::{BasicRingBuffer, LockRingBuffer, McRingBuffer, each_crate, each_design};
use crate::item::{Block, Item};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "element-size",
    title: "throughput versus element size",
    repeats: "MCRingBuffer, section II-D, Evaluation 1, Figure 8",
    about: "One item a call on both sides. All of an item is copied in and out, whatever the compiler could leave out.",
    parameters: &[
        Parameter { name: "capacity", here: "2000 (nexus-queue, disruptor 2048; heapless 2047)", paper: Some("2,000") },
        Parameter {
            name: "element size",
            here: "8 to 1024 bytes, by powers of two",
            paper: Some("shown in Figure 8 only; 64 bytes in the text"),
        },
        Parameter { name: "batch", here: "1, 10, 50; the safe mcring has its own", paper: Some("1, 10, 50") },
        Parameter { name: "items", here: "about 150 ms a sample", paper: Some("10 M") },
        Parameter { name: "rounds", here: "7, medians", paper: Some("30 trials, averages") },
    ],
    plan,
};

const CAPACITY: usize = 2000;

fn plan(plan: &mut Plan) {
    let axis = Axis { label: "bytes", scale: Scale::Log2 };
    for place in plan.each_place() {
        let view = View::MILLION_PER_SECOND.scale(Scale::Log);
        let panel = plan.panel("size", "by element size", place, Some(axis), view);
        size::<u64>(panel);
        size::<Block<2>>(panel);
        size::<Block<4>>(panel);
        size::<Block<8>>(panel);
        size::<Block<16>>(panel);
        size::<Block<32>>(panel);
        size::<Block<64>>(panel);
        size::<Block<128>>(panel);
    }
}

fn size<T: Item>(panel: &mut Panel) {
    let x = T::BYTES as f64;
    panel.one_by_one::<LockRingBuffer, T>(x, CAPACITY);
    panel.one_by_one::<BasicRingBuffer, T>(x, CAPACITY);
    panel.one_by_one::<McRingBuffer<1>, T>(x, CAPACITY);
    panel.one_by_one::<McRingBuffer<10>, T>(x, CAPACITY);
    panel.one_by_one::<McRingBuffer<50>, T>(x, CAPACITY);
    each_design!(P => panel.one_by_one::<P, T>(x, CAPACITY));
    each_crate!(P => panel.one_by_one::<P, T>(x, CAPACITY));
    panel.raw_streaming::<T>(x);
}
