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
    /// The same, with the number meant for files.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "any" device.
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4 without anything in front.
    pub const IPV4: Self = Self(228);
    /// IPv6 without anything in front.
    pub const IPV6: Self = Self(229);
    /// Linux "any" device, second version.
    pub const LINUX_SLL2: Self = Self(276);

    /// Whether [`decode`](crate::decode::decode) knows this type.
    pub fn is_supported(self) -> bool {
        matches!(
            self,
            Self::NULL
                | Self::ETHERNET
                | Self::PPP
                | Self::RAW_12
                | Self::RAW_14
                | Self::RAW
                | Self::LOOP
                | Self::LINUX_SLL
                | Self::IPV4
                | Self::IPV6
                | Self::LINUX_SLL2
        )
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
