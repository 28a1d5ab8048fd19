//! What only lanes promise: each sender has a capacity and an order of its own.

use crate::case::NAP;
use crate::watchdog::guard;
use corelane::error::{TryPopError, TryPushError};
use corelane::mpmc::Options;
use corelane::mpmc::lanes::{self, Receiver, Sender};
use corelane::wait::{Adaptive, Next, Park, Select, Strategy, WaitState};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

fn channel_with<T: Send, W: Strategy>(capacity: usize, wait: W) -> (Sender<T, W>, Receiver<T, W>) {
    lanes::channel_with(capacity, Options::new().wait(wait).start_at(usize::MAX - 3)).expect("a good capacity")
}

fn channel<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    channel_with(capacity, Adaptive)
}

fn item(sender: usize, i: u64) -> u64 {
    (sender as u64) << 32 | i
}

fn parts(item: u64) -> (usize, u64) {
    ((item >> 32) as usize, item & 0xffff_ffff)
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
