//! Tables and lists with a bound. What they give up is counted or marked.

use crate::hash::HashKeys;
use corelane::prefetch_read;
use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

/// What decides which entries of a full table stay.
pub(crate) trait Weight {
    fn weight(&self) -> u64;
}

/// A table. When it is full the lighter half goes. An entry that went may come back, without what it was before: so how
/// many different ones went is not known.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    most: usize,
    /// The place of each key's value: apart from the values, which may then be fetched before they are needed.
    places: HashMap<K, u32, HashKeys>,
    values: Vec<V>,
    is_cut: bool,
}

impl<K: Hash + Ord + Clone, V: Weight + Default> Bounded<K, V> {
    pub(crate) fn new(most: usize, keys: HashKeys) -> Self {
        Bounded { most, places: HashMap::with_hasher(keys), values: Vec::new(), is_cut: false }
    }

    /// Starts to fetch what an update of this key needs.
    #[inline]
    pub(crate) fn prefetch(&self, key: &K) {
        if let Some(value) = self.places.get(key).and_then(|&place| self.values.get(place as usize)) {
            prefetch_read(value);
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
        if let Some(&place) = self.places.get(key) {
            return change(&mut self.values[place as usize]);
        }
        if self.values.len() >= self.most {
            self.halve();
        }
        change(self.entry(own(key)));
    }

    /// The value of a key, however many there are.
    fn entry(&mut self, key: K) -> &mut V {
        let place = *self.places.entry(key).or_insert(self.values.len() as u32) as usize;
        if place == self.values.len() {
            self.values.push(V::default());
        }
        &mut self.values[place]
    }

    #[cold]
    fn halve(&mut self) {
        let weight = |place: u32| Reverse(self.values[place as usize].weight());
        let mut order: Vec<_> = self.places.iter().map(|(key, &place)| (weight(place), key)).collect();
        let keep = self.most / 2;
        // No two are equal, so the hash does not matter.
        let (_, (least, key), _) = order.select_nth_unstable(keep);
        let least = (*least, (*key).clone());
        let mut all = std::mem::take(&mut self.values);
        self.places.retain(|key, place| {
            let value = &mut all[*place as usize];
            let stays = (Reverse(value.weight()), key as &K) < (least.0, &least.1);
            if stays {
                *place = self.values.len() as u32;
                self.values.push(std::mem::take(value));
            }
            stays
        });
        self.is_cut = true;
    }

    /// Takes all out. What is left is empty, and has no memory.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Bounded::new(self.most, *self.places.hasher());
        std::mem::replace(self, empty)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds those of another one.
    pub(crate) fn merge(&mut self, other: Self, add: impl Fn(&mut V, V)) {
        self.is_cut |= other.is_cut;
        for (key, value) in other.into_entries() {
            add(self.entry(key), value);
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
        let mut values = self.values;
        self.places.into_iter().map(move |(key, place)| (key, std::mem::take(&mut values[place as usize])))
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
