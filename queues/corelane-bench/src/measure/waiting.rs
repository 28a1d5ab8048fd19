//! Single items between ends that wait instead of spinning, for threads that share CPUs.

use super::pair::pair_on;
use super::reading::{Outcome, Reading};
use crate::contender::{Pair, Waits};
use crate::item::Item;
use crate::rig::{self, PATIENCE, Stop, Work};
use crate::setting::Setting;
use std::thread::yield_now;

/// Streams numbered items through `pairs` queues at once. Each queue has two threads, which wait as the contender does.
/// Both ends of queue i run on the CPUs `cpus[i % n]`.
pub(crate) fn waiting<P: Waits<T>, T: Item>(setting: &Setting, capacity: usize, pairs: usize) -> Outcome {
    stream::<P, T>(
        setting,
        capacity,
        pairs,
        |tx, item, _| if P::push(tx, item) { Ok(()) } else { Err(Stop::Elsewhere) },
        |rx, _| P::pop(rx).ok_or(Stop::Elsewhere),
    )
}

/// The same for contenders that leave waiting to their user: if a try fails, the thread gives up the rest of its time
/// slice.
pub(crate) fn yielding<P: Pair<T>, T: Item>(setting: &Setting, capacity: usize, pairs: usize) -> Outcome {
    stream::<P, T>(
        setting,
        capacity,
        pairs,
        |tx, item, stuck| {
            let mut tries = 0_u64;
            while !P::try_push(tx, item) {
                tries += 1;
                if tries.is_multiple_of(PATIENCE) {
                    stuck()?;
                }
                yield_now();
            }
            Ok(())
        },
        |rx, stuck| {
            let mut tries = 0_u64;
            loop {
                if let Some(item) = P::try_pop(rx) {
                    return Ok(item);
                }
                tries += 1;
                if tries.is_multiple_of(PATIENCE) {
                    stuck()?;
                }
                yield_now();
            }
        },
    )
}

#[inline(always)]
fn stream<P: Pair<T>, T: Item>(
    setting: &Setting,
    capacity: usize,
    pairs: usize,
    push: impl Fn(&mut P::Tx, T, &dyn Fn() -> Result<(), Stop>) -> Result<(), Stop> + Copy + Send + 'static,
    pop: impl Fn(&mut P::Rx, &dyn Fn() -> Result<(), Stop>) -> Result<T, Stop> + Copy + Send + 'static,
) -> Outcome {
    let warm = 2 * capacity as u64;
    let count = (setting.count / pairs as u64).max(1);
    let mut work: Vec<(_, Work<()>)> = Vec::new();
    for _ in 0..pairs {
        let (tx, rx) = pair_on::<P, T>(setting.cpus[0], capacity)?;
        work.push((
            setting.cpus[0],
            Box::new(move |side| {
                let mut tx = tx;
                let stock = T::stock();
                for number in 0..warm + count {
                    if number == warm {
                        side.start()?;
                    }
                    push(&mut tx, T::numbered(&stock, number), &|| side.stuck(number))?;
                }
                side.stop();
                Ok(())
            }),
        ));
        work.push((
            setting.cpus[1],
            Box::new(move |side| {
                let mut rx = rx;
                for number in 0..warm + count {
                    if number == warm {
                        side.start()?;
                    }
                    let item = pop(&mut rx, &|| side.stuck(number))?;
                    side.check(item.says(), T::due(number))?;
                }
                side.stop();
                Ok(())
            }),
        ));
    }
    let (_, took) = rig::run(setting, work)?;
    Ok(Reading::new(count * pairs as u64, took))
}
