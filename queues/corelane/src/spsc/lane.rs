//! The flagship: a bounded queue in which an item and the news of it travel in one cache line.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::lane::channel(8);
//! producer.push(1).unwrap();
//! assert_eq!(consumer.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`spsc`](super#promises).
//! - **Progress.** `try_push` is wait-free. `try_pop` is wait-free: the slip of step 4 makes a bounded number of looks.
//! - **Memory.** Blocks of one to four lines, the fewest of which items fill seven eighths, or of 7 items rounded up to
//!   whole lines. There are as many as hold the capacity, or one more, rounded up to a power of two. Where
//!   [`compact`](Tuning::compact) is asked for, as for the queues to the workers of a [fan-out](crate::dispatch), they
//!   are not rounded up.
//!
//! # When to use it, and when not
//!
//! Use it unless there is a reason not to. Batches of items that are copied as slices are the business of an index
//! queue ([`mcring`](super::mcring)): a lane spends one word in eight on headers.
//!
//! # How it works
//!
//! Source: ours. It joins three published ideas. A slot carries its own flag: FastForward (section 2.3 of the B-Queue
//! paper); here the flag is a lap number, so that nothing is cleared. The consumer updates in batches: MCRingBuffer
//! (section II-B2 of its paper). The consumer looks ahead: B-Queue (section 3.3 of its paper); here that decides how
//! many full blocks it may take unchecked.
//!
//! The ring consists of blocks. A block is one cache line for small items, and beyond that a few lines of which items
//! fill seven eighths: two lines hold 7 items of 16 bytes, eight lines 7 of 64. A block starts with a header: the place
//! behind the last item published in it, in bytes since the queue was made. So the header tells how many items are
//! there, and of which lap.
//!
//! 1. The producer writes an item into the current block and stores the header. One line carries both, so one line
//!    moves from core to core where an index queue moves two. The consumer reads the header of its current block, which
//!    covers every item of the block.
//! 2. No header is ever cleared: one left from the lap before is a place in another lap. But a consumer that leaves a
//!    block stores its header once more, unchanged, and a word in each further line. It may, because the slots are its
//!    own until it releases them. The producer then finds each line in one place, the consumer's cache, and not in both
//!    caches. On some processors an upgrade from shared to exclusive waits for the second copy.
//! 3. The producer learns of free slots from `consumed`. The consumer publishes it every so many blocks (at most an
//!    eighth of the capacity) and before it says Empty. The producer looks at it when it has used up what it knew of.
//! 4. A consumer that finds the 32nd block from here full takes all of them without another look at their headers.
//!    - If that block is not full yet, the consumer may wait a moment for it: the slip. After each slip that did not
//!      help it abstains for longer, so a slow producer's items are not held up.
//!    - Then it takes eight blocks, if the eighth is full, or this one.
//!    - Large items are looked for 16 KiB ahead. A consumer that finds a single one of them waits a moment for more of
//!      its block. Otherwise both ends go on in step, and each item costs a transfer of the header to and fro.
//! 5. So each end works in runs of blocks that are known to be free, or full. Within a run an item costs a comparison
//!    of two pointers, and a block a second one. Everything else is done between two runs, in a call that gets its
//!    state by value and gives it back. A handle whose address no call ever gets lives in registers. A handle in memory
//!    would cost a store to another line between the two stores to the block's line, and that keeps the processor from
//!    joining these two.
//!
//! How many blocks are taken and given back at once, and how long a slip is, is a [`Tuning`].
//!
//! # Synchronization
//!
//! - header, store-release (producer) → load-acquire (consumer): the items in front of the place it names are written
//!   before they are read. A header's store also covers all earlier blocks, because the producer fills them in order:
//!   hence step 4.
//! - `consumed`, store-release (consumer) → load-acquire (producer): items are read, and the header of step 2 is
//!   stored, before the producer writes there again.
//! - Parking and closing: see [`crate::wait`].
//!
//! # What was tried
//!
//! `docs/benchmarks.md` has the figures ("What single decisions bring").
//!
//! - No blocks are fetched for ownership ahead of the producer: that takes them away from the consumer that is still
//!   reading.
//! - A batch is copied as the rest of a block, whole blocks, and a part of one. One loop over parts of blocks is
//!   slower.
//! - A lane alone is rounded up to a power of two, because with room to spare a line has left the consumer's first
//!   cache when the producer comes back to it. The queues of a fan-out are not, because several queues share the caches
//!   of one dispatcher.

use super::blocks::{
    Block, Blocks, BlocksConsumer, BlocksProducer, Notes, Place, Policy, Run, halves, leave, position, publish_position,
};
use super::design::{Design, Request, Shared, sealed};
use crate::bound::Bounded;
use crate::error::ChannelError;
use crate::mem::buffer::{Buffer, drop_all};
use crate::sync::{Acquire, AtomicUsize, Padded, UnsafeCell};
use core::marker::PhantomData;

/// The lane as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane;

super::aliases!(Lane, lane);

/// How a lane holds its memory, and what its consumer does between two runs of blocks.
///
/// The consumer looks these values up where a run ends, so they cost no item anything. Whatever is asked for, the
/// promises are the same. `corelane-bench run policies` measures each value on a machine.
///
/// ```
/// use corelane::spsc::{Options, lane};
///
/// let options = Options::new().tuning(lane::Tuning::new().compact().take(32).slip(0));
/// let (mut producer, mut consumer) = lane::channel_with(1000, options)?;
/// producer.push(1).unwrap();
/// assert_eq!(consumer.pop(), Ok(1));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    compact: bool,
    pub(super) take: Option<usize>,
    release: Option<usize>,
    pub(super) slip: Option<u32>,
}

impl Tuning {
    /// The defaults: room to spare.
    pub const fn new() -> Self {
        Self { compact: false, take: None, release: None, slip: None }
    }

    /// No more memory than the capacity needs. Unless it is asked for the lane takes up to twice that, because two
    /// threads alone are quicker with room to spare.
    pub const fn compact(mut self) -> Self {
        self.compact = true;
        self
    }

    /// Blocks that the consumer takes at once without a look at each, at least 1 and at most half of those there are.
    /// By default 32 where a block is one line, as for items of 8 bytes, and else as many as 16 KiB hold.
    pub const fn take(mut self, blocks: usize) -> Self {
        self.take = Some(blocks);
        self
    }

    /// Blocks that the consumer gives back at once. The number is rounded down to a power of two, and is never more
    /// than an eighth of the capacity, which is the default. With 0 each pop gives its slot back. So it does where the
    /// capacity is below 64, or an eighth of it is less than a block.
    pub const fn release(mut self, blocks: usize) -> Self {
        self.release = Some(blocks);
        self
    }

    /// How often a consumer that follows close behind the producer looks for more before it takes the little that is
    /// there, with a pause of the processor between two looks. By default 40; with 0 it never does. With more, the rate
    /// is higher where the producer is the slower end, and items get older.
    pub const fn slip(mut self, looks: u32) -> Self {
        self.slip = Some(looks);
        self
    }

    /// Blocks between two publications of the consumer's position: the largest power of two that withholds at most an
    /// eighth of the capacity, and is at most what was asked for; 0 says that each pop publishes.
    fn release_every<T>(&self, capacity: usize) -> usize {
        let most = if capacity < 64 { 0 } else { capacity / 8 / Block::<T>::ITEMS };
        let blocks = self.release.map_or(most, |blocks| blocks.min(most));
        if blocks == 0 { 0 } else { 1 << blocks.ilog2() }
    }
}

/// What both ends share.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a queue")]
pub struct Ring<T> {
    buffer: Buffer,
    /// How many there are.
    blocks: usize,
    capacity: usize,
    /// Blocks between two publications of the consumer's position, see [`Tuning::release_every`].
    release_every: usize,
    /// The consumer takes at most half the ring at once.
    policy: Policy,
    /// Position behind the last item whose slot the consumer has given back. Written by the consumer.
    consumed: Padded<AtomicUsize>,
    /// The consumer's alone.
    notes: Padded<UnsafeCell<Notes>>,
    popped_to: Place,
    pushed_to: Place,
    items: PhantomData<T>,
}

// SAFETY: items move from the producer's thread to the consumer's, hence `T: Send`; no reference to an item is shared.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above; the protocol in the module's documentation orders every access to a slot.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    fn new(capacity: usize, compact: bool, tuning: &Tuning, start: usize) -> Result<Self, ChannelError> {
        let release_every = tuning.release_every::<T>(capacity);
        // Enough that the slots of a block are free whenever fewer than `capacity` items are inside at its first item.
        // Where each pop publishes, that may already be so when the last item of a block was popped but its header not
        // stored again (step 2): then enough that one item of the next block has to be popped too.
        let reach = if release_every == 0 { capacity } else { capacity - 1 };
        let least = reach.div_ceil(Block::<T>::ITEMS).checked_add(1);
        let blocks = if compact { least } else { least.and_then(usize::checked_next_power_of_two) };
        let blocks = blocks.ok_or(ChannelError::TooLarge)?;
        // A header tells a lap from the next one because a ring is at most half of what a pointer reaches.
        let buffer = Buffer::new(blocks, Block::<T>::STRIDE, Block::<T>::ALIGN)?;
        let lap = start - start % blocks;
        let ring = Self {
            buffer,
            blocks,
            capacity,
            release_every,
            policy: Policy::new::<T>(tuning, blocks / 2),
            consumed: Padded(AtomicUsize::new(position::<T>((start, 0)))),
            notes: Padded(UnsafeCell::new(Notes::new(start))),
            popped_to: Place::new(start, lap),
            pushed_to: Place::new(start, lap),
            items: PhantomData,
        };
        for at in (0..blocks).map(|i| start.wrapping_add(i)) {
            let block = ring.block(at, lap);
            // As if filled in the lap before: a place that no reader of this lap takes for one of its own.
            let header = Block::<T>::tag(at.wrapping_sub(blocks)).wrapping_add(Block::<T>::FULL);
            // SAFETY: the block lies inside the buffer, no other thread knows it yet.
            unsafe { Block::<T>::init(block, header) };
        }
        Ok(ring)
    }

    /// The memory of block number `at`, of the lap that begins with block number `lap` or of the next one.
    #[inline(always)]
    fn block(&self, at: usize, lap: usize) -> *mut u8 {
        let ahead = at.wrapping_sub(lap);
        let index = if ahead < self.blocks { ahead } else { ahead - self.blocks };
        debug_assert!(index < self.blocks);
        // SAFETY: the index is below the number of blocks, as `at` is in one of the two laps.
        unsafe { self.buffer.start().add(index * Block::<T>::STRIDE) }
    }

    /// The start of the last block in memory.
    #[inline(always)]
    fn last_block(&self) -> *mut u8 {
        self.block(self.blocks - 1, 0)
    }

    /// How many items of block number `at` are published; `lap` as for [`block`](Self::block).
    #[inline(always)]
    fn published(&self, at: usize, lap: usize) -> usize {
        // SAFETY: `block` gives a block of this ring; all their headers are written.
        unsafe { Block::<T>::published(self.block(at, lap), at) }
    }

    /// The empty run at a place; at the start of the next block if it is the end of one.
    #[inline(always)]
    fn run_at(&self, next: *mut u8, line: *mut u8, lap: usize) -> Run<T> {
        let run = Run::at(self.buffer.start(), lap, line, next);
        if run.room() == 0 { self.run_from(run.place().0.wrapping_add(1), lap) } else { run }
    }

    /// The empty run at the start of block `at`; `lap` as for [`block`](Self::block).
    #[inline(always)]
    fn run_from(&self, at: usize, lap: usize) -> Run<T> {
        let is_here = at.wrapping_sub(lap) < self.blocks;
        let lap = if is_here { lap } else { lap.wrapping_add(self.blocks) };
        Run::at_start(self.buffer.start(), lap, self.block(at, lap))
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let per = Block::<T>::ITEMS;
        let (first, popped) = self.popped_to.load();
        let lap = self.popped_to.base();
        let (last, pushed) = self.pushed_to.load();
        // A consumer that has drained a full block stands in the next one, where the producer does not yet.
        let count = position::<T>((last.wrapping_sub(first), pushed)).wrapping_sub(popped);
        drop_all(count, |i| {
            // SAFETY: both handles are gone, so what lies between the two places is published, not popped, and ours.
            unsafe {
                let block = self.block(first.wrapping_add((popped + i) / per), lap);
                let slot = Block::<T>::item(block, (popped + i) % per);
                (*slot).with_mut(|slot| (*slot).assume_init_drop());
            }
        });
        #[cfg(corelane_loom)]
        for at in 0..self.blocks {
            // SAFETY: initialised in `new`, undone once, here.
            unsafe { Block::<T>::deinit(self.block(at, 0)) };
        }
    }
}

impl sealed::Sealed for Lane {}

impl Bounded for Lane {}

impl<T: Send> Design<T> for Lane {
    type Tuning = Tuning;
    type Producer = BlocksProducer<T, Ring<T>>;
    type Consumer = BlocksConsumer<T, Ring<T>>;

    fn create(request: Request<'_, Tuning>) -> Result<(Self::Producer, Self::Consumer), ChannelError> {
        let Request { capacity, compact, tuning, start, control } = request;
        let ring = Ring::new(capacity, compact || tuning.compact, tuning, start)?;
        let (run, exact) = (ring.run_from(start, ring.popped_to.base()), ring.release_every == 0);
        // SAFETY: the run is empty.
        Ok(unsafe { halves(control, ring, run, exact) })
    }

    fn release_lag(capacity: usize, tuning: &Tuning) -> usize {
        tuning.release_every::<T>(capacity) * Block::<T>::ITEMS
    }
}

// SAFETY: free slots are those that the consumer has released (acquire of `consumed`). Items are those whose header was
// acquired, or a later block's, which the producer stores after it. Only the consumer's calls reach the notes, and none
// of them within another.
unsafe impl<T: Send> Blocks<T> for Ring<T> {
    const MAY_BE_EXACT: bool = true;

    fn capacity(&self) -> usize {
        self.capacity
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

    /// The free slots from a place on, as far as they lie before the end of the ring's memory.
    #[cold]
    #[inline(never)]
    fn free_run(&self, next: *mut u8, line: *mut u8, lap: usize) -> Run<T> {
        let run = self.run_at(next, line, lap);
        let inside = position::<T>(run.place()).wrapping_sub(self.consumed.load(Acquire));
        let free = self.capacity - inside;
        let room = run.room();
        if free <= room {
            run.until(free)
        } else {
            run.through(1 + (free - room) / Block::<T>::ITEMS, self.last_block())
        }
    }

    fn pushed_at(&self, next: *mut u8, line: *mut u8, lap: usize) -> Run<T> {
        self.run_at(next, line, lap)
    }

    fn popped_at(&self, next: *mut u8, line: *mut u8, lap: usize) -> Run<T> {
        self.run_at(next, line, lap)
    }

    #[cold]
    #[inline(never)]
    fn next_run(shared: &Shared<Self>, next: *mut u8, line: *mut u8, lap: usize, told: *mut u8) -> (Run<T>, *mut u8) {
        let ring = &shared.body;
        let run = ring.run_at(next, line, lap);
        if run.line != line {
            // SAFETY: the block that ends there is used up. Its position may have been published, with the last pop
            // from it, but the producer comes there only when an item of the next block was popped, too: `Ring::new`.
            unsafe { leave::<T>(line, Block::<T>::tag(lap).wrapping_sub(ring.buffer.start().addr())) };
        }
        let (at, popped) = run.place();
        // The end of a block is the start of the next one.
        let mut told = if told == next { run.next } else { told };
        if popped == 0 && at & ring.release_every.wrapping_sub(1) == 0 && run.next != told {
            told = publish_position(shared, &run);
        }
        // No further than to the next publication of the position. A power of two: a division would take as long as the
        // rest.
        let every = ring.release_every.max(1);
        let published = |ahead| ring.published(at.wrapping_add(ahead), run.base);
        // SAFETY: only the consumer reaches its notes, and nothing in here does a second time.
        let found = ring.notes.with_mut(|notes| unsafe {
            (*notes).find(run, ring.policy, every - (at & (every - 1)), ring.last_block(), published)
        });
        if found.is_empty() && found.next != told {
            told = publish_position(shared, &found);
        }
        (found, told)
    }

    fn published_end(&self, run: &Run<T>) -> (usize, usize) {
        let at = run.place().0;
        // Full blocks are a prefix of those ahead: the last one is found by bisection.
        let (mut full, mut not) = (0, self.blocks + 1);
        while not - full > 1 {
            let middle = full + (not - full) / 2;
            if self.published(at.wrapping_add(middle - 1), run.base) == Block::<T>::ITEMS {
                full = middle;
            } else {
                not = middle;
            }
        }
        let block = at.wrapping_add(full);
        match self.published(block, run.base) {
            // Filled up since the bisection saw it.
            n if n == Block::<T>::ITEMS => (block.wrapping_add(1), 0),
            n => (block, n),
        }
    }

    #[inline(always)]
    fn notes<R>(&self, call: impl FnOnce(&mut Notes) -> R) -> R {
        // SAFETY: only the consumer reaches its notes, one call at a time.
        self.notes.with_mut(|notes| call(unsafe { &mut *notes }))
    }
}
