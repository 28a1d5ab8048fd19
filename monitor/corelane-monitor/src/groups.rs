//! Failures counted by group: (source, destination) for vertical scans, (source, port) for horizontal ones. Probes
//! other than SYNs have groups by their kind too.

use crate::hash::HashKeys;
use crate::polls;
use crate::probe::Probe;
use crate::settings::Settings;
use crate::twins::tick;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;
use std::net::IpAddr;

/// The failures of one group. A scan's time is that of the failure that crossed the threshold T in order of time, the
/// (T+1)-th smallest. The group keeps the T+1 smallest times, so the order of arrival does not matter.
#[derive(Debug, Default)]
struct Group {
    count: u64,
    /// So many failures are outweighed by the members that were answered.
    outweighed: u64,
    /// Those of these members that failed later.
    known: u64,
    /// Those of its failures that are polled.
    polled: u64,
    smallest: BinaryHeap<u64>,
    /// With each of those times the [tick](crate::twins::tick) at which that attempt began, where it is known.
    begun: BinaryHeap<(u64, u32)>,
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
        self.unpolled() > self.outweighed
    }

    /// The failures that make it a scan. One of a scan counts also if it is polled: scanners meet on some keys again.
    fn unpolled(&self) -> u64 {
        self.count.saturating_sub(self.polled.min(polls::MOST))
    }

    fn is_scan(&self, threshold: u64) -> bool {
        self.unpolled() > threshold && self.weighs()
    }
}

/// The failed port of a host from which on they count for a block: few hosts have so many that are asked for.
pub(crate) const BLOCK_FROM: u64 = 5;

/// More of those than this, of one source, are a block.
pub(crate) fn block_threshold(settings: &Settings) -> u64 {
    settings.vertical_threshold.max(settings.horizontal_threshold).saturating_mul(2)
}

/// The failures that one answer outweighs: a group is a scan if it has more than its answers outweigh.
///
/// Of SYNs as many are answered as fail. That is the threshold random walk of Jung, Paxson, Berger and Balakrishnan
/// ("Fast Portscan Detection Using Sequential Hypothesis Testing", 2004), where four of five attempts of an innocent
/// host and one of five of a scanner succeed: the odds are even where successes and failures are.
pub(crate) fn to_one(probe: Option<Probe>) -> u64 {
    probe.map_or(1, Probe::outweighed)
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

    /// One of the failures of a group is [polled](polls). Its members are hosts.
    pub(crate) fn add_polled(&mut self, key: K) {
        self.groups.entry(key).or_default().polled += 1;
    }

    /// The same of an attempt that began at this time, if that is known.
    pub(crate) fn add_begun(&mut self, key: K, time_ns: u64, begun_ns: Option<u64>, member: impl FnOnce() -> IpAddr) {
        self.add(key, time_ns, member);
        if let Some((group, begun_ns)) = self.groups.get_mut(&key).zip(begun_ns) {
            keep(&mut group.begun, (time_ns, tick(begun_ns)), self.threshold);
        }
    }

    /// The scans so far.
    pub(crate) fn scans(&self) -> impl Iterator<Item = &K> {
        self.groups.iter().filter(|(_, group)| group.is_scan(self.threshold)).map(|(key, _)| key)
    }

    /// So many failures of a scan so far are outweighed in addition, by the ticks at which its first ones began. Those
    /// of which this is not known for all are left alone.
    pub(crate) fn outweigh(&mut self, outweighed: impl Fn(&K, Vec<u32>) -> Option<u64>) {
        for (key, group) in self.groups.iter_mut().filter(|(_, group)| group.is_scan(self.threshold)) {
            if group.begun.len() == group.smallest.len() {
                let begun = group.begun.iter().map(|&(_, tick)| tick).collect();
                group.outweighed += outweighed(key, begun).unwrap_or(0);
            }
        }
    }

    /// Drops the groups that have too few failures for a scan: they need no answers.
    pub(crate) fn drop_small(&mut self) {
        let threshold = self.threshold;
        self.groups.retain(|_, group| group.unpolled() > threshold);
    }

    /// Counts members that were answered, whether they failed later, and how many failures each outweighs. All others
    /// that failed have been added.
    pub(crate) fn add_answered(&mut self, keys: impl Iterator<Item = (K, bool, u64)>) {
        if self.groups.is_empty() {
            return;
        }
        for (key, has_failed, outweighed) in keys {
            if let Some(group) = self.groups.get_mut(&key) {
                group.outweighed += outweighed;
                group.known += u64::from(has_failed);
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
        self.groups.drain().filter(move |(_, group)| group.is_scan(threshold)).filter_map(|(key, group)| {
            let members = group.members.into_sorted_vec().into_iter().map(|(_, member)| member).collect();
            Some(Scan { key, count: group.count + group.known, time_ns: *group.smallest.peek()?, members })
        })
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
    fn so_many_answers_are_no_scan() {
        for (probe, failures, answers, is_scan) in [
            (Some(Probe::Udp), 3, 0, true),
            (Some(Probe::Udp), 2, 0, false),
            (Some(Probe::Udp), 9, 2, true),
            (Some(Probe::Udp), 8, 2, false),
            (Some(Probe::Udp), 4, 1, false),
            (None, 3, 2, true),
            (None, 3, 3, false),
            (None, 9, 8, true),
            (None, 9, 10, false),
        ] {
            let mut groups = Groups::new(2, HashKeys::random());
            (0..failures).for_each(|time| groups.add(7, time, || NOBODY));
            groups.drop_small();
            groups.add_answered((0..answers).flat_map(|_| [7, 8]).map(|key| (key, key == 8, to_one(probe))));
            assert_eq!(groups.drain_scans().count(), usize::from(is_scan), "{probe:?} {failures} {answers}");
        }
    }
}
