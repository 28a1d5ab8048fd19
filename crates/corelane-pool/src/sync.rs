//! The one file that knows std, loom and shuttle: everything else imports its locks and threads from here.

#[cfg(shuttle)]
pub(crate) use corelane::model::{AtomicUsize, Condvar, Instant, Mutex, MutexGuard};
#[cfg(loom)]
pub(crate) use loom::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicUsize, fence},
    },
    thread::{Builder, JoinHandle},
    thread_local,
};
#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::atomic::fence,
    thread::{Builder, JoinHandle},
    thread_local,
};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicUsize, fence},
    },
    thread::{Builder, JoinHandle},
    thread_local,
};

#[cfg(not(shuttle))]
pub(crate) use std::time::Instant;

/// Counts that one thread writes, and hints: nothing is decided by their order, so loom need not know them.
pub(crate) mod plain {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
}
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// 128 bytes, so that what one thread writes often shares no line with what others read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Locks. No user's code runs under a lock of this crate, so none is ever poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics under this lock")
}

/// Waits for a change of what the lock protects; `None` for the time means without end. Comes back for no reason, too.
pub(crate) fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>, until: Option<Instant>) -> MutexGuard<'a, T> {
    match until {
        None => changed.wait(guard).expect("nothing panics under this lock"),
        Some(until) => {
            let left = until.saturating_duration_since(Instant::now());
            changed.wait_timeout(guard, left).expect("nothing panics under this lock").0
        }
    }
}
