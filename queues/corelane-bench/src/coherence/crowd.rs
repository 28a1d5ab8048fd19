//! Queues between any number of threads, on the clocks of the directory.
//!
//! First one thread alone fills a queue by half and drains it; this counts the thread's accesses. Then threads of both
//! sides go on until a number of items has gone through, after one lap of each putting thread that is not counted. A
//! seed draws where the threads are switched inside their calls.

use super::counts::Reading;
use super::emulator::Emulator;
use super::guest::{self, before, made, on_clocks, puts, takes};
use crate::args::CrowdArguments;
use crate::contender::ManyToMany;
use crate::contenders::each_crowd;
use crate::measure::{RUN, there_and_back};
use crate::raw::directory::Costs;
use crate::topology;
use std::collections::BTreeMap;

/// How many threads put, and how many take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) putters: usize,
    pub(crate) takers: usize,
}

const fn shape(putters: usize, takers: usize) -> Shape {
    Shape { putters, takers }
}

pub(crate) const SHAPES: [Shape; 7] =
    [shape(1, 1), shape(2, 2), shape(4, 4), shape(8, 8), shape(16, 16), shape(1, 4), shape(4, 1)];
/// How many seeds each shape is played with.
const SEEDS: usize = 3;
/// Items of one play: a multiple of each number of threads.
const ITEMS: u64 = 1600;

/// As many items as a queue holds.
const LAP: u64 = 1024;

/// The shapes, seeds and items to play.
fn amount(quick: bool) -> (&'static [Shape], usize, u64) {
    if quick { (&SHAPES[..3], 1, ITEMS / 4) } else { (&SHAPES, SEEDS, ITEMS) }
}

/// A queue and its play. The play gets a shape and a seed; without a shape, one thread plays alone.
struct Queue {
    name: String,
    play: fn(Option<Shape>, u64, u64, &Costs) -> u64,
}

fn queues() -> Vec<Queue> {
    let mut queues = Vec::new();
    each_crowd!(M => queues.push(Queue { name: M::name(), play: play::<M> }));
    queues
}

fn play<M: ManyToMany>(shape: Option<Shape>, items: u64, seed: u64, costs: &Costs) -> u64 {
    let Shape { putters, takers } = shape.unwrap_or(Shape { putters: 1, takers: 1 });
    let (mut txs, mut rxs) = made(|| M::ends(putters, takers));
    if shape.is_none() {
        let (mut tx, mut rx) = (txs.remove(0), rxs.remove(0));
        let both = takes(move || {
            assert!(there_and_back::<M>(&mut tx, &mut rx), "{}", M::name());
            RUN
        });
        return on_clocks(vec![both], seed, costs);
    }
    // After this lap each slot was used by a putting and then by a taking thread, so no first touch is counted.
    for (putter, tx) in txs.iter_mut().enumerate() {
        for _ in 0..LAP / RUN {
            before(putter, || assert!((0..RUN).all(|item| M::put(tx, item)), "{}", M::name()));
            let taker = putter % takers;
            let rx = &mut rxs[taker];
            before(putters + taker, || assert!((0..RUN).all(|_| M::take(rx).is_some()), "{}", M::name()));
        }
    }
    let mut actors = Vec::new();
    for mut tx in txs {
        let share = items / putters as u64;
        actors.push(puts(move || assert!((0..share).all(|item| M::put(&mut tx, item)), "{}", M::name())));
    }
    for mut rx in rxs {
        let share = items / takers as u64;
        actors.push(takes(move || {
            assert!((0..share).all(|_| M::take(&mut rx).is_some()), "{}", M::name());
            share
        }));
    }
    on_clocks(actors, seed, costs)
}

/// Inside the emulator: plays every shape and seed of a queue, or one thread alone. The number of a case is the number
/// of its shape times [`SEEDS`], plus the number of its seed.
pub(crate) fn guest(arguments: &CrowdArguments) {
    // One thread runs at a time, and a thread wakes sooner on the CPU of the thread before it.
    let cpus = topology::cpus();
    if let Some(&cpu) = cpus.get(arguments.queue % cpus.len().max(1)) {
        topology::pin(cpu);
    }
    let queue = &queues()[arguments.queue];
    let &CrowdArguments { access, transfer, pause, .. } = arguments;
    let costs = Costs { access, transfer, pause };
    if arguments.alone {
        guest::count(0, || (queue.play)(None, RUN, 0, &costs));
        return;
    }
    let (shapes, seeds, items) = amount(arguments.quick);
    for (i, &shape) in shapes.iter().enumerate() {
        for seed in 0..seeds {
            guest::count(i * SEEDS + seed, || (queue.play)(Some(shape), items, seed as u64, &costs));
        }
    }
}

/// The counts of a queue.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) name: String,
    /// The readings by shape, in the order of [`SHAPES`], one for each seed.
    pub(crate) plays: Vec<Vec<Reading>>,
}

/// Accesses an item of one thread alone, by queue.
pub(crate) fn accesses(emulator: &Emulator) -> Result<BTreeMap<String, f64>, String> {
    let queues = queues();
    let free = Costs { access: 0, transfer: 0, pause: 0 };
    let readings = emulator.each((0..queues.len()).map(|queue| arguments(queue, Some("--alone"), &free)).collect())?;
    let of = |readings: &BTreeMap<usize, Reading>| {
        let alone = readings.get(&0).ok_or("the emulator's plugin has not counted one thread alone; run it again")?;
        Ok::<f64, String>(alone.accesses() as f64 / alone.items as f64)
    };
    queues.into_iter().zip(&readings).map(|(queue, readings)| Ok((queue.name, of(readings)?))).collect()
}

/// Plays every queue for which `costs` returns costs.
pub(crate) fn count(
    emulator: &Emulator,
    quick: bool,
    costs: impl Fn(&str) -> Option<Costs>,
) -> Result<Vec<Counted>, String> {
    let chosen: Vec<_> = queues()
        .into_iter()
        .enumerate()
        .filter_map(|(number, queue)| Some((costs(&queue.name)?, number, queue)))
        .collect();
    let guests =
        chosen.iter().map(|(costs, number, _)| arguments(*number, quick.then_some("--quick"), costs)).collect();
    let readings = emulator.each(guests)?;
    let counted = |((_, _, queue), readings): ((_, _, Queue), BTreeMap<usize, Reading>)| {
        let (shapes, seeds, _) = amount(quick);
        let mut plays = vec![Vec::new(); shapes.len()];
        readings.into_iter().for_each(|(case, reading)| plays[case / SEEDS].push(reading));
        match plays.iter().all(|readings| readings.len() == seeds) {
            true => Ok(Counted { name: queue.name, plays }),
            false => Err(format!("the emulator's plugin has not counted all of {}; run it again", queue.name)),
        }
    };
    chosen.into_iter().zip(readings).map(counted).collect()
}

fn arguments(queue: usize, flag: Option<&str>, costs: &Costs) -> Vec<String> {
    let numbers = [queue as u64, costs.access, costs.transfer, costs.pause].map(|number| number.to_string());
    ["crowd-guest".to_owned()].into_iter().chain(numbers).chain(flag.map(str::to_owned)).collect()
}
