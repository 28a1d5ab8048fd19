//! Messages of bytes of any length, in the queue or in boxes.

use crate::contender::Messages;
use crate::contenders::each_messages;
use crate::measure::messages;
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "messages",
    title: "messages of 5 bytes to 4 KiB, data or pointers",
    repeats: "no paper: the question of the case study on FastFlow's queue, with today's crates",
    about: "One thread pushes messages out of a stock, another pops them and checks length, order and both ends. With \
            the bytes in the queue they are copied in and read there; with pointers each message is copied into a box \
            of its own, which is freed at the other end. Unbounded: stream, linked, SegQueue, crossbeam unbounded, std \
            mpsc. Bounded: lane, stream within 64 KiB, rtrb, bbqueue.",
    parameters: &[
        Parameter { name: "message", here: "5 to 20 bytes mixed; 5 bytes to 4 KiB", paper: None },
        Parameter {
            name: "capacity",
            here: "lane 2048 boxes; bytes 64 KiB, or 64 messages if that is more",
            paper: None,
        },
        Parameter { name: "messages", here: "about 150 ms a sample, at most 256 MiB", paper: None },
    ],
    plan,
};

fn plan(plan: &mut Plan) {
    for place in plan.each_place() {
        let view = View { label: "M messages/s", ..View::MILLION_PER_SECOND.scale(Scale::Log) };
        let panel = plan.panel("short", "5 to 20 bytes", place, None, view);
        each_messages!(M => one::<M>(panel, 1.0, 5, 20));
        let axis = Axis { label: "bytes", scale: Scale::Log2 };
        let panel = plan.panel("length", "by length", place, Some(axis), view);
        for len in [5, 16, 64, 256, 1024, 4096] {
            each_messages!(M => one::<M>(panel, len as f64, len, len));
        }
    }
}

fn one<M: Messages>(panel: &mut Panel, x: f64, least: usize, longest: usize) {
    panel.case(M::name(), M::KIND, &[x], 20_000, move |setting: &Setting| messages::<M>(setting, least, longest));
}
