//! Ends that tasks wait for, under every interleaving of small cases. Runs with
//! `cargo loom -p corelane --features async --test loom_async`.
//!
//! What a design does with items is the business of `loom.rs`. Here it is which side wakes which task: loom reports a
//! lost wake-up as a deadlock. Each model runs with all that may stand for the barrier: see [`Barrier`]; without any
//! only where no end parks.

#[macro_use]
#[path = "support/designs.rs"]
mod designs;
#[path = "support/explore.rs"]
mod explore;
#[path = "support/task.rs"]
mod task;

use corelane::Barrier;
use corelane::dispatch::{AsyncDispatcher, AsyncWorker, Builder, ByKey, Mpmc, Queue};
use corelane::error::{Closed, DispatchError};
use corelane::mpmc::Ticket;
use corelane::spsc::{self, AsyncConsumer, AsyncProducer, Design, Lane, Options};
use corelane::wait::Park;
use explore::{Item, explore_with, spawn_with};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use task::{Task, block_on, poll};

/// Explores a model in which no end parks.
fn explore(preemptions: usize, model: fn()) {
    explore_with_parks(preemptions, model);
    explore_with(Barrier::Absent, preemptions, model);
}

fn explore_with_parks(preemptions: usize, model: fn()) {
    explore_with(Barrier::Fences, preemptions, model);
    explore_with(Barrier::ReadModifyWrite, preemptions, model);
}

/// A design under test.
trait Tested: Design<Item, Tuning = Self::Options> + Design<usize, Tuning = Self::Options> {
    type Options: Clone + Default + Send + Sync + 'static;
}

impl<D, O: Clone + Default + Send + Sync + 'static> Tested for D
where
    D: Design<Item, Tuning = O> + Design<usize, Tuning = O>,
{
    type Options = O;
}

type Ends<T, D> = (spsc::Producer<T, D, Park>, spsc::Consumer<T, D, Park>);

fn queue<T: Send, D: Design<T>>(capacity: usize) -> Ends<T, D> {
    spsc::any_channel(capacity, Options::new().tuning(D::Tuning::default()).wait(Park)).unwrap()
}

type AsyncEnds<T, D> = (AsyncProducer<T, D, Park>, AsyncConsumer<T, D, Park>);

fn async_queue<T: Send, D: Design<T>>(capacity: usize) -> AsyncEnds<T, D> {
    let (producer, consumer) = queue::<T, D>(capacity);
    (producer.into_async(), consumer.into_async())
}

mod models {
    use super::*;

    pub(super) fn a_push_wakes_the_task<D: Tested>() {
        explore(2, || {
            let (producer, mut consumer) = async_queue::<Item, D>(4);
            let pusher = spawn_with(producer, move |producer| {
                for id in 0..3 {
                    assert!(producer.try_push(Item::new(id)).is_ok());
                }
            });
            for id in 0..3 {
                assert_eq!(block_on(consumer.pop()).unwrap().read(), id);
            }
            drop((pusher.join().unwrap(), consumer));
        });
    }

    pub(super) fn a_batch_wakes_the_task<D: Tested>() {
        explore(3, || {
            let (producer, mut consumer) = async_queue::<usize, D>(4);
            let pusher =
                spawn_with(producer, move |producer| assert_eq!(producer.try_push_slice(&[0, 1, 2]).unwrap_or(0), 3));
            let mut items = Vec::new();
            while items.len() < 3 {
                block_on(consumer.pop_batch(&mut items, 2)).unwrap();
            }
            assert_eq!(items, [0, 1, 2]);
            pusher.join().unwrap();
        });
    }

    pub(super) fn a_pop_wakes_the_task<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = async_queue::<usize, D>(1);
            producer.try_push(0).unwrap();
            let popper = spawn_with(consumer, move |consumer| assert_eq!(consumer.try_pop(), Ok(0)));
            assert!(block_on(producer.push(1)).is_ok());
            assert_eq!(popper.join().unwrap().1.try_pop(), Ok(1));
        });
    }

    pub(super) fn a_pop_wakes_the_task_that_reserves<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = async_queue::<usize, D>(1);
            producer.try_push(0).unwrap();
            let popper = spawn_with(consumer, move |consumer| assert_eq!(consumer.try_pop(), Ok(0)));
            assert!(block_on(producer.reserve()).is_ok_and(|slot| slot.write(1).is_ok()));
            assert_eq!(popper.join().unwrap().1.try_pop(), Ok(1));
        });
    }

    /// The last item, and the end right behind it.
    pub(super) fn producer_goes_while_the_task_waits<D: Tested>() {
        explore(3, || {
            let (mut producer, mut consumer) = async_queue::<usize, D>(2);
            let pusher = thread::spawn(move || producer.try_push(7).unwrap());
            assert_eq!(block_on(consumer.pop()), Ok(7));
            assert_eq!(block_on(consumer.pop()), Err(Closed(())));
            pusher.join().unwrap();
        });
    }

    pub(super) fn consumer_goes_while_the_task_waits<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = async_queue::<usize, D>(1);
            producer.try_push(1).unwrap();
            let popper = thread::spawn(move || drop(consumer));
            assert_eq!(block_on(producer.push(2)).unwrap_err().0, 2);
            popper.join().unwrap();
        });
    }

    pub(super) fn consumer_closes_while_the_task_waits<D: Tested>() {
        explore(3, || {
            let (mut producer, mut consumer) = async_queue::<usize, D>(1);
            producer.try_push(1).unwrap();
            let popper = thread::spawn(move || {
                consumer.close();
                consumer.try_pop()
            });
            assert!(block_on(producer.wait_for_space()).is_err());
            assert_eq!(popper.join().unwrap(), Ok(1));
        });
    }

    pub(super) fn two_tasks_wait_in_turn<D: Tested>() {
        explore(2, || {
            let (mut producer, mut consumer) = async_queue::<usize, D>(1);
            let pusher = thread::spawn(move || (0..2).for_each(|item| block_on(producer.push(item)).unwrap()));
            for item in 0..2 {
                assert_eq!(block_on(consumer.pop()), Ok(item));
            }
            assert_eq!(block_on(consumer.pop()), Err(Closed(())));
            pusher.join().unwrap();
        });
    }

    /// Where a thread parks, the barrier has to be there.
    pub(super) fn a_task_and_a_thread_wait_in_turn<D: Tested>() {
        explore_with_parks(2, || {
            let (mut producer, consumer) = queue::<usize, D>(1);
            let mut consumer = consumer.into_async();
            let pusher = thread::spawn(move || (0..2).for_each(|item| producer.push(item).unwrap()));
            for item in 0..2 {
                assert_eq!(block_on(consumer.pop()), Ok(item));
            }
            pusher.join().unwrap();
        });
    }

    pub(super) fn a_consumer_moves_between_two_waits<D: Tested>() {
        explore(2, || {
            let (producer, mut consumer) = async_queue::<usize, D>(2);
            let pusher = spawn_with(producer, move |producer| {
                producer.try_push(1).unwrap();
                producer.try_push(2).unwrap();
            });
            assert_eq!(block_on(consumer.pop()), Ok(1));
            thread::spawn(move || assert_eq!(block_on(consumer.pop()), Ok(2))).join().unwrap();
            drop(pusher.join().unwrap());
        });
    }

    pub(super) fn a_producer_moves_between_two_waits<D: Tested>() {
        explore(2, || {
            let (mut producer, consumer) = async_queue::<usize, D>(1);
            producer.try_push(0).unwrap();
            let popper = spawn_with(consumer, move |consumer| {
                assert_eq!([block_on(consumer.pop()), block_on(consumer.pop())], [Ok(0), Ok(1)])
            });
            block_on(producer.push(1)).unwrap();
            thread::spawn(move || block_on(producer.push(2)).unwrap()).join().unwrap();
            assert_eq!(popper.join().unwrap().1.try_pop(), Ok(2));
        });
    }

    /// Polled by one task, and then by another: the first may be woken for nothing, the second must be.
    pub(super) fn the_waker_is_replaced<D: Tested>() {
        explore(3, || {
            let (producer, mut consumer) = async_queue::<usize, D>(2);
            let pusher = spawn_with(producer, move |producer| producer.try_push(7).unwrap());
            let first = Arc::new(Task::default());
            let mut pop = consumer.pop();
            let popped = match poll(&first, &mut pop) {
                Poll::Ready(popped) => popped,
                Poll::Pending => block_on(pop),
            };
            assert_eq!(popped, Ok(7));
            pusher.join().unwrap();
        });
    }

    /// Its item goes to the next pop, and so does its wake-up.
    pub(super) fn a_pending_pop_is_dropped<D: Tested>() {
        explore(2, || {
            let (mut producer, mut consumer) = async_queue::<Item, D>(2);
            let pusher = thread::spawn(move || {
                for id in 0..2 {
                    assert!(producer.try_push(Item::new(id)).is_ok());
                }
            });
            let task = Arc::new(Task::default());
            let polled = poll(&task, &mut consumer.pop());
            let popped = match polled {
                Poll::Ready(popped) => popped,
                Poll::Pending => block_on(consumer.pop()),
            };
            assert_eq!(popped.unwrap().read(), 0);
            assert_eq!(block_on(consumer.pop()).unwrap().read(), 1);
            assert!(block_on(consumer.pop()).is_err());
            pusher.join().unwrap();
        });
    }

    pub(super) fn a_pending_reservation_is_dropped<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = async_queue::<usize, D>(1);
            producer.try_push(0).unwrap();
            let popper = spawn_with(consumer, move |consumer| assert_eq!(consumer.try_pop(), Ok(0)));
            let task = Arc::new(Task::default());
            let _ = poll(&task, &mut producer.reserve());
            assert!(block_on(producer.push(1)).is_ok());
            assert_eq!(popper.join().unwrap().1.try_pop(), Ok(1));
        });
    }

    /// Loom checks which thread touches the waker, and the count that it is let go.
    pub(super) fn an_end_goes_while_it_is_woken<D: Tested>() {
        explore(3, || {
            let (producer, mut consumer) = async_queue::<usize, D>(2);
            let pusher = spawn_with(producer, move |producer| _ = producer.try_push(7));
            let task = Arc::new(Task::default());
            let _ = poll(&task, &mut consumer.pop());
            drop(consumer);
            let _producer = pusher.join().unwrap();
            assert_eq!(Arc::strong_count(&task), 1);
            assert!(task.wakes.load(Relaxed) <= 2);
        });
    }

    /// A thread that takes over from a task is woken in its place.
    pub(super) fn an_end_becomes_a_threads<D: Tested>() {
        explore_with_parks(3, || {
            let (producer, mut consumer) = async_queue::<usize, D>(2);
            let pusher = spawn_with(producer, move |producer| producer.try_push(7).unwrap());
            let task = Arc::new(Task::default());
            let polled = poll(&task, &mut consumer.pop());
            let popped = match polled {
                Poll::Ready(popped) => popped,
                Poll::Pending => consumer.into_blocking().pop(),
            };
            assert_eq!(popped, Ok(7));
            pusher.join().unwrap();
            assert_eq!(Arc::strong_count(&task), 1);
        });
    }
}

macro_rules! suite {
    ($name:ident, $design:ident, [bounded $($flags:tt)*]) => {
        suite!(@ $name, $design, [
            a_pop_wakes_the_task
            a_pop_wakes_the_task_that_reserves
            consumer_goes_while_the_task_waits
            consumer_closes_while_the_task_waits
            two_tasks_wait_in_turn
            a_task_and_a_thread_wait_in_turn
            a_producer_moves_between_two_waits
            a_pending_reservation_is_dropped
        ]);
    };
    ($name:ident, $design:ident, [unbounded $($flags:tt)*]) => {
        suite!(@ $name, $design, []);
    };
    (@ $name:ident, $design:ident, [$($more:ident)*]) => {
        suite!(@@ $name, $design, [
            a_push_wakes_the_task
            a_batch_wakes_the_task
            producer_goes_while_the_task_waits
            a_consumer_moves_between_two_waits
            the_waker_is_replaced
            a_pending_pop_is_dropped
            an_end_goes_while_it_is_woken
            an_end_becomes_a_threads
            $($more)*
        ]);
    };
    (@@ $name:ident, $design:ident, [$($model:ident)*]) => {
        mod $name {
            use super::*;

            $(#[test]
            fn $model() {
                models::$model::<spsc::$design>();
            })*
        }
    };
}
designs!(suite);

/// A fan-out: a task that waits for several queues, and at the desk for workers that leave.
mod fanning {
    use super::*;

    type FanOut<T, Q> = (AsyncDispatcher<T, Q, Park>, Vec<AsyncWorker<T, Q, Park>>);

    fn fan_out<T: Send, Q: Queue<T>>(workers: usize, capacity: usize) -> FanOut<T, Q> {
        let builder = Builder::new(workers).capacity(capacity).batch(1).wait(Park).tuning(Q::Tuning::default());
        let (dispatcher, workers) = builder.build_any::<T, Q>().unwrap();
        (dispatcher.into_async(), workers.into_iter().map(|worker| worker.into_async()).collect())
    }

    /// Either worker may be the one that makes room.
    fn a_pop_wakes_the_dispatcher<Q: Queue<usize>>() {
        explore(2, || {
            for at in 0..2 {
                let (mut dispatcher, mut workers) = fan_out::<usize, Q>(2, 1);
                dispatcher.try_dispatch(0).unwrap();
                dispatcher.try_dispatch(1).unwrap();
                let worker = workers.remove(at);
                let popper = spawn_with(worker, move |worker| assert_eq!(worker.try_pop(), Ok(at)));
                assert_eq!(block_on(dispatcher.dispatch(2)), Ok(()));
                assert_eq!(popper.join().unwrap().1.try_pop(), Ok(2));
            }
        });
    }

    fn a_dispatch_wakes_the_worker<Q: Queue<usize>>() {
        explore(3, || {
            let (dispatcher, mut workers) = fan_out::<usize, Q>(1, 2);
            let mut worker = workers.remove(0);
            let sender = spawn_with(dispatcher, move |dispatcher| dispatcher.try_dispatch(7).unwrap());
            assert_eq!(block_on(worker.pop()), Ok(7));
            sender.join().unwrap();
        });
    }

    #[test]
    fn a_pop_wakes_the_dispatcher_over_lanes() {
        a_pop_wakes_the_dispatcher::<Lane>();
    }

    #[test]
    fn a_pop_wakes_the_dispatcher_over_tickets() {
        a_pop_wakes_the_dispatcher::<Mpmc<Ticket>>();
    }

    #[test]
    fn a_dispatch_wakes_the_worker_over_lanes() {
        a_dispatch_wakes_the_worker::<Lane>();
    }

    #[test]
    fn a_dispatch_wakes_the_worker_over_tickets() {
        a_dispatch_wakes_the_worker::<Mpmc<Ticket>>();
    }

    /// Both make room at once, for two jobs: what is woken for one of them waits for the other.
    #[test]
    fn two_workers_make_room_at_once() {
        explore(1, || {
            let (mut dispatcher, workers) = fan_out::<usize, Lane>(2, 1);
            dispatcher.try_dispatch(0).unwrap();
            dispatcher.try_dispatch(1).unwrap();
            let poppers =
                workers.into_iter().map(|worker| spawn_with(worker, |worker| worker.try_pop().map(drop).unwrap()));
            let poppers = poppers.collect::<Vec<_>>();
            for job in 2..4 {
                assert_eq!(block_on(dispatcher.dispatch(job)), Ok(()));
            }
            let got = poppers.into_iter().map(|popper| popper.join().unwrap().1.try_pop().unwrap()).sum::<usize>();
            assert_eq!(got, 5);
        });
    }

    #[test]
    fn a_leave_wakes_the_dispatcher() {
        explore(3, || {
            let (mut dispatcher, mut workers) = fan_out::<Item, Lane>(1, 1);
            assert!(dispatcher.try_dispatch(Item::new(0)).is_ok());
            let worker = workers.remove(0);
            let leaver = thread::spawn(move || drop(worker));
            let refused = block_on(dispatcher.dispatch(Item::new(1))).unwrap_err();
            let DispatchError::NoWorker(job) = refused else { panic!("{refused}") };
            assert_eq!(job.read(), 1);
            leaver.join().unwrap();
            let back = dispatcher.take_returned();
            assert_eq!(back.iter().map(Item::read).collect::<Vec<_>>(), [0]);
        });
    }

    /// Of two that come to the desk at once one finds the waker: the task it wakes has to see that both have left.
    #[test]
    fn two_leaves_wake_the_join() {
        explore(3, || {
            let (dispatcher, workers) = fan_out::<usize, Lane>(2, 1);
            let leavers = workers.into_iter().map(|worker| thread::spawn(move || drop(worker)));
            let leavers = leavers.collect::<Vec<_>>();
            assert!(block_on(dispatcher.join()).is_ok());
            leavers.into_iter().for_each(|leaver| leaver.join().unwrap());
        });
    }

    /// A leave and a pop, and then the join. Not without a barrier, which takes twenty times as many executions.
    #[test]
    fn what_comes_back_finds_room() {
        explore_with_parks(1, || {
            let (mut dispatcher, mut workers) = fan_out::<usize, Lane>(2, 1);
            dispatcher.try_dispatch(0).unwrap();
            dispatcher.try_dispatch(1).unwrap();
            let (mut stays, leaves) = (workers.remove(1), workers.remove(0));
            let leaver = thread::spawn(move || drop(leaves));
            let taker = thread::spawn(move || {
                let got = [0; 3].map(|_| block_on(stays.pop()).unwrap());
                assert_eq!(block_on(stays.pop()), Err(Closed(())));
                got
            });
            assert_eq!(block_on(dispatcher.dispatch(2)), Ok(()));
            leaver.join().unwrap();
            assert!(block_on(dispatcher.join()).is_ok());
            let got = taker.join().unwrap();
            assert!(got == [1, 0, 2] || got == [1, 2, 0], "{got:?}");
        });
    }

    /// A job waits for the first of two workers, by its key. That one leaves, and the other one is the first from then
    /// on: the task waits for the same number, but not in the same queue.
    #[test]
    fn a_key_waits_for_another_worker_of_the_same_number() {
        explore_with_parks(1, || {
            // Keys of the first and of the second worker, by the units.
            let (first, second, third) = (0, 1, 10);
            let builder =
                Builder::new(2).capacity(1).batch(1).wait(Park).route(ByKey::new(|job: &usize| *job as u64 % 10));
            let (dispatcher, mut workers) = builder.build::<usize>().unwrap();
            let mut dispatcher = dispatcher.into_async();
            dispatcher.try_dispatch(first).unwrap();
            dispatcher.try_dispatch(second).unwrap();
            let (mut stays, leaves) = (workers.remove(1).into_async(), workers.remove(0));
            let other = thread::spawn(move || {
                drop(leaves);
                [(); 3].map(|()| block_on(stays.pop()).unwrap())
            });
            assert_eq!(block_on(dispatcher.dispatch(third)), Ok(()));
            assert_eq!(other.join().unwrap(), [second, first, third]);
        });
    }

    /// Its end is a task's from the start, which a worker has to know where there is no membarrier.
    #[test]
    fn a_pop_at_a_worker_that_joined_wakes_the_dispatcher() {
        explore(3, || {
            let (mut dispatcher, _) = fan_out::<usize, Lane>(0, 1);
            let worker = dispatcher.add_worker().unwrap();
            dispatcher.try_dispatch(0).unwrap();
            let popper = spawn_with(worker, move |worker| assert_eq!(worker.try_pop(), Ok(0)));
            assert_eq!(block_on(dispatcher.dispatch(1)), Ok(()));
            assert_eq!(popper.join().unwrap().1.try_pop(), Ok(1));
        });
    }

    /// Its end is the dispatcher's then, and no end holds the waker.
    #[test]
    fn a_worker_leaves_while_it_is_woken() {
        explore(3, || {
            let (mut dispatcher, mut workers) = fan_out::<usize, Lane>(1, 2);
            let mut worker = workers.remove(0);
            let task = Arc::new(Task::default());
            let sender = thread::spawn(move || {
                let sent = dispatcher.try_dispatch(7).is_ok();
                (dispatcher, sent)
            });
            let popped = poll(&task, &mut worker.pop()).is_ready();
            drop(worker);
            let (mut dispatcher, sent) = sender.join().unwrap();
            dispatcher.try_flush();
            let back = usize::from(sent && !popped);
            assert_eq!(dispatcher.take_returned().len(), back);
            assert_eq!(Arc::strong_count(&task), 1);
        });
    }

    /// Polled by one task, and then by another.
    #[test]
    fn the_waker_at_the_desk_is_replaced() {
        explore(3, || {
            let (mut dispatcher, mut workers) = fan_out::<usize, Lane>(1, 1);
            dispatcher.try_dispatch(0).unwrap();
            let worker = workers.remove(0);
            let leaver = thread::spawn(move || drop(worker));
            let first = Arc::new(Task::default());
            let mut dispatch = dispatcher.dispatch(1);
            let refused = match poll(&first, &mut dispatch) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => block_on(dispatch),
            };
            assert_eq!(refused, Err(DispatchError::NoWorker(1)));
            leaver.join().unwrap();
            drop(dispatcher);
            assert_eq!(Arc::strong_count(&first), 1);
        });
    }
}
