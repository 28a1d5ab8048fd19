//! Queues whose producers need not wait.

use crate::contenders::{CrossbeamZero, Fair, TransferPut, each_unbounded};
use crate::plan::{Axis, Experiment, Parameter, Plan, Scale, View};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "transfer",
    title: "a queue whose producers choose whether to wait",
    repeats: "no paper: section 5 of Scalable Synchronous Queues names transfer queues and has no figures of them",
    about: "Left behind: producers push and go on, consumers wait for items, in unbounded queues. Handed over: each \
            producer waits until its item is taken, as in a fair synchronous queue, which the transfer queue is then. \
            concurrent-queue leaves waiting to its user, which here yields. CPU time is that of all threads.",
    parameters: &[
        Parameter { name: "threads", here: "1 to 16 a side", paper: None },
        Parameter { name: "item", here: "8 bytes", paper: None },
        Parameter { name: "transfers", here: "about 150 ms a sample, at most a million", paper: None },
        Parameter { name: "placement", here: "left to the kernel; one pair also pinned to two cores", paper: None },
    ],
    plan,
};

const LEVELS: [usize; 5] = [1, 2, 4, 8, 16];

fn plan(plan: &mut Plan) {
    let (wall, cpu) = (View::NANOSECONDS_A_TRANSFER, View::CPU_NANOSECONDS_A_TRANSFER);
    let place = plan.usual_place();
    let panel = plan.panel("pair", "left behind: one pair, a core each", place, None, wall);
    panel.view(cpu);
    each_unbounded!(M => panel.hand_over::<M>(1.0, 1, 1));

    let axis = Axis { label: "threads a side", scale: Scale::Log2 };
    let panel = plan.panel_on("left", "left behind: N producers, N consumers", [None; 2], Some(axis), wall);
    panel.view(cpu);
    for level in LEVELS {
        each_unbounded!(M => panel.hand_over::<M>(level as f64, level, level));
    }

    let axis = Axis { label: "producers", scale: Scale::Log2 };
    let panel = plan.panel_on("left-to-one", "left behind: N producers, 1 consumer", [None; 2], Some(axis), wall);
    panel.view(cpu);
    for level in LEVELS {
        each_unbounded!(M => panel.hand_over::<M>(level as f64, level, 1));
    }

    let axis = Axis { label: "threads a side", scale: Scale::Log2 };
    let panel = plan.panel_on("handed", "handed over: N producers, N consumers", [None; 2], Some(axis), wall);
    panel.view(cpu);
    for level in LEVELS {
        panel.hand_over::<TransferPut>(level as f64, level, level);
        panel.hand_over::<Fair>(level as f64, level, level);
        panel.hand_over::<CrossbeamZero>(level as f64, level, level);
    }
}
