//! The facts of a packet, on their way from the Dispatcher to a SubAnalyzer.
//!
//! A slot has 32 bytes, half a cache line. An IPv4 packet is one slot. An IPv6 packet is two, one right behind the
//! other in the same queue.
//!
//! | word | first (or only) slot | second slot, IPv6 only |
//! |---|---|---|
//! | 0 | time | source, low half |
//! | 1 | source << 32 \| destination (IPv6: source, high half) | destination, high half |
//! | 2 | source port << 48 \| destination port << 32 \| length on the wire | destination, low half |
//! | 3 | hash of the flow << 32 \| meta | meta |
//!
//! Meta is `protocol << 24 | kind << 16 | flags << 8 | partition`. The words are as long as those of a table's key, so
//! few instructions make most keys of them.
//!
//! A packet of another protocol than TCP and UDP that [asks a host, or answers](Question), begins no flow. Its kind
//! says so, its protocol is the number of the [`Probe`], and its flags are 1 if it answers.
//!
//! The Dispatcher computes the hash, as a network card's receive-side scaling does. It is the stage with time to spare,
//! and the SubAnalyzer can start to fetch the flow without another look at the addresses. Where payload is inspected,
//! the stage that decodes makes the slots.

use crate::hash::HashKeys;
use crate::key::flow_hash;
use crate::probe::Probe;
use corelane_net::decode::{Question, Transport};

/// The number of partitions that all state is divided into. It is fixed, and one SubAnalyzer holds a partition as a
/// whole. So nothing that happens within a partition can depend on the number of SubAnalyzers.
pub const PARTITIONS: usize = 256;

/// The number of the SubAnalyzer, one of `analyzers`, that owns `partition` at first.
#[inline(always)]
pub const fn analyzer_of(partition: u8, analyzers: usize) -> usize {
    (partition as usize * analyzers) >> PARTITIONS.ilog2()
}

const V6: u64 = 1 << 16;
const V6_REST: u64 = 1 << 17;
const FEW_HOPS: u64 = 1 << 18;
const BY_LESSER: u64 = 1 << 19;
const NO_FLOW: u64 = 1 << 20;
const AT_ZERO: u64 = 1 << 21;

/// At most this many hops left are few: traceroute and its like begin with few, and seldom go beyond 30.
const FEW: u8 = 30;

/// One packet's facts, or half of them; see the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot([u64; 4]);

impl Slot {
    #[inline(always)]
    const fn meta<A>(packet: &Transport<A>, kind: u64, partition: u8) -> u64 {
        (packet.protocol as u64) << 24 | kind | (packet.flags as u64) << 8 | partition as u64
    }

    /// The first slot of a packet, or the only one, but for the hash. It has this word of the addresses.
    #[inline(always)]
    fn first<A>(time_ns: u64, wire_len: u32, packet: &Transport<A>, word: u64, kind: u64, partition: u8) -> Slot {
        let ports = u64::from(packet.source_port) << 48 | u64::from(packet.destination_port) << 32;
        let hops = if packet.hops <= FEW { FEW_HOPS } else { 0 };
        let zero = if packet.is_at_zero { AT_ZERO } else { 0 };
        Slot([time_ns, word, ports | u64::from(wire_len), Slot::meta(packet, kind | hops | zero, partition)])
    }

    #[inline(always)]
    const fn with_flow_hash(mut self, hash: u32) -> Slot {
        self.0[3] |= (hash as u64) << 32;
        self
    }

    /// The slot of an IPv4 packet.
    #[inline(always)]
    pub(crate) fn v4(keys: &HashKeys, time_ns: u64, wire_len: u32, packet: &Transport<u32>) -> Slot {
        let (source, destination) = (packet.source, packet.destination);
        let addresses = u64::from(source) << 32 | u64::from(destination);
        let is_by_lesser = end_v4(source, packet.source_port) <= end_v4(destination, packet.destination_port);
        let kind = if is_by_lesser { BY_LESSER } else { 0 };
        let slot = Slot::first(time_ns, wire_len, packet, addresses, kind, keys.partition_v4(source, destination));
        slot.with_flow_hash(flow_hash(keys, &slot.flow_v4()))
    }

    /// The two slots of an IPv6 packet.
    #[inline(always)]
    pub(crate) fn v6(keys: &HashKeys, time_ns: u64, wire_len: u32, packet: &Transport<u128>) -> [Slot; 2] {
        let (source, destination) = (packet.source, packet.destination);
        // Without a branch.
        let is_by_lesser =
            (source < destination) | (source == destination) & (packet.source_port <= packet.destination_port);
        let kind = V6 | if is_by_lesser { BY_LESSER } else { 0 };
        let partition = keys.partition_v6(source, destination);
        let first = Slot::first(time_ns, wire_len, packet, (source >> 64) as u64, kind, partition);
        let meta = Slot::meta(packet, V6_REST, partition);
        let rest = Slot([source as u64, (destination >> 64) as u64, destination as u64, meta]);
        [first.with_flow_hash(flow_hash(keys, &first.flow_v6(&rest))), rest]
    }

    /// The slot of a question over IPv4, or of an answer.
    pub(crate) fn question_v4(keys: &HashKeys, time_ns: u64, wire_len: u32, question: &Question<u32>) -> Slot {
        let packet = without_flow(question);
        let addresses = u64::from(packet.source) << 32 | u64::from(packet.destination);
        let partition = keys.partition_v4(packet.source, packet.destination);
        Slot::first(time_ns, wire_len, &packet, addresses, NO_FLOW, partition)
    }

    /// The two slots of one over IPv6.
    pub(crate) fn question_v6(keys: &HashKeys, time_ns: u64, wire_len: u32, question: &Question<u128>) -> [Slot; 2] {
        let packet = without_flow(question);
        let (source, destination) = (packet.source, packet.destination);
        let partition = keys.partition_v6(source, destination);
        let first = Slot::first(time_ns, wire_len, &packet, (source >> 64) as u64, V6 | NO_FLOW, partition);
        let meta = Slot::meta(&packet, V6_REST, partition);
        [first, Slot([source as u64, (destination >> 64) as u64, destination as u64, meta])]
    }

    /// Whether this is the only slot of an IPv4 packet with a flow.
    #[inline(always)]
    pub(crate) const fn has_flow_v4(&self) -> bool {
        self.0[3] & (V6 | V6_REST | NO_FLOW) == 0
    }

    /// Whether this is the first slot of an IPv6 packet with a flow.
    #[inline(always)]
    pub(crate) const fn has_flow_v6(&self) -> bool {
        self.0[3] & (V6 | NO_FLOW) == V6
    }

    /// Whether this is the first slot of a packet without a flow.
    #[inline(always)]
    pub(crate) const fn has_no_flow(&self) -> bool {
        self.0[3] & NO_FLOW != 0
    }

    /// The flow's hash; not in a second slot.
    #[inline(always)]
    pub(crate) const fn flow_hash(&self) -> u32 {
        (self.0[3] >> 32) as u32
    }

    /// The flow of an IPv4 packet: its endpoints, the lesser first. The protocol is in the top byte of the last word,
    /// and keeps that word from being zero.
    #[inline(always)]
    pub(crate) fn flow_v4(&self) -> [u64; 2] {
        let ((source, destination), (source_port, destination_port)) = (self.addresses_v4(), self.ports());
        let (a, b) = (end_v4(source, source_port), end_v4(destination, destination_port));
        let (a, b) = if self.is_by_lesser() { (a, b) } else { (b, a) };
        [a, b | u64::from(self.protocol()) << 56]
    }

    /// The flow of an IPv6 packet whose second slot is `rest`.
    #[inline(always)]
    pub(crate) fn flow_v6(&self, rest: &Slot) -> [u64; 5] {
        let (source, destination) = self.addresses_v6(rest);
        let (source_port, destination_port) = self.ports();
        let (a, b) = ((source, source_port), (destination, destination_port));
        let ((a, a_port), (b, b_port)) = if self.is_by_lesser() { (a, b) } else { (b, a) };
        let last = u64::from(self.protocol()) << 56 | u64::from(a_port) << 16 | u64::from(b_port);
        [(a >> 64) as u64, a as u64, (b >> 64) as u64, b as u64, last]
    }

    /// The partition of the packet's addresses.
    #[inline(always)]
    pub const fn partition(&self) -> u8 {
        self.0[3] as u8
    }

    /// Whether this is the first of an IPv6 packet's two slots.
    #[inline(always)]
    pub const fn is_v6(&self) -> bool {
        self.0[3] & V6 != 0
    }

    /// Whether this is the second of an IPv6 packet's two slots.
    #[inline(always)]
    pub const fn is_v6_rest(&self) -> bool {
        self.0[3] & V6_REST != 0
    }

    /// The packet's time; not in a second slot.
    #[inline(always)]
    pub const fn time_ns(&self) -> u64 {
        self.0[0]
    }

    /// The same packet at this time; not for a second slot.
    #[inline(always)]
    pub(crate) const fn at(mut self, time_ns: u64) -> Slot {
        self.0[0] = time_ns;
        self
    }

    /// The packet's length on the wire; not in a second slot.
    #[inline(always)]
    pub const fn wire_len(&self) -> u32 {
        self.0[2] as u32
    }

    /// TCP flags; 0 for UDP.
    #[inline(always)]
    pub const fn flags(&self) -> u8 {
        (self.0[3] >> 8) as u8
    }

    /// Whether the packet has at most 30 hops left; not in a second slot.
    #[inline(always)]
    pub const fn has_few_hops(&self) -> bool {
        self.0[3] & FEW_HOPS != 0
    }

    /// Whether the segment's sequence number is 0; not in a second slot.
    #[inline(always)]
    pub const fn is_at_zero(&self) -> bool {
        self.0[3] & AT_ZERO != 0
    }

    /// Whether the packet was sent by the end with the lesser address and port; not in a second slot.
    #[inline(always)]
    pub const fn is_by_lesser(&self) -> bool {
        self.0[3] & BY_LESSER != 0
    }

    /// IP protocol number.
    #[inline(always)]
    pub const fn protocol(&self) -> u8 {
        (self.0[3] >> 24) as u8
    }

    /// Source and destination port; not in a second slot.
    #[inline(always)]
    pub const fn ports(&self) -> (u16, u16) {
        ((self.0[2] >> 48) as u16, (self.0[2] >> 32) as u16)
    }

    /// Source and destination of an IPv4 packet.
    #[inline(always)]
    pub const fn addresses_v4(&self) -> (u32, u32) {
        ((self.0[1] >> 32) as u32, self.0[1] as u32)
    }

    /// Source and destination of an IPv6 packet whose second slot is `rest`.
    #[inline(always)]
    pub const fn addresses_v6(&self, rest: &Slot) -> (u128, u128) {
        (address(self.0[1], rest.0[0]), address(rest.0[1], rest.0[2]))
    }
}

/// A question as a packet that has no flow: the port is that of the host that is asked.
fn without_flow<A: Copy>(question: &Question<A>) -> Transport<A> {
    let Question { source, destination, by, port, is_answer } = *question;
    let (source_port, destination_port) = if is_answer { (port, 0) } else { (0, port) };
    let protocol = Probe::from(by).number() as u8;
    Transport {
        source,
        destination,
        source_port,
        destination_port,
        protocol,
        flags: is_answer.into(),
        hops: 0,
        is_at_zero: false,
    }
}

/// One end of a flow.
#[inline(always)]
const fn end_v4(address: u32, port: u16) -> u64 {
    (address as u64) << 16 | port as u64
}

#[inline(always)]
const fn address(high: u64, low: u64) -> u128 {
    (high as u128) << 64 | low as u128
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
            is_at_zero: false,
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
        assert_eq!(slot.partition(), keys.partition_v4(packet.destination, packet.source));
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
            is_at_zero: false,
        };
        let keys = HashKeys::random();
        let [first, rest] = Slot::v6(&keys, 7, 9, &packet);
        assert_eq!(first.addresses_v6(&rest), (packet.source, packet.destination));
        assert_eq!((first.time_ns(), first.wire_len(), first.ports()), (7, 9, (1, 65535)));
        assert!(first.is_v6() && !first.is_v6_rest() && rest.is_v6_rest() && !rest.is_v6());
        assert!(first.has_few_hops());
        assert!(!Slot::v6(&keys, 7, 9, &Transport { hops: 31, ..packet })[0].has_few_hops());
        assert_eq!(first.partition(), rest.partition());
        assert_eq!(first.partition(), keys.partition_v6(packet.destination, packet.source));
    }

    #[test]
    fn the_lesser_end_is_found_by_its_address_and_then_by_its_port() {
        let keys = HashKeys::random();
        // The halves of addresses are compared from the upper one on.
        let high = |address: u32| u128::from(address) << 64 | u128::from(u32::MAX - address);
        for (a, b) in [((1, 9), (2, 3)), ((0x1_0000, 3), (0xffff, 9)), ((7, 3), (7, 9)), ((7, 3), (7, 3))] {
            for ((source, source_port), (destination, destination_port)) in [(a, b), (b, a)] {
                let packet = Transport {
                    source: u128::from(source),
                    destination: u128::from(destination),
                    source_port,
                    destination_port,
                    protocol: UDP,
                    flags: 0,
                    hops: 64,
                    is_at_zero: false,
                };
                let expected = (source, source_port) <= (destination, destination_port);
                assert_eq!(Slot::v4(&keys, 0, 60, &packet.to_v4()).is_by_lesser(), expected, "{packet:?}");
                let packet = Transport { source: high(source), destination: high(destination), ..packet };
                assert_eq!(Slot::v6(&keys, 0, 60, &packet)[0].is_by_lesser(), expected, "{packet:?}");
            }
        }
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
    fn sweeps_spread_over_the_partitions_and_no_sum_of_addresses_gathers() {
        for seed in [0, 1, u64::MAX] {
            let keys = HashKeys::seeded(seed);
            type Pair = fn(u32) -> (u32, u32);
            let pairs: [(&str, Pair); 3] = [
                ("hosts", |host| (0x0a00_0001, 0xc0a8_0000 + host)),
                ("one sum", |host| (0x0a00_0000 + host, 0xc0a9_0000 - host)),
                ("one exclusive or", |host| (0x0a00_0000 ^ host, 0xc0a8_0000 ^ host)),
            ];
            for (name, pair) in pairs {
                let mut used = [[0; PARTITIONS]; 2];
                for (source, destination) in (0..65_536).map(pair) {
                    used[0][usize::from(keys.partition_v4(source, destination))] += 1;
                    let wide = |address: u32| u128::from(address) << 96 | u128::from(address);
                    used[1][usize::from(keys.partition_v6(wide(source), wide(destination)))] += 1;
                }
                assert!(used.as_flattened().iter().all(|pairs| (128..=512).contains(pairs)), "{seed} {name}: {used:?}");
            }
        }
    }

    #[test]
    fn the_seed_alone_says_which_partition_it_is() {
        let partitions = |seed| {
            let keys = HashKeys::seeded(seed);
            (0..64).map(|host| (keys.partition_v4(7, host), keys.partition_v6(7, host.into()))).collect::<Vec<_>>()
        };
        assert_eq!(partitions(5), partitions(5));
        assert_ne!(partitions(5), partitions(6));
    }
}
