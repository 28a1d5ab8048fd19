//! Latency: ping-pong, and one way at a pace.

use crate::contenders::{each_crate, each_design};
use crate::measure::{Pace, Rate, one_by_one};
use crate::plan::{Axis, Experiment, Parameter, Plan, Scale, View, far_above};
use crate::setting::Setting;
use std::collections::HashMap;
use std::sync::Mutex;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "round-trip",
    title: "latency: an item there and back; one way at 10, 50, 90 % of the peak rate and in bursts",
    repeats: "no paper: latency is what batching costs",
    about: "One item is in flight: it goes there by one queue and comes back by another, and both threads only try and \
            spin. The floor is two bare words, each written by one thread and watched by the other. One way, items \
            come at set times: evenly at a share of the highest rate that the same loop reaches with this contender, \
            or in bursts. Latency counts from when an item was due, so that an item which had to wait its turn is late \
            and not forgiven. It holds a read of the clock at each end. How old items are at one rate for all counts \
            from the push of one item in a thousand, so that the clock is not what is measured.",
    parameters: &[
        Parameter { name: "item", here: "8 bytes", paper: None },
        Parameter { name: "capacity", here: "2048 (heapless 2047)", paper: None },
        Parameter { name: "age", here: "10, 50, 90 % of the slowest contender's peak; 90 % of its own", paper: None },
        Parameter {
            name: "pace", here: "10, 50, 90 % of the contender's own peak; 64 items every 20 µs", paper: None
        },
    ],
    plan,
};

const CAPACITY: usize = 2048;

fn plan(plan: &mut Plan) {
    for place in plan.each_place() {
        let panel = plan.panel("trip", "round trip", place, None, View::NANOSECONDS);
        panel.raw_ping_pong(1.0);
        each_design!(P => panel.round_trip::<P, u64>(1.0, CAPACITY));
        each_crate!(P => panel.round_trip::<P, u64>(1.0, CAPACITY));
    }

    // There are too many figures for every place, so only the usual pair is measured.
    let place = plan.usual_place();
    let axis = Axis { label: "percentile", scale: Scale::Nines };
    for (id, title, pace) in [
        ("pace10", "one way at 10 % of the peak rate", Pace::Share(0.1)),
        ("pace50", "one way at 50 % of the peak rate", Pace::Share(0.5)),
        ("pace90", "one way at 90 % of the peak rate", Pace::Share(0.9)),
        ("bursts", "one way in bursts of 64 every 20 µs", Pace::Bursts { items: 64, every_us: 20 }),
    ] {
        let panel = plan.panel(id, title, place, Some(axis), View::PERCENTILES);
        each_design!(P => panel.paced::<P>(CAPACITY, pace));
        each_crate!(P => panel.paced::<P>(CAPACITY, pace));
    }
    for (id, title, share) in [
        ("age10", "age at 10 % of the slowest contender's peak rate", 0.1),
        ("age50", "age at 50 % of the slowest contender's peak rate", 0.5),
        ("age90", "age at 90 % of the slowest contender's peak rate", 0.9),
    ] {
        let panel = plan.panel(id, title, place, Some(axis), View::PERCENTILES);
        let rate = move |setting: &Setting| Rate::Of(share * slowest_peak(setting));
        each_design!(P => panel.aged::<P>(CAPACITY, rate));
        each_crate!(P => panel.aged::<P>(CAPACITY, rate));
    }
    let panel = plan.panel("own90", "age at 90 % of its own peak rate", place, Some(axis), View::PERCENTILES);
    each_design!(P => panel.aged::<P>(CAPACITY, |_| Rate::OfItsPeak(0.9)));
    each_crate!(P => panel.aged::<P>(CAPACITY, |_| Rate::OfItsPeak(0.9)));
}

/// The least of the contenders' rates without a pace on these CPUs, in items a second. Measured once and then stored.
fn slowest_peak(setting: &Setting) -> f64 {
    static KNOWN: Mutex<Option<HashMap<[Option<usize>; 2], f64>>> = Mutex::new(None);
    let key = setting.cpus.map(|cpu| cpu.map(|cpu| cpu.0));
    let known = |known: &Option<HashMap<_, f64>>| known.as_ref()?.get(&key).copied();
    if let Some(rate) = known(&KNOWN.lock().expect("no panic with it locked")) {
        return rate;
    }
    let count = setting.count_up_to(far_above(CAPACITY));
    let setting = Setting { count, counting: false, ..*setting };
    let mut least = f64::INFINITY;
    let mut rate = |outcome: crate::measure::Outcome| {
        if let Ok(reading) = outcome {
            least = least.min(reading.items as f64 / reading.wall.as_secs_f64());
        }
    };
    each_design!(P => rate(one_by_one::<P, u64>(&setting, CAPACITY)));
    each_crate!(P => rate(one_by_one::<P, u64>(&setting, CAPACITY)));
    KNOWN.lock().expect("no panic with it locked").get_or_insert_default().insert(key, least);
    least
}
