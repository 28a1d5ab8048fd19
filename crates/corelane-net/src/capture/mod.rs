//! Capture files: reading pcap and pcapng, writing pcap.

pub mod write;

/// How the first bytes of a captured frame are to be read: the `LINKTYPE_` number of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u32);

/// One captured frame and what the capture says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// The frame's length on the wire in bytes, of which `data` may hold fewer.
    pub wire_len: u32,
    /// The link type of the interface that saw the frame.
    pub link: LinkType,
    /// The bytes that were captured.
    pub data: &'a [u8],
}
