//! An item that is never popped is dropped exactly once.

use crate::case::{CAPACITIES, Case, Ledger, Random, Tracked, queue, queue_from};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

pub(crate) fn what_is_left_inside_is_dropped_once<C: Case>() {
    let mut random = Random::new(1);
    for capacity in CAPACITIES {
        for _ in 0..30 {
            let (popped, left) = (random.below(2 * capacity + 9), random.below(capacity + 1));
            let ledger = Ledger::new(popped + left);
            let queue = queue_from::<C, Tracked>(capacity, usize::MAX - random.below(20));
            for id in 0..popped {
                queue.try_push(ledger.item(id)).unwrap();
                assert_eq!(queue.try_pop().unwrap().id, id);
            }
            queue.push_batch(&mut (popped..popped + left).map(|id| ledger.item(id)).collect()).ok().unwrap();
            if random.below(2) == 0 {
                queue.close();
            }
            ledger.assert_dropped_once(popped);
            drop(queue);
            ledger.assert_dropped_once(popped + left);
        }
    }
}

pub(crate) fn a_panicking_drop_leaves_no_other_item_behind<C: Case>() {
    for explosive in [0, 1, 7, 19] {
        let ledger = Ledger::new(20);
        let queue = queue_from::<C, Tracked>(20, usize::MAX - 30);
        let items = (0..20).map(|id| if id == explosive { ledger.explosive(id) } else { ledger.item(id) });
        queue.push_batch(&mut items.collect()).ok().unwrap();
        catch_unwind(AssertUnwindSafe(|| drop(queue))).unwrap_err();
        ledger.assert_dropped_once(20);
    }
}

pub(crate) fn refused_items_are_the_callers<C: Case>() {
    let ledger = Ledger::new(5);
    let queue = queue::<C, Tracked>(1);
    let mut batch = vec![ledger.item(0)];
    if C::BOUNDED {
        queue.push(ledger.item(1)).ok().unwrap();
        queue.try_push_batch(&mut batch).unwrap_err();
        batch.push(queue.try_push(ledger.item(2)).unwrap_err().into_inner());
    } else {
        batch.extend([ledger.item(1), ledger.item(2)]);
    }
    queue.close();
    queue.push_batch(&mut batch).unwrap_err();
    batch.push(queue.push(ledger.item(3)).unwrap_err().0);
    let mut one = vec![ledger.item(4)];
    queue.try_push_batch(&mut one).unwrap_err();
    batch.append(&mut one);
    batch.extend(queue.try_pop().ok());
    ledger.assert_dropped_once(0);
    assert_eq!(batch.len(), 5);
    drop((queue, batch));
    ledger.assert_dropped_once(5);
}

/// Some are popped, some come back by the close, some stay inside.
pub(crate) fn each_item_is_dropped_once_between_threads<C: Case>() {
    const ITEMS: usize = 4_000;
    for _ in 0..3 {
        let ledger = Ledger::new(2 * ITEMS);
        let queue = queue::<C, Tracked>(16);
        let popped = AtomicUsize::new(0);
        thread::scope(|scope| {
            for pusher in 0..2 {
                let (queue, ledger) = (&queue, &ledger);
                scope.spawn(move || {
                    let mut random = Random::new(pusher as u64);
                    let mut next = pusher * ITEMS;
                    while next < (pusher + 1) * ITEMS {
                        let size = (1 + random.below(9)).min((pusher + 1) * ITEMS - next);
                        queue.push_batch(&mut (next..next + size).map(|id| ledger.item(id)).collect()).ok();
                        next += size;
                    }
                });
                scope.spawn(|| {
                    let mut items = Vec::new();
                    while popped.load(Relaxed) < ITEMS / 2 && queue.pop_batch(&mut items, 7).is_ok() {
                        popped.fetch_add(items.len(), Relaxed);
                        items.clear();
                    }
                    queue.close();
                });
            }
        });
        drop(queue);
        ledger.assert_dropped_once(2 * ITEMS);
    }
}
