//! Why a message was not pushed.

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

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full => "the queue has no room for the message: try again, or use a call that waits",
            Self::Timeout => "the queue had no room for the message when the time was up: try again, or wait longer",
            Self::TooLarge => "the message is larger than the queue's limit: split it, or raise the limit",
            Self::NoMemory => "there is not enough memory for the message: try again when some is free",
            Self::Closed => "the queue is closed for good: stop pushing, or make a new one",
        })
    }
}

impl core::error::Error for PushError {}

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
        write!(f, "only the first {} messages were pushed: {}", self.pushed, self.reason)
    }
}

impl core::error::Error for PushBatchError {}
