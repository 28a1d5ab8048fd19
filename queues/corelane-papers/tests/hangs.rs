//! Which published forms hang in a ring of two queues, and which do not.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[path = "../../corelane/tests/support/two_queues.rs"]
mod two_queues;
#[path = "../../corelane/tests/support/watchdog.rs"]
mod watchdog;

use corelane_papers::b_queue::{self, Adaptive, NoBacktracking, Parameters, Plain};
use corelane_papers::fast_forward::{self, Slip};
use corelane_papers::mcring_timer::{self, Signal, Timer};
use corelane_papers::{Dequeue, Enqueue, basic_ring, lock_ring, mcring, mcring_callback};
use std::fmt::Debug;
use std::thread;
use two_queues::{BATCH, IN_FLIGHT, SLOTS, Word, alternate, hangs_at_once, never_hangs, plainly, ring, run_on_threads};

impl<P: Enqueue<Word> + Debug> two_queues::Enqueue for P {
    fn enqueue(&mut self, item: Word) -> Result<(), Word> {
        Enqueue::enqueue(self, item)
    }
}

impl<C: Dequeue<Word> + Debug> two_queues::Dequeue for C {
    fn dequeue(&mut self) -> Option<Word> {
        Dequeue::dequeue(self)
    }
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

/// A single item is stuck before either end looks at the signal again, however often it is raised.
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
