//! A value that its owner takes away while other threads may come late to use it: the descriptor by which a thread is
//! woken in `poll`, which must not be written to once its number is another file's.
//!
//! # How it works
//!
//! 1. A word says whether the value is there, and counts the threads that are using it.
//! 2. A user adds itself to the count. If the value is there by then, it stays until the user has gone.
//! 3. To take the value away the owner says that it is leaving. It drops the value if no thread is using it. Otherwise
//!    the last of them does, when it goes.
//!
//! No side waits for the other. A user that is stopped in the middle keeps the value alive, and nothing else.
//!
//! # Synchronization
//!
//! - state, or-release (`put`) → add-acquire (user): the value is written before it is used.
//! - state, sub-release (user that goes) → compare-exchange-acquire (who drops the value): all uses come before the
//!   drop.
//! - state, and-release (who has dropped it) → load-acquire (`is_empty`, before the next `put`): the drop comes before
//!   the next value.

use crate::sync::{Acquire, AtomicU32, Relaxed, Release, UnsafeCell};

/// The value is there. With `LEAVING`: it is being dropped.
const HERE: u32 = 1 << 30;
/// The owner has taken it away, and some thread is using it still.
const LEAVING: u32 = 1 << 31;

/// A value, or none.
pub struct Late<T> {
    state: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written and dropped by one thread at a time, which no other uses it meanwhile, and any of them
// may drop it; in between threads share `&T`.
unsafe impl<T: Send + Sync> Sync for Late<T> {}

impl<T> Late<T> {
    #[allow(clippy::new_without_default, reason = "there is no use for it")]
    pub fn new() -> Self {
        Self { state: AtomicU32::new(0), value: UnsafeCell::new(None) }
    }

    /// For the owner: whether a value may be put in. It stays so until one is.
    pub fn is_empty(&self) -> bool {
        self.state.load(Acquire) & (HERE | LEAVING) == 0
    }

    /// For the owner.
    ///
    /// # Panics
    /// If it is not [empty](Self::is_empty).
    pub fn put(&self, value: T) {
        assert!(self.is_empty(), "the value before it is gone");
        // SAFETY: a value that is not there is used by no thread, and what was there is dropped.
        self.value.with_mut(|cell| unsafe { *cell = Some(value) });
        self.state.fetch_or(HERE, Release);
    }

    /// For the owner. Nothing if there is none.
    pub fn take_away(&self) {
        if self.state.load(Relaxed) & (HERE | LEAVING) == HERE {
            // From `HERE` to `LEAVING`: the owner alone does that.
            self.state.fetch_add(LEAVING - HERE, Relaxed);
            self.drop_unused();
        }
    }

    /// For any thread: calls with the value, if it is there. The call does not panic.
    pub fn with<R>(&self, call: impl FnOnce(&T) -> R) -> Option<R> {
        let is_here = self.state.fetch_add(1, Acquire) & (HERE | LEAVING) == HERE;
        let result = is_here.then(|| {
            // SAFETY: it was there when this thread was counted, and is dropped only when none is.
            let value = self.value.with(|cell| unsafe { &*cell });
            call(value.as_ref().expect("it is here"))
        });
        if self.state.fetch_sub(1, Release) == LEAVING | 1 {
            self.drop_unused();
        }
        result
    }

    /// Drops a value that has been taken away, unless a thread is using it, which does so then.
    fn drop_unused(&self) {
        if self.state.compare_exchange(LEAVING, HERE | LEAVING, Acquire, Relaxed).is_ok() {
            // SAFETY: no thread is using it, and one that comes now finds that it is not there.
            self.value.with_mut(|cell| unsafe { *cell = None });
            self.state.fetch_and(!(HERE | LEAVING), Release);
        }
    }
}
