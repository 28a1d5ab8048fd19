//! A queue whose producers choose, item by item, whether to wait until it is taken.
//!
//! # Promises
//!
//! - Those of the [dual queue](super::dual_queue): items and takes that wait are served in turn. `push`, `try_put` and
//!   `try_take` are lock-free and never wait.
//! - A close sends away the puts and takes that wait. Items that were pushed stay, and are taken in order; only then do
//!   takes fail.
//! - **Memory.** A node of at least 128 bytes for each item inside, kept for later ones. There is no bound but memory,
//!   and 100 million items.
//!
//! # When to use it, and when not
//!
//! Use it between any number of threads, where some messages need to be known received, or where a producer should
//! learn whether a consumer waits. Do not use it for high rates from one thread to one other: [`spsc`](crate::spsc)
//! moves an item in a fraction of the time.
//!
//! # How it works
//!
//! Source: section 5 of "Scalable Synchronous Queues" (Scherer, Lea, Scott): the transfer queue, which differs from the
//! synchronous dual queue by releasing some producers before their items are taken.
//!
//! 1. It is the [dual queue](super::dual_queue), in which a `push` may leave a put's node behind. The node's owner is
//!    done with it from the start, so the thread that takes the item frees it.
//! 2. Everything else is the same.
//!
//! # Synchronization
//!
//! That of the [dual queue](super::dual_queue#synchronization).

#[cfg(feature = "std")]
use super::waiting::WaitLimit;
use super::{
    PutTicket, Shape, SynchronousQueue, TakeTicket,
    dual::{Answer, Chain, Dual, Otherwise},
    dual_queue::DualQueue,
};
use crate::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use crate::macros::{debug, forward};
use alloc::vec::Vec;
use core::time::Duration;

/// A first-in first-out queue between any number of threads, without a bound, whose producers may wait until an item is
/// taken.
///
/// ```
/// use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
/// use corelane::handoff::TransferQueue;
/// use core::time::Duration;
///
/// let (queue, moment) = (TransferQueue::new(), Duration::from_millis(1));
/// queue.push("letter").unwrap(); // Returns at once.
/// assert_eq!((queue.len(), queue.is_empty()), (1, false));
/// assert_eq!(queue.try_put("call"), Err(TryPushError::Full("call"))); // No take waits.
/// assert_eq!(queue.put_timeout("call", moment), Err(PushTimeoutError::Timeout("call")));
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.put("registered letter").unwrap()); // Returns when it was taken.
///     assert_eq!(queue.take(), Ok("letter"));
///     assert_eq!(queue.take(), Ok("registered letter"));
/// });
/// assert_eq!(queue.try_take(), Err(TryPopError::Empty));
/// assert_eq!(queue.take_timeout(moment), Err(PopTimeoutError::Timeout));
/// queue.push("last").unwrap();
/// queue.close();
/// assert!(queue.is_closed());
/// assert_eq!(queue.take(), Ok("last"));
/// assert_eq!(queue.take(), Err(Closed(())));
/// ```
pub struct TransferQueue<T: Send> {
    /// Over a chain in which items may be left.
    queue: SynchronousQueue<T>,
}

impl<T: Send> TransferQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { queue: SynchronousQueue { shape: Shape::Queue(DualQueue::new(true)) } }
    }

    #[inline(always)]
    fn dual(&self) -> &DualQueue<T> {
        match &self.queue.shape {
            Shape::Queue(dual) => dual,
            Shape::Stack(_) => unreachable!("made as a queue"),
        }
    }

    /// How many puts or takes are in line.
    fn count(&self, data: bool) -> usize {
        let count = self.dual().count(data);
        // A walk that others disturb may have missed them all.
        count.max(usize::from(count == 0 && self.dual().first_kind() == Some(data)))
    }

    /// Leaves the item for the next take, or hands it to one that waits. Never waits for a taker; it is
    /// [`put`](Self::put) that does.
    ///
    /// # Errors
    /// The queue is closed. The item comes back.
    #[doc(alias = "send")]
    #[doc(alias = "enqueue")]
    #[doc(alias = "offer")]
    pub fn push(&self, item: T) -> Result<(), Closed<T>> {
        match self.dual().request(Some(item), Otherwise::Leave) {
            Answer::Matched(_) | Answer::Waits(_) => Ok(()),
            Answer::Closed(Some(item)) => Err(Closed(item)),
            Answer::Closed(None) | Answer::Alone(_) => unreachable!("a put has an item, and may be left"),
        }
    }

    forward! { queue:
        /// Waits until a take has the item, which stands in line behind those that are inside.
        ///
        /// # Errors
        /// The queue is closed. The item comes back.
        #[cfg(feature = "std")]
        #[doc(alias = "transfer")]
        pub fn put(&self, item: T) -> Result<(), Closed<T>>;

        /// Takes the first item; waits until there is one.
        ///
        /// # Errors
        /// The queue is closed and drained.
        #[cfg(feature = "std")]
        #[doc(alias = "recv")]
        #[doc(alias = "dequeue")]
        pub fn take(&self) -> Result<T, Closed>;

        /// Hands the item to a take that waits, if there is one. Never waits, and leaves nothing in the queue.
        ///
        /// # Errors
        /// No take waits, or the queue is closed. The item comes back.
        #[doc(alias = "try_transfer")]
        pub fn try_put(&self, item: T) -> Result<(), TryPushError<T>>;

        /// Takes the first item, if there is one. Never waits.
        ///
        /// # Errors
        /// The queue is empty, or closed and drained.
        #[doc(alias = "poll")]
        #[doc(alias = "try_recv")]
        pub fn try_take(&self) -> Result<T, TryPopError>;

        /// Waits until a take has the item, but not longer than this.
        ///
        /// # Errors
        /// The time is up, or the queue is closed. The item comes back, and is not in the queue.
        #[cfg(feature = "std")]
        #[doc(alias = "transfer")]
        pub fn put_timeout(&self, item: T, timeout: Duration) -> Result<(), PushTimeoutError<T>>;

        /// Takes the first item, if one comes within the time.
        ///
        /// # Errors
        /// The time is up, or the queue is closed and drained.
        #[cfg(feature = "std")]
        #[doc(alias = "poll")]
        #[doc(alias = "recv_timeout")]
        pub fn take_timeout(&self, timeout: Duration) -> Result<T, PopTimeoutError>;

        /// Waits until a take has the item, within the limit.
        ///
        /// ```
        /// use corelane::error::{PopTimeoutError, PushTimeoutError};
        /// use corelane::handoff::{CancelToken, TransferQueue, WaitLimit};
        ///
        /// let queue = TransferQueue::new();
        /// let stop = CancelToken::new();
        /// let limit = WaitLimit::new().cancel(&stop);
        /// stop.cancel();
        /// assert_eq!(queue.put_with(1, &limit), Err(PushTimeoutError::Cancelled(1)));
        /// assert_eq!(queue.take_with(&limit), Err(PopTimeoutError::Cancelled));
        /// ```
        ///
        /// # Errors
        /// The limit was reached, or the queue is closed. The item comes back, and is not in the queue.
        #[cfg(feature = "std")]
        #[doc(alias = "transfer")]
        pub fn put_with(&self, item: T, limit: &WaitLimit<'_>) -> Result<(), PushTimeoutError<T>>;

        /// Takes the first item, if one comes within the limit. [`put_with`](Self::put_with) has an example.
        ///
        /// # Errors
        /// The limit was reached, or the queue is closed and drained.
        #[cfg(feature = "std")]
        #[doc(alias = "recv")]
        pub fn take_with(&self, limit: &WaitLimit<'_>) -> Result<T, PopTimeoutError>;

        /// Takes the items inside, at most `max`, appends them, and returns how many. Never waits.
        ///
        /// ```
        /// use corelane::error::TryPopError;
        ///
        /// let queue = corelane::handoff::TransferQueue::new();
        /// (0..3).for_each(|item| queue.push(item).unwrap());
        /// let mut items = Vec::new();
        /// assert_eq!(queue.try_take_batch(&mut items, 2), Ok(2));
        /// assert_eq!(queue.try_take_batch(&mut items, 2), Ok(1));
        /// assert_eq!(queue.try_take_batch(&mut items, 2), Err(TryPopError::Empty));
        /// assert_eq!(items, [0, 1, 2]);
        /// ```
        ///
        /// # Errors
        /// There was none: the queue is empty, or closed and drained. A `max` of 0 is no error.
        #[doc(alias = "drain_into")]
        #[doc(alias = "recv_many")]
        pub fn try_take_batch(&self, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError>;

        /// Registers a take. See [`TakeTicket`].
        pub fn reserve_take(&self) -> TakeTicket<'_, T>;

        /// Registers a put, whose item stands in line until it is taken or its ticket is aborted. See [`PutTicket`].
        ///
        /// ```
        /// let queue = corelane::handoff::TransferQueue::new();
        /// let mut put = queue.reserve_put(1);
        /// assert_eq!((put.try_followup(), queue.len()), (None, 1));
        /// assert_eq!(queue.reserve_take().try_followup(), Some(Ok(1)));
        /// assert_eq!(put.try_followup(), Some(Ok(())));
        /// ```
        pub fn reserve_put(&self, item: T) -> PutTicket<'_, T>;
    }

    /// How many takes wait. An estimate while others call, but never 0 while one waits; walks over all that wait.
    ///
    /// ```
    /// let queue = corelane::handoff::TransferQueue::<u32>::new();
    /// let ticket = queue.reserve_take();
    /// assert_eq!(queue.waiting_takes(), 1);
    /// # drop(ticket);
    /// ```
    #[must_use]
    pub fn waiting_takes(&self) -> usize {
        self.count(false)
    }

    /// How many items are inside, those of waiting puts among them. An estimate while others call, but never 0 while
    /// one is inside; walks over all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count(true)
    }

    /// True if no item is inside at this moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dual().first_kind() != Some(true)
    }

    forward! { queue:
        /// Accepts no further items, and sends the calls that wait away, puts with their items. What was pushed stays
        /// to be taken. A queue that is closed stays closed.
        pub fn close(&self);

        /// True once [`close`](Self::close) was called.
        pub fn is_closed(&self) -> bool;

        /// How many nodes the queue has allocated, in use or not.
        #[doc(hidden)]
        #[must_use]
        pub fn nodes(&self) -> usize;
    }
}

impl<T: Send> Default for TransferQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

debug! { [T: Send] TransferQueue<[T]>: self, closed: self.is_closed() }
