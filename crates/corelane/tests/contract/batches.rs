//! Batches: in part where they do not fit, in order, never more than asked.

use crate::case::{Case, Ledger, Random, fill, queue, queue_from};
use corelane::error::PopError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

pub(crate) fn push_iter_takes_what_fits_and_leaves_the_rest<C: Case>() {
    for capacity in [1, 3, 64, 100] {
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 3);
        let mut items = 0..250;
        assert_eq!(tx.push_iter(&mut items), capacity);
        assert_eq!(items.next(), Some(capacity as u64), "an item that does not fit is not asked for");
        let mut popped = Vec::new();
        assert_eq!(rx.pop_into(&mut popped, usize::MAX), capacity);
        assert!(popped.into_iter().eq(0..capacity as u64));
    }
}

pub(crate) fn push_iter_of_nothing_pushes_nothing<C: Case>() {
    let (mut tx, mut rx) = queue::<u64, C>(10);
    assert_eq!(tx.push_iter(&mut std::iter::empty()), 0);
    assert_eq!(tx.push_slice(&[]), 0);
    assert_eq!(rx.pop_slice(&mut []), 0);
    assert_eq!(rx.try_pop(), Err(PopError::Empty));
    assert_eq!(tx.push_slice(&[5]), 1);
    assert_eq!(rx.pop_into(&mut Vec::new(), 0), 0);
    assert_eq!(rx.pop_slice(&mut []), 0);
    assert_eq!(rx.try_pop(), Ok(5));
}

pub(crate) fn a_panicking_iterator_has_pushed_what_it_yielded<C: Case>() {
    for good in [0, 1, 6, 7, 8, 40] {
        let ledger = Ledger::new(good + 2);
        let (mut tx, mut rx) = queue_from::<_, C>(100, usize::MAX - 3);
        let mut items = (0..=good).map(|id| if id == good { panic!("out of items") } else { ledger.item(id) });
        catch_unwind(AssertUnwindSafe(|| tx.push_iter(&mut items))).unwrap_err();
        assert_eq!(rx.len(), good);
        for id in 0..good {
            assert_eq!(rx.try_pop().map(|item| item.id), Ok(id));
        }
        assert_eq!(rx.try_pop().err(), Some(PopError::Empty));
        assert!(tx.try_push(ledger.item(good)).is_ok());
        assert_eq!(rx.try_pop().map(|item| item.id), Ok(good));
        ledger.assert_dropped_once(good + 1);
    }
}

/// An iterator is the caller's code: it runs while the batch is made, and may pop, or close the queue.
pub(crate) fn an_iterator_may_use_the_other_end<C: Case>() {
    for capacity in [1, 3, 8, 100] {
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 3);
        let mut popped = Vec::new();
        let mut next = 0;
        while next < 300 {
            let pushed = tx.push_iter(&mut (next..300).inspect(|item| {
                if item % 3 != 0 {
                    popped.extend(rx.try_pop());
                }
            }));
            next += pushed as u64;
            popped.extend(rx.try_pop());
        }
        rx.pop_into(&mut popped, capacity);
        assert!(popped.into_iter().eq(0..300));

        let ledger = Ledger::new(capacity);
        let (mut tx, mut rx) = queue_from::<_, C>(capacity, usize::MAX - 3);
        let closes_at = capacity / 2;
        let mut items = (0..capacity).map(|id| {
            if id == closes_at {
                rx.close();
            }
            ledger.item(id)
        });
        let pushed = tx.push_iter(&mut items);
        assert!(pushed <= closes_at, "{pushed} of {closes_at} accepted");
        assert!(tx.is_closed());
        for id in 0..pushed {
            assert_eq!(rx.try_pop().map(|item| item.id), Ok(id));
        }
        assert_eq!(rx.try_pop().err(), Some(PopError::Closed));
        let made = (0..capacity).filter(|&id| ledger.drops(id) == 1).count();
        assert!(made > closes_at, "{made} made");
        drop((tx, rx));
        ledger.assert_dropped_once(made);
    }
}

pub(crate) fn slices_larger_than_the_queue_go_in_part<C: Case>() {
    for capacity in [1, 2, 7, 64, 100] {
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 3);
        let items = (0..3 * capacity as u64).collect::<Vec<_>>();
        for _ in 0..30 {
            assert_eq!(tx.push_slice(&items), capacity);
            assert_eq!(tx.push_slice(&items), 0);
            let mut popped = vec![u64::MAX; 2 * capacity];
            assert_eq!(rx.pop_slice(&mut popped), capacity);
            assert_eq!(popped[..capacity], items[..capacity]);
            assert!(popped[capacity..].iter().all(|&item| item == u64::MAX), "the rest of the slice is unchanged");
            assert_eq!(rx.pop_slice(&mut popped), 0);
            assert_eq!(rx.pop_into(&mut popped, 5), 0);
        }
    }
}

pub(crate) fn slices_go_in_and_out_at_every_offset<C: Case>() {
    for capacity in [3, 8, 64, 100] {
        for offset in 0..2 * capacity as u64 {
            let (mut tx, mut rx) = queue::<u64, C>(capacity);
            for item in 0..offset {
                tx.push(item).unwrap();
                assert_eq!(rx.pop(), Ok(item));
            }
            assert!(rx.is_empty());
            let items = (0..capacity as u64).collect::<Vec<_>>();
            assert_eq!(tx.push_slice(&items), capacity);
            let mut popped = vec![0; capacity];
            assert_eq!(rx.pop_slice(&mut popped), capacity);
            assert_eq!(popped, items);
            assert!(rx.is_empty());
            assert_eq!(tx.push_slice(&items), capacity);
            let mut popped = Vec::new();
            assert_eq!(rx.pop_into(&mut popped, capacity - 1), capacity - 1);
            assert_eq!(rx.pop_into(&mut popped, capacity), 1);
            assert_eq!(popped, items);
        }
    }
}

pub(crate) fn pop_into_appends_at_most_max<C: Case>() {
    let (mut tx, mut rx) = queue::<u64, C>(100);
    assert_eq!(fill(&mut tx, 0), 100);
    let mut items = vec![77];
    assert_eq!(rx.pop_into(&mut items, 10), 10);
    assert_eq!(rx.pop_into(&mut items, 33), 33);
    assert_eq!(items.len(), 44);
    assert_eq!(items[0], 77);
    assert!(items[1..].iter().copied().eq(0..43));
    assert_eq!(rx.len(), 57);
    assert_eq!(rx.pop_into(&mut items, usize::MAX), 57);
}

pub(crate) fn drain_gives_at_most_max_in_order<C: Case>() {
    let (mut tx, mut rx) = queue_from::<u64, C>(100, usize::MAX - 20);
    let mut items = Vec::new();
    assert_eq!(rx.drain(5, |item| items.push(item)), 0);
    for round in 0..3 {
        assert_eq!(fill(&mut tx, 0), 100);
        for (max, drained) in [(0, 0), (1, 1), (10, 10), (70, 70), (usize::MAX, 19), (1, 0)] {
            assert_eq!(rx.drain(max, |item| items.push(item)), drained, "{max} of round {round}");
        }
        assert!(items.drain(..).eq(0..100));
        assert!(rx.is_empty());
    }
    assert_eq!(tx.push_slice(&[1, 2]), 2);
    drop(tx);
    assert_eq!((rx.drain(9, |item| items.push(item)), rx.drain(9, |item| items.push(item))), (2, 0));
    assert_eq!(items, [1, 2]);
}

pub(crate) fn a_panicking_drain_leaves_what_it_was_not_given<C: Case>() {
    let few = [0, 1, 6, 7, 31, 32, 58].map(|stop| (100, 60, stop));
    // Of so many items the lane's consumer takes many blocks at once.
    let many = [26, 27, 28, 298].map(|stop| (2000, 300, stop));
    for (capacity, items, stop) in few.into_iter().chain(many) {
        let ledger = Ledger::new(items);
        let (mut tx, mut rx) = queue_from::<_, C>(capacity, usize::MAX - 3);
        assert_eq!(tx.push_iter(&mut (0..items).map(|id| ledger.item(id))), items);
        let mut given = Vec::new();
        catch_unwind(AssertUnwindSafe(|| {
            rx.drain(usize::MAX, |item| {
                let id = item.id;
                given.push(item);
                assert_ne!(id, stop);
            })
        }))
        .unwrap_err();
        assert!(given.iter().map(|item| item.id).eq(0..=stop));
        assert_eq!(rx.len(), items - 1 - stop);
        rx.drain(usize::MAX, |item| given.push(item));
        assert!(given.iter().map(|item| item.id).eq(0..items));
        // What was given is the caller's, and there is room for as many as before.
        drop(given);
        ledger.assert_dropped_once(items);
        let ledger = Ledger::new(capacity);
        assert_eq!(tx.push_iter(&mut (0..capacity).map(|id| ledger.item(id))), capacity);
        drop((tx, rx));
        ledger.assert_dropped_once(capacity);
    }
}

pub(crate) fn batches_stream_between_threads<C: Case>() {
    const ITEMS: u64 = 200_000;
    for capacity in [5, 100, 2000] {
        let items = if capacity < 64 { ITEMS / 10 } else { ITEMS };
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 3);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut random = Random::new(3);
                let mut next = 0;
                while next < items {
                    let end = items.min(next + 1 + random.below(capacity) as u64);
                    if random.below(2) == 0 {
                        next += tx.push_slice(&(next..end).collect::<Vec<_>>()) as u64;
                    } else {
                        next += tx.push_iter(&mut (next..end)) as u64;
                    }
                    if next < end {
                        tx.wait_for_space().unwrap();
                    }
                }
            });
            let mut random = Random::new(4);
            let mut next = 0;
            let mut popped = Vec::new();
            while rx.wait_for_item().is_ok() {
                popped.clear();
                let max = 1 + random.below(2 * capacity);
                let count = if random.below(2) == 0 {
                    rx.pop_into(&mut popped, max)
                } else {
                    rx.drain(max, |item| popped.push(item))
                };
                assert!(count == popped.len() && (1..=max).contains(&count));
                let end = next + popped.len() as u64;
                assert!(popped.iter().copied().eq(next..end));
                next = end;
            }
            assert_eq!(next, items);
        });
    }
}
