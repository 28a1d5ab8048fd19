//! The facts of a packet, on their way from the Dispatcher to a SubAnalyzer.
//!
//! A slot has 32 bytes, half a cache line. An IPv4 packet is one slot. An IPv6 packet is two, one right behind the
//! other in the same queue.
//!
//! | word | first (or only) slot | second slot, IPv6 only |
//! |---|---|---|
//! | 0, 1 | time, low and high half | source, words 1 and 2 |
//! | 2 | source (IPv6: word 0, the most significant) | source, word 3 |
//! | 3 | destination (IPv6: word 0) | destination, word 1 |
//! | 4 | source port << 16 \| destination port | destination, word 2 |
//! | 5 | length on the wire | destination, word 3 |
//! | 6 | meta: protocol << 24 \| kind << 16 \| TCP flags << 8 \| partition | the same |
//! | 7 | hash of the flow | 0 |
//!
//! The Dispatcher computes the hash, as a network card's receive-side scaling does. It is the stage with time to spare,
//! and the SubAnalyzer can start to fetch the flow without another look at the addresses. Where payload is inspected,
//! the stage that decodes makes the slots.

use crate::hash::HashKeys;
use crate::key::flow_hash;
use corelane_net::decode::Transport;

/// The number of partitions that all state is divided into. It is fixed, and one SubAnalyzer holds a partition as a
/// whole. So nothing that happens within a partition can depend on the number of SubAnalyzers.
pub const PARTITIONS: usize = 256;

/// The number of the SubAnalyzer, one of `analyzers`, that owns `partition` at first.
#[inline(always)]
pub const fn analyzer_of(partition: u8, analyzers: usize) -> usize {
    (partition as usize * analyzers) >> PARTITIONS.ilog2()
}

/// Spreads sums over partitions by the upper bits of a multiple of the golden ratio, which works for consecutive sums
/// too. The hash has no key, so the same packets always make the same partitions.
#[inline(always)]
const fn partition_of_sum(sum: u64) -> u8 {
    (sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The partition of a pair of IPv4 addresses, in either order.
#[inline(always)]
pub const fn partition_v4(source: u32, destination: u32) -> u8 {
    partition_of_sum(source as u64 + destination as u64)
}

/// The partition of a pair of IPv6 addresses, in either order.
#[inline(always)]
pub const fn partition_v6(source: u128, destination: u128) -> u8 {
    let sum = source.wrapping_add(destination);
    partition_of_sum(sum as u64 ^ (sum >> 64) as u64)
}

const V6: u32 = 1 << 16;
const V6_REST: u32 = 1 << 17;
const FEW_HOPS: u32 = 1 << 18;

/// At most this many hops left are few: traceroute and its like begin with few, and seldom go beyond 30.
const FEW: u8 = 30;

/// One packet's facts, or half of them; see the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot([u32; 8]);

impl Slot {
    #[inline(always)]
    const fn meta(protocol: u8, kind: u32, flags: u8, partition: u8) -> u32 {
        (protocol as u32) << 24 | kind | (flags as u32) << 8 | partition as u32
    }

    /// The slot of an IPv4 packet.
    #[inline(always)]
    pub(crate) fn v4(keys: &HashKeys, time_ns: u64, wire_len: u32, packet: &Transport<u32>) -> Slot {
        let partition = partition_v4(packet.source, packet.destination);
        let hops = if packet.hops <= FEW { FEW_HOPS } else { 0 };
        let slot = Slot([
            time_ns as u32,
            (time_ns >> 32) as u32,
            packet.source,
            packet.destination,
            (packet.source_port as u32) << 16 | packet.destination_port as u32,
            wire_len,
            Slot::meta(packet.protocol, hops, packet.flags, partition),
            0,
        ]);
        slot.with_flow_hash(flow_hash(keys, &slot.flow_v4()))
    }

    #[inline(always)]
    const fn with_flow_hash(self, hash: u32) -> Slot {
        let mut words = self.0;
        words[7] = hash;
        Slot(words)
    }

    /// The two slots of an IPv6 packet.
    #[inline(always)]
    pub(crate) fn v6(keys: &HashKeys, time_ns: u64, wire_len: u32, packet: &Transport<u128>) -> [Slot; 2] {
        let partition = partition_v6(packet.source, packet.destination);
        let (source, destination) = (packet.source, packet.destination);
        let hops = if packet.hops <= FEW { FEW_HOPS } else { 0 };
        let first = [
            time_ns as u32,
            (time_ns >> 32) as u32,
            (source >> 96) as u32,
            (destination >> 96) as u32,
            (packet.source_port as u32) << 16 | packet.destination_port as u32,
            wire_len,
            Slot::meta(packet.protocol, V6 | hops, packet.flags, partition),
            0,
        ];
        let second = [
            (source >> 64) as u32,
            (source >> 32) as u32,
            source as u32,
            (destination >> 64) as u32,
            (destination >> 32) as u32,
            destination as u32,
            Slot::meta(packet.protocol, V6_REST, packet.flags, partition),
            0,
        ];
        let (first, second) = (Slot(first), Slot(second));
        [first.with_flow_hash(flow_hash(keys, &first.flow_v6(&second))), second]
    }

    /// The flow's hash; not in a second slot.
    #[inline(always)]
    pub(crate) const fn flow_hash(&self) -> u32 {
        self.0[7]
    }

    /// The flow of an IPv4 packet: its endpoints, the lesser first. The protocol is in the top byte of the last word,
    /// and keeps that word from being zero.
    #[inline(always)]
    pub(crate) fn flow_v4(&self) -> [u64; 2] {
        let ((source, destination), (source_port, destination_port)) = (self.addresses_v4(), self.ports());
        let a = u64::from(source) << 16 | u64::from(source_port);
        let b = u64::from(destination) << 16 | u64::from(destination_port);
        [a.min(b), a.max(b) | u64::from(self.protocol()) << 56]
    }

    /// The flow of an IPv6 packet whose second slot is `rest`.
    #[inline(always)]
    pub(crate) fn flow_v6(&self, rest: &Slot) -> [u64; 5] {
        let (source, destination) = self.addresses_v6(rest);
        let (source_port, destination_port) = self.ports();
        let (a, b) = ((source, source_port), (destination, destination_port));
        let ((a, a_port), (b, b_port)) = if a <= b { (a, b) } else { (b, a) };
        let last = u64::from(self.protocol()) << 56 | u64::from(a_port) << 16 | u64::from(b_port);
        [(a >> 64) as u64, a as u64, (b >> 64) as u64, b as u64, last]
    }

    /// The partition of the packet's addresses.
    #[inline(always)]
    pub const fn partition(&self) -> u8 {
        self.0[6] as u8
    }

    /// Whether this is the first of an IPv6 packet's two slots.
    #[inline(always)]
    pub const fn is_v6(&self) -> bool {
        self.0[6] & V6 != 0
    }

    /// Whether this is the second of an IPv6 packet's two slots.
    #[inline(always)]
    pub const fn is_v6_rest(&self) -> bool {
        self.0[6] & V6_REST != 0
    }

    /// The packet's time; not in a second slot.
    #[inline(always)]
    pub const fn time_ns(&self) -> u64 {
        self.0[0] as u64 | (self.0[1] as u64) << 32
    }

    /// The packet's length on the wire; not in a second slot.
    #[inline(always)]
    pub const fn wire_len(&self) -> u32 {
        self.0[5]
    }

    /// TCP flags; 0 for UDP.
    #[inline(always)]
    pub const fn flags(&self) -> u8 {
        (self.0[6] >> 8) as u8
    }

    /// Whether the packet has at most 30 hops left; not in a second slot.
    #[inline(always)]
    pub const fn has_few_hops(&self) -> bool {
        self.0[6] & FEW_HOPS != 0
    }

    /// IP protocol number.
    #[inline(always)]
    pub const fn protocol(&self) -> u8 {
        (self.0[6] >> 24) as u8
    }

    /// Source and destination port; not in a second slot.
    #[inline(always)]
    pub const fn ports(&self) -> (u16, u16) {
        ((self.0[4] >> 16) as u16, self.0[4] as u16)
    }

    /// Source and destination of an IPv4 packet.
    #[inline(always)]
    pub const fn addresses_v4(&self) -> (u32, u32) {
        (self.0[2], self.0[3])
    }

    /// Source and destination of an IPv6 packet whose second slot is `rest`.
    #[inline(always)]
    pub const fn addresses_v6(&self, rest: &Slot) -> (u128, u128) {
        let (first, rest) = (&self.0, &rest.0);
        (words(first[2], rest[0], rest[1], rest[2]), words(first[3], rest[3], rest[4], rest[5]))
    }
}

#[inline(always)]
const fn words(a: u32, b: u32, c: u32, d: u32) -> u128 {
    (a as u128) << 96 | (b as u128) << 64 | (c as u128) << 32 | d as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane_net::decode::{TCP, UDP};

    #[test]
    fn v4_comes_back() {
        let packet = Transport {
            source: 0xfedc_ba98,
            destination: 0x8765_4321,
            source_port: 0xabcd,
            destination_port: 0xef01,
            protocol: TCP,
            flags: 0xff,
            hops: 31,
        };
        let keys = HashKeys::random();
        let slot = Slot::v4(&keys, 0xf123_4567_89ab_cdef, u32::MAX, &packet);
        assert_eq!(slot.time_ns(), 0xf123_4567_89ab_cdef);
        assert_eq!(slot.wire_len(), u32::MAX);
        assert_eq!(slot.addresses_v4(), (packet.source, packet.destination));
        assert_eq!(slot.ports(), (packet.source_port, packet.destination_port));
        assert_eq!((slot.protocol(), slot.flags()), (TCP, 0xff));
        assert!(!slot.is_v6() && !slot.is_v6_rest() && !slot.has_few_hops());
        assert!(Slot::v4(&keys, 0, 0, &Transport { hops: 30, ..packet }).has_few_hops());
        assert_eq!(slot.partition(), partition_v4(packet.destination, packet.source));
        let back = Transport {
            source: packet.destination,
            destination: packet.source,
            source_port: packet.destination_port,
            destination_port: packet.source_port,
            ..packet
        };
        assert_eq!(Slot::v4(&keys, 0, 0, &back).flow_hash(), slot.flow_hash());
        assert_eq!(Slot::v4(&keys, 0, 0, &back).flow_v4(), slot.flow_v4());
    }

    #[test]
    fn v6_comes_back() {
        let packet = Transport {
            source: 0xfedc_ba98_7654_3210_0123_4567_89ab_cdef,
            destination: 0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0,
            source_port: 1,
            destination_port: 65535,
            protocol: UDP,
            flags: 0,
            hops: 30,
        };
        let keys = HashKeys::random();
        let [first, rest] = Slot::v6(&keys, 7, 9, &packet);
        assert_eq!(first.addresses_v6(&rest), (packet.source, packet.destination));
        assert_eq!((first.time_ns(), first.wire_len(), first.ports()), (7, 9, (1, 65535)));
        assert!(first.is_v6() && !first.is_v6_rest() && rest.is_v6_rest() && !rest.is_v6());
        assert!(first.has_few_hops());
        assert!(!Slot::v6(&keys, 7, 9, &Transport { hops: 31, ..packet })[0].has_few_hops());
        assert_eq!(first.partition(), rest.partition());
        assert_eq!(first.partition(), partition_v6(packet.destination, packet.source));
    }

    #[test]
    fn every_analyzer_owns_its_share_of_the_partitions() {
        for analyzers in 1..=PARTITIONS {
            let mut owned = vec![0; analyzers];
            for partition in 0..=u8::MAX {
                owned[analyzer_of(partition, analyzers)] += 1;
            }
            let (least, most) = (owned.iter().min().unwrap(), owned.iter().max().unwrap());
            assert!(*least >= 1 && most - least <= 1, "{analyzers}: {least} to {most}");
        }
    }

    #[test]
    fn a_sequential_sweep_spreads_over_the_partitions() {
        let mut used = [0; PARTITIONS];
        for host in 0..65_536 {
            used[usize::from(partition_v4(0x0a00_0001, 0xc0a8_0000 + host))] += 1;
        }
        assert!(used.iter().all(|&pairs| (128..=512).contains(&pairs)), "{used:?}");
    }
}
