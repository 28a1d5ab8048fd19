//! The state of one conversation.

use super::key::{Key, Sender};
use super::side::Side;
use super::stream::{Extra, Marks, STARTED, Stream};
use super::syns::Syn;
use crate::decode::{Packet, TCP, Tunnel, Vlans};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A conversation of two ends over TCP or UDP, without its application.
///
/// It has 120 bytes. With the place of the application it has two cache lines, and a packet in order touches no others.
#[derive(Debug)]
#[repr(C)]
pub struct Conversation {
    key: Key,
    pub(super) first_ns: u64,
    last_ns: u64,
    /// The tick of its last packet, as the lists know it.
    pub(super) touched: Tick,
    pub(super) older: u32,
    pub(super) newer: u32,
    tcp_flags: [u8; 2],
    pub(super) marks: [Marks; 2],
    pub(super) streams: [Stream; 2],
    /// Packets of each side, in 48 bits: the lower ones …
    packets: [u32; 2],
    /// … and those above them.
    more_packets: [u16; 2],
    pub(super) class: Class,
    pub(super) originator: Sender,
    pub(super) flags: u8,
}

/// A conversation with the state that it has once it has brought payload.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Entry<A> {
    pub(super) conversation: Conversation,
    pub(super) extra: Option<Box<Extra<A>>>,
}

/// The list that a conversation is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Only one end was seen to send, SYNs aside.
    Unconfirmed,
    Udp,
    Tcp,
    /// Both ends are done.
    Closed,
}

/// Time as the lists know it, in units of 2^30 nanoseconds.
pub(super) type Tick = u32;

/// Picked up in the middle.
pub(super) const MIDSTREAM: u8 = 1;
/// An RST has ended it.
pub(super) const RESET: u8 = 2;
/// It is in the list of those that hold bytes back.
pub(super) const HOLDING: u8 = 4;
/// It came through a tunnel, which the partition knows.
pub(super) const TUNNELLED: u8 = 8;

/// The originator's last segment was an acknowledgment with padding, which was passed over; twice that for the
/// responder.
pub(super) const PADDED: u8 = 16;

/// Stands for no conversation, in the place of a number.
pub(super) const NONE: u32 = u32::MAX;

/// The end of a conversation, and its losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Why it is over.
    pub reason: Reason,
    /// Bytes of each [side](Side::index) that were given up, of those that the application would have got.
    pub missed: [u64; 2],
    /// The tunnel that it came through: as in [`Observer::progress`](super::Observer::progress).
    pub tunnel: Option<Tunnel>,
}

/// Why a conversation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Both ends have closed.
    Finished,
    /// An RST.
    Reset,
    /// A new connection has taken its ports.
    Replaced,
    /// There were no packets for too long.
    TimedOut,
    /// Its memory was needed.
    Evicted,
    /// The capture has ended.
    CaptureEnded,
}

/// How far a conversation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Only one end was seen to send; a SYN that nothing else followed does not count.
    New,
    /// Both ends were seen to send.
    Established,
    /// Both ends have closed, or one has reset it.
    Closed,
}

impl Conversation {
    pub(super) fn new(key: &Key, originator: Sender, first_ns: u64) -> Self {
        Self {
            key: *key,
            first_ns,
            last_ns: first_ns,
            touched: 0,
            older: NONE,
            newer: NONE,
            tcp_flags: [0; 2],
            marks: [Marks::default(); 2],
            streams: [Stream::default(); 2],
            packets: [0; 2],
            more_packets: [0; 2],
            class: Class::Unconfirmed,
            originator,
            flags: 0,
        }
    }

    #[inline]
    pub(super) fn key(&self) -> Key {
        self.key
    }

    /// Counts a packet of a side.
    #[inline]
    pub(super) fn count(&mut self, side: Side, packet: &Packet<'_>) {
        self.count_packets(side, packet.frames);
        self.streams[side.index()].bytes += u64::from(packet.wire_len);
        self.tcp_flags[side.index()] |= packet.flags;
        self.first_ns = self.first_ns.min(packet.time_ns);
        self.last_ns = self.last_ns.max(packet.time_ns);
    }

    #[inline]
    fn count_packets(&mut self, side: Side, more: u32) {
        let (packets, is_full) = self.packets[side.index()].overflowing_add(more);
        self.packets[side.index()] = packets;
        let more_packets = &mut self.more_packets[side.index()];
        *more_packets = more_packets.wrapping_add(u16::from(is_full));
    }

    /// Counts the SYNs of the originator that came before the conversation began.
    pub(super) fn count_syns(&mut self, syn: &Syn) {
        self.count_packets(Side::Originator, syn.frames);
        self.streams[Side::Originator.index()].bytes += u64::from(syn.bytes);
        self.tcp_flags[0] |= crate::decode::flags::SYN;
        self.first_ns = self.first_ns.min(syn.first_ns);
        self.last_ns = self.last_ns.max(syn.last_ns);
    }

    /// An attempt that led to nothing, and the RST that refused it.
    pub(super) fn attempt(syn: &Syn, refusal: Option<&Packet<'_>>) -> Self {
        let mut attempt = Self::new(&syn.key, syn.sender, syn.first_ns);
        attempt.count_syns(syn);
        if let Some(refusal) = refusal {
            attempt.count(Side::Responder, refusal);
            attempt.class = Class::Closed;
        }
        attempt
    }

    /// IP protocol number: [`TCP`] or [`UDP`](crate::decode::UDP).
    pub fn protocol(&self) -> u8 {
        self.key.protocol()
    }

    /// Whether it is a TCP connection.
    pub fn is_tcp(&self) -> bool {
        self.protocol() == TCP
    }

    /// The VLANs that its packets are in.
    pub fn vlans(&self) -> Vlans {
        self.key.vlans()
    }

    /// The address and port of a side.
    pub fn end(&self, side: Side) -> SocketAddr {
        let sender = match side {
            Side::Originator => self.originator,
            Side::Responder => self.originator.other(),
        };
        // IPv4 addresses mapped into IPv6 become IPv4 again.
        let address = IpAddr::V6(Ipv6Addr::from(self.key.address(sender))).to_canonical();
        SocketAddr::new(address, self.key.port(sender))
    }

    /// The smallest time of its packets, in nanoseconds since the epoch.
    pub fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// The largest time of its packets, in nanoseconds since the epoch.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// The frames that a side has sent.
    pub fn packets(&self, side: Side) -> u64 {
        u64::from(self.more_packets[side.index()]) << 32 | u64::from(self.packets[side.index()])
    }

    /// The bytes of these frames on the wire.
    pub fn bytes(&self, side: Side) -> u64 {
        self.streams[side.index()].bytes
    }

    /// The TCP flags that a side has ever set.
    pub fn tcp_flags(&self, side: Side) -> u8 {
        self.tcp_flags[side.index()]
    }

    /// The state that it is in.
    pub fn state(&self) -> State {
        match self.class {
            Class::Unconfirmed => State::New,
            Class::Udp | Class::Tcp => State::Established,
            Class::Closed => State::Closed,
        }
    }

    /// Whether it was picked up in the middle: neither its SYN nor its SYN-ACK is known.
    pub fn is_midstream(&self) -> bool {
        self.flags & MIDSTREAM != 0
    }

    /// Whether the sequence numbers of a side are known.
    pub(super) fn has_started(&self, side: Side) -> bool {
        self.marks[side.index()].has(STARTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{UDP, mapped};

    #[test]
    fn packets_are_counted_beyond_32_bits() {
        let packet = Packet {
            time_ns: 0,
            wire_len: 60,
            frames: u32::MAX,
            source: mapped(1),
            destination: mapped(2),
            source_port: 1,
            destination_port: 2,
            protocol: UDP,
            flags: 0,
            sequence: 0,
            acknowledgment: 0,
            payload: &[],
            cut: 0,
            outermost: &[],
            vlans: Vlans::NONE,
        };
        let (key, sender) = Key::of(&packet);
        let mut conversation = Conversation::new(&key, sender, 0);
        for times in 1..=5 {
            conversation.count(Side::Responder, &packet);
            let packets = Side::BOTH.map(|side| conversation.packets(side));
            assert_eq!(packets, [0, times * u64::from(u32::MAX)]);
        }
    }

    #[test]
    fn an_entry_is_two_cache_lines() {
        assert_eq!(size_of::<Conversation>(), 120);
        assert_eq!((size_of::<Entry<()>>(), align_of::<Entry<()>>()), (128, 64));
        assert_eq!(std::mem::offset_of!(Conversation, newer), 64);
    }
}
