//! Items through one queue at full speed, a slice a call on both sides.

use super::pair::pair_on;
use super::reading::{Outcome, Reading};
use crate::contender::Batches;
use crate::item::Item;
use crate::rig::{self, PATIENCE, Side, Stop, Work};
use crate::setting::Setting;
use std::hash::{BuildHasher, RandomState};
use std::hint::spin_loop;
use std::ops::Range;

/// Streams numbered items in slices of `BATCH`. Filling a slice and checking every item cost the same for all
/// contenders, and are part of the result.
pub(crate) fn in_batches<P: Batches<T>, T: Item, const BATCH: usize>(setting: &Setting, capacity: usize) -> Outcome {
    let (tx, rx) = pair_on::<P, T>(setting.cpus[0], capacity)?;
    let round = |count: u64| count.next_multiple_of(P::GRAIN * BATCH as u64);
    let (warm, count) = (round(2 * capacity as u64), round(setting.count));
    let produce: Work<u64> = Box::new(move |side| {
        let mut tx = tx;
        let (mut memory, start) = somewhere::<T>(BATCH);
        let batch = memory[start..].first_chunk_mut::<BATCH>().expect("so much was asked for");
        push::<P, T, BATCH>(&mut tx, batch, 0..warm, side)?;
        side.start()?;
        let full = push::<P, T, BATCH>(&mut tx, batch, warm..warm + count, side)?;
        side.stop();
        Ok(full)
    });
    let consume: Work<u64> = Box::new(move |side| {
        let mut rx = rx;
        let (mut memory, start) = somewhere::<T>(BATCH);
        let batch = memory[start..].first_chunk_mut::<BATCH>().expect("so much was asked for");
        pop::<P, T, BATCH>(&mut rx, batch, 0..warm, side)?;
        side.start()?;
        let empty = pop::<P, T, BATCH>(&mut rx, batch, warm..warm + count, side)?;
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
fn push<P: Batches<T>, T: Item, const BATCH: usize>(
    tx: &mut P::Tx,
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
            let pushed = P::push_slice(tx, left);
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
fn pop<P: Batches<T>, T: Item, const BATCH: usize>(
    rx: &mut P::Rx,
    batch: &mut [T; BATCH],
    numbers: Range<u64>,
    side: &Side,
) -> Result<u64, Stop> {
    let mut empty = 0_u64;
    let mut next = numbers.start;
    while next < numbers.end {
        // The end of the range may cut the last slices short.
        let due = (numbers.end - next).min(BATCH as u64) as usize;
        let popped = P::pop_slice(rx, &mut batch[..due]);
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
