//! The flow table: one entry for each bidirectional (protocol, address and port, address and port).
//!
//! Flows lie side by side, in segments, in the order in which they began. An index of 4-byte words, an open-addressing
//! hash table with linear probing, maps a flow's hash to its number.
//!
//! 1. A word has 1 + the flow's number in its lower bits. The other bits hold those bits of the flow's hash that are
//!    not its position. The word 0 is empty. So most words that do not match are rejected without a look at the flow,
//!    and sixteen words lie in one cache line.
//! 2. A position is the upper bits of the hash. At most a quarter of the positions are taken.
//! 3. A packet needs one line of the index and one of the flows. Both can be fetched ahead: the first by
//!    [`FlowTable::prefetch`], and the second, when the rest of the batch has had its turn, by [`FlowTable::look`].
//!
//! A table holds at most 2^29 flows, which is 24 GiB for IPv4; one more flow panics.
//!
//! An index costs a second line for each packet, against entries inside the hash table. It saves the empty entries,
//! which take as much memory and as many page faults as taken ones, and the moves of whole entries when the table
//! grows. The saving decides, since a virtual machine may be slow to hand out new memory (`docs/benchmarks.md`). For
//! the same reason a flow is as small as possible.

use crate::huge_pages::{Pool, Zeroed};
use crate::key::{Key, flow_hash};
use crate::run::Run;
use bytemuck::Zeroable;

/// The counts of a flow. All zero is a flow without packets, so that a new entry needs no special case.
#[derive(Clone, Copy, Debug, Default, Zeroable)]
pub(crate) struct Flow {
    /// Packets; the uppermost three bits are [`Flow::beginning`].
    packets: u64,
    pub(crate) bytes: u64,
}

/// The shift of the beginning, in the word of the packets.
const BEGINNING: u32 = u64::BITS - 3;

impl Flow {
    #[inline(always)]
    pub(crate) fn add(&mut self, wire_len: u32) {
        self.packets += 1;
        self.bytes += u64::from(wire_len);
    }

    #[inline(always)]
    pub(crate) fn packets(&self) -> u64 {
        self.packets & ((1 << BEGINNING) - 1)
    }

    /// The note that [`probes`](super::probes) keeps in the flow: 0 to 7.
    #[inline(always)]
    pub(crate) fn beginning(&self) -> u64 {
        self.packets >> BEGINNING
    }

    #[inline(always)]
    pub(crate) fn set_beginning(&mut self, beginning: u64) {
        self.packets = self.packets() | beginning << BEGINNING;
    }
}

/// A flow and its key; `A` aligns it so that it lies in one cache line.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C)]
pub(crate) struct Entry<K, A> {
    pub(crate) key: K,
    pub(crate) flow: Flow,
    align: A,
}

#[derive(Debug)]
pub(crate) struct FlowTable<K, A> {
    index: Zeroed<u32>,
    /// The number of bits of a hash that are not its position.
    shift: u32,
    /// The mask of the bits of a word that hold a number.
    numbers: u32,
    /// All segments but the first have [`SEGMENT`] entries, so that no entry of theirs is ever moved. The first begins
    /// small, and is moved when it grows.
    segments: Vec<Zeroed<Entry<K, A>>>,
    len: u32,
    /// Counts the packets of flows for which there is no room.
    spilt: Flow,
}

/// Entries of a segment, as a power of two: 32 kB of IPv4 flows.
const SEGMENT_BITS: u32 = 10;
const SEGMENT: usize = 1 << SEGMENT_BITS;
/// Entries of the first segment at first.
const FIRST_SEGMENT: usize = 8;

/// Positions of the first index.
const FIRST_INDEX: usize = 16;

/// The least positions of the index for each flow. With 2 a walk over neighbours is common enough that its branches are
/// mispredicted; with 8 the index falls out of the cache (`docs/benchmarks.md`).
const SPACE: usize = 4;

/// The most flows of a table: its index then has 2^31 positions, and a hash has only one bit more than a position.
const MOST: usize = 1 << 29;

/// The first count of the flow without room: it is past its first packet and, for [`probes`](super::probes), settled.
const SPILT: u64 = 3 << BEGINNING | 1 << 32;

/// The number that means "not in the index"; no flow has it.
const NONE: u32 = u32::MAX;

impl<K, A> Default for FlowTable<K, A> {
    fn default() -> Self {
        FlowTable {
            index: Zeroed::default(),
            shift: 31,
            numbers: 0,
            segments: Vec::new(),
            len: 0,
            spilt: Flow { packets: SPILT, bytes: 0 },
        }
    }
}

impl<K: Key, A: Copy + Default + Zeroable> FlowTable<K, A> {
    /// The position at which the search for a flow begins.
    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    /// The bits of a word beside the number: the rest of the hash.
    #[inline(always)]
    fn tag(&self, hash: u32) -> u32 {
        hash << (32 - self.shift) & !self.numbers
    }

    /// The number in a word; [`NONE`] for an empty word.
    #[inline(always)]
    fn number(&self, word: u32) -> u32 {
        (word & self.numbers).wrapping_sub(1)
    }

    /// Starts to fetch the line of the index at which the search for this hash begins.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u32) {
        if let Some(word) = self.index.get(self.home(hash)) {
            corelane::prefetch_read(word);
        }
    }

    /// The number of the flow that very likely has this hash; starts to fetch its line.
    #[inline(always)]
    pub(crate) fn look(&self, hash: u32) -> u32 {
        let home = self.home(hash);
        let Some(&first) = self.index.get(home) else {
            return NONE;
        };
        let tag = self.tag(hash);
        let mut position = (home + 1) & (self.index.len() - 1);
        let second = self.index[position];
        // A flow is about as likely at its home as right behind it, so a branch would be mispredicted; arithmetic is
        // not.
        let at_home = u32::from((first ^ tag) & !self.numbers == 0).wrapping_neg();
        let mut word = first & at_home | second & !at_home;
        while (word ^ tag) & !self.numbers != 0 {
            if word == 0 || first == 0 {
                return NONE;
            }
            position = (position + 1) & (self.index.len() - 1);
            word = self.index[position];
        }
        let number = self.number(word);
        if let Some(entry) = self.entry(number) {
            corelane::prefetch_read(entry);
        }
        number
    }

    /// The entry of this number; it may be an empty one if there is no such flow.
    #[inline(always)]
    fn entry(&self, number: u32) -> Option<&Entry<K, A>> {
        self.segments.get(number as usize >> SEGMENT_BITS)?.get(number as usize % SEGMENT)
    }

    /// The flow of `key`, which is made with this beginning if there is none. Where there is [no room](crate::room) for
    /// it, the result is a flow that is not kept and not at its beginning. `number` is an earlier result of
    /// [`FlowTable::look`], no matter how old.
    #[inline(always)]
    pub(crate) fn flow(
        &mut self,
        run: &Run,
        key: &K,
        hash: u32,
        number: u32,
        begin: impl FnOnce() -> u64,
    ) -> &mut Flow {
        let number = match self.entry(number) {
            Some(entry) if entry.key.equals(key) => number,
            _ => match self.find_or_insert(run, key, hash, begin()) {
                NONE => return &mut self.spilt,
                number => number,
            },
        };
        &mut self.segments[number as usize >> SEGMENT_BITS][number as usize % SEGMENT].flow
    }

    #[inline(never)]
    fn find_or_insert(&mut self, run: &Run, key: &K, hash: u32, beginning: u64) -> u32 {
        let may_insert = (self.len as usize) < self.index.len() / SPACE || self.grow(run);
        if self.index.is_empty() {
            return NONE;
        }
        let tag = self.tag(hash);
        let mut position = self.home(hash);
        while self.index[position] != 0 {
            let word = self.index[position];
            let number = self.number(word);
            if (word ^ tag) & !self.numbers == 0 && self.entry(number).is_some_and(|entry| entry.key.equals(key)) {
                return number;
            }
            position = (position + 1) & (self.index.len() - 1);
        }
        if !may_insert {
            return NONE;
        }
        let number = self.len;
        self.len += 1;
        self.index[position] = tag | self.len;
        *self.room(&run.pool, number) =
            Entry { key: *key, flow: Flow { packets: beginning << BEGINNING, bytes: 0 }, align: A::default() };
        number
    }

    /// The place of a new entry, which follows the last one.
    fn room(&mut self, pool: &Pool, number: u32) -> &mut Entry<K, A> {
        let (segment, place) = (number as usize >> SEGMENT_BITS, number as usize % SEGMENT);
        if segment == self.segments.len() {
            let length = if segment == 0 { FIRST_SEGMENT } else { SEGMENT };
            self.segments.push(Zeroed::new(pool, length));
        } else if place == self.segments[segment].len() {
            let mut larger = Zeroed::new(pool, place * 2);
            larger[..place].copy_from_slice(&self.segments[segment]);
            self.segments[segment] = larger;
        }
        &mut self.segments[segment][place]
    }

    /// The number of packets of flows for which there was no room.
    pub(crate) fn refused(&self) -> u64 {
        self.spilt.packets - SPILT
    }

    /// Doubles the index if there is room for that; says whether it did.
    #[cold]
    fn grow(&mut self, run: &Run) -> bool {
        let length = (self.index.len() * 2).max(FIRST_INDEX);
        if !run.room.has_flows(length, SPACE, size_of::<Entry<K, A>>()) {
            return false;
        }
        assert!(length <= SPACE * MOST, "a partition has more than 2^29 flows: set a limit of memory");
        self.index = Zeroed::new(&run.pool, length);
        self.shift = 32 - length.ilog2();
        // 1 + a number is at most a quarter of the length, inclusive.
        self.numbers = 2 * (length / SPACE) as u32 - 1;
        for number in 0..self.len {
            let hash =
                flow_hash(&run.keys, &self.segments[number as usize >> SEGMENT_BITS][number as usize % SEGMENT].key);
            let mut position = self.home(hash);
            while self.index[position] != 0 {
                position = (position + 1) & (length - 1);
            }
            self.index[position] = self.tag(hash) | (number + 1);
        }
        true
    }

    /// All flows, in the order in which they began.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry<K, A>> {
        self.segments.iter().flat_map(|segment| &segment[..]).take(self.len())
    }

    /// How many flows there are.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::Room;
    use crate::settings::Settings;
    use crate::table::Align32;
    use std::collections::HashMap;

    #[test]
    fn finds_what_it_was_given_through_growth_whenever_it_looked() {
        let run = Run::new();
        let mut table: FlowTable<[u64; 2], Align32> = FlowTable::default();
        let mut model: HashMap<[u64; 2], u64> = HashMap::new();
        let mut state = 1_u64;
        for _ in 0..2_000 {
            // All looks of a batch come before its updates, as in the analyzer.
            let batch: Vec<_> = (0..64)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let key = [state >> 52, 1 + (state >> 40) % 4];
                    let hash = flow_hash(&run.keys, &key);
                    table.prefetch(hash);
                    (key, hash, table.look(hash))
                })
                .collect();
            for (key, hash, number) in batch {
                table.flow(&run, &key, hash, number, || 0).add(10);
                *model.entry(key).or_default() += 1;
            }
        }
        assert_eq!(table.len(), model.len());
        for entry in table.entries() {
            let packets = entry.flow.packets();
            assert_eq!((Some(&packets), entry.flow.bytes), (model.get(&entry.key), packets * 10));
        }
    }

    #[test]
    fn a_flow_without_room_is_settled_however_often_it_is_met() {
        let settings = Settings { table_bytes: Some(0), ..Settings::default() };
        let run = Run { room: Room::of(&settings), ..Run::new() };
        let mut table: FlowTable<[u64; 2], Align32> = FlowTable::default();
        for key in 1..=5 {
            let flow = table.flow(&run, &[key, 1], 7, NONE, || 1);
            flow.add(10);
            assert!(flow.packets() > 1);
            assert_eq!(flow.beginning(), 3);
        }
        assert_eq!((table.len(), table.refused()), (0, 5));
    }

    #[test]
    fn a_beginning_is_kept_beside_the_packets() {
        let mut flow = Flow::default();
        for beginning in [0, 1, 3, 2] {
            flow.set_beginning(beginning);
            flow.add(10);
            assert_eq!(flow.beginning(), beginning);
        }
        assert_eq!((flow.packets(), flow.bytes), (4, 40));
    }

    #[test]
    fn flows_of_one_hash_are_told_apart_by_key() {
        // No more flows than the first index has room for: a second index would use their true hashes.
        let run = Run::new();
        let mut table: FlowTable<[u64; 2], Align32> = FlowTable::default();
        for key in (1..=3).chain(1..=3) {
            assert_eq!(table.find_or_insert(&run, &[key, 1], 7, 0), key as u32 - 1);
        }
    }
}
