//! One thread alone that makes the calls of all of a queue's threads, and the pauses of waiting threads.

use super::reading::{Outcome, Reading};
use crate::contender::ManyToMany;
use crate::rig::{self, Stop, Work};
use crate::setting::Setting;
use crate::topology::Cpu;
use std::hint::spin_loop;

/// How many items one thread puts before it takes them out: fewer than any queue holds.
pub(crate) const RUN: u64 = 512;

/// Puts a run of items and takes them out again. False if the queue does not return them.
#[inline(always)]
pub(crate) fn there_and_back<M: ManyToMany>(tx: &mut M::Tx, rx: &mut M::Rx) -> bool {
    (0..RUN).all(|item| M::put(tx, item)) && (0..RUN).all(|_| M::take(rx).is_some())
}

/// The cost of the calls when no line moves between caches and no thread waits.
pub(crate) fn alone<M: ManyToMany>(setting: &Setting) -> Outcome {
    let (mut txs, mut rxs) = M::ends(1, 1);
    let (mut tx, mut rx) = (txs.remove(0), rxs.remove(0));
    let runs = setting.count.div_ceil(RUN);
    let both: Work<()> = Box::new(move |side| {
        for run in 0..=runs {
            if run == 1 {
                side.start()?;
            }
            if !there_and_back::<M>(&mut tx, &mut rx) {
                return Err(Stop::Elsewhere);
            }
        }
        side.stop();
        Ok(())
    });
    let work: Vec<(Option<Cpu>, Work<()>)> = vec![(setting.cpus[0], both)];
    let (_, took) = rig::run(setting, work)?;
    Ok(Reading::new(runs * RUN, took))
}

/// Measures pauses, one after the other.
pub(crate) fn pauses(setting: &Setting) -> Outcome {
    let count = setting.count;
    let pause: Work<()> = Box::new(move |side| {
        side.start()?;
        (0..count).for_each(|_| spin_loop());
        side.stop();
        Ok(())
    });
    let work: Vec<(Option<Cpu>, Work<()>)> = vec![(setting.cpus[0], pause)];
    let (_, took) = rig::run(setting, work)?;
    Ok(Reading::new(count, took))
}
