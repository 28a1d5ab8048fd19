//! Packets of other protocols than TCP and UDP that ask a host, or answer: what sweeps of networks are made of.

use super::datagram::Datagram;
use super::ip;
use super::link;
use super::transport::{TCP, UDP};
use crate::capture::LinkType;

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
const SCTP: u8 = 132;
/// What hosts send one another all the time, if at all: tunnels, and what is encrypted.
const CARRIERS: [u8; 9] = [4, 41, 47, 50, 51, 97, 115, 136, 137];

/// What a host is asked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// ICMP and ICMPv6 that hosts answer: echo, timestamp, address mask, information.
    Ping,
    /// ARP.
    Arp,
    /// An IP protocol that seldom goes from one host to another, whatever it says.
    Protocol,
    /// The begin of an SCTP association: INIT and its answer, COOKIE ECHO and its answer.
    Sctp,
}

/// A packet that asks a host, or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<A> {
    /// Source address.
    pub source: A,
    /// Destination address.
    pub destination: A,
    /// By what.
    pub by: Asked,
    /// What is asked for at the host that is asked: of SCTP a port, of [`Asked::Protocol`] its number, else 0.
    pub port: u16,
    /// Whether it answers.
    pub is_answer: bool,
}

impl Question<u128> {
    /// The same with the IPv4 addresses that are [mapped](super::mapped) in these.
    pub fn to_v4(&self) -> Question<u32> {
        let Question { source, destination, by, port, is_answer } = *self;
        Question { source: source as u32, destination: destination as u32, by, port, is_answer }
    }
}

/// What a datagram or first fragment asks or answers, if it is neither TCP nor UDP.
///
/// What goes to a multicast or broadcast address, or comes from none, asks nothing; nor do errors, which quote packets.
#[cold]
pub fn question(datagram: &Datagram<'_>) -> Option<Question<u128>> {
    let Datagram { source, destination, is_v4, fragment, .. } = *datagram;
    let (mut protocol, mut payload) = (datagram.protocol, datagram.payload);
    if let Some(fragment) = fragment {
        if fragment.offset != 0 {
            return None;
        }
        (protocol, payload) = ip::behind_first_fragment(is_v4, protocol, payload).ok()?;
    }
    let is_to_many = if is_v4 { is_to_many(destination as u32) } else { destination >> 120 == 0xff };
    let is_from_none = source == if is_v4 { super::mapped(0) } else { 0 };
    if is_to_many || is_from_none {
        return None;
    }
    let (by, port, is_answer) = match (protocol, is_v4) {
        (ICMP, true) => match *payload.first()? {
            8 | 13 | 15 | 17 => (Asked::Ping, 0, false),
            0 | 14 | 16 | 18 => (Asked::Ping, 0, true),
            _ => return None,
        },
        (ICMP_V6, false) => match *payload.first()? {
            128 | 139 => (Asked::Ping, 0, false),
            129 | 140 => (Asked::Ping, 0, true),
            _ => return None,
        },
        (SCTP, _) => {
            let header = payload.first_chunk::<13>()?;
            let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
            // The type of the first chunk.
            match header[12] {
                1 | 10 => (Asked::Sctp, port(2), false),
                2 | 11 => (Asked::Sctp, port(0), true),
                _ => return None,
            }
        }
        (TCP | UDP, _) => return None,
        (carrier, _) if CARRIERS.contains(&carrier) => return None,
        (other, _) => (Asked::Protocol, other.into(), false),
    };
    Some(Question { source, destination, by, port, is_answer })
}

/// What a frame of ARP asks or answers, and where its packet begins. One that tells or tests its sender's own address
/// asks nothing.
#[cold]
pub fn arp(link: LinkType, data: &[u8]) -> Option<(u16, Question<u32>)> {
    let packet = link::arp(link, data)?;
    let at = u16::try_from(data.len() - packet.len()).ok()?;
    Some((at, arp_at(data, at)?))
}

/// The same where the packet begins at `at`.
#[cold]
pub fn arp_at(frame: &[u8], at: u16) -> Option<Question<u32>> {
    const REQUEST: u8 = 1;
    const REPLY: u8 = 2;
    // Any hardware whose number no IP header begins with; IPv4.
    let (&[0, _, 8, 0, length, 4, 0, operation], addresses) = frame.get(usize::from(at)..)?.split_first_chunk()? else {
        return None;
    };
    let address = |at: usize| Some(u32::from_be_bytes(*addresses.get(at..)?.first_chunk()?));
    let length = usize::from(length);
    let (source, destination) = (address(length)?, address(2 * length + 4)?);
    if !matches!(operation, REQUEST | REPLY) || source == destination || source == 0 || is_to_many(destination) {
        return None;
    }
    Some(Question { source, destination, by: Asked::Arp, port: 0, is_answer: operation == REPLY })
}

/// Whether an IPv4 address names no single host.
fn is_to_many(address: u32) -> bool {
    address == 0 || address >= 0xe000_0000
}
