//! Two threads meet and swap items.
//!
//! Source: the exchange channel that section 5 of "Scalable Synchronous Queues" (Scherer, Lea, Scott) names as the use of elimination: W. N.
//! Scherer, D. Lea and M. L. Scott, "A Scalable Elimination-based Exchange Channel" (2005).
//!
//! # How it works
//!
//! 1. The places are those of an [arena](super::arena). The first is the main one; at first it is the only one that is used.
//! 2. A request goes to a place. If a partner waits there it decides its node's word by one compare-and-swap, in which it names the node that
//!    holds its own item; then each has the other's node, and takes the item from it. If the place is empty, the request waits there.
//! 3. At the main place it waits as long as patience lasts. Elsewhere it waits for a moment, withdraws, and goes on to the place of half the
//!    number, so it comes to the main one in the end: two requests that wait at different places are not kept apart.
//! 4. `close` raises a flag in each place, after which nobody can wait there, and then goes through the places like a partner that has nothing
//!    to give.
//!
//! # Synchronization
//!
//! That of the [arena](super::arena), and:
//!
//! - word, compare-and-swap acquire-release (match): what either thread did before its call is visible to the other after.
//! - place, fetch-or acquire-release of `CLOSED`: what the closing thread did before is visible to those who find it closed.
//!
//! # Progress
//!
//! Lock-free: who fails to match or to wait at a place was disturbed by another thread's success. A request that waits reads its own node's
//! word only. A thread that is stopped anywhere keeps no other thread from its partner.
//!
//! # When to use it, and when not
//!
//! Where threads work in pairs on equal terms: a full buffer for an empty one, halves of two candidates. Who comes is matched
//! with whoever is there; nobody chooses. When one side gives and the other takes, a [`SynchronousQueue`](super::SynchronousQueue) says so and
//! pairs the right ones. The arena only helps where so many threads come at the same time that they get in each other's way at one cache line.
//!
//! # Memory
//!
//! Sixteen places of 128 bytes, and a node of at least 128 bytes for each request that waits.

use super::arena::{Arena, Meeting, Visit};
use super::dual::{Answer, Dual, Fate, Incoming, Otherwise};
use super::pool::{Index, Pool};
use super::waiting::{self, End, Patience};
use crate::error::{Closed, ExchangeError};
use crate::sync::retry;
use core::fmt;

/// The main place, where a request may wait for long.
const MAIN: usize = 0;

/// A place where two threads meet and swap items.
///
/// ```
/// use corelane::handoff::Exchanger;
///
/// let exchanger = Exchanger::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(exchanger.exchange("an empty buffer"), Ok("a full one")));
///     assert_eq!(exchanger.exchange("a full one"), Ok("an empty buffer"));
/// });
/// ```
///
/// Each item goes to exactly one partner, which gives its own for it, or comes back to its owner. When several things have happened, a
/// partner goes before a cancellation, and a cancellation before the end of the time.
pub struct Exchanger<T: Send> {
    meetings: Meetings<T>,
}

struct Meetings<T> {
    arena: Arena,
    pool: Pool<T>,
}

impl<T: Send> Exchanger<T> {
    /// An exchanger where nobody waits.
    pub fn new() -> Self {
        Self { meetings: Meetings { arena: Arena::new(), pool: Pool::new() } }
    }

    /// Waits for a partner, and returns its item for this one.
    ///
    /// # Errors
    /// The exchanger is closed. The item comes back.
    pub fn exchange(&self, item: T) -> Result<T, Closed<T>> {
        self.exchange_with(item, &Patience::new()).map_err(|error| Closed(error.into_inner()))
    }

    /// Waits for a partner as long as patience lasts, and returns its item for this one.
    ///
    /// ```
    /// use corelane::error::ExchangeError;
    /// use corelane::handoff::{Exchanger, Patience};
    /// use std::time::Duration;
    ///
    /// let exchanger = Exchanger::new();
    /// let patience = Patience::new().timeout(Duration::from_millis(1));
    /// assert_eq!(exchanger.exchange_with(7, &patience), Err(ExchangeError::Timeout(7)));
    /// ```
    ///
    /// # Errors
    /// Patience ended, or the exchanger is closed. The item comes back.
    pub fn exchange_with(&self, item: T, patience: &Patience<'_>) -> Result<T, ExchangeError<T>> {
        const ITEM: &str = "each outcome of an exchange has an item";
        let index = match self.meetings.request(Some(item), Otherwise::Wait) {
            Answer::Matched(item) => return Ok(item.expect(ITEM)),
            Answer::Closed(item) => return Err(ExchangeError::Closed(item.expect(ITEM))),
            Answer::Waits(index) => index,
            Answer::Alone(_) => unreachable!("it waits"),
        };
        // SAFETY: just registered, and forgotten.
        match unsafe { waiting::wait(&self.meetings, index, patience) } {
            Ok(Fate::Matched(item)) => Ok(item.expect(ITEM)),
            Ok(Fate::Closed(item)) => Err(ExchangeError::Closed(item.expect(ITEM))),
            Err((End::Cancelled, item)) => Err(ExchangeError::Cancelled(item.expect(ITEM))),
            Err((End::TimedOut, item)) => Err(ExchangeError::Timeout(item.expect(ITEM))),
        }
    }

    /// Sends every waiting thread away, with its item; every call that begins later fails. An exchanger that is closed stays closed.
    pub fn close(&self) {
        self.meetings.close();
    }

    /// True once [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.meetings.is_closed()
    }

    /// How many nodes the exchanger has allocated, in use or not.
    #[doc(hidden)]
    pub fn nodes(&self) -> usize {
        self.meetings.pool.nodes()
    }
}

impl<T> Dual<T> for Meetings<T> {
    fn pool(&self) -> &Pool<T> {
        &self.pool
    }

    /// Each request is an exchange, and waits.
    fn request(&self, item: Option<T>, _: Otherwise) -> Answer<T> {
        let mut mine = Incoming::swap(&self.pool, item.expect("an exchange has an item"));
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

impl<T: Send> fmt::Debug for Exchanger<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchanger").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}
