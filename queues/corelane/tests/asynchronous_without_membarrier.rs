//! Tasks that wait on a system without membarrier: a filter refuses the call to this process, before it makes a queue.
//! One test, as the answer is remembered for the process.
#![cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]

#[path = "support/refuse.rs"]
mod refuse;
#[path = "support/scaled.rs"]
mod scaled;
#[path = "support/watchdog.rs"]
mod watchdog;

use corelane::dispatch;
use corelane::error::TryPopError;
use corelane::mpmc;
use corelane::spsc::{self, Design, Options};
use corelane::wait::{Select, Selectable};
use scaled::at_most;
use std::future::{Future, poll_fn};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::pin::pin;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::Duration;

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
                for item in at_most(RACE, 1_000..5_000) {
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
        scope.spawn(move || at_most(RACE, 1_000..5_000).for_each(|item| producer.push(item).unwrap()));
        assert_all_come(&mut consumer, 1_000);
    });
}

/// How long two that wake each other go on at most.
const RACE: Duration = Duration::from_secs(1);

/// A set for each side, and each item is waited for on both.
fn sets_wake_each_other<S, R>((sender, receiver): (S, R), push: fn(&mut S, u64) -> bool, pop: Pop<R>)
where
    S: Selectable + Send + 'static,
    R: Selectable + Send + 'static,
{
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut select = Select::new();
            let key = select.add(sender);
            futures_executor::block_on(async {
                for item in at_most(RACE, 1_000..5_000) {
                    while !push(&mut select[key], item) {
                        select.wait_async().await;
                    }
                }
            });
        });
        let mut select = Select::new();
        let key = select.add(receiver);
        futures_executor::block_on(async {
            let mut next = 0;
            loop {
                match pop(&mut select[key]) {
                    Ok(item) => {
                        assert_eq!(item, next);
                        next += 1;
                    }
                    Err(TryPopError::Closed) => break,
                    Err(_) => drop(select.wait_async().await),
                }
            }
            assert!(next >= 1_000, "{next} items");
        });
    });
}

type Pop<R> = fn(&mut R) -> Result<u64, TryPopError>;

/// An idle task is polled once more, a millisecond after it began to wait. The test may be told late of any poll where
/// it is preempted: of several attempts one must show it.
fn an_idle_task_is_polled_once_more<F, W>(make: impl Fn() -> (F, W))
where
    F: FnOnce(),
    W: AsyncFnOnce() + Send,
{
    let mut seen = Vec::new();
    for _ in 0..10 {
        match is_idle_and_woken_once(make()) {
            Ok(()) => return,
            Err(polls) => seen.push(polls),
        }
    }
    panic!("in no attempt: {seen:#?}");
}

/// One attempt: whether the task was polled twice while it waited, and once when what it waits for came.
fn is_idle_and_woken_once<F, W>((finish, wait): (F, W)) -> Result<(), String>
where
    F: FnOnce(),
    W: AsyncFnOnce() + Send,
{
    let polls = AtomicUsize::new(0);
    thread::scope(|scope| {
        let task = scope.spawn(|| {
            let mut wait = pin!(wait());
            futures_executor::block_on(poll_fn(|context| {
                polls.fetch_add(1, SeqCst);
                wait.as_mut().poll(context)
            }));
        });
        thread::sleep(Duration::from_millis(100));
        let idle = polls.load(SeqCst);
        finish();
        task.join().unwrap();
        let end = polls.load(SeqCst);
        if (idle, end) == (2, 3) { Ok(()) } else { Err(format!("{idle} polls while it was idle, {end} at the end")) }
    })
}

fn a_task_at_an_end_is_idle<D: Design<u64>>() {
    an_idle_task_is_polled_once_more(|| {
        let (mut producer, consumer) = queue::<D>(2);
        let wait = async move || assert_eq!(consumer.into_async().pop().await, Ok(7));
        (move || producer.try_push(7).unwrap(), wait)
    });
}

/// The senders stay open for as long as the task may look.
fn a_task_at_a_set_is_idle() {
    an_idle_task_is_polled_once_more(|| {
        let ((producer, consumer), (sender, receiver)) = (queue::<spsc::Lane>(2), mpmc::channel::<u64>(2));
        let (lane, inlet) = mpmc::lanes::channel::<u64>(2);
        let wait = async move || {
            let mut select = Select::new();
            select.add(consumer);
            select.add(inlet);
            let receiver = select.add(receiver);
            assert!(select.wait_async().await.unwrap() == receiver);
            drop((producer, lane));
        };
        (move || sender.try_push(7).unwrap(), wait)
    });
}

/// A child process has none of its parent's threads, and starts one of its own.
fn a_task_of_a_child_is_polled_once_more() {
    /// Says that it was woken, for one that sleeps.
    struct Flag(AtomicUsize);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(1, SeqCst);
        }
    }
    // The parent's is there, and holds no lock while there is nothing to do.
    a_task_at_a_set_is_idle();
    thread::sleep(Duration::from_millis(20));
    // SAFETY: the child makes queues, and a thread, which the C library allows; it runs no destructor of the parent's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let (_sender, receiver) = mpmc::channel::<u64>(2);
        let mut select = Select::new();
        select.add(receiver);
        let flag = Arc::new(Flag(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&flag));
        let pending = pin!(select.wait_async()).poll(&mut Context::from_waker(&waker)).is_pending();
        let mut left = 1_000;
        while left != 0 && flag.0.load(SeqCst) == 0 {
            thread::sleep(Duration::from_millis(10));
            left -= 1;
        }
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!pending || left == 0)) };
    }
    let mut status = -1;
    // SAFETY: the call writes to the status only.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's task was not woken");
}

/// A task that is polled twice within the millisecond has a waker too many for the second look.
fn a_waker_whose_drop_panics_disturbs_no_poll() {
    /// The second drop of a poll panics: the first is that of the waker at the end.
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |_| RawWaker::new(null(), &TABLE),
        drop,
        drop,
        |_| {
            if DROPS.fetch_add(1, SeqCst) == 1 {
                panic!("a waker");
            }
        },
    );
    // SAFETY: the table's functions keep to the contract: there are no data.
    let waker = ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(null(), &TABLE)) });
    let mut context = Context::from_waker(&waker);
    let has_panicked = (0..1_000).any(|_| {
        let (_producer, consumer) = queue::<spsc::Lane>(2);
        let mut consumer = consumer.into_async();
        let mut pop = pin!(consumer.pop());
        assert!(pop.as_mut().poll(&mut context).is_pending());
        DROPS.store(0, SeqCst);
        assert!(pop.as_mut().poll(&mut context).is_pending());
        DROPS.swap(2, SeqCst) >= 2
    });
    assert!(has_panicked, "it was never polled twice within a millisecond");
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
            for job in at_most(RACE, 1_000..5_000) {
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
    a_task_at_an_end_is_idle::<D>();
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
    watchdog::guard(|| {
        for capacity in [1, 3, 100] {
            let push = |sender: &mut mpmc::Sender<u64>, item| sender.try_push(item).is_ok();
            sets_wake_each_other(mpmc::channel(capacity), push, |receiver| receiver.try_pop());
            let push = |sender: &mut mpmc::lanes::Sender<u64>, item| sender.try_push(item).is_ok();
            sets_wake_each_other(mpmc::lanes::channel(capacity), push, |receiver| receiver.try_pop());
        }
    });
    watchdog::guard(a_task_at_a_set_is_idle);
    watchdog::guard(a_task_of_a_child_is_polled_once_more);
    watchdog::guard(a_waker_whose_drop_panics_disturbs_no_poll);
}
