//! Items through a queue at full speed: one call an item or a slice a call, and an item there and back.

use super::queue::Made;
use super::reading::{Outcome, Reading};
use crate::contenders::{Rx, Tx};
use crate::item::Item;
use crate::raw::ticks;
use crate::rig::{self, PATIENCE, Side, Stop, Work, tick_rate};
use crate::setting::Setting;
use std::hash::{BuildHasher, RandomState};
use std::hint::spin_loop;
use std::ops::Range;

/// Streams numbered items through `pairs` queues at once, with two threads each. Before the clock starts, twice the
/// capacity goes through, so that both ends have touched all memory of the ring. `pause` comes between two tries, and
/// `after` behind each item that was popped.
pub(super) fn stream<T: Item, X: Tx<T>, R: Rx<T>>(
    made: &Made<X, R>,
    setting: &Setting,
    capacity: usize,
    pairs: usize,
    pause: impl Fn() + Copy + Send + 'static,
    after: impl Fn() + Copy + Send + 'static,
) -> Outcome {
    let warm = made.whole(setting.warm(2 * capacity as u64));
    let count = made.whole(setting.count / pairs as u64);
    let mut work: Vec<(_, Work<[u64; 2]>)> = Vec::new();
    for _ in 0..pairs {
        let (tx, rx) = made.on(setting.cpus[0], capacity)?;
        let produce: Work<[u64; 2]> = Box::new(move |side| {
            let mut tx = tx;
            push::<T, X>(&mut tx, 0..warm, side, pause)?;
            flush::<T, X>(&mut tx, warm, side)?;
            side.start()?;
            let full = push::<T, X>(&mut tx, warm..warm + count, side, pause)?;
            flush::<T, X>(&mut tx, warm + count, side)?;
            side.stop();
            Ok([full, 0])
        });
        let consume: Work<[u64; 2]> = Box::new(move |side| {
            let mut rx = rx;
            pop::<T, R>(&mut rx, 0..warm, side, pause, || {})?;
            side.start()?;
            let empty = pop::<T, R>(&mut rx, warm..warm + count, side, pause, after)?;
            side.stop();
            Ok([0, empty])
        });
        work.extend([(setting.cpus[0], produce), (setting.cpus[1], consume)]);
    }
    let (tries, took) = rig::run(setting, work)?;
    let sum = |of: usize| tries.iter().map(|tries| tries[of]).sum();
    Ok(Reading { full: sum(0), empty: sum(1), ..Reading::new(count * pairs as u64, took) })
}

/// Pushes numbered items. Returns how often there was no room.
#[inline(always)]
fn push<T: Item, X: Tx<T>>(tx: &mut X, numbers: Range<u64>, side: &Side, pause: impl Fn()) -> Result<u64, Stop> {
    let stock = T::stock();
    let mut full = 0_u64;
    for number in numbers {
        let item = T::numbered(&stock, number);
        side.until(&mut full, number, &pause, || tx.try_push(item).then_some(()))?;
    }
    Ok(full)
}

/// Publishes the last items, if the design has a call for that.
#[inline(always)]
fn flush<T, X: Tx<T>>(tx: &mut X, position: u64, side: &Side) -> Result<(), Stop> {
    side.until(&mut 0, position, spin_loop, || tx.flush().then_some(()))
}

/// Pops items and checks their numbers. Returns how often there was none.
#[inline(always)]
fn pop<T: Item, R: Rx<T>>(
    rx: &mut R,
    numbers: Range<u64>,
    side: &Side,
    pause: impl Fn(),
    after: impl Fn(),
) -> Result<u64, Stop> {
    let mut empty = 0_u64;
    for number in numbers {
        let item = side.until(&mut empty, number, &pause, || rx.try_pop())?;
        side.check(item.says(), T::due(number))?;
        after();
    }
    Ok(empty)
}

/// The consumer works for `workload` cycles after each item, as in section 5.4 of the B-Queue paper. The value is
/// cycles an item, minus the workload. It includes the reads of the counter that ends the workload.
pub(super) fn loaded<X: Tx<u64>, R: Rx<u64>>(
    made: &Made<X, R>,
    setting: &Setting,
    capacity: usize,
    workload: u64,
) -> Outcome {
    let work = move || {
        if workload > 0 {
            let start = ticks();
            while ticks().wrapping_sub(start) < workload {
                spin_loop();
            }
        }
    };
    let reading = stream::<u64, X, R>(made, setting, capacity, 1, spin_loop, work)?;
    let cycles = reading.wall.as_secs_f64() * tick_rate() / reading.items as f64 - workload as f64;
    Ok(Reading { values: vec![cycles], ..reading })
}

/// Ping-pong: one item in flight, sent by one queue and returned by another. Both ends only try and spin, so no
/// contender sleeps.
pub(super) fn round_trip<X: Tx<u64>, R: Rx<u64>>(made: &Made<X, R>, setting: &Setting, capacity: usize) -> Outcome {
    let warm = setting.warm(1000);
    let (ask, asked) = made.on(setting.cpus[0], capacity)?;
    let (answer, answered) = made.on(setting.cpus[1], capacity)?;
    let count = setting.count.max(1);
    let end = |(mut tx, mut rx): (X, R), asks: bool| -> Work<()> {
        Box::new(move |side| {
            let (tx, rx) = (&mut tx, &mut rx);
            for number in 0..warm + count {
                if number == warm {
                    side.start()?;
                }
                let this = number..number + 1;
                if asks {
                    push::<u64, X>(tx, this.clone(), side, spin_loop)?;
                }
                pop::<u64, R>(rx, this.clone(), side, spin_loop, || {})?;
                if !asks {
                    push::<u64, X>(tx, this, side, spin_loop)?;
                }
            }
            side.stop();
            Ok(())
        })
    };
    let work = vec![(setting.cpus[0], end((ask, answered), true)), (setting.cpus[1], end((answer, asked), false))];
    let (_, took) = rig::run(setting, work)?;
    Ok(Reading::new(count, took))
}

/// Streams numbered items in slices of `BATCH`. Filling a slice and checking every item cost the same for all
/// contenders, and are part of the result.
pub(super) fn in_batches<T: Item, X, R, F, G, const BATCH: usize>(
    made: &Made<(X, F), (R, G)>,
    setting: &Setting,
    capacity: usize,
) -> Outcome
where
    X: Send + 'static,
    R: Send + 'static,
    F: Fn(&mut X, &[T]) -> usize + Send + 'static,
    G: Fn(&mut R, &mut [T]) -> usize + Send + 'static,
{
    let ((tx, put), (rx, take)) = made.on(setting.cpus[0], capacity)?;
    let round = |count: u64| count.next_multiple_of(BATCH as u64);
    let (warm, count) = (round(setting.warm(2 * capacity as u64)), round(setting.count));
    let produce: Work<u64> = Box::new(move |side| {
        let mut tx = tx;
        let (mut memory, start) = somewhere::<T>(BATCH);
        let batch = memory[start..].first_chunk_mut::<BATCH>().expect("so much was asked for");
        let mut put = |items: &[T]| put(&mut tx, items);
        push_slices(&mut put, batch, 0..warm, side)?;
        side.start()?;
        let full = push_slices(&mut put, batch, warm..warm + count, side)?;
        side.stop();
        Ok(full)
    });
    let consume: Work<u64> = Box::new(move |side| {
        let mut rx = rx;
        let (mut memory, start) = somewhere::<T>(BATCH);
        let batch = memory[start..].first_chunk_mut::<BATCH>().expect("so much was asked for");
        let mut take = |items: &mut [T]| take(&mut rx, items);
        pop_slices(&mut take, batch, 0..warm, side)?;
        side.start()?;
        let empty = pop_slices(&mut take, batch, warm..warm + count, side)?;
        side.stop();
        Ok(empty)
    });
    let (tries, took) = rig::run(setting, vec![(setting.cpus[0], produce), (setting.cpus[1], consume)])?;
    Ok(Reading { full: tries[0], empty: tries[1], ..Reading::new(count, took) })
}

/// The distance in bytes at which two addresses look alike to a processor that has not compared them whole.
const PAGE: usize = 4096;
const LINE: usize = 128;

/// Memory for a slice, and the slice's place in it: on a line of its own, drawn anew in each round. Copies between
/// places that look alike are slow, so the distance of the slice from the queue must not decide the result.
fn somewhere<T: Item>(len: usize) -> (Vec<T>, usize) {
    let items = |bytes: usize| bytes.div_ceil(T::BYTES);
    let memory = vec![T::default(); items(PAGE + LINE) + len];
    let line = RandomState::new().hash_one(()) as usize % (PAGE / LINE);
    let start = memory.as_ptr().align_offset(LINE) + items(line * LINE);
    (memory, start)
}

/// Numbers the items of a slice. All contenders use this one function, and [`check`]. Compiled into each contender's
/// calls, the same loop takes up to a third more or less time, depending on its place and its registers.
#[inline(never)]
fn fill<T: Item>(batch: &mut [T], stock: &T::Stock, first: u64) {
    for (item, number) in batch.iter_mut().zip(first..) {
        *item = T::numbered(stock, number);
    }
}

#[inline(never)]
fn check<T: Item>(batch: &[T], first: u64, side: &Side) -> Result<(), Stop> {
    for (item, number) in batch.iter().zip(first..) {
        side.check(item.says(), T::due(number))?;
    }
    Ok(())
}

#[inline(always)]
fn push_slices<T: Item, const BATCH: usize>(
    push: &mut impl FnMut(&[T]) -> usize,
    batch: &mut [T; BATCH],
    numbers: Range<u64>,
    side: &Side,
) -> Result<u64, Stop> {
    let stock = T::stock();
    let mut full = 0_u64;
    let mut next = numbers.start;
    while next < numbers.end {
        fill(batch, &stock, next);
        let mut left = &batch[..];
        while !left.is_empty() {
            let pushed = push(left);
            left = &left[pushed..];
            if pushed == 0 {
                full += 1;
                if full.is_multiple_of(PATIENCE) {
                    side.stuck(next)?;
                }
                spin_loop();
            }
        }
        next += BATCH as u64;
    }
    Ok(full)
}

#[inline(always)]
fn pop_slices<T: Item, const BATCH: usize>(
    pop: &mut impl FnMut(&mut [T]) -> usize,
    batch: &mut [T; BATCH],
    numbers: Range<u64>,
    side: &Side,
) -> Result<u64, Stop> {
    let mut empty = 0_u64;
    let mut next = numbers.start;
    while next < numbers.end {
        // The end of the range may cut the last slices short.
        let due = (numbers.end - next).min(BATCH as u64) as usize;
        let popped = pop(&mut batch[..due]);
        check(&batch[..popped], next, side)?;
        next += popped as u64;
        if popped == 0 {
            empty += 1;
            if empty.is_multiple_of(PATIENCE) {
                side.stuck(next)?;
            }
            spin_loop();
        }
    }
    Ok(empty)
}
