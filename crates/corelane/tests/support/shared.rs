//! A queue that several threads share, what became of its items, and times.

use crate::draw;
use shuttle::thread::{self, JoinHandle};
use std::sync::Arc;
use std::time::Duration;

/// A time that passes soon.
pub(crate) fn soon() -> Duration {
    Duration::from_micros(draw(0..20) as u64)
}

/// The items of producer p have the numbers from p * EACH on.
pub(crate) const EACH: usize = 1_000;

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
