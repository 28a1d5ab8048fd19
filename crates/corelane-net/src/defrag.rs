//! IPv4 and IPv6 fragments to whole datagrams, within bounds.
//!
//! From RFC 791, section 3.2, and RFC 8200, section 4.5.
//!
//! 1. Fragments of one datagram have its addresses and identification, in IPv4 the protocol too. The datagrams that are
//!    incomplete lie in a list, the one begun last at its end. There are few of them, so a fragment finds its own by a
//!    walk from the end: no hash to attack, nothing whose order depends on keys, memory that is plain to count.
//! 2. Each fragment is kept as a piece, at the size it has. A buffer as long as the farthest offset would let fragments
//!    of eight bytes reserve 64 kB each.
//! 3. When the pieces reach from 0 to the end that the last fragment tells, they are copied one behind the other into
//!    the caller's buffer, and the datagram is forgotten.
//!
//! # Overlaps
//!
//! A fragment that is there already in the same place, and no longer than that, is a duplicate and ignored. Beyond that
//! an IPv4 fragment overlaps at its own expense: what came first stays, only what is new of it is kept. Of an IPv6
//! datagram nothing is kept, and nothing further of it is taken, as section 4.5 has every host do. [`Counts`] tells
//! overlaps, those of them that lie wholly inside what is there (the teardrop attack), and those whose bytes differ.
//!
//! # Bounds
//!
//! Datagrams, the bytes reserved for them, and the pieces of each are limited. A datagram that comes too many makes the
//! oldest one go, as do bytes; a piece too many makes its own datagram go. Time-outs are by the time of packets and of
//! marks, from a datagram's first fragment on. All of this depends on the fragments alone, in their order.

use crate::decode::{Datagram, Fragment};
use std::collections::VecDeque;

/// What a [`Defragmenter`] may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Datagrams that are incomplete, at least 1.
    pub datagrams: usize,
    /// Bytes reserved for them. A datagram that alone needs more is dropped, so this should be several times 64 kB.
    pub bytes: usize,
    /// Pieces of a datagram.
    pub pieces: usize,
    /// From the first fragment of a datagram until it is given up, in nanoseconds.
    pub timeout_ns: u64,
}

impl Default for Limits {
    /// For one of 256 partitions: 64 datagrams, 256 kB, 256 pieces of a datagram, 30 s.
    fn default() -> Self {
        Self { datagrams: 64, bytes: 256 << 10, pieces: 256, timeout_ns: 30_000_000_000 }
    }
}

/// What happened to fragments and their datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Fragments taken, good or bad.
    pub fragments: u64,
    /// Datagrams that became whole.
    pub whole: u64,
    /// Fragments that were there already.
    pub duplicates: u64,
    /// Fragments that overlap others and are no duplicates.
    pub overlaps: u64,
    /// Of these, those that lie wholly inside what is there, or around it: a teardrop.
    pub teardrops: u64,
    /// Of the overlaps, those whose bytes differ from what came first.
    pub conflicts: u64,
    /// Fragments that no sender may make: without payload, not a multiple of eight bytes long though more follows,
    /// beyond 65,535 bytes, behind the end or with another end than before.
    pub malformed: u64,
    /// Fragments that were not captured to their end, which makes their datagrams hopeless.
    pub cut: u64,
    /// Fragments of IPv6 datagrams that were given up for an overlap.
    pub refused: u64,
    /// Datagrams given up as there were too many.
    pub evicted: u64,
    /// Datagrams given up for their number of pieces.
    pub too_many_pieces: u64,
    /// Datagrams given up for their age, or at the end.
    pub timed_out: u64,
}

impl Counts {
    /// Adds what another one counted.
    pub fn add(&mut self, other: &Self) {
        self.fragments += other.fragments;
        self.whole += other.whole;
        self.duplicates += other.duplicates;
        self.overlaps += other.overlaps;
        self.teardrops += other.teardrops;
        self.conflicts += other.conflicts;
        self.malformed += other.malformed;
        self.cut += other.cut;
        self.refused += other.refused;
        self.evicted += other.evicted;
        self.too_many_pieces += other.too_many_pieces;
        self.timed_out += other.timed_out;
    }
}

/// A datagram that became whole. Its payload is in the buffer that the caller lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<'a> {
    /// The datagram, no longer a fragment.
    pub datagram: Datagram<'a>,
    /// The fragments it came in.
    pub frames: u32,
    /// The bytes on the wire of their frames.
    pub wire_len: u32,
}

/// What fragments of a datagram have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    source: u128,
    destination: u128,
    is_v4: bool,
    id: u32,
    /// 0 in IPv6, where only the first fragment says it.
    protocol: u8,
}

#[derive(Debug)]
struct Piece {
    start: u32,
    data: Box<[u8]>,
}

impl Piece {
    fn end(&self) -> u32 {
        self.start + self.data.len() as u32
    }
}

#[derive(Debug)]
struct Incomplete {
    key: Key,
    begun_ns: u64,
    /// In order, none overlapping another.
    pieces: Vec<Piece>,
    /// Bytes in the pieces.
    covered: u32,
    /// Where the last fragment ends, once it is there.
    end: Option<u32>,
    /// Of the fragment at the front.
    protocol: u8,
    frames: u32,
    wire_len: u32,
    /// Given up for an overlap: what still comes of it is refused.
    refused: bool,
}

/// What an allocation is charged beside its bytes.
const ALLOCATION: usize = 16;

impl Incomplete {
    fn reserved(&self) -> usize {
        self.covered as usize + self.pieces.len() * ALLOCATION + self.pieces.capacity() * size_of::<Piece>()
    }

    /// Forgets the pieces, but not that the datagram was there.
    fn refuse(&mut self) {
        self.pieces = Vec::new();
        self.covered = 0;
        self.refused = true;
    }
}

/// Puts fragments together. See the [module](self).
///
/// One of these belongs to each partition: all fragments of a datagram have the same addresses, and so the same
/// partition.
#[derive(Debug)]
pub struct Defragmenter {
    limits: Limits,
    /// The one begun first at the front.
    incomplete: VecDeque<Incomplete>,
    /// Reserved by what is in the list, without the list.
    pieces_bytes: usize,
    /// The largest time so far.
    clock: u64,
    counts: Counts,
}

/// The longest payload of an IP datagram.
const LONGEST: u32 = 65_535;

impl Defragmenter {
    /// One without fragments, and without memory.
    ///
    /// # Panics
    ///
    /// If `limits` allow no datagram.
    pub fn new(limits: &Limits) -> Self {
        assert!(limits.datagrams > 0, "`limits.datagrams` is 0: allow at least 1 datagram");
        Self { limits: *limits, incomplete: VecDeque::new(), pieces_bytes: 0, clock: 0, counts: Counts::default() }
    }

    /// What happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Bytes reserved for incomplete datagrams.
    pub fn reserved_bytes(&self) -> usize {
        self.incomplete.capacity() * size_of::<Incomplete>() + self.pieces_bytes
    }

    /// Takes a fragment that came in a frame of `wire_len` bytes. If it makes its datagram whole the payload is put
    /// into `buffer`, in the place of what is in there.
    ///
    /// # Panics
    ///
    /// If `datagram` is not a fragment.
    pub fn fragment<'a>(
        &mut self,
        time_ns: u64,
        wire_len: u32,
        datagram: &Datagram<'_>,
        buffer: &'a mut Vec<u8>,
    ) -> Option<Whole<'a>> {
        let fragment = datagram.fragment.expect("the datagram is not a fragment: pass fragments only");
        self.counts.fragments += 1;
        self.expire(time_ns);
        let Datagram { source, destination, is_v4, .. } = *datagram;
        let protocol = if is_v4 { datagram.protocol } else { 0 };
        let key = Key { source, destination, is_v4, id: fragment.id, protocol };
        let end = match self.judge(&fragment, datagram) {
            Ok(end) => end,
            Err(count) => {
                *count += 1;
                return None;
            }
        };
        let number = self.find_or_begin(key, time_ns);
        let kept = self.insert(number, !is_v4, &fragment, end, datagram.payload)?;
        let incomplete = &mut self.incomplete[number];
        if kept > 0 {
            incomplete.frames += 1;
            incomplete.wire_len = incomplete.wire_len.saturating_add(wire_len);
        }
        if kept > 0 && fragment.offset == 0 {
            incomplete.protocol = datagram.protocol;
        }
        if incomplete.end != Some(incomplete.covered) {
            self.evict_down_to_limit();
            return None;
        }
        let whole = self.remove(number);
        self.counts.whole += 1;
        buffer.clear();
        buffer.reserve_exact(whole.covered as usize);
        whole.pieces.iter().for_each(|piece| buffer.extend_from_slice(&piece.data));
        Some(Whole {
            datagram: Datagram {
                source: key.source,
                destination: key.destination,
                is_v4: key.is_v4,
                protocol: whole.protocol,
                hops: 0,
                fragment: None,
                payload: buffer,
                cut: 0,
            },
            frames: whole.frames,
            wire_len: whole.wire_len,
        })
    }

    /// Gives up what is too old at `mark_ns`, a time the caller got to.
    pub fn expire(&mut self, mark_ns: u64) {
        self.clock = self.clock.max(mark_ns);
        while let Some(oldest) = self.incomplete.front()
            && self.clock.saturating_sub(oldest.begun_ns) >= self.limits.timeout_ns
        {
            // One that was refused has been counted.
            self.counts.timed_out += u64::from(!oldest.refused);
            self.remove(0);
        }
    }

    /// The capture is over: gives up everything, and all memory.
    pub fn finish(&mut self) {
        self.counts.timed_out += self.incomplete.iter().filter(|one| !one.refused).count() as u64;
        self.incomplete = VecDeque::new();
        self.pieces_bytes = 0;
    }

    /// Where the fragment ends, or what is wrong with it.
    fn judge(&mut self, fragment: &Fragment, datagram: &Datagram<'_>) -> Result<u32, &mut u64> {
        let length = datagram.payload.len();
        if datagram.cut > 0 {
            return Err(&mut self.counts.cut);
        }
        let end = fragment.offset as usize + length;
        if length == 0 || (fragment.more && !length.is_multiple_of(8)) || end > LONGEST as usize {
            return Err(&mut self.counts.malformed);
        }
        Ok(end as u32)
    }

    fn find_or_begin(&mut self, key: Key, time_ns: u64) -> usize {
        if let Some(number) = self.incomplete.iter().rposition(|one| one.key == key) {
            return number;
        }
        if self.incomplete.len() >= self.limits.datagrams {
            self.evict();
        }
        // Times may go backwards; a datagram is not older than one begun before it.
        let begun_ns = self.clock.max(time_ns);
        self.incomplete.push_back(Incomplete {
            key,
            begun_ns,
            pieces: Vec::new(),
            covered: 0,
            end: None,
            protocol: 0,
            frames: 0,
            wire_len: 0,
            refused: false,
        });
        self.incomplete.len() - 1
    }

    /// Keeps what is new of a fragment, and says how many bytes that were; `None` if its datagram is given up or it
    /// does not fit.
    fn insert(&mut self, number: usize, is_v6: bool, fragment: &Fragment, end: u32, payload: &[u8]) -> Option<u32> {
        let Self { incomplete, counts, limits, .. } = self;
        let datagram = &mut incomplete[number];
        if datagram.refused {
            counts.refused += 1;
            return None;
        }
        let farthest = datagram.pieces.last().map_or(0, Piece::end);
        let fits = match datagram.end {
            Some(known) => end <= known && (fragment.more || end == known),
            None => fragment.more || end >= farthest,
        };
        if !fits {
            counts.malformed += 1;
            return None;
        }
        let start = fragment.offset;
        let first = datagram.pieces.partition_point(|piece| piece.end() <= start);
        let last = datagram.pieces.partition_point(|piece| piece.start < end);
        let before = datagram.reserved();
        if first < last {
            let touched = &datagram.pieces[first..last];
            let differs = touched.iter().any(|piece| {
                let (from, to) = (piece.start.max(start), piece.end().min(end));
                piece.data[(from - piece.start) as usize..(to - piece.start) as usize]
                    != payload[(from - start) as usize..(to - start) as usize]
            });
            let inside = is_covered(touched, start, end);
            // What came first may have been cut where it overlapped, so a duplicate of it may be in several pieces.
            let same = inside && touched[0].start == start && touched[touched.len() - 1].end() == end;
            if same && !differs {
                counts.duplicates += 1;
            } else {
                let around = touched.iter().any(|piece| start < piece.start && piece.end() < end);
                counts.overlaps += 1;
                counts.teardrops += u64::from((inside && !same) || around);
                counts.conflicts += u64::from(differs);
                if is_v6 {
                    datagram.refuse();
                    self.pieces_bytes -= before;
                    return None;
                }
            }
        }
        let kept = insert_new(&mut datagram.pieces, first, start, payload);
        datagram.covered += kept;
        if !fragment.more {
            datagram.end = Some(end);
        }
        self.pieces_bytes = self.pieces_bytes - before + datagram.reserved();
        if datagram.pieces.len() > limits.pieces {
            counts.too_many_pieces += 1;
            self.remove(number);
            return None;
        }
        Some(kept)
    }

    fn evict_down_to_limit(&mut self) {
        while self.reserved_bytes() > self.limits.bytes && !self.incomplete.is_empty() {
            self.evict();
        }
    }

    fn evict(&mut self) {
        let oldest = self.remove(0);
        self.counts.evicted += u64::from(!oldest.refused);
    }

    fn remove(&mut self, number: usize) -> Incomplete {
        let one = self.incomplete.remove(number).expect("it is in the list");
        self.pieces_bytes -= one.reserved();
        one
    }
}

/// Whether pieces in order, each of which overlaps it, leave nothing of a range.
fn is_covered(pieces: &[Piece], start: u32, end: u32) -> bool {
    let mut at = start;
    for piece in pieces {
        if piece.start > at {
            return false;
        }
        at = piece.end();
    }
    at >= end
}

/// Puts in what no piece has yet of `payload`, beginning to look at piece `at`. Says how many bytes that were.
fn insert_new(pieces: &mut Vec<Piece>, mut at: usize, start: u32, payload: &[u8]) -> u32 {
    let end = start + payload.len() as u32;
    let mut from = start;
    let mut kept = 0;
    while from < end {
        let (to, behind) = match pieces.get(at) {
            Some(piece) if piece.start < end => (piece.start, piece.end()),
            _ => (end, end),
        };
        if from < to {
            let data = payload[(from - start) as usize..(to - start) as usize].into();
            pieces.insert(at, Piece { start: from, data });
            kept += to - from;
            at += 1;
        }
        at += 1;
        from = behind;
    }
    kept
}
