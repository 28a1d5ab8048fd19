//! The worker's side.

use super::queue::{Queue, Receiver};
use super::seat::{Desk, Leave, Seat};
#[cfg(feature = "async")]
use crate::end::wait::Look;
use crate::error::{Closed, PopTimeoutError, TryPopError};
use crate::items::{Items, Pops};
use crate::macros::debug;
use crate::spsc::Lane;
use crate::sync::Arc;
use crate::wait::{Adaptive, Strategy, selectable};
use core::any::Any;
use core::mem::ManuallyDrop;
use core::ptr;
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use std::vec::Vec;

/// The end that one worker takes its jobs from. `Send`, not `Sync`, not `Clone`.
///
/// Dropping it is [leaving](Self::leave): what is in its queue goes back to the dispatcher, and is dropped where there
/// is none any more. A worker that is leaked instead keeps it.
///
/// ```
/// use corelane::error::{Closed, PopTimeoutError, TryPopError};
/// use std::time::Duration;
///
/// let (mut dispatcher, mut workers) = corelane::dispatch::channel(1, 16);
/// let (mut worker, soon) = (workers.remove(0), Duration::from_millis(1));
/// dispatcher.dispatch_slice(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
/// assert_eq!((worker.number(), worker.backlog()), (0, 8));
/// assert_eq!(worker.wait_for_job(), Ok(()));
/// // One job: a call that waits for it, one that never does, one that waits at most so long.
/// assert_eq!(worker.pop(), Ok(1));
/// assert_eq!(worker.try_pop(), Ok(2));
/// assert_eq!(worker.pop_timeout(soon), Ok(3));
/// // Many: to the end of a vector, or one by one to a call.
/// let mut jobs = Vec::new();
/// assert_eq!(worker.pop_batch(&mut jobs, 2), Ok(2));
/// assert_eq!(worker.try_pop_batch(&mut jobs, 1), Ok(1));
/// assert_eq!(worker.pop_each(1, |job| jobs.push(job)), Ok(1));
/// assert_eq!(worker.try_pop_each(10, |job| jobs.push(job)), Ok(1));
/// assert_eq!(jobs, [4, 5, 6, 7, 8]);
/// assert_eq!(worker.pop_batch_timeout(&mut jobs, 10, soon), Err(PopTimeoutError::Timeout));
/// assert_eq!(worker.try_pop(), Err(TryPopError::Empty));
///
/// drop(dispatcher);
/// assert!(worker.is_closed());
/// assert_eq!((worker.pop(), worker.jobs().next()), (Err(Closed(())), None));
/// assert_eq!(worker.wait_for_job(), Err(Closed(())));
/// ```
pub struct Worker<T, Q: Queue<T> = Lane, W: Strategy = Adaptive> {
    /// Taken out once, when the worker leaves.
    pub(super) receiver: ManuallyDrop<Q::Receiver<W>>,
    number: usize,
    seat: Arc<Seat<Q::Receiver<W>>>,
    desk: Arc<Desk>,
}

impl<T, Q: Queue<T>, W: Strategy> Worker<T, Q, W> {
    pub(super) fn new(
        number: usize,
        receiver: Q::Receiver<W>,
        seat: Arc<Seat<Q::Receiver<W>>>,
        desk: Arc<Desk>,
    ) -> Self {
        Self { receiver: ManuallyDrop::new(receiver), number, seat, desk }
    }

    /// The number of this worker. They count up from 0; none is used twice, unless 2^32 join where
    /// a `usize` has 32 bits.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Takes the oldest job. Never waits.
    ///
    /// # Errors
    /// `Empty` only if every job that was dispatched to this worker before the call has been taken. `Closed` once the
    /// dispatcher is gone as well.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<T, TryPopError> {
        self.receiver.try_pop()
    }

    /// Takes the oldest job, waiting for one.
    ///
    /// # Errors
    /// `Closed` once the dispatcher is gone and all jobs have been taken.
    #[inline(always)]
    pub fn pop(&mut self) -> Result<T, Closed> {
        self.receiver.pop()
    }

    /// Waits until there is a job to take.
    ///
    /// # Errors
    /// `Closed` once the dispatcher is gone and all jobs have been taken.
    pub fn wait_for_job(&mut self) -> Result<(), Closed> {
        self.receiver.wait_for_item()
    }

    /// Takes the oldest job, waiting at most this long for one.
    ///
    /// # Errors
    /// `Timeout`, or `Closed` once the dispatcher is gone and all jobs have been taken.
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopTimeoutError> {
        self.receiver.pop_timeout(timeout)
    }

    /// Waits for at least one job, takes up to `max` with one synchronisation for many, and appends them to `jobs`.
    /// Says how many.
    ///
    /// They are the caller's then: a worker that leaves or panics gives back what is in its queue, not what it has
    /// taken.
    ///
    /// # Errors
    /// `Closed` once the dispatcher is gone and all jobs have been taken.
    #[inline]
    pub fn pop_batch(&mut self, jobs: &mut Vec<T>, max: usize) -> Result<usize, Closed> {
        loop {
            let popped = self.receiver.pop_some(jobs, max);
            if popped > 0 || max == 0 {
                return Ok(popped);
            }
            self.receiver.wait_for_item()?;
        }
    }

    /// As [`pop_batch`](Self::pop_batch), but never waits.
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop), if there is no job.
    #[inline]
    pub fn try_pop_batch(&mut self, jobs: &mut Vec<T>, max: usize) -> Result<usize, TryPopError> {
        let popped = self.receiver.pop_some(jobs, max);
        if popped > 0 || max == 0 {
            return Ok(popped);
        }
        jobs.push(self.receiver.try_pop()?);
        Ok(1)
    }

    /// As [`pop_batch`](Self::pop_batch), but waits at most this long for the first job.
    ///
    /// # Errors
    /// `Timeout`, or `Closed` once the dispatcher is gone and all jobs have been taken.
    pub fn pop_batch_timeout(
        &mut self,
        jobs: &mut Vec<T>,
        max: usize,
        timeout: Duration,
    ) -> Result<usize, PopTimeoutError> {
        if max == 0 {
            return Ok(0);
        }
        jobs.push(self.receiver.pop_timeout(timeout)?);
        Ok(1 + self.receiver.pop_some(jobs, max - 1))
    }

    /// Waits for at least one job, then gives up to `max` of them to `each`, one by one. Returns how many.
    ///
    /// Use this batch where a job is done at once. Over a queue of `spsc` jobs go from their slots to the call, with
    /// one synchronisation for many. Over one of `mpmc` they are taken one by one, so [`pop_batch`](Self::pop_batch) is
    /// quicker there. If `each` panics, the job that it was given is gone, and those that it was not given are still in
    /// the queue.
    ///
    /// # Errors
    /// `Closed` once the dispatcher is gone and all jobs have been taken.
    #[inline]
    pub fn pop_each(&mut self, max: usize, mut each: impl FnMut(T)) -> Result<usize, Closed> {
        loop {
            let popped = self.receiver.give_some(max, &mut each);
            if popped > 0 || max == 0 {
                return Ok(popped);
            }
            self.receiver.wait_for_item()?;
        }
    }

    /// As [`pop_each`](Self::pop_each), but never waits.
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop), if there is no job.
    #[inline]
    pub fn try_pop_each(&mut self, max: usize, mut each: impl FnMut(T)) -> Result<usize, TryPopError> {
        let popped = self.receiver.give_some(max, &mut each);
        if popped > 0 || max == 0 {
            return Ok(popped);
        }
        each(self.receiver.try_pop()?);
        Ok(1)
    }

    /// Yields jobs until the dispatcher is gone and all have been taken, and waits for them. So does `for job in &mut
    /// worker`.
    #[inline(always)]
    pub fn jobs(&mut self) -> Jobs<'_, T, Q, W> {
        Items(self)
    }

    /// Jobs in this worker's queue: a lower bound.
    pub fn backlog(&self) -> usize {
        self.receiver.len()
    }

    /// True once the dispatcher is gone. There may still be jobs.
    pub fn is_closed(&self) -> bool {
        self.receiver.is_closed()
    }

    /// Stops working. What is in the queue goes back to the dispatcher, which gives it to others with its next call.
    ///
    /// # Errors
    /// The undone jobs, if there are some and the dispatcher is gone.
    ///
    /// ```
    /// let (mut dispatcher, mut workers) = corelane::dispatch::channel(2, 8);
    /// dispatcher.dispatch("a job").unwrap();
    /// assert_eq!(workers.remove(0).leave(), Ok(()));
    /// assert_eq!(dispatcher.flush(), 0);
    /// drop(dispatcher);
    /// // No dispatcher is left to give it to.
    /// assert_eq!(workers.remove(0).leave(), Err(vec!["a job"]));
    /// ```
    pub fn leave(self) -> Result<(), Vec<T>> {
        let Err((receiver, _)) = self.depart(Leave::Orderly) else { return Ok(()) };
        let jobs: Vec<_> = Self::undone(receiver).collect();
        if jobs.is_empty() { Ok(()) } else { Err(jobs) }
    }

    /// Runs the worker's work, and reports its panic to the dispatcher, with the payload. `None` if it panicked; if
    /// there is no dispatcher any more the panic goes on here.
    ///
    /// ```
    /// use corelane::error::DispatchError;
    ///
    /// let (mut dispatcher, workers) = corelane::dispatch::channel(1, 8);
    /// for job in [4, 2, 0, 5] {
    ///     dispatcher.dispatch(job).unwrap();
    /// }
    /// std::thread::scope(|scope| {
    ///     for worker in workers {
    ///         scope.spawn(|| worker.run(|worker| worker.jobs().for_each(|job| println!("{}", 100 / job))));
    ///     }
    /// });
    /// assert_eq!(dispatcher.dispatch(6), Err(DispatchError::Panicked(6)));
    /// let panic = dispatcher.take_panic().unwrap();
    /// assert_eq!((panic.worker(), panic.message()), (0, Some("attempt to divide by zero")));
    /// // The job that it was doing is gone; the others are not.
    /// assert_eq!(dispatcher.take_returned(), [5]);
    /// ```
    pub fn run<O>(mut self, work: impl FnOnce(&mut Self) -> O) -> Option<O> {
        match catch_unwind(AssertUnwindSafe(|| work(&mut self))) {
            Ok(outcome) => Some(outcome),
            Err(payload) => {
                self.depart_by(payload);
                None
            }
        }
    }

    /// Reports a panic to the dispatcher. It goes on here if there is none.
    pub(super) fn depart_by(self, payload: Box<dyn Any + Send>) {
        if let Err((receiver, Leave::Panic(Some(payload)))) = self.depart(Leave::Panic(Some(payload))) {
            Self::drop_undone(receiver);
            resume_unwind(payload);
        }
    }

    /// Leaves; the receiver comes back if there is no dispatcher.
    fn depart(self, how: Leave) -> Result<(), (Q::Receiver<W>, Leave)> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is neither used again nor dropped, so each field is taken out once.
        let (receiver, seat, desk) =
            unsafe { (ManuallyDrop::take(&mut this.receiver), ptr::read(&this.seat), ptr::read(&this.desk)) };
        #[cfg(feature = "async")]
        receiver.shared().become_thread();
        seat.leave(&desk, receiver, how)
    }

    /// The jobs of a worker that has no dispatcher to give them to.
    fn undone(mut receiver: Q::Receiver<W>) -> impl Iterator<Item = T> {
        core::iter::from_fn(move || receiver.try_pop().ok())
    }

    /// Beside a panic, which is the one to go on: that of a job's drop has been to the hook, that of its payload, too.
    fn drop_undone(receiver: Q::Receiver<W>) {
        for job in Self::undone(receiver) {
            if let Err(other) = catch_unwind(AssertUnwindSafe(|| drop(job))) {
                core::mem::forget(other);
            }
        }
    }
}

selectable::selectable!([T, Q: Queue<T>, W: Strategy] Worker<T, Q, W>, receiver);

/// The jobs of a worker, see [`Worker::jobs`].
pub type Jobs<'a, T, Q = Lane, W = Adaptive> = Items<&'a mut Worker<T, Q, W>>;

impl<T, Q: Queue<T>, W: Strategy> Pops for Worker<T, Q, W> {
    type Item = T;

    #[inline(always)]
    fn next_item(&mut self) -> Option<T> {
        self.pop().ok()
    }
}

impl<'a, T, Q: Queue<T>, W: Strategy> IntoIterator for &'a mut Worker<T, Q, W> {
    type Item = T;
    type IntoIter = Jobs<'a, T, Q, W>;

    #[inline(always)]
    fn into_iter(self) -> Jobs<'a, T, Q, W> {
        self.jobs()
    }
}

impl<T, Q: Queue<T>, W: Strategy> Drop for Worker<T, Q, W> {
    fn drop(&mut self) {
        let how = if std::thread::panicking() { Leave::Panic(None) } else { Leave::Orderly };
        // SAFETY: this is the last use.
        let receiver = unsafe { ManuallyDrop::take(&mut self.receiver) };
        #[cfg(feature = "async")]
        receiver.shared().become_thread();
        if let Err((receiver, Leave::Panic(_))) = self.seat.leave(&self.desk, receiver, how) {
            Self::drop_undone(receiver);
        }
    }
}

debug! { [T, Q: Queue<T>, W: Strategy] Worker<[T, Q, W]>: self, number: self.number, closed: self.is_closed() }
