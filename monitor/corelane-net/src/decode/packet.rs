//! Frames with their payload: to the IP datagram or fragment, and on to the TCP segment or UDP datagram.

use super::datagram::{Datagram, NoDatagram, mapped};
use super::decoded::Transport;
use super::transport::{self, TCP, UDP};
use super::vlans::Vlans;
use super::{ip, link};
use crate::capture::{LinkType, Record};

/// A TCP segment or a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Nanoseconds since the epoch; of the last fragment to arrive, if there were any.
    pub time_ns: u64,
    /// Bytes on the wire: of the frame, or of the frames of all fragments.
    pub wire_len: u32,
    /// The frames it came in: 1, or the number of fragments.
    pub frames: u32,
    /// Source address, as in [`Datagram`].
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// IP protocol number: [`TCP`] or [`UDP`].
    pub protocol: u8,
    /// The TCP flags FIN 0x01, SYN 0x02, RST 0x04, PSH 0x08, ACK 0x10 …; 0 for UDP.
    pub flags: u8,
    /// TCP sequence number; 0 for UDP.
    pub sequence: u32,
    /// TCP acknowledgment number, which is valid if the ACK flag is set; 0 for UDP.
    pub acknowledgment: u32,
    /// The payload as far as it was captured.
    pub payload: &'a [u8],
    /// Bytes of the payload behind those, which were not captured.
    pub cut: u32,
    /// As in [`Datagram`]; of the last fragment to arrive, if there were any.
    pub outermost: &'a [u8],
    /// The VLANs that its frames are in.
    pub vlans: Vlans,
}

/// Why a datagram has no TCP segment or UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPacket {
    /// Another protocol, or a fragment.
    Other,
    /// The TCP or UDP header is wrong or cut, or an IPv6 extension header in front of it.
    Malformed,
}

/// Where a frame's IP header begins, and between which hosts its packet goes: enough to choose the thread that it is
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// Bytes in front of the IP header.
    pub at: u16,
    /// Source address, as in [`Datagram`].
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Whether it is IPv4.
    pub is_v4: bool,
}

/// Finds the IP header of a frame, and looks at nothing behind it. [`datagram_at`] goes on from there; [`datagram`] is
/// both.
///
/// ```
/// use corelane_net::capture::LinkType;
/// use corelane_net::decode::{datagram_at, locate};
///
/// let mut frame = vec![0; 12];
/// frame.extend([8, 0]); // Ethernet
/// frame.extend([0x45, 0, 0, 21, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 8]);
/// let found = locate(LinkType::ETHERNET, &frame).unwrap();
/// assert_eq!((found.at, found.is_v4, found.source as u32), (14, true, 0x0a00_0001));
/// assert_eq!(datagram_at(&frame, found.at, 35).unwrap().payload, [8]);
/// ```
#[inline]
pub fn locate(link: LinkType, data: &[u8]) -> Result<Located, NoDatagram> {
    let at = |rest: &[u8]| (data.len() - rest.len()) as u16;
    match link::network(link, data) {
        link::Network::V4(rest) => {
            let (source, destination) = ip::addresses_v4(rest).ok_or(NoDatagram::Malformed)?;
            Ok(Located { at: at(rest), source: mapped(source), destination: mapped(destination), is_v4: true })
        }
        link::Network::V6(rest) => {
            let (source, destination) = ip::addresses_v6(rest).ok_or(NoDatagram::Malformed)?;
            Ok(Located { at: at(rest), source, destination, is_v4: false })
        }
        link::Network::Other => Err(NoDatagram::Undecoded),
    }
}

/// The IP datagram in a frame of `wire_len` bytes whose IP header begins at `at`.
#[inline]
pub fn datagram_at(frame: &[u8], at: u16, wire_len: u32) -> Result<Datagram<'_>, NoDatagram> {
    let captured = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let uncaptured = wire_len.saturating_sub(captured);
    let data = frame.get(usize::from(at)..).ok_or(NoDatagram::Malformed)?;
    match data.first() {
        Some(first) if first >> 4 == 6 => ip::datagram_v6(data, uncaptured),
        _ => ip::datagram_v4(data, uncaptured),
    }
}

/// Ports and flags of the TCP or UDP header in a datagram or first fragment, as [`decode`](super::decode) finds them.
/// The addresses are those of the datagram.
///
/// # Errors
/// [`NoPacket::Other`] also for a fragment that is not the first.
#[inline]
pub fn transport(datagram: &Datagram<'_>) -> Result<Transport<u128>, NoPacket> {
    let Datagram { source, destination, mut protocol, hops, mut payload, .. } = *datagram;
    if let Some(fragment) = datagram.fragment {
        if fragment.offset != 0 {
            return Err(NoPacket::Other);
        }
        (protocol, payload) = ip::behind_first_fragment(datagram.is_v4, protocol, payload)?;
    }
    match transport::decode(protocol, payload) {
        transport::Found::Ports(ports) => Ok(Transport {
            source,
            destination,
            source_port: ports.source,
            destination_port: ports.destination,
            protocol,
            flags: ports.flags,
            hops,
            is_at_zero: ports.is_at_zero,
        }),
        transport::Found::Other => Err(NoPacket::Other),
        transport::Found::Malformed => Err(NoPacket::Malformed),
    }
}

/// The IP datagram in a frame, by the rules of [`decode`](super::decode).
#[inline]
pub fn datagram<'a>(record: &Record<'a>) -> Result<Datagram<'a>, NoDatagram> {
    let Located { at, .. } = locate(record.link, record.data)?;
    let datagram = datagram_at(record.data, at, record.wire_len)?;
    Ok(Datagram { vlans: Vlans::of(record.link, record.data, at), ..datagram })
}

/// The TCP segment or UDP datagram in an IP datagram that came in one frame of `wire_len` bytes.
///
/// ```
/// use corelane_net::capture::{LinkType, Record};
/// use corelane_net::decode::{datagram, packet};
///
/// let udp = [
///     0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
///     0, 53, 0, 99, 0, 10, 0, 0, b'h', b'i', // UDP
/// ];
/// let record = Record { time_ns: 7, wire_len: 30, link: LinkType::RAW, data: &udp };
/// let packet = packet(record.time_ns, record.wire_len, &datagram(&record).unwrap()).unwrap();
/// assert_eq!((packet.source_port, packet.payload), (53, &b"hi"[..]));
/// ```
#[inline]
pub fn packet<'a>(time_ns: u64, wire_len: u32, datagram: &Datagram<'a>) -> Result<Packet<'a>, NoPacket> {
    let (mut protocol, mut data) = (datagram.protocol, datagram.payload);
    if datagram.fragment.is_some() {
        return Err(NoPacket::Other);
    }
    if protocol != TCP && protocol != UDP {
        // Headers that the fragments had; those of a datagram that came whole were stepped over before.
        (protocol, data) = ip::behind_extensions(datagram.is_v4, protocol, data).ok_or(NoPacket::Malformed)?;
    }
    let mut packet = Packet {
        time_ns,
        wire_len,
        frames: 1,
        source: datagram.source,
        destination: datagram.destination,
        source_port: 0,
        destination_port: 0,
        protocol,
        flags: 0,
        sequence: 0,
        acknowledgment: 0,
        payload: &[],
        cut: datagram.cut,
        outermost: datagram.outermost,
        vlans: datagram.vlans,
    };
    let half = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    let header_len = match protocol {
        TCP if data.len() >= 20 && data[12] >> 4 >= 5 => {
            packet.flags = data[13];
            packet.sequence = word(4);
            packet.acknowledgment = word(8);
            usize::from(data[12] >> 4) * 4
        }
        UDP if data.len() >= 8 => 8,
        TCP | UDP => return Err(NoPacket::Malformed),
        _ => return Err(NoPacket::Other),
    };
    packet.source_port = half(0);
    packet.destination_port = half(2);
    match data.split_at_checked(header_len) {
        Some((_, payload)) => packet.payload = payload,
        // Options that were not captured are not payload that was not captured.
        None => packet.cut = packet.cut.saturating_sub((header_len - data.len()) as u32),
    }
    if protocol == UDP {
        // The length is 0 for what the card was to cut, and in jumbograms; one that claims more than there is says
        // nothing.
        let stated = usize::from(half(4)).saturating_sub(header_len);
        if stated > 0 || half(4) == 8 {
            let kept = stated.min(packet.payload.len());
            packet.cut = packet.cut.min((stated - kept) as u32);
            packet.payload = &packet.payload[..kept];
        }
    }
    Ok(packet)
}
