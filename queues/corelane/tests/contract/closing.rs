//! Closing by call or by drop: each item is given back or can be popped.

use crate::case::{CAPACITIES, Case, Random, Rx, STARTS, Tx, queue_from};
use crate::order::push_somehow;
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use std::thread;
use std::time::Duration;

/// The queue is closed for its producer, which gets its item back from every call.
fn assert_refuses<C: Case>(tx: &mut Tx<u64, C>) {
    assert!(tx.is_closed());
    // First more than a block holds: none of them counts as inside.
    let len = tx.len();
    assert_eq!(tx.try_push_batch(&mut [9; 20].into_iter().collect()).unwrap_or(0), 0);
    assert!(tx.len() <= len);
    assert_eq!(tx.try_push(9), Err(TryPushError::Closed(9)));
    assert_eq!(tx.push(9), Err(Closed(9)));
    assert_eq!(tx.push_timeout(9, Duration::from_secs(100)), Err(PushTimeoutError::Closed(9)));
    assert_eq!(tx.try_reserve().err(), Some(TryPushError::Closed(())));
    assert_eq!(tx.wait_for_room(1), Err(Closed(())));
    assert_eq!(tx.try_push_slice(&[9, 9]).unwrap_or(0), 0);
}

/// The queue holds these items and is drained after them.
fn assert_drains<C: Case>(rx: &mut Rx<u64, C>, from: u64, to: u64) {
    assert!(rx.is_closed());
    assert_eq!(rx.len() as u64, to - from);
    for item in from..to {
        assert_eq!(rx.try_pop(), Ok(item));
    }
    assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
    assert_eq!(rx.pop(), Err(Closed(())));
    assert_eq!(rx.pop_timeout(Duration::from_secs(100)), Err(PopTimeoutError::Closed));
    assert_eq!(rx.wait_for_item(), Err(Closed(())));
    assert_eq!(rx.try_pop_slice(&mut [0; 3]).unwrap_or(0), 0);
    assert_eq!(rx.try_pop_batch(&mut Vec::new(), 3).unwrap_or(0), 0);
    assert!(rx.try_peek().is_err());
    assert!(rx.is_empty());
    assert_eq!(rx.len(), 0);
}

/// How an end closes the queue.
#[derive(Clone, Copy, Debug)]
enum By {
    Producer,
    ProducersDrop,
    Consumer,
    ConsumersDrop,
}

/// At every fill of small queues, behind some traffic: producers may publish late, and the consumer may be in the
/// middle of what lies side by side.
pub(crate) fn closing_at_every_fill<C: Case>() {
    let fills = [1, 2, 8, 22, 50, 64, 100].into_iter().flat_map(|capacity| {
        (0..30).flat_map(move |before| [0, 1, 6, 7, 8, capacity / 2, capacity].map(|n| (capacity, before, n)))
    });
    let large = CAPACITIES.into_iter().map(|capacity| (capacity, 0, capacity));
    for (turn, (capacity, before, n)) in fills.chain(large).enumerate() {
        let by = [By::Producer, By::ProducersDrop, By::Consumer, By::ConsumersDrop][turn % 4];
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, STARTS[turn / 4 % 2]);
        for item in 0..before {
            tx.push(item).unwrap();
            assert_eq!(rx.pop(), Ok(item));
        }
        let n = tx.try_push_batch(&mut (0..n.min(capacity) as u64).collect()).unwrap_or(0) as u64;
        let popped = (turn as u64 % 3).min(n);
        (0..popped).for_each(|item| assert_eq!(rx.pop(), Ok(item)));
        assert!(!tx.is_closed() && !rx.is_closed());
        match by {
            By::Producer => tx.close(),
            By::Consumer => rx.close(),
            By::ConsumersDrop => {
                drop(rx);
                assert_refuses::<C>(&mut tx);
                continue;
            }
            By::ProducersDrop => {
                drop(tx);
                assert_drains::<C>(&mut rx, popped, n);
                continue;
            }
        }
        // What was refused leaves no trace, closed once or several times, before and after the queue is drained.
        assert_refuses::<C>(&mut tx);
        rx.close();
        assert_drains::<C>(&mut rx, popped, n);
        tx.close();
        assert_refuses::<C>(&mut tx);
        assert_drains::<C>(&mut rx, 0, 0);
    }
}

/// With the asymmetric barrier of real threads, which no model has: what was accepted is drained, and no more.
pub(crate) fn a_close_races_pushes<C: Case>() {
    for round in 0..if cfg!(miri) { 10 } else { 300 } {
        let capacity = [1, 3, 8, 200][round % 4];
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - round % 40);
        let mut random = Random::new(round as u64);
        thread::scope(|scope| {
            let pusher = scope.spawn(move || {
                let (mut random, mut next) = (Random::new(1 + round as u64), 0);
                while !tx.is_closed() {
                    next = match random.below(2) {
                        0 => next + u64::from(tx.push(next).is_ok()),
                        _ => push_somehow(&mut tx, next, u64::MAX, &mut random),
                    };
                }
                assert_eq!(tx.try_push(0), Err(TryPushError::Closed(0)));
                next
            });
            let mut next = 0;
            for _ in 0..random.below(60) {
                random.spin(50);
                next += u64::from(rx.try_pop().inspect(|&item| assert_eq!(item, next)).is_ok());
            }
            rx.close();
            let len = rx.len() as u64;
            assert_drains::<C>(&mut rx, next, next + len);
            assert_eq!(pusher.join().unwrap(), next + len, "nothing is accepted after the close");
        });
    }
}
