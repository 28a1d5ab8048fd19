//! P15: threads that do not start.

use crate::support::{ALL, Gate, LONG, QUEUES, T, builder, bump, occupy, start, until};
use corelane_pool::{Queueing, Reason, Rejection, Worker};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Starts threads while there are permits.
fn starter(permits: &Arc<AtomicUsize>) -> impl Fn(Worker) -> io::Result<JoinHandle<()>> + Send + Sync + 'static {
    let permits = permits.clone();
    move |worker| match permits.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
        Ok(_) => start(worker),
        Err(_) => Err(io::ErrorKind::WouldBlock.into()),
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
        let permits = Arc::new(AtomicUsize::new(0));
        let pool = builder(queueing, 1, 2).start_with(starter(&permits)).build().unwrap();
        let rejected = pool.spawn(|| 5).unwrap_err();
        assert!(std::error::Error::source(&rejected).is_some());
        assert_no_thread(Err::<(), _>(rejected));
        assert_no_thread(pool.execute(|| ()));
        assert!(pool.prestart(1).is_err());
        assert_eq!((pool.counts().threads, pool.counts().failed_starts), (0, 3));
        // It recovers.
        permits.store(1, SeqCst);
        let gate = occupy(&pool, 1);
        // A further start fails. With a queue, the thread that is there will run the task.
        if QUEUES.contains(&queueing) {
            let handle = pool.spawn(|| 6).unwrap();
            assert_eq!(pool.counts().queued, 1);
            gate.open();
            assert_eq!(handle.join().unwrap(), 6);
        } else {
            assert_no_thread(pool.execute(|| ()));
            gate.open();
        }
        assert_eq!((pool.counts().threads, pool.counts().failed_starts), (1, 4));
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
    let (permits, at_start) = (Arc::new(AtomicUsize::new(1)), gate.clone());
    let first = starter(&permits);
    let starts = move |worker| {
        if permits.load(SeqCst) == 0 {
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
