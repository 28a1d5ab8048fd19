//! Two queues in a ring, the deadlock of Figure 5 of the B-Queue paper: threads that only use `try_` calls, and hold
//! nothing back, never wait for each other.

use crate::case::{CAPACITIES, Case, Rx, Tx, queue_from};
use std::thread;

/// Passes items on until the last one; returns how many. Only so few are in flight that there is always room for one.
fn pass_on<C: Case>(rx: &mut Rx<u64, C>, tx: &mut Tx<u64, C>, hops: u64) {
    let mut passed = 0;
    while passed < hops {
        match rx.try_pop() {
            Ok(item) => {
                assert_eq!(tx.try_push(item + 1), Ok(()), "fewer than capacity - release_lag items were inside");
                passed += 1;
            }
            Err(_) => thread::yield_now(),
        }
    }
}

fn circulate<C: Case>(capacity: usize, start: usize, in_flight: Option<u64>) {
    let (mut there, mut from_here) = queue_from::<u64, C>(capacity, start);
    let (mut back, mut from_there) = queue_from::<u64, C>(capacity, start);
    let in_flight = in_flight.unwrap_or((capacity - there.release_lag()) as u64);
    // Some times through the queue. No more: on a busy machine each item of one in flight takes the scheduler's turn.
    let rounds = if in_flight > 100 { 10 } else { (4 * capacity as u64 + 100).min(2_000) / in_flight + 10 };
    let hops = rounds * in_flight;
    thread::scope(|scope| {
        scope.spawn(move || {
            pass_on::<C>(&mut from_here, &mut back, hops);
            // Kept open until the other thread has everything.
            assert!(from_here.pop().is_err());
        });
        for _ in 0..in_flight {
            assert_eq!(there.try_push(0), Ok(()));
        }
        pass_on::<C>(&mut from_there, &mut there, hops - in_flight);
        for _ in 0..in_flight {
            assert_eq!(from_there.pop(), Ok(2 * rounds - 1));
        }
        drop(there);
    });
}

pub(crate) fn one_item_in_flight_never_hangs<C: Case>() {
    for capacity in CAPACITIES {
        circulate::<C>(capacity, 0, Some(1));
        circulate::<C>(capacity, usize::MAX - 3, Some(1));
    }
}

pub(crate) fn many_items_in_flight_never_meet_a_full_queue<C: Case>() {
    for capacity in CAPACITIES {
        circulate::<C>(capacity, 0, None);
        circulate::<C>(capacity, usize::MAX - 3, None);
    }
}
