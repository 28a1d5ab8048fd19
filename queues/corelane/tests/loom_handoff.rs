//! The synchronous queues under every interleaving of small cases, each of them. Runs with
//! `cargo loom -p corelane --test loom_handoff`.
//!
//! Under loom a pool begins with two nodes, so nodes are used again in almost every model; no thread spins, so every
//! wait goes through the park; one dead node is enough for a sweep. There is no time: a time-out of zero is one that
//! may come at any moment after the request was registered. See `loom.rs` for what loom cannot show.

#[path = "support/explore.rs"]
mod explore;
#[path = "support/first.rs"]
mod first;

use corelane::Barrier;
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::{CancelToken, Exchanger, Fairness, SynchronousQueue, TransferQueue, WaitLimit};
use corelane::wait::Park;
use explore::{Item, explore_with};
use first::first;
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

/// Explores a model with so many preemptions: with the loads as they are, and with read-modify-writes in their place,
/// which see no old values but hide no load from loom.
fn explore(preemptions: [usize; 2], model: impl Fn() + Clone + Send + Sync + 'static) {
    explore_with(Barrier::Nothing, preemptions[0], model.clone());
    explore_with(Barrier::ReadModifyWrite, preemptions[1], model);
}

type Queue = SynchronousQueue<Item>;

/// A kind of synchronous queue.
#[derive(Clone, Copy)]
enum Mode {
    Fair,
    Unfair,
    /// Unfair, with elimination: a request that is disturbed goes to the arena.
    Eliminating,
}

fn queue(mode: Mode) -> Arc<Queue> {
    let queue = match mode {
        Mode::Fair => SynchronousQueue::new(Fairness::Fair),
        Mode::Unfair => SynchronousQueue::new(Fairness::Unfair),
        Mode::Eliminating => SynchronousQueue::with_elimination(),
    };
    Arc::new(queue)
}

/// Runs `f` with the queue in another thread.
fn spawn<R: 'static>(queue: &Arc<Queue>, f: impl FnOnce(&Queue) -> R + 'static) -> thread::JoinHandle<R> {
    let queue = queue.clone();
    thread::spawn(move || f(&queue))
}

/// Lends a queue to several threads, so that their tickets can go from one to another. `f` ends what it begins.
fn lend(queue: Arc<Queue>, f: impl FnOnce(&'static Queue)) {
    let queue = Arc::into_raw(queue);
    // SAFETY: it lives until it is an `Arc` again, and it is not borrowed then.
    f(unsafe { &*queue });
    // SAFETY: made by `into_raw`.
    drop(unsafe { Arc::from_raw(queue) });
}

mod models {
    use super::*;

    pub(super) fn items_are_handed_over_with_their_memory(mode: Mode) {
        explore([1, 3], move || {
            let queue = queue(mode);
            let putter = spawn(&queue, move |queue| {
                for id in 0..2 {
                    queue.put(Item::new(id)).unwrap();
                }
            });
            for id in 0..2 {
                assert_eq!(queue.take().unwrap().read(), id);
            }
            putter.join().unwrap();
        });
    }

    pub(super) fn two_takes_and_one_put(mode: Mode) {
        explore([0, 2], move || {
            let queue = queue(mode);
            let takers = [(); 2].map(|()| spawn(&queue, |queue| queue.take().map(|item| item.read())));
            queue.put(Item::new(0)).unwrap();
            queue.close();
            let mut taken = takers.map(|taker| taker.join().unwrap());
            taken.sort_by_key(Result::is_err);
            assert_eq!(taken, [Ok(0), Err(Closed(()))]);
        });
    }

    pub(super) fn two_puts_and_two_takes(mode: Mode) {
        explore([0, 2], move || {
            let queue = queue(mode);
            let putter = spawn(&queue, move |queue| queue.put(Item::new(0)).unwrap());
            let taker = spawn(&queue, |queue| queue.take().unwrap().read());
            let ticket = queue.reserve_put(Item::new(1));
            let taken = [queue.take().unwrap().read(), taker.join().unwrap()];
            ticket.wait().unwrap();
            putter.join().unwrap();
            assert!(taken == [0, 1] || taken == [1, 0]);
        });
    }

    /// A take that may be cancelled at any time, and a put that does not wait: either both or neither.
    pub(super) fn a_try_put_against_a_cancel(mode: Mode) {
        explore([3, 3], move || {
            let queue = queue(mode);
            let token = CancelToken::new();
            let cancel = token.clone();
            let taker =
                spawn(&queue, move |queue| queue.take_with(&WaitLimit::new().cancel(&token)).map(|item| item.read()));
            let canceller = thread::spawn(move || cancel.cancel());
            let put = queue.try_put(Item::new(0)).map_err(|error| matches!(error, TryPushError::Full(_)));
            canceller.join().unwrap();
            match taker.join().unwrap() {
                Ok(id) => assert_eq!((id, put), (0, Ok(()))),
                Err(error) => assert_eq!((error, put), (PopTimeoutError::Cancelled, Err(true))),
            }
        });
    }

    /// A put that waits and is told to stop while a take comes: either both or neither.
    pub(super) fn a_try_take_against_a_cancel(mode: Mode) {
        explore([3, 3], move || {
            let queue = queue(mode);
            let token = CancelToken::new();
            let cancel = token.clone();
            let item = Item::new(0);
            let putter = spawn(&queue, move |queue| {
                queue.put_with(item, &WaitLimit::new().cancel(&token)).map_err(|error| match error {
                    PushTimeoutError::Cancelled(item) => item.read(),
                    _ => panic!("{error:?}"),
                })
            });
            let canceller = thread::spawn(move || cancel.cancel());
            let taken = queue.try_take().map(|item| item.read());
            canceller.join().unwrap();
            match putter.join().unwrap() {
                Ok(()) => assert_eq!(taken, Ok(0)),
                Err(id) => assert_eq!((id, taken), (0, Err(TryPopError::Empty))),
            }
        });
    }

    /// Both sides may give up at any time: either both or neither.
    pub(super) fn a_match_against_a_time_out(mode: Mode) {
        explore([2, 3], move || {
            let queue = queue(mode);
            let putter = spawn(&queue, move |queue| match queue.put_timeout(Item::new(0), NOW) {
                Ok(()) => true,
                Err(PushTimeoutError::Timeout(item)) => item.read() != 0,
                Err(error) => panic!("{error}"),
            });
            let taken = queue.take_timeout(NOW).map(|item| item.read());
            match putter.join().unwrap() {
                true => assert_eq!(taken, Ok(0)),
                false => assert_eq!(taken, Err(PopTimeoutError::Timeout)),
            }
        });
    }

    pub(super) fn close_against_put(mode: Mode) {
        explore([3, 4], move || {
            let queue = queue(mode);
            let putter = spawn(&queue, move |queue| queue.put(Item::new(0)).map_err(|Closed(item)| item.read()));
            queue.close();
            assert_eq!(putter.join().unwrap(), Err(0));
            assert_eq!(queue.try_take().map(|item| item.read()), Err(TryPopError::Closed));
        });
    }

    /// Whichever thread comes first, none stays behind, and the item is in one place.
    pub(super) fn close_against_put_and_take(mode: Mode) {
        explore([0, 2], move || {
            let queue = queue(mode);
            let putter = spawn(&queue, move |queue| queue.put(Item::new(0)).is_ok());
            let taker = spawn(&queue, |queue| queue.take().is_ok());
            queue.close();
            assert_eq!(putter.join().unwrap(), taker.join().unwrap());
        });
    }

    /// One take waits; of two puts that do not wait, one is accepted. The loser does not miss the other take that
    /// waits.
    pub(super) fn two_try_puts_find_two_takes(mode: Mode) {
        explore([2, 4], move || {
            let queue = queue(mode);
            let mut first = queue.reserve_take();
            let mut second = queue.reserve_take();
            let other = spawn(&queue, move |queue| queue.try_put(Item::new(0)).is_ok());
            assert!(queue.try_put(Item::new(1)).is_ok());
            assert!(other.join().unwrap());
            let taken = [&mut first, &mut second].map(|ticket| ticket.try_followup().unwrap().unwrap().read());
            assert!(taken == [0, 1] || taken == [1, 0]);
        });
    }

    /// Requests give up in the middle, and are swept out, while others are matched at the front.
    pub(super) fn sweeps_against_matches(mode: Mode) {
        explore([1, 2], move || {
            let queue = queue(mode);
            let mut keep = queue.reserve_take();
            let middle = queue.reserve_take();
            let end = queue.reserve_take();
            let other = spawn(&queue, move |queue| {
                let one = queue.try_put(Item::new(0)).is_ok();
                let two = queue.try_put(Item::new(1)).is_ok();
                usize::from(one) + usize::from(two)
            });
            let given = [middle.abort(), end.abort()].into_iter().flatten().map(|item| item.read()).count();
            let accepted = other.join().unwrap();
            let kept = keep.try_followup().map(|item| item.unwrap().read());
            assert_eq!(accepted, given + usize::from(kept.is_some()));
            assert!(accepted >= 1, "a request waited all the time");
            if kept.is_none() {
                assert!(queue.try_put(Item::new(2)).is_ok(), "it waits still");
                assert_eq!(keep.try_followup().unwrap().unwrap().read(), 2);
            }
        });
    }

    /// Two requests behind one that waits give up; both threads sweep, and meet.
    pub(super) fn sweeps_meet(mode: Mode) {
        explore([1, 2], move || {
            let queue = queue(mode);
            let mut keep = queue.reserve_take();
            let other = spawn(&queue, |queue| queue.take_timeout(NOW).map(|item| item.read()));
            assert!(queue.take_timeout(NOW).is_err());
            assert_eq!(other.join().unwrap(), Err(PopTimeoutError::Timeout));
            assert!(queue.take_timeout(NOW).is_err());
            assert_eq!(queue.waiting_takes(), 1);
            queue.try_put(Item::new(0)).ok().unwrap();
            assert_eq!(keep.try_followup().unwrap().unwrap().read(), 0);
            assert_eq!(queue.waiting_takes(), 0);
        });
    }

    /// Two threads withdraw neighbours, and unlink them at the same time: the one behind both is still there.
    pub(super) fn neighbours_are_swept_out(mode: Mode) {
        explore_with(Barrier::ReadModifyWrite, 2, move || {
            let queue = queue(mode);
            lend(queue, |queue| {
                let mut tickets = [(); 4].map(|()| Some(queue.reserve_take()));
                // A sweep begins at the one that comes first.
                let (first, second) = if matches!(mode, Mode::Fair) { (1, 2) } else { (2, 1) };
                let other = tickets[first].take().unwrap();
                let other = thread::spawn(move || assert!(other.abort().is_none()));
                assert!(tickets[second].take().unwrap().abort().is_none());
                other.join().unwrap();
                for id in 0..2 {
                    assert!(queue.try_put(Item::new(id)).is_ok());
                }
                let taken = tickets.iter_mut().flatten().map(|ticket| ticket.try_followup().unwrap().unwrap().read());
                assert_eq!(taken.sum::<usize>(), 1);
            });
        });
    }

    /// A put looks at a node that is matched by another, and used again for a request that comes last: that one has to
    /// wait for its turn.
    pub(super) fn an_old_look_at_a_node_that_waits_again(mode: Mode) {
        explore_with(Barrier::ReadModifyWrite, 2, move || {
            let queue = queue(mode);
            lend(queue, |queue| {
                // The dual queue has the second node for itself now, and the first one is the first to be used again.
                assert!(queue.reserve_take().abort().is_none());
                let early = [(); 2].map(|()| queue.reserve_take());
                let mut next = queue.reserve_take();
                let items = [1, 2].map(Item::new);
                let other = thread::spawn(move || {
                    let accepted = items.map(|item| queue.try_put(item).is_ok());
                    drop(early);
                    (accepted, queue.reserve_take())
                });
                let accepted = queue.try_put(Item::new(0)).is_ok();
                let (others, mut late) = other.join().unwrap();
                if matches!(mode, Mode::Fair) {
                    assert!(accepted && others == [true; 2]);
                    assert!(late.try_followup().is_none(), "served before its turn");
                    assert!(next.try_followup().is_some());
                }
            });
        });
    }

    /// A put meets a request that gives up, and whose node is used again at once, for a request at the same place: that
    /// one stays.
    pub(super) fn a_node_comes_back_to_its_place(mode: Mode) {
        let preemptions = if matches!(mode, Mode::Fair) { 2 } else { 3 };
        explore_with(Barrier::ReadModifyWrite, preemptions, move || {
            let queue = queue(mode);
            let mut waits = 2;
            lend(queue, |queue| {
                let mut first = queue.reserve_take();
                let second = queue.reserve_take();
                let other =
                    thread::spawn(move || assert!(queue.try_put(Item::new(0)).is_ok(), "one waits all the time"));
                let given = second.abort().is_some();
                let mut again = queue.reserve_take();
                other.join().unwrap();
                waits -= usize::from(!given);
                assert!((1..=waits).all(|id| queue.try_put(Item::new(id)).is_ok()));
                assert!(first.try_followup().is_some() && again.try_followup().is_some());
            });
        });
    }

    /// Requests come, give up and come again, through two nodes.
    pub(super) fn nodes_are_used_again(mode: Mode) {
        explore([0, 2], move || {
            let queue = queue(mode);
            let putter = spawn(&queue, move |queue| {
                (0..2).filter(|&id| queue.put_timeout(Item::new(id), NOW).is_ok()).collect::<Vec<_>>()
            });
            let mut taken = Vec::new();
            taken.extend(queue.take_timeout(NOW).map(|item| item.read()));
            taken.extend(queue.try_take().map(|item| item.read()));
            taken.extend(queue.take_timeout(NOW).map(|item| item.read()));
            assert_eq!(putter.join().unwrap(), taken);
        });
    }

    /// Three threads give up and match through two nodes, one of which the dual queue needs for itself.
    pub(super) fn nodes_are_used_again_by_three(mode: Mode) {
        explore_with(Barrier::ReadModifyWrite, 1, move || {
            let queue = queue(mode);
            let putter = spawn(&queue, move |queue| queue.put_timeout(Item::new(0), NOW).is_ok());
            let taker = spawn(&queue, |queue| queue.take_timeout(NOW).is_ok());
            let mine = usize::from(queue.try_put(Item::new(1)).is_ok());
            let mut taken = usize::from(queue.take_timeout(NOW).is_ok());
            let put = mine + usize::from(putter.join().unwrap());
            taken += usize::from(taker.join().unwrap());
            assert_eq!(put, taken);
        });
    }

    /// A thread sleeps for two requests; a put comes to either, or the queue of one is closed. It wakes, and then
    /// sleeps for the other alone.
    pub(super) fn a_select_is_woken(mode: Mode) {
        explore([1, 2], move || {
            let (one, two) = (queue(mode), queue(mode));
            let item = Item::new(0);
            let mut tickets = [one.reserve_take(), two.reserve_take()];
            let putter = spawn(&two, move |queue| queue.try_put(item).is_ok());
            let closer = spawn(&one, |queue| queue.close());
            let ready = first(&mut tickets, &Park, None).unwrap();
            let outcome = tickets[ready].try_followup().unwrap().map(|item| item.read());
            assert_eq!(outcome, [Err(Closed(())), Ok(0)][ready]);
            let [zero, one] = tickets;
            let (spent, other) = if ready == 0 { (zero, one) } else { (one, zero) };
            drop(spent);
            let outcome = other.wait().map(|item| item.read());
            assert_eq!(outcome, [Ok(0), Err(Closed(()))][ready]);
            assert!(putter.join().unwrap());
            closer.join().unwrap();
        });
    }

    /// A select that gives up while a put comes; the ticket has the item, or is withdrawn. The node is used again.
    pub(super) fn a_select_gives_up(mode: Mode) {
        explore([2, 3], move || {
            let queue = queue(mode);
            let mut tickets = [queue.reserve_take()];
            let putter = spawn(&queue, move |queue| queue.try_put(Item::new(0)).is_ok());
            let decided = first(&mut tickets, &Park, Some(NOW)).is_some();
            let [ticket] = tickets;
            let taken = ticket.abort().map(|item| item.read());
            assert!(!decided || taken.is_some());
            let again = queue.take_timeout(NOW).map(|item| item.read());
            assert_eq!(putter.join().unwrap(), taken.is_some() || again.is_ok());
        });
    }

    /// A node's second life is another thread's: a putter that has decided its first one, and comes late to wake that
    /// one's owner, finds the place to sleep of a thread that it knows nothing of.
    pub(super) fn a_late_waker_finds_another_threads_select(mode: Mode) {
        explore([2, 3], move || {
            let queue = queue(mode);
            let putter = spawn(&queue, move |queue| (0..2).for_each(|id| assert!(queue.put(Item::new(id)).is_ok())));
            let take = |queue: &Queue| {
                let mut tickets = [queue.reserve_take()];
                assert_eq!(first(&mut tickets, &Park, None), Some(0));
                tickets[0].try_followup().unwrap().unwrap().read()
            };
            assert_eq!(take(&queue), 0);
            assert_eq!(spawn(&queue, take).join().unwrap(), 1);
            putter.join().unwrap();
        });
    }

    /// A ticket is decided by another thread while its owner asks.
    pub(super) fn a_ticket_is_followed_up(mode: Mode) {
        explore([3, 4], move || {
            let queue = queue(mode);
            let mut ticket = queue.reserve_put(Item::new(0));
            let taker = spawn(&queue, |queue| queue.try_take().map(|item| item.read()));
            let early = ticket.try_followup().is_some();
            assert_eq!(taker.join().unwrap(), Ok(0));
            assert!(early || matches!(ticket.try_followup(), Some(Ok(()))));
        });
    }
}

macro_rules! suite {
    ($($mode:ident: $kind:ident),+ => $models:tt) => {
        $(mod $mode {
            suite!(@ $kind, $models);
        })+
    };
    (@ $kind:ident, { $($model:ident)+ }) => {
        $(#[test]
        fn $model() {
            super::models::$model(super::Mode::$kind);
        })+
    };
}

suite! {
    fair: Fair, unfair: Unfair => {
        items_are_handed_over_with_their_memory
        two_takes_and_one_put
        two_puts_and_two_takes
        a_try_put_against_a_cancel
        a_try_take_against_a_cancel
        a_match_against_a_time_out
        close_against_put
        close_against_put_and_take
        two_try_puts_find_two_takes
        sweeps_against_matches
        sweeps_meet
        neighbours_are_swept_out
        an_old_look_at_a_node_that_waits_again
        a_node_comes_back_to_its_place
        nodes_are_used_again
        nodes_are_used_again_by_three
        a_ticket_is_followed_up
        a_select_is_woken
        a_select_gives_up
        a_late_waker_finds_another_threads_select
    }
}

suite! {
    eliminating: Eliminating => {
        items_are_handed_over_with_their_memory
        two_takes_and_one_put
        two_puts_and_two_takes
        a_try_take_against_a_cancel
        a_match_against_a_time_out
        close_against_put_and_take
        nodes_are_used_again
        nodes_are_used_again_by_three
    }
}

mod transfer {
    use super::*;

    fn queue() -> Arc<TransferQueue<Item>> {
        Arc::new(TransferQueue::new())
    }

    /// Each thread pushes before it takes, so each finds an item.
    #[test]
    fn no_try_take_misses_an_item() {
        explore([2, 3], || {
            let queue = queue();
            let (other, item) = (queue.clone(), Item::new(0));
            let thread = thread::spawn(move || {
                other.push(item).ok().unwrap();
                other.try_take().map(|item| item.read()).unwrap()
            });
            queue.push(Item::new(1)).ok().unwrap();
            let mine = queue.try_take().map(|item| item.read()).unwrap();
            assert_eq!(mine + thread.join().unwrap(), 1);
        });
    }

    /// A thread that sleeps on its way out of a match, while the dummy it knew comes back as the last node, does not
    /// move the tail back.
    #[test]
    fn a_late_match_leaves_the_tail_alone() {
        explore_with(Barrier::ReadModifyWrite, 2, || {
            let queue = queue();
            let (second, third, item) = (queue.clone(), queue.clone(), Item::new(1));
            queue.push(Item::new(0)).ok().unwrap();
            let second = thread::spawn(move || {
                second.push(item).ok().unwrap();
                usize::from(second.try_take().is_ok())
            });
            // This one may free the dummy.
            let third = thread::spawn(move || third.is_empty());
            let mine = usize::from(queue.try_take().is_ok());
            assert_eq!(mine + second.join().unwrap(), 2);
            third.join().unwrap();
            queue.push(Item::new(2)).ok().unwrap();
            assert_eq!(queue.try_take().map(|item| item.read()), Ok(2));
            assert!(queue.is_empty());
        });
    }

    /// Of an item that was left and one that is waited for, a close keeps the first and sends the second away, unless a
    /// take was faster.
    #[test]
    fn a_close_against_a_push_a_put_and_a_take() {
        explore_with(Barrier::ReadModifyWrite, 2, || {
            let queue = queue();
            let (other, item) = (queue.clone(), Item::new(0));
            let put = queue.reserve_put(Item::new(1));
            let thread = thread::spawn(move || {
                let taken = usize::from(other.try_take().is_ok());
                (other.push(item).is_ok(), taken)
            });
            queue.close();
            let (pushed, taken) = thread.join().unwrap();
            assert_eq!(usize::from(put.abort().is_none()), taken);
            assert_eq!(queue.take().map(|item| item.read()), if pushed { Ok(0) } else { Err(Closed(())) });
            assert!(queue.take().is_err());
        });
    }

    /// A close finds a put whose thread is about to sleep, and so changes the word that the close has looked at.
    #[test]
    fn a_close_sends_away_who_is_about_to_sleep() {
        explore([2, 3], || {
            let queue = queue();
            let (put, item) = (queue.clone(), Item::new(1));
            queue.push(Item::new(0)).ok().unwrap();
            let put = thread::spawn(move || assert_eq!(put.put(item).unwrap_err().0.read(), 1));
            queue.close();
            put.join().unwrap();
            assert_eq!(queue.take().map(|item| item.read()), Ok(0));
            assert!(queue.take().is_err());
        });
    }

    /// A close goes through the requests. The node it stands on leaves, and comes back as that of a push which is about
    /// to learn that the queue is closed: what is behind it now is not the end.
    #[test]
    fn a_close_is_not_misled_by_a_node_that_comes_back() {
        explore_with(Barrier::ReadModifyWrite, 2, || {
            let queue = queue();
            let (push, take, close, item) = (queue.clone(), queue.clone(), queue.clone(), Item::new(2));
            queue.push(Item::new(0)).ok().unwrap();
            let mut put = queue.reserve_put(Item::new(1));
            let push = thread::spawn(move || push.push(item).is_ok());
            let take = thread::spawn(move || assert_eq!(take.try_take().map(|item| item.read()), Ok(0)));
            let close = thread::spawn(move || close.close());
            take.join().unwrap();
            close.join().unwrap();
            assert!(put.try_followup().expect("it was sent away").is_err());
            assert_eq!(queue.try_take().is_ok(), push.join().unwrap());
        });
    }

    /// An item that is left behind is freed by its taker, beside one that is waited for.
    #[test]
    fn items_are_left_and_waited_for() {
        explore([1, 2], || {
            let queue = queue();
            let other = queue.clone();
            let producer = thread::spawn(move || {
                other.push(Item::new(0)).ok().unwrap();
                other.put(Item::new(1)).ok().unwrap();
                other.push(Item::new(2)).ok().unwrap();
            });
            for id in 0..2 {
                assert_eq!(queue.take().unwrap().read(), id);
            }
            producer.join().unwrap();
        });
    }
}

/// Two places under loom; the second one is used after one collision, and then preferred.
mod exchanger {
    use super::*;

    fn exchanger() -> Arc<Exchanger<Item>> {
        Arc::new(Exchanger::new())
    }

    /// Exchanges in another thread: the partner's item, or why not, and that the own one is back.
    fn swap(
        exchanger: &Arc<Exchanger<Item>>,
        item: Item,
        timeout: Option<Duration>,
        token: Option<CancelToken>,
    ) -> thread::JoinHandle<Result<usize, &'static str>> {
        let exchanger = exchanger.clone();
        thread::spawn(move || outcome(&exchanger, item, timeout, token.as_ref()))
    }

    fn outcome(
        exchanger: &Exchanger<Item>,
        item: Item,
        timeout: Option<Duration>,
        token: Option<&CancelToken>,
    ) -> Result<usize, &'static str> {
        let mine = item.read();
        let mut limit = WaitLimit::new();
        if let Some(timeout) = timeout {
            limit = limit.timeout(timeout);
        }
        if let Some(token) = token {
            limit = limit.cancel(token);
        }
        let why = match exchanger.exchange_with(item, &limit) {
            Ok(item) => return Ok(item.read()),
            Err(ref error @ PushTimeoutError::Timeout(ref item)) => (format!("{error:?}"), item.read()),
            Err(ref error @ PushTimeoutError::Cancelled(ref item)) => (format!("{error:?}"), item.read()),
            Err(ref error @ PushTimeoutError::Closed(ref item)) => (format!("{error:?}"), item.read()),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(why.1, mine);
        match why.0.as_str() {
            "Timeout(..)" => Err("timeout"),
            "Cancelled(..)" => Err("cancelled"),
            _ => Err("closed"),
        }
    }

    /// Twice: the nodes are used again.
    #[test]
    fn two_swap_their_items_with_their_memory() {
        explore([2, 3], || {
            let exchanger = exchanger();
            let other = exchanger.clone();
            let other = thread::spawn(move || [0, 2].map(|id| outcome(&other, Item::new(id), None, None)));
            assert_eq!([1, 3].map(|id| outcome(&exchanger, Item::new(id), None, None)), [Ok(0), Ok(2)]);
            assert_eq!(other.join().unwrap(), [Ok(1), Ok(3)]);
        });
    }

    /// Two are partners; the third is alone, and has its item back.
    #[test]
    fn three_meet() {
        explore_with(Barrier::ReadModifyWrite, 2, || {
            let exchanger = exchanger();
            let others = [0, 1].map(|id| swap(&exchanger, Item::new(id), None, None));
            let mine = outcome(&exchanger, Item::new(2), Some(NOW), None);
            exchanger.close();
            let [zero, one] = others.map(|other| other.join().unwrap());
            let swaps = [zero, one, mine];
            let pairs = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| (swaps[a] == Ok(b), swaps[b] == Ok(a)));
            assert!(pairs.iter().all(|(a, b)| a == b), "{swaps:?}");
            let swapped = swaps.iter().filter(|swap| swap.is_ok()).count();
            assert_eq!(swapped, 2 * pairs.iter().filter(|pair| pair.0).count());
        });
    }

    /// Four want a partner and wait for ever: none is left over, whatever places they chose.
    #[test]
    fn two_pairs_find_each_other() {
        explore_with(Barrier::ReadModifyWrite, 1, || {
            let exchanger = exchanger();
            let others = [0, 1, 2].map(|id| swap(&exchanger, Item::new(id), None, None));
            let mine = outcome(&exchanger, Item::new(3), None, None);
            let mut swaps: Vec<_> = others.into_iter().map(|other| other.join().unwrap().unwrap()).collect();
            swaps.push(mine.unwrap());
            assert!((0..4).all(|id| swaps[id] != id && swaps[swaps[id]] == id), "{swaps:?}");
        });
    }

    /// Either may give up at any time: both or neither.
    #[test]
    fn an_exchange_against_a_time_out() {
        explore([2, 3], || {
            let exchanger = exchanger();
            let other = swap(&exchanger, Item::new(0), Some(NOW), None);
            let mine = outcome(&exchanger, Item::new(1), Some(NOW), None);
            match other.join().unwrap() {
                Ok(id) => assert_eq!((id, mine), (1, Ok(0))),
                Err(error) => assert_eq!((error, mine), ("timeout", Err("timeout"))),
            }
        });
    }

    /// One does not wait, the other may give up at any time: both or neither. Then one waits, and is found.
    #[test]
    fn a_try_exchange_against_a_time_out() {
        explore([2, 3], || {
            let exchanger = exchanger();
            let other = swap(&exchanger, Item::new(0), Some(NOW), None);
            let mine = match exchanger.try_exchange(Item::new(1)) {
                Ok(item) => Ok(item.read()),
                Err(TryPushError::Full(item)) => Err(item.read()),
                Err(error) => panic!("{error}"),
            };
            match other.join().unwrap() {
                Ok(id) => assert_eq!((id, mine), (1, Ok(0))),
                Err(error) => assert_eq!((error, mine), ("timeout", Err(1))),
            }
        });
    }

    /// One waits until it is found, wherever it is when the other comes.
    #[test]
    fn a_try_exchange_finds_who_waits() {
        explore([2, 3], || {
            let exchanger = exchanger();
            let other = swap(&exchanger, Item::new(0), None, None);
            let mut mine = Item::new(1);
            let theirs = loop {
                match exchanger.try_exchange(mine) {
                    Ok(item) => break item.read(),
                    Err(TryPushError::Full(item)) => mine = item,
                    Err(error) => panic!("{error}"),
                }
                thread::yield_now();
            };
            assert_eq!((theirs, other.join().unwrap()), (0, Ok(1)));
        });
    }

    /// Two that do not wait, and one that does until a close: a thread that has an item has given its own for it.
    #[test]
    fn two_try_exchanges_against_a_close() {
        explore_with(Barrier::ReadModifyWrite, 2, || {
            let exchanger = exchanger();
            let waits = swap(&exchanger, Item::new(0), None, None);
            let (other, item) = (exchanger.clone(), Item::new(1));
            let other = thread::spawn(move || other.try_exchange(item).map(|item| item.read()).is_ok());
            let mine = exchanger.try_exchange(Item::new(2)).map(|item| item.read()).is_ok();
            exchanger.close();
            let got = waits.join().unwrap();
            let (other, mine) = (other.join().unwrap(), mine);
            assert_eq!(
                got,
                if other {
                    Ok(1)
                } else if mine {
                    Ok(2)
                } else {
                    Err("closed")
                }
            );
            assert!(!(other && mine), "one has waited");
            let late = exchanger.try_exchange(Item::new(3));
            assert!(matches!(late, Err(TryPushError::Closed(_))));
        });
    }

    #[test]
    fn an_exchange_against_a_cancel() {
        explore([2, 3], || {
            let exchanger = exchanger();
            let token = CancelToken::new();
            let other = swap(&exchanger, Item::new(0), None, Some(token.clone()));
            let cancel = thread::spawn(move || token.cancel());
            let mine = outcome(&exchanger, Item::new(1), Some(NOW), None);
            cancel.join().unwrap();
            match other.join().unwrap() {
                Ok(id) => assert_eq!((id, mine), (1, Ok(0))),
                Err(error) => assert_eq!((error, mine), ("cancelled", Err("timeout"))),
            }
        });
    }

    #[test]
    fn an_exchange_against_a_close() {
        explore([2, 3], || {
            let exchanger = exchanger();
            let others = [0, 1].map(|id| swap(&exchanger, Item::new(id), None, None));
            exchanger.close();
            let [zero, one] = others.map(|other| other.join().unwrap());
            assert!((zero, one) == (Ok(1), Ok(0)) || (zero, one) == (Err("closed"), Err("closed")), "{zero:?} {one:?}");
            assert_eq!(outcome(&exchanger, Item::new(2), None, None), Err("closed"));
        });
    }
}
