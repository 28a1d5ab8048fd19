//! MCRingBuffer: Lamport's ring with local copies of the other side's index, and batched updates of the shared ones.
//!
//! Source: section II-B and Figure 5 of the MCRingBuffer paper (Lee, Bu, Chandranmenon).
//!
//! # How it works
//!
//! 1. Cache-line protection. Variables are grouped by who writes them, each group on lines of its own: the shared indices
//!    `write` and `read`, the consumer's own (`next_read`, its guess of `write`), the producer's own (`next_write`, its
//!    guess of `read`), the constants. A side works with its guess of the other's index until that is used up.
//! 2. Batch updates. The producer advances the shared `write` once per batch of items, the consumer `read` once per batch of
//!    pops, so the shared lines move once per batch.
//!
//! # What differs from print, and why
//!
//! - As printed, up to a batch less one item stays invisible until more are pushed, and two threads that answer each
//!   other wait for ever (Figure 5 of the B-Queue paper). Here the producer keeps its exact position on its own lines,
//!   where it costs nothing, and a consumer that is about to say Empty looks at it. So batching delays nothing.
//! - The consumer's batch is at most an eighth of the capacity, and 1 below a capacity of 64: `release_lag`. It publishes `read`
//!   before it says Empty.
//! - `write` and `read` do not share a line.
//! - Indices count up and are masked; the printed ones leave one slot empty to tell full from empty.
//!
//! # Synchronization
//!
//! - `write` or `next_write`, store-release (producer) → load-acquire (consumer): items are written before they are read.
//! - `read`, store-release (consumer) → load-acquire (producer): items are read before their slots are written again.
//! - Parking and closing: see [`crate::wait`].
//!
//! # Progress
//!
//! Wait-free.
//!
//! # When to use it, and when not
//!
//! For slices of plain data: a batch costs one copy and one publication, and nothing but items is in the lines. For single
//! items at low rates each hand-over moves two lines, the index and the item; a [`lane`](super::lane) moves one.
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

/// MCRingBuffer as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct McRing;

super::aliases!(McRing);

super::tuning! {
    /// MCRingBuffer's parameter.
    pub struct Tuning {
        /// Items per update of a shared index: `batchSize` of the paper, which measures 1, 10 and 50. From 1 to the
        /// capacity; by default 50, or the capacity where that is less. The consumer takes at most an eighth of the
        /// capacity, see [`release_lag`](crate::spsc::Producer::release_lag).
        batch(items: usize),
    }
}

/// The paper's best.
const PAPER_BATCH: usize = 50;

impl Tuning {
    /// The producer's and the consumer's batch for a capacity.
    fn batches(&self, capacity: usize) -> (usize, usize) {
        let batch = self.batch.unwrap_or(PAPER_BATCH).min(capacity);
        (batch, if capacity < 64 { 1 } else { batch.min(capacity / 8) })
    }
}

struct Ring<T> {
    /// Shared: items published, updated by the producer once a batch.
    write: Padded<AtomicUsize>,
    /// Shared: items popped, updated by the consumer once a batch.
    read: Padded<AtomicUsize>,
    /// The producer's: items pushed, exactly. Read by a consumer about to say Empty.
    next_write: Padded<AtomicUsize>,
    /// The consumer's exact position; written once, when its handle is dropped.
    popped: AtomicUsize,
    slots: Slots<T>,
    capacity: usize,
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: both handles are gone; what lies between the exact positions is published and not popped.
        unsafe { self.slots.drop_items(self.popped.load(Relaxed), self.next_write.load(Relaxed)) };
    }
}

impl sealed::Sealed for McRing {}

impl<T: Send> Design<T> for McRing {
    type Tuning = Tuning;
    type Producer = McRingProducer<T>;
    type Consumer = McRingConsumer<T>;

    fn create(request: Request<'_, Tuning>) -> Result<(McRingProducer<T>, McRingConsumer<T>), ChannelError> {
        let Request { capacity, start, control, tuning, .. } = request;
        if tuning.batch.is_some_and(|batch| batch == 0 || batch > capacity) {
            return Err(ChannelError::BadBatch);
        }
        let (write_batch, read_batch) = tuning.batches(capacity);
        let ring = Ring {
            write: Padded(AtomicUsize::new(start)),
            read: Padded(AtomicUsize::new(start)),
            next_write: Padded(AtomicUsize::new(start)),
            popped: AtomicUsize::new(start),
            slots: Slots::new(capacity)?,
            capacity,
        };
        let shared = Shared::new(control, ring);
        let producer = McRingProducer {
            next_write: start,
            limit: start.wrapping_add(capacity),
            published: start,
            batch: write_batch,
            halted: false,
            shared: shared.clone(),
        };
        let consumer = McRingConsumer {
            next_read: start,
            local_write: start,
            released: start,
            batch: read_batch,
            sealed: false,
            shared,
        };
        Ok((producer, consumer))
    }

    fn release_lag(capacity: usize, tuning: &Tuning) -> usize {
        tuning.batches(capacity).1.saturating_sub(1)
    }
}

/// The producer's half.
#[doc(hidden)]
pub struct McRingProducer<T> {
    next_write: usize,
    /// A capacity behind the consumer's `read` as it was seen last: the paper's `localRead`.
    limit: usize,
    /// The shared `write` as it stands.
    published: usize,
    batch: usize,
    halted: bool,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> McRingProducer<T> {
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        if !self.halted {
            let ring = &self.shared.body;
            self.limit = ring.read.load(Acquire).wrapping_add(ring.capacity);
        }
    }
}

// SAFETY: slots are written only before `limit`, a capacity behind an acquired `read`; items are published with release.
unsafe impl<T: Send> RawProducer<T> for McRingProducer<T> {
    #[inline(always)]
    fn writable(&mut self) -> usize {
        if self.next_write == self.limit {
            self.look();
        }
        self.limit.wrapping_sub(self.next_write)
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        self.shared.body.slots.adjacent(self.next_write, n)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.shared.body.slots.get(self.next_write.wrapping_add(i))
    }

    #[inline(always)]
    unsafe fn publish(&mut self, n: usize) {
        self.next_write = self.next_write.wrapping_add(n);
        self.shared.body.next_write.store(self.next_write, Release);
        if self.next_write.wrapping_sub(self.published) >= self.batch {
            self.published = self.next_write;
            self.shared.body.write.store(self.next_write, Release);
        }
    }

    unsafe fn retract(&mut self, n: usize) {
        self.next_write = self.next_write.wrapping_sub(n);
        // The consumer, which has sealed, reads neither; they are set for the drop of what is left.
        self.published = self.next_write;
        self.shared.body.next_write.store(self.next_write, Relaxed);
        self.shared.body.write.store(self.next_write, Relaxed);
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.halted = true;
        self.limit = self.next_write;
    }

    fn position(&self) -> usize {
        self.next_write
    }

    fn len(&self) -> usize {
        self.next_write.wrapping_sub(self.shared.body.read.load(Acquire))
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
pub struct McRingConsumer<T> {
    next_read: usize,
    /// The producer's position as it was seen last.
    local_write: usize,
    /// The shared `read` as it stands.
    released: usize,
    batch: usize,
    sealed: bool,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> McRingConsumer<T> {
    /// Called with nothing known to be readable: first the shared index, then the exact position, then Empty.
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        if !self.sealed {
            let ring = &self.shared.body;
            // After an exact look the shared index may be behind what was seen.
            let write = ring.write.load(Acquire);
            self.local_write =
                if write.wrapping_sub(self.next_read) as isize > 0 { write } else { ring.next_write.load(Acquire) };
        }
        if self.local_write == self.next_read && self.released != self.next_read {
            self.publish_position();
        }
    }

    #[inline(always)]
    fn publish_position(&mut self) {
        self.released = self.next_read;
        self.shared.body.read.store(self.next_read, Release);
        self.shared.control.slots_freed(self.released);
    }
}

// SAFETY: items are read only before `local_write`, which was acquired; slots are released after they were read.
unsafe impl<T: Send> RawConsumer<T> for McRingConsumer<T> {
    #[inline(always)]
    fn readable(&mut self) -> usize {
        if self.next_read == self.local_write {
            self.look();
        }
        self.local_write.wrapping_sub(self.next_read)
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        self.shared.body.slots.adjacent(self.next_read, n)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.shared.body.slots.get(self.next_read.wrapping_add(i))
    }

    #[inline(always)]
    unsafe fn release(&mut self, n: usize) {
        self.next_read = self.next_read.wrapping_add(n);
        if self.next_read.wrapping_sub(self.released) >= self.batch {
            self.publish_position();
        }
    }

    fn position(&self) -> usize {
        self.next_read
    }

    fn len(&self) -> usize {
        let end = if self.sealed { self.local_write } else { self.shared.body.next_write.load(Acquire) };
        end.wrapping_sub(self.next_read)
    }

    fn seal(&mut self) -> usize {
        self.local_write = self.shared.body.next_write.load(Acquire);
        self.sealed = true;
        self.local_write
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl<T> Drop for McRingConsumer<T> {
    fn drop(&mut self) {
        self.shared.body.popped.store(self.next_read, Relaxed);
    }
}

impl<T> fmt::Debug for McRingProducer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McRingProducer").field("next_write", &self.next_write).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for McRingConsumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McRingConsumer").field("next_read", &self.next_read).finish_non_exhaustive()
    }
}
