//! The elimination arena: places beside the main one where two requests may meet.
//!
//! Source: section 5 of "Scalable Synchronous Queues" (Scherer, Lea, Scott), after N. Shavit and D. Touitou,
//! "Elimination Trees and the Construction of Pools and Stacks" (1997), and D. Hendler, N. Shavit and L. Yerushalmi, "A
//! Scalable Lock-Free Stack Algorithm" (2004).
//!
//! # How it works
//!
//! 1. A row of places, each a link on lines of its own: to the node of a request that waits there, or to nothing. A
//!    flag says which kind the request is.
//! 2. A request goes to a place at random. If a partner waits there, the request matches it by one compare-and-swap of
//!    its node's word, and takes it out of the place by another. If the place is empty, the request leaves its own node
//!    there, and stays for a moment.
//! 3. If no partner comes, the request withdraws, and takes its node out again. A thread that finds a node that does
//!    not wait any more takes it out.
//! 4. Only the first few places are used, one at first. One more is used when requests get in each other's way, one
//!    less when a request waited in the last one in vain.
//!
//! # Synchronization
//!
//! - place, compare-and-swap-release (stay) → load-acquire (visitor): a request is complete before it is found. Its
//!   node may be that of another request by the time its word is read, here or elsewhere. If that one waits it is as
//!   good a partner: it came during this call, as if this one had met it just then. The word says in which life it
//!   waits, so the match is with that life or fails. The tag of the link keeps the place from being emptied of what has
//!   come since.
//! - word: see [`pool`](super::pool).
//! - place, compare-and-swap-release (take out) → credit: a node is freed only when no place links to it. The thread
//!   that takes it out brings the credit, and the tag admits only one.
//!
//! # Memory
//!
//! 128 bytes a place, and a node for each of them at most.

use super::dual::{Answer, Fate, Incoming, follow_up, wake, withdraw};
use super::pool::{AtomicLink, Index, Link, NULL, Pool, Word};
use super::waiting;
use crate::sync::{Instant, Padded, Relaxed, retry};
use alloc::boxed::Box;
// Not loom's: what is learnt changes no order.
use core::sync::atomic::AtomicUsize;
use std::time::Duration;

/// In a place: no request will ever wait here again.
const CLOSED: u64 = Link::FLAG_A;
/// In a place: the request that waits here is a put.
const DATA: u64 = Link::FLAG_B;

/// Places of an arena.
const PLACES: usize = if cfg!(corelane_loom) { 2 } else { 16 };
/// One more place is used after a request met so many others that it could not match.
const COLLISIONS: usize = if cfg!(corelane_loom) { 1 } else { 2 };
/// How long a request stays.
const STAY: Duration = Duration::from_nanos(1_000);

/// The places.
pub(super) struct Arena {
    places: Box<[Padded<AtomicLink>]>,
    /// How many of them are used.
    used: Padded<AtomicUsize>,
}

/// What a request found at a place.
pub(super) enum Look {
    /// One that waited, and was matched with it.
    Matched,
    /// No request waits there.
    Empty,
    /// Another thread was faster, or the request that waits is no partner.
    Collided,
    Closed,
}

/// What happened to a request at a place.
pub(super) enum Visit {
    /// It was matched with the one that waited.
    Matched,
    /// It waits there.
    Stays(Index),
    /// Another thread was faster, or the request that waits is no partner.
    Collided,
    Closed,
}

/// What happened to a request that stayed for a moment at most.
pub(super) enum Meeting<'a, T> {
    Over(Answer<T>),
    /// No partner came.
    Alone(Incoming<'a, T>),
    /// As above.
    Collided(Incoming<'a, T>),
}

impl Arena {
    pub(super) fn new() -> Self {
        Self { places: (0..PLACES).map(|_| Padded(AtomicLink::new(NULL))).collect(), used: Padded(AtomicUsize::new(1)) }
    }

    /// One of the places that are used.
    pub(super) fn any(&self) -> usize {
        match self.used.load(Relaxed) {
            1 => 0,
            used => random() % used,
        }
    }

    /// The last of the places that are used.
    pub(super) fn last(&self) -> usize {
        self.used.load(Relaxed) - 1
    }

    /// Uses one more place, if a request collided so often since it came or since this was last true.
    pub(super) fn widen(&self, collisions: &mut usize) {
        *collisions += 1;
        let used = self.used.load(Relaxed);
        if *collisions >= COLLISIONS && used < PLACES {
            *collisions = 0;
            let _ = self.used.compare_exchange(used, used + 1, Relaxed, Relaxed);
        }
    }

    /// Uses one place less, if no partner came to the last one.
    pub(super) fn narrow(&self, place: usize) {
        if place > 0 {
            let _ = self.used.compare_exchange(place + 1, place, Relaxed, Relaxed);
        }
    }

    /// Matches the request with a partner that waits at the place, if there is one.
    pub(super) fn look<T>(&self, place: usize, mine: &mut Incoming<'_, T>) -> Look {
        let place = &self.places[place];
        let link = place.load();
        if link.has(CLOSED) {
            Look::Closed
        } else if link.is_null() {
            Look::Empty
        } else if meet_there(place, link, mine) {
            Look::Matched
        } else {
            Look::Collided
        }
    }

    /// Matches the request with a partner that waits at the place, or leaves it there.
    pub(super) fn visit<T>(&self, place: usize, mine: &mut Incoming<'_, T>) -> Visit {
        let pool = mine.pool();
        let place = &self.places[place];
        let link = place.load();
        if link.has(CLOSED) {
            return Visit::Closed;
        }
        if link.is_null() {
            let index = mine.node();
            let node = pool.node(index);
            node.become_request(0);
            if place.change(link, link.to(index, if mine.is_data() { DATA } else { 0 })) {
                return Visit::Stays(index);
            }
            node.become_held();
            return Visit::Collided;
        }
        if meet_there(place, link, mine) { Visit::Matched } else { Visit::Collided }
    }

    /// As [`visit`](Self::visit), and stays for a moment at most.
    pub(super) fn meet<'a, T>(&self, place: usize, mut mine: Incoming<'a, T>) -> Meeting<'a, T> {
        let pool = mine.pool();
        let index = match self.visit(place, &mut mine) {
            Visit::Matched => return Meeting::Over(mine.matched()),
            Visit::Closed => return Meeting::Over(Answer::Closed(mine.back())),
            Visit::Collided => return Meeting::Collided(mine),
            Visit::Stays(index) => index,
        };
        if waiting::spins() {
            waiting::spin(pool.node(index), Instant::now() + STAY);
        } else {
            retry();
        }
        // SAFETY: the request was just registered; when it is withdrawn no caller asks for it again.
        if let Some(item) = unsafe { withdraw(pool, index, || self.forget(pool, index)) } {
            self.narrow(place);
            return Meeting::Alone(mine.again(item));
        }
        // SAFETY: as above; it was decided, so there is an answer.
        Meeting::Over(match unsafe { follow_up(pool, index) }.expect("decided") {
            Fate::Matched(item) => Answer::Matched(item),
            Fate::Closed(item) => Answer::Closed(item),
        })
    }

    /// Takes a node that was just cancelled out of its place, unless another thread has done so. The node's owner calls
    /// this before it gives the node up.
    pub(super) fn forget<T>(&self, pool: &Pool<T>, index: Index) {
        for place in &self.places {
            let link = place.load();
            if link.index() == index {
                return take_out(pool, place, link);
            }
        }
    }

    /// No request waits at any place from here on; those that wait there learn of it.
    pub(super) fn close<T>(&self, pool: &Pool<T>) {
        for place in &self.places {
            place.raise(CLOSED);
        }
        for place in &self.places {
            loop {
                let link = place.load();
                if link.is_null() {
                    break;
                }
                let node = pool.node(link.index());
                let word = node.word();
                // A later life waits at a place that is closed as well.
                if !word.is_waiting() {
                    take_out(pool, place, link);
                } else if node.change(word, word.closed()) {
                    take_out(pool, place, link);
                    wake(node, word);
                }
                retry();
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.places[0].load().has(CLOSED)
    }
}

/// Matches the request with the one that the link of a place leads to, if that waits and is a partner.
fn meet_there<T>(place: &AtomicLink, link: Link, mine: &mut Incoming<'_, T>) -> bool {
    let pool = mine.pool();
    let index = link.index();
    let node = pool.node(index);
    // In this life or a later one.
    let word = node.word();
    if !word.is_waiting() {
        take_out(pool, place, link);
        return false;
    }
    if !mine.suits(word) || !mine.match_with(index, word) {
        return false;
    }
    take_out(pool, place, link);
    if word.is_data() {
        pool.credit(index, Word::READ);
    }
    wake(node, word);
    true
}

/// Takes a node that does not wait any more out of its place, unless another thread has done so.
fn take_out<T>(pool: &Pool<T>, place: &AtomicLink, link: Link) {
    // The tag: this node in this life, or the change fails.
    if place.change(link, link.to(NULL, link.flags() & CLOSED)) {
        pool.credit(link.index(), Word::UNLINKED);
    }
}

/// An unpredictable number, of this thread. Marsaglia's xorshift.
#[cfg(not(any(corelane_loom, corelane_shuttle)))]
fn random() -> usize {
    std::thread_local! {
        static STATE: core::cell::Cell<u32> = const { core::cell::Cell::new(0) };
    }
    let mut state = match STATE.get() {
        0 => super::clock::clock(),
        state => state,
    };
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    STATE.set(state);
    state as usize
}

/// Shuttle draws it, so that it comes again with the schedule.
#[cfg(corelane_shuttle)]
fn random() -> usize {
    shuttle::rand::Rng::r#gen(&mut shuttle::rand::thread_rng())
}

/// A model is the same each time: the last of two places.
#[cfg(corelane_loom)]
fn random() -> usize {
    1
}
