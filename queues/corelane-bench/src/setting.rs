//! The settings that every measurement gets.

use crate::topology::Cpu;
use std::time::Duration;

/// Where and how a measurement runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The CPUs of the producer and the consumer, if they are pinned.
    pub(crate) cpus: [Option<Cpu>; 2],
    /// If nothing moves for this long, the measurement hangs.
    pub(crate) bound: Duration,
    /// How many items, round trips or packets the measurement counts.
    pub(crate) count: u64,
    /// Whether to read hardware counters.
    pub(crate) counting: bool,
    /// The run only checks that the measurement works.
    pub(crate) quick: bool,
}

/// How much threads hand over if the run only checks that the measurement works.
const MOST_QUICK: u64 = 256;

impl Setting {
    /// How much goes through before the clock starts: nothing to speak of in a run that only checks.
    pub(crate) fn warm(&self, much: u64) -> u64 {
        if self.quick { much.min(10) } else { much }
    }

    /// The count, but at most `most`, and few if the run only checks that the measurement works.
    pub(crate) fn count_up_to(&self, most: u64) -> u64 {
        self.count.min(if self.quick { MOST_QUICK } else { most })
    }
}
