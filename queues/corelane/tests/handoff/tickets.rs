//! Reservations.

use crate::first::first;
use crate::support::{Mode, T, timed};
use corelane::error::Closed;
use corelane::handoff::{CancelToken, SynchronousQueue};
use corelane::wait::{Adaptive, Selectable};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// An end among others of other kinds.
type AnyEnd<'a> = &'a mut (dyn Selectable + Send);

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

pub(crate) fn a_spent_ticket_panics(mode: Mode) {
    let queue = mode.queue();
    let mut ticket = queue.reserve_put(1);
    queue.try_take().unwrap();
    assert_eq!(ticket.try_followup(), Some(Ok(())));
    catch_unwind(AssertUnwindSafe(|| ticket.try_followup())).unwrap_err();
    assert_eq!(ticket.abort(), None);
}

/// Two threads wait for either of two queues, crosswise, each for a put and a take; all get on.
pub(crate) fn s29_two_selects_on_the_same_pair(mode: Mode) {
    let queues = [(); 2].map(|()| mode.queue());
    thread::scope(|scope| {
        for me in 0..2_usize {
            let queues = &queues;
            scope.spawn(move || {
                for round in 0..500_u32 {
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
