//! Each item is dropped once.

use crate::case::{CAPACITIES, Ledger, Random, Rx, Shared, Tracked, Tx, channel, channel_with};
use corelane::wait::Adaptive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// In the order of the handles' drops, too.
pub(crate) fn what_is_left_inside_is_dropped_once<C: Shared>() {
    let mut random = Random::new(1);
    for (capacity, _) in CAPACITIES.into_iter().flat_map(|capacity| (0..20).map(move |round| (capacity, round))) {
        let (popped, left) = (random.below(2 * capacity + 9), random.below(capacity + 1));
        let ledger = Ledger::new(popped + left);
        let (mut tx, mut rx) = channel_with::<C, Tracked, _>(capacity, usize::MAX - random.below(20), Adaptive);
        for id in 0..popped {
            tx.push(ledger.item(id)).ok().unwrap();
            assert_eq!(rx.try_pop().unwrap().id, id);
        }
        // A receiver that finds a lane empty tells its sender of all the room.
        assert!(rx.try_pop().is_err());
        tx.push_batch(&mut (popped..popped + left).map(|id| ledger.item(id)).collect()).ok().unwrap();
        if random.below(2) == 0 {
            tx.close();
        }
        let (other_tx, other_rx) = (tx.clone(), rx.clone());
        if random.below(2) == 0 {
            drop((rx, tx));
            ledger.assert_dropped_once(popped);
            drop(other_rx);
            ledger.assert_dropped_once(popped + left);
            drop(other_tx);
        } else {
            drop((tx, other_tx, rx));
            ledger.assert_dropped_once(popped);
            drop(other_rx);
        }
        ledger.assert_dropped_once(popped + left);
    }
}

pub(crate) fn what_is_inside_goes_with_the_last_receiver<C: Shared>() {
    for explosive in [None, Some(0), Some(1), Some(19)] {
        let ledger = Ledger::new(22);
        let (mut tx, rx) = channel_with::<C, Tracked, _>(20, usize::MAX - 30, Adaptive);
        let mut other = tx.clone();
        let item = |id| if Some(id) == explosive { ledger.explosive(id) } else { ledger.item(id) };
        tx.push_batch(&mut (0..10).map(item).collect()).ok().unwrap();
        other.push_batch(&mut (10..20).map(item).collect()).ok().unwrap();
        drop(rx.clone());
        ledger.assert_dropped_once(0);
        assert_eq!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err(), explosive.is_some());
        ledger.assert_dropped_once(20);
        assert!(tx.is_empty() && tx.push(ledger.item(20)).is_err());
        assert!(tx.clone().push(ledger.item(21)).is_err());
        drop((tx, other));
        ledger.assert_dropped_once(22);
    }
}

/// A push that meets the drop of the last receiver is dropped with the queue's items, not with its last sender.
pub(crate) fn a_push_beside_the_last_receiver_leaves_nothing<C: Shared>() {
    for _ in 0..if cfg!(miri) { 5 } else { 200 } {
        let ledger = Ledger::new(100);
        let (mut tx, rx) = channel::<C, Tracked>(100);
        let mut other = tx.clone();
        thread::scope(|scope| {
            scope.spawn(|| drop(rx));
            scope.spawn(|| (0..50).for_each(|id| drop(other.try_push(ledger.item(id)))));
            (50..100).for_each(|id| drop(tx.push(ledger.item(id))));
        });
        // Without membarrier, as under Miri, what a push leaves beside the last receiver's look waits for a sender.
        if cfg!(not(miri)) {
            ledger.assert_dropped_once(100);
        }
        drop((tx, other));
        ledger.assert_dropped_once(100);
    }
}

pub(crate) fn refused_items_are_the_callers<C: Shared>() {
    let ledger = Ledger::new(5);
    let (mut tx, mut rx) = channel::<C, Tracked>(1);
    let mut batch = vec![ledger.item(0)];
    if C::BOUNDED {
        tx.push(ledger.item(1)).ok().unwrap();
        tx.try_push_batch(&mut batch).unwrap_err();
        batch.push(tx.try_push(ledger.item(2)).unwrap_err().into_inner());
    } else {
        batch.extend([ledger.item(1), ledger.item(2)]);
    }
    tx.close();
    tx.push_batch(&mut batch).unwrap_err();
    batch.push(tx.push(ledger.item(3)).unwrap_err().0);
    let mut one = vec![ledger.item(4)];
    tx.try_push_batch(&mut one).unwrap_err();
    batch.append(&mut one);
    batch.extend(rx.try_pop().ok());
    ledger.assert_dropped_once(0);
    assert_eq!(batch.len(), 5);
    drop((tx, rx, batch));
    ledger.assert_dropped_once(5);
}
