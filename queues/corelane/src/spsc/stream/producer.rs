//! The producer's handle and what it lends: room for a message, and a batch that is not published yet.

use super::body::{ALIGN, Body, UNLIMITED, Word, header, words};
use super::error::{PushBatchError, PushError};
use super::tx::{Tx, copy_in};
use crate::end::End;
use crate::end::wait::{Ended, Look, wait_until};
use crate::error::Closed;
use crate::macros::debug;
use crate::spsc::design::Shared;
use crate::spsc::stats::{Counting, NoStats, Recorder, Stats};
use crate::sync::{Arc, Instant, Relaxed, Release};
use crate::wait::{Adaptive, Strategy};
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;
use core::time::Duration;

/// The sending end. `Send`, not `Sync`, not `Clone`: one thread at a time pushes.
///
/// Dropping it closes the queue; the consumer can still pop what is inside.
///
/// ```
/// use corelane::spsc::Options;
/// use corelane::spsc::stream::{self, PushError, Tuning};
///
/// let options = Options::new().tuning(Tuning::new().limit(64));
/// let (mut producer, mut consumer) = stream::channel_with(options).unwrap();
/// // One message: a call that waits for room, and one that never does.
/// assert_eq!(producer.push(b"first"), Ok(()));
/// assert_eq!(producer.try_push(&[0; 100]), Err(PushError::TooLarge));
/// // Each takes up its length rounded up to 8, plus 8.
/// assert_eq!((producer.bytes(), producer.limit(), producer.is_empty()), (16, Some(64), false));
/// // Many: of anything that is bytes.
/// assert_eq!(producer.push_batch(&["second", "third"]), Ok(()));
/// assert_eq!(producer.try_push_batch(&["fourth", "fifth"]), Ok(1));
/// assert_eq!(producer.try_push(b"fifth"), Err(PushError::Full));
///
/// // A message takes up its room until the consumer looks for the next one.
/// assert_eq!((consumer.pop().unwrap().len(), consumer.pop().unwrap().len()), (5, 6));
/// // Room first, then the bytes.
/// assert_eq!(producer.wait_for_room(5), Ok(()));
/// let mut room = producer.try_reserve(5).unwrap();
/// assert_eq!(room.append(b"fifth"), 5);
/// assert_eq!(room.commit_written(), Ok(()));
/// producer.close();
/// assert!(producer.is_closed());
/// assert_eq!(producer.push(b"late"), Err(PushError::Closed));
/// ```
pub struct Producer<W = Adaptive, S: Recorder = NoStats> {
    /// Dropped by value, which gets by without the handle's address.
    pub(super) raw: ManuallyDrop<Tx>,
    pub(super) wait: W,
    pub(super) stats: S,
    pub(super) one_thread: PhantomData<Cell<()>>,
}

impl<W, S: Recorder> Producer<W, S> {
    /// Pushes a message. Never waits.
    ///
    /// # Errors
    /// `Full` or `TooLarge` by the [limit](super::Tuning::limit), `NoMemory`, or `Closed` once the consumer has closed
    /// or is gone.
    #[inline]
    pub fn try_push(&mut self, message: &[u8]) -> Result<(), PushError> {
        self.room_for(message.len())?;
        // SAFETY: there is room for the message, whose memory cannot be the queue's: no reference to that exists.
        let refused = unsafe {
            copy_in(&self.raw, message);
            self.hand_over(message.len())
        };
        if refused == 0 { Ok(()) } else { Err(PushError::Closed) }
    }

    /// Makes sure of room for a message of this length.
    #[inline(always)]
    fn room_for(&mut self, len: usize) -> Result<(), PushError> {
        let need = words(len);
        if self.raw.has_room(need) { Ok(()) } else { self.make_room(need) }
    }

    #[inline(always)]
    fn make_room(&mut self, need: usize) -> Result<(), PushError> {
        let made = self.raw.make_room(need);
        if made == Err(PushError::Full) {
            self.stats.full(|| true);
        }
        made
    }

    /// Publishes the message that is written; 1 if it is refused because the queue is closed.
    ///
    /// # Safety
    /// There is room for a message of this length, and its bytes are initialised.
    #[inline(always)]
    unsafe fn hand_over(&mut self, len: usize) -> usize {
        // SAFETY: the caller's.
        unsafe {
            let place = self.raw.pass(len);
            self.publish(place, len, 1)
        }
    }

    /// Stores the header of the first of the messages that are written up to here; how many of them are refused.
    ///
    /// # Safety
    /// `first` is its place, `len` its length; the other headers are stored and all bytes initialised.
    #[inline(always)]
    unsafe fn publish(&mut self, first: *mut Word, len: usize, messages: usize) -> usize {
        // SAFETY: the caller's.
        unsafe { header(first) }.store(len + 1, Release);
        let refused = match self.raw.control().consumer.after_publication() {
            0 => 0,
            state => self.raw.handed_over(state, first),
        };
        self.stats.pushed(messages - refused, || self.raw.inside() * ALIGN);
        refused
    }

    /// Pushes as many of the messages as there is room for, in order. Never waits. Returns how many: 0 only if there
    /// were none.
    ///
    /// The consumer sees them all at once, or in as many parts as segments change; a limit that is reached ends the
    /// batch. If an `as_ref` panics, the messages before it are pushed.
    ///
    /// # Errors
    /// As for [`try_push`](Self::try_push), if none could be pushed.
    pub fn try_push_batch<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> Result<usize, PushError> {
        let (pushed, refusal) = self.push_some(messages);
        match refusal {
            Some(refusal) if pushed == 0 => Err(refusal),
            _ => Ok(pushed),
        }
    }

    /// Pushes what there is room for; how many, and why not the next one.
    fn push_some<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> (usize, Option<PushError>) {
        let mut batch = Batch { producer: self, first: None, messages: 0, pushed: 0, refused: false };
        let refusal = messages.iter().find_map(|message| batch.push(message.as_ref()).err());
        batch.publish();
        let refusal = if batch.refused { Some(PushError::Closed) } else { refusal };
        (batch.pushed, refusal)
    }

    /// Room for a message of `len` bytes, to be filled in place, if there is some now. Never waits. Nothing is pushed
    /// if the guard is dropped or forgotten.
    ///
    /// # Errors
    /// As for [`try_push`](Self::try_push).
    #[inline]
    pub fn try_reserve(&mut self, len: usize) -> Result<Reserved<'_, W, S>, PushError> {
        if self.is_closed() {
            return Err(PushError::Closed);
        }
        self.room_for(len)?;
        Ok(self.reserved(len))
    }

    /// There is room for so many bytes.
    #[inline(always)]
    fn reserved(&mut self, len: usize) -> Reserved<'_, W, S> {
        Reserved {
            #[cfg(corelane_loom)]
            bytes: alloc::vec![MaybeUninit::uninit(); len],
            producer: self,
            len,
            written: 0,
        }
    }

    /// Bytes that the messages inside take up, each its length rounded up to 8 plus 8: an upper bound. The consumer can
    /// only lower it.
    pub fn bytes(&self) -> usize {
        self.raw.inside() * ALIGN
    }

    /// True if the consumer has popped everything and found the queue empty since. Stays true until this producer
    /// pushes.
    pub fn is_empty(&self) -> bool {
        self.raw.inside() == 0
    }

    /// The [limit](super::Tuning::limit), rounded down to whole words.
    pub fn limit(&self) -> Option<usize> {
        let limit = self.raw.shared.body.limit;
        (limit != UNLIMITED).then(|| limit * ALIGN)
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
}

impl<W: Strategy, S: Recorder> Producer<W, S> {
    /// Pushes a message, waiting for room by the queue's strategy where the limit leaves none.
    ///
    /// # Errors
    /// `TooLarge`, `NoMemory` or `Closed`. Never `Full`.
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), PushError> {
        loop {
            match self.try_push(message) {
                Err(PushError::Full) => self.wait_for_room(message.len())?,
                done => return done,
            }
        }
    }

    /// Pushes a message, waiting at most this long for room. Never gives up early; how late depends on the strategy and
    /// the scheduler.
    ///
    /// # Errors
    /// `Timeout`, `TooLarge`, `NoMemory` or `Closed`.
    ///
    /// ```
    /// use corelane::spsc::Options;
    /// use corelane::spsc::stream::{self, PushError, Tuning};
    /// use std::time::Duration;
    ///
    /// let options = Options::new().tuning(Tuning::new().limit(16));
    /// let (mut producer, _consumer) = stream::channel_with(options).unwrap();
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(producer.push_timeout(b"first", soon), Ok(()));
    /// assert_eq!(producer.push_timeout(b"second", soon), Err(PushError::Timeout));
    /// ```
    #[cfg(feature = "std")]
    pub fn push_timeout(&mut self, message: &[u8], timeout: Duration) -> Result<(), PushError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            match self.try_push(message) {
                Err(PushError::Full) => self.wait(words(message.len()), deadline)?,
                done => return done,
            }
        }
    }

    /// Pushes all of the messages, in order, waiting for room by the queue's strategy where the limit leaves none.
    ///
    /// They are seen as those of [`try_push_batch`](Self::try_push_batch) are.
    ///
    /// # Errors
    /// `TooLarge`, `NoMemory` or `Closed`, with the number of messages that were pushed.
    pub fn push_batch<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> Result<(), PushBatchError> {
        let mut pushed = 0;
        loop {
            let (more, refusal) = self.push_some(&messages[pushed..]);
            pushed += more;
            let waited = match refusal {
                None => return Ok(()),
                Some(PushError::Full) => self.wait_for_room(messages[pushed].as_ref().len()),
                Some(refusal) => Err(refusal),
            };
            waited.map_err(|reason| PushBatchError { pushed, reason })?;
        }
    }

    /// Room for a message of `len` bytes, to be filled in place; waits for it by the queue's strategy where the limit
    /// leaves none. Nothing is pushed if the guard is dropped or forgotten.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    ///
    /// ```
    /// let (mut producer, mut consumer) = corelane::spsc::stream::channel();
    /// let mut room = producer.reserve(100).unwrap();
    /// room.append(b"shorter");
    /// room.commit_written().unwrap();
    /// assert_eq!(consumer.pop().unwrap(), b"shorter");
    /// ```
    pub fn reserve(&mut self, len: usize) -> Result<Reserved<'_, W, S>, PushError> {
        if self.is_closed() {
            return Err(PushError::Closed);
        }
        if let Err(refusal) = self.room_for(len) {
            if refusal != PushError::Full {
                return Err(refusal);
            }
            self.wait_for_room(len)?;
        }
        Ok(self.reserved(len))
    }

    /// Waits until a message of this length would not be refused as `Full`.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn wait_for_room(&mut self, len: usize) -> Result<(), PushError> {
        self.wait(words(len), None)?;
        if self.is_closed() { Err(PushError::Closed) } else { self.room_for(len) }
    }

    #[cold]
    #[inline(never)]
    fn wait(&mut self, need: usize, deadline: Option<Instant>) -> Result<(), Ended> {
        let wait = self.wait.clone();
        wait_until(self, need, &wait, deadline)
    }
}

impl<W> Producer<W, Counting> {
    /// What this end has counted: pushes, full, waits, the most bytes inside, batches.
    ///
    /// ```
    /// use corelane::spsc::{Counting, Options, stream};
    ///
    /// let (mut producer, _consumer) = stream::channel_with(Options::new().stats::<Counting>())?;
    /// producer.push_batch(&["a", "few", "words"]).unwrap();
    /// let stats = producer.stats();
    /// assert_eq!((stats.pushes, stats.high_water), (3, 48));
    /// # Ok::<(), corelane::error::ChannelError>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.stats.stats()
    }
}

impl<W, S: Recorder> Drop for Producer<W, S> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the last use of this half, so its share of the queue is taken out once.
        retire_producer(unsafe { ptr::read(&self.raw.shared) });
    }
}

/// By value, as all that is cold (step 7 of the module).
#[cold]
#[inline(never)]
fn retire_producer(shared: Arc<Shared<Body>>) {
    shared.control.close_by_producer();
}

debug! { [W, S: Recorder] Producer<[W, S]>: self, limit: self.limit(), closed: self.is_closed() }

/// Messages that are written and not yet published. Publishes them when what makes the next one panics.
struct Batch<'a, W, S: Recorder> {
    producer: &'a mut Producer<W, S>,
    /// The first one's place and length.
    first: Option<(*mut Word, usize)>,
    /// How many there are.
    messages: usize,
    pushed: usize,
    refused: bool,
}

impl<W, S: Recorder> Batch<'_, W, S> {
    fn push(&mut self, message: &[u8]) -> Result<(), PushError> {
        let need = words(message.len());
        if !self.producer.raw.has_room(need) {
            // A consumer that reads these may make the room, and a batch is taken back within one segment.
            self.publish();
            if self.refused {
                return Err(PushError::Closed);
            }
            self.producer.make_room(need)?;
        }
        // SAFETY: there is room. A header behind an unpublished one is not looked at by the consumer.
        unsafe {
            copy_in(&self.producer.raw, message);
            let place = self.producer.raw.pass(message.len());
            match self.first {
                None => self.first = Some((place, message.len())),
                Some(_) => header(place).store(message.len() + 1, Relaxed),
            }
        }
        self.messages += 1;
        Ok(())
    }

    fn publish(&mut self) {
        let messages = core::mem::take(&mut self.messages);
        if let Some((place, len)) = self.first.take() {
            // SAFETY: so many messages are written from there on.
            let refused = unsafe { self.producer.publish(place, len, messages) };
            self.pushed += messages - refused;
            self.refused = refused != 0;
        }
    }
}

impl<W, S: Recorder> Drop for Batch<'_, W, S> {
    fn drop(&mut self) {
        self.publish();
    }
}

/// Room for a message, see [`Producer::reserve`]. Its bytes can be anything until they are written.
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::stream::channel();
/// // In parts, as far as they fit.
/// let mut room = producer.reserve(10).unwrap();
/// assert_eq!(room.len(), 10);
/// assert_eq!((room.append(b"in "), room.append(b"several parts")), (3, 7));
/// room.commit_written().unwrap();
/// // In any order.
/// let mut room = producer.reserve(10).unwrap();
/// for (at, byte) in room.as_uninit_mut()[..4].iter_mut().enumerate().rev() {
///     byte.write(b"abcd"[at]);
/// }
/// // SAFETY: the first 4 bytes were just written.
/// unsafe { room.commit(4) }.unwrap();
/// assert_eq!(consumer.pop().unwrap(), b"in several");
/// assert_eq!(consumer.pop().unwrap(), b"abcd");
/// ```
pub struct Reserved<'a, W = Adaptive, S: Recorder = NoStats> {
    producer: &'a mut Producer<W, S>,
    len: usize,
    /// Bytes appended so far.
    written: usize,
    /// Loom's words do not lie side by side.
    #[cfg(corelane_loom)]
    bytes: alloc::vec::Vec<MaybeUninit<u8>>,
}

impl<W, S: Recorder> Reserved<'_, W, S> {
    /// How many bytes were reserved.
    #[expect(clippy::len_without_is_empty, reason = "a message of no bytes is a message")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The memory, which starts at a multiple of [`ALIGN`].
    #[inline]
    pub fn as_uninit_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        #[cfg(not(corelane_loom))]
        // SAFETY: there is room for `len` bytes, which only this guard reaches; they live as long as the producer.
        unsafe {
            core::slice::from_raw_parts_mut(self.producer.raw.bytes().cast(), self.len)
        }
        #[cfg(corelane_loom)]
        &mut self.bytes
    }

    /// Appends as many of these bytes as there is still room for to what was appended before; how many.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let written = self.written;
        let room = &mut self.as_uninit_mut()[written..];
        let count = bytes.len().min(room.len());
        for (to, &from) in room.iter_mut().zip(bytes) {
            to.write(from);
        }
        self.written += count;
        count
    }

    /// Pushes the message of what was [appended](Self::append).
    ///
    /// # Errors
    /// `Closed` if the consumer has closed meanwhile.
    pub fn commit_written(self) -> Result<(), Closed<()>> {
        let written = self.written;
        // SAFETY: so many bytes were appended.
        unsafe { self.commit(written) }
    }

    /// Pushes the message of the first `len` bytes. What else was reserved is free again.
    ///
    /// # Errors
    /// `Closed` if the consumer has closed meanwhile.
    ///
    /// # Panics
    /// If more bytes are committed than were reserved.
    ///
    /// # Safety
    /// The first `len` bytes have been initialised.
    #[inline]
    #[track_caller]
    pub unsafe fn commit(self, len: usize) -> Result<(), Closed<()>> {
        assert!(len <= self.len, "`len` is more than the bytes reserved: commit at most those");
        #[cfg(corelane_loom)]
        // SAFETY: initialised by the caller's promise, and there is room.
        unsafe {
            let bytes = core::slice::from_raw_parts(self.bytes.as_ptr().cast::<u8>(), len);
            copy_in(&self.producer.raw, bytes);
        }
        // SAFETY: the caller's, and there is room for more.
        if unsafe { self.producer.hand_over(len) } == 0 { Ok(()) } else { Err(Closed(())) }
    }
}

debug! { [W, S: Recorder] Reserved<['_, W, S]>: self, len: self.len }

/// `need` is in words.
impl<W, S: Recorder> Look for Producer<W, S> {
    fn is_ready(&mut self, need: usize) -> bool {
        // What is refused for another reason is not waited for.
        self.raw.has_room(need) || self.raw.make_room(need) != Err(PushError::Full)
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

    fn wake_for(&self, need: usize) {
        self.shared().wake_at(self.raw.position().wrapping_add(need).wrapping_sub(self.raw.shared.body.limit));
    }

    #[track_caller]
    fn room_of(&self, bytes: usize) -> usize {
        let need = words(bytes);
        assert!(need <= self.raw.shared.body.limit, "`room` is above the queue's limit: wait for less, or raise it");
        need
    }
}

#[cfg(feature = "std")]
crate::wait::selectable::selectable!([W, S: Recorder] Producer<W, S>);
