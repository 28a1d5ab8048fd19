//! Waiting: every strategy, woken by everything that ends a wait, not early and never for ever.

use crate::case::{Ends, LONG, NAP, Random, Rx, Shared, Tx, channel, channel_with, parking};
use crate::cpu_time::cpu_time;
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::wait::{Adaptive, Park, Spin, SpinPark, Strategy, Yield};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

fn hands_over<C: Shared, W: Strategy + Sync>(wait: W) {
    for (capacity, items) in [(1, 300), (64, if cfg!(miri) { 100 } else { 2_000 })] {
        let (mut tx, mut rx) = channel_with::<C, u64, _>(capacity, 0, wait.clone());
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut random = Random::new(1);
                for item in 0..items {
                    tx.push(item).unwrap();
                    random.pause();
                }
            });
            let mut random = Random::new(2);
            for item in 0..items {
                assert_eq!(rx.pop(), Ok(item));
                random.pause();
            }
        });
    }
}

pub(crate) fn every_strategy_hands_over<C: Shared>() {
    hands_over::<C, _>(Spin);
    hands_over::<C, _>(Yield);
    hands_over::<C, _>(SpinPark::new(1));
    hands_over::<C, _>(Park);
    hands_over::<C, _>(Adaptive);
}

type ParkingTx<C> = <C as Shared>::Tx<u64, Park>;
type ParkingRx<C> = <C as Shared>::Rx<u64, Park>;

/// A `try_` call until no other thread is in the middle of one.
fn unless_busy<R, E>(busy: fn(&E) -> bool, mut call: impl FnMut() -> Result<R, E>) -> Result<R, E> {
    loop {
        match call() {
            Err(error) if busy(&error) => thread::yield_now(),
            answer => return answer,
        }
    }
}

pub(crate) fn a_sleeping_pop_is_woken_by_everything<C: Shared>() {
    let wakes: [fn(&mut ParkingTx<C>); 7] = [
        |tx| unless_busy(|error| matches!(error, TryPushError::Busy(_)), || tx.try_push(1)).unwrap(),
        |tx| tx.push(1).unwrap(),
        |tx| tx.push_timeout(1, LONG).unwrap(),
        |tx| {
            let batch = &mut vec![1];
            let pushed = unless_busy(|error| matches!(error, TryPushError::Busy(_)), || tx.try_push_batch(batch));
            assert_eq!(pushed, Ok(1));
        },
        |tx| tx.push_batch(&mut vec![1]).unwrap(),
        |tx| tx.push_batch_timeout(&mut vec![1], LONG).unwrap(),
        |tx| tx.clone().push(1).unwrap(),
    ];
    let pops: [fn(&mut ParkingRx<C>) -> u64; 3] = [
        |rx| rx.pop().unwrap(),
        |rx| rx.pop_timeout(Duration::MAX).unwrap(),
        |rx| {
            let mut items = Vec::new();
            assert_eq!(rx.pop_batch(&mut items, 9), Ok(1));
            items[0]
        },
    ];
    for (wake, pop) in wakes.into_iter().zip(pops.into_iter().cycle()).chain(pops.map(|pop| (wakes[0], pop))) {
        let (mut tx, mut rx) = parking::<C, u64>(4);
        thread::scope(|scope| {
            let popper = scope.spawn(move || pop(&mut rx));
            thread::sleep(NAP / 3);
            wake(&mut tx);
            assert_eq!(popper.join().unwrap(), 1);
        });
    }
}

pub(crate) fn a_sleeping_push_is_woken_by_everything<C: Shared>() {
    if !C::BOUNDED {
        return;
    }
    let wakes: [fn(&mut ParkingRx<C>); 4] = [
        |rx| assert_eq!(unless_busy(|error| *error == TryPopError::Busy, || rx.try_pop()), Ok(0)),
        |rx| assert_eq!(rx.pop(), Ok(0)),
        |rx| {
            let popped = unless_busy(|error| *error == TryPopError::Busy, || rx.try_pop_batch(&mut Vec::new(), 1));
            assert_eq!(popped, Ok(1));
        },
        |rx| assert_eq!(rx.pop_batch(&mut Vec::new(), 2), Ok(2)),
    ];
    let pushes: [fn(&mut ParkingTx<C>); 3] =
        [|tx| tx.push(7).unwrap(), |tx| tx.push_timeout(7, LONG).unwrap(), |tx| tx.push_batch(&mut vec![7]).unwrap()];
    for (wake, push) in wakes.into_iter().zip(pushes.into_iter().cycle()) {
        let (mut tx, mut rx) = parking::<C, u64>(2);
        tx.push_batch(&mut vec![0, 1]).unwrap();
        thread::scope(|scope| {
            let pusher = scope.spawn(move || push(&mut tx));
            thread::sleep(NAP / 3);
            wake(&mut rx);
            pusher.join().unwrap();
        });
        let mut items = Vec::new();
        while rx.try_pop_batch(&mut items, 9).is_ok() {}
        assert_eq!(items.last(), Some(&7));
    }
}

pub(crate) fn a_batch_larger_than_the_queue_waits_for_room<C: Shared>() {
    for capacity in [1, 3, 64] {
        let (mut tx, mut rx) = channel::<C, u64>(capacity);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut batch: Vec<_> = (0..500).collect();
                assert_eq!((tx.push_batch(&mut batch), batch.len()), (Ok(()), 0));
            });
            let mut items = Vec::new();
            while rx.pop_batch(&mut items, 7).is_ok() {}
            assert!(items.into_iter().eq(0..500));
        });
    }
}

fn time_outs<C: Shared, W: Strategy + Sync>(wait: W) {
    /// Tells late from never.
    const SLACK: Duration = Duration::from_secs(30);
    for time in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(6)] {
        let on_time = |call: &mut dyn FnMut()| {
            let since = Instant::now();
            call();
            let took = since.elapsed();
            assert!((time..time + SLACK).contains(&took), "{took:?} for {time:?}");
        };
        let (mut tx, mut rx) = channel_with::<C, u64, _>(1, 0, wait.clone());
        on_time(&mut || assert_eq!(rx.pop_timeout(time), Err(PopTimeoutError::Timeout)));
        let none = &mut Vec::new();
        on_time(&mut || assert_eq!(rx.pop_batch_timeout(none, 3, time), Err(PopTimeoutError::Timeout)));
        assert_eq!(tx.push_timeout(0, Duration::ZERO), Ok(()));
        if C::BOUNDED {
            on_time(&mut || assert_eq!(tx.push_timeout(9, time), Err(PushTimeoutError::Timeout(9))));
            let batch = &mut vec![8, 9];
            on_time(&mut || assert_eq!(tx.push_batch_timeout(batch, time), Err(PushTimeoutError::Timeout(()))));
            assert_eq!(*batch, [8, 9]);
        }
        assert_eq!(rx.pop_timeout(Duration::ZERO), Ok(0));
    }
}

pub(crate) fn time_outs_are_not_early<C: Shared>() {
    time_outs::<C, _>(Spin);
    time_outs::<C, _>(Park);
    time_outs::<C, _>(Adaptive);
}

/// A lost wake-up would end the process by the watchdog: no other thread wakes these.
pub(crate) fn no_wake_up_is_lost_among_many<C: Shared>() {
    const ITEMS: usize = if cfg!(miri) { 50 } else { 3_000 };
    for capacity in [1, 3] {
        let (tx, rx) = parking::<C, u64>(capacity);
        thread::scope(|scope| {
            for number in 0..3 {
                let (mut tx, mut rx) = (tx.clone(), rx.clone());
                scope.spawn(move || {
                    let (mut random, mut left) = (Random::new(number), ITEMS);
                    while left != 0 {
                        let size = (1 + random.below(4)).min(left);
                        tx.push_batch(&mut vec![1; size]).unwrap();
                        left -= size;
                    }
                });
                scope.spawn(move || {
                    let (mut random, mut items) = (Random::new(10 + number), Vec::new());
                    while items.len() < ITEMS {
                        // A timed wait that ends beside a wake-up passes it on.
                        let max = (1 + random.below(4)).min(ITEMS - items.len());
                        match random.below(3) {
                            0 => drop(rx.pop_batch_timeout(&mut items, max, Duration::from_micros(20))),
                            _ => drop(rx.pop_batch(&mut items, max).unwrap()),
                        }
                    }
                });
            }
        });
    }
}

pub(crate) fn an_idle_wait_sleeps<C: Shared>() {
    if !C::SLEEPS {
        return;
    }
    let (mut tx, mut rx) = channel::<C, u64>(1);
    let _others: Vec<_> = (0..32).map(|_| tx.clone()).collect();
    thread::scope(|scope| {
        let popper = scope.spawn(move || {
            let before = cpu_time();
            rx.pop().unwrap();
            Some(cpu_time()? - before?)
        });
        thread::sleep(Duration::from_millis(60));
        tx.push(1).unwrap();
        match popper.join().unwrap() {
            Some(awake) => assert!(awake < Duration::from_millis(5), "{awake:?} awake"),
            None => println!("skipped: no schedstat here"),
        }
    });
}

/// A vector of these cannot grow, so the pop that was woken panics before it takes one.
pub(crate) fn a_woken_thread_that_panics_wakes_another<C: Shared>() {
    for _ in 0..10 {
        let (mut tx, mut rx): Ends<C, (), Park> = parking::<C, ()>(5);
        let mut second = rx.clone();
        thread::scope(|scope| {
            let full = scope.spawn(move || {
                let mut items = vec![(); usize::MAX];
                catch_unwind(AssertUnwindSafe(|| rx.pop_batch(&mut items, 2))).is_ok_and(|popped| popped.is_ok())
            });
            thread::sleep(NAP / 2);
            let other = scope.spawn(move || second.pop());
            thread::sleep(NAP / 2);
            tx.push(()).unwrap();
            assert_eq!(other.join().unwrap(), Ok::<_, Closed>(()));
            tx.close();
            assert!(!full.join().unwrap());
        });
    }
}
