//! Every design under every interleaving of small cases. Runs with
//! `cargo loom -p corelane --test loom`.
//!
//! Under loom the lane's blocks hold two items, its consumer takes two blocks at once, a failed slip is a single look,
//! and blocks of words count as one line, those of larger items as several, so the few items of a model reach every
//! path.
//!
//! What loom cannot show: there is no time, loads are never reordered behind later stores, and `SeqCst` accesses are
//! modelled as acquire and release (the crate uses none). The membarrier of the park protocol is modelled by less than
//! it does and by more, see [`Barrier`]. And it looks for a race with the last access to an object only: a thread that
//! loads a word and then changes it hides another's load from itself. A publisher's fence and load of its peer's word
//! are such a case, its read-modify-write is not.

#[macro_use]
#[path = "support/designs.rs"]
mod designs;
#[path = "support/explore.rs"]
mod explore;

use corelane::Barrier;
use corelane::error::{TryPopError, TryPushError};
use corelane::spsc::{self, Design, Lane, Linked, Options};
use corelane::wait::{Park, Select, Spin, Strategy};
use explore::{Item, explore_with, quick, spawn_with};
use loom::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use loom::thread;
use std::sync::Arc;

/// Explores a model in which an end parks or closes, with so many preemptions: once with fences in the membarrier's
/// place, and once with less, which hides less.
fn explore(preemptions: usize, model: impl Fn() + Clone + Send + Sync + 'static) {
    explore_with(Barrier::Fences, preemptions, model.clone());
    explore_with(Barrier::ReadModifyWrite, preemptions, model);
}

/// Explores a model in which no end parks, and none closes before the other side is done.
fn explore_without_barrier(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    explore_with(Barrier::Nothing, preemptions, model);
}

/// A design under test.
trait Tested: Design<Item, Tuning = Self::Options> + Design<usize, Tuning = Self::Options> {
    type Options: Clone + Default + Send + Sync + 'static;
}

impl<D, O: Clone + Default + Send + Sync + 'static> Tested for D
where
    D: Design<Item, Tuning = O> + Design<usize, Tuning = O>,
{
    type Options = O;
}

type Ends<T, D, W> = (spsc::Producer<T, D, W>, spsc::Consumer<T, D, W>);

fn queue_from<T: Send, D: Design<T>, W: Strategy>(start: usize, capacity: usize, wait: W) -> Ends<T, D, W> {
    let options = Options::new().tuning(D::Tuning::default()).wait(wait).start_at(start);
    spsc::any_channel(capacity, options).unwrap()
}

fn queue<T: Send, D: Design<T>>(capacity: usize) -> Ends<T, D, Spin> {
    queue_from(0, capacity, Spin)
}

/// A lane whose ring has as few blocks as there can be.
fn compact<T: Send>(start: usize, capacity: usize) -> Ends<T, Lane, Spin> {
    let tuning = spsc::lane::Tuning::new().compact();
    spsc::any_channel(capacity, Options::new().tuning(tuning).wait(Spin).start_at(start)).unwrap()
}

fn parking<T: Send, D: Design<T>>(capacity: usize) -> Ends<T, D, Park> {
    queue_from(0, capacity, Park)
}

/// A queue of 4 through which whole blocks have gone: a lane's consumer stands in a block that the producer has not
/// entered, and the end of the ring lies four items ahead.
fn after_blocks<D: Tested, W: Strategy>(wait: W) -> Ends<usize, D, W> {
    let (mut producer, mut consumer) = queue_from::<usize, D, _>(0, 4, wait);
    assert_eq!(producer.try_push_slice(&[0; 4]).unwrap_or(0), 4);
    assert_eq!(consumer.try_pop_batch(&mut Vec::new(), 4).unwrap_or(0), 4);
    (producer, consumer)
}

/// A queue of 64 that holds 64 items less those that its consumer has popped and kept to itself. One more pop tells the
/// producer of them all.
fn full_but_for_the_lag<D: Tested>() -> Ends<usize, D, Park> {
    let (mut producer, mut consumer) = parking::<usize, D>(64);
    assert_eq!(producer.try_push_slice(&[0; 64]).unwrap_or(0), 64);
    for _ in 0..producer.release_lag() {
        consumer.try_pop().unwrap();
    }
    assert!(producer.try_push(0).unwrap_err().is_full());
    (producer, consumer)
}

fn push<T: Send, D: Design<T>, W>(producer: &mut spsc::Producer<T, D, W>, mut item: T) {
    loop {
        match producer.try_push(item) {
            Ok(()) => return,
            Err(TryPushError::Full(refused)) => item = refused,
            Err(refusal) => panic!("{refusal}"),
        }
        thread::yield_now();
    }
}

fn pop<T: Send, D: Design<T>, W>(consumer: &mut spsc::Consumer<T, D, W>) -> Option<T> {
    loop {
        match consumer.try_pop() {
            Ok(item) => return Some(item),
            Err(TryPopError::Empty) => thread::yield_now(),
            Err(_) => return None,
        }
    }
}

/// Pops what is there, the item of this number first, and gives back the number of the one that would come next.
fn drain<D: Design<Item>, W>(consumer: &mut spsc::Consumer<Item, D, W>, mut next: usize) -> usize {
    while let Ok(item) = consumer.try_pop() {
        assert_eq!(item.read(), next);
        next += 1;
    }
    next
}

/// A producer pushes `items` items one by one while the consumer pops them one by one.
fn one_by_one<D: Tested>(preemptions: usize, start: usize, capacity: usize, items: usize) {
    explore_without_barrier(preemptions, move || {
        let (mut producer, mut consumer) = queue_from::<Item, D, _>(start, capacity, Spin);
        let pusher = thread::spawn(move || {
            for id in 0..items {
                push(&mut producer, Item::new(id));
            }
        });
        for id in 0..items {
            assert_eq!(pop(&mut consumer).unwrap().read(), id);
        }
        pusher.join().unwrap();
    });
}

mod models {
    use super::*;

    pub(super) fn items_are_handed_over_with_their_memory<D: Tested>() {
        one_by_one::<D>(3, 0, 4, 3);
    }

    pub(super) fn a_queue_of_one_wraps<D: Tested>() {
        one_by_one::<D>(3, 0, 1, 3);
    }

    pub(super) fn a_queue_of_two_wraps<D: Tested>() {
        one_by_one::<D>(2, 0, 2, 5);
    }

    pub(super) fn indices_wrap_around<D: Tested>() {
        one_by_one::<D>(2, usize::MAX, 2, 4);
    }

    /// A batch, in whatever pieces it goes and comes.
    pub(super) fn batches_are_handed_over<D: Tested>() {
        explore_without_barrier(2, || {
            let (producer, mut consumer) = queue::<usize, D>(3);
            let pusher = spawn_with(producer, move |producer| {
                let mut items = &[0, 1, 2, 3, 4][..];
                while !items.is_empty() {
                    items = &items[producer.try_push_slice(items).unwrap_or(0)..];
                    thread::yield_now();
                }
            });
            let mut items = Vec::new();
            while items.len() < 5 {
                consumer.try_pop_batch(&mut items, 2).unwrap_or(0);
                thread::yield_now();
            }
            assert_eq!(items, [0, 1, 2, 3, 4]);
            drop(pusher.join().unwrap());
        });
    }

    pub(super) fn items_of_a_batch_are_handed_over_with_their_memory<D: Tested>() {
        explore_without_barrier(3, || {
            let (mut producer, mut consumer) = queue::<Item, D>(2);
            let pusher = thread::spawn(move || {
                let mut items = (0..3).map(Item::new).collect::<Vec<_>>();
                while !items.is_empty() {
                    let _ = producer.try_push_batch(&mut items);
                    thread::yield_now();
                }
            });
            for id in 0..3 {
                assert_eq!(pop(&mut consumer).unwrap().read(), id);
            }
            pusher.join().unwrap();
        });
    }

    /// Single items behind whole blocks, across the end of a lane's ring.
    pub(super) fn traffic_changes_from_blocks_to_single_items<D: Tested>() {
        explore_without_barrier(2, || {
            let (producer, mut consumer) = after_blocks::<D, _>(Spin);
            let pusher = spawn_with(producer, move |producer| (0..5).for_each(|item| push(producer, item)));
            for item in 0..5 {
                assert_eq!(pop(&mut consumer), Some(item));
            }
            drop(pusher.join().unwrap());
        });
    }

    /// Figure 5 of the B-Queue paper, with one item in flight: batching must not keep an answer back.
    pub(super) fn two_queues_in_a_ring_do_not_hang<D: Tested>() {
        explore_without_barrier(3, || {
            let (mut ask, mut asked) = queue::<usize, D>(4);
            let (mut answer, mut answered) = queue::<usize, D>(4);
            let server = thread::spawn(move || {
                for _ in 0..2 {
                    let question = pop(&mut asked).unwrap();
                    push(&mut answer, question + 10);
                }
                (asked, answer)
            });
            for question in 0..2 {
                push(&mut ask, question);
                assert_eq!(pop(&mut answered), Some(question + 10));
            }
            drop(server.join().unwrap());
        });
    }

    /// What the consumer counts can be popped, and what the producer does not count can be pushed.
    pub(super) fn lengths_are_bounds<D: Tested>() {
        explore_without_barrier(3, || {
            let (mut producer, mut consumer) = queue::<usize, D>(2);
            producer.try_push(0).unwrap();
            let pusher = spawn_with(producer, move |producer| {
                for _ in 0..2 {
                    let len = producer.len();
                    assert!(len <= 2);
                    for _ in len..2 {
                        producer.try_push(0).unwrap();
                    }
                }
            });
            for _ in 0..2 {
                let len = consumer.len();
                assert!(len <= 2);
                for _ in 0..len {
                    consumer.try_pop().unwrap();
                }
            }
            drop(pusher.join().unwrap());
        });
    }

    /// Nothing is pushed by a guard that is dropped, and what is peeked at stays.
    pub(super) fn items_are_written_and_read_in_place<D: Tested>() {
        explore_without_barrier(3, || {
            let (mut producer, mut consumer) = queue::<Item, D>(2);
            let pusher = thread::spawn(move || {
                drop(producer.try_reserve().unwrap());
                producer.try_reserve().unwrap().write(Item::new(0)).unwrap();
                producer.try_reserve().unwrap().write(Item::new(1)).unwrap();
            });
            for id in 0..2 {
                let item = loop {
                    match consumer.try_peek() {
                        Ok(item) => break item,
                        Err(_) => thread::yield_now(),
                    }
                };
                assert_eq!(item.read(), id);
                item.release();
            }
            pusher.join().unwrap();
        });
    }

    /// A guard keeps the other end from nothing, however long it is open.
    pub(super) fn an_open_guard_keeps_nobody_out<D: Tested>() {
        explore_without_barrier(3, || {
            let (mut producer, consumer) = queue::<usize, D>(2);
            producer.try_push(0).unwrap();
            let popped = Arc::new(AtomicBool::new(false));
            let tell = popped.clone();
            let popper = spawn_with(consumer, move |consumer| {
                assert_eq!(consumer.try_pop(), Ok(0));
                tell.store(true, Release);
                let item = loop {
                    match consumer.try_peek() {
                        Ok(item) => break item,
                        Err(_) => thread::yield_now(),
                    }
                };
                assert_eq!(item.pop(), 1);
            });
            let slot = producer.try_reserve().unwrap();
            while !popped.load(Acquire) {
                thread::yield_now();
            }
            slot.write(1).unwrap();
            drop(popper.join().unwrap());
        });
    }

    /// Each item is either given back or drained.
    fn consumer_closes_beside<D: Tested>(push: fn(&mut spsc::Producer<Item, D, Spin>) -> usize) {
        explore(3, move || {
            let (mut producer, mut consumer) = queue::<Item, D>(4);
            let pusher = thread::spawn(move || push(&mut producer));
            consumer.close();
            let drained = drain(&mut consumer, 0);
            assert_eq!(consumer.try_pop().err(), Some(TryPopError::Closed));
            assert_eq!(pusher.join().unwrap(), drained);
        });
    }

    pub(super) fn consumer_closes_while_items_are_pushed<D: Tested>() {
        consumer_closes_beside::<D>(|producer| {
            let accepted = |&id: &usize| match producer.try_push(Item::new(id)) {
                Ok(()) => true,
                Err(TryPushError::Closed(item)) => {
                    assert_eq!(item.read(), id);
                    false
                }
                Err(refusal) => panic!("the queue has room for all: {refusal}"),
            };
            (0..3).take_while(accepted).count()
        });
    }

    pub(super) fn consumer_closes_while_a_vector_is_pushed<D: Tested>() {
        consumer_closes_beside::<D>(|producer| {
            let mut items = (0..3).map(Item::new).collect::<Vec<_>>();
            let accepted = producer.try_push_batch(&mut items).unwrap_or(0);
            // What was refused is left, in order.
            assert!(items.iter().map(Item::read).eq(accepted..3));
            accepted
        });
    }

    pub(super) fn consumer_closes_while_an_item_is_written_in_place<D: Tested>() {
        consumer_closes_beside::<D>(|producer| match producer.try_reserve() {
            Ok(slot) => match slot.write(Item::new(0)) {
                Ok(()) => 1,
                Err(refused) => refused.0.read(),
            },
            Err(_) => 0,
        });
    }

    /// An end that was told Closed is told so for ever, though the consumer freed a slot just before.
    pub(super) fn closed_is_final<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = queue::<usize, D>(1);
            producer.try_push(0).unwrap();
            let popper = spawn_with(consumer, move |consumer| {
                consumer.try_pop().unwrap();
                consumer.close();
            });
            if producer.try_push(1) == Err(TryPushError::Closed(1)) || producer.is_closed() {
                assert!(producer.is_closed());
                assert_eq!(producer.try_push(2), Err(TryPushError::Closed(2)));
            }
            drop(popper.join().unwrap());
        });
    }

    /// As above, with the consumer in a block that a lane's producer has not entered.
    pub(super) fn consumer_closes_while_items_are_pushed_behind_popped_blocks<D: Tested>() {
        explore(3, || {
            let (mut producer, mut consumer) = after_blocks::<D, _>(Spin);
            let pusher = thread::spawn(move || (0..4).take_while(|&item| producer.try_push(item).is_ok()).count());
            consumer.close();
            let mut drained = 0;
            while let Ok(item) = consumer.try_pop() {
                assert_eq!(item, drained);
                drained += 1;
            }
            assert_eq!(pusher.join().unwrap(), drained);
        });
    }

    /// The end lies behind what was popped of a lane's block, and in front of what is still pushed to it.
    pub(super) fn consumer_closes_in_the_middle_of_a_block<D: Tested>() {
        explore(3, || {
            let (mut producer, mut consumer) = queue::<Item, D>(4);
            assert!(producer.try_push(Item::new(0)).is_ok());
            assert_eq!(consumer.try_pop().unwrap().read(), 0);
            let pusher =
                thread::spawn(move || (1..4).take_while(|&id| producer.try_push(Item::new(id)).is_ok()).count());
            let popped = drain(&mut consumer, 1);
            consumer.close();
            let popped = drain(&mut consumer, popped);
            assert_eq!(consumer.try_pop().err(), Some(TryPopError::Closed));
            assert_eq!(pusher.join().unwrap() + 1, popped);
        });
    }

    /// What is refused of a batch is its end.
    pub(super) fn consumer_closes_while_a_batch_is_pushed<D: Tested>() {
        explore(3, || {
            let (mut producer, mut consumer) = queue::<usize, D>(4);
            producer.try_push(0).unwrap();
            let pusher = thread::spawn(move || producer.try_push_slice(&[1, 2, 3]).unwrap_or(0));
            consumer.close();
            let mut drained = Vec::new();
            while consumer.try_pop_each(4, |item| drained.push(item)).unwrap_or(0) != 0 {}
            let accepted = pusher.join().unwrap();
            assert_eq!(drained, (0..=accepted).collect::<Vec<_>>());
        });
    }

    pub(super) fn both_ends_go_at_once<D: Tested>() {
        explore(3, || {
            let (mut producer, mut consumer) = queue::<Item, D>(2);
            producer.try_push(Item::new(0)).unwrap();
            let pusher = thread::spawn(move || drop(producer.try_push(Item::new(1))));
            drop(consumer.try_pop());
            drop(consumer);
            pusher.join().unwrap();
        });
    }

    /// Nothing stays inside as long as the producer.
    fn consumer_goes_beside<D: Tested>(push: fn(&mut spsc::Producer<Item, D, Spin>) -> usize) {
        explore(3, move || {
            let (producer, mut consumer) = queue::<Item, D>(4);
            let pusher = spawn_with(producer, push);
            let popped = usize::from(consumer.try_pop().is_ok());
            drop(consumer);
            let (accepted, _producer) = pusher.join().unwrap();
            assert!(popped <= accepted);
            Item::assert_each_dropped_once();
        });
    }

    pub(super) fn consumer_goes_while_items_are_pushed<D: Tested>() {
        consumer_goes_beside::<D>(|producer| (0..3).take_while(|&id| producer.try_push(Item::new(id)).is_ok()).count());
    }

    pub(super) fn consumer_goes_while_a_vector_is_pushed<D: Tested>() {
        consumer_goes_beside::<D>(|producer| {
            producer.try_push_batch(&mut (0..3).map(Item::new).collect()).unwrap_or(0)
        });
    }

    /// Where there is no membarrier the push may overlook the close: the consumer looks again.
    pub(super) fn consumer_ends_beside_a_push_without_membarrier<D: Tested>() {
        fn model<D: Tested>(ends: fn(spsc::Consumer<Item, D, Spin>) -> Option<bool>) {
            explore_with(Barrier::Absent, 3, move || {
                let (mut producer, consumer) = queue::<Item, D>(2);
                let pusher = thread::spawn(move || (producer.try_push(Item::new(0)).is_ok(), producer));
                let popped = ends(consumer);
                let (accepted, _producer) = pusher.join().unwrap();
                assert_eq!(accepted, popped.unwrap_or(accepted));
                Item::assert_each_dropped_once();
            });
        }
        model::<D>(|mut consumer| {
            consumer.close();
            Some(consumer.try_pop().is_ok())
        });
        model::<D>(|consumer| {
            drop(consumer);
            None
        });
    }

    /// Where there is no membarrier, a push that is stopped for longer than a close waits overlooks it: its item stays
    /// inside until the producer goes, too.
    pub(super) fn consumer_goes_beside_a_push_that_is_stopped<D: Tested>() {
        explore_with(Barrier::Nothing, 3, || {
            let (mut producer, mut consumer) = queue::<Item, D>(2);
            for id in 0..9 {
                push(&mut producer, Item::new(id));
                assert_eq!(pop(&mut consumer).unwrap().read(), id);
            }
            let pusher = thread::spawn(move || drop(producer.try_push(Item::new(9))));
            drop(consumer);
            pusher.join().unwrap();
        });
    }

    pub(super) fn producer_goes_while_items_are_popped<D: Tested>() {
        explore(3, || {
            let (mut producer, mut consumer) = queue::<Item, D>(4);
            let pusher = thread::spawn(move || {
                push(&mut producer, Item::new(0));
                push(&mut producer, Item::new(1));
            });
            let popped = std::iter::from_fn(|| pop(&mut consumer)).map(|item| item.read());
            assert_eq!(popped.collect::<Vec<_>>(), [0, 1]);
            pusher.join().unwrap();
        });
    }

    /// Loom reports a lost wake-up as a deadlock, in this model and the next ones.
    pub(super) fn producer_goes_while_the_consumer_parks<D: Tested>() {
        explore(3, || {
            let (mut producer, mut consumer) = parking::<usize, D>(2);
            let pusher = thread::spawn(move || producer.try_push(7).unwrap());
            assert_eq!(consumer.pop(), Ok(7));
            assert!(consumer.pop().is_err());
            pusher.join().unwrap();
        });
    }

    pub(super) fn consumer_goes_while_the_producer_parks<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = parking::<usize, D>(1);
            producer.try_push(1).unwrap();
            let popper = thread::spawn(move || drop(consumer));
            assert_eq!(producer.push(2).unwrap_err().0, 2);
            popper.join().unwrap();
        });
    }

    pub(super) fn consumer_closes_while_the_producer_parks<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = parking::<usize, D>(1);
            producer.try_push(1).unwrap();
            let popper = spawn_with(consumer, move |consumer| consumer.close());
            assert_eq!(producer.push(2).unwrap_err().0, 2);
            let (_, mut consumer) = popper.join().unwrap();
            assert_eq!(consumer.try_pop(), Ok(1));
            assert_eq!(consumer.try_pop(), Err(TryPopError::Closed));
        });
    }

    pub(super) fn a_push_wakes_the_parked_consumer<D: Tested>() {
        explore(3, || {
            let (producer, mut consumer) = parking::<usize, D>(2);
            let pusher = spawn_with(producer, move |producer| {
                producer.try_push(1).unwrap();
                producer.try_push(2).unwrap();
            });
            assert_eq!(consumer.pop(), Ok(1));
            assert_eq!(consumer.pop(), Ok(2));
            drop(pusher.join().unwrap());
        });
    }

    /// Just below wrap-around, where a position to be woken at that is out of date would be one in the future.
    pub(super) fn a_pop_wakes_the_parked_producer<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = queue_from::<usize, D, _>(usize::MAX - 1, 1, Park);
            producer.try_push(1).unwrap();
            let popper = spawn_with(consumer, move |consumer| assert_eq!(consumer.try_pop(), Ok(1)));
            assert!(producer.push(2).is_ok());
            assert_eq!(popper.join().unwrap().1.try_pop(), Ok(2));
        });
    }

    /// Whom to wake the producer reads when its flag is down, and the end may wait in another thread by then. In this
    /// model and the next one loom reports a waker that does not know of that thread's place to sleep.
    pub(super) fn a_consumer_moves_between_two_waits<D: Tested>() {
        explore(3, || {
            let (producer, mut consumer) = parking::<usize, D>(2);
            let pusher = spawn_with(producer, move |producer| {
                producer.try_push(1).unwrap();
                producer.try_push(2).unwrap();
            });
            assert_eq!(consumer.pop(), Ok(1));
            thread::spawn(move || assert_eq!(consumer.pop(), Ok(2))).join().unwrap();
            drop(pusher.join().unwrap());
        });
    }

    pub(super) fn a_producer_moves_between_two_waits<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = parking::<usize, D>(2);
            assert_eq!(producer.try_push_slice(&[0, 1]), Ok(2));
            let popper = spawn_with(consumer, move |consumer| {
                assert_eq!([consumer.try_pop(), consumer.try_pop()], [Ok(0), Ok(1)])
            });
            producer.push(2).unwrap();
            thread::spawn(move || producer.push(3).unwrap()).join().unwrap();
            drop(popper.join().unwrap());
        });
    }

    pub(super) fn both_ends_park_in_turn<D: Tested>() {
        fn hand_over<D: Tested>(items: usize) {
            let (mut producer, mut consumer) = parking::<usize, D>(1);
            let pusher = thread::spawn(move || (0..items).for_each(|item| producer.push(item).unwrap()));
            for item in 0..items {
                assert_eq!(consumer.pop(), Ok(item));
            }
            pusher.join().unwrap();
        }
        // For the third item both park again, which takes minutes with less order: the gate leaves it out.
        let items = quick(2, 3);
        explore_with(Barrier::Fences, 2, move || hand_over::<D>(items));
        explore_with(Barrier::ReadModifyWrite, 2, move || hand_over::<D>(items));
    }

    pub(super) fn a_push_behind_popped_blocks_wakes_the_parked_consumer<D: Tested>() {
        explore(3, || {
            let (producer, mut consumer) = after_blocks::<D, _>(Park);
            let pusher = spawn_with(producer, move |producer| {
                producer.try_push(1).unwrap();
                producer.try_push(2).unwrap();
                producer.try_push(3).unwrap();
            });
            for item in 1..4 {
                assert_eq!(consumer.pop(), Ok(item));
            }
            drop(pusher.join().unwrap());
        });
    }

    /// A consumer that tells of free slots late tells a parked producer, too.
    pub(super) fn a_late_release_wakes_the_parked_producer<D: Tested>() {
        explore(2, || {
            let (mut producer, consumer) = full_but_for_the_lag::<D>();
            let popper = spawn_with(consumer, move |consumer| consumer.try_pop().unwrap());
            producer.push(0).unwrap();
            drop(popper.join().unwrap());
        });
    }

    pub(super) fn two_free_slots_wake_the_producer_that_waits_for_them<D: Tested>() {
        explore(3, || {
            let (mut producer, consumer) = parking::<usize, D>(2);
            assert_eq!(producer.try_push_slice(&[0, 1]).unwrap_or(0), 2);
            let popper = spawn_with(consumer, move |consumer| {
                assert_eq!(consumer.try_pop(), Ok(0));
                assert_eq!(consumer.try_pop(), Ok(1));
            });
            producer.wait_for_room(2).unwrap();
            assert_eq!(producer.try_push_slice(&[2, 3]).unwrap_or(0), 2);
            drop(popper.join().unwrap());
        });
    }

    /// A consumer that says Empty has told of every slot, so a producer may wait for the whole queue.
    pub(super) fn an_empty_queue_wakes_the_producer_that_waits_for_all_of_it<D: Tested>() {
        explore(2, || {
            let (mut producer, mut consumer) = parking::<usize, D>(64);
            assert_eq!(producer.try_push_slice(&[0; 2]).unwrap_or(0), 2);
            consumer.try_pop().unwrap();
            let popper = spawn_with(consumer, move |consumer| {
                consumer.try_pop().unwrap();
                // Empty, or the first of those that were pushed as soon as it was.
                let _ = consumer.try_pop();
            });
            producer.wait_for_room(64).unwrap();
            assert_eq!(producer.try_push_slice(&[0; 64]).unwrap_or(0), 64);
            drop(popper.join().unwrap());
        });
    }

    /// One sleep for two queues: a push to either ends it.
    pub(super) fn one_sleep_serves_two_queues<D: Tested>() {
        fn model<D: Tested, const TO: usize>() {
            let (mut producers, mut consumers) = (Vec::new(), Select::with(Park));
            let keys = [0, 1].map(|_| {
                let (producer, consumer) = queue_from::<usize, D, _>(0, 1, Park);
                producers.push(producer);
                consumers.add(consumer)
            });
            let pusher = thread::spawn(move || {
                producers[TO].try_push(5).unwrap();
                producers
            });
            assert_eq!(consumers.wait().unwrap(), keys[TO]);
            assert_eq!(consumers[keys[TO]].try_pop(), Ok(5));
            drop(pusher.join().unwrap());
        }
        explore(3, model::<D, 0>);
        explore(3, model::<D, 1>);
    }

    pub(super) fn one_sleep_serves_two_threads<D: Tested>() {
        explore(2, || {
            let (mut consumers, mut keys) = (Select::with(Park), Vec::new());
            let pushers = [0, 1].map(|item| {
                let (mut producer, consumer) = queue_from::<usize, D, _>(0, 1, Park);
                keys.push(consumers.add(consumer));
                thread::spawn(move || {
                    producer.try_push(item).unwrap();
                    producer
                })
            });
            for _ in 0..2 {
                let ready = consumers.wait().unwrap().index();
                assert_eq!(consumers[keys[ready]].try_pop(), Ok(ready));
            }
            for pusher in pushers {
                drop(pusher.join().unwrap());
            }
        });
    }

    /// An item whose push has returned is there, though its batch or its block is not full.
    pub(super) fn what_was_pushed_is_never_held_back<D: Tested>() {
        late_publication(queue::<usize, D>);
    }

    pub(super) fn what_was_pushed_behind_popped_blocks_is_never_held_back<D: Tested>() {
        late_publication(|_| after_blocks::<D, _>(Spin));
    }

    fn late_publication<D: Tested>(make: fn(usize) -> Ends<usize, D, Spin>) {
        explore_without_barrier(3, move || {
            let (producer, mut consumer) = make(4);
            let told = Arc::new([AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false)]);
            let tell = told.clone();
            let pusher = spawn_with(producer, move |producer| {
                for (item, told) in tell.iter().enumerate() {
                    producer.try_push(item).unwrap();
                    told.store(true, Release);
                }
            });
            let mut popped = 0;
            for (item, told) in told.iter().enumerate() {
                let there = told.load(Acquire);
                if popped == item {
                    match consumer.try_pop() {
                        Ok(got) => {
                            assert_eq!(got, item);
                            popped += 1;
                        }
                        Err(TryPopError::Empty) => assert!(!there, "the push of {item} had returned"),
                        Err(refusal) => panic!("{refusal}"),
                    }
                }
            }
            let _producer = pusher.join().unwrap();
            for item in popped..3 {
                assert_eq!(consumer.try_pop(), Ok(item));
            }
            assert_eq!(consumer.try_pop(), Err(TryPopError::Empty));
        });
    }

    /// A slot whose pop has returned is free.
    pub(super) fn what_was_popped_is_free<D: Tested>() {
        explore_without_barrier(3, || {
            let (mut producer, consumer) = queue::<usize, D>(2);
            producer.try_push(0).unwrap();
            producer.try_push(1).unwrap();
            let told = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
            let tell = told.clone();
            let popper = spawn_with(consumer, move |consumer| {
                for (item, told) in tell.iter().enumerate() {
                    assert_eq!(consumer.try_pop(), Ok(item));
                    told.store(true, Release);
                }
            });
            for (item, told) in told.iter().enumerate() {
                let free = told.load(Acquire);
                match producer.try_push(item + 2) {
                    Ok(()) => {}
                    Err(TryPushError::Full(_)) => assert!(!free, "the pop of {item} had returned"),
                    Err(refusal) => panic!("{refusal}"),
                }
            }
            drop(popper.join().unwrap());
        });
    }
}

/// Lanes with as few blocks to spare as there can be.
mod tight {
    use super::*;

    /// Its consumer tells of free slots once in four blocks. 64 blocks of two items are for 127, 63 for 125.
    #[test]
    fn slots_are_left_before_they_are_written_again() {
        slots_are_left::<127>(|| queue::<usize, Lane>(127));
        slots_are_left::<125>(|| compact(0, 125));
    }

    fn slots_are_left<const CAPACITY: usize>(ends: impl Fn() -> Ends<usize, Lane, Spin> + Send + Sync + 'static) {
        explore_without_barrier(2, move || {
            let (mut producer, mut consumer) = ends();
            assert_eq!(
                producer.try_push_slice(&core::array::from_fn::<_, CAPACITY, _>(|item| item)).unwrap_or(0),
                CAPACITY
            );
            for item in 0..7 {
                assert_eq!(consumer.try_pop(), Ok(item));
            }
            let popper = spawn_with(consumer, move |consumer| {
                for item in 7..10 {
                    assert_eq!(consumer.try_pop(), Ok(item));
                }
            });
            let pushed = (CAPACITY..CAPACITY + 11).take_while(|&item| producer.try_push(item).is_ok()).count();
            assert!(pushed <= 10, "{pushed} of 10 slots");
            let (_, mut consumer) = popper.join().unwrap();
            for item in 10..CAPACITY + pushed {
                assert_eq!(consumer.try_pop(), Ok(item));
            }
            assert_eq!(consumer.try_pop(), Err(TryPopError::Empty));
        });
    }
}

/// Rings of three blocks, which is no power of two: each lap begins at another multiple, and the last one where numbers
/// wrap around.
mod threes {
    use super::*;

    fn items_go_round(start: usize) {
        explore_without_barrier(3, move || {
            let (mut producer, mut consumer) = compact::<Item>(start, 3);
            for id in (10..18).chain(0..2) {
                assert!(producer.try_push(Item::new(id)).is_ok());
                assert_eq!(consumer.try_pop().unwrap().read(), id);
            }
            let pusher = spawn_with(producer, move |producer| (2..6).for_each(|id| push(producer, Item::new(id))));
            for id in 2..5 {
                assert_eq!(pop(&mut consumer).unwrap().read(), id);
            }
            // One is left inside, two laps of six behind the first.
            drop(pusher.join().unwrap());
        });
    }

    #[test]
    fn items_go_round_twice() {
        items_go_round(0);
    }

    #[test]
    fn items_go_round_where_numbers_wrap_around() {
        items_go_round(usize::MAX - 1);
    }

    #[test]
    fn a_length_and_an_end_are_found_across_the_end_of_the_ring() {
        explore(3, || {
            let (mut producer, mut consumer) = compact::<usize>(1, 3);
            assert_eq!(producer.try_push_slice(&[0; 3]).unwrap_or(0), 3);
            assert_eq!(consumer.try_pop_batch(&mut Vec::new(), 3).unwrap_or(0), 3);
            let pusher = thread::spawn(move || (1..4).take_while(|&item| producer.try_push(item).is_ok()).count());
            let len = consumer.len();
            consumer.close();
            let rest = core::iter::from_fn(|| pop(&mut consumer)).collect::<Vec<_>>();
            let pushed = pusher.join().unwrap();
            assert!(len <= pushed);
            assert_eq!(rest, (1..=pushed).collect::<Vec<_>>());
        });
    }
}

/// A lane large enough that its consumer tells of free slots every four blocks, and so may take two blocks at once.
mod runs {
    use super::*;

    /// Blocks of two items in a ring of 64. From block 61 on a run of two is taken, and the next one ends with the
    /// ring.
    #[test]
    fn blocks_are_taken_two_at_a_time_across_the_end_of_the_ring() {
        across_the_end(|| queue_from::<Item, Lane, _>(61, 64, Spin));
        // 61 blocks.
        across_the_end(|| compact(58, 121));
    }

    fn across_the_end(ends: impl Fn() -> Ends<Item, Lane, Spin> + Send + Sync + 'static) {
        explore_without_barrier(2, move || {
            let (mut producer, mut consumer) = ends();
            for id in 0..3 {
                assert!(producer.try_push(Item::new(id)).is_ok());
            }
            let pusher = spawn_with(producer, move |producer| (3..8).for_each(|id| push(producer, Item::new(id))));
            for id in 0..8 {
                assert_eq!(pop(&mut consumer).unwrap().read(), id);
            }
            drop(pusher.join().unwrap());
        });
    }

    /// All blocks but one are full. The producer goes on through that one into the block that the consumer was the
    /// first to leave, within a run of two.
    #[test]
    fn blocks_of_a_run_are_used_again() {
        explore_without_barrier(2, || {
            let (mut producer, mut consumer) = queue::<usize, Lane>(126);
            assert_eq!(producer.try_push_slice(&[9; 126]).unwrap_or(0), 126);
            let pusher = spawn_with(producer, move |producer| (0..4).for_each(|item| push(producer, item)));
            for _ in 0..9 {
                assert_eq!(pop(&mut consumer), Some(9));
            }
            let _producer = pusher.join().unwrap();
            for _ in 9..126 {
                assert_eq!(pop(&mut consumer), Some(9));
            }
            for item in 0..4 {
                assert_eq!(pop(&mut consumer), Some(item));
            }
        });
    }
}

/// An unbounded queue whose segments hold two items.
mod segments {
    use super::*;
    use corelane::spsc::linked::{self, Tuning};

    /// Blocks of two items, a block a segment. The producer and the consumer stand at the end of the first segment if
    /// asked.
    fn queue<T: Send, W: Strategy>(start: usize, cached: usize, wait: W) -> Ends<T, Linked, W> {
        let tuning = Tuning::new().segment(1).cached(cached);
        linked::channel_with(Options::new().tuning(tuning).wait(wait).start_at(start)).unwrap()
    }

    /// Items through several segments, the first ones from the start, later ones used again or fresh as it comes.
    fn change(preemptions: usize, start: usize, cached: usize, items: usize) {
        explore_without_barrier(preemptions, move || {
            let (mut producer, mut consumer) = queue::<Item, _>(start, cached, Spin);
            let pusher = thread::spawn(move || {
                for id in 0..items {
                    assert!(producer.try_push(Item::new(id)).is_ok());
                }
            });
            for id in 0..items {
                assert_eq!(pop(&mut consumer).unwrap().read(), id);
            }
            pusher.join().unwrap();
        });
    }

    #[test]
    fn a_segment_changes_under_the_consumer() {
        change(3, 0, 2, 3);
    }

    #[test]
    fn a_segment_is_used_again() {
        change(2, usize::MAX, 1, 6);
    }

    #[test]
    fn the_oldest_segment_is_used_first() {
        change(1, 0, 2, 8);
    }

    /// The consumer lets go of a segment at the very moment the producer looks for one.
    #[test]
    fn the_oldest_segment_is_used_as_soon_as_it_was_left() {
        explore_without_barrier(3, || {
            let (mut producer, mut consumer) = queue::<Item, _>(0, 1, Spin);
            for id in 0..4 {
                assert!(producer.try_push(Item::new(id)).is_ok());
            }
            let pusher = spawn_with(producer, move |producer| assert!(producer.try_push(Item::new(4)).is_ok()));
            for id in 0..4 {
                assert_eq!(pop(&mut consumer).unwrap().read(), id);
            }
            drop(pusher.join().unwrap());
        });
    }

    /// In a segment fresh from the allocator the producer writes headers ahead of the consumer, and only as far as that
    /// looks.
    #[test]
    fn headers_of_a_fresh_segment_are_written_ahead() {
        explore_without_barrier(2, || {
            let tuning = Tuning::new().segment(6).cached(1);
            let (mut producer, mut consumer) =
                linked::channel_with::<usize, _, spsc::NoStats>(Options::new().tuning(tuning).wait(Spin)).unwrap();
            // Through the first segment and the spare one, into one that was not there before.
            assert_eq!(producer.try_push_slice(&[9; 13]).unwrap_or(0), 13);
            assert_eq!(consumer.try_pop_batch(&mut Vec::new(), 12).unwrap_or(0), 12);
            let pusher = spawn_with(producer, move |producer| {
                for item in 0..4 {
                    push(producer, item);
                }
            });
            assert_eq!(consumer.try_pop(), Ok(9));
            let _ = consumer.len();
            for item in 0..4 {
                assert_eq!(pop(&mut consumer), Some(item));
            }
            drop(pusher.join().unwrap());
        });
    }

    /// The consumer takes both blocks of a segment at once, and the producer uses it again, or a fresh one.
    #[test]
    fn blocks_are_taken_two_at_a_time_and_used_again() {
        explore_without_barrier(2, || {
            let tuning = Tuning::new().segment(4).cached(1);
            let (mut producer, mut consumer) =
                linked::channel_with::<usize, _, spsc::NoStats>(Options::new().tuning(tuning).wait(Spin)).unwrap();
            // Both segments but for the last item.
            assert_eq!(producer.try_push_batch(&mut (0..7).collect()).unwrap_or(0), 7);
            let pusher = spawn_with(producer, move |producer| (7..13).for_each(|item| push(producer, item)));
            for item in 0..13 {
                assert_eq!(pop(&mut consumer), Some(item));
            }
            drop(pusher.join().unwrap());
        });
    }

    /// What is counted and sealed is looked for in the producer's segment, while that changes.
    #[test]
    fn lengths_are_bounds_across_segments() {
        explore_without_barrier(2, || {
            let (mut producer, mut consumer) = queue::<usize, _>(0, 1, Spin);
            assert_eq!(producer.try_push_slice(&[0, 1]).unwrap_or(0), 2);
            let pusher = spawn_with(producer, move |producer| {
                for item in 2..5 {
                    producer.try_push(item).unwrap();
                }
            });
            let mut next = 0;
            for _ in 0..2 {
                for _ in 0..consumer.len() {
                    assert_eq!(consumer.try_pop(), Ok(next));
                    next += 1;
                }
            }
            let (_, producer) = pusher.join().unwrap();
            assert_eq!(consumer.len(), 5 - next);
            assert!(producer.len() >= 5 - next);
        });
    }

    /// The consumer frees the segment that it leaves, and then looks for the producer: not in that one.
    #[test]
    fn nobody_looks_into_a_segment_that_was_freed() {
        explore_without_barrier(2, || {
            let (mut producer, mut consumer) = queue::<usize, _>(0, 1, Spin);
            assert_eq!(producer.try_push_slice(&[0, 1, 2, 3]).unwrap_or(0), 4);
            let pusher = spawn_with(producer, move |producer| producer.try_push(4).unwrap());
            for item in 0..4 {
                assert_eq!(consumer.try_pop(), Ok(item));
            }
            let popped = usize::from(consumer.try_pop().is_ok());
            assert!(popped + consumer.len() <= 1);
            drop(pusher.join().unwrap());
        });
    }

    #[test]
    fn consumer_closes_while_a_segment_changes() {
        explore(3, || {
            let (mut producer, mut consumer) = queue::<Item, _>(0, 1, Spin);
            assert!(producer.try_push(Item::new(0)).is_ok());
            let pusher =
                thread::spawn(move || (1..4).take_while(|&id| producer.try_push(Item::new(id)).is_ok()).count());
            consumer.close();
            let drained = drain(&mut consumer, 0);
            assert_eq!(consumer.try_pop().err(), Some(TryPopError::Closed));
            assert_eq!(pusher.join().unwrap() + 1, drained);
        });
    }

    /// The queue is dropped with items in the middle of one segment and at the start of another.
    #[test]
    fn both_ends_go_in_the_middle_of_a_segment() {
        explore(3, || {
            let (mut producer, mut consumer) = queue::<Item, _>(0, 1, Spin);
            assert!(producer.try_push(Item::new(0)).is_ok());
            let pusher = thread::spawn(move || {
                for id in 1..4 {
                    let _ = producer.try_push(Item::new(id));
                }
            });
            assert!(consumer.try_pop().is_ok());
            let _ = consumer.try_pop();
            drop(consumer);
            pusher.join().unwrap();
        });
    }

    #[test]
    fn a_push_into_a_new_segment_wakes_the_parked_consumer() {
        explore(3, || {
            let (mut producer, mut consumer) = queue::<usize, _>(0, 1, Park);
            producer.try_push(0).unwrap();
            producer.try_push(1).unwrap();
            let pusher = spawn_with(producer, move |producer| producer.try_push(2).unwrap());
            for item in 0..3 {
                assert_eq!(consumer.pop(), Ok(item));
            }
            drop(pusher.join().unwrap());
        });
    }

    /// As in the other designs: single items behind whole blocks, here across segments.
    #[test]
    fn traffic_changes_from_blocks_to_single_items_across_segments() {
        explore_without_barrier(2, || {
            let (mut producer, mut consumer) = queue::<usize, _>(0, 1, Spin);
            assert_eq!(producer.try_push_slice(&[0; 4]).unwrap_or(0), 4);
            assert_eq!(consumer.try_pop_batch(&mut Vec::new(), 4).unwrap_or(0), 4);
            let pusher = spawn_with(producer, move |producer| (0..5).for_each(|item| push(producer, item)));
            for item in 0..5 {
                assert_eq!(pop(&mut consumer), Some(item));
            }
            drop(pusher.join().unwrap());
        });
    }
}

/// Messages of bytes. A segment of 40 bytes holds two messages of up to 8 bytes, and the header behind them.
mod streams {
    use super::*;
    use corelane::spsc::stream::{self, Consumer, Producer, PushError, Tuning};

    fn queue<W: Strategy>(start: usize, limit: Option<usize>, wait: W) -> (Producer<W>, Consumer<W>) {
        let tuning = Tuning::new().segment(40).cached(1);
        let tuning = limit.map_or(tuning, |limit| tuning.limit(limit));
        stream::channel_with(Options::new().tuning(tuning).wait(wait).start_at(start)).unwrap()
    }

    fn push<W>(producer: &mut Producer<W>, message: &[u8]) {
        loop {
            match producer.try_push(message) {
                Ok(()) => return,
                Err(PushError::Full) => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn pop<W>(consumer: &mut Consumer<W>) -> Option<Vec<u8>> {
        loop {
            match consumer.try_pop().map(<[u8]>::to_vec) {
                Ok(message) => return Some(message),
                Err(TryPopError::Empty) => thread::yield_now(),
                Err(_) => return None,
            }
        }
    }

    /// Messages of these lengths, each full of its number.
    fn one_by_one(preemptions: usize, start: usize, limit: Option<usize>, lens: &'static [usize]) {
        explore_without_barrier(preemptions, move || {
            let (producer, mut consumer) = queue(start, limit, Spin);
            let pusher = spawn_with(producer, move |producer| {
                for (number, &len) in lens.iter().enumerate() {
                    push(producer, &vec![number as u8; len]);
                }
            });
            for (number, &len) in lens.iter().enumerate() {
                assert_eq!(pop(&mut consumer), Some(vec![number as u8; len]));
            }
            drop(pusher.join().unwrap());
        });
    }

    #[test]
    fn messages_are_handed_over_with_their_bytes() {
        one_by_one(3, 0, None, &[8, 0]);
    }

    #[test]
    fn a_segment_changes_under_the_consumer() {
        one_by_one(3, usize::MAX - 3, None, &[8, 3, 8]);
    }

    #[test]
    fn a_segment_is_used_again() {
        one_by_one(2, 0, None, &[8, 8, 8, 8, 8, 8]);
    }

    #[test]
    fn a_large_message_has_a_segment_of_its_own() {
        one_by_one(2, 0, None, &[5, 30, 5, 5]);
    }

    #[test]
    fn room_within_a_limit_comes_back() {
        one_by_one(1, usize::MAX - 3, Some(32), &[8, 16, 8]);
    }

    /// A producer that finds room sees what was done before the pop that made it.
    #[test]
    fn room_within_a_limit_brings_news() {
        explore_without_barrier(3, || {
            let (mut producer, consumer) = queue(0, Some(16), Spin);
            producer.try_push(&[0]).unwrap();
            let done = Arc::new(AtomicBool::new(false));
            let seen = done.clone();
            let popper = spawn_with(consumer, move |consumer| {
                done.store(true, Relaxed);
                assert_eq!(consumer.try_pop(), Ok(&[0][..]));
                // Empty, or what was pushed as soon as there was room.
                let _ = consumer.try_pop();
            });
            push(&mut producer, &[1]);
            assert!(seen.load(Relaxed));
            drop(popper.join().unwrap());
        });
    }

    #[test]
    fn a_batch_is_seen_whole_or_in_two_segments() {
        explore_without_barrier(3, || {
            let (producer, mut consumer) = queue(0, None, Spin);
            let pusher = spawn_with(producer, move |producer| {
                assert_eq!(producer.try_push_batch(&["one", "two", "three"]), Ok(3))
            });
            assert_eq!(pop(&mut consumer).unwrap(), b"one");
            assert_eq!(consumer.try_pop(), Ok(&b"two"[..]), "it came with the first");
            assert_eq!(pop(&mut consumer).unwrap(), b"three");
            drop(pusher.join().unwrap());
        });
    }

    #[test]
    fn messages_are_written_and_read_in_place() {
        explore_without_barrier(3, || {
            let (producer, mut consumer) = queue(0, None, Spin);
            let pusher = spawn_with(producer, move |producer| {
                drop(producer.try_reserve(20).unwrap());
                for word in ["a", "b"] {
                    let mut reserved = producer.try_reserve(8).unwrap();
                    reserved.append(word.as_bytes());
                    reserved.commit_written().unwrap();
                }
            });
            let mut read = Vec::new();
            while read.len() < 2 {
                read.extend(consumer.try_pop_batch(2).into_iter().flatten().map(<[u8]>::to_vec));
                thread::yield_now();
            }
            assert_eq!(read, [b"a", b"b"]);
            drop(pusher.join().unwrap());
        });
    }

    /// What is counted and sealed is looked for in the producer's segment, while that changes.
    #[test]
    fn bytes_are_a_lower_bound_across_segments() {
        explore_without_barrier(2, || {
            let (mut producer, mut consumer) = queue(0, None, Spin);
            producer.try_push(&[0]).unwrap();
            let pusher =
                spawn_with(producer, move |producer| (1..4).for_each(|number| producer.try_push(&[number]).unwrap()));
            let mut next = 0;
            for _ in 0..2 {
                for _ in 0..consumer.bytes() / 16 {
                    assert_eq!(consumer.try_pop(), Ok(&[next][..]));
                    next += 1;
                }
            }
            let (_, producer) = pusher.join().unwrap();
            assert_eq!(consumer.bytes(), 16 * (4 - usize::from(next)));
            assert!(producer.bytes() >= consumer.bytes());
        });
    }

    #[test]
    fn what_was_pushed_is_never_held_back() {
        explore_without_barrier(3, || {
            let (producer, mut consumer) = queue(0, None, Spin);
            let told = Arc::new([AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false)]);
            let tell = told.clone();
            let pusher = spawn_with(producer, move |producer| {
                for told in tell.iter() {
                    producer.try_push(b"message").unwrap();
                    told.store(true, Release);
                }
            });
            let mut popped = 0;
            for (number, told) in told.iter().enumerate() {
                let there = told.load(Acquire);
                if popped == number {
                    match consumer.try_pop() {
                        Ok(_) => popped += 1,
                        Err(error) => assert!(error == TryPopError::Empty && !there, "push {number} had returned"),
                    }
                }
            }
            drop(pusher.join().unwrap());
        });
    }

    /// Each message is either refused or drained.
    fn close(push: fn(&mut Producer<Spin>) -> usize) {
        for barrier in [Barrier::Fences, Barrier::ReadModifyWrite] {
            explore_with(barrier, 3, move || {
                let (mut producer, mut consumer) = queue(0, None, Spin);
                producer.try_push(&[0]).unwrap();
                let pusher = thread::spawn(move || {
                    let accepted = push(&mut producer);
                    (producer, accepted)
                });
                consumer.close();
                let mut drained = 0;
                while let Ok(message) = consumer.try_pop() {
                    assert_eq!(message, [drained]);
                    drained += 1;
                }
                let (_producer, accepted) = pusher.join().unwrap();
                assert_eq!(accepted + 1, usize::from(drained));
            });
        }
    }

    #[test]
    fn consumer_closes_while_messages_are_pushed() {
        close(|producer| (1..3).take_while(|&number| producer.try_push(&[number]).is_ok()).count());
    }

    #[test]
    fn consumer_closes_while_a_batch_is_pushed() {
        close(|producer| producer.try_push_batch(&[[1], [2]]).unwrap_or(0));
    }

    /// Where there is no membarrier the push may overlook the close: the consumer looks again.
    #[test]
    fn consumer_closes_beside_a_push_without_membarrier() {
        explore_with(Barrier::Absent, 3, || {
            let (mut producer, mut consumer) = queue(0, None, Spin);
            let pusher = thread::spawn(move || (producer.try_push(&[0]).is_ok(), producer));
            consumer.close();
            let popped = consumer.try_pop().is_ok();
            let (accepted, _producer) = pusher.join().unwrap();
            assert_eq!(accepted, popped);
        });
    }

    #[test]
    fn both_ends_go_at_once() {
        explore(3, || {
            let (mut producer, mut consumer) = queue(0, None, Spin);
            producer.try_push(&[0]).unwrap();
            producer.try_push(&[1]).unwrap();
            let pusher = thread::spawn(move || {
                let _ = producer.try_push(&[2]);
            });
            assert_eq!(consumer.try_pop(), Ok(&[0][..]));
            drop(consumer);
            pusher.join().unwrap();
        });
    }

    #[test]
    fn a_push_wakes_the_parked_consumer() {
        explore(3, || {
            let (mut producer, mut consumer) = queue(0, None, Park);
            producer.try_push(&[0]).unwrap();
            let pusher = spawn_with(producer, move |producer| {
                producer.try_push(&[1]).unwrap();
                producer.try_push(&[2]).unwrap();
            });
            for number in 0..3 {
                assert_eq!(consumer.pop(), Ok(&[number][..]));
            }
            drop(pusher.join().unwrap());
        });
    }

    #[test]
    fn producer_goes_while_the_consumer_parks() {
        explore(3, || {
            let (mut producer, mut consumer) = queue(0, None, Park);
            let pusher = thread::spawn(move || producer.try_push(&[7]).unwrap());
            assert_eq!(consumer.pop(), Ok(&[7][..]));
            assert!(consumer.pop().is_err());
            pusher.join().unwrap();
        });
    }

    /// A thread makes room meanwhile.
    fn full_within_a_limit() -> (Producer<Park>, thread::JoinHandle<((), Consumer<Park>)>) {
        let (mut producer, consumer) = queue(usize::MAX - 3, Some(32), Park);
        assert_eq!(producer.try_push_batch(&["a", "b"]), Ok(2));
        let popper = spawn_with(consumer, move |consumer| {
            assert_eq!(consumer.try_pop(), Ok(&b"a"[..]));
            assert_eq!(consumer.try_pop(), Ok(&b"b"[..]));
            // Empty, or what was pushed as soon as there was room.
            let _ = consumer.try_pop();
        });
        (producer, popper)
    }

    #[test]
    fn a_pop_wakes_the_producer_that_waits_within_a_limit() {
        explore(3, || {
            let (mut producer, popper) = full_within_a_limit();
            producer.push(b"0123456789abcdef").unwrap();
            drop(popper.join().unwrap());
        });
    }

    #[test]
    fn a_consumer_moves_between_two_waits() {
        explore(3, || {
            let (producer, mut consumer) = queue(0, None, Park);
            let pusher = spawn_with(producer, move |producer| {
                producer.try_push(&[1]).unwrap();
                producer.try_push(&[2]).unwrap();
            });
            assert_eq!(consumer.pop(), Ok(&[1][..]));
            thread::spawn(move || assert_eq!(consumer.pop(), Ok(&[2][..]))).join().unwrap();
            drop(pusher.join().unwrap());
        });
    }

    #[test]
    fn a_producer_moves_between_two_waits() {
        fn model() {
            let (mut producer, popper) = full_within_a_limit();
            producer.push(b"c").unwrap();
            thread::spawn(move || producer.push(b"d").unwrap()).join().unwrap();
            drop(popper.join().unwrap());
        }
        explore_with(Barrier::Fences, 3, model);
        explore_with(Barrier::ReadModifyWrite, 2, model);
    }

    #[test]
    fn consumer_goes_while_the_producer_parks() {
        explore(3, || {
            let (mut producer, consumer) = queue(0, Some(16), Park);
            producer.try_push(&[1]).unwrap();
            let popper = thread::spawn(move || drop(consumer));
            assert_eq!(producer.push(&[2]), Err(PushError::Closed));
            popper.join().unwrap();
        });
    }
}

/// One test for every model and design.
macro_rules! models {
    ($name:ident, $design:ident, [bounded $($flags:tt)*]) => {
        mod $name {
            use super::*;

            models! { @of_all $design }
            models! { @bounded $design }
        }
    };
    ($name:ident, $design:ident, [unbounded $($flags:tt)*]) => {
        mod $name {
            use super::*;

            models! { @of_all $design }
        }
    };
    (@of_all $design:ident) => {
        models! { $design: [
            items_are_handed_over_with_their_memory,
            indices_wrap_around,
            batches_are_handed_over,
            items_of_a_batch_are_handed_over_with_their_memory,
            traffic_changes_from_blocks_to_single_items,
            two_queues_in_a_ring_do_not_hang,
            items_are_written_and_read_in_place,
            an_open_guard_keeps_nobody_out,
            consumer_closes_while_items_are_pushed,
            consumer_closes_while_items_are_pushed_behind_popped_blocks,
            consumer_closes_in_the_middle_of_a_block,
            consumer_closes_while_a_batch_is_pushed,
            consumer_closes_while_a_vector_is_pushed,
            consumer_goes_while_a_vector_is_pushed,
            consumer_closes_while_an_item_is_written_in_place,
            both_ends_go_at_once,
            consumer_goes_while_items_are_pushed,
            consumer_ends_beside_a_push_without_membarrier,
            consumer_goes_beside_a_push_that_is_stopped,
            producer_goes_while_items_are_popped,
            producer_goes_while_the_consumer_parks,
            a_push_wakes_the_parked_consumer,
            a_consumer_moves_between_two_waits,
            a_push_behind_popped_blocks_wakes_the_parked_consumer,
            one_sleep_serves_two_queues,
            one_sleep_serves_two_threads,
            what_was_pushed_is_never_held_back,
            what_was_pushed_behind_popped_blocks_is_never_held_back,
        ] }
    };
    // Those that fill their queue.
    (@bounded $design:ident) => {
        models! { $design: [
            a_queue_of_one_wraps,
            a_queue_of_two_wraps,
            lengths_are_bounds,
            closed_is_final,
            consumer_goes_while_the_producer_parks,
            consumer_closes_while_the_producer_parks,
            a_pop_wakes_the_parked_producer,
            a_producer_moves_between_two_waits,
            both_ends_park_in_turn,
            a_late_release_wakes_the_parked_producer,
            two_free_slots_wake_the_producer_that_waits_for_them,
            an_empty_queue_wakes_the_producer_that_waits_for_all_of_it,
            what_was_popped_is_free,
        ] }
    };
    ($design:ident: [$($model:ident),+ $(,)?]) => {
        $(#[test]
        fn $model() {
            models::$model::<spsc::$design>();
        })+
    };
}

designs!(models);
