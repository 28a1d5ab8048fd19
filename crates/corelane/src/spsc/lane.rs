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
//! beyond. A block starts with a header: its absolute number, which does not repeat within a lap, above the count of items
//! published in it.
//!
//! 1. The producer writes an item into the current block and stores the header with the count raised by one. One line
//!    carries both, so one line moves from core to core where an index queue moves two. The consumer reads the header of
//!    its current block: the number tells whether the count is of this lap, and the count covers every item of the block.
//! 2. A consumer that finds many full blocks at a time says so (a hint in its state word). The producer then stores a block's
//!    header only when the block is full, and publishes single items in `pushed`, a word on lines of its own that the
//!    consumer reads only before it would say Empty. Two stores an item into a line that is still on its way from the other
//!    core cost twice as much as one; a store to a line that stays where it is costs nothing. When the consumer finds
//!    single items again it takes the hint back, and step 1 holds.
//! 3. No header is ever cleared: one left from the lap before has another number. But a consumer that leaves a block stores
//!    its header once more, unchanged: the producer then finds the line in one place, the consumer's cache, and not in
//!    both, which on some processors is what an upgrade from shared to exclusive waits for.
//! 4. The producer learns of free slots from `consumed`, which the consumer publishes every so many blocks (at most an
//!    eighth of the capacity) and before it says Empty, and which the producer caches.
//! 5. A consumer that finds the 32nd block from here full too takes all of them without looking at their headers
//!    again. When it is not full yet it may wait a moment for it (the slip), and abstains for longer after each time
//!    that did not help, so a slow producer's items are not held up.
//!
//! # Why it is so
//!
//! Measured on 2 CPUs of an AMD EPYC (Zen 4) sharing a level-3 cache, 8-byte items, capacity 2048, medians:
//!
//! | M items/s | one call an item | in slices of 64 |
//! |---|---|---|
//! | step 1 alone | 180 | 330 |
//! | steps 2 and 3 as well | 330 | 800 |
//! | the consumer fetches ahead only within blocks known to be full | 410 | 1060 |
//!
//! Fetching blocks for ownership ahead of the producer gained nothing and halved the rate of slices: it takes them away from
//! the consumer that is still reading. A bare loop over the same lines, two stores an item and no handle, does 1900 one item
//! at a time; a third store an item, to wherever, brings it down to 440. The handle's own count is that third store.
//! Keeping it in `pushed` itself did not help yet: what a block costs then weighs as much.
//!
//! # Synchronization
//!
//! - header, store-release (producer) → load-acquire (consumer): the items counted by it are written before they are read.
//!   A header's store also covers all earlier blocks, because the producer fills them in order: hence step 5.
//! - `pushed`, store-release (producer) → load-acquire (consumer): the same for items beyond the header. The consumer reads
//!   both before it says Empty; the push of every item has stored one of them.
//! - `consumed`, store-release (consumer) → load-acquire (producer): items are read, and the header of step 3 is stored,
//!   before the producer writes there again.
//! - The hint orders nothing: either way of publishing is seen whatever it says.
//! - Parking and closing: see [`crate::wait`].
//!
//! # Progress
//!
//! `try_push` is wait-free. `try_pop` is wait-free: the slip of step 5 makes a bounded number of looks.
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
use crate::sync::{Acquire, Arc, AtomicUsize, Padded, Relaxed, Release, Slot, spin_loop};
use core::fmt;
use core::marker::PhantomData;

/// The lane as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane;

super::aliases!(Lane);

/// How far ahead the consumer fetches: without it the consumer is the slower side and the queue stands full.
const FETCH_AHEAD_BYTES: usize = 8 * LINE;
/// Blocks that the consumer takes at once if the last of them is full.
pub(crate) const TAKE: usize = if cfg!(loom) { 2 } else { 32 };
/// How often a consumer that finds too few full blocks looks again before it takes what is there.
pub(super) const SLIP_LOOKS: u32 = if cfg!(loom) { 1 } else { 200 };
/// After that many failed slips in a row the abstention no longer doubles: at most 1,024 blocks between two slips.
pub(super) const MOST_FAILURES: u32 = 10;
/// Finds of many blocks in a row after which the consumer asks for whole blocks, and finds of less after which it asks for
/// single items again.
pub(super) const FINDS_TO_STREAM: u32 = if cfg!(loom) { 1 } else { 4 };
pub(super) const FINDS_TO_STOP: u32 = if cfg!(loom) { 1 } else { 32 };
/// The fewest blocks ahead for which asking pays.
const SMALLEST_STREAM: usize = if cfg!(loom) { 2 } else { 8 };
/// Bits of a header that count items.
const COUNT_BITS: u32 = 8;
const LINE: usize = 64;

/// The layout of blocks for items of type `T`.
pub(super) struct Block<T>(PhantomData<T>);

impl<T> Block<T> {
    const HEADER: usize = size_of::<AtomicUsize>();
    const ITEM: usize = size_of::<Slot<T>>();
    /// Offset of the first item.
    pub(super) const FIRST: usize = Self::HEADER.next_multiple_of(align_of::<Slot<T>>());
    /// Items in a block.
    pub(super) const ITEMS: usize = {
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
    pub(super) const ALIGN: usize = if align_of::<Slot<T>>() > LINE { align_of::<Slot<T>>() } else { LINE };
    pub(super) const STRIDE: usize = (Self::FIRST + Self::ITEMS * Self::ITEM).next_multiple_of(Self::ALIGN);
    pub(super) const FETCH_AHEAD: usize = FETCH_AHEAD_BYTES.div_ceil(Self::STRIDE);

    /// The header of block number `at` before anything is in it.
    #[inline(always)]
    pub(super) fn tag(at: usize) -> usize {
        at << COUNT_BITS
    }

    /// The header of the block that starts here.
    ///
    /// # Safety
    /// `block` is the start of a block of a living ring.
    #[inline(always)]
    pub(super) unsafe fn header<'a>(block: *mut u8) -> &'a AtomicUsize {
        // SAFETY: every block starts with an initialised header.
        unsafe { &*block.cast() }
    }

    /// Item `i` of the block that starts here. Valid for the items behind it, too.
    ///
    /// # Safety
    /// As for `header`, and `i < ITEMS`.
    #[inline(always)]
    pub(super) unsafe fn item(block: *mut u8, i: usize) -> *const Slot<T> {
        debug_assert!(i < Self::ITEMS);
        // SAFETY: the slot lies inside the block and is aligned, because the block and FIRST are.
        unsafe { block.add(Self::FIRST).cast::<Slot<T>>().add(i) }
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

    pub(super) fn store(&self, block: usize, item: usize) {
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
    /// Position behind the last item whose slot the consumer has given back. Written by the consumer.
    consumed: Padded<AtomicUsize>,
    /// Position behind the last item of a block that is published item by item though its header is not (step 2). Written
    /// by the producer, alone on its lines, read by a consumer that would otherwise say Empty.
    pushed: Padded<AtomicUsize>,
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
        // Enough that the slots of a block are free whenever fewer than `capacity` items are inside at its first item. Where
        // each pop publishes, that may already be so when the last item of a block was popped but its header not stored
        // again (step 3): then enough that one item of the next block has to be popped too.
        let reach = if release_every::<T>(capacity) == 0 { capacity } else { capacity - 1 };
        let blocks = reach
            .div_ceil(Block::<T>::ITEMS)
            .checked_add(1)
            .and_then(usize::checked_next_power_of_two)
            .filter(|&blocks| blocks <= usize::MAX >> (COUNT_BITS + 1))
            .ok_or(ChannelError::TooLarge)?;
        let buffer = Buffer::new(blocks, Block::<T>::STRIDE, Block::<T>::ALIGN)?;
        let ring = Self {
            buffer,
            mask: blocks - 1,
            capacity,
            consumed: Padded(AtomicUsize::new(position::<T>(start, 0))),
            pushed: Padded(AtomicUsize::new(position::<T>(start, 0))),
            popped_to: Place::new(start),
            pushed_to: Place::new(start),
            items: PhantomData,
        };
        for at in (0..blocks).map(|i| start.wrapping_add(i)) {
            let block = ring.block(at);
            // As if filled in the lap before: a number that no reader of this lap takes for its own.
            let header = Block::<T>::tag(at.wrapping_sub(blocks)).wrapping_add(Block::<T>::ITEMS);
            // SAFETY: the block lies inside the buffer, nobody else knows it yet.
            unsafe {
                block.cast::<AtomicUsize>().write(AtomicUsize::new(header));
                // Outside of loom an empty slot is any memory.
                #[cfg(loom)]
                for i in 0..Block::<T>::ITEMS {
                    let slot = block.add(Block::<T>::FIRST).cast::<Slot<T>>().add(i);
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

    /// How many items of block number `at` are published.
    #[inline(always)]
    fn published(&self, at: usize) -> usize {
        // SAFETY: `block` gives a block of this ring.
        let header = unsafe { Block::<T>::header(self.block(at)) }.load(Acquire);
        let ahead = header.wrapping_sub(Block::<T>::tag(at));
        if ahead <= Block::<T>::ITEMS { ahead } else { 0 }
    }

    #[inline(always)]
    fn is_full(&self, at: usize) -> bool {
        self.published(at) == Block::<T>::ITEMS
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let per = Block::<T>::ITEMS;
        let (first, popped) = self.popped_to.load();
        let (last, pushed) = self.pushed_to.load();
        // A consumer that has drained a full block stands in the next one, where the producer does not yet.
        let count = position::<T>(last.wrapping_sub(first), pushed).wrapping_sub(popped);
        drop_all(count, |i| {
            let block = self.block(first.wrapping_add((popped + i) / per));
            // SAFETY: both handles are gone, so what lies between the two places is published, not popped, and ours.
            unsafe { (*Block::<T>::item(block, (popped + i) % per)).with_mut(|slot| (*slot).assume_init_drop()) };
        });
        #[cfg(loom)]
        for at in 0..=self.mask {
            // SAFETY: loom's headers and cells own memory; they were initialised in `new` and are dropped once, here.
            unsafe {
                core::ptr::drop_in_place(self.block(at).cast::<AtomicUsize>());
                for i in 0..per {
                    core::ptr::drop_in_place(self.block(at).add(Block::<T>::FIRST).cast::<Slot<T>>().add(i));
                }
            }
        }
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
        let line = shared.body.block(start);
        let blocks = shared.body.mask + 1;
        let take = if blocks / 2 >= TAKE { TAKE } else { blocks / 2 };
        let producer = LaneProducer {
            line,
            tag: Block::<T>::tag(start),
            filled: 0,
            run_end: 0,
            free: capacity,
            at: start,
            header_from: 1,
            first: position::<T>(start, 0),
            halted: false,
            shared: shared.clone(),
        };
        let consumer = LaneConsumer {
            line,
            popped: 0,
            ready: 0,
            at: start,
            full_until: start,
            take,
            release_mask: release_every::<T>(capacity).wrapping_sub(1),
            exact: release_every::<T>(capacity) == 0,
            released: position::<T>(start, 0),
            failures: 0,
            abstain: 0,
            streaming: false,
            contrary: 0,
            sealed: None,
            shared,
        };
        Ok((producer, consumer))
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

/// Position of an item: a count of items that wraps around.
#[inline(always)]
pub(super) fn position<T>(at: usize, item: usize) -> usize {
    at.wrapping_mul(Block::<T>::ITEMS).wrapping_add(item)
}

/// The producer's half.
#[doc(hidden)]
pub struct LaneProducer<T> {
    /// The current block, its number and its header when empty.
    line: *mut u8,
    at: usize,
    tag: usize,
    /// Items published in the current block.
    filled: usize,
    /// Items of the current block that may be filled; behind them the block ends or the known free slots do.
    run_end: usize,
    /// Slots known to be free behind `run_end`.
    free: usize,
    /// The count from which on the current block's header is kept up to date: 1, or the whole block.
    header_from: usize,
    /// Position of the current block's first item.
    first: usize,
    halted: bool,
    shared: Arc<Shared<Ring<T>>>,
}

// SAFETY: the pointer points into the ring that `shared` keeps alive; the rest is Send.
unsafe impl<T: Send> Send for LaneProducer<T> {}

impl<T> LaneProducer<T> {
    #[inline(always)]
    fn ring(&self) -> &Ring<T> {
        &self.shared.body
    }

    /// Opens the next run: the next block, or what became free of this one.
    #[inline(always)]
    fn next_run(&mut self) {
        if self.free == 0 && !self.look_for_free() {
            return;
        }
        if self.filled == Block::<T>::ITEMS {
            self.at = self.at.wrapping_add(1);
            if self.at & self.ring().mask == 0 {
                // Once a lap, so that it never falls half the number range behind and looks ahead of the consumer. Release,
                // because a consumer whose look at the header came too early takes the last items by this.
                self.ring().pushed.store(self.first.wrapping_add(self.filled), Release);
            }
            self.line = self.ring().block(self.at);
            self.tag = Block::<T>::tag(self.at);
            self.filled = 0;
            self.first = self.first.wrapping_add(Block::<T>::ITEMS);
            self.header_from = if self.shared.control.consumer.is_streaming() { Block::<T>::ITEMS } else { 1 };
        }
        let run = self.free.min(Block::<T>::ITEMS - self.filled);
        self.run_end = self.filled + run;
        self.free -= run;
    }

    /// Called with no slot known to be free.
    #[cold]
    #[inline(never)]
    fn look_for_free(&mut self) -> bool {
        if self.halted {
            return false;
        }
        let inside = position::<T>(self.at, self.filled).wrapping_sub(self.ring().consumed.load(Acquire));
        self.free = self.ring().capacity - inside;
        self.free != 0
    }
}

// SAFETY: `run_end` and `free` count only slots that the consumer has released (acquire of `consumed`), so the consumer is
// done with them; it reads an item only after it has acquired a header that counts it, which `publish` stores with release.
unsafe impl<T: Send> RawProducer<T> for LaneProducer<T> {
    const RUN: usize = Block::<T>::ITEMS;

    #[inline(always)]
    fn writable(&mut self) -> usize {
        if self.filled == self.run_end {
            self.next_run();
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
            // SAFETY: `line` is the current block of the ring.
            unsafe { Block::<T>::header(self.line) }.store(self.tag.wrapping_add(self.filled), Release);
        } else {
            self.ring().pushed.store(self.first.wrapping_add(self.filled), Release);
        }
    }

    unsafe fn retract(&mut self, n: usize) {
        // The consumer, which has sealed, reads neither the header nor `pushed` any more.
        self.filled -= n;
    }

    fn halt(&mut self) {
        self.halted = true;
        self.free = 0;
        self.run_end = self.filled;
    }

    fn position(&self) -> usize {
        position::<T>(self.at, self.filled)
    }

    fn len(&mut self) -> usize {
        position::<T>(self.at, self.filled).wrapping_sub(self.ring().consumed.load(Acquire))
    }

    fn capacity(&self) -> usize {
        self.ring().capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl<T> Drop for LaneProducer<T> {
    fn drop(&mut self) {
        self.ring().pushed_to.store(self.at, self.filled);
    }
}

/// The consumer's half.
#[doc(hidden)]
pub struct LaneConsumer<T> {
    /// The current block and its number.
    line: *mut u8,
    at: usize,
    /// Items popped from the current block.
    popped: usize,
    /// Items of it known to be published.
    ready: usize,
    /// Blocks before this one are full.
    full_until: usize,
    /// Blocks that are looked ahead; at most half the ring.
    take: usize,
    /// The position is published when the block number has none of these bits.
    release_mask: usize,
    /// The position is published with every pop.
    exact: bool,
    /// The position published last.
    released: usize,
    /// Slips that failed in a row, and looks until the next one.
    failures: u32,
    abstain: u32,
    /// Whether the producer was asked to publish whole blocks, and how many finds in a row spoke for the contrary.
    streaming: bool,
    contrary: u32,
    /// Block and item behind the last item that may be popped.
    sealed: Option<(usize, usize)>,
    shared: Arc<Shared<Ring<T>>>,
}

// SAFETY: as for the producer's half.
unsafe impl<T: Send> Send for LaneConsumer<T> {}

impl<T> LaneConsumer<T> {
    #[inline(always)]
    fn ring(&self) -> &Ring<T> {
        &self.shared.body
    }

    /// Called when the current run is used up: goes on to the next block, or to what was published since in this one.
    #[inline(always)]
    fn refill(&mut self) {
        if self.popped == Block::<T>::ITEMS {
            // The same value again, to take the line along: see step 3.
            // SAFETY: `line` is the current block of the ring.
            unsafe { Block::<T>::header(self.line) }.store(Block::<T>::tag(self.at).wrapping_add(self.popped), Relaxed);
            self.at = self.at.wrapping_add(1);
            self.line = self.ring().block(self.at);
            self.popped = 0;
            self.ready = 0;
            let ahead = self.at.wrapping_add(Block::<T>::FETCH_AHEAD);
            if self.full_until.wrapping_sub(ahead) as isize > 0 {
                prefetch::read(self.ring().block(ahead));
            }
            if self.at & self.release_mask == 0 {
                self.publish_position();
            }
        }
        if self.popped == 0 && self.full_until.wrapping_sub(self.at) as isize > 0 {
            self.ready = Block::<T>::ITEMS;
        } else {
            self.look();
        }
    }

    /// Finds out how many items of the current block are ready, and whether many blocks are.
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        // Never far behind, or it would count as ahead once the numbers have gone half their way round.
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
        if self.ready == self.popped && self.released != position::<T>(self.at, self.popped) {
            self.publish_position();
        }
    }

    /// Items published in the current block: what its header says, or what `pushed` says beyond it.
    fn published(&self) -> usize {
        let counted = self.ring().published(self.at);
        if counted > self.popped {
            return counted;
        }
        let pushed = self.ring().pushed.load(Acquire).wrapping_sub(position::<T>(self.at, 0)) as isize;
        Block::<T>::ITEMS.min(pushed.max(0) as usize).max(self.popped)
    }

    /// Tries to find the next `take` blocks full.
    fn look_ahead(&mut self) -> bool {
        let Some(ahead) = self.take.checked_sub(1) else { return false };
        let last = self.at.wrapping_add(ahead);
        if self.ring().is_full(last) {
            self.full_until = last.wrapping_add(1);
            return true;
        }
        if self.abstain > 0 {
            self.abstain -= 1;
            return false;
        }
        for _ in 0..SLIP_LOOKS {
            spin_loop();
            if self.ring().is_full(last) {
                self.full_until = last.wrapping_add(1);
                self.failures = 0;
                return true;
            }
        }
        self.failures = (self.failures + 1).min(MOST_FAILURES);
        self.abstain = 1 << self.failures;
        false
    }

    /// Takes note of a find, many blocks or a part of one, and tells the producer when the kind of traffic has changed.
    fn rate(&mut self, many: bool) {
        if many == self.streaming {
            self.contrary = 0;
            return;
        }
        self.contrary += 1;
        if self.contrary == if many { FINDS_TO_STREAM } else { FINDS_TO_STOP } && self.take >= SMALLEST_STREAM {
            self.contrary = 0;
            self.streaming = many;
            self.shared.control.consumer.set_streaming(many);
        }
    }

    #[inline(always)]
    fn publish_position(&mut self) {
        self.released = position::<T>(self.at, self.popped);
        self.ring().consumed.store(self.released, Release);
        self.shared.control.slots_freed(self.released);
    }

    /// The place behind the last published item; never the end of a block, but the start of the next one.
    fn published_end(&self) -> (usize, usize) {
        // Full blocks are a prefix of those ahead: the last one is found by bisection.
        let (mut full, mut not) = (0, self.ring().mask + 2);
        while not - full > 1 {
            let middle = full + (not - full) / 2;
            if self.ring().is_full(self.at.wrapping_add(middle - 1)) {
                full = middle;
            } else {
                not = middle;
            }
        }
        let block = self.at.wrapping_add(full);
        let counted = self.ring().published(block);
        let pushed = self.ring().pushed.load(Acquire).wrapping_sub(position::<T>(block, 0)) as isize;
        match counted.max(Block::<T>::ITEMS.min(pushed.max(0) as usize)) {
            // Filled up since the bisection saw it.
            n if n == Block::<T>::ITEMS => (block.wrapping_add(1), 0),
            n => (block, n),
        }
    }
}

// SAFETY: `ready` and `full_until` count only items whose header was acquired, or a later block's, which the producer
// stores after it. The producer writes to their slots again only after it has acquired `consumed` behind them.
unsafe impl<T: Send> RawConsumer<T> for LaneConsumer<T> {
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
        if self.exact {
            self.publish_position();
        }
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
        self.ring().capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl<T> Drop for LaneConsumer<T> {
    fn drop(&mut self) {
        self.ring().popped_to.store(self.at, self.popped);
    }
}

impl<T> fmt::Debug for LaneProducer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneProducer").field("block", &self.at).field("item", &self.filled).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for LaneConsumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneConsumer").field("block", &self.at).field("item", &self.popped).finish_non_exhaustive()
    }
}
