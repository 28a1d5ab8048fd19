//! What a program with one thread can do: tasks on an executor of its own, and timed calls, of which none ever panics.
//!
//! The gate also runs it in a browser's machine, `wasm32-unknown-unknown`, which has neither threads nor a clock: a
//! timed call is over at once there. So it needs no crate but `corelane`.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

use corelane::dispatch::{self, Collector};
use corelane::handoff::{Exchanger, Fairness, SynchronousQueue, TransferQueue};
use corelane::mpmc::{self, Options};
use corelane::spsc::{self, Design};
use corelane::wait::{Park, Select, Selectable, SpinPark, Yield};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// How often a task was woken.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A task, and how often it was woken when it was last polled.
type Running<'a> = (Pin<&'a mut dyn Future<Output = ()>>, Arc<Task>, usize);

/// Runs the tasks until all are over. One that was not woken is not polled.
fn run<const N: usize>(tasks: [Pin<&mut dyn Future<Output = ()>>; N]) {
    let mut running: Vec<Running<'_>> = tasks.into_iter().map(|future| (future, Arc::new(Task(1.into())), 0)).collect();
    while !running.is_empty() {
        let mut was_polled = false;
        running.retain_mut(|(future, task, polled_at)| {
            let wakes = task.0.load(Relaxed);
            if wakes == *polled_at {
                return true;
            }
            (*polled_at, was_polled) = (wakes, true);
            let waker = Waker::from(Arc::clone(task));
            future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        });
        assert!(was_polled, "{} tasks wait for each other", running.len());
    }
}

const ITEMS: u64 = 1_000;

fn sum() -> u64 {
    (0..ITEMS).sum()
}

fn queue<D: Design<u64>>() -> (spsc::Producer<u64, D>, spsc::Consumer<u64, D>) {
    spsc::any_channel(3, spsc::Options::new().tuning(D::Tuning::default())).unwrap()
}

fn two_tasks_pass_items_on<D: Design<u64>>() {
    let (producer, consumer) = queue::<D>();
    let (mut producer, mut consumer) = (producer.into_async(), consumer.into_async());
    let mut popped = 0;
    let pushes = async move {
        for item in 0..ITEMS {
            producer.push(item).await.unwrap();
        }
    };
    let pops = async {
        while let Ok(item) = consumer.pop().await {
            popped += item;
        }
    };
    run([pin!(pops), pin!(pushes)]);
    assert_eq!(popped, sum());
}

#[test]
fn tasks_pass_items_on() {
    macro_rules! each {
        ($($module:ident::$Design:ident,)+) => { $(two_tasks_pass_items_on::<spsc::$Design>();)+ };
    }
    corelane::each_design!(each);
}

#[test]
fn a_dispatcher_and_its_workers_are_tasks() {
    let (dispatcher, workers) = dispatch::channel::<u64>(2, 3);
    let mut dispatcher = dispatcher.into_async();
    let done = std::cell::Cell::new(0);
    let dispatches = async move {
        for job in 0..ITEMS {
            dispatcher.dispatch(job).await.unwrap();
        }
        dispatcher.join().await.unwrap();
    };
    let mut workers = workers.into_iter().map(|worker| {
        let (mut worker, done) = (worker.into_async(), &done);
        async move {
            while let Ok(job) = worker.pop().await {
                done.set(done.get() + job);
            }
        }
    });
    let (first, second) = (workers.next().unwrap(), workers.next().unwrap());
    run([pin!(first), pin!(dispatches), pin!(second)]);
    assert_eq!(done.get(), sum());
}

/// Both wait by a set, as ends without calls for tasks do. A call of either end may be refused: then it waits again.
fn sets_pass_items_on<S, R>(
    (sender, receiver): (S, R),
    mut push: impl FnMut(&mut S, u64) -> bool,
    mut pop: impl FnMut(&mut R) -> Option<u64>,
) where
    S: Selectable + Send,
    R: Selectable + Send,
{
    let mut popped = 0;
    let pushes = async move {
        let mut select = Select::new();
        let key = select.add(sender);
        let mut item = 0;
        while item < ITEMS {
            select.wait_async().await.unwrap();
            item += u64::from(push(&mut select[key], item));
        }
    };
    let pops = async {
        let mut select = Select::new();
        let key = select.add(receiver);
        for _ in 0..ITEMS {
            popped += loop {
                select.wait_async().await.unwrap();
                if let Some(item) = pop(&mut select[key]) {
                    break item;
                }
            };
        }
    };
    run([pin!(pops), pin!(pushes)]);
    assert_eq!(popped, sum());
}

#[test]
fn tasks_wait_for_ends_by_a_set() {
    sets_pass_items_on(queue::<spsc::Lane>(), |s, item| s.try_push(item).is_ok(), |r| r.try_pop().ok());
    sets_pass_items_on(mpmc::channel(3), |s, item| s.try_push(item).is_ok(), |r| r.try_pop().ok());
    sets_pass_items_on(
        mpmc::condvar::channel_with(3, Options::new()).unwrap(),
        |s, item| s.try_push(item).is_ok(),
        |r| r.try_pop().ok(),
    );
    sets_pass_items_on(mpmc::lanes::channel(3), |s, item| s.try_push(item).is_ok(), |r| r.try_pop().ok());
    sets_pass_items_on(
        spsc::stream::channel(),
        |s, item| s.try_push(&item.to_ne_bytes()).is_ok(),
        |r| r.try_pop().ok().map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap())),
    );
}

#[test]
fn what_is_there_is_taken_without_a_wait() {
    let (mut producer, consumer) = queue::<spsc::Lane>();
    let (sender, receiver) = mpmc::channel(3);
    for item in 0..3 {
        producer.push(item).unwrap();
        sender.push(item).unwrap();
    }
    drop((producer, sender));
    assert_eq!((consumer.into_iter().sum::<u64>(), receiver.iter().sum::<u64>()), (3, 3));
}

const SOON: Duration = Duration::from_millis(1);

/// Nothing comes while the only thread waits.
#[test]
fn timed_calls_end() {
    fn of_one_to_one<W: corelane::wait::Strategy>(wait: W) {
        let (mut producer, mut consumer) = spsc::lane::channel_with(1, spsc::Options::new().wait(wait)).unwrap();
        assert!(consumer.pop_timeout(SOON).unwrap_err().is_timeout());
        assert!(consumer.pop_batch_timeout(&mut Vec::new(), 1, SOON).unwrap_err().is_timeout());
        producer.push(1).unwrap();
        assert!(producer.push_timeout(2, SOON).unwrap_err().is_timeout());
        assert!(producer.push_batch_timeout(&mut vec![2], SOON).unwrap_err().is_timeout());
        assert_eq!(consumer.pop_timeout(Duration::MAX), Ok(1));
    }
    of_one_to_one(corelane::wait::Adaptive);
    of_one_to_one(SpinPark::default());
    of_one_to_one(Park);
    of_one_to_one(Yield);
    let (_producer, mut consumer) = spsc::stream::channel();
    assert!(consumer.pop_timeout(SOON).unwrap_err().is_timeout());

    macro_rules! of_many {
        ($($module:ident)+) => {$(
            let (sender, receiver) = mpmc::$module::channel_with(2, Options::new()).unwrap();
            assert!(receiver.pop_timeout(SOON).unwrap_err().is_timeout());
            assert!(receiver.pop_batch_timeout(&mut Vec::new(), 1, SOON).unwrap_err().is_timeout());
            assert!(sender.push_batch_timeout(&mut vec![1; 9], SOON).unwrap_err().is_timeout());
            assert!(sender.push_timeout(2, SOON).unwrap_err().is_timeout());
        )+};
    }
    of_many!(ticket scq condvar busy_wait);
    let (mut sender, mut receiver) = mpmc::lanes::channel(1);
    assert!(receiver.pop_timeout(SOON).unwrap_err().is_timeout());
    sender.push(1).unwrap();
    assert!(sender.push_batch_timeout(&mut vec![1; 999], SOON).unwrap_err().is_timeout());

    for fairness in [Fairness::Fair, Fairness::Unfair] {
        let queue = SynchronousQueue::new(fairness);
        assert!(queue.put_timeout(1, SOON).unwrap_err().is_timeout());
        assert!(queue.take_timeout(SOON).unwrap_err().is_timeout());
    }
    let queue = TransferQueue::new();
    assert!(queue.take_timeout(SOON).unwrap_err().is_timeout());
    assert!(queue.put_timeout(1, SOON).unwrap_err().is_timeout());
    assert!(Exchanger::new().exchange_timeout(1, SOON).unwrap_err().is_timeout());

    let (mut dispatcher, mut workers) = dispatch::channel(1, 1);
    assert!(workers[0].pop_timeout(SOON).unwrap_err().is_timeout());
    dispatcher.dispatch(1).unwrap();
    assert!(dispatcher.dispatch_timeout(2, SOON).is_err());
    let mut collector = Collector::<u64>::new(1);
    let _results = collector.add().unwrap();
    assert!(collector.collect_timeout(SOON).unwrap_err().is_timeout());
    let mut select = Select::new();
    select.add(&mut workers[0]);
    assert!(select.wait_timeout(SOON).is_some());
    let (_producer, consumer) = spsc::channel::<u64>(1);
    let mut select = Select::new();
    select.add(consumer);
    assert!(select.wait_timeout(SOON).is_none());
}

/// A task whose queue has nothing is polled no more until something comes.
#[test]
fn an_idle_task_is_not_woken() {
    let task = Arc::new(Task::default());
    let waker = Waker::from(Arc::clone(&task));
    let mut context = Context::from_waker(&waker);
    let (mut producer, consumer) = queue::<spsc::Lane>();
    let mut consumer = consumer.into_async();
    let (sender, receiver) = mpmc::channel(3);
    let mut select = Select::new();
    select.add(receiver);
    let (mut pop, mut wait) = (pin!(consumer.pop()), pin!(select.wait_async()));
    assert!(pop.as_mut().poll(&mut context).is_pending() && wait.as_mut().poll(&mut context).is_pending());
    producer.push(1).unwrap();
    sender.push(1).unwrap();
    assert!(matches!(pop.poll(&mut context), Poll::Ready(Ok(1))));
    assert!(wait.poll(&mut context).is_ready());
    // Where there is no membarrier each may have been polled once more.
    assert!((2..=4).contains(&task.0.load(Relaxed)));
}
