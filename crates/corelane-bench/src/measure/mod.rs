//! The measured loops, each compiled anew for every contender.

mod batches;
mod paced;
mod round_trip;
mod stream;
mod waiting;

pub(crate) use batches::in_batches;
pub(crate) use paced::{PERCENTILES, Pace, paced};
pub(crate) use round_trip::round_trip;
pub(crate) use stream::one_by_one;
pub(crate) use waiting::{waiting, yielding};

use crate::contender::{Pair, Unable};
use crate::counters::Counts;
use crate::item::Item;
use crate::rig::{Stop, Took};
use crate::topology::{self, Cpu};
use std::fmt;
use std::thread;
use std::time::Duration;

/// Where and how a measurement runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The producer's CPU and the consumer's, if they are to be pinned.
    pub(crate) cpus: [Option<Cpu>; 2],
    /// Nothing moving for so long is a hang.
    pub(crate) bound: Duration,
    /// Items, round trips, packets: what the measurement counts.
    pub(crate) count: u64,
    /// Whether to read hardware counters.
    pub(crate) counting: bool,
}

/// What one measurement gave.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// Items, round trips, packets.
    pub(crate) items: u64,
    pub(crate) wall: Duration,
    /// CPU time of all threads together.
    pub(crate) cpu: Duration,
    /// How often a push found no room, or a pop nothing.
    pub(crate) full: u64,
    pub(crate) empty: u64,
    pub(crate) counts: Option<Counts>,
    /// For measurements that are no rate: the values, one for each x of the case.
    pub(crate) values: Vec<f64>,
}

impl Reading {
    pub(crate) fn new(items: u64, took: Took) -> Self {
        Reading { items, wall: took.wall, cpu: took.cpu, full: 0, empty: 0, counts: took.counts, values: Vec::new() }
    }
}

/// Why a measurement gave nothing.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The contender cannot be made like this.
    Unable(Unable),
    /// It was run and did not come to its end.
    Stop(Stop),
}

impl From<Unable> for Failure {
    fn from(unable: Unable) -> Self {
        Failure::Unable(unable)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        Failure::Stop(stop)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unable(Unable(reason)) => f.write_str(reason),
            Failure::Stop(stop) => stop.fmt(f),
        }
    }
}

/// What a measurement returns.
pub(crate) type Outcome = Result<Reading, Failure>;

/// What is made of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    MillionPerSecond,
    NanosecondsEach,
    /// CPU time of all threads an item.
    CpuNanosecondsEach,
    /// The values of the reading itself.
    Values,
}

impl Metric {
    /// The values of a reading, one for each x.
    pub(crate) fn of(self, reading: &Reading) -> Vec<f64> {
        let items = reading.items as f64;
        let seconds = reading.wall.as_secs_f64();
        match self {
            Metric::MillionPerSecond => vec![items / seconds / 1e6],
            Metric::NanosecondsEach => vec![seconds * 1e9 / items],
            Metric::CpuNanosecondsEach => vec![reading.cpu.as_secs_f64() * 1e9 / items],
            Metric::Values => reading.values.clone(),
        }
    }
}

/// Makes a queue on the CPU that will write into it first, so that its memory is near there.
pub(crate) fn pair_on<P: Pair<T>, T: Item>(cpu: Option<Cpu>, capacity: usize) -> Result<(P::Tx, P::Rx), Unable> {
    let Some(cpu) = cpu else { return P::pair(capacity) };
    let made = thread::spawn(move || {
        topology::pin(cpu);
        P::pair(capacity)
    });
    made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// So many items that their number is a multiple of the contender's grain.
pub(crate) fn whole<P: Pair<T>, T: Item>(count: u64) -> u64 {
    count.max(1).next_multiple_of(P::GRAIN)
}
