//! The bounded queue to start with where several threads share a queue: a ring whose slots say whose turn it is.
//!
//! ```
//! let (sender, receiver) = corelane::mpmc::ticket::channel(8);
//! sender.push(1).unwrap();
//! assert_eq!(receiver.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`mpmc`](super#promises), with `Full` and `Empty` exact.
//! - **Linearizable.** Single calls are, and batches as sequences of single calls.
//! - **Progress.** `try_` calls are lock-free: a thread that fails to take a position lost it to another, and makes
//!   some pauses before it tries again. They never wait. As a whole the queue is non-blocking in practice and not
//!   lock-free: a thread that is stopped between its compare-and-swap and its stamp holds up those behind it once they
//!   come around to its slot.
//! - **Memory.** A slot holds the item and 8 bytes, rounded up to a power of two up to 64, and to multiples of 64
//!   above: no slot lies on more cache lines than it must. `head`, `tail` and the counts of sleeping threads lie on
//!   lines of their own.
//!
//! # When to use it, and when not
//!
//! Use it whenever several threads on one side share a queue. A producer or consumer that is alone at its side pays for
//! company it does not have: from one thread to one other [`spsc`](crate::spsc) is many times faster.
//!
//! # How it works
//!
//! Source: the bounded queue for many producers and consumers that Dmitry Vyukov published on 1024cores, with a
//! sequence number in each slot. Exact capacities, batches, close, and the difference between "full" and "not yet" are
//! this library's.
//!
//! 1. A *position* is a lap and an index, `lap << k | index << 1`, the lowest bit being free for a flag. `tail` is the
//!    position of the next push, `head` that of the next pop. Positions wrap around with the lap.
//! 2. A slot's *stamp* says what may happen to it next. If it equals a position, the slot is free for the push of that
//!    position. With the flag `FILLED` beside it, the slot holds that push's item. A pop leaves the position of the
//!    next lap.
//! 3. A push takes the position in `tail` by a compare-and-swap if the slot is free for it, then writes the item, then
//!    the stamp. A pop does the same at `head` with a filled slot. So one compare-and-swap orders all pushes, another
//!    all pops, and between the two only the slot's own line moves.
//! 4. A call that finds its slot not ready looks at the other end.
//!    - A push that finds the last lap's item still in its slot looks at `head`. If that is a lap behind, all slots are
//!      taken: `Full`. If not, a pop has taken the position and is still moving the item out: `Busy`.
//!    - A pop in front of a slot that is not filled looks at `tail`. If the two are equal: `Empty`. Otherwise a push is
//!      in the middle: `Busy`.
//! 5. A batch takes as many positions as there are free (filled) slots in a row with the one compare-and-swap. Then it
//!    writes (reads) them one by one.
//! 6. A close raises the flag `CLOSED` in `tail`. From then on no compare-and-swap of a push succeeds. Pushes whose
//!    compare-and-swap has succeeded will write their items, and pops see the positions in `tail`. So each push comes
//!    either before the close or after it.
//!
//! Positions are not drawn by fetch-and-add. Threads would disturb each other less, but a thread that has drawn a
//! position must wait until the slot is free: it cannot give up by time or close, and has no answer `Full`.
//!
//! # Linearizable
//!
//! - A push takes effect when it takes its position, a pop likewise.
//! - `Full` and `Empty` are true at the moment of the look at the other end's position. `tail` (`head`) was read before
//!   and only grows, and the two never drift further apart than the capacity (cross each other), so it was unchanged at
//!   that moment.
//! - `Busy` claims nothing.
//!
//! Without `Busy` that would not be so. Two threads push. The first has taken position 0 and is stopped there, the
//! second has pushed at 1 and returned. A pop can return neither item, as the first comes before the second; yet the
//! queue is not empty. It could only wait. The same holds with two pops and a push. So `try_` calls say `Busy` then,
//! and waiting calls wait as if it were Empty or Full.
//!
//! # Synchronization
//!
//! - stamp, store-release (push) → load-acquire (pop): the item is written before it is read. The same from pop to
//!   push: it is read before the slot is written again.
//! - `tail` and `head`, compare-and-swap-acquire-release → load-acquire: a thread that sees that a pop has taken a
//!   position also sees that a push had taken it before, so no count of what is inside is negative.
//! - A full fence before a look that may lead to `Full` or `Empty`: of two threads that each push to one queue and then
//!   find another empty, where the other one pushed, one is mistaken without it.
//! - A thread that leaves the loop below with a position in hand owns its slot until it stores the stamp: the stamp was
//!   seen after the position, which had not moved when it was taken.
//! - Waiting: see [`sleepers`](super::sleepers).

use super::design::{Design, Raw, Stay, Waiting, sealed};
use super::side::Side;
use super::stats::Recorder;
use crate::bound::Bounded;
use crate::error::{ChannelError, TryPopError, TryPushError};
use crate::mem::buffer::{Buffer, drop_all};
use crate::mem::moving::Moving;
use crate::sync::{
    AcqRel, Acquire, AtomicU64, Backoff, Padded, Relaxed, Slot, full_fence, init_slot, look, retry, set,
};
use alloc::vec::Vec;
use core::marker::PhantomData;

/// The ring of stamps as a type parameter of [`Queue`](super::Queue).
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticket;

super::aliases!(Ticket, ticket, bounded);

/// In a stamp: the slot holds the item of that position.
const FILLED: u64 = 1;
/// In `tail`.
const CLOSED: u64 = 1;

#[repr(C)]
struct Cell<T> {
    stamp: AtomicU64,
    item: Slot<T>,
}

/// Head, tail and slots.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a queue")]
pub struct Ring<T> {
    tail: Padded<AtomicU64>,
    head: Padded<AtomicU64>,
    buffer: Buffer,
    /// Bytes from slot to slot.
    stride: usize,
    capacity: usize,
    /// The difference of two positions a lap apart, a power of two.
    lap: u64,
    items: PhantomData<T>,
}

// SAFETY: items move from thread to thread, hence `T: Send`; no reference to an item is shared.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above; the stamps order every access to an item.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    fn new(capacity: usize, start: usize) -> Result<Self, ChannelError> {
        let lap = (capacity as u64).checked_next_power_of_two().ok_or(ChannelError::TooLarge)? << 1;
        let (buffer, stride) = Buffer::of_cells::<Cell<T>>(capacity)?;
        // A start counts pushes, a position has a flag below and may skip indices: so the lap is the same, from the
        // end.
        let start = (start as isize as i64 as u64) & !(lap - 1);
        let ring = Self {
            tail: Padded(AtomicU64::new(start)),
            head: Padded(AtomicU64::new(start)),
            buffer,
            stride,
            capacity,
            lap,
            items: PhantomData,
        };
        for i in 0..capacity {
            // SAFETY: inside the buffer, which no other thread knows yet.
            unsafe {
                let cell = ring.buffer.start().add(i * stride).cast::<Cell<T>>();
                (&raw mut (*cell).stamp).write(AtomicU64::new(start | (i as u64) << 1));
                init_slot(&raw mut (*cell).item);
            }
        }
        Ok(ring)
    }

    #[inline(always)]
    fn index(&self, position: u64) -> usize {
        ((position & (self.lap - 1)) >> 1) as usize
    }

    /// The slot of a position.
    #[inline(always)]
    fn slot(&self, position: u64) -> &Cell<T> {
        let index = self.index(position);
        debug_assert!(index < self.capacity);
        // SAFETY: the index of a position is below the capacity, and `new` has initialised every slot.
        unsafe { &*self.buffer.start().add(index * self.stride).cast::<Cell<T>>() }
    }

    /// The position n after this one, for n up to the capacity.
    #[inline(always)]
    fn after(&self, position: u64, n: usize) -> u64 {
        let index = self.index(position) + n;
        if index < self.capacity {
            return position.wrapping_add((n as u64) << 1);
        }
        let lap = position & !(self.lap - 1);
        lap.wrapping_add(self.lap) | ((index - self.capacity) as u64) << 1
    }

    /// How many positions `to` is behind `from`: at most a lap.
    #[inline(always)]
    fn distance(&self, from: u64, to: u64) -> usize {
        let laps = (to & !(self.lap - 1)) != (from & !(self.lap - 1));
        (self.index(to) + if laps { self.capacity } else { 0 }).wrapping_sub(self.index(from))
    }

    /// How many slots in a row, up to `most`, have the stamps that they should, where one thread gives stamps and gives
    /// them in order.
    #[inline(always)]
    fn in_a_row(&self, position: u64, most: usize, stamp: impl Fn(u64) -> u64) -> usize {
        let mut count = most;
        while count > 0 {
            let last = self.after(position, count - 1);
            if look(&self.slot(last).stamp) == stamp(last) {
                break;
            }
            count -= 1;
        }
        count
    }

    /// Takes positions at the tail: the first, and how many, at least 1 and at most `max`, which is at least 1.
    #[inline(always)]
    fn claim_free(&self, max: usize, stats: &impl Recorder) -> Result<(u64, usize), TryPushError<()>> {
        let mut tail = look(&self.tail);
        let mut lost = Backoff::new();
        loop {
            if tail & CLOSED != 0 {
                return Err(TryPushError::Closed(()));
            }
            let mut free = 0;
            let mut end = tail;
            // A slot that is free for a position stays so until a push takes that position.
            while free < max && look(&self.slot(end).stamp) == end {
                free += 1;
                end = self.after(end, 1);
            }
            if free != 0 {
                match self.tail.compare_exchange_weak(tail, end, AcqRel, Acquire) {
                    Ok(_) => return Ok((tail, free)),
                    Err(now) => tail = now,
                }
                stats.retried(Side::Push);
                // On with the position that was lost to: as long as its thread has not written, its slot says so, and
                // this thread stays away longer. A new look at the tail would take several times as long.
                lost.spend();
                continue;
            }
            full_fence();
            if look(&self.head).wrapping_add(self.lap) == tail {
                return Err(TryPushError::Full(()));
            }
            let now = look(&self.tail);
            if now == tail && look(&self.slot(tail).stamp) != tail {
                return Err(TryPushError::Busy(()));
            }
            tail = now;
            retry();
        }
    }

    /// Takes positions at the head, as [`claim_free`](Self::claim_free) at the tail. Before it takes them it lets the
    /// caller prepare for their number.
    #[inline(always)]
    fn claim_filled(
        &self,
        max: usize,
        mut prepare: impl FnMut(usize),
        stats: &impl Recorder,
    ) -> Result<(u64, usize), TryPopError> {
        let mut head = look(&self.head);
        let mut lost = Backoff::new();
        loop {
            let mut filled = 0;
            let mut end = head;
            while filled < max && look(&self.slot(end).stamp) == end | FILLED {
                filled += 1;
                end = self.after(end, 1);
            }
            if filled != 0 {
                prepare(filled);
                match self.head.compare_exchange_weak(head, end, AcqRel, Acquire) {
                    Ok(_) => return Ok((head, filled)),
                    Err(now) => head = now,
                }
                stats.retried(Side::Pop);
                lost.spend();
                continue;
            }
            full_fence();
            let tail = look(&self.tail);
            if tail & !CLOSED == head {
                return Err(if tail & CLOSED != 0 { TryPopError::Closed } else { TryPopError::Empty });
            }
            let now = look(&self.head);
            if now == head && look(&self.slot(head).stamp) != head | FILLED {
                return Err(TryPopError::Busy);
            }
            head = now;
            retry();
        }
    }

    /// # Safety
    /// The caller has taken the position at the tail.
    #[inline(always)]
    unsafe fn write(&self, position: u64, item: T) {
        let slot = self.slot(position);
        // SAFETY: by the caller's promise the slot is free, and its own until the stamp is stored.
        slot.item.with_mut(|slot| unsafe { (*slot).write(item) });
        set(&slot.stamp, position | FILLED);
    }

    /// # Safety
    /// The caller has taken the position at the head.
    #[inline(always)]
    unsafe fn read(&self, position: u64) -> T {
        let slot = self.slot(position);
        // SAFETY: by the caller's promise there is an item, which is its own until the stamp is stored.
        let item = slot.item.with(|slot| unsafe { (*slot).assume_init_read() });
        set(&slot.stamp, position.wrapping_add(self.lap));
        item
    }
}

impl sealed::Sealed for Ticket {}

impl Bounded for Ticket {}

impl<T: Send> Design<T> for Ticket {
    type Body = Ring<T>;

    fn create(capacity: usize, start: usize) -> Result<Ring<T>, ChannelError> {
        Ring::new(capacity, start)
    }
}

impl<T: Send> Raw<T> for Ring<T> {
    const WAITING: Waiting = Waiting::Parked;
    const MAY_BE_FULL: bool = true;

    #[inline(always)]
    fn push<S: Recorder>(&self, item: T, _: Stay, stats: &S) -> Result<(), TryPushError<T>> {
        match self.claim_free(1, stats) {
            Ok((position, _)) => {
                // SAFETY: just taken.
                unsafe { self.write(position, item) };
                Ok(())
            }
            Err(refused) => Err(refused.map(|()| item)),
        }
    }

    #[inline(always)]
    fn pop<S: Recorder>(&self, _: Stay, stats: &S) -> Result<T, TryPopError> {
        let (position, _) = self.claim_filled(1, |_| {}, stats)?;
        // SAFETY: just taken.
        Ok(unsafe { self.read(position) })
    }

    fn push_run<S: Recorder>(&self, supply: &mut Moving<'_, T>, _: Stay, stats: &S) -> Result<usize, TryPushError<()>> {
        let (mut position, count) = self.claim_free(supply.len().min(self.capacity), stats)?;
        for _ in 0..count {
            let item = supply.next().expect("no more were taken than there are");
            // SAFETY: just taken, and moved on below.
            unsafe { self.write(position, item) };
            position = self.after(position, 1);
        }
        Ok(count)
    }

    fn pop_run<S: Recorder>(&self, items: &mut Vec<T>, max: usize, _: Stay, stats: &S) -> Result<usize, TryPopError> {
        let (mut position, count) = self.claim_filled(max.min(self.capacity), |n| items.reserve(n), stats)?;
        for _ in 0..count {
            // SAFETY: just taken, and moved on below.
            items.push(unsafe { self.read(position) });
            position = self.after(position, 1);
        }
        Ok(count)
    }

    fn close(&self) {
        self.tail.fetch_or(CLOSED, AcqRel);
    }

    fn is_closed(&self) -> bool {
        look(&self.tail) & CLOSED != 0
    }

    fn len(&self) -> usize {
        loop {
            let tail = look(&self.tail) & !CLOSED;
            let head = look(&self.head);
            // While the tail stood there the head could not pass it, nor stay behind by more than a lap.
            if look(&self.tail) & !CLOSED == tail {
                return self.distance(head, tail);
            }
            retry();
        }
    }

    fn about(&self) -> usize {
        // The head first: the tail may be more than a lap ahead of what the head was, and never behind.
        let head = look(&self.head);
        let tail = look(&self.tail) & !CLOSED;
        self.distance(head, tail).min(self.capacity)
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn has_item(&self) -> bool {
        loop {
            let head = look(&self.head);
            if self.in_a_row(head, 1, |position| position | FILLED) != 0 {
                return true;
            }
            // As long as the head stands there no pop has taken that position: there is nothing, or a push is in the
            // middle of it, which wakes a sleeping thread when it is done.
            if look(&self.head) == head {
                return false;
            }
            retry();
        }
    }

    fn has_room(&self) -> bool {
        loop {
            let tail = look(&self.tail) & !CLOSED;
            if self.in_a_row(tail, 1, |position| position) != 0 {
                return true;
            }
            if look(&self.tail) & !CLOSED == tail {
                return false;
            }
            retry();
        }
    }

    /// Not what a pop has taken the positions of, and has not read yet.
    fn room_alone(&self, most: usize) -> usize {
        let tail = look(&self.tail) & !CLOSED;
        self.in_a_row(tail, most.min(self.capacity - self.len()), |position| position)
    }

    /// Not what a push has taken the positions of, and has not written yet.
    fn filled_alone(&self, most: usize) -> usize {
        let head = look(&self.head);
        self.in_a_row(head, most.min(self.len()), |position| position | FILLED)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let head = self.head.load(Relaxed);
        let count = self.distance(head, self.tail.load(Relaxed) & !CLOSED);
        let mut position = head;
        drop_all(count, |_| {
            let slot = self.slot(position);
            position = self.after(position, 1);
            // SAFETY: no thread is in the middle of a call, so every position between the two is filled.
            slot.item.with_mut(|slot| unsafe { (*slot).assume_init_drop() });
        });
        #[cfg(corelane_loom)]
        for i in 0..self.capacity {
            // SAFETY: loom's atomics and cells own memory; they were initialised in `new` and are dropped once, here.
            unsafe { core::ptr::drop_in_place(self.buffer.start().add(i * self.stride).cast::<Cell<T>>()) };
        }
    }
}
