//! Closing by call or by drop: each item is given back or can be popped.

use crate::case::{CAPACITIES, Case, Ledger, Random, Rx, STARTS, Tx, fill, queue, queue_from};
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::thread;
use std::time::Duration;

/// The queue is closed for its producer, which gets its item back from every call.
fn assert_refuses<C: Case>(tx: &mut Tx<u64, C>) {
    assert!(tx.is_closed());
    assert_eq!(tx.try_push(9), Err(TryPushError::Closed(9)));
    assert_eq!(tx.push(9), Err(Closed(9)));
    assert_eq!(tx.push_timeout(9, Duration::from_secs(100)), Err(PushTimeoutError::Closed(9)));
    assert_eq!(tx.try_push_slice(&[9, 9]).unwrap_or(0), 0);
    assert_eq!(tx.try_push_batch(&mut [9, 9].into_iter().collect()).unwrap_or(0), 0);
}

/// The queue holds these items and is drained after them.
fn assert_drains<C: Case>(rx: &mut Rx<u64, C>, from: u64, to: u64) {
    assert!(rx.is_closed());
    assert_eq!(rx.len() as u64, to - from);
    for item in from..to {
        assert_eq!(rx.try_pop(), Ok(item));
    }
    assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
    assert_eq!(rx.pop(), Err(Closed(())));
    assert_eq!(rx.pop_timeout(Duration::from_secs(100)), Err(PopTimeoutError::Closed));
    assert_eq!(rx.wait_for_item(), Err(Closed(())));
    assert_eq!(rx.try_pop_slice(&mut [0; 3]).unwrap_or(0), 0);
    assert_eq!(rx.try_pop_batch(&mut Vec::new(), 3).unwrap_or(0), 0);
    assert!(rx.try_peek().is_err());
    assert!(rx.is_empty());
    assert_eq!(rx.len(), 0);
}

pub(crate) fn what_was_pushed_before_the_producer_left_is_drained<C: Case>() {
    for capacity in CAPACITIES {
        for n in [0, 1, capacity / 2, capacity] {
            let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 3);
            assert_eq!(tx.try_push_batch(&mut (0..n as u64).collect()).unwrap_or(0), n);
            assert!(!rx.is_closed());
            drop(tx);
            assert_drains::<C>(&mut rx, 0, n as u64);
        }
    }
}

pub(crate) fn a_producer_that_closed_pushes_no_more<C: Case>() {
    for n in [0, 1, 6, 7, 8, 50, 100] {
        let (mut tx, mut rx) = queue_from::<u64, C>(100, usize::MAX - 3);
        assert_eq!(tx.try_push_batch(&mut (0..n).collect()).unwrap_or(0), n as usize);
        assert!(!tx.is_closed());
        tx.close();
        assert_refuses::<C>(&mut tx);
        assert_drains::<C>(&mut rx, 0, n);
        assert_refuses::<C>(&mut tx);
        assert_drains::<C>(&mut rx, 0, 0);
    }
}

pub(crate) fn a_consumer_that_closed_gets_exactly_what_was_accepted<C: Case>() {
    for start in STARTS {
        for n in [0, 1, 6, 7, 8, 50, 99, 100] {
            for popped in [0, 1, 7, n / 2, n] {
                let popped = popped.min(n);
                let (mut tx, mut rx) = queue_from::<u64, C>(100, start);
                assert_eq!(tx.try_push_batch(&mut (0..n).collect()).unwrap_or(0), n as usize);
                (0..popped).for_each(|item| assert_eq!(rx.pop(), Ok(item)));
                rx.close();
                assert_refuses::<C>(&mut tx);
                assert_drains::<C>(&mut rx, popped, n);
                assert_refuses::<C>(&mut tx);
                drop(tx);
                assert_drains::<C>(&mut rx, 0, 0);
            }
        }
    }
}

pub(crate) fn a_refused_batch_leaves_no_trace<C: Case>() {
    for start in STARTS {
        for inside in 0..20 {
            let (mut tx, mut rx) = queue_from::<u64, C>(100, start);
            assert_eq!(tx.try_push_slice(&vec![7; inside]).unwrap_or(0), inside);
            rx.close();
            // Longer than a block of any design.
            assert_eq!(tx.try_push_slice(&[9; 50]).unwrap_or(0), 0);
            assert_eq!(tx.len(), inside);
            for _ in 0..inside {
                assert_eq!(rx.try_pop(), Ok(7));
            }
            assert_refuses::<C>(&mut tx);
            assert_drains::<C>(&mut rx, 0, 0);
        }
    }
}

pub(crate) fn pushes_after_the_consumer_closed_give_the_item_back<C: Case>() {
    let ledger = Ledger::new(50);
    let (mut tx, mut rx) = queue::<_, C>(50);
    for id in 0..20 {
        assert!(tx.try_push(ledger.item(id)).is_ok());
    }
    rx.close();
    for id in 20..50 {
        match tx.try_push(ledger.item(id)) {
            Err(TryPushError::Closed(item)) => assert_eq!(item.id, id),
            _ => panic!("accepted after the close"),
        }
        assert_eq!(ledger.drops(id), 1);
    }
    assert_eq!(rx.len(), 20);
    drop((rx, tx));
    ledger.assert_dropped_once(50);
}

pub(crate) fn pushes_after_the_consumer_left_give_the_item_back<C: Case>() {
    for n in [0, 1, 7, 50, 100] {
        for popped in [0, n / 2, n] {
            let (mut tx, mut rx) = queue_from::<u64, C>(100, usize::MAX - 3);
            assert_eq!(tx.try_push_batch(&mut (0..n).collect()).unwrap_or(0), n as usize);
            (0..popped).for_each(|item| assert_eq!(rx.pop(), Ok(item)));
            drop(rx);
            assert_refuses::<C>(&mut tx);
            assert_refuses::<C>(&mut tx);
        }
    }
}

pub(crate) fn closing_a_full_queue<C: Case>() {
    for capacity in CAPACITIES {
        let (mut tx, mut rx) = queue::<u64, C>(capacity);
        fill(&mut tx, 0);
        rx.close();
        assert_refuses::<C>(&mut tx);
        assert_eq!(rx.pop(), Ok(0));
        assert_refuses::<C>(&mut tx);
        assert_drains::<C>(&mut rx, 1, capacity as u64);
    }
}

pub(crate) fn closing_at_every_fill<C: Case>() {
    for capacity in [1, 2, 8, 22, 50, 64] {
        for before in 0..30 {
            for n in 0..=capacity.min(30) as u64 {
                let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 1);
                for item in 0..before {
                    tx.push(item).unwrap();
                    assert_eq!(rx.pop(), Ok(item));
                }
                let pushed = tx.try_push_batch(&mut (0..n).collect()).unwrap_or(0) as u64;
                rx.close();
                assert_eq!(tx.try_push(9), Err(TryPushError::Closed(9)));
                assert_eq!(rx.len() as u64, pushed);
                (0..pushed).for_each(|item| assert_eq!(rx.try_pop(), Ok(item)));
                assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
            }
        }
    }
}

pub(crate) fn closing_twice_changes_nothing<C: Case>() {
    let (mut tx, mut rx) = queue::<u64, C>(10);
    assert_eq!(tx.try_push_slice(&[0, 1, 2]).unwrap_or(0), 3);
    rx.close();
    tx.close();
    rx.close();
    tx.close();
    assert_refuses::<C>(&mut tx);
    assert_eq!(rx.pop(), Ok(0));
    rx.close();
    assert_drains::<C>(&mut rx, 1, 3);
}

/// The rounds of a race: two threads that meet before each one.
struct Meeting([AtomicUsize; 2]);

impl Meeting {
    fn new() -> Self {
        Self([AtomicUsize::new(0), AtomicUsize::new(0)])
    }

    fn join(&self, me: usize) -> Participant<'_> {
        Participant { meeting: self, me }
    }
}

struct Participant<'a> {
    meeting: &'a Meeting,
    me: usize,
}

impl Participant<'_> {
    fn wait(&self, round: usize) {
        self.meeting.0[self.me].store(round + 1, Release);
        let mut looks = 0_u32;
        while self.meeting.0[1 - self.me].load(Acquire) <= round {
            looks += 1;
            if looks.is_multiple_of(128) {
                thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        // No thread waits for one that failed.
        self.meeting.0[self.me].store(usize::MAX, Release);
    }
}

const ROUNDS: usize = 3_000;

/// Lets a consumer close while a producer pushes, many times. `push` is given the next item and returns the one after
/// what was accepted, and whether the queue was closed. Every item before that must come out, and no other.
fn race_close<C: Case>(push: impl Fn(&mut Tx<u64, C>, u64) -> (u64, bool) + Send + Sync) {
    for capacity in [1, 3, 8, 200] {
        let mut senders = Vec::new();
        let mut receivers = Vec::new();
        for round in 0..ROUNDS / 4 {
            let (tx, rx) = queue_from::<u64, C>(capacity, usize::MAX - round % 40);
            senders.push(tx);
            receivers.push(rx);
        }
        let meeting = Meeting::new();
        let (accepted, drained) = thread::scope(|scope| {
            let accepted = scope.spawn(|| {
                let meeting = meeting.join(0);
                let mut random = Random::new(1);
                let mut accepted = Vec::new();
                for (round, mut tx) in senders.into_iter().enumerate() {
                    meeting.wait(round);
                    random.spin(300);
                    let mut next = 0;
                    loop {
                        let (after, closed) = push(&mut tx, next);
                        if closed {
                            next = after;
                            break;
                        }
                        // Nor do a whole time slice's items go into an unbounded queue while the consumer has no CPU.
                        if after > 300 || after == next && random.below(20) == 0 {
                            thread::yield_now();
                        }
                        next = after;
                    }
                    assert_eq!(tx.try_push(0), Err(TryPushError::Closed(0)));
                    accepted.push(next);
                }
                accepted
            });
            let meeting = meeting.join(1);
            let mut random = Random::new(2);
            let mut drained = Vec::new();
            for (round, mut rx) in receivers.into_iter().enumerate() {
                meeting.wait(round);
                random.spin(600);
                let mut next = 0;
                for _ in 0..random.below(40) {
                    match rx.try_pop() {
                        Ok(item) => assert_eq!(item, next),
                        Err(error) => {
                            assert_eq!(error, TryPopError::Empty);
                            continue;
                        }
                    }
                    next += 1;
                }
                rx.close();
                let len = rx.len() as u64;
                let before = next;
                loop {
                    match rx.try_pop() {
                        Ok(item) => assert_eq!(item, next),
                        Err(error) => {
                            assert_eq!(error, TryPopError::Closed);
                            break;
                        }
                    }
                    next += 1;
                }
                assert_eq!(next - before, len, "nothing is accepted after the close");
                drained.push(next);
            }
            (accepted.join().unwrap(), drained)
        });
        assert_eq!(accepted, drained, "capacity {capacity}");
    }
}

pub(crate) fn a_close_races_single_pushes<C: Case>() {
    race_close::<C>(|tx, next| match tx.try_push(next) {
        Ok(()) => (next + 1, false),
        Err(refused) => {
            assert!(refused == TryPushError::Full(next) || refused == TryPushError::Closed(next));
            (next, refused.is_closed())
        }
    });
}

pub(crate) fn a_close_races_blocking_pushes<C: Case>() {
    race_close::<C>(|tx, next| match tx.push(next) {
        Ok(()) => (next + 1, false),
        Err(Closed(item)) => {
            assert_eq!(item, next);
            (next, true)
        }
    });
}

pub(crate) fn a_close_races_push_batch<C: Case>() {
    race_close::<C>(|tx, next| {
        let pushed = tx.try_push_batch(&mut (next..next + 9).collect()).unwrap_or(0) as u64;
        (next + pushed, pushed < 9 && tx.is_closed())
    });
}

pub(crate) fn a_close_races_push_slice<C: Case>() {
    race_close::<C>(|tx, next| {
        let items = std::array::from_fn::<_, 9, _>(|i| next + i as u64);
        let pushed = tx.try_push_slice(&items).unwrap_or(0) as u64;
        (next + pushed, pushed < 9 && tx.is_closed())
    });
}

pub(crate) fn a_close_races_reservations<C: Case>() {
    race_close::<C>(|tx, next| match tx.try_reserve().map(|slot| slot.write(next)) {
        Ok(Ok(())) => (next + 1, false),
        Ok(Err(Closed(item))) => {
            assert_eq!(item, next);
            (next, true)
        }
        Err(error) => (next, error == corelane::error::TryPushError::Closed(())),
    });
}

/// Drops the consumer while the producer pushes by `push`, which is given the number of items made so far and raises
/// it.
fn race_drop<C: Case>(push: impl Fn(&mut Tx<crate::case::Tracked, C>, &Ledger, &mut usize) + Send + Sync) {
    const ITEMS: usize = 120;
    for capacity in [1, 8, 200] {
        let rounds = ROUNDS / 6;
        let ledgers = (0..rounds).map(|_| Ledger::new(ITEMS)).collect::<Vec<_>>();
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..rounds).map(|round| queue_from::<_, C>(capacity, usize::MAX - round % 40)).unzip();
        let meeting = Meeting::new();
        let made = thread::scope(|scope| {
            let made = scope.spawn(|| {
                let meeting = meeting.join(0);
                let mut made = Vec::new();
                for (round, mut tx) in senders.into_iter().enumerate() {
                    meeting.wait(round);
                    let mut next = 0;
                    while next < ITEMS && !tx.is_closed() {
                        push(&mut tx, &ledgers[round], &mut next);
                    }
                    made.push(next);
                }
                made
            });
            let meeting = meeting.join(1);
            let mut random = Random::new(4);
            for (round, mut rx) in receivers.into_iter().enumerate() {
                meeting.wait(round);
                random.spin(1000);
                let mut items = Vec::new();
                for _ in 0..random.below(4) {
                    rx.try_pop_batch(&mut items, random.below(20)).unwrap_or(0);
                }
                assert!(items.iter().map(|item| item.id).eq(0..items.len()));
                drop(rx);
            }
            made.join().unwrap()
        });
        for (ledger, made) in ledgers.iter().zip(made) {
            ledger.assert_dropped_once(made);
        }
    }
}

pub(crate) fn a_consumers_drop_races_pushes<C: Case>() {
    race_drop::<C>(|tx, ledger, next| {
        let mut item = ledger.item(*next);
        while let Err(TryPushError::Full(refused)) = tx.try_push(item) {
            assert_eq!(refused.id, *next);
            item = refused;
            thread::yield_now();
        }
        *next += 1;
    });
}

pub(crate) fn a_consumers_drop_races_push_batch<C: Case>() {
    race_drop::<C>(|tx, ledger, next| {
        let end = (*next + 9).min(120);
        let mut items = (*next..end).map(|id| ledger.item(id)).collect::<Vec<_>>();
        *next = end;
        let refused = tx.push_batch(&mut items);
        assert_eq!(refused.is_err(), !items.is_empty());
    });
}

pub(crate) fn a_close_races_a_producers_drop<C: Case>() {
    for capacity in [1, 8, 100] {
        let rounds = ROUNDS / 3;
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..rounds).map(|round| queue_from::<u64, C>(capacity, usize::MAX - round % 40)).unzip();
        let meeting = Meeting::new();
        thread::scope(|scope| {
            let accepted = scope.spawn(|| {
                let meeting = meeting.join(0);
                let push = |(round, mut tx): (usize, Tx<u64, C>)| {
                    meeting.wait(round);
                    (0..(round % 20) as u64).take_while(|&item| tx.try_push(item).is_ok()).count()
                };
                senders.into_iter().enumerate().map(push).collect::<Vec<_>>()
            });
            let meeting = meeting.join(1);
            let mut random = Random::new(5);
            let mut drain = |(round, mut rx): (usize, Rx<u64, C>)| {
                meeting.wait(round);
                random.spin(300);
                rx.close();
                let mut items = Vec::new();
                while rx.try_pop_batch(&mut items, 7).unwrap_or(0) != 0 {}
                assert_eq!(rx.pop(), Err(Closed(())));
                assert!(items.iter().copied().eq(0..items.len() as u64));
                items.len()
            };
            let drained = receivers.into_iter().enumerate().map(&mut drain).collect::<Vec<_>>();
            assert_eq!(accepted.join().unwrap(), drained);
        });
    }
}

pub(crate) fn what_is_pushed_just_before_the_producer_leaves_is_popped<C: Case>() {
    for by_blocking in [false, true] {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..4 * ROUNDS).map(|_| queue_from::<u64, C>(2, usize::MAX)).unzip();
        let meeting = Meeting::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                let meeting = meeting.join(0);
                let mut random = Random::new(6);
                for (round, mut tx) in senders.into_iter().enumerate() {
                    meeting.wait(round);
                    random.spin(30);
                    tx.try_push(0).unwrap();
                    drop(tx);
                }
            });
            let meeting = meeting.join(1);
            for (round, mut rx) in receivers.into_iter().enumerate() {
                meeting.wait(round);
                let first = if by_blocking {
                    rx.pop().ok()
                } else {
                    let mut looks = 0_u32;
                    loop {
                        match rx.try_pop() {
                            Ok(item) => break Some(item),
                            Err(TryPopError::Closed) => break None,
                            Err(error) => assert_eq!(error, TryPopError::Empty),
                        }
                        // On one CPU each round would cost a time slice.
                        looks += 1;
                        if looks.is_multiple_of(128) {
                            thread::yield_now();
                        }
                    }
                };
                assert_eq!(first, Some(0), "round {round}");
                assert_eq!(rx.pop(), Err(Closed(())));
            }
        });
    }
}
