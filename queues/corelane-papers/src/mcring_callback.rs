//! MCRingBuffer with deadlock prevention method 4: a consumer that finds no element calls back to flush the thread's
//! outgoing queues.
//!
//! Source: section 2.6, method 4, of the B-Queue paper (Wang, Zhang, Tang, Hua). The unused elements are those of
//! section II-B2 of the MCRingBuffer paper. [`mcring_timer`](super::mcring_timer) is method 3; its header says why
//! methods 1 and 2 are not built.
//!
//! # How it works
//!
//! 1. The caller gives [`dequeue_or`](Consumer::dequeue_or) a callback. `dequeue_or` calls it if it gets no element.
//! 2. The callback [flushes](Producer::flush) all queues that this thread inserts into. A flush injects unused elements
//!    until every element is visible.
//! 3. The consumer discards the unused elements.
//!
//! ```
//! use corelane_papers::{Enqueue, mcring_callback};
//!
//! let (mut ask, mut asked) = mcring_callback::channel(2000, 50).unwrap();
//! let (mut answer, mut answered) = mcring_callback::channel(2000, 50).unwrap();
//! ask.enqueue(20).unwrap();
//! // Both sides have something to say that is not a batch yet, and look for what the other says.
//! assert_eq!(answered.dequeue_or(|| assert!(ask.flush())), None);
//! answer.enqueue(asked.dequeue_or(|| ()).unwrap() + 1).unwrap();
//! assert_eq!(asked.dequeue_or(|| assert!(answer.flush())), None);
//! assert_eq!(answered.dequeue_or(|| ()), Some(21));
//! ```
//!
//! The ring below is [`mcring`], unchanged. An unused element is `None`, as with method 3.
//!
//! # What differs from print, and why safety forces it
//!
//! Nothing beyond [`mcring`].
//!
//! # Synchronization
//!
//! That of [`mcring`].
//!
//! # What hangs, and when
//!
//! A ring of queues does not hang, on two conditions: each thread's callback flushes each of the thread's outgoing
//! queues, and a batch fits into each queue. The paper objects that only the program can know these queues. A thread
//! that neither inserts nor polls publishes nothing, so at the end of a stream the producer must flush by itself.

use super::{Dequeue, Enqueue, mcring};
use corelane::error::ChannelError;
use std::fmt;

/// Makes a ring of `max` slots, which holds up to `max - 1` elements, used and unused, and updates its indices every
/// `batch_size` elements.
///
/// # Errors
/// Those of [`mcring::channel`].
pub fn channel<T: Copy + Send>(max: usize, batch_size: usize) -> Result<(Producer<T>, Consumer<T>), ChannelError> {
    let (producer, consumer) = mcring::channel(max, batch_size)?;
    Ok((Producer { ring: producer }, Consumer { ring: consumer }))
}

/// The end that inserts.
pub struct Producer<T> {
    ring: mcring::Producer<Option<T>>,
}

/// The end that extracts.
pub struct Consumer<T> {
    ring: mcring::Consumer<Option<T>>,
}

impl<T: Copy + Send> Producer<T> {
    /// Injects unused elements until every inserted element is visible. False if the ring became full before that.
    pub fn flush(&mut self) -> bool {
        self.ring.inject_unused()
    }
}

impl<T: Copy + Send> Enqueue<T> for Producer<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> Result<(), T> {
        self.ring.enqueue(Some(element)).map_err(|_| element)
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Extracts an element. If there is none, calls the callback, which flushes the outgoing queues.
    #[inline(always)]
    pub fn dequeue_or(&mut self, flush_outgoing: impl FnOnce()) -> Option<T> {
        let element = self.ring.discard_unused();
        if element.is_none() {
            flush_outgoing();
        }
        element
    }
}

/// For a thread that has no outgoing queue.
impl<T: Copy + Send> Dequeue<T> for Consumer<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        self.dequeue_or(|| ())
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("ring", &self.ring).finish()
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("ring", &self.ring).finish()
    }
}
