//! What is pushed arrives, in order, whether threads or tasks wait on either side.

use crate::executors::Executor;
use crate::support::{Carries, Random, async_queue, queue};
use corelane::error::Closed;
use std::thread;

/// A queue in which every item is waited for, one with few slots, and one with a lag.
const CAPACITIES: [usize; 3] = [1, 3, 100];

pub(crate) fn items_in_order<D: Carries, E: Executor>() {
    for capacity in CAPACITIES {
        let (mut producer, mut consumer) = async_queue::<u64, D>(capacity);
        let push = async move {
            for item in 0..2_000 {
                if item % 3 == 0 {
                    producer.reserve().await.unwrap().write(item).unwrap();
                } else {
                    producer.push(item).await.unwrap();
                }
            }
        };
        let pop = async move {
            for item in 0..2_000 {
                assert_eq!(consumer.pop().await, Ok(item));
            }
            assert_eq!(consumer.pop().await, Err(Closed(())));
        };
        E::run(push, pop);
    }
}

pub(crate) fn batches_in_order<D: Carries, E: Executor>() {
    for capacity in CAPACITIES {
        let (mut producer, mut consumer) = async_queue::<u64, D>(capacity);
        let push = async move {
            let mut items = (0..2_500).collect::<Vec<_>>();
            while !items.is_empty() {
                producer.wait_for_space().await.unwrap();
                assert_ne!(producer.try_push_batch(&mut items), Ok(0));
            }
            items.extend(2_500..4_000);
            assert_eq!((producer.push_batch(&mut items).await, items.len()), (Ok(()), 0));
            assert_eq!(producer.push_slice(&(4_000..5_000).collect::<Vec<_>>()).await, Ok(()));
        };
        let pop = async move {
            let mut random = Random::new(1);
            let mut items = Vec::new();
            assert_eq!(consumer.pop_batch(&mut items, 0).await, Ok(0));
            loop {
                let (before, max) = (items.len(), 1 + random.below(70) as usize);
                match consumer.pop_batch(&mut items, max).await {
                    Ok(popped) => assert!(popped == items.len() - before && (1..=max).contains(&popped)),
                    Err(Closed(())) => return assert!(items.into_iter().eq(0..5_000)),
                }
            }
        };
        E::run(push, pop);
    }
}

pub(crate) fn a_thread_feeds_a_task<D: Carries, E: Executor>() {
    for capacity in CAPACITIES {
        let (mut producer, consumer) = queue::<u64, D>(capacity);
        let mut consumer = consumer.into_async();
        thread::scope(|scope| {
            scope.spawn(move || (0..2_000).for_each(|item| producer.push(item).unwrap()));
            let pop = async move {
                for item in 0..2_000 {
                    assert_eq!(consumer.pop().await, Ok(item));
                }
                assert_eq!(consumer.pop().await, Err(Closed(())));
            };
            E::run(pop, async {});
        });
    }
}

pub(crate) fn a_task_feeds_a_thread<D: Carries, E: Executor>() {
    for capacity in CAPACITIES {
        let (producer, mut consumer) = queue::<u64, D>(capacity);
        let mut producer = producer.into_async();
        thread::scope(|scope| {
            scope.spawn(move || {
                (0..2_000).for_each(|item| assert_eq!(consumer.pop(), Ok(item)));
                assert!(consumer.pop().is_err());
            });
            let push = async move {
                for item in 0..2_000 {
                    producer.push(item).await.unwrap();
                }
            };
            E::run(push, async {});
        });
    }
}
