//! The pool under every interleaving of small cases: rows P24 to P27 of the conformance list, and the queue's own
//! promises. Runs with
//! `cargo loom -p corelane-pool --test loom`.
//!
//! No thread spins under loom, so every wait goes through the park, and there is no time: a keep-alive time of zero may
//! be over at any moment after the thread has registered its take. A thread that is not woken is a deadlock, which loom
//! reports; so a model whose pool is joined shows that no task and no thread was forgotten.

#[path = "../../corelane/tests/support/explore.rs"]
mod explore;

use corelane::Barrier;
use corelane_pool::{Builder, Fairness, Queueing, Reason, Rejected, Rejection, Task, ThreadPool, Worker};
use explore::{explore_with, quick};
use loom::sync::{Condvar, Mutex};
use loom::thread::{self, JoinHandle};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const HAND_OFFS: [Queueing; 2] = [Queueing::HandOff(Fairness::Unfair), Queueing::HandOff(Fairness::Fair)];

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    explore_with(Barrier::ReadModifyWrite, preemptions, model);
}

fn pool(queueing: Queueing, core: usize, max: usize) -> Builder {
    ThreadPool::builder().queueing(queueing).core_threads(core).max_threads(max).keep_alive(Duration::ZERO)
}

/// A pool of one thread, which is being started.
fn one_thread(queueing: Queueing) -> ThreadPool {
    let pool = pool(queueing, 1, 1).build().unwrap();
    pool.prestart(1).unwrap();
    pool
}

/// Hands a task in from a thread of its own, which says whether it was accepted.
fn call(pool: &ThreadPool, runs: &Runs) -> JoinHandle<bool> {
    let (pool, task) = (pool.clone(), runs.task());
    thread::spawn(move || pool.execute(task).is_ok())
}

/// How often tasks ran.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn task(&self) -> impl FnOnce() + Send + 'static {
        let runs = self.0.clone();
        move || {
            runs.fetch_add(1, SeqCst);
        }
    }

    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// P24. The thread's time is up while a task comes: it takes the task, or another thread is started. With one thread at
/// most, a caller waits: the thread that would end finds the put, or the caller sees that one may be started.
#[test]
fn p24_spawn_against_idle_time_out() {
    let cases = HAND_OFFS.into_iter().flat_map(|queueing| [(queueing, 1), (queueing, 2)]);
    for (queueing, max) in cases.chain([(Queueing::Unbounded, 2)]) {
        explore(quick(1, 2), move || {
            let runs = Runs::default();
            let pool = pool(queueing, 0, max).rejection(Rejection::Block(Duration::MAX)).build().unwrap();
            pool.execute(runs.task()).unwrap();
            pool.execute(runs.task()).unwrap();
            assert!(pool.join());
            assert_eq!((runs.get(), pool.counts().threads), (2, 0));
        });
    }
}

/// P25. A task is accepted, and runs or is brought back by `shutdown_now`, or it comes back; the pool ends in any case.
#[test]
fn p25_execute_against_shutdown() {
    for (queueing, now) in
        [(HAND_OFFS[0], false), (HAND_OFFS[1], false), (Queueing::Unbounded, false), (Queueing::Unbounded, true)]
    {
        explore(2, move || {
            let runs = Runs::default();
            let pool = one_thread(queueing);
            let caller = call(&pool, &runs);
            pool.shutdown();
            let back = if now { pool.shutdown_now().len() } else { 0 };
            let accepted = caller.join().unwrap();
            assert!(pool.join());
            assert_eq!(runs.get() + back, usize::from(accepted));
        });
    }
}

/// P26. Two tasks and one thread. With a queue both run, whether the thread searches, falls asleep, sleeps, or ends
/// although a caller has counted it as searching. Without one, a task may come back because the thread has the other.
#[test]
fn p26_two_executes_and_one_idle_worker() {
    for (queueing, core) in [(HAND_OFFS[0], 1), (HAND_OFFS[1], 1), (Queueing::Unbounded, 1), (Queueing::Unbounded, 0)] {
        explore(quick(1, 2), move || {
            let runs = Runs::default();
            let pool = pool(queueing, core, 1).build().unwrap();
            pool.prestart(1).unwrap();
            let caller = call(&pool, &runs);
            let mut accepted = usize::from(pool.execute(runs.task()).is_ok());
            accepted += usize::from(caller.join().unwrap());
            assert!(pool.join());
            assert_eq!(runs.get(), accepted);
            assert!(accepted == 2 || queueing != Queueing::Unbounded);
        });
    }
}

/// Starts threads, but for the one of this number, whose start takes a while and fails.
fn fails_at(number: usize) -> impl Fn(Worker) -> io::Result<JoinHandle<()>> + Send + Sync + 'static {
    let starts = AtomicUsize::new(0);
    move |worker| {
        if starts.fetch_add(1, SeqCst) == number {
            thread::yield_now();
            return Err(io::ErrorKind::WouldBlock.into());
        }
        thread::Builder::new().spawn(move || worker.run())
    }
}

/// P27. The first start fails: its task comes back. A caller that relied on that thread, or waits for it, starts one
/// more.
#[test]
fn p27_a_start_fails() {
    let blocks = Rejection::Block(Duration::MAX);
    for (queueing, rejection) in [
        (HAND_OFFS[0], Rejection::Return),
        (HAND_OFFS[0], blocks),
        (Queueing::Unbounded, Rejection::Return),
        (Queueing::Bounded(1), blocks),
    ] {
        explore(2, move || {
            let runs = Runs::default();
            let pool = pool(queueing, 1, 1).rejection(rejection).start_with(fails_at(0)).build().unwrap();
            let (caller, task) = (pool.clone(), runs.task());
            let caller = thread::spawn(move || caller.execute(task));
            let results = [pool.execute(runs.task()), caller.join().unwrap()];
            let refused = |result: &Result<(), Rejected<Task>>| {
                result.as_ref().is_err_and(|rejected| matches!(rejected.reason(), Reason::NoThread(_)))
            };
            let refusals = results.iter().filter(|result| refused(result)).count();
            // In a queue its task may be left to the thread that the other caller has started meanwhile.
            assert!(refusals == 1 || refusals == 0 && !HAND_OFFS.contains(&queueing));
            assert!(pool.join());
            assert_eq!(runs.get(), results.iter().filter(|result| result.is_ok()).count());
        });
    }
}

/// P27. A start fails although its thread is on its way: the task runs in it, or comes back, and the pool ends.
#[test]
fn p27_a_start_fails_beside_its_thread() {
    for queueing in [HAND_OFFS[0], Queueing::Unbounded] {
        explore(2, move || {
            let runs = Runs::default();
            let start = |worker: Worker| {
                drop(thread::Builder::new().spawn(move || worker.run())?);
                Err(io::ErrorKind::WouldBlock.into())
            };
            let pool = pool(queueing, 1, 1).start_with(start).build().unwrap();
            let accepted = pool.execute(runs.task()).is_ok();
            assert!(pool.join());
            assert_eq!((runs.get(), pool.counts().failed_starts), (usize::from(accepted), 1));
        });
    }
}

/// P27. A thread drops its worker while the start returns: the task comes back, or is dropped.
#[test]
fn p27_a_worker_is_dropped_beside_its_start() {
    explore(2, || {
        let start = |worker: Worker| thread::Builder::new().spawn(move || drop(worker));
        let pool = pool(HAND_OFFS[0], 1, 1).start_with(start).build().unwrap();
        let held = Arc::new(());
        let task = held.clone();
        match pool.execute(move || drop(task)) {
            Ok(()) => {}
            Err(rejected) => assert!(matches!(rejected.reason(), Reason::NoThread(_))),
        }
        assert!(pool.join());
        assert_eq!((Arc::strong_count(&held), pool.counts().threads), (1, 0));
    });
}

/// P27. Starts that bring tasks and fail: none waits for what another start, or its own, is making.
#[test]
fn p27_starts_bring_tasks_and_fail() {
    for queueing in [HAND_OFFS[0], Queueing::Unbounded] {
        explore(2, move || {
            let runs = Runs::default();
            let place = Arc::new(std::sync::Mutex::new(None::<ThreadPool>));
            let (knows, brings) = (place.clone(), runs.clone());
            let start = move |_: Worker| {
                let pool = knows.lock().unwrap().clone().unwrap();
                assert!(pool.execute(brings.task()).is_err() && !pool.await_termination(Duration::MAX));
                Err(io::ErrorKind::WouldBlock.into())
            };
            let blocking = pool(queueing, 2, 2).rejection(Rejection::Block(Duration::MAX));
            let pool = blocking.start_with(start).build().unwrap();
            *place.lock().unwrap() = Some(pool.clone());
            let caller = call(&pool, &runs);
            assert!(pool.execute(runs.task()).is_err() && !caller.join().unwrap());
            *place.lock().unwrap() = None;
            assert!(pool.join());
            assert_eq!((runs.get(), pool.counts().threads), (0, 0));
        });
    }
}

/// P27. A caller relies on the search of another one, which has started a thread instead, and that drops its worker.
#[test]
fn p27_a_search_goes_on_when_a_worker_is_dropped() {
    explore(1, || {
        let starts = AtomicUsize::new(0);
        let start = move |worker: Worker| match starts.fetch_add(1, SeqCst) {
            0 => thread::Builder::new().spawn(move || worker.run()),
            1 => thread::Builder::new().spawn(move || drop(worker)),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        };
        let pool = pool(Queueing::Unbounded, 1, 2).start_with(start).build().unwrap();
        pool.prestart(1).unwrap();
        thread::yield_now();
        let other = pool.clone();
        let other = thread::spawn(move || {
            // It runs, or is dropped with its worker, or comes back.
            other.spawn(|| ()).into_iter().for_each(|handle| drop(handle.join()));
        });
        // The thread is woken, finds nothing and sleeps again.
        pool.set_core_threads(1).unwrap();
        drop(pool.execute(|| ()));
        other.join().unwrap();
        assert!(pool.join());
    });
}

/// P27. A task waits for the next one, which relies on a thread that drops its worker: another one is started.
#[test]
fn p27_a_worker_that_is_dropped_is_replaced() {
    for queueing in [HAND_OFFS[0], Queueing::Unbounded] {
        explore(1, move || {
            let starts = AtomicUsize::new(0);
            let start = move |worker: Worker| {
                let is_lost = starts.fetch_add(1, SeqCst) == 1;
                thread::Builder::new().spawn(move || if is_lost { drop(worker) } else { worker.run() })
            };
            let blocking = pool(queueing, 2, 2).rejection(Rejection::Block(Duration::MAX));
            let pool = blocking.start_with(start).build().unwrap();
            let signal = Signal::default();
            let waits = signal.clone();
            pool.execute(move || waits.wait()).unwrap();
            // It is dropped with the worker, or comes back.
            drop(pool.execute(|| ()));
            pool.execute(move || signal.give()).unwrap();
            assert!(pool.join());
        });
    }
}

/// A caller of `join` comes before the start has left the thread's handle.
#[test]
fn a_join_waits_for_the_start() {
    explore(2, || {
        let runs = Runs::default();
        let ended = Runs::default();
        let after = ended.clone();
        let start = move |worker: Worker| {
            let after = after.task();
            let thread = thread::Builder::new().spawn(move || {
                worker.run();
                thread::yield_now();
                after();
            });
            // The thread may leave, and the join come, before its handle is there.
            thread::yield_now();
            thread
        };
        let pool = pool(HAND_OFFS[0], 1, 1).start_with(start).build().unwrap();
        let caller = call(&pool, &runs);
        thread::yield_now();
        assert!(pool.join());
        // What was accepted is over, and so is the thread.
        assert_eq!(runs.get(), ended.get());
        let accepted = caller.join().unwrap();
        assert_eq!(runs.get(), usize::from(accepted));
    });
}

/// P27. A thread ends by new limits, and leaves a caller that waits to one that is being started, and does not start.
#[test]
fn p27_a_put_against_a_thread_that_ends_and_one_that_fails() {
    explore(quick(1, 2), || {
        let runs = Runs::default();
        let blocking = pool(HAND_OFFS[0], 1, 2).keep_alive(Duration::MAX).rejection(Rejection::Block(Duration::MAX));
        let pool = blocking.start_with(fails_at(1)).build().unwrap();
        pool.prestart(1).unwrap();
        let other = call(&pool, &runs);
        thread::yield_now();
        pool.set_max_threads(1).unwrap();
        thread::yield_now();
        let accepted = usize::from(pool.execute(runs.task()).is_ok()) + usize::from(other.join().unwrap());
        assert!(pool.join());
        assert_eq!(runs.get(), accepted);
    });
}

/// Something that a thread waits for.
#[derive(Clone, Default)]
struct Signal(Arc<(Mutex<bool>, Condvar)>);

impl Signal {
    fn give(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_one();
    }

    fn wait(&self) {
        let mut given = self.0.0.lock().unwrap();
        while !*given {
            given = self.0.1.wait(given).unwrap();
        }
    }
}

/// A task waits for one that came after it, and there are two threads: wherever the second one lies, a free thread
/// finds it.
#[test]
fn a_task_waits_for_the_next() {
    for max in [1, 2] {
        explore(2, move || {
            let pool = pool(Queueing::Unbounded, 2, 2).build().unwrap();
            // Both are started by the tasks, or there is one to begin with.
            pool.prestart(max - 1).unwrap();
            let signal = Signal::default();
            let waits = signal.clone();
            pool.execute(move || waits.wait()).unwrap();
            pool.execute(move || signal.give()).unwrap();
            assert!(pool.join());
        });
    }
}

/// The task comes while the thread falls asleep. Or the thread sleeps, is woken because limits have changed, finds
/// nothing and sleeps again: it counts as sleeping all the time, so the task may be put while it is up.
#[test]
fn a_task_wakes_the_thread() {
    for limits_change in [false, true] {
        explore(2, move || {
            let pool = one_thread(Queueing::Unbounded);
            (0..usize::from(limits_change)).for_each(|_| pool.set_core_threads(1).unwrap());
            let signal = Signal::default();
            let gives = signal.clone();
            pool.execute(move || gives.give()).unwrap();
            // Before the end of the pool, which wakes all.
            signal.wait();
            assert!(pool.join());
        });
    }
}

/// A caller waits for room: the thread that makes it wakes the caller.
#[test]
fn a_caller_waits_for_room() {
    explore(2, || {
        let runs = Runs::default();
        let pool = pool(Queueing::Bounded(1), 1, 1).rejection(Rejection::Block(Duration::MAX)).build().unwrap();
        for _ in 0..3 {
            pool.execute(runs.task()).unwrap();
        }
        assert!(pool.join());
        assert_eq!(runs.get(), 3);
    });
}

/// The scope's end against a thread that takes a task of it. The task adds another one, which no other thread may run,
/// while the scope waits.
#[test]
fn a_scope_runs_what_its_tasks_add() {
    explore(2, || {
        let runs = Runs::default();
        let pool = pool(HAND_OFFS[0], 1, 1).build().unwrap();
        let mut value = Box::new(0);
        pool.scope(|scope| {
            scope.spawn(|| {
                scope.spawn(|| runs.task()());
                *value = 5;
            });
        });
        assert_eq!((*value, runs.get()), (5, 1));
        assert!(pool.join());
    });
}

/// Limits that change while a thread falls asleep: it sees them, or is woken.
#[test]
fn a_thread_leaves_when_the_core_shrinks() {
    for queueing in [HAND_OFFS[0], Queueing::Unbounded] {
        explore(2, move || {
            let left = Signal::default();
            let leaves = left.clone();
            let pool = pool(queueing, 1, 1).on_thread_stop(move |_| leaves.give()).build().unwrap();
            pool.prestart(1).unwrap();
            pool.set_core_threads(0).unwrap();
            left.wait();
            assert!(pool.join());
        });
    }
}
