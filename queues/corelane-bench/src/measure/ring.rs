//! Figure 5 of the B-Queue paper: two queues in a ring, and two threads that pass on every item they get.

use super::queue::Made;
use super::reading::{Outcome, Reading};
use crate::contenders::{Rx, Tx};
use crate::rig::{self, Work};
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
        let (mut to_second, mut from_second, mut tries) = (to_second, from_second, 0);
        side.start()?;
        for number in 0..in_flight {
            side.until(&mut tries, number, spin_loop, || to_second.try_push(number).then_some(()))?;
        }
        for hop in 0..laps * in_flight {
            let position = in_flight + hop;
            let take = || from_second.poll(&mut || _ = to_second.flush());
            let item = side.until(&mut tries, position, spin_loop, take)?;
            side.check(item, hop % in_flight)?;
            side.until(&mut tries, position, spin_loop, || to_second.try_push(item).then_some(()))?;
        }
        over.store(true, Relaxed);
        side.stop();
        Ok(())
    });
    let second: Work<()> = Box::new(move |side| {
        let (mut from_first, mut to_first, mut tries, mut hops) = (from_first, to_first, 0, 0);
        side.start()?;
        // The first thread takes no more items when it is over.
        let end = || is_over.load(Relaxed).then_some(None);
        loop {
            let take = || from_first.poll(&mut || _ = to_first.flush()).map(Some).or_else(end);
            let Some(item) = side.until(&mut tries, hops, spin_loop, take)? else { break };
            hops += 1;
            let put = || to_first.try_push(item).then_some(Some(())).or_else(|| is_over.load(Relaxed).then_some(None));
            if side.until(&mut tries, hops, spin_loop, put)?.is_none() {
                break;
            }
        }
        side.stop();
        Ok(())
    });
    let (_, took) = rig::run(setting, vec![(setting.cpus[0], first), (setting.cpus[1], second)])?;
    Ok(Reading::new(2 * laps * in_flight, took))
}
