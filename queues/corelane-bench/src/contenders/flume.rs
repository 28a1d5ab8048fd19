//! flume: a channel over a lock.

use crate::contender::{Kind, Pair, Unable, Waits};
use crate::item::Item;
use ::flume::{Receiver, Sender, bounded};

#[derive(Debug)]
pub(crate) struct Flume;

impl<T: Item> Pair<T> for Flume {
    const KIND: Kind = Kind::Crate;
    type Tx = Sender<T>;
    type Rx = Receiver<T>;

    fn name() -> String {
        "flume".to_owned()
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

impl<T: Item> Waits<T> for Flume {
    #[inline(always)]
    fn push(tx: &mut Self::Tx, item: T) -> bool {
        tx.send(item).is_ok()
    }

    #[inline(always)]
    fn pop(rx: &mut Self::Rx) -> Option<T> {
        rx.recv().ok()
    }
}
