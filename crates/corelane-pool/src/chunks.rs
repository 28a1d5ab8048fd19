//! The queue of tasks, in chunks that change hands whole.
//!
//! A thread takes a full chunk for its batch by a swap of pointers, where a ring would have it copy each task under the
//! lock. And a burst neither copies what is queued as the queue grows nor asks for memory while it is no longer than
//! the last ones.

use crate::task::Task;
use std::collections::VecDeque;
use std::mem;

/// Tasks in a chunk.
pub(crate) const CHUNK: usize = 64;

/// Empty chunks that are kept.
const SPARE: usize = 64;

/// A queue without a bound. What every push changes comes first.
#[repr(C)]
pub(crate) struct Chunks {
    /// Where tasks are pushed; never longer than a chunk.
    last: VecDeque<Task>,
    /// Those before it. None is empty, and only the first is not full.
    full: VecDeque<VecDeque<Task>>,
    spare: Vec<VecDeque<Task>>,
}

/// An empty chunk.
pub(crate) fn chunk() -> VecDeque<Task> {
    VecDeque::with_capacity(CHUNK)
}

impl Chunks {
    /// With the memory for the first chunk, if there will be tasks.
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

    /// Moves the first tasks to the end of `batch`: at most so many, and no more than a chunk has.
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

    /// Takes everything.
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

#[cfg(all(test, not(any(loom, shuttle))))]
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
