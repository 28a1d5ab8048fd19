//! The pool's data about one thread: its counts, the tasks it has taken, and its join handle.

use crate::chunks::chunk;
use crate::error::drop_payload;
use crate::sync::plain::{AtomicU64, AtomicUsize as PlainUsize};
use crate::sync::{Arc, Condvar, JoinHandle, Mutex, Padded, Relaxed, Release, lock, wait};
use crate::task::Task;
use std::collections::VecDeque;

/// Counts of one thread. Only that thread writes them, so counting needs no read-modify-write. Any thread may read
/// them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Tasks begun that were never in the queue.
    pub(crate) direct: AtomicU64,
    /// Tasks begun that were in the queue.
    pub(crate) queued: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) panicked: AtomicU64,
    /// Tasks whose wait was measured, the sum of their waits in nanoseconds, and the longest wait.
    pub(crate) waits: AtomicU64,
    pub(crate) waited: AtomicU64,
    pub(crate) longest_wait: AtomicU64,
}

/// Adds to a count that only the calling thread writes.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Release);
}

/// What becomes of a thread that was counted.
#[derive(PartialEq)]
enum Fate {
    Open,
    /// It runs, or has run.
    Runs,
    /// It never will.
    Never,
}

/// The start of a thread. Its caller, the thread and a worker that is dropped decide here what becomes of it.
struct Launch {
    fate: Fate,
    /// The task for which the thread is started. The thread takes it when it begins. If it never does, the caller takes
    /// it while the start goes on, and the drop of the worker later.
    first: Option<Task>,
    /// The user's code that starts the thread has not returned.
    goes_on: bool,
    handle: Option<JoinHandle<()>>,
}

/// The pool's data about one thread.
pub(crate) struct Slot {
    pub(crate) tally: Padded<Tally>,
    /// Tasks that the thread took from the queue and has not begun. Other threads may take them, under the pool's lock.
    batch: Padded<Mutex<VecDeque<Task>>>,
    /// The length of `batch`. Never too small for a thread that holds the pool's lock.
    batched: PlainUsize,
    launch: Mutex<Launch>,
    /// Signals that the start is over.
    launched: Condvar,
    /// The thread's number in the pool, counted from 0.
    pub(crate) number: usize,
}

impl Slot {
    /// Allocates a batch if the pool has a queue.
    pub(crate) fn new(number: usize, first: Option<Task>, queues: bool) -> Self {
        let batch = if queues { chunk() } else { VecDeque::new() };
        Self {
            tally: Padded::default(),
            batch: Padded(Mutex::new(batch)),
            batched: PlainUsize::new(0),
            launch: Mutex::new(Launch { fate: Fate::Open, first, goes_on: true, handle: None }),
            launched: Condvar::new(),
            number,
        }
    }

    /// The thread begins, with its first task if it has one. `None` if it was given up.
    pub(crate) fn begin(&self) -> Option<Option<Task>> {
        let mut launch = lock(&self.launch);
        if launch.fate != Fate::Open {
            return None;
        }
        launch.fate = Fate::Runs;
        Some(launch.first.take())
    }

    /// The thread will never run. False if it has begun, or was given up before.
    pub(crate) fn give_up(&self) -> bool {
        let mut launch = lock(&self.launch);
        let is_open = launch.fate == Fate::Open;
        if is_open {
            launch.fate = Fate::Never;
        }
        is_open
    }

    /// The first task of a thread that was given up, if it has one, for the drop of its worker. The outer `None`: the
    /// start goes on, and its caller gets the task.
    pub(crate) fn orphan(&self) -> Option<Option<Task>> {
        let mut launch = lock(&self.launch);
        if launch.goes_on { None } else { Some(launch.first.take()) }
    }

    /// The start is over. `Err`, with the first task, if the thread was given up.
    pub(crate) fn launched(&self, handle: Option<JoinHandle<()>>) -> Result<(), Option<Task>> {
        let mut launch = lock(&self.launch);
        launch.goes_on = false;
        launch.handle = handle;
        self.launched.notify_all();
        if launch.fate == Fate::Never { Err(launch.first.take()) } else { Ok(()) }
    }

    /// Takes the thread's handle, once its start is over.
    fn handle(&self) -> Option<JoinHandle<()>> {
        let mut launch = lock(&self.launch);
        while launch.goes_on {
            launch = wait(&self.launched, launch, None);
        }
        launch.handle.take()
    }

    /// Takes the next task of the thread's own batch.
    pub(crate) fn pop(&self) -> Option<Task> {
        let mut batch = lock(&self.batch);
        let task = batch.pop_front();
        self.batched.store(batch.len(), Relaxed);
        task
    }

    /// Adds tasks to the batch, and takes the first. The caller holds the pool's lock.
    pub(crate) fn fill(&self, add: impl FnOnce(&mut VecDeque<Task>)) -> Option<Task> {
        let mut batch = lock(&self.batch);
        add(&mut batch);
        let first = batch.pop_front();
        self.batched.store(batch.len(), Relaxed);
        first
    }

    /// Puts back the task that was first. The caller holds the pool's lock.
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

    /// How many tasks the batch holds. For a thread that holds the pool's lock the count is exact, except for tasks
    /// that the slot's own thread begins in the meantime.
    pub(crate) fn batched(&self) -> usize {
        self.batched.load(Relaxed)
    }
}

/// Waits until these threads have ended and their thread-locals are dropped.
pub(crate) fn join_all(slots: Vec<Arc<Slot>>) {
    for slot in slots {
        // The thread may panic if `start_with` added code that panics. The pool ignores that.
        if let Some(Err(payload)) = slot.handle().map(JoinHandle::join) {
            drop_payload(payload);
        }
    }
}
