//! The walk over the frames of a block, over bytes alone: what the kernel wrote is checked here.
//!
//! Offsets and lengths in a block are the kernel's. Each is checked against the block before it is used, as every read
//! is a checked slice. A frame whose place is wrong is counted and skipped. Where the place of the next one is wrong,
//! the rest of the block is counted. Neither ends a capture.

use corelane::prefetch_read;

use crate::capture::record::{LinkType, Record};

/// The place of the word by which a block changes hands.
pub(super) const STATUS: usize = 8;
/// The first byte behind that word. A block is lent from here on, so no reference covers the word, and all offsets in
/// this file count from here.
pub(super) const LENT: usize = STATUS + 4;
/// The fields of the block's header that are read.
const FRAMES: usize = 12 - LENT;
const FIRST: usize = 16 - LENT;

/// Bytes of the header in front of each frame, and of the address that the kernel writes behind it.
const HEADER: usize = 48;
const ADDRESS: usize = 20;
/// Bytes of a VLAN tag, and of the two addresses in front of it.
pub(super) const TAG: usize = 4;
const MACS: usize = 12;
/// The tag if the kernel does not state which one it was.
const VLAN: u16 = 0x8100;

/// Bytes of a cache line.
const LINE: usize = 64;
/// How far ahead of a frame the block is asked for: a line from another CPU's cache takes as long as some small frames,
/// and this much fits well into the first cache.
const AHEAD: usize = 2048;
/// The ring's header of a frame, and the packet's headers behind it.
const HEADERS: usize = 192;
/// Frames above this are large.
const LARGE: usize = 1024;

/// What is the same for all frames of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) link: LinkType,
    /// No record has more bytes.
    pub(super) snaplen: usize,
    /// The bytes that are kept of packets whose payload is not wanted.
    pub(super) kept: Option<usize>,
}

/// What was found in the blocks of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Frames handed out.
    pub(super) handed_out: u64,
    /// Of those, frames that were longer on the wire, and that lack what was wanted.
    pub(super) truncated: u64,
    /// Frames that were not handed out, as their place was wrong.
    pub(super) damaged: u64,
}

/// A position in a block.
#[derive(Debug)]
pub(super) struct Walk {
    /// The header of the next frame.
    position: usize,
    /// Frames from there on.
    left: usize,
    /// What is in front of this was asked for.
    asked: usize,
}

/// The fields of a frame's header that are used.
struct Header {
    next: usize,
    time_ns: u64,
    captured: usize,
    length: u32,
    start: usize,
    /// The tag that the kernel took from the frame, if it did.
    tag: Option<[u8; TAG]>,
}

impl Walk {
    /// The first frame of a block, given as its bytes from [`LENT`] on.
    pub(super) fn new(lent: &[u8]) -> Self {
        let first = word(lent, FIRST).and_then(|first| (first as usize).checked_sub(LENT));
        // A count of more frames than fit is wrong, and must not make the statistics wrong by more than a block.
        let left = (word(lent, FRAMES).unwrap_or(0) as usize).min(lent.len() / HEADER);
        Self { position: first.unwrap_or(usize::MAX), left, asked: 0 }
    }

    /// Asks for what is up to [`AHEAD`] bytes behind a frame's header, or for the next frame's headers if the frame is
    /// large, as most of it is not read. The kernel has just written it on another CPU. The place of a frame is known
    /// only from the one before, so without this the walk would wait for each of them.
    #[inline]
    fn ask(&mut self, lent: &[u8], header: usize, size: usize) {
        let lines = if size > LARGE {
            let next = header.saturating_add(size);
            next..next.saturating_add(HEADERS)
        } else {
            let lines = self.asked.max(header)..header.saturating_add(AHEAD);
            self.asked = self.asked.max(lines.end);
            lines
        };
        lines.step_by(LINE).filter_map(|line| lent.get(line)).for_each(prefetch_read);
    }

    /// Whether no frame is left.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Hands up to `max` frames to `sink`, and returns their number. A VLAN tag is put back in place. A `sink` that
    /// panics has used up its frame.
    #[inline]
    pub(super) fn read(
        &mut self,
        lent: &mut [u8],
        view: View,
        max: usize,
        tally: &mut Tally,
        sink: &mut impl FnMut(Record<'_>),
    ) -> usize {
        let mut count = 0;
        while count < max && self.left > 0 {
            let position = self.position;
            let Some(header) = Header::read(lent, position) else {
                self.give_up(tally);
                break;
            };
            self.left -= 1;
            self.ask(lent, position, header.next);
            match position.checked_add(header.next) {
                Some(next) if header.next >= HEADER => self.position = next,
                // The last frame has 0.
                _ => self.give_up(tally),
            }
            let Some(record) = header.record(lent, position, view) else {
                tally.damaged += 1;
                continue;
            };
            count += 1;
            tally.handed_out += 1;
            let is_short = record.data.len() < record.wire_len as usize && view.kept != Some(header.captured);
            tally.truncated += u64::from(is_short);
            sink(record);
        }
        count
    }

    #[cold]
    fn give_up(&mut self, tally: &mut Tally) {
        tally.damaged += self.left as u64;
        self.left = 0;
    }
}

impl Header {
    /// The header at `position`; `None` if it is not in the block as a whole.
    #[inline]
    fn read(lent: &[u8], position: usize) -> Option<Self> {
        let header = lent.get(position..)?.first_chunk::<HEADER>()?;
        let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let status = word(20);
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { half(36) } else { VLAN };
            let ([a, b], [c, d]) = (kind.to_be_bytes(), (word(32) as u16).to_be_bytes());
            [a, b, c, d]
        });
        Some(Self {
            next: word(0) as usize,
            time_ns: u64::from(word(4)) * 1_000_000_000 + u64::from(word(8)),
            captured: word(12) as usize,
            length: word(16),
            start: usize::from(half(24)),
            tag,
        })
    }

    /// The frame; `None` if it is not in the block, or not behind its header.
    #[inline]
    fn record<'a>(&self, lent: &'a mut [u8], position: usize, view: View) -> Option<Record<'a>> {
        // Room for a tag was asked for in front of every frame, so less of it is damage too.
        if self.start < HEADER + ADDRESS + TAG {
            return None;
        }
        let mut start = position.checked_add(self.start)?;
        let end = start.checked_add(self.captured)?;
        let frame = lent.get(start..end)?;
        let mut wire_len = self.length.max(frame.len() as u32);
        if let (Some(tag), LinkType::ETHERNET) = (self.tag, view.link) {
            wire_len = wire_len.saturating_add(TAG as u32);
            if frame.len() >= MACS {
                lent.copy_within(start..start + MACS, start - TAG);
                start -= TAG;
                lent[start + MACS..][..TAG].copy_from_slice(&tag);
            }
        }
        let data = &lent[start..end.min(start.saturating_add(view.snaplen))];
        Some(Record { time_ns: self.time_ns, wire_len, link: view.link, data })
    }
}

fn word(lent: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*lent.get(at..)?.first_chunk()?))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame for a block made by hand.
    #[derive(Clone, Debug)]
    pub(crate) struct Frame {
        pub(crate) time: (u32, u32),
        pub(crate) data: Vec<u8>,
        pub(crate) length: u32,
        pub(crate) tag: Option<(Option<u16>, u16)>,
    }

    impl Frame {
        pub(crate) fn new(data: Vec<u8>) -> Self {
            let length = data.len() as u32;
            Self { time: (7, 9), data, length, tag: None }
        }
    }

    /// Writes a block as the kernel does, but for its status.
    pub(crate) fn fill(lent: &mut [u8], frames: &[Frame]) {
        let put = |lent: &mut [u8], at: usize, bytes: &[u8]| lent[at..at + bytes.len()].copy_from_slice(bytes);
        put(lent, FRAMES, &(frames.len() as u32).to_ne_bytes());
        put(lent, FIRST, &48_u32.to_ne_bytes());
        let mut position = 48 - LENT;
        for (index, frame) in frames.iter().enumerate() {
            let start = 86;
            let size = (start + frame.data.len()).next_multiple_of(8);
            let next = if index + 1 == frames.len() { 0 } else { size };
            let (mut status, mut kind, mut tci) = (1, 0, 0);
            if let Some((tag, control)) = frame.tag {
                status |= libc::TP_STATUS_VLAN_VALID;
                tci = u32::from(control);
                if let Some(tag) = tag {
                    (status, kind) = (status | libc::TP_STATUS_VLAN_TPID_VALID, tag);
                }
            }
            let words = [next as u32, frame.time.0, frame.time.1, frame.data.len() as u32, frame.length, status];
            for (at, word) in words.into_iter().enumerate() {
                put(lent, position + 4 * at, &word.to_ne_bytes());
            }
            put(lent, position + 24, &(start as u16).to_ne_bytes());
            put(lent, position + 32, &tci.to_ne_bytes());
            put(lent, position + 36, &kind.to_ne_bytes());
            put(lent, position + start, &frame.data);
            position += size;
        }
    }

    type Owned = (u64, u32, Vec<u8>);

    fn read(lent: &mut [u8], view: View, max: usize) -> (Vec<Owned>, Tally) {
        let (mut walk, mut tally, mut records) = (Walk::new(lent), Tally::default(), Vec::new());
        while !walk.is_over() {
            let before = records.len();
            let mut sink = |record: Record<'_>| {
                assert!(record.data.len() <= record.wire_len as usize);
                records.push((record.time_ns, record.wire_len, record.data.to_vec()));
            };
            let count = walk.read(lent, view, max, &mut tally, &mut sink);
            assert!(count <= max && count == records.len() - before);
        }
        assert_eq!(tally.handed_out, records.len() as u64);
        (records, tally)
    }

    const ETHERNET: View = View { link: LinkType::ETHERNET, snaplen: 65_535, kept: None };

    #[test]
    fn frames_come_in_order_with_their_bytes_and_tags() {
        let bytes: Vec<u8> = (0..40).collect();
        let mut frames = vec![Frame::new(bytes.clone()); 4];
        frames[1].tag = Some((Some(0x88a8), 0x6123));
        frames[2].tag = Some((None, 5));
        frames[3].length = 90;
        for max in [1, 3, 100] {
            let mut lent = vec![0; 1024];
            fill(&mut lent, &frames);
            let (records, tally) = read(&mut lent, ETHERNET, max);
            let tagged = |tag: [u8; 4]| [&bytes[..12], &tag, &bytes[12..]].concat();
            let time = 7_000_000_009;
            assert_eq!(
                records,
                [
                    (time, 40, bytes.clone()),
                    (time, 44, tagged([0x88, 0xa8, 0x61, 0x23])),
                    (time, 44, tagged([0x81, 0, 0, 5])),
                    (time, 90, bytes.clone()),
                ]
            );
            assert_eq!(tally, Tally { handed_out: 4, truncated: 1, damaged: 0 });
        }
    }

    #[test]
    fn no_record_is_longer_than_asked_for() {
        let mut frames = vec![Frame::new((0..40).collect()); 2];
        frames[1].tag = Some((None, 5));
        let mut lent = vec![0; 1024];
        fill(&mut lent, &frames);
        let (records, tally) = read(&mut lent, View { snaplen: 20, ..ETHERNET }, 9);
        assert_eq!(records[0].1, 40);
        assert_eq!(records[1].1, 44);
        assert!(records.iter().all(|record| record.2.len() == 20));
        assert_eq!(tally.truncated, 2);
    }

    #[test]
    fn a_frame_outside_the_block_is_counted_and_the_next_one_read() {
        let frames = vec![Frame::new(vec![5; 40]); 3];
        let mut lent = vec![0; 1024];
        fill(&mut lent, &frames);
        let second = 48 - LENT + (86_usize + 40).next_multiple_of(8);
        lent[second + 12..second + 16].copy_from_slice(&2000_u32.to_ne_bytes());
        let (records, tally) = read(&mut lent, ETHERNET, 9);
        assert_eq!(records.len(), 2);
        assert_eq!(tally.damaged, 1);
    }

    /// Its tag would be written over the header.
    #[test]
    fn a_frame_without_room_in_front_is_counted() {
        let mut lent = vec![0; 1024];
        fill(&mut lent, &vec![Frame::new(vec![5; 40]); 3]);
        for (start, damaged) in [(71_u16, 1), (72, 0)] {
            lent[48 - LENT + 24..][..2].copy_from_slice(&start.to_ne_bytes());
            let (records, tally) = read(&mut lent.clone(), ETHERNET, 9);
            assert_eq!((records.len(), tally.damaged), (3 - damaged, damaged as u64));
        }
    }

    #[test]
    fn a_chain_that_leaves_the_block_or_stands_still_ends_it() {
        for next in [0_u32, 1, 47, 1000, u32::MAX] {
            let mut lent = vec![0; 1024];
            fill(&mut lent, &vec![Frame::new(vec![5; 40]); 3]);
            lent[48 - LENT..52 - LENT].copy_from_slice(&next.to_ne_bytes());
            let (records, tally) = read(&mut lent, ETHERNET, 9);
            assert_eq!((records.len(), tally.damaged), (1, 2), "next {next}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 30 } else { 4000 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// A read outside panics, so that the walk ends at all is what is tested, and that its counts stay small.
        #[test]
        fn random_bytes_never_panic(mut lent in prop::collection::vec(any::<u8>(), 0..600), max in 1_usize..5) {
            let most = lent.len() / HEADER;
            let (records, tally) = read(&mut lent, ETHERNET, max);
            prop_assert!(records.len() + tally.damaged as usize <= most);
        }

        /// The fields of sound blocks are changed one by one, which comes further than noise.
        #[test]
        fn damaged_blocks_never_panic(
            lengths in prop::collection::vec(0_usize..80, 1..6),
            changes in prop::collection::vec((0_usize..1000, 0_usize..8), 0..6),
            tags in any::<bool>(),
            max in 1_usize..5,
        ) {
            let frames: Vec<Frame> = lengths.iter().map(|&length| {
                let mut frame = Frame::new(vec![1; length]);
                frame.tag = tags.then_some((Some(0x8100), 3));
                frame
            }).collect();
            let mut lent = vec![0; 1000];
            fill(&mut lent, &frames);
            for (at, value) in changes {
                lent[at] = [0, 1, 8, 47, 48, 72, 200, 255][value];
            }
            let (records, tally) = read(&mut lent, ETHERNET, max);
            prop_assert!(records.len() as u64 + tally.damaged <= (1000 / HEADER) as u64);
        }
    }
}
