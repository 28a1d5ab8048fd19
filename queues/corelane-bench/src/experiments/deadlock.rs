//! B-Queue, Figure 5: which designs hang in a ring of two queues.

use crate::contender::Pair;
use crate::contenders::{
    BasicRingBuffer, FastForward, LockRingBuffer, McRingBuffer, McRingBufferCallback, McRingBufferSane, PaperBQueue,
    each_crate, each_design,
};
use crate::measure::ring;
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;
use corelane_papers::b_queue::{Adaptive, NoBacktracking, Plain};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "deadlock",
    title: "which designs hang in a ring of two queues",
    repeats: "B-Queue, section 2.5, Figure 5, and section 2.6",
    about: "Two threads, a queue each way. The first sends some items, and from then on both only pass on what they \
            get. A design that shows items in batches only has both wait for ever when fewer than a batch are on their \
            way. A run ends when both sides have waited at one place for two seconds.",
    parameters: &[
        Parameter { name: "queue size", here: "2000; B-Queue 2048", paper: None },
        Parameter { name: "batch", here: "50; B-Queue 256", paper: None },
        Parameter {
            name: "items on their way",
            here: "1, 20, 49, 200, 1000",
            paper: Some("\"less than the batch size\""),
        },
    ],
    plan,
};

/// The power of two is for contenders that require one.
const CAPACITY: usize = 2048;

fn plan(plan: &mut Plan) {
    let axis = Axis { label: "items on their way", scale: Scale::Log };
    let view = View { label: "ns a hop", ..View::NANOSECONDS.scale(Scale::Log) };
    let place = plan.usual_place();
    let panel = plan.panel("ring", "a ring of two queues", place, Some(axis), view);
    for items in [1, 20, 49, 200, 1000] {
        one::<LockRingBuffer>(panel, items);
        one::<BasicRingBuffer>(panel, items);
        one::<FastForward>(panel, items);
        one::<McRingBuffer<50>>(panel, items);
        one::<McRingBufferSane<50>>(panel, items);
        one::<McRingBufferCallback<50>>(panel, items);
        one::<PaperBQueue<NoBacktracking>>(panel, items);
        one::<PaperBQueue<Plain>>(panel, items);
        one::<PaperBQueue<Adaptive>>(panel, items);
        each_design!(P => one::<P>(panel, items));
        each_crate!(P => one::<P>(panel, items));
    }
    panel.leave_out(
        "MCRingBuffer, method 1",
        "not built: an auxiliary thread that inserts is a second producer, and the queue is for one",
    );
    panel.leave_out(
        "MCRingBuffer, method 2",
        "not built: a timer that interrupts the producer needs a reentrant one, and would overwrite a half-done insertion",
    );
}

fn one<P: Pair<u64>>(panel: &mut Panel, items: u64) {
    panel.case(P::name(), P::KIND, &[items as f64], 20_000, move |setting: &Setting| {
        ring::<P>(setting, CAPACITY, items)
    });
}
