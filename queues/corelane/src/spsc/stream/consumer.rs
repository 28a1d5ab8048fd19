//! The consumer's handle and what it lends: the oldest message, and one after the other.

use super::body::{ALIGN, Body, EMPTY, UNLIMITED, Word, header, position};
use super::rx::Rx;
use crate::end::wait::{Ended, Look, wait_until};
use crate::end::{Control, End};
use crate::error::{Closed, PopTimeoutError, TryPopError};
use crate::macros::debug;
use crate::spsc::design::Shared;
use crate::spsc::stats::{Counting, NoStats, Recorder, Stats};
use crate::sync::{Acquire, Arc, Instant};
use crate::wait::{Adaptive, Strategy};
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr;
use core::time::Duration;

/// The receiving end. `Send`, not `Sync`, not `Clone`: one thread at a time pops.
///
/// What `try_pop` and the like return is lent by the queue: it stays where it is until the consumer is used again.
///
/// ```
/// use corelane::error::{Closed, TryPopError};
/// use corelane::spsc::stream::{self, PushError};
///
/// let (mut producer, mut consumer) = stream::channel();
/// producer.push_batch(&["one", "two", "three", "four", "five"]).unwrap();
/// // Each takes up its length rounded up to 8, plus 8.
/// assert_eq!((consumer.bytes(), consumer.limit(), consumer.is_empty()), (80, None, false));
/// // One message: a call that waits for it, and one that never does.
/// assert_eq!(consumer.pop().unwrap(), b"one");
/// assert_eq!(consumer.try_pop().unwrap(), b"two");
/// // It stays until it is released.
/// assert_eq!(&*consumer.peek().unwrap(), b"three");
/// consumer.try_peek().unwrap().release();
/// // Many.
/// assert_eq!(consumer.pop_batch(10).unwrap().map(str::from_utf8).collect::<Vec<_>>(), [Ok("four"), Ok("five")]);
/// assert_eq!(consumer.try_pop(), Err(TryPopError::Empty));
///
/// consumer.close();
/// assert!(consumer.is_closed());
/// assert_eq!(producer.push(b"six"), Err(PushError::Closed));
/// assert_eq!(consumer.pop(), Err(Closed(())));
/// assert_eq!(consumer.wait_for_message(), Err(Closed(())));
/// ```
pub struct Consumer<W = Adaptive, S: Recorder = NoStats> {
    /// As the producer's.
    pub(super) raw: ManuallyDrop<Rx>,
    pub(super) wait: W,
    pub(super) stats: S,
    pub(super) one_thread: PhantomData<Cell<()>>,
}

impl<W, S: Recorder> Consumer<W, S> {
    /// Pops the oldest message. Never waits.
    ///
    /// # Errors
    /// `Empty` only if every message whose push returned before this call has been popped. `Closed` only once the queue
    /// is closed and everything it had accepted has been popped.
    #[inline]
    pub fn try_pop(&mut self) -> Result<&[u8], TryPopError> {
        let mut found = self.next();
        if found == EMPTY {
            found = self.look_again()?;
        }
        Ok(self.take(found))
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> usize {
        #[cfg(corelane_loom)]
        self.raw.lent.clear();
        self.raw.next()
    }

    #[inline(always)]
    pub(super) fn take(&mut self, found: usize) -> &[u8] {
        self.stats.popped(1);
        self.raw.take(found)
    }

    /// Tells Empty from Closed. A producer that closed may have pushed between our look and its flag: so another look.
    #[inline(always)]
    fn look_again(&mut self) -> Result<usize, TryPopError> {
        let closed = self.is_closed();
        if closed {
            let found = self.next();
            if found != EMPTY {
                return Ok(found);
            }
        }
        self.stats.empty();
        Err(if closed { TryPopError::Closed } else { TryPopError::Empty })
    }

    /// The oldest message, if there is one. Never waits. It stays in the queue unless it is
    /// [released](Peeked::release).
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop).
    pub fn try_peek(&mut self) -> Result<Peeked<'_, W, S>, TryPopError> {
        let mut found = self.next();
        if found == EMPTY {
            found = self.look_again()?;
        }
        Ok(self.peeked(found))
    }

    /// The message whose header was found.
    fn peeked(&mut self, found: usize) -> Peeked<'_, W, S> {
        let message = self.raw.at;
        // SAFETY: the header was found there. The slice is used only as long as the guard borrows the consumer.
        let bytes = unsafe { core::ptr::from_ref(self.raw.lend(message, found - 1)) };
        Peeked { consumer: self, bytes, found }
    }

    /// Pops messages one after the other, at most `max` of them and only those that lie in one segment, and lends them
    /// all for as long as the iterator's borrow lasts. Never waits. It yields at least one if `max` is not 0, and most
    /// of the time all there are.
    ///
    /// # Errors
    /// As for [`try_pop`](Self::try_pop), if there is none.
    ///
    /// ```
    /// let (mut producer, mut consumer) = corelane::spsc::stream::channel();
    /// assert_eq!(producer.try_push_batch(&["a", "few", "words"]), Ok(3));
    /// let words: Vec<&[u8]> = consumer.try_pop_batch(10).unwrap().collect();
    /// assert_eq!(words, [&b"a"[..], b"few", b"words"]);
    /// ```
    pub fn try_pop_batch(&mut self, max: usize) -> Result<Messages<'_, W, S>, TryPopError> {
        // Leaves the segment now, if it is to be left, and not while messages of it are lent.
        if max > 0 && self.next() == EMPTY {
            self.look_again()?;
        }
        Ok(Messages { left: max, popped: 0, consumer: self })
    }

    /// Bytes that the messages inside take up, each its length rounded up to 8 plus 8: a lower bound. The producer can
    /// only raise it. Looks at each message of one segment.
    pub fn bytes(&self) -> usize {
        self.raw.end().wrapping_sub(self.raw.position()) * ALIGN
    }

    /// True if there is nothing to pop. If it is false it stays so until this consumer pops.
    pub fn is_empty(&self) -> bool {
        self.raw.end() == self.raw.position()
    }

    /// The [limit](super::Tuning::limit), rounded down to whole words.
    pub fn limit(&self) -> Option<usize> {
        let limit = self.raw.shared.body.limit;
        (limit != UNLIMITED).then(|| limit * ALIGN)
    }

    /// Closes the queue: every message accepted before can still be popped, none is accepted after. A producer that
    /// waits is woken. Looks at each message of one segment.
    ///
    /// What becomes of a message that is pushed beside it, and how long this takes without membarrier: see
    /// [closing](crate::spsc#closing).
    pub fn close(&mut self) {
        Control::close(&mut *self.raw, |half| &half.shared.control, Rx::seal);
    }

    /// True once either end has closed or the producer is gone. Then it stays so. There may still be messages to pop.
    pub fn is_closed(&self) -> bool {
        self.raw.shared.control.is_closed()
    }
}

impl<W: Strategy, S: Recorder> Consumer<W, S> {
    /// Pops the oldest message, waiting for one by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    #[inline]
    pub fn pop(&mut self) -> Result<&[u8], Closed> {
        let found = self.await_message(None)?;
        Ok(self.take(found))
    }

    #[inline(always)]
    pub(super) fn await_message(&mut self, deadline: Option<Instant>) -> Result<usize, Ended> {
        loop {
            let found = self.next();
            if found != EMPTY {
                return Ok(found);
            }
            self.wait(deadline)?;
        }
    }

    /// Pops the oldest message, waiting at most this long for one. Never gives up early; how late depends on the
    /// strategy and the scheduler.
    ///
    /// # Errors
    /// `Timeout`, or `Closed` once the queue is closed and drained.
    ///
    /// ```
    /// use corelane::error::PopTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (mut producer, mut consumer) = corelane::spsc::stream::channel();
    /// producer.push(b"here").unwrap();
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(consumer.pop_timeout(soon), Ok(&b"here"[..]));
    /// assert_eq!(consumer.pop_timeout(soon), Err(PopTimeoutError::Timeout));
    /// ```
    #[cfg(feature = "std")]
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<&[u8], PopTimeoutError> {
        let found = self.await_message(Instant::now().checked_add(timeout))?;
        Ok(self.take(found))
    }

    /// The oldest message; waits for one by the queue's strategy. It stays in the queue unless it is
    /// [released](Peeked::release).
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn peek(&mut self) -> Result<Peeked<'_, W, S>, Closed> {
        let found = self.await_message(None)?;
        Ok(self.peeked(found))
    }

    /// As [`try_pop_batch`](Self::try_pop_batch), but waits for the first message by the queue's strategy.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn pop_batch(&mut self, max: usize) -> Result<Messages<'_, W, S>, Closed> {
        if max > 0 {
            self.await_message(None)?;
        }
        Ok(Messages { left: max, popped: 0, consumer: self })
    }

    /// Waits until there is a message to pop.
    ///
    /// # Errors
    /// `Closed` once the queue is closed and everything it had accepted has been popped.
    pub fn wait_for_message(&mut self) -> Result<(), Closed> {
        Ok(self.wait(None)?)
    }

    #[cold]
    #[inline(never)]
    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), Ended> {
        let wait = self.wait.clone();
        wait_until(self, 1, &wait, deadline)
    }
}

impl<W> Consumer<W, Counting> {
    /// What this end has counted: pops, empty, waits, batches.
    ///
    /// ```
    /// use corelane::spsc::{Counting, Options, stream};
    ///
    /// let (mut producer, mut consumer) = stream::channel_with(Options::new().stats::<Counting>())?;
    /// producer.push(b"a message").unwrap();
    /// assert!(consumer.try_pop().is_ok() && consumer.try_pop().is_err());
    /// let stats = consumer.stats();
    /// assert_eq!((stats.pops, stats.empty), (1, 1));
    /// # Ok::<(), corelane::error::ChannelError>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.stats.stats()
    }
}

impl<W, S: Recorder> Drop for Consumer<W, S> {
    #[inline(always)]
    fn drop(&mut self) {
        let at = self.raw.at;
        #[cfg(corelane_loom)]
        drop(core::mem::take(&mut self.raw.lent));
        // SAFETY: the last use of this half, so its share of the queue is taken out once.
        retire_consumer(unsafe { ptr::read(&self.raw.shared) }, at);
    }
}

/// By value, as all that is cold (step 7 of the module).
#[cold]
#[inline(never)]
fn retire_consumer(shared: Arc<Shared<Body>>, at: *mut Word) {
    // SAFETY: the consumer, which stands in its segment, is the one that reaches this.
    let segment = shared.body.reader.with(|reader| unsafe { (*reader).segment });
    shared.control.close_by_consumer(position(segment, at));
}

debug! { [W, S: Recorder] Consumer<[W, S]>: self, limit: self.limit(), closed: self.is_closed() }

/// The oldest message of the queue; see [`Consumer::peek`].
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::stream::channel();
/// producer.push(b"a message").unwrap();
/// let peeked = consumer.peek()?;
/// assert!(peeked.starts_with(b"a"));
/// // Taken now; dropped, it would have stayed.
/// peeked.release();
/// assert!(consumer.is_empty());
/// # Ok::<(), corelane::error::Closed>(())
/// ```
pub struct Peeked<'a, W = Adaptive, S: Recorder = NoStats> {
    consumer: &'a mut Consumer<W, S>,
    bytes: *const [u8],
    found: usize,
}

// SAFETY: the pointer is a shared reference into a segment of the queue, for as long as the consumer is borrowed; the
// consumer may move to another thread, and so may this.
unsafe impl<W: Send, S: Recorder> Send for Peeked<'_, W, S> {}

impl<W, S: Recorder> Peeked<'_, W, S> {
    /// Pops the message.
    pub fn release(self) {
        self.consumer.take(self.found);
    }
}

impl<W, S: Recorder> Deref for Peeked<'_, W, S> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: lent by the consumer, which no other code uses while this guard borrows it.
        unsafe { &*self.bytes }
    }
}

debug! { [W, S: Recorder] Peeked<['_, W, S]>: self, len: self.len() }

/// Messages popped one after the other; see [`Consumer::pop_batch`]. What is not taken from it stays in the queue.
pub struct Messages<'a, W = Adaptive, S: Recorder = NoStats> {
    consumer: &'a mut Consumer<W, S>,
    left: usize,
    popped: usize,
}

impl<'a, W, S: Recorder> Iterator for Messages<'a, W, S> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let raw = &mut self.consumer.raw;
        if self.left == 0 || (raw.at >= raw.stop && raw.is_over()) {
            return None;
        }
        // SAFETY: where this side stands there is a header.
        let found = unsafe { header(raw.at) }.load(Acquire);
        if found as isize <= 0 {
            // The end of what is there or of the segment, which stays while its messages are lent.
            self.left = 0;
            return None;
        }
        self.left -= 1;
        self.popped += 1;
        let bytes = core::ptr::from_ref(raw.take(found));
        // SAFETY: the bytes stay until the consumer looks for a message beyond this segment, which it does not while
        // the iterator borrows it for 'a.
        Some(unsafe { &*bytes })
    }
}

impl<W, S: Recorder> Drop for Messages<'_, W, S> {
    fn drop(&mut self) {
        if self.popped > 0 {
            self.consumer.stats.popped(self.popped);
        }
    }
}

debug! { [W, S: Recorder] Messages<['_, W, S]>: self, left: self.left }

impl<W, S: Recorder> Look for Consumer<W, S> {
    fn is_ready(&mut self, _: usize) -> bool {
        self.next() != EMPTY
    }

    fn is_over(&self) -> bool {
        self.is_closed()
    }

    fn waits(&mut self) {
        self.stats.waited();
    }

    fn shared(&self) -> &End {
        &self.raw.shared.control.consumer
    }
}

#[cfg(feature = "std")]
crate::wait::selectable::selectable!([W, S: Recorder] Consumer<W, S>);
