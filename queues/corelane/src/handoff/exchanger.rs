//! Two threads meet and swap items.
//!
//! # Promises
//!
//! - **Lock-free.** A thread that fails to match or to wait at a place was disturbed by another thread's success. A
//!   thread that is stopped anywhere keeps no other thread from its partner.
//! - **Contention-free.** A request that waits reads its own node's word only.
//! - **Memory.** Sixteen places of 128 bytes, and a node of at least 128 bytes for each request that waits.
//!
//! # When to use it, and when not
//!
//! Use it where threads work in pairs on equal terms: a full buffer for an empty one, halves of two candidates. A
//! thread that comes is matched with any that is there; none chooses its partner. The arena only helps where so many
//! threads come at the same time that they get in each other's way at one cache line.
//!
//! Do not use it where one side gives and the other takes: a [`SynchronousQueue`](super::SynchronousQueue) says so and
//! pairs the right ones.
//!
//! # How it works
//!
//! Source: the exchange channel that section 5 of "Scalable Synchronous Queues" (Scherer, Lea, Scott) names as the use
//! of elimination: W. N. Scherer, D. Lea and M. L. Scott, "A Scalable Elimination-based Exchange Channel" (2005).
//!
//! 1. The places are those of an [arena](super::arena). The first is the main one. At first it is the only one that is
//!    used.
//! 2. A request goes to a place. If a partner waits there, the request decides the partner's word by one
//!    compare-and-swap, in which it names the node that holds its own item. Then each has the other's node, and takes
//!    the item from it. If the place is empty, the request waits there.
//! 3. At the main place it waits as long as its limit allows. Elsewhere it waits for a moment, withdraws, and goes on
//!    to the place of half the number. So it comes to the main one in the end: two requests that wait at different
//!    places are not kept apart.
//! 4. A request that is not to wait looks at the places that are used, the main one last. It fails if no request waits
//!    at any.
//! 5. `close` raises a flag in each place, after which no request can wait there. Then it goes through the places like
//!    a partner that has nothing to give.
//!
//! # Synchronization
//!
//! That of the [arena](super::arena), and:
//!
//! - word, compare-and-swap acquire-release (match): what either thread did before its call is visible to the other
//!   after.
//! - place, fetch-or acquire-release of `CLOSED`: what the closing thread did before is visible to threads that find it
//!   closed.

use super::arena::{Arena, Look, Meeting, Visit};
use super::dual::{Answer, Dual, Incoming, Otherwise};
use super::pool::{Index, Pool};
use super::waiting::{self, WaitLimit};
use crate::error::{Closed, PushTimeoutError, TryPushError};
use crate::macros::debug;
use crate::sync::retry;
use std::time::Duration;

const ITEM: &str = "each outcome of an exchange has an item";

/// The main place, where a request may wait for long.
const MAIN: usize = 0;

/// A place where two threads meet and swap items.
///
/// ```
/// use corelane::error::{Closed, PushTimeoutError, TryPushError};
/// use corelane::handoff::Exchanger;
/// use std::time::Duration;
///
/// let exchanger = Exchanger::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(exchanger.exchange("an empty buffer"), Ok("a full one")));
///     assert_eq!(exchanger.exchange("a full one"), Ok("an empty buffer"));
/// });
/// // No partner is there.
/// assert_eq!(exchanger.try_exchange("mine"), Err(TryPushError::Full("mine")));
/// let moment = Duration::from_millis(1);
/// assert_eq!(exchanger.exchange_timeout("mine", moment), Err(PushTimeoutError::Timeout("mine")));
/// exchanger.close();
/// assert!(exchanger.is_closed());
/// assert_eq!(exchanger.exchange("mine"), Err(Closed("mine")));
/// ```
///
/// Each item goes to exactly one partner, which gives its own for it, or comes back to its owner. When several things
/// have happened, a partner goes before a cancellation, and a cancellation before the end of the time.
pub struct Exchanger<T: Send> {
    meetings: Meetings<T>,
}

struct Meetings<T> {
    arena: Arena,
    pool: Pool<T>,
}

impl<T: Send> Exchanger<T> {
    /// An exchanger where no thread waits.
    pub fn new() -> Self {
        Self { meetings: Meetings { arena: Arena::new(), pool: Pool::new() } }
    }

    /// Waits for a partner, and returns its item for this one.
    ///
    /// # Errors
    /// The exchanger is closed. The item comes back.
    #[doc(alias = "swap")]
    #[doc(alias = "rendezvous")]
    pub fn exchange(&self, item: T) -> Result<T, Closed<T>> {
        self.exchange_with(item, &WaitLimit::new()).map_err(|error| Closed(error.into_inner()))
    }

    /// Swaps items with a partner that waits, if there is one. Never waits.
    ///
    /// A partner that has only just come may be missed, while it looks for its place.
    ///
    /// # Errors
    /// No partner waits, or the exchanger is closed. The item comes back.
    #[doc(alias = "try_swap")]
    pub fn try_exchange(&self, item: T) -> Result<T, TryPushError<T>> {
        match self.meetings.request(Some(item), Otherwise::Fail) {
            Answer::Matched(item) => Ok(item.expect(ITEM)),
            Answer::Alone(item) => Err(TryPushError::Full(item.expect(ITEM))),
            Answer::Closed(item) => Err(TryPushError::Closed(item.expect(ITEM))),
            Answer::Waits(_) => unreachable!("it does not wait"),
        }
    }

    /// Waits for a partner, but not longer than this, and returns its item for this one.
    ///
    /// # Errors
    /// The time is up, or the exchanger is closed. The item comes back.
    pub fn exchange_timeout(&self, item: T, timeout: Duration) -> Result<T, PushTimeoutError<T>> {
        self.exchange_with(item, &WaitLimit::new().timeout(timeout))
    }

    /// Waits for a partner within the limit, and returns its item for this one.
    ///
    /// ```
    /// use corelane::error::PushTimeoutError;
    /// use corelane::handoff::{CancelToken, Exchanger, WaitLimit};
    ///
    /// let exchanger = Exchanger::new();
    /// let stop = CancelToken::new();
    /// stop.cancel();
    /// let limit = WaitLimit::new().cancel(&stop);
    /// assert_eq!(exchanger.exchange_with(7, &limit), Err(PushTimeoutError::Cancelled(7)));
    /// ```
    ///
    /// # Errors
    /// The limit was reached, or the exchanger is closed. The item comes back.
    pub fn exchange_with(&self, item: T, limit: &WaitLimit<'_>) -> Result<T, PushTimeoutError<T>> {
        waiting::put(&self.meetings, item, limit).map(|item| item.expect(ITEM))
    }

    /// Sends every waiting thread away, with its item; every call that begins later fails. An exchanger that is closed
    /// stays closed.
    pub fn close(&self) {
        self.meetings.close();
    }

    /// True once [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.meetings.is_closed()
    }

    /// How many nodes the exchanger has allocated, in use or not.
    #[doc(hidden)]
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.meetings.pool.nodes()
    }
}

impl<T> Meetings<T> {
    /// Goes through the places as the requests do, to the main one at last, and stays at none.
    fn meet_one_that_waits(&self, mut mine: Incoming<'_, T>) -> Answer<T> {
        let mut place = self.arena.last();
        loop {
            match self.arena.look(place, &mut mine) {
                Look::Matched => return mine.matched(),
                Look::Closed => return Answer::Closed(mine.back()),
                Look::Empty if place == MAIN => return Answer::Alone(mine.back()),
                Look::Empty => place -= 1,
                Look::Collided => retry(),
            }
        }
    }
}

impl<T> Dual<T> for Meetings<T> {
    fn pool(&self) -> &Pool<T> {
        &self.pool
    }

    /// Each request is an exchange, and waits or fails.
    fn request(&self, item: Option<T>, otherwise: Otherwise) -> Answer<T> {
        let mut mine = Incoming::swap(&self.pool, item.expect("an exchange has an item"));
        if otherwise == Otherwise::Fail {
            return self.meet_one_that_waits(mine);
        }
        let mut collisions = 0;
        let mut place = self.arena.any();
        loop {
            if place == MAIN {
                match self.arena.visit(MAIN, &mut mine) {
                    Visit::Matched => return mine.matched(),
                    Visit::Stays(index) => return Answer::Waits(index),
                    Visit::Closed => return Answer::Closed(mine.back()),
                    Visit::Collided => {
                        self.arena.widen(&mut collisions);
                        place = self.arena.any();
                    }
                }
            } else {
                mine = match self.arena.meet(place, mine) {
                    Meeting::Over(answer) => return answer,
                    Meeting::Alone(mine) => {
                        place /= 2;
                        mine
                    }
                    Meeting::Collided(mine) => {
                        self.arena.widen(&mut collisions);
                        place = self.arena.any();
                        mine
                    }
                };
            }
            retry();
        }
    }

    fn is_next(&self, _: Index) -> bool {
        true
    }

    fn clean(&self, index: Index) {
        self.arena.forget(&self.pool, index);
    }

    fn close(&self) {
        self.arena.close(&self.pool);
    }

    fn is_closed(&self) -> bool {
        self.arena.is_closed()
    }
}

impl<T: Send> Default for Exchanger<T> {
    fn default() -> Self {
        Self::new()
    }
}

debug! { [T: Send] Exchanger<[T]>: self, closed: self.is_closed() }
