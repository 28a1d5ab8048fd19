//! Why a message was not pushed.

use crate::end::wait::Ended;
use core::fmt;

/// Why a message was not pushed, or no room for it reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError {
    /// The limit leaves no room for it now. The consumer may make room at any time.
    Full,
    /// The limit still left no room for it when the time was up.
    Timeout,
    /// More than the limit leaves in an empty queue, or than half of what addresses reach.
    TooLarge,
    /// The allocator refused the memory.
    NoMemory,
    /// The consumer is gone or has closed the queue: no later push will succeed.
    Closed,
}

crate::error::without_item!(PushError {
    Full: "the queue has no room for the message",
    Timeout: "the queue had no room for the message when the time was up",
    TooLarge: "the message is larger than the queue's limit, or than any memory",
    NoMemory: "there is not enough memory for the message",
    Closed: "the queue is closed",
});

impl From<Ended> for PushError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Closed => Self::Closed,
            Ended::Timeout => Self::Timeout,
        }
    }
}

/// Why [`Producer::push_batch`](super::Producer::push_batch) did not push all messages, and how many it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PushBatchError {
    /// The messages that were pushed: the first ones.
    pub pushed: usize,
    /// Why the next one was not: `TooLarge`, `NoMemory` or `Closed`.
    pub reason: PushError,
}

impl fmt::Display for PushBatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; messages pushed before: {}", self.reason, self.pushed)
    }
}

impl core::error::Error for PushBatchError {}
