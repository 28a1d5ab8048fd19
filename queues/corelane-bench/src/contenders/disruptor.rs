//! disruptor: events in a ring, changed in place. The consumer is an `EventPoller`, the form in which the user's own
//! thread takes the events. The size is a power of two.

use crate::contender::{Batches, Kind, Pair, Unable};
use crate::item::Item;
use ::disruptor::{
    BusySpin, EventPoller, Producer, SingleConsumerBarrier, SingleProducer, SingleProducerBarrier,
    build_single_producer,
};

#[derive(Debug)]
pub(crate) struct Disruptor;

impl<T: Item> Pair<T> for Disruptor {
    const KIND: Kind = Kind::Crate;
    type Tx = SingleProducer<T, SingleConsumerBarrier>;
    type Rx = EventPoller<T, SingleProducerBarrier>;

    fn name() -> String {
        "disruptor".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let (poller, builder) =
            build_single_producer(capacity.next_power_of_two(), T::default, BusySpin).new_event_poller();
        Ok((builder.build(), poller))
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: T) -> bool {
        tx.try_publish(|event| *event = item).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        let mut events = rx.take(1).ok()?;
        (&mut events).next().copied()
    }
}

impl<T: Item> Batches<T> for Disruptor {
    /// All or nothing, as disruptor's batch call is.
    #[inline(always)]
    fn push_slice(tx: &mut Self::Tx, items: &[T]) -> usize {
        let published = tx.try_batch_publish(items.len(), |events| {
            for (event, item) in events.zip(items) {
                *event = *item;
            }
        });
        if published.is_ok() { items.len() } else { 0 }
    }

    #[inline(always)]
    fn pop_slice(rx: &mut Self::Rx, items: &mut [T]) -> usize {
        let Ok(mut events) = rx.take(items.len() as u64) else { return 0 };
        let mut popped = 0;
        for (item, event) in items.iter_mut().zip(&mut events) {
            *item = *event;
            popped += 1;
        }
        popped
    }
}
