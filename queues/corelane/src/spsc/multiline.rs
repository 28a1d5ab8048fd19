//! Multi-line update: single items where the last free slots count. It is Lamport's ring whose producer publishes whole
//! cache lines of items.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::multiline::channel(8);
//! producer.push(1).unwrap();
//! assert_eq!(consumer.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - Those of [`spsc`](super#promises). A slot is free as soon as its item is popped, so there is no `release_lag`.
//! - **Progress.** Wait-free.
//! - **Memory.** The next power of two of the capacity, times the item's size.
//!
//! # When to use it, and when not
//!
//! Use it for single items where the last slots count. It is about as fast as [`mcring`](super::mcring) there, which
//! batches both indices. For slices measure both: which one is ahead depends on the processor and the length.
//!
//! # How it works
//!
//! Source: section 2.4 of the B-Queue paper (Wang, Zhang, Tang, Hua), which cites it as an answer to the cache
//! thrashing of Lamport's queue.
//!
//! 1. Two shared indices, `head` of the producer and `tail` of the consumer, as in [`lamport`](super::lamport).
//! 2. The producer advances `head` only when it has filled one or a few cache lines (`lines`), and then to their end.
//!    So the line of `head` moves once for many items, and the consumer reads lines that the producer is done with.
//! 3. The consumer advances `tail` with every call.
//!
//! # What differs from print, and why
//!
//! - As printed, items stay invisible until a line is full, and two threads that answer each other wait for ever
//!   (Figure 5 of the paper). Here the producer keeps its exact position on lines of its own, where it costs nothing. A
//!   consumer that is about to say Empty looks at it. After a whole line it looks a pause instruction later, lest it
//!   take that line with every group. So late publication delays nothing for long.
//! - A whole line is one of the ring's memory, as far as the items' size divides it; print leaves open where the count
//!   begins.
//! - `head` and `tail` do not share a line. Each side keeps the other's index as it saw it last, and looks again when
//!   that is used up. A producer that looks at `tail` with every item, as Lamport's does, goes on fetching that line.
//!
//! # Synchronization
//!
//! - `head` or `next_head`, store-release (producer) → load-acquire (consumer): items are written before they are read.
//! - `tail`, store-release (consumer) → load-acquire (producer): items are read before their slots are written again.
//! - Parking and closing: see [`crate::wait`].

use super::ring::{Algorithm, Begin, Reader, Writer};
use crate::bound::Bounded;
use crate::error::ChannelError;
use crate::sync::{Acquire, AtomicUsize, Padded, Relaxed, Release};

/// The queue with multi-line update as a type parameter of [`Producer`](super::Producer) and
/// [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct MultiLine;

super::aliases!(MultiLine, multiline);

super::tuning! {
    /// The parameter of the multi-line update.
    ///
    /// ```
    /// use corelane::spsc::{Options, multiline};
    ///
    /// let options = Options::new().tuning(multiline::Tuning::new().lines(4));
    /// let (mut producer, mut consumer) = multiline::channel_with(2000, options)?;
    /// // An item is there at once, whether its line is full or not.
    /// producer.push(1).unwrap();
    /// assert_eq!(consumer.pop(), Ok(1));
    /// # Ok::<(), corelane::error::ChannelError>(())
    /// ```
    pub struct Tuning {
        /// Cache lines of 64 bytes that the producer fills before it updates the shared index: "one or a few" in the
        /// paper. At least 1; by default 2. The items they hold are rounded down to a power of two, and to the
        /// capacity.
        lines(lines: usize),
    }
}

const LINE: usize = 64;
const DEFAULT_LINES: usize = 2;

impl Tuning {
    /// How many items are published together: a power of two.
    fn group<T>(&self, capacity: usize) -> Result<usize, ChannelError> {
        let items = match self.lines {
            Some(0) => return Err(ChannelError::BadBatch),
            // So that the few items of a model fill lines, too.
            None if cfg!(corelane_loom) => 2,
            // Items of size 0 count as if they had one byte.
            lines => lines.unwrap_or(DEFAULT_LINES).saturating_mul(LINE) / size_of::<T>().max(1),
        };
        Ok(1 << items.clamp(1, capacity).ilog2())
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Indices {
    /// Shared: items published in whole lines, updated by the producer once a group of lines.
    head: Padded<AtomicUsize>,
    /// Shared: items popped. Written by the consumer.
    tail: Padded<AtomicUsize>,
    /// The producer's: items pushed, exactly. Read by a consumer about to say Empty.
    next_head: Padded<AtomicUsize>,
}

/// The bits of a position that count within a group of lines.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Within(usize);

impl Bounded for MultiLine {}

// SAFETY: `head` and `next_head`, and `tail`, are stored with release and loaded by the other side with acquire; `tail`
// and `next_head` are exact.
unsafe impl Algorithm for MultiLine {
    type Tuning = Tuning;
    type Words = Indices;
    type Writing = Within;
    type Reading = ();

    fn begin<T>(capacity: usize, start: usize, tuning: &Tuning) -> Result<Begin<Self>, ChannelError> {
        let group = tuning.group::<T>(capacity)?;
        let words = Indices {
            head: Padded(AtomicUsize::new(start)),
            tail: Padded(AtomicUsize::new(start)),
            next_head: Padded(AtomicUsize::new(start)),
        };
        Ok(Begin { words, writing: Within(group - 1), reading: () })
    }

    fn release_lag(_: usize, _: &Tuning) -> usize {
        0
    }

    #[inline(always)]
    fn freed(words: &Indices) -> usize {
        words.tail.load(Acquire)
    }

    #[inline(always)]
    fn publish(words: &Indices, writer: &mut Writer<Self>, n: usize) -> Option<usize> {
        words.next_head.store(writer.position, Release);
        let Within(within) = writer.own;
        let (before, now) = (writer.position.wrapping_sub(n) & !within, writer.position & !within);
        if now != before {
            words.head.store(now, Release);
        }
        None
    }

    #[inline(always)]
    fn retract(words: &Indices, writer: &mut Writer<Self>) {
        // The consumer, which has sealed, reads neither index; this one is set for the drop of what is left.
        words.next_head.store(writer.position, Relaxed);
    }

    /// First the whole lines, then the exact position.
    #[inline(always)]
    fn published(words: &Indices, reader: &mut Reader<Self>) -> usize {
        reader.published_late(&words.head, &words.next_head)
    }

    #[inline(always)]
    fn published_exactly(words: &Indices) -> usize {
        words.next_head.load(Acquire)
    }

    #[inline(always)]
    fn release(words: &Indices, reader: &mut Reader<Self>) -> (bool, Option<usize>) {
        words.tail.store(reader.position, Release);
        (true, None)
    }

    fn inside(words: &mut Indices) -> (usize, usize) {
        (words.tail.load(Relaxed), words.next_head.load(Relaxed))
    }
}
