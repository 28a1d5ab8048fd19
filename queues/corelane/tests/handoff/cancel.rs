//! Cancel tokens.

use crate::support::{LONG, Mode, T, timed, until};
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

pub(crate) fn s4_a_put_that_is_cancelled_before_returns_its_item(mode: Mode) {
    let queue = mode.queue();
    let (result, took) = timed(|| queue.put_with(1, &WaitLimit::new().cancel(&cancelled())));
    assert_eq!(result, Err(PushTimeoutError::Cancelled(1)));
    assert!(took < LONG);
}

pub(crate) fn s5_a_put_that_waits_is_cancelled(mode: Mode) {
    put_is_cancelled(&mode.queue(), WaitLimit::new);
}

pub(crate) fn s8_a_timed_put_is_cancelled(mode: Mode) {
    let queue = mode.queue();
    let (_, took) = timed(|| put_is_cancelled(&queue, || WaitLimit::new().timeout(LONG)));
    assert!(took < LONG);
    // The cancellation goes before a time that is up.
    for time in [Duration::ZERO, Duration::from_nanos(1)] {
        let limit = WaitLimit::new().timeout(time);
        assert_eq!(queue.put_with(1, &limit.cancel(&cancelled())), Err(PushTimeoutError::Cancelled(1)));
    }
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

pub(crate) fn s25_all_pairs_but_one_are_cancelled(mode: Mode) {
    let queue = mode.queue();
    let lonely = mode.queue::<u32>();
    let token = CancelToken::new();
    const ITEMS: u32 = 2_000;
    thread::scope(|scope| {
        let limit = WaitLimit::new().cancel(&token);
        let (queue, lonely) = (&queue, &lonely);
        let others = [(); 4].map(|()| {
            (
                scope.spawn(move || while lonely.put_with(0, &limit).is_ok() {}),
                scope.spawn(move || {
                    let mut taken = 0_u64;
                    while lonely.take_with(&limit).is_ok() {
                        taken += 1;
                    }
                    taken
                }),
            )
        });
        let putter = scope.spawn(move || (0..ITEMS).for_each(|item| queue.put(item).unwrap()));
        for item in 0..ITEMS {
            if item == ITEMS / 2 {
                token.cancel();
            }
            assert_eq!(queue.take(), Ok(item));
        }
        putter.join().unwrap();
        for (putter, taker) in others {
            putter.join().unwrap();
            taker.join().unwrap();
        }
    });
    assert_eq!((lonely.waiting_puts(), lonely.waiting_takes()), (0, 0));
}

pub(crate) fn one_token_for_many_waits(mode: Mode) {
    let queues = [(); 2].map(|()| mode.queue::<u32>());
    let token = CancelToken::new();
    thread::scope(|scope| {
        let limit = WaitLimit::new().cancel(&token);
        let queues = &queues;
        let takers: Vec<_> = (0..8).map(|i| scope.spawn(move || queues[i % 2].take_with(&limit))).collect();
        until("all wait", || queues.iter().map(SynchronousQueue::waiting_takes).sum::<usize>() == 8);
        token.cancel();
        for taker in takers {
            assert_eq!(taker.join().unwrap(), Err(PopTimeoutError::Cancelled));
        }
    });
}
