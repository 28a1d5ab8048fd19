//! The memory's format, and what both ends share: words, headers, segments, positions. How it works: see the
//! [module](super).

use super::error::PushError;
use crate::mem::segments::{Contents, Pool, Segment, Turn};
use crate::spsc::design::Shared;
use crate::sync::{Acquire, AtomicPtr, AtomicUsize, Padded, Relaxed, Release, UnsafeCell};
#[cfg(not(corelane_loom))]
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// Every message's bytes start at a multiple of this.
pub const ALIGN: usize = 8;

/// A limit in words that is none but that of memory: half of what pointers reach.
pub(super) const UNLIMITED: usize = isize::MAX as usize / (2 * ALIGN);
/// A header behind which nothing is published yet.
pub(super) const EMPTY: usize = 0;
/// A header that says: the next message is in the next segment. As a signed number it is negative, as no length is.
const JUMP: usize = usize::MAX;
/// A `stop` that no place reaches.
const NEVER: *mut Word = core::ptr::without_provenance_mut(usize::MAX);

/// The word a segment consists of: a header, or 8 bytes of a message.
#[cfg(not(corelane_loom))]
#[repr(C, align(8))]
pub(super) struct Word([MaybeUninit<u8>; ALIGN]);

/// Loom sees headers as atomics and bytes as a cell; which of them a word is, its place says.
#[cfg(corelane_loom)]
pub(super) struct Word {
    header: AtomicUsize,
    pub(super) bytes: crate::sync::UnsafeCell<[u8; ALIGN]>,
}

impl Contents for Word {
    const ALIGN: usize = align_of::<Word>();

    #[cfg(corelane_loom)]
    unsafe fn make(start: *mut u8, bytes: usize) {
        for i in 0..bytes / size_of::<Word>() {
            // As a header that is read before it was written: a failure.
            let word = Word { header: AtomicUsize::new(UNWRITTEN), bytes: crate::sync::UnsafeCell::new([0; ALIGN]) };
            // SAFETY: inside the segment, which is ours.
            unsafe { start.cast::<Word>().add(i).write(word) };
        }
    }

    #[cfg(corelane_loom)]
    unsafe fn unmake(start: *mut u8, bytes: usize) {
        for i in 0..bytes / size_of::<Word>() {
            // SAFETY: made by `make`.
            unsafe { core::ptr::drop_in_place(start.cast::<Word>().add(i)) };
        }
    }
}

#[cfg(corelane_loom)]
pub(super) const UNWRITTEN: usize = usize::MAX - 1;

/// Words that a message of this length takes up, its header included.
#[inline(always)]
pub(super) const fn words(len: usize) -> usize {
    1 + len.div_ceil(ALIGN)
}

#[inline(always)]
pub(super) fn first_word(segment: *mut Segment) -> *mut Word {
    Pool::<Word>::start(segment).cast()
}

/// The last word of a segment, which is kept for the header behind the last message.
pub(super) fn last_word(segment: *mut Segment) -> *mut Word {
    // SAFETY: the caller is in the segment, so it is alive.
    let words = unsafe { (*segment).bytes } / size_of::<Word>();
    first_word(segment).wrapping_add(words - 1)
}

/// The position of a place in a segment.
pub(super) fn position(segment: *mut Segment, at: *mut Word) -> usize {
    // SAFETY: the caller is in the segment, so it is alive.
    let base = unsafe { (*segment).base.load(Relaxed) };
    base.wrapping_add(distance(first_word(segment), at))
}

/// Where a message may end that starts at `at`: so many words further, but not behind `last`.
pub(super) fn run_end(at: *mut Word, last: *mut Word, free: usize) -> *mut Word {
    if distance(at, last) <= free { last } else { at.wrapping_add(free) }
}

/// Words from one place of a segment to a later one.
#[inline(always)]
pub(super) fn distance(from: *mut Word, to: *mut Word) -> usize {
    (to as usize - from as usize) / size_of::<Word>()
}

/// # Safety
/// A word of a living segment. Outside of loom it is the atomic from the first store on: until then only the producer's
/// thread knows it, and later it is bytes again only after the segment has changed hands.
#[inline(always)]
pub(super) unsafe fn header<'a>(word: *mut Word) -> &'a AtomicUsize {
    // SAFETY: the caller's; a word is as large and as aligned as the atomic.
    #[cfg(not(corelane_loom))]
    unsafe {
        &*word.cast()
    }
    // SAFETY: the caller's.
    #[cfg(corelane_loom)]
    unsafe {
        &(*word).header
    }
}

pub(super) struct Body {
    pub(super) pool: Pool<Word>,
    /// The most words inside.
    pub(super) limit: usize,
    /// Words popped after which the consumer publishes its position again.
    pub(super) release_every: usize,
    /// Position up to which the consumer has told that messages were popped. Written by the consumer.
    pub(super) consumed: Padded<AtomicUsize>,
    /// The producer's segment. Written by the producer where it changes.
    pub(super) tail: Padded<AtomicPtr<Segment>>,
    /// The producer's alone, and the consumer's.
    pub(super) writer: Padded<UnsafeCell<PushSide>>,
    pub(super) reader: Padded<UnsafeCell<PopSide>>,
}

/// What the producer keeps in mind beside its handle.
pub(super) struct PushSide {
    pub(super) segment: *mut Segment,
    pub(super) turn: Turn,
}

/// What the consumer keeps in mind beside its handle.
pub(super) struct PopSide {
    pub(super) segment: *mut Segment,
    pub(super) turn: Turn,
    /// The position published last.
    pub(super) released: usize,
    /// The position behind the last message that may be popped.
    pub(super) sealed: Option<usize>,
}

// SAFETY: the pointers are to segments, whose owner at any time the protocol in the documentation of `stream` says; and
// each side reaches only its own cell.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

impl Drop for Body {
    fn drop(&mut self) {
        // SAFETY: both handles are gone, so no other thread reaches this.
        let head = self.reader.with(|reader| unsafe { (*reader).segment });
        // SAFETY: both handles are gone. The consumer's segment and those behind it are alive and in no slot.
        unsafe { self.pool.free_chain(head) };
        self.pool.free_kept();
    }
}

impl Body {
    /// Looks for room where there seems to be none, as [`Shared::make_room`] says.
    fn find_room(&self, at: *mut Word, end: *mut Word, need: usize) -> (*mut Word, *mut Word, Result<(), PushError>) {
        if need > self.limit {
            return (at, end, Err(PushError::TooLarge));
        }
        // SAFETY: only the producer reaches this, and nothing in here does a second time.
        self.writer.with_mut(|writer| unsafe {
            let writer = &mut *writer;
            let free = if self.limit == UNLIMITED {
                UNLIMITED
            } else {
                self.limit - position(writer.segment, at).wrapping_sub(self.consumed.load(Acquire))
            };
            if need > free {
                return (at, end, Err(PushError::Full));
            }
            let mut at = at;
            if distance(at, last_word(writer.segment)) < need {
                match self.next_segment(writer, at, need) {
                    Some(first) => at = first,
                    None => return (at, end, Err(PushError::NoMemory)),
                }
            }
            (at, run_end(at, last_word(writer.segment), free), Ok(()))
        })
    }

    /// Goes on to the oldest segment that is free, or to a new one, from a place in the producer's segment. Returns its
    /// first word.
    ///
    /// # Safety
    /// Called by the producer, which stands at that place.
    unsafe fn next_segment(&self, writer: &mut PushSide, at: *mut Word, need: usize) -> Option<*mut Word> {
        // And the header behind the message.
        let bytes = need.checked_add(1).and_then(|words| words.checked_mul(size_of::<Word>())).unwrap_or(usize::MAX);
        let mut next = null_mut();
        if bytes <= self.pool.bytes {
            next = self.pool.take(&mut writer.turn);
        }
        if next.is_null() {
            next = self.pool.allocate(bytes.max(self.pool.bytes));
        }
        if next.is_null() {
            return None;
        }
        let first = first_word(next);
        // SAFETY: `next` is alive and ours alone until the header is stored; the segment is alive while this side is in
        // it.
        unsafe {
            (*next).base.store(position(writer.segment, at), Relaxed);
            (*next).next.store(null_mut(), Relaxed);
            header(first).store(EMPTY, Relaxed);
            self.tail.store(next, Release);
            (*writer.segment).next.store(next, Release);
            header(at).store(JUMP, Release);
        }
        writer.segment = next;
        Some(first)
    }

    /// The consumer's `stop`.
    pub(super) fn stop(&self, reader: &PopSide) -> *mut Word {
        let first = first_word(reader.segment);
        let base = position(reader.segment, first);
        let due = reader.released.wrapping_add(self.release_every).wrapping_sub(base);
        let words = match reader.sealed {
            Some(sealed) => due.min(sealed.wrapping_sub(base)),
            None => due,
        };
        if words <= distance(first, last_word(reader.segment)) { first.wrapping_add(words) } else { NEVER }
    }

    /// The position behind the last message that is published, seen from the consumer's place in its segment.
    pub(super) fn published_end(&self, segment: *mut Segment, at: *mut Word) -> usize {
        let tail = self.tail.load(Acquire);
        let mut at = if tail == segment { at } else { first_word(tail) };
        loop {
            // SAFETY: the producer's segment now or a moment ago: this side has not left it, so it is alive. Behind a
            // published message, or at the start of a segment, there is a header.
            let found = unsafe { header(at) }.load(Acquire);
            #[cfg(corelane_loom)]
            assert_ne!(found, UNWRITTEN, "a header was read before it was written");
            if found as isize <= 0 {
                return position(tail, at);
            }
            at = at.wrapping_add(words(found - 1));
        }
    }
}

/// What is cold gets an end's state by value and gives it back, see step 7 of [how it works](super#how-it-works).
impl Shared<Body> {
    /// Looks for room where there seems to be none, from the producer's place on. Returns that place, which may be in
    /// another segment then, and the end of the room.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(
        &self,
        at: *mut Word,
        end: *mut Word,
        need: usize,
    ) -> (*mut Word, *mut Word, Result<(), PushError>) {
        if self.control.is_halted() {
            return (at, end, Err(PushError::Closed));
        }
        let (at, end, made) = self.body.find_room(at, end, need);
        let made = if made.is_err() && self.control.refuses_pushes() { Err(PushError::Closed) } else { made };
        (at, end, made)
    }

    /// Takes back what lies behind the seal of the words from `from` on, which were published last. If the queue is
    /// closed, returns how many of the messages, and where the producer stands then.
    #[cold]
    #[inline(never)]
    pub(super) fn handed_over(&self, state: u32, from: *mut Word, end: *mut Word) -> Option<(usize, *mut Word)> {
        // SAFETY: only the producer reaches this.
        let segment = self.body.writer.with(|writer| unsafe { (*writer).segment });
        let behind = self.control.handed_over(state, position(segment, end))?.min(distance(from, end));
        let at = end.wrapping_sub(behind);
        let (mut refused, mut message) = (0, at);
        while message != end {
            // SAFETY: a header of the words published last. They lie behind the consumer's seal, so it reads none of
            // these any more.
            let len = unsafe { header(message) }.load(Relaxed) - 1;
            message = message.wrapping_add(words(len));
            refused += 1;
        }
        Some((refused, at))
    }

    /// Called by a consumer that has come to `stop`: true if nothing behind it may be popped. And the new `stop`.
    #[cold]
    #[inline(never)]
    pub(super) fn stopped(&self, at: *mut Word) -> (bool, *mut Word) {
        // SAFETY: only the consumer reaches this, and nothing in here does a second time.
        self.body.reader.with_mut(|reader| unsafe {
            let reader = &mut *reader;
            let over = reader.sealed == Some(position(reader.segment, at));
            self.publish_position(reader, at);
            (over, self.body.stop(reader))
        })
    }

    /// Called by a consumer that finds no message: goes on to the next segment, or says so. Returns the header that it
    /// found, its place and the new `stop`.
    #[cold]
    #[inline(never)]
    pub(super) fn follow(&self, found: usize, at: *mut Word) -> (usize, *mut Word, *mut Word) {
        // SAFETY: only the consumer reaches this, and nothing in here does a second time. It stands in its segment.
        self.body.reader.with_mut(|reader| unsafe {
            let reader = &mut *reader;
            let (mut found, mut at) = (found, at);
            while found == JUMP {
                // The link was stored before the header that says so. Everything in the segment was popped, and the
                // producer has left it. The only pointers to it were this side's and `tail`, which leads further since
                // before that header.
                let next = (*reader.segment).next.load(Acquire);
                self.body.pool.give_back(&mut reader.turn, reader.segment);
                reader.segment = next;
                at = first_word(next);
                self.publish_position(reader, at);
                assert!(
                    !cfg!(any(corelane_loom, debug_assertions)) || reader.sealed != Some(position(next, at)),
                    "the seal lies where this segment begins, or at its jump"
                );
                found = header(at).load(Acquire);
                #[cfg(corelane_loom)]
                assert_ne!(found, UNWRITTEN, "a header was read before it was written");
            }
            if found == EMPTY {
                self.publish_position(reader, at);
            }
            (found, at, self.body.stop(reader))
        })
    }

    /// Publishes where the consumer stands, if that is news.
    fn publish_position(&self, reader: &mut PopSide, at: *mut Word) {
        let position = position(reader.segment, at);
        if reader.released != position {
            reader.released = position;
            self.body.consumed.store(position, Release);
            self.control.slots_freed(position);
        }
    }
}
