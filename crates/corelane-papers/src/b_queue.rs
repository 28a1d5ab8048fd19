//! B-Queue as printed: NULL in a slot says that it is free, both sides probe a batch ahead, the consumer backtracks.
//!
//! Source: sections 3.1 to 3.3 and Figures 7, 9 and 10 of the B-Queue paper (Wang, Zhang, Tang, Hua).
//! [`corelane::spsc::bqueue`] is the safe form.
//!
//! # How it works
//!
//! 1. `enqueue`, when `head == batch_head`, probes `buffer[MOD(head + BATCH_SIZE)]`. If that is NULL so are all slots
//!    before it, because they are cleared in order, and `batch_head` advances by `BATCH_SIZE`; else it fails. It writes
//!    the value to `buffer[head]` and advances `head`.
//! 2. `dequeue`, when `tail == batch_tail`, calls `backtrack_deq`. It takes the value from `buffer[tail]`, clears the
//!    slot, and advances `tail`.
//! 3. `backtrack_deq` of Figure 9 ([`Plain`]) probes `buffer[MOD(tail + batch_size - 1)]`, first with `BATCH_SIZE`. If
//!    that is not NULL so are all slots before it. Else it waits for `TICKS` cycles, halves `batch_size` and probes
//!    again, down to a single slot, then it fails.
//! 4. `backtrack_deq` of Figure 10 ([`Adaptive`]) starts with `batch_history`, raised by `INCREMENT` up to `BATCH_MAX`,
//!    and keeps the batch that it found there.
//! 5. With backtracking turned off ([`NoBacktracking`], for Figure 14) it probes once, for `BATCH_SIZE`.
//!
//! # What differs from print, and why safety forces it
//!
//! - On success `batch_tail` is the slot after the one that was probed. Printed is the probed slot itself. A batch of
//!   one then leaves `batch_tail == tail`, `dequeue` advances `tail` past it, and a whole lap goes by before the two
//!   meet again: every `dequeue` until then returns a slot it never probed as a success, NULLs too, and clears what the
//!   producer may be writing. The text has the batch end where `batch_tail` begins ("slots between tail and batch tail
//!   are safe"), and so has the producer.
//! - A batch of 0 and batches of the queue's size or more are refused. `enqueue` would probe the slot at `head`, or
//!   beyond, and overwrite what was not extracted. The same holds for `BATCH_MAX`, where it would only be pointless.
//! - The slots are atomics, release and acquire: as plain variables they would be data races.
//! - `INCREMENT` 0 is refused with [`Adaptive`]: the printed history starts where C starts a variable, at 0, and would
//!   stay there.
//!
//! Kept, although they are faults: `enqueue` fails with up to `BATCH_SIZE` slots free; a `dequeue` that fails raises
//! the history, so a consumer that polls an empty queue ends up with the largest batch and the longest wait; an empty
//! queue costs a `dequeue` a wait for `TICKS` after every probe, the last one too.
//!
//! # Synchronization
//!
//! - slot, store-release of a value (producer) → load-acquire of the probed slot (consumer): the slots before the
//!   probed one were written earlier, so they hold their values, and whatever the producer wrote before it sent them.
//! - slot, store-release of NULL (consumer) → load-acquire of the probed slot (producer): the slots before the probed
//!   one were cleared earlier, so no clearing can overtake the producer's next value in its slot.
//! - `head` and `batch_head` are the producer's alone, `tail`, `batch_tail` and `batch_history` the consumer's.
//!
//! # What hangs, and when
//!
//! Each call returns, after at most log2(batch) + 1 probes and as many waits. With backtracking nothing hangs. Without
//! it up to `BATCH_SIZE - 1` elements stay where they are until more follow, and two threads in a ring of two queues
//! hang as with [`mcring`](super::mcring).

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
    /// `BATCH_SIZE`: slots the producer probes ahead, and the consumer too unless it is [`Adaptive`].
    pub batch_size: usize,
    /// `BATCH_MAX` of an [`Adaptive`] consumer.
    pub batch_max: usize,
    /// `INCREMENT` of an [`Adaptive`] consumer.
    pub increment: usize,
    /// `TICKS`: cycles a consumer waits after a probe that failed.
    pub ticks: u32,
}

impl Parameters {
    /// Slots of the queue in sections 5.2 and 5.3.
    pub const PAPER_SLOTS: usize = 2048;

    /// What sections 3.3 and 5.2 name: batches of 256, increments of a cache line, 2,000 cycles. `BATCH_MAX` is not
    /// printed; it is the batch.
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
    /// A global variable of the paper, which only the consumer uses.
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

// SAFETY: the slots are atomics, and a group of local variables is its handle's alone.
unsafe impl Sync for Ring {}

impl Ring {
    /// `MOD`, of a position and at most a batch more.
    #[inline(always)]
    fn modulo(&self, position: u32) -> u32 {
        let size = self.constants.size;
        if position >= size { position - size } else { position }
    }

    #[inline(always)]
    fn slot(&self, i: u32) -> &AtomicUsize {
        // SAFETY: a position is below the number of slots, after `MOD`.
        unsafe { self.buffer.get(i) }
    }
}

/// What the consumer does when it has used up its batch.
pub trait Backtracking: sealed::Sealed {}

mod sealed {
    use super::{Constants, ConsumerLocals};

    pub trait Sealed: Send {
        /// True if the increment must not be 0.
        const ADAPTS: bool = false;

        /// `backtrack_deq`: the number of filled slots from `tail` on, 0 for a failure. `is_filled` tells of the last
        /// slot of a batch of that size.
        fn backtrack_deq(local: &mut ConsumerLocals, constants: &Constants, is_filled: impl Fn(u32) -> bool) -> u32;
    }
}

/// Backtracking turned off: a whole batch or nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoBacktracking;

/// Figure 9.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

/// Figure 10.
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

/// The loop of Figures 9 and 10: the batch that was found filled, or 0.
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

/// Makes a queue of `size` slots. It takes an element only when more than `batch_size` slots are free, or left of the
/// last batch.
///
/// # Errors
/// No slot, too many, no memory, batches of 0 or not below `size`, or an increment of 0 where it counts.
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
            // More than a lap is as good as a lap.
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
            // The probe has acquired this store. Never 0, or the batch was not filled.
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
        // SAFETY: only this handle changes them, and not now.
        let ProducerLocals { head, batch_head } = self.ring.producer.with(|local| unsafe { *local });
        f.debug_struct("Producer").field("head", &head).field("batch_head", &batch_head).finish_non_exhaustive()
    }
}

impl<B> fmt::Debug for Consumer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: only this handle changes them, and not now.
        let ConsumerLocals { tail, batch_tail, batch_history } = self.ring.consumer.with(|local| unsafe { *local });
        f.debug_struct("Consumer")
            .field("tail", &tail)
            .field("batch_tail", &batch_tail)
            .field("batch_history", &batch_history)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
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
