//! What is measured of a queue from one producer to one consumer.

use super::fan::{Drain, fan};
use super::latency::{self, Pace};
use super::reading::Outcome;
use super::ring::ring;
use super::stream;
use crate::coherence;
use crate::contenders::{Rx, Tx, Unable};
use crate::item::Item;
use crate::setting::Setting;
use crate::topology::{self, Cpu, Near};
use std::hint::spin_loop;
use std::thread;

/// Makes a queue of this capacity.
type Make<X, R> = dyn Fn(usize) -> Result<(X, R), Unable> + Send + Sync;

/// A queue by the types of its ends.
pub(crate) struct Made<X, R> {
    pub(crate) make: Box<Make<X, R>>,
    /// Items become visible in groups of this size.
    pub(crate) grain: u64,
    /// Whether making it starts a thread.
    pub(crate) has_a_thread: bool,
}

/// The ends of a queue that need not be fast.
pub(crate) type Boxed<T> = (Box<dyn Tx<T>>, Box<dyn Rx<T>>);

/// Items of any size.
pub(crate) trait Runs<T: Item> {
    fn grain(&self) -> u64;
    fn boxed(&self, capacity: usize) -> Result<Boxed<T>, Unable>;
    /// One call an item on both sides, as fast as both go.
    fn one_by_one(&self, setting: &Setting, capacity: usize) -> Outcome;
    /// In the emulator: turns of up to `a_turn` calls.
    fn in_turns(&self, capacity: usize, a_turn: usize, rounds: coherence::Rounds) -> u64;
}

/// Several queues at once.
pub(crate) trait Streams {
    fn stream(&self, setting: &Setting, capacity: usize, pairs: usize) -> Outcome;
}

/// Slices on both sides.
pub(crate) trait Slices {
    fn in_batches(&self, setting: &Setting, capacity: usize, batch: usize) -> Outcome;
    /// In the emulator: turns of a slice.
    fn in_turns(&self, capacity: usize, rounds: coherence::Rounds) -> u64;
}

/// Items of one word.
pub(crate) trait Words {
    /// An item there and back.
    fn round_trip(&self, setting: &Setting, capacity: usize) -> Outcome;
    /// From when an item was due until its pop. The values are nanoseconds at the percentiles.
    fn latency(&self, setting: &Setting, capacity: usize, pace: Pace, percentiles: &[f64]) -> Outcome;
    /// The consumer works for so many cycles after each item.
    fn loaded(&self, setting: &Setting, capacity: usize, workload: u64) -> Outcome;
    /// One thread feeds several queues.
    fn fan(&self, setting: &Setting, capacity: usize, queues: usize, drain: Drain) -> Outcome;
    /// Two threads pass on what they get.
    fn ring(&self, setting: &Setting, capacity: usize, in_flight: u64) -> Outcome;
    /// Several queues at once, whose threads yield after a failed try.
    fn yielding(&self, setting: &Setting, capacity: usize, pairs: usize) -> Outcome;
    /// In the emulator: one thread to several, and both threads at once.
    fn fan_in_turns(&self, queues: usize, capacity: usize, a_turn: usize, rounds: coherence::Rounds) -> u64;
    fn at_once(&self, capacity: usize, items: u64) -> u64;
}

impl<X: Send + 'static, R: Send + 'static> Made<X, R> {
    /// Makes a queue. On a machine with several packages, this runs on the CPU that will write into the queue first, so
    /// that its memory is near that CPU.
    pub(super) fn on(&self, cpu: Option<Cpu>, capacity: usize) -> Result<(X, R), Unable> {
        let several = || topology::places().iter().any(|place| place.near == Near::Machine);
        // A thread that a queue starts would be pinned as well.
        let Some(cpu) = cpu.filter(|_| !self.has_a_thread && several()) else { return (self.make)(capacity) };
        let made = thread::scope(|scope| {
            let make = || {
                topology::pin(cpu);
                (self.make)(capacity)
            };
            scope.spawn(make).join()
        });
        made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    pub(super) fn several(&self, queues: usize, capacity: usize) -> Result<Vec<(X, R)>, Unable> {
        (0..queues).map(|_| (self.make)(capacity)).collect()
    }

    /// A number of items, rounded up to whole groups.
    pub(super) fn whole(&self, count: u64) -> u64 {
        count.max(1).next_multiple_of(self.grain)
    }
}

impl<T: Item, X: Tx<T>, R: Rx<T>> Runs<T> for Made<X, R> {
    fn grain(&self) -> u64 {
        self.grain
    }

    fn boxed(&self, capacity: usize) -> Result<Boxed<T>, Unable> {
        (self.make)(capacity).map(|(tx, rx)| -> Boxed<T> { (Box::new(tx), Box::new(rx)) })
    }

    fn one_by_one(&self, setting: &Setting, capacity: usize) -> Outcome {
        stream::stream(self, setting, capacity, 1, spin_loop, || {})
    }

    fn in_turns(&self, capacity: usize, a_turn: usize, rounds: coherence::Rounds) -> u64 {
        coherence::one_by_one(&self.make, capacity, a_turn, rounds)
    }
}

impl<X: Tx<u64>, R: Rx<u64>> Streams for Made<X, R> {
    fn stream(&self, setting: &Setting, capacity: usize, pairs: usize) -> Outcome {
        stream::stream::<u64, X, R>(self, setting, capacity, pairs, spin_loop, || {})
    }
}

impl<X, R, F, G> Slices for Made<(X, F), (R, G)>
where
    X: Send + 'static,
    R: Send + 'static,
    F: Fn(&mut X, &[u64]) -> usize + Send + 'static,
    G: Fn(&mut R, &mut [u64]) -> usize + Send + 'static,
{
    fn in_batches(&self, setting: &Setting, capacity: usize, batch: usize) -> Outcome {
        match batch {
            16 => stream::in_batches::<u64, _, _, _, _, 16>(self, setting, capacity),
            64 => stream::in_batches::<u64, _, _, _, _, 64>(self, setting, capacity),
            256 => stream::in_batches::<u64, _, _, _, _, 256>(self, setting, capacity),
            _ => unreachable!("slices of {batch}"),
        }
    }

    fn in_turns(&self, capacity: usize, rounds: coherence::Rounds) -> u64 {
        coherence::in_batches(&self.make, capacity, rounds)
    }
}

impl<X: Tx<u64>, R: Rx<u64>> Words for Made<X, R> {
    fn round_trip(&self, setting: &Setting, capacity: usize) -> Outcome {
        stream::round_trip(self, setting, capacity)
    }

    fn latency(&self, setting: &Setting, capacity: usize, pace: Pace, percentiles: &[f64]) -> Outcome {
        latency::latency(self, setting, capacity, pace, percentiles)
    }

    fn loaded(&self, setting: &Setting, capacity: usize, workload: u64) -> Outcome {
        stream::loaded(self, setting, capacity, workload)
    }

    fn fan(&self, setting: &Setting, capacity: usize, queues: usize, drain: Drain) -> Outcome {
        fan(self, setting, capacity, queues, drain)
    }

    fn ring(&self, setting: &Setting, capacity: usize, in_flight: u64) -> Outcome {
        ring(self, setting, capacity, in_flight)
    }

    fn yielding(&self, setting: &Setting, capacity: usize, pairs: usize) -> Outcome {
        stream::stream::<u64, X, R>(self, setting, capacity, pairs, thread::yield_now, || {})
    }

    fn fan_in_turns(&self, queues: usize, capacity: usize, a_turn: usize, rounds: coherence::Rounds) -> u64 {
        coherence::fan(&self.make, queues, capacity, a_turn, rounds)
    }

    fn at_once(&self, capacity: usize, items: u64) -> u64 {
        // A form that publishes only whole batches leaves an incomplete batch invisible.
        coherence::free(&self.make, capacity, [items, items / self.grain * self.grain])
    }
}
