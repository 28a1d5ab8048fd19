//! The seam between conversations and the protocols inside them.

use super::side::Side;

/// Takes the bytes of one conversation in order.
///
/// For each side the calls are any number of [`data`](Application::data) and [`gap`](Application::gap), in the order of
/// the stream, then at most one [`end`](Application::end). The two sides are interleaved as the packets were, so an
/// answer usually comes behind its question, but not always: packets overtake each other, and a missing one holds back
/// only its own side.
///
/// Times are nanoseconds since the epoch: of the packet that made the bytes available, which may be later than the one
/// that brought them; at the end of a conversation that no packet closed, of its last one. They can go backwards as the
/// packets' times can.
pub trait Application {
    /// The next bytes of a TCP stream, in pieces of any size but never empty; of UDP the payload of one datagram a
    /// call, which may be empty.
    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8]);

    /// So many bytes of a TCP stream were not captured, or could not be kept, and are skipped: at least one. The next
    /// [`data`](Application::data) of this side goes on behind them.
    fn gap(&mut self, side: Side, time_ns: u64, missing: u64);

    /// Nothing further comes from this side: FIN, RST, time-out, eviction, or the end of the capture.
    fn end(&mut self, side: Side, time_ns: u64);

    /// The bytes that it holds outside of itself, by what is reserved (capacities, not lengths). Asked after every
    /// packet that brought something, and charged to the memory of the partition, so it has to be cheap and has to be
    /// true.
    fn heap_bytes(&self) -> usize;

    /// Whether more of this side is of use. Once it says no, the bytes of this side are only counted, not put in order,
    /// and none of the calls above but [`end`](Application::end) comes for it again.
    fn wants(&self, side: Side) -> bool {
        let _ = side;
        true
    }
}

/// Takes nothing: for conversations that are only counted.
impl Application for () {
    fn data(&mut self, _: Side, _: u64, _: &[u8]) {}

    fn gap(&mut self, _: Side, _: u64, _: u64) {}

    fn end(&mut self, _: Side, _: u64) {}

    fn heap_bytes(&self) -> usize {
        0
    }

    fn wants(&self, _: Side) -> bool {
        false
    }
}
