//! The place where a task waits: its waker.
//!
//! One side, the end whose task waits, puts wakers in and takes them back. The other side takes them out to wake them.
//! The waiting side is one thread at a time. The waking side of a queue is one thread at a time, too; where workers
//! leave a fan-out it is any number of threads. No side ever waits for the other.
//!
//! # How it works
//!
//! A side holds the cell while it touches the waker, for a few instructions.
//! 1. The waiting side takes the cell only if no side holds it. If the other side does, it is about to wake the task
//!    that was put before, and the waiting side must look again.
//! 2. The waking side comes when it has taken a flag down that only the waiting side raises.
//!    - If no side holds the cell, it takes the waker.
//!    - If the waiting side holds it, the waking side leaves its mark and goes. The waiting side, when it has let go,
//!      finds the flag down, raises it and looks again, which is what it would have been woken for. Where there is no
//!      flag it looks again in any case.
//! 3. If another thread of the waking side holds the cell, a waking thread leaves its mark and goes just the same. The
//!    other thread finds the mark when it lets go, which is before it wakes the task. So the task finds what either of
//!    them came for.
//!
//! No foreign code, a waker's clone, drop or wake, runs while the cell is held.
//!
//! # Synchronization
//!
//! - `holder`, release (the side that lets go) → acquire (the side that holds next): the waker is touched by one side
//!   after the other.
//! - `holder`, release (the waking side's mark, or its letting go) → acquire (the waiting side's letting go): the flag
//!   is down to a waiting side whose waker will not be woken.
//! - `holder`, release (another waking thread's mark) → acquire (the waking side's letting go) → the wake-up: what that
//!   thread did before is done to the woken task.

use crate::sync::{AcqRel, Acquire, AtomicU32, Relaxed, UnsafeCell};
use core::task::Waker;

const FREE: u32 = 0;
/// The waiting side changes the waker.
const CHANGING: u32 = 1;
/// The waking side takes the waker.
const TAKING: u32 = 1 << 1;

/// Runs what a waker does when it wakes, or is dropped: foreign code, in the middle of a call that has published, or
/// lets go of an end, and must account for it. So its panic ends here, after the panic hook has run. Without `std`
/// nothing ends a panic but the program's end.
pub(super) fn quietly(foreign: impl FnOnce()) {
    // A model's own panics are to be seen.
    #[cfg(any(corelane_loom, corelane_shuttle))]
    foreign();
    #[cfg(all(feature = "std", not(any(corelane_loom, corelane_shuttle))))]
    if let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(foreign)) {
        // Its drop may panic, too.
        core::mem::forget(payload);
    }
    #[cfg(not(any(feature = "std", corelane_loom, corelane_shuttle)))]
    {
        /// A panic beside a panic aborts.
        struct Abort;
        impl Drop for Abort {
            fn drop(&mut self) {
                panic!("a waker panicked, and without the feature `std` nothing can catch it");
            }
        }
        let abort = Abort;
        foreign();
        core::mem::forget(abort);
    }
}

/// Wakes the task that is just polled.
pub(crate) fn wake_quietly(waker: &Waker) {
    quietly(|| waker.wake_by_ref());
}

/// A waker, or none.
pub(crate) struct WakerCell {
    holder: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker is only touched by the side that holds the cell, one at a time; wakers can be used and dropped by
// any thread.
unsafe impl Sync for WakerCell {}

impl WakerCell {
    /// Wakes the task whose waker is here, if there is one; to be called by the waking side.
    ///
    /// Its panic goes no further, nor does that of a waker's drop in the calls below.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.take() {
            quietly(|| waker.wake());
        }
    }

    pub(crate) fn new() -> Self {
        Self { holder: AtomicU32::new(FREE), waker: UnsafeCell::new(None) }
    }

    /// To be called by the waiting side: another waker, or none, instead of the one that is there. Returns false if the
    /// waking side is just taking that one.
    pub(crate) fn exchange(&self, waker: Option<Waker>) -> bool {
        if self.holder.compare_exchange(FREE, CHANGING, Acquire, Relaxed).is_err() {
            quietly(|| drop(waker));
            return false;
        }
        // SAFETY: held by this side.
        let old = self.waker.with_mut(|cell| unsafe { core::mem::replace(&mut *cell, waker) });
        // A store would do if no thread left a mark; an acquire of that mark is the point.
        self.holder.swap(FREE, AcqRel);
        quietly(|| drop(old));
        true
    }

    /// What the waking side is to wake. It calls this when it has taken the flag down, or has nothing but what it did
    /// before. `None` also if the waiting side will find the flag down, or if another thread wakes it.
    pub(crate) fn take(&self) -> Option<Waker> {
        if self.holder.fetch_or(TAKING, AcqRel) != FREE {
            return None;
        }
        // SAFETY: held by this side.
        let waker = self.waker.with_mut(|cell| unsafe { (*cell).take() });
        // As above, but the mark is another waking thread's.
        self.holder.swap(FREE, AcqRel);
        waker
    }
}

impl Drop for WakerCell {
    fn drop(&mut self) {
        // SAFETY: the reference is the only one.
        let waker = self.waker.with_mut(|cell| unsafe { (*cell).take() });
        quietly(|| drop(waker));
    }
}
