//! One error type per operation. A refused item comes back inside the error; `Debug` does not print it, so no item needs
//! `Debug` and none leaks into a log.

use core::fmt;

/// Why [`try_push`](crate::spsc::Producer::try_push) did not take the item, with the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PushError<T> {
    /// No free slot; in an unbounded queue, no memory for one. The consumer may free one at any time.
    Full(T),
    /// The consumer is gone or has closed the queue: no later push will succeed.
    Closed(T),
}

impl<T> PushError<T> {
    /// The refused item.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(item) | Self::Closed(item) => item,
        }
    }

    /// True for [`PushError::Full`].
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// True for [`PushError::Closed`].
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

/// The queue was closed before [`push`](crate::spsc::Producer::push) found a free slot, or before
/// [`put`](crate::handoff::SynchronousQueue::put) found a taker, or [`exchange`](crate::handoff::Exchanger::exchange) a partner; the
/// item comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(pub T);

/// Why [`push_timeout`](crate::spsc::Producer::push_timeout) did not take the item, with the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PushTimeoutError<T> {
    /// The queue was still full when the time was up.
    Timeout(T),
    /// The consumer is gone or has closed the queue.
    Closed(T),
}

impl<T> PushTimeoutError<T> {
    /// The refused item.
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(item) | Self::Closed(item) => item,
        }
    }
}

/// Why [`try_pop`](crate::spsc::Consumer::try_pop) or [`poll`](crate::handoff::SynchronousQueue::poll) returned no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// As wide as what an `Option` tells its cases apart by: so `.ok()` of a large item's result is no copy of the item.
#[repr(usize)]
pub enum PopError {
    /// Every item pushed so far has been popped; no put waits.
    Empty,
    /// The queue is closed and everything it had accepted has been popped.
    Closed,
}

/// The queue is closed and drained: [`pop`](crate::spsc::Consumer::pop) and
/// [`take`](crate::handoff::SynchronousQueue::take) will never return an item again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained;

/// Why [`pop_timeout`](crate::spsc::Consumer::pop_timeout) or
/// [`poll_timeout`](crate::handoff::SynchronousQueue::poll_timeout) returned no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopTimeoutError {
    /// The queue was still empty when the time was up.
    Timeout,
    /// The queue is closed and everything it had accepted has been popped.
    Closed,
}

/// Why [`try_push`](crate::mpmc::Queue::try_push) of a shared queue did not take the item, with the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TryPushError<T> {
    /// As many items as the queue's capacity are inside. A consumer may pop one at any time.
    Full(T),
    /// Another thread is in the middle of its call, and this one would have to wait for it. It says nothing about the queue: try again,
    /// or let [`push`](crate::mpmc::Queue::push) wait.
    Busy(T),
    /// The queue is closed: no later push will succeed.
    Closed(T),
}

impl<T> TryPushError<T> {
    /// The refused item.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(item) | Self::Busy(item) | Self::Closed(item) => item,
        }
    }

    /// The same reason with something else inside.
    pub(crate) fn map<R>(self, f: impl FnOnce(T) -> R) -> TryPushError<R> {
        match self {
            Self::Full(item) => TryPushError::Full(f(item)),
            Self::Busy(item) => TryPushError::Busy(f(item)),
            Self::Closed(item) => TryPushError::Closed(f(item)),
        }
    }

    /// True for [`TryPushError::Full`].
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// True for [`TryPushError::Busy`].
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy(_))
    }

    /// True for [`TryPushError::Closed`].
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

/// Why [`try_pop`](crate::mpmc::Queue::try_pop) of a shared queue returned no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// As `PopError`.
#[repr(usize)]
pub enum TryPopError {
    /// No item is inside.
    Empty,
    /// Another thread is in the middle of its call, and this one would have to wait for it. It says nothing about the queue: try again,
    /// or let [`pop`](crate::mpmc::Queue::pop) wait.
    Busy,
    /// The queue is closed and everything it had accepted has been popped.
    Closed,
}

/// Why [`offer`](crate::handoff::SynchronousQueue::offer) did not hand the item over, with the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OfferError<T> {
    /// No taker waits.
    NoTaker(T),
    /// The queue is closed.
    Closed(T),
}

impl<T> OfferError<T> {
    /// The refused item.
    pub fn into_inner(self) -> T {
        match self {
            Self::NoTaker(item) | Self::Closed(item) => item,
        }
    }
}

/// Why [`offer_timeout`](crate::handoff::SynchronousQueue::offer_timeout) did not hand the item over, with the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OfferTimeoutError<T> {
    /// No taker had come when the time was up.
    Timeout(T),
    /// The queue is closed.
    Closed(T),
}

impl<T> OfferTimeoutError<T> {
    /// The refused item.
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(item) | Self::Closed(item) => item,
        }
    }
}

/// Why [`put_with`](crate::handoff::SynchronousQueue::put_with) did not hand the item over, with the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PutError<T> {
    /// No taker had come when the time was up.
    Timeout(T),
    /// The token was cancelled first.
    Cancelled(T),
    /// The queue is closed.
    Closed(T),
}

impl<T> PutError<T> {
    /// The refused item.
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(item) | Self::Cancelled(item) | Self::Closed(item) => item,
        }
    }
}

/// Why [`take_with`](crate::handoff::SynchronousQueue::take_with) returned no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeError {
    /// No item had come when the time was up.
    Timeout,
    /// The token was cancelled first.
    Cancelled,
    /// The queue is closed, and no item is left in it.
    Closed,
}

/// Why [`exchange_with`](crate::handoff::Exchanger::exchange_with) returned no partner's item, with the own one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ExchangeError<T> {
    /// No partner had come when the time was up.
    Timeout(T),
    /// The token was cancelled first.
    Cancelled(T),
    /// The exchanger is closed.
    Closed(T),
}

impl<T> ExchangeError<T> {
    /// The item that was not exchanged.
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(item) | Self::Cancelled(item) | Self::Closed(item) => item,
        }
    }
}

/// Why [`try_dispatch`](crate::fanout::Dispatcher::try_dispatch) did not take the job, with the job; for a call with many jobs, with the
/// number of those that it dispatched.
#[cfg(feature = "std")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DispatchError<T> {
    /// No room in the queue of the job's worker, nor in another's where it might go to another; or the time was up first.
    Full(T),
    /// Every worker has left.
    NoWorker(T),
    /// A worker has panicked. Its panic is to be [taken](crate::fanout::Dispatcher::take_panic) before anything else is dispatched.
    Panicked(T),
}

#[cfg(feature = "std")]
impl<T> DispatchError<T> {
    /// The refused job.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(job) | Self::NoWorker(job) | Self::Panicked(job) => job,
        }
    }

    /// True for [`DispatchError::Full`].
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// The same reason, for something else.
    pub(crate) fn map<U>(self, other: impl FnOnce(T) -> U) -> DispatchError<U> {
        match self {
            Self::Full(job) => DispatchError::Full(other(job)),
            Self::NoWorker(job) => DispatchError::NoWorker(other(job)),
            Self::Panicked(job) => DispatchError::Panicked(other(job)),
        }
    }
}

/// Why a slot could not be [reserved](crate::spsc::Producer::reserve).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// No free slot.
    Full,
    /// The consumer is gone or has closed the queue.
    Closed,
}

/// Why a queue could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

macro_rules! names_without_item {
    ($($name:ident :: $variant:ident),+) => {
        $(impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::$variant(_) => f.pad(concat!(stringify!($variant), "(..)")),
                    Self::Closed(_) => f.pad("Closed(..)"),
                }
            }
        })+
    };
}
names_without_item!(PushError::Full, PushTimeoutError::Timeout, OfferError::NoTaker, OfferTimeoutError::Timeout);

impl<T> fmt::Debug for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timeout(_) => "Timeout(..)",
            Self::Cancelled(_) => "Cancelled(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Debug for ExchangeError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timeout(_) => "Timeout(..)",
            Self::Cancelled(_) => "Cancelled(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Debug for TryPushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full(_) => "Full(..)",
            Self::Busy(_) => "Busy(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

#[cfg(feature = "std")]
impl<T> fmt::Debug for DispatchError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full(_) => "Full(..)",
            Self::NoWorker(_) => "NoWorker(..)",
            Self::Panicked(_) => "Panicked(..)",
        })
    }
}

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Closed(..)")
    }
}

const FULL: &str = "the queue is full";
const EMPTY: &str = "the queue is empty";
const BUSY: &str = "another thread is in the middle of its call";
const CLOSED: &str = "the queue is closed";
const NO_TAKER: &str = "no taker had come when the time was up";
const CANCELLED: &str = "the wait was cancelled";
const DRAINED: &str = "the queue is closed and drained";

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if self.is_full() { FULL } else { CLOSED })
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(CLOSED)
    }
}

impl<T> fmt::Display for PushTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timeout(_) => "the queue was still full when the time was up",
            Self::Closed(_) => CLOSED,
        })
    }
}

impl<T> fmt::Display for TryPushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full(_) => FULL,
            Self::Busy(_) => BUSY,
            Self::Closed(_) => CLOSED,
        })
    }
}

impl fmt::Display for TryPopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Empty => EMPTY,
            Self::Busy => BUSY,
            Self::Closed => DRAINED,
        })
    }
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Empty => EMPTY,
            Self::Closed => DRAINED,
        })
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(DRAINED)
    }
}

impl fmt::Display for PopTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timeout => "the queue was still empty when the time was up",
            Self::Closed => DRAINED,
        })
    }
}

impl<T> fmt::Display for OfferError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NoTaker(_) => "no taker waits",
            Self::Closed(_) => CLOSED,
        })
    }
}

impl<T> fmt::Display for OfferTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timeout(_) => NO_TAKER,
            Self::Closed(_) => CLOSED,
        })
    }
}

impl<T> fmt::Display for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timeout(_) => NO_TAKER,
            Self::Cancelled(_) => CANCELLED,
            Self::Closed(_) => CLOSED,
        })
    }
}

impl<T> fmt::Display for ExchangeError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timeout(_) => "no partner had come when the time was up",
            Self::Cancelled(_) => CANCELLED,
            Self::Closed(_) => "the exchanger is closed",
        })
    }
}

#[cfg(feature = "std")]
impl<T> fmt::Display for DispatchError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full(_) => "no worker has room",
            Self::NoWorker(_) => "every worker has left",
            Self::Panicked(_) => "a worker has panicked",
        })
    }
}

impl fmt::Display for TakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timeout => "no item had come when the time was up",
            Self::Cancelled => CANCELLED,
            Self::Closed => CLOSED,
        })
    }
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full => FULL,
            Self::Closed => CLOSED,
        })
    }
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ZeroCapacity => "a queue needs a capacity of at least 1",
            Self::TooLarge => "the capacity is too large",
            Self::BadBatch => "a batch must hold at least 1 item and at most the queue's capacity",
            Self::BadSlip => {
                "a slip's danger must be at most its good distance, that at most the capacity, its interval at least 1"
            }
            Self::BadSegment => "a segment must hold at least 1 item or byte, and at least 1 segment must be cached",
            Self::NoMemory => "no memory for the queue",
        })
    }
}

impl<T> core::error::Error for PushError<T> {}
impl<T> core::error::Error for Closed<T> {}
impl<T> core::error::Error for PushTimeoutError<T> {}
impl<T> core::error::Error for TryPushError<T> {}
impl core::error::Error for TryPopError {}
impl core::error::Error for PopError {}
impl core::error::Error for Drained {}
impl core::error::Error for PopTimeoutError {}
impl<T> core::error::Error for OfferError<T> {}
impl<T> core::error::Error for OfferTimeoutError<T> {}
impl<T> core::error::Error for PutError<T> {}
impl<T> core::error::Error for ExchangeError<T> {}
#[cfg(feature = "std")]
impl<T> core::error::Error for DispatchError<T> {}
impl core::error::Error for TakeError {}
impl core::error::Error for ReserveError {}
impl core::error::Error for ChannelError {}
