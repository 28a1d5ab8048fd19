use crate::support::{ALL, Gate, T, UNFAIR, builder, occupy, until};
use corelane_pool::{Queueing, Reason, Rejection, ThreadPool};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Pools with one thread that is busy, and no room.
fn full(rejection: Rejection) -> impl Iterator<Item = (ThreadPool, Gate)> {
    [ALL[0], ALL[1], Queueing::Bounded(2)].into_iter().map(move |queueing| {
        let pool = builder(queueing, 1, 1).rejection(rejection).build().unwrap();
        let gate = occupy(&pool, 1);
        while pool.try_execute(|| ()).is_ok() {}
        (pool, gate)
    })
}

pub(crate) fn p4_return() {
    for (pool, gate) in full(Rejection::Return) {
        let (sender, receiver) = channel();
        let rejected = pool.execute(move || sender.send(4).unwrap()).unwrap_err();
        assert!(matches!(rejected.reason(), Reason::Saturated));
        assert_eq!(pool.spawn(|| 5).unwrap_err().into_task()(), 5);
        assert!(pool.counts().rejected >= 2);
        gate.open();
        until("all wait", || pool.waiting_threads() == 1);
        pool.execute_task(rejected.into_task()).unwrap();
        assert_eq!(receiver.recv(), Ok(4));
    }
}

pub(crate) fn p4_discard() {
    let hand_off = [None; 5];
    let [first, last] = [[Some(0), Some(1), None, None, None], [None, None, None, Some(3), Some(4)]];
    for (queueing, rejection, results) in [
        (UNFAIR, Rejection::Discard, hand_off),
        (UNFAIR, Rejection::DiscardOldest, hand_off),
        (Queueing::Bounded(2), Rejection::Discard, first),
        (Queueing::Bounded(2), Rejection::DiscardOldest, last),
    ] {
        let pool = builder(queueing, 1, 1).rejection(rejection).build().unwrap();
        let gate = occupy(&pool, 1);
        let handles = [0, 1, 2, 3, 4].map(|i| pool.spawn(move || i).unwrap());
        let discarded = results.iter().filter(|result| result.is_none()).count();
        assert_eq!((pool.counts().queued, pool.counts().discarded), (5 - discarded, discarded as u64));
        gate.open();
        assert_eq!(handles.map(|handle| handle.join().ok()), results);
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

pub(crate) fn p4_block_until_the_time_is_up() {
    for (pool, gate) in full(Rejection::Block(T)) {
        let start = Instant::now();
        let rejected = pool.spawn(|| 5).unwrap_err();
        assert!(start.elapsed() >= T && matches!(rejected.reason(), Reason::TimedOut), "{rejected}");
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
                assert!(matches!(blocked.join().unwrap().unwrap_err().reason(), Reason::ShutDown));
            }
        });
        gate.open();
    }
}

/// However tasks lie in batches, never more of them wait than there is room for.
pub(crate) fn the_bound_is_exact() {
    let pool = builder(Queueing::Bounded(10), 2, 2).build().unwrap();
    for _ in 0..200 {
        let gates: Vec<Gate> = (0..12).map(|_| Gate::new()).collect();
        for gate in &gates {
            until("there is room", || {
                let gate = gate.clone();
                pool.execute(move || gate.pass()).is_ok()
            });
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
