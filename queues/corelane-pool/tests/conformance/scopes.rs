//! Tasks that borrow.

use crate::support::{ALL, LONG, builder, bump, occupy, until};
use corelane_pool::{Rejection, ThreadPool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// What is borrowed is dropped right after the scope: a task that outlived it would count into freed memory, or be
/// missing.
pub(crate) fn scopes_wait_for_tasks_that_others_have_begun() {
    const TASKS: usize = 20;
    for queueing in ALL {
        // A thread whose task is over may not wait yet: another can always be started.
        let pool = builder(queueing, 0, TASKS).build().unwrap();
        for _ in 0..TASKS {
            let over = Box::new(AtomicUsize::new(0));
            let begun = AtomicBool::new(false);
            let result = pool.scope(|scope| {
                scope.spawn(|| {
                    begun.store(true, SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    bump(&over);
                });
                until("a thread of the pool has it", || begun.load(SeqCst));
                "result"
            });
            assert_eq!((result, over.into_inner()), ("result", 1));
        }
    }
}

pub(crate) fn scopes_nest_in_a_pool_of_one_thread() {
    fn sum(pool: &ThreadPool, numbers: &[u64]) -> u64 {
        if numbers.len() <= 2 {
            return numbers.iter().sum();
        }
        let (left, right) = numbers.split_at(numbers.len() / 2);
        let (mut a, mut b) = (0, 0);
        pool.scope(|scope| {
            scope.spawn(|| a = sum(pool, left));
            scope.spawn(|| b = sum(pool, right));
        });
        a + b
    }
    for queueing in ALL {
        let pool = builder(queueing, 1, 1).build().unwrap();
        let numbers: Vec<u64> = (0..500).collect();
        let inner = pool.clone();
        let handle = pool.spawn(move || sum(&inner, &numbers)).unwrap();
        assert_eq!(handle.join_timeout(LONG).expect("in time").unwrap(), 499 * 250);
    }
}

pub(crate) fn scopes_need_no_thread() {
    for queueing in ALL {
        let pool = builder(queueing, 1, 1).rejection(Rejection::Discard).build().unwrap();
        let gate = occupy(&pool, 1);
        let here = std::thread::current().id();
        let ran = AtomicUsize::new(0);
        let task = || {
            assert_eq!(std::thread::current().id(), here);
            bump(&ran);
        };
        pool.scope(|scope| (0..5).for_each(|_| scope.spawn(task)));
        assert_eq!(ran.load(SeqCst), 5);
        gate.open();
        pool.shutdown();
        pool.scope(|scope| scope.spawn(task));
        assert_eq!(ran.load(SeqCst), 6);
    }
}

/// The scope's own thread runs them when the scope's closure has panicked: as anywhere else, a lock is poisoned by a
/// task that panics.
pub(crate) fn tasks_do_not_run_while_their_scope_unwinds() {
    for queueing in ALL {
        let pool = builder(queueing, 1, 1).build().unwrap();
        pool.shutdown();
        let (ran, unwinding, lock) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(()));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| {
                scope.spawn(|| {
                    let _held = lock.lock().unwrap();
                    std::panic::panic_any(7_u8)
                });
                scope.spawn(|| {
                    bump(&ran);
                    (0..usize::from(std::thread::panicking())).for_each(|_| bump(&unwinding));
                });
                std::panic::panic_any(8_u8)
            })
        }));
        assert_eq!(outcome.unwrap_err().downcast_ref::<u8>(), Some(&8));
        assert_eq!((ran.load(SeqCst), unwinding.load(SeqCst), lock.is_poisoned()), (1, 0, true));
    }
}

/// The pool keeps a reference to a task whose closure the scope has taken. It does nothing, whichever thread runs it.
pub(crate) fn what_is_left_of_a_scope_does_nothing() {
    let pool = builder(corelane_pool::Queueing::Unbounded, 1, 1).build().unwrap();
    let gate = occupy(&pool, 1);
    let ran = AtomicUsize::new(0);
    pool.scope(|scope| (0..5).for_each(|_| scope.spawn(|| bump(&ran))));
    assert_eq!(ran.load(SeqCst), 5);
    let left = pool.shutdown_now();
    assert_eq!(left.len(), 5);
    left.into_iter().for_each(corelane_pool::Task::run);
    assert_eq!(ran.load(SeqCst), 5);
    gate.open();
}
