//! Tickets: a request and its follow-up as two calls, so that a thread may ask now and look for the outcome later.
//!
//! [`reserve_take`](super::SynchronousQueue::reserve_take) or [`reserve_put`](super::SynchronousQueue::reserve_put)
//! registers a request. That fixes its place in the order. From then on a partner that comes may decide it, whatever
//! the ticket's owner does. The owner asks for the outcome whenever it likes:
//!
//! - `try_followup` reads one word of the request's own node. Another thread writes that word once, when the request's
//!   fate is decided. However often it fails, it touches nothing that another thread works with: the paper calls this
//!   contention-free.
//! - `wait` sleeps until there is an outcome.
//! - `abort` withdraws the request. When a partner was faster, it is the last follow-up, and says so.
//!
//! A ticket that is dropped is aborted; an item that it holds or had been given is dropped with it. A ticket that is
//! forgotten stays in the queue: a partner may still decide it, and what was handed over is dropped with the queue.
//!
//! Source: section 2.2 and Listing 2 of "Scalable Synchronous Queues" (Scherer, Lea, Scott).
//!
//! # Serving several queues
//!
//! A thread may hold tickets of several queues, and look at each in turn. With a [`Select`](crate::wait::Select) it
//! sleeps until one is decided, or another end is ready.
//!
//! ```
//! use corelane::handoff::{Fairness, SynchronousQueue};
//!
//! let queues = [SynchronousQueue::new(Fairness::Fair), SynchronousQueue::new(Fairness::Fair)];
//! let mut tickets = queues.each_ref().map(|queue| queue.reserve_take());
//! assert_eq!(queues[1].try_put("for the second"), Ok(()));
//!
//! let ready = tickets.iter_mut().enumerate().find_map(|(i, ticket)| Some((i, ticket.try_followup()?)));
//! assert_eq!(ready, Some((1, Ok("for the second"))));
//! // The other one is still registered. Each ticket is matched on its own: an abort may still come back with an item.
//! let [other, _] = tickets;
//! assert_eq!(other.abort(), None);
//! ```

#[cfg(feature = "std")]
use super::waiting::{self, WaitLimit};
use super::{
    Shape,
    dual::{self, Answer, Dual, Fate, Otherwise},
    each,
    pool::Index,
};
use crate::error::{Closed, PopTimeoutError, PushTimeoutError};
#[cfg(feature = "std")]
use crate::wait::{Selectable, Sleeper, selectable};
use core::fmt;

/// Where a request stands, as far as its owner knows.
enum State<T> {
    Waits(Index),
    Decided(Fate<T>),
    /// The owner was told.
    Over,
}

struct Ticket<'q, T> {
    shape: &'q Shape<T>,
    state: State<T>,
}

impl<'q, T> Ticket<'q, T> {
    fn new(shape: &'q Shape<T>, item: Option<T>) -> Self {
        let state = match each!(shape, dual => dual.request(item, Otherwise::Wait)) {
            Answer::Matched(item) => State::Decided(Fate::Matched(item)),
            Answer::Closed(item) => State::Decided(Fate::Closed(item)),
            Answer::Waits(index) => State::Waits(index),
            Answer::Alone(_) => unreachable!("it waits"),
        };
        Self { shape, state }
    }

    #[track_caller]
    fn followup(&mut self) -> Option<Fate<T>> {
        match core::mem::replace(&mut self.state, State::Over) {
            State::Waits(index) => {
                // SAFETY: the state was `Waits`, so the request is ours and not answered.
                let fate = unsafe { each!(self.shape, dual => dual::follow_up(dual.pool(), index)) };
                if fate.is_none() {
                    self.state = State::Waits(index);
                }
                fate
            }
            State::Decided(fate) => Some(fate),
            State::Over => panic!("the ticket has told its outcome before: follow it up once only"),
        }
    }

    /// The outcome, or a put's item where there is none.
    fn abort(&mut self) -> Result<Fate<T>, Option<T>> {
        match core::mem::replace(&mut self.state, State::Over) {
            // SAFETY: the state was `Waits`, so the request is ours and not answered.
            State::Waits(index) => match unsafe {
                each!(self.shape, dual => dual::withdraw(dual.pool(), index, || dual.clean(index)))
            } {
                Some(item) => Err(item),
                // SAFETY: as above; it was decided, so there is an answer.
                None => Ok(unsafe { each!(self.shape, dual => dual::follow_up(dual.pool(), index)) }.expect("decided")),
            },
            State::Decided(fate) => Ok(fate),
            State::Over => Err(None),
        }
    }

    #[cfg(feature = "std")]
    #[track_caller]
    fn wait(mut self, limit: &WaitLimit<'_>) -> waiting::Outcome<T> {
        // A forgotten select may have left itself here.
        self.disarm();
        match core::mem::replace(&mut self.state, State::Over) {
            // SAFETY: the state was `Waits`, so the request is ours and not answered.
            State::Waits(index) => unsafe { each!(self.shape, dual => waiting::wait(dual, index, limit)) },
            State::Decided(fate) => waiting::outcome(fate),
            State::Over => panic!("the ticket has told its outcome before: follow it up once only"),
        }
    }

    fn fmt(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Waits(_) => "waits",
            State::Decided(_) => "decided",
            State::Over => "over",
        };
        f.debug_tuple(name).field(&state).finish()
    }
}

/// A [`Select`](crate::wait::Select) writes into the node where it sleeps, and marks the node's word `PARKED`: the
/// thread that decides a parked request wakes its owner there.
#[cfg(feature = "std")]
impl<T> Ticket<'_, T> {
    /// Whether a follow-up has an outcome. Never again once it was told.
    fn is_decided(&self) -> bool {
        match self.state {
            State::Waits(index) => !each!(self.shape, dual => dual.pool().node(index).word().is_waiting()),
            State::Decided(_) => true,
            State::Over => false,
        }
    }

    fn arm(&self, sleeper: Sleeper) {
        if let State::Waits(index) = self.state {
            each!(self.shape, dual => dual.pool().node(index).park(sleeper));
        }
    }

    fn disarm(&self) {
        if let State::Waits(index) = self.state {
            each!(self.shape, dual => dual.pool().node(index).unpark());
        }
    }
}

impl<T> Drop for Ticket<'_, T> {
    fn drop(&mut self) {
        drop(self.abort());
    }
}

/// A registered take.
///
/// ```
/// use corelane::error::PopTimeoutError;
/// use corelane::handoff::{Fairness, SynchronousQueue, WaitLimit};
/// use std::time::Duration;
///
/// let queue = SynchronousQueue::new(Fairness::Fair);
/// let mut first = queue.reserve_take();
/// let (second, third) = (queue.reserve_take(), queue.reserve_take());
/// assert_eq!(first.try_followup(), None);
/// queue.try_put('a').unwrap();
/// assert_eq!(first.try_followup(), Some(Ok('a')));
/// queue.try_put('b').unwrap();
/// assert_eq!(second.wait(), Ok('b'));
/// let limit = WaitLimit::new().timeout(Duration::from_millis(1));
/// assert_eq!(third.wait_with(&limit), Err(PopTimeoutError::Timeout));
/// assert_eq!(queue.reserve_take().abort(), None);
/// ```
#[must_use = "a ticket that is dropped is aborted, and the item it was given is dropped with it"]
pub struct TakeTicket<'q, T: Send>(Ticket<'q, T>);

impl<'q, T: Send> TakeTicket<'q, T> {
    pub(super) fn new(shape: &'q Shape<T>) -> Self {
        Self(Ticket::new(shape, None))
    }

    /// The item, or that the queue was closed; `None` while neither has happened.
    ///
    /// # Panics
    /// When it has returned an outcome before.
    #[track_caller]
    pub fn try_followup(&mut self) -> Option<Result<T, Closed>> {
        self.0.followup().map(taken)
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// The queue was closed.
    ///
    /// # Panics
    /// When the ticket was followed up before.
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn wait(self) -> Result<T, Closed> {
        self.wait_with(&WaitLimit::new()).map_err(|_| Closed(()))
    }

    /// Waits for the outcome within the limit, and aborts then.
    ///
    /// # Errors
    /// The limit was reached, or the queue was closed.
    ///
    /// # Panics
    /// When the ticket was followed up before.
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn wait_with(self, limit: &WaitLimit<'_>) -> Result<T, PopTimeoutError> {
        waiting::taken(self.0.wait(limit))
    }

    /// Withdraws the request. Returns the item if a put was faster.
    pub fn abort(mut self) -> Option<T> {
        self.0.abort().ok().and_then(|fate| taken(fate).ok())
    }
}

fn taken<T>(fate: Fate<T>) -> Result<T, Closed> {
    match fate {
        Fate::Matched(item) => Ok(item.expect("a matched take has an item")),
        Fate::Closed(_) => Err(Closed(())),
    }
}

impl<T: Send> fmt::Debug for TakeTicket<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt("TakeTicket", f)
    }
}

/// The two kinds of ticket wait alike.
#[cfg(feature = "std")]
macro_rules! selectable {
    ($($ticket:ident)+) => {
        $(impl<T: Send> selectable::sealed::Sealed for $ticket<'_, T> {}

        impl<T: Send> Selectable for $ticket<'_, T> {
            fn ready(&mut self, _: usize) -> bool {
                self.0.is_decided()
            }

            fn arm(&mut self, _: usize, sleeper: Sleeper) {
                self.0.arm(sleeper);
            }

            fn disarm(&mut self, _: Sleeper) {
                self.0.disarm();
            }
        })+
    };
}
#[cfg(feature = "std")]
selectable!(TakeTicket PutTicket);

/// A registered put.
///
/// ```
/// use corelane::error::PushTimeoutError;
/// use corelane::handoff::{Fairness, SynchronousQueue, WaitLimit};
/// use std::time::Duration;
///
/// let queue = SynchronousQueue::new(Fairness::Fair);
/// let mut first = queue.reserve_put('a');
/// let (second, third) = (queue.reserve_put('b'), queue.reserve_put('c'));
/// assert_eq!(first.try_followup(), None);
/// assert_eq!(queue.try_take(), Ok('a'));
/// assert_eq!(first.try_followup(), Some(Ok(())));
/// assert_eq!(queue.try_take(), Ok('b'));
/// assert_eq!(second.wait(), Ok(()));
/// let limit = WaitLimit::new().timeout(Duration::from_millis(1));
/// assert_eq!(third.wait_with(&limit), Err(PushTimeoutError::Timeout('c')));
/// assert_eq!(queue.reserve_put('d').abort(), Some('d'));
/// ```
#[must_use = "a ticket that is dropped is aborted, and its item dropped unless it was taken"]
pub struct PutTicket<'q, T: Send>(Ticket<'q, T>);

impl<'q, T: Send> PutTicket<'q, T> {
    pub(super) fn new(shape: &'q Shape<T>, item: T) -> Self {
        Self(Ticket::new(shape, Some(item)))
    }

    /// Whether the item was taken, or the queue closed; `None` while neither has happened.
    ///
    /// # Panics
    /// When it has returned an outcome before.
    #[track_caller]
    pub fn try_followup(&mut self) -> Option<Result<(), Closed<T>>> {
        self.0.followup().map(put)
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// The queue was closed; the item comes back.
    ///
    /// # Panics
    /// When the ticket was followed up before.
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn wait(self) -> Result<(), Closed<T>> {
        self.wait_with(&WaitLimit::new()).map_err(|error| Closed(error.into_inner()))
    }

    /// Waits for the outcome within the limit, and aborts then.
    ///
    /// # Errors
    /// The limit was reached, or the queue was closed; the item comes back.
    ///
    /// # Panics
    /// When the ticket was followed up before.
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn wait_with(self, limit: &WaitLimit<'_>) -> Result<(), PushTimeoutError<T>> {
        waiting::handed_over(self.0.wait(limit)).map(drop)
    }

    /// Withdraws the request and returns the item; `None` if a take was faster.
    pub fn abort(mut self) -> Option<T> {
        match self.0.abort() {
            Ok(fate) => put(fate).err().map(|closed| closed.0),
            Err(item) => item,
        }
    }
}

fn put<T>(fate: Fate<T>) -> Result<(), Closed<T>> {
    match fate {
        Fate::Matched(_) => Ok(()),
        Fate::Closed(item) => Err(Closed(item.expect("a put that fails has its item back"))),
    }
}

impl<T: Send> fmt::Debug for PutTicket<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt("PutTicket", f)
    }
}
