//! Threads that contend meet beside the queue.

use crate::contender::Kind;
use crate::contenders::{Eliminating, Unfair};
use crate::measure::exchange;
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "elimination",
    title: "an unfair queue with and without an elimination arena, and an exchanger",
    repeats: "no paper: section 5 of Scalable Synchronous Queues found elimination beneficial \"only in cases of \
              artificially extreme contention\", and has no figures",
    about: "Threads put and take as fast as they can. With elimination, those whose compare-and-swap failed look for a \
            partner at one of several other places before they come back. It can only pay where many cores fail at one \
            cache line; with two, a failure is rare. The exchanger has the arena alone: each thread gives an item for \
            an item, to whomever it meets, and what is counted is meetings. CPU time is that of all threads.",
    parameters: &[
        Parameter { name: "threads", here: "1 to 64 a side", paper: None },
        Parameter { name: "item", here: "8 bytes", paper: None },
        Parameter { name: "transfers", here: "about 150 ms a sample", paper: None },
        Parameter { name: "placement", here: "left to the kernel; one pair also pinned to two cores", paper: None },
    ],
    plan,
};

const LEVELS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

fn plan(plan: &mut Plan) {
    let (wall, cpu) = (View::NANOSECONDS_A_TRANSFER, View::CPU_NANOSECONDS_A_TRANSFER);
    let place = plan.usual_place();
    let panel = plan.panel("pair", "one pair, a core each", place, None, wall);
    panel.view(cpu);
    at(panel, 1);
    panel.raw_ping_pong(1.0);
    let axis = Axis { label: "threads a side", scale: Scale::Log2 };
    let panel = plan.panel_on("n-n", "N threads a side", [None; 2], Some(axis), wall);
    panel.view(cpu);
    for level in LEVELS {
        at(panel, level);
    }
}

fn at(panel: &mut Panel, level: usize) {
    let x = level as f64;
    panel.hand_over::<Unfair>(x, level, level);
    panel.hand_over::<Eliminating>(x, level, level);
    panel.case("Exchanger", Kind::Corelane, &[x], 1000, move |setting: &Setting| exchange(setting, 2 * level));
}
