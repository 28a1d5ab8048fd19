//! Closing.

use crate::support::{Mode, until};
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::{CancelToken, WaitLimit};
use std::thread;
use std::time::Duration;

pub(crate) fn s26_close_wakes_all_puts_with_their_items(mode: Mode) {
    let queue = mode.queue();
    thread::scope(|scope| {
        let queue = &queue;
        let putters: Vec<_> = (0..8).map(|item| scope.spawn(move || queue.put(item))).collect();
        until("all wait", || queue.waiting_puts() == 8);
        queue.close();
        for (item, putter) in putters.into_iter().enumerate() {
            assert_eq!(putter.join().unwrap(), Err(Closed(item)));
        }
    });
    assert_eq!(queue.waiting_puts(), 0);
}

pub(crate) fn s26_close_wakes_all_takes(mode: Mode) {
    let queue = mode.queue::<u32>();
    thread::scope(|scope| {
        let takers: Vec<_> = (0..8).map(|_| scope.spawn(|| queue.take())).collect();
        until("all wait", || queue.waiting_takes() == 8);
        queue.close();
        for taker in takers {
            assert_eq!(taker.join().unwrap(), Err(Closed(())));
        }
    });
}

pub(crate) fn s26_calls_after_the_close_fail(mode: Mode) {
    let queue = mode.queue();
    queue.close();
    queue.close();
    assert!(queue.is_closed());
    let token = CancelToken::new();
    token.cancel();
    let over = WaitLimit::new().timeout(Duration::ZERO).cancel(&token);
    assert_eq!(queue.put(1), Err(Closed(1)));
    assert_eq!(queue.try_put(1), Err(TryPushError::Closed(1)));
    assert_eq!(queue.put_timeout(1, Duration::ZERO), Err(PushTimeoutError::Closed(1)));
    assert_eq!(queue.put_with(1, &over), Err(PushTimeoutError::Closed(1)));
    assert_eq!(queue.take(), Err(Closed(())));
    assert_eq!(queue.try_take(), Err(TryPopError::Closed));
    assert_eq!(queue.take_timeout(Duration::ZERO), Err(PopTimeoutError::Closed));
    assert_eq!(queue.take_with(&over), Err(PopTimeoutError::Closed));
    assert_eq!(queue.reserve_put(1).try_followup(), Some(Err(Closed(1))));
    assert_eq!(queue.reserve_take().try_followup(), Some(Err(Closed(()))));
    assert_eq!(queue.try_take_batch(&mut Vec::new(), 1), Err(TryPopError::Closed));
    assert_eq!(queue.try_take_batch(&mut Vec::new(), 0), Ok(0));
    assert_eq!(queue.try_put_batch(&mut vec![1]), Err(TryPushError::Closed(())));
}
