//! Items from any number of threads to any number of others, and the cost of waiting threads while no item comes.

use super::reading::{Outcome, Reading};
use crate::contenders::{Rx, Tx};
use crate::rig::{self, Stop, Work};
use crate::setting::Setting;
use crate::topology::Cpu;
use cpu_time::ProcessTime;
use std::ops::Range;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Items that each thread of the larger side passes before the clock starts.
const WARM: u64 = 4;
/// The most items a sample moves: a queue without a bound holds everything that its taking threads have not read yet.
const MOST: u64 = 1_000_000;

/// Hands numbered items from `putters` threads to `takers` threads. Each thread of a side passes as many items as its
/// neighbours. Only these counts end the run. The sum of the items taken must equal the sum of the items put.
pub(crate) fn hand_over<X: Tx<u64>, R: Rx<u64>>((txs, rxs): (Vec<X>, Vec<R>), setting: &Setting) -> Outcome {
    let (putters, takers) = (txs.len(), rxs.len());
    let threads = putters.max(takers) as u64;
    let (warm, count) = (WARM * threads, setting.count_up_to(MOST).next_multiple_of(threads));
    // Either the smaller side has one thread, or both sides have the same number.
    let share = |count: u64, threads: usize| count / threads as u64;
    let mut work: Vec<(Option<Cpu>, Work<u64>)> = Vec::new();
    for (putter, tx) in (0..).zip(txs) {
        let start = putter * share(warm + count, putters);
        let middle = start + share(warm, putters);
        let end = start + share(warm + count, putters);
        let put: Work<u64> = Box::new(move |side| {
            let mut tx = tx;
            put(&mut tx, start..middle)?;
            side.start()?;
            put(&mut tx, middle..end)?;
            side.stop();
            Ok((start..end).sum())
        });
        work.push((setting.cpus[0], put));
    }
    for rx in rxs {
        let take: Work<u64> = Box::new(move |side| {
            let mut rx = rx;
            let warm = take(&mut rx, share(warm, takers))?;
            side.start()?;
            let sum = take(&mut rx, share(count, takers))?;
            side.stop();
            Ok(warm + sum)
        });
        work.push((setting.cpus[1], take));
    }
    let (sums, took) = rig::run(setting, work)?;
    let (put, taken) = sums.split_at(putters);
    let (put, taken) = (put.iter().sum(), taken.iter().sum());
    if put == taken { Ok(Reading::new(count, took)) } else { Err(Stop::WrongSum { put, taken }.into()) }
}

#[inline(always)]
fn put<X: Tx<u64>>(tx: &mut X, items: Range<u64>) -> Result<(), Stop> {
    for item in items {
        if !tx.try_push(item) {
            return Err(Stop::Elsewhere);
        }
    }
    Ok(())
}

/// Takes items, and returns their sum.
#[inline(always)]
fn take<R: Rx<u64>>(rx: &mut R, count: u64) -> Result<u64, Stop> {
    let mut sum = 0;
    for _ in 0..count {
        sum += rx.try_pop().ok_or(Stop::Elsewhere)?;
    }
    Ok(sum)
}

/// How long to wait until every waiting thread sleeps, if it ever does.
const SETTLE: Duration = Duration::from_millis(5);

/// Lets `takers` threads wait for an item that does not come, for as many milliseconds as the setting says. The value
/// is the share of one core that they use in this time, in percent.
pub(crate) fn idle<X: Tx<u64>, R: Rx<u64>>((mut txs, rxs): (Vec<X>, Vec<R>), setting: &Setting) -> Outcome {
    let takers = rxs.len();
    let mut work: Vec<(Option<Cpu>, Work<f64>)> = Vec::new();
    let count = if setting.quick { 1 } else { setting.count };
    let wait: Work<f64> = Box::new(move |side| {
        side.start()?;
        let percent = busy(Duration::from_millis(count));
        for tx in &mut txs {
            put(tx, 0..takers as u64)?;
        }
        side.stop();
        Ok(percent)
    });
    work.push((setting.cpus[0], wait));
    for rx in rxs {
        let take: Work<f64> = Box::new(move |side| {
            let mut rx = rx;
            side.start()?;
            take(&mut rx, 1)?;
            side.stop();
            Ok(0.0)
        });
        work.push((setting.cpus[1], take));
    }
    let (percents, took) = rig::run(setting, work)?;
    Ok(Reading { values: vec![percents[0]], ..Reading::new(count, took) })
}

/// Sleeps, and returns the share of one core, in percent, that this process used in this time.
pub(super) fn busy(time: Duration) -> f64 {
    sleep(SETTLE);
    let (start, cpu) = (Instant::now(), ProcessTime::now());
    sleep(time);
    let (cpu, wall) = (cpu.elapsed(), start.elapsed());
    cpu.as_secs_f64() / wall.as_secs_f64() * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::many::fair;
    use crate::measure::reading::Failure;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    const SETTING: Setting =
        Setting { cpus: [None; 2], bound: Duration::from_secs(1), count: 100, counting: false, quick: false };

    #[test]
    fn all_items_are_passed_whatever_the_number_of_threads() {
        for (putters, takers, items) in [(1, 1, 100), (3, 3, 102), (1, 7, 105), (7, 1, 105)] {
            let reading = fair().runs.hand_over(&SETTING, putters, takers).expect("it comes to its end");
            assert_eq!(reading.items, items);
        }
    }

    #[test]
    fn an_item_that_is_not_the_one_put_is_noticed() {
        let (tx, rx) = std::sync::mpsc::channel();
        let put = |tx: &mut std::sync::mpsc::Sender<u64>, item| tx.send(if item == 77 { 7 } else { item }).is_ok();
        let take = |rx: &mut std::sync::mpsc::Receiver<u64>| rx.recv().ok();
        let outcome = hand_over((vec![(tx, put)], vec![(rx, take)]), &SETTING);
        assert!(
            matches!(outcome, Err(Failure::Stop(Stop::WrongSum { put, taken })) if put == taken + 70),
            "{outcome:?}"
        );
    }

    /// A taker that never gives way. Beside other programs it gets its share of the CPU, too.
    #[test]
    fn a_taker_that_waits_awake_is_noticed() {
        let awake = || {
            let count = Arc::new(AtomicU64::new(0));
            let put = |count: &mut Arc<AtomicU64>, _| count.fetch_add(1, Relaxed) < u64::MAX;
            let take = |count: &mut Arc<AtomicU64>| {
                while count.load(Relaxed) == 0 {
                    std::hint::spin_loop();
                }
                Some(count.fetch_sub(1, Relaxed))
            };
            (vec![(count.clone(), put)], vec![(count, take)])
        };
        let mut readings = (0..200).map(|_| idle(awake(), &SETTING).expect("it comes to its end").values[0]);
        assert!(readings.any(|percent| percent > 2.0));
    }
}
