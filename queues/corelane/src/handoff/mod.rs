//! Items go from thread to thread with no buffer between them: a put waits for a take, and a take for a put. Any number
//! of threads may be on either side.
//!
//! ```
//! use corelane::handoff::{Fairness, SynchronousQueue};
//!
//! let queue = SynchronousQueue::new(Fairness::Unfair);
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         while let Ok(item) = queue.take() {
//!             println!("{item} came");
//!         }
//!     });
//!     for item in 0..3 {
//!         queue.put(item).expect("it is open"); // Returns when the other thread has the item.
//!     }
//!     queue.close();
//! });
//! ```
//!
//! # Promises
//!
//! - **One taker, or back.** An item that is put is taken by exactly one take, or comes back to its put. One
//!   compare-and-swap of one word decides, so neither outcome is in doubt. A [`try_put`](SynchronousQueue::try_put)
//!   either hands its item to a take that waited, or returns it; nothing is in between.
//! - **Visibility.** What a thread did before a put is visible after the take that got the item. What it did before a
//!   take that waited is visible after the put that found it.
//! - **Limits.** A wait may be given an end by a [`WaitLimit`]: a time, a [`CancelToken`]. When several things have
//!   happened, a partner goes before a cancellation, and a cancellation before the time.
//! - **[`close`](SynchronousQueue::close)** sends every waiting thread away, and each put gets its item back. Every
//!   later call fails.
//! - **Lock-free.** A thread that is stopped anywhere keeps no other thread from its partner. (A [`CancelToken`] has a
//!   lock, which a thread takes before it sleeps.)
//! - **Contention-free.** A request that waits reads one word of its own until that changes.
//! - **Idle queues use no CPU.** A thread that waits spins only while it is next in line, for a quarter of what it
//!   takes to sleep and be woken here, as measured. While other threads want its CPU it yields, 64 times at most. Then
//!   it sleeps.
//! - **Memory** is 16 kB from the start, and bounded by the number of requests that wait at once, however many came and
//!   gave up. For a reply to one request, take a queue of [`spsc`](crate::spsc) for one item: 1 kB.
//!
//! What `try_` calls say:
//!
//! ```
//! # use corelane::handoff::{Fairness, SynchronousQueue};
//! use corelane::error::{TryPopError, TryPushError};
//!
//! let queue = SynchronousQueue::new(Fairness::Fair);
//! assert_eq!(queue.try_put('a'), Err(TryPushError::Full('a')));
//! assert_eq!(queue.try_take(), Err(TryPopError::Empty));
//! let mut ticket = queue.reserve_take();
//! assert_eq!(queue.try_put('a'), Ok(()));
//! assert_eq!(ticket.try_followup(), Some(Ok('a')));
//! ```
//!
//! What a close does:
//!
//! ```
//! # use corelane::handoff::{Fairness, SynchronousQueue};
//! use corelane::error::Closed;
//!
//! let queue = SynchronousQueue::new(Fairness::Unfair);
//! let mut ticket = queue.reserve_put(5);
//! queue.close();
//! assert_eq!(ticket.try_followup(), Some(Err(Closed(5))));
//! assert_eq!(queue.put(6), Err(Closed(6)));
//! assert_eq!(queue.take(), Err(Closed(())));
//! ```
//!
//! # Which one?
//!
//! | you want | take |
//! |---|---|
//! | the highest rate; threads that are not needed stay asleep | [`SynchronousQueue`], [`Unfair`] |
//! | the longest waiting thread to be served first | [`SynchronousQueue`], [`Fair`](Fairness::Fair) |
//! | items that may be left behind, beside some whose taking is waited for | [`TransferQueue`] |
//! | an item for an item, between equals | [`Exchanger`] |
//! | a request now and its outcome later, or several at once | [tickets], and [`Select`] |
//!
//! Each verb means one thing in all of them:
//!
//! | | waits until it is done, or closed | never waits | waits at most so long |
//! |---|---|---|---|
//! | hand an item to a take | `put` | `try_put`, `try_put_batch` | `put_timeout`, `put_with` |
//! | take an item | `take` | `try_take`, `try_take_batch` | `take_timeout`, `take_with` |
//! | leave an item for the next take | | [`push`](TransferQueue::push) of the [`TransferQueue`] | |
//! | swap an item for another | `exchange` | `try_exchange` | `exchange_timeout`, `exchange_with` |
//!
//! What ends in `_with` takes a [`WaitLimit`]: a time, a [`CancelToken`], or both.
//!
//! # How it is built
//!
//! 1. A request and its follow-up are what all structures have in common (`dual`).
//! 2. `dual_queue` and `dual_stack` are the algorithms. `pool` holds their nodes.
//! 3. `waiting` spends the time between a request and its follow-up.
//! 4. `exchanger` pairs requests of one kind in an `arena`.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `dual_queue.rs`, `dual_stack.rs` | first come, first served; last come, first served |
//! | `transfer.rs` | the dual queue with items that may be left behind |
//! | `exchanger.rs`, `arena.rs` | an item for an item; the places where requests meet |
//! | `dual.rs`, `ticket.rs` | a request and its follow-up; the two as calls of their own |
//! | `pool.rs` | nodes that stay nodes, tagged links, the word that decides a request |
//! | `waiting.rs`, `clock.rs` | how long a request waits, and how its thread spends the time |
//!
//! [`Unfair`]: Fairness::Unfair
//! [tickets]: TakeTicket
//! [`Select`]: crate::wait::Select

#[cfg(feature = "std")]
mod arena;
#[cfg(feature = "std")]
mod clock;
mod dual;
mod dual_queue;
mod dual_stack;
#[cfg(feature = "std")]
mod exchanger;
mod pool;
mod ticket;
mod transfer;
#[cfg(feature = "std")]
mod waiting;

#[cfg(feature = "std")]
pub use exchanger::Exchanger;
pub use ticket::{PutTicket, TakeTicket};
pub use transfer::TransferQueue;
#[cfg(feature = "std")]
pub use waiting::{CancelToken, WaitLimit};

use crate::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use crate::macros::debug;
use alloc::vec::Vec;
use core::time::Duration;
use dual::{Chain, Dual};
use dual_queue::DualQueue;
use dual_stack::DualStack;

/// Which of several waiting threads is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// The one that has waited longest. With more threads than cores each hand-over then has to wake a thread that
    /// sleeps.
    Fair,
    /// The one that came last: it is likely to be awake, its caches are warm. Others may wait for ever while there are
    /// enough of those.
    Unfair,
}

enum Shape<T> {
    Queue(DualQueue<T>),
    Stack(DualStack<T>),
}

macro_rules! each {
    ($shape:expr, $dual:ident => $call:expr) => {
        match $shape {
            crate::handoff::Shape::Queue($dual) => $call,
            crate::handoff::Shape::Stack($dual) => $call,
        }
    };
}
use each;

/// Hands items from thread to thread. See the [module](self).
///
/// ```
/// use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
/// use corelane::handoff::{Fairness, SynchronousQueue};
/// use core::time::Duration;
///
/// let queue = SynchronousQueue::new(Fairness::Fair);
/// assert_eq!(queue.fairness(), Fairness::Fair);
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.put('a').unwrap()); // Waits until the item is taken.
///     assert_eq!(queue.take(), Ok('a')); // Waits until there is one.
/// });
/// // No partner is there: calls that never wait fail at once, calls that wait for a while fail then.
/// let moment = Duration::from_millis(1);
/// assert_eq!(queue.try_put('b'), Err(TryPushError::Full('b')));
/// assert_eq!(queue.try_take(), Err(TryPopError::Empty));
/// assert_eq!(queue.put_timeout('b', moment), Err(PushTimeoutError::Timeout('b')));
/// assert_eq!(queue.take_timeout(moment), Err(PopTimeoutError::Timeout));
/// queue.close();
/// assert!(queue.is_closed());
/// ```
pub struct SynchronousQueue<T: Send> {
    shape: Shape<T>,
}

impl<T: Send> SynchronousQueue<T> {
    /// A queue that no request waits in: 16 kB, for up to 128 requests at once.
    pub fn new(fairness: Fairness) -> Self {
        let shape = match fairness {
            Fairness::Fair => Shape::Queue(DualQueue::new(false)),
            Fairness::Unfair => Shape::Stack(DualStack::new()),
        };
        Self { shape }
    }

    /// An [unfair](Fairness::Unfair) queue with an elimination arena: threads that get in each other's way at the queue
    /// meet beside it.
    ///
    /// Take it only on a machine with many cores, and only if it measures better there. A thread that comes at a bad
    /// moment stays beside the queue for a microsecond instead of trying again, and a partner is seldom there. On two
    /// cores that is slower.
    ///
    /// ```
    /// use corelane::handoff::{Fairness, SynchronousQueue};
    ///
    /// let queue = SynchronousQueue::with_elimination();
    /// assert_eq!(queue.fairness(), Fairness::Unfair);
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| queue.put(1).unwrap());
    ///     assert_eq!(queue.take(), Ok(1));
    /// });
    /// ```
    #[cfg(feature = "std")]
    pub fn with_elimination() -> Self {
        Self { shape: Shape::Stack(DualStack::with_elimination()) }
    }

    /// Which waiting thread is served first.
    pub fn fairness(&self) -> Fairness {
        match self.shape {
            Shape::Queue(_) => Fairness::Fair,
            Shape::Stack(_) => Fairness::Unfair,
        }
    }

    /// Hands the item over; waits until a take has it.
    ///
    /// # Errors
    /// The queue is closed. The item comes back.
    #[cfg(feature = "std")]
    #[doc(alias = "send")]
    #[doc(alias = "enqueue")]
    #[doc(alias = "transfer")]
    #[inline]
    pub fn put(&self, item: T) -> Result<(), Closed<T>> {
        self.put_with(item, &WaitLimit::new()).map_err(|error| Closed(error.into_inner()))
    }

    /// Takes an item; waits until there is one.
    ///
    /// # Errors
    /// The queue is closed.
    #[cfg(feature = "std")]
    #[doc(alias = "recv")]
    #[doc(alias = "dequeue")]
    #[inline]
    pub fn take(&self) -> Result<T, Closed> {
        self.take_with(&WaitLimit::new()).map_err(|_| Closed(()))
    }

    /// Hands the item to a take that waits, if there is one. Never waits.
    ///
    /// # Errors
    /// No take waits, or the queue is closed. The item comes back.
    #[doc(alias = "offer")]
    #[doc(alias = "try_send")]
    #[doc(alias = "try_transfer")]
    #[inline]
    pub fn try_put(&self, item: T) -> Result<(), TryPushError<T>> {
        each!(&self.shape, dual => dual::try_put(dual, item))
    }

    /// Takes the item of a put that waits, if there is one. Never waits.
    ///
    /// # Errors
    /// No put waits, or the queue is closed.
    #[doc(alias = "poll")]
    #[doc(alias = "try_recv")]
    #[inline]
    pub fn try_take(&self) -> Result<T, TryPopError> {
        each!(&self.shape, dual => dual::try_take(dual))
    }

    /// Hands the item over, if a take comes within the time. With a time of 0 it is registered all the same, for a
    /// moment.
    ///
    /// # Errors
    /// The time is up, or the queue is closed. The item comes back.
    #[cfg(feature = "std")]
    #[doc(alias = "offer")]
    #[doc(alias = "send_timeout")]
    pub fn put_timeout(&self, item: T, timeout: Duration) -> Result<(), PushTimeoutError<T>> {
        self.put_with(item, &WaitLimit::new().timeout(timeout))
    }

    /// Takes an item, if one comes within the time. With a time of 0 it is registered all the same, for a moment.
    ///
    /// # Errors
    /// The time is up, or the queue is closed.
    #[cfg(feature = "std")]
    #[doc(alias = "poll")]
    #[doc(alias = "recv_timeout")]
    pub fn take_timeout(&self, timeout: Duration) -> Result<T, PopTimeoutError> {
        self.take_with(&WaitLimit::new().timeout(timeout))
    }

    /// Hands the item over, if a take comes within the limit.
    ///
    /// ```
    /// use corelane::error::{PopTimeoutError, PushTimeoutError};
    /// use corelane::handoff::{CancelToken, Fairness, SynchronousQueue, WaitLimit};
    ///
    /// let queue = SynchronousQueue::new(Fairness::Unfair);
    /// let stop = CancelToken::new();
    /// let limit = WaitLimit::new().cancel(&stop);
    /// stop.cancel();
    /// assert_eq!(queue.put_with(1, &limit), Err(PushTimeoutError::Cancelled(1)));
    /// assert_eq!(queue.take_with(&limit), Err(PopTimeoutError::Cancelled));
    /// ```
    ///
    /// # Errors
    /// The limit was reached, or the queue is closed. The item comes back.
    #[cfg(feature = "std")]
    #[doc(alias = "send")]
    #[inline]
    pub fn put_with(&self, item: T, limit: &WaitLimit<'_>) -> Result<(), PushTimeoutError<T>> {
        each!(&self.shape, dual => waiting::put(dual, item, limit)).map(drop)
    }

    /// Takes an item, if one comes within the limit. [`put_with`](Self::put_with) has an example.
    ///
    /// # Errors
    /// The limit was reached, or the queue is closed.
    #[cfg(feature = "std")]
    #[doc(alias = "recv")]
    #[inline]
    pub fn take_with(&self, limit: &WaitLimit<'_>) -> Result<T, PopTimeoutError> {
        each!(&self.shape, dual => waiting::take(dual, limit))
    }

    /// Hands over as many items as find a take that waits, the first ones first, and returns how many. The others stay
    /// in the vector. Never waits.
    ///
    /// ```
    /// use corelane::error::TryPushError;
    /// use corelane::handoff::{Fairness, SynchronousQueue};
    ///
    /// let queue = SynchronousQueue::new(Fairness::Fair);
    /// let mut ticket = queue.reserve_take();
    /// let mut items = vec!['a', 'b'];
    /// assert_eq!(queue.try_put_batch(&mut items), Ok(1));
    /// assert_eq!((ticket.try_followup(), &items[..]), (Some(Ok('a')), &['b'][..]));
    /// assert_eq!(queue.try_put_batch(&mut items), Err(TryPushError::Full(())));
    /// ```
    ///
    /// # Errors
    /// None was handed over: no take waits, or the queue is closed. All items are still in the vector. An empty vector
    /// is no error.
    #[doc(alias = "try_send_many")]
    pub fn try_put_batch(&self, items: &mut Vec<T>) -> Result<usize, TryPushError<()>> {
        each!(&self.shape, dual => dual::try_put_batch(dual, items))
    }

    /// Takes the items of puts that wait, at most `max`, appends them, and returns how many. Never waits.
    ///
    /// ```
    /// use corelane::error::TryPopError;
    /// use corelane::handoff::{Fairness, SynchronousQueue};
    ///
    /// let queue = SynchronousQueue::new(Fairness::Fair);
    /// let tickets = [queue.reserve_put('a'), queue.reserve_put('b')];
    /// let mut items = Vec::new();
    /// assert_eq!(queue.try_take_batch(&mut items, 10), Ok(2));
    /// assert_eq!(items, ['a', 'b']);
    /// assert_eq!(queue.try_take_batch(&mut items, 10), Err(TryPopError::Empty));
    /// # drop(tickets);
    /// ```
    ///
    /// # Errors
    /// There was none: no put waits, or the queue is closed. A `max` of 0 is no error.
    #[doc(alias = "drain_into")]
    #[doc(alias = "recv_many")]
    pub fn try_take_batch(&self, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError> {
        each!(&self.shape, dual => dual::try_take_batch(dual, items, max))
    }

    /// Registers a take. See [`TakeTicket`].
    pub fn reserve_take(&self) -> TakeTicket<'_, T> {
        TakeTicket::new(&self.shape)
    }

    /// Registers a put. See [`PutTicket`].
    pub fn reserve_put(&self, item: T) -> PutTicket<'_, T> {
        PutTicket::new(&self.shape, item)
    }

    /// Sends every waiting thread away; every call that begins later fails. A queue that is closed stays closed.
    pub fn close(&self) {
        each!(&self.shape, dual => dual.close());
    }

    /// True once [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        each!(&self.shape, dual => dual.is_closed())
    }

    /// How many takes wait. An estimate while others call; walks over all that wait.
    ///
    /// ```
    /// use corelane::handoff::{Fairness, SynchronousQueue};
    ///
    /// let queue = SynchronousQueue::<u32>::new(Fairness::Fair);
    /// let tickets = [queue.reserve_take(), queue.reserve_take()];
    /// assert_eq!((queue.waiting_takes(), queue.waiting_puts()), (2, 0));
    /// # drop(tickets);
    /// ```
    #[must_use]
    pub fn waiting_takes(&self) -> usize {
        each!(&self.shape, dual => dual.count(false))
    }

    /// How many puts wait. An estimate while others call; walks over all that wait.
    /// [`waiting_takes`](Self::waiting_takes) has an example.
    #[must_use]
    pub fn waiting_puts(&self) -> usize {
        each!(&self.shape, dual => dual.count(true))
    }

    /// How many nodes the queue has allocated, in use or not.
    #[doc(hidden)]
    #[must_use]
    pub fn nodes(&self) -> usize {
        each!(&self.shape, dual => dual.pool().nodes())
    }
}

debug! { [T: Send] SynchronousQueue<[T]>: self, fairness: self.fairness(), closed: self.is_closed() }
