//! The flow table: one entry for each bidirectional (protocol, address and port, address and port).
//!
//! Flows lie side by side in the order in which they began; an index of 8-byte words, an open-addressing hash table with
//! linear probing, says where.
//!
//! 1. A word is the flow's hash, 32 bits, and in the lower half 1 + its number; 0 is empty. So most words that do not match
//!    are seen not to without a look at the flow, and eight of them lie in one cache line.
//! 2. The upper bits of the hash are the position, so the index grows without looking at any flow. At most a quarter of
//!    the positions are taken.
//! 3. A packet needs one line of the index and one of the flows. Both can be fetched ahead: [`FlowTable::prefetch`],
//!    and when the rest of the batch has had its turn [`FlowTable::look`].
//!
//! Against entries inside the hash table this costs the second line, and gains it back by what is not there: empty
//! entries, which take as much memory and page faults as taken ones, and moves of whole entries when the table grows.
//! A packet in twenty begins a flow, so that is what decides.

use crate::table::Key;

/// What a flow amounts to. All zero is a flow without packets, so that a new entry needs no special case.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// The complement of the least time, of which the largest is kept.
    not_first: u64,
    last: u64,
}

impl Flow {
    #[inline(always)]
    pub(crate) fn add(&mut self, time_ns: u64, wire_len: u32) {
        self.packets += 1;
        self.bytes += u64::from(wire_len);
        self.not_first = self.not_first.max(!time_ns);
        self.last = self.last.max(time_ns);
    }

    /// The least and the largest time of its packets.
    #[cfg(test)]
    pub(crate) fn times(&self) -> (u64, u64) {
        (!self.not_first, self.last)
    }
}

/// A flow and its key; `A` aligns it to whole cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Entry<K, A> {
    pub(crate) key: K,
    pub(crate) flow: Flow,
    align: A,
}

#[derive(Debug)]
pub(crate) struct FlowTable<K, A> {
    index: Box<[u64]>,
    /// What is left of a word of the index after this shift to the right is a position.
    shift: u32,
    entries: Vec<Entry<K, A>>,
}

/// Positions of the first index. A position has at most 32 bits, as a word knows no more of the hash.
const FIRST_INDEX: usize = 16;

/// Positions of the index for each flow, at least. With 2 a walk over neighbours is common enough for its branches to be
/// mispredicted, with 8 the index falls out of the cache: both were measured to cost a tenth of the rate.
const SPACE: usize = 4;

/// Says that the index has no such flow; no flow has this number.
const NONE: u32 = u32::MAX;

impl<K, A> Default for FlowTable<K, A> {
    fn default() -> Self {
        FlowTable { index: Box::default(), shift: 63, entries: Vec::new() }
    }
}

impl<K: Key, A: Copy + Default> FlowTable<K, A> {
    /// Where a word is looked for first.
    #[inline(always)]
    fn home(&self, word: u64) -> usize {
        (word >> self.shift) as usize
    }

    /// Starts to fetch the line of the index where a flow of this hash is looked for.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u32) {
        if let Some(word) = self.index.get(self.home(u64::from(hash) << 32)) {
            corelane::prefetch_read(word);
        }
    }

    /// The number of what is very likely the flow of this hash, whose line it starts to fetch.
    #[inline(always)]
    pub(crate) fn look(&self, hash: u32) -> u32 {
        let hash = u64::from(hash) << 32;
        let home = self.home(hash);
        let Some(&first) = self.index.get(home) else {
            return NONE;
        };
        let mut position = (home + 1) & (self.index.len() - 1);
        let second = self.index[position];
        // A flow at its home and one right behind it are about as likely: choosing by arithmetic is not mispredicted.
        let at_home = u64::from((first ^ hash) >> 32 == 0).wrapping_neg();
        let mut word = first & at_home | second & !at_home;
        while (word ^ hash) >> 32 != 0 {
            if word == 0 || first == 0 {
                return NONE;
            }
            position = (position + 1) & (self.index.len() - 1);
            word = self.index[position];
        }
        let number = (word as u32).wrapping_sub(1);
        if let Some(entry) = self.entries.get(number as usize) {
            corelane::prefetch_read(entry);
        }
        number
    }

    /// The flow of `key`, new if it has to be. `number` is what [`FlowTable::look`] said, no matter how long ago.
    #[inline(always)]
    pub(crate) fn flow(&mut self, key: &K, hash: u32, number: u32) -> &mut Flow {
        let number = match self.entries.get(number as usize) {
            Some(entry) if entry.key.equals(key) => number as usize,
            _ => self.find_or_insert(key, hash),
        };
        &mut self.entries[number].flow
    }

    #[inline(never)]
    fn find_or_insert(&mut self, key: &K, hash: u32) -> usize {
        let hash = u64::from(hash) << 32;
        if self.entries.len() >= self.index.len() / SPACE {
            self.grow();
        }
        let mut position = self.home(hash);
        loop {
            let word = self.index[position];
            if word == 0 {
                break;
            }
            let number = (word as u32 - 1) as usize;
            if (word ^ hash) >> 32 == 0 && self.entries[number].key.equals(key) {
                return number;
            }
            position = (position + 1) & (self.index.len() - 1);
        }
        let number = self.entries.len();
        self.entries.push(Entry { key: *key, flow: Flow::default(), align: A::default() });
        let behind = u32::try_from(number + 1).expect("fewer than 2^32 flows in a partition");
        self.index[position] = hash | u64::from(behind);
        number
    }

    #[cold]
    fn grow(&mut self) {
        let length = (self.index.len() * 2).max(FIRST_INDEX);
        let old = std::mem::replace(&mut self.index, vec![0; length].into_boxed_slice());
        self.shift = 64 - length.ilog2();
        for &word in old.iter().filter(|&&word| word != 0) {
            let mut position = self.home(word);
            while self.index[position] != 0 {
                position = (position + 1) & (length - 1);
            }
            self.index[position] = word;
        }
    }

    /// All flows, in the order in which they began.
    pub(crate) fn entries(&self) -> &[Entry<K, A>] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashKeys;
    use crate::table::Align64;
    use std::collections::HashMap;

    #[test]
    fn finds_what_it_was_given_through_growth_whenever_it_looked() {
        let keys = HashKeys::random();
        let mut table: FlowTable<[u64; 2], Align64> = FlowTable::default();
        let mut model: HashMap<[u64; 2], u64> = HashMap::new();
        let mut state = 1_u64;
        for _ in 0..2_000 {
            // Looks of a whole batch come before its updates, as in the analyzer.
            let batch: Vec<_> = (0..64)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let key = [state >> 52, 1 + (state >> 40) % 4];
                    let hash = (key.hash(&keys) >> 32) as u32;
                    table.prefetch(hash);
                    (key, hash, table.look(hash))
                })
                .collect();
            for (key, hash, number) in batch {
                table.flow(&key, hash, number).add(1, 10);
                *model.entry(key).or_default() += 1;
            }
        }
        assert_eq!(table.entries().len(), model.len());
        for entry in table.entries() {
            assert_eq!((Some(&entry.flow.packets), entry.flow.bytes), (model.get(&entry.key), entry.flow.packets * 10));
        }
    }

    #[test]
    fn hashes_that_agree_in_the_index_are_told_apart_by_key() {
        let mut table: FlowTable<[u64; 2], Align64> = FlowTable::default();
        let numbers: Vec<_> = (1..=40).map(|key| table.find_or_insert(&[key, 1], 7)).collect();
        assert_eq!(numbers, (0..40).collect::<Vec<_>>());
        for key in 1..=40 {
            assert_eq!(table.find_or_insert(&[key, 1], 7), key as usize - 1);
        }
    }
}
