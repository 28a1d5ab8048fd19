//! Random calls of one thread, each answered as a deque of bounded length would.

use crate::case::{CAPACITIES, Case, Random, Rx, queue_from};
use corelane::error::{TryPopError, TryPushError};
use std::collections::VecDeque;
use std::mem;

/// A random call of the consumer, for about `n` items. True if it drained the queue and was told so.
fn consume<C: Case>(rx: &mut Rx<u64, C>, model: &mut VecDeque<u64>, random: &mut Random, n: usize) -> bool {
    match random.below(9) {
        0 => {
            assert_eq!(rx.len(), model.len());
            assert_eq!(rx.is_empty(), model.is_empty());
        }
        1..4 => assert_eq!(rx.try_pop(), model.pop_front().ok_or(TryPopError::Empty)),
        4 => {
            let mut popped = vec![u64::MAX];
            let count = rx.try_pop_batch(&mut popped, n).unwrap_or(0);
            assert_eq!(count, n.min(model.len()));
            assert_eq!(popped[0], u64::MAX);
            assert!(popped[1..].iter().copied().eq(model.drain(..count)));
        }
        5 => {
            let mut popped = vec![u64::MAX; n];
            let count = rx.try_pop_slice(&mut popped).unwrap_or(0);
            assert_eq!(count, n.min(model.len()));
            assert!(popped[count..].iter().all(|&item| item == u64::MAX));
            assert!(popped[..count].iter().copied().eq(model.drain(..count)));
        }
        6 => {
            let mut popped = Vec::new();
            let count = rx.try_pop_each(n, |item| popped.push(item)).unwrap_or(0);
            assert_eq!(count, n.min(model.len()));
            assert!(popped.into_iter().eq(model.drain(..count)));
        }
        7 => match rx.try_peek() {
            Err(_) => assert!(model.is_empty()),
            Ok(mut item) => {
                assert_eq!(Some(&*item), model.front());
                match random.below(5) {
                    0 => drop(item),
                    3 => {
                        item.release();
                        model.pop_front();
                    }
                    1 => mem::forget(item),
                    2 => {
                        *item = !*item;
                        model[0] = *item;
                    }
                    _ => assert_eq!(Some(item.pop()), model.pop_front()),
                }
            }
        },
        _ => {
            while let Ok(item) = rx.try_pop() {
                assert_eq!(Some(item), model.pop_front());
            }
            assert!(model.is_empty());
            return true;
        }
    }
    false
}

fn run<C: Case>(capacity: usize, start: usize, seed: u64, calls: usize) {
    let (mut tx, mut rx) = queue_from::<u64, C>(capacity, start);
    // One without a bound has no capacity of its own: this is the length of its bursts.
    let burst = capacity;
    let capacity = tx.capacity();
    let least = capacity - tx.release_lag();
    let mut random = Random::new(seed);
    let mut model = VecDeque::new();
    let mut next = 0;
    // Full while there is certainly room, or room while there is certainly none, is wrong; in between both are right.
    let may_take = |inside: usize, taken: usize, asked: usize| {
        let after = inside + taken;
        after <= capacity && taken <= asked && (taken == asked || after >= least)
    };
    for _ in 0..calls {
        let n = match random.below(3) {
            0 => 1 + random.below(3),
            1 => random.below(20),
            _ => random.below(burst + burst / 2 + 1),
        };
        let items = (next..next + n as u64).collect::<Vec<_>>();
        let pushed = match random.below(15) {
            0 => match tx.try_push(next) {
                Ok(()) => 1,
                Err(refused) => {
                    assert_eq!(refused, TryPushError::Full(next));
                    assert!(model.len() >= least);
                    0
                }
            },
            1 => {
                let pushed = tx.try_push_slice(&items).unwrap_or(0);
                assert!(may_take(model.len(), pushed, n), "{pushed} of {n} to {}", model.len());
                pushed
            }
            2 => {
                let mut left = items.clone();
                let pushed = tx.try_push_batch(&mut left).unwrap_or(0);
                assert!(may_take(model.len(), pushed, n), "{pushed} of {n} to {}", model.len());
                assert_eq!(left, items[pushed..]);
                pushed
            }
            3 => match tx.try_reserve() {
                Err(error) => {
                    assert_eq!(error, TryPushError::Full(()));
                    assert!(model.len() >= least);
                    0
                }
                Ok(slot) => match random.below(4) {
                    0 => {
                        drop(slot);
                        0
                    }
                    1 => {
                        mem::forget(slot);
                        0
                    }
                    _ => {
                        slot.write(next).unwrap();
                        1
                    }
                },
            },
            4 => {
                let len = tx.len();
                // The producer may not know yet of as many as the lag.
                assert!((model.len()..=capacity).contains(&len));
                assert!(capacity != burst || len <= model.len() + capacity - least);
                assert_eq!(tx.is_empty(), len == 0);
                0
            }
            5..13 => {
                if consume::<C>(&mut rx, &mut model, &mut random, n) {
                    assert!(tx.is_empty(), "a consumer that says Empty has told of all it popped");
                }
                0
            }
            // Designs adapt to blocks and to single items.
            13 if model.is_empty() => {
                for item in 0..random.below(300) as u64 {
                    assert_eq!((tx.try_push(item), rx.len(), rx.try_pop()), (Ok(()), 1, Ok(item)));
                    assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
                }
                0
            }
            _ => {
                let room = tx.try_push_batch(&mut (next..).take(2 * burst).collect()).unwrap_or(0);
                assert!((least..=capacity).contains(&(model.len() + room)) || room == 2 * burst);
                room
            }
        };
        model.extend(next..next + pushed as u64);
        next += pushed as u64;
        assert!(model.len() <= capacity);
    }
}

pub(crate) fn random_calls_behave_like_a_deque<C: Case>() {
    let mut sequences = 0;
    for capacity in CAPACITIES.into_iter().chain([7, 8, 15, 22, 50, 128, 1000]) {
        for seed in 0..6 {
            run::<C>(capacity, seed as usize * 11, seed, 1_500);
            sequences += 1;
        }
    }
    println!("{sequences} sequences judged");
}

pub(crate) fn random_calls_behave_like_a_deque_across_the_wrap_around<C: Case>() {
    let mut sequences = 0;
    for capacity in CAPACITIES.into_iter().chain([7, 8, 15, 22, 50, 128]) {
        for seed in 0..10 {
            run::<C>(capacity, usize::MAX - 2 * seed as usize, 100 + seed, 300);
            sequences += 1;
        }
    }
    println!("{sequences} sequences judged");
}
