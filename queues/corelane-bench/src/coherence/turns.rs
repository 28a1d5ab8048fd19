//! What the threads of a case do in their turns.

use super::guest::{at_once, in_turns, made, puts, takes};
use super::{BATCH, CAPACITY, Rounds, laps};
use crate::contenders::{Rx, Tx, Unable};
use crate::item::Item;
use crate::measure::{Receives, Sends};
use corelane::handoff::{Fairness, SynchronousQueue, TakeTicket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An end, and the number of its next item.
struct Numbered<E, S> {
    end: E,
    next: u64,
    stock: S,
}

impl<E, S> Numbered<E, S> {
    fn new(end: E, stock: S) -> Self {
        Numbered { end, next: 0, stock }
    }
}

/// Makes a queue, or the one whose capacity is a constant.
fn pair<X, R>(make: impl Fn(usize) -> Result<(X, R), Unable>, capacity: usize) -> (X, R) {
    const CONSTANT: usize = 2048;
    made(|| make(capacity).or_else(|_| make(CONSTANT))).unwrap_or_else(|unable| panic!("no queue: {}", unable.0))
}

/// Turns of up to `a_turn` calls. A side that cannot put, or finds nothing to take, ends its turn early.
pub(crate) fn one_by_one<T: Item, X: Tx<T>, R: Rx<T>>(
    make: impl Fn(usize) -> Result<(X, R), Unable>,
    capacity: usize,
    a_turn: usize,
    rounds: Rounds,
) -> u64 {
    let (tx, rx) = pair(make, capacity);
    let (mut tx, mut rx) = (Numbered::new(tx, T::stock()), Numbered::new(rx, ()));
    let actors = vec![puts(move || put(&mut tx, a_turn)), takes(move || take(&mut rx, a_turn))];
    in_turns(actors, rounds)
}

fn put<T: Item, X: Tx<T>>(tx: &mut Numbered<X, T::Stock>, most: usize) {
    for _ in 0..most {
        if !tx.end.try_push(T::numbered(&tx.stock, tx.next)) {
            break;
        }
        tx.next += 1;
    }
}

fn take<T: Item, R: Rx<T>>(rx: &mut Numbered<R, ()>, most: usize) -> u64 {
    let first = rx.next;
    // One call more than there may be items, so that a thread that drains a queue learns that it is empty.
    for _ in 0..if most == 1 { 1 } else { most + 1 } {
        let Some(item) = rx.end.try_pop() else { break };
        assert_eq!(item.says(), T::due(rx.next));
        rx.next += 1;
    }
    rx.next - first
}

/// Turns of a slice of `BATCH` items.
pub(crate) fn in_batches<X: Send, R: Send, F, G>(
    make: impl Fn(usize) -> Result<((X, F), (R, G)), Unable>,
    capacity: usize,
    rounds: Rounds,
) -> u64
where
    F: Fn(&mut X, &[u64]) -> usize + Send,
    G: Fn(&mut R, &mut [u64]) -> usize + Send,
{
    let ((tx, push), (rx, pop)) = pair(make, capacity);
    let (mut tx, mut rx) = (Numbered::new(tx, ()), Numbered::new(rx, ()));
    let put = move || {
        let items: [u64; BATCH] = std::array::from_fn(|i| tx.next + i as u64);
        tx.next += push(&mut tx.end, &items) as u64;
    };
    let take = move || {
        let mut items = [0; BATCH];
        let popped = pop(&mut rx.end, &mut items);
        assert!(items[..popped].iter().copied().eq(rx.next..rx.next + popped as u64));
        rx.next += popped as u64;
        popped as u64
    };
    in_turns(vec![puts(put), takes(take)], rounds)
}

/// Turns of `a_turn` messages of 8 bytes.
pub(crate) fn messages<X: Sends, Y: Receives>(
    make: impl Fn() -> Result<(X, Y), Unable>,
    a_turn: usize,
    rounds: Rounds,
) -> u64 {
    let (tx, rx) = pair(|_| make(), CAPACITY);
    let (mut tx, mut rx) = (Numbered::new(tx, ()), Numbered::new(rx, ()));
    let put = move || {
        for _ in 0..a_turn {
            // The length comes first, because one of the queues expects it there.
            let message = [8, 0, 0, 0, tx.next as u8, (tx.next >> 8) as u8, 0, 0];
            assert!(tx.end.try_send(&message));
            tx.next += 1;
        }
    };
    let take = move || {
        let first = rx.next;
        while rx.next - first < a_turn as u64 {
            let number = rx.next;
            let right = |message: &[u8]| message[4..6] == [number as u8, (number >> 8) as u8];
            match rx.end.try_receive(right) {
                Some(right) => assert!(right),
                None => break,
            }
            rx.next += 1;
        }
        rx.next - first
    };
    in_turns(vec![puts(put), takes(take)], rounds)
}

/// One thread to several, with a queue to each: turns of `a_turn` items a queue.
pub(crate) fn fan<X: Tx<u64>, R: Rx<u64>>(
    make: impl Fn(usize) -> Result<(X, R), Unable>,
    queues: usize,
    capacity: usize,
    a_turn: usize,
    rounds: Rounds,
) -> u64 {
    let (mut txs, mut actors) = (Vec::new(), Vec::new());
    for _ in 0..queues {
        let (tx, rx) = pair(&make, capacity);
        txs.push(Numbered::new(tx, ()));
        let mut rx = Numbered::new(rx, ());
        actors.push(takes(move || take::<u64, R>(&mut rx, a_turn)));
    }
    actors.insert(0, puts(move || txs.iter_mut().for_each(|tx| put::<u64, X>(tx, a_turn))));
    in_turns(actors, rounds)
}

/// Both threads run at once, as the papers measure, until so many items are put and taken.
pub(crate) fn free<X: Tx<u64>, R: Rx<u64>>(
    make: impl Fn(usize) -> Result<(X, R), Unable>,
    capacity: usize,
    [to_put, to_take]: [u64; 2],
) -> u64 {
    let (tx, rx) = pair(make, capacity);
    let (mut tx, mut rx) = (Numbered::new(tx, ()), Numbered::new(rx, ()));
    let put = || {
        while tx.next < to_put {
            put::<u64, X>(&mut tx, 1);
        }
    };
    let take = || {
        while rx.next < to_take {
            take::<u64, R>(&mut rx, 1);
        }
        rx.next
    };
    at_once([puts(put), takes(take)])
}

/// A queue that all threads share. Each turn of a thread, whether it puts or takes, is `a_turn` calls.
pub(super) fn shared<Q: Sync>(
    make: impl FnOnce() -> Q,
    [putters, takers, a_turn]: [usize; 3],
    put: impl Fn(&Q) + Sync,
    take: impl Fn(&Q) -> bool + Sync,
) -> u64 {
    let queue = &made(make);
    let (put, take) = (&put, &take);
    let mut actors = Vec::new();
    actors.extend((0..putters).map(|_| puts(move || (0..a_turn).for_each(|_| put(queue)))));
    actors.extend((0..takers).map(|_| takes(move || (0..a_turn).filter(|_| take(queue)).count() as u64)));
    in_turns(actors, laps(CAPACITY, putters * a_turn))
}

/// Turns of `BATCH` items, out of one vector and into another.
pub(super) fn batches_of_vectors(
    mut push: impl FnMut(&mut Vec<u64>) -> usize + Send,
    mut pop: impl FnMut(&mut Vec<u64>) -> usize + Send,
) -> u64 {
    let [mut supply, mut taken] = [(); 2].map(|()| made(|| Vec::with_capacity(BATCH)));
    let put = move || {
        supply.extend(0..BATCH as u64);
        assert_eq!(push(&mut supply), BATCH);
    };
    let take = move || {
        taken.clear();
        pop(&mut taken) as u64
    };
    in_turns(vec![puts(put), takes(take)], laps(CAPACITY, BATCH))
}

/// A take that waits, as a ticket, and a put that meets it.
pub(super) fn by_ticket(fairness: Fairness, putters: usize) -> u64 {
    let queue = &made(|| SynchronousQueue::new(fairness));
    let take = || {
        let mut ticket = None::<TakeTicket<'_, u64>>;
        takes(move || {
            let taken = ticket.take().is_some_and(|mut ticket| ticket.try_followup() == Some(Ok(7)));
            ticket = Some(queue.reserve_take());
            taken.into()
        })
    };
    let mut actors = Vec::new();
    // In the first round no thread waits yet.
    actors.extend((0..putters).map(|_| puts(move || _ = queue.try_put(7))));
    actors.extend((0..putters).map(|_| take()));
    in_turns(actors, laps(CAPACITY, putters))
}

/// The most remote accesses that all failed follow-ups to one ticket may make together. In a fair queue the next
/// request is linked to the ticket, once.
pub(super) const MOST_REMOTE: f64 = 1.0;
/// How many further requests come and go while requests wait.
const COMINGS: u64 = 8;

/// Lets requests wait, each asking `attempts` times between any two events. Returns the number of requests. At an event
/// one more request comes, and a call of the other kind meets one that is not among the waiting requests.
fn follow_ups<T: Send>(
    reserve: impl Fn() -> T + Copy + Send,
    is_met: impl Fn(&mut T) -> bool + Copy + Send,
    meet: impl Fn() + Send,
    [tickets, attempts]: [usize; 2],
) -> u64 {
    let mut others = Vec::new();
    let mut actors = vec![puts(move || {
        if others.is_empty() {
            // A fair queue meets these requests first. An unfair queue meets the ones that come later.
            others.extend((0..COMINGS).map(|_| reserve()));
        } else {
            others.push(reserve());
            meet();
        }
    })];
    actors.extend((0..tickets).map(|_| {
        let mut ticket = None;
        takes(move || {
            match &mut ticket {
                None => ticket = Some(reserve()),
                Some(ticket) => (0..attempts).for_each(|_| assert!(!is_met(ticket))),
            }
            0
        })
    }));
    // In the first round every ticket is made.
    in_turns(actors, Rounds { warm: 1, counted: COMINGS });
    tickets as u64
}

pub(super) fn follow_ups_of_takes(fairness: Fairness, shape: [usize; 2]) -> u64 {
    let queue = &made(|| SynchronousQueue::new(fairness));
    let meet = || queue.try_put(7).expect("takes wait");
    follow_ups(|| queue.reserve_take(), |ticket| ticket.try_followup().is_some(), meet, shape)
}

pub(super) fn follow_ups_of_puts(fairness: Fairness, shape: [usize; 2]) -> u64 {
    let queue = &made(|| SynchronousQueue::new(fairness));
    let meet = || assert_eq!(queue.try_take(), Ok(7));
    follow_ups(|| queue.reserve_put(7), |ticket| ticket.try_followup().is_some(), meet, shape)
}

/// Words that one thread writes and another reads, in turns. The directory's counts for them are known in advance.
pub(super) fn bare_words(words: usize) -> u64 {
    let words: &[AtomicU64] = &made(|| (0..words).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    let put = || words.iter().for_each(|word| word.store(7, Relaxed));
    let take = || words.iter().filter(|word| word.load(Relaxed) == 7).count() as u64;
    in_turns(vec![puts(put), takes(take)], laps(CAPACITY, words.len()))
}
