//! Handing items from thread to thread, with no buffer between them.
//!
//! A put waits for a take, a take waits for a put; they meet and go on in pairs. Any number of threads on both sides.
//!
//! | you want | take |
//! |---|---|
//! | the highest rate; work for whoever is awake, threads that are not needed stay asleep | [`SynchronousQueue`], [`Unfair`](Fairness::Unfair) |
//! | whoever has waited longest to be served first | [`SynchronousQueue`], [`Fair`](Fairness::Fair) |
//! | items that may be left behind, beside some whose taking is waited for | [`TransferQueue`] |
//! | an item for an item, between equals | [`Exchanger`] |
//! | a request now and its outcome later, or several requests at once | [tickets](TakeTicket): `reserve_take`, `reserve_put`, and [`select`] |
//!
//! [`baseline`] holds what the paper compares with.
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
//!         queue.put(item).expect("nobody has closed it"); // Returns when the other thread has the item.
//!     }
//!     queue.close();
//! });
//! ```
//!
//! # Promises
//!
//! - An item that is put is taken by exactly one take, or comes back to its put. Neither outcome is in doubt: one
//!   compare-and-swap of one word decides. So an [`offer`](SynchronousQueue::offer) either hands its item to a take that waited, or returns
//!   it; nothing is in between.
//!
//! ```
//! # use corelane::handoff::{Fairness, SynchronousQueue};
//! use corelane::error::{OfferError, PopError};
//!
//! let queue = SynchronousQueue::new(Fairness::Fair);
//! assert_eq!(queue.offer('a'), Err(OfferError::NoTaker('a')));
//! assert_eq!(queue.poll(), Err(PopError::Empty));
//! let mut ticket = queue.reserve_take();
//! assert_eq!(queue.offer('a'), Ok(()));
//! assert_eq!(ticket.try_followup(), Some(Ok('a')));
//! ```
//!
//! - What a thread did before a put is visible after the take that got the item; what it did before a take that waited is
//!   visible after the put that found it.
//! - A wait may be given an end ([`Patience`]): a time, a [`CancelToken`]. When several things have happened, a partner goes before a
//!   cancellation, and a cancellation before the time.
//! - [`close`](SynchronousQueue::close) sends every waiting thread away, puts with their items; every later call fails.
//!
//! ```
//! # use corelane::handoff::{Fairness, SynchronousQueue};
//! use corelane::error::{Closed, Drained};
//!
//! let queue = SynchronousQueue::new(Fairness::Unfair);
//! let mut ticket = queue.reserve_put(5);
//! queue.close();
//! assert_eq!(ticket.try_followup(), Some(Err(Closed(5))));
//! assert_eq!(queue.put(6), Err(Closed(6)));
//! assert_eq!(queue.take(), Err(Drained));
//! ```
//!
//! - Lock-free: a thread that is stopped anywhere keeps no other thread from its partner. Contention-free: a request that waits reads
//!   one word of its own until that changes. (A [`CancelToken`] has a lock, which a thread takes before it sleeps.)
//! - A thread that waits spins only while it is next in line, for a quarter of what it takes to sleep and be woken here, as measured. While
//!   other threads want its CPU it gives way to them, 64 times at most. Then it sleeps. Idle queues use no CPU.
//! - Memory is bounded by the number of requests that wait at once, however many came and gave up.
//!
//! # How it is built
//!
//! [`dual_queue`] and [`dual_stack`] are the algorithms, [`pool`] holds their nodes, [`dual`] is what they have in common: a request and
//! its follow-up. [`waiting`] spends the time between the two. [`exchanger`] pairs requests of one kind in an [`arena`].
#![allow(rustdoc::private_intra_doc_links)]

#[cfg(feature = "std")]
mod arena;
#[cfg(feature = "std")]
pub mod baseline;
mod dual;
mod dual_queue;
mod dual_stack;
#[cfg(feature = "std")]
mod exchanger;
mod pool;
#[cfg(feature = "std")]
mod select;
mod ticket;
mod transfer;
#[cfg(feature = "std")]
mod waiting;

#[cfg(feature = "std")]
pub use exchanger::Exchanger;
#[cfg(feature = "std")]
pub use select::{Pending, select};
pub use ticket::{PutTicket, TakeTicket};
pub use transfer::TransferQueue;
#[cfg(feature = "std")]
pub use waiting::{CancelToken, Patience};

#[cfg(feature = "std")]
use crate::error::{Closed, Drained, OfferTimeoutError, PopTimeoutError, PutError, TakeError};
use crate::error::{OfferError, PopError};
use core::fmt;
use dual::{Chain, Dual};
use dual_queue::DualQueue;
use dual_stack::DualStack;
#[cfg(feature = "std")]
use std::time::Duration;

/// Which of several waiting threads is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// The one that has waited longest. With more threads than cores each hand-over then has to wake a thread that sleeps.
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
pub struct SynchronousQueue<T: Send> {
    shape: Shape<T>,
}

impl<T: Send> SynchronousQueue<T> {
    /// A queue that nobody waits in.
    pub fn new(fairness: Fairness) -> Self {
        let shape = match fairness {
            Fairness::Fair => Shape::Queue(DualQueue::new(false)),
            Fairness::Unfair => Shape::Stack(DualStack::new()),
        };
        Self { shape }
    }

    /// An [unfair](Fairness::Unfair) queue with an elimination arena: threads that get in each other's way at the queue meet beside it.
    ///
    /// For machines with many cores, and only if it measures better there. Who comes at a bad moment stays beside the queue for a microsecond,
    /// where a partner seldom is, instead of trying again. On two cores a hand-over took 1.3 µs with 8 threads on each side and 1.4 µs with
    /// 32, and 0.3 µs without elimination.
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

    /// Hands the item to a take that waits, if there is one. Never waits.
    ///
    /// # Errors
    /// No take waits, or the queue is closed. The item comes back.
    #[inline]
    pub fn offer(&self, item: T) -> Result<(), OfferError<T>> {
        each!(&self.shape, dual => dual::offer(dual, item))
    }

    /// Takes the item of a put that waits, if there is one. Never waits.
    ///
    /// # Errors
    /// No put waits, or the queue is closed.
    #[inline]
    pub fn poll(&self) -> Result<T, PopError> {
        each!(&self.shape, dual => dual::poll(dual))
    }

    /// Offers the items one after the other until one is refused, and returns that one. `Ok` when all were handed over.
    ///
    /// # Errors
    /// As [`offer`](Self::offer), for the first item that is refused; the iterator's further items are not asked for.
    pub fn try_extend(&self, items: impl IntoIterator<Item = T>) -> Result<(), OfferError<T>> {
        items.into_iter().try_for_each(|item| self.offer(item))
    }

    /// Takes the items of puts that wait, at most `max`, and appends them. Returns how many. Never waits.
    #[cfg(feature = "std")]
    pub fn drain_into(&self, items: &mut Vec<T>, max: usize) -> usize {
        each!(&self.shape, dual => dual::drain_into(dual, items, max))
    }

    /// Hands the item over; waits until a take has it.
    ///
    /// # Errors
    /// The queue is closed. The item comes back.
    #[cfg(feature = "std")]
    #[inline]
    pub fn put(&self, item: T) -> Result<(), Closed<T>> {
        self.put_with(item, &Patience::new()).map_err(|error| Closed(error.into_inner()))
    }

    /// Takes an item; waits until there is one.
    ///
    /// # Errors
    /// The queue is closed.
    #[cfg(feature = "std")]
    #[inline]
    pub fn take(&self) -> Result<T, Drained> {
        self.take_with(&Patience::new()).map_err(|_| Drained)
    }

    /// Hands the item over, if a take comes before patience ends.
    ///
    /// # Errors
    /// Patience ended, or the queue is closed. The item comes back.
    #[cfg(feature = "std")]
    #[inline]
    pub fn put_with(&self, item: T, patience: &Patience<'_>) -> Result<(), PutError<T>> {
        each!(&self.shape, dual => waiting::put(dual, item, patience))
    }

    /// Takes an item, if one comes before patience ends.
    ///
    /// # Errors
    /// Patience ended, or the queue is closed.
    #[cfg(feature = "std")]
    #[inline]
    pub fn take_with(&self, patience: &Patience<'_>) -> Result<T, TakeError> {
        each!(&self.shape, dual => waiting::take(dual, patience))
    }

    /// Hands the item over, if a take comes within the time. With a time of 0 it is registered all the same, for a moment.
    ///
    /// # Errors
    /// The time is up, or the queue is closed. The item comes back.
    #[cfg(feature = "std")]
    pub fn offer_timeout(&self, item: T, timeout: Duration) -> Result<(), OfferTimeoutError<T>> {
        waiting::offer_timeout(self.put_with(item, &Patience::new().timeout(timeout)))
    }

    /// Takes an item, if one comes within the time. With a time of 0 it is registered all the same, for a moment.
    ///
    /// # Errors
    /// The time is up, or the queue is closed.
    #[cfg(feature = "std")]
    pub fn poll_timeout(&self, timeout: Duration) -> Result<T, PopTimeoutError> {
        waiting::poll_timeout(self.take_with(&Patience::new().timeout(timeout)))
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
    pub fn waiting_takes(&self) -> usize {
        each!(&self.shape, dual => dual.count(false))
    }

    /// How many puts wait. An estimate while others call; walks over all that wait.
    pub fn waiting_puts(&self) -> usize {
        each!(&self.shape, dual => dual.count(true))
    }

    /// How many nodes the queue has allocated, in use or not.
    #[doc(hidden)]
    pub fn nodes(&self) -> usize {
        each!(&self.shape, dual => dual.pool().nodes())
    }
}

impl<T: Send> fmt::Debug for SynchronousQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SynchronousQueue")
            .field("fairness", &self.fairness())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
