//! The result of a format's walk over the window: how far it has come, and why it stopped.

use super::error::{Part, SkipReason};
use super::record::{LinkType, Record};

/// Where a record lies in the window that it was found in, and its facts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    time_ns: u64,
    at: usize,
    length: u32,
    wire_len: u32,
    link: LinkType,
}

impl Found {
    /// The place of a record whose bytes are in the window.
    #[inline(always)]
    pub(super) fn new(window: &[u8], record: Record<'_>) -> Self {
        let Record { time_ns, wire_len, link, data } = record;
        let at = data.as_ptr().addr() - window.as_ptr().addr();
        // No record is longer than `LONGEST`.
        Self { time_ns, at, length: data.len() as u32, wire_len, link }
    }

    #[inline(always)]
    pub(super) fn record(self, window: &[u8]) -> Record<'_> {
        let Self { time_ns, at, length, wire_len, link } = self;
        Record { time_ns, wire_len, link, data: &window[at..at + length as usize] }
    }
}

/// The result of one walk over a window of the input.
#[derive(Debug)]
pub(super) struct Step {
    /// Bytes of the window that are done with.
    pub(super) used: usize,
    /// Records found.
    pub(super) records: usize,
    /// Why it stopped.
    pub(super) stop: Stop,
}

/// Why a walk over a window stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// It has found `max` records.
    Full,
    /// The next part is whole only with this many bytes.
    Short { part: Part, needed: usize },
    /// A length that no record can have.
    TooLong { length: u32, limit: u32 },
    /// The start of the next record cannot be found.
    Damaged(&'static str),
    /// One record is unusable; the next one starts after this many bytes.
    Skip { reason: SkipReason, bytes: usize },
}

/// No record or block of a capture is longer than this: it has to fit into memory.
pub(super) const LONGEST: u32 = 16 << 20;
