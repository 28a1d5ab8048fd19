//! An IP datagram, a fragment of one, or none.

use super::vlans::Vlans;

/// An IP datagram, or a fragment of one.
///
/// Addresses are numbers in the order of their bytes on the wire; those of IPv4 are [mapped] into IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Source address.
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Whether it came over IPv4. The addresses do not show it: IPv6 packets may have mapped ones too.
    pub is_v4: bool,
    /// IP protocol number of the payload. In an IPv6 fragment that of the header the fragmentable part begins with.
    pub protocol: u8,
    /// The hops that are left to it: IPv4's time to live, IPv6's hop limit; of the last fragment to arrive, if there
    /// were any.
    pub hops: u8,
    /// Set if this is one fragment of several.
    pub fragment: Option<Fragment>,
    /// The payload as far as it was captured.
    pub payload: &'a [u8],
    /// Bytes of the payload behind those, which were not captured.
    pub cut: u32,
    /// The frame from its outermost IP header on, if the datagram came through [tunnels](super::innermost); else
    /// nothing. [`Tunnel::of`](super::Tunnel::of) reads it.
    pub outermost: &'a [u8],
    /// The VLANs that its frame is in. [`datagram`](super::datagram) reads them, [`datagram_at`](super::datagram_at)
    /// does not.
    pub vlans: Vlans,
}

/// Which part of a datagram a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// What the fragments of a datagram have in common, beside their addresses.
    pub id: u32,
    /// Where the payload belongs, in bytes.
    pub offset: u32,
    /// Whether more of it follows behind.
    pub more: bool,
}

/// Why a frame has no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDatagram {
    /// No IP header was reached (ARP and so on).
    Undecoded,
    /// An IP header is wrong or cut.
    Malformed,
}

/// An IPv4 address as a number among those of IPv6: `::ffff:a.b.c.d`.
#[inline]
pub const fn mapped(v4: u32) -> u128 {
    MAPPED | v4 as u128
}

const MAPPED: u128 = 0xffff_0000_0000;
