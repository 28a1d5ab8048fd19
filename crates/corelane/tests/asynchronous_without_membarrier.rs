//! Tasks that wait on a system without membarrier: a filter refuses the call to this process, before it makes a queue. One test, as
//! the answer is remembered for the process.
#![cfg(all(target_os = "linux", not(any(loom, shuttle))))]

#[path = "support/refuse.rs"]
mod refuse;
#[path = "support/watchdog.rs"]
mod watchdog;

use corelane::dispatch;
use corelane::error::Closed;
use corelane::spsc::{self, Design, Options};
use std::future::{Future, poll_fn};
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

fn queue<D: Design<u64>>(capacity: usize) -> (spsc::Producer<u64, D>, spsc::Consumer<u64, D>) {
    spsc::channel_with(capacity, Options::new().tuning(D::Tuning::default())).unwrap()
}

/// Each item is waited for on both sides: a lost wake-up would be the end of it.
fn tasks_wake_each_other<D: Design<u64>>(capacity: usize) {
    let (producer, consumer) = queue::<D>(capacity);
    let (mut producer, mut consumer) = (producer.into_async(), consumer.into_async());
    thread::scope(|scope| {
        scope.spawn(move || {
            futures_executor::block_on(async {
                for item in 0..50_000 {
                    producer.push(item).await.unwrap();
                }
            });
        });
        futures_executor::block_on(async {
            for item in 0..50_000 {
                assert_eq!(consumer.pop().await, Ok(item));
            }
            assert_eq!(consumer.pop().await, Err(Closed(())));
        });
    });
}

fn a_thread_and_a_task_wake_each_other<D: Design<u64>>(capacity: usize) {
    let (mut producer, consumer) = queue::<D>(capacity);
    let mut consumer = consumer.into_async();
    thread::scope(|scope| {
        scope.spawn(move || (0..20_000).for_each(|item| producer.push(item).unwrap()));
        futures_executor::block_on(async {
            for item in 0..20_000 {
                assert_eq!(consumer.pop().await, Ok(item));
            }
        });
    });
}

/// It is polled again in its first millisecond, and then no more.
fn an_idle_task_is_not_polled<D: Design<u64>>() {
    let (mut producer, consumer) = queue::<D>(2);
    let mut consumer = consumer.into_async();
    let polls = AtomicUsize::new(0);
    thread::scope(|scope| {
        let task = scope.spawn(|| {
            let mut pop = consumer.pop();
            futures_executor::block_on(poll_fn(|context| {
                polls.fetch_add(1, SeqCst);
                Pin::new(&mut pop).poll(context)
            }))
        });
        let mut before = polls.load(SeqCst);
        // A task that is preempted does not poll either, for a while.
        let mut still = 0;
        while still < 5 {
            thread::sleep(Duration::from_millis(20));
            let now = polls.load(SeqCst);
            still = if now == before && now != 0 { still + 1 } else { 0 };
            before = now;
        }
        thread::sleep(Duration::from_millis(50));
        assert_eq!(polls.load(SeqCst), before);
        producer.try_push(7).unwrap();
        assert_eq!(task.join().unwrap(), Ok(7));
        assert_eq!(polls.load(SeqCst), before + 1);
    });
}

/// The dispatcher waits for two queues at once, and at the end for two workers to leave.
fn a_fan_out_of_tasks(capacity: usize) {
    let (dispatcher, workers) = dispatch::channel::<u64>(2, capacity);
    let mut dispatcher = dispatcher.into_async();
    thread::scope(|scope| {
        let work = |worker: dispatch::Worker<u64>| {
            let mut worker = worker.into_async();
            scope.spawn(move || {
                futures_executor::block_on(async {
                    let mut jobs = 0;
                    while worker.pop().await.is_ok() {
                        jobs += 1;
                    }
                    jobs
                })
            })
        };
        let threads = workers.into_iter().map(work).collect::<Vec<_>>();
        futures_executor::block_on(async {
            for job in 0..20_000 {
                dispatcher.dispatch(job).await.unwrap();
            }
            dispatcher.join().await.unwrap();
        });
        assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), 20_000);
    });
}

fn everything<D: Design<u64>>() {
    for capacity in [1, 3, 100] {
        tasks_wake_each_other::<D>(capacity);
        a_thread_and_a_task_wake_each_other::<D>(capacity);
    }
    an_idle_task_is_not_polled::<D>();
}

#[test]
fn without_membarrier() {
    if !refuse::membarrier() {
        // Not through `eprintln!`, which a passing test swallows.
        let _ = writeln!(std::io::stderr(), "SKIPPED: this process may not set a filter for system calls");
        return;
    }
    watchdog::guard(|| {
        everything::<spsc::Lane>();
        everything::<spsc::Lamport>();
        everything::<spsc::Linked>();
        [1, 3, 100].into_iter().for_each(a_fan_out_of_tasks);
    });
}
