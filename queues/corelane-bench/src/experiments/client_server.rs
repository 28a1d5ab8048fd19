//! The paper on batch queues: its experiment with clients.

use crate::contender::{Arrangement, Dispatch};
use crate::contenders::{CrossbeamJobs, each, each_queue_of_jobs};
use crate::measure::{Clients, Metric, client_server};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "client-server",
    title: "jobs from 900 clients over TCP: the time of a request",
    repeats: "Per-Thread Batch Queues, section 4.3.1, Table 3",
    about: "Each client sends a request of many jobs, waits for its acknowledgement, and sends the next; the \
            dispatcher hands the jobs to three workers, and the worker of a request's last job acknowledges it. \
            Clients are threads and connections of their own on the same machine, all connected before the first \
            request, and the server has a thread for each that reads: so most of the time goes to the system's sockets \
            and scheduler, the same for all. The protocol and the clients are those of the example job_server. The \
            paper's running time of a client is that of its 80 requests; here is the time of one. Context switches are \
            those of the dispatcher and the workers.",
    parameters: &[
        Parameter {
            name: "clients",
            here: "900 threads on the same machine",
            paper: Some("300 threads on each of 3 laptops"),
        },
        Parameter {
            name: "requests",
            here: "8 to 80 of each client, by the length of a sample",
            paper: Some("80 of each client"),
        },
        Parameter { name: "batch", here: "10, 50, 150", paper: Some("150, and smaller ones") },
        Parameter { name: "job size", here: "10 turns", paper: Some("10") },
        Parameter {
            name: "server",
            here: "1 dispatcher, 3 workers, a queue per worker",
            paper: Some("the same, 4 processors"),
        },
        Parameter { name: "network", here: "loopback", paper: Some("not said") },
        Parameter { name: "runtime", here: "native code, threads of the system", paper: Some("JDK 1.5") },
    ],
    plan,
};

const WORKERS: usize = 3;
const CLIENTS: usize = 900;
const REQUESTS: usize = 80;
const LEAST_REQUESTS: usize = 8;
const TURNS: u32 = 10;

fn plan(plan: &mut Plan) {
    let axis = Axis { label: "jobs in a request", scale: Scale::Log2 };
    let view =
        View { id: "", label: "ms a request", metric: Metric::Values, scale: Scale::Log, higher_is_better: false };
    let panel = plan.panel_on("clients", "900 clients, jobs of 10 turns (Table 3)", [None; 2], Some(axis), view);
    panel.view(View::SWITCHES);
    panel.counting = true;
    for batch in [10, 50, 150] {
        each_queue_of_jobs!(D => by_batch::<D>(panel, batch));
        each!([LanesYield, LanesAdapt] D => by_batch::<D>(panel, batch));
        one::<CrossbeamJobs>(panel, Arrangement { per_worker: true, batched: false, batch });
        one::<CrossbeamJobs>(panel, Arrangement { per_worker: false, batched: false, batch });
    }
}

fn by_batch<D: Dispatch>(panel: &mut Panel, batch: usize) {
    for batched in [false, true] {
        one::<D>(panel, Arrangement { per_worker: true, batched, batch });
    }
}

fn one<D: Dispatch>(panel: &mut Panel, arrangement: Arrangement) {
    let Arrangement { per_worker, batched, batch } = arrangement;
    let name = format!("{}{}", D::name(batched), if per_worker { "" } else { ", shared" });
    let least = (CLIENTS * LEAST_REQUESTS) as u64;
    let clients = Clients { clients: CLIENTS, requests: REQUESTS, batch, turns: TURNS };
    panel.case(name, D::KIND, &[batch as f64], least, move |setting: &Setting| {
        client_server::<D>(setting, arrangement, WORKERS, clients)
    });
}
