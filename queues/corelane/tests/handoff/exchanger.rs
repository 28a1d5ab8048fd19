//! The exchanger: rows X1 to X6, close, and traffic.

use crate::support::{LONG, Ledger, T, timed, until};
use crate::timed::SLACK;
use crate::watchdog::guard;
use corelane::error::{Closed, PushTimeoutError, TryPushError};
use corelane::handoff::{CancelToken, Exchanger, WaitLimit};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn x1_a_pair_swaps() {
    guard(|| {
        let exchanger = Exchanger::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(exchanger.exchange("one"), Ok("two"));
                assert_eq!(exchanger.exchange("two"), Ok("one"));
            });
            assert_eq!(exchanger.exchange("two"), Ok("one"));
            assert_eq!(exchanger.exchange("one"), Ok("two"));
        });
    });
}

#[test]
fn x2_a_pair_with_a_time_swaps() {
    guard(|| {
        let exchanger = Exchanger::new();
        let limit = || WaitLimit::new().timeout(LONG);
        let ((), took) = timed(|| {
            thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!(exchanger.exchange_with(1, &limit()), Ok(2));
                    // The other one is seen to wait by now, or soon.
                    thread::sleep(T);
                    assert_eq!(exchanger.exchange_with(2, &limit()), Ok(1));
                });
                assert_eq!(exchanger.exchange_with(2, &limit()), Ok(1));
                assert_eq!(exchanger.exchange_with(1, &limit()), Ok(2));
            });
        });
        assert!(took < LONG);
    });
}

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
    guard(|| is_cancelled(WaitLimit::new));
}

#[test]
fn x4_a_wait_with_a_time_is_cancelled() {
    guard(|| {
        let ((), took) = timed(|| is_cancelled(|| WaitLimit::new().timeout(LONG)));
        assert!(took < LONG);
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

/// One party of a second exchange is cancelled; another takes its part.
#[test]
fn x6_a_party_that_was_cancelled_is_replaced() {
    guard(|| {
        let exchanger = Exchanger::new();
        let token = CancelToken::new();
        let exchanged = AtomicBool::new(false);
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                assert_eq!(exchanger.exchange(1), Ok(2));
                exchanged.store(true, SeqCst);
                exchanger.exchange_with(3, &WaitLimit::new().cancel(&token))
            });
            assert_eq!(exchanger.exchange(2), Ok(1));
            until("the first exchange is over", || exchanged.load(SeqCst));
            thread::sleep(T);
            token.cancel();
            assert_eq!(first.join().unwrap(), Err(PushTimeoutError::Cancelled(3)));
            let third = scope.spawn(|| exchanger.exchange(4));
            assert_eq!(exchanger.exchange(5), Ok(4));
            assert_eq!(third.join().unwrap(), Ok(5));
        });
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

/// Some wait for a moment and some not at all: pairs, all the same.
#[test]
fn try_exchanges_beside_others_are_in_pairs() {
    guard(|| {
        const ROUNDS: u64 = if cfg!(miri) { 100 } else { 5_000 };
        let exchanger = Exchanger::new();
        let swaps = thread::scope(|scope| {
            let exchanger = &exchanger;
            let threads = [0, 1, 2, 3].map(|thread| {
                scope.spawn(move || {
                    let swap = |round| {
                        let mine = thread * ROUNDS + round;
                        let theirs = match thread % 2 {
                            0 => exchanger.exchange_timeout(mine, Duration::from_micros(20)).ok(),
                            _ => exchanger.try_exchange(mine).ok(),
                        };
                        theirs.map(|theirs| (mine, theirs))
                    };
                    (0..ROUNDS).filter_map(swap).collect::<Vec<_>>()
                })
            });
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        is_symmetric(swaps);
    });
}

/// Both sides say the same of which thread got whose item, and each item is with one thread.
fn is_symmetric(swaps: Vec<(u64, u64)>) {
    let partners: HashMap<u64, u64> = swaps.iter().copied().collect();
    assert_eq!(partners.len(), swaps.len());
    assert!(swaps.iter().all(|&(mine, theirs)| mine != theirs && partners.get(&theirs) == Some(&mine)));
}

#[test]
fn many_threads_swap_in_pairs() {
    guard(|| {
        for threads in [2, 4, 8] {
            const ROUNDS: u64 = 2_000;
            let exchanger = Exchanger::new();
            let left = AtomicU64::new(threads * ROUNDS);
            let swaps = thread::scope(|scope| {
                let (exchanger, left) = (&exchanger, &left);
                let threads: Vec<_> = (0..threads)
                    .map(|thread| {
                        scope.spawn(move || {
                            let swap = |round| {
                                let mine = thread * ROUNDS + round;
                                loop {
                                    // The last one may be alone.
                                    match exchanger.exchange_with(mine, &WaitLimit::new().timeout(T / 10)) {
                                        Ok(theirs) => {
                                            left.fetch_sub(1, Relaxed);
                                            return Some((mine, theirs));
                                        }
                                        Err(error) if left.load(Relaxed) > ROUNDS => {
                                            assert_eq!(error.into_inner(), mine);
                                        }
                                        Err(_) => return None,
                                    }
                                }
                            };
                            (0..ROUNDS).filter_map(swap).collect::<Vec<_>>()
                        })
                    })
                    .collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            assert!(swaps.len() as u64 >= (threads - 1) * ROUNDS, "{} of {}", swaps.len(), threads * ROUNDS);
            is_symmetric(swaps);
        }
    });
}

#[test]
fn every_item_is_dropped_once_when_some_give_up() {
    guard(|| {
        let ledger = Ledger::default();
        let exchanger = Exchanger::new();
        thread::scope(|scope| {
            for thread in 0..4 {
                let (exchanger, ledger) = (&exchanger, &ledger);
                scope.spawn(move || {
                    for round in 0..3_000 {
                        let limit = WaitLimit::new().timeout(Duration::from_nanos(1 + 700 * (round % 8)));
                        drop(exchanger.exchange_with(ledger.item(thread), &limit));
                    }
                });
            }
        });
        assert_eq!((ledger.alive(), ledger.dropped()), (0, 12_000));
        assert!(exchanger.nodes() <= 256, "{} nodes", exchanger.nodes());
        // The places are empty: a pair meets.
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(*exchanger.exchange(ledger.item(1)).ok().unwrap().value, 2));
            assert_eq!(*exchanger.exchange(ledger.item(2)).ok().unwrap().value, 1);
        });
    });
}

/// What came before either call is visible after the other.
#[test]
fn what_came_before_is_visible_on_both_sides() {
    guard(|| {
        let exchanger = Exchanger::new();
        let before = [AtomicU64::new(0), AtomicU64::new(0)];
        thread::scope(|scope| {
            for me in 0..2 {
                let (exchanger, before) = (&exchanger, &before);
                scope.spawn(move || {
                    for round in 1..=5_000 {
                        before[me].store(round, Relaxed);
                        assert_eq!(exchanger.exchange(me), Ok(1 - me));
                        assert!(before[1 - me].load(Relaxed) >= round);
                    }
                });
            }
        });
    });
}
