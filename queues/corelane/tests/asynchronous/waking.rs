//! Which task is woken, and how often: counts, no times.

use crate::executors::Executor;
use crate::support::{Carries, Task, async_queue, fill, holders, poll, queue};
use corelane::spsc::asynchronous::BUDGET;
use corelane::spsc::{self, AsyncProducer, Counting, Options};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

pub(crate) fn one_wait_costs_one_wake_up<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(8);
    let task = Task::new();
    for wait in 1..=3 {
        assert!(poll(&task, &mut consumer.pop()).is_pending());
        for item in 0..4 {
            producer.try_push(item).unwrap();
            assert_eq!((task.wakes(), holders(&task)), (wait, 0));
        }
        for item in 0..4 {
            assert_eq!(poll(&task, &mut consumer.pop()), Poll::Ready(Ok(item)));
        }
    }
    // A task that does not wait is not woken.
    producer.try_push(9).unwrap();
    drop(producer);
    assert_eq!((task.wakes(), holders(&task)), (3, 0));
}

pub(crate) fn the_last_task_is_woken<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(2);
    let (first, second, third) = (Task::new(), Task::new(), Task::new());
    let mut pop = consumer.pop();
    assert!(poll(&first, &mut pop).is_pending());
    assert!(poll(&second, &mut pop).is_pending());
    assert_eq!((holders(&first), holders(&second)), (0, 1));
    drop(pop);
    assert!(poll(&third, &mut consumer.pop()).is_pending());
    producer.try_push(1).unwrap();
    assert_eq!((first.wakes(), second.wakes(), third.wakes()), (0, 0, 1));
}

pub(crate) fn wakers_do_not_grow<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(2);
    let tasks: Vec<_> = (0..10).map(|_| Task::new()).collect();
    for round in 0..1_000 {
        assert!(poll(&tasks[round % 10], &mut consumer.pop()).is_pending());
        assert_eq!(tasks.iter().map(holders).sum::<usize>(), 1);
    }
    producer.try_push(1).unwrap();
    assert_eq!(tasks.iter().map(holders).sum::<usize>(), 0);
    assert_eq!(tasks.iter().map(|task| task.wakes()).sum::<usize>(), 1);
}

pub(crate) fn an_end_that_goes_lets_its_waker_go<D: Carries>() {
    let task = Task::new();
    let (producer, mut consumer) = async_queue::<u64, D>(2);
    assert!(poll(&task, &mut consumer.pop()).is_pending());
    drop(consumer);
    assert_eq!(holders(&task), 0);
    drop(producer);
    assert_eq!(task.wakes(), 0);
}

/// When it goes the other end of the queue goes.
struct Owner<D: Carries>(Mutex<AsyncProducer<u64, D>>);

impl<D: Carries> Wake for Owner<D> {
    fn wake(self: Arc<Self>) {}
}

/// The new waker is there by then: it is woken, or the poll finds that the queue is closed.
pub(crate) fn a_waker_may_drop_the_other_end<D: Carries>() {
    let (producer, mut consumer) = async_queue::<u64, D>(2);
    let owner = Waker::from(Arc::new(Owner::<D>(Mutex::new(producer))));
    let mut pop = consumer.pop();
    assert!(Pin::new(&mut pop).poll(&mut Context::from_waker(&owner)).is_pending());
    drop(owner);
    let task = Task::new();
    if poll(&task, &mut pop).is_pending() {
        assert_ne!(task.wakes(), 0);
        assert!(poll(&task, &mut pop).is_ready());
    }
}

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Large([usize; 8]);

/// A lane's consumer gives a block back, which wakes the producer, and comes back to that block a lap later.
#[test]
fn a_producers_waker_that_panics_costs_no_item() {
    let bomb = Waker::from(Arc::new(Bomb));
    // Seven items a block: the producer comes to the first slot of the block that the consumer leaves.
    let tuning = spsc::lane::Tuning::new().compact();
    let options = Options::new().tuning(tuning);
    let (producer, mut consumer) = spsc::channel_with::<Large, spsc::Lane, _, _>(7 * 146 + 1, options).unwrap();
    let mut producer = producer.into_async();
    let mut push_all = |next: &mut usize| {
        while producer.try_push(Large([*next + 1; 8])).is_ok() {
            *next += 1;
        }
        assert!(Pin::new(&mut producer.reserve()).poll(&mut Context::from_waker(&bomb)).is_pending());
    };
    let (mut pushed, mut popped) = (0, 0);
    push_all(&mut pushed);
    for _ in 0..5000 {
        if let Ok(item) = consumer.try_pop() {
            assert_eq!(item, Large([popped + 1; 8]));
            popped += 1;
        } else {
            assert_eq!(popped, pushed);
        }
        if popped % 50 == 0 {
            push_all(&mut pushed);
        }
    }
    assert!(popped > 4000);
}

/// So many calls are ready, and then one is not.
pub(crate) fn a_turn_for_others<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(1000);
    let task = Task::new();
    for item in 0..u64::from(BUDGET) {
        assert_eq!(poll(&task, &mut producer.push(item)), Poll::Ready(Ok(())));
    }
    let mut push = producer.push(BUDGET.into());
    assert!(poll(&task, &mut push).is_pending());
    assert_eq!((task.wakes(), holders(&task)), (1, 0));
    assert_eq!(poll(&task, &mut push), Poll::Ready(Ok(())));

    for item in 0..u64::from(BUDGET) {
        assert_eq!(poll(&task, &mut consumer.pop()), Poll::Ready(Ok(item)));
    }
    assert!(poll(&task, &mut consumer.pop()).is_pending());
    assert_eq!((task.wakes(), holders(&task)), (2, 0));
    assert_eq!(poll(&task, &mut consumer.pop()), Poll::Ready(Ok(BUDGET.into())));
    // A wait is a turn for others, too.
    for item in 0..2 * u64::from(BUDGET) {
        assert!(poll(&task, &mut consumer.pop()).is_pending());
        producer.try_push(item).unwrap();
        assert_eq!(poll(&task, &mut consumer.pop()), Poll::Ready(Ok(item)));
    }
}

pub(crate) fn only_waits_are_counted<D: Carries>() {
    let options = Options::new().tuning(D::Options::default()).stats::<Counting>();
    let (producer, consumer) = spsc::any_channel::<u64, D, _, _>(1, options).unwrap();
    let (mut producer, mut consumer) = (producer.into_async(), consumer.into_async());
    let task = Task::new();
    for _ in 0..5 {
        assert!(poll(&task, &mut consumer.pop()).is_pending());
    }
    for _ in 0..5 {
        let _ = poll(&task, &mut producer.push(1));
    }
    assert_eq!(poll(&task, &mut consumer.pop()), Poll::Ready(Ok(1)));
    assert_eq!((consumer.stats().waits, consumer.stats().pops), (1, 1));
    assert_eq!((producer.stats().waits, producer.stats().pushes), (1, 1));
}

/// How often a task was polled.
async fn counted<F: Future + Unpin>(mut future: F, polls: &AtomicUsize) -> F::Output {
    poll_fn(|context| {
        let output = Pin::new(&mut future).poll(context);
        // Only now: a thread that sees the count knows that the task waits.
        polls.fetch_add(1, SeqCst);
        output
    })
    .await
}

/// An item costs two polls: one that waits and one that pops. Nothing happens between.
pub(crate) fn an_idle_task_is_not_polled<D: Carries, E: Executor>() {
    const ITEMS: usize = 3;
    let (mut producer, mut consumer) = async_queue::<u64, D>(4);
    let polls = Arc::new(AtomicUsize::new(0));
    let seen = polls.clone();
    let feeder = thread::spawn(move || {
        for item in 0..ITEMS {
            while seen.load(SeqCst) <= 2 * item {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(20));
            assert_eq!(seen.load(SeqCst), 2 * item + 1);
            producer.try_push(item as u64).unwrap();
        }
    });
    let pop = async move {
        for item in 0..ITEMS as u64 {
            assert_eq!(counted(consumer.pop(), &polls).await, Ok(item));
        }
        polls.load(SeqCst)
    };
    let (count, ()) = E::run(pop, async {});
    feeder.join().unwrap();
    assert_eq!(count, 2 * ITEMS);

    // The same for one that pushes, as long as a queue can be full.
    let (mut producer, consumer) = queue::<u64, D>(1);
    if producer.try_push(0).is_ok() && producer.try_push(1).is_ok() {
        return;
    }
    drop((producer, consumer));
    let (mut producer, mut consumer) = async_queue::<u64, D>(1);
    fill(&mut producer);
    let polls = Arc::new(AtomicUsize::new(0));
    let seen = polls.clone();
    let drainer = thread::spawn(move || {
        while seen.load(SeqCst) == 0 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        assert_eq!(seen.load(SeqCst), 1);
        assert_eq!(consumer.try_pop(), Ok(0));
        consumer
    });
    let push = async move {
        counted(producer.push(1), &polls).await.unwrap();
        polls.load(SeqCst)
    };
    let (count, ()) = E::run(push, async {});
    assert_eq!(count, 2);
    assert_eq!(drainer.join().unwrap().try_pop(), Ok(1));
}
