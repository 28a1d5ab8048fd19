//! Java's `ThreadPoolExecutor` as the paper uses it, over any synchronous queue.
//!
//! A task goes to a thread that waits in the queue, or a thread is started for the task. A thread that waits for long
//! ends. The executor has no results, catches no panics and has no other policy.

use crate::contender::{Kind, Pool, Unable};
use corelane::handoff::{Fairness, SynchronousQueue};
use corelane_papers::handoff::JavaFive;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::Duration;

/// A task, or the order to end.
pub(crate) type Order = Option<Box<dyn FnOnce() + Send>>;

/// The calls that the executor needs of a synchronous queue.
pub(crate) trait Handing: Send + Sync + 'static {
    const KIND: Kind;

    fn name() -> String;
    fn new() -> Self;

    /// Hands the order to a waiting thread, or returns it.
    fn try_put(&self, order: Order) -> Result<(), Order>;

    /// Waits for an order.
    fn take_timeout(&self, keep_alive: Duration) -> Option<Order>;
}

macro_rules! handing {
    ($(#[$doc:meta])* $name:ident, $queue:ident, $kind:ident, $label:literal) => {
        $(#[$doc])*
        pub(crate) struct $name<const FAIR: bool>($queue<Order>);

        impl<const FAIR: bool> Handing for $name<FAIR> {
            const KIND: Kind = Kind::$kind;

            fn name() -> String {
                format!("{}, {}", $label, if FAIR { "fair" } else { "unfair" })
            }

            fn new() -> Self {
                $name($queue::new(if FAIR { Fairness::Fair } else { Fairness::Unfair }))
            }

            #[inline]
            fn try_put(&self, order: Order) -> Result<(), Order> {
                self.0.try_put(order).map_err(|refused| refused.into_inner())
            }

            #[inline]
            fn take_timeout(&self, keep_alive: Duration) -> Option<Order> {
                self.0.take_timeout(keep_alive).ok()
            }
        }
    };
}

handing!(
    /// The queues of this library.
    Dual,
    SynchronousQueue,
    Corelane,
    "SynchronousQueue"
);
handing!(
    /// The queue of Java SE 5.0.
    Java,
    JavaFive,
    Paper,
    "Java SE 5.0"
);

pub(crate) type ExecutorFair = Executor<Dual<true>>;
pub(crate) type ExecutorUnfair = Executor<Dual<false>>;
pub(crate) type ExecutorJavaFair = Executor<Java<true>>;
pub(crate) type ExecutorJavaUnfair = Executor<Java<false>>;

/// The executor.
pub(crate) struct Executor<Q: Handing>(Arc<Workers<Q>>);

struct Workers<Q> {
    queue: Q,
    /// How many threads have not ended.
    alive: AtomicUsize,
}

/// Java's keep-alive time for cached threads.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

impl<Q: Handing> Pool for Executor<Q> {
    const KIND: Kind = Q::KIND;

    fn name() -> String {
        Q::name()
    }

    fn start(_: usize) -> Result<Self, Unable> {
        Ok(Executor(Arc::new(Workers { queue: Q::new(), alive: AtomicUsize::new(0) })))
    }

    #[inline(always)]
    fn execute(&self, task: impl FnOnce() + Send + 'static) -> bool {
        match self.0.queue.try_put(Some(Box::new(task))) {
            Ok(()) => true,
            Err(order) => self.start_thread(order),
        }
    }
}

impl<Q: Handing> Executor<Q> {
    #[cold]
    fn start_thread(&self, first: Order) -> bool {
        let workers = self.0.clone();
        workers.alive.fetch_add(1, Acquire);
        let work = move || {
            let mut order = Some(first);
            while let Some(Some(task)) = order {
                task();
                order = workers.queue.take_timeout(KEEP_ALIVE);
            }
            workers.alive.fetch_sub(1, Release);
        };
        let started = thread::Builder::new().spawn(work).is_ok();
        if !started {
            self.0.alive.fetch_sub(1, Release);
        }
        started
    }
}

/// Ends every thread, so that none of them is left in the next measurement.
impl<Q: Handing> Drop for Executor<Q> {
    fn drop(&mut self) {
        while self.0.alive.load(Acquire) > 0 {
            if self.0.queue.try_put(None).is_err() {
                thread::sleep(Duration::from_micros(100));
            }
        }
    }
}

impl<Q: Handing> fmt::Debug for Executor<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").finish_non_exhaustive()
    }
}
