//! The standard library's bounded channel.

use crate::contender::{Kind, Pair, Unable, Waits};
use crate::item::Item;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

#[derive(Debug)]
pub(crate) struct SyncChannel;

impl<T: Item> Pair<T> for SyncChannel {
    const KIND: Kind = Kind::Crate;
    type Tx = SyncSender<T>;
    type Rx = Receiver<T>;

    fn name() -> String {
        "std sync_channel".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        Ok(sync_channel(capacity))
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

impl<T: Item> Waits<T> for SyncChannel {
    #[inline(always)]
    fn push(tx: &mut Self::Tx, item: T) -> bool {
        tx.send(item).is_ok()
    }

    #[inline(always)]
    fn pop(rx: &mut Self::Rx) -> Option<T> {
        rx.recv().ok()
    }
}
