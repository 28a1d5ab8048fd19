//! What travels from the Dispatcher to an application stage.

use corelane_net::capture::{Memory, Record};
use std::ops::Deref;
use std::sync::Arc;

/// One order of those that a stage follows one after the other. 32 bytes.
///
/// With `()` for its chunk it is plain data, as the rings of the papers ask for, which the bench has.
#[derive(Clone, Copy, Debug)]
pub enum Item<C = Chunk> {
    /// A packet, whose bytes lie in the chunk.
    Packet {
        /// Its time.
        time_ns: u64,
        /// Where its bytes begin.
        at: u64,
        /// How many there are.
        len: u32,
        /// How many there were.
        wire_len: u32,
        /// Its number less that of the last mark.
        behind: u32,
        /// Where its IP header begins, in its bytes.
        network: u16,
        /// Whose it is.
        partition: u8,
    },
    /// The chunk that the packets from here on lie in.
    Chunk(C),
    /// Time passes, before the packet of this number.
    Mark {
        /// The packet's number.
        number: u64,
        /// The time until then.
        time_ns: u64,
    },
    /// The next packet has this number at least, and no time has passed. A chunk comes before it.
    Passed {
        /// The packet's number, or less.
        number: u64,
    },
}

/// Bytes of packets, shared by the stages.
#[derive(Clone, Debug)]
pub enum Chunk {
    /// Those that a reader shares.
    Memory(Memory),
    /// Those that it lends only.
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

impl Item {
    /// `None` for a packet that is longer, or farther behind, than captures and marks allow.
    #[inline]
    pub(super) fn packet(record: &Record<'_>, at: usize, behind: u64, network: u16, partition: u8) -> Option<Self> {
        Some(Item::Packet {
            time_ns: record.time_ns,
            at: at as u64,
            len: u32::try_from(record.data.len()).ok()?,
            wire_len: record.wire_len,
            behind: u32::try_from(behind).ok()?,
            network,
            partition,
        })
    }
}

impl<C> Item<C> {
    /// The same order, with another thing for its chunk.
    #[inline]
    pub fn map_chunk<D>(self, map: impl FnOnce(C) -> D) -> Item<D> {
        match self {
            Item::Packet { time_ns, at, len, wire_len, behind, network, partition } => {
                Item::Packet { time_ns, at, len, wire_len, behind, network, partition }
            }
            Item::Chunk(chunk) => Item::Chunk(map(chunk)),
            Item::Mark { number, time_ns } => Item::Mark { number, time_ns },
            Item::Passed { number } => Item::Passed { number },
        }
    }
}

/// A packet from its IP header on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip<'a> {
    pub(super) time_ns: u64,
    /// Bytes of its frame on the wire.
    pub(super) wire_len: u32,
    /// Of those, how many were not captured.
    pub(super) uncaptured: u32,
    /// What was captured, from the IP header on.
    pub(super) bytes: &'a [u8],
}

impl<'a> Ip<'a> {
    /// Of a frame whose IP header begins at `network`.
    #[inline]
    pub(super) fn new(time_ns: u64, wire_len: u32, frame: &'a [u8], network: u16) -> Self {
        let captured = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let uncaptured = wire_len.saturating_sub(captured);
        Ip { time_ns, wire_len, uncaptured, bytes: &frame[usize::from(network)..] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_half_a_cache_line() {
        assert_eq!(size_of::<Item>(), 32);
        // Also in a ring where `None` is an unused element.
        assert_eq!(size_of::<Option<Item<()>>>(), 32);
    }
}
