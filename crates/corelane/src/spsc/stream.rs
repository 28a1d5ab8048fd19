//! An unbounded queue of byte messages of any length, the bytes inside the queue.
//!
//! Source: the case study on FastFlow's queue, its `ff_queue`: "if one needs to stream the data, do stream the data". The sketch
//! in the text has the layout; closing, waiting, the byte limit, batches and memory that is given back are ours.
//!
//! ```
//! use corelane::spsc::stream;
//!
//! let (mut producer, mut consumer) = stream::channel();
//! producer.push(b"whole").unwrap();
//!
//! // In place: whoever fills memory fills the queue's own.
//! let mut reserved = producer.reserve(100).unwrap();
//! assert_eq!((reserved.append(b"in "), reserved.append(b"parts")), (3, 5));
//! reserved.commit_written().unwrap();
//!
//! assert_eq!(consumer.pop().unwrap(), b"whole");
//! assert_eq!(&*consumer.peek().unwrap(), b"in parts");
//! assert_eq!(consumer.try_pop().unwrap(), b"in parts");
//! ```
//!
//! # How it works
//!
//! 1. A segment is a run of 8-byte words. A message is a header word and its bytes behind it, rounded up to words; so its bytes
//!    are aligned to [`ALIGN`].
//! 2. A header is 0 where nothing is published yet, or the message's length plus one. The producer writes the message and a 0
//!    into the header behind it, and then its own header: after that the message can be read. So a message costs one
//!    publication and no shared index, the header lies in the cache line of the bytes, and nothing is ever cleared
//!    beyond the next word.
//! 3. The consumer reads the header where it stands, one branch a message, and steps over the message.
//! 4. A message that does not fit into the rest of a segment goes to the next one: the producer takes the oldest that the
//!    consumer has left, or a new one, links it, and writes a header that says so. A message larger than a segment gets one of
//!    its own. The consumer follows, and gives the segment it leaves back or frees it, as in [`linked`](super::linked).
//! 5. A batch is written message by message, but the first header last: one publication shows all of it.
//! 6. With a limit the producer counts words and learns from `consumed` of those that were popped, which the consumer publishes
//!    for every eighth of the limit and before it says Empty. What it may still write is folded into the end of the
//!    segment, and what the consumer may read before it publishes or is sealed into one pointer, so there is still one
//!    comparison on each side.
//! 7. What happens once a segment or less is done in a call that gets an end's place by value and gives it back, as in the
//!    [`lane`](super::lane): a handle whose address no call ever gets lives in registers.
//!
//! # Why it is so
//!
//! Three ways to publish, measured beside each other: 5 to 20 bytes a message, filled in place and checked, segments of
//! 64 KiB, on 2 CPUs of an AMD EPYC (Zen 3) sharing a level-3 cache; medians:
//!
//! | | M messages/s | round trip, ns |
//! |---|---|---|
//! | a header that is its own flag (this file) | 125 | 120 |
//! | the same, and the producer's exact position in a word of its own | 119 | 121 |
//! | that word alone, cached by the consumer | 114 | 145 |
//!
//! That was with handles whose state calls reached by address. In registers (step 7) it makes 143 where it made 103 to 118, in one
//! process and in turns: each message waited for the last one's place to come back from memory.
//! What is left is mostly the messages' own work: to choose, copy and check them without any queue, each thread in memory of its own,
//! makes 188.
//!
//! The word would answer at once what [`close`](Consumer::close) and [`bytes`](Consumer::bytes) now look for in the producer's
//! segment, header by header. They are rare, and each message would pay.
//!
//! # Data or pointers?
//!
//! The case study's question, answered by `corelane-bench run messages` on the same machine: one thread pushes, another pops and
//! checks; medians of 7 rounds, M messages a second. A box is allocated by one thread and freed
//! by the other.
//!
//! | bytes | in the queue (this file) | boxes through `linked` | boxes through the best other unbounded queue | bytes through rtrb, bounded |
//! |---|---|---|---|---|
//! | 5 to 20 | 142 | 11 | 8 | 101 |
//! | 64 | 57 | 11 | 8 | 32 |
//! | 256 | 30 | 3 | 3 | 24 |
//! | 1024 | 27 | 2 | 2 | 14 |
//! | 4096 | 8 | 1 | 2 | 4 |
//!
//! So data, wherever the message has to be made anyway: not the queue, the allocation is what costs. Pointers where the
//! data is there already and stays: a pointer through a lane takes 2 to 3 ns, whatever it points to.
//!
//! # Synchronization
//!
//! - A header, store-release (producer) → load-acquire (consumer): the bytes behind it, the 0 behind those, and everything
//!   written before it are there when it is read. A link is stored before the header that says to follow it.
//! - `tail`, store-release (producer) → load-acquire (consumer): as in [`linked`](super::linked), and stored before the same
//!   header.
//! - A segment on its way back: as in [`linked`](super::linked).
//! - `consumed`, store-release (consumer) → load-acquire (producer): what was done before a pop is visible after the push that it made room
//!   for. Nothing in here needs that: memory is reused only by segments.
//! - Parking and closing: see [`crate::wait`]. A producer that finds the queue closed takes back what lies behind the seal.
//!
//! # Progress
//!
//! Wait-free but for the allocator, see [`linked`](super::linked). `close` and `bytes` of the consumer look at each message of
//! one segment.
//!
//! # When to use it, and when not
//!
//! For anything that is bytes already, or soon will be: records, packets, log lines, serialised requests; and for small items of
//! mixed types. Not to hand a large buffer on that a next stage only reads: that copies where a pointer would do; send boxes
//! through a [`lane`](super::lane) or [`linked`](super::linked).
//!
//! # Memory
//!
//! 8 bytes and the length rounded up to 8 a message. Segments as in [`linked`](super::linked): two at first, at most
//! [`Tuning::cached`] kept. A segment that was made for a large message is freed when it is left.

use super::control::Control;
use super::design::Shared;
use super::handle::{Look, Options, Waited, wait_until};
use super::segments::{Contents, Pool, Segment, Turn};
use super::stats::{Counting, NoStats, Recorder, Stats};
#[cfg(feature = "std")]
use crate::error::PopTimeoutError;
use crate::error::{ChannelError, Closed, TryPopError};
#[cfg(feature = "std")]
use crate::sync::Instant;
use crate::sync::{Acquire, Arc, AtomicPtr, AtomicUsize, Padded, Relaxed, Release, UnsafeCell};
use crate::wait::{Adaptive, Strategy};
#[cfg(feature = "std")]
use crate::wait::{Parker, Waitable};
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::Deref;
use core::ptr::{self, null_mut};
#[cfg(feature = "std")]
use std::time::Duration;

/// Every message's bytes start at a multiple of this.
pub const ALIGN: usize = 8;

super::tuning! {
    /// How memory is held, and how much.
    pub struct Tuning {
        /// Bytes in a segment, rounded up to whole words. At least 1; by default 64 KiB.
        segment(bytes: usize),
        /// How many segments that nobody uses are kept. At least 1; by default 4.
        cached(segments: usize),
        /// The most bytes that messages inside may take up, each its length rounded up to 8 plus 8. At least 16; by
        /// default there is no limit but memory.
        limit(bytes: usize),
    }
}

const SEGMENT_BYTES: usize = 64 * 1024;
const CACHED: usize = if cfg!(loom) { 2 } else { 4 };

/// Why a message was not pushed, or no room for it reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError {
    /// The limit leaves no room for it now. The consumer may make room at any time.
    Full,
    /// The limit still left no room for it when the time was up.
    Timeout,
    /// More than the limit leaves in an empty queue.
    TooLarge,
    /// The allocator refused the memory.
    NoMemory,
    /// The consumer is gone or has closed the queue: no later push will succeed.
    Closed,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full => "the queue is full",
            Self::Timeout => "the time was up before there was room for the message",
            Self::TooLarge => "the message is larger than the queue's limit",
            Self::NoMemory => "no memory for the message",
            Self::Closed => "the queue is closed",
        })
    }
}

impl core::error::Error for PushError {}

/// Why [`Producer::push_batch`] did not push all messages, and how many it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PushBatchError {
    /// The messages that were pushed: the first ones.
    pub pushed: usize,
    /// Why the next one was not: `TooLarge`, `NoMemory` or `Closed`.
    pub reason: PushError,
}

impl fmt::Display for PushBatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} messages: {}", self.pushed, self.reason)
    }
}

impl core::error::Error for PushBatchError {}

/// Makes a queue with the defaults.
///
/// # Panics
/// Where [`try_channel`] returns an error.
#[track_caller]
pub fn channel() -> (Producer, Consumer) {
    try_channel().unwrap_or_else(|error| panic!("{error}"))
}

/// Makes a queue with the defaults.
///
/// # Errors
/// No memory.
pub fn try_channel() -> Result<(Producer, Consumer), ChannelError> {
    channel_with(Options::default())
}

/// Makes a queue.
///
/// # Errors
/// Segments of nothing, none to be cached, a limit that no message fits in, or no memory.
#[expect(clippy::type_complexity, reason = "a pair of handles is what the reader looks for")]
pub fn channel_with<W: Strategy, S: Recorder>(
    options: Options<Tuning, W, S>,
) -> Result<(Producer<W, S>, Consumer<W, S>), ChannelError> {
    let Tuning { segment, cached, limit } = options.tuning;
    if segment == Some(0) || cached == Some(0) {
        return Err(ChannelError::BadSegment);
    }
    let limit = limit.map_or(UNLIMITED, |bytes| (bytes / ALIGN).min(UNLIMITED));
    if limit < 2 {
        return Err(ChannelError::ZeroCapacity);
    }
    // Room for a message of a word at least, and for the header behind it.
    let words = segment.unwrap_or(SEGMENT_BYTES).div_ceil(ALIGN).max(3);
    let bytes = words.checked_mul(size_of::<Word>()).ok_or(ChannelError::TooLarge)?;
    let pool = Pool::new(bytes, cached.unwrap_or(CACHED))?;
    let segment = pool.allocate_touched()?;
    let start = options.start;
    let release_every = if limit == UNLIMITED { UNLIMITED } else { limit / 8 };
    let body = Body {
        pool,
        limit,
        release_every,
        consumed: Padded(AtomicUsize::new(start)),
        tail: Padded(AtomicPtr::new(segment)),
        writer: Padded(UnsafeCell::new(PushSide { segment, turn: 0 })),
        reader: Padded(UnsafeCell::new(PopSide { segment, turn: 0, released: start, sealed: None })),
    };
    // From here on the body frees the first segment.
    let spare = body.pool.allocate_touched()?;
    let turn = body.pool.keep_first(spare);
    let first = first_word(segment);
    // SAFETY: the segment is alive, and nobody else knows it nor the body.
    let stop = unsafe {
        (*segment).base.store(start, Relaxed);
        header(first).store(EMPTY, Relaxed);
        body.reader.with_mut(|reader| {
            (*reader).turn = turn;
            body.stop(&*reader)
        })
    };
    #[cfg(feature = "std")]
    let control = Control::new(options.producer_parker, options.consumer_parker);
    #[cfg(not(feature = "std"))]
    let control = Control::new();
    // A clone that panics leaves no queue behind: from the handles on nothing does.
    let wait = options.wait.clone();
    let shared = Shared::new(control, body);
    let end = run_end(first, last_word(segment), limit);
    let tx = Tx { at: first, end, halted: false, shared: shared.clone() };
    let rx = Rx {
        at: first,
        stop,
        #[cfg(loom)]
        lent: alloc::vec::Vec::new(),
        shared,
    };
    let (tx, rx) = (ManuallyDrop::new(tx), ManuallyDrop::new(rx));
    let producer = Producer { raw: tx, wait, stats: S::default(), one_thread: PhantomData };
    Ok((producer, Consumer { raw: rx, wait: options.wait, stats: S::default(), one_thread: PhantomData }))
}

/// A limit in words that is none: differences of positions are read as signed numbers.
const UNLIMITED: usize = isize::MAX as usize / 2;
/// A header behind which nothing is published yet.
const EMPTY: usize = 0;
/// A header that says: the next message is in the next segment. As a signed number it is negative, as no length is.
const JUMP: usize = usize::MAX;
/// A `stop` that no place reaches.
const NEVER: *mut Word = core::ptr::without_provenance_mut(usize::MAX);

/// The word a segment consists of: a header, or 8 bytes of a message.
#[cfg(not(loom))]
#[repr(C, align(8))]
struct Word([MaybeUninit<u8>; ALIGN]);

/// Loom sees headers as atomics and bytes as a cell; which of them a word is, its place says.
#[cfg(loom)]
struct Word {
    header: AtomicUsize,
    bytes: crate::sync::UnsafeCell<[u8; ALIGN]>,
}

impl Contents for Word {
    const ALIGN: usize = align_of::<Word>();

    #[cfg(loom)]
    unsafe fn make(start: *mut u8, bytes: usize) {
        for i in 0..bytes / size_of::<Word>() {
            // As a header that is read before it was written: a failure.
            let word = Word { header: AtomicUsize::new(UNWRITTEN), bytes: crate::sync::UnsafeCell::new([0; ALIGN]) };
            // SAFETY: inside the segment, which is ours.
            unsafe { start.cast::<Word>().add(i).write(word) };
        }
    }

    #[cfg(loom)]
    unsafe fn unmake(start: *mut u8, bytes: usize) {
        for i in 0..bytes / size_of::<Word>() {
            // SAFETY: made by `make`.
            unsafe { core::ptr::drop_in_place(start.cast::<Word>().add(i)) };
        }
    }
}

#[cfg(loom)]
const UNWRITTEN: usize = usize::MAX - 1;

/// Words that a message of this length takes up, its header included.
#[inline(always)]
const fn words(len: usize) -> usize {
    1 + len.div_ceil(ALIGN)
}

#[inline(always)]
fn first_word(segment: *mut Segment) -> *mut Word {
    Pool::<Word>::start(segment).cast()
}

/// The last word of a segment, which is kept for the header behind the last message.
fn last_word(segment: *mut Segment) -> *mut Word {
    // SAFETY: whoever asks is in the segment, so it is alive.
    let words = unsafe { (*segment).bytes } / size_of::<Word>();
    first_word(segment).wrapping_add(words - 1)
}

/// The position of a place in a segment.
fn position(segment: *mut Segment, at: *mut Word) -> usize {
    // SAFETY: whoever asks is in the segment, so it is alive.
    let base = unsafe { (*segment).base.load(Relaxed) };
    base.wrapping_add(distance(first_word(segment), at))
}

/// Where a message may end that starts at `at`: so many words further, but not behind `last`.
fn run_end(at: *mut Word, last: *mut Word, free: usize) -> *mut Word {
    if distance(at, last) <= free { last } else { at.wrapping_add(free) }
}

/// Words from one place of a segment to a later one.
#[inline(always)]
fn distance(from: *mut Word, to: *mut Word) -> usize {
    (to as usize - from as usize) / size_of::<Word>()
}

/// # Safety
/// A word of a living segment. Outside of loom it is the atomic from the first store on: until then only the producer's
/// thread knows it, and later it is bytes again only after the segment has changed hands.
#[inline(always)]
unsafe fn header<'a>(word: *mut Word) -> &'a AtomicUsize {
    // SAFETY: the caller's; a word is as large and as aligned as the atomic.
    #[cfg(not(loom))]
    unsafe {
        &*word.cast()
    }
    // SAFETY: the caller's.
    #[cfg(loom)]
    unsafe {
        &(*word).header
    }
}

struct Body {
    pool: Pool<Word>,
    /// The most words inside.
    limit: usize,
    /// Words popped after which the consumer publishes its position again.
    release_every: usize,
    /// Position up to which the consumer has told that messages were popped. Written by the consumer.
    consumed: Padded<AtomicUsize>,
    /// The producer's segment. Written by the producer where it changes.
    tail: Padded<AtomicPtr<Segment>>,
    /// The producer's alone, and the consumer's.
    writer: Padded<UnsafeCell<PushSide>>,
    reader: Padded<UnsafeCell<PopSide>>,
}

/// What the producer keeps in mind beside its handle.
struct PushSide {
    segment: *mut Segment,
    turn: Turn,
}

/// What the consumer keeps in mind beside its handle.
struct PopSide {
    segment: *mut Segment,
    turn: Turn,
    /// The position published last.
    released: usize,
    /// The position behind the last message that may be popped.
    sealed: Option<usize>,
}

// SAFETY: the pointers are to segments, whose owner at any time the protocol in the module's documentation says; and each side
// reaches only its own cell.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

impl Drop for Body {
    fn drop(&mut self) {
        // SAFETY: both handles are gone, so nobody else reaches this.
        let head = self.reader.with(|reader| unsafe { (*reader).segment });
        // SAFETY: both handles are gone. The consumer's segment and those behind it are alive and in no slot.
        unsafe { self.pool.free_chain(head) };
        self.pool.free_kept();
    }
}

/// What is cold gets an end's state by value and gives it back, see step 7.
impl Body {
    /// Looks for room where there seems to be none, from the producer's place on. Returns that place, which may be in another
    /// segment then, and the end of the room.
    #[cold]
    #[inline(never)]
    fn make_room(&self, at: *mut Word, end: *mut Word, need: usize) -> (*mut Word, *mut Word, Result<(), PushError>) {
        if need > self.limit {
            let error = if self.limit == UNLIMITED { PushError::NoMemory } else { PushError::TooLarge };
            return (at, end, Err(error));
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

    /// Goes on to the oldest segment that is free, or to a new one, from a place in the producer's segment. Returns its first
    /// word.
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
        // SAFETY: `next` is alive and ours alone until the header is stored; the segment is alive while this side is in it.
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
    fn stop(&self, reader: &PopSide) -> *mut Word {
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
    fn published_end(&self, segment: *mut Segment, at: *mut Word) -> usize {
        let tail = self.tail.load(Acquire);
        let mut at = if tail == segment { at } else { first_word(tail) };
        loop {
            // SAFETY: the producer's segment now or a moment ago: this side has not left it, so it is alive. Behind a published
            // message, or at the start of a segment, there is a header.
            let found = unsafe { header(at) }.load(Acquire);
            #[cfg(loom)]
            assert_ne!(found, UNWRITTEN, "a header was read before it was written");
            if found as isize <= 0 {
                return position(tail, at);
            }
            at = at.wrapping_add(words(found - 1));
        }
    }
}

impl Shared<Body> {
    /// Takes back what lies behind the seal of the words from `from` on, which were published last. If the queue is
    /// closed, returns how many of the messages, and where the producer stands then.
    #[cold]
    #[inline(never)]
    fn handed_over(&self, state: u32, from: *mut Word, end: *mut Word) -> Option<(usize, *mut Word)> {
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
    fn stopped(&self, at: *mut Word) -> (bool, *mut Word) {
        // SAFETY: only the consumer reaches this, and nothing in here does a second time.
        self.body.reader.with_mut(|reader| unsafe {
            let reader = &mut *reader;
            let over = reader.sealed == Some(position(reader.segment, at));
            self.publish_position(reader, at);
            (over, self.body.stop(reader))
        })
    }

    /// Called by a consumer that finds no message: goes on to the next segment, or says so. Returns the header that it found, its
    /// place and the new `stop`.
    #[cold]
    #[inline(never)]
    fn follow(&self, found: usize, at: *mut Word) -> (usize, *mut Word, *mut Word) {
        // SAFETY: only the consumer reaches this, and nothing in here does a second time. It stands in its segment.
        self.body.reader.with_mut(|reader| unsafe {
            let reader = &mut *reader;
            let (mut found, mut at) = (found, at);
            while found == JUMP {
                // The link was stored before the header that says so. Everything in the segment was popped, and the producer has
                // left it. The only pointers to it were this side's and `tail`, which leads further since before that header.
                let next = (*reader.segment).next.load(Acquire);
                self.body.pool.give_back(&mut reader.turn, reader.segment);
                reader.segment = next;
                at = first_word(next);
                self.publish_position(reader, at);
                assert!(
                    !cfg!(any(loom, debug_assertions)) || reader.sealed != Some(position(next, at)),
                    "the seal lies where this segment begins, or at its jump"
                );
                found = header(at).load(Acquire);
                #[cfg(loom)]
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

/// The producer's half.
struct Tx {
    /// Where the next header goes. It holds `EMPTY`.
    at: *mut Word,
    /// A message may be written if it ends here at the latest: the last word of the segment, which is kept for the header
    /// behind it, or less where the limit says so.
    end: *mut Word,
    halted: bool,
    shared: Arc<Shared<Body>>,
}

// SAFETY: the pointers point into segments that `shared` keeps alive.
unsafe impl Send for Tx {}

impl Tx {
    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }

    /// Words that were pushed since the queue was made, plus the start, wrapping.
    fn position(&self) -> usize {
        // SAFETY: only the producer reaches this.
        position(self.shared.body.writer.with(|writer| unsafe { (*writer).segment }), self.at)
    }

    /// Words inside, at most.
    fn inside(&self) -> usize {
        self.position().wrapping_sub(self.shared.body.consumed.load(Acquire))
    }

    /// True if a message of so many words can be written at once.
    #[inline(always)]
    fn has_room(&self, need: usize) -> bool {
        distance(self.at, self.end) >= need
    }

    /// Looks for room where there seems to be none.
    #[inline(always)]
    fn make_room(&mut self, need: usize) -> Result<(), PushError> {
        if self.halted {
            return Err(PushError::Closed);
        }
        let (at, end, made) = self.shared.body.make_room(self.at, self.end, need);
        self.at = at;
        self.end = end;
        made
    }

    /// Where the next message's bytes go.
    #[cfg(not(loom))]
    #[inline(always)]
    fn bytes(&self) -> *mut u8 {
        self.at.wrapping_add(1).cast()
    }

    /// Steps over a message that was written, and returns where its header goes. It is not published.
    ///
    /// # Safety
    /// There is room for a message of this length.
    #[inline(always)]
    unsafe fn pass(&mut self, len: usize) -> *mut Word {
        let place = self.at;
        self.at = place.wrapping_add(words(len));
        // SAFETY: there is room, and always a word behind it.
        unsafe { header(self.at) }.store(EMPTY, Relaxed);
        place
    }

    /// Called after a publication that found the consumer's state; how many of the messages published last are refused.
    #[inline(always)]
    fn handed_over(&mut self, state: u32, from: *mut Word) -> usize {
        let Some((refused, at)) = self.shared.handed_over(state, from, self.at) else { return 0 };
        self.at = at;
        // The consumer may still be looking for the last message, if this end has decided where that is.
        self.halt();
        refused
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.halted = true;
        self.end = self.at;
    }
}

/// The sending end. `Send`, not `Sync`, not `Clone`: one thread at a time pushes.
///
/// Dropping it closes the queue; the consumer can still pop what is inside.
pub struct Producer<W = Adaptive, S: Recorder = NoStats> {
    /// Dropped by value, which gets by without the handle's address.
    raw: ManuallyDrop<Tx>,
    wait: W,
    stats: S,
    one_thread: PhantomData<Cell<()>>,
}

impl<W, S: Recorder> Producer<W, S> {
    /// Pushes a message. Never waits.
    ///
    /// # Errors
    /// `Full` or `TooLarge` by the [limit](Tuning::limit), `NoMemory`, or `Closed` once the consumer has closed or is gone.
    #[inline]
    pub fn try_push(&mut self, message: &[u8]) -> Result<(), PushError> {
        self.room_for(message.len())?;
        // SAFETY: there is room for the message, whose memory cannot be the queue's: nobody has a reference to that.
        let refused = unsafe {
            copy_in(&self.raw, message);
            self.hand_over(message.len())
        };
        if refused == 0 { Ok(()) } else { Err(PushError::Closed) }
    }

    /// Makes sure of room for a message of this length.
    #[inline(always)]
    fn room_for(&mut self, len: usize) -> Result<(), PushError> {
        let need = words(len);
        if self.raw.has_room(need) { Ok(()) } else { self.make_room(need) }
    }

    #[inline(always)]
    fn make_room(&mut self, need: usize) -> Result<(), PushError> {
        let made = self.raw.make_room(need);
        if made.is_err() && self.is_closed() {
            return Err(PushError::Closed);
        }
        if made == Err(PushError::Full) {
            self.stats.full(|| true);
        }
        made
    }

    /// Publishes the message that is written; 1 if it is refused because the queue is closed.
    ///
    /// # Safety
    /// There is room for a message of this length, and its bytes are initialised.
    #[inline(always)]
    unsafe fn hand_over(&mut self, len: usize) -> usize {
        // SAFETY: the caller's.
        unsafe {
            let place = self.raw.pass(len);
            self.publish(place, len, 1)
        }
    }

    /// Stores the header of the first of the messages that are written up to here; how many of them are refused.
    ///
    /// # Safety
    /// `first` is its place, `len` its length; the other headers are stored and all bytes initialised.
    #[inline(always)]
    unsafe fn publish(&mut self, first: *mut Word, len: usize, messages: usize) -> usize {
        // SAFETY: the caller's.
        unsafe { header(first) }.store(len + 1, Release);
        let refused = match self.raw.control().consumer.after_publication() {
            0 => 0,
            state => self.raw.handed_over(state, first),
        };
        self.stats.pushed(messages - refused, || self.raw.inside() * ALIGN);
        refused
    }

    /// Pushes as many of the messages as there is room for, in order. Never waits. Returns how many: 0 only if there
    /// were none.
    ///
    /// The consumer sees them all at once, or in as many parts as segments change; a limit that is reached ends the batch. If
    /// an `as_ref` panics, the messages before it are pushed.
    ///
    /// # Errors
    /// As for [`try_push`](Self::try_push), if none could be pushed.
    pub fn try_push_batch<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> Result<usize, PushError> {
        let (pushed, refusal) = self.push_some(messages);
        match refusal {
            Some(refusal) if pushed == 0 => Err(refusal),
            _ => Ok(pushed),
        }
    }

    /// Pushes what there is room for; how many, and why not the next one.
    fn push_some<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> (usize, Option<PushError>) {
        let mut batch = Batch { producer: self, first: None, messages: 0, pushed: 0, refused: false };
        let refusal = messages.iter().find_map(|message| batch.push(message.as_ref()).err());
        batch.publish();
        let refusal = if batch.refused { Some(PushError::Closed) } else { refusal };
        (batch.pushed, refusal)
    }

    /// Room for a message of `len` bytes, to be filled in place, if there is some now. Never waits. Nothing is pushed
    /// if the guard is dropped or forgotten.
    ///
    /// # Errors
    /// As for [`try_push`](Self::try_push).
    #[inline]
    pub fn try_reserve(&mut self, len: usize) -> Result<Reserved<'_, W, S>, PushError> {
        if self.is_closed() {
            return Err(PushError::Closed);
        }
        self.room_for(len)?;
        Ok(self.reserved(len))
    }

    /// There is room for so many bytes.
    #[inline(always)]
    fn reserved(&mut self, len: usize) -> Reserved<'_, W, S> {
        Reserved {
            #[cfg(loom)]
            bytes: alloc::vec![MaybeUninit::uninit(); len],
            producer: self,
            len,
            written: 0,
        }
    }

    /// Bytes that the messages inside take up, each its length rounded up to 8 plus 8: an upper bound. The consumer can only
    /// lower it.
    pub fn bytes(&self) -> usize {
        self.raw.inside() * ALIGN
    }

    /// True if the consumer has popped everything and found the queue empty since. Stays true until this producer pushes.
    pub fn is_empty(&self) -> bool {
        self.raw.inside() == 0
    }

    /// The [limit](Tuning::limit), rounded down to whole words.
    pub fn limit(&self) -> Option<usize> {
        let limit = self.raw.shared.body.limit;
        (limit != UNLIMITED).then(|| limit * ALIGN)
    }

    /// Closes the queue: no later push succeeds, and a consumer that waits is woken.
    pub fn close(&mut self) {
        self.raw.halt();
        self.raw.control().close_by_producer();
    }

    /// True once either end has closed or the consumer is gone. Then it stays so, and no push succeeds.
    pub fn is_closed(&self) -> bool {
        self.raw.control().refuses_pushes()
    }
}

impl<W: Strategy, S: Recorder> Producer<W, S> {
    /// Pushes a message, waiting for room by the queue's strategy where the limit leaves none.
    ///
    /// # Errors
    /// `TooLarge`, `NoMemory` or `Closed`. Never `Full`.
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), PushError> {
        loop {
            match self.try_push(message) {
                Err(PushError::Full) => self.wait_for_room(message.len())?,
                done => return done,
            }
        }
    }

    /// Pushes a message, waiting at most this long for room. Never gives up early; how late depends on the strategy and the
    /// scheduler.
    ///
    /// # Errors
    /// `Timeout`, `TooLarge`, `NoMemory` or `Closed`.
    #[cfg(feature = "std")]
    pub fn push_timeout(&mut self, message: &[u8], timeout: Duration) -> Result<(), PushError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            match self.try_push(message) {
                Err(PushError::Full) => {}
                done => return done,
            }
            match self.wait(words(message.len()), deadline) {
                Waited::Ready => {}
                Waited::Closed => return Err(PushError::Closed),
                Waited::Timeout => return Err(PushError::Timeout),
            }
        }
    }

    /// Pushes all of the messages, in order, waiting for room by the queue's strategy where the limit leaves none.
    ///
    /// They are seen as those of [`try_push_batch`](Self::try_push_batch) are.
    ///
    /// # Errors
    /// `TooLarge`, `NoMemory` or `Closed`, with the number of messages that were pushed.
    pub fn push_batch<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> Result<(), PushBatchError> {
        let mut pushed = 0;
        loop {
            let (more, refusal) = self.push_some(&messages[pushed..]);
            pushed += more;
            let waited = match refusal {
                None => return Ok(()),
                Some(PushError::Full) => self.wait_for_room(messages[pushed].as_ref().len()),
                Some(refusal) => Err(refusal),
            };
            waited.map_err(|reason| PushBatchError { pushed, reason })?;
        }
    }

    /// Room for a message of `len` bytes, to be filled in place; waits for it by the queue's strategy where the limit
    /// leaves none. Nothing is pushed if the guard is dropped or forgotten.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn reserve(&mut self, len: usize) -> Result<Reserved<'_, W, S>, PushError> {
        if self.is_closed() {
            return Err(PushError::Closed);
        }
        if let Err(refusal) = self.room_for(len) {
            if refusal != PushError::Full {
                return Err(refusal);
            }
            self.wait_for_room(len)?;
        }
        Ok(self.reserved(len))
    }

    /// Waits until a message of this length would not be refused as `Full`.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn wait_for_room(&mut self, len: usize) -> Result<(), PushError> {
        #[cfg(feature = "std")]
        let waited = self.wait(words(len), None);
        #[cfg(not(feature = "std"))]
        let waited = self.wait(words(len));
        match waited {
            Waited::Closed => Err(PushError::Closed),
            _ if self.is_closed() => Err(PushError::Closed),
            _ => self.room_for(len),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&mut self, need: usize, #[cfg(feature = "std")] deadline: Option<Instant>) -> Waited {
        let wait = self.wait.clone();
        wait_until(
            self,
            need,
            &wait,
            #[cfg(feature = "std")]
            deadline,
        )
    }

    /// This end as a sink of bytes: each `write` is one message, and waits for room.
    #[cfg(feature = "std")]
    pub fn writer(&mut self) -> Writer<'_, W, S> {
        Writer { producer: self }
    }
}

impl<W> Producer<W, Counting> {
    /// What this end has counted: pushes, full, waits, the most bytes inside, batches.
    pub fn stats(&self) -> Stats {
        self.stats.stats()
    }
}

impl<W, S: Recorder> Drop for Producer<W, S> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the last use of this half, so its share of the queue is taken out once.
        retire_producer(unsafe { ptr::read(&self.raw.shared) });
    }
}

/// By value, as all that is cold (step 7).
#[cold]
#[inline(never)]
fn retire_producer(shared: Arc<Shared<Body>>) {
    shared.control.close_by_producer();
}

impl<W, S: Recorder> fmt::Debug for Producer<W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("limit", &self.limit())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Messages that are written and not yet published. Publishes them when what makes the next one panics.
struct Batch<'a, W, S: Recorder> {
    producer: &'a mut Producer<W, S>,
    /// The first one's place and length.
    first: Option<(*mut Word, usize)>,
    /// How many there are.
    messages: usize,
    pushed: usize,
    refused: bool,
}

impl<W, S: Recorder> Batch<'_, W, S> {
    fn push(&mut self, message: &[u8]) -> Result<(), PushError> {
        let need = words(message.len());
        if !self.producer.raw.has_room(need) {
            // Who reads these may make the room, and a batch is taken back within one segment.
            self.publish();
            if self.refused {
                return Err(PushError::Closed);
            }
            self.producer.make_room(need)?;
        }
        // SAFETY: there is room. A header behind an unpublished one is not looked at by the consumer.
        unsafe {
            copy_in(&self.producer.raw, message);
            let place = self.producer.raw.pass(message.len());
            match self.first {
                None => self.first = Some((place, message.len())),
                Some(_) => header(place).store(message.len() + 1, Relaxed),
            }
        }
        self.messages += 1;
        Ok(())
    }

    fn publish(&mut self) {
        let messages = core::mem::take(&mut self.messages);
        if let Some((place, len)) = self.first.take() {
            // SAFETY: so many messages are written from there on.
            let refused = unsafe { self.producer.publish(place, len, messages) };
            self.pushed += messages - refused;
            self.refused = refused != 0;
        }
    }
}

impl<W, S: Recorder> Drop for Batch<'_, W, S> {
    fn drop(&mut self) {
        self.publish();
    }
}

/// Copies a message into the queue.
///
/// # Safety
/// There is room for it.
#[inline(always)]
unsafe fn copy_in(tx: &Tx, message: &[u8]) {
    let len = message.len();
    #[cfg(not(loom))]
    crate::sync::writes(tx.bytes(), len);
    #[cfg(not(loom))]
    // SAFETY: there is room for `len` bytes, rounded up to words; each piece lies inside the message.
    unsafe {
        let (from, to) = (message.as_ptr(), tx.bytes());
        // Overlapping pieces for short messages: a call costs more than the copy, and so does a branch on a length that
        // nobody can predict. Hence four words for all lengths up to 32, some of them the same.
        match len {
            8..=32 => {
                let last = len - 8;
                let word = |at: usize| from.add(at).cast::<u64>().read_unaligned();
                let (b, c) = (last.min(8), last.min(16));
                let words = [word(0), word(b), word(c), word(last)];
                for (at, word) in [0, b, c, last].into_iter().zip(words) {
                    to.add(at).cast::<u64>().write_unaligned(word);
                }
            }
            4..8 => {
                let half = |at: usize| from.add(at).cast::<u32>().read_unaligned();
                let halves = [half(0), half(len - 4)];
                to.cast::<u32>().write_unaligned(halves[0]);
                to.add(len - 4).cast::<u32>().write_unaligned(halves[1]);
            }
            _ => to.copy_from_nonoverlapping(from, len),
        }
    }
    #[cfg(loom)]
    for (i, piece) in message.chunks(ALIGN).enumerate() {
        // SAFETY: there is room for so many words.
        unsafe { (*tx.at.add(1 + i)).bytes.with_mut(|bytes| (&mut *bytes)[..piece.len()].copy_from_slice(piece)) };
    }
    let _ = len;
}

/// Room for a message, see [`Producer::reserve`]. Its bytes can be anything until they are written.
pub struct Reserved<'a, W = Adaptive, S: Recorder = NoStats> {
    producer: &'a mut Producer<W, S>,
    len: usize,
    /// Bytes appended so far.
    written: usize,
    /// Loom's words do not lie side by side.
    #[cfg(loom)]
    bytes: alloc::vec::Vec<MaybeUninit<u8>>,
}

impl<W, S: Recorder> Reserved<'_, W, S> {
    /// How many bytes were reserved.
    #[expect(clippy::len_without_is_empty, reason = "a message of no bytes is a message")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The memory, which starts at a multiple of [`ALIGN`].
    #[inline]
    pub fn as_uninit_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        #[cfg(not(loom))]
        // SAFETY: there is room for `len` bytes, which only this guard reaches; they live as long as the producer.
        unsafe {
            core::slice::from_raw_parts_mut(self.producer.raw.bytes().cast(), self.len)
        }
        #[cfg(loom)]
        &mut self.bytes
    }

    /// Appends as many of these bytes as there is still room for to what was appended before; how many.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let written = self.written;
        let room = &mut self.as_uninit_mut()[written..];
        let count = bytes.len().min(room.len());
        for (to, &from) in room.iter_mut().zip(bytes) {
            to.write(from);
        }
        self.written += count;
        count
    }

    /// Pushes the message of what was [appended](Self::append).
    ///
    /// # Errors
    /// `Closed` if the consumer has closed meanwhile.
    pub fn commit_written(self) -> Result<(), Closed<()>> {
        let written = self.written;
        // SAFETY: so many bytes were appended.
        unsafe { self.commit(written) }
    }

    /// Pushes the message of the first `len` bytes. What else was reserved is free again.
    ///
    /// # Errors
    /// `Closed` if the consumer has closed meanwhile.
    ///
    /// # Panics
    /// If more bytes are committed than were reserved.
    ///
    /// # Safety
    /// The first `len` bytes have been initialised.
    #[inline]
    pub unsafe fn commit(self, len: usize) -> Result<(), Closed<()>> {
        assert!(len <= self.len, "only reserved bytes can be committed");
        #[cfg(loom)]
        // SAFETY: initialised by the caller's promise, and there is room.
        unsafe {
            let bytes = core::slice::from_raw_parts(self.bytes.as_ptr().cast::<u8>(), len);
            copy_in(&self.producer.raw, bytes);
        }
        // SAFETY: the caller's, and there is room for more.
        if unsafe { self.producer.hand_over(len) } == 0 { Ok(()) } else { Err(Closed(())) }
    }
}

/// Appends; there is no more room where `write` returns 0.
#[cfg(feature = "std")]
impl<W, S: Recorder> std::io::Write for Reserved<'_, W, S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.append(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<W, S: Recorder> fmt::Debug for Reserved<'_, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved").field("len", &self.len).finish_non_exhaustive()
    }
}

/// The consumer's half.
struct Rx {
    /// The header of the next message, if there is one.
    at: *mut Word,
    /// From here on something has to be done before a header is read: the position to be published, or nothing more to be
    /// popped.
    stop: *mut Word,
    /// Loom's words do not lie side by side, so what is lent is a copy.
    #[cfg(loom)]
    lent: alloc::vec::Vec<alloc::boxed::Box<[u8]>>,
    shared: Arc<Shared<Body>>,
}

// SAFETY: as for the producer's half.
unsafe impl Send for Rx {}

impl Rx {
    fn segment(&self) -> *mut Segment {
        // SAFETY: only the consumer reaches this.
        self.shared.body.reader.with(|reader| unsafe { (*reader).segment })
    }

    fn position(&self) -> usize {
        position(self.segment(), self.at)
    }

    /// The header of the next message; 0 if there is none.
    #[inline(always)]
    fn next(&mut self) -> usize {
        if self.at >= self.stop && self.is_over() {
            return EMPTY;
        }
        // SAFETY: where this side stands there is a header.
        let found = unsafe { header(self.at) }.load(Acquire);
        #[cfg(loom)]
        assert_ne!(found, UNWRITTEN, "a header was read before it was written");
        if found as isize > 0 { found } else { self.follow(found) }
    }

    /// Called at `stop`: true if nothing behind it may be popped.
    #[inline(always)]
    fn is_over(&mut self) -> bool {
        let (over, stop) = self.shared.stopped(self.at);
        self.stop = stop;
        over
    }

    /// Called where no message is: goes on to the next segment, or says so.
    #[inline(always)]
    fn follow(&mut self, found: usize) -> usize {
        let (found, at, stop) = self.shared.follow(found, self.at);
        self.at = at;
        self.stop = stop;
        found
    }

    /// Steps over the message with this header, and lends its bytes.
    #[inline(always)]
    fn take(&mut self, found: usize) -> &[u8] {
        let message = self.at;
        self.at = message.wrapping_add(words(found - 1));
        // SAFETY: the header was found there, and the segment stays until this side looks for the next message.
        unsafe { self.lend(message, found - 1) }
    }

    /// # Safety
    /// A message of this length was published there, in the segment this side is in.
    #[inline(always)]
    unsafe fn lend(&mut self, message: *mut Word, len: usize) -> &[u8] {
        #[cfg(not(loom))]
        crate::sync::reads(message.wrapping_add(1).cast::<u8>(), len);
        #[cfg(not(loom))]
        // SAFETY: its bytes lie behind its header, initialised, and nobody writes there before the segment is given back.
        unsafe {
            core::slice::from_raw_parts(message.add(1).cast::<u8>(), len)
        }
        #[cfg(loom)]
        {
            let mut bytes = alloc::vec::Vec::new();
            for i in 1..words(len) {
                // SAFETY: the caller's.
                unsafe { (*message.add(i)).bytes.with(|word| bytes.extend_from_slice(&*word)) };
            }
            bytes.truncate(len);
            self.lent.push(bytes.into());
            self.lent.last().expect("just pushed")
        }
    }

    /// The position behind the last message that may be popped.
    fn end(&self) -> usize {
        // SAFETY: only the consumer reaches this.
        let sealed = self.shared.body.reader.with(|reader| unsafe { (*reader).sealed });
        sealed.unwrap_or_else(|| self.shared.body.published_end(self.segment(), self.at))
    }

    fn seal(&mut self) -> usize {
        let end = self.shared.body.published_end(self.segment(), self.at);
        // SAFETY: only the consumer reaches this.
        self.stop = self.shared.body.reader.with_mut(|reader| unsafe {
            (*reader).sealed = Some(end);
            self.shared.body.stop(&*reader)
        });
        end
    }
}

/// The receiving end. `Send`, not `Sync`, not `Clone`: one thread at a time pops.
///
/// What `try_pop` and the like return is lent by the queue: it stays where it is until the consumer is used again.
pub struct Consumer<W = Adaptive, S: Recorder = NoStats> {
    /// As the producer's.
    raw: ManuallyDrop<Rx>,
    wait: W,
    stats: S,
    one_thread: PhantomData<Cell<()>>,
}

impl<W, S: Recorder> Consumer<W, S> {
    /// Pops the oldest message. Never waits.
    ///
    /// # Errors
    /// `Empty` only if every message whose push returned before this call has been popped. `Closed` only once the queue is
    /// closed and everything it had accepted has been popped.
    #[inline]
    pub fn try_pop(&mut self) -> Result<&[u8], TryPopError> {
        let mut found = self.next();
        if found == EMPTY {
            found = self.look_again()?;
        }
        Ok(self.take(found))
    }

    #[inline(always)]
    fn next(&mut self) -> usize {
        #[cfg(loom)]
        self.raw.lent.clear();
        self.raw.next()
    }

    #[inline(always)]
    fn take(&mut self, found: usize) -> &[u8] {
        self.stats.popped(1);
        self.raw.take(found)
    }

    /// Tells Empty from Closed. A producer that closed may have pushed between our look and its flag: so another look.
    #[inline(always)]
    fn look_again(&mut self) -> Result<usize, TryPopError> {
        let closed = self.is_closed();
        if closed {
            let found = self.next();
            if found != EMPTY {
                return Ok(found);
            }
        }
        self.stats.empty();
        Err(if closed { TryPopError::Closed } else { TryPopError::Empty })
    }

    /// The oldest message, if there is one. Never waits. It stays in the queue unless it is
    /// [released](Peeked::release).
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop).
    pub fn try_peek(&mut self) -> Result<Peeked<'_, W, S>, TryPopError> {
        let mut found = self.next();
        if found == EMPTY {
            found = self.look_again()?;
        }
        Ok(self.peeked(found))
    }

    /// The message whose header was found.
    fn peeked(&mut self, found: usize) -> Peeked<'_, W, S> {
        let message = self.raw.at;
        // SAFETY: the header was found there. The slice is used only as long as the guard borrows the consumer.
        let bytes = unsafe { core::ptr::from_ref(self.raw.lend(message, found - 1)) };
        Peeked { consumer: self, bytes, found }
    }

    /// Pops messages one after the other, at most `max` of them and only those that lie in one segment, and lends them
    /// all for as long as the iterator's borrow lasts. Never waits. It yields at least one if `max` is not 0, and most
    /// of the time all there are.
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop), if there is none.
    ///
    /// ```
    /// let (mut producer, mut consumer) = corelane::spsc::stream::channel();
    /// assert_eq!(producer.try_push_batch(&["a", "few", "words"]), Ok(3));
    /// let words: Vec<&[u8]> = consumer.try_pop_batch(10).unwrap().collect();
    /// assert_eq!(words, [&b"a"[..], b"few", b"words"]);
    /// ```
    pub fn try_pop_batch(&mut self, max: usize) -> Result<Messages<'_, W, S>, TryPopError> {
        // Leaves the segment now, if it is to be left, and not while messages of it are lent.
        if max > 0 && self.next() == EMPTY {
            self.look_again()?;
        }
        Ok(Messages { left: max, popped: 0, consumer: self })
    }

    /// Bytes that the messages inside take up, each its length rounded up to 8 plus 8: a lower bound. The producer can only
    /// raise it. Looks at each message of one segment.
    pub fn bytes(&self) -> usize {
        self.raw.end().wrapping_sub(self.raw.position()) * ALIGN
    }

    /// True if there is nothing to pop. If it is false it stays so until this consumer pops.
    pub fn is_empty(&self) -> bool {
        self.raw.end() == self.raw.position()
    }

    /// The [limit](Tuning::limit), rounded down to whole words.
    pub fn limit(&self) -> Option<usize> {
        let limit = self.raw.shared.body.limit;
        (limit != UNLIMITED).then(|| limit * ALIGN)
    }

    /// Closes the queue: every message accepted before can still be popped, none is accepted after. A producer that waits is
    /// woken. Looks at each message of one segment.
    ///
    /// What becomes of a message that is pushed beside it: see [closing](crate::spsc#closing).
    pub fn close(&mut self) {
        if self.raw.shared.control.begin_close() {
            let end = self.raw.seal();
            if !self.raw.shared.control.seal(end) {
                let end = self.raw.seal();
                debug_assert!(
                    self.raw.shared.control.producer_sealed_at(end),
                    "nothing is published behind the producer's seal"
                );
            }
        }
    }

    /// True once either end has closed or the producer is gone. Then it stays so. There may still be messages to pop.
    pub fn is_closed(&self) -> bool {
        self.raw.shared.control.is_closed()
    }
}

impl<W: Strategy, S: Recorder> Consumer<W, S> {
    /// Pops the oldest message, waiting for one by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    #[inline]
    pub fn pop(&mut self) -> Result<&[u8], Closed> {
        let found = self.await_message()?;
        Ok(self.take(found))
    }

    #[inline(always)]
    fn await_message(&mut self) -> Result<usize, Closed> {
        loop {
            let found = self.next();
            if found != EMPTY {
                return Ok(found);
            }
            self.wait_for_message()?;
        }
    }

    /// Pops the oldest message, waiting at most this long for one. Never gives up early; how late depends on the strategy
    /// and the scheduler.
    ///
    /// # Errors
    /// `Timeout`, or `Closed` once the queue is closed and drained.
    #[cfg(feature = "std")]
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<&[u8], PopTimeoutError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let found = self.next();
            if found != EMPTY {
                return Ok(self.take(found));
            }
            match self.wait(deadline) {
                Waited::Ready => {}
                Waited::Closed => return Err(PopTimeoutError::Closed),
                Waited::Timeout => return Err(PopTimeoutError::Timeout),
            }
        }
    }

    /// The oldest message; waits for one by the queue's strategy. It stays in the queue unless it is
    /// [released](Peeked::release).
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn peek(&mut self) -> Result<Peeked<'_, W, S>, Closed> {
        let found = self.await_message()?;
        Ok(self.peeked(found))
    }

    /// As [`try_pop_batch`](Self::try_pop_batch), but waits for the first message by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_batch(&mut self, max: usize) -> Result<Messages<'_, W, S>, Closed> {
        if max > 0 {
            self.await_message()?;
        }
        Ok(Messages { left: max, popped: 0, consumer: self })
    }

    /// Waits until there is a message to pop.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn wait_for_message(&mut self) -> Result<(), Closed> {
        #[cfg(feature = "std")]
        let waited = self.wait(None);
        #[cfg(not(feature = "std"))]
        let waited = self.wait();
        match waited {
            Waited::Closed => Err(Closed(())),
            _ => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&mut self, #[cfg(feature = "std")] deadline: Option<Instant>) -> Waited {
        let wait = self.wait.clone();
        wait_until(
            self,
            1,
            &wait,
            #[cfg(feature = "std")]
            deadline,
        )
    }

    /// This end as a source of bytes: the messages one behind the other, without bounds between them. It waits for messages,
    /// and ends when the queue is closed and drained.
    #[cfg(feature = "std")]
    pub fn reader(&mut self) -> Reader<'_, W, S> {
        Reader { consumer: self, read: 0 }
    }
}

impl<W> Consumer<W, Counting> {
    /// What this end has counted: pops, empty, waits, batches.
    pub fn stats(&self) -> Stats {
        self.stats.stats()
    }
}

impl<W, S: Recorder> Drop for Consumer<W, S> {
    #[inline(always)]
    fn drop(&mut self) {
        let at = self.raw.at;
        #[cfg(loom)]
        drop(core::mem::take(&mut self.raw.lent));
        // SAFETY: the last use of this half, so its share of the queue is taken out once.
        retire_consumer(unsafe { ptr::read(&self.raw.shared) }, at);
    }
}

/// By value, as all that is cold (step 7).
#[cold]
#[inline(never)]
fn retire_consumer(shared: Arc<Shared<Body>>, at: *mut Word) {
    // SAFETY: the consumer, which stands in its segment, is the one that reaches this.
    let segment = shared.body.reader.with(|reader| unsafe { (*reader).segment });
    shared.control.close_by_consumer(position(segment, at));
}

impl<W, S: Recorder> fmt::Debug for Consumer<W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("limit", &self.limit())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// The oldest message of the queue; see [`Consumer::peek`].
pub struct Peeked<'a, W = Adaptive, S: Recorder = NoStats> {
    consumer: &'a mut Consumer<W, S>,
    bytes: *const [u8],
    found: usize,
}

// SAFETY: the pointer is a shared reference into a segment of the queue, for as long as the consumer is borrowed; the
// consumer may move to another thread, and so may this.
unsafe impl<W: Send, S: Recorder> Send for Peeked<'_, W, S> {}

impl<W, S: Recorder> Peeked<'_, W, S> {
    /// Pops the message.
    pub fn release(self) {
        self.consumer.take(self.found);
    }
}

impl<W, S: Recorder> Deref for Peeked<'_, W, S> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: lent by the consumer, which nobody uses while this guard borrows it.
        unsafe { &*self.bytes }
    }
}

impl<W, S: Recorder> fmt::Debug for Peeked<'_, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peeked").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Messages popped one after the other; see [`Consumer::pop_batch`]. What is not taken from it stays in the queue.
pub struct Messages<'a, W = Adaptive, S: Recorder = NoStats> {
    consumer: &'a mut Consumer<W, S>,
    left: usize,
    popped: usize,
}

impl<'a, W, S: Recorder> Iterator for Messages<'a, W, S> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let raw = &mut self.consumer.raw;
        if self.left == 0 || (raw.at >= raw.stop && raw.is_over()) {
            return None;
        }
        // SAFETY: where this side stands there is a header.
        let found = unsafe { header(raw.at) }.load(Acquire);
        if found as isize <= 0 {
            // The end of what is there or of the segment, which stays while its messages are lent.
            self.left = 0;
            return None;
        }
        self.left -= 1;
        self.popped += 1;
        let bytes = core::ptr::from_ref(raw.take(found));
        // SAFETY: the bytes stay until the consumer looks for a message beyond this segment, which it does not while the
        // iterator borrows it for 'a.
        Some(unsafe { &*bytes })
    }
}

impl<W, S: Recorder> Drop for Messages<'_, W, S> {
    fn drop(&mut self) {
        if self.popped > 0 {
            self.consumer.stats.popped(self.popped);
        }
    }
}

impl<W, S: Recorder> fmt::Debug for Messages<'_, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("left", &self.left).finish_non_exhaustive()
    }
}

/// A sink of bytes; see [`Producer::writer`]. What cannot be pushed is an error of the kind `BrokenPipe`, `OutOfMemory`, or
/// `FileTooLarge` beyond the limit.
#[cfg(feature = "std")]
pub struct Writer<'a, W = Adaptive, S: Recorder = NoStats> {
    producer: &'a mut Producer<W, S>,
}

#[cfg(feature = "std")]
impl<W: Strategy, S: Recorder> std::io::Write for Writer<'_, W, S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        use std::io::{Error, ErrorKind};
        if bytes.is_empty() {
            return Ok(0);
        }
        self.producer.push(bytes).map_err(|error| {
            let kind = match error {
                PushError::Closed => ErrorKind::BrokenPipe,
                PushError::NoMemory => ErrorKind::OutOfMemory,
                PushError::TooLarge => ErrorKind::FileTooLarge,
                PushError::Full | PushError::Timeout => ErrorKind::WouldBlock,
            };
            Error::new(kind, error)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "std")]
impl<W, S: Recorder> fmt::Debug for Writer<'_, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// A source of bytes; see [`Consumer::reader`]. Of a message that was read in part, dropping it pops the rest.
#[cfg(feature = "std")]
pub struct Reader<'a, W = Adaptive, S: Recorder = NoStats> {
    consumer: &'a mut Consumer<W, S>,
    /// Bytes read of the oldest message.
    read: usize,
}

#[cfg(feature = "std")]
impl<W: Strategy, S: Recorder> std::io::BufRead for Reader<'_, W, S> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        loop {
            let Ok(found) = self.consumer.await_message() else { return Ok(&[]) };
            if self.read < found - 1 {
                let message = self.consumer.raw.at;
                // SAFETY: the header was found there.
                return Ok(unsafe { &self.consumer.raw.lend(message, found - 1)[self.read..] });
            }
            self.consumer.take(found);
            self.read = 0;
        }
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
    }
}

#[cfg(feature = "std")]
impl<W: Strategy, S: Recorder> std::io::Read for Reader<'_, W, S> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        use std::io::BufRead;
        if bytes.is_empty() {
            return Ok(0);
        }
        let there = self.fill_buf()?;
        let count = there.len().min(bytes.len());
        bytes[..count].copy_from_slice(&there[..count]);
        self.consume(count);
        Ok(count)
    }
}

#[cfg(feature = "std")]
impl<W, S: Recorder> Drop for Reader<'_, W, S> {
    fn drop(&mut self) {
        if self.read > 0 {
            let found = self.consumer.next();
            if found != EMPTY {
                self.consumer.take(found);
            }
        }
    }
}

#[cfg(feature = "std")]
impl<W, S: Recorder> fmt::Debug for Reader<'_, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl<W, S: Recorder> Look for Producer<W, S> {
    /// `need` is in words.
    fn is_ready(&mut self, need: usize) -> bool {
        // What is refused for another reason is not waited for.
        self.raw.has_room(need) || self.raw.make_room(need) != Err(PushError::Full)
    }

    fn is_over(&self) -> bool {
        self.is_closed()
    }

    fn waits(&mut self) {
        self.stats.waited();
    }
}

impl<W, S: Recorder> Look for Consumer<W, S> {
    fn is_ready(&mut self, _: usize) -> bool {
        self.next() != EMPTY
    }

    fn is_over(&self) -> bool {
        self.is_closed()
    }

    fn waits(&mut self) {
        self.stats.waited();
    }
}

#[cfg(feature = "std")]
impl<W, S: Recorder> crate::wait::sealed::Sealed for Producer<W, S> {}

/// Ready for a message of no bytes, which needs one word.
#[cfg(feature = "std")]
impl<W, S: Recorder> Waitable for Producer<W, S> {
    fn ready(&mut self, need: usize) -> bool {
        super::handle::look(self, need).is_some()
    }

    fn arm(&self, need: usize) {
        let end = &self.raw.control().producer;
        end.wake_at(self.raw.position().wrapping_add(need).wrapping_sub(self.raw.shared.body.limit));
        end.arm();
    }

    fn disarm(&self) {
        self.raw.control().producer.disarm();
    }

    fn parker(&self) -> &Parker {
        self.raw.control().producer.parker()
    }
}

#[cfg(feature = "std")]
impl<W, S: Recorder> crate::wait::sealed::Sealed for Consumer<W, S> {}

#[cfg(feature = "std")]
impl<W, S: Recorder> Waitable for Consumer<W, S> {
    fn ready(&mut self, room: usize) -> bool {
        super::handle::look(self, room).is_some()
    }

    fn arm(&self, _: usize) {
        self.raw.shared.control.consumer.arm();
    }

    fn disarm(&self) {
        self.raw.shared.control.consumer.disarm();
    }

    fn parker(&self) -> &Parker {
        self.raw.shared.control.consumer.parker()
    }
}
