//! Waiting for several tickets at once.
//!
//! Source: the reservations of section 2.2 of "Scalable Synchronous Queues" (Scherer, Lea, Scott), of which this follows: requests in
//! several queues are registered one by one, and their thread waits until one of them is decided.
//!
//! # How it works
//!
//! 1. A thread has a place to sleep of its own, beside the one in each node. It lives as long as the process, and is used by another thread
//!    when this one ends.
//! 2. To sleep, the thread writes in each of its nodes where it sleeps, marks the node's word `PARKED`, looks at all words once more, and
//!    sleeps. Who decides a request that is parked wakes its owner there.
//! 3. Awake, it takes the marks back.
//!
//! # Synchronization
//!
//! - word, compare-and-swap-release of `PARKED` (owner) → compare-and-swap-acquire of the fate (partner): where the owner sleeps is written
//!   before it is read. A partner that comes late, when the node has another owner, wakes a thread that looks again: every place to sleep
//!   exists for ever.

use super::pool::Sleeper;
use super::waiting::{self, WaitLimit};
use crate::sync::{Instant, spin_loop};

/// A ticket that a thread can wait for together with others: [`TakeTicket`](super::TakeTicket), [`PutTicket`](super::PutTicket) and
/// references to them.
pub trait Pending {
    #[doc(hidden)]
    fn is_decided(&self) -> bool;
    #[doc(hidden)]
    fn is_spent(&self) -> bool;
    #[doc(hidden)]
    fn is_next(&self) -> bool;
    #[doc(hidden)]
    fn arm(&self, sleeper: Sleeper);
    #[doc(hidden)]
    fn disarm(&self);
}

impl<P: Pending + ?Sized> Pending for &mut P {
    fn is_decided(&self) -> bool {
        (**self).is_decided()
    }

    fn is_spent(&self) -> bool {
        (**self).is_spent()
    }

    fn is_next(&self) -> bool {
        (**self).is_next()
    }

    fn arm(&self, sleeper: Sleeper) {
        (**self).arm(sleeper);
    }

    fn disarm(&self) {
        (**self).disarm();
    }
}

/// Waits until one of the tickets is decided, and returns the index of the first that is: its
/// [`try_followup`](super::TakeTicket::try_followup) has the outcome. `None` if the limit comes first. The tickets stay
/// what they are; one that has given its outcome is passed over.
///
/// ```
/// use corelane::handoff::{Fairness, Pending, SynchronousQueue, WaitLimit, select};
///
/// let (letters, numbers) = (SynchronousQueue::new(Fairness::Fair), SynchronousQueue::new(Fairness::Unfair));
/// std::thread::scope(|scope| {
///     scope.spawn(|| numbers.put(7).unwrap());
///     let (mut letter, mut number) = (letters.reserve_take(), numbers.reserve_take());
///     let tickets: &mut [&mut dyn Pending] = &mut [&mut letter, &mut number];
///     assert_eq!(select(tickets, &WaitLimit::new()), Some(1));
///     assert_eq!(number.try_followup(), Some(Ok(7)));
///     // The other request is still registered; it may have been matched meanwhile.
///     assert_eq!(letter.abort(), None::<char>);
/// });
/// ```
///
/// Each request is matched on its own: when one is decided, others may be as well. A thread that registers a put and a take in the same queue
/// is a partner to itself like any other.
///
/// # Panics
/// If every ticket has given its outcome and nothing limits the wait.
pub fn select<P: Pending>(tickets: &mut [P], limit: &WaitLimit<'_>) -> Option<usize> {
    let decided = || tickets.iter().position(P::is_decided);
    let pending = tickets.iter().any(|ticket| !ticket.is_spent());
    assert!(pending || limit.has_end(), "a wait for no ticket and without an end");
    if waiting::spins() && tickets.iter().any(P::is_next) {
        let until = limit.sooner(Instant::now() + waiting::spin_time());
        while decided().is_none() && Instant::now() < until {
            spin_loop();
        }
    }
    let sleeper = Sleeper::of_this_thread();
    loop {
        let first = decided();
        if first.is_some() || limit.is_over() {
            return first;
        }
        tickets.iter().for_each(|ticket| ticket.arm(sleeper));
        if decided().is_none() {
            limit.sleep(sleeper.token());
        }
        tickets.iter().for_each(P::disarm);
    }
}
