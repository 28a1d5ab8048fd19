use crate::support::{ALL, LONG, QUEUES, T, UNFAIR, builder, bump, occupy, until};
use corelane_pool::{BuildError, Fairness, Queueing, Rejection, ThreadPool, Worker};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Waits until every thread of the pool waits.
fn settle(pool: &ThreadPool) {
    until("all wait", || pool.counts().active == 0 && pool.waiting_threads() == pool.counts().threads);
}

pub(crate) fn p2_a_thread_that_waits_is_used_again() {
    for queueing in ALL {
        let pool = builder(queueing, 0, 8).build().unwrap();
        for _ in 0..20 {
            pool.spawn(|| ()).unwrap().join().unwrap();
            settle(&pool);
        }
        assert_eq!(pool.counts().largest, 1);
    }
}

pub(crate) fn p2_a_thread_is_started_only_when_none_waits() {
    for queueing in ALL {
        let pool = builder(queueing, 0, 20).build().unwrap();
        assert_eq!(pool.counts().threads, 0);
        occupy(&pool, 3).open();
        assert_eq!(pool.counts().threads, 3);
        settle(&pool);
        // With a queue, a thread on its way from sleep does not count as waiting: for each one more may be started.
        let woken = 3 * usize::from(QUEUES.contains(&queueing));
        occupy(&pool, 3).open();
        assert!((3..=3 + woken).contains(&pool.counts().largest));
        settle(&pool);
        occupy(&pool, 5).open();
        assert!((5..=5 + 2 * woken).contains(&pool.counts().largest));
    }
}

/// A caller that starts a thread is stopped for a while with its own task in hand. That is no work for others: if they
/// took it from each other, each would have one more thread started.
pub(crate) fn p2_a_slow_start_starts_no_others() {
    for queueing in ALL {
        let start = |worker: Worker| {
            let handle = std::thread::spawn(|| worker.run());
            std::thread::sleep(T);
            Ok(handle)
        };
        let pool = builder(queueing, 0, 40).start_with(start).build().unwrap();
        occupy(&pool, 2).open();
        settle(&pool);
        occupy(&pool, 5).open();
        // Each of those seven tasks may be the reason for two: as it is handed in, and as it begins.
        assert!(pool.counts().largest <= 14, "{queueing:?} {:?}", pool.counts());
    }
}

pub(crate) fn p3_core_threads_first_if_asked_for() {
    for queueing in ALL {
        let pool = builder(queueing, 3, 4).core_first(true).build().unwrap();
        for i in 1..6_usize {
            pool.spawn(|| ()).unwrap().join().unwrap();
            settle(&pool);
            assert_eq!(pool.counts().threads, i.min(3));
        }
    }
}

pub(crate) fn p9_threads_are_started_before_their_tasks() {
    for queueing in ALL {
        let pool = builder(queueing, 2, 4).build().unwrap();
        assert_eq!(pool.prestart(1).unwrap(), 1);
        assert_eq!(pool.counts().threads, 1);
        assert_eq!(pool.prestart(pool.core_threads()).unwrap(), 1);
        assert_eq!(pool.prestart(2).unwrap(), 0);
        assert_eq!(pool.prestart(100).unwrap(), 2);
        assert_eq!(pool.counts().threads, 4);
        settle(&pool);
        occupy(&pool, 4).open();
        assert_eq!(pool.counts().largest, 4);
        pool.shutdown();
        assert_eq!(pool.prestart(4).unwrap(), 0);
    }
}

pub(crate) fn p9_a_pool_without_core_threads() {
    for queueing in ALL {
        let pool = builder(queueing, 0, 2).keep_alive(Duration::from_millis(1)).build().unwrap();
        for i in 0..5 {
            assert_eq!(pool.spawn(move || i).unwrap().join().unwrap(), i);
            until("it is empty", || pool.counts().threads == 0);
        }
    }
}

pub(crate) fn p10_bad_settings_are_refused() {
    let error = |builder: corelane_pool::Builder| builder.build().unwrap_err();
    assert_eq!(error(builder(UNFAIR, 0, 0)), BuildError::NoThreads);
    assert_eq!(error(builder(UNFAIR, 3, 2)), BuildError::CoreAboveMax { core: 3, max: 2 });
    assert_eq!(error(builder(Queueing::Bounded(0), 1, 1)), BuildError::NoCapacity);
    // The short forms panic with the same texts.
    let panic = |short: fn() -> ThreadPool| *std::panic::catch_unwind(short).unwrap_err().downcast::<String>().unwrap();
    assert_eq!(panic(|| ThreadPool::fixed(0)), BuildError::NoThreads.to_string());
    assert_eq!(panic(|| ThreadPool::bounded(1, 0)), BuildError::NoCapacity.to_string());
    let pool = builder(UNFAIR, 2, 4).build().unwrap();
    assert_eq!(pool.set_max_threads(1), Err(BuildError::CoreAboveMax { core: 2, max: 1 }));
    assert_eq!(pool.set_core_threads(5), Err(BuildError::CoreAboveMax { core: 5, max: 4 }));
    assert_eq!(pool.set_threads(0), Err(BuildError::NoThreads));
    assert_eq!((pool.core_threads(), pool.max_threads()), (2, 4));
    // What is not set follows what is.
    let pool = ThreadPool::builder().core_threads(1000).build().unwrap();
    assert_eq!(pool.max_threads(), 1000);
    let pool = ThreadPool::builder().queueing(Queueing::Unbounded).max_threads(1).build().unwrap();
    assert_eq!(pool.core_threads(), 1);
}

pub(crate) fn p11_a_pool_grows_and_shrinks_at_work() {
    for queueing in ALL {
        // No thread leaves for any other reason.
        let pool = builder(queueing, 2, 2).keep_alive(10 * LONG).build().unwrap();
        let gate = occupy(&pool, 2);
        pool.set_threads(5).unwrap();
        let more = occupy(&pool, 3);
        assert_eq!(pool.counts().threads, 5);
        pool.set_threads(1).unwrap();
        assert_eq!(pool.counts().active, 5, "tasks go on");
        gate.open();
        until("two have left", || pool.counts().threads == 3);
        more.open();
        until("one is left", || pool.counts().threads == 1);
        settle(&pool);
        assert_eq!(pool.spawn(|| 7).unwrap().join().unwrap(), 7);
        // Threads that sleep leave, too.
        settle(&pool);
        pool.set_threads(6).unwrap();
        occupy(&pool, 6).open();
        settle(&pool);
        pool.set_threads(2).unwrap();
        until("two are left", || pool.counts().threads == 2);
        // A shorter time to wait counts for those that wait already.
        pool.set_max_threads(8).unwrap();
        settle(&pool);
        occupy(&pool, 8).open();
        pool.set_keep_alive(Duration::from_millis(1));
        until("two are left", || pool.counts().threads == 2);
    }
}

pub(crate) fn p11_many_resizes_under_load() {
    for queueing in ALL {
        let pool = builder(queueing, 0, 100)
            .keep_alive(Duration::from_nanos(1))
            .rejection(corelane_pool::Rejection::Block(Duration::MAX))
            .build()
            .unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0.. {
                    if over.load(SeqCst) {
                        break;
                    }
                    pool.set_max_threads(1 + i % 7).unwrap();
                    std::thread::yield_now();
                }
            });
            for _ in 0..3_000 {
                let ran = ran.clone();
                pool.execute(move || bump(&ran)).unwrap();
            }
            over.store(true, SeqCst);
        });
        assert!(pool.join());
        assert_eq!(ran.load(SeqCst), 3_000);
    }
}

/// What waits begins as soon as there may be a thread for it.
pub(crate) fn p11_a_pool_grows_for_what_waits() {
    for queueing in ALL {
        let pool = builder(queueing, 1, 1).rejection(Rejection::Block(LONG)).build().unwrap();
        let (gate, ran) = (occupy(&pool, 1), Arc::new(AtomicUsize::new(0)));
        std::thread::scope(|scope| {
            // Opened if this fails.
            let gate = gate;
            let task = ran.clone();
            scope.spawn(|| pool.execute(move || bump(&task)).unwrap());
            // It is queued, or its caller waits.
            std::thread::sleep(T);
            pool.set_max_threads(2).unwrap();
            until("it runs", || ran.load(SeqCst) == 1);
            gate.open();
        });
    }
}

pub(crate) fn p12_a_pool_shrinks_to_its_core() {
    for queueing in ALL {
        let lowest = Arc::new(AtomicUsize::new(usize::MAX));
        let pool = builder(queueing, 3, 6).keep_alive(T).build().unwrap();
        let start = Instant::now();
        occupy(&pool, 6).open();
        until("three are left", || {
            let threads = pool.counts().threads;
            lowest.fetch_min(threads, SeqCst);
            threads == 3
        });
        assert!(start.elapsed() >= T);
        std::thread::sleep(3 * T);
        assert_eq!(pool.counts().threads, 3, "never below the core");
    }
}

pub(crate) fn p12_core_threads_leave_if_they_may() {
    for queueing in ALL {
        let pool = builder(queueing, 3, 6).keep_alive(T).core_may_leave(true).build().unwrap();
        occupy(&pool, 6).open();
        until("none is left", || pool.counts().threads == 0);
        let gate = occupy(&pool, 2);
        assert_eq!((pool.counts().threads, pool.counts().largest), (2, 6));
        gate.open();
    }
}

pub(crate) fn p13_keep_alive_against_execute() {
    for queueing in ALL {
        // A thread whose task is over may not wait yet: with all four like that the next task waits for one.
        let pool = builder(queueing, 0, 4)
            .keep_alive(Duration::from_micros(20))
            .rejection(corelane_pool::Rejection::Block(LONG))
            .build()
            .unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        for i in 0..3_000 {
            let counter = ran.clone();
            let handle = pool.spawn(move || counter.fetch_add(1, SeqCst)).unwrap();
            assert!(handle.join_timeout(LONG).is_ok(), "lost");
            // Times around the keep-alive time.
            let pause = Instant::now();
            while pause.elapsed() < Duration::from_micros(i % 60) {
                std::hint::spin_loop();
            }
        }
        assert_eq!(ran.load(SeqCst), 3_000);
        assert!(pool.join());
    }
}

pub(crate) fn p14_low_load_shrinks_a_pool_that_has_grown() {
    for queueing in [UNFAIR, Queueing::Unbounded] {
        let pool = builder(queueing, 0, 12).keep_alive(Duration::from_millis(150)).build().unwrap();
        occupy(&pool, 12).open();
        settle(&pool);
        // One task at a time, oftener than the keep-alive time: a first-come order would keep all twelve. More than one
        // thread has some where one that is done does not come to wait in time.
        let start = Instant::now();
        let mut hot = HashSet::new();
        while pool.counts().threads > 8 {
            assert!(
                start.elapsed() < LONG,
                "{:?} for one task at a time, {} threads had one",
                pool.counts(),
                hot.len()
            );
            hot.insert(pool.spawn(|| std::thread::current().id()).unwrap().join().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn p22_an_idle_pool_uses_no_cpu() {
    // Other tests run in this process: the test runs itself again, alone.
    const ALONE: &str = "CORELANE_POOL_IDLE_ALONE";
    if std::env::var_os(ALONE).is_none() {
        // An emulator, where the processor is another one.
        let program = std::env::current_exe().unwrap().into_os_string();
        let mut words = std::env::var_os("CORELANE_TEST_RUNNER").into_iter().chain([program]);
        let status = std::process::Command::new(words.next().unwrap())
            .args(words)
            .args(["suite::growth::p22_an_idle_pool_uses_no_cpu", "--exact"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
        return;
    }
    let pools = ALL.map(|queueing| {
        let pool = builder(queueing, 4, 4).build().unwrap();
        occupy(&pool, 4).open();
        settle(&pool);
        pool
    });
    std::thread::sleep(T);
    let before = crate::support::cpu_time();
    std::thread::sleep(Duration::from_secs(2));
    let used = crate::support::cpu_time() - before;
    // The clock counts in steps of 10 ms. 1 % of 2 s are 20 ms.
    assert!(used <= Duration::from_millis(20), "{used:?} for {} idle pools", pools.len());
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn p22_an_idle_pool_uses_no_cpu() {}

pub(crate) fn w9_threads_first_then_the_queue() {
    for queueing in QUEUES {
        let pool = builder(queueing, 1, 3).build().unwrap();
        let gate = occupy(&pool, 3);
        pool.execute(|| ()).unwrap();
        let counts = pool.counts();
        assert_eq!((counts.threads, counts.queued), (3, 1));
        gate.open();
    }
    assert_eq!(ThreadPool::cached().queueing(), Queueing::HandOff(Fairness::Unfair));
}
