//! A flag that stops the other threads of a test, also where an assertion fails: the scope waits for them.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Raises the flag when it is dropped.
pub(crate) struct Stops<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
