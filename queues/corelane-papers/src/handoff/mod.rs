//! The synchronous queues with which the paper compares its own. They serve the bench and the reader.
//!
//! Source: Listings 1, 3 and 4 of "Scalable Synchronous Queues" (Scherer, Lea, Scott).
//!
//! | queue | one transfer | limits |
//! |---|---|---|
//! | [`Naive`] | one lock, every waiting thread woken at each step | no time-outs, no `try_` calls, no order |
//! | [`Hanson`] | six semaphore operations, at least one of them blocks | no time-outs, no `try_` calls |
//! | [`JavaFive`] | three: the lock, and one wake-up | all threads contend for its lock |
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
