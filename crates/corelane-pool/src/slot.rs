//! The pool's data about one thread: its counts, the tasks it has taken, and its join handle.

use crate::chunks::chunk;
use crate::sync::plain::{AtomicBool, AtomicU64, AtomicUsize as PlainUsize};
use crate::sync::{Acquire, Arc, JoinHandle, Mutex, Padded, Relaxed, Release, lock};
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

/// The pool's data about one thread.
pub(crate) struct Slot {
    pub(crate) tally: Padded<Tally>,
    /// Tasks that the thread took from the queue and has not begun. Other threads may take them, under the pool's lock.
    batch: Padded<Mutex<VecDeque<Task>>>,
    /// The length of `batch`. Never too small for a thread that holds the pool's lock.
    batched: PlainUsize,
    /// The task for which the thread was started.
    pub(crate) first: Mutex<Option<Task>>,
    /// The lock is held while the thread is being started.
    pub(crate) handle: Mutex<Option<JoinHandle<()>>>,
    /// The thread's number in the pool, counted from 0.
    pub(crate) number: usize,
    /// True once the thread runs, or once it is certain that it never will.
    claimed: AtomicBool,
}

impl Slot {
    /// Allocates a batch if the pool has a queue.
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

    /// True for the first call only. The thread calls it when it begins; so does the drop of a worker that never
    /// started.
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.swap(true, Acquire)
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
        let handle = lock(&slot.handle).take();
        if let Some(handle) = handle {
            // The thread may panic if `start_with` added code that panics. The pool ignores that.
            let _ = handle.join();
        }
    }
}
