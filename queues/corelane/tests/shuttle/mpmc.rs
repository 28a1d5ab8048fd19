//! Any number of both: every design.

use crate::thread::{self, JoinHandle};
use crate::{EACH, Item, Ledger, Wait, draw, explore, in_time, many, one_of, soon, wait};
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::{self, Design, NoStats, Options};
use std::sync::Arc;
use std::time::Duration;

/// A design under test.
pub(crate) trait Tested: Design<Item> + Design<usize> + Send + Sync + 'static {}
impl<D: Design<Item> + Design<usize> + Send + Sync + 'static> Tested for D {}

type Queue<T, D> = mpmc::Queue<T, D, Wait>;

/// Small ones, where all wait and nodes are used again all the time, and larger ones.
fn capacity() -> usize {
    if cfg!(corelane_shuttle) { one_of(&[1, 2, 3, 8, 64]) } else { one_of(&[1, 2, 3, 8, 100, 1_024]) }
}

fn queue<T: Send, D: Design<T>>() -> Arc<Queue<T, D>> {
    let capacity = capacity();
    let options = Options::new().wait(wait()).start_at(one_of(&[0, usize::MAX - 20]));
    Arc::new(mpmc::any_queue(capacity, options).unwrap())
}

/// Runs `f` with the queue in another thread.
fn spawn<T: Send + 'static, D: Design<T> + 'static, R: Send + 'static>(
    queue: &Arc<Queue<T, D>>,
    f: impl FnOnce(&Queue<T, D>) -> R + Send + 'static,
) -> JoinHandle<R>
where
    Queue<T, D>: Send + Sync,
{
    let queue = queue.clone();
    thread::spawn(move || f(&queue))
}

/// Pushes so many items by drawn calls. Returns how many were accepted before the queue was closed.
fn push_all<D: Tested>(queue: &Queue<Item, D>, ledger: &Ledger, producer: usize, items: usize, timed: bool) -> usize {
    let item = |i: usize| ledger.item(producer * EACH + i);
    let mut next = 0;
    while next < items {
        match draw(0..if timed { 6 } else { 5 }) {
            0 => match queue.try_push(item(next)) {
                Ok(()) => next += 1,
                Err(TryPushError::Full(_) | TryPushError::Busy(_)) => thread::yield_now(),
                Err(TryPushError::Closed(_)) => return next,
                Err(error) => panic!("{error}"),
            },
            1 => {
                let mut batch = (next..items).take(draw(1..20)).map(item).collect::<Vec<_>>();
                let count = batch.len();
                let done = queue.push_batch(&mut batch);
                next += count - batch.len();
                if done.is_err() {
                    return next;
                }
            }
            2 => {
                let mut batch = (next..items).take(draw(1..20)).map(item).collect::<Vec<_>>();
                let count = batch.len();
                match queue.try_push_batch(&mut batch) {
                    Ok(pushed) => assert_eq!(pushed, count - batch.len()),
                    Err(TryPushError::Full(()) | TryPushError::Busy(())) => assert_eq!(batch.len(), count),
                    Err(TryPushError::Closed(())) => return next,
                    Err(error) => panic!("{error}"),
                }
                next += count - batch.len();
                thread::yield_now();
            }
            5 if draw(0..2) == 0 => {
                let mut batch = (next..items).take(draw(1..20)).map(item).collect::<Vec<_>>();
                let count = batch.len();
                let done = in_time(PushTimeoutError::is_timeout, |time| queue.push_batch_timeout(&mut batch, time));
                next += count - batch.len();
                if matches!(done, Err(PushTimeoutError::Closed(()))) {
                    return next;
                }
            }
            5 => match in_time(PushTimeoutError::is_timeout, |time| queue.push_timeout(item(next), time)) {
                Ok(()) => next += 1,
                Err(PushTimeoutError::Timeout(_)) => {}
                Err(PushTimeoutError::Closed(_)) => return next,
                Err(error) => panic!("{error}"),
            },
            _ => match queue.push(item(next)) {
                Ok(()) => next += 1,
                Err(Closed(_)) => return next,
            },
        }
    }
    next
}

/// Pops items by drawn calls until the queue is closed, and returns their numbers.
fn pop_all<D: Tested>(queue: &Queue<Item, D>, timed: bool) -> Vec<usize> {
    let mut numbers = Vec::new();
    loop {
        let mut items = Vec::new();
        let more = match draw(0..if timed { 6 } else { 5 }) {
            0 => match queue.try_pop() {
                Ok(item) => {
                    items.push(item);
                    true
                }
                Err(error) => error != TryPopError::Closed,
            },
            1 => queue.pop_batch(&mut items, draw(1..20)).is_ok(),
            2 => queue.try_pop_batch(&mut items, draw(1..20)) != Err(TryPopError::Closed),
            5 if draw(0..2) == 0 => {
                let most = draw(1..20);
                let popped =
                    in_time(PopTimeoutError::is_timeout, |time| queue.pop_batch_timeout(&mut items, most, time));
                popped != Err(PopTimeoutError::Closed)
            }
            5 => match in_time(PopTimeoutError::is_timeout, |time| queue.pop_timeout(time)) {
                Ok(item) => {
                    items.push(item);
                    true
                }
                Err(error) => error != PopTimeoutError::Closed,
            },
            _ => queue.pop().map(|item| items.push(item)).is_ok(),
        };
        if items.is_empty() {
            if !more {
                return numbers;
            }
            thread::yield_now();
        }
        numbers.extend(items.iter().map(|item| item.id));
    }
}

/// Each producer's items came once, all that were accepted, and in order at each consumer.
fn check(accepted: &[usize], popped: &[Vec<usize>]) {
    for numbers in popped {
        for producer in 0..accepted.len() {
            let own = numbers.iter().filter(|&&number| number / EACH == producer);
            assert!(own.is_sorted(), "out of order: {numbers:?}");
        }
    }
    let mut all = popped.concat();
    all.sort_unstable();
    let expected = accepted.iter().enumerate().flat_map(|(p, &count)| p * EACH..p * EACH + count);
    assert!(all.into_iter().eq(expected), "{accepted:?}, {popped:?}");
}

fn crossing<D: Tested>(timed: bool) {
    explore(move || {
        let (queue, ledger) = (queue::<Item, D>(), Ledger::default());
        let poppers = (0..draw(1..5)).map(|_| spawn(&queue, move |queue| pop_all(queue, timed))).collect::<Vec<_>>();
        let pushers = (0..draw(1..5)).map(|producer| {
            let (ledger, items) = (ledger.clone(), many(draw(0..60)));
            spawn(&queue, move |queue| {
                assert_eq!(push_all(queue, &ledger, producer, items, timed), items);
                items
            })
        });
        let accepted = pushers.collect::<Vec<_>>().into_iter().map(|pusher| pusher.join().unwrap()).collect::<Vec<_>>();
        queue.close();
        let popped = poppers.into_iter().map(|popper| popper.join().unwrap()).collect::<Vec<_>>();
        check(&accepted, &popped);
        assert!(queue.is_empty() && queue.len() <= queue.capacity());
        drop(queue);
        ledger.assert_all_dropped();
    });
}

pub(crate) fn items_come_once_and_in_order<D: Tested>() {
    crossing::<D>(false);
}

pub(crate) fn time_outs_lose_nothing<D: Tested>() {
    crossing::<D>(true);
}

/// What was accepted is popped, the rest comes back.
pub(crate) fn a_close_in_midstream<D: Tested>() {
    explore(|| {
        let (queue, ledger) = (queue::<Item, D>(), Ledger::default());
        let (timed, items) = (draw(0..2) == 0, many(60));
        let poppers = (0..draw(0..4)).map(|_| spawn(&queue, move |queue| pop_all(queue, timed))).collect::<Vec<_>>();
        let pushers = (0..draw(1..4)).map(|producer| {
            let ledger = ledger.clone();
            spawn(&queue, move |queue| push_all(queue, &ledger, producer, items, timed))
        });
        let pushers = pushers.collect::<Vec<_>>();
        (0..draw(0..100)).for_each(|_| thread::yield_now());
        queue.close();
        let accepted = pushers.into_iter().map(|pusher| pusher.join().unwrap()).collect::<Vec<_>>();
        let mut popped = poppers.into_iter().map(|popper| popper.join().unwrap()).collect::<Vec<_>>();
        popped.push(pop_all(&queue, false));
        check(&accepted, &popped);
        drop(queue);
        ledger.assert_all_dropped();
    });
}

/// Several threads answer questions of several others, which wait for as many answers as they have sent questions:
/// nothing makes a lost wake-up good.
pub(crate) fn questions_are_answered<D: Tested>() {
    explore(|| {
        let (ask, answer) = (queue::<usize, D>(), queue::<usize, D>());
        let servers = (0..draw(1..4)).map(|_| {
            let answer = answer.clone();
            spawn(&ask, move |ask| {
                while let Ok(question) = ask.pop() {
                    answer.push(question + EACH).unwrap();
                }
            })
        });
        let servers = servers.collect::<Vec<_>>();
        let clients = (0..draw(1..4)).map(|_| {
            let (ask, rounds) = (ask.clone(), many(draw(1..20)));
            spawn(&answer, move |answer| {
                for question in 0..rounds {
                    ask.push(question).unwrap();
                    assert!(answer.pop().unwrap() >= EACH);
                }
            })
        });
        clients.collect::<Vec<_>>().into_iter().for_each(|client| client.join().unwrap());
        assert!(ask.is_empty() && answer.is_empty());
        ask.close();
        servers.into_iter().for_each(|server| server.join().unwrap());
    });
}

/// Some of the sleeping threads give up just as they are woken: another one gets the item, then.
pub(crate) fn a_wake_up_that_meets_a_time_out_is_not_lost<D: Tested>() {
    explore(|| {
        let queue = queue::<usize, D>();
        let patient = draw(1..3);
        let timed = (0..draw(1..4)).map(|_| spawn(&queue, |queue| usize::from(queue.pop_timeout(soon()).is_ok())));
        let timed = timed.collect::<Vec<_>>();
        let waiters = (0..patient).map(|_| spawn(&queue, |queue| queue.pop().unwrap())).collect::<Vec<_>>();
        // As many as the patient ones need, and then as many as the others took.
        (0..patient).for_each(|item| queue.push(item).unwrap());
        let taken = timed.into_iter().map(|popper| popper.join().unwrap()).sum::<usize>();
        (0..taken).for_each(|item| queue.push(item).unwrap());
        waiters.into_iter().for_each(|waiter| assert!(waiter.join().unwrap() < EACH));
        assert!(queue.is_empty());
    });
}

/// The same for threads that wait for room.
pub(crate) fn room_that_meets_a_time_out_is_not_lost<D: Tested>() {
    explore(|| {
        let queue = queue::<usize, D>();
        while queue.len() < queue.capacity().min(64) {
            queue.try_push(0).unwrap();
        }
        let patient = draw(1..3);
        let timed = (0..draw(1..4)).map(|_| spawn(&queue, |queue| usize::from(queue.push_timeout(0, soon()).is_ok())));
        let timed = timed.collect::<Vec<_>>();
        let waiters = (0..patient).map(|_| spawn(&queue, |queue| queue.push(0).unwrap())).collect::<Vec<_>>();
        (0..patient).for_each(|_| assert_eq!(queue.pop(), Ok(0)));
        let pushed = timed.into_iter().map(|pusher| pusher.join().unwrap()).sum::<usize>();
        (0..pushed).for_each(|_| assert_eq!(queue.pop(), Ok(0)));
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// One change of the queue wakes one thread, and that one the next: as many as find something.
pub(crate) fn a_batch_wakes_as_many_as_it_is_for<D: Tested>() {
    explore(|| {
        let options = Options::new().wait(wait());
        let count = draw(2..6);
        let queue: Arc<Queue<usize, D>> = Arc::new(mpmc::any_queue(count, options).unwrap());
        let poppers = (0..count).map(|_| spawn(&queue, |queue| assert_eq!(queue.pop(), Ok(0)))).collect::<Vec<_>>();
        (0..draw(0..20)).for_each(|_| thread::yield_now());
        queue.push_batch(&mut vec![0; count]).unwrap();
        poppers.into_iter().for_each(|popper| popper.join().unwrap());
        assert!(queue.is_empty());
        queue.push_batch(&mut vec![0; count]).unwrap();
        let pushers = (0..count).map(|_| spawn(&queue, |queue| queue.push(0).unwrap())).collect::<Vec<_>>();
        (0..draw(0..20)).for_each(|_| thread::yield_now());
        assert_eq!(queue.pop_batch(&mut Vec::new(), count), Ok(count));
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
    });
}

/// Each thread pushes before it pops, into a queue with room for all of them: none may be told that it is full, or
/// empty.
pub(crate) fn answers_are_true<D: Tested>() {
    explore(|| {
        let threads = draw(2..5);
        let options = Options::new().wait(wait()).start_at(one_of(&[0, usize::MAX - 20]));
        let queue: Arc<Queue<usize, D>> = Arc::new(mpmc::any_queue(threads, options).unwrap());
        let threads = (0..threads).map(|_| {
            let rounds = many(draw(1..20));
            spawn(&queue, move |queue| {
                for item in 0..rounds {
                    while let Err(refused) = queue.try_push(item) {
                        assert!(matches!(refused, TryPushError::Busy(_)), "there is room");
                        thread::yield_now();
                    }
                    while let Err(refused) = queue.try_pop() {
                        assert_eq!(refused, TryPopError::Busy, "there is an item");
                        thread::yield_now();
                    }
                }
            })
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((queue.len(), queue.try_pop()), (0, Err(TryPopError::Empty)));
    });
}

/// One close wakes all threads that sleep at either side.
pub(crate) fn a_close_wakes_all<D: Tested>() {
    explore(|| {
        let queue = queue::<usize, D>();
        let pops = draw(0..2) == 0;
        if !pops {
            while queue.len() < queue.capacity().min(64) {
                queue.try_push(0).unwrap();
            }
        }
        let waiters = (0..draw(1..5)).map(|_| {
            spawn(&queue, move |queue| match pops {
                true => assert!(queue.pop().is_err()),
                false => drop(queue.push(0)),
            })
        });
        let waiters = waiters.collect::<Vec<_>>();
        (0..draw(0..20)).for_each(|_| thread::yield_now());
        queue.close();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        // A thread that comes later learns of it at once.
        assert!(queue.push(0).is_err());
        assert_eq!(queue.push_timeout(0, Duration::MAX), Err(PushTimeoutError::Closed(0)));
    });
}

/// Senders and receivers go as they please, and only they close the queue: no thread waits for ever, and each item was
/// popped, came back, or is dropped with the queue. Where a receiver stays to the end, it or another has popped all.
pub(crate) fn handles_go_in_midstream<D: Tested>() {
    explore(|| {
        let capacity = capacity();
        let options = Options::new().wait(wait()).start_at(one_of(&[0, usize::MAX - 20]));
        let (sender, receiver) = mpmc::any_channel::<Item, D, _, NoStats>(capacity, options).unwrap();
        let ledger = Ledger::default();
        let stays = draw(0..2) == 0;
        let receivers = (0..draw(1..4)).map(|consumer| {
            let receiver = receiver.clone();
            let most = if stays && consumer == 0 { usize::MAX } else { many(draw(0..40)) };
            thread::spawn(move || {
                let mut numbers = Vec::new();
                while numbers.len() < most {
                    let mut items = Vec::new();
                    let popped = match draw(0..2) {
                        0 => receiver.pop().map(|item| items.push(item)),
                        _ => receiver.pop_batch(&mut items, draw(1..9)).map(|count| assert_eq!(count, items.len())),
                    };
                    if popped.is_err() {
                        break;
                    }
                    numbers.extend(items.iter().map(|item| item.id));
                }
                numbers
            })
        });
        let receivers = receivers.collect::<Vec<_>>();
        let senders = (0..draw(1..4)).map(|producer| {
            let (sender, ledger, items) = (sender.clone(), ledger.clone(), many(draw(0..40)));
            thread::spawn(move || {
                let mut next = 0;
                while next < items {
                    let count = draw(1..9).min(items - next);
                    let mut batch: Vec<_> = (next..next + count).map(|i| ledger.item(producer * EACH + i)).collect();
                    let done = sender.push_batch(&mut batch);
                    next += count - batch.len();
                    if done.is_err() {
                        assert!(!stays, "a receiver is there");
                        break;
                    }
                }
                next
            })
        });
        let senders = senders.collect::<Vec<_>>();
        drop((sender, receiver));
        let accepted = senders.into_iter().map(|sender| sender.join().unwrap()).collect::<Vec<_>>();
        let popped = receivers.into_iter().map(|receiver| receiver.join().unwrap()).collect::<Vec<_>>();
        if stays {
            check(&accepted, &popped);
        } else {
            assert!(popped.concat().len() <= accepted.iter().sum());
        }
        ledger.assert_all_dropped();
    });
}
