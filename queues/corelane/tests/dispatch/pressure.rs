//! What happens where there is no room.

use crate::{Case, SLACK, build, drain};
use corelane::dispatch::{Builder, ByKey};
use corelane::error::{ChannelError, DispatchError};
use corelane::wait::Yield;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(8);

/// Where no thread is woken there is no need to wait for half a queue, and none to wait for more.
pub(crate) fn a_dispatch_that_never_parks_waits_for_a_batch<C: Case>() {
    for (capacity, batch) in [(32, 4), (8, 32)] {
        let builder = Builder::new(1).capacity(capacity as usize).batch(batch).wait(Yield);
        let (mut dispatcher, mut workers) = build::<C, u64, _, _>(builder);
        (0..capacity).for_each(|job| dispatcher.try_dispatch(job).unwrap());
        thread::scope(|scope| {
            let dispatch = scope.spawn(|| {
                let since = Instant::now();
                dispatcher.dispatch_timeout(capacity, SLACK).unwrap();
                since.elapsed()
            });
            thread::sleep(NAP);
            (0..4).for_each(|job| assert_eq!(workers[0].pop(), Ok(job)));
            let took = dispatch.join().unwrap();
            assert!(took < SLACK, "{took:?}");
        });
    }
}

pub(crate) fn timed_dispatches_are_not_early<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1).capacity(4));
    let time = Duration::from_millis(15);
    (0..4).for_each(|job| dispatcher.dispatch_timeout(job, time).unwrap());
    let since = Instant::now();
    assert_eq!(dispatcher.dispatch_timeout(4, time), Err(DispatchError::Timeout(4)));
    let took = since.elapsed();
    assert!(took >= time && took < time + SLACK, "{took:?}");
    // One slot is free: not much, but enough when the time is up.
    workers[0].pop().unwrap();
    dispatcher.dispatch_timeout(4, time).unwrap();
    drop(workers);
    assert_eq!(dispatcher.dispatch_timeout(5, time), Err(DispatchError::NoWorker(5)));
}

pub(crate) fn a_key_that_waits_hears_of_a_leave<C: Case>() {
    let (mut dispatcher, mut workers) =
        build::<C, u64, _, _>(Builder::new(3).capacity(2).route(ByKey::new(|_: &u64| 5)));
    dispatcher.try_dispatch(0).unwrap();
    dispatcher.try_dispatch(1).unwrap();
    let full = workers.iter_mut().position(|worker| worker.backlog() == 2).unwrap();
    let worker = workers.remove(full);
    thread::scope(|scope| {
        let dispatch = scope.spawn(|| {
            let dispatched = dispatcher.dispatch(2);
            drop(dispatcher);
            dispatched
        });
        thread::sleep(NAP);
        drop(worker);
        // The one that has the key now.
        let takers = workers.iter_mut().map(|worker| scope.spawn(|| worker.jobs().collect::<Vec<_>>()));
        let got = takers.collect::<Vec<_>>().into_iter().flat_map(|taker| taker.join().unwrap()).collect::<Vec<_>>();
        assert_eq!(got, [0, 1, 2]);
        assert_eq!(dispatch.join().unwrap(), Ok(()));
    });
}

/// What a batch could not hand out is left in the vector, in order: for want of room, when the time is up, when the
/// route panics.
pub(crate) fn what_is_not_dispatched_is_left<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).capacity(3).batch(2));
    let mut jobs = (0..10).collect::<Vec<_>>();
    assert_eq!(dispatcher.try_dispatch_batch(&mut jobs), Ok(6));
    assert_eq!(jobs, [6, 7, 8, 9]);
    assert_eq!(dispatcher.try_dispatch_batch(&mut jobs), Err(DispatchError::Full(())));
    assert_eq!(dispatcher.dispatch_batch_timeout(&mut jobs, NAP), Err(DispatchError::Timeout(())));
    assert_eq!(jobs, [6, 7, 8, 9]);
    assert_eq!(workers[1].pop().map(|_| ()), Ok(()));
    assert_eq!(dispatcher.try_dispatch_batch(&mut jobs), Ok(1));
    assert_eq!(jobs, [7, 8, 9]);
    let mut all = workers.iter_mut().flat_map(drain::<_, C, _>).collect::<Vec<_>>();
    all.sort_unstable();
    assert_eq!(all.len(), 6);

    let route = ByKey::new(|&job: &u64| {
        assert_ne!(job, 6, "no more");
        job
    });
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).route(route));
    let mut jobs = (0..10).collect::<Vec<_>>();
    catch_unwind(AssertUnwindSafe(|| dispatcher.dispatch_batch(&mut jobs))).unwrap_err();
    assert_eq!(jobs, [6, 7, 8, 9]);
    // All goes on as before.
    dispatcher.dispatch_batch(&mut (7..100).collect()).unwrap();
    let left = workers.iter_mut().map(|worker| drain::<_, C, _>(worker).len());
    assert_eq!(left.sum::<usize>(), 6 + 93);
}

pub(crate) fn nobody_there<C: Case>() {
    let (mut dispatcher, workers) = build::<C, u64, _, _>(Builder::new(0));
    assert!(workers.is_empty());
    assert_eq!(dispatcher.try_dispatch(1), Err(DispatchError::NoWorker(1)));
    assert_eq!(dispatcher.dispatch(2), Err(DispatchError::NoWorker(2)));
    assert_eq!(dispatcher.dispatch_slice(&[3]), Err(DispatchError::NoWorker(0)));
    assert_eq!(dispatcher.try_dispatch_slice(&[3]), Err(DispatchError::NoWorker(())));
    let mut jobs = vec![4, 5, 6];
    assert_eq!(dispatcher.dispatch_batch(&mut jobs), Err(DispatchError::NoWorker(())));
    assert_eq!(dispatcher.try_dispatch_batch(&mut jobs), Err(DispatchError::NoWorker(())));
    assert_eq!(jobs, [4, 5, 6]);
    let mut worker = dispatcher.add_worker().unwrap();
    dispatcher.dispatch(4).unwrap();
    assert_eq!(worker.pop(), Ok(4));
    let refused = |builder: Builder<C::Options>| builder.build_any::<u64, C::Queue>().unwrap_err();
    assert_eq!(refused(Builder::new(1).capacity(0)), ChannelError::ZeroCapacity);
    assert_eq!(refused(Builder::new(1).batch(0)), ChannelError::BadBatch);
}
