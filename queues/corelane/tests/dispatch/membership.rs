//! Workers join and leave.

use crate::{Case, build, drain};
use corelane::dispatch::{Builder, ByKey};
use corelane::error::DispatchError;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

pub(crate) fn jobs_of_a_worker_that_leaves_go_to_the_others<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(3).batch(4));
    (0..12).for_each(|job| dispatcher.dispatch(job).unwrap());
    assert_eq!(workers[0].pop(), Ok(0));
    workers.remove(0).leave().unwrap();
    assert_eq!(dispatcher.workers(), 3, "not heard of");
    // With the next call, whatever it is, and before its job.
    dispatcher.dispatch(12).unwrap();
    assert_eq!(dispatcher.workers(), 2);
    let got = workers.iter_mut().map(drain::<_, C, _>).collect::<Vec<_>>();
    let moved = got.iter().flatten().copied().filter(|job| !(4..12).contains(job)).collect::<Vec<_>>();
    assert_eq!(moved, [1, 2, 3, 12]);
    // By drop it is the same.
    (0..8).for_each(|job| dispatcher.dispatch(job).unwrap());
    drop(workers.remove(0));
    assert_eq!(dispatcher.flush(), 0);
    assert_eq!(drain::<_, C, _>(&mut workers[0]).len(), 8);
}

pub(crate) fn jobs_come_back_where_there_is_no_room_elsewhere<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).capacity(4).batch(4));
    (0..8).for_each(|job| dispatcher.dispatch(job).unwrap());
    workers.remove(1).leave().unwrap();
    assert_eq!(dispatcher.flush(), 4);
    assert_eq!(dispatcher.try_dispatch(8), Err(DispatchError::Full(8)));
    assert_eq!((workers[0].pop(), workers[0].pop()), (Ok(0), Ok(1)));
    // The room is theirs.
    assert_eq!(dispatcher.try_dispatch(8), Err(DispatchError::Full(8)));
    assert_eq!(drain::<_, C, _>(&mut workers[0]), [2, 3, 4, 5]);
    assert_eq!(dispatcher.take_returned(), [6, 7]);
    dispatcher.try_dispatch(8).unwrap();
    assert_eq!(drain::<_, C, _>(&mut workers[0]), [8]);
}

pub(crate) fn the_last_worker_leaves_its_jobs_to_the_next_one<C: Case>() {
    let (mut dispatcher, workers) = build::<C, u64, _, _>(Builder::new(1));
    (0..5).for_each(|job| dispatcher.dispatch(job).unwrap());
    drop(workers);
    assert_eq!(dispatcher.dispatch(5), Err(DispatchError::NoWorker(5)));
    assert_eq!(dispatcher.flush(), 5);
    let mut worker = dispatcher.add_worker().unwrap();
    assert_eq!(dispatcher.flush(), 0);
    assert!(drain::<_, C, _>(&mut worker).into_iter().eq(0..5));
}

/// Three leaves in a row, with little room, so that what comes back from the second was on its way back from the first.
pub(crate) fn jobs_of_one_key_keep_their_order_over_leaves<C: Case>() {
    let route = ByKey::new(|job: &(u64, u64)| job.0);
    let (mut dispatcher, mut workers) = build::<C, (u64, u64), _, _>(Builder::new(4).capacity(8).route(route));
    let mut jobs = 0;
    while dispatcher.try_dispatch((jobs % 5, jobs)).is_ok() {
        jobs += 1;
    }
    let mut done = Vec::new();
    for _ in 0..3 {
        let busiest = (0..workers.len()).max_by_key(|&at| workers[at].backlog()).unwrap();
        let mut worker = workers.remove(busiest);
        done.extend(worker.try_pop());
        worker.leave().unwrap();
        dispatcher.flush();
    }
    let mut worker = workers.remove(0);
    loop {
        let left = dispatcher.flush();
        done.extend(drain::<_, C, _>(&mut worker));
        if left == 0 {
            break;
        }
    }
    assert_eq!(done.len() as u64, jobs);
    for key in 0..5 {
        let of_key = done.iter().filter(|job| job.0 == key).map(|job| job.1).collect::<Vec<_>>();
        assert!(of_key.is_sorted(), "{of_key:?}");
    }
}

pub(crate) fn a_worker_that_leaves_after_the_dispatcher_keeps_its_jobs<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).batch(2));
    (0..8).for_each(|job| dispatcher.dispatch(job).unwrap());
    drop(dispatcher);
    assert_eq!(workers.remove(0).leave(), Err(vec![0, 1, 4, 5]));
    assert_eq!(workers[0].pop(), Ok(2));
    assert_eq!(workers.remove(0).leave(), Err(vec![3, 6, 7]));
    let (dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1));
    drop(dispatcher);
    assert_eq!(workers.remove(0).leave(), Ok(()), "nothing is undone");
}

/// The dispatcher does not know yet; by key it has no choice either.
pub(crate) fn what_is_pushed_after_a_leave_comes_back<C: Case>() {
    for _ in 0..200 {
        let (mut dispatcher, mut workers) =
            build::<C, u64, _, _>(Builder::new(2).capacity(1_000).route(ByKey::new(|_: &u64| 1)));
        let left = AtomicBool::new(false);
        let got = thread::scope(|scope| {
            let (mut other, leaver) = (workers.remove(1), workers.remove(0));
            let left = &left;
            scope.spawn(move || {
                leaver.leave().unwrap();
                left.store(true, SeqCst);
            });
            let mut jobs = 0;
            while !left.load(SeqCst) && jobs < 900 {
                dispatcher.try_dispatch(jobs).unwrap();
                jobs += 1;
            }
            while !left.load(SeqCst) {
                thread::yield_now();
            }
            assert_eq!(dispatcher.flush(), 0);
            assert_eq!(drain::<_, C, _>(&mut other), (0..jobs).collect::<Vec<_>>());
            jobs
        });
        assert!(got <= 900);
    }
}

pub(crate) fn numbers_are_not_used_again<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2));
    assert_eq!(workers.iter().map(|worker| worker.number()).collect::<Vec<_>>(), [0, 1]);
    drop(workers.remove(1));
    let worker = dispatcher.add_worker().unwrap();
    assert_eq!(worker.number(), 2);
    assert_eq!(dispatcher.loads().collect::<Vec<_>>(), [(0, 0), (2, 0)]);
}

pub(crate) fn join_waits_for_all<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).batch(3));
    let over = AtomicBool::new(false);
    (0..12).for_each(|job| dispatcher.dispatch(job).unwrap());
    // Its jobs go to the other one.
    drop(workers.remove(0));
    thread::scope(|scope| {
        let mut worker = workers.remove(0);
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(10));
            let mut all = worker.jobs().collect::<Vec<_>>();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..12));
            over.store(true, SeqCst);
            drop(worker);
        });
        dispatcher.join().unwrap();
        assert!(over.load(SeqCst));
    });
    let (dispatcher, _) = build::<C, u64, _, _>(Builder::new(0));
    dispatcher.join().unwrap();
}

pub(crate) fn join_gives_back_what_nobody_did<C: Case>() {
    let (mut dispatcher, workers) = build::<C, u64, _, _>(Builder::new(2).batch(3));
    (0..12).for_each(|job| dispatcher.dispatch(job).unwrap());
    let unfinished = thread::scope(|scope| {
        for mut worker in workers {
            scope.spawn(move || {
                worker.pop().unwrap();
                thread::sleep(Duration::from_millis(5));
            });
        }
        dispatcher.join().unwrap_err()
    });
    assert!(unfinished.panics.is_empty());
    let mut undone = unfinished.undone.clone();
    undone.sort_unstable();
    assert_eq!(undone, [1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(unfinished.to_string(), "workers left early; jobs left undone: 10");
}
