//! A bounded queue that no stopped thread holds up: two rings of indices, whose positions are drawn by fetch-and-add.
//!
//! ```
//! let (sender, receiver) = corelane::mpmc::scq::channel(8);
//! sender.push(1).unwrap();
//! assert_eq!(receiver.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`mpmc`](super#promises). No call says `Busy`.
//! - **Linearizable.** Single calls are, and batches as sequences of single calls, between which others may come. The
//!   paper has the proof for a ring.
//! - **`Empty` is exact.** A thread in the middle of a pop may be the one to get what was pushed since.
//! - **`Full` says that every place is taken**: by an item, or by a thread in the middle of a push or a pop. So `Full`
//!   may come early by one for each thread inside a call (by up to 64 in a batch), also for one that was stopped there.
//!   A `push` waits that out.
//! - **Progress.** `try_` calls are lock-free. A position comes to nothing because another thread got on, or because a
//!   stopped one has the entry, of which there are twice as many as places. The threshold ends what is left.
//! - **Stopped threads.** A thread that is stopped anywhere holds up no other thread's call. It keeps what it has
//!   drawn: a place, or the item that comes to its position, also one that is pushed later; in a batch up to 64 of
//!   them.
//! - **Memory.** An item and its size rounded up to a power of two up to 64, to multiples of 64 above; two rings of 16
//!   bytes for each, with the capacity rounded up to a power of two. `head`, `tail` and the threshold of a ring lie on
//!   lines of their own.
//!
//! # When to use it, and when not
//!
//! Use it where threads may be stopped inside a call, by a debugger, a signal or a scheduler that has more threads than
//! CPUs, and the others must get on. Use it also where many threads push or pop at once, as a fetch-and-add never
//! fails. Between few threads [`ticket`](super::ticket) takes a quarter of the atomic operations.
//!
//! # How it works
//!
//! Source: Ruslan Nikolaev, "A Scalable, Portable, and Memory-Efficient Lock-Free FIFO Queue" (DISC 2019), sections 4
//! and 5: SCQ. Exact capacities, batches, close, `len` and the wrap-around of positions are this library's.
//!
//! 1. The items lie in an array. Two rings hold indices into it: `free` the places without an item, `filled` those with
//!    one, oldest first. A push takes an index from `free`, writes its item there, and puts the index into `filled`. A
//!    pop takes an index from `filled`, reads the item, and puts the index back into `free`.
//! 2. A ring has at least twice as many entries as there are indices. An entry is one word: a cycle, a flag, an index
//!    or `NONE`. A *position* is a cycle and the number of an entry. `tail` is the next to be put at, `head` the next
//!    to be taken from. Cycles wrap around.
//! 3. A thread that puts an index draws a position by a fetch-and-add of `tail`. If the entry is of an older cycle and
//!    holds no index, the thread writes its own index there, with the cycle. Otherwise it draws the next position.
//! 4. A thread that takes an index draws a position at `head`.
//!    - If the entry is of that cycle, the index there is the thread's own.
//!    - If the entry is of an older cycle, nothing may come there at this position any more. The thread gives an empty
//!      entry its own cycle. From an entry that holds an older index it takes the flag `SAFE`, so that a later cycle is
//!      written there only where no taker has passed. Then it draws the next position, unless `tail` says that there is
//!      none.
//! 5. So a put may find its entry spoilt by a taker that came too soon, and takers could spoil entry after entry.
//!    Takers have a number of failures, the *threshold*, which every put sets anew. Once it is used up nothing is in
//!    the ring.
//! 6. A batch draws the positions of up to 64 items at once, and draws again for what comes to nothing.
//! 7. A close raises the flag `CLOSED` in `filled`'s `tail`. A put that draws a position after it gives up. A pop of a
//!    closed queue goes on, whatever the threshold, until it has passed `tail`: so after `Closed` nothing comes any
//!    more.
//!
//! # What differs from the paper
//!
//! - The threshold is far beyond the paper's `3n - 1`, which holds for at most n threads. So it is rarely used up.
//!   Instead a taker that has failed compares `head` with `tail` before it draws again. It draws nothing from an empty
//!   ring, so threads that wait for an item move no line.
//! - Each ring keeps the last position where a put came to nothing, which is what `len` needs beside `tail` and `head`.
//!
//! # Synchronization
//!
//! Every access to `head`, `tail`, the threshold and the entries is sequentially consistent: the proof reads as if
//! there were one order of them. An item is written before its index is put, and read after the index was taken, by the
//! same entry; the same from the pop that frees a place to the push that takes it.

use super::design::{Design, Raw, Stay, Waiting, sealed};
use super::side::Side;
use super::stats::{NoStats, Recorder};
use crate::bound::Bounded;
use crate::error::{ChannelError, TryPopError, TryPushError};
use crate::mem::buffer::{Buffer, drop_all};
use crate::mem::moving::Moving;
use crate::sync::{Acquire, AtomicBool, AtomicU64, Padded, Release, SeqCst, Slot, init_slot, retry, strict_look};
use alloc::vec::Vec;
use core::marker::PhantomData;

/// The two rings of indices as a type parameter of [`Queue`](super::Queue).
#[derive(Clone, Copy, Debug, Default)]
pub struct Scq;

super::aliases!(Scq, scq, bounded);

/// In a `tail`, below the positions.
const CLOSED: u64 = 1;
/// From a position to the next.
const ONE: u64 = 2;
/// How many positions a batch draws at once.
const RUN: usize = 64;
/// How many takers may fail after a put. It is more than can lie between a taker and the index that was put. Those are
/// the entries, 2^33 at most, and what 2^22 threads may have drawn, as many as a system has. A model has few threads.
const THRESHOLD: u64 = if cfg!(corelane_loom) { 16 } else { 1 << 40 };
/// Entries that follow each other in a ring lie on different lines where it has more than two to the power of this.
const SPREAD: u32 = 3;

/// Why nothing was taken from a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nothing {
    /// At some moment of the call.
    Now,
    /// From now on: the ring is closed.
    AnyMore,
}

/// A ring of indices.
///
/// An entry is, from its highest bit: the cycle, the flag that it is safe, the index. A position has the number of its
/// entry in the place of the lower two, and [`CLOSED`] below.
struct Indices {
    tail: Padded<AtomicU64>,
    head: Padded<AtomicU64>,
    /// How many takers may still fail, as a signed number.
    threshold: Padded<AtomicU64>,
    /// The last position where a put came to nothing: before `head`, but for a moment, beside a stopped taker, or after
    /// a close.
    skipped: Padded<AtomicU64>,
    buffer: Buffer,
    /// The number of entries is a power of two, this one.
    order: u32,
}

impl Indices {
    /// A ring for the indices below `count`, empty or with all of them. Its positions start here, or a little before.
    fn new(count: usize, is_filled: bool, start: u64) -> Result<Self, ChannelError> {
        let entries = count.checked_next_power_of_two().and_then(|n| n.checked_mul(2)).ok_or(ChannelError::TooLarge)?;
        let order = entries.trailing_zeros();
        let buffer = Buffer::new(entries, size_of::<AtomicU64>(), align_of::<Padded<AtomicU64>>())?;
        let start = start & !((1 << (order + 1)) - 1);
        let put = if is_filled { count } else { 0 };
        let ring = Self {
            tail: Padded(AtomicU64::new(start.wrapping_add(put as u64 * ONE))),
            head: Padded(AtomicU64::new(start)),
            threshold: Padded(AtomicU64::new(if is_filled { THRESHOLD } else { u64::MAX })),
            skipped: Padded(AtomicU64::new(start.wrapping_sub(ONE))),
            buffer,
            order,
        };
        for number in 0..entries as u64 {
            let position = start.wrapping_add(number * ONE);
            let entry = if (number as usize) < put {
                ring.cycle(position) | ring.safe() | number
            } else {
                ring.cycle(position).wrapping_sub(ring.lap()) | ring.safe() | ring.none()
            };
            // SAFETY: inside the buffer, which no other thread knows yet.
            unsafe { ring.place(position).write(AtomicU64::new(entry)) };
        }
        Ok(ring)
    }

    /// From a position to that of the next cycle.
    #[inline(always)]
    fn lap(&self) -> u64 {
        1 << (self.order + 1)
    }

    /// The cycle of a position or an entry, where it stands in both.
    #[inline(always)]
    fn cycle(&self, word: u64) -> u64 {
        word & !(self.lap() - 1)
    }

    #[inline(always)]
    fn safe(&self) -> u64 {
        1 << self.order
    }

    /// The index that is none.
    #[inline(always)]
    fn none(&self) -> u64 {
        self.safe() - 1
    }

    fn place(&self, position: u64) -> *mut AtomicU64 {
        let number = (position & (self.lap() - 1)) >> 1;
        let place = if self.order <= SPREAD {
            number
        } else {
            // Neighbours lie a line apart: the highest bits become the lowest.
            (number << SPREAD | number >> (self.order - SPREAD)) & self.none()
        };
        // SAFETY: below the number of entries.
        unsafe { self.buffer.start().cast::<AtomicU64>().add(place as usize) }
    }

    /// The entry of a position.
    #[inline(always)]
    fn entry(&self, position: u64) -> &AtomicU64 {
        // SAFETY: `new` has initialised every entry.
        unsafe { &*self.place(position) }
    }

    /// Puts indices in order, or as many of them as come before a close. There are never more in the ring than it was
    /// made for.
    #[inline(always)]
    fn put(&self, indices: &[u32], side: Side, stats: &impl Recorder) -> usize {
        let mut done = 0;
        while done < indices.len() {
            let left = (indices.len() - done) as u64;
            let mut position = self.tail.fetch_add(left * ONE, SeqCst);
            let end = (position & !CLOSED).wrapping_add(left * ONE);
            if position & CLOSED != 0 {
                self.skip(end.wrapping_sub(ONE));
                return done;
            }
            while position != end {
                if self.put_at(position, u64::from(indices[done])) {
                    done += 1;
                } else {
                    self.skip(position);
                    stats.retried(side);
                    retry();
                }
                position = position.wrapping_add(ONE);
            }
        }
        done
    }

    /// Nothing is put at positions up to this one any more, which were drawn.
    #[cold]
    fn skip(&self, position: u64) {
        let mut last = strict_look(&self.skipped);
        while is_before(last, position) {
            match self.skipped.compare_exchange(last, position, SeqCst, SeqCst) {
                Ok(_) => return,
                Err(now) => last = now,
            }
        }
    }

    /// Puts an index at a position that was drawn; false if a taker has passed it, or an older index is there.
    #[inline(always)]
    fn put_at(&self, position: u64, index: u64) -> bool {
        let place = self.entry(position);
        let mut entry = strict_look(place);
        loop {
            let is_free = entry & self.none() == self.none()
                && is_before(self.cycle(entry), self.cycle(position))
                && (entry & self.safe() != 0 || !is_before(position, strict_look(&self.head)));
            if !is_free {
                return false;
            }
            let filled = self.cycle(position) | self.safe() | index;
            match place.compare_exchange(entry, filled, SeqCst, SeqCst) {
                Ok(_) => break,
                Err(now) => entry = now,
            }
            retry();
        }
        if strict_look(&self.threshold) != THRESHOLD {
            self.threshold.swap(THRESHOLD, SeqCst);
        }
        true
    }

    /// Takes the oldest indices: at least one, at most as many as `indices` has room for.
    #[inline(always)]
    fn take(&self, indices: &mut [u32], side: Side, stats: &impl Recorder) -> Result<usize, Nothing> {
        let mut most = indices.len() as u64;
        let threshold = strict_look(&self.threshold);
        if threshold != THRESHOLD || most != 1 {
            let head = strict_look(&self.head);
            let tail = strict_look(&self.tail);
            let (end, is_closed) = (tail & !CLOSED, tail & CLOSED != 0);
            if !is_before(head, end) {
                return Err(if is_closed { Nothing::AnyMore } else { Nothing::Now });
            }
            if is_negative(threshold) && !is_closed {
                return Err(Nothing::Now);
            }
            most = most.min(end.wrapping_sub(head) / ONE);
        }
        let mut taken = 0;
        loop {
            let mut position = self.head.fetch_add(most * ONE, SeqCst);
            let mut nothing = None;
            // Each position that was drawn has to be passed: else an index could come there, and stay.
            for _ in 0..most {
                match self.take_at(position) {
                    Some(index) => {
                        indices[taken] = index as u32;
                        taken += 1;
                    }
                    None => nothing = self.has_failed(position),
                }
                position = position.wrapping_add(ONE);
            }
            match nothing {
                _ if taken != 0 => return Ok(taken),
                Some(nothing) => return Err(nothing),
                None => most = 1,
            }
            stats.retried(side);
            retry();
        }
    }

    /// Takes what is at a position that was drawn. If nothing is, nothing will be.
    #[inline(always)]
    fn take_at(&self, position: u64) -> Option<u64> {
        let place = self.entry(position);
        let mut entry = strict_look(place);
        loop {
            if self.cycle(entry) == self.cycle(position) {
                // Others may take its flag at the same time.
                let entry = place.fetch_or(self.none(), SeqCst);
                return Some(entry & self.none());
            }
            if !is_before(self.cycle(entry), self.cycle(position)) {
                return None;
            }
            let passed = if entry & self.none() == self.none() {
                self.cycle(position) | entry & self.safe() | self.none()
            } else {
                entry & !self.safe()
            };
            match place.compare_exchange(entry, passed, SeqCst, SeqCst) {
                Ok(_) => return None,
                Err(now) => entry = now,
            }
            retry();
        }
    }

    /// After nothing was at a position: whether there is nothing at all.
    #[cold]
    fn has_failed(&self, position: u64) -> Option<Nothing> {
        let next = position.wrapping_add(ONE);
        let tail = strict_look(&self.tail);
        let is_closed = tail & CLOSED != 0;
        if is_before(next, tail & !CLOSED) {
            let left = self.threshold.fetch_sub(1, SeqCst);
            return ((left as i64) <= 0 && !is_closed).then_some(Nothing::Now);
        }
        if is_closed {
            return Some(Nothing::AnyMore);
        }
        self.catch_up(tail, next);
        self.threshold.fetch_sub(1, SeqCst);
        Some(Nothing::Now)
    }

    /// Moves the tail to the head that has passed it: a put need not find these positions spoilt one by one.
    fn catch_up(&self, mut tail: u64, mut head: u64) {
        while tail & CLOSED == 0 && is_before(tail, head) {
            if self.tail.compare_exchange(tail, head, SeqCst, SeqCst).is_ok() {
                return;
            }
            head = strict_look(&self.head);
            tail = strict_look(&self.tail);
        }
    }

    /// How many indices are inside, about.
    fn drawn(&self) -> usize {
        let head = strict_look(&self.head);
        let end = strict_look(&self.tail) & !CLOSED;
        if is_before(head, end) { (end.wrapping_sub(head) / ONE) as usize } else { 0 }
    }

    fn close(&self) {
        self.tail.fetch_or(CLOSED, SeqCst);
    }

    #[inline(always)]
    fn is_closed(&self) -> bool {
        strict_look(&self.tail) & CLOSED != 0
    }

    /// How many indices are inside; one that a put has drawn a position for may count, one that a taker has, does not.
    ///
    /// A position before `head` has its taker: an index is taken there, or put and taker both come to nothing.
    fn len(&self, most: usize) -> usize {
        loop {
            let tail = strict_look(&self.tail);
            let head = strict_look(&self.head);
            let skipped = strict_look(&self.skipped);
            let end = tail & !CLOSED;
            let len = if !is_before(head, end) {
                0
            } else if is_before(skipped, head) {
                most.min((end.wrapping_sub(head) / ONE) as usize)
            } else {
                self.count(most)
            };
            // While the tail stood there nothing came.
            if strict_look(&self.tail) == tail {
                return len;
            }
            retry();
        }
    }

    /// How many indices, up to `most`, lie where a taker would find them now.
    fn count(&self, most: usize) -> usize {
        let mut position = strict_look(&self.head);
        let end = strict_look(&self.tail) & !CLOSED;
        let mut count = 0;
        while count < most && is_before(position, end) {
            let entry = strict_look(self.entry(position));
            if self.cycle(entry) == self.cycle(position) && entry & self.none() != self.none() {
                count += 1;
            }
            position = position.wrapping_add(ONE);
        }
        count
    }
}

/// Whether a position, or a cycle, comes before another. They wrap around.
#[inline(always)]
fn is_before(one: u64, other: u64) -> bool {
    is_negative(one.wrapping_sub(other))
}

#[inline(always)]
fn is_negative(word: u64) -> bool {
    (word as i64) < 0
}

/// Loom's atomics own memory.
#[cfg(corelane_loom)]
impl Drop for Indices {
    fn drop(&mut self) {
        for number in 0..1_u64 << self.order {
            // SAFETY: `new` has initialised every entry; each is dropped once, here.
            unsafe { self.place(number * ONE).drop_in_place() };
        }
    }
}

/// The places of the items, and the two rings.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a queue")]
pub struct Places<T> {
    filled: Indices,
    free: Indices,
    items: Buffer,
    /// Bytes from place to place.
    stride: usize,
    capacity: usize,
    /// Raised by a close, after the flag in `filled`: a push that comes later does not draw a position to be told.
    refuses: AtomicBool,
    of: PhantomData<T>,
}

// SAFETY: items move from thread to thread, hence `T: Send`; no reference to an item is shared.
unsafe impl<T: Send> Send for Places<T> {}
// SAFETY: as above; a place belongs to the thread that has taken its index from a ring, until it puts it into the
// other.
unsafe impl<T: Send> Sync for Places<T> {}

impl<T> Places<T> {
    fn new(capacity: usize, start: usize) -> Result<Self, ChannelError> {
        if u32::try_from(capacity).is_err() {
            return Err(ChannelError::TooLarge);
        }
        let (items, stride) = Buffer::of_cells::<Slot<T>>(capacity)?;
        for index in 0..capacity {
            // SAFETY: inside the buffer, which no other thread knows yet.
            unsafe { init_slot(items.start().add(index * stride).cast::<Slot<T>>()) };
        }
        let start = start as isize as i64 as u64;
        let (filled, free) = (Indices::new(capacity, false, start)?, Indices::new(capacity, true, start)?);
        Ok(Self { filled, free, items, stride, capacity, refuses: AtomicBool::new(false), of: PhantomData })
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> &Slot<T> {
        debug_assert!((index as usize) < self.capacity);
        // SAFETY: the rings hold indices below the capacity only, and `new` has initialised every slot.
        unsafe { &*self.items.start().add(index as usize * self.stride).cast::<Slot<T>>() }
    }

    /// # Safety
    /// The caller has taken the index from `free`.
    #[inline(always)]
    unsafe fn write(&self, index: u32, item: T) {
        // SAFETY: by the caller's promise the place is its own, and empty.
        self.slot(index).with_mut(|slot| unsafe { (*slot).write(item) });
    }

    /// # Safety
    /// The caller has taken the index from `filled`, or has written there and not put it; it reads once.
    #[inline(always)]
    unsafe fn read(&self, index: u32) -> T {
        // SAFETY: by the caller's promise the place is its own, with an item.
        self.slot(index).with(|slot| unsafe { (*slot).assume_init_read() })
    }

    /// Takes free places: how many, at least one.
    #[inline(always)]
    fn take_free<S: Recorder>(&self, indices: &mut [u32], stats: &S) -> Result<usize, TryPushError<()>> {
        if self.refuses.load(Acquire) {
            return Err(TryPushError::Closed(()));
        }
        self.free
            .take(indices, Side::Push, stats)
            .map_err(|_| if self.filled.is_closed() { TryPushError::Closed(()) } else { TryPushError::Full(()) })
    }

    /// Takes filled places, as [`take_free`](Self::take_free).
    #[inline(always)]
    fn take_filled<S: Recorder>(&self, indices: &mut [u32], stats: &S) -> Result<usize, TryPopError> {
        self.filled.take(indices, Side::Pop, stats).map_err(|nothing| match nothing {
            Nothing::Now => TryPopError::Empty,
            Nothing::AnyMore => TryPopError::Closed,
        })
    }
}

impl sealed::Sealed for Scq {}

impl Bounded for Scq {}

impl<T: Send> Design<T> for Scq {
    type Body = Places<T>;

    fn create(capacity: usize, start: usize) -> Result<Places<T>, ChannelError> {
        Places::new(capacity, start)
    }
}

impl<T: Send> Raw<T> for Places<T> {
    const WAITING: Waiting = Waiting::Parked;
    const MAY_BE_FULL: bool = true;

    #[inline(always)]
    fn push<S: Recorder>(&self, item: T, _: Stay, stats: &S) -> Result<(), TryPushError<T>> {
        let mut index = [0];
        if let Err(refused) = self.take_free(&mut index, stats) {
            return Err(refused.map(|()| item));
        }
        // SAFETY: just taken.
        unsafe { self.write(index[0], item) };
        if self.filled.put(&index, Side::Push, stats) == 1 {
            return Ok(());
        }
        // The place is not given back: a closed queue has no use for it.
        // SAFETY: just written, and not put.
        Err(TryPushError::Closed(unsafe { self.read(index[0]) }))
    }

    #[inline(always)]
    fn pop<S: Recorder>(&self, _: Stay, stats: &S) -> Result<T, TryPopError> {
        let mut index = [0];
        self.take_filled(&mut index, stats)?;
        // SAFETY: just taken.
        let item = unsafe { self.read(index[0]) };
        self.free.put(&index, Side::Pop, stats);
        Ok(item)
    }

    fn push_run<S: Recorder>(&self, supply: &mut Moving<'_, T>, _: Stay, stats: &S) -> Result<usize, TryPushError<()>> {
        let mut indices = [0; RUN];
        let mut pushed = 0;
        while supply.len() != 0 {
            let count = match self.take_free(&mut indices[..supply.len().min(RUN)], stats) {
                Ok(count) => count,
                Err(_) if pushed != 0 => break,
                Err(refused) => return Err(refused),
            };
            let indices = &indices[..count];
            for &index in indices {
                let item = supply.next().expect("no more were taken than there are");
                // SAFETY: just taken.
                unsafe { self.write(index, item) };
            }
            let put = self.filled.put(indices, Side::Push, stats);
            pushed += put;
            if put < count {
                // SAFETY: these came last, and what is at their places is overwritten or never looked at again.
                unsafe { supply.restore(count - put) };
                return if pushed == 0 { Err(TryPushError::Closed(())) } else { Ok(pushed) };
            }
        }
        Ok(pushed)
    }

    fn pop_run<S: Recorder>(&self, items: &mut Vec<T>, max: usize, _: Stay, stats: &S) -> Result<usize, TryPopError> {
        // Before the first is taken: it may panic.
        let most = max.min(self.filled.drawn().clamp(1, self.capacity));
        items.reserve(most);
        let mut indices = [0; RUN];
        let mut popped = 0;
        while popped < most {
            let count = match self.take_filled(&mut indices[..(most - popped).min(RUN)], stats) {
                Ok(count) => count,
                Err(_) if popped != 0 => break,
                Err(nothing) => return Err(nothing),
            };
            for &index in &indices[..count] {
                // SAFETY: just taken.
                items.push(unsafe { self.read(index) });
            }
            self.free.put(&indices[..count], Side::Pop, stats);
            popped += count;
        }
        Ok(popped)
    }

    fn close(&self) {
        self.filled.close();
        self.refuses.store(true, Release);
    }

    fn is_closed(&self) -> bool {
        self.filled.is_closed()
    }

    fn len(&self) -> usize {
        self.filled.len(self.capacity)
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn has_item(&self) -> bool {
        self.filled.count(1) != 0
    }

    fn has_room(&self) -> bool {
        self.free.count(1) != 0
    }

    fn room_alone(&self, most: usize) -> usize {
        self.free.count(most)
    }

    fn filled_alone(&self, most: usize) -> usize {
        self.filled.count(most)
    }
}

impl<T> Drop for Places<T> {
    fn drop(&mut self) {
        // No thread is in the middle of a call: whatever is in the ring is filled.
        drop_all(self.filled.count(self.capacity), |_| {
            let mut index = [0];
            if self.filled.take(&mut index, Side::Pop, &NoStats).is_ok() {
                // SAFETY: just taken.
                self.slot(index[0]).with_mut(|slot| unsafe { (*slot).assume_init_drop() });
            }
        });
        #[cfg(corelane_loom)]
        for index in 0..self.capacity {
            // SAFETY: loom's cells own memory; they were initialised in `new` and are dropped once, here.
            unsafe { self.items.start().add(index * self.stride).cast::<Slot<T>>().drop_in_place() };
        }
    }
}
