//! Which request is served first.

use crate::support::{Mode, until};
use std::thread;

fn in_order(mode: Mode, mut items: Vec<usize>) -> Vec<usize> {
    if !mode.is_fair() {
        items.reverse();
    }
    items
}

pub(crate) fn s22_the_order_of_those_that_wait(mode: Mode) {
    let queue = mode.queue();
    thread::scope(|scope| {
        for item in 0..10 {
            let queue = &queue;
            scope.spawn(move || queue.put(item).unwrap());
            until("one more waits", || queue.waiting_puts() == item + 1);
        }
        let taken: Vec<_> = (0..10).map(|_| queue.take().unwrap()).collect();
        assert_eq!(taken, in_order(mode, (0..10).collect()));
    });
}

pub(crate) fn s22_the_order_of_takes_that_wait(mode: Mode) {
    let queue = mode.queue();
    thread::scope(|scope| {
        let takers: Vec<_> = (0..10)
            .map(|before| {
                let taker = scope.spawn(|| queue.take().unwrap());
                until("one more waits", || queue.waiting_takes() == before + 1);
                taker
            })
            .collect();
        (0..10).for_each(|item| queue.try_put(item).unwrap());
        let taken: Vec<_> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
        assert_eq!(taken, in_order(mode, (0..10).collect()));
    });
}

pub(crate) fn the_middle_leaves_the_order_alone(mode: Mode) {
    for aborted in [1, 2, 3, 7] {
        let queue = mode.queue();
        let mut left = Vec::new();
        let mut kept = Vec::new();
        for item in 0..200 {
            let ticket = queue.reserve_put(item);
            if item % 8 < aborted {
                left.push(ticket);
            } else {
                kept.push((item, ticket));
            }
        }
        drop(left);
        assert_eq!(queue.waiting_puts(), kept.len());
        let mut items = Vec::new();
        assert_eq!(queue.try_take_batch(&mut items, 1000), Ok(kept.len()));
        assert_eq!(items, in_order(mode, kept.iter().map(|&(item, _)| item).collect()));
        assert!(kept.iter_mut().all(|(_, ticket)| ticket.try_followup() == Some(Ok(()))));
    }
}
