//! How long to spin before a thread sleeps.

use crate::contender::Kind;
use crate::measure::{Metric, arrivals};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use corelane::wait::{Adaptive, Park, Spin, SpinPark, Strategy, Yield};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "spin",
    title: "how long to spin before sleeping, by arrival rate",
    repeats: "no paper: the question that Per-Thread Batch Queues leaves open",
    about: "Every wait is a guess. A thread that spins pays for the whole gap between two items; one that sleeps pays \
            for a sleep and a wake-up, and the item waits for the wake-up. Adaptive should be near the better of the \
            two at each rate: as fast as spinning while gaps are shorter than a wake-up, as cheap as sleeping when \
            they are longer. Beside a thread that computes on the same CPU, spinning takes half of that CPU, and a \
            thread that gives way waits for the other's slice to end; a thread that sleeps is run when it is woken.",
    parameters: &[
        Parameter { name: "queue", here: "a lane of 1024 items of 8 bytes", paper: None },
        Parameter { name: "gaps", here: "exponentially distributed, 0.5 us to 1 ms in the mean", paper: None },
        Parameter { name: "fixed spins", here: "50, 500 and 5000 pauses", paper: None },
        Parameter { name: "sender", here: "spins until an item is due, on a CPU of its own", paper: None },
    ],
    plan,
};

const CPU: View = View {
    id: "cpu",
    label: "CPU ns of the consumer an item",
    metric: Metric::CpuNanosecondsEach,
    scale: Scale::Log,
    higher_is_better: false,
};
const MEDIAN: View = View {
    id: "median",
    label: "latency, median, us",
    metric: Metric::Value(0),
    scale: Scale::Log,
    higher_is_better: false,
};
const TAIL: View = View { id: "tail", label: "latency, 99th percentile, us", metric: Metric::Value(1), ..MEDIAN };

/// Mean times between two items, in microseconds.
const GAPS: [f64; 10] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 300.0, 1000.0];

fn plan(plan: &mut Plan) {
    let place = plan.usual_place();
    let x = Axis { label: "mean gap between two items, us", scale: Scale::Log };
    for (id, title, rival) in [
        ("alone", "the consumer has its CPU", false),
        ("rival", "a thread that computes wants the consumer's CPU", true),
    ] {
        let panel = plan.panel(id, title, place, Some(x), CPU);
        panel.view(MEDIAN).view(TAIL);
        for gap in GAPS {
            series(panel, "Adaptive", Kind::Corelane, Adaptive, gap, rival);
            series(panel, "Spin", Kind::Paper, Spin, gap, rival);
            series(panel, "Yield", Kind::Paper, Yield, gap, rival);
            for looks in [50, 500, 5000] {
                series(panel, &format!("SpinPark {looks}"), Kind::Paper, SpinPark::new(looks), gap, rival);
            }
            series(panel, "Park", Kind::Paper, Park, gap, rival);
        }
    }
}

fn series<W: Strategy + Sync>(panel: &mut Panel, name: &str, kind: Kind, wait: W, gap: f64, rival: bool) {
    let run = move |setting: &_| arrivals(setting, wait.clone(), gap * 1e3, rival);
    panel.case(name, kind, &[gap], 100, run);
}
