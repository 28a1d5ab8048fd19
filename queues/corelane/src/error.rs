//! The errors of calls: one type for each kind of call, the same in every family of queues. An error says what the call
//! did not do, and gives the item back.
//!
//! ```
//! use corelane::error::{Closed, TryPushError};
//!
//! let (mut producer, consumer) = corelane::spsc::channel(1);
//! producer.push('a')?;
//! assert_eq!(producer.try_push('b'), Err(TryPushError::Full('b')));
//! drop(consumer);
//! assert_eq!(producer.push('b'), Err(Closed('b')));
//! # Ok::<(), Closed<char>>(())
//! ```
//!
//! | call | error |
//! |---|---|
//! | waits: `push`, `put`, `pop`, `take`, `collect`, `reserve`, `peek` | [`Closed`], with the item where there is one |
//! | never waits: `try_push`, `try_put`, `try_reserve`, `try_exchange` | [`TryPushError`] |
//! | never waits: `try_pop`, `try_take`, `try_collect`, `try_peek` | [`TryPopError`] |
//! | waits at most so long: `push_timeout`, `put_timeout`, `exchange_timeout` | [`PushTimeoutError`] |
//! | waits at most so long: `pop_timeout`, `take_timeout`, `collect_timeout` | [`PopTimeoutError`] |
//! | dispatches a job | `DispatchError` |
//! | makes a queue | [`ChannelError`] |
//!
//! - All but [`Closed`] are `#[non_exhaustive]`, so a `match` has one more arm. Most errors are Full or Empty, Timeout
//!   or Closed; what else they may be is for a few families.
//! - `Debug` does not print the item, so no item needs `Debug` and none leaks into a log.
//! - A [`Closed`] converts into each of the next four. So `?` takes one where a [`TryPushError`] or a
//!   [`PushTimeoutError`] of the same item is returned, or from a pop a [`TryPopError`] or a [`PopTimeoutError`].

use core::fmt;

/// The queue is closed: with the item that was to be pushed, or, from a pop, with nothing, once everything it had
/// accepted has been popped. No later call succeeds.
///
/// ```
/// let (mut producer, consumer) = corelane::spsc::channel(1);
/// drop(consumer);
/// assert_eq!(producer.push('a').unwrap_err().into_inner(), 'a');
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T = ()>(pub T);

impl<T> Closed<T> {
    /// The refused item.
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// Why a call that never waits did not take the item, with the item.
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::channel(1);
/// producer.push('a')?;
/// let refused = producer.try_push('b').unwrap_err();
/// assert!(refused.is_full() && !refused.is_busy() && !refused.is_closed());
/// assert_eq!(refused.into_inner(), 'b');
/// consumer.close();
/// assert!(producer.try_push('b').unwrap_err().is_closed());
/// # Ok::<(), corelane::error::Closed<char>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryPushError<T> {
    /// No room: as many items as the queue takes are inside, or, in an unbounded queue, there is no memory for another
    /// one. In a hand-off, no partner waits. That may change at any time.
    Full(T),
    /// Another thread is in the middle of its call, and this one would have to wait for it. It says nothing about the
    /// queue: try again, or make a call that waits. Only queues of [`mpmc`](crate::mpmc) say so.
    Busy(T),
    /// The queue is closed: no later push succeeds.
    Closed(T),
}

/// Why a call that waits for a while did not hand the item over, with the item.
///
/// ```
/// # #[cfg(feature = "std")]
/// # {
/// use std::time::Duration;
///
/// let (mut producer, mut consumer) = corelane::spsc::channel(1);
/// let soon = Duration::from_millis(1);
/// producer.push_timeout('a', soon)?;
/// let refused = producer.push_timeout('b', soon).unwrap_err();
/// assert!(refused.is_timeout());
/// assert_eq!(refused.into_inner(), 'b');
/// consumer.close();
/// assert!(producer.push_timeout('b', soon).unwrap_err().is_closed());
/// # }
/// # Ok::<(), corelane::error::PushTimeoutError<char>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushTimeoutError<T> {
    /// There was still no room, or no partner, when the time was up.
    Timeout(T),
    /// The wait was cancelled by its token. Only calls that are given one say so.
    Cancelled(T),
    /// The queue is closed.
    Closed(T),
}

/// Why a call that never waits returned no item.
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::channel(1);
/// assert!(consumer.try_pop().unwrap_err().is_empty());
/// producer.push('a').unwrap();
/// drop(producer);
/// assert_eq!(consumer.try_pop(), Ok('a'));
/// assert!(consumer.try_pop().unwrap_err().is_closed());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
// As wide as what an `Option` tells its cases apart by: so `.ok()` of a large item's result is no copy of the item.
#[repr(usize)]
pub enum TryPopError {
    /// Every item pushed so far has been popped; in a hand-off, no put waits.
    Empty,
    /// As [`TryPushError::Busy`].
    Busy,
    /// The queue is closed and everything it had accepted has been popped.
    Closed,
}

/// Why a call that waits for a while returned no item.
///
/// ```
/// # #[cfg(feature = "std")]
/// # {
/// use std::time::Duration;
///
/// let (producer, mut consumer) = corelane::spsc::channel::<u32>(1);
/// let soon = Duration::from_millis(1);
/// assert!(consumer.pop_timeout(soon).unwrap_err().is_timeout());
/// drop(producer);
/// assert!(consumer.pop_timeout(soon).unwrap_err().is_closed());
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PopTimeoutError {
    /// There was still no item when the time was up.
    Timeout,
    /// As [`PushTimeoutError::Cancelled`].
    Cancelled,
    /// The queue is closed and everything it had accepted has been popped.
    Closed,
}

/// Why [`try_dispatch`](crate::dispatch::Dispatcher::try_dispatch) or a call like it did not take the job, with the
/// job. Where the jobs are a vector's, they are still there, and nothing is inside; from
/// [`dispatch_slice`](crate::dispatch::Dispatcher::dispatch_slice) it is the number of those that were dispatched.
///
/// ```
/// use corelane::error::DispatchError;
///
/// let (mut dispatcher, workers) = corelane::dispatch::channel(1, 1);
/// dispatcher.dispatch('a')?;
/// let refused = dispatcher.try_dispatch('b').unwrap_err();
/// assert!(refused.is_full());
/// assert_eq!(refused.into_inner(), 'b');
/// assert!(dispatcher.dispatch_timeout('b', std::time::Duration::from_millis(1)).unwrap_err().is_timeout());
/// drop(workers);
/// assert!(dispatcher.dispatch('b').unwrap_err().is_no_worker());
/// # Ok::<(), DispatchError<char>>(())
/// ```
#[cfg(feature = "std")]
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DispatchError<T> {
    /// No room in the queue of the job's worker, nor in another's where it might go to another.
    Full(T),
    /// There was still no room when the time was up.
    Timeout(T),
    /// Every worker has left.
    NoWorker(T),
    /// A worker has panicked. Its panic is to be [taken](crate::dispatch::Dispatcher::take_panic) before anything else
    /// is dispatched.
    Panicked(T),
}

/// Why a queue could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelError {
    /// A queue of capacity 0 could never hold an item.
    ZeroCapacity,
    /// The capacity in items, or its size in bytes, is beyond what indices or the address space can hold.
    TooLarge,
    /// A batch of 0 items, or one larger than the queue, which would overwrite items that were not popped.
    BadBatch,
    /// A slip whose distances contradict each other or the capacity, or whose interval is 0.
    BadSlip,
    /// A segment of nothing, or none to be cached.
    BadSegment,
    /// The allocator refused the memory.
    NoMemory,
}

/// What was made. Panics at the caller's caller where nothing could be: no closure does that.
#[track_caller]
pub(crate) fn made<T>(made: Result<T, ChannelError>) -> T {
    match made {
        Ok(made) => made,
        Err(error) => panic!("{error}"),
    }
}

impl<T> From<Closed<T>> for TryPushError<T> {
    fn from(closed: Closed<T>) -> Self {
        Self::Closed(closed.0)
    }
}

impl<T> From<Closed<T>> for PushTimeoutError<T> {
    fn from(closed: Closed<T>) -> Self {
        Self::Closed(closed.0)
    }
}

impl From<Closed> for TryPopError {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Closed> for PopTimeoutError {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

/// The calls and traits of an error with what was refused inside, which is not shown.
macro_rules! with_item {
    ($name:ident, $item:literal { $($variant:ident $is:ident: $message:expr),+ $(,)? }) => {
        impl<T> $name<T> {
            #[doc = concat!("The refused ", $item, ".")]
            pub fn into_inner(self) -> T {
                match self {
                    $(Self::$variant(item))|+ => item,
                }
            }

            /// The same reason with something else inside.
            #[allow(dead_code, reason = "of one of them no call uses it")]
            pub(crate) fn map<R>(self, other: impl FnOnce(T) -> R) -> $name<R> {
                match self {
                    $(Self::$variant(item) => $name::$variant(other(item)),)+
                }
            }

            $(
                #[doc = concat!("True for [`", stringify!($name), "::", stringify!($variant), "`].")]
                pub fn $is(&self) -> bool {
                    matches!(self, Self::$variant(_))
                }
            )+
        }

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Self::$variant(_) => concat!(stringify!($variant), "(..)"),)+
                })
            }
        }

        impl<T> fmt::Display for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Self::$variant(_) => $message,)+
                })
            }
        }

        impl<T> core::error::Error for $name<T> {}
    };
}

/// The same of an error with nothing inside.
macro_rules! without_item {
    ($name:ident { $($variant:ident $($is:ident)?: $message:expr),+ $(,)? }) => {
        impl $name {
            $($(
                #[doc = concat!("True for [`", stringify!($name), "::", stringify!($variant), "`].")]
                pub fn $is(&self) -> bool {
                    matches!(self, Self::$variant)
                }
            )?)+
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(match self {
                    $(Self::$variant => $message,)+
                })
            }
        }

        impl core::error::Error for $name {}
    };
}
pub(crate) use without_item;

// What happened, in words for a log. What to do about it, the variants' documentation says; of a queue that cannot be
// made, whose error a panic shows, the text does.
const BUSY: &str = "another thread was in the middle of a call on the queue";
const CANCELLED: &str = "the wait was cancelled before an item was passed on";
const CLOSED: &str = "the queue is closed";
const DRAINED: &str = "the queue is closed and has no more items";

with_item!(TryPushError, "item" {
    Full is_full: "the queue is full, or no partner waits",
    Busy is_busy: BUSY,
    Closed is_closed: CLOSED,
});
with_item!(PushTimeoutError, "item" {
    Timeout is_timeout: "the queue was still full, or no partner had come, when the time was up",
    Cancelled is_cancelled: CANCELLED,
    Closed is_closed: CLOSED,
});
without_item!(TryPopError { Empty is_empty: "the queue is empty", Busy is_busy: BUSY, Closed is_closed: DRAINED });
without_item!(PopTimeoutError {
    Timeout is_timeout: "the queue was still empty when the time was up",
    Cancelled is_cancelled: CANCELLED,
    Closed is_closed: DRAINED,
});
#[cfg(feature = "std")]
with_item!(DispatchError, "job" {
    Full is_full: "no worker that may take the job has room for it",
    Timeout is_timeout: "no worker that may take the job had room for it when the time was up",
    NoWorker is_no_worker: "every worker has left",
    Panicked is_panicked: "a worker has panicked, and `take_panic` was not called since",
});
without_item!(ChannelError {
    ZeroCapacity: "the capacity is too small to hold a single item: choose a larger one, at least 1",
    TooLarge: "the capacity is too large for the queue or for this machine's addresses: choose a smaller one",
    BadBatch: "a batch size or increment is 0 or above the queue's capacity: choose from 1 to the capacity",
    BadSlip: "the slip's parameters do not fit: choose danger <= good <= capacity, and an interval of at least 1",
    BadSegment: "a segment's length or the number of cached segments is 0: choose at least 1 for each",
    NoMemory: "there is not enough memory for the queue: choose a smaller capacity, or free memory",
});

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Closed(..)")
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(CLOSED)
    }
}

impl<T> core::error::Error for Closed<T> {}
