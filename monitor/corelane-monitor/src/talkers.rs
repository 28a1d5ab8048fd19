//! Top talkers: the conversations and hosts with the most bytes.

use crate::hash::HashKeys;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) trait Address: Copy + Ord + Hash {
    fn ip(self) -> IpAddr;
}

impl Address for u32 {
    fn ip(self) -> IpAddr {
        Ipv4Addr::from_bits(self).into()
    }
}

impl Address for u128 {
    fn ip(self) -> IpAddr {
        Ipv6Addr::from_bits(self).into()
    }
}

/// The traffic of a host, a conversation or a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Flows.
    pub flows: u64,
    /// Their packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Volume {
    #[inline]
    pub(crate) fn add(&mut self, other: &Volume) {
        self.flows += other.flows;
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Two addresses, the lesser first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair(pub IpAddr, pub IpAddr);

/// A conversation or host and its traffic. The order has no ties: by bytes, packets and flows, each with the larger
/// first, then by address with the lesser first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Talker<I> {
    /// A [`Pair`] or an address.
    pub id: I,
    /// Its traffic, in both directions.
    pub volume: Volume,
}

impl<I: Ord + Copy> Talker<I> {
    fn rank(&self) -> impl Ord + use<I> {
        use std::cmp::Reverse;
        (Reverse(self.volume.bytes), Reverse(self.volume.packets), Reverse(self.volume.flows), self.id)
    }
}

/// The first `n` of the talkers it is given, in memory for about twice as many.
#[derive(Clone, Debug)]
pub(crate) struct Top<I> {
    n: usize,
    talkers: Vec<Talker<I>>,
    /// A talker with fewer bytes than this cannot come in.
    least: u64,
}

impl<I: Ord + Copy> Top<I> {
    pub(crate) fn new(n: usize) -> Self {
        Top { n, talkers: Vec::new(), least: 0 }
    }

    pub(crate) fn add(&mut self, id: I, volume: Volume) {
        if volume.bytes < self.least {
            return;
        }
        self.talkers.push(Talker { id, volume });
        if self.talkers.len() / 2 > self.n.max(32) {
            self.cut();
        }
    }

    /// The first `n`, in order.
    pub(crate) fn finish(mut self) -> Vec<Talker<I>> {
        self.cut();
        self.talkers
    }

    fn cut(&mut self) {
        self.talkers.sort_unstable_by_key(Talker::rank);
        self.talkers.truncate(self.n);
        if self.talkers.len() == self.n {
            self.least = self.talkers.last().map_or(u64::MAX, |talker| talker.volume.bytes);
        }
    }
}

/// Gathers talkers. A conversation is in one partition, so its traffic is added as a whole. A host is in many
/// partitions, so all hosts are kept until the end.
#[derive(Clone, Debug)]
pub(crate) struct Talkers {
    conversations: Top<Pair>,
    hosts: HashMap<IpAddr, Volume, HashKeys>,
}

impl Talkers {
    pub(crate) fn new(top: usize, keys: HashKeys) -> Self {
        Talkers { conversations: Top::new(top), hosts: HashMap::with_hasher(keys) }
    }

    pub(crate) fn add<A: Address>(&mut self, pairs: impl Iterator<Item = ((A, A), Volume)>) {
        if self.conversations.n == 0 {
            return pairs.for_each(drop);
        }
        for ((a, b), volume) in pairs {
            let (lesser, greater) = (a.ip(), b.ip());
            self.conversations.add(Pair(lesser, greater), volume);
            self.hosts.entry(lesser).or_default().add(&volume);
            if a != b {
                self.hosts.entry(greater).or_default().add(&volume);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Talkers) {
        for talker in other.conversations.talkers {
            self.conversations.add(talker.id, talker.volume);
        }
        if self.hosts.is_empty() {
            self.hosts = other.hosts;
            return;
        }
        for (host, volume) in other.hosts {
            self.hosts.entry(host).or_default().add(&volume);
        }
    }

    /// The top conversations and hosts.
    pub(crate) fn finish(self) -> (Vec<Talker<Pair>>, Vec<Talker<IpAddr>>) {
        let mut hosts = Top::new(self.conversations.n);
        for (host, volume) in self.hosts {
            hosts.add(host, volume);
        }
        (self.conversations.finish(), hosts.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_that_of_a_full_sort() {
        let volume = |i: u32| Volume { flows: 1, packets: u64::from(i % 7), bytes: u64::from(i * 7919 % 1000 / 10) };
        let mut all: Vec<_> = (0..5000).map(|id| Talker { id, volume: volume(id) }).collect();
        let mut top = Top::new(40);
        all.iter().for_each(|talker| top.add(talker.id, talker.volume));
        top.cut();
        all.sort_unstable_by_key(Talker::rank);
        assert_eq!(top.talkers, all[..40]);
    }

    #[test]
    fn a_host_that_talks_to_itself_counts_once() {
        let mut talkers = Talkers::new(3, HashKeys::random());
        let volume = Volume { flows: 1, packets: 2, bytes: 3 };
        talkers.add([((7_u32, 7_u32), volume), ((1, 7), volume)].into_iter());
        let (_, hosts) = talkers.finish();
        let bytes: Vec<_> = hosts.iter().map(|host| (host.id.to_string(), host.volume.bytes)).collect();
        assert_eq!(bytes, [("0.0.0.7".to_owned(), 6), ("0.0.0.1".to_owned(), 3)]);
    }
}
