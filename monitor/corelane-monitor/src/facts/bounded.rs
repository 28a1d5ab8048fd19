//! Tables and lists with a bound. What they give up is counted or marked.

use crate::hash::HashKeys;
use corelane::prefetch_read;
use std::borrow::Borrow;
use std::cmp::Reverse;
use std::hash::{BuildHasher, Hash};

/// What decides which entries of a full table stay.
pub(crate) trait Weight {
    fn weight(&self) -> u64;
}

/// A table. When it is full the lighter half goes. An entry that went may come back, without what it was before: so how
/// many different ones went is not known.
///
/// The index is apart from the keys and values, and so small that it says where they are before they are fetched.
///
/// What a search needs of the table itself is in its first line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Bounded<K, V> {
    /// Open addressing with linear probing, at most half full: 0, or a part of the key's hash and its place plus 1.
    index: Box<[u32]>,
    keys: Vec<K>,
    values: Vec<V>,
    hasher: HashKeys,
    most: usize,
    is_cut: bool,
}

/// Bits of a word of the index that say the place of an entry; the others are of its hash.
const PLACE_BITS: u32 = 14;
const FIRST_WORDS: usize = 16;

impl<K: Hash + Ord + Clone, V: Weight + Default> Bounded<K, V> {
    pub(crate) fn new(most: usize, hasher: HashKeys) -> Self {
        // Twice as many are in it while another is added to it.
        assert!(2 * most < 1 << PLACE_BITS);
        Bounded { index: Box::default(), keys: Vec::new(), values: Vec::new(), hasher, most, is_cut: false }
    }

    #[inline]
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Where the search for this hash begins.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash >> 32) as usize & self.index.len().wrapping_sub(1)
    }

    /// The places of entries whose hash has the same part in the index.
    #[inline]
    fn candidates(&self, hash: u64) -> impl Iterator<Item = usize> + '_ {
        let (mut position, mask) = (self.home(hash), self.index.len().wrapping_sub(1));
        std::iter::from_fn(move || {
            loop {
                let word = *self.index.get(position)?;
                if word == 0 {
                    return None;
                }
                position = (position + 1) & mask;
                if (word ^ hash as u32) >> PLACE_BITS == 0 {
                    return Some((word & ((1 << PLACE_BITS) - 1)) as usize - 1);
                }
            }
        })
    }

    #[inline]
    fn find<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        self.candidates(hash).find(|&place| self.keys[place].borrow() == key)
    }

    /// Starts to fetch what says where the entry of this hash is.
    #[inline]
    pub(crate) fn prefetch_index(&self, hash: u64) {
        if let Some(word) = self.index.get(self.home(hash)) {
            prefetch_read(word);
        }
    }

    /// Starts to fetch the entry of this hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(place) = self.candidates(hash).next() {
            prefetch_read(&self.keys[place]);
            prefetch_read(&self.values[place]);
        }
    }

    /// Changes the entry of a key.
    #[inline]
    pub(crate) fn update<Q: Hash + Eq + ?Sized>(
        &mut self,
        key: &Q,
        own: impl FnOnce(&Q) -> K,
        change: impl FnOnce(&mut V),
    ) where
        K: Borrow<Q>,
    {
        self.update_hashed(self.hash(key), key, own, change);
    }

    /// Changes the entry of a key of this hash.
    #[inline]
    pub(crate) fn update_hashed<Q: Eq + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
        own: impl FnOnce(&Q) -> K,
        change: impl FnOnce(&mut V),
    ) where
        K: Borrow<Q>,
    {
        if let Some(place) = self.find(hash, key) {
            return change(&mut self.values[place]);
        }
        if self.values.len() >= self.most {
            self.halve();
        }
        change(self.add(hash, own(key), V::default()));
    }

    /// Adds an entry whose key is not there.
    fn add(&mut self, hash: u64, key: K, value: V) -> &mut V {
        if self.index.len() <= 2 * self.keys.len() {
            self.index_all((2 * self.index.len()).max(FIRST_WORDS));
        }
        self.put(hash, self.keys.len());
        self.keys.push(key);
        self.values.push(value);
        self.values.last_mut().expect("one was added")
    }

    fn put(&mut self, hash: u64, place: usize) {
        let (mut position, mask) = (self.home(hash), self.index.len() - 1);
        while self.index[position] != 0 {
            position = (position + 1) & mask;
        }
        self.index[position] = hash as u32 >> PLACE_BITS << PLACE_BITS | (place + 1) as u32;
    }

    fn index_all(&mut self, words: usize) {
        self.index = vec![0; words].into();
        for place in 0..self.keys.len() {
            self.put(self.hash(&self.keys[place]), place);
        }
    }

    #[cold]
    fn halve(&mut self) {
        let mut order: Vec<_> =
            self.values.iter().zip(&self.keys).map(|(value, key)| (Reverse(value.weight()), key)).collect();
        let keep = self.most / 2;
        // No two are equal, so the hash does not matter.
        let (_, &mut (least, key), _) = order.select_nth_unstable(keep);
        let key = key.clone();
        let mut kept = 0;
        for place in 0..self.keys.len() {
            if (Reverse(self.values[place].weight()), &self.keys[place]) < (least, &key) {
                self.keys.swap(kept, place);
                self.values.swap(kept, place);
                kept += 1;
            }
        }
        self.keys.truncate(kept);
        self.values.truncate(kept);
        self.index_all(self.index.len());
        self.is_cut = true;
    }

    /// Takes all out. What is left is empty, and has no memory.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Bounded::new(self.most, self.hasher);
        std::mem::replace(self, empty)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds those of another one.
    pub(crate) fn merge(&mut self, other: Self, add: impl Fn(&mut V, V)) {
        self.is_cut |= other.is_cut;
        for (key, value) in other.into_entries() {
            let hash = self.hash(&key);
            match self.find(hash, &key) {
                Some(place) => add(&mut self.values[place], value),
                None => _ = self.add(hash, key, value),
            }
        }
        // Only now, as they came in no order.
        if self.values.len() > self.most {
            self.halve();
        }
    }

    /// Whether entries went.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The entries, in no order.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (K, V)> {
        self.keys.into_iter().zip(self.values)
    }
}

/// The first `N` different items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Few<T, const N: usize> {
    items: Vec<T>,
    more: bool,
}

impl<T, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Few::new()
    }
}

impl<T, const N: usize> Few<T, N> {
    pub(crate) const fn new() -> Self {
        Few { items: Vec::new(), more: false }
    }

    /// The items, in the order in which they came.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Whether there were others.
    pub fn has_more(&self) -> bool {
        self.more
    }

    pub(crate) fn add<Q: PartialEq + ?Sized>(&mut self, item: &Q, own: impl FnOnce(&Q) -> T)
    where
        T: Borrow<Q>,
    {
        self.place(item, own);
    }

    /// The place of an item, which is added if it is not there; `None` if there is no room.
    fn place<Q: PartialEq + ?Sized>(&mut self, item: &Q, own: impl FnOnce(&Q) -> T) -> Option<usize>
    where
        T: Borrow<Q>,
    {
        if let Some(place) = self.items.iter().position(|known| known.borrow() == item) {
            return Some(place);
        }
        if self.items.len() >= N {
            self.more = true;
            return None;
        }
        self.items.push(own(item));
        Some(self.items.len() - 1)
    }

    /// Adds those of another list, of whatever length.
    pub(crate) fn merge<const M: usize>(&mut self, other: Few<T, M>)
    where
        T: PartialEq,
    {
        self.more |= other.more;
        for item in other.items {
            if self.items.contains(&item) {
                continue;
            }
            match self.items.len() < N {
                true => self.items.push(item),
                false => self.more = true,
            }
        }
    }
}

/// The first `N` different items, and how often each came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally<T, const N: usize> {
    items: Few<T, N>,
    counts: [u32; N],
}

impl<T, const N: usize> Default for Tally<T, N> {
    fn default() -> Self {
        Tally { items: Few::default(), counts: [0; N] }
    }
}

impl<T: Copy + PartialEq, const N: usize> Tally<T, N> {
    /// The items, in the order in which they came, and how often each came: at least so often, if there were
    /// [others](Tally::has_more).
    pub fn items(&self) -> impl Iterator<Item = (T, u64)> {
        self.items.items().iter().zip(self.counts).map(|(&item, count)| (item, u64::from(count)))
    }

    /// Whether there were other items.
    pub fn has_more(&self) -> bool {
        self.items.has_more()
    }

    /// Counts an item; one that is counted zero times is there, too.
    pub(crate) fn add(&mut self, item: T, count: u32) {
        if let Some(place) = self.items.place(&item, |&item| item) {
            self.counts[place] = self.counts[place].saturating_add(count);
        }
    }

    /// Adds those of another one.
    pub(crate) fn merge(&mut self, other: Self) {
        self.items.more |= other.items.more;
        other.items.items.into_iter().zip(other.counts).for_each(|(item, count)| self.add(item, count));
    }
}

/// The first `most` of all in an order without ties, heavier ones first, in memory for about twice as many.
#[derive(Debug)]
pub(crate) struct First<T> {
    most: usize,
    items: Vec<T>,
    /// A lighter item is not among the first.
    least: u64,
    count: u64,
}

impl<T: Ord + Weight> First<T> {
    pub(crate) fn new(most: usize) -> Self {
        First { most, items: Vec::new(), least: 0, count: 0 }
    }

    /// Counts an item of this weight, and keeps it if it may be among the first.
    #[inline]
    pub(crate) fn add(&mut self, weight: u64, item: impl FnOnce() -> T) {
        self.count += 1;
        if weight < self.least {
            return;
        }
        self.items.push(item());
        if self.items.len() >= 2 * self.most {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.items.sort_unstable();
        self.items.truncate(self.most);
        if self.items.len() == self.most {
            self.least = self.items.last().map_or(u64::MAX, T::weight);
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.items.extend(other.items);
        self.cut();
    }

    /// The first ones in order, and how many others there were.
    pub(crate) fn finish(mut self) -> (Vec<T>, u64) {
        self.cut();
        let more = self.count - self.items.len() as u64;
        (self.items, more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weight for u64 {
        fn weight(&self) -> u64 {
            *self
        }
    }

    impl Weight for (Reverse<u64>, u64) {
        fn weight(&self) -> u64 {
            self.0.0
        }
    }

    #[test]
    fn the_heavier_ones_stay_and_the_hash_does_not_matter() {
        let fill = || {
            let mut table = Bounded::<u32, u64>::new(100, HashKeys::random());
            for i in 0..10_000_u32 {
                table.update(&(i % 7), |&key| key, |value| *value += 50);
                table.update(&(1000 + i * 7919 % 3001), |&key| key, |value| *value += 1);
            }
            let is_cut = table.is_cut();
            let mut entries: Vec<_> = table.into_entries().collect();
            entries.sort_unstable();
            (entries, is_cut)
        };
        let (entries, is_cut) = fill();
        assert!(entries.len() <= 100 && is_cut, "{}", entries.len());
        let heavy: Vec<_> = entries.iter().take_while(|(key, _)| *key < 7).collect();
        assert_eq!(heavy.len(), 7);
        assert_eq!(heavy.iter().map(|(_, value)| value).sum::<u64>(), 10_000 * 50);
        assert_eq!(fill(), (entries, is_cut));
    }

    #[test]
    fn the_first_are_those_of_a_full_sort() {
        let mut all: Vec<_> = (0..5000_u64).map(|i| (Reverse(i * 7919 % 1000), i)).collect();
        let mut parts = [First::new(40), First::new(40), First::new(40)];
        for (part, item) in (0..).zip(&all) {
            parts[part % 3].add(item.weight(), || *item);
        }
        let [mut one, two, three] = parts;
        one.merge(three);
        one.merge(two);
        all.sort_unstable();
        assert_eq!(one.finish(), (all[..40].to_vec(), 4960));
    }

    #[test]
    fn a_tally_counts_the_first_ones() {
        let mut tally = Tally::<u8, 2>::default();
        [(1, 1), (2, 0), (1, 1)].into_iter().for_each(|(item, count)| tally.add(item, count));
        assert_eq!((tally.items().collect::<Vec<_>>(), tally.has_more()), (vec![(1, 2), (2, 0)], false));
        let mut other = Tally::default();
        [(3, 1), (1, 5)].into_iter().for_each(|(item, count)| other.add(item, count));
        tally.merge(other.clone());
        assert_eq!((tally.items().collect::<Vec<_>>(), tally.has_more()), (vec![(1, 7), (2, 0)], true));
        other.merge(tally);
        assert_eq!((other.items().collect::<Vec<_>>(), other.has_more()), (vec![(3, 1), (1, 12)], true));
        other.add(3, u32::MAX);
        assert_eq!(other.items().next(), Some((3, u64::from(u32::MAX))));
    }

    #[test]
    fn a_few_say_that_there_are_more() {
        let mut few = Few::<u8, 2>::default();
        [1, 1, 2, 1].iter().for_each(|item| few.add(item, |&item| item));
        assert_eq!((few.items(), few.has_more()), (&[1, 2][..], false));
        let mut large = Few::<u8, 3>::default();
        large.add(&9, |&item| item);
        few.add(&3, |&item| item);
        large.merge(few);
        assert_eq!((large.items(), large.has_more()), (&[9, 1, 2][..], true));
    }
}
