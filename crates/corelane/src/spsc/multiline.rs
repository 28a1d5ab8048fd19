//! Multi-line update: Lamport's ring whose producer publishes whole cache lines of items.
//!
//! Source: section 2.4 of the B-Queue paper (Wang, Zhang, Tang, Hua), which cites it as an answer to the cache thrashing of
//! Lamport's queue.
//!
//! # How it works
//!
//! 1. Two shared indices, `head` of the producer and `tail` of the consumer, as in [`lamport`](super::lamport).
//! 2. The producer advances `head` only when it has filled one or a few cache lines (`lines`), and then to their end. So the
//!    line of `head` moves once for many items, and the consumer reads lines that the producer is done with.
//! 3. The consumer advances `tail` with every call.
//!
//! # What differs from print, and why
//!
//! - As printed, items stay invisible until a line is full, and two threads that answer each other wait for ever (Figure 5 of
//!   the paper). Here the producer keeps its exact position on lines of its own, where it costs nothing, and a consumer that is
//!   about to say Empty looks at it. So late publication delays nothing.
//! - A whole line is one of the ring's memory, as far as the items' size divides it; print leaves open where the count begins.
//! - `head` and `tail` do not share a line. Each side keeps the other's index as it saw it last, and looks again when that is
//!   used up. A producer that looks at `tail` with every item, as Lamport's does, goes on fetching that line: 120 million items
//!   a second one by one instead of 320 (8-byte items, 2 CPUs of an AMD EPYC, Zen 3, that share a level-3 cache).
//!
//! # Synchronization
//!
//! - `head` or `next_head`, store-release (producer) → load-acquire (consumer): items are written before they are read.
//! - `tail`, store-release (consumer) → load-acquire (producer): items are read before their slots are written again.
//! - Parking and closing: see [`crate::wait`].
//!
//! # Progress
//!
//! Wait-free.
//!
//! # When to use it, and when not
//!
//! For single items where the last slots count: about as fast as [`mcring`](super::mcring) there, which batches both indices,
//! but a slot is free as soon as its item is popped, so there is no `release_lag`. For slices take `mcring`.
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

/// The queue with multi-line update as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct MultiLine;

super::aliases!(MultiLine);

super::tuning! {
    /// The parameter of the multi-line update.
    pub struct Tuning {
        /// Cache lines of 64 bytes that the producer fills before it updates the shared index: "one or a few" in the
        /// paper. At least 1; by default 2. The items they hold are rounded down to a power of two, and to the
        /// capacity.
        lines(lines: usize),
    }
}

const LINE: usize = 64;
const DEFAULT_LINES: usize = 2;

impl Tuning {
    /// How many items are published together: a power of two.
    fn group<T>(&self, capacity: usize) -> Result<usize, ChannelError> {
        let items = match self.lines {
            Some(0) => return Err(ChannelError::BadBatch),
            // So that the few items of a model fill lines, too.
            None if cfg!(loom) => 2,
            // Items of size 0 count as if they had one byte.
            lines => lines.unwrap_or(DEFAULT_LINES).saturating_mul(LINE) / size_of::<T>().max(1),
        };
        Ok(1 << items.clamp(1, capacity).ilog2())
    }
}

struct Ring<T> {
    /// Shared: items published in whole lines, updated by the producer once a group of lines.
    head: Padded<AtomicUsize>,
    /// Shared: items popped. Written by the consumer.
    tail: Padded<AtomicUsize>,
    /// The producer's: items pushed, exactly. Read by a consumer about to say Empty.
    next_head: Padded<AtomicUsize>,
    slots: Slots<T>,
    capacity: usize,
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: both handles are gone; what lies between the exact positions is published and not popped.
        unsafe { self.slots.drop_items(self.tail.load(Relaxed), self.next_head.load(Relaxed)) };
    }
}

impl sealed::Sealed for MultiLine {}

impl<T: Send> Design<T> for MultiLine {
    type Tuning = Tuning;
    type Producer = MultiLineProducer<T>;
    type Consumer = MultiLineConsumer<T>;

    fn create(request: Request<'_, Tuning>) -> Result<(MultiLineProducer<T>, MultiLineConsumer<T>), ChannelError> {
        let Request { capacity, start, control, tuning, .. } = request;
        let group = tuning.group::<T>(capacity)?;
        let ring = Ring {
            head: Padded(AtomicUsize::new(start)),
            tail: Padded(AtomicUsize::new(start)),
            next_head: Padded(AtomicUsize::new(start)),
            slots: Slots::new(capacity)?,
            capacity,
        };
        let shared = Shared::new(control, ring);
        let producer = MultiLineProducer {
            next_head: start,
            limit: start.wrapping_add(capacity),
            within: group - 1,
            halted: false,
            shared: shared.clone(),
        };
        Ok((producer, MultiLineConsumer { tail: start, local_head: start, sealed: false, shared }))
    }

    fn release_lag(_: usize, _: &Tuning) -> usize {
        0
    }
}

/// The producer's half.
#[doc(hidden)]
pub struct MultiLineProducer<T> {
    next_head: usize,
    /// A capacity behind the consumer's `tail` as it was seen last.
    limit: usize,
    /// The bits of a position that count within a group of lines.
    within: usize,
    halted: bool,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> MultiLineProducer<T> {
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        if !self.halted {
            let ring = &self.shared.body;
            self.limit = ring.tail.load(Acquire).wrapping_add(ring.capacity);
        }
    }
}

// SAFETY: slots are written only before `limit`, a capacity behind an acquired `tail`; items are published with release.
unsafe impl<T: Send> RawProducer<T> for MultiLineProducer<T> {
    #[inline(always)]
    fn writable(&mut self) -> usize {
        if self.next_head == self.limit {
            self.look();
        }
        self.limit.wrapping_sub(self.next_head)
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        self.shared.body.slots.adjacent(self.next_head, n)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.shared.body.slots.get(self.next_head.wrapping_add(i))
    }

    #[inline(always)]
    unsafe fn publish(&mut self, n: usize) {
        let ring = &self.shared.body;
        let from = self.next_head;
        self.next_head = from.wrapping_add(n);
        ring.next_head.store(self.next_head, Release);
        let (before, now) = (from & !self.within, self.next_head & !self.within);
        if now != before {
            ring.head.store(now, Release);
        }
    }

    unsafe fn retract(&mut self, n: usize) {
        self.next_head = self.next_head.wrapping_sub(n);
        // The consumer, which has sealed, reads neither index; this one is set for the drop of what is left.
        self.shared.body.next_head.store(self.next_head, Relaxed);
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.halted = true;
        self.limit = self.next_head;
    }

    fn position(&self) -> usize {
        self.next_head
    }

    fn len(&self) -> usize {
        self.next_head.wrapping_sub(self.shared.body.tail.load(Acquire))
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
pub struct MultiLineConsumer<T> {
    tail: usize,
    /// The producer's position as it was seen last.
    local_head: usize,
    sealed: bool,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> MultiLineConsumer<T> {
    /// Called with nothing known to be readable: first the whole lines, then the exact position, then Empty.
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        if !self.sealed {
            let ring = &self.shared.body;
            // After an exact look the shared index may be behind what was seen.
            let head = ring.head.load(Acquire);
            self.local_head =
                if head.wrapping_sub(self.tail) as isize > 0 { head } else { ring.next_head.load(Acquire) };
        }
    }
}

// SAFETY: items are read only before `local_head`, which was acquired; slots are released after they were read.
unsafe impl<T: Send> RawConsumer<T> for MultiLineConsumer<T> {
    #[inline(always)]
    fn readable(&mut self) -> usize {
        if self.tail == self.local_head {
            self.look();
        }
        self.local_head.wrapping_sub(self.tail)
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        self.shared.body.slots.adjacent(self.tail, n)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.shared.body.slots.get(self.tail.wrapping_add(i))
    }

    #[inline(always)]
    unsafe fn release(&mut self, n: usize) {
        self.tail = self.tail.wrapping_add(n);
        self.shared.body.tail.store(self.tail, Release);
        self.shared.control.slots_freed(self.tail);
    }

    fn position(&self) -> usize {
        self.tail
    }

    fn len(&self) -> usize {
        let end = if self.sealed { self.local_head } else { self.shared.body.next_head.load(Acquire) };
        end.wrapping_sub(self.tail)
    }

    fn seal(&mut self) -> usize {
        self.local_head = self.shared.body.next_head.load(Acquire);
        self.sealed = true;
        self.local_head
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl<T> fmt::Debug for MultiLineProducer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiLineProducer").field("next_head", &self.next_head).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for MultiLineConsumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiLineConsumer").field("tail", &self.tail).finish_non_exhaustive()
    }
}
