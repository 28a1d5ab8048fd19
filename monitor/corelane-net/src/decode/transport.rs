//! TCP and UDP headers.

/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;

/// The TCP flags that decide about connections, as bits of [`Transport::flags`](super::Transport::flags).
pub mod flags {
    /// The sender has no more bytes.
    pub const FIN: u8 = 0x01;
    /// The sender opens.
    pub const SYN: u8 = 0x02;
    /// The connection is aborted.
    pub const RST: u8 = 0x04;
    /// The receiver is to hand over what it has.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number holds.
    pub const ACK: u8 = 0x10;
    /// Some of the bytes are urgent.
    pub const URG: u8 = 0x20;
}

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
    pub(super) is_at_zero: bool,
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
            is_at_zero: header[4..8] == [0; 4],
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
            is_at_zero: false,
        }),
        None => Found::Malformed,
    }
}
