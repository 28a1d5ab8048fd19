//! Figure 5 of the B-Queue paper: two queues in a ring, two threads that hold nothing and only pass on what they get.
//!
//! A hang is proven by state, not by a clock. Alternately, on one thread: when one poll of either side has moved no
//! item and changed no variable of either queue, then no later poll will. On two threads: both have polled many times
//! after the last item moved, though an item is on its way; clocks only end a run that neither hangs nor gets on.

use crate::watchdog;
use std::fmt::Debug;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

/// A producer's end.
pub(crate) trait Enqueue: Debug + Send {
    fn enqueue(&mut self, item: Word) -> Result<(), Word>;
}

/// A consumer's end.
pub(crate) trait Dequeue: Debug + Send {
    fn dequeue(&mut self) -> Option<Word>;
}

pub(crate) type Word = NonZero<usize>;

/// The slots of every queue here, and the batch of those that have one.
pub(crate) const SLOTS: usize = 64;
pub(crate) const BATCH: usize = 8;
/// Numbers of items on their way. All are below a batch: that is when forms hang.
pub(crate) const IN_FLIGHT: [usize; 3] = [1, 3, BATCH - 1];
/// The number of times an item is passed on, after which a form does not hang.
const HOPS: u64 = 5_000;
/// Polls without a hop, of each side, after which it does.
const POLLS: u64 = 20_000;

/// One thread of the figure: where its items come from, where they go to.
pub(crate) struct Relay<C, P, F> {
    from: C,
    to: P,
    poll: F,
}

impl<C: Debug, P: Enqueue, F: FnMut(&mut C, &mut P) -> Option<Word>> Relay<C, P, F> {
    /// A poll, and what came is passed on; true if something came.
    pub(crate) fn step(&mut self) -> bool {
        let item = (self.poll)(&mut self.from, &mut self.to);
        if let Some(item) = item {
            assert_eq!(self.to.enqueue(item), Ok(()), "far fewer items than slots are on their way");
        }
        item.is_some()
    }

    pub(crate) fn generate(&mut self, items: usize) {
        for number in 1..=items {
            assert_eq!(self.to.enqueue(Word::new(number).unwrap()), Ok(()));
        }
    }

    /// All variables of the two ends.
    fn state(&self) -> String {
        format!("{:?} {:?}", self.from, self.to)
    }
}

/// A pair of queues, joined to a ring by two threads.
pub(crate) fn ring<P, C, F>(mut queue: impl FnMut() -> (P, C), poll: impl Fn() -> F) -> (Relay<C, P, F>, Relay<C, P, F>)
where
    P: Enqueue,
    C: Debug,
    F: FnMut(&mut C, &mut P) -> Option<Word>,
{
    let ((to_second, from_first), (to_first, from_second)) = (queue(), queue());
    let first = Relay { from: from_second, to: to_second, poll: poll() };
    let second = Relay { from: from_first, to: to_first, poll: poll() };
    (first, second)
}

/// Steps both threads alternately, `between` before each step, until they have hung or have passed on enough: the hops
/// until then, and whether they hang.
pub(crate) fn alternate<P, C, F>(
    (first, second): &mut (Relay<C, P, F>, Relay<C, P, F>),
    in_flight: usize,
    between: impl Fn(),
) -> (u64, bool)
where
    P: Enqueue,
    C: Debug,
    F: FnMut(&mut C, &mut P) -> Option<Word>,
{
    first.generate(in_flight);
    let mut hops = 0;
    while hops < HOPS {
        let before = (first.state(), second.state());
        let mut round = || {
            between();
            let first_hopped = first.step();
            between();
            u64::from(first_hopped) + u64::from(second.step())
        };
        let hopped = round();
        hops += hopped;
        if hopped == 0 && (first.state(), second.state()) == before {
            // A fixed point: that is the proof. That a thousand more rounds change nothing is its test.
            for _ in 0..1_000 {
                between();
                assert!(!first.step());
                between();
                assert!(!second.step());
            }
            assert_eq!((first.state(), second.state()), before);
            return (hops, true);
        }
    }
    (hops, false)
}

/// Runs both on threads of their own until they hang, or have passed on enough: whether they hang.
pub(crate) fn run_on_threads<P, C, F>(
    (mut first, mut second): (Relay<C, P, F>, Relay<C, P, F>),
    in_flight: usize,
) -> bool
where
    P: Enqueue,
    C: Debug + Send,
    F: FnMut(&mut C, &mut P) -> Option<Word> + Send,
{
    let over = AtomicBool::new(false);
    let hops = AtomicU64::new(0);
    let polls = [AtomicU64::new(0), AtomicU64::new(0)];
    first.generate(in_flight);
    thread::scope(|scope| {
        for (relay, polls) in [&mut first, &mut second].into_iter().zip(&polls) {
            let (over, hops) = (&over, &hops);
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    if relay.step() {
                        hops.fetch_add(1, Relaxed);
                    } else {
                        thread::yield_now();
                    }
                    polls.fetch_add(1, Relaxed);
                }
            });
        }
        let count = || polls.each_ref().map(|polls| polls.load(Relaxed));
        let hangs = loop {
            let (hops_before, polls_before) = (hops.load(Relaxed), count());
            if hops_before >= HOPS {
                break false;
            }
            while hops.load(Relaxed) == hops_before
                && count().iter().zip(polls_before).any(|(now, before)| now - before < POLLS)
            {
                thread::yield_now();
            }
            if hops.load(Relaxed) == hops_before {
                break true;
            }
        };
        over.store(true, Relaxed);
        hangs
    })
}

/// What to do with a queue when there is no more to it than a `dequeue`.
pub(crate) fn plainly<C: Dequeue, P>() -> impl FnMut(&mut C, &mut P) -> Option<Word> + Send + Copy {
    |from: &mut C, _: &mut P| from.dequeue()
}

pub(crate) fn never_hangs<P, C>(queue: impl Fn() -> (P, C))
where
    P: Enqueue,
    C: Dequeue,
{
    watchdog::guard(|| {
        for in_flight in IN_FLIGHT {
            let (hops, hangs) = alternate(&mut ring(&queue, plainly), in_flight, || ());
            assert!(!hangs, "after {hops} hops with {in_flight} items");
            assert!(!run_on_threads(ring(&queue, plainly), in_flight), "with {in_flight} items");
        }
    });
}

pub(crate) fn hangs_at_once<P, C>(queue: impl Fn() -> (P, C))
where
    P: Enqueue,
    C: Dequeue,
{
    watchdog::guard(|| {
        for in_flight in IN_FLIGHT {
            let threads = &mut ring(&queue, plainly);
            assert_eq!(alternate(threads, in_flight, || ()), (0, true), "with {in_flight} items");
            // Nothing was lost: what completes the batch brings all of it.
            threads.0.generate(BATCH - in_flight);
            assert!(threads.1.step());
            assert!(run_on_threads(ring(&queue, plainly), in_flight), "with {in_flight} items");
        }
    });
}
