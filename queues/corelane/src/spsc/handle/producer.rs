//! The sending end.

use super::{NotSync, aside};
use crate::end::End;
use crate::end::wait::{Ended, Look, wait_until};
use crate::error::{Closed, PushTimeoutError, TryPushError};
use crate::macros::debug;
use crate::mem::moving::Moving;
use crate::spsc::design::{Design, RawProducer};
use crate::spsc::lane::Lane;
use crate::spsc::stats::{Counting, NoStats, Recorder, Stats};
use crate::sync::Instant;
use crate::wait::{Adaptive, Strategy};
use alloc::vec::Vec;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::time::Duration;

/// The sending end of a queue. `Send`, not `Sync`, not `Clone`: one thread at a time pushes.
///
/// Dropping it closes the queue; the consumer can still pop what is inside.
///
/// ```
/// use corelane::error::{Closed, TryPushError};
/// use corelane::spsc::Producer;
///
/// let (mut producer, mut consumer): (Producer<u32>, _) = corelane::spsc::channel(4);
/// // One item: a call that waits for room, and one that never does.
/// assert_eq!(producer.push(1), Ok(()));
/// assert_eq!(producer.try_push(2), Ok(()));
/// // Many: what was pushed leaves the vector, a slice stays as it is.
/// assert_eq!(producer.push_batch(&mut vec![3]), Ok(()));
/// assert_eq!(producer.try_push_slice(&[4, 5]), Ok(1));
/// assert_eq!(producer.try_push(5), Err(TryPushError::Full(5)));
/// assert_eq!((producer.len(), producer.capacity(), producer.release_lag()), (4, 4, 0));
/// assert!(!producer.is_empty());
///
/// assert_eq!(consumer.pop(), Ok(1));
/// // A slot first, then the item.
/// assert_eq!(producer.wait_for_room(1), Ok(()));
/// assert_eq!(producer.try_reserve().unwrap().write(5), Ok(()));
///
/// producer.close();
/// assert!(producer.is_closed());
/// assert_eq!(producer.push_slice(&[6, 7]), Err(Closed(0)));
/// assert!(consumer.into_iter().eq(2..=5));
/// ```
pub struct Producer<T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats> {
    /// Dropped by its `retire`, which gets by without the handle's address.
    pub(in crate::spsc) raw: ManuallyDrop<D::Producer>,
    pub(crate) wait: W,
    pub(super) lag: usize,
    pub(in crate::spsc) stats: S,
    pub(super) one_thread: NotSync,
}

impl<T, D: Design<T>, W, S: Recorder> Producer<T, D, W, S> {
    /// Pushes an item if there is a free slot. Never waits. A consumer that sleeps is woken, by a system call.
    ///
    /// # Errors
    /// `Full` if `capacity` items are inside, or down to [`release_lag`](Self::release_lag) fewer: the consumer may not
    /// have told yet of the last slots it freed. If the queue is not full, only this producer can make it so. `Closed`
    /// once the consumer has closed or is gone. The item comes back in both cases.
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

    /// Publishes n written slots. Returns how many of them were refused because the queue is closed; they are taken
    /// back.
    ///
    /// # Safety
    /// As for [`RawProducer::publish`].
    #[inline(always)]
    pub(in crate::spsc) unsafe fn hand_over(&mut self, n: usize) -> usize {
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
    /// there were none. As [`try_push_batch`](Self::try_push_batch) it is not atomic. There is room for
    /// `capacity() - release_lag() - len()` items at least.
    ///
    /// # Errors
    /// `Full` or `Closed` if none could be pushed.
    // Inlined it takes registers from the caller's loop that fills the slice.
    #[inline(never)]
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
    /// What is counted as moved is not used again.
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
    pub(in crate::spsc) fn refuse_reservation(&mut self) -> TryPushError<()> {
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

    /// Number of items inside: an upper bound, and at most [`capacity`](Self::capacity). The consumer can only lower
    /// it.
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

    /// Pushes an item, waiting at most this long for a free slot. Never gives up early; how late depends on the
    /// strategy and the scheduler.
    ///
    /// # Errors
    /// `Timeout` or `Closed`, with the item.
    ///
    /// ```
    /// use corelane::error::PushTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (mut producer, _consumer) = corelane::spsc::channel(1);
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(producer.push_timeout('a', soon), Ok(()));
    /// assert_eq!(producer.push_timeout('b', soon), Err(PushTimeoutError::Timeout('b')));
    /// ```
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
            if let Err(ended) = self.wait(1, deadline) {
                return Err(ended.with(item));
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
        Ok(self.push_all(items, None)?)
    }

    /// Pushes all of the items, in order, waiting at most this long for free slots. Never gives up early; how late
    /// depends on the strategy and the scheduler.
    ///
    /// # Errors
    /// `Timeout` or `Closed`. What was not pushed is left in the vector.
    ///
    /// ```
    /// use corelane::error::PushTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (mut producer, _consumer) = corelane::spsc::channel(2);
    /// let mut items = vec![1, 2, 3];
    /// let outcome = producer.push_batch_timeout(&mut items, Duration::from_millis(1));
    /// assert_eq!((outcome, items), (Err(PushTimeoutError::Timeout(())), vec![3]));
    /// ```
    #[cfg(feature = "std")]
    pub fn push_batch_timeout(&mut self, items: &mut Vec<T>, timeout: Duration) -> Result<(), PushTimeoutError<()>> {
        let deadline = Instant::now().checked_add(timeout);
        self.push_all(items, deadline).map_err(|ended| ended.with(()))
    }

    #[inline]
    fn push_all(&mut self, items: &mut Vec<T>, deadline: Option<Instant>) -> Result<(), Ended> {
        let mut moving = Moving::new(items);
        loop {
            // SAFETY: `moving` counts what is pushed as moved out.
            match unsafe { self.push_moved(&mut moving) } {
                Ok(()) if moving.is_over() => return Ok(()),
                Err(TryPushError::Closed(())) => return Err(Ended::Closed),
                _ => self.wait(1, deadline)?,
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

    /// Waits until at least `slots` slots are free, as far as [`release_lag`](Self::release_lag) lets the producer
    /// know.
    ///
    /// A producer that is ahead of its consumer sleeps less often, and costs the consumer fewer wake-ups, when it waits
    /// for half the queue instead of one slot. The consumer has to go on popping for that: it is not for queues in a
    /// ring.
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone.
    ///
    /// # Panics
    /// If `slots` is more than the capacity.
    #[track_caller]
    pub fn wait_for_room(&mut self, slots: usize) -> Result<(), Closed<()>> {
        assert!(slots <= self.capacity(), "`slots` is more than the capacity: wait for at most `capacity()`");
        // There is room for what will be refused.
        if self.wait(slots, None).is_err() || self.is_closed() { Err(Closed(())) } else { Ok(()) }
    }

    #[inline(always)]
    pub(crate) fn wait(&mut self, room: usize, deadline: Option<Instant>) -> Result<(), Ended> {
        aside(self, |end| {
            let wait = end.wait.clone();
            wait_until(end, room, &wait, deadline)
        })
    }
}

impl<T, D: Design<T>, W> Producer<T, D, W, Counting> {
    /// What this end has counted: pushes, full, waits, the high-water mark, batches.
    ///
    /// ```
    /// use corelane::spsc::{Counting, Options, lane};
    ///
    /// let (mut producer, _consumer) = lane::channel_with(2, Options::new().stats::<Counting>())?;
    /// assert_eq!(producer.try_push_slice(&[1, 2, 3]), Ok(2));
    /// let stats = producer.stats();
    /// assert_eq!((stats.pushes, stats.full, stats.high_water), (2, 1, 2));
    /// # Ok::<(), corelane::error::ChannelError>(())
    /// ```
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

debug! { [T, D: Design<T>, W, S: Recorder] Producer<[T, D, W, S]>: self,
    design: core::any::type_name::<D>(), capacity: self.capacity(), closed: self.is_closed()
}

/// A free slot of the queue, see [`Producer::reserve`].
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::channel(4);
/// // A value that is there already.
/// producer.reserve()?.write([1; 64]).unwrap();
/// // One that is made in the queue's own memory.
/// let mut place = producer.reserve()?;
/// place.as_uninit_mut().write([2; 64]);
/// // SAFETY: just written.
/// unsafe { place.commit() }.unwrap();
/// // A slot that is given up holds nothing.
/// drop(producer.reserve()?);
/// assert_eq!(producer.len(), 2);
/// assert_eq!((consumer.pop()?[0], consumer.pop()?[0]), (1, 2));
/// # Ok::<(), corelane::error::Closed>(())
/// ```
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

debug! { [T, D: Design<T>, W, S: Recorder] Reserved<['_, T, D, W, S]>: self }

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

    fn shared(&self) -> &End {
        &self.raw.control().producer
    }

    fn wake_for(&self, room: usize) {
        self.shared().wake_at(self.raw.position().wrapping_add(room).wrapping_sub(self.raw.capacity()));
    }

    #[track_caller]
    fn room_of(&self, slots: usize) -> usize {
        assert!(slots <= self.capacity(), "`room` is more than the capacity: wait for at most `capacity()`");
        slots
    }
}

#[cfg(feature = "std")]
crate::wait::selectable::selectable!([T, D: Design<T>, W, S: Recorder] Producer<T, D, W, S>);
