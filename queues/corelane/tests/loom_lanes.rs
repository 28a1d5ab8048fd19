//! The queue of lanes under every interleaving of small cases. Runs with
//! `cargo loom -p corelane --test loom_lanes`.
//!
//! A thread parks at once, and a turn is one item, so receivers change lanes with each. See `loom.rs` for what loom
//! cannot show.

#[path = "support/explore.rs"]
mod explore;

use corelane::Barrier;
use corelane::error::{Closed, TryPopError, TryPushError};
use corelane::mpmc::Options;
use corelane::mpmc::lanes::{self, Receiver, Sender};
use corelane::wait::{Next, Park, Select, Strategy, WaitState};
use explore::{Item, explore_with, quick, spawn_with};
use loom::thread;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Explores a model in which a thread parks: once with fences in the membarrier's place, and once with less, which
/// hides less, and takes ten times as long: with one preemption less.
fn explore(preemptions: usize, model: impl Fn() + Clone + Send + Sync + 'static) {
    explore_with(Barrier::Fences, preemptions, model.clone());
    explore_with(Barrier::ReadModifyWrite, preemptions - 1, model);
}

fn channel<T: Send>(capacity: usize) -> (Sender<T, Park>, Receiver<T, Park>) {
    lanes::channel_with(capacity, Options::new().wait(Park)).unwrap()
}

#[test]
fn items_are_handed_over_with_their_memory() {
    explore(2, || {
        let (mut tx, mut rx) = channel(1);
        let pusher = thread::spawn(move || (0..3).for_each(|id| tx.push(Item::new(id)).unwrap()));
        (0..3).for_each(|id| assert_eq!(rx.pop().unwrap().read(), id));
        pusher.join().unwrap();
    });
}

#[test]
fn two_senders_and_one_receiver() {
    explore(2, || {
        let (mut tx, mut rx) = channel(1);
        let mut other = tx.clone();
        let pusher = thread::spawn(move || other.push(Item::new(0)).unwrap());
        tx.push(Item::new(1)).unwrap();
        let mut popped = [(); 2].map(|()| rx.pop().unwrap().read());
        popped.sort_unstable();
        assert_eq!(popped, [0, 1]);
        pusher.join().unwrap();
    });
}

/// They are in the middle of the same lane; each gets one, and the order is the sender's.
#[test]
fn one_sender_and_two_receivers() {
    explore(2, || {
        let (mut tx, mut rx) = channel::<Item>(2);
        let mut other = rx.clone();
        let popper = thread::spawn(move || other.pop().unwrap().read());
        tx.push(Item::new(0)).unwrap();
        tx.push(Item::new(1)).unwrap();
        let mut popped = [rx.pop().unwrap().read(), popper.join().unwrap()];
        popped.sort_unstable();
        assert_eq!(popped, [0, 1]);
    });
}

/// Another receiver is in the middle of the lane, and leaves an item behind: it tells the one that sleeps.
#[test]
fn what_another_leaves_behind_is_told_of() {
    explore(3, || {
        let (mut tx, mut rx) = channel(2);
        tx.push_batch(&mut vec![1, 2]).unwrap();
        let mut other = rx.clone();
        let popper = thread::spawn(move || other.try_pop().ok());
        let mine = rx.pop().unwrap();
        let popped = popper.join().unwrap();
        assert!(matches!((mine, popped), (1, Some(2) | None) | (2, Some(1))));
    });
}

/// One push, and so one wake-up, for two.
#[test]
fn one_batch_wakes_two() {
    explore(quick(1, 2), || {
        let (mut tx, rx) = channel(2);
        let poppers = [rx.clone(), rx.clone()].map(|mut rx| thread::spawn(move || rx.pop().unwrap()));
        tx.push_batch(&mut vec![1, 2]).unwrap();
        let mut popped = poppers.map(|popper| popper.join().unwrap());
        popped.sort_unstable();
        assert_eq!(popped, [1, 2]);
    });
}

/// A waker that has taken the thread's flag down finds its place to sleep, though the handle waits in another thread by
/// then. (Receivers sleep in the list that `loom_mpmc.rs` has the same model of.)
#[test]
fn a_sender_moves_between_two_waits() {
    explore(quick(2, 3), || {
        let (mut tx, rx) = channel(1);
        tx.push(0).unwrap();
        let popper = spawn_with(rx, move |rx| assert_eq!([rx.pop(), rx.pop()], [Ok(0), Ok(1)]));
        tx.push(1).unwrap();
        thread::spawn(move || tx.push(2).unwrap()).join().unwrap();
        assert_eq!(popper.join().unwrap().1.try_pop(), Ok(2));
    });
}

/// Larger than the lane: the receiver is told before the sender waits for room.
#[test]
fn a_batch_is_handed_over() {
    explore(2, || {
        let (mut tx, mut rx) = channel(1);
        let pusher = thread::spawn(move || tx.push_batch(&mut vec![0, 1]).unwrap());
        let mut popped = Vec::new();
        while popped.len() < 2 {
            rx.pop_batch(&mut popped, 2).unwrap();
        }
        pusher.join().unwrap();
        assert_eq!(popped, [0, 1]);
    });
}

/// One of two that wait gives up at any moment: the other one gets the item if it does not.
#[test]
fn a_time_out_takes_no_wake_up_along() {
    explore(1, || {
        let (mut tx, mut rx) = channel(2);
        let mut other = rx.clone();
        let timed = thread::spawn(move || other.pop_timeout(Duration::ZERO).ok());
        let pusher = thread::spawn(move || {
            tx.push(1).unwrap();
            if timed.join().unwrap().is_some() {
                tx.push(2).unwrap();
            }
        });
        rx.pop().unwrap();
        pusher.join().unwrap();
    });
}

#[test]
fn a_close_against_a_parked_receiver() {
    explore(3, || {
        let (tx, mut rx) = channel::<usize>(1);
        let popper = thread::spawn(move || rx.pop());
        tx.close();
        assert_eq!(popper.join().unwrap(), Err(Closed(())));
    });
}

#[test]
fn the_end_wakes_all() {
    explore(1, || {
        let (tx, rx) = channel::<usize>(1);
        let poppers = [rx.clone(), rx].map(|mut rx| thread::spawn(move || rx.pop()));
        drop(tx);
        assert_eq!(poppers.map(|popper| popper.join().unwrap()), [Err(Closed(())); 2]);
    });
}

/// Once, when a receiver has found nothing and is about to park: another one closes the queue, and pops.
#[derive(Clone, Debug)]
struct Closes(Arc<Mutex<Option<Receiver<usize, Self>>>>);

impl Strategy for Closes {
    fn next(&self, _: &mut WaitState) -> Next {
        if let Some(mut rx) = self.0.lock().unwrap().take() {
            rx.close();
            thread::spawn(move || assert_eq!(rx.pop(), Err(Closed(()))));
        }
        Next::Park
    }
}

/// One is in the middle of a lane that is over, as it finds out. The other one looks at it just then, and finds the
/// other lane to be over. No sender goes, which would wake a receiver.
#[test]
fn two_receivers_learn_of_a_close() {
    let model = || {
        let closes = Closes(Arc::default());
        let (tx, mut rx) = lanes::channel_with(1, Options::new().wait(closes.clone())).unwrap();
        let other_tx = tx.clone();
        *closes.0.lock().unwrap() = Some(rx.clone());
        assert_eq!(rx.pop(), Err(Closed(())));
        drop((tx, other_tx));
    };
    explore_with(Barrier::Fences, 1, model);
    explore_with(Barrier::ReadModifyWrite, quick(0, 1), model);
}

/// A close that waits for publishers has looked at the lane before: a receiver that found it there gets the item
/// all the same, before that wait is over.
#[test]
fn a_close_keeps_no_wake_up_back() {
    explore(2, || {
        let (mut tx, mut rx) = channel(1);
        let closer = rx.clone();
        let popper = thread::spawn(move || assert_eq!(rx.pop(), Ok(1)));
        tx.push(1).unwrap();
        Barrier::meanwhile(move || popper.join().unwrap());
        closer.close();
    });
}

/// What was accepted is popped; what comes after the close has returned is refused.
#[test]
fn a_close_against_pushes() {
    explore(2, || {
        let (mut tx, mut rx) = channel(2);
        let pusher = thread::spawn(move || {
            let accepted = [0, 1].map(|id| tx.push(Item::new(id)).is_ok());
            assert!(accepted[0] || !accepted[1]);
            (tx, accepted.into_iter().filter(|&accepted| accepted).count())
        });
        rx.close();
        let mut popped = 0;
        while rx.pop().map(|item| assert_eq!(item.read(), popped)).is_ok() {
            popped += 1;
        }
        let (mut tx, accepted) = pusher.join().unwrap();
        assert_eq!(popped, accepted);
        assert_eq!(tx.try_push(Item::new(2)).map_err(|error| error.is_closed()), Err(true));
    });
}

/// With another receiver in the middle of the lane that is closed.
#[test]
fn a_close_against_a_pop() {
    explore(2, || {
        let (mut tx, mut rx) = channel(2);
        tx.push(1).unwrap();
        let popper = thread::spawn(move || (rx.try_pop(), rx));
        tx.close();
        assert_eq!(tx.try_push(2), Err(TryPushError::Closed(2)));
        let (popped, mut rx) = popper.join().unwrap();
        assert_eq!(popped.or_else(|_| rx.try_pop()), Ok(1));
        assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
    });
}

/// Where a queue says that it is closed, no push succeeds.
#[test]
fn closed_is_said_when_it_is_so() {
    explore(3, || {
        let (mut tx, rx) = channel(2);
        let other = rx.clone();
        let closer = thread::spawn(move || other.close());
        if rx.is_closed() {
            assert_eq!(tx.try_push(1), Err(TryPushError::Closed(1)));
        }
        closer.join().unwrap();
    });
}

/// The last sender goes while a receiver waits: it gets the item, and then the end.
#[test]
fn the_last_sender_goes() {
    explore(3, || {
        let (mut tx, rx) = channel(1);
        let receiver = thread::spawn(move || rx.into_iter().map(|item: Item| item.read()).collect::<Vec<_>>());
        tx.push(Item::new(0)).unwrap();
        drop(tx);
        assert_eq!(receiver.join().unwrap(), [0]);
    });
}

/// Neither is known to be the last. The end comes after both items.
#[test]
fn two_senders_go_at_once() {
    explore(1, || {
        let (mut tx, rx) = channel(1);
        let mut other = tx.clone();
        let sender = thread::spawn(move || other.push(1).unwrap());
        let receiver = thread::spawn(move || rx.into_iter().sum::<usize>());
        tx.push(2).unwrap();
        drop(tx);
        sender.join().unwrap();
        assert_eq!(receiver.join().unwrap(), 3);
    });
}

/// A lane that is made while the receiver looks, or sleeps, is found; its end comes before that of the queue.
#[test]
fn a_new_lane_is_found() {
    explore(2, || {
        let (tx, mut rx) = channel(1);
        let sender = thread::spawn(move || {
            let mut other = tx.clone();
            drop(tx);
            other.push(1).unwrap();
        });
        assert_eq!((rx.pop(), rx.pop()), (Ok(1), Err(Closed(()))));
        sender.join().unwrap();
    });
}

/// The last receiver goes while a sender waits: each item was popped, or comes back, or is dropped with it.
#[test]
fn the_last_receiver_goes() {
    explore(3, || {
        let (mut tx, mut rx) = channel(1);
        let sender = thread::spawn(move || ([0, 1].map(|id| tx.push(Item::new(id)).is_err()), tx));
        let popped = rx.try_pop().map(|item| item.read());
        drop(rx);
        // The sender stays, and nothing inside does.
        let (came_back, _tx) = sender.join().unwrap();
        assert!(came_back.is_sorted() && (came_back[1] || popped.is_ok()));
        Item::assert_each_dropped_once();
    });
}

/// Where there is no membarrier the push may overlook a close: the thread that closes looks again.
#[test]
fn an_end_beside_a_push_without_membarrier() {
    for closes in [true, false] {
        explore_with(Barrier::Absent, 3, move || {
            let (mut tx, mut rx) = channel::<Item>(1);
            let sender = thread::spawn(move || (tx.try_push(Item::new(0)).is_ok(), tx));
            let popped = closes.then(|| {
                rx.close();
                rx.try_pop().is_ok()
            });
            drop(rx);
            let (accepted, _tx) = sender.join().unwrap();
            assert_eq!(accepted, popped.unwrap_or(accepted));
            Item::assert_each_dropped_once();
        });
    }
}

/// Two threads close, each of which waits: what was accepted is there when either returns. (Each has seen the lane
/// before: else loom could go on showing it as it was.)
#[test]
fn two_closes_beside_a_push_without_membarrier() {
    explore_with(Barrier::Absent, 0, || {
        let (mut tx, mut rx) = channel::<Item>(2);
        tx.try_push(Item::new(0)).ok().unwrap();
        let (item, mut other) = (Item::new(1), rx.clone());
        let sender = thread::spawn(move || (tx.try_push(item).is_ok(), tx));
        let closer = thread::spawn(move || {
            let popped = usize::from(other.pop().is_ok());
            other.close();
            popped
        });
        rx.close();
        let popped = core::iter::from_fn(|| rx.pop().ok()).count();
        let popped = popped + closer.join().unwrap();
        let (accepted, _tx) = sender.join().unwrap();
        assert_eq!(popped, 1 + usize::from(accepted));
        drop(rx);
        Item::assert_each_dropped_once();
    });
}

/// A receiver that sleeps and a sender that waits for room, beside a close: both go on, and accepted items are popped.
#[test]
fn a_close_beside_two_waits_without_membarrier() {
    explore_with(Barrier::Absent, 0, || {
        let (mut tx, rx) = channel::<Item>(1);
        tx.try_push(Item::new(0)).ok().unwrap();
        let (item, closer) = (Item::new(1), rx.clone());
        let sender = thread::spawn(move || (tx.push(item).is_ok(), tx));
        let receiver = thread::spawn(move || rx.into_iter().map(|item| item.read()).collect::<Vec<_>>());
        closer.close();
        let (accepted, _tx) = sender.join().unwrap();
        assert!(receiver.join().unwrap().into_iter().eq(0..1 + usize::from(accepted)));
        Item::assert_each_dropped_once();
    });
}

/// No push is beside the end of a lane that is closed from the start: a clone of its sender waits for none.
#[test]
fn a_lane_of_a_closed_queue_waits_for_no_push() {
    explore_with(Barrier::Absent, 0, || {
        let (tx, rx) = channel::<Item>(1);
        rx.close();
        Barrier::meanwhile(|| panic!("it waits"));
        assert!(tx.clone().is_closed());
    });
}

/// A push that has returned is found, whatever another receiver is in the middle of.
#[test]
fn what_has_returned_counts() {
    explore(3, || {
        let (mut tx, mut rx) = channel(2);
        let mut other = rx.clone();
        let popper = thread::spawn(move || other.try_pop().is_ok());
        tx.push(1).unwrap();
        tx.push(2).unwrap();
        assert!(matches!(rx.try_pop(), Ok(_) | Err(TryPopError::Busy)));
        popper.join().unwrap();
    });
}

/// A select and a receiver wait for the one item; the select's thread takes nothing.
#[test]
fn a_select_passes_its_wake_up_on() {
    explore(1, || {
        let (mut tx, mut rx) = channel(1);
        let mut other = rx.clone();
        let selector = thread::spawn(move || {
            let mut select = Select::with(Park);
            select.add(&mut other);
            let _ready = select.wait();
        });
        let pusher = thread::spawn(move || {
            tx.push(1).unwrap();
            // The end of the wait, should the receiver have been quicker.
        });
        assert_eq!(rx.pop(), Ok(1));
        pusher.join().unwrap();
        selector.join().unwrap();
    });
}
