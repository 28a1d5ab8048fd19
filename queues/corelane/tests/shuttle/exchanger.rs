//! The exchanger.

use crate::handoff::NODES;
use crate::shared::{EACH, join, spawn};
use crate::thread;
use crate::{Item, draw, explore, in_time, many, soon};
use corelane::error::{PushTimeoutError, TryPushError};
use corelane::handoff::{CancelToken, Exchanger, WaitLimit};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Each has what its partner gave.
#[track_caller]
fn check<T: Send>(exchanger: &Exchanger<T>, swaps: Vec<(usize, usize)>) {
    let swaps: BTreeSet<_> = swaps.into_iter().collect();
    assert!(swaps.iter().all(|&(mine, other)| swaps.contains(&(other, mine))), "{swaps:?}");
    assert!(exchanger.nodes() <= NODES, "{} nodes", exchanger.nodes());
}

/// A thread that gets an item from a partner has given the partner its own.
#[test]
fn partners_agree() {
    explore(|| {
        let (exchanger, stop) = (Arc::new(Exchanger::new()), CancelToken::new());
        let threads = (0..draw(2..6)).map(|thread| {
            let (stop, rounds) = (stop.clone(), many(draw(1..20)));
            spawn(&exchanger, move |exchanger| {
                let mut swaps = Vec::new();
                for i in 0..rounds {
                    let mine = thread * EACH + i;
                    if draw(0..4) == 0 {
                        match exchanger.try_exchange(Item::new(mine)) {
                            Ok(item) => swaps.push((mine, item.id)),
                            Err(TryPushError::Full(item)) => assert_eq!(item.id, mine),
                            Err(error) => panic!("{error}"),
                        }
                        continue;
                    }
                    let given = Item::new(mine);
                    let exchanged = if draw(0..2) == 0 {
                        exchanger.exchange_with(given, &WaitLimit::new().timeout(soon()).cancel(&stop))
                    } else {
                        in_time(PushTimeoutError::is_timeout, |time| exchanger.exchange_timeout(given, time))
                    };
                    match exchanged {
                        Ok(item) => swaps.push((mine, item.id)),
                        Err(PushTimeoutError::Timeout(item) | PushTimeoutError::Cancelled(item)) => {
                            assert_eq!(item.id, mine);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                swaps
            })
        });
        let threads = threads.collect::<Vec<_>>();
        if draw(0..3) == 0 {
            stop.cancel();
        }
        let swaps = join(threads).concat();
        check(&exchanger, swaps);
    });
}

/// No thread gives up: two threads, round after round.
#[test]
fn two_swap_for_ever() {
    explore(|| {
        let (exchanger, rounds) = (Arc::new(Exchanger::new()), many(draw(1..60)));
        let threads = [0, 1].map(|thread| {
            spawn(&exchanger, move |exchanger| {
                for i in 0..rounds {
                    let other = exchanger.exchange(Item::new(thread * EACH + i)).unwrap();
                    assert_eq!(other.id, (1 - thread) * EACH + i);
                }
            })
        });
        join(threads.into());
    });
}

/// Each has a partner or its item back.
#[test]
fn a_close_in_midstream() {
    explore(|| {
        let exchanger = Arc::new(Exchanger::new());
        let threads = (0..draw(2..6)).map(|thread| {
            spawn(&exchanger, move |exchanger| {
                let mut swaps = Vec::new();
                for mine in thread * EACH.. {
                    match exchanger.exchange(Item::new(mine)) {
                        Ok(item) => swaps.push((mine, item.id)),
                        Err(closed) => {
                            assert_eq!(closed.0.id, mine);
                            return swaps;
                        }
                    }
                }
                swaps
            })
        });
        let threads = threads.collect::<Vec<_>>();
        (0..draw(0..60)).for_each(|_| thread::yield_now());
        exchanger.close();
        let swaps = join(threads).concat();
        check(&exchanger, swaps);
    });
}
