//! The shared queues under every interleaving of small cases, each of them. Runs with
//! `cargo loom -p corelane --test loom_mpmc`.
//!
//! A thread parks at once, so every wait goes through the list of sleepers. The lock-free list begins with two nodes,
//! so nodes are used again in almost every model. There is no time: a time-out of zero is one that may come at any
//! moment. See `loom.rs` for what loom cannot show.

#[macro_use]
#[path = "support/designs.rs"]
mod designs;
#[path = "support/explore.rs"]
mod explore;

use corelane::Barrier;
use corelane::error::{Closed, TryPopError, TryPushError};
use corelane::mpmc::{self, Design, NoStats, Options, Queue, Receiver, Sender};
use corelane::wait::Park;
use explore::{Item, explore_with, quick, spawn_with};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

/// Preemptions of an execution, at most, unless a model says more or less.
const PREEMPTIONS: usize = 3;

trait Tested: Design<Item> + Design<usize> {
    const BOUNDED: bool;
}

macro_rules! tested {
    ($name:ident, $design:ident, [$bound:ident $($flags:tt)*]) => {
        impl Tested for mpmc::$design {
            const BOUNDED: bool = says!($bound);
        }
    };
}
shared_designs!(tested);

/// Explores a model in which a thread parks: once with fences in the membarrier's place, and once with less, which
/// hides less.
fn explore(more: isize, model: impl Fn() + Clone + Send + Sync + 'static) {
    let preemptions = PREEMPTIONS.saturating_add_signed(more);
    explore_with(Barrier::Fences, preemptions, model.clone());
    explore_with(Barrier::ReadModifyWrite, preemptions, model);
}

/// Explores a model in which no thread parks.
fn explore_try_calls(more: isize, model: impl Fn() + Clone + Send + Sync + 'static) {
    let preemptions = PREEMPTIONS.saturating_add_signed(more);
    explore_with(Barrier::Nothing, preemptions, model.clone());
    explore_with(Barrier::ReadModifyWrite, preemptions, model);
}

type Shared<T, D> = Arc<Queue<T, D, Park>>;

fn queue<T: Send, D: Design<T>>(capacity: usize) -> Shared<T, D> {
    Arc::new(mpmc::any_queue(capacity, Options::new().wait(Park)).unwrap())
}

fn channel<T: Send, D: Design<T>>(capacity: usize) -> (Sender<T, D, Park>, Receiver<T, D, Park>) {
    mpmc::any_channel::<T, D, _, NoStats>(capacity, Options::new().wait(Park)).unwrap()
}

/// Runs `f` with the queue in another thread.
fn spawn<T: Send + 'static, D: Design<T>, R: 'static>(
    queue: &Shared<T, D>,
    f: impl FnOnce(&Queue<T, D, Park>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let queue = queue.clone();
    thread::spawn(move || f(&queue))
}

/// Again, as long as another thread is in the middle of its call.
fn at_last<R>(mut attempt: impl FnMut() -> Option<R>) -> R {
    loop {
        match attempt() {
            Some(outcome) => return outcome,
            None => thread::yield_now(),
        }
    }
}

fn try_push<T: Send, D: Design<T>>(queue: &Queue<T, D, Park>, item: T) -> Result<(), TryPushError<T>> {
    let mut item = Some(item);
    at_last(|| match queue.try_push(item.take()?) {
        Err(TryPushError::Busy(refused)) => {
            item = Some(refused);
            None
        }
        outcome => Some(outcome),
    })
}

fn try_pop<T: Send, D: Design<T>>(queue: &Queue<T, D, Park>) -> Result<T, TryPopError> {
    at_last(|| Some(queue.try_pop()).filter(|outcome| !matches!(outcome, Err(TryPopError::Busy))))
}

mod models {
    use super::*;

    /// One producer and one consumer, which wait for each other, lap after lap.
    pub(super) fn items_are_handed_over_with_their_memory<D: Tested>() {
        explore(-1, || {
            let queue = queue::<Item, D>(1);
            let pusher = spawn(&queue, move |queue| (0..3).for_each(|id| queue.push(Item::new(id)).unwrap()));
            for id in 0..3 {
                assert_eq!(queue.pop().unwrap().read(), id);
            }
            pusher.join().unwrap();
        });
    }

    fn two_producers<D: Tested>(capacity: usize) {
        explore(-1, move || {
            let queue = queue::<Item, D>(capacity);
            let pushers = [0, 1].map(|id| spawn(&queue, move |queue| queue.push(Item::new(id)).unwrap()));
            let popped = [(); 2].map(|()| queue.pop().unwrap().read());
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
            assert!(popped == [0, 1] || popped == [1, 0]);
        });
    }

    pub(super) fn two_producers_and_one_consumer<D: Tested>() {
        two_producers::<D>(1);
    }

    /// The same, and no producer waits for room.
    pub(super) fn two_producers_with_room_and_one_consumer<D: Tested>() {
        two_producers::<D>(2);
    }

    /// One batch, larger than the queue where that has a bound.
    pub(super) fn a_batch_is_handed_over<D: Tested>() {
        explore(0, || {
            let queue = queue::<Item, D>(2);
            let pusher = spawn(&queue, move |queue| {
                let mut batch = (0..3).map(Item::new).collect();
                queue.push_batch(&mut batch).unwrap();
                assert!(batch.is_empty());
            });
            let mut popped = Vec::new();
            while popped.len() < 3 {
                queue.pop_batch(&mut popped, 2).unwrap();
            }
            pusher.join().unwrap();
            assert!(popped.iter().map(Item::read).eq(0..3));
        });
    }

    pub(super) fn one_producer_and_two_consumers<D: Tested>() {
        explore(-1, || {
            let queue = queue::<Item, D>(1);
            let poppers = [(); 2].map(|()| spawn(&queue, |queue| queue.pop().map(|item| item.read())));
            queue.push(Item::new(0)).unwrap();
            queue.push(Item::new(1)).unwrap();
            let mut popped = poppers.map(|popper| popper.join().unwrap());
            popped.sort_by_key(|id| *id.as_ref().unwrap());
            assert_eq!(popped, [Ok(0), Ok(1)]);
        });
    }

    /// Two consumers take nodes or slots out while a producer puts items into those they leave.
    pub(super) fn places_are_used_again<D: Tested>() {
        explore(0, || {
            let queue = queue::<Item, D>(2);
            (0..2).for_each(|id| queue.try_push(Item::new(id)).unwrap());
            let popper = spawn(&queue, |queue| queue.pop().unwrap().read());
            let pusher = spawn(&queue, move |queue| (2..4).for_each(|id| queue.push(Item::new(id)).unwrap()));
            let mut popped = vec![queue.pop().unwrap().read()];
            popped.push(popper.join().unwrap());
            pusher.join().unwrap();
            popped.sort_unstable();
            popped.extend([(); 2].map(|()| queue.try_pop().unwrap().read()));
            assert_eq!(popped, [0, 1, 2, 3]);
            assert!(matches!(queue.try_pop(), Err(TryPopError::Empty)));
        });
    }

    /// One thread pushes and pops, so that the other finds what it knows of used again, to the same picture.
    pub(super) fn the_same_place_comes_again<D: Tested>() {
        explore_try_calls(0, || {
            let queue = queue::<Item, D>(2);
            queue.try_push(Item::new(0)).unwrap();
            let other = spawn(&queue, move |queue| {
                let mut popped = Vec::new();
                for id in 1..4 {
                    try_push(queue, Item::new(id)).unwrap();
                    popped.extend(try_pop(queue).map(|item| item.read()));
                }
                popped
            });
            let mut popped = vec![try_pop(&queue).unwrap().read()];
            popped.extend(other.join().unwrap());
            assert!(popped[1..].is_sorted());
            popped.extend(std::iter::from_fn(|| queue.try_pop().ok().map(|item| item.read())));
            popped.sort_unstable();
            assert_eq!(popped, [0, 1, 2, 3]);
        });
    }

    pub(super) fn a_batch_against_singles<D: Tested>() {
        explore(-1, || {
            let queue = queue::<Item, D>(2);
            let batch = spawn(&queue, move |queue| queue.push_batch(&mut vec![Item::new(0), Item::new(1)]).unwrap());
            let single = spawn(&queue, move |queue| queue.push(Item::new(2)).unwrap());
            let mut popped = Vec::new();
            while popped.len() < 3 {
                queue.pop_batch(&mut popped, 2).unwrap();
            }
            batch.join().unwrap();
            single.join().unwrap();
            let ids: Vec<_> = popped.iter().map(Item::read).collect();
            assert!([[0, 1, 2], [0, 2, 1], [2, 0, 1]].contains(&ids.clone().try_into().unwrap()), "{ids:?}");
        });
    }

    /// Batches taken while batches come.
    pub(super) fn batches_race<D: Tested>() {
        explore(0, || {
            let queue = queue::<Item, D>(3);
            queue.try_push(Item::new(0)).unwrap();
            let pusher = spawn(&queue, move |queue| {
                queue.push_batch(&mut vec![Item::new(1), Item::new(2)]).unwrap();
            });
            let pop = |queue: &Queue<Item, D, Park>| {
                let mut popped = Vec::new();
                queue.pop_batch(&mut popped, 2).unwrap();
                popped.iter().map(Item::read).collect::<Vec<_>>()
            };
            let popper = spawn(&queue, pop);
            let mut ids = pop(&queue);
            let others = popper.join().unwrap();
            assert!(ids.is_sorted() && others.is_sorted());
            ids.extend(others);
            pusher.join().unwrap();
            ids.extend(queue.try_pop().map(|item| item.read()));
            ids.sort_unstable();
            assert_eq!(ids, [0, 1, 2]);
        });
    }

    /// Two consumers sleep; one batch comes, and nothing after it.
    pub(super) fn one_batch_wakes_two<D: Tested>() {
        explore(-1, || {
            let queue = queue::<usize, D>(2);
            let poppers = [(); 2].map(|()| spawn(&queue, |queue| queue.pop().unwrap()));
            queue.push_batch(&mut vec![0, 1]).unwrap();
            let popped = poppers.map(|popper| popper.join().unwrap());
            assert!(popped == [0, 1] || popped == [1, 0]);
        });
    }

    /// Two producers sleep; one pop makes room for both.
    pub(super) fn one_pop_of_many_wakes_two<D: Tested>() {
        explore(-1, || {
            let queue = queue::<usize, D>(2);
            queue.try_push_batch(&mut vec![0, 1]).unwrap();
            let pushers = [2, 3].map(|item| spawn(&queue, move |queue| queue.push(item).unwrap()));
            let mut popped = Vec::new();
            while !matches!(queue.try_pop_batch(&mut popped, 2), Ok(_)) {
                thread::yield_now();
            }
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
            assert_eq!(popped.len() + queue.len(), 4);
        });
    }

    /// A waker that has taken the thread out of the list finds its place to sleep, though the receiver has gone on to
    /// another thread.
    pub(super) fn a_receiver_moves_between_two_waits<D: Tested>() {
        explore(0, || {
            let (tx, rx) = channel::<usize, D>(2);
            let pusher = spawn_with(tx, move |tx| {
                tx.push(1).unwrap();
                tx.push(2).unwrap();
            });
            assert_eq!(rx.pop(), Ok(1));
            thread::spawn(move || assert_eq!(rx.pop(), Ok(2))).join().unwrap();
            drop(pusher.join().unwrap());
        });
    }

    pub(super) fn a_sender_moves_between_two_waits<D: Tested>() {
        explore(0, || {
            let (tx, rx) = channel::<usize, D>(1);
            tx.push(0).unwrap();
            let popper = spawn_with(rx, move |rx| assert_eq!([rx.pop(), rx.pop()], [Ok(0), Ok(1)]));
            tx.push(1).unwrap();
            thread::spawn(move || tx.push(2).unwrap()).join().unwrap();
            assert_eq!(popper.join().unwrap().1.pop(), Ok(2));
        });
    }

    /// A consumer that may give up at any moment, another one that waits, and one item for each.
    pub(super) fn a_time_out_takes_no_wake_up_along<D: Tested>() {
        explore(-1, || {
            let queue = queue::<usize, D>(2);
            let waits = spawn(&queue, |queue| queue.pop().unwrap());
            let gives_up = spawn(&queue, |queue| queue.pop_timeout(Duration::from_nanos(1)).is_ok());
            queue.push(1).unwrap();
            if gives_up.join().unwrap() {
                queue.push(2).unwrap();
            }
            waits.join().unwrap();
            assert!(queue.is_empty());
        });
    }

    pub(super) fn close_against_a_parked_pop<D: Tested>() {
        explore(1, || {
            let queue = queue::<Item, D>(1);
            let popper = spawn(&queue, |queue| {
                let first = queue.pop().map(|item| item.read());
                (first, queue.pop().map(|item| item.read()))
            });
            queue.push(Item::new(0)).unwrap();
            queue.close();
            assert_eq!(popper.join().unwrap(), (Ok(0), Err(Closed(()))));
        });
    }

    pub(super) fn close_against_a_parked_push<D: Tested>() {
        explore(1, || {
            let queue = queue::<Item, D>(1);
            queue.try_push(Item::new(0)).unwrap();
            let pusher = spawn(&queue, move |queue| queue.push(Item::new(1)).map_err(|Closed(item)| item.read()));
            queue.close();
            assert_eq!(pusher.join().unwrap(), Err(1));
            assert_eq!(queue.pop().unwrap().read(), 0);
            assert_eq!(queue.pop().map(|item| item.read()), Err(Closed(())));
        });
    }

    /// The last item may still be on its way when both find the queue closed: the consumer that takes it tells the
    /// other.
    pub(super) fn close_against_two_parked_pops<D: Tested>() {
        explore(-1, || {
            let queue = queue::<usize, D>(2);
            let poppers = [(); 2].map(|()| spawn(&queue, |queue| usize::from(queue.pop().is_ok())));
            let pusher = spawn(&queue, |queue| usize::from(queue.push(1).is_ok()));
            queue.close();
            let popped: usize = poppers.into_iter().map(|popper| popper.join().unwrap()).sum();
            assert_eq!(pusher.join().unwrap(), popped);
            assert_eq!(queue.pop(), Err(Closed(())));
        });
    }

    /// Each push comes before the close, then its item is popped, or after it, then it comes back.
    pub(super) fn close_against_pushes<D: Tested>() {
        explore(-1, || {
            let queue = queue::<Item, D>(2);
            let single = spawn(&queue, move |queue| usize::from(queue.push(Item::new(0)).is_ok()));
            let batch = spawn(&queue, move |queue| {
                let mut batch = vec![Item::new(1), Item::new(2)];
                queue.push_batch(&mut batch).ok();
                2 - batch.len()
            });
            queue.close();
            let mut popped = Vec::new();
            while queue.pop_batch(&mut popped, 2).is_ok() {}
            assert_eq!(popped.len(), single.join().unwrap() + batch.join().unwrap());
            assert_eq!(queue.try_pop().map(|item| item.read()), Err(TryPopError::Closed));
        });
    }

    /// A push that a close refuses is not inside.
    pub(super) fn what_a_close_refuses_does_not_count<D: Tested>() {
        explore_try_calls(0, || {
            let queue = queue::<usize, D>(2);
            let pusher = spawn(&queue, |queue| queue.push(1).is_ok());
            queue.close();
            let pushed = pusher.join().unwrap();
            assert_eq!(queue.len(), usize::from(pushed));
        });
    }

    /// Where a queue says that it is closed, no push is told that it is full.
    pub(super) fn closed_goes_before_full<D: Tested>() {
        explore_try_calls(0, || {
            let queue = queue::<usize, D>(1);
            queue.try_push(0).unwrap();
            let closer = spawn(&queue, Queue::close);
            if queue.is_closed() {
                assert_eq!(try_push(&queue, 1), Err(TryPushError::Closed(1)));
            }
            closer.join().unwrap();
        });
    }

    /// An own push has returned, so the queue is not empty, whatever another thread is in the middle of. With pops the
    /// same for Full.
    pub(super) fn what_has_returned_counts<D: Tested>() {
        explore_try_calls(1, || {
            let queue = queue::<usize, D>(2);
            let other = spawn(&queue, |queue| queue.try_push(0).is_ok());
            if queue.try_push(1).is_ok() {
                assert_ne!(queue.try_pop(), Err(TryPopError::Empty));
            }
            other.join().unwrap();
        });
        explore_try_calls(1, || {
            let queue = queue::<usize, D>(2);
            queue.try_push_batch(&mut vec![0, 1]).unwrap();
            let other = spawn(&queue, |queue| queue.try_pop().is_ok());
            if queue.try_pop().is_ok() {
                assert!(!matches!(queue.try_push(2), Err(TryPushError::Full(_))));
            }
            other.join().unwrap();
        });
    }

    /// Each of two threads pushes to its queue and then finds the other one empty: one of them is wrong.
    pub(super) fn two_queues_agree_on_one_order<D: Tested>() {
        explore_with(Barrier::Nothing, PREEMPTIONS + 1, || {
            let (one, two) = (queue::<usize, D>(1), queue::<usize, D>(1));
            let (first, second) = (one.clone(), two.clone());
            let other = thread::spawn(move || {
                second.try_push(2).ok();
                first.try_pop()
            });
            let pushed = one.try_push(1);
            let mine = two.try_pop();
            let theirs = other.join().unwrap();
            assert!(pushed.is_err() || [mine, theirs] != [Err(TryPopError::Empty); 2]);
        });
    }

    pub(super) fn len_is_never_more_than_the_capacity<D: Tested>() {
        explore_try_calls(0, || {
            let queue = queue::<usize, D>(1);
            queue.try_push(0).unwrap();
            let popper = spawn(&queue, |queue| queue.try_pop().is_ok());
            let pusher = spawn(&queue, |queue| D::BOUNDED && queue.try_push(1).is_ok());
            assert!(queue.len() <= 1);
            let left = 1 + usize::from(pusher.join().unwrap()) - usize::from(popper.join().unwrap());
            assert_eq!(queue.len(), left);
        });
        // Nor is it less than nothing, once what was only just pushed is popped.
        explore_try_calls(-1, || {
            let queue = queue::<usize, D>(1);
            let pusher = spawn(&queue, |queue| queue.try_push(0).is_ok());
            let popped = queue.try_pop().is_ok();
            assert!(queue.len() <= 1);
            let left = usize::from(pusher.join().unwrap()) - usize::from(popped);
            assert_eq!(queue.len(), left);
        });
    }

    /// The last sender goes while a receiver waits, with an item or without: it gets the item, and then the end.
    pub(super) fn the_last_sender_goes<D: Tested>() {
        explore(1, || {
            let (tx, rx) = channel::<usize, D>(1);
            let receiver = thread::spawn(move || rx.pop());
            drop(tx);
            assert_eq!(receiver.join().unwrap(), Err(Closed(())));
        });
        explore(0, || {
            let (tx, rx) = channel::<Item, D>(1);
            let receiver = thread::spawn(move || rx.iter().map(|item| item.read()).collect::<Vec<_>>());
            tx.push(Item::new(0)).unwrap();
            drop(tx);
            assert_eq!(receiver.join().unwrap(), [0]);
        });
    }

    /// Neither is known to be the last. The end comes after both items, and their pushes are not refused.
    pub(super) fn two_senders_go_at_once<D: Tested>() {
        explore(quick(-2, -1), || {
            let (tx, rx) = channel::<Item, D>(2);
            let (other, item) = (tx.clone(), Item::new(0));
            let sender = thread::spawn(move || other.push(item).unwrap());
            let item = Item::new(1);
            let receiver = thread::spawn(move || {
                let mut ids: Vec<_> = rx.iter().map(|item| item.read()).collect();
                ids.sort_unstable();
                assert_eq!(rx.try_pop().map(|item| item.read()), Err(TryPopError::Closed));
                ids
            });
            tx.push(item).unwrap();
            drop(tx);
            sender.join().unwrap();
            assert_eq!(receiver.join().unwrap(), [0, 1]);
        });
    }

    /// A sender is cloned, in a thread that lets its own go, while another one goes: the queue is open as long as one
    /// is there.
    pub(super) fn a_clone_keeps_the_queue_open<D: Tested>() {
        explore_try_calls(0, || {
            let (tx, rx) = channel::<usize, D>(2);
            let other = tx.clone();
            let sender = thread::spawn(move || {
                let clone = other.clone();
                drop(other);
                assert!(!clone.is_closed());
                clone
            });
            drop(tx);
            let clone = sender.join().unwrap();
            assert_eq!(clone.push(1), Ok(()));
            drop(clone);
            assert_eq!((rx.pop(), rx.pop()), (Ok(1), Err(Closed(()))));
        });
    }

    /// The last receiver goes while a sender pushes more than there is room for: each item was popped, or comes back,
    /// or is dropped with the queue.
    pub(super) fn the_last_receiver_goes<D: Tested>() {
        explore(1, || {
            let (tx, rx) = channel::<Item, D>(1);
            let sender = thread::spawn(move || {
                let back = |id| tx.push(Item::new(id)).map_err(|Closed(item)| assert_eq!(item.read(), id)).is_err();
                ([0, 1].map(back), tx)
            });
            let popped = rx.try_pop().map(|item| item.read());
            assert!(matches!(popped, Ok(0) | Err(TryPopError::Empty | TryPopError::Busy)));
            drop(rx);
            // The sender stays, and nothing inside does.
            let (came_back, _tx) = sender.join().unwrap();
            // No push succeeds after one that was refused, and what was popped did not come back.
            assert!(came_back.is_sorted() && !(popped.is_ok() && came_back[0]));
            assert!(came_back[1] || popped.is_ok() || !D::BOUNDED);
            Item::assert_each_dropped_once();
        });
    }

    /// Where there is no membarrier the push may overlook that the receiver is gone, which looks again, also if it has
    /// found another item before. The sender stays, and nothing inside does.
    pub(super) fn the_last_receiver_goes_without_membarrier<D: Tested>() {
        for inside in [0, 1] {
            explore_with(Barrier::Absent, PREEMPTIONS, move || {
                let (tx, rx) = channel::<Item, D>(2);
                (0..inside).for_each(|id| tx.try_push(Item::new(id)).ok().unwrap());
                let item = Item::new(inside);
                let sender = spawn_with(tx, move |tx| drop(tx.try_push(item)));
                drop(rx);
                let _tx = sender.join().unwrap();
                Item::assert_each_dropped_once();
            });
        }
    }

    /// Two receivers go while a sender waits for room: only the second one's drop refuses the item.
    pub(super) fn two_receivers_go_at_once<D: Tested>() {
        explore(0, || {
            let (tx, rx) = channel::<Item, D>(1);
            tx.push(Item::new(0)).unwrap();
            let other = rx.clone();
            let receiver = thread::spawn(move || drop(other));
            let sender = thread::spawn(move || tx.push(Item::new(1)).map_err(|Closed(item)| item.read()));
            drop(rx);
            receiver.join().unwrap();
            assert_eq!(sender.join().unwrap(), Err(1));
        });
    }
}

macro_rules! suite {
    ($name:ident, $design:ident, [$($model:ident)+]) => {
        mod $name {
            use super::*;

            $(#[test]
            fn $model() {
                models::$model::<mpmc::$design>();
            })+
        }
    };
}

/// The models of a design, by its line in the list. Two threads that ask again and again may let each other run for
/// ever, in a model: of a design that spins there is one at a time.
macro_rules! models_of {
    ($name:ident, $design:ident, [bounded spins $($flags:tt)*]) => {
        suite!($name, $design, [
            items_are_handed_over_with_their_memory
            two_producers_with_room_and_one_consumer
            the_same_place_comes_again
            a_batch_is_handed_over
            a_receiver_moves_between_two_waits
            a_sender_moves_between_two_waits
            close_against_a_parked_pop
            close_against_a_parked_push
            what_has_returned_counts
            two_queues_agree_on_one_order
            len_is_never_more_than_the_capacity
            the_last_sender_goes
            a_clone_keeps_the_queue_open
            the_last_receiver_goes
        ]);
    };
    ($name:ident, $design:ident, [bounded sleeps $($flags:tt)*]) => {
        models_of!(@ $name, $design, [
            one_pop_of_many_wakes_two
            a_sender_moves_between_two_waits
            close_against_a_parked_push
            closed_goes_before_full
            two_receivers_go_at_once
        ]);
    };
    ($name:ident, $design:ident, [unbounded sleeps $($flags:tt)*]) => {
        models_of!(@ $name, $design, []);
    };
    (@ $name:ident, $design:ident, [$($more:ident)*]) => {
        suite!($name, $design, [
            items_are_handed_over_with_their_memory
            two_producers_and_one_consumer
            two_producers_with_room_and_one_consumer
            one_producer_and_two_consumers
            places_are_used_again
            the_same_place_comes_again
            a_batch_is_handed_over
            a_batch_against_singles
            batches_race
            one_batch_wakes_two
            a_receiver_moves_between_two_waits
            a_time_out_takes_no_wake_up_along
            close_against_a_parked_pop
            close_against_two_parked_pops
            close_against_pushes
            what_a_close_refuses_does_not_count
            what_has_returned_counts
            two_queues_agree_on_one_order
            len_is_never_more_than_the_capacity
            the_last_sender_goes
            two_senders_go_at_once
            a_clone_keeps_the_queue_open
            the_last_receiver_goes
            the_last_receiver_goes_without_membarrier
            $($more)*
        ]);
    };
}
shared_designs!(models_of);
