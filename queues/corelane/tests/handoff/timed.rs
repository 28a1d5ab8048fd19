//! Waits with a time.

use crate::cpu_time::cpu_time;
use crate::support::{Mode, T, timed, until};
use corelane::error::{PopTimeoutError, PushTimeoutError};
use std::time::Duration;

/// Tells late from never: there is no telling how late a call may end on a busy machine. The watchdog is more patient.
pub(crate) const SLACK: Duration = Duration::from_secs(30);

pub(crate) fn a_timed_put_and_a_timed_take_wait_their_time(mode: Mode) {
    let queue = mode.queue();
    for time in [Duration::ZERO, Duration::from_micros(1), Duration::from_micros(30), T] {
        let (result, took) = timed(|| queue.put_timeout(3, time));
        assert_eq!(result, Err(PushTimeoutError::Timeout(3)));
        assert!(took >= time && took < time + SLACK, "{took:?} for {time:?}");
        let (result, took) = timed(|| queue.take_timeout(time));
        assert_eq!(result, Err(PopTimeoutError::Timeout));
        assert!(took >= time && took < time + SLACK, "{took:?} for {time:?}");
    }
}

pub(crate) fn a_timed_wait_sleeps(mode: Mode) {
    let Some(before) = cpu_time() else {
        println!("skipped: no schedstat here");
        return;
    };
    let queue = mode.queue::<u32>();
    // Behind another one, and next in line.
    let front = queue.reserve_take();
    assert!(queue.take_timeout(Duration::from_millis(100)).is_err());
    drop(front);
    assert!(queue.take_timeout(Duration::from_millis(100)).is_err());
    let used = cpu_time().unwrap() - before;
    assert!(used < Duration::from_millis(20), "{used:?} of CPU time for 200 ms of waiting");
    until("no take waits", || queue.waiting_takes() == 0);
}
