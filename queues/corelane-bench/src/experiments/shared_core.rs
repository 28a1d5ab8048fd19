//! Too few cores: both ends on one CPU, four pairs on two.

use crate::contenders::{each_crate_that_does_not_wait, each_crate_that_waits, each_design};
use crate::plan::{Experiment, Parameter, Plan, Scale, View};
use crate::topology;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "shared-core",
    title: "too few cores: both ends on one CPU, four pairs on two",
    repeats: "no paper: theirs have a core for each thread",
    about: "Each end waits as its queue does by itself. Queues that leave waiting to their user give up their time \
            slice after a failed try (\"+ yield\"). CPU time is that of all threads: spinning is fast and costs a \
            core.",
    parameters: &[
        Parameter { name: "item", here: "8 bytes", paper: None },
        Parameter { name: "capacity", here: "2048 (heapless 2047)", paper: None },
        Parameter { name: "pairs", here: "1 on one CPU; 4 on two; 1 on two", paper: None },
    ],
    plan,
};

const CAPACITY: usize = 2048;

fn plan(plan: &mut Plan) {
    let one = topology::cpus().first().copied();
    let two = plan.usual_place().map(|place| place.cpus);
    let two = two.map_or([one, one], |[a, b]| [Some(a), Some(b)]);
    for (id, title, cpus, pairs) in [
        ("one-cpu", "one pair, both ends on one CPU", [one, one], 1),
        ("four-pairs", "four pairs on two CPUs, producers on one, consumers on the other", two, 4),
        ("two-cpus", "one pair on two CPUs, for comparison", two, 1),
    ] {
        let panel = plan.panel_on(id, title, cpus, None, View::MILLION_PER_SECOND.scale(Scale::Log));
        panel.view(View::CPU_NANOSECONDS);
        each_design!(P => panel.waiting::<P, u64>(1.0, CAPACITY, pairs));
        each_crate_that_waits!(P => panel.waiting::<P, u64>(1.0, CAPACITY, pairs));
        each_crate_that_does_not_wait!(P => panel.yielding::<P, u64>(1.0, CAPACITY, pairs));
    }
}
