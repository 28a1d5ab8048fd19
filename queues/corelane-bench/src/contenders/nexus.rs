//! nexus-queue: a ring with cached indices. It rounds its capacity up to a power of two.

use crate::contender::{Kind, Pair, Unable};
use crate::item::Item;
use nexus_queue::spsc::{Consumer, Producer, ring_buffer};

#[derive(Debug)]
pub(crate) struct Nexus;

impl<T: Item> Pair<T> for Nexus {
    const KIND: Kind = Kind::Crate;
    type Tx = Producer<T>;
    type Rx = Consumer<T>;

    fn name() -> String {
        "nexus-queue".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        Ok(ring_buffer(capacity))
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
