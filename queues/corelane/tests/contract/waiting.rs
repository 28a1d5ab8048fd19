//! Waiting: every strategy, woken by everything that ends a wait, not early and never for ever.

use crate::case::{Case, Random, Rx, Tx, fill, options, queue_with};
use crate::scaled::at_most;
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError};
use corelane::wait::{Adaptive, Park, Spin, SpinPark, Strategy, Yield};
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for the other thread to fall asleep.
const NAP: Duration = Duration::from_millis(4);
/// Tells late from never: there is no telling how late a call may end on a busy machine. The watchdog is more patient.
pub(crate) const SLACK: Duration = Duration::from_secs(30);

fn parking<C: Case>(capacity: usize) -> (Tx<u64, C, Park>, Rx<u64, C, Park>) {
    queue_with::<u64, C, _>(capacity, options::<C, _>(capacity, Park).start_at(usize::MAX - 3))
}

fn hand_over_with_pauses<C: Case, W: Strategy + Sync>(wait: W) {
    for (capacity, items) in [(1, 500), (64, 2_000), (300, 2_000)] {
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
    hand_over_with_pauses::<C, _>(SpinPark::new(1));
    hand_over_with_pauses::<C, _>(Park);
    hand_over_with_pauses::<C, _>(Adaptive);
}

/// What ends a wait of the other end. Both ends are kept until both calls have returned: only the one may wake the
/// other, and nothing may close the queue under it.
type Wake<E> = fn(&mut Option<E>);

pub(crate) fn a_parked_consumer_is_woken<C: Case>() {
    let wakes: [(Result<u64, Closed>, Wake<Tx<u64, C, Park>>); 7] = [
        (Ok(1), |tx| tx.as_mut().unwrap().try_push(1).unwrap()),
        (Ok(2), |tx| tx.as_mut().unwrap().push(2).unwrap()),
        (Ok(3), |tx| assert_eq!(tx.as_mut().unwrap().try_push_batch(&mut vec![3, 4, 5]), Ok(3))),
        (Ok(4), |tx| assert_eq!(tx.as_mut().unwrap().try_push_slice(&[4, 5, 6]), Ok(3))),
        (Ok(5), |tx| tx.as_mut().unwrap().try_reserve().unwrap().write(5).unwrap()),
        (Err(Closed(())), |tx| tx.as_mut().unwrap().close()),
        (Err(Closed(())), |tx| drop(tx.take())),
    ];
    for (expected, wake) in wakes {
        let (tx, mut rx) = parking::<C>(100);
        thread::scope(|scope| {
            let popper = scope.spawn(move || (rx.pop(), rx));
            thread::sleep(NAP);
            let mut tx = Some(tx);
            wake(&mut tx);
            let (popped, _rx) = popper.join().unwrap();
            assert_eq!(popped, expected);
        });
    }
}

pub(crate) fn a_parked_producer_is_woken<C: Case>() {
    type Row<C> = (&'static [usize], Result<(), Closed<u64>>, Wake<Rx<u64, C, Park>>);
    let wakes: [Row<C>; 8] = [
        (&[1, 2, 8, 63], Ok(()), |rx| assert_eq!(rx.as_mut().unwrap().try_pop(), Ok(0))),
        (&[1, 63], Ok(()), |rx| assert_ne!(rx.as_mut().unwrap().try_pop_batch(&mut Vec::new(), 9), Ok(0))),
        (&[1, 63], Ok(()), |rx| assert_eq!(rx.as_mut().unwrap().try_pop_slice(&mut [0]), Ok(1))),
        (&[1, 63], Ok(()), |rx| rx.as_mut().unwrap().try_peek().unwrap().release()),
        (&[63, 100], Ok(()), |rx| while rx.as_mut().unwrap().try_pop().is_ok() {}),
        // With a lag: one more pop than may be withheld.
        (&[2000], Ok(()), |rx| assert!((0..=250).all(|item| rx.as_mut().unwrap().try_pop() == Ok(item)))),
        (&[1, 100], Err(Closed(999)), |rx| rx.as_mut().unwrap().close()),
        (&[1, 100], Err(Closed(999)), |rx| drop(rx.take())),
    ];
    for (capacity, expected, wake) in
        wakes.iter().flat_map(|(of, expected, wake)| of.iter().map(move |c| (*c, expected, wake)))
    {
        let (mut tx, rx) = parking::<C>(capacity);
        fill(&mut tx, 0);
        thread::scope(|scope| {
            let pusher = scope.spawn(move || (tx.push(999), tx));
            thread::sleep(NAP);
            let mut rx = Some(rx);
            wake(&mut rx);
            let (pushed, _tx) = pusher.join().unwrap();
            assert_eq!(pushed, *expected);
        });
    }
}

#[track_caller]
fn assert_on_time(since: Instant, time: Duration) {
    let took = since.elapsed();
    assert!(took >= time, "{took:?} is early for {time:?}");
    assert!(took <= time + SLACK, "{took:?} is late for {time:?}");
}

/// How long a race for a lost wake-up goes on at most. A wake-up that another program delays costs milliseconds.
const RACE: Duration = Duration::from_secs(2);
/// The rounds of such a race: the fewest, however long they take, and the most.
pub(crate) const ROUNDS: Range<u64> = if cfg!(miri) { 50..50 } else { 1_000..10_000 };

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

fn time_outs<C: Case, W: Strategy>(wait: W) {
    for time in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(8)] {
        let (mut tx, mut rx) = queue_with::<u64, C, _>(5, options::<C, _>(5, wait.clone()));
        let since = Instant::now();
        assert_eq!(rx.pop_timeout(time), Err(PopTimeoutError::Timeout));
        assert_on_time(since, time);
        // Where there is an item, or room, no time is needed, and as much as there is is not too long.
        for (item, time) in [Duration::ZERO, Duration::MAX].into_iter().enumerate() {
            assert_eq!(tx.push_timeout(item as u64, time), Ok(()));
            assert_eq!(rx.pop_timeout(time), Ok(item as u64));
        }
        if tx.capacity() == 5 {
            fill(&mut tx, 0);
            let since = Instant::now();
            assert_eq!(tx.push_timeout(9, time), Err(PushTimeoutError::Timeout(9)));
            assert_on_time(since, time);
            assert_eq!((rx.len(), rx.pop()), (5, Ok(0)));
        }
    }
}

pub(crate) fn time_outs_are_not_early<C: Case>() {
    time_outs::<C, _>(Spin);
    time_outs::<C, _>(Yield);
    time_outs::<C, _>(Park);
    time_outs::<C, _>(Adaptive);
}
