//! An unbounded queue that gives its memory back at once: a linked list with a lock at each end.
//!
//! ```
//! let (sender, receiver) = corelane::mpmc::two_lock::channel();
//! sender.push(1).unwrap();
//! assert_eq!(receiver.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`mpmc`](super#promises).
//! - **Linearizable.** A push takes effect when its node is linked, a pop when it reads that link; `Empty` at the look
//!   that finds no link. Batches are sequences of single calls.
//! - **Progress.** Blocking, each end by itself. No deadlock, as no thread takes both locks. Not fair, but
//!   bounded: a call that has waited for a lock for about a millisecond stands in line, and comes before all that do
//!   not.
//! - **Memory.** A node an item: the item, a pointer, and what the allocator adds. Where the allocator refuses one the
//!   process ends, as at any `Box`.
//!
//! # When to use it, and when not
//!
//! Use it as the measure for the others, or where the number of items is not known and they may stay for long: memory
//! is what is inside. Each item costs a call of the allocator on each side.
//!
//! # How it works
//!
//! Source: M. M. Michael and M. L. Scott, "Simple, Fast, and Practical Non-Blocking and Blocking Concurrent Queue
//! Algorithms" (PODC 1996), the two-lock queue; section 2.4 of the paper on batch queues (TLQ, BTLQ).
//!
//! 1. The items lie in a list that begins with a node without an item, the dummy. So no call concerns both head and
//!    tail, and each has a lock of its own.
//! 2. A push makes its node, takes the tail lock, links the node behind the last one and makes it the last.
//! 3. A pop takes the head lock and looks behind the dummy. Either nothing is there, or the node there gives its item
//!    and becomes the dummy. The old dummy is freed, outside the lock.
//! 4. A batch is linked to itself first, and then like one node. A pop of many walks along the list under the one lock.
//! 5. A close is a flag under the tail lock. A pop that finds nothing and then the flag looks once more: the last push
//!    may have come in between.
//!
//! # What differs from print
//!
//! - Nodes come from the allocator and go back to it. Memory is asked for and given back outside the locks.
//! - `try_` calls do not wait for a lock: they say `Busy` where another thread has it.
//!
//! # Synchronization
//!
//! - Each lock orders the threads that had it.
//! - `next`, store-release (push) → load-acquire (pop): a node is written before it is found, and its item before it is
//!   read. It is the only word that both ends touch, and only where the list is empty at the same time.
//! - `closed`, store-release (close, under the tail lock) → load-acquire (pop): every push that came before it has
//!   linked its node.
//! - A full fence before the look that may lead to `Empty`, as in [`ticket`](super::ticket).
//! - Waiting: see [`sleepers`](super::sleepers).

use super::design::{Design, Raw, Stay, Waiting, sealed};
use super::lock::{Lock, Pauses};
use super::queue::UNBOUNDED;
use super::stats::Recorder;
use crate::bound::Unbounded;
use crate::error::{ChannelError, TryPopError, TryPushError};
use crate::mem::buffer::drop_all;
use crate::mem::moving::Moving;
use crate::sync::{
    Acquire, AtomicBool, AtomicPtr, AtomicUsize, Padded, Relaxed, Release, Slot, UnsafeCell, full_fence, init_slot,
    retry,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::ptr;

/// The two-lock queue as a type parameter of [`Queue`](super::Queue).
#[derive(Clone, Copy, Debug, Default)]
pub struct TwoLock;

super::aliases!(TwoLock, two_lock, unbounded);

struct Node<T> {
    next: AtomicPtr<Node<T>>,
    item: Slot<T>,
}

impl<T> Node<T> {
    fn new(item: T) -> *mut Self {
        let item = UnsafeCell::new(MaybeUninit::new(item));
        Box::into_raw(Box::new(Self { next: AtomicPtr::new(ptr::null_mut()), item }))
    }

    fn empty() -> *mut Self {
        let node = Box::into_raw(Box::<Self>::new_uninit()).cast::<Self>();
        // SAFETY: the memory of a node that no other thread knows, field by field.
        unsafe {
            (&raw mut (*node).next).write(AtomicPtr::new(ptr::null_mut()));
            init_slot(&raw mut (*node).item);
        }
        node
    }
}

/// One end of the list.
#[derive(Debug)]
struct End<T>(*mut Node<T>);

// SAFETY: an address; which thread may follow it is the locks' to say.
unsafe impl<T: Send> Send for End<T> {}

/// The two locks and the list between them.
#[doc(hidden)]
#[derive(Debug)]
pub struct List<T> {
    head: Padded<Lock<End<T>>>,
    tail: Padded<Lock<End<T>>>,
    /// Items popped; written under the head lock.
    popped: Padded<AtomicUsize>,
    /// Items pushed; written under the tail lock, before they can be found.
    pushed: Padded<AtomicUsize>,
    /// Written under the tail lock.
    closed: AtomicBool,
}

impl<T> List<T> {
    /// Links nodes `first ..= last`, which are linked to each other, unless the queue is closed.
    fn link(&self, first: *mut Node<T>, last: *mut Node<T>, count: usize, stay: Stay) -> Result<(), TryPushError<()>> {
        let pauses = if count == 1 { Pauses::Single } else { Pauses::Batch };
        let mut tail = self.tail.enter(stay, pauses).ok_or(TryPushError::Busy(()))?;
        if self.closed.load(Relaxed) {
            return Err(TryPushError::Closed(()));
        }
        self.pushed.store(self.pushed.load(Relaxed).wrapping_add(count), Relaxed);
        // SAFETY: the last node is not freed before another one is linked behind it.
        unsafe { &(*tail.0).next }.store(first, Release);
        tail.0 = last;
        Ok(())
    }

    /// What a pop returns that found nothing behind this node.
    ///
    /// # Safety
    /// The caller holds the head lock, and this node is the dummy.
    #[cold]
    unsafe fn look_again(&self, dummy: *mut Node<T>) -> Result<*mut Node<T>, TryPopError> {
        full_fence();
        let closed = self.closed.load(Acquire);
        // SAFETY: by the caller's promise.
        let next = unsafe { &(*dummy).next }.load(Acquire);
        match (next.is_null(), closed) {
            (false, _) => Ok(next),
            (true, false) => Err(TryPopError::Empty),
            (true, true) => Err(TryPopError::Closed),
        }
    }

    /// Moves the dummy on to `last`, under the head lock.
    fn advance(&self, head: &mut End<T>, last: *mut Node<T>, count: usize) {
        head.0 = last;
        self.popped.store(self.popped.load(Relaxed).wrapping_add(count), Release);
    }

    /// # Safety
    /// These nodes, up to and without `end`, are linked to each other, and out of the list. Their items are moved out.
    unsafe fn free(mut node: *mut Node<T>, end: *mut Node<T>) {
        while node != end {
            // SAFETY: by the caller's promise the node is our own.
            let own = unsafe { Box::from_raw(node) };
            node = own.next.load(Relaxed);
        }
    }
}

impl sealed::Sealed for TwoLock {}

impl Unbounded for TwoLock {}

impl<T: Send> Design<T> for TwoLock {
    type Body = List<T>;

    fn create(_: usize, start: usize) -> Result<List<T>, ChannelError> {
        let dummy = Node::empty();
        Ok(List {
            head: Padded(Lock::new(End(dummy))),
            tail: Padded(Lock::new(End(dummy))),
            popped: Padded(AtomicUsize::new(start)),
            pushed: Padded(AtomicUsize::new(start)),
            closed: AtomicBool::new(false),
        })
    }
}

impl<T: Send> Raw<T> for List<T> {
    const WAITING: Waiting = Waiting::Parked;
    const MAY_BE_FULL: bool = false;

    #[inline(always)]
    fn push<S: Recorder>(&self, item: T, stay: Stay, _: &S) -> Result<(), TryPushError<T>> {
        let node = Node::new(item);
        self.link(node, node, 1, stay).map_err(|refused| {
            // SAFETY: made above, and not linked.
            let own = unsafe { Box::from_raw(node) };
            // SAFETY: it holds the item.
            refused.map(|()| own.item.with(|item| unsafe { (*item).assume_init_read() }))
        })
    }

    #[inline(always)]
    fn pop<S: Recorder>(&self, stay: Stay, _: &S) -> Result<T, TryPopError> {
        let mut head = self.head.enter(stay, Pauses::Single).ok_or(TryPopError::Busy)?;
        let dummy = head.0;
        // SAFETY: we hold the head lock, so the dummy is not freed.
        let mut next = unsafe { &(*dummy).next }.load(Acquire);
        if next.is_null() {
            // SAFETY: as above.
            next = unsafe { self.look_again(dummy) }?;
        }
        // SAFETY: a node behind the dummy holds an item, which the head lock gives us; it becomes the dummy by that.
        let item = unsafe { (*next).item.with(|item| (*item).assume_init_read()) };
        self.advance(&mut head, next, 1);
        drop(head);
        // SAFETY: the old dummy is out of the list.
        unsafe { Self::free(dummy, next) };
        Ok(item)
    }

    fn push_run<S: Recorder>(&self, supply: &mut Moving<'_, T>, stay: Stay, _: &S) -> Result<usize, TryPushError<()>> {
        let count = supply.len();
        let mut node = || Node::new(supply.next().expect("no more are taken than there are"));
        let first = node();
        let mut last = first;
        for _ in 1..count {
            let next = node();
            // SAFETY: made above.
            unsafe { &(*last).next }.store(next, Relaxed);
            last = next;
        }
        self.link(first, last, count, stay).inspect_err(|_| {
            // SAFETY: made above and not linked; the items in them are forgotten, which gives them back to the supply.
            unsafe {
                Self::free(first, ptr::null_mut());
                supply.restore(count);
            }
        })?;
        Ok(count)
    }

    fn pop_run<S: Recorder>(&self, items: &mut Vec<T>, max: usize, stay: Stay, _: &S) -> Result<usize, TryPopError> {
        let mut head = self.head.enter(stay, Pauses::Batch).ok_or(TryPopError::Busy)?;
        let dummy = head.0;
        let mut last = dummy;
        let mut count = 0;
        while count < max {
            // SAFETY: we hold the head lock, so no node from the dummy on is freed.
            let next = unsafe { &(*last).next }.load(Acquire);
            if next.is_null() {
                break;
            }
            last = next;
            count += 1;
        }
        if count == 0 {
            // SAFETY: as above.
            last = unsafe { self.look_again(dummy) }?;
            count = 1;
        }
        // Before anything is taken out: this may panic.
        items.reserve(count);
        let mut node = dummy;
        for _ in 0..count {
            // SAFETY: as in `pop`; so many nodes were found behind the dummy.
            unsafe {
                node = (*node).next.load(Relaxed);
                items.push((*node).item.with(|item| (*item).assume_init_read()));
            }
        }
        self.advance(&mut head, last, count);
        drop(head);
        // SAFETY: out of the list, and their items are moved out.
        unsafe { Self::free(dummy, last) };
        Ok(count)
    }

    fn close(&self) {
        let _tail = self.tail.lock();
        self.closed.store(true, Release);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }

    fn len(&self) -> usize {
        loop {
            let popped = self.popped.load(Acquire);
            let pushed = self.pushed.load(Acquire);
            if self.popped.load(Acquire) == popped {
                return pushed.wrapping_sub(popped);
            }
            retry();
        }
    }

    fn capacity(&self) -> usize {
        UNBOUNDED
    }

    /// By the nodes: those that a push has counted may not be linked yet.
    fn has_item(&self) -> bool {
        self.filled_alone(1) != 0
    }

    fn filled_alone(&self, most: usize) -> usize {
        let most = most.min(self.len());
        if most == 0 {
            return 0;
        }
        let head = self.head.lock();
        let mut node = head.0;
        for count in 0..most {
            // SAFETY: we hold the head lock, so no node from the dummy on is freed.
            node = unsafe { &(*node).next }.load(Acquire);
            if node.is_null() {
                return count;
            }
        }
        most
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        /// The nodes, also when an item's drop panics.
        struct Nodes<T>(*mut Node<T>);
        impl<T> Drop for Nodes<T> {
            fn drop(&mut self) {
                // SAFETY: no other thread is left; the items are dropped.
                unsafe { List::free(self.0, ptr::null_mut()) };
            }
        }
        let nodes = Nodes(self.head.0.get_mut().0);
        let mut node = nodes.0;
        let count = self.pushed.load(Relaxed).wrapping_sub(self.popped.load(Relaxed));
        drop_all(count, |_| {
            // SAFETY: so many nodes with an item follow the dummy.
            unsafe {
                node = (*node).next.load(Relaxed);
                (*node).item.with_mut(|item| (*item).assume_init_drop());
            }
        });
    }
}
