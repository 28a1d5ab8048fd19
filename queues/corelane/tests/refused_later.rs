//! A system that refuses membarrier after queues were made, as a sandbox does that is set up late: nothing panics, and
//! no wake-up is relied on that may be lost. Each test in a process of its own, as the refusal is remembered for the
//! process. And one that refuses `ppoll`.
#![cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle, miri))))]

#[allow(dead_code, reason = "it holds no call")]
#[path = "support/trap.rs"]
mod trap;

use corelane::error::{PopTimeoutError, TryPushError};
use corelane::mpmc;
use corelane::spsc::{self, Options};
use corelane::wait::{Park, Readable, Select};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use trap::{Trap, skipped};

/// Runs the test of this name in a new process, on a thread to which membarrier is refused after the queues are made.
fn alone<Q: Send>(test: &str, make: impl FnOnce() -> Q + Send, with: impl FnOnce(Q) + Send) {
    const MARK: &str = "CORELANE_REFUSED_LATER";
    if std::env::var_os(MARK).is_none() {
        let program = std::env::current_exe().unwrap();
        let status = Command::new(program).args([test, "--exact", "--nocapture"]).env(MARK, "1").status().unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    let queues = make();
    thread::scope(|scope| {
        scope.spawn(|| match Trap::set(libc::SYS_membarrier, -libc::c_long::from(libc::EPERM)) {
            Some(trap) => {
                with(queues);
                assert!(trap.calls() > 0, "it has asked for no barrier");
            }
            None => skipped(),
        });
    });
}

/// How often this thread has gone to sleep.
fn sleeps() -> libc::c_long {
    // SAFETY: zeroes are a value of it, and the call writes nothing else.
    unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        usage.ru_nvcsw
    }
}

const WAIT: Duration = Duration::from_millis(300);
/// A park lasts a millisecond at most, and the scheduler may be late by ten.
const SLEEPS: libc::c_long = 20;

#[test]
fn a_park_is_bounded() {
    let make = || spsc::channel_with::<u64, spsc::Lane, _, _>(2, Options::new().wait(Park)).unwrap();
    alone("a_park_is_bounded", make, |(_producer, mut consumer)| {
        let before = sleeps();
        assert_eq!(consumer.pop_timeout(WAIT), Err(PopTimeoutError::Timeout));
        assert!(sleeps() - before >= SLEEPS, "it slept {} times", sleeps() - before);
    });
}

#[test]
fn a_shared_park_is_bounded() {
    let make = || mpmc::queue_with::<u64, mpmc::Ticket, _, _>(1, mpmc::Options::new().wait(Park)).unwrap();
    alone("a_shared_park_is_bounded", make, |queue| {
        let before = sleeps();
        assert_eq!(queue.pop_timeout(WAIT), Err(PopTimeoutError::Timeout));
        assert!(sleeps() - before >= SLEEPS, "it slept {} times", sleeps() - before);
    });
}

/// By then it sees what a push has published that has overlooked it.
#[test]
fn a_close_takes_a_millisecond() {
    let make = || spsc::channel::<u64>(2);
    alone("a_close_takes_a_millisecond", make, |(_producer, mut consumer)| {
        let before = Instant::now();
        consumer.close();
        assert!(before.elapsed() >= Duration::from_millis(1), "{:?}", before.elapsed());
    });
}

#[test]
fn a_park_for_many_ends_is_bounded() {
    let make = || {
        let (_producer, consumer) = spsc::channel::<u64>(2);
        let (sender, receiver) = mpmc::channel::<u64>(2);
        (_producer, sender, consumer, receiver, std::os::unix::net::UnixStream::pair().unwrap())
    };
    alone("a_park_for_many_ends_is_bounded", make, |(_producer, _sender, consumer, receiver, (near, _far))| {
        let mut select = Select::with(Park);
        select.add(consumer);
        select.add(receiver);
        for with_descriptor in [false, true] {
            if with_descriptor {
                select.add(Readable::new(&near));
            }
            let before = sleeps();
            assert_eq!(select.wait_timeout(WAIT), None);
            assert!(sleeps() - before >= SLEEPS, "it slept {} times", sleeps() - before);
        }
    });
}

/// A call on the descriptor tells more.
#[test]
fn a_descriptor_is_ready_where_poll_is_refused() {
    let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut far, b"hello").unwrap();
    let waits = move || {
        let Some(trap) = Trap::set(libc::SYS_ppoll, -libc::c_long::from(libc::EPERM)) else { return skipped() };
        let mut select = Select::with(Park);
        let key = select.add(Readable::new(near));
        assert!(select.wait_timeout(WAIT).is_some_and(|ready| ready == key), "after {} calls", trap.calls());
    };
    thread::spawn(waits).join().unwrap();
}

/// A task's wait for many ends goes on being polled, and finds what comes.
#[cfg(feature = "async")]
#[test]
fn a_task_that_waits_for_many_ends_is_polled_again() {
    let make = || (spsc::channel::<u64>(2), mpmc::channel::<u64>(2));
    let name = "a_task_that_waits_for_many_ends_is_polled_again";
    alone(name, make, |((mut producer, consumer), (_sender, receiver))| {
        let mut select = Select::new();
        let consumer = select.add(consumer);
        select.add(receiver);
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(20));
                producer.try_push(7).unwrap();
                // Open for as long as the task may look.
                std::mem::forget(producer);
            });
            assert_eq!(futures_executor::block_on(select.wait_async()).unwrap(), consumer);
        });
    });
}

#[test]
fn a_close_completes() {
    alone(
        "a_close_completes",
        || spsc::channel(2),
        |(mut producer, mut consumer)| {
            producer.push(1).unwrap();
            consumer.close();
            assert_eq!(producer.try_push(2), Err(TryPushError::Closed(2)));
            assert_eq!(consumer.pop(), Ok(1));
            assert!(consumer.pop().is_err());
        },
    );
}

/// It asks to be polled again for as long as the other end may overlook that it waits, and no longer.
#[cfg(feature = "async")]
#[test]
fn a_task_is_polled_again() {
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    let make = || {
        let (producer, consumer) = spsc::channel::<u64>(2);
        (producer, consumer.into_async())
    };
    alone("a_task_is_polled_again", make, |(mut producer, mut consumer)| {
        let polls = AtomicU64::new(0);
        thread::scope(|scope| {
            let polls = &polls;
            let pusher = scope.spawn(move || {
                // A task that is preempted is not polled either, for a while: so it is still for as long as that.
                let (mut before, mut still) = (0, 0);
                for _ in 0..1000 {
                    thread::sleep(Duration::from_millis(20));
                    let now = polls.load(SeqCst);
                    still = if now == before && now > 1 { still + 1 } else { 0 };
                    before = now;
                    if still == 5 {
                        break;
                    }
                }
                producer.try_push(7).unwrap();
                assert_eq!(still, 5, "polled {before} times");
            });
            let mut pop = pin!(consumer.pop());
            let popped = futures_executor::block_on(poll_fn(|context| {
                polls.fetch_add(1, SeqCst);
                pop.as_mut().poll(context)
            }));
            assert_eq!(popped, Ok(7));
            pusher.join().unwrap();
        });
    });
}
