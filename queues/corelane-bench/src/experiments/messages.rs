//! Messages of bytes of any length, in the queue or in boxes.

use crate::contenders::messages::{any_length, fastflow_short, linked_short, stream};
use crate::plan::{Axis, Plan, Scale, View};
use crate::setting::Setting;

pub(super) fn messages(plan: &mut Plan) {
    for place in plan.each_place() {
        let view = View { label: "M messages/s", ..View::MILLION_PER_SECOND.scale(Scale::Log) };
        let axis = Axis { label: "bytes", scale: Scale::Log2 };
        let lengths: &[[usize; 2]] = &[5, 16, 64, 256, 1024, 4096].map(|length| [length; 2]);
        for (id, title, axis, lengths) in
            [("short", "5 to 20 bytes", None, &[[5, 20]][..]), ("length", "by length", Some(axis), lengths)]
        {
            let panel = plan.panel(id, title, place, axis, view);
            for &[least, longest] in lengths {
                let x = if axis.is_some() { longest as f64 } else { 1.0 };
                for queue in any_length() {
                    let run = move |setting: &Setting| queue.runs.messages(setting, least, longest);
                    panel.case(queue.name, queue.kind, &[x], 20_000, run);
                }
            }
        }
    }
}

/// The case study on FastFlow's queue: its benchmark.
pub(super) fn ring(plan: &mut Plan) {
    let axis = Axis { label: "workers", scale: Scale::Linear };
    let view = View { label: "M messages/s", ..View::MILLION_PER_SECOND };
    let place = plan.usual_place();
    let panel = plan.panel("ring", "a main thread and workers", place, Some(axis), view);
    for workers in 1..=4 {
        for queue in [fastflow_short(), linked_short(), stream()] {
            let run = move |setting: &Setting| queue.runs.ring(setting, workers);
            panel.case(queue.name, queue.kind, &[workers as f64], 20_000, run);
        }
    }
}
