//! Reassembles IPv4 and IPv6 fragments to whole datagrams, within bounds.
//!
//! The rules are those of RFC 791, section 3.2, and RFC 8200, section 4.5.
//!
//! 1. Fragments of one datagram share its addresses, VLANs and identification, and in IPv4 the protocol too. Incomplete
//!    ones lie in a list, the newest at its end. There are few of them, so a fragment finds its datagram by a walk from
//!    the end. A walk has no hash to attack and no order that depends on keys, and its memory is plain to count.
//! 2. Each fragment is kept as a piece of its own size. A buffer as long as the farthest offset would let fragments of
//!    eight bytes reserve 64 kB each.
//! 3. When the pieces cover everything from 0 to the end that the last fragment gives, they are copied in order into
//!    the caller's buffer, and the datagram is forgotten.
//!
//! # Overlaps
//!
//! - A fragment whose range was there before, with the same bytes, is a duplicate and is ignored.
//! - Any other IPv4 fragment that overlaps earlier ones loses: the earlier bytes stay, and only its new bytes are kept.
//! - An IPv6 datagram with such an overlap is dropped, and its further fragments are refused, as section 4.5 requires
//!   of every host.
//!
//! [`Counts`] has the overlaps, those among them that lie wholly inside earlier bytes (the teardrop attack), and those
//! whose bytes differ.
//!
//! # Bounds
//!
//! The datagrams, the bytes reserved for them, and the pieces of each are limited. A datagram or a byte too many evicts
//! the oldest datagram; a piece too many drops its own datagram. A time-out runs from a datagram's first fragment, by
//! the times of packets and marks. All of this depends only on the fragments and marks, in their order.

use crate::decode::{Datagram, Fragment, NoPacket, Question, Transport, Vlans, question, transport};
use std::collections::VecDeque;

/// The limits of a [`Defragmenter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most incomplete datagrams, at least 1.
    pub datagrams: usize,
    /// The most bytes reserved for them. A datagram that alone needs more is dropped, so this should be several times
    /// 64 kB.
    pub bytes: usize,
    /// The most pieces of a datagram.
    pub pieces: usize,
    /// The time from the first fragment of a datagram until it is given up, in nanoseconds.
    pub timeout_ns: u64,
}

impl Default for Limits {
    /// For one of 256 partitions: 64 datagrams, 256 kB, 256 pieces of a datagram, 30 s.
    fn default() -> Self {
        Self { datagrams: 64, bytes: 256 << 10, pieces: 256, timeout_ns: 30_000_000_000 }
    }
}

/// Counts of fragments and their datagrams.
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
    /// Of these, those that lie wholly inside earlier fragments, or around them: a teardrop.
    pub teardrops: u64,
    /// Of the overlaps, those whose bytes differ from the earlier ones.
    pub conflicts: u64,
    /// Fragments that no sender may make. They have no payload, are not a multiple of eight bytes long though more
    /// follows, reach beyond 65,535 bytes, lie behind the end, or give another end than before.
    pub malformed: u64,
    /// Fragments that were not captured to their end, so that their datagrams can never be whole.
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
    /// Adds the counts of `other`.
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

/// A whole datagram. Its payload is in the buffer that the caller lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<'a> {
    /// The datagram, no longer a fragment.
    pub datagram: Datagram<'a>,
    /// The number of its fragments.
    pub frames: u32,
    /// The bytes on the wire of their frames.
    pub wire_len: u32,
    /// The bytes of the payload that are of the fragment at its begin alone.
    pub first: usize,
}

impl Whole<'_> {
    /// The TCP or UDP header, as [`transport`] finds it; `None` if the first fragment has it, where it was found before
    /// the datagram was whole.
    pub fn transport(&self) -> Option<Result<Transport<u128>, NoPacket>> {
        let first = Some(Fragment { id: 0, offset: 0, more: true });
        let of = |payload| transport(&Datagram { fragment: first, payload, ..self.datagram });
        let payload = self.datagram.payload;
        of(payload.get(..self.first).unwrap_or(payload)).is_err().then(|| of(payload))
    }

    /// What it asks or answers, as [`question`] finds it.
    pub fn question(&self) -> Option<Question<u128>> {
        question(&Datagram { fragment: Some(Fragment { id: 0, offset: 0, more: true }), ..self.datagram })
    }
}

/// The facts that all fragments of a datagram share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    source: u128,
    destination: u128,
    is_v4: bool,
    id: u32,
    /// 0 in IPv6, where only the first fragment has it.
    protocol: u8,
    vlans: Vlans,
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
    /// In order and without overlaps.
    pieces: Vec<Piece>,
    /// Bytes in the pieces.
    covered: u32,
    /// The end of the last fragment, once that is there.
    end: Option<u32>,
    /// The protocol of the fragment at offset 0.
    protocol: u8,
    frames: u32,
    wire_len: u32,
    /// The datagram is given up for an overlap: further fragments of it are refused.
    refused: bool,
}

/// The charge of an allocation beside its bytes.
const ALLOCATION: usize = 16;

impl Incomplete {
    fn reserved(&self) -> usize {
        self.covered as usize + self.pieces.len() * ALLOCATION + self.pieces.capacity() * size_of::<Piece>()
    }

    /// Drops the pieces, but remembers that the datagram was there.
    fn refuse(&mut self) {
        self.pieces = Vec::new();
        self.covered = 0;
        self.refused = true;
    }
}

/// Reassembles fragments. See the [module](self).
///
/// Each partition has one: all fragments of a datagram have the same addresses, and so the same partition.
#[derive(Debug)]
pub struct Defragmenter {
    limits: Limits,
    /// The oldest is at the front.
    incomplete: VecDeque<Incomplete>,
    /// Bytes reserved by the datagrams in the list, without the list itself.
    pieces_bytes: usize,
    /// The largest time so far.
    clock: u64,
    counts: Counts,
}

/// The longest payload of an IP datagram.
const LONGEST: u32 = 65_535;

impl Defragmenter {
    /// Makes one without fragments, which reserves no memory yet.
    ///
    /// # Panics
    ///
    /// If `limits` allow no datagram.
    pub fn new(limits: &Limits) -> Self {
        assert!(limits.datagrams > 0, "`limits.datagrams` is 0: allow at least 1 datagram");
        Self { limits: *limits, incomplete: VecDeque::new(), pieces_bytes: 0, clock: 0, counts: Counts::default() }
    }

    /// The counts so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Bytes reserved for incomplete datagrams.
    pub fn reserved_bytes(&self) -> usize {
        self.incomplete.capacity() * size_of::<Incomplete>() + self.pieces_bytes
    }

    /// Takes a fragment that came in a frame of `wire_len` bytes. If the fragment completes its datagram, the payload
    /// replaces the content of `buffer`; hops and what is outside of tunnels are those of this fragment.
    ///
    /// # Panics
    ///
    /// If `datagram` is not a fragment.
    pub fn fragment<'a>(
        &mut self,
        time_ns: u64,
        wire_len: u32,
        datagram: &Datagram<'a>,
        buffer: &'a mut Vec<u8>,
    ) -> Option<Whole<'a>> {
        let fragment = datagram.fragment.expect("the datagram is not a fragment: pass fragments only");
        self.counts.fragments += 1;
        self.expire(time_ns);
        let Datagram { source, destination, is_v4, hops, outermost, vlans, .. } = *datagram;
        let protocol = if is_v4 { datagram.protocol } else { 0 };
        let key = Key { source, destination, is_v4, id: fragment.id, protocol, vlans };
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
                hops,
                fragment: None,
                payload: buffer,
                cut: 0,
                outermost,
                vlans: key.vlans,
            },
            frames: whole.frames,
            wire_len: whole.wire_len,
            first: whole.pieces.first().map_or(0, |piece| piece.data.len()),
        })
    }

    /// Gives up datagrams that are too old at `mark_ns`, a time that the caller has reached.
    pub fn expire(&mut self, mark_ns: u64) {
        self.clock = self.clock.max(mark_ns);
        while let Some(oldest) = self.incomplete.front()
            && self.clock.saturating_sub(oldest.begun_ns) >= self.limits.timeout_ns
        {
            // A refused datagram has been counted already.
            self.counts.timed_out += u64::from(!oldest.refused);
            self.remove(0);
        }
    }

    /// The least mark at which [`expire`](Defragmenter::expire) would give a datagram up.
    pub fn next_due(&self) -> Option<u64> {
        self.incomplete.front().map(|oldest| oldest.begun_ns.saturating_add(self.limits.timeout_ns))
    }

    /// Datagrams that lack fragments, and are not given up yet.
    pub fn waiting(&self) -> u64 {
        self.incomplete.iter().filter(|one| !one.refused).count() as u64
    }

    /// Ends the capture: gives up every datagram, and all memory.
    pub fn finish(&mut self) {
        self.counts.timed_out += self.waiting();
        self.incomplete = VecDeque::new();
        self.pieces_bytes = 0;
    }

    /// The end of the fragment, or the count of its fault.
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
        // Times may go backwards, but a datagram is never older than one that began before it.
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

    /// Keeps the new bytes of a fragment, and returns their number; `None` if its datagram is given up or the fragment
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
            // The first copy may have been cut where it overlapped others, so its duplicate may cover several pieces.
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

/// Whether `pieces` cover the whole range. They are in order, and each overlaps the range.
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

/// Inserts the bytes of `payload` that no piece has yet; `at` is the first piece to look at. Returns their number.
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
