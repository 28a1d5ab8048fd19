//! Hand-offs, of the synchronous queue in all its forms and of the transfer queue. An item is taken once or given back,
//! and those of one producer come in its order.

use crate::first::first;
use crate::meeting::Queue;
use crate::shared::{EACH, check, join, spawn};
use crate::thread;
use crate::{Item, draw, explore, many, one_of, soon};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::{CancelToken, Fairness, SynchronousQueue, TransferQueue, WaitLimit};
use corelane::wait::Park;
use std::sync::Arc;

pub(crate) trait Mode: 'static {
    type Queue: Queue<Item> + Send + Sync + 'static;

    fn queue() -> Arc<Self::Queue>;
}

/// However many take part, nodes do not grow beyond this.
pub(crate) const NODES: usize = 1_024;

pub(crate) struct Fair;
pub(crate) struct Unfair;
pub(crate) struct Eliminating;
pub(crate) struct Transfer;

impl Mode for Fair {
    type Queue = SynchronousQueue<Item>;

    fn queue() -> Arc<Self::Queue> {
        Arc::new(SynchronousQueue::new(Fairness::Fair))
    }
}

impl Mode for Unfair {
    type Queue = SynchronousQueue<Item>;

    fn queue() -> Arc<Self::Queue> {
        Arc::new(SynchronousQueue::new(Fairness::Unfair))
    }
}

impl Mode for Eliminating {
    type Queue = SynchronousQueue<Item>;

    fn queue() -> Arc<Self::Queue> {
        Arc::new(SynchronousQueue::with_elimination())
    }
}

impl Mode for Transfer {
    type Queue = TransferQueue<Item>;

    fn queue() -> Arc<Self::Queue> {
        Arc::new(TransferQueue::new())
    }
}

/// None if the queue is closed; else whether the item was handed over, or had been when the wait was given up.
fn of_put(put: Result<(), PushTimeoutError<Item>>, number: usize) -> Option<bool> {
    match put {
        Ok(()) => Some(true),
        Err(PushTimeoutError::Closed(_)) => None,
        Err(PushTimeoutError::Timeout(item) | PushTimeoutError::Cancelled(item)) => {
            assert_eq!(item.id, number);
            Some(false)
        }
        Err(error) => panic!("{error}"),
    }
}

/// Puts a producer's items in all ways until they are all taken, or the queue is closed. Returns those it accepted.
fn put_all<Q: Queue<Item>>(queue: &Q, producer: usize, items: usize, stop: &CancelToken) -> Vec<usize> {
    let mut accepted = Vec::new();
    while accepted.len() < items {
        let number = producer * EACH + accepted.len();
        let item = Item::new(number);
        let handed_over = match draw(0..if Q::DRAINS { 8 } else { 6 }) {
            0 => match queue.try_put(item) {
                Ok(()) => Some(true),
                Err(TryPushError::Full(_)) => Some(false),
                Err(TryPushError::Closed(_)) => None,
                Err(error) => panic!("{error}"),
            },
            1 => of_put(queue.put_with(item, &WaitLimit::new().timeout(soon())), number),
            2 => of_put(queue.put_with(item, &WaitLimit::new().cancel(stop)), number),
            3 => {
                let mut ticket = queue.reserve_put(item);
                if draw(0..2) == 0 {
                    thread::yield_now();
                }
                match ticket.try_followup() {
                    Some(told) => told.is_ok().then_some(true),
                    None => Some(ticket.abort().is_none()),
                }
            }
            4 => {
                let ticket = queue.reserve_put(item);
                of_put(ticket.wait_with(&WaitLimit::new().timeout(soon()).cancel(stop)), number)
            }
            5 => of_put(queue.put_with(item, &WaitLimit::new()), number),
            _ => queue.leave(item).is_ok().then_some(true),
        };
        match handed_over {
            Some(true) => accepted.push(number),
            Some(false) => thread::yield_now(),
            None => break,
        }
    }
    accepted
}

/// Takes in all ways until the queue is closed and has no more.
fn take_all(queue: &impl Queue<Item>, stop: &CancelToken) -> Vec<usize> {
    let mut taken = Vec::new();
    let of_take = |take: Result<Item, PopTimeoutError>| match take {
        Ok(item) => Some(Some(item)),
        Err(PopTimeoutError::Closed) => None,
        Err(_) => Some(None),
    };
    loop {
        let item = match draw(0..7) {
            0 => match queue.try_take() {
                Ok(item) => Some(Some(item)),
                Err(TryPopError::Empty) => Some(None),
                Err(TryPopError::Closed) => None,
                Err(error) => panic!("{error}"),
            },
            1 => of_take(queue.take_with(&WaitLimit::new().timeout(soon()))),
            2 => of_take(queue.take_with(&WaitLimit::new().cancel(stop))),
            3 => Some(queue.reserve_take().abort()),
            4 => of_take(queue.reserve_take().wait_with(&WaitLimit::new().timeout(soon()).cancel(stop))),
            5 => {
                let mut items = Vec::new();
                let _ = queue.try_take_batch(&mut items, draw(0..4));
                taken.extend(items.iter().map(|item| item.id));
                Some(None)
            }
            _ => of_take(queue.take_with(&WaitLimit::new())),
        };
        match item {
            Some(Some(item)) => taken.push(item.id),
            Some(None) => thread::yield_now(),
            None => return taken,
        }
    }
}

fn traffic<M: Mode>(closes_early: bool) {
    explore(move || {
        let (queue, stop) = (M::queue(), CancelToken::new());
        let takers = (0..draw(1..4)).map(|_| {
            let stop = stop.clone();
            spawn(&queue, move |queue| take_all(queue, &stop))
        });
        let takers = takers.collect::<Vec<_>>();
        let putters = (0..draw(1..4)).map(|producer| {
            let items = many(if closes_early { 40 } else { draw(0..20) });
            let stop = stop.clone();
            spawn(&queue, move |queue| {
                let accepted = put_all(queue, producer, items, &stop);
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
        assert_eq!((queue.waiting_takes(), queue.puts()), (0, 0));
        assert!(queue.nodes() <= NODES, "{} nodes", queue.nodes());
    });
}

pub(crate) fn items_come_once_and_in_order<M: Mode>() {
    traffic::<M>(false);
}

pub(crate) fn a_close_in_midstream<M: Mode>() {
    traffic::<M>(true);
}

/// No call gives up, so each wake-up counts.
pub(crate) fn as_many_puts_as_takes<M: Mode>() {
    explore(|| {
        let (queue, items) = (M::queue(), many(draw(1..12)));
        let (putters, takers) = one_of(&[(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (4, 2)]);
        let putters = (0..putters).map(|producer| {
            let items = items * takers;
            spawn(&queue, move |queue| {
                let numbers = (0..items).map(|i| producer * EACH + i).collect::<Vec<_>>();
                numbers.iter().for_each(|&number| queue.put_with(Item::new(number), &WaitLimit::new()).unwrap());
                numbers
            })
        });
        let putters = putters.collect::<Vec<_>>();
        let share = items * putters.len();
        let takers = (0..takers).map(|_| {
            spawn(&queue, move |queue| {
                (0..share).map(|_| queue.take_with(&WaitLimit::new()).unwrap().id).collect::<Vec<_>>()
            })
        });
        let taken = join(takers.collect());
        check(&join(putters), &taken);
    });
}

/// A request that stays is found by one that comes, whatever others do in between.
pub(crate) fn one_that_stays_is_found<M: Mode>() {
    explore(|| {
        let queue = M::queue();
        let mut stays = queue.reserve_take();
        let others = (0..draw(1..4)).map(|_| {
            spawn(&queue, |queue| {
                for _ in 0..draw(1..50) {
                    assert!(queue.take_with(&WaitLimit::new().timeout(soon())).is_err());
                    if draw(0..4) == 0 {
                        let tickets = (0..draw(1..4)).map(|_| queue.reserve_take()).collect::<Vec<_>>();
                        assert!(tickets.into_iter().all(|ticket| ticket.abort().is_none()));
                    }
                }
            })
        });
        join(others.collect());
        assert_eq!(queue.waiting_takes(), 1);
        queue.try_put(Item::new(7)).ok().unwrap();
        assert_eq!(stays.try_followup().unwrap().unwrap().id, 7);
        drop(stays);
        assert_eq!(queue.waiting_takes(), 0);
        assert!(queue.nodes() <= NODES, "{} nodes", queue.nodes());
    });
}

pub(crate) fn a_select_misses_nothing<M: Mode>() {
    explore(|| {
        let queues = [M::queue(), M::queue()];
        let counts = [many(draw(0..12)), many(draw(0..12))];
        let putters = [0, 1].map(|producer| {
            let count = counts[producer];
            spawn(&queues[producer], move |queue| {
                let numbers = (0..count).map(|i| producer * EACH + i).collect::<Vec<_>>();
                numbers.iter().for_each(|&number| queue.put_with(Item::new(number), &WaitLimit::new()).unwrap());
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
    });
}

/// Of the transfer queue: a close keeps what was left and sends those away that wait.
pub(crate) fn a_close_sends_away_who_waits<M: Mode>() {
    explore(|| {
        let queue = M::queue();
        let putters = (0..draw(1..5)).map(|producer| {
            let left = draw(0..3);
            spawn(&queue, move |queue| {
                let items = (0..left).map(|i| producer * EACH + i);
                let left = items.take_while(|&number| queue.leave(Item::new(number)).is_ok()).collect::<Vec<_>>();
                let last = producer * EACH + EACH - 1;
                let put = queue.put_with(Item::new(last), &WaitLimit::new());
                assert!(matches!(put, Err(PushTimeoutError::Closed(item)) if item.id == last));
                left
            })
        });
        let putters = putters.collect::<Vec<_>>();
        (0..draw(0..16)).for_each(|_| thread::yield_now());
        queue.close();
        let left = join(putters);
        let taken = std::iter::from_fn(|| queue.try_take().ok()).map(|item| item.id).collect();
        check(&left, &[taken]);
    });
}

/// Of the transfer queue: each thread leaves an item before it takes one.
pub(crate) fn no_try_take_misses_an_item<M: Mode>() {
    explore(|| {
        let queue = M::queue();
        let threads = (0..draw(2..5)).map(|producer| {
            let rounds = many(draw(1..20));
            spawn(&queue, move |queue| {
                for i in 0..rounds {
                    queue.leave(Item::new(producer * EACH + i)).ok().unwrap();
                    assert!(queue.try_take().is_ok());
                }
            })
        });
        join(threads.collect());
        assert!(queue.is_empty());
    });
}
