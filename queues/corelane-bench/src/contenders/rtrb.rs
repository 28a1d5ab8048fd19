//! rtrb: a ring with cached indices.

use crate::contender::{Batches, Kind, Pair, Unable};
use crate::item::Item;
use ::rtrb::{Consumer, Producer, RingBuffer};

#[derive(Debug)]
pub(crate) struct Rtrb;

impl<T: Item> Pair<T> for Rtrb {
    const KIND: Kind = Kind::Crate;
    type Tx = Producer<T>;
    type Rx = Consumer<T>;

    fn name() -> String {
        "rtrb".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        Ok(RingBuffer::new(capacity))
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

impl<T: Item> Batches<T> for Rtrb {
    #[inline(always)]
    fn push_slice(tx: &mut Self::Tx, items: &[T]) -> usize {
        tx.push_partial_slice(items).0.len()
    }

    #[inline(always)]
    fn pop_slice(rx: &mut Self::Rx, items: &mut [T]) -> usize {
        rx.pop_partial_slice(items).0.len()
    }
}
