//! The paper on batch queues: the counts of its profiler.

use crate::contender::{Arrangement, Counted};
use crate::contenders::each_counted_queue_of_jobs;
use crate::measure::{Clients, Metric, attempts, attempts_of_a_server, values};
use crate::plan::{Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "attempts",
    title: "how often a dispatcher and its workers try, and what that takes: single or in batches",
    repeats: "Per-Thread Batch Queues, sections 4.2.3 and 4.3.2, Figures 4 and 5, Tables 4 and 5",
    about: "A queue per worker. An attempt is one look at the queue that may find it full, empty, or taken by another \
            thread: a call that waits makes many, and condvar's one, in the middle of which it sleeps. The counts are \
            the queues' own. CPU time is that of the threads' clocks inside the calls that put and take, waiting \
            included: of the dispatcher it is read before and after each batch; of the workers it is all of their time \
            without what the same jobs take from no queue, and without acknowledgements, so that no clock stands \
            between two jobs. Context switches are those of the dispatcher and the workers; Linux counts a yield as an \
            involuntary one. A CAS-based queue with a CPU for each thread asks all the time while it waits; here it \
            yields between two attempts.",
    parameters: &[
        Parameter { name: "threads", here: "1 dispatcher, 3 workers", paper: Some("the same") },
        Parameter { name: "CPUs", here: "those of the machine, left to the kernel", paper: Some("4") },
        Parameter { name: "job size", here: "10 turns", paper: Some("10") },
        Parameter { name: "without clients", here: "1,000 batches of 50", paper: Some("1,000 batches of 50") },
        Parameter {
            name: "clients",
            here: "50 over loopback, 10 requests of 150 jobs each",
            paper: Some("50 threads on laptops, 10 requests of 150 jobs each"),
        },
        Parameter {
            name: "CPU time",
            here: "µs of the threads' clocks",
            paper: Some("a profiler's virtual CPU cycles"),
        },
        Parameter { name: "runtime", here: "native code, threads of the system", paper: Some("JDK 1.5, profiled") },
    ],
    plan,
};

const WORKERS: usize = 3;
const TURNS: u32 = 10;
const BATCHES: u64 = 1000;
const CLIENTS: Clients = Clients { clients: 50, requests: 10, batch: 150, turns: TURNS };

const fn count(id: &'static str, label: &'static str, metric: Metric) -> View {
    View { id, label, metric, scale: Scale::Log, higher_is_better: false }
}

const VIEWS: [View; 8] = [
    count("enqueue", "attempts to enqueue", Metric::Value(values::ENQUEUE)),
    count("enqueue-failed", "attempts to enqueue that failed", Metric::Value(values::ENQUEUE_FAILED)),
    count("dequeue", "attempts to dequeue", Metric::Value(values::DEQUEUE)),
    count("dequeue-failed", "attempts to dequeue that failed", Metric::Value(values::DEQUEUE_FAILED)),
    count("enqueue-cpu", "CPU µs inside enqueue", Metric::Value(values::ENQUEUE_CPU)),
    count("dequeue-cpu", "CPU µs inside dequeue", Metric::Value(values::DEQUEUE_CPU)),
    count("voluntary", "context switches, voluntary", Metric::VoluntarySwitches),
    count("involuntary", "context switches, involuntary", Metric::InvoluntarySwitches),
];

fn plan(plan: &mut Plan) {
    let panel = with_views(plan, "batches", "1,000 batches of 50 (Figures 4 and 5)");
    each_counted_queue_of_jobs!(D => without_clients::<D>(panel));
    let panel = with_views(plan, "clients", "50 clients, 10 requests of 150 jobs each (Tables 4 and 5)");
    each_counted_queue_of_jobs!(D => of_a_server::<D>(panel));
}

fn without_clients<D: Counted>(panel: &mut Panel) {
    for batched in [false, true] {
        let arrangement = Arrangement { per_worker: true, batched, batch: 50 };
        panel.case(D::name(batched), D::KIND, &[f64::from(TURNS)], 1, move |setting: &Setting| {
            attempts::<D>(setting, arrangement, WORKERS, BATCHES, TURNS)
        });
    }
}

fn of_a_server<D: Counted>(panel: &mut Panel) {
    for batched in [false, true] {
        let arrangement = Arrangement { per_worker: true, batched, batch: CLIENTS.batch };
        panel.case(D::name(batched), D::KIND, &[f64::from(TURNS)], 1, move |setting: &Setting| {
            attempts_of_a_server::<D>(setting, arrangement, WORKERS, CLIENTS)
        });
    }
}

fn with_views<'a>(plan: &'a mut Plan, id: &str, title: &str) -> &'a mut Panel {
    let all = count("", "attempts", Metric::Value(values::ATTEMPTS));
    let panel = plan.panel_on(id, title, [None; 2], None, all);
    for view in VIEWS {
        panel.view(view);
    }
    panel.counting = true;
    panel.leave_out("lane", "a fan-out does not count what its lanes were asked");
    panel
}
