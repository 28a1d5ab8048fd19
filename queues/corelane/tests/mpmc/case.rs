//! Channels as the tests make them.

pub(crate) use crate::channel::{Ends, Lanes, Rx, Shared, Tx};
pub(crate) use crate::random::Random;
pub(crate) use crate::tracked::{Ledger, Tracked};
use corelane::mpmc::Options;
use corelane::wait::{Adaptive, Park, Strategy};
use std::time::Duration;

pub(crate) const CAPACITIES: [usize; 6] = [1, 2, 3, 7, 8, 100];

pub(crate) fn channel_with<C: Shared, T: Send + 'static, W: Strategy + Sync>(
    capacity: usize,
    start: usize,
    wait: W,
) -> Ends<C, T, W> {
    C::channel(capacity, Options::new().wait(wait).start_at(start)).expect("a good capacity")
}

pub(crate) fn channel<C: Shared, T: Send + 'static>(capacity: usize) -> Ends<C, T, Adaptive> {
    channel_with::<C, T, _>(capacity, usize::MAX - 3, Adaptive)
}

pub(crate) fn parking<C: Shared, T: Send + 'static>(capacity: usize) -> Ends<C, T, Park> {
    channel_with::<C, T, _>(capacity, usize::MAX - 3, Park)
}

/// What is popped until the channel is closed and empty.
pub(crate) fn rest<T>(rx: &mut impl Rx<T>) -> impl Iterator<Item = T> {
    std::iter::from_fn(|| rx.pop().ok())
}

/// Long enough for another thread to fall asleep.
pub(crate) const NAP: Duration = Duration::from_millis(5);
/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(100);
