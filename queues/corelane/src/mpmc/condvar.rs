//! One mutex and two condition variables: the queue that every programmer writes first.
//!
//! ```
//! let (sender, receiver) = corelane::mpmc::condvar::channel(8);
//! sender.push(1).unwrap();
//! assert_eq!(receiver.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`mpmc`](super#promises).
//! - **Linearizable.** Single calls are, and batches as sequences of single ones: they take effect under the mutex.
//! - **Progress.** Blocking: a thread that is stopped under the mutex stops all others, but for `try_` calls.
//! - **Memory.** The capacity times the item's size.
//!
//! # When to use it, and when not
//!
//! Use it as the measure for the others. For batches it is not bad at all: the mutex is rarely taken. One item at a
//! time, threads that sleep for each make it the slowest by far, in the paper as here.
//!
//! # How it works
//!
//! Source: the condition variable queue (CVQ) of the paper, section 2.2, and its batch version (BCVQ).
//!
//! 1. The items lie in a ring under one mutex. One condition variable is for threads that wait for items, one for
//!    threads that wait for room.
//! 2. A thread that finds nothing sleeps on its condition variable, which lets go of the mutex. It does so at once: no
//!    spin comes before, whatever the queue's strategy.
//! 3. A thread that changes the queue wakes one sleeper of the other side. A sleeper that is woken, takes a part and
//!    leaves more behind wakes the next. So a batch wakes as many as find something in it.
//! 4. A batch is one critical section.
//!
//! # What differs from the paper
//!
//! - Under the mutex it is known how many sleep and how many have been woken and are on their way. No thread is woken
//!   for nothing, and a call in passing makes no system call.
//! - `try_` calls do not wait for the mutex: they say `Busy` where another thread has it.
//!
//! # Synchronization
//!
//! All of it under the mutex.

use super::deque::Deque;
use super::design::{Design, Raw, Stay, Waiting, sealed};
use super::side::Side;
use super::stats::Recorder;
use crate::bound::Bounded;
use crate::error::{ChannelError, TryPopError, TryPushError};
use crate::mem::moving::Moving;
use crate::sync::{AtomicUsize, Condvar as Condition, Instant, Mutex, MutexGuard, Relaxed};
use alloc::vec::Vec;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{PoisonError, TryLockError};

/// The queue with condition variables as a type parameter of [`Queue`](super::Queue).
#[derive(Clone, Copy, Debug, Default)]
pub struct Condvar;

super::aliases!(Condvar, condvar, bounded);

/// The mutex and what it protects.
#[doc(hidden)]
#[derive(Debug)]
pub struct Monitor<T> {
    inner: Mutex<Inner<T>>,
    not_full: Condition,
    not_empty: Condition,
    capacity: usize,
    /// As many as are in the ring, for a look without the mutex.
    len: AtomicUsize,
}

#[derive(Debug)]
struct Inner<T> {
    deque: Deque<T>,
    producers: Sleepers,
    consumers: Sleepers,
}

/// The threads that sleep on a condition variable.
#[derive(Debug, Default)]
struct Sleepers {
    /// Threads in a wait.
    count: usize,
    /// Of those, how many were woken for sure and have not come back yet. May be less, as threads also come back for no
    /// reason; that costs a wake-up too many.
    woken: usize,
}

impl<T> Inner<T> {
    fn sleepers(&mut self, side: Side) -> &mut Sleepers {
        match side {
            Side::Push => &mut self.producers,
            Side::Pop => &mut self.consumers,
        }
    }
}

type Guard<'a, T> = MutexGuard<'a, Inner<T>>;

impl<T> Monitor<T> {
    fn condition(&self, side: Side) -> &Condition {
        match side {
            Side::Push => &self.not_full,
            Side::Pop => &self.not_empty,
        }
    }

    /// Wakes one that sleeps there and is not on its way.
    fn wake(&self, inner: &mut Inner<T>, side: Side) {
        let sleepers = inner.sleepers(side);
        if sleepers.count > sleepers.woken {
            sleepers.woken += 1;
            self.condition(side).notify_one();
        }
    }

    /// To be called under the mutex with its items changed by a call of this side: wakes one of the other side, and the
    /// next of this side if this call has slept and something is left.
    fn changed(&self, inner: &mut Inner<T>, side: Side, slept: bool) {
        let len = inner.deque.len();
        self.len.store(len, Relaxed);
        let (other, more) = match side {
            Side::Push => (Side::Pop, len < self.capacity),
            Side::Pop => (Side::Push, len != 0),
        };
        self.wake(inner, other);
        if slept && more {
            self.wake(inner, side);
        }
    }

    /// Takes the mutex; none if others have it and the caller will not stay.
    fn enter(&self, stay: Stay) -> Option<Guard<'_, T>> {
        // A panic under the mutex comes from a vector that could not grow, before anything was changed.
        if stay != Stay::No {
            return Some(self.inner.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Sleeps while there is nothing for this side, as long as the caller stays. Whether it slept.
    fn wait<'a>(
        &'a self,
        mut inner: Guard<'a, T>,
        side: Side,
        stay: Stay,
        stats: &impl Recorder,
    ) -> (Guard<'a, T>, bool) {
        let mut slept = false;
        let Stay::Until(deadline) = stay else { return (inner, slept) };
        loop {
            let waits = match side {
                Side::Push => matches!(inner.deque.may_push(self.capacity), Err(TryPushError::Full(()))),
                Side::Pop => matches!(inner.deque.may_pop(), Err(TryPopError::Empty)),
            };
            if !waits {
                return (inner, slept);
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return (inner, slept);
            }
            inner.sleepers(side).count += 1;
            stats.slept(side);
            slept = true;
            let condition = self.condition(side);
            inner = match left {
                None => condition.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(left) => condition.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0,
            };
            let sleepers = inner.sleepers(side);
            sleepers.count -= 1;
            sleepers.woken = sleepers.woken.saturating_sub(1);
        }
    }

    /// Enters, waits, and says whether there is room.
    fn enter_to_push(&self, stay: Stay, stats: &impl Recorder) -> Result<(Guard<'_, T>, bool), TryPushError<()>> {
        let (inner, slept) = self.wait(self.enter(stay).ok_or(TryPushError::Busy(()))?, Side::Push, stay, stats);
        inner.deque.may_push(self.capacity)?;
        Ok((inner, slept))
    }

    /// Enters, waits, and says whether there is something.
    fn enter_to_pop(&self, stay: Stay, stats: &impl Recorder) -> Result<(Guard<'_, T>, bool), TryPopError> {
        let (inner, slept) = self.wait(self.enter(stay).ok_or(TryPopError::Busy)?, Side::Pop, stay, stats);
        inner.deque.may_pop()?;
        Ok((inner, slept))
    }
}

impl sealed::Sealed for Condvar {}

impl Bounded for Condvar {}

impl<T: Send> Design<T> for Condvar {
    type Body = Monitor<T>;

    fn create(capacity: usize, _: usize) -> Result<Monitor<T>, ChannelError> {
        Ok(Monitor {
            inner: Mutex::new(Inner {
                deque: Deque::new(capacity)?,
                producers: Sleepers::default(),
                consumers: Sleepers::default(),
            }),
            not_full: Condition::new(),
            not_empty: Condition::new(),
            capacity,
            len: AtomicUsize::new(0),
        })
    }
}

impl<T: Send> Raw<T> for Monitor<T> {
    const WAITING: Waiting = Waiting::Inside;
    const MAY_BE_FULL: bool = true;

    fn push<S: Recorder>(&self, item: T, stay: Stay, stats: &S) -> Result<(), TryPushError<T>> {
        match self.enter_to_push(stay, stats) {
            Ok((mut inner, slept)) => {
                inner.deque.push(item);
                self.changed(&mut inner, Side::Push, slept);
                Ok(())
            }
            Err(refused) => Err(refused.map(|()| item)),
        }
    }

    fn pop<S: Recorder>(&self, stay: Stay, stats: &S) -> Result<T, TryPopError> {
        let (mut inner, slept) = self.enter_to_pop(stay, stats)?;
        let item = inner.deque.pop();
        self.changed(&mut inner, Side::Pop, slept);
        Ok(item)
    }

    fn push_run<S: Recorder>(
        &self,
        supply: &mut Moving<'_, T>,
        stay: Stay,
        stats: &S,
    ) -> Result<usize, TryPushError<()>> {
        let (mut inner, slept) = self.enter_to_push(stay, stats)?;
        let count = inner.deque.push_run(supply, self.capacity);
        self.changed(&mut inner, Side::Push, slept);
        Ok(count)
    }

    fn pop_run<S: Recorder>(
        &self,
        items: &mut Vec<T>,
        max: usize,
        stay: Stay,
        stats: &S,
    ) -> Result<usize, TryPopError> {
        let (mut inner, slept) = self.enter_to_pop(stay, stats)?;
        // Where the vector cannot grow, another thread has to take what this one was woken for.
        let taken = catch_unwind(AssertUnwindSafe(|| inner.deque.pop_run(items, max)));
        let count = taken.unwrap_or_else(|panic| {
            self.wake(&mut inner, Side::Pop);
            resume_unwind(panic)
        });
        self.changed(&mut inner, Side::Pop, slept);
        Ok(count)
    }

    fn close(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.deque.close();
        for side in [Side::Push, Side::Pop] {
            let sleepers = inner.sleepers(side);
            sleepers.woken = sleepers.count;
            self.condition(side).notify_all();
        }
    }

    fn is_closed(&self) -> bool {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).deque.is_closed()
    }

    fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    fn capacity(&self) -> usize {
        self.capacity
    }
}
