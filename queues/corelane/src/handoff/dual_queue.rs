//! The synchronous dual queue: a hand-off in which the request that has waited longest is served first.
//!
//! Source: Listing 5 of "Scalable Synchronous Queues" (Scherer, Lea, Scott, CACM 2009). The list is that of Michael and
//! Scott (1996).
//!
//! # Promises
//!
//! - **Lock-free.** Every retry is caused by another thread's success or by a step that was done for it.
//! - **Contention-free.** A request that waits reads its own node's word only.
//! - **Memory.** One node for each request that waits, one for the dummy, and at most as many dead ones as there are
//!   live ones, or 32. A sweep costs as many steps as there are nodes; it happens once for as many withdrawals.
//!
//! # When to use it, and when not
//!
//! Use it where order matters, or no request may wait for ever. With more threads than cores it has to wake the longest
//! waiter for each item, and that thread sleeps. [`dual_stack`](super::dual_stack) hands over to a thread that is
//! awake.
//!
//! # How it works
//!
//! 1. A list of requests has a head and a tail. The head's node is a dummy. Behind it wait either puts or takes, oldest
//!    first.
//! 2. A request that finds the list empty, or requests of its own kind at the tail, appends itself. It links its node
//!    behind the last one, then swings the tail. Other threads swing the tail for it when they come first.
//! 3. A request that finds requests of the other kind matches the first of them by one compare-and-swap of that node's
//!    word. A take then reads the item from the node. A put has named the node that holds its item in the new word. The
//!    matched node becomes the dummy. A thread may find a first node that was matched, but is not the dummy yet. It
//!    makes that node the dummy and goes on: it does not wait for the thread that matched it.
//! 4. A request that was withdrawn is skipped when it is first. Withdrawn requests in the middle are counted. When
//!    there are as many as requests that wait (32 at least), the thread that withdraws the next one walks the list and
//!    unlinks those that it finds. To unlink a node it marks the node `UNLINKING`, freezes its link, and changes the
//!    link before it. Other threads that meet a marked node finish the job.
//! 5. `close` raises a flag for requests that come, and puts an end mark behind the last node, so that no request can
//!    append itself. Then it goes through the requests like a partner that has nothing to give.
//!
//! A [transfer queue](super::transfer) is this one with puts whose owners do not wait.
//!
//! # What differs from print, and why
//!
//! - The requester that was matched does not help to move the head: the thread that matched it does, or the next one.
//! - Nodes come from a [pool](super::pool). Time-outs, cancellation and close are new: the listing leaves them out.
//!
//! # Why no node is used too early
//!
//! A pool's node may be used again as soon as nothing links to it. So no thread may trust a link that could point to a
//! node unlinked meanwhile:
//!
//! - **The node behind the dummy cannot vanish between the look at it and the move of the head.** The head moves only
//!   onto a node whose word says matched, or cancelled and `SKIPPED`. Such a node is never unlinked from the middle:
//!   that takes `UNLINKING`, which is set by a compare-and-swap of a cancelled word without `SKIPPED`.
//! - **The link before a node marked `UNLINKING` stays what it is until that node is unlinked.** If it is the dummy's
//!   link, the head cannot move onto the marked node. If it is the link of another node that is unlinked itself, it is
//!   frozen first, and then the change of it fails.
//! - **A frozen link does not change.** So nothing behind a node is unlinked by way of it while it is unlinked itself.
//! - **The tail never stays on a node that leaves.** A thread that moves the head or marks a node moves the tail on
//!   before.
//! - **The tail never goes back.** After the tail was read, the head (or the marked node's word) is found unchanged, so
//!   the tail stood on that very node.
//! - **A node's word is believed if two things hold after it was read.** The link to the node is unchanged; its tag
//!   tells a new link from an old one. And the node before it is the dummy still, or waits still, with the version it
//!   had.
//! - **The end of the list is believed if the same holds.** A link to nothing is that of a node just taken from the
//!   pool, unless its node is found in the list after the link was read.
//!
//! What each compare-and-swap relies on:
//!
//! - last node's link, to append or to end the list: the tail was unchanged after the link was read, so the node was
//!   the last in this life. Each change of a link, and each new life of its node, gives it a new tag.
//! - tail, to the next node: found behind the node it stood on while it stood there; its own tag does the rest. Off a
//!   node that leaves: see above.
//! - head: its tag says that the dummy is the same since the node behind it was looked at. The tail was seen elsewhere,
//!   or moved, meanwhile.
//! - word, to match, cancel, close or park: a waiting word has its life's version. To mark: a cancelled word has it
//!   too, and the two marks exclude each other.
//! - marked node's link, to freeze it: read before the link to the node was found unchanged, so it was that of this
//!   life.
//! - link before a marked node: cannot change otherwise, as said above, so it is changed once, by the thread that
//!   brings the credit.
//!
//! # Synchronization
//!
//! - link, compare-and-swap-release (append) → load-acquire: a request is complete before it is found.
//! - word, compare-and-swap-release (match) → load-acquire (owner): see [`pool`](super::pool) for items and nodes. What
//!   happened before a put is visible after its take. What happened before a take that waited is visible after the put
//!   that matched it, by the acquire of that compare-and-swap.
//! - head, compare-and-swap acquire-release: the match comes before the node is the dummy, so before the dummy before
//!   it is freed.
//! - closed, store-release → load-acquire: what the closing thread did before is visible to those it sends away. The
//!   end mark alone decides whether a request was appended.

use super::dual::{Answer, Chain, Cleaning, Dual, Incoming, Otherwise, wake};
use super::pool::{AtomicLink, Index, Link, NULL, Node, Pool, Word};
use crate::sync::{Acquire, AtomicBool, Padded, Release, retry};

/// In the last node's link: nothing will ever be appended.
const END: u64 = Link::FLAG_B;
/// In the link of a node that is being unlinked: it does not change any more.
const FROZEN: u64 = Link::FLAG_A;

/// Both ends on one line: every operation reads both.
struct Ends {
    head: AtomicLink,
    tail: AtomicLink,
    closed: AtomicBool,
}

/// The list.
pub(super) struct DualQueue<T> {
    ends: Padded<Ends>,
    cleaning: Padded<Cleaning>,
    /// After a close, items that were put without waiting can still be taken.
    drains: bool,
    pool: Pool<T>,
}

/// What a fulfilling thread found behind the dummy.
enum First {
    /// This link, to this node, with this word: true at one point in time.
    Node(Link, Index, Word),
    Nothing,
    End,
}

impl<T> DualQueue<T> {
    pub(super) fn new(drains: bool) -> Self {
        let pool = Pool::new();
        let dummy = pool.allocate();
        pool.node(dummy).become_request(Word::DONE);
        let word = pool.node(dummy).word();
        pool.node(dummy).change(word, word.cancelled().with(Word::SKIPPED));
        Self {
            ends: Padded(Ends {
                head: AtomicLink::new(dummy),
                tail: AtomicLink::new(dummy),
                closed: AtomicBool::new(false),
            }),
            cleaning: Padded(Cleaning::new()),
            drains,
            pool,
        }
    }

    #[inline(always)]
    fn node(&self, index: Index) -> &Node<T> {
        self.pool.node(index)
    }

    /// The node behind the dummy `head`; `None` if the head has moved.
    #[inline(always)]
    fn first(&self, head: Link) -> Option<First> {
        let link = self.node(head.index()).next.load();
        if link.is_null() {
            return (self.ends.head.load() == head).then_some(if link.has(END) { First::End } else { First::Nothing });
        }
        let word = self.node(link.index()).word();
        // Both unchanged, so the node followed the dummy when its word was read.
        (self.ends.head.load() == head && self.node(head.index()).next.load() == link).then_some(First::Node(
            link,
            link.index(),
            word,
        ))
    }

    /// Moves the tail from a node that is about to leave to the next one, if it is there. `false` if the node does not
    /// `stand` in the list any more.
    #[inline(always)]
    fn leave(&self, node: Index, next: Index, stands: impl FnOnce() -> bool) -> bool {
        let tail = self.ends.tail.load();
        if tail.index() != node {
            return true;
        }
        // Asked after the tail was read, which so was at this node and not at a later life of it, behind `next`.
        let stands = stands();
        if stands {
            self.ends.tail.change(tail, tail.to(next, 0));
        }
        stands
    }

    /// Makes the first node, which does not wait, the dummy.
    #[inline(always)]
    fn advance(&self, head: Link, first: Index) {
        let leaves = self.leave(head.index(), first, || self.ends.head.load() == head);
        if leaves && self.ends.head.change(head, head.to(first, 0)) {
            self.pool.credit(head.index(), Word::UNLINKED);
        }
    }

    /// Takes a first node that was matched, cancelled or closed out of the way.
    fn skip(&self, head: Link, link: Link, word: Word) {
        let first = link.index();
        let node = self.node(first);
        if word.is_cancelled() {
            if word.has(Word::UNLINKING) {
                return self.unlink(head.index(), link);
            }
            if !word.has(Word::SKIPPED) && !node.change(word, word.with(Word::SKIPPED)) {
                return;
            }
        } else if !word.is_matched() {
            // The node has been used again.
            return;
        }
        self.advance(head, first);
    }

    /// Unlinks the node marked `UNLINKING` that `link`, of node `before`, points to.
    fn unlink(&self, before: Index, link: Link) {
        let node = self.node(link.index());
        let next = node.next.load();
        // Unchanged, so the node is still in the list, and that is its link.
        if link.has(FROZEN) || self.node(before).next.load() != link {
            return;
        }
        if !next.has(FROZEN) && !node.next.freeze(next) {
            return;
        }
        if self.node(before).next.change(link, link.to(next.index(), 0)) {
            self.pool.credit(link.index(), Word::UNLINKED);
        }
    }

    /// Whether the requests that wait are puts; `None` if none wait.
    pub(super) fn first_kind(&self) -> Option<bool> {
        loop {
            self.trim();
            match self.first(self.ends.head.load()) {
                Some(First::Node(_, _, word)) if word.is_waiting() => return Some(word.is_data()),
                Some(First::Nothing | First::End) => return None,
                Some(First::Node(..)) | None => retry(),
            }
        }
    }

    /// Lets no request be appended any more.
    fn end(&self) {
        loop {
            let tail = self.ends.tail.load();
            let last = self.node(tail.index()).next.load();
            if self.ends.tail.load() != tail {
                retry();
                continue;
            }
            if !last.is_null() {
                self.ends.tail.change(tail, tail.to(last.index(), 0));
            } else if last.has(END) || self.node(tail.index()).next.change(last, last.to(NULL, END)) {
                return;
            }
        }
    }
}

impl<T> Dual<T> for DualQueue<T> {
    fn pool(&self) -> &Pool<T> {
        &self.pool
    }

    fn request(&self, item: Option<T>, otherwise: Otherwise) -> Answer<T> {
        let mut mine = Incoming::new(&self.pool, item);
        if self.is_closed() && (mine.is_data() || !self.drains) {
            return Answer::Closed(mine.back());
        }
        loop {
            let tail = self.ends.tail.load();
            let head = self.ends.head.load();
            let last = self.node(tail.index());
            if head.index() == tail.index() || last.word().is_data() == mine.is_data() {
                let link = last.next.load();
                if self.ends.tail.load() != tail {
                    retry();
                    continue;
                }
                if !link.is_null() {
                    self.ends.tail.change(tail, tail.to(link.index(), 0));
                    continue;
                }
                if link.has(END) {
                    return Answer::Closed(mine.back());
                }
                if otherwise == Otherwise::Fail {
                    return Answer::Alone(mine.back());
                }
                let index = mine.node();
                let node = self.node(index);
                node.become_request(if otherwise == Otherwise::Leave { Word::DONE } else { 0 });
                if last.next.change(link, link.to(index, 0)) {
                    self.ends.tail.change(tail, tail.to(index, 0));
                    return Answer::Waits(index);
                }
                node.become_held();
            } else if let Some(First::Node(link, index, word)) = self.first(head) {
                if !word.is_waiting() {
                    self.skip(head, link, word);
                } else if word.is_data() != mine.is_data() && mine.match_with(index, word) {
                    self.advance(head, index);
                    if word.is_data() {
                        self.pool.credit(index, Word::READ);
                    }
                    wake(self.node(index), word);
                    return mine.matched();
                }
            }
            retry();
        }
    }

    fn is_next(&self, index: Index) -> bool {
        self.node(self.ends.head.load().index()).next.load().index() == index
    }

    fn clean(&self, index: Index) {
        self.clean_chain(index);
    }

    fn close(&self) {
        self.ends.closed.store(true, Release);
        self.end();
        loop {
            let head = self.ends.head.load();
            match self.first(head) {
                Some(First::Node(link, _, word)) if !word.is_waiting() => self.skip(head, link, word),
                Some(First::Node(_, _, word)) if self.drains && word.is_data() => break,
                Some(First::Node(_, index, word)) => {
                    let node = self.node(index);
                    if node.change(word, word.closed()) {
                        wake(node, word);
                    }
                }
                Some(First::Nothing | First::End) => return,
                None => {}
            }
            retry();
        }
        // Items that were put without waiting stay; puts that wait for theirs to be taken are sent away. Tried for as
        // long as the put waits: its owner may be about to sleep, which changes the word and decides nothing.
        let send_away = |node: &Node<T>, found: Word| {
            let mut word = found;
            while word.is_waiting() && !word.is_asynchronous() && word.still_stands(found) {
                if node.change(word, word.closed()) {
                    return wake(node, word);
                }
                retry();
                word = node.word();
            }
        };
        while !self.walk(false, send_away) {
            retry();
        }
    }

    fn is_closed(&self) -> bool {
        self.ends.closed.load(Acquire)
    }
}

impl<T> Chain<T> for DualQueue<T> {
    fn cleaning(&self) -> &Cleaning {
        &self.cleaning
    }

    fn trim(&self) {
        loop {
            let head = self.ends.head.load();
            match self.first(head) {
                Some(First::Node(_, _, word)) if word.is_waiting() => return,
                Some(First::Node(link, _, word)) => self.skip(head, link, word),
                Some(_) => return,
                None => {}
            }
            retry();
        }
    }

    /// A cancelled node that is followed by no other stays.
    fn walk(&self, unlink: bool, mut visit: impl FnMut(&Node<T>, Word)) -> bool {
        self.trim();
        let head = self.ends.head.load();
        let mut at = head.index();
        let mut stood = None::<Word>;
        loop {
            let link = self.node(at).next.load();
            let behind = (!link.is_null()).then(|| {
                let node = self.node(link.index());
                (node, node.word(), node.next.load())
            });
            // Asked after all was read. Still in the list: then the link, a missing one too, was that of this life of
            // the node. Still followed by that node: then so it was when the word was read.
            let stands = match stood {
                None => self.ends.head.load() == head,
                Some(stood) => self.node(at).word().still_stands(stood),
            };
            let Some((node, word, next)) = behind else {
                return stands;
            };
            if !stands || link.has(FROZEN) || self.node(at).next.load() != link {
                return false;
            }
            if word.has(Word::UNLINKING) {
                self.unlink(at, link);
                retry();
            } else if unlink && word.is_cancelled() && !word.has(Word::SKIPPED) && !next.is_null() {
                if !self.leave(link.index(), next.index(), || node.word() == word) {
                    return false;
                }
                if node.change(word, word.with(Word::UNLINKING)) {
                    self.unlink(at, link);
                }
                retry();
            } else if word.still_stands(word) {
                visit(node, word);
                at = link.index();
                stood = Some(word);
            } else {
                // Matched or skipped: it may leave at any time, and no thread could tell.
                return false;
            }
        }
    }
}
