//! Segments: pieces of memory that an unbounded queue is linked of, and the few of them that wait to be used again.
//!
//! # How it works
//!
//! 1. A segment has three owners in turn. The producer fills it and links it behind the one before. The consumer, once
//!    it has followed the link out of it, puts it into a slot of the [`Pool`]. The producer takes it from there for its
//!    next one.
//! 2. The slots are a small ring that both sides walk in the same order, as in FastForward. A slot that is null is the
//!    consumer's to fill, any other the producer's to empty. So the oldest segment is used first and no count is
//!    shared.
//! 3. Where the slot is taken, the consumer frees the segment instead. So after a burst the queue gives back all but
//!    the cached ones.
//!
//! # Synchronization
//!
//! - `Segment::next`, store-release (producer) → load-acquire (consumer): the segment is prepared before it is entered.
//! - A slot of the pool, store-release (consumer) → load-acquire (producer): all of a segment is read before it is
//!   written again. The way back needs no order: the producer leaves nothing in a slot but null.

use crate::error::ChannelError;
use crate::sync::{Acquire, AtomicPtr, AtomicUsize, Relaxed, Release};
use alloc::alloc::{alloc, dealloc};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::null_mut;

/// What lies in a segment.
pub(crate) trait Contents {
    /// Alignment of a segment's memory.
    const ALIGN: usize;

    /// Loom's atomics and cells are more than memory: they are made with a segment, and dropped with it.
    ///
    /// # Safety
    /// `start` is the start of `bytes` bytes of memory that no other thread knows.
    #[cfg(corelane_loom)]
    unsafe fn make(start: *mut u8, bytes: usize);

    /// # Safety
    /// As for `make`, which was called for this memory.
    #[cfg(corelane_loom)]
    unsafe fn unmake(start: *mut u8, bytes: usize);
}

/// The head of a segment. Its memory lies behind it, [`Pool::HEAD`] bytes from here.
pub(crate) struct Segment {
    /// The segment behind this one; null while the producer is in this one.
    pub(crate) next: AtomicPtr<Segment>,
    /// Where the queue's count stands at the start of this segment. Written by the producer before it shows the
    /// segment.
    pub(crate) base: AtomicUsize,
    /// Bytes of memory.
    pub(crate) bytes: usize,
}

/// Makes, keeps and frees segments.
pub(crate) struct Pool<C> {
    /// Bytes of a usual segment. Only these are kept.
    pub(crate) bytes: usize,
    slots: Vec<AtomicPtr<Segment>>,
    contents: PhantomData<C>,
}

/// A side's place in the ring of slots.
pub(crate) type Turn = usize;

/// The smallest page of the systems we run on.
const PAGE: usize = 4096;

impl<C: Contents> Pool<C> {
    const ALIGN: usize = if C::ALIGN > 128 { C::ALIGN } else { 128 };
    /// Two lines at least, so that the head, read where segments change, shares none with the memory.
    const HEAD: usize = size_of::<Segment>().next_multiple_of(Self::ALIGN);

    /// A pool that keeps at most `cached` segments of so many bytes.
    pub(crate) fn new(bytes: usize, cached: usize) -> Result<Self, ChannelError> {
        debug_assert!(cached > 0, "a producer without memory waits for a segment to come back");
        Self::layout(bytes).ok_or(ChannelError::TooLarge)?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(cached).map_err(|_| ChannelError::NoMemory)?;
        slots.extend((0..cached).map(|_| AtomicPtr::new(null_mut())));
        Ok(Self { bytes, slots, contents: PhantomData })
    }

    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes.checked_add(Self::HEAD)?, Self::ALIGN).ok()
    }

    /// The memory of a segment.
    #[inline(always)]
    pub(crate) fn start(segment: *mut Segment) -> *mut u8 {
        segment.cast::<u8>().wrapping_add(Self::HEAD)
    }

    /// A new segment, its memory as the allocator gives it; null if the allocator refuses.
    pub(crate) fn allocate(&self, bytes: usize) -> *mut Segment {
        let Some(layout) = Self::layout(bytes) else { return null_mut() };
        // SAFETY: the size is not 0, because of the head.
        let segment = unsafe { alloc(layout) }.cast::<Segment>();
        if !segment.is_null() {
            // SAFETY: just allocated for this; no other thread knows it.
            unsafe {
                segment.write(Segment { next: AtomicPtr::new(null_mut()), base: AtomicUsize::new(0), bytes });
                #[cfg(corelane_loom)]
                C::make(Self::start(segment), bytes);
            }
        }
        segment
    }

    /// A new segment whose every page has been written, for the construction of a queue.
    pub(crate) fn allocate_touched(&self) -> Result<*mut Segment, ChannelError> {
        let segment = self.allocate(self.bytes);
        if segment.is_null() {
            return Err(ChannelError::NoMemory);
        }
        #[cfg(not(corelane_loom))]
        for offset in (0..self.bytes).step_by(PAGE) {
            // SAFETY: inside the segment. Volatile, or the compiler would drop the write as unread.
            unsafe { Self::start(segment).add(offset).write_volatile(0) };
        }
        let _ = PAGE;
        Ok(segment)
    }

    /// Producer: the oldest segment that the consumer has left; null if none is kept.
    pub(crate) fn take(&self, turn: &mut Turn) -> *mut Segment {
        let slot = &self.slots[*turn];
        let segment = slot.load(Acquire);
        if !segment.is_null() {
            slot.store(null_mut(), Relaxed);
            self.pass(turn);
        }
        segment
    }

    /// Consumer: keeps a segment that it has left, or frees it.
    ///
    /// # Safety
    /// The segment is of this pool; only the side that takes it from here will follow a pointer to it; and this side
    /// has read from it for the last time.
    pub(crate) unsafe fn give_back(&self, turn: &mut Turn, segment: *mut Segment) {
        let slot = &self.slots[*turn];
        // SAFETY: a living segment, and ours.
        let usual = unsafe { (*segment).bytes } == self.bytes;
        if usual && slot.load(Relaxed).is_null() {
            slot.store(segment, Release);
            self.pass(turn);
        } else {
            // SAFETY: the caller's.
            unsafe { self.free(segment) };
        }
    }

    #[inline]
    fn pass(&self, turn: &mut Turn) {
        *turn = if *turn + 1 == self.slots.len() { 0 } else { *turn + 1 };
    }

    /// # Safety
    /// The segment was allocated by this pool, and no thread will use it any more.
    pub(crate) unsafe fn free(&self, segment: *mut Segment) {
        // SAFETY: the segment is alive, and its layout is the one it was allocated with.
        unsafe {
            let bytes = (*segment).bytes;
            #[cfg(corelane_loom)]
            C::unmake(Self::start(segment), bytes);
            core::ptr::drop_in_place(segment);
            if let Some(layout) = Self::layout(bytes) {
                // What loom's objects leave behind could still be read as if they were there.
                #[cfg(corelane_loom)]
                segment.cast::<u8>().write_bytes(0xAB, layout.size());
                dealloc(segment.cast(), layout);
            }
        }
    }

    /// Frees a segment and all that are linked behind it.
    ///
    /// # Safety
    /// As for [`free`](Self::free), for each of them.
    pub(crate) unsafe fn free_chain(&self, mut segment: *mut Segment) {
        while !segment.is_null() {
            // SAFETY: the segment is alive until it is freed here.
            unsafe {
                let next = (*segment).next.load(Relaxed);
                self.free(segment);
                segment = next;
            }
        }
    }
}

impl<C> Drop for Pool<C> {
    fn drop(&mut self) {
        debug_assert!(
            self.slots.iter().all(|slot| slot.load(Relaxed).is_null()),
            "the pool's owner frees what it keeps, by `free_kept`"
        );
    }
}

impl<C: Contents> Pool<C> {
    /// Frees what is kept. To be called before the pool is dropped.
    pub(crate) fn free_kept(&self) {
        for slot in &self.slots {
            let segment = slot.swap(null_mut(), Relaxed);
            if !segment.is_null() {
                // SAFETY: both ends are gone, or were never there; what is in a slot is in no chain.
                unsafe { self.free(segment) };
            }
        }
    }

    /// Puts a segment into the first slot, while the queue is made: the consumer's first turn is the next one.
    pub(crate) fn keep_first(&self, segment: *mut Segment) -> Turn {
        self.slots[0].store(segment, Relaxed);
        let mut turn = 0;
        self.pass(&mut turn);
        turn
    }
}
