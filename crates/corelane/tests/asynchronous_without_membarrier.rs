//! Tasks that wait on a system without membarrier: a filter refuses the call to this process, before it makes a queue.
//! One test, as the answer is remembered for the process.
#![cfg(all(target_os = "linux", not(any(loom, shuttle))))]

#[path = "support/refuse.rs"]
mod refuse;
#[path = "support/scaled.rs"]
mod scaled;
#[path = "support/watchdog.rs"]
mod watchdog;

use corelane::dispatch;
use corelane::spsc::{self, Design, Options};
use scaled::at_most;
use std::future::{Future, poll_fn};
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

fn queue<D: Design<u64>>(capacity: usize) -> (spsc::Producer<u64, D>, spsc::Consumer<u64, D>) {
    spsc::any_channel(capacity, Options::new().tuning(D::Tuning::default())).unwrap()
}

/// Each item is waited for on both sides: a lost wake-up would be the end of it.
fn tasks_wake_each_other<D: Design<u64>>(capacity: usize) {
    let (producer, consumer) = queue::<D>(capacity);
    let (mut producer, mut consumer) = (producer.into_async(), consumer.into_async());
    thread::scope(|scope| {
        scope.spawn(move || {
            futures_executor::block_on(async {
                for item in at_most(RACE, 1_000..50_000) {
                    producer.push(item).await.unwrap();
                }
            });
        });
        assert_all_come(&mut consumer, 1_000);
    });
}

/// The items come in their order, at least so many, and then the end.
fn assert_all_come<D: Design<u64>>(consumer: &mut spsc::AsyncConsumer<u64, D>, least: u64) {
    futures_executor::block_on(async {
        let mut next = 0;
        while let Ok(item) = consumer.pop().await {
            assert_eq!(item, next);
            next += 1;
        }
        assert!(next >= least, "{next} items");
    });
}

fn a_thread_and_a_task_wake_each_other<D: Design<u64>>(capacity: usize) {
    let (mut producer, consumer) = queue::<D>(capacity);
    let mut consumer = consumer.into_async();
    thread::scope(|scope| {
        scope.spawn(move || at_most(RACE, 1_000..20_000).for_each(|item| producer.push(item).unwrap()));
        assert_all_come(&mut consumer, 1_000);
    });
}

/// How long two that wake each other go on at most.
const RACE: Duration = Duration::from_secs(3);

/// It is polled again in its first millisecond, and then no more. A task that is preempted is still as well, and may be
/// polled at any time later: of several attempts one must show it.
fn an_idle_task_is_not_polled<D: Design<u64>>() {
    let mut seen = Vec::new();
    for _ in 0..10 {
        match is_idle_and_woken_once::<D>() {
            Ok(()) => return,
            Err(polls) => seen.push(polls),
        }
    }
    panic!("in no attempt: {seen:#?}");
}

/// One attempt: whether the task was still while it waited, and was polled once when its item came.
fn is_idle_and_woken_once<D: Design<u64>>() -> Result<(), String> {
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
        let begin = Instant::now();
        let mut before = 0;
        let mut still = 0;
        while still < 5 && begin.elapsed() < Duration::from_secs(2) {
            thread::sleep(Duration::from_millis(20));
            let now = polls.load(SeqCst);
            still = if now == before && now != 0 { still + 1 } else { 0 };
            before = now;
        }
        thread::sleep(Duration::from_millis(50));
        let idle = polls.load(SeqCst);
        producer.try_push(7).unwrap();
        assert_eq!(task.join().unwrap(), Ok(7));
        let end = polls.load(SeqCst);
        if still == 5 && idle == before && end == idle + 1 {
            Ok(())
        } else {
            Err(format!("{before} polls, {still} looks without another, {idle} later, {end} when it had its item"))
        }
    })
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
        let jobs = futures_executor::block_on(async {
            let mut jobs = 0;
            for job in at_most(RACE, 1_000..20_000) {
                dispatcher.dispatch(job).await.unwrap();
                jobs += 1;
            }
            dispatcher.join().await.unwrap();
            jobs
        });
        assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), jobs);
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
    watchdog::guard(everything::<spsc::Lane>);
    watchdog::guard(everything::<spsc::Lamport>);
    watchdog::guard(everything::<spsc::Linked>);
    watchdog::guard(|| [1, 3, 100].into_iter().for_each(a_fan_out_of_tasks));
}
