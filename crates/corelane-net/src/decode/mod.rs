//! One captured frame to addresses, ports and TCP flags.

use crate::capture::LinkType;

/// What the monitor needs of a TCP or UDP packet. Addresses are numbers (`u32` for IPv4, `u128` for IPv6) whose order is
/// the order of the addresses' bytes on the wire.
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
    /// IP protocol number: [`TCP`] or [`UDP`].
    pub protocol: u8,
    /// The TCP flags FIN 0x01, SYN 0x02, RST 0x04, PSH 0x08, ACK 0x10 …; 0 for UDP.
    pub flags: u8,
}

/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;

/// What a frame turned out to be. The outermost IP header decides; what it may carry inside is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// TCP with a whole 20-byte header, or UDP with a whole header, over IPv4.
    V4(Transport<u32>),
    /// The same over IPv6.
    V6(Transport<u128>),
    /// An IP packet of another protocol, or a fragment that is not the first.
    OtherIp,
    /// No IP header was reached (ARP and so on).
    Undecoded,
    /// An IP, TCP or UDP header is wrong or cut.
    Malformed,
}

/// Decodes one frame.
#[inline]
pub fn decode(_link: LinkType, _data: &[u8]) -> Decoded {
    Decoded::Undecoded
}
