//! What a protocol's parser is.

use super::Carrier;
use super::list::{Event, Protocol};
use super::text::Detail;
use crate::conversation::Side;
use std::fmt;

/// What is known of a conversation when its parser begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) carrier: Carrier,
    /// The client's side, or where that is not known the one that was identified.
    pub(super) client: Side,
    pub(super) detail: Detail,
    /// HTTP exchanges before the tunnel that this is in.
    pub(super) exchanges: u64,
}

/// Reads the bytes of a conversation of one protocol, in any pieces, and makes events.
///
/// No bytes make it panic, and the events depend on the bytes, the gaps and the order of the two sides alone: targets
/// for [fuzzing](super::fuzz) check every parser of the list.
pub(super) trait Parser: fmt::Debug + Sized {
    /// What it is read over; the example comes over the first.
    const CARRIERS: &'static [Carrier];
    /// The most that [`heap_bytes`](Parser::heap_bytes) ever is.
    const MOST: usize;
    /// What these bytes are, for a table.
    const HOLDS: &'static str;

    /// A parser before the first byte. The protocol is one whose line in the list names this parser.
    fn new(protocol: Protocol, start: Start) -> Self;

    /// Takes the next bytes of a side, or a datagram. A number says that the conversation goes on with another
    /// protocol, and how many of the bytes came before that.
    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> Option<usize>;

    /// Takes a gap in a stream. Datagrams have none.
    fn gap(&mut self, side: Side, time_ns: u64, missing: u64, out: &mut Vec<Event>);

    /// Takes the end of a side.
    fn end(&mut self, side: Side, time_ns: u64, out: &mut Vec<Event>);

    /// Whether more bytes of a side are of use.
    fn wants(&self, side: Side) -> bool;

    /// The bytes that it reserves outside of itself. Called after every packet, so it must be cheap.
    fn heap_bytes(&self) -> usize;

    /// Whether it can be dropped, as nothing further is of interest.
    fn is_over(&self) -> bool {
        false
    }

    /// The bytes of a side that it has kept and that belong to the protocol behind it.
    fn take_rest(&mut self, _side: Side) -> Vec<u8> {
        Vec::new()
    }

    /// HTTP exchanges of the conversation so far.
    fn exchanges(&self) -> u64 {
        0
    }

    /// A short conversation from its first byte on, with an event: it leads tests and fuzzing into the parser.
    fn example(protocol: Protocol) -> Vec<(Side, Vec<u8>)>;
}
