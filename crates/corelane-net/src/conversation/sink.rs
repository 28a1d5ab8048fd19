//! The seam between conversations and the protocols inside them.

use super::entry::{Conversation, Ending};

/// Which end of a conversation sent.
///
/// Who opened a TCP connection is known from its handshake. Of a connection whose handshake was not captured, and of UDP, the
/// originator is who was seen first, with a guess by port numbers where that was in the middle. So a protocol that can tell by
/// content which end is the client should go by content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The end that opened the conversation.
    Originator,
    /// The end that answered.
    Responder,
}

impl Side {
    /// Both ends.
    pub const BOTH: [Side; 2] = [Side::Originator, Side::Responder];

    /// The end at the other side.
    #[must_use]
    pub const fn other(self) -> Side {
        match self {
            Side::Originator => Side::Responder,
            Side::Responder => Side::Originator,
        }
    }

    /// 0 for the originator, 1 for the responder.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Takes the bytes of one conversation in order.
///
/// For each side the calls are any number of [`data`](Application::data) and [`gap`](Application::gap), in the order of the
/// stream, then at most one [`end`](Application::end). The two sides are interleaved as the packets were, so an answer usually comes
/// behind its question, but not always: packets overtake each other, and a missing one holds back only its own side.
///
/// Times are nanoseconds since the epoch: of the packet that made the bytes available, which may be later than the one that
/// brought them; at the end of a conversation that no packet closed, of its last one. They can go backwards as the packets'
/// times can.
pub trait Application {
    /// The next bytes of a TCP stream, in pieces of any size but never empty; of UDP the payload of one datagram a call, which may
    /// be empty.
    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8]);

    /// So many bytes of a TCP stream were not captured, or could not be kept, and are skipped: at least one. The next
    /// [`data`](Application::data) of this side goes on behind them.
    fn gap(&mut self, side: Side, time_ns: u64, missing: u64);

    /// Nothing further comes from this side: FIN, RST, time-out, eviction, or the end of the capture.
    fn end(&mut self, side: Side, time_ns: u64);

    /// The bytes that it holds outside of itself, by what is reserved (capacities, not lengths). Asked after every packet that
    /// brought something, and charged to the memory of the partition, so it has to be cheap and has to be true.
    fn heap_bytes(&self) -> usize;

    /// Whether more of this side is of use. Once it says no, the bytes of this side are only counted, not put in order, and none of
    /// the calls above but [`end`](Application::end) comes for it again.
    fn wants(&self, side: Side) -> bool {
        let _ = side;
        true
    }
}

/// What is done about the conversations of a partition: which protocols look into them, and where their records go.
pub trait Observer<A: Application> {
    /// A conversation has brought its first payload. `None` if nobody is to look into it; then it is only counted.
    fn begin(&mut self, conversation: &Conversation) -> Option<A>;

    /// A packet, or a mark, has made an application take something; so here is what it found to be fetched.
    fn progress(&mut self, conversation: &Conversation, application: &mut A) {
        let _ = (conversation, application);
    }

    /// A conversation is over. Both sides of its application, if it has one, have been told.
    fn over(&mut self, conversation: &Conversation, ending: &Ending, application: Option<A>);
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
