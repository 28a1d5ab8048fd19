//! The result of a format's walk over the window: how far it has come, and why it stopped.

use super::error::{Part, SkipReason};

/// The result of one walk over a window of the input.
#[derive(Debug)]
pub(super) struct Step {
    /// Bytes of the window that are done with.
    pub(super) used: usize,
    /// Records handed over.
    pub(super) records: usize,
    /// Why it stopped.
    pub(super) stop: Stop,
}

/// Why a walk over a window stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// It has handed over `max` records.
    Full,
    /// The next part is whole only with this many bytes.
    Short { part: Part, needed: usize },
    /// A length that no record can have.
    TooLong { length: u32, limit: u32 },
    /// The start of the next record cannot be found.
    Damaged(&'static str),
    /// One record is unusable; the next one starts after so many bytes.
    Skip { reason: SkipReason, bytes: usize },
}

/// No record or block of a capture is longer than this: it has to fit into memory.
pub(super) const LONGEST: u32 = 16 << 20;
