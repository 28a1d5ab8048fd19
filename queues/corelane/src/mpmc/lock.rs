//! The lock of the designs that do not sleep under it: test and test-and-set, and a line for those that wait for long.

use super::design::Stay;
use crate::start::START_32;
use crate::sync::{Acquire, AtomicU16, AtomicU32, Relaxed, Release, UnsafeCell};
#[cfg(not(corelane_loom))]
use crate::sync::{pause, spin_loop};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// A spin lock with what it protects, which moves in the same line.
///
/// A thread that finds the lock held reads it now and then until it is free before trying again. So the thread inside
/// keeps the line and gets on with its next calls, too. With `std` the waiting thread yields now and then, should the
/// thread inside be preempted.
///
/// A thread that leaves the lock and comes back at once would keep all others out for ever: they never see it free. So
/// who has waited for [`PATIENCE`] stands in line. Who leaves the lock while others stand in line hands it over: it is
/// then the first one's alone. So of those that do not stand in line only the one inside comes before, and one that
/// has entered before it could know.
///
/// # Synchronization
/// - state, store-release on leaving → compare-and-swap-acquire on entering.
/// - served is changed under the lock. A thread in line that finds itself to be the first relies on nothing else: the
///   one before has the lock by then, so it is left again before this one takes it.
/// - came is read on leaving, and orders nothing. Who comes just then finds the lock free.
#[derive(Debug)]
pub(super) struct Lock<P> {
    /// [`FREE`], [`HELD`] or [`HANDED`].
    state: AtomicU32,
    /// How many threads have stood in line, and how many of them have got the lock. Both wrap around: of more than 2^16
    /// threads in line some come out of turn. Small, as what is protected is to lie in the same line.
    came: AtomicU16,
    served: AtomicU16,
    #[cfg(corelane_loom)]
    queue: Queue,
    protected: UnsafeCell<P>,
}

/// In a model two threads that spin may let each other run for ever. So a thread that finds the lock held sleeps until
/// it was left: nothing that the lock orders depends on it.
#[cfg(corelane_loom)]
#[derive(Debug, Default)]
struct Queue {
    gate: loom::sync::Mutex<()>,
    was_left: loom::sync::Condvar,
}

const FREE: u32 = 0;
const HELD: u32 = 1;
/// To the first in line.
const HANDED: u32 = 2;

/// For how many pause instructions a thread tries for the lock before it stands in line: about a millisecond, with a
/// yield for each 64. So a line forms only where there is need, as who is next in it may not be running.
const PATIENCE: u32 = if cfg!(corelane_loom) {
    0
} else if cfg!(corelane_shuttle) {
    64
} else {
    16_384
};

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
            came: AtomicU16::new(START_32 as u16),
            served: AtomicU16::new(START_32 as u16),
            #[cfg(corelane_loom)]
            queue: Queue::default(),
            protected: UnsafeCell::new(protected),
        }
    }

    /// Takes the lock; none if another thread has it and the caller will not stay.
    #[inline(always)]
    pub(super) fn enter(&self, stay: Stay, pauses: Pauses) -> Option<Guard<'_, P>> {
        if !self.take(FREE) {
            if stay == Stay::No {
                return None;
            }
            self.wait(pauses);
        }
        // The pointer stays valid: loom only checks the moment, so the lock itself is what its models prove.
        let protected = self.protected.with_mut(|protected| NonNull::new(protected).expect("a cell has an address"));
        Some(Guard { lock: self, protected })
    }

    /// Takes the lock if it is in this state.
    #[inline(always)]
    fn take(&self, state: u32) -> bool {
        self.state.compare_exchange(state, HELD, Acquire, Relaxed).is_ok()
    }

    /// Whether another thread has the lock, or is to have it next, which may have changed since.
    pub(super) fn is_held(&self) -> bool {
        self.state.load(Relaxed) != FREE
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

    /// Returns with the lock.
    #[cold]
    #[inline(never)]
    fn wait(&self, pauses: Pauses) {
        let mut spent = 0_u32;
        while spent < PATIENCE {
            match self.state.load(Relaxed) {
                FREE if self.take(FREE) => return,
                FREE => spent += pauses as u32,
                _ => self.rest(&mut spent, pauses, |_| true),
            }
        }
        let turn = self.came.fetch_add(1, Relaxed);
        let is_next = |state| state != HELD && self.served.load(Relaxed) == turn;
        loop {
            let state = self.state.load(Relaxed);
            if is_next(state) && self.take(state) {
                break;
            }
            self.rest(&mut spent, pauses, is_next);
        }
        self.served.store(turn.wrapping_add(1), Relaxed);
    }

    #[cfg(not(corelane_loom))]
    fn rest(&self, spent: &mut u32, pauses: Pauses, _: impl Fn(u32) -> bool) {
        for _ in 1..pauses as u32 {
            spin_loop();
        }
        *spent = spent.wrapping_add(pauses as u32);
        pause(*spent);
    }

    #[cfg(corelane_loom)]
    fn rest(&self, _: &mut u32, _: Pauses, is_over: impl Fn(u32) -> bool) {
        let gate = self.queue.gate.lock().expect("nothing panics under this lock");
        if !is_over(self.state.load(Relaxed)) {
            drop(self.queue.was_left.wait(gate));
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
        let is_awaited = self.lock.came.load(Relaxed) != self.lock.served.load(Relaxed);
        self.lock.state.store(if is_awaited { HANDED } else { FREE }, Release);
        #[cfg(corelane_loom)]
        {
            let _gate = self.lock.queue.gate.lock();
            self.lock.queue.was_left.notify_all();
        }
    }
}

#[cfg(all(test, feature = "std", not(any(corelane_loom, corelane_shuttle, miri))))]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use core::time::Duration;
    use std::time::Instant;

    /// Three threads stand in line, one after the other.
    #[test]
    fn who_leaves_hands_the_lock_to_the_first_in_line() {
        let (lock, order) = (Lock::new(()), std::sync::Mutex::new(std::vec::Vec::new()));
        std::thread::scope(|scope| {
            let inside = lock.lock();
            for number in 0..3 {
                let (lock, order) = (&lock, &order);
                scope.spawn(move || {
                    let _inside = lock.lock();
                    order.lock().unwrap().push(number);
                });
                while lock.came.load(Relaxed) == (START_32 as u16).wrapping_add(number) {
                    std::thread::yield_now();
                }
            }
            drop(inside);
            loop {
                if let Some(_inside) = lock.enter(Stay::No, Pauses::Single) {
                    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
                    break;
                }
            }
        });
    }

    /// As a receiver that finds items in a lane for ever, beside a close.
    #[test]
    fn who_comes_back_at_once_lets_others_in() {
        let (lock, got) = (Lock::new(()), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let mut inside = lock.enter(Stay::No, Pauses::Single);
            scope.spawn(|| {
                let _inside = lock.lock();
                got.store(true, SeqCst);
            });
            let since = Instant::now();
            while !got.load(SeqCst) && since.elapsed() < Duration::from_secs(20) {
                let entered = Instant::now();
                while inside.is_some() && entered.elapsed() < Duration::from_micros(50) {}
                drop(inside);
                inside = lock.enter(Stay::No, Pauses::Single);
            }
            assert!(got.load(SeqCst), "it waits for ever");
        });
    }
}
