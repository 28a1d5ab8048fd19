//! The handle to a pool.

use crate::error::{BuildError, Rejected};
use crate::settings::{OnDrop, Queueing};
use crate::shared::{Counts, Shared};
use crate::slot::add;
use crate::sync::{Arc, Instant, Relaxed};
use crate::task::{Job, Task, TaskHandle};
use crate::worker::{count_panic, with_current};
use corelane::handoff::CancelToken;
use std::time::Duration;
use std::{fmt, io};

/// Threads that run tasks. Clones are handles to the same pool. See the [crate](crate)'s page.
///
/// The drop of the last handle shuts the pool down: what was accepted is run. By default it also waits for the end of
/// all threads ([`OnDrop`]), unless the last handle is dropped by one of them.
///
/// ```
/// use corelane_pool::{Queueing, Reason, Task, ThreadPool};
/// use std::time::Duration;
///
/// let pool = ThreadPool::fixed(2)?;
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
/// # Ok::<(), corelane_pool::BuildError>(())
/// ```
///
/// How many threads there are may change at any time:
///
/// ```
/// use corelane_pool::{BuildError, ThreadPool};
/// use std::time::Duration;
///
/// let pool = ThreadPool::fixed(2)?;
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
        if self.shared.config.on_drop == OnDrop::Join && !is_current(&self.shared) {
            self.shared.await_termination(None);
        }
    }
}

/// Whether the calling thread is one of this pool.
fn is_current(shared: &Arc<Shared>) -> bool {
    with_current(|current, _| Arc::ptr_eq(current, shared)).unwrap_or(false)
}

impl ThreadPool {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(Arc::new(Handle { shared }))
    }

    fn shared(&self) -> &Arc<Shared> {
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

    /// Runs the closure in a thread of the pool, or does with it what the [`Rejection`](crate::Rejection) says.
    ///
    /// # Errors
    /// It was not accepted. It comes back as a task; see [`execute_task`](Self::execute_task).
    #[inline]
    pub fn execute(&self, task: impl FnOnce() + Send + 'static) -> Result<(), Rejected<Task>> {
        self.shared().execute(self.task(task))
    }

    /// [`execute`](Self::execute) for what is a task already, such as one that was rejected. Its wait, if that is
    /// measured, began with its first call.
    ///
    /// # Errors
    /// It was not accepted, and comes back.
    pub fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.shared().execute(task)
    }

    /// [`execute`](Self::execute), but a task that is not accepted is always returned, and at once.
    ///
    /// # Errors
    /// It was not accepted. It comes back as a task.
    #[inline]
    pub fn try_execute(&self, task: impl FnOnce() + Send + 'static) -> Result<(), Rejected<Task>> {
        self.try_execute_task(self.task(task))
    }

    /// [`try_execute`](Self::try_execute) for what is a task already.
    ///
    /// # Errors
    /// It was not accepted, and comes back.
    pub fn try_execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let shared = self.shared();
        shared.try_execute(task).map_err(|rejected| {
            let (task, reason) = rejected.split();
            shared.reject(task, reason)
        })
    }

    /// Runs the closure in a thread of the pool, or does with it what the [`Rejection`](crate::Rejection) says. The
    /// handle has its result.
    ///
    /// # Errors
    /// It was not accepted. It comes back as it was.
    pub fn spawn<F, R>(&self, task: F) -> Result<TaskHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_by(task, |task| self.shared().execute(task))
    }

    /// [`spawn`](Self::spawn), but a closure that is not accepted is always returned, and at once.
    /// [`bounded`](Self::bounded) has an example.
    ///
    /// # Errors
    /// It was not accepted. It comes back as it was.
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
        let job = Job::new(task);
        let run = job.run();
        match accept(self.task(move || run.run(count_panic))) {
            Ok(()) => Ok(job.handle()),
            Err(rejected) => {
                let task = job.take().expect("it did not run");
                Err(Rejected::new(task, rejected.split().1))
            }
        }
    }

    /// Starts threads until there are so many, or as many as there may be, before there are tasks for them. Returns how
    /// many were started.
    ///
    /// # Errors
    /// One could not be started. Those that were stay.
    pub fn prestart(&self, threads: usize) -> io::Result<usize> {
        self.shared().prestart(threads)
    }

    /// Accepts no further tasks. Those that were accepted are run, then the threads end. Does not wait.
    pub fn shutdown(&self) {
        self.shared().shutdown();
    }

    /// [`shutdown`](Self::shutdown), and returns the tasks that have not begun: first those that threads had taken to
    /// begin next, then those in the queue, in order. Those that have begun are told by the
    /// [`stop_token`](Self::stop_token), if they ask it; they are not interrupted.
    ///
    /// ```
    /// use corelane_pool::{Task, ThreadPool};
    /// use std::sync::mpsc;
    ///
    /// let pool = ThreadPool::fixed(1)?;
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
    /// # Ok::<(), corelane_pool::BuildError>(())
    /// ```
    pub fn shutdown_now(&self) -> Vec<Task> {
        self.shared().shutdown();
        self.shared().stop.cancel();
        self.shared().take_back()
    }

    /// Is cancelled by [`shutdown_now`](Self::shutdown_now), which has an example. Tasks may look at it, or give it to
    /// their waits.
    pub fn stop_token(&self) -> CancelToken {
        self.shared().stop.clone()
    }

    /// True once the pool accepts no tasks.
    pub fn is_shut_down(&self) -> bool {
        self.shared().is_shut_down()
    }

    /// True once it was shut down, all accepted tasks are over and the threads have called their last hooks.
    pub fn is_terminated(&self) -> bool {
        self.shared().is_terminated()
    }

    /// Waits until the pool is terminated and its threads have ended, with the destructors of their thread-locals, but
    /// not longer than this; for those destructors it waits without end. Does not shut the pool down.
    ///
    /// False if the time was up, and at once in a thread of the pool, which cannot wait for its own end.
    pub fn await_termination(&self, timeout: Duration) -> bool {
        !is_current(self.shared()) && self.shared().await_termination(Instant::now().checked_add(timeout))
    }

    /// [`shutdown`](Self::shutdown), and waits until all accepted tasks are over and the threads have ended, with the
    /// destructors of their thread-locals.
    ///
    /// False in a thread of the pool, which cannot wait for its own end: the pool is shut down all the same.
    pub fn join(&self) -> bool {
        self.shutdown();
        !is_current(self.shared()) && self.shared().await_termination(None)
    }

    /// How many threads and tasks there are. What is counted while others work may be too small by what happens
    /// meanwhile, but not too large.
    pub fn counts(&self) -> Counts {
        self.shared().counts()
    }

    /// How many threads wait for a task at this moment: those that the next task may be handed to.
    ///
    /// ```
    /// let pool = corelane_pool::ThreadPool::fixed(2)?;
    /// pool.prestart(2).unwrap();
    /// while pool.waiting_threads() < 2 {
    ///     std::thread::yield_now();
    /// }
    /// # Ok::<(), corelane_pool::BuildError>(())
    /// ```
    pub fn waiting_threads(&self) -> usize {
        self.shared().waiting()
    }

    /// How long tasks have waited, if the pool was told to [measure](crate::Builder::measure_waits) it. [`Waits`] has
    /// an example.
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

    /// Changes how many threads stay. More are not started before they are needed; fewer end after the keep-alive time.
    ///
    /// # Errors
    /// More than there may be.
    pub fn set_core_threads(&self, core: usize) -> Result<(), BuildError> {
        self.shared().set_limits(|limits| limits.core = core)
    }

    /// Changes how many threads there may be. If there are more, those end that are done with their task first; if
    /// tasks or callers wait, further threads are started for them.
    ///
    /// # Errors
    /// None, or fewer than stay.
    pub fn set_max_threads(&self, max: usize) -> Result<(), BuildError> {
        self.shared().set_limits(|limits| limits.max = max)
    }

    /// Changes both at once: exactly so many threads.
    ///
    /// # Errors
    /// None.
    pub fn set_threads(&self, count: usize) -> Result<(), BuildError> {
        self.shared().set_limits(|limits| (limits.core, limits.max) = (count, count))
    }

    /// Changes how long a thread waits for a task before it ends.
    pub fn set_keep_alive(&self, time: Duration) {
        self.shared().set_limits(|limits| limits.keep_alive = time).expect("the other limits were valid");
    }

    /// How many threads stay.
    pub fn core_threads(&self) -> usize {
        self.shared().limits().core
    }

    /// How many threads there may be.
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

/// How long tasks waited from their call until they began.
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
    /// Tasks begun by threads of the pool.
    pub tasks: u64,
    /// All their waits together.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Waits {
    /// The average; nothing before the first task.
    pub fn mean(&self) -> Option<Duration> {
        (self.tasks > 0).then(|| Duration::from_nanos((self.total.as_nanos() / u128::from(self.tasks)) as u64))
    }
}

fn note_wait(came: Instant) {
    let waited = came.elapsed().as_nanos().try_into().unwrap_or(u64::MAX);
    with_current(|_, slot| {
        let tally = &slot.tally;
        add(&tally.waits, 1);
        add(&tally.waited, waited);
        let longest = tally.longest_wait.load(Relaxed).max(waited);
        tally.longest_wait.store(longest, Relaxed);
    });
}
