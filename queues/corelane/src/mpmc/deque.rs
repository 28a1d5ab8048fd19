//! What lies under the lock of [`busy_wait`](super::busy_wait) and the mutex of [`condvar`](super::condvar): a deque
//! with a bound, which can be closed.

use crate::error::{ChannelError, TryPopError, TryPushError};
use crate::mem::moving::Moving;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The items, and whether more may come.
#[derive(Debug)]
pub(super) struct Deque<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Deque<T> {
    /// With memory for so many items.
    pub(super) fn new(capacity: usize) -> Result<Self, ChannelError> {
        let bytes = capacity.checked_mul(size_of::<T>()).ok_or(ChannelError::TooLarge)?;
        if bytes > isize::MAX as usize {
            return Err(ChannelError::TooLarge);
        }
        let mut items = VecDeque::new();
        items.try_reserve_exact(capacity).map_err(|_| ChannelError::NoMemory)?;
        Ok(Self { items, closed: false })
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether there is room, or why not.
    pub(super) fn may_push(&self, capacity: usize) -> Result<(), TryPushError<()>> {
        if self.closed {
            Err(TryPushError::Closed(()))
        } else if self.items.len() == capacity {
            Err(TryPushError::Full(()))
        } else {
            Ok(())
        }
    }

    /// Whether there is something, or why not.
    pub(super) fn may_pop(&self) -> Result<(), TryPopError> {
        if !self.items.is_empty() {
            Ok(())
        } else if self.closed {
            Err(TryPopError::Closed)
        } else {
            Err(TryPopError::Empty)
        }
    }

    /// Adds an item, which [may be](Self::may_push).
    pub(super) fn push(&mut self, item: T) {
        self.items.push_back(item);
    }

    /// Takes an item, which [may be](Self::may_pop).
    pub(super) fn pop(&mut self) -> T {
        self.items.pop_front().expect("there is one")
    }

    /// Adds as many as there are and is room for.
    pub(super) fn push_run(&mut self, supply: &mut Moving<'_, T>, capacity: usize) -> usize {
        let count = supply.len().min(capacity - self.items.len());
        self.items.extend((0..count).map_while(|_| supply.next()));
        count
    }

    /// Moves at most so many to the end of `items`.
    pub(super) fn pop_run(&mut self, items: &mut Vec<T>, max: usize) -> usize {
        let count = max.min(self.items.len());
        // Before anything is taken out: this may panic.
        items.reserve(count);
        items.extend(self.items.drain(..count));
        count
    }
}
