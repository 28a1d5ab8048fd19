//! What is queued, and how many threads look for it. The [queue](crate::queue) says how it changes.

use crate::chunks::Chunks;
use crate::settings::Queueing;

/// Under the pool's lock. What every push changes comes first: with the lock it is one line.
#[repr(C)]
pub(crate) struct Backlog {
    /// Tasks pushed so far, less those taken back.
    pub(crate) accepted: u64,
    /// As many may have been pushed, by the last sum of those begun.
    pub(crate) limit: u64,
    /// Threads that search, or are being woken for it.
    pub(crate) searching: u32,
    /// Threads that wait in the synchronous queue, or have got up and not said so yet.
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
