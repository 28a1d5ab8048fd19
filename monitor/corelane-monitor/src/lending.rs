//! Room that partitions with many flows borrow from those with few, in a run in which time passes in steps.
//!
//! One scan is one address pair, so all of its attempts are in one partition. With a fixed share of the memory for each
//! partition it would evict its own failures while nearly all memory is empty.
//!
//! 1. The Dispatcher estimates for each partition how many flows began in it, by a HyperLogLog of [`REGISTERS`]
//!    registers (Flajolet, Fusy, Gandouet, Meunier 2007). It counts packets that may begin a flow: UDP, and TCP without
//!    ACK. It knows the flows of the current window and of the one before, each as long as failures are remembered.
//! 2. At the end of a step it lends: each partition keeps half of its share for itself, and the other halves are lent
//!    in doublings. All that need the first doubling get it, then all that need the second, and so on; when not all can
//!    get one, those with more flows do.
//! 3. What was lent goes to the stages behind the mark of that step, when it has changed. A partition whose room became
//!    less evicts at once.
//!
//! So what a partition may hold depends on packets, settings and the seed alone, and not on which thread has it or how
//! far that has come. A stage that is behind the others gives room back later than these take it: for that long both
//! have it.

use crate::hash::{HashKeys, mixed};
use crate::room::Room;
use crate::slot::PARTITIONS;
use crate::table::limit;
use corelane_net::decode::flags::ACK;
use corelane_net::decode::{TCP, Transport};
use std::sync::Arc;

/// The standard error is 1.04 divided by the root of this, 13 %: as good as doublings need.
const REGISTERS: usize = 64;

/// Of each partition, the doublings of its share that it may take: -1 is half of it.
pub(crate) type Lent = [i8; PARTITIONS];

/// What is lent at first, and where memory has no limit: nothing.
pub(crate) fn at_first() -> Lent {
    [-1; PARTITIONS]
}

/// The most doublings: with them one partition has half of all room.
const MOST: i8 = 7;

type Registers = Box<[[u8; REGISTERS]; PARTITIONS]>;

/// The needs of all partitions, and what was lent to them.
#[derive(Clone, Debug)]
pub(crate) struct Lending {
    keys: HashKeys,
    /// Of this window and of the one before.
    windows: [Registers; 2],
    /// The number of this window, once a step has begun.
    window: Option<u64>,
    /// The seconds of a window.
    window_s: u64,
    /// The entries that half of a share has room for.
    half: u64,
    lent: Arc<Lent>,
}

impl Lending {
    /// `None` if memory has no limit.
    pub(crate) fn new(keys: HashKeys, room: Room, window_s: u64) -> Option<Self> {
        let half = limit(room.failures(size_of::<[u64; 4]>(), -1)) as u64;
        let none = || Box::new([[0; REGISTERS]; PARTITIONS]);
        room.is_limited().then(|| Lending {
            keys,
            windows: [none(), none()],
            window: None,
            window_s: window_s.max(1),
            half,
            lent: Arc::new(at_first()),
        })
    }

    /// A packet.
    #[inline(always)]
    pub(crate) fn v4(&mut self, packet: &Transport<u32>) {
        if begins(packet.protocol, packet.flags) {
            let addresses = u64::from(packet.source) << 32 | u64::from(packet.destination);
            let partition = self.keys.partition_v4(packet.source, packet.destination);
            self.see(partition, self.keys.seeded_hash([addresses, ports(packet)]));
        }
    }

    /// The same; of entries of IPv6 a quarter has room.
    #[inline(always)]
    pub(crate) fn v6(&mut self, packet: &Transport<u128>) {
        if begins(packet.protocol, packet.flags) {
            let Transport { source, destination, .. } = *packet;
            let partition = self.keys.partition_v6(source, destination);
            let source = self.keys.seeded_hash([(source >> 64) as u64, source as u64]);
            let destination = self.keys.seeded_hash([(destination >> 64) as u64, destination as u64]);
            let hash = self.keys.seeded_hash([source ^ destination.rotate_left(1), ports(packet)]);
            (0..4).for_each(|fourth| self.see(partition, self.keys.seeded_hash([hash, fourth])));
        }
    }

    #[inline(always)]
    fn see(&mut self, partition: u8, hash: u64) {
        // Ports that ascend have hashes at even distances, which are no random numbers.
        let hash = mixed(hash);
        let registers = &mut self.windows[0][usize::from(partition)];
        let register = &mut registers[hash as usize % REGISTERS];
        *register = (*register).max(hash.leading_zeros() as u8 + 1);
    }

    /// A step has begun: what is lent from now on, if that has changed.
    pub(crate) fn lend(&mut self, step: u64) -> Option<Arc<Lent>> {
        let window = step / self.window_s;
        let passed = window.saturating_sub(self.window.unwrap_or(window));
        self.window = self.window.max(Some(window));
        if passed > 0 {
            self.windows.swap(0, 1);
            for registers in self.windows.iter_mut().take(if passed > 1 { 2 } else { 1 }) {
                registers.as_flattened_mut().fill(0);
            }
        }
        let needs: Vec<u64> = (0..PARTITIONS).map(|partition| self.flows(partition)).collect();
        let lent = divide(&needs, self.half);
        (lent != *self.lent).then(|| {
            self.lent = Arc::new(lent);
            Arc::clone(&self.lent)
        })
    }

    /// About how many flows began in this partition.
    fn flows(&self, partition: usize) -> u64 {
        let [now, before] = self.windows.each_ref().map(|window| &window[partition]);
        let sum: u64 = now.iter().zip(before).map(|(&now, &before)| (1 << 40) >> now.max(before).min(40)).sum();
        // 0.709 of the square of the registers, divided by the sum of 2^-register.
        let many = (2904_u64 << 40) / sum;
        let empty = now.iter().zip(before).filter(|&(&now, &before)| now.max(before) == 0).count();
        // Few are told by the registers that have seen none, section 4 of the paper.
        if many > 160 || empty == 0 { many } else { (64.0 * (64.0 / empty as f64).ln()).ceil() as u64 }
    }
}

/// Whether a packet may begin a flow.
#[inline(always)]
fn begins(protocol: u8, flags: u8) -> bool {
    protocol != TCP || flags & ACK == 0
}

#[inline(always)]
fn ports<A>(packet: &Transport<A>) -> u64 {
    u64::from(packet.protocol) << 32 | u64::from(packet.source_port) << 16 | u64::from(packet.destination_port)
}

/// What each partition gets that needs room for so many entries, `half` of which fit into half of a share.
fn divide(needs: &[u64], half: u64) -> Lent {
    let mut lent = at_first();
    // In halves of a share: those of all partitions that each gives up.
    let mut left = PARTITIONS;
    for doubling in 0..=MOST {
        let cost = 1 << doubling;
        // As many again may come before the next step.
        let has_too_little = |need: u64| need.saturating_mul(2) > half.saturating_mul(cost);
        let mut needing: Vec<usize> = (0..needs.len()).filter(|&partition| has_too_little(needs[partition])).collect();
        // Those that did not get the doubling before get no other.
        needing.retain(|&partition| lent[partition] == doubling - 1);
        needing.sort_by_key(|&partition| std::cmp::Reverse(needs[partition]));
        for partition in needing {
            let Some(rest) = left.checked_sub(cost as usize) else { return lent };
            left = rest;
            lent[partition] = doubling;
        }
    }
    lent
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The room of all, in halves of a share.
    fn taken(lent: &Lent) -> usize {
        lent.iter().map(|&lent| 1_usize << (lent + 1)).sum()
    }

    #[test]
    fn one_that_needs_much_gets_half_of_all_room_and_others_keep_theirs() {
        let mut needs = [0; PARTITIONS];
        needs[7] = 65_536;
        let lent = divide(&needs, 100);
        assert_eq!((lent[7], lent[8]), (MOST, -1));
        needs[8] = 300;
        let lent = divide(&needs, 100);
        assert_eq!((lent[7], lent[8]), (6, 2));
        assert_eq!(divide(&[65_536; PARTITIONS], 100), [0; PARTITIONS], "where all need much, all have their share");
        assert_eq!(divide(&[50; PARTITIONS], 100), [-1; PARTITIONS]);
    }

    proptest! {
        #[test]
        fn no_more_is_lent_than_there_is_and_more_flows_never_get_less(
            needs in prop::collection::vec(prop_oneof![0_u64..200, 0..100_000_u64], PARTITIONS),
        ) {
            let lent = divide(&needs, 100);
            prop_assert!(taken(&lent) <= 2 * PARTITIONS);
            for (a, b) in (0..PARTITIONS).zip(1..PARTITIONS) {
                prop_assert!((needs[a] <= needs[b]) | (lent[a] >= lent[b]), "{} {}: {lent:?}", needs[a], needs[b]);
            }
        }
    }

    #[test]
    fn flows_are_estimated_and_forgotten_after_two_windows() {
        (0..20).for_each(estimated);
    }

    fn estimated(seed: u64) {
        let settings = crate::Settings { table_bytes: Some(256 << 20), ..crate::Settings::default() };
        let keys = HashKeys::seeded(seed);
        let mut lending = Lending::new(keys, Room::of(&settings), 900).unwrap();
        assert!(lending.lend(1_000_000).is_none(), "nothing to change");
        let packet = |port| Transport {
            source: 0x0a00_0001,
            destination: 0x0a00_0002,
            source_port: 40_000,
            destination_port: port,
            protocol: TCP,
            flags: 2,
            hops: 64,
            is_at_zero: false,
        };
        let partition = usize::from(keys.partition_v4(0x0a00_0001, 0x0a00_0002));
        assert_eq!(lending.flows(partition), 0);
        lending.v4(&packet(1));
        assert!((1..=2).contains(&lending.flows(partition)));
        for count in [100_u16, 3_000, 60_000] {
            (0..count).for_each(|port| (0..2).for_each(|_| lending.v4(&packet(port))));
            let found = lending.flows(partition) as f64 / f64::from(count);
            assert!((0.6..1.6).contains(&found), "{seed} {count}: {found}");
        }
        // Answers and what follows begin nothing.
        let before = lending.flows(partition);
        (0..u16::MAX).for_each(|port| lending.v4(&Transport { source_port: port, flags: 0x12, ..packet(80) }));
        assert_eq!(lending.flows(partition), before);
        let lent = lending.lend(1_000_001).expect("it needs more");
        assert!(lent[partition] > 3, "{}", lent[partition]);
        assert!(lending.lend(1_000_900).is_none(), "the window before counts");
        assert_eq!(*lending.lend(1_001_800).expect("it needs no more"), [-1; PARTITIONS]);
    }
}
