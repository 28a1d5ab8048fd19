//! Items written and read in place.

use crate::case::{Case, Ledger, fill, queue, queue_from};
use corelane::error::{Closed, TryPopError, TryPushError};
use std::mem;

pub(crate) fn a_dropped_reservation_publishes_nothing<C: Case>() {
    let (mut tx, mut rx) = queue_from::<u64, C>(3, usize::MAX - 3);
    for item in 0..100 {
        tx.try_reserve().unwrap().as_uninit_mut().write(u64::MAX);
        assert_eq!((tx.len(), rx.len()), (0, 0));
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
        assert_eq!(tx.try_push(item), Ok(()));
        assert_eq!(rx.try_pop(), Ok(item));
    }
    drop(tx);
    assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
}

pub(crate) fn a_forgotten_reservation_publishes_nothing<C: Case>() {
    let (mut tx, mut rx) = queue_from::<u64, C>(3, usize::MAX - 3);
    for item in 0..100 {
        mem::forget(tx.try_reserve().unwrap());
        assert_eq!((tx.len(), rx.len()), (0, 0));
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
        assert_eq!(tx.try_push_slice(&[item, item + 1, item + 2, item + 3]).unwrap_or(0), 3);
        assert_eq!(rx.try_pop_slice(&mut [0; 2]).unwrap_or(0), 2);
        assert_eq!(rx.try_pop(), Ok(item + 2));
        assert!(rx.is_empty());
    }
}

pub(crate) fn a_written_reservation_is_pushed<C: Case>() {
    let ledger = Ledger::new(100);
    let (mut tx, mut rx) = queue_from::<_, C>(7, usize::MAX - 3);
    for id in 0..90 {
        assert!(tx.try_reserve().unwrap().write(ledger.item(id)).is_ok());
        assert_eq!(rx.len(), 1);
        assert_eq!(rx.pop().unwrap().id, id);
    }
    for id in 90..97 {
        assert!(tx.try_reserve().unwrap().write(ledger.item(id)).is_ok());
    }
    drop((tx, rx));
    ledger.assert_dropped_once(97);
}

pub(crate) fn a_reservation_is_filled_in_place<C: Case>() {
    let (mut tx, mut rx) = queue_from::<[u64; 8], C>(5, usize::MAX - 3);
    for n in 0..40 {
        let mut slot = tx.try_reserve().unwrap();
        slot.as_uninit_mut().write([n; 8]);
        // SAFETY: the line before.
        assert_eq!(unsafe { slot.commit() }, Ok(()));
        assert_eq!(rx.try_peek().as_deref(), Ok(&[n; 8]));
        assert_eq!(rx.try_pop(), Ok([n; 8]));
    }
}

pub(crate) fn a_full_queue_reserves_nothing<C: Case>() {
    let (mut tx, mut rx) = queue::<u64, C>(5);
    fill(&mut tx, 0);
    assert_eq!(tx.try_reserve().err(), Some(TryPushError::Full(())));
    assert_eq!(rx.pop(), Ok(0));
    assert!(tx.try_reserve().is_ok());
}

pub(crate) fn a_closed_queue_reserves_nothing<C: Case>() {
    let (mut tx, mut rx) = queue::<u64, C>(5);
    rx.close();
    assert_eq!(tx.try_reserve().err(), Some(TryPushError::Closed(())));
    let (mut tx, rx) = queue::<u64, C>(5);
    drop(rx);
    assert_eq!(tx.try_reserve().err(), Some(TryPushError::Closed(())));
    let (mut tx, mut rx) = queue::<u64, C>(5);
    fill(&mut tx, 0);
    rx.close();
    assert_eq!(tx.try_reserve().err(), Some(TryPushError::Closed(())));
    let (mut tx, _rx) = queue::<u64, C>(5);
    tx.close();
    assert_eq!(tx.try_reserve().err(), Some(TryPushError::Closed(())));
}

pub(crate) fn a_reservation_made_before_the_close_gives_the_item_back<C: Case>() {
    for inside in 0..20 {
        let ledger = Ledger::new(21);
        let (mut tx, mut rx) = queue_from::<_, C>(21, usize::MAX - 3);
        assert_eq!(tx.try_push_batch(&mut (0..inside).map(|id| ledger.item(id)).collect()).unwrap_or(0), inside);
        let slot = tx.try_reserve().unwrap();
        rx.close();
        let Err(Closed(item)) = slot.write(ledger.item(20)) else { panic!("accepted after the close") };
        assert_eq!(item.id, 20);
        drop(item);
        for id in 0..inside {
            assert_eq!(rx.try_pop().map(|item| item.id), Ok(id));
        }
        assert_eq!(rx.try_pop().err(), Some(TryPopError::Closed));
        drop((tx, rx));
        assert_eq!((0..21).map(|id| ledger.drops(id)).sum::<u32>(), inside as u32 + 1);
        assert_eq!(ledger.drops(20), 1);
    }
}

pub(crate) fn a_peeked_item_stays_unless_taken<C: Case>() {
    let (mut tx, mut rx) = queue_from::<u64, C>(70, usize::MAX - 3);
    assert!(rx.try_peek().is_err());
    let mut next = 0;
    for _ in 0..10 {
        let end = next + fill(&mut tx, next);
        while next < end {
            drop(rx.try_peek().unwrap());
            mem::forget(rx.try_peek().unwrap());
            assert_eq!(rx.len() as u64, end - next);
            assert_eq!(rx.try_peek().as_deref(), Ok(&next));
            assert_eq!(rx.try_peek().unwrap().pop(), next);
            next += 1;
        }
        assert!(rx.try_peek().is_err());
    }
    tx.close();
    assert!(rx.try_peek().is_err());
}

pub(crate) fn a_peeked_item_is_changed_in_place<C: Case>() {
    let (mut tx, mut rx) = queue_from::<String, C>(10, usize::MAX - 3);
    for _ in 0..50 {
        tx.push("one".into()).unwrap();
        tx.push("two".into()).unwrap();
        rx.try_peek().unwrap().push_str(" and a half");
        assert_eq!(rx.try_peek().unwrap().len(), 14);
        assert_eq!(rx.pop().unwrap(), "one and a half");
        assert_eq!(rx.pop().unwrap(), "two");
    }
}

/// No thread waits for an open guard, which may be kept for ever: each end goes on while the other has one open.
pub(crate) fn an_open_guard_keeps_nobody_out<C: Case>() {
    let (mut tx, mut rx) = queue_from::<u64, C>(3, usize::MAX - 3);
    for item in 0..50 {
        tx.push(2 * item).unwrap();
        let slot = tx.try_reserve().unwrap();
        assert_eq!(rx.try_pop(), Ok(2 * item));
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
        assert_eq!(rx.len(), 0);
        slot.write(2 * item + 1).unwrap();
        let first = rx.try_peek().unwrap();
        assert_eq!(tx.try_push_slice(&[0, 0, 0]).unwrap_or(0), 2);
        assert_eq!(tx.len(), 3);
        assert_eq!(first.pop(), 2 * item + 1);
        assert_eq!(rx.try_pop_batch(&mut Vec::new(), 3).unwrap_or(0), 2);
    }
    let (mut tx, mut rx) = queue::<u64, C>(3);
    tx.push(1).unwrap();
    mem::forget((tx.try_reserve().unwrap(), rx.try_peek().unwrap()));
    drop(tx);
    assert_eq!(rx.try_pop(), Ok(1));
    assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
}

pub(crate) fn a_released_item_is_dropped_once<C: Case>() {
    let ledger = Ledger::new(10);
    let (mut tx, mut rx) = queue_from::<_, C>(10, usize::MAX - 3);
    assert_eq!(tx.try_push_batch(&mut (0..10).map(|id| ledger.item(id)).collect()).unwrap_or(0), 10);
    for id in 0..6 {
        rx.try_peek().unwrap().release();
        ledger.assert_dropped_once(id + 1);
    }
    assert_eq!(rx.len(), 4);
    drop((tx, rx));
    ledger.assert_dropped_once(10);
}
