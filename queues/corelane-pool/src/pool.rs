//! The handle to a pool, and the waits it reports.

use crate::error::{BuildError, Rejected};
use crate::settings::{OnDrop, Queueing};
use crate::shared::{Counts, Shared};
use crate::slot::{Slot, add};
use crate::sync::{Arc, Instant, Relaxed};
use crate::task::{Job, Task, TaskHandle};
use crate::worker::{count_panic, with_current};
use corelane::handoff::CancelToken;
use std::time::Duration;
use std::{fmt, io};

/// Threads that run tasks. Clones are handles to the same pool. See the [crate](crate)'s page.
///
/// The drop of the last handle shuts the pool down; accepted tasks are still run. By default the drop also waits until
/// all threads have ended ([`OnDrop`]), unless a thread of the pool drops the last handle. A thread is the pool's to
/// its end: in destructors of thread-locals, and in what [`start_with`](crate::Builder::start_with) has it do after
/// [`Worker::run`](crate::Worker::run).
///
/// ```
/// use corelane_pool::{Queueing, Reason, Task, ThreadPool};
/// use std::time::Duration;
///
/// let pool = ThreadPool::fixed(2);
/// assert_eq!(pool.queueing(), Queueing::Unbounded);
/// // Started when they are needed, or before.
/// assert_eq!(pool.prestart(2).unwrap(), 2);
/// let task = pool.spawn(|| 6 * 7).unwrap();
/// assert_eq!(task.join().unwrap(), 42);
/// pool.execute(|| println!("without a handle")).unwrap();
/// pool.execute_task(Task::new(|| println!("made before"))).unwrap();
///
/// // What was accepted is run, and nothing else.
/// pool.shutdown();
/// assert!(pool.is_shut_down());
/// let rejected = pool.try_execute(|| println!("too late")).unwrap_err();
/// assert!(matches!(rejected.reason(), Reason::ShutDown));
/// assert!(pool.try_execute_task(rejected.into_task()).is_err());
/// assert!(pool.await_termination(Duration::from_secs(60)) && pool.is_terminated());
/// let counts = pool.counts();
/// assert_eq!((counts.threads, counts.accepted, counts.completed, counts.rejected), (0, 3, 3, 2));
/// ```
///
/// The number of threads may change at any time:
///
/// ```
/// use corelane_pool::{BuildError, ThreadPool};
/// use std::time::Duration;
///
/// let pool = ThreadPool::fixed(2);
/// pool.set_max_threads(8)?;
/// pool.set_core_threads(4)?;
/// pool.set_keep_alive(Duration::from_secs(1));
/// assert_eq!((pool.core_threads(), pool.max_threads()), (4, 8));
/// assert_eq!(pool.set_max_threads(3), Err(BuildError::CoreAboveMax { core: 4, max: 3 }));
/// pool.set_threads(3)?;
/// assert_eq!((pool.core_threads(), pool.max_threads()), (3, 3));
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone)]
pub struct ThreadPool(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.shutdown();
        if self.shared.config.on_drop == OnDrop::Join {
            self.shared.await_termination(None);
        }
    }
}

impl ThreadPool {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(Arc::new(Handle { shared }))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Makes a task of a closure, with a clock if waits are measured.
    fn task(&self, task: impl FnOnce() + Send + 'static) -> Task {
        if !self.shared().config.measure_waits {
            return Task::new(task);
        }
        let came = Instant::now();
        Task::new(move || {
            note_wait(came);
            task();
        })
    }

    /// Runs the closure in a thread of the pool. If there is neither a thread nor room, applies the
    /// [`Rejection`](crate::Rejection) policy.
    ///
    /// # Errors
    /// The closure was not accepted. It comes back as a task; see [`execute_task`](Self::execute_task).
    #[inline]
    pub fn execute(&self, task: impl FnOnce() + Send + 'static) -> Result<(), Rejected<Task>> {
        self.shared().execute(self.task(task))
    }

    /// Like [`execute`](Self::execute), for a task made before, such as a rejected one. If waits are measured, the wait
    /// of a rejected task began with the first call.
    ///
    /// # Errors
    /// The task was not accepted, and comes back.
    pub fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.shared().execute(task)
    }

    /// Like [`execute`](Self::execute), but a task that is not accepted is always returned, and at once.
    ///
    /// # Errors
    /// The closure was not accepted. It comes back as a task.
    #[inline]
    pub fn try_execute(&self, task: impl FnOnce() + Send + 'static) -> Result<(), Rejected<Task>> {
        self.try_execute_task(self.task(task))
    }

    /// Like [`try_execute`](Self::try_execute), for a task made before.
    ///
    /// # Errors
    /// The task was not accepted, and comes back.
    pub fn try_execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let shared = self.shared();
        shared.try_execute(task).map_err(|rejected| shared.reject(rejected))
    }

    /// Runs the closure in a thread of the pool, and returns a handle to its result. If there is neither a thread nor
    /// room, applies the [`Rejection`](crate::Rejection) policy.
    ///
    /// # Errors
    /// The closure was not accepted, and comes back unchanged.
    pub fn spawn<F, R>(&self, task: F) -> Result<TaskHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_by(task, |task| self.shared().execute(task))
    }

    /// Like [`spawn`](Self::spawn), but a closure that is not accepted is always returned, and at once.
    /// [`bounded`](Self::bounded) has an example.
    ///
    /// # Errors
    /// The closure was not accepted, and comes back unchanged.
    pub fn try_spawn<F, R>(&self, task: F) -> Result<TaskHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_by(task, |task| self.try_execute_task(task))
    }

    fn spawn_by<F, R>(
        &self,
        task: F,
        accept: impl FnOnce(Task) -> Result<(), Rejected<Task>>,
    ) -> Result<TaskHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let job = Job::new(task, self.shared().id);
        let run = job.run();
        match accept(self.task(move || run.run(count_panic))) {
            Ok(()) => Ok(job.handle()),
            Err(rejected) => {
                let task = job.take().expect("it did not run");
                Err(Rejected::new(task, rejected.split().1))
            }
        }
    }

    /// Starts threads before there are tasks for them, until there are `threads` of them or as many as allowed. Returns
    /// how many were started.
    ///
    /// # Errors
    /// A thread could not be started. The threads started before it stay.
    pub fn prestart(&self, threads: usize) -> io::Result<usize> {
        self.shared().prestart(threads)
    }

    /// Accepts no further tasks. Accepted tasks are run, then the threads end. Does not wait.
    pub fn shutdown(&self) {
        self.shared().shutdown();
    }

    /// Shuts the pool down as [`shutdown`](Self::shutdown) does, and returns the tasks that have not begun: first those
    /// in the batches of threads, then those in the queue, in order. Tasks that have begun are not interrupted. They
    /// can ask the [`stop_token`](Self::stop_token).
    ///
    /// ```
    /// use corelane_pool::{Task, ThreadPool};
    /// use std::sync::mpsc;
    ///
    /// let pool = ThreadPool::fixed(1);
    /// let (begun, has_begun) = mpsc::channel();
    /// let stop = pool.stop_token();
    /// pool.execute(move || {
    ///     begun.send(()).unwrap();
    ///     while !stop.is_cancelled() {
    ///         std::thread::yield_now();
    ///     }
    /// }).unwrap();
    /// has_begun.recv().unwrap();
    /// pool.execute(|| println!("this one has not")).unwrap();
    /// let tasks = pool.shutdown_now();
    /// assert_eq!(tasks.len(), 1);
    /// assert!(pool.join());
    /// tasks.into_iter().for_each(Task::run);
    /// ```
    pub fn shutdown_now(&self) -> Vec<Task> {
        self.shared().shutdown();
        self.shared().stop.cancel();
        self.shared().take_back()
    }

    /// A token that [`shutdown_now`](Self::shutdown_now) cancels; there is an example there. A task may poll the token
    /// or pass it to calls that wait.
    pub fn stop_token(&self) -> CancelToken {
        self.shared().stop.clone()
    }

    /// True once the pool accepts no tasks.
    pub fn is_shut_down(&self) -> bool {
        self.shared().is_shut_down()
    }

    /// True once the pool was shut down, all accepted tasks have ended and the threads have called their last hooks.
    pub fn is_terminated(&self) -> bool {
        self.shared().is_terminated()
    }

    /// Waits until the pool is terminated and its threads have ended, at most for `timeout`. The wait includes the
    /// destructors of thread-locals; for these alone it has no time limit. Does not shut the pool down.
    ///
    /// Returns false if the time was up. In a thread of the pool, which cannot wait for its own end, returns false at
    /// once: in destructors of its thread-locals, too, and in [`start_with`](crate::Builder::start_with).
    pub fn await_termination(&self, timeout: Duration) -> bool {
        self.shared().await_termination(Instant::now().checked_add(timeout))
    }

    /// Shuts the pool down as [`shutdown`](Self::shutdown) does, and waits until all accepted tasks and all threads
    /// have ended, destructors of thread-locals included.
    ///
    /// Returns false in a thread of the pool, which cannot wait for its own end: in destructors of its thread-locals,
    /// too, and in [`start_with`](crate::Builder::start_with). The pool is shut down all the same.
    pub fn join(&self) -> bool {
        self.shutdown();
        self.shared().await_termination(None)
    }

    /// How many threads and tasks there are. While other threads work, a count may lack their latest changes, but it is
    /// never too large.
    pub fn counts(&self) -> Counts {
        self.shared().counts()
    }

    /// How many threads wait for a task at this moment. The next task may be handed to one of them.
    ///
    /// ```
    /// let pool = corelane_pool::ThreadPool::fixed(2);
    /// pool.prestart(2).unwrap();
    /// while pool.waiting_threads() < 2 {
    ///     std::thread::yield_now();
    /// }
    /// ```
    pub fn waiting_threads(&self) -> usize {
        self.shared().waiting()
    }

    /// How long tasks have waited, if the pool [measures](crate::Builder::measure_waits) it. [`Waits`] has an example.
    pub fn waits(&self) -> Option<Waits> {
        let shared = self.shared();
        shared.config.measure_waits.then(|| {
            let totals = shared.lock().totals();
            Waits {
                tasks: totals.waits,
                total: Duration::from_nanos(totals.waited),
                longest: Duration::from_nanos(totals.longest_wait),
            }
        })
    }

    /// Changes how many threads stay. Further threads are started when they are needed; surplus threads end after the
    /// keep-alive time.
    ///
    /// # Errors
    /// More threads than the maximum.
    pub fn set_core_threads(&self, core: usize) -> Result<(), BuildError> {
        self.shared().set_limits(|limits| limits.core = core)
    }

    /// Changes how many threads are allowed. If there are more, the threads that finish their task first end. If tasks
    /// or callers wait, further threads are started for them.
    ///
    /// # Errors
    /// No threads, or fewer than the core threads.
    pub fn set_max_threads(&self, max: usize) -> Result<(), BuildError> {
        self.shared().set_limits(|limits| limits.max = max)
    }

    /// Sets both limits at once: exactly `count` threads.
    ///
    /// # Errors
    /// No threads.
    pub fn set_threads(&self, count: usize) -> Result<(), BuildError> {
        self.shared().set_limits(|limits| (limits.core, limits.max) = (count, count))
    }

    /// Changes how long a thread waits for a task before it ends.
    pub fn set_keep_alive(&self, time: Duration) {
        self.shared().set_limits(|limits| limits.keep_alive = time).expect("the other limits were valid");
    }

    /// How many threads stay although they are idle.
    pub fn core_threads(&self) -> usize {
        self.shared().limits().core
    }

    /// How many threads are allowed.
    pub fn max_threads(&self) -> usize {
        self.shared().limits().max
    }

    /// Where tasks wait.
    pub fn queueing(&self) -> Queueing {
        self.shared().config.queueing
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool").field("queueing", &self.queueing()).field("counts", &self.counts()).finish()
    }
}

/// How long tasks waited, from the call that brought them until they began.
///
/// ```
/// let pool = corelane_pool::ThreadPool::builder().measure_waits(true).build()?;
/// assert_eq!(pool.waits().unwrap().mean(), None);
/// pool.spawn(|| ()).unwrap().join().unwrap();
/// let waits = pool.waits().unwrap();
/// assert_eq!((waits.tasks, waits.mean()), (1, Some(waits.longest)));
/// # Ok::<(), corelane_pool::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// Tasks that threads of the pool have begun.
    pub tasks: u64,
    /// The sum of their waits.
    pub total: Duration,
    /// The longest wait.
    pub longest: Duration,
}

impl Waits {
    /// The average wait, or `None` before the first task.
    pub fn mean(&self) -> Option<Duration> {
        (self.tasks > 0).then(|| Duration::from_nanos((self.total.as_nanos() / u128::from(self.tasks)) as u64))
    }
}

fn note_wait(came: Instant) {
    let waited = came.elapsed().as_nanos().try_into().unwrap_or(u64::MAX);
    with_current(|_, slot| {
        let Some(Slot { tally, .. }) = slot else { return };
        add(&tally.waits, 1);
        add(&tally.waited, waited);
        let longest = tally.longest_wait.load(Relaxed).max(waited);
        tally.longest_wait.store(longest, Relaxed);
    });
}
