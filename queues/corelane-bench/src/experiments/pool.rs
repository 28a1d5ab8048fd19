//! The synchronous queues paper: thread pools on them.

use crate::contender::{Kind, Pool};
use crate::contenders::{each_executor, each_pool};
use crate::measure::{idle_pool, tasks};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::roofline;
use crate::setting::Setting;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "pool",
    title: "time a task in a pool of threads, by number of submitters",
    repeats: "Scalable Synchronous Queues, section 4, Figure 6",
    about: "Threads hand tasks in as fast as they can; a sample is over when all of them have been run. The paper's \
            executor hands a task to a thread that waits, or starts one, without a limit; it is written here as \
            briefly as can be, over four queues. The cached pools of this library do the same, and so does tokio's for \
            calls that block; both start up to 512 threads. The others keep tasks that wait in a queue, and have as \
            many threads as there are CPUs. To hand over and to start at once is good for whatever takes long; a flood \
            of empty tasks is the worst there is for it. A box a task is what a submitter and one runner take that \
            only spin, with no pool between them. CPU time is that of the whole process.",
    parameters: &[
        Parameter { name: "submitters", here: "1 to 64", paper: Some("levels of concurrency 2 to 64") },
        Parameter { name: "tasks", here: "empty; 1 µs of work", paper: Some("not said") },
        Parameter { name: "tasks in all", here: "about 150 ms a sample, at most a million", paper: Some("not said") },
        Parameter {
            name: "pool",
            here: "this library's (bounded: room for 1024), and other crates'",
            paper: Some("Java's ThreadPoolExecutor"),
        },
        Parameter { name: "placement", here: "left to the kernel", paper: Some("not said") },
        Parameter { name: "idle", here: "4 threads, 500 ms a round", paper: None },
    ],
    plan,
};

const SUBMITTERS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const SHORT_NANOSECONDS: u64 = 1000;
const IDLE_THREADS: usize = 4;
const IDLE_MS: u64 = 500;

fn plan(plan: &mut Plan) {
    let axis = Axis { label: "submitters", scale: Scale::Log2 };
    let wall = View { label: "ns a task", scale: Scale::Log, ..View::NANOSECONDS };
    let cpu = View { label: "CPU ns a task", ..View::CPU_NANOSECONDS };
    let panel = plan.panel_on("executor", "the paper's executor, empty tasks (Figure 6)", [None; 2], Some(axis), wall);
    panel.view(cpu);
    for submitters in SUBMITTERS {
        each_executor!(P => by::<P>(panel, submitters, 0));
    }
    panel.leave_out("Hanson", "has no try_put: a rendezvous that has begun cannot be undone");
    for (id, title, nanoseconds) in
        [("empty", "pools, empty tasks", 0), ("short", "pools, tasks of 1 µs", SHORT_NANOSECONDS)]
    {
        let panel = plan.panel_on(id, title, [None; 2], Some(axis), wall);
        panel.view(cpu);
        for submitters in SUBMITTERS {
            each_pool!(P => by::<P>(panel, submitters, nanoseconds));
        }
        if nanoseconds == 0 {
            panel.case(roofline::BOXES, Kind::Roofline, &[1.0], 1000, roofline::boxes);
        }
    }
    let panel = plan.panel_on("idle", "a pool without work", [None; 2], None, View::PERCENT_OF_A_CORE);
    each_pool!(P => waits::<P>(panel));
}

fn by<P: Pool>(panel: &mut Panel, submitters: usize, nanoseconds: u64) {
    panel.case(P::name(), P::KIND, &[submitters as f64], 1000, move |setting: &Setting| {
        tasks::<P>(setting, submitters, nanoseconds)
    });
}

fn waits<P: Pool>(panel: &mut Panel) {
    panel.case(P::name(), P::KIND, &[1.0], IDLE_MS, |setting: &Setting| idle_pool::<P>(setting, IDLE_THREADS));
}
