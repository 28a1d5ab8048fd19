//! The transfer queue: Q1 to Q12.

use crate::support::{LONG, Ledger, T, timed, until};
use crate::watchdog::guard;
use corelane::error::{Closed, PushTimeoutError, TryPopError};
use corelane::handoff::{CancelToken, TransferQueue, WaitLimit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

fn drained<V: Send>(queue: &TransferQueue<V>) -> Vec<V> {
    let mut items = Vec::new();
    let _ = queue.try_take_batch(&mut items, usize::MAX);
    items
}

#[test]
fn q2_a_put_waits_until_it_is_received() {
    guard(|| {
        let queue = TransferQueue::new();
        thread::scope(|scope| {
            for by_take in [false, true] {
                let put = scope.spawn(|| queue.put(7));
                until("it is inside", || queue.len() == 1);
                thread::sleep(T);
                assert!(!put.is_finished());
                assert_eq!(if by_take { queue.take().ok() } else { queue.try_take().ok() }, Some(7));
                assert_eq!(put.join().unwrap(), Ok(()));
                assert!(queue.is_empty());
            }
        });
    });
}

#[test]
fn q7_a_timed_put_ends_by_cancel_or_time_and_leaves_nothing() {
    guard(|| {
        let queue = TransferQueue::new();
        let token = CancelToken::new();
        thread::scope(|scope| {
            let put = scope.spawn(|| queue.put_with(1, &WaitLimit::new().timeout(LONG).cancel(&token)));
            until("it is inside", || queue.len() == 1);
            token.cancel();
            assert_eq!(put.join().unwrap(), Err(PushTimeoutError::Cancelled(1)));
        });
        let limit = WaitLimit::new().timeout(LONG).cancel(&token);
        assert_eq!(queue.put_with(2, &limit), Err(PushTimeoutError::Cancelled(2)));
        queue.push(10).unwrap();
        let (result, took) = timed(|| queue.put_timeout(3, T));
        assert_eq!(result, Err(PushTimeoutError::Timeout(3)));
        assert!(took >= T && took < LONG);
        assert_eq!(drained(&queue), [10]);
    });
}

/// Q12 asks for removal and iteration, which do not exist here; what is left of it is that a withdrawn last item is no
/// obstacle for those that follow.
#[test]
fn q12_a_withdrawn_last_item_is_no_obstacle() {
    let queue = TransferQueue::new();
    for round in 0..100 {
        queue.push(round).unwrap();
        assert_eq!(queue.reserve_put(1000).abort(), Some(1000));
        queue.push(round + 500).unwrap();
        assert_eq!(queue.reserve_put(1000).abort(), Some(1000));
        assert_eq!(drained(&queue), [round, round + 500]);
    }
}

#[test]
fn a_close_keeps_what_was_pushed_and_sends_puts_away() {
    guard(|| {
        let queue = TransferQueue::new();
        thread::scope(|scope| {
            let (queue, mut puts) = (&queue, Vec::new());
            for i in 0..10 {
                if i % 2 == 0 {
                    queue.push(i).unwrap();
                } else {
                    puts.push((i, scope.spawn(move || queue.put(i))));
                }
                until("one more is inside", || queue.len() == i + 1);
            }
            queue.close();
            queue.close();
            assert_eq!(queue.push(99), Err(Closed(99)));
            assert_eq!(queue.put(99), Err(Closed(99)));
            for (item, put) in puts {
                assert_eq!(put.join().unwrap(), Err(Closed(item)));
            }
            assert_eq!(queue.len(), 5);
            for item in [0, 2, 4, 6, 8] {
                assert_eq!(queue.take(), Ok(item));
            }
            assert_eq!((queue.take(), queue.try_take()), (Err(Closed(())), Err(TryPopError::Closed)));
            assert_eq!(queue.try_take_batch(&mut Vec::new(), 1), Err(TryPopError::Closed));
        });
    });
}

#[test]
fn what_nobody_takes_is_dropped_once() {
    let ledger = Ledger::default();
    let queue = TransferQueue::new();
    (0..300).for_each(|value| queue.push(ledger.item(value)).unwrap());
    (0..100).for_each(|value| assert_eq!(*queue.try_take().unwrap().value, value));
    queue.push(ledger.bomb()).unwrap();
    queue.push(ledger.item(0)).unwrap();
    assert_eq!(ledger.alive(), 202);
    catch_unwind(AssertUnwindSafe(|| drop(queue))).unwrap_err();
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 302));
}

#[test]
fn memory_is_that_of_the_most_items_at_once() {
    let queue = TransferQueue::new();
    for _ in 0..50 {
        (0..1000).for_each(|item| queue.push(item).unwrap());
        (0..1000).for_each(|item| assert_eq!(queue.try_take(), Ok(item)));
    }
    assert!(queue.nodes() <= 2048, "{} nodes", queue.nodes());
    // Puts that give up behind an item.
    queue.push(0).unwrap();
    for item in 0..100_000 {
        queue.put_timeout(item, Duration::ZERO).unwrap_err();
    }
    assert!(queue.nodes() <= 2048, "{} nodes", queue.nodes());
    assert_eq!(queue.len(), 1);
}
