//! Any `Send` item, whatever its size, alignment and bits.

use crate::case::{Case, Page, STARTS, Silent, Wide, queue, queue_from};
use corelane::error::TryPopError;
use corelane::spsc::Design;
use std::cell::Cell;
use std::fmt::Debug;
use std::sync::Arc;
use std::thread;

/// The 0th item consists of zeros where the type allows, which must not look like a free slot.
fn one_thread<T: Send + PartialEq + Debug, C: Case>(number: impl Fn(u64) -> T)
where
    C::Design: Design<T, Tuning = C::Options>,
{
    for (capacity, start) in [1, 2, 3, 20, 65, 100].into_iter().flat_map(|capacity| STARTS.map(|s| (capacity, s))) {
        let (mut tx, mut rx) = queue_from::<T, C>(capacity, start);
        let (mut pushed, mut popped) = (0, 0);
        for lap in 0..30 {
            // One without a bound is never full.
            for _ in 0..capacity {
                let Ok(mut slot) = tx.try_reserve() else { break };
                assert!(slot.as_uninit_mut().as_mut_ptr().is_aligned());
                assert!(slot.write(number(pushed)).is_ok());
                pushed += 1;
            }
            let inside = pushed - popped;
            assert!(inside as usize >= capacity - tx.release_lag().min(capacity) && inside as usize <= tx.capacity());
            assert_eq!(rx.len() as u64, inside);
            let most = if lap % 3 == 0 { inside } else { inside.min(lap + 1) };
            for _ in 0..most {
                let item = rx.try_peek().unwrap();
                assert!((&raw const *item).is_aligned());
                assert_eq!(item.pop(), number(popped));
                popped += 1;
            }
        }
        let mut rest = Vec::new();
        assert_eq!(rx.try_pop_batch(&mut rest, usize::MAX).unwrap_or(0) as u64, pushed - popped);
        assert!(rest.into_iter().eq((popped..pushed).map(&number)));
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    }
}

fn two_threads<T: Send + PartialEq + Debug, C: Case>(number: fn(u64) -> T)
where
    C::Design: Design<T, Tuning = C::Options>,
{
    one_thread::<T, C>(number);
    for capacity in [2, 65, 300] {
        let (mut tx, mut rx) = queue_from::<T, C>(capacity, usize::MAX - 3);
        thread::scope(|scope| {
            scope.spawn(move || (0..1_000).for_each(|n| tx.push(number(n)).unwrap()));
            (0..1_000).for_each(|n| assert_eq!(rx.pop(), Ok(number(n))));
            assert!(rx.pop().is_err());
        });
    }
}

pub(crate) fn every_item_comes_out_as_it_went_in<C: Case>() {
    two_threads::<(), C>(|_| ());
    two_threads::<u8, C>(|n| (n % 7) as u8);
    one_thread::<u64, C>(|n| n % 3);
    two_threads::<[u8; 28], C>(|n| std::array::from_fn(|i| (n * i as u64 % 251) as u8));
    one_thread::<[u64; 3], C>(|n| [n; 3]);
    one_thread::<[u64; 4], C>(|n| [n; 4]);
    two_threads::<[u64; 7], C>(|n| std::array::from_fn(|i| n * (i as u64 + 1)));
    one_thread::<[u64; 8], C>(|n| [n; 8]);
    one_thread::<Page, C>(|n| std::array::from_fn(|i| n * (i as u64 + 1)));
    two_threads::<Wide, C>(Wide);
    one_thread::<Box<u64>, C>(Box::new);
    one_thread::<Arc<u64>, C>(Arc::new);
    two_threads::<String, C>(|n| format!("item {n}").repeat(n as usize % 5));
    one_thread::<Option<Box<u64>>, C>(|n| (!n.is_multiple_of(3)).then(|| Box::new(n)));
    // It is neither `Sync` nor `Clone`, and has no `Debug`.
    let (mut tx, mut rx) = queue::<Silent, C>(3);
    thread::scope(|scope| {
        scope.spawn(move || (0..100).for_each(|n| assert!(tx.push(Silent(Cell::new(n))).is_ok())));
        (0..100).for_each(|n| assert_eq!(rx.pop().map(|item| item.0.get()), Ok(n)));
    });
}

pub(crate) fn zero_sized_items_are_counted<C: Case>() {
    let (mut tx, mut rx) = queue_from::<(), C>(1000, usize::MAX - 3);
    assert_eq!(tx.try_push_slice(&[(); 600]).unwrap_or(0), 600);
    assert_eq!(tx.try_push_batch(&mut vec![(); 400]), Ok(400));
    assert_eq!((rx.len(), tx.try_push(()).is_err()), (1000, tx.capacity() == 1000));
    let mut items = Vec::new();
    while rx.try_pop_batch(&mut items, 700).is_ok() {}
    assert_eq!(
        (items.len(), rx.try_pop_slice(&mut [(); 5]).unwrap_or(0)),
        (1000 + usize::from(tx.capacity() != 1000), 0)
    );
}
