//! Headers of frames.
//!
//! The headers are Ethernet, IPv4 or IPv6, and TCP or UDP. The payload is zeros, which add nothing to a checksum. So
//! the checksums of IP, TCP and UDP are all right, whether the payload is captured or not.

use super::address::{Address, wide};
use crate::decode::{TCP, UDP};

/// The longest headers: Ethernet, IPv6, TCP with the options of a SYN.
pub(super) const MAX_HEADERS: usize = ETHERNET + IPV6 + 20 + 20;
/// The most bytes in an Ethernet frame.
const MTU: usize = 1_500;
/// The largest payload of TCP with time stamps, IPv4 first.
pub(super) const FULL: [u16; 2] = [(MTU - IPV4 - 32) as u16, (MTU - IPV6 - 32) as u16];

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const URG: u8 = 0x20;

/// Room for the largest frame. The bytes behind the headers stay zero.
pub(super) type Buffer = [u8; ETHERNET + MTU];
/// No frame yet.
pub(super) const EMPTY: Buffer = [0; ETHERNET + MTU];

/// An end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The two ends that talk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) v6: bool,
    /// Client and server.
    pub(super) addresses: [Address; 2],
    pub(super) ports: [u16; 2],
}

/// A frame in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) headers: usize,
    pub(super) wire: usize,
}

/// The options of a TCP header.
#[derive(Clone, Copy, Debug)]
pub(super) enum Options {
    None,
    /// The segment size alone, as a port scanner sends it.
    SegmentSize,
    /// The options in the SYN of a usual stack: segment size, selective acknowledgements, time stamps, window scale.
    Open {
        stamp: u32,
        echo: u32,
    },
    /// Time stamps, as in every later segment.
    Stamps {
        stamp: u32,
        echo: u32,
    },
}

/// A TCP segment without its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) options: Options,
    pub(super) payload: u16,
    /// The identification of IPv4.
    pub(super) id: u16,
}

/// Writes a TCP segment that `side` sends.
#[inline]
pub(super) fn tcp(buffer: &mut Buffer, ends: &Ends, side: Side, segment: &Segment) -> Lengths {
    if ends.v6 {
        const AT: usize = ETHERNET + IPV6;
        let length = tcp_header::<AT>(buffer, ends, side, segment);
        finish::<AT>(buffer, ends, side, TCP, segment.id, length, segment.payload, AT + 16)
    } else {
        const AT: usize = ETHERNET + IPV4;
        let length = tcp_header::<AT>(buffer, ends, side, segment);
        finish::<AT>(buffer, ends, side, TCP, segment.id, length, segment.payload, AT + 16)
    }
}

/// Writes a UDP datagram that `side` sends.
#[inline]
pub(super) fn udp(buffer: &mut Buffer, ends: &Ends, side: Side, payload: u16, id: u16) -> Lengths {
    if ends.v6 {
        const AT: usize = ETHERNET + IPV6;
        udp_header::<AT>(buffer, ends, side, payload);
        finish::<AT>(buffer, ends, side, UDP, id, 8, payload, AT + 6)
    } else {
        const AT: usize = ETHERNET + IPV4;
        udp_header::<AT>(buffer, ends, side, payload);
        finish::<AT>(buffer, ends, side, UDP, id, 8, payload, AT + 6)
    }
}

#[inline]
fn tcp_header<const AT: usize>(buffer: &mut Buffer, ends: &Ends, side: Side, segment: &Segment) -> usize {
    put_ports::<AT>(buffer, ends, side);
    put32(buffer, AT + 4, segment.sequence);
    put32(buffer, AT + 8, segment.acknowledgement);
    put16(buffer, AT + 14, segment.window);
    // The checksum, and the urgent pointer.
    put32(buffer, AT + 16, 0);
    let size = FULL[usize::from(ends.v6)] + 12;
    let length = match segment.options {
        Options::None => 20,
        Options::SegmentSize => {
            put32(buffer, AT + 20, 0x0204_0000 | u32::from(size));
            24
        }
        Options::Open { stamp, echo } => {
            put32(buffer, AT + 20, 0x0204_0000 | u32::from(size));
            put32(buffer, AT + 24, 0x0402_080a);
            put32(buffer, AT + 28, stamp);
            put32(buffer, AT + 32, echo);
            put32(buffer, AT + 36, 0x0103_0307);
            40
        }
        Options::Stamps { stamp, echo } => {
            put32(buffer, AT + 20, 0x0101_080a);
            put32(buffer, AT + 24, stamp);
            put32(buffer, AT + 28, echo);
            32
        }
    };
    buffer[AT + 12] = (length as u8 / 4) << 4;
    buffer[AT + 13] = segment.flags;
    length
}

#[inline]
fn udp_header<const AT: usize>(buffer: &mut Buffer, ends: &Ends, side: Side, payload: u16) {
    put_ports::<AT>(buffer, ends, side);
    put32(buffer, AT + 4, u32::from(8 + payload) << 16);
}

#[inline]
fn put_ports<const AT: usize>(buffer: &mut Buffer, ends: &Ends, side: Side) {
    let [source, destination] = ordered(ends.ports, side);
    put32(buffer, AT, u32::from(source) << 16 | u32::from(destination));
}

/// Puts the headers of Ethernet and IP before the transport header at `AT`, its checksum at `checksum`, and zeros
/// behind.
#[allow(clippy::too_many_arguments)] // A header is a list of fields.
#[inline]
fn finish<const AT: usize>(
    buffer: &mut Buffer,
    ends: &Ends,
    side: Side,
    protocol: u8,
    id: u16,
    header: usize,
    payload: u16,
    checksum: usize,
) -> Lengths {
    let [source, destination] = ordered(ends.addresses, side);
    let length = header as u16 + payload;
    ethernet(buffer, side, ends.v6);
    let mut sum = u64::from(protocol) + u64::from(length);
    sum += if AT == ETHERNET + IPV6 {
        ipv6(buffer, source, destination, protocol, length, side)
    } else {
        ipv4(buffer, source, destination, protocol, length, id, side)
    };
    sum += buffer[AT..AT + header].as_chunks().0.iter().map(|&word| u64::from(u32::from_be_bytes(word))).sum::<u64>();
    let folded = fold(sum);
    // In UDP 0 means "none", and 0xffff stands for the sum that is the same number.
    put16(buffer, checksum, if protocol == UDP && folded == 0 { 0xffff } else { folded });
    let headers = AT + header;
    buffer[headers..MAX_HEADERS].fill(0);
    Lengths { headers, wire: headers + usize::from(payload) }
}

#[inline]
fn ethernet(buffer: &mut Buffer, side: Side, v6: bool) {
    // Two routers with locally administered addresses: the capture was made on the link between them.
    let [source, destination] = ordered([0x0200_0000_000a_u64, 0x0200_0000_000b], side);
    let addresses = u128::from(destination) << 48 | u128::from(source);
    let kind: u128 = if v6 { 0x86dd } else { 0x0800 };
    buffer[..16].copy_from_slice(&((addresses << 16 | kind) << 16).to_be_bytes());
}

/// Returns the part of the transport header's checksum that comes from the addresses.
#[inline]
fn ipv4(buffer: &mut Buffer, from: Address, to: Address, protocol: u8, length: u16, id: u16, side: Side) -> u64 {
    let addresses = (from & 0xffff_ffff) + (to & 0xffff_ffff);
    let first = 0x4500_0000 | (IPV4 as u32 + u32::from(length));
    // Don't fragment.
    let second = u32::from(id) << 16 | 0x4000;
    let third = u32::from(hops(from, side)) << 24 | u32::from(protocol) << 16;
    let sum = fold(addresses + u64::from(first) + u64::from(second) + u64::from(third));
    put32(buffer, ETHERNET, first);
    put32(buffer, ETHERNET + 4, second);
    put32(buffer, ETHERNET + 8, third | u32::from(sum));
    put32(buffer, ETHERNET + 12, from as u32);
    put32(buffer, ETHERNET + 16, to as u32);
    addresses
}

/// Returns the part of the transport header's checksum that comes from the addresses.
#[inline]
fn ipv6(buffer: &mut Buffer, from: Address, to: Address, protocol: u8, length: u16, side: Side) -> u64 {
    // A flow label that both directions share is allowed and needs no memory.
    let label = (from ^ to) as u32 & 0x000f_ffff;
    put32(buffer, ETHERNET, 0x6000_0000 | label);
    put32(buffer, ETHERNET + 4, u32::from(length) << 16 | u32::from(protocol) << 8 | u32::from(hops(from, side)));
    let mut sum = 0;
    for (at, address) in [(ETHERNET + 8, wide(from)), (ETHERNET + 24, wide(to))] {
        buffer[at..at + 16].copy_from_slice(&address.to_be_bytes());
        for shift in [0, 32, 64, 96] {
            sum += u64::from((address >> shift) as u32);
        }
    }
    sum
}

/// The hops left: clients are near, servers a few networks away.
#[inline]
fn hops(from: Address, side: Side) -> u8 {
    match side {
        Side::Client => 63,
        Side::Server => 44 + (from & 15) as u8,
    }
}

#[inline]
fn ordered<T>([client, server]: [T; 2], from: Side) -> [T; 2] {
    match from {
        Side::Client => [client, server],
        Side::Server => [server, client],
    }
}

/// The Internet checksum for a sum of 32-bit words.
#[inline]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[inline]
fn put16(buffer: &mut Buffer, at: usize, value: u16) {
    buffer[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[inline]
fn put32(buffer: &mut Buffer, at: usize, value: u32) {
    buffer[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
