//! The queue of tasks, in chunks that change hands whole.
//!
//! A thread takes a full chunk as its batch by a swap of pointers. From a ring it would have to copy each task under
//! the lock. A queue that grows in a burst copies no queued task, and it allocates nothing while the burst is no longer
//! than the last ones.

use crate::task::Task;
use std::collections::VecDeque;
use std::mem;

/// Tasks in a chunk.
pub(crate) const CHUNK: usize = 64;

/// How many empty chunks are kept.
const SPARE: usize = 64;

/// A queue without a bound. Fields that every push changes come first.
#[repr(C)]
pub(crate) struct Chunks {
    /// Where tasks are pushed; never longer than a chunk.
    last: VecDeque<Task>,
    /// Full chunks, ahead of `last`. None is empty, and only the first may have lost tasks.
    full: VecDeque<VecDeque<Task>>,
    spare: Vec<VecDeque<Task>>,
}

/// An empty chunk.
pub(crate) fn chunk() -> VecDeque<Task> {
    VecDeque::with_capacity(CHUNK)
}

impl Chunks {
    /// Allocates the first chunk at once if the queue is `used`.
    pub(crate) fn new(used: bool) -> Self {
        Self { last: if used { chunk() } else { VecDeque::new() }, full: VecDeque::new(), spare: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_empty() && self.full.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        let first = self.full.front().map_or(0, VecDeque::len);
        first + self.full.len().saturating_sub(1) * CHUNK + self.last.len()
    }

    #[inline]
    pub(crate) fn push(&mut self, task: Task) {
        if self.last.len() >= CHUNK {
            let fresh = self.spare.pop().unwrap_or_else(chunk);
            self.full.push_back(mem::replace(&mut self.last, fresh));
        }
        self.last.push_back(task);
    }

    pub(crate) fn pop(&mut self) -> Option<Task> {
        let Some(first) = self.full.front_mut() else { return self.last.pop_front() };
        let task = first.pop_front();
        if first.is_empty() {
            let empty = self.full.pop_front().unwrap_or_default();
            self.keep(empty);
        }
        task
    }

    /// Moves the first tasks to the end of `batch`: at most `most`, and at most one chunk.
    pub(crate) fn take(&mut self, most: usize, batch: &mut VecDeque<Task>) {
        let first = self.full.front_mut().unwrap_or(&mut self.last);
        if first.len() > most {
            batch.extend(first.drain(..most));
        } else if !batch.is_empty() {
            batch.append(first);
        } else {
            mem::swap(first, batch);
        }
        if first.is_empty()
            && let Some(empty) = self.full.pop_front()
        {
            self.keep(empty);
        }
    }

    /// Takes all tasks.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Task> {
        let Self { last, full, .. } = mem::replace(self, Self::new(false));
        full.into_iter().flatten().chain(last)
    }

    fn keep(&mut self, empty: VecDeque<Task>) {
        if self.spare.len() < SPARE && empty.capacity() >= CHUNK {
            self.spare.push(empty);
        }
        if self.full.is_empty() && self.full.capacity() > SPARE {
            self.full = VecDeque::new();
        }
    }
}

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Against a ring: every mixture of pushes, pops and takes keeps the order and the count.
    #[test]
    fn tasks_leave_in_the_order_they_came_in() {
        let (came, order) = channel();
        let mut chunks = Chunks::new(true);
        let mut batch = VecDeque::new();
        let (mut pushed, mut left) = (0_usize, 0);
        for step in 0..2000_usize {
            for _ in 0..step * 7919 % 300 {
                let (number, came) = (pushed, came.clone());
                chunks.push(Task::new(move || came.send(number).expect("the receiver is alive")));
                pushed += 1;
            }
            assert_eq!(chunks.len(), pushed - left);
            let mut taken: Vec<Task> = (0..step % 3).filter_map(|_| chunks.pop()).collect();
            while !chunks.is_empty() && (step % 4 == 0 || batch.len() < step % 200) {
                let before = batch.len();
                chunks.take(1 + step % CHUNK, &mut batch);
                assert!((1..=1 + step % CHUNK).contains(&(batch.len() - before)));
            }
            taken.extend(batch.drain(..));
            for task in taken {
                task.run();
                assert_eq!(order.try_recv(), Ok(left));
                left += 1;
            }
        }
        for task in chunks.drain() {
            task.run();
            assert_eq!(order.try_recv(), Ok(left));
            left += 1;
        }
        assert_eq!((left, chunks.len()), (pushed, 0));
        assert!(pushed > 100 * CHUNK);
    }

    #[test]
    fn a_burst_leaves_little_memory_behind() {
        let mut chunks = Chunks::new(true);
        (0..100_000).for_each(|_| chunks.push(Task::new(|| {})));
        let mut batch = VecDeque::new();
        while !chunks.is_empty() {
            chunks.take(CHUNK, &mut batch);
            batch.clear();
        }
        assert!(chunks.spare.len() <= SPARE && chunks.full.capacity() <= SPARE);
    }
}
