//! One captured frame to addresses, ports and TCP flags, and to payload where that is asked for.
//!
//! - [`decode`] is what a dispatcher of headers needs: addresses, ports and flags. [`plain_v4`] and [`plain_v6`] are
//!   the same for most packets, as cheaply as can be.
//! - Code that looks into the packets goes in two steps. [`locate`] finds the IP header and the addresses, for the
//!   dispatcher. [`datagram_at`] goes on from there, in the thread that has the packet, and stops at the IP payload, so
//!   that fragments can be [put together](crate::defrag). [`transport`] finds the ports that [`decode`] would, and
//!   [`packet`] what TCP and UDP carry. [`datagram`] is both steps at once.
//! - [`innermost`] goes from the IP header that [`locate`] found through tunnels to the innermost one. Both ways go on
//!   from there: [`decode_at`] and [`datagram_at`].
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `link.rs`, `ip.rs`, `transport.rs` | from the frame to its IP header; IP headers; TCP and UDP headers |
//! | `question.rs` | what asks a host by another protocol |
//! | `tunnel.rs` | from an IP header to one inside |
//! | `vlans.rs` | the VLANs that a frame is in |
//! | `decoded.rs`, `datagram.rs`, `packet.rs` | the results of `decode`, `datagram` and `packet` |

mod datagram;
mod decoded;
mod ip;
mod link;
mod packet;
mod question;
mod transport;
mod tunnel;
mod vlans;

pub use datagram::{Datagram, Fragment, NoDatagram, mapped};
pub use decoded::{Decoded, Transport};
pub use link::is_arp;
pub use packet::{Located, NoPacket, Packet, datagram, datagram_at, locate, packet, transport};
pub use question::{Asked, Question, arp, arp_at, question};
pub use transport::{TCP, UDP, flags};
pub use tunnel::{Closed, DEEPEST, Innermost, Tunnel, innermost};
#[cfg(target_os = "linux")]
pub(crate) use tunnel::{PORTS as TUNNEL_PORTS, SOURCE_PORTS as TUNNEL_SOURCE_PORTS};
pub use vlans::Vlans;

use crate::capture::LinkType;

/// Decodes one frame.
///
/// Checksums are not looked at. Bytes behind the length that the IP header states belong to no packet; a stated length
/// shorter than the header itself (segments that the network card was to cut carry 0) means that all captured bytes do.
///
/// ```
/// use corelane_net::capture::LinkType;
/// use corelane_net::decode::{Decoded, decode};
///
/// let udp = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0, 99, 0, 8, 0, 0];
/// let Decoded::V4(packet) = decode(LinkType::RAW, &udp) else { panic!() };
/// assert_eq!((packet.source, packet.source_port), (0x0a00_0001, 53));
/// assert_eq!(decode(LinkType::RAW, &udp[..27]), Decoded::Malformed);
/// ```
#[inline]
pub fn decode(link: LinkType, data: &[u8]) -> Decoded {
    if let Some(packet) = plain_v4(link, data) {
        return Decoded::V4(packet);
    }
    match plain_v6(link, data) {
        Some(packet) => Decoded::V6(packet),
        None => general(link, data),
    }
}

/// Any frame.
#[inline(never)]
fn general(link: LinkType, data: &[u8]) -> Decoded {
    match link::network(link, data) {
        link::Network::V4(data) => ip::decode_v4(data),
        link::Network::V6(data) => ip::decode_v6(data),
        link::Network::Other => Decoded::Undecoded,
    }
}

/// What [`decode`] makes of a plain frame, in one straight line: Ethernet without tags, IPv4 without options and not a
/// fragment, TCP or UDP. Of others, and of a frame that is too short for TCP, the result is `None`.
///
/// Most packets are plain, or [so of IPv6](plain_v6). [`decode`] looks at these first too, but a caller that does so
/// itself has no [`Decoded`] to take apart.
#[inline(always)]
pub fn plain_v4(link: LinkType, data: &[u8]) -> Option<Transport<u32>> {
    let headers = data.first_chunk::<54>()?;
    let half = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([headers[at], headers[at + 1], headers[at + 2], headers[at + 3]]);
    let protocol = headers[23];
    let is_tcp = protocol == TCP;
    // With few branches, as which way they go is hard to foresee.
    let is_whole = (half(16) >= 40) & (headers[46] >= 0x50) & is_tcp | (half(16) >= 28) & (protocol == UDP);
    // The kind of the frame, the version of IP, and the length of its header.
    let begins = word(12) & 0xffff_ff00 == u32::from(link::IPV4) << 16 | 0x4500;
    if link != LinkType::ETHERNET || !begins || !((half(20) & ip::FRAGMENT_BITS == 0) & is_whole) {
        return None;
    }
    Some(Transport {
        source: word(26),
        destination: word(30),
        source_port: half(34),
        destination_port: half(36),
        protocol,
        flags: if is_tcp { headers[47] } else { 0 },
        hops: headers[22],
        is_at_zero: (word(38) == 0) & is_tcp,
    })
}

/// The same as [`plain_v4`] for IPv6 without extension headers.
#[inline(always)]
pub fn plain_v6(link: LinkType, data: &[u8]) -> Option<Transport<u128>> {
    let headers = data.first_chunk::<74>()?;
    let half = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let protocol = headers[20];
    let is_tcp = protocol == TCP;
    let is_whole = (half(18) >= 20) & (headers[66] >= 0x50) & is_tcp | (half(18) >= 8) & (protocol == UDP);
    if link != LinkType::ETHERNET || half(12) != link::IPV6 || !((headers[14] >> 4 == 6) & is_whole) {
        return None;
    }
    Some(Transport {
        source: u128::from_be_bytes(*headers[22..].first_chunk()?),
        destination: u128::from_be_bytes(*headers[38..].first_chunk()?),
        source_port: half(54),
        destination_port: half(56),
        protocol,
        flags: if is_tcp { headers[67] } else { 0 },
        hops: headers[21],
        is_at_zero: (headers[58..62] == [0; 4]) & is_tcp,
    })
}

/// Decodes the packet whose IP header begins at `at`, as [`locate`] or [`innermost`] has found it.
#[inline]
pub fn decode_at(frame: &[u8], at: u16) -> Decoded {
    match frame.get(usize::from(at)..) {
        Some(data @ [first, ..]) if first >> 4 == 6 => ip::decode_v6(data),
        Some(data) => ip::decode_v4(data),
        None => Decoded::Malformed,
    }
}
