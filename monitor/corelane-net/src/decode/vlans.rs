//! The VLANs that a frame is in.

use super::link;
use crate::capture::LinkType;

/// The VLANs that a frame is in: the numbers of its first two tags, the outermost first.
///
/// A tag with the number 0 states a priority and no VLAN (IEEE 802.1Q): it counts as none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vlans(u32);

/// Bits of a VLAN's number, …
const BITS: u32 = 12;
/// … which are the lowest of a tag.
const NUMBER: u32 = (1 << BITS) - 1;
/// A frame with a tag has as many bytes in front of its IP header, or more: two addresses, a tag and an EtherType.
const LEAST: u16 = 18;

impl Vlans {
    /// Those of a frame without tags.
    pub const NONE: Self = Vlans(0);

    /// Those of a frame whose outermost IP header begins at `at`, as [`locate`](super::locate) has found it. Tags are
    /// read of Ethernet and of Linux cooked captures, but not those of Ethernet in MPLS.
    ///
    /// ```
    /// use corelane_net::capture::LinkType;
    /// use corelane_net::decode::{Vlans, locate};
    ///
    /// let mut frame = vec![0; 12];
    /// frame.extend([0x88, 0xa8, 0, 7, 0x81, 0, 0x20, 42, 8, 0]); // QinQ: VLAN 42, with a priority, in VLAN 7
    /// frame.extend([0x45, 0, 0, 21, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 8]);
    /// let at = locate(LinkType::ETHERNET, &frame).unwrap().at;
    /// assert!(Vlans::of(LinkType::ETHERNET, &frame, at).numbers().eq([7, 42]));
    /// ```
    #[inline]
    pub fn of(link: LinkType, frame: &[u8], at: u16) -> Self {
        if at < LEAST { Self::NONE } else { Self::read(link, frame) }
    }

    #[inline(never)]
    fn read(link: LinkType, frame: &[u8]) -> Self {
        let mut vlans = Self::NONE;
        link::vlan_tags(link, frame, |tag| vlans.add(u32::from(tag) & NUMBER));
        vlans
    }

    fn add(&mut self, number: u32) {
        match self.0 {
            0 => self.0 = number,
            first @ 1..=NUMBER => self.0 = number << BITS | first,
            _ => {}
        }
    }

    /// Their numbers, from 1 to 4095.
    pub fn numbers(self) -> impl Iterator<Item = u16> {
        [self.0 & NUMBER, self.0 >> BITS].into_iter().filter(|&number| number > 0).map(|number| number as u16)
    }

    /// All in 24 bits; 0 if there are none.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// Those that [`bits`](Self::bits) has given.
    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        Vlans(bits)
    }
}
