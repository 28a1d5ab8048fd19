//! MCRingBuffer: slices of plain data, one copy and one publication a batch. It is Lamport's ring with local copies of
//! the other side's index, and batched updates of the shared ones.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::mcring::channel(8);
//! producer.push(1).unwrap();
//! assert_eq!(consumer.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`spsc`](super#promises).
//! - **Progress.** Wait-free.
//! - **Memory.** The next power of two of the capacity, times the item's size.
//!
//! # When to use it, and when not
//!
//! Use it for slices of plain data: a batch costs one copy and one publication, and nothing but items is in the lines.
//! For single items at low rates each hand-over moves two lines, the index and the item; a [`lane`](super::lane) moves
//! one.
//!
//! # How it works
//!
//! Source: section II-B and Figure 5 of the MCRingBuffer paper (Lee, Bu, Chandranmenon).
//!
//! 1. Cache-line protection. Variables are grouped by the side that writes them, each group on lines of its own: the
//!    shared indices `write` and `read`, the consumer's own (`next_read`, its guess of `write`), the producer's own
//!    (`next_write`, its guess of `read`), the constants. A side works with its guess of the other's index until that
//!    is used up.
//! 2. Batch updates. The producer advances the shared `write` once per batch of items, the consumer `read` once per
//!    batch of pops, so the shared lines move once per batch.
//!
//! # What differs from print, and why
//!
//! - As printed, up to a batch less one item stays invisible until more are pushed, and two threads that answer each
//!   other wait for ever (Figure 5 of the B-Queue paper). Here the producer keeps its exact position on its own lines,
//!   where it costs nothing, and a consumer that is about to say Empty looks at it. So batching delays nothing.
//! - The consumer's batch is at most an eighth of the capacity, and 1 below a capacity of 64: `release_lag`. It
//!   publishes `read` before it says Empty.
//! - `write` and `read` do not share a line.
//! - Indices count up and are masked; the printed ones leave one slot empty to tell full from empty.
//!
//! # Synchronization
//!
//! - `write` or `next_write`, store-release (producer) → load-acquire (consumer): items are written before they are
//!   read.
//! - `read`, store-release (consumer) → load-acquire (producer): items are read before their slots are written again.
//! - Parking and closing: see [`crate::wait`].

use super::ring::{Algorithm, Begin, Reader, Writer};
use crate::bound::Bounded;
use crate::error::ChannelError;
use crate::sync::{Acquire, AtomicUsize, Padded, Relaxed, Release};

/// MCRingBuffer as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct McRing;

super::aliases!(McRing, mcring);

super::tuning! {
    /// MCRingBuffer's parameter.
    ///
    /// ```
    /// use corelane::spsc::{Options, mcring};
    ///
    /// let options = Options::new().tuning(mcring::Tuning::new().batch(10));
    /// let (mut producer, mut consumer) = mcring::channel_with(2000, options)?;
    /// assert_eq!(producer.release_lag(), 9);
    /// // An item is there at once, whatever the batch.
    /// producer.push(1).unwrap();
    /// assert_eq!(consumer.pop(), Ok(1));
    /// # Ok::<(), corelane::error::ChannelError>(())
    /// ```
    pub struct Tuning {
        /// Items per update of a shared index: `batchSize` of the paper, which measures 1, 10 and 50. From 1 to the
        /// capacity; by default 50, or the capacity where that is less. The consumer takes at most an eighth of the
        /// capacity, see [`release_lag`](crate::spsc::Producer::release_lag).
        batch(items: usize),
    }
}

/// The paper's best.
const PAPER_BATCH: usize = 50;

impl Tuning {
    /// The producer's and the consumer's batch for a capacity.
    fn batches(&self, capacity: usize) -> (usize, usize) {
        let batch = self.batch.unwrap_or(PAPER_BATCH).min(capacity);
        (batch, if capacity < 64 { 1 } else { batch.min(capacity / 8) })
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Indices {
    /// Shared: items published, updated by the producer once a batch.
    write: Padded<AtomicUsize>,
    /// Shared: items popped, updated by the consumer once a batch.
    read: Padded<AtomicUsize>,
    /// The producer's: items pushed, exactly. Read by a consumer about to say Empty.
    next_write: Padded<AtomicUsize>,
    /// The consumer's exact position; written once, when its handle is dropped.
    popped: AtomicUsize,
    /// Items of the producer's batch, and of the consumer's. Constants.
    write_batch: usize,
    read_batch: usize,
}

/// The shared index that an end updates once a batch, as it stands.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Told(usize);

impl Bounded for McRing {}

// SAFETY: `write` and `next_write`, and `read`, are stored with release and loaded by the other side with acquire; when
// both are gone `popped` and `next_write` are exact.
unsafe impl Algorithm for McRing {
    type Tuning = Tuning;
    type Words = Indices;
    type Writing = Told;
    type Reading = Told;

    fn begin<T>(capacity: usize, start: usize, tuning: &Tuning) -> Result<Begin<Self>, ChannelError> {
        if tuning.batch.is_some_and(|batch| batch == 0 || batch > capacity) {
            return Err(ChannelError::BadBatch);
        }
        let (write_batch, read_batch) = tuning.batches(capacity);
        let words = Indices {
            write: Padded(AtomicUsize::new(start)),
            read: Padded(AtomicUsize::new(start)),
            next_write: Padded(AtomicUsize::new(start)),
            popped: AtomicUsize::new(start),
            write_batch,
            read_batch,
        };
        Ok(Begin { words, writing: Told(start), reading: Told(start) })
    }

    fn release_lag(capacity: usize, tuning: &Tuning) -> usize {
        tuning.batches(capacity).1.saturating_sub(1)
    }

    #[inline(always)]
    fn freed(words: &Indices) -> usize {
        words.read.load(Acquire)
    }

    #[inline(always)]
    fn publish(words: &Indices, writer: &mut Writer<Self>, _: usize) -> Option<usize> {
        words.next_write.store(writer.position, Release);
        if writer.position.wrapping_sub(writer.own.0) >= words.write_batch {
            writer.own = Told(writer.position);
            words.write.store(writer.position, Release);
        }
        None
    }

    #[inline(always)]
    fn retract(words: &Indices, writer: &mut Writer<Self>) {
        // The consumer, which has sealed, reads neither; they are set for the drop of what is left.
        writer.own = Told(writer.position);
        words.next_write.store(writer.position, Relaxed);
        words.write.store(writer.position, Relaxed);
    }

    /// First the shared index, then the exact position.
    #[inline(always)]
    fn published(words: &Indices, reader: &mut Reader<Self>) -> usize {
        reader.published_late(&words.write, &words.next_write)
    }

    #[inline(always)]
    fn published_exactly(words: &Indices) -> usize {
        words.next_write.load(Acquire)
    }

    #[inline(always)]
    fn release(words: &Indices, reader: &mut Reader<Self>) -> (bool, Option<usize>) {
        let batch_is_over = reader.position.wrapping_sub(reader.own.0) >= words.read_batch;
        if batch_is_over {
            tell(words, reader);
        }
        (batch_is_over, None)
    }

    #[inline(always)]
    fn flush(words: &Indices, reader: &mut Reader<Self>) -> bool {
        let is_behind = reader.own.0 != reader.position;
        if is_behind {
            tell(words, reader);
        }
        is_behind
    }

    fn leave(words: &Indices, position: usize) {
        words.popped.store(position, Relaxed);
    }

    fn inside(words: &mut Indices) -> (usize, usize) {
        (words.popped.load(Relaxed), words.next_write.load(Relaxed))
    }
}

/// Publishes the consumer's position.
#[inline(always)]
fn tell(words: &Indices, reader: &mut Reader<McRing>) {
    reader.own = Told(reader.position);
    words.read.store(reader.position, Release);
}
