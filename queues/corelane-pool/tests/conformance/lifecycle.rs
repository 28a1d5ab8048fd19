use crate::support::{ALL, Gate, LONG, QUEUES, T, at_the_end_of_this_thread, builder, bump, occupy, until};
use corelane_pool::{JoinError, OnDrop, Queueing, Reason, Rejected, Rejection, Task, TaskHandle, ThreadPool, Worker};
use std::cell::{Cell, RefCell};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) fn p5_after_a_shutdown_nothing_is_accepted_and_all_is_done() {
    for rejection in [Rejection::Return, Rejection::CallerRuns, Rejection::Block(LONG), Rejection::DiscardOldest] {
        for queueing in ALL {
            let pool = builder(queueing, 1, 1).rejection(rejection).build().unwrap();
            let gate = occupy(&pool, 1);
            let ran = Arc::new(AtomicUsize::new(0));
            let accepted = (0..10)
                .filter(|_| {
                    let ran = ran.clone();
                    pool.try_execute(move || bump(&ran)).is_ok()
                })
                .count();
            pool.shutdown();
            pool.shutdown();
            assert!(pool.is_shut_down());
            let rejected = pool.execute(|| panic!("after the shutdown")).unwrap_err();
            assert!(matches!(rejected.reason(), Reason::ShutDown));
            assert!(matches!(pool.spawn(|| ()).unwrap_err().reason(), Reason::ShutDown));
            gate.open();
            assert!(pool.join());
            assert_eq!(ran.load(SeqCst), accepted);
        }
    }
}

pub(crate) fn p6_shutdown_now_returns_what_has_not_begun() {
    for queueing in QUEUES {
        let pool = builder(queueing, 2, 2).build().unwrap();
        let gate = occupy(&pool, 2);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut handles = Vec::new();
        for i in 0..100 {
            let order = order.clone();
            handles.push(pool.spawn(move || order.lock().unwrap().push(i)).unwrap());
        }
        let mut tasks = pool.shutdown_now();
        assert_eq!(tasks.len(), 100);
        assert_eq!(pool.counts().queued, 0);
        tasks.drain(..50).for_each(corelane_pool::Task::run);
        drop(tasks);
        assert!(order.lock().unwrap().iter().copied().eq(0..50));
        for (i, handle) in handles.into_iter().enumerate() {
            match handle.join() {
                Ok(()) => assert!(i < 50),
                Err(JoinError::Dropped) => assert!(i >= 50),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(pool.shutdown_now().is_empty());
        gate.open();
        assert!(pool.join());
        assert_eq!(pool.counts().completed, 2);
    }
}

pub(crate) fn p6_the_stop_token_tells_those_that_have() {
    for queueing in ALL {
        let pool = builder(queueing, 1, 1).build().unwrap();
        let token = pool.stop_token();
        let told = pool.spawn(move || until("told", || token.is_cancelled())).unwrap();
        pool.shutdown_now();
        told.join().unwrap();
        assert!(pool.join());
    }
}

pub(crate) fn p7_await_termination() {
    for queueing in ALL {
        let pool = builder(queueing, 2, 2).build().unwrap();
        let gate = occupy(&pool, 2);
        let start = Instant::now();
        assert!(!pool.await_termination(T), "it is alive");
        assert!(start.elapsed() >= T);
        assert!(!pool.is_shut_down() && !pool.is_terminated());
        pool.shutdown();
        assert!(!pool.await_termination(T), "tasks run");
        assert!(pool.is_shut_down() && !pool.is_terminated());
        gate.open();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert!(pool.await_termination(LONG)));
            }
        });
        assert!(pool.is_terminated());
        assert!(pool.await_termination(Duration::ZERO));
    }
}

/// Whatever comes first: each task runs or comes back, and the pool ends.
fn against(shut: impl Fn(&ThreadPool) -> usize + Sync) {
    for queueing in ALL {
        for round in 0..256_usize {
            let pool = builder(queueing, 0, 4).build().unwrap();
            let ran = Arc::new(AtomicUsize::new(0));
            let barrier = std::sync::Barrier::new(3);
            let submit = || {
                barrier.wait();
                (0..20)
                    .filter(|_| {
                        let ran = ran.clone();
                        pool.execute(move || bump(&ran)).is_ok()
                    })
                    .count()
            };
            let (accepted, back) = std::thread::scope(|scope| {
                let submitters = [scope.spawn(submit), scope.spawn(submit)];
                barrier.wait();
                (0..round % 64).for_each(|_| std::hint::spin_loop());
                let back = shut(&pool);
                (submitters.map(|submitter| submitter.join().unwrap()).iter().sum::<usize>(), back)
            });
            assert!(pool.await_termination(LONG));
            assert_eq!(ran.load(SeqCst) + back, accepted);
            assert_eq!(pool.counts().threads, 0);
        }
    }
}

pub(crate) fn p16_execute_against_shutdown_now() {
    against(|pool| pool.shutdown_now().len());
}

pub(crate) fn p16_execute_against_shutdown() {
    against(|pool| {
        pool.shutdown();
        0
    });
}

pub(crate) fn p18_hooks_names_and_stacks() {
    for queueing in ALL {
        let log = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let log = log.clone();
            move || log.lock().unwrap().push(what)
        };
        let (start, stop) = (note("start"), note("stop"));
        let pool = builder(queueing, 1, 1)
            .name("io")
            .stack_size(8 << 20)
            .on_thread_start(move |number| {
                assert_eq!(number, 0);
                start();
            })
            .on_thread_stop(move |_| stop())
            .before_task(note("before"))
            .after_task(note("after"))
            .on_terminated(note("terminated"))
            .build()
            .unwrap();
        fn deep(bytes: usize) -> usize {
            let frame = std::hint::black_box([1_u8; 4096]);
            if bytes < 4096 { usize::from(frame[7]) } else { deep(bytes - 4096) + usize::from(frame[9]) }
        }
        let task = note("task");
        let handle = pool.spawn(move || {
            task();
            // More than the usual 2 MiB.
            assert!(deep(5 << 20) > 0);
            std::thread::current().name().map(str::to_owned)
        });
        assert_eq!(handle.unwrap().join().unwrap().as_deref(), Some("io-0"));
        assert!(pool.join());
        assert_eq!(*log.lock().unwrap(), ["start", "before", "task", "after", "stop", "terminated"]);
    }
}

pub(crate) fn p18_hooks_may_panic() {
    for queueing in ALL {
        let pool = builder(queueing, 1, 1)
            .on_thread_start(|_| panic!("start"))
            .on_thread_stop(|_| panic!("stop"))
            .before_task(|| panic!("before"))
            .after_task(|| panic!("after"))
            .on_terminated(|| panic!("terminated"))
            .build()
            .unwrap();
        assert_eq!(pool.spawn(|| 3).unwrap().join().unwrap(), 3);
        assert!(pool.join());
        assert_eq!(pool.counts().panicked, 5);
    }
}

pub(crate) fn p20_dropping_the_last_handle_joins() {
    for queueing in ALL {
        let pool = builder(queueing, 2, 2).build().unwrap();
        let over = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let over = over.clone();
            pool.execute(move || {
                std::thread::sleep(T);
                over.fetch_add(1, SeqCst);
            })
            .unwrap();
        }
        let other = pool.clone();
        drop(pool);
        assert!(!other.is_shut_down(), "not the last one");
        drop(other);
        assert_eq!(over.load(SeqCst), 2);
    }
}

pub(crate) fn p20_dropping_the_last_handle_detaches_if_asked_for() {
    for queueing in ALL {
        let (sender, receiver) = mpsc::channel();
        let pool = builder(queueing, 1, 1)
            .on_drop(OnDrop::Detach)
            .on_terminated(move || sender.send(()).unwrap())
            .build()
            .unwrap();
        let gate = occupy(&pool, 1);
        drop(pool);
        assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Empty));
        gate.open();
        receiver.recv_timeout(LONG).unwrap();
    }
}

pub(crate) fn p20_a_worker_does_not_wait_for_itself() {
    for queueing in ALL {
        let pool = builder(queueing, 1, 1).build().unwrap();
        let inner = pool.clone();
        let handle = pool.spawn(move || (inner.await_termination(LONG), inner.join())).unwrap();
        assert_eq!(handle.join().unwrap(), (false, false));
        assert!(pool.await_termination(LONG), "the worker has shut it down");
    }
}

pub(crate) fn p20_a_worker_drops_the_last_handle() {
    for queueing in ALL {
        let (sender, receiver) = mpsc::channel();
        let pool = builder(queueing, 1, 1).on_terminated(move || sender.send(()).unwrap()).build().unwrap();
        let gate = Gate::new();
        let (inner, before) = (pool.clone(), gate.clone());
        pool.execute(move || {
            before.pass();
            drop(inner);
        })
        .unwrap();
        gate.await_comers(1);
        drop(pool);
        gate.open();
        receiver.recv_timeout(LONG).unwrap();
    }
}

/// The thread that joined it would wait for itself, or for one that waits for it.
pub(crate) fn p20_a_thread_local_of_a_worker_does_not_wait() {
    for queueing in ALL {
        for threads in [1, 2] {
            let (sender, is_terminated) = mpsc::channel();
            let pool = builder(queueing, 0, 2)
                .keep_alive(Duration::from_millis(1))
                .on_terminated(move || sender.send(()).unwrap())
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

pub(crate) fn p20_what_comes_after_a_worker_does_not_wait() {
    for queueing in ALL {
        let (sender, waits) = mpsc::channel();
        let kept = Arc::new(Mutex::new(None));
        let keeps = kept.clone();
        let pool = builder(queueing, 0, 1)
            .keep_alive(Duration::from_millis(1))
            .start_with(move |worker| {
                let (kept, sender) = (keeps.clone(), sender.clone());
                std::thread::Builder::new().spawn(move || {
                    worker.run();
                    let pool: ThreadPool = kept.lock().unwrap().take().unwrap();
                    sender.send(pool.join()).unwrap();
                    drop(pool);
                    sender.send(false).unwrap();
                })
            })
            .build()
            .unwrap();
        *kept.lock().unwrap() = Some(pool.clone());
        pool.spawn(|| ()).unwrap().join().unwrap();
        drop(pool);
        for _ in 0..2 {
            assert_eq!(waits.recv_timeout(LONG), Ok(false));
        }
    }
}

pub(crate) fn p21_thread_locals_are_dropped_when_join_returns() {
    struct Late(Arc<AtomicUsize>);
    impl Drop for Late {
        fn drop(&mut self) {
            std::thread::sleep(T);
            self.0.fetch_add(1, SeqCst);
        }
    }
    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }
    for queueing in ALL {
        let dropped = Arc::new(AtomicUsize::new(0));
        let pool = builder(queueing, 0, 4).keep_alive(Duration::from_millis(1)).build().unwrap();
        for threads in [4, 2] {
            // Those that leave by themselves count, too.
            let gate = Gate::new();
            for _ in 0..threads {
                let (gate, dropped) = (gate.clone(), dropped.clone());
                pool.execute(move || {
                    LATE.with(|late| *late.borrow_mut() = Some(Late(dropped)));
                    gate.pass();
                })
                .unwrap();
            }
            gate.await_comers(threads);
            gate.open();
            if threads == 4 {
                until("all have left", || pool.counts().threads == 0);
            }
        }
        assert!(pool.join());
        assert_eq!(dropped.load(SeqCst), 6);
    }
}

pub(crate) fn a_pool_without_threads_terminates() {
    for queueing in ALL {
        let told = Arc::new(AtomicBool::new(false));
        let teller = told.clone();
        let pool = builder(queueing, 2, 2).on_terminated(move || teller.store(true, SeqCst)).build().unwrap();
        assert!(pool.join());
        assert!(pool.is_terminated() && told.load(SeqCst));
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

    fn caller<A>(&self) -> (impl Fn(A) + Send + Sync + 'static, Arc<AtomicUsize>) {
        let (place, calls) = (self.clone(), Arc::new(AtomicUsize::new(0)));
        let counter = calls.clone();
        (move |_| place.call_all(&counter), calls)
    }
}

/// Calls the pool when it is dropped.
struct Calls(Box<dyn Fn(()) + Send>);

impl Drop for Calls {
    fn drop(&mut self) {
        self.0(());
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
        let calls = Calls(Box::new(move |()| {
            sender.send((inner.execute(|| ()).is_ok(), inner.join())).unwrap();
            drops.pass();
        }));
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
        let (start, starts) = place.caller();
        let (stop, stops) = place.caller();
        let (before, early) = place.caller();
        let (after, late) = place.caller();
        let (panic, panics) = place.caller();
        let (end, ends) = place.caller();
        let (begin, begins) = place.caller();
        let (drops, dropped) = place.caller();
        let pool = builder(queueing, 0, 3)
            .rejection(Rejection::Discard)
            .on_thread_start(start)
            .on_thread_stop(stop)
            .before_task(move || before(()))
            .after_task(move || after(()))
            .on_panic(panic)
            .on_terminated(move || end(()))
            .start_with(move |worker| {
                let thread = std::thread::Builder::new().spawn(move || worker.run());
                begin(());
                thread
            })
            .build()
            .unwrap();
        *place.0.lock().unwrap() = Some(pool.clone());
        pool.execute(|| panic!("for the handler")).unwrap();
        until("it is told", || panics.load(SeqCst) > 0);
        // A task that is discarded.
        let (gate, calls) = (occupy(&pool, 3), Calls(Box::new(drops)));
        let mut calls = Some(calls);
        until("it is dropped", || {
            let calls = calls.take();
            pool.execute(move || drop(calls)).unwrap();
            dropped.load(SeqCst) > 0
        });
        gate.open();
        pool.shutdown();
        assert!(pool.await_termination(LONG));
        *place.0.lock().unwrap() = None;
        let all = [starts, stops, early, late, panics, ends, begins].map(|calls| calls.load(SeqCst));
        assert!(all.iter().all(|&calls| calls > 0), "{all:?}");
    }
}

/// The thread has ended and only its handle is missing, which `start_with` has in its hand.
pub(crate) fn p20_a_start_does_not_wait_for_the_end() {
    for queueing in ALL {
        let place = Place::default();
        let knows = place.clone();
        let pool = builder(queueing, 0, 1)
            .start_with(move |worker| {
                let (over, is_over) = mpsc::channel::<()>();
                let thread = std::thread::Builder::new().spawn(move || {
                    worker.run();
                    drop(over);
                });
                let pool = knows.0.lock().unwrap().take().unwrap();
                pool.shutdown();
                is_over.recv().unwrap_err();
                assert!(pool.is_terminated() && !pool.join() && !pool.await_termination(LONG));
                thread
            })
            .build()
            .unwrap();
        *place.0.lock().unwrap() = Some(pool.clone());
        pool.execute(|| ()).unwrap();
        assert_eq!(pool.counts().failed_starts, 0);
        assert!(pool.join());
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
                std::thread::Builder::new().spawn(move || worker.run())
            })
            .on_panic(move |payload| *handler.lock().unwrap() = payload.downcast::<&str>().ok())
            .build()
            .unwrap();
        let gate = Gate::new();
        let busy = gate.clone();
        let handle = pool.spawn(move || busy.pass()).unwrap();
        gate.await_comers(1);
        *place.lock().unwrap() = Some(handle);
        assert_eq!(pool.execute(|| ()).is_ok(), QUEUES.contains(&queueing));
        gate.open();
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
        std::thread::Builder::new().spawn(move || worker.run())
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

    fn assert_all_ran(self, pool: &ThreadPool) {
        let discarded = pool.counts().discarded as usize;
        assert_eq!(self.ran.load(SeqCst) + discarded, self.accepted.load(SeqCst), "{pool:?}");
    }
}

const REJECTIONS: [Rejection; 5] = [
    Rejection::Return,
    Rejection::CallerRuns,
    Rejection::Block(Duration::MAX),
    Rejection::Discard,
    Rejection::DiscardOldest,
];

/// The thread that it would wait for is the one that it starts.
pub(crate) fn p20_a_start_brings_tasks() {
    for queueing in ALL {
        for rejection in REJECTIONS {
            let (place, tasks, scoped) = (Place::default(), Tasks::default(), Arc::new(AtomicUsize::new(0)));
            let (brings, of_scope) = (tasks.clone(), scoped.clone());
            let start = starts_after(&place, move |pool| {
                brings.bring(pool);
                pool.scope(|scope| scope.spawn(|| bump(&of_scope)));
                assert!(!pool.await_termination(LONG));
            });
            let pool = builder(queueing, 1, 1).rejection(rejection).start_with(start).build().unwrap();
            *place.0.lock().unwrap() = Some(pool.clone());
            tasks.note(pool.execute(tasks.task()));
            *place.0.lock().unwrap() = None;
            assert_eq!((pool.counts().failed_starts, scoped.load(SeqCst)), (0, 1));
            assert!(pool.join());
            tasks.assert_all_ran(&pool);
        }
    }
}

/// The thread that would take the task may be the one that starts another, or wait for it.
pub(crate) fn p20_a_start_brings_tasks_to_a_full_pool() {
    for queueing in [ALL[0], ALL[1], Queueing::Bounded(1)] {
        for rejection in REJECTIONS {
            let (place, tasks) = (Place::default(), Tasks::default());
            let brings = tasks.clone();
            let start = starts_after(&place, move |pool| brings.bring(pool));
            let pool = builder(queueing, 0, 2).rejection(rejection).start_with(start).build().unwrap();
            let gate = occupy(&pool, 1);
            *place.0.lock().unwrap() = Some(pool.clone());
            tasks.note(pool.execute(tasks.task()));
            *place.0.lock().unwrap() = None;
            gate.open();
            assert!(pool.join());
            tasks.assert_all_ran(&pool);
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
            let discarded = pools.iter().map(|pool| pool.counts().discarded as usize).sum::<usize>();
            assert_eq!(tasks.ran.load(SeqCst) + discarded, tasks.accepted.load(SeqCst), "{pools:?}");
        }
    }
}
