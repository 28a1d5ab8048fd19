//! The published algorithms as printed, for tests and the bench only.
//!
//! Their faults are kept, because a result of the paper is a result of its faults too: Full that comes early, items that stay
//! invisible until more follow, threads that wait for each other for ever. [`crate::spsc`] has the same designs made safe.
//! Changed is only what would make a form unsound; each file lists it under "What differs from print".
//!
//! | module | what | items | hangs in a ring of two queues |
//! |---|---|---|---|
//! | [`basic_ring`] | BasicRingBuffer, Lamport's queue | any `Copy` | no |
//! | [`lock_ring`] | LockRingBuffer, a ring under a spin lock | any `Copy` | no |
//! | [`fast_forward`] | FastForward, as a baseline and tuned | words, not 0 | no |
//! | [`mcring`] | MCRingBuffer | any `Copy` | yes |
//! | [`mcring_timer`] | with a timer that has the producer inject unused elements | any `Copy` | yes |
//! | [`mcring_callback`] | with a consumer that has the outgoing queues flushed | any `Copy` | no |
//! | [`b_queue`] | B-Queue without, with plain, with self-adaptive backtracking | words, not 0 | without backtracking |
//!
//! What the forms have in common:
//!
//! - Where the papers have plain or volatile variables that both threads use, and count on x86 to keep their order, there are
//!   atomics with the weakest orders that are sound. On x86 they are the same instructions.
//! - Variables that the papers call local are one thread's, but they lie in the queue's own memory, placed as the paper
//!   places them: their cache lines are part of what was measured.
//! - A queue has as many slots as it was asked for, not a power of two: the papers measure 2,000. What is left in a queue is
//!   forgotten with it, hence `Copy`.
//! - An element that must not be NULL is a `NonZero<usize>`: one word, as the pointers of the papers, but a number, which
//!   any thread may hold without an `unsafe` promise.
//! - Nothing closes, nothing parks, nothing counts: the papers' functions return at once, and so does everything here.

pub mod b_queue;
pub mod basic_ring;
pub mod fast_forward;
pub mod lock_ring;
pub mod mcring;
pub mod mcring_callback;
pub mod mcring_timer;

use crate::error::ChannelError;
use crate::mem::buffer::Buffer;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;

/// The producer's end of a paper form: `Insert` or `enqueue`.
pub trait Enqueue<T>: Send {
    /// Inserts an item.
    ///
    /// # Errors
    /// Gives the item back where the printed function returns a failure, which need not mean that the queue is full.
    fn enqueue(&mut self, item: T) -> Result<(), T>;
}

/// The consumer's end of a paper form: `Extract` or `dequeue`.
pub trait Dequeue<T>: Send {
    /// Extracts an item; `None` where the printed function returns a failure, which need not mean that the queue is empty.
    fn dequeue(&mut self) -> Option<T>;
}

/// `CACHE_LINE` of the papers.
const CACHE_LINE: usize = 64;

/// A group of variables on a cache line of its own. The papers pad to one line, so here it is no more than one.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line<T>(T);

impl<T> Deref for Line<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The slots, in memory that was touched.
struct Array<S> {
    buffer: Buffer,
    len: u32,
    slots: PhantomData<S>,
}

// SAFETY: it owns its slots as a `Box<[S]>` does.
unsafe impl<S: Send> Send for Array<S> {}
// SAFETY: as above.
unsafe impl<S: Sync> Sync for Array<S> {}

impl<S> Array<S> {
    /// `len` slots, of which the papers have at least `least`.
    fn new(len: usize, least: usize, empty: impl Fn() -> S) -> Result<Self, ChannelError> {
        if len < least {
            return Err(ChannelError::ZeroCapacity);
        }
        // Twice the length fits, so that no sum of a position and a batch overflows.
        let short = u32::try_from(len).ok().filter(|&len| len <= u32::MAX / 2).ok_or(ChannelError::TooLarge)?;
        let buffer = Buffer::new(len, size_of::<S>(), align_of::<S>().max(CACHE_LINE))?;
        for i in 0..len {
            // SAFETY: inside the buffer, which nobody else knows yet.
            unsafe { buffer.start().cast::<S>().add(i).write(empty()) };
        }
        Ok(Self { buffer, len: short, slots: PhantomData })
    }

    /// # Safety
    /// `i` is below the number of slots.
    #[inline(always)]
    unsafe fn get(&self, i: u32) -> &S {
        debug_assert!(i < self.len);
        // SAFETY: by the caller's promise; `new` has initialised every slot.
        unsafe { &*self.buffer.start().cast::<S>().add(i as usize) }
    }
}

impl<S> fmt::Debug for Array<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<S> Drop for Array<S> {
    fn drop(&mut self) {
        // Slots hold `Copy` items, but loom's cells and atomics own memory.
        if core::mem::needs_drop::<S>() {
            for i in 0..self.len as usize {
                // SAFETY: initialised by `new`, dropped once, here.
                unsafe { self.buffer.start().cast::<S>().add(i).drop_in_place() };
            }
        }
    }
}

/// `NEXT`: the position after `i` in a ring of `len` slots.
#[inline(always)]
fn next(i: u32, len: u32) -> u32 {
    if i + 1 == len { 0 } else { i + 1 }
}

/// `spin_wait`: busy for so many cycles of the time stamp counter. Where there is none that may be read, a pause of the
/// processor counts as 64.
#[inline(always)]
fn spin_wait(ticks: u32) {
    if ticks == 0 {
        return;
    }
    #[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, miri))))]
    {
        // SAFETY: reads a counter and nothing else.
        let now = || unsafe { core::arch::x86_64::_rdtsc() };
        let start = now();
        while now().wrapping_sub(start) < u64::from(ticks) {
            core::hint::spin_loop();
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, shuttle, miri)))))]
    for _ in 0..ticks.div_ceil(64) {
        crate::sync::spin_loop();
    }
}
