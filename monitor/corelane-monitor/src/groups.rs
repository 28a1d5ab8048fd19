//! Failures counted by group: (source, destination) for vertical scans, (source, port) for horizontal ones. Probes
//! other than SYNs have groups by their kind too.

use crate::hash::HashKeys;
use crate::settings::Settings;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;
use std::net::IpAddr;

/// The failures of one group. A scan's time is that of the failure that crossed the threshold T in order of time, the
/// (T+1)-th smallest. The group keeps the T+1 smallest times, so the order of arrival does not matter.
#[derive(Debug, Default)]
struct Group {
    count: u64,
    /// So many failures are outweighed by the probes that were answered.
    outweighed: u64,
    smallest: BinaryHeap<u64>,
    /// The members of those times, where they are asked for.
    members: BinaryHeap<(u64, IpAddr)>,
}

#[derive(Debug)]
pub(crate) struct Groups<K> {
    threshold: u64,
    with_members: bool,
    groups: HashMap<K, Group, HashKeys>,
}

impl Group {
    /// Whether the answers do not outweigh the failures.
    fn weighs(&self) -> bool {
        self.count > self.outweighed
    }
}

/// The failed port of a host from which on they count for a block: few hosts have so many that are asked for.
pub(crate) const BLOCK_FROM: u64 = 5;

/// More of those than this, of one source, are a block.
pub(crate) fn block_threshold(settings: &Settings) -> u64 {
    settings.vertical_threshold.max(settings.horizontal_threshold).saturating_mul(2)
}

/// A group with more failures than the threshold.
#[derive(Debug)]
pub(crate) struct Scan<K> {
    pub(crate) key: K,
    pub(crate) count: u64,
    pub(crate) time_ns: u64,
    /// The members that failed up to then, in order of time, where they are asked for.
    pub(crate) members: Vec<IpAddr>,
}

/// Keeps the least, one more than the threshold.
fn keep<T: Ord>(least: &mut BinaryHeap<T>, value: T, threshold: u64) {
    if least.len() as u64 <= threshold {
        least.push(value);
    } else if let Some(mut largest) = least.peek_mut()
        && value < *largest
    {
        *largest = value;
    }
}

impl<K: Hash + Eq + Copy> Groups<K> {
    pub(crate) fn new(threshold: u64, keys: HashKeys) -> Self {
        Groups { threshold, with_members: false, groups: HashMap::with_hasher(keys) }
    }

    /// The same, each group with its members.
    pub(crate) fn with_members(self) -> Self {
        Groups { with_members: true, ..self }
    }

    pub(crate) fn add(&mut self, key: K, time_ns: u64, member: impl FnOnce() -> IpAddr) {
        let group = self.groups.entry(key).or_default();
        if self.with_members {
            keep(&mut group.members, (time_ns, member()), self.threshold);
        }
        group.count += 1;
        keep(&mut group.smallest, time_ns, self.threshold);
    }

    /// Counts an answer beside the failures, which may be added before or after; it outweighs so many.
    pub(crate) fn add_answered(&mut self, key: K, outweighed: u64) {
        self.groups.entry(key).or_default().outweighed += outweighed;
    }

    /// Counts answers after all failures have been added. Groups without a scan are dropped first, as they need no
    /// answers.
    pub(crate) fn add_all_answered(&mut self, keys: impl Iterator<Item = (K, u64)>) {
        let threshold = self.threshold;
        self.groups.retain(|_, group| group.count > threshold);
        if self.groups.is_empty() {
            return;
        }
        for (key, outweighed) in keys {
            if let Some(group) = self.groups.get_mut(&key) {
                group.outweighed += outweighed;
            }
        }
    }

    /// The groups of hosts that are no scan and count for a [block](BLOCK_FROM), with those times of theirs that do.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&K, Vec<u64>)> {
        self.groups.iter().filter(|(_, group)| group.count <= self.threshold && group.weighs()).filter_map(
            |(key, group)| {
                let mut times = group.smallest.clone().into_sorted_vec();
                (times.len() as u64 >= BLOCK_FROM).then(|| (key, times.split_off(BLOCK_FROM as usize - 1)))
            },
        )
    }

    /// The scans among the groups, in no particular order. Forgets all groups.
    pub(crate) fn drain_scans(&mut self) -> impl Iterator<Item = Scan<K>> {
        let threshold = self.threshold;
        self.groups.drain().filter(move |(_, group)| group.count > threshold && group.weighs()).filter_map(
            |(key, group)| {
                let members = group.members.into_sorted_vec().into_iter().map(|(_, member)| member).collect();
                Some(Scan { key, count: group.count, time_ns: *group.smallest.peek()?, members })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    #[test]
    fn the_time_is_the_one_that_crosses_the_threshold_whatever_the_order() {
        for times in [[5, 1, 4, 2, 3], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]] {
            let mut groups = Groups::new(2, HashKeys::random());
            times.iter().for_each(|&time| groups.add((1_u32, 2_u16), time, || NOBODY));
            groups.add((1, 3), 1, || NOBODY);
            groups.add((1, 3), 1, || NOBODY);
            let scans: Vec<_> = groups.drain_scans().collect();
            assert_eq!(scans.len(), 1);
            assert_eq!((scans[0].key, scans[0].count, scans[0].time_ns), ((1, 2), 5, 3));
        }
    }

    #[test]
    fn one_answer_of_five_is_no_scan() {
        for (failures, answers, is_scan) in [(3, 0, true), (2, 0, false), (9, 2, true), (8, 2, false), (4, 1, false)] {
            let mut either = [Groups::new(2, HashKeys::random()), Groups::new(2, HashKeys::random())];
            let [first, last] = &mut either;
            (0..answers).for_each(|_| first.add_answered(7_u32, 4));
            for groups in [&mut *first, &mut *last] {
                (0..failures).for_each(|time| groups.add(7, time, || NOBODY));
            }
            last.add_all_answered((0..answers).flat_map(|_| [(7, 4), (8, 4)]));
            for groups in either.iter_mut() {
                assert_eq!(groups.drain_scans().count(), usize::from(is_scan), "{failures} {answers}");
            }
        }
    }
}
