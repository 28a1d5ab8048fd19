//! Who is about to sleep, or closes, passes the heavy half of the asymmetric barrier: a thread to which the kernel refuses membarrier after
//! the process was registered for it must fail there.
//!
//! Without that call a wake-up is lost once in a long time, on some processors. Loom models the barrier by fences, beside which those of
//! an attempt that finds nothing hide that it is missing.
#![cfg(all(target_os = "linux", not(any(loom, shuttle))))]

#[path = "support/refuse.rs"]
mod refuse;

use corelane::mpmc;
use corelane::spsc::{self, Lamport};
use corelane::wait::Park;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

/// Nobody waits so long: who comes to the barrier fails there. But there is time to come to it, whoever else runs.
const MOMENT: Duration = Duration::from_secs(10);

/// Calls something, in a thread of its own, that must come to the barrier. To be called with the queue made.
fn passes_the_barrier<R>(call: impl FnOnce() -> R + Send) {
    // SAFETY: reads and writes no memory of ours.
    let known =
        unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) } == 0;
    let reached = thread::scope(|scope| {
        let refused = scope.spawn(|| {
            if !known || !refuse::membarrier() {
                // Not through `eprintln!`, which a passing test swallows.
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED: no membarrier, or this process may not set a filter for system calls"
                );
                return None;
            }
            Some(catch_unwind(AssertUnwindSafe(|| drop(call()))))
        });
        refused.join().unwrap()
    });
    match reached {
        None => {}
        Some(Ok(())) => panic!("it has passed no barrier"),
        Some(Err(payload)) => {
            let message = payload.downcast_ref::<&str>().copied().unwrap_or_default();
            assert_eq!(message, "membarrier was registered and failed");
        }
    }
}

fn shared() -> mpmc::ticket::Queue<u64, Park> {
    mpmc::queue_with(1, mpmc::Options::new().wait(Park)).unwrap()
}

fn ends() -> (spsc::Producer<u64, Lamport, Park>, spsc::Consumer<u64, Lamport, Park>) {
    spsc::channel_with(1, spsc::Options::new().wait(Park)).unwrap()
}

#[test]
fn a_shared_pop_that_sleeps() {
    let queue = shared();
    passes_the_barrier(|| queue.pop_timeout(MOMENT));
}

#[test]
fn a_shared_push_that_sleeps() {
    let queue = shared();
    queue.push(0).unwrap();
    passes_the_barrier(|| queue.push_timeout(1, MOMENT));
}

#[test]
fn a_consumer_that_sleeps() {
    let (_producer, mut consumer) = ends();
    passes_the_barrier(move || consumer.pop_timeout(MOMENT));
}

#[test]
fn a_producer_that_sleeps() {
    let (mut producer, _consumer) = ends();
    producer.push(0).unwrap();
    passes_the_barrier(move || producer.push_timeout(1, MOMENT));
}

#[test]
fn a_consumer_that_closes() {
    let (_producer, mut consumer) = ends();
    passes_the_barrier(move || consumer.close());
}
