//! The pool under many schedules that are drawn: several callers, dozens of tasks, threads that come and go, limits
//! that change. Runs with
//! `cargo shuttle -p corelane-pool --test shuttle`;
//! `CORELANE_SCHEDULES=1000` runs more of them, `SHUTTLE_RANDOM_SEED=7` others. Without shuttle the same scenarios
//! run on real threads: `cargo xtask soak`.
//!
//! Each scenario draws its sizes. A time of keep-alive may be over at any moment after a thread has begun to wait. A
//! thread that is not woken is a deadlock, which shuttle reports; so a scenario whose pool is joined shows that no task
//! and no thread was forgotten. What shuttle cannot show is said in `queues/corelane/tests/shuttle`.

#[cfg_attr(corelane_shuttle, path = "../../corelane/tests/support/schedules.rs")]
#[cfg_attr(not(corelane_shuttle), path = "../../corelane/tests/support/soak.rs")]
mod schedules;
#[cfg(not(corelane_shuttle))]
#[path = "../../corelane/tests/support/watchdog.rs"]
mod watchdog;

use corelane_pool::{Builder, Fairness, Queueing, Reason, Rejection, ThreadPool};
use schedules::sync::{Condvar, Mutex};
use schedules::thread::{self, JoinHandle};
use schedules::{draw, explore, many, one_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const HAND_OFFS: [Queueing; 2] = [Queueing::HandOff(Fairness::Unfair), Queueing::HandOff(Fairness::Fair)];
const QUEUES: [Queueing; 3] = [Queueing::Unbounded, Queueing::Bounded(1), Queueing::Bounded(8)];

/// Explores a scenario without a queue and with one.
fn both(scenario: fn(&[Queueing])) {
    explore(move || scenario(&HAND_OFFS));
    explore(move || scenario(&QUEUES));
}

/// A pool of a few threads, which may leave after any wait.
fn pool(queueing: Queueing) -> Builder {
    let core = draw(0..3);
    let max = core + draw(0..3);
    let keep_alive = one_of(&[Duration::ZERO, Duration::from_micros(20), Duration::MAX]);
    ThreadPool::builder()
        .queueing(queueing)
        .core_threads(core)
        .max_threads(max.max(1))
        .keep_alive(keep_alive)
        .core_may_leave(draw(0..2) == 0)
        .core_first(draw(0..2) == 0)
}

/// How often tasks ran.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn task(&self) -> impl FnOnce() + Send + 'static {
        let (runs, turns) = (self.0.clone(), draw(0..3));
        move || {
            (0..turns).for_each(|_| thread::yield_now());
            runs.fetch_add(1, SeqCst);
        }
    }

    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// Hands so many tasks in from a thread of its own, which says how many were accepted.
fn call(pool: &ThreadPool, runs: &Runs, tasks: usize) -> JoinHandle<usize> {
    let (pool, runs) = (pool.clone(), runs.clone());
    thread::spawn(move || (0..tasks).filter(|_| pool.execute(runs.task()).is_ok()).count())
}

fn callers(pool: &ThreadPool, runs: &Runs) -> Vec<JoinHandle<usize>> {
    (0..draw(1..4)).map(|_| call(pool, runs, many(draw(1..20)))).collect()
}

fn join(callers: Vec<JoinHandle<usize>>) -> usize {
    callers.into_iter().map(|caller| caller.join().unwrap()).sum()
}

/// Tasks that end when all of them have begun: none waits while there may be one more thread.
#[test]
fn tasks_begin_together() {
    both(|queueings| {
        let max = draw(2..5);
        let keep_alive = one_of(&[Duration::ZERO, Duration::from_micros(20), Duration::MAX]);
        let builder = ThreadPool::builder().queueing(one_of(queueings)).core_threads(draw(0..max + 1)).max_threads(max);
        let pool = builder.keep_alive(keep_alive).rejection(Rejection::Block(Duration::MAX)).build().unwrap();
        for _ in 0..draw(1..8) {
            let tasks = draw(1..max + 1);
            let begun = Arc::new((Mutex::new(0), Condvar::new()));
            let caller = |own: usize| {
                let (pool, begun) = (pool.clone(), begun.clone());
                thread::spawn(move || {
                    for _ in 0..own {
                        let begun = begun.clone();
                        pool.execute(move || await_all(&begun, 1, tasks)).unwrap();
                    }
                })
            };
            let some = draw(0..tasks + 1);
            let callers = [caller(some), caller(tasks - some)];
            await_all(&begun, 0, tasks);
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        }
        assert!(pool.join());
    });
}

/// Counts so many, and waits until all are counted.
fn await_all((count, changed): &(Mutex<usize>, Condvar), more: usize, all: usize) {
    let mut count = count.lock().unwrap();
    *count += more;
    changed.notify_all();
    drop(changed.wait_while(count, |count| *count < all).unwrap());
}

/// Whatever is accepted runs once, and the threads end.
#[test]
fn accepted_tasks_run() {
    both(|queueings| {
        let runs = Runs::default();
        let pool = pool(one_of(queueings)).build().unwrap();
        let accepted = join(callers(&pool, &runs));
        assert!(pool.join());
        assert_eq!(runs.get(), accepted);
        assert_eq!(pool.counts().threads, 0);
    });
}

/// Callers that wait for a thread or for room: all their tasks are accepted.
#[test]
fn patient_callers_are_served() {
    both(|queueings| {
        let runs = Runs::default();
        let pool = pool(one_of(queueings)).rejection(Rejection::Block(Duration::MAX)).build().unwrap();
        let counts = (0..draw(1..4)).map(|_| many(draw(1..20))).collect::<Vec<_>>();
        let callers = counts.iter().map(|&tasks| call(&pool, &runs, tasks)).collect();
        assert_eq!(join(callers), counts.iter().sum());
        assert!(pool.join());
        assert_eq!(runs.get(), counts.iter().sum());
    });
}

/// A shutdown in the middle: what was accepted runs, or comes back from `shutdown_now`.
#[test]
fn a_shutdown_in_midstream() {
    both(|queueings| {
        let runs = Runs::default();
        let rejection = one_of(&[Rejection::Return, Rejection::Block(Duration::from_micros(20))]);
        let pool = pool(one_of(queueings)).rejection(rejection).build().unwrap();
        let callers = callers(&pool, &runs);
        (0..draw(0..60)).for_each(|_| thread::yield_now());
        let back = if draw(0..2) == 0 {
            pool.shutdown();
            0
        } else {
            pool.shutdown_now().len()
        };
        let accepted = join(callers);
        assert!(pool.join());
        assert_eq!(runs.get() + back, accepted);
        assert!(matches!(pool.execute(|| {}).unwrap_err().reason(), Reason::ShutDown));
    });
}

/// Limits shrink and grow while tasks come.
#[test]
fn limits_change_in_midstream() {
    explore(|| {
        let runs = Runs::default();
        let queueing = one_of(&[HAND_OFFS[0], HAND_OFFS[1], QUEUES[0], QUEUES[1], QUEUES[2]]);
        let pool = pool(queueing).rejection(Rejection::Block(Duration::MAX)).build().unwrap();
        let callers = callers(&pool, &runs);
        for _ in 0..draw(1..6) {
            pool.set_threads(draw(1..4)).unwrap();
            pool.set_keep_alive(one_of(&[Duration::ZERO, Duration::from_micros(5), Duration::MAX]));
            (0..draw(0..20)).for_each(|_| thread::yield_now());
        }
        let accepted = join(callers);
        assert!(pool.join());
        assert_eq!(runs.get(), accepted);
    });
}

/// Tasks that borrow, some of which add others, in a pool that may be full.
#[test]
fn a_scope_ends_when_its_tasks_do() {
    explore(|| {
        let runs = Runs::default();
        let pool = pool(one_of(&[HAND_OFFS[0], HAND_OFFS[1], QUEUES[0], QUEUES[1]])).build().unwrap();
        let callers = callers(&pool, &runs);
        let mut values = vec![0; draw(1..12)];
        let added = AtomicUsize::new(0);
        pool.scope(|scope| {
            for value in &mut values {
                scope.spawn(|| {
                    *value += 1;
                    if draw(0..3) == 0 {
                        scope.spawn(|| {
                            added.fetch_add(1, SeqCst);
                        });
                    }
                });
            }
        });
        assert!(values.iter().all(|&value| value == 1));
        assert!(added.load(SeqCst) <= values.len());
        let accepted = join(callers);
        assert!(pool.join());
        assert_eq!(runs.get(), accepted);
    });
}
