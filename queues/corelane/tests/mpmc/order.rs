//! Items come once, and those of one sender in their order.

use crate::case::{Random, Rx, Shared, Tx, channel};
use crate::stops::Stops;
use corelane::error::TryPopError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;

const ITEMS: u64 = if cfg!(miri) { 20 } else { 1_000 };

fn push_somehow(tx: &mut impl Tx<u64>, random: &mut Random, item: impl Fn(u64) -> u64) {
    let mut next = 0;
    while next < ITEMS {
        let end = (next + 1 + random.below(60) as u64).min(ITEMS);
        let mut batch: Vec<_> = (next..end).map(&item).collect();
        let pushed = match random.below(4) {
            0 => u64::from(tx.try_push(item(next)).is_ok()),
            1 => tx.push(item(next)).map_or(0, |()| 1),
            2 => tx.try_push_batch(&mut batch).unwrap_or(0) as u64,
            _ => tx.push_batch(&mut batch).map_or(0, |()| end - next),
        };
        if pushed == 0 {
            thread::yield_now();
        }
        next += pushed;
        random.pause();
    }
}

/// Whether there may be more.
fn pop_somehow(rx: &mut impl Rx<u64>, random: &mut Random, items: &mut Vec<u64>) -> bool {
    random.pause();
    let before = items.len();
    let more = match random.below(4) {
        0 => rx.try_pop().map(|item| items.push(item)) != Err(TryPopError::Closed),
        1 => rx.pop().map(|item| items.push(item)).is_ok(),
        2 => rx.try_pop_batch(items, 5) != Err(TryPopError::Closed),
        _ => rx.pop_batch(items, 1 + random.below(50)).is_ok(),
    };
    if items.len() == before {
        thread::yield_now();
    }
    more
}

pub(crate) fn every_kind_of_push_and_pop_mixes<C: Shared>() {
    let threads = [1, 2, 3, 50, 128].into_iter().flat_map(|capacity| [(capacity, 3, 1), (capacity, 1, 3)]);
    for (capacity, senders, receivers) in threads.chain([(3, 4, 4), (128, 4, 4)]) {
        let (tx, rx) = channel::<C, u64>(capacity);
        let mut seen = vec![0_u64; senders];
        thread::scope(|scope| {
            let poppers: Vec<_> = (0..receivers)
                .map(|receiver| {
                    let mut rx = rx.clone();
                    scope.spawn(move || {
                        let (mut random, mut items) = (Random::new(100 + receiver), Vec::new());
                        while pop_somehow(&mut rx, &mut random, &mut items) {}
                        items
                    })
                })
                .collect();
            for sender in 0..senders as u64 {
                let mut tx = tx.clone();
                scope.spawn(move || push_somehow(&mut tx, &mut Random::new(sender), |i| sender << 32 | i));
            }
            drop(tx);
            for popper in poppers {
                let mut last = vec![None; senders];
                for item in popper.join().unwrap() {
                    let (sender, i) = ((item >> 32) as usize, item & 0xffff_ffff);
                    assert!(last[sender].replace(i).is_none_or(|last| last < i), "out of order");
                    seen[sender] += 1 + (i << 32);
                }
            }
        });
        let expected = ITEMS + ((ITEMS * (ITEMS - 1) / 2) << 32);
        assert!(seen.iter().all(|&seen| seen == expected), "an item was lost or came twice");
    }
}

/// `Empty` is said only of a queue that is empty: one that was pushed and not popped is there for the only receiver.
pub(crate) fn a_push_that_returned_is_found<C: Shared>() {
    /// So that an unbounded queue stays small.
    const MOST: u64 = 1_000;
    let (tx, mut rx) = channel::<C, u64>(8);
    let (pushed, popped, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for mut tx in [tx.clone(), tx] {
            let (pushed, popped, stop) = (&pushed, &popped, &stop);
            scope.spawn(move || {
                let mut random = Random::new(7);
                while !stop.load(Relaxed) {
                    if pushed.load(Relaxed) > popped.load(Relaxed) + MOST {
                        thread::yield_now();
                        continue;
                    }
                    if random.below(50) == 0 {
                        tx = tx.clone();
                    }
                    if tx.try_push(0).is_ok() {
                        pushed.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        let _stops = Stops(&stop);
        for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
            let popped_before = popped.load(Relaxed);
            let inside = pushed.load(SeqCst) > popped_before;
            match rx.try_pop() {
                Ok(_) => popped.store(popped_before + 1, Relaxed),
                Err(error) => assert!(!inside || error == TryPopError::Busy, "an item is inside"),
            }
        }
    });
}
