//! The orders that go from the Dispatcher to an application stage.

use crate::dispatch::Place;
use crate::lending::Lent;
use corelane_net::capture::{LinkType, Memory, Record};
use std::ops::Deref;
use std::sync::Arc;

/// An order of 32 bytes; a stage follows its orders one after the other.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A packet whose bytes lie in the chunk.
    Packet {
        /// Its time, in nanoseconds since the epoch.
        time_ns: u64,
        /// The offset of its bytes in the chunk.
        at: Offset,
        /// The number of captured bytes that may belong to it.
        len: u32,
        /// The number of bytes on the wire.
        wire_len: u32,
        /// The number of its [`LinkType`].
        link: u16,
        /// Its number minus that of the last mark.
        behind: u16,
        /// The offset of its IP header in its bytes.
        network: u16,
        /// The offset of its outermost IP header; another one if the packet came through tunnels.
        outermost: u16,
        /// The partition that it belongs to.
        partition: u8,
    },
    /// The chunk of the packets from here on.
    Chunk(Chunk),
    /// A mark: time passes before the packet of this number.
    Mark {
        /// The packet's number.
        number: u64,
        /// The time up to then.
        time_ns: u64,
        /// Whether all numbers so far are wanted.
        snapshot: bool,
    },
    /// The room of partitions from here on, behind the mark of a step.
    Lent(Arc<Lent>),
    /// The next packet has at least this number, and no time has passed. A chunk comes before that packet.
    Passed {
        /// The packet's number, or less.
        number: u64,
    },
}

/// An offset of 48 bits, the upper ones last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset([u16; 3]);

/// Bytes of packets, shared by the stages.
#[derive(Clone, Debug)]
pub(super) enum Chunk {
    /// Memory that a reader shares.
    Memory(Memory),
    /// Copies of bytes that a reader only lends.
    Copied(Arc<Vec<u8>>),
}

impl Deref for Chunk {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Chunk::Memory(bytes) => bytes,
            Chunk::Copied(bytes) => bytes,
        }
    }
}

impl Offset {
    #[inline]
    fn new(at: usize) -> Option<Self> {
        let at = at as u64;
        (at >> 48 == 0).then_some(Offset([at as u16, (at >> 16) as u16, (at >> 32) as u16]))
    }

    #[inline]
    pub(super) fn get(self) -> usize {
        let [low, middle, high] = self.0;
        (u64::from(high) << 32 | u64::from(middle) << 16 | u64::from(low)) as usize
    }
}

impl Item {
    /// `None` for a packet that is longer, or farther behind, than captures and marks allow, and of a link type whose
    /// number is too large for those that are read.
    #[inline]
    pub(super) fn packet(record: &Record<'_>, at: usize, behind: u64, place: Place) -> Option<Self> {
        Some(Item::Packet {
            time_ns: record.time_ns,
            at: Offset::new(at)?,
            len: u32::try_from(record.data.len()).ok()?,
            wire_len: record.wire_len,
            link: u16::try_from(record.link.0).ok()?,
            behind: u16::try_from(behind).ok()?,
            network: place.network,
            outermost: place.outermost,
            partition: place.partition,
        })
    }
}

/// A captured packet whose IP header was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) time_ns: u64,
    /// Its bytes on the wire.
    pub(super) wire_len: u32,
    pub(super) link: LinkType,
    /// Those that were captured and may belong to its packet.
    pub(super) data: &'a [u8],
    /// As in [`Place`].
    pub(super) network: u16,
    pub(super) outermost: u16,
    pub(super) partition: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_half_a_cache_line() {
        assert_eq!(size_of::<Item>(), 32);
    }
}
