//! The calls on one thread. What they answer is judged in `sequences`.

use crate::case::{NAP, Rx, Shared, Tx, channel};
use corelane::error::{ChannelError, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::{Options, UNBOUNDED};

pub(crate) fn every_call_is_there<C: Shared>() {
    let (mut tx, mut rx) = channel::<C, u64>(4);
    assert_eq!((tx.push(0), tx.try_push(1), tx.push_timeout(2, NAP)), (Ok(()), Ok(()), Ok(())));
    assert_eq!((tx.len(), tx.is_empty(), tx.capacity()), (3, false, if C::BOUNDED { 4 } else { UNBOUNDED }));
    let mut batch = vec![3];
    assert_eq!(tx.push_batch(&mut batch), Ok(()));
    assert!(batch.is_empty());
    batch.push(4);
    if C::BOUNDED {
        assert_eq!(tx.try_push(4), Err(TryPushError::Full(4)));
        assert_eq!(tx.push_timeout(4, NAP), Err(PushTimeoutError::Timeout(4)));
        assert_eq!(tx.try_push_batch(&mut batch), Err(TryPushError::Full(())));
        assert_eq!(tx.push_batch_timeout(&mut batch, NAP), Err(PushTimeoutError::Timeout(())));
        assert_eq!(batch, [4]);
    }
    assert_eq!((rx.pop(), rx.try_pop(), rx.pop_timeout(NAP)), (Ok(0), Ok(1), Ok(2)));
    assert_eq!(tx.try_push_batch(&mut batch), Ok(1));
    assert_eq!(tx.push_batch_timeout(&mut vec![5], NAP), Ok(()));
    let mut items = Vec::new();
    assert_eq!((rx.pop_batch(&mut items, 1), rx.try_pop_batch(&mut items, 1)), (Ok(1), Ok(1)));
    assert_eq!(rx.pop_batch_timeout(&mut items, 9, NAP), Ok(1));
    assert_eq!(items, [3, 4, 5]);
    assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    assert_eq!(rx.try_pop_batch(&mut items, 1), Err(TryPopError::Empty));
    assert_eq!(rx.pop_timeout(NAP), Err(PopTimeoutError::Timeout));
    assert_eq!(rx.pop_batch_timeout(&mut items, 1, NAP), Err(PopTimeoutError::Timeout));
}

pub(crate) fn capacity_zero_and_absurd_ones_are_refused<C: Shared>() {
    let make = |capacity| C::channel::<u64, _>(capacity, Options::new()).err();
    assert_eq!(make(0), Some(ChannelError::ZeroCapacity));
    for capacity in [UNBOUNDED + 1, usize::MAX / 2 + 1, usize::MAX] {
        assert_eq!(make(capacity), Some(ChannelError::TooLarge));
    }
    if C::BOUNDED {
        assert_eq!(make(UNBOUNDED), Some(ChannelError::TooLarge));
    }
}

pub(crate) fn debug_shows_no_item<C: Shared>() {
    let (mut tx, rx) = channel::<C, String>(1);
    tx.push("secret".into()).unwrap();
    let text = format!("{tx:?} {rx:?} {:?}", tx.try_push("secret".into()));
    assert!(!text.contains("secret") && text.contains("Sender") && text.contains("Receiver"));
}
