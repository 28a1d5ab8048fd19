//! What a queue counts about its calls, as a type parameter: nothing, or everything.
//!
//! ```
//! use corelane::mpmc::{self, Counting, Options};
//!
//! let queue = mpmc::ticket::queue_with(2, Options::new().stats::<Counting>()).unwrap();
//! assert_eq!(queue.try_push_batch(&mut vec![1, 2, 3]), Ok(2));
//! assert!(queue.try_push(3).is_err());
//! assert_eq!(queue.pop(), Ok(1));
//!
//! let stats = queue.stats();
//! assert_eq!((stats.push.attempts, stats.push.failures, stats.push.items), (2, 1, 2));
//! assert_eq!((stats.pop.attempts, stats.pop.failures, stats.pop.items), (1, 0, 1));
//! ```
//!
//! - The counts are those of the experiment in section 4.3 of the paper: how often threads tried, and how often in
//!   vain.
//! - A queue is shared, so its counters are too, and each call that is counted moves their cache line.
//! - [`NoStats`], the default, is no code and no memory at all.

use super::side::Side;
use crate::sync::Padded;
// Not loom's: nothing is ordered by a count.
use crate::sync::plain::{AtomicU64, Ordering::Relaxed};

/// The counts of both sides of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Pushes.
    pub push: Attempts,
    /// Pops.
    pub pop: Attempts,
}

/// The counts of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempts {
    /// How often the algorithm was tried. A waiting call tries again and again; that of [`condvar`](super::condvar)
    /// tries once, and sleeps in the middle.
    pub attempts: u64,
    /// Attempts that moved nothing: full or empty, busy or closed.
    pub failures: u64,
    /// Lost races inside of attempts: compare-and-swaps that failed because another thread was faster.
    pub retries: u64,
    /// Items moved.
    pub items: u64,
    /// How often a thread slept.
    pub sleeps: u64,
}

/// Whether a queue counts: [`NoStats`] or [`Counting`].
///
/// Sealed.
pub trait Recorder: sealed::Recorder + Default + Send + Sync + 'static {}

pub(super) mod sealed {
    use super::Side;

    pub trait Recorder {
        /// An attempt was made, and moved so many items.
        #[inline(always)]
        fn tried(&self, _side: Side, _items: usize) {}
        /// A compare-and-swap failed.
        #[inline(always)]
        fn retried(&self, _side: Side) {}
        #[inline(always)]
        fn slept(&self, _side: Side) {}
    }
}

/// Counts nothing, and costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoStats;

impl Recorder for NoStats {}
impl sealed::Recorder for NoStats {}

/// Counts everything.
#[derive(Debug, Default)]
pub struct Counting {
    push: Padded<Counters>,
    pop: Padded<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    attempts: AtomicU64,
    failures: AtomicU64,
    retries: AtomicU64,
    items: AtomicU64,
    sleeps: AtomicU64,
}

impl Counters {
    fn read(&self) -> Attempts {
        Attempts {
            attempts: self.attempts.load(Relaxed),
            failures: self.failures.load(Relaxed),
            retries: self.retries.load(Relaxed),
            items: self.items.load(Relaxed),
            sleeps: self.sleeps.load(Relaxed),
        }
    }
}

impl Counting {
    fn side(&self, side: Side) -> &Counters {
        match side {
            Side::Push => &self.push,
            Side::Pop => &self.pop,
        }
    }

    pub(super) fn stats(&self) -> Stats {
        Stats { push: self.push.read(), pop: self.pop.read() }
    }
}

impl Recorder for Counting {}

impl sealed::Recorder for Counting {
    fn tried(&self, side: Side, items: usize) {
        let counters = self.side(side);
        counters.attempts.fetch_add(1, Relaxed);
        if items == 0 {
            counters.failures.fetch_add(1, Relaxed);
        } else {
            counters.items.fetch_add(items as u64, Relaxed);
        }
    }

    fn retried(&self, side: Side) {
        self.side(side).retries.fetch_add(1, Relaxed);
    }

    fn slept(&self, side: Side) {
        self.side(side).sleeps.fetch_add(1, Relaxed);
    }
}
