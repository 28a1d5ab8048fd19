//! Ends of a queue that a task awaits instead of a thread: futures, `Stream` and `Sink`, for every design. Behind the
//! feature `async`.
//!
//! ```
//! use corelane::spsc;
//!
//! # futures_executor::block_on(async {
//! let (mut producer, consumer) = spsc::channel(64);
//! let mut consumer = consumer.into_async();
//!
//! // A thread that blocks feeds a task that does not.
//! let thread = std::thread::spawn(move || {
//!     for item in 1..=1000_u64 {
//!         producer.push(item).expect("the task is there");
//!     }
//! });
//! let mut sum = 0;
//! while let Ok(item) = consumer.pop().await {
//!     sum += item;
//! }
//! assert_eq!(sum, 500_500);
//! # thread.join().unwrap();
//! # });
//! ```
//!
//! [`Producer::into_async`] and [`Consumer::into_async`] turn one end each, and the end can be turned back. The other
//! end may be a thread's or a task's, on any executor. Turning moves a handle and nothing else: the queue is the same.
//!
//! # Promises
//!
//! - **Every future is cancel-safe.** It may be dropped at any point, by a `select!`, a time-out or an aborted task.
//!   The table below says what becomes of the item.
//! - **A poll is wait-free.** So is the wake-up by the other end, except for what the executor does in it.
//! - **An idle task is not polled**, but for [once](self#without-membarrier) where there is no membarrier.
//! - **A blocking end pays nothing.** To it a waiting task is one more reason to leave the fast path, in a word that it
//!   reads anyway.
//! - **A waker that panics disturbs no call.** The other end runs the waker in the middle of a call. The panic reaches
//!   the panic hook and goes no further: the call does what it says, and the task is as if it had not been woken.
//!   A poll that wakes its own task, to give others a turn, is then pending, and nothing polls the task again.
//!   Without the feature `std` it ends the program.
//!
//! | future | dropped before it was ready |
//! |---|---|
//! | [`AsyncConsumer::pop`], [`pop_batch`], [`pop_slice`], [`peek`] | nothing was popped; the item stays |
//! | [`AsyncProducer::push`] | the item was not pushed, and is dropped with the future unless [taken back] |
//! | [`push_batch`](AsyncProducer::push_batch) | what was not pushed is left in the vector |
//! | [`AsyncProducer::reserve`], [`wait_for_space`] | no slot is lost, and there is no item to lose |
//!
//! To push a value that must not be lost, await [`reserve`](AsyncProducer::reserve) first: what it returns pushes
//! without waiting.
//!
//! ```
//! use corelane::spsc;
//! use std::future::Future;
//! use std::pin::Pin;
//! use std::task::{Context, Waker};
//!
//! let (producer, mut consumer) = spsc::lamport::channel(1);
//! let mut producer = producer.into_async();
//! let mut context = Context::from_waker(Waker::noop());
//! producer.try_push("first").unwrap();
//!
//! // Given up in the middle: the item comes back.
//! let mut push = producer.push("second");
//! assert!(Pin::new(&mut push).poll(&mut context).is_pending());
//! assert_eq!(push.into_item(), Some("second"));
//!
//! // A slot first, and then the item.
//! assert!(Pin::new(&mut producer.reserve()).poll(&mut context).is_pending());
//! assert_eq!(consumer.pop(), Ok("first"));
//! # futures_executor::block_on(async {
//! let slot = producer.reserve().await.expect("the consumer is there");
//! slot.write("second").expect("the consumer is there");
//! # });
//! assert_eq!(consumer.pop(), Ok("second"));
//! ```
//!
//! # When to use it, and when not
//!
//! Use it between a thread and tasks, or between tasks on several threads of an executor. A wait costs a system call on
//! the waiting side and the executor's scheduling on both. A thread of its own that spins for a moment has shorter
//! round trips.
//!
//! Do not use it between tasks of one thread: nothing has to cross cores there, and a `VecDeque` in a `RefCell` does.
//!
//! # How it works
//!
//! 1. A call that finds an item, or a slot, takes it: it does what a `try_` call does, and no more.
//! 2. A call that finds nothing prepares a wait. It leaves its task's waker in the one place that its end has for it,
//!    raises the flag in its end's word, executes the heavy half of the barrier, and looks once more. If there is still
//!    nothing it is pending. This is the [park protocol](crate::wait#the-park-protocol) with a waker in the sleeper's
//!    place, and the argument is the same: either that look finds what was published, or the publisher finds the flag.
//! 3. The publisher takes the flag down first and the waker then, so one wait costs one wake-up.
//! 4. The flag stays up when the future is dropped. It also stays up when the future is polled again because its task
//!    waits for something else, too. While the flag is up the wait is prepared already: a poll exchanges the waker for
//!    that of its own task, and needs no barrier. At worst a task is polled once for nothing.
//! 5. A poll may come while the other end is between the flag and the waker. Such a poll asks to be repeated, because
//!    the task that is being woken may be that of an earlier poll.
//! 6. After [`BUDGET`] ready calls in a row an end gives its executor a turn: one call is pending, with its task woken
//!    already. Without that, a task whose other end is on another core and as fast would never let go of its executor's
//!    thread.
//!
//! # Without membarrier
//!
//! Where there is no membarrier (see [`wait`](crate::wait)), a publisher may overlook a flag, so a parked thread sleeps
//! for a millisecond at most. A task cannot do that. So its end asks the other end to change the word by a
//! read-modify-write after every publication, where it would only read the word. That makes the protocol exact, for the
//! price of a fence a publication.
//!
//! The other end may not have seen that request yet. So a task that begins to wait in the first millisecond, until it
//! must have, is polled once more after that, see `wait/timer.rs`. The same happens where membarrier is refused later,
//! by a sandbox that was set up after the queue was made.
//!
//! Without the feature `std` there is neither a clock nor a thread for that. So in such a build with `async` every
//! publication of every queue holds a full fence, and the protocol is exact from the beginning.
//!
//! # Synchronization
//!
//! - Items and slots: the design's.
//! - The waker, before the flag is raised (release) → the publisher that takes it down (acquire).
//! - Flag and publication: [`wait`](crate::wait). The cell of the waker: `wait/waker.rs`.
//!
//! [`pop_batch`]: AsyncConsumer::pop_batch
//! [`pop_slice`]: AsyncConsumer::pop_slice
//! [`peek`]: AsyncConsumer::peek
//! [taken back]: Push::into_item
//! [`wait_for_space`]: AsyncProducer::wait_for_space

use super::design::Design;
use super::handle::{Consumer, Peeked, Producer, Reserved};
use super::lane::Lane;
use super::stats::{Counting, NoStats, Recorder, Stats};
pub use crate::end::task::BUDGET;
use crate::end::task::{POLLED_AGAIN, Polls};
use crate::end::wait::Look;
use crate::error::{Closed, TryPopError, TryPushError};
use crate::macros::{debug, forward};
use crate::wait::Adaptive;
use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;

impl<T, D: Design<T>, W, S: Recorder> Producer<T, D, W, S> {
    /// Makes this end a task's, see [`asynchronous`](self). With the feature `async`.
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (producer, mut consumer) = corelane::spsc::channel(8);
    /// producer.into_async().push(1).await.expect("the consumer is there");
    /// assert_eq!(consumer.pop(), Ok(1));
    /// # });
    /// ```
    pub fn into_async(self) -> AsyncProducer<T, D, W, S> {
        AsyncProducer { polls: Polls::of([self.shared()]), producer: self }
    }
}

impl<T, D: Design<T>, W, S: Recorder> Consumer<T, D, W, S> {
    /// Makes this end a task's, see [`asynchronous`](self). With the feature `async`.
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (mut producer, consumer) = corelane::spsc::channel(8);
    /// producer.push(1).unwrap();
    /// assert_eq!(consumer.into_async().pop().await, Ok(1));
    /// # });
    /// ```
    pub fn into_async(self) -> AsyncConsumer<T, D, W, S> {
        AsyncConsumer { polls: Polls::of([self.shared()]), drained: false, consumer: self }
    }
}

/// The sending end of a queue, for a task. `Send`, not `Sync`, not `Clone`: one task at a time pushes.
///
/// Calls that return no future never wait. Dropping it closes the queue; the consumer can still pop what is inside.
///
/// ```
/// # futures_executor::block_on(async {
/// let (producer, mut consumer) = corelane::spsc::channel(6);
/// let mut producer = producer.into_async();
/// // Futures wait for room.
/// assert_eq!(producer.push(1).await, Ok(()));
/// assert_eq!(producer.push_batch(&mut vec![2]).await, Ok(()));
/// assert_eq!(producer.push_slice(&[3]).await, Ok(()));
/// // Other calls never wait.
/// assert_eq!(producer.try_push(4), Ok(()));
/// assert_eq!(producer.try_push_batch(&mut vec![5]), Ok(1));
/// assert_eq!(producer.try_push_slice(&[6, 7]), Ok(1));
/// assert!(producer.try_reserve().unwrap_err().is_full());
/// assert_eq!((producer.len(), producer.is_empty()), (6, false));
/// assert_eq!((producer.capacity(), producer.release_lag()), (6, 0));
///
/// assert_eq!((consumer.pop(), consumer.pop()), (Ok(1), Ok(2)));
/// assert_eq!(producer.wait_for_space().await, Ok(()));
/// producer.reserve().await.unwrap().write(7).unwrap();
/// // As it was, for a thread.
/// let mut producer = producer.into_blocking();
/// assert_eq!(producer.push(8), Ok(()));
/// let mut producer = producer.into_async();
/// producer.close();
/// assert!(producer.is_closed());
/// assert!(consumer.into_iter().eq(3..=8));
/// # });
/// ```
pub struct AsyncProducer<T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats> {
    producer: Producer<T, D, W, S>,
    polls: Polls,
}

// No item is ever pinned in a handle.
impl<T, D: Design<T>, W, S: Recorder> Unpin for AsyncProducer<T, D, W, S> {}

impl<T, D: Design<T>, W, S: Recorder> AsyncProducer<T, D, W, S> {
    /// Pushes an item, waiting for a free slot.
    ///
    /// The future owns the item. If it is dropped before it is ready the item was not pushed, and is dropped with it:
    /// [`Push::into_item`] takes it back, and [`reserve`](Self::reserve) waits without it.
    ///
    /// # Errors
    /// `Closed` with the item, once the consumer has closed or is gone.
    pub fn push(&mut self, item: T) -> Push<'_, T, D, W, S> {
        Push { producer: self, item: Some(item) }
    }

    /// Waits for a free slot, to be filled in place or [written](Reserved::write) without waiting. Nothing is pushed if
    /// it is dropped, before or after it was there.
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone.
    pub fn reserve(&mut self) -> impl Future<Output = Result<Reserved<'_, T, D, W, S>, Closed<()>>> + Unpin {
        let mut end = Some(self);
        poll_fn(move |context| {
            ready!(end.as_mut().expect(POLLED_AGAIN).poll_space(context))?;
            let end = end.take().expect(POLLED_AGAIN);
            Poll::Ready(end.producer.try_reserve().map_err(|refused| match refused {
                TryPushError::Closed(()) => Closed(()),
                _ => unreachable!("only this end fills free slots"),
            }))
        })
    }

    /// Pushes all of the items, in order, waiting for free slots. If the future is dropped before it is ready, what was
    /// not pushed is left in the vector.
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone. What was not pushed is left in the vector.
    pub fn push_batch(&mut self, items: &mut Vec<T>) -> impl Future<Output = Result<(), Closed>> + Unpin {
        poll_fn(move |context| {
            while !items.is_empty() {
                ready!(self.poll_space(context))?;
                if let Err(TryPushError::Closed(())) = self.producer.try_push_batch(items) {
                    return Poll::Ready(Err(Closed(())));
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Pushes all of the items, in order, waiting for free slots. If the future is dropped before it is ready, some of
    /// the first are pushed, and nothing says how many: [`push_batch`](Self::push_batch) leaves the others.
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone, with the number of items that were pushed.
    pub fn push_slice(&mut self, items: &[T]) -> impl Future<Output = Result<(), Closed<usize>>> + Unpin
    where
        T: Copy,
    {
        let mut pushed = 0;
        poll_fn(move |context| {
            while pushed < items.len() {
                ready!(self.poll_space(context)).map_err(|_| Closed(pushed))?;
                match self.producer.try_push_slice(&items[pushed..]) {
                    Ok(more) => pushed += more,
                    Err(TryPushError::Closed(())) => return Poll::Ready(Err(Closed(pushed))),
                    Err(_) => {}
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Waits until [`try_push`](Self::try_push) would not say Full: a thread's
    /// [`wait_for_room(1)`](Producer::wait_for_room).
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone.
    pub fn wait_for_space(&mut self) -> impl Future<Output = Result<(), Closed<()>>> + Unpin {
        poll_fn(|context| self.poll_space(context))
    }

    /// Ready when there is a free slot, and the queue is not closed.
    fn poll_space(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed<()>>> {
        ready!(self.poll_slot(context))?;
        // There is room for what will be refused.
        Poll::Ready(if self.is_closed() { Err(Closed(())) } else { Ok(()) })
    }

    /// Ready when there is a free slot, closed or not.
    #[inline]
    fn poll_slot(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed<()>>> {
        self.polls.ready(&mut self.producer, context)
    }

    forward! { producer:
        /// As [`Producer::try_push`].
        ///
        /// # Errors
        /// `Full` or `Closed`, with the item.
        #[inline]
        pub fn try_push(&mut self, item: T) -> Result<(), TryPushError<T>>;

        /// As [`Producer::try_push_batch`].
        ///
        /// # Errors
        /// `Full` or `Closed` if none could be pushed.
        pub fn try_push_batch(&mut self, items: &mut Vec<T>) -> Result<usize, TryPushError<()>>;

        /// As [`Producer::try_push_slice`].
        ///
        /// # Errors
        /// `Full` or `Closed` if none could be pushed.
        pub fn try_push_slice(&mut self, items: &[T]) -> Result<usize, TryPushError<()>> where T: Copy;

        /// As [`Producer::try_reserve`].
        ///
        /// # Errors
        /// `Full` or `Closed`.
        pub fn try_reserve(&mut self) -> Result<Reserved<'_, T, D, W, S>, TryPushError<()>>;

        /// As [`Producer::len`].
        pub fn len(&self) -> usize;

        /// As [`Producer::is_empty`].
        pub fn is_empty(&self) -> bool;

        /// As [`Producer::capacity`].
        pub fn capacity(&self) -> usize;

        /// As [`Producer::release_lag`].
        pub fn release_lag(&self) -> usize;

        /// Closes the queue: no later push succeeds, and a consumer that waits is woken.
        pub fn close(&mut self);

        /// As [`Producer::is_closed`].
        pub fn is_closed(&self) -> bool;
    }

    /// The end as it was, for a thread.
    pub fn into_blocking(self) -> Producer<T, D, W, S> {
        self.producer.shared().become_thread();
        self.producer
    }
}

impl<T, D: Design<T>, W> AsyncProducer<T, D, W, Counting> {
    /// As [`Producer::stats`]. A wait is one that left its waker.
    ///
    /// ```
    /// use corelane::spsc::{Counting, Options, lane};
    ///
    /// # futures_executor::block_on(async {
    /// let (producer, _consumer) = lane::channel_with(2, Options::new().stats::<Counting>()).unwrap();
    /// let mut producer = producer.into_async();
    /// producer.push(1).await.unwrap();
    /// assert_eq!((producer.stats().pushes, producer.stats().waits), (1, 0));
    /// # });
    /// ```
    pub fn stats(&self) -> Stats {
        self.producer.stats()
    }
}

impl<T, D: Design<T>, W, S: Recorder> fmt::Debug for AsyncProducer<T, D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncProducer").field(&self.producer).finish()
    }
}

/// A slot first, then the item: a sink that said ready takes one without waiting. Every item is published by its
/// `start_send`, so there is nothing to flush; `poll_close` closes the queue.
///
/// The error of a closed queue has the item inside that `start_send` was given.
///
/// ```
/// use corelane::spsc;
/// use futures_util::{SinkExt, StreamExt, stream};
///
/// # futures_executor::block_on(async {
/// let (producer, consumer) = spsc::channel(8);
/// let (mut producer, consumer) = (producer.into_async(), consumer.into_async());
/// let send = async {
///     producer.send_all(&mut stream::iter(0..100).map(Ok)).await.expect("the consumer is there");
///     producer.close();
/// };
/// let (sum, ()) = futures_util::join!(consumer.fold(0, async |sum, item| sum + item), send);
/// assert_eq!(sum, 4950);
/// # });
/// ```
impl<T, D: Design<T>, W, S: Recorder> Sink<T> for AsyncProducer<T, D, W, S> {
    type Error = Closed<Option<T>>;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_space(context).map_err(|_| Closed(None))
    }

    /// # Panics
    /// If there is no free slot: a `poll_ready` that says so has to come first.
    #[track_caller]
    fn start_send(mut self: Pin<&mut Self>, item: T) -> Result<(), Self::Error> {
        match self.try_push(item) {
            Ok(()) => Ok(()),
            Err(TryPushError::Closed(item)) => Err(Closed(Some(item))),
            Err(_) => panic!("there is no free slot: call `start_send` only after `poll_ready` has returned ready"),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

/// An item on its way into the queue, see [`AsyncProducer::push`].
///
/// ```
/// # futures_executor::block_on(async {
/// let (producer, _consumer) = corelane::spsc::channel(1);
/// let mut producer = producer.into_async();
/// producer.push('a').await.unwrap();
/// // There is no room. Given up, the item comes back.
/// let mut push = producer.push('b');
/// assert!(futures_util::poll!(&mut push).is_pending());
/// assert_eq!(push.into_item(), Some('b'));
/// # });
/// ```
#[must_use = "a future does nothing unless it is polled"]
pub struct Push<'a, T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats> {
    producer: &'a mut AsyncProducer<T, D, W, S>,
    item: Option<T>,
}

// The item is not pinned: it only moves on.
impl<T, D: Design<T>, W, S: Recorder> Unpin for Push<'_, T, D, W, S> {}

impl<T, D: Design<T>, W, S: Recorder> Push<'_, T, D, W, S> {
    /// Gives up, and gives back the item; `None` if the future was ready.
    pub fn into_item(self) -> Option<T> {
        self.item
    }
}

impl<T, D: Design<T>, W, S: Recorder> Future for Push<'_, T, D, W, S> {
    type Output = Result<(), Closed<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(self.item.is_some(), "{POLLED_AGAIN}");
        let slot = ready!(self.producer.poll_slot(context));
        let item = self.item.take().expect(POLLED_AGAIN);
        Poll::Ready(match slot {
            Err(_) => Err(Closed(item)),
            Ok(()) => self.producer.try_push(item).map_err(|refused| match refused {
                TryPushError::Closed(item) => Closed(item),
                _ => unreachable!("only this end fills free slots"),
            }),
        })
    }
}

debug! { [T, D: Design<T>, W, S: Recorder] Push<['_, T, D, W, S]>: self, is_over: self.item.is_none() }

/// The receiving end of a queue, for a task. `Send`, not `Sync`, not `Clone`: one task at a time pops.
///
/// Calls that return no future never wait. Dropping it closes the queue, and drops what is inside. Where there is no
/// membarrier a close, or such a drop, makes the thread [sleep for a millisecond](crate::spsc#closing).
///
/// ```
/// use corelane::error::{Closed, TryPopError};
///
/// # futures_executor::block_on(async {
/// let (mut producer, consumer) = corelane::spsc::channel(8);
/// let mut consumer = consumer.into_async();
/// producer.push_slice(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
/// assert_eq!((consumer.len(), consumer.is_empty(), consumer.capacity()), (8, false, 8));
/// // Futures wait for items.
/// assert_eq!(consumer.pop().await, Ok(1));
/// assert_eq!(*consumer.peek().await.unwrap(), 2);
/// let (mut items, mut pair) = (Vec::new(), [0; 2]);
/// assert_eq!(consumer.pop_batch(&mut items, 2).await, Ok(2));
/// assert_eq!(consumer.pop_slice(&mut pair).await, Ok(2));
/// // Other calls never wait.
/// assert_eq!(consumer.try_pop(), Ok(6));
/// assert_eq!(consumer.try_peek().unwrap().pop(), 7);
/// assert_eq!(consumer.try_pop_batch(&mut items, 10), Ok(1));
/// assert_eq!(consumer.try_pop_slice(&mut pair), Err(TryPopError::Empty));
/// assert_eq!((items, pair), (vec![2, 3, 8], [4, 5]));
///
/// consumer.close();
/// assert!(consumer.is_closed());
/// assert_eq!(consumer.wait_for_item().await, Err(Closed(())));
/// // As it was, for a thread.
/// assert_eq!(consumer.into_blocking().pop(), Err(Closed(())));
/// # });
/// ```
pub struct AsyncConsumer<T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats> {
    consumer: Consumer<T, D, W, S>,
    polls: Polls,
    /// The stream has ended.
    drained: bool,
}

// No item is ever pinned in a handle.
impl<T, D: Design<T>, W, S: Recorder> Unpin for AsyncConsumer<T, D, W, S> {}

impl<T, D: Design<T>, W, S: Recorder> AsyncConsumer<T, D, W, S> {
    /// Pops the oldest item, waiting for one. An item leaves the queue only where this future is ready with it.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop(&mut self) -> impl Future<Output = Result<T, Closed>> + Unpin {
        poll_fn(|context| self.poll_pop(context))
    }

    #[inline]
    fn poll_pop(&mut self, context: &Context<'_>) -> Poll<Result<T, Closed>> {
        ready!(self.poll_item(context))?;
        Poll::Ready(Ok(self.consumer.take()))
    }

    /// Waits for at least one item, then pops up to `max` and appends them to `items`. Returns how many; 0 only if
    /// `max` is 0.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_batch(&mut self, items: &mut Vec<T>, max: usize) -> impl Future<Output = Result<usize, Closed>> + Unpin {
        poll_fn(move |context| {
            if max == 0 {
                return Poll::Ready(Ok(0));
            }
            ready!(self.poll_item(context))?;
            Poll::Ready(Ok(self.consumer.pop_some(items, max)))
        })
    }

    /// Waits for at least one item, then pops items into the slice until it is full or the queue empty. Returns how
    /// many; 0 only if the slice is empty.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_slice(&mut self, items: &mut [T]) -> impl Future<Output = Result<usize, Closed>> + Unpin
    where
        T: Copy,
    {
        poll_fn(move |context| {
            if items.is_empty() {
                return Poll::Ready(Ok(0));
            }
            ready!(self.poll_item(context))?;
            Poll::Ready(Ok(self.consumer.try_pop_slice(items).unwrap_or(0)))
        })
    }

    /// The oldest item, in place; waits for one. It stays in the queue unless it is [popped](Peeked::pop).
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn peek(&mut self) -> impl Future<Output = Result<Peeked<'_, T, D, W, S>, Closed>> + Unpin {
        let mut end = Some(self);
        poll_fn(move |context| {
            ready!(end.as_mut().expect(POLLED_AGAIN).poll_item(context))?;
            let end = end.take().expect(POLLED_AGAIN);
            Poll::Ready(end.consumer.try_peek().map_err(|_| Closed(())))
        })
    }

    /// Waits until there is an item to pop, or to [peek](Self::try_peek) at.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn wait_for_item(&mut self) -> impl Future<Output = Result<(), Closed>> + Unpin {
        poll_fn(|context| self.poll_item(context))
    }

    /// Ready when there is an item, or never will be.
    #[inline]
    fn poll_item(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        self.polls.ready(&mut self.consumer, context)
    }

    forward! { consumer:
        /// As [`Consumer::try_pop`].
        ///
        /// # Errors
        /// `Empty`, or `Closed` once the queue is closed and drained.
        #[inline]
        pub fn try_pop(&mut self) -> Result<T, TryPopError>;

        /// As [`Consumer::try_pop_batch`].
        ///
        /// # Errors
        /// As for [`try_pop`](Self::try_pop), if there is none.
        pub fn try_pop_batch(&mut self, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError>;

        /// As [`Consumer::try_pop_slice`].
        ///
        /// # Errors
        /// As for [`try_pop`](Self::try_pop), if there is none.
        pub fn try_pop_slice(&mut self, items: &mut [T]) -> Result<usize, TryPopError> where T: Copy;

        /// As [`Consumer::try_peek`].
        ///
        /// # Errors
        /// As for [`try_pop`](Self::try_pop).
        pub fn try_peek(&mut self) -> Result<Peeked<'_, T, D, W, S>, TryPopError>;

        /// As [`Consumer::len`].
        pub fn len(&self) -> usize;

        /// As [`Consumer::is_empty`].
        pub fn is_empty(&self) -> bool;

        /// As [`Consumer::capacity`].
        pub fn capacity(&self) -> usize;

        /// As [`Consumer::close`]. Where there is no membarrier the thread sleeps for a millisecond, unless the
        /// producer has closed before.
        pub fn close(&mut self);

        /// As [`Consumer::is_closed`].
        pub fn is_closed(&self) -> bool;
    }

    /// The end as it was, for a thread.
    pub fn into_blocking(self) -> Consumer<T, D, W, S> {
        self.consumer.shared().become_thread();
        self.consumer
    }
}

impl<T, D: Design<T>, W> AsyncConsumer<T, D, W, Counting> {
    /// As [`Consumer::stats`]. A wait is one that left its waker.
    ///
    /// ```
    /// use corelane::spsc::{Counting, Options, lane};
    ///
    /// # futures_executor::block_on(async {
    /// let (mut producer, consumer) = lane::channel_with(2, Options::new().stats::<Counting>()).unwrap();
    /// let mut consumer = consumer.into_async();
    /// producer.push(1).unwrap();
    /// consumer.pop().await.unwrap();
    /// assert_eq!((consumer.stats().pops, consumer.stats().waits), (1, 0));
    /// # });
    /// ```
    pub fn stats(&self) -> Stats {
        self.consumer.stats()
    }
}

impl<T, D: Design<T>, W, S: Recorder> fmt::Debug for AsyncConsumer<T, D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncConsumer").field(&self.consumer).finish()
    }
}

/// The items in order. It ends once the queue is closed and drained.
impl<T, D: Design<T>, W, S: Recorder> Stream for AsyncConsumer<T, D, W, S> {
    type Item = T;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let item = ready!(self.poll_pop(context)).ok();
        self.drained = item.is_none();
        Poll::Ready(item)
    }
}

impl<T, D: Design<T>, W, S: Recorder> FusedStream for AsyncConsumer<T, D, W, S> {
    fn is_terminated(&self) -> bool {
        self.drained
    }
}
