//! What errors say, and which line a panic names.

use crate::support::{UNFAIR, builder, occupy};
use corelane_pool::{BuildError, JoinError, Queueing, Rejected, Rejection, ThreadPool};
use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::time::Duration;

thread_local! {
    static LINES: RefCell<Vec<(String, u32)>> = const { RefCell::new(Vec::new()) };
}

/// The file and line that a panic of this call names.
fn line_of<R>(call: impl FnOnce() -> R) -> (String, u32) {
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    LINES.with_borrow_mut(|lines| lines.pop()).expect("the hook was called")
}

/// A panic by contract names the line of the caller.
pub(crate) fn panics_name_the_callers_line() {
    let before = take_hook();
    set_hook(Box::new(move |info| {
        let place = info.location().expect("it has one");
        let line = (place.file().to_owned(), place.line());
        let _ = LINES.try_with(|lines| lines.borrow_mut().push(line));
        before(info);
    }));
    let pool = builder(UNFAIR, 1, 1).rejection(Rejection::Discard).build().unwrap();
    let gate = occupy(&pool, 1);
    let Err(error) = pool.spawn(|| ()).unwrap().join() else { panic!("it was discarded") };
    gate.open();
    let here = (file!().to_owned(), line!() + 1);
    assert_eq!(line_of(|| error.resume()), here);
}

/// Lines as they stand in a log, after a message of the program's own.
pub(crate) fn errors_read_well_in_a_log() {
    let says = |rejected: Rejected<_>| {
        let text = rejected.to_string();
        drop(rejected.into_task());
        text
    };
    let pool = builder(UNFAIR, 1, 1).rejection(Rejection::Block(Duration::ZERO)).build().unwrap();
    let gate = occupy(&pool, 1);
    let saturated = says(pool.try_execute(|| ()).unwrap_err());
    assert_eq!(saturated, "the pool did not accept the task: all threads are busy, and no more tasks may wait");
    let late = says(pool.execute(|| ()).unwrap_err());
    assert_eq!(late, "the pool did not accept the task: no thread was free when the time was up");
    gate.open();
    pool.shutdown();
    let over = says(pool.execute(|| ()).unwrap_err());
    assert_eq!(over, "the pool did not accept the task: the pool is shut down");
    let start = |_| Err(io::Error::other("no such priority"));
    let failed = says(builder(UNFAIR, 1, 1).start_with(start).build().unwrap().execute(|| ()).unwrap_err());
    assert_eq!(failed, "the pool did not accept the task: no thread could be started: no such priority");
    let panics =
        says(builder(UNFAIR, 1, 1).start_with(|_| panic!("on purpose")).build().unwrap().execute(|| ()).unwrap_err());
    assert_eq!(panics, "the pool did not accept the task: no thread could be started: the start panicked: on purpose");

    let pool = ThreadPool::cached();
    let joined = |error: JoinError| (error.to_string(), format!("{error:?}"));
    let text = joined(pool.spawn(|| panic!("out of {}", "ideas")).unwrap().join().unwrap_err());
    assert_eq!(text, ("the task panicked: out of ideas".into(), "Panicked(\"out of ideas\")".into()));
    let other = joined(pool.spawn(|| std::panic::panic_any(7)).unwrap().join().unwrap_err());
    assert_eq!(
        other,
        ("the task panicked: its payload is no text".into(), "Panicked(\"its payload is no text\")".into())
    );
    let dropped = joined(JoinError::Dropped);
    assert_eq!(dropped, ("the task never ran: it was discarded, or the pool was shut down".into(), "Dropped".into()));

    let built = |build: corelane_pool::Builder| build.build().unwrap_err().to_string();
    assert_eq!(built(builder(UNFAIR, 0, 0)), "the pool may have 0 threads: allow at least 1");
    assert_eq!(
        built(builder(UNFAIR, 3, 2)),
        "3 core threads are more than the 2 threads allowed: lower one, or raise the other"
    );
    assert_eq!(
        built(builder(Queueing::Bounded(0), 1, 1)),
        "the queue has room for 0 tasks: choose at least 1, or the hand-off"
    );
}

/// The operating system takes no such name: without a look at it each start would fail.
pub(crate) fn a_name_with_a_zero_byte_is_refused() {
    let error = builder(UNFAIR, 1, 1).name("pool\0").build().unwrap_err();
    assert_eq!(error, BuildError::ZeroInName);
    assert_eq!(error.to_string(), "the name of the threads has a zero byte: choose another name");
}
