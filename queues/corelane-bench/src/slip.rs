//! Measures FastForward's slip for this machine. That this is necessary is the B-Queue paper's objection to it.

use crate::contenders::{Queue, fast_forward_tuned};
use crate::measure::{Drain, Outcome};
use crate::setting::Setting;
use corelane_papers::fast_forward::Slip;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

/// The name of FastForward with such a slip.
pub(crate) const TUNED: &str = "FastForward, tuned slip";

/// The CPUs, the capacity of a queue, and the number of queues.
type Key = ([Option<usize>; 2], usize, usize);

/// The best of the slips tried for one queue of this capacity on these CPUs.
pub(crate) fn for_one_queue(setting: &Setting, capacity: usize) -> Slip {
    best(setting, capacity, 1, |queue, setting| queue.runs.one_by_one(setting, capacity))
}

/// The best slip for this many queues.
pub(crate) fn for_queues(setting: &Setting, capacity: usize, queues: usize) -> Slip {
    match queues {
        1 => for_one_queue(setting, capacity),
        _ => best(setting, capacity, queues, |queue, setting| {
            queue.words().fan(setting, capacity, queues, Drain::OneThread)
        }),
    }
}

/// Measured once and then stored.
fn best(setting: &Setting, capacity: usize, queues: usize, measure: impl Fn(&Queue<u64>, &Setting) -> Outcome) -> Slip {
    static KNOWN: Mutex<Option<HashMap<Key, Slip>>> = Mutex::new(None);
    let key = (setting.cpus.map(|cpu| cpu.map(|cpu| cpu.0)), capacity, queues);
    let known = |known: &Option<HashMap<Key, Slip>>| known.as_ref()?.get(&key).copied();
    if let Some(slip) = known(&KNOWN.lock().expect("no panic with it locked")) {
        return slip;
    }
    let setting = Setting { count: if setting.quick { 500 } else { 300_000 }, counting: false, ..*setting };
    let mut best: Option<(Duration, Slip)> = None;
    for slip in candidates(setting.quick) {
        if let Ok(reading) = measure(&fast_forward_tuned(slip), &setting)
            && best.is_none_or(|(wall, _)| reading.wall < wall)
        {
            best = Some((reading.wall, slip));
        }
    }
    let slip = best.map_or(Slip::suggested(0, 64), |(_, slip)| slip);
    KNOWN.lock().expect("no panic with it locked").get_or_insert_default().insert(key, slip);
    slip
}

/// Values around FastForward's suggestion of 6 cache lines and 2.
fn candidates(quick: bool) -> Vec<Slip> {
    if quick {
        return vec![Slip::suggested(5, 64), Slip::suggested(20, 64)];
    }
    let mut slips = Vec::new();
    for lines in [3, 6, 16, 32] {
        for avg_time in [2, 5, 10, 20] {
            for interval in [16, 64, 256] {
                slips.push(Slip { good: lines * 8, danger: (lines * 8) / 3, avg_time, interval });
            }
        }
    }
    slips
}
