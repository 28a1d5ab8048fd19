//! Each job is done once, or comes back, whichever workers come and go.

use crate::{Case, Drops, build};
use corelane::dispatch::{Builder, ByKey};
use std::sync::Mutex;
use std::thread;

pub(crate) fn keys_keep_their_order_under_load<C: Case>() {
    const KEYS: u64 = 40;
    const JOBS: u64 = 6_000;
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
