//! The transfer queue: Q1 to Q12.

use crate::support::{LONG, Ledger, T, timed, until};
use crate::watchdog::guard;
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::{CancelToken, TransferQueue, WaitLimit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

fn drained<V: Send>(queue: &TransferQueue<V>) -> Vec<V> {
    let mut items = Vec::new();
    let _ = queue.try_take_batch(&mut items, usize::MAX);
    items
}

#[test]
fn q1_pushes_never_wait_and_come_out_in_order() {
    let queue = TransferQueue::new();
    assert!(queue.is_empty());
    for item in 0..10_000 {
        queue.push(item).unwrap();
    }
    assert_eq!(queue.len(), 10_000);
    assert!(!queue.is_empty() && queue.waiting_takes() == 0);
    for item in 0..10_000 {
        assert_eq!(queue.try_take(), Ok(item));
    }
    assert_eq!((queue.len(), queue.try_take()), (0, Err(TryPopError::Empty)));
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
fn q3_puts_are_served_in_order_and_one_that_leaves_leaves_alone() {
    guard(|| {
        let queue = TransferQueue::new();
        let token = CancelToken::new();
        thread::scope(|scope| {
            let (queue, token) = (&queue, &token);
            let puts: Vec<_> = (0..5)
                .map(|item| {
                    let put = scope.spawn(move || {
                        let limit = if item == 2 { WaitLimit::new().cancel(token) } else { WaitLimit::new() };
                        queue.put_with(item, &limit)
                    });
                    until("one more is inside", || queue.len() == item + 1);
                    put
                })
                .collect();
            token.cancel();
            until("one has left", || queue.len() == 4);
            assert_eq!(drained(queue), [0, 1, 3, 4]);
            for (item, put) in puts.into_iter().enumerate() {
                let expected = if item == 2 { Err(PushTimeoutError::Cancelled(2)) } else { Ok(()) };
                assert_eq!(put.join().unwrap(), expected);
            }
        });
    });
}

#[test]
fn q4_a_push_stands_behind_a_put() {
    guard(|| {
        let queue = TransferQueue::new();
        thread::scope(|scope| {
            scope.spawn(|| queue.put(1).unwrap());
            until("it is inside", || queue.len() == 1);
            queue.push(2).unwrap();
            assert_eq!((queue.try_take(), queue.try_take()), (Ok(1), Ok(2)));
        });
    });
}

#[test]
fn q5_a_try_put_without_a_consumer_leaves_nothing() {
    let queue = TransferQueue::new();
    assert_eq!(queue.try_put(1), Err(TryPushError::Full(1)));
    assert!(queue.is_empty());
    queue.push(2).unwrap();
    assert_eq!(queue.try_put(3), Err(TryPushError::Full(3)));
    assert_eq!(drained(&queue), [2]);
}

#[test]
fn q6_a_try_put_hands_over_to_a_consumer_that_waits() {
    guard(|| {
        let queue = TransferQueue::new();
        thread::scope(|scope| {
            type Way = fn(&TransferQueue<u32>) -> Option<u32>;
            let ways: [Way; 2] = [|queue| queue.take_timeout(LONG).ok(), |queue| queue.take().ok()];
            for take in ways {
                let queue = &queue;
                let consumer = scope.spawn(move || take(queue));
                until("a consumer waits", || queue.waiting_takes() > 0);
                assert_eq!(queue.try_put(5), Ok(()));
                assert_eq!(consumer.join().unwrap(), Some(5));
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

#[test]
fn q8_a_timed_put_waits_behind_earlier_items() {
    guard(|| {
        let queue = TransferQueue::new();
        queue.push(1).unwrap();
        thread::scope(|scope| {
            let put = scope.spawn(|| queue.put_timeout(2, LONG));
            until("it is inside", || queue.len() == 2);
            assert_eq!(queue.take(), Ok(1));
            thread::sleep(T);
            assert!(!put.is_finished());
            assert_eq!(queue.take(), Ok(2));
            assert_eq!(put.join().unwrap(), Ok(()));
        });
    });
}

#[test]
fn q9_consumers_that_wait_are_counted() {
    guard(|| {
        let queue = TransferQueue::new();
        assert_eq!(queue.waiting_takes(), 0);
        thread::scope(|scope| {
            let consumers = [(); 3].map(|()| scope.spawn(|| queue.take_timeout(LONG)));
            until("all wait", || queue.waiting_takes() == 3);
            for left in (0..3).rev() {
                queue.push(1).unwrap();
                assert_eq!(queue.waiting_takes(), left);
            }
            assert!(queue.waiting_takes() == 0 && queue.is_empty());
            consumers.into_iter().for_each(|consumer| assert_eq!(consumer.join().unwrap(), Ok(1)));
        });
    });
}

#[test]
fn q10_only_an_empty_queue_reports_a_cancellation() {
    let queue = TransferQueue::new();
    queue.push(1).unwrap();
    let token = CancelToken::new();
    token.cancel();
    for limit in [WaitLimit::new().timeout(LONG), WaitLimit::new().deadline(Instant::now())] {
        let limit = limit.cancel(&token);
        assert_eq!(queue.take_with(&limit), Ok(1));
        assert_eq!(queue.take_with(&limit), Err(PopTimeoutError::Cancelled));
        queue.push(1).unwrap();
    }
}

#[test]
fn q11_batches_take_all_in_order_beside_pushes() {
    guard(|| {
        let queue = TransferQueue::new();
        const ITEMS: usize = 20_000;
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for producer in 0..2 {
                let (queue, done) = (&queue, &done);
                scope.spawn(move || {
                    (0..ITEMS).for_each(|item| queue.push((producer, item)).unwrap());
                    done.fetch_add(1, Relaxed);
                });
            }
            let mut next = [0; 2];
            while next != [ITEMS; 2] {
                let mut items = Vec::new();
                let count = queue.try_take_batch(&mut items, 64).unwrap_or(0);
                assert_eq!(count, items.len());
                assert!(count <= 64);
                for (producer, item) in items {
                    assert_eq!(item, next[producer]);
                    next[producer] += 1;
                }
            }
        });
        assert!(queue.is_empty());
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
fn no_try_take_misses_an_item_that_was_pushed() {
    guard(|| {
        // Anew each time: what goes wrong between the first nodes need not go wrong later.
        for round in 0..40 {
            let queue = TransferQueue::new();
            thread::scope(|scope| {
                for _ in 0..2 + round % 2 {
                    scope.spawn(|| {
                        for item in 0..5_000 {
                            queue.push(item).unwrap();
                            queue.try_take().expect("each thread pushes before it takes");
                        }
                    });
                }
            });
            assert!(queue.is_empty());
        }
    });
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
fn a_close_wakes_consumers() {
    guard(|| {
        let queue = TransferQueue::<u32>::new();
        thread::scope(|scope| {
            let consumers = [(); 4].map(|()| scope.spawn(|| queue.take()));
            until("all wait", || queue.waiting_takes() == 4);
            queue.close();
            consumers.into_iter().for_each(|consumer| assert_eq!(consumer.join().unwrap(), Err(Closed(()))));
        });
    });
}

#[test]
fn a_close_against_traffic_loses_nothing() {
    guard(|| {
        for round in 0..20 {
            let queue = TransferQueue::new();
            let ledger = Ledger::default();
            thread::scope(|scope| {
                let put = |wait: bool| {
                    let (queue, ledger) = (&queue, &ledger);
                    scope.spawn(move || {
                        (0_u64..)
                            .take_while(|&value| match wait {
                                true => queue.put(ledger.item(value)).is_ok(),
                                false => queue.push(ledger.item(value)).is_ok(),
                            })
                            .count()
                    })
                };
                let producers = [put(true), put(false), put(true)];
                let consumers = [(); 2].map(|()| scope.spawn(|| std::iter::from_fn(|| queue.take().ok()).count()));
                thread::sleep(Duration::from_micros(100 * round));
                queue.close();
                let put: usize = producers.map(|producer| producer.join().unwrap()).iter().sum();
                let taken: usize = consumers.map(|consumer| consumer.join().unwrap()).iter().sum();
                assert_eq!(put, taken);
            });
            assert_eq!(ledger.alive(), 0);
        }
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
