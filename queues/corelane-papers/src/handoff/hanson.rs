//! Hanson's synchronous queue: three semaphores.
//!
//! Source: Listing 1 of "Scalable Synchronous Queues" (Scherer, Lea, Scott); D. R. Hanson, "C Interfaces and
//! Implementations", 1997.
//!
//! # How it works
//!
//! 1. `send` admits one put at a time. The put stores its item, releases `recv`, and waits for `sync`.
//! 2. A take acquires `recv`, takes the item, and releases `sync` for the put and `send` for the next put.
//!
//! A rendezvous that has begun cannot be undone. So there are no time-outs and no `try_` calls.
//!
//! # Synchronization
//!
//! - recv, release (put) → acquire (take): the item is written before it is read.
//! - send, release (take) → acquire (next put): the item is read before the next one is written.
//! - sync, release (take) → acquire (put): everything before the take is visible after the put.
//!
//! # Progress
//!
//! Blocking. Each side makes three operations, and at least one of them sleeps.
//!
//! # When to use it, and when not
//!
//! Never use it, except to measure what the textbook's form costs.
//!
//! # Memory
//!
//! One item.

use super::NO_PANIC;
use corelane::papers::{Condvar, Mutex, UnsafeCell};
use std::fmt;

/// A counting semaphore. A thread that has to wait sleeps at once.
struct Semaphore {
    permits: Mutex<usize>,
    released: Condvar,
}

impl Semaphore {
    fn new(permits: usize) -> Self {
        Self { permits: Mutex::new(permits), released: Condvar::new() }
    }

    fn acquire(&self) {
        let mut permits = self.permits.lock().expect(NO_PANIC);
        while *permits == 0 {
            permits = self.released.wait(permits).expect(NO_PANIC);
        }
        *permits -= 1;
    }

    fn release(&self) {
        *self.permits.lock().expect(NO_PANIC) += 1;
        self.released.notify_one();
    }
}

/// Hanson's synchronous queue. See the [module](super) for its limits.
///
/// ```
/// use corelane_papers::handoff::Hanson;
///
/// let queue = Hanson::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.put(1));
///     assert_eq!(queue.take(), 1);
/// });
/// ```
pub struct Hanson<T> {
    item: UnsafeCell<Option<T>>,
    sync: Semaphore,
    send: Semaphore,
    recv: Semaphore,
}

// SAFETY: items move between threads, hence `T: Send`. The semaphores admit one thread at a time to the item.
unsafe impl<T: Send> Sync for Hanson<T> {}

impl<T: Send> Hanson<T> {
    /// Makes a queue in which no thread waits.
    pub fn new() -> Self {
        let (sync, send, recv) = (Semaphore::new(0), Semaphore::new(1), Semaphore::new(0));
        Self { item: UnsafeCell::new(None), sync, send, recv }
    }

    /// Waits for an item.
    pub fn take(&self) -> T {
        self.recv.acquire();
        // SAFETY: the one put that `send` admitted has released `recv` once and no longer touches the item. `send`
        // admits no other put before it is released below.
        let item = self.item.with_mut(|item| unsafe { (*item).take() });
        self.sync.release();
        self.send.release();
        item.expect("recv is released behind an item")
    }

    /// Waits until the item is taken.
    pub fn put(&self, item: T) {
        self.send.acquire();
        // SAFETY: `send` admits one put at a time, and no take gets past `recv` before `recv` is released below.
        self.item.with_mut(|slot| unsafe { *slot = Some(item) });
        self.recv.release();
        self.sync.acquire();
    }
}

impl<T: Send> Default for Hanson<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Hanson<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hanson").finish_non_exhaustive()
    }
}
