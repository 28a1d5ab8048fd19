//! Events as lines of text, each with its place in the order of all.

use std::sync::{Mutex, PoisonError};

/// Where an event stands among all: by the number of the packet, or of the mark before it; for a mark by the step at
/// whose end it was due, if time passes in steps; then by partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The number, and 1 for a packet in the lowest bit.
    at: u64,
    /// The step and, in the lowest byte, the partition.
    within: u64,
}

impl Key {
    /// Behind all others.
    pub(super) const END: Key = Key { at: u64::MAX, within: u64::MAX };

    /// What the mark before a packet brings about.
    pub(super) fn mark(number: u64, step: u64, partition: u8) -> Self {
        Key { at: number << 1, within: step << 8 | u64::from(partition) }
    }

    /// What a packet brings about.
    pub(super) fn packet(number: u64, partition: u8) -> Self {
        Key { at: number << 1 | 1, within: partition.into() }
    }

    /// The number of the packet, or of the one that the mark is before.
    pub(super) fn number(self) -> u64 {
        self.at >> 1
    }

    /// Whether it is what a mark brings about.
    pub(super) fn is_of_mark(self) -> bool {
        self.at & 1 == 0
    }

    /// The number of the packet; a mark is none.
    pub(super) fn packet_number(self) -> Option<u64> {
        (self.at & 1 == 1).then(|| self.number())
    }
}

/// Lines that are out, kept for their memory. Blocks of this size that come and go are what many allocators tidy up
/// for, the small blocks beside them included.
#[derive(Debug, Default)]
pub(super) struct Spares(Mutex<Vec<Lines>>);

impl Spares {
    /// How many are kept: more than are on their way where the stages are in step.
    const MOST: usize = 32;
    /// The most bytes of one that is kept. Many conversations that end at once make longer ones.
    const MOST_BYTES: usize = 256 << 10;

    /// Empty lines, with memory if there is any to spare.
    pub(super) fn take(&self) -> Lines {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps the memory of these.
    pub(super) fn put(&self, mut lines: Lines) {
        let bytes = lines.text.capacity() + lines.ends.capacity() * size_of::<(Key, usize)>();
        if bytes > Self::MOST_BYTES {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: usize) -> Lines {
        let mut lines = Lines::default();
        lines.push(Key::packet(1, 0), |text| text.resize(bytes, b'x'));
        lines
    }

    /// What many conversations leave that end at once would be kept until the run is over.
    #[test]
    fn spares_are_few_and_short() {
        let spares = Spares::default();
        spares.put(of(Spares::MOST_BYTES));
        assert_eq!(spares.take().text.capacity(), 0);
        (0..Spares::MOST + 1).for_each(|_| spares.put(of(100)));
        for _ in 0..Spares::MOST {
            let lines = spares.take();
            assert!(lines.is_empty() && lines.text.is_empty() && lines.text.capacity() >= 100);
        }
        assert_eq!(spares.take().text.capacity(), 0);
    }
}
