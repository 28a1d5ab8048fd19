//! FastForward: single items handed over as they come, in one cache line each. A flag lies in every slot, no index is
//! shared, and the consumer keeps its distance by temporal slipping.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::fastforward::channel(8);
//! producer.push(1).unwrap();
//! assert_eq!(consumer.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`spsc`](super#promises).
//! - **Progress.** Wait-free; a slip is a bounded number of pauses and looks.
//! - **Memory.** The capacity times the item's size plus one byte, rounded up to the item's alignment.
//!
//! # When to use it, and when not
//!
//! Use it for single items handed over as they come: one line moves, and nothing is computed ahead. For streams take
//! [`bqueue`](super::bqueue), which needs no thresholds to keep its sides apart, or the [`lane`](super::lane). Batches
//! gain little here: each slot is looked at and published by itself.
//!
//! # How it works
//!
//! Source: section 2.3 and Figures 2 and 3 of the B-Queue paper (Wang, Zhang, Tang, Hua); Figure 4 of the MCRingBuffer
//! paper.
//!
//! 1. A slot's flag says whether it holds an item. The producer fills the next slot if its flag says free. The consumer
//!    empties the next slot if its flag says filled, and clears the flag. Each side keeps its place in the ring to
//!    itself, so one line carries both the item and the news of it.
//! 2. That is fast while the two work on different lines. So now and then (`interval`) the consumer measures how far it
//!    is behind the producer. Below DANGER it slips (Figure 3): it waits for as long as the producer takes to be GOOD
//!    ahead of it, measures again, and goes on waiting while the distance is short of GOOD and grows.
//!
//! # What differs from print, and why
//!
//! - The flag stands beside the item instead of being a value of it, so any item can be sent, 0 and NULL included.
//! - As printed, the distance is the difference of both sides' indices, so one side's index is shared after all. Here
//!   it is the number of filled slots ahead, up to GOOD, found by bisection: nothing is shared for it.
//! - As printed, a slip lasts as long as the distance grows, and it waits for items when there are none. A `try_` call
//!   must not wait, and an item that is there must not be held up by another that may never come. Here a slip starts
//!   only behind an item, and makes at most 200 pauses in all. After it the next slot's flag decides what the call
//!   says, so a slip changes when an item is popped and nothing else.
//! - Print leaves open how often to slip. Here a slip that falls short of GOOD makes the next one come twice as late,
//!   up to 1,024 times. With one item in flight at a time no slip can succeed, and so few are tried.
//!
//! # Synchronization
//!
//! - flag, store-release of "filled" (producer) → load-acquire (consumer): the item is written before it is read.
//! - flag, store-release of "free" (consumer) → load-acquire (producer): the item is read before its slot is written
//!   again.
//! - Parking and closing: see [`crate::wait`].

use super::cells::{Cell, Cells, prefix};
use super::design::{Design, RawConsumer, RawProducer, Request, Shared, sealed};
use crate::bound::Bounded;
use crate::end::Control;
use crate::error::ChannelError;
use crate::sync::{Arc, Slot, spin_loop};

/// FastForward as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct FastForward;

super::aliases!(FastForward, fastforward);

super::tuning! {
    /// FastForward's parameters, by the names of Figure 3. They only change how fast items go through.
    ///
    /// ```
    /// use corelane::error::ChannelError;
    /// use corelane::spsc::Options;
    /// use corelane::spsc::fastforward::{self, Tuning};
    ///
    /// let tuning = Tuning::new().good(32).danger(8).avg_time(4).interval(100);
    /// let (mut producer, mut consumer) = fastforward::channel_with(64, Options::new().tuning(tuning))?;
    /// producer.push(1).unwrap();
    /// assert_eq!(consumer.pop(), Ok(1));
    /// let beyond = Options::new().tuning(Tuning::new().good(65));
    /// assert_eq!(fastforward::channel_with::<u32, _, _>(64, beyond).unwrap_err(), ChannelError::BadSlip);
    /// # Ok::<(), ChannelError>(())
    /// ```
    pub struct Tuning {
        /// `GOOD`: the distance in items, from producer to consumer, that a slip wants to reach. From 0 to the
        /// capacity; by default the slots of 6 cache lines, and at most half the capacity, so that both sides are as
        /// far from each other either way round.
        good(items: usize),
        /// `DANGER`: the distance in items below which the consumer slips. From 0, which never slips, to
        /// [`good`](Self::good); by default the slots of 2 cache lines, and at most `good`.
        danger(items: usize),
        /// `avg_time`: the time between two of the producer's items, in pauses of the consumer. Any number, by
        /// default 1; but a slip makes at most 200 pauses.
        avg_time(pauses: u32),
        /// Pops between two calls of the slip routine. At least 1; by default 64. See the [module](self) for slips that
        /// fail.
        interval(pops: u32),
    }
}

const GOOD_LINES: usize = 6;
const DANGER_LINES: usize = 2;
const AVG_TIME: u32 = 1;
const INTERVAL: u32 = if cfg!(corelane_loom) { 1 } else { 64 };
/// The most pauses of one slip.
const MOST_PAUSES: u32 = if cfg!(corelane_loom) { 2 } else { 200 };
/// After that many failed slips in a row their interval no longer doubles.
const MOST_FAILURES: u32 = if cfg!(corelane_loom) { 1 } else { 10 };

/// As many cells as the capacity. Each side goes round by itself.
struct Ring<T> {
    cells: Cells<T>,
    capacity: usize,
}

impl<T> Ring<T> {
    /// # Safety
    /// `at` is below the capacity.
    #[inline(always)]
    unsafe fn cell(&self, at: usize) -> &Cell<T> {
        // SAFETY: the caller's promise.
        unsafe { self.cells.get(at) }
    }

    /// The place so many, at most a lap, after `at`.
    #[inline(always)]
    fn after(&self, at: usize, places: usize) -> usize {
        let sum = at + places;
        if sum < self.capacity { sum } else { sum - self.capacity }
    }

    /// How many of the next `count` cells from `at` on, at most all, satisfy `holds`, which is true of a prefix of
    /// them.
    fn count(&self, at: usize, count: usize, holds: fn(&Cell<T>) -> bool) -> usize {
        // SAFETY: `at` is a place of the ring and less than a lap is added.
        prefix(count, |i| holds(unsafe { self.cell(self.after(at, i)) }))
    }
}

impl sealed::Sealed for FastForward {}

impl Bounded for FastForward {}

impl<T: Send> Design<T> for FastForward {
    type Tuning = Tuning;
    type Producer = FastForwardProducer<T>;
    type Consumer = FastForwardConsumer<T>;

    fn create(request: Request<'_, Tuning>) -> Result<(FastForwardProducer<T>, FastForwardConsumer<T>), ChannelError> {
        let Request { capacity, start, control, tuning, .. } = request;
        let lines = |lines: usize| lines * Cells::<T>::IN_A_LINE;
        let good = tuning.good.unwrap_or(lines(GOOD_LINES).min(capacity / 2));
        let danger = tuning.danger.unwrap_or(lines(DANGER_LINES).min(good));
        let interval = tuning.interval.unwrap_or(INTERVAL);
        if good > capacity || danger > good || interval == 0 {
            return Err(ChannelError::BadSlip);
        }
        let shared = Shared::new(control, Ring { cells: Cells::new(capacity)?, capacity });
        let producer = FastForwardProducer { head: 0, position: start, shared: shared.clone() };
        let consumer = FastForwardConsumer {
            tail: 0,
            position: start,
            until_slip: interval,
            slip: Slip { good, danger, avg_time: tuning.avg_time.unwrap_or(AVG_TIME), interval, failures: 0 },
            sealed: None,
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
pub struct FastForwardProducer<T> {
    /// The cell that is filled next; below the capacity.
    head: usize,
    /// Items published.
    position: usize,
    shared: Arc<Shared<Ring<T>>>,
}

// SAFETY: a cell is written only if its flag, acquired, says free; the flag is set with release after it is written.
unsafe impl<T: Send> RawProducer<T> for FastForwardProducer<T> {
    #[inline(always)]
    fn writable(&mut self) -> usize {
        // SAFETY: `head` is below the capacity.
        usize::from(!self.shared.control.is_halted() && unsafe { self.shared.body.cell(self.head) }.is_free())
    }

    fn adjacent(&self, n: usize) -> usize {
        n
    }

    #[inline(always)]
    unsafe fn slot(&self, _: usize) -> *const Slot<T> {
        // SAFETY: `head` is below the capacity. A run is one slot.
        unsafe { &self.shared.body.cell(self.head).item }
    }

    #[inline(always)]
    unsafe fn publish(&mut self, n: usize) {
        let ring = &self.shared.body;
        for _ in 0..n {
            // SAFETY: `head` is below the capacity.
            unsafe { ring.cell(self.head) }.fill();
            self.head = ring.after(self.head, 1);
            self.position = self.position.wrapping_add(1);
        }
    }

    unsafe fn retract(&mut self, n: usize) {
        let ring = &self.shared.body;
        for _ in 0..n {
            self.head = ring.after(self.head, ring.capacity - 1);
            self.position = self.position.wrapping_sub(1);
            // SAFETY: `head` is below the capacity.
            unsafe { ring.cell(self.head) }.retract();
        }
    }

    #[inline(always)]
    fn halt(&mut self) {
        self.shared.control.halt();
    }

    fn position(&self) -> usize {
        self.position
    }

    fn len(&self) -> usize {
        let ring = &self.shared.body;
        ring.capacity - ring.count(self.head, ring.capacity, Cell::is_free)
    }

    fn capacity(&self) -> usize {
        self.shared.body.capacity
    }

    #[inline(always)]
    fn control(&self) -> &Control {
        &self.shared.control
    }
}

/// What the consumer's slips are like.
struct Slip {
    good: usize,
    danger: usize,
    avg_time: u32,
    interval: u32,
    /// Slips in a row that fell short of `good`.
    failures: u32,
}

/// The consumer's half.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle")]
pub struct FastForwardConsumer<T> {
    /// The cell that is emptied next; below the capacity.
    tail: usize,
    /// Items popped.
    position: usize,
    /// Pops until the slip routine is called.
    until_slip: u32,
    slip: Slip,
    /// Position behind the last item that may be popped.
    sealed: Option<usize>,
    shared: Arc<Shared<Ring<T>>>,
}

impl<T> FastForwardConsumer<T> {
    /// Items that are published, counted up to `most`.
    fn filled(&self, most: usize) -> usize {
        self.shared.body.count(self.tail, most, Cell::is_filled)
    }

    /// `adjust_slip` of Figure 3. Changes nothing but the time.
    #[cold]
    #[inline(never)]
    fn adjust_slip(&mut self) {
        if self.filled(self.slip.danger) < self.slip.danger {
            self.slip.failures = if self.slip() { 0 } else { MOST_FAILURES.min(self.slip.failures + 1) };
        }
        self.until_slip = self.slip.interval.saturating_mul(1 << self.slip.failures);
    }

    /// Waits for the producer to be `good` ahead. Returns whether it is.
    fn slip(&self) -> bool {
        let Slip { good, avg_time, .. } = self.slip;
        let mut pauses = MOST_PAUSES;
        let mut distance = self.filled(good);
        // Behind no item there is nothing to stay away from, and nothing to say that there will be one.
        while distance != 0 && distance < good {
            let missing = u32::try_from(good + 1 - distance).unwrap_or(u32::MAX);
            for _ in 0..avg_time.saturating_mul(missing) {
                if pauses == 0 {
                    return false;
                }
                pauses -= 1;
                spin_loop();
            }
            let before = distance;
            distance = self.filled(good);
            if distance == before {
                return false;
            }
        }
        distance == good
    }
}

// SAFETY: an item is read only if its flag, acquired, says filled, as those before the seal did; the flag is cleared
// with release after it was read.
unsafe impl<T: Send> RawConsumer<T> for FastForwardConsumer<T> {
    #[inline(always)]
    fn readable(&mut self) -> usize {
        if let Some(end) = self.sealed {
            return usize::from(self.position != end);
        }
        if self.until_slip == 0 {
            self.adjust_slip();
        }
        // SAFETY: `tail` is below the capacity.
        usize::from(unsafe { self.shared.body.cell(self.tail) }.is_filled())
    }

    fn adjacent(&self, n: usize) -> usize {
        n
    }

    #[inline(always)]
    unsafe fn slot(&self, _: usize) -> *const Slot<T> {
        // SAFETY: `tail` is below the capacity. A run is one slot.
        unsafe { &self.shared.body.cell(self.tail).item }
    }

    #[inline(always)]
    unsafe fn release(&mut self, n: usize) {
        let ring = &self.shared.body;
        for _ in 0..n {
            // SAFETY: `tail` is below the capacity.
            unsafe { ring.cell(self.tail) }.free();
            self.tail = ring.after(self.tail, 1);
            self.position = self.position.wrapping_add(1);
            self.until_slip = self.until_slip.saturating_sub(1);
        }
        self.shared.control.slots_freed(self.position);
    }

    fn position(&self) -> usize {
        self.position
    }

    fn len(&self) -> usize {
        match self.sealed {
            None => self.filled(self.shared.body.capacity),
            Some(end) => end.wrapping_sub(self.position),
        }
    }

    fn seal(&mut self) -> usize {
        let end = self.position.wrapping_add(self.filled(self.shared.body.capacity));
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

impl<T> Drop for FastForwardConsumer<T> {
    fn drop(&mut self) {
        self.shared.body.cells.leave(self.tail);
    }
}
