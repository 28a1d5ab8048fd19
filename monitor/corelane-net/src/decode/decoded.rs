//! What [`decode`](super::decode) makes of a frame.

use super::transport::UDP;
use super::tunnel;

/// What the monitor needs of a TCP or UDP packet. Addresses are numbers (`u32` for IPv4, `u128` for IPv6) whose order
/// is the order of the addresses' bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport<A> {
    /// Source address.
    pub source: A,
    /// Destination address.
    pub destination: A,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// IP protocol number: [`TCP`](super::TCP) or [`UDP`](super::UDP).
    pub protocol: u8,
    /// The TCP flags FIN 0x01, SYN 0x02, RST 0x04, PSH 0x08, ACK 0x10 …; 0 for UDP.
    pub flags: u8,
    /// The hops that are left to it: IPv4's time to live, IPv6's hop limit.
    pub hops: u8,
    /// Whether the sequence number of the TCP segment is 0, as of the RST by which a closed port answers a SYN.
    pub is_at_zero: bool,
}

impl<A> Transport<A> {
    /// As [`Decoded::may_be_tunnel`].
    #[inline]
    pub fn may_be_tunnel(&self) -> bool {
        self.protocol == UDP && tunnel::may_be(self.source_port, self.destination_port)
    }
}

impl Transport<u128> {
    /// The same with the IPv4 addresses that are [mapped](super::mapped) in these.
    #[inline]
    pub fn to_v4(&self) -> Transport<u32> {
        let Transport { source, destination, source_port, destination_port, protocol, flags, hops, is_at_zero } = *self;
        let (source, destination) = (source as u32, destination as u32);
        Transport { source, destination, source_port, destination_port, protocol, flags, hops, is_at_zero }
    }
}

/// What a frame turned out to be. The IP header that it was decoded from decides, and nothing inside of that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// TCP with a whole 20-byte header, or UDP with a whole header, over IPv4.
    V4(Transport<u32>),
    /// The same over IPv6.
    V6(Transport<u128>),
    /// A fragment. [`datagram_at`](super::datagram_at) and [`transport`](super::transport()) say what it has.
    Fragment,
    /// An IP packet of another protocol.
    OtherIp,
    /// No IP header was reached (ARP and so on).
    Undecoded,
    /// An IP, TCP or UDP header is wrong or cut.
    Malformed,
}

impl Decoded {
    /// Whether the frame may hold a tunnel that [`innermost`](super::innermost) opens, or counts as closed. Few do, and
    /// the others need not be looked at again.
    #[inline]
    pub fn may_be_tunnel(&self) -> bool {
        match *self {
            Decoded::V4(packet) => packet.may_be_tunnel(),
            Decoded::V6(packet) => packet.may_be_tunnel(),
            Decoded::OtherIp | Decoded::Fragment => true,
            Decoded::Undecoded | Decoded::Malformed => false,
        }
    }
}
