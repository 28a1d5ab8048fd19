//! Items of every kind.

use crate::case::{Case, Page, STARTS, Wide, queue, queue_from};
use corelane::error::{TryPopError, TryPushError};
use corelane::mpmc::Design;
use std::cell::Cell;
use std::fmt::Debug;
use std::thread;

fn round_trip<C: Case, T: Send + Clone + PartialEq + Debug>(make: impl Fn(u64) -> T)
where
    C::Design: Design<T>,
{
    for start in STARTS {
        let queue = queue_from::<C, T>(5, start);
        let mut items = Vec::new();
        for round in 0..20 {
            queue.try_push(make(round)).unwrap();
            queue.push_batch(&mut vec![make(round + 1), make(round + 2)]).unwrap();
            assert_eq!(queue.try_pop().unwrap(), make(round));
            assert_eq!(queue.pop_batch(&mut items, 9), Ok(2));
            assert_eq!(items, [make(round + 1), make(round + 2)]);
            assert_eq!((&raw const items[0]).addr() % align_of::<T>(), 0);
            items.clear();
        }
        // Left inside.
        queue.push(make(7)).unwrap();
    }
}

pub(crate) fn items_of_every_size_come_out_as_they_went_in<C: Case>() {
    round_trip::<C, u8>(|i| i as u8);
    round_trip::<C, [u8; 3]>(|i| [i as u8, 255, 0]);
    round_trip::<C, u64>(|i| i);
    round_trip::<C, [u64; 3]>(|i| [i, !i, 0]);
    round_trip::<C, [u64; 7]>(|i| [i; 7]);
    round_trip::<C, [u64; 8]>(|i| [i; 8]);
    round_trip::<C, Page>(|i| [i; 512]);
    round_trip::<C, Wide>(Wide);
    round_trip::<C, Box<u64>>(Box::new);
    round_trip::<C, Option<Box<u64>>>(|i| (i % 2 == 0).then(|| Box::new(i)));
    round_trip::<C, String>(|i| i.to_string());
}

pub(crate) fn zero_sized_items_are_counted<C: Case>() {
    for capacity in [1, 2, 3, 1000] {
        let queue = queue::<C, ()>(capacity);
        for _ in 0..3 {
            (0..capacity).for_each(|_| queue.try_push(()).unwrap());
            if C::BOUNDED {
                assert_eq!(queue.try_push(()), Err(TryPushError::Full(())));
            }
            assert_eq!(queue.len(), capacity);
            let mut items = Vec::new();
            assert_eq!(queue.try_pop_batch(&mut items, capacity - 1).unwrap_or(0), capacity - 1);
            assert_eq!(items.len(), capacity - 1);
            assert_eq!(queue.try_pop(), Ok(()));
            assert_eq!(queue.try_pop(), Err(TryPopError::Empty));
            let mut batch = vec![(); capacity];
            assert_eq!(queue.try_push_batch(&mut batch), Ok(capacity));
            assert!(batch.is_empty());
            (0..capacity).for_each(|_| queue.try_pop().unwrap());
        }
        // No size, but an alignment.
        let queue = queue_from::<C, [u64; 0]>(capacity, 0);
        (0..capacity).for_each(|_| queue.try_push([]).unwrap());
        assert_eq!(std::iter::from_fn(|| queue.try_pop().ok()).count(), capacity);
    }
}

pub(crate) fn items_that_own_memory_cross_threads<C: Case>() {
    let queue = queue::<C, String>(10);
    thread::scope(|scope| {
        let pushers = [0, 1].map(|pusher| {
            let queue = &queue;
            scope.spawn(move || {
                for i in 0..500 {
                    queue.push(format!("{pusher} {i}")).unwrap();
                    queue.push_batch(&mut (0..3).map(|part| format!("{pusher} {i} {part}")).collect()).unwrap();
                }
            })
        });
        let popper = scope.spawn(|| {
            let mut items = Vec::new();
            while queue.pop_batch(&mut items, 5).is_ok() {}
            items
        });
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        queue.close();
        let mut items = popper.join().unwrap();
        items.sort();
        items.dedup();
        assert_eq!(items.len(), 2 * 500 * 4);
    });
}

pub(crate) fn items_need_not_be_shareable<C: Case>() {
    fn is_shareable(_: &(impl Send + Sync)) {}
    let queue = queue::<C, Cell<u64>>(1);
    is_shareable(&queue);
    queue.push(Cell::new(7)).unwrap();
    assert_eq!(queue.pop().unwrap().get(), 7);
}
