//! Lamport's ring buffer: two shared indices and nothing else.
//!
//! Source: BasicRingBuffer, Figure 3 of the MCRingBuffer paper; Figure 1 of the B-Queue paper; L. Lamport, "Proving the
//! correctness of multiprocess programs", 1977.
//!
//! # How it works
//!
//! 1. The producer compares its index `write` with the consumer's `read`; unless they are a capacity apart it writes the
//!    item and advances `write`.
//! 2. The consumer compares `read` with `write`; unless they are equal it reads the item and advances `read`.
//!
//! Each operation loads the other side's index, so in a busy queue both indices' lines move from core to core with every
//! item. The paper's form has both in one line (`basic_ring` of `corelane-papers`); here each has its own.
//!
//! # Synchronization
//!
//! - `write`, store-release (producer) → load-acquire (consumer): the item is written before it is read.
//! - `read`, store-release (consumer) → load-acquire (producer): the item is read before its slot is written again.
//! - Parking and closing: see [`crate::wait`].
//!
//! # Progress
//!
//! Wait-free.
//!
//! # When to use it, and when not
//!
//! As the baseline the others are measured against, and where the queue holds one or two items: caching an index that
//! changes with every item gains nothing there. Anywhere else [`mcring`](super::mcring) is this queue without its misses.
//!
//! # Memory
//!
//! The next power of two of the capacity, times the item's size.

use super::design::{Design, RawConsumer, RawProducer, Request, Shared, sealed};
use super::slots::Slots;
use crate::end::Control;
use crate::error::ChannelError;
use crate::sync::{Acquire, Arc, AtomicUsize, Padded, Relaxed, Release, Slot};
use core::fmt;

/// Lamport's queue as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lamport;

super::aliases!(Lamport);

struct Ring<T> {
    /// Items published. Written by the producer.
    write: Padded<AtomicUsize>,
    /// Items popped. Written by the consumer.
    read: Padded<AtomicUsize>,
    slots: Slots<T>,
    capacity: usize,
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: both handles are gone; what lies between the indices is published and not popped.
        unsafe { self.slots.drop_items(self.read.load(Relaxed), self.write.load(Relaxed)) };
    }
}

impl sealed::Sealed for Lamport {}

impl<T: Send> Design<T> for Lamport {
    type Tuning = ();
    type Producer = LamportProducer<T>;
    type Consumer = LamportConsumer<T>;

    fn create(request: Request<'_, ()>) -> Result<(LamportProducer<T>, LamportConsumer<T>), ChannelError> {
        let Request { capacity, start, control, .. } = request;
        let ring = Ring {
            write: Padded(AtomicUsize::new(start)),
            read: Padded(AtomicUsize::new(start)),
            slots: Slots::new(capacity)?,
            capacity,
        };
        let shared = Shared::new(control, ring);
        let producer = LamportProducer { write: start, halted: false, shared: shared.clone() };
        Ok((producer, LamportConsumer { read: start, sealed: None, shared }))
    }

    fn release_lag(_: usize, _: &()) -> usize {
        0
    }
}

/// The producer's half.
#[doc(hidden)]
pub struct LamportProducer<T> {
    /// Own copy of the shared index, which only this side changes.
    write: usize,
    halted: bool,
    shared: Arc<Shared<Ring<T>>>,
}

// SAFETY: slots are written only where `read`, acquired, is less than a capacity behind; items are published with release.
unsafe impl<T: Send> RawProducer<T> for LamportProducer<T> {
    #[inline(always)]
    fn writable(&mut self) -> usize {
        if self.halted {
            return 0;
        }
        let ring = &self.shared.body;
        ring.capacity - self.write.wrapping_sub(ring.read.load(Acquire))
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        self.shared.body.slots.adjacent(self.write, n)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.shared.body.slots.get(self.write.wrapping_add(i))
    }

    #[inline(always)]
    unsafe fn publish(&mut self, n: usize) {
        self.write = self.write.wrapping_add(n);
        self.shared.body.write.store(self.write, Release);
    }

    unsafe fn retract(&mut self, n: usize) {
        self.write = self.write.wrapping_sub(n);
        self.shared.body.write.store(self.write, Relaxed);
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.halted = true;
    }

    fn position(&self) -> usize {
        self.write
    }

    fn len(&self) -> usize {
        self.write.wrapping_sub(self.shared.body.read.load(Acquire))
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

/// The consumer's half.
#[doc(hidden)]
pub struct LamportConsumer<T> {
    /// Own copy of the shared index, which only this side changes.
    read: usize,
    /// Position behind the last item that may be popped.
    sealed: Option<usize>,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> LamportConsumer<T> {
    #[inline(always)]
    fn end(&self) -> usize {
        match self.sealed {
            None => self.shared.body.write.load(Acquire),
            Some(end) => end,
        }
    }
}

// SAFETY: items are read only before `write`, acquired; slots are released after they were read.
unsafe impl<T: Send> RawConsumer<T> for LamportConsumer<T> {
    #[inline(always)]
    fn readable(&mut self) -> usize {
        self.end().wrapping_sub(self.read)
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        self.shared.body.slots.adjacent(self.read, n)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.shared.body.slots.get(self.read.wrapping_add(i))
    }

    #[inline(always)]
    unsafe fn release(&mut self, n: usize) {
        self.read = self.read.wrapping_add(n);
        self.shared.body.read.store(self.read, Release);
        self.shared.control.slots_freed(self.read);
    }

    fn position(&self) -> usize {
        self.read
    }

    fn len(&self) -> usize {
        self.end().wrapping_sub(self.read)
    }

    fn seal(&mut self) -> usize {
        let end = self.shared.body.write.load(Acquire);
        self.sealed = Some(end);
        end
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl<T> fmt::Debug for LamportProducer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LamportProducer").field("write", &self.write).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for LamportConsumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LamportConsumer").field("read", &self.read).finish_non_exhaustive()
    }
}
