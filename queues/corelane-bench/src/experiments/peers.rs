//! The lane and its family beside the crates people use today.

use crate::contenders::{WITHOUT_BATCHES, each_crate, each_crate_with_batches, each_design};
use crate::plan::{Axis, Experiment, Parameter, Plan, Scale, View};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "peers",
    title: "throughput beside other crates, one by one and in batches",
    repeats: "no paper: today's crates",
    about: "Each contender moves numbered 8-byte items from one core to another as fast as both go. One by one, every \
            item is one call on each side and visible at once. In batches, both sides pass slices. The two are \
            different jobs: a figure of one is never compared with a figure of the other.",
    parameters: &[
        Parameter { name: "item", here: "8 bytes", paper: None },
        Parameter { name: "capacity", here: "2048 (heapless 2047)", paper: None },
        Parameter { name: "batch", here: "1; 16, 64, 256", paper: None },
    ],
    plan,
};

const CAPACITY: usize = 2048;

macro_rules! batches {
    ($panel:expr, $contender:ty) => {{
        $panel.in_batches::<$contender, u64, 16>(16.0, CAPACITY);
        $panel.in_batches::<$contender, u64, 64>(64.0, CAPACITY);
        $panel.in_batches::<$contender, u64, 256>(256.0, CAPACITY);
    }};
}

fn plan(plan: &mut Plan) {
    for place in plan.each_place() {
        let panel = plan.panel("one", "one by one", place, None, View::MILLION_PER_SECOND.scale(Scale::Log));
        each_design!(P => panel.one_by_one::<P, u64>(1.0, CAPACITY));
        each_crate!(P => panel.one_by_one::<P, u64>(1.0, CAPACITY));
        panel.raw_streaming::<u64>(1.0);

        let axis = Axis { label: "batch", scale: Scale::Log2 };
        let panel = plan.panel("batches", "in batches", place, Some(axis), View::MILLION_PER_SECOND);
        each_design!(P => batches!(panel, P));
        each_crate_with_batches!(P => batches!(panel, P));
        for batch in [16.0, 64.0, 256.0] {
            panel.raw_streaming::<u64>(batch);
        }
        for &(name, reason) in WITHOUT_BATCHES {
            panel.leave_out(name, reason);
        }
    }
}
