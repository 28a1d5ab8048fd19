//! LockRingBuffer as printed: a ring under one spin lock.
//!
//! Source: Figure 2 and section II-D of the MCRingBuffer paper (Lee, Bu, Chandranmenon), the slowest line of its
//! Evaluations 1 and 2. [`corelane::spsc::locked`] is the safe form.
//!
//! # How it works
//!
//! 1. Either side takes the lock. It fails if the ring is full or empty; otherwise it copies the element and advances
//!    its index. Then it releases the lock.
//! 2. The evaluation uses "a spin lock instead of a sleep-and-wait lock". The kind of spin lock is not printed; here it
//!    is test-and-test-and-set.
//!
//! The paper does not print how it tells full from empty, either. As in its other rings one slot stays free, so `max`
//! slots hold `max - 1` elements.
//!
//! # What differs from print, and why safety forces it
//!
//! - Fewer than two slots are refused, because such a ring could never hold an element.
//!
//! Nothing else differs: the lock orders all accesses.
//!
//! The paper protects no cache line of this queue: the lock, the indices and the address of the slots share one.
//!
//! # Synchronization
//!
//! - `lock`, store-release (the thread that releases it) → compare-exchange-acquire (the thread that takes it next):
//!   all accesses of the first thread come before those of the second.
//!
//! # What hangs, and when
//!
//! The queue is blocking. While the thread that holds the lock does not run, the other spins: for a whole time slice if
//! both are on one core. Nothing hangs for ever, and a failure means full or empty.

use super::slots::{Array, Slot, next};
use super::{Dequeue, Enqueue};
use corelane::error::ChannelError;
use corelane::papers::{Arc, AtomicU32, UnsafeCell, spin_loop};
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

#[repr(C, align(64))]
struct Ring<T> {
    lock: AtomicU32,
    indices: UnsafeCell<Indices>,
    buffer: Array<Slot<T>>,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Indices {
    read: u32,
    write: u32,
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;

// SAFETY: elements are copied from thread to thread, hence `T: Send`. All other data is accessed under the lock.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    #[inline(always)]
    fn locked<R>(&self, access: impl FnOnce(&mut Indices) -> R) -> R {
        while self.lock.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_err() {
            spin_loop();
            // In a model this load could see the lock taken for ever, because the other side takes it again and again.
            while !cfg!(corelane_loom) && self.lock.load(Relaxed) == TAKEN {
                spin_loop();
            }
        }
        // SAFETY: the lock is ours until the store below releases it. No `access` panics.
        let result = self.indices.with_mut(|indices| access(unsafe { &mut *indices }));
        self.lock.store(FREE, Release);
        result
    }
}

/// Makes a ring of `max` slots, which holds up to `max - 1` elements.
///
/// # Errors
/// Fewer than two slots, too many, or no memory.
pub fn channel<T: Copy + Send>(max: usize) -> Result<(Producer<T>, Consumer<T>), ChannelError> {
    let buffer = Array::new(max, 2, || UnsafeCell::new(MaybeUninit::uninit()))?;
    let ring = Arc::new(Ring { lock: AtomicU32::new(FREE), indices: UnsafeCell::new(Indices::default()), buffer });
    Ok((Producer { ring: ring.clone() }, Consumer { ring }))
}

/// The end that inserts.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
}

/// The end that extracts.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
}

impl<T: Copy + Send> Enqueue<T> for Producer<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> Result<(), T> {
        let ring = &*self.ring;
        ring.locked(|indices| {
            let after = next(indices.write, ring.buffer.len);
            if after == indices.read {
                return Err(element);
            }
            // SAFETY: the index is below the number of slots, and we have the lock.
            unsafe { ring.buffer.get(indices.write).with_mut(|slot| (*slot).write(element)) };
            indices.write = after;
            Ok(())
        })
    }
}

impl<T: Copy + Send> Dequeue<T> for Consumer<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        let ring = &*self.ring;
        ring.locked(|indices| {
            if indices.read == indices.write {
                return None;
            }
            // SAFETY: the index is below the number of slots. The ring is not empty, so this slot was written. We have
            // the lock.
            let element = unsafe { ring.buffer.get(indices.read).with(|slot| (*slot).assume_init()) };
            indices.read = next(indices.read, ring.buffer.len);
            Some(element)
        })
    }
}

impl<T> Ring<T> {
    fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Indices { read, write } = self.locked(|indices| *indices);
        f.debug_struct(name).field("read", &read).field("write", &write).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ring.describe("Producer", f)
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ring.describe("Consumer", f)
    }
}

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::super::slots::CACHE_LINE;
    use super::Ring;
    use std::mem::{align_of, size_of};

    #[test]
    fn lock_and_indices_share_a_line() {
        assert_eq!(align_of::<Ring<u64>>(), CACHE_LINE);
        assert_eq!(size_of::<Ring<u64>>(), CACHE_LINE);
    }
}
