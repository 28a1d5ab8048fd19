//! P15: threads that do not start.

use crate::support::{ALL, Gate, LONG, QUEUES, T, builder, bump, occupy, until};
use corelane_pool::{Queueing, Reason, Rejection, ThreadPool, Worker};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

fn start(worker: Worker) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(worker.name().to_owned()).spawn(move || worker.run())
}

/// Threads start while there are permits.
#[derive(Clone, Default)]
struct Permits(Arc<AtomicUsize>);

impl Permits {
    fn take(&self) -> bool {
        self.0.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    fn starter(&self) -> impl Fn(Worker) -> io::Result<JoinHandle<()>> + Send + Sync + 'static {
        let permits = self.clone();
        move |worker| if permits.take() { start(worker) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}

fn assert_no_thread<T>(result: Result<T, corelane_pool::Rejected<impl Sized>>) {
    match result.err().expect("no thread can start").reason() {
        Reason::NoThread(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        other => panic!("{other}"),
    }
}

pub(crate) fn p15_the_first_start_fails() {
    for queueing in ALL {
        let permits = Permits::default();
        let pool = builder(queueing, 1, 2).start_with(permits.starter()).build().unwrap();
        let rejected = pool.spawn(|| 5).unwrap_err();
        assert!(matches!(rejected.reason(), Reason::NoThread(_)));
        assert!(std::error::Error::source(&rejected).is_some());
        assert_eq!(rejected.into_task()(), 5);
        assert_no_thread(pool.execute(|| ()));
        assert!(pool.prestart(1).is_err());
        assert_eq!((pool.counts().threads, pool.counts().failed_starts), (0, 3));
        // It recovers.
        permits.0.store(1, SeqCst);
        assert_eq!(pool.spawn(|| 6).unwrap().join().unwrap(), 6);
        assert!(pool.join());
    }
}

pub(crate) fn p15_a_further_start_fails() {
    for queueing in ALL {
        let permits = Permits::default();
        permits.0.store(1, SeqCst);
        let pool = builder(queueing, 2, 2).start_with(permits.starter()).build().unwrap();
        let gate = occupy(&pool, 1);
        if QUEUES.contains(&queueing) {
            // The thread that is there will run it.
            let handle = pool.spawn(|| 5).unwrap();
            assert_eq!(pool.counts().queued, 1);
            gate.open();
            assert_eq!(handle.join().unwrap(), 5);
        } else {
            assert_no_thread(pool.execute(|| ()));
            gate.open();
        }
        assert_eq!(pool.counts().threads, 1);
        assert!(pool.join());
    }
}

pub(crate) fn p15_now_and_then_a_start_fails() {
    for queueing in ALL {
        let count = AtomicUsize::new(0);
        let flaky = move |worker: Worker| {
            if count.fetch_add(1, SeqCst).is_multiple_of(3) {
                Err(io::ErrorKind::WouldBlock.into())
            } else {
                start(worker)
            }
        };
        let pool = builder(queueing, 0, 4).keep_alive(Duration::from_micros(10)).start_with(flaky).build().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let accepted = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let ran = ran.clone();
                        match pool.execute(move || bump(&ran)) {
                            Ok(()) => bump(&accepted),
                            Err(rejected) => drop(rejected.into_task()),
                        }
                    }
                });
            }
        });
        assert!(pool.join());
        assert_eq!(ran.load(SeqCst), accepted.load(SeqCst));
        assert!(pool.counts().failed_starts > 0);
    }
}

/// A starter that loses the worker and says all is well.
pub(crate) fn p15_a_worker_is_never_run() {
    for queueing in ALL {
        let pool = builder(queueing, 0, 1)
            .start_with(|worker| {
                drop(worker);
                std::thread::Builder::new().spawn(|| ())
            })
            .build()
            .unwrap();
        let rejected = pool.spawn(|| 5).unwrap_err();
        assert!(matches!(rejected.reason(), Reason::NoThread(_)), "{rejected}");
        assert_eq!(rejected.into_task()(), 5);
        assert_eq!(pool.counts().threads, 0);
        assert!(pool.join());
        // Later than that, no caller is there to get the task back.
        let gate = Gate::new();
        let at_start = gate.clone();
        let pool = builder(queueing, 0, 1)
            .start_with(move |worker| {
                let gate = at_start.clone();
                std::thread::Builder::new().spawn(move || {
                    gate.pass();
                    drop(worker);
                })
            })
            .build()
            .unwrap();
        let handle = pool.spawn(|| 5).unwrap();
        gate.open();
        assert!(handle.join().is_err(), "the task was dropped with its worker");
        until("it is uncounted", || pool.counts().threads == 0);
        until("the task is counted, without a handle, too", || pool.counts().discarded == 1);
        assert!(pool.join());
    }
}

/// A thread is busy, and a task waits for another thread, which drops its worker long after its start.
pub(crate) fn p15_a_worker_that_is_lost_is_replaced_once() {
    for (queueing, lost) in ALL.into_iter().flat_map(|queueing| [(queueing, 1), (queueing, 100)]) {
        let (gate, starts) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
        let (at_start, counter) = (gate.clone(), starts.clone());
        let start = move |worker: Worker| {
            bump(&counter);
            let gate = at_start.clone();
            std::thread::Builder::new().spawn(move || match worker.number() {
                1 => gate.pass(),
                number if number <= lost && number > 0 => {}
                _ => worker.run(),
            })
        };
        let pool = builder(queueing, 0, 2).rejection(Rejection::Block(LONG)).start_with(start).build().unwrap();
        let (busy, ran) = (occupy(&pool, 1), Arc::new(AtomicUsize::new(0)));
        let goes = pool.spawn(|| ()).unwrap();
        gate.await_comers(1);
        std::thread::scope(|scope| {
            // Opened if this fails.
            let (gate, busy, task) = (gate, busy, ran.clone());
            // It is queued, or its caller waits.
            scope.spawn(|| pool.execute(move || bump(&task)).unwrap());
            std::thread::sleep(T);
            gate.open();
            goes.join().unwrap_err();
            if lost == 1 {
                until("it runs beside the other", || ran.load(SeqCst) == 1);
            }
            until("all have started", || starts.load(SeqCst) == 3);
            std::thread::sleep(T);
            busy.open();
        });
        assert!(pool.join());
        assert_eq!((ran.load(SeqCst), starts.load(SeqCst)), (1, 3));
    }
}

/// A start that fails while its worker is kept: that worker does nothing any more.
pub(crate) fn p15_a_worker_is_run_too_late() {
    for queueing in ALL {
        let kept = Arc::new(Mutex::new(None));
        let keeps = kept.clone();
        let keep = move |worker| {
            *keeps.lock().unwrap() = Some(worker);
            Err(io::ErrorKind::WouldBlock.into())
        };
        let pool = builder(queueing, 0, 1).start_with(keep).build().unwrap();
        assert_no_thread(pool.execute(|| panic!("it has come back")));
        assert_eq!((pool.counts().threads, pool.counts().failed_starts), (0, 1));
        let worker: Worker = kept.lock().unwrap().take().unwrap();
        worker.run();
        assert_eq!((pool.counts().threads, pool.counts().accepted), (0, 0));
        assert!(pool.join());
    }
}

/// The last thread that runs does not leave what is queued to one that is being started, though there is one too many.
pub(crate) fn p15_a_thread_that_is_left_relies_on_no_start() {
    let gate = Gate::new();
    let (permits, at_start) = (Permits::default(), gate.clone());
    permits.0.store(1, SeqCst);
    let first = permits.starter();
    let starts = move |worker| {
        if permits.0.load(SeqCst) == 0 {
            at_start.pass();
        }
        first(worker)
    };
    let pool = builder(Queueing::Unbounded, 1, 2).start_with(starts).build().unwrap();
    let occupied = occupy(&pool, 1);
    std::thread::scope(|scope| {
        // Opened if this fails.
        let gate = gate;
        let caller = scope.spawn(|| pool.execute(|| ()));
        gate.await_comers(1);
        pool.execute(|| ()).unwrap();
        pool.set_max_threads(1).unwrap();
        occupied.open();
        until("what was queued has run, and the thread has left", || {
            let counts = pool.counts();
            (counts.completed, counts.threads) == (2, 1)
        });
        gate.open();
        assert_no_thread(caller.join().unwrap());
    });
    assert!(pool.join());
}

/// With as many threads as may be, all on their way, a task has to wait for what becomes of them.
pub(crate) fn p15_callers_that_rely_on_a_start_that_fails() {
    for queueing in ALL {
        let gate = Gate::new();
        let at_start = gate.clone();
        let pool: ThreadPool = builder(queueing, 1, 1)
            .rejection(Rejection::Block(LONG))
            .start_with(move |_| {
                at_start.pass();
                Err(io::ErrorKind::WouldBlock.into())
            })
            .build()
            .unwrap();
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..4).map(|_| scope.spawn(|| pool.execute(|| ()))).collect();
            gate.await_comers(1);
            std::thread::sleep(Duration::from_millis(5));
            gate.open();
            for caller in callers {
                assert_no_thread(caller.join().unwrap());
            }
        });
        until("none is counted", || pool.counts().threads == 0);
        pool.shutdown();
        assert!(pool.await_termination(LONG));
    }
}
