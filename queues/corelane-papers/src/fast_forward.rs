//! FastForward as printed: NULL marks a free slot, and the two sides share nothing but the slots.
//!
//! Source: Figure 4 and Evaluation 3 of the MCRingBuffer paper (Lee, Bu, Chandranmenon) for [`Baseline`]; Figures 2 and
//! 3 and sections 2.3 and 5.1 of the B-Queue paper (Wang, Zhang, Tang, Hua) for [`Tuned`]. Both after J. Giacomoni, T.
//! Moseley, M. Vachharajani, "FastForward for efficient pipeline parallelism", 2008. [`corelane::spsc::fastforward`] is
//! the safe form.
//!
//! # How it works
//!
//! 1. `enqueue` fails if `buffer[head]` is not NULL. Otherwise it stores the value there and advances `head`.
//! 2. `dequeue` loads `buffer[tail]` and fails if that is NULL. Otherwise it stores NULL there and advances `tail`.
//! 3. [`Baseline`] does no more than that, and `head` and `tail` lie next to each other: the MCRingBuffer paper
//!    measures the queue without slip and without cache-line protection.
//! 4. [`Tuned`] has each index on a line of its own. It keeps the consumer at a distance, so that the two sides do not
//!    work on one line of slots (temporal slipping).
//! 5. `adjust_slip`: when fewer than `DANGER` elements are between the sides, the consumer waits. A wait takes
//!    `avg_time` cycles for each element that is missing to `GOOD`, and for one more. The consumer waits again as long
//!    as the distance grows and is below `GOOD`.
//!
//! # What differs from print, and why safety forces it
//!
//! - Slots and indices are atomics: as plain variables they would be data races. This includes the other side's index,
//!   which `adjust_slip` reads.
//! - Figure 2 compares the address of the result with NULL where it means the value. Here the value is compared, as in
//!   Figure 4.
//!
//! Left open in print: which side calls `adjust_slip`, and how often. Here the consumer calls it before the first
//! element and again after every `interval` elements. The paper does not explain "warm-up of queues before operation";
//! here the constructor writes every slot. Kept: a full ring has distance 0, as an empty one has.
//!
//! # Synchronization
//!
//! - slot, store-release of a value (producer) → load-acquire (consumer): everything that the producer wrote before it
//!   sent the value is visible.
//! - slot, store-release of NULL (consumer) → load-acquire (producer): everything that the consumer did with the values
//!   before this one is visible. The ring itself does not need this edge, because both stores are to one word. On x86
//!   it exists, and a producer that recycles the memory of its values relies on it.
//! - `head` and `tail` order nothing: a slip may be wrong, but never unsound.
//!
//! # What hangs, and when
//!
//! Nothing. Full and empty are exact, all slots hold elements, and an element is visible as soon as it was enqueued.
//! `enqueue` is wait-free, and so is `dequeue`: each turn of `adjust_slip` except the last finds a larger distance.

use super::slots::{Array, Line, next, spin_wait};
use super::{Dequeue, Enqueue};
use corelane::error::ChannelError;
use corelane::papers::{Arc, AtomicU32, AtomicUsize};
use std::fmt;
use std::num::NonZero;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const NULL: usize = 0;

/// The layout of FastForward's variables, and whether the consumer slips.
pub trait Variant: sealed::Sealed {}

mod sealed {
    use super::{Array, AtomicU32, AtomicUsize};

    pub trait Sealed: Send + Sync {
        /// Whether the consumer adjusts the slip.
        const SLIPS: bool;

        fn head(&self) -> &AtomicU32;
        fn tail(&self) -> &AtomicU32;
        #[allow(private_interfaces)]
        fn buffer(&self) -> &Array<AtomicUsize>;
        /// The consumer calls this. Returns the number of elements until the next call.
        fn adjust_slip(&self) -> u32;
    }
}

/// The baseline in Evaluation 3 of the MCRingBuffer paper.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Baseline {
    head: AtomicU32,
    tail: AtomicU32,
    buffer: Array<AtomicUsize>,
}

/// FastForward as the B-Queue paper tuned it.
#[derive(Debug)]
#[repr(C)]
pub struct Tuned {
    head: Line<AtomicU32>,
    tail: Line<AtomicU32>,
    slip: Line<Slip>,
    buffer: Line<Array<AtomicUsize>>,
}

/// When the consumer waits, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slip {
    /// `GOOD`: the distance, in elements, that an adjustment aims at.
    pub good: u32,
    /// `DANGER`: the distance below which an adjustment is made.
    pub danger: u32,
    /// `avg_time`: the cycles between two elements of the producer.
    pub avg_time: u32,
    /// Elements between two adjustments; 0 counts as 1.
    pub interval: u32,
}

impl Slip {
    /// The thresholds that FastForward suggests, 6 cache lines and 2. The times must be measured on each machine.
    pub const fn suggested(avg_time: u32, interval: u32) -> Self {
        Self { good: 6 * 8, danger: 2 * 8, avg_time, interval }
    }
}

impl Variant for Baseline {}
impl Variant for Tuned {}

impl sealed::Sealed for Baseline {
    const SLIPS: bool = false;

    #[inline(always)]
    fn head(&self) -> &AtomicU32 {
        &self.head
    }

    #[inline(always)]
    fn tail(&self) -> &AtomicU32 {
        &self.tail
    }

    #[allow(private_interfaces)]
    #[inline(always)]
    fn buffer(&self) -> &Array<AtomicUsize> {
        &self.buffer
    }

    fn adjust_slip(&self) -> u32 {
        u32::MAX
    }
}

impl Tuned {
    fn distance(&self) -> u32 {
        let (head, tail) = (self.head.load(Relaxed), self.tail.load(Relaxed));
        if head >= tail { head - tail } else { head + self.buffer.len - tail }
    }

    /// Figure 3.
    fn adjust_slip_by(&self, spin_wait: impl Fn(u32)) {
        let Slip { good, danger, avg_time, .. } = *self.slip;
        let mut distance = self.distance();
        if distance < danger {
            loop {
                let old = distance;
                spin_wait(avg_time.saturating_mul(good.saturating_add(1).saturating_sub(distance)));
                distance = self.distance();
                if distance >= good || old >= distance {
                    break;
                }
            }
        }
    }
}

impl sealed::Sealed for Tuned {
    const SLIPS: bool = true;

    #[inline(always)]
    fn head(&self) -> &AtomicU32 {
        &self.head
    }

    #[inline(always)]
    fn tail(&self) -> &AtomicU32 {
        &self.tail
    }

    #[allow(private_interfaces)]
    #[inline(always)]
    fn buffer(&self) -> &Array<AtomicUsize> {
        &self.buffer
    }

    #[cold]
    #[inline(never)]
    fn adjust_slip(&self) -> u32 {
        self.adjust_slip_by(spin_wait);
        self.slip.interval.max(1)
    }
}

/// Makes a ring of `size` slots, all of which hold elements, without slip and without padding.
///
/// # Errors
/// No slot, too many, or no memory.
pub fn baseline(size: usize) -> Result<(Producer<Baseline>, Consumer<Baseline>), ChannelError> {
    Ok(ends(Baseline { head: AtomicU32::new(0), tail: AtomicU32::new(0), buffer: slots(size)? }))
}

/// Makes a ring of `size` slots, all of which hold elements, padded and with slip.
///
/// # Errors
/// No slot, too many, or no memory.
pub fn tuned(size: usize, slip: Slip) -> Result<(Producer<Tuned>, Consumer<Tuned>), ChannelError> {
    Ok(ends(Tuned {
        head: Line(AtomicU32::new(0)),
        tail: Line(AtomicU32::new(0)),
        slip: Line(slip),
        buffer: Line(slots(size)?),
    }))
}

fn slots(size: usize) -> Result<Array<AtomicUsize>, ChannelError> {
    Array::new(size, 1, || AtomicUsize::new(NULL))
}

fn ends<V: Variant>(ring: V) -> (Producer<V>, Consumer<V>) {
    let ring = Arc::new(ring);
    (Producer { ring: ring.clone() }, Consumer { ring, until_adjustment: 0 })
}

/// The end that enqueues.
pub struct Producer<V> {
    ring: Arc<V>,
}

/// The end that dequeues.
pub struct Consumer<V> {
    ring: Arc<V>,
    until_adjustment: u32,
}

impl<V: Variant> Enqueue<NonZero<usize>> for Producer<V> {
    #[inline(always)]
    fn enqueue(&mut self, value: NonZero<usize>) -> Result<(), NonZero<usize>> {
        let ring = &*self.ring;
        let head = ring.head().load(Relaxed);
        // SAFETY: the index is below the number of slots.
        let slot = unsafe { ring.buffer().get(head) };
        if slot.load(Acquire) != NULL {
            return Err(value);
        }
        slot.store(value.get(), Release);
        ring.head().store(next(head, ring.buffer().len), Relaxed);
        Ok(())
    }
}

impl<V: Variant> Dequeue<NonZero<usize>> for Consumer<V> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<NonZero<usize>> {
        let ring = &*self.ring;
        if V::SLIPS && self.until_adjustment == 0 {
            self.until_adjustment = ring.adjust_slip();
        }
        let tail = ring.tail().load(Relaxed);
        // SAFETY: the index is below the number of slots.
        let slot = unsafe { ring.buffer().get(tail) };
        let value = NonZero::new(slot.load(Acquire))?;
        slot.store(NULL, Release);
        ring.tail().store(next(tail, ring.buffer().len), Relaxed);
        if V::SLIPS {
            self.until_adjustment -= 1;
        }
        Some(value)
    }
}

impl<V: Variant> fmt::Debug for Producer<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("head", &self.ring.head().load(Relaxed)).finish_non_exhaustive()
    }
}

impl<V: Variant> fmt::Debug for Consumer<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("tail", &self.ring.tail().load(Relaxed)).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::super::slots::CACHE_LINE;
    use super::super::{Dequeue, Enqueue};
    use super::{Baseline, Producer, Slip, Tuned, baseline, tuned};
    use std::cell::RefCell;
    use std::mem::{align_of, offset_of, size_of};
    use std::num::NonZero;

    fn enqueue(producer: &mut Producer<Tuned>, elements: usize) {
        for _ in 0..elements {
            producer.enqueue(NonZero::<usize>::MIN).unwrap();
        }
    }

    /// The waits of one adjustment that starts at distance `inside`, while `coming` elements come during each wait.
    fn waits(inside: usize, coming: &[usize]) -> Vec<u32> {
        let slip = Slip { good: 10, danger: 4, avg_time: 100, interval: 1 };
        let (mut producer, mut consumer) = tuned(16, slip).unwrap();
        // Across the end of the ring.
        enqueue(&mut producer, 15);
        (0..15).for_each(|_| assert!(consumer.dequeue().is_some()));
        enqueue(&mut producer, inside);
        let (producer, waits) = (RefCell::new(producer), RefCell::new(Vec::new()));
        consumer.ring.adjust_slip_by(|ticks| {
            let wait = waits.borrow().len();
            waits.borrow_mut().push(ticks);
            enqueue(&mut producer.borrow_mut(), coming.get(wait).copied().unwrap_or(0));
        });
        waits.into_inner()
    }

    #[test]
    fn slip_is_adjusted_as_printed() {
        assert_eq!(waits(4, &[1]), [], "not in danger");
        assert_eq!(waits(3, &[]), [800], "for what is missing, and once more; nothing came");
        assert_eq!(waits(0, &[10]), [1100], "good at once");
        assert_eq!(waits(2, &[3, 4, 1, 9]), [900, 600, 200], "as long as it grows and is not good");
        assert_eq!(waits(2, &[3, 0, 9]), [900, 600], "until it no longer grows");
        assert_eq!(waits(0, &[16]), [1100], "a full ring looks like an empty one");
        assert_eq!(waits(16, &[]), [1100], "a full ring looks like an empty one");
    }

    #[test]
    fn slip_is_adjusted_before_the_first_element_and_each_interval() {
        let slip = Slip { good: 0, danger: 0, avg_time: 0, interval: 3 };
        let (mut producer, mut consumer) = tuned(8, slip).unwrap();
        assert_eq!(consumer.dequeue(), None);
        assert_eq!(consumer.until_adjustment, 3);
        for left in [2, 1, 0, 2, 1, 0, 2] {
            enqueue(&mut producer, 1);
            assert!(consumer.dequeue().is_some());
            assert_eq!(consumer.until_adjustment, left);
        }
        let (mut producer, mut consumer) = tuned(8, Slip { interval: 0, ..slip }).unwrap();
        enqueue(&mut producer, 2);
        assert!(consumer.dequeue().is_some() && consumer.dequeue().is_some());
        assert_eq!(consumer.until_adjustment, 0, "before every element");
        let (_producer, mut consumer) = baseline(8).unwrap();
        assert_eq!(consumer.dequeue(), None);
        assert_eq!(consumer.until_adjustment, 0, "the baseline does not slip");
    }

    #[test]
    fn baseline_has_no_padding() {
        assert_eq!(align_of::<Baseline>(), CACHE_LINE);
        assert_eq!(offset_of!(Baseline, head), 0);
        assert_eq!(offset_of!(Baseline, tail), 4);
        assert_eq!(offset_of!(Baseline, buffer), 8);
        assert_eq!(size_of::<Baseline>(), CACHE_LINE);
    }

    #[test]
    fn tuned_has_a_line_for_each_side() {
        assert_eq!(align_of::<Tuned>(), CACHE_LINE);
        assert_eq!(offset_of!(Tuned, head), 0);
        assert_eq!(offset_of!(Tuned, tail), CACHE_LINE);
        assert_eq!(offset_of!(Tuned, slip), 2 * CACHE_LINE);
        assert_eq!(offset_of!(Tuned, buffer), 3 * CACHE_LINE);
    }
}
