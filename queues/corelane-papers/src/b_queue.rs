//! B-Queue as printed: NULL marks a free slot, both sides probe a batch ahead, and the consumer backtracks.
//!
//! Source: sections 3.1 to 3.3 and Figures 7, 9 and 10 of the B-Queue paper (Wang, Zhang, Tang, Hua).
//! [`corelane::spsc::bqueue`] is the safe form.
//!
//! # How it works
//!
//! 1. `enqueue`, when `head == batch_head`, probes `buffer[MOD(head + BATCH_SIZE)]`. Slots are cleared in order, so if
//!    the probed slot is NULL, all slots before it are NULL, too, and `batch_head` advances by `BATCH_SIZE`. Otherwise
//!    `enqueue` fails. It then writes the value to `buffer[head]` and advances `head`.
//! 2. `dequeue`, when `tail == batch_tail`, calls `backtrack_deq`. It takes the value from `buffer[tail]`, clears the
//!    slot, and advances `tail`.
//! 3. `backtrack_deq` of Figure 9 ([`Plain`]) probes `buffer[MOD(tail + batch_size - 1)]`, first with `BATCH_SIZE`. If
//!    the probed slot is not NULL, no slot before it is. Otherwise `backtrack_deq` waits for `TICKS` cycles, halves
//!    `batch_size` and probes again. When the probe of a single slot fails, `backtrack_deq` fails.
//! 4. `backtrack_deq` of Figure 10 ([`Adaptive`]) starts with `batch_history`, raised by `INCREMENT` up to `BATCH_MAX`.
//!    It keeps the batch that it finds in `batch_history`.
//! 5. With backtracking turned off ([`NoBacktracking`], for Figure 14) `dequeue` probes once, for `BATCH_SIZE`.
//!
//! # What differs from print, and why safety forces it
//!
//! - On success `batch_tail` is the slot after the probed one. The printed code uses the probed slot itself. After a
//!   batch of one that leaves `batch_tail == tail`, and `dequeue` advances `tail` past it. The two meet again only a
//!   whole lap later. Until then every `dequeue` returns a slot that it never probed as a success, even a NULL, and
//!   clears a slot that the producer may be writing. The text puts the end of the batch where `batch_tail` begins
//!   ("slots between tail and batch tail are safe"), and the producer does the same.
//! - A batch of 0, and a batch of the queue's size or more, are refused. `enqueue` would probe the slot at `head` or
//!   beyond, and overwrite elements that were not extracted. The same limits hold for `BATCH_MAX`, where a larger value
//!   would only be pointless.
//! - The slots are atomics, release and acquire: as plain variables they would be data races.
//! - `INCREMENT` 0 is refused with [`Adaptive`]. The printed history starts at 0, as a C variable does, and would stay
//!   there.
//!
//! Kept, although they are faults:
//!
//! - `enqueue` fails although up to `BATCH_SIZE` slots are free.
//! - A `dequeue` that fails raises the history. So a consumer that polls an empty queue ends up with the largest batch
//!   and the longest wait.
//! - On an empty queue `dequeue` waits for `TICKS` after every probe, including the last one.
//!
//! # Synchronization
//!
//! - slot, store-release of a value (producer) → load-acquire of the probed slot (consumer): the slots before the
//!   probed one were written earlier. So they hold their values, and everything that the producer wrote before it sent
//!   them is visible.
//! - slot, store-release of NULL (consumer) → load-acquire of the probed slot (producer): the slots before the probed
//!   one were cleared earlier, so no clearing can overtake the producer's next value in its slot.
//! - Only the producer uses `head` and `batch_head`. Only the consumer uses `tail`, `batch_tail` and `batch_history`.
//!
//! # What hangs, and when
//!
//! Each call returns after at most log2(batch) + 1 probes and as many waits. With backtracking nothing hangs. Without
//! it up to `BATCH_SIZE - 1` elements stay in the queue until more follow, and two threads in a ring of two queues hang
//! as with [`mcring`](super::mcring).

use super::slots::{Array, Line, next, spin_wait};
use super::{Dequeue, Enqueue};
use corelane::error::ChannelError;
use corelane::papers::{Arc, AtomicUsize, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZero;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const NULL: usize = 0;

/// B-Queue's parameters, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// `BATCH_SIZE`: how many slots the producer probes ahead. The consumer does the same unless it is [`Adaptive`].
    pub batch_size: usize,
    /// `BATCH_MAX` of an [`Adaptive`] consumer.
    pub batch_max: usize,
    /// `INCREMENT` of an [`Adaptive`] consumer.
    pub increment: usize,
    /// `TICKS`: how many cycles a consumer waits after a probe that failed.
    pub ticks: u32,
}

impl Parameters {
    /// The number of slots in sections 5.2 and 5.3.
    pub const PAPER_SLOTS: usize = 2048;

    /// The values of sections 3.3 and 5.2: batches of 256, increments of a cache line, 2,000 cycles. `BATCH_MAX` is not
    /// printed; here it equals the batch.
    pub const PAPER: Self = Self { batch_size: 256, batch_max: 256, increment: 8, ticks: 2000 };
}

#[repr(C)]
struct Ring {
    producer: Line<UnsafeCell<ProducerLocals>>,
    consumer: Line<UnsafeCell<ConsumerLocals>>,
    constants: Line<Constants>,
    buffer: Line<Array<AtomicUsize>>,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct ProducerLocals {
    head: u32,
    batch_head: u32,
}

#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ConsumerLocals {
    tail: u32,
    batch_tail: u32,
    /// A global variable in the paper, which only the consumer uses.
    batch_history: u32,
}

#[doc(hidden)]
#[derive(Debug)]
#[repr(C)]
pub struct Constants {
    size: u32,
    batch_size: u32,
    batch_max: u32,
    increment: u32,
    ticks: u32,
}

// SAFETY: the slots are atomics, and only one handle uses each group of local variables.
unsafe impl Sync for Ring {}

impl Ring {
    /// `MOD`, for a position plus at most one batch.
    #[inline(always)]
    fn modulo(&self, position: u32) -> u32 {
        let size = self.constants.size;
        if position >= size { position - size } else { position }
    }

    #[inline(always)]
    fn slot(&self, i: u32) -> &AtomicUsize {
        // SAFETY: after `MOD` a position is below the number of slots.
        unsafe { self.buffer.get(i) }
    }
}

/// How the consumer finds its next batch.
pub trait Backtracking: sealed::Sealed {}

mod sealed {
    use super::{Constants, ConsumerLocals};

    pub trait Sealed: Send {
        /// True if the increment must not be 0.
        const ADAPTS: bool = false;

        /// `backtrack_deq`: returns the number of filled slots from `tail` on, or 0 for a failure. `is_filled` tells
        /// whether the last slot of a batch of the given size is filled.
        fn backtrack_deq(local: &mut ConsumerLocals, constants: &Constants, is_filled: impl Fn(u32) -> bool) -> u32;
    }
}

/// Backtracking turned off: the consumer takes a whole batch or nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoBacktracking;

/// Backtracking of Figure 9.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

/// Self-adaptive backtracking of Figure 10.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive;

impl Backtracking for NoBacktracking {}
impl Backtracking for Plain {}
impl Backtracking for Adaptive {}

impl sealed::Sealed for NoBacktracking {
    #[inline(always)]
    fn backtrack_deq(_: &mut ConsumerLocals, constants: &Constants, is_filled: impl Fn(u32) -> bool) -> u32 {
        if is_filled(constants.batch_size) { constants.batch_size } else { 0 }
    }
}

impl sealed::Sealed for Plain {
    #[inline(always)]
    fn backtrack_deq(_: &mut ConsumerLocals, constants: &Constants, is_filled: impl Fn(u32) -> bool) -> u32 {
        halve(constants.batch_size, constants.ticks, is_filled)
    }
}

impl sealed::Sealed for Adaptive {
    const ADAPTS: bool = true;

    #[inline(always)]
    fn backtrack_deq(local: &mut ConsumerLocals, constants: &Constants, is_filled: impl Fn(u32) -> bool) -> u32 {
        if local.batch_history < constants.batch_max {
            local.batch_history = constants.batch_max.min(local.batch_history + constants.increment);
        }
        let batch_size = halve(local.batch_history, constants.ticks, is_filled);
        if batch_size > 0 {
            local.batch_history = batch_size;
        }
        batch_size
    }
}

/// The loop of Figures 9 and 10. Returns the size of the batch that was found filled, or 0.
#[inline(always)]
fn halve(mut batch_size: u32, ticks: u32, is_filled: impl Fn(u32) -> bool) -> u32 {
    while !is_filled(batch_size) {
        spin_wait(ticks);
        if batch_size > 1 {
            batch_size >>= 1;
        } else {
            return 0;
        }
    }
    batch_size
}

/// Makes a queue of `size` slots. It accepts an element only if more than `batch_size` slots are free, or if slots of
/// the producer's last batch are left.
///
/// # Errors
/// No slot, too many slots, no memory, a batch of 0 or not below `size`, or an increment of 0 with [`Adaptive`].
pub fn channel<B: Backtracking>(size: usize, parameters: Parameters) -> Result<(Producer, Consumer<B>), ChannelError> {
    let buffer = Array::new(size, 1, || AtomicUsize::new(NULL))?;
    let Parameters { batch_size, batch_max, increment, ticks } = parameters;
    if [batch_size, batch_max].iter().any(|&batch| batch == 0 || batch >= size) || (B::ADAPTS && increment == 0) {
        return Err(ChannelError::BadBatch);
    }
    let ring = Arc::new(Ring {
        producer: Line(UnsafeCell::new(ProducerLocals::default())),
        consumer: Line(UnsafeCell::new(ConsumerLocals::default())),
        constants: Line(Constants {
            size: buffer.len,
            batch_size: batch_size as u32,
            batch_max: batch_max as u32,
            // An increment of more than one lap has the same effect as one lap.
            increment: increment.min(size) as u32,
            ticks,
        }),
        buffer: Line(buffer),
    });
    Ok((Producer { ring: ring.clone() }, Consumer { ring, backtracking: PhantomData }))
}

/// The end that enqueues.
pub struct Producer {
    ring: Arc<Ring>,
}

/// The end that dequeues.
pub struct Consumer<B> {
    ring: Arc<Ring>,
    backtracking: PhantomData<B>,
}

impl Enqueue<NonZero<usize>> for Producer {
    #[inline(always)]
    fn enqueue(&mut self, value: NonZero<usize>) -> Result<(), NonZero<usize>> {
        let ring = &*self.ring;
        let Constants { size, batch_size, .. } = *ring.constants;
        ring.producer.with_mut(|local| {
            // SAFETY: only the producer's handle uses the producer's local variables, and it is borrowed.
            let local = unsafe { &mut *local };
            if local.head == local.batch_head {
                let batch_head = ring.modulo(local.head + batch_size);
                if ring.slot(batch_head).load(Acquire) != NULL {
                    return Err(value);
                }
                local.batch_head = batch_head;
            }
            ring.slot(local.head).store(value.get(), Release);
            local.head = next(local.head, size);
            Ok(())
        })
    }
}

impl<B: Backtracking> Dequeue<NonZero<usize>> for Consumer<B> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<NonZero<usize>> {
        let ring = &*self.ring;
        ring.consumer.with_mut(|local| {
            // SAFETY: only the consumer's handle uses the consumer's local variables, and it is borrowed.
            let local = unsafe { &mut *local };
            if local.tail == local.batch_tail {
                let tail = local.tail;
                let is_filled = |batch_size| ring.slot(ring.modulo(tail + batch_size - 1)).load(Acquire) != NULL;
                let batch_size = B::backtrack_deq(local, &ring.constants, is_filled);
                if batch_size == 0 {
                    return None;
                }
                local.batch_tail = ring.modulo(tail + batch_size);
            }
            let slot = ring.slot(local.tail);
            // The probe has acquired this store. The value is never 0, because the batch was filled.
            let value = NonZero::new(slot.load(Relaxed));
            debug_assert!(value.is_some());
            slot.store(NULL, Release);
            local.tail = next(local.tail, ring.constants.size);
            value
        })
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: only this handle changes these variables, and it does not change them now.
        let ProducerLocals { head, batch_head } = self.ring.producer.with(|local| unsafe { *local });
        f.debug_struct("Producer").field("head", &head).field("batch_head", &batch_head).finish_non_exhaustive()
    }
}

impl<B> fmt::Debug for Consumer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: only this handle changes these variables, and it does not change them now.
        let ConsumerLocals { tail, batch_tail, batch_history } = self.ring.consumer.with(|local| unsafe { *local });
        f.debug_struct("Consumer")
            .field("tail", &tail)
            .field("batch_tail", &batch_tail)
            .field("batch_history", &batch_history)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::super::slots::CACHE_LINE;
    use super::Ring;
    use std::mem::{align_of, offset_of};

    #[test]
    fn each_side_has_a_line() {
        assert_eq!(align_of::<Ring>(), CACHE_LINE);
        assert_eq!(offset_of!(Ring, producer), 0);
        assert_eq!(offset_of!(Ring, consumer), CACHE_LINE);
        assert_eq!(offset_of!(Ring, constants), 2 * CACHE_LINE);
        assert_eq!(offset_of!(Ring, buffer), 3 * CACHE_LINE);
    }
}
