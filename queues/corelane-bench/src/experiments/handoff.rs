//! The synchronous queues paper: its microbenchmarks.

use crate::contender::ManyToMany;
use crate::contenders::each_handoff;
use crate::measure::idle;
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "handoff",
    title: "items from hand to hand, by number of threads",
    repeats: "Scalable Synchronous Queues, section 4, Figures 3, 4 and 5",
    about: "Threads put and take as fast as they can; each put waits for its take. Beside the new queues are those \
            that the paper compares with, written for threads that sleep at once, and the channels without room of \
            today's crates. Where there are more threads than CPUs, a fair queue has to wake the thread that has slept \
            longest for every item; an unfair one serves a thread that is awake. CPU time is that of all threads: \
            spinning and yielding are fast and cost a core. flume promises only that a receiver waits, not that it has \
            the item.",
    parameters: &[
        Parameter { name: "threads", here: "1 to 64 a side", paper: Some("levels of concurrency 2 to 64") },
        Parameter { name: "item", here: "8 bytes", paper: Some("not said") },
        Parameter {
            name: "transfers",
            here: "about 150 ms a sample, the same number for each thread of a side",
            paper: Some("not said"),
        },
        Parameter {
            name: "placement",
            here: "left to the kernel; one pair also pinned to two cores",
            paper: Some("not said"),
        },
        Parameter { name: "runtime", here: "native code, threads of the system", paper: Some("Java SE 5.0, HotSpot") },
        Parameter { name: "idle", here: "4 takers, 500 ms a round", paper: None },
    ],
    plan,
};

const LEVELS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const IDLE_TAKERS: usize = 4;
const IDLE_MS: u64 = 500;

fn plan(plan: &mut Plan) {
    let place = plan.usual_place();
    let panel = plan.panel("pair", "one pair, a core each", place, None, View::NANOSECONDS_A_TRANSFER);
    panel.view(View::CPU_NANOSECONDS_A_TRANSFER);
    each_handoff!(M => panel.hand_over::<M>(1.0, 1, 1));
    panel.raw_ping_pong(1.0);

    by_level(plan, "n-n", "N producers, N consumers (Figure 3)", "threads a side", |n| (n, n));
    by_level(plan, "1-n", "1 producer, N consumers (Figure 4)", "consumers", |n| (1, n));
    by_level(plan, "n-1", "N producers, 1 consumer (Figure 5)", "producers", |n| (n, 1));

    let panel = plan.panel_on("idle", "consumers that wait", [None; 2], None, View::PERCENT_OF_A_CORE);
    each_handoff!(M => {
        if M::ONE_TAKER {
            panel.leave_out(M::name(), "has one receiver");
        } else {
            waits::<M>(panel);
        }
    });
}

fn by_level(plan: &mut Plan, id: &str, title: &str, label: &'static str, threads: impl Fn(usize) -> (usize, usize)) {
    let axis = Axis { label, scale: Scale::Log2 };
    let panel = plan.panel_on(id, title, [None; 2], Some(axis), View::NANOSECONDS_A_TRANSFER);
    panel.view(View::CPU_NANOSECONDS_A_TRANSFER);
    for level in LEVELS {
        let (putters, takers) = threads(level);
        each_handoff!(M => panel.hand_over::<M>(level as f64, putters, takers));
    }
}

fn waits<M: ManyToMany>(panel: &mut Panel) {
    panel.case(M::name(), M::KIND, &[1.0], IDLE_MS, |setting: &Setting| idle::<M>(setting, IDLE_TAKERS));
}
