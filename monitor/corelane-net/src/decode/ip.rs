//! IPv4 and IPv6 headers, and the extension headers of IPv6.

use super::datagram::{Datagram, Fragment, NoDatagram, mapped};
use super::decoded::{Decoded, Transport};
use super::packet::NoPacket;
use super::transport;
use super::vlans::Vlans;

/// The fragment offset and "more fragments" in an IPv4 header's seventh and eighth byte.
pub(super) const FRAGMENT_BITS: u16 = 0x3fff;
/// The fragment offset alone.
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// "More fragments" in the same bytes.
const MORE_FRAGMENTS: u16 = 0x2000;
/// The fragment offset in an IPv6 fragment header, in bytes.
const V6_FRAGMENT_OFFSET: u16 = 0xfff8;
/// "More fragments" in the same bytes.
const V6_MORE_FRAGMENTS: u16 = 1;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;

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
    if u16::from_be_bytes([header[6], header[7]]) & FRAGMENT_BITS != 0 {
        return Decoded::Fragment;
    }
    let (mut protocol, mut payload) = (header[9], &data[header_len..end]);
    if protocol == AUTHENTICATION {
        match behind_authentication(protocol, payload) {
            Ok(behind) => (protocol, payload) = behind,
            Err(_) => return Decoded::Malformed,
        }
    }
    match transport::decode(protocol, payload) {
        transport::Found::Ports(ports) => Decoded::V4(Transport {
            source: u32::from_be_bytes([header[12], header[13], header[14], header[15]]),
            destination: u32::from_be_bytes([header[16], header[17], header[18], header[19]]),
            source_port: ports.source,
            destination_port: ports.destination,
            protocol,
            flags: ports.flags,
            hops: header[8],
            is_at_zero: ports.is_at_zero,
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
    let Ok(Upper { next: protocol, payload, fragment }) = skip_extensions(header[6], &rest[..end]) else {
        return Decoded::Malformed;
    };
    if fragment.is_some() {
        return Decoded::Fragment;
    }
    match transport::decode(protocol, payload) {
        transport::Found::Ports(ports) => Decoded::V6(Transport {
            source: address(header, 8),
            destination: address(header, 24),
            source_port: ports.source,
            destination_port: ports.destination,
            protocol,
            flags: ports.flags,
            hops: header[7],
            is_at_zero: ports.is_at_zero,
        }),
        transport::Found::Other => Decoded::OtherIp,
        transport::Found::Malformed => Decoded::Malformed,
    }
}

#[inline]
fn address(header: &[u8; 40], at: usize) -> u128 {
    u128::from_be_bytes(*header[at..].first_chunk().expect("two addresses fit into the header"))
}

/// What stands behind extension headers.
struct Upper<'a> {
    /// The number of the next header.
    next: u8,
    payload: &'a [u8],
    /// Set if what stopped the walk is a header of one fragment of several.
    fragment: Option<Fragment>,
}

/// Steps over extension headers, up to the first of a fragment. Every header takes at least eight bytes, so this ends.
#[inline]
fn skip_extensions(mut next: u8, mut payload: &[u8]) -> Result<Upper<'_>, NoDatagram> {
    let mut fragment = None;
    while fragment.is_none() {
        let len = match next {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HOST_IDENTITY | SHIM6 => 8 * (1 + extension_len(payload)?),
            AUTHENTICATION => authentication_len(payload)?,
            FRAGMENT => {
                fragment = v6_fragment(payload.first_chunk().ok_or(NoDatagram::Malformed)?);
                8
            }
            _ => break,
        };
        let (header, rest) = payload.split_at_checked(len).ok_or(NoDatagram::Malformed)?;
        next = header[0];
        payload = rest;
    }
    Ok(Upper { next, payload, fragment })
}

/// `None` for a datagram that is whole although it has this header.
fn v6_fragment(header: &[u8; 8]) -> Option<Fragment> {
    let bits = u16::from_be_bytes([header[2], header[3]]);
    (bits & (V6_FRAGMENT_OFFSET | V6_MORE_FRAGMENTS) != 0).then(|| Fragment {
        id: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        offset: u32::from(bits & V6_FRAGMENT_OFFSET),
        more: bits & V6_MORE_FRAGMENTS != 0,
    })
}

/// The length field of an extension header, in units and without an offset that both depend on the header.
fn extension_len(payload: &[u8]) -> Result<usize, NoDatagram> {
    payload.get(1).map(|&len| usize::from(len)).ok_or(NoDatagram::Malformed)
}

fn authentication_len(payload: &[u8]) -> Result<usize, NoDatagram> {
    Ok(4 * (2 + extension_len(payload)?))
}

/// What stands behind authentication headers, the only ones that IPv4 has in front of a payload.
#[cold]
fn behind_authentication(mut next: u8, mut payload: &[u8]) -> Result<(u8, &[u8]), NoDatagram> {
    while next == AUTHENTICATION {
        let (header, rest) = payload.split_at_checked(authentication_len(payload)?).ok_or(NoDatagram::Malformed)?;
        (next, payload) = (header[0], rest);
    }
    Ok((next, payload))
}

/// How much of `available` bytes belongs to a packet that states `stated` bytes, and how many it has that were not
/// captured, of `uncaptured` that the whole frame lacks.
#[inline]
fn extent(stated: usize, available: usize, uncaptured: u32) -> (usize, u32) {
    match u32::try_from(stated.saturating_sub(available)) {
        Ok(cut) => (stated.min(available), cut.min(uncaptured)),
        Err(_) => (available, uncaptured),
    }
}

/// An IPv4 packet with its payload behind authentication headers, or a fragment with all it has.
#[inline]
pub(super) fn datagram_v4(data: &[u8], uncaptured: u32) -> Result<Datagram<'_>, NoDatagram> {
    let header = data.first_chunk::<20>().ok_or(NoDatagram::Malformed)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < 20 || header_len > data.len() {
        return Err(NoDatagram::Malformed);
    }
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // Shorter than the header: as in `decode_v4`.
    let stated = if total_len < header_len { data.len() } else { total_len };
    let (end, cut) = extent(stated, data.len(), uncaptured);
    let bits = u16::from_be_bytes([header[6], header[7]]);
    let fragment = (bits & FRAGMENT_BITS != 0).then(|| Fragment {
        id: u32::from(u16::from_be_bytes([header[4], header[5]])),
        offset: u32::from(bits & FRAGMENT_OFFSET) * 8,
        more: bits & MORE_FRAGMENTS != 0,
    });
    let (mut protocol, mut payload) = (header[9], &data[header_len..end]);
    if protocol == AUTHENTICATION && fragment.is_none() {
        (protocol, payload) = behind_authentication(protocol, payload)?;
    }
    let address = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    Ok(Datagram {
        source: mapped(address(12)),
        destination: mapped(address(16)),
        is_v4: true,
        protocol,
        hops: header[8],
        fragment,
        payload,
        cut,
        outermost: &[],
        vlans: Vlans::NONE,
    })
}

/// The same of IPv6, without the extension headers in front of the fragment header, or of the payload if there is none.
#[inline]
pub(super) fn datagram_v6(data: &[u8], uncaptured: u32) -> Result<Datagram<'_>, NoDatagram> {
    let (header, rest) = data.split_first_chunk::<40>().ok_or(NoDatagram::Malformed)?;
    if header[0] >> 4 != 6 {
        return Err(NoDatagram::Malformed);
    }
    let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let stated = if payload_len == 0 { rest.len() } else { payload_len };
    let (end, cut) = extent(stated, rest.len(), uncaptured);
    let upper = skip_extensions(header[6], &rest[..end])?;
    Ok(Datagram {
        source: address(header, 8),
        destination: address(header, 24),
        is_v4: false,
        protocol: upper.next,
        hops: header[7],
        fragment: upper.fragment,
        payload: upper.payload,
        cut,
        outermost: &[],
        vlans: Vlans::NONE,
    })
}

/// Source and destination, if this is an IPv4 header as [`datagram_v4`] wants it.
#[inline]
pub(super) fn addresses_v4(data: &[u8]) -> Option<(u32, u32)> {
    let header = data.first_chunk::<20>()?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let is_sound = header[0] >> 4 == 4 && header_len >= 20 && header_len <= data.len();
    let address = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    is_sound.then(|| (address(12), address(16)))
}

/// The same of IPv6; the headers behind it are not looked at.
#[inline]
pub(super) fn addresses_v6(data: &[u8]) -> Option<(u128, u128)> {
    let header = data.first_chunk::<40>()?;
    (header[0] >> 4 == 6).then(|| (address(header, 8), address(header, 24)))
}

/// What stands behind the further headers of a first fragment: those of IPv4, or those of IPv6 behind the fragment
/// header.
#[cold]
pub(super) fn behind_first_fragment(is_v4: bool, mut next: u8, mut payload: &[u8]) -> Result<(u8, &[u8]), NoPacket> {
    if is_v4 {
        return behind_authentication(next, payload).map_err(|_| NoPacket::Malformed);
    }
    loop {
        let upper = skip_extensions(next, payload).map_err(|_| NoPacket::Malformed)?;
        match upper.fragment {
            None => return Ok((upper.next, upper.payload)),
            Some(Fragment { offset: 0, .. }) => (next, payload) = (upper.next, upper.payload),
            Some(_) => return Err(NoPacket::Other),
        }
    }
}

/// The protocol and the payload of a datagram that was put together, behind its further headers.
pub(super) fn behind_extensions(is_v4: bool, next: u8, payload: &[u8]) -> Option<(u8, &[u8])> {
    if is_v4 {
        return behind_authentication(next, payload).ok();
    }
    let upper = skip_extensions(next, payload).ok()?;
    upper.fragment.is_none().then_some((upper.next, upper.payload))
}
