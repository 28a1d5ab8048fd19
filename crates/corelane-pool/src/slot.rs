//! What a pool knows of a thread: what it has counted, which tasks it has taken, how it is joined.

use crate::chunks::chunk;
use crate::sync::plain::{AtomicBool, AtomicU64, AtomicUsize as PlainUsize};
use crate::sync::{Acquire, Arc, JoinHandle, Mutex, Padded, Relaxed, Release, lock};
use crate::task::Task;
use std::collections::VecDeque;

/// What a thread has counted. Written by that thread alone, so counting takes no read-modify-write; read by any thread.
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
    /// How many those are; never too few for a thread that holds the pool's lock.
    batched: PlainUsize,
    /// The task the thread was started for.
    pub(crate) first: Mutex<Option<Task>>,
    /// Held while the thread is being started.
    pub(crate) handle: Mutex<Option<JoinHandle<()>>>,
    /// Counts the threads of the pool from 0.
    pub(crate) number: usize,
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

    /// True for the first call alone: the thread's when it begins, or that of a start that has failed.
    pub(crate) fn claim(&self) -> bool {
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

    /// How many tasks wait here. Exact for a thread that holds the pool's lock, but for those that this one begins
    /// meanwhile.
    pub(crate) fn batched(&self) -> usize {
        self.batched.load(Relaxed)
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
