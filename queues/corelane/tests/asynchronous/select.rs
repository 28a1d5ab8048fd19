//! A task that waits for the first of many ends.

use crate::support::{Task, holders, poll};
use corelane::error::{PopTimeoutError, TryPopError};
use corelane::handoff::{CancelToken, Fairness, SynchronousQueue};
use corelane::mpmc;
use corelane::spsc;
use corelane::wait::{Readable, Select};
use futures_executor::block_on;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

/// It is woken once by what comes, and not before; the waker is let go of with the future.
#[test]
fn an_idle_task_is_woken_once() {
    crate::watchdog::guard(|| {
        let (mut tx, rx) = spsc::channel::<u8>(4);
        let (sender, receiver) = mpmc::channel::<u8>(4);
        let mut select = Select::new();
        let (rx, receiver) = (select.add(rx), select.add(receiver));
        let task = Task::new();
        for round in 1..=3 {
            {
                let mut wait = pin!(select.wait_async());
                for _ in 0..3 {
                    assert_eq!(poll(&task, &mut wait), Poll::Pending);
                }
                assert_eq!((task.wakes(), holders(&task)), (2 * round - 2, 1));
                tx.push(1).unwrap();
                assert_eq!(task.wakes(), 2 * round - 1);
                assert!(matches!(poll(&task, &mut wait), Poll::Ready(Some(ready)) if ready == rx));
            }
            assert_eq!((select[rx].try_pop(), holders(&task)), (Ok(1), 0));
            {
                let mut wait = pin!(select.wait_async());
                assert_eq!(poll(&task, &mut wait), Poll::Pending);
                sender.push(2).unwrap();
                assert_eq!(task.wakes(), 2 * round);
                assert!(matches!(poll(&task, &mut wait), Poll::Ready(Some(ready)) if ready == receiver));
            }
            assert_eq!(select[receiver].try_pop(), Ok(2));
        }
        assert_eq!(poll(&task, &mut pin!(select.wait_async())), Poll::Pending);
        tx.push(3).unwrap();
        assert_eq!(task.wakes(), 6, "no task waits any more");
    });
}

/// Its wake-up by a shared queue goes to the thread that sleeps behind it.
#[test]
fn a_future_that_is_dropped_or_forgotten_takes_no_wake_up() {
    crate::watchdog::guard(|| {
        for forget in [false, true] {
            let (sender, receiver) = mpmc::channel::<u8>(4);
            let mut select = Select::new();
            select.add(receiver.clone());
            let task = Task::new();
            thread::scope(|scope| {
                let mut wait = Box::pin(select.wait_async());
                assert_eq!(poll(&task, &mut wait), Poll::Pending);
                let pops = scope.spawn(|| receiver.pop());
                thread::sleep(Duration::from_millis(8));
                sender.push(1).unwrap();
                if forget {
                    std::mem::forget(wait);
                } else {
                    drop(wait);
                }
                // What a forgotten one left is mended by whatever comes next.
                assert!(select.try_wait().is_none_or(|ready| ready.index() == 0));
                assert_eq!(pops.join().unwrap(), Ok(1));
            });
        }
    });
}

/// A wait that is never dropped has left its flags up, which a call on an end takes down: the next wait raises them.
#[test]
fn a_wait_after_a_forgotten_one_is_woken() {
    let (mut tx, rx) = spsc::channel::<u8>(4);
    let mut select = Select::new();
    let rx = select.add(rx);
    let task = Task::new();
    let mut wait = Box::pin(select.wait_async());
    assert_eq!(poll(&task, &mut wait), Poll::Pending);
    std::mem::forget(wait);
    assert_eq!(select[rx].pop_timeout(Duration::from_millis(1)), Err(PopTimeoutError::Timeout));
    let mut wait = pin!(select.wait_async());
    assert_eq!(poll(&task, &mut wait), Poll::Pending);
    tx.push(1).unwrap();
    assert_eq!(task.wakes(), 1);
    assert!(poll(&task, &mut wait).is_ready());
}

/// A request's place in memory is used again by a thread that sleeps there, and not where the one before slept.
#[test]
fn a_ticket_of_a_forgotten_wait_leaves_nothing_behind() {
    crate::watchdog::guard(|| {
        for fairness in [Fairness::Fair, Fairness::Unfair] {
            let queue = SynchronousQueue::new(fairness);
            let mut ticket = queue.reserve_take();
            let mut select = Select::new();
            select.add(&mut ticket);
            let mut wait = Box::pin(select.wait_async());
            assert_eq!(poll(&Task::new(), &mut wait), Poll::Pending);
            std::mem::forget(wait);
            std::mem::forget(select);
            queue.try_put(1).unwrap();
            assert_eq!(ticket.try_followup(), Some(Ok(1)));
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(20));
                    queue.put(2).unwrap();
                });
                assert_eq!(queue.take(), Ok(2));
            });
        }
    });
}

/// A waker is foreign code, which may come back to the token that wakes it.
#[test]
fn a_token_wakes_nobody_under_its_lock() {
    struct CancelsAgain(CancelToken);
    impl Wake for CancelsAgain {
        fn wake(self: Arc<Self>) {
            self.0.cancel();
        }
    }
    crate::watchdog::guard(|| {
        let token = CancelToken::new();
        let mut select = Select::new();
        let key = select.add(token.clone());
        let waker = Waker::from(Arc::new(CancelsAgain(token.clone())));
        let mut context = Context::from_waker(&waker);
        let mut wait = pin!(select.wait_async());
        assert_eq!(wait.as_mut().poll(&mut context), Poll::Pending);
        token.cancel();
        assert!(matches!(wait.as_mut().poll(&mut context), Poll::Ready(Some(ready)) if ready == key));
    });
}

#[test]
fn other_tasks_get_a_turn() {
    let (mut tx, rx) = spsc::channel::<u8>(1);
    tx.push(1).unwrap();
    let mut select = Select::new();
    select.add(rx);
    let task = Task::new();
    let pending = (0..1_000).filter(|_| poll(&task, &mut pin!(select.wait_async())).is_pending()).count();
    assert!((5..20).contains(&pending), "{pending} of 1,000");
    assert_eq!(task.wakes(), pending);
}

#[test]
fn everything_arrives_and_ends() {
    const EACH: u64 = 1_000;
    crate::watchdog::guard(|| {
        let (tx, rx): (Vec<_>, Vec<_>) = (0..3).map(|_| spsc::channel::<u64>(2)).unzip();
        thread::scope(|scope| {
            for mut tx in tx {
                scope.spawn(move || (0..EACH).for_each(|item| tx.push(item).unwrap()));
            }
            let mut select = Select::new();
            let keys: Vec<_> = rx.into_iter().map(|rx| select.add(rx)).collect();
            let mut next = [0; 3];
            block_on(async {
                while let Some(ready) = select.wait_async().await {
                    let at = ready.index();
                    match select[keys[at]].try_pop() {
                        Ok(item) => {
                            assert_eq!(item, next[at]);
                            next[at] += 1;
                        }
                        Err(error) => {
                            assert_eq!(error, TryPopError::Closed, "it was named ready");
                            select.remove(keys[at]).unwrap();
                        }
                    }
                }
            });
            assert_eq!(next, [EACH; 3]);
        });
    });
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn descriptors_are_for_threads() {
    let (near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut select = Select::new();
    let key = select.add(Readable::new(near));
    catch_unwind(AssertUnwindSafe(|| block_on(select.wait_async()))).unwrap_err();
    select.remove(key).unwrap();
    assert_eq!(block_on(select.wait_async()), None);
}
