//! The exchanger: rows X3 and X5, close, and calls that do not wait.

use crate::support::{LONG, T, timed, until};
use crate::timed::SLACK;
use crate::watchdog::guard;
use corelane::error::{Closed, PushTimeoutError, TryPushError};
use corelane::handoff::{CancelToken, Exchanger, WaitLimit};
use std::thread;
use std::time::{Duration, Instant};

/// Cancelled before: at once. Cancelled while it waits: wakes, with its item.
fn is_cancelled(limit: fn() -> WaitLimit<'static>) {
    let exchanger = Exchanger::new();
    let token = CancelToken::new();
    thread::scope(|scope| {
        let waits = scope.spawn(|| exchanger.exchange_with(5, &limit().cancel(&token)));
        thread::sleep(T);
        assert!(!waits.is_finished());
        token.cancel();
        assert_eq!(waits.join().unwrap(), Err(PushTimeoutError::Cancelled(5)));
    });
    assert_eq!(exchanger.exchange_with(6, &limit().cancel(&token)), Err(PushTimeoutError::Cancelled(6)));
}

#[test]
fn x3_a_wait_is_cancelled() {
    guard(|| {
        is_cancelled(WaitLimit::new);
        is_cancelled(|| WaitLimit::new().timeout(LONG));
    });
}

#[test]
fn x5_a_wait_times_out() {
    guard(|| {
        let exchanger = Exchanger::new();
        for time in [Duration::ZERO, Duration::from_micros(1), Duration::from_micros(30), T] {
            let (result, took) = timed(|| exchanger.exchange_with(7, &WaitLimit::new().timeout(time)));
            assert_eq!(result, Err(PushTimeoutError::Timeout(7)));
            assert!(took >= time && took < time + SLACK, "{took:?} for {time:?}");
        }
        // A cancellation goes before the end of the time.
        let token = CancelToken::new();
        token.cancel();
        let over = WaitLimit::new().deadline(Instant::now()).cancel(&token);
        assert_eq!(exchanger.exchange_with(8, &over), Err(PushTimeoutError::Cancelled(8)));
    });
}

#[test]
fn close_sends_everybody_away() {
    guard(|| {
        let exchanger = Exchanger::new();
        thread::scope(|scope| {
            let waits = scope.spawn(|| exchanger.exchange('a'));
            thread::sleep(T);
            assert!(!waits.is_finished() && !exchanger.is_closed());
            exchanger.close();
            exchanger.close();
            assert_eq!(waits.join().unwrap(), Err(Closed('a')));
        });
        assert!(exchanger.is_closed());
        assert_eq!(exchanger.exchange('b'), Err(Closed('b')));
        let over = WaitLimit::new().deadline(Instant::now());
        assert_eq!(exchanger.exchange_with('c', &over), Err(PushTimeoutError::Closed('c')));
    });
}

#[test]
fn a_try_exchange_meets_who_waits_and_waits_for_nobody() {
    guard(|| {
        let exchanger = Exchanger::new();
        for _ in 0..3 {
            assert_eq!(exchanger.try_exchange(1), Err(TryPushError::Full(1)));
            thread::scope(|scope| {
                let waits = scope.spawn(|| exchanger.exchange(2));
                until("it is found", || match exchanger.try_exchange(1) {
                    Ok(theirs) => theirs == 2,
                    Err(error) => {
                        assert_eq!(error, TryPushError::Full(1));
                        false
                    }
                });
                assert_eq!(waits.join().unwrap(), Ok(1));
            });
        }
        // One that has given up is not met.
        assert_eq!(exchanger.exchange_timeout(2, Duration::ZERO), Err(PushTimeoutError::Timeout(2)));
        assert_eq!(exchanger.try_exchange(1), Err(TryPushError::Full(1)));
        exchanger.close();
        assert_eq!(exchanger.try_exchange(1), Err(TryPushError::Closed(1)));
        assert_eq!(exchanger.exchange_timeout(1, LONG), Err(PushTimeoutError::Closed(1)));
    });
}
