//! One-way latency of items that are due at set times.

use super::pair::{pair_on, whole};
use super::reading::{Failure, Outcome, Reading};
use crate::contender::Pair;
use crate::histogram::Histogram;
use crate::raw::ticks;
use crate::rig::{self, PATIENCE, Side, Stop, Work, tick_rate};
use crate::setting::Setting;
use std::hint::spin_loop;

/// The percentiles to report.
pub(crate) const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// When items are due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Evenly, at this share of the rate that the same loop reaches without a pace.
    Share(f64),
    /// In bursts: this many items at once, every so many microseconds.
    Bursts { items: u64, every_us: u64 },
}

/// Sends each item at its time, or as soon after it as there is room. Latency counts from the time the item was *due*
/// to its pop, so an item that had to wait its turn counts as late. The item holds its due time.
///
/// The values are nanoseconds at [`PERCENTILES`]. They include a read of the clock at each end, and any difference
/// between the counters of the two CPUs.
pub(crate) fn paced<P: Pair<u64>>(setting: &Setting, capacity: usize, pace: Pace) -> Outcome {
    let (histogram, reading) = run::<P>(setting, capacity, pace)?;
    let values = PERCENTILES.map(|percent| histogram.percentile(percent) as f64 * 1e9 / tick_rate()).to_vec();
    Ok(Reading { values, ..reading })
}

/// Sends single items, 20 µs apart, to a consumer that polls an empty queue. The value is the median latency in cycles.
pub(crate) fn lone<P: Pair<u64>>(setting: &Setting, capacity: usize) -> Outcome {
    let (histogram, reading) = run::<P>(setting, capacity, Pace::Bursts { items: 1, every_us: 20 })?;
    Ok(Reading { values: vec![histogram.percentile(50.0) as f64], ..reading })
}

fn run<P: Pair<u64>>(setting: &Setting, capacity: usize, pace: Pace) -> Result<(Histogram, Reading), Failure> {
    let (tx, rx) = pair_on::<P, u64>(setting.cpus[0], capacity)?;
    let warm = whole::<P, u64>(2 * capacity as u64);
    let count = whole::<P, u64>(setting.count);
    let at_once = match pace {
        Pace::Share(_) => 1,
        Pace::Bursts { items, .. } => items,
    };
    // A burst that has begun is sent whole.
    let due = count.next_multiple_of(at_once);
    let produce: Work<Option<Histogram>> = Box::new(move |side| {
        let mut tx = tx;
        send::<P>(&mut tx, warm, 0, 1, side)?;
        side.start()?;
        let every = match pace {
            // The same loop at full speed, which tells its rate.
            Pace::Share(share) => {
                let start = ticks();
                send::<P>(&mut tx, count, 0, 1, side)?;
                (ticks() - start) as f64 / count as f64 / share
            }
            Pace::Bursts { every_us, .. } => every_us as f64 * tick_rate() / 1e6,
        };
        send::<P>(&mut tx, due, every as u64, at_once, side)?;
        side.stop();
        Ok(None)
    });
    let consume: Work<Option<Histogram>> = Box::new(move |side| {
        let mut rx = rx;
        let mut histogram = Histogram::new();
        receive::<P>(&mut rx, warm, side, |_| {})?;
        side.start()?;
        if let Pace::Share(_) = pace {
            // Latencies are stored here as well, so that the loop is the same.
            receive::<P>(&mut rx, count, side, |late| histogram.add(late))?;
            histogram = Histogram::new();
        }
        receive::<P>(&mut rx, due, side, |late| histogram.add(late))?;
        side.stop();
        Ok(Some(histogram))
    });
    let (mut histograms, took) = rig::run(setting, vec![(setting.cpus[0], produce), (setting.cpus[1], consume)])?;
    let histogram = histograms.pop().flatten().expect("the consumer returns one");
    Ok((histogram, Reading::new(count, took)))
}

/// Sends `count` items, `at_once` of them every `every` ticks.
#[inline(always)]
fn send<P: Pair<u64>>(tx: &mut P::Tx, count: u64, every: u64, at_once: u64, side: &Side) -> Result<(), Stop> {
    let mut full = 0_u64;
    let mut due = ticks();
    for number in 0..count {
        if number % at_once == 0 {
            due += every;
        }
        let mut now = ticks();
        while now < due {
            spin_loop();
            now = ticks();
        }
        // Without a pace an item is due at once.
        let stamp = if every == 0 { now } else { due };
        while !P::try_push(tx, stamp) {
            full += 1;
            if full.is_multiple_of(PATIENCE) {
                side.stuck(number)?;
            }
            spin_loop();
        }
    }
    Ok(())
}

#[inline(always)]
fn receive<P: Pair<u64>>(rx: &mut P::Rx, count: u64, side: &Side, mut late: impl FnMut(u64)) -> Result<(), Stop> {
    let (mut empty, mut last) = (0_u64, 0);
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
        // Due times never run backwards.
        if stamp < last {
            side.check(stamp, last)?;
        }
        last = stamp;
        late(ticks().saturating_sub(stamp));
    }
    Ok(())
}
