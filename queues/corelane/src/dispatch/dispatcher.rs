//! The dispatcher's side: which queue, and what to do when there is no room, or when a worker has left.

use super::collector::Collector;
use super::panic::WorkerPanic;
use super::queue::{Queue, Receiver, Sender};
use super::route::{Load, RoundRobin, Route};
use super::seat::{Desk, Seat};
use super::worker::Worker;
use crate::bound::{Bounded, Unbounded};
use crate::end::wait::{Awaitable, wait_for};
use crate::error::{ChannelError, DispatchError, made};
use crate::macros::debug;
use crate::mem::moving::Moving;
use crate::spsc::{Design, Lane, lane};
use crate::sync::{Arc, Instant};
use crate::wait::{Adaptive, Own, Selectable, Sleeper, Strategy, selectable};
use core::ops::Range;
use core::{fmt, mem};
use std::collections::VecDeque;
use std::time::Duration;
use std::vec::Vec;

/// How a fan-out is made.
///
/// ```
/// use corelane::dispatch::{Builder, LeastLoaded};
/// use corelane::spsc::{McRing, mcring};
/// use corelane::wait::Park;
///
/// let builder = Builder::new(3).capacity(256).batch(50).route(LeastLoaded::new()).wait(Park);
/// let (dispatcher, workers) = builder.build::<u32>().unwrap();
/// assert_eq!((dispatcher.workers(), workers.len()), (3, 3));
///
/// // Any design of `spsc`, with its own options.
/// let builder = Builder::new(3).tuning(mcring::Tuning::new().batch(10));
/// let (dispatcher, workers) = builder.build_with::<u32, McRing>().unwrap();
/// # let _ = (dispatcher, workers);
/// ```
#[derive(Clone, Debug)]
pub struct Builder<O = lane::Tuning, W = Adaptive, R = RoundRobin> {
    workers: usize,
    capacity: usize,
    batch: usize,
    tuning: O,
    wait: W,
    route: R,
}

impl<O: Default> Builder<O> {
    /// A fan-out to so many workers, and more later. None at first is fine.
    pub fn new(workers: usize) -> Self {
        Self { workers, capacity: 1024, batch: 32, tuning: O::default(), wait: Adaptive, route: RoundRobin::new() }
    }
}

impl<O, W, R> Builder<O, W, R> {
    /// Jobs that the queue of one worker holds at most; 1,024 unless it is set.
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Jobs that go to the same worker before it is another's turn, where the route has turns; 32 unless it is set. It
    /// delays no job.
    pub fn batch(mut self, batch: usize) -> Self {
        self.batch = batch;
        self
    }

    /// The options of the queues: their defaults unless they are set.
    pub fn tuning(mut self, tuning: O) -> Self {
        self.tuning = tuning;
        self
    }

    /// How the dispatcher waits for room, and the workers for jobs.
    pub fn wait<V: Strategy>(self, wait: V) -> Builder<O, V, R> {
        let Self { workers, capacity, batch, tuning, route, .. } = self;
        Builder { workers, capacity, batch, tuning, wait, route }
    }

    /// Which worker gets a job: in turn unless it is set.
    pub fn route<S>(self, route: S) -> Builder<O, W, S> {
        let Self { workers, capacity, batch, tuning, wait, .. } = self;
        Builder { workers, capacity, batch, tuning, wait, route }
    }
}

/// A dispatcher and its workers.
type FanOut<T, Q, W, R> = (Dispatcher<T, Q, W, R>, Vec<Worker<T, Q, W>>);

impl<W: Strategy, R> Builder<lane::Tuning, W, R> {
    /// A fan-out over lanes.
    ///
    /// # Errors
    /// A capacity or a batch of 0, a capacity beyond what indices hold, or no memory.
    pub fn build<T: Send>(self) -> Result<FanOut<T, Lane, W, R>, ChannelError>
    where
        R: Route<T>,
    {
        self.build_with()
    }
}

impl<O, W: Strategy, R> Builder<O, W, R> {
    /// A dispatcher over another kind of queue with a bound.
    ///
    /// # Errors
    /// As [`build`](Builder::build), and where the queue's options contradict its capacity.
    pub fn build_with<T: Send, Q: Queue<T, Tuning = O> + Bounded>(self) -> Result<FanOut<T, Q, W, R>, ChannelError>
    where
        R: Route<T>,
    {
        self.build_any()
    }

    /// A dispatcher over queues without a bound: it waits for its workers only where there is no memory for another
    /// job, and jobs that they have no time for pile up. The [capacity](Builder::capacity) is for how many jobs a queue
    /// of [`mpmc`](crate::mpmc) has memory from the start.
    ///
    /// ```
    /// use corelane::dispatch::Builder;
    /// use corelane::spsc::{Linked, linked::Tuning};
    ///
    /// let builder = Builder::new(1).tuning(Tuning::new());
    /// let (mut dispatcher, mut workers) = builder.build_unbounded::<u32, Linked>()?;
    /// (0..10_000).for_each(|job| dispatcher.try_dispatch(job).unwrap());
    /// assert_eq!(workers[0].pop(), Ok(0));
    /// # Ok::<(), corelane::error::ChannelError>(())
    /// ```
    ///
    /// # Errors
    /// As [`build_with`](Builder::build_with).
    pub fn build_unbounded<T: Send, Q: Queue<T, Tuning = O> + Unbounded>(
        self,
    ) -> Result<FanOut<T, Q, W, R>, ChannelError>
    where
        R: Route<T>,
    {
        self.build_any()
    }

    /// As the two before, for what works over all queues.
    ///
    /// # Errors
    /// As [`build_with`](Builder::build_with).
    #[doc(hidden)]
    pub fn build_any<T: Send, Q: Queue<T, Tuning = O>>(self) -> Result<FanOut<T, Q, W, R>, ChannelError>
    where
        R: Route<T>,
    {
        if self.batch == 0 {
            return Err(ChannelError::BadBatch);
        }
        let mut dispatcher = Dispatcher {
            lines: Vec::new(),
            unsettled: true,
            route: self.route,
            desk: Desk::new(),
            returned: VecDeque::new(),
            panics: VecDeque::new(),
            joined: 0,
            capacity: self.capacity,
            batch: self.batch,
            tuning: self.tuning,
            wait: self.wait,
        };
        dispatcher.route.begin(self.batch);
        let workers = (0..self.workers).map(|_| dispatcher.add_worker()).collect::<Result<_, _>>()?;
        Ok((dispatcher, workers))
    }
}

/// A fan-out over lanes, with the defaults.
///
/// # Panics
/// If the capacity of a queue is 0 or beyond what indices hold, or if there is no memory: where [`Builder::build`]
/// returns an error.
///
/// ```
/// let (mut dispatcher, mut workers) = corelane::dispatch::channel(2, 8);
/// dispatcher.dispatch("a job").unwrap();
/// assert_eq!(workers[0].pop(), Ok("a job"));
/// ```
#[track_caller]
pub fn channel<T: Send>(workers: usize, capacity: usize) -> (Dispatcher<T>, Vec<Worker<T>>) {
    made(Builder::new(workers).capacity(capacity).build())
}

type Sends<T, Q, W> = <Q as Queue<T>>::Sender<W>;
type Receives<T, Q, W> = <Q as Queue<T>>::Receiver<W>;

/// The way to one worker.
pub(super) struct Line<T, Q: Queue<T>, W: Strategy> {
    pub(super) sender: Sends<T, Q, W>,
    seat: Arc<Seat<Receives<T, Q, W>>>,
    number: usize,
}

impl<T, Q: Queue<T>, W: Strategy> Load for Line<T, Q, W> {
    fn len(&self) -> usize {
        self.sender.len()
    }

    #[inline(always)]
    fn sleeps(&self) -> bool {
        self.sender.receiver_sleeps()
    }
}

impl<T, Q: Queue<T>, W: Strategy> Line<T, Q, W> {
    /// Whether there is so much room, or the worker has left.
    fn is_ready(&mut self, room: usize) -> bool {
        self.seat.is_left() || self.sender.ready(room)
    }
}

/// What a dispatcher waits for: room at some of its workers, the leave of one of them, and perhaps a result.
struct Room<'a, T, Q: Queue<T>, W: Strategy, F, C> {
    lines: &'a mut [Line<T, Q, W>],
    desk: &'a Desk,
    /// How many free slots of a line are enough.
    room: F,
    results: Option<&'a mut C>,
}

impl<T, Q: Queue<T>, W: Strategy, F, C> Awaitable for Room<'_, T, Q, W, F, C>
where
    F: Fn(&Line<T, Q, W>) -> usize,
    C: Selectable,
{
    type Found = ();

    fn look(&mut self) -> Option<()> {
        let room = &self.room;
        let is_ready = self.lines.iter_mut().any(|line| line.is_ready(room(line)))
            || self.results.as_mut().is_some_and(|results| results.ready(1));
        is_ready.then_some(())
    }

    fn arm(&mut self, sleeper: Sleeper) {
        self.desk.sleeper_is(Some(sleeper));
        for line in &mut *self.lines {
            let room = (self.room)(line);
            line.sender.arm(room, sleeper);
        }
        if let Some(results) = &mut self.results {
            results.arm(1, sleeper);
        }
    }

    fn disarm(&mut self, sleeper: Sleeper) {
        self.desk.sleeper_is(None);
        self.lines.iter_mut().for_each(|line| line.sender.disarm(sleeper));
        if let Some(results) = &mut self.results {
            results.disarm(sleeper);
        }
    }
}

/// The end that hands out jobs. `Send`, not `Sync`, not `Clone`: one thread at a time dispatches.
///
/// Dropping it closes all queues; the workers still do what is in them, and then end. See [`join`](Self::join) for an
/// end that accounts for everything.
///
/// ```
/// use corelane::error::DispatchError;
/// use std::time::Duration;
///
/// let (mut dispatcher, mut workers) = corelane::dispatch::channel(1, 4);
/// let soon = Duration::from_millis(1);
/// // One job: a call that waits for room, one that never does, one that waits at most so long.
/// assert_eq!(dispatcher.dispatch(1), Ok(()));
/// assert_eq!(dispatcher.try_dispatch(2), Ok(()));
/// assert_eq!(dispatcher.dispatch_timeout(3, soon), Ok(()));
/// // Many: what was handed out leaves the vector, a slice stays as it is.
/// let mut jobs = vec![4, 5];
/// assert_eq!(dispatcher.try_dispatch_batch(&mut jobs), Ok(1));
/// assert_eq!(dispatcher.dispatch_batch_timeout(&mut jobs, soon), Err(DispatchError::Timeout(())));
/// assert_eq!(dispatcher.try_dispatch_slice(&jobs), Err(DispatchError::Full(())));
/// assert!(dispatcher.loads().eq([(0, 4)]));
///
/// let mut second = dispatcher.add_worker().unwrap();
/// assert_eq!(dispatcher.workers(), 2);
/// assert_eq!(dispatcher.dispatch_slice(&jobs), Ok(()));
/// assert_eq!(second.pop(), Ok(5));
/// ```
///
/// What workers leave undone comes back:
///
/// ```
/// let (mut dispatcher, mut workers) = corelane::dispatch::channel(3, 8);
/// dispatcher.dispatch_slice(&[1, 2, 3]).unwrap();
/// let mut first = workers.remove(0);
/// assert_eq!(first.pop(), Ok(1));
/// first.leave().unwrap();
/// // The next call gives 2 and 3 to another worker, whichever call it is.
/// assert_eq!(dispatcher.flush(), 0);
/// assert_eq!(workers[0].pop(), Ok(2));
/// workers.remove(0).run(|_| panic!("I give up"));
/// assert_eq!(dispatcher.take_panic().unwrap().message(), Some("I give up"));
/// // Nothing is dispatched after a panic, so 3 has not gone out again.
/// assert_eq!(dispatcher.take_returned(), [3]);
/// // What is undone at the end is in the error.
/// dispatcher.dispatch(4).unwrap();
/// drop(workers);
/// assert_eq!(dispatcher.join().unwrap_err().undone, [4]);
/// ```
pub struct Dispatcher<T, Q: Queue<T> = Lane, W: Strategy = Adaptive, R = RoundRobin> {
    pub(super) lines: Vec<Line<T, Q, W>>,
    /// There is something to be done before the next job goes out: a job has come back, a panic waits, or there is no
    /// worker.
    pub(super) unsettled: bool,
    route: R,
    pub(super) desk: Arc<Desk>,
    /// Jobs of workers that have left, oldest first.
    returned: VecDeque<T>,
    panics: VecDeque<WorkerPanic>,
    /// How many workers have joined so far.
    joined: usize,
    capacity: usize,
    batch: usize,
    tuning: Q::Tuning,
    wait: W,
}

impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> Dispatcher<T, Q, W, R> {
    /// Hands a job to a worker. Never waits. When it returns, the job is in its worker's queue, to be seen there.
    ///
    /// Jobs that have come back from workers that left go out first.
    ///
    /// # Errors
    /// With the job, see [`DispatchError`].
    #[inline]
    pub fn try_dispatch(&mut self, job: T) -> Result<(), DispatchError<T>> {
        if self.is_unsettled() {
            return self.dispatch_behind(job);
        }
        self.send(job)
    }

    /// Hands a job to a worker when what came back has gone out.
    #[cold]
    #[inline(never)]
    pub(super) fn dispatch_behind(&mut self, job: T) -> Result<(), DispatchError<T>> {
        match self.keeping(job, |end, _| end.settle()) {
            (job, Ok(())) => self.send(job),
            (job, Err(refusal)) => Err(refusal.map(|()| job)),
        }
    }

    /// Calls while a job is still to be handed out. If the key of a job that came back panics in that call, this job is
    /// kept behind those.
    pub(super) fn keeping<O>(&mut self, job: T, call: impl FnOnce(&mut Self, &T) -> O) -> (T, O) {
        struct Kept<'a, T, Q: Queue<T>, W: Strategy, R> {
            end: &'a mut Dispatcher<T, Q, W, R>,
            job: Option<T>,
        }
        impl<T, Q: Queue<T>, W: Strategy, R> Drop for Kept<'_, T, Q, W, R> {
            fn drop(&mut self) {
                if !self.end.returned.is_empty() {
                    self.end.returned.extend(self.job.take());
                }
            }
        }
        let mut kept = Kept { end: self, job: Some(job) };
        let output = call(kept.end, kept.job.as_ref().expect("it was just put there"));
        (kept.job.take().expect("it was just put there"), output)
    }

    /// Hands a job to a worker when nothing is to be done before.
    #[inline(always)]
    pub(super) fn send(&mut self, job: T) -> Result<(), DispatchError<T>> {
        let at = self.route.choose(&job, &mut self.lines);
        self.send_to(at, job)
    }

    /// Hands a job to the worker that was chosen for it.
    #[inline(always)]
    fn send_to(&mut self, at: usize, job: T) -> Result<(), DispatchError<T>> {
        match self.lines[at].sender.try_push(job) {
            Ok(()) => {
                self.route.sent(1);
                Ok(())
            }
            Err(refused) => self.elsewhere(at, refused.into_inner()),
        }
    }

    /// Hands a job to a worker, and waits for room if there is none.
    ///
    /// A dispatcher that is ahead of its workers waits until half of a queue is free, as each of its wake-ups costs a
    /// worker a system call. With a strategy that never [parks](Strategy::PARKS) it waits until a batch finds room, if
    /// that is less. Workers must not wait for this thread meanwhile. If they may, because their results' queue is
    /// full, see [`dispatch_collecting`](Self::dispatch_collecting).
    ///
    /// # Errors
    /// `NoWorker` or `Panicked`, with the job.
    #[inline]
    pub fn dispatch(&mut self, job: T) -> Result<(), DispatchError<T>> {
        match self.try_dispatch(job) {
            Err(DispatchError::Full(job)) => self.dispatch_later(job, None),
            done => done,
        }
    }

    /// As [`dispatch`](Self::dispatch), but waits at most this long. Never gives up early; how late depends on the
    /// strategy and the scheduler.
    ///
    /// # Errors
    /// `Timeout`, `NoWorker` or `Panicked`, with the job.
    pub fn dispatch_timeout(&mut self, job: T, timeout: Duration) -> Result<(), DispatchError<T>> {
        let deadline = Instant::now().checked_add(timeout);
        self.dispatch_later(job, deadline)
    }

    #[cold]
    #[inline(never)]
    fn dispatch_later(&mut self, job: T, deadline: Option<Instant>) -> Result<(), DispatchError<T>> {
        let mut job = job;
        loop {
            match self.try_dispatch(job) {
                Err(DispatchError::Full(back)) => job = back,
                done => return done,
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(DispatchError::Timeout(job));
            }
            let (back, wanted) = self.keeping(job, |end, job| end.wanted(Some(job)));
            job = back;
            self.wait_for_room(wanted, deadline);
        }
    }

    /// Hands out jobs in batches, each with one synchronisation: a batch is moved to one worker's queue and published
    /// together, or line by line. Where the route goes by keys there are no batches. Waits for room as
    /// [`dispatch`](Self::dispatch).
    ///
    /// # Errors
    /// `NoWorker` or `Panicked`. What was not handed out is left in the vector.
    ///
    /// ```
    /// let (mut dispatcher, mut workers) = corelane::dispatch::channel(1, 8);
    /// dispatcher.dispatch_batch(&mut vec!['a', 'b', 'c']).unwrap();
    /// let mut jobs = Vec::new();
    /// assert_eq!(workers[0].pop_batch(&mut jobs, 10), Ok(3));
    /// ```
    pub fn dispatch_batch(&mut self, jobs: &mut Vec<T>) -> Result<(), DispatchError<()>> {
        self.dispatch_moving(&mut Moving::new(jobs), None)
    }

    /// As [`dispatch_batch`](Self::dispatch_batch), but waits at most this long for room.
    ///
    /// # Errors
    /// `Timeout`, `NoWorker` or `Panicked`. What was not handed out is left in the vector.
    pub fn dispatch_batch_timeout(&mut self, jobs: &mut Vec<T>, timeout: Duration) -> Result<(), DispatchError<()>> {
        let deadline = Instant::now().checked_add(timeout);
        self.dispatch_moving(&mut Moving::new(jobs), deadline)
    }

    /// As [`dispatch_batch`](Self::dispatch_batch), but never waits: hands out as many as there is room for and leaves
    /// the rest in the vector. Returns how many: 0 only if there were none.
    ///
    /// # Errors
    /// As for [`try_dispatch`](Self::try_dispatch), if none could be handed out.
    pub fn try_dispatch_batch(&mut self, jobs: &mut Vec<T>) -> Result<usize, DispatchError<()>> {
        self.try_dispatch_moving(&mut Moving::new(jobs))
    }

    /// As [`dispatch_batch`](Self::dispatch_batch), of a slice.
    ///
    /// # Errors
    /// `NoWorker` or `Panicked`, with the number of the jobs that were handed out before.
    #[inline]
    pub fn dispatch_slice(&mut self, jobs: &[T]) -> Result<(), DispatchError<usize>>
    where
        T: Copy,
    {
        let mut done = 0;
        // SAFETY: jobs that are `Copy` may be used again.
        let all = unsafe { self.dispatch_all(jobs.as_ptr(), jobs.len(), &mut done, None) };
        all.map_err(|refusal| refusal.map(|()| done))
    }

    /// As [`try_dispatch_batch`](Self::try_dispatch_batch), of a slice.
    ///
    /// # Errors
    /// As for [`try_dispatch`](Self::try_dispatch), if none could be handed out.
    pub fn try_dispatch_slice(&mut self, jobs: &[T]) -> Result<usize, DispatchError<()>>
    where
        T: Copy,
    {
        let mut done = 0;
        // SAFETY: jobs that are `Copy` may be used again.
        match unsafe { self.dispatch_some(jobs.as_ptr(), jobs.len(), &mut done) } {
            Err(refusal) if done == 0 => Err(refusal),
            _ => Ok(done),
        }
    }

    /// Hands out the rest of a vector, waiting for room. `None` waits for ever.
    fn dispatch_moving(
        &mut self,
        jobs: &mut Moving<'_, T>,
        deadline: Option<Instant>,
    ) -> Result<(), DispatchError<()>> {
        let (from, most) = jobs.all();
        // SAFETY: so many are there, and what is handed out is counted.
        unsafe { self.dispatch_all(from, most, &mut jobs.moved, deadline) }
    }

    /// Hands out the rest of a vector as far as there is room, and says how many; an error if there are some and none
    /// could be.
    pub(super) fn try_dispatch_moving(&mut self, jobs: &mut Moving<'_, T>) -> Result<usize, DispatchError<()>> {
        let ((from, most), before) = (jobs.all(), jobs.moved);
        // SAFETY: so many are there, and what is handed out is counted.
        match unsafe { self.dispatch_some(from, most, &mut jobs.moved) } {
            Err(refusal) if jobs.moved == before => Err(refusal),
            _ => Ok(jobs.moved - before),
        }
    }

    /// Hands out the `most` jobs at `from`, but for the first `done`, waiting for room. Counts them.
    ///
    /// # Safety
    /// There are so many, and those that are handed out are the workers'.
    #[inline]
    unsafe fn dispatch_all(
        &mut self,
        from: *const T,
        most: usize,
        done: &mut usize,
        deadline: Option<Instant>,
    ) -> Result<(), DispatchError<()>> {
        loop {
            // SAFETY: the caller's.
            match unsafe { self.dispatch_some(from, most, done) } {
                Err(DispatchError::Full(())) if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                    return Err(DispatchError::Timeout(()));
                }
                Err(DispatchError::Full(())) => {
                    // SAFETY: a job lies there, which no other thread takes meanwhile.
                    let wanted = self.wanted(Some(unsafe { &*from.add(*done) }));
                    self.wait_for_room(wanted, deadline);
                }
                over => return over,
            }
        }
    }

    /// The same as far as there is room, or why not further.
    ///
    /// # Safety
    /// As for [`dispatch_all`](Self::dispatch_all).
    #[inline]
    unsafe fn dispatch_some(&mut self, from: *const T, most: usize, done: &mut usize) -> Result<(), DispatchError<()>> {
        while *done < most {
            // SAFETY: the caller's.
            *done += unsafe { self.dispatch_run(from.add(*done), most - *done) }?;
        }
        Ok(())
    }

    /// Hands out the first of the `most` jobs at `from`, and those that may go along with it.
    ///
    /// # Safety
    /// There are so many, at least one, and those that are handed out are the workers'.
    #[inline]
    unsafe fn dispatch_run(&mut self, from: *const T, most: usize) -> Result<usize, DispatchError<()>> {
        if self.is_unsettled() {
            self.settle()?;
        }
        // SAFETY: a job lies there.
        let at = self.route.choose(unsafe { &*from }, &mut self.lines);
        let run = self.route.run().1.min(most);
        // SAFETY: so many lie there; what is pushed is counted.
        let sent = unsafe { self.lines[at].sender.push_from(from, run) };
        if sent == 0 {
            // SAFETY: the job is pushed, or what comes back is forgotten: then it lies where it was.
            let sent = self.elsewhere(at, unsafe { from.read() });
            return sent.map(|()| 1).map_err(|refused| refused.map(mem::forget));
        }
        self.route.sent(sent);
        Ok(sent)
    }

    /// As [`dispatch`](Self::dispatch), but takes results while it waits for room: for a thread that dispatches jobs
    /// and collects their results, where workers may wait for it in turn.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch).
    ///
    /// ```
    /// use corelane::dispatch::{self, Collector};
    ///
    /// let (mut dispatcher, mut workers) = dispatch::channel(1, 1);
    /// let mut squares = Collector::new(1);
    /// let (mut worker, mut results) = (workers.remove(0), squares.add().unwrap());
    /// let thread = std::thread::spawn(move || worker.jobs().for_each(|job| results.push(job * job).unwrap()));
    /// let mut sum = 0;
    /// for job in 1..=10_u64 {
    ///     // `dispatch` would wait for the worker, which waits until its result is collected.
    ///     dispatcher.dispatch_collecting(job, &mut squares, |_worker, square| sum += square).unwrap();
    /// }
    /// drop(dispatcher);
    /// while let Ok((_worker, square)) = squares.collect() {
    ///     sum += square;
    /// }
    /// assert_eq!(sum, 385);
    /// # thread.join().unwrap();
    /// ```
    pub fn dispatch_collecting<A: Send, B: Design<A>>(
        &mut self,
        job: T,
        results: &mut Collector<A, B, W>,
        mut each: impl FnMut(usize, A),
    ) -> Result<(), DispatchError<T>> {
        let mut job = job;
        loop {
            match self.try_dispatch(job) {
                Err(DispatchError::Full(back)) => job = back,
                done => return done,
            }
            while let Ok((worker, result)) = results.try_collect() {
                each(worker, result);
            }
            let (back, wanted) = self.keeping(job, |end, job| end.wanted(Some(job)));
            job = back;
            let (lines, desk) = (&mut self.lines[wanted], &*self.desk);
            let room = |_: &Line<T, Q, W>| 1;
            // Without producers it is always ready, to say so.
            let results = (!results.is_over()).then_some(&mut *results);
            wait_for(&mut Room { lines, desk, room, results }, &self.wait, None);
        }
    }

    /// Sends out what has come back from workers that left. Returns how many of those jobs are still here, because
    /// there is no room, no worker, or a panic to be [taken](Self::take_panic).
    ///
    /// Every call that dispatches does this first. It is for a thread that dispatches nothing for a while: no other job
    /// ever waits for it.
    pub fn flush(&mut self) -> usize {
        let _ = self.settle();
        self.returned.len()
    }

    /// The oldest panic of a worker that was not taken so far. Until it is, nothing is dispatched. What was in that
    /// worker's queue goes to the others then, unless it is [taken](Self::take_returned), too.
    pub fn take_panic(&mut self) -> Option<WorkerPanic> {
        self.hear();
        let panic = self.panics.pop_front();
        self.update();
        panic
    }

    /// The jobs that workers have left undone, oldest first, as far as they have not gone out again.
    pub fn take_returned(&mut self) -> Vec<T> {
        self.hear();
        let returned = mem::take(&mut self.returned).into();
        self.update();
        returned
    }

    /// Lets another worker join. Its number is the lowest that no worker has had.
    ///
    /// # Errors
    /// No memory, or what [`Builder::build`] refuses.
    pub fn add_worker(&mut self) -> Result<Worker<T, Q, W>, ChannelError> {
        self.hear();
        let (sender, receiver) = Q::create(self.capacity, self.tuning.clone(), self.wait.clone())?;
        let (seat, number) = (Seat::new(), self.joined);
        self.joined = self.joined.wrapping_add(1);
        self.lines.push(Line { sender, seat: seat.clone(), number });
        self.route.joined(self.lines.len());
        self.update();
        Ok(Worker::new(number, receiver, seat, self.desk.clone()))
    }

    /// How many workers there are, as far as the dispatcher knows.
    pub fn workers(&self) -> usize {
        self.lines.len()
    }

    /// The workers by number, with the jobs in their queues: an upper bound each.
    pub fn loads(&mut self) -> impl Iterator<Item = (usize, usize)> {
        self.hear();
        self.lines.iter_mut().map(|line| (line.number, line.sender.len()))
    }

    /// Ends the fan-out: no more jobs, the workers do what is in their queues, and leave. Waits for the last of them.
    ///
    /// Jobs that came back before go out first. A job that comes back after that, or has nowhere to go, is in the
    /// error.
    ///
    /// # Errors
    /// If a worker has panicked, or jobs are left undone.
    pub fn join(mut self) -> Result<(), Unfinished<T>> {
        while let Err(DispatchError::Full(())) = self.settle() {
            let wanted = self.wanted(None);
            self.wait_for_room(wanted, None);
        }
        self.lines.iter_mut().for_each(|line| line.sender.close());
        let own = Own::new();
        let sleeper = own.sleeper();
        loop {
            self.desk.sleeper_is(Some(sleeper));
            self.hear();
            if self.lines.is_empty() {
                break;
            }
            sleeper.park(None);
        }
        let unfinished = self.unfinished();
        if unfinished.is_nothing() { Ok(()) } else { Err(unfinished) }
    }

    /// What has come back so far.
    pub(super) fn unfinished(&mut self) -> Unfinished<T> {
        let panics = mem::take(&mut self.panics).into();
        let undone = mem::take(&mut self.returned).into();
        Unfinished { panics, undone }
    }

    /// Ready when each job would find room, wherever it is to go; or never, and why. Otherwise the lines to wait for.
    pub(super) fn look_for_room(&mut self) -> Result<Result<(), DispatchError<()>>, Range<usize>> {
        if self.is_unsettled() {
            match self.settle() {
                Ok(()) => {}
                Err(DispatchError::Full(())) => return Err(self.wanted(None)),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        let lines = &mut self.lines;
        if R::BOUND {
            // One full queue after the other: no other thread pushes into a queue that was found to have room.
            match lines.iter_mut().position(|line| !line.sender.ready(1)) {
                None => Ok(Ok(())),
                Some(at) => Err(at..at + 1),
            }
        } else if lines.iter_mut().any(|line| line.sender.ready(1)) {
            Ok(Ok(()))
        } else {
            Err(0..lines.len())
        }
    }

    #[inline(always)]
    fn is_unsettled(&self) -> bool {
        self.unsettled || self.desk.has_news()
    }

    /// To be called when something changed that `unsettled` depends on.
    fn update(&mut self) {
        self.unsettled = !self.returned.is_empty() || !self.panics.is_empty() || self.lines.is_empty();
    }

    /// Takes in what workers have left behind.
    #[cold]
    #[inline(never)]
    pub(super) fn hear(&mut self) {
        if !self.desk.take_news() {
            return;
        }
        // They were dispatched before what is here: that has not gone out again yet.
        let mut undone = VecDeque::new();
        let mut at = 0;
        while at < self.lines.len() {
            let Some((mut receiver, how)) = self.lines[at].seat.clear(false) else {
                at += 1;
                continue;
            };
            let Line { sender, number, .. } = self.lines.remove(at);
            self.route.left(at, self.lines.len());
            // No task waits at it any more, to be woken by what is popped here.
            drop(sender);
            while let Ok(job) = receiver.try_pop() {
                undone.push_back(job);
            }
            self.panics.extend(how.into_panic(number));
        }
        undone.append(&mut self.returned);
        self.returned = undone;
        self.update();
    }

    /// Does what is to be done before the next job goes out, or says why it cannot.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&mut self) -> Result<(), DispatchError<()>> {
        self.hear();
        let settled = loop {
            if !self.panics.is_empty() {
                break Err(DispatchError::Panicked(()));
            }
            if self.lines.is_empty() {
                break Err(DispatchError::NoWorker(()));
            }
            let Some(job) = self.returned.front() else { break Ok(()) };
            // While it is still here: a key's closure may panic.
            let at = self.route.choose(job, &mut self.lines);
            let job = self.returned.pop_front().expect("it is there");
            if let Err(refused) = self.send_to(at, job) {
                self.returned.push_front(refused.into_inner());
                break Err(DispatchError::Full(()));
            }
        };
        self.update();
        settled
    }

    /// A job for which there was no room.
    #[cold]
    #[inline(never)]
    fn elsewhere(&mut self, from: usize, job: T) -> Result<(), DispatchError<T>> {
        let mut job = job;
        if !R::BOUND {
            let count = self.lines.len();
            for at in (from + 1..count).chain(0..from) {
                match self.lines[at].sender.try_push(job) {
                    Ok(()) => {
                        self.route.moved(at);
                        self.route.sent(1);
                        return Ok(());
                    }
                    Err(refused) => job = refused.into_inner(),
                }
            }
        }
        Err(DispatchError::Full(job))
    }

    /// The lines a job may go to; the first that came back goes before.
    pub(super) fn wanted(&mut self, job: Option<&T>) -> Range<usize> {
        match self.returned.front().or(job) {
            Some(job) if R::BOUND && !self.lines.is_empty() => {
                let at = self.route.choose(job, &mut self.lines);
                at..at + 1
            }
            _ => 0..self.lines.len(),
        }
    }

    /// Waits until there is room for more than a job at one of these lines, or a worker of theirs has left.
    #[cold]
    #[inline(never)]
    fn wait_for_room(&mut self, wanted: Range<usize>, deadline: Option<Instant>) {
        let lines = &mut self.lines[wanted];
        if lines.is_empty() {
            return;
        }
        let (capacity, batch) = (self.capacity, self.batch);
        let room = |line: &Line<T, Q, W>| {
            let half = capacity.min(line.sender.capacity()).div_ceil(2);
            // A dispatcher that yields waits for room for a batch, which keeps workers busier than half a queue does.
            if W::PARKS { half } else { half.min(batch) }
        };
        let desk = &*self.desk;
        wait_for(&mut Room { lines, desk, room, results: None::<&mut Collector<T>> }, &self.wait, deadline);
    }
}

impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> selectable::sealed::Sealed for Dispatcher<T, Q, W, R> {}

impl<T: Send, Q: Queue<T>, W: Strategy, R: Route<T>> Selectable for Dispatcher<T, Q, W, R> {
    fn ready(&mut self, _: usize) -> bool {
        self.look_for_room().is_ok()
    }

    fn arm(&mut self, _: usize, sleeper: Sleeper) {
        self.desk.sleeper_is(Some(sleeper));
        self.lines.iter_mut().for_each(|line| line.sender.arm(1, sleeper));
    }

    fn disarm(&mut self, sleeper: Sleeper) {
        self.desk.sleeper_is(None);
        self.lines.iter_mut().for_each(|line| line.sender.disarm(sleeper));
    }
}

impl<T, Q: Queue<T>, W: Strategy, R> Drop for Dispatcher<T, Q, W, R> {
    /// What came back and did not go out again is dropped; [`join`](Dispatcher::join) gives it back.
    fn drop(&mut self) {
        #[cfg(feature = "async")]
        self.desk.await_with(None);
        let leave = |Line { sender, seat, .. }: Line<T, Q, W>| {
            drop(sender);
            // A worker that leaves from now on keeps what is in its queue.
            seat.clear(true)
        };
        let left: Vec<_> = self.lines.drain(..).filter_map(leave).collect();
        // Now that all know: a job's drop may panic.
        drop(left);
    }
}

debug! { [T, Q: Queue<T>, W: Strategy, R: fmt::Debug] Dispatcher<[T, Q, W, R]>: self,
    workers: self.lines.iter().map(|line| line.number).collect::<Vec<_>>(),
    route: self.route,
    returned: self.returned.len(),
    panics: self.panics,
}

/// What [`join`](Dispatcher::join) found.
pub struct Unfinished<T> {
    /// The workers that panicked, in the order in which the dispatcher heard of it.
    pub panics: Vec<WorkerPanic>,
    /// Jobs that were dispatched and that no worker has taken.
    pub undone: Vec<T>,
}

impl<T> Unfinished<T> {
    pub(super) fn is_nothing(&self) -> bool {
        self.panics.is_empty() && self.undone.is_empty()
    }
}

impl<T> fmt::Debug for Unfinished<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfinished").field("panics", &self.panics).field("undone", &self.undone.len()).finish()
    }
}

impl<T> fmt::Display for Unfinished<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.panics.first() {
            Some(panic) => write!(f, "{panic}; ")?,
            None => f.write_str("workers left early; ")?,
        }
        write!(f, "jobs left undone: {}", self.undone.len())
    }
}

impl<T> std::error::Error for Unfinished<T> {}
