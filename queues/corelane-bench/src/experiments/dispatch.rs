//! The paper on batch queues: its experiments without clients.

use crate::contender::{Arrangement, Dispatch};
use crate::contenders::{
    CrossbeamJobs, LanesAdapt, LanesYield, RtrbByHand, each, each_channel_of_jobs, each_queue_of_jobs,
};
use crate::measure::dispatch;
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "dispatch",
    title: "jobs from one dispatcher to three workers: one queue or one each, single or in batches",
    repeats: "Per-Thread Batch Queues, section 4.2, Tables 1 and 2, and what section 6.0 says of longer jobs",
    about: "A dispatcher makes jobs, each a loop of so many turns, and hands them out as fast as the workers take \
            them; a sample is over when all have been done, each once, which is checked. The paper's queues are CLQ \
            (michael_scott), TLQ (two_lock), CVQ (condvar), BWQ (busy_wait); a B in front means batches. Their threads \
            wait as the paper's: CVQ's sleep, the others try again, and yield, as there need not be a CPU for each. Of \
            the rest, \"+ yield\" waits like that, ticket and lane alone spin and sleep by the default, Adaptive, and \
            channels wait by themselves. A lane has one consumer, so it is there as the fan-out, by dispatch and the \
            worker's iterator, or by slices and drain. Where there are fewer CPUs than four, threads share them: while \
            one runs, others cannot contend with it, which hides much of what a shared queue costs where each has its \
            own.",
    parameters: &[
        Parameter { name: "threads", here: "1 dispatcher, 3 workers", paper: Some("the same") },
        Parameter { name: "CPUs", here: "those of the machine, left to the kernel", paper: Some("4") },
        Parameter { name: "batch", here: "50", paper: Some("50") },
        Parameter {
            name: "job size",
            here: "0, 10; 10 to 10,000 turns of a loop",
            paper: Some("0; longer ones not said"),
        },
        Parameter {
            name: "batches",
            here: "about 150 ms a sample; without a bound at most 100,000",
            paper: Some("100,000"),
        },
        Parameter {
            name: "queue per worker",
            here: "each has a batch of jobs in turn, single or not",
            paper: Some("a private queue; whose turn it is is not said"),
        },
        Parameter { name: "capacity", here: "2048 a queue; CLQ and TLQ have no bound", paper: Some("not said") },
        Parameter {
            name: "time",
            here: "from the first start to the last end, jobs/s",
            paper: Some("average running time of all threads"),
        },
        Parameter { name: "runtime", here: "native code, threads of the system", paper: Some("JDK 1.5") },
    ],
    plan,
};

const WORKERS: usize = 3;
const BATCH: usize = 50;
/// Up to the batch size from which larger batches gain nothing.
const TURNS: [u32; 4] = [10, 100, 1000, 10_000];

fn plan(plan: &mut Plan) {
    for (id, title, turns) in [("empty", "empty jobs (Tables 1 and 2)", 0), ("ten", "jobs of 10 turns", 10)] {
        let panel = plan.panel_on(id, title, [None; 2], None, View::MILLION_JOBS);
        panel.view(View::CPU_NANOSECONDS_A_JOB).view(View::SWITCHES);
        panel.counting = true;
        for per_worker in [false, true] {
            each_queue_of_jobs!(D => {
                one::<D>(panel, per_worker, false, turns);
                one::<D>(panel, per_worker, true, turns);
            });
            each_channel_of_jobs!(D => one::<D>(panel, per_worker, false, turns));
        }
        each_lane(panel, turns);
        one::<LanesAdapt>(panel, true, false, turns);
        one::<LanesAdapt>(panel, true, true, turns);
        one::<RtrbByHand>(panel, true, true, turns);
        for (name, reason) in [
            ("crossbeam channel, batches", "has no batch calls"),
            ("flume and kanal, batches", "have a batch call on the receiving side only"),
            ("lane and rtrb, shared", "have one consumer"),
        ] {
            panel.leave_out(name, reason);
        }
    }

    let axis = Axis { label: "job size, turns", scale: Scale::Log };
    let title = "a queue per worker, by job size (section 6.0)";
    let panel = plan.panel_on("size", title, [None; 2], Some(axis), View::MILLION_JOBS);
    for turns in TURNS {
        each!([Clq, Tlq, Cvq, Bwq, TicketYields] D => {
            one::<D>(panel, true, false, turns);
            one::<D>(panel, true, true, turns);
        });
        each_lane(panel, turns);
        one::<RtrbByHand>(panel, true, true, turns);
        one::<CrossbeamJobs>(panel, false, false, turns);
    }
}

fn each_lane(panel: &mut Panel, turns: u32) {
    one::<LanesYield>(panel, true, false, turns);
    one::<LanesYield>(panel, true, true, turns);
}

fn one<D: Dispatch>(panel: &mut Panel, per_worker: bool, batched: bool, turns: u32) {
    let arrangement = Arrangement { per_worker, batched, batch: BATCH };
    let name = format!("{}, {}", D::name(batched), if per_worker { "per worker" } else { "shared" });
    panel.case(name, D::KIND, &[f64::from(turns)], 5000, move |setting: &Setting| {
        dispatch::<D>(setting, arrangement, WORKERS, turns)
    });
}
