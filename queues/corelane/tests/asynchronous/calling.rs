//! Wakers that call back: one that runs in the middle of a call of a queue calls everything else of that queue, closes
//! it and lets its end go. No call waits for another one of its own thread.

use crate::channel::{Ends, Rx, Shared, Tx};
use crate::dispatch::Fans;
use crate::support::{Carries, Task, fill, poll, queue};
use corelane::dispatch::Builder;
use corelane::handoff::{CancelToken, Fairness, SynchronousQueue, TransferQueue};
use corelane::mpmc;
use corelane::spsc::{Options, stream};
use corelane::wait::{Adaptive, Select, Selectable};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

type Call = Box<dyn Fn() + Send + Sync>;

/// A task whose waker makes calls.
struct Calls {
    calls: Call,
    begun: AtomicUsize,
    /// A panic of a waker goes no further than the queue, so it is found here.
    done: AtomicUsize,
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.begun.fetch_add(1, SeqCst);
        (self.calls)();
        self.done.fetch_add(1, SeqCst);
    }
}

impl Calls {
    fn new(calls: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { calls: Box::new(calls), begun: AtomicUsize::new(0), done: AtomicUsize::new(0) })
    }

    fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        Pin::new(future).poll(&mut Context::from_waker(&Waker::from(self.clone())))
    }

    #[track_caller]
    fn were_made(&self) -> usize {
        let done = self.done.load(SeqCst);
        assert_ne!(done, 0, "the waker was not woken, or has panicked");
        assert_eq!(self.begun.load(SeqCst), done, "the waker has panicked");
        done
    }
}

/// An end that its waker reaches.
type Reached<E> = Arc<Mutex<Option<E>>>;

fn reached<E>(end: E) -> Reached<E> {
    Arc::new(Mutex::new(Some(end)))
}

/// What a waker does to such an end: it has to be free.
fn with<E>(end: &Reached<E>, call: impl FnOnce(&mut Option<E>)) {
    call(&mut end.try_lock().expect("no call of the other end has it"));
}

fn at_once() -> Duration {
    Duration::ZERO
}

pub(crate) fn a_consumers_waker<D: Carries>() {
    for drops in [false, true] {
        let (mut producer, consumer) = queue::<u64, D>(4);
        let consumer = reached(consumer.into_async());
        let end = consumer.clone();
        let calls = Calls::new(move || {
            with(&end, |end| {
                let Some(consumer) = end else { return };
                assert_eq!((consumer.len(), consumer.is_empty(), consumer.is_closed()), (1, false, false));
                assert!(consumer.capacity() >= 4);
                assert_eq!(consumer.try_peek().map(|item| *item).ok(), Some(7));
                assert_eq!(poll(&Task::new(), &mut consumer.pop()), Poll::Ready(Ok(7)));
                assert!(consumer.try_pop().is_err());
                assert!(consumer.try_pop_batch(&mut Vec::new(), 4).is_err());
                assert!(consumer.try_pop_slice(&mut [0]).is_err());
                assert!(poll(&Task::new(), &mut consumer.pop_batch(&mut Vec::new(), 4)).is_pending());
                assert!(poll(&Task::new(), &mut consumer.wait_for_item()).is_pending());
                let mut own = end.take().expect("it is there").into_blocking();
                assert!(own.pop_timeout(at_once()).is_err());
                if !drops {
                    own.close();
                    assert!(own.is_closed());
                    *end = Some(own.into_async());
                }
            });
        });
        assert!(calls.poll(&mut consumer.lock().unwrap().as_mut().unwrap().pop()).is_pending());
        assert_eq!(producer.try_push(7), Ok(()));
        calls.were_made();
        assert!(producer.is_closed() && producer.try_push(8).unwrap_err().is_closed());
    }
}

pub(crate) fn a_producers_waker<D: Carries>() {
    for drops in [false, true] {
        let (producer, mut consumer) = queue::<u64, D>(1);
        let mut producer = producer.into_async();
        let full = fill(&mut producer);
        let producer = reached(producer);
        let end = producer.clone();
        let calls = Calls::new(move || {
            with(&end, |end| {
                let Some(producer) = end else { return };
                assert!(producer.len() < 1 + full as usize && !producer.is_closed() && producer.capacity() != 0);
                assert!(producer.try_reserve().is_ok());
                assert_eq!(producer.try_push(90), Ok(()));
                fill(producer);
                assert!(producer.try_push_batch(&mut vec![91]).is_err() && producer.try_push_slice(&[91]).is_err());
                assert!(poll(&Task::new(), &mut producer.push(91)).is_pending());
                assert!(poll(&Task::new(), &mut producer.wait_for_space()).is_pending());
                let mut own = end.take().expect("it is there").into_blocking();
                assert!(own.push_timeout(91, at_once()).is_err());
                if !drops {
                    own.close();
                    assert!(own.is_closed());
                    *end = Some(own.into_async());
                }
            });
        });
        assert!(calls.poll(&mut producer.lock().unwrap().as_mut().unwrap().push(100)).is_pending());
        let mut popped = vec![];
        while let Ok(item) = consumer.try_pop() {
            popped.push(item);
        }
        calls.were_made();
        assert!(consumer.is_closed());
        assert_eq!(popped[..=full as usize], (0..full).chain([90]).collect::<Vec<_>>());
    }
}

/// The ends of a stream are a select's, whose future was forgotten.
#[test]
fn the_wakers_of_a_stream() {
    type Ends<E> = (Select<'static>, corelane::wait::Key<E>);

    fn wait<E: Selectable>(ends: &Reached<Ends<E>>, calls: &Arc<Calls>) {
        let mut ends = ends.lock().unwrap();
        let mut wait = Box::pin(ends.as_mut().unwrap().0.wait_async());
        assert!(calls.poll(&mut wait).is_pending());
        std::mem::forget(wait);
    }

    crate::watchdog::guard(|| {
        let options = || Options::new().tuning(stream::Tuning::new().limit(64));
        let (mut producer, consumer) = stream::channel_with(options()).unwrap();
        let mut select = Select::new();
        let key = select.add(consumer);
        let ends = reached((select, key));
        let own = ends.clone();
        let calls = Calls::new(move || {
            with(&own, |ends| {
                let Some((select, key)) = ends else { return };
                assert!(select.try_wait().is_some());
                let consumer = &mut select[*key];
                assert!(!consumer.is_empty() && consumer.bytes() != 0 && consumer.try_peek().is_ok());
                assert_eq!(consumer.try_pop(), Ok(&b"first"[..]));
                assert!(consumer.try_pop().is_err() && consumer.pop_timeout(at_once()).is_err());
                assert!(consumer.try_pop_batch(1).is_err());
                consumer.close();
                *ends = None;
            });
        });
        wait(&ends, &calls);
        producer.push(b"first").unwrap();
        calls.were_made();
        assert!(producer.push(b"second").is_err());

        let (mut producer, mut consumer) = stream::channel_with(options()).unwrap();
        while producer.try_push(b"1").is_ok() {}
        let mut select = Select::new();
        let key = select.add(producer);
        let ends = reached((select, key));
        let own = ends.clone();
        let calls = Calls::new(move || {
            with(&own, |ends| {
                let Some((select, key)) = ends else { return };
                let producer = &mut select[*key];
                assert!(!producer.is_closed() && producer.bytes() <= 64);
                let _ = producer.try_push(b"one more");
                let _ = producer.try_push_batch(&[b"two more"]);
                let _ = producer.push_timeout(b"three more", at_once());
                let _ = producer.try_reserve(1).map(|reserved| reserved.len());
                producer.close();
                *ends = None;
            });
        });
        wait(&ends, &calls);
        while consumer.try_pop().is_ok() {}
        calls.were_made();
        assert!(consumer.is_closed());
    });
}

/// What a test of a shared queue does with it while the waker of a select runs in each call that wakes it.
fn wakes_in(select: &mut Select<'_>, calls: &Arc<Calls>, call: impl FnOnce()) {
    let mut wait = pin!(select.wait_async());
    assert!(calls.poll(&mut wait).is_pending());
    let before = calls.done.load(SeqCst);
    call();
    assert!(calls.were_made() > before, "the waker was not woken");
}

/// Every call of either end, of a waker of the same channel.
fn calls<C: Shared>(ends: &Ends<C, u64, Adaptive>, closes: bool) -> Arc<Calls> {
    let ends = reached((ends.0.clone(), ends.1.clone()));
    Calls::new(move || {
        // Not by a wake-up of its own.
        let Ok(mut ends) = ends.try_lock() else { return };
        let Some((sender, receiver)) = &mut *ends else { return };
        let _ = sender.try_push(90);
        let _ = sender.push_timeout(91, at_once());
        let _ = sender.try_push_batch(&mut vec![92]);
        let _ = sender.push_batch_timeout(&mut vec![93], at_once());
        let _ = (sender.len(), sender.is_empty(), sender.capacity(), sender.is_closed(), receiver.is_closed());
        let mut others = Select::new();
        others.add(sender.clone());
        others.add(receiver.clone());
        let _ = others.try_wait();
        drop(others);
        let _ = receiver.try_pop();
        let _ = receiver.pop_timeout(at_once());
        let _ = receiver.try_pop_batch(&mut Vec::new(), 1);
        let _ = receiver.pop_batch_timeout(&mut Vec::new(), 1, at_once());
        if closes {
            sender.close();
            receiver.close();
            assert!(sender.push(94).is_err());
            while receiver.pop().is_ok() {}
            *ends = None;
        }
    })
}

pub(crate) fn every_call_of_a_channel<C: Shared>() {
    let channel = || C::channel::<u64, _>(2, mpmc::Options::new()).unwrap();
    type Change<C> = fn(Ends<C, u64, Adaptive>);
    let pushes: [Change<C>; 6] = [
        |(mut sender, _)| _ = sender.try_push(1),
        |(mut sender, _)| _ = sender.push(1),
        |(mut sender, _)| _ = sender.try_push_batch(&mut vec![1, 2]),
        |(mut sender, _)| sender.close(),
        |(_, mut receiver)| receiver.close(),
        // A lane that ends is given back, by a receiver.
        |(mut sender, _)| _ = (!C::LANES).then(|| sender.push(1)),
    ];
    let pops: [Change<C>; 6] = [
        |(_, mut receiver)| _ = receiver.try_pop(),
        |(_, mut receiver)| _ = receiver.pop(),
        |(_, mut receiver)| _ = receiver.try_pop_batch(&mut Vec::new(), 2),
        |(_, mut receiver)| _ = receiver.pop_timeout(at_once()),
        |(mut sender, _)| sender.close(),
        |(_, mut receiver)| receiver.close(),
    ];
    let full = || {
        let (mut sender, receiver) = channel();
        while sender.len() < 2 && sender.try_push(0).is_ok() {}
        (sender, receiver)
    };
    for closes in [false, true] {
        for change in pushes {
            let ends = channel();
            let calls = calls::<C>(&ends, closes);
            let mut select = Select::new();
            select.add(ends.1.clone());
            wakes_in(&mut select, &calls, || change(ends));
        }
        if !C::BOUNDED {
            continue;
        }
        for change in pops {
            let (sender, receiver) = full();
            let other = sender.clone();
            let calls = calls::<C>(&(other.clone(), receiver.clone()), closes);
            let mut select = Select::new();
            select.add(sender);
            wakes_in(&mut select, &calls, || change((other, receiver)));
        }
        let (sender, receiver) = full();
        let other = Mutex::new(sender.clone());
        let calls = Calls::new(move || assert!(other.try_lock().unwrap().push(1).is_err()));
        let mut select = Select::new();
        select.add(sender);
        wakes_in(&mut select, &calls, || drop(receiver));
    }
}

#[test]
fn every_call_of_a_hand_off() {
    fn calls(queue: &'static SynchronousQueue<u64>, closes: bool) -> Arc<Calls> {
        Calls::new(move || {
            let _ = queue.try_put(90);
            let _ = queue.put_timeout(91, at_once());
            let _ = queue.try_put_batch(&mut vec![92]);
            let _ = queue.reserve_put(93).abort();
            let _ = queue.try_take();
            let _ = queue.take_timeout(at_once());
            let _ = queue.try_take_batch(&mut Vec::new(), 1);
            let _ = queue.reserve_take().abort();
            let _ = (queue.waiting_takes(), queue.waiting_puts(), queue.is_closed());
            if closes {
                queue.close();
            }
        })
    }

    crate::watchdog::guard(|| {
        for closes in [false, true] {
            let queues = [
                SynchronousQueue::new(Fairness::Fair),
                SynchronousQueue::new(Fairness::Unfair),
                SynchronousQueue::with_elimination(),
            ];
            for queue in queues {
                let queue: &'static _ = Box::leak(Box::new(queue));
                let calls = calls(queue, closes);
                let mut select = Select::new();
                select.add(queue.reserve_take());
                wakes_in(&mut select, &calls, || drop(queue.try_put(1)));
                if !closes {
                    let mut select = Select::new();
                    select.add(queue.reserve_put(1));
                    wakes_in(&mut select, &calls, || drop(queue.try_take()));
                    let mut select = Select::new();
                    select.add(queue.reserve_put(1));
                    select.add(queue.reserve_put(2));
                    wakes_in(&mut select, &calls, || queue.close());
                }
            }
            let queue: &'static _ = Box::leak(Box::new(TransferQueue::new()));
            let calls = Calls::new(move || {
                let _ = queue.push(90);
                let _ = queue.try_put(91);
                let _ = queue.put_timeout(92, at_once());
                let _ = queue.reserve_put(93).abort();
                let _ = queue.try_take();
                let _ = queue.take_timeout(at_once());
                let _ = queue.try_take_batch(&mut Vec::new(), 1);
                let _ = queue.reserve_take().abort();
                let _ = (queue.waiting_takes(), queue.len(), queue.is_empty(), queue.is_closed());
                if closes {
                    queue.close();
                }
            });
            let mut select = Select::new();
            select.add(queue.reserve_take());
            wakes_in(&mut select, &calls, || drop(queue.push(1)));
            if !closes {
                let mut select = Select::new();
                select.add(queue.reserve_put(1));
                select.add(queue.reserve_put(2));
                wakes_in(&mut select, &calls, || queue.close());
            }
            let token = CancelToken::new();
            let other = token.clone();
            let calls = Calls::new(move || {
                assert!(other.is_cancelled());
                other.cancel();
            });
            let mut select = Select::new();
            select.add(token.clone());
            wakes_in(&mut select, &calls, || token.cancel());
        }
    });
}

pub(crate) fn a_workers_waker<Q: Fans>() {
    for drops in [false, true] {
        let builder = Builder::new(1).capacity(4).tuning(Q::Options::default());
        let (mut dispatcher, mut workers) = builder.build_any::<u64, Q>().unwrap();
        let worker = reached(workers.remove(0).into_async());
        let own = worker.clone();
        let calls = Calls::new(move || {
            with(&own, |end| {
                let Some(worker) = end else { return };
                assert_eq!((worker.number(), worker.backlog(), worker.is_closed()), (0, 1, false));
                assert_eq!(poll(&Task::new(), &mut worker.pop()), Poll::Ready(Ok(7)));
                assert!(worker.try_pop().is_err() && worker.try_pop_batch(&mut Vec::new(), 4).is_err());
                assert!(poll(&Task::new(), &mut worker.wait_for_job()).is_pending());
                let mut thread = end.take().expect("it is there").into_blocking();
                assert!(thread.pop_timeout(at_once()).is_err());
                if drops {
                    drop(thread);
                } else {
                    thread.leave().unwrap();
                }
            });
        });
        assert!(calls.poll(&mut worker.lock().unwrap().as_mut().unwrap().pop()).is_pending());
        dispatcher.dispatch(7).unwrap();
        calls.were_made();
        assert!(dispatcher.try_dispatch(8).unwrap_err().is_no_worker());
    }
}

pub(crate) fn a_dispatchers_waker<Q: Fans>() {
    for drops in [false, true] {
        let builder = Builder::new(2).capacity(1).tuning(Q::Options::default());
        let (dispatcher, mut workers) = builder.build_any::<u64, Q>().unwrap();
        let mut dispatcher = dispatcher.into_async();
        if (0..100).all(|job| dispatcher.try_dispatch(job).is_ok()) {
            return;
        }
        let dispatcher = reached(dispatcher);
        let own = dispatcher.clone();
        let calls = Calls::new(move || {
            with(&own, |end| {
                let Some(dispatcher) = end else { return };
                assert_eq!((dispatcher.workers(), dispatcher.loads().count()), (2, 2));
                assert!(dispatcher.take_panic().is_none() && dispatcher.take_returned().is_empty());
                assert_eq!(dispatcher.try_flush(), 0);
                let _ = dispatcher.try_dispatch(90);
                let _ = dispatcher.try_dispatch_batch(&mut vec![91]);
                let _ = dispatcher.try_dispatch_slice(&[92]);
                let _ = poll(&Task::new(), &mut dispatcher.dispatch(93));
                let _ = poll(&Task::new(), &mut dispatcher.reserve()).is_ready();
                drop(dispatcher.add_worker().unwrap());
                let own = end.take().expect("it is there");
                if drops {
                    drop(own);
                } else {
                    drop(own.into_blocking());
                }
            });
        });
        assert!(calls.poll(&mut dispatcher.lock().unwrap().as_mut().unwrap().dispatch(100)).is_pending());
        assert!(workers[0].try_pop().is_ok());
        calls.were_made();
        assert!(workers[0].is_closed() && workers[1].is_closed());
    }
}

/// In the middle of the leave.
pub(crate) fn a_dispatchers_waker_when_a_worker_leaves<Q: Fans>() {
    let builder = Builder::new(1).capacity(2).tuning(Q::Options::default());
    let (mut dispatcher, mut workers) = builder.build_any::<u64, Q>().unwrap();
    dispatcher.dispatch(7).unwrap();
    let join = reached(dispatcher.into_async().join());
    let own = join.clone();
    let calls = Calls::new(move || {
        with(&own, |join| {
            let Poll::Ready(Err(unfinished)) = poll(&Task::new(), join.as_mut().unwrap()) else { panic!("not over") };
            assert_eq!(unfinished.undone, [7]);
            *join = None;
        });
    });
    assert!(calls.poll(join.lock().unwrap().as_mut().unwrap()).is_pending());
    workers.remove(0).leave().unwrap();
    calls.were_made();
    assert!(join.lock().unwrap().is_none());
}
