//! Without the feature `std`: a wait that is told to park goes on looking, and the default strategy is there. Run with
//! `cargo test -p corelane --no-default-features --test without_std`.
#![cfg(not(any(feature = "std", loom, shuttle)))]

use corelane::wait::{Adaptive, Next, Strategy, WaitState};
use corelane::{mpmc, spsc};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

/// Says that the thread should park, each time.
#[derive(Clone, Debug, Default)]
struct Parks(Arc<AtomicU32>);

impl Strategy for Parks {
    fn next(&self, state: &mut WaitState) -> Next {
        self.0.store(state.count(), Relaxed);
        Next::Park
    }
}

impl Parks {
    /// Waits until another thread has been told to park more than once.
    fn seen(&self) {
        while self.0.load(Relaxed) < 10 {
            thread::yield_now();
        }
    }
}

#[test]
fn who_is_told_to_park_goes_on_looking() {
    let parks = Parks::default();
    let (mut producer, mut consumer) = spsc::lane::channel_with(1, spsc::Options::new().wait(parks.clone())).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || assert_eq!((consumer.pop(), consumer.pop()), (Ok(1), Err(corelane::error::Closed(())))));
        parks.seen();
        producer.push(1).unwrap();
        drop(producer);
    });
}

#[test]
fn who_is_told_to_park_by_a_shared_queue_goes_on_looking() {
    let parks = Parks::default();
    let (sender, receiver) = mpmc::ticket::channel_with(1, mpmc::Options::new().wait(parks.clone())).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || assert_eq!(receiver.pop(), Ok(1)));
        parks.seen();
        sender.push(1).unwrap();
    });
}

#[test]
fn handles_that_name_no_strategy_have_the_adaptive_one() {
    let (mut producer, mut consumer): (spsc::Producer<u32>, spsc::Consumer<u32, spsc::Lane, Adaptive>) =
        spsc::channel(1);
    thread::scope(|scope| {
        scope.spawn(move || assert!((0..100).all(|number| consumer.pop() == Ok(number))));
        (0..100).for_each(|number| producer.push(number).unwrap());
    });
}
