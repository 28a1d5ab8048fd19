//! First in, first out, exactly once; and nothing that has happened is denied.

use crate::case::{CAPACITIES, Case, Random, STARTS, options, queue_from, queue_with};
use corelane::spsc::{Consumer, Design, Producer};
use corelane::wait::Yield;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::thread;

/// Pushes at least one of the items below `end` and returns the next one.
pub(crate) fn push_somehow<D: Design<u64>, W>(
    tx: &mut Producer<u64, D, W>,
    from: u64,
    end: u64,
    random: &mut Random,
) -> u64 {
    let n = (1 + random.below(40) as u64).min(end - from);
    let pushed = match random.below(4) {
        0 => u64::from(tx.try_push(from).is_ok()),
        1 => tx.try_push_batch(&mut (from..from + n).collect()).unwrap_or(0) as u64,
        2 => tx.try_push_slice(&(from..from + n).collect::<Vec<_>>()).unwrap_or(0) as u64,
        _ => tx.try_reserve().map_or(0, |slot| slot.write(from).map_or(0, |()| 1)),
    };
    from + pushed
}

/// Pops some items, which must be the next ones, and returns the one after them.
fn pop_somehow<D: Design<u64>, W>(rx: &mut Consumer<u64, D, W>, from: u64, most: usize, random: &mut Random) -> u64 {
    let mut items = Vec::new();
    match random.below(5) {
        0 => items.extend(rx.try_pop().ok()),
        1 => {
            rx.try_pop_batch(&mut items, most).unwrap_or(0);
        }
        2 => {
            items.resize(most, 0);
            let n = rx.try_pop_slice(&mut items).unwrap_or(0);
            items.truncate(n);
        }
        3 => items.extend(rx.try_peek().map(|item| {
            assert_eq!(*item, from);
            item.pop()
        })),
        _ => {
            if let Ok(item) = rx.try_peek() {
                items.push(*item);
                item.release();
            }
        }
    }
    let end = from + items.len() as u64;
    assert_eq!(items, (from..end).collect::<Vec<_>>());
    end
}

fn spread(capacity: usize) -> u64 {
    if capacity < 4 { 500 } else { 5_000 }
}

pub(crate) fn every_kind_of_push_and_pop_mixes_in_order<C: Case>() {
    for capacity in CAPACITIES {
        let end = 2 * spread(capacity);
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 3);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut random = Random::new(capacity as u64);
                let mut next = 0;
                while next < end {
                    let pushed = push_somehow(&mut tx, next, end, &mut random);
                    if pushed == next {
                        tx.wait_for_room(1).unwrap();
                    }
                    next = pushed;
                }
            });
            let mut random = Random::new(7 + capacity as u64);
            let mut next = 0;
            while rx.wait_for_item().is_ok() {
                let most = 1 + random.below(40);
                let popped = pop_somehow(&mut rx, next, most, &mut random);
                assert_ne!(popped, next, "there was an item");
                next = popped;
            }
            assert_eq!(next, end);
        });
    }
}

pub(crate) fn empty_never_hides_an_item_whose_push_returned<C: Case>() {
    for (capacity, start) in CAPACITIES.into_iter().zip(STARTS.into_iter().cycle()) {
        let end = spread(capacity);
        let pushed = AtomicU64::new(0);
        let (tx, mut rx) = queue_with::<u64, C, _>(capacity, options::<C, _>(capacity, Yield).start_at(start));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut tx = tx;
                let mut random = Random::new(1);
                let mut next = 0;
                while next < end {
                    let now = push_somehow(&mut tx, next, end, &mut random);
                    if now == next {
                        thread::yield_now();
                    }
                    next = now;
                    pushed.store(next, Release);
                    random.pause();
                }
                tx.close();
            });
            let mut random = Random::new(2);
            let mut next = 0;
            while next < end {
                let there = pushed.load(Acquire);
                if there == next {
                    thread::yield_now();
                    continue;
                }
                assert!(!rx.is_empty());
                assert!(rx.len() as u64 >= there - next);
                while next < there {
                    if random.below(4) == 0 {
                        let popped = pop_somehow(&mut rx, next, (there - next) as usize, &mut random);
                        assert_ne!(popped, next, "a pushed item was not there");
                        next = popped;
                    } else {
                        assert_eq!(rx.try_pop(), Ok(next));
                        next += 1;
                    }
                }
                random.pause();
            }
        });
    }
}

pub(crate) fn full_never_hides_a_slot_whose_pop_returned<C: Case>() {
    for (capacity, start) in CAPACITIES.into_iter().zip(STARTS.into_iter().cycle()) {
        let end = spread(capacity);
        let popped = AtomicU64::new(0);
        let (mut tx, rx) = queue_with::<u64, C, _>(capacity, options::<C, _>(capacity, Yield).start_at(start));
        let sure = (capacity - tx.release_lag()) as u64;
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut rx = rx;
                let mut random = Random::new(3);
                let mut next = 0;
                while next < end {
                    let most = 1 + random.below(capacity);
                    let now = pop_somehow(&mut rx, next, most, &mut random);
                    if now == next {
                        thread::yield_now();
                    }
                    next = now;
                    popped.store(next, Release);
                    random.pause();
                }
            });
            let mut random = Random::new(4);
            let mut next = 0;
            while next < end {
                let room = (popped.load(Acquire) + sure).saturating_sub(next).min(end - next);
                if room == 0 {
                    thread::yield_now();
                    continue;
                }
                assert!(capacity as u64 - tx.len() as u64 >= room);
                let pushed = if random.below(4) == 0 {
                    tx.try_push_batch(&mut (next..next + room).collect()).unwrap_or(0) as u64
                } else {
                    (next..next + room).for_each(|item| assert_eq!(tx.try_push(item), Ok(())));
                    room
                };
                assert_eq!(pushed, room);
                next += room;
                random.pause();
            }
        });
    }
}
