//! The trait between conversations and the protocols inside them.

use super::side::Side;
use std::fmt;

/// Takes the bytes of one conversation in order.
///
/// For each side there are any number of calls of [`data`](Application::data) and [`gap`](Application::gap), in the
/// order of the stream, then at most one of [`end`](Application::end). Calls of the two sides alternate as the packets
/// did. So an answer usually comes behind its question, but not always: packets overtake each other, and a missing
/// packet holds back only its own side.
///
/// Times are nanoseconds since the epoch. A call has the time of the packet that made the bytes available, which may be
/// later than the packet that brought them. If no packet closes a conversation, its end has the time of its last
/// packet. Times can go backwards, as those of the packets can.
///
/// What is found goes into a `Found` that the conversations of a partition share. The [observer](super::Observer) takes
/// it out after every call, so that a conversation keeps no list of its own.
pub trait Application {
    /// What is found, for the observer to take: a list of events, or `()`.
    type Found: Default + fmt::Debug;

    /// Takes the next bytes of a TCP stream, in pieces of any size but never empty. For UDP, each call brings the
    /// payload of one datagram, which may be empty.
    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], found: &mut Self::Found);

    /// What this side has just sent acknowledges bytes of the other side that have not come: they were sent before, and
    /// are late or lost.
    fn answered_early(&mut self, side: Side) {
        let _ = side;
    }

    /// Takes a gap: `missing` bytes of a TCP stream, at least one, were not captured or could not be kept. The next
    /// [`data`](Application::data) of this side goes on behind them.
    fn gap(&mut self, side: Side, time_ns: u64, missing: u64, found: &mut Self::Found);

    /// Takes the end of this side: FIN, RST, time-out, eviction, or the end of the capture. No more bytes of it follow.
    fn end(&mut self, side: Side, time_ns: u64, found: &mut Self::Found);

    /// The bytes that it reserves outside of itself (capacities, not lengths). This is called after every packet that
    /// brought something, and the partition's memory is charged with the result, so it must be cheap and true.
    fn heap_bytes(&self) -> usize;

    /// Whether more bytes of this side are of use. After `false`, the bytes of this side are only counted, not put in
    /// order, and [`end`](Application::end) is the only further call for it.
    fn wants(&self, side: Side) -> bool {
        let _ = side;
        true
    }
}

/// Ignores everything: for conversations that are only counted.
impl Application for () {
    type Found = ();

    fn data(&mut self, _: Side, _: u64, _: &[u8], (): &mut ()) {}

    fn gap(&mut self, _: Side, _: u64, _: u64, (): &mut ()) {}

    fn end(&mut self, _: Side, _: u64, (): &mut ()) {}

    fn heap_bytes(&self) -> usize {
        0
    }

    fn wants(&self, _: Side) -> bool {
        false
    }
}
