//! The transfer queue, whose items are left behind or waited for.

use crate::shared::{EACH, check, join, spawn};
use crate::thread;
use crate::{Item, Ledger, draw, explore, in_time, many};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::{CancelToken, TransferQueue, WaitLimit};
use std::sync::Arc;

/// Leaves items behind or waits until they are taken, by drawn calls.
fn put_all(
    queue: &TransferQueue<Item>,
    ledger: &Ledger,
    producer: usize,
    items: usize,
    stop: &CancelToken,
) -> Vec<usize> {
    let mut accepted = Vec::new();
    let mut next = 0;
    while next < items {
        let number = producer * EACH + next;
        let item = ledger.item(number);
        let accepts = match draw(0..7) {
            0 => match queue.try_put(item) {
                Ok(()) => true,
                Err(TryPushError::Full(_)) => false,
                Err(TryPushError::Closed(_)) => return accepted,
                Err(error) => panic!("{error}"),
            },
            1 => match in_time(PushTimeoutError::is_timeout, |time| queue.put_timeout(item, time)) {
                Ok(()) => true,
                Err(PushTimeoutError::Timeout(item)) => item.id != number,
                Err(PushTimeoutError::Closed(_)) => return accepted,
                Err(error) => panic!("{error}"),
            },
            2 => match queue.put_with(item, &WaitLimit::new().cancel(stop)) {
                Ok(()) => true,
                Err(PushTimeoutError::Closed(_)) => return accepted,
                Err(PushTimeoutError::Cancelled(item) | PushTimeoutError::Timeout(item)) => item.id != number,
                Err(error) => panic!("{error}"),
            },
            3 => match queue.put(item) {
                Ok(()) => true,
                Err(_) => return accepted,
            },
            // A ticket that is aborted at once: after a close it has its item back, too.
            4 => queue.reserve_put(item).abort().is_none_or(|item| item.id != number),
            _ => match queue.push(item) {
                Ok(()) => true,
                Err(_) => return accepted,
            },
        };
        if accepts {
            accepted.push(number);
            next += 1;
        } else {
            thread::yield_now();
        }
    }
    accepted
}

/// Takes items by drawn calls, until the queue is closed and drained.
fn take_all(queue: &TransferQueue<Item>, stop: &CancelToken) -> Vec<usize> {
    let mut taken = Vec::new();
    loop {
        let item = match draw(0..6) {
            0 => match queue.try_take() {
                Ok(item) => Some(item),
                Err(TryPopError::Empty) => None,
                Err(TryPopError::Closed) => return taken,
                Err(error) => panic!("{error}"),
            },
            1 => match in_time(PopTimeoutError::is_timeout, |time| queue.take_timeout(time)) {
                Ok(item) => Some(item),
                Err(PopTimeoutError::Timeout) => None,
                Err(PopTimeoutError::Closed) => return taken,
                Err(error) => panic!("{error}"),
            },
            2 => match queue.take_with(&WaitLimit::new().cancel(stop)) {
                Ok(item) => Some(item),
                Err(PopTimeoutError::Closed) => return taken,
                Err(_) => None,
            },
            3 => queue.reserve_take().abort(),
            _ => match queue.take() {
                Ok(item) => Some(item),
                Err(_) => return taken,
            },
        };
        match item {
            Some(item) => taken.push(item.id),
            None => thread::yield_now(),
        }
    }
}

fn traffic(closes_early: bool) {
    explore(move || {
        let (queue, ledger, stop) = (Arc::new(TransferQueue::new()), Ledger::default(), CancelToken::new());
        let takers = (0..draw(1..4)).map(|_| {
            let stop = stop.clone();
            spawn(&queue, move |queue| take_all(queue, &stop))
        });
        let takers = takers.collect::<Vec<_>>();
        let putters = (0..draw(1..4)).map(|producer| {
            let (ledger, stop, items) = (ledger.clone(), stop.clone(), many(draw(0..30)));
            spawn(&queue, move |queue| {
                let accepted = put_all(queue, &ledger, producer, items, &stop);
                assert!(closes_early || accepted.len() == items);
                accepted
            })
        });
        let putters = putters.collect::<Vec<_>>();
        if draw(0..3) == 0 {
            (0..draw(0..100)).for_each(|_| thread::yield_now());
            stop.cancel();
        }
        let accepted = if closes_early {
            (0..draw(0..60)).for_each(|_| thread::yield_now());
            queue.close();
            join(putters)
        } else {
            let accepted = join(putters);
            queue.close();
            accepted
        };
        check(&accepted, &join(takers));
        assert!(queue.is_empty() && queue.waiting_takes() == 0);
        drop(queue);
        ledger.assert_all_dropped();
    });
}

#[test]
fn items_come_once_and_in_order() {
    traffic(false);
}

#[test]
fn a_close_in_midstream() {
    traffic(true);
}

/// No thread takes, so only the close can end a put: each has its item back. What was left stays.
#[test]
fn a_close_sends_away_who_waits() {
    explore(|| {
        let (queue, ledger) = (Arc::new(TransferQueue::new()), Ledger::default());
        let putters = (0..draw(1..5)).map(|producer| {
            let (ledger, left) = (ledger.clone(), draw(0..3));
            spawn(&queue, move |queue| {
                let items = (0..left).map(|i| producer * EACH + i);
                let left = items.take_while(|&number| queue.push(ledger.item(number)).is_ok()).collect::<Vec<_>>();
                let last = producer * EACH + EACH - 1;
                assert_eq!(queue.put(ledger.item(last)).unwrap_err().0.id, last);
                left
            })
        });
        let putters = putters.collect::<Vec<_>>();
        (0..draw(0..16)).for_each(|_| thread::yield_now());
        queue.close();
        let left = join(putters);
        let mut taken = Vec::new();
        while let Ok(item) = queue.take() {
            taken.push(item.id);
        }
        check(&left, &[taken]);
        drop(queue);
        ledger.assert_all_dropped();
    });
}

/// Each thread pushes before it takes, so each finds an item, whatever the others do.
#[test]
fn no_try_take_misses_an_item() {
    explore(|| {
        let (queue, ledger) = (Arc::new(TransferQueue::new()), Ledger::default());
        let threads = (0..draw(2..5)).map(|producer| {
            let (ledger, rounds) = (ledger.clone(), many(draw(1..20)));
            spawn(&queue, move |queue| {
                for i in 0..rounds {
                    queue.push(ledger.item(producer * EACH + i)).unwrap();
                    assert!(queue.try_take().is_ok());
                }
            })
        });
        join(threads.collect());
        assert!(queue.is_empty());
        drop(queue);
        ledger.assert_all_dropped();
    });
}

/// No thread gives up, so nothing makes a lost wake-up good.
#[test]
fn questions_are_answered() {
    explore(|| {
        let (ask, answer) = (Arc::new(TransferQueue::new()), Arc::new(TransferQueue::new()));
        let servers = (0..draw(1..3)).map(|_| {
            let answer = answer.clone();
            spawn(&ask, move |ask| {
                while let Ok(question) = ask.take() {
                    answer.push(question + EACH).unwrap();
                }
            })
        });
        let servers = servers.collect::<Vec<_>>();
        let clients = (0..draw(1..4)).map(|_| {
            let (ask, rounds) = (ask.clone(), many(draw(1..12)));
            spawn(&answer, move |answer| {
                for question in 0..rounds {
                    match draw(0..2) {
                        0 => ask.push(question).unwrap(),
                        _ => ask.put(question).unwrap(),
                    }
                    assert!(answer.take().unwrap() >= EACH);
                }
            })
        });
        join(clients.collect());
        ask.close();
        join(servers);
    });
}
