//! What the ends count about themselves.

use crate::case::{Case, options};
use corelane::error::TryPushError;
use corelane::error::{PopTimeoutError, PushTimeoutError};
use corelane::spsc::{self, Consumer, Counting, Design, Producer, Stats};
use corelane::wait::Adaptive;
use std::time::Duration;

type Tx<C> = Producer<u64, <C as Case>::Design, Adaptive, Counting>;
type Rx<C> = Consumer<u64, <C as Case>::Design, Adaptive, Counting>;

fn counted<C: Case>(capacity: usize) -> (Tx<C>, Rx<C>)
where
    C::Design: Design<u64, Tuning = C::Options>,
{
    spsc::any_channel(capacity, options::<C, _>(capacity, Adaptive).stats::<Counting>()).unwrap()
}

pub(crate) fn single_calls_are_counted<C: Case>() {
    let (mut tx, mut rx) = counted::<C>(3);
    assert_eq!((tx.stats(), rx.stats()), (Stats::default(), Stats::default()));
    assert!(rx.try_pop().is_err() && rx.try_peek().is_err());
    for item in 0..3 {
        tx.try_push(item).unwrap();
    }
    assert!(tx.try_push(3).is_err() && tx.try_push(3).is_err() && tx.try_reserve().is_err());
    assert_eq!(rx.try_pop(), Ok(0));
    assert_eq!(rx.try_peek().map(|item| item.pop()), Ok(1));
    tx.try_reserve().unwrap().write(3).unwrap();
    drop(rx.try_peek());
    drop(tx.try_reserve());
    let (sent, received) = (tx.stats(), rx.stats());
    assert_eq!((sent.pushes, sent.full, sent.high_water, sent.waits), (4, 3, 3, 0));
    assert_eq!((received.pops, received.empty, received.waits), (2, 2, 0));
    assert_eq!((sent.pops, sent.empty, received.pushes, received.full, received.high_water), (0, 0, 0, 0, 0));
    assert_eq!(sent.batches.iter().collect::<Vec<_>>(), [(1, 4)]);
    assert_eq!(received.batches.iter().collect::<Vec<_>>(), [(1, 2)]);
    let both = sent.and(&received);
    assert_eq!((both.pushes, both.pops, both.full, both.empty, both.high_water), (4, 2, 3, 2, 3));
    assert_eq!(both.batches.count(), 6);
}

pub(crate) fn batches_are_counted<C: Case>() {
    let (mut tx, mut rx) = counted::<C>(63);
    assert_eq!(tx.try_push_slice(&[7; 100]).unwrap_or(0), 63);
    assert_eq!(tx.try_push_batch(&mut (0..1).collect()).unwrap_or(0), 0);
    let mut items = Vec::new();
    assert_eq!(rx.try_pop_batch(&mut items, 100).unwrap_or(0), 63);
    assert_eq!(
        (
            rx.try_pop_batch(&mut items, 1).unwrap_or(0),
            rx.try_pop_batch(&mut items, 0).unwrap_or(0),
            rx.try_pop_slice(&mut [0; 2]).unwrap_or(0)
        ),
        (0, 0, 0)
    );
    assert_eq!(tx.try_push_batch(&mut (0..5).collect()).unwrap_or(0), 5);
    assert_eq!(
        (
            rx.try_pop_each(0, drop).unwrap_or(0),
            rx.try_pop_each(9, drop).unwrap_or(0),
            rx.try_pop_each(9, drop).unwrap_or(0)
        ),
        (0, 5, 0)
    );
    let (sent, received) = (tx.stats(), rx.stats());
    assert_eq!((sent.pushes, sent.full, sent.high_water), (68, 2, 63));
    assert_eq!((received.pops, received.empty), (68, 3));
    // Never more than one batch for each item, and the sizes tell of the items.
    for (batches, items) in [(sent.batches, 68), (received.batches, 68)] {
        let least: u64 = batches.iter().map(|(size, count)| size as u64 * count).sum();
        let most: u64 = batches.iter().map(|(size, count)| (2 * size - 1) as u64 * count).sum();
        assert!(batches.count() <= items && least <= items && most >= items, "{batches:?}");
    }
}

pub(crate) fn only_waits_that_wait_are_counted<C: Case>() {
    let (mut tx, mut rx) = counted::<C>(1);
    tx.push(1).unwrap();
    rx.wait_for_item().unwrap();
    assert_eq!((tx.stats().waits, rx.stats().waits), (0, 0));
    assert_eq!(tx.push_timeout(2, Duration::from_millis(1)), Err(PushTimeoutError::Timeout(2)));
    assert_eq!(rx.pop(), Ok(1));
    assert_eq!(rx.pop_timeout(Duration::from_millis(1)), Err(PopTimeoutError::Timeout));
    assert_eq!((tx.stats().waits, rx.stats().waits), (1, 1));
    assert!(tx.stats().full >= 1 && rx.stats().empty >= 1);
    tx.wait_for_room(1).unwrap();
    assert_eq!(tx.stats().waits, 1);
}

pub(crate) fn what_is_refused_is_not_counted<C: Case>() {
    let (mut tx, mut rx) = counted::<C>(8);
    assert_eq!(tx.try_push_slice(&[1, 2, 3]).unwrap_or(0), 3);
    rx.close();
    assert!(tx.try_push(4).is_err());
    assert_eq!(tx.try_push_slice(&[5, 6]).unwrap_or(0), 0);
    assert_eq!(tx.try_push_batch(&mut (7..9).collect()).unwrap_or(0), 0);
    assert_eq!((tx.stats().pushes, tx.stats().batches.count(), tx.stats().full), (3, tx.stats().batches.count(), 0));
    assert_eq!(rx.try_pop_slice(&mut [0; 8]).unwrap_or(0), 3);
    assert_eq!(rx.stats().pops, 3);

    // A full queue that is closed refuses for good, whichever end has closed it.
    for sender_closes in [false, true] {
        let (mut tx, mut rx) = counted::<C>(8);
        assert_eq!(tx.try_push_slice(&[0; 8]).unwrap_or(0), 8);
        if sender_closes {
            tx.close();
        } else {
            rx.close();
        }
        assert!(tx.try_push(1).is_err() && tx.try_reserve().is_err());
        assert_eq!(
            (tx.try_push_slice(&[2; 3]).unwrap_or(0), tx.try_push_batch(&mut (3..5).collect()).unwrap_or(0)),
            (0, 0)
        );
        assert_eq!((tx.stats().pushes, tx.stats().full), (8, 0));
    }
}

pub(crate) fn full_is_counted_only_if_an_item_was_refused<C: Case>() {
    let (mut tx, mut rx) = counted::<C>(8);
    let full = |tx: &Tx<C>| tx.stats().full;
    // All items find a slot, and then there is none left.
    assert_eq!((tx.try_push_batch(&mut (0..8).collect()).unwrap_or(0), full(&tx)), (8, 0));
    assert_eq!(
        (tx.try_push_batch(&mut (0..0).collect()).unwrap_or(0), tx.try_push_slice(&[]).unwrap_or(0), full(&tx)),
        (0, 0, 0)
    );
    assert_eq!(rx.try_pop_batch(&mut Vec::new(), 8).unwrap_or(0), 8);
    assert_eq!((tx.try_push_slice(&[0; 8]).unwrap_or(0), full(&tx)), (8, 0));
    assert_eq!((tx.try_push_slice(&[0; 1]).unwrap_or(0), full(&tx)), (0, 1));
    assert_eq!(rx.try_pop_batch(&mut Vec::new(), 8).unwrap_or(0), 8);
    let mut items = (0..10).collect::<Vec<_>>();
    assert_eq!((tx.try_push_batch(&mut items), full(&tx)), (Ok(8), 2));
    assert_eq!((tx.try_push_batch(&mut items), items, full(&tx)), (Err(TryPushError::Full(())), vec![8, 9], 3));
}
