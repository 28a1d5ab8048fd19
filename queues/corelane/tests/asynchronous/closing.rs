//! Either end closes while the other one's task waits.

use crate::support::{Carries, Task, async_queue, fill, holders, poll, queue};
use corelane::error::Closed;
use futures_executor::block_on;
use std::task::Poll;
use std::thread;

fn wake_consumer<D: Carries>(close: impl FnOnce(&mut Option<corelane::spsc::AsyncProducer<u64, D>>)) {
    let (producer, mut consumer) = async_queue::<u64, D>(4);
    let mut producer = Some(producer);
    let task = Task::new();
    let mut pop = consumer.pop();
    assert!(poll(&task, &mut pop).is_pending());
    close(&mut producer);
    assert_eq!((task.wakes(), holders(&task)), (1, 0));
    assert_eq!(poll(&task, &mut pop), Poll::Ready(Err(Closed(()))));
    drop(pop);
    assert_eq!(block_on(consumer.pop()), Err(Closed(())));
    assert_eq!(block_on(consumer.pop_batch(&mut Vec::new(), 1)), Err(Closed(())));
    assert_eq!(block_on(consumer.wait_for_item()), Err(Closed(())));
    assert_eq!(task.wakes(), 1);
}

pub(crate) fn a_consumer_that_waits_learns_that_the_producer_left<D: Carries>() {
    wake_consumer::<D>(|producer| drop(producer.take()));
}

pub(crate) fn a_consumer_that_waits_learns_of_a_close<D: Carries>() {
    wake_consumer::<D>(|producer| producer.as_mut().unwrap().close());
}

fn wake_producer<D: Carries>(close: impl Fn(&mut Option<corelane::spsc::AsyncConsumer<u64, D>>)) {
    for capacity in [1, 4] {
        let (mut producer, consumer) = async_queue::<u64, D>(capacity);
        let mut consumer = Some(consumer);
        let task = Task::new();
        fill(&mut producer);
        let mut push = producer.push(99);
        assert!(poll(&task, &mut push).is_pending());
        close(&mut consumer);
        assert_eq!((task.wakes(), holders(&task)), (1, 0));
        assert_eq!(poll(&task, &mut push), Poll::Ready(Err(Closed(99))));
        assert_eq!(block_on(producer.push(100)), Err(Closed(100)));
        assert_eq!(block_on(producer.reserve()).err(), Some(Closed(())));
        assert_eq!(block_on(producer.wait_for_space()), Err(Closed(())));
        // A slot becomes free, and is of no use.
        if let Some(mut consumer) = consumer {
            assert_eq!(block_on(consumer.pop()), Ok(0));
            assert_eq!(block_on(producer.push(101)), Err(Closed(101)));
            assert_eq!(block_on(producer.reserve()).err(), Some(Closed(())));
            assert_eq!(block_on(producer.wait_for_space()), Err(Closed(())));
        }
    }
}

pub(crate) fn a_producer_that_waits_learns_that_the_consumer_left<D: Carries>() {
    wake_producer::<D>(|consumer| drop(consumer.take()));
}

pub(crate) fn a_producer_that_waits_learns_of_a_close<D: Carries>() {
    wake_producer::<D>(|consumer| consumer.as_mut().unwrap().close());
}

pub(crate) fn what_is_inside_is_popped_first<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(4);
    assert_eq!(producer.try_push_slice(&[1, 2, 3]).unwrap_or(0), 3);
    drop(producer);
    assert_eq!(block_on(consumer.pop()), Ok(1));
    assert_eq!(block_on(consumer.wait_for_item()), Ok(()));
    let mut items = Vec::new();
    assert_eq!(block_on(consumer.pop_batch(&mut items, 9)), Ok(2));
    assert_eq!(items, [2, 3]);
    assert_eq!(block_on(consumer.pop()), Err(Closed(())));

    // The consumer's own close keeps what was accepted, too.
    let (mut producer, mut consumer) = async_queue::<u64, D>(4);
    producer.try_push(1).unwrap();
    consumer.close();
    assert_eq!(block_on(producer.push(2)), Err(Closed(2)));
    assert_eq!(block_on(consumer.pop()), Ok(1));
    assert_eq!(block_on(consumer.pop()), Err(Closed(())));
}

/// The producer pushes and leaves at once, while the task begins to wait.
pub(crate) fn the_last_item_and_the_end<D: Carries>() {
    for round in 0..300 {
        let (mut producer, consumer) = queue::<u64, D>(2);
        let mut consumer = consumer.into_async();
        let pusher = thread::spawn(move || {
            for _ in 0..round % 100 {
                std::hint::spin_loop();
            }
            producer.try_push(round).unwrap();
        });
        assert_eq!(block_on(consumer.pop()), Ok(round));
        assert_eq!(block_on(consumer.pop()), Err(Closed(())));
        pusher.join().unwrap();
    }
}
