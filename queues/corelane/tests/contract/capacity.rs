//! Never more than the capacity inside, and never much less accepted.

use crate::case::{CAPACITIES, Case, Random, STARTS, fill, queue, queue_from};
use corelane::error::{TryPopError, TryPushError};

pub(crate) fn holds_its_capacity_and_no_more<C: Case>() {
    for capacity in CAPACITIES {
        let (mut tx, rx) = queue::<u64, C>(capacity);
        assert_eq!((tx.capacity(), rx.capacity()), (capacity, capacity));
        assert_eq!((tx.len(), rx.len()), (0, 0));
        assert!(tx.is_empty() && rx.is_empty());
        assert_eq!(fill(&mut tx, 0), capacity as u64);
        assert_eq!((tx.len(), rx.len()), (capacity, capacity));
        assert!(!tx.is_empty() && !rx.is_empty());
        assert_eq!(tx.try_push(7), Err(TryPushError::Full(7)));
        assert_eq!(
            tx.try_push_slice(&[1, 2]).unwrap_or(0) + tx.try_push_batch(&mut [1, 2].into_iter().collect()).unwrap_or(0),
            0
        );
    }
}

pub(crate) fn full_comes_early_by_the_release_lag_at_most<C: Case>() {
    for capacity in CAPACITIES {
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, usize::MAX - 3);
        let lag = tx.release_lag() as u64;
        let mut random = Random::new(capacity as u64);
        let (mut pushed, mut popped) = (0, 0);
        for _ in 0..300 {
            pushed += fill(&mut tx, pushed);
            let inside = pushed - popped;
            assert!((capacity as u64 - lag..=capacity as u64).contains(&inside), "{inside} of {capacity}, lag {lag}");
            for _ in 0..random.below(inside as usize + 1) {
                assert_eq!(rx.try_pop(), Ok(popped));
                popped += 1;
            }
        }
    }
}

pub(crate) fn release_lag_is_small<C: Case>() {
    for capacity in 1..=300 {
        let (tx, _rx) = queue::<u64, C>(capacity);
        let most = if capacity < 64 { 0 } else { capacity / 8 };
        assert!(tx.release_lag() <= most, "{} of {capacity}", tx.release_lag());
    }
    let (tx, _rx) = queue::<[u64; 8], C>(2000);
    assert!(tx.release_lag() <= 250);
    let (tx, _rx) = queue::<(), C>(2000);
    assert!(tx.release_lag() <= 250);
}

pub(crate) fn drained_to_empty_it_takes_its_capacity_again<C: Case>() {
    for (capacity, start) in CAPACITIES.into_iter().flat_map(|capacity| STARTS.map(|start| (capacity, start))) {
        let (mut tx, mut rx) = queue_from::<u64, C>(capacity, start);
        let mut next = 0;
        // One item between two fills, so that they begin at every place of the ring.
        for _ in 0..60 {
            assert_eq!(fill(&mut tx, next), capacity as u64);
            for item in next..next + capacity as u64 {
                assert_eq!(rx.try_pop(), Ok(item));
            }
            assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
            next += capacity as u64;
            assert_eq!(tx.try_push(next), Ok(()));
            assert_eq!(rx.pop(), Ok(next));
            assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
            next += 1;
        }
    }
}
