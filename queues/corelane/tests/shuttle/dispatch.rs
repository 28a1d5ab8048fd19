//! One dispatcher and workers that come and go.

use crate::thread::{self, JoinHandle};
use crate::{Item, Wait, draw, explore, in_time, many, one_of, wait};
use corelane::dispatch::{Builder, ByKey, Collector, Dispatcher, LeastLoaded, Mpmc, Queue, RoundRobin, Route, Worker};
use corelane::error::{DispatchError, PopTimeoutError, TryPopError};
use corelane::mpmc::Ticket;
use corelane::spsc::{BQueue, Lane, Linked};

/// A kind of queue under test.
trait Tested: Queue<Item, Tuning = Self::Options> + Queue<usize, Tuning = Self::Options> + 'static {
    type Options: Clone + Default + Send + 'static;
}

impl<Q, O: Clone + Default + Send + 'static> Tested for Q
where
    Q: Queue<Item, Tuning = O> + Queue<usize, Tuning = O> + 'static,
{
    type Options = O;
}

type Tx<T, Q, R> = Dispatcher<T, Q, Wait, R>;
type Rx<T, Q> = Worker<T, Q, Wait>;

fn fan_out<Q: Tested, R: Route<Item>>(workers: usize, route: R) -> (Tx<Item, Q, R>, Vec<Rx<Item, Q>>) {
    let capacity = if cfg!(corelane_shuttle) { one_of(&[1, 2, 4, 16]) } else { one_of(&[1, 2, 30, 1_000]) };
    let builder = Builder::new(workers).capacity(capacity).batch(draw(0..capacity) + 1).wait(wait());
    builder.tuning(<Q as Tested>::Options::default()).route(route).build_any().unwrap()
}

/// Does jobs by drawn calls until there are no more, or so many are done. The numbers of those it has done, and of
/// those that are left over as the dispatcher is gone.
fn work<Q: Tested>(mut worker: Rx<Item, Q>, most: usize) -> Vec<usize> {
    let mut done = Vec::new();
    while done.len() < most {
        match draw(0..4) {
            0 => match worker.try_pop() {
                Ok(job) => done.push(job.id),
                Err(TryPopError::Empty) => thread::yield_now(),
                Err(_) => return done,
            },
            1 => match in_time(PopTimeoutError::is_timeout, |time| worker.pop_timeout(time)) {
                Ok(job) => done.push(job.id),
                Err(PopTimeoutError::Closed) => return done,
                Err(_) => {}
            },
            2 => {
                let mut jobs = Vec::new();
                if worker.pop_batch(&mut jobs, draw(1..8)).is_err() {
                    return done;
                }
                done.extend(jobs.iter().map(|job| job.id));
            }
            _ => match worker.pop() {
                Ok(job) => done.push(job.id),
                Err(_) => return done,
            },
        }
    }
    if let Err(left) = worker.leave() {
        done.extend(left.iter().map(|job| job.id));
    }
    done
}

/// Does the jobs that come, and not all of them if the worker is one that leaves.
fn start<Q: Tested>(worker: Rx<Item, Q>, leaves: bool) -> JoinHandle<Vec<usize>>
where
    Rx<Item, Q>: Send,
{
    let most = if leaves { many(draw(0..20)) } else { usize::MAX };
    thread::spawn(move || work(worker, most))
}

/// Each job is done by a worker, or comes back, wherever workers leave and join.
fn jobs_are_done_once<Q: Tested, R: Route<Item> + Send + 'static>(route: fn() -> R)
where
    Rx<Item, Q>: Send,
{
    explore(move || {
        let (mut dispatcher, workers) = fan_out::<Q, R>(draw(1..4), route());
        let mut threads = Vec::new();
        for worker in workers {
            threads.push(start(worker, draw(0..2) == 0));
        }
        // One that stays, so that all can be done.
        threads.push(start(dispatcher.add_worker().unwrap(), false));
        let jobs = many(draw(1..80));
        let mut next = 0;
        while next < jobs {
            let refused = match draw(0..6) {
                0 => match dispatcher.try_dispatch(Item::new(next)) {
                    Err(DispatchError::Full(job)) => {
                        assert_eq!(job.id, next);
                        thread::yield_now();
                        continue;
                    }
                    done => done,
                },
                1 => {
                    match in_time(DispatchError::is_timeout, |time| dispatcher.dispatch_timeout(Item::new(next), time))
                    {
                        Err(DispatchError::Timeout(job)) => {
                            assert_eq!(job.id, next);
                            thread::yield_now();
                            continue;
                        }
                        done => done,
                    }
                }
                2 => {
                    let mut batch = (next..jobs).take(draw(1..20)).map(Item::new).collect::<Vec<_>>();
                    next += batch.len();
                    dispatcher.dispatch_batch(&mut batch).expect("one stays");
                    continue;
                }
                3 if draw(0..10) == 0 => {
                    threads.push(start(dispatcher.add_worker().unwrap(), draw(0..2) == 0));
                    continue;
                }
                3 => {
                    dispatcher.flush();
                    continue;
                }
                _ => dispatcher.dispatch(Item::new(next)),
            };
            match refused {
                Ok(()) => next += 1,
                // One stays, and there is always room in the end.
                Err(error) => panic!("{error}"),
            }
        }
        let mut done = Vec::new();
        if let Err(unfinished) = dispatcher.join() {
            assert!(unfinished.panics.is_empty());
            done.extend(unfinished.undone.iter().map(|job| job.id));
        }
        done.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
        done.sort_unstable();
        assert!(done.iter().copied().eq(0..jobs), "{done:?}");
    });
}

/// Workers leave until none is there: the jobs they leave behind are there to be taken.
fn what_the_last_one_leaves_comes_back<Q: Tested>()
where
    Rx<Item, Q>: Send,
{
    explore(|| {
        let (mut dispatcher, workers) = fan_out::<Q, _>(draw(1..4), RoundRobin::new());
        let threads = workers.into_iter().map(|worker| start(worker, true)).collect::<Vec<_>>();
        let mut dispatched = 0;
        let refused = loop {
            match dispatcher.dispatch(Item::new(dispatched)) {
                Ok(()) => {
                    dispatched += 1;
                    // A queue without a bound never makes it wait.
                    thread::yield_now();
                }
                Err(DispatchError::NoWorker(job)) => break job.id,
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(refused, dispatched);
        let mut jobs = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>();
        if draw(0..2) == 0 {
            // Or another worker comes, and does them.
            let worker = start(dispatcher.add_worker().unwrap(), false);
            dispatcher.dispatch(Item::new(dispatched)).expect("there is a worker");
            dispatched += 1;
            if let Err(unfinished) = dispatcher.join() {
                assert!(unfinished.panics.is_empty());
                jobs.extend(unfinished.undone.iter().map(|job| job.id));
            }
            jobs.extend(worker.join().unwrap());
        } else {
            jobs.extend(dispatcher.take_returned().iter().map(|job| job.id));
            drop(dispatcher);
        }
        jobs.sort_unstable();
        assert!(jobs.iter().copied().eq(0..dispatched), "{jobs:?}");
    });
}

/// The dispatcher goes while workers do; what is left is the workers', or is dropped, by the dispatcher if a worker has
/// left before.
fn all_go_at_once<Q: Tested>()
where
    Rx<Item, Q>: Send,
{
    explore(|| {
        let (mut dispatcher, workers) = fan_out::<Q, _>(draw(1..4), RoundRobin::new());
        let leave = workers.iter().map(|_| draw(0..2) == 0).collect::<Vec<_>>();
        let threads = workers.into_iter().zip(&leave).map(|(worker, &leaves)| start(worker, leaves));
        let threads = threads.collect::<Vec<_>>();
        let jobs = 0..draw(0..20);
        let dispatched = jobs.filter(|&id| dispatcher.try_dispatch(Item::new(id)).is_ok()).collect::<Vec<_>>();
        // What comes back later than this goes with the dispatcher.
        let mut jobs = dispatcher.take_returned().iter().map(|job| job.id).collect::<Vec<_>>();
        drop(dispatcher);
        jobs.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
        jobs.sort_unstable();
        assert!(jobs.is_sorted_by(|one, next| one < next), "a job was done twice: {jobs:?}");
        assert!(jobs.iter().all(|job| dispatched.contains(job)), "{jobs:?} of {dispatched:?}");
        assert!(leave.contains(&true) || jobs == dispatched, "no worker has left: {jobs:?} of {dispatched:?}");
    });
}

macro_rules! queues {
    ($($name:ident: $queue:ty),+ $(,)?) => {
        $(mod $name {
            use super::*;

            #[test]
            fn jobs_are_done_once_in_turn() {
                jobs_are_done_once::<$queue, _>(RoundRobin::new);
            }

            #[test]
            fn jobs_are_done_once_by_load() {
                jobs_are_done_once::<$queue, _>(LeastLoaded::new);
            }

            #[test]
            fn jobs_are_done_once_by_key() {
                jobs_are_done_once::<$queue, _>(|| ByKey::new(|job: &Item| job.id as u64 % 7));
            }

            #[test]
            fn what_the_last_one_leaves_comes_back() {
                super::what_the_last_one_leaves_comes_back::<$queue>();
            }

            #[test]
            fn all_go_at_once() {
                super::all_go_at_once::<$queue>();
            }
        })+
    };
}

queues! {
    lane: Lane,
    linked: Linked,
    bqueue: BQueue,
    ticket: Mpmc<Ticket>,
}

/// One thread dispatches and collects, and every queue is short: no thread waits for ever.
#[test]
fn results_make_room_for_jobs() {
    explore(|| {
        let (count, jobs) = (draw(1..4), many(draw(1..60)));
        let builder = Builder::new(count).capacity(one_of(&[1, 2, 8])).wait(wait());
        let (mut dispatcher, workers) = builder.build::<usize>().unwrap();
        let mut results: Collector<usize, Lane, Wait> = Collector::with(one_of(&[1, 2, 8]), wait());
        let threads = workers.into_iter().map(|mut worker| {
            let mut producer = results.add().unwrap();
            thread::spawn(move || {
                for job in &mut worker {
                    producer.push(job + 1_000).unwrap();
                }
            })
        });
        let threads = threads.collect::<Vec<_>>();
        let mut got = Vec::new();
        for job in 0..jobs {
            dispatcher.dispatch_collecting(job, &mut results, |_, result| got.push(result)).unwrap();
        }
        drop(dispatcher);
        while let Ok((_, result)) = results.collect() {
            got.push(result);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        got.sort_unstable();
        assert!(got.into_iter().eq(1_000..1_000 + jobs));
    });
}
