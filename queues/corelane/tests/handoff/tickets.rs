//! Reservations.

use crate::first::first;
use crate::support::{Ledger, Mode, T, timed};
use corelane::error::{Closed, TryPushError};
use corelane::handoff::{CancelToken, SynchronousQueue};
use corelane::wait::{Adaptive, Select, Selectable};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// An end among others of other kinds.
type AnyEnd<'a> = &'a mut (dyn Selectable + Send);

/// The sequence of section 2.2: the order is that of the requests, not of the follow-ups.
pub(crate) fn a_ticket_keeps_its_place(mode: Mode) {
    let queue = mode.queue();
    let mut a = queue.reserve_take();
    let mut b = queue.reserve_take();
    assert_eq!((a.try_followup(), b.try_followup()), (None, None));
    queue.try_put(1).unwrap();
    queue.try_put(2).unwrap();
    // B asks first.
    let (for_b, for_a) = (b.try_followup(), a.try_followup());
    let expected = if mode.is_fair() { (1, 2) } else { (2, 1) };
    assert_eq!((for_a, for_b), (Some(Ok(expected.0)), Some(Ok(expected.1))));
}

pub(crate) fn a_ticket_is_decided_without_its_owner(mode: Mode) {
    let queue = mode.queue();
    let mut put = queue.reserve_put(1);
    assert_eq!(put.try_followup(), None);
    assert_eq!(queue.try_take(), Ok(1));
    assert_eq!(put.try_followup(), Some(Ok(())));
    // A partner waits: decided when registered.
    let take = queue.reserve_take();
    let mut put = queue.reserve_put(2);
    assert_eq!(put.try_followup(), Some(Ok(())));
    assert_eq!(take.wait(), Ok(2));
}

pub(crate) fn an_abort_withdraws_or_is_the_last_followup(mode: Mode) {
    let queue = mode.queue();
    assert_eq!(queue.reserve_take().abort(), None);
    assert_eq!(queue.try_put(1), Err(TryPushError::Full(1)));
    let ticket = queue.reserve_take();
    queue.try_put(2).unwrap();
    assert_eq!(ticket.abort(), Some(2));
    assert_eq!(queue.reserve_put(3).abort(), Some(3));
    let ticket = queue.reserve_put(4);
    assert_eq!(queue.try_take(), Ok(4));
    assert_eq!(ticket.abort(), None);
    let ticket = queue.reserve_put(5);
    queue.close();
    assert_eq!(ticket.abort(), Some(5));
}

pub(crate) fn a_dropped_ticket_is_aborted(mode: Mode) {
    let ledger = Ledger::default();
    let queue = mode.queue();
    drop(queue.reserve_take());
    drop(queue.reserve_put(ledger.item(1)));
    assert_eq!((queue.waiting_puts(), queue.waiting_takes(), ledger.alive()), (0, 0, 0));
    let ticket = queue.reserve_take();
    queue.try_put(ledger.item(2)).unwrap();
    drop(ticket);
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 2));
}

pub(crate) fn a_ticket_waits_in_another_thread(mode: Mode) {
    let queue = mode.queue();
    let (take, other) = (queue.reserve_take(), mode.queue());
    let put = other.reserve_put(6);
    thread::scope(|scope| {
        let taker = scope.spawn(move || take.wait());
        let putter = scope.spawn(move || put.wait());
        thread::sleep(T);
        assert!(!taker.is_finished() && !putter.is_finished());
        queue.try_put(5).unwrap();
        assert_eq!(other.try_take(), Ok(6));
        assert_eq!(taker.join().unwrap(), Ok(5));
        assert_eq!(putter.join().unwrap(), Ok(()));
    });
}

pub(crate) fn a_matched_ticket_stays_matched_when_the_queue_is_closed(mode: Mode) {
    let queue = mode.queue();
    let (mut matched, mut waits) = (queue.reserve_take(), queue.reserve_take());
    if !mode.is_fair() {
        std::mem::swap(&mut matched, &mut waits);
    }
    queue.try_put(1).unwrap();
    queue.close();
    assert_eq!((matched.try_followup(), waits.try_followup()), (Some(Ok(1)), Some(Err(Closed(())))));
    let other = mode.queue();
    let mut put = other.reserve_put('x');
    other.close();
    assert_eq!(put.try_followup(), Some(Err(Closed('x'))));
}

pub(crate) fn a_spent_ticket_panics(mode: Mode) {
    let queue = mode.queue();
    let mut ticket = queue.reserve_put(1);
    queue.try_take().unwrap();
    assert_eq!(ticket.try_followup(), Some(Ok(())));
    catch_unwind(AssertUnwindSafe(|| ticket.try_followup())).unwrap_err();
    assert_eq!(ticket.abort(), None);
}

/// One thread holds a take in one queue and a put in another, two threads crosswise; it never meets itself, and all get
/// on.
pub(crate) fn s29_tickets_of_one_thread_in_two_queues(mode: Mode) {
    let queues = [(); 2].map(|()| mode.queue());
    thread::scope(|scope| {
        for me in 0..2_usize {
            let queues = &queues;
            scope.spawn(move || {
                for round in 0..500_u32 {
                    let mut put = queues[me].reserve_put((me, round));
                    let mut take = queues[1 - me].reserve_take();
                    let (mut sent, mut taken) = (None, None);
                    while sent.is_none() || taken.is_none() {
                        sent = sent.or_else(|| put.try_followup());
                        taken = taken.or_else(|| take.try_followup());
                        thread::yield_now();
                    }
                    assert_eq!((sent, taken), (Some(Ok(())), Some(Ok((1 - me, round)))));
                }
            });
        }
    });
}

/// Two threads wait for either of two queues, crosswise, each for a put and a take; all get on.
pub(crate) fn s29_two_selects_on_the_same_pair(mode: Mode) {
    let queues = [(); 2].map(|()| mode.queue());
    thread::scope(|scope| {
        for me in 0..2_usize {
            let queues = &queues;
            scope.spawn(move || {
                for round in 0..2_000_u32 {
                    let mut put = queues[me].reserve_put((me, round));
                    let mut take = queues[1 - me].reserve_take();
                    for _ in 0..2 {
                        match first(&mut [&mut put as AnyEnd, &mut take], &Adaptive, None) {
                            Some(0) => assert_eq!(put.try_followup(), Some(Ok(()))),
                            _ => assert_eq!(take.try_followup(), Some(Ok((1 - me, round)))),
                        }
                    }
                }
            });
        }
    });
}

/// A thread serves many queues, and sleeps while all are empty.
pub(crate) fn s29_a_select_over_many_queues(mode: Mode) {
    const ITEMS: u32 = 300;
    let queues: Vec<_> = (0..8).map(|_| mode.queue()).collect();
    thread::scope(|scope| {
        for (id, queue) in queues.iter().enumerate() {
            scope.spawn(move || {
                for item in 0..ITEMS {
                    if item % 50 == 0 {
                        thread::sleep(T / 20);
                    }
                    queue.put((id, item)).unwrap();
                }
            });
        }
        let mut next = [0; 8];
        let mut tickets = Select::new();
        let mut keys: Vec<_> = queues.iter().map(|queue| tickets.add(queue.reserve_take())).collect();
        while let Some(ready) = tickets.wait() {
            let ready = keys.iter().position(|&key| ready == key).unwrap();
            let mut ticket = tickets.remove(keys[ready]).unwrap();
            assert_eq!(ticket.try_followup(), Some(Ok((ready, next[ready]))));
            next[ready] += 1;
            if next[ready] < ITEMS {
                keys[ready] = tickets.add(queues[ready].reserve_take());
            }
        }
        assert_eq!(next, [ITEMS; 8]);
    });
}

pub(crate) fn a_select_ends_with_its_limit(mode: Mode) {
    let queues = [(); 2].map(|()| mode.queue::<u32>());
    let mut tickets = queues.each_ref().map(SynchronousQueue::reserve_take);
    let (none, took) = timed(|| first(&mut tickets, &Adaptive, Some(T)));
    assert!(none.is_none() && took >= T, "{none:?} after {took:?}");
    let token = CancelToken::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(T);
            token.cancel();
        });
        let [one, two] = &mut tickets;
        assert_eq!(first(&mut [one as AnyEnd, two, &mut token.clone()], &Adaptive, None), Some(2));
    });
    // The requests are still registered.
    queues[1].try_put(5).unwrap();
    assert_eq!(first(&mut tickets, &Adaptive, None), Some(1));
    assert_eq!(tickets[1].try_followup(), Some(Ok(5)));
    queues[0].close();
    assert_eq!(first(&mut tickets, &Adaptive, None), Some(0));
    assert_eq!(tickets[0].try_followup(), Some(Err(Closed(()))));
    assert_eq!(first(&mut tickets, &Adaptive, Some(T)), None, "they were followed up");
}

/// A ticket that was waited for together with others can be waited for alone.
pub(crate) fn a_ticket_waits_alone_after_a_select(mode: Mode) {
    let queues = [(); 2].map(|()| mode.queue());
    thread::scope(|scope| {
        let mut tickets = queues.each_ref().map(SynchronousQueue::reserve_take);
        assert_eq!(first(&mut tickets, &Adaptive, Some(T)), None);
        let [first, second] = tickets;
        scope.spawn(|| {
            for queue in &queues {
                thread::sleep(T);
                queue.put(3).unwrap();
            }
        });
        assert_eq!((first.wait(), second.wait()), (Ok(3), Ok(3)));
    });
}
