//! How long to spin before a thread sleeps.

use crate::contenders::Kind;
use crate::measure::{Metric, arrivals};
use crate::plan::{Axis, Panel, Plan, Scale, View};
use corelane::wait::{Adaptive, Park, Spin, SpinPark, Strategy, Yield};

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

pub(super) fn plan(plan: &mut Plan) {
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
