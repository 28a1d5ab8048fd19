//! The two ends of a queue as handles. The last handle of one kind that is dropped closes the queue.
//!
//! # How it works
//!
//! 1. All handles of a queue share one block: the queue, how many [`Sender`]s there are, and how many [`Receiver`]s. A
//!    handle is a pointer to it. A call goes straight to the queue and reads no count.
//! 2. A clone adds one to the count of its kind, a drop takes one off. The drop that takes off the last closes the
//!    queue, which wakes all threads that wait.
//! 3. A count that has reached 0 stays there: a handle is only made from another one of its kind. So each kind closes
//!    the queue once.
//!
//! # Synchronization
//!
//! - count, add-relaxed (clone): the new handle comes from one that is counted, so the count is not 0 and cannot become
//!   so meanwhile. Whatever carries the clone to another thread orders the rest.
//! - count, sub-acquire-release (drop): all that the other handles did comes before the close. Without that, the close
//!   that a sender's own drop allowed might refuse a push that this sender had made before. A drop that is not the last
//!   needs the release, the last one the acquire.
//! - The close itself, and what a receiver sees of the pushes before it, is the design's.
//! - The memory of the block is [`Arc`]'s, which counts for itself. A handle gives its reference up after its count, so
//!   the queue outlives each close. A clone takes its reference first, and `Arc` aborts before its own count overflows,
//!   which is never less than one of these.
//!
//! # Memory
//!
//! One block more than that of a [`Queue`], with the queue in it. The counts lie beside the queue, and no call but
//! clone and drop comes near them. The block is given back with the last handle of either kind.
//!
//! What is inside is dropped with the last receiver: it can never be popped, and it may hold what another thread waits
//! for, as the sender of a reply. A push that was in the middle of its call drops what it has left inside, see
//! [`sleepers`](super::sleepers). Only an item that holds a receiver of its own queue keeps both for ever.

use super::design::Design;
#[cfg(feature = "std")]
use super::queue::selectable;
use super::queue::{Options, Queue, any_queue};
#[cfg(feature = "std")]
use super::side::Side;
use super::stats::{Counting, NoStats, Recorder, Stats};
use super::ticket::Ticket;
use crate::bound::Bounded;
use crate::error::{ChannelError, Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use crate::items::{Items, Pops};
use crate::macros::forward;
use crate::sync::{AcqRel, Arc, AtomicUsize, Relaxed};
use crate::wait::{Adaptive, Strategy};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// What all handles of a queue share.
struct Shared<T: Send, D: Design<T>, W, S: Recorder> {
    queue: Queue<T, D, W, S>,
    /// Written by clones and drops, as is the next.
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

/// Makes a queue of any design with a bound, named by the type parameter `D`, and a handle for each side.
///
/// ```
/// use corelane::mpmc::{self, Condvar, NoStats, Options};
/// use corelane::wait::Yield;
///
/// let options = Options::new().wait(Yield);
/// let (sender, receiver) = mpmc::channel_with::<u32, Condvar, _, NoStats>(16, options)?;
/// sender.push(1).unwrap();
/// assert_eq!(receiver.pop(), Ok(1));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
///
/// # Errors
/// As [`queue_with`](super::queue_with).
#[allow(clippy::type_complexity, reason = "the two types are what it returns")]
pub fn channel_with<T: Send, D: Design<T> + Bounded, W: Strategy, S: Recorder>(
    capacity: usize,
    options: Options<W, S>,
) -> Result<(Sender<T, D, W, S>, Receiver<T, D, W, S>), ChannelError> {
    any_channel(capacity, options)
}

/// As [`channel_with`], for what works over all designs: one without a bound has memory for `capacity` items from the
/// start.
///
/// # Errors
/// As [`channel_with`].
#[doc(hidden)]
#[allow(clippy::type_complexity, reason = "the two types are what it returns")]
pub fn any_channel<T: Send, D: Design<T>, W: Strategy, S: Recorder>(
    capacity: usize,
    options: Options<W, S>,
) -> Result<(Sender<T, D, W, S>, Receiver<T, D, W, S>), ChannelError> {
    let queue = any_queue(capacity, options)?;
    let shared = Arc::new(Shared { queue, senders: AtomicUsize::new(1), receivers: AtomicUsize::new(1) });
    Ok((Sender { shared: shared.clone() }, Receiver { shared }))
}

/// Pushes. A clone is one more handle to the same queue; when the last is dropped the queue is closed: receivers pop
/// what is inside, and are then told [`Closed`].
///
/// Every call takes `&self`: threads may also share one handle by reference. [`Queue`] has the same calls for threads
/// that share the queue itself.
///
/// ```
/// use corelane::error::{Closed, TryPushError};
/// use corelane::mpmc;
///
/// let (sender, receiver) = mpmc::channel(3);
/// let other = sender.clone();
/// assert_eq!(other.push('a'), Ok(()));
/// assert_eq!(sender.push_batch(&mut vec!['b', 'c']), Ok(()));
/// assert_eq!((sender.len(), sender.capacity(), sender.is_empty()), (3, 3, false));
/// assert_eq!(sender.try_push('d'), Err(TryPushError::Full('d')));
/// drop((sender, other));
///
/// assert_eq!(receiver.iter().collect::<String>(), "abc");
/// assert_eq!(receiver.pop(), Err(Closed(())));
/// ```
#[doc(alias = "Producer")]
pub struct Sender<T: Send, D: Design<T> = Ticket, W = Adaptive, S: Recorder = NoStats> {
    shared: Arc<Shared<T, D, W, S>>,
}

/// Pops. A clone is one more handle to the same queue, and each item goes to one of them; when the last is dropped the
/// queue is closed: pushes are refused with their items, and what is inside is dropped.
///
/// Every call takes `&self`: threads may also share one handle by reference. As an iterator it waits for items, and
/// ends when the queue is closed and drained.
///
/// ```
/// use corelane::error::{Closed, TryPopError};
/// use corelane::mpmc;
///
/// let (sender, receiver) = mpmc::channel(8);
/// let other = receiver.clone();
/// sender.push_batch(&mut vec![1, 2, 3, 4])?;
/// assert_eq!((receiver.len(), receiver.is_empty(), receiver.capacity()), (4, false, 8));
/// assert_eq!(receiver.pop(), Ok(1));
/// assert_eq!(other.try_pop(), Ok(2));
/// let mut items = Vec::new();
/// assert_eq!(other.pop_batch(&mut items, 10), Ok(2));
/// assert_eq!(receiver.try_pop(), Err(TryPopError::Empty));
///
/// drop((receiver, other));
/// assert_eq!(sender.push(5), Err(Closed(5)));
/// # Ok::<(), Closed>(())
/// ```
#[doc(alias = "Consumer")]
pub struct Receiver<T: Send, D: Design<T> = Ticket, W = Adaptive, S: Recorder = NoStats> {
    shared: Arc<Shared<T, D, W, S>>,
}

/// What both kinds of handles are and have.
macro_rules! handle {
    ($handle:ident, $name:literal, $count:ident, $($last:ident),+) => {
        impl<T: Send, D: Design<T>, W, S: Recorder> Clone for $handle<T, D, W, S> {
            fn clone(&self) -> Self {
                // First, see above: this aborts where the count would overflow.
                let shared = self.shared.clone();
                shared.$count.fetch_add(1, Relaxed);
                Self { shared }
            }
        }

        impl<T: Send, D: Design<T>, W, S: Recorder> Drop for $handle<T, D, W, S> {
            fn drop(&mut self) {
                if self.shared.$count.fetch_sub(1, AcqRel) == 1 {
                    $(self.shared.queue.$last();)+
                }
            }
        }

        impl<T: Send, D: Design<T>, W, S: Recorder> fmt::Debug for $handle<T, D, W, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($handle)).field("queue", &self.shared.queue).finish_non_exhaustive()
            }
        }

        impl<T: Send, D: Design<T>, W, S: Recorder> $handle<T, D, W, S> {
            /// Closes the queue for all its handles: no later push succeeds, threads that wait are woken. What is
            /// inside can still be popped.
            ///
            /// ```
            /// # use corelane::mpmc;
            /// use corelane::error::Closed;
            ///
            /// let (sender, receiver) = mpmc::channel(8);
            /// sender.push(1).unwrap();
            #[doc = concat!($name, ".close();")]
            /// assert!(sender.is_closed() && receiver.is_closed());
            /// assert_eq!(sender.push(2), Err(Closed(2)));
            /// assert_eq!((receiver.pop(), receiver.pop()), (Ok(1), Err(Closed(()))));
            /// ```
            pub fn close(&self) {
                self.shared.queue.close();
            }

            /// True once the queue is closed, by a call or because all handles of one kind are gone. Then it stays so.
            pub fn is_closed(&self) -> bool {
                self.shared.queue.is_closed()
            }

            /// Items inside, as [`Queue::len`].
            #[must_use]
            pub fn len(&self) -> usize {
                self.shared.queue.len()
            }

            /// True if [`len`](Self::len) is 0.
            pub fn is_empty(&self) -> bool {
                self.shared.queue.is_empty()
            }

            /// The largest number of items the queue can hold, as [`Queue::capacity`].
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.shared.queue.capacity()
            }
        }

        impl<T: Send, D: Design<T>, W> $handle<T, D, W, Counting> {
            /// What the queue has counted, as [`Queue::stats`].
            ///
            /// ```
            /// use corelane::mpmc::{Counting, Options, ticket};
            ///
            /// let (sender, receiver) = ticket::channel_with(8, Options::new().stats::<Counting>())?;
            /// sender.push(1).unwrap();
            #[doc = concat!("assert_eq!(", $name, ".stats().push.items, 1);")]
            /// # drop(receiver);
            /// # Ok::<(), corelane::error::ChannelError>(())
            /// ```
            pub fn stats(&self) -> Stats {
                self.shared.queue.stats()
            }
        }
    };
}

handle!(Sender, "sender", senders, close);
handle!(Receiver, "receiver", receivers, close, abandon);

impl<T: Send, D: Design<T>, W, S: Recorder> Sender<T, D, W, S> {
    forward! { shared.queue:
        /// Pushes an item if there is room, as [`Queue::try_push`]. Never waits.
        ///
        /// # Errors
        /// No room, or the queue is closed, or this call had to wait for another thread in the middle of its call. The
        /// item comes back.
        #[doc(alias = "try_send", alias = "offer")]
        #[inline]
        pub fn try_push(&self, item: T) -> Result<(), TryPushError<T>>;

        /// Pushes items from the front of the vector, as many as there is room for, as [`Queue::try_push_batch`]. Never
        /// waits.
        ///
        /// ```
        /// let (sender, _receiver) = corelane::mpmc::channel(2);
        /// let mut items = vec![1, 2, 3];
        /// assert_eq!(sender.try_push_batch(&mut items), Ok(2));
        /// assert_eq!(items, [3]);
        /// ```
        ///
        /// # Errors
        /// Nothing was pushed, for the same reasons as in [`try_push`](Self::try_push). An empty vector is no error.
        pub fn try_push_batch(&self, items: &mut Vec<T>) -> Result<usize, TryPushError<()>>;
    }
}

impl<T: Send, D: Design<T>, W: Strategy, S: Recorder> Sender<T, D, W, S> {
    forward! { shared.queue:
        /// Pushes an item; waits while the queue is full.
        ///
        /// # Errors
        /// The queue is closed. The item comes back.
        #[doc(alias = "send", alias = "enqueue")]
        #[inline]
        pub fn push(&self, item: T) -> Result<(), Closed<T>>;

        /// Pushes an item; waits at most this long while the queue is full, as [`Queue::push_timeout`].
        ///
        /// ```
        /// use corelane::error::PushTimeoutError;
        /// use core::time::Duration;
        ///
        /// let (sender, _receiver) = corelane::mpmc::channel(1);
        /// let soon = Duration::from_millis(1);
        /// assert_eq!(sender.push_timeout('a', soon), Ok(()));
        /// assert_eq!(sender.push_timeout('b', soon), Err(PushTimeoutError::Timeout('b')));
        /// ```
        ///
        /// # Errors
        /// The time is up, or the queue is closed. The item comes back.
        #[cfg(feature = "std")]
        #[doc(alias = "send_timeout", alias = "offer")]
        pub fn push_timeout(&self, item: T, timeout: Duration) -> Result<(), PushTimeoutError<T>>;

        /// Pushes all items of the vector, in order, as [`Queue::push_batch`]; waits while the queue is full.
        ///
        /// # Errors
        /// The queue is closed. The items that were not pushed are still in the vector, in order.
        #[doc(alias = "send_many", alias = "enqueue_bulk")]
        pub fn push_batch(&self, items: &mut Vec<T>) -> Result<(), Closed>;

        /// Pushes all items of the vector, in order; waits at most this long while the queue is full.
        ///
        /// ```
        /// use corelane::error::PushTimeoutError;
        /// use core::time::Duration;
        ///
        /// let (sender, _receiver) = corelane::mpmc::channel(2);
        /// let mut items = vec![1, 2, 3];
        /// let outcome = sender.push_batch_timeout(&mut items, Duration::from_millis(1));
        /// assert_eq!((outcome, items), (Err(PushTimeoutError::Timeout(())), vec![3]));
        /// ```
        ///
        /// # Errors
        /// The time is up, or the queue is closed. The items that were not pushed are still in the vector, in order.
        #[cfg(feature = "std")]
        pub fn push_batch_timeout(&self, items: &mut Vec<T>, timeout: Duration) -> Result<(), PushTimeoutError<()>>;
    }
}

impl<T: Send, D: Design<T>, W, S: Recorder> Receiver<T, D, W, S> {
    forward! { shared.queue:
        /// Pops the oldest item, as [`Queue::try_pop`]. Never waits.
        ///
        /// # Errors
        /// `Empty` if no item is inside, `Closed` if moreover the queue is closed, `Busy` if this call had to wait for
        /// another thread in the middle of its call.
        #[doc(alias = "try_recv", alias = "poll")]
        #[inline]
        pub fn try_pop(&self) -> Result<T, TryPopError>;

        /// Pops up to `max` items in one step and appends them to `items`. Returns how many, which is 0 only if `max`
        /// is. Never waits.
        ///
        /// ```
        /// use corelane::error::TryPopError;
        ///
        /// let (sender, receiver) = corelane::mpmc::channel(2);
        /// sender.push_batch(&mut vec![1, 2]).unwrap();
        /// let mut items = vec![0];
        /// assert_eq!(receiver.try_pop_batch(&mut items, 10), Ok(2));
        /// assert_eq!(receiver.try_pop_batch(&mut items, 10), Err(TryPopError::Empty));
        /// assert_eq!(items, [0, 1, 2]);
        /// ```
        ///
        /// # Errors
        /// Nothing was popped, for the same reasons as in [`try_pop`](Self::try_pop).
        pub fn try_pop_batch(&self, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError>;
    }
}

impl<T: Send, D: Design<T>, W: Strategy, S: Recorder> Receiver<T, D, W, S> {
    forward! { shared.queue:
        /// Pops the oldest item; waits while the queue is empty.
        ///
        /// # Errors
        /// The queue is closed and drained.
        #[doc(alias = "recv", alias = "dequeue")]
        #[inline]
        pub fn pop(&self) -> Result<T, Closed>;

        /// Pops the oldest item; waits at most this long while the queue is empty, as [`Queue::pop_timeout`].
        ///
        /// ```
        /// use corelane::error::PopTimeoutError;
        /// use core::time::Duration;
        ///
        /// let (sender, receiver) = corelane::mpmc::channel(1);
        /// sender.push('a').unwrap();
        /// let soon = Duration::from_millis(1);
        /// assert_eq!(receiver.pop_timeout(soon), Ok('a'));
        /// assert_eq!(receiver.pop_timeout(soon), Err(PopTimeoutError::Timeout));
        /// ```
        ///
        /// # Errors
        /// The time is up, or the queue is closed and drained.
        #[cfg(feature = "std")]
        #[doc(alias = "recv_timeout", alias = "poll")]
        pub fn pop_timeout(&self, timeout: Duration) -> Result<T, PopTimeoutError>;

        /// Pops up to `max` items in one step and appends them to `items`; waits while the queue is empty. Returns how
        /// many, which is 0 only if `max` is.
        ///
        /// # Errors
        /// The queue is closed and drained.
        #[doc(alias = "recv_many", alias = "dequeue_bulk")]
        pub fn pop_batch(&self, items: &mut Vec<T>, max: usize) -> Result<usize, Closed>;
    }

    /// Pops up to `max` items in one step and appends them to `items`; waits at most this long while the queue is
    /// empty. Returns how many, which is 0 only if `max` is.
    ///
    /// ```
    /// use corelane::error::PopTimeoutError;
    /// use core::time::Duration;
    ///
    /// let (sender, receiver) = corelane::mpmc::channel(2);
    /// sender.push_batch(&mut vec![1, 2]).unwrap();
    /// let (mut items, soon) = (Vec::new(), Duration::from_millis(1));
    /// assert_eq!(receiver.pop_batch_timeout(&mut items, 10, soon), Ok(2));
    /// assert_eq!(receiver.pop_batch_timeout(&mut items, 10, soon), Err(PopTimeoutError::Timeout));
    /// ```
    ///
    /// # Errors
    /// The time is up, or the queue is closed and drained.
    #[cfg(feature = "std")]
    pub fn pop_batch_timeout(
        &self,
        items: &mut Vec<T>,
        max: usize,
        timeout: Duration,
    ) -> Result<usize, PopTimeoutError> {
        self.shared.queue.pop_batch_timeout(items, max, timeout)
    }

    /// Items as they come: waits for each, and ends when the queue is closed and drained. Other handles may pop
    /// meanwhile.
    ///
    /// ```
    /// let (sender, receiver) = corelane::mpmc::channel(4);
    /// let producer = std::thread::spawn(move || (1..=9).for_each(|item| sender.push(item).unwrap()));
    /// assert_eq!(receiver.iter().take(3).sum::<u32>(), 6);
    /// assert_eq!(receiver.iter().sum::<u32>(), 39);
    /// producer.join().unwrap();
    /// ```
    pub fn iter(&self) -> Iter<'_, T, D, W, S> {
        Items(self)
    }
}

#[cfg(feature = "std")]
selectable!(Sender<T, D, W, S>, Push, shared.queue);
#[cfg(feature = "std")]
selectable!(Receiver<T, D, W, S>, Pop, shared.queue);

/// See [`Receiver::iter`].
pub type Iter<'a, T, D = Ticket, W = Adaptive, S = NoStats> = Items<&'a Receiver<T, D, W, S>>;

/// Items as they come, from a handle of its own: [`Receiver::into_iter`].
///
/// ```
/// let (sender, receiver) = corelane::mpmc::channel(4);
/// sender.push_batch(&mut vec![1, 2, 3]).unwrap();
/// drop(sender);
/// let mut sum = 0;
/// for item in receiver {
///     sum += item;
/// }
/// assert_eq!(sum, 6);
/// ```
pub type IntoIter<T, D = Ticket, W = Adaptive, S = NoStats> = Items<Receiver<T, D, W, S>>;

impl<T: Send, D: Design<T>, W: Strategy, S: Recorder> Pops for &Receiver<T, D, W, S> {
    type Item = T;

    #[inline]
    fn next_item(&mut self) -> Option<T> {
        self.pop().ok()
    }
}

impl<T: Send, D: Design<T>, W: Strategy, S: Recorder> Pops for Receiver<T, D, W, S> {
    type Item = T;

    #[inline]
    fn next_item(&mut self) -> Option<T> {
        self.pop().ok()
    }
}

impl<'a, T: Send, D: Design<T>, W: Strategy, S: Recorder> IntoIterator for &'a Receiver<T, D, W, S> {
    type Item = T;
    type IntoIter = Iter<'a, T, D, W, S>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Send, D: Design<T>, W: Strategy, S: Recorder> IntoIterator for Receiver<T, D, W, S> {
    type Item = T;
    type IntoIter = IntoIter<T, D, W, S>;

    fn into_iter(self) -> Self::IntoIter {
        Items(self)
    }
}
