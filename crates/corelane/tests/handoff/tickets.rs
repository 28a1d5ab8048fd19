//! Reservations.

use crate::support::{Ledger, T};
use corelane::error::{Closed, Drained, OfferError};
use corelane::handoff::{Fairness, SynchronousQueue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// The sequence of section 2.2: the order is that of the requests, not of the follow-ups.
pub(crate) fn a_ticket_keeps_its_place(fairness: Fairness) {
    let queue = SynchronousQueue::new(fairness);
    let mut a = queue.reserve_take();
    let mut b = queue.reserve_take();
    assert_eq!((a.try_followup(), b.try_followup()), (None, None));
    queue.offer(1).unwrap();
    queue.offer(2).unwrap();
    // B asks first.
    let (for_b, for_a) = (b.try_followup(), a.try_followup());
    let expected = if fairness == Fairness::Fair { (1, 2) } else { (2, 1) };
    assert_eq!((for_a, for_b), (Some(Ok(expected.0)), Some(Ok(expected.1))));
}

pub(crate) fn a_ticket_is_decided_without_its_owner(fairness: Fairness) {
    let queue = SynchronousQueue::new(fairness);
    let mut put = queue.reserve_put(1);
    assert_eq!(put.try_followup(), None);
    assert_eq!(queue.poll(), Ok(1));
    assert_eq!(put.try_followup(), Some(Ok(())));
    // A partner waits: decided when registered.
    let take = queue.reserve_take();
    let mut put = queue.reserve_put(2);
    assert_eq!(put.try_followup(), Some(Ok(())));
    assert_eq!(take.wait(), Ok(2));
}

pub(crate) fn an_abort_withdraws_or_is_the_last_followup(fairness: Fairness) {
    let queue = SynchronousQueue::new(fairness);
    assert_eq!(queue.reserve_take().abort(), None);
    assert_eq!(queue.offer(1), Err(OfferError::NoTaker(1)));
    let ticket = queue.reserve_take();
    queue.offer(2).unwrap();
    assert_eq!(ticket.abort(), Some(2));
    assert_eq!(queue.reserve_put(3).abort(), Some(3));
    let ticket = queue.reserve_put(4);
    assert_eq!(queue.poll(), Ok(4));
    assert_eq!(ticket.abort(), None);
    let ticket = queue.reserve_put(5);
    queue.close();
    assert_eq!(ticket.abort(), Some(5));
}

pub(crate) fn a_dropped_ticket_is_aborted(fairness: Fairness) {
    let ledger = Ledger::default();
    let queue = SynchronousQueue::new(fairness);
    drop(queue.reserve_take());
    drop(queue.reserve_put(ledger.item(1)));
    assert_eq!((queue.waiting_puts(), queue.waiting_takes(), ledger.alive()), (0, 0, 0));
    let ticket = queue.reserve_take();
    queue.offer(ledger.item(2)).unwrap();
    drop(ticket);
    assert_eq!((ledger.alive(), ledger.dropped()), (0, 2));
}

pub(crate) fn a_ticket_waits_in_another_thread(fairness: Fairness) {
    let queue = SynchronousQueue::new(fairness);
    let (take, other) = (queue.reserve_take(), SynchronousQueue::new(fairness));
    let put = other.reserve_put(6);
    thread::scope(|scope| {
        let taker = scope.spawn(move || take.wait());
        let putter = scope.spawn(move || put.wait());
        thread::sleep(T);
        assert!(!taker.is_finished() && !putter.is_finished());
        queue.offer(5).unwrap();
        assert_eq!(other.poll(), Ok(6));
        assert_eq!(taker.join().unwrap(), Ok(5));
        assert_eq!(putter.join().unwrap(), Ok(()));
    });
}

pub(crate) fn a_matched_ticket_stays_matched_when_the_queue_is_closed(fairness: Fairness) {
    let queue = SynchronousQueue::new(fairness);
    let (mut matched, mut waits) = (queue.reserve_take(), queue.reserve_take());
    if fairness == Fairness::Unfair {
        std::mem::swap(&mut matched, &mut waits);
    }
    queue.offer(1).unwrap();
    queue.close();
    assert_eq!((matched.try_followup(), waits.try_followup()), (Some(Ok(1)), Some(Err(Drained))));
    let other = SynchronousQueue::new(fairness);
    let mut put = other.reserve_put('x');
    other.close();
    assert_eq!(put.try_followup(), Some(Err(Closed('x'))));
}

pub(crate) fn a_spent_ticket_panics(fairness: Fairness) {
    let queue = SynchronousQueue::new(fairness);
    let mut ticket = queue.reserve_put(1);
    queue.poll().unwrap();
    assert_eq!(ticket.try_followup(), Some(Ok(())));
    catch_unwind(AssertUnwindSafe(|| ticket.try_followup())).unwrap_err();
    assert_eq!(ticket.abort(), None);
}

/// One thread holds a take in one queue and a put in another, two threads crosswise; it never meets itself, and all get on.
pub(crate) fn s29_tickets_of_one_thread_in_two_queues(fairness: Fairness) {
    let queues = [(); 2].map(|()| SynchronousQueue::new(fairness));
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
