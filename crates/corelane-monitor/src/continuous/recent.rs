//! The flows that had a packet a moment ago.
//!
//! Most packets of TCP say nothing new: their flow had a packet in this step already, and they neither open nor close.
//! To know that of one costs a look at a table that fits into the caches. To find its flow may cost a look at memory
//! that does not. A flow has an entry for each direction, and loses it to any other that falls on the same place.

use crate::analyzer::family::Family;
use crate::hash::HashKeys;
use crate::key::Key;
use corelane_net::decode::Transport;

/// The most bytes of the table of one address family: a part of the second cache.
const BYTES: usize = 32 << 10;

/// The TCP flows of one address family that had a packet in the current step, as far as there is a place for them.
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
    /// Whether a packet of this direction of a flow was there in this step. From now on, one was.
    #[inline(always)]
    pub(super) fn had(&mut self, keys: &HashKeys, packet: &Transport<A>, step: u64) -> bool {
        let direction = A::direction(packet, step);
        let place = (direction.hash(keys) >> 32) as usize & (self.directions.len() - 1);
        let Some(entry) = self.directions.get_mut(place) else { return false };
        let had = entry.equals(&direction);
        if !had {
            *entry = direction;
        }
        had
    }
}
