//! The one file that knows std, loom and shuttle. All other files import their locks and threads from here.

#[cfg(corelane_shuttle)]
pub(crate) use corelane::model::{AtomicUsize, Condvar, Instant, Mutex, MutexGuard};
#[cfg(corelane_loom)]
pub(crate) use loom::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicUsize, fence},
    },
    thread::{Builder, JoinHandle, ThreadId, current},
    thread_local,
};
#[cfg(corelane_shuttle)]
pub(crate) use shuttle::{
    sync::atomic::fence,
    thread::{Builder, JoinHandle, ThreadId, current},
    thread_local,
};
#[cfg(not(any(corelane_loom, corelane_shuttle)))]
pub(crate) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicUsize, fence},
    },
    thread::{Builder, JoinHandle, ThreadId, current},
    thread_local,
};

#[cfg(not(corelane_shuttle))]
pub(crate) use std::time::Instant;

/// Counts with one writer, hints, and what a thread notes for itself. No decision depends on their order, so loom need
/// not model them.
pub(crate) mod plain {
    #[cfg(feature = "portable-atomic")]
    pub(crate) use portable_atomic::AtomicU64;
    pub(crate) use std::sync::Mutex;
    #[cfg(not(feature = "portable-atomic"))]
    pub(crate) use std::sync::atomic::AtomicU64;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize};
}
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// Aligned to 128 bytes, so that data one thread often writes shares no line with data that others read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Takes a lock. No user code runs under a lock of this crate, so no lock is ever poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics under this lock")
}

/// Waits for a change of the data under the lock, at most until `until`; `None` has no time limit. May wake spuriously.
pub(crate) fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>, until: Option<Instant>) -> MutexGuard<'a, T> {
    match until {
        None => changed.wait(guard).expect("nothing panics under this lock"),
        Some(until) => {
            let left = until.saturating_duration_since(Instant::now());
            changed.wait_timeout(guard, left).expect("nothing panics under this lock").0
        }
    }
}
