//! Many items in place at once, where a design keeps them side by side.
//!
//! ```
//! use corelane::spsc::mcring;
//!
//! let (mut producer, mut consumer) = mcring::channel::<u8>(64);
//! let mut reserved = producer.reserve_slice(48).unwrap();
//! // Code that fills memory fills the queue's own: a read from a socket, a decoder, a copy.
//! for (slot, byte) in reserved.as_uninit_mut().iter_mut().zip(b"a packet") {
//!     slot.write(*byte);
//! }
//! // SAFETY: the first 8 slots were just written.
//! assert_eq!(unsafe { reserved.commit(8) }, 8);
//!
//! let peeked = consumer.peek_slice().unwrap();
//! assert_eq!(&peeked[..], b"a packet");
//! peeked.release(2);
//! assert_eq!(consumer.pop(), Ok(b'p'));
//! ```

use super::design::{Design, RawConsumer, RawProducer};
use super::handle::{Consumer, Producer};
use super::stats::Recorder;
use crate::error::{Closed, TryPopError, TryPushError};
use crate::macros::debug;
use crate::mem::buffer::drop_all;
use crate::wait::{Adaptive, Strategy};
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};

/// A design whose items lie side by side in memory, up to the end of the ring: the index queues. The others have
/// headers or flags between items, and offer single items in place only. [`ReservedSlice`] and [`PeekedSlice`] have
/// examples.
///
/// Sealed, as [`Design`] is: slices of slots rest on it.
///
/// ```compile_fail
/// struct Item;
/// impl corelane::spsc::Contiguous<Item> for corelane::spsc::Lane {}
/// ```
pub trait Contiguous<T>: Design<T> + sealed::Contiguous {}

mod sealed {
    pub trait Contiguous {}

    impl<A: crate::spsc::ring::Algorithm> Contiguous for A {}
}

impl<T: Send, A: super::ring::Algorithm> Contiguous<T> for A {}

impl<T, D: Contiguous<T>, W, S: Recorder> Producer<T, D, W, S> {
    /// Free slots that lie side by side, at most `most` of them and at least one, to be filled in place. Fewer than are
    /// free where the ring's memory ends. Never waits. Nothing is pushed if the guard is dropped or forgotten.
    /// [`ReservedSlice`] has an example.
    ///
    /// # Errors
    /// As for [`try_push`](Self::try_push).
    ///
    /// # Panics
    /// If `most` is 0.
    #[track_caller]
    pub fn try_reserve_slice(&mut self, most: usize) -> Result<ReservedSlice<'_, T, D, W, S>, TryPushError<()>> {
        assert!(most > 0, "`most` is 0: reserve at least one slot");
        let room = self.raw.writable();
        if room == 0 || self.is_closed() {
            return Err(self.refuse_reservation());
        }
        let len = self.raw.adjacent(room.min(most));
        Ok(ReservedSlice { producer: self, len })
    }
}

impl<T, D: Contiguous<T>, W: Strategy, S: Recorder> Producer<T, D, W, S> {
    /// As [`try_reserve_slice`](Self::try_reserve_slice), but waits for a free slot by the queue's strategy.
    /// [`ReservedSlice`] has an example.
    ///
    /// # Errors
    /// `Closed` once the consumer has closed or is gone.
    ///
    /// # Panics
    /// If `most` is 0.
    #[track_caller]
    pub fn reserve_slice(&mut self, most: usize) -> Result<ReservedSlice<'_, T, D, W, S>, Closed> {
        assert!(most > 0, "`most` is 0: reserve at least one slot");
        self.wait_for_room(1)?;
        let room = self.raw.writable().min(most);
        let len = self.raw.adjacent(room);
        Ok(ReservedSlice { producer: self, len })
    }
}

impl<T, D: Contiguous<T>, W, S: Recorder> Consumer<T, D, W, S> {
    /// The oldest items, in place, as many as lie side by side, if there are any. Never waits. They stay in the queue
    /// unless they are [released](PeekedSlice::release). [`PeekedSlice`] has an example.
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop).
    pub fn try_peek_slice(&mut self) -> Result<PeekedSlice<'_, T, D, W, S>, TryPopError> {
        self.try_peek()?;
        Ok(self.peeked_slice())
    }

    /// There is an item.
    fn peeked_slice(&mut self) -> PeekedSlice<'_, T, D, W, S> {
        let ready = self.raw.readable();
        let len = self.raw.adjacent(ready);
        PeekedSlice { consumer: self, len }
    }
}

impl<T, D: Contiguous<T>, W: Strategy, S: Recorder> Consumer<T, D, W, S> {
    /// As [`try_peek_slice`](Self::try_peek_slice), but waits for an item by the queue's strategy. [`PeekedSlice`] has
    /// an example.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn peek_slice(&mut self) -> Result<PeekedSlice<'_, T, D, W, S>, Closed> {
        self.wait_for_item()?;
        Ok(self.peeked_slice())
    }
}

/// Free slots of the queue, see [`Producer::reserve_slice`].
///
/// ```
/// use corelane::spsc::mcring;
///
/// let (mut producer, mut consumer) = mcring::channel::<u8>(64);
/// // Up to 48 free slots. Code that fills memory fills the queue's own: a read from a socket, a decoder, a copy.
/// let mut room = producer.reserve_slice(48).unwrap();
/// assert_eq!(room.len(), 48);
/// for (slot, byte) in room.as_uninit_mut().iter_mut().zip(b"packet") {
///     slot.write(*byte);
/// }
/// // SAFETY: the first 6 slots were just written.
/// assert_eq!(unsafe { room.commit(6) }, 6);
/// assert_eq!(producer.try_reserve_slice(64).unwrap().len(), 58);
/// assert_eq!(consumer.pop(), Ok(b'p'));
/// ```
pub struct ReservedSlice<'a, T, D: Contiguous<T>, W = Adaptive, S: Recorder = super::NoStats> {
    producer: &'a mut Producer<T, D, W, S>,
    len: usize,
}

impl<T, D: Contiguous<T>, W, S: Recorder> ReservedSlice<'_, T, D, W, S> {
    /// How many slots there are; never 0.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The memory of the slots.
    pub fn as_uninit_mut(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: `len` slots are writable side by side, and only this guard reaches them while it borrows the
        // producer. A slot is nothing but the item's memory.
        unsafe {
            let first = self.producer.raw.slot(0).cast::<MaybeUninit<T>>().cast_mut();
            core::slice::from_raw_parts_mut(first, self.len)
        }
    }

    /// Pushes what is in the first `n` slots. Returns how many were accepted: fewer only if the consumer has closed
    /// meanwhile; the rest is dropped.
    ///
    /// # Panics
    /// If `n` is more than [`len`](Self::len).
    ///
    /// # Safety
    /// The first `n` slots have been initialised through [`as_uninit_mut`](Self::as_uninit_mut).
    #[must_use = "what a closed queue has not accepted is dropped"]
    #[track_caller]
    pub unsafe fn commit(self, n: usize) -> usize {
        assert!(n <= self.len, "`n` is more than the slots reserved: commit at most `len()`");
        if n == 0 {
            return 0;
        }
        // SAFETY: so many slots of the run hold items, by the caller's promise.
        let refused = unsafe { self.producer.hand_over(n) };
        drop_all(refused, |i| {
            // SAFETY: taken back, so the item is ours, and this drops it once.
            unsafe { (*self.producer.raw.slot(i)).with_mut(|slot| (*slot).assume_init_drop()) };
        });
        n - refused
    }
}

debug! { [T, D: Contiguous<T>, W, S: Recorder] ReservedSlice<['_, T, D, W, S]>: self, len: self.len }

/// The oldest items of the queue, in place; see [`Consumer::peek_slice`]. Never empty.
///
/// ```
/// use corelane::error::TryPopError;
/// use corelane::spsc::mcring;
///
/// let (mut producer, mut consumer) = mcring::channel(64);
/// producer.push_slice(b"packets").unwrap();
/// let mut peeked = consumer.peek_slice().unwrap();
/// peeked[0] = b'P';
/// assert_eq!(&peeked[..], b"Packets");
/// peeked.release(6);
/// // What was not released is still there.
/// let rest = consumer.try_peek_slice().unwrap();
/// assert_eq!(&rest[..], b"s");
/// rest.release(1);
/// assert_eq!(consumer.try_peek_slice().unwrap_err(), TryPopError::Empty);
/// ```
pub struct PeekedSlice<'a, T, D: Contiguous<T>, W = Adaptive, S: Recorder = super::NoStats> {
    consumer: &'a mut Consumer<T, D, W, S>,
    len: usize,
}

impl<T, D: Contiguous<T>, W, S: Recorder> PeekedSlice<'_, T, D, W, S> {
    /// Pops the first `n` items and drops them where they are. If a drop panics all of them are popped all the same.
    ///
    /// # Panics
    /// If `n` is more than there are.
    #[track_caller]
    pub fn release(self, n: usize) {
        struct Release<'a, T, D: Contiguous<T>, W, S: Recorder>(&'a mut Consumer<T, D, W, S>, usize);
        impl<T, D: Contiguous<T>, W, S: Recorder> Drop for Release<'_, T, D, W, S> {
            fn drop(&mut self) {
                // SAFETY: so many items were readable, and they have been dropped.
                unsafe { self.0.raw.release(self.1) };
                self.0.stats.popped(self.1);
            }
        }
        assert!(n <= self.len, "`n` is more than the items peeked: release at most `len()`");
        if n == 0 {
            return;
        }
        let release = Release(self.consumer, n);
        drop_all(n, |i| {
            // SAFETY: the item is readable, and it is released after this drops it once.
            unsafe { (*release.0.raw.slot(i)).with_mut(|slot| (*slot).assume_init_drop()) };
        });
    }
}

impl<T, D: Contiguous<T>, W, S: Recorder> Deref for PeekedSlice<'_, T, D, W, S> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` items are readable side by side, and they stay until this guard is used up. A slot is nothing
        // but the item's memory.
        unsafe { core::slice::from_raw_parts(self.consumer.raw.slot(0).cast::<T>(), self.len) }
    }
}

/// The items can be changed in place before they are released.
impl<T, D: Contiguous<T>, W, S: Recorder> DerefMut for PeekedSlice<'_, T, D, W, S> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and only the consumer's thread reaches items until they are released.
        unsafe { core::slice::from_raw_parts_mut(self.consumer.raw.slot(0).cast::<T>().cast_mut(), self.len) }
    }
}

debug! { [T, D: Contiguous<T>, W, S: Recorder] PeekedSlice<['_, T, D, W, S]>: self, len: self.len }
