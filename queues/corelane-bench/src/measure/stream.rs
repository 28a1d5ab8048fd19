//! Items through one queue at full speed, one call an item on both sides.

use super::pair::{pair_on, whole};
use super::reading::{Outcome, Reading};
use crate::contender::Pair;
use crate::item::Item;
use crate::rig::{self, PATIENCE, Side, Stop, Work};
use crate::setting::Setting;
use std::hint::spin_loop;
use std::ops::Range;

/// Streams numbered items. Before the clock starts, twice the capacity goes through, so that both ends have touched all
/// memory of the ring.
pub(crate) fn one_by_one<P: Pair<T>, T: Item>(setting: &Setting, capacity: usize) -> Outcome {
    let (tx, rx) = pair_on::<P, T>(setting.cpus[0], capacity)?;
    let warm = whole::<P, T>(2 * capacity as u64);
    let count = whole::<P, T>(setting.count);
    let produce: Work<u64> = Box::new(move |side| {
        let mut tx = tx;
        push::<P, T>(&mut tx, 0..warm, side)?;
        flush::<P, T>(&mut tx, warm, side)?;
        side.start()?;
        let full = push::<P, T>(&mut tx, warm..warm + count, side)?;
        flush::<P, T>(&mut tx, warm + count, side)?;
        side.stop();
        Ok(full)
    });
    let consume: Work<u64> = Box::new(move |side| {
        let mut rx = rx;
        pop::<P, T>(&mut rx, 0..warm, side)?;
        side.start()?;
        let empty = pop::<P, T>(&mut rx, warm..warm + count, side)?;
        side.stop();
        Ok(empty)
    });
    let (tries, took) = rig::run(setting, vec![(setting.cpus[0], produce), (setting.cpus[1], consume)])?;
    Ok(Reading { full: tries[0], empty: tries[1], ..Reading::new(count, took) })
}

/// Pushes numbered items. Returns how often there was no room.
#[inline(always)]
pub(super) fn push<P: Pair<T>, T: Item>(tx: &mut P::Tx, numbers: Range<u64>, side: &Side) -> Result<u64, Stop> {
    let stock = T::stock();
    let mut full = 0_u64;
    for number in numbers {
        let item = T::numbered(&stock, number);
        while !P::try_push(tx, item) {
            full += 1;
            if full.is_multiple_of(PATIENCE) {
                side.stuck(number)?;
            }
            spin_loop();
        }
    }
    Ok(full)
}

/// Publishes the last items, if the design has a call for that.
#[inline(always)]
fn flush<P: Pair<T>, T: Item>(tx: &mut P::Tx, position: u64, side: &Side) -> Result<(), Stop> {
    let mut tries = 0_u64;
    while !P::flush(tx) {
        tries += 1;
        if tries.is_multiple_of(PATIENCE) {
            side.stuck(position)?;
        }
        spin_loop();
    }
    Ok(())
}

/// Pops items and checks their numbers. Returns how often there was none.
#[inline(always)]
pub(super) fn pop<P: Pair<T>, T: Item>(rx: &mut P::Rx, numbers: Range<u64>, side: &Side) -> Result<u64, Stop> {
    let mut empty = 0_u64;
    for number in numbers {
        let item = loop {
            if let Some(item) = P::try_pop(rx) {
                break item;
            }
            empty += 1;
            if empty.is_multiple_of(PATIENCE) {
                side.stuck(number)?;
            }
            spin_loop();
        };
        side.check(item.says(), T::due(number))?;
    }
    Ok(empty)
}
