//! heapless: a ring without heap, with a constant size. The handles borrow the ring, so the bench gives each sample a
//! queue that lives for the rest of the process.

use crate::contender::{Kind, Pair, Unable};
use crate::item::Item;
use ::heapless::spsc::{Consumer, Producer, Queue};

#[derive(Debug)]
pub(crate) struct Heapless;

/// The size that heapless's documentation advises: a power of two, of which one slot stays free.
const SLOTS: usize = 2048;

impl<T: Item> Pair<T> for Heapless {
    const KIND: Kind = Kind::Crate;
    type Tx = Producer<'static, T>;
    type Rx = Consumer<'static, T>;

    fn name() -> String {
        "heapless".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        match capacity {
            2000 | 2048 => Ok(Box::leak(Box::<Queue<T, SLOTS>>::default()).split()),
            _ => Err(Unable::because("its capacity is a constant of the program: measured with 2047 only")),
        }
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: T) -> bool {
        tx.enqueue(item).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        rx.dequeue()
    }
}
