//! The traits of a queue of items: for every design of [`corelane::spsc`], and for those that the bench brings.

use super::item::Item;
use corelane::error::Closed;
use corelane::spsc::{Consumer, Design, Producer};
use corelane::wait::Strategy;

/// The Dispatcher's end.
pub trait ItemProducer: Send {
    /// Pushes all items, waiting for room, and leaves the vector empty. Items that a closed queue does not take are
    /// dropped: see [`is_closed`](Self::is_closed).
    fn push_all(&mut self, items: &mut Vec<Item>);

    /// Whether the queue is closed: the stage has panicked and takes no more.
    fn is_closed(&self) -> bool;

    /// How full the queue is, from 0 to 1; `None` if it does not tell. Asked once in a second of the capture's time.
    fn fill(&self) -> Option<f64> {
        None
    }
}

/// An application stage's end.
pub trait ItemConsumer: Send {
    /// Waits for an item, pops up to `max` and appends them to `items`. Returns their number, or an error once no more
    /// can come.
    fn pop_batch(&mut self, items: &mut Vec<Item>, max: usize) -> Result<usize, Closed>;

    /// Whether there is nothing to pop now.
    fn is_empty(&mut self) -> bool;
}

impl<D: Design<Item>, W: Strategy> ItemProducer for Producer<Item, D, W> {
    #[inline]
    fn push_all(&mut self, items: &mut Vec<Item>) {
        loop {
            // The queue may be full or closed; the wait below tells which.
            let _ = self.try_push_batch(items);
            if items.is_empty() || self.wait_for_room(self.capacity().div_ceil(2)).is_err() {
                return items.clear();
            }
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        Producer::is_closed(self)
    }

    fn fill(&self) -> Option<f64> {
        Some(self.len() as f64 / self.capacity() as f64)
    }
}

impl<D: Design<Item>, W: Strategy> ItemConsumer for Consumer<Item, D, W> {
    #[inline]
    fn pop_batch(&mut self, items: &mut Vec<Item>, max: usize) -> Result<usize, Closed> {
        Consumer::pop_batch(self, items, max)
    }

    #[inline]
    fn is_empty(&mut self) -> bool {
        Consumer::is_empty(self)
    }
}

impl ItemProducer for Box<dyn ItemProducer> {
    fn push_all(&mut self, items: &mut Vec<Item>) {
        (**self).push_all(items);
    }

    fn is_closed(&self) -> bool {
        (**self).is_closed()
    }

    fn fill(&self) -> Option<f64> {
        (**self).fill()
    }
}

impl ItemConsumer for Box<dyn ItemConsumer> {
    fn pop_batch(&mut self, items: &mut Vec<Item>, max: usize) -> Result<usize, Closed> {
        (**self).pop_batch(items, max)
    }

    fn is_empty(&mut self) -> bool {
        (**self).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane::spsc;

    #[test]
    fn a_queue_tells_how_full_it_is() {
        let (mut producer, mut consumer) = spsc::channel(32);
        assert_eq!(producer.fill(), Some(0.0));
        producer.push_all(&mut (0..8).map(|number| Item::Passed { number }).collect());
        assert_eq!(producer.fill(), Some(0.25));
        consumer.pop_batch(&mut Vec::new(), 8).unwrap();
        assert_eq!(producer.fill(), Some(0.0));
    }
}
