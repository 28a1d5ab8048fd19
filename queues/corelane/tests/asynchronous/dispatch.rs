//! A fan-out whose dispatcher and workers are tasks': what `crate::crossing`, `cancel`, `closing`, `waking`, `turning`
//! and `adapters` ask of two ends, asked of one end and several.

use crate::executors::Executor;
use crate::support::{Random, Task, give_way, holders, poll};
use corelane::dispatch::{AsyncDispatcher, AsyncWorker, Builder, ByKey, Queue, RoundRobin, Route};
use corelane::error::{Closed, DispatchError};
use corelane::spsc::asynchronous::BUDGET;
use corelane::wait::Adaptive;
use futures_util::{FutureExt, SinkExt, StreamExt, future, stream};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

/// A kind of queue, for all the jobs of this suite.
pub(crate) trait Fans: Queue<u64, Tuning = Self::Options> + Queue<String, Tuning = Self::Options> {
    type Options: Clone + Default + Send + Sync + std::fmt::Debug + 'static;
}

impl<Q, O: Clone + Default + Send + Sync + std::fmt::Debug + 'static> Fans for Q
where
    Q: Queue<u64, Tuning = O> + Queue<String, Tuning = O>,
{
    type Options = O;
}

type Workers<T, Q> = Vec<AsyncWorker<T, Q>>;

fn fan_out_by<T: Send, Q: Queue<T>, R: Route<T>>(
    workers: usize,
    capacity: usize,
    route: R,
) -> (AsyncDispatcher<T, Q, Adaptive, R>, Workers<T, Q>) {
    let builder = Builder::new(workers).capacity(capacity).batch(2).route(route).tuning(Q::Tuning::default());
    let (dispatcher, workers) = builder.build_any::<T, Q>().expect("a good capacity");
    (dispatcher.into_async(), workers.into_iter().map(|worker| worker.into_async()).collect())
}

fn fan_out<T: Send, Q: Queue<T>>(workers: usize, capacity: usize) -> (AsyncDispatcher<T, Q>, Workers<T, Q>) {
    fan_out_by(workers, capacity, RoundRobin::new())
}

/// Dispatches until every queue is full, and says how many jobs that took.
fn fill<Q: Fans, R: Route<u64>>(dispatcher: &mut AsyncDispatcher<u64, Q, Adaptive, R>) -> u64 {
    (0..).take_while(|&job| dispatcher.try_dispatch(job).is_ok()).count() as u64
}

fn drain<T: Send, Q: Queue<T>>(worker: &mut AsyncWorker<T, Q>) -> Vec<T> {
    std::iter::from_fn(|| worker.try_pop().ok()).collect()
}

pub(crate) fn a_dropped_pop_takes_nothing<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(1, 4);
    let worker = &mut workers[0];
    let task = Task::new();
    drop(worker.pop());
    let mut pop = worker.pop();
    assert!(poll(&task, &mut pop).is_pending());
    dispatcher.try_dispatch(1).unwrap();
    assert_eq!(task.wakes(), 1);
    drop(pop);
    drop(worker.pop());
    let mut jobs = vec![9];
    drop(worker.pop_batch(&mut jobs, 5));
    assert_eq!(worker.backlog(), 1);
    let mut wait = worker.wait_for_job();
    assert_eq!(poll(&task, &mut wait), Poll::Ready(Ok(())));
    drop(wait);
    assert_eq!(poll(&task, &mut worker.pop_batch(&mut jobs, 0)), Poll::Ready(Ok(0)));
    assert_eq!(poll(&task, &mut worker.pop_batch(&mut jobs, 5)), Poll::Ready(Ok(1)));
    assert_eq!(jobs, [9, 1]);
    assert!(poll(&task, &mut worker.pop_batch(&mut jobs, 5)).is_pending());
    dispatcher.try_dispatch(2).unwrap();
    assert_eq!((task.wakes(), holders(&task)), (2, 0));
    assert_eq!(poll(&task, &mut worker.pop()), Poll::Ready(Ok(2)));
}

pub(crate) fn a_worker_that_waits_learns_of_the_end<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 4);
    let tasks = [Task::new(), Task::new()];
    for (worker, task) in workers.iter_mut().zip(&tasks) {
        assert!(poll(task, &mut worker.pop()).is_pending());
    }
    dispatcher.try_dispatch(7).unwrap();
    drop(dispatcher);
    let ends = workers.iter_mut().zip(&tasks).map(|(worker, task)| {
        assert_eq!((task.wakes(), holders(task)), (1, 0));
        let jobs = drain(worker);
        assert!(worker.is_closed());
        assert_eq!(poll(task, &mut worker.pop()), Poll::Ready(Err(Closed(()))));
        assert_eq!(poll(task, &mut worker.pop_batch(&mut Vec::new(), 1)), Poll::Ready(Err(Closed(()))));
        assert_eq!(poll(task, &mut worker.wait_for_job()), Poll::Ready(Err(Closed(()))));
        jobs
    });
    assert_eq!(ends.flatten().collect::<Vec<_>>(), [7]);
}

/// A worker that waits counts as one that sleeps: it gets what another has no time for.
pub(crate) fn a_worker_that_waits_gets_a_turn<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 8);
    let task = Task::new();
    dispatcher.try_dispatch(0).unwrap();
    assert!(poll(&task, &mut workers[1].pop()).is_pending());
    dispatcher.try_dispatch(1).unwrap();
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&task, &mut workers[1].pop()), Poll::Ready(Ok(1)));
}

/// Its end is the dispatcher's from then on: no end holds the task's waker, and nothing wakes it.
pub(crate) fn a_worker_that_leaves_lets_go_of_its_task<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 4);
    let task = Task::new();
    assert!(poll(&task, &mut workers[0].pop()).is_pending());
    assert_eq!(holders(&task), 1);
    workers.remove(0).leave().unwrap();
    assert_eq!(holders(&task), 0);
    dispatcher.try_dispatch(1).unwrap();
    assert_eq!((task.wakes(), drain(&mut workers[0])), (0, vec![1]));
}

pub(crate) fn a_dropped_dispatch_gives_its_job_back<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<String, Q>(2, 1);
    let task = Task::new();
    assert_eq!(dispatcher.dispatch("never polled".into()).into_job().unwrap(), "never polled");
    let mut dispatch = dispatcher.dispatch("first".into());
    assert_eq!(poll(&task, &mut dispatch), Poll::Ready(Ok(())));
    assert_eq!(dispatch.into_job(), None);
    assert_eq!(poll(&task, &mut dispatcher.dispatch("second".into())), Poll::Ready(Ok(())));

    let mut dispatch = dispatcher.dispatch("third".into());
    assert!(poll(&task, &mut dispatch).is_pending());
    assert_eq!(dispatch.into_job().unwrap(), "third");
    assert!(poll(&task, &mut dispatcher.dispatch("fourth, dropped".into())).is_pending());
    let mut dispatch = dispatcher.dispatch("fifth".into());
    assert!(poll(&task, &mut dispatch).is_pending());
    assert_eq!(workers[1].try_pop().unwrap(), "second");
    assert_eq!(task.wakes(), 1);
    // Woken and not polled: not dispatched.
    assert_eq!(dispatch.into_job().unwrap(), "fifth");
    assert_eq!(workers[1].backlog(), 0);
    assert_eq!(poll(&task, &mut dispatcher.dispatch("sixth".into())), Poll::Ready(Ok(())));
    assert_eq!(workers[1].try_pop().unwrap(), "sixth");
    assert_eq!(workers[0].try_pop().unwrap(), "first");
}

/// Each of the queues wakes it once; none has a waker left then.
pub(crate) fn each_queue_wakes_a_dispatcher_once<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(3, 4);
    let (early, task) = (Task::new(), Task::new());
    assert_eq!(fill(&mut dispatcher), 12);
    assert!(poll(&early, &mut dispatcher.dispatch(12)).is_pending());
    // A waker an end, and one at the desk.
    assert_eq!(holders(&early), 4);
    for _ in 0..10 {
        assert!(poll(&task, &mut dispatcher.reserve()).is_pending());
        assert_eq!((holders(&early), holders(&task)), (0, 4));
    }
    for (worker, wakes) in workers.iter_mut().zip(1..) {
        for _ in 0..4 {
            worker.try_pop().unwrap();
            assert_eq!(task.wakes(), wakes);
        }
    }
    assert_eq!((early.wakes(), holders(&task)), (0, 1));
    drop(dispatcher);
    assert_eq!(holders(&task), 0);
}

pub(crate) fn a_reservation_takes_no_room<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 1);
    let task = Task::new();
    for _ in 0..5 {
        drop(dispatcher.reserve());
        let Poll::Ready(Ok(room)) = poll(&task, &mut dispatcher.reserve()) else { panic!("there is room") };
        drop(room);
    }
    assert_eq!(fill(&mut dispatcher), 2);
    assert!(poll(&task, &mut dispatcher.reserve()).is_pending());
    assert_eq!(workers[0].try_pop(), Ok(0));
    assert_eq!(task.wakes(), 1);
    let Poll::Ready(Ok(room)) = poll(&task, &mut dispatcher.reserve()) else { panic!("there is room") };
    room.dispatch(5);
    assert_eq!((drain(&mut workers[0]), drain(&mut workers[1])), (vec![5], vec![1]));
}

/// What has room is a queue whose worker leaves, and whose jobs would fill the other one: there is room nevertheless.
pub(crate) fn reserved_room_stays<Q: Fans>() {
    for sink in [false, true] {
        let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 2);
        let task = Task::new();
        assert_eq!(fill(&mut dispatcher), 4);
        let leaves = workers.remove(0);
        let mut stays = workers.remove(0);
        assert_eq!(stays.try_pop(), Ok(2));
        if sink {
            assert!(poll(&task, &mut dispatcher.feed(5)).is_ready());
            assert_eq!(stays.try_pop(), Ok(3));
            let mut ready = poll_fn(|context| dispatcher.poll_ready_unpin(context));
            assert_eq!(poll(&task, &mut ready), Poll::Ready(Ok(())));
            leaves.leave().unwrap();
            dispatcher.start_send_unpin(6).unwrap();
        } else {
            let Poll::Ready(Ok(room)) = poll(&task, &mut dispatcher.reserve()) else { panic!("there is room") };
            leaves.leave().unwrap();
            room.dispatch(5);
            assert_eq!(stays.try_pop(), Ok(3));
            dispatcher.try_dispatch(6).unwrap_err();
        }
        let mut done = drain(&mut stays);
        assert_eq!(poll(&task, &mut SinkExt::flush(&mut dispatcher)), Poll::Ready(Ok(())));
        done.extend(drain(&mut stays));
        done.extend(dispatcher.take_returned());
        done.sort_unstable();
        assert_eq!(done, if sink { vec![0, 1, 5, 6] } else { vec![0, 1, 5] });
    }
}

pub(crate) fn a_leave_wakes_a_dispatcher_that_waits<Q: Fans>() {
    // The last worker: none is left for the job.
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(1, 2);
    let task = Task::new();
    fill(&mut dispatcher);
    let mut dispatch = dispatcher.dispatch(2);
    assert!(poll(&task, &mut dispatch).is_pending());
    workers.remove(0).leave().unwrap();
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&task, &mut dispatch), Poll::Ready(Err(DispatchError::NoWorker(2))));
    drop(dispatch);
    assert_eq!(poll(&task, &mut SinkExt::flush(&mut dispatcher)), Poll::Ready(Err(DispatchError::NoWorker(None))));
    // Its jobs go to the next one, before the new one.
    let mut worker = dispatcher.add_worker().unwrap().into_async();
    let mut dispatch = dispatcher.dispatch(2);
    assert!(poll(&task, &mut dispatch).is_pending());
    assert_eq!(worker.try_pop(), Ok(0));
    assert_eq!(poll(&task, &mut dispatch), Poll::Ready(Ok(())));
    drop(dispatch);
    assert_eq!(drain(&mut worker), [1, 2]);
    assert_eq!(poll(&task, &mut SinkExt::flush(&mut dispatcher)), Poll::Ready(Ok(())));

    // One of two, the other one being full: it goes on waiting, for the other one.
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 2);
    fill(&mut dispatcher);
    let task = Task::new();
    let mut dispatch = dispatcher.dispatch(4);
    assert!(poll(&task, &mut dispatch).is_pending());
    drop(workers.remove(0));
    assert_eq!(task.wakes(), 1);
    assert!(poll(&task, &mut dispatch).is_pending());
    assert_eq!((task.wakes(), holders(&task)), (1, 2));
    let mut done = Vec::new();
    for _ in 0..3 {
        done.push(workers[0].try_pop().unwrap());
        let _ = poll(&task, &mut dispatch);
    }
    assert_eq!(dispatch.into_job(), None);
    done.extend(drain(&mut workers[0]));
    assert_eq!(done, [2, 3, 0, 1, 4]);
}

pub(crate) fn a_panic_surfaces<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 1);
    let task = Task::new();
    fill(&mut dispatcher);
    let mut dispatch = dispatcher.dispatch(2);
    assert!(poll(&task, &mut dispatch).is_pending());
    let mut run = Box::pin(workers.remove(0).run(async |worker| {
        give_way().await;
        assert_ne!(worker.pop().await, Ok(0), "not this one");
    }));
    assert!(poll(&task, &mut run).is_pending());
    assert_eq!(poll(&task, &mut run), Poll::Ready(None));
    assert!(task.wakes() >= 2);
    assert_eq!(poll(&task, &mut dispatch), Poll::Ready(Err(DispatchError::Panicked(2))));
    drop(dispatch);
    assert_eq!(poll(&task, &mut dispatcher.send(3)), Poll::Ready(Err(DispatchError::Panicked(None))));
    assert!(matches!(poll(&task, &mut dispatcher.reserve()), Poll::Ready(Err(DispatchError::Panicked(())))));
    let mut jobs = vec![3];
    let some = poll(&task, &mut dispatcher.dispatch_batch(&mut jobs));
    assert_eq!((some, jobs), (Poll::Ready(Err(DispatchError::Panicked(()))), vec![3]));
    let panic = dispatcher.take_panic().unwrap();
    assert_eq!(panic.worker(), 0);
    assert!(panic.message().unwrap().contains("not this one"));

    // Outside of `run`, in a task of its own, which ends with that.
    let mut worker = workers.remove(0);
    let mut work = Box::pin(async move { assert_ne!(worker.pop().await, Ok(1)) });
    thread::spawn(move || poll(&Task::new(), &mut work)).join().unwrap_err();
    let mut dispatch = dispatcher.dispatch(2);
    assert_eq!(poll(&task, &mut dispatch), Poll::Ready(Err(DispatchError::Panicked(2))));
    drop(dispatch);
    let panic = dispatcher.take_panic().unwrap();
    assert_eq!((panic.worker(), panic.message()), (1, None));

    // A worker that does not panic says what it did.
    let worker = dispatcher.add_worker().unwrap().into_async();
    assert_eq!(poll(&task, &mut dispatcher.dispatch(5)), Poll::Ready(Ok(())));
    let mut run = Box::pin(worker.run(async |worker| worker.pop().await.unwrap() + 1));
    assert_eq!(poll(&task, &mut run), Poll::Ready(Some(6)));
    // And one whose work is given up has left.
    let worker = dispatcher.add_worker().unwrap().into_async();
    let mut run = Box::pin(worker.run(async |worker| worker.pop().await));
    assert!(poll(&task, &mut run).is_pending());
    assert_eq!(poll(&task, &mut dispatcher.dispatch(7)), Poll::Ready(Ok(())));
    drop(run);
    assert_eq!(dispatcher.try_flush(), 1);
    assert_eq!((dispatcher.take_returned(), dispatcher.workers()), (vec![7], 0));
}

/// A job of a key waits for one worker: the others do not wake it. When that one leaves it is another's, whose room it
/// waits for from then on.
pub(crate) fn a_key_waits_for_its_worker<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out_by::<u64, Q, _>(3, 2, ByKey::new(|job: &u64| job % 1000));
    let task = Task::new();
    // Keys by the worker they go to.
    let mut keys = [const { Vec::new() }; 3];
    for key in 0..100 {
        dispatcher.try_dispatch(key).unwrap();
        let at = workers.iter_mut().position(|worker| worker.try_pop().is_ok()).unwrap();
        keys[at].push(key);
    }
    for worker in &keys {
        dispatcher.try_dispatch(worker[0]).unwrap();
        dispatcher.try_dispatch(worker[0] + 1000).unwrap();
    }
    let late = keys[1][0] + 2000;
    let mut dispatch = dispatcher.dispatch(late);
    assert!(poll(&task, &mut dispatch).is_pending());
    assert_eq!(holders(&task), 2);
    assert_eq!(drain(&mut workers[0]).len(), 2);
    assert_eq!(workers[2].try_pop(), Ok(keys[2][0]));
    assert_eq!(task.wakes(), 0);
    assert_eq!(workers[1].try_pop(), Ok(keys[1][0]));
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&task, &mut dispatch), Poll::Ready(Ok(())));
    drop(dispatch);

    // Room for any key is room at each of them.
    let mut ready = dispatcher.reserve();
    assert!(poll(&task, &mut ready).is_pending());
    drop(ready);
    assert_eq!(drain(&mut workers[1]).len(), 2);
    assert!(matches!(poll(&task, &mut dispatcher.reserve()), Poll::Ready(Ok(_))));

    // Of a worker that leaves two keys come back, which go to different workers. Both are full, so it waits for the one
    // and then for the other.
    let (mut dispatcher, mut workers) = fan_out_by::<u64, Q, _>(3, 1, ByKey::new(|job: &u64| job % 1000));
    let task = Task::new();
    let queued = [0, 1, 2].map(|at: usize| keys[at][0]);
    queued.iter().for_each(|&job| dispatcher.try_dispatch(job).unwrap());
    let mut dispatch = dispatcher.dispatch(queued[0] + 1000);
    assert!(poll(&task, &mut dispatch).is_pending());
    drop(workers.remove(0));
    assert_eq!(task.wakes(), 1);
    assert!(poll(&task, &mut dispatch).is_pending());
    let mut done = Vec::new();
    let mut polls = 0;
    while poll(&task, &mut dispatch).is_pending() {
        // A worker that has a job takes one, if that is what the dispatcher waits for; or else another does that has
        // one.
        let wakes = task.wakes();
        for worker in &mut workers {
            if task.wakes() == wakes {
                done.extend(worker.try_pop());
            }
        }
        assert_ne!(task.wakes(), wakes, "it waits for no worker that has a job");
        polls += 1;
        assert!(polls < 10);
    }
    drop(dispatch);
    workers.iter_mut().for_each(|worker| done.extend(drain(worker)));
    let mut all = queued.to_vec();
    all.push(queued[0] + 1000);
    done.sort_unstable();
    all.sort_unstable();
    assert_eq!(done, all);
}

pub(crate) fn join_waits_for_the_last_worker<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 2);
    let task = Task::new();
    fill(&mut dispatcher);
    // What came back goes out first, which needs room.
    drop(workers.remove(0));
    assert_eq!(dispatcher.try_flush(), 2);
    let mut join = dispatcher.join();
    assert!(poll(&task, &mut join).is_pending());
    let mut done = Vec::new();
    let mut worker = workers.remove(0);
    for _ in 0..4 {
        done.push(worker.try_pop().unwrap());
        assert!(poll(&task, &mut join).is_pending());
    }
    assert_eq!(done, [2, 3, 0, 1]);
    assert_eq!(poll(&task, &mut worker.pop()), Poll::Ready(Err(Closed(()))));
    let wakes = task.wakes();
    assert!(poll(&task, &mut join).is_pending());
    drop(worker);
    assert_eq!(task.wakes(), wakes + 1);
    assert!(matches!(poll(&task, &mut join), Poll::Ready(Ok(()))));

    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 2);
    fill(&mut dispatcher);
    let mut join = dispatcher.join();
    assert!(poll(&task, &mut join).is_pending());
    drop(workers.remove(0));
    assert!(poll(&task, &mut workers.remove(0).run(async |_| panic!("late")).boxed()).is_ready());
    let Poll::Ready(Err(unfinished)) = poll(&task, &mut join) else { panic!("all have left") };
    assert_eq!(unfinished.undone, [0, 1, 2, 3]);
    assert_eq!(unfinished.panics[0].message(), Some("late"));
}

pub(crate) fn a_dropped_join_gives_back_what_came_back<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, 2);
    let task = Task::new();
    fill(&mut dispatcher);
    drop(workers.remove(0));
    let mut join = dispatcher.join();
    assert!(poll(&task, &mut join).is_pending());
    assert_eq!(join.into_unfinished().undone, [0, 1]);
    assert_eq!(holders(&task), 0);
    // The other one does what is in its queue.
    assert_eq!(drain(&mut workers[0]), [2, 3]);
    assert_eq!(poll(&task, &mut workers[0].pop()), Poll::Ready(Err(Closed(()))));
}

pub(crate) fn ends_become_threads_again<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(1, 1);
    let task = Task::new();
    assert!(poll(&task, &mut workers[0].pop()).is_pending());
    let mut worker = workers.remove(0).into_blocking();
    assert_eq!(holders(&task), 0);
    dispatcher.try_dispatch(0).unwrap();
    assert!(poll(&task, &mut dispatcher.dispatch(1)).is_pending());
    let mut dispatcher = dispatcher.into_blocking();
    assert_eq!((task.wakes(), holders(&task)), (0, 0));
    thread::scope(|scope| {
        let dispatch = scope.spawn(move || {
            (1..5).for_each(|job| dispatcher.dispatch(job).unwrap());
            dispatcher
        });
        thread::sleep(Duration::from_millis(5));
        (0..5).for_each(|job| assert_eq!(worker.pop(), Ok(job)));
        let mut dispatcher = dispatch.join().unwrap();
        let pop = scope.spawn(|| worker.pop());
        thread::sleep(Duration::from_millis(5));
        dispatcher.dispatch(5).unwrap();
        assert_eq!(pop.join().unwrap(), Ok(5));
    });
    assert_eq!(task.wakes(), 0);
}

pub(crate) fn a_turn_for_others<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(1, 1000);
    let task = Task::new();
    for job in 0..u64::from(BUDGET) {
        assert_eq!(poll(&task, &mut dispatcher.dispatch(job)), Poll::Ready(Ok(())));
    }
    let mut dispatch = dispatcher.dispatch(BUDGET.into());
    assert!(poll(&task, &mut dispatch).is_pending());
    assert_eq!((task.wakes(), holders(&task)), (1, 0));
    assert_eq!(poll(&task, &mut dispatch), Poll::Ready(Ok(())));
    drop(dispatch);
    for job in 0..u64::from(BUDGET) {
        assert_eq!(poll(&task, &mut workers[0].pop()), Poll::Ready(Ok(job)));
    }
    assert!(poll(&task, &mut workers[0].pop()).is_pending());
    assert_eq!((task.wakes(), holders(&task)), (2, 0));
    assert_eq!(poll(&task, &mut workers[0].pop()), Poll::Ready(Ok(BUDGET.into())));
}

pub(crate) fn a_sink_and_a_stream<Q: Fans>() {
    let (mut dispatcher, mut workers) = fan_out::<u64, Q>(1, 3);
    let worker = workers.remove(0);
    let jobs = futures_executor::block_on(async {
        let send = async move {
            dispatcher.send_all(&mut stream::iter(0..500).map(Ok)).await.unwrap();
            // A close is a flush: others can send after it.
            SinkExt::close(&mut dispatcher).await.unwrap();
            stream::iter(500..1000).map(Ok).forward(&mut dispatcher).await.unwrap();
            dispatcher.join().await.unwrap();
        };
        future::join(worker.collect::<Vec<_>>(), send).await.0
    });
    assert!(jobs.into_iter().eq(0..1000));

    let (mut dispatcher, workers) = fan_out::<u64, Q>(1, 1);
    assert_eq!(dispatcher.start_send_unpin(1), Ok(()));
    // No worker has said ready.
    assert_eq!(dispatcher.start_send_unpin(2), Err(DispatchError::Full(Some(2))));
    drop(workers);
    assert_eq!(futures_executor::block_on(dispatcher.send(3)), Err(DispatchError::NoWorker(None)));
    assert_eq!(dispatcher.start_send_unpin(4), Err(DispatchError::NoWorker(Some(4))));
}

/// Every future is dropped now and then, at whatever point it is, and workers come and go: each job is done once, or
/// comes back.
pub(crate) fn every_point_of_a_stream<Q: Fans>() {
    for capacity in [1, 2, 65] {
        let (mut dispatcher, mut workers) = fan_out::<u64, Q>(2, capacity);
        let (mut next, mut done) = (0, Vec::new());
        let mut random = Random::new(capacity as u64);
        let task = Task::new();
        while next < 3_000 {
            match random.below(9) {
                0..3 => {
                    let mut dispatch = dispatcher.dispatch(next);
                    if random.below(4) != 0 {
                        match poll(&task, &mut dispatch) {
                            Poll::Ready(outcome) => outcome.unwrap(),
                            Poll::Pending => {}
                        }
                    }
                    next += u64::from(dispatch.into_job().is_none());
                }
                3 => {
                    if let Poll::Ready(room) = poll(&task, &mut dispatcher.reserve())
                        && random.below(2) == 0
                    {
                        room.unwrap().dispatch(next);
                        next += 1;
                    }
                }
                4 => {
                    let mut jobs = vec![next, next + 1, next + 2];
                    let done = poll(&task, &mut dispatcher.dispatch_batch(&mut jobs)).map(Result::unwrap);
                    assert_eq!(done.is_ready(), jobs.is_empty());
                    // What is left in the vector was not handed out.
                    next += 3 - jobs.len() as u64;
                }
                5 if random.below(20) == 0 => {
                    drop(workers.remove(random.below(2) as usize));
                    workers.push(dispatcher.add_worker().unwrap().into_async());
                }
                choice => {
                    let worker = &mut workers[random.below(2) as usize];
                    if choice == 8 {
                        let mut take = worker.pop_batch(&mut done, 3);
                        let _ = poll(&task, &mut take);
                    } else if let Poll::Ready(job) = poll(&task, &mut worker.pop()) {
                        done.push(job.unwrap());
                    }
                }
            }
            assert!(holders(&task) <= 5, "a waker an end, and one at the desk");
        }
        let mut join = dispatcher.join();
        while poll(&task, &mut join).is_pending() {
            let worker = &mut workers[0];
            done.extend(drain(worker));
            if worker.is_closed() {
                drop(workers.remove(0));
            } else {
                done.extend(drain(&mut workers[1]));
            }
        }
        done.sort_unstable();
        assert!(done.into_iter().eq(0..next));
    }
}

/// A worker that is a thread's and two that are tasks'. Each sees its jobs in order, and all see each once.
pub(crate) fn jobs_in_order<Q: Fans, E: Executor>() {
    const JOBS: u64 = 2_000;
    for capacity in [1, 3, 100] {
        let (mut dispatcher, mut workers) = fan_out::<u64, Q>(3, capacity);
        let mut blocking = workers.remove(0).into_blocking();
        let thread = thread::spawn(move || blocking.jobs().collect::<Vec<_>>());
        let dispatch = async move {
            let mut next = 0;
            while next < JOBS {
                match next % 7 {
                    0 => {
                        dispatcher.reserve().await.unwrap().dispatch(next);
                        next += 1;
                    }
                    1 => {
                        let mut jobs = (next..JOBS.min(next + 20)).collect::<Vec<_>>();
                        next += jobs.len() as u64;
                        dispatcher.dispatch_batch(&mut jobs).await.unwrap();
                    }
                    _ => {
                        dispatcher.dispatch(next).await.unwrap();
                        next += 1;
                    }
                }
            }
            dispatcher.join().await.unwrap();
        };
        let work = future::join_all(workers.into_iter().map(async |mut worker| {
            let mut jobs = Vec::new();
            loop {
                match worker.pop().await {
                    Ok(job) => jobs.push(job),
                    Err(Closed(())) => return jobs,
                }
                let _ = worker.pop_batch(&mut jobs, 5).now_or_never();
            }
        }));
        let ((), mut all) = E::run(dispatch, work);
        all.push(thread.join().unwrap());
        for jobs in &all {
            assert!(jobs.is_sorted(), "jobs of one worker are in the order of their dispatch");
        }
        let mut all = all.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..JOBS));
    }
}

/// A dispatch in one arm of a `select!`, workers that come and go: each job is done once.
pub(crate) fn dispatches_that_lose_a_race<Q: Fans, E: Executor>() {
    const JOBS: u64 = 2_000;
    let (mut dispatcher, workers) = fan_out::<u64, Q>(2, 2);
    let (hire, hired) = futures_channel();
    workers.into_iter().for_each(|worker| hire.lock().unwrap().push(worker));
    let dispatch = async move {
        let mut random = Random::new(6);
        let mut lost = 0;
        for job in 0..JOBS {
            let mut job = job;
            loop {
                let turns = random.below(3);
                let mut dispatch = dispatcher.dispatch(job);
                let is_over = tokio::select! {
                    biased;
                    () = async { for _ in 0..turns { give_way().await } } => false,
                    done = &mut dispatch => done.is_ok(),
                };
                match dispatch.into_job() {
                    // A worker may be gone, and its successor not here yet.
                    None if !is_over => unreachable!("an error has the job"),
                    None => break,
                    Some(back) => job = back,
                }
                lost += 1;
            }
            if dispatcher.workers() < 2 {
                hire.lock().unwrap().push(dispatcher.add_worker().unwrap().into_async());
            }
        }
        drop(hire);
        // From workers that left after the last dispatch.
        let unfinished = dispatcher.join().await.err();
        assert!(unfinished.iter().all(|unfinished| unfinished.panics.is_empty()));
        (lost, unfinished.map_or(Vec::new(), |unfinished| unfinished.undone))
    };
    let work = async move {
        let mut random = Random::new(7);
        let (mut done, mut workers) = (Vec::new(), Vec::<AsyncWorker<u64, Q>>::new());
        loop {
            workers.append(&mut hired.lock().unwrap());
            if workers.is_empty() {
                return done;
            }
            let at = random.below(workers.len() as u64) as usize;
            // The last one stays: without any a dispatch would be refused.
            if workers.len() > 1 && random.below(50) == 0 {
                drop(workers.remove(at));
                continue;
            }
            let turns = 1 + random.below(3);
            tokio::select! {
                biased;
                job = workers[at].pop() => match job {
                    Ok(job) => done.push(job),
                    Err(Closed(())) => drop(workers.remove(at)),
                },
                () = async { for _ in 0..turns { give_way().await } } => {}
            }
        }
    };
    let ((lost, undone), mut done) = E::run(dispatch, work);
    assert_ne!(lost, 0, "no dispatch was ever dropped");
    done.extend(undone);
    done.sort_unstable();
    assert!(done.into_iter().eq(0..JOBS));
}

type Hired<T> = Arc<std::sync::Mutex<Vec<T>>>;

fn futures_channel<T>() -> (Hired<T>, Hired<T>) {
    let place = Hired::default();
    (place.clone(), place)
}
