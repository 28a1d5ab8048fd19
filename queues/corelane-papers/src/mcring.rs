//! MCRingBuffer as printed: cache-line protection and batch updates of the shared indices, on both sides.
//!
//! Source: Figure 5 and section II-B of the MCRingBuffer paper (Lee, Bu, Chandranmenon); Figure 4 of the B-Queue paper.
//! [`corelane::spsc::mcring`] is the safe form. Without a flush this form is `MCRingBuffer(deadlock)` in Figure 12 of
//! the B-Queue paper.
//!
//! # How it works
//!
//! 1. The control variables form four groups, each on a cache line of its own: the shared `read` and `write`; the
//!    consumer's `localWrite`, `nextRead` and `rBatch`; the producer's `localRead`, `nextWrite` and `wBatch`; the
//!    constants.
//! 2. `Insert` compares `NEXT(nextWrite)` with `localRead`, its guess of `read`. If they are equal, it compares with
//!    `read` itself. If these are equal as well, it fails; otherwise it refreshes the guess. It then writes the element
//!    and advances `nextWrite`.
//! 3. After every `batchSize` elements `Insert` advances `write`, which publishes them to the consumer.
//! 4. `Extract` mirrors this. It compares `nextRead` with `localWrite`, then with `write`, and reads the element. After
//!    every `batchSize` elements it advances `read`.
//!
//! One slot stays free, so the ring holds `max - 1` elements.
//!
//! # What differs from print, and why safety forces it
//!
//! - `read` and `write` are atomics, release and acquire: the paper relies on sequential consistency.
//! - A `batchSize` of 0 is refused, because it has no meaning.
//!
//! # Synchronization
//!
//! - `write`, store-release (producer) → load-acquire (consumer): elements are written before they are read.
//! - `read`, store-release (consumer) → load-acquire (producer): elements are read before their slots are written
//!   again.
//! - An index is loaded twice. The first load only decides about the failure, so it may be relaxed. The second load
//!   sees the same value or a later one.
//!
//! # What hangs, and when
//!
//! Each call is wait-free. But up to `batchSize - 1` elements stay invisible until more are inserted, for ever if none
//! are. As many extracted slots stay occupied.
//!
//! Two threads in a ring of two queues, which insert only elements that they have extracted, hang when fewer than a
//! batch of elements is on its way (Figure 5 of the B-Queue paper). A ring with no more slots than a batch is full
//! before its first batch is complete, so it never passes any element on.
//!
//! If every element of a stream must arrive, send a multiple of the batch, or use [`mcring_timer`](super::mcring_timer)
//! or [`mcring_callback`](super::mcring_callback).

use super::slots::{Array, Line, Slot, next};
use super::{Dequeue, Enqueue};
use corelane::error::ChannelError;
use corelane::papers::{Arc, AtomicU32, UnsafeCell};
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

#[repr(C)]
struct Ring<T> {
    shared: Line<Shared>,
    consumer: Line<UnsafeCell<ConsumerLocals>>,
    producer: Line<UnsafeCell<ProducerLocals>>,
    constants: Line<Constants>,
    buffer: Line<Array<Slot<T>>>,
}

/// Shared control variables.
#[repr(C)]
struct Shared {
    read: AtomicU32,
    write: AtomicU32,
}

/// The consumer's local variables.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct ConsumerLocals {
    local_write: u32,
    next_read: u32,
    r_batch: u32,
}

/// The producer's local variables.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct ProducerLocals {
    local_read: u32,
    next_write: u32,
    w_batch: u32,
}

#[derive(Debug)]
#[repr(C)]
struct Constants {
    max: u32,
    batch_size: u32,
}

// SAFETY: elements are copied from thread to thread, hence `T: Send`. The shared indices order every access to a slot,
// and only one handle uses each group of local variables.
unsafe impl<T: Send> Sync for Ring<T> {}

/// Makes a ring of `max` slots, which holds up to `max - 1` elements and updates its indices every `batch_size`
/// elements. The paper measures 2,000 slots and batches of 1, 10 and 50.
///
/// # Errors
/// Fewer than two slots, too many, no memory, or a batch of 0.
pub fn channel<T: Copy + Send>(max: usize, batch_size: usize) -> Result<(Producer<T>, Consumer<T>), ChannelError> {
    let buffer = Array::new(max, 2, || UnsafeCell::new(MaybeUninit::uninit()))?;
    if batch_size == 0 {
        return Err(ChannelError::BadBatch);
    }
    // A batch of `max` is never complete, so a larger one has the same effect.
    let batch_size = batch_size.min(max) as u32;
    let ring = Arc::new(Ring {
        shared: Line(Shared { read: AtomicU32::new(0), write: AtomicU32::new(0) }),
        consumer: Line(UnsafeCell::new(ConsumerLocals::default())),
        producer: Line(UnsafeCell::new(ProducerLocals::default())),
        constants: Line(Constants { max: buffer.len, batch_size }),
        buffer: Line(buffer),
    });
    Ok((Producer { ring: ring.clone() }, Consumer { ring }))
}

/// The end that inserts.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
}

/// The end that extracts.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
}

impl<T: Copy + Send> Enqueue<T> for Producer<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> Result<(), T> {
        let ring = &*self.ring;
        let Constants { max, batch_size } = *ring.constants;
        ring.producer.with_mut(|local| {
            // SAFETY: only the producer's handle uses the producer's local variables, and it is borrowed.
            let local = unsafe { &mut *local };
            let after_next_write = next(local.next_write, max);
            if after_next_write == local.local_read {
                if after_next_write == ring.shared.read.load(Relaxed) {
                    return Err(element);
                }
                local.local_read = ring.shared.read.load(Acquire);
            }
            // SAFETY: the index is below `max`. The ring is not full, so the consumer has left this slot.
            unsafe { ring.buffer.get(local.next_write).with_mut(|slot| (*slot).write(element)) };
            local.next_write = after_next_write;
            local.w_batch += 1;
            if local.w_batch >= batch_size {
                ring.shared.write.store(local.next_write, Release);
                local.w_batch = 0;
            }
            Ok(())
        })
    }
}

impl<T: Copy + Send> Dequeue<T> for Consumer<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        let ring = &*self.ring;
        let Constants { max, batch_size } = *ring.constants;
        ring.consumer.with_mut(|local| {
            // SAFETY: only the consumer's handle uses the consumer's local variables, and it is borrowed.
            let local = unsafe { &mut *local };
            if local.next_read == local.local_write {
                if local.next_read == ring.shared.write.load(Relaxed) {
                    return None;
                }
                local.local_write = ring.shared.write.load(Acquire);
            }
            // SAFETY: the index is below `max`. The ring is not empty, so the producer has written this slot.
            let element = unsafe { ring.buffer.get(local.next_read).with(|slot| (*slot).assume_init()) };
            local.next_read = next(local.next_read, max);
            local.r_batch += 1;
            if local.r_batch >= batch_size {
                ring.shared.read.store(local.next_read, Release);
                local.r_batch = 0;
            }
            Some(element)
        })
    }
}

impl<T> Producer<T> {
    fn locals(&self) -> ProducerLocals {
        // SAFETY: only this handle changes these variables, and it does not change them now.
        self.ring.producer.with(|local| unsafe { *local })
    }

    /// `wBatch`: the elements inserted that the consumer cannot see yet.
    pub fn invisible(&self) -> usize {
        self.locals().w_batch as usize
    }
}

/// The unused elements of section II-B2: here `None`. They advance the indices, and the consumer discards them.
impl<T: Copy + Send> Producer<Option<T>> {
    /// Injects unused elements until every element is visible. False if the ring became full before that.
    pub(super) fn inject_unused(&mut self) -> bool {
        while self.invisible() > 0 {
            if self.enqueue(None).is_err() {
                return false;
            }
        }
        true
    }
}

/// The consumer's part of section II-B2.
impl<T: Copy + Send> Consumer<Option<T>> {
    /// Extracts the next used element.
    #[inline(always)]
    pub(super) fn discard_unused(&mut self) -> Option<T> {
        loop {
            if let Some(element) = self.dequeue()? {
                return Some(element);
            }
        }
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProducerLocals { local_read, next_write, w_batch } = self.locals();
        f.debug_struct("Producer")
            .field("write", &self.ring.shared.write.load(Relaxed))
            .field("local_read", &local_read)
            .field("next_write", &next_write)
            .field("w_batch", &w_batch)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: only this handle changes these variables, and it does not change them now.
        let ConsumerLocals { local_write, next_read, r_batch } = self.ring.consumer.with(|local| unsafe { *local });
        f.debug_struct("Consumer")
            .field("read", &self.ring.shared.read.load(Relaxed))
            .field("local_write", &local_write)
            .field("next_read", &next_read)
            .field("r_batch", &r_batch)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::super::slots::CACHE_LINE;
    use super::{Ring, Shared};
    use std::mem::{align_of, offset_of};

    #[test]
    fn each_group_has_a_line_and_the_shared_indices_have_one_together() {
        assert_eq!(align_of::<Ring<u64>>(), CACHE_LINE);
        assert_eq!(offset_of!(Ring<u64>, shared), 0);
        assert_eq!(offset_of!(Shared, read), 0);
        assert_eq!(offset_of!(Shared, write), 4);
        assert_eq!(offset_of!(Ring<u64>, consumer), CACHE_LINE);
        assert_eq!(offset_of!(Ring<u64>, producer), 2 * CACHE_LINE);
        assert_eq!(offset_of!(Ring<u64>, constants), 3 * CACHE_LINE);
        assert_eq!(offset_of!(Ring<u64>, buffer), 4 * CACHE_LINE);
    }
}
