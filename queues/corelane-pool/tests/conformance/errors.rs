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
    catch_unwind(AssertUnwindSafe(|| -> () { error.resume() })).expect_err("it panics");
    assert_eq!(LINES.take(), [here]);
}

/// Lines as they stand in a log, after a message of the program's own.
pub(crate) fn errors_read_well_in_a_log() {
    let says = |outcome: Result<(), Rejected<_>>, reason: &str| {
        assert_eq!(outcome.unwrap_err().to_string(), format!("the pool did not accept the task: {reason}"));
    };
    let pool = builder(UNFAIR, 1, 1).rejection(Rejection::Block(Duration::ZERO)).build().unwrap();
    let gate = occupy(&pool, 1);
    says(pool.try_execute(|| ()), "all threads are busy, and no more tasks may wait");
    says(pool.execute(|| ()), "no thread was free when the time was up");
    gate.open();
    pool.shutdown();
    says(pool.execute(|| ()), "the pool is shut down");
    let fails = builder(UNFAIR, 1, 1).start_with(|_| Err(io::Error::other("no such priority"))).build().unwrap();
    says(fails.execute(|| ()), "no thread could be started: no such priority");
    let panics = builder(UNFAIR, 1, 1).start_with(|_| panic!("on purpose")).build().unwrap();
    says(panics.execute(|| ()), "no thread could be started: the start panicked: on purpose");

    let pool = ThreadPool::cached();
    for (error, text, debug) in [
        (
            pool.spawn(|| panic!("out of {}", "ideas")).unwrap().join().unwrap_err(),
            "the task panicked: out of ideas",
            "Panicked(\"out of ideas\")",
        ),
        (
            pool.spawn(|| std::panic::panic_any(7)).unwrap().join().unwrap_err(),
            "the task panicked: its payload is no text",
            "Panicked(\"its payload is no text\")",
        ),
        (JoinError::Dropped, "the task never ran: it was discarded, or the pool was shut down", "Dropped"),
    ] {
        assert_eq!((error.to_string().as_str(), format!("{error:?}").as_str()), (text, debug));
    }
}

pub(crate) fn p10_bad_settings_are_refused() {
    let (none, no_room) = (BuildError::NoThreads, BuildError::NoCapacity);
    for (settings, error, text) in [
        (builder(UNFAIR, 0, 0), none, "the maximum is 0 threads: allow at least 1"),
        (
            builder(UNFAIR, 3, 2),
            BuildError::CoreAboveMax { core: 3, max: 2 },
            "3 core threads are more than the 2 threads allowed: lower one, or raise the other",
        ),
        (
            builder(Queueing::Bounded(0), 1, 1),
            no_room,
            "the queue has room for 0 tasks: choose at least 1, or the hand-off",
        ),
        // The operating system takes no such name: without a look at it each start would fail.
        (
            builder(UNFAIR, 1, 1).name("pool\0"),
            BuildError::ZeroInName,
            "the name of the threads has a zero byte: choose another name",
        ),
    ] {
        assert_eq!((settings.build().unwrap_err(), error.to_string().as_str()), (error, text));
    }
    // The short forms panic with the same texts.
    let panic = |short: fn() -> ThreadPool| *catch_unwind(short).unwrap_err().downcast::<String>().unwrap();
    assert_eq!(panic(|| ThreadPool::fixed(0)), none.to_string());
    assert_eq!(panic(|| ThreadPool::bounded(1, 0)), no_room.to_string());
    let pool = builder(UNFAIR, 2, 4).build().unwrap();
    assert_eq!(pool.set_max_threads(1), Err(BuildError::CoreAboveMax { core: 2, max: 1 }));
    assert_eq!(pool.set_core_threads(5), Err(BuildError::CoreAboveMax { core: 5, max: 4 }));
    assert_eq!(pool.set_threads(0), Err(none));
    assert_eq!((pool.core_threads(), pool.max_threads()), (2, 4));
    // What is not set follows what is.
    assert_eq!(ThreadPool::builder().core_threads(1000).build().unwrap().max_threads(), 1000);
    let pool = ThreadPool::builder().queueing(Queueing::Unbounded).max_threads(1).build().unwrap();
    assert_eq!(pool.core_threads(), 1);
}
