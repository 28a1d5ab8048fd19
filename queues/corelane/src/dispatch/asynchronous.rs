//! A fan-out whose ends are awaited by tasks: the dispatcher, any of the workers, or all of them. Behind the feature
//! `async`.
//!
//! ```
//! use corelane::dispatch;
//!
//! # futures_executor::block_on(async {
//! let (dispatcher, workers) = dispatch::channel(2, 64);
//! let mut dispatcher = dispatcher.into_async();
//! // A worker that is a thread's, and one that is a task's.
//! let [mut blocking, worker] = <[_; 2]>::try_from(workers).expect("two workers");
//! let mut worker = worker.into_async();
//! let thread = std::thread::spawn(move || blocking.jobs().sum::<u64>());
//! let task = async move {
//!     let mut sum = 0;
//!     while let Ok(job) = worker.pop().await {
//!         sum += job;
//!     }
//!     sum
//! };
//! let dispatch = async move {
//!     for job in 1..=1000 {
//!         dispatcher.dispatch(job).await.expect("there are workers");
//!     }
//!     dispatcher.join().await.expect("no worker panics");
//! };
//! let (sum, ()) = futures_util::join!(task, dispatch);
//! assert_eq!(sum + thread.join().unwrap(), 500_500);
//! # });
//! ```
//!
//! [`Dispatcher::into_async`] and [`Worker::into_async`] turn one end each, and the end can be turned back.
//!
//! # Promises
//!
//! - **All that [the fan-out](super) promises holds**: no job is held back, each is accounted for, a panic surfaces.
//! - **Every future may be dropped at any point**, by a `select!`, a time-out or an aborted task. The table below says
//!   what becomes of the job.
//! - **A poll is wait-free where the queue's `try_` calls are.** The exception is the lock of a worker that leaves,
//!   once a worker.
//!
//! | future | dropped before it was ready |
//! |---|---|
//! | [`AsyncWorker::pop`], [`pop_batch`], [`wait_for_job`] | nothing was taken; the job is there for the next call |
//! | [`AsyncDispatcher::dispatch`] | the job was not handed out, and is dropped with the future unless [taken back] |
//! | [`AsyncDispatcher::dispatch_batch`] | what was not handed out is left in the vector |
//! | [`AsyncDispatcher::reserve`] | no room is lost, and there is no job to lose |
//! | [`AsyncDispatcher::join`] | the dispatcher is gone; workers empty their queues; drops what is not [taken] |
//! | [`AsyncWorker::run`] | the worker goes with it, as if it left: what is in its queue goes back to the dispatcher |
//!
//! To hand out a job that must not be lost, await [`reserve`](AsyncDispatcher::reserve) first: what it returns
//! dispatches without waiting.
//!
//! ```
//! use corelane::dispatch;
//! use std::future::Future;
//! use std::pin::Pin;
//! use std::task::{Context, Waker};
//!
//! let (dispatcher, mut workers) = dispatch::channel(2, 1);
//! let mut dispatcher = dispatcher.into_async();
//! let mut context = Context::from_waker(Waker::noop());
//! dispatcher.try_dispatch("first").unwrap();
//! dispatcher.try_dispatch("second").unwrap();
//!
//! // Given up in the middle: the job comes back.
//! let mut dispatch = dispatcher.dispatch("third");
//! assert!(Pin::new(&mut dispatch).poll(&mut context).is_pending());
//! assert_eq!(dispatch.into_job(), Some("third"));
//!
//! // Room first, and then the job.
//! assert!(Pin::new(&mut dispatcher.reserve()).poll(&mut context).is_pending());
//! assert_eq!(workers[1].pop(), Ok("second"));
//! # futures_executor::block_on(async {
//! dispatcher.reserve().await.expect("there are workers").dispatch("third");
//! # });
//! assert_eq!(workers[1].pop(), Ok("third"));
//! ```
//!
//! # When to use it, and when not
//!
//! Use it for workers that are tasks on a runtime with several threads, or for a dispatcher that is a task, for example
//! behind an accept loop. Workers that compute for long are better threads, which a blocking dispatcher or a task can
//! feed. Tasks of one thread need none of it.
//!
//! # How it works
//!
//! 1. A worker waits as any [consumer](crate::spsc::asynchronous#how-it-works) does.
//! 2. A dispatcher that finds no room leaves its task's waker on the desk, where workers that leave look for it. It
//!    also leaves the waker in each queue that it waits for: in all of them, or in one where the job is bound to one
//!    worker.
//! 3. It raises those queues' flags that are not up, and executes one barrier for all of them. Then it tries once more.
//!    That try looks at the desk first. If it fails, the dispatcher is pending.
//! 4. That try may change what the dispatcher waits for, because jobs that came back went out or a worker left. Then
//!    the dispatcher begins again.
//! 5. Each queue that it waited for wakes it once. So the dispatcher of N workers may be polled N times for a wait,
//!    each time with room for another job.
//! 6. A worker that leaves, by call, drop or panic, makes its end a thread's again first, because the end is the
//!    dispatcher's from then on.
//!
//! # One free slot, or half a queue
//!
//! A task that dispatches wakes when one slot is free. A [thread that dispatches](Dispatcher::dispatch) wakes when half
//! of a queue is free, or a batch finds room. So no other end may wait for that thread meanwhile.
//!
//! - A wake-up costs a task a turn of its executor, not a sleep and a switch.
//! - Tasks that share a thread wait for each other in ways that none of them sees. With the thread's rule, a worker
//!   that takes one job, and then waits for what the dispatcher does after its dispatch, would stop both for ever.
//!
//! Where jobs are so short that a turn costs more than many of them, dispatch
//! [several](AsyncDispatcher::dispatch_batch) to larger queues, or dispatch from a thread.
//!
//! # Synchronization
//!
//! - Jobs, and the flags of the queues: as [between a producer and a
//!   consumer](crate::spsc::asynchronous#synchronization).
//! - A worker's leave, and the waker on the desk: `seat.rs`.
//! - Several flags and one barrier: each flag is raised before the barrier, and each queue is looked at after it. So
//!   what is true of one queue is true of each.
//!
//! [`pop_batch`]: AsyncWorker::pop_batch
//! [`wait_for_job`]: AsyncWorker::wait_for_job
//! [taken back]: Dispatch::into_job
//! [taken]: Join::into_unfinished

use super::dispatcher::{Dispatcher, Unfinished};
use super::panic::WorkerPanic;
use super::queue::{Queue, Receiver, Sender};
use super::route::{RoundRobin, Route};
use super::worker::Worker;
use crate::end::task::{POLLED_AGAIN, Polls};
use crate::end::wait::Look;
use crate::error::{ChannelError, Closed, DispatchError, TryPopError};
use crate::macros::{debug, forward};
use crate::mem::moving::Moving;
use crate::spsc::Lane;
use crate::wait::{Adaptive, Strategy};
use core::fmt;
use core::future::{Future, poll_fn};
use core::ops::Range;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> Dispatcher<T, Q, W, R> {
    /// Makes this end a task's, see [`asynchronous`](self).
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (dispatcher, mut workers) = corelane::dispatch::channel(1, 8);
    /// dispatcher.into_async().dispatch("a job").await.expect("there is a worker");
    /// assert_eq!(workers[0].pop(), Ok("a job"));
    /// # });
    /// ```
    pub fn into_async(self) -> AsyncDispatcher<T, Q, W, R> {
        let polls = Polls::of(self.lines.iter().map(|line| line.sender.shared()));
        AsyncDispatcher { dispatcher: self, polls }
    }
}

impl<T, Q: Queue<T>, W: Strategy> Worker<T, Q, W> {
    /// Makes this end a task's, see [`asynchronous`](self).
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (mut dispatcher, mut workers) = corelane::dispatch::channel(1, 8);
    /// let mut worker = workers.remove(0).into_async();
    /// dispatcher.dispatch("a job").unwrap();
    /// assert_eq!(worker.pop().await, Ok("a job"));
    /// # });
    /// ```
    pub fn into_async(self) -> AsyncWorker<T, Q, W> {
        AsyncWorker { polls: Polls::of([self.receiver.shared()]), drained: false, worker: self }
    }
}

/// The end that hands out jobs, for a task. `Send`, not `Sync`, not `Clone`: one task at a time dispatches.
///
/// Calls that return no future never wait. Dropping it closes all queues; the workers still do what is in them, and
/// then end.
///
/// ```
/// use corelane::error::DispatchError;
///
/// # futures_executor::block_on(async {
/// let (dispatcher, mut workers) = corelane::dispatch::channel(1, 4);
/// let mut dispatcher = dispatcher.into_async();
/// // Futures wait for room.
/// assert_eq!(dispatcher.dispatch(1).await, Ok(()));
/// dispatcher.reserve().await.expect("there is a worker").dispatch(2);
/// // Other calls never wait.
/// assert_eq!(dispatcher.try_dispatch(3), Ok(()));
/// assert_eq!(dispatcher.try_dispatch_batch(&mut vec![4, 5]), Ok(1));
/// assert_eq!(dispatcher.try_dispatch_slice(&[5]), Err(DispatchError::Full(())));
/// assert!(dispatcher.loads().eq([(0, 4)]));
///
/// // Another worker joins, a thread's, and the first one leaves.
/// let mut second = dispatcher.add_worker().unwrap();
/// assert_eq!(dispatcher.workers(), 2);
/// drop(workers);
/// assert_eq!(dispatcher.try_flush(), 0);
/// assert_eq!(second.pop(), Ok(1));
/// drop(second);
/// assert!(dispatcher.take_panic().is_none());
/// assert_eq!(dispatcher.take_returned(), [2, 3, 4]);
/// dispatcher.join().await.expect("nothing is left undone");
/// # });
/// ```
pub struct AsyncDispatcher<T, Q: Queue<T> = Lane, W: Strategy = Adaptive, R = RoundRobin> {
    dispatcher: Dispatcher<T, Q, W, R>,
    polls: Polls,
}

// No job is ever pinned in a handle.
impl<T, Q: Queue<T>, W: Strategy, R> Unpin for AsyncDispatcher<T, Q, W, R> {}

impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> AsyncDispatcher<T, Q, W, R> {
    /// Hands a job to a worker, and waits for room if there is none.
    ///
    /// The future owns the job. If it is dropped before it is ready the job was not handed out, and is dropped with it:
    /// [`Dispatch::into_job`] takes it back, and [`reserve`](Self::reserve) waits without it.
    ///
    /// # Errors
    /// `NoWorker` or `Panicked`, with the job.
    pub fn dispatch(&mut self, job: T) -> Dispatch<'_, T, Q, W, R> {
        Dispatch { dispatcher: self, job: Some(job) }
    }

    /// Hands out jobs in batches, as [`Dispatcher::dispatch_batch`], and waits for room. If the future is dropped
    /// before it is ready, what was not handed out is left in the vector.
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (dispatcher, mut workers) = corelane::dispatch::channel(1, 8);
    /// let mut dispatcher = dispatcher.into_async();
    /// let worker = std::thread::spawn(move || workers.remove(0).jobs().sum::<u32>());
    /// dispatcher.dispatch_batch(&mut (0..100).collect()).await.expect("there is a worker");
    /// drop(dispatcher);
    /// assert_eq!(worker.join().unwrap(), 4950);
    /// # });
    /// ```
    ///
    /// # Errors
    /// `NoWorker` or `Panicked`. What was not handed out is left in the vector.
    pub fn dispatch_batch(&mut self, jobs: &mut Vec<T>) -> impl Future<Output = Result<(), DispatchError<()>>> + Unpin {
        poll_fn(move |context| {
            loop {
                let over = self.poll_room(context, |end| {
                    let mut moving = Moving::new(jobs);
                    match end.try_dispatch_moving(&mut moving) {
                        Ok(_) => Ok(Ok(moving.is_over())),
                        // SAFETY: a job lies there, which no other thread takes meanwhile.
                        Err(DispatchError::Full(())) => Err(end.wanted(Some(unsafe { &*moving.rest().0 }))),
                        Err(refusal) => Ok(Err(refusal)),
                    }
                });
                if ready!(over)? {
                    return Poll::Ready(Ok(()));
                }
            }
        })
    }

    /// Waits for room for a job, whichever: where jobs are bound to workers, for room at each of them. Nothing is
    /// dispatched if it is dropped, before or after there was room.
    ///
    /// # Errors
    /// `NoWorker` or `Panicked`.
    pub fn reserve(&mut self) -> impl Future<Output = Result<Room<'_, T, Q, W, R>, DispatchError<()>>> + Unpin {
        let mut end = Some(self);
        poll_fn(move |context| {
            ready!(end.as_mut().expect(POLLED_AGAIN).poll_reserve(context))?;
            Poll::Ready(Ok(Room { dispatcher: end.take().expect(POLLED_AGAIN) }))
        })
    }

    fn poll_reserve(&mut self, context: &Context<'_>) -> Poll<Result<(), DispatchError<()>>> {
        self.poll_room(context, Dispatcher::look_for_room)
    }

    /// Ready with what the attempt returns. One that does not succeed says which lines to wait for; beside them the
    /// task waits for workers to leave.
    #[inline]
    fn poll_room<O>(
        &mut self,
        context: &Context<'_>,
        mut attempt: impl FnMut(&mut Dispatcher<T, Q, W, R>) -> Result<O, Range<usize>>,
    ) -> Poll<O> {
        if self.polls.are_enough(context) {
            return Poll::Pending;
        }
        self.polls.begin();
        // Lines only go in here, so their number says whether they are the same.
        let mut waits_for = None;
        loop {
            let lines = match attempt(&mut self.dispatcher) {
                Ok(output) => return Poll::Ready(output),
                Err(wanted) => (wanted, self.dispatcher.lines.len()),
            };
            if waits_for.as_ref() == Some(&lines) {
                return self.polls.is_pending(context, false);
            }
            if !self.wait_for(lines.0.clone(), context) {
                return self.polls.is_pending(context, true);
            }
            waits_for = Some(lines);
        }
    }

    /// Registers the task, to be woken when one of these lines has room or a worker leaves. Only what happens from now
    /// on counts, so another attempt must follow. Returns false if another thread is just waking the task of an earlier
    /// poll.
    #[cold]
    #[inline(never)]
    fn wait_for(&mut self, lines: Range<usize>, context: &Context<'_>) -> bool {
        let (waker, desk) = (context.waker(), &self.dispatcher.desk);
        let lines = &self.dispatcher.lines[lines];
        if !desk.await_with(Some(waker.clone())) || !lines.iter().all(|line| line.sender.shared().await_with(waker)) {
            return false;
        }
        let mut raised = false;
        for line in lines {
            // Asked after the waker was put: a thread that has taken the flag down, and not the waker, will find the
            // waker.
            if !line.sender.shared().is_awaited() {
                line.sender.raise();
                raised = true;
            }
        }
        if raised {
            self.polls.pass_barrier(lines.iter().map(|line| line.sender.shared()));
        }
        // No barrier for the desk: every attempt looks for news, and those that came before the waker are acquired with
        // its cell.
        true
    }

    forward! { dispatcher:
        /// As [`Dispatcher::try_dispatch`].
        ///
        /// # Errors
        /// With the job, see [`DispatchError`].
        #[inline]
        pub fn try_dispatch(&mut self, job: T) -> Result<(), DispatchError<T>>;

        /// As [`Dispatcher::try_dispatch_batch`].
        ///
        /// # Errors
        /// As for [`try_dispatch`](Self::try_dispatch), if none could be handed out.
        pub fn try_dispatch_batch(&mut self, jobs: &mut Vec<T>) -> Result<usize, DispatchError<()>>;

        /// As [`Dispatcher::try_dispatch_slice`].
        ///
        /// # Errors
        /// As for [`try_dispatch`](Self::try_dispatch), if none could be handed out.
        pub fn try_dispatch_slice(&mut self, jobs: &[T]) -> Result<usize, DispatchError<()>> where T: Copy;
    }

    /// As [`Dispatcher::flush`]: never waits. The sink's `poll_flush` waits for room.
    pub fn try_flush(&mut self) -> usize {
        self.dispatcher.flush()
    }

    forward! { dispatcher:
        /// As [`Dispatcher::take_panic`].
        pub fn take_panic(&mut self) -> Option<WorkerPanic>;

        /// As [`Dispatcher::take_returned`].
        pub fn take_returned(&mut self) -> Vec<T>;
    }

    /// As [`Dispatcher::add_worker`].
    ///
    /// # Errors
    /// No memory, or what [`Builder::build`](super::Builder::build) refuses.
    pub fn add_worker(&mut self) -> Result<Worker<T, Q, W>, ChannelError> {
        let worker = self.dispatcher.add_worker()?;
        if let Some(line) = self.dispatcher.lines.last() {
            // The worker learns of it before it has a job to take, so it overlooks nothing.
            line.sender.shared().become_task();
        }
        Ok(worker)
    }

    forward! { dispatcher:
        /// As [`Dispatcher::workers`].
        pub fn workers(&self) -> usize;

        /// As [`Dispatcher::loads`].
        pub fn loads(&mut self) -> impl Iterator<Item = (usize, usize)>;
    }

    /// As [`Dispatcher::join`]: no more jobs, and the future is ready when the last worker has left.
    pub fn join(self) -> Join<T, Q, W, R> {
        Join { dispatcher: self, closed: false }
    }

    /// The end as it was, for a thread.
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (dispatcher, mut workers) = corelane::dispatch::channel(1, 8);
    /// let mut dispatcher = dispatcher.into_async();
    /// dispatcher.dispatch(1).await.expect("there is a worker");
    /// let mut dispatcher = dispatcher.into_blocking();
    /// dispatcher.dispatch(2).expect("there is a worker");
    /// assert_eq!((workers[0].pop(), workers[0].pop()), (Ok(1), Ok(2)));
    /// # });
    /// ```
    pub fn into_blocking(self) -> Dispatcher<T, Q, W, R> {
        self.dispatcher.lines.iter().for_each(|line| line.sender.shared().become_thread());
        self.dispatcher.desk.await_with(None);
        self.dispatcher
    }
}

impl<T, Q: Queue<T>, W: Strategy, R: fmt::Debug> fmt::Debug for AsyncDispatcher<T, Q, W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncDispatcher").field(&self.dispatcher).finish()
    }
}

/// Room first, then the job: a sink that said ready takes one without waiting, and every job is in its worker's queue
/// when `start_send` returns. `poll_flush` sends out what came back from workers that left, and waits for room for it.
/// So does `poll_close`, and no more: the workers end when the dispatcher is dropped, or
/// [joined](AsyncDispatcher::join), which tells what became of the jobs.
///
/// The error has the job inside that `start_send` was given. Errors are not final: a panic can be taken, a worker
/// added.
///
/// ```
/// use futures_util::{SinkExt, StreamExt, stream};
///
/// # futures_executor::block_on(async {
/// let (dispatcher, mut workers) = corelane::dispatch::channel(1, 8);
/// let (mut dispatcher, worker) = (dispatcher.into_async(), workers.remove(0).into_async());
/// let send = async {
///     dispatcher.send_all(&mut stream::iter(0..100).map(Ok)).await.expect("there is a worker");
///     dispatcher.join().await.expect("which does not panic");
/// };
/// let (sum, ()) = futures_util::join!(worker.fold(0, async |sum, job| sum + job), send);
/// assert_eq!(sum, 4950);
/// # });
/// ```
impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> Sink<T> for AsyncDispatcher<T, Q, W, R> {
    type Error = DispatchError<Option<T>>;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_reserve(context).map_err(|refusal| refusal.map(|()| None))
    }

    /// `Full` only without a `poll_ready` that said ready, or if jobs have come back by another call since.
    fn start_send(mut self: Pin<&mut Self>, job: T) -> Result<(), Self::Error> {
        let end = &mut self.dispatcher;
        // What has come back takes no room before it is heard of.
        let sent = if end.unsettled { end.dispatch_behind(job) } else { end.send(job) };
        sent.map_err(|refusal| refusal.map(Some))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_room(context, |end| match end.settle() {
            Err(DispatchError::Full(())) => Err(end.wanted(None)),
            Err(DispatchError::NoWorker(())) if end.flush() == 0 => Ok(Ok(())),
            done => Ok(done.map_err(|refusal| refusal.map(|()| None))),
        })
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_flush(context)
    }
}

/// A job on its way to a worker, see [`AsyncDispatcher::dispatch`].
///
/// ```
/// # futures_executor::block_on(async {
/// let (dispatcher, _workers) = corelane::dispatch::channel(1, 1);
/// let mut dispatcher = dispatcher.into_async();
/// dispatcher.dispatch("first").await.expect("there is a worker");
/// // There is no room. Given up, the job comes back.
/// let mut dispatch = dispatcher.dispatch("second");
/// assert!(futures_util::poll!(&mut dispatch).is_pending());
/// assert_eq!(dispatch.into_job(), Some("second"));
/// # });
/// ```
#[must_use = "a future does nothing unless it is polled"]
pub struct Dispatch<'a, T, Q: Queue<T> = Lane, W: Strategy = Adaptive, R = RoundRobin> {
    dispatcher: &'a mut AsyncDispatcher<T, Q, W, R>,
    job: Option<T>,
}

// The job is not pinned: it only moves on.
impl<T, Q: Queue<T>, W: Strategy, R> Unpin for Dispatch<'_, T, Q, W, R> {}

impl<T, Q: Queue<T>, W: Strategy, R> Dispatch<'_, T, Q, W, R> {
    /// Gives up, and gives back the job; `None` if the future was ready, or has panicked.
    pub fn into_job(self) -> Option<T> {
        self.job
    }
}

impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> Future for Dispatch<'_, T, Q, W, R> {
    type Output = Result<(), DispatchError<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { dispatcher, job } = &mut *self;
        assert!(job.is_some(), "{POLLED_AGAIN}");
        dispatcher.poll_room(context, |end| match end.try_dispatch(job.take().expect(POLLED_AGAIN)) {
            Err(DispatchError::Full(back)) => {
                let (back, wanted) = end.keeping(back, |end, job| end.wanted(Some(job)));
                *job = Some(back);
                Err(wanted)
            }
            done => Ok(done),
        })
    }
}

debug! { [T, Q: Queue<T>, W: Strategy, R] Dispatch<['_, T, Q, W, R]>: self, is_over: self.job.is_none() }

/// Room for a job, see [`AsyncDispatcher::reserve`]. Dropped, it is room for the next one.
///
/// ```
/// # futures_executor::block_on(async {
/// let (dispatcher, mut workers) = corelane::dispatch::channel(1, 1);
/// let mut dispatcher = dispatcher.into_async();
/// let room = dispatcher.reserve().await.expect("there is a worker");
/// room.dispatch("a job");
/// assert_eq!(workers[0].pop(), Ok("a job"));
/// # });
/// ```
#[must_use = "nothing is dispatched yet"]
pub struct Room<'a, T, Q: Queue<T> = Lane, W: Strategy = Adaptive, R = RoundRobin> {
    dispatcher: &'a mut AsyncDispatcher<T, Q, W, R>,
}

impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> Room<'_, T, Q, W, R> {
    /// Hands a job to a worker.
    ///
    /// If that worker has left since, the job comes back as any other in its queue.
    pub fn dispatch(self, job: T) {
        if self.dispatcher.dispatcher.send(job).is_err() {
            unreachable!("only this end fills queues, and lines go only when it hears of a leave");
        }
    }
}

debug! { [T, Q: Queue<T>, W: Strategy, R] Room<['_, T, Q, W, R]>: self }

/// The end of a fan-out, see [`AsyncDispatcher::join`]. The dispatcher goes with it.
///
/// ```
/// # futures_executor::block_on(async {
/// let (dispatcher, workers) = corelane::dispatch::channel::<u32>(1, 8);
/// let mut join = dispatcher.into_async().join();
/// assert!(futures_util::poll!(&mut join).is_pending());
/// drop(workers);
/// join.await.expect("no job is left undone");
///
/// // Given up: what has come back so far.
/// let (mut dispatcher, mut workers) = corelane::dispatch::channel(1, 8);
/// dispatcher.dispatch("a job").unwrap();
/// workers.remove(0).leave().unwrap();
/// assert_eq!(dispatcher.into_async().join().into_unfinished().undone, ["a job"]);
/// # });
/// ```
#[must_use = "a future does nothing unless it is polled"]
pub struct Join<T, Q: Queue<T> = Lane, W: Strategy = Adaptive, R = RoundRobin> {
    dispatcher: AsyncDispatcher<T, Q, W, R>,
    closed: bool,
}

// No job is ever pinned in a handle.
impl<T, Q: Queue<T>, W: Strategy, R> Unpin for Join<T, Q, W, R> {}

impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> Join<T, Q, W, R> {
    /// Gives up. The workers that are left do what is in their queues, and end. What came back so far is returned.
    pub fn into_unfinished(mut self) -> Unfinished<T> {
        self.dispatcher.dispatcher.hear();
        self.dispatcher.dispatcher.unfinished()
    }
}

impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> Future for Join<T, Q, W, R> {
    type Output = Result<(), Unfinished<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { dispatcher, closed } = &mut *self;
        if !*closed {
            ready!(dispatcher.poll_room(context, |end| match end.settle() {
                Err(DispatchError::Full(())) => Err(end.wanted(None)),
                _ => Ok(()),
            }));
            dispatcher.dispatcher.lines.iter_mut().for_each(|line| line.sender.close());
            *closed = true;
        }
        ready!(dispatcher.poll_room(context, |end| {
            end.hear();
            if end.lines.is_empty() { Ok(()) } else { Err(0..0) }
        }));
        let unfinished = dispatcher.dispatcher.unfinished();
        Poll::Ready(if unfinished.is_nothing() { Ok(()) } else { Err(unfinished) })
    }
}

impl<T, Q: Queue<T>, W: Strategy, R: fmt::Debug> fmt::Debug for Join<T, Q, W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Join").field(&self.dispatcher).finish()
    }
}

/// The end that one worker takes its jobs from, for a task. `Send`, not `Sync`, not `Clone`.
///
/// Calls that return no future never wait. Dropping it is [leaving](Self::leave): what is in its queue goes back to the
/// dispatcher. Dropped by a panic of its task, it reports that, without the payload; [`run`](Self::run) reports it with
/// the payload.
///
/// ```
/// # futures_executor::block_on(async {
/// let (mut dispatcher, mut workers) = corelane::dispatch::channel(1, 8);
/// let mut worker = workers.remove(0).into_async();
/// dispatcher.dispatch_slice(&[1, 2, 3, 4, 5]).unwrap();
/// assert_eq!((worker.number(), worker.backlog()), (0, 5));
/// // Futures wait for jobs.
/// assert_eq!(worker.wait_for_job().await, Ok(()));
/// assert_eq!(worker.pop().await, Ok(1));
/// let mut jobs = Vec::new();
/// assert_eq!(worker.pop_batch(&mut jobs, 2).await, Ok(2));
/// // Other calls never wait.
/// assert_eq!(worker.try_pop(), Ok(4));
/// assert_eq!(worker.try_pop_batch(&mut jobs, 10), Ok(1));
/// assert_eq!(jobs, [2, 3, 5]);
///
/// dispatcher.dispatch(6).unwrap();
/// drop(dispatcher);
/// assert!(worker.is_closed());
/// // As it was, for a thread; either kind may leave.
/// let worker = worker.into_blocking().into_async();
/// assert_eq!(worker.leave(), Err(vec![6]));
/// # });
/// ```
pub struct AsyncWorker<T, Q: Queue<T> = Lane, W: Strategy = Adaptive> {
    worker: Worker<T, Q, W>,
    polls: Polls,
    /// The stream has ended.
    drained: bool,
}

// No job is ever pinned in a handle.
impl<T, Q: Queue<T>, W: Strategy> Unpin for AsyncWorker<T, Q, W> {}

impl<T, Q: Queue<T>, W: Strategy> AsyncWorker<T, Q, W> {
    /// As [`Worker::number`].
    pub fn number(&self) -> usize {
        self.worker.number()
    }

    /// Takes the oldest job, waiting for one. A job leaves the queue only where this future is ready with it.
    ///
    /// # Errors
    /// `Closed` once the dispatcher is gone and all jobs have been taken.
    pub fn pop(&mut self) -> impl Future<Output = Result<T, Closed>> + Unpin {
        poll_fn(|context| self.poll_pop(context))
    }

    #[inline]
    fn poll_pop(&mut self, context: &Context<'_>) -> Poll<Result<T, Closed>> {
        loop {
            ready!(self.poll_job(context))?;
            // A queue that counts a job before it shows it may say Empty once more.
            if let Ok(job) = self.worker.try_pop() {
                return Poll::Ready(Ok(job));
            }
        }
    }

    /// Waits for at least one job, then takes up to `max` and appends them to `jobs`, as [`Worker::pop_batch`]. Returns
    /// how many; 0 only if `max` is 0.
    ///
    /// # Errors
    /// `Closed` once the dispatcher is gone and all jobs have been taken.
    pub fn pop_batch(&mut self, jobs: &mut Vec<T>, max: usize) -> impl Future<Output = Result<usize, Closed>> + Unpin {
        poll_fn(move |context| {
            loop {
                if max == 0 {
                    return Poll::Ready(Ok(0));
                }
                ready!(self.poll_job(context))?;
                let taken = self.worker.receiver.pop_some(jobs, max);
                if taken > 0 {
                    return Poll::Ready(Ok(taken));
                }
            }
        })
    }

    /// Waits until there is a job to take.
    ///
    /// # Errors
    /// `Closed` once the dispatcher is gone and all jobs have been taken.
    pub fn wait_for_job(&mut self) -> impl Future<Output = Result<(), Closed>> + Unpin {
        poll_fn(|context| self.poll_job(context))
    }

    /// Ready when there is a job, or never will be.
    #[inline]
    fn poll_job(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        self.polls.ready(&mut *self.worker.receiver, context)
    }

    forward! { worker:
        /// As [`Worker::try_pop`].
        ///
        /// # Errors
        /// `Empty`, or `Closed` once the dispatcher is gone as well.
        #[inline]
        pub fn try_pop(&mut self) -> Result<T, TryPopError>;

        /// As [`Worker::try_pop_batch`].
        ///
        /// # Errors
        /// As for [`try_pop`](Self::try_pop), if there is no job.
        pub fn try_pop_batch(&mut self, jobs: &mut Vec<T>, max: usize) -> Result<usize, TryPopError>;

        /// As [`Worker::backlog`].
        pub fn backlog(&self) -> usize;

        /// As [`Worker::is_closed`].
        pub fn is_closed(&self) -> bool;
    }

    /// As [`Worker::leave`].
    ///
    /// # Errors
    /// The undone jobs, if there are some and the dispatcher is gone.
    pub fn leave(self) -> Result<(), Vec<T>> {
        self.worker.leave()
    }

    /// Runs the worker's work, and reports its panic to the dispatcher, with the payload, as [`Worker::run`]. `None` if
    /// it panicked; if there is no dispatcher any more the panic goes on here.
    ///
    /// ```
    /// # futures_executor::block_on(async {
    /// let (mut dispatcher, mut workers) = corelane::dispatch::channel(1, 8);
    /// dispatcher.dispatch(0).unwrap();
    /// let worker = workers.remove(0).into_async();
    /// let outcome = worker.run(async |worker| println!("{}", 100 / worker.pop().await.unwrap())).await;
    /// assert!(outcome.is_none());
    /// assert_eq!(dispatcher.take_panic().unwrap().message(), Some("attempt to divide by zero"));
    /// # });
    /// ```
    pub async fn run<O>(mut self, work: impl AsyncFnOnce(&mut Self) -> O) -> Option<O> {
        let outcome = {
            let mut work = pin!(async { work(&mut self).await });
            poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(outcome)) => Poll::Ready(Ok(outcome)),
                Err(payload) => Poll::Ready(Err(payload)),
            })
            .await
        };
        match outcome {
            Ok(outcome) => Some(outcome),
            Err(payload) => {
                self.worker.depart_by(payload);
                None
            }
        }
    }

    /// The end as it was, for a thread.
    pub fn into_blocking(self) -> Worker<T, Q, W> {
        self.worker.receiver.shared().become_thread();
        self.worker
    }
}

impl<T, Q: Queue<T>, W: Strategy> fmt::Debug for AsyncWorker<T, Q, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncWorker").field(&self.worker).finish()
    }
}

/// The jobs in order. It ends once the dispatcher is gone and all have been taken.
impl<T, Q: Queue<T>, W: Strategy> Stream for AsyncWorker<T, Q, W> {
    type Item = T;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let job = ready!(self.poll_pop(context)).ok();
        self.drained = job.is_none();
        Poll::Ready(job)
    }
}

impl<T, Q: Queue<T>, W: Strategy> FusedStream for AsyncWorker<T, Q, W> {
    fn is_terminated(&self) -> bool {
        self.drained
    }
}
