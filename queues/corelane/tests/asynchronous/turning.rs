//! An end is a thread's or a task's, and either again.

use crate::support::{Carries, Silent, Task, async_queue, fill, holders, poll, queue};
use corelane::spsc::{self, AsyncConsumer, AsyncProducer, Options};
use corelane::wait::{Next, Strategy, WaitState};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::thread;
use std::time::Duration;

/// Enough for the other thread to fall asleep; the tests hold without.
const NAP: Duration = Duration::from_millis(20);

/// The task's wait is over, whether its flag was up or not, and the thread's wake-ups are the thread's.
pub(crate) fn an_end_becomes_a_threads_again<D: Carries>() {
    let task = Task::new();
    let (mut producer, mut consumer) = async_queue::<u64, D>(1);
    assert!(poll(&task, &mut consumer.pop()).is_pending());
    let mut consumer = consumer.into_blocking();
    assert_eq!(holders(&task), 0);
    thread::scope(|scope| {
        let popper = scope.spawn(|| consumer.pop());
        thread::sleep(NAP);
        producer.try_push(1).unwrap();
        assert_eq!(popper.join().unwrap(), Ok(1));
    });

    fill(&mut producer);
    assert!(poll(&task, &mut producer.push(2)).is_pending());
    let mut producer = producer.into_blocking();
    assert_eq!(holders(&task), 0);
    thread::scope(|scope| {
        let pusher = scope.spawn(|| producer.push(2));
        thread::sleep(NAP);
        assert_eq!(consumer.try_pop(), Ok(0));
        assert_eq!(pusher.join().unwrap(), Ok(()));
    });
    assert_eq!(task.wakes(), 0);

    // And a task's again.
    let (mut producer, mut consumer) = (producer.into_async(), consumer.into_async());
    assert!(poll(&task, &mut producer.push(3)).is_pending());
    assert_eq!(consumer.try_pop(), Ok(2));
    assert!(poll(&task, &mut consumer.pop()).is_pending());
    producer.try_push(4).unwrap();
    assert_eq!(task.wakes(), 2);
}

#[derive(Clone, Debug)]
struct Fails;

impl Strategy for Fails {
    fn next(&self, _: &mut WaitState) -> Next {
        panic!("the strategy fails")
    }
}

/// A task waits for one slot, whatever the thread had waited for.
pub(crate) fn a_threads_wait_that_panicked_is_forgotten<D: Carries>() {
    let options = Options::new().tuning(D::Options::default()).wait(Fails);
    let (mut producer, mut consumer) = spsc::any_channel::<u64, D, _, _>(2, options).unwrap();
    while producer.try_push(0).is_ok() {}
    catch_unwind(AssertUnwindSafe(|| producer.wait_for_room(2))).unwrap_err();
    let (mut producer, task) = (producer.into_async(), Task::new());
    assert_eq!(consumer.try_pop(), Ok(0));
    assert_eq!(poll(&task, &mut producer.push(0)), Poll::Ready(Ok(())));
}

pub(crate) fn what_is_inside_stays<D: Carries>() {
    let (mut producer, consumer) = queue::<u64, D>(8);
    assert_eq!(producer.try_push_slice(&[0, 1, 2]).unwrap_or(0), 3);
    let (mut producer, mut consumer) = (producer.into_async(), consumer.into_async());
    assert_eq!(futures_executor::block_on(consumer.pop()), Ok(0));
    assert_eq!(producer.try_push_batch(&mut (3..6).collect()).unwrap_or(0), 3);
    assert_eq!((consumer.len(), consumer.is_empty(), consumer.is_closed()), (5, false, false));
    assert_eq!((producer.is_empty(), producer.is_closed()), (false, false));
    assert_eq!(producer.capacity(), consumer.capacity());
    assert!(producer.len() >= 5 && producer.release_lag() == 0);
    let mut consumer = consumer.into_blocking();
    drop(producer.into_blocking());
    let mut items = Vec::new();
    assert_eq!(consumer.pop_batch(&mut items, 9), Ok(5));
    assert_eq!(items, [1, 2, 3, 4, 5]);
    assert!(consumer.is_closed());
}

fn is_send<T: Send>(_: &T) {}
fn is_unpin<T: Unpin>(_: &T) {}

/// Nor do futures and handles need anything to be moved to another thread.
pub(crate) fn debug_needs_nothing_of_the_item<D: Carries>() {
    let (mut producer, mut consumer): (AsyncProducer<Silent, D>, AsyncConsumer<Silent, D>) = async_queue(4);
    assert!(format!("{producer:?}").starts_with("AsyncProducer(Producer {"));
    assert!(format!("{consumer:?}").starts_with("AsyncConsumer(Consumer {"));
    is_send(&producer);
    is_send(&consumer);
    let push = producer.push(Silent(Cell::new(1)));
    assert_eq!(format!("{push:?}"), "Push { is_over: false, .. }");
    is_send(&push);
    is_unpin(&push);
    drop(push);
    let reserve = producer.reserve();
    is_send(&reserve);
    is_unpin(&reserve);
    drop(reserve);
    let pop = consumer.pop();
    is_send(&pop);
    is_unpin(&pop);
    drop(pop);
    futures_executor::block_on(async {
        assert!(producer.push(Silent(Cell::new(7))).await.is_ok());
        assert_eq!(consumer.pop().await.map(|item| item.0.get()), Ok(7));
    });
}
