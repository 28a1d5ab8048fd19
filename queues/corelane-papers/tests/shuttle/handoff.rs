//! The queues that the paper on synchronous queues compares with.

use crate::shared::{EACH, check, join, spawn};
use crate::{Item, draw, explore, in_time, many, one_of};
use corelane::error::{PopTimeoutError, PushTimeoutError};
use corelane::handoff::Fairness;
use corelane_papers::handoff::{Hanson, JavaFive, Naive};
use std::sync::Arc;

fn hands_over<Q: Send + Sync + 'static>(make: fn() -> Q, put: fn(&Q, Item), take: fn(&Q) -> Item) {
    explore(move || {
        let (queue, items) = (Arc::new(make()), many(draw(1..12)));
        let (putters, takers) = one_of(&[(1, 1), (1, 2), (2, 1), (2, 2), (3, 2)]);
        let putters = (0..putters).map(|producer| {
            let items = items * takers;
            spawn(&queue, move |queue| {
                let numbers = (0..items).map(|i| producer * EACH + i).collect::<Vec<_>>();
                numbers.iter().for_each(|&number| put(queue, Item::new(number)));
                numbers
            })
        });
        let putters = putters.collect::<Vec<_>>();
        let share = items * putters.len();
        let takers =
            (0..takers).map(|_| spawn(&queue, move |queue| (0..share).map(|_| take(queue).id).collect::<Vec<_>>()));
        let taken = join(takers.collect());
        check(&join(putters), &taken);
    });
}

#[test]
fn naive_hands_over() {
    hands_over(Naive::new, Naive::put, Naive::take);
}

#[test]
fn hanson_hands_over() {
    hands_over(Hanson::new, Hanson::put, Hanson::take);
}

#[test]
fn java_five_hands_over() {
    hands_over(|| JavaFive::new(Fairness::Fair), JavaFive::put, JavaFive::take);
    hands_over(|| JavaFive::new(Fairness::Unfair), JavaFive::put, JavaFive::take);
}

#[test]
fn java_five_loses_nothing_to_time_outs() {
    for fairness in [Fairness::Fair, Fairness::Unfair] {
        explore(move || {
            let queue = Arc::new(JavaFive::new(fairness));
            let putters = (0..draw(1..3)).map(|producer| {
                let tries = many(draw(1..20));
                spawn(&queue, move |queue| {
                    let numbers = (0..tries).map(|i| producer * EACH + i);
                    let put = |&i: &usize| {
                        in_time(PushTimeoutError::is_timeout, |time| queue.put_timeout(Item::new(i), time)).is_ok()
                    };
                    numbers.filter(put).collect::<Vec<_>>()
                })
            });
            let putters = putters.collect::<Vec<_>>();
            let takers = (0..draw(1..3)).map(|_| {
                let tries = many(draw(1..20));
                spawn(&queue, move |queue| {
                    let take = || in_time(PopTimeoutError::is_timeout, |time| queue.take_timeout(time)).ok();
                    (0..tries).filter_map(|_| Some(take()?.id)).collect::<Vec<_>>()
                })
            });
            let taken = join(takers.collect());
            check(&join(putters), &taken);
        });
    }
}
