//! The transfer queue: Q1 to Q12.

use crate::support::{LONG, Ledger, T, timed, until};
use crate::watchdog::guard;
use corelane::error::{Closed, Drained, OfferError, OfferTimeoutError, PopError, PutError, TakeError};
use corelane::handoff::{CancelToken, Patience, TransferQueue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

fn drained<V: Send>(queue: &TransferQueue<V>) -> Vec<V> {
    let mut items = Vec::new();
    queue.drain_into(&mut items, usize::MAX);
    items
}

#[test]
fn q1_puts_never_wait_and_come_out_in_order() {
    let queue = TransferQueue::new();
    assert!(queue.is_empty());
    for item in 0..10_000 {
        queue.put(item).unwrap();
    }
    assert_eq!(queue.len(), 10_000);
    assert!(!queue.is_empty() && !queue.has_waiting_consumer());
    for item in 0..10_000 {
        assert_eq!(queue.poll(), Ok(item));
    }
    assert_eq!((queue.len(), queue.poll()), (0, Err(PopError::Empty)));
}

#[test]
fn q2_a_transfer_waits_until_it_is_received() {
    guard(|| {
        let queue = TransferQueue::new();
        thread::scope(|scope| {
            for by_take in [false, true] {
                let transfer = scope.spawn(|| queue.transfer(7));
                until("it is inside", || queue.len() == 1);
                thread::sleep(T);
                assert!(!transfer.is_finished());
                assert_eq!(if by_take { queue.take().ok() } else { queue.poll().ok() }, Some(7));
                assert_eq!(transfer.join().unwrap(), Ok(()));
                assert!(queue.is_empty());
            }
        });
    });
}

#[test]
fn q3_transfers_are_served_in_order_and_one_that_leaves_leaves_alone() {
    guard(|| {
        let queue = TransferQueue::new();
        let token = CancelToken::new();
        thread::scope(|scope| {
            let (queue, token) = (&queue, &token);
            let transfers: Vec<_> = (0..5)
                .map(|item| {
                    let transfer = scope.spawn(move || {
                        let patience = if item == 2 { Patience::new().cancel(token) } else { Patience::new() };
                        queue.transfer_with(item, &patience)
                    });
                    until("one more is inside", || queue.len() == item + 1);
                    transfer
                })
                .collect();
            token.cancel();
            until("one has left", || queue.len() == 4);
            assert_eq!(drained(queue), [0, 1, 3, 4]);
            for (item, transfer) in transfers.into_iter().enumerate() {
                let expected = if item == 2 { Err(PutError::Cancelled(2)) } else { Ok(()) };
                assert_eq!(transfer.join().unwrap(), expected);
            }
        });
    });
}

#[test]
fn q4_a_put_stands_behind_a_transfer() {
    guard(|| {
        let queue = TransferQueue::new();
        thread::scope(|scope| {
            scope.spawn(|| queue.transfer(1).unwrap());
            until("it is inside", || queue.len() == 1);
            queue.put(2).unwrap();
            assert_eq!((queue.poll(), queue.poll()), (Ok(1), Ok(2)));
        });
    });
}

#[test]
fn q5_try_transfer_without_a_consumer_leaves_nothing() {
    let queue = TransferQueue::new();
    assert_eq!(queue.try_transfer(1), Err(OfferError::NoTaker(1)));
    assert!(queue.is_empty());
    queue.put(2).unwrap();
    assert_eq!(queue.try_transfer(3), Err(OfferError::NoTaker(3)));
    assert_eq!(drained(&queue), [2]);
}

#[test]
fn q6_try_transfer_hands_over_to_a_consumer_that_waits() {
    guard(|| {
        let queue = TransferQueue::new();
        thread::scope(|scope| {
            type Way = fn(&TransferQueue<u32>) -> Option<u32>;
            let ways: [Way; 2] = [|queue| queue.poll_timeout(LONG).ok(), |queue| queue.take().ok()];
            for take in ways {
                let queue = &queue;
                let consumer = scope.spawn(move || take(queue));
                until("a consumer waits", || queue.has_waiting_consumer());
                assert_eq!(queue.try_transfer(5), Ok(()));
                assert_eq!(consumer.join().unwrap(), Some(5));
                assert!(queue.is_empty());
            }
        });
    });
}

#[test]
fn q7_a_timed_transfer_ends_by_cancel_or_time_and_leaves_nothing() {
    guard(|| {
        let queue = TransferQueue::new();
        let token = CancelToken::new();
        thread::scope(|scope| {
            let transfer = scope.spawn(|| queue.transfer_with(1, &Patience::new().timeout(LONG).cancel(&token)));
            until("it is inside", || queue.len() == 1);
            token.cancel();
            assert_eq!(transfer.join().unwrap(), Err(PutError::Cancelled(1)));
        });
        let patience = Patience::new().timeout(LONG).cancel(&token);
        assert_eq!(queue.transfer_with(2, &patience), Err(PutError::Cancelled(2)));
        queue.put(10).unwrap();
        let (result, took) = timed(|| queue.transfer_timeout(3, T));
        assert_eq!(result, Err(OfferTimeoutError::Timeout(3)));
        assert!(took >= T && took < LONG);
        assert_eq!(drained(&queue), [10]);
    });
}

#[test]
fn q8_a_timed_transfer_waits_behind_earlier_items() {
    guard(|| {
        let queue = TransferQueue::new();
        queue.put(1).unwrap();
        thread::scope(|scope| {
            let transfer = scope.spawn(|| queue.transfer_timeout(2, LONG));
            until("it is inside", || queue.len() == 2);
            assert_eq!(queue.take(), Ok(1));
            thread::sleep(T);
            assert!(!transfer.is_finished());
            assert_eq!(queue.take(), Ok(2));
            assert_eq!(transfer.join().unwrap(), Ok(()));
        });
    });
}

#[test]
fn q9_consumers_that_wait_are_counted() {
    guard(|| {
        let queue = TransferQueue::new();
        assert_eq!((queue.has_waiting_consumer(), queue.waiting_consumer_count()), (false, 0));
        thread::scope(|scope| {
            let consumers = [(); 3].map(|()| scope.spawn(|| queue.poll_timeout(LONG)));
            until("all wait", || queue.waiting_consumer_count() == 3);
            assert!(queue.has_waiting_consumer());
            for left in (0..3).rev() {
                queue.put(1).unwrap();
                assert_eq!(queue.waiting_consumer_count(), left);
            }
            assert!(!queue.has_waiting_consumer() && queue.is_empty());
            consumers.into_iter().for_each(|consumer| assert_eq!(consumer.join().unwrap(), Ok(1)));
        });
    });
}

#[test]
fn q10_only_an_empty_queue_reports_a_cancellation() {
    let queue = TransferQueue::new();
    queue.put(1).unwrap();
    let token = CancelToken::new();
    token.cancel();
    for patience in [Patience::new().timeout(LONG), Patience::new().deadline(Instant::now())] {
        let patience = patience.cancel(&token);
        assert_eq!(queue.take_with(&patience), Ok(1));
        assert_eq!(queue.take_with(&patience), Err(TakeError::Cancelled));
        queue.put(1).unwrap();
    }
}

#[test]
fn q11_drains_take_all_in_order_beside_puts() {
    guard(|| {
        let queue = TransferQueue::new();
        const ITEMS: usize = 20_000;
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for producer in 0..2 {
                let (queue, done) = (&queue, &done);
                scope.spawn(move || {
                    (0..ITEMS).for_each(|item| queue.put((producer, item)).unwrap());
                    done.fetch_add(1, Relaxed);
                });
            }
            let mut next = [0; 2];
            while next != [ITEMS; 2] {
                let mut items = Vec::new();
                let count = queue.drain_into(&mut items, 64);
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
        queue.put(round).unwrap();
        assert_eq!(queue.reserve_transfer(1000).abort(), Some(1000));
        queue.put(round + 500).unwrap();
        assert_eq!(queue.reserve_transfer(1000).abort(), Some(1000));
        assert_eq!(drained(&queue), [round, round + 500]);
    }
}

#[test]
fn no_poll_misses_an_item_that_was_put() {
    guard(|| {
        // Anew each time: what goes wrong between the first nodes need not go wrong later.
        for round in 0..40 {
            let queue = TransferQueue::new();
            thread::scope(|scope| {
                for _ in 0..2 + round % 2 {
                    scope.spawn(|| {
                        for item in 0..5_000 {
                            queue.put(item).unwrap();
                            queue.poll().expect("each thread puts before it polls");
                        }
                    });
                }
            });
            assert!(queue.is_empty());
        }
    });
}

#[test]
fn a_close_keeps_what_was_put_and_sends_transfers_away() {
    guard(|| {
        let queue = TransferQueue::new();
        thread::scope(|scope| {
            let (queue, mut transfers) = (&queue, Vec::new());
            for i in 0..10 {
                if i % 2 == 0 {
                    queue.put(i).unwrap();
                } else {
                    transfers.push((i, scope.spawn(move || queue.transfer(i))));
                }
                until("one more is inside", || queue.len() == i + 1);
            }
            queue.close();
            queue.close();
            assert_eq!(queue.put(99), Err(Closed(99)));
            assert_eq!(queue.transfer(99), Err(Closed(99)));
            for (item, transfer) in transfers {
                assert_eq!(transfer.join().unwrap(), Err(Closed(item)));
            }
            assert_eq!(queue.len(), 5);
            for item in [0, 2, 4, 6, 8] {
                assert_eq!(queue.take(), Ok(item));
            }
            assert_eq!((queue.take(), queue.poll()), (Err(Drained), Err(PopError::Closed)));
        });
    });
}

#[test]
fn a_close_wakes_consumers() {
    guard(|| {
        let queue = TransferQueue::<u32>::new();
        thread::scope(|scope| {
            let consumers = [(); 4].map(|()| scope.spawn(|| queue.take()));
            until("all wait", || queue.waiting_consumer_count() == 4);
            queue.close();
            consumers.into_iter().for_each(|consumer| assert_eq!(consumer.join().unwrap(), Err(Drained)));
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
                                true => queue.transfer(ledger.item(value)).is_ok(),
                                false => queue.put(ledger.item(value)).is_ok(),
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
    (0..300).for_each(|value| queue.put(ledger.item(value)).unwrap());
    (0..100).for_each(|value| assert_eq!(*queue.poll().unwrap().value, value));
    queue.put(ledger.bomb()).unwrap();
    queue.put(ledger.item(0)).unwrap();
    assert_eq!(ledger.alive(), 202);
    catch_unwind(AssertUnwindSafe(|| drop(queue))).unwrap_err();
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 302));
}

#[test]
fn memory_is_that_of_the_most_items_at_once() {
    let queue = TransferQueue::new();
    for _ in 0..50 {
        (0..1000).for_each(|item| queue.put(item).unwrap());
        (0..1000).for_each(|item| assert_eq!(queue.poll(), Ok(item)));
    }
    assert!(queue.nodes() <= 2048, "{} nodes", queue.nodes());
    // Transfers that give up behind an item.
    queue.put(0).unwrap();
    for item in 0..100_000 {
        queue.transfer_timeout(item, Duration::ZERO).unwrap_err();
    }
    assert!(queue.nodes() <= 2048, "{} nodes", queue.nodes());
    assert_eq!(queue.len(), 1);
}
