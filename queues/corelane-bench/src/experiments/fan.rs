//! B-Queue, Figure 12, without its application: one thread that feeds many queues.

use crate::contender::Pair;
use crate::contenders::{
    FastForwardTuned, McRingBuffer, McRingBufferSane, PaperBQueueAdaptive, Ringbuf, Rtrb, each_design,
};
use crate::measure::{Drain, fan};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View, far_above};
use crate::setting::Setting;
use crate::slip;
use crate::topology;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "fan",
    title: "one thread that feeds many queues",
    repeats: "B-Queue, section 5.3, Figure 12, as a synthetic analogue: no TCP/IP stack, no packets",
    about: "One thread deals words out to the queues in turn; one other drains them in turn, an item at a time. \
            FastForward has its slip tuned once at one queue, which is the paper's point, and anew at each number of \
            queues. MCRingBuffer is raw, which the paper calls (deadlock), and with a timer that has the producer \
            inject unused items, (sane). Where cores allow, each queue also has a consumer of its own.",
    parameters: &[
        Parameter { name: "queue size", here: "2048", paper: Some("2,048") },
        Parameter { name: "batch size", here: "256", paper: Some("256") },
        Parameter { name: "timer", here: "every 10 µs", paper: Some("every 10 µs") },
        Parameter { name: "queues", here: "1 to 64", paper: Some("1 to 7") },
        Parameter { name: "items", here: "about 150 ms a sample", paper: Some("not said") },
    ],
    plan,
};

const CAPACITY: usize = 2048;
/// The paper's largest number of queues is 7.
const QUEUES: [usize; 7] = [1, 2, 4, 7, 16, 32, 64];

fn plan(plan: &mut Plan) {
    let axis = Axis { label: "queues", scale: Scale::Log2 };
    let view = View::CYCLES.scale(Scale::Log);
    let place = plan.usual_place();
    let panel = plan.panel("fan", "one thread feeds, one drains", place, Some(axis), view);
    for queues in QUEUES {
        at(panel, queues, Drain::OneThread);
    }
    let others = topology::cpus().len().saturating_sub(1);
    if others > 1 {
        let panel = plan.panel("each", "one thread feeds, each queue has its consumer", place, Some(axis), view);
        for queues in QUEUES.into_iter().filter(|queues| *queues <= others) {
            at(panel, queues, Drain::ThreadEach);
        }
    }
}

fn at(panel: &mut Panel, queues: usize, drain: Drain) {
    one::<PaperBQueueAdaptive>(panel, queues, drain);
    one::<McRingBuffer<256>>(panel, queues, drain);
    one::<McRingBufferSane<256>>(panel, queues, drain);
    let tuned = |panel: &mut Panel, name: &str, tuned_at: usize| {
        panel.case(name, FastForwardTuned::KIND, &[queues as f64], least(queues), move |setting: &Setting| {
            FastForwardTuned::slip(slip::for_queues(setting, CAPACITY, tuned_at));
            fan::<FastForwardTuned>(setting, CAPACITY, queues, drain)
        });
    };
    tuned(panel, "FastForward, slip tuned at one queue", 1);
    tuned(panel, "FastForward, slip tuned at each point", queues);
    each_design!(P => one::<P>(panel, queues, drain));
    one::<Rtrb>(panel, queues, drain);
    one::<Ringbuf>(panel, queues, drain);
}

fn one<P: Pair<u64>>(panel: &mut Panel, queues: usize, drain: Drain) {
    panel.case(P::name(), P::KIND, &[queues as f64], least(queues), move |setting: &Setting| {
        fan::<P>(setting, CAPACITY, queues, drain)
    });
}

/// Several laps of every queue.
fn least(queues: usize) -> u64 {
    far_above(CAPACITY).max((5 * CAPACITY * queues) as u64)
}
