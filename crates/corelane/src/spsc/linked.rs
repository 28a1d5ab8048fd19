//! The lane without an end: its blocks in segments that are linked, added and used again as the queue grows and shrinks.
//!
//! Source: the queue for pointers (`ff_queue2`) of the case study on FastFlow's queue, generalised to any item. The case
//! study takes FastFlow's unbounded queue ([`fastflow`](super::fastflow)) apart and rebuilds it: `next` inside the segment,
//! no list of segments beside them, no segment cleared after allocation, the oldest segment used again, one branch an
//! operation. What lies in a segment is the [`lane`](super::lane)'s.
//!
//! ```
//! use corelane::spsc::linked;
//!
//! let (mut producer, mut consumer) = linked::channel();
//! for item in 0..1_000_000_u64 {
//!     // Never waits, as nothing is ever full: the item comes back only if the consumer is gone, or no memory is left.
//!     producer.try_push(item).unwrap();
//! }
//! assert_eq!(consumer.len(), 1_000_000);
//! assert_eq!(consumer.pop(), Ok(0));
//! ```
//!
//! # How it works
//!
//! 1. A segment is a head and a run of the lane's blocks: one cache line each for small items, a header with the block's number
//!    and the count of its published items in front. Inside of a segment both sides do what they do in a lane, but
//!    that nobody asks for free slots: there are as many as there is memory.
//! 2. The header of a block that was used before holds an older number and needs no clearing. In a segment fresh from the
//!    allocator the producer writes the headers itself, always so many blocks ahead of its own as the consumer may look ahead
//!    (the case study's `buffer[write_pos+1] = 0`, where a flag is looked at one cell ahead). So a new segment costs
//!    no burst of memory accesses.
//! 3. At the end of a segment the producer takes the oldest one that the consumer has left, or else a new one, shows it in
//!    `tail`, and links it behind its own.
//! 4. At the end of a segment the consumer follows the link. The segment it leaves goes to the producer through a small ring
//!    of slots; where that is full the consumer frees it. So after a burst the queue
//!    holds what is inside and at most [`Tuning::cached`] segments, without a further push.
//! 5. `consumed` is published where a segment is left and before the consumer says Empty. Only the producer's
//!    [`len`](Producer::len) reads it.
//!
//! # Memory that is refused
//!
//! `try_push` says [`Full`](crate::error::PushError::Full), with the item, if no segment is free and the allocator refuses
//! one. The queue starts with two segments and never has fewer, so when the consumer leaves the next one there is room again:
//! a `push` that waits comes to its end.
//!
//! # Synchronization
//!
//! - Headers and `pushed` as in the lane.
//! - `next`, store-release (producer) → load-acquire (consumer): a segment's head and first headers are written before the
//!   consumer enters it.
//! - `tail`, store-release (producer) → load-acquire (consumer): the same for a consumer that counts what is inside. It is
//!   stored before the link that leads there, so a consumer never finds a segment in it that it has left itself.
//! - Headers that are written ahead (step 2) come before the publication of every item of the producer's block, and
//!   a consumer looks ahead only from a block of which it has acquired an item.
//! - A slot of the ring, store-release (consumer) → load-acquire (producer): every item of a segment is read before the segment
//!   is written again.
//! - Parking and closing: see [`crate::wait`].
//!
//! # Progress
//!
//! Wait-free but for the allocator, which the producer asks once a segment at most, and only if none is free, and which the
//! consumer gives one to if enough are kept.
//!
//! # When to use it, and when not
//!
//! Where the producer must not wait and cannot drop: bursts, recursion, cycles of queues. Not where a bound is what keeps the
//! program healthy: a producer that is faster for long fills the memory, and what is inside is then read from there and
//! not from a cache. Messages of bytes are better off in a
//! [`stream`](super::stream).
//!
//! # Memory
//!
//! Segments of about 64 KiB, or of [`Tuning::segment`] items: two at first, and then what is inside plus at most a segment at
//! each end and the cached ones.

use super::buffer::drop_all;
use super::control::Control;
use super::design::{Design, RawConsumer, RawProducer, Request, Shared, sealed};
use super::handle::Options;
use super::lane::{MOST_FAILURES, Place, SLIP_LOOKS, TAKE};
use super::segments::{Contents, Pool, Segment, Turn};
use super::stats::{NoStats, Recorder};
use crate::error::ChannelError;
use crate::prefetch;
use crate::sync::{Acquire, Arc, AtomicPtr, AtomicUsize, Padded, Relaxed, Release, Slot, spin_loop};
use crate::wait::{DefaultStrategy, Strategy};
use core::fmt;
use core::marker::PhantomData;

/// The unbounded lane as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
///
/// The generic [`channel_with`](super::channel_with) asks every design for a capacity; this one takes any and is not bounded
/// by it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linked;

/// The sending end.
pub type Producer<T, W = DefaultStrategy, S = NoStats> = super::Producer<T, Linked, W, S>;
/// The receiving end.
pub type Consumer<T, W = DefaultStrategy, S = NoStats> = super::Consumer<T, Linked, W, S>;

/// What `capacity` says of a queue that has none: more items than an address space has bytes for.
pub const UNBOUNDED: usize = isize::MAX as usize / 2;

/// How memory is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Items in a segment, rounded up to whole cache lines: at least 1. `None` takes as many as 64 KiB hold.
    pub segment: Option<usize>,
    /// How many segments that nobody uses are kept, at least 1. `None` keeps 4.
    pub cached: Option<usize>,
}

const SEGMENT_BYTES: usize = 64 * 1024;
const CACHED: usize = if cfg!(loom) { 2 } else { 4 };
/// Under loom a segment is so short that few items reach the next one.
const FEWEST_BLOCKS: usize = 2;

/// How far ahead the consumer fetches.
const FETCH_AHEAD_BYTES: usize = 8 * LINE;
/// Finds of many blocks in a row after which the consumer asks for whole blocks, and finds of less after which it asks for
/// single items again.
const FINDS_TO_STREAM: u32 = if cfg!(loom) { 1 } else { 4 };
const FINDS_TO_STOP: u32 = if cfg!(loom) { 1 } else { 32 };
/// Bits of a header that count items.
const COUNT_BITS: u32 = 8;
const LINE: usize = 64;

/// The layout of blocks for items of type `T`.
struct Block<T>(PhantomData<T>);

impl<T> Block<T> {
    const HEADER: usize = size_of::<AtomicUsize>();
    const ITEM: usize = size_of::<Slot<T>>();
    /// Offset of the first item.
    const FIRST: usize = Self::HEADER.next_multiple_of(align_of::<Slot<T>>());
    /// Items in a block.
    const ITEMS: usize = {
        let in_a_line = match LINE.saturating_sub(Self::FIRST).checked_div(Self::ITEM) {
            // Items of size 0 need no room: as many as items of one byte would.
            None => LINE - size_of::<usize>(),
            Some(n) => n,
        };
        // An item that fills a line to three quarters is best alone in it. Smaller and larger ones would waste up to half
        // of it, where seven behind one header waste an eighth.
        let alone = in_a_line == 1 && Self::ITEM >= 40;
        if cfg!(loom) {
            2
        } else if in_a_line >= 2 || alone {
            in_a_line
        } else {
            7
        }
    };
    const ALIGN: usize = if align_of::<Slot<T>>() > LINE { align_of::<Slot<T>>() } else { LINE };
    const STRIDE: usize = (Self::FIRST + Self::ITEMS * Self::ITEM).next_multiple_of(Self::ALIGN);
    const FETCH_AHEAD: usize = FETCH_AHEAD_BYTES.div_ceil(Self::STRIDE);

    /// The header of block number `at` before anything is in it.
    #[inline(always)]
    fn tag(at: usize) -> usize {
        at << COUNT_BITS
    }

    /// The header of the block that starts here.
    ///
    /// # Safety
    /// `block` is the start of a block of a living ring.
    #[inline(always)]
    unsafe fn header<'a>(block: *mut u8) -> &'a AtomicUsize {
        // SAFETY: every block starts with an initialised header.
        unsafe { &*block.cast() }
    }

    /// Item `i` of the block that starts here. Valid for the items behind it, too.
    ///
    /// # Safety
    /// As for `header`, and `i < ITEMS`.
    #[inline(always)]
    unsafe fn item(block: *mut u8, i: usize) -> *const Slot<T> {
        debug_assert!(i < Self::ITEMS);
        // SAFETY: the slot lies inside the block and is aligned, because the block and FIRST are.
        unsafe { block.add(Self::FIRST).cast::<Slot<T>>().add(i) }
    }
}

/// Position of an item: a count of items that wraps around.
#[inline(always)]
fn position<T>(at: usize, item: usize) -> usize {
    at.wrapping_mul(Block::<T>::ITEMS).wrapping_add(item)
}

/// Makes a queue with the defaults.
///
/// # Panics
/// Where [`try_channel`] returns an error.
#[track_caller]
pub fn channel<T: Send>() -> (Producer<T>, Consumer<T>) {
    try_channel().unwrap_or_else(|error| panic!("{error}"))
}

/// Makes a queue with the defaults.
///
/// # Errors
/// No memory.
pub fn try_channel<T: Send>() -> Result<(Producer<T>, Consumer<T>), ChannelError> {
    channel_with(Options::default())
}

/// Makes a queue.
///
/// # Errors
/// Segments of no item, none to be cached, or no memory.
#[expect(clippy::type_complexity, reason = "a pair of handles is what the reader looks for")]
pub fn channel_with<T: Send, W: Strategy, S: Recorder>(
    options: Options<Tuning, W, S>,
) -> Result<(Producer<T, W, S>, Consumer<T, W, S>), ChannelError> {
    super::channel_with(UNBOUNDED, options)
}

impl<T> Contents for Block<T> {
    const ALIGN: usize = Self::ALIGN;

    #[cfg(loom)]
    unsafe fn make(start: *mut u8, bytes: usize) {
        for block in (0..bytes / Self::STRIDE).map(|i| start.wrapping_add(i * Self::STRIDE)) {
            // SAFETY: inside the segment, which is ours.
            unsafe {
                block.cast::<AtomicUsize>().write(AtomicUsize::new(UNWRITTEN));
                for i in 0..Self::ITEMS {
                    let slot = Self::item(block, i).cast_mut();
                    slot.write(crate::sync::UnsafeCell::new(core::mem::MaybeUninit::uninit()));
                }
            }
        }
    }

    #[cfg(loom)]
    unsafe fn unmake(start: *mut u8, bytes: usize) {
        for block in (0..bytes / Self::STRIDE).map(|i| start.wrapping_add(i * Self::STRIDE)) {
            // SAFETY: made by `make`.
            unsafe {
                core::ptr::drop_in_place(block.cast::<AtomicUsize>());
                for i in 0..Self::ITEMS {
                    core::ptr::drop_in_place(Self::item(block, i).cast_mut());
                }
            }
        }
    }
}

/// What a model finds in a header that nobody has written: reading one is the failure that step 2 is about.
#[cfg(loom)]
const UNWRITTEN: usize = usize::MAX;

struct Chain<T> {
    pool: Pool<Block<T>>,
    /// Blocks in a segment.
    blocks: usize,
    /// Position behind the last item that the consumer has told of. Written by the consumer.
    consumed: Padded<AtomicUsize>,
    /// Position behind the last item that is published beside its block's header. Written by the producer.
    pushed: Padded<AtomicUsize>,
    /// The producer's segment. Written by the producer where it changes.
    tail: Padded<AtomicPtr<Segment>>,
    /// The consumer's segment and place, and the producer's place, when their handles were dropped.
    head: AtomicPtr<Segment>,
    popped_to: Place,
    pushed_to: Place,
    items: PhantomData<T>,
}

// SAFETY: items move from the producer's thread to the consumer's, hence `T: Send`; no reference to an item is shared.
unsafe impl<T: Send> Send for Chain<T> {}
// SAFETY: as above; the protocol in the module's documentation orders every access to a slot.
unsafe impl<T: Send> Sync for Chain<T> {}

impl<T> Chain<T> {
    /// The items published in block number `at`, whose memory starts here.
    ///
    /// # Safety
    /// A block of a living segment, with a header.
    #[inline(always)]
    unsafe fn published(block: *mut u8, at: usize) -> usize {
        // SAFETY: the caller's.
        let header = unsafe { Block::<T>::header(block) }.load(Acquire);
        #[cfg(loom)]
        assert_ne!(header, UNWRITTEN, "a header was read before it was written");
        let ahead = header.wrapping_sub(Block::<T>::tag(at));
        if ahead <= Block::<T>::ITEMS { ahead } else { 0 }
    }

    /// Writes the headers of empty blocks, from number `at` on.
    ///
    /// # Safety
    /// So many blocks lie there, and no other thread looks at them.
    unsafe fn write_headers(first: *mut u8, at: usize, count: usize) {
        for i in 0..count {
            // SAFETY: the caller's. An atomic store: outside of loom it makes the atomic.
            unsafe { Block::<T>::header(first.add(i * Block::<T>::STRIDE)) }
                .store(Block::<T>::tag(at.wrapping_add(i)), Relaxed);
        }
    }

    /// Where the last block of a segment starts.
    #[inline(always)]
    fn last(&self, first: *mut u8) -> *mut u8 {
        first.wrapping_add((self.blocks - 1) * Block::<T>::STRIDE)
    }
}

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        let per = Block::<T>::ITEMS;
        let head = self.head.load(Relaxed);
        let (mut at, mut item) = self.popped_to.load();
        let (last, pushed) = self.pushed_to.load();
        let count = position::<T>(last.wrapping_sub(at), pushed).wrapping_sub(item);
        /// Frees the memory, also when an item's drop panics.
        struct Free<'a, T>(&'a Chain<T>, *mut Segment);
        impl<T> Drop for Free<'_, T> {
            fn drop(&mut self) {
                // SAFETY: both handles are gone. The consumer's segment and those behind it are alive and in no slot.
                unsafe { self.0.pool.free_chain(self.1) };
                self.0.pool.free_kept();
            }
        }
        let _free = Free(self, head);
        let mut segment = head;
        drop_all(count, |_| {
            if item == per {
                item = 0;
                at = at.wrapping_add(1);
            }
            // SAFETY: both handles are gone, so what lies between the two places is published, not popped, and ours, and
            // every segment up to the last item's is linked.
            unsafe {
                let mut index = at.wrapping_sub((*segment).base.load(Relaxed));
                if index == self.blocks {
                    segment = (*segment).next.load(Relaxed);
                    index = 0;
                }
                let block = Pool::<Block<T>>::start(segment).add(index * Block::<T>::STRIDE);
                let slot = Block::<T>::item(block, item);
                item += 1;
                (*slot).with_mut(|slot| (*slot).assume_init_drop());
            }
        });
    }
}

impl sealed::Sealed for Linked {}

impl<T: Send> Design<T> for Linked {
    type Tuning = Tuning;
    type Producer = LinkedProducer<T>;
    type Consumer = LinkedConsumer<T>;

    fn create(request: Request<'_, Tuning>) -> Result<(LinkedProducer<T>, LinkedConsumer<T>), ChannelError> {
        let Request { start, control, tuning, .. } = request;
        if tuning.segment == Some(0) || tuning.cached == Some(0) {
            return Err(ChannelError::BadSegment);
        }
        let blocks = match tuning.segment {
            Some(items) => items.div_ceil(Block::<T>::ITEMS),
            None if cfg!(loom) => FEWEST_BLOCKS,
            None => (SEGMENT_BYTES / Block::<T>::STRIDE).max(FEWEST_BLOCKS),
        };
        let bytes = blocks.checked_mul(Block::<T>::STRIDE).ok_or(ChannelError::TooLarge)?;
        let pool = Pool::new(bytes, tuning.cached.unwrap_or(CACHED))?;
        let segment = pool.allocate_touched()?;
        let chain = Chain {
            pool,
            blocks,
            consumed: Padded(AtomicUsize::new(position::<T>(start, 0))),
            pushed: Padded(AtomicUsize::new(position::<T>(start, 0))),
            tail: Padded(AtomicPtr::new(segment)),
            head: AtomicPtr::new(segment),
            popped_to: Place::new(start),
            pushed_to: Place::new(start),
            items: PhantomData,
        };
        // From here on the chain frees the first segment.
        let spare = chain.pool.allocate_touched()?;
        let consumer_turn = chain.pool.keep_first(spare);
        let line = Pool::<Block<T>>::start(segment);
        // SAFETY: the segments have so many blocks, and nobody else knows them. The spare one will be the second.
        unsafe {
            (*segment).base.store(start, Relaxed);
            Chain::<T>::write_headers(line, start, blocks);
            Chain::<T>::write_headers(Pool::<Block<T>>::start(spare), start.wrapping_add(blocks), blocks);
        }
        let last = chain.last(line);
        let shared = Shared::new(control, chain);
        let producer = LinkedProducer {
            line,
            at: start,
            tag: Block::<T>::tag(start),
            filled: 0,
            run_end: Block::<T>::ITEMS,
            header_from: 1,
            first: position::<T>(start, 0),
            last,
            unwritten: 0,
            segment,
            turn: 0,
            halted: false,
            shared: shared.clone(),
        };
        let consumer = LinkedConsumer {
            line,
            popped: 0,
            ready: 0,
            at: start,
            full_until: start,
            last,
            released: position::<T>(start, 0),
            segment,
            turn: consumer_turn,
            failures: 0,
            abstain: 0,
            streaming: false,
            contrary: 0,
            sealed: None,
            shared,
        };
        Ok((producer, consumer))
    }

    fn release_lag(_: usize, _: &Tuning) -> usize {
        0
    }
}

/// The producer's half.
#[doc(hidden)]
pub struct LinkedProducer<T> {
    /// The current block, its number and its header when empty.
    line: *mut u8,
    at: usize,
    tag: usize,
    /// Items published in the current block, and how many it may hold: all, or none more.
    filled: usize,
    run_end: usize,
    /// The count from which on the current block's header is kept up to date: 1, or the whole block.
    header_from: usize,
    /// Position of the current block's first item.
    first: usize,
    /// The last block of the segment.
    last: *mut u8,
    /// Blocks at the segment's end whose headers are not written yet.
    unwritten: usize,
    segment: *mut Segment,
    turn: Turn,
    halted: bool,
    shared: Arc<Shared<Chain<T>>>,
}

// SAFETY: the pointers point into the chain that `shared` keeps alive; the rest is Send.
unsafe impl<T: Send> Send for LinkedProducer<T> {}

impl<T> LinkedProducer<T> {
    #[inline(always)]
    fn chain(&self) -> &Chain<T> {
        &self.shared.body
    }

    /// Goes on to the next block.
    #[inline(always)]
    fn next_block(&mut self) {
        if self.line == self.last {
            return self.next_segment();
        }
        self.enter(self.line.wrapping_add(Block::<T>::STRIDE));
        if self.unwritten != 0 {
            self.write_ahead();
        }
    }

    #[inline(always)]
    fn enter(&mut self, line: *mut u8) {
        self.line = line;
        self.at = self.at.wrapping_add(1);
        self.tag = Block::<T>::tag(self.at);
        self.first = self.first.wrapping_add(Block::<T>::ITEMS);
        self.filled = 0;
        self.header_from = if self.shared.control.consumer.is_streaming() { Block::<T>::ITEMS } else { 1 };
    }

    /// Keeps the headers written of the `TAKE` blocks from this one on (step 2).
    #[inline(always)]
    fn write_ahead(&mut self) {
        let ahead = self.line.wrapping_add((TAKE - 1) * Block::<T>::STRIDE);
        self.unwritten -= 1;
        // SAFETY: so long as blocks are unwritten, the first of them is the one that far ahead. No other thread has looked
        // at it, as nothing of this block is published.
        unsafe { Chain::<T>::write_headers(ahead, self.at.wrapping_add(TAKE - 1), 1) };
    }

    /// Goes on to the oldest segment that is free, or to a new one; stays where it is if there is none.
    #[cold]
    #[inline(never)]
    fn next_segment(&mut self) {
        if self.halted {
            return;
        }
        let chain = &self.shared.body;
        let mut next = chain.pool.take(&mut self.turn);
        // Where a header has fewer bits for the block's number, an old one might come round.
        let mut fresh = usize::BITS < 64;
        if next.is_null() {
            next = chain.pool.allocate(chain.pool.bytes);
            fresh = true;
        }
        if next.is_null() {
            return;
        }
        let base = self.at.wrapping_add(1);
        let start = Pool::<Block<T>>::start(next);
        let written = TAKE.min(chain.blocks);
        // SAFETY: `next` is alive and ours alone until it is linked; `segment` is alive while this side is in it.
        unsafe {
            (*next).base.store(base, Relaxed);
            (*next).next.store(core::ptr::null_mut(), Relaxed);
            if fresh {
                Chain::<T>::write_headers(start, base, written);
            }
            // Once a segment, so that it never falls half the number range behind and looks ahead of the consumer. Release,
            // because a consumer whose look at the header came too early takes the last items by this.
            chain.pushed.store(self.first.wrapping_add(self.filled), Release);
            chain.tail.store(next, Release);
            (*self.segment).next.store(next, Release);
        }
        self.unwritten = if fresh { chain.blocks - written } else { 0 };
        self.last = chain.last(start);
        self.segment = next;
        self.enter(start);
    }
}

// SAFETY: slots are those of a segment that no consumer has entered, or of a block that it has not acquired an item of
// beyond `filled`: it reads an item only after it has acquired a header or `pushed` that counts it, which `publish` stores
// with release. A segment is used again only after it was acquired from the slot where the consumer released it.
unsafe impl<T: Send> RawProducer<T> for LinkedProducer<T> {
    const RUN: usize = Block::<T>::ITEMS;

    #[inline(always)]
    fn writable(&mut self) -> usize {
        if self.filled == self.run_end {
            self.next_block();
        }
        self.run_end - self.filled
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        n
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        // SAFETY: the run lies inside the block.
        unsafe { Block::<T>::item(self.line, self.filled + i) }
    }

    #[inline(always)]
    unsafe fn publish(&mut self, n: usize) {
        self.filled += n;
        if self.filled >= self.header_from {
            // SAFETY: `line` is the current block of a living segment.
            unsafe { Block::<T>::header(self.line) }.store(self.tag.wrapping_add(self.filled), Release);
        } else {
            self.chain().pushed.store(self.first.wrapping_add(self.filled), Release);
        }
    }

    unsafe fn retract(&mut self, n: usize) {
        // The consumer, which has sealed, reads neither the header nor `pushed` any more.
        self.filled -= n;
    }

    fn halt(&mut self) {
        self.halted = true;
        self.run_end = self.filled;
        self.last = self.line;
    }

    fn position(&self) -> usize {
        self.first.wrapping_add(self.filled)
    }

    fn len(&mut self) -> usize {
        self.position().wrapping_sub(self.chain().consumed.load(Acquire))
    }

    fn capacity(&self) -> usize {
        UNBOUNDED
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl<T> Drop for LinkedProducer<T> {
    fn drop(&mut self) {
        self.chain().pushed_to.store((self.at, self.filled));
    }
}

/// The consumer's half.
#[doc(hidden)]
pub struct LinkedConsumer<T> {
    /// The current block and its number.
    line: *mut u8,
    at: usize,
    /// Items popped from the current block.
    popped: usize,
    /// Items of it known to be published.
    ready: usize,
    /// Blocks before this one are full. Not beyond the segment.
    full_until: usize,
    /// The last block of the segment.
    last: *mut u8,
    /// The position published last.
    released: usize,
    segment: *mut Segment,
    turn: Turn,
    /// As in the lane.
    failures: u32,
    abstain: u32,
    streaming: bool,
    contrary: u32,
    /// Block and item behind the last item that may be popped.
    sealed: Option<(usize, usize)>,
    shared: Arc<Shared<Chain<T>>>,
}

// SAFETY: as for the producer's half.
unsafe impl<T: Send> Send for LinkedConsumer<T> {}

impl<T> LinkedConsumer<T> {
    #[inline(always)]
    fn chain(&self) -> &Chain<T> {
        &self.shared.body
    }

    /// Called when the current run is used up: goes on to the next block, or to what was published since in this one.
    #[inline(always)]
    fn refill(&mut self) {
        if self.popped == Block::<T>::ITEMS {
            if self.line == self.last {
                return self.next_segment();
            }
            self.leave_block();
            self.line = self.line.wrapping_add(Block::<T>::STRIDE);
            self.at = self.at.wrapping_add(1);
            self.popped = 0;
            self.ready = 0;
            if self.full_until.wrapping_sub(self.at.wrapping_add(Block::<T>::FETCH_AHEAD)) as isize > 0 {
                prefetch::read(self.line.wrapping_add(Block::<T>::FETCH_AHEAD * Block::<T>::STRIDE));
            }
        }
        if self.popped == 0 && self.full_until.wrapping_sub(self.at) as isize > 0 {
            self.ready = Block::<T>::ITEMS;
        } else {
            self.look();
        }
    }

    /// Stores the header once more, unchanged, to take the line along: step 3 of the lane.
    #[inline(always)]
    fn leave_block(&self) {
        let header = Block::<T>::tag(self.at).wrapping_add(Block::<T>::ITEMS);
        // SAFETY: `line` is the current block of a living segment.
        unsafe { Block::<T>::header(self.line) }.store(header, Relaxed);
    }

    /// Called at the end of a segment: follows the link, if there is one, and gives the segment back.
    #[cold]
    #[inline(never)]
    fn next_segment(&mut self) {
        // SAFETY: the segment is alive while this side is in it.
        let next = unsafe { (*self.segment).next.load(Acquire) };
        if next.is_null() {
            self.publish_position_before_empty();
            return;
        }
        self.leave_block();
        // SAFETY: everything in it was popped, and the producer has left it. The only pointers to it were this side's and
        // `tail`, which leads further since before the link was made.
        unsafe { self.shared.body.pool.give_back(&mut self.turn, self.segment) };
        self.segment = next;
        self.line = Pool::<Block<T>>::start(next);
        self.last = self.chain().last(self.line);
        self.at = self.at.wrapping_add(1);
        self.full_until = self.at;
        self.popped = 0;
        self.ready = 0;
        self.publish_position();
        self.look();
    }

    /// Finds out how many items of the current block are ready, and whether many blocks are.
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        self.full_until = self.at;
        if let Some((block, item)) = self.sealed {
            self.ready = if self.at == block { item } else { Block::<T>::ITEMS };
        } else {
            self.ready = self.published();
            if self.ready != self.popped {
                let many = self.popped == 0 && self.look_ahead();
                if many {
                    self.ready = Block::<T>::ITEMS;
                }
                self.rate(many);
            }
        }
        if self.ready == self.popped {
            self.publish_position_before_empty();
        }
    }

    /// Items published in the current block: what its header says, or what `pushed` says beyond it.
    fn published(&self) -> usize {
        // SAFETY: the current block; its header was written before anything of the block before it was published.
        let counted = unsafe { Chain::<T>::published(self.line, self.at) };
        if counted > self.popped {
            return counted;
        }
        self.pushed_in(self.at).max(self.popped)
    }

    /// Items of a block that `pushed` says are published.
    fn pushed_in(&self, at: usize) -> usize {
        let pushed = self.chain().pushed.load(Acquire).wrapping_sub(position::<T>(at, 0)) as isize;
        Block::<T>::ITEMS.min(pushed.max(0) as usize)
    }

    /// Tries to find the next `TAKE` blocks full, or those that are left of the segment.
    fn look_ahead(&mut self) -> bool {
        let left = (self.last as usize - self.line as usize) / Block::<T>::STRIDE;
        let ahead = left.min(TAKE - 1);
        let block = self.line.wrapping_add(ahead * Block::<T>::STRIDE);
        let number = self.at.wrapping_add(ahead);
        // SAFETY: a block of this segment, fewer than `TAKE` ahead of one that an item was published in.
        let is_full = || unsafe { Chain::<T>::published(block, number) } == Block::<T>::ITEMS;
        let mut full = is_full();
        if !full {
            if self.abstain > 0 {
                self.abstain -= 1;
                return false;
            }
            for _ in 0..SLIP_LOOKS {
                spin_loop();
                full = is_full();
                if full {
                    break;
                }
            }
            self.failures = if full { 0 } else { (self.failures + 1).min(MOST_FAILURES) };
            self.abstain = if full { 0 } else { 1 << self.failures };
        }
        if full {
            self.full_until = number.wrapping_add(1);
        }
        full
    }

    /// Takes note of a find, many blocks or a part of one, and tells the producer when the kind of traffic has changed.
    fn rate(&mut self, many: bool) {
        if many == self.streaming {
            self.contrary = 0;
            return;
        }
        self.contrary += 1;
        if self.contrary == if many { FINDS_TO_STREAM } else { FINDS_TO_STOP } {
            self.contrary = 0;
            self.streaming = many;
            self.shared.control.consumer.set_streaming(many);
        }
    }

    fn publish_position(&mut self) {
        self.released = position::<T>(self.at, self.popped);
        self.chain().consumed.store(self.released, Release);
        self.shared.control.slots_freed(self.released);
    }

    fn publish_position_before_empty(&mut self) {
        if self.released != position::<T>(self.at, self.popped) {
            self.publish_position();
        }
    }

    /// The place behind the last published item; never the end of a block, but the start of the next one.
    fn published_end(&self) -> (usize, usize) {
        // SAFETY: the producer's segment now or a moment ago: this side has not left it, so it is alive.
        let (tail, base) = unsafe {
            let tail = self.chain().tail.load(Acquire);
            (tail, (*tail).base.load(Relaxed))
        };
        let start = Pool::<Block<T>>::start(tail);
        // Whatever lies before the producer's segment is full.
        let mut full = if tail == self.segment { self.at.wrapping_sub(base) } else { 0 };
        let blocks = self.chain().blocks;
        // SAFETY: `index` is below `blocks`, and less than `TAKE` ahead of a block that the producer has entered.
        let counted = |index: usize| unsafe {
            Chain::<T>::published(start.add(index * Block::<T>::STRIDE), base.wrapping_add(index))
        };
        let is_full = |index: usize| counted(index) == Block::<T>::ITEMS;
        // If the last of those that surely have headers is full, all are. The block before `full` was entered.
        let reach = TAKE - 1;
        while full + reach <= blocks && is_full(full + reach - 1) {
            full += reach;
        }
        while full < blocks && is_full(full) {
            full += 1;
        }
        let block = base.wrapping_add(full);
        if full == blocks {
            return (block, 0);
        }
        match counted(full).max(self.pushed_in(block)) {
            // Filled up since it was looked at.
            n if n == Block::<T>::ITEMS => (block.wrapping_add(1), 0),
            n => (block, n),
        }
    }
}

// SAFETY: `ready` and `full_until` count only items whose header was acquired, or a later block's, which the producer
// stores after it. The producer writes to their slots again only after it has acquired their segment from the pool.
unsafe impl<T: Send> RawConsumer<T> for LinkedConsumer<T> {
    const RUN: usize = Block::<T>::ITEMS;

    #[inline(always)]
    fn readable(&mut self) -> usize {
        if self.popped == self.ready {
            self.refill();
        }
        self.ready - self.popped
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        n
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        // SAFETY: the run lies inside the block.
        unsafe { Block::<T>::item(self.line, self.popped + i) }
    }

    #[inline(always)]
    unsafe fn release(&mut self, n: usize) {
        self.popped += n;
    }

    fn position(&self) -> usize {
        position::<T>(self.at, self.popped)
    }

    fn len(&mut self) -> usize {
        let (block, item) = self.sealed.unwrap_or_else(|| self.published_end());
        position::<T>(block, item).wrapping_sub(position::<T>(self.at, self.popped))
    }

    fn seal(&mut self) -> usize {
        let end = self.published_end();
        self.sealed = Some(end);
        position::<T>(end.0, end.1)
    }

    fn capacity(&self) -> usize {
        UNBOUNDED
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl<T> Drop for LinkedConsumer<T> {
    fn drop(&mut self) {
        self.chain().popped_to.store((self.at, self.popped));
        self.chain().head.store(self.segment, Relaxed);
    }
}

impl<T> fmt::Debug for LinkedProducer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkedProducer").field("block", &self.at).field("item", &self.filled).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for LinkedConsumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkedConsumer").field("block", &self.at).field("item", &self.popped).finish_non_exhaustive()
    }
}
