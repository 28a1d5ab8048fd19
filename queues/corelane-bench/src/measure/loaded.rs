//! Single items to a consumer that works on each of them.

use super::pair::{pair_on, whole};
use super::reading::{Outcome, Reading};
use super::stream::push;
use crate::contender::Pair;
use crate::raw::ticks;
use crate::rig::{self, PATIENCE, Work, tick_rate};
use crate::setting::Setting;
use std::hint::spin_loop;

/// The consumer works for `workload` cycles after each item, as in section 5.4 of the B-Queue paper. The value is
/// cycles an item, minus the workload. It includes the reads of the counter that ends the workload.
pub(crate) fn loaded<P: Pair<u64>>(setting: &Setting, capacity: usize, workload: u64) -> Outcome {
    let (tx, rx) = pair_on::<P, u64>(setting.cpus[0], capacity)?;
    let warm = whole::<P, u64>(2 * capacity as u64);
    let count = whole::<P, u64>(setting.count);
    let produce: Work<()> = Box::new(move |side| {
        let mut tx = tx;
        push::<P, u64>(&mut tx, 0..warm, side)?;
        side.start()?;
        push::<P, u64>(&mut tx, warm..warm + count, side)?;
        side.stop();
        Ok(())
    });
    let consume: Work<()> = Box::new(move |side| {
        let mut rx = rx;
        super::stream::pop::<P, u64>(&mut rx, 0..warm, side)?;
        side.start()?;
        let mut empty = 0_u64;
        for number in warm..warm + count {
            let item = loop {
                if let Some(item) = P::try_pop(&mut rx) {
                    break item;
                }
                empty += 1;
                if empty.is_multiple_of(PATIENCE) {
                    side.stuck(number)?;
                }
                spin_loop();
            };
            side.check(item, number)?;
            if workload > 0 {
                let start = ticks();
                while ticks().wrapping_sub(start) < workload {
                    spin_loop();
                }
            }
        }
        side.stop();
        Ok(())
    });
    let (_, took) = rig::run(setting, vec![(setting.cpus[0], produce), (setting.cpus[1], consume)])?;
    let cycles = took.wall.as_secs_f64() * tick_rate() / count as f64 - workload as f64;
    Ok(Reading { values: vec![cycles], ..Reading::new(count, took) })
}
