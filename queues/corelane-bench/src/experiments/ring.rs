//! The case study on FastFlow's queue: its benchmark.

use crate::contender::Messages;
use crate::contenders::{FastFlowShort, LinkedShort, Stream};
use crate::measure::message_ring;
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "ring",
    title: "messages round a ring of threads, data or pointers",
    repeats: "the case study on FastFlow's queue, its benchmark",
    about: "A main thread emits messages, the last one END; workers check each and pass it on; the main thread takes \
            it back. fastflow and linked pass pointers to boxes, which the thread that emits or passes allocates and \
            the one that takes frees; stream has the bytes in the queue. The text's queue for pointers is linked of \
            boxes, its queue for data is stream. Where there are more threads than CPUs, they share them, and yield.",
    parameters: &[
        Parameter { name: "message", here: "a 4-byte length and payload, 5 to 20 bytes", paper: Some("the same") },
        Parameter { name: "messages", here: "about 150 ms a sample, at most 13 M", paper: Some("50 M") },
        Parameter { name: "workers", here: "1 to 4", paper: Some("N; 16 hardware threads") },
        Parameter {
            name: "main thread",
            here: "takes what is back after every 1024 messages it emits",
            paper: Some("not said"),
        },
        Parameter { name: "integrity", here: "length, order, both ends of the payload", paper: Some("\"basic\"") },
    ],
    plan,
};

fn plan(plan: &mut Plan) {
    let axis = Axis { label: "workers", scale: Scale::Linear };
    let view = View { label: "M messages/s", ..View::MILLION_PER_SECOND };
    let place = plan.usual_place();
    let panel = plan.panel("ring", "a main thread and workers", place, Some(axis), view);
    for workers in 1..=4 {
        one::<FastFlowShort>(panel, workers);
        one::<LinkedShort>(panel, workers);
        one::<Stream>(panel, workers);
    }
}

fn one<M: Messages>(panel: &mut Panel, workers: usize) {
    panel.case(M::name(), M::KIND, &[workers as f64], 20_000, move |setting: &Setting| {
        message_ring::<M>(setting, workers)
    });
}
