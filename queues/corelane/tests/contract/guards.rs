//! Items written and read in place.

use crate::case::{Case, Ledger, queue_from};
use corelane::error::{Closed, TryPopError};

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
