//! The slots of the queues without shared indices: beside each item stands a flag that says whether it is there.

use crate::error::ChannelError;
use crate::mem::buffer::{Buffer, drop_all};
use crate::sync::{Acquire, AtomicU8, AtomicUsize, Relaxed, Release, Slot, init_slot};
use core::marker::PhantomData;

/// An item and its flag.
#[repr(C)]
pub(crate) struct Cell<T> {
    pub(crate) item: Slot<T>,
    /// [`FREE`] or [`FILLED`].
    flag: AtomicU8,
}

const FREE: u8 = 0;
const FILLED: u8 = 1;

const LINE: usize = 64;

/// A number of cells, all free at first. Drops the items that are there with itself, the oldest first.
pub(crate) struct Cells<T> {
    buffer: Buffer,
    count: usize,
    /// The cell of the oldest item; written once, when the consumer's handle is dropped.
    oldest: AtomicUsize,
    items: PhantomData<T>,
}

// SAFETY: items move from the producer's thread to the consumer's, hence `T: Send`; no reference to an item is shared.
unsafe impl<T: Send> Send for Cells<T> {}
// SAFETY: as above; the flags order every access to an item.
unsafe impl<T: Send> Sync for Cells<T> {}

impl<T> Cells<T> {
    /// Cells that fit into a cache line, or 1.
    pub(crate) const IN_A_LINE: usize = if size_of::<Cell<T>>() < LINE { LINE / size_of::<Cell<T>>() } else { 1 };

    pub(crate) fn new(count: usize) -> Result<Self, ChannelError> {
        let buffer = Buffer::new(count, size_of::<Cell<T>>(), align_of::<Cell<T>>().max(2 * LINE))?;
        let cells = buffer.start().cast::<Cell<T>>();
        for i in 0..count {
            // SAFETY: inside the buffer, which no other thread knows yet.
            unsafe {
                let cell = cells.add(i);
                init_slot(&raw mut (*cell).item);
                (&raw mut (*cell).flag).write(AtomicU8::new(FREE));
            }
        }
        Ok(Self { buffer, count, oldest: AtomicUsize::new(0), items: PhantomData })
    }

    /// # Safety
    /// `i` is below the number of cells.
    #[inline(always)]
    pub(crate) unsafe fn get(&self, i: usize) -> &Cell<T> {
        debug_assert!(i < self.count);
        // SAFETY: inside the buffer by the caller's promise; `new` has initialised every cell.
        unsafe { &*self.buffer.start().cast::<Cell<T>>().add(i) }
    }

    /// To be told by the consumer, when it goes, of the cell it would have popped next.
    pub(crate) fn leave(&self, oldest: usize) {
        self.oldest.store(oldest, Relaxed);
    }
}

impl<T> Drop for Cells<T> {
    fn drop(&mut self) {
        let oldest = self.oldest.load(Relaxed);
        drop_all(self.count, |i| {
            // SAFETY: below the number of cells.
            let cell = unsafe { self.get((oldest + i) % self.count) };
            if cell.flag.load(Relaxed) == FILLED {
                // SAFETY: both handles are gone, and the item is there.
                cell.item.with_mut(|slot| unsafe { (*slot).assume_init_drop() });
            }
        });
        #[cfg(corelane_loom)]
        for i in 0..self.count {
            // SAFETY: loom's atomics and cells own memory; they were initialised in `new` and are dropped once, here.
            unsafe { core::ptr::drop_in_place(self.buffer.start().cast::<Cell<T>>().add(i)) };
        }
    }
}

impl<T> Cell<T> {
    /// True if the item is there; asked by the consumer, of a cell it has not popped.
    #[inline(always)]
    pub(crate) fn is_filled(&self) -> bool {
        self.flag.load(Acquire) == FILLED
    }

    /// True if the last item is popped; asked by the producer, of a cell it has not filled since.
    #[inline(always)]
    pub(crate) fn is_free(&self) -> bool {
        self.flag.load(Acquire) == FREE
    }

    /// Hands the item to the consumer; it is written.
    #[inline(always)]
    pub(crate) fn fill(&self) {
        self.flag.store(FILLED, Release);
    }

    /// Hands the cell back to the producer; its item is taken.
    #[inline(always)]
    pub(crate) fn free(&self) {
        self.flag.store(FREE, Release);
    }

    /// Takes back an item that the consumer will never look at.
    pub(crate) fn retract(&self) {
        self.flag.store(FREE, Relaxed);
    }
}

/// How many consecutive places from the first satisfy `holds`, which is true of a prefix of them and of at most
/// `count`.
pub(crate) fn prefix(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut yes, mut no) = (0, count + 1);
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle - 1) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    yes
}
