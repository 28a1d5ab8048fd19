//! How a pool is made.

use crate::error::BuildError;
use crate::pool::ThreadPool;
use crate::settings::{Config, Handler, Limits, OnDrop, Queueing, Rejection};
use crate::shared::{Shared, Start};
use crate::sync::{Arc, Builder as ThreadBuilder, JoinHandle};
use crate::worker::Worker;
use corelane::handoff::Fairness;
use std::any::Any;
use std::time::Duration;
use std::{fmt, io};

/// Settings from which a pool is made. See [`ThreadPool::builder`].
///
/// ```
/// use corelane_pool::{OnDrop, Queueing, Rejection, ThreadPool};
/// use std::time::Duration;
///
/// let pool = ThreadPool::builder()
///     .core_threads(1)
///     .max_threads(4)
///     .keep_alive(Duration::from_secs(1))
///     .core_may_leave(true)
///     .core_first(true)
///     .queueing(Queueing::Bounded(1000))
///     .rejection(Rejection::CallerRuns)
///     .on_drop(OnDrop::Join)
///     .name("resize")
///     .stack_size(256 * 1024)
///     .measure_waits(true)
///     .build()?;
/// let name = pool.spawn(|| std::thread::current().name().map(String::from)).unwrap();
/// assert_eq!(name.join().unwrap().as_deref(), Some("resize-0"));
/// assert_eq!(pool.waits().unwrap().tasks, 1);
/// # Ok::<(), corelane_pool::BuildError>(())
/// ```
///
/// The hooks, and when the pool calls them:
///
/// ```
/// use corelane_pool::ThreadPool;
/// use std::sync::{Arc, Mutex};
///
/// let noted = Arc::new(Mutex::new(Vec::new()));
/// let note = |what: &'static str| {
///     let noted = noted.clone();
///     move || noted.lock().unwrap().push(what)
/// };
/// let (start, panic, stop) = (note("start"), note("panic"), note("stop"));
/// let pool = ThreadPool::builder()
///     .threads(1)
///     .on_thread_start(move |_number| start())
///     .before_task(note("before"))
///     .after_task(note("after"))
///     .on_panic(move |_payload| panic())
///     .on_thread_stop(move |_number| stop())
///     .on_terminated(note("terminated"))
///     .build()?;
/// pool.execute(|| panic!("a task may")).unwrap();
/// pool.join();
/// assert_eq!(*noted.lock().unwrap(), ["start", "before", "panic", "after", "stop", "terminated"]);
/// # Ok::<(), corelane_pool::BuildError>(())
/// ```
#[must_use = "`build` makes the pool"]
pub struct Builder {
    core: Option<usize>,
    max: Option<usize>,
    keep_alive: Duration,
    core_may_leave: bool,
    config: Config,
    start: Start,
}

/// The default maximum of threads in a hand-off pool.
const MAX_THREADS: usize = 512;

impl Builder {
    fn new() -> Self {
        Self {
            core: None,
            max: None,
            keep_alive: Duration::from_secs(10),
            core_may_leave: false,
            config: Config {
                queueing: Queueing::HandOff(Fairness::Unfair),
                rejection: Rejection::Return,
                on_drop: OnDrop::Join,
                core_first: false,
                measure_waits: false,
                name: None,
                stack_size: None,
                on_thread_start: None,
                on_thread_stop: None,
                before_task: None,
                after_task: None,
                on_panic: Handler::default(),
                on_terminated: None,
            },
            start: start_by(start_thread),
        }
    }

    fn with(mut self, set: impl FnOnce(&mut Config)) -> Self {
        set(&mut self.config);
        self
    }

    /// How many threads stay although they are idle. Default: none with a hand-off, otherwise the number of CPUs that
    /// the process may use. Core threads are started when they are needed, like all others.
    pub fn core_threads(self, core: usize) -> Self {
        Self { core: Some(core), ..self }
    }

    /// How many threads there are at most. Default: 512 with a hand-off, otherwise the number of core threads.
    pub fn max_threads(self, max: usize) -> Self {
        Self { max: Some(max), ..self }
    }

    /// Exactly `count` threads, once that many were needed.
    pub fn threads(self, count: usize) -> Self {
        self.core_threads(count).max_threads(count)
    }

    /// How long an idle thread outside the core waits for a task before it ends. Default: 10 s.
    pub fn keep_alive(self, time: Duration) -> Self {
        Self { keep_alive: time, ..self }
    }

    /// Whether core threads end after the keep-alive time, too. Default: no.
    pub fn core_may_leave(self, may: bool) -> Self {
        Self { core_may_leave: may, ..self }
    }

    /// Whether each task starts a thread while there are fewer threads than core threads, even if other threads are
    /// free. Default: no, a free thread takes the task.
    pub fn core_first(self, first: bool) -> Self {
        self.with(|config| config.core_first = first)
    }

    /// Where a task goes if no thread is free. Default: nowhere, [`Queueing::HandOff`], unfair.
    ///
    /// With a queue, too, a task goes first to a free thread and then to a new one. Tasks are queued once there are as
    /// many threads as allowed.
    pub fn queueing(self, queueing: Queueing) -> Self {
        self.with(|config| config.queueing = queueing)
    }

    /// What happens to a task for which there is neither a thread nor room. Default: [`Rejection::Return`].
    pub fn rejection(self, rejection: Rejection) -> Self {
        self.with(|config| config.rejection = rejection)
    }

    /// What the drop of the last handle does. Default: [`OnDrop::Join`].
    pub fn on_drop(self, on_drop: OnDrop) -> Self {
        self.with(|config| config.on_drop = on_drop)
    }

    /// Names the threads: this name, a hyphen, and the thread's number, counted from 0.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.with(|config| config.name = Some(name.into()))
    }

    /// The size of each thread's stack in bytes. Default: the standard library's.
    pub fn stack_size(self, bytes: usize) -> Self {
        self.with(|config| config.stack_size = Some(bytes))
    }

    /// Each thread calls this hook with its number before its first task. A panic of this hook, as of every hook, is
    /// caught and counted.
    pub fn on_thread_start(self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.with(|config| config.on_thread_start = Some(Box::new(hook)))
    }

    /// Each thread calls this hook with its number after its last task.
    pub fn on_thread_stop(self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.with(|config| config.on_thread_stop = Some(Box::new(hook)))
    }

    /// The thread that runs a task calls this hook before the task.
    pub fn before_task(self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.with(|config| config.before_task = Some(Box::new(move |()| hook())))
    }

    /// The thread that ran a task calls this hook after the task, even if the task panicked.
    pub fn after_task(self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.with(|config| config.after_task = Some(Box::new(move |()| hook())))
    }

    /// This hook is called once, after the last thread's [`on_thread_stop`](Self::on_thread_stop), when the pool was
    /// shut down and all tasks have ended.
    pub fn on_terminated(self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.with(|config| config.on_terminated = Some(Box::new(move |()| hook())))
    }

    /// The handler gets the payload of a task's panic, unless a [`TaskHandle`](crate::TaskHandle) or a
    /// [`scope`](ThreadPool::scope) takes it, and of any other panic that the pool catches. The thread goes on in any
    /// case. A handle that is dropped takes nothing: whichever is later, the panic or the drop, calls the handler.
    /// Without a handler, the message of the panic hook is the only report.
    ///
    /// The handle of a task that has panicked keeps the handler alive. A handler that owns that handle is never
    /// dropped.
    pub fn on_panic(self, handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        self.with(|config| config.on_panic = Handler::new(handler))
    }

    /// Measures how long tasks wait until they begin; see [`ThreadPool::waits`]. Costs two clock reads a task.
    pub fn measure_waits(self, measure: bool) -> Self {
        self.with(|config| config.measure_waits = measure)
    }

    /// Replaces the way threads are started. The default uses the standard library, with the name and stack size set
    /// here.
    ///
    /// The closure makes a thread that calls [`Worker::run`]. It may bind the thread to a CPU or give it a priority. If
    /// it returns an error or panics, and the thread has not begun by then, the thread never runs, and the caller gets
    /// an error, with the task. If the thread has begun, it stays, and the error is dropped; a
    /// [`join`](ThreadPool::join) then does not wait for that thread's thread-locals.
    ///
    /// Callers run this closure, and so do threads that will begin a task next, so it must not wait for a task, nor may
    /// the thread before [`Worker::run`]. In the closure the pool waits for nothing: [`join`](ThreadPool::join) returns
    /// false, as in a thread of the pool, [`TaskHandle::join`](crate::TaskHandle::join) panics, and a task is refused
    /// that would have to wait for a thread or for room, with [`Rejection::Block`], too. [`Worker`] has an example.
    pub fn start_with(self, start: impl Fn(Worker) -> io::Result<JoinHandle<()>> + Send + Sync + 'static) -> Self {
        Self { start: start_by(start), ..self }
    }

    /// Makes the pool. No thread is started before there is a task; see [`ThreadPool::prestart`].
    ///
    /// # Errors
    /// No threads, more core threads than threads, a queue with room for no task, or a name with a zero byte.
    pub fn build(self) -> Result<ThreadPool, BuildError> {
        let (core, max) = match self.config.queueing {
            Queueing::HandOff(_) => (0, MAX_THREADS),
            Queueing::Bounded(0) => return Err(BuildError::NoCapacity),
            Queueing::Unbounded | Queueing::Bounded(_) => (cpus(), 0),
        };
        // Limits that were not set follow those that were.
        let core = self.core.unwrap_or(core.min(self.max.unwrap_or(usize::MAX)));
        let max = self.max.unwrap_or(core.max(max));
        let limits = Limits { core, max, keep_alive: self.keep_alive, core_may_leave: self.core_may_leave };
        limits.check()?;
        if self.config.name.as_ref().is_some_and(|name| name.contains('\0')) {
            return Err(BuildError::ZeroInName);
        }
        Ok(ThreadPool::new(Arc::new(Shared::new(self.config, limits, self.start))))
    }

    /// For the short forms.
    #[track_caller]
    fn built(self) -> ThreadPool {
        match self.build() {
            Ok(pool) => pool,
            Err(error) => panic!("{error}"),
        }
    }
}

impl ThreadPool {
    /// Settings for a pool. [`Builder`] has examples.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A pool that starts a thread whenever a task finds none waiting, at most 512 at once. A thread ends when it has
    /// waited 10 s for a task.
    ///
    /// ```
    /// let pool = corelane_pool::ThreadPool::cached();
    /// assert_eq!((pool.core_threads(), pool.max_threads()), (0, 512));
    /// ```
    pub fn cached() -> Self {
        Self::builder().built()
    }

    /// A pool with this many threads, and a queue without a bound for tasks that no thread has time for yet.
    ///
    /// # Panics
    /// No threads: where [`Builder::build`] returns an error.
    #[track_caller]
    pub fn fixed(threads: usize) -> Self {
        Self::builder().threads(threads).queueing(Queueing::Unbounded).built()
    }

    /// A pool with this many threads, and a queue with room for `capacity` tasks that no thread has time for yet.
    ///
    /// # Panics
    /// No threads, or no room: where [`Builder::build`] returns an error.
    ///
    /// ```
    /// use corelane_pool::{Reason, ThreadPool};
    /// use std::sync::mpsc;
    ///
    /// let pool = ThreadPool::bounded(1, 1);
    /// let (go_on, wait) = mpsc::channel();
    /// let busy = pool.spawn(move || wait.recv().unwrap()).unwrap();
    /// // The thread has the first task, or is about to: the second waits in the queue.
    /// let queued = pool.spawn(|| 7).unwrap();
    /// let rejected = pool.try_spawn(|| 8).unwrap_err();
    /// assert!(matches!(rejected.reason(), Reason::Saturated));
    /// go_on.send(()).unwrap();
    /// busy.join().unwrap();
    /// assert_eq!(queued.join().unwrap(), 7);
    /// ```
    #[track_caller]
    pub fn bounded(threads: usize, capacity: usize) -> Self {
        Self::builder().threads(threads).queueing(Queueing::Bounded(capacity)).built()
    }
}

impl Default for ThreadPool {
    /// [`cached`](Self::cached).
    fn default() -> Self {
        Self::cached()
    }
}

/// How many CPUs the process may use.
fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Makes the pool's way to start a thread from a closure over [`Worker`]s.
fn start_by(start: impl Fn(Worker) -> io::Result<JoinHandle<()>> + Send + Sync + 'static) -> Start {
    Box::new(move |shared, slot| start(Worker::new(shared, slot)))
}

fn start_thread(worker: Worker) -> io::Result<JoinHandle<()>> {
    let mut builder = ThreadBuilder::new().name(worker.name().to_owned());
    if let Some(bytes) = worker.stack_size() {
        builder = builder.stack_size(bytes);
    }
    builder.spawn(move || worker.run())
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("core", &self.core)
            .field("max", &self.max)
            .field("keep_alive", &self.keep_alive)
            .field("queueing", &self.config.queueing)
            .field("rejection", &self.config.rejection)
            .finish_non_exhaustive()
    }
}
