//! The synchronous queues with which the paper compares its own. They serve the bench and the reader.
//!
//! Source: Listings 1, 3 and 4 of "Scalable Synchronous Queues" (Scherer, Lea, Scott).
//!
//! | queue | one transfer | what it cannot |
//! |---|---|---|
//! | [`Naive`] | one lock, every waiting thread woken at each step | time-outs, `try_` calls, order |
//! | [`Hanson`] | six semaphore operations, at least one of them blocks | time-outs, `try_` calls |
//! | [`JavaFive`] | three: the lock, and one wake-up | it has them; its lock is where all threads meet |
//!
//! None of them can be closed, and a waiting thread sleeps at once.

mod hanson;
mod java5;
mod naive;

pub use hanson::Hanson;
pub use java5::JavaFive;
pub use naive::Naive;

/// The message if a lock is poisoned, which never happens.
const NO_PANIC: &str = "nothing panics under this lock";
