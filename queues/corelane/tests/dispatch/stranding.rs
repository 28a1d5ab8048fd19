//! No job waits for the rest of its batch.

use crate::{Case, SLACK, build};
use corelane::dispatch::Builder;
use corelane::error::{Closed, PopTimeoutError};
use corelane::wait::{Adaptive, Park, Strategy, Yield};
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

pub(crate) fn timed_pops_end<C: Case>() {
    let (dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1));
    let (time, since) = (Duration::from_millis(15), Instant::now());
    assert_eq!(workers[0].pop_timeout(time), Err(PopTimeoutError::Timeout));
    let took = since.elapsed();
    assert!(took >= time && took < time + SLACK, "{took:?}");
    drop(dispatcher);
    assert_eq!(workers[0].pop_timeout(time), Err(PopTimeoutError::Closed));
}
