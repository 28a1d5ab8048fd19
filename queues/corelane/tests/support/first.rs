//! A set that is made for one wait.

use corelane::wait::{Select, Selectable, Strategy};
use std::time::Duration;

/// The index of the first end that is ready. `None` when the time is up; without one it waits for ever.
pub(crate) fn first<E: Selectable + Send, W: Strategy>(
    ends: &mut [E],
    wait: &W,
    timeout: Option<Duration>,
) -> Option<usize> {
    let mut select = Select::with(wait.clone()).biased();
    for end in ends {
        select.add(end);
    }
    let ready = match timeout {
        None => select.wait(),
        Some(timeout) => select.wait_timeout(timeout),
    };
    ready.map(|ready| ready.index())
}
