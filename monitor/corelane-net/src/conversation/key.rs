//! The key of a conversation, by which its packets are found.

use super::side::Side;
use crate::decode::{Packet, Vlans};

/// The protocol, the VLANs and both ends, in an order that does not depend on the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub(super) struct Key {
    /// The lesser end's address, then the other's. Each is two words, as a `u128` would align everything to 16 bytes.
    addresses: [u64; 4],
    ports: [u16; 2],
    /// The protocol, and the VLANs above its eight bits.
    kind: u32,
}

/// The end of a [`Key`] that sent a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Lesser,
    Greater,
}

impl Key {
    #[inline]
    pub(super) fn of(packet: &Packet<'_>) -> (Self, Sender) {
        let source = (packet.source, packet.source_port);
        let destination = (packet.destination, packet.destination_port);
        let (sender, lesser, greater) = if source <= destination {
            (Sender::Lesser, source, destination)
        } else {
            (Sender::Greater, destination, source)
        };
        let key = Key {
            addresses: [(lesser.0 >> 64) as u64, lesser.0 as u64, (greater.0 >> 64) as u64, greater.0 as u64],
            ports: [lesser.1, greater.1],
            kind: packet.vlans.bits() << 8 | u32::from(packet.protocol),
        };
        (key, sender)
    }

    /// The whole key in five words.
    #[inline]
    pub(super) fn words(&self) -> [u64; 5] {
        let [a, b, c, d] = self.addresses;
        let rest = u64::from(self.kind) << 32 | u64::from(self.ports[1]) << 16 | u64::from(self.ports[0]);
        [a, b, c, d, rest]
    }

    /// Equality without the branches and the call that `==` of arrays may become.
    #[inline]
    pub(super) fn equals(&self, other: &Self) -> bool {
        let (a, b) = (self.words(), other.words());
        (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4]) == 0
    }

    pub(super) fn address(&self, end: Sender) -> u128 {
        let at = 2 * end as usize;
        u128::from(self.addresses[at]) << 64 | u128::from(self.addresses[at + 1])
    }

    pub(super) fn port(&self, end: Sender) -> u16 {
        self.ports[end as usize]
    }

    #[inline]
    pub(super) fn protocol(&self) -> u8 {
        self.kind as u8
    }

    /// The same ends in no VLAN.
    pub(super) fn without_vlans(&self) -> Self {
        Self { kind: self.protocol().into(), ..*self }
    }

    pub(super) fn vlans(&self) -> Vlans {
        Vlans::from_bits(self.kind >> 8)
    }
}

impl Sender {
    #[inline]
    pub(super) fn other(self) -> Self {
        match self {
            Sender::Lesser => Sender::Greater,
            Sender::Greater => Sender::Lesser,
        }
    }

    /// The side of this end, if `originator` is the end that opened.
    #[inline]
    pub(super) fn side(self, originator: Sender) -> Side {
        if self == originator { Side::Originator } else { Side::Responder }
    }
}
