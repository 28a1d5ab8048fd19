//! Failures counted by group: (source, destination) for vertical scans, (source, port) for horizontal ones.

use crate::hash::HashKeys;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;

/// The failures of one group. A scan's time is that of the failure which crossed the threshold T in order of time,
/// that is, the (T+1)-th smallest; keeping the T+1 smallest makes it independent of the order of arrival.
#[derive(Debug, Default)]
struct Group {
    count: u64,
    smallest: BinaryHeap<u64>,
}

#[derive(Debug)]
pub(crate) struct Groups<K> {
    threshold: u64,
    groups: HashMap<K, Group, HashKeys>,
}

/// A group with more failures than the threshold.
#[derive(Debug)]
pub(crate) struct Scan<K> {
    pub(crate) key: K,
    pub(crate) count: u64,
    pub(crate) time_ns: u64,
}

impl<K: Hash + Eq + Copy> Groups<K> {
    pub(crate) fn new(threshold: u64, keys: HashKeys) -> Self {
        Groups { threshold, groups: HashMap::with_hasher(keys) }
    }

    pub(crate) fn add(&mut self, key: K, time_ns: u64) {
        let group = self.groups.entry(key).or_default();
        group.count += 1;
        if group.smallest.len() as u64 <= self.threshold {
            group.smallest.push(time_ns);
        } else if let Some(mut largest) = group.smallest.peek_mut()
            && time_ns < *largest
        {
            *largest = time_ns;
        }
    }

    /// The scans among the groups, in no particular order. Forgets all groups.
    pub(crate) fn drain_scans(&mut self) -> impl Iterator<Item = Scan<K>> {
        let threshold = self.threshold;
        self.groups
            .drain()
            .filter(move |(_, group)| group.count > threshold)
            .filter_map(|(key, group)| Some(Scan { key, count: group.count, time_ns: *group.smallest.peek()? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_the_one_that_crosses_the_threshold_whatever_the_order() {
        for times in [[5, 1, 4, 2, 3], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]] {
            let mut groups = Groups::new(2, HashKeys::random());
            times.iter().for_each(|&time| groups.add((1_u32, 2_u16), time));
            groups.add((1, 3), 1);
            groups.add((1, 3), 1);
            let scans: Vec<_> = groups.drain_scans().collect();
            assert_eq!(scans.len(), 1);
            assert_eq!((scans[0].key, scans[0].count, scans[0].time_ns), ((1, 2), 5, 3));
        }
    }
}
