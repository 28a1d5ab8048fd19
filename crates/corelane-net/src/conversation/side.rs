//! The two ends of a conversation.

/// Which end of a conversation sent.
///
/// Which end opened a TCP connection is known from its handshake. Of a connection whose handshake was not captured, and
/// of UDP, the originator is the end that was seen first, with a guess by port numbers where that was in the middle. So
/// a protocol that can tell by content which end is the client should go by content.
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
