//! Senders and receivers: the last of a kind that is dropped closes the queue, and no other drop does.

use crate::case::{Case, LONG, Ledger, NAP, Random, Tracked};
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::{self, Design, NoStats, Options};
use corelane::wait::Adaptive;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

type Sender<C, T> = mpmc::Sender<T, <C as Case>::Design, Adaptive>;
type Receiver<C, T> = mpmc::Receiver<T, <C as Case>::Design, Adaptive>;

fn channel<C: Case, T: Send>(capacity: usize) -> (Sender<C, T>, Receiver<C, T>)
where
    C::Design: Design<T>,
{
    let options = Options::new().start_at(usize::MAX - 3);
    mpmc::any_channel::<T, C::Design, _, NoStats>(capacity, options).expect("a good capacity")
}

pub(crate) fn every_call_is_there<C: Case>() {
    let (tx, rx) = channel::<C, u64>(4);
    assert_eq!(tx.push(0), Ok(()));
    assert_eq!(tx.try_push(1), Ok(()));
    assert_eq!(tx.push_timeout(2, NAP), Ok(()));
    assert_eq!((tx.len(), rx.len(), tx.is_empty(), rx.is_empty()), (3, 3, false, false));
    assert_eq!(tx.capacity(), rx.capacity());
    assert_eq!(tx.capacity() == 4, C::BOUNDED);
    let mut batch = vec![3];
    assert_eq!(tx.push_batch(&mut batch), Ok(()));
    assert!(batch.is_empty());
    batch.push(4);
    if C::BOUNDED {
        assert_eq!(tx.try_push(4), Err(TryPushError::Full(4)));
        assert_eq!(tx.push_timeout(4, NAP), Err(PushTimeoutError::Timeout(4)));
        assert_eq!(tx.try_push_batch(&mut batch), Err(TryPushError::Full(())));
        assert_eq!(tx.push_batch_timeout(&mut batch, NAP), Err(PushTimeoutError::Timeout(())));
        assert_eq!(batch, [4]);
    }
    assert_eq!((rx.pop(), rx.try_pop(), rx.pop_timeout(NAP)), (Ok(0), Ok(1), Ok(2)));
    assert_eq!(tx.try_push_batch(&mut batch), Ok(1));
    assert_eq!(tx.push_batch_timeout(&mut vec![5], NAP), Ok(()));
    let mut items = Vec::new();
    assert_eq!(rx.pop_batch(&mut items, 1), Ok(1));
    assert_eq!(rx.try_pop_batch(&mut items, 1), Ok(1));
    assert_eq!(rx.pop_batch_timeout(&mut items, 9, NAP), Ok(1));
    assert_eq!(items, [3, 4, 5]);
    assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    assert_eq!(rx.pop_timeout(NAP), Err(PopTimeoutError::Timeout));
    assert_eq!(rx.try_pop_batch(&mut items, 1), Err(TryPopError::Empty));
    assert_eq!(rx.pop_batch_timeout(&mut items, 1, NAP), Err(PopTimeoutError::Timeout));
}

pub(crate) fn the_last_sender_closes<C: Case>() {
    let (tx, rx) = channel::<C, u64>(8);
    let others = [tx.clone(), tx.clone()];
    tx.push(0).unwrap();
    drop(tx);
    let [first, second] = others;
    first.push(1).unwrap();
    let more = first.clone();
    drop((first, second));
    assert!(!rx.is_closed() && !more.is_closed());
    assert_eq!(rx.pop(), Ok(0));
    more.push(2).unwrap();
    // One receiver more or less is nothing to the senders.
    drop(rx.clone());
    assert!(!more.is_closed());
    let receivers = [rx.clone(), rx.clone()];
    drop(more);
    assert!(rx.is_closed());
    assert_eq!((rx.len(), rx.pop(), rx.try_pop()), (2, Ok(1), Ok(2)));
    assert_eq!(rx.pop(), Err(Closed(())));
    assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
    assert_eq!(rx.pop_timeout(LONG), Err(PopTimeoutError::Closed));
    assert_eq!(rx.pop_batch(&mut Vec::new(), 1), Err(Closed(())));
    assert_eq!(receivers.map(|rx| rx.pop()), [Err(Closed(())); 2]);
    assert_eq!(rx.clone().pop(), Err(Closed(())));
}

pub(crate) fn the_last_receiver_closes<C: Case>() {
    let (tx, rx) = channel::<C, u64>(8);
    let other = rx.clone();
    drop(rx);
    assert!(!tx.is_closed());
    tx.push(0).unwrap();
    assert_eq!(other.pop(), Ok(0));
    drop(tx.clone());
    tx.push(1).unwrap();
    let senders = [tx.clone(), tx.clone()];
    drop(other);
    assert!(tx.is_closed());
    assert_eq!(tx.push(2), Err(Closed(2)));
    assert_eq!(tx.try_push(2), Err(TryPushError::Closed(2)));
    assert_eq!(tx.push_timeout(2, LONG), Err(PushTimeoutError::Closed(2)));
    let mut batch = vec![2, 3];
    assert_eq!(tx.push_batch(&mut batch), Err(Closed(())));
    assert_eq!(tx.try_push_batch(&mut batch), Err(TryPushError::Closed(())));
    assert_eq!(tx.push_batch_timeout(&mut batch, LONG), Err(PushTimeoutError::Closed(())));
    assert_eq!(batch, [2, 3]);
    assert_eq!(senders.map(|tx| tx.push(4)), [Err(Closed(4)); 2]);
    assert_eq!(tx.clone().push(4), Err(Closed(4)));
}

pub(crate) fn any_handle_may_close<C: Case>() {
    for by_the_sender in [true, false] {
        let (tx, rx) = channel::<C, u64>(8);
        let (other_tx, other_rx) = (tx.clone(), rx.clone());
        tx.push(0).unwrap();
        if by_the_sender {
            tx.close();
        } else {
            rx.close();
        }
        assert!(tx.is_closed() && rx.is_closed() && other_tx.is_closed() && other_rx.is_closed());
        assert_eq!(other_tx.push(1), Err(Closed(1)));
        // The drops that would close it find it closed.
        drop((tx, other_tx));
        assert_eq!((other_rx.pop(), rx.pop()), (Ok(0), Err(Closed(()))));
    }
}

pub(crate) fn waiting_receivers_are_told<C: Case>() {
    let (tx, rx) = channel::<C, u64>(2);
    let other = tx.clone();
    thread::scope(|scope| {
        let pops = [(); 2].map(|()| scope.spawn(|| rx.pop()));
        let own = rx.clone();
        let owner = scope.spawn(move || own.into_iter().count());
        let timed = scope.spawn(|| rx.pop_timeout(LONG));
        let batch = scope.spawn(|| rx.pop_batch(&mut Vec::new(), 5));
        thread::sleep(NAP);
        drop(tx);
        thread::sleep(NAP);
        assert!(!pops[0].is_finished() && !owner.is_finished() && !timed.is_finished() && !batch.is_finished());
        drop(other);
        assert_eq!(pops.map(|pop| pop.join().unwrap()), [Err(Closed(())); 2]);
        assert_eq!((owner.join().unwrap(), timed.join().unwrap()), (0, Err(PopTimeoutError::Closed)));
        assert_eq!(batch.join().unwrap(), Err(Closed(())));
    });
}

pub(crate) fn waiting_senders_are_told<C: Case>() {
    if !C::BOUNDED {
        return;
    }
    let (tx, rx) = channel::<C, u64>(1);
    let other = rx.clone();
    tx.push(0).unwrap();
    thread::scope(|scope| {
        let tx = &tx;
        let pushes = [7, 8].map(|item| scope.spawn(move || tx.push(item)));
        let timed = scope.spawn(|| tx.push_timeout(9, LONG));
        let batch = scope.spawn(|| {
            let mut batch = vec![5, 6];
            (tx.push_batch(&mut batch), batch)
        });
        thread::sleep(NAP);
        drop(rx);
        thread::sleep(NAP);
        assert!(!pushes[0].is_finished() && !timed.is_finished() && !batch.is_finished());
        drop(other);
        assert_eq!(pushes.map(|push| push.join().unwrap()), [Err(Closed(7)), Err(Closed(8))]);
        assert_eq!(timed.join().unwrap(), Err(PushTimeoutError::Closed(9)));
        assert_eq!(batch.join().unwrap(), (Err(Closed(())), vec![5, 6]));
    });
}

pub(crate) fn a_thread_that_panics_lets_its_handle_go<C: Case>() {
    let (tx, rx) = channel::<C, u64>(8);
    let producer = thread::spawn(move || {
        tx.push(1).unwrap();
        // Without the message of a panic.
        std::panic::resume_unwind(Box::new("the producer is gone"));
    });
    assert_eq!(rx.iter().collect::<Vec<_>>(), [1]);
    producer.join().unwrap_err();
    let (tx, rx) = channel::<C, u64>(8);
    catch_unwind(AssertUnwindSafe(move || {
        let _rx = rx;
        std::panic::resume_unwind(Box::new("the consumer is gone"));
    }))
    .unwrap_err();
    assert_eq!(tx.push(1), Err(Closed(1)));
}

pub(crate) fn iterators_end_with_the_queue<C: Case>() {
    let (tx, rx) = channel::<C, u64>(8);
    tx.push_batch(&mut (0..6).collect()).unwrap();
    assert!(rx.iter().take(2).eq(0..2));
    drop(tx);
    let mut seen = Vec::new();
    for item in &rx {
        seen.push(item);
        if item == 3 {
            break;
        }
    }
    assert_eq!(seen, [2, 3]);
    let mut rest = rx.into_iter();
    assert!(rest.by_ref().eq(4..6));
    assert_eq!((rest.next(), rest.next()), (None, None));
}

/// An iterator of its own is a handle as any other.
pub(crate) fn an_iterator_is_a_handle<C: Case>() {
    let (tx, rx) = channel::<C, u64>(8);
    let items = rx.into_iter();
    tx.push(1).unwrap();
    drop(items);
    assert_eq!(tx.push(2), Err(Closed(2)));
}

/// Handles come and go while items do: each item is popped once, and all threads end by themselves.
pub(crate) fn handles_come_and_go<C: Case>() {
    const ITEMS: u64 = if cfg!(miri) { 15 } else { 2_000 };
    for round in 0..4 {
        let (tx, rx) = channel::<C, u64>([1, 3, 64, 500][round]);
        let mut popped = thread::scope(|scope| {
            for producer in 0..3 {
                let mut tx = tx.clone();
                scope.spawn(move || {
                    let mut random = Random::new(producer);
                    let mut next = producer * ITEMS;
                    while next < (producer + 1) * ITEMS {
                        if random.below(10) == 0 {
                            tx = tx.clone();
                        }
                        if random.below(2) == 0 {
                            tx.push(next).expect("receivers are there");
                            next += 1;
                        } else {
                            let end = (next + 1 + random.below(9) as u64).min((producer + 1) * ITEMS);
                            tx.push_batch(&mut (next..end).collect()).expect("receivers are there");
                            next = end;
                        }
                    }
                });
            }
            drop(tx);
            let consumers = [0, 1, 2].map(|consumer| {
                let mut rx = rx.clone();
                scope.spawn(move || {
                    let mut random = Random::new(100 + consumer);
                    let mut items = Vec::new();
                    loop {
                        if random.below(10) == 0 {
                            rx = rx.clone();
                        }
                        let popped = match random.below(2) {
                            0 => rx.pop().map(|item| items.push(item)),
                            _ => rx.pop_batch(&mut items, 1 + random.below(9)).map(|count| assert!(count > 0)),
                        };
                        if popped.is_err() {
                            return items;
                        }
                    }
                })
            });
            drop(rx);
            consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect::<Vec<_>>()
        });
        popped.sort_unstable();
        assert!(popped.into_iter().eq(0..3 * ITEMS));
    }
}

/// A push of a sender that is gone was not refused by the close that its drop, as the last, led to.
pub(crate) fn no_push_is_refused_by_the_drop_of_a_sender<C: Case>() {
    for _ in 0..if cfg!(miri) { 10 } else { 300 } {
        let (tx, rx) = channel::<C, u64>(4);
        thread::scope(|scope| {
            for item in 0..2 {
                let tx = tx.clone();
                scope.spawn(move || assert_eq!(tx.push(item), Ok(())));
            }
            drop(tx);
            let mut items: Vec<_> = rx.iter().collect();
            items.sort_unstable();
            assert_eq!(items, [0, 1]);
        });
    }
}

/// The receivers go early: each item was popped, came back, or is dropped with the queue.
pub(crate) fn each_item_is_dropped_once_when_receivers_go<C: Case>() {
    const ITEMS: usize = if cfg!(miri) { 40 } else { 2_000 };
    for round in 0..6 {
        let ledger = Ledger::new(2 * ITEMS);
        let (tx, rx) = channel::<C, Tracked>(16);
        let came_back = AtomicUsize::new(0);
        thread::scope(|scope| {
            for producer in 0..2 {
                let (tx, ledger, came_back) = (tx.clone(), &ledger, &came_back);
                scope.spawn(move || {
                    for id in producer * ITEMS..(producer + 1) * ITEMS {
                        if let Err(Closed(item)) = tx.push(ledger.item(id)) {
                            assert_eq!(item.id, id);
                            came_back.fetch_add(1, SeqCst);
                        }
                    }
                });
                let rx = rx.clone();
                scope.spawn(move || drop(rx.iter().take(ITEMS / 4 + ITEMS / 20 * round).collect::<Vec<_>>()));
            }
            drop((tx, rx));
        });
        assert!(came_back.into_inner() > 0 || !C::BOUNDED);
        ledger.assert_dropped_once(2 * ITEMS);
    }
}

/// What is inside lives as long as any handle, whichever kind is the last.
pub(crate) fn the_queue_goes_with_the_last_handle<C: Case>() {
    for receiver_first in [true, false] {
        let ledger = Ledger::new(3);
        let (tx, rx) = channel::<C, Tracked>(4);
        let (other_tx, other_rx) = (tx.clone(), rx.clone());
        tx.push_batch(&mut (0..3).map(|id| ledger.item(id)).collect()).ok().unwrap();
        if receiver_first {
            drop((rx, tx));
            ledger.assert_dropped_once(0);
            drop(other_rx);
            ledger.assert_dropped_once(3);
            drop(other_tx);
        } else {
            drop((tx, other_tx, rx));
            ledger.assert_dropped_once(0);
            assert_eq!(other_rx.len(), 3);
            drop(other_rx);
        }
        ledger.assert_dropped_once(3);
    }
}

/// A reply's sender inside goes with the last receiver that might have answered.
pub(crate) fn what_is_inside_goes_with_the_last_receiver<C: Case>() {
    for closed in [false, true] {
        let ledger = Ledger::new(6);
        let (tx, rx) = channel::<C, Tracked>(4);
        tx.push_batch(&mut (0..4).map(|id| ledger.item(id)).collect()).ok().unwrap();
        drop(rx.pop());
        if closed {
            tx.close();
        }
        drop(rx.clone());
        ledger.assert_dropped_once(1);
        drop(rx);
        ledger.assert_dropped_once(4);
        assert!(tx.is_empty() && tx.push(ledger.item(4)).is_err());
        ledger.assert_dropped_once(5);
        drop(tx);
        ledger.assert_dropped_once(5);
    }
    // The rest goes, too, where a drop panics.
    let ledger = Ledger::new(4);
    let (tx, rx) = channel::<C, Tracked>(4);
    tx.push_batch(&mut (0..4).map(|id| if id == 1 { ledger.explosive(id) } else { ledger.item(id) }).collect())
        .ok()
        .unwrap();
    catch_unwind(AssertUnwindSafe(|| drop(rx))).unwrap_err();
    ledger.assert_dropped_once(4);
    drop(tx);
    ledger.assert_dropped_once(4);
}

pub(crate) fn a_push_beside_the_last_receiver_leaves_nothing<C: Case>() {
    for _ in 0..200 {
        let ledger = Ledger::new(100);
        let (tx, rx) = channel::<C, Tracked>(100);
        let other = tx.clone();
        thread::scope(|scope| {
            scope.spawn(|| drop(rx));
            scope.spawn(|| (0..50).for_each(|id| drop(other.try_push(ledger.item(id)))));
            (50..100).for_each(|id| drop(tx.push(ledger.item(id))));
        });
        // Miri has no membarrier, and may show an old value a millisecond later, too: then the queue drops the item.
        if cfg!(not(miri)) {
            ledger.assert_dropped_once(100);
        }
        drop((tx, other));
        ledger.assert_dropped_once(100);
    }
}

pub(crate) fn handles_can_be_sent_and_shared<C: Case>() {
    fn is_shareable(_: &(impl Send + Sync + Clone)) {}
    let (tx, rx) = channel::<C, Cell<u64>>(1);
    is_shareable(&tx);
    is_shareable(&rx);
    thread::scope(|scope| {
        scope.spawn(|| tx.push(Cell::new(7)).unwrap());
        assert_eq!(rx.pop().unwrap().get(), 7);
    });
}

pub(crate) fn handles_count_for_a_queue_that_counts<C: Case>() {
    let options = Options::new().stats::<mpmc::Counting>();
    let (tx, rx) = mpmc::any_channel::<u64, C::Design, _, _>(4, options).expect("a good capacity");
    tx.push(1).unwrap();
    tx.clone().push(2).unwrap();
    assert_eq!(rx.pop(), Ok(1));
    let stats = rx.stats();
    assert_eq!((stats.push.items, stats.pop.items, tx.stats()), (2, 1, stats));
}

pub(crate) fn bad_capacities_are_refused_with_no_handle<C: Case>() {
    let make = |capacity| mpmc::any_channel::<u64, C::Design, _, NoStats>(capacity, Options::new()).err();
    assert_eq!(make(0), Some(corelane::error::ChannelError::ZeroCapacity));
    assert_eq!(make(usize::MAX), Some(corelane::error::ChannelError::TooLarge));
}

pub(crate) fn debug_of_a_handle_shows_no_item<C: Case>() {
    let (tx, rx) = channel::<C, String>(1);
    tx.push("secret".into()).unwrap();
    let text = format!("{tx:?} {rx:?} {:?} {:?}", rx.iter(), rx.clone().into_iter());
    assert!(!text.contains("secret") && text.contains("Sender") && text.contains("Receiver"));
}
