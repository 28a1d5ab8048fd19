//! What both sides of an SSH connection state about themselves.

use crate::conversation::Side;
use crate::protocol::Text;

/// What the two sides state before they encrypt. One of them may not have been seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The time of the last byte that carried one of these facts, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The side that is the client. Where no packet shows it, that is the originator.
    pub client_side: Side,
    /// What the client states.
    pub client: Option<Peer>,
    /// What the server states.
    pub server: Option<Peer>,
}

/// What one side states about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The version of the protocol, such as `2.0`.
    pub protocol: Text,
    /// The software, without comments, such as `OpenSSH_9.7`.
    pub software: Text,
    /// The fingerprint of its offer, if that was seen.
    pub hassh: Option<Hassh>,
}

/// A fingerprint, HASSH of a client or HASSH server of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hassh {
    /// The MD5 of the text, in hexadecimal.
    pub hash: Text,
    /// The algorithms, separated by commas in each of the four lists, which are separated by semicolons.
    pub text: Text,
}
