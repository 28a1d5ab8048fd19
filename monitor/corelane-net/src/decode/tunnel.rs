//! Tunnels: IP packets inside of IP packets.
//!
//! | outside | headers between | sources |
//! |---|---|---|
//! | IP protocol 4, 41 | none: IPIP, 6in4, 4in6 | RFC 2003, 4213, 2473 |
//! | IP protocol 47 | GRE; then IP, MPLS, Ethernet (NVGRE), PPP, ERSPAN I to III | RFC 2784, 2890, 7637, 2637 |
//! | IP protocol 97 | EtherIP; then Ethernet | RFC 3378 |
//! | IP protocol 115 | L2TP 3; then Ethernet | RFC 3931 |
//! | UDP 4789, 8472 | VXLAN, Ethernet | RFC 7348 |
//! | UDP 6081 | Geneve; then IP or Ethernet | RFC 8926 |
//! | UDP 2152 | GTP-U with extension headers | 3GPP TS 29.281 |
//! | UDP 1701 | L2TP 2, PPP; L2TP 3, Ethernet | RFC 2661, 3931 |
//! | UDP 3544 | Teredo with its indications; then IPv6 | RFC 4380 |
//! | UDP 6635 | MPLS; then IP or Ethernet | RFC 7510 |
//!
//! The port is the destination's, of L2TP and Teredo either one, as their servers answer from it. It is no evidence by
//! itself: every header up to a sound IP header inside has to fit, else the packet is what it was. In Teredo and MPLS,
//! whose own headers say little, its length has to be that of all that is there. Ethernet inside may have VLAN tags and
//! MPLS labels, as on a wire.
//!
//! The time for a packet is bounded: at most [`DEEPEST`] tunnels are opened, and each has few headers.

use super::datagram::{Datagram, mapped};
use super::ip;
use super::link::{self, Network};
use super::packet::Located;
use super::transport::{TCP, UDP};

/// The most tunnels that a packet is followed through.
pub const DEEPEST: u8 = 8;

const IPIP: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ETHER_IP: u8 = 97;
const L2TP_3: u8 = 115;

const VXLAN: u16 = 4789;
/// Linux had this port before there was a standard, and many overlays kept it.
const VXLAN_OF_LINUX: u16 = 8472;
const GENEVE: u16 = 6081;
const GTP_USER: u16 = 2152;

const L2TP: u16 = 1701;
const TEREDO: u16 = 3544;
const MPLS_IN_UDP: u16 = 6635;

/// The destination ports of datagrams that may be tunnels.
pub(crate) const PORTS: [u16; 7] = [VXLAN, VXLAN_OF_LINUX, GENEVE, GTP_USER, L2TP, TEREDO, MPLS_IN_UDP];
/// Those of servers, which answer from them.
pub(crate) const SOURCE_PORTS: [u16; 2] = [L2TP, TEREDO];

/// Whether a datagram with these ports may be a tunnel.
#[inline]
pub(super) fn may_be(source: u16, destination: u16) -> bool {
    // Most ports are lower or higher than all of these.
    let near = |port: u16| (L2TP..=VXLAN_OF_LINUX).contains(&port);
    (near(source) | near(destination)) && (PORTS.contains(&destination) | SOURCE_PORTS.contains(&source))
}

/// Ethernet in GRE and in Geneve.
const ETHERNET: u16 = 0x6558;
const PPP: u16 = 0x880b;
const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;

/// The most extension headers of GTP-U in front of a packet; networks use one or two.
const EXTENSIONS: usize = 8;

/// The innermost IP header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Innermost {
    /// Where it is, and its addresses.
    pub located: Located,
    /// The bytes of the frame that may belong to its packet: the lengths outside state where that ends.
    pub end: usize,
    /// The tunnels that it is inside of; 0 if there is none.
    pub depth: u8,
    /// Why a tunnel in it was not opened, if there is one.
    pub closed: Option<Closed>,
}

/// Why a tunnel was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// It is inside of [`DEEPEST`] others.
    TooDeep,
    /// It came in fragments, and this is the first of them: the others do not show it.
    Fragmented,
}

/// The outermost packet of one that came through tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tunnel {
    /// Source address, as in [`Datagram`].
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Source port; 0 if the protocol has none.
    pub source_port: u16,
    /// Destination port; 0 if the protocol has none.
    pub destination_port: u16,
    /// IP protocol number: 4 for IPv4, 17 for UDP, 41 for IPv6, 47 for GRE, 97 for EtherIP, 115 for L2TP.
    pub protocol: u8,
    /// The tunnels one inside of the other, from 1 to [`DEEPEST`].
    pub depth: u8,
}

/// Goes from the outermost IP header of a frame, as [`locate`](super::locate) has found it, through all tunnels.
///
/// ```
/// use corelane_net::capture::LinkType;
/// use corelane_net::decode::{innermost, locate};
///
/// let outer = [0x45, 0, 0, 48, 0, 0, 0, 0, 64, 4, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]; // IPv4 that carries IPv4
/// let inner = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0, 99, 0, 8, 0, 0];
/// let frame = [&outer[..], &inner[..]].concat();
/// let found = innermost(&frame, locate(LinkType::RAW, &frame).unwrap());
/// assert_eq!((found.depth, found.located.at, found.located.source as u32), (1, 20, 0x0a00_0001));
/// ```
#[inline]
pub fn innermost(frame: &[u8], outermost: Located) -> Innermost {
    match frame.get(usize::from(outermost.at)..) {
        Some(packet) if may_carry(packet, outermost.is_v4) => follow(frame, outermost),
        _ => Innermost { located: outermost, end: frame.len(), depth: 0, closed: None },
    }
}

/// Whether this IP header may be followed by a tunnel's. Most packets are TCP, and cost no more than this.
#[inline]
fn may_carry(packet: &[u8], is_v4: bool) -> bool {
    packet.get(if is_v4 { 9 } else { 6 }).is_some_and(|&protocol| protocol != TCP)
}

fn follow(frame: &[u8], outermost: Located) -> Innermost {
    let mut found = Innermost { located: outermost, end: frame.len(), depth: 0, closed: None };
    // Each packet is a part of the one outside, whose length it cannot exceed.
    let mut packet = &frame[usize::from(outermost.at)..];
    loop {
        let (network, is_fragment) = inside(packet, found.located.is_v4);
        let Some((located, inner)) = located(frame, network) else { return found };
        if is_fragment || found.depth == DEEPEST {
            found.closed = Some(if is_fragment { Closed::Fragmented } else { Closed::TooDeep });
            return found;
        }
        packet = inner;
        found.located = located;
        found.end = usize::from(located.at) + inner.len();
        found.depth += 1;
    }
}

/// The place and the addresses of an IP header, if it is sound, and its packet.
fn located<'a>(frame: &[u8], network: Network<'a>) -> Option<(Located, &'a [u8])> {
    let at = |packet: &[u8]| {
        let at = packet.as_ptr().addr().checked_sub(frame.as_ptr().addr())?;
        u16::try_from(at).ok()
    };
    match network {
        Network::V4(packet) => {
            let (source, destination) = ip::addresses_v4(packet)?;
            let (source, destination) = (mapped(source), mapped(destination));
            Some((Located { at: at(packet)?, source, destination, is_v4: true }, packet))
        }
        Network::V6(packet) => {
            let (source, destination) = ip::addresses_v6(packet)?;
            Some((Located { at: at(packet)?, source, destination, is_v4: false }, packet))
        }
        Network::Other => None,
    }
}

/// What an IP packet carries, as far as tunnels are concerned, and whether the packet is a fragment.
fn inside(packet: &[u8], is_v4: bool) -> (Network<'_>, bool) {
    let datagram = if is_v4 { ip::datagram_v4(packet, 0) } else { ip::datagram_v6(packet, 0) };
    let Ok(Datagram { mut protocol, fragment, mut payload, .. }) = datagram else { return (Network::Other, false) };
    if let Some(fragment) = fragment {
        if fragment.offset != 0 {
            return (Network::Other, true);
        }
        match ip::behind_first_fragment(is_v4, protocol, payload) {
            Ok(behind) => (protocol, payload) = behind,
            Err(_) => return (Network::Other, true),
        }
    }
    let network = match protocol {
        IPIP => Some(Network::V4(payload)),
        IPV6 => Some(Network::V6(payload)),
        GRE => gre(payload),
        UDP => udp(payload),
        other => rare(other, payload),
    };
    (network.unwrap_or(Network::Other), fragment.is_some())
}

/// What the protocols carry that few networks have.
#[cold]
fn rare(protocol: u8, payload: &[u8]) -> Option<Network<'_>> {
    match protocol {
        ETHER_IP => ether_ip(payload),
        L2TP_3 => l2tp_3(payload),
        _ => None,
    }
}

/// What a UDP datagram carries, by its destination port or else by its source port.
#[inline(always)]
fn udp(data: &[u8]) -> Option<Network<'_>> {
    let (header, payload) = data.split_first_chunk::<8>()?;
    let source = u16::from_be_bytes([header[0], header[1]]);
    let destination = u16::from_be_bytes([header[2], header[3]]);
    let stated = usize::from(u16::from_be_bytes([header[4], header[5]]));
    // 0 in what the card was to cut, and in jumbograms.
    let length = if stated < 8 { payload.len() } else { stated - 8 };
    let bytes = &payload[..payload.len().min(length)];
    match destination {
        VXLAN | VXLAN_OF_LINUX => vxlan(bytes),
        GENEVE => geneve(bytes),
        GTP_USER => gtp(bytes),
        _ if may_be(source, destination) => rare_udp(source, destination, Payload { bytes, length }),
        _ => None,
    }
}

/// The same of the ports that few networks have.
#[cold]
fn rare_udp<'a>(source: u16, destination: u16, payload: Payload<'a>) -> Option<Network<'a>> {
    let of_server = |port: u16| match port {
        L2TP => l2tp(payload.bytes),
        TEREDO => teredo(payload),
        _ => None,
    };
    match destination {
        MPLS_IN_UDP => payload.exact(link::ether_type(link::MPLS, payload.bytes)),
        port => of_server(port),
    }
    .or_else(|| of_server(source))
}

/// The payload of a UDP datagram.
#[derive(Clone, Copy)]
struct Payload<'a> {
    /// What was captured.
    bytes: &'a [u8],
    /// What there was.
    length: usize,
}

impl Payload<'_> {
    /// A packet at its end, if it has the length that its header states.
    fn exact<'a>(&self, network: Network<'a>) -> Option<Network<'a>> {
        let uncaptured = self.length - self.bytes.len();
        let half = |packet: &[u8], at: usize| Some(usize::from(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?)));
        let (packet, stated) = match network {
            Network::V4(packet) => (packet, half(packet, 2)?),
            Network::V6(packet) => (packet, half(packet, 4)? + 40),
            Network::Other => return None,
        };
        (stated == packet.len() + uncaptured).then_some(network)
    }
}

/// The first two bytes of GRE: which fields follow, and the version.
mod gre_bits {
    pub(super) const CHECKSUM: u16 = 0x8000;
    pub(super) const KEY: u16 = 0x2000;
    pub(super) const SEQUENCE: u16 = 0x1000;
    pub(super) const ACKNOWLEDGMENT: u16 = 0x0080;
    /// Routing, and what is reserved behind the sequence number: packets with these are to be discarded.
    pub(super) const FORBIDDEN: u16 = 0x4c00;
    pub(super) const VERSION: u16 = 0x0007;
}

fn gre(data: &[u8]) -> Option<Network<'_>> {
    let (header, mut payload) = data.split_first_chunk::<4>()?;
    let bits = u16::from_be_bytes([header[0], header[1]]);
    let kind = u16::from_be_bytes([header[2], header[3]]);
    let has = |bit: u16| usize::from(bits & bit != 0);
    let has_sequence = bits & gre_bits::SEQUENCE != 0;
    if bits & gre_bits::FORBIDDEN != 0 {
        return None;
    }
    let fields = 4 * (has(gre_bits::CHECKSUM) + has(gre_bits::KEY) + has(gre_bits::SEQUENCE));
    match bits & gre_bits::VERSION {
        0 => payload = payload.get(fields..)?,
        // PPTP: the key has the length of the payload and the call.
        1 if bits & (gre_bits::KEY | gre_bits::CHECKSUM) == gre_bits::KEY && kind == PPP => {
            let length = usize::from(u16::from_be_bytes([*payload.first()?, *payload.get(1)?]));
            payload = payload.get(fields + 4 * has(gre_bits::ACKNOWLEDGMENT)..)?;
            payload = &payload[..payload.len().min(length)];
        }
        _ => return None,
    }
    let network = match kind {
        PPP => link::ppp(payload),
        ETHERNET => link::ethernet(payload),
        // Type I has neither a sequence number nor a header of its own.
        ERSPAN if !has_sequence => link::ethernet(payload),
        ERSPAN => erspan_2(payload)?,
        ERSPAN_3 => erspan_3(payload)?,
        kind => link::ether_type(kind, payload),
    };
    Some(network)
}

/// A header of 8 bytes, whose version is 1.
fn erspan_2(data: &[u8]) -> Option<Network<'_>> {
    let (header, payload) = data.split_first_chunk::<8>()?;
    (header[0] >> 4 == 1).then(|| link::ethernet(payload))
}

/// A header of 12 bytes, whose version is 2, and 8 more if its last bit is set. The type of the frame is Ethernet or
/// IP.
fn erspan_3(data: &[u8]) -> Option<Network<'_>> {
    let (header, mut payload) = data.split_first_chunk::<12>()?;
    if header[0] >> 4 != 2 {
        return None;
    }
    if header[11] & 1 != 0 {
        payload = payload.get(8..)?;
    }
    match header[10] >> 2 & 0x1f {
        0 => Some(link::ethernet(payload)),
        2 => Some(link::by_version(payload)),
        _ => None,
    }
}

/// Two bytes with the version, 3, and nothing else.
fn ether_ip(data: &[u8]) -> Option<Network<'_>> {
    data.strip_prefix(&[0x30, 0]).map(link::ethernet)
}

/// The first two bytes of L2TP: which fields follow, and the version.
mod l2tp_bits {
    pub(super) const LENGTH: u16 = 0x4000;
    pub(super) const SEQUENCE: u16 = 0x0800;
    pub(super) const OFFSET: u16 = 0x0200;
    pub(super) const PRIORITY: u16 = 0x0100;
}

/// Data of version 2, whose header has the fields that its bits name, in front of PPP; or of version 3.
fn l2tp(data: &[u8]) -> Option<Network<'_>> {
    let (header, mut payload) = data.split_first_chunk::<2>()?;
    let bits = u16::from_be_bytes(*header);
    let has = |bit: u16| usize::from(bits & bit != 0);
    if data.starts_with(&[0, 3, 0, 0]) {
        return l2tp_3(&data[4..]);
    }
    // Control messages and reserved bits are none of these.
    let fields = l2tp_bits::LENGTH | l2tp_bits::SEQUENCE | l2tp_bits::OFFSET | l2tp_bits::PRIORITY;
    if bits & !fields != 2 {
        return None;
    }
    if has(l2tp_bits::LENGTH) != 0 {
        let (length, rest) = payload.split_first_chunk::<2>()?;
        // It counts from the start.
        let length = usize::from(u16::from_be_bytes(*length)).checked_sub(4)?;
        payload = &rest[..rest.len().min(length)];
    }
    // The tunnel and the session; sequence numbers.
    payload = payload.get(4 + 4 * has(l2tp_bits::SEQUENCE)..)?;
    if has(l2tp_bits::OFFSET) != 0 {
        let (offset, rest) = payload.split_first_chunk::<2>()?;
        payload = rest.get(usize::from(u16::from_be_bytes(*offset))..)?;
    }
    Some(link::ppp(payload))
}

/// Data of a session, which has a number. A cookie of 4 or 8 bytes and a header of 4 may follow: the ends agreed on
/// that before, and no packet states it.
fn l2tp_3(data: &[u8]) -> Option<Network<'_>> {
    let (session, payload) = data.split_first_chunk::<4>()?;
    (*session != [0; 4]).then(|| link::behind_any(payload, &[0, 4, 8, 12], link::ethernet))
}

/// IPv6 behind an indication for authentication, whose parts have lengths, and one of the origin, or without them.
fn teredo(payload: Payload<'_>) -> Option<Network<'_>> {
    let mut packet = payload.bytes;
    if let [0, 1, id, value, ..] = *packet {
        packet = packet.get(4 + usize::from(id) + usize::from(value) + 9..)?;
    }
    if packet.starts_with(&[0, 0]) {
        packet = packet.get(8..)?;
    }
    payload.exact(Network::V6(packet))
}

/// A header of 8 bytes with the flag that its network number is valid.
fn vxlan(data: &[u8]) -> Option<Network<'_>> {
    let (header, payload) = data.split_first_chunk::<8>()?;
    (header[0] & 0x08 != 0).then(|| link::ethernet(payload))
}

/// A header of 8 bytes of version 0, and options whose length it has. What is for the ends of the tunnel is no packet.
fn geneve(data: &[u8]) -> Option<Network<'_>> {
    const CONTROL: u8 = 0x80;
    let (header, rest) = data.split_first_chunk::<8>()?;
    if header[0] >> 6 != 0 || header[1] & CONTROL != 0 {
        return None;
    }
    let payload = rest.get(usize::from(header[0] & 0x3f) * 4..)?;
    match u16::from_be_bytes([header[2], header[3]]) {
        ETHERNET => Some(link::ethernet(payload)),
        kind => Some(link::ether_type(kind, payload)),
    }
}

/// A header of 8 bytes of version 1 that announces a packet, with a length that fits; 4 more bytes if any of its three
/// lowest bits is set, and then a chain of extension headers if the first of these fields says so.
fn gtp(data: &[u8]) -> Option<Network<'_>> {
    const PACKET: u8 = 255;
    const NEXT: u8 = 0x04;
    let (header, payload) = data.split_first_chunk::<8>()?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // What was not captured has a length too; what was is not longer than that.
    if header[0] >> 4 != 3 || header[1] != PACKET || length < payload.len() {
        return None;
    }
    if header[0] & 0x07 == 0 {
        return Some(link::by_version(payload));
    }
    let (fields, mut payload) = payload.split_first_chunk::<4>()?;
    let mut next = if header[0] & NEXT != 0 { fields[3] } else { 0 };
    for _ in 0..=EXTENSIONS {
        if next == 0 {
            return Some(link::by_version(payload));
        }
        let length = usize::from(*payload.first()?) * 4;
        let (extension, rest) = payload.split_at_checked(length)?;
        next = *extension.last()?;
        payload = rest;
    }
    None
}

impl Tunnel {
    /// The same with its addresses in the other order, as an answer has them. The ports stay: the destination's shows
    /// what kind of tunnel it is, in both directions.
    pub fn turned(self) -> Self {
        Self { source: self.destination, destination: self.source, ..self }
    }

    /// Reads the outermost packet of a frame that came through tunnels, from its IP header on; `None` if it did not.
    pub fn of(outermost: &[u8]) -> Option<Self> {
        let is_v4 = outermost.first()? >> 4 == 4;
        let datagram = if is_v4 { ip::datagram_v4(outermost, 0) } else { ip::datagram_v6(outermost, 0) };
        let Datagram { source, destination, protocol, payload, .. } = datagram.ok()?;
        let depth = innermost(outermost, Located { at: 0, source, destination, is_v4 }).depth;
        let port = |at: usize| match payload.get(at..at + 2) {
            Some(port) if protocol == UDP => u16::from_be_bytes([port[0], port[1]]),
            _ => 0,
        };
        (depth > 0).then(|| Self {
            source,
            destination,
            source_port: port(0),
            destination_port: port(2),
            protocol,
            depth,
        })
    }
}
