//! One thread that waits for many queues.

use crate::case::{Case, Rx, Tx, fill, queue};
use crate::first::first;
use crate::waiting::SLACK;
use corelane::error::TryPopError;
use corelane::wait::{Adaptive, Park, Selectable, Spin, Strategy, Yield};
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
