//! One captured frame to addresses, ports and TCP flags, and to payload where that is asked for.
//!
//! - [`decode`] is what a dispatcher of headers needs: addresses, ports and flags, as cheaply as can be.
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
//! | `tunnel.rs` | from an IP header to one inside |
//! | `decoded.rs`, `datagram.rs`, `packet.rs` | the results of `decode`, `datagram` and `packet` |

mod datagram;
mod decoded;
mod ip;
mod link;
mod packet;
mod transport;
mod tunnel;

pub use datagram::{Datagram, Fragment, NoDatagram, mapped};
pub use decoded::{Decoded, Transport};
pub use packet::{Located, NoPacket, Packet, datagram, datagram_at, locate, packet, transport};
pub use transport::{TCP, UDP, flags};
pub use tunnel::{Closed, DEEPEST, Innermost, Tunnel, innermost};

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
    if link == LinkType::ETHERNET
        && let Some(decoded) = ethernet_ipv4_tcp(data)
    {
        return decoded;
    }
    general(link, data)
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

/// Any frame.
#[inline(never)]
fn general(link: LinkType, data: &[u8]) -> Decoded {
    match link::network(link, data) {
        link::Network::V4(data) => ip::decode_v4(data),
        link::Network::V6(data) => ip::decode_v6(data),
        link::Network::Other => Decoded::Undecoded,
    }
}

/// Most packets, in one straight line: Ethernet without tags, IPv4 without options and not a fragment, TCP. `None`
/// means that the general way has to look.
#[inline(always)]
fn ethernet_ipv4_tcp(data: &[u8]) -> Option<Decoded> {
    let headers = data.first_chunk::<54>()?;
    let half = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([headers[at], headers[at + 1], headers[at + 2], headers[at + 3]]);
    let plain = half(12) == link::IPV4
        && headers[14] == 0x45
        && half(16) >= 40
        && half(20) & ip::FRAGMENT_BITS == 0
        && headers[23] == TCP
        && headers[46] >= 0x50;
    plain.then(|| {
        Decoded::V4(Transport {
            source: word(26),
            destination: word(30),
            source_port: half(34),
            destination_port: half(36),
            protocol: TCP,
            flags: headers[47],
            hops: headers[22],
        })
    })
}
