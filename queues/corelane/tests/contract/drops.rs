//! An item that is never popped is dropped exactly once.

use crate::case::{Case, Ledger, Random, STARTS, queue_from};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

const CAPACITIES: [usize; 7] = [1, 3, 7, 8, 64, 100, 300];

/// Pushes `pushed` items, pops `popped` of them, and drops the rest with the queue.
fn leave<C: Case>(capacity: usize, start: usize, popped: usize, left: usize) {
    let ledger = Ledger::new(popped + left + 1);
    let (mut tx, mut rx) = queue_from::<_, C>(capacity, start);
    for id in 0..popped {
        tx.push(ledger.item(id)).unwrap_or_else(|_| panic!("open"));
        assert_eq!(rx.pop().unwrap().id, id);
    }
    // As far as it takes them: the consumer has not said Empty.
    let mut items = (popped..popped + left).map(|id| ledger.item(id)).collect::<Vec<_>>();
    let pushed = tx.try_push_batch(&mut items).unwrap_or(0);
    drop(rx);
    drop(tx);
    ledger.assert_dropped_once(popped + pushed);
    drop(items);
    ledger.assert_dropped_once(popped + left);
}

pub(crate) fn what_is_left_inside_is_dropped_once<C: Case>() {
    let mut random = Random::new(1);
    for capacity in CAPACITIES {
        for _ in 0..40 {
            leave::<C>(capacity, 0, random.below(2 * capacity + 9), random.below(capacity + 1));
        }
        for popped in 0..30 {
            leave::<C>(capacity, 0, popped, 0);
            leave::<C>(capacity, 0, popped, capacity);
        }
    }
}

pub(crate) fn what_is_left_inside_is_dropped_once_across_the_wrap_around<C: Case>() {
    let mut random = Random::new(2);
    for capacity in CAPACITIES {
        for _ in 0..60 {
            let start = usize::MAX - random.below(20);
            leave::<C>(capacity, start, random.below(2 * capacity + 9), random.below(capacity + 1));
        }
    }
}

pub(crate) fn a_panicking_drop_leaves_no_other_item_behind<C: Case>() {
    for explosive in [0, 1, 6, 7, 30, 59] {
        let ledger = Ledger::new(60);
        let (mut tx, rx) = queue_from::<_, C>(100, usize::MAX - 3);
        let items = (0..60).map(|id| if id == explosive { ledger.explosive(id) } else { ledger.item(id) });
        assert_eq!(tx.try_push_batch(&mut { items }.collect()).unwrap_or(0), 60);
        let tx = (explosive % 2 == 0).then_some(tx);
        catch_unwind(AssertUnwindSafe(|| drop(rx))).unwrap_err();
        ledger.assert_dropped_once(60);
        assert!(tx.is_none_or(|mut tx| tx.is_closed() && tx.try_push(ledger.item(0)).is_err()));
    }
}

/// A reply's sender inside goes with the consumer that would have answered, and so does one that is pushed beside.
pub(crate) fn what_is_inside_goes_with_the_consumer<C: Case>() {
    for start in STARTS {
        for closed in [false, true] {
            let ledger = Ledger::new(70);
            let (mut tx, mut rx) = queue_from::<_, C>(100, start);
            assert_eq!(tx.try_push_batch(&mut (0..60).map(|id| ledger.item(id)).collect()).unwrap_or(0), 60);
            drop(rx.try_pop());
            if closed {
                rx.close();
            }
            drop(rx);
            ledger.assert_dropped_once(60);
            assert_eq!(tx.push(ledger.item(60)).map_err(|refused| refused.0.id), Err(60));
            ledger.assert_dropped_once(61);
        }
    }
    for _ in 0..if cfg!(miri) { 5 } else { 200 } {
        let ledger = Ledger::new(100);
        let (mut tx, rx) = queue_from::<_, C>(100, 0);
        thread::scope(|scope| {
            scope.spawn(|| drop(rx));
            (0..100).for_each(|id| drop(tx.try_push(ledger.item(id))));
        });
        // Without membarrier, as under Miri, an item that is pushed beside may stay until the producer goes.
        if cfg!(miri) {
            drop(tx);
        }
        ledger.assert_dropped_once(100);
    }
}

pub(crate) fn a_popped_item_is_the_callers<C: Case>() {
    let ledger = Ledger::new(5);
    let (mut tx, mut rx) = queue_from::<_, C>(5, 0);
    assert_eq!(tx.try_push_batch(&mut (0..5).map(|id| ledger.item(id)).collect()).unwrap_or(0), 5);
    let kept = [rx.try_pop().unwrap(), rx.try_peek().unwrap().pop()];
    let mut more = Vec::new();
    rx.try_pop_batch(&mut more, 2).unwrap_or(0);
    drop((tx, rx));
    assert_eq!((0..5).map(|id| ledger.drops(id)).collect::<Vec<_>>(), [0, 0, 0, 0, 1]);
    assert!(kept.iter().chain(&more).map(|item| item.id).eq(0..4));
    drop((kept, more));
    ledger.assert_dropped_once(5);
}
