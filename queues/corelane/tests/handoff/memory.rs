//! What stays behind: no item, and few nodes.

use crate::support::{Ledger, Mode};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

const TINY: Duration = Duration::from_nanos(1);
/// Nodes of a queue that has seen a few requests at once: the front row, and one doubling of it.
const FEW: usize = 256;

pub(crate) fn s20_many_takes_behind_a_take_that_waits(mode: Mode) {
    let queue = mode.queue();
    let mut front = queue.reserve_take();
    for _ in 0..100_000 {
        queue.take_timeout(TINY).unwrap_err();
    }
    assert!(queue.nodes() <= FEW, "{} nodes", queue.nodes());
    assert_eq!(queue.waiting_takes(), 1);
    queue.try_put(1).unwrap();
    assert_eq!(front.try_followup(), Some(Ok(1)));
}

pub(crate) fn s21_many_puts_behind_a_put_that_waits(mode: Mode) {
    let queue = mode.queue();
    let mut front = queue.reserve_put(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for item in 1..=50_000 {
                    assert_eq!(queue.put_timeout(item, TINY).unwrap_err().into_inner(), item);
                }
            });
        }
    });
    assert!(queue.nodes() <= FEW, "{} nodes", queue.nodes());
    assert_eq!(queue.waiting_puts(), 1);
    assert_eq!(queue.try_take(), Ok(0));
    assert_eq!(front.try_followup(), Some(Ok(())));
}

pub(crate) fn nodes_of_matched_requests_are_used_again(mode: Mode) {
    let queue = mode.queue();
    for item in 0..10_000 {
        let mut put = queue.reserve_put(item);
        assert_eq!(queue.try_take(), Ok(item));
        assert_eq!(put.try_followup(), Some(Ok(())));
        let mut take = queue.reserve_take();
        queue.try_put(item).unwrap();
        assert_eq!(take.try_followup(), Some(Ok(item)));
    }
    assert!(queue.nodes() <= FEW, "{} nodes", queue.nodes());
}

pub(crate) fn threads_that_come_at_once_make_no_node_too_many(mode: Mode) {
    const THREADS: usize = 2;
    for _ in 0..500 {
        let queue = mode.queue();
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    let _kept: Vec<_> = (0..FEW / 2 / THREADS).map(|item| queue.reserve_put(item)).collect();
                });
            }
        });
        assert!(queue.nodes() <= FEW, "{} nodes", queue.nodes());
    }
}

pub(crate) fn s21_cancellations_in_the_middle_of_a_thousand(mode: Mode) {
    let queue = mode.queue();
    let mut kept: Vec<_> = (0..1000).map(|i| queue.reserve_put(i)).collect();
    let nodes = queue.nodes();
    for round in 0..50 {
        // Every request but each tenth gives up, and as many come again.
        let mut index = 0;
        kept.retain_mut(|_| {
            index += 1;
            index % 10 == 0
        });
        kept.extend((kept.len()..1000).map(|_| queue.reserve_put(1000 + round)));
        assert_eq!(queue.waiting_puts(), 1000);
    }
    assert!(queue.nodes() <= 4 * nodes, "{} nodes, {nodes} with 1000 requests", queue.nodes());
    let mut items = Vec::new();
    assert_eq!(queue.try_take_batch(&mut items, usize::MAX), Ok(1000));
    assert!(kept.iter_mut().all(|ticket| ticket.try_followup() == Some(Ok(()))));
}

pub(crate) fn forgotten_tickets_drop_their_items_with_the_queue(mode: Mode) {
    let ledger = Ledger::default();
    let queue = mode.queue();
    // One that was given its item, one that waits, one that is sent away.
    let given = queue.reserve_take();
    queue.try_put(ledger.item(0)).unwrap();
    std::mem::forget(given);
    std::mem::forget(queue.reserve_put(ledger.item(1)));
    assert_eq!(ledger.alive(), 2);
    drop(queue);
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 2));

    let queue = mode.queue();
    std::mem::forget(queue.reserve_put(ledger.item(2)));
    queue.close();
    drop(queue);
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 3));

    // The first drop panics, the others take place.
    let queue = mode.queue();
    std::mem::forget(queue.reserve_put(ledger.bomb()));
    std::mem::forget(queue.reserve_put(ledger.item(3)));
    std::mem::forget(queue.reserve_put(ledger.item(4)));
    catch_unwind(AssertUnwindSafe(|| drop(queue))).unwrap_err();
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 6));
}

pub(crate) fn a_panicking_drop_leaves_the_queue_whole(mode: Mode) {
    let ledger = Ledger::default();
    let queue = mode.queue();
    // A ticket that is dropped with an item it was given, one that waits, and one whose put was sent away.
    let given = queue.reserve_take();
    queue.try_put(ledger.bomb()).unwrap();
    catch_unwind(AssertUnwindSafe(|| drop(given))).unwrap_err();
    let waits = queue.reserve_put(ledger.bomb());
    catch_unwind(AssertUnwindSafe(|| drop(waits))).unwrap_err();
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 2));
    assert_eq!((queue.waiting_puts(), queue.waiting_takes()), (0, 0));
    let mut ticket = queue.reserve_take();
    queue.try_put(ledger.item(1)).unwrap();
    drop(ticket.try_followup());
    let away = queue.reserve_put(ledger.bomb());
    queue.close();
    catch_unwind(AssertUnwindSafe(|| drop(away))).unwrap_err();
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 4));
}
