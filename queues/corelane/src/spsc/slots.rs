//! The ring of slots of the index queues: items side by side, found by a position that counts up and wraps around.

use crate::error::ChannelError;
use crate::mem::buffer::{Buffer, drop_all};
use crate::sync::{Slot, init_slot};
use core::marker::PhantomData;

/// A power of two of slots. Which of them hold items is the queue's to know.
pub(crate) struct Slots<T> {
    buffer: Buffer,
    mask: usize,
    items: PhantomData<T>,
}

// SAFETY: items move from the producer's thread to the consumer's, hence `T: Send`; no reference to an item is shared.
unsafe impl<T: Send> Send for Slots<T> {}
// SAFETY: as above; the queue's protocol orders every access to a slot.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    /// Room for at least `capacity` items.
    pub(crate) fn new(capacity: usize) -> Result<Self, ChannelError> {
        let count = capacity.checked_next_power_of_two().ok_or(ChannelError::TooLarge)?;
        // A line at least, so that no neighbour's data shares the first one.
        let align = align_of::<Slot<T>>().max(128);
        let buffer = Buffer::new(count, size_of::<Slot<T>>(), align)?;
        let slots = Self { buffer, mask: count - 1, items: PhantomData };
        for i in 0..count {
            // SAFETY: inside the buffer, which no other thread knows yet.
            unsafe { init_slot(slots.start().add(i)) };
        }
        Ok(slots)
    }

    #[inline(always)]
    fn start(&self) -> *mut Slot<T> {
        self.buffer.start().cast()
    }

    /// The slot of a position. Valid for the slots [adjacent](Self::adjacent) to it, too.
    #[inline(always)]
    pub(crate) fn get(&self, position: usize) -> *const Slot<T> {
        // SAFETY: the masked position is below the number of slots.
        unsafe { self.start().add(position & self.mask) }
    }

    /// How many of n slots from `position` on come before the end of the ring's memory.
    #[inline(always)]
    pub(crate) fn adjacent(&self, position: usize, n: usize) -> usize {
        n.min(self.mask + 1 - (position & self.mask))
    }

    /// Drops the items from `from` up to `to`.
    ///
    /// # Safety
    /// Exactly these slots hold items, and no other thread will touch them.
    pub(crate) unsafe fn drop_items(&self, from: usize, to: usize) {
        drop_all(to.wrapping_sub(from), |i| {
            // SAFETY: the slot is one of ours, and holds an item by the caller's promise.
            unsafe { (*self.get(from.wrapping_add(i))).with_mut(|slot| (*slot).assume_init_drop()) };
        });
    }
}

#[cfg(corelane_loom)]
impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        for i in 0..=self.mask {
            // SAFETY: loom's cells own memory; they were initialised in `new` and are dropped once, here.
            unsafe { core::ptr::drop_in_place(self.start().add(i)) };
        }
    }
}
