//! Many threads, few items: enough to go through every path under load.

use crate::support::Mode;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Puts and takes that may give up; the items that came through, in order of their value.
fn traffic(pairs: usize, items: u64, put: impl Fn(u64) -> bool + Sync, take: impl Fn() -> Option<u64> + Sync) {
    let seen: Vec<_> = (0..pairs as u64 * items).map(|_| AtomicUsize::new(0)).collect();
    let taken = AtomicU64::new(0);
    let total = pairs as u64 * items;
    thread::scope(|scope| {
        for pair in 0..pairs as u64 {
            let (put, take, seen, taken) = (&put, &take, &seen, &taken);
            scope.spawn(move || {
                for item in pair * items..(pair + 1) * items {
                    while !put(item) {}
                }
            });
            scope.spawn(move || {
                while taken.load(Relaxed) < total {
                    if let Some(item) = take() {
                        seen[item as usize].fetch_add(1, Relaxed);
                        taken.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    assert!(seen.iter().all(|times| times.load(Relaxed) == 1), "an item was lost or came twice");
}

pub(crate) fn s23_each_item_once_between_many_threads(mode: Mode) {
    for pairs in [1, 2, 4] {
        let queue = mode.queue();
        // The last takes would wait for ever: they have a time.
        let take = || queue.take_timeout(Duration::from_millis(1)).ok();
        traffic(pairs, 4_000, |item| queue.put(item).is_ok(), take);
    }
}

pub(crate) fn s24_times_adapt(mode: Mode) {
    let queue = mode.queue();
    let limit = AtomicU64::new(1_000);
    let adapt = |came: bool| {
        let now = limit.load(Relaxed);
        limit.store(if came { now.saturating_sub(1) } else { now + 1 }, Relaxed);
        came
    };
    let time = || Duration::from_nanos(limit.load(Relaxed));
    traffic(
        2,
        2_000,
        |item| adapt(queue.put_timeout(item, time()).is_ok()),
        || {
            let item = queue.take_timeout(time()).ok();
            adapt(item.is_some());
            item
        },
    );
}

pub(crate) fn many_more_threads_than_cores(mode: Mode) {
    let queue = mode.queue();
    let take = || queue.take_timeout(Duration::from_millis(1)).ok();
    traffic(16, 200, |item| queue.put(item).is_ok(), take);
}

/// Calls that do not wait, on both sides, beside some that wait for a moment.
pub(crate) fn puts_and_takes_that_give_up_and_come_again(mode: Mode) {
    let queue = mode.queue();
    let stop = AtomicBool::new(false);
    let (put, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    let count = |counter: &AtomicU64, came: bool| counter.fetch_add(came.into(), Relaxed);
    let moment = Duration::from_micros(5);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    count(&put, queue.try_put(1).is_ok());
                    count(&put, queue.put_timeout(1, moment).is_ok());
                }
            });
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    count(&taken, queue.try_take().is_ok());
                    count(&taken, queue.take_timeout(moment).is_ok());
                }
            });
        }
        thread::sleep(Duration::from_millis(200));
        stop.store(true, SeqCst);
    });
    assert_eq!(put.into_inner(), taken.into_inner());
    assert_eq!((queue.waiting_puts(), queue.waiting_takes()), (0, 0));
}
