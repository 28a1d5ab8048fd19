//! Many threads: every item once, each producer's in order, and answers that are true.

use crate::case::{Case, Random, Under, queue, until};
use crate::stops::Stops;
use corelane::error::{TryPopError, TryPushError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;

const ITEMS: u64 = 2_000;

/// More threads than the machine has cores, in any mix of a few.
const THREADS: [(usize, usize); 4] = [(1, 1), (3, 1), (1, 3), (4, 4)];

/// The items of producer p are `p << 32 | 0..`.
fn item(producer: usize, i: u64) -> u64 {
    (producer as u64) << 32 | i
}

/// Runs so many producers and consumers; checks that each item comes once, and each producer's in order at each
/// consumer.
fn traffic<C: Case>(
    capacity: usize,
    push: impl Fn(&Under<C, u64>, &mut Random, usize) + Sync,
    pop: impl Fn(&Under<C, u64>, &mut Random, &mut Vec<u64>) -> bool + Sync,
) {
    for (producers, consumers) in THREADS {
        let queue = queue::<C, u64>(capacity);
        let mut seen = vec![0_u64; producers];
        thread::scope(|scope| {
            let (queue, push, pop) = (&queue, &push, &pop);
            let poppers: Vec<_> = (0..consumers)
                .map(|consumer| {
                    scope.spawn(move || {
                        let (mut random, mut items) = (Random::new(100 + consumer as u64), Vec::new());
                        while pop(queue, &mut random, &mut items) {
                            random.pause();
                        }
                        items
                    })
                })
                .collect();
            let pushers: Vec<_> = (0..producers)
                .map(|producer| scope.spawn(move || push(queue, &mut Random::new(producer as u64), producer)))
                .collect();
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
            queue.close();
            for popper in poppers {
                let items = popper.join().unwrap();
                let mut last = vec![None; producers];
                for item in items {
                    let (producer, i) = ((item >> 32) as usize, item & 0xffff_ffff);
                    assert!(last[producer].replace(i).is_none_or(|last| last < i), "out of order");
                    seen[producer] += 1 + (i << 32);
                }
            }
        });
        // Count and sum.
        let expected = ITEMS + ((ITEMS * (ITEMS - 1) / 2) << 32);
        assert!(seen.iter().all(|&seen| seen == expected), "an item was lost or came twice");
        assert_eq!((queue.len(), queue.try_pop()), (0, Err(TryPopError::Closed)));
    }
}

pub(crate) fn single_items_between_many_threads<C: Case>() {
    for capacity in [1, 3, 128] {
        traffic::<C>(
            capacity,
            |queue, random, producer| {
                for i in 0..ITEMS {
                    queue.push(item(producer, i)).unwrap();
                    random.pause();
                }
            },
            |queue, _, items| queue.pop().map(|item| items.push(item)).is_ok(),
        );
    }
}

fn push_in_batches<C: Case>(queue: &Under<C, u64>, random: &mut Random, producer: usize) {
    let mut next = 0;
    while next < ITEMS {
        let end = (next + 1 + random.below(60) as u64).min(ITEMS);
        let mut batch: Vec<_> = (next..end).map(|i| item(producer, i)).collect();
        queue.push_batch(&mut batch).unwrap();
        next = end;
        random.pause();
    }
}

pub(crate) fn batches_between_many_threads<C: Case>() {
    for capacity in [1, 3, 128] {
        traffic::<C>(capacity, push_in_batches::<C>, |queue, random, items| {
            queue.pop_batch(items, 1 + random.below(50)).is_ok()
        });
    }
}

pub(crate) fn try_calls_between_many_threads<C: Case>() {
    for capacity in [1, 3, 128] {
        traffic::<C>(
            capacity,
            |queue, random, producer| {
                for i in 0..ITEMS {
                    let mut item = item(producer, i);
                    while let Err(refused) = queue.try_push(item) {
                        assert!(!refused.is_closed());
                        item = refused.into_inner();
                        thread::yield_now();
                    }
                    random.pause();
                }
            },
            |queue, _, items| match queue.try_pop() {
                Ok(item) => {
                    items.push(item);
                    true
                }
                Err(TryPopError::Closed) => false,
                Err(TryPopError::Empty | TryPopError::Busy) => {
                    thread::yield_now();
                    true
                }
                Err(error) => panic!("{error}"),
            },
        );
    }
}

pub(crate) fn singles_and_batches_mix<C: Case>() {
    for capacity in [2, 50] {
        traffic::<C>(
            capacity,
            |queue, random, producer| {
                if producer % 2 == 0 {
                    return push_in_batches::<C>(queue, random, producer);
                }
                (0..ITEMS).for_each(|i| queue.push(item(producer, i)).unwrap());
            },
            |queue, random, items| match random.below(3) {
                0 => queue.pop_batch(items, 1 + random.below(50)).is_ok(),
                1 => queue.try_pop_batch(items, 5) != Err(TryPopError::Closed),
                _ => queue.pop().map(|item| items.push(item)).is_ok(),
            },
        );
    }
}

/// After a push has returned, `Empty` would be a lie until a consumer pops: there is one consumer, and it knows.
pub(crate) fn a_push_that_returned_is_found<C: Case>() {
    /// A queue without a bound would grow while the thread that pops is stopped.
    const MOST: u64 = 1_000;
    let queue = queue::<C, u64>(64);
    let (pushed, popped, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    // What has been popped was pushed, though that may not have been counted yet.
                    if pushed.load(Relaxed) > popped.load(Relaxed) + MOST {
                        thread::yield_now();
                    } else if queue.try_push(0).is_ok() {
                        pushed.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        let _stops = Stops(&stop);
        for _ in 0..30_000 {
            let popped_before = popped.load(Relaxed);
            let inside = pushed.load(SeqCst) > popped_before;
            match queue.try_pop() {
                Ok(_) => popped.store(popped_before + 1, Relaxed),
                Err(error) => assert!(!inside || error == TryPopError::Busy, "an item is inside"),
            }
        }
    });
}

/// The same with `Full`: there is one producer.
pub(crate) fn a_pop_that_returned_leaves_room<C: Case>() {
    if !C::BOUNDED {
        return;
    }
    let queue = queue::<C, u64>(8);
    let (popped, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    if queue.try_pop().is_ok() {
                        popped.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        let mut pushed = 0;
        let _stops = Stops(&stop);
        for _ in 0..30_000 {
            let room = pushed - popped.load(SeqCst) < 8;
            match queue.try_push(0) {
                Ok(()) => pushed += 1,
                Err(error) => assert!(!room || error == TryPushError::Busy(0), "there is room"),
            }
        }
    });
}

pub(crate) fn len_is_never_more_than_the_capacity<C: Case>() {
    let bound = 5;
    let queue = queue::<C, u64>(bound);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    // An unbounded queue is kept within the bound by the thread that pushes.
                    if queue.len() < 3 {
                        queue.try_push(0).ok();
                    }
                }
            });
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    queue.try_pop().ok();
                }
            });
        }
        let _stops = Stops(&stop);
        for _ in 0..20_000 {
            let len = queue.len();
            assert!(len <= bound, "{len} items");
        }
    });
    let left = queue.len();
    let mut items = Vec::new();
    queue.try_pop_batch(&mut items, 100).ok();
    until("what is left was counted", || items.len() == left);
}
