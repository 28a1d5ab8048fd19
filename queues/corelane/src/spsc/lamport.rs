//! Lamport's ring buffer: two shared indices and nothing else. It is the baseline, and the queue for one or two items.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::lamport::channel(8);
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
//! Use it as the baseline that the others are measured against, and where the queue holds one or two items: caching an
//! index that changes with every item gains nothing there. Anywhere else [`mcring`](super::mcring) is this queue
//! without its misses.
//!
//! # How it works
//!
//! Source: BasicRingBuffer, Figure 3 of the MCRingBuffer paper; Figure 1 of the B-Queue paper; L. Lamport, "Proving the
//! correctness of multiprocess programs", 1977.
//!
//! 1. The producer compares its index `write` with the consumer's `read`. Unless they are a capacity apart it writes
//!    the item and advances `write`.
//! 2. The consumer compares `read` with `write`. Unless they are equal it reads the item and advances `read`.
//!
//! Each operation loads the other side's index, so in a busy queue both indices' lines move from core to core with
//! every item. The paper's form has both in one line (`basic_ring` of `corelane-papers`); here each has its own.
//!
//! # Synchronization
//!
//! - `write`, store-release (producer) → load-acquire (consumer): the item is written before it is read.
//! - `read`, store-release (consumer) → load-acquire (producer): the item is read before its slot is written again.
//! - Parking and closing: see [`crate::wait`].

use super::ring::{Algorithm, Begin, Reader, Writer};
use crate::bound::Bounded;
use crate::error::ChannelError;
use crate::sync::{Acquire, AtomicUsize, Padded, Relaxed, Release};

/// Lamport's queue as a type parameter of [`Producer`](super::Producer) and [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lamport;

super::aliases!(Lamport, lamport);

#[doc(hidden)]
#[derive(Debug)]
pub struct Indices {
    /// Items published. Written by the producer.
    write: Padded<AtomicUsize>,
    /// Items popped. Written by the consumer.
    read: Padded<AtomicUsize>,
}

impl Bounded for Lamport {}

// SAFETY: each side's index is stored with release and loaded by the other one with acquire.
unsafe impl Algorithm for Lamport {
    type Tuning = ();
    type Words = Indices;
    type Writing = ();
    type Reading = ();

    const LOOKS_ALWAYS: bool = true;

    fn begin<T>(_: usize, start: usize, (): &()) -> Result<Begin<Self>, ChannelError> {
        let words = Indices { write: Padded(AtomicUsize::new(start)), read: Padded(AtomicUsize::new(start)) };
        Ok(Begin { words, writing: (), reading: () })
    }

    fn release_lag(_: usize, (): &()) -> usize {
        0
    }

    #[inline(always)]
    fn freed(words: &Indices) -> usize {
        words.read.load(Acquire)
    }

    #[inline(always)]
    fn publish(words: &Indices, writer: &mut Writer<Self>, _: usize) -> Option<usize> {
        words.write.store(writer.position, Release);
        None
    }

    #[inline(always)]
    fn retract(words: &Indices, writer: &mut Writer<Self>) {
        // The consumer, which has sealed, does not read it; it is set for the drop of what is left.
        words.write.store(writer.position, Relaxed);
    }

    #[inline(always)]
    fn published_exactly(words: &Indices) -> usize {
        words.write.load(Acquire)
    }

    #[inline(always)]
    fn release(words: &Indices, reader: &mut Reader<Self>) -> (bool, Option<usize>) {
        words.read.store(reader.position, Release);
        (true, None)
    }

    fn inside(words: &mut Indices) -> (usize, usize) {
        (words.read.load(Relaxed), words.write.load(Relaxed))
    }
}
