//! BasicRingBuffer as printed: Lamport's ring with both indices in one cache line.
//!
//! Source: Figure 3 and section II-A2 of the MCRingBuffer paper (Lee, Bu, Chandranmenon); Figure 1 of the B-Queue
//! paper; L. Lamport, "Proving the correctness of multiprocess programs", 1977. [`corelane::spsc::lamport`] is the safe
//! form.
//!
//! # How it works
//!
//! 1. `Insert` fails if `NEXT(write) == read`. Otherwise it writes the element to `buffer[write]` and advances `write`.
//! 2. `Extract` fails if `read == write`. Otherwise it reads the element from `buffer[read]` and advances `read`.
//!
//! `NEXT` wraps at `max`, the number of slots. One slot stays free, so the ring holds `max - 1` elements.
//!
//! # What differs from print, and why safety forces it
//!
//! - `read` and `write` are atomics, release and acquire: as plain variables they would be data races.
//! - Fewer than two slots are refused, because such a ring could never hold an element.
//!
//! The paper protects no cache line of this queue. The compiler and the allocator decide there whether `read`, `write`,
//! `max` and the address of the slots share one. Here they always do.
//!
//! # Synchronization
//!
//! - `write`, store-release (producer) → load-acquire (consumer): the element is written before it is read.
//! - `read`, store-release (consumer) → load-acquire (producer): the element is read before its slot is written again.
//!
//! # Progress
//!
//! Wait-free. Nothing hangs: a failure means full or empty at that moment.

use super::slots::{Array, Slot, next};
use super::{Dequeue, Enqueue};
use corelane::error::ChannelError;
use corelane::papers::{Arc, AtomicU32, UnsafeCell};
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

#[repr(C, align(64))]
struct Ring<T> {
    read: AtomicU32,
    write: AtomicU32,
    max: u32,
    buffer: Array<Slot<T>>,
}

// SAFETY: elements are copied from thread to thread, hence `T: Send`; the indices order every access to a slot.
unsafe impl<T: Send> Sync for Ring<T> {}

/// Makes a ring of `max` slots, which holds up to `max - 1` elements.
///
/// # Errors
/// Fewer than two slots, too many, or no memory.
pub fn channel<T: Copy + Send>(max: usize) -> Result<(Producer<T>, Consumer<T>), ChannelError> {
    let buffer = Array::new(max, 2, || UnsafeCell::new(MaybeUninit::uninit()))?;
    let ring = Ring { read: AtomicU32::new(0), write: AtomicU32::new(0), max: buffer.len, buffer };
    let ring = Arc::new(ring);
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
        let write = ring.write.load(Relaxed);
        if next(write, ring.max) == ring.read.load(Acquire) {
            return Err(element);
        }
        // SAFETY: the index is below `max`. The ring is not full, so the consumer has left this slot.
        unsafe { ring.buffer.get(write).with_mut(|slot| (*slot).write(element)) };
        ring.write.store(next(write, ring.max), Release);
        Ok(())
    }
}

impl<T: Copy + Send> Dequeue<T> for Consumer<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        let ring = &*self.ring;
        let read = ring.read.load(Relaxed);
        if read == ring.write.load(Acquire) {
            return None;
        }
        // SAFETY: the index is below `max`. The ring is not empty, so the producer has written this slot.
        let element = unsafe { ring.buffer.get(read).with(|slot| (*slot).assume_init()) };
        ring.read.store(next(read, ring.max), Release);
        Some(element)
    }
}

impl<T> Ring<T> {
    fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("read", &self.read.load(Relaxed))
            .field("write", &self.write.load(Relaxed))
            .finish_non_exhaustive()
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
    use std::mem::{offset_of, size_of};

    #[test]
    fn indices_and_all_else_share_a_line() {
        assert_eq!(align_of::<Ring<u64>>(), CACHE_LINE);
        assert_eq!(offset_of!(Ring<u64>, read), 0);
        assert_eq!(offset_of!(Ring<u64>, write), 4);
        assert_eq!(size_of::<Ring<u64>>(), CACHE_LINE);
    }
}
