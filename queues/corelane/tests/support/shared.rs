//! Scenarios, a queue that several threads share, what became of its items, and times.

use crate::thread::{self, JoinHandle};
use crate::{counted, draw, schedules};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs a scenario again and again, each of whose items is dropped once.
pub(crate) fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    schedules::explore(move || {
        counted::forget_all();
        scenario();
        counted::assert_all_dropped();
    });
}

/// A time that passes soon.
pub(crate) fn soon() -> Duration {
    let micros = if cfg!(corelane_shuttle) { 20 } else { 300 };
    Duration::from_micros(draw(0..micros) as u64)
}

/// A call with a time that passes soon. On real threads, one that gives up must have waited its time.
#[track_caller]
pub(crate) fn in_time<T, E>(
    gives_up: impl Fn(&E) -> bool,
    call: impl FnOnce(Duration) -> Result<T, E>,
) -> Result<T, E> {
    let (time, start) = (soon(), Instant::now());
    let outcome = call(time);
    if !cfg!(corelane_shuttle) && outcome.as_ref().is_err_and(gives_up) {
        assert!(start.elapsed() >= time, "it gave up after {:?} of {time:?}", start.elapsed());
    }
    outcome
}

/// The items of producer p have the numbers from p * EACH on.
pub(crate) const EACH: usize = 1_000_000;

/// Runs `f` with the queue in another thread.
pub(crate) fn spawn<Q: Send + Sync + 'static, R: Send + 'static>(
    queue: &Arc<Q>,
    f: impl FnOnce(&Q) -> R + Send + 'static,
) -> JoinHandle<R> {
    let queue = queue.clone();
    thread::spawn(move || f(&queue))
}

pub(crate) fn join<R>(threads: Vec<JoinHandle<R>>) -> Vec<R> {
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Each producer's items came once, all that were accepted, and in order at each consumer.
pub(crate) fn check(accepted: &[Vec<usize>], taken: &[Vec<usize>]) {
    for numbers in taken {
        for producer in 0..accepted.len() {
            let own = numbers.iter().filter(|&&number| number / EACH == producer);
            assert!(own.is_sorted(), "out of order: {numbers:?}");
        }
    }
    let sorted = |lists: &[Vec<usize>]| {
        let mut all = lists.concat();
        all.sort_unstable();
        all
    };
    assert_eq!(sorted(accepted), sorted(taken));
}
