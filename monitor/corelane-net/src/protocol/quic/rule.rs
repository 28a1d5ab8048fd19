//! The rule that identifies QUIC.

use super::header::{Kind, long};
use crate::protocol::Protocol;
use crate::protocol::identify::Says::{self, No, Yes};
use crate::protocol::identify::Speaker::{Either, Server};

/// A long header of an assigned version, with identifiers and lengths that fit. The fixed bit is demanded, though ends
/// that agreed on it before may clear it (RFC 9287): without it too much else would look like QUIC. In a version
/// negotiation that bit has no meaning.
pub(in crate::protocol) fn packet(bytes: &[u8]) -> Says {
    let Some(packet) = long(bytes) else {
        return No;
    };
    match packet.kind {
        kind if kind != Kind::Negotiation && !(packet.is_fixed && packet.is_long_enough) => No,
        Kind::Negotiation => Yes(Protocol::Quic, "QUIC version negotiation", Server),
        Kind::Retry => Yes(Protocol::Quic, "QUIC Retry packet", Server),
        Kind::Initial if bytes.len() >= 1200 && packet.destination.len() >= 8 => {
            Yes(Protocol::Quic, "QUIC Initial packet", Either)
        }
        Kind::Initial => Yes(Protocol::Quic, "QUIC Initial packet, short", Either),
        Kind::ZeroRtt | Kind::Handshake => Yes(Protocol::Quic, "QUIC long header", Either),
    }
}
