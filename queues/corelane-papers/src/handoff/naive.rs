//! The naive synchronous queue: one monitor.
//!
//! Source: Listing 3 of "Scalable Synchronous Queues" (Scherer, Lea, Scott).
//!
//! # How it works
//!
//! 1. A put waits until no other put is under way, and marks itself as under way. It stores its item and wakes all
//!    threads. Then it waits until the item is gone, clears the mark, and wakes all threads.
//! 2. A take waits until there is an item, takes it, and wakes all threads.
//!
//! # Synchronization
//!
//! - the monitor's lock: orders all accesses.
//!
//! # Progress
//!
//! Blocking. While n threads wait, each step of each transfer wakes all n, most of them in vain.
//!
//! # When to use it, and when not
//!
//! Never use it, except to measure what waking all threads costs.
//!
//! # Memory
//!
//! One item.

use super::NO_PANIC;
use corelane::papers::{Condvar, Mutex};
use std::fmt;

/// A synchronous queue of one monitor. See the [module](super) for its limits.
///
/// ```
/// use corelane_papers::handoff::Naive;
///
/// let queue = Naive::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.put(1));
///     assert_eq!(queue.take(), 1);
/// });
/// ```
pub struct Naive<T> {
    monitor: Mutex<Monitor<T>>,
    changed: Condvar,
}

struct Monitor<T> {
    putting: bool,
    item: Option<T>,
}

impl<T: Send> Naive<T> {
    /// Makes a queue in which no thread waits.
    pub fn new() -> Self {
        Self { monitor: Mutex::new(Monitor { putting: false, item: None }), changed: Condvar::new() }
    }

    /// Waits for an item.
    pub fn take(&self) -> T {
        let mut monitor = self.monitor.lock().expect(NO_PANIC);
        loop {
            if let Some(item) = monitor.item.take() {
                self.changed.notify_all();
                return item;
            }
            monitor = self.changed.wait(monitor).expect(NO_PANIC);
        }
    }

    /// Waits until the item is taken.
    pub fn put(&self, item: T) {
        let mut monitor = self.monitor.lock().expect(NO_PANIC);
        while monitor.putting {
            monitor = self.changed.wait(monitor).expect(NO_PANIC);
        }
        monitor.putting = true;
        monitor.item = Some(item);
        self.changed.notify_all();
        while monitor.item.is_some() {
            monitor = self.changed.wait(monitor).expect(NO_PANIC);
        }
        monitor.putting = false;
        self.changed.notify_all();
    }
}

impl<T: Send> Default for Naive<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Naive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Naive").finish_non_exhaustive()
    }
}
