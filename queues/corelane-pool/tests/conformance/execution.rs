use crate::support::{ALL, LONG, QUEUES, T, UNFAIR, builder, bump, occupy, start};
use corelane_pool::{Queueing, Rejection, Worker};
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) fn p1_tasks_run_and_handles_have_their_results() {
    for queueing in ALL {
        let pool = builder(queueing, 0, 64).build().unwrap();
        let handles: Vec<_> = (0..50).map(|i| pool.spawn(move || i * 2).unwrap()).collect();
        let sum: i32 = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
        assert_eq!(sum, 49 * 50);
        assert_eq!(pool.try_spawn(|| "try").unwrap().join().unwrap(), "try");
    }
}

/// A payload that is never fetched is dropped all the same; what never ends is left alone.
pub(crate) fn p1_unclaimed_payloads_are_dropped() {
    // Without memory of its own: the last one is leaked.
    struct Endless;
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    impl Drop for Endless {
        fn drop(&mut self) {
            DROPS.fetch_add(1, SeqCst);
            panic_any(Endless);
        }
    }
    for queueing in QUEUES {
        let held = Arc::new(());
        let of_handler = held.clone();
        let handler = move |_| panic_any(of_handler.clone());
        let pool = builder(queueing, 1, 1).on_panic(handler).build().unwrap();
        pool.execute(|| panic!("the task")).unwrap();
        pool.join();
        drop(pool);
        assert_eq!(Arc::strong_count(&held), 1);

        let pool = builder(queueing, 1, 1).build().unwrap();
        pool.execute(|| panic_any(Endless)).unwrap();
        pool.join();
        assert!((2..100).contains(&DROPS.swap(0, SeqCst)));
    }
}

/// A handle that is dropped after its pool calls the handler, and needs nothing else of the pool.
pub(crate) fn p1_an_unclaimed_panic_keeps_no_hook() {
    for queueing in ALL {
        let (held, handled) = (Arc::new(()), Arc::new(AtomicUsize::new(0)));
        let (of_hook, counter) = (held.clone(), handled.clone());
        let pool = builder(queueing, 1, 1)
            .on_thread_stop(move |_| drop(of_hook.clone()))
            .on_panic(move |_| bump(&counter))
            .build()
            .unwrap();
        let handle = pool.spawn(|| panic!("the task")).unwrap();
        drop(pool);
        assert_eq!((Arc::strong_count(&held), handled.load(SeqCst)), (1, 0));
        drop(handle);
        assert_eq!((handled.load(SeqCst), Arc::strong_count(&handled)), (1, 1));
    }
}

pub(crate) fn p8_counts_are_never_too_high() {
    for queueing in ALL {
        let pool = builder(queueing, 2, 8).build().unwrap();
        let over = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5_000 {
                    let over = over.clone();
                    let _ = pool.try_execute(move || bump(&over));
                }
            });
            for _ in 0..2_000 {
                let counts = pool.counts();
                assert!(counts.completed <= over.load(SeqCst) as u64);
                assert!(counts.active <= 8 && counts.threads <= 8 && counts.largest <= 8);
                // Of a task that goes on meanwhile the end may be counted here, and the beginning not yet.
                assert!(counts.completed <= pool.counts().accepted);
                assert!(counts.accepted <= 5_000 && counts.queued <= 5_000);
            }
        });
        pool.join();
        let counts = pool.counts();
        assert_eq!((counts.completed, counts.accepted + counts.rejected), (over.load(SeqCst) as u64, 5_000));
    }
}

pub(crate) fn one_thread_runs_tasks_in_order() {
    for queueing in [Queueing::Unbounded, Queueing::Bounded(100_000)] {
        let pool = builder(queueing, 1, 1).build().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        for i in 0..20_000 {
            let order = order.clone();
            pool.execute(move || order.lock().unwrap().push(i)).unwrap();
            if i % 1000 == 0 {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        pool.join();
        assert!(order.lock().unwrap().iter().copied().eq(0..20_000));
    }
}

/// Callers that wait for a thread or for room, while threads leave after any task. Where starts fail, a task may come
/// back.
pub(crate) fn every_task_runs_once_or_comes_back() {
    for (queueing, starts_fail) in [ALL[0], ALL[1], ALL[2], Queueing::Bounded(1), Queueing::Bounded(7)]
        .into_iter()
        .flat_map(|queueing| [(queueing, false), (queueing, true)])
    {
        let starts = AtomicUsize::new(0);
        let flaky = move |worker: Worker| {
            let fails = starts_fail && starts.fetch_add(1, SeqCst).is_multiple_of(3);
            if fails { Err(std::io::ErrorKind::WouldBlock.into()) } else { start(worker) }
        };
        let leaving = builder(queueing, 0, 4).keep_alive(Duration::from_micros(1)).start_with(flaky);
        let pool = leaving.rejection(Rejection::Block(Duration::MAX)).build().unwrap();
        let ran: Arc<Vec<AtomicUsize>> = Arc::new((0..8 * 100).map(|_| AtomicUsize::new(0)).collect());
        let accepted: Vec<AtomicUsize> = ran.iter().map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for caller in 0..8 {
                let (pool, ran, accepted) = (&pool, &ran, &accepted);
                scope.spawn(move || {
                    for task in caller * 100..(caller + 1) * 100 {
                        let ran = ran.clone();
                        if pool.execute(move || bump(&ran[task])).is_ok() {
                            bump(&accepted[task]);
                        }
                    }
                });
            }
        });
        assert!(pool.join());
        assert!(ran.iter().zip(&accepted).all(|(ran, accepted)| ran.load(SeqCst) == accepted.load(SeqCst)));
        let counts = pool.counts();
        assert_eq!((counts.failed_starts > 0, counts.completed + counts.rejected), (starts_fail, 800));
        assert!(starts_fail || counts.rejected == 0);
    }
}

pub(crate) fn waits_are_measured_if_asked_for() {
    assert_eq!(builder(UNFAIR, 0, 1).build().unwrap().waits(), None);
    let pool = builder(Queueing::Unbounded, 1, 1).measure_waits(true).build().unwrap();
    assert_eq!(pool.waits().unwrap().mean(), None);
    let gate = occupy(&pool, 1);
    let handle = pool.spawn(|| ()).unwrap();
    std::thread::sleep(T);
    gate.open();
    handle.join().unwrap();
    let waits = pool.waits().unwrap();
    assert!(waits.tasks == 2 && waits.mean().unwrap() >= T / 2, "{waits:?}");
    assert!((T..LONG).contains(&waits.longest) && waits.longest <= waits.total, "{waits:?}");
}
