//! The lock of the designs that do not sleep under it: test and test-and-set.

use super::design::Stay;
#[cfg(not(loom))]
use crate::start::START_32;
use crate::sync::{Acquire, AtomicU32, Relaxed, Release, UnsafeCell};
#[cfg(not(loom))]
use crate::sync::{pause, spin_loop};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// A spin lock with what it protects, which moves in the same line.
///
/// # Synchronization
/// Store-release on leaving → compare-and-swap-acquire on entering.
///
/// A thread that finds the lock held reads it now and then until it is free before trying again. So the thread inside
/// keeps the line and gets on with its next calls, too. With `std` the waiting thread yields now and then, should the
/// thread inside be preempted.
#[derive(Debug)]
pub(super) struct Lock<P> {
    /// [`FREE`] or [`HELD`].
    state: AtomicU32,
    #[cfg(loom)]
    queue: Queue,
    protected: UnsafeCell<P>,
}

/// In a model two threads that spin may let each other run for ever. So a thread that finds the lock held sleeps until
/// it was free: nothing that the lock orders depends on it.
#[cfg(loom)]
#[derive(Debug, Default)]
struct Queue {
    gate: loom::sync::Mutex<()>,
    was_free: loom::sync::Condvar,
}

const FREE: u32 = 0;
const HELD: u32 = 1;

/// For how many pause instructions a thread that finds the lock held waits before it looks again.
///
/// Each look takes the line away from the thread inside, whose next call would find it there. So a thread with a single
/// item waits for several pauses. A thread with a batch takes the line seldom, and would wait for longer than the lock
/// is held.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Pauses {
    Batch = 1,
    Single = 8,
}

// SAFETY: what is protected is reached by the holder of the lock only, on whatever thread, hence `P: Send`.
unsafe impl<P: Send> Sync for Lock<P> {}

impl<P> Lock<P> {
    pub(super) fn new(protected: P) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            #[cfg(loom)]
            queue: Queue::default(),
            protected: UnsafeCell::new(protected),
        }
    }

    /// Takes the lock; none if another thread has it and the caller will not stay.
    #[inline(always)]
    pub(super) fn enter(&self, stay: Stay, pauses: Pauses) -> Option<Guard<'_, P>> {
        while self.state.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            if stay == Stay::No {
                return None;
            }
            self.wait(pauses);
        }
        // The pointer stays valid: loom only checks the moment, so the lock itself is what its models prove.
        let protected = self.protected.with_mut(|protected| NonNull::new(protected).expect("a cell has an address"));
        Some(Guard { lock: self, protected })
    }

    /// Whether another thread has the lock, which may have changed since.
    #[cfg(feature = "std")]
    pub(super) fn is_held(&self) -> bool {
        self.state.load(Relaxed) == HELD
    }

    /// Takes the lock.
    #[inline(always)]
    pub(super) fn lock(&self) -> Guard<'_, P> {
        self.enter(Stay::ForLock, Pauses::Single).expect("it stays")
    }

    /// What is protected, for the only thread that is left.
    pub(super) fn get_mut(&mut self) -> &mut P {
        // SAFETY: the reference is the only one.
        self.protected.with_mut(|protected| unsafe { &mut *protected })
    }

    #[cfg(not(loom))]
    #[cold]
    #[inline(never)]
    fn wait(&self, pauses: Pauses) {
        let mut spent = START_32;
        while self.state.load(Relaxed) != FREE {
            for _ in 1..pauses as u32 {
                spin_loop();
            }
            spent = spent.wrapping_add(pauses as u32);
            pause(spent);
        }
    }

    #[cfg(loom)]
    fn wait(&self, _: Pauses) {
        let gate = self.queue.gate.lock().expect("nothing panics under this lock");
        if self.state.load(Relaxed) != FREE {
            drop(self.queue.was_free.wait(gate));
        }
    }
}

/// The hold of the lock, until this is dropped.
pub(super) struct Guard<'a, P> {
    lock: &'a Lock<P>,
    protected: NonNull<P>,
}

impl<P> Deref for Guard<'_, P> {
    type Target = P;

    #[inline(always)]
    fn deref(&self) -> &P {
        // SAFETY: we hold the lock, so no other thread has a reference.
        unsafe { self.protected.as_ref() }
    }
}

impl<P> DerefMut for Guard<'_, P> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut P {
        // SAFETY: we hold the lock, so no other thread has a reference.
        unsafe { self.protected.as_mut() }
    }
}

impl<P> Drop for Guard<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.state.store(FREE, Release);
        #[cfg(loom)]
        {
            let _gate = self.lock.queue.gate.lock();
            self.lock.queue.was_free.notify_all();
        }
    }
}
