//! The synchronous queues: the dual queue, and the dual stack with and without elimination.

use crate::first::first;
use crate::shared::{EACH, check, join, spawn};
use crate::thread;
use crate::{Item, Ledger, draw, explore, in_time, many, one_of, soon};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::{CancelToken, Fairness, SynchronousQueue, WaitLimit};
use corelane::wait::Park;
use std::sync::Arc;

pub(crate) type Queue = SynchronousQueue<Item>;

/// A kind of synchronous queue.
pub(crate) trait Mode: 'static {
    fn queue() -> Queue;
}

/// The most nodes that so few threads may need at once, the first row included.
pub(crate) const NODES: usize = 1_024;

pub(crate) struct Fair;
pub(crate) struct Unfair;
/// Unfair, with elimination: a request that is disturbed goes to the arena.
pub(crate) struct Eliminating;

impl Mode for Fair {
    fn queue() -> Queue {
        SynchronousQueue::new(Fairness::Fair)
    }
}

impl Mode for Unfair {
    fn queue() -> Queue {
        SynchronousQueue::new(Fairness::Unfair)
    }
}

impl Mode for Eliminating {
    fn queue() -> Queue {
        SynchronousQueue::with_elimination()
    }
}

fn queue<M: Mode>() -> Arc<Queue> {
    Arc::new(M::queue())
}

/// Hands over so many items by drawn calls, some of which give up and try again. Returns those that were taken until
/// the queue was closed.
fn put_all(queue: &Queue, ledger: &Ledger, producer: usize, items: usize, stop: &CancelToken) -> Vec<usize> {
    let mut accepted = Vec::new();
    let mut next = 0;
    while next < items {
        let number = producer * EACH + next;
        let item = ledger.item(number);
        let handed_over = match draw(0..6) {
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
            3 => {
                let mut ticket = queue.reserve_put(item);
                if draw(0..2) == 0 {
                    thread::yield_now();
                }
                match ticket.try_followup() {
                    Some(Ok(())) => true,
                    Some(Err(_)) => return accepted,
                    None => match ticket.abort() {
                        Some(item) => item.id != number,
                        None => true,
                    },
                }
            }
            4 => match queue.reserve_put(item).wait_with(&WaitLimit::new().timeout(soon()).cancel(stop)) {
                Ok(()) => true,
                Err(PushTimeoutError::Closed(_)) => return accepted,
                Err(PushTimeoutError::Cancelled(item) | PushTimeoutError::Timeout(item)) => item.id != number,
                Err(error) => panic!("{error}"),
            },
            _ => match queue.put(item) {
                Ok(()) => true,
                Err(_) => return accepted,
            },
        };
        if handed_over {
            accepted.push(number);
            next += 1;
        } else {
            thread::yield_now();
        }
    }
    accepted
}

/// Takes items by drawn calls, until the queue is closed.
fn take_all(queue: &Queue, stop: &CancelToken) -> Vec<usize> {
    let mut taken = Vec::new();
    loop {
        let item = match draw(0..7) {
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
            4 => match queue.reserve_take().wait_with(&WaitLimit::new().timeout(soon()).cancel(stop)) {
                Ok(item) => Some(item),
                Err(PopTimeoutError::Closed) => return taken,
                Err(_) => None,
            },
            5 => {
                let mut items = Vec::new();
                let _ = queue.try_take_batch(&mut items, draw(0..4));
                taken.extend(items.iter().map(|item| item.id));
                None
            }
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

/// Requests of all kinds, that wait, give up, are cancelled: puts and takes are partners one to one.
pub(crate) fn items_come_once_and_in_order<M: Mode>() {
    explore(|| {
        let (queue, ledger, stop) = (queue::<M>(), Ledger::default(), CancelToken::new());
        let takers = (0..draw(1..4)).map(|_| {
            let stop = stop.clone();
            spawn(&queue, move |queue| take_all(queue, &stop))
        });
        let takers = takers.collect::<Vec<_>>();
        let putters = (0..draw(1..4)).map(|producer| {
            let (ledger, stop, items) = (ledger.clone(), stop.clone(), many(draw(0..20)));
            spawn(&queue, move |queue| {
                let accepted = put_all(queue, &ledger, producer, items, &stop);
                assert_eq!(accepted.len(), items);
                accepted
            })
        });
        let putters = putters.collect::<Vec<_>>();
        if draw(0..3) == 0 {
            (0..draw(0..100)).for_each(|_| thread::yield_now());
            stop.cancel();
        }
        let accepted = join(putters);
        queue.close();
        check(&accepted, &join(takers));
        assert_eq!((queue.waiting_takes(), queue.waiting_puts()), (0, 0));
        assert!(queue.nodes() <= NODES, "{} nodes", queue.nodes());
        drop(queue);
        ledger.assert_all_dropped();
    });
}

/// No thread gives up, so nothing makes a lost wake-up good.
pub(crate) fn as_many_puts_as_takes<M: Mode>() {
    explore(|| {
        let (queue, ledger, items) = (queue::<M>(), Ledger::default(), many(draw(1..12)));
        let (putters, takers) = one_of(&[(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (4, 2)]);
        let putters = (0..putters).map(|producer| {
            let (ledger, items) = (ledger.clone(), items * takers);
            spawn(&queue, move |queue| {
                let numbers = (0..items).map(|i| producer * EACH + i).collect::<Vec<_>>();
                numbers.iter().for_each(|&number| queue.put(ledger.item(number)).unwrap());
                numbers
            })
        });
        let putters = putters.collect::<Vec<_>>();
        let share = items * putters.len();
        let takers = (0..takers)
            .map(|_| spawn(&queue, move |queue| (0..share).map(|_| queue.take().unwrap().id).collect::<Vec<_>>()));
        let taken = join(takers.collect());
        check(&join(putters), &taken);
        drop(queue);
        ledger.assert_all_dropped();
    });
}

/// Each put has a partner or its item back, wherever the close falls.
pub(crate) fn a_close_in_midstream<M: Mode>() {
    explore(|| {
        let (queue, ledger, stop) = (queue::<M>(), Ledger::default(), CancelToken::new());
        let takers = (0..draw(1..4)).map(|_| {
            let stop = stop.clone();
            spawn(&queue, move |queue| take_all(queue, &stop))
        });
        let takers = takers.collect::<Vec<_>>();
        let putters = (0..draw(1..4)).map(|producer| {
            let (ledger, stop, items) = (ledger.clone(), stop.clone(), many(40));
            spawn(&queue, move |queue| put_all(queue, &ledger, producer, items, &stop))
        });
        let putters = putters.collect::<Vec<_>>();
        (0..draw(0..60)).for_each(|_| thread::yield_now());
        queue.close();
        check(&join(putters), &join(takers));
        drop(queue);
        ledger.assert_all_dropped();
    });
}

/// Many requests come, give up and are swept out around one that stays: it is found, and the nodes are used again.
pub(crate) fn one_that_stays_is_found<M: Mode>() {
    explore(|| {
        let (queue, ledger) = (queue::<M>(), Ledger::default());
        let mut stays = queue.reserve_take();
        let others = (0..draw(1..4)).map(|_| {
            spawn(&queue, |queue| {
                for _ in 0..draw(1..50) {
                    assert!(in_time(PopTimeoutError::is_timeout, |time| queue.take_timeout(time)).is_err());
                    if draw(0..4) == 0 {
                        let tickets = (0..draw(1..4)).map(|_| queue.reserve_take()).collect::<Vec<_>>();
                        assert!(tickets.into_iter().all(|ticket| ticket.abort().is_none()));
                    }
                }
            })
        });
        join(others.collect());
        assert_eq!(queue.waiting_takes(), 1);
        queue.try_put(ledger.item(7)).ok().unwrap();
        assert_eq!(stays.try_followup().unwrap().unwrap().id, 7);
        drop(stays);
        assert_eq!(queue.waiting_takes(), 0);
        assert!(queue.nodes() <= NODES, "{} nodes", queue.nodes());
        drop(queue);
        ledger.assert_all_dropped();
    });
}

/// A thread sleeps for two queues at once.
pub(crate) fn a_select_misses_nothing<M: Mode>() {
    explore(|| {
        let (queues, ledger) = ([queue::<M>(), queue::<M>()], Ledger::default());
        let counts = [many(draw(0..12)), many(draw(0..12))];
        let putters = [0, 1].map(|producer| {
            let (ledger, count) = (ledger.clone(), counts[producer]);
            spawn(&queues[producer], move |queue| {
                let numbers = (0..count).map(|i| producer * EACH + i).collect::<Vec<_>>();
                numbers.iter().for_each(|&number| queue.put(ledger.item(number)).unwrap());
                numbers
            })
        });
        let mut taken = Vec::new();
        while taken.len() < counts[0] + counts[1] {
            let mut tickets = [queues[0].reserve_take(), queues[1].reserve_take()];
            let limit = (draw(0..2) == 0).then(soon);
            first(&mut tickets, &Park, limit);
            taken.extend(tickets.into_iter().filter_map(|ticket| ticket.abort()).map(|item| item.id));
        }
        check(&join(putters.into()), &[taken]);
        drop(queues);
        ledger.assert_all_dropped();
    });
}
