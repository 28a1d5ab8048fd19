//! The two ends of a conversation.

/// The end of a conversation that sent.
///
/// The handshake of a TCP connection shows which end opened it. Without a captured handshake, and for UDP, the
/// originator is the end that was seen first, or a guess by port numbers if the connection was picked up in the middle.
/// So a protocol whose content shows the client should use its content.
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

    /// The opposite end.
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
