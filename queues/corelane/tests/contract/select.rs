//! One thread that waits for many queues.

use crate::case::{Case, Random, Rx, Tx, fill, queue};
use crate::first::first;
use crate::scaled::at_most;
use crate::waiting::{ROUNDS, SLACK};
use corelane::error::TryPopError;
use corelane::wait::{Adaptive, Park, Select, Selectable, Spin, Strategy, Yield};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::thread;
use std::time::{Duration, Instant};

/// An end among others of other kinds.
type AnyEnd<'a> = &'a mut (dyn Selectable + Send);

const NAP: Duration = Duration::from_millis(8);

fn queues<C: Case>(count: usize, capacity: usize) -> (Vec<Tx<u64, C>>, Vec<Rx<u64, C>>) {
    (0..count).map(|_| queue::<u64, C>(capacity)).unzip()
}

pub(crate) fn the_first_ready_end_is_named<C: Case>() {
    let (mut tx, mut rx) = queues::<C>(4, 5);
    assert_eq!(first(&mut rx, &Spin, Some(Duration::ZERO)), None);
    tx[2].push(1).unwrap();
    assert_eq!(first(&mut rx, &Park, None), Some(2));
    tx[1].push(1).unwrap();
    assert_eq!(first(&mut rx, &Park, None), Some(1));
    assert_eq!(first(&mut tx[..1], &Park, Some(Duration::ZERO)), Some(0), "a producer with room is ready");
}

fn sleep_and_wake<C: Case, W: Strategy + Sync>(wait: &W) {
    for ready in 0..3 {
        let (mut tx, mut rx) = queues::<C>(3, 5);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| first(&mut rx, wait, None));
            thread::sleep(NAP);
            tx[ready].push(1).unwrap();
            assert_eq!(sleeper.join().unwrap(), Some(ready));
        });
        assert_eq!(rx[ready].pop(), Ok(1));
    }
}

pub(crate) fn sleeps_once_for_many_queues<C: Case>() {
    sleep_and_wake::<C, _>(&Park);
    sleep_and_wake::<C, _>(&Adaptive);
    sleep_and_wake::<C, _>(&Yield);
}

pub(crate) fn wakes_for_a_close<C: Case>() {
    let (mut tx, mut rx) = queues::<C>(3, 5);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| first(&mut rx, &Park, None));
        thread::sleep(NAP);
        tx[1].close();
        assert_eq!(sleeper.join().unwrap(), Some(1));
    });
    assert_eq!(rx[1].try_pop(), Err(TryPopError::Closed));
    rx.remove(1);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| first(&mut rx, &Park, None));
        thread::sleep(NAP);
        drop(tx.remove(2));
        assert_eq!(sleeper.join().unwrap(), Some(1));
    });
}

pub(crate) fn times_out<C: Case>() {
    let (_tx, mut rx) = queues::<C>(3, 5);
    let time = Duration::from_millis(15);
    for ends in [0, 3] {
        let since = Instant::now();
        assert_eq!(first(&mut rx[..ends], &Park, Some(time)), None);
        let took = since.elapsed();
        assert!(took >= time && took <= time + SLACK, "{took:?}");
    }
    assert_eq!(first(&mut rx[..0], &Park, None), None, "no end would ever be ready");
}

pub(crate) fn producers_and_consumers_mix<C: Case>() {
    let (mut other_tx, mut rx) = queue::<u64, C>(1);
    let (mut tx, mut other_rx) = queue::<u64, C>(1);
    fill(&mut tx, 0);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| first(&mut [&mut rx as AnyEnd, &mut tx], &Park, None));
        thread::sleep(NAP);
        assert_eq!(other_rx.try_pop(), Ok(0));
        assert_eq!(sleeper.join().unwrap(), Some(1));
    });
    fill(&mut tx, 1);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| first(&mut [&mut rx as AnyEnd, &mut tx], &Park, None));
        thread::sleep(NAP);
        other_tx.try_push(5).unwrap();
        assert_eq!(sleeper.join().unwrap(), Some(0));
    });
    assert_eq!(rx.pop(), Ok(5));
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| first(&mut [&mut rx as AnyEnd, &mut tx], &Park, None));
        thread::sleep(NAP);
        other_rx.close();
        assert_eq!(sleeper.join().unwrap(), Some(1));
    });
}

pub(crate) fn serves_many_queues_to_the_end<C: Case>() {
    const ITEMS: u64 = 5_000;
    let (tx, rx) = queues::<C>(3, 4);
    thread::scope(|scope| {
        for mut tx in tx {
            scope.spawn(move || (0..ITEMS).for_each(|item| tx.push(item).unwrap()));
        }
        let mut next = vec![0; rx.len()];
        let mut select = Select::with(Park);
        let keys: Vec<_> = rx.into_iter().map(|rx| select.add(rx)).collect();
        while let Some(ready) = select.wait() {
            let ready = ready.index();
            match select[keys[ready]].try_pop() {
                Ok(item) => {
                    assert_eq!(item, next[ready]);
                    next[ready] += 1;
                }
                Err(error) => {
                    assert_eq!(error, TryPopError::Closed, "it was named ready");
                    assert_eq!(next[ready], ITEMS);
                    select.remove(keys[ready]).unwrap();
                }
            }
        }
        assert_eq!(next, [ITEMS; 3]);
    });
}

/// Each item comes about when its consumer has looked, and falls asleep.
pub(crate) fn no_wake_up_is_lost<C: Case>() {
    let (mut tx, mut rx) = queues::<C>(2, 4);
    let popped = AtomicU64::new(0);
    let after = &popped;
    thread::scope(|scope| {
        let pushed = scope.spawn(move || {
            let mut random = Random::new(8);
            let mut pushed = 0;
            for item in at_most(Duration::from_secs(15), ROUNDS.start..ROUNDS.end.min(20_000)) {
                tx[random.below(2)].try_push(item).unwrap();
                let mut looks = 0_u32;
                pushed = item + 1;
                while after.load(Acquire) <= item {
                    looks += 1;
                    if looks.is_multiple_of(512) {
                        thread::yield_now();
                    }
                }
                random.spin(80);
            }
            pushed
        });
        let mut next = 0;
        let mut select = Select::with(Park);
        let keys = rx.iter_mut().map(|rx| select.add(rx)).collect::<Vec<_>>();
        loop {
            let ready = select.wait().unwrap().index();
            match select[keys[ready]].try_pop() {
                Ok(item) => assert_eq!(item, next),
                // Nothing is inside, as each item is waited for.
                Err(error) => break assert_eq!(error, TryPopError::Closed, "it was named ready"),
            }
            next += 1;
            popped.store(next, Release);
        }
        assert_eq!(next, pushed.join().unwrap());
    });
}
