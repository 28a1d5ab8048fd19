//! Cancel tokens.

use crate::support::{LONG, Mode, T, until};
use corelane::error::{PopTimeoutError, PushTimeoutError};
use corelane::handoff::{CancelToken, SynchronousQueue, WaitLimit};
use std::thread;
use std::time::{Duration, Instant};

fn cancelled() -> CancelToken {
    let token = CancelToken::new();
    token.cancel();
    assert!(token.is_cancelled() && token.clone().is_cancelled());
    token
}

/// Cancelled before: at once. Cancelled while it waits: wakes. Either way the queue stays usable.
fn put_is_cancelled(queue: &SynchronousQueue<u32>, limit: fn() -> WaitLimit<'static>) {
    assert_eq!(queue.put_with(1, &limit().cancel(&cancelled())), Err(PushTimeoutError::Cancelled(1)));
    let token = CancelToken::new();
    thread::scope(|scope| {
        let putter = scope.spawn(|| queue.put_with(2, &limit().cancel(&token)));
        until("a put waits", || queue.waiting_puts() == 1);
        thread::sleep(T);
        assert!(!putter.is_finished());
        token.cancel();
        assert_eq!(putter.join().unwrap(), Err(PushTimeoutError::Cancelled(2)));
    });
    assert_eq!(queue.waiting_puts(), 0);
    let ticket = queue.reserve_take();
    assert_eq!(queue.try_put(3), Ok(()));
    assert_eq!(ticket.wait(), Ok(3));
}

pub(crate) fn s5_a_put_that_waits_is_cancelled(mode: Mode) {
    put_is_cancelled(&mode.queue(), WaitLimit::new);
    put_is_cancelled(&mode.queue(), || WaitLimit::new().timeout(LONG));
}

pub(crate) fn s17_a_match_goes_before_a_cancellation_and_that_before_the_time(mode: Mode) {
    let queue = mode.queue();
    let token = cancelled();
    let over = WaitLimit::new().deadline(Instant::now()).cancel(&token);
    let ticket = queue.reserve_put(1);
    assert_eq!(queue.take_with(&over), Ok(1));
    assert_eq!(ticket.wait_with(&over), Ok(()));
    let ticket = queue.reserve_take();
    assert_eq!(queue.put_with(2, &over), Ok(()));
    assert_eq!(ticket.wait_with(&over), Ok(2));
    assert_eq!(queue.take_with(&over), Err(PopTimeoutError::Cancelled));
    assert_eq!(queue.put_with(3, &over), Err(PushTimeoutError::Cancelled(3)));
    let past = WaitLimit::new().deadline(Instant::now());
    assert_eq!(queue.take_with(&past), Err(PopTimeoutError::Timeout));
}

pub(crate) fn s18_takes_with_and_without_a_time_are_cancelled(mode: Mode) {
    let queue = mode.queue::<u32>();
    for limit in [WaitLimit::new(), WaitLimit::new().timeout(LONG)] {
        assert_eq!(queue.take_with(&limit.cancel(&cancelled())), Err(PopTimeoutError::Cancelled));
        // After a while, and at about the same time.
        for delay in [Duration::from_millis(20), Duration::ZERO] {
            let token = CancelToken::new();
            thread::scope(|scope| {
                let taker = scope.spawn(|| queue.take_with(&limit.cancel(&token)));
                thread::sleep(delay);
                token.cancel();
                assert_eq!(taker.join().unwrap(), Err(PopTimeoutError::Cancelled));
            });
        }
    }
    assert_eq!(queue.waiting_takes(), 0);
}
