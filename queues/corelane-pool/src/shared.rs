//! State that the handles and the threads of a pool share: the threads, the phase, and the end of the pool.
//!
//! # How it works
//!
//! 1. One lock protects the state that rarely changes: the number of threads, the phase of the pool, and the counts of
//!    ended threads. A task that is [handed over](crate::hand_off) does not take the lock. The [queue](crate::queue) is
//!    under the same lock, so no proof about two separate words is needed.
//! 2. A thread is counted before it is started, so there are never more threads than allowed. It is *live* once it
//!    runs. It is *present* until the last of its hooks has returned. If a start fails before the thread has begun, the
//!    thread never runs, its counts are taken back, and the task goes back to its caller. If the thread has begun, it
//!    stays: which of the two came first is decided under a lock of the thread's [`Slot`].
//! 3. A thread decides to end under the lock, after another look for work. From then on it is not counted.
//! 4. A thread that has ended leaves its join handle behind. The next thread that ends joins it, or a caller that waits
//!    for the end of all threads does. So at most one handle is kept. When a join returns, all threads have ended, and
//!    their thread-locals have been dropped.

use crate::backlog::Backlog;
use crate::current::{Starter, belongs_to, is_starting};
use crate::error::message;
use crate::settings::{Config, Hook, Limits, Queueing};
use crate::slot::{Slot, Tally, add, join_all};
use crate::sync::plain::{AtomicBool, AtomicU64, AtomicUsize as PlainUsize};
use crate::sync::{
    Acquire, Arc, AtomicUsize, Condvar, Instant, JoinHandle, Mutex, MutexGuard, Padded, Relaxed, lock, wait,
};
use crate::task::Task;
use corelane::handoff::{CancelToken, Fairness, SynchronousQueue, WaitLimit};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// No task is accepted. Those that were are run.
    ShutDown,
}

/// Protected by the lock. Fields that every push changes share the lock's cache line; fields it only reads come after.
#[repr(C)]
pub(crate) struct State {
    pub(crate) backlog: Backlog,
    pub(crate) phase: Phase,
    /// Threads that were started, or are being started, and have not decided to end.
    pub(crate) threads: usize,
    /// The counted threads that run.
    pub(crate) live: usize,
    pub(crate) limits: Limits,
    /// Threads that have not ended, whether they have decided to end or not.
    present: usize,
    largest: usize,
    started: usize,
    /// A thread was started for one that did not run, and none has begun since.
    pub(crate) replaced: bool,
    /// Slots of live threads and of threads that have decided to end.
    pub(crate) slots: Vec<Arc<Slot>>,
    /// Slots of threads that have ended and have not been joined.
    ended: Vec<Arc<Slot>>,
    /// How many callers join ended threads outside of the lock at the moment.
    joining: usize,
    /// Sums of the counts of ended threads.
    totals: Totals,
}

impl State {
    pub(crate) fn may_grow(&self) -> bool {
        self.phase == Phase::Running && self.threads < self.limits.max
    }

    fn is_terminated(&self) -> bool {
        self.phase != Phase::Running && self.present == 0
    }

    /// Whether a thread that has waited for the keep-alive time may end.
    pub(crate) fn has_idle_surplus(&self) -> bool {
        self.limits.core_may_leave || self.threads > self.limits.core
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.totals;
        self.slots.iter().for_each(|slot| totals.add(&slot.tally));
        totals
    }
}

/// Sums of tallies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) direct: u64,
    pub(crate) queued: u64,
    pub(crate) completed: u64,
    pub(crate) panicked: u64,
    pub(crate) waits: u64,
    pub(crate) waited: u64,
    pub(crate) longest_wait: u64,
}

impl Totals {
    /// Reads the begun tasks before the completed ones: a task that completes in between is not counted as active.
    fn add(&mut self, tally: &Tally) {
        let read = |count: &AtomicU64| count.load(Acquire);
        self.direct += read(&tally.direct);
        self.queued += read(&tally.queued);
        self.completed += read(&tally.completed);
        self.panicked += read(&tally.panicked);
        self.waits += read(&tally.waits);
        self.waited += read(&tally.waited);
        self.longest_wait = self.longest_wait.max(read(&tally.longest_wait));
    }
}

/// An item of the synchronous queue.
pub(crate) struct Work {
    /// `None`: the woken thread looks for a task itself.
    pub(crate) task: Option<Task>,
    /// The put counted its receiver as a searching thread; see [`crate::queue`].
    pub(crate) reserved: bool,
}

/// Starts a thread of the pool. The slot holds the pool's data about that thread.
pub(crate) type Start = Box<dyn Fn(Arc<Shared>, Arc<Slot>) -> io::Result<JoinHandle<()>> + Send + Sync>;

pub(crate) struct Shared {
    /// The pool's number, from 1.
    pub(crate) id: u64,
    pub(crate) config: Config,
    start: Start,
    /// The queue in which idle threads wait.
    pub(crate) idle: SynchronousQueue<Work>,
    state: Padded<Mutex<State>>,
    /// Copies of limits and counts for threads that do not take the lock. Written under the lock.
    pub(crate) hints: Padded<Hints>,
    /// Signals that a thread has begun to run, or that its start has failed.
    pub(crate) started: Condvar,
    terminated: Condvar,
    /// Signals that there may be room in the queue again.
    pub(crate) room: Condvar,
    /// How many callers wait for room.
    pub(crate) blocked: AtomicUsize,
    pub(crate) stop: CancelToken,
    pub(crate) rejected: AtomicU64,
    pub(crate) discarded: AtomicU64,
    failed_starts: AtomicU64,
}

pub(crate) struct Hints {
    pub(crate) threads: PlainUsize,
    pub(crate) core: PlainUsize,
    pub(crate) max: PlainUsize,
    pub(crate) keep_alive_nanos: AtomicU64,
    pub(crate) has_tasks: AtomicBool,
    core_may_leave: AtomicBool,
}

/// Counts of a pool's threads and tasks. See [`ThreadPool::counts`](crate::ThreadPool::counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Threads, including those that are being started.
    pub threads: usize,
    /// The most threads there ever were at once.
    pub largest: usize,
    /// Threads that run a task.
    pub active: usize,
    /// Tasks that were accepted and wait in the queue.
    pub queued: usize,
    /// Tasks that were accepted. A task that was handed to a thread is counted once it begins.
    pub accepted: u64,
    /// Tasks that have ended, by return or by panic.
    pub completed: u64,
    /// Panics of tasks, hooks and `start_with`, and of drops that the pool makes.
    pub panicked: u64,
    /// Tasks that were returned or run by their callers.
    pub rejected: u64,
    /// Tasks that a policy dropped, see [`Rejection`](crate::Rejection), or that went with their
    /// [`Worker`](crate::Worker).
    pub discarded: u64,
    /// Starts that failed, by an error or a panic. If the thread had begun by then, it stays.
    pub failed_starts: u64,
}

impl Shared {
    pub(crate) fn new(config: Config, limits: Limits, start: Start) -> Self {
        let fairness = match config.queueing {
            Queueing::HandOff(fairness) => fairness,
            Queueing::Unbounded | Queueing::Bounded(_) => Fairness::Unfair,
        };
        static POOLS: AtomicU64 = AtomicU64::new(0);
        let shared = Self {
            id: POOLS.fetch_add(1, Relaxed) + 1,
            idle: SynchronousQueue::new(fairness),
            state: Padded(Mutex::new(State {
                backlog: Backlog::new(config.queueing),
                phase: Phase::Running,
                limits,
                threads: 0,
                live: 0,
                present: 0,
                largest: 0,
                started: 0,
                replaced: false,
                slots: Vec::new(),
                ended: Vec::new(),
                joining: 0,
                totals: Totals::default(),
            })),
            hints: Padded(Hints {
                threads: PlainUsize::new(0),
                core: PlainUsize::new(0),
                max: PlainUsize::new(0),
                keep_alive_nanos: AtomicU64::new(0),
                has_tasks: AtomicBool::new(false),
                core_may_leave: AtomicBool::new(false),
            }),
            started: Condvar::new(),
            terminated: Condvar::new(),
            room: Condvar::new(),
            blocked: AtomicUsize::new(0),
            stop: CancelToken::new(),
            rejected: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
            failed_starts: AtomicU64::new(0),
            config,
            start,
        };
        shared.publish(&limits);
        shared
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Publishes new limits to threads that do not take the lock. The caller holds the lock.
    pub(crate) fn publish(&self, limits: &Limits) {
        self.hints.core.store(limits.core, Relaxed);
        self.hints.max.store(limits.max, Relaxed);
        let nanos = limits.keep_alive.as_nanos().try_into().unwrap_or(u64::MAX);
        self.hints.keep_alive_nanos.store(nanos, Relaxed);
        self.hints.core_may_leave.store(limits.core_may_leave, Relaxed);
    }

    /// How long a thread waits for work now. A thread waits without end only if it sees no more threads than may stay.
    /// At most that many threads do, because the thread that is started last sees all of them counted.
    pub(crate) fn wait_limit(&self) -> WaitLimit<'static> {
        let hints = &self.hints;
        if hints.core_may_leave.load(Relaxed) || hints.threads.load(Relaxed) > hints.core.load(Relaxed) {
            WaitLimit::new().timeout(Duration::from_nanos(hints.keep_alive_nanos.load(Relaxed)))
        } else {
            WaitLimit::new()
        }
    }

    /// Counts a thread that will be started next. The caller has checked that one more is allowed.
    pub(crate) fn count_thread(&self, state: &mut State) {
        state.threads += 1;
        state.present += 1;
        state.largest = state.largest.max(state.threads);
        self.hints.threads.store(state.threads, Relaxed);
    }

    /// Starts a thread that was counted. If it will not run, returns the error and the task; the counts are taken back.
    /// If the start fails after the thread has begun, the thread stays, and there is no error.
    pub(crate) fn start(self: &Arc<Self>, first: Option<Task>) -> Result<(), (io::Error, Option<Task>)> {
        let number = {
            let mut state = self.lock();
            state.started += 1;
            state.started - 1
        };
        let slot = Arc::new(Slot::new(number, first, self.config.queueing.queues()));
        let mut panic = None;
        let starter = Starter::enter(self.id);
        let started = catch_unwind(AssertUnwindSafe(|| (self.start)(self.clone(), slot.clone())));
        drop(starter);
        let started = started.unwrap_or_else(|payload| {
            let error = io::Error::other(format!("the start panicked: {}", message(&*payload)));
            panic = Some(payload);
            Err(error)
        });
        let (handle, error) = match started {
            Ok(handle) => (Some(handle), None),
            Err(error) => (None, Some(error)),
        };
        if error.is_some() {
            self.failed_starts.fetch_add(1, Relaxed);
            if slot.give_up() {
                self.never_started();
            }
        }
        let outcome = match slot.launched(handle) {
            Err(first) => Err((error.unwrap_or_else(|| io::Error::other("its `Worker` was dropped")), first)),
            Ok(()) => {
                self.let_go(error);
                Ok(())
            }
        };
        panic.into_iter().for_each(|payload| self.take_panic(payload));
        outcome
    }

    /// Takes back the counts of a thread that will not run.
    pub(crate) fn never_started(&self) {
        let mut state = self.lock();
        state.threads -= 1;
        self.hints.threads.store(state.threads, Relaxed);
        self.started.notify_all();
        self.absent(state);
    }

    /// Counts one present thread less. After the last one, calls the hook and wakes callers that wait for the end.
    fn absent(&self, mut state: MutexGuard<'_, State>) {
        state.present -= 1;
        if state.is_terminated() {
            drop(state);
            self.hook(&self.config.on_terminated, ());
            self.terminated.notify_all();
        }
    }

    /// Counts a thread that has begun to run.
    pub(crate) fn enter(&self, slot: &Arc<Slot>) {
        let mut state = self.lock();
        state.live += 1;
        state.replaced = false;
        state.slots.push(slot.clone());
        if state.live == 1 {
            self.started.notify_all();
        }
    }

    /// Uncounts a thread that has decided to end.
    pub(crate) fn retire(&self, state: &mut State) {
        state.threads -= 1;
        state.live -= 1;
        self.hints.threads.store(state.threads, Relaxed);
    }

    /// The last call of a thread, after its stop hook. Returns ended threads, which the caller should join.
    pub(crate) fn leave(&self, slot: &Arc<Slot>) -> Vec<Arc<Slot>> {
        let mut state = self.lock();
        let at = state.slots.iter().position(|other| Arc::ptr_eq(other, slot)).expect("it has entered");
        state.slots.swap_remove(at);
        state.totals.add(&slot.tally);
        let before = std::mem::take(&mut state.ended);
        state.ended.push(slot.clone());
        self.absent(state);
        before
    }

    pub(crate) fn run(&self, slot: &Slot, task: Task) {
        self.hook(&self.config.before_task, ());
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| task.run())) {
            add(&slot.tally.panicked, 1);
            self.config.on_panic.call(payload);
        }
        self.hook(&self.config.after_task, ());
        add(&slot.tally.completed, 1);
    }

    /// Calls a hook, if there is one, and takes its panic.
    pub(crate) fn hook<A>(&self, hook: &Option<Hook<A>>, argument: A) {
        if let Some(hook) = hook
            && let Err(payload) = catch_unwind(AssertUnwindSafe(|| hook(argument)))
        {
            self.take_panic(payload);
        }
    }

    /// Drops a value of the user's. Its destructor may panic.
    pub(crate) fn let_go<T>(&self, value: T) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            self.take_panic(payload);
        }
    }

    /// Counts a panic that happened in no thread of the pool, or whose thread may not count it.
    pub(crate) fn count_panic(&self) {
        self.lock().totals.panicked += 1;
    }

    /// Counts a panic, and gives it to the handler.
    pub(crate) fn take_panic(&self, payload: Box<dyn Any + Send>) {
        self.count_panic();
        self.config.on_panic.call(payload);
    }

    /// Stops accepting tasks.
    pub(crate) fn shutdown(&self) {
        let mut state = self.lock();
        if state.phase != Phase::Running {
            return;
        }
        state.phase = Phase::ShutDown;
        let terminated = state.is_terminated();
        self.started.notify_all();
        self.room.notify_all();
        drop(state);
        self.idle.close();
        if terminated {
            self.hook(&self.config.on_terminated, ());
            self.terminated.notify_all();
        }
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.lock().phase != Phase::Running
    }

    pub(crate) fn is_terminated(&self) -> bool {
        self.lock().is_terminated()
    }

    /// Waits until no thread is present, and then joins the threads that have ended. False if the time was up; at once
    /// in a thread of the pool and in `start_with`, which would wait for their own end.
    pub(crate) fn await_termination(&self, until: Option<Instant>) -> bool {
        if belongs_to(self.id) || is_starting(self.id) {
            return false;
        }
        let mut state = self.lock();
        loop {
            if state.is_terminated() {
                let ended = std::mem::take(&mut state.ended);
                if !ended.is_empty() {
                    state.joining += 1;
                    drop(state);
                    join_all(ended);
                    state = self.lock();
                    state.joining -= 1;
                    self.terminated.notify_all();
                }
                if state.joining == 0 {
                    return true;
                }
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            state = wait(&self.terminated, state, until);
        }
    }

    /// Starts threads until there are `threads`, or as many as allowed. Returns how many were started.
    pub(crate) fn prestart(self: &Arc<Self>, threads: usize) -> io::Result<usize> {
        let mut started = 0;
        loop {
            let mut state = self.lock();
            if state.threads >= threads || !state.may_grow() {
                return Ok(started);
            }
            self.count_thread(&mut state);
            drop(state);
            self.start(None).map_err(|(error, _)| error)?;
            started += 1;
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let state = self.lock();
        let totals = state.totals();
        let queued = state.backlog.accepted.saturating_sub(totals.queued);
        Counts {
            threads: state.threads,
            largest: state.largest,
            active: (totals.direct + totals.queued).saturating_sub(totals.completed).try_into().unwrap_or(usize::MAX),
            queued: queued.try_into().unwrap_or(usize::MAX),
            accepted: totals.direct + totals.queued + queued,
            completed: totals.completed,
            panicked: totals.panicked,
            rejected: self.rejected.load(Relaxed),
            discarded: self.discarded.load(Relaxed),
            failed_starts: self.failed_starts.load(Relaxed),
        }
    }

    /// How many threads the next task may be handed to.
    pub(crate) fn waiting(&self) -> usize {
        let takes = self.idle.waiting_takes();
        match self.config.queueing {
            Queueing::HandOff(_) => takes,
            // A thread that has just registered looks for work once more, and a woken thread has work: neither is
            // waiting.
            Queueing::Unbounded | Queueing::Bounded(_) => takes.min(self.lock().backlog.sleeping as usize),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.lock().limits
    }
}
