//! Many items in place at once, for the designs that keep them side by side.

use crate::case::{Carries, Case, Ledger, Random, STARTS, Tracked, queue_from};
use corelane::spsc::Contiguous;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// A design of this kind, for the items of these tests.
pub(crate) trait InSlices: Carries + Contiguous<u64> + Contiguous<Tracked> {}
impl<D: Carries + Contiguous<u64> + Contiguous<Tracked>> InSlices for D {}

pub(crate) fn slices_stream_in_place<C: Case<Design: InSlices>>() {
    const ITEMS: u64 = 4_000;
    for (capacity, start) in [1, 3, 64, 100].into_iter().flat_map(|capacity| STARTS.map(|start| (capacity, start))) {
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, start);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut random = Random::new(1);
                let mut next = 0;
                while next < ITEMS {
                    tx.wait_for_room(1).unwrap();
                    let most = (1 + random.below(70)).min((ITEMS - next) as usize);
                    let mut reserved = tx.try_reserve_slice(most).unwrap();
                    assert!((1..=most.min(capacity)).contains(&reserved.len()));
                    let n = random.below(reserved.len() + 1);
                    for slot in &mut reserved.as_uninit_mut()[..n] {
                        slot.write(next);
                        next += 1;
                    }
                    // SAFETY: the first n were just written.
                    assert_eq!(unsafe { reserved.commit(n) }, n);
                }
            });
            let mut random = Random::new(2);
            let mut next = 0;
            while rx.wait_for_item().is_ok() {
                let mut peeked = rx.try_peek_slice().unwrap();
                assert!(!peeked.is_empty() && peeked.len() <= capacity);
                let n = random.below(peeked.len() + 1);
                for (i, item) in peeked.iter_mut().enumerate() {
                    assert_eq!(*item, next + i as u64);
                    *item += 0;
                }
                peeked.release(n);
                next += n as u64;
            }
            assert_eq!(next, ITEMS);
        });
    }
}

pub(crate) fn all_free_slots_are_reserved_but_for_the_end_of_memory<C: Case<Design: InSlices>>() {
    let (mut tx, mut rx) = queue_from::<u64, C>(64, 0);
    assert_eq!(tx.try_reserve_slice(1000).unwrap().len(), 64);
    assert_eq!(tx.try_reserve_slice(10).unwrap().len(), 10);
    assert_eq!(tx.try_push_slice(&[1; 40]).unwrap_or(0), 40);
    let mut left = 40;
    while let Ok(peeked) = rx.try_peek_slice() {
        let n = peeked.len();
        peeked.release(n);
        left -= n;
    }
    assert_eq!(left, 0);
    assert!(catch_unwind(AssertUnwindSafe(|| tx.try_reserve_slice(0).is_ok())).is_err());
}

pub(crate) fn a_slice_committed_after_the_close_is_dropped<C: Case<Design: InSlices>>() {
    let ledger = Ledger::new(6);
    let (mut tx, mut rx) = queue_from::<_, C>(8, usize::MAX - 3);
    assert_eq!(tx.try_push_batch(&mut (0..2).map(|id| ledger.item(id)).collect()).unwrap_or(0), 2);
    let mut reserved = tx.try_reserve_slice(2).unwrap();
    let n = reserved.len();
    for (i, slot) in reserved.as_uninit_mut().iter_mut().enumerate() {
        slot.write(ledger.item(2 + i));
    }
    rx.close();
    // SAFETY: all were just written.
    assert_eq!(unsafe { reserved.commit(n) }, 0);
    assert_eq!((ledger.drops(0), ledger.drops(2)), (0, 1));
    drop(rx.try_pop());
    drop((tx, rx));
    ledger.assert_dropped_once(2 + n);
}

pub(crate) fn released_slices_are_dropped_once<C: Case<Design: InSlices>>() {
    for start in STARTS {
        let ledger = Ledger::new(300);
        let (mut tx, mut rx) = queue_from::<_, C>(10, start);
        let (mut pushed, mut released) = (0, 0);
        while pushed < 290 {
            pushed += tx.try_push_batch(&mut (pushed..pushed + 10).map(|id| ledger.item(id)).collect()).unwrap_or(0);
            while let Ok(peeked) = rx.try_peek_slice() {
                assert_eq!(peeked[0].id, released);
                let n = peeked.len().div_ceil(2);
                peeked.release(n);
                released += n;
                ledger.assert_dropped_once(released);
            }
        }
        drop((tx, rx));
        ledger.assert_dropped_once(pushed);
    }
}

pub(crate) fn a_panicking_drop_releases_its_whole_slice<C: Case<Design: InSlices>>() {
    let ledger = Ledger::new(6);
    let (mut tx, mut rx) = queue_from::<_, C>(8, 0);
    let items = (0..6).map(|id| if id == 1 { ledger.explosive(id) } else { ledger.item(id) });
    assert_eq!(tx.try_push_batch(&mut items.into_iter().collect()).unwrap_or(0), 6);
    let released = catch_unwind(AssertUnwindSafe(|| rx.try_peek_slice().unwrap().release(4)));
    assert!(released.is_err());
    ledger.assert_dropped_once(4);
    assert_eq!(rx.try_pop().unwrap().id, 4);
    assert_eq!(rx.len(), 1);
    drop((tx, rx));
    ledger.assert_dropped_once(6);
}

pub(crate) fn more_than_there_is_panics<C: Case<Design: InSlices>>() {
    let (mut tx, mut rx) = queue_from::<u64, C>(8, 0);
    // SAFETY: it panics before it looks at the slots.
    assert!(catch_unwind(AssertUnwindSafe(|| unsafe { tx.try_reserve_slice(3).unwrap().commit(4) })).is_err());
    assert!(rx.is_empty());
    tx.try_push_slice(&[1, 2]).unwrap_or(0);
    assert!(catch_unwind(AssertUnwindSafe(|| rx.try_peek_slice().unwrap().release(3))).is_err());
    assert_eq!(rx.len(), 2);
}
