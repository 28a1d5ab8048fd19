//! Any `Send` item, whatever its size, alignment and bits.

use crate::case::{Case, Page, STARTS, Silent, Wide, queue, queue_from};
use corelane::error::TryPopError;
use corelane::spsc::Design;
use std::cell::Cell;
use std::fmt::Debug;
use std::sync::Arc;
use std::thread;

trait Item: Send + PartialEq + Debug {
    /// The n-th item; the 0th consists of zeros where the type allows.
    fn number(n: u64) -> Self;
}

impl Item for () {
    fn number(_: u64) -> Self {}
}

impl Item for u8 {
    fn number(n: u64) -> Self {
        (n % 7) as u8
    }
}

impl Item for u64 {
    fn number(n: u64) -> Self {
        n % 3
    }
}

impl Item for [u8; 28] {
    fn number(n: u64) -> Self {
        std::array::from_fn(|i| (n * i as u64 % 251) as u8)
    }
}

impl<const N: usize> Item for [u64; N] {
    fn number(n: u64) -> Self {
        std::array::from_fn(|i| n * (i as u64 + 1))
    }
}

impl Item for Wide {
    fn number(n: u64) -> Self {
        Self(n)
    }
}

impl Item for Box<u64> {
    fn number(n: u64) -> Self {
        Self::new(n)
    }
}

impl Item for Arc<u64> {
    fn number(n: u64) -> Self {
        Self::new(n)
    }
}

impl Item for String {
    fn number(n: u64) -> Self {
        format!("item {n}").repeat(n as usize % 5)
    }
}

impl Item for Option<Box<u64>> {
    fn number(n: u64) -> Self {
        (!n.is_multiple_of(3)).then(|| Box::new(n))
    }
}

fn one_thread<T: Item, C: Case>()
where
    C::Design: Design<T, Tuning = C::Options>,
{
    for (capacity, start) in [1, 2, 3, 20, 65, 100].into_iter().flat_map(|capacity| STARTS.map(|s| (capacity, s))) {
        let (mut tx, mut rx) = queue_from::<T, C>(capacity, start);
        let (mut pushed, mut popped) = (0, 0);
        for lap in 0..30 {
            while tx.try_push(T::number(pushed)).is_ok() {
                pushed += 1;
            }
            let inside = pushed - popped;
            assert!(inside as usize >= capacity - tx.release_lag() && inside as usize <= capacity);
            assert_eq!(rx.len() as u64, inside);
            let most = if lap % 3 == 0 { inside } else { inside.min(lap + 1) };
            for _ in 0..most {
                assert_eq!(rx.try_pop(), Ok(T::number(popped)));
                popped += 1;
            }
        }
        let mut rest = Vec::new();
        assert_eq!(rx.try_pop_batch(&mut rest, usize::MAX).unwrap_or(0) as u64, pushed - popped);
        assert!(rest.into_iter().eq((popped..pushed).map(T::number)));
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    }
}

fn two_threads<T: Item, C: Case>()
where
    C::Design: Design<T, Tuning = C::Options>,
{
    for capacity in [2, 65, 300] {
        let (mut tx, mut rx) = queue_from::<T, C>(capacity, usize::MAX - 3);
        thread::scope(|scope| {
            scope.spawn(move || (0..2_000).for_each(|n| tx.push(T::number(n)).unwrap()));
            (0..2_000).for_each(|n| assert_eq!(rx.pop(), Ok(T::number(n))));
            assert!(rx.pop().is_err());
        });
    }
}

pub(crate) fn every_item_comes_out_as_it_went_in<C: Case>() {
    one_thread::<(), C>();
    one_thread::<u8, C>();
    one_thread::<u64, C>();
    one_thread::<[u8; 28], C>();
    one_thread::<[u64; 3], C>();
    one_thread::<[u64; 4], C>();
    one_thread::<[u64; 7], C>();
    one_thread::<[u64; 8], C>();
    one_thread::<Page, C>();
    one_thread::<Wide, C>();
    one_thread::<Box<u64>, C>();
    one_thread::<Arc<u64>, C>();
    one_thread::<String, C>();
    one_thread::<Option<Box<u64>>, C>();
}

pub(crate) fn items_that_own_memory_cross_threads<C: Case>() {
    two_threads::<(), C>();
    two_threads::<u8, C>();
    two_threads::<[u8; 28], C>();
    two_threads::<[u64; 4], C>();
    two_threads::<[u64; 7], C>();
    two_threads::<[u64; 8], C>();
    two_threads::<Page, C>();
    two_threads::<Wide, C>();
    two_threads::<Box<u64>, C>();
    two_threads::<String, C>();
    two_threads::<Option<Box<u64>>, C>();
    let (mut tx, mut rx) = queue::<Silent, C>(3);
    thread::scope(|scope| {
        scope.spawn(move || (0..1_000).for_each(|n| assert!(tx.push(Silent(Cell::new(n))).is_ok())));
        (0..1_000).for_each(|n| assert_eq!(rx.pop().map(|item| item.0.get()), Ok(n)));
    });
}

fn aligned<T: Item, C: Case>()
where
    C::Design: Design<T, Tuning = C::Options>,
{
    let (mut tx, mut rx) = queue::<T, C>(100);
    for n in 0..400 {
        let mut slot = tx.try_reserve().unwrap();
        assert!(slot.as_uninit_mut().as_mut_ptr().is_aligned());
        assert_eq!(slot.write(T::number(n)), Ok(()));
        let item = rx.try_peek().unwrap();
        assert!((&raw const *item).is_aligned());
        assert_eq!(*item, T::number(n));
        item.release();
    }
}

pub(crate) fn peeked_items_are_aligned<C: Case>() {
    aligned::<Wide, C>();
    aligned::<u64, C>();
    aligned::<[u64; 7], C>();
    aligned::<[u8; 28], C>();
    aligned::<Page, C>();
    aligned::<(), C>();
}

pub(crate) fn zero_sized_items_are_counted<C: Case>() {
    let (mut tx, mut rx) = queue_from::<(), C>(1000, usize::MAX - 3);
    assert_eq!(tx.try_push_slice(&[(); 600]).unwrap_or(0), 600);
    assert_eq!(tx.try_push_batch(&mut vec![(); 500]), Ok(400));
    assert_eq!(rx.len(), 1000);
    let mut items = Vec::new();
    assert_eq!(rx.try_pop_batch(&mut items, 999).unwrap_or(0), 999);
    assert_eq!(rx.try_pop_slice(&mut [(); 5]).unwrap_or(0), 1);
    assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
}
