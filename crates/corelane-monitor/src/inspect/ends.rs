//! What the stages ask of a queue of items: of every design of [`corelane::spsc`], and of the rings of [`printed`](super::printed).

use super::item::Item;
use corelane::error::Drained;
use corelane::spsc::{Consumer, Design, Producer};
use corelane::wait::Strategy;

/// The Dispatcher's end.
pub(super) trait ItemProducer: Send {
    /// Pushes all items, waiting for room. Those that a closed queue does not take are dropped: see [`is_closed`](Self::is_closed).
    fn push_all(&mut self, items: impl Iterator<Item = Item>);

    /// Whether the stage takes no more: it has panicked.
    fn is_closed(&self) -> bool;
}

/// An application stage's end.
pub(super) trait ItemConsumer: Send {
    /// Waits until there is an item; an error once there will be none.
    fn wait_for_item(&mut self) -> Result<(), Drained>;

    /// Pops up to `max` items and appends them to `items`; how many.
    fn pop_into(&mut self, items: &mut Vec<Item>, max: usize) -> usize;

    /// Whether there is nothing to pop now.
    fn is_empty(&mut self) -> bool;
}

impl<D: Design<Item>, W: Strategy> ItemProducer for Producer<Item, D, W> {
    #[inline]
    fn push_all(&mut self, items: impl Iterator<Item = Item>) {
        let mut items = items.peekable();
        loop {
            self.push_iter(&mut items);
            if items.peek().is_none() || self.wait_for_room(self.capacity().div_ceil(2)).is_err() {
                return;
            }
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        Producer::is_closed(self)
    }
}

impl<D: Design<Item>, W: Strategy> ItemConsumer for Consumer<Item, D, W> {
    #[inline]
    fn wait_for_item(&mut self) -> Result<(), Drained> {
        Consumer::wait_for_item(self)
    }

    #[inline]
    fn pop_into(&mut self, items: &mut Vec<Item>, max: usize) -> usize {
        Consumer::pop_into(self, items, max)
    }

    #[inline]
    fn is_empty(&mut self) -> bool {
        Consumer::is_empty(self)
    }
}
