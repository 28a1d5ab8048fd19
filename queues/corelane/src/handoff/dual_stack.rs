//! The synchronous dual stack: a hand-off in which the request that came last is served first.
//!
//! Source: Listing 6 of "Scalable Synchronous Queues" (Scherer, Lea, Scott, CACM 2009). The stack is Treiber's (1986),
//! its unlinking that of Michael's lists (2002).
//!
//! # Promises
//!
//! - **Lock-free.** Every retry is caused by another thread's success or by a step that was done for it.
//! - **Contention-free.** A request that waits reads its own node's word only.
//! - **Memory.** One node for each request that waits, and at most as many dead ones as there are live ones, or 32. A
//!   sweep costs as many steps as there are nodes; it happens once for as many withdrawals.
//!
//! # When to use it, and when not
//!
//! Use it wherever the order does not matter: the threads that waited longest sleep on, and items go to threads that
//! are awake. A request at the bottom may wait for ever while others come. [`dual_queue`](super::dual_queue) serves it
//! in turn.
//!
//! Elimination is off unless it is asked for, because it helps only under extreme contention. On few cores a partner is
//! seldom found within the moment that a request spends in the arena (`docs/benchmarks.md`, "Hand-off").
//!
//! # How it works
//!
//! 1. A stack of requests, all puts or all takes. A flag in its top says which.
//! 2. A request that finds it empty, or of its own kind, pushes itself by one compare-and-swap of the top.
//! 3. A request that finds the other kind matches the node on top by one compare-and-swap of that node's word, and pops
//!    it. A take then reads the item from the node. A put has named the node that holds its item in the new word.
//! 4. A thread that finds a node on top that does not wait any more pops it and goes on: it does not wait for the
//!    thread that matched it.
//! 5. To pop a node, a thread freezes the node's link first, so that the node below stays below. Then it moves the top.
//! 6. Requests that were withdrawn below the top are counted. When there are as many as requests that wait (32 at
//!    least), the thread that withdraws the next one walks down the stack and unlinks the nodes that do not wait: it
//!    freezes the node's link, then changes the link above it.
//! 7. With elimination, a request that was disturbed goes to an [arena](super::arena) before it tries again, and meets
//!    a partner there that was disturbed as well. That is one compare-and-swap each at a place of their own, instead of
//!    two at the top. It is as if the one had been pushed and the other had found it.
//! 8. `close` raises a flag in the top, after which no push succeeds. Then it goes through the requests like a partner
//!    that has nothing to give.
//!
//! # What differs from print, and why
//!
//! - As printed, a request of the other kind pushes a fulfilling node onto the one that it matches, and all threads
//!   that come help to annihilate the two. Here the node on top is matched in place. That is one compare-and-swap of
//!   the top less, in its busiest line, and two nodes never wait for a third thread's help.
//! - The price of that: when another request is pushed between the look at the top and the match, the second from the
//!   top is matched, as if that push had come a moment later.
//! - Nodes come from a [pool](super::pool). Time-outs, cancellation and close are new: the listing leaves them out.
//!
//! # Why no node is used too early
//!
//! A pool's node may be used again as soon as nothing links to it. These rules keep that safe:
//!
//! - A link is changed only by a compare-and-swap that expects its tag, and never once it is frozen.
//! - A node is unlinked only with its own link frozen. So the node that a changed link points to from then on is the
//!   one below, which could not be unlinked meanwhile: that would have changed the frozen link.
//! - A link that leads to nothing needs no freezing, as nothing is ever pushed at the bottom.
//! - A node's word is believed when the link to the node is unchanged after it was read.
//!
//! What each compare-and-swap relies on:
//!
//! - top, to push: its tag. To pop: the tag says that the node was on top since its link was read, and that link is
//!   frozen or leads to nothing.
//! - node's link, to freeze it: the link to the node was found unchanged after it was read, so it was that of this
//!   life; a later one has another tag.
//! - link above a node, to unlink it: it is not frozen, so the node it is in has not left; the node's own link is
//!   frozen.
//! - word, to match, cancel, close or park: a waiting word has its life's version.
//!
//! # Synchronization
//!
//! - top, compare-and-swap-release (push) → load-acquire: a request is complete before it is found.
//! - word, compare-and-swap-release (match) → load-acquire (owner): see [`pool`](super::pool) for items and nodes. What
//!   happened before a put is visible after its take. What happened before a take that waited is visible after the put
//!   that matched it, by the acquire of that compare-and-swap.
//! - top, fetch-or acquire-release of `CLOSED`: what the closing thread did before is visible to threads that find it
//!   closed.

#[cfg(feature = "std")]
use super::arena::{Arena, Meeting};
use super::dual::{Answer, Chain, Cleaning, Dual, Incoming, Otherwise, wake};
use super::pool::{AtomicLink, Index, Link, NULL, Node, Pool, Word};
use crate::sync::{Padded, retry};

/// In the top: nothing will ever be pushed.
const CLOSED: u64 = Link::FLAG_A;
/// In the top: the requests on the stack are puts.
const DATA: u64 = Link::FLAG_B;
/// In a node's link: the node is about to be unlinked, its link does not change any more.
const FROZEN: u64 = Link::FLAG_A;

/// The stack.
pub(super) struct DualStack<T> {
    top: Padded<AtomicLink>,
    cleaning: Padded<Cleaning>,
    /// Where requests meet that got in each other's way.
    #[cfg(feature = "std")]
    arena: Option<Arena>,
    pool: Pool<T>,
}

impl<T> DualStack<T> {
    pub(super) fn new() -> Self {
        Self {
            top: Padded(AtomicLink::new(NULL)),
            cleaning: Padded(Cleaning::new()),
            #[cfg(feature = "std")]
            arena: None,
            pool: Pool::new(),
        }
    }

    #[cfg(feature = "std")]
    pub(super) fn with_elimination() -> Self {
        Self { arena: Some(Arena::new()), ..Self::new() }
    }

    #[inline(always)]
    fn node(&self, index: Index) -> &Node<T> {
        self.pool.node(index)
    }

    /// The word of the node on top, if it is still there: then it was when the word was read.
    #[inline(always)]
    fn word_of(&self, top: Link) -> Option<Word> {
        let word = self.node(top.index()).word();
        (self.top.load() == top).then_some(word)
    }

    /// Takes the node on top, which does not wait any more, off the stack.
    #[inline(always)]
    fn pop(&self, top: Link) {
        let node = self.node(top.index());
        let next = node.next.load();
        if !next.is_null() && !next.has(FROZEN) {
            // From here on the node below stays below, until this one is gone.
            if self.top.load() != top || !node.next.freeze(next) {
                return;
            }
        }
        if self.top.change(top, top.to(next.index(), top.flags())) {
            self.pool.credit(top.index(), Word::UNLINKED);
        }
    }
}

impl<T> Dual<T> for DualStack<T> {
    fn pool(&self) -> &Pool<T> {
        &self.pool
    }

    fn request(&self, item: Option<T>, otherwise: Otherwise) -> Answer<T> {
        let mut mine = Incoming::new(&self.pool, item);
        #[cfg(feature = "std")]
        let mut collisions = 0;
        loop {
            let top = self.top.load();
            if top.has(CLOSED) {
                return Answer::Closed(mine.back());
            }
            if top.is_null() || top.has(DATA) == mine.is_data() {
                if otherwise == Otherwise::Fail {
                    return Answer::Alone(mine.back());
                }
                let index = mine.node();
                let node = self.node(index);
                node.next.set(node.next.load().to(top.index(), 0));
                node.become_request(0);
                if self.top.change(top, top.to(index, if mine.is_data() { DATA } else { 0 })) {
                    return Answer::Waits(index);
                }
                node.become_held();
            } else if let Some(word) = self.word_of(top) {
                let partner = top.index();
                if !word.is_waiting() {
                    self.pop(top);
                } else if mine.match_with(partner, word) {
                    self.pop(top);
                    if word.is_data() {
                        self.pool.credit(partner, Word::READ);
                    }
                    wake(self.node(partner), word);
                    return mine.matched();
                }
            }
            #[cfg(feature = "std")]
            if otherwise == Otherwise::Wait
                && let Some(arena) = &self.arena
            {
                mine = match arena.meet(arena.any(), mine) {
                    Meeting::Over(answer) => return answer,
                    Meeting::Alone(mine) => mine,
                    Meeting::Collided(mine) => {
                        arena.widen(&mut collisions);
                        mine
                    }
                };
            }
            retry();
        }
    }

    fn is_next(&self, index: Index) -> bool {
        self.top.load().index() == index
    }

    fn clean(&self, index: Index) {
        self.clean_chain(index);
    }

    fn close(&self) {
        self.top.raise(CLOSED);
        loop {
            let top = self.top.load();
            if top.is_null() {
                return;
            }
            let Some(word) = self.word_of(top) else { continue };
            let node = self.node(top.index());
            if word.is_waiting() {
                if node.change(word, word.closed()) {
                    self.pop(top);
                    wake(node, word);
                }
            } else {
                self.pop(top);
            }
            retry();
        }
    }

    fn is_closed(&self) -> bool {
        self.top.load().has(CLOSED)
    }
}

impl<T> Chain<T> for DualStack<T> {
    fn cleaning(&self) -> &Cleaning {
        &self.cleaning
    }

    fn trim(&self) {
        loop {
            let top = self.top.load();
            if top.is_null() {
                return;
            }
            match self.word_of(top) {
                Some(word) if word.is_waiting() => return,
                Some(_) => self.pop(top),
                None => {}
            }
            retry();
        }
    }

    /// Visits the nodes that wait, and unlinks the others in any case: it could not stand on them.
    fn walk(&self, _: bool, mut visit: impl FnMut(&Node<T>, Word)) -> bool {
        self.trim();
        let mut from = &*self.top;
        let mut link = from.load();
        while !link.is_null() {
            let node = self.node(link.index());
            let word = node.word();
            let next = node.next.load();
            // Unchanged, so the node is still on the stack, and that was its word.
            if from.load() != link {
                return false;
            }
            if word.is_waiting() {
                visit(node, word);
                if next.has(FROZEN) {
                    // It does not wait any more, and its link is not to be changed.
                    return false;
                }
                from = &node.next;
                link = next;
                continue;
            }
            if !next.is_null() && !next.has(FROZEN) && !node.next.freeze(next) {
                return false;
            }
            let after = link.to(next.index(), link.flags());
            if !from.change(link, after) {
                return false;
            }
            self.pool.credit(link.index(), Word::UNLINKED);
            link = after;
        }
        true
    }
}
