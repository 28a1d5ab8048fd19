//! The pcap format: a 24-byte header, then records of a fixed header and the frame.
//!
//! The magic number gives the byte order, the unit of the times' fraction, and whether records carry eight more bytes,
//! as in the "modified" format.

use super::error::{OpenError, Part};
use super::order::{Big, ByteOrder, Little, Order};
use super::record::{LinkType, Record};
use super::step::{Found, LONGEST, Step, Stop};

/// Bytes of the file header.
pub(super) const FILE_HEADER: usize = 24;
/// Bytes of a record's header.
const RECORD_HEADER: usize = 16;
/// The same in the modified format, which adds the interface, protocol and packet type.
const MODIFIED_RECORD_HEADER: usize = 24;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// A record longer than the capture's own snaplen is accepted up to this length: tools that merge segments write such
/// records.
const BELIEVED: u32 = 1 << 20;

/// The facts of a file header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pcap {
    order: ByteOrder,
    modified: bool,
    /// Nanoseconds in a unit of the times' fraction.
    unit_ns: u64,
    /// The longest record that is accepted.
    limit: u32,
    link: LinkType,
}

/// The byte order and the true magic number of a file that starts like this; `None` if it is not a pcap file.
pub(super) fn recognise(start: [u8; 4]) -> Option<(ByteOrder, u32)> {
    let known = |magic| matches!(magic, MICROSECONDS | NANOSECONDS | MODIFIED);
    let (little, big) = (u32::from_le_bytes(start), u32::from_be_bytes(start));
    if known(little) {
        Some((ByteOrder::Little, little))
    } else if known(big) {
        Some((ByteOrder::Big, big))
    } else {
        None
    }
}

impl Pcap {
    /// Reads a file header that [`recognise`] found to be one.
    pub(super) fn new(order: ByteOrder, magic: u32, header: &[u8; FILE_HEADER]) -> Result<Self, OpenError> {
        let word = |at| match order {
            ByteOrder::Little => Little::u32_at(header, at),
            ByteOrder::Big => Big::u32_at(header, at),
        };
        let snaplen = word(16);
        // The upper six bits state whether frames end in a checksum; decoding does not look that far.
        let link = LinkType(word(20) & 0x03ff_ffff);
        if !link.is_supported() {
            return Err(OpenError::UnknownLink(link));
        }
        Ok(Self {
            order,
            modified: magic == MODIFIED,
            unit_ns: if magic == NANOSECONDS { 1 } else { 1_000 },
            limit: snaplen.clamp(BELIEVED, LONGEST),
            link,
        })
    }

    /// Finds the records of a window, at most `max`. `last_time` becomes the time of the last one.
    pub(super) fn walk(&self, window: &[u8], max: usize, last_time: &mut u64, found: &mut Vec<Found>) -> Step {
        match (self.order, self.modified) {
            (ByteOrder::Little, false) => self.walk_as::<Little, RECORD_HEADER>(window, max, last_time, found),
            (ByteOrder::Big, false) => self.walk_as::<Big, RECORD_HEADER>(window, max, last_time, found),
            (ByteOrder::Little, true) => self.walk_as::<Little, MODIFIED_RECORD_HEADER>(window, max, last_time, found),
            (ByteOrder::Big, true) => self.walk_as::<Big, MODIFIED_RECORD_HEADER>(window, max, last_time, found),
        }
    }

    /// The loop that decides how fast a capture can be read: one header and one bounds check a record.
    fn walk_as<O: Order, const HEADER: usize>(
        &self,
        window: &[u8],
        max: usize,
        last_time: &mut u64,
        found: &mut Vec<Found>,
    ) -> Step {
        let Self { unit_ns, limit, link, .. } = *self;
        let mut time_ns = *last_time;
        let mut rest = window;
        let mut records = 0;
        let stop = loop {
            if records == max {
                break Stop::Full;
            }
            let Some((header, body)) = rest.split_first_chunk::<HEADER>() else {
                break Stop::Short { part: Part::Header, needed: HEADER };
            };
            let length = O::u32_at(header, 8);
            if length > limit {
                break Stop::TooLong { length, limit };
            }
            let Some((data, next)) = body.split_at_checked(length as usize) else {
                break Stop::Short { part: Part::Data, needed: HEADER + length as usize };
            };
            // Cannot overflow: 2^32 seconds and 2^32 microseconds are less than 2^63 nanoseconds.
            time_ns = u64::from(O::u32_at(header, 0)) * 1_000_000_000 + u64::from(O::u32_at(header, 4)) * unit_ns;
            found.push(Found::new(window, Record { time_ns, wire_len: O::u32_at(header, 12), link, data }));
            rest = next;
            records += 1;
        };
        *last_time = time_ns;
        Step { used: window.len() - rest.len(), records, stop }
    }
}
