//! What a panic of users' code leaves behind, at each place where the pool runs such code: the table in the crate's
//! documentation, row by row, over every way to queue.

use crate::support::{ALL, LONG, QUEUES, builder, bump, occupy, settle, start, until};
use corelane_pool::{Builder, JoinError, Queueing, Reason, Rejected, Rejection, Task, ThreadPool};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PAGE: &str = include_str!("../../src/lib.rs");

type Row = (&'static str, fn(Queueing));

/// The first cell of each row, and what shows that the row is true.
const ROWS: [Row; 14] = [
    ("a task", a_task),
    ("a task of a scope", a_task_of_a_scope),
    ("the closure of a scope", the_closure_of_a_scope),
    ("a task that its caller runs", a_task_that_its_caller_runs),
    ("the drop of a result", the_drop_of_a_result),
    ("the drop of a task", the_drop_of_a_task),
    ("a hook", a_hook),
    ("`on_panic`", on_panic),
    ("the drop of a payload", the_drop_of_a_payload),
    ("`start_with`, before the thread has begun", start_with_before),
    ("`start_with`, after that", start_with_after),
    ("the drop of an error of `start_with`", the_drop_of_an_error),
    ("a thread around `Worker::run`", around_run),
    ("the drop of hooks and of `start_with`", the_drop_of_hooks),
];

pub(crate) fn the_table_is_true() {
    let (_, table) = PAGE.split_once("//! # When your code panics\n").expect("the page has the table");
    let rows = table.lines().skip_while(|line| !line.starts_with("//! |--")).skip(1);
    let rows = rows.take_while(|line| line.starts_with("//! |"));
    let places: Vec<_> = rows.map(|row| row.split('|').nth(1).expect("a row has columns").trim()).collect();
    assert_eq!(places, ROWS.map(|(place, _)| place));
    for (place, is_true) in ROWS {
        for queueing in ALL {
            println!("{place}, {queueing:?}");
            is_true(queueing);
        }
    }
}

/// Panics when it is dropped.
struct Bites;

impl Drop for Bites {
    fn drop(&mut self) {
        panic_any("a drop");
    }
}

/// A pool, and the panics that its handler gets.
struct Reports {
    pool: ThreadPool,
    panics: Receiver<&'static str>,
}

fn reports(builder: Builder) -> Reports {
    let (sender, panics) = channel();
    let sender = Mutex::new(sender);
    let report = move |payload: Box<dyn std::any::Any + Send>| {
        sender.lock().unwrap().send(*payload.downcast::<&'static str>().expect("a word of this file")).unwrap();
    };
    Reports { pool: builder.on_panic(report).build().unwrap(), panics }
}

impl Reports {
    /// The pool goes on and ends. Its handler got these panics, and so many were counted.
    fn ends(self, reported: &[&'static str], counted: u64) {
        let mut task = Some(|| 6);
        let mut handle = None;
        until("a thread takes a task", || {
            match self.pool.try_spawn(task.take().unwrap()) {
                Ok(accepted) => handle = Some(accepted),
                Err(rejected) => task = Some(rejected.into_task()),
            }
            handle.is_some()
        });
        let Ok(outcome) = handle.unwrap().join_timeout(LONG) else { panic!("the task never ends") };
        assert_eq!(outcome.unwrap(), 6);
        self.has_ended(reported, counted);
    }

    fn has_ended(self, reported: &[&'static str], counted: u64) {
        self.pool.shutdown();
        assert!(self.pool.await_termination(LONG), "{:?}", self.pool);
        let counts = self.pool.counts();
        assert_eq!((counts.threads, counts.active, counts.queued, counts.panicked), (0, 0, 0, counted));
        // What is reported after the end of a thread, too.
        let Self { pool, panics } = self;
        drop(pool);
        let sorted = |mut panics: Vec<&'static str>| {
            panics.sort_unstable();
            panics
        };
        assert_eq!(sorted(panics.iter().collect()), sorted(reported.to_vec()));
    }
}

/// The payload with which this panics.
fn panic_of<R>(call: impl FnOnce() -> R) -> &'static str {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(_) => panic!("it does not panic"),
        Err(payload) => *payload.downcast().expect("a word of this file"),
    }
}

fn assert_no_thread<T>(rejected: &Rejected<T>) {
    assert!(matches!(rejected.reason(), Reason::NoThread(_)), "{rejected}");
}

fn a_task(queueing: Queueing) {
    let Reports { pool, panics } = reports(builder(queueing, 1, 1));
    let thread = pool.spawn(|| std::thread::current().id()).unwrap().join().unwrap();
    settle(&pool);
    pool.execute(|| panic_any("without a handle")).unwrap();
    settle(&pool);
    drop(pool.spawn(|| panic_any("handle dropped at once")).unwrap());
    settle(&pool);
    let handle = pool.spawn(|| panic_any("joined")).unwrap();
    let Err(JoinError::Panicked(payload)) = handle.join() else { panic!("it panics") };
    assert_eq!(payload.downcast_ref(), Some(&"joined"));
    settle(&pool);
    let handle = pool.spawn(|| panic_any("handle dropped late")).unwrap();
    until("it has panicked", || handle.is_finished());
    drop(handle);
    settle(&pool);
    assert_eq!(pool.spawn(|| std::thread::current().id()).unwrap().join().unwrap(), thread);
    Reports { pool, panics }.ends(&["without a handle", "handle dropped at once", "handle dropped late"], 4);
}

fn a_task_of_a_scope(queueing: Queueing) {
    let reports = reports(builder(queueing, 2, 2));
    let (begun, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let panics = || {
        bump(&begun);
        panic_any("of a scope")
    };
    let payload = panic_of(|| {
        reports.pool.scope(|scope| {
            // Two in threads of the pool, which has one for each; the third one may be left for the scope's own.
            (0..2).for_each(|_| scope.spawn(panics));
            until("both have begun", || begun.load(SeqCst) == 2);
            scope.spawn(panics);
            (0..3).for_each(|_| scope.spawn(|| bump(&ran)));
            // Dropped while the scope panics.
            Bites
        })
    });
    assert_eq!((payload, ran.into_inner()), ("of a scope", 3));
    reports.ends(&["of a scope", "of a scope", "a drop"], 4);
}

fn the_closure_of_a_scope(queueing: Queueing) {
    let reports = reports(builder(queueing, 2, 2));
    let ran = AtomicUsize::new(0);
    let payload = panic_of(|| {
        reports.pool.scope(|scope| {
            scope.spawn(|| bump(&ran));
            scope.spawn(|| panic_any("of a task"));
            panic_any("of the closure")
        })
    });
    assert_eq!((payload, ran.into_inner()), ("of the closure", 1));
    reports.ends(&["of a task"], 1);
}

fn a_task_that_its_caller_runs(queueing: Queueing) {
    // Another pool's thread is the caller: it counts nothing of it.
    let other = ThreadPool::cached();
    if queueing == Queueing::Unbounded {
        return;
    }
    let queueing = if QUEUES.contains(&queueing) { Queueing::Bounded(1) } else { queueing };
    let Reports { pool, panics } = reports(builder(queueing, 1, 1).rejection(Rejection::CallerRuns));
    let gate = occupy(&pool, 1);
    if queueing == Queueing::Bounded(1) {
        pool.execute(|| ()).unwrap();
    }
    let caller = pool.clone();
    let outcome = other.spawn(move || {
        let here = std::thread::current().id();
        assert_eq!(caller.spawn(|| std::thread::current().id()).unwrap().join().unwrap(), here);
        caller.execute(|| panic_any("of its caller")).unwrap();
        caller.spawn(|| panic_any("of its handle")).unwrap().join()
    });
    let Err(JoinError::Panicked(payload)) = outcome.unwrap().join().unwrap() else { panic!("it panics") };
    assert_eq!(payload.downcast_ref(), Some(&"of its handle"));
    assert!(other.join());
    assert_eq!(other.counts().panicked, 0);
    gate.open();
    Reports { pool, panics }.ends(&["of its caller"], 2);
}

fn the_drop_of_a_result(queueing: Queueing) {
    let reports = reports(builder(queueing, 1, 1));
    let (dropped, is_dropped) = channel::<()>();
    drop(reports.pool.spawn(move || {
        is_dropped.recv().unwrap_err();
        Bites
    }));
    drop(dropped);
    reports.ends(&["a drop"], 1);
}

fn the_drop_of_a_task(queueing: Queueing) {
    // Discarded.
    if queueing != Queueing::Unbounded {
        let queueing = if QUEUES.contains(&queueing) { Queueing::Bounded(1) } else { queueing };
        let reports = reports(builder(queueing, 1, 1).rejection(Rejection::DiscardOldest));
        let (gate, bites) = (occupy(&reports.pool, 1), Bites);
        let first = reports.pool.spawn(move || std::mem::forget(bites)).unwrap();
        reports.pool.execute(|| ()).unwrap();
        assert!(matches!(first.join(), Err(JoinError::Dropped)));
        gate.open();
        reports.ends(&["a drop"], 1);
    }
    // With its worker, in the thread, while that thread panics.
    let first = AtomicBool::new(true);
    let reports = reports(builder(queueing, 0, 1).start_with(move |worker| {
        if !first.swap(false, SeqCst) {
            return start(worker);
        }
        let (started, is_started) = channel::<()>();
        let thread = std::thread::Builder::new().spawn(move || {
            // Long after `start_with` has returned.
            let _worker = worker;
            is_started.recv().unwrap_err();
            std::thread::sleep(Duration::from_millis(20));
            panic_any("before the run");
        });
        drop(started);
        thread
    }));
    let bites = Bites;
    let handle = reports.pool.spawn(move || std::mem::forget(bites)).unwrap();
    assert!(matches!(handle.join(), Err(JoinError::Dropped)));
    until("it is uncounted", || reports.pool.counts().threads == 0);
    until("it is reported", || reports.pool.counts().panicked == 1);
    reports.ends(&["a drop"], 1);
    // With its worker, in `start_with`: it comes back.
    let reports = self::reports(builder(queueing, 0, 1).start_with(|worker| {
        drop(worker);
        std::thread::Builder::new().spawn(|| ())
    }));
    let bites = Bites;
    let rejected = reports.pool.spawn(move || std::mem::forget(bites)).unwrap_err();
    assert_no_thread(&rejected);
    rejected.into_task()();
    reports.has_ended(&[], 0);
}

fn a_hook(queueing: Queueing) {
    let hooks = builder(queueing, 1, 1)
        .on_thread_start(|_| panic_any("start"))
        .before_task(|| panic_any("before"))
        .after_task(|| panic_any("after"))
        .on_thread_stop(|_| panic_any("stop"))
        .on_terminated(|| panic_any("terminated"));
    reports(hooks).ends(&["start", "before", "after", "stop", "terminated"], 5);
}

fn ends_here(builder: Builder, payload: impl Send + 'static) {
    let pool = builder.build().unwrap();
    pool.execute(|| panic_any(payload)).unwrap();
    settle(&pool);
    assert_eq!(pool.spawn(|| 6).unwrap().join().unwrap(), 6);
    assert!(pool.join());
    assert_eq!((pool.counts().completed, pool.counts().panicked), (2, 1));
}

fn on_panic(queueing: Queueing) {
    ends_here(builder(queueing, 1, 1).on_panic(|_| panic_any(Bites)), "the task");
}

fn the_drop_of_a_payload(queueing: Queueing) {
    ends_here(builder(queueing, 1, 1), Bites);
}

/// When a start fails: with a thread or without, and whether that thread has begun by then.
#[derive(Clone, Copy, PartialEq)]
enum When {
    NoThread,
    Beside,
    Begun,
}

/// A pool of one thread whose first start fails, by a panic or by an error.
fn whose_start_fails(queueing: Queueing, when: When, panics: bool) -> Reports {
    let (first, begun) = (AtomicBool::new(true), Arc::new(AtomicBool::new(false)));
    let begins = begun.clone();
    let start = move |worker| {
        if !first.swap(false, SeqCst) {
            return start(worker);
        }
        if when != When::NoThread {
            drop(start(worker)?);
        }
        until("it has begun", || when != When::Begun || begun.load(SeqCst));
        if panics { panic_any("a start") } else { Err(io::ErrorKind::WouldBlock.into()) }
    };
    reports(builder(queueing, 0, 1).on_thread_start(move |_| begins.store(true, SeqCst)).start_with(start))
}

fn whether_starts_fail(queueing: Queueing, when: When) {
    for panics in [true, false] {
        let reports = whose_start_fails(queueing, when, panics);
        let ran = Arc::new(AtomicUsize::new(0));
        let counter = ran.clone();
        let accepted = match reports.pool.execute(move || bump(&counter)) {
            Ok(()) => true,
            Err(rejected) => {
                assert_no_thread(&rejected);
                assert_eq!(ran.load(SeqCst), 0);
                rejected.into_task().run();
                false
            }
        };
        match when {
            When::NoThread => assert!(!accepted),
            When::Beside => {}
            When::Begun => assert!(accepted),
        }
        assert_eq!(reports.pool.counts().failed_starts, 1);
        let panics = if panics { vec!["a start"] } else { vec![] };
        reports.ends(&panics, panics.len() as u64);
        assert_eq!(ran.load(SeqCst), 1, "once");
        // Without a task.
        let reports = whose_start_fails(queueing, when, !panics.is_empty());
        let started = reports.pool.prestart(1);
        assert!(when == When::Beside || started.is_ok() == (when == When::Begun));
        reports.ends(&panics, panics.len() as u64);
    }
}

fn start_with_before(queueing: Queueing) {
    whether_starts_fail(queueing, When::NoThread);
}

fn start_with_after(queueing: Queueing) {
    whether_starts_fail(queueing, When::Begun);
    whether_starts_fail(queueing, When::Beside);
}

/// An error that calls the pool when it is dropped, and panics.
#[derive(Debug)]
struct Calls(Arc<Mutex<Option<ThreadPool>>>);

impl Drop for Calls {
    fn drop(&mut self) {
        let pool = self.0.lock().unwrap().clone();
        if let Some(pool) = pool {
            pool.counts();
            panic_any("an error");
        }
    }
}

impl std::fmt::Display for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("calls")
    }
}

impl std::error::Error for Calls {}

fn the_drop_of_an_error(queueing: Queueing) {
    let (permit, place) = (AtomicBool::new(true), Arc::new(Mutex::new(None)));
    let knows = place.clone();
    let Reports { pool, panics } = reports(builder(queueing, 0, 2).start_with(move |worker| {
        if permit.swap(false, SeqCst) { start(worker) } else { Err(io::Error::other(Calls(knows.clone()))) }
    }));
    *place.lock().unwrap() = Some(pool.clone());
    let gate = occupy(&pool, 1);
    let mut expected = 0;
    if QUEUES.contains(&queueing) {
        pool.execute(|| ()).unwrap();
        expected += 1;
        assert_eq!(pool.counts().panicked, expected);
    }
    pool.scope(|scope| scope.spawn(|| ()));
    expected += 1;
    assert_eq!(pool.counts().panicked, expected);
    gate.open();
    settle(&pool);
    *place.lock().unwrap() = None;
    let counted = pool.counts().panicked;
    Reports { pool, panics }.ends(&vec!["an error"; counted as usize], counted);
}

fn around_run(queueing: Queueing) {
    let reports = reports(builder(queueing, 0, 2).keep_alive(Duration::from_millis(1)).start_with(|worker| {
        std::thread::Builder::new().spawn(move || {
            worker.run();
            panic_any(Bites);
        })
    }));
    // One is joined by the other, or both by the caller that waits for the end.
    occupy(&reports.pool, 2).open();
    until("both have left", || reports.pool.counts().threads == 0);
    reports.ends(&[], 0);
}

fn the_drop_of_hooks(queueing: Queueing) {
    let bites = Bites;
    let pool = builder(queueing, 1, 1)
        .after_task(move || {
            let _ = &bites;
        })
        .build()
        .unwrap();
    let handle = pool.spawn(|| 6).unwrap();
    assert_eq!(handle.join().unwrap(), 6);
    assert_eq!(panic_of(|| drop(pool)), "a drop");
    // By a thread of the pool.
    let (bites, gone) = (Bites, Arc::new(()));
    let held = gone.clone();
    let pool = builder(queueing, 1, 1)
        .on_drop(corelane_pool::OnDrop::Detach)
        .after_task(move || {
            let _ = (&bites, &held);
        })
        .build()
        .unwrap();
    pool.execute_task(Task::new(|| ())).unwrap();
    drop(pool);
    until("all is dropped", || Arc::strong_count(&gone) == 1);
}
