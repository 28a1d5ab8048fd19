//! The age of items when they arrive, at a given rate.

use super::pair::{pair_on, whole};
use super::reading::{Outcome, Reading};
use super::stream::one_by_one;
use crate::contender::Pair;
use crate::histogram::Histogram;
use crate::raw::ticks;
use crate::rig::{self, PATIENCE, Side, Stop, Work, tick_rate};
use crate::setting::Setting;
use std::hint::spin_loop;

/// The percentiles to report. One item in a thousand is stamped, so none lies beyond the 99th.
pub(crate) const AGES: [f64; 2] = [50.0, 99.0];

/// How many items come in a second.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rate {
    /// This share of the rate that the contender reaches without a pace.
    OfItsPeak(f64),
    Of(f64),
}

/// One item in this many holds the time of its push. The others hold 0.
const STAMPED: u64 = 1000;
/// The least distance between two groups of items. A clock read takes some 10 ns, and too many of them would be part of
/// the result.
const APART: f64 = 20e-9;

/// Sends items evenly, in small groups. The values are nanoseconds at [`AGES`], from the push of an item to its pop.
pub(crate) fn aged<P: Pair<u64>>(setting: &Setting, capacity: usize, rate: Rate) -> Outcome {
    let rate = match rate {
        Rate::Of(rate) => rate,
        Rate::OfItsPeak(share) => {
            let setting = Setting { count: setting.count_up_to(setting.count), ..*setting };
            let peak = one_by_one::<P, u64>(&setting, capacity)?;
            share * peak.items as f64 / peak.wall.as_secs_f64()
        }
    };
    let (tx, rx) = pair_on::<P, u64>(setting.cpus[0], capacity)?;
    let group = (rate * APART).ceil().max(1.0);
    let every = group / rate * tick_rate();
    // The time of a sample, but long enough for a number of stamps.
    let count = whole::<P, u64>(if setting.quick { STAMPED / 4 } else { setting.count.max(100 * STAMPED) });
    let produce: Work<Option<Histogram>> = Box::new(move |side| {
        let mut tx = tx;
        side.start()?;
        send::<P>(&mut tx, count, group as u64, every, side)?;
        side.stop();
        Ok(None)
    });
    let consume: Work<Option<Histogram>> = Box::new(move |side| {
        let (mut rx, mut ages) = (rx, Histogram::new());
        side.start()?;
        receive::<P>(&mut rx, count, side, &mut ages)?;
        side.stop();
        Ok(Some(ages))
    });
    let (mut ages, took) = rig::run(setting, vec![(setting.cpus[0], produce), (setting.cpus[1], consume)])?;
    let ages = ages.pop().flatten().expect("the consumer returns one");
    let values = AGES.map(|percent| ages.percentile(percent) as f64 * 1e9 / tick_rate()).to_vec();
    Ok(Reading { values, ..Reading::new(count, took) })
}

#[inline(always)]
fn send<P: Pair<u64>>(tx: &mut P::Tx, count: u64, group: u64, every: f64, side: &Side) -> Result<(), Stop> {
    let (mut full, mut sent, mut due) = (0_u64, 0, ticks() as f64);
    while sent < count {
        while (ticks() as f64) < due {
            spin_loop();
        }
        due += every;
        for number in sent..(sent + group).min(count) {
            let item = if number.is_multiple_of(STAMPED) { ticks() } else { 0 };
            while !P::try_push(tx, item) {
                full += 1;
                if full.is_multiple_of(PATIENCE) {
                    side.stuck(number)?;
                }
                spin_loop();
            }
        }
        sent += group;
    }
    Ok(())
}

#[inline(always)]
fn receive<P: Pair<u64>>(rx: &mut P::Rx, count: u64, side: &Side, ages: &mut Histogram) -> Result<(), Stop> {
    let mut empty = 0_u64;
    for number in 0..count {
        let stamp = loop {
            if let Some(item) = P::try_pop(rx) {
                break item;
            }
            empty += 1;
            if empty.is_multiple_of(PATIENCE) {
                side.stuck(number)?;
            }
            spin_loop();
        };
        if stamp != 0 {
            ages.add(ticks().saturating_sub(stamp));
        }
        // An item has a stamp exactly where one is due.
        if (stamp != 0) != number.is_multiple_of(STAMPED) {
            side.check(stamp, 0)?;
        }
    }
    Ok(())
}
