use crate::support::{
    ALL, AtDrop, Gate, LONG, QUEUES, T, at_the_end_of_this_thread, builder, bump, end_this_thread, occupy, start, until,
};
use corelane_pool::{JoinError, OnDrop, Queueing, Reason, Rejected, Rejection, Task, TaskHandle, ThreadPool, Worker};
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) fn p5_after_a_shutdown_nothing_is_accepted_and_all_is_done() {
    for (queueing, rejection) in ALL.into_iter().flat_map(|queueing| REJECTIONS.map(|rejection| (queueing, rejection)))
    {
        let pool = builder(queueing, 1, 1).rejection(rejection).build().unwrap();
        let (gate, tasks) = (occupy(&pool, 1), Tasks::default());
        (0..10).for_each(|_| tasks.note(pool.try_execute(tasks.task())));
        (0..2).for_each(|_| pool.shutdown());
        assert!(pool.is_shut_down());
        let rejected = pool.execute(|| panic!("after the shutdown")).unwrap_err();
        assert!(matches!(rejected.reason(), Reason::ShutDown));
        assert!(matches!(pool.spawn(|| ()).unwrap_err().reason(), Reason::ShutDown));
        gate.open();
        assert!(pool.join());
        tasks.assert_all_ran(&[pool]);
    }
}

pub(crate) fn p6_shutdown_now_returns_what_has_not_begun() {
    for queueing in QUEUES {
        let pool = builder(queueing, 2, 2).build().unwrap();
        let (gate, order) = (occupy(&pool, 2), Arc::new(Mutex::new(Vec::new())));
        let spawn = |i| {
            let order = order.clone();
            pool.spawn(move || order.lock().unwrap().push(i)).unwrap()
        };
        let handles: Vec<_> = (0..100).map(spawn).collect();
        let mut tasks = pool.shutdown_now();
        assert_eq!((tasks.len(), pool.counts().queued), (100, 0));
        tasks.drain(..50).for_each(Task::run);
        drop(tasks);
        assert!(order.lock().unwrap().iter().copied().eq(0..50));
        for (i, handle) in handles.into_iter().enumerate() {
            let outcome = handle.join();
            assert!(if i < 50 { outcome.is_ok() } else { matches!(outcome, Err(JoinError::Dropped)) });
        }
        assert!(pool.shutdown_now().is_empty());
        gate.open();
        assert!(pool.join());
        assert_eq!(pool.counts().completed, 2);
    }
}

pub(crate) fn p7_await_termination() {
    for queueing in ALL {
        let pool = builder(queueing, 2, 2).build().unwrap();
        let gate = occupy(&pool, 2);
        for is_shut_down in [false, true] {
            let begin = Instant::now();
            assert!(!pool.await_termination(T) && begin.elapsed() >= T);
            assert_eq!((pool.is_shut_down(), pool.is_terminated()), (is_shut_down, false));
            pool.shutdown();
        }
        gate.open();
        std::thread::scope(|scope| {
            (0..3).for_each(|_| drop(scope.spawn(|| assert!(pool.await_termination(LONG)))));
        });
        assert!(pool.is_terminated() && pool.await_termination(Duration::ZERO));
    }
}

pub(crate) fn p18_names_and_stacks() {
    fn deep(bytes: usize) -> usize {
        let frame = std::hint::black_box([1_u8; 4096]);
        if bytes < 4096 { usize::from(frame[7]) } else { deep(bytes - 4096) + usize::from(frame[9]) }
    }
    for queueing in ALL {
        let pool = builder(queueing, 1, 1).name("io").stack_size(8 << 20).build().unwrap();
        let handle = pool.spawn(|| {
            // More than the usual 2 MiB.
            assert!(deep(5 << 20) > 0);
            std::thread::current().name().map(str::to_owned)
        });
        assert_eq!(handle.unwrap().join().unwrap().as_deref(), Some("io-0"));
    }
}

pub(crate) fn p20_dropping_the_last_handle_joins_or_detaches() {
    for (queueing, on_drop) in
        ALL.into_iter().flat_map(|queueing| [(queueing, OnDrop::Join), (queueing, OnDrop::Detach)])
    {
        let (sender, is_terminated) = mpsc::channel();
        let settings = builder(queueing, 1, 1).on_drop(on_drop);
        let pool = settings.on_terminated(move || sender.send(()).unwrap()).build().unwrap();
        let (gate, other) = (occupy(&pool, 1), pool.clone());
        drop(pool);
        assert!(!other.is_shut_down(), "not the last one");
        let drops = std::thread::spawn(move || drop(other));
        if on_drop == OnDrop::Detach {
            until("it does not wait", || drops.is_finished());
        }
        std::thread::sleep(T);
        assert_eq!(drops.is_finished(), on_drop == OnDrop::Detach);
        assert_eq!(is_terminated.try_recv(), Err(mpsc::TryRecvError::Empty));
        gate.open();
        drops.join().unwrap();
        is_terminated.recv_timeout(LONG).unwrap();
    }
}

pub(crate) fn p20_a_task_drops_the_last_handle() {
    for queueing in ALL {
        let (sender, is_terminated) = mpsc::channel();
        let pool = builder(queueing, 1, 1).on_terminated(move || sender.send(()).unwrap()).build().unwrap();
        let gate = Gate::new();
        let (inner, before) = (pool.clone(), gate.clone());
        let task = pool.spawn(move || {
            before.pass();
            inner.await_termination(LONG)
        });
        gate.await_comers(1);
        drop(pool);
        gate.open();
        assert!(!task.unwrap().join().unwrap(), "a thread of the pool does not wait for itself");
        is_terminated.recv_timeout(LONG).unwrap();
    }
}

/// In destructors of thread-locals, and after `Worker::run`: a thread that joined the pool there would wait for itself,
/// or for one that waits for it.
pub(crate) fn p20_a_thread_that_has_left_does_not_wait() {
    for queueing in ALL {
        for (threads, after_run) in [(1, false), (2, false), (1, true), (2, true)] {
            let (sender, is_terminated) = mpsc::channel();
            let pool = builder(queueing, 0, 2)
                .keep_alive(Duration::from_millis(1))
                .on_terminated(move || sender.send(()).unwrap())
                .start_with(move |worker| {
                    std::thread::Builder::new().spawn(move || {
                        worker.run();
                        (0..usize::from(after_run)).for_each(|_| end_this_thread());
                    })
                })
                .build()
                .unwrap();
            let (sender, waits) = mpsc::channel();
            let (gate, left) = (Gate::new(), Gate::new());
            for _ in 0..threads {
                let (kept, sender, gate, left) = (pool.clone(), sender.clone(), gate.clone(), left.clone());
                pool.execute(move || {
                    at_the_end_of_this_thread(move || {
                        // The other one has left by then, and joins this one.
                        left.pass();
                        sender.send((kept.join(), kept.await_termination(LONG))).unwrap();
                        // The last one, at times.
                        drop(kept);
                    });
                    gate.pass();
                })
                .unwrap();
            }
            gate.await_comers(threads);
            drop(pool);
            gate.open();
            left.await_comers(1);
            std::thread::sleep(T);
            left.open();
            for _ in 0..threads {
                assert_eq!(waits.recv_timeout(LONG), Ok((false, false)));
            }
            is_terminated.recv_timeout(LONG).unwrap();
        }
    }
}

pub(crate) fn p21_thread_locals_are_dropped_when_join_returns() {
    for queueing in ALL {
        let dropped = Arc::new(AtomicUsize::new(0));
        let pool = builder(queueing, 0, 4).keep_alive(Duration::from_millis(1)).build().unwrap();
        for threads in [4, 2] {
            let gate = Gate::new();
            for _ in 0..threads {
                let (gate, dropped) = (gate.clone(), dropped.clone());
                pool.execute(move || {
                    at_the_end_of_this_thread(move || {
                        std::thread::sleep(T);
                        bump(&dropped);
                    });
                    gate.pass();
                })
                .unwrap();
            }
            gate.await_comers(threads);
            gate.open();
            // Those that leave by themselves count, too.
            until("all have left", || threads == 2 || pool.counts().threads == 0);
        }
        assert!(pool.join());
        assert_eq!(dropped.load(SeqCst), 6);
    }
}

pub(crate) fn a_pool_without_threads_terminates() {
    for queueing in ALL {
        let ended = Arc::new(AtomicBool::new(false));
        let ends = ended.clone();
        let pool = builder(queueing, 2, 2).on_terminated(move || ends.store(true, SeqCst)).build().unwrap();
        assert!(pool.join());
        assert!(pool.is_terminated() && ended.load(SeqCst));
    }
}

/// Where the pool's callbacks find their pool.
#[derive(Clone, Default)]
struct Place(Arc<Mutex<Option<ThreadPool>>>);

thread_local! {
    static CALLS: Cell<bool> = const { Cell::new(false) };
}

impl Place {
    /// Calls every function of the pool that does not end it, unless such a call brought the thread here. A call that
    /// waits for the pool's end returns.
    fn call_all(&self, calls: &AtomicUsize) {
        let pool = self.0.lock().unwrap().clone();
        let Some(pool) = pool.filter(|_| !CALLS.replace(true)) else { return };
        pool.counts();
        pool.waits();
        pool.waiting_threads();
        pool.is_shut_down();
        pool.is_terminated();
        pool.stop_token();
        pool.queueing();
        pool.set_core_threads(pool.core_threads()).unwrap();
        pool.set_max_threads(pool.max_threads()).unwrap();
        pool.set_keep_alive(LONG);
        pool.prestart(1).unwrap();
        let _ = pool.try_execute(|| ());
        let _ = pool.try_spawn(|| ());
        pool.scope(|scope| scope.spawn(|| ()));
        assert!(!format!("{pool:?}").is_empty());
        pool.await_termination(Duration::ZERO);
        bump(calls);
        CALLS.set(false);
    }
}

/// What its drop asks of the pool does not wait for that drop's end.
pub(crate) fn p21_a_task_that_goes_with_its_worker_is_dropped_when_join_returns() {
    for queueing in ALL {
        let (gate, at_drop) = (Gate::new(), Gate::new());
        let at_start = gate.clone();
        let start = move |worker: Worker| {
            let gate = at_start.clone();
            std::thread::Builder::new().spawn(move || {
                gate.pass();
                drop(worker);
            })
        };
        let blocking = builder(queueing, 0, 1).rejection(Rejection::Block(Duration::MAX));
        let pool = blocking.start_with(start).build().unwrap();
        let (inner, drops, (sender, answer)) = (pool.clone(), at_drop.clone(), mpsc::channel());
        let calls = AtDrop::call(move || {
            sender.send((inner.execute(|| ()).is_ok(), inner.join())).unwrap();
            drops.pass();
        });
        pool.execute(move || drop(calls)).unwrap();
        gate.open();
        at_drop.await_comers(1);
        let is_early = pool.await_termination(T);
        at_drop.open();
        assert_eq!((is_early, answer.recv()), (false, Ok((false, false))));
        assert!(pool.join());
        assert_eq!((pool.counts().discarded, pool.counts().panicked), (1, 0));
    }
}

/// No lock is held, and nothing is half done, where users' code runs.
pub(crate) fn what_the_pool_calls_may_call_the_pool() {
    for queueing in [ALL[0], ALL[1], Queueing::Bounded(1)] {
        let place = Place::default();
        let calls: [Arc<AtomicUsize>; 8] = std::array::from_fn(|_| Arc::default());
        let call = |at: usize| {
            let (place, calls) = (place.clone(), calls[at].clone());
            move || place.call_all(&calls)
        };
        let (starts, stops, panics, begins) = (call(0), call(1), call(2), call(3));
        let pool = builder(queueing, 0, 3)
            .rejection(Rejection::Discard)
            .on_thread_start(move |_| starts())
            .on_thread_stop(move |_| stops())
            .on_panic(move |_| panics())
            .before_task(call(4))
            .after_task(call(5))
            .on_terminated(call(6))
            .start_with(move |worker| {
                let thread = start(worker);
                begins();
                thread
            })
            .build()
            .unwrap();
        *place.0.lock().unwrap() = Some(pool.clone());
        pool.execute(|| panic!("for the handler")).unwrap();
        until("it is called", || calls[2].load(SeqCst) > 0);
        // A task that is discarded.
        let (gate, mut dropped) = (occupy(&pool, 3), Some(AtDrop::call(call(7))));
        until("it is dropped", || {
            let dropped = dropped.take();
            pool.execute(move || drop(dropped)).unwrap();
            calls[7].load(SeqCst) > 0
        });
        gate.open();
        pool.shutdown();
        assert!(pool.await_termination(LONG));
        *place.0.lock().unwrap() = None;
        assert!(calls.iter().all(|calls| calls.load(SeqCst) > 0), "{calls:?}");
    }
}

/// The thread that would run the task may be the one that is being started.
pub(crate) fn p20_a_start_that_joins_a_task_panics() {
    for queueing in ALL {
        let place = Arc::new(Mutex::new(None::<TaskHandle<()>>));
        let (knows, panics) = (place.clone(), Arc::new(Mutex::new(None)));
        let handler = panics.clone();
        let pool = builder(queueing, 0, 2)
            .start_with(move |worker| {
                let handle = knows.lock().unwrap().take();
                handle.into_iter().for_each(|handle| handle.join().unwrap());
                start(worker)
            })
            .on_panic(move |payload| *handler.lock().unwrap() = payload.downcast::<&str>().ok())
            .build()
            .unwrap();
        // Longer than the call below, unless that waits for the task.
        let (returned, returns) = mpsc::channel::<()>();
        let handle = pool.spawn(move || returns.recv_timeout(LONG / 10).unwrap_or_default()).unwrap();
        until("it has begun", || pool.counts().active == 1);
        *place.lock().unwrap() = Some(handle);
        assert_eq!(pool.execute(|| ()).is_ok(), QUEUES.contains(&queueing));
        drop(returned);
        assert!(pool.join());
        let panic = panics.lock().unwrap().take().expect("the start has panicked");
        assert!(panic.contains("joined in `start_with`"), "{panic}");
        assert_eq!((pool.counts().failed_starts, pool.counts().panicked), (1, 1));
    }
}

/// Starts threads as usual, once `before` was called with the pool.
fn starts_after(
    place: &Place,
    before: impl Fn(&ThreadPool) + Send + Sync + 'static,
) -> impl Fn(Worker) -> io::Result<JoinHandle<()>> + Send + Sync + 'static {
    let place = place.clone();
    move |worker| {
        let pool = place.0.lock().unwrap().clone();
        pool.iter().for_each(&before);
        drop(pool);
        start(worker)
    }
}

/// Tasks, and which of them ran and were accepted.
#[derive(Clone, Default)]
struct Tasks {
    ran: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
}

impl Tasks {
    fn task(&self) -> impl FnOnce() + Send + 'static + use<> {
        let ran = self.ran.clone();
        move || bump(&ran)
    }

    fn note<T, R>(&self, outcome: Result<T, Rejected<R>>) {
        match outcome {
            Ok(_) => bump(&self.accepted),
            Err(rejected) => {
                assert!(matches!(rejected.reason(), Reason::NoThread(_) | Reason::Saturated), "{rejected}");
            }
        }
    }

    /// In every way.
    fn bring(&self, pool: &ThreadPool) {
        self.note(pool.execute(self.task()));
        self.note(pool.try_execute(self.task()));
        self.note(pool.execute_task(Task::new(self.task())));
        self.note(pool.spawn(self.task()));
        self.note(pool.try_spawn(self.task()));
    }

    fn assert_all_ran(self, pools: &[ThreadPool]) {
        let discarded = pools.iter().map(|pool| pool.counts().discarded as usize).sum::<usize>();
        assert_eq!(self.ran.load(SeqCst) + discarded, self.accepted.load(SeqCst), "{pools:?}");
    }
}

const REJECTIONS: [Rejection; 5] = [
    Rejection::Return,
    Rejection::CallerRuns,
    Rejection::Block(Duration::MAX),
    Rejection::Discard,
    Rejection::DiscardOldest,
];

/// The thread that would take the task is the one that is being started, or busy, or waits for this start.
pub(crate) fn p20_a_start_brings_tasks() {
    let queueings = [ALL[0], ALL[1], ALL[2], ALL[3], Queueing::Bounded(1)];
    for (queueing, busy) in queueings.into_iter().flat_map(|queueing| [(queueing, 0), (queueing, 1)]) {
        for rejection in REJECTIONS {
            let (place, tasks, scoped) = (Place::default(), Tasks::default(), Arc::new(AtomicUsize::new(0)));
            let (brings, of_scope) = (tasks.clone(), scoped.clone());
            let start = starts_after(&place, move |pool| {
                brings.bring(pool);
                pool.scope(|scope| scope.spawn(|| bump(&of_scope)));
                assert!(!pool.await_termination(LONG));
            });
            let pool = builder(queueing, 0, busy + 1).rejection(rejection).start_with(start).build().unwrap();
            let gate = occupy(&pool, busy);
            *place.0.lock().unwrap() = Some(pool.clone());
            tasks.note(pool.execute(tasks.task()));
            *place.0.lock().unwrap() = None;
            assert_eq!((pool.counts().failed_starts, scoped.load(SeqCst)), (0, 1));
            gate.open();
            assert!(pool.join());
            tasks.assert_all_ran(&[pool]);
        }
    }
}

/// Each start brings tasks to the other pool, which may be starting this one's thread.
pub(crate) fn p20_starts_of_two_pools_bring_tasks_to_each_other() {
    for queueing in ALL {
        for rejection in REJECTIONS {
            let (places, tasks) = ([Place::default(), Place::default()], Tasks::default());
            let pool = |own: usize| {
                let brings = tasks.clone();
                let start = starts_after(&places[1 - own], move |other| {
                    brings.bring(other);
                    assert!(own == 0 || !other.await_termination(LONG));
                });
                builder(queueing, 1, 1).rejection(rejection).start_with(start).build().unwrap()
            };
            let pools = [pool(0), pool(1)];
            for (place, pool) in places.iter().zip(&pools) {
                *place.0.lock().unwrap() = Some(pool.clone());
            }
            tasks.note(pools[0].execute(tasks.task()));
            for place in &places {
                *place.0.lock().unwrap() = None;
            }
            assert!(pools.iter().all(ThreadPool::join));
            tasks.assert_all_ran(&pools);
        }
    }
}
