use crate::support::{ALL, LONG, QUEUES, T, UNFAIR, builder, bump, occupy, settle, until};
use corelane_pool::{Queueing, Rejection, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

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

pub(crate) fn p2_p3_a_thread_is_used_again_or_the_core_comes_first() {
    for (queueing, core_first) in ALL.into_iter().flat_map(|queueing| [(queueing, false), (queueing, true)]) {
        let pool = builder(queueing, 3, 8).core_first(core_first).build().unwrap();
        for i in 1..6_usize {
            pool.spawn(|| ()).unwrap().join().unwrap();
            settle(&pool);
            assert_eq!(pool.counts().largest, if core_first { i.min(3) } else { 1 });
        }
    }
}

pub(crate) fn p9_threads_are_started_before_their_tasks() {
    for queueing in ALL {
        let pool = builder(queueing, 2, 4).build().unwrap();
        for (wanted, started, threads) in [(1, 1, 1), (pool.core_threads(), 1, 2), (2, 0, 2), (100, 2, 4)] {
            assert_eq!((pool.prestart(wanted).unwrap(), pool.counts().threads), (started, threads));
        }
        pool.shutdown();
        assert_eq!(pool.prestart(4).unwrap(), 0);
    }
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
    for (queueing, may_leave) in ALL.into_iter().flat_map(|queueing| [(queueing, false), (queueing, true)]) {
        let pool = builder(queueing, 3, 6).keep_alive(T).core_may_leave(may_leave).build().unwrap();
        let (left, begin) = (if may_leave { 0 } else { 3 }, Instant::now());
        occupy(&pool, 6).open();
        until("the others have left", || pool.counts().threads == left);
        assert!(begin.elapsed() >= T);
        std::thread::sleep(3 * T);
        assert_eq!(pool.counts().threads, left, "never below the core");
        occupy(&pool, 4).open();
        assert_eq!(pool.counts().largest, 6);
    }
}

pub(crate) fn p14_low_load_shrinks_a_pool_that_has_grown() {
    for queueing in [UNFAIR, Queueing::Unbounded] {
        let pool = builder(queueing, 0, 12).keep_alive(Duration::from_millis(150)).build().unwrap();
        occupy(&pool, 12).open();
        settle(&pool);
        // One task at a time, oftener than the keep-alive time: a first-come order would keep all twelve.
        let start = Instant::now();
        while pool.counts().threads > 8 {
            assert!(start.elapsed() < LONG, "{:?}", pool.counts());
            pool.spawn(|| ()).unwrap().join().unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

pub(crate) fn p22_an_idle_pool_uses_no_cpu() {
    // Other tests run in this process: the test runs itself again, alone.
    const ALONE: &str = "CORELANE_POOL_IDLE_ALONE";
    if !cfg!(target_os = "linux") {
        return;
    }
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
