//! From the start of a frame to its IP header: one function a link type, one a kind of tag.

use super::ip;
use crate::capture::LinkType;

/// EtherTypes.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
/// What some switches used for outer tags before there was a standard.
const OLD_SERVICE_VLAN: [u16; 3] = [0x9100, 0x9200, 0x9300];
pub(super) const MPLS: u16 = 0x8847;
const MPLS_UPSTREAM: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;
/// The port of a virtual machine, on the wires between a host and its switch.
const VN_TAG: u16 = 0x8926;
/// The same of IEEE 802.1BR.
const E_TAG: u16 = 0x893f;
/// The security group of the sender (Cisco Meta Data).
const CISCO_META_DATA: u16 = 0x8909;
/// The tag of a service instance, behind which a whole Ethernet header follows (IEEE 802.1ah).
const SERVICE_INSTANCE: u16 = 0x88e7;
/// Where the EtherType stands, a number up to this is the length of an LLC frame (IEEE 802.3).
const LONGEST_LLC: u16 = 1500;

const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;

/// Address families as they are captured on loopback devices. IPv6 has another number on every system.
const FAMILY_IPV4: u32 = 2;
const FAMILY_IPV6: [u32; 4] = [LINUX_IPV6, 24, 28, 30];
const LINUX_IPV6: u32 = 10;

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
        LinkType::PPP | LinkType::PPP_HDLC | LinkType::CISCO_HDLC => serial(data),
        // The direction in front, or in the place of the address byte.
        LinkType::PPP_DIRECTION => data.get(1..).map_or(Network::Other, ppp),
        LinkType::PPP_PPPD => data.get(1..).map_or(Network::Other, |rest| ppp(rest.strip_prefix(&[3]).unwrap_or(rest))),
        LinkType::PPPOE => pppoe(data),
        LinkType::NFLOG => nflog(data),
        LinkType::WIFI => wifi(data, 1),
        LinkType::RADIOTAP => radiotap(data),
        LinkType::PRISM | LinkType::AVS => prism(data),
        LinkType::NULL | LinkType::LOOP => loopback(data),
        LinkType::LINUX_SLL => cooked(data).map_or(Network::Other, typed),
        LinkType::LINUX_SLL2 => cooked_2(data).map_or(Network::Other, typed),
        _ => Network::Other,
    }
}

pub(super) fn ethernet(data: &[u8]) -> Network<'_> {
    ethernet_header(data).map_or(Network::Other, typed)
}

/// An EtherType, and what is behind its header.
pub(super) type Typed<'a> = (u16, &'a [u8]);

#[inline(always)]
fn ethernet_header(data: &[u8]) -> Option<Typed<'_>> {
    let (header, payload) = data.split_first_chunk::<14>()?;
    Some((u16::from_be_bytes([header[12], header[13]]), payload))
}

#[inline(always)]
fn cooked(data: &[u8]) -> Option<Typed<'_>> {
    let (header, payload) = data.split_first_chunk::<16>()?;
    Some((u16::from_be_bytes([header[14], header[15]]), payload))
}

#[inline(always)]
fn cooked_2(data: &[u8]) -> Option<Typed<'_>> {
    let (header, payload) = data.split_first_chunk::<20>()?;
    Some((u16::from_be_bytes([header[0], header[1]]), payload))
}

/// Calls `tag` with the tags of VLANs in front of what [`network`] finds, the outermost first. The EtherType behind
/// all tags, if there is one, and what it names.
pub(super) fn vlan_tags<'a>(link: LinkType, data: &'a [u8], tag: impl FnMut(u16)) -> Option<Typed<'a>> {
    let header = match link {
        LinkType::ETHERNET => ethernet_header(data),
        LinkType::LINUX_SLL => cooked(data),
        LinkType::LINUX_SLL2 => cooked_2(data),
        _ => None,
    };
    let (kind, payload) = header?;
    behind_tags(kind, payload, tag)
}

/// Whether a frame in which there is no IP header is one of ARP.
#[cold]
pub fn is_arp(link: LinkType, data: &[u8]) -> bool {
    arp(link, data).is_some()
}

/// The packet of ARP in a frame.
#[cold]
pub(super) fn arp(link: LinkType, data: &[u8]) -> Option<&[u8]> {
    vlan_tags(link, data, |_| ()).filter(|(kind, _)| *kind == ARP).map(|(_, packet)| packet)
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

/// Cisco HDLC by its first byte, which says unicast or broadcast; else PPP.
fn serial(data: &[u8]) -> Network<'_> {
    match data {
        [0x0f | 0x8f, _, high, low, payload @ ..] => ether_type(u16::from_be_bytes([*high, *low]), payload),
        _ => ppp(data),
    }
}

fn typed((kind, payload): Typed<'_>) -> Network<'_> {
    ether_type(kind, payload)
}

/// Steps over tags to what the last EtherType names.
pub(super) fn ether_type(kind: u16, payload: &[u8]) -> Network<'_> {
    match behind_tags(kind, payload, |_| {}) {
        Some((IPV4, payload)) => Network::V4(payload),
        Some((IPV6, payload)) => Network::V6(payload),
        Some((MPLS | MPLS_UPSTREAM, payload)) => mpls(payload),
        Some((PPPOE_SESSION, payload)) => pppoe(payload),
        // LLC that names IP itself.
        Some((0..=LONGEST_LLC, [6, 6, 3, payload @ ..])) => Network::V4(payload),
        _ => Network::Other,
    }
}

/// The first EtherType that is none of a tag, and what is behind it; `None` if a tag is cut. VLAN tags go to `vlan`.
#[inline(always)]
fn behind_tags(mut kind: u16, mut payload: &[u8], mut vlan: impl FnMut(u16)) -> Option<Typed<'_>> {
    loop {
        match kind {
            IPV4 | IPV6 => return Some((kind, payload)),
            VLAN | SERVICE_VLAN => {
                let (tag, rest) = payload.split_first_chunk::<4>()?;
                vlan(u16::from_be_bytes([tag[0], tag[1]]));
                kind = u16::from_be_bytes([tag[2], tag[3]]);
                payload = rest;
            }
            _ => {
                let Some(length) = rare_tag(kind, payload) else { return Some((kind, payload)) };
                let (tag, rest) = payload.split_at_checked(length)?;
                let (next, rest) = rest.split_first_chunk()?;
                if OLD_SERVICE_VLAN.contains(&kind) {
                    vlan(u16::from_be_bytes([tag[0], tag[1]]));
                }
                kind = u16::from_be_bytes(*next);
                payload = rest;
            }
        }
    }
}

/// The bytes of a tag that few networks have, up to the next EtherType; `None` if it is no tag.
#[cold]
fn rare_tag(kind: u16, payload: &[u8]) -> Option<usize> {
    match (kind, payload) {
        (0..=LONGEST_LLC, [0xaa, 0xaa, 3, 0, 0, 0 | 0xf8, ..]) => Some(6),
        (VN_TAG, _) => Some(4),
        (E_TAG, _) => Some(6),
        (SERVICE_INSTANCE, _) => Some(16),
        // Version 1, and the number of its options.
        (CISCO_META_DATA, [1, options, ..]) => Some(2 + 4 * usize::from(*options)),
        _ => OLD_SERVICE_VLAN.contains(&kind).then_some(2),
    }
}

/// LLC and SNAP as on 802.11, where nothing is in front of them.
fn llc(payload: &[u8]) -> Network<'_> {
    ether_type(0, payload)
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
    match by_version(payload) {
        // A control word begins with 0, as an address of Ethernet may.
        Network::Other if payload.first().is_some_and(|first| first >> 4 == 0) => {
            behind_any(payload, &[4, 0], pseudowire)
        }
        Network::Other => behind_any(payload, &[0], pseudowire),
        found => found,
    }
}

/// Ethernet behind headers whose length nothing states: the first that leads to a sound IP header.
#[cold]
pub(super) fn behind_any<'a>(
    data: &'a [u8],
    headers: &[usize],
    ethernet: impl Fn(&'a [u8]) -> Network<'a>,
) -> Network<'a> {
    let is_sound = |network: &Network<'_>| match *network {
        Network::V4(packet) => ip::addresses_v4(packet).is_some(),
        Network::V6(packet) => ip::addresses_v6(packet).is_some(),
        Network::Other => false,
    };
    let mut found = headers.iter().filter_map(|&header| data.get(header..)).map(ethernet);
    found.find(is_sound).unwrap_or(Network::Other)
}

/// Ethernet in MPLS. Only tags are looked behind, so that pseudowires do not nest.
fn pseudowire(data: &[u8]) -> Network<'_> {
    match ethernet_header(data).and_then(|(kind, payload)| behind_tags(kind, payload, |_| {})) {
        Some((IPV4, packet)) => Network::V4(packet),
        Some((IPV6, packet)) => Network::V6(packet),
        _ => Network::Other,
    }
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
    payload.get(6..).map_or(Network::Other, ppp)
}

/// A PPP frame, with or without its address and control bytes, and a protocol of one byte or two (RFC 1661, section 6).
pub(super) fn ppp(data: &[u8]) -> Network<'_> {
    let (protocol, payload) = match data.strip_prefix(&[0xff, 0x03]).unwrap_or(data) {
        [short, payload @ ..] if short & 1 != 0 => (u16::from(*short), payload),
        [high, low, payload @ ..] => (u16::from_be_bytes([*high, *low]), payload),
        _ => return Network::Other,
    };
    match protocol {
        PPP_IPV4 => Network::V4(payload),
        PPP_IPV6 => Network::V6(payload),
        PPP_MPLS => mpls(payload),
        _ => Network::Other,
    }
}

/// A packet of the Linux packet filter: the address family, a version and two bytes, then attributes. Their numbers are
/// in the order of the machine that captured, which may be another one than the file's.
#[cold]
fn nflog(data: &[u8]) -> Network<'_> {
    let Some((header, attributes)) = data.split_first_chunk::<4>() else {
        return Network::Other;
    };
    let payload = nflog_payload(attributes, u16::from_le_bytes).or(nflog_payload(attributes, u16::from_be_bytes));
    match (u32::from(header[0]), payload) {
        (FAMILY_IPV4, Some(payload)) => Network::V4(payload),
        (LINUX_IPV6, Some(payload)) => Network::V6(payload),
        // A bridge.
        (_, Some(payload)) => by_version(payload),
        (_, None) => Network::Other,
    }
}

/// What begins at the attribute with the packet. Each has its length, which includes its four first bytes, and its
/// type; the next begins at a multiple of four.
fn nflog_payload(mut attributes: &[u8], number: fn([u8; 2]) -> u16) -> Option<&[u8]> {
    const PAYLOAD: u16 = 9;
    /// Bits beside the type.
    const FLAGS: u16 = 0xc000;
    loop {
        let [a, b, c, d] = *attributes.first_chunk()?;
        let length = usize::from(number([a, b]));
        if length < 4 {
            return None;
        }
        if number([c, d]) & !FLAGS == PAYLOAD {
            return attributes.get(4..);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// Radiotap in front of 802.11. Of its fields only the flags count, which say whether the header behind is padded.
/// Whether the frame's checksum is behind the frame does not matter: IP says where its packet ends.
#[cold]
fn radiotap(data: &[u8]) -> Network<'_> {
    const TIME: u32 = 1;
    const FLAGS: u32 = 2;
    const MORE: u32 = 1 << 31;
    const PADDED: u8 = 0x20;
    let Some(header) = data.first_chunk::<8>().filter(|header| header[0] == 0) else {
        return Network::Other;
    };
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    let Some((header, frame)) = data.split_at_checked(length) else {
        return Network::Other;
    };
    let mut words = header.chunks_exact(4).skip(1).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let first = words.next().unwrap_or(0);
    let more = if first & MORE == 0 { 0 } else { 1 + words.take_while(|word| word & MORE != 0).count() };
    let mut at = 8 + 4 * more;
    if first & TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let is_padded = first & FLAGS != 0 && header.get(at).is_some_and(|flags| flags & PADDED != 0);
    wifi(frame, if is_padded { 4 } else { 1 })
}

/// The header of a Prism card, or that of AVS, which states its length, in front of 802.11.
#[cold]
fn prism(data: &[u8]) -> Network<'_> {
    const PRISM: usize = 144;
    let length = match data.first_chunk::<8>() {
        Some([0x80, 0x21, 0x10, 1 | 2, length @ ..]) => u32::from_be_bytes(*length) as usize,
        _ => PRISM,
    };
    data.get(length..).map_or(Network::Other, |frame| wifi(frame, 1))
}

/// The data of an 802.11 frame: of the first fragment, and of frames that were aggregated the first. What is encrypted,
/// and what manages the network, is no IP. The header takes a multiple of `unit` bytes.
#[cold]
fn wifi(frame: &[u8], unit: usize) -> Network<'_> {
    const HEADER: usize = 24;
    const PROTECTED: u8 = 0x40;
    const HIGH_THROUGHPUT: u8 = 0x80;
    const AGGREGATED: u8 = 0x80;
    let Some(header) = frame.first_chunk::<HEADER>() else {
        return Network::Other;
    };
    let [kind, flags] = [header[0], header[1]];
    // Version 0, data, and not the subtypes without any.
    let has_data = kind & 0x4f == 0x08;
    let is_later_fragment = header[22] & 0x0f != 0;
    if !has_data || flags & PROTECTED != 0 || is_later_fragment {
        return Network::Other;
    }
    let has_quality = kind & 0x80 != 0;
    // From one access point to another: a fourth address.
    let quality_at = HEADER + if flags & 3 == 3 { 6 } else { 0 };
    let quality = if has_quality { 2 } else { 0 };
    let control = if has_quality && flags & HIGH_THROUGHPUT != 0 { 4 } else { 0 };
    let header_len = (quality_at + quality + control).next_multiple_of(unit);
    let is_aggregated = has_quality && frame.get(quality_at).is_some_and(|bits| bits & AGGREGATED != 0);
    // Two addresses and a length.
    let aggregate_len = if is_aggregated { 14 } else { 0 };
    frame.get(header_len + aggregate_len..).map_or(Network::Other, llc)
}
