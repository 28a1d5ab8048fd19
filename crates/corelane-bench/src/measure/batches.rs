//! Items through one queue as fast as they go, a slice a call on both sides.

use super::pair::pair_on;
use super::reading::{Outcome, Reading};
use crate::contender::Batches;
use crate::item::Item;
use crate::rig::{self, PATIENCE, Side, Stop, Work};
use crate::setting::Setting;
use std::hint::spin_loop;
use std::ops::Range;

/// On a line of its own: where a slice happens to lie on the stack must not be a part of the result.
#[repr(align(128))]
struct Aligned<A>(A);

/// Streams numbered items in slices of `BATCH`. The cost of filling a slice and of checking every item of one is the same
/// for all contenders and counted.
pub(crate) fn in_batches<P: Batches<T>, T: Item, const BATCH: usize>(setting: &Setting, capacity: usize) -> Outcome {
    let (tx, rx) = pair_on::<P, T>(setting.cpus[0], capacity)?;
    let round = |count: u64| count.next_multiple_of(P::GRAIN * BATCH as u64);
    let (warm, count) = (round(2 * capacity as u64), round(setting.count));
    let produce: Work<u64> = Box::new(move |side| {
        let mut tx = tx;
        push::<P, T, BATCH>(&mut tx, 0..warm, side)?;
        side.start()?;
        let full = push::<P, T, BATCH>(&mut tx, warm..warm + count, side)?;
        side.stop();
        Ok(full)
    });
    let consume: Work<u64> = Box::new(move |side| {
        let mut rx = rx;
        pop::<P, T, BATCH>(&mut rx, 0..warm, side)?;
        side.start()?;
        let empty = pop::<P, T, BATCH>(&mut rx, warm..warm + count, side)?;
        side.stop();
        Ok(empty)
    });
    let (tries, took) = rig::run(setting, vec![(setting.cpus[0], produce), (setting.cpus[1], consume)])?;
    Ok(Reading { full: tries[0], empty: tries[1], ..Reading::new(count, took) })
}

#[inline(always)]
fn push<P: Batches<T>, T: Item, const BATCH: usize>(
    tx: &mut P::Tx,
    numbers: Range<u64>,
    side: &Side,
) -> Result<u64, Stop> {
    let stock = T::stock();
    let Aligned(batch) = &mut Aligned([T::default(); BATCH]);
    let mut full = 0_u64;
    let mut next = numbers.start;
    while next < numbers.end {
        for (i, item) in batch.iter_mut().enumerate() {
            *item = T::numbered(&stock, next + i as u64);
        }
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
    numbers: Range<u64>,
    side: &Side,
) -> Result<u64, Stop> {
    let Aligned(batch) = &mut Aligned([T::default(); BATCH]);
    let mut empty = 0_u64;
    let mut next = numbers.start;
    while next < numbers.end {
        // The last slices may be cut short by the end of the range.
        let due = (numbers.end - next).min(BATCH as u64) as usize;
        let popped = P::pop_slice(rx, &mut batch[..due]);
        for item in &batch[..popped] {
            side.check(item.says(), T::due(next))?;
            next += 1;
        }
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
