//! Handles: the last one of a side closes the queue.

use crate::case::{LONG, NAP, Rx, Shared, Tx, channel, rest};
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

pub(crate) fn the_last_sender_closes<C: Shared>() {
    let (mut tx, mut rx) = channel::<C, u64>(8);
    let (mut more, gone) = (tx.clone(), tx.clone());
    tx.push(0).unwrap();
    drop((tx, gone, rx.clone()));
    assert!(!rx.is_closed() && !more.is_closed());
    assert_eq!((rx.pop(), rx.try_pop()), (Ok(0), Err(TryPopError::Empty)));
    more.push_batch(&mut vec![1, 2]).unwrap();
    let mut other = rx.clone();
    drop(more);
    assert!(rx.is_closed() && other.is_closed());
    assert_eq!((rx.pop(), other.try_pop()), (Ok(1), Ok(2)));
    assert_eq!((rx.pop(), rx.try_pop()), (Err(Closed(())), Err(TryPopError::Closed)));
    assert_eq!(rx.pop_timeout(LONG), Err(PopTimeoutError::Closed));
    assert_eq!(rx.pop_batch(&mut Vec::new(), 1), Err(Closed(())));
    assert_eq!((other.pop(), rx.clone().pop()), (Err(Closed(())), Err(Closed(()))));
}

pub(crate) fn the_last_receiver_closes<C: Shared>() {
    let (mut tx, rx) = channel::<C, u64>(8);
    let mut other = rx.clone();
    drop(rx);
    assert!(!tx.is_closed());
    tx.push(0).unwrap();
    assert_eq!(other.pop(), Ok(0));
    tx.push(1).unwrap();
    let mut sender = tx.clone();
    drop(other);
    assert!(tx.is_closed() && sender.is_closed());
    assert_eq!((tx.push(2), sender.push(2)), (Err(Closed(2)), Err(Closed(2))));
    assert_eq!(tx.try_push(2), Err(TryPushError::Closed(2)));
    assert_eq!(tx.push_timeout(2, LONG), Err(PushTimeoutError::Closed(2)));
    let mut batch = vec![2, 3];
    assert_eq!(tx.push_batch(&mut batch), Err(Closed(())));
    assert_eq!(tx.try_push_batch(&mut batch), Err(TryPushError::Closed(())));
    assert_eq!(tx.push_batch_timeout(&mut batch, LONG), Err(PushTimeoutError::Closed(())));
    assert_eq!(batch, [2, 3]);
    assert_eq!(tx.clone().push(4), Err(Closed(4)));
}

pub(crate) fn any_handle_may_close<C: Shared>() {
    for by_the_sender in [true, false] {
        let (mut tx, mut rx) = channel::<C, u64>(8);
        let (mut other_tx, mut other_rx) = (tx.clone(), rx.clone());
        tx.push(0).unwrap();
        (0..2).for_each(|_| if by_the_sender { tx.close() } else { rx.close() });
        assert!(tx.is_closed() && rx.is_closed() && other_tx.is_closed() && other_rx.is_closed());
        assert_eq!((other_tx.push(1), tx.clone().push(1)), (Err(Closed(1)), Err(Closed(1))));
        drop((tx, other_tx));
        assert_eq!((other_rx.pop(), rx.pop()), (Ok(0), Err(Closed(()))));
    }
}

/// The drop of one sender of two changes nothing; that of the last, or a close, wakes all receivers.
pub(crate) fn waiting_receivers_are_told<C: Shared>() {
    for by in 0..3 {
        let (mut tx, rx) = channel::<C, u64>(2);
        let other = tx.clone();
        let mut closer = rx.clone();
        thread::scope(|scope| {
            let pops = [(); 2].map(|()| {
                let mut rx = rx.clone();
                scope.spawn(move || rx.pop())
            });
            let mut timed = rx.clone();
            let timed = scope.spawn(move || timed.pop_timeout(LONG));
            let mut batch = rx.clone();
            let batch = scope.spawn(move || batch.pop_batch(&mut Vec::new(), 5));
            let owner = scope.spawn(move || rx.into_iter().count());
            thread::sleep(NAP);
            drop(other);
            thread::sleep(NAP);
            assert!(!pops[0].is_finished() && !owner.is_finished() && !timed.is_finished() && !batch.is_finished());
            match by {
                0 => drop(tx),
                1 => tx.close(),
                _ => closer.close(),
            }
            assert_eq!(pops.map(|pop| pop.join().unwrap()), [Err(Closed(())); 2]);
            assert_eq!((owner.join().unwrap(), timed.join().unwrap()), (0, Err(PopTimeoutError::Closed)));
            assert_eq!(batch.join().unwrap(), Err(Closed(())));
        });
    }
}

pub(crate) fn waiting_senders_are_told<C: Shared>() {
    if !C::BOUNDED {
        return;
    }
    for by in 0..3 {
        let (tx, mut rx) = channel::<C, u64>(1);
        let other = rx.clone();
        let mut closer = tx.clone();
        // A lane of its own is full, too.
        let [mut first, mut second, mut timed, mut batch] = [(); 4].map(|()| {
            let mut full = tx.clone();
            let _ = full.try_push(0);
            full
        });
        thread::scope(|scope| {
            let pushes = [scope.spawn(move || first.push(7)), scope.spawn(move || second.push(8))];
            let timed = scope.spawn(move || timed.push_timeout(9, LONG));
            let batch = scope.spawn(move || {
                let mut items = vec![5, 6];
                (batch.push_batch(&mut items), items)
            });
            thread::sleep(NAP);
            drop(other);
            thread::sleep(NAP);
            assert!(!pushes[0].is_finished() && !timed.is_finished() && !batch.is_finished());
            match by {
                0 => drop(rx),
                1 => rx.close(),
                _ => closer.close(),
            }
            assert_eq!(pushes.map(|push| push.join().unwrap()), [Err(Closed(7)), Err(Closed(8))]);
            assert_eq!(timed.join().unwrap(), Err(PushTimeoutError::Closed(9)));
            assert_eq!(batch.join().unwrap(), (Err(Closed(())), vec![5, 6]));
        });
    }
}

pub(crate) fn a_thread_that_panics_lets_its_handle_go<C: Shared>() {
    let (mut tx, mut rx) = channel::<C, u64>(8);
    let producer = thread::spawn(move || {
        tx.push(1).unwrap();
        std::panic::resume_unwind(Box::new("the producer is gone"));
    });
    assert_eq!(rest(&mut rx).collect::<Vec<_>>(), [1]);
    producer.join().unwrap_err();
    let (mut tx, rx) = channel::<C, u64>(8);
    catch_unwind(AssertUnwindSafe(move || {
        let _rx = rx;
        std::panic::resume_unwind(Box::new("the consumer is gone"));
    }))
    .unwrap_err();
    assert_eq!(tx.push(1), Err(Closed(1)));
}

pub(crate) fn an_iterator_is_a_handle<C: Shared>() {
    let (mut tx, rx) = channel::<C, u64>(8);
    let mut items = rx.clone().into_iter();
    tx.push_batch(&mut vec![1, 2]).unwrap();
    drop(rx);
    assert_eq!(items.next(), Some(1));
    tx.push(3).unwrap();
    drop(items);
    assert_eq!(tx.push(4), Err(Closed(4)));
    let (mut tx, rx) = channel::<C, u64>(8);
    tx.push_batch(&mut (0..6).collect()).unwrap();
    drop(tx);
    assert!(rx.into_iter().eq(0..6));
}
