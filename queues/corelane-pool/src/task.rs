//! Tasks, and handles to their results.

use crate::closure::Closure;
use crate::current::is_starting;
use crate::error::JoinError;
use crate::settings::Handler;
use crate::sync::{Arc, Condvar, Instant, Mutex, lock, wait};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// A closure that is run once, in any thread.
///
/// ```
/// use corelane_pool::{Task, ThreadPool};
/// use std::sync::mpsc;
///
/// let (sender, receiver) = mpsc::channel();
/// let tasks = [1, 2].map(|number| {
///     let sender = sender.clone();
///     Task::new(move || sender.send(number).unwrap())
/// });
/// let pool = ThreadPool::cached();
/// let [first, second] = tasks;
/// first.run();
/// assert_eq!(receiver.recv(), Ok(1));
/// pool.execute_task(second).unwrap();
/// assert_eq!(receiver.recv(), Ok(2));
/// ```
pub struct Task(Closure<'static>);

impl Task {
    /// Makes a task of a closure. A closure that captures at most three words is stored in the task itself; a larger
    /// one is boxed.
    #[inline]
    pub fn new(task: impl FnOnce() + Send + 'static) -> Self {
        Self(Closure::new(task))
    }

    /// Runs the task in the calling thread.
    #[inline]
    pub fn run(self) {
        self.0.call();
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

/// The outcome of a task with a result.
enum Outcome<R> {
    Pending,
    Returned(R),
    Panicked(Untaken),
    Dropped,
}

/// A task's panic, until its handle takes it. If none does, the handler of the pool gets it.
struct Untaken {
    payload: Option<Box<dyn Any + Send>>,
    /// The handler alone, so that the handle keeps nothing else of its pool.
    handler: Handler,
}

impl Drop for Untaken {
    fn drop(&mut self) {
        self.payload.take().into_iter().for_each(|payload| self.handler.call(payload));
    }
}

/// The place where a task stores its result.
pub(crate) struct Packet<R> {
    outcome: Mutex<Outcome<R>>,
    decided: Condvar,
    /// The number of the pool that the task was given to.
    pool: u64,
}

impl<R> Packet<R> {
    fn new(pool: u64) -> Self {
        Self { outcome: Mutex::new(Outcome::Pending), decided: Condvar::new(), pool }
    }

    fn decide(&self, outcome: Outcome<R>) {
        *lock(&self.outcome) = outcome;
        self.decided.notify_all();
    }

    /// Waits for the outcome, at most until `until`, and takes it.
    #[track_caller]
    fn take(&self, until: Option<Instant>) -> Option<Result<R, JoinError>> {
        let mut outcome = lock(&self.outcome);
        while matches!(*outcome, Outcome::Pending) {
            if until.is_some_and(|until| Instant::now() >= until) {
                return None;
            }
            if until.is_none() && is_starting(self.pool) {
                drop(outcome);
                panic!("a task is joined in `start_with` of its pool, which may be starting the thread for that task");
            }
            outcome = wait(&self.decided, outcome, until);
        }
        let decided = std::mem::replace(&mut *outcome, Outcome::Pending);
        // What is dropped below may be the last of a handler.
        drop(outcome);
        Some(match decided {
            Outcome::Returned(value) => Ok(value),
            Outcome::Panicked(mut panic) => Err(JoinError::Panicked(panic.payload.take().expect("it is taken once"))),
            Outcome::Dropped | Outcome::Pending => Err(JoinError::Dropped),
        })
    }

    fn is_decided(&self) -> bool {
        !matches!(*lock(&self.outcome), Outcome::Pending)
    }
}

/// A closure with a place for its result.
pub(crate) struct Job<F, R> {
    closure: Mutex<Option<F>>,
    packet: Packet<R>,
}

trait HasPacket<R>: Send + Sync {
    fn packet(&self) -> &Packet<R>;
}

impl<F: Send, R: Send> HasPacket<R> for Job<F, R> {
    fn packet(&self) -> &Packet<R> {
        &self.packet
    }
}

impl<F, R> Job<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    pub(crate) fn new(closure: F, pool: u64) -> Arc<Self> {
        Arc::new(Self { closure: Mutex::new(Some(closure)), packet: Packet::new(pool) })
    }

    /// Makes the pool's end of the job.
    pub(crate) fn run(self: &Arc<Self>) -> Run<F, R> {
        Run(self.clone())
    }

    pub(crate) fn handle(self: Arc<Self>) -> TaskHandle<R> {
        TaskHandle(self)
    }

    /// Takes the closure, unless it has run.
    pub(crate) fn take(&self) -> Option<F> {
        lock(&self.closure).take()
    }
}

/// The pool's end of a job. If it is dropped before the closure ran, it reports that to the handle.
pub(crate) struct Run<F: FnOnce() -> R, R>(Arc<Job<F, R>>);

impl<F: FnOnce() -> R, R> Run<F, R> {
    /// Runs the closure. If it panics, calls `panicked` before the handle gets the panic, for the pool that counts it.
    /// Without a handle the panic unwinds on.
    pub(crate) fn run(self, panicked: impl FnOnce() -> Handler) {
        let Some(closure) = lock(&self.0.closure).take() else { return };
        match catch_unwind(AssertUnwindSafe(closure)) {
            Ok(value) => self.0.packet.decide(Outcome::Returned(value)),
            // No handle is left, so the pool takes the panic, as for a task without a handle.
            Err(payload) if Arc::strong_count(&self.0) == 1 => resume_unwind(payload),
            Err(payload) => {
                let panic = Untaken { payload: Some(payload), handler: panicked() };
                self.0.packet.decide(Outcome::Panicked(panic));
            }
        }
    }
}

impl<F: FnOnce() -> R, R> Drop for Run<F, R> {
    fn drop(&mut self) {
        let closure = lock(&self.0.closure).take();
        if closure.is_some() {
            self.0.packet.decide(Outcome::Dropped);
        }
    }
}

/// The handle to a task's result. If it is dropped, the task still runs, and its result is dropped. A panic then goes
/// to the [handler](crate::Builder::on_panic), which the drop of the handle calls if the task has panicked before. So
/// hold no lock that the handler takes while you drop a handle.
///
/// A thread of a pool that joins a task of the same pool does not help. With a fixed number of threads, all of them may
/// end up waiting in this way. [`scope`](crate::ThreadPool::scope) has no such trap.
///
/// ```
/// use corelane_pool::ThreadPool;
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let pool = ThreadPool::cached();
/// let (go_on, wait) = mpsc::channel();
/// let task = pool.spawn(move || wait.recv().unwrap() + 1).unwrap();
/// assert!(!task.is_finished());
/// // When the time is up the handle comes back.
/// let task = task.join_timeout(Duration::from_millis(1)).unwrap_err();
/// go_on.send(41).unwrap();
/// assert_eq!(task.join().unwrap(), 42);
/// ```
pub struct TaskHandle<R>(Arc<dyn HasPacket<R>>);

impl<R> TaskHandle<R> {
    /// Waits for the result.
    ///
    /// # Errors
    /// The task panicked, or was dropped before it began.
    ///
    /// # Panics
    /// In [`start_with`](crate::Builder::start_with) of the task's pool, if the task has not ended: the thread being
    /// started may be the one that would run it.
    #[track_caller]
    pub fn join(self) -> Result<R, JoinError> {
        self.0.packet().take(None).expect("there is no end to this wait")
    }

    /// Waits for the result, at most for `timeout`. The handle comes back when the time is up.
    ///
    /// # Errors
    /// The time is up. The inner result is that of [`join`](Self::join).
    ///
    /// # Panics
    /// As [`join`](Self::join), if the time has no end, as [`Duration::MAX`].
    #[track_caller]
    pub fn join_timeout(self, timeout: Duration) -> Result<Result<R, JoinError>, Self> {
        self.0.packet().take(Instant::now().checked_add(timeout)).ok_or(self)
    }

    /// True once there is an outcome, so that a join would not wait.
    pub fn is_finished(&self) -> bool {
        self.0.packet().is_decided()
    }
}

impl<R> fmt::Debug for TaskHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle").finish_non_exhaustive()
    }
}
