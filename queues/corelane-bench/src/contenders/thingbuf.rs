//! thingbuf: a queue that reuses its slots in place, and the blocking channel over it.

use crate::contender::{Kind, Pair, Unable, Waits};
use crate::item::Item;
use ::thingbuf::mpsc::blocking::{Receiver, Sender, channel};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct ThingBuf;

impl<T: Item> Pair<T> for ThingBuf {
    const KIND: Kind = Kind::Crate;
    type Tx = Arc<::thingbuf::ThingBuf<T>>;
    type Rx = Arc<::thingbuf::ThingBuf<T>>;

    fn name() -> String {
        "thingbuf".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let queue = Arc::new(::thingbuf::ThingBuf::new(capacity));
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
pub(crate) struct ThingBufChannel;

impl<T: Item> Pair<T> for ThingBufChannel {
    const KIND: Kind = Kind::Crate;
    type Tx = Sender<T>;
    type Rx = Receiver<T>;

    fn name() -> String {
        "thingbuf channel".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        Ok(channel(capacity))
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

impl<T: Item> Waits<T> for ThingBufChannel {
    #[inline(always)]
    fn push(tx: &mut Self::Tx, item: T) -> bool {
        tx.send(item).is_ok()
    }

    #[inline(always)]
    fn pop(rx: &mut Self::Rx) -> Option<T> {
        rx.recv()
    }
}
