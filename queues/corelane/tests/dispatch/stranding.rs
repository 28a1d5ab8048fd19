//! No job waits for the rest of its batch.

use crate::{Case, SLACK, build, drain};
use corelane::dispatch::Builder;
use corelane::error::{Closed, PopTimeoutError, TryPopError};
use corelane::wait::{Adaptive, Park, Spin, Strategy, Yield};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// The dispatcher goes off after some jobs of a batch, and comes back when the worker has done them: never, if one
/// waits for the dispatcher's return.
fn partial_batches<C: Case, W: Strategy>(wait: W, nap: Duration) {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1).batch(50).wait(wait));
    let mut worker = workers.remove(0);
    let (done, is_done) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for job in &mut worker {
                done.send(job).unwrap();
            }
        });
        let mut job = 0;
        for batch in [1, 2, 7, 8, 49, 50, 51, 99] {
            thread::sleep(nap);
            for _ in 0..batch {
                dispatcher.dispatch(job).unwrap();
                job += 1;
            }
            for expected in job - batch..job {
                assert_eq!(is_done.recv(), Ok(expected));
            }
        }
        drop(dispatcher);
    });
}

pub(crate) fn a_partial_batch_reaches_a_worker_that_waits<C: Case>() {
    let nap = Duration::from_millis(3);
    partial_batches::<C, _>(Park, nap);
    partial_batches::<C, _>(Adaptive, nap);
    partial_batches::<C, _>(Yield, nap);
}

pub(crate) fn a_partial_batch_reaches_a_worker_that_was_busy<C: Case>() {
    for _ in 0..20 {
        partial_batches::<C, _>(Adaptive, Duration::ZERO);
        partial_batches::<C, _>(Park, Duration::ZERO);
    }
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1).batch(50).wait(Spin));
    // It has a job while the rest comes, and then the dispatcher is not called again.
    dispatcher.dispatch(0).unwrap();
    assert_eq!(workers[0].pop(), Ok(0));
    dispatcher.dispatch(1).unwrap();
    dispatcher.dispatch(2).unwrap();
    assert_eq!((workers[0].pop(), workers[0].pop()), (Ok(1), Ok(2)));
}

pub(crate) fn what_is_dispatched_is_there<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(3).batch(10));
    for job in 0..200 {
        dispatcher.dispatch(job).unwrap();
        let got = workers.iter_mut().flat_map(|worker| worker.try_pop()).collect::<Vec<_>>();
        assert_eq!(got, [job]);
    }
    dispatcher.dispatch_batch(&mut (0..25).collect()).unwrap();
    assert_eq!(workers.iter_mut().map(|worker| drain::<_, C, _>(worker).len()).sum::<usize>(), 25);
    dispatcher.dispatch_slice(&[1; 25]).unwrap();
    assert_eq!(workers.iter_mut().map(|worker| drain::<_, C, _>(worker).len()).sum::<usize>(), 25);
}

pub(crate) fn taking_waits_for_one_and_takes_what_is_there<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1));
    let mut worker = workers.remove(0);
    dispatcher.dispatch_batch(&mut (1..6).collect()).unwrap();
    let mut jobs = vec![0];
    assert_eq!(worker.pop_batch(&mut jobs, 0), Ok(0));
    assert_eq!(worker.pop_batch(&mut jobs, 3), Ok(3));
    assert_eq!(jobs, [0, 1, 2, 3], "appended");
    assert_eq!(worker.pop_batch(&mut jobs, 100), Ok(2));
    thread::scope(|scope| {
        let taker = scope.spawn(|| (worker.pop_batch(&mut jobs, 100), worker.pop_batch(&mut Vec::new(), 100)));
        thread::sleep(Duration::from_millis(5));
        dispatcher.dispatch(6).unwrap();
        drop(dispatcher);
        assert_eq!(taker.join().unwrap(), (Ok(1), Err(Closed(()))));
    });
    assert_eq!(jobs, [0, 1, 2, 3, 4, 5, 6]);
}

pub(crate) fn draining_waits_for_one_and_gives_what_is_there<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1));
    let mut worker = workers.remove(0);
    dispatcher.dispatch_batch(&mut (0..5).collect()).unwrap();
    let mut jobs = Vec::new();
    assert_eq!(worker.wait_for_job(), Ok(()));
    assert_eq!(worker.pop_each(0, |job| jobs.push(job)), Ok(0));
    assert_eq!(worker.pop_each(3, |job| jobs.push(job)), Ok(3));
    assert_eq!(jobs, [0, 1, 2]);
    assert_eq!(worker.pop_each(100, |job| jobs.push(job)), Ok(2));
    thread::scope(|scope| {
        let drainer = scope.spawn(|| (worker.pop_each(100, |job| jobs.push(job)), worker.pop_each(100, drop)));
        thread::sleep(Duration::from_millis(5));
        dispatcher.dispatch(5).unwrap();
        drop(dispatcher);
        assert_eq!(drainer.join().unwrap(), (Ok(1), Err(Closed(()))));
    });
    assert_eq!(jobs, [0, 1, 2, 3, 4, 5]);
}

pub(crate) fn a_dropped_dispatcher_leaves_all_to_the_workers<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).batch(5));
    dispatcher.dispatch_batch(&mut (0..9).collect()).unwrap();
    assert!(!workers[0].is_closed());
    drop(dispatcher);
    assert!(workers[0].is_closed());
    let mut all = workers.iter_mut().flat_map(|worker| worker.jobs()).collect::<Vec<_>>();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..9));
    assert_eq!(workers[0].pop(), Err(Closed(())));
    assert_eq!(workers[0].wait_for_job(), Err(Closed(())));
    assert_eq!(workers[1].try_pop(), Err(TryPopError::Closed));
}

pub(crate) fn timed_pops_end<C: Case>() {
    let (dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1));
    let (time, since) = (Duration::from_millis(15), Instant::now());
    assert_eq!(workers[0].pop_timeout(time), Err(PopTimeoutError::Timeout));
    let took = since.elapsed();
    assert!(took >= time && took < time + SLACK, "{took:?}");
    drop(dispatcher);
    assert_eq!(workers[0].pop_timeout(time), Err(PopTimeoutError::Closed));
}
