//! What an algorithm has to provide. Waiting, time-outs and wake-ups are the same for every queue and written once, in
//! [`queue`](super::queue), over these traits.

use super::stats::Recorder;
use crate::error::{ChannelError, TryPopError, TryPushError};
use crate::mem::moving::Moving;
use crate::sync::Instant;
use alloc::vec::Vec;

/// A queue algorithm for any number of producers and consumers, as a type parameter of [`Queue`](super::Queue).
///
/// Sealed: the contract rests on what the implementations promise each other.
pub trait Design<T>: sealed::Sealed + Sized + 'static {
    #[doc(hidden)]
    type Body: Raw<T>;

    #[doc(hidden)]
    fn create(capacity: usize, start: usize) -> Result<Self::Body, ChannelError>;
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// For how long an attempt may wait for other threads.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// Not at all; `Busy` if it would have to.
    No,
    /// For a lock.
    ForLock,
    /// Until it succeeds or the time is up, if the algorithm waits [by itself](Waiting::Inside).
    Until(Option<Instant>),
}

/// How the waiting calls of an algorithm wait.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// By the queue's strategy.
    Parked,
    /// By trying again and again.
    Busy,
    /// An attempt with [`Stay::Until`] waits by itself.
    Inside,
}

/// What all threads share of an algorithm. An attempt never calls code of the user and, but for the growth of the
/// caller's vector, does not panic.
#[doc(hidden)]
pub trait Raw<T>: Send + Sync {
    const WAITING: Waiting;
    /// Whether a push may have to wait for pops.
    const MAY_BE_FULL: bool;

    /// One attempt to push.
    fn push<S: Recorder>(&self, item: T, stay: Stay, stats: &S) -> Result<(), TryPushError<T>>;

    /// One attempt to pop.
    fn pop<S: Recorder>(&self, stay: Stay, stats: &S) -> Result<T, TryPopError>;

    /// One attempt to push items from the front of a supply that is not empty: at least one, as many as fit.
    fn push_run<S: Recorder>(
        &self,
        supply: &mut Moving<'_, T>,
        stay: Stay,
        stats: &S,
    ) -> Result<usize, TryPushError<()>>;

    /// One attempt to pop: at least one item and at most `max`, which is not 0.
    fn pop_run<S: Recorder>(&self, items: &mut Vec<T>, max: usize, stay: Stay, stats: &S)
    -> Result<usize, TryPopError>;

    /// From now on every push is refused.
    fn close(&self);

    fn is_closed(&self) -> bool;

    /// Items inside at some moment of the call.
    fn len(&self) -> usize;

    /// As [`len`](Self::len), near enough for a hint where that looks again and again while others are at work.
    fn about(&self) -> usize {
        self.len()
    }

    fn capacity(&self) -> usize;

    /// Whether a pop would find an item, whatever other threads pop meanwhile; not one whose push is in the middle of
    /// it. Where there is a lock, once it is free.
    fn has_item(&self) -> bool {
        self.len() != 0
    }

    /// Whether a push would find room, as [`has_item`](Self::has_item).
    fn has_room(&self) -> bool {
        self.len() < self.capacity()
    }

    /// How many of up to `most` pushes find room now, where a thread alone pushes and another one alone pops, whatever
    /// that is in the middle of. Where there is a lock, once it is free.
    fn room_alone(&self, most: usize) -> usize {
        most.min(self.capacity() - self.len())
    }

    /// How many of up to `most` pops find an item now; as [`room_alone`](Self::room_alone).
    fn filled_alone(&self, most: usize) -> usize {
        most.min(self.len())
    }
}
