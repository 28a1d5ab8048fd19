//! FastFlow's queue: pointers in order, each once, none lost with the queue.

#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[path = "../../corelane/tests/support/histories.rs"]
mod histories;
#[path = "../../corelane/tests/support/one_to_one.rs"]
#[expect(dead_code, reason = "it has no bound, no close and no count")]
mod one_to_one;
#[allow(dead_code, reason = "no call is drawn")]
#[path = "../../corelane/tests/support/random.rs"]
mod random;
#[path = "../../corelane/tests/support/sequences.rs"]
mod sequences;
#[path = "../../corelane/tests/support/watchdog.rs"]
mod watchdog;

use corelane::error::ChannelError;
use corelane_papers::fastflow;
use histories::{Clock, Event};
use one_to_one::Step;
use proptest::collection::vec;
use proptest::prelude::*;
use random::Random;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

#[test]
fn pointers_arrive_in_order() {
    for size in [1, 2, 3, 64, 1000] {
        let (mut tx, mut rx) = fastflow::channel(size);
        assert_eq!(rx.pop(), None);
        let (mut pushed, mut popped) = (0, 0);
        for round in 0..if cfg!(miri) { 30 } else { 400 } {
            for _ in 0..round % 17 {
                tx.push(Box::new(pushed)).unwrap();
                pushed += 1;
            }
            for _ in 0..round % 13 {
                let got = rx.pop();
                assert_eq!(got.as_deref(), (popped < pushed).then_some(&popped));
                popped += usize::from(got.is_some());
            }
        }
        while let Some(got) = rx.pop() {
            assert_eq!(*got, popped);
            popped += 1;
        }
        assert_eq!(popped, pushed);
    }
}

#[test]
fn pointers_cross_threads() {
    const ITEMS: u64 = if cfg!(miri) { 300 } else { 200_000 };
    watchdog::guard(|| {
        for size in [1, 5, 512] {
            let (mut tx, mut rx) = fastflow::channel(size);
            thread::scope(|scope| {
                scope.spawn(move || {
                    for number in 0..ITEMS {
                        tx.push(Box::new(number)).unwrap();
                        if number % 1000 == 0 {
                            thread::yield_now();
                        }
                    }
                });
                for number in 0..ITEMS {
                    let got = loop {
                        match rx.pop() {
                            Some(got) => break got,
                            None => thread::yield_now(),
                        }
                    };
                    assert_eq!(*got, number);
                }
                assert_eq!(rx.pop(), None);
            });
        }
    });
}

/// Through more buffers than the cache holds.
#[test]
fn what_is_inside_is_dropped_with_the_queue() {
    for (size, inside, popped) in [(1, 0, 0), (1, 200, 150), (4, 500, 3), (4, 500, 499), (64, 10, 10)] {
        let item = Arc::new(());
        let (mut tx, mut rx) = fastflow::channel(size);
        (0..inside).for_each(|_| tx.push(Box::new(item.clone())).unwrap());
        (0..popped).for_each(|_| drop(rx.pop().unwrap()));
        assert_eq!(Arc::strong_count(&item), 1 + inside - popped);
        drop(tx);
        assert!(rx.pop().is_some() || inside == popped);
        drop(rx);
        assert_eq!(Arc::strong_count(&item), 1);
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    assert_eq!(fastflow::try_channel::<u8>(0).err(), Some(ChannelError::ZeroCapacity));
    assert_eq!(fastflow::try_channel::<u8>(usize::MAX / 8).err(), Some(ChannelError::NoMemory));
    let (tx, rx) = fastflow::channel::<u8>(7);
    assert_eq!(format!("{tx:?} {rx:?}"), "Producer { size: 7, .. } Consumer { size: 7, .. }");
}

/// Bursts through more buffers than the cache holds, and back to empty.
#[test]
fn random_sequences_are_answered_as_by_a_deque() {
    let call = prop_oneof![(any::<bool>(), 0..4_usize), (any::<bool>(), 0..100_usize)];
    sequences::judge(400, &(1..9_usize, vec(call, 0..60)), |(size, calls)| {
        let (mut tx, mut rx) = fastflow::channel(size);
        let token = Arc::new(());
        let mut model = VecDeque::new();
        for (number, (push, count)) in (0..).step_by(1000).zip(calls) {
            for number in number..number + count {
                if push {
                    assert!(tx.push(Box::new((number, token.clone()))).is_ok());
                    model.push_back(number);
                } else {
                    assert_eq!(rx.pop().map(|item| item.0), model.pop_front());
                }
            }
            assert_eq!(Arc::strong_count(&token), 1 + model.len());
        }
        drop((tx, rx));
        assert_eq!(Arc::strong_count(&token), 1);
    });
}

/// Two threads, and a checker of linearizability that judges what each call answered.
#[test]
fn histories_are_linearizable() {
    const HISTORIES: usize = 1500;
    fn push(tx: &mut fastflow::Producer<u64>, _: &mut Random, next: &mut u64, clock: &Clock) -> Event<Vec<Step>> {
        let item = Box::new(*next);
        *next += 1;
        clock.time(|| {
            let number = *item;
            tx.push(item).unwrap();
            vec![Step::Push(number)]
        })
    }
    fn pop(rx: &mut fastflow::Consumer<u64>, _: &mut Random, next: &mut u64, clock: &Clock) -> Event<Vec<Step>> {
        let (begin, end, item) = clock.time(|| rx.pop());
        let step = item.map_or(Step::Nothing(*next), |item| Step::Pop(*item));
        *next += u64::from(matches!(step, Step::Pop(_)));
        (begin, end, vec![step])
    }
    for round in 0..HISTORIES {
        let (mut tx, mut rx) = fastflow::channel(1 + round % 3);
        let start = Step::Start { bound: u64::MAX, lag: 0, late: 0, inside: 0 };
        let randoms = [1, 2].map(|seed| Random::new((2 * round + seed) as u64));
        one_to_one::judge(start, randoms, (&mut tx, push), (&mut rx, pop), |rx| rx.pop().map(|item| *item));
    }
    println!("{HISTORIES} histories judged");
}
