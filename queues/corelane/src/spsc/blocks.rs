//! Blocks of items behind a header, the runs of them that an end of a queue works in, and the two halves of such a
//! queue: the part that [`lane`](super::lane) and [`linked`](super::linked) have in common. How blocks and runs work,
//! and what orders the accesses, is told there. Where the blocks lie is the difference: [`Blocks`].
//! `docs/benchmarks.md` has the figures behind the constants ("What single decisions bring").

use super::design::{RawConsumer, RawProducer, Shared, copy_in, copy_out, release_each};
use crate::end::Control;
use crate::prefetch;
use crate::sync::{Acquire, Arc, AtomicUsize, Relaxed, Release, Slot, init_slot, spin_loop};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr;

/// How far ahead the consumer fetches: without it the consumer is the slower side and the queue stands full.
///
/// It is a constant, because a value in the handle is one register too many for single calls. The handle also holds
/// what is known to be full behind the run, and how far ahead a producer asks for lines to write to.
const FETCH_AHEAD_BYTES: usize = 8 * LINE;
/// Blocks of one line that the consumer takes at once if the last of them is full.
const TAKE: usize = if cfg!(corelane_loom) { 2 } else { 32 };
/// Blocks that the consumer takes at once if not so many are full. One by one, each block costs a look for the next.
/// The number may not be much smaller: a consumer that follows block by block without that look takes the lines away
/// from a producer that is about to write them, and is slower on all but the longest jobs.
const FEWER: usize = 8;
/// Bytes in longer blocks that the consumer takes at once. It then stays so far behind the producer that it does not
/// fetch the lines that are being written.
const TAKE_BYTES: usize = 16 * 1024;
/// How often a consumer that finds too few full blocks looks again before it takes what is there. That is about as long
/// as a producer at full speed takes for what is missing. With more looks slow items wait longer at the same full rate.
/// With fewer, single jobs of a dispatcher and items of 256 bytes move more slowly.
const SLIP_LOOKS: u32 = if cfg!(corelane_loom) { 1 } else { 40 };
/// After that many failed slips in a row the abstention no longer doubles: at most 1,024 blocks between two slips.
const MOST_FAILURES: u32 = 10;
/// Blocks that are filled at most until the producer looks whether the consumer sleeps.
const COPIES: usize = 32;
const LINE: usize = 64;

/// What a model finds in a header that was never written.
#[cfg(corelane_loom)]
pub(super) const UNWRITTEN: usize = usize::MAX;

/// The layout of blocks for items of type `T`.
pub(super) struct Block<T>(PhantomData<T>);

impl<T> Block<T> {
    const HEADER: usize = size_of::<AtomicUsize>();
    /// Distance of two items. Items of size 0 are counted by their places too.
    pub(super) const ITEM: usize = if size_of::<Slot<T>>() == 0 { align_of::<Slot<T>>() } else { size_of::<Slot<T>>() };
    /// The least offset of the first item.
    const LEAST: usize = Self::HEADER.next_multiple_of(align_of::<Slot<T>>());
    /// Items in a block.
    pub(super) const ITEMS: usize = {
        // The fewest lines of which at most an eighth goes to the header or stays unused: one for 8 bytes and for 56,
        // two for 16, 24 and 40, four for 32 and 48. Larger items always do, seven at a time. One line for items of 16
        // and 24 bytes, of which they fill three quarters, makes a round trip shorter and a stream much slower.
        let mut lines = 1;
        loop {
            let items = (lines * LINE).saturating_sub(Self::LEAST) / Self::ITEM;
            if cfg!(corelane_loom) {
                break 2;
            } else if items * Self::ITEM * 8 >= lines * LINE * 7 && Self::ITEM < LINE {
                break items;
            } else if lines == 4 {
                break 7;
            }
            lines += 1;
        }
    };
    pub(super) const ALIGN: usize = if align_of::<Slot<T>>() > LINE { align_of::<Slot<T>>() } else { LINE };
    pub(super) const STRIDE: usize = (Self::LEAST + Self::ITEMS * Self::ITEM).next_multiple_of(Self::ALIGN);
    /// Offset behind the last item, and the header of a full block less its tag.
    pub(super) const FULL: usize = if Self::IS_LINE { Self::LEAST + Self::ITEMS * Self::ITEM } else { Self::STRIDE };
    /// Offset of the first item. In a block of several lines what is left over lies in front of it: so items of whole
    /// lines lie in lines of their own, where no item shares one with the next, which the other end may be busy with.
    pub(super) const FIRST: usize = Self::FULL - Self::ITEMS * Self::ITEM;
    /// A block is one line. Loom has larger words, and has models of both.
    const IS_LINE: bool = if cfg!(corelane_loom) { size_of::<T>() <= size_of::<usize>() } else { Self::STRIDE == LINE };
    /// Blocks that the consumer takes at once.
    pub(super) const TAKE: usize = if Self::IS_LINE || cfg!(corelane_loom) {
        TAKE
    } else {
        let blocks = TAKE_BYTES / Self::STRIDE;
        if blocks == 0 { 1 } else { blocks }
    };
    const FETCH_AHEAD: usize = FETCH_AHEAD_BYTES.div_ceil(Self::STRIDE) * Self::STRIDE;
    /// From a block of which it has seen an item, a consumer looks at the headers of so many blocks at most, that one
    /// included.
    pub(super) const REACH: usize = if Self::TAKE < 2 { 2 } else { Self::TAKE };

    /// The place of block number `at` in bytes, which wraps around: what its headers are counted from.
    #[inline(always)]
    pub(super) fn tag(at: usize) -> usize {
        at.wrapping_mul(Self::STRIDE)
    }

    /// The header of the block that starts here.
    ///
    /// # Safety
    /// `block` is the start of a living block.
    #[inline(always)]
    pub(super) unsafe fn header<'a>(block: *mut u8) -> &'a AtomicUsize {
        // SAFETY: the caller's; every block starts with its header.
        unsafe { &*block.cast() }
    }

    /// Where the block that starts here is filled to, counted from `tag`.
    ///
    /// # Safety
    /// As for `header`, and the header is written.
    #[inline(always)]
    unsafe fn filled(block: *mut u8, tag: usize) -> usize {
        // SAFETY: the caller's.
        let header = unsafe { Self::header(block) }.load(Acquire);
        #[cfg(corelane_loom)]
        assert_ne!(header, UNWRITTEN, "a header was read before it was written");
        header.wrapping_sub(tag)
    }

    /// How many items of block number `at`, which starts here, are published.
    ///
    /// # Safety
    /// As for `filled`.
    #[inline(always)]
    pub(super) unsafe fn published(block: *mut u8, at: usize) -> usize {
        // SAFETY: the caller's.
        let filled = unsafe { Self::filled(block, Self::tag(at)) };
        // A header from before, of a block with a lower number, is a place far ahead of this one.
        if filled <= Self::FULL { (filled - Self::FIRST) / Self::ITEM } else { 0 }
    }

    /// Item `i` of the block that starts here.
    ///
    /// # Safety
    /// As for `header`, and `i` is below [`ITEMS`](Self::ITEMS).
    #[inline(always)]
    pub(super) unsafe fn item(block: *mut u8, i: usize) -> *const Slot<T> {
        debug_assert!(i < Self::ITEMS);
        // SAFETY: the slot lies inside the block and is aligned, because the block and FIRST are.
        unsafe { block.add(Self::FIRST + i * Self::ITEM).cast() }
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

    /// Writes a block's header for the first time, and makes its slots.
    ///
    /// # Safety
    /// `block` is the start of a block's memory that no other thread knows.
    pub(super) unsafe fn init(block: *mut u8, header: usize) {
        // SAFETY: the caller's.
        unsafe {
            block.cast::<AtomicUsize>().write(AtomicUsize::new(header));
            for i in 0..Self::ITEMS {
                init_slot(Self::item(block, i).cast_mut());
            }
        }
    }

    /// Takes along the lines of the block that starts here, but for the first: a word of each is written, it does not
    /// matter what.
    ///
    /// # Safety
    /// The block is living, and its slots are the caller's, to write there, with nothing in them.
    #[inline(always)]
    unsafe fn take_along(block: *mut u8) {
        #[cfg(not(corelane_loom))]
        {
            // What is in front of the items is never used.
            let mut at = if Self::FIRST < LINE { LINE } else { Self::FIRST - Self::FIRST % LINE };
            while at < Self::STRIDE {
                // SAFETY: lines are aligned, and this one lies in the block, behind its first slot. Volatile, as it is
                // never read.
                unsafe { block.add(at).cast::<usize>().write_volatile(0) };
                at += LINE;
            }
        }
        #[cfg(corelane_loom)]
        for i in 0..if Self::IS_LINE { 0 } else { Self::ITEMS } {
            // SAFETY: the caller's.
            unsafe { (*Self::item(block, i)).with_mut(|_| ()) };
        }
    }

    /// Undoes [`init`](Self::init).
    ///
    /// # Safety
    /// `block` was initialised, and no thread will use it any more. What its slots hold is not dropped.
    #[cfg(corelane_loom)]
    pub(super) unsafe fn deinit(block: *mut u8) {
        // SAFETY: the caller's.
        unsafe {
            core::ptr::drop_in_place(block.cast::<AtomicUsize>());
            for i in 0..Self::ITEMS {
                core::ptr::drop_in_place(Self::item(block, i).cast_mut());
            }
        }
    }
}

/// Position of a block's item: a count of items that wraps around.
#[inline(always)]
pub(super) fn position<T>((at, item): (usize, usize)) -> usize {
    at.wrapping_mul(Block::<T>::ITEMS).wrapping_add(item)
}

/// Where an end stood when its handle was dropped: a block number and an item in it, as positions wrap around and
/// cannot be divided back into these; and the number of the block that lies first in memory there.
pub(super) struct Place {
    block: AtomicUsize,
    item: AtomicUsize,
    base: AtomicUsize,
}

impl Place {
    pub(super) fn new(block: usize, base: usize) -> Self {
        Self { block: AtomicUsize::new(block), item: AtomicUsize::new(0), base: AtomicUsize::new(base) }
    }

    fn store<T>(&self, run: &Run<T>) {
        let (block, item) = run.place();
        self.block.store(block, Relaxed);
        self.item.store(item, Relaxed);
        self.base.store(run.base, Relaxed);
    }

    pub(super) fn load(&self) -> (usize, usize) {
        (self.block.load(Relaxed), self.item.load(Relaxed))
    }

    pub(super) fn base(&self) -> usize {
        self.base.load(Relaxed)
    }
}

/// What an end may use without a look at the other: the rest of a block, and whole blocks behind it.
///
/// Its blocks lie side by side in memory, among others that are numbered on in the same way: those of a ring in one
/// lap, or of a segment.
pub(super) struct Run<T> {
    /// The slot of the next item, or behind the last of the block.
    pub(super) next: *mut u8,
    /// Behind the last slot of this block that may be used.
    pub(super) end: *mut u8,
    /// The start of this block, and of the last one of the run. All blocks behind this one may be used to their ends.
    pub(super) line: *mut u8,
    pub(super) last: *mut u8,
    /// A header less the pointer behind the last item it covers: the same for all blocks numbered on.
    pub(super) delta: usize,
    /// The number of the block that lies first in memory.
    pub(super) base: usize,
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
    pub(super) fn set(&mut self, Self { next, end, line, last, delta, base, items: PhantomData }: Self) {
        self.next = next;
        self.end = end;
        self.line = line;
        self.last = last;
        self.delta = delta;
        self.base = base;
    }

    /// The empty run at a place in the block that starts at `line`, among those numbered from `base` that lie from
    /// `first` on.
    #[inline(always)]
    pub(super) fn at(first: *mut u8, base: usize, line: *mut u8, next: *mut u8) -> Self {
        let delta = Block::<T>::tag(base).wrapping_sub(first.addr());
        Self { next, end: next, line, last: line, delta, base, items: PhantomData }
    }

    /// As `at`, at the start of a block.
    #[inline(always)]
    pub(super) fn at_start(first: *mut u8, base: usize, line: *mut u8) -> Self {
        Self::at(first, base, line, line.wrapping_add(Block::<T>::FIRST))
    }

    /// The block and the item at which it stands.
    #[inline(always)]
    pub(super) fn place(&self) -> (usize, usize) {
        let ahead = self.line.addr().wrapping_add(self.delta).wrapping_sub(Block::<T>::tag(self.base));
        // SAFETY: `next` is in the block that starts at `line`.
        let item = unsafe { Block::<T>::items(self.line.wrapping_add(Block::<T>::FIRST), self.next) };
        (self.base.wrapping_add(ahead / Block::<T>::STRIDE), item)
    }

    /// How many slots the block has from here.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        // SAFETY: `next` is in the block that starts at `line`.
        unsafe { Block::<T>::items(self.next, self.line.wrapping_add(Block::<T>::FULL)) }
    }

    /// How many slots may be used now.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        // SAFETY: both are in the block that starts at `line`, and `next` does not pass `end`.
        unsafe { Block::<T>::items(self.next, self.end) }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.end
    }

    /// Goes on to the next block of the run; there is one.
    #[inline(always)]
    fn step(&mut self) {
        self.line = self.line.wrapping_add(Block::<T>::STRIDE);
        self.next = self.line.wrapping_add(Block::<T>::FIRST);
        self.end = self.line.wrapping_add(Block::<T>::FULL);
    }

    /// The run of `count` slots of this block, at most as many as it has.
    #[inline(always)]
    pub(super) fn until(self, count: usize) -> Self {
        Self { end: self.next.wrapping_add(count * Block::<T>::ITEM), last: self.line, ..self }
    }

    /// How many blocks lie behind this one up to `last`.
    #[inline(always)]
    pub(super) fn blocks_to(&self, last: *mut u8) -> usize {
        (last.addr() - self.line.addr()) / Block::<T>::STRIDE
    }

    /// The run to the end of the `blocks`-th block from here, this one included, but not beyond the block at `most`.
    ///
    /// As all of a run that is used between two runs, it is compiled into its caller: a run that passes through memory
    /// is stored field by field and loaded in pairs, which a processor cannot forward. A lane's batches of 16 were
    /// slower by a fifth.
    #[inline(always)]
    pub(super) fn through(self, blocks: usize, most: *mut u8) -> Self {
        let last = self.line.wrapping_add((blocks - 1).min(self.blocks_to(most)) * Block::<T>::STRIDE);
        Self { end: self.line.wrapping_add(Block::<T>::FULL), last, ..self }
    }

    /// The i-th slot from here.
    #[inline(always)]
    pub(super) fn slot(&self, i: usize) -> *const Slot<T> {
        self.next.wrapping_add(i * Block::<T>::ITEM).cast()
    }

    /// Goes on by n slots.
    #[inline(always)]
    pub(super) fn pass(&mut self, n: usize) {
        self.next = self.next.wrapping_add(n * Block::<T>::ITEM);
    }

    /// Producer: goes on to the next block of the run, when this one is used up. False says that there is none.
    #[inline(always)]
    pub(super) fn enter_next(&mut self) -> bool {
        let more = self.line != self.last;
        if more {
            self.step();
        }
        more
    }

    /// Producer: publishes n items.
    ///
    /// # Safety
    /// The next n slots are the producer's, and hold items.
    #[inline(always)]
    pub(super) unsafe fn publish(&mut self, n: usize) {
        self.pass(n);
        let header = self.next.addr().wrapping_add(self.delta);
        // SAFETY: `line` is the current block of a living queue.
        unsafe { Block::<T>::header(self.line) }.store(header, Release);
    }

    /// Producer: moves items from the memory at `from` into this block and those behind it, as many as the run has room
    /// for, but at most `most` and no more than [`COPIES`] blocks, and publishes each block.
    ///
    /// The caller's run is a copy in registers. In a handle that lies in memory each block's places would go through a
    /// store and a load, which take longer than the copy.
    ///
    /// # Safety
    /// The run's slots are the producer's, and there is one; there are `most` items at `from`.
    #[inline(always)]
    pub(super) unsafe fn publish_moved(&mut self, from: *const T, most: usize) -> usize {
        let most = most.min(COPIES * Block::<T>::ITEMS);
        // What is left of this block, whole blocks, and a part of one.
        let mut done = self.len().min(most);
        // SAFETY: the caller's promise; the source cannot overlap the slots, because no reference to a slot exists.
        unsafe {
            copy_in(self.slot(0), from, done, Block::<T>::ITEMS);
            self.publish(done);
        }
        while most - done >= Block::<T>::ITEMS && self.enter_next() {
            // SAFETY: as above; the block is entered at its start, and may be used to its end.
            unsafe {
                copy_in(self.slot(0), from.add(done), Block::<T>::ITEMS, Block::<T>::ITEMS);
                self.publish(Block::<T>::ITEMS);
            }
            done += Block::<T>::ITEMS;
        }
        if done < most && self.enter_next() {
            // SAFETY: as above.
            unsafe {
                copy_in(self.slot(0), from.add(done), most - done, Block::<T>::ITEMS);
                self.publish(most - done);
            }
            done = most;
        }
        done
    }

    /// Consumer: moves the run's items to the memory at `to`, at most `most`, and leaves the blocks that are used up.
    ///
    /// # Safety
    /// The run's items are the consumer's, and there is one; there is room for `most`, and the caller owns what is
    /// moved there.
    #[inline(always)]
    pub(super) unsafe fn move_to(&mut self, to: *mut MaybeUninit<T>, most: usize) -> usize {
        let mut done = self.len().min(most);
        // SAFETY: the caller's promise.
        unsafe { copy_out(self.slot(0), to, done, Block::<T>::ITEMS) };
        self.pass(done);
        while most - done >= Block::<T>::ITEMS && self.line != self.last {
            self.go_on();
            // SAFETY: as above; all of a block that is not the run's first is the consumer's.
            unsafe { copy_out(self.slot(0), to.add(done), Block::<T>::ITEMS, Block::<T>::ITEMS) };
            self.pass(Block::<T>::ITEMS);
            done += Block::<T>::ITEMS;
        }
        if done < most && self.line != self.last {
            self.go_on();
            // SAFETY: as above.
            unsafe { copy_out(self.slot(0), to.add(done), most - done, Block::<T>::ITEMS) };
            self.pass(most - done);
            done = most;
        }
        done
    }

    /// Consumer: moves the run's items to `each`, one by one and at most `most`, and leaves the blocks that are used
    /// up. If `each` panics, the run goes on behind the item that it was given.
    ///
    /// As in [`publish_moved`](Self::publish_moved) the loop's run is a copy in registers. The items of a full block
    /// are written out one by one in the code, which is quicker for batches of short jobs.
    ///
    /// # Safety
    /// The run's items are the consumer's, and there is one.
    #[inline(always)]
    pub(super) unsafe fn give(&mut self, most: usize, each: &mut impl FnMut(T)) -> usize {
        let mut at = Giving { run: *self, home: self };
        let mut done = 0;
        let mut next = |run: &mut Self| {
            let slot = run.slot(0);
            run.pass(1);
            // SAFETY: the caller's, and passed before anything can fail.
            each(unsafe { (*slot).with(|slot| (*slot).assume_init_read()) });
        };
        loop {
            let n = at.run.len().min(most - done);
            if n == Block::<T>::ITEMS {
                (0..Block::<T>::ITEMS).for_each(|_| next(&mut at.run));
            } else {
                (0..n).for_each(|_| next(&mut at.run));
            }
            done += n;
            if done == most || at.run.line == at.run.last {
                return done;
            }
            at.run.go_on();
        }
    }

    /// Producer: takes back n items. The consumer, which has sealed, does not read their headers any more.
    #[cold]
    pub(super) fn retract(&mut self, n: usize) {
        let mut left = n;
        loop {
            // SAFETY: `next` is in the block that starts at `line`.
            let here = unsafe { Block::<T>::items(self.line.wrapping_add(Block::<T>::FIRST), self.next) };
            let back = left.min(here);
            self.next = self.next.wrapping_sub(back * Block::<T>::ITEM);
            left -= back;
            if left == 0 {
                return;
            }
            // The items of one publication lie in blocks side by side.
            self.line = self.line.wrapping_sub(Block::<T>::STRIDE);
            self.next = self.line.wrapping_add(Block::<T>::FULL);
            self.end = self.next;
            self.last = self.line;
        }
    }

    /// Producer: gives up all that may still be used.
    #[inline(always)]
    pub(super) fn halt(&mut self) {
        self.end = self.next;
        self.last = self.line;
    }

    /// Consumer: leaves this block, which is full and used up, for the next of the run; there is one.
    #[inline(always)]
    fn go_on(&mut self) {
        // SAFETY: the block is used up, and released no sooner than with an item of the next one.
        unsafe { leave::<T>(self.line, self.delta) };
        self.step();
        let ahead = self.line.wrapping_add(Block::<T>::FETCH_AHEAD);
        // Not behind the run: there it would take the line away from the producer that still fills it.
        if ahead <= self.last {
            prefetch::read(ahead);
        }
    }

    /// Consumer: goes on when this block's part of the run is used up: to the next block, or to more of this one. It
    /// makes no call where it can. Returns whether there is more; `None` if the next run has to be looked for.
    ///
    /// Before the consumer finds nothing it publishes where it is. `told` is the place that it published last.
    #[inline(always)]
    pub(super) fn advance(&mut self, sealed: bool, told: *mut u8) -> Option<bool> {
        if self.line != self.last {
            self.go_on();
            return Some(true);
        }
        // More of a block that was begun, or nothing new in it: the case of small items that come singly.
        let popped = self.next.addr() - self.line.addr();
        if !Block::<T>::IS_LINE || popped == Block::<T>::FIRST || popped == Block::<T>::FULL || sealed {
            return None;
        }
        // SAFETY: `line` is the current block of a living queue, and an item of it was published.
        let filled = unsafe { Block::<T>::filled(self.line, self.delta.wrapping_add(self.line.addr())) };
        self.end = self.line.wrapping_add(filled);
        if filled != popped || told == self.next { Some(filled != popped) } else { None }
    }
}

/// A run on its way through [`Run::give`]; puts it back, when `each` panics, too.
struct Giving<'a, T> {
    run: Run<T>,
    home: &'a mut Run<T>,
}

impl<T> Drop for Giving<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.home.set(self.run);
    }
}

/// Stores the header of a block that is full and used up once more, unchanged, and a word in each further line, to take
/// the lines along: the producer then finds each in one place, the consumer's cache, and not in both.
///
/// # Safety
/// The block is one of a living queue, all its items were popped by the caller, and their slots have not been released.
#[inline(always)]
pub(super) unsafe fn leave<T>(line: *mut u8, delta: usize) {
    let header = line.addr().wrapping_add(Block::<T>::FULL).wrapping_add(delta);
    // SAFETY: the caller's; what was popped and not released is the consumer's.
    unsafe {
        Block::<T>::header(line).store(header, Relaxed);
        Block::<T>::take_along(line);
    }
}

/// Where the blocks of a queue lie: in a [ring](super::lane), or in [segments](super::linked).
///
/// What is cold gets a half's place by value, and gives it back, see step 5 of the lane: `next` and `line` are those of
/// its run, `base` too.
///
/// # Safety
///
/// Implementors promise that
/// - slots of what [`free_run`](Self::free_run) returns were never written, or the consumer has released them, and what
///   it did there happens before that call returns;
/// - items of what [`next_run`](Self::next_run) returns are published, as by [`Run::publish`], and what the producer
///   did there happens before that call returns;
/// - [`popped_at`](Self::popped_at) returns the place that it was given, or the start of the next block if that is the
///   same; [`consumed`](Self::consumed) is written by the consumer's half alone;
/// - a block's header is that of [`Block::filled`], stored by [`Run::publish`] alone, or once more by [`leave`];
/// - only the half that calls reaches what is its side's alone.
pub(super) unsafe trait Blocks<T>: Send + Sync + Sized {
    /// Whether there are queues of which each pop publishes the consumer's position.
    const MAY_BE_EXACT: bool;

    fn capacity(&self) -> usize;

    /// Position behind the last item that the consumer has told of.
    fn consumed(&self) -> &AtomicUsize;

    fn popped_to(&self) -> &Place;

    fn pushed_to(&self) -> &Place;

    /// Producer: the free slots from the end of a run on; none if there is no room.
    fn free_run(&self, next: *mut u8, line: *mut u8, base: usize) -> Run<T>;

    /// Producer: the empty run at its place; at the start of the next block if it is the end of one that has a next.
    fn pushed_at(&self, next: *mut u8, line: *mut u8, base: usize) -> Run<T>;

    /// Consumer: as [`pushed_at`](Self::pushed_at).
    fn popped_at(&self, next: *mut u8, line: *mut u8, base: usize) -> Run<T>;

    /// Consumer: leaves the run that ends at a place, and finds the next one: nothing, a part of a block, or many
    /// blocks. Publishes the position where it is due; `told` is the place that was published last.
    fn next_run(shared: &Shared<Self>, next: *mut u8, line: *mut u8, base: usize, told: *mut u8) -> (Run<T>, *mut u8);

    /// Consumer: the place behind the last published item; never the end of a block, but the start of the next one.
    fn published_end(&self, run: &Run<T>) -> (usize, usize);

    /// Consumer: calls with what it keeps in mind. The closure does not call this again.
    fn notes<R>(&self, call: impl FnOnce(&mut Notes) -> R) -> R;
}

/// The producer's half.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle")]
pub struct BlocksProducer<T, B> {
    /// Free slots.
    run: Run<T>,
    shared: Arc<Shared<B>>,
}

// SAFETY: the pointers point into the memory that `shared` keeps alive; the rest is Send.
unsafe impl<T: Send, B: Send + Sync> Send for BlocksProducer<T, B> {}

/// The consumer's half.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle")]
pub struct BlocksConsumer<T, B> {
    /// Published items.
    run: Run<T>,
    /// The place whose position was published last. The same place comes again after other publications.
    told: *mut u8,
    /// The position is published with every pop.
    exact: bool,
    /// There is an end behind which nothing may be popped; see [`Notes`].
    sealed: bool,
    shared: Arc<Shared<B>>,
}

// SAFETY: as for the producer's half.
unsafe impl<T: Send, B: Send + Sync> Send for BlocksConsumer<T, B> {}

/// The halves of a queue of which these slots are free, from the run's place on.
///
/// # Safety
/// The run is one that [`Blocks::free_run`] may return, or it is empty, and no other thread knows the queue.
pub(super) unsafe fn halves<T, B>(
    control: Control,
    body: B,
    free: Run<T>,
    exact: bool,
) -> (BlocksProducer<T, B>, BlocksConsumer<T, B>) {
    let shared = Shared::new(control, body);
    let run = free.until(0);
    let producer = BlocksProducer { run: free, shared: shared.clone() };
    (producer, BlocksConsumer { told: run.next, run, exact, sealed: false, shared })
}

#[allow(private_bounds, reason = "for this crate's own code")]
impl<T, B: Blocks<T>> BlocksProducer<T, B> {
    /// Called when the run of this block is used up. Returns whether there is more.
    #[inline(always)]
    fn refill(&mut self) -> bool {
        if self.run.enter_next() {
            return true;
        }
        if !self.shared.control.is_halted() {
            let found = self.shared.body.free_run(self.run.next, self.run.line, self.run.base);
            self.run.set(found);
        }
        !self.run.is_empty()
    }
}

// SAFETY: a run covers only slots that the consumer is done with, by the first of the blocks' promises and that of
// `halves`. The consumer reads an item only by a run that covers it, from `next_run`, by the second promise, or from
// `Run::advance`, which acquires the header that `publish` stored.
unsafe impl<T: Send, B: Blocks<T>> RawProducer<T> for BlocksProducer<T, B> {
    const RUN: usize = Block::<T>::ITEMS;

    #[inline(always)]
    fn is_writable(&mut self) -> bool {
        !self.run.is_empty() || self.refill()
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
        self.run.slot(i)
    }

    #[inline(always)]
    unsafe fn publish(&mut self, n: usize) {
        // SAFETY: the caller's.
        unsafe { self.run.publish(n) };
    }

    #[inline(always)]
    unsafe fn publish_moved(&mut self, from: *const T, most: usize) -> usize {
        if most == 0 || !self.is_writable() {
            return 0;
        }
        let mut run = self.run;
        // SAFETY: a slot is writable, so the run is not empty; the rest is the caller's promise.
        let moved = unsafe { run.publish_moved(from, most) };
        self.run.set(run);
        moved
    }

    unsafe fn retract(&mut self, n: usize) {
        self.run.retract(n);
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.shared.control.halt();
        self.run.halt();
    }

    fn position(&self) -> usize {
        position::<T>(self.run.place())
    }

    fn len(&self) -> usize {
        self.position().wrapping_sub(self.shared.body.consumed().load(Acquire))
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity()
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }

    #[inline(always)]
    unsafe fn retire(&mut self) {
        // SAFETY: no thread uses this half any more, so its share of the queue is taken out once.
        unsafe { retire_producer(ptr::read(&self.shared), self.run.next, self.run.line, self.run.base) };
    }
}

/// By value, as all that is cold.
#[cold]
#[inline(never)]
fn retire_producer<T, B: Blocks<T>>(shared: Arc<Shared<B>>, next: *mut u8, line: *mut u8, base: usize) {
    shared.body.pushed_to().store(&shared.body.pushed_at(next, line, base));
    shared.control.close_by_producer();
}

#[allow(private_bounds, reason = "for this crate's own code")]
impl<T, B: Blocks<T>> BlocksConsumer<T, B> {
    /// Called when the run of this block is used up. Returns whether there is more.
    #[inline(always)]
    fn refill(&mut self) -> bool {
        if let Some(more) = self.run.advance(self.sealed, self.told) {
            return more;
        }
        let (found, told) = B::next_run(&self.shared, self.run.next, self.run.line, self.run.base, self.told);
        self.run.set(found);
        self.told = told;
        !self.run.is_empty()
    }

    /// Called after each pop.
    #[inline(always)]
    fn popped(&mut self) {
        if B::MAY_BE_EXACT && self.exact {
            publish_exactly(&self.shared, self.run.next, self.run.line, self.run.base);
            self.told = self.run.next;
        }
    }
}

/// By value, as all that is cold.
#[cold]
#[inline(never)]
fn publish_exactly<T, B: Blocks<T>>(shared: &Shared<B>, next: *mut u8, line: *mut u8, base: usize) {
    publish_position(shared, &shared.body.popped_at(next, line, base));
}

/// Publishes where the consumer stands. Returns the place.
#[inline(always)]
pub(super) fn publish_position<T, B: Blocks<T>>(shared: &Shared<B>, run: &Run<T>) -> *mut u8 {
    let released = position::<T>(run.place());
    shared.body.consumed().store(released, Release);
    shared.control.slots_freed(released);
    run.next
}

// SAFETY: a run covers only published items, and the producer writes to their slots again only after their release, by
// the blocks' promises.
unsafe impl<T: Send, B: Blocks<T>> RawConsumer<T> for BlocksConsumer<T, B> {
    const RUN: usize = Block::<T>::ITEMS;

    #[inline(always)]
    fn is_readable(&mut self) -> bool {
        !self.run.is_empty() || self.refill()
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
        self.run.slot(i)
    }

    #[inline(always)]
    unsafe fn release(&mut self, n: usize) {
        self.run.pass(n);
        self.popped();
    }

    #[inline(always)]
    unsafe fn release_moved(&mut self, to: *mut MaybeUninit<T>, most: usize) -> usize {
        if most == 0 || !self.is_readable() {
            return 0;
        }
        let mut run = self.run;
        // SAFETY: an item is readable, so the run is not empty; the rest is the caller's promise.
        let moved = unsafe { run.move_to(to, most) };
        self.run.set(run);
        self.popped();
        moved
    }

    #[inline(always)]
    fn release_each(&mut self, most: usize, each: &mut impl FnMut(T)) -> usize {
        if B::MAY_BE_EXACT && self.exact {
            return release_each(self, most, each);
        }
        if most == 0 || !self.is_readable() {
            return 0;
        }
        // SAFETY: an item is readable, so the run is not empty.
        unsafe { self.run.give(most, each) }
    }

    fn pace(&self) -> (usize, u32) {
        self.shared.body.notes(|notes| notes.pace())
    }

    #[inline(always)]
    fn position(&self) -> usize {
        position::<T>(self.run.place())
    }

    fn len(&self) -> usize {
        let sealed = self.shared.body.notes(|notes| notes.sealed);
        let end = sealed.unwrap_or_else(|| self.shared.body.published_end(&self.run));
        position::<T>(end).wrapping_sub(self.position())
    }

    fn seal(&mut self) -> usize {
        let end = self.shared.body.published_end(&self.run);
        self.shared.body.notes(|notes| notes.sealed = Some(end));
        self.sealed = true;
        position::<T>(end)
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity()
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }

    #[inline(always)]
    unsafe fn retire(&mut self) {
        // SAFETY: no thread uses this half any more, so its share of the queue is taken out once.
        unsafe { retire_consumer(ptr::read(&self.shared), self.run.next, self.run.line, self.run.base) };
    }
}

/// By value, as all that is cold.
#[cold]
#[inline(never)]
fn retire_consumer<T, B: Blocks<T>>(shared: Arc<Shared<B>>, next: *mut u8, line: *mut u8, base: usize) {
    let run = shared.body.popped_at(next, line, base);
    shared.body.popped_to().store(&run);
    shared.control.close_by_consumer(position::<T>(run.place()));
}

/// What the consumer of a lane does between two runs: a [`Tuning`](super::lane::Tuning), with the defaults for items of
/// this size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Blocks that it takes at once, at most.
    pub(super) take: usize,
    /// Looks of a slip.
    pub(super) slip: u32,
}

impl Policy {
    /// What is asked for, but no more than `most` blocks at once.
    pub(super) fn new<T>(tuning: &super::lane::Tuning, most: usize) -> Self {
        let take = tuning.take.unwrap_or(Block::<T>::TAKE).max(1).min(most);
        Policy { take, slip: tuning.slip.unwrap_or(SLIP_LOOKS) }
    }
}

/// What a consumer keeps in mind from one run to the next.
#[derive(Clone, Copy)]
pub(super) struct Notes {
    /// Blocks before this one are full.
    full_until: usize,
    /// For the blocks ahead.
    ahead: Slip,
    /// For the items of one block.
    within: Slip,
    /// Blocks that it took at its last look ahead.
    taken: usize,
    /// Block and item behind the last item that may be popped.
    pub(super) sealed: Option<(usize, usize)>,
}

impl Notes {
    pub(super) fn new(start: usize) -> Self {
        let slip = Slip { failures: 0, abstain: 0 };
        Self { full_until: start, ahead: slip, within: slip, taken: 0, sealed: None }
    }

    /// How it has adapted: what [`Stats`](super::stats::Stats) says.
    pub(super) fn pace(&self) -> (usize, u32) {
        (self.taken, self.ahead.abstain)
    }

    /// The run of items that may be popped from a place on: at most so many blocks, and not beyond the block at `most`.
    ///
    /// `published(n)` is the number of items that are published in the n-th block ahead. It is asked for this block,
    /// the next one, and the last of as many as are [looked for](Self::look_ahead).
    #[inline(always)]
    pub(super) fn find<T>(
        &mut self,
        run: Run<T>,
        policy: Policy,
        blocks: usize,
        most: *mut u8,
        published: impl Fn(usize) -> usize,
    ) -> Run<T> {
        let (at, popped) = run.place();
        if let Some((block, item)) = self.sealed {
            return if at == block { run.until(item - popped) } else { run.until(run.room()) };
        }
        if self.full_until.wrapping_sub(at) as isize <= 0 {
            let mut found = published(0);
            if !Block::<T>::IS_LINE && found == popped + 1 && found != Block::<T>::ITEMS {
                // Waits for the next block, to leave the line of this header alone.
                self.within.wait(policy.slip, || published(1) != 0, || published(0) >= popped + 3);
                found = published(0);
            }
            if found != Block::<T>::ITEMS {
                // Never far behind, or it would count as ahead once the numbers have gone half their way round.
                self.full_until = at;
                return run.until(found.saturating_sub(popped));
            }
            self.look_ahead(at, policy, |ahead| published(ahead) == Block::<T>::ITEMS);
        }
        run.through(self.full_until.wrapping_sub(at).min(blocks), most)
    }

    /// The run of `count` blocks, to the one at `last`, that were found to be full in another way.
    pub(super) fn found<T>(&mut self, run: Run<T>, count: usize, last: *mut u8) -> Run<T> {
        self.take(run.place().0, count);
        run.through(count, last)
    }

    fn take(&mut self, at: usize, count: usize) {
        self.full_until = at.wrapping_add(count);
        self.taken = count;
    }

    /// Finds out how many blocks from `at` on, which is full, are full: `take`, [`FEWER`] or one.
    #[inline(always)]
    fn look_ahead(&mut self, at: usize, Policy { take, slip }: Policy, is_full: impl Fn(usize) -> bool) {
        let full = || is_full(take - 1);
        let found = if full() || self.ahead.wait(slip, full, full) {
            take
        } else if FEWER < take && is_full(FEWER - 1) {
            FEWER
        } else {
            1
        };
        self.take(at, found);
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
    /// Waits until `is_there`, or for so many looks; returns what `helped` then says of its use. Not at all while it
    /// abstains: false.
    #[inline(always)]
    fn wait(&mut self, looks: u32, is_there: impl Fn() -> bool, helped: impl FnOnce() -> bool) -> bool {
        if looks == 0 {
            return false;
        }
        if self.abstain > 0 {
            self.abstain -= 1;
            return false;
        }
        for _ in 0..looks {
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
