//! The flagship: a flag in the items' own cache line, never cleared.
//!
//! Source: ours. It joins FastForward's idea that a slot carries its own flag (section 2.3 of the B-Queue paper) with a lap
//! number, so that nothing is cleared; MCRingBuffer's batch updates on the consumer's side (section II-B2 of the
//! MCRingBuffer paper); and B-Queue's look-ahead (section 3.3 of its paper), which here decides how many full blocks the
//! consumer may take unchecked.
//!
//! # How it works
//!
//! The ring consists of blocks; a block is one cache line for items up to 28 bytes, and a few lines that hold 7 items
//! beyond. A block starts with a header: the place behind the last item published in it, in bytes since the queue was made.
//! It tells how many items are there, and of which lap.
//!
//! 1. The producer writes an item into the current block and stores the header. One line carries both, so one line moves
//!    from core to core where an index queue moves two. The consumer reads the header of its current block: it covers every
//!    item of the block.
//! 2. No header is ever cleared: one left from the lap before is a place in another lap. But a consumer that leaves a block
//!    stores its header once more, unchanged: the producer then finds the line in one place, the consumer's cache, and not
//!    in both, which on some processors is what an upgrade from shared to exclusive waits for.
//! 3. The producer learns of free slots from `consumed`, which the consumer publishes every so many blocks (at most an
//!    eighth of the capacity) and before it says Empty, and which the producer looks at when it has used up what it knew of.
//! 4. A consumer that finds the 32nd block from here full too takes all of them without looking at their headers
//!    again. When it is not full yet it may wait a moment for it (the slip), and abstains for longer after each time
//!    that did not help, so a slow producer's items are not held up. Large items are looked for 16 KiB ahead, and a consumer
//!    that finds a single one of them waits a moment for more of its block: else both ends go on in step, and each item costs a
//!    transfer of the header to and fro.
//! 5. So each end works in runs of blocks that are known to be free, or full. Within a run an item costs a comparison of two
//!    pointers, and a block a second one. Everything else is done between two runs, in a call that gets its state by value and
//!    gives it back: a handle whose address no call ever gets lives in registers.
//!
//! # Why it is so
//!
//! A store to another line between the two stores to the block's line keeps the processor from joining these, and so does a
//! producer whose own state is in memory. A prototype of this file, one call an item, 8 bytes, two cores of an AMD EPYC
//! (Zen 3) on one level-3 cache, capacity 2048, medians of 5 rounds:
//!
//! | the producer's state | M items/s |
//! |---|---|
//! | in registers | 816 |
//! | in memory | 544 |
//! | in registers, the consumer's too, no handle: blocks of 7 unrolled on both sides | 1350 |
//! | the same, but single items announced in a word of their own and the header stored once a block | 905 |
//! | the same as the third, but no header stored a second time (step 2) | 709 |
//!
//! Fetching blocks for ownership ahead of the producer gained nothing and halved the rate of slices: it takes them away from
//! the consumer that is still reading.
//!
//! # Synchronization
//!
//! - header, store-release (producer) → load-acquire (consumer): the items in front of the place it names are written before
//!   they are read. A header's store also covers all earlier blocks, because the producer fills them in order: hence step 4.
//! - `consumed`, store-release (consumer) → load-acquire (producer): items are read, and the header of step 2 is stored,
//!   before the producer writes there again.
//! - Parking and closing: see [`crate::wait`].
//!
//! # Progress
//!
//! `try_push` is wait-free. `try_pop` is wait-free: the slip of step 4 makes a bounded number of looks.
//!
//! # When to use it, and when not
//!
//! Use it unless there is a reason not to. Batches of items that are copied as slices are the business of an index queue
//! ([`mcring`](super::mcring)): a lane spends one word in eight on headers.
//!
//! # Memory
//!
//! Blocks of 64 bytes for `(64 - 8) / size` items, or of 7 items rounded up to whole lines; their number is a power of two,
//! so between once and twice the capacity plus one block.

use super::buffer::{Buffer, drop_all};
use super::control::Control;
use super::design::{Design, RawConsumer, RawProducer, Request, Shared, sealed};
use crate::error::ChannelError;
use crate::prefetch;
use crate::sync::{Acquire, Arc, AtomicUsize, Padded, Relaxed, Release, Slot, UnsafeCell, spin_loop};
use core::fmt;
use core::marker::PhantomData;
use core::ptr;

/// The lane as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane;

super::aliases!(Lane);

/// How far ahead the consumer fetches: without it the consumer is the slower side and the queue stands full.
const FETCH_AHEAD_BYTES: usize = 8 * LINE;
/// Blocks of one line that the consumer takes at once if the last of them is full.
pub(super) const TAKE: usize = if cfg!(loom) { 2 } else { 32 };
/// Bytes in longer blocks that it takes at once. As far as it stays behind the producer then, it does not fetch the lines
/// that are being written. Items of 1 KiB went through at twice the rate of an index ring; with 8 and with 32 KiB at the same.
const TAKE_BYTES: usize = 16 * 1024;
/// How often a consumer that finds too few full blocks looks again before it takes what is there: about as long as a producer
/// at full speed takes for what is missing. With 200 looks items that come every 40 ns waited 6 µs, with 40 they wait 0.2,
/// and the rate at full speed is the same.
pub(super) const SLIP_LOOKS: u32 = if cfg!(loom) { 1 } else { 40 };
/// After that many failed slips in a row the abstention no longer doubles: at most 1,024 blocks between two slips.
pub(super) const MOST_FAILURES: u32 = 10;
const LINE: usize = 64;

/// The layout of blocks for items of type `T`.
struct Block<T>(PhantomData<T>);

impl<T> Block<T> {
    const HEADER: usize = size_of::<AtomicUsize>();
    /// Distance of two items. Items of size 0 are counted by their places too.
    const ITEM: usize = if size_of::<Slot<T>>() == 0 { align_of::<Slot<T>>() } else { size_of::<Slot<T>>() };
    /// The least offset of the first item.
    const LEAST: usize = Self::HEADER.next_multiple_of(align_of::<Slot<T>>());
    /// Items in a block.
    const ITEMS: usize = {
        let in_a_line = LINE.saturating_sub(Self::LEAST) / Self::ITEM;
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
    const STRIDE: usize = (Self::LEAST + Self::ITEMS * Self::ITEM).next_multiple_of(Self::ALIGN);
    /// Offset behind the last item, and the header of a full block less its tag.
    const FULL: usize = if Self::IS_LINE { Self::LEAST + Self::ITEMS * Self::ITEM } else { Self::STRIDE };
    /// Offset of the first item. In a block of several lines what is left over lies in front of it: so items of whole lines lie in lines of
    /// their own, where no item shares one with the next, which the other end may be busy with.
    const FIRST: usize = Self::FULL - Self::ITEMS * Self::ITEM;
    /// A block is one line. Loom has larger words, and has models of both.
    const IS_LINE: bool = if cfg!(loom) { size_of::<T>() <= size_of::<usize>() } else { Self::STRIDE == LINE };
    /// Blocks that the consumer takes at once.
    const TAKE: usize = if Self::IS_LINE || cfg!(loom) {
        TAKE
    } else {
        let blocks = TAKE_BYTES / Self::STRIDE;
        if blocks == 0 { 1 } else { blocks }
    };
    const FETCH_AHEAD: usize = FETCH_AHEAD_BYTES.div_ceil(Self::STRIDE) * Self::STRIDE;

    /// The place of block number `at` in bytes, which wraps around: what its headers are counted from.
    #[inline(always)]
    fn tag(at: usize) -> usize {
        at.wrapping_mul(Self::STRIDE)
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

    /// How many items lie between two places.
    ///
    /// # Safety
    /// Both are places of items, or behind the last one, of one block, `from` not behind `to`.
    #[inline(always)]
    unsafe fn items(from: *mut u8, to: *mut u8) -> usize {
        if size_of::<Slot<T>>() == 0 {
            return (to.addr() - from.addr()) / Self::ITEM;
        }
        // SAFETY: the caller's. Not a division: the compiler knows it to be exact, so a comparison with 0 costs none.
        unsafe { to.cast::<Slot<T>>().offset_from_unsigned(from.cast()) }
    }
}

/// A block number and an item in it. Positions wrap around, so they cannot be divided back into these.
pub(super) struct Place {
    block: AtomicUsize,
    item: AtomicUsize,
}

impl Place {
    pub(super) fn new(block: usize) -> Self {
        Self { block: AtomicUsize::new(block), item: AtomicUsize::new(0) }
    }

    pub(super) fn store(&self, (block, item): (usize, usize)) {
        self.block.store(block, Relaxed);
        self.item.store(item, Relaxed);
    }

    pub(super) fn load(&self) -> (usize, usize) {
        (self.block.load(Relaxed), self.item.load(Relaxed))
    }
}

struct Ring<T> {
    buffer: Buffer,
    mask: usize,
    capacity: usize,
    /// Blocks between two publications of the consumer's position, see [`release_every`].
    release_every: usize,
    /// Blocks that the consumer looks ahead; at most half the ring.
    take: usize,
    /// Position behind the last item whose slot the consumer has given back. Written by the consumer.
    consumed: Padded<AtomicUsize>,
    /// The consumer's alone.
    notes: Padded<UnsafeCell<Notes>>,
    /// Where each end stood when its handle was dropped.
    popped_to: Place,
    pushed_to: Place,
    items: PhantomData<T>,
}

// SAFETY: items move from the producer's thread to the consumer's, hence `T: Send`; no reference to an item is shared.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above; the protocol in the module's documentation orders every access to a slot.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    fn new(capacity: usize, start: usize) -> Result<Self, ChannelError> {
        let release_every = release_every::<T>(capacity);
        // Enough that the slots of a block are free whenever fewer than `capacity` items are inside at its first item. Where
        // each pop publishes, that may already be so when the last item of a block was popped but its header not stored
        // again (step 2): then enough that one item of the next block has to be popped too.
        let reach = if release_every == 0 { capacity } else { capacity - 1 };
        let blocks = reach
            .div_ceil(Block::<T>::ITEMS)
            .checked_add(1)
            .and_then(usize::checked_next_power_of_two)
            .ok_or(ChannelError::TooLarge)?;
        // A header tells a lap from the next one because a ring is at most half of what a pointer reaches.
        let buffer = Buffer::new(blocks, Block::<T>::STRIDE, Block::<T>::ALIGN)?;
        let ring = Self {
            buffer,
            mask: blocks - 1,
            capacity,
            release_every,
            take: Block::<T>::TAKE.min(blocks / 2),
            consumed: Padded(AtomicUsize::new(position::<T>((start, 0)))),
            notes: Padded(UnsafeCell::new(Notes::new(start))),
            popped_to: Place::new(start),
            pushed_to: Place::new(start),
            items: PhantomData,
        };
        for at in (0..blocks).map(|i| start.wrapping_add(i)) {
            let block = ring.block(at);
            // As if filled in the lap before: a place that no reader of this lap takes for one of its own.
            let header = Block::<T>::tag(at.wrapping_sub(blocks)).wrapping_add(Block::<T>::FULL);
            // SAFETY: the block lies inside the buffer, nobody else knows it yet.
            unsafe {
                block.cast::<AtomicUsize>().write(AtomicUsize::new(header));
                // Outside of loom an empty slot is any memory.
                #[cfg(loom)]
                for i in 0..Block::<T>::ITEMS {
                    let slot = ring.item(at, i).cast_mut();
                    slot.write(crate::sync::UnsafeCell::new(core::mem::MaybeUninit::uninit()));
                }
            }
        }
        Ok(ring)
    }

    /// The memory of block number `at`.
    #[inline(always)]
    fn block(&self, at: usize) -> *mut u8 {
        // SAFETY: the masked number is below the number of blocks.
        unsafe { self.buffer.start().add((at & self.mask) * Block::<T>::STRIDE) }
    }

    /// The start of the last block in memory.
    fn last_block(&self) -> *mut u8 {
        self.block(self.mask)
    }

    /// Item `i` of block number `at`, `i` below [`Block::ITEMS`].
    fn item(&self, at: usize, i: usize) -> *const Slot<T> {
        debug_assert!(i < Block::<T>::ITEMS);
        // SAFETY: the slot lies inside the block and is aligned, because the block and FIRST are.
        unsafe { self.block(at).add(Block::<T>::FIRST + i * Block::<T>::ITEM).cast() }
    }

    /// How many items of block number `at` are published.
    #[inline(always)]
    fn published(&self, at: usize) -> usize {
        // SAFETY: `block` gives a block of this ring.
        let header = unsafe { Block::<T>::header(self.block(at)) }.load(Acquire);
        let filled = header.wrapping_sub(Block::<T>::tag(at));
        if filled <= Block::<T>::FULL { (filled - Block::<T>::FIRST) / Block::<T>::ITEM } else { 0 }
    }

    #[inline(always)]
    fn is_full(&self, at: usize) -> bool {
        self.published(at) == Block::<T>::ITEMS
    }

    /// The free slots from a place on, as far as they lie before the end of the ring's memory.
    #[cold]
    #[inline(never)]
    fn free_run(&self, next: *mut u8, line: *mut u8, lap: usize) -> Run<T> {
        let run = Run::empty(self, next, line, lap);
        let inside = position::<T>(run.place(self)).wrapping_sub(self.consumed.load(Acquire));
        let free = self.capacity - inside;
        let room = run.room();
        if free <= room { run.until(free) } else { run.through(self, 1 + (free - room) / Block::<T>::ITEMS) }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let per = Block::<T>::ITEMS;
        let (first, popped) = self.popped_to.load();
        let (last, pushed) = self.pushed_to.load();
        // A consumer that has drained a full block stands in the next one, where the producer does not yet.
        let count = position::<T>((last.wrapping_sub(first), pushed)).wrapping_sub(popped);
        drop_all(count, |i| {
            let slot = self.item(first.wrapping_add((popped + i) / per), (popped + i) % per);
            // SAFETY: both handles are gone, so what lies between the two places is published, not popped, and ours.
            unsafe { (*slot).with_mut(|slot| (*slot).assume_init_drop()) };
        });
        #[cfg(loom)]
        for at in 0..=self.mask {
            // SAFETY: loom's headers and cells own memory; they were initialised in `new` and are dropped once, here.
            unsafe {
                core::ptr::drop_in_place(self.block(at).cast::<AtomicUsize>());
                for i in 0..per {
                    core::ptr::drop_in_place(self.item(at, i).cast_mut());
                }
            }
        }
    }
}

/// What an end may use without a look at the other: the rest of a block, and whole blocks behind it (step 5).
struct Run<T> {
    /// The slot of the next item, or behind the last of the block.
    next: *mut u8,
    /// Behind the last slot of this block that may be used.
    end: *mut u8,
    /// The start of this block, and of the last one of the run. All blocks but the last may be used to their ends.
    line: *mut u8,
    last: *mut u8,
    /// A header less the pointer behind the last item it covers: the same for all blocks of a lap.
    delta: usize,
    /// The number of the block that lies first in memory, in this lap.
    lap: usize,
    items: PhantomData<*mut T>,
}

impl<T> Clone for Run<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Run<T> {}

impl<T> Run<T> {
    /// Field by field: the compiler would let a call that returns a run write it right here, and so know the address.
    #[inline(always)]
    fn set(&mut self, Self { next, end, line, last, delta, lap, items: PhantomData }: Self) {
        self.next = next;
        self.end = end;
        self.line = line;
        self.last = last;
        self.delta = delta;
        self.lap = lap;
    }

    /// The empty run at the start of block `at`.
    fn new(ring: &Ring<T>, at: usize) -> Self {
        let line = ring.block(at);
        Self::empty(ring, line.wrapping_add(Block::<T>::FIRST), line, at & !ring.mask)
    }

    /// The empty run at a place; at the start of the next block if it is the end of one.
    fn empty(ring: &Ring<T>, next: *mut u8, line: *mut u8, lap: usize) -> Self {
        let delta = Block::<T>::tag(lap).wrapping_sub(ring.buffer.start().addr());
        let run = Self { next, end: next, line, last: line, delta, lap, items: PhantomData };
        if run.room() == 0 { Self::new(ring, run.place(ring).0.wrapping_add(1)) } else { run }
    }

    /// The block and the item at which it stands.
    fn place(&self, ring: &Ring<T>) -> (usize, usize) {
        let block = (self.line.addr() - ring.buffer.start().addr()) / Block::<T>::STRIDE;
        // SAFETY: `next` is in the block that starts at `line`.
        (self.lap.wrapping_add(block), unsafe {
            Block::<T>::items(self.line.wrapping_add(Block::<T>::FIRST), self.next)
        })
    }

    /// How many slots the block has from here.
    fn room(&self) -> usize {
        // SAFETY: `next` is in the block that starts at `line`.
        unsafe { Block::<T>::items(self.next, self.line.wrapping_add(Block::<T>::FULL)) }
    }

    /// How many slots may be used now.
    #[inline(always)]
    fn len(&self) -> usize {
        // SAFETY: both are in the block that starts at `line`, and `next` does not pass `end`.
        unsafe { Block::<T>::items(self.next, self.end) }
    }

    /// Goes on to the next block of the run; there is one.
    #[inline(always)]
    fn step(&mut self) {
        self.line = self.line.wrapping_add(Block::<T>::STRIDE);
        self.next = self.line.wrapping_add(Block::<T>::FIRST);
        self.end = self.line.wrapping_add(Block::<T>::FULL);
    }

    /// The run of `count` slots of this block, at most as many as it has.
    fn until(self, count: usize) -> Self {
        Self { end: self.next.wrapping_add(count * Block::<T>::ITEM), last: self.line, ..self }
    }

    /// The run to the end of the `blocks`-th block from here, this one included, or the end of the ring's memory.
    fn through(self, ring: &Ring<T>, blocks: usize) -> Self {
        let left = (ring.last_block().addr() - self.line.addr()) / Block::<T>::STRIDE;
        let last = self.line.wrapping_add((blocks - 1).min(left) * Block::<T>::STRIDE);
        Self { end: self.line.wrapping_add(Block::<T>::FULL), last, ..self }
    }
}

impl sealed::Sealed for Lane {}

impl<T: Send> Design<T> for Lane {
    type Tuning = ();
    type Producer = LaneProducer<T>;
    type Consumer = LaneConsumer<T>;

    fn create(request: Request<'_, ()>) -> Result<(LaneProducer<T>, LaneConsumer<T>), ChannelError> {
        let Request { capacity, start, control, .. } = request;
        let shared = Shared::new(control, Ring::new(capacity, start)?);
        let run = Run::new(&shared.body, start);
        let exact = shared.body.release_every == 0;
        let producer = LaneProducer { run, halted: false, shared: shared.clone() };
        Ok((producer, LaneConsumer { told: run.next, run, exact, sealed: false, shared }))
    }

    fn release_lag(capacity: usize, _: &()) -> usize {
        release_every::<T>(capacity) * Block::<T>::ITEMS
    }
}

/// Blocks between two publications of the consumer's position: the largest power of two that withholds at most an eighth
/// of the capacity; 0 says that each pop publishes.
fn release_every<T>(capacity: usize) -> usize {
    let blocks = capacity / 8 / Block::<T>::ITEMS;
    if capacity < 64 || blocks == 0 { 0 } else { 1 << blocks.ilog2() }
}

/// Position of a block's item: a count of items that wraps around.
#[inline(always)]
fn position<T>((at, item): (usize, usize)) -> usize {
    at.wrapping_mul(Block::<T>::ITEMS).wrapping_add(item)
}

/// The producer's half.
#[doc(hidden)]
pub struct LaneProducer<T> {
    /// Free slots.
    run: Run<T>,
    halted: bool,
    shared: Arc<Shared<Ring<T>>>,
}

// SAFETY: the pointers point into the ring that `shared` keeps alive; the rest is Send.
unsafe impl<T: Send> Send for LaneProducer<T> {}

impl<T> LaneProducer<T> {
    #[inline(always)]
    fn ring(&self) -> &Ring<T> {
        &self.shared.body
    }

    /// Called when the run of this block is used up. Returns whether there is more.
    #[inline(always)]
    fn refill(&mut self) -> bool {
        if self.run.line != self.run.last {
            self.run.step();
            return true;
        }
        if !self.halted {
            let found = self.ring().free_run(self.run.next, self.run.line, self.run.lap);
            self.run.set(found);
        }
        self.run.next != self.run.end
    }
}

// SAFETY: a run covers only slots that the consumer has released (acquire of `consumed`), so the consumer is done with
// them; it reads an item only after it has acquired a header that covers it, which `publish` stores with release.
unsafe impl<T: Send> RawProducer<T> for LaneProducer<T> {
    const RUN: usize = Block::<T>::ITEMS;

    #[inline(always)]
    fn is_writable(&mut self) -> bool {
        self.run.next != self.run.end || self.refill()
    }

    #[inline(always)]
    fn writable(&mut self) -> usize {
        if self.is_writable() { self.run.len() } else { 0 }
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        n
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.run.next.wrapping_add(i * Block::<T>::ITEM).cast()
    }

    #[inline(always)]
    unsafe fn publish(&mut self, n: usize) {
        self.run.next = self.run.next.wrapping_add(n * Block::<T>::ITEM);
        let header = self.run.next.addr().wrapping_add(self.run.delta);
        // SAFETY: `line` is the current block of the ring.
        unsafe { Block::<T>::header(self.run.line) }.store(header, Release);
    }

    #[inline(always)]
    unsafe fn retract(&mut self, n: usize) {
        // The consumer, which has sealed, does not read the header any more.
        self.run.next = self.run.next.wrapping_sub(n * Block::<T>::ITEM);
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.halted = true;
        self.run.end = self.run.next;
        self.run.last = self.run.line;
    }

    fn position(&self) -> usize {
        position::<T>(self.run.place(self.ring()))
    }

    fn len(&mut self) -> usize {
        self.position().wrapping_sub(self.ring().consumed.load(Acquire))
    }

    fn capacity(&self) -> usize {
        self.ring().capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }

    #[inline(always)]
    unsafe fn retire(&mut self) {
        // SAFETY: nobody uses this half any more, so its share of the queue is taken out once.
        unsafe { retire_producer(ptr::read(&self.shared), self.run.next, self.run.line, self.run.lap) };
    }
}

/// By value, as all that is cold (step 5).
#[cold]
#[inline(never)]
fn retire_producer<T>(shared: Arc<Shared<Ring<T>>>, next: *mut u8, line: *mut u8, lap: usize) {
    shared.body.pushed_to.store(Run::empty(&shared.body, next, line, lap).place(&shared.body));
    shared.control.close_by_producer();
}

/// What the consumer keeps in mind from one run to the next.
#[derive(Clone, Copy)]
struct Notes {
    /// Blocks before this one are full.
    full_until: usize,
    /// For the blocks ahead.
    ahead: Slip,
    /// For the items of one block.
    within: Slip,
    /// Block and item behind the last item that may be popped.
    sealed: Option<(usize, usize)>,
}

impl Notes {
    fn new(start: usize) -> Self {
        let slip = Slip { failures: 0, abstain: 0 };
        Self { full_until: start, ahead: slip, within: slip, sealed: None }
    }
}

/// When to wait a moment for what is missing.
#[derive(Clone, Copy)]
struct Slip {
    /// Slips that failed in a row, and looks until the next one.
    failures: u32,
    abstain: u32,
}

impl Slip {
    /// Waits until `is_there`, or for as long as a slip may be; returns what `helped` then says of its use. Not at all while it
    /// abstains: false.
    #[inline(always)]
    fn wait(&mut self, is_there: impl Fn() -> bool, helped: impl FnOnce() -> bool) -> bool {
        if self.abstain > 0 {
            self.abstain -= 1;
            return false;
        }
        for _ in 0..SLIP_LOOKS {
            spin_loop();
            if is_there() {
                break;
            }
        }
        let helped = helped();
        self.failures = if helped { 0 } else { (self.failures + 1).min(MOST_FAILURES) };
        self.abstain = if helped { 0 } else { 1 << self.failures };
        helped
    }
}

/// The consumer's half.
#[doc(hidden)]
pub struct LaneConsumer<T> {
    /// Published items.
    run: Run<T>,
    /// The place whose position was published last. The same place in the next lap comes after other publications.
    told: *mut u8,
    /// The position is published with every pop.
    exact: bool,
    /// There is an end behind which nothing may be popped; see [`Notes`].
    sealed: bool,
    shared: Arc<Shared<Ring<T>>>,
}

// SAFETY: as for the producer's half.
unsafe impl<T: Send> Send for LaneConsumer<T> {}

impl<T> LaneConsumer<T> {
    #[inline(always)]
    fn ring(&self) -> &Ring<T> {
        &self.shared.body
    }

    #[inline(always)]
    fn at(&self) -> (usize, usize) {
        self.run.place(self.ring())
    }

    /// Called when the run of this block is used up. Returns whether there is more.
    #[inline(always)]
    fn refill(&mut self) -> bool {
        if self.run.line != self.run.last {
            leave::<T>(self.run.line, self.run.delta);
            self.run.step();
            let ahead = self.run.line.wrapping_add(Block::<T>::FETCH_AHEAD);
            // Not behind the run: there it would take the line away from the producer that still fills it.
            if ahead <= self.run.last {
                prefetch::read(ahead);
            }
            return true;
        }
        // More of a block that was begun, or nothing new in it: the case of small items that come singly, without a call.
        let popped = self.run.next.addr() - self.run.line.addr();
        if Block::<T>::IS_LINE && popped != Block::<T>::FIRST && popped != Block::<T>::FULL && !self.sealed {
            // SAFETY: `line` is the current block of the ring.
            let header = unsafe { Block::<T>::header(self.run.line) }.load(Acquire);
            let filled = header.wrapping_sub(self.run.delta).wrapping_sub(self.run.line.addr());
            self.run.end = self.run.line.wrapping_add(filled);
            if filled != popped || self.told == self.run.next {
                return filled != popped;
            }
        }
        let (found, told) = self.shared.next_run(self.run.next, self.run.line, self.run.lap, self.told);
        self.run.set(found);
        self.told = told;
        self.run.next != self.run.end
    }
}

impl<T> Shared<Ring<T>> {
    /// Leaves the run that ends at a place, and finds the next one: nothing, a part of a block, or many blocks. Publishes the
    /// position where it is due; `told` is the place that was published last.
    #[cold]
    #[inline(never)]
    fn next_run(&self, next: *mut u8, line: *mut u8, lap: usize, told: *mut u8) -> (Run<T>, *mut u8) {
        let ring = &self.body;
        let run = Run::empty(ring, next, line, lap);
        if run.line != line {
            leave::<T>(line, Block::<T>::tag(lap).wrapping_sub(ring.buffer.start().addr()));
        }
        let (at, popped) = run.place(ring);
        // The end of a block is the start of the next one.
        let mut told = if told == next { run.next } else { told };
        if popped == 0 && at & ring.release_every.wrapping_sub(1) == 0 && run.next != told {
            told = self.publish_position(&run);
        }
        // SAFETY: only the consumer reaches its notes, and nothing in here does a second time.
        let found = ring.notes.with_mut(|notes| ring.find(run, at, popped, unsafe { &mut *notes }));
        if found.next == found.end && found.next != told {
            told = self.publish_position(&found);
        }
        (found, told)
    }

    /// By value, see step 5.
    #[cold]
    #[inline(never)]
    fn publish_exactly(&self, next: *mut u8, line: *mut u8, lap: usize) {
        self.publish_position(&Run::empty(&self.body, next, line, lap));
    }

    /// Returns the place.
    #[inline(always)]
    fn publish_position(&self, run: &Run<T>) -> *mut u8 {
        let released = position::<T>(run.place(&self.body));
        self.body.consumed.store(released, Release);
        self.control.slots_freed(released);
        run.next
    }
}

/// Stores the header of a block that is full and used up once more, to take the line along: see step 2.
#[inline(always)]
fn leave<T>(line: *mut u8, delta: usize) {
    let header = line.addr().wrapping_add(Block::<T>::FULL).wrapping_add(delta);
    // SAFETY: `line` is the current block of the ring.
    unsafe { Block::<T>::header(line) }.store(header, Relaxed);
}

impl<T> Ring<T> {
    /// The run of items that may be popped from a place on.
    #[inline(always)]
    fn find(&self, run: Run<T>, at: usize, popped: usize, notes: &mut Notes) -> Run<T> {
        if let Some((block, item)) = notes.sealed {
            return if at == block { run.until(item - popped) } else { run.until(run.room()) };
        }
        if notes.full_until.wrapping_sub(at) as isize <= 0 {
            let mut published = self.published(at);
            if !Block::<T>::IS_LINE && published == popped + 1 && published != Block::<T>::ITEMS {
                // Waits for the next block, to leave the line of this header alone.
                let more = || self.published(at) >= popped + 3;
                notes.within.wait(|| self.published(at.wrapping_add(1)) != 0, more);
                published = self.published(at);
            }
            if published != Block::<T>::ITEMS {
                // Never far behind, or it would count as ahead once the numbers have gone half their way round.
                notes.full_until = at;
                return run.until(published.saturating_sub(popped));
            }
            self.look_ahead(at, notes);
        }
        // No further than to the next publication of the position.
        let most = self.release_every.max(1) - at % self.release_every.max(1);
        run.through(self, notes.full_until.wrapping_sub(at).min(most))
    }

    /// Finds out how many blocks from `at` on, which is full, are full: `take` or one.
    #[inline(always)]
    fn look_ahead(&self, at: usize, notes: &mut Notes) {
        notes.full_until = at.wrapping_add(1);
        let all = at.wrapping_add(self.take);
        let last = all.wrapping_sub(1);
        let full = || self.is_full(last);
        if full() || notes.ahead.wait(full, full) {
            notes.full_until = all;
        }
    }

    /// The place behind the last published item, seen from block `at`; never the end of a block, but the start of the next
    /// one.
    fn published_end(&self, at: usize) -> (usize, usize) {
        // Full blocks are a prefix of those ahead: the last one is found by bisection.
        let (mut full, mut not) = (0, self.mask + 2);
        while not - full > 1 {
            let middle = full + (not - full) / 2;
            if self.is_full(at.wrapping_add(middle - 1)) {
                full = middle;
            } else {
                not = middle;
            }
        }
        let block = at.wrapping_add(full);
        match self.published(block) {
            // Filled up since the bisection saw it.
            n if n == Block::<T>::ITEMS => (block.wrapping_add(1), 0),
            n => (block, n),
        }
    }
}

// SAFETY: a run covers only items whose header was acquired, or a later block's, which the producer stores after it. The
// producer writes to their slots again only after it has acquired `consumed` behind them.
unsafe impl<T: Send> RawConsumer<T> for LaneConsumer<T> {
    const RUN: usize = Block::<T>::ITEMS;

    #[inline(always)]
    fn is_readable(&mut self) -> bool {
        self.run.next != self.run.end || self.refill()
    }

    #[inline(always)]
    fn readable(&mut self) -> usize {
        if self.is_readable() { self.run.len() } else { 0 }
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        n
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.run.next.wrapping_add(i * Block::<T>::ITEM).cast()
    }

    #[inline(always)]
    unsafe fn release(&mut self, n: usize) {
        self.run.next = self.run.next.wrapping_add(n * Block::<T>::ITEM);
        if self.exact {
            self.shared.publish_exactly(self.run.next, self.run.line, self.run.lap);
            self.told = self.run.next;
        }
    }

    #[inline(always)]
    fn position(&self) -> usize {
        position::<T>(self.at())
    }

    fn len(&mut self) -> usize {
        // SAFETY: only the consumer reaches its notes.
        let sealed = self.ring().notes.with(|notes| unsafe { (*notes).sealed });
        let end = sealed.unwrap_or_else(|| self.ring().published_end(self.at().0));
        position::<T>(end).wrapping_sub(self.position())
    }

    fn seal(&mut self) -> usize {
        let end = self.ring().published_end(self.at().0);
        // SAFETY: only the consumer reaches its notes.
        self.ring().notes.with_mut(|notes| unsafe { (*notes).sealed = Some(end) });
        self.sealed = true;
        position::<T>(end)
    }

    fn capacity(&self) -> usize {
        self.ring().capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }

    #[inline(always)]
    unsafe fn retire(&mut self) {
        // SAFETY: nobody uses this half any more, so its share of the queue is taken out once.
        unsafe { retire_consumer(ptr::read(&self.shared), self.run.next, self.run.line, self.run.lap) };
    }
}

/// By value, as all that is cold (step 5).
#[cold]
#[inline(never)]
fn retire_consumer<T>(shared: Arc<Shared<Ring<T>>>, next: *mut u8, line: *mut u8, lap: usize) {
    let place = Run::empty(&shared.body, next, line, lap).place(&shared.body);
    shared.body.popped_to.store(place);
    shared.control.close_by_consumer(position::<T>(place));
}

impl<T> fmt::Debug for LaneProducer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneProducer").field("place", &self.run.place(self.ring())).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for LaneConsumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneConsumer").field("place", &self.at()).finish_non_exhaustive()
    }
}
