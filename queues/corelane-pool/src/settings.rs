//! The settings of a pool: where tasks wait, what happens to tasks without room, and how many threads there are.

use crate::error::BuildError;
use crate::error::drop_payload;
use crate::sync::Arc;
use corelane::handoff::Fairness;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Where a task goes if no thread is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// Nowhere. The task is handed to a waiting thread, or a thread is started for it, or it is rejected. If several
    /// threads wait, the fairness chooses one.
    HandOff(Fairness),
    /// Into a queue without a bound.
    Unbounded,
    /// Into a queue with room for this many tasks, at least 1.
    Bounded(usize),
}

impl Queueing {
    pub(crate) fn queues(self) -> bool {
        !matches!(self, Self::HandOff(_))
    }
}

/// What [`execute`](crate::ThreadPool::execute) and [`spawn`](crate::ThreadPool::spawn) do with a task for which there
/// is neither a thread nor room. A task is always returned after a shutdown, and when no thread can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Return the task.
    Return,
    /// Run the task in the calling thread.
    CallerRuns,
    /// Wait for a thread, including one that is just being started, or for room. Return the task if the time is up.
    /// [`Duration::MAX`] waits for ever; [`start_with`](crate::Builder::start_with) never waits.
    Block(Duration),
    /// Drop the task.
    Discard,
    /// Drop the task that has waited longest, to make room for the new one. Without a queue, drop the new one.
    DiscardOldest,
}

/// What the drop of a pool's last handle does beyond [`shutdown`](crate::ThreadPool::shutdown).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrop {
    /// Waits until all tasks and all threads have ended. A thread of the pool itself does not wait, not even in a
    /// destructor of a thread-local, because it cannot wait for its own end.
    Join,
    /// Nothing: the threads end by themselves when the tasks are done.
    Detach,
}

/// A callback that gets the number of a thread, or nothing.
pub(crate) type Hook<A> = Box<dyn Fn(A) + Send + Sync>;

/// The handler of panics, if there is one. Shared with the handles of tasks that have panicked.
#[derive(Clone, Default)]
pub(crate) struct Handler(Option<Arc<OnPanic>>);

type OnPanic = dyn Fn(Box<dyn Any + Send>) + Send + Sync;

impl Handler {
    pub(crate) fn new(handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(handler)))
    }

    /// Gives a counted panic to the handler. A panic of the handler, or of the payload's drop, ends here.
    pub(crate) fn call(&self, payload: Box<dyn Any + Send>) {
        let handled = catch_unwind(AssertUnwindSafe(|| match &self.0 {
            Some(handler) => handler(payload),
            None => drop(payload),
        }));
        if let Err(payload) = handled {
            drop_payload(payload);
        }
    }
}

/// Settings that never change after the pool was made.
pub(crate) struct Config {
    pub(crate) queueing: Queueing,
    pub(crate) rejection: Rejection,
    pub(crate) on_drop: OnDrop,
    pub(crate) core_first: bool,
    pub(crate) measure_waits: bool,
    pub(crate) name: Option<String>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) on_thread_start: Option<Hook<usize>>,
    pub(crate) on_thread_stop: Option<Hook<usize>>,
    pub(crate) before_task: Option<Hook<()>>,
    pub(crate) after_task: Option<Hook<()>>,
    pub(crate) on_panic: Handler,
    pub(crate) on_terminated: Option<Hook<()>>,
}

/// How many threads there may be, and how long they stay. These settings may change while the pool runs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Limits {
    pub(crate) core: usize,
    pub(crate) max: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) core_may_leave: bool,
}

impl Limits {
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        if self.max == 0 {
            return Err(BuildError::NoThreads);
        }
        if self.core > self.max {
            return Err(BuildError::CoreAboveMax { core: self.core, max: self.max });
        }
        Ok(())
    }
}
