//! Workers join and leave.

use crate::{Case, build, drain};
use corelane::dispatch::{Builder, ByKey};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

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

/// The dispatcher does not know yet; by key it has no choice either.
pub(crate) fn what_is_pushed_after_a_leave_comes_back<C: Case>() {
    for _ in 0..60 {
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
