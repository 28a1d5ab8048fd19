//! The nodes of the lock-free list: memory that stays what it is, used again and again.
//!
//! # How it works
//!
//! 1. A node, once allocated, stays a node until the queue is dropped, and is named by an index (`link.rs`). So a
//!    thread that comes late with an old link reads words that still exist, and its compare-and-swap fails: no hazard
//!    pointers or epochs are needed.
//! 2. Free nodes lie in a Treiber stack. A run of them is taken by one compare-and-swap, and given back by one: the tag
//!    in the stack's top says that none of its links has changed since it was read.
//! 3. When there are none, as many are allocated as there are already.
//! 4. A node goes back when two credits are in: its item has been moved out (`READ`), nothing links to it any more
//!    (`UNLINKED`). The thread that brings the second one frees it.
//!
//! # Synchronization
//!
//! - free list, compare-and-swap-release → -acquire: the last use of a node comes before its next one.
//! - credits, fetch-or acquire-release: the item is moved out before the node is freed, whichever thread does that.
//! - segments, compare-and-swap-release → load-acquire: a node is made before it is found. An index is only ever learnt
//!   behind its segment's publication.

use crate::error::ChannelError;
use crate::mem::link::{AtomicLink, INDEX_BITS, Index, NULL};
use crate::sync::{AcqRel, Acquire, AtomicU32, Padded, Relaxed, Slot, init_slot, retry};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr;
// Not the model's: nothing is ordered by a number, and every access to a segment would be a choice for it.
use crate::sync::plain::{AtomicPtr, AtomicU64 as Plain};

/// One item, and the link to the next.
#[repr(C, align(32))]
pub(super) struct Node<T> {
    /// The list's, and while the node is free the free list's.
    pub(super) next: AtomicLink,
    /// Which item this is, counted from the start. Written before the node is linked.
    number: Plain,
    credits: AtomicU32,
    item: Slot<T>,
}

/// Credit: there is no item in the node any more.
const READ: u32 = 1;
/// Credit: nothing links to the node any more.
const UNLINKED: u32 = 1 << 1;

impl<T> Node<T> {
    pub(super) fn number(&self) -> u64 {
        self.number.load(Relaxed)
    }

    /// For the owner of a node that is not linked.
    pub(super) fn set_number(&self, number: u64) {
        self.number.store(number, Relaxed);
    }

    /// # Safety
    /// The caller owns the node, which holds no item and is not linked.
    #[inline(always)]
    pub(super) unsafe fn write(&self, item: T) {
        self.credits.store(0, Relaxed);
        // SAFETY: by the caller's promise no other thread accesses it.
        self.item.with_mut(|slot| unsafe { (*slot).write(item) });
    }

    /// Moves the item out.
    ///
    /// # Safety
    /// There is one, which the caller alone has the right to.
    #[inline(always)]
    pub(super) unsafe fn read(&self) -> T {
        // SAFETY: by the caller's promise.
        self.item.with(|slot| unsafe { (*slot).assume_init_read() })
    }

    /// Says that the item is moved out. True if the node is the caller's to free.
    #[inline(always)]
    pub(super) fn is_read(&self) -> bool {
        self.credits.fetch_or(READ, AcqRel) & UNLINKED != 0
    }

    /// Says that the node is out of the list. True if it is the caller's to free.
    #[inline(always)]
    pub(super) fn is_unlinked(&self) -> bool {
        // Nearly always the item is long gone, and a load is all it takes.
        self.credits.load(Acquire) & READ != 0 || self.credits.fetch_or(UNLINKED, AcqRel) & READ != 0
    }
}

/// Nodes that are linked to each other, and not the last one to anything.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    pub(super) first: Index,
    pub(super) last: Index,
    pub(super) count: usize,
}

const SEGMENTS: usize = INDEX_BITS as usize;

/// All nodes of a queue.
pub(super) struct Nodes<T> {
    /// Each segment but the first two has as many nodes as all before it; these two have the same number, a power of
    /// two.
    segments: [AtomicPtr<Node<T>>; SEGMENTS],
    first_bits: u32,
    free: Padded<AtomicLink>,
}

impl<T> Nodes<T> {
    pub(super) fn new(count: usize) -> Result<Self, ChannelError> {
        let count = count.checked_next_power_of_two().ok_or(ChannelError::TooLarge)?;
        if count >= 1 << (INDEX_BITS - 1) {
            return Err(ChannelError::TooLarge);
        }
        let nodes = Self {
            segments: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            first_bits: count.ilog2(),
            free: Padded(AtomicLink::new(NULL)),
        };
        let segment = Self::segment(count, 1).ok_or(ChannelError::NoMemory)?;
        nodes.segments[0].store(segment, Relaxed);
        nodes.give(1, count as Index);
        Ok(nodes)
    }

    /// Nodes that are linked to each other, the first by this index; nothing if the allocator refuses them.
    fn segment(count: usize, first: Index) -> Option<*mut Node<T>> {
        let mut nodes: Vec<Node<T>> = Vec::new();
        nodes.try_reserve_exact(count).ok()?;
        for (i, node) in (1..).zip(&mut nodes.spare_capacity_mut()[..count]) {
            let node = node.as_mut_ptr();
            // SAFETY: the memory of a node that no other thread knows, field by field.
            unsafe {
                (&raw mut (*node).next).write(AtomicLink::new(if i as usize == count { NULL } else { first + i }));
                (&raw mut (*node).number).write(Plain::new(0));
                (&raw mut (*node).credits).write(AtomicU32::new(READ));
                init_slot(&raw mut (*node).item);
            }
        }
        // SAFETY: so many are made.
        unsafe { nodes.set_len(count) };
        Some(Box::into_raw(nodes.into_boxed_slice()).cast())
    }

    /// How many nodes a segment has.
    fn len(&self, segment: usize) -> usize {
        1 << (self.first_bits as usize + segment.saturating_sub(1))
    }

    #[inline(always)]
    pub(super) fn node(&self, index: Index) -> &Node<T> {
        let position = index as usize - 1;
        let (segment, offset) = match position >> self.first_bits {
            0 => (0, position),
            lap => {
                let segment = lap.ilog2() as usize + 1;
                (segment, position - self.len(segment))
            }
        };
        let nodes = self.segments[segment].load(Acquire);
        // SAFETY: an index names a node of a published segment, and segments live as long as this.
        unsafe { &*nodes.add(offset) }
    }

    /// So many nodes; fewer, or none, only if the allocator refuses them, or there are as many as links can name.
    #[inline(always)]
    pub(super) fn take(&self, count: usize) -> Option<Chain> {
        let mut chain = self.take_some(count)?;
        while chain.count < count {
            let Some(more) = self.take_some(count - chain.count) else { break };
            let last = &self.node(chain.last).next;
            last.set(last.load().to(more.first, 0));
            chain = Chain { first: chain.first, last: more.last, count: chain.count + more.count };
        }
        Some(chain)
    }

    /// At most `max` nodes, at least one.
    #[inline(always)]
    fn take_some(&self, max: usize) -> Option<Chain> {
        self.take_free(max).or_else(|| self.take_new(max))
    }

    #[cold]
    #[inline(never)]
    fn take_new(&self, max: usize) -> Option<Chain> {
        loop {
            let new = self.grow()?;
            if new.count == 0 {
                if let Some(chain) = self.take_free(max) {
                    return Some(chain);
                }
                continue;
            }
            let taken = max.min(new.count);
            let last = new.first + taken as Index - 1;
            if taken < new.count {
                self.give(last + 1, new.last);
            }
            self.cut(last);
            return Some(Chain { first: new.first, last, count: taken });
        }
    }

    /// Whether there is a node to [take](Self::take) now; makes more where there is none.
    pub(super) fn are_free(&self) -> bool {
        while self.free.load().is_null() {
            let Some(new) = self.grow() else { return false };
            if new.count != 0 {
                self.give(new.first, new.last);
            }
        }
        true
    }

    #[inline(always)]
    fn take_free(&self, max: usize) -> Option<Chain> {
        loop {
            let top = self.free.load();
            if top.is_null() {
                return None;
            }
            let mut chain = Chain { first: top.index(), last: top.index(), count: 1 };
            let mut rest = self.node(chain.last).next.load();
            while chain.count < max && !rest.is_null() {
                chain.last = rest.index();
                chain.count += 1;
                rest = self.node(chain.last).next.load();
            }
            if self.free.change(top, top.to(rest.index(), 0)) {
                self.cut(chain.last);
                return Some(chain);
            }
            retry();
        }
    }

    /// Lets a node of the caller link to nothing. A change that was meant for its last life fails from now on.
    #[inline(always)]
    pub(super) fn cut(&self, index: Index) {
        let next = &self.node(index).next;
        next.set(next.load().to(NULL, 0));
    }

    /// Gives nodes back, which are linked to each other.
    #[inline(always)]
    pub(super) fn give(&self, first: Index, last: Index) {
        let last = &self.node(last).next;
        loop {
            let top = self.free.load();
            last.set(last.load().to(top.index(), 0));
            if self.free.change(top, top.to(first, 0)) {
                return;
            }
            retry();
        }
    }

    /// Makes as many nodes as there are, all the caller's; none if another thread has made some, or is about to give
    /// them. Nothing if the allocator refuses them, or there are as many as links can name.
    fn grow(&self) -> Option<Chain> {
        let segment = (1..SEGMENTS).find(|&segment| self.segments[segment].load(Acquire).is_null())?;
        let count = self.len(segment);
        if 2 * count >= 1 << INDEX_BITS {
            return None;
        }
        // As many nodes come before.
        let first = count as Index + 1;
        let nodes = Self::segment(count, first)?;
        if self.segments[segment].compare_exchange(ptr::null_mut(), nodes, AcqRel, Relaxed).is_err() {
            // SAFETY: made by `segment` with this length and not published.
            unsafe { Self::free_segment(nodes, count) };
            return Some(Chain { first: NULL, last: NULL, count: 0 });
        }
        Some(Chain { first, last: first + count as Index - 1, count })
    }

    /// # Safety
    /// Made by [`segment`](Self::segment) with this length, and not used again.
    unsafe fn free_segment(nodes: *mut Node<T>, count: usize) {
        // SAFETY: by the caller's promise.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(nodes, count)) });
    }
}

impl<T> Drop for Nodes<T> {
    /// Frees the nodes, not what is in them.
    fn drop(&mut self) {
        for (i, segment) in self.segments.iter().enumerate() {
            let nodes = segment.load(Acquire);
            if !nodes.is_null() {
                // SAFETY: made with this length, and no thread has a reference any more.
                unsafe { Self::free_segment(nodes, self.len(i)) };
            }
        }
    }
}
