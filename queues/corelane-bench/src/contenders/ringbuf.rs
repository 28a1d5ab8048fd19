//! ringbuf: a ring with cached indices.

use crate::contender::{Batches, Kind, Pair, Unable};
use crate::item::Item;
use ::ringbuf::traits::{Consumer, Producer, Split};
use ::ringbuf::{HeapCons, HeapProd, HeapRb};

#[derive(Debug)]
pub(crate) struct Ringbuf;

impl<T: Item> Pair<T> for Ringbuf {
    const KIND: Kind = Kind::Crate;
    type Tx = HeapProd<T>;
    type Rx = HeapCons<T>;

    fn name() -> String {
        "ringbuf".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        Ok(HeapRb::new(capacity).split())
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: T) -> bool {
        tx.try_push(item).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        rx.try_pop()
    }
}

impl<T: Item> Batches<T> for Ringbuf {
    #[inline(always)]
    fn push_slice(tx: &mut Self::Tx, items: &[T]) -> usize {
        tx.push_slice(items)
    }

    #[inline(always)]
    fn pop_slice(rx: &mut Self::Rx, items: &mut [T]) -> usize {
        rx.pop_slice(items)
    }
}
