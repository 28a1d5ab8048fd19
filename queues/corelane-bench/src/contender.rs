//! The calls that a queue must provide for a measurement.
//!
//! A contender is a type without values that implements [`Pair`]. So the measured loops are compiled anew for each
//! contender, and no call in them goes through a pointer.

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
    /// No queue: the bare machine at its best.
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
    /// Where the queue comes from.
    const KIND: Kind;
    /// Items become visible only in groups of this size. The measured counts are multiples of it, because only the
    /// experiment `deadlock` measures items that a paper form strands at the end of a run.
    const GRAIN: u64 = 1;
    /// Whether a queue starts a thread of its own.
    const HAS_A_THREAD: bool = false;
    /// The sending end.
    type Tx: Send + 'static;
    /// The receiving end.
    type Rx: Send + 'static;

    /// The name in tables and plots.
    fn name() -> String;

    /// Makes a queue for at least `capacity` items, as close to it as the contender can.
    fn pair(capacity: usize) -> Result<Ends<Self, T>, Unable>;

    /// Pushes an item if there is room.
    fn try_push(tx: &mut Self::Tx, item: T) -> bool;

    /// Pops an item if there is one.
    fn try_pop(rx: &mut Self::Rx) -> Option<T>;

    /// Makes queues that belong to one system.
    fn pairs(queues: usize, capacity: usize) -> Result<Vec<Ends<Self, T>>, Unable> {
        (0..queues).map(|_| Self::pair(capacity)).collect()
    }

    /// Pops an item, for a thread that pushes into other queues, which the callback flushes.
    #[inline(always)]
    fn poll(rx: &mut Self::Rx, flush_outgoing: impl FnOnce()) -> Option<T> {
        let _ = flush_outgoing;
        Self::try_pop(rx)
    }

    /// Publishes all pushed items, if the design has a call for that. False if it must be called again.
    fn flush(tx: &mut Self::Tx) -> bool {
        let _ = tx;
        true
    }
}

/// A queue with batch calls on both sides.
pub(crate) trait Batches<T: Item>: Pair<T> {
    /// Pushes the first items of the slice, as many as there is room for. Returns how many.
    fn push_slice(tx: &mut Self::Tx, items: &[T]) -> usize;

    /// Pops as many items as there are and the slice has room for. Returns how many.
    fn pop_slice(rx: &mut Self::Rx, items: &mut [T]) -> usize;
}

/// A queue with waiting calls.
pub(crate) trait Waits<T: Item>: Pair<T> {
    /// Pushes an item, waiting for room. False if the other end is gone.
    fn push(tx: &mut Self::Tx, item: T) -> bool;

    /// Pops an item, waiting for one. `None` if the other end is gone.
    fn pop(rx: &mut Self::Rx) -> Option<T>;
}

/// A queue of messages of bytes, or of pointers to them.
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

    /// Pops a message, if there is one, and lets `read` see it.
    fn try_pop<R>(rx: &mut Self::Rx, read: impl FnOnce(&[u8]) -> R) -> Option<R>;
}

/// A queue between any number of threads, whose calls wait by themselves.
pub(crate) trait ManyToMany: Sized + 'static {
    /// Where it comes from.
    const KIND: Kind;
    /// Whether only one thread may take items.
    const ONE_TAKER: bool = false;
    /// The end of a putting thread.
    type Tx: Send + 'static;
    /// The end of a taking thread.
    type Rx: Send + 'static;

    /// The name in tables and plots.
    fn name() -> String;

    /// Makes a queue, with an end for each of `putters` putting and `takers` taking threads.
    fn ends(putters: usize, takers: usize) -> (Vec<Self::Tx>, Vec<Self::Rx>);

    /// Puts an item. Waits if the queue makes its putters wait. False if no taker is left.
    fn put(tx: &mut Self::Tx, item: u64) -> bool;

    /// Takes an item, or waits for one. `None` if none will come.
    fn take(rx: &mut Self::Rx) -> Option<u64>;
}

/// A pool of threads that runs tasks.
pub(crate) trait Pool: Send + Sync + Sized + 'static {
    /// Where it comes from.
    const KIND: Kind;

    /// The name in tables and plots.
    fn name() -> String;

    /// Makes a pool. A pool of fixed size has this many threads; a pool that grows by itself may grow.
    fn start(threads: usize) -> Result<Self, Unable>;

    /// Runs a task in a thread of the pool. False if the task is refused.
    fn execute(&self, task: impl FnOnce() + Send + 'static) -> bool;
}

/// A job of the paper on batch queues: a loop of `turns` turns. Its number identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) turns: u32,
    pub(crate) number: u32,
}

impl Job {
    /// Does the job. All contenders share this one function for the loop, so that its compilation in one of them does
    /// not change the result. An empty job does not call it.
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
    /// Each worker has a queue, and the batches go to the workers in turn. Otherwise all share one queue.
    pub(crate) per_worker: bool,
    /// A batch is put and taken by one call. Otherwise jobs are put and taken one by one.
    pub(crate) batched: bool,
    /// Jobs in a batch.
    pub(crate) batch: usize,
}

/// Queues from one dispatcher to several workers.
pub(crate) trait Dispatch: Sized + 'static {
    /// Where they come from.
    const KIND: Kind;
    /// The most jobs of a sample: a queue without a bound holds everything that its workers have not done yet.
    const MOST: u64 = u64::MAX;
    /// The dispatcher's end. Dropping it ends the work.
    type Dispatcher: Send + 'static;
    /// The end of a worker.
    type Worker: Send + 'static;

    /// The name in tables and plots, single or in batches.
    fn name(batched: bool) -> String;

    /// Makes the queues, for an arrangement that exists.
    fn start(arrangement: Arrangement, workers: usize) -> Result<(Self::Dispatcher, Vec<Self::Worker>), Unable>;

    /// Hands out a batch, waits for room, and empties the batch. False if no worker is left.
    fn dispatch(dispatcher: &mut Self::Dispatcher, batch: &mut Vec<Job>) -> bool;

    /// Takes jobs, and waits for them, until the dispatcher is gone and no job is left.
    fn work(worker: &mut Self::Worker, each: impl FnMut(Job));
}

/// Queues that count how often they were tried.
pub(crate) trait Counted: Dispatch {
    /// The counts of this worker's queue.
    fn stats(worker: &Self::Worker) -> Stats;
}
