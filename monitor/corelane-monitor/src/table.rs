//! Open addressing with linear probing, entries inline: the table behind the attempts.
//!
//! 1. A position is the upper bits of the keyed hash, so growing moves entries in the order they lie in memory.
//! 2. An entry is one aligned block, a cache line or half of it. Most keys lie at their home position, and finding one
//!    of those touches one line, which [`Table::prefetch`] can fetch ahead.
//! 3. At most 9/16 of the positions are taken; then the table doubles. Nothing is allocated before the first key.
//! 4. When an entry is removed, the entries behind it move back into the hole, so there are no tombstones.

use crate::hash::HashKeys;
use crate::huge_pages::Zeroed;
use crate::key::Key;
use crate::run::Run;
use bytemuck::Zeroable;

/// Aligns an entry to 32 bytes.
#[derive(Clone, Copy, Debug, Default, Zeroable)]
#[repr(align(32))]
pub(crate) struct Align32;

/// Aligns an entry to 64 bytes.
#[derive(Clone, Copy, Debug, Default, Zeroable)]
#[repr(align(64))]
pub(crate) struct Align64;

/// One position of a [`Table`]; `A` is one of the alignments above.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C)]
pub(crate) struct Entry<K, V, A> {
    key: K,
    pub(crate) value: V,
    _align: A,
}

impl<K: Key, V, A> Entry<K, V, A> {
    pub(crate) fn key(&self) -> &K {
        &self.key
    }
}

const FIRST_CAPACITY: usize = 8;

/// Its own fields are in one line: every partition has some tables, and a packet looks at those of one partition.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Table<K, V, A> {
    entries: Zeroed<Entry<K, V, A>>,
    /// A hash shifted to the right by this is a position.
    shift: u32,
    len: usize,
    /// The value of keys for which there is no room; `refused` counts how often it was used.
    spilt: V,
    refused: u64,
    /// 0 as long as no entry [had to go](Table::entry_among). Then one more than the keys that are refused before
    /// entries that may go are looked for again.
    patience: u32,
}

impl<K: Key, V: Copy + Default, A: Copy + Default> Default for Table<K, V, A> {
    fn default() -> Self {
        Table { entries: Zeroed::default(), shift: 63, len: 0, spilt: V::default(), refused: 0, patience: 0 }
    }
}

impl<K: Key, V: Copy + Default + Zeroable, A: Copy + Default + Zeroable> Table<K, V, A> {
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline(always)]
    fn next(&self, position: usize) -> usize {
        (position + 1) & (self.entries.len() - 1)
    }

    /// Whether the next new key makes the table grow.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.len >= limit(self.entries.len())
    }

    /// Starts to fetch the line at which the search for a key of this hash begins.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        let home = self.home(hash);
        for position in [home, home + 1] {
            if let Some(entry) = self.entries.get(position) {
                corelane::prefetch_read(entry);
            }
        }
    }

    /// The value of `key`, which starts as the default when the key is new. Where there is [no room](crate::room) for a
    /// new key, the result is a value that is not kept.
    #[inline(always)]
    pub(crate) fn entry(&mut self, run: &Run, key: &K, hash: u64) -> &mut V {
        self.entry_among(run, key, hash, |_| false)
    }

    /// The same. Where there is no room, entries of values that `may_go` leave.
    #[inline(always)]
    pub(crate) fn entry_among(&mut self, run: &Run, key: &K, hash: u64, may_go: impl Fn(&V) -> bool) -> &mut V {
        let mut position = self.home(hash);
        loop {
            match self.entries.get(position) {
                Some(entry) if entry.key.equals(key) => break,
                Some(entry) if !entry.key.is_empty() => position = self.next(position),
                _ if !self.is_full() => {
                    self.len += 1;
                    self.entries[position].key = *key;
                    break;
                }
                _ => {
                    if !self.grow(run, &may_go) {
                        return &mut self.spilt;
                    }
                    position = self.home(hash);
                }
            }
        }
        &mut self.entries[position].value
    }

    /// The position of `key`, if the table has it.
    #[inline(always)]
    pub(crate) fn find(&self, key: &K, hash: u64) -> Option<usize> {
        let mut position = self.home(hash);
        loop {
            let entry = self.entries.get(position)?;
            if entry.key.equals(key) {
                return Some(position);
            }
            if entry.key.is_empty() {
                return None;
            }
            position = self.next(position);
        }
    }

    #[inline(always)]
    pub(crate) fn value_at(&mut self, position: usize) -> &mut V {
        &mut self.entries[position].value
    }

    pub(crate) fn remove_at(&mut self, keys: &HashKeys, position: usize) {
        let mask = self.entries.len() - 1;
        let mut hole = position;
        let mut at = position;
        loop {
            at = self.next(at);
            let entry = self.entries[at];
            if entry.key.is_empty() {
                break;
            }
            // An entry may move back into the hole unless its home lies behind the hole.
            let home = self.home(entry.key.hash(keys));
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = Self::empty();
        self.len -= 1;
    }

    /// The number of positions.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The entries in an order that differs from run to run.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<K, V, A>> {
        self.entries.iter().filter(|entry| !entry.key.is_empty())
    }

    fn empty() -> Entry<K, V, A> {
        Entry { key: K::EMPTY, value: V::default(), _align: A::default() }
    }

    /// Whether entries may have gone for want of room.
    pub(crate) fn may_lack(&self) -> bool {
        self.patience > 0
    }

    /// How often there was no room for a key.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Doubles the table if there is room for that, or drops what may go; says whether there is a place now.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, run: &Run, may_go: &impl Fn(&V) -> bool) -> bool {
        let capacity = (self.entries.len() * 2).max(FIRST_CAPACITY);
        if !run.room.has_table(capacity, size_of::<Entry<K, V, A>>()) {
            let (before, few) = (self.len, (self.entries.len() / 16) as u32);
            if self.patience <= 1 {
                self.sieve(&run.keys, |value| !may_go(value));
                self.patience = if before - self.len < few as usize { few + 1 } else { 1 };
            }
            if self.len < before {
                return true;
            }
            self.patience = (self.patience - 1).max(1);
            self.spilt = V::default();
            self.refused += 1;
            return false;
        }
        self.rebuild(run, capacity, |_| true);
        true
    }

    /// Keeps the entries of these values, in a table of this capacity, a power of two.
    fn rebuild(&mut self, run: &Run, capacity: usize, keep: impl Fn(&V) -> bool) {
        if capacity == self.entries.len() {
            return self.sieve(&run.keys, keep);
        }
        let old = std::mem::replace(&mut self.entries, Zeroed::new(&run.pool, capacity));
        self.shift = 64 - capacity.ilog2();
        self.len = 0;
        for entry in old.iter().filter(|entry| !entry.key.is_empty() && keep(&entry.value)) {
            let mut position = self.home(entry.key.hash(&run.keys));
            while !self.entries[position].key.is_empty() {
                position = self.next(position);
            }
            self.entries[position] = *entry;
            self.len += 1;
        }
    }

    /// Keeps the entries of these values where they are, or closer to their homes. The table is large, and out of the
    /// caches: so it is walked once, and no other memory is touched.
    fn sieve(&mut self, keys: &HashKeys, keep: impl Fn(&V) -> bool) {
        // Behind an empty position no entry has its home in front of it.
        let start = self.entries.iter().position(|entry| entry.key.is_empty()).unwrap_or(0);
        let mut at = start;
        let mut has_hole = false;
        self.len = 0;
        for _ in 1..self.entries.len() {
            at = self.next(at);
            let entry = self.entries[at];
            if entry.key.is_empty() {
                has_hole = false;
                continue;
            }
            if !keep(&entry.value) {
                self.entries[at] = Self::empty();
                has_hole = true;
                continue;
            }
            self.len += 1;
            if !has_hole {
                continue;
            }
            let mut position = self.home(entry.key.hash(keys));
            while position != at && !self.entries[position].key.is_empty() {
                position = self.next(position);
            }
            if position != at {
                self.entries[at] = Self::empty();
                self.entries[position] = entry;
            }
        }
    }

    /// Keeps the entries of these values. Memory that was for many more is given back.
    pub(crate) fn retain(&mut self, run: &Run, keep: impl Fn(&V) -> bool) {
        self.sieve(&run.keys, keep);
        let capacity = fitting(self.len, usize::MAX);
        if capacity < self.entries.len() {
            self.rebuild(run, capacity, |_| true);
        }
    }

    /// Makes room for new keys in a table of values that get old: when it is full, or larger than it may be by now,
    /// those that are over leave it. If the others nearly fill a table of the largest capacity, half of them leave it
    /// too, the oldest, or as many as it has no room for, and `evicted` gets them. Which those are depends on the
    /// values alone, but not their order. Returns their number.
    #[inline]
    pub(crate) fn renew(
        &mut self,
        run: &Run,
        largest: usize,
        is_over: impl Fn(&V) -> bool,
        time: impl Fn(&V) -> u64,
        evicted: impl FnMut(&K, &V),
    ) -> u64 {
        let has_room = !self.is_full() && self.entries.len() <= largest;
        if has_room { 0 } else { self.sweep(run, largest, is_over, time, evicted) }
    }

    #[cold]
    #[inline(never)]
    fn sweep(
        &mut self,
        run: &Run,
        largest: usize,
        is_over: impl Fn(&V) -> bool,
        time: impl Fn(&V) -> u64,
        mut evicted: impl FnMut(&K, &V),
    ) -> u64 {
        self.sieve(&run.keys, |value| !is_over(value));
        let len = self.len;
        let capacity = fitting(len, largest);
        let (mut since, mut count) = (0, 0);
        if len > limit(capacity) / 4 * 3 {
            let times: Vec<u64> = self.iter().map(|entry| time(&entry.value)).collect();
            let before = |since: u64| times.iter().filter(|&&time| time < since).count();
            let least = (len / 4).max(len.saturating_sub(limit(capacity) / 4 * 3));
            since = smallest(&times, least.max(len / 2));
            // Many may have one time.
            if before(since) < least {
                since = since.saturating_add(1);
            }
            count = before(since) as u64;
            let old = self.iter().filter(|entry| time(&entry.value) < since);
            old.for_each(|entry| evicted(&entry.key, &entry.value));
        }
        if count > 0 || capacity != self.entries.len() {
            self.rebuild(run, capacity, |value| time(value) >= since);
        }
        count
    }
}

/// The time that has so many of these before it, or at it.
fn smallest(times: &[u64], number: usize) -> u64 {
    *times.to_vec().select_nth_unstable(number).1
}

/// The capacity, up to the largest, of a table that has so many entries and will have more.
fn fitting(len: usize, largest: usize) -> usize {
    let mut capacity = FIRST_CAPACITY;
    while capacity < largest && limit(capacity) < 2 * len {
        capacity *= 2;
    }
    capacity
}

/// The most entries of a table of this capacity.
pub(crate) fn limit(capacity: usize) -> usize {
    capacity / 16 * 9 + capacity % 16 * 9 / 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn behaves_like_a_map_through_growth_and_removal() {
        let run = Run::new();
        let keys = run.keys;
        let mut table: Table<[u64; 2], u64, Align32> = Table::default();
        let mut model: HashMap<[u64; 2], u64> = HashMap::new();
        let mut state = 1_u64;
        for step in 0..200_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = [(state >> 33) % 5_000, 1 + (state >> 20) % 2];
            let hash = key.hash(&keys);
            if state >> 63 == 0 {
                *table.entry(&run, &key, hash) += step;
                *model.entry(key).or_default() += step;
            } else if let Some(position) = table.find(&key, hash) {
                assert_eq!(model.remove(&key), Some(*table.value_at(position)));
                table.remove_at(&keys, position);
            } else {
                assert!(!model.contains_key(&key));
            }
            assert_eq!(table.len(), model.len());
        }
        let mut left: Vec<_> = table.iter().map(|entry| (*entry.key(), entry.value)).collect();
        let mut expected: Vec<_> = model.into_iter().collect();
        left.sort_unstable();
        expected.sort_unstable();
        assert!(!left.is_empty());
        assert_eq!(left, expected);
    }

    #[test]
    fn an_empty_table_finds_nothing_and_holds_no_memory() {
        let table: Table<[u64; 5], u64, Align64> = Table::default();
        assert_eq!(table.find(&[1; 5], u64::MAX), None);
        table.prefetch(u64::MAX);
        assert!(table.entries.is_empty());
    }

    /// Adds keys, each with its time as its value, as a table of values that get old is used. Returns how many left it
    /// before they were over, and what is left of the others, in order.
    fn renewed(run: &Run, largest: usize, keys: u64, now: impl Fn(u64) -> u64, lasts: u64) -> (u64, Vec<(u64, u64)>) {
        let mut table: Table<[u64; 2], u64, Align32> = Table::default();
        let mut evicted = 0;
        for number in 1..=keys {
            let time = now(number);
            evicted += table.renew(run, largest, |&then| time.saturating_sub(then) > lasts, |&then| then, |_, _| {});
            let key = [number, 1];
            *table.entry(run, &key, key.hash(&run.keys)) = time;
            assert!(table.entries.len() <= largest.max(FIRST_CAPACITY) && table.refused() == 0);
            assert_eq!(table.find(&key, key.hash(&run.keys)).map(|position| *table.value_at(position)), Some(time));
        }
        let mut left: Vec<_> = table.iter().map(|entry| (entry.key()[0], entry.value)).collect();
        left.sort_unstable();
        (evicted, left)
    }

    #[test]
    fn a_table_that_gets_old_keeps_what_is_not_over_and_grows_no_further() {
        let run = Run::new();
        let (evicted, left) = renewed(&run, 1 << 40, 100_000, |number| number, 1000);
        assert_eq!(evicted, 0);
        let young = |time: u64| 100_000 - time <= 1000;
        assert_eq!(left.iter().filter(|&&(_, time)| young(time)).count(), 1001, "none of them is missing");
        assert!(left.len() < 5000, "{}: what is over leaves a full table", left.len());
    }

    #[test]
    fn a_table_that_gets_old_shrinks_when_it_is_full_of_what_is_over() {
        let run = Run::new();
        let mut table: Table<[u64; 2], u64, Align32> = Table::default();
        let mut capacities = Vec::new();
        // Many at once; then few, of which each is over when the next comes.
        for number in 1..=200_000_u64 {
            let time = number.saturating_sub(50_000);
            table.renew(&run, 1 << 40, |&then| then < time, |&then| then, |_, _| {});
            let key = [number, 1];
            *table.entry(&run, &key, key.hash(&run.keys)) = time;
            capacities.push(table.entries.len());
        }
        assert!(
            capacities[49_999] >= 1 << 16 && capacities[199_999] <= 64,
            "{} {}",
            capacities[49_999],
            capacities[199_999]
        );
    }

    #[test]
    fn the_oldest_leave_a_full_table_whatever_the_keys_of_its_hash() {
        for (largest, of_one_time) in [(8, 1), (64, 1), (64, 10), (1024, 7), (1024, 200), (256, 100_000)] {
            // Times that do not come in order.
            let now = |number: u64| (number ^ 5) / of_one_time + 1_000_000;
            let first = renewed(&Run::new(), largest, 20_000, now, u64::MAX);
            let (evicted, left) = &first;
            assert_eq!(evicted + left.len() as u64, 20_000, "each is there or was counted");
            assert!(left.len() <= limit(largest));
            for _ in 0..3 {
                assert_eq!(renewed(&Run::new(), largest, 20_000, now, u64::MAX), first, "{largest}");
            }
        }
    }

    #[test]
    fn about_half_of_a_full_table_leaves_it_and_none_that_is_younger_than_one_that_stays() {
        let run = Run::new();
        let largest = 1024;
        for of_one_time in [1, 3, 50, 400] {
            let mut table: Table<[u64; 2], u64, Align32> = Table::default();
            for number in 1..=limit(largest) as u64 {
                table.renew(&run, largest, |_| false, |&then| then, |_, _| {});
                let key = [number, 1];
                *table.entry(&run, &key, key.hash(&run.keys)) = number / of_one_time;
            }
            let before = table.len();
            let evicted = table.renew(&run, largest, |_| false, |&then| then, |_, _| {});
            assert_eq!(before as u64, evicted + table.len() as u64);
            assert!(evicted >= before as u64 / 4, "{of_one_time}: {evicted}");
            assert!(of_one_time > 50 || evicted <= before as u64 * 3 / 4, "{of_one_time}: {evicted}");
            // Numbers ascend with times, so those that stay are the last.
            let least = table.iter().map(|entry| entry.key()[0]).min().unwrap_or(before as u64 + 1);
            assert_eq!(before as u64 + 1 - least, table.len() as u64, "{of_one_time}");
        }
    }
}
