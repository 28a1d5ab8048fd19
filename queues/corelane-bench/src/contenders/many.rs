//! Queues between any number of threads: synchronous queues, unbounded queues with waiting consumers, and bounded
//! queues.

use super::Kind::{self, Corelane, Crate, Paper};
use super::{Rx, Tx};
use crate::measure::{self, Outcome};
use crate::setting::Setting;
use concurrent_queue::ConcurrentQueue;
use corelane::handoff::{Fairness, SynchronousQueue, TransferQueue};
use corelane::mpmc;
use corelane_papers::handoff::{Hanson, JavaFive, Naive};
use crossbeam_queue::ArrayQueue;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::yield_now;

/// A queue between any number of threads, whose calls wait by themselves.
#[derive(Clone)]
pub(crate) struct Many {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether only one thread may take items.
    pub(crate) has_one_taker: bool,
    pub(crate) runs: Rc<dyn HandsOver>,
}

/// What is measured of it.
pub(crate) trait HandsOver {
    /// Items from so many threads to so many.
    fn hand_over(&self, setting: &Setting, putters: usize, takers: usize) -> Outcome;
    /// Threads that wait for an item.
    fn idle(&self, setting: &Setting, takers: usize) -> Outcome;
}

/// Makes an end for each of so many putting threads and so many taking ones.
struct Ends<F>(F);

impl<X: Tx<u64>, R: Rx<u64>, F: Fn(usize, usize) -> (Vec<X>, Vec<R>)> HandsOver for Ends<F> {
    fn hand_over(&self, setting: &Setting, putters: usize, takers: usize) -> Outcome {
        measure::hand_over((self.0)(putters, takers), setting)
    }

    fn idle(&self, setting: &Setting, takers: usize) -> Outcome {
        measure::idle((self.0)(1, takers), setting)
    }
}

/// A queue that all threads share. A put returns false, and a take `None`, if the other side is gone.
fn shared<Q: Send + Sync + 'static>(
    name: &'static str,
    kind: Kind,
    make: impl Fn() -> Q + 'static,
    put: impl Fn(&Q, u64) -> bool + Copy + Send + 'static,
    take: impl Fn(&Q) -> Option<u64> + Copy + Send + 'static,
) -> Many {
    let make = move || {
        let queue = Arc::new(make());
        (queue.clone(), queue)
    };
    channel(name, kind, make, move |queue: &Arc<Q>, item| put(queue, item), move |queue: &Arc<Q>| take(queue))
}

/// A channel whose ends can be cloned.
fn channel<X: Clone + Send + 'static, R: Clone + Send + 'static>(
    name: &'static str,
    kind: Kind,
    make: impl Fn() -> (X, R) + 'static,
    put: impl Fn(&X, u64) -> bool + Copy + Send + 'static,
    take: impl Fn(&R) -> Option<u64> + Copy + Send + 'static,
) -> Many {
    ends(name, kind, make, move |tx: &mut X, item| put(tx, item), move |rx: &mut R| take(rx))
}

/// The same, with calls that change an end.
fn ends<X: Clone + Send + 'static, R: Clone + Send + 'static>(
    name: &'static str,
    kind: Kind,
    make: impl Fn() -> (X, R) + 'static,
    put: impl Fn(&mut X, u64) -> bool + Copy + Send + 'static,
    take: impl Fn(&mut R) -> Option<u64> + Copy + Send + 'static,
) -> Many {
    let ends = move |putters, takers| {
        let (tx, rx) = make();
        (vec![(tx, put); putters], vec![(rx, take); takers])
    };
    Many { name, kind, has_one_taker: false, runs: Rc::new(Ends(ends)) }
}

/// A channel of the standard library, with one receiver.
fn std_channel<X: Clone + Send + 'static>(
    name: &'static str,
    make: impl Fn() -> (X, mpsc::Receiver<u64>) + 'static,
    put: impl Fn(&X, u64) -> bool + Copy + Send + 'static,
) -> Many {
    let ends = move |putters, takers| {
        assert_eq!(takers, 1, "no more were to be asked for");
        let (tx, rx) = make();
        let put = move |tx: &mut X, item| put(tx, item);
        (vec![(tx, put); putters], vec![(rx, |rx: &mut mpsc::Receiver<u64>| rx.recv().ok())])
    };
    Many { name, kind: Crate, has_one_taker: true, runs: Rc::new(Ends(ends)) }
}

fn synchronous(name: &'static str, make: fn() -> SynchronousQueue<u64>) -> Many {
    shared(name, Corelane, make, |queue, item| queue.put(item).is_ok(), |queue| queue.take().ok())
}

fn java(name: &'static str, fairness: Fairness) -> Many {
    shared(name, Paper, move || JavaFive::new(fairness), |q, i| (q.put(i), true).1, |q| Some(q.take()))
}

/// Channels of other crates, by the function that makes them.
macro_rules! channel {
    ($name:literal, $($make:tt)*) => {
        channel($name, Crate, || $($make)*, |tx, item| tx.send(item).is_ok(), |rx| rx.recv().ok())
    };
}

/// Queues that hand items from thread to thread without storing any: this library's, the paper's comparisons, and
/// those of other crates.
pub(crate) fn handoff() -> Vec<Many> {
    vec![
        synchronous("SynchronousQueue, unfair", || SynchronousQueue::new(Fairness::Unfair)),
        fair(),
        java("Java SE 5.0, unfair", Fairness::Unfair),
        java("Java SE 5.0, fair", Fairness::Fair),
        shared("Hanson", Paper, Hanson::new, |q, i| (q.put(i), true).1, |q| Some(q.take())),
        shared("naive", Paper, Naive::new, |q, i| (q.put(i), true).1, |q| Some(q.take())),
        crossbeam_zero(),
        channel!("kanal bounded(0)", kanal::bounded(0)),
        channel!("flume bounded(0)", flume::bounded(0)),
        std_channel("std sync_channel(0)", || mpsc::sync_channel(0), |tx, item| tx.send(item).is_ok()),
    ]
}

pub(crate) fn fair() -> Many {
    synchronous("SynchronousQueue, fair", || SynchronousQueue::new(Fairness::Fair))
}

/// With an elimination arena.
pub(crate) fn eliminating() -> Many {
    synchronous("SynchronousQueue, eliminating", SynchronousQueue::with_elimination)
}

pub(crate) fn crossbeam_zero() -> Many {
    channel!("crossbeam bounded(0)", crossbeam_channel::bounded(0))
}

/// A transfer queue whose putters wait.
pub(crate) fn transfer_put() -> Many {
    let put = |queue: &TransferQueue<u64>, item| queue.put(item).is_ok();
    shared("TransferQueue, put", Corelane, TransferQueue::new, put, |queue| queue.take().ok())
}

/// Queues without a bound.
pub(crate) fn unbounded() -> Vec<Many> {
    let push = |queue: &TransferQueue<u64>, item| queue.push(item).is_ok();
    let pop = |queue: &ConcurrentQueue<u64>| loop {
        match queue.pop() {
            Ok(item) => return Some(item),
            Err(error) if error.is_closed() => return None,
            Err(_) => yield_now(),
        }
    };
    vec![
        shared("TransferQueue, push", Corelane, TransferQueue::new, push, |queue| queue.take().ok()),
        channel!("crossbeam unbounded", crossbeam_channel::unbounded()),
        channel!("kanal unbounded", kanal::unbounded()),
        channel!("flume unbounded", flume::unbounded()),
        std_channel("std channel", mpsc::channel, |tx, item| tx.send(item).is_ok()),
        shared("concurrent-queue + yield", Crate, ConcurrentQueue::unbounded, |q, i| q.push(i).is_ok(), pop),
    ]
}

/// The capacity of the bounded queues.
const CAPACITY: usize = 1024;

/// Queues with a bound.
pub(crate) fn bounded() -> Vec<Many> {
    let push = |queue: &ArrayQueue<u64>, item| {
        while queue.push(item).is_err() {
            yield_now();
        }
        true
    };
    let pop = |queue: &ArrayQueue<u64>| loop {
        match queue.pop() {
            Some(item) => return Some(item),
            None => yield_now(),
        }
    };
    vec![
        shared("ticket", Corelane, || mpmc::queue(CAPACITY), |q, i| q.push(i).is_ok(), |q| q.pop().ok()),
        shared("scq", Corelane, || mpmc::scq::queue(CAPACITY), |q, i| q.push(i).is_ok(), |q| q.pop().ok()),
        // A lane for each sender, with a capacity of its own, and no order between them.
        ends("lanes", Corelane, || mpmc::lanes::channel(CAPACITY), |tx, i| tx.push(i).is_ok(), |rx| rx.pop().ok()),
        channel!("crossbeam bounded", crossbeam_channel::bounded(CAPACITY)),
        shared("crossbeam ArrayQueue + yield", Crate, || ArrayQueue::new(CAPACITY), push, pop),
        channel!("kanal bounded", kanal::bounded(CAPACITY)),
        channel!("flume bounded", flume::bounded(CAPACITY)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_contender_hands_items_over() {
        let setting =
            Setting { cpus: [None; 2], bound: Duration::from_secs(9), count: 200, counting: false, quick: false };
        let all = [handoff(), unbounded(), bounded(), vec![transfer_put(), eliminating()]].concat();
        for queue in all {
            let takers = if queue.has_one_taker { 1 } else { 2 };
            let reading = queue.runs.hand_over(&setting, 2, takers);
            assert!(reading.is_ok_and(|reading| reading.items == 200), "{}", queue.name);
        }
    }
}
