//! The queues of [`mpmc`](crate::mpmc) as the way to one worker: what the paper's section 3.2 measures.
//!
//! # How it works
//!
//! 1. Only those calls of the queue are used that do not wait for its state. Sleeping and waking go through the same
//!    [`Control`] that the queues of [`spsc`](crate::spsc) have. So a dispatcher sleeps once for all of its queues,
//!    whatever they are.
//! 2. `Busy` means that the other end is in the middle of its call. A push that has not returned need not have taken
//!    effect, so its item is not there: the pop says `Empty`, and the other way about `Full`.
//! 3. Only if there is an item (room) beside that does the call try again: then a lock was held, or the item has just
//!    come.
//!
//! # Synchronization
//!
//! - The park protocol of [`crate::wait`]. Its publications are the queue's own: a push or a pop has taken effect
//!   before the state of the other end is read.
//! - A full fence before the look that makes `Busy` an `Empty` or a `Full`, and before the one that leaves a batch no
//!   room: two threads that each push to one queue and then find the other one empty are not both right, as with the
//!   queues' own answers. No model shows it: what loom compares and does not swap is never out of date.
//!
//! # Progress
//!
//! That of the queue: with [`Ticket`](mpmc::Ticket) and [`MichaelScott`](mpmc::MichaelScott) a thread that is stopped
//! in the middle of its call holds up no `try_` call of the other end; where it may hold a lock it does.

use super::queue::{Ends, Queue, Receiver, Sender, sealed};
use crate::bound::{Bounded, Unbounded};
use crate::end::wait::{Ended, Look, wait_until};
use crate::end::{Control, End};
use crate::error::{ChannelError, Closed, PopTimeoutError, TryPopError, TryPushError};
use crate::mpmc::{self, Design, NoStats, Options};
use crate::start::{START, START_32};
use crate::sync::{Arc, Instant, full_fence, pause};
use crate::wait::{Spin, Strategy, selectable};
use core::fmt;
use core::marker::PhantomData;
use std::time::Duration;
use std::vec::Vec;

/// A design of [`mpmc`](crate::mpmc) between a dispatcher and each of its workers: `Mpmc<mpmc::Ticket>`.
///
/// It is slower than any queue of [`spsc`](crate::spsc), and is there to show that. A batch takes one synchronization,
/// by [`dispatch_slice`](super::Dispatcher::dispatch_slice) or [`dispatch_batch`](super::Dispatcher::dispatch_batch)
/// and [`pop_batch`](super::Worker::pop_batch).
///
/// ```
/// use corelane::dispatch::{Builder, Mpmc};
/// use corelane::mpmc::Ticket;
///
/// let (mut dispatcher, mut workers) = Builder::new(2).build_with::<u32, Mpmc<Ticket>>()?;
/// dispatcher.dispatch(1).unwrap();
/// assert_eq!(workers[0].pop(), Ok(1));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
pub struct Mpmc<D>(PhantomData<D>);

impl<D> fmt::Debug for Mpmc<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Mpmc")
    }
}

impl<D: Bounded> Bounded for Mpmc<D> {}

impl<D: Unbounded> Unbounded for Mpmc<D> {}

impl<T: Send, D: Design<T>> sealed::Sealed<T> for Mpmc<D> {}

struct Shared<T: Send, D: Design<T>> {
    queue: mpmc::Queue<T, D, Spin, NoStats>,
    control: Control,
}

/// The dispatcher's end.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle")]
pub struct MpmcSender<T: Send, D: Design<T>> {
    shared: Arc<Shared<T, D>>,
    pushed: usize,
    /// A batch on its way; empty between two calls.
    batch: Vec<T>,
}

/// The worker's end.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "a part of a handle")]
pub struct MpmcReceiver<T: Send, D: Design<T>, W> {
    shared: Arc<Shared<T, D>>,
    popped: usize,
    wait: W,
}

impl<T: Send + 'static, D: Design<T>> Queue<T> for Mpmc<D> {
    type Tuning = ();
    type Sender<W: Strategy> = MpmcSender<T, D>;
    type Receiver<W: Strategy> = MpmcReceiver<T, D, W>;

    fn create<W: Strategy>(capacity: usize, (): (), wait: W) -> Result<Ends<T, Self, W>, ChannelError> {
        let queue = mpmc::any_queue(capacity, Options::new().wait(Spin))?;
        let shared = Arc::new(Shared { queue, control: Control::new() });
        let sender = MpmcSender { shared: shared.clone(), pushed: START, batch: Vec::new() };
        Ok((sender, MpmcReceiver { shared, popped: START, wait }))
    }
}

impl<T: Send, D: Design<T>> MpmcSender<T, D> {
    /// How many of up to `most` jobs find room. 0 is as exact as `Full`.
    fn room(&self, most: usize) -> usize {
        match self.shared.queue.room_alone(most) {
            0 => {
                full_fence();
                self.shared.queue.room_alone(most)
            }
            room => room,
        }
    }

    /// To be called after each publication.
    fn published(&mut self, n: usize) {
        self.pushed = self.pushed.wrapping_add(n);
        let state = self.shared.control.consumer.after_publication();
        if state != 0 {
            self.shared.control.handed_over(state, self.pushed);
        }
    }

    fn push_batch(&mut self) -> usize {
        let count = self.batch.len();
        let mut looks = START_32;
        while !self.batch.is_empty() {
            // There is room, as no other thread pushes: only a lock is missing.
            match self.shared.queue.try_push_batch(&mut self.batch) {
                Ok(pushed) => self.published(pushed),
                Err(_) => {
                    looks = looks.wrapping_add(1);
                    pause(looks);
                }
            }
        }
        count
    }
}

impl<T: Send, D: Design<T>> Sender<T> for MpmcSender<T, D> {
    fn try_push(&mut self, item: T) -> Result<(), TryPushError<T>> {
        let (mut item, mut looks) = (item, START_32);
        loop {
            match self.shared.queue.try_push(item) {
                Ok(()) => {
                    self.published(1);
                    return Ok(());
                }
                Err(TryPushError::Full(back)) => return Err(TryPushError::Full(back)),
                Err(TryPushError::Closed(back)) => return Err(TryPushError::Closed(back)),
                Err(TryPushError::Busy(back)) => item = back,
            }
            if self.room(1) == 0 {
                return Err(TryPushError::Full(item));
            }
            looks = looks.wrapping_add(1);
            pause(looks);
        }
    }

    unsafe fn push_from(&mut self, from: *const T, most: usize) -> usize {
        let count = self.room(most);
        // SAFETY: so many are there by the caller's promise, and this takes each once.
        self.batch.extend((0..count).map(|i| unsafe { from.add(i).read() }));
        self.push_batch()
    }

    fn len(&self) -> usize {
        self.shared.queue.len()
    }

    fn receiver_sleeps(&self) -> bool {
        self.shared.control.consumer.sleeps()
    }

    fn capacity(&self) -> usize {
        self.shared.queue.capacity()
    }

    fn close(&mut self) {
        self.shared.queue.close();
        self.shared.control.close_by_producer();
    }
}

impl<T: Send, D: Design<T>> Drop for MpmcSender<T, D> {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.control.close_by_producer();
    }
}

impl<T: Send, D: Design<T>> Look for MpmcSender<T, D> {
    fn is_ready(&mut self, room: usize) -> bool {
        self.room(room) == room
    }

    fn is_over(&self) -> bool {
        self.shared.queue.is_closed()
    }

    fn shared(&self) -> &End {
        &self.shared.control.producer
    }

    /// At any pop, where the dispatcher waits for memory.
    fn wake_for(&self, slots: usize) {
        let capacity = self.shared.queue.capacity().min(isize::MAX as usize);
        self.shared.control.producer.wake_at(self.pushed.wrapping_add(slots).wrapping_sub(capacity));
    }
}

selectable::selectable!([T: Send, D: Design<T>] MpmcSender<T, D>);

impl<T: Send, D: Design<T>, W> MpmcReceiver<T, D, W> {
    /// Whether to try again: if not, what is in the middle of its push is still to come.
    fn is_there(&self) -> bool {
        full_fence();
        self.shared.queue.filled_alone(1) != 0
    }

    fn popped(&mut self, n: usize) {
        self.popped = self.popped.wrapping_add(n);
        self.shared.control.slots_freed(self.popped);
    }
}

impl<T: Send, D: Design<T>, W: Strategy> Receiver<T> for MpmcReceiver<T, D, W> {
    fn try_pop(&mut self) -> Result<T, TryPopError> {
        let mut looks = START_32;
        loop {
            match self.shared.queue.try_pop() {
                Ok(item) => {
                    self.popped(1);
                    return Ok(item);
                }
                Err(TryPopError::Closed) => return Err(TryPopError::Closed),
                Err(TryPopError::Busy) if self.is_there() => {}
                Err(TryPopError::Empty | TryPopError::Busy) => return Err(TryPopError::Empty),
            }
            looks = looks.wrapping_add(1);
            pause(looks);
        }
    }

    fn pop(&mut self) -> Result<T, Closed> {
        loop {
            match self.try_pop() {
                Ok(item) => return Ok(item),
                Err(TryPopError::Closed) => return Err(Closed(())),
                Err(TryPopError::Empty | TryPopError::Busy) => self.wait_for_item()?,
            }
        }
    }

    fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopTimeoutError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            match self.try_pop() {
                Ok(item) => return Ok(item),
                Err(TryPopError::Closed) => return Err(PopTimeoutError::Closed),
                Err(TryPopError::Empty | TryPopError::Busy) => {}
            }
            let wait = self.wait.clone();
            if let Err(Ended::Timeout) = wait_until(self, 1, &wait, deadline) {
                return Err(PopTimeoutError::Timeout);
            }
        }
    }

    fn pop_some(&mut self, items: &mut Vec<T>, max: usize) -> usize {
        let mut looks = START_32;
        loop {
            match self.shared.queue.try_pop_batch(items, max) {
                Ok(0) => return 0,
                Ok(count) => {
                    self.popped(count);
                    return count;
                }
                Err(TryPopError::Busy) if self.is_there() => {}
                Err(_) => return 0,
            }
            looks = looks.wrapping_add(1);
            pause(looks);
        }
    }

    /// One by one: what was taken in a batch could not go back if `each` panics.
    fn give_some(&mut self, max: usize, each: &mut impl FnMut(T)) -> usize {
        for drained in 0..max {
            match self.try_pop() {
                Ok(item) => each(item),
                Err(_) => return drained,
            }
        }
        max
    }

    fn wait_for_item(&mut self) -> Result<(), Closed> {
        let wait = self.wait.clone();
        let _ = wait_until(self, 1, &wait, None);
        // Nothing is pushed to a closed queue.
        if self.shared.queue.is_closed() && self.shared.queue.is_empty() { Err(Closed(())) } else { Ok(()) }
    }

    fn len(&self) -> usize {
        self.shared.queue.filled_alone(usize::MAX)
    }

    fn is_closed(&self) -> bool {
        self.shared.queue.is_closed()
    }
}

impl<T: Send, D: Design<T>, W> Look for MpmcReceiver<T, D, W> {
    fn is_ready(&mut self, _: usize) -> bool {
        self.shared.queue.filled_alone(1) != 0
    }

    fn is_over(&self) -> bool {
        self.shared.queue.is_closed()
    }

    fn shared(&self) -> &End {
        &self.shared.control.consumer
    }
}

selectable::selectable!([T: Send, D: Design<T>, W] MpmcReceiver<T, D, W>);
