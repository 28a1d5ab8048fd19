//! Threads that meet in pairs and swap items.

use super::reading::{Outcome, Reading};
use crate::rig::{self, Stop, Work};
use crate::setting::Setting;
use crate::topology::Cpu;
use corelane::handoff::Exchanger;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How many swaps a thread makes before it adds them to the shared count.
const GRAIN: u64 = 32;

/// The sum a thread gave, the sum it got, and how many swaps it made.
#[derive(Clone, Copy, Debug, Default)]
struct Swaps {
    given: u64,
    got: u64,
    count: u64,
}

/// Lets threads swap numbers with any partner they meet. The thread that sees enough swaps closes the exchanger, so
/// that no thread waits for a partner that never comes. The count is of meetings, of two swaps each.
pub(crate) fn exchange(setting: &Setting, threads: usize) -> Outcome {
    let exchanger = Arc::new(Exchanger::new());
    let enough = 2 * setting.count_up_to(u64::MAX);
    let all = Arc::new(AtomicU64::new(0));
    let mut work: Vec<(Option<Cpu>, Work<Swaps>)> = Vec::new();
    for thread in 0..threads as u64 {
        let (exchanger, all) = (exchanger.clone(), all.clone());
        let swap: Work<Swaps> = Box::new(move |side| {
            let (exchanger, all) = (&*exchanger, &*all);
            let mut swaps = Swaps::default();
            side.start()?;
            for item in thread << 32.. {
                let Ok(theirs) = exchanger.exchange(item) else { break };
                swaps = Swaps {
                    given: swaps.given.wrapping_add(item),
                    got: swaps.got.wrapping_add(theirs),
                    count: swaps.count + 1,
                };
                if swaps.count.is_multiple_of(GRAIN) && all.fetch_add(GRAIN, Relaxed) + GRAIN >= enough {
                    exchanger.close();
                }
            }
            side.stop();
            Ok(swaps)
        });
        work.push((setting.cpus[thread as usize % 2], swap));
    }
    let (swaps, took) = rig::run(setting, work)?;
    let sum = |value: fn(&Swaps) -> u64| swaps.iter().map(value).fold(0, u64::wrapping_add);
    let (put, taken) = (sum(|swaps| swaps.given), sum(|swaps| swaps.got));
    if put != taken {
        return Err(Stop::WrongSum { put, taken }.into());
    }
    Ok(Reading::new(sum(|swaps| swaps.count) / 2, took))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn all_swaps_are_made_whatever_the_number_of_threads() {
        for threads in [2, 3, 8] {
            let setting =
                Setting { cpus: [None; 2], bound: Duration::from_secs(1), count: 500, counting: false, quick: false };
            let reading = exchange(&setting, threads).expect("it comes to its end");
            assert!(reading.items >= 500 && reading.items <= 500 + GRAIN * threads as u64, "{}", reading.items);
        }
    }
}
