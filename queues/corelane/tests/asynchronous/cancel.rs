//! A dropped future loses nothing.

use crate::executors::Executor;
use crate::support::{Carries, Random, Task, async_queue, fill, give_way, holders, poll};
use corelane::error::Closed;
use futures_util::FutureExt;
use std::task::Poll;

pub(crate) fn a_dropped_pop_takes_nothing<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(4);
    let task = Task::new();
    // Before it is polled, while it is pending, and after the item came.
    drop(consumer.pop());
    assert!(poll(&task, &mut consumer.pop()).is_pending());
    let mut pop = consumer.pop();
    assert!(poll(&task, &mut pop).is_pending());
    producer.try_push(1).unwrap();
    assert_eq!(task.wakes(), 1);
    drop(pop);
    drop(consumer.pop());
    assert_eq!(consumer.len(), 1);
    assert_eq!(poll(&task, &mut consumer.pop()), Poll::Ready(Ok(1)));

    let mut items = vec![9];
    let mut pop = consumer.pop_batch(&mut items, 10);
    assert!(poll(&task, &mut pop).is_pending());
    producer.try_push(2).unwrap();
    drop(pop);
    let mut wait = consumer.wait_for_item();
    assert_eq!(poll(&task, &mut wait), Poll::Ready(Ok(())));
    drop(wait);
    assert_eq!(items, [9]);
    assert_eq!(poll(&task, &mut consumer.pop_batch(&mut items, 10)), Poll::Ready(Ok(1)));
    assert_eq!(items, [9, 2]);
}

pub(crate) fn a_dropped_push_gives_its_item_back<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<String, D>(1);
    let task = Task::new();
    assert_eq!(producer.push("never polled".into()).into_item().unwrap(), "never polled");
    assert!(consumer.is_empty());
    let mut push = producer.push("first".into());
    assert_eq!(poll(&task, &mut push), Poll::Ready(Ok(())));
    assert_eq!(push.into_item(), None);

    let mut push = producer.push("second".into());
    assert!(poll(&task, &mut push).is_pending());
    assert_eq!(push.into_item().unwrap(), "second");
    assert!(poll(&task, &mut producer.push("third, dropped".into())).is_pending());
    let mut push = producer.push("fourth".into());
    assert!(poll(&task, &mut push).is_pending());
    assert_eq!(consumer.try_pop().unwrap(), "first");
    assert_eq!(task.wakes(), 1);
    // Woken and not polled: not pushed.
    assert_eq!(push.into_item().unwrap(), "fourth");
    assert!(consumer.is_empty());
    assert_eq!(poll(&task, &mut producer.push("fifth".into())), Poll::Ready(Ok(())));
    assert_eq!(consumer.try_pop().unwrap(), "fifth");
}

pub(crate) fn a_dropped_reservation_takes_no_slot<D: Carries>() {
    for capacity in [1, 3] {
        let (mut producer, mut consumer) = async_queue::<u64, D>(capacity);
        let task = Task::new();
        for _ in 0..5 {
            drop(producer.reserve());
            let Poll::Ready(Ok(slot)) = poll(&task, &mut producer.reserve()) else { panic!("there is room") };
            drop(slot);
        }
        assert_eq!(fill(&mut producer), capacity as u64);
        for _ in 0..5 {
            assert!(poll(&task, &mut producer.reserve()).is_pending());
            assert!(poll(&task, &mut producer.wait_for_space()).is_pending());
        }
        assert_eq!(holders(&task), 1);
        assert_eq!(consumer.try_pop(), Ok(0));
        assert_eq!(task.wakes(), 1);
        let Poll::Ready(Ok(slot)) = poll(&task, &mut producer.reserve()) else { panic!("there is room") };
        slot.write(9).unwrap();
        assert!(producer.try_push(10).unwrap_err().is_full());
        let mut items = Vec::new();
        consumer.try_pop_batch(&mut items, 9).unwrap_or(0);
        assert_eq!(items.last(), Some(&9));
        assert_eq!(items.len(), capacity);
    }
}

/// Every future is dropped now and then, at whatever point it is.
pub(crate) fn every_point_of_a_stream<D: Carries>() {
    for capacity in [1, 2, 65] {
        let (mut producer, mut consumer) = async_queue::<u64, D>(capacity);
        let (mut pushed, mut popped) = (0, 0);
        let mut random = Random::new(capacity as u64);
        let task = Task::new();
        while popped < 5_000 {
            match random.below(6) {
                0 => match poll(&task, &mut producer.push(pushed)) {
                    Poll::Ready(done) => pushed += u64::from(done.is_ok()),
                    Poll::Pending => {}
                },
                1 => {
                    let mut push = producer.push(pushed);
                    if random.below(2) == 0 {
                        let _ = poll(&task, &mut push);
                    }
                    pushed += u64::from(push.into_item().is_none());
                }
                2 => {
                    if let Poll::Ready(Ok(slot)) = poll(&task, &mut producer.reserve())
                        && random.below(2) == 0
                    {
                        slot.write(pushed).unwrap();
                        pushed += 1;
                    }
                }
                3 => {
                    let mut items = Vec::new();
                    let mut pop = consumer.pop_batch(&mut items, 1 + random.below(5) as usize);
                    let _ = poll(&task, &mut pop);
                    drop(pop);
                    for item in items {
                        assert_eq!(item, popped);
                        popped += 1;
                    }
                }
                4 => drop(poll(&task, &mut consumer.wait_for_item())),
                _ => match poll(&task, &mut consumer.pop()) {
                    Poll::Ready(item) => {
                        assert_eq!(item, Ok(popped));
                        popped += 1;
                    }
                    // Full, and a turn for others, are the reasons why something may be there nevertheless.
                    Poll::Pending => {}
                },
            }
            assert!(holders(&task) <= 2, "a waker an end");
            assert_eq!(consumer.len() as u64, pushed - popped);
        }
    }
}

const RACED: u64 = 4_000;

/// A pop in one arm of a `select!`, and something that comes at any time in the other.
pub(crate) fn pops_that_lose_a_race<D: Carries, E: Executor>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(3);
    let push = async move {
        let mut random = Random::new(2);
        for item in 0..RACED {
            producer.push(item).await.unwrap();
            if random.below(8) == 0 {
                give_way().await;
            }
        }
    };
    let pop = async move {
        let mut random = Random::new(3);
        let (mut next, mut lost) = (0, 0);
        loop {
            let turns = random.below(3);
            let other = async {
                for _ in 0..turns {
                    give_way().await;
                }
            };
            // Three ways to race, none of which waits for the loser.
            let popped = match random.below(3) {
                0 => tokio::select! { item = consumer.pop() => Some(item), () = other => None },
                1 => {
                    futures_util::pin_mut!(other);
                    futures_util::select_biased! {
                        () = other.fuse() => None,
                        item = consumer.pop().fuse() => Some(item),
                    }
                }
                _ => {
                    futures_util::pin_mut!(other);
                    match futures_util::future::select(consumer.pop(), other).await {
                        futures_util::future::Either::Left((item, _)) => Some(item),
                        futures_util::future::Either::Right(_) => None,
                    }
                }
            };
            match popped {
                Some(Ok(item)) => {
                    assert_eq!(item, next);
                    next += 1;
                }
                Some(Err(Closed(()))) => return (next, lost),
                None => lost += 1,
            }
        }
    };
    let ((), (popped, lost)) = E::run(push, pop);
    assert_eq!(popped, RACED);
    assert_ne!(lost, 0, "no pop was ever dropped");
}

pub(crate) fn pushes_that_lose_a_race<D: Carries, E: Executor>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(2);
    let push = async move {
        let mut random = Random::new(4);
        let mut lost = 0;
        for item in 0..RACED {
            let mut item = item;
            loop {
                let mut push = producer.push(item);
                let turns = random.below(3);
                let is_over = tokio::select! {
                    biased;
                    () = async { for _ in 0..turns { give_way().await } } => false,
                    done = &mut push => done.is_ok(),
                };
                match push.into_item() {
                    None => break assert!(is_over),
                    Some(back) => item = back,
                }
                lost += 1;
            }
        }
        lost
    };
    let pop = async move {
        for item in 0..RACED {
            assert_eq!(consumer.pop().await, Ok(item));
        }
        assert_eq!(consumer.pop().await, Err(Closed(())));
    };
    let (lost, ()) = E::run(push, pop);
    assert_ne!(lost, 0, "no push was ever dropped");
}
