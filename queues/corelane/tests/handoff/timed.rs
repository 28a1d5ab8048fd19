//! Waits with a time.

use crate::cpu_time::cpu_time;
use crate::support::{LONG, Mode, T, timed, until};
use corelane::error::{PopTimeoutError, PushTimeoutError};
use corelane::handoff::WaitLimit;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Tells late from never: there is no telling how late a call may end on a busy machine. The watchdog is more patient.
pub(crate) const SLACK: Duration = Duration::from_secs(30);

pub(crate) fn s7_a_timed_put_waits_its_time(mode: Mode) {
    let queue = mode.queue();
    for time in [Duration::ZERO, Duration::from_micros(1), Duration::from_micros(30), T] {
        let (result, took) = timed(|| queue.put_timeout(3, time));
        assert_eq!(result, Err(PushTimeoutError::Timeout(3)));
        assert!(took >= time && took < time + SLACK, "{took:?} for {time:?}");
    }
}

pub(crate) fn s9_a_timed_take_of_zero_does_not_wait(mode: Mode) {
    let queue = mode.queue::<u32>();
    let (result, took) = timed(|| queue.take_timeout(Duration::ZERO));
    assert_eq!(result, Err(PopTimeoutError::Timeout));
    assert!(took < SLACK);
}

pub(crate) fn s10_a_timed_take_waits_its_time(mode: Mode) {
    let queue = mode.queue::<u32>();
    for time in [Duration::from_micros(1), Duration::from_micros(30), T] {
        let (result, took) = timed(|| queue.take_timeout(time));
        assert_eq!(result, Err(PopTimeoutError::Timeout));
        assert!(took >= time && took < time + SLACK, "{took:?} for {time:?}");
    }
}

pub(crate) fn s11_a_take_that_timed_out_is_followed_by_one_that_succeeds(mode: Mode) {
    let queue = mode.queue();
    let timed_out = AtomicBool::new(false);
    let ((), took) = timed(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(queue.take_timeout(T), Err(PopTimeoutError::Timeout));
                timed_out.store(true, SeqCst);
                assert_eq!(queue.take_timeout(LONG), Ok(9));
            });
            until("the first take has timed out", || timed_out.load(SeqCst));
            assert_eq!(queue.put_timeout(9, LONG), Ok(()));
        });
    });
    assert!(took < LONG);
}

pub(crate) fn s16_a_match_beats_the_time_out(mode: Mode) {
    // Decided before its owner looks, and its owner looks after the time.
    let queue = mode.queue();
    let ticket = queue.reserve_take();
    queue.try_put(4).unwrap();
    assert_eq!(ticket.wait_with(&WaitLimit::new().deadline(Instant::now())), Ok(4));
    let ticket = queue.reserve_put(5);
    assert_eq!(queue.try_take(), Ok(5));
    assert_eq!(ticket.wait_with(&WaitLimit::new().deadline(Instant::now())), Ok(()));
    // And in a race: both or neither.
    thread::scope(|scope| {
        let puts = scope.spawn(|| (0..20_000).filter(|_| queue.try_put(1).is_ok()).count());
        let mut taken = 0;
        while !puts.is_finished() {
            taken += usize::from(queue.take_timeout(Duration::from_nanos(300)).is_ok());
        }
        assert_eq!(taken, puts.join().unwrap());
    });
}

pub(crate) fn a_deadline_that_has_passed_still_finds_a_partner(mode: Mode) {
    let queue = mode.queue();
    let past = WaitLimit::new().deadline(Instant::now());
    assert_eq!(queue.put_with(1, &past), Err(PushTimeoutError::Timeout(1)));
    assert_eq!(queue.take_with(&past), Err(PopTimeoutError::Timeout));
    let ticket = queue.reserve_put(2);
    assert_eq!(queue.take_with(&past), Ok(2));
    assert_eq!(ticket.wait(), Ok(()));
    let ticket = queue.reserve_take();
    assert_eq!(queue.put_with(3, &past), Ok(()));
    assert_eq!(ticket.wait(), Ok(3));
}

pub(crate) fn a_timed_wait_sleeps(mode: Mode) {
    let Some(before) = cpu_time() else {
        println!("skipped: no schedstat here");
        return;
    };
    let queue = mode.queue::<u32>();
    // Behind another one, and next in line.
    let front = queue.reserve_take();
    assert!(queue.take_timeout(Duration::from_millis(200)).is_err());
    drop(front);
    assert!(queue.take_timeout(Duration::from_millis(200)).is_err());
    let used = cpu_time().unwrap() - before;
    assert!(used < Duration::from_millis(40), "{used:?} of CPU time for 400 ms of waiting");
    until("no take waits", || queue.waiting_takes() == 0);
}
