//! The queued tasks, and how many threads look for them. The [queue](crate::queue) says how these counts change.

use crate::chunks::Chunks;
use crate::settings::Queueing;

/// Protected by the pool's lock. Fields that every push changes come first, so they share one line with the lock.
#[repr(C)]
pub(crate) struct Backlog {
    /// Tasks pushed so far, minus those taken back.
    pub(crate) accepted: u64,
    /// `accepted` may rise to this value, by the last sum of the tasks begun.
    pub(crate) limit: u64,
    /// Threads that search, or are being woken to search.
    pub(crate) searching: u32,
    /// Threads that wait in the synchronous queue, or that have woken up and not yet uncounted themselves.
    pub(crate) sleeping: u32,
    pub(crate) tasks: Chunks,
    pub(crate) capacity: u64,
}

impl Backlog {
    pub(crate) fn new(queueing: Queueing) -> Self {
        let capacity = match queueing {
            Queueing::Bounded(capacity) => capacity as u64,
            Queueing::Unbounded | Queueing::HandOff(_) => u64::MAX,
        };
        let tasks = Chunks::new(queueing.queues());
        Self { accepted: 0, limit: capacity, searching: 0, sleeping: 0, tasks, capacity }
    }
}
