//! Where a call comes to a queue.

/// The two sides of a queue.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Push,
    Pop,
}
