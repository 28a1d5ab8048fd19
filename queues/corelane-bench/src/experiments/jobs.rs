//! The paper on batch queues.

use crate::contenders::jobs::{self as queues, Dispatch};
use crate::measure::{self, Arrangement, Clients, Metric, values};
use crate::plan::{Axis, Panel, Plan, Scale, View};
use crate::setting::Setting;

const WORKERS: usize = 3;
/// The turns of a job where they do not vary.
const TURNS: u32 = 10;

fn lanes() -> [Dispatch; 2] {
    [queues::lanes_yield(), queues::lanes_adapt()]
}

/// Single, and in batches.
fn both_ways(queues: impl IntoIterator<Item = Dispatch>) -> impl Iterator<Item = (Dispatch, bool)> {
    queues.into_iter().flat_map(|queue| [(queue.clone(), false), (queue, true)])
}

/// Its experiments without clients.
pub(super) fn dispatch(plan: &mut Plan) {
    for (id, title, turns) in [("empty", "empty jobs (Tables 1 and 2)", 0), ("ten", "jobs of 10 turns", TURNS)] {
        let panel = plan.panel_on(id, title, [None; 2], None, View::MILLION_JOBS);
        panel.view(View::CPU_NANOSECONDS_A_JOB).view(View::SWITCHES);
        panel.counting = true;
        for per_worker in [false, true] {
            for (queue, batched) in both_ways(queues::queues()) {
                one(panel, &queue, per_worker, batched, turns);
            }
            queues::channels().iter().for_each(|queue| one(panel, queue, per_worker, false, turns));
        }
        for (queue, batched) in both_ways(lanes()) {
            one(panel, &queue, true, batched, turns);
        }
        one(panel, &queues::rtrb_by_hand(), true, true, turns);
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
    // Up to the batch size from which larger batches gain nothing.
    for turns in [10, 100, 1000, 10_000] {
        for (queue, batched) in both_ways(queues::queues().into_iter().take(5).chain([queues::lanes_yield()])) {
            one(panel, &queue, true, batched, turns);
        }
        one(panel, &queues::rtrb_by_hand(), true, true, turns);
        one(panel, &queues::crossbeam(), false, false, turns);
    }
}

fn one(panel: &mut Panel, queue: &Dispatch, per_worker: bool, batched: bool, turns: u32) {
    let arrangement = Arrangement { per_worker, batched, batch: 50 };
    let name = format!("{}, {}", queue.name(batched), if per_worker { "per worker" } else { "shared" });
    let queue = queue.clone();
    panel.case(name, queue.kind, &[f64::from(turns)], 5000, move |setting: &Setting| {
        measure::dispatch(setting, &queue, arrangement, WORKERS, turns)
    });
}

/// The counts of its profiler.
pub(super) fn attempts(plan: &mut Plan) {
    const BATCHES: u32 = 1000;
    const CLIENTS: Clients = Clients { clients: 50, requests: 10, batch: 150, turns: TURNS };
    let count = |id, label, metric| View { id, label, metric, scale: Scale::Log, higher_is_better: false };
    let views = [
        count("enqueue", "attempts to enqueue", Metric::Value(values::ENQUEUE)),
        count("enqueue-failed", "attempts to enqueue that failed", Metric::Value(values::ENQUEUE_FAILED)),
        count("dequeue", "attempts to dequeue", Metric::Value(values::DEQUEUE)),
        count("dequeue-failed", "attempts to dequeue that failed", Metric::Value(values::DEQUEUE_FAILED)),
        count("enqueue-cpu", "CPU µs inside enqueue", Metric::Value(values::ENQUEUE_CPU)),
        count("dequeue-cpu", "CPU µs inside dequeue", Metric::Value(values::DEQUEUE_CPU)),
        count("voluntary", "context switches, voluntary", Metric::VoluntarySwitches),
        count("involuntary", "context switches, involuntary", Metric::InvoluntarySwitches),
    ];
    for (id, title, of_clients) in [
        ("batches", "1,000 batches of 50 (Figures 4 and 5)", false),
        ("clients", "50 clients, 10 requests of 150 jobs each (Tables 4 and 5)", true),
    ] {
        let all = count("", "attempts", Metric::Value(values::ATTEMPTS));
        let panel = plan.panel_on(id, title, [None; 2], None, all);
        panel.views.extend(views);
        panel.counting = true;
        panel.leave_out("lane", "a fan-out does not count what its lanes were asked");
        for (queue, batched) in both_ways(queues::counting()) {
            let batch = if of_clients { CLIENTS.batch } else { 50 };
            let arrangement = Arrangement { per_worker: true, batched, batch };
            let name = queue.name(batched).to_owned();
            panel.case(name, queue.kind, &[f64::from(TURNS)], 1, move |setting: &Setting| match of_clients {
                false => measure::attempts(setting, &queue, arrangement, WORKERS, [BATCHES, TURNS]),
                true => measure::attempts_of_a_server(setting, &queue, arrangement, WORKERS, CLIENTS),
            });
        }
    }
}

/// Its experiment with clients.
pub(super) fn client_server(plan: &mut Plan) {
    const CLIENTS: Clients = Clients { clients: 900, requests: 80, batch: 0, turns: TURNS };
    const LEAST_REQUESTS: usize = 8;
    let axis = Axis { label: "jobs in a request", scale: Scale::Log2 };
    let view = View { label: "ms a request", metric: Metric::Values, scale: Scale::Log, ..View::NANOSECONDS };
    let panel = plan.panel_on("clients", "900 clients, jobs of 10 turns (Table 3)", [None; 2], Some(axis), view);
    panel.view(View::SWITCHES);
    panel.counting = true;
    for batch in [10, 50, 150] {
        let mut one = |queue: &Dispatch, per_worker, batched| {
            let arrangement = Arrangement { per_worker, batched, batch };
            let name = format!("{}{}", queue.name(batched), if per_worker { "" } else { ", shared" });
            let queue = queue.clone();
            let least = (CLIENTS.clients * LEAST_REQUESTS) as u64;
            panel.case(name, queue.kind, &[batch as f64], least, move |setting: &Setting| {
                measure::client_server(setting, &queue, arrangement, WORKERS, Clients { batch, ..CLIENTS })
            });
        };
        for (queue, batched) in both_ways(queues::queues().into_iter().chain(lanes())) {
            one(&queue, true, batched);
        }
        one(&queues::crossbeam(), true, false);
        one(&queues::crossbeam(), false, false);
    }
}
