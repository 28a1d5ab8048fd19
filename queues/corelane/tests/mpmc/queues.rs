//! What only a queue promises, of which all senders share the room.

use crate::case::{NAP, Rx, Shared, Tx, channel};
use crate::stops::Stops;
use corelane::error::TryPushError;
use corelane::mpmc::{self, Counting, Design, Options};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;

pub(crate) fn what_is_counted<C: Shared + Design<u64>>() {
    let (tx, rx) = mpmc::any_channel::<u64, C, _, _>(2, Options::new().stats::<Counting>()).expect("a good capacity");
    tx.push(1).unwrap();
    assert_eq!(tx.clone().try_push_batch(&mut vec![2]), Ok(1));
    let refused = u64::from(C::BOUNDED);
    assert!(!C::BOUNDED || tx.try_push(3).is_err());
    let mut items = Vec::new();
    assert_eq!(rx.pop_batch(&mut items, 5), Ok(2));
    rx.try_pop().unwrap_err();
    assert_eq!((tx.try_push_batch(&mut Vec::new()), rx.try_pop_batch(&mut items, 0)), (Ok(0), Ok(0)));
    let stats = tx.stats();
    assert_eq!((stats.push.attempts, stats.push.failures, stats.push.items), (2 + refused, refused, 2));
    assert_eq!((stats.pop.attempts, stats.pop.failures, stats.pop.items), (2, 1, 2));
    assert_eq!((stats.push.sleeps, stats.pop.sleeps, stats.push.retries, stats.pop.retries), (0, 0, 0, 0));
    // It may be woken before it sleeps, on a busy machine.
    for _ in 0..100 {
        rx.pop_timeout(NAP).unwrap_err();
        if rx.stats().pop.sleeps > 0 || !C::SLEEPS {
            break;
        }
    }
    let stats = rx.stats();
    assert_eq!(stats.pop.sleeps > 0, C::SLEEPS);
    assert_eq!(stats.pop.attempts - 1, stats.pop.failures);
}

pub(crate) fn a_pop_that_returned_leaves_room<C: Shared>() {
    if !C::BOUNDED {
        return;
    }
    let (mut tx, rx) = channel::<C, u64>(8);
    let (popped, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for mut rx in [rx.clone(), rx] {
            let (popped, stop) = (&popped, &stop);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    if rx.try_pop().is_ok() {
                        popped.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        let _stops = Stops(&stop);
        let mut pushed = 0;
        for _ in 0..20_000 {
            let room = pushed - popped.load(SeqCst) < 8;
            match tx.try_push(0) {
                Ok(()) => pushed += 1,
                Err(error) => assert!(!room || error == TryPushError::Busy(0), "there is room"),
            }
        }
    });
}
