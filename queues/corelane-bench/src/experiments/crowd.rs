//! Bounded queues that many threads share.

use crate::contenders::each_bounded;
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "crowd",
    title: "a queue with a bound between many threads",
    repeats: "no paper: today's crates, by number of threads",
    about: "Producers push numbered items, consumers pop them, each side the same number a thread; both wait by the \
            queue's default. Of lanes each producer has one, and order is its own. ArrayQueue leaves waiting to its \
            user, which here yields. CPU time is that of all threads. \
            With more threads than CPUs the figures say as much about the scheduler as about the queue.",
    parameters: &[
        Parameter { name: "threads", here: "1 to 16 a side", paper: None },
        Parameter { name: "item", here: "8 bytes", paper: None },
        Parameter { name: "capacity", here: "1024", paper: None },
        Parameter { name: "items", here: "about 150 ms a sample, at most a million", paper: None },
        Parameter { name: "placement", here: "left to the kernel; one pair also pinned to two cores", paper: None },
    ],
    plan,
};

/// Producers and consumers of a level.
type Sides = fn(usize) -> (usize, usize);

const LEVELS: [usize; 5] = [1, 2, 4, 8, 16];

fn plan(plan: &mut Plan) {
    let place = plan.usual_place();
    let panel = plan.panel("pair", "one pair, a core each", place, None, View::NANOSECONDS_A_TRANSFER);
    panel.view(View::CPU_NANOSECONDS_A_TRANSFER);
    each(panel, 1.0, 1, 1);
    let shapes: [(_, _, _, Sides); 3] = [
        ("even", "N producers, N consumers", "threads a side", |n| (n, n)),
        ("to-one", "N producers, 1 consumer", "producers", |n| (n, 1)),
        ("from-one", "1 producer, N consumers", "consumers", |n| (1, n)),
    ];
    for (id, title, label, sides) in shapes {
        let axis = Axis { label, scale: Scale::Log2 };
        let panel = plan.panel_on(id, title, [None; 2], Some(axis), View::NANOSECONDS_A_TRANSFER);
        panel.view(View::CPU_NANOSECONDS_A_TRANSFER);
        for level in LEVELS {
            let (producers, consumers) = sides(level);
            each(panel, level as f64, producers, consumers);
        }
    }
}

fn each(panel: &mut Panel, x: f64, producers: usize, consumers: usize) {
    each_bounded!(M => panel.hand_over::<M>(x, producers, consumers));
}
