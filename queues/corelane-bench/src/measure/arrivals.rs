//! Items that come at random times, to a consumer that waits by a strategy.

use super::reading::{Outcome, Reading};
use crate::histogram::Histogram;
use crate::raw::ticks;
use crate::rig::{self, Stop, Work, tick_rate};
use crate::setting::Setting;
use corelane::spsc::{Lane, Options, channel_with};
use corelane::wait::Strategy;
use cpu_time::ThreadTime;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CAPACITY: usize = 1024;

/// Sends items through a lane. The gaps between items are independent and `gap` nanoseconds in the mean, so no fixed
/// time of spinning fits them all. The sender spins until an item is due. Latency counts from the due time, and CPU
/// time is the consumer's alone.
///
/// With a `rival`, a thread that only computes competes for the consumer's CPU.
///
/// The values are the median of the latency and its 99th percentile, in microseconds.
pub(crate) fn arrivals<W: Strategy + Sync>(setting: &Setting, wait: W, gap: f64, rival: bool) -> Outcome {
    let count = if setting.quick { setting.count.min(20) } else { setting.count };
    let options = Options::new().wait(wait);
    let (mut tx, mut rx) = channel_with::<u64, Lane, _, _>(CAPACITY, options).expect("a small queue");
    let over = Arc::new(AtomicBool::new(false));
    let gap = gap * tick_rate() / 1e9;
    let send: Work<Option<(Histogram, Duration)>> = Box::new(move |side| {
        side.start()?;
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut due = ticks() as f64;
        for _ in 0..count {
            due += random.exponential() * gap;
            let due = due as u64;
            while ticks() < due {
                spin_loop();
            }
            if tx.push(due).is_err() {
                return Err(Stop::Elsewhere);
            }
        }
        side.stop();
        Ok(None)
    });
    let done = over.clone();
    let receive: Work<Option<(Histogram, Duration)>> = Box::new(move |side| {
        let mut late = Histogram::new();
        side.start()?;
        let start = ThreadTime::now();
        let mut last = 0;
        while let Ok(stamp) = rx.pop() {
            if stamp < last {
                side.check(stamp, last)?;
            }
            last = stamp;
            late.add(ticks().saturating_sub(stamp));
        }
        let used = start.elapsed();
        done.store(true, Ordering::Relaxed);
        side.stop();
        Ok(Some((late, used)))
    });
    let compute: Work<Option<(Histogram, Duration)>> = Box::new(move |side| {
        side.start()?;
        while !over.load(Ordering::Relaxed) {
            spin_loop();
        }
        side.stop();
        Ok(None)
    });
    let mut work = vec![(setting.cpus[0], send), (setting.cpus[1], receive)];
    if rival {
        work.push((setting.cpus[1], compute));
    }
    let (results, took) = rig::run(setting, work)?;
    let (late, used) = results.into_iter().flatten().next().expect("the consumer returns them");
    let microseconds = |percent| late.percentile(percent) as f64 * 1e6 / tick_rate();
    let values = vec![microseconds(50.0), microseconds(99.0)];
    Ok(Reading { values, cpu: used, ..Reading::new(count, took) })
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    /// An exponentially distributed number with the mean 1.
    fn exponential(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let unit = ((self.0 >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -unit.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_independent_arrivals() {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let gaps: Vec<f64> = (0..100_000).map(|_| random.exponential()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
