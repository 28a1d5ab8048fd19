//! Each job is done once, or comes back, whichever workers come and go.

use crate::{Case, Drops, Rx, build};
use corelane::dispatch::{Builder, ByKey, LeastLoaded};
use corelane::wait::{Adaptive, Park, Strategy, Yield};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;

/// How often each job was done.
struct Tally(Vec<AtomicU8>);

impl Tally {
    fn new(jobs: u64) -> Self {
        Self((0..jobs).map(|_| AtomicU8::new(0)).collect())
    }

    fn done(&self, job: u64) {
        self.0[job as usize].fetch_add(1, Relaxed);
    }

    fn assert_all_once(&self) {
        for (job, done) in self.0.iter().enumerate() {
            assert_eq!(done.load(Relaxed), 1, "job {job}");
        }
    }
}

fn stream<C: Case, W: Strategy>(wait: W, workers: usize, capacity: usize) {
    const JOBS: u64 = 30_000;
    let tally = &Tally::new(JOBS);
    let (mut dispatcher, workers) = build::<C, u64, _, _>(Builder::new(workers).capacity(capacity).wait(wait));
    thread::scope(|scope| {
        for (number, mut worker) in workers.into_iter().enumerate() {
            scope.spawn(move || {
                if number == 0 {
                    return worker.jobs().for_each(|job| tally.done(job));
                }
                if number == 1 {
                    while worker.pop_each(20, |job| tally.done(job)).is_ok() {}
                    return;
                }
                let mut jobs = Vec::new();
                while worker.pop_batch(&mut jobs, 20).is_ok() {
                    jobs.drain(..).for_each(|job| tally.done(job));
                }
            });
        }
        for job in 0..JOBS / 2 {
            dispatcher.dispatch(job).unwrap();
        }
        let rest = (JOBS / 2..JOBS).collect::<Vec<_>>();
        rest.chunks(45).for_each(|jobs| dispatcher.dispatch_slice(jobs).unwrap());
        dispatcher.join().unwrap();
    });
    tally.assert_all_once();
}

pub(crate) fn each_job_is_done_once<C: Case>() {
    for capacity in [1, 10, 500] {
        stream::<C, _>(Park, 3, capacity);
        stream::<C, _>(Adaptive, 3, capacity);
        stream::<C, _>(Yield, 2, capacity);
    }
}

/// Does some jobs and goes; the last one stays to the end.
fn work<C: Case>(mut worker: Rx<u64, C>, jobs: u64, tally: &Tally) {
    for _ in 0..jobs {
        match worker.pop() {
            Ok(job) => tally.done(job),
            Err(_) => break,
        }
    }
    // After the dispatcher is gone a worker keeps what it has: then it does it.
    if let Err(left) = worker.leave() {
        left.into_iter().for_each(|job| tally.done(job));
    }
}

pub(crate) fn each_job_is_done_once_while_workers_come_and_go<C: Case>() {
    const JOBS: u64 = 20_000;
    let tally = &Tally::new(JOBS);
    let (mut dispatcher, workers) =
        build::<C, u64, _, _>(Builder::new(2).capacity(20).batch(7).route(LeastLoaded::new()));
    thread::scope(|scope| {
        for (number, worker) in (1..).zip(workers) {
            scope.spawn(move || work::<C>(worker, 300 * number, tally));
        }
        for job in 0..JOBS {
            // Workers come, stay for a while and go, all the time; one at least is there.
            if job % 211 == 0 {
                let worker = dispatcher.add_worker().unwrap();
                scope.spawn(move || work::<C>(worker, 150 + job % 97, tally));
            }
            if job % 997 == 0 {
                let worker = dispatcher.add_worker().unwrap();
                let patience = if job == 0 { u64::MAX } else { 1 };
                scope.spawn(move || work::<C>(worker, patience, tally));
            }
            dispatcher.dispatch(job).unwrap();
        }
        while dispatcher.flush() > 0 {
            thread::yield_now();
        }
        if let Err(unfinished) = dispatcher.join() {
            assert!(unfinished.panics.is_empty());
            unfinished.undone.into_iter().for_each(|job| tally.done(job));
        }
    });
    tally.assert_all_once();
}

pub(crate) fn keys_keep_their_order_under_load<C: Case>() {
    const KEYS: u64 = 40;
    const JOBS: u64 = 20_000;
    let route = ByKey::new(|job: &(u64, u64)| job.0);
    let (mut dispatcher, workers) = build::<C, (u64, u64), _, _>(Builder::new(3).capacity(30).route(route));
    let next = &(0..KEYS).map(|_| Mutex::new(0)).collect::<Vec<_>>();
    thread::scope(|scope| {
        for mut worker in workers {
            scope.spawn(move || {
                for (key, count) in &mut worker {
                    // No other worker does this key's jobs.
                    let mut next = next[key as usize].try_lock().unwrap();
                    assert_eq!(*next, count);
                    *next += 1;
                }
            });
        }
        for job in 0..JOBS {
            dispatcher.dispatch((job % KEYS, job / KEYS)).unwrap();
        }
        dispatcher.join().unwrap();
    });
    assert!(next.iter().all(|next| *next.lock().unwrap() == JOBS / KEYS));
}

pub(crate) fn each_job_is_dropped_once<C: Case>() {
    let drops = Drops::default();
    let fill = || {
        let (mut dispatcher, workers) = build::<C, crate::Item, _, _>(Builder::new(2).capacity(8).batch(4));
        (0..12).for_each(|job| dispatcher.dispatch(drops.item(job)).unwrap());
        (dispatcher, workers)
    };
    // The dispatcher goes first, or last, or with what came back.
    let (dispatcher, workers) = fill();
    drop(dispatcher);
    assert_eq!(drops.count(), 0);
    drop(workers);
    assert_eq!(drops.count(), 12);
    let (dispatcher, workers) = fill();
    drop(workers);
    assert_eq!(drops.count(), 12);
    drop(dispatcher);
    assert_eq!(drops.count(), 24);
    let (mut dispatcher, mut workers) = fill();
    assert_eq!(workers[1].pop().unwrap().number, 4);
    drop(workers);
    assert_eq!(dispatcher.flush(), 11);
    assert_eq!(drops.count(), 25);
    assert_eq!(dispatcher.take_returned().len(), 11);
    drop(dispatcher);
    assert_eq!(drops.count(), 36);
    // A panic with jobs in hand and jobs in the queue.
    let (dispatcher, mut workers) = fill();
    workers.remove(0).run(|worker| {
        let mut jobs = Vec::new();
        worker.pop_batch(&mut jobs, 2).unwrap();
        panic!("with {} jobs", jobs.len());
    });
    assert_eq!(drops.count(), 38);
    drop((dispatcher, workers));
    assert_eq!(drops.count(), 48);
    // A panic in the middle of a batch: what was not given to the job is still in the queue, and comes back.
    let (mut dispatcher, mut workers) = fill();
    workers.remove(0).run(|worker| {
        worker.pop_each(usize::MAX, |job| assert_ne!(job.number, 2)).unwrap();
    });
    assert_eq!(drops.count(), 51);
    drop(workers);
    dispatcher.flush();
    assert_eq!(dispatcher.take_returned().len(), 9);
    drop(dispatcher);
    assert_eq!(drops.count(), 60);
}
