//! Items of every kind.

use crate::case::{Rx, Shared, Tx, channel, channel_with};
use corelane::error::{TryPopError, TryPushError};
use corelane::wait::Adaptive;
use std::cell::Cell;
use std::fmt::Debug;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(128))]
struct Wide(u64);

fn round_trip<C: Shared, T: Send + Clone + PartialEq + Debug + 'static>(make: impl Fn(u64) -> T) {
    for start in [0, usize::MAX - 3] {
        let (mut tx, mut rx) = channel_with::<C, T, _>(5, start, Adaptive);
        let mut items = Vec::new();
        for round in 0..20 {
            tx.try_push(make(round)).unwrap();
            tx.push_batch(&mut vec![make(round + 1), make(round + 2)]).unwrap();
            assert_eq!(rx.try_pop().unwrap(), make(round));
            assert_eq!(rx.pop_batch(&mut items, 9), Ok(2));
            assert_eq!(items, [make(round + 1), make(round + 2)]);
            items.clear();
        }
        tx.push(make(7)).unwrap();
    }
}

pub(crate) fn items_of_every_size_come_out_as_they_went_in<C: Shared>() {
    round_trip::<C, [u64; 0]>(|_| []);
    round_trip::<C, u8>(|i| i as u8);
    round_trip::<C, [u8; 3]>(|i| [i as u8, 255, 0]);
    round_trip::<C, [u64; 3]>(|i| [i, !i, 0]);
    round_trip::<C, [u64; 7]>(|i| [i; 7]);
    round_trip::<C, [u64; 8]>(|i| [i; 8]);
    round_trip::<C, [u64; 512]>(|i| [i; 512]);
    round_trip::<C, Wide>(Wide);
    round_trip::<C, Option<Box<u64>>>(|i| (i % 2 == 0).then(|| Box::new(i)));
    round_trip::<C, String>(|i| i.to_string());
}

pub(crate) fn zero_sized_items_are_counted<C: Shared>() {
    // Above 64 a sender of lanes is told of room some items late.
    for capacity in [1, 2, 3, if C::LANES { 60 } else { 1000 }] {
        let (mut tx, mut rx) = channel::<C, ()>(capacity);
        for _ in 0..3 {
            (0..capacity).for_each(|_| tx.try_push(()).unwrap());
            assert!(!C::BOUNDED || tx.try_push(()) == Err(TryPushError::Full(())));
            assert_eq!(tx.len(), capacity);
            let mut items = Vec::new();
            while rx.try_pop_batch(&mut items, capacity - 1).is_ok_and(|count| count > 0) {}
            items.extend(rx.try_pop());
            assert_eq!((items.len(), rx.try_pop()), (capacity, Err(TryPopError::Empty)));
        }
    }
}

pub(crate) fn items_need_not_be_shareable<C: Shared>() {
    let (mut tx, mut rx) = channel::<C, Cell<u64>>(1);
    tx.push(Cell::new(7)).unwrap();
    assert_eq!(rx.pop().unwrap().get(), 7);
}
