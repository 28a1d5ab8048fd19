//! B-Queue: the published design with the lowest latency, from which the lane grew. A flag lies in every slot and is
//! probed in batches, with backtracking.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::bqueue::channel(8);
//! producer.push(1).unwrap();
//! assert_eq!(consumer.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`spsc`](super#promises).
//! - **Progress.** Wait-free; the consumer makes at most log2(batch) + 1 probes, each followed by `ticks` pauses.
//! - **Memory.** The next power of two of the capacity, times the item's size plus one byte, rounded up to the item's
//!   alignment.
//!
//! # When to use it, and when not
//!
//! Use it to compare with the [`lane`](super::lane). Clearing sends every line both ways and flags take room beside
//! small items, so the lane is ahead of it in throughput.
//!
//! # How it works
//!
//! Source: sections 3.1 to 3.3 and Figures 7, 9 and 10 of the B-Queue paper (Wang, Zhang, Tang, Hua).
//!
//! 1. A slot's flag says whether it holds an item; the two sides share no index.
//! 2. The producer probes the slot a batch ahead. Slots are freed in order, so if that one is free all before it are.
//! 3. The consumer probes the slot a batch ahead of itself. If it is filled, all before it are. If not, the consumer
//!    backtracks: it halves the batch and probes again, down to a single slot (Figure 9). Self-adaptive backtracking
//!    (Figure 10) starts from the batch that succeeded last, raised by an increment.
//! 4. The consumer clears the flag of every slot it empties.
//!
//! # What differs from print, and why
//!
//! - The flag stands beside the item instead of being a value of it, so any item can be sent, 0 and NULL included.
//! - After a batch of one the printed `batch_tail` equals `tail`, and the next dequeue returns a slot it never probed.
//!   Here the end of a batch is exclusive.
//! - Printed failing polls raise the history, so that a consumer that polls an empty queue ends up with the largest
//!   batch. Here only success moves it.
//! - The printed producer says Full unless a whole batch is free. Here it backtracks as the consumer does, down to one
//!   slot, so Full means full.
//! - A batch beyond the queue's size would let the producer overwrite items: it is refused.
//!
//! # Synchronization
//!
//! - flag, store-release of "filled" (producer) → load-acquire (consumer): the item is written before it is read. The
//!   acquire of a later slot's flag covers all slots before it, which the producer filled earlier.
//! - flag, store-release of "free" (consumer) → load-acquire (producer): the item is read before its slot is written
//!   again.
//! - Parking and closing: see [`crate::wait`].

use super::cells::{Cell, Cells, prefix};
use super::design::{Design, RawConsumer, RawProducer, Request, Shared, sealed};
use crate::bound::Bounded;
use crate::end::Control;
use crate::error::ChannelError;
use crate::sync::{Arc, Slot, spin_loop};

/// B-Queue as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct BQueue;

super::aliases!(BQueue, bqueue);

/// How the consumer looks for filled slots when those a batch ahead are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backtracking {
    /// Not at all: it takes a whole batch or a single item.
    None,
    /// Figure 9: halves the batch, each time from the full one.
    Plain,
    /// Figure 10: halves the batch, from the one that succeeded last plus [`Tuning::increment`].
    #[default]
    Adaptive,
}

super::tuning! {
    /// B-Queue's parameters, by the paper's names.
    ///
    /// ```
    /// use corelane::error::ChannelError;
    /// use corelane::spsc::Options;
    /// use corelane::spsc::bqueue::{self, Backtracking, Tuning};
    ///
    /// let adaptive = Tuning::new().backtracking(Backtracking::Adaptive).batch_max(32).increment(4);
    /// let tuning = adaptive.batch_size(16).ticks(10);
    /// let (mut producer, mut consumer) = bqueue::channel_with(64, Options::new().tuning(tuning))?;
    /// producer.push(1).unwrap();
    /// assert_eq!(consumer.pop(), Ok(1));
    /// let too_large = Options::new().tuning(Tuning::new().batch_size(65));
    /// assert_eq!(bqueue::channel_with::<u32, _, _>(64, too_large).unwrap_err(), ChannelError::BadBatch);
    /// # Ok::<(), ChannelError>(())
    /// ```
    pub struct Tuning {
        /// `BATCH_SIZE`: slots the producer probes ahead, and the consumer too unless it adapts. From 1 to the
        /// capacity; by default a quarter of the capacity, at least 1 and at most 512.
        batch_size(slots: usize),
        /// `BATCH_MAX`: slots in the largest batch of an adaptive consumer. From 1 to the capacity; by default
        /// [`batch_size`](Self::batch_size).
        batch_max(slots: usize),
        /// `INCREMENT`: by how many slots an adaptive consumer exceeds its last success. At least 1; by default the
        /// slots of a cache line.
        increment(slots: usize),
        /// `TICKS`: pauses of the consumer between two probes. Any number; by default 0, which gives the lowest
        /// latency. The paper waits, so as not to disturb the producer's line.
        ticks(pauses: u32),
        /// How the consumer backtracks: by default [`Backtracking::Adaptive`].
        backtracking(how: Backtracking),
    }
}

/// The paper's largest batch.
const PAPER_BATCH: usize = 512;

struct Ring<T> {
    cells: Cells<T>,
    mask: usize,
    capacity: usize,
}

impl<T> Ring<T> {
    fn new(capacity: usize) -> Result<Self, ChannelError> {
        let count = capacity.checked_next_power_of_two().ok_or(ChannelError::TooLarge)?;
        Ok(Self { cells: Cells::new(count)?, mask: count - 1, capacity })
    }

    #[inline(always)]
    fn cell(&self, position: usize) -> &Cell<T> {
        // SAFETY: the masked position is below the number of cells.
        unsafe { self.cells.get(position & self.mask) }
    }

    /// True if the item at this position is published; asked by the consumer, of positions it has not popped.
    #[inline(always)]
    fn is_filled(&self, position: usize) -> bool {
        self.cell(position).is_filled()
    }

    /// True if fewer than `capacity` items are inside once the one at `position`, which was not pushed yet, is; asked
    /// by the producer. The item a capacity before it must have been popped; then so were all before that.
    #[inline(always)]
    fn is_free(&self, position: usize) -> bool {
        self.cell(position.wrapping_sub(self.capacity)).is_free()
    }
}

impl sealed::Sealed for BQueue {}

impl Bounded for BQueue {}

impl<T: Send> Design<T> for BQueue {
    type Tuning = Tuning;
    type Producer = BQueueProducer<T>;
    type Consumer = BQueueConsumer<T>;

    fn create(request: Request<'_, Tuning>) -> Result<(BQueueProducer<T>, BQueueConsumer<T>), ChannelError> {
        let Request { capacity, start, control, tuning, .. } = request;
        let batch = tuning.batch_size.unwrap_or((capacity / 4).clamp(1, PAPER_BATCH));
        let batch_max = tuning.batch_max.unwrap_or(batch);
        let backtracking = tuning.backtracking.unwrap_or_default();
        let increment = tuning.increment.unwrap_or(Cells::<T>::IN_A_LINE);
        if [batch, batch_max].iter().any(|&size| size == 0 || size > capacity) || increment == 0 {
            return Err(ChannelError::BadBatch);
        }
        let shared = Shared::new(control, Ring::new(capacity)?);
        let producer = BQueueProducer { head: start, batch_head: start, batch, shared: shared.clone() };
        let consumer = BQueueConsumer {
            tail: start,
            batch_tail: start,
            history: 1,
            batch: if backtracking == Backtracking::Adaptive { batch_max } else { batch },
            increment,
            ticks: tuning.ticks.unwrap_or(0),
            backtracking,
            sealed: false,
            shared,
        };
        Ok((producer, consumer))
    }

    fn release_lag(_: usize, _: &Tuning) -> usize {
        0
    }
}

/// The producer's half.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle")]
pub struct BQueueProducer<T> {
    head: usize,
    /// Slots before this position are known to be free.
    batch_head: usize,
    batch: usize,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> BQueueProducer<T> {
    /// Probes a batch ahead; backtracks to a single slot.
    #[cold]
    #[inline(never)]
    fn probe(&mut self) {
        let mut size = if self.shared.control.is_halted() { 0 } else { self.batch };
        while size > 0 {
            if self.shared.body.is_free(self.head.wrapping_add(size - 1)) {
                self.batch_head = self.head.wrapping_add(size);
                return;
            }
            size /= 2;
        }
    }
}

// SAFETY: slots before `batch_head` were found free with acquire; an item's flag is set with release after it is
// written.
unsafe impl<T: Send> RawProducer<T> for BQueueProducer<T> {
    #[inline(always)]
    fn writable(&mut self) -> usize {
        if self.head == self.batch_head {
            self.probe();
        }
        self.batch_head.wrapping_sub(self.head)
    }

    fn adjacent(&self, n: usize) -> usize {
        n.min(1)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        &self.shared.body.cell(self.head.wrapping_add(i)).item
    }

    #[inline(always)]
    unsafe fn publish(&mut self, n: usize) {
        for _ in 0..n {
            self.shared.body.cell(self.head).fill();
            self.head = self.head.wrapping_add(1);
        }
    }

    unsafe fn retract(&mut self, n: usize) {
        for _ in 0..n {
            self.head = self.head.wrapping_sub(1);
            self.shared.body.cell(self.head).retract();
        }
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.shared.control.halt();
        self.batch_head = self.head;
    }

    fn position(&self) -> usize {
        self.head
    }

    fn len(&self) -> usize {
        let ring = &self.shared.body;
        ring.capacity - prefix(ring.capacity, |i| ring.is_free(self.head.wrapping_add(i)))
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
#[expect(missing_debug_implementations, reason = "a part of a handle")]
pub struct BQueueConsumer<T> {
    tail: usize,
    /// Slots before this position are known to be filled.
    batch_tail: usize,
    /// The batch that succeeded last.
    history: usize,
    /// `BATCH_SIZE`, or `BATCH_MAX` of an adaptive consumer.
    batch: usize,
    increment: usize,
    ticks: u32,
    backtracking: Backtracking,
    sealed: bool,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> BQueueConsumer<T> {
    #[cold]
    #[inline(never)]
    fn backtrack(&mut self) {
        if self.sealed {
            return;
        }
        let mut size = match self.backtracking {
            Backtracking::Adaptive => self.batch.min(self.history.saturating_add(self.increment)),
            Backtracking::None | Backtracking::Plain => self.batch,
        };
        while !self.shared.body.is_filled(self.tail.wrapping_add(size - 1)) {
            if size == 1 {
                return;
            }
            for _ in 0..self.ticks {
                spin_loop();
            }
            size = if self.backtracking == Backtracking::None { 1 } else { size / 2 };
        }
        self.history = size;
        self.batch_tail = self.tail.wrapping_add(size);
    }

    fn published_end(&self) -> usize {
        let ring = &self.shared.body;
        self.tail.wrapping_add(prefix(ring.capacity, |i| ring.is_filled(self.tail.wrapping_add(i))))
    }
}

// SAFETY: slots before `batch_tail` were found filled with acquire; a slot is cleared with release after it was read.
unsafe impl<T: Send> RawConsumer<T> for BQueueConsumer<T> {
    #[inline(always)]
    fn readable(&mut self) -> usize {
        if self.tail == self.batch_tail {
            self.backtrack();
        }
        self.batch_tail.wrapping_sub(self.tail)
    }

    fn adjacent(&self, n: usize) -> usize {
        n.min(1)
    }

    #[inline(always)]
    unsafe fn slot(&self, i: usize) -> *const Slot<T> {
        &self.shared.body.cell(self.tail.wrapping_add(i)).item
    }

    #[inline(always)]
    unsafe fn release(&mut self, n: usize) {
        for _ in 0..n {
            self.shared.body.cell(self.tail).free();
            self.tail = self.tail.wrapping_add(1);
        }
        self.shared.control.slots_freed(self.tail);
    }

    fn position(&self) -> usize {
        self.tail
    }

    fn len(&self) -> usize {
        let end = if self.sealed { self.batch_tail } else { self.published_end() };
        end.wrapping_sub(self.tail)
    }

    fn seal(&mut self) -> usize {
        self.batch_tail = self.published_end();
        self.sealed = true;
        self.batch_tail
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl<T> Drop for BQueueConsumer<T> {
    fn drop(&mut self) {
        let ring = &self.shared.body;
        ring.cells.leave(self.tail & ring.mask);
    }
}
