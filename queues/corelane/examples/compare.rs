//! Throughput and round trip of every single-producer single-consumer design, side by side.
//!
//! `cargo run --profile dist -p corelane --example compare [-- ROUNDS]`
//!
//! Each round measures every design once, in rotated order, in this one process, with the two threads pinned to two
//! CPUs. Quote the medians; a wide range between minimum and maximum says that the machine was busy. The full
//! evaluation, beside other crates, is the business of `corelane-bench`.

use core_affinity::CoreId;
use corelane::spsc::{self, Consumer, Design, Options, Producer};
use corelane::wait::Spin;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::Instant;

/// Far below the number of items, so that the ring wraps thousands of times.
const CAPACITY: usize = 2048;
const ITEMS: u64 = 20_000_000;
const BATCH: usize = 64;
const ROUND_TRIPS: u64 = 100_000;

type Ends<D> = (Producer<u64, D, Spin>, Consumer<u64, D, Spin>);

fn channel<D: Design<u64>>() -> Ends<D> {
    let options = Options::new().tuning(D::Tuning::default()).wait(Spin);
    spsc::any_channel(CAPACITY, options).expect("2048 items fit into memory")
}

/// Runs `there` on a second CPU and `here` on this one, both from a barrier on; the time of the longer in seconds.
fn race(there: impl FnOnce() + Send, here: impl FnOnce()) -> f64 {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            pin(1);
            barrier.wait();
            there();
        });
        pin(0);
        barrier.wait();
        let start = Instant::now();
        here();
        other.join().expect("the other side does not panic");
        start.elapsed().as_secs_f64()
    })
}

fn pin(cpu: usize) {
    // Asked once: a pinned thread, and every thread it starts, would be told of its own CPU only.
    static CPUS: OnceLock<Vec<CoreId>> = OnceLock::new();
    let cpus = CPUS.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default());
    if cpus.len() > 1 {
        core_affinity::set_for_current(cpus[cpu % cpus.len()]);
    }
}

/// A plain compare: an assertion's formatting machinery in the loop costs a fifth.
#[inline(always)]
fn check(got: u64, expected: u64) {
    if got != expected {
        panic!("an item out of order");
    }
}

/// Million items a second, one call an item on both sides.
fn one_by_one<D: Design<u64>>() -> f64 {
    let (mut producer, mut consumer) = channel::<D>();
    let seconds = race(
        move || {
            for expected in 0..ITEMS {
                let item = loop {
                    match consumer.try_pop() {
                        Ok(item) => break item,
                        Err(_) => spin_loop(),
                    }
                };
                check(item, expected);
            }
        },
        move || {
            for item in 0..ITEMS {
                while producer.try_push(item).is_err() {
                    spin_loop();
                }
            }
        },
    );
    ITEMS as f64 / seconds / 1e6
}

/// Million items a second, slices of [`BATCH`] items on both sides.
fn in_batches<D: Design<u64>>() -> f64 {
    let (mut producer, mut consumer) = channel::<D>();
    let seconds = race(
        move || {
            let mut batch = [0; BATCH];
            let mut expected = 0;
            while expected < ITEMS {
                let popped = consumer.try_pop_slice(&mut batch).unwrap_or(0);
                for &item in &batch[..popped] {
                    check(item, expected);
                    expected += 1;
                }
                if popped == 0 {
                    spin_loop();
                }
            }
        },
        move || {
            let mut batch = [0; BATCH];
            for first in (0..ITEMS).step_by(BATCH) {
                for (i, item) in batch.iter_mut().enumerate() {
                    *item = first + i as u64;
                }
                let mut left = &batch[..BATCH.min((ITEMS - first) as usize)];
                while !left.is_empty() {
                    let pushed = producer.try_push_slice(left).unwrap_or(0);
                    left = &left[pushed..];
                    if pushed == 0 {
                        spin_loop();
                    }
                }
            }
        },
    );
    ITEMS as f64 / seconds / 1e6
}

/// Nanoseconds from a push to the answer's pop, one item in flight.
fn round_trip<D: Design<u64>>() -> f64 {
    let (mut ask, mut asked) = channel::<D>();
    let (mut answer, mut answered) = channel::<D>();
    let seconds = race(
        move || {
            for _ in 0..ROUND_TRIPS {
                let item = asked.pop().expect("the other side is there until the end");
                answer.push(item).expect("the other side is there until the end");
            }
        },
        move || {
            for item in 0..ROUND_TRIPS {
                ask.push(item).expect("the other side is there until the end");
                check(answered.pop().expect("the other side is there until the end"), item);
            }
        },
    );
    seconds * 1e9 / ROUND_TRIPS as f64
}

/// The floor of every round trip: two words, each alone on its lines, answered by plain loads and stores.
fn raw_round_trip() -> f64 {
    #[repr(align(128))]
    struct Word(AtomicU64);
    let words = Arc::new((Word(AtomicU64::new(0)), Word(AtomicU64::new(0))));
    let theirs = words.clone();
    let await_value = |word: &Word, value| {
        while word.0.load(Acquire) != value {
            spin_loop();
        }
    };
    let seconds = race(
        move || {
            for i in 1..=ROUND_TRIPS {
                await_value(&theirs.0, i);
                theirs.1.0.store(i, Release);
            }
        },
        move || {
            for i in 1..=ROUND_TRIPS {
                words.0.0.store(i, Release);
                await_value(&words.1, i);
            }
        },
    );
    seconds * 1e9 / ROUND_TRIPS as f64
}

struct Contender {
    name: &'static str,
    measures: [fn() -> f64; 3],
    samples: [Vec<f64>; 3],
}

impl Contender {
    fn of<D: Design<u64>>(name: &'static str) -> Self {
        Self { name, measures: [one_by_one::<D>, in_batches::<D>, round_trip::<D>], samples: Default::default() }
    }
}

/// Median, minimum and maximum.
fn summary(samples: &mut [f64]) -> String {
    samples.sort_by(f64::total_cmp);
    let (least, most) = (samples[0], samples[samples.len() - 1]);
    format!("{:>6.0} ({least:.0}-{most:.0})", samples[samples.len() / 2])
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(7, |n| n.parse().expect("ROUNDS must be a whole number"));
    macro_rules! contenders {
        ($($module:ident::$Design:ident,)+) => {
            [$(Contender::of::<spsc::$Design>(stringify!($module))),+]
        };
    }
    let mut contenders = corelane::each_design!(contenders);
    let count = contenders.len();
    let mut raw = Vec::new();
    for round in 0..rounds {
        raw.push(raw_round_trip());
        for turn in 0..count {
            let contender = &mut contenders[(round + turn) % count];
            for (measure, samples) in contender.measures.iter().zip(&mut contender.samples) {
                samples.push(measure());
            }
        }
    }
    println!("u64, capacity {CAPACITY}, {rounds} rounds: median (least-most)\n");
    println!(
        "{:<10}{:>22}{:>26}{:>24}",
        "",
        "M items/s, one by one",
        format!("M items/s, by {BATCH}"),
        "round trip, ns"
    );
    for contender in &mut contenders {
        let [single, batch, trip] = contender.samples.each_mut().map(|samples| summary(samples));
        println!("{:<10}{single:>22}{batch:>26}{trip:>24}", contender.name);
    }
    println!("{:<10}{:>72}", "raw words", summary(&mut raw));
}
