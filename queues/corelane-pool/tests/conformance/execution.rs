use crate::support::{ALL, LONG, QUEUES, T, UNFAIR, builder, bump, occupy, until};
use corelane_pool::{JoinError, Reason, Task, ThreadPool};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

pub(crate) fn p1_tasks_run_and_handles_have_their_results() {
    for queueing in ALL {
        let pool = builder(queueing, 0, 64).build().unwrap();
        let (sender, receiver) = mpsc::channel();
        pool.execute(move || sender.send(5).unwrap()).unwrap();
        assert_eq!(receiver.recv(), Ok(5));
        let handles: Vec<_> = (0..50).map(|i| pool.spawn(move || i * 2).unwrap()).collect();
        let sum: i32 = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
        assert_eq!(sum, 49 * 50);
        assert_eq!(pool.try_spawn(|| "try").unwrap().join().unwrap(), "try");
    }
}

pub(crate) fn p1_a_panic_leaves_the_thread_and_is_told() {
    for queueing in ALL {
        let pool = builder(queueing, 1, 1).build().unwrap();
        let thread = pool.spawn(|| std::thread::current().id()).unwrap().join().unwrap();
        for i in 0..10 {
            until("the thread waits", || pool.counts().active == 0);
            let handle = retry(|| pool.try_spawn(move || -> usize { std::panic::panic_any(i) }));
            match handle.join() {
                Err(JoinError::Panicked(payload)) => assert_eq!(payload.downcast_ref::<usize>(), Some(&i)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(retry(|| pool.try_spawn(|| std::thread::current().id())).join().unwrap(), thread);
        assert_eq!(pool.counts().panicked, 10);
        assert_eq!(pool.counts().threads, 1);
    }
}

/// Without a queue a thread may not yet wait although its task is over.
fn retry<R, E>(mut call: impl FnMut() -> Result<R, E>) -> R {
    let start = Instant::now();
    loop {
        match call() {
            Ok(result) => return result,
            Err(_) => assert!(start.elapsed() < LONG),
        }
    }
}

pub(crate) fn p1_a_panic_nobody_asks_for_goes_to_the_handler() {
    for queueing in ALL {
        let (sender, receiver) = mpsc::channel();
        let sender = Mutex::new(sender);
        let pool = builder(queueing, 1, 2)
            .on_panic(move |payload| sender.lock().unwrap().send(*payload.downcast::<u8>().unwrap()).unwrap())
            .build()
            .unwrap();
        retry(|| pool.execute(|| std::panic::panic_any(1_u8)));
        assert_eq!(receiver.recv(), Ok(1));
        let gate = occupy_one(&pool);
        let handle = retry(|| pool.spawn(|| std::panic::panic_any(2_u8)));
        // The second thread may have it already.
        drop(handle);
        gate.open();
        pool.join();
        assert_eq!(pool.counts().panicked, 2);
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [2]);
    }
}

fn occupy_one(pool: &ThreadPool) -> crate::support::Gate {
    until("a thread waits", || pool.counts().active == 0);
    occupy(pool, 1)
}

pub(crate) fn p1_handlers_and_payloads_may_panic() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a payload's drop");
        }
    }
    for queueing in QUEUES {
        let pool = builder(queueing, 1, 1).build().unwrap();
        pool.execute(|| std::panic::panic_any(Bomb)).unwrap();
        assert_eq!(pool.spawn(|| 1).unwrap().join().unwrap(), 1);
        let pool = builder(queueing, 1, 1).on_panic(|_| panic!("the handler")).build().unwrap();
        pool.execute(|| panic!("the task")).unwrap();
        assert_eq!(pool.spawn(|| 2).unwrap().join().unwrap(), 2);
        assert_eq!(pool.counts().panicked, 1);
    }
}

/// A payload that is never fetched is dropped all the same; what never ends is left alone.
pub(crate) fn p1_payloads_that_nobody_gets_are_dropped() {
    // Without memory of its own: the last one is leaked.
    struct Endless;
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    impl Drop for Endless {
        fn drop(&mut self) {
            DROPS.fetch_add(1, SeqCst);
            std::panic::panic_any(Endless);
        }
    }
    for queueing in QUEUES {
        let held = Arc::new(());
        let of_handler = held.clone();
        let handler = move |_| std::panic::panic_any(of_handler.clone());
        let pool = builder(queueing, 1, 1).on_panic(handler).build().unwrap();
        pool.execute(|| panic!("the task")).unwrap();
        pool.join();
        drop(pool);
        assert_eq!(Arc::strong_count(&held), 1);

        let pool = builder(queueing, 2, 2).build().unwrap();
        let panics = std::panic::catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| {
                for _ in 0..3 {
                    let payload = held.clone();
                    scope.spawn(|| std::panic::panic_any(payload));
                }
            });
        }));
        assert!(panics.is_err_and(|payload| payload.is::<Arc<()>>()));
        pool.join();
        assert_eq!(Arc::strong_count(&held), 1);

        let pool = builder(queueing, 1, 1).build().unwrap();
        pool.execute(|| std::panic::panic_any(Endless)).unwrap();
        pool.join();
        assert!((2..100).contains(&DROPS.swap(0, SeqCst)));
    }
}

/// A handle that is dropped after its pool calls the handler, and needs nothing else of the pool.
pub(crate) fn p1_a_panic_that_nobody_asks_for_keeps_no_hook() {
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

pub(crate) fn p1_a_handle_can_be_dropped_and_waited_for_in_time() {
    let pool = builder(UNFAIR, 0, 4).build().unwrap();
    let gate = crate::support::Gate::new();
    let inner = gate.clone();
    let handle = pool.spawn(move || inner.pass()).unwrap();
    gate.await_comers(1);
    assert!(!handle.is_finished());
    let start = Instant::now();
    let handle = handle.join_timeout(T).expect_err("it is before the gate");
    assert!(start.elapsed() >= T);
    gate.open();
    assert!(handle.join_timeout(LONG).unwrap().is_ok());

    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    drop(pool.spawn(move || counter.fetch_add(1, SeqCst)).unwrap());
    pool.join();
    assert_eq!(ran.load(SeqCst), 1);
}

pub(crate) fn p8_counts_are_never_too_high() {
    for queueing in ALL {
        let pool = builder(queueing, 2, 8).build().unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        let over = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5_000 {
                    let (begun, over) = (begun.clone(), over.clone());
                    let _ = pool.try_execute(move || {
                        begun.fetch_add(1, SeqCst);
                        over.fetch_add(1, SeqCst);
                    });
                }
            });
            for _ in 0..2_000 {
                let counts = pool.counts();
                assert!(counts.completed <= over.load(SeqCst) as u64);
                assert!(counts.active <= 8 && counts.threads <= 8 && counts.largest <= 8);
                // Of a task that goes on meanwhile the end may be counted here, and the beginning not yet.
                assert!(counts.accepted <= 5_000 && counts.completed <= pool.counts().accepted);
                assert!(counts.queued <= 5_000);
            }
        });
        pool.join();
        let counts = pool.counts();
        assert_eq!(counts.completed, begun.load(SeqCst) as u64);
        assert_eq!(counts.accepted + counts.rejected, 5_000);
    }
}

pub(crate) fn p8_counts_add_up_at_the_end() {
    for queueing in ALL {
        let pool = builder(queueing, 3, 3).build().unwrap();
        let gate = occupy(&pool, 3);
        let counts = pool.counts();
        assert_eq!((counts.threads, counts.active, counts.largest, counts.queued), (3, 3, 3, 0));
        assert_eq!((counts.accepted, counts.completed), (3, 0));
        let queued = (0..5).filter(|_| pool.try_execute(|| ()).is_ok()).count();
        assert_eq!(queued, if QUEUES.contains(&queueing) { 5 } else { 0 });
        assert_eq!(pool.counts().queued, queued);
        gate.open();
        assert!(pool.join());
        let counts = pool.counts();
        assert_eq!((counts.threads, counts.active, counts.largest, counts.queued), (0, 0, 3, 0));
        assert_eq!(counts.accepted, 3 + queued as u64);
        assert_eq!(counts.completed, counts.accepted);
        assert_eq!(counts.rejected, 5 - queued as u64);
    }
}

pub(crate) fn p17_a_rejected_task_is_sent_again() {
    let pool = builder(UNFAIR, 1, 1).build().unwrap();
    let gate = occupy(&pool, 1);
    let (sender, receiver) = mpsc::channel();
    let again = sender.clone();
    let rejected = pool.execute(move || sender.send("boxed").unwrap()).unwrap_err();
    assert!(matches!(rejected.reason(), Reason::Saturated), "{rejected}");
    let closure = pool.spawn(move || again.send("as it was").unwrap()).unwrap_err().into_task();
    gate.open();
    let mut task: Option<Task> = Some(rejected.into_task());
    retry(|| pool.execute_task(task.take().unwrap()).map_err(|rejected| task = Some(rejected.into_task())));
    assert_eq!(receiver.recv(), Ok("boxed"));
    closure();
    assert_eq!(receiver.recv(), Ok("as it was"));
}

pub(crate) fn p19_tasks_start_tasks() {
    for queueing in ALL {
        let pool = builder(queueing, 0, 64).build().unwrap();
        let left = Arc::new(AtomicUsize::new(0));
        fn grow(pool: &ThreadPool, left: &Arc<AtomicUsize>, depth: usize) {
            left.fetch_add(1, SeqCst);
            let (inner, counter) = (pool.clone(), left.clone());
            let task = move || {
                for _ in 0..2 * usize::from(depth > 0) {
                    grow(&inner, &counter, depth - 1);
                }
                counter.fetch_sub(1, SeqCst);
            };
            if let Err(rejected) = pool.execute(task) {
                rejected.into_task().run();
            }
        }
        grow(&pool, &left, 6);
        until("all are over", || left.load(SeqCst) == 0);
    }
}

pub(crate) fn p19_tasks_wait_for_tasks() {
    for queueing in ALL {
        // As many threads as tasks wait at once.
        let pool = builder(queueing, 0, 40).build().unwrap();
        fn chain(pool: &ThreadPool, depth: usize) -> usize {
            if depth == 0 {
                return 0;
            }
            let inner = pool.clone();
            1 + pool.spawn(move || chain(&inner, depth - 1)).unwrap().join().unwrap()
        }
        assert_eq!(chain(&pool, 30), 30);
    }
}

/// One thread takes several tasks, and the first of them waits for the others.
pub(crate) fn p19_no_task_waits_behind_another_while_a_thread_is_free() {
    for queueing in QUEUES {
        for _ in 0..50 {
            let pool = builder(queueing, 2, 2).build().unwrap();
            let gate = occupy(&pool, 2);
            let others = Arc::new(AtomicUsize::new(0));
            let counter = others.clone();
            let first = pool.spawn(move || until("the others are over", || counter.load(SeqCst) == 20)).unwrap();
            for _ in 0..20 {
                let counter = others.clone();
                pool.execute(move || bump(&counter)).unwrap();
            }
            gate.open();
            first.join().unwrap();
        }
    }
}

pub(crate) fn one_thread_runs_tasks_in_order() {
    for queueing in [corelane_pool::Queueing::Unbounded, corelane_pool::Queueing::Bounded(100_000)] {
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

pub(crate) fn every_task_once_from_many_threads() {
    for queueing in ALL {
        let pool = builder(queueing, 2, 4).rejection(corelane_pool::Rejection::Block(Duration::MAX)).build().unwrap();
        let ran: Arc<Vec<AtomicUsize>> = Arc::new((0..8 * 2_000).map(|_| AtomicUsize::new(0)).collect());
        std::thread::scope(|scope| {
            for submitter in 0..8 {
                let (pool, ran) = (&pool, &ran);
                scope.spawn(move || {
                    for i in 0..2_000 {
                        let ran = ran.clone();
                        pool.execute(move || bump(&ran[submitter * 2_000 + i])).unwrap();
                    }
                });
            }
        });
        assert!(pool.join());
        assert!(ran.iter().all(|count| count.load(SeqCst) == 1));
        assert_eq!(pool.counts().completed, 16_000);
    }
}

pub(crate) fn waits_are_measured_if_asked_for() {
    assert_eq!(builder(UNFAIR, 0, 1).build().unwrap().waits(), None);
    let pool = builder(corelane_pool::Queueing::Unbounded, 1, 1).measure_waits(true).build().unwrap();
    assert_eq!(pool.waits().unwrap().mean(), None);
    let gate = occupy(&pool, 1);
    let handle = pool.spawn(|| ()).unwrap();
    std::thread::sleep(T);
    gate.open();
    handle.join().unwrap();
    let waits = pool.waits().unwrap();
    assert_eq!(waits.tasks, 2);
    assert!(waits.longest >= T && waits.longest <= waits.total && waits.mean().unwrap() >= T / 2);
    assert!(waits.longest < LONG);
}
