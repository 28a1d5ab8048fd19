//! Events as lines of text, each with its place in the order of all.

use std::sync::{Mutex, PoisonError};

/// Where an event stands among all: by the number of the packet, or of the mark before it, then by partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

impl Key {
    /// What the mark before a packet brings about.
    pub(super) fn mark(number: u64, partition: u8) -> Self {
        Key(number << 9 | u64::from(partition))
    }

    /// What a packet brings about.
    pub(super) fn packet(number: u64, partition: u8) -> Self {
        Key(number << 9 | 1 << 8 | u64::from(partition))
    }

    /// The number of the packet, or of the one that the mark is before.
    pub(super) fn number(self) -> u64 {
        self.0 >> 9
    }

    /// The number of the packet; a mark is none.
    pub(super) fn packet_number(self) -> Option<u64> {
        (self.0 >> 8 & 1 == 1).then(|| self.number())
    }
}

/// Lines that are out, for their memory: one freed in this size makes the allocator tidy up all small blocks.
#[derive(Debug, Default)]
pub(super) struct Spares(Mutex<Vec<Lines>>);

impl Spares {
    /// As many as are on their way at a time, where the stages are in step.
    const MOST: usize = 64;

    /// Empty lines, with memory if there is any to spare.
    pub(super) fn take(&self) -> Lines {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps the memory of these.
    pub(super) fn put(&self, mut lines: Lines) {
        lines.text.clear();
        lines.ends.clear();
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spares.len() < Self::MOST {
            spares.push(lines);
        }
    }
}

/// Lines in the order of their keys.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    text: Vec<u8>,
    /// The key of each line, and where it ends.
    ends: Vec<(Key, usize)>,
}

impl Lines {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of text.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends what `write` writes as one line.
    pub(super) fn push(&mut self, key: Key, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.ends.last().is_none_or(|&(last, _)| last <= key), "keys ascend");
        write(&mut self.text);
        self.ends.push((key, self.text.len()));
    }

    /// The key of a line.
    pub(super) fn key(&self, line: usize) -> Option<Key> {
        self.ends.get(line).map(|&(key, _)| key)
    }

    /// The bytes of lines in a row.
    pub(super) fn bytes(&self, from: usize, to: usize) -> &[u8] {
        let end = |line: usize| if line == 0 { 0 } else { self.ends[line - 1].1 };
        &self.text[end(from)..end(to)]
    }
}
