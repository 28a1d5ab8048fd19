//! LockRingBuffer: a ring behind a spin lock. It shows what a lock costs.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::locked::channel(8);
//! producer.push(1).unwrap();
//! assert_eq!(consumer.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`spsc`](super#promises), except that its calls take a lock.
//! - **Progress.** Blocking. A critical section is a few instructions without code of the caller, but a thread that is
//!   preempted inside stops the other one, `try_` calls too.
//!   - With `std`, a thread that has read the lock for a while yields to the scheduler, so a single CPU is enough.
//!   - Without `std` it only spins. An interrupt handler, or a thread of higher priority, that keeps the holder off
//!     their common CPU then spins for ever.
//!   - Otherwise there is no deadlock. Not fair, but bounded: an end that has waited for about a millisecond gets the
//!     lock when the other end leaves it, however soon that one comes back.
//! - **Memory.** The next power of two of the capacity, times the item's size.
//!
//! # When to use it, and when not
//!
//! Use it to see what a lock costs. Each call holds two atomic operations, one of them a read-modify-write, on a line
//! that both sides write. [`lamport`](super::lamport) is the same ring without them.
//!
//! # How it works
//!
//! Source: section II-A1 and Figure 2 of the MCRingBuffer paper (Lee, Bu, Chandranmenon), with a spin lock as in its
//! section II-D.
//!
//! 1. Both control variables, `write` and `read`, lie behind one lock.
//! 2. The producer writes an item into a slot that it knows to be free. Then it takes the lock, advances `write`, and
//!    learns from `read` how many slots are free for its next pushes.
//! 3. The consumer reads an item that it knows to be there. Then it takes the lock, advances `read`, and learns from
//!    `write` how many items there are for its next pops.
//! 4. A side that knows of no slot, or of no item, takes the lock and looks. Full and Empty are what it finds there.
//! 5. A side that finds the lock held reads it until it is free before trying again (test and test-and-set), so that
//!    the thread inside keeps the line.
//! 6. Where the other side enters again at once, the lock never looks free. So a side that has waited for long says so
//!    in a word beside the lock, with each look. A side that leaves and finds that hands the lock over: then only a
//!    side that has waited for long may enter.
//!
//! # What differs from print, and why
//!
//! - As printed, the item is copied under the lock. Here the lock protects the indices only, and a slot belongs to the
//!   side that knows of it until that side advances its index. In between, iterators and guards run code of the caller.
//!   It may take its time, panic, use the other end of the queue, or forget the guard. No thread may spin meanwhile.
//! - As printed, a call looks, copies and advances under one lock. Here the look of the next call is made along with
//!   the advance of this one. So a push or a pop takes the lock once, as printed, and once more if it knew of no slot
//!   or item. A batch takes it for each piece that it hands over at a time. A piece ends where the ring's memory does,
//!   or what was known of.
//!
//! # Synchronization
//!
//! - lock, store-release on leaving → compare-and-swap-acquire on entering: each critical section sees all that
//!   happened before the earlier ones. The producer's advance of `write` before the consumer's look: the item is
//!   written before it is read. The consumer's advance of `read` before the producer's look: the item is read before
//!   its slot is written again.
//! - The reads of step 5 order nothing: the compare-and-swap that follows does. Nor does the word of step 6: a side
//!   that raises it while the other one leaves finds the lock free.
//! - Parking and closing: see [`crate::wait`].

use super::ring::{Algorithm, Begin, Reader, Writer};
use crate::bound::Bounded;
use crate::error::ChannelError;
use crate::start::START_32;
use crate::sync::{Acquire, AtomicU32, Padded, Relaxed, Release, UnsafeCell, pause};

/// LockRingBuffer as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct Locked;

super::aliases!(Locked, locked);

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
    /// [`FREE`], [`HELD`] or [`HANDED`].
    state: AtomicU32,
    /// Not 0 while a side has waited for long. Raised at each of its looks, so the other side may take it down as well.
    waits: AtomicU32,
    indices: UnsafeCell<Indices>,
}

const FREE: u32 = 0;
const HELD: u32 = 1;
/// To the side that has waited for long.
const HANDED: u32 = 2;

/// That many looks are long: about a millisecond, with a yield for each 64.
const PATIENCE: u32 = if cfg!(any(corelane_loom, corelane_shuttle)) { 0 } else { 16_384 };

// SAFETY: only the thread that holds the lock reaches the indices.
unsafe impl Sync for Lock {}

impl Lock {
    /// Runs a critical section: a few instructions that do not panic and call nothing.
    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce(&mut Indices) -> R) -> R {
        if !self.take(FREE) {
            self.wait();
        }
        // SAFETY: we hold the lock, so no other thread has a reference.
        let result = self.indices.with_mut(|indices| section(unsafe { &mut *indices }));
        let waits = self.waits.load(Relaxed) != 0;
        self.state.store(if waits { HANDED } else { FREE }, Release);
        result
    }

    /// Takes the lock if it is in this state, or fails for no reason.
    #[inline(always)]
    fn take(&self, state: u32) -> bool {
        self.state.compare_exchange_weak(state, HELD, Acquire, Relaxed).is_ok()
    }

    /// Returns with the lock.
    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut looks = START_32;
        loop {
            looks = looks.wrapping_add(1);
            pause(looks);
            let is_long = looks > PATIENCE;
            if is_long {
                self.waits.store(1, Relaxed);
            }
            // Loom may let each read see the lock as it was a round ago, so a model would never end; no machine does
            // that for ever. The read orders nothing, so the models go without.
            let is_left = cfg!(corelane_loom) || self.state.load(Relaxed) != HELD;
            if is_left && (self.take(FREE) || is_long && self.take(HANDED)) {
                break;
            }
        }
        self.waits.store(0, Relaxed);
    }
}

#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a ring")]
pub struct Words {
    lock: Padded<Lock>,
}

impl Bounded for Locked {}

// SAFETY: each critical section sees the one before it, and what came before that; both indices are exact.
unsafe impl Algorithm for Locked {
    type Tuning = ();
    type Words = Words;
    type Writing = ();
    type Reading = ();

    fn begin<T>(_: usize, start: usize, (): &()) -> Result<Begin<Self>, ChannelError> {
        let indices = UnsafeCell::new(Indices { write: start, read: start });
        let lock = Padded(Lock { state: AtomicU32::new(FREE), waits: AtomicU32::new(0), indices });
        Ok(Begin { words: Words { lock }, writing: (), reading: () })
    }

    fn release_lag(_: usize, (): &()) -> usize {
        0
    }

    fn freed(Words { lock }: &Words) -> usize {
        lock.with(|indices| indices.read)
    }

    #[inline(always)]
    fn publish(Words { lock }: &Words, writer: &mut Writer<Self>, _: usize) -> Option<usize> {
        Some(lock.with(|indices| {
            indices.write = writer.position;
            indices.read
        }))
    }

    #[inline(always)]
    fn retract(Words { lock }: &Words, writer: &mut Writer<Self>) {
        lock.with(|indices| indices.write = writer.position);
    }

    fn published_exactly(Words { lock }: &Words) -> usize {
        lock.with(|indices| indices.write)
    }

    #[inline(always)]
    fn release(Words { lock }: &Words, reader: &mut Reader<Self>) -> (bool, Option<usize>) {
        let write = lock.with(|indices| {
            indices.read = reader.position;
            indices.write
        });
        (true, Some(write))
    }

    fn inside(Words { lock }: &mut Words) -> (usize, usize) {
        // SAFETY: borrowed for this alone, so no lock is needed.
        let Indices { write, read } = lock.indices.with(|indices| unsafe { *indices });
        (read, write)
    }
}

#[cfg(all(test, feature = "std", not(any(corelane_loom, corelane_shuttle, miri))))]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use core::time::Duration;
    use std::time::Instant;

    /// As an end that looks again and again, beside the other end's push or pop.
    #[test]
    fn who_comes_back_at_once_lets_the_other_in() {
        let lock = Lock {
            state: AtomicU32::new(FREE),
            waits: AtomicU32::new(0),
            indices: UnsafeCell::new(Indices { write: 0, read: 0 }),
        };
        let got = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let since = Instant::now();
            let stays = |_: &mut Indices| {
                let entered = Instant::now();
                while entered.elapsed() < Duration::from_micros(50) {}
                got.load(SeqCst) || since.elapsed() > Duration::from_secs(20)
            };
            lock.with(|indices| {
                scope.spawn(|| lock.with(|_| got.store(true, SeqCst)));
                stays(indices)
            });
            while !lock.with(stays) {}
            assert!(got.load(SeqCst), "it waits for ever");
        });
    }
}
