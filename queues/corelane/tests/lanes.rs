//! The queue of a lane for each sender: the calls, order and closing of `mpmc`, where order is each sender's own.
//! A test that hangs ends the process and is named.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[cfg(not(miri))]
#[path = "support/cpu_time.rs"]
mod cpu_time;
#[path = "support/histories.rs"]
mod histories;
#[path = "support/random.rs"]
mod random;
#[path = "support/stops.rs"]
mod stops;
#[allow(dead_code, reason = "no item of these panics")]
#[path = "support/tracked.rs"]
mod tracked;
#[path = "support/watchdog.rs"]
mod watchdog;

use corelane::error::{ChannelError, Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::Options;
use corelane::mpmc::lanes::{self, Receiver, Sender};
use corelane::wait::{Adaptive, Next, Park, Select, Spin, SpinPark, Strategy, WaitState, Yield};
use histories::{Clock, Event, Gate};
use random::Random;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use stops::Stops;
use tracked::{Ledger, Tracked};
use watchdog::guard;

/// Short, and longer than any spin.
const NAP: Duration = Duration::from_millis(5);
/// Far longer than a test.
const LONG: Duration = Duration::from_secs(100);

fn channel_with<T: Send, W: Strategy>(capacity: usize, wait: W) -> (Sender<T, W>, Receiver<T, W>) {
    lanes::channel_with(capacity, Options::new().wait(wait).start_at(usize::MAX - 3)).expect("a good capacity")
}

/// Positions wrap around soon.
fn channel<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    channel_with(capacity, Adaptive)
}

/// The items of sender s are `s << 32 | 0..`.
fn item(sender: usize, i: u64) -> u64 {
    (sender as u64) << 32 | i
}

fn parts(item: u64) -> (usize, u64) {
    ((item >> 32) as usize, item & 0xffff_ffff)
}

mod calls {
    use super::*;

    #[test]
    fn every_call_is_there() {
        guard(|| {
            let (mut tx, mut rx) = channel(4);
            assert_eq!((tx.push(0), tx.try_push(1), tx.push_timeout(2, NAP)), (Ok(()), Ok(()), Ok(())));
            assert_eq!((tx.len(), tx.is_empty(), tx.capacity()), (3, false, 4));
            let mut batch = vec![3];
            assert_eq!(tx.push_batch(&mut batch), Ok(()));
            batch.push(4);
            assert_eq!(tx.try_push(4), Err(TryPushError::Full(4)));
            assert_eq!(tx.push_timeout(4, NAP), Err(PushTimeoutError::Timeout(4)));
            assert_eq!(tx.try_push_batch(&mut batch), Err(TryPushError::Full(())));
            assert_eq!(tx.push_batch_timeout(&mut batch, NAP), Err(PushTimeoutError::Timeout(())));
            assert_eq!(batch, [4]);
            assert_eq!((rx.pop(), rx.try_pop(), rx.pop_timeout(NAP)), (Ok(0), Ok(1), Ok(2)));
            assert_eq!(tx.try_push_batch(&mut batch), Ok(1));
            assert_eq!(tx.push_batch_timeout(&mut vec![5], NAP), Ok(()));
            assert_eq!((tx.try_push_batch(&mut batch), tx.push_batch(&mut batch)), (Ok(0), Ok(())));
            let mut items = Vec::new();
            assert_eq!((rx.pop_batch(&mut items, 0), rx.try_pop_batch(&mut items, 0)), (Ok(0), Ok(0)));
            assert_eq!((rx.pop_batch(&mut items, 1), rx.try_pop_batch(&mut items, 1)), (Ok(1), Ok(1)));
            assert_eq!(rx.pop_batch_timeout(&mut items, 9, NAP), Ok(1));
            assert_eq!(items, [3, 4, 5]);
            assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
            assert_eq!(rx.try_pop_batch(&mut items, 1), Err(TryPopError::Empty));
            assert_eq!(rx.pop_timeout(NAP), Err(PopTimeoutError::Timeout));
            assert_eq!(rx.pop_batch_timeout(&mut items, 1, NAP), Err(PopTimeoutError::Timeout));
        });
    }

    #[test]
    fn each_sender_has_room_and_an_order_of_its_own() {
        let (tx, mut rx) = channel(2);
        let mut senders = [tx.clone(), tx.clone(), tx];
        for (number, tx) in senders.iter_mut().enumerate() {
            (0..2).for_each(|i| tx.push(item(number, i)).unwrap());
            assert_eq!(tx.try_push(9), Err(TryPushError::Full(9)));
        }
        // A batch goes on to the next lane.
        let mut items = Vec::new();
        assert_eq!(rx.try_pop_batch(&mut items, 5), Ok(5));
        items.push(rx.try_pop().unwrap());
        let of = |sender| items.iter().map(|&item| parts(item)).filter(move |&(of, _)| of == sender).map(|(_, i)| i);
        assert!((0..3).all(|sender| of(sender).eq(0..2)));
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    }

    /// A receiver that finds no end to one lane comes to the others in time.
    #[test]
    fn no_lane_waits_for_another_to_be_empty() {
        for max in [1, 10] {
            let (mut tx, mut rx) = channel(1000);
            let mut other = tx.clone();
            // Whether the other one's item was popped.
            let mut pop = || {
                while tx.try_push(item(0, 0)).is_ok() {}
                let mut items = Vec::new();
                match max {
                    1 => items.push(rx.try_pop().unwrap()),
                    _ => assert_eq!(rx.try_pop_batch(&mut items, max), Ok(max)),
                }
                items.into_iter().any(|item| parts(item).0 == 1)
            };
            // It stands at the one lane when the other one's item comes.
            assert!(!pop());
            other.push(item(1, 0)).unwrap();
            assert!((0..200).any(|_| pop()), "the other lane's item was not popped");
        }
    }

    #[test]
    fn capacities_that_cannot_be_are_refused() {
        assert_eq!(lanes::try_channel::<u8>(0).err(), Some(ChannelError::ZeroCapacity));
        assert_eq!(lanes::try_channel::<u64>(usize::MAX).err(), Some(ChannelError::TooLarge));
    }

    #[test]
    fn items_are_any_that_can_be_sent() {
        fn is_send(_: &impl Send) {}
        let (mut tx, mut rx) = channel(2);
        is_send(&tx);
        is_send(&rx);
        tx.push(Cell::new(7)).unwrap();
        assert_eq!(rx.pop().unwrap().get(), 7);
        let (mut tx, mut rx) = channel(3);
        (0..3).for_each(|_| tx.push(()).unwrap());
        assert_eq!(tx.try_push(()), Err(TryPushError::Full(())));
        assert_eq!(rx.pop_batch(&mut Vec::new(), 9), Ok(3));
        let (mut tx, mut rx) = channel(2);
        tx.push([7_u64; 512]).unwrap();
        assert_eq!(rx.pop(), Ok([7; 512]));
    }

    #[test]
    fn debug_shows_no_item() {
        let (mut tx, mut rx) = channel(1);
        tx.push("secret".to_owned()).unwrap();
        let text = format!("{tx:?} {rx:?} {:?}", rx.clone().into_iter()) + &format!("{:?}", rx.iter());
        assert!(!text.contains("secret") && text.contains("Sender") && text.contains("Receiver"));
    }
}

mod order {
    use super::*;

    const ITEMS: u64 = if cfg!(miri) { 20 } else { 1_000 };
    /// More threads than the machine has cores, in any mix of a few.
    const THREADS: [(usize, usize); 4] = [(1, 1), (3, 1), (1, 3), (4, 4)];

    /// Runs so many senders and receivers; checks that each item comes once, and each sender's in order at each
    /// receiver.
    fn traffic(
        capacity: usize,
        push: impl Fn(&mut Sender<u64>, &mut Random, usize) + Sync,
        pop: impl Fn(&mut Receiver<u64>, &mut Random, &mut Vec<u64>) -> bool + Sync,
    ) {
        for (senders, receivers) in THREADS {
            let (tx, rx) = channel(capacity);
            let mut seen = vec![0_u64; senders];
            thread::scope(|scope| {
                let (push, pop) = (&push, &pop);
                let poppers: Vec<_> = (0..receivers)
                    .map(|receiver| {
                        let mut rx = rx.clone();
                        scope.spawn(move || {
                            let (mut random, mut items) = (Random::new(100 + receiver as u64), Vec::new());
                            while pop(&mut rx, &mut random, &mut items) {
                                random.pause();
                            }
                            items
                        })
                    })
                    .collect();
                for sender in 0..senders {
                    let mut tx = tx.clone();
                    scope.spawn(move || push(&mut tx, &mut Random::new(sender as u64), sender));
                }
                drop(tx);
                for popper in poppers {
                    let mut last = vec![None; senders];
                    for (sender, i) in popper.join().unwrap().into_iter().map(parts) {
                        assert!(last[sender].replace(i).is_none_or(|last| last < i), "out of order");
                        seen[sender] += 1 + (i << 32);
                    }
                }
            });
            // Count and sum.
            let expected = ITEMS + ((ITEMS * (ITEMS - 1) / 2) << 32);
            assert!(seen.iter().all(|&seen| seen == expected), "an item was lost or came twice");
        }
    }

    fn push_in_batches(tx: &mut Sender<u64>, random: &mut Random, sender: usize) {
        let mut next = 0;
        while next < ITEMS {
            let end = (next + 1 + random.below(60) as u64).min(ITEMS);
            tx.push_batch(&mut (next..end).map(|i| item(sender, i)).collect()).unwrap();
            next = end;
            random.pause();
        }
    }

    #[test]
    fn single_items() {
        guard(|| {
            for capacity in [1, 3, 128] {
                let push = |tx: &mut Sender<u64>, random: &mut Random, sender| {
                    for i in 0..ITEMS {
                        tx.push(item(sender, i)).unwrap();
                        random.pause();
                    }
                };
                traffic(capacity, push, |rx, _, items| rx.pop().map(|item| items.push(item)).is_ok());
            }
        });
    }

    #[test]
    fn batches() {
        guard(|| {
            for capacity in [1, 3, 128] {
                traffic(capacity, push_in_batches, |rx, random, items| {
                    rx.pop_batch(items, 1 + random.below(50)).is_ok()
                });
            }
        });
    }

    #[test]
    fn try_calls() {
        guard(|| {
            for capacity in [1, 3, 128] {
                traffic(
                    capacity,
                    |tx, random, sender| {
                        for i in 0..ITEMS {
                            while let Err(refused) = tx.try_push(item(sender, i)) {
                                assert!(matches!(refused, TryPushError::Full(_)));
                                thread::yield_now();
                            }
                            random.pause();
                        }
                    },
                    |rx, _, items| match rx.try_pop() {
                        Ok(item) => {
                            items.push(item);
                            true
                        }
                        Err(TryPopError::Closed) => false,
                        Err(_) => {
                            thread::yield_now();
                            true
                        }
                    },
                );
            }
        });
    }

    #[test]
    fn singles_and_batches() {
        guard(|| {
            for capacity in [2, 50] {
                traffic(
                    capacity,
                    |tx, random, sender| {
                        if sender % 2 == 0 {
                            return push_in_batches(tx, random, sender);
                        }
                        (0..ITEMS).for_each(|i| tx.push(item(sender, i)).unwrap());
                    },
                    |rx, random, items| match random.below(3) {
                        0 => rx.pop_batch(items, 1 + random.below(50)).is_ok(),
                        1 => rx.try_pop_batch(items, 5) != Err(TryPopError::Closed),
                        _ => rx.pop().map(|item| items.push(item)).is_ok(),
                    },
                );
            }
        });
    }

    /// Handles come and go while items do: each is popped once, each lane is found, and all threads end by themselves.
    #[test]
    fn lanes_and_receivers_come_and_go() {
        guard(|| {
            for capacity in [1, 3, 64] {
                let (tx, rx) = channel::<u64>(capacity);
                let mut popped = thread::scope(|scope| {
                    for sender in 0..3 {
                        let mut tx = tx.clone();
                        scope.spawn(move || {
                            let mut random = Random::new(sender);
                            for i in 0..ITEMS {
                                if random.below(10) == 0 {
                                    tx = tx.clone();
                                }
                                tx.push(sender * ITEMS + i).expect("receivers are there");
                            }
                        });
                    }
                    drop(tx);
                    let receivers = [0, 1, 2].map(|number| {
                        let mut rx = rx.clone();
                        scope.spawn(move || {
                            let (mut random, mut items) = (Random::new(100 + number), Vec::new());
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
                    receivers.into_iter().flat_map(|receiver| receiver.join().unwrap()).collect::<Vec<_>>()
                });
                popped.sort_unstable();
                assert!(popped.into_iter().eq(0..3 * ITEMS));
            }
        });
    }

    /// After a push has returned `Empty` would be a lie until the one receiver pops, in a lane that is new, too.
    #[test]
    fn a_push_that_returned_is_found() {
        /// Each clone has a lane until that is drained: without a bound they would grow while the receiver is stopped.
        const MOST: u64 = 1_000;
        guard(|| {
            let (tx, mut rx) = channel(8);
            let (pushed, popped, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
            thread::scope(|scope| {
                for _ in 0..2 {
                    let mut tx = tx.clone();
                    let (pushed, popped, stop) = (&pushed, &popped, &stop);
                    scope.spawn(move || {
                        let mut random = Random::new(7);
                        while !stop.load(Relaxed) {
                            if pushed.load(Relaxed) > popped.load(Relaxed) + MOST {
                                thread::yield_now();
                                continue;
                            }
                            if random.below(50) == 0 {
                                tx = tx.clone();
                            }
                            if tx.try_push(0).is_ok() {
                                pushed.fetch_add(1, SeqCst);
                            }
                        }
                    });
                }
                let _stops = Stops(&stop);
                for _ in 0..if cfg!(miri) { 100 } else { 30_000 } {
                    let popped_before = popped.load(Relaxed);
                    let inside = pushed.load(SeqCst) > popped_before;
                    match rx.try_pop() {
                        Ok(_) => popped.store(popped_before + 1, Relaxed),
                        Err(error) => assert!(!inside || error == TryPopError::Busy, "an item is inside"),
                    }
                }
            });
        });
    }
}

mod closing {
    use super::*;

    #[test]
    fn the_last_sender_closes() {
        guard(|| {
            let (mut tx, mut rx) = channel(8);
            let mut more = tx.clone();
            tx.push(0).unwrap();
            drop((tx, rx.clone()));
            assert!(!rx.is_closed() && !more.is_closed());
            assert_eq!((rx.pop(), rx.try_pop()), (Ok(0), Err(TryPopError::Empty)));
            more.push_batch(&mut vec![1, 2]).unwrap();
            let mut other = rx.clone();
            drop(more);
            assert!(rx.is_closed());
            assert_eq!((rx.pop(), other.try_pop()), (Ok(1), Ok(2)));
            assert_eq!((rx.pop(), rx.try_pop()), (Err(Closed(())), Err(TryPopError::Closed)));
            assert_eq!(rx.pop_timeout(LONG), Err(PopTimeoutError::Closed));
            assert_eq!(rx.pop_batch(&mut Vec::new(), 1), Err(Closed(())));
            assert_eq!((other.pop(), rx.clone().pop()), (Err(Closed(())), Err(Closed(()))));
        });
    }

    #[test]
    fn the_last_receiver_closes() {
        guard(|| {
            let (mut tx, rx) = channel(8);
            let mut other = rx.clone();
            drop(rx);
            tx.push(0).unwrap();
            assert_eq!(other.pop(), Ok(0));
            tx.push(1).unwrap();
            let mut sender = tx.clone();
            drop(other);
            assert!(tx.is_closed());
            assert_eq!((tx.push(2), sender.push(2)), (Err(Closed(2)), Err(Closed(2))));
            assert_eq!(tx.try_push(2), Err(TryPushError::Closed(2)));
            assert_eq!(tx.push_timeout(2, LONG), Err(PushTimeoutError::Closed(2)));
            let mut batch = vec![2, 3];
            assert_eq!(tx.push_batch(&mut batch), Err(Closed(())));
            assert_eq!(tx.try_push_batch(&mut batch), Err(TryPushError::Closed(())));
            assert_eq!(tx.push_batch_timeout(&mut batch, LONG), Err(PushTimeoutError::Closed(())));
            assert_eq!(batch, [2, 3]);
            // A lane that is made now is closed from the start.
            assert_eq!(tx.clone().push(4), Err(Closed(4)));
        });
    }

    #[test]
    fn any_handle_may_close() {
        for by_the_sender in [true, false] {
            let (mut tx, mut rx) = channel(8);
            let (mut other_tx, mut other_rx) = (tx.clone(), rx.clone());
            tx.push(0).unwrap();
            (0..2).for_each(|_| if by_the_sender { tx.close() } else { rx.close() });
            assert!(tx.is_closed() && rx.is_closed() && other_tx.is_closed() && other_rx.is_closed());
            assert_eq!((tx.push(1), other_tx.push(1)), (Err(Closed(1)), Err(Closed(1))));
            assert_eq!(tx.clone().push(1), Err(Closed(1)));
            assert_eq!((other_rx.pop(), rx.pop()), (Ok(0), Err(Closed(()))));
        }
    }

    #[test]
    fn waiting_threads_are_told() {
        guard(|| {
            for kind in 0..3 {
                let (tx, rx) = channel_with::<u64, _>(1, Park);
                thread::scope(|scope| {
                    let poppers = [(); 2].map(|()| {
                        let mut rx = rx.clone();
                        scope.spawn(move || rx.pop())
                    });
                    thread::sleep(NAP);
                    match kind {
                        0 => drop(tx),
                        1 => tx.close(),
                        _ => rx.close(),
                    }
                    assert_eq!(poppers.map(|popper| popper.join().unwrap()), [Err(Closed(())); 2]);
                });
                let (mut tx, rx) = channel_with::<u64, _>(1, Park);
                tx.push(0).unwrap();
                thread::scope(|scope| {
                    let mut batch_tx = tx.clone();
                    batch_tx.push(1).unwrap();
                    let push = scope.spawn(move || tx.push(7));
                    let batch = scope.spawn(move || {
                        let mut batch = vec![5, 6];
                        (batch_tx.push_batch(&mut batch), batch)
                    });
                    thread::sleep(NAP);
                    if kind == 0 {
                        drop(rx);
                    } else {
                        rx.close();
                    }
                    assert_eq!(
                        (push.join().unwrap(), batch.join().unwrap()),
                        (Err(Closed(7)), (Err(Closed(())), vec![5, 6]))
                    );
                });
            }
        });
    }

    /// Each item that was accepted is popped, and none other.
    #[test]
    fn a_close_races_pushes_and_pops() {
        guard(|| {
            for round in 0..if cfg!(miri) { 6 } else { 300 } {
                let (tx, rx) = channel::<u64>([1, 3, 100][round % 3]);
                let accepted = AtomicU64::new(0);
                let popped = thread::scope(|scope| {
                    for seed in 0..2 {
                        let (mut tx, accepted) = (tx.clone(), &accepted);
                        scope.spawn(move || {
                            let mut random = Random::new(seed);
                            loop {
                                let mut batch = vec![1; 1 + random.below(5)];
                                let count = batch.len();
                                let outcome = match count {
                                    1 => tx.push(1).map(|()| batch.clear()).map_err(|_| Closed(())),
                                    _ => tx.push_batch(&mut batch),
                                };
                                accepted.fetch_add((count - batch.len()) as u64, SeqCst);
                                if outcome.is_err() {
                                    break;
                                }
                            }
                            assert!(tx.is_closed() && tx.try_push(1).is_err());
                        });
                    }
                    let poppers = [(); 2].map(|()| {
                        let rx = rx.clone();
                        scope.spawn(move || rx.into_iter().sum::<u64>())
                    });
                    (0..round % 6).for_each(|_| thread::yield_now());
                    if round % 2 == 0 {
                        tx.close();
                    } else {
                        rx.close();
                    }
                    poppers.into_iter().map(|popper| popper.join().unwrap()).sum::<u64>()
                });
                assert_eq!(popped, accepted.into_inner());
            }
        });
    }

    /// The receivers go early: each item was popped, came back, or is dropped with the queue.
    #[test]
    fn each_item_is_dropped_once() {
        const ITEMS: usize = if cfg!(miri) { 40 } else { 2_000 };
        guard(|| {
            for round in 0..6 {
                let ledger = Ledger::new(2 * ITEMS);
                let (tx, rx) = channel::<Tracked>(16);
                thread::scope(|scope| {
                    for sender in 0..2 {
                        let (mut tx, ledger) = (tx.clone(), &ledger);
                        scope.spawn(move || {
                            for id in sender * ITEMS..(sender + 1) * ITEMS {
                                if let Err(Closed(item)) = tx.push(ledger.item(id)) {
                                    assert_eq!(item.id, id);
                                }
                            }
                        });
                        let mut rx = rx.clone();
                        scope.spawn(move || drop(rx.iter().take(ITEMS / 4 + ITEMS / 20 * round).collect::<Vec<_>>()));
                    }
                    drop((tx, rx));
                });
                ledger.assert_dropped_once(2 * ITEMS);
            }
        });
    }

    /// A push beside gives its item back, or leaves it to the receiver that goes.
    #[test]
    fn what_is_inside_goes_with_the_last_receiver() {
        for _ in 0..200 {
            let ledger = Ledger::new(100);
            let (mut tx, rx) = channel(100);
            let mut other = tx.clone();
            thread::scope(|scope| {
                scope.spawn(|| drop(rx));
                scope.spawn(|| (0..50).for_each(|id| drop(other.try_push(ledger.item(id)))));
                (50..100).for_each(|id| drop(tx.push(ledger.item(id))));
            });
            ledger.assert_dropped_once(100);
            assert!(tx.clone().push(ledger.item(0)).is_err());
        }
        let ledger = Ledger::new(4);
        let (mut tx, rx) = channel(4);
        let mut other = tx.clone();
        tx.push_batch(&mut vec![ledger.item(0), ledger.explosive(1)]).unwrap();
        other.push_batch(&mut vec![ledger.item(2), ledger.item(3)]).unwrap();
        catch_unwind(AssertUnwindSafe(|| drop(rx))).unwrap_err();
        ledger.assert_dropped_once(4);
    }

    /// What is inside lives as long as any receiver.
    #[test]
    fn the_lanes_go_with_the_last_handle() {
        for receiver_first in [true, false] {
            let ledger = Ledger::new(3);
            let (mut tx, rx) = channel(4);
            let (other_tx, other_rx) = (tx.clone(), rx.clone());
            tx.push_batch(&mut (0..3).map(|id| ledger.item(id)).collect()).unwrap();
            if receiver_first {
                drop((rx, tx));
                ledger.assert_dropped_once(0);
                drop(other_rx);
                ledger.assert_dropped_once(3);
                drop(other_tx);
            } else {
                drop((tx, other_tx, rx));
                ledger.assert_dropped_once(0);
                drop(other_rx);
            }
            ledger.assert_dropped_once(3);
        }
    }

    /// A strategy of which there is one at each end of a lane.
    #[derive(Clone, Debug)]
    struct Counted(#[allow(dead_code, reason = "its clones are counted")] Arc<()>);

    impl Strategy for Counted {
        fn next(&self, wait: &mut WaitState) -> Next {
            Park.next(wait)
        }
    }

    /// A lane whose sender is gone is given back once it is drained, by receivers that pop, and by one that sleeps.
    #[test]
    fn a_drained_lane_is_given_back() {
        guard(|| {
            const SENDERS: usize = if cfg!(miri) { 5 } else { 100 };
            let ends = Arc::new(());
            let (mut tx, mut rx) = channel_with(4, Counted(ends.clone()));
            let mut other = rx.clone();
            let few = Arc::strong_count(&ends) + 4;
            for _ in 0..SENDERS {
                tx.clone().push(1).unwrap();
                assert_eq!((rx.pop(), other.try_pop()), (Ok(1), Err(TryPopError::Empty)));
            }
            assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
            assert!(Arc::strong_count(&ends) <= few, "{} ends are left", Arc::strong_count(&ends));
            drop(other);
            thread::scope(|scope| {
                let receiver = scope.spawn(move || rx.pop());
                thread::sleep(NAP);
                (0..SENDERS).for_each(|_| drop(tx.clone()));
                let since = Instant::now();
                while Arc::strong_count(&ends) > few {
                    assert!(since.elapsed() < Duration::from_secs(20), "the receiver sleeps on");
                    thread::yield_now();
                }
                tx.push(2).unwrap();
                assert_eq!(receiver.join().unwrap(), Ok(2));
            });
        });
    }
}

mod waiting {
    use super::*;
    #[cfg(not(miri))]
    use crate::cpu_time::cpu_time;

    fn hands_over<W: Strategy + Sync>(wait: W) {
        for (capacity, items) in [(1, 300), (64, if cfg!(miri) { 100 } else { 3_000 })] {
            let (mut tx, mut rx) = channel_with(capacity, wait.clone());
            thread::scope(|scope| {
                scope.spawn(move || {
                    let mut random = Random::new(1);
                    for item in 0..items {
                        tx.push(item).unwrap();
                        random.pause();
                    }
                });
                let mut random = Random::new(2);
                for item in 0..items {
                    assert_eq!(rx.pop(), Ok(item));
                    random.pause();
                }
            });
        }
    }

    #[test]
    fn every_strategy_hands_over() {
        guard(|| {
            hands_over(Spin);
            hands_over(Yield);
            hands_over(SpinPark::new(1));
            hands_over(Park);
            hands_over(Adaptive);
        });
    }

    type Parking = Sender<u64, Park>;
    type Pop = fn(&mut Receiver<u64, Park>) -> u64;

    #[test]
    fn a_sleeping_receiver_is_woken_by_everything() {
        guard(|| {
            let wakes: [fn(&mut Parking); 7] = [
                |tx| tx.try_push(1).unwrap(),
                |tx| tx.push(1).unwrap(),
                |tx| tx.push_timeout(1, LONG).unwrap(),
                |tx| assert_eq!(tx.try_push_batch(&mut vec![1]), Ok(1)),
                |tx| tx.push_batch(&mut vec![1]).unwrap(),
                |tx| tx.push_batch_timeout(&mut vec![1], LONG).unwrap(),
                // In a lane that the receiver does not know of.
                |tx| tx.clone().push(1).unwrap(),
            ];
            let pops: [Pop; 3] = [
                |rx| rx.pop().unwrap(),
                |rx| rx.pop_timeout(LONG).unwrap(),
                |rx| {
                    let mut items = Vec::new();
                    assert_eq!(rx.pop_batch(&mut items, 9), Ok(1));
                    items[0]
                },
            ];
            for (wake, pop) in wakes.into_iter().flat_map(|wake| pops.map(|pop| (wake, pop))) {
                let (mut tx, mut rx) = channel_with(4, Park);
                thread::scope(|scope| {
                    let popper = scope.spawn(move || pop(&mut rx));
                    thread::sleep(NAP / 3);
                    wake(&mut tx);
                    assert_eq!(popper.join().unwrap(), 1);
                });
            }
        });
    }

    /// Nothing else happens after the one batch, the whole of which there is room for, or not.
    #[test]
    fn one_batch_wakes_all_it_has_items_for() {
        guard(|| {
            for capacity in [8, 2] {
                let (mut tx, rx) = channel_with(capacity, Park);
                let popped = AtomicUsize::new(0);
                thread::scope(|scope| {
                    for _ in 0..4 {
                        let (mut rx, popped) = (rx.clone(), &popped);
                        scope.spawn(move || {
                            rx.pop().unwrap();
                            popped.fetch_add(1, SeqCst);
                        });
                    }
                    thread::sleep(NAP);
                    tx.push_batch(&mut vec![1, 2, 3, 4]).unwrap();
                });
                assert_eq!(popped.into_inner(), 4);
            }
        });
    }

    #[test]
    fn times_are_kept() {
        guard(|| {
            for time in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(10)] {
                let (mut tx, mut rx) = channel_with(1, Park);
                let timed = |call: &mut dyn FnMut()| {
                    let since = Instant::now();
                    call();
                    assert!(since.elapsed() >= time, "{:?} is early for {time:?}", since.elapsed());
                };
                timed(&mut || assert_eq!(rx.pop_timeout(time), Err(PopTimeoutError::Timeout)));
                let none = &mut Vec::new();
                timed(&mut || assert_eq!(rx.pop_batch_timeout(none, 3, time), Err(PopTimeoutError::Timeout)));
                tx.push(0).unwrap();
                timed(&mut || assert_eq!(tx.push_timeout(9, time), Err(PushTimeoutError::Timeout(9))));
                let batch = &mut vec![8, 9];
                timed(&mut || assert_eq!(tx.push_batch_timeout(batch, time), Err(PushTimeoutError::Timeout(()))));
                assert_eq!((batch.len(), rx.pop()), (2, Ok(0)));
            }
        });
    }

    /// A lost wake-up would end the process by the watchdog: nothing else wakes these threads.
    #[test]
    fn no_wake_up_is_lost() {
        const ITEMS: usize = if cfg!(miri) { 50 } else { 4_000 };
        guard(|| {
            for capacity in [1, 3] {
                let (tx, rx) = channel_with(capacity, Park);
                thread::scope(|scope| {
                    for number in 0..3 {
                        let mut tx = tx.clone();
                        scope.spawn(move || {
                            let (mut random, mut left) = (Random::new(number), ITEMS);
                            while left != 0 {
                                let size = (1 + random.below(4)).min(left);
                                tx.push_batch(&mut vec![1; size]).unwrap();
                                left -= size;
                            }
                        });
                        let mut rx = rx.clone();
                        scope.spawn(move || {
                            let (mut random, mut items) = (Random::new(10 + number), Vec::new());
                            while items.len() < ITEMS {
                                let max = (1 + random.below(4)).min(ITEMS - items.len());
                                rx.pop_batch(&mut items, max).unwrap();
                            }
                        });
                    }
                });
            }
        });
    }

    /// Receivers that are woken and give up at the same moment take no other's wake-up along.
    #[test]
    fn wake_ups_survive_time_outs() {
        const ITEMS: u64 = if cfg!(miri) { 50 } else { 3_000 };
        guard(|| {
            let (tx, rx) = channel_with(1, Park);
            let popped = AtomicU64::new(0);
            thread::scope(|scope| {
                for _ in 0..2 {
                    let (mut rx, popped) = (rx.clone(), &popped);
                    scope.spawn(move || {
                        loop {
                            match rx.pop_timeout(Duration::from_micros(20)) {
                                Ok(_) => {
                                    popped.fetch_add(1, SeqCst);
                                }
                                Err(PopTimeoutError::Closed) => break,
                                Err(_) => {}
                            }
                        }
                    });
                }
                // Waits without a time; the last items of the others are its business, too.
                let (mut rx, popped) = (rx.clone(), &popped);
                scope.spawn(move || {
                    while rx.pop().is_ok() {
                        popped.fetch_add(1, SeqCst);
                    }
                });
                for _ in 0..2 {
                    let mut tx = tx.clone();
                    scope.spawn(move || (0..ITEMS).for_each(|item| tx.push(item).unwrap()));
                }
                drop(tx);
            });
            assert_eq!(popped.into_inner(), 2 * ITEMS);
        });
    }

    /// A receiver that is woken for an item and cannot take it is not the only one that knows of it.
    #[test]
    fn a_woken_receiver_that_panics_wakes_another() {
        guard(|| {
            for _ in 0..10 {
                let (mut tx, rx) = channel_with(4, Park);
                thread::scope(|scope| {
                    let (mut first, mut second) = (rx.clone(), rx.clone());
                    let full = scope.spawn(move || {
                        // No vector can grow beyond that. It ends by the close where it was not the first.
                        let mut items = vec![(); usize::MAX];
                        catch_unwind(AssertUnwindSafe(|| first.pop_batch(&mut items, 2)))
                            .is_ok_and(|popped| popped.is_ok())
                    });
                    thread::sleep(NAP);
                    let other = scope.spawn(move || second.pop());
                    thread::sleep(NAP);
                    tx.push(()).unwrap();
                    assert_eq!(other.join().unwrap(), Ok(()));
                    tx.close();
                    assert!(!full.join().unwrap());
                });
            }
        });
    }

    /// Idle for a tenth of a second, over many lanes: less than a twentieth of it awake.
    #[cfg(not(miri))]
    #[test]
    fn an_idle_receiver_sleeps() {
        guard(|| {
            let (mut tx, mut rx) = channel::<u64>(1);
            let _others: Vec<_> = (0..32).map(|_| tx.clone()).collect();
            thread::scope(|scope| {
                let popper = scope.spawn(move || {
                    let before = cpu_time();
                    rx.pop().unwrap();
                    Some(cpu_time()? - before?)
                });
                thread::sleep(Duration::from_millis(100));
                tx.push(1).unwrap();
                match popper.join().unwrap() {
                    Some(awake) => assert!(awake < Duration::from_millis(5), "{awake:?} awake"),
                    None => println!("skipped: no schedstat here"),
                }
            });
        });
    }

    #[test]
    fn a_select_waits_for_both_kinds() {
        guard(|| {
            let (mut tx, mut rx) = channel_with(1, Park);
            let (mut other_tx, mut other_rx) = channel_with(1, Park);
            thread::scope(|scope| {
                scope.spawn(move || {
                    for item in 0..200 {
                        tx.push(item).unwrap();
                        assert_eq!(other_rx.pop(), Ok(item));
                    }
                });
                for _ in 0..100 {
                    let mut select = Select::new();
                    let key = select.add(&mut rx);
                    assert_eq!(select.wait().unwrap(), key);
                    drop(select);
                    let item = rx.try_pop().unwrap();
                    other_tx.push(item).unwrap();
                    // Both: the item may come first, or the room.
                    let item = loop {
                        let mut select = Select::new();
                        let (pops, pushes) = (select.add(&mut rx), select.add(&mut other_tx));
                        let ready = select.wait().unwrap();
                        drop(select);
                        if ready == pops {
                            break rx.try_pop().unwrap();
                        }
                        assert!(ready == pushes && other_tx.is_empty());
                        thread::yield_now();
                    };
                    while other_tx.try_push(item).is_err() {
                        thread::yield_now();
                    }
                }
            });
            let mut select = Select::new();
            let key = select.add(&mut rx);
            assert_eq!(select.wait().unwrap(), key);
            drop(select);
            assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
        });
    }

    /// One select and one receiver, and items for both: a wake-up that a select does not use is passed on.
    #[test]
    fn a_select_passes_its_wake_up_on() {
        guard(|| {
            for _ in 0..if cfg!(miri) { 3 } else { 200 } {
                let (mut tx, rx) = channel_with(4, Park);
                thread::scope(|scope| {
                    let mut selected = rx.clone();
                    scope.spawn(move || {
                        let mut select = Select::new();
                        let key = select.add(&mut selected);
                        assert_eq!(select.wait().unwrap(), key);
                    });
                    let mut popping = rx.clone();
                    scope.spawn(move || popping.pop().unwrap());
                    thread::yield_now();
                    tx.push(1).unwrap();
                    // The select takes nothing, so its thread ends whether or not the other one was quicker.
                    while !tx.is_empty() {
                        thread::yield_now();
                    }
                    tx.push(2).unwrap();
                });
            }
        });
    }
}

/// Recorded histories of a few threads, judged lane by lane: each is a queue of its own, which every `Empty` and
/// `Closed` says is empty at a moment of the call.
mod history {
    use super::*;
    use todc_utils::Specification;

    const SENDERS: usize = 2;
    const RECEIVERS: usize = 2;
    const CALLS: usize = 6;
    const HISTORIES: u64 = 700;
    const BOUND: usize = 2;

    /// A batch is a sequence of single calls.
    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Call {
        Push(u64),
        Full,
        PushClosed,
        Pop(u64),
        Empty,
        PopClosed,
        Close,
    }

    struct Fifo;

    impl Specification for Fifo {
        /// With the greatest item that was pushed: they count up.
        type State = (VecDeque<u64>, bool, Option<u64>);
        type Operation = Call;

        fn init() -> Self::State {
            (VecDeque::new(), false, None)
        }

        fn apply(call: &Call, state: &Self::State) -> (bool, Self::State) {
            let (items, closed, last) = state;
            let mut next = state.clone();
            let holds = match call {
                Call::Push(item) => {
                    next.0.push_back(*item);
                    next.2 = Some(*item);
                    !closed && items.len() < BOUND && *last < next.2
                }
                Call::Full => !closed && items.len() == BOUND,
                Call::PushClosed => *closed,
                Call::Pop(item) => next.0.pop_front() == Some(*item),
                // A receiver may see a lane before it sees it closed.
                Call::Empty => items.is_empty(),
                Call::PopClosed => *closed && items.is_empty(),
                Call::Close => {
                    next.1 = true;
                    true
                }
            };
            if holds { (true, next) } else { (false, state.clone()) }
        }
    }

    /// The answers of each call.
    type Events = Vec<Event<Vec<Call>>>;

    /// What one lane saw of all calls: those of its sender, its items in the answers of receivers, and what was said of
    /// all lanes.
    fn of_lane(lane: usize, senders: &[Events], receivers: &[Events]) -> Vec<Event<Call>> {
        let senders =
            senders.iter().enumerate().flat_map(|(sender, events)| events.iter().map(move |event| (sender, event)));
        let receivers = receivers.iter().flatten().map(|event| (lane, event));
        let singles = senders
            .chain(receivers)
            .flat_map(|(of, &(begin, end, ref calls))| calls.iter().map(move |call| (of, (begin, end, call.clone()))));
        let concerns = |&(of, (_, _, ref call)): &(usize, Event<Call>)| match call {
            Call::Close => true,
            Call::Pop(item) => parts(*item).0 == lane,
            _ => of == lane,
        };
        singles.filter(concerns).map(|(_, event)| event).collect()
    }

    fn push(tx: &mut Sender<u64>, random: &mut Random, sender: usize, next: &mut u64) -> Vec<Call> {
        if random.below(30) == 0 {
            tx.close();
            return vec![Call::Close];
        }
        let count = 1 + random.below(3) as u64;
        let items: Vec<_> = (*next..*next + count).map(|i| item(sender, i)).collect();
        let outcome = match count {
            1 => tx.try_push(items[0]).map(|()| 1).map_err(|error| error.is_closed()),
            _ => tx.try_push_batch(&mut items.clone()).map_err(|error| error.is_closed()),
        };
        *next += count;
        match outcome {
            Ok(pushed) => items[..pushed].iter().copied().map(Call::Push).collect(),
            Err(false) => vec![Call::Full],
            Err(true) => vec![Call::PushClosed],
        }
    }

    fn pop(rx: &mut Receiver<u64>, random: &mut Random) -> Vec<Call> {
        let mut items = Vec::new();
        let outcome = match random.below(2) {
            0 => rx.try_pop().map(|item| items.push(item)),
            _ => rx.try_pop_batch(&mut items, 1 + random.below(3)).map(|_| ()),
        };
        match outcome {
            Ok(()) => items.into_iter().map(Call::Pop).collect(),
            Err(TryPopError::Empty) => vec![Call::Empty],
            Err(TryPopError::Closed) => vec![Call::PopClosed],
            // It claims nothing.
            Err(_) => vec![],
        }
    }

    #[test]
    fn each_lane_is_linearizable() {
        guard(|| {
            for round in 0..HISTORIES {
                let (clock, gate) = (Clock::default(), Gate::new(SENDERS + RECEIVERS));
                let (tx, rx) = channel(BOUND);
                let (senders, receivers) = thread::scope(|scope| {
                    let (clock, gate) = (&clock, &gate);
                    let senders: Vec<_> = (0..SENDERS)
                        .map(|sender| {
                            let mut tx = tx.clone();
                            scope.spawn(move || {
                                let (mut random, mut next) = (Random::new(round * 10 + sender as u64), 0);
                                gate.pass();
                                let events = (0..CALLS)
                                    .map(|_| {
                                        (0..random.below(30)).for_each(|_| std::hint::spin_loop());
                                        clock.time(|| push(&mut tx, &mut random, sender, &mut next))
                                    })
                                    .collect::<Events>();
                                // Its end is no close of the others' lanes.
                                (events, tx)
                            })
                        })
                        .collect();
                    let receivers: Vec<_> = (0..RECEIVERS)
                        .map(|number| {
                            let mut rx = rx.clone();
                            scope.spawn(move || {
                                let mut random = Random::new(round * 10 + 5 + number as u64);
                                gate.pass();
                                (0..CALLS)
                                    .map(|_| {
                                        (0..random.below(30)).for_each(|_| std::hint::spin_loop());
                                        clock.time(|| pop(&mut rx, &mut random))
                                    })
                                    .collect::<Events>()
                            })
                        })
                        .collect();
                    let (senders, _handles): (Vec<_>, Vec<_>) =
                        senders.into_iter().map(|sender| sender.join().unwrap()).unzip();
                    (senders, receivers.into_iter().map(|receiver| receiver.join().unwrap()).collect::<Vec<_>>())
                });
                for lane in 0..SENDERS {
                    let events = of_lane(lane, &senders, &receivers);
                    assert!(histories::is_linearizable::<Fifo>(events.clone()), "lane {lane}: {events:#?}");
                }
            }
            println!("{HISTORIES} histories judged");
        });
    }

    /// The checker itself: what no lane may do is found.
    #[test]
    fn the_checker_refuses_what_is_wrong() {
        let judge = |calls: &[Call]| {
            let events = calls.iter().enumerate().map(|(i, call)| (2 * i, 2 * i + 1, vec![call.clone()])).collect();
            histories::is_linearizable::<Fifo>(of_lane(0, &[], &[events]))
        };
        let (push, pop) = (Call::Push, Call::Pop);
        let right = [push(1), push(2), Call::Full, pop(1), pop(1 << 32), Call::Close, pop(2), Call::PopClosed];
        assert!(judge(&right));
        for wrong in [
            &[push(1), push(2), pop(2)][..],
            &[push(2), push(1)],
            &[push(1), Call::Empty],
            &[push(1), pop(1), pop(1)],
            &[push(1), Call::Full],
            &[push(1), push(2), push(3)],
            &[Call::Close, push(1)],
            &[push(1), Call::Close, Call::PopClosed],
            &[Call::PopClosed],
        ] {
            assert!(!judge(wrong), "{wrong:?}");
        }
    }
}
