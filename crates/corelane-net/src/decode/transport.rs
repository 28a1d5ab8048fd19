//! TCP and UDP headers.

use super::{TCP, UDP};

/// What stands behind an IP header.
pub(super) enum Found {
    Ports(Ports),
    /// Another protocol.
    Other,
    Malformed,
}

pub(super) struct Ports {
    pub(super) source: u16,
    pub(super) destination: u16,
    pub(super) flags: u8,
}

#[inline]
pub(super) fn decode(protocol: u8, payload: &[u8]) -> Found {
    match protocol {
        TCP => tcp(payload),
        UDP => udp(payload),
        _ => Found::Other,
    }
}

/// The 20 bytes without options have to be there, and the header has to claim them; options may be cut.
#[inline]
fn tcp(payload: &[u8]) -> Found {
    match payload.first_chunk::<20>() {
        Some(header) if header[12] >> 4 >= 5 => Found::Ports(Ports {
            source: u16::from_be_bytes([header[0], header[1]]),
            destination: u16::from_be_bytes([header[2], header[3]]),
            flags: header[13],
        }),
        _ => Found::Malformed,
    }
}

/// The length field is not judged: it is 0 for what the card was to cut, and in jumbograms.
#[inline]
fn udp(payload: &[u8]) -> Found {
    match payload.first_chunk::<8>() {
        Some(header) => Found::Ports(Ports {
            source: u16::from_be_bytes([header[0], header[1]]),
            destination: u16::from_be_bytes([header[2], header[3]]),
            flags: 0,
        }),
        None => Found::Malformed,
    }
}
