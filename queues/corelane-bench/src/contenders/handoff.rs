//! Queues between any number of threads: synchronous queues, unbounded queues with waiting consumers, and bounded
//! queues.

use crate::contender::{Kind, ManyToMany};
use ::concurrent_queue::ConcurrentQueue;
use corelane::handoff::{Fairness, SynchronousQueue, TransferQueue};
use corelane::mpmc;
use corelane::wait::Spin;
use corelane_papers::handoff::{self as baseline, JavaFive};
use crossbeam_queue::ArrayQueue;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel};
use std::sync::{Arc, mpsc};
use std::thread::yield_now;

/// An end for each thread of a queue that all share.
fn shared<Q>(queue: Q, putters: usize, takers: usize) -> (Vec<Arc<Q>>, Vec<Arc<Q>>) {
    let queue = Arc::new(queue);
    (vec![queue.clone(); putters], vec![queue; takers])
}

/// An end for each thread of a channel.
fn cloned<Tx: Clone, Rx: Clone>((tx, rx): (Tx, Rx), putters: usize, takers: usize) -> (Vec<Tx>, Vec<Rx>) {
    (vec![tx; putters], vec![rx; takers])
}

/// An end for each thread of a channel that one thread receives from.
fn only_one<Tx: Clone, Rx>((tx, rx): (Tx, Rx), putters: usize, takers: usize) -> (Vec<Tx>, Vec<Rx>) {
    assert_eq!(takers, 1, "no more were to be asked for");
    (vec![tx; putters], vec![rx])
}

macro_rules! many_to_many {
    (
        $(#[doc = $doc:literal])+ $name:ident, $label:literal, $kind:ident, $tx:ty, $rx:ty,
        $ends:ident($pair:expr), $put:expr, $take:expr $(, $($one_taker:ident)?)?
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub(crate) struct $name;

        impl ManyToMany for $name {
            const KIND: Kind = Kind::$kind;
            $($(const $one_taker: bool = true;)?)?
            type Tx = $tx;
            type Rx = $rx;

            fn name() -> String {
                $label.to_owned()
            }

            fn ends(putters: usize, takers: usize) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
                $ends($pair, putters, takers)
            }

            #[inline(always)]
            fn put(tx: &mut Self::Tx, item: u64) -> bool {
                let put: fn(&mut $tx, u64) -> bool = $put;
                put(tx, item)
            }

            #[inline(always)]
            fn take(rx: &mut Self::Rx) -> Option<u64> {
                let take: fn(&mut $rx) -> Option<u64> = $take;
                take(rx)
            }
        }
    };
}

macro_rules! shared {
    (
        $(#[doc = $doc:literal])+
        $name:ident, $label:literal, $kind:ident, $queue:ty, $new:expr, $put:expr, $take:expr
    ) => {
        many_to_many!(
            $(#[doc = $doc])+ $name, $label, $kind, Arc<$queue>, Arc<$queue>, shared($new), $put, $take
        );
    };
}

/// A channel of another crate, made by one of its functions.
macro_rules! channel {
    ($(#[doc = $doc:literal])+ $name:ident, $label:literal, $krate:ident, $make:ident($($bound:expr)?)) => {
        many_to_many!(
            $(#[doc = $doc])+ $name,
            $label,
            Crate,
            $krate::Sender<u64>,
            $krate::Receiver<u64>,
            cloned($krate::$make($($bound)?)),
            |tx, item| tx.send(item).is_ok(),
            |rx| rx.recv().ok()
        );
    };
}

shared!(
    /// The synchronous dual stack.
    Unfair,
    "SynchronousQueue, unfair",
    Corelane,
    SynchronousQueue<u64>,
    SynchronousQueue::new(Fairness::Unfair),
    |queue, item| queue.put(item).is_ok(),
    |queue| queue.take().ok()
);
shared!(
    /// The synchronous dual queue.
    Fair,
    "SynchronousQueue, fair",
    Corelane,
    SynchronousQueue<u64>,
    SynchronousQueue::new(Fairness::Fair),
    |queue, item| queue.put(item).is_ok(),
    |queue| queue.take().ok()
);
shared!(
    /// The synchronous dual stack with an elimination arena.
    Eliminating,
    "SynchronousQueue, eliminating",
    Corelane,
    SynchronousQueue<u64>,
    SynchronousQueue::with_elimination(),
    |queue, item| queue.put(item).is_ok(),
    |queue| queue.take().ok()
);
shared!(
    /// Java SE 5.0's, with two stacks.
    JavaFiveUnfair,
    "Java SE 5.0, unfair",
    Paper,
    JavaFive<u64>,
    JavaFive::new(Fairness::Unfair),
    |queue, item| {
        queue.put(item);
        true
    },
    |queue| Some(queue.take())
);
shared!(
    /// Java SE 5.0's, with two queues and a fair lock.
    JavaFiveFair,
    "Java SE 5.0, fair",
    Paper,
    JavaFive<u64>,
    JavaFive::new(Fairness::Fair),
    |queue, item| {
        queue.put(item);
        true
    },
    |queue| Some(queue.take())
);
shared!(
    /// Three semaphores.
    Hanson,
    "Hanson",
    Paper,
    baseline::Hanson<u64>,
    baseline::Hanson::new(),
    |queue, item| {
        queue.put(item);
        true
    },
    |queue| Some(queue.take())
);
shared!(
    /// One monitor.
    Naive,
    "naive",
    Paper,
    baseline::Naive<u64>,
    baseline::Naive::new(),
    |queue, item| {
        queue.put(item);
        true
    },
    |queue| Some(queue.take())
);
channel!(
    /// crossbeam's channel without room.
    CrossbeamZero,
    "crossbeam bounded(0)",
    crossbeam_channel,
    bounded(0)
);
channel!(
    /// kanal's channel without room.
    KanalZero,
    "kanal bounded(0)",
    kanal,
    bounded(0)
);
channel!(
    /// flume's channel without room.
    FlumeZero,
    "flume bounded(0)",
    flume,
    bounded(0)
);
many_to_many!(
    /// The standard library's channel without room.
    SyncChannelZero,
    "std sync_channel(0)",
    Crate,
    mpsc::SyncSender<u64>,
    mpsc::Receiver<u64>,
    only_one(mpsc::sync_channel(0)),
    |tx, item| tx.send(item).is_ok(),
    |rx| rx.recv().ok(),
    ONE_TAKER
);

shared!(
    /// The transfer queue, whose putters do not wait.
    TransferPush,
    "TransferQueue, push",
    Corelane,
    TransferQueue<u64>,
    TransferQueue::new(),
    |queue, item| queue.push(item).is_ok(),
    |queue| queue.take().ok()
);
shared!(
    /// The transfer queue, whose putters wait.
    TransferPut,
    "TransferQueue, put",
    Corelane,
    TransferQueue<u64>,
    TransferQueue::new(),
    |queue, item| queue.put(item).is_ok(),
    |queue| queue.take().ok()
);
channel!(
    /// crossbeam's channel without a bound.
    CrossbeamUnbounded,
    "crossbeam unbounded",
    crossbeam_channel,
    unbounded()
);
channel!(
    /// kanal's channel without a bound.
    KanalUnbounded,
    "kanal unbounded",
    kanal,
    unbounded()
);
channel!(
    /// flume's channel without a bound.
    FlumeUnbounded,
    "flume unbounded",
    flume,
    unbounded()
);
many_to_many!(
    /// The standard library's channel without a bound.
    ChannelUnbounded,
    "std channel",
    Crate,
    mpsc::Sender<u64>,
    mpsc::Receiver<u64>,
    only_one(mpsc::channel()),
    |tx, item| tx.send(item).is_ok(),
    |rx| rx.recv().ok(),
    ONE_TAKER
);
shared!(
    /// concurrent-queue without a bound, which leaves waiting to its user.
    ConcurrentUnbounded,
    "concurrent-queue + yield",
    Crate,
    ConcurrentQueue<u64>,
    ConcurrentQueue::unbounded(),
    |queue, item| queue.push(item).is_ok(),
    |queue| {
        loop {
            match queue.pop() {
                Ok(item) => return Some(item),
                Err(error) if error.is_closed() => return None,
                Err(_) => yield_now(),
            }
        }
    }
);

/// The capacity of the bounded queues.
const CAPACITY: usize = 1024;

shared!(
    /// The ring of stamps.
    TicketBounded,
    "ticket",
    Corelane,
    mpmc::Queue<u64>,
    mpmc::queue(CAPACITY),
    |queue, item| queue.push(item).is_ok(),
    |queue| queue.pop().ok()
);
shared!(
    /// The two rings of indices.
    ScqBounded,
    "scq",
    Corelane,
    mpmc::scq::Queue<u64>,
    mpmc::scq::queue(CAPACITY),
    |queue, item| queue.push(item).is_ok(),
    |queue| queue.pop().ok()
);
channel!(
    /// crossbeam's channel with a bound.
    CrossbeamBounded,
    "crossbeam bounded",
    crossbeam_channel,
    bounded(CAPACITY)
);
channel!(
    /// kanal's channel with a bound.
    KanalBounded,
    "kanal bounded",
    kanal,
    bounded(CAPACITY)
);
channel!(
    /// flume's channel with a bound.
    FlumeBounded,
    "flume bounded",
    flume,
    bounded(CAPACITY)
);
many_to_many!(
    /// A lane for each sender, with a capacity of its own, and no order between them.
    LanesBounded,
    "lanes",
    Corelane,
    mpmc::lanes::Sender<u64>,
    mpmc::lanes::Receiver<u64>,
    cloned(mpmc::lanes::channel(CAPACITY)),
    |tx, item| tx.push(item).is_ok(),
    |rx| rx.pop().ok()
);
/// crossbeam's bounded queue. Its user calls `$wait` between two tries.
macro_rules! array_queue {
    ($(#[doc = $doc:literal])+ $name:ident, $label:literal, $wait:ident) => {
        shared!(
            $(#[doc = $doc])+
            $name,
            $label,
            Crate,
            ArrayQueue<u64>,
            ArrayQueue::new(CAPACITY),
            |queue, item| {
                while queue.push(item).is_err() {
                    $wait();
                }
                true
            },
            |queue| {
                loop {
                    match queue.pop() {
                        Some(item) => return Some(item),
                        None => $wait(),
                    }
                }
            }
        );
    };
}

array_queue!(
    /// crossbeam's queue, which leaves waiting to its user.
    ArrayQueueYields,
    "crossbeam ArrayQueue + yield",
    yield_now
);

/// Queues whose threads spin. An emulator ends at once any time for which a thread would spin before it sleeps.
macro_rules! spins {
    ($(#[doc = $doc:literal])+ $name:ident, $label:literal, $design:ident) => {
        shared!(
            $(#[doc = $doc])+
            $name,
            $label,
            Corelane,
            mpmc::Queue<u64, mpmc::$design, Spin>,
            mpmc::any_queue(CAPACITY, mpmc::Options::new().wait(Spin)).expect("there is memory"),
            |queue, item| queue.push(item).is_ok(),
            |queue| queue.pop().ok()
        );
    };
}

spins!(
    /// The ring of stamps.
    TicketSpins,
    "ticket, spinning",
    Ticket
);
spins!(
    /// The two rings of indices.
    ScqSpins,
    "scq, spinning",
    Scq
);
spins!(
    /// The lock-free list.
    MichaelScottSpins,
    "michael_scott, spinning",
    MichaelScott
);
spins!(
    /// The list with two locks.
    TwoLockSpins,
    "two_lock, spinning",
    TwoLock
);
spins!(
    /// The ring under a spin lock.
    BusyWaitSpins,
    "busy_wait",
    BusyWait
);
spins!(
    /// The ring under a mutex, whose threads sleep.
    CondvarSleeps,
    "condvar",
    Condvar
);
many_to_many!(
    /// A lane for each sender.
    LanesSpin,
    "lanes, spinning",
    Corelane,
    mpmc::lanes::Sender<u64, Spin>,
    mpmc::lanes::Receiver<u64, Spin>,
    cloned(mpmc::lanes::channel_with(CAPACITY, mpmc::Options::new().wait(Spin)).expect("there is memory")),
    |tx, item| tx.push(item).is_ok(),
    |rx| rx.pop().ok()
);
array_queue!(
    /// crossbeam's queue, in which threads spin.
    ArrayQueueSpins,
    "crossbeam ArrayQueue, spinning",
    spin_loop
);
shared!(
    /// No queue: a word that every call adds to.
    Word,
    "one word, fetch-and-add",
    Roofline,
    AtomicU64,
    AtomicU64::new(0),
    |word, item| word.fetch_add(item, AcqRel) != u64::MAX,
    |word| Some(word.fetch_add(1, AcqRel))
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::{each_bounded, each_crowd, each_handoff, each_unbounded};

    fn hands_over<M: ManyToMany>() {
        let takers = if M::ONE_TAKER { 1 } else { 2 };
        let (txs, rxs) = M::ends(2, takers);
        assert_eq!((txs.len(), rxs.len()), (2, takers), "{}", M::name());
        std::thread::scope(|scope| {
            for (first, mut tx) in txs.into_iter().enumerate() {
                scope.spawn(move || (0..100).for_each(|i| assert!(M::put(&mut tx, first as u64 + 2 * i))));
            }
            let sum = |mut rx| (0..200 / takers).map(|_| M::take(&mut rx).expect("there is one")).sum::<u64>();
            let sums: Vec<_> = rxs.into_iter().map(|rx| scope.spawn(move || sum(rx))).collect();
            let sum: u64 = sums.into_iter().map(|sum| sum.join().unwrap()).sum();
            assert_eq!(sum, (0..200).sum::<u64>(), "{}", M::name());
        });
    }

    #[test]
    fn every_contender_hands_items_over() {
        each_handoff!(M => hands_over::<M>());
        each_unbounded!(M => hands_over::<M>());
        each_bounded!(M => hands_over::<M>());
        each_crowd!(M => if M::KIND != Kind::Roofline { hands_over::<M>() });
        hands_over::<TransferPut>();
        hands_over::<Eliminating>();
    }
}
