//! Waiting: every strategy, woken by everything that ends a wait, not early and never for ever.

use crate::case::{Case, Random, Rx, Tx, fill, options, queue, queue_with};
use crate::scaled::at_most;
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError};
use corelane::wait::{Adaptive, Park, Spin, SpinPark, Strategy, Yield};
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for the other thread to fall asleep.
const NAP: Duration = Duration::from_millis(8);
/// Tells late from never: there is no telling how late a call may end on a busy machine. The watchdog is more patient.
pub(crate) const SLACK: Duration = Duration::from_secs(30);

fn parking<C: Case>(capacity: usize) -> (Tx<u64, C, Park>, Rx<u64, C, Park>) {
    queue_with::<u64, C, _>(capacity, options::<C, _>(capacity, Park).start_at(usize::MAX - 3))
}

fn hand_over_with_pauses<C: Case, W: Strategy + Sync>(wait: W) {
    for (capacity, items) in [(1, 1_000), (2, 1_000), (64, 5_000), (300, 5_000)] {
        let options = options::<C, _>(capacity, wait.clone()).start_at(usize::MAX - 3);
        let (mut tx, mut rx) = queue_with::<u64, C, _>(capacity, options);
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
            assert_eq!(rx.pop(), Err(Closed(())));
        });
    }
}

pub(crate) fn every_strategy_hands_over_with_pauses<C: Case>() {
    hand_over_with_pauses::<C, _>(Spin);
    hand_over_with_pauses::<C, _>(Yield);
    hand_over_with_pauses::<C, _>(SpinPark::default());
    hand_over_with_pauses::<C, _>(SpinPark::new(1));
    hand_over_with_pauses::<C, _>(Park);
    hand_over_with_pauses::<C, _>(Adaptive);
}

fn wake_consumer<C: Case>(
    expected: Result<u64, Closed>,
    wake: impl FnOnce(Tx<u64, C, Park>) -> Option<Tx<u64, C, Park>>,
) {
    let (tx, mut rx) = parking::<C>(100);
    thread::scope(|scope| {
        let popper = scope.spawn(move || (rx.pop(), rx));
        thread::sleep(NAP);
        // Both are kept until both calls have returned: only the one may wake the consumer, and nothing may close the
        // queue under the other.
        let tx = wake(tx);
        let (popped, rx) = popper.join().unwrap();
        assert_eq!(popped, expected);
        drop((tx, rx));
    });
}

pub(crate) fn a_parked_consumer_is_woken<C: Case>() {
    wake_consumer::<C>(Ok(1), |mut tx| {
        tx.try_push(1).unwrap();
        Some(tx)
    });
    wake_consumer::<C>(Ok(2), |mut tx| {
        tx.push(2).unwrap();
        Some(tx)
    });
    wake_consumer::<C>(Ok(3), |mut tx| {
        assert_eq!(tx.try_push_batch(&mut (3..13).collect()).unwrap_or(0), 10);
        Some(tx)
    });
    wake_consumer::<C>(Ok(4), |mut tx| {
        assert_eq!(tx.try_push_slice(&[4, 5, 6]).unwrap_or(0), 3);
        Some(tx)
    });
    wake_consumer::<C>(Ok(5), |mut tx| {
        tx.try_reserve().unwrap().write(5).unwrap();
        Some(tx)
    });
    wake_consumer::<C>(Err(Closed(())), |mut tx| {
        tx.close();
        Some(tx)
    });
    wake_consumer::<C>(Err(Closed(())), |tx| {
        drop(tx);
        None
    });
}

fn wake_producer<C: Case>(
    capacity: usize,
    expected: Result<(), Closed<u64>>,
    wake: impl FnOnce(Rx<u64, C, Park>) -> Option<Rx<u64, C, Park>>,
) {
    let (mut tx, rx) = parking::<C>(capacity);
    fill(&mut tx, 0);
    thread::scope(|scope| {
        let pusher = scope.spawn(move || (tx.push(999), tx));
        thread::sleep(NAP);
        let rx = wake(rx);
        let (pushed, tx) = pusher.join().unwrap();
        assert_eq!(pushed, expected);
        drop((tx, rx));
    });
}

pub(crate) fn a_parked_producer_is_woken<C: Case>() {
    for capacity in [1, 2, 8, 63] {
        wake_producer::<C>(capacity, Ok(()), |mut rx| {
            assert_eq!(rx.try_pop(), Ok(0));
            Some(rx)
        });
        wake_producer::<C>(capacity, Ok(()), |mut rx| {
            assert_ne!(rx.try_pop_batch(&mut Vec::new(), 9).unwrap_or(0), 0);
            Some(rx)
        });
        wake_producer::<C>(capacity, Ok(()), |mut rx| {
            assert_eq!(rx.try_pop_slice(&mut [0]).unwrap_or(0), 1);
            Some(rx)
        });
        wake_producer::<C>(capacity, Ok(()), |mut rx| {
            rx.try_peek().unwrap().release();
            Some(rx)
        });
    }
    for capacity in [1, 63, 100] {
        wake_producer::<C>(capacity, Ok(()), |mut rx| {
            while rx.try_pop().is_ok() {}
            Some(rx)
        });
        wake_producer::<C>(capacity, Err(Closed(999)), |mut rx| {
            rx.close();
            Some(rx)
        });
        wake_producer::<C>(capacity, Err(Closed(999)), |rx| {
            drop(rx);
            None
        });
    }
    // With a lag: one more pop than may be withheld.
    wake_producer::<C>(2000, Ok(()), |mut rx| {
        for item in 0..=250 {
            assert_eq!(rx.try_pop(), Ok(item));
        }
        Some(rx)
    });
}

#[track_caller]
fn assert_on_time(since: Instant, time: Duration) {
    let took = since.elapsed();
    assert!(took >= time, "{took:?} is early for {time:?}");
    assert!(took <= time + SLACK, "{took:?} is late for {time:?}");
}

fn timed_pops<C: Case, W: Strategy>(wait: W) {
    let (_tx, mut rx) = queue_with::<u64, C, _>(100, options::<C, _>(100, wait));
    for time in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(15)] {
        let since = Instant::now();
        assert_eq!(rx.pop_timeout(time), Err(PopTimeoutError::Timeout));
        assert_on_time(since, time);
    }
}

pub(crate) fn timed_pops_are_not_early<C: Case>() {
    timed_pops::<C, _>(Spin);
    timed_pops::<C, _>(Yield);
    timed_pops::<C, _>(Park);
    timed_pops::<C, _>(Adaptive);
}

fn timed_pushes<C: Case, W: Strategy>(wait: W) {
    let (mut tx, mut rx) = queue_with::<u64, C, _>(100, options::<C, _>(100, wait));
    fill(&mut tx, 0);
    for time in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(15)] {
        let since = Instant::now();
        assert_eq!(tx.push_timeout(9, time), Err(PushTimeoutError::Timeout(9)));
        assert_on_time(since, time);
    }
    assert_eq!(rx.len(), 100);
    assert_eq!(rx.pop(), Ok(0));
}

pub(crate) fn timed_pushes_are_not_early<C: Case>() {
    timed_pushes::<C, _>(Spin);
    timed_pushes::<C, _>(Yield);
    timed_pushes::<C, _>(Park);
    timed_pushes::<C, _>(Adaptive);
}

pub(crate) fn timed_waits_end_by_success<C: Case>() {
    let (mut tx, mut rx) = queue::<u64, C>(1);
    for time in [Duration::from_secs(100), Duration::MAX] {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(NAP);
                tx.push(1).unwrap();
                assert_eq!(tx.push_timeout(2, time), Ok(()));
            });
            assert_eq!(rx.pop_timeout(time), Ok(1));
            assert_eq!(rx.pop_timeout(time), Ok(2));
        });
    }
    assert_eq!(tx.push_timeout(3, Duration::ZERO), Ok(()));
    assert_eq!(rx.pop_timeout(Duration::ZERO), Ok(3));
}

pub(crate) fn timed_waits_end_by_close<C: Case>() {
    const LONG: Duration = Duration::from_secs(100);
    let (tx, mut rx) = queue::<u64, C>(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(NAP);
            drop(tx);
        });
        assert_eq!(rx.pop_timeout(LONG), Err(PopTimeoutError::Closed));
    });
    let (mut tx, mut rx) = queue::<u64, C>(1);
    tx.push(0).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(NAP);
            rx.close();
        });
        assert_eq!(tx.push_timeout(9, LONG), Err(PushTimeoutError::Closed(9)));
    });
    assert_eq!(rx.pop(), Ok(0));
}

/// How long a race for a lost wake-up goes on at most. A wake-up that another program delays costs milliseconds.
const RACE: Duration = Duration::from_secs(8);
/// The rounds of such a race: the fewest, however long they take, and the most.
pub(crate) const ROUNDS: Range<u64> = if cfg!(miri) { 50..50 } else { 1_000..50_000 };

/// A lost wake-up would end the process by the watchdog: nothing else wakes these threads.
pub(crate) fn no_wake_up_is_lost<C: Case>() {
    for capacity in [1, 2] {
        let (mut tx, mut rx) = parking::<C>(capacity);
        thread::scope(|scope| {
            let pushed = scope.spawn(move || at_most(RACE, ROUNDS).inspect(|&item| tx.push(item).unwrap()).count());
            let popped = (0..).take_while(|&item| {
                let popped = rx.pop();
                assert!(popped == Ok(item) || popped == Err(Closed(())), "{popped:?} where {item} is next");
                popped.is_ok()
            });
            assert_eq!(popped.count(), pushed.join().unwrap());
        });
    }
}

pub(crate) fn no_wake_up_is_lost_in_batches<C: Case>() {
    for capacity in [3, 64, 100] {
        let (mut tx, mut rx) = parking::<C>(capacity);
        thread::scope(|scope| {
            let pushed = scope.spawn(move || {
                let mut random = Random::new(1);
                let mut next = 0;
                let mut rounds = at_most(RACE, ROUNDS);
                while next < 100_000 && rounds.next().is_some() {
                    next += tx
                        .try_push_batch(&mut (next..(next + 1 + random.below(capacity) as u64).min(100_000)).collect())
                        .unwrap_or(0) as u64;
                    tx.wait_for_room(1 + random.below(capacity)).unwrap();
                }
                next
            });
            let mut random = Random::new(2);
            let mut items = Vec::new();
            while rx.wait_for_item().is_ok() {
                rx.try_pop_batch(&mut items, 1 + random.below(capacity)).unwrap_or(0);
            }
            assert!(items.into_iter().eq(0..pushed.join().unwrap()));
        });
    }
}
