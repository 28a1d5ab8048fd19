//! A ring under a lock, and threads that ask again and again and never sleep.
//!
//! ```
//! let (sender, receiver) = corelane::mpmc::busy_wait::channel(8);
//! sender.push(1).unwrap();
//! assert_eq!(receiver.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`mpmc`](super#promises), except that threads that wait never sleep.
//! - **Linearizable.** Single calls are, and batches as sequences of single ones: they take effect under the lock.
//! - **Progress.** Blocking: a thread that is stopped under the lock stops all others, but for `try_` calls. Not fair,
//!   but bounded, as the locks of [`two_lock`](super::two_lock).
//! - **Memory.** The capacity times the item's size.
//!
//! # When to use it, and when not
//!
//! Use it as the measure for the others. Threads that wait keep the lock's line moving, and so hold up the thread that
//! they wait for.
//!
//! # How it works
//!
//! Source: the busy-wait queue (BWQ) of the paper, section 2.1, and its batch version (BBWQ).
//!
//! 1. The items lie in a ring under one lock.
//! 2. A thread that finds nothing lets go of the lock and takes it again, until there is something. It never sleeps,
//!    whatever the queue's strategy. Between two attempts it spends a pause instruction, and with `std` now and then
//!    its turn on the CPU, as what it waits for may need this very CPU.
//! 3. A batch is one critical section.
//!
//! # What differs from the paper
//!
//! - The yields of step 2. The paper had a CPU for each thread.
//! - A thread with a single item that finds the lock held looks again after eight pause instructions, not at once.
//! - `try_` calls do not wait for the lock: they say `Busy` where another thread has it.
//!
//! # Synchronization
//!
//! All of it under the lock.

use super::deque::Deque;
use super::design::{Design, Raw, Stay, Waiting, sealed};
use super::lock::{Guard, Lock, Pauses};
use super::stats::Recorder;
use crate::bound::Bounded;
use crate::error::{ChannelError, TryPopError, TryPushError};
use crate::mem::moving::Moving;
use crate::sync::{AtomicUsize, Relaxed};
use alloc::vec::Vec;

/// The busy-wait queue as a type parameter of [`Queue`](super::Queue).
#[derive(Clone, Copy, Debug, Default)]
pub struct BusyWait;

super::aliases!(BusyWait, busy_wait, bounded);

/// The lock and what it protects.
#[doc(hidden)]
#[derive(Debug)]
pub struct Locked<T> {
    inner: Lock<Deque<T>>,
    capacity: usize,
    /// As many as are in the ring, for a look without the lock.
    len: AtomicUsize,
}

impl<T> Locked<T> {
    fn enter_to_push(&self, stay: Stay, pauses: Pauses) -> Result<Guard<'_, Deque<T>>, TryPushError<()>> {
        let inner = self.inner.enter(stay, pauses).ok_or(TryPushError::Busy(()))?;
        inner.may_push(self.capacity)?;
        Ok(inner)
    }

    fn enter_to_pop(&self, stay: Stay, pauses: Pauses) -> Result<Guard<'_, Deque<T>>, TryPopError> {
        let inner = self.inner.enter(stay, pauses).ok_or(TryPopError::Busy)?;
        inner.may_pop()?;
        Ok(inner)
    }
}

impl sealed::Sealed for BusyWait {}

impl Bounded for BusyWait {}

impl<T: Send> Design<T> for BusyWait {
    type Body = Locked<T>;

    fn create(capacity: usize, _: usize) -> Result<Locked<T>, ChannelError> {
        Ok(Locked { inner: Lock::new(Deque::new(capacity)?), capacity, len: AtomicUsize::new(0) })
    }
}

impl<T: Send> Raw<T> for Locked<T> {
    const WAITING: Waiting = Waiting::Busy;
    const MAY_BE_FULL: bool = true;

    fn push<S: Recorder>(&self, item: T, stay: Stay, _: &S) -> Result<(), TryPushError<T>> {
        match self.enter_to_push(stay, Pauses::Single) {
            Ok(mut inner) => {
                inner.push(item);
                self.len.store(inner.len(), Relaxed);
                Ok(())
            }
            Err(refused) => Err(refused.map(|()| item)),
        }
    }

    fn pop<S: Recorder>(&self, stay: Stay, _: &S) -> Result<T, TryPopError> {
        let mut inner = self.enter_to_pop(stay, Pauses::Single)?;
        let item = inner.pop();
        self.len.store(inner.len(), Relaxed);
        Ok(item)
    }

    fn push_run<S: Recorder>(&self, supply: &mut Moving<'_, T>, stay: Stay, _: &S) -> Result<usize, TryPushError<()>> {
        let mut inner = self.enter_to_push(stay, Pauses::Batch)?;
        let count = inner.push_run(supply, self.capacity);
        self.len.store(inner.len(), Relaxed);
        Ok(count)
    }

    fn pop_run<S: Recorder>(&self, items: &mut Vec<T>, max: usize, stay: Stay, _: &S) -> Result<usize, TryPopError> {
        let mut inner = self.enter_to_pop(stay, Pauses::Batch)?;
        let count = inner.pop_run(items, max);
        self.len.store(inner.len(), Relaxed);
        Ok(count)
    }

    fn close(&self) {
        self.inner.lock().close();
    }

    fn is_closed(&self) -> bool {
        self.inner.lock().is_closed()
    }

    fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    fn capacity(&self) -> usize {
        self.capacity
    }
}
