//! Figure 5 of the B-Queue paper: two queues in a ring, and two threads that pass on every item they get.

use super::queue::Made;
use super::reading::{Outcome, Reading};
use crate::contenders::{Rx, Tx};
use crate::rig::{self, PATIENCE, Stop, Work};
use crate::setting::Setting;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Sends `in_flight` items round and round. The count is of items passed on.
pub(super) fn ring<X: Tx<u64>, R: Rx<u64>>(
    made: &Made<X, R>,
    setting: &Setting,
    capacity: usize,
    in_flight: u64,
) -> Outcome {
    let mut pairs = made.several(2, capacity)?.into_iter();
    let (Some((to_second, from_first)), Some((to_first, from_second))) = (pairs.next(), pairs.next()) else {
        unreachable!("two were asked for")
    };
    let laps = (setting.count / in_flight / 2).max(1);
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let first: Work<()> = Box::new(move |side| {
        let (mut to_second, mut from_second) = (to_second, from_second);
        side.start()?;
        for number in 0..in_flight {
            let mut tries = 0_u64;
            while !to_second.try_push(number) {
                tries += 1;
                if tries.is_multiple_of(PATIENCE) {
                    side.stuck(number)?;
                }
                spin_loop();
            }
        }
        let mut tries = 0_u64;
        for hop in 0..laps * in_flight {
            let item = loop {
                if let Some(item) = from_second.poll(&mut || _ = to_second.flush()) {
                    break item;
                }
                tries += 1;
                if tries.is_multiple_of(PATIENCE) {
                    side.stuck(in_flight + hop)?;
                }
                spin_loop();
            };
            side.check(item, hop % in_flight)?;
            while !to_second.try_push(item) {
                tries += 1;
                if tries.is_multiple_of(PATIENCE) {
                    side.stuck(in_flight + hop)?;
                }
                spin_loop();
            }
        }
        over.store(true, Relaxed);
        side.stop();
        Ok(())
    });
    let second: Work<()> = Box::new(move |side| {
        let (mut from_first, mut to_first) = (from_first, to_first);
        side.start()?;
        let (mut tries, mut hops) = (0_u64, 0);
        let result: Result<(), Stop> = 'ring: loop {
            let item = loop {
                if let Some(item) = from_first.poll(&mut || _ = to_first.flush()) {
                    break item;
                }
                if is_over.load(Relaxed) {
                    break 'ring Ok(());
                }
                tries += 1;
                if tries.is_multiple_of(PATIENCE) {
                    side.stuck(hops)?;
                }
                spin_loop();
            };
            hops += 1;
            while !to_first.try_push(item) {
                // The first thread takes no more items.
                if is_over.load(Relaxed) {
                    break 'ring Ok(());
                }
                tries += 1;
                if tries.is_multiple_of(PATIENCE) {
                    side.stuck(hops)?;
                }
                spin_loop();
            }
        };
        side.stop();
        result
    });
    let (_, took) = rig::run(setting, vec![(setting.cpus[0], first), (setting.cpus[1], second)])?;
    Ok(Reading::new(2 * laps * in_flight, took))
}
