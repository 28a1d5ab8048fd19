//! Closing: each item is popped or comes back, and no thread waits for ever.

use crate::case::{Case, NAP, Random, queue};
use corelane::error::{Closed, TryPopError, TryPushError};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

pub(crate) fn what_is_inside_is_drained<C: Case>() {
    let queue = queue::<C, u64>(8);
    queue.push_batch(&mut (0..5).collect()).unwrap();
    assert!(!queue.is_closed());
    queue.close();
    assert!(queue.is_closed());
    assert_eq!(queue.len(), 5);
    assert_eq!(queue.pop(), Ok(0));
    assert_eq!(queue.try_pop(), Ok(1));
    let mut items = Vec::new();
    assert_eq!(queue.pop_batch(&mut items, 9), Ok(3));
    assert_eq!(queue.try_pop(), Err(TryPopError::Closed));
    assert_eq!(queue.pop_batch(&mut items, 9), Err(Closed(())));
    assert_eq!(queue.try_pop_batch(&mut items, 9), Err(TryPopError::Closed));
    assert_eq!(items, [2, 3, 4]);
}

/// Closed goes before Full.
pub(crate) fn pushes_come_back<C: Case>() {
    for inside in [0, 1, 2] {
        let queue = queue::<C, u64>(2);
        (0..inside).for_each(|item| queue.try_push(item).unwrap());
        queue.close();
        assert_eq!(queue.try_push(9), Err(TryPushError::Closed(9)));
        assert_eq!(queue.push(9), Err(Closed(9)));
        assert_eq!(queue.try_push_batch(&mut vec![9]), Err(TryPushError::Closed(())));
        assert_eq!(queue.len() as u64, inside);
    }
}

pub(crate) fn parked_pops_are_woken<C: Case>() {
    let queue = queue::<C, u64>(2);
    thread::scope(|scope| {
        let poppers = [(); 3].map(|()| scope.spawn(|| queue.pop()));
        let batch = scope.spawn(|| queue.pop_batch(&mut Vec::new(), 5));
        thread::sleep(NAP);
        queue.close();
        assert_eq!(poppers.map(|popper| popper.join().unwrap()), [Err(Closed(())); 3]);
        assert_eq!(batch.join().unwrap(), Err(Closed(())));
    });
}

pub(crate) fn parked_pushes_are_woken<C: Case>() {
    if !C::BOUNDED {
        return;
    }
    let queue = queue::<C, u64>(2);
    queue.push_batch(&mut vec![0, 1]).unwrap();
    thread::scope(|scope| {
        let pushers = [7, 8, 9].map(|item| {
            scope.spawn({
                let queue = &queue;
                move || queue.push(item)
            })
        });
        let batch = scope.spawn(|| {
            let mut batch = vec![5, 6];
            (queue.push_batch(&mut batch), batch)
        });
        thread::sleep(NAP);
        queue.close();
        assert_eq!(pushers.map(|pusher| pusher.join().unwrap()), [Err(Closed(7)), Err(Closed(8)), Err(Closed(9))]);
        assert_eq!(batch.join().unwrap(), (Err(Closed(())), vec![5, 6]));
    });
    assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Ok(0), Ok(1), Err(Closed(()))));
}

/// What was accepted and what was popped, against the close.
fn race<C: Case>(push: impl Fn(&crate::case::Under<C, u64>, u64) -> u64 + Sync) {
    for round in 0..60 {
        let queue = queue::<C, u64>([1, 4, 64][round % 3]);
        let accepted = AtomicU64::new(0);
        let popped = thread::scope(|scope| {
            for seed in 0..2 {
                let (queue, accepted, push) = (&queue, &accepted, &push);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    loop {
                        let pushed = push(queue, 1 + random.below(5) as u64);
                        accepted.fetch_add(pushed, SeqCst);
                        if pushed == 0 {
                            break;
                        }
                    }
                    assert!(queue.is_closed());
                    assert!(queue.try_push(1).is_err());
                });
            }
            let poppers = [(); 2].map(|()| {
                scope.spawn(|| {
                    let mut popped = 0;
                    while queue.pop().is_ok() {
                        popped += 1;
                    }
                    popped
                })
            });
            (0..round % 6).for_each(|_| thread::yield_now());
            queue.close();
            poppers.into_iter().map(|popper| popper.join().unwrap()).sum::<u64>()
        });
        // A consumer has the end only when nothing is inside and nothing can come.
        assert_eq!((popped, queue.len()), (accepted.into_inner(), 0));
        assert_eq!(queue.try_pop(), Err(TryPopError::Closed));
    }
}

pub(crate) fn a_close_races_pushes_and_pops<C: Case>() {
    race::<C>(|queue, _| u64::from(queue.push(1).is_ok()));
}

pub(crate) fn a_close_races_batches<C: Case>() {
    race::<C>(|queue, count| {
        let mut batch = vec![1; count as usize];
        queue.push_batch(&mut batch).ok();
        count - batch.len() as u64
    });
}

pub(crate) fn closing_twice_changes_nothing<C: Case>() {
    let queue = queue::<C, u64>(2);
    queue.push(1).unwrap();
    queue.close();
    queue.close();
    assert_eq!((queue.pop(), queue.pop()), (Ok(1), Err(Closed(()))));
    queue.close();
    assert!(queue.is_closed());
    assert_eq!(queue.push(2), Err(Closed(2)));
}
