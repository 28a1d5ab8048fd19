//! From the start of a frame to its IP header: one function a link type, one a kind of tag.

use crate::capture::LinkType;

/// EtherTypes.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
/// What some switches used for the outer tag before there was a standard.
const OLD_SERVICE_VLAN: u16 = 0x9100;
const MPLS: u16 = 0x8847;
const MPLS_UPSTREAM: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;

const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// Address families as they are captured on loopback devices. IPv6 has another number on every system.
const FAMILY_IPV4: u32 = 2;
const FAMILY_IPV6: [u32; 4] = [10, 24, 28, 30];

/// What a frame carries, from the first byte of the IP header on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Network<'a> {
    /// It has to be IPv4.
    V4(&'a [u8]),
    /// It has to be IPv6.
    V6(&'a [u8]),
    /// No IP.
    Other,
}

/// Finds the IP header. One behind 64 KiB of tags is none, so that its place fits into 16 bits.
pub(super) fn network(link: LinkType, data: &[u8]) -> Network<'_> {
    match any_network(link, data) {
        Network::V4(rest) | Network::V6(rest) if data.len() - rest.len() > usize::from(u16::MAX) => Network::Other,
        found => found,
    }
}

#[inline]
fn any_network(link: LinkType, data: &[u8]) -> Network<'_> {
    match link {
        LinkType::ETHERNET => ethernet(data),
        LinkType::RAW_12 | LinkType::RAW_14 | LinkType::RAW => match data.first().map(|first| first >> 4) {
            Some(6) => Network::V6(data),
            _ => Network::V4(data),
        },
        LinkType::IPV4 => Network::V4(data),
        LinkType::IPV6 => Network::V6(data),
        LinkType::PPP => ppp(data),
        LinkType::NULL | LinkType::LOOP => loopback(data),
        LinkType::LINUX_SLL => cooked(data),
        LinkType::LINUX_SLL2 => cooked_2(data),
        _ => Network::Other,
    }
}

pub(super) fn ethernet(data: &[u8]) -> Network<'_> {
    match data.split_first_chunk::<14>() {
        Some((header, payload)) => ether_type(u16::from_be_bytes([header[12], header[13]]), payload),
        None => Network::Other,
    }
}

fn cooked(data: &[u8]) -> Network<'_> {
    match data.split_first_chunk::<16>() {
        Some((header, payload)) => ether_type(u16::from_be_bytes([header[14], header[15]]), payload),
        None => Network::Other,
    }
}

fn cooked_2(data: &[u8]) -> Network<'_> {
    match data.split_first_chunk::<20>() {
        Some((header, payload)) => ether_type(u16::from_be_bytes([header[0], header[1]]), payload),
        None => Network::Other,
    }
}

/// The family is in the order of the machine that captured, which may be another one than the file's.
fn loopback(data: &[u8]) -> Network<'_> {
    let Some((&family, payload)) = data.split_first_chunk::<4>() else {
        return Network::Other;
    };
    let either = [u32::from_le_bytes(family), u32::from_be_bytes(family)];
    if either.contains(&FAMILY_IPV4) {
        Network::V4(payload)
    } else if FAMILY_IPV6.iter().any(|family| either.contains(family)) {
        Network::V6(payload)
    } else {
        Network::Other
    }
}

/// Steps over tags to what the last EtherType names.
pub(super) fn ether_type(mut kind: u16, mut payload: &[u8]) -> Network<'_> {
    loop {
        match kind {
            IPV4 => return Network::V4(payload),
            IPV6 => return Network::V6(payload),
            VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN => {
                let Some((tag, rest)) = payload.split_first_chunk::<4>() else {
                    return Network::Other;
                };
                kind = u16::from_be_bytes([tag[2], tag[3]]);
                payload = rest;
            }
            MPLS | MPLS_UPSTREAM => return mpls(payload),
            PPPOE_SESSION => return pppoe(payload),
            _ => return Network::Other,
        }
    }
}

/// Steps over labels to the bottom of the stack. No field states what is below: an IP packet shows its version first,
/// anything else is a pseudowire.
fn mpls(mut payload: &[u8]) -> Network<'_> {
    loop {
        let Some((label, rest)) = payload.split_first_chunk::<4>() else {
            return Network::Other;
        };
        payload = rest;
        if label[2] & 1 != 0 {
            break;
        }
    }
    by_version(payload)
}

/// The kind of packet by the version in its first byte.
pub(super) fn by_version(data: &[u8]) -> Network<'_> {
    match data.first().map(|first| first >> 4) {
        Some(4) => Network::V4(data),
        Some(6) => Network::V6(data),
        _ => Network::Other,
    }
}

fn pppoe(payload: &[u8]) -> Network<'_> {
    let Some((header, rest)) = payload.split_first_chunk::<8>() else {
        return Network::Other;
    };
    ppp_protocol(u16::from_be_bytes([header[6], header[7]]), rest)
}

/// A PPP frame, with or without its address and control bytes, and a protocol of one byte or two (RFC 1661, section 6).
pub(super) fn ppp(data: &[u8]) -> Network<'_> {
    let (protocol, payload) = match data.strip_prefix(&[0xff, 0x03]).unwrap_or(data) {
        [short, payload @ ..] if short & 1 != 0 => (u16::from(*short), payload),
        [high, low, payload @ ..] => (u16::from_be_bytes([*high, *low]), payload),
        _ => return Network::Other,
    };
    ppp_protocol(protocol, payload)
}

fn ppp_protocol(protocol: u16, payload: &[u8]) -> Network<'_> {
    match protocol {
        PPP_IPV4 => Network::V4(payload),
        PPP_IPV6 => Network::V6(payload),
        _ => Network::Other,
    }
}
