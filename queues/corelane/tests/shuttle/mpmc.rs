//! Scenarios of the shared channels, generic over the design, lanes among them.
//!
//! Whatever the schedule, each item that was accepted comes out once, and the items of one sender in its order.

use crate::channel::{Rx, Shared, Tx};
use crate::shared::join;
use crate::thread;
use crate::{EACH, Item, Wait, draw, explore, in_time, many, one_of, soon, wait};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::Options;
use std::time::Duration;

type Ends<C, T> = crate::channel::Ends<C, T, Wait>;

fn channel_of<C: Shared, T: Send + 'static>(capacity: usize) -> Ends<C, T> {
    C::channel(capacity, Options::new().wait(wait()).start_at(one_of(&[0, usize::MAX - 20]))).unwrap()
}

fn channel<C: Shared, T: Send + 'static>() -> Ends<C, T> {
    channel_of::<C, T>(if cfg!(corelane_shuttle) {
        one_of(&[1, 2, 3, 8, 64])
    } else {
        one_of(&[1, 2, 3, 8, 100, 1_024])
    })
}

/// Pushes a sender's items in all ways until they are all in, or the channel is closed. Returns how many are in.
fn push_all(tx: &mut impl Tx<Item>, sender: usize, items: usize, timed: bool) -> usize {
    let item = |i: usize| Item::new(sender * EACH + i);
    let mut next = 0;
    while next < items {
        let mut batch = (next..items).take(draw(1..20)).map(item).collect::<Vec<_>>();
        let mut count = batch.len();
        let is_closed = match draw(0..if timed { 6 } else { 4 }) {
            0 => match tx.try_push_batch(&mut batch) {
                Ok(pushed) => {
                    assert_eq!(pushed, count - batch.len());
                    false
                }
                Err(error) => {
                    assert_eq!(batch.len(), count);
                    thread::yield_now();
                    error.is_closed()
                }
            },
            1 => tx.push_batch(&mut batch).is_err(),
            4 => {
                let pushed = in_time(PushTimeoutError::is_timeout, |time| tx.push_batch_timeout(&mut batch, time));
                pushed.is_err_and(|error| error.is_closed())
            }
            way => {
                count = 1;
                batch.truncate(1);
                let item = batch.remove(0);
                let pushed = match way {
                    2 => tx.try_push(item).map_err(|error| (error.is_closed(), error.into_inner())),
                    3 => tx.push(item).map_err(|closed| (true, closed.0)),
                    _ => in_time(PushTimeoutError::is_timeout, |time| tx.push_timeout(item, time))
                        .map_err(|error| (error.is_closed(), error.into_inner())),
                };
                pushed.is_err_and(|(is_closed, item)| {
                    assert_eq!(item.id, sender * EACH + next);
                    batch.push(item);
                    is_closed
                })
            }
        };
        if batch.len() == count {
            thread::yield_now();
        }
        next += count - batch.len();
        if is_closed {
            break;
        }
    }
    next
}

/// Pops in all ways until the channel is closed and empty, or so many are popped.
fn pop_all(rx: &mut impl Rx<Item>, most: usize, timed: bool) -> Vec<usize> {
    let mut numbers = Vec::new();
    while numbers.len() < most {
        let (mut items, max) = (Vec::new(), draw(1..20));
        let is_closed = match draw(0..if timed { 6 } else { 4 }) {
            0 => rx.try_pop().map(|item| items.push(item)) == Err(TryPopError::Closed),
            1 => rx.pop_batch(&mut items, max).is_err(),
            2 => rx.try_pop_batch(&mut items, max) == Err(TryPopError::Closed),
            3 => rx.pop().map(|item| items.push(item)).is_err(),
            4 => {
                let popped = in_time(PopTimeoutError::is_timeout, |time| rx.pop_batch_timeout(&mut items, max, time));
                popped == Err(PopTimeoutError::Closed)
            }
            _ => {
                let popped = in_time(PopTimeoutError::is_timeout, |time| rx.pop_timeout(time));
                popped.map(|item| items.push(item)) == Err(PopTimeoutError::Closed)
            }
        };
        if is_closed {
            break;
        }
        if items.is_empty() {
            thread::yield_now();
        }
        numbers.extend(items.iter().map(|item| item.id));
    }
    numbers
}

/// Each sender's accepted items, and no others, came out once, in its order at each receiver.
#[track_caller]
fn check(accepted: &[usize], popped: &[Vec<usize>]) {
    let accepted = accepted.iter().enumerate().map(|(s, &count)| (s * EACH..s * EACH + count).collect());
    crate::shared::check(&accepted.collect::<Vec<_>>(), popped);
}

fn crossing<C: Shared>(timed: bool) {
    explore(move || {
        let (tx, rx) = channel::<C, Item>();
        let receivers = (0..draw(1..5)).map(|_| {
            let mut rx = rx.clone();
            thread::spawn(move || pop_all(&mut rx, usize::MAX, timed))
        });
        let receivers = receivers.collect::<Vec<_>>();
        let senders = (0..draw(1..5)).map(|sender| {
            let (mut tx, items) = (tx.clone(), many(draw(0..60)));
            thread::spawn(move || {
                assert_eq!(push_all(&mut tx, sender, items, timed), items);
                items
            })
        });
        let senders = senders.collect::<Vec<_>>();
        drop((tx, rx));
        check(&join(senders), &join(receivers));
    });
}

pub(crate) fn items_come_once_and_in_order<C: Shared>() {
    crossing::<C>(false);
}

pub(crate) fn time_outs_lose_nothing<C: Shared>() {
    crossing::<C>(true);
}

pub(crate) fn a_close_in_midstream<C: Shared>() {
    explore(|| {
        let (mut tx, mut rx) = channel::<C, Item>();
        let (timed, items) = (draw(0..2) == 0, many(60));
        let receivers = (0..draw(0..4)).map(|_| {
            let mut rx = rx.clone();
            thread::spawn(move || pop_all(&mut rx, usize::MAX, timed))
        });
        let receivers = receivers.collect::<Vec<_>>();
        let senders = (0..draw(1..4)).map(|sender| {
            let mut tx = tx.clone();
            thread::spawn(move || {
                let accepted = push_all(&mut tx, sender, items, timed);
                assert!(accepted == items || tx.is_closed());
                accepted
            })
        });
        let senders = senders.collect::<Vec<_>>();
        (0..draw(0..100)).for_each(|_| thread::yield_now());
        if draw(0..2) == 0 {
            tx.close()
        } else {
            rx.close()
        }
        assert!(tx.clone().try_push(Item::new(99 * EACH)).is_err());
        let accepted = join(senders);
        let mut popped = join(receivers);
        popped.push(pop_all(&mut rx, usize::MAX, false));
        check(&accepted, &popped);
    });
}

pub(crate) fn questions_are_answered<C: Shared>() {
    explore(|| {
        let ((ask, asked), (answer, answers)) = (channel::<C, usize>(), channel::<C, usize>());
        let servers = (0..draw(1..4)).map(|_| {
            let (mut asked, mut answer) = (asked.clone(), answer.clone());
            thread::spawn(move || {
                while let Ok(question) = asked.pop() {
                    answer.push(question + EACH).unwrap();
                }
            })
        });
        let servers = servers.collect::<Vec<_>>();
        let clients = (0..draw(1..4)).map(|_| {
            let (mut ask, mut answers, rounds) = (ask.clone(), answers.clone(), many(draw(1..20)));
            thread::spawn(move || {
                for question in 0..rounds {
                    ask.push(question).unwrap();
                    // Any client's.
                    assert!(answers.pop().unwrap() >= EACH);
                }
            })
        });
        let clients = clients.collect::<Vec<_>>();
        drop((ask, asked, answer, answers));
        join(clients);
        join(servers);
    });
}

/// As many items as patient receivers are pushed, and one more for each that a timed one got.
pub(crate) fn a_wake_up_that_meets_a_time_out_is_not_lost<C: Shared>() {
    explore(|| {
        let (mut tx, mut rx) = channel::<C, usize>();
        let patient = draw(1..4);
        let timed = (0..draw(1..4)).map(|_| {
            let mut rx = rx.clone();
            thread::spawn(move || usize::from(rx.pop_timeout(soon()).is_ok()))
        });
        let timed = timed.collect::<Vec<_>>();
        let waiters = (0..patient).map(|_| {
            let mut rx = rx.clone();
            thread::spawn(move || rx.pop().unwrap())
        });
        let waiters = waiters.collect::<Vec<_>>();
        match draw(0..2) {
            0 => tx.push_batch(&mut vec![0; patient]).unwrap(),
            _ => (0..patient).for_each(|_| tx.push(0).unwrap()),
        }
        let taken = join(timed).into_iter().sum::<usize>();
        tx.clone().push_batch(&mut vec![0; taken]).unwrap();
        join(waiters);
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    });
}

/// Of queues: lanes are full for their own sender alone.
pub(crate) fn room_that_meets_a_time_out_is_not_lost<C: Shared>() {
    explore(|| {
        let (mut tx, mut rx) = channel::<C, usize>();
        while tx.len() < tx.capacity().min(64) {
            tx.try_push(0).unwrap();
        }
        let patient = draw(1..3);
        let timed = (0..draw(1..4)).map(|_| {
            let mut tx = tx.clone();
            thread::spawn(move || usize::from(tx.push_timeout(0, soon()).is_ok()))
        });
        let timed = timed.collect::<Vec<_>>();
        let waiters = (0..patient).map(|_| {
            let mut tx = tx.clone();
            thread::spawn(move || tx.push(0).unwrap())
        });
        let waiters = waiters.collect::<Vec<_>>();
        (0..patient).for_each(|_| assert_eq!(rx.pop(), Ok(0)));
        let pushed = join(timed).into_iter().sum::<usize>();
        (0..pushed).for_each(|_| assert_eq!(rx.pop(), Ok(0)));
        join(waiters);
    });
}

/// A batch wakes as many receivers as it has items for, and one that is popped as many senders as it leaves room for.
pub(crate) fn a_batch_wakes_as_many_as_it_is_for<C: Shared>() {
    explore(|| {
        let count = draw(2..6);
        let (mut tx, mut rx) = channel_of::<C, usize>(count);
        let receivers = (0..count).map(|_| {
            let mut rx = rx.clone();
            thread::spawn(move || assert_eq!(rx.pop(), Ok(0)))
        });
        let receivers = receivers.collect::<Vec<_>>();
        (0..draw(0..20)).for_each(|_| thread::yield_now());
        tx.push_batch(&mut vec![0; count]).unwrap();
        join(receivers);
        assert!(tx.is_empty());
        if C::LANES {
            return;
        }
        tx.push_batch(&mut vec![0; count]).unwrap();
        let senders = (0..count).map(|_| {
            let mut tx = tx.clone();
            thread::spawn(move || tx.push(0).unwrap())
        });
        let senders = senders.collect::<Vec<_>>();
        (0..draw(0..20)).for_each(|_| thread::yield_now());
        assert_eq!(rx.pop_batch(&mut Vec::new(), count), Ok(count));
        join(senders);
    });
}

/// Each thread pushes before it pops, and no more than there is room for. Of queues: a pop looks at one lane after the
/// other, and each may be empty at its time.
pub(crate) fn answers_are_true<C: Shared>() {
    explore(|| {
        let threads = draw(2..5);
        let (tx, mut rx) = channel_of::<C, usize>(threads);
        let threads = (0..threads).map(|_| {
            let (mut tx, mut rx, rounds) = (tx.clone(), rx.clone(), many(draw(1..20)));
            thread::spawn(move || {
                for item in 0..rounds {
                    while let Err(refused) = tx.try_push(item) {
                        assert!(matches!(refused, TryPushError::Busy(_)), "there is room");
                        thread::yield_now();
                    }
                    while let Err(refused) = rx.try_pop() {
                        assert_eq!(refused, TryPopError::Busy, "there is an item");
                        thread::yield_now();
                    }
                }
            })
        });
        join(threads.collect());
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    });
}

pub(crate) fn a_close_wakes_all<C: Shared>() {
    explore(|| {
        let (mut tx, rx) = channel::<C, usize>();
        let pops = draw(0..2) == 0;
        let waiters = (0..draw(1..5)).map(|_| {
            let (mut tx, mut rx) = (tx.clone(), rx.clone());
            thread::spawn(move || match pops {
                true => assert!(rx.pop().is_err()),
                false => while tx.len() < 5_000 && tx.push(0).is_ok() {},
            })
        });
        let waiters = waiters.collect::<Vec<_>>();
        (0..draw(0..20)).for_each(|_| thread::yield_now());
        tx.close();
        join(waiters);
        assert!(tx.push(0).is_err());
        assert_eq!(tx.push_timeout(0, Duration::MAX), Err(PushTimeoutError::Closed(0)));
    });
}

/// Handles come and go; while one receiver stays, no push is refused.
pub(crate) fn handles_go_in_midstream<C: Shared>() {
    explore(|| {
        let (tx, rx) = channel::<C, Item>();
        let stays = draw(0..2) == 0;
        let receivers = (0..draw(1..4)).map(|receiver| {
            let mut rx = rx.clone();
            let most = if stays && receiver == 0 { usize::MAX } else { many(draw(0..40)) };
            thread::spawn(move || {
                let mut numbers = pop_all(&mut rx, most / 2, false);
                rx = rx.clone();
                numbers.extend(pop_all(&mut rx, most / 2, false));
                numbers
            })
        });
        let receivers = receivers.collect::<Vec<_>>();
        let senders = (0..draw(1..4)).map(|sender| {
            let (mut tx, items) = (tx.clone(), many(draw(0..40)));
            thread::spawn(move || {
                drop(tx.clone());
                let accepted = push_all(&mut tx, sender, items, false);
                assert!(!stays || accepted == items, "a receiver is there");
                accepted
            })
        });
        let senders = senders.collect::<Vec<_>>();
        drop((tx, rx));
        let (accepted, popped) = (join(senders), join(receivers));
        if stays {
            check(&accepted, &popped);
        } else {
            assert!(popped.concat().len() <= accepted.iter().sum());
        }
    });
}

/// Of lanes: a pop of many reads on where one has ended.
pub(crate) fn a_batch_beside_a_lane_that_ends<C: Shared>() {
    explore(|| {
        for _ in 0..20 {
            let (tx, mut rx) = channel::<C, usize>();
            let (mut second, _others) = (tx.clone(), [tx.clone(), tx.clone()]);
            let _receivers = [rx.clone(), rx.clone()];
            let mut fourth = rx.clone();
            second.push(7).unwrap();
            drop((tx, second));
            let other = thread::spawn(move || [rx.try_pop(), rx.try_pop()].into_iter().flatten().count());
            let batch = fourth.try_pop_batch(&mut Vec::new(), 10).unwrap_or(0);
            assert!(other.join().unwrap() + batch <= 1);
        }
    });
}
