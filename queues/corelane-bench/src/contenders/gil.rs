//! gil: a ring with cached indices.

use crate::contender::{Batches, Kind, Pair, Unable, Waits};
use crate::item::Item;
use crate::raw;
use ::gil::spsc::{Receiver, Sender, channel};
use std::num::NonZeroUsize;

#[derive(Debug)]
pub(crate) struct Gil;

impl<T: Item> Pair<T> for Gil {
    const KIND: Kind = Kind::Crate;
    type Tx = Sender<T>;
    type Rx = Receiver<T>;

    fn name() -> String {
        "gil".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let capacity = NonZeroUsize::new(capacity).ok_or(Unable::because("its capacity must be at least 1"))?;
        Ok(channel(capacity))
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: T) -> bool {
        tx.try_send(item).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        rx.try_recv()
    }
}

impl<T: Item> Batches<T> for Gil {
    #[inline(always)]
    fn push_slice(tx: &mut Self::Tx, items: &[T]) -> usize {
        raw::gil_push_slice(tx, items)
    }

    #[inline(always)]
    fn pop_slice(rx: &mut Self::Rx, items: &mut [T]) -> usize {
        let mut guard = rx.read_guard();
        let run = guard.as_slice();
        let n = run.len().min(items.len());
        items[..n].copy_from_slice(&run[..n]);
        guard.advance(n);
        n
    }
}

/// Spins 128 times, then yields. It never sleeps.
impl<T: Item> Waits<T> for Gil {
    #[inline(always)]
    fn push(tx: &mut Self::Tx, item: T) -> bool {
        tx.send(item);
        true
    }

    #[inline(always)]
    fn pop(rx: &mut Self::Rx) -> Option<T> {
        Some(rx.recv())
    }
}
