//! crossbeam: the bounded queue for many producers and consumers, and the channel over it.

use crate::contender::{Kind, Pair, Unable, Waits};
use crate::item::Item;
use crossbeam_channel::{Receiver, Sender, bounded};
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct CrossbeamArrayQueue;

impl<T: Item> Pair<T> for CrossbeamArrayQueue {
    const KIND: Kind = Kind::Crate;
    type Tx = Arc<ArrayQueue<T>>;
    type Rx = Arc<ArrayQueue<T>>;

    fn name() -> String {
        "crossbeam ArrayQueue".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let queue = Arc::new(ArrayQueue::new(capacity));
        Ok((queue.clone(), queue))
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: T) -> bool {
        tx.push(item).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        rx.pop()
    }
}

#[derive(Debug)]
pub(crate) struct CrossbeamChannel;

impl<T: Item> Pair<T> for CrossbeamChannel {
    const KIND: Kind = Kind::Crate;
    type Tx = Sender<T>;
    type Rx = Receiver<T>;

    fn name() -> String {
        "crossbeam channel".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        Ok(bounded(capacity))
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: T) -> bool {
        tx.try_send(item).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl<T: Item> Waits<T> for CrossbeamChannel {
    #[inline(always)]
    fn push(tx: &mut Self::Tx, item: T) -> bool {
        tx.send(item).is_ok()
    }

    #[inline(always)]
    fn pop(rx: &mut Self::Rx) -> Option<T> {
        rx.recv().ok()
    }
}
