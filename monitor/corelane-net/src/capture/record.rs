//! The records that a reader hands over, and the link type of their first bytes.

/// The kind of the first bytes of a captured frame: the `LINKTYPE_` number of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// BSD loopback: the address family in the byte order of the machine that captured.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without its address and control bytes.
    pub const PPP: Self = Self(9);
    /// IPv4 or IPv6 without anything in front, as most systems number it.
    pub const RAW_12: Self = Self(12);
    /// The same, as OpenBSD numbers it.
    pub const RAW_14: Self = Self(14);
    /// PPP in frames of HDLC, or Cisco HDLC.
    pub const PPP_HDLC: Self = Self(50);
    /// PPP over Ethernet, from its own header on.
    pub const PPPOE: Self = Self(51);
    /// IPv4 or IPv6 without anything in front, with the number meant for files.
    pub const RAW: Self = Self(101);
    /// Cisco HDLC.
    pub const CISCO_HDLC: Self = Self(104);
    /// 802.11.
    pub const WIFI: Self = Self(105);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "any" device.
    pub const LINUX_SLL: Self = Self(113);
    /// 802.11 behind the header of a Prism card.
    pub const PRISM: Self = Self(119);
    /// 802.11 behind a radiotap header.
    pub const RADIOTAP: Self = Self(127);
    /// 802.11 behind an AVS header.
    pub const AVS: Self = Self(163);
    /// PPP with the direction in the place of its address byte.
    pub const PPP_PPPD: Self = Self(166);
    /// PPP behind a byte for the direction.
    pub const PPP_DIRECTION: Self = Self(204);
    /// IPv4 without anything in front.
    pub const IPV4: Self = Self(228);
    /// IPv6 without anything in front.
    pub const IPV6: Self = Self(229);
    /// What the packet filter of Linux logs: an IP packet among attributes.
    pub const NFLOG: Self = Self(239);
    /// Linux "any" device, second version.
    pub const LINUX_SLL2: Self = Self(276);

    /// All that [`decode`](crate::decode::decode) knows.
    pub const ALL: [Self; 21] = [
        Self::NULL,
        Self::ETHERNET,
        Self::PPP,
        Self::RAW_12,
        Self::RAW_14,
        Self::PPP_HDLC,
        Self::PPPOE,
        Self::RAW,
        Self::CISCO_HDLC,
        Self::WIFI,
        Self::LOOP,
        Self::LINUX_SLL,
        Self::PRISM,
        Self::RADIOTAP,
        Self::AVS,
        Self::PPP_PPPD,
        Self::PPP_DIRECTION,
        Self::IPV4,
        Self::IPV6,
        Self::NFLOG,
        Self::LINUX_SLL2,
    ];

    /// Whether [`decode`](crate::decode::decode) knows this type.
    pub fn is_supported(self) -> bool {
        Self::ALL.contains(&self)
    }
}

/// One captured frame, with its time and length by the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// The frame's length on the wire in bytes; `data` may hold fewer.
    pub wire_len: u32,
    /// The link type of the interface that saw the frame.
    pub link: LinkType,
    /// The bytes that were captured.
    pub data: &'a [u8],
}
