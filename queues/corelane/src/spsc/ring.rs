//! The index ring: items side by side in a ring of slots, each end at a position that counts up and wraps around.
//!
//! Here is what all index rings share: the halves, the slots, the halt, the seal. Each has its own [`Algorithm`]: which
//! words the ends share, when an end looks at the other's, when it publishes its own.
//!
//! # Synchronization
//!
//! - `publish` (producer) → `published`, `published_exactly` (consumer): items are written before they are read.
//! - `release`, `flush` (consumer) → `freed` (producer): items are read before their slots are written again.
//!
//! The algorithm's file says which stores and loads these are.
//!
//! # Registers
//!
//! A half's state lies in registers as long as no call in the caller's loop gets its address (step 5 of the lane). So a
//! look is inlined. The halt and the seal, which are asked about when there is no room or no item, lie in the ring's
//! memory. What a half does last gets its words by value.

use super::design::{Design, RawConsumer, RawProducer, Request, Shared, sealed};
use super::slots::Slots;
use crate::end::Control;
use crate::error::ChannelError;
use crate::sync::{Acquire, Arc, AtomicUsize, Slot, UnsafeCell, spin_loop};
use core::fmt::Debug;
use core::ptr;

/// How the two ends of an index ring learn of each other's position.
///
/// # Safety
///
/// Implementors promise that
/// - what [`freed`](Self::freed) returns, and [`publish`](Self::publish) where it returns one, is the start or a
///   position at which the consumer has called `release` or `flush`, and what came before that call happens before
///   this one returns;
/// - what [`published`](Self::published) and [`published_exactly`](Self::published_exactly) return, and
///   [`release`](Self::release) where it returns one, is the start or a position at which the producer has called
///   `publish`, or one before it, and what came before that call happens before this one returns;
/// - [`inside`](Self::inside) is exact.
#[doc(hidden)]
pub unsafe trait Algorithm: Sized + 'static {
    /// The algorithm's own options.
    type Tuning: Clone + Debug + Default;
    /// What both ends share.
    type Words: Send + Sync;
    /// What the producer remembers beside its position.
    type Writing: Copy + Send;
    /// What the consumer remembers beside its position.
    type Reading: Copy + Send;

    /// Whether an end looks at the other's position with each call. Otherwise it does so when it knows of no room, or
    /// no item.
    const LOOKS_ALWAYS: bool = false;

    /// What a ring of items of this type begins with, where both ends stand at `start`.
    fn begin<T>(capacity: usize, start: usize, tuning: &Self::Tuning) -> Result<Begin<Self>, ChannelError>;

    /// As [`Design::release_lag`].
    fn release_lag(capacity: usize, tuning: &Self::Tuning) -> usize;

    /// Producer: the consumer's position, as far as the consumer has told.
    fn freed(words: &Self::Words) -> usize;

    /// Producer: n items more, up to its position, are written. Returns the consumer's position where it learns that
    /// with it.
    fn publish(words: &Self::Words, writer: &mut Writer<Self>, n: usize) -> Option<usize>;

    /// Producer: its position is back where it was before items that the consumer, which has sealed, never looks for.
    /// Compiled into the push, as a call would get the address of the half's state.
    fn retract(words: &Self::Words, writer: &mut Writer<Self>);

    /// Consumer: a position up to which items are published; its own only if that is the exact one.
    #[inline(always)]
    fn published(words: &Self::Words, reader: &mut Reader<Self>) -> usize {
        let _ = reader;
        Self::published_exactly(words)
    }

    /// Consumer: the position up to which items are published.
    fn published_exactly(words: &Self::Words) -> usize;

    /// Consumer: the items up to its position are moved out. Returns whether the producer can see that, and the
    /// position up to which items are published where it learns that with it.
    fn release(words: &Self::Words, reader: &mut Reader<Self>) -> (bool, Option<usize>);

    /// Consumer, about to say Empty: lets the producer see all that is moved out. Returns whether it could not
    /// before.
    #[inline(always)]
    fn flush(words: &Self::Words, reader: &mut Reader<Self>) -> bool {
        let _ = (words, reader);
        false
    }

    /// Consumer: it goes, from this position.
    #[inline(always)]
    fn leave(words: &Self::Words, position: usize) {
        let _ = (words, position);
    }

    /// Where the consumer and the producer stood when they went.
    fn inside(words: &mut Self::Words) -> (usize, usize);
}

/// What [`Algorithm::begin`] returns.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "on its way into a ring")]
pub struct Begin<A: Algorithm> {
    pub(super) words: A::Words,
    pub(super) writing: A::Writing,
    pub(super) reading: A::Reading,
}

/// Where the producer stands.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle's half")]
pub struct Writer<A: Algorithm> {
    /// Items written, plus the start.
    pub(super) position: usize,
    /// The position up to which slots are known to be free.
    pub(super) limit: usize,
    pub(super) own: A::Writing,
}

/// Where the consumer stands.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle's half")]
pub struct Reader<A: Algorithm> {
    /// Items moved out, plus the start.
    pub(super) position: usize,
    /// The position up to which items are known to be there; once this end has sealed, the seal.
    pub(super) end: usize,
    /// Whether the last look found a batch that was published whole, see [`published_late`](Self::published_late).
    is_in_step: bool,
    pub(super) own: A::Reading,
}

impl<A: Algorithm> Reader<A> {
    /// [`Algorithm::published`] where the producer publishes late: first its shared index, then its exact position,
    /// whose line it writes with every item.
    ///
    /// A consumer right behind a producer in full flow would take that line from it at the end of every batch. So,
    /// after a batch, it first gives the producer a moment for the next: one pause instruction. Where items come singly
    /// there are no batches, and no pause delays them.
    #[inline(always)]
    pub(super) fn published_late(&mut self, shared: &AtomicUsize, exact: &AtomicUsize) -> usize {
        let position = self.position;
        let published = || {
            let index = shared.load(Acquire);
            // After an exact look it may be behind what was seen.
            (index.wrapping_sub(position) as isize > 0).then_some(index)
        };
        if let Some(index) = published() {
            self.is_in_step = true;
            return index;
        }
        // A model need not wait.
        if !cfg!(corelane_loom) && self.is_in_step {
            spin_loop();
            if let Some(index) = published() {
                return index;
            }
            self.is_in_step = false;
        }
        exact.load(Acquire)
    }
}

/// What both ends share.
struct Ring<T, A: Algorithm> {
    words: A::Words,
    slots: Slots<T>,
    capacity: usize,
    /// Whether the consumer has sealed. Reached by the consumer alone.
    sealed: UnsafeCell<bool>,
}

// SAFETY: words and slots are `Sync`; the flag, which is not, is reached by the consumer only.
unsafe impl<T: Send, A: Algorithm> Sync for Ring<T, A> {}

impl<T, A: Algorithm> Drop for Ring<T, A> {
    fn drop(&mut self) {
        let (popped, pushed) = A::inside(&mut self.words);
        // SAFETY: both handles are gone; what lies between the exact positions is published and not popped.
        unsafe { self.slots.drop_items(popped, pushed) };
    }
}

impl<A: Algorithm> sealed::Sealed for A {}

impl<T: Send, A: Algorithm> Design<T> for A {
    type Tuning = A::Tuning;
    type Producer = RingProducer<T, A>;
    type Consumer = RingConsumer<T, A>;

    fn create(request: Request<'_, A::Tuning>) -> Result<(Self::Producer, Self::Consumer), ChannelError> {
        let Request { capacity, start, control, tuning, .. } = request;
        let Begin { words, writing, reading } = A::begin::<T>(capacity, start, tuning)?;
        let ring = Ring { words, slots: Slots::new(capacity)?, capacity, sealed: UnsafeCell::new(false) };
        let shared = Shared::new(control, ring);
        let limit = start.wrapping_add(capacity);
        let writer = Writer { position: start, limit, own: writing };
        let reader = Reader { position: start, end: start, is_in_step: false, own: reading };
        Ok((RingProducer { at: writer, shared: shared.clone() }, RingConsumer { at: reader, shared }))
    }

    fn release_lag(capacity: usize, tuning: &A::Tuning) -> usize {
        <A as Algorithm>::release_lag(capacity, tuning)
    }
}

/// The producer's half.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle")]
pub struct RingProducer<T, A: Algorithm> {
    at: Writer<A>,
    shared: Arc<Shared<Ring<T, A>>>,
}

impl<T, A: Algorithm> Ring<T, A> {
    /// The consumer's end, by a look at the producer's position.
    #[inline(always)]
    fn end(&self, reader: &mut Reader<A>) -> usize {
        if self.is_sealed() { reader.end } else { A::published(&self.words, reader) }
    }

    #[inline(always)]
    fn is_sealed(&self) -> bool {
        // SAFETY: reached by the consumer alone.
        self.sealed.with(|sealed| unsafe { *sealed })
    }
}

impl<T, A: Algorithm> RingProducer<T, A> {
    /// By a look at the consumer's position.
    #[inline(always)]
    fn limit(&self) -> usize {
        if self.shared.control.is_halted() {
            return self.at.position;
        }
        let ring = &self.shared.body;
        A::freed(&ring.words).wrapping_add(ring.capacity)
    }
}

/// Tells the compiler that its caller seldom comes by.
#[cold]
#[inline(always)]
fn unlikely() {}

// SAFETY: slots are written only before `limit`, a capacity beyond a position that the consumer has released, by the
// first of the algorithm's promises; an access to an item comes after the `publish` that covered it by the second.
unsafe impl<T: Send, A: Algorithm> RawProducer<T> for RingProducer<T, A> {
    #[inline(always)]
    fn is_writable(&mut self) -> bool {
        if A::LOOKS_ALWAYS {
            self.at.limit = self.limit();
        } else if self.at.position == self.at.limit {
            unlikely();
            self.at.limit = self.limit();
        } else {
            return true;
        }
        self.at.position != self.at.limit
    }

    #[inline(always)]
    fn writable(&mut self) -> usize {
        if self.is_writable() { self.at.limit.wrapping_sub(self.at.position) } else { 0 }
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        self.shared.body.slots.adjacent(self.at.position, n)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.shared.body.slots.get(self.at.position.wrapping_add(i))
    }

    #[inline(always)]
    unsafe fn publish(&mut self, n: usize) {
        self.at.position = self.at.position.wrapping_add(n);
        let ring = &self.shared.body;
        if let Some(freed) = A::publish(&ring.words, &mut self.at, n) {
            self.at.limit = freed.wrapping_add(ring.capacity);
        }
    }

    #[inline(always)]
    unsafe fn retract(&mut self, n: usize) {
        self.at.position = self.at.position.wrapping_sub(n);
        A::retract(&self.shared.body.words, &mut self.at);
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.shared.control.halt();
        self.at.limit = self.at.position;
    }

    #[inline(always)]
    fn position(&self) -> usize {
        self.at.position
    }

    fn len(&self) -> usize {
        self.at.position.wrapping_sub(A::freed(&self.shared.body.words))
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }

    #[inline(always)]
    unsafe fn retire(&mut self) {
        // SAFETY: no thread uses this half any more, so its share of the queue is taken out once.
        retire_producer(unsafe { ptr::read(&self.shared) });
    }
}

/// By value, as all that is cold.
#[cold]
#[inline(never)]
fn retire_producer<B>(shared: Arc<Shared<B>>) {
    shared.control.close_by_producer();
}

/// The consumer's half.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle")]
pub struct RingConsumer<T, A: Algorithm> {
    at: Reader<A>,
    shared: Arc<Shared<Ring<T, A>>>,
}

// SAFETY: items are read only before `end`, up to which the producer has published, by the second of the algorithm's
// promises; slots are written again only after their release by the first.
unsafe impl<T: Send, A: Algorithm> RawConsumer<T> for RingConsumer<T, A> {
    #[inline(always)]
    fn is_readable(&mut self) -> bool {
        let ring = &self.shared.body;
        if A::LOOKS_ALWAYS {
            self.at.end = ring.end(&mut self.at);
        } else if self.at.position == self.at.end {
            unlikely();
            self.at.end = ring.end(&mut self.at);
        } else {
            return true;
        }
        if self.at.position != self.at.end {
            return true;
        }
        if A::flush(&ring.words, &mut self.at) {
            self.shared.control.slots_freed(self.at.position);
        }
        false
    }

    #[inline(always)]
    fn readable(&mut self) -> usize {
        if self.is_readable() { self.at.end.wrapping_sub(self.at.position) } else { 0 }
    }

    #[inline(always)]
    fn adjacent(&self, n: usize) -> usize {
        self.shared.body.slots.adjacent(self.at.position, n)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        self.shared.body.slots.get(self.at.position.wrapping_add(i))
    }

    #[inline(always)]
    unsafe fn release(&mut self, n: usize) {
        self.at.position = self.at.position.wrapping_add(n);
        let ring = &self.shared.body;
        let (is_told, published) = A::release(&ring.words, &mut self.at);
        // What is published behind the seal is the producer's, which takes it back.
        if let Some(end) = published
            && !ring.is_sealed()
        {
            self.at.end = end;
        }
        if is_told {
            self.shared.control.slots_freed(self.at.position);
        }
    }

    #[inline(always)]
    fn position(&self) -> usize {
        self.at.position
    }

    fn len(&self) -> usize {
        let ring = &self.shared.body;
        let end = if ring.is_sealed() { self.at.end } else { A::published_exactly(&ring.words) };
        end.wrapping_sub(self.at.position)
    }

    fn seal(&mut self) -> usize {
        let ring = &self.shared.body;
        // SAFETY: reached by the consumer alone.
        ring.sealed.with_mut(|sealed| unsafe { *sealed = true });
        self.at.end = A::published_exactly(&ring.words);
        self.at.end
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }

    #[inline(always)]
    unsafe fn retire(&mut self) {
        // SAFETY: no thread uses this half any more, so its share of the queue is taken out once.
        retire_consumer::<T, A>(unsafe { ptr::read(&self.shared) }, self.at.position);
    }
}

/// By value, as all that is cold.
#[cold]
#[inline(never)]
fn retire_consumer<T, A: Algorithm>(shared: Arc<Shared<Ring<T, A>>>, position: usize) {
    shared.control.close_by_consumer(position);
    A::leave(&shared.body.words, position);
}
