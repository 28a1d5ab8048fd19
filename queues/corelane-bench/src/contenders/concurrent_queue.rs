//! concurrent-queue: a bounded queue for many producers and consumers.

use crate::contender::{Kind, Pair, Unable};
use crate::item::Item;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct ConcurrentQueue;

impl<T: Item> Pair<T> for ConcurrentQueue {
    const KIND: Kind = Kind::Crate;
    type Tx = Arc<::concurrent_queue::ConcurrentQueue<T>>;
    type Rx = Arc<::concurrent_queue::ConcurrentQueue<T>>;

    fn name() -> String {
        "concurrent-queue".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let queue = Arc::new(::concurrent_queue::ConcurrentQueue::bounded(capacity));
        Ok((queue.clone(), queue))
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: T) -> bool {
        tx.push(item).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        rx.pop().ok()
    }
}
