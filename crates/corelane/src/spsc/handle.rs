//! The contract, written once over every [`Design`]: waiting, time-outs, batches, in-place access, closing.
//!
//! # Closing
//!
//! Either end closes by [`close`](Producer::close) or by being dropped.
//!
//! A producer that closes can push no more, so a consumer that sees the flag, looks again and still finds nothing has
//! drained the queue.
//!
//! A consumer that closes has to agree with a producer in the middle of a push on whether that item was accepted, without
//! a check before each push. So the producer finds out afterwards, in the same word that tells it of a parked consumer:
//! 1. the consumer sets `CLOSED`, passes the heavy barrier, takes note of the last item that is published then, and
//!    decides by a compare-exchange that the seal lies behind that item: it will never look further;
//! 2. a producer that finds `CLOSED` after its publication tries to decide by the same word that the seal lies behind
//!    what it has just published. If it is the first, these items are accepted, and it publishes no more; the consumer,
//!    whose note may be older, takes note once more. If the consumer was the first, the producer takes back what lies
//!    behind the seal. Nobody else will ever touch that.
//!
//! So neither end waits for the other, wherever that is stopped: a push is wait-free in this moment, too. A producer
//! that has decided takes nothing back, because the consumer may still be looking for the last item.
//!
//! The edges, all of `sealed_by`, which is changed once:
//! - the producer decides, release → the consumer's failed compare-exchange or load, acquire: where the seal lies, and
//!   all that was published before, are visible to the second note;
//! - the consumer decides, release → the producer's failed compare-exchange or load, acquire: where the seal lies is
//!   visible, and the consumer's look for the last item comes before the producer takes anything back.
//!
//! By the park protocol's argument (see [`crate::wait`]) a push that did not find the flag has published before the
//! consumer takes note. What that means for an item is said in the [module](crate::spsc#closing).

use super::control::Control;
use super::design::{Design, RawConsumer, RawProducer, Request};
use super::lane::Lane;
use super::stats::{Counting, NoStats, Recorder, Stats};
use crate::error::{ChannelError, Closed, TryPopError, TryPushError};
#[cfg(feature = "std")]
use crate::error::{PopTimeoutError, PushTimeoutError};
#[cfg(feature = "std")]
use crate::sync::Instant;
use crate::wait::{Adaptive, Next, Strategy, WaitState};
#[cfg(feature = "std")]
use crate::wait::{Parker, Waitable};
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::ptr;
#[cfg(feature = "std")]
use std::time::Duration;

/// How a queue is made: the design's own options, the wait strategy, the parkers.
///
/// ```
/// use corelane::spsc::{Options, bqueue, lane};
/// use corelane::wait::Spin;
///
/// // What is not set is as in `channel`, for every design.
/// let (_producer, _consumer) = bqueue::channel_with::<u32, _, _>(64, Options::new().wait(Spin)).unwrap();
/// let options = Options::new().tuning(lane::Tuning::new().compact()).wait(Spin);
/// let (_producer, _consumer) = lane::channel_with::<u32, _, _>(64, options).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options<O = super::lane::Tuning, W = Adaptive, S = NoStats> {
    pub(super) tuning: O,
    pub(super) wait: W,
    pub(super) compact: bool,
    pub(super) start: usize,
    stats: PhantomData<S>,
    #[cfg(feature = "std")]
    pub(super) producer_parker: Option<Parker>,
    #[cfg(feature = "std")]
    pub(super) consumer_parker: Option<Parker>,
}

impl<O: Default> Options<O> {
    /// The defaults, of whichever design the queue will be.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<O, W, S> Options<O, W, S> {
    /// The design's own options, such as batch sizes: the defaults unless they are set.
    pub fn tuning(mut self, tuning: O) -> Self {
        self.tuning = tuning;
        self
    }

    /// How both ends wait.
    pub fn wait<V: Strategy>(self, wait: V) -> Options<O, V, S> {
        Options {
            tuning: self.tuning,
            wait,
            compact: self.compact,
            start: self.start,
            stats: self.stats,
            #[cfg(feature = "std")]
            producer_parker: self.producer_parker,
            #[cfg(feature = "std")]
            consumer_parker: self.consumer_parker,
        }
    }

    /// What both ends count: [`Counting`](super::Counting) makes them offer `stats()`.
    pub fn stats<R: Recorder>(self) -> Options<O, W, R> {
        Options {
            tuning: self.tuning,
            wait: self.wait,
            compact: self.compact,
            start: self.start,
            stats: PhantomData,
            #[cfg(feature = "std")]
            producer_parker: self.producer_parker,
            #[cfg(feature = "std")]
            consumer_parker: self.consumer_parker,
        }
    }

    /// What [`lane::Tuning::compact`](super::lane::Tuning::compact) asks of a lane, where the design may be any.
    #[cfg(feature = "std")]
    pub(crate) fn compact(mut self) -> Self {
        self.compact = true;
        self
    }

    /// The parker of the producer's end, to be shared with other queues of the same thread.
    #[cfg(feature = "std")]
    pub fn producer_parker(mut self, parker: &Parker) -> Self {
        self.producer_parker = Some(parker.clone());
        self
    }

    /// The parker of the consumer's end, to be shared with other queues of the same thread.
    #[cfg(feature = "std")]
    pub fn consumer_parker(mut self, parker: &Parker) -> Self {
        self.consumer_parker = Some(parker.clone());
        self
    }

    /// Lets the indices start here instead of at 0, so that a test reaches their wrap-around.
    #[doc(hidden)]
    pub fn start_at(mut self, index: usize) -> Self {
        self.start = index;
        self
    }
}

/// Makes a handle `Send` and not `Sync`, whatever its half of the algorithm is.
type NotSync = PhantomData<Cell<()>>;

/// Makes a queue of any design, named by the type parameter `D`.
///
/// # Errors
/// A capacity of 0 or beyond what the indices hold, options that contradict it, or no memory.
#[expect(clippy::type_complexity, reason = "a pair of handles is what the reader looks for")]
pub fn channel_with<T: Send, D: Design<T>, W: Strategy, S: Recorder>(
    capacity: usize,
    options: Options<D::Tuning, W, S>,
) -> Result<(Producer<T, D, W, S>, Consumer<T, D, W, S>), ChannelError> {
    if capacity == 0 {
        return Err(ChannelError::ZeroCapacity);
    }
    // Differences of positions are read as signed numbers.
    if capacity > isize::MAX as usize / 2 {
        return Err(ChannelError::TooLarge);
    }
    #[cfg(feature = "std")]
    let control = Control::new(options.producer_parker, options.consumer_parker);
    #[cfg(not(feature = "std"))]
    let control = Control::new();
    let request =
        Request { capacity, compact: options.compact, tuning: &options.tuning, control, start: options.start };
    // Before there is a queue: the clone of a user's strategy may panic.
    let wait = options.wait.clone();
    let (producer, consumer) = D::create(request)?;
    // Only now: `create` has refused what makes no sense.
    let lag = D::release_lag(capacity, &options.tuning);
    Ok((
        Producer { raw: ManuallyDrop::new(producer), wait, lag, stats: S::default(), one_thread: PhantomData },
        Consumer { raw: ManuallyDrop::new(consumer), wait: options.wait, stats: S::default(), one_thread: PhantomData },
    ))
}

/// The sending end of a queue. `Send`, not `Sync`, not `Clone`: one thread at a time pushes.
///
/// Dropping it closes the queue; the consumer can still pop what is inside.
pub struct Producer<T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats> {
    /// Dropped by its `retire`, which gets by without the handle's address.
    pub(super) raw: ManuallyDrop<D::Producer>,
    wait: W,
    lag: usize,
    pub(super) stats: S,
    one_thread: NotSync,
}

impl<T, D: Design<T>, W, S: Recorder> Producer<T, D, W, S> {
    /// Pushes an item if there is a free slot. Never waits.
    ///
    /// # Errors
    /// `Full` if `capacity` items are inside, or down to [`release_lag`](Self::release_lag) fewer: the consumer may not
    /// have told yet of the last slots it freed. If the queue is not full, only this producer can make it so. `Closed` once
    /// the consumer has closed or is gone. The item comes back in both cases.
    #[doc(alias = "try_send")]
    #[doc(alias = "offer")]
    #[doc(alias = "enqueue")]
    #[inline(always)]
    pub fn try_push(&mut self, item: T) -> Result<(), TryPushError<T>> {
        if !self.raw.is_writable() {
            return Err(self.refuse(item));
        }
        // SAFETY: one slot is writable; it is written before it is published.
        unsafe { (*self.raw.slot(0)).with_mut(|slot| (*slot).write(item)) };
        // SAFETY: as above.
        if unsafe { self.hand_over(1) } == 0 {
            return Ok(());
        }
        // SAFETY: refused and taken back: the item is in the first slot and ours.
        Err(TryPushError::Closed(unsafe { (*self.raw.slot(0)).with(|slot| (*slot).assume_init_read()) }))
    }

    #[inline(always)]
    fn refuse<I>(&mut self, item: I) -> TryPushError<I> {
        if self.is_closed() {
            TryPushError::Closed(item)
        } else {
            self.stats.full(|| true);
            TryPushError::Full(item)
        }
    }

    /// Publishes n written slots. Returns how many of them were refused because the queue is closed; they are taken back.
    ///
    /// # Safety
    /// As for [`RawProducer::publish`].
    #[inline(always)]
    pub(super) unsafe fn hand_over(&mut self, n: usize) -> usize {
        // SAFETY: the caller's.
        unsafe {
            self.raw.publish(n);
            self.handed_over(n)
        }
    }

    /// The second half of that, for n items that were just published.
    ///
    /// # Safety
    /// As for [`RawProducer::retract`].
    #[inline(always)]
    unsafe fn handed_over(&mut self, n: usize) -> usize {
        let refused = match self.raw.control().consumer.after_publication() {
            0 => 0,
            state => {
                let behind = self.raw.control().handed_over(state, self.raw.position());
                let refused = behind.unwrap_or(0).min(n);
                if refused != 0 {
                    // SAFETY: these items of the last publication lie behind the consumer's seal: had this end decided,
                    // none would.
                    unsafe { self.raw.retract(refused) };
                } else if behind.is_some() {
                    self.raw.halt();
                }
                refused
            }
        };
        self.stats.pushed(n - refused, || self.raw.len());
        refused
    }

    /// Pushes as many of the items as there is room for, in order, and leaves the rest in the vector. Never waits.
    /// Returns how many were pushed: 0 only if there were none.
    ///
    /// A batch is not atomic: the consumer may see its first items before its last. It publishes at most once per cache
    /// line of items.
    ///
    /// # Errors
    /// `Full` or `Closed` if none could be pushed.
    ///
    /// ```
    /// let (mut producer, mut consumer) = corelane::spsc::channel(2);
    /// let mut items = vec!['a', 'b', 'c'];
    /// assert_eq!(producer.try_push_batch(&mut items), Ok(2));
    /// assert_eq!(items, ['c']);
    /// assert!(producer.try_push_batch(&mut items).unwrap_err().is_full());
    /// assert_eq!(consumer.pop(), Ok('a'));
    /// ```
    pub fn try_push_batch(&mut self, items: &mut Vec<T>) -> Result<usize, TryPushError<()>> {
        let mut moving = Moving::new(items);
        // SAFETY: `moving` counts what is pushed as moved out.
        unsafe { self.push_moved(&mut moving) }?;
        Ok(moving.moved)
    }

    /// Pushes as many of the items as there is room for, in order. Never waits. Returns how many were pushed: 0 only if
    /// there were none. As [`try_push_batch`](Self::try_push_batch) it is not atomic.
    ///
    /// # Errors
    /// `Full` or `Closed` if none could be pushed.
    pub fn try_push_slice(&mut self, items: &[T]) -> Result<usize, TryPushError<()>>
    where
        T: Copy,
    {
        // SAFETY: items that are `Copy` may be used again.
        unsafe { self.push_from(items.as_ptr(), items.len()) }
    }

    /// Pushes the rest of a vector, as far as there is room. An error if there is some and none could be pushed.
    ///
    /// # Safety
    /// Nobody uses what is counted as moved.
    unsafe fn push_moved(&mut self, moving: &mut Moving<'_, T>) -> Result<(), TryPushError<()>> {
        let (from, most) = moving.rest();
        // SAFETY: so many are there, and what is pushed is counted.
        moving.moved += unsafe { self.push_from(from, most) }?;
        Ok(())
    }

    /// Pushes up to `most` of the items at `from`, and says how many; an error if that is none of some.
    ///
    /// # Safety
    /// There are so many, and those that are pushed are the queue's.
    #[inline]
    pub(crate) unsafe fn push_from(&mut self, from: *const T, most: usize) -> Result<usize, TryPushError<()>> {
        let mut pushed = 0;
        while pushed < most {
            // SAFETY: the caller's promise. What is refused is not the queue's: its bytes at `from` are still the item.
            let refused = unsafe {
                let sent = self.raw.publish_moved(from.add(pushed), most - pushed);
                if sent == 0 {
                    let refusal = self.refuse(());
                    return if pushed > 0 { Ok(pushed) } else { Err(refusal) };
                }
                pushed += sent;
                self.handed_over(sent)
            };
            if refused != 0 {
                pushed -= refused;
                return if pushed > 0 { Ok(pushed) } else { Err(TryPushError::Closed(())) };
            }
        }
        Ok(pushed)
    }

    /// Turns a refusal for want of a free slot into the error of a reservation.
    #[cold]
    pub(super) fn refuse_reservation(&mut self) -> TryPushError<()> {
        self.refuse(())
    }

    /// A free slot to be filled in place, if there is one. Never waits. Nothing is pushed if the guard is dropped or
    /// forgotten.
    ///
    /// # Errors
    /// As for [`try_push`](Self::try_push).
    pub fn try_reserve(&mut self) -> Result<Reserved<'_, T, D, W, S>, TryPushError<()>> {
        if !self.raw.is_writable() || self.is_closed() {
            return Err(self.refuse_reservation());
        }
        Ok(Reserved { producer: self })
    }

    /// Number of items inside: an upper bound, and at most [`capacity`](Self::capacity). The consumer can only lower it.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// True if the consumer has popped everything. Stays true until this producer pushes.
    pub fn is_empty(&self) -> bool {
        self.raw.len() == 0
    }

    /// The largest number of items the queue can hold.
    pub fn capacity(&self) -> usize {
        self.raw.capacity()
    }

    /// `try_push` may say Full when only `capacity() - release_lag()` items are inside. 0 below capacity 64, at most
    /// `capacity() / 8` above.
    pub fn release_lag(&self) -> usize {
        self.lag
    }

    /// Closes the queue: no later push succeeds, and a consumer that waits is woken.
    pub fn close(&mut self) {
        self.raw.halt();
        self.raw.control().close_by_producer();
    }

    /// True once either end has closed or the consumer is gone. Then it stays so, and no push succeeds.
    pub fn is_closed(&self) -> bool {
        self.raw.control().refuses_pushes()
    }

    /// Whether the consumer sleeps, or is about to. A hint: it may be over by now.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn consumer_sleeps(&self) -> bool {
        self.raw.control().consumer.sleeps()
    }
}

impl<T, D: Design<T>, W: Strategy, S: Recorder> Producer<T, D, W, S> {
    /// Pushes an item, waiting for a free slot by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` with the item, once the consumer has closed or is gone.
    #[doc(alias = "send")]
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), Closed<T>> {
        let mut item = item;
        loop {
            match self.try_push(item) {
                Ok(()) => return Ok(()),
                Err(TryPushError::Closed(item)) => return Err(Closed(item)),
                Err(TryPushError::Full(refused) | TryPushError::Busy(refused)) => item = refused,
            }
            if self.wait_for_room(1).is_err() {
                return Err(Closed(item));
            }
        }
    }

    /// Pushes an item, waiting at most this long for a free slot. Never gives up early; how late depends on the strategy
    /// and the scheduler.
    ///
    /// # Errors
    /// `Timeout` or `Closed`, with the item.
    #[doc(alias = "send_timeout")]
    #[cfg(feature = "std")]
    pub fn push_timeout(&mut self, item: T, timeout: Duration) -> Result<(), PushTimeoutError<T>> {
        let deadline = Instant::now().checked_add(timeout);
        let mut item = item;
        loop {
            match self.try_push(item) {
                Ok(()) => return Ok(()),
                Err(TryPushError::Closed(item)) => return Err(PushTimeoutError::Closed(item)),
                Err(TryPushError::Full(refused) | TryPushError::Busy(refused)) => item = refused,
            }
            match self.wait(1, deadline) {
                Waited::Ready => {}
                Waited::Closed => return Err(PushTimeoutError::Closed(item)),
                Waited::Timeout => return Err(PushTimeoutError::Timeout(item)),
            }
        }
    }

    /// Pushes all of the items, in order, waiting for free slots by the queue's strategy.
    ///
    /// As [`try_push_batch`](Self::try_push_batch) it is not atomic.
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone. What was not pushed is left in the vector.
    ///
    /// ```
    /// let (mut producer, mut consumer) = corelane::spsc::channel(2);
    /// let pushes = std::thread::spawn(move || producer.push_batch(&mut vec![1, 2, 3]));
    /// let mut items = Vec::new();
    /// while consumer.pop_batch(&mut items, 10).is_ok() {}
    /// assert_eq!(items, [1, 2, 3]);
    /// assert!(pushes.join().unwrap().is_ok());
    /// ```
    pub fn push_batch(&mut self, items: &mut Vec<T>) -> Result<(), Closed> {
        let mut moving = Moving::new(items);
        loop {
            // SAFETY: `moving` counts what is pushed as moved out.
            match unsafe { self.push_moved(&mut moving) } {
                Ok(()) if moving.is_over() => return Ok(()),
                Err(TryPushError::Closed(())) => return Err(Closed(())),
                _ => self.wait_for_room(1)?,
            }
        }
    }

    /// Pushes all of the items, in order, waiting at most this long for free slots. Never gives up early; how late
    /// depends on the strategy and the scheduler.
    ///
    /// # Errors
    /// `Timeout` or `Closed`. What was not pushed is left in the vector.
    #[cfg(feature = "std")]
    pub fn push_batch_timeout(&mut self, items: &mut Vec<T>, timeout: Duration) -> Result<(), PushTimeoutError<()>> {
        let deadline = Instant::now().checked_add(timeout);
        let mut moving = Moving::new(items);
        loop {
            // SAFETY: `moving` counts what is pushed as moved out.
            match unsafe { self.push_moved(&mut moving) } {
                Ok(()) if moving.is_over() => return Ok(()),
                Err(TryPushError::Closed(())) => return Err(PushTimeoutError::Closed(())),
                _ => {}
            }
            match self.wait(1, deadline) {
                Waited::Ready => {}
                Waited::Closed => return Err(PushTimeoutError::Closed(())),
                Waited::Timeout => return Err(PushTimeoutError::Timeout(())),
            }
        }
    }

    /// Pushes all of the items, in order, waiting for free slots by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone, with the number of items that were pushed.
    pub fn push_slice(&mut self, items: &[T]) -> Result<(), Closed<usize>>
    where
        T: Copy,
    {
        let mut pushed = 0;
        loop {
            match self.try_push_slice(&items[pushed..]) {
                Ok(more) => pushed += more,
                Err(TryPushError::Closed(())) => return Err(Closed(pushed)),
                Err(_) => {}
            }
            if pushed == items.len() {
                return Ok(());
            }
            self.wait_for_room(1).map_err(|_| Closed(pushed))?;
        }
    }

    /// A free slot to be filled in place; waits for one by the queue's strategy. Nothing is pushed if the guard is
    /// dropped or forgotten.
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone.
    ///
    /// ```
    /// let (mut producer, mut consumer) = corelane::spsc::channel(2);
    /// let mut place = producer.reserve().unwrap();
    /// place.as_uninit_mut().write([7; 64]);
    /// // SAFETY: just written.
    /// unsafe { place.commit() }.unwrap();
    /// assert_eq!(consumer.peek().unwrap()[63], 7);
    /// ```
    pub fn reserve(&mut self) -> Result<Reserved<'_, T, D, W, S>, Closed> {
        self.wait_for_room(1)?;
        Ok(Reserved { producer: self })
    }

    /// Waits until at least `slots` slots are free, as far as [`release_lag`](Self::release_lag) lets the producer know.
    ///
    /// A producer that is ahead of its consumer sleeps less often, and costs the consumer fewer wake-ups, when it waits for
    /// half the queue instead of one slot. The consumer has to go on popping for that: it is not for queues in a ring.
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone.
    ///
    /// # Panics
    /// If `slots` is more than the capacity.
    pub fn wait_for_room(&mut self, slots: usize) -> Result<(), Closed<()>> {
        assert!(slots <= self.capacity(), "a queue never has more free slots than its capacity");
        #[cfg(feature = "std")]
        let waited = self.wait(slots, None);
        #[cfg(not(feature = "std"))]
        let waited = self.wait(slots);
        match waited {
            Waited::Closed => Err(Closed(())),
            // There is room for what will be refused.
            _ if self.is_closed() => Err(Closed(())),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn wait(&mut self, room: usize, #[cfg(feature = "std")] deadline: Option<Instant>) -> Waited {
        aside(self, |end| {
            let wait = end.wait.clone();
            wait_until(
                end,
                room,
                &wait,
                #[cfg(feature = "std")]
                deadline,
            )
        })
    }
}

impl<T, D: Design<T>, W> Producer<T, D, W, Counting> {
    /// What this end has counted: pushes, full, waits, the high-water mark, batches.
    pub fn stats(&self) -> Stats {
        self.stats.stats()
    }
}

impl<T, D: Design<T>, W, S: Recorder> Drop for Producer<T, D, W, S> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this is the last use.
        unsafe { self.raw.retire() };
    }
}

impl<T, D: Design<T>, W, S: Recorder> fmt::Debug for Producer<T, D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("design", &core::any::type_name::<D>())
            .field("capacity", &self.capacity())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// A vector whose first items are being moved into a queue. When it is dropped the rest moves up: what was not pushed
/// is left in the vector, also where a user's wait strategy panics in between.
pub(crate) struct Moving<'a, T> {
    items: &'a mut Vec<T>,
    len: usize,
    pub(crate) moved: usize,
}

impl<'a, T> Moving<'a, T> {
    pub(crate) fn new(items: &'a mut Vec<T>) -> Self {
        let len = items.len();
        // SAFETY: fewer than there are. The items are this one's until it gives them back.
        unsafe { items.set_len(0) };
        Self { items, len, moved: 0 }
    }

    /// Where the items lie that were not moved, and how many.
    pub(crate) fn rest(&self) -> (*const T, usize) {
        // SAFETY: `moved` is at most `len`.
        (unsafe { self.items.as_ptr().add(self.moved) }, self.len - self.moved)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.moved == self.len
    }
}

impl<T> Drop for Moving<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let (from, count) = self.rest();
        if count > 0 {
            // SAFETY: so many items lie there, inside the vector's memory, and nobody has taken them.
            unsafe {
                self.items.as_mut_ptr().copy_from(from, count);
                self.items.set_len(count);
            }
        }
    }
}

/// A free slot of the queue, see [`Producer::reserve`].
pub struct Reserved<'a, T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats> {
    producer: &'a mut Producer<T, D, W, S>,
}

impl<T, D: Design<T>, W, S: Recorder> Reserved<'_, T, D, W, S> {
    /// The memory of the slot.
    pub fn as_uninit_mut(&mut self) -> &mut MaybeUninit<T> {
        // SAFETY: the slot is writable and only this guard reaches it; it lives as long as the producer.
        unsafe { (*self.producer.raw.slot(0)).with_mut(|slot| &mut *slot) }
    }

    /// Writes the item and pushes it.
    ///
    /// # Errors
    /// `Closed` with the item, if the consumer has closed meanwhile.
    pub fn write(mut self, item: T) -> Result<(), Closed<T>> {
        self.as_uninit_mut().write(item);
        // SAFETY: just written.
        unsafe { self.commit() }
    }

    /// Pushes what is in the slot.
    ///
    /// # Errors
    /// `Closed` with the item, if the consumer has closed meanwhile.
    ///
    /// # Safety
    /// The slot has been initialised through [`as_uninit_mut`](Self::as_uninit_mut).
    pub unsafe fn commit(self) -> Result<(), Closed<T>> {
        // SAFETY: the slot holds an item by the caller's promise.
        if unsafe { self.producer.hand_over(1) } == 0 {
            return Ok(());
        }
        // SAFETY: refused and taken back: the item is in the first slot and ours.
        Err(Closed(unsafe { (*self.producer.raw.slot(0)).with(|slot| (*slot).assume_init_read()) }))
    }
}

impl<T, D: Design<T>, W, S: Recorder> fmt::Debug for Reserved<'_, T, D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved").finish_non_exhaustive()
    }
}

/// The receiving end of a queue. `Send`, not `Sync`, not `Clone`: one thread at a time pops.
///
/// Dropping it closes the queue; what is inside is dropped with the last handle.
pub struct Consumer<T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats> {
    /// As the producer's.
    pub(super) raw: ManuallyDrop<D::Consumer>,
    wait: W,
    pub(super) stats: S,
    one_thread: NotSync,
}

impl<T, D: Design<T>, W, S: Recorder> Consumer<T, D, W, S> {
    /// Pops the oldest item. Never waits.
    ///
    /// # Errors
    /// `Empty` only if every item whose push returned before this call has been popped. `Closed` only once the queue is closed
    /// and everything it had accepted has been popped.
    #[doc(alias = "try_recv")]
    #[doc(alias = "poll")]
    #[doc(alias = "dequeue")]
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<T, TryPopError> {
        if !self.raw.is_readable() {
            self.look_again()?;
        }
        self.take_as(Ok)
    }

    /// Takes the first item; there is one.
    #[inline(always)]
    pub(super) fn take(&mut self) -> T {
        self.take_as(|item| item)
    }

    /// Takes the first item right into what the caller returns: a large one is copied once.
    #[inline(always)]
    fn take_as<R>(&mut self, wrap: impl FnOnce(T) -> R) -> R {
        // SAFETY: one item is readable; it is read before its slot is released.
        unsafe {
            let wrapped = (*self.raw.slot(0)).with(|slot| wrap((*slot).assume_init_read()));
            self.raw.release(1);
            self.stats.popped(1);
            wrapped
        }
    }

    /// Tells Empty from Closed. A producer that closed may have pushed between our look and its flag: so another look.
    #[inline(always)]
    fn look_again(&mut self) -> Result<(), TryPopError> {
        let closed = self.is_closed();
        if closed && aside(self, |end| end.raw.is_readable()) {
            return Ok(());
        }
        self.stats.empty();
        Err(if closed { TryPopError::Closed } else { TryPopError::Empty })
    }

    /// The oldest item, in place, if there is one. Never waits. It stays in the queue unless it is
    /// [popped](Peeked::pop).
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop).
    pub fn try_peek(&mut self) -> Result<Peeked<'_, T, D, W, S>, TryPopError> {
        if !self.raw.is_readable() {
            self.look_again()?;
        }
        Ok(Peeked { consumer: self })
    }

    /// Pops up to `max` items and appends them to `items`. Never waits. Returns how many: 0 only if `max` is 0.
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop), if there is none.
    ///
    /// ```
    /// let (mut producer, mut consumer) = corelane::spsc::channel(8);
    /// producer.push_slice(&[1, 2, 3]).unwrap();
    /// let mut items = vec![0];
    /// assert_eq!(consumer.try_pop_batch(&mut items, 2), Ok(2));
    /// assert_eq!(items, [0, 1, 2]);
    /// ```
    pub fn try_pop_batch(&mut self, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError> {
        self.at_least_one(max, |end| end.pop_some(items, max))
    }

    /// Pops up to `max` items and gives them to `each`, one by one. Never waits. Returns how many: 0 only if `max` is
    /// 0.
    ///
    /// A batch without a copy in between: an item goes from its slot to the call. The producer gets slots back in runs,
    /// of up to 32 items or as from single pops, and when this returns. If `each` panics, the item that it was given is
    /// popped, and those that it was not given are still inside.
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop), if there is none.
    ///
    /// ```
    /// let (mut tx, mut rx) = corelane::spsc::channel(8);
    /// tx.push_slice(&[1, 2, 3]).unwrap();
    /// let mut sum = 0;
    /// assert_eq!(rx.try_pop_each(usize::MAX, |item| sum += item), Ok(3));
    /// assert_eq!(sum, 6);
    /// ```
    pub fn try_pop_each(&mut self, max: usize, mut each: impl FnMut(T)) -> Result<usize, TryPopError> {
        self.at_least_one(max, |end| end.give_some(max, &mut each))
    }

    /// Pops items into the slice until it is full or the queue empty; the rest of the slice is unchanged. Never waits.
    /// Returns how many: 0 only if the slice is empty.
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop), if there is none.
    pub fn try_pop_slice(&mut self, items: &mut [T]) -> Result<usize, TryPopError>
    where
        T: Copy,
    {
        self.at_least_one(items.len(), |end| end.fill_some(items))
    }

    /// Pops by `some`, which is 0 if there is nothing.
    #[inline(always)]
    fn at_least_one(&mut self, max: usize, mut some: impl FnMut(&mut Self) -> usize) -> Result<usize, TryPopError> {
        loop {
            let popped = some(self);
            if popped > 0 || max == 0 {
                return Ok(popped);
            }
            self.look_again()?;
        }
    }

    /// As many as there are, up to `max`.
    #[inline(always)]
    pub(crate) fn pop_some(&mut self, items: &mut Vec<T>, max: usize) -> usize {
        let mut popped = 0;
        while popped < max {
            let run = self.raw.readable().min(max - popped);
            if run == 0 {
                break;
            }
            items.reserve(run);
            let room = items.spare_capacity_mut();
            let most = room.len().min(max - popped);
            // SAFETY: there is room for so many behind the vector's own items, and the vector owns what comes there.
            let run = unsafe {
                let run = self.raw.release_moved(room.as_mut_ptr(), most);
                items.set_len(items.len() + run);
                run
            };
            self.stats.popped(run);
            popped += run;
        }
        popped
    }

    /// As many as there are, up to `max`.
    #[inline(always)]
    pub(crate) fn give_some(&mut self, max: usize, each: &mut impl FnMut(T)) -> usize {
        let mut popped = 0;
        while popped < max {
            let run = self.raw.release_each(max - popped, each);
            if run == 0 {
                break;
            }
            self.stats.popped(run);
            popped += run;
        }
        popped
    }

    #[inline(always)]
    fn fill_some(&mut self, items: &mut [T]) -> usize
    where
        T: Copy,
    {
        let mut popped = 0;
        while popped < items.len() {
            let room = &mut items[popped..];
            // SAFETY: the slice has room for so many.
            let run = unsafe { self.raw.release_moved(room.as_mut_ptr().cast(), room.len()) };
            if run == 0 {
                break;
            }
            self.stats.popped(run);
            popped += run;
        }
        popped
    }

    /// Number of items inside: a lower bound, and at most [`capacity`](Self::capacity). The producer can only raise it. May
    /// take a logarithmic number of looks at the ring.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// True if there is nothing to pop. If it is false it stays so until this consumer pops. Unlike a pop that finds
    /// nothing, it does not tell the producer of slots that were freed.
    pub fn is_empty(&self) -> bool {
        self.raw.len() == 0
    }

    /// The largest number of items the queue can hold.
    pub fn capacity(&self) -> usize {
        self.raw.capacity()
    }

    /// Closes the queue: every item accepted before can still be popped, none is accepted after. A producer that waits is woken.
    ///
    /// What becomes of an item that is pushed beside it: see [closing](crate::spsc#closing).
    pub fn close(&mut self) {
        if self.raw.control().begin_close() {
            let end = self.raw.seal();
            if !self.raw.control().seal(end) {
                let end = self.raw.seal();
                debug_assert!(
                    self.raw.control().producer_sealed_at(end),
                    "nothing is published behind the producer's seal"
                );
            }
        }
    }

    /// True once either end has closed or the producer is gone. Then it stays so. There may still be items to pop.
    pub fn is_closed(&self) -> bool {
        self.raw.control().is_closed()
    }
}

impl<T, D: Design<T>, W: Strategy, S: Recorder> Consumer<T, D, W, S> {
    /// Pops the oldest item, waiting for one by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    #[doc(alias = "recv")]
    #[inline]
    pub fn pop(&mut self) -> Result<T, Closed> {
        loop {
            if self.raw.is_readable() {
                return self.take_as(Ok);
            }
            self.wait_for_item()?;
        }
    }

    /// Pops the oldest item, waiting at most this long for one. Never gives up early; how late depends on the strategy
    /// and the scheduler.
    ///
    /// # Errors
    /// `Timeout`, or `Closed` once the queue is closed and drained.
    #[doc(alias = "recv_timeout")]
    #[cfg(feature = "std")]
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopTimeoutError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            match self.try_pop() {
                Ok(item) => return Ok(item),
                Err(TryPopError::Closed) => return Err(PopTimeoutError::Closed),
                Err(TryPopError::Empty | TryPopError::Busy) => {}
            }
            match self.wait(deadline) {
                Waited::Ready => {}
                Waited::Closed => return Err(PopTimeoutError::Closed),
                Waited::Timeout => return Err(PopTimeoutError::Timeout),
            }
        }
    }

    /// Waits for at least one item by the queue's strategy, then pops up to `max` and appends them to `items`. Returns
    /// how many: 0 only if `max` is 0.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_batch(&mut self, items: &mut Vec<T>, max: usize) -> Result<usize, Closed> {
        self.wait_for_one(max, |end| end.pop_some(items, max))
    }

    /// As [`pop_batch`](Self::pop_batch), but waits at most this long for the first item. Never gives up early.
    ///
    /// # Errors
    /// `Timeout`, or `Closed` once the queue is closed and drained.
    #[cfg(feature = "std")]
    pub fn pop_batch_timeout(
        &mut self,
        items: &mut Vec<T>,
        max: usize,
        timeout: Duration,
    ) -> Result<usize, PopTimeoutError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let popped = self.pop_some(items, max);
            if popped > 0 || max == 0 {
                return Ok(popped);
            }
            match self.wait(deadline) {
                Waited::Ready => {}
                Waited::Closed => return Err(PopTimeoutError::Closed),
                Waited::Timeout => return Err(PopTimeoutError::Timeout),
            }
        }
    }

    /// As [`try_pop_each`](Self::try_pop_each), but waits for the first item by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_each(&mut self, max: usize, mut each: impl FnMut(T)) -> Result<usize, Closed> {
        self.wait_for_one(max, |end| end.give_some(max, &mut each))
    }

    /// As [`try_pop_slice`](Self::try_pop_slice), but waits for the first item by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_slice(&mut self, items: &mut [T]) -> Result<usize, Closed>
    where
        T: Copy,
    {
        self.wait_for_one(items.len(), |end| end.fill_some(items))
    }

    /// The oldest item, in place; waits for one by the queue's strategy. It stays in the queue unless it is
    /// [popped](Peeked::pop).
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn peek(&mut self) -> Result<Peeked<'_, T, D, W, S>, Closed> {
        self.wait_for_item()?;
        Ok(Peeked { consumer: self })
    }

    /// The items in order, as [`pop`](Self::pop) returns them: it waits for each, and ends once the queue is closed and
    /// drained.
    ///
    /// ```
    /// let (mut producer, mut consumer) = corelane::spsc::channel(8);
    /// producer.push_slice(&[1, 2, 3]).unwrap();
    /// assert_eq!(consumer.iter().next(), Some(1));
    /// drop(producer);
    /// assert_eq!(consumer.into_iter().sum::<i32>(), 5);
    /// ```
    pub fn iter(&mut self) -> Iter<'_, T, D, W, S> {
        Iter(self)
    }

    /// Pops by `some`, which is 0 if there is nothing.
    #[inline(always)]
    fn wait_for_one(&mut self, max: usize, mut some: impl FnMut(&mut Self) -> usize) -> Result<usize, Closed> {
        loop {
            let popped = some(self);
            if popped > 0 || max == 0 {
                return Ok(popped);
            }
            self.wait_for_item()?;
        }
    }

    /// Waits until there is an item to pop.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn wait_for_item(&mut self) -> Result<(), Closed> {
        #[cfg(feature = "std")]
        let waited = self.wait(None);
        #[cfg(not(feature = "std"))]
        let waited = self.wait();
        match waited {
            Waited::Closed => Err(Closed(())),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn wait(&mut self, #[cfg(feature = "std")] deadline: Option<Instant>) -> Waited {
        aside(self, |end| {
            let wait = end.wait.clone();
            wait_until(
                end,
                1,
                &wait,
                #[cfg(feature = "std")]
                deadline,
            )
        })
    }
}

impl<T, D: Design<T>, W> Consumer<T, D, W, Counting> {
    /// What this end has counted: pops, empty, waits, batches.
    pub fn stats(&self) -> Stats {
        self.stats.stats()
    }
}

impl<T, D: Design<T>, W, S: Recorder> Drop for Consumer<T, D, W, S> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this is the last use.
        unsafe { self.raw.retire() };
    }
}

impl<T, D: Design<T>, W, S: Recorder> fmt::Debug for Consumer<T, D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("design", &core::any::type_name::<D>())
            .field("capacity", &self.capacity())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// The items of a queue in order, see [`Consumer::iter`].
pub struct Iter<'a, T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats>(&'a mut Consumer<T, D, W, S>);

impl<T, D: Design<T>, W: Strategy, S: Recorder> Iterator for Iter<'_, T, D, W, S> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.pop().ok()
    }
}

impl<T, D: Design<T>, W: Strategy, S: Recorder> core::iter::FusedIterator for Iter<'_, T, D, W, S> {}

impl<T, D: Design<T>, W, S: Recorder> fmt::Debug for Iter<'_, T, D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Iter").field(self.0).finish()
    }
}

/// The items of a queue in order, with its receiving end: see [`Consumer::iter`].
pub struct IntoIter<T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats>(Consumer<T, D, W, S>);

impl<T, D: Design<T>, W: Strategy, S: Recorder> Iterator for IntoIter<T, D, W, S> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.pop().ok()
    }
}

impl<T, D: Design<T>, W: Strategy, S: Recorder> core::iter::FusedIterator for IntoIter<T, D, W, S> {}

impl<T, D: Design<T>, W, S: Recorder> fmt::Debug for IntoIter<T, D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IntoIter").field(&self.0).finish()
    }
}

impl<T, D: Design<T>, W: Strategy, S: Recorder> IntoIterator for Consumer<T, D, W, S> {
    type Item = T;
    type IntoIter = IntoIter<T, D, W, S>;

    fn into_iter(self) -> Self::IntoIter {
        IntoIter(self)
    }
}

impl<'a, T, D: Design<T>, W: Strategy, S: Recorder> IntoIterator for &'a mut Consumer<T, D, W, S> {
    type Item = T;
    type IntoIter = Iter<'a, T, D, W, S>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The oldest item of the queue, in place; see [`Consumer::peek`].
pub struct Peeked<'a, T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats> {
    consumer: &'a mut Consumer<T, D, W, S>,
}

impl<T, D: Design<T>, W, S: Recorder> Peeked<'_, T, D, W, S> {
    /// Pops the item.
    pub fn pop(self) -> T {
        self.consumer.take()
    }

    /// Pops the item and drops it where it is.
    pub fn release(self) {
        /// Frees the slot, also when the item's drop panics.
        struct Release<'a, T, D: Design<T>, W, S: Recorder>(&'a mut Consumer<T, D, W, S>);
        impl<T, D: Design<T>, W, S: Recorder> Drop for Release<'_, T, D, W, S> {
            fn drop(&mut self) {
                // SAFETY: an item was readable, and it has been dropped.
                unsafe { self.0.raw.release(1) };
                self.0.stats.popped(1);
            }
        }
        let release = Release(self.consumer);
        // SAFETY: the item is readable, and its slot is released after this drops it once.
        unsafe { (*release.0.raw.slot(0)).with_mut(|slot| (*slot).assume_init_drop()) };
    }
}

impl<T, D: Design<T>, W, S: Recorder> Deref for Peeked<'_, T, D, W, S> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: one item is readable, and it stays where it is until this guard is used up.
        unsafe { (*self.consumer.raw.slot(0)).with(|slot| (*slot).assume_init_ref()) }
    }
}

/// The item can be changed in place before it is taken.
impl<T, D: Design<T>, W, S: Recorder> DerefMut for Peeked<'_, T, D, W, S> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: one item is readable, and only the consumer's thread reaches it until it is released.
        unsafe { (*self.consumer.raw.slot(0)).with_mut(|slot| (*slot).assume_init_mut()) }
    }
}

impl<T, D: Design<T>, W, S: Recorder> fmt::Debug for Peeked<'_, T, D, W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peeked").finish_non_exhaustive()
    }
}

/// Calls a cold function with the handle in another place, and puts it back.
///
/// A loop keeps a handle's state in registers as long as no call in it gets the handle's address; a store to memory for
/// every item would keep the processor from joining the two that the item itself takes.
#[inline(always)]
fn aside<H, R>(handle: &mut H, cold: impl FnOnce(&mut H) -> R) -> R {
    /// Puts it back when `cold` panics, too.
    struct Back<H> {
        home: *mut H,
        away: *const H,
    }
    impl<H> Drop for Back<H> {
        #[inline(always)]
        fn drop(&mut self) {
            // SAFETY: both are a whole handle's memory; the one that is overwritten is a stale copy nobody uses any more.
            unsafe { self.home.copy_from_nonoverlapping(self.away, 1) };
        }
    }
    #[cold]
    #[inline(never)]
    fn call<H, R>(handle: &mut H, cold: impl FnOnce(&mut H) -> R) -> R {
        cold(handle)
    }
    // SAFETY: the handle is borrowed for as long as there are two copies; only the one away is used, and none is dropped.
    let mut away = ManuallyDrop::new(unsafe { ptr::read(handle) });
    let away: *mut H = &mut *away;
    let _back = Back { home: handle, away };
    // SAFETY: a valid handle, reached by nothing else until `_back` is dropped.
    call(unsafe { &mut *away }, cold)
}

/// How a wait ended.
pub(crate) enum Waited {
    Ready,
    Closed,
    #[cfg(feature = "std")]
    Timeout,
}

/// What a wait looks at.
pub(crate) trait Look {
    /// Whether there is what is waited for. `room` is for how much of it: for an end that pushes, so many free slots.
    fn is_ready(&mut self, room: usize) -> bool;
    fn is_over(&self) -> bool;
    /// Called once a wait, when the first look found neither.
    fn waits(&mut self);
}

impl<T, D: Design<T>, W, S: Recorder> Look for Producer<T, D, W, S> {
    fn is_ready(&mut self, room: usize) -> bool {
        match room {
            0 => true,
            1 => self.raw.is_writable(),
            room => self.raw.is_writable() && self.raw.capacity() - self.raw.len() >= room,
        }
    }

    fn is_over(&self) -> bool {
        self.is_closed()
    }

    fn waits(&mut self) {
        self.stats.waited();
    }
}

impl<T, D: Design<T>, W, S: Recorder> Look for Consumer<T, D, W, S> {
    fn is_ready(&mut self, _: usize) -> bool {
        self.raw.is_readable()
    }

    fn is_over(&self) -> bool {
        self.is_closed()
    }

    fn waits(&mut self) {
        self.stats.waited();
    }
}

/// Ready, closed, or neither. A closed queue is looked at once more: the last items may have come just before.
pub(crate) fn look<E: Look>(end: &mut E, room: usize) -> Option<Waited> {
    if end.is_ready(room) {
        Some(Waited::Ready)
    } else if end.is_over() {
        Some(if end.is_ready(room) { Waited::Ready } else { Waited::Closed })
    } else {
        None
    }
}

#[cfg(feature = "std")]
pub(super) fn wait_until<E: Look + Waitable, W: Strategy>(
    end: &mut E,
    room: usize,
    wait: &W,
    deadline: Option<Instant>,
) -> Waited {
    if let Some(waited) = look(end, room) {
        return waited;
    }
    end.waits();
    let mut state = WaitState::new();
    loop {
        if let Some(waited) = look(end, room) {
            return waited;
        }
        if deadline.is_some_and(|at| Instant::now() >= at) {
            return Waited::Timeout;
        }
        if wait.next(&mut state) == Next::Park {
            end.arm(room);
            crate::sync::heavy_barrier();
            let seen = look(end, room);
            if seen.is_none() {
                end.parker().park(deadline);
            }
            end.disarm();
            if let Some(waited) = seen {
                return waited;
            }
            state = WaitState::new();
        }
    }
}

#[cfg(not(feature = "std"))]
pub(super) fn wait_until<E: Look, W: Strategy>(end: &mut E, room: usize, wait: &W) -> Waited {
    if let Some(waited) = look(end, room) {
        return waited;
    }
    end.waits();
    let mut state = WaitState::new();
    loop {
        if let Some(waited) = look(end, room) {
            return waited;
        }
        if wait.next(&mut state) == Next::Park {
            crate::sync::spin_loop();
        }
    }
}

#[cfg(feature = "std")]
impl<T, D: Design<T>, W, S: Recorder> crate::wait::sealed::Sealed for Producer<T, D, W, S> {}

#[cfg(feature = "std")]
impl<T, D: Design<T>, W, S: Recorder> Waitable for Producer<T, D, W, S> {
    fn ready(&mut self, room: usize) -> bool {
        look(self, room).is_some()
    }

    fn arm(&self, room: usize) {
        let end = &self.raw.control().producer;
        end.wake_at(self.raw.position().wrapping_add(room).wrapping_sub(self.raw.capacity()));
        end.arm();
    }

    fn disarm(&self) {
        self.raw.control().producer.disarm();
    }

    fn parker(&self) -> &Parker {
        self.raw.control().producer.parker()
    }
}

#[cfg(feature = "std")]
impl<T, D: Design<T>, W, S: Recorder> crate::wait::sealed::Sealed for Consumer<T, D, W, S> {}

#[cfg(feature = "std")]
impl<T, D: Design<T>, W, S: Recorder> Waitable for Consumer<T, D, W, S> {
    fn ready(&mut self, room: usize) -> bool {
        look(self, room).is_some()
    }

    fn arm(&self, _: usize) {
        self.raw.control().consumer.arm();
    }

    fn disarm(&self) {
        self.raw.control().consumer.disarm();
    }

    fn parker(&self) -> &Parker {
        self.raw.control().consumer.parker()
    }
}
