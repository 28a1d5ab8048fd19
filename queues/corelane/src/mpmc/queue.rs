//! The contract, written once over every [`Design`]: waiting, time-outs, wake-ups, batches, counts.
//!
//! 1. An algorithm makes attempts. Each succeeds, or finds the queue full or empty, or closed, or in use.
//! 2. Closing is the algorithm's. The word or the lock that decides about a push also decides whether the push comes
//!    before the close. So each item is either given back by its push or there to be popped.
//! 3. A waiting call makes an attempt. As long as that finds nothing, it does what the strategy says. Where it pays,
//!    the call stays away for a while first ([`pace`](super::pace)).
//! 4. Before a thread sleeps it says so in the list of its side and makes one more attempt
//!    ([`sleepers`](super::sleepers) has the protocol).

use super::design::{Design, Raw, Stay, Waiting};
use super::pace::Pace;
use super::side::Side;
use super::stats::{Counting, NoStats, Recorder, Stats};
use super::ticket::Ticket;
use crate::bound::Bounded;
use crate::end::wait::Ended;
use crate::error::{ChannelError, Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use crate::macros::debug;
use crate::mem::buffer::drop_while;
use crate::mem::moving::Moving;
use crate::start::{START, START_32};
use crate::sync::{Instant, Padded, pause};
#[cfg(feature = "std")]
use crate::wait::Sleeper;
use crate::wait::{Adaptive, Next, Strategy, WaitState, outwait_publishers};
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

#[cfg(feature = "std")]
use super::sleepers::Sleepers;

/// How a queue is made: the wait strategy, what it counts.
///
/// ```
/// use corelane::mpmc::{Counting, Options, ticket};
/// use corelane::wait::Yield;
///
/// let queue = ticket::queue_with(8, Options::new().wait(Yield).stats::<Counting>())?;
/// queue.push('a').unwrap();
/// assert_eq!(queue.stats().push.items, 1);
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options<W = Adaptive, S = NoStats> {
    wait: W,
    /// [`START`] unless it is set.
    start: Option<usize>,
    stats: PhantomData<S>,
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<W, S> Options<W, S> {
    /// How threads wait. [`condvar`](super::condvar) and [`busy_wait`](super::busy_wait) have a way of their own.
    pub fn wait<V: Strategy>(self, wait: V) -> Options<V, S> {
        Options { wait, start: self.start, stats: self.stats }
    }

    /// What the queue counts: [`Counting`] makes it offer `stats()`.
    pub fn stats<R: Recorder>(self) -> Options<W, R> {
        Options { wait: self.wait, start: self.start, stats: PhantomData }
    }

    /// The strategy, and where positions start.
    pub(super) fn into_parts(self) -> (W, usize) {
        (self.wait, self.start.unwrap_or(START))
    }

    /// Lets positions start here instead of at 0, so that a test reaches their wrap-around.
    #[doc(hidden)]
    pub fn start_at(mut self, position: usize) -> Self {
        self.start = Some(position);
        self
    }
}

/// The greatest capacity of a bounded queue; [`capacity`](Queue::capacity) of one without a bound.
pub const UNBOUNDED: usize = isize::MAX as usize / 2;

/// Makes a queue of any design with a bound, named by the type parameter `D`.
///
/// ```
/// use corelane::Bounded;
/// use corelane::mpmc::{self, Design, NoStats, Options};
/// use corelane::wait::Yield;
///
/// fn first<D: Design<u32> + Bounded>() -> u32 {
///     let queue = mpmc::queue_with::<u32, D, _, NoStats>(8, Options::new().wait(Yield)).unwrap();
///     queue.push(7).unwrap();
///     queue.pop().unwrap()
/// }
/// assert_eq!(first::<mpmc::Ticket>(), first::<mpmc::Condvar>());
/// ```
///
/// # Errors
/// A capacity of 0 or beyond what positions hold, or no memory.
pub fn queue_with<T: Send, D: Design<T> + Bounded, W: Strategy, S: Recorder>(
    capacity: usize,
    options: Options<W, S>,
) -> Result<Queue<T, D, W, S>, ChannelError> {
    any_queue(capacity, options)
}

/// As [`queue_with`], for what works over all designs: one without a bound has memory for `capacity` items from the
/// start.
///
/// # Errors
/// As [`queue_with`].
#[doc(hidden)]
pub fn any_queue<T: Send, D: Design<T>, W: Strategy, S: Recorder>(
    capacity: usize,
    options: Options<W, S>,
) -> Result<Queue<T, D, W, S>, ChannelError> {
    if capacity == 0 {
        return Err(ChannelError::ZeroCapacity);
    }
    if capacity > UNBOUNDED {
        return Err(ChannelError::TooLarge);
    }
    Ok(Queue {
        body: D::create(capacity, options.start.unwrap_or(START))?,
        wait: options.wait,
        stats: S::default(),
        paces: Default::default(),
        #[cfg(feature = "std")]
        producers: Padded(Sleepers::new()),
        #[cfg(feature = "std")]
        consumers: Padded(Sleepers::new()),
    })
}

/// A first-in first-out queue between any number of producers and consumers, which share it by reference or in an
/// `Arc`. See the [module](super). [`Sender`](super::Sender) and [`Receiver`](super::Receiver) are handles that close
/// it when they are gone.
///
/// ```
/// use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
/// use corelane::mpmc::Queue;
/// use core::time::Duration;
///
/// let queue: Queue<u32> = corelane::mpmc::queue(4);
/// let soon = Duration::from_millis(1);
///
/// // One item: a call that waits, one that never does, one that waits at most so long.
/// assert_eq!(queue.push(1), Ok(()));
/// assert_eq!(queue.try_push(2), Ok(()));
/// assert_eq!(queue.push_timeout(3, soon), Ok(()));
/// // Many: what was pushed leaves the vector.
/// let mut items = vec![4, 5];
/// assert_eq!(queue.try_push_batch(&mut items), Ok(1));
/// assert_eq!(queue.push_batch_timeout(&mut items, soon), Err(PushTimeoutError::Timeout(())));
/// assert_eq!(items, [5]);
/// assert_eq!(queue.try_push(5), Err(TryPushError::Full(5)));
/// assert_eq!((queue.len(), queue.is_empty(), queue.capacity()), (4, false, 4));
///
/// assert_eq!(queue.pop(), Ok(1));
/// assert_eq!(queue.try_pop(), Ok(2));
/// assert_eq!(queue.push_batch(&mut items), Ok(()));
/// let mut popped = Vec::new();
/// assert_eq!(queue.pop_batch(&mut popped, 1), Ok(1));
/// assert_eq!(queue.try_pop_batch(&mut popped, 10), Ok(2));
/// assert_eq!(popped, [3, 4, 5]);
/// assert_eq!(queue.try_pop(), Err(TryPopError::Empty));
/// assert_eq!(queue.pop_timeout(soon), Err(PopTimeoutError::Timeout));
/// assert_eq!(queue.pop_batch_timeout(&mut popped, 10, soon), Err(PopTimeoutError::Timeout));
///
/// queue.close();
/// assert!(queue.is_closed());
/// assert_eq!(queue.push(6), Err(Closed(6)));
/// assert_eq!(queue.pop(), Err(Closed(())));
/// ```
pub struct Queue<T: Send, D: Design<T> = Ticket, W = Adaptive, S: Recorder = NoStats> {
    body: D::Body,
    wait: W,
    stats: S,
    /// Of waits for room, and for items.
    paces: [Pace; 2],
    /// The threads that wait for room.
    #[cfg(feature = "std")]
    producers: Padded<Sleepers>,
    /// The threads that wait for items.
    #[cfg(feature = "std")]
    consumers: Padded<Sleepers>,
}

impl<T: Send, D: Design<T>, W, S: Recorder> Queue<T, D, W, S> {
    /// How long an attempt of a waiting call stays.
    const STAY: Stay = match D::Body::WAITING {
        Waiting::Parked | Waiting::Busy => Stay::ForLock,
        Waiting::Inside => Stay::Until(None),
    };

    /// Pushes an item if there is room. Never waits.
    ///
    /// # Errors
    /// `Full` if `capacity` items are inside, `Closed` once the queue is closed, `Busy` if this call had to wait for
    /// another thread in the middle of its call. The item comes back.
    #[doc(alias = "try_send", alias = "offer")]
    #[inline]
    pub fn try_push(&self, item: T) -> Result<(), TryPushError<T>> {
        self.attempt_push(item, Stay::No)
    }

    /// Pops the oldest item. Never waits.
    ///
    /// # Errors
    /// `Empty` if no item is inside, `Closed` if moreover the queue is closed, `Busy` if this call had to wait for
    /// another thread in the middle of its call.
    #[doc(alias = "try_recv", alias = "poll")]
    #[inline]
    pub fn try_pop(&self) -> Result<T, TryPopError> {
        self.attempt_pop(Stay::No)
    }

    /// Pushes items from the front of the vector, as many as there is room for, in one step; they leave the vector.
    /// Returns how many: fewer than all where the queue got full, or another thread is in the middle of freeing the
    /// next slot. Never waits.
    ///
    /// # Errors
    /// Nothing was pushed, for the same reasons as in [`try_push`](Self::try_push). An empty vector is no error.
    pub fn try_push_batch(&self, items: &mut Vec<T>) -> Result<usize, TryPushError<()>> {
        let mut supply = Moving::new(items);
        if supply.len() == 0 {
            return Ok(0);
        }
        self.attempt_push_run(&mut supply, Stay::No)
    }

    /// Pops up to `max` items in one step and appends them to `items`. Returns how many, which is 0 only if `max` is.
    /// Never waits.
    ///
    /// # Errors
    /// Nothing was popped, for the same reasons as in [`try_pop`](Self::try_pop).
    pub fn try_pop_batch(&self, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError> {
        if max == 0 {
            return Ok(0);
        }
        self.attempt_pop_run(items, max, Stay::No)
    }

    /// The side that pops, for a [`Select`](crate::wait::Select): ready when there is an item, or the queue is closed.
    ///
    /// ```
    /// let queue = corelane::mpmc::queue(4);
    /// let mut select = corelane::wait::Select::new();
    /// let (pops, pushes) = (select.add(queue.pop_side()), select.add(queue.push_side()));
    /// assert_eq!(select.wait().unwrap(), pushes);
    /// queue.push(1).unwrap();
    /// assert_eq!(select.wait().unwrap(), pops);
    /// ```
    #[cfg(feature = "std")]
    pub fn pop_side(&self) -> PopSide<'_, T, D, W, S> {
        PopSide(self)
    }

    /// The side that pushes, for a [`Select`](crate::wait::Select): ready when there is room, or the queue is closed.
    /// [`pop_side`](Self::pop_side) has an example.
    #[cfg(feature = "std")]
    pub fn push_side(&self) -> PushSide<'_, T, D, W, S> {
        PushSide(self)
    }

    /// Whether a call at this side need not wait.
    #[cfg(feature = "std")]
    pub(super) fn is_ready(&self, side: Side) -> bool {
        let is_ready = match side {
            Side::Push => self.body.has_room(),
            Side::Pop => self.body.has_item(),
        };
        is_ready || self.is_closed()
    }

    /// This sleeper, of a select, is to be woken. The caller passes the heavy half of the barrier, once for all ends.
    #[cfg(feature = "std")]
    pub(super) fn arm(&self, side: Side, sleeper: Sleeper) {
        self.sleepers(side).add(sleeper);
    }

    /// Takes the sleeper back.
    ///
    /// A select that was woken takes no item, so the next sleeper is woken in its place. That is not done for an item
    /// that another thread is in the middle of: that thread wakes a sleeper when it is done, and two selects would wake
    /// each other until then.
    #[cfg(feature = "std")]
    pub(super) fn disarm(&self, side: Side, sleeper: Sleeper) {
        if !self.sleepers(side).remove(sleeper) {
            self.wake_next(side);
        }
    }

    /// Called by a thread that was woken and whose wait is over. There may be more, and no other thread was told.
    ///
    /// A closed queue may also have come to its end only now: a thread that sleeps since the close found the last item
    /// still on its way, and this thread has taken it.
    fn wake_next(&self, side: Side) {
        let _ = side;
        #[cfg(feature = "std")]
        if self.is_ready(side) {
            self.wake(side);
        }
    }

    /// Closes the queue: no later push succeeds, threads that wait are woken. What is inside can still be popped. A
    /// queue that is closed stays closed.
    pub fn close(&self) {
        self.body.close();
        #[cfg(feature = "std")]
        {
            self.producers.wake_all();
            self.consumers.wake_all();
        }
    }

    /// True once the queue is closed. Then it stays so, and no push succeeds.
    pub fn is_closed(&self) -> bool {
        self.body.is_closed()
    }

    /// Items inside, at some moment of the call; at most [`capacity`](Self::capacity). An item whose push or pop has
    /// not returned may count or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// True if [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest number of items the queue can hold; [`UNBOUNDED`] where there is no bound but memory.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.body.capacity()
    }

    /// For a producer and a consumer that are alone, see [`Raw::room_alone`].
    #[inline]
    pub(crate) fn room_alone(&self, most: usize) -> usize {
        self.body.room_alone(most)
    }

    /// As [`room_alone`](Self::room_alone).
    #[inline]
    pub(crate) fn filled_alone(&self, most: usize) -> usize {
        self.body.filled_alone(most)
    }

    #[inline(always)]
    fn attempt_push(&self, item: T, stay: Stay) -> Result<(), TryPushError<T>> {
        let outcome = self.body.push(item, stay, &self.stats);
        self.stats.tried(Side::Push, usize::from(outcome.is_ok()));
        if outcome.is_ok() {
            self.wake(Side::Pop);
        }
        outcome
    }

    #[inline(always)]
    fn attempt_pop(&self, stay: Stay) -> Result<T, TryPopError> {
        let outcome = self.body.pop(stay, &self.stats);
        self.stats.tried(Side::Pop, usize::from(outcome.is_ok()));
        if outcome.is_ok() {
            self.wake(Side::Push);
        }
        outcome
    }

    #[inline(always)]
    fn attempt_push_run(&self, supply: &mut Moving<'_, T>, stay: Stay) -> Result<usize, TryPushError<()>> {
        let outcome = self.body.push_run(supply, stay, &self.stats);
        self.stats.tried(Side::Push, outcome.as_ref().map_or(0, |&items| items));
        if outcome.is_ok() {
            self.wake(Side::Pop);
        }
        outcome
    }

    #[inline(always)]
    fn attempt_pop_run(&self, items: &mut Vec<T>, max: usize, stay: Stay) -> Result<usize, TryPopError> {
        let outcome = self.body.pop_run(items, max, stay, &self.stats);
        self.stats.tried(Side::Pop, outcome.unwrap_or(0));
        if outcome.is_ok() {
            self.wake(Side::Push);
        }
        outcome
    }

    #[cfg(all(test, feature = "std", not(any(corelane_loom, corelane_shuttle))))]
    pub(super) fn paces(&self) -> &[Pace; 2] {
        &self.paces
    }

    fn pace(&self, side: Side) -> &Pace {
        match side {
            Side::Push => &self.paces[0],
            Side::Pop => &self.paces[1],
        }
    }

    /// About how many more calls this side could make at once.
    fn left(&self, side: Side) -> usize {
        match side {
            Side::Push => self.body.capacity().saturating_sub(self.body.about()),
            Side::Pop => self.body.about(),
        }
    }

    /// To be called after a change that a thread at this side may wait for.
    #[inline(always)]
    fn wake(&self, side: Side) {
        let _ = side;
        #[cfg(feature = "std")]
        if (D::Body::MAY_BE_FULL || side == Side::Pop) && self.sleepers(side).wake() {
            self.drain(false);
        }
    }

    /// No thread will pop from this queue, which is closed, any more: drops what is inside, and what a push in the
    /// middle of its call may still leave there.
    pub(super) fn abandon(&self) {
        #[cfg(feature = "std")]
        self.consumers.are_gone();
        self.drain(true);
    }

    /// Drops what is inside. What a push is in the middle of is that push's to drop, by the same call, unless it has
    /// overlooked that no receiver is left.
    #[cold]
    fn drain(&self, mut looks_again: bool) {
        // For a lock at most: it is held for a few instructions, by a thread that does the same.
        drop_while(|| match self.body.pop(Stay::ForLock, &NoStats) {
            Ok(_) => true,
            Err(TryPopError::Closed) => false,
            Err(_) => core::mem::take(&mut looks_again) && outwait_publishers(),
        });
    }

    #[cfg(feature = "std")]
    #[inline(always)]
    fn sleepers(&self, side: Side) -> &Sleepers {
        match side {
            Side::Push => &self.producers,
            Side::Pop => &self.consumers,
        }
    }
}

/// What a call moves that waits. Batches have no [`Pace`], which says why.
#[derive(Clone, Copy, Debug)]
enum Calls {
    /// An item; whether it was tried once already.
    Single {
        tried: bool,
    },
    Batch,
}

impl<T: Send, D: Design<T>, W: Strategy, S: Recorder> Queue<T, D, W, S> {
    /// Pushes an item; waits while the queue is full.
    ///
    /// # Errors
    /// The queue is closed. The item comes back.
    #[doc(alias = "send", alias = "enqueue")]
    #[inline]
    pub fn push(&self, item: T) -> Result<(), Closed<T>> {
        match self.attempt_push(item, Self::STAY) {
            Ok(()) => Ok(()),
            Err(TryPushError::Closed(item)) => Err(Closed(item)),
            Err(TryPushError::Full(item) | TryPushError::Busy(item)) => {
                self.push_later(item, true, None).map_err(|error| Closed(error.into_inner()))
            }
        }
    }

    /// Pops the oldest item; waits while the queue is empty.
    ///
    /// # Errors
    /// The queue is closed and drained.
    #[doc(alias = "recv", alias = "dequeue")]
    #[inline]
    pub fn pop(&self) -> Result<T, Closed> {
        match self.attempt_pop(Self::STAY) {
            Ok(item) => Ok(item),
            Err(TryPopError::Closed) => Err(Closed(())),
            Err(TryPopError::Empty | TryPopError::Busy) => Ok(self.pop_later(true, None)?),
        }
    }

    /// Pushes an item; waits at most this long while the queue is full. Never gives up early; how late depends on the
    /// strategy and the scheduler.
    ///
    /// # Errors
    /// The time is up, or the queue is closed. The item comes back.
    #[cfg(feature = "std")]
    #[doc(alias = "send_timeout", alias = "offer")]
    pub fn push_timeout(&self, item: T, timeout: Duration) -> Result<(), PushTimeoutError<T>> {
        self.push_later(item, false, Instant::now().checked_add(timeout))
    }

    /// Pops the oldest item; waits at most this long while the queue is empty. Never gives up early; how late depends
    /// on the strategy and the scheduler.
    ///
    /// # Errors
    /// The time is up, or the queue is closed and drained.
    #[cfg(feature = "std")]
    #[doc(alias = "recv_timeout", alias = "poll")]
    pub fn pop_timeout(&self, timeout: Duration) -> Result<T, PopTimeoutError> {
        Ok(self.pop_later(false, Instant::now().checked_add(timeout))?)
    }

    /// Pushes all items of the vector, in order; waits while the queue is full. What fits goes in one step, so a batch
    /// that fits whole is one synchronization. Other threads' items may come between the steps.
    ///
    /// # Errors
    /// The queue is closed. The items that were not pushed are still in the vector, in order.
    #[doc(alias = "send_many", alias = "enqueue_bulk")]
    pub fn push_batch(&self, items: &mut Vec<T>) -> Result<(), Closed> {
        Ok(self.push_all(items, None)?)
    }

    /// Pushes all items of the vector; waits at most this long while the queue is full.
    ///
    /// # Errors
    /// The time is up, or the queue is closed. The items that were not pushed are still in the vector, in order.
    #[cfg(feature = "std")]
    pub fn push_batch_timeout(&self, items: &mut Vec<T>, timeout: Duration) -> Result<(), PushTimeoutError<()>> {
        self.push_all(items, Instant::now().checked_add(timeout)).map_err(|ended| ended.with(()))
    }

    /// Pops up to `max` items in one step and appends them to `items`; waits while the queue is empty. Returns how
    /// many, which is 0 only if `max` is.
    ///
    /// # Errors
    /// The queue is closed and drained.
    #[doc(alias = "recv_many", alias = "dequeue_bulk")]
    pub fn pop_batch(&self, items: &mut Vec<T>, max: usize) -> Result<usize, Closed> {
        if max == 0 {
            return Ok(0);
        }
        match self.attempt_pop_run(items, max, Self::STAY) {
            Ok(popped) => Ok(popped),
            Err(TryPopError::Closed) => Err(Closed(())),
            Err(TryPopError::Empty | TryPopError::Busy) => Ok(self.pop_run_later(items, max, None)?),
        }
    }

    /// Pops up to `max` items in one step and appends them to `items`; waits at most this long while the queue is
    /// empty. Returns how many, which is 0 only if `max` is.
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
        if max == 0 {
            return Ok(0);
        }
        Ok(self.pop_run_later(items, max, Instant::now().checked_add(timeout))?)
    }

    #[cold]
    #[inline(never)]
    fn push_later(&self, item: T, tried: bool, deadline: Option<Instant>) -> Result<(), PushTimeoutError<T>> {
        let mut item = Some(item);
        let outcome = self.wait_for(Side::Push, Calls::Single { tried }, deadline, |stay| {
            let refused = match self.attempt_push(item.take()?, stay) {
                Ok(()) => return Some(Ok(())),
                Err(refused) => refused,
            };
            let closed = refused.is_closed();
            item = Some(refused.into_inner());
            closed.then_some(Err(Ended::Closed))
        });
        match (outcome, item) {
            (Err(ended), Some(item)) => Err(ended.with(item)),
            _ => Ok(()),
        }
    }

    fn pop_later(&self, tried: bool, deadline: Option<Instant>) -> Result<T, Ended> {
        self.wait_for(Side::Pop, Calls::Single { tried }, deadline, |stay| decided(self.attempt_pop(stay)))
    }

    fn pop_run_later(&self, items: &mut Vec<T>, max: usize, deadline: Option<Instant>) -> Result<usize, Ended> {
        self.wait_for(Side::Pop, Calls::Batch, deadline, |stay| decided(self.attempt_pop_run(items, max, stay)))
    }

    fn push_all(&self, items: &mut Vec<T>, deadline: Option<Instant>) -> Result<(), Ended> {
        let mut supply = Moving::new(items);
        while supply.len() != 0 {
            self.wait_for(Side::Push, Calls::Batch, deadline, |stay| match self.attempt_push_run(&mut supply, stay) {
                Ok(_) => Some(Ok(())),
                Err(TryPushError::Closed(())) => Some(Err(Ended::Closed)),
                Err(TryPushError::Full(()) | TryPushError::Busy(())) => None,
            })?;
        }
        Ok(())
    }

    /// Makes attempts until one decides, or the time is up.
    fn wait_for<R>(
        &self,
        side: Side,
        calls: Calls,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(Stay) -> Option<Result<R, Ended>>,
    ) -> Result<R, Ended> {
        if matches!(D::Body::WAITING, Waiting::Inside) {
            return attempt(Stay::Until(deadline)).unwrap_or(Err(Ended::Timeout));
        }
        let pace = self.pace(side);
        let (mut may_stay_away, mut has_stayed_away) = match (D::Body::WAITING, calls) {
            (Waiting::Parked, Calls::Single { tried: false }) => (true, false),
            (Waiting::Parked, Calls::Single { tried: true }) => (false, pace.stay_away()),
            _ => (false, false),
        };
        let mut state = WaitState::new();
        let mut looks = START_32;
        // Whether another thread has woken this one since its last attempt.
        let mut woken = false;
        loop {
            let outcome = if woken { self.in_place_of_another(side, &mut attempt) } else { attempt(Stay::ForLock) };
            if has_stayed_away {
                pace.learn(if outcome.is_some() { self.left(side) } else { 0 });
                has_stayed_away = false;
            }
            if let Some(outcome) = outcome {
                if woken {
                    self.wake_next(side);
                }
                return outcome;
            }
            woken = false;
            if may_stay_away {
                may_stay_away = false;
                has_stayed_away = pace.stay_away();
                if has_stayed_away {
                    continue;
                }
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                return Err(Ended::Timeout);
            }
            if matches!(D::Body::WAITING, Waiting::Busy) {
                looks = looks.wrapping_add(1);
                pause(looks);
                continue;
            }
            match self.wait.next(&mut state) {
                Next::Retry => {}
                #[cfg(feature = "std")]
                Next::Park => {
                    let seat = self.sleepers(side).sit_down();
                    let outcome = attempt(Stay::ForLock);
                    if outcome.is_none() {
                        self.stats.slept(side);
                        seat.sleeper().park(deadline);
                    }
                    woken = seat.leave();
                    if let Some(outcome) = outcome {
                        if woken {
                            self.wake_next(side);
                        }
                        return outcome;
                    }
                    state = WaitState::new();
                }
                // There is nothing to sleep on.
                #[cfg(not(feature = "std"))]
                Next::Park => crate::sync::spin_loop(),
            }
        }
    }

    /// An attempt of a thread that was woken. It panics where the caller's vector cannot grow: then another one has to
    /// make it.
    #[cold]
    fn in_place_of_another<R>(&self, side: Side, attempt: impl FnOnce(Stay) -> R) -> R {
        struct OnPanic<F: Fn()>(F);
        impl<F: Fn()> Drop for OnPanic<F> {
            fn drop(&mut self) {
                (self.0)();
            }
        }
        let on_panic = OnPanic(|| self.wake(side));
        let outcome = attempt(Stay::ForLock);
        core::mem::forget(on_panic);
        outcome
    }
}

/// Lets a select wait for a side of a queue, which an end leads to.
#[cfg(feature = "std")]
macro_rules! selectable {
    ($end:ty, $side:ident, $($queue:tt).+) => {
        impl<T: Send, D: Design<T>, W, S: Recorder> $crate::wait::selectable::sealed::Sealed for $end {}

        impl<T: Send, D: Design<T>, W, S: Recorder> $crate::wait::Selectable for $end {
            fn ready(&mut self, _: usize) -> bool {
                self.$($queue).+.is_ready(Side::$side)
            }

            fn arm(&mut self, _: usize, sleeper: $crate::wait::Sleeper) {
                self.$($queue).+.arm(Side::$side, sleeper);
            }

            fn disarm(&mut self, sleeper: $crate::wait::Sleeper) {
                self.$($queue).+.disarm(Side::$side, sleeper);
            }
        }
    };
}
#[cfg(feature = "std")]
pub(super) use selectable;

#[cfg(feature = "std")]
macro_rules! side {
    ($($(#[$doc:meta])* $name:ident $side:ident)+) => {
        $($(#[$doc])*
        pub struct $name<'q, T: Send, D: Design<T> = Ticket, W = Adaptive, S: Recorder = NoStats>(
            &'q Queue<T, D, W, S>,
        );

        selectable!($name<'_, T, D, W, S>, $side, 0);

        impl<T: Send, D: Design<T>, W, S: Recorder> fmt::Debug for $name<'_, T, D, W, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(self.0).finish()
            }
        })+
    };
}

#[cfg(feature = "std")]
side! {
    /// See [`Queue::pop_side`].
    PopSide Pop
    /// See [`Queue::push_side`].
    PushSide Push
}

/// What ends a wait for an item.
fn decided<R>(outcome: Result<R, TryPopError>) -> Option<Result<R, Ended>> {
    match outcome {
        Ok(popped) => Some(Ok(popped)),
        Err(TryPopError::Closed) => Some(Err(Ended::Closed)),
        Err(TryPopError::Empty | TryPopError::Busy) => None,
    }
}

impl<T: Send, D: Design<T>, W> Queue<T, D, W, Counting> {
    /// What the queue has counted: attempts, failures, lost races, items, sleeps. [`stats`](super::stats) has an
    /// example.
    pub fn stats(&self) -> Stats {
        self.stats.stats()
    }
}

debug! { [T: Send, D: Design<T>, W, S: Recorder] Queue<[T, D, W, S]>: self,
    design: core::any::type_name::<D>(), capacity: self.capacity(), closed: self.is_closed()
}
