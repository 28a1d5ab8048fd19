//! The flows that had a packet a moment ago.
//!
//! Most packets say nothing new: their flow had a packet of this direction in this step already, and they neither open
//! nor close. To know that of one costs a look at a table that fits into the caches. To find its flow may cost a look
//! at memory that does not. A flow has an entry for each direction, and loses it to any other that falls on the same
//! place.

use crate::analyzer::family::Family;
use crate::key::Key;
use crate::slot::Slot;

/// The most bytes of the table of one address family: a part of the second cache.
const BYTES: usize = 32 << 10;

/// The flows of one address family that had a packet in the current step, as far as there is a place for them.
#[derive(Debug)]
pub(super) struct Recent<A: Family> {
    /// A power of two. Those of earlier steps are never asked for.
    directions: Box<[A::Key]>,
}

impl<A: Family> Default for Recent<A> {
    fn default() -> Self {
        Recent { directions: vec![A::Key::EMPTY; 1 << (BYTES / size_of::<A::Key>()).ilog2()].into() }
    }
}

impl<A: Family> Recent<A> {
    /// Whether the flow of the packet with these first slots had one of its direction in this step. From now on, it
    /// had.
    #[inline(always)]
    pub(super) fn had(&mut self, packet: &[Slot], step: u64) -> bool {
        let direction = A::direction(packet, 0, step);
        let place = packet[0].flow_hash() ^ u32::from(packet[0].is_by_lesser());
        let place = place as usize & (self.directions.len() - 1);
        let Some(entry) = self.directions.get_mut(place) else { return false };
        // Written also if it is the same, as that needs no branch.
        std::mem::replace(entry, direction).equals(&direction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Run;
    use corelane_net::decode::{TCP, Transport, UDP};
    use std::collections::HashSet;

    /// Packets that fall on one place must not be taken for one another.
    #[test]
    fn no_two_directions_or_steps_have_the_same_key() {
        let keys = Run::new().keys;
        let (mut v4, mut v6) = (HashSet::new(), HashSet::new());
        let mut packets = 0;
        for (source, destination) in [(1_u128, 2), (2, 1), (1, 3)] {
            for (source_port, destination_port) in [(80, 443), (443, 80)] {
                for (protocol, step) in [(TCP, 0), (UDP, 0), (TCP, 1), (UDP, 1), (TCP, 1 << 29), (UDP, 1 << 29)] {
                    let packet = Transport {
                        source,
                        destination,
                        source_port,
                        destination_port,
                        protocol,
                        flags: 0,
                        hops: 64,
                        is_at_zero: false,
                    };
                    packets += 1;
                    v4.insert(u32::direction(&[Slot::v4(&keys, 0, 60, &packet.to_v4())], 0, step));
                    v6.insert(u128::direction(&Slot::v6(&keys, 0, 60, &packet), 0, step));
                }
            }
        }
        assert_eq!((v4.len(), v6.len()), (packets, packets));
    }
}
