//! One thread that feeds many queues in turn, and one or many that drain them.

use super::queue::Made;
use super::reading::{Outcome, Reading};
use crate::contenders::{Rx, Tx};
use crate::rig::{self, PATIENCE, Side, Stop, Work};
use crate::setting::Setting;
use crate::topology::{Cpu, cpus};
use std::hint::spin_loop;

/// How many threads drain the queues, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    /// One thread drains queue by queue in turn, an item at a time.
    OneThread,
    /// One thread for each queue.
    ThreadEach,
}

/// Deals items out to `queues` queues in turn.
pub(super) fn fan<X: Tx<u64>, R: Rx<u64>>(
    made: &Made<X, R>,
    setting: &Setting,
    capacity: usize,
    queues: usize,
    drain: Drain,
) -> Outcome {
    let (mut txs, rxs): (Vec<_>, Vec<_>) = made.several(queues, capacity)?.into_iter().unzip();
    // The number of items of each queue.
    let warm = made.whole(setting.warm(2 * capacity as u64));
    let rounds = made.whole(setting.count / queues as u64);
    let mut work: Vec<(Option<Cpu>, Work<u64>)> = Vec::new();
    work.push((
        setting.cpus[0],
        Box::new(move |side| {
            deal(&mut txs, 0, warm, side)?;
            side.start()?;
            let full = deal(&mut txs, warm, rounds, side)?;
            side.stop();
            Ok(full)
        }),
    ));
    let mut consumer = |cpu, mut rxs: Vec<R>| {
        let gather: Work<u64> = Box::new(move |side| {
            gather(&mut rxs, 0, warm, side)?;
            side.start()?;
            let empty = gather(&mut rxs, warm, rounds, side)?;
            side.stop();
            Ok(empty)
        });
        work.push((cpu, gather));
    };
    match drain {
        Drain::OneThread => consumer(setting.cpus[1], rxs),
        Drain::ThreadEach => {
            let mut others = cpus().iter().copied().filter(|cpu| Some(*cpu) != setting.cpus[0]);
            for rx in rxs {
                consumer(others.next(), vec![rx]);
            }
        }
    }
    let (tries, took) = rig::run(setting, work)?;
    let (full, empty) = (tries[0], tries[1..].iter().sum());
    Ok(Reading { full, empty, ..Reading::new(rounds * queues as u64, took) })
}

/// Pushes the numbers from `first` on into every queue: each number into all queues before the next number.
#[inline(always)]
fn deal<X: Tx<u64>>(txs: &mut [X], first: u64, rounds: u64, side: &Side) -> Result<u64, Stop> {
    let mut full = 0_u64;
    for number in first..first + rounds {
        for tx in &mut *txs {
            side.until(&mut full, number, spin_loop, || tx.try_push(number).then_some(()))?;
        }
    }
    for tx in txs {
        side.until(&mut full, first + rounds, spin_loop, || tx.flush().then_some(()))?;
    }
    Ok(full)
}

/// Looks at one queue after the other until all numbers of all queues have come.
#[inline(always)]
fn gather<R: Rx<u64>>(rxs: &mut [R], first: u64, rounds: u64, side: &Side) -> Result<u64, Stop> {
    let mut due = vec![first; rxs.len()];
    let mut left = rounds * rxs.len() as u64;
    let mut empty = 0_u64;
    loop {
        for (rx, due) in rxs.iter_mut().zip(&mut due) {
            match rx.try_pop() {
                Some(number) => {
                    side.check(number, *due)?;
                    *due += 1;
                    left -= 1;
                }
                None => {
                    empty += 1;
                    if empty.is_multiple_of(PATIENCE) {
                        // The number of items only falls, and positions only rise.
                        side.stuck(u64::MAX - 1 - left)?;
                    }
                }
            }
        }
        if left == 0 {
            return Ok(empty);
        }
    }
}
