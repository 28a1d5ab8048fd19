//! Why a task was not accepted, or has no result. A refused task comes back inside the error. `Debug` does not print
//! the task.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{fmt, io};

/// A task that the pool did not accept, and why.
///
/// ```
/// use corelane_pool::{Reason, ThreadPool};
///
/// let pool = ThreadPool::cached();
/// pool.shutdown();
/// let rejected = pool.spawn(|| 6 * 7).unwrap_err();
/// assert!(matches!(rejected.reason(), Reason::ShutDown));
/// // It was not run, so it can be run here.
/// assert_eq!(rejected.into_task()(), 42);
/// ```
pub struct Rejected<T> {
    task: T,
    reason: Reason,
}

/// Why a task was not accepted. After [`Saturated`](Self::Saturated) and [`TimedOut`](Self::TimedOut) the task may be
/// sent again later; more threads, or more room, make them rarer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// Every thread is busy, no further thread is allowed, and the queue, if there is one, is full.
    Saturated,
    /// The pool stayed [`Saturated`](Self::Saturated) for the time that [`Rejection::Block`](crate::Rejection::Block)
    /// gives, or no thread had started by then.
    TimedOut,
    /// The pool was shut down.
    ShutDown,
    /// No thread could be started, and no running thread could take the task later. Often the system's limit on threads
    /// is reached.
    NoThread(io::Error),
}

impl<T> Rejected<T> {
    pub(crate) fn new(task: T, reason: Reason) -> Self {
        Self { task, reason }
    }

    /// The task.
    pub fn into_task(self) -> T {
        self.task
    }

    /// Why it was not accepted.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    pub(crate) fn split(self) -> (T, Reason) {
        (self.task, self.reason)
    }
}

impl<T> fmt::Debug for Rejected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rejected").field(&self.reason).finish()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saturated => f.write_str("all threads are busy, and no more tasks may wait"),
            Self::TimedOut => f.write_str("no thread was free when the time was up"),
            Self::ShutDown => f.write_str("the pool is shut down"),
            Self::NoThread(error) => write!(f, "no thread could be started: {error}"),
        }
    }
}

impl<T> fmt::Display for Rejected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pool did not accept the task: {}", self.reason)
    }
}

impl<T> std::error::Error for Rejected<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            Reason::NoThread(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a task has no result.
///
/// ```
/// use corelane_pool::{JoinError, ThreadPool};
///
/// let pool = ThreadPool::cached();
/// let outcome = pool.spawn(|| -> u32 { panic!("out of ideas") }).unwrap().join();
/// let Err(JoinError::Panicked(payload)) = outcome else { unreachable!() };
/// assert_eq!(payload.downcast_ref(), Some(&"out of ideas"));
/// ```
pub enum JoinError {
    /// The task panicked, with this payload.
    Panicked(Box<dyn Any + Send>),
    /// The task was dropped before it began: discarded, or returned by
    /// [`shutdown_now`](crate::ThreadPool::shutdown_now) and not run.
    Dropped,
}

impl JoinError {
    /// Resumes the task's panic. If the task never ran, panics as well, in the name of the caller's line.
    ///
    /// ```
    /// let pool = corelane_pool::ThreadPool::cached();
    /// let task = pool.spawn(|| 6 * 7).unwrap();
    /// // As if the task had been a call.
    /// let answer = task.join().unwrap_or_else(|error| error.resume());
    /// assert_eq!(answer, 42);
    /// ```
    #[track_caller]
    pub fn resume(self) -> ! {
        match self {
            Self::Panicked(payload) => std::panic::resume_unwind(payload),
            Self::Dropped => panic!("{self}"),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(payload) => f.debug_tuple("Panicked").field(&message(&**payload)).finish(),
            Self::Dropped => f.write_str("Dropped"),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(payload) => write!(f, "the task panicked: {}", message(&**payload)),
            Self::Dropped => f.write_str("the task never ran: it was discarded, or the pool was shut down"),
        }
    }
}

impl std::error::Error for JoinError {}

/// What a panic says, if its payload is a text.
pub(crate) fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("its payload is no text")
}

/// A fault in a [`Builder`](crate::Builder)'s settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// At most 0 threads: no task would ever run.
    NoThreads,
    /// More core threads than threads are allowed.
    CoreAboveMax {
        /// The core threads.
        core: usize,
        /// The most threads.
        max: usize,
    },
    /// A queue for 0 tasks. For a pool without a queue, choose [`Queueing::HandOff`](crate::Queueing::HandOff).
    NoCapacity,
    /// A [name](crate::Builder::name) with a zero byte, which no thread can have.
    ZeroInName,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThreads => f.write_str("the maximum is 0 threads: allow at least 1"),
            Self::CoreAboveMax { core, max } => {
                write!(f, "{core} core threads are more than the {max} threads allowed: lower one, or raise the other")
            }
            Self::ZeroInName => f.write_str("the name of the threads has a zero byte: choose another name"),
            Self::NoCapacity => f.write_str("the queue has room for 0 tasks: choose at least 1, or the hand-off"),
        }
    }
}

impl std::error::Error for BuildError {}

/// How many panics in a row are dropped, each raised by the drop of the one before. A further payload is leaked.
const PAYLOADS: usize = 16;

/// Drops the payload of a panic, and the payloads of panics that this drop raises.
pub(crate) fn drop_payload(mut payload: Box<dyn Any + Send>) {
    for _ in 0..PAYLOADS {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(next) => payload = next,
        }
    }
    std::mem::forget(payload);
}
