//! IPv4 and IPv6 headers, and the extension headers of IPv6.

use super::{Decoded, Transport, transport};

/// The fragment offset and "more fragments" in an IPv4 header's seventh and eighth byte.
pub(super) const FRAGMENT_BITS: u16 = 0x3fff;
/// The fragment offset alone.
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// The fragment offset in an IPv6 fragment header.
const V6_FRAGMENT_OFFSET: u16 = 0xfff8;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

/// An IP packet of the version that it states.
pub(super) fn decode(data: &[u8]) -> Decoded {
    match data.first().map(|first| first >> 4) {
        Some(6) => decode_v6(data),
        _ => decode_v4(data),
    }
}

/// A packet that has to be IPv4.
#[inline]
pub(super) fn decode_v4(data: &[u8]) -> Decoded {
    let Some(header) = data.first_chunk::<20>() else {
        return Decoded::Malformed;
    };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < 20 || header_len > data.len() {
        return Decoded::Malformed;
    }
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // Shorter than the header: the card was to cut this segment and fill in the length.
    let end = if total_len < header_len { data.len() } else { total_len.min(data.len()) };
    if u16::from_be_bytes([header[6], header[7]]) & FRAGMENT_OFFSET != 0 {
        return Decoded::OtherIp;
    }
    match transport::decode(header[9], &data[header_len..end]) {
        transport::Found::Ports(ports) => Decoded::V4(Transport {
            source: u32::from_be_bytes([header[12], header[13], header[14], header[15]]),
            destination: u32::from_be_bytes([header[16], header[17], header[18], header[19]]),
            source_port: ports.source,
            destination_port: ports.destination,
            protocol: header[9],
            flags: ports.flags,
        }),
        transport::Found::Other => Decoded::OtherIp,
        transport::Found::Malformed => Decoded::Malformed,
    }
}

/// A packet that has to be IPv6.
#[inline]
pub(super) fn decode_v6(data: &[u8]) -> Decoded {
    let Some((header, rest)) = data.split_first_chunk::<40>() else {
        return Decoded::Malformed;
    };
    if header[0] >> 4 != 6 {
        return Decoded::Malformed;
    }
    let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    // 0 is a length beyond 16 bits, or one that the card was to fill in.
    let end = if payload_len == 0 { rest.len() } else { payload_len.min(rest.len()) };
    let (protocol, payload) = match skip_extensions(header[6], &rest[..end]) {
        Ok(upper) => upper,
        Err(decoded) => return decoded,
    };
    match transport::decode(protocol, payload) {
        transport::Found::Ports(ports) => Decoded::V6(Transport {
            source: address(header, 8),
            destination: address(header, 24),
            source_port: ports.source,
            destination_port: ports.destination,
            protocol,
            flags: ports.flags,
        }),
        transport::Found::Other => Decoded::OtherIp,
        transport::Found::Malformed => Decoded::Malformed,
    }
}

#[inline]
fn address(header: &[u8; 40], at: usize) -> u128 {
    u128::from_be_bytes(*header[at..].first_chunk().expect("two addresses fit into the header"))
}

/// The protocol behind the extension headers, and its bytes. Every header takes at least eight bytes, so this ends.
#[inline]
fn skip_extensions(mut next: u8, mut payload: &[u8]) -> Result<(u8, &[u8]), Decoded> {
    loop {
        let len = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => 8 * (1 + extension_len(payload)?),
            AUTHENTICATION => 4 * (2 + extension_len(payload)?),
            FRAGMENT => {
                let header = payload.first_chunk::<8>().ok_or(Decoded::Malformed)?;
                if u16::from_be_bytes([header[2], header[3]]) & V6_FRAGMENT_OFFSET != 0 {
                    return Err(Decoded::OtherIp);
                }
                8
            }
            _ => return Ok((next, payload)),
        };
        let (header, rest) = payload.split_at_checked(len).ok_or(Decoded::Malformed)?;
        next = header[0];
        payload = rest;
    }
}

/// The length field of an extension header, in units and without an offset that both depend on the header.
fn extension_len(payload: &[u8]) -> Result<usize, Decoded> {
    payload.get(1).map(|&len| usize::from(len)).ok_or(Decoded::Malformed)
}
