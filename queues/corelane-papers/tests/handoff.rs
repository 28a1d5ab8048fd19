//! The queues of the paper's comparison: what they promise, which is less.

#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[path = "../../corelane/tests/support/meeting.rs"]
mod meeting;
#[path = "../../corelane/tests/handoff/support.rs"]
#[allow(dead_code, unused_imports, reason = "the queues under test are others, and none of them can be looked into")]
mod support;
#[path = "../../corelane/tests/support/watchdog.rs"]
mod watchdog;

use corelane::error::{PopTimeoutError, PushTimeoutError, TryPushError};
use corelane::handoff::Fairness;
use corelane_papers::handoff::{Hanson, JavaFive, Naive};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use support::{LONG, Ledger, T, timed};
use watchdog::guard;

/// Every item once, between several threads; a put does not return before its item is taken.
fn hands_over<Q: Sync>(queue: Q, put: fn(&Q, usize), take: fn(&Q) -> usize) {
    const ITEMS: usize = 300;
    guard(|| {
        let seen: Vec<_> = (0..3 * ITEMS).map(|_| AtomicUsize::new(0)).collect();
        thread::scope(|scope| {
            let (queue, seen) = (&queue, &seen);
            for thread in 0..3 {
                scope.spawn(move || {
                    for item in thread * ITEMS..(thread + 1) * ITEMS {
                        put(queue, item);
                    }
                });
                scope.spawn(move || {
                    for _ in 0..ITEMS {
                        seen[take(queue)].fetch_add(1, Relaxed);
                    }
                });
            }
        });
        assert!(seen.iter().all(|times| times.load(Relaxed) == 1));
        thread::scope(|scope| {
            let putter = scope.spawn(|| put(&queue, 7));
            thread::sleep(T);
            assert!(!putter.is_finished());
            assert_eq!(take(&queue), 7);
        });
    });
}

#[test]
fn naive() {
    hands_over(Naive::new(), Naive::put, Naive::take);
}

#[test]
fn hanson() {
    hands_over(Hanson::new(), Hanson::put, Hanson::take);
}

#[test]
fn java_five() {
    for fairness in [Fairness::Fair, Fairness::Unfair] {
        hands_over(JavaFive::new(fairness), JavaFive::put, JavaFive::take);
    }
}

#[test]
fn java_five_gives_up_in_time() {
    guard(|| {
        for fairness in [Fairness::Fair, Fairness::Unfair] {
            let queue = JavaFive::new(fairness);
            let (result, took) = timed(|| queue.put_timeout(1, T));
            assert_eq!(result, Err(PushTimeoutError::Timeout(1)));
            assert!(took >= T && took < LONG);
            assert_eq!(queue.take_timeout(Duration::ZERO), Err(PopTimeoutError::Timeout));
            thread::scope(|scope| {
                scope.spawn(|| queue.put_timeout(2, LONG).unwrap());
                assert_eq!(queue.take_timeout(LONG), Ok(2));
            });
        }
    });
}

/// A take that has given up is passed over: no item is lost in it.
#[test]
fn java_five_tries_to_put_to_those_who_wait() {
    guard(|| {
        for fairness in [Fairness::Fair, Fairness::Unfair] {
            let queue = JavaFive::new(fairness);
            assert_eq!(queue.try_put(0), Err(TryPushError::Full(0)));
            thread::scope(|scope| {
                let takers = [scope.spawn(|| queue.take()), scope.spawn(|| queue.take())];
                assert_eq!(queue.take_timeout(Duration::ZERO), Err(PopTimeoutError::Timeout));
                for item in [1, 2] {
                    // Until a taker has come.
                    while queue.try_put(item).is_err() {
                        thread::yield_now();
                    }
                }
                assert_eq!(queue.try_put(3), Err(TryPushError::Full(3)));
                let mut taken = takers.map(|taker| taker.join().unwrap());
                taken.sort_unstable();
                assert_eq!(taken, [1, 2]);
            });
            // Items or not: whatever a take got was put, and nothing was put twice.
            const ITEMS: usize = 2000;
            let over = AtomicUsize::new(0);
            let taken = thread::scope(|scope| {
                let taker = scope.spawn(|| {
                    let mut taken = 0;
                    while over.load(Relaxed) == 0 {
                        taken += usize::from(queue.take_timeout(Duration::from_micros(20)).is_ok());
                    }
                    taken
                });
                let put = (0..ITEMS).filter(|&item| queue.try_put(item).is_ok()).count();
                over.store(1, Relaxed);
                (put, taker.join().unwrap())
            });
            assert_eq!(taken.0, taken.1);
        }
    });
}

#[test]
fn items_that_nobody_took_are_dropped_once() {
    let ledger = Ledger::default();
    let queue = JavaFive::new(Fairness::Fair);
    drop(queue.put_timeout(ledger.item(1), Duration::ZERO));
    drop(queue);
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 1));
}
