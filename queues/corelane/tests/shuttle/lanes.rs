//! A lane for each sender, and receivers that take turns at them.

use crate::{EACH, Item, Ledger, Wait, draw, explore, in_time, many, one_of, soon, thread, wait};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::Options;
use corelane::mpmc::lanes::{self, Receiver, Sender};

type Tx<T> = Sender<T, Wait>;
type Rx<T> = Receiver<T, Wait>;

fn channel<T: Send>() -> (Tx<T>, Rx<T>) {
    let options = Options::new().wait(wait()).start_at(one_of(&[0, usize::MAX - 20]));
    let capacity = if cfg!(corelane_shuttle) { one_of(&[1, 2, 3, 8, 64]) } else { one_of(&[1, 2, 3, 8, 100, 1_024]) };
    lanes::channel_with(capacity, options).unwrap()
}

/// Pushes so many items by drawn calls. Returns how many were accepted before the queue was closed.
fn push_all(tx: &mut Tx<Item>, ledger: &Ledger, sender: usize, items: usize) -> usize {
    let item = |i: usize| ledger.item(sender * EACH + i);
    let mut next = 0;
    while next < items {
        let mut batch = (next..items).take(draw(1..20)).map(item).collect::<Vec<_>>();
        let mut count = batch.len();
        let is_closed = match draw(0..6) {
            0 => match tx.try_push_batch(&mut batch) {
                Ok(_) => false,
                Err(TryPushError::Full(())) => {
                    thread::yield_now();
                    false
                }
                Err(_) => true,
            },
            1 => {
                let pushed = in_time(PushTimeoutError::is_timeout, |time| tx.push_batch_timeout(&mut batch, time));
                matches!(pushed, Err(PushTimeoutError::Closed(())))
            }
            2 => tx.push_batch(&mut batch).is_err(),
            way => {
                // One of them alone.
                count = 1;
                batch.truncate(1);
                let item = batch.remove(0);
                let pushed = match way {
                    3 => tx.try_push(item).map_err(|error| (error.is_closed(), error.into_inner())),
                    4 => in_time(PushTimeoutError::is_timeout, |time| tx.push_timeout(item, time))
                        .map_err(|error| (error.is_closed(), error.into_inner())),
                    _ => tx.push(item).map_err(|closed| (true, closed.0)),
                };
                pushed.is_err_and(|(is_closed, item)| {
                    batch.push(item);
                    is_closed
                })
            }
        };
        next += count - batch.len();
        if is_closed {
            break;
        }
    }
    next
}

/// Pops at least so many items by drawn calls, or until the queue is closed, and returns their numbers.
fn pop_all(rx: &mut Rx<Item>, most: usize) -> Vec<usize> {
    let mut numbers = Vec::new();
    while numbers.len() < most {
        let mut items = Vec::new();
        let is_closed = match draw(0..6) {
            0 => match rx.try_pop() {
                Ok(item) => {
                    items.push(item);
                    false
                }
                Err(error) => error == TryPopError::Closed,
            },
            1 => rx.pop_batch(&mut items, draw(1..20)).is_err(),
            2 => rx.try_pop_batch(&mut items, draw(1..20)) == Err(TryPopError::Closed),
            3 => {
                let most = draw(1..20);
                let popped = in_time(PopTimeoutError::is_timeout, |time| rx.pop_batch_timeout(&mut items, most, time));
                popped == Err(PopTimeoutError::Closed)
            }
            4 => {
                let popped = in_time(PopTimeoutError::is_timeout, |time| rx.pop_timeout(time));
                popped.map(|item| items.push(item)) == Err(PopTimeoutError::Closed)
            }
            _ => rx.pop().map(|item| items.push(item)).is_err(),
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

/// Each sender's items came once, all that were accepted, and in order at each receiver.
fn check(accepted: &[usize], popped: &[Vec<usize>]) {
    for numbers in popped {
        for sender in 0..accepted.len() {
            let own = numbers.iter().filter(|&&number| number / EACH == sender);
            assert!(own.is_sorted(), "out of order: {numbers:?}");
        }
    }
    let mut all = popped.concat();
    all.sort_unstable();
    let expected = accepted.iter().enumerate().flat_map(|(s, &count)| s * EACH..s * EACH + count);
    assert!(all.into_iter().eq(expected), "{accepted:?}, {popped:?}");
}

/// Senders come and go, and the last one ends it.
#[test]
fn items_come_once_and_in_order() {
    explore(|| {
        let ((tx, rx), ledger) = (channel::<Item>(), Ledger::default());
        let receivers = (0..draw(1..5)).map(|_| {
            let mut rx = rx.clone();
            thread::spawn(move || pop_all(&mut rx, usize::MAX))
        });
        let receivers = receivers.collect::<Vec<_>>();
        let senders = (0..draw(1..5)).map(|sender| {
            let (mut tx, ledger, items) = (tx.clone(), ledger.clone(), many(draw(0..60)));
            thread::spawn(move || {
                assert_eq!(push_all(&mut tx, &ledger, sender, items), items);
                items
            })
        });
        let senders = senders.collect::<Vec<_>>();
        drop((tx, rx));
        let accepted = senders.into_iter().map(|sender| sender.join().unwrap()).collect::<Vec<_>>();
        let popped = receivers.into_iter().map(|receiver| receiver.join().unwrap()).collect::<Vec<_>>();
        check(&accepted, &popped);
        ledger.assert_all_dropped();
    });
}

/// What was accepted is popped, the rest comes back.
#[test]
fn a_close_in_midstream() {
    explore(|| {
        let ((tx, mut rx), ledger) = (channel::<Item>(), Ledger::default());
        let receivers = (0..draw(0..4)).map(|_| {
            let mut rx = rx.clone();
            thread::spawn(move || pop_all(&mut rx, usize::MAX))
        });
        let receivers = receivers.collect::<Vec<_>>();
        let senders = (0..draw(1..4)).map(|sender| {
            let (mut tx, ledger, items) = (tx.clone(), ledger.clone(), many(60));
            thread::spawn(move || {
                let accepted = push_all(&mut tx, &ledger, sender, items);
                assert!(accepted == items || tx.is_closed());
                accepted
            })
        });
        let senders = senders.collect::<Vec<_>>();
        (0..draw(0..100)).for_each(|_| thread::yield_now());
        if draw(0..2) == 0 {
            tx.close();
        } else {
            rx.close();
        }
        assert!(tx.clone().try_push(ledger.item(99 * EACH)).is_err());
        let accepted = senders.into_iter().map(|sender| sender.join().unwrap()).collect::<Vec<_>>();
        let mut popped = receivers.into_iter().map(|receiver| receiver.join().unwrap()).collect::<Vec<_>>();
        popped.push(pop_all(&mut rx, usize::MAX));
        check(&accepted, &popped);
        drop((tx, rx));
        ledger.assert_all_dropped();
    });
}

/// Receivers go as they please: no thread waits for ever, and each item was popped, came back, or is dropped with the
/// queue.
#[test]
fn receivers_go_in_midstream() {
    explore(|| {
        let ((tx, rx), ledger) = (channel::<Item>(), Ledger::default());
        let receivers = (0..draw(1..4)).map(|_| {
            let (mut rx, most) = (rx.clone(), many(draw(0..40)));
            thread::spawn(move || pop_all(&mut rx, most).len())
        });
        let receivers = receivers.collect::<Vec<_>>();
        let senders = (0..draw(1..4)).map(|sender| {
            let (mut tx, ledger, items) = (tx.clone(), ledger.clone(), many(draw(0..40)));
            thread::spawn(move || push_all(&mut tx, &ledger, sender, items))
        });
        let senders = senders.collect::<Vec<_>>();
        drop((tx, rx));
        let accepted = senders.into_iter().map(|sender| sender.join().unwrap()).sum::<usize>();
        assert!(receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum::<usize>() <= accepted);
        ledger.assert_all_dropped();
    });
}

/// Questions are asked in lanes and answered in lanes, by the thread that comes first: nothing makes a lost wake-up
/// good.
#[test]
fn questions_are_answered() {
    explore(|| {
        let ((ask, asked), (answer, answers)) = (channel::<usize>(), channel::<usize>());
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
                    assert!(answers.pop().unwrap() >= EACH);
                }
            })
        });
        let clients = clients.collect::<Vec<_>>();
        drop((ask, asked, answer, answers));
        clients.into_iter().for_each(|client| client.join().unwrap());
        servers.into_iter().for_each(|server| server.join().unwrap());
    });
}

/// Some of the sleeping threads give up just as they are woken, and one batch wakes as many as it is for.
#[test]
fn a_wake_up_that_meets_a_time_out_is_not_lost() {
    explore(|| {
        let (mut tx, rx) = channel::<usize>();
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
        tx.push_batch(&mut vec![0; patient]).unwrap();
        let taken = timed.into_iter().map(|popper| popper.join().unwrap()).sum::<usize>();
        tx.clone().push_batch(&mut vec![0; taken]).unwrap();
        waiters.into_iter().for_each(|waiter| assert_eq!(waiter.join().unwrap(), 0));
    });
}

/// A batch finds a drained lane, then an item in the next one, which another receiver finds drained and closed before
/// this one has counted what it has passed.
#[test]
fn a_batch_beside_a_lane_that_ends() {
    // Rare: many times a schedule.
    explore(|| {
        for _ in 0..20 {
            let (tx, mut rx) = channel::<usize>();
            let (mut second, _others) = (tx.clone(), [tx.clone(), tx.clone()]);
            let _receivers = [rx.clone(), rx.clone()];
            // The fourth: it looks at the lanes in their order.
            let mut fourth = rx.clone();
            second.push(7).unwrap();
            drop((tx, second));
            let other = thread::spawn(move || [rx.try_pop(), rx.try_pop()].into_iter().flatten().count());
            let batch = fourth.try_pop_batch(&mut Vec::new(), 10).unwrap_or(0);
            assert!(other.join().unwrap() + batch <= 1);
        }
    });
}
