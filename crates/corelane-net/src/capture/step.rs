//! What the formats tell the reader: how far a walk over its window has come, and why no farther.

use super::error::{Part, SkipReason};

/// What one walk over a window of the input did.
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
    /// As many records as were asked for.
    Full,
    /// What follows is whole only with this many bytes.
    Short { part: Part, needed: usize },
    /// A length that no record can have.
    TooLong { length: u32, limit: u32 },
    /// Nothing says where the next record starts.
    Damaged(&'static str),
    /// One record is not usable; the next one starts after so many bytes.
    Skip { reason: SkipReason, bytes: usize },
}

/// No record or block of a capture is longer than this: it has to fit into memory.
pub(super) const LONGEST: u32 = 16 << 20;
