//! What a pool is told: where tasks wait, what becomes of those that find no room, how many threads there are.

use crate::error::BuildError;
use corelane::handoff::Fairness;
use std::any::Any;
use std::time::Duration;

/// Where tasks are for which no thread is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// Nowhere: a task is handed to a thread that waits, or a thread is started for it, or it is rejected. Of several
    /// threads that wait, the fairness says which.
    HandOff(Fairness),
    /// In a queue without a bound.
    Unbounded,
    /// In a queue with room for so many, at least 1.
    Bounded(usize),
}

impl Queueing {
    pub(crate) fn queues(self) -> bool {
        !matches!(self, Self::HandOff(_))
    }
}

/// What [`execute`](crate::ThreadPool::execute) and [`spawn`](crate::ThreadPool::spawn) do with a task for which there
/// is neither a thread nor room. After a shutdown, and when no thread can be started, tasks are always returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Return it.
    Return,
    /// Run it in the thread that came with it.
    CallerRuns,
    /// Wait so long for a thread, also for one that is just being started, or for room, then return it.
    /// [`Duration::MAX`] waits for ever.
    Block(Duration),
    /// Drop it.
    Discard,
    /// Drop the task that has waited longest, in its favour. Where there is no queue: drop it.
    DiscardOldest,
}

/// What the drop of a pool's last handle does beyond [`shutdown`](crate::ThreadPool::shutdown).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrop {
    /// Waits until all tasks are done and all threads have ended. Not in a thread of the pool itself, which cannot wait
    /// for its own end.
    Join,
    /// Nothing: the threads end by themselves when the tasks are done.
    Detach,
}

/// Is called with the number of a thread, with a panic, or with nothing.
pub(crate) type Hook<A> = Box<dyn Fn(A) + Send + Sync>;

/// What stays as it was when the pool was made.
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
    pub(crate) on_panic: Option<Hook<Box<dyn Any + Send>>>,
    pub(crate) on_terminated: Option<Hook<()>>,
}

/// How many threads there may be, and how long they stay. They may change while the pool runs.
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
