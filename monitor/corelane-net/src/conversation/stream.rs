//! The bytes of one side of a TCP connection, put in order.
//!
//! While bytes come in order, a side has one number: the sequence number that comes next. More is kept only once a
//! segment arrives behind a hole.
//!
//! 1. A segment that begins at the next number goes to the application as it lies in the packet, without a copy or an
//!    allocation.
//! 2. Bytes before the next number are there already: they are counted and left out.
//! 3. A segment behind a hole is copied and held back. Pieces that are held back are in order and do not overlap: the
//!    first copy of a byte stays, and of a later copy only the new bytes are kept. Overlaps that differ are counted.
//! 4. When the hole is filled or given up, the pieces are handed over up to the next hole. A hole that is given up is a
//!    gap: the application is notified, and it is counted.
//!
//! # When a hole is given up
//!
//! - The other end has acknowledged the bytes behind it, and such bytes are here. So that end has the missing bytes,
//!   and they will not be sent again. If there are no bytes behind the hole yet it stays, as the acknowledgment may
//!   have been captured before the segment that it acknowledges.
//! - Too many bytes wait. The first holes of this side are given up, one by one, until the new bytes fit. If even that
//!   does not help, everything up to the new bytes is given up. No other conversation pays for it.
//! - Bytes wait too long, and the other end's acknowledgments were never seen: the capture has one direction only.
//! - The side ends: by RST, time-out, eviction, end of the capture.
//! - A part of a segment was on the wire but not captured: no later packet brings it.
//!
//! # Sequence numbers
//!
//! Sequence numbers wrap around, so only distances from the next number are compared. A segment within 2^28 ahead or
//! behind is of the connection, since no window in use is as large. A segment farther off is left out: it is a stray of
//! an earlier connection, or forged.
//!
//! If four segments in a row are too far off, the next number is wrong. Either the capture missed more than 2^28 bytes,
//! or it missed the handshake of a new connection. Then the hole is given up whatever its size, and the stream goes on.
//!
//! An RST ends the connection only with the number of the next byte, as at its ends (RFC 5961, 3.2). Which byte that is
//! lies between the last acknowledgment of the other end and the last byte that was seen.
//!
//! A keep-alive repeats the byte before the next number. A probe of a closed window brings the next byte, which may
//! come again. Neither needs a rule of its own.
//!
//! Some middleboxes count the padding of a short frame as payload: a few zero bytes on a bare acknowledgment. They are
//! passed over, and taken only if the next segment begins behind them.
//!
//! In smoltcp and other stacks, which are an end of the connection, the receiver's window decides which bytes it takes,
//! and it can wait for ever for a retransmission. An observer can do neither.

use super::application::Application;
use super::entry::{Conversation, TUNNELLED};
use super::key::{Key, Sender};
use super::limits::{Counts, Limits, PIECE_OVERHEAD};
use super::side::Side;
use crate::decode::{Packet, Tunnel};
use std::collections::{BTreeMap, VecDeque};

/// The state of a side while its bytes come in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    /// Bytes of its frames on the wire.
    pub(super) bytes: u64,
    /// The sequence number of the next byte.
    pub(super) next: u32,
    /// The other end has acknowledged every byte before this sequence number.
    acked: u32,
}

/// Further facts about a side, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks(u8);

/// It has sent more than unanswered SYNs.
pub(super) const SENT: u8 = 1;
/// The next sequence number is known …
pub(super) const STARTED: u8 = 2;
/// … but only from the first acknowledgment of the other end.
pub(super) const GUESSED: u8 = 4;
/// The acknowledgments of the other end are known.
const ACKED: u8 = 8;
/// The application was notified of the end.
pub(super) const ENDED: u8 = 16;
/// The application does not want the bytes.
pub(super) const UNWANTED: u8 = 32;
/// The number, of two bits, of implausible segments in a row: one of them …
const STRIKE: u8 = 64;
/// … and the mask of the number.
const STRIKES: u8 = 3 * STRIKE;

impl Marks {
    #[inline]
    pub(super) fn has(self, marks: u8) -> bool {
        self.0 & marks != 0
    }

    #[inline]
    pub(super) fn set(&mut self, marks: u8) {
        self.0 |= marks;
    }

    #[inline]
    pub(super) fn clear(&mut self, marks: u8) {
        self.0 &= !marks;
    }

    /// Counts a strike, and returns whether it is the fourth.
    fn strike(&mut self) -> bool {
        let (marks, fourth) = self.0.overflowing_add(STRIKE);
        self.0 = marks;
        fourth
    }
}

/// The bound on a plausible distance from the next sequence number.
const FAR: i32 = 1 << 28;

#[inline]
fn is_plausible(distance: i32) -> bool {
    (-FAR..FAR).contains(&distance)
}

#[inline]
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

impl Stream {
    /// Sets the next sequence number, which is known from here on.
    pub(super) fn start(&mut self, marks: &mut Marks, next: u32) {
        self.next = next;
        marks.set(STARTED);
        marks.clear(GUESSED);
    }

    /// Whether a SYN-ACK with this number can be that of a side of which only an acknowledgment is known.
    pub(super) fn may_begin_at(&self, marks: Marks, sequence: u32) -> bool {
        let ahead = distance(self.next, sequence);
        marks.has(GUESSED) && ahead <= 0 && is_plausible(ahead)
    }

    /// Takes a SYN-ACK that comes again with another number before any payload. As long as the other end has
    /// acknowledged neither, its acknowledgment or the data will show which one it took.
    pub(super) fn start_again(&self, marks: &mut Marks, next: u32) {
        if next != self.next && !marks.has(ACKED | UNWANTED | ENDED) {
            marks.clear(STARTED);
        }
    }

    /// Takes the next sequence number from an acknowledgment of the other end. Bytes before it may still come.
    fn guess(&mut self, marks: &mut Marks, next: u32) {
        self.start(marks, next);
        self.acked = next;
        marks.set(GUESSED | ACKED);
    }

    /// Takes an acknowledgment of everything before `acknowledged`. Returns whether that is more than is here.
    #[inline]
    pub(super) fn acknowledged(&mut self, marks: &mut Marks, acknowledged: u32) -> bool {
        if !marks.has(STARTED) {
            self.guess(marks, acknowledged);
            return false;
        }
        let ahead = distance(self.next, acknowledged);
        if is_plausible(ahead) && (!marks.has(ACKED) || distance(self.acked, acknowledged) > 0) {
            self.acked = acknowledged;
            marks.set(ACKED);
        }
        ahead > 0
    }

    /// Whether an RST with this number ends the connection, where `last` is the number behind the last byte that is
    /// here. A FIN has a number, too.
    pub(super) fn is_reset(&self, marks: Marks, sequence: u32, last: u32) -> bool {
        if !marks.has(STARTED) {
            return true;
        }
        let ahead = distance(self.next, sequence);
        if !marks.has(ACKED) || marks.has(GUESSED) {
            return is_plausible(ahead) && (marks.has(GUESSED) || ahead <= distance(self.next, last) + 1);
        }
        let acked = distance(self.next, self.acked);
        (acked.min(0)..=acked.max(distance(self.next, last) + 1)).contains(&ahead)
    }

    /// Moves the next sequence number of a side whose bytes are not wanted up to `end`.
    pub(super) fn follow(&mut self, marks: &mut Marks, end: u32) {
        if !marks.has(STARTED) || distance(self.next, end) > 0 {
            self.start(marks, end);
        }
    }
}

#[derive(Debug)]
struct Piece {
    start: u32,
    data: Box<[u8]>,
}

impl Piece {
    fn end(&self) -> u32 {
        self.start.wrapping_add(self.data.len() as u32)
    }

    fn cost(&self) -> usize {
        cost(self.data.len())
    }
}

fn cost(length: usize) -> usize {
    length + PIECE_OVERHEAD
}

/// The state of a side while there is a hole.
#[derive(Debug)]
struct Waiting {
    /// In order and without overlaps; none is at or before the next sequence number, and none behind the FIN.
    pieces: VecDeque<Piece>,
    /// The cost of the pieces.
    held: usize,
    /// When the first hole was seen.
    since_ns: u64,
    /// The sequence number of the FIN, if it came before the hole was filled.
    fin: Option<u32>,
}

/// The charge of an allocation beside its bytes.
const ALLOCATION: usize = 16;

impl Waiting {
    fn reserved_bytes(&self) -> usize {
        // A piece is charged with its bytes and its allocation; its place is in the list.
        let data = self.held - self.pieces.len() * (PIECE_OVERHEAD - ALLOCATION);
        size_of::<Self>() + ALLOCATION + data + self.pieces.capacity() * size_of::<Piece>()
    }
}

/// The state of a conversation that has brought payload.
#[derive(Debug)]
pub(super) struct Extra<A> {
    pub(super) application: A,
    waiting: [Option<Box<Waiting>>; 2],
    /// Bytes given up, by side.
    pub(super) missed: [u64; 2],
    /// The bytes that the partition was charged for all this.
    pub(super) charged: usize,
    /// The conversation's position in the list of those that hold bytes back.
    pub(super) holding: u32,
}

impl<A: Application> Extra<A> {
    pub(super) fn new(application: A) -> Box<Self> {
        Box::new(Self { application, waiting: [None, None], missed: [0; 2], charged: 0, holding: 0 })
    }

    #[inline]
    pub(super) fn reserved_bytes(&self) -> usize {
        let waiting: usize = self.waiting.iter().flatten().map(|waiting| waiting.reserved_bytes()).sum();
        size_of::<Self>() + ALLOCATION + self.application.heap_bytes() + waiting
    }

    /// The time from which a hole of this side is too old, as [`Turn::expire`] judges it.
    pub(super) fn due(&self, side: Side, marks: &[Marks; 2], limits: &Limits) -> Option<u64> {
        let waiting = self.waiting[side.index()].as_ref()?;
        let waits_for_time = !marks[side.index()].has(ACKED) && !waiting.pieces.is_empty();
        waits_for_time.then(|| waiting.since_ns.saturating_add(limits.hole_timeout_ns))
    }

    /// Whether at least one side has a hole.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting[0].is_some() || self.waiting[1].is_some()
    }

    #[inline]
    pub(super) fn side_is_waiting(&self, side: Side) -> bool {
        self.waiting[side.index()].is_some()
    }

    /// The number behind the last byte of a side that is held back.
    pub(super) fn last(&self, side: Side) -> Option<u32> {
        self.waiting[side.index()].as_ref()?.pieces.back().map(Piece::end)
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.waiting.iter().flatten().flat_map(|waiting| &waiting.pieces).map(Piece::cost).sum()
    }
}

/// The state that all conversations of a partition share.
#[derive(Debug)]
pub(super) struct Shared<F> {
    pub(super) limits: Limits,
    pub(super) counts: Counts,
    /// How much time has passed, by which all is judged that waits.
    pub(super) now_ns: u64,
    /// The cost of all pieces.
    pub(super) held: usize,
    /// Whether an application was called since the caller last cleared this.
    pub(super) called: bool,
    /// What an application has found in the current call.
    pub(super) found: F,
    /// The tunnels of the conversations that came through one. A tree, as its memory does not depend on a hash.
    pub(super) tunnels: BTreeMap<Key, Tunnel>,
}

/// The cost of a tunnel: nodes of the tree are at least half full, but for its root.
const TUNNEL: usize = 2 * (size_of::<Key>() + size_of::<Tunnel>()) + ALLOCATION;
/// The cost of the root, with its eleven places and what it is linked by.
const ROOT: usize = 11 * (size_of::<Key>() + size_of::<Tunnel>()) + 128;

impl<F> Shared<F> {
    /// The bytes that this many tunnels reserve.
    pub(super) fn bytes_of_tunnels(&self, more: usize) -> usize {
        match self.tunnels.len() + more {
            0 => 0,
            tunnels => tunnels * TUNNEL + ROOT,
        }
    }

    /// Keeps the tunnel of a packet that this end of a conversation sent, if it came through one and none is known.
    pub(super) fn keep_tunnel(&mut self, conversation: &mut Conversation, sender: Sender, packet: &Packet<'_>) {
        if conversation.flags & TUNNELLED == 0
            && let Some(tunnel) = Tunnel::of(packet.outermost)
        {
            conversation.flags |= TUNNELLED;
            let tunnel = if sender == conversation.originator { tunnel } else { tunnel.turned() };
            self.tunnels.insert(conversation.key(), tunnel);
        }
    }

    /// Forgets the tunnel of a conversation.
    pub(super) fn take_tunnel(&mut self, conversation: &Conversation) -> Option<Tunnel> {
        if conversation.flags & TUNNELLED == 0 {
            return None;
        }
        let tunnel = self.tunnels.remove(&conversation.key());
        if self.tunnels.is_empty() {
            // A tree without entries keeps a node.
            self.tunnels = BTreeMap::new();
        }
        tunnel
    }
}

/// A side, while a packet, a mark or the end is applied to it.
pub(super) struct Turn<'a, A: Application> {
    pub(super) side: Side,
    pub(super) time_ns: u64,
    pub(super) stream: &'a mut Stream,
    pub(super) marks: &'a mut Marks,
    pub(super) extra: &'a mut Extra<A>,
    pub(super) shared: &'a mut Shared<A::Found>,
}

impl<A: Application> Turn<'_, A> {
    /// Takes a segment's payload. The last `cut` bytes of the segment were not captured.
    #[inline]
    pub(super) fn data(&mut self, sequence: u32, payload: &[u8], cut: u32) {
        if self.marks.has(ENDED | UNWANTED) {
            self.shared.counts.behind_end += u64::from(self.marks.has(ENDED));
            let end = sequence.wrapping_add(payload.len() as u32).wrapping_add(cut);
            return self.stream.follow(self.marks, end);
        }
        let in_order = sequence == self.stream.next && self.marks.has(STARTED) && cut == 0;
        if in_order && self.extra.waiting[self.side.index()].is_none() {
            self.marks.clear(GUESSED | STRIKES);
            self.deliver(payload);
        } else {
            self.place(sequence, payload, cut);
        }
    }

    /// Takes a payload that does not plainly begin at the next number.
    #[cold]
    fn place(&mut self, sequence: u32, mut payload: &[u8], mut cut: u32) {
        if !self.marks.has(STARTED) {
            self.stream.start(self.marks, sequence);
        }
        let mut ahead = distance(self.stream.next, sequence);
        if !is_plausible(ahead) {
            self.shared.counts.implausible += 1;
            if !self.marks.strike() {
                return;
            }
            self.shared.counts.resynchronised += 1;
            self.give_up_all();
            if self.marks.has(ENDED) {
                return;
            }
            // If the number seems to go back, the size of the gap is not known.
            self.skip(distance(self.stream.next, sequence).max(1) as u32);
            self.stream.next = sequence;
            ahead = 0;
        } else if ahead < 0 && self.marks.has(GUESSED) {
            self.stream.start(self.marks, sequence);
            ahead = 0;
        }
        self.marks.clear(GUESSED | STRIKES);
        self.clip(sequence, &mut payload, &mut cut);
        if payload.is_empty() && cut == 0 {
            return;
        }
        if ahead > 0 {
            self.hold_back(sequence, payload);
        } else {
            self.join(ahead.unsigned_abs() as usize, payload, cut);
        }
        self.tidy();
    }

    /// Leaves out the bytes behind the end that a FIN gave.
    fn clip(&mut self, sequence: u32, payload: &mut &[u8], cut: &mut u32) {
        let Some(fin) = self.fin_ahead() else { return };
        let room = usize::try_from(distance(sequence, fin)).unwrap_or(0);
        if payload.len() + *cut as usize > room {
            self.shared.counts.behind_end += 1;
            *payload = &payload[..payload.len().min(room)];
            *cut = (*cut).min((room - payload.len()) as u32);
        }
    }

    /// Takes bytes, the first `old` of which lie before the next number.
    fn join(&mut self, old: usize, payload: &[u8], cut: u32) {
        let length = payload.len() + cut as usize;
        if old >= length {
            let keep_alive = old == 1;
            self.shared.counts.keep_alives += u64::from(keep_alive);
            self.shared.counts.retransmitted += u64::from(!keep_alive);
            return;
        }
        self.shared.counts.retransmitted += u64::from(old > 0);
        let mut rest = payload.get(old..).unwrap_or_default();
        let end = self.stream.next.wrapping_add((length - old) as u32);
        while let Some(gap) = self.first_hole()
            && gap < rest.len()
        {
            self.deliver(&rest[..gap]);
            let piece = self.take_first();
            rest = &rest[gap..];
            let common = rest.len().min(piece.len());
            self.shared.counts.conflicts += u64::from(rest[..common] != piece[..common]);
            self.deliver(&piece);
            rest = &rest[common..];
        }
        self.deliver(rest);
        self.advance_to(end);
        self.run();
    }

    /// Takes bytes behind a hole.
    fn hold_back(&mut self, sequence: u32, payload: &[u8]) {
        let behind = sequence.wrapping_sub(self.stream.next);
        if self.acked_ahead() >= behind {
            self.shared.counts.holes_acknowledged += 1;
            self.advance_to(sequence);
            return self.join_at(sequence, payload);
        }
        if payload.is_empty() {
            return;
        }
        loop {
            let limits = &self.shared.limits;
            let mine = self.waiting().map_or(0, |waiting| waiting.held);
            let other = self.extra.waiting[self.side.other().index()].as_ref().map_or(0, |waiting| waiting.held);
            let more = payload.len() + PIECE_OVERHEAD * (1 + self.touched(sequence, payload.len()));
            let fits = mine + more <= limits.held_per_side
                && mine + other + more <= limits.held_per_conversation
                && self.shared.held + more <= limits.held;
            if fits {
                break;
            }
            self.shared.counts.holes_over_limit += 1;
            if !self.give_up_first() {
                self.advance_to(sequence);
            }
            if self.marks.has(ENDED | UNWANTED) {
                return;
            }
            if distance(self.stream.next, sequence) <= 0 {
                return self.join_at(sequence, payload);
            }
        }
        self.shared.counts.held_back += 1;
        self.insert(sequence, payload);
    }

    /// Takes bytes that no longer lie behind a hole.
    fn join_at(&mut self, sequence: u32, payload: &[u8]) {
        let old = self.stream.next.wrapping_sub(sequence) as usize;
        if old < payload.len() && !self.marks.has(ENDED) {
            self.join(old, payload, 0);
        }
    }

    /// The number of pieces that a range of bytes overlaps; each of them may divide the range.
    fn touched(&self, start: u32, length: usize) -> usize {
        let Some(waiting) = self.waiting() else { return 0 };
        let place = |sequence: u32| sequence.wrapping_sub(self.stream.next);
        let end = place(start) + length as u32;
        let first = waiting.pieces.partition_point(|piece| place(piece.end()) <= place(start));
        let last = waiting.pieces.partition_point(|piece| place(piece.start) < end);
        last - first
    }

    /// Keeps the new ones of bytes behind a hole.
    fn insert(&mut self, start: u32, payload: &[u8]) {
        let Self { stream, shared, .. } = self;
        let now_ns = shared.now_ns;
        let waiting = self.extra.waiting[self.side.index()].get_or_insert_with(|| Waiting::new(now_ns));
        let place = |sequence: u32| sequence.wrapping_sub(stream.next);
        let (from, end) = (place(start), place(start) + payload.len() as u32);
        let mut at = waiting.pieces.partition_point(|piece| place(piece.end()) <= from);
        let mut here = from;
        let (mut repeated, mut differs) = (false, false);
        while here < end {
            let piece = waiting.pieces.get(at).filter(|piece| place(piece.start) < end);
            let free_to = piece.map_or(end, |piece| place(piece.start));
            let mut behind = end;
            if let Some(piece) = piece {
                let (first, last) = (free_to.max(here), place(piece.end()).min(end));
                repeated = true;
                differs |= piece.data[(first - free_to) as usize..(last - free_to) as usize]
                    != payload[(first - from) as usize..(last - from) as usize];
                behind = place(piece.end());
            }
            if here < free_to {
                let data = &payload[(here - from) as usize..(free_to - from) as usize];
                waiting.pieces.insert(at, Piece { start: start.wrapping_add(here - from), data: data.into() });
                waiting.held += cost(data.len());
                shared.held += cost(data.len());
                at += 1;
            }
            at += 1;
            here = behind;
        }
        shared.counts.retransmitted += u64::from(repeated);
        shared.counts.conflicts += u64::from(differs);
    }

    /// Gives up the holes in the bytes that the other end has acknowledged.
    #[cold]
    pub(super) fn give_up_acknowledged(&mut self) {
        while let Some(hole) = self.first_hole()
            && self.acked_ahead() as usize >= hole
        {
            self.shared.counts.holes_acknowledged += 1;
            self.give_up_first();
        }
        if let Some(fin) = self.fin_ahead()
            && self.acked_ahead() > fin.wrapping_sub(self.stream.next)
        {
            self.shared.counts.holes_acknowledged += 1;
            self.advance_to(fin);
        }
        self.tidy();
    }

    /// Takes a FIN: the side sends nothing from this sequence number on.
    pub(super) fn fin(&mut self, sequence: u32) {
        if self.marks.has(ENDED) {
            return;
        }
        if self.marks.has(UNWANTED) || !self.marks.has(STARTED) {
            return self.end();
        }
        let ahead = distance(self.stream.next, sequence);
        if ahead < 0 || !is_plausible(ahead) {
            self.shared.counts.implausible += 1;
        } else if ahead == 0 {
            self.end();
        } else {
            self.wait_for_fin(sequence);
        }
    }

    #[cold]
    fn wait_for_fin(&mut self, sequence: u32) {
        let now_ns = self.shared.now_ns;
        let waiting = self.extra.waiting[self.side.index()].get_or_insert_with(|| Waiting::new(now_ns));
        if waiting.fin.is_some() {
            return;
        }
        waiting.fin = Some(sequence);
        while let Some(last) = waiting.pieces.back_mut()
            && distance(sequence, last.end()) > 0
        {
            self.shared.counts.behind_end += 1;
            let kept = usize::try_from(distance(last.start, sequence)).unwrap_or(0);
            let less = if kept == 0 { last.cost() } else { last.data.len() - kept };
            waiting.held -= less;
            self.shared.held -= less;
            if kept == 0 {
                waiting.pieces.pop_back();
            } else {
                last.data = last.data[..kept].into();
            }
        }
        self.give_up_acknowledged();
    }

    /// Stops the side if the application wants no more of it, for any reason, such as bytes of the other side.
    #[inline]
    pub(super) fn heed(&mut self) {
        if !self.marks.has(ENDED | UNWANTED) && !self.extra.application.wants(self.side) {
            self.marks.set(UNWANTED);
            self.tidy();
        }
    }

    /// Takes a mark in time: gives up holes that are too old, if there are no acknowledgments to judge them by.
    pub(super) fn expire(&mut self) {
        let limit = self.shared.limits.hole_timeout_ns;
        if !self.marks.has(ACKED)
            && let Some(waiting) = self.waiting()
            && !waiting.pieces.is_empty()
            && self.shared.now_ns.saturating_sub(waiting.since_ns) >= limit
        {
            self.shared.counts.holes_timed_out += 1;
            self.give_up_first();
            self.tidy();
        }
    }

    /// Ends the side: hands over all bytes that are held back.
    pub(super) fn finish(&mut self) {
        if self.marks.has(ENDED) {
            return;
        }
        self.give_up_all();
        // An acknowledgment one byte ahead is that of the side's FIN, if the FIN was not captured.
        if !self.marks.has(ENDED | UNWANTED) && self.acked_ahead() > 1 {
            self.skip(self.acked_ahead());
        }
        self.end();
    }

    fn give_up_all(&mut self) {
        while self.give_up_first() {}
        if let Some(fin) = self.fin_ahead() {
            self.advance_to(fin);
        }
        self.tidy();
    }

    /// Gives up the first hole that has bytes behind it, and hands those over. Returns whether there was one.
    fn give_up_first(&mut self) -> bool {
        let Some(hole) = self.first_hole() else { return false };
        self.skip(hole as u32);
        self.run();
        true
    }

    /// The length of the hole in front of the first piece.
    fn first_hole(&self) -> Option<usize> {
        let first = self.waiting()?.pieces.front()?;
        Some(first.start.wrapping_sub(self.stream.next) as usize)
    }

    fn waiting(&self) -> Option<&Waiting> {
        self.extra.waiting[self.side.index()].as_deref()
    }

    fn fin_ahead(&self) -> Option<u32> {
        self.waiting()?.fin
    }

    /// The number of bytes by which the other end's acknowledgments are ahead of the next number.
    fn acked_ahead(&self) -> u32 {
        let ahead = distance(self.stream.next, self.stream.acked);
        if self.marks.has(ACKED) && ahead > 0 && is_plausible(ahead) { ahead as u32 } else { 0 }
    }

    /// Moves the next number to `sequence`, and hands over the pieces on the way.
    fn advance_to(&mut self, sequence: u32) {
        loop {
            let Ok(left @ 1..) = usize::try_from(distance(self.stream.next, sequence)) else { return };
            match self.first_hole() {
                Some(hole) if hole < left => {
                    self.skip(hole as u32);
                    let piece = self.take_first();
                    self.deliver(&piece);
                }
                _ => self.skip(left as u32),
            }
        }
    }

    /// Hands over pieces up to the next hole.
    fn run(&mut self) {
        while self.first_hole() == Some(0) {
            let piece = self.take_first();
            self.deliver(&piece);
        }
        if let Some(waiting) = &mut self.extra.waiting[self.side.index()] {
            waiting.since_ns = self.shared.now_ns;
        }
    }

    fn take_first(&mut self) -> Box<[u8]> {
        let waiting = self.extra.waiting[self.side.index()].as_mut().expect("there is a hole");
        let piece = waiting.pieces.pop_front().expect("a piece is behind it");
        waiting.held -= piece.cost();
        self.shared.held -= piece.cost();
        piece.data
    }

    /// Ends a side that has come to its end, and frees memory that is not needed any more.
    fn tidy(&mut self) {
        if self.fin_ahead() == Some(self.stream.next) || (self.fin_ahead().is_some() && self.marks.has(UNWANTED)) {
            self.end();
        }
        let done = |waiting: &Waiting| waiting.pieces.is_empty() && waiting.fin.is_none();
        if self.marks.has(UNWANTED) || self.waiting().is_some_and(done) {
            self.drop_waiting();
        }
    }

    fn drop_waiting(&mut self) {
        if let Some(waiting) = self.extra.waiting[self.side.index()].take() {
            self.shared.held -= waiting.held;
        }
    }

    /// Notifies the application of the end, unless it was notified before.
    fn end(&mut self) {
        if self.marks.has(ENDED) {
            return;
        }
        self.drop_waiting();
        self.marks.set(ENDED);
        self.shared.called = true;
        self.extra.application.end(self.side, self.time_ns, &mut self.shared.found);
    }

    #[inline]
    fn deliver(&mut self, bytes: &[u8]) {
        self.stream.next = self.stream.next.wrapping_add(bytes.len() as u32);
        if !bytes.is_empty() && !self.marks.has(UNWANTED) {
            self.shared.called = true;
            self.extra.application.data(self.side, self.time_ns, bytes, &mut self.shared.found);
            if !self.extra.application.wants(self.side) {
                self.marks.set(UNWANTED);
            }
        }
    }

    #[cold]
    fn skip(&mut self, missing: u32) {
        self.stream.next = self.stream.next.wrapping_add(missing);
        if missing > 0 && !self.marks.has(UNWANTED) {
            self.shared.called = true;
            self.shared.counts.gaps += 1;
            self.shared.counts.gap_bytes += u64::from(missing);
            self.extra.missed[self.side.index()] += u64::from(missing);
            self.extra.application.gap(self.side, self.time_ns, u64::from(missing), &mut self.shared.found);
            if !self.extra.application.wants(self.side) {
                self.marks.set(UNWANTED);
            }
        }
    }
}

impl Waiting {
    fn new(since_ns: u64) -> Box<Self> {
        Box::new(Self { pieces: VecDeque::new(), held: 0, since_ns, fin: None })
    }
}
