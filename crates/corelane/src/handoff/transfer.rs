//! A queue whose producers choose, item by item, whether to wait until somebody has it.
//!
//! Source: section 5 of "Scalable Synchronous Queues" (Scherer, Lea, Scott): the transfer queue, which differs from the synchronous dual
//! queue by releasing some producers before their items are taken.
//!
//! # How it works
//!
//! 1. It is the [dual queue](super::dual_queue), in which a put's node may be left behind: its owner is done with it from the start, so it is
//!    freed by whoever takes the item. Everything else is the same, so items and takes that wait are served in turn.
//! 2. A close sends away the transfers and takes that wait. Items that were put without waiting stay, and are taken in order; only
//!    then do takes fail.
//!
//! # Synchronization, progress
//!
//! Those of the dual queue. `put` and `poll` are lock-free and never wait.
//!
//! # When to use it, and when not
//!
//! Between any number of threads, where some messages need to be known received, or where a producer should learn whether anyone waits.
//! Not for high rates from one thread to one other: [`spsc`](crate::spsc) moves an item in a fraction of the time.
//!
//! # Memory
//!
//! A node of at least 128 bytes for each item inside, kept for later ones. There is no bound but memory, and 100 million
//! items.

#[cfg(feature = "std")]
use super::waiting::{self, Patience};
use super::{
    PutTicket, Shape, TakeTicket,
    dual::{self, Answer, Chain, Dual, Otherwise},
    dual_queue::DualQueue,
};
use crate::error::{Closed, OfferError, PopError};
#[cfg(feature = "std")]
use crate::error::{Drained, OfferTimeoutError, PopTimeoutError, PutError, TakeError};
use core::fmt;
#[cfg(feature = "std")]
use std::time::Duration;

/// A first-in first-out queue between any number of threads, without a bound, whose producers may wait until an item is taken.
///
/// ```
/// use corelane::error::{Drained, OfferError};
/// use corelane::handoff::TransferQueue;
///
/// let queue = TransferQueue::new();
/// queue.put("letter").unwrap(); // Returns at once.
/// assert_eq!(queue.try_transfer("call"), Err(OfferError::NoTaker("call"))); // Nobody is there.
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.transfer("registered letter").unwrap()); // Returns when it was taken.
///     assert_eq!(queue.take(), Ok("letter"));
///     assert_eq!(queue.take(), Ok("registered letter"));
/// });
/// queue.put("last").unwrap();
/// queue.close();
/// assert_eq!(queue.take(), Ok("last"));
/// assert_eq!(queue.take(), Err(Drained));
/// ```
pub struct TransferQueue<T: Send> {
    shape: Shape<T>,
}

impl<T: Send> TransferQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { shape: Shape::Queue(DualQueue::new(true)) }
    }

    #[inline(always)]
    fn dual(&self) -> &DualQueue<T> {
        match &self.shape {
            Shape::Queue(dual) => dual,
            Shape::Stack(_) => unreachable!("made as a queue"),
        }
    }

    /// Leaves the item for whoever comes, or hands it to a take that waits. Never waits.
    ///
    /// # Errors
    /// The queue is closed. The item comes back.
    pub fn put(&self, item: T) -> Result<(), Closed<T>> {
        match self.dual().request(Some(item), Otherwise::Leave) {
            Answer::Matched(_) | Answer::Waits(_) => Ok(()),
            Answer::Closed(Some(item)) => Err(Closed(item)),
            Answer::Closed(None) | Answer::Alone(_) => unreachable!("a put has an item, and may be left"),
        }
    }

    /// Hands the item to a take that waits, if there is one. Never waits, and leaves nothing in the queue.
    ///
    /// # Errors
    /// No take waits, or the queue is closed. The item comes back.
    pub fn try_transfer(&self, item: T) -> Result<(), OfferError<T>> {
        dual::offer(self.dual(), item)
    }

    /// Takes the first item, if there is one. Never waits.
    ///
    /// # Errors
    /// The queue is empty, or closed and drained.
    pub fn poll(&self) -> Result<T, PopError> {
        dual::poll(self.dual())
    }

    /// Waits until a take has the item, which stands in line behind those that are inside.
    ///
    /// # Errors
    /// The queue is closed. The item comes back.
    #[cfg(feature = "std")]
    pub fn transfer(&self, item: T) -> Result<(), Closed<T>> {
        self.transfer_with(item, &Patience::new()).map_err(|error| Closed(error.into_inner()))
    }

    /// Waits until a take has the item, as long as patience lasts.
    ///
    /// # Errors
    /// Patience ended, or the queue is closed. The item comes back, and is not in the queue.
    #[cfg(feature = "std")]
    pub fn transfer_with(&self, item: T, patience: &Patience<'_>) -> Result<(), PutError<T>> {
        waiting::put(self.dual(), item, patience)
    }

    /// Waits until a take has the item, but not longer than this.
    ///
    /// # Errors
    /// The time is up, or the queue is closed. The item comes back, and is not in the queue.
    #[cfg(feature = "std")]
    pub fn transfer_timeout(&self, item: T, timeout: Duration) -> Result<(), OfferTimeoutError<T>> {
        waiting::offer_timeout(self.transfer_with(item, &Patience::new().timeout(timeout)))
    }

    /// Takes the first item; waits until there is one.
    ///
    /// # Errors
    /// The queue is closed and drained.
    #[cfg(feature = "std")]
    pub fn take(&self) -> Result<T, Drained> {
        self.take_with(&Patience::new()).map_err(|_| Drained)
    }

    /// Takes the first item, if one comes before patience ends.
    ///
    /// # Errors
    /// Patience ended, or the queue is closed and drained.
    #[cfg(feature = "std")]
    pub fn take_with(&self, patience: &Patience<'_>) -> Result<T, TakeError> {
        waiting::take(self.dual(), patience)
    }

    /// Takes the first item, if one comes within the time.
    ///
    /// # Errors
    /// The time is up, or the queue is closed and drained.
    #[cfg(feature = "std")]
    pub fn poll_timeout(&self, timeout: Duration) -> Result<T, PopTimeoutError> {
        waiting::poll_timeout(self.take_with(&Patience::new().timeout(timeout)))
    }

    /// Takes the items inside, at most `max`, and appends them. Returns how many. Never waits.
    #[cfg(feature = "std")]
    pub fn drain_into(&self, items: &mut Vec<T>, max: usize) -> usize {
        dual::drain_into(self.dual(), items, max)
    }

    /// Registers a take. See [`TakeTicket`].
    pub fn reserve_take(&self) -> TakeTicket<'_, T> {
        TakeTicket::new(&self.shape)
    }

    /// Registers a transfer. See [`PutTicket`].
    pub fn reserve_transfer(&self, item: T) -> PutTicket<'_, T> {
        PutTicket::new(&self.shape, item)
    }

    /// True if a take waits at this moment.
    pub fn has_waiting_consumer(&self) -> bool {
        self.dual().first_kind() == Some(false)
    }

    /// How many takes wait. An estimate while others call; walks over all that wait.
    pub fn waiting_consumer_count(&self) -> usize {
        self.dual().count(false)
    }

    /// How many items are inside, those of waiting transfers among them. An estimate while others call; walks over all.
    pub fn len(&self) -> usize {
        self.dual().count(true)
    }

    /// True if no item is inside at this moment.
    pub fn is_empty(&self) -> bool {
        self.dual().first_kind() != Some(true)
    }

    /// Accepts no further items, and sends those who wait away, transfers with their items. What was put stays to be taken. A queue that
    /// is closed stays closed.
    pub fn close(&self) {
        self.dual().close();
    }

    /// True once [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.dual().is_closed()
    }

    /// How many nodes the queue has allocated, in use or not.
    #[doc(hidden)]
    pub fn nodes(&self) -> usize {
        self.dual().pool().nodes()
    }
}

impl<T: Send> Default for TransferQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> fmt::Debug for TransferQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransferQueue").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}
