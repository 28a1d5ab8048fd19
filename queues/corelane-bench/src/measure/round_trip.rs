//! Ping-pong: one item in flight, sent by one queue and returned by another.

use super::pair::pair_on;
use super::reading::{Outcome, Reading};
use super::stream::{pop, push};
use crate::contender::Pair;
use crate::item::Item;
use crate::rig::{self, Stop, Work};
use crate::setting::Setting;

/// Trips before the clock starts.
const WARM: u64 = 1000;

/// Sends a number and waits until it comes back. Both ends only try and spin, so no contender sleeps.
pub(crate) fn round_trip<P: Pair<T>, T: Item>(setting: &Setting, capacity: usize) -> Outcome {
    let (ask, asked) = pair_on::<P, T>(setting.cpus[0], capacity)?;
    let (answer, answered) = pair_on::<P, T>(setting.cpus[1], capacity)?;
    let count = setting.count.max(1);
    let here: Work<()> = Box::new(move |side| {
        let (mut ask, mut answered) = (ask, answered);
        let trip = |number: u64, ask: &mut P::Tx, answered: &mut P::Rx, side: &_| -> Result<(), Stop> {
            push::<P, T>(ask, number..number + 1, side)?;
            pop::<P, T>(answered, number..number + 1, side)?;
            Ok(())
        };
        for number in 0..WARM {
            trip(number, &mut ask, &mut answered, side)?;
        }
        side.start()?;
        for number in WARM..WARM + count {
            trip(number, &mut ask, &mut answered, side)?;
        }
        side.stop();
        Ok(())
    });
    let there: Work<()> = Box::new(move |side| {
        let (mut asked, mut answer) = (asked, answer);
        let trip = |number: u64, asked: &mut P::Rx, answer: &mut P::Tx, side: &_| -> Result<(), Stop> {
            pop::<P, T>(asked, number..number + 1, side)?;
            push::<P, T>(answer, number..number + 1, side)?;
            Ok(())
        };
        for number in 0..WARM {
            trip(number, &mut asked, &mut answer, side)?;
        }
        side.start()?;
        for number in WARM..WARM + count {
            trip(number, &mut asked, &mut answer, side)?;
        }
        side.stop();
        Ok(())
    });
    let (_, took) = rig::run(setting, vec![(setting.cpus[0], here), (setting.cpus[1], there)])?;
    Ok(Reading::new(count, took))
}
