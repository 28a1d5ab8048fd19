//! A thread of the pool: how it begins, what it counts, how it ends.

use crate::chunks::chunk;
use crate::shared::Shared;
use crate::sync::plain::{AtomicBool, AtomicU64, AtomicUsize as PlainUsize};
use crate::sync::{Acquire, Arc, JoinHandle, Mutex, Padded, Relaxed, Release, lock, thread_local};
use crate::task::Task;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;

/// What a thread has counted. Written by that thread alone, so counting takes no read-modify-write; read by anyone.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Tasks begun that never were in the queue.
    pub(crate) direct: AtomicU64,
    /// Tasks begun that were.
    pub(crate) queued: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) panicked: AtomicU64,
    /// Tasks whose wait was measured, their waits in nanoseconds, and the longest.
    pub(crate) waits: AtomicU64,
    pub(crate) waited: AtomicU64,
    pub(crate) longest_wait: AtomicU64,
}

/// Adds to a count of the calling thread's own.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Release);
}

/// What the pool knows of a thread.
pub(crate) struct Slot {
    pub(crate) tally: Padded<Tally>,
    /// Tasks that the thread took from the queue and has not begun. Others may take them back, under the pool's lock.
    batch: Padded<Mutex<VecDeque<Task>>>,
    /// How many those are; never too few for who holds the pool's lock.
    batched: PlainUsize,
    /// The task the thread was started for.
    pub(crate) first: Mutex<Option<Task>>,
    /// Held while the thread is being started.
    pub(crate) handle: Mutex<Option<JoinHandle<()>>>,
    number: usize,
    /// The thread runs, or it is known that it never will.
    claimed: AtomicBool,
}

impl Slot {
    /// With memory for a batch, if the pool has a queue.
    pub(crate) fn new(number: usize, first: Option<Task>, queues: bool) -> Self {
        let batch = if queues { chunk() } else { VecDeque::new() };
        Self {
            tally: Padded::default(),
            batch: Padded(Mutex::new(batch)),
            batched: PlainUsize::new(0),
            first: Mutex::new(first),
            handle: Mutex::new(None),
            number,
            claimed: AtomicBool::new(false),
        }
    }

    fn claim(&self) -> bool {
        !self.claimed.swap(true, Acquire)
    }

    /// The next task of the thread's own.
    pub(crate) fn pop(&self) -> Option<Task> {
        let mut batch = lock(&self.batch);
        let task = batch.pop_front();
        self.batched.store(batch.len(), Relaxed);
        task
    }

    /// Has tasks added, and takes the first. The caller holds the pool's lock.
    pub(crate) fn fill(&self, add: impl FnOnce(&mut VecDeque<Task>)) -> Option<Task> {
        let mut batch = lock(&self.batch);
        add(&mut batch);
        let first = batch.pop_front();
        self.batched.store(batch.len(), Relaxed);
        first
    }

    /// Puts a task back that was the first. The caller holds the pool's lock.
    pub(crate) fn put_back(&self, first: Task) {
        let mut batch = lock(&self.batch);
        batch.push_front(first);
        self.batched.store(batch.len(), Relaxed);
    }

    /// Takes the first half of the tasks, rounded up. The caller holds the pool's lock.
    pub(crate) fn take_half(&self) -> VecDeque<Task> {
        if self.batched.load(Relaxed) == 0 {
            return VecDeque::new();
        }
        let mut batch = lock(&self.batch);
        let half = batch.len().div_ceil(2);
        let rest = batch.split_off(half);
        self.batched.store(rest.len(), Relaxed);
        std::mem::replace(&mut *batch, rest)
    }

    /// Takes all tasks. The caller holds the pool's lock.
    pub(crate) fn take_all(&self) -> VecDeque<Task> {
        let mut batch = lock(&self.batch);
        self.batched.store(0, Relaxed);
        std::mem::take(&mut *batch)
    }

    /// How many tasks wait here. Exact for who holds the pool's lock, but for those that the thread begins meanwhile.
    pub(crate) fn batched(&self) -> usize {
        self.batched.load(Relaxed)
    }
}

/// A thread of a pool that is about to be started: what [`Builder::start_with`](crate::Builder::start_with) gets. Dropped without
/// [`run`](Self::run), it was never started, and the task it was to begin with is dropped with it or returned to its caller.
///
/// ```
/// use corelane_pool::ThreadPool;
/// use std::thread;
///
/// let pool = ThreadPool::builder()
///     .name("bound")
///     .stack_size(256 * 1024)
///     .start_with(|worker| {
///         let thread = thread::Builder::new().name(worker.name().into());
///         let thread = worker.stack_size().into_iter().fold(thread, thread::Builder::stack_size);
///         thread.spawn(move || {
///             // Here it might be bound to a CPU.
///             println!("{} is thread {}", worker.name(), worker.number());
///             worker.run();
///         })
///     })
///     .build()?;
/// let name = pool.spawn(|| thread::current().name().map(String::from)).unwrap();
/// assert_eq!(name.join().unwrap().as_deref(), Some("bound-0"));
/// # Ok::<(), corelane_pool::BuildError>(())
/// ```
pub struct Worker {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    name: String,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, slot: Arc<Slot>) -> Self {
        let name = shared.config.name.as_deref().unwrap_or("corelane-pool");
        let name = format!("{name}-{}", slot.number);
        Self { shared, slot, name }
    }

    /// What the thread should be called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts the threads of the pool, those that could not be started among them, from 0.
    pub fn number(&self) -> usize {
        self.slot.number
    }

    /// The size its stack should have in bytes, if the pool was told one.
    pub fn stack_size(&self) -> Option<usize> {
        self.shared.config.stack_size
    }

    /// Runs tasks until the thread is to end. The thread should end then.
    pub fn run(self) {
        if !self.slot.claim() {
            return;
        }
        let before = {
            let _context = Context::enter(&self.shared, &self.slot);
            self.shared.enter(&self.slot);
            self.shared.hook(&self.shared.config.on_thread_start, self.slot.number);
            let first = lock(&self.slot.first).take();
            self.shared.serve(&self.slot, first);
            self.shared.hook(&self.shared.config.on_thread_stop, self.slot.number);
            self.shared.leave(&self.slot)
        };
        join_all(before);
    }
}

/// Waits until these threads have ended, their thread-locals dropped.
pub(crate) fn join_all(slots: Vec<Arc<Slot>>) {
    for slot in slots {
        let handle = lock(&slot.handle).take();
        if let Some(handle) = handle {
            // Its panics, if `start_with` added code that panics, are no concern of the pool's.
            let _ = handle.join();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.slot.claim() {
            self.shared.never_started();
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

thread_local! {
    // Loom's macro knows no `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static CONTEXT: RefCell<Option<(Arc<Shared>, Arc<Slot>)>> = RefCell::new(None);
}

/// Makes a thread known as the pool's, while it lives.
struct Context;

impl Context {
    fn enter(shared: &Arc<Shared>, slot: &Arc<Slot>) -> Self {
        CONTEXT.with(|context| *context.borrow_mut() = Some((shared.clone(), slot.clone())));
        Self
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // What the pool owns is dropped when the thread-local is free again.
        drop(CONTEXT.with(|context| context.borrow_mut().take()));
    }
}

/// Calls with the pool and the slot of this thread, if it is a pool's.
pub(crate) fn with_current<R>(f: impl FnOnce(&Arc<Shared>, &Slot) -> R) -> Option<R> {
    // A thread-local that is dropped later may ask, too.
    CONTEXT.try_with(|context| context.borrow().as_ref().map(|(shared, slot)| f(shared, slot))).ok().flatten()
}

/// Counts a panic that somebody else takes care of.
pub(crate) fn count_panic() {
    with_current(|_, slot| add(&slot.tally.panicked, 1));
}
