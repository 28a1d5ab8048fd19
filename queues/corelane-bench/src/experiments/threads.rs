//! Queues and pools between any number of threads.

use crate::contenders::Kind;
use crate::contenders::many::{self, Many};
use crate::contenders::pools::{self, Pool};
use crate::plan::{Axis, Panel, Plan, Scale, View};
use crate::roofline;
use crate::setting::Setting;

/// Putting and taking threads of a level.
type Sides = fn(usize) -> [usize; 2];

/// A panel by the number of threads: its id, its title, the label of its axis, and the threads of a level.
type Shape = (&'static str, &'static str, &'static str, Sides);

const LEVELS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// How many levels there are where no paper asks for more.
const FEW: usize = 5;

/// A panel of one pair, a core each, and one for each shape.
fn hand_over<'a>(plan: &'a mut Plan, pair: &str, queues: &[Many], shapes: &[Shape], levels: &[usize]) -> &'a mut Panel {
    let place = plan.usual_place();
    let panel = plan.panel("pair", pair, place, None, View::NANOSECONDS_A_TRANSFER);
    panel.view(View::CPU_NANOSECONDS_A_TRANSFER);
    panel.hand_over(queues, 1.0, 1, 1);
    let first = plan.panels.len() - 1;
    for &(id, title, label, sides) in shapes {
        let axis = Axis { label, scale: Scale::Log2 };
        let panel = plan.panel_on(id, title, [None; 2], Some(axis), View::NANOSECONDS_A_TRANSFER);
        panel.view(View::CPU_NANOSECONDS_A_TRANSFER);
        for &level in levels {
            let [putters, takers] = sides(level);
            panel.hand_over(queues, level as f64, putters, takers);
        }
    }
    &mut plan.panels[first]
}

/// The synchronous queues paper: its microbenchmarks.
pub(super) fn handoff(plan: &mut Plan) {
    const IDLE_TAKERS: usize = 4;
    let mut queues = many::handoff();
    let shapes: [Shape; 3] = [
        ("n-n", "N producers, N consumers (Figure 3)", "threads a side", |n| [n, n]),
        ("1-n", "1 producer, N consumers (Figure 4)", "consumers", |n| [1, n]),
        ("n-1", "N producers, 1 consumer (Figure 5)", "producers", |n| [n, 1]),
    ];
    queues.push(many::eliminating());
    hand_over(plan, "one pair, a core each", &queues, &shapes, &LEVELS).raw_ping_pong(1.0);
    let panel = plan.panel_on("idle", "consumers that wait", [None; 2], None, View::PERCENT_OF_A_CORE);
    for queue in queues {
        if queue.has_one_taker {
            panel.leave_out(queue.name, "has one receiver");
        } else {
            panel.case(queue.name, queue.kind, &[1.0], IDLE_MS, move |setting| queue.runs.idle(setting, IDLE_TAKERS));
        }
    }
}

const IDLE_MS: u64 = 500;

/// Queues whose producers need not wait.
pub(super) fn transfer(plan: &mut Plan) {
    let shapes: [Shape; 2] = [
        ("left", "left behind: N producers, N consumers", "threads a side", |n| [n, n]),
        ("left-to-one", "left behind: N producers, 1 consumer", "producers", |n| [n, 1]),
    ];
    hand_over(plan, "left behind: one pair, a core each", &many::unbounded(), &shapes, &LEVELS[..FEW]);
    let axis = Axis { label: "threads a side", scale: Scale::Log2 };
    let title = "handed over: N producers, N consumers";
    let panel = plan.panel_on("handed", title, [None; 2], Some(axis), View::NANOSECONDS_A_TRANSFER);
    panel.view(View::CPU_NANOSECONDS_A_TRANSFER);
    for &level in &LEVELS[..FEW] {
        let queues = [many::transfer_put(), many::fair(), many::crossbeam_zero()];
        panel.hand_over(&queues, level as f64, level, level);
    }
}

/// Bounded queues that many threads share.
pub(super) fn crowd(plan: &mut Plan) {
    let shapes: [Shape; 3] = [
        ("even", "N producers, N consumers", "threads a side", |n| [n, n]),
        ("to-one", "N producers, 1 consumer", "producers", |n| [n, 1]),
        ("from-one", "1 producer, N consumers", "consumers", |n| [1, n]),
    ];
    hand_over(plan, "one pair, a core each", &many::bounded(), &shapes, &LEVELS[..FEW]);
}

/// The synchronous queues paper: thread pools on them.
pub(super) fn pool(plan: &mut Plan) {
    const IDLE_THREADS: usize = 4;
    let axis = Axis { label: "submitters", scale: Scale::Log2 };
    let wall = View { label: "ns a task", scale: Scale::Log, ..View::NANOSECONDS };
    let mut panel = |id: &str, title: &str, pools: &[Pool], nanoseconds: u64| {
        let panel = plan.panel_on(id, title, [None; 2], Some(axis), wall);
        panel.view(View { label: "CPU ns a task", ..View::CPU_NANOSECONDS });
        for submitters in LEVELS {
            for pool in pools {
                let runs = pool.runs.clone();
                let run = move |setting: &Setting| runs.tasks(setting, submitters, nanoseconds);
                panel.case(pool.name, pool.kind, &[submitters as f64], 1000, run);
            }
        }
        match id {
            "executor" => panel.leave_out("Hanson", "has no try_put: a rendezvous that has begun cannot be undone"),
            "empty" => panel.case(roofline::BOXES, Kind::Roofline, &[1.0], 1000, roofline::boxes),
            _ => {}
        }
    };
    let pools = pools::pools();
    panel("executor", "the paper's executor, empty tasks (Figure 6)", &pools::executors(), 0);
    panel("empty", "pools, empty tasks", &pools, 0);
    panel("short", "pools, tasks of 1 µs", &pools, 1000);
    let panel = plan.panel_on("idle", "a pool without work", [None; 2], None, View::PERCENT_OF_A_CORE);
    for pool in pools {
        panel.case(pool.name, pool.kind, &[1.0], IDLE_MS, move |setting| pool.runs.idle(setting, IDLE_THREADS));
    }
}
