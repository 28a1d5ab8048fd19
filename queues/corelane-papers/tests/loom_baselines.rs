//! FastFlow's queue and the synchronous queues under every interleaving of small cases. Runs with
//! `cargo loom -p corelane-papers --test loom_baselines`.
//!
//! See `loom.rs` and `loom_handoff.rs` of `corelane` for what loom cannot show.

#[allow(dead_code)]
#[path = "../../corelane/tests/support/explore.rs"]
mod explore;

use corelane::Barrier;
use corelane::handoff::Fairness;
use explore::{Item, explore_with, spawn_with};
use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

/// A time-out that may come at any moment.
const NOW: Duration = Duration::ZERO;

/// With buffers of one pointer or two.
mod fastflow {
    use super::*;
    use corelane_papers::fastflow;

    fn change(preemptions: usize, size: usize, items: usize) {
        let model = move || {
            let (mut producer, mut consumer) = fastflow::channel::<Item>(size);
            let pusher = thread::spawn(move || {
                for id in 0..items {
                    assert!(producer.push(Box::new(Item::new(id))).is_ok());
                }
            });
            for id in 0..items - 1 {
                let item = loop {
                    match consumer.pop() {
                        Some(item) => break item,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(item.read(), id);
            }
            pusher.join().unwrap();
        };
        explore_with(Barrier::Nothing, preemptions, model);
        // Either side looks at a slot before it changes it, and so hides the other's look.
        explore_with(Barrier::ReadModifyWrite, preemptions, model);
    }

    #[test]
    fn pointers_are_handed_over_with_their_memory() {
        change(3, 2, 3);
    }

    #[test]
    fn a_buffer_changes_under_the_consumer() {
        change(2, 1, 4);
    }

    /// Behind a flag that orders nothing, the consumer may see any of what the producer has done, and no other part of
    /// it: it must look at a buffer once more when it knows that the producer has left it.
    #[test]
    fn nothing_is_left_behind_in_a_buffer() {
        explore_with(Barrier::Nothing, 1, || {
            let (producer, mut consumer) = fastflow::channel::<usize>(1);
            let told = Arc::new(AtomicBool::new(false));
            let tell = told.clone();
            let pusher = spawn_with(producer, move |producer| {
                (0..2).for_each(|item| producer.push(Box::new(item)).unwrap());
                tell.store(true, Relaxed);
            });
            while !told.load(Relaxed) {
                thread::yield_now();
            }
            for item in 0..2 {
                let popped = loop {
                    match consumer.pop() {
                        Some(popped) => break popped,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(*popped, item);
            }
            drop(pusher.join().unwrap());
        });
    }
}

/// The synchronous queues.
mod handoff {
    use super::*;
    use corelane_papers::handoff::{Hanson, JavaFive, Naive};

    /// Two puts of one thread and two takes of another.
    fn hands_over<Q: Send + Sync + 'static>(make: fn() -> Q, put: fn(&Q, Item), take: fn(&Q) -> Item) {
        explore_with(Barrier::Nothing, 2, move || {
            let queue = Arc::new(make());
            let other = queue.clone();
            let putter = thread::spawn(move || (0..2).for_each(|id| put(&other, Item::new(id))));
            for id in 0..2 {
                assert_eq!(take(&queue).read(), id);
            }
            putter.join().unwrap();
        });
    }

    #[test]
    fn naive_hands_over() {
        hands_over(Naive::new, Naive::put, Naive::take);
    }

    #[test]
    fn hanson_hands_over() {
        hands_over(Hanson::new, Hanson::put, Hanson::take);
    }

    #[test]
    fn java_five_hands_over() {
        hands_over(|| JavaFive::new(Fairness::Fair), JavaFive::put, JavaFive::take);
        hands_over(|| JavaFive::new(Fairness::Unfair), JavaFive::put, JavaFive::take);
    }

    #[test]
    fn java_five_matches_against_a_time_out() {
        for fairness in [Fairness::Fair, Fairness::Unfair] {
            explore_with(Barrier::Nothing, 2, move || {
                let queue = Arc::new(JavaFive::new(fairness));
                let (other, item) = (queue.clone(), Item::new(0));
                let putter = thread::spawn(move || other.put_timeout(item, NOW).is_ok());
                let taken = queue.take_timeout(NOW).is_ok();
                assert_eq!(putter.join().unwrap(), taken);
            });
        }
    }
}
