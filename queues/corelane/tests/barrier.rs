//! An end that is about to sleep, or closes, executes the heavy half of the asymmetric barrier: the calls of membarrier
//! are counted. And a thread that is stopped in that call keeps no other waiting.
//!
//! Without that call a wake-up is lost once in a long time, on some processors. Loom models the barrier by fences,
//! beside which those of an attempt that finds nothing hide that it is missing.
#![cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle, miri))))]

#[path = "support/trap.rs"]
mod trap;

use corelane::error::{TryPopError, TryPushError};
use corelane::mpmc;
use corelane::spsc::{self, Design, Lamport, Options};
use corelane::wait::Park;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use trap::{Trap, skipped};

/// Time to come to the barrier. A thread that is not there by then, on a busy machine, gets another attempt.
const MOMENT: Duration = Duration::from_millis(20);
const ATTEMPTS: usize = 200;
/// No thread waits so long but for one that is stopped.
const LONG: Duration = Duration::from_secs(20);

/// Calls something, in a thread of its own, that must come to the barrier. To be called with the queue made.
fn passes_the_barrier(mut call: impl FnMut() + Send) {
    // SAFETY: reads and writes no memory of ours.
    let known =
        unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) } == 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            let Some(trap) = Trap::set(libc::SYS_membarrier, 0).filter(|_| known) else { return skipped() };
            let passed = (0..ATTEMPTS).any(|_| {
                call();
                trap.calls() > 0
            });
            assert!(passed, "it has passed no barrier");
        });
    });
}

fn shared() -> mpmc::ticket::Queue<u64, Park> {
    mpmc::queue_with(1, mpmc::Options::new().wait(Park)).unwrap()
}

fn ends() -> (spsc::Producer<u64, Lamport, Park>, spsc::Consumer<u64, Lamport, Park>) {
    spsc::channel_with(1, Options::new().wait(Park)).unwrap()
}

#[test]
fn a_shared_pop_that_sleeps() {
    let queue = shared();
    passes_the_barrier(|| _ = queue.pop_timeout(MOMENT));
}

#[test]
fn a_shared_push_that_sleeps() {
    let queue = shared();
    queue.push(0).unwrap();
    passes_the_barrier(|| _ = queue.push_timeout(1, MOMENT));
}

#[test]
fn a_consumer_that_sleeps() {
    let (_producer, mut consumer) = ends();
    passes_the_barrier(move || _ = consumer.pop_timeout(MOMENT));
}

#[test]
fn a_producer_that_sleeps() {
    let (mut producer, _consumer) = ends();
    producer.push(0).unwrap();
    passes_the_barrier(move || _ = producer.push_timeout(1, MOMENT));
}

#[test]
fn a_consumer_that_closes() {
    let (_producer, mut consumer) = ends();
    passes_the_barrier(move || consumer.close());
}

/// A consumer is stopped in the middle of its close. The producer's calls return all the same, and what they say is
/// what comes out.
fn pushes_beside_a_close_that_is_stopped<D: Design<u64>>(batch: usize) {
    let (mut producer, mut consumer) =
        spsc::any_channel::<u64, D, _, _>(16, Options::new().tuning(D::Tuning::default())).unwrap();
    producer.push(0).unwrap();
    let (stopped, is_stopped) = mpsc::channel();
    thread::scope(|scope| {
        let closer = scope.spawn(move || {
            let Some(trap) = Trap::set(libc::SYS_membarrier, 0) else {
                skipped();
                return None;
            };
            trap.hold();
            stopped.send(trap).unwrap();
            consumer.close();
            Some(consumer)
        });
        let Ok(trap) = is_stopped.recv() else { return };
        while trap.calls() == 0 {
            thread::yield_now();
        }
        let (done, is_done) = mpsc::channel();
        let pusher = scope.spawn(move || {
            let pushed = producer.try_push_batch(&mut (1..=batch as u64).collect()).unwrap_or(0);
            let then = producer.try_push(99);
            done.send(()).unwrap();
            (pushed, then, producer)
        });
        let returned = is_done.recv_timeout(LONG);
        trap.let_go();
        let (pushed, then, producer) = pusher.join().unwrap();
        let mut consumer = closer.join().unwrap().unwrap();
        assert!(returned.is_ok(), "a push waits for a thread that is stopped");
        assert_eq!(then, Err(TryPushError::Closed(99)));
        let popped = std::iter::from_fn(|| consumer.try_pop().ok()).collect::<Vec<_>>();
        assert_eq!(popped, (0..=pushed as u64).collect::<Vec<_>>());
        assert_eq!(consumer.try_pop(), Err(TryPopError::Closed));
        drop(producer);
    });
}

#[test]
fn nobody_waits_for_a_close_that_is_stopped() {
    for batch in [1, 7] {
        macro_rules! each {
            ($($module:ident::$design:ident,)+) => {
                $(pushes_beside_a_close_that_is_stopped::<spsc::$design>(batch);)+
            };
        }
        corelane::each_design!(each);
    }
}
