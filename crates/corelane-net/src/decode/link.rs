//! From the start of a frame to its IP header: one function a link type, one a kind of tag.

use super::{Decoded, ip};
use crate::capture::LinkType;

/// EtherType of IPv4.
pub(super) const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
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

/// Decodes any frame, the general way.
#[inline(never)]
pub(super) fn decode(link: LinkType, data: &[u8]) -> Decoded {
    match link {
        LinkType::ETHERNET => ethernet(data),
        LinkType::RAW_12 | LinkType::RAW_14 | LinkType::RAW => ip::decode(data),
        LinkType::IPV4 => ip::decode_v4(data),
        LinkType::IPV6 => ip::decode_v6(data),
        LinkType::NULL | LinkType::LOOP => loopback(data),
        LinkType::LINUX_SLL => cooked(data),
        LinkType::LINUX_SLL2 => cooked_2(data),
        _ => Decoded::Undecoded,
    }
}

fn ethernet(data: &[u8]) -> Decoded {
    match data.split_first_chunk::<14>() {
        Some((header, payload)) => ether_type(u16::from_be_bytes([header[12], header[13]]), payload),
        None => Decoded::Undecoded,
    }
}

fn cooked(data: &[u8]) -> Decoded {
    match data.split_first_chunk::<16>() {
        Some((header, payload)) => ether_type(u16::from_be_bytes([header[14], header[15]]), payload),
        None => Decoded::Undecoded,
    }
}

fn cooked_2(data: &[u8]) -> Decoded {
    match data.split_first_chunk::<20>() {
        Some((header, payload)) => ether_type(u16::from_be_bytes([header[0], header[1]]), payload),
        None => Decoded::Undecoded,
    }
}

/// The family is in the order of the machine that captured, which may be another one than the file's.
fn loopback(data: &[u8]) -> Decoded {
    let Some((&family, payload)) = data.split_first_chunk::<4>() else {
        return Decoded::Undecoded;
    };
    let either = [u32::from_le_bytes(family), u32::from_be_bytes(family)];
    if either.contains(&FAMILY_IPV4) {
        ip::decode_v4(payload)
    } else if FAMILY_IPV6.iter().any(|family| either.contains(family)) {
        ip::decode_v6(payload)
    } else {
        Decoded::Undecoded
    }
}

/// Steps over tags, however many, to what the last EtherType says.
fn ether_type(mut kind: u16, mut payload: &[u8]) -> Decoded {
    loop {
        match kind {
            IPV4 => return ip::decode_v4(payload),
            IPV6 => return ip::decode_v6(payload),
            VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN => {
                let Some((tag, rest)) = payload.split_first_chunk::<4>() else {
                    return Decoded::Undecoded;
                };
                kind = u16::from_be_bytes([tag[2], tag[3]]);
                payload = rest;
            }
            MPLS | MPLS_UPSTREAM => return mpls(payload),
            PPPOE_SESSION => return pppoe(payload),
            _ => return Decoded::Undecoded,
        }
    }
}

/// Steps over labels to the bottom of the stack. What is below says nowhere what it is; an IP packet shows its version
/// first, anything else is a pseudowire.
fn mpls(mut payload: &[u8]) -> Decoded {
    loop {
        let Some((label, rest)) = payload.split_first_chunk::<4>() else {
            return Decoded::Undecoded;
        };
        payload = rest;
        if label[2] & 1 != 0 {
            break;
        }
    }
    match payload.first().map(|first| first >> 4) {
        Some(4) => ip::decode_v4(payload),
        Some(6) => ip::decode_v6(payload),
        _ => Decoded::Undecoded,
    }
}

fn pppoe(payload: &[u8]) -> Decoded {
    let Some((header, rest)) = payload.split_first_chunk::<8>() else {
        return Decoded::Undecoded;
    };
    match u16::from_be_bytes([header[6], header[7]]) {
        PPP_IPV4 => ip::decode_v4(rest),
        PPP_IPV6 => ip::decode_v6(rest),
        _ => Decoded::Undecoded,
    }
}
