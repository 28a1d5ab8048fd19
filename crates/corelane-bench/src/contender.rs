//! What a queue has to provide to be measured.
//!
//! A contender is a type without values that implements [`Pair`], so the measured loops are compiled anew for each one
//! and nothing in them is called through a pointer.

use crate::item::Item;
use corelane::mpmc::Stats;
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// Where a contender comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A safe design of this library.
    Corelane,
    /// A published design as printed.
    Paper,
    /// A queue of another crate or of the standard library.
    Crate,
    /// No queue: what the machine can do at best.
    Roofline,
}

/// Why a contender cannot take part.
#[derive(Clone, Debug)]
pub(crate) struct Unable(pub(crate) String);

impl Unable {
    pub(crate) fn because(reason: impl Into<String>) -> Self {
        Unable(reason.into())
    }
}

/// The ends of a queue.
pub(crate) type Ends<P, T> = (<P as Pair<T>>::Tx, <P as Pair<T>>::Rx);

/// A queue from one producer to one consumer.
pub(crate) trait Pair<T: Item>: Sized + 'static {
    /// Where it comes from.
    const KIND: Kind;
    /// Items become visible in groups of this size only. The measured counts are multiples of it: what a raw paper form
    /// strands at the end of a run is the business of the experiment `deadlock`.
    const GRAIN: u64 = 1;
    /// Whether a queue starts a thread of its own.
    const HAS_A_THREAD: bool = false;
    /// The sending end.
    type Tx: Send + 'static;
    /// The receiving end.
    type Rx: Send + 'static;

    /// The name in tables and plots.
    fn name() -> String;

    /// Makes a queue for at least `capacity` items, as near to it as the contender can.
    fn pair(capacity: usize) -> Result<Ends<Self, T>, Unable>;

    /// Pushes an item if there is room.
    fn try_push(tx: &mut Self::Tx, item: T) -> bool;

    /// Pops an item if there is one.
    fn try_pop(rx: &mut Self::Rx) -> Option<T>;

    /// Makes queues that belong to one system.
    fn pairs(queues: usize, capacity: usize) -> Result<Vec<Ends<Self, T>>, Unable> {
        (0..queues).map(|_| Self::pair(capacity)).collect()
    }

    /// Pops an item, as a thread does that pushes into `outgoing`.
    #[inline(always)]
    fn poll(rx: &mut Self::Rx, outgoing: &mut Self::Tx) -> Option<T> {
        let _ = outgoing;
        Self::try_pop(rx)
    }

    /// Shows all that was pushed, where a design has a call for that; false if it has to be called again.
    fn flush(tx: &mut Self::Tx) -> bool {
        let _ = tx;
        true
    }
}

/// A queue that takes and gives slices.
pub(crate) trait Batches<T: Item>: Pair<T> {
    /// Pushes the first items of the slice, as many as there is room for; how many.
    fn push_slice(tx: &mut Self::Tx, items: &[T]) -> usize;

    /// Pops as many items as there are and the slice has room for; how many.
    fn pop_slice(rx: &mut Self::Rx, items: &mut [T]) -> usize;
}

/// A queue that knows how to wait.
pub(crate) trait Waits<T: Item>: Pair<T> {
    /// Pushes an item, waiting for room. False if the other end is gone.
    fn push(tx: &mut Self::Tx, item: T) -> bool;

    /// Pops an item, waiting for one. `None` if the other end is gone.
    fn pop(rx: &mut Self::Rx) -> Option<T>;
}

/// A queue of messages of bytes, or of something that stands for one.
pub(crate) trait Messages: Sized + 'static {
    /// Where it comes from.
    const KIND: Kind;
    /// The sending end.
    type Tx: Send + 'static;
    /// The receiving end.
    type Rx: Send + 'static;

    /// The name in tables and plots.
    fn name() -> String;

    /// Makes a queue. A bounded one holds at least 32 messages of this length.
    fn pair(longest: usize) -> Result<(Self::Tx, Self::Rx), Unable>;

    /// Pushes a message if there is room.
    fn try_push(tx: &mut Self::Tx, message: &[u8]) -> bool;

    /// Pops a message, if there is one, and lets it be read.
    fn try_pop<R>(rx: &mut Self::Rx, read: impl FnOnce(&[u8]) -> R) -> Option<R>;
}

/// A queue between any number of threads, whose calls wait by themselves.
pub(crate) trait ManyToMany: Sized + 'static {
    /// Where it comes from.
    const KIND: Kind;
    /// Whether only one thread may take.
    const ONE_TAKER: bool = false;
    /// What a putting thread has.
    type Tx: Send + 'static;
    /// What a taking thread has.
    type Rx: Send + 'static;

    /// The name in tables and plots.
    fn name() -> String;

    /// Makes a queue: an end for each of so many threads that put, and so many that take.
    fn ends(putters: usize, takers: usize) -> (Vec<Self::Tx>, Vec<Self::Rx>);

    /// Puts an item, waiting if the queue has its putters wait. False if no taker is left.
    fn put(tx: &mut Self::Tx, item: u64) -> bool;

    /// Takes an item, waiting for one. `None` if none will come.
    fn take(rx: &mut Self::Rx) -> Option<u64>;
}

/// A pool of threads that runs tasks.
pub(crate) trait Pool: Send + Sync + Sized + 'static {
    /// Where it comes from.
    const KIND: Kind;

    /// The name in tables and plots.
    fn name() -> String;

    /// Makes a pool. One of a fixed size has so many threads; one that grows by itself is left to do so.
    fn start(threads: usize) -> Result<Self, Unable>;

    /// Has a task run by a thread of the pool. False if it is refused.
    fn execute(&self, task: impl FnOnce() + Send + 'static) -> bool;
}

/// A job, as the paper on batch queues has it: a loop of so many turns. It is known by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) turns: u32,
    pub(crate) number: u32,
}

impl Job {
    /// Does it. The loop is one function for all contenders, so that how it was compiled into one of them is no part of
    /// the result; an empty job does not call it.
    #[inline(always)]
    pub(crate) fn run(self) {
        #[inline(never)]
        fn take_turns(turns: u32) {
            for turn in 0..turns {
                black_box(turn);
            }
        }
        if self.turns != 0 {
            take_turns(self.turns);
        }
    }
}

/// How jobs get from a dispatcher to its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// A queue for each worker, whose turn it is batch by batch; one for all otherwise.
    pub(crate) per_worker: bool,
    /// A batch is put and taken by one call; jobs one by one otherwise.
    pub(crate) batched: bool,
    /// Jobs in a batch.
    pub(crate) batch: usize,
}

/// Queues from one dispatcher to several workers.
pub(crate) trait Dispatch: Sized + 'static {
    /// Where they come from.
    const KIND: Kind;
    /// The most jobs of a sample: a queue without a bound takes in all that its workers have not done yet.
    const MOST: u64 = u64::MAX;
    /// What hands out. Dropping it ends the work.
    type Dispatcher: Send + 'static;
    /// What a worker has.
    type Worker: Send + 'static;

    /// The name in tables and plots, single or in batches.
    fn name(batched: bool) -> String;

    /// Makes the queues. Only for arrangements that there are.
    fn start(arrangement: Arrangement, workers: usize) -> Result<(Self::Dispatcher, Vec<Self::Worker>), Unable>;

    /// Hands out a batch, waiting for room, and empties it. False if no worker is left.
    fn dispatch(dispatcher: &mut Self::Dispatcher, batch: &mut Vec<Job>) -> bool;

    /// Takes jobs until the dispatcher is gone and none is left, waiting for them.
    fn work(worker: &mut Self::Worker, each: impl FnMut(Job));
}

/// Queues that count how often they were tried.
pub(crate) trait Counted: Dispatch {
    /// What the queue of this worker has counted.
    fn stats(worker: &Self::Worker) -> Stats;
}
