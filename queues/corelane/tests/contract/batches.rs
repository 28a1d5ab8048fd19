//! Batches: in part where they do not fit, in order, never more than asked.

use crate::case::{Case, Ledger, Tracked, fill, options, queue, queue_from, queue_with};
use corelane::error::{Closed, PushTimeoutError, TryPopError, TryPushError};
use corelane::wait::{Next, Strategy, WaitState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(100);

pub(crate) fn a_batch_of_nothing_pushes_nothing<C: Case>() {
    let (mut tx, mut rx) = queue::<u64, C>(10);
    assert_eq!(tx.try_push_batch(&mut Vec::new()), Ok(0));
    assert_eq!(tx.push_batch(&mut Vec::new()), Ok(()));
    assert_eq!(tx.try_push_slice(&[]), Ok(0));
    assert_eq!(tx.push_slice(&[]), Ok(()));
    assert_eq!(rx.try_pop_slice(&mut []), Ok(0));
    assert_eq!(rx.pop_slice(&mut []), Ok(0));
    assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    assert_eq!(tx.try_push_slice(&[5]), Ok(1));
    assert_eq!(rx.try_pop_batch(&mut Vec::new(), 0), Ok(0));
    assert_eq!(rx.pop_batch(&mut Vec::new(), 0), Ok(0));
    assert_eq!(rx.pop_each(0, drop), Ok(0));
    assert_eq!(rx.try_pop_slice(&mut []), Ok(0));
    assert_eq!(rx.try_pop(), Ok(5));
}

/// The calls that wait push all, and pop at least one.
pub(crate) fn batches_that_wait_are_whole<C: Case>() {
    /// The items of each of the three.
    const ITEMS: u64 = if cfg!(miri) { 100 } else { 1000 };
    for capacity in [1, 7, 64] {
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 3);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut items = (0..ITEMS).collect::<Vec<_>>();
                assert_eq!((tx.push_batch(&mut items), items.len()), (Ok(()), 0));
                assert_eq!(tx.push_slice(&(ITEMS..2 * ITEMS).collect::<Vec<_>>()), Ok(()));
                items.extend(2 * ITEMS..3 * ITEMS);
                assert_eq!((tx.push_batch_timeout(&mut items, LONG), items.len()), (Ok(()), 0));
            });
            let mut popped = Vec::new();
            for turn in 0.. {
                let before = popped.len();
                let count = match turn % 4 {
                    0 => rx.pop_batch(&mut popped, 30),
                    1 => rx.pop_batch_timeout(&mut popped, 30, LONG).map_err(|_| Closed(())),
                    2 => rx.pop_each(30, |item| popped.push(item)),
                    _ => {
                        let mut items = [u64::MAX; 30];
                        let count = rx.pop_slice(&mut items);
                        popped.extend(&items[..count.unwrap_or(0)]);
                        count
                    }
                };
                let Ok(count) = count else { break };
                assert!(count > 0 && count <= 30 && popped.len() == before + count);
            }
            assert!(popped.into_iter().eq(0..3 * ITEMS));
        });
    }
}

/// What a batch could not push is left in the vector, in order: when the time is up, when the queue is closed, when the
/// strategy panics.
pub(crate) fn what_is_not_pushed_is_left<C: Case>() {
    let rest = |items: &[Tracked], from: usize| assert!(items.iter().map(|item| item.id).eq(from..10));
    let ledger = Ledger::new(10);
    let (mut tx, mut rx) = queue_from::<_, C>(4, usize::MAX - 3);
    let mut items = (0..10).map(|id| ledger.item(id)).collect::<Vec<_>>();
    let refused = tx.push_batch_timeout(&mut items, Duration::from_millis(1));
    assert_eq!(refused, Err(PushTimeoutError::Timeout(())));
    rest(&items, 4);
    assert_eq!(rx.try_pop().unwrap().id, 0);
    let mut some = vec![];
    assert_eq!(rx.try_pop_batch(&mut some, 2), Ok(2));
    assert_eq!(tx.try_push_batch(&mut items), Ok(3));
    rest(&items, 7);
    rx.close();
    assert_eq!(tx.push_batch(&mut items), Err(Closed(())));
    assert_eq!(tx.try_push_batch(&mut items), Err(TryPushError::Closed(())));
    assert_eq!(tx.push_batch_timeout(&mut items, LONG), Err(PushTimeoutError::Closed(())));
    rest(&items, 7);
    assert_eq!(rx.pop_batch(&mut some, 100), Ok(4));
    assert_eq!(rx.pop_batch(&mut some, 100), Err(Closed(())));
    drop((tx, rx, items, some));
    ledger.assert_dropped_once(10);

    let ledger = Ledger::new(10);
    let (mut tx, rx) = queue_with::<_, C, _>(4, options::<C, _>(4, Fails));
    let mut items = (0..10).map(|id| ledger.item(id)).collect::<Vec<_>>();
    catch_unwind(AssertUnwindSafe(|| tx.push_batch(&mut items))).unwrap_err();
    rest(&items, 4);
    drop((tx, rx, items));
    ledger.assert_dropped_once(10);
}

#[derive(Clone, Debug)]
struct Fails;

impl Strategy for Fails {
    fn next(&self, _: &mut WaitState) -> Next {
        panic!("the strategy fails")
    }
}

pub(crate) fn slices_larger_than_the_queue_go_in_part<C: Case>() {
    for capacity in [1, 2, 7, 64, 100] {
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 3);
        let items = (0..3 * capacity as u64).collect::<Vec<_>>();
        for _ in 0..30 {
            assert_eq!(tx.try_push_slice(&items).unwrap_or(0), capacity);
            assert_eq!(tx.try_push_slice(&items).unwrap_or(0), 0);
            let mut popped = vec![u64::MAX; 2 * capacity];
            assert_eq!(rx.try_pop_slice(&mut popped).unwrap_or(0), capacity);
            assert_eq!(popped[..capacity], items[..capacity]);
            assert!(popped[capacity..].iter().all(|&item| item == u64::MAX), "the rest of the slice is unchanged");
            assert_eq!(rx.try_pop_slice(&mut popped).unwrap_or(0), 0);
            assert_eq!(rx.try_pop_batch(&mut popped, 5).unwrap_or(0), 0);
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
            assert!(rx.is_empty() && rx.try_pop().is_err());
            let items = (0..capacity as u64).collect::<Vec<_>>();
            assert_eq!(tx.try_push_slice(&items).unwrap_or(0), capacity);
            let mut popped = vec![0; capacity];
            assert_eq!(rx.try_pop_slice(&mut popped).unwrap_or(0), capacity);
            assert_eq!(popped, items);
            assert!(rx.is_empty() && rx.try_pop().is_err());
            assert_eq!(tx.try_push_slice(&items).unwrap_or(0), capacity);
            let mut popped = Vec::new();
            assert_eq!(rx.try_pop_batch(&mut popped, capacity - 1).unwrap_or(0), capacity - 1);
            assert_eq!(rx.try_pop_batch(&mut popped, capacity).unwrap_or(0), 1);
            assert_eq!(popped, items);
        }
    }
}

/// Of a queue so large that its consumer takes many blocks in one run.
pub(crate) fn slices_go_out_in_parts<C: Case>() {
    let (mut tx, mut rx) = queue::<u64, C>(1000);
    let count = fill(&mut tx, 0) as usize;
    let mut popped = vec![0; count];
    for part in popped.chunks_mut(10) {
        let length = part.len();
        assert_eq!(rx.try_pop_slice(part), Ok(length));
    }
    assert!(popped.into_iter().eq(0..count as u64));
    assert!(rx.is_empty() && rx.try_pop().is_err());
}

pub(crate) fn a_panicking_drain_leaves_what_it_was_not_given<C: Case>() {
    let few = [0, 1, 6, 7, 31, 32, 58].map(|stop| (100, 60, stop));
    // Of so many items the lane's consumer takes many blocks at once.
    let many = [26, 27, 28, 298].map(|stop| (2000, 300, stop));
    for (capacity, items, stop) in few.into_iter().chain(many) {
        let ledger = Ledger::new(items);
        let (mut tx, mut rx) = queue_from::<_, C>(capacity, usize::MAX - 3);
        assert_eq!(tx.try_push_batch(&mut (0..items).map(|id| ledger.item(id)).collect()).unwrap_or(0), items);
        let mut given = Vec::new();
        catch_unwind(AssertUnwindSafe(|| {
            rx.try_pop_each(usize::MAX, |item| {
                let id = item.id;
                given.push(item);
                assert_ne!(id, stop);
            })
            .unwrap_or(0)
        }))
        .unwrap_err();
        assert!(given.iter().map(|item| item.id).eq(0..=stop));
        assert_eq!(rx.len(), items - 1 - stop);
        rx.try_pop_each(usize::MAX, |item| given.push(item)).unwrap_or(0);
        assert!(given.iter().map(|item| item.id).eq(0..items));
        // What was given is the caller's, and there is room for as many as before.
        drop(given);
        ledger.assert_dropped_once(items);
        let ledger = Ledger::new(capacity);
        assert_eq!(tx.try_push_batch(&mut (0..capacity).map(|id| ledger.item(id)).collect()).unwrap_or(0), capacity);
        drop((tx, rx));
        ledger.assert_dropped_once(capacity);
    }
}
