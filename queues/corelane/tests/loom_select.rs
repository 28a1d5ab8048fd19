//! A thread or a task that waits for the first of several ends, under every interleaving of small cases. Runs with
//! `cargo loom -p corelane --test loom_select`.
//!
//! Two queues of each design of `spsc` are in `loom.rs`, and tickets alone in `loom_handoff.rs`. See `loom.rs` for what
//! loom cannot show.

#[path = "support/explore.rs"]
mod explore;
#[cfg(feature = "async")]
#[path = "support/task.rs"]
mod task;

use corelane::Barrier;
use corelane::dispatch::{Builder, Worker};
use corelane::error::TryPopError;
use corelane::handoff::{CancelToken, Fairness, SynchronousQueue};
use corelane::mpmc::{self, Design, MichaelScott, NoStats, Options, Queue, Receiver, Sender, Ticket, TwoLock};
use corelane::spsc::{self, Consumer, Lane, Producer};
use corelane::wait::{Late, Park, Ready, Select};
use explore::{Item, explore_with, spawn_with};
use loom::thread;
use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::atomic::Ordering::Relaxed;

/// Explores a model in which threads park: once with fences in the membarrier's place, and once with less, which hides
/// less.
fn explore(preemptions: usize, model: impl Fn() + Copy + Send + Sync + 'static) {
    explore_with(Barrier::Fences, preemptions, model);
    explore_with(Barrier::ReadModifyWrite, preemptions, model);
}

fn lane(capacity: usize) -> (Producer<usize, Lane, Park>, Consumer<usize, Lane, Park>) {
    spsc::channel_with(capacity, spsc::Options::new().wait(Park)).unwrap()
}

type Set = Select<'static, Park>;
type Ends<D> = (Sender<usize, D, Park>, Receiver<usize, D, Park>);

fn shared<D: Design<usize>>(capacity: usize) -> Ends<D> {
    mpmc::any_channel::<usize, D, _, NoStats>(capacity, Options::new().wait(Park)).unwrap()
}

/// An item comes by the one queue or by the other while the thread falls asleep.
fn either_wakes_it<D: Design<usize>, const SHARED: bool>(wait: fn(&mut Set) -> Option<Ready>) {
    let (mut tx, rx) = lane(1);
    let (sender, receiver) = shared::<D>(1);
    let mut select = Select::with(Park);
    let (rx, receiver) = (select.add(rx), select.add(receiver));
    let pusher = thread::spawn(move || {
        if SHARED {
            sender.try_push(5).unwrap();
        } else {
            tx.try_push(5).unwrap();
        }
        (tx, sender)
    });
    let ready = wait(&mut select).unwrap();
    if SHARED {
        assert_eq!((ready == receiver, select[receiver].try_pop()), (true, Ok(5)));
    } else {
        assert_eq!((ready == rx, select[rx].try_pop()), (true, Ok(5)));
    }
    drop(pusher.join().unwrap());
}

#[test]
fn a_lane_or_a_shared_queue_wakes_it() {
    explore(2, || either_wakes_it::<Ticket, true>(Set::wait));
    explore(2, || either_wakes_it::<Ticket, false>(Set::wait));
    explore(2, || either_wakes_it::<MichaelScott, true>(Set::wait));
    explore(2, || either_wakes_it::<TwoLock, true>(Set::wait));
}

#[test]
fn an_end_that_closes_wakes_it() {
    explore(2, || {
        let (tx, rx) = lane(1);
        let (sender, receiver) = shared::<Ticket>(1);
        let mut select = Select::with(Park);
        let (rx, receiver) = (select.add(rx), select.add(receiver));
        let goes = thread::spawn(move || drop((sender, tx)));
        for _ in 0..2 {
            let ready = select.wait().unwrap();
            if ready == rx {
                assert_eq!(select.remove(rx).unwrap().try_pop(), Err(TryPopError::Closed));
            } else {
                assert_eq!(select.remove(receiver).unwrap().try_pop(), Err(TryPopError::Closed));
            }
        }
        assert_eq!(select.wait(), None);
        goes.join().unwrap();
    });
}

/// A set holds a sender of lanes that is full. One thread closes the queue, and finds another one in the middle of the
/// lane, which drops what is inside: that one wakes the task.
#[cfg(feature = "async")]
#[test]
fn a_close_beside_the_last_receiver_wakes_a_sender() {
    explore(2, || {
        let (mut tx, rx) = mpmc::lanes::channel_with(1, Options::new().wait(Park)).unwrap();
        let closes = tx.clone();
        tx.try_push(1).unwrap();
        let mut select = Select::with(Park);
        select.add(tx);
        let task = Arc::new(task::Task::default());
        let mut wait = Box::pin(select.wait_async());
        assert!(task::poll(&task, &mut wait).is_pending());
        let closer = thread::spawn(move || closes.close());
        drop(rx);
        closer.join().unwrap();
        assert!(task.wakes.load(Relaxed) != 0);
    });
}

/// A producer waits for room in one of two queues.
#[test]
fn room_in_either_wakes_it() {
    explore(2, || {
        let (mut tx, mut rx) = lane(1);
        let (sender, receiver) = shared::<Ticket>(1);
        tx.try_push(1).unwrap();
        sender.try_push(2).unwrap();
        let mut select = Select::with(Park);
        let (tx, sender) = (select.add(tx), select.add(sender));
        let popper = thread::spawn(move || {
            assert_eq!(receiver.try_pop(), Ok(2));
            assert_eq!(rx.try_pop(), Ok(1));
            (rx, receiver)
        });
        for item in 3..5 {
            let ready = select.wait().unwrap();
            if ready == tx {
                select[tx].try_push(item).unwrap();
            } else {
                assert!(ready == sender);
                select[sender].try_push(item).unwrap();
            }
        }
        drop(popper.join().unwrap());
    });
}

/// Two threads make an end ready each, and each is found.
#[test]
fn two_that_become_ready_are_both_found() {
    explore(2, || {
        let (tx, rx) = lane(1);
        let (sender, receiver) = shared::<Ticket>(1);
        let mut select = Select::with(Park);
        let (rx, receiver) = (select.add(rx), select.add(receiver));
        let one = spawn_with(tx, move |tx| tx.try_push(1).unwrap());
        let two = spawn_with(sender, move |sender| sender.try_push(2).unwrap());
        let mut sum = 0;
        for _ in 0..2 {
            let ready = select.wait().unwrap();
            sum += if ready == rx { select[rx].try_pop().unwrap() } else { select[receiver].try_pop().unwrap() };
        }
        assert_eq!(sum, 3);
        drop((one.join().unwrap(), two.join().unwrap()));
    });
}

/// The set moves on before a thread that has taken one of its flags down has found out whom to wake: it finds the place
/// to sleep of a thread that it knows nothing of.
fn moves<D: Design<usize>>(wait: fn(&mut Set) -> Option<Ready>) {
    let (mut tx, rx) = lane(2);
    let (sender, receiver) = shared::<D>(2);
    let mut select = Select::with(Park);
    let (rx, receiver) = (select.add(rx), select.add(receiver));
    let pusher = thread::spawn(move || {
        tx.try_push(1).unwrap();
        sender.push(2).unwrap();
        (tx, sender)
    });
    let take = move |select: &mut Set| {
        let ready = wait(select).unwrap();
        if ready == rx { select[rx].try_pop().unwrap() } else { select[receiver].try_pop().unwrap() }
    };
    let first = take(&mut select);
    let second = thread::spawn(move || take(&mut select)).join().unwrap();
    assert_eq!(first + second, 3);
    drop(pusher.join().unwrap());
}

#[test]
fn a_set_moves_between_two_waits() {
    explore(3, || moves::<Ticket>(Set::wait));
}

/// A thread selects and takes nothing; another one pops, and gets the item, whichever of them is woken.
fn passed_on<D: Design<usize>>() {
    let queue: Queue<usize, D, _, NoStats> = mpmc::any_queue(1, Options::new().wait(Park)).unwrap();
    let queue = Arc::new(queue);
    let popper = {
        let queue = queue.clone();
        thread::spawn(move || queue.pop())
    };
    let pusher = {
        let queue = queue.clone();
        thread::spawn(move || {
            queue.try_push(7).unwrap();
            // The item may be gone before the select has looked.
            queue.close();
        })
    };
    {
        let mut select = Select::with(Park);
        let key = select.add(queue.pop_side());
        assert!(select.wait().unwrap() == key);
    }
    assert_eq!(popper.join().unwrap(), Ok(7));
    pusher.join().unwrap();
}

#[test]
fn an_unused_wake_up_is_passed_on() {
    explore(1, passed_on::<Ticket>);
    explore(1, passed_on::<TwoLock>);
}

/// Without the close behind the item, which would wake every thread: the select has looked, and been woken, once.
#[test]
fn an_unused_wake_up_is_passed_on_where_nothing_else_comes() {
    explore(1, || {
        let (sender, receiver) = shared::<Ticket>(2);
        let mut select = Select::with(Park);
        select.add(receiver.clone());
        let popper = thread::spawn(move || receiver.pop());
        let pusher = spawn_with(sender, move |sender| {
            // One for the popper, one that stays, so that the select ends.
            assert!(sender.push(7).is_ok() && sender.push(8).is_ok());
        });
        select.wait().unwrap();
        assert_eq!(popper.join().unwrap(), Ok(7));
        drop((pusher.join().unwrap(), select));
    });
}

/// Two selects on one queue: of two items each thread takes one, or one both.
#[test]
fn two_selects_share_a_queue() {
    explore(1, || {
        let (sender, receiver) = shared::<Ticket>(2);
        let takes = |receiver: Receiver<usize, Ticket, Park>| {
            let mut select = Select::with(Park);
            let key = select.add(receiver);
            let mut taken = 0;
            while select.wait().is_some() {
                match select[key].try_pop() {
                    Ok(_) => taken += 1,
                    Err(TryPopError::Closed) => drop(select.remove(key)),
                    Err(_) => {}
                }
            }
            taken
        };
        let other = {
            let receiver = receiver.clone();
            thread::spawn(move || takes(receiver))
        };
        let pusher = thread::spawn(move || sender.try_push(1).unwrap());
        let taken = takes(receiver);
        assert_eq!(taken + other.join().unwrap(), 1);
        pusher.join().unwrap();
    });
}

/// A select with a put in it meets one with a take.
#[test]
fn a_put_and_a_take_meet() {
    fn model(fairness: Fairness) {
        let queue = Arc::new(SynchronousQueue::new(fairness));
        let (_tx, rx) = lane(1);
        let putter = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut select = Select::with(Park);
                let put = select.add(queue.reserve_put(5));
                assert!(select.wait().unwrap() == put);
                assert_eq!(select[put].try_followup(), Some(Ok(())));
            })
        };
        let mut select = Select::with(Park);
        select.add(rx);
        let take = select.add(queue.reserve_take());
        assert!(select.wait().unwrap() == take);
        assert_eq!(select[take].try_followup(), Some(Ok(5)));
        putter.join().unwrap();
    }
    explore(2, || model(Fairness::Fair));
    explore(2, || model(Fairness::Unfair));
}

#[test]
fn a_token_that_is_cancelled_wakes_it() {
    explore(2, || {
        let token = CancelToken::new();
        let (_tx, rx) = lane(1);
        let mut select = Select::with(Park);
        select.add(rx);
        let key = select.add(token.clone());
        let canceller = thread::spawn(move || token.cancel());
        assert!(select.wait().unwrap() == key);
        canceller.join().unwrap();
    });
}

#[test]
fn a_token_moves_between_two_waits() {
    explore(3, || {
        let (token, other) = (CancelToken::new(), CancelToken::new());
        let mut select = Select::with(Park);
        let (first, second) = (select.add(token.clone()), select.add(other.clone()));
        let canceller = thread::spawn(move || {
            token.cancel();
            other.cancel();
        });
        let ready = select.wait().unwrap();
        let rest = if ready == first { select.remove(first) } else { select.remove(second) };
        assert!(rest.unwrap().is_cancelled());
        thread::spawn(move || assert!(select.wait().is_some())).join().unwrap();
        canceller.join().unwrap();
    });
}

/// What wakes a thread in `poll`: taken away, and another put in its place, while two threads come late to use it. Each
/// is dropped once, after its last use.
#[test]
fn a_value_that_is_taken_away_is_dropped_after_its_last_use() {
    explore_with(Barrier::Nothing, 4, || {
        let late = Arc::new(Late::new());
        late.put(Item::new(0));
        let users = [(); 2].map(|()| {
            let late = late.clone();
            thread::spawn(move || late.with(Item::read))
        });
        late.take_away();
        let is_empty = late.is_empty();
        if is_empty {
            late.put(Item::new(1));
            late.take_away();
        }
        for user in users {
            assert!(user.join().unwrap().is_none_or(|id| id == 0 || is_empty && id == 1));
        }
        assert!(late.is_empty());
    });
}

/// A dispatcher without room waits; its worker takes the job, or leaves.
#[test]
fn a_worker_that_takes_or_leaves_wakes_its_dispatcher() {
    fn model(leaves: bool) {
        let (mut dispatcher, mut workers): (_, Vec<Worker<usize, Lane, Park>>) =
            Builder::new(1).capacity(1).wait(Park).build().unwrap();
        dispatcher.dispatch(1).unwrap();
        let mut worker = workers.pop().unwrap();
        let works = thread::spawn(move || {
            if leaves {
                assert_eq!(worker.leave(), Ok(()));
                return None;
            }
            assert_eq!(worker.try_pop(), Ok(1));
            Some(worker)
        });
        let mut select = Select::with(Park);
        let key = select.add(&mut dispatcher);
        assert!(select.wait().unwrap() == key);
        drop(select);
        let worker = works.join().unwrap();
        if leaves {
            assert_eq!(dispatcher.take_returned(), [1]);
        } else {
            dispatcher.try_dispatch(2).unwrap();
        }
        drop(worker);
    }
    explore(2, || model(false));
    explore(2, || model(true));
}

#[cfg(feature = "async")]
mod tasks {
    use super::*;
    use crate::task::block_on;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn a_task_is_woken_by_either() {
        fn wait(select: &mut Set) -> Option<Ready> {
            block_on(pin!(select.wait_async()))
        }
        explore(2, || either_wakes_it::<Ticket, true>(wait));
        explore(2, || either_wakes_it::<Ticket, false>(wait));
    }

    #[test]
    fn a_set_moves_between_two_waits() {
        explore(3, || {
            moves::<Ticket>(|select| block_on(pin!(select.wait_async())));
        });
    }

    /// Another task's poll comes first, and its waker is replaced.
    #[test]
    fn a_wait_that_was_polled_by_another_task_is_woken() {
        explore(2, || {
            let (tx, rx) = lane(1);
            let pusher = spawn_with(tx, move |tx| tx.try_push(5).unwrap());
            let mut select = Select::with(Park);
            let rx = select.add(rx);
            {
                let mut wait = pin!(select.wait_async());
                let first = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                let ready = match first {
                    Poll::Ready(ready) => ready,
                    Poll::Pending => block_on(wait),
                };
                assert!(ready.unwrap() == rx);
            }
            assert_eq!(select[rx].try_pop(), Ok(5));
            drop(pusher.join().unwrap());
        });
    }

    /// A future that is dropped between two polls leaves a shared queue's wake-up to the thread that sleeps behind it.
    #[test]
    fn a_dropped_wait_passes_its_wake_up_on() {
        explore(1, || {
            let (sender, receiver) = shared::<Ticket>(1);
            let mut select = Select::with(Park);
            select.add(receiver.clone());
            let mut wait = Box::pin(select.wait_async());
            let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
            let popper = thread::spawn(move || receiver.pop());
            let pusher = spawn_with(sender, move |sender| sender.try_push(7).unwrap());
            drop(wait);
            assert_eq!(popper.join().unwrap(), Ok(7));
            drop(pusher.join().unwrap());
        });
    }
}
