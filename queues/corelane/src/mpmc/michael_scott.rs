//! An unbounded queue whose producers never wait, and in which a stopped thread stops no other: the lock-free list with
//! two ends.
//!
//! ```
//! let (sender, receiver) = corelane::mpmc::michael_scott::channel();
//! sender.push(1).unwrap();
//! assert_eq!(receiver.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`mpmc`](super#promises). No call says `Busy`.
//! - **Linearizable.** A push takes effect by its link, a pop by its change of `head`. `Empty` is true at the look
//!   behind the dummy, which was the last node then, as `head` stood there before and after. Batches are sequences of
//!   single calls, with nothing in between.
//! - **Progress.** Lock-free: a thread that fails lost to another that succeeded. There are two exceptions. Threads
//!   that sleep are in a list with a [lock](super::sleepers). A push asks the allocator, only if all nodes are in use.
//!   No call waits for another thread, so `try_` calls never say `Busy`. A waiting call waits for items, not for locks.
//! - **Memory.** A node an item: the item and 20 bytes, rounded up to a multiple of 32. Nodes are used again and kept:
//!   as many as the most items that were inside at once, rounded up to a power of two. They go with the queue. `Full`
//!   says that the allocator refused more, or 2^27 nodes are there; then a `push` waits for a pop, and so does a
//!   [`Select`](crate::wait::Select) for room, whose look makes more nodes where all are in use.
//!
//! # When to use it, and when not
//!
//! Use it where producers must never wait and a thread that is stopped anywhere must not stop the others.
//!
//! All pushes meet at one word and all pops at another. A node takes three compare-and-swaps there and three back (of
//! them one each at the free list). A batch takes as many as an item.
//!
//! # How it works
//!
//! Source: M. M. Michael and M. L. Scott, "Simple, Fast, and Practical Non-Blocking and Blocking Concurrent Queue
//! Algorithms" (PODC 1996), the non-blocking queue; section 2.3 of the paper on batch queues (CLQ, BCLQ).
//!
//! 1. The items lie in a list of nodes. `head` leads to a node without an item, the dummy. `tail` leads to the last
//!    node or one shortly before it. A link is an index and a count of its changes (`link.rs`), as in print.
//! 2. A push links its node behind the last one by a compare-and-swap of that one's link, which is the push. Then it
//!    moves `tail` on. A thread that finds a node behind `tail` moves `tail` on for the thread that linked it.
//! 3. A pop moves `head` on to the next node by a compare-and-swap, which is the pop. That node gives its item and is
//!    the dummy now. If `tail` is still at the dummy, the pop moves it on first, so `head` never passes it.
//! 4. A batch is linked to itself first, and then like one node. A pop of many walks from `head` as far as it may,
//!    `tail` at the latest, and moves `head` there by one compare-and-swap. If that succeeds, `head` has not moved in
//!    between, so everything it walked over was in the list.
//! 5. A close sets a flag in the last node's link, in place of a node. So it is one of the changes of the list, with
//!    its place among them.
//!
//! # What differs from print
//!
//! - In print a pop copies the item before its compare-and-swap, while other threads may be writing it anew, and drops
//!   the copy if that fails. Here the winner moves the item out afterwards, so any item will do. Until it has, the node
//!   may not be used again. A bit in the node says so; see [`nodes`](super::nodes).
//! - Nodes are numbered, each one more than the one before, so that [`len`](super::Queue::len) is a subtraction.
//!
//! # Synchronization
//!
//! - `next`, compare-and-swap-release (push) → load-acquire (pop): a node's item and number are written before it is
//!   found.
//! - `head`, `tail`, compare-and-swap-acquire-release: a thread that finds a node there finds what it was linked with.
//! - Late readers: every store to a link is a release, every load an acquire. A thread that reads what a node has
//!   become in a later life also sees that `head` has moved on since, and begins anew. So an old picture leads neither
//!   to `Empty` nor to a change.
//! - A full fence before the look that may lead to `Empty`, as in [`ticket`](super::ticket).
//! - Nodes from their last use to their next: [`nodes`](super::nodes). Waiting: [`sleepers`](super::sleepers).

use super::design::{Design, Raw, Stay, Waiting, sealed};
use super::nodes::{Chain, Nodes};
use super::queue::UNBOUNDED;
use super::side::Side;
use super::stats::Recorder;
use crate::bound::Unbounded;
use crate::error::{ChannelError, TryPopError, TryPushError};
use crate::mem::buffer::drop_all;
use crate::mem::link::{AtomicLink, Index, Link, NULL};
use crate::mem::moving::Moving;
use crate::sync::{Backoff, Padded, full_fence, retry};
use alloc::vec::Vec;

/// The lock-free list as a type parameter of [`Queue`](super::Queue).
#[derive(Clone, Copy, Debug, Default)]
pub struct MichaelScott;

super::aliases!(MichaelScott, michael_scott, unbounded);

/// In a link to nothing: the queue is closed.
const CLOSED: u64 = Link::FLAG_A;

/// Head, tail and nodes.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a queue")]
pub struct List<T> {
    head: Padded<AtomicLink>,
    tail: Padded<AtomicLink>,
    nodes: Nodes<T>,
}

// SAFETY: items move from thread to thread, hence `T: Send`; no reference to an item is shared.
unsafe impl<T: Send> Send for List<T> {}
// SAFETY: as above; which thread an item belongs to is decided by the compare-and-swaps of the links.
unsafe impl<T: Send> Sync for List<T> {}

/// What a pop has taken: nodes behind the old dummy, the last of which is the new one.
struct Run {
    dummy: Index,
    last: Index,
    count: usize,
}

impl<T> List<T> {
    /// Links a chain of nodes with items behind the last node.
    #[inline(always)]
    fn link(&self, chain: Chain, stats: &impl Recorder) -> Result<(), TryPushError<()>> {
        let mut lost = Backoff::new();
        loop {
            let tail = self.tail.load();
            let node = self.nodes.node(tail.index());
            let next = node.next.load();
            if self.tail.load() != tail {
                retry();
                continue;
            }
            if !next.is_null() {
                self.tail.change(tail, tail.to(next.index(), 0));
                retry();
                continue;
            }
            if next.has(CLOSED) {
                return Err(TryPushError::Closed(()));
            }
            self.number(chain, node.number());
            if node.next.change(next, next.to(chain.first, 0)) {
                if !self.tail.change(tail, tail.to(chain.last, 0)) {
                    self.catch_up();
                }
                return Ok(());
            }
            stats.retried(Side::Push);
            lost.spend();
        }
    }

    /// Numbers the nodes of a chain from this one's successor on.
    #[inline(always)]
    fn number(&self, chain: Chain, before: u64) {
        let mut index = chain.first;
        for i in 1..=chain.count as u64 {
            let node = self.nodes.node(index);
            node.set_number(before.wrapping_add(i));
            if index == chain.last {
                break;
            }
            index = node.next.load().index();
        }
    }

    /// Moves `tail` on to a node that is the last at some moment of the call. The node, and its link.
    #[cold]
    fn catch_up(&self) -> (Index, Link) {
        loop {
            let tail = self.tail.load();
            let next = self.nodes.node(tail.index()).next.load();
            if self.tail.load() == tail {
                if next.is_null() {
                    return (tail.index(), next);
                }
                self.tail.change(tail, tail.to(next.index(), 0));
            }
            retry();
        }
    }

    /// Takes up to `max` items. Lets the caller prepare for their number before they are taken.
    #[inline(always)]
    fn take(&self, max: usize, mut prepare: impl FnMut(usize), stats: &impl Recorder) -> Result<Run, TryPopError> {
        let mut lost = Backoff::new();
        loop {
            let head = self.head.load();
            let tail = self.tail.load();
            let mut run = Run { dummy: head.index(), last: head.index(), count: 0 };
            while run.count < max && run.last != tail.index() {
                let next = self.nodes.node(run.last).next.load();
                // An old picture, which may lead anywhere: the tail is behind every node that is in the list.
                if next.is_null() || run.count % 64 == 63 && self.head.load() != head {
                    break;
                }
                run.last = next.index();
                run.count += 1;
            }
            if run.count != 0 {
                prepare(run.count);
                if self.head.change(head, head.to(run.last, 0)) {
                    return Ok(run);
                }
                stats.retried(Side::Pop);
                lost.spend();
                continue;
            }
            full_fence();
            let next = self.nodes.node(head.index()).next.load();
            if self.head.load() != head {
                retry();
                continue;
            }
            if next.is_null() {
                return Err(if next.has(CLOSED) { TryPopError::Closed } else { TryPopError::Empty });
            }
            if tail.index() == head.index() {
                self.tail.change(tail, tail.to(next.index(), 0));
            }
            retry();
        }
    }

    /// Moves the items out, each of which is given away, and gives the nodes back.
    ///
    /// # Safety
    /// The run was [taken](Self::take).
    #[inline(always)]
    unsafe fn give_away(&self, run: Run, mut give: impl FnMut(T)) {
        let dummy = self.nodes.node(run.dummy);
        let second = dummy.next.load().index();
        // The last node but one; the dummy if there is none.
        let mut before = run.dummy;
        let mut index = second;
        for i in 1..=run.count {
            let node = self.nodes.node(index);
            // SAFETY: the items of the run are ours. No thread frees a node before its item is read.
            give(unsafe { node.read() });
            if i < run.count {
                before = index;
                index = node.next.load().index();
            }
        }
        if dummy.is_unlinked() {
            self.nodes.give(run.dummy, before);
        } else if run.count > 1 {
            self.nodes.give(second, before);
        }
        if self.nodes.node(run.last).is_read() {
            self.nodes.give(run.last, run.last);
        }
    }
}

impl sealed::Sealed for MichaelScott {}

impl Unbounded for MichaelScott {}

impl<T: Send> Design<T> for MichaelScott {
    type Body = List<T>;

    fn create(capacity: usize, start: usize) -> Result<List<T>, ChannelError> {
        // One is the dummy.
        let nodes = Nodes::new(capacity + 1)?;
        let dummy = nodes.take(1).ok_or(ChannelError::NoMemory)?.first;
        nodes.node(dummy).set_number(start as u64);
        Ok(List { head: Padded(AtomicLink::new(dummy)), tail: Padded(AtomicLink::new(dummy)), nodes })
    }
}

impl<T: Send> Raw<T> for List<T> {
    const WAITING: Waiting = Waiting::Parked;
    const MAY_BE_FULL: bool = true;

    #[inline(always)]
    fn push<S: Recorder>(&self, item: T, _: Stay, stats: &S) -> Result<(), TryPushError<T>> {
        let Some(chain) = self.nodes.take(1) else { return Err(TryPushError::Full(item)) };
        let node = self.nodes.node(chain.first);
        // SAFETY: just taken.
        unsafe { node.write(item) };
        self.link(chain, stats).map_err(|refused| {
            // SAFETY: not linked, so it is still ours, with the item.
            let item = unsafe { node.read() };
            self.nodes.give(chain.first, chain.last);
            refused.map(|()| item)
        })
    }

    #[inline(always)]
    fn pop<S: Recorder>(&self, _: Stay, stats: &S) -> Result<T, TryPopError> {
        let run = self.take(1, |_| {}, stats)?;
        let mut popped = None;
        // SAFETY: just taken.
        unsafe { self.give_away(run, |item| popped = Some(item)) };
        Ok(popped.expect("a run is not empty"))
    }

    fn push_run<S: Recorder>(&self, supply: &mut Moving<'_, T>, _: Stay, stats: &S) -> Result<usize, TryPushError<()>> {
        let Some(chain) = self.nodes.take(supply.len()) else { return Err(TryPushError::Full(())) };
        let mut index = chain.first;
        loop {
            let node = self.nodes.node(index);
            let item = supply.next().expect("no more nodes than items");
            // SAFETY: just taken.
            unsafe { node.write(item) };
            if index == chain.last {
                break;
            }
            index = node.next.load().index();
        }
        self.link(chain, stats).inspect_err(|_| {
            self.nodes.give(chain.first, chain.last);
            // SAFETY: the items in the nodes are forgotten.
            unsafe { supply.restore(chain.count) };
        })?;
        Ok(chain.count)
    }

    fn pop_run<S: Recorder>(&self, items: &mut Vec<T>, max: usize, _: Stay, stats: &S) -> Result<usize, TryPopError> {
        let run = self.take(max, |n| items.reserve(n), stats)?;
        let count = run.count;
        // SAFETY: just taken. There is room for them, so nothing panics.
        unsafe { self.give_away(run, |item| items.push(item)) };
        Ok(count)
    }

    fn close(&self) {
        loop {
            let (last, next) = self.catch_up();
            if next.has(CLOSED) || self.nodes.node(last).next.change(next, next.to(NULL, CLOSED)) {
                return;
            }
            retry();
        }
    }

    fn is_closed(&self) -> bool {
        self.catch_up().1.has(CLOSED)
    }

    fn len(&self) -> usize {
        loop {
            let head = self.head.load();
            let first = self.nodes.node(head.index()).number();
            let (last, _) = self.catch_up();
            let last = self.nodes.node(last).number();
            // As long as the head stands there, what is behind it stays in the list.
            if self.head.load() == head {
                return last.wrapping_sub(first) as usize;
            }
            retry();
        }
    }

    fn capacity(&self) -> usize {
        UNBOUNDED
    }

    /// By the nodes, of which a look makes more where a push would.
    fn has_room(&self) -> bool {
        self.nodes.are_free()
    }

    /// By the nodes that there are, or that the allocator gives now. No other thread takes any.
    fn room_alone(&self, most: usize) -> usize {
        if most == 0 {
            return 0;
        }
        self.nodes.take(most).map_or(0, |chain| {
            self.nodes.give(chain.first, chain.last);
            chain.count
        })
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        let mut index = self.head.load().index();
        let first = self.nodes.node(index).number();
        let last = self.nodes.node(self.catch_up().0).number();
        drop_all(last.wrapping_sub(first) as usize, |_| {
            index = self.nodes.node(index).next.load().index();
            // SAFETY: no other thread is left, and every node behind the dummy holds an item.
            drop(unsafe { self.nodes.node(index).read() });
        });
    }
}
