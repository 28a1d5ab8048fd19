//! Queues from one producer to one consumer.

use crate::contenders::{self as queues, Kind, PAPER_BATCH, PAPER_TICKS, Queue, crates, designs, these_crates};
use crate::counters;
use crate::item::{Block, Item};
use crate::measure::{AGES, Drain, Metric, Outcome, PERCENTILES, Pace, Reading};
use crate::plan::{Axis, Panel, Plan, Scale, View, far_above};
use crate::rig::tick_rate;
use crate::setting::Setting;
use crate::slip;
use crate::topology;
use corelane::spsc::Lane;
use corelane::spsc::lane::Tuning;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

/// What most experiments have, and the papers on MCRingBuffer and on B-Queue.
const CAPACITY: usize = 2048;
const MC_CAPACITY: usize = 2000;

/// Every safe design, and every queue of other crates.
fn all<T: Item>() -> impl Iterator<Item = Queue<T>> {
    designs().into_iter().chain(crates())
}

const BATCHES: [usize; 3] = [16, 64, 256];

/// The lane and its family beside the crates people use today.
pub(super) fn peers(plan: &mut Plan) {
    for place in plan.each_place() {
        let panel = plan.panel("one", "one by one", place, None, View::MILLION_PER_SECOND.scale(Scale::Log));
        panel.one_by_one::<u64>(all(), 1.0, CAPACITY);
        panel.raw_streaming::<u64>(1.0);

        let axis = Axis { label: "batch", scale: Scale::Log2 };
        let panel = plan.panel("batches", "in batches", place, Some(axis), View::MILLION_PER_SECOND);
        for queue in all::<u64>() {
            match &queue.slices {
                Ok(slices) => {
                    for batch in BATCHES {
                        let slices = slices.clone();
                        let run = move |setting: &Setting| slices.in_batches(setting, CAPACITY, batch);
                        panel.case(&queue.name, queue.kind, &[batch as f64], far_above(CAPACITY), run);
                    }
                }
                Err(reason) => panel.leave_out(&queue.name, *reason),
            }
        }
        for batch in BATCHES {
            panel.raw_streaming::<u64>(batch as f64);
        }
    }
}

pub(super) fn round_trip(plan: &mut Plan) {
    for place in plan.each_place() {
        let panel = plan.panel("trip", "round trip", place, None, View::NANOSECONDS);
        panel.raw_ping_pong(1.0);
        panel.queues(all(), &[1.0], 2000, |queue, setting| queue.words().round_trip(setting, CAPACITY));
    }

    // There are too many figures for every place, so only the usual pair is measured.
    let place = plan.usual_place();
    let axis = Axis { label: "percentile", scale: Scale::Nines };
    let mut panel = |id: &str, title: &str, percentiles: &'static [f64], pace: fn(&Setting) -> Pace| {
        let panel = plan.panel(id, title, place, Some(axis), View::PERCENTILES);
        panel.queues(all(), percentiles, far_above(CAPACITY), move |queue, setting| {
            queue.words().latency(setting, CAPACITY, pace(setting), percentiles)
        });
    };
    panel("pace10", "one way at 10 % of the peak rate", &PERCENTILES, |_| Pace::Share(0.1));
    panel("pace50", "one way at 50 % of the peak rate", &PERCENTILES, |_| Pace::Share(0.5));
    panel("pace90", "one way at 90 % of the peak rate", &PERCENTILES, |_| Pace::Share(0.9));
    panel("bursts", "one way in bursts of 64 every 20 µs", &PERCENTILES, |_| Pace::Bursts { items: 64, every_us: 20 });
    let title = |share| format!("age at {share} % of the slowest contender's peak rate");
    panel("age10", &title(10), &AGES, |setting| Pace::Aged(0.1 * slowest_peak(setting)));
    panel("age50", &title(50), &AGES, |setting| Pace::Aged(0.5 * slowest_peak(setting)));
    panel("age90", &title(90), &AGES, |setting| Pace::Aged(0.9 * slowest_peak(setting)));
    panel("own90", "age at 90 % of its own peak rate", &AGES, |_| Pace::AgedShare(0.9));
}

/// The least of the contenders' rates without a pace on these CPUs, in items a second. Measured once and then stored.
fn slowest_peak(setting: &Setting) -> f64 {
    static KNOWN: Mutex<Option<HashMap<[Option<usize>; 2], f64>>> = Mutex::new(None);
    let mut known = KNOWN.lock().expect("no panic with it locked");
    *known.get_or_insert_default().entry(setting.cpus.map(|cpu| cpu.map(|cpu| cpu.0))).or_insert_with(|| {
        let setting = Setting { count: setting.count_up_to(far_above(CAPACITY)), counting: false, ..*setting };
        let rate = |reading: Reading| reading.items as f64 / reading.wall.as_secs_f64();
        let rates = all::<u64>().filter_map(|queue| queue.runs.one_by_one(&setting, CAPACITY).ok().map(rate));
        rates.fold(f64::INFINITY, f64::min)
    })
}

/// LockRingBuffer, BasicRingBuffer and MCRingBuffer with the paper's batches.
fn mc_paper<T: Item>() -> Vec<Queue<T>> {
    let mut queues = vec![queues::lock_ring(), queues::basic_ring()];
    queues.extend([1, 10, 50].map(queues::mc_ring));
    queues
}

/// MCRingBuffer, Evaluation 1.
pub(super) fn element_size(plan: &mut Plan) {
    fn size<T: Item>(panel: &mut Panel) {
        let x = T::BYTES as f64;
        panel.one_by_one::<T>(mc_paper().into_iter().chain(all()), x, MC_CAPACITY);
        panel.raw_streaming::<T>(x);
    }
    let axis = Axis { label: "bytes", scale: Scale::Log2 };
    for place in plan.each_place() {
        let view = View::MILLION_PER_SECOND.scale(Scale::Log);
        let panel = plan.panel("size", "by element size", place, Some(axis), view);
        size::<u64>(panel);
        size::<Block<2>>(panel);
        size::<Block<4>>(panel);
        size::<Block<8>>(panel);
        size::<Block<16>>(panel);
        size::<Block<32>>(panel);
        size::<Block<64>>(panel);
        size::<Block<128>>(panel);
    }
}

/// MCRingBuffer, Evaluation 2.
pub(super) fn capacity(plan: &mut Plan) {
    type Item = Block<16>;
    let axis = Axis { label: "capacity", scale: Scale::Log };
    for place in plan.each_place() {
        let view = View::MILLION_PER_SECOND.scale(Scale::Log);
        let panel = plan.panel("capacity", "by capacity, 128-byte items", place, Some(axis), view);
        for capacity in [2, 4, 10, 20, 50, 100, 200, 400, 700, 1000, 2000, 4000] {
            let x = capacity as f64;
            panel.one_by_one::<Item>(mc_paper().into_iter().chain(designs()), x, capacity);
            panel.one_by_one::<Item>(these_crates(&["rtrb", "ringbuf", "gil", "crossbeam ArrayQueue"]), x, capacity);
            panel.raw_streaming::<Item>(x);
        }
    }
}

/// MCRingBuffer, Evaluation 3, and the contenders of Evaluation 4.
fn baseline() -> impl Iterator<Item = Queue<u64>> {
    [queues::basic_ring(), queues::fast_forward(), queues::mc_ring(50)].into_iter().chain(designs())
}

pub(super) fn fastforward(plan: &mut Plan) {
    for place in plan.each_place() {
        let panel = plan.panel("rate", "words, capacity 2000", place, None, View::MILLION_PER_SECOND);
        panel.one_by_one(baseline(), 1.0, MC_CAPACITY);
    }
}

/// B-Queue, Table 1.
pub(super) fn peak(plan: &mut Plan) {
    for place in plan.each_place() {
        let panel = plan.panel("cycles", "peak", place, None, View::CYCLES.scale(Scale::Log));
        panel.tuned_fast_forward(1.0, CAPACITY);
        let printed = [
            queues::fast_forward(),
            queues::mc_ring(PAPER_BATCH),
            queues::b_queue_adaptive(PAPER_BATCH, PAPER_TICKS),
            queues::b_queue_adaptive(PAPER_BATCH, 0),
        ];
        panel.one_by_one(printed.into_iter().chain(all()), 1.0, CAPACITY);
        panel.raw_streaming::<u64>(1.0);
    }
}

/// B-Queue, Figures 13 and 14, and equation (1): queue size, workload, batch size, backtracking.
pub(super) fn params(plan: &mut Plan) {
    let place = plan.usual_place();
    let adaptive = |batch| queues::b_queue_adaptive(batch, PAPER_TICKS);
    let of_values = |label, scale| View { label, metric: Metric::Values, ..View::CYCLES }.scale(scale);

    let axis = Axis { label: "workload, cycles", scale: Scale::Linear };
    let view = of_values("cycles an operation, less the workload", Scale::Linear);
    let panel = plan.panel("workload", "by workload and queue size", place, Some(axis), view);
    for workload in [0, 200, 400, 800, 1600, 3200] {
        let mut at = |queue: Queue<u64>, size: usize| {
            let name = format!("{}, {size}", queue.name);
            panel.case(name, queue.kind, &[workload as f64], far_above(size), move |setting| {
                queue.words().loaded(setting, size, workload)
            });
        };
        for (batch, size) in [(64, 128), (128, 256), (256, 512), (256, 1024), (256, 2048)] {
            at(adaptive(batch), size);
        }
        for size in [128, 512, 2048] {
            at(queues::named("bqueue"), size);
            at(queues::named("lane"), size);
        }
    }

    let axis = Axis { label: "batch size", scale: Scale::Log2 };
    let panel = plan.panel("batch", "by batch size, with and without backtracking", place, Some(axis), View::CYCLES);
    for batch in [4, 16, 64, 128, 256, 512, 1024] {
        let modes = [queues::b_queue_without(batch), queues::b_queue_plain(batch), adaptive(batch)];
        panel.one_by_one(modes, batch as f64, CAPACITY);
    }

    let panel = plan.panel("lone", "a lone item", place, Some(axis), of_values("cycles, median", Scale::Log));
    const LONE: [usize; 6] = [4, 16, 64, 256, 512, 1024];
    for batch in LONE {
        let x = batch as f64;
        panel.case("equation (1)", Kind::Roofline, &[x], 1, move |setting| equation_1(setting, x));
        for (name, note) in [("bqueue", "adapts its batch"), ("lane", "has no batch")] {
            let queue = queues::named(name);
            let run = move |setting: &Setting| lone(&queue, setting);
            panel.case(format!("{name} ({note})"), Kind::Corelane, &[x], 500, run);
        }
    }
    for batch in LONE {
        panel.queues([queues::b_queue_plain(batch), adaptive(batch)], &[batch as f64], 500, lone);
    }
    panel.leave_out("no backtracking", "a lone item is never seen");
}

/// Single items, 20 µs apart, to a consumer that polls an empty queue. The value is the median latency in cycles.
fn lone(queue: &Queue<u64>, setting: &Setting) -> Outcome {
    let pace = Pace::Bursts { items: 1, every_us: 20 };
    let reading = queue.words().latency(setting, CAPACITY, pace, &[50.0])?;
    Ok(Reading { values: vec![reading.values[0] * tick_rate() / 1e9], ..reading })
}

/// Nothing is measured here. This is the paper's formula for the worst case.
fn equation_1(setting: &Setting, batch: f64) -> Outcome {
    let cycles = batch.log2() * f64::from(PAPER_TICKS);
    let wall = Duration::from_secs_f64(cycles / tick_rate());
    Ok(Reading { items: setting.count, wall, cpu: wall, full: 0, empty: 0, counts: None, values: vec![cycles] })
}

/// A value of a lane's tuning: the name of the call that sets it, a label, and the values.
type Knob = (&'static str, &'static str, &'static [u32], fn(Tuning, u32) -> Tuning);

const KNOBS: [Knob; 3] = [
    ("take", "blocks taken at once", &[8, 16, 32, 64, 128], |tuning, blocks| tuning.take(blocks as usize)),
    ("release", "blocks given back at once", &[4, 8, 16, 32], |tuning, blocks| tuning.release(blocks as usize)),
    ("slip", "looks of a slip", &[0, 5, 10, 20, 40], Tuning::slip),
];

/// The tuning of a lane's consumer between two runs of blocks, one value after the other.
pub(super) fn policies(plan: &mut Plan) {
    fn lane<T: Item>(tuning: Tuning, name: &'static str) -> Queue<T> {
        queues::design::<T, Lane>(name, Some(tuning))
    }
    for place in plan.each_place() {
        for (name, label, values, set) in KNOBS {
            let axis = Axis { label, scale: Scale::Linear };
            let panel = plan.panel(name, format!("rate by {label}"), place, Some(axis), View::MILLION_PER_SECOND);
            for &value in values {
                let (x, tuning) = (f64::from(value), set(Tuning::new(), value));
                panel.one_by_one([lane::<u64>(tuning, "8 bytes, one by one")], x, CAPACITY);
                for (batch, series) in [(16, "8 bytes, batches of 16"), (64, "8 bytes, batches of 64")] {
                    panel.queues([lane::<u64>(tuning, series)], &[x], far_above(CAPACITY), move |queue, setting| {
                        queue.slices.as_ref().expect("a lane has them").in_batches(setting, CAPACITY, batch)
                    });
                }
                panel.one_by_one([lane::<Block<8>>(tuning, "64 bytes, one by one")], x, CAPACITY);
            }
        }
        let (name, label, values, set) = KNOBS[2];
        let axis = Axis { label, scale: Scale::Linear };
        let view = View { metric: Metric::Value(0), ..View::NANOSECONDS };
        let title = format!("median age at half the rate, by {label}");
        let panel = plan.panel(format!("age-{name}"), title, place, Some(axis), view);
        for &value in values {
            let lane = lane::<u64>(set(Tuning::new(), value), "8 bytes");
            panel.queues([lane], &[f64::from(value)], far_above(CAPACITY), |queue, setting| {
                queue.words().latency(setting, CAPACITY, Pace::AgedShare(0.5), &AGES)
            });
        }
    }
}

/// B-Queue, Figure 12, without its application.
pub(super) fn fan(plan: &mut Plan) {
    let axis = Axis { label: "queues", scale: Scale::Log2 };
    let view = View::CYCLES.scale(Scale::Log);
    let place = plan.usual_place();
    let others = topology::cpus().len().saturating_sub(1);
    for (id, title, drain, most) in [
        ("fan", "one thread feeds, one drains", Drain::OneThread, usize::MAX),
        ("each", "one thread feeds, each queue has its consumer", Drain::ThreadEach, others),
    ] {
        if most == 1 || most == 0 {
            continue;
        }
        let panel = plan.panel(id, title, place, Some(axis), view);
        // The paper's largest number of queues is 7.
        for queues in [1, 2, 4, 7, 16, 32, 64].into_iter().filter(|queues| *queues <= most) {
            fan_at(panel, queues, drain);
        }
    }
}

fn fan_at(panel: &mut Panel, number: usize, drain: Drain) {
    // Several laps of every queue.
    let least = far_above(CAPACITY).max((5 * CAPACITY * number) as u64);
    let (x, run) = (number as f64, move |queue: &Queue<u64>, setting: &Setting| {
        queue.words().fan(setting, CAPACITY, number, drain)
    });
    let adaptive = queues::b_queue_adaptive(PAPER_BATCH, PAPER_TICKS);
    panel.queues([adaptive, queues::mc_ring(PAPER_BATCH), queues::mc_ring_sane(PAPER_BATCH)], &[x], least, run);
    for (name, tuned_at) in
        [("FastForward, slip tuned at one queue", 1), ("FastForward, slip tuned at each point", number)]
    {
        panel.case(name, Kind::Paper, &[x], least, move |setting| {
            run(&queues::fast_forward_tuned(slip::for_queues(setting, CAPACITY, tuned_at)), setting)
        });
    }
    panel.queues(designs().into_iter().chain(these_crates(&["rtrb", "ringbuf"])), &[x], least, run);
}

/// B-Queue, Figure 5.
pub(super) fn deadlock(plan: &mut Plan) {
    let axis = Axis { label: "items on their way", scale: Scale::Log };
    let view = View { label: "ns a hop", ..View::NANOSECONDS.scale(Scale::Log) };
    let place = plan.usual_place();
    let panel = plan.panel("ring", "a ring of two queues", place, Some(axis), view);
    for items in [1, 20, 49, 200, 1000] {
        let printed = [
            queues::lock_ring(),
            queues::basic_ring(),
            queues::fast_forward(),
            queues::mc_ring(50),
            queues::mc_ring_sane(50),
            queues::mc_ring_callback(50),
            queues::b_queue_without(PAPER_BATCH),
            queues::b_queue_plain(PAPER_BATCH),
            queues::b_queue_adaptive(PAPER_BATCH, PAPER_TICKS),
        ];
        panel.queues(printed.into_iter().chain(all()), &[items as f64], 20_000, move |queue, setting| {
            queue.words().ring(setting, CAPACITY, items)
        });
    }
    panel.leave_out(
        "MCRingBuffer, method 1",
        "not built: an auxiliary thread that inserts is a second producer, and the queue is for one",
    );
    panel.leave_out(
        "MCRingBuffer, method 2",
        "not built: a timer that interrupts the producer needs a reentrant one, and would overwrite a half-done insertion",
    );
}

/// MCRingBuffer, Evaluation 4, and B-Queue, Table 2.
pub(super) fn cache_misses(plan: &mut Plan) {
    let misses = |id, label, metric| View { id, label, metric, ..View::NANOSECONDS };
    let last_level = misses("", "last-level read misses an item", Metric::LastLevelMissesEach);
    let l1 = misses("l1", "level-1 read misses an item", Metric::L1MissesEach);
    let hits = View { label: "% of level-1 reads that hit", metric: Metric::L1HitPercent, ..View::MILLION_PER_SECOND };
    let available = counters::available();
    if let Err(reason) = &available {
        plan.notes.push(format!("This machine shows no hardware counters ({reason}), so nothing was measured."));
    }
    for place in plan.each_place() {
        let panel = plan.panel("misses", "cache misses, capacity 2000", place, None, last_level);
        panel.view(l1);
        panel.one_by_one(baseline().chain(these_crates(&["rtrb"])), 1.0, MC_CAPACITY);
        let panel = plan.panel("l1", "level-1 hits, capacity 2048", place, None, hits);
        panel.tuned_fast_forward(1.0, CAPACITY);
        let printed = [queues::mc_ring(PAPER_BATCH), queues::b_queue_adaptive(PAPER_BATCH, PAPER_TICKS)];
        panel.one_by_one(printed.into_iter().chain(designs()), 1.0, CAPACITY);
    }
    for panel in &mut plan.panels {
        panel.counting = true;
        if let Err(reason) = &available {
            for case in std::mem::take(&mut panel.cases) {
                panel.leave_out(case.series, format!("hardware counters: {reason}"));
            }
        }
    }
}

/// Too few cores.
pub(super) fn shared_core(plan: &mut Plan) {
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
        let (waiting, yielding): (Vec<_>, Vec<_>) = all::<u64>().partition(|queue| queue.as_it_waits().1.is_some());
        for queue in waiting.into_iter().chain(yielding) {
            let (name, waits) = queue.as_it_waits();
            panel.case(name, queue.kind, &[1.0], far_above(CAPACITY) * pairs as u64, move |setting| match &waits {
                Some(waits) => waits.stream(setting, CAPACITY, pairs),
                None => queue.words().yielding(setting, CAPACITY, pairs),
            });
        }
    }
}
