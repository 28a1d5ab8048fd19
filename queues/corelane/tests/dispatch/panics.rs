//! A worker's panic is the dispatcher's to hear of.

use crate::{Case, build};
use corelane::dispatch::Builder;
use corelane::error::DispatchError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

pub(crate) fn a_panic_surfaces_with_its_payload<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).batch(3));
    (0..6).for_each(|job| dispatcher.dispatch(job).unwrap());
    let work = |job| assert_ne!(job, 4, "job {job} is bad");
    assert_eq!(workers.remove(1).run(|worker| worker.jobs().for_each(work)), None);
    for _ in 0..2 {
        assert_eq!(dispatcher.try_dispatch(6), Err(DispatchError::Panicked(6)));
        assert_eq!(dispatcher.dispatch_slice(&[6]), Err(DispatchError::Panicked(0)));
        assert_eq!(dispatcher.flush(), 1);
    }
    let panic = dispatcher.take_panic().unwrap();
    assert_eq!(panic.worker(), 1);
    assert!(panic.message().unwrap().contains("job 4 is bad"), "{panic}");
    assert!(panic.to_string().starts_with("worker 1 has panicked: "));
    let payload = panic.into_payload().unwrap();
    assert!(payload.downcast_ref::<String>().unwrap().contains("bad"));
    assert!(dispatcher.take_panic().is_none());
    // The one it was at is gone, the next one is not.
    assert_eq!(dispatcher.take_returned(), [5]);
    assert_eq!(workers.remove(0).run(|worker| worker.pop().unwrap() + 1), Some(1));
}

pub(crate) fn a_panic_outside_of_run_surfaces<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1));
    dispatcher.dispatch(0).unwrap();
    let mut worker = workers.remove(0);
    let thread = thread::spawn(move || {
        assert_ne!(worker.pop(), Ok(0));
    });
    thread.join().unwrap_err();
    assert_eq!(dispatcher.dispatch(1), Err(DispatchError::Panicked(1)));
    let panic = dispatcher.take_panic().unwrap();
    assert_eq!((panic.worker(), panic.message()), (0, None));
    assert_eq!(panic.to_string(), "worker 0 has panicked");
    assert!(panic.into_payload().is_none());
    assert_eq!(dispatcher.dispatch(1), Err(DispatchError::NoWorker(1)));
}

pub(crate) fn join_reports_panics<C: Case>() {
    let (mut dispatcher, workers) = build::<C, u64, _, _>(Builder::new(3).batch(2));
    (0..9).for_each(|job| dispatcher.dispatch(job).unwrap());
    let unfinished = thread::scope(|scope| {
        for worker in workers {
            scope.spawn(|| worker.run(|worker| worker.jobs().for_each(|job| assert_ne!(job, 2, "not this one"))));
        }
        dispatcher.join().unwrap_err()
    });
    assert_eq!(unfinished.panics.len(), 1);
    assert_eq!(unfinished.panics[0].worker(), 1);
    assert_eq!(unfinished.undone, [3, 8]);
    assert!(unfinished.to_string().contains("worker 1 has panicked"), "{unfinished}");
    assert!(unfinished.to_string().ends_with("; jobs left undone: 2"), "{unfinished}");
}

pub(crate) fn a_panic_without_a_dispatcher_goes_on<C: Case>() {
    let (dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(1));
    drop(dispatcher);
    let worker = workers.remove(0);
    let payload = catch_unwind(AssertUnwindSafe(|| worker.run(|_| panic!("alone")))).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"alone"));
}

pub(crate) fn a_waiting_dispatch_hears_of_a_panic<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).capacity(1));
    dispatcher.dispatch(0).unwrap();
    dispatcher.dispatch(1).unwrap();
    thread::scope(|scope| {
        let dispatch = scope.spawn(|| dispatcher.dispatch(2));
        thread::sleep(Duration::from_millis(8));
        workers.remove(0).run(|_| panic!("while it waits"));
        assert_eq!(dispatch.join().unwrap(), Err(DispatchError::Panicked(2)));
    });
    assert_eq!(dispatcher.take_panic().unwrap().message(), Some("while it waits"));
    assert_eq!(dispatcher.take_returned(), [0]);
}
