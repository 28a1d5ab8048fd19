//! The facts about a conversation that is identified.

use std::fmt;

use crate::conversation::Side;
use crate::protocol::Protocol;

/// The identified protocol, with its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identified {
    /// The protocol.
    pub protocol: Protocol,
    /// The evidence: a phrase such as `TLS record, ClientHello`.
    pub evidence: &'static str,
    /// The side whose bytes are the evidence.
    pub side: Side,
    /// The client's side, where the evidence shows it.
    pub client: Option<Side>,
    /// The time of the bytes that decided, in nanoseconds since the epoch.
    pub time_ns: u64,
}

impl fmt::Display for Identified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.protocol, self.evidence)
    }
}
