//! Figure 5 of the B-Queue paper: two queues in a ring, two threads that hold nothing and only pass on what they get.
//!
//! Which published forms hang there and which do not, and that no design of `corelane::spsc` does. A hang is proven by state,
//! not by a clock. Alternately, on one thread: when one poll of either side has moved no item and changed no variable of
//! either queue, then no later poll will. On two threads: both have polled many times after the last item moved, though an item is
//! on its way; clocks only end a run that neither hangs nor gets on.
#![cfg(not(any(loom, shuttle)))]

#[path = "support/watchdog.rs"]
mod watchdog;

use corelane::paper::b_queue::{self, Adaptive, NoBacktracking, Parameters, Plain};
use corelane::paper::fast_forward::{self, Slip};
use corelane::paper::mcring_timer::{self, Signal, Timer};
use corelane::paper::{Dequeue, Enqueue, basic_ring, lock_ring, mcring, mcring_callback};
use corelane::spsc::{self, BQueue, Design, FastForward, Lamport, Lane, Linked, Locked, McRing, MultiLine, Options};
use corelane::wait::Spin;
use std::fmt::Debug;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

type Word = NonZero<usize>;

/// The slots of every queue here, and the batch of those that have one.
const SLOTS: usize = 64;
const BATCH: usize = 8;
/// Numbers of items on their way. All are below a batch: that is when forms hang.
const IN_FLIGHT: [usize; 3] = [1, 3, BATCH - 1];
/// The number of times an item is passed on, after which a form does not hang.
const HOPS: u64 = 5_000;
/// Polls without a hop, of each side, after which it does.
const POLLS: u64 = 20_000;

/// One thread of the figure: where its items come from, where they go to.
struct Relay<C, P, F> {
    from: C,
    to: P,
    poll: F,
}

impl<C: Debug, P: Enqueue<Word> + Debug, F: FnMut(&mut C, &mut P) -> Option<Word>> Relay<C, P, F> {
    /// A poll, and what came is passed on; true if something came.
    fn step(&mut self) -> bool {
        let item = (self.poll)(&mut self.from, &mut self.to);
        if let Some(item) = item {
            assert_eq!(self.to.enqueue(item), Ok(()), "far fewer items than slots are on their way");
        }
        item.is_some()
    }

    fn generate(&mut self, items: usize) {
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
fn ring<P, C, F>(mut queue: impl FnMut() -> (P, C), poll: impl Fn() -> F) -> (Relay<C, P, F>, Relay<C, P, F>)
where
    P: Enqueue<Word> + Debug,
    C: Debug,
    F: FnMut(&mut C, &mut P) -> Option<Word>,
{
    let ((to_second, from_first), (to_first, from_second)) = (queue(), queue());
    let first = Relay { from: from_second, to: to_second, poll: poll() };
    let second = Relay { from: from_first, to: to_first, poll: poll() };
    (first, second)
}

/// Steps both threads alternately, `between` before each step, until they have hung or have passed on enough: the hops until
/// then, and whether they hang.
fn alternate<P, C, F>(
    (first, second): &mut (Relay<C, P, F>, Relay<C, P, F>),
    in_flight: usize,
    between: impl Fn(),
) -> (u64, bool)
where
    P: Enqueue<Word> + Debug,
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
fn run_on_threads<P, C, F>((mut first, mut second): (Relay<C, P, F>, Relay<C, P, F>), in_flight: usize) -> bool
where
    P: Enqueue<Word> + Debug + Send,
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
fn plainly<C: Dequeue<Word>, P>() -> impl FnMut(&mut C, &mut P) -> Option<Word> + Send + Copy {
    |from: &mut C, _: &mut P| from.dequeue()
}

fn never_hangs<P, C>(queue: impl Fn() -> (P, C))
where
    P: Enqueue<Word> + Debug,
    C: Dequeue<Word> + Debug,
{
    watchdog::guard(|| {
        for in_flight in IN_FLIGHT {
            let (hops, hangs) = alternate(&mut ring(&queue, plainly), in_flight, || ());
            assert!(!hangs, "after {hops} hops with {in_flight} items");
            assert!(!run_on_threads(ring(&queue, plainly), in_flight), "with {in_flight} items");
        }
    });
}

fn hangs_at_once<P, C>(queue: impl Fn() -> (P, C))
where
    P: Enqueue<Word> + Debug,
    C: Dequeue<Word> + Debug,
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

fn parameters() -> Parameters {
    Parameters { batch_size: BATCH, batch_max: BATCH, increment: 8, ticks: 0 }
}

#[test]
fn raw_mcring_hangs() {
    hangs_at_once(|| mcring::channel(SLOTS, BATCH).unwrap());
}

#[test]
fn b_queue_without_backtracking_hangs() {
    hangs_at_once(|| b_queue::channel::<NoBacktracking>(SLOTS, parameters()).unwrap());
}

/// A single item is stuck before anybody looks at the signal again, however often it is raised.
#[test]
fn mcring_with_a_timer_hangs_with_one_item() {
    watchdog::guard(|| {
        let signal = Signal::new();
        let threads = &mut ring(|| mcring_timer::channel(SLOTS, BATCH, &signal).unwrap(), plainly);
        assert_eq!(alternate(threads, 1, || signal.raise()), (0, true));
        assert!(signal.count() > 2_000);
        // The signal was there to be seen: the next insertion answers it.
        threads.0.generate(1);
        assert!(threads.1.step());

        let timer = Timer::start(Timer::PAPER_PERIOD).unwrap();
        let threads = ring(|| mcring_timer::channel(SLOTS, BATCH, timer.signal()).unwrap(), plainly);
        let raised = timer.signal().count();
        assert!(run_on_threads(threads, 1));
        // And that it ran beside them.
        while timer.signal().count() == raised {
            thread::yield_now();
        }
    });
}

/// Of several items each insertion shows those before it, so some go round for a while, but never the last; in the end
/// all are stuck.
#[test]
fn mcring_with_a_timer_hangs_with_many_items_in_the_end() {
    watchdog::guard(|| {
        for in_flight in 2..BATCH {
            let signal = Signal::new();
            let threads = &mut ring(|| mcring_timer::channel(SLOTS, BATCH, &signal).unwrap(), plainly);
            threads.0.generate(1);
            signal.raise();
            let (hops, hangs) = alternate(threads, in_flight - 1, || signal.raise());
            assert!(hangs && hops > 0, "after {hops} hops with {in_flight} items");
        }
    });
}

#[test]
fn mcring_with_a_callback_does_not_hang() {
    let queue = || mcring_callback::channel(SLOTS, BATCH).unwrap();
    let poll = || {
        |from: &mut mcring_callback::Consumer<Word>, to: &mut mcring_callback::Producer<Word>| {
            from.dequeue_or(|| {
                to.flush();
            })
        }
    };
    watchdog::guard(|| {
        for in_flight in IN_FLIGHT {
            let (hops, hangs) = alternate(&mut ring(queue, poll), in_flight, || ());
            assert!(!hangs, "after {hops} hops with {in_flight} items");
            assert!(!run_on_threads(ring(queue, poll), in_flight), "with {in_flight} items");
        }
    });
    // Without its callback it is the raw ring.
    hangs_at_once(queue);
}

#[test]
fn b_queue_does_not_hang() {
    never_hangs(|| b_queue::channel::<Plain>(SLOTS, parameters()).unwrap());
    never_hangs(|| b_queue::channel::<Adaptive>(SLOTS, parameters()).unwrap());
}

#[test]
fn rings_without_batches_do_not_hang() {
    never_hangs(|| basic_ring::channel(SLOTS).unwrap());
    never_hangs(|| lock_ring::channel(SLOTS).unwrap());
    never_hangs(|| fast_forward::baseline(SLOTS).unwrap());
    never_hangs(|| fast_forward::tuned(SLOTS, Slip { good: 48, danger: 16, avg_time: 0, interval: 1 }).unwrap());
}

/// The designs of `corelane::spsc`, by their `try_` calls.
#[derive(Debug)]
struct Try<E>(E);

impl<D: Design<Word>> Enqueue<Word> for Try<spsc::Producer<Word, D, Spin>> {
    fn enqueue(&mut self, item: Word) -> Result<(), Word> {
        self.0.try_push(item).map_err(|error| error.into_inner())
    }
}

impl<D: Design<Word>> Dequeue<Word> for Try<spsc::Consumer<Word, D, Spin>> {
    fn dequeue(&mut self) -> Option<Word> {
        self.0.try_pop().ok()
    }
}

fn design_never_hangs<D: Design<Word>>(tuning: D::Tuning) {
    never_hangs(|| {
        let options = Options::new().tuning(tuning.clone()).wait(Spin);
        let (producer, consumer) = spsc::channel_with::<Word, D, _, _>(SLOTS, options).unwrap();
        (Try(producer), Try(consumer))
    });
}

/// With the batches that hang as printed.
#[test]
fn no_safe_design_hangs() {
    use spsc::{bqueue, mcring};
    design_never_hangs::<Lane>(Default::default());
    design_never_hangs::<Lamport>(());
    design_never_hangs::<Locked>(());
    design_never_hangs::<MultiLine>(Default::default());
    design_never_hangs::<FastForward>(Default::default());
    design_never_hangs::<Linked>(Default::default());
    design_never_hangs::<McRing>(mcring::Tuning::new().batch(BATCH));
    design_never_hangs::<BQueue>(bqueue::Tuning::new().batch_size(BATCH));
}
