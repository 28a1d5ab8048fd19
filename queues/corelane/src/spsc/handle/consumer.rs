//! The receiving end.

use super::{NotSync, aside};
use crate::end::Control;
use crate::end::End;
use crate::end::wait::{Ended, Look, wait_until};
use crate::error::{Closed, PopTimeoutError, TryPopError};
use crate::items::{Items, Pops};
use crate::macros::debug;
use crate::mem::buffer::drop_while;
use crate::spsc::design::{Design, RawConsumer};
use crate::spsc::lane::Lane;
use crate::spsc::stats::{Counting, NoStats, Recorder, Stats};
use crate::sync::Instant;
use crate::wait::{Adaptive, Strategy};
use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

/// The receiving end of a queue. `Send`, not `Sync`, not `Clone`: one thread at a time pops.
///
/// Dropping it closes the queue, and drops what is inside.
///
/// ```
/// use corelane::error::{Closed, TryPopError};
/// use corelane::spsc::Consumer;
///
/// let (mut producer, mut consumer): (_, Consumer<u32>) = corelane::spsc::channel(8);
/// producer.push_slice(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
/// assert_eq!((consumer.len(), consumer.is_empty(), consumer.capacity()), (8, false, 8));
/// // One item: a call that waits for it, and one that never does.
/// assert_eq!(consumer.pop(), Ok(1));
/// assert_eq!(consumer.try_pop(), Ok(2));
/// // In place: it stays until it is popped, or released.
/// assert_eq!(*consumer.peek().unwrap(), 3);
/// consumer.try_peek().unwrap().release();
/// // Many: to the end of a vector, into a slice, or one by one to a call.
/// let (mut items, mut pair) = (Vec::new(), [0; 2]);
/// assert_eq!(consumer.pop_batch(&mut items, 2), Ok(2));
/// assert_eq!(consumer.pop_slice(&mut pair), Ok(2));
/// assert_eq!(consumer.pop_each(10, |item| items.push(item)), Ok(1));
/// assert_eq!((items, pair), (vec![4, 5, 8], [6, 7]));
/// assert_eq!(consumer.try_pop_slice(&mut pair), Err(TryPopError::Empty));
///
/// consumer.close();
/// assert!(consumer.is_closed());
/// assert_eq!(producer.push(9), Err(Closed(9)));
/// assert_eq!(consumer.wait_for_item(), Err(Closed(())));
/// ```
pub struct Consumer<T, D: Design<T> = Lane, W = Adaptive, S: Recorder = NoStats> {
    /// As the producer's.
    pub(in crate::spsc) raw: ManuallyDrop<D::Consumer>,
    pub(super) wait: W,
    pub(in crate::spsc) stats: S,
    pub(super) one_thread: NotSync,
}

impl<T, D: Design<T>, W, S: Recorder> Consumer<T, D, W, S> {
    /// Pops the oldest item. Never waits. A producer that sleeps is woken, by a system call, once there is room again.
    ///
    /// # Errors
    /// `Empty` only if every item whose push returned before this call has been popped. `Closed` only once the queue is
    /// closed and everything it had accepted has been popped.
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
    pub(in crate::spsc) fn take(&mut self) -> T {
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
    // Inlined it takes registers from the caller's loop over the items, which then counts in memory.
    #[inline(never)]
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

    /// Number of items inside: a lower bound, and at most [`capacity`](Self::capacity). The producer can only raise it.
    /// May take a logarithmic number of looks at the ring.
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

    /// Closes the queue: every item accepted before can still be popped, none is accepted after. A producer that waits
    /// is woken.
    ///
    /// What becomes of an item that is pushed beside it, and how long this takes without membarrier: see
    /// [closing](crate::spsc#closing).
    pub fn close(&mut self) {
        Control::close(&mut *self.raw, RawConsumer::control, RawConsumer::seal);
    }

    /// Second half of a close, unless it is over.
    pub(crate) fn end_close(&mut self) {
        Control::end_close(&mut *self.raw, RawConsumer::control, RawConsumer::seal);
    }

    /// What both ends share.
    pub(crate) fn control(&self) -> &Control {
        self.raw.control()
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
    ///
    /// ```
    /// use corelane::error::PopTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (mut producer, mut consumer) = corelane::spsc::channel(1);
    /// producer.push('a').unwrap();
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(consumer.pop_timeout(soon), Ok('a'));
    /// assert_eq!(consumer.pop_timeout(soon), Err(PopTimeoutError::Timeout));
    /// ```
    #[doc(alias = "recv_timeout")]
    #[cfg(feature = "std")]
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopTimeoutError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            match self.try_pop() {
                Ok(item) => return Ok(item),
                Err(TryPopError::Closed) => return Err(PopTimeoutError::Closed),
                Err(TryPopError::Empty | TryPopError::Busy) => self.wait(deadline)?,
            }
        }
    }

    /// Waits for at least one item by the queue's strategy, then pops up to `max` and appends them to `items`. Returns
    /// how many: 0 only if `max` is 0.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_batch(&mut self, items: &mut Vec<T>, max: usize) -> Result<usize, Closed> {
        Ok(self.wait_for_one(max, None, |end| end.pop_some(items, max))?)
    }

    /// As [`pop_batch`](Self::pop_batch), but waits at most this long for the first item. Never gives up early.
    ///
    /// # Errors
    /// `Timeout`, or `Closed` once the queue is closed and drained.
    ///
    /// ```
    /// use corelane::error::PopTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (mut producer, mut consumer) = corelane::spsc::channel(4);
    /// producer.push_slice(&[1, 2]).unwrap();
    /// let (mut items, soon) = (Vec::new(), Duration::from_millis(1));
    /// assert_eq!(consumer.pop_batch_timeout(&mut items, 10, soon), Ok(2));
    /// assert_eq!(consumer.pop_batch_timeout(&mut items, 10, soon), Err(PopTimeoutError::Timeout));
    /// ```
    #[cfg(feature = "std")]
    pub fn pop_batch_timeout(
        &mut self,
        items: &mut Vec<T>,
        max: usize,
        timeout: Duration,
    ) -> Result<usize, PopTimeoutError> {
        let deadline = Instant::now().checked_add(timeout);
        Ok(self.wait_for_one(max, deadline, |end| end.pop_some(items, max))?)
    }

    /// As [`try_pop_each`](Self::try_pop_each), but waits for the first item by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_each(&mut self, max: usize, mut each: impl FnMut(T)) -> Result<usize, Closed> {
        Ok(self.wait_for_one(max, None, |end| end.give_some(max, &mut each))?)
    }

    /// As [`try_pop_slice`](Self::try_pop_slice), but waits for the first item by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_slice(&mut self, items: &mut [T]) -> Result<usize, Closed>
    where
        T: Copy,
    {
        Ok(self.wait_for_one(items.len(), None, |end| end.fill_some(items))?)
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
        Items(self)
    }

    /// Pops by `some`, which is 0 if there is nothing.
    #[inline(always)]
    fn wait_for_one(
        &mut self,
        max: usize,
        deadline: Option<Instant>,
        mut some: impl FnMut(&mut Self) -> usize,
    ) -> Result<usize, Ended> {
        loop {
            let popped = some(self);
            if popped > 0 || max == 0 {
                return Ok(popped);
            }
            self.wait(deadline)?;
        }
    }

    /// Waits until there is an item to pop.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn wait_for_item(&mut self) -> Result<(), Closed> {
        Ok(self.wait(None)?)
    }

    #[inline(always)]
    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), Ended> {
        aside(self, |end| {
            let wait = end.wait.clone();
            wait_until(end, 1, &wait, deadline)
        })
    }
}

impl<T, D: Design<T>, W> Consumer<T, D, W, Counting> {
    /// What this end has counted: pops, empty, waits, batches.
    ///
    /// ```
    /// use corelane::spsc::{Counting, Options, lane};
    ///
    /// let (mut producer, mut consumer) = lane::channel_with(2, Options::new().stats::<Counting>())?;
    /// producer.push(1).unwrap();
    /// assert!(consumer.try_pop().is_ok() && consumer.try_pop().is_err());
    /// let stats = consumer.stats();
    /// assert_eq!((stats.pops, stats.empty), (1, 1));
    /// # Ok::<(), corelane::error::ChannelError>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let (taken, abstains) = self.raw.pace();
        Stats { taken, abstains, ..self.stats.stats() }
    }
}

impl<T, D: Design<T>, W, S: Recorder> Drop for Consumer<T, D, W, S> {
    #[inline(always)]
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            // SAFETY: this is the last use: what the copy takes out, or drops, is not touched again.
            return Self::drain(ManuallyDrop::new(unsafe { core::ptr::read(self) }));
        }
        // SAFETY: this is the last use.
        unsafe { self.raw.retire() };
    }
}

impl<T, D: Design<T>, W, S: Recorder> Consumer<T, D, W, S> {
    /// Closes the queue, drops what is inside, which no thread can pop any more, and goes. By value, so that the handle
    /// has no address before.
    #[cold]
    #[inline(never)]
    fn drain(consumer: ManuallyDrop<Self>) {
        /// It goes, also when an item's drop panics.
        struct Last<T, D: Design<T>, W, S: Recorder>(ManuallyDrop<Consumer<T, D, W, S>>);
        impl<T, D: Design<T>, W, S: Recorder> Drop for Last<T, D, W, S> {
            fn drop(&mut self) {
                // SAFETY: this is the last use.
                unsafe { self.0.raw.retire() };
            }
        }
        let mut last = Last(consumer);
        last.0.raw.control().defer_no_more();
        // A producer that has closed pushes no more: then there is nothing to agree on.
        if !last.0.raw.control().is_closed_by_producer() {
            last.0.close();
        }
        drop_while(|| last.0.try_peek().map(Peeked::release).is_ok());
    }
}

debug! { [T, D: Design<T>, W, S: Recorder] Consumer<[T, D, W, S]>: self,
    design: core::any::type_name::<D>(), capacity: self.capacity(), closed: self.is_closed()
}

/// The items of a queue in order, see [`Consumer::iter`].
pub type Iter<'a, T, D = Lane, W = Adaptive, S = NoStats> = Items<&'a mut Consumer<T, D, W, S>>;

/// The items of a queue in order, with its receiving end: see [`Consumer::iter`].
pub type IntoIter<T, D = Lane, W = Adaptive, S = NoStats> = Items<Consumer<T, D, W, S>>;

impl<T, D: Design<T>, W: Strategy, S: Recorder> Pops for Consumer<T, D, W, S> {
    type Item = T;

    #[inline]
    fn next_item(&mut self) -> Option<T> {
        self.pop().ok()
    }
}

impl<T, D: Design<T>, W: Strategy, S: Recorder> IntoIterator for Consumer<T, D, W, S> {
    type Item = T;
    type IntoIter = IntoIter<T, D, W, S>;

    fn into_iter(self) -> Self::IntoIter {
        Items(self)
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
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::channel(4);
/// producer.push_slice(&[1, 2, 3]).unwrap();
/// // It can be changed before it is taken.
/// let mut oldest = consumer.peek()?;
/// *oldest += 10;
/// assert_eq!(oldest.pop(), 11);
/// // Dropped where it is, and then only looked at.
/// consumer.peek()?.release();
/// assert_eq!(*consumer.peek()?, 3);
/// assert_eq!(consumer.len(), 1);
/// # Ok::<(), corelane::error::Closed>(())
/// ```
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

debug! { [T, D: Design<T>, W, S: Recorder] Peeked<['_, T, D, W, S]>: self }

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

    fn shared(&self) -> &End {
        &self.raw.control().consumer
    }
}

#[cfg(feature = "std")]
crate::wait::selectable::selectable!([T, D: Design<T>, W, S: Recorder] Consumer<T, D, W, S>);

#[cfg(all(test, feature = "std", not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use crate::spsc::design::RawProducer;
    use crate::sync::{AtomicU32, Relaxed};
    use crate::wait::{Own, Selectable};
    use std::boxed::Box;

    /// Its word is looked at by no thread any more.
    #[test]
    fn a_consumer_that_goes_defers_no_wake_up() {
        let (word, own) = (AtomicU32::new(0), Own::new());
        let (mut producer, consumer) = crate::spsc::channel(1);
        // SAFETY: the word is dropped later.
        unsafe { consumer.control().defer(&word) };
        producer.push(Box::new(1)).unwrap();
        producer.arm(1, own.sleeper());
        drop(consumer);
        assert_eq!((word.load(Relaxed), producer.raw.control().producer.sleeps()), (0, false));
    }
}
