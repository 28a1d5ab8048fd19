//! One-way latency of items that are due at set times.

use super::queue::Made;
use super::reading::{Outcome, Reading};
use crate::contenders::{Rx, Tx};
use crate::histogram::Histogram;
use crate::raw::ticks;
use crate::rig::{self, Side, Stop, Work, tick_rate};
use crate::setting::Setting;
use std::hint::spin_loop;

/// The percentiles to report where each item is stamped.
pub(crate) const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];
/// The same where one item in a thousand is stamped, so none lies beyond the 99th.
pub(crate) const AGES: [f64; 2] = [50.0, 99.0];

/// When items are due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Evenly, at this share of the rate that the same loop reaches without a pace.
    Share(f64),
    /// In bursts: this many items at once, every so many microseconds.
    Bursts { items: u64, every_us: u64 },
    /// Evenly in small groups, so many items a second. Latency is the age of an item: from its push, not from when it
    /// was due.
    Aged(f64),
    /// The same, at this share of the rate that the contender reaches in a loop without a clock.
    AgedShare(f64),
}

/// One item in this many holds the time of its push. The others hold 0.
const STAMPED: u64 = 1000;
/// The least distance between two groups of items. A clock read takes some 10 ns, and too many of them would be part of
/// the result.
const APART: f64 = 20e-9;

/// Sends each item at its time, or as soon after it as there is room. Latency counts from the time the item was *due*
/// to its pop, so an item that had to wait its turn counts as late. The item holds its due time.
///
/// The values are nanoseconds at the percentiles. They include a read of the clock at each end, and any difference
/// between the counters of the two CPUs.
pub(super) fn latency<X: Tx<u64>, R: Rx<u64>>(
    made: &Made<X, R>,
    setting: &Setting,
    capacity: usize,
    pace: Pace,
    percentiles: &[f64],
) -> Outcome {
    if let Pace::AgedShare(share) = pace {
        let setting_up = Setting { count: setting.count_up_to(setting.count), ..*setting };
        let peak = super::Runs::<u64>::one_by_one(made, &setting_up, capacity)?;
        let rate = share * peak.items as f64 / peak.wall.as_secs_f64();
        return latency(made, setting, capacity, Pace::Aged(rate), percentiles);
    }
    let (tx, rx) = made.on(setting.cpus[0], capacity)?;
    let (warm, count) = (made.whole(setting.warm(2 * capacity as u64)), made.whole(setting.count));
    // A burst that has begun is sent whole. An age is measured for the time of a sample, but for a number of stamps.
    let (warm, due, at_once) = match pace {
        Pace::Bursts { items, .. } => (warm, count.next_multiple_of(items), items),
        Pace::Aged(rate) => {
            let least = if setting.quick { STAMPED / 4 } else { setting.count.max(100 * STAMPED) };
            (0, made.whole(least), (rate * APART).ceil().max(1.0) as u64)
        }
        _ => (warm, count, 1),
    };
    let is_aged = matches!(pace, Pace::Aged(_));
    let produce: Work<Option<Histogram>> = Box::new(move |side| {
        let mut tx = tx;
        send(&mut tx, warm, 0.0, 1, side)?;
        side.start()?;
        let every = match pace {
            Pace::Aged(rate) | Pace::AgedShare(rate) => at_once as f64 / rate * tick_rate(),
            // The same loop at full speed, which tells its rate.
            Pace::Share(share) => {
                let start = ticks();
                send(&mut tx, count, 0.0, 1, side)?;
                ((ticks() - start) as f64 / count as f64 / share).floor()
            }
            Pace::Bursts { every_us, .. } => (every_us as f64 * tick_rate() / 1e6).floor(),
        };
        if is_aged {
            send_aged(&mut tx, due, every, at_once, side)?;
        } else {
            send(&mut tx, due, every, at_once, side)?;
        }
        side.stop();
        Ok(None)
    });
    let consume: Work<Option<Histogram>> = Box::new(move |side| {
        let mut rx = rx;
        let mut histogram = Histogram::new();
        receive(&mut rx, warm, side, is_aged, |_| {})?;
        side.start()?;
        if let Pace::Share(_) = pace {
            // Latencies are stored here as well, so that the loop is the same.
            receive(&mut rx, count, side, false, |late| histogram.add(late))?;
            histogram = Histogram::new();
        }
        receive(&mut rx, due, side, is_aged, |late| histogram.add(late))?;
        side.stop();
        Ok(Some(histogram))
    });
    let (mut histograms, took) = rig::run(setting, vec![(setting.cpus[0], produce), (setting.cpus[1], consume)])?;
    let histogram = histograms.pop().flatten().expect("the consumer returns one");
    let nanoseconds = |percent: &f64| histogram.percentile(*percent) as f64 * 1e9 / tick_rate();
    let values = percentiles.iter().map(nanoseconds).collect();
    Ok(Reading { values, ..Reading::new(if is_aged { due } else { count }, took) })
}

/// Pushes an item, as soon as there is room.
#[inline(always)]
fn push<X: Tx<u64>>(tx: &mut X, item: u64, full: &mut u64, number: u64, side: &Side) -> Result<(), Stop> {
    side.until(full, number, spin_loop, || tx.try_push(item).then_some(()))
}

/// Sends `count` items, `at_once` of them every `every` ticks.
#[inline(always)]
fn send<X: Tx<u64>>(tx: &mut X, count: u64, every: f64, at_once: u64, side: &Side) -> Result<(), Stop> {
    let (mut full, mut due, every) = (0, ticks(), every as u64);
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
        push(tx, if every == 0 { now } else { due }, &mut full, number, side)?;
    }
    Ok(())
}

/// Sends groups of items, and stamps one item in a thousand.
#[inline(always)]
fn send_aged<X: Tx<u64>>(tx: &mut X, count: u64, every: f64, group: u64, side: &Side) -> Result<(), Stop> {
    let (mut full, mut sent, mut due) = (0, 0, ticks() as f64);
    while sent < count {
        while (ticks() as f64) < due {
            spin_loop();
        }
        due += every;
        for number in sent..(sent + group).min(count) {
            let item = if number.is_multiple_of(STAMPED) { ticks() } else { 0 };
            push(tx, item, &mut full, number, side)?;
        }
        sent += group;
    }
    Ok(())
}

#[inline(always)]
fn receive<R: Rx<u64>>(
    rx: &mut R,
    count: u64,
    side: &Side,
    is_aged: bool,
    mut late: impl FnMut(u64),
) -> Result<(), Stop> {
    let (mut empty, mut last) = (0_u64, 0);
    for number in 0..count {
        let stamp = side.until(&mut empty, number, spin_loop, || rx.try_pop())?;
        if is_aged && !number.is_multiple_of(STAMPED) {
            // An item has a stamp exactly where one is due.
            side.check(stamp, 0)?;
            continue;
        }
        // Times never run backwards.
        if stamp < last.max(1) {
            side.check(stamp, last.max(1))?;
        }
        last = stamp;
        late(ticks().saturating_sub(stamp));
    }
    Ok(())
}
