//! LockRingBuffer: a ring behind a spin lock.
//!
//! Source: section II-A1 and Figure 2 of the MCRingBuffer paper (Lee, Bu, Chandranmenon), with a spin lock as in its section
//! II-D.
//!
//! # How it works
//!
//! 1. Both control variables, `write` and `read`, lie behind one lock.
//! 2. The producer writes an item into a slot that it knows to be free. Then it takes the lock, advances `write`, and learns
//!    from `read` how many slots are free for its next pushes.
//! 3. The consumer reads an item that it knows to be there. Then it takes the lock, advances `read`, and learns from `write`
//!    how many items there are for its next pops.
//! 4. A side that knows of no slot, or of no item, takes the lock and looks. Full and Empty are what it finds there.
//! 5. Who finds the lock held reads it until it is free before trying again (test and test-and-set), so that the one inside
//!    keeps the line.
//!
//! # What differs from print, and why
//!
//! - As printed the item is copied under the lock. Here the lock protects the indices, and a slot belongs to the side that
//!   knows of it until that side advances its index. Between the two run iterators and guards, code of the caller: it may
//!   take its time, panic, use the other end of the queue, or forget the guard. Nobody may spin meanwhile.
//! - As printed a call looks, copies and advances under one lock. Here the look of the next call is made along with the advance
//!   of this one. So a push or a pop takes the lock once, as printed, and once more if it knew of no slot or item. A batch
//!   takes it for each piece that it hands over at a time: a piece ends where the ring's memory does, or what was known of.
//!
//! # Synchronization
//!
//! - lock, store-release on leaving → compare-and-swap-acquire on entering: each critical section sees all that happened before the
//!   earlier ones. The producer's advance of `write` before the consumer's look: the item is written before it is read. The
//!   consumer's advance of `read` before the producer's look: the item is read before its slot is written again.
//! - The reads of step 5 order nothing: the compare-and-swap that follows does.
//! - Parking and closing: see [`crate::wait`].
//!
//! # Progress
//!
//! Blocking. A critical section is a few instructions without code of the caller, but a thread that is preempted inside stops
//! the other one, `try_` calls too. With `std`, who has read the lock for a while yields to the scheduler, so a single CPU is
//! enough. Without `std` it only spins: an interrupt handler, or a thread of higher priority, that keeps the holder off their
//! common CPU spins for ever. Otherwise there is no deadlock, and never fairness.
//!
//! # When to use it, and when not
//!
//! To see what a lock costs. Each call holds two atomic operations, one of them a read-modify-write, on a line that both sides
//! write. [`lamport`](super::lamport) is the same ring without them.
//!
//! # Memory
//!
//! The next power of two of the capacity, times the item's size.

use super::design::{Design, RawConsumer, RawProducer, Request, Shared, sealed};
use super::slots::Slots;
use crate::end::Control;
use crate::error::ChannelError;
use crate::sync::{Acquire, Arc, AtomicU32, Padded, Relaxed, Release, Slot, UnsafeCell, pause};
use core::fmt;

/// LockRingBuffer as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct Locked;

super::aliases!(Locked);

/// The control variables.
#[derive(Clone, Copy)]
struct Indices {
    /// Items published.
    write: usize,
    /// Items popped.
    read: usize,
}

/// A spin lock with what it protects, which moves in the same line.
struct Lock {
    /// [`FREE`] or [`HELD`].
    state: AtomicU32,
    indices: UnsafeCell<Indices>,
}

const FREE: u32 = 0;
const HELD: u32 = 1;

// SAFETY: the indices are reached by the one who holds the lock only.
unsafe impl Sync for Lock {}

impl Lock {
    /// Runs a critical section: a few instructions that do not panic and call nothing.
    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce(&mut Indices) -> R) -> R {
        while self.state.compare_exchange_weak(FREE, HELD, Acquire, Relaxed).is_err() {
            self.wait();
        }
        // SAFETY: we hold the lock, so nobody else has a reference.
        let result = self.indices.with_mut(|indices| section(unsafe { &mut *indices }));
        self.state.store(FREE, Release);
        result
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut looks = 0_u32;
        loop {
            looks = looks.wrapping_add(1);
            pause(looks);
            // Loom may let each read see the lock as it was a round ago, so a model would never end; no machine does that for
            // ever. The read orders nothing, so the models go without.
            if cfg!(loom) || self.state.load(Relaxed) == FREE {
                return;
            }
        }
    }
}

struct Ring<T> {
    lock: Padded<Lock>,
    slots: Slots<T>,
    capacity: usize,
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: both handles are gone, so nobody needs the lock.
        let Indices { write, read } = self.lock.indices.with(|indices| unsafe { *indices });
        // SAFETY: what lies between the indices is published and not popped.
        unsafe { self.slots.drop_items(read, write) };
    }
}

impl sealed::Sealed for Locked {}

impl<T: Send> Design<T> for Locked {
    type Tuning = ();
    type Producer = LockedProducer<T>;
    type Consumer = LockedConsumer<T>;

    fn create(request: Request<'_, ()>) -> Result<(LockedProducer<T>, LockedConsumer<T>), ChannelError> {
        let Request { capacity, start, control, .. } = request;
        let indices = UnsafeCell::new(Indices { write: start, read: start });
        let ring = Ring {
            lock: Padded(Lock { state: AtomicU32::new(FREE), indices }),
            slots: Slots::new(capacity)?,
            capacity,
        };
        let shared = Shared::new(control, ring);
        let producer = LockedProducer { write: start, room: capacity, halted: false, shared: shared.clone() };
        Ok((producer, LockedConsumer { read: start, ready: 0, sealed: false, shared }))
    }

    fn release_lag(_: usize, _: &()) -> usize {
        0
    }
}

/// The producer's half.
#[doc(hidden)]
pub struct LockedProducer<T> {
    /// Own copy of the shared index, which only this side changes.
    write: usize,
    /// Slots known to be free.
    room: usize,
    halted: bool,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> LockedProducer<T> {
    /// Called with no slot known to be free.
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        if !self.halted {
            let ring = &self.shared.body;
            self.room = ring.capacity - ring.lock.with(|indices| indices.write.wrapping_sub(indices.read));
        }
    }
}

// SAFETY: `room` counts slots that were free when the lock was held, and only this side fills them; an item is written before
// the critical section that publishes it.
unsafe impl<T: Send> RawProducer<T> for LockedProducer<T> {
    #[inline(always)]
    fn writable(&mut self) -> usize {
        if self.room == 0 {
            self.look();
        }
        self.room
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
        let ring = &self.shared.body;
        let inside = ring.lock.with(|indices| {
            indices.write = self.write;
            self.write.wrapping_sub(indices.read)
        });
        self.room = ring.capacity - inside;
    }

    unsafe fn retract(&mut self, n: usize) {
        self.write = self.write.wrapping_sub(n);
        self.room += n;
        self.shared.body.lock.with(|indices| indices.write = self.write);
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.halted = true;
        self.room = 0;
    }

    fn position(&self) -> usize {
        self.write
    }

    fn len(&self) -> usize {
        self.write.wrapping_sub(self.shared.body.lock.with(|indices| indices.read))
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
pub struct LockedConsumer<T> {
    /// Own copy of the shared index, which only this side changes.
    read: usize,
    /// Items known to be there.
    ready: usize,
    sealed: bool,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> LockedConsumer<T> {
    /// Items that are there now.
    fn inside(&self) -> usize {
        self.shared.body.lock.with(|indices| indices.write).wrapping_sub(self.read)
    }

    /// Called with no item known to be there.
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        if !self.sealed {
            self.ready = self.inside();
        }
    }
}

// SAFETY: `ready` counts items that were published when the lock was held, and only this side takes them; an item is read before
// the critical section that releases its slot.
unsafe impl<T: Send> RawConsumer<T> for LockedConsumer<T> {
    #[inline(always)]
    fn readable(&mut self) -> usize {
        if self.ready == 0 {
            self.look();
        }
        self.ready
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
        let inside = self.shared.body.lock.with(|indices| {
            indices.read = self.read;
            indices.write.wrapping_sub(self.read)
        });
        // What was published behind the seal is taken back by the producer.
        self.ready = if self.sealed { self.ready - n } else { inside };
        self.shared.control.slots_freed(self.read);
    }

    fn position(&self) -> usize {
        self.read
    }

    fn len(&self) -> usize {
        if self.sealed { self.ready } else { self.inside() }
    }

    fn seal(&mut self) -> usize {
        self.ready = self.inside();
        self.sealed = true;
        self.read.wrapping_add(self.ready)
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl<T> fmt::Debug for LockedProducer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedProducer").field("write", &self.write).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for LockedConsumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedConsumer").field("read", &self.read).finish_non_exhaustive()
    }
}
