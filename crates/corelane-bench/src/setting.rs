//! What every measurement is told.

use crate::topology::Cpu;
use std::time::Duration;

/// Where and how a measurement runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The producer's CPU and the consumer's, if they are to be pinned.
    pub(crate) cpus: [Option<Cpu>; 2],
    /// Nothing moving for so long is a hang.
    pub(crate) bound: Duration,
    /// Items, round trips, packets: what the measurement counts.
    pub(crate) count: u64,
    /// Whether to read hardware counters.
    pub(crate) counting: bool,
    /// Only to see that it runs.
    pub(crate) quick: bool,
}

/// What threads hand over where it is only to be seen that it runs.
const MOST_QUICK: u64 = 256;

impl Setting {
    /// The count, but no more than `most`, and few if it is only to be seen that it runs.
    pub(crate) fn count_up_to(&self, most: u64) -> u64 {
        self.count.min(if self.quick { MOST_QUICK } else { most })
    }
}
