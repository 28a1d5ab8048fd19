//! The lane without an end: an unbounded queue for a producer that must never wait. It grows and shrinks by segments of
//! the [`lane`]'s blocks, which are linked, added and used again.
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
//! # Promises
//!
//! - Those of [`spsc`](super#promises), except the bound.
//! - **`Full` means that memory was refused.** `try_push` says [`Full`](crate::error::TryPushError::Full), with the
//!   item, if no segment is free and the allocator refuses one. The queue starts with two segments and never has fewer.
//!   So when the consumer leaves the next one there is room again, and a `push` that waits comes to its end.
//! - **Progress.** Wait-free but for the allocator. The producer asks it once a segment at most, and only if no segment
//!   is free. The consumer gives it a segment back if enough are kept.
//! - **Memory.** 34 kB at first. Segments of about 16 KiB, or of [`Tuning::segment`] items: two at first, and then what
//!   is inside plus at most a segment at each end and the cached ones.
//!
//! # When to use it, and when not
//!
//! Use it where the producer must not wait and cannot drop: bursts, recursion, cycles of queues.
//!
//! Do not use it where a bound is what keeps the program healthy. A producer that is faster for long fills the memory,
//! and what is inside is then read from there and not from a cache. Messages of bytes are better off in a
//! [`stream`](super::stream).
//!
//! # How it works
//!
//! Source: the queue for pointers (`ff_queue2`) of the case study on FastFlow's queue, generalised to any item. The
//! case study takes FastFlow's unbounded queue (`corelane-papers` has it) apart and rebuilds it: `next` inside the
//! segment, no list of segments beside them, no segment cleared after allocation, the oldest segment used again, one
//! branch an operation. What lies in a segment is the [`lane`]'s.
//!
//! 1. A segment is a head and some of the lane's blocks: one cache line each for small items, a header in front that
//!    tells the place behind the last item published in it. Inside a segment both sides do what they do in a lane, in
//!    runs of blocks that are known to be free, or full. Only the check for free slots is missing: there are as many as
//!    there is memory.
//! 2. The header of a block that was used before is a place further back, and needs no clearing. In a segment fresh
//!    from the allocator the producer writes the headers itself. It is always so many blocks ahead of its own as the
//!    consumer may look ahead. (The case study's `buffer[write_pos+1] = 0` does the same where a flag is looked at one
//!    cell ahead.) It writes them once in 32 blocks, where one of its runs ends, so a new segment costs no burst of
//!    memory accesses.
//! 3. At the end of a segment the producer takes the oldest one that the consumer has left, or else a new one, shows it
//!    in `tail`, and links it behind its own. Its run is then the whole segment, if that was used before.
//! 4. A segment that has a link to the next one is full. A consumer that finds the link takes all that is left of the
//!    segment at once. At the end of the segment it follows the link. The segment that it leaves goes to the producer
//!    through a small ring of slots; where that ring is full the consumer frees the segment. So after a burst the queue
//!    holds what is inside and at most [`Tuning::cached`] segments, without a further push.
//! 5. `consumed` is published where a segment is left and before the consumer says Empty. Only the producer's
//!    [`len`](Producer::len) reads it.
//!
//! A header cannot be mistaken for one of a later block. From the time a segment is left until it is used again, the
//! producer goes through memory that is there at once, less than a pointer reaches.
//!
//! # Synchronization
//!
//! - Headers as in the lane.
//! - `next`, store-release (producer) → load-acquire (consumer): a segment's head and first headers are written before
//!   the consumer enters it, and all items of the segment before it is taken for full.
//! - `tail`, store-release (producer) → load-acquire (consumer): the same for a consumer that counts what is inside. It
//!   is stored before the link that leads there, so a consumer never finds a segment in it that it has left itself.
//! - Headers that are written ahead (step 2) come before the publication of every item of the producer's block. A
//!   consumer looks ahead only from a block of which it has acquired an item, and goes on only from one that it has
//!   drained.
//! - A slot of the ring, store-release (consumer) → load-acquire (producer): every item of a segment is read before the
//!   segment is written again.
//! - Parking and closing: see [`crate::wait`].

use super::blocks::{
    Block, Blocks, BlocksConsumer, BlocksProducer, Notes, Place, Policy, Run, halves, leave, position, publish_position,
};
use super::design::{Design, Request, Shared, sealed};
use super::handle::Options;
use super::lane;
use super::stats::{NoStats, Recorder};
use crate::bound::Unbounded;
use crate::error::ChannelError;
use crate::mem::buffer::drop_all;
use crate::mem::segments::{Contents, Pool, Segment, Turn};
use crate::sync::{Acquire, AtomicPtr, AtomicUsize, Padded, Relaxed, Release, UnsafeCell};
use crate::wait::{Adaptive, Strategy};
use core::marker::PhantomData;
use core::ptr;

/// The unbounded lane as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct Linked;

/// The sending end.
pub type Producer<T, W = Adaptive, S = NoStats> = super::Producer<T, Linked, W, S>;
/// The receiving end.
pub type Consumer<T, W = Adaptive, S = NoStats> = super::Consumer<T, Linked, W, S>;

/// What `capacity` says of a queue that has none: more items than an address space has bytes for.
pub const UNBOUNDED: usize = isize::MAX as usize / 2;

super::tuning! {
    /// How memory is held.
    ///
    /// ```
    /// use corelane::error::ChannelError;
    /// use corelane::spsc::{Options, linked};
    ///
    /// let options = Options::new().tuning(linked::Tuning::new().segment(1000).cached(8));
    /// let (mut producer, mut consumer) = linked::channel_with(options)?;
    /// producer.push(1).unwrap();
    /// assert_eq!(consumer.pop(), Ok(1));
    /// let nothing = Options::new().tuning(linked::Tuning::new().segment(0));
    /// assert_eq!(linked::channel_with::<u32, _, _>(nothing).unwrap_err(), ChannelError::BadSegment);
    /// # Ok::<(), ChannelError>(())
    /// ```
    pub struct Tuning {
        /// Items in a segment, rounded up to whole cache lines. At least 1; by default as many as 16 KiB hold.
        segment(items: usize),
        /// How many unused segments are kept. At least 1; by default as many as 256 KiB hold, but 2 to 16.
        cached(segments: usize),
        /// What the consumer does between two runs, as in a lane. More blocks than a lane takes at once by default are
        /// not taken; [`compact`](lane::Tuning::compact) and [`release`](lane::Tuning::release) have no meaning here.
        lane(tuning: lane::Tuning),
    }
}

/// The consumer is a few segments behind, whatever their size. So with larger ones more memory is in use, and fewer
/// items move.
const SEGMENT_BYTES: usize = 16 * 1024;
const CACHED_BYTES: usize = 256 * 1024;
/// How many segments are cached, of a size that makes it so many.
const CACHED: core::ops::RangeInclusive<usize> = 2..=if cfg!(corelane_loom) { 2 } else { 16 };
/// Under loom a segment is so short that few items reach the next one.
const FEWEST_BLOCKS: usize = 2;

/// Blocks of a fresh segment that the producer goes through between two times of writing headers.
const WRITE: usize = if cfg!(corelane_loom) { 1 } else { 32 };

/// Makes a queue with the defaults: 34 kB at first, in two segments, which [`Tuning::segment`] makes smaller. With
/// segments of 8 items of 8 bytes it is 2 kB.
///
/// # Panics
/// Where [`try_channel`] returns an error.
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::linked::channel();
/// producer.push(1).unwrap();
/// assert_eq!(consumer.pop(), Ok(1));
/// ```
#[track_caller]
pub fn channel<T: Send>() -> (Producer<T>, Consumer<T>) {
    crate::error::made(try_channel())
}

/// Makes a queue with the defaults.
///
/// # Errors
/// No memory.
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::linked::try_channel()?;
/// producer.push(1).unwrap();
/// assert_eq!(consumer.pop(), Ok(1));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
pub fn try_channel<T: Send>() -> Result<(Producer<T>, Consumer<T>), ChannelError> {
    channel_with(Options::default())
}

/// Makes a queue.
///
/// # Errors
/// Segments of no item, none to be cached, or no memory.
///
/// ```
/// use corelane::spsc::{Options, linked};
/// use corelane::wait::Spin;
///
/// let (mut producer, mut consumer) = linked::channel_with(Options::new().wait(Spin))?;
/// producer.push(1).unwrap();
/// assert_eq!(consumer.pop(), Ok(1));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
#[expect(clippy::type_complexity, reason = "a pair of handles is what the reader looks for")]
pub fn channel_with<T: Send, W: Strategy, S: Recorder>(
    options: Options<Tuning, W, S>,
) -> Result<(Producer<T, W, S>, Consumer<T, W, S>), ChannelError> {
    super::any_channel(UNBOUNDED, options)
}

impl<T> Contents for Block<T> {
    const ALIGN: usize = Self::ALIGN;

    #[cfg(corelane_loom)]
    unsafe fn make(start: *mut u8, bytes: usize) {
        for offset in (0..bytes).step_by(Self::STRIDE) {
            // SAFETY: a block of the segment, which is ours. That a model reads such a header is the failure that step
            // 2 is about.
            unsafe { Self::init(start.add(offset), super::blocks::UNWRITTEN) };
        }
    }

    #[cfg(corelane_loom)]
    unsafe fn unmake(start: *mut u8, bytes: usize) {
        for offset in (0..bytes).step_by(Self::STRIDE) {
            // SAFETY: made by `make`.
            unsafe { Self::deinit(start.add(offset)) };
        }
    }
}

/// What both ends share.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a queue")]
pub struct Chain<T> {
    pool: Pool<Block<T>>,
    /// Blocks in a segment.
    blocks: usize,
    policy: Policy,
    /// Position behind the last item that the consumer has told of. Written by the consumer.
    consumed: Padded<AtomicUsize>,
    /// The producer's segment. Written by the producer where it changes.
    tail: Padded<AtomicPtr<Segment>>,
    /// The producer's alone, and the consumer's.
    writer: Padded<UnsafeCell<Writer>>,
    reader: Padded<UnsafeCell<Reader>>,
    popped_to: Place,
    pushed_to: Place,
    items: PhantomData<T>,
}

/// What the producer keeps in mind from one run to the next.
struct Writer {
    segment: *mut Segment,
    turn: Turn,
    /// The first block of the segment whose header is not written, or the segment's end.
    unwritten: *mut u8,
}

/// What the consumer keeps in mind from one run to the next.
struct Reader {
    segment: *mut Segment,
    turn: Turn,
    notes: Notes,
}

// SAFETY: items move from the producer's thread to the consumer's, hence `T: Send`; no reference to an item is shared.
// The protocol says which thread may access the two sides' own cells and the segments.
unsafe impl<T: Send> Send for Chain<T> {}
// SAFETY: as above; the protocol in the module's documentation orders every access to a slot.
unsafe impl<T: Send> Sync for Chain<T> {}

impl<T> Chain<T> {
    /// The last block of a segment that starts here.
    fn last_block(&self, first: *mut u8) -> *mut u8 {
        first.wrapping_add((self.blocks - 1) * Block::<T>::STRIDE)
    }

    /// The empty run at a place of a segment; at the start of the next block if it is the end of one that is not the
    /// last.
    ///
    /// # Safety
    /// The segment is alive, and the place is in the block of it that starts at `line`.
    unsafe fn run_at(&self, segment: *mut Segment, next: *mut u8, line: *mut u8) -> Run<T> {
        let first = Pool::<Block<T>>::start(segment);
        // SAFETY: the caller's.
        let base = unsafe { (*segment).base.load(Relaxed) };
        let run = Run::at(first, base, line, next);
        if run.room() == 0 && line != self.last_block(first) {
            return Run::at_start(first, base, line.wrapping_add(Block::<T>::STRIDE));
        }
        run
    }

    /// The empty run at the start of a segment.
    ///
    /// # Safety
    /// The segment is alive.
    unsafe fn run_from(&self, segment: *mut Segment) -> Run<T> {
        let first = Pool::<Block<T>>::start(segment);
        // SAFETY: the caller's.
        Run::at_start(first, unsafe { (*segment).base.load(Relaxed) }, first)
    }

    /// Writes the headers of empty blocks, from number `at` on.
    ///
    /// # Safety
    /// So many blocks lie there, and no other thread looks at them.
    unsafe fn write_headers(first: *mut u8, at: usize, count: usize) {
        for i in 0..count {
            let header = Block::<T>::tag(at.wrapping_add(i)).wrapping_add(Block::<T>::FIRST);
            // SAFETY: the caller's. An atomic store: outside of loom it makes the atomic.
            unsafe { Block::<T>::header(first.add(i * Block::<T>::STRIDE)) }.store(header, Relaxed);
        }
    }

    /// Goes on to the oldest segment that is free, or to a new one; stays where it is if there is none.
    ///
    /// # Safety
    /// Called by the producer, at the end of its segment.
    unsafe fn next_segment(&self, end: Run<T>, writer: &mut Writer) -> Run<T> {
        let mut next = self.pool.take(&mut writer.turn);
        let fresh = next.is_null();
        if fresh {
            next = self.pool.allocate(self.pool.bytes);
            if next.is_null() {
                return end;
            }
        }
        let first = Pool::<Block<T>>::start(next);
        let left = writer.segment;
        writer.segment = next;
        writer.unwritten = if fresh { first } else { first.wrapping_add(self.pool.bytes) };
        // SAFETY: `next` is alive and ours alone until it is linked; `left` is alive while this side is in it.
        unsafe {
            (*next).base.store(end.place().0.wrapping_add(1), Relaxed);
            (*next).next.store(ptr::null_mut(), Relaxed);
            let run = self.writable(self.run_from(next), writer);
            self.tail.store(next, Release);
            (*left).next.store(next, Release);
            run
        }
    }

    /// The run from a place of the producer's segment on. Before it starts the headers of all the blocks are written
    /// that a consumer may look at from a block of it: its own and the `REACH - 1` behind each (step 2).
    ///
    /// # Safety
    /// Called by the producer, before anything is published in the run's first block.
    unsafe fn writable(&self, run: Run<T>, writer: &mut Writer) -> Run<T> {
        let last = self.last_block(Pool::<Block<T>>::start(writer.segment));
        let left = run.blocks_to(last) + 1;
        let written = run.blocks_to(writer.unwritten);
        let wanted = left.min(WRITE + Block::<T>::REACH - 1);
        if written < wanted {
            // SAFETY: blocks of the segment. No other thread looks at them before something of this run is published.
            unsafe {
                Self::write_headers(writer.unwritten, run.place().0.wrapping_add(written), wanted - written);
            }
            writer.unwritten = run.line.wrapping_add(wanted * Block::<T>::STRIDE);
        }
        let blocks = if written < left { left.min(WRITE) } else { left };
        run.through(blocks, last)
    }
}

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        let per = Block::<T>::ITEMS;
        // SAFETY: both handles are gone, so no other thread reaches this.
        let head = self.reader.with(|reader| unsafe { (*reader).segment });
        let (mut at, mut item) = self.popped_to.load();
        let (last, pushed) = self.pushed_to.load();
        let count = position::<T>((last.wrapping_sub(at), pushed)).wrapping_sub(item);
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
            // SAFETY: both handles are gone, so what lies between the two places is published, not popped, and ours,
            // and every segment up to the last item's is linked.
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

impl Unbounded for Linked {}

impl<T: Send> Design<T> for Linked {
    type Tuning = Tuning;
    type Producer = BlocksProducer<T, Chain<T>>;
    type Consumer = BlocksConsumer<T, Chain<T>>;

    fn create(request: Request<'_, Tuning>) -> Result<(Self::Producer, Self::Consumer), ChannelError> {
        let Request { start, control, tuning, .. } = request;
        if tuning.segment == Some(0) || tuning.cached == Some(0) {
            return Err(ChannelError::BadSegment);
        }
        let blocks = match tuning.segment {
            Some(items) => items.div_ceil(Block::<T>::ITEMS),
            None if cfg!(corelane_loom) => FEWEST_BLOCKS,
            None => (SEGMENT_BYTES / Block::<T>::STRIDE).max(FEWEST_BLOCKS),
        };
        let bytes = blocks.checked_mul(Block::<T>::STRIDE).ok_or(ChannelError::TooLarge)?;
        let cached = (CACHED_BYTES / bytes.max(1)).clamp(*CACHED.start(), *CACHED.end());
        let pool = Pool::new(bytes, tuning.cached.unwrap_or(cached))?;
        let segment = pool.allocate_touched()?;
        let first = Pool::<Block<T>>::start(segment);
        let writer = Writer { segment, turn: 0, unwritten: first.wrapping_add(bytes) };
        let reader = Reader { segment, turn: 0, notes: Notes::new(start) };
        // The headers of no more blocks than these are written ahead.
        let policy = Policy::new::<T>(&tuning.lane.unwrap_or_default(), Block::<T>::TAKE);
        let chain = Chain {
            pool,
            blocks,
            policy,
            consumed: Padded(AtomicUsize::new(position::<T>((start, 0)))),
            tail: Padded(AtomicPtr::new(segment)),
            writer: Padded(UnsafeCell::new(writer)),
            reader: Padded(UnsafeCell::new(reader)),
            popped_to: Place::new(start, start),
            pushed_to: Place::new(start, start),
            items: PhantomData,
        };
        // From here on the chain frees the first segment.
        let spare = chain.pool.allocate_touched()?;
        let turn = chain.pool.keep_first(spare);
        // SAFETY: the segments have so many blocks, and no other thread knows them or the chain. The spare one will be
        // the second.
        let free = unsafe {
            chain.reader.with_mut(|reader| (*reader).turn = turn);
            (*segment).base.store(start, Relaxed);
            Chain::<T>::write_headers(first, start, blocks);
            Chain::<T>::write_headers(Pool::<Block<T>>::start(spare), start.wrapping_add(blocks), blocks);
            chain.run_from(segment).through(blocks, chain.last_block(first))
        };
        // SAFETY: the segment is fresh.
        Ok(unsafe { halves(control, chain, free, false) })
    }

    fn release_lag(_: usize, _: &Tuning) -> usize {
        0
    }
}

// SAFETY: free slots are those of a fresh segment, which were never written, or of one that was acquired from the pool,
// where the consumer released it; the producer's place only moves on. Items are those whose header was acquired, or a
// later block's, which the producer stores after it. Only a side's own calls reach what it keeps in mind, and none of
// them within another.
unsafe impl<T: Send> Blocks<T> for Chain<T> {
    const MAY_BE_EXACT: bool = false;

    fn capacity(&self) -> usize {
        UNBOUNDED
    }

    #[inline(always)]
    fn consumed(&self) -> &AtomicUsize {
        &self.consumed
    }

    fn popped_to(&self) -> &Place {
        &self.popped_to
    }

    fn pushed_to(&self) -> &Place {
        &self.pushed_to
    }

    /// The free slots from a place on, the end of a block: those up to the end of the segment, or as far as headers are
    /// written; or none, if there is no memory.
    #[cold]
    #[inline(never)]
    fn free_run(&self, next: *mut u8, line: *mut u8, _: usize) -> Run<T> {
        // SAFETY: only the producer reaches what it keeps in mind, and nothing in here does a second time. It stands in
        // its segment, which is alive.
        self.writer.with_mut(|writer| unsafe {
            let writer = &mut *writer;
            let run = self.run_at(writer.segment, next, line);
            if run.room() == 0 { self.next_segment(run, writer) } else { self.writable(run, writer) }
        })
    }

    fn pushed_at(&self, next: *mut u8, line: *mut u8, _: usize) -> Run<T> {
        // SAFETY: the producer, which stands in its segment, is the one that reaches this.
        self.writer.with(|writer| unsafe { self.run_at((*writer).segment, next, line) })
    }

    fn popped_at(&self, next: *mut u8, line: *mut u8, _: usize) -> Run<T> {
        // SAFETY: the consumer, which stands in its segment, is the one that reaches this.
        self.reader.with(|reader| unsafe { self.run_at((*reader).segment, next, line) })
    }

    #[cold]
    #[inline(never)]
    fn next_run(shared: &Shared<Self>, next: *mut u8, line: *mut u8, _: usize, told: *mut u8) -> (Run<T>, *mut u8) {
        let chain = &shared.body;
        // SAFETY: only the consumer reaches what it keeps in mind, and nothing in here does a second time. It stands in
        // its segment, which is alive, and its own up to there until it gives it back: so are the blocks that it
        // leaves.
        chain.reader.with_mut(|reader| unsafe {
            let reader = &mut *reader;
            let mut run = chain.run_at(reader.segment, next, line);
            // The end of a block is the start of the next one.
            let mut told = if told == next { run.next } else { told };
            if run.line != line {
                leave::<T>(line, run.delta);
            }
            if run.room() == 0 {
                let link = (*reader.segment).next.load(Acquire);
                if link.is_null() {
                    return (run, if next == told { told } else { publish_position(shared, &run) });
                }
                leave::<T>(line, run.delta);
                // Everything in it was popped, and the producer has left it. The only pointers to it were this side's
                // and `tail`, which leads further since before the link was made.
                chain.pool.give_back(&mut reader.turn, reader.segment);
                reader.segment = link;
                run = chain.run_from(link);
                told = publish_position(shared, &run);
            }
            let last = chain.last_block(Pool::<Block<T>>::start(reader.segment));
            let left = run.blocks_to(last) + 1;
            let at = run.place().0;
            // This block, which follows one that was popped, or one fewer than `REACH` ahead of it, when an item of it
            // was seen: its header is written.
            let published = |ahead: usize| {
                if ahead >= left {
                    return 0;
                }
                Block::<T>::published(run.line.add(ahead * Block::<T>::STRIDE), at.wrapping_add(ahead))
            };
            let found = if reader.notes.sealed.is_none() && !(*reader.segment).next.load(Acquire).is_null() {
                // The producer has left the segment, so all of it is full.
                reader.notes.found(run, left, last)
            } else {
                let take = left.min(chain.policy.take);
                reader.notes.find(run, Policy { take, ..chain.policy }, left, last, published)
            };
            if found.is_empty() && found.next != told {
                told = publish_position(shared, &found);
            }
            (found, told)
        })
    }

    fn published_end(&self, run: &Run<T>) -> (usize, usize) {
        // SAFETY: only the consumer reaches what it keeps in mind.
        let segment = self.reader.with(|reader| unsafe { (*reader).segment });
        // SAFETY: the producer's segment now or a moment ago: this side has not left it, so it is alive.
        let (tail, base) = unsafe {
            let tail = self.tail.load(Acquire);
            (tail, (*tail).base.load(Relaxed))
        };
        let start = Pool::<Block<T>>::start(tail);
        // Whatever lies before the producer's segment is full.
        let mut full = if tail == segment { run.place().0.wrapping_sub(base) } else { 0 };
        // SAFETY: `index` is below `blocks`, and less than `REACH` ahead of a block that the producer has entered.
        let published = |index: usize| unsafe {
            Block::<T>::published(start.add(index * Block::<T>::STRIDE), base.wrapping_add(index))
        };
        let is_full = |index: usize| published(index) == Block::<T>::ITEMS;
        // If the last of those that surely have headers is full, all are. The block before `full` was entered.
        let reach = Block::<T>::REACH - 1;
        while full + reach <= self.blocks && is_full(full + reach - 1) {
            full += reach;
        }
        while full < self.blocks && is_full(full) {
            full += 1;
        }
        let block = base.wrapping_add(full);
        if full == self.blocks {
            return (block, 0);
        }
        match published(full) {
            // Filled up since it was looked at.
            n if n == Block::<T>::ITEMS => (block.wrapping_add(1), 0),
            n => (block, n),
        }
    }

    #[inline(always)]
    fn notes<R>(&self, call: impl FnOnce(&mut Notes) -> R) -> R {
        // SAFETY: only the consumer reaches what it keeps in mind, one call at a time.
        self.reader.with_mut(|reader| call(unsafe { &mut (*reader).notes }))
    }
}
