use crate::support::{ALL, Gate, LONG, T, UNFAIR, builder, bump, occupy, until};
use corelane_pool::{Fairness, JoinError, Queueing, Reason, Rejection, ThreadPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Pools with one thread that is busy, and no room.
fn full(rejection: Rejection) -> impl Iterator<Item = (ThreadPool, Gate)> {
    [UNFAIR, Queueing::HandOff(Fairness::Fair), Queueing::Bounded(2)].into_iter().map(move |queueing| {
        let pool = builder(queueing, 1, 1).rejection(rejection).build().unwrap();
        let gate = occupy(&pool, 1);
        while pool.try_execute(|| ()).is_ok() {}
        (pool, gate)
    })
}

pub(crate) fn p4_return() {
    for (pool, gate) in full(Rejection::Return) {
        let rejected = pool.execute(|| ()).unwrap_err();
        assert!(matches!(rejected.reason(), Reason::Saturated));
        let rejected = pool.spawn(|| 5).unwrap_err();
        assert_eq!(rejected.into_task()(), 5);
        gate.open();
        assert!(pool.counts().rejected >= 2);
    }
}

pub(crate) fn p4_caller_runs() {
    for (pool, gate) in full(Rejection::CallerRuns) {
        let here = std::thread::current().id();
        assert_eq!(pool.spawn(|| std::thread::current().id()).unwrap().join().unwrap(), here);
        // A panic stays the task's.
        pool.execute(|| panic!("in the caller")).unwrap();
        assert!(matches!(pool.spawn(|| panic!("again")).unwrap().join(), Err(JoinError::Panicked(_))));
        gate.open();
    }
}

pub(crate) fn p4_discard() {
    for (pool, gate) in full(Rejection::Discard) {
        let handle = pool.spawn(|| 1).unwrap();
        assert!(matches!(handle.join(), Err(JoinError::Dropped)));
        assert_eq!(pool.counts().discarded, 1);
        gate.open();
    }
}

pub(crate) fn p4_discard_oldest() {
    let pool = builder(Queueing::Bounded(2), 1, 1).rejection(Rejection::DiscardOldest).build().unwrap();
    let gate = occupy(&pool, 1);
    let handles: Vec<_> = (0..5).map(|i| pool.spawn(move || i).unwrap()).collect();
    assert_eq!(pool.counts().queued, 2);
    gate.open();
    let results: Vec<_> = handles.into_iter().map(|handle| handle.join().ok()).collect();
    assert_eq!(results, [None, None, None, Some(3), Some(4)]);
    assert_eq!(pool.counts().discarded, 3);

    let pool = builder(UNFAIR, 1, 1).rejection(Rejection::DiscardOldest).build().unwrap();
    let gate = occupy(&pool, 1);
    assert!(matches!(pool.spawn(|| 1).unwrap().join(), Err(JoinError::Dropped)));
    gate.open();
}

pub(crate) fn p4_block_until_there_is_room() {
    for (pool, gate) in full(Rejection::Block(LONG)) {
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| pool.spawn(|| 5).unwrap().join().unwrap());
            std::thread::sleep(T);
            assert!(!blocked.is_finished());
            gate.open();
            assert_eq!(blocked.join().unwrap(), 5);
        });
    }
}

pub(crate) fn p4_block_until_the_time_is_up() {
    for (pool, gate) in full(Rejection::Block(T)) {
        let start = Instant::now();
        let rejected = pool.spawn(|| 5).unwrap_err();
        assert!(start.elapsed() >= T);
        assert!(matches!(rejected.reason(), Reason::TimedOut));
        assert_eq!(rejected.into_task()(), 5);
        gate.open();
    }
}

/// The only thread there may be is being started by another caller, which is in no hurry.
pub(crate) fn p4_block_until_the_time_is_up_beside_a_start() {
    for queueing in ALL {
        let gate = Gate::new();
        let at_start = gate.clone();
        let pool = builder(queueing, 1, 1)
            .rejection(Rejection::Block(T))
            .start_with(move |worker| {
                at_start.pass();
                Ok(std::thread::spawn(|| worker.run()))
            })
            .build()
            .unwrap();
        std::thread::scope(|scope| {
            let starter = scope.spawn(|| pool.execute(|| ()));
            gate.await_comers(1);
            let start = Instant::now();
            let rejected = pool.spawn(|| 5);
            let time = start.elapsed();
            gate.open();
            let rejected = rejected.unwrap_err();
            assert!(time >= T && matches!(rejected.reason(), Reason::TimedOut), "{queueing:?} {rejected}");
            assert_eq!(rejected.into_task()(), 5);
            starter.join().unwrap().unwrap();
        });
    }
}

pub(crate) fn p4_blocked_callers_are_sent_away() {
    for (pool, gate) in full(Rejection::Block(Duration::MAX)) {
        std::thread::scope(|scope| {
            let blocked: Vec<_> = (0..3).map(|_| scope.spawn(|| pool.spawn(|| 5))).collect();
            std::thread::sleep(T);
            pool.shutdown();
            for blocked in blocked {
                let rejected = blocked.join().unwrap().unwrap_err();
                assert!(matches!(rejected.reason(), Reason::ShutDown));
            }
        });
        gate.open();
    }
}

pub(crate) fn p4_many_blocked_callers_all_get_through() {
    for queueing in [UNFAIR, Queueing::HandOff(Fairness::Fair), Queueing::Bounded(1), Queueing::Bounded(7)] {
        let pool = builder(queueing, 0, 2)
            .keep_alive(Duration::from_micros(1))
            .rejection(Rejection::Block(LONG))
            .build()
            .unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let ran = ran.clone();
                        pool.execute(move || bump(&ran)).unwrap();
                    }
                });
            }
        });
        assert!(pool.join());
        assert_eq!(ran.load(SeqCst), 4_000);
    }
}

pub(crate) fn p4_try_calls_return_at_once() {
    for rejection in [Rejection::CallerRuns, Rejection::Block(Duration::MAX), Rejection::Discard] {
        for (pool, gate) in full(rejection) {
            assert!(matches!(pool.try_execute(|| panic!("ran")).unwrap_err().reason(), Reason::Saturated));
            assert!(matches!(pool.try_spawn(|| panic!("ran")).unwrap_err().reason(), Reason::Saturated));
            gate.open();
        }
    }
}

/// However tasks lie in batches, never more of them wait than there is room for.
pub(crate) fn the_bound_is_exact() {
    let pool = builder(Queueing::Bounded(10), 2, 2).build().unwrap();
    for _ in 0..200 {
        let gates: Vec<Gate> = (0..12).map(|_| Gate::new()).collect();
        for gate in &gates {
            let gate = gate.clone();
            until("there is room", || {
                let gate = gate.clone();
                pool.execute(move || gate.pass()).is_ok()
            });
            drop(gate);
        }
        // Two have begun, ten wait.
        until("two have begun", || pool.counts().active == 2);
        assert!(pool.execute(|| ()).is_err());
        assert_eq!(pool.counts().queued, 10);
        for (opened, gate) in gates.iter().enumerate() {
            gate.open();
            let left = 11 - opened;
            until("the next has begun", || {
                let counts = pool.counts();
                (counts.active, counts.queued) == (left.min(2), left.saturating_sub(2))
            });
        }
    }
}
