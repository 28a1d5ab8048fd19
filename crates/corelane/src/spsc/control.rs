//! What both ends of every queue share beside the items: who is parked, who has closed, who is gone.

use crate::sync::{AtomicU32, AtomicUsize, Ordering, Padded, heavy_barrier, load_after_store, pause};
#[cfg(feature = "std")]
use crate::wait::Parker;
use core::fmt;

/// This end sleeps, or is about to.
const PARKED: u32 = 1;
/// This end has closed the queue.
const CLOSED: u32 = 1 << 1;
/// The consumer, which has closed or was dropped, has said behind which item it will never look.
const SEALED: u32 = 1 << 2;

/// One end as the other end sees it.
///
/// `state` is 0 while the end neither sleeps nor has closed. Its own end sets bits in it; the other end takes `PARKED` down
/// when it wakes the sleeper. Both do so in cold paths only, so the other end's load of it after every publication hits
/// its own cache.
pub(crate) struct End {
    state: AtomicU32,
    /// Written once, before `SEALED` is set.
    sealed_at: AtomicUsize,
    /// A sleeping producer wants to be woken when the consumer's position has reached this. Written before `PARKED` is set.
    wake_at: AtomicUsize,
    #[cfg(feature = "std")]
    parker: Parker,
}

impl End {
    fn new(#[cfg(feature = "std")] parker: Option<Parker>) -> Self {
        Self {
            state: AtomicU32::new(0),
            sealed_at: AtomicUsize::new(0),
            wake_at: AtomicUsize::new(0),
            #[cfg(feature = "std")]
            parker: parker.unwrap_or_default(),
        }
    }

    /// The state as it is after everything this thread has published so far. Not ordered by itself: an end that finds
    /// `CLOSED` looks again by [`acquire`](Self::acquire).
    #[inline(always)]
    pub(crate) fn after_publication(&self) -> u32 {
        load_after_store(&self.state)
    }

    /// The state, with everything its end did before it set the bits.
    fn acquire(&self) -> u32 {
        self.state.load(Ordering::Acquire)
    }

    /// Sets bits, after everything this thread did before.
    fn set(&self, bits: u32) {
        self.state.fetch_or(bits, Ordering::AcqRel);
    }

    /// Says that the item at position `at` is the first the consumer will never look at.
    fn seal(&self, at: usize) {
        self.sealed_at.store(at, Ordering::Relaxed);
        self.set(CLOSED | SEALED);
    }

    /// See [`seal`](Self::seal); only meaningful once `SEALED` was seen by [`acquire`](Self::acquire).
    fn sealed_at(&self) -> usize {
        self.sealed_at.load(Ordering::Relaxed)
    }

    #[cfg(feature = "std")]
    pub(crate) fn parker(&self) -> &Parker {
        &self.parker
    }

    /// First half of a park: raises the flag, so that the other end's next publication wakes this one. The caller looks at
    /// the queue once more before it sleeps, and takes the flag down again by [`disarm`](Self::disarm) in any case.
    #[cfg(feature = "std")]
    pub(crate) fn arm(&self) {
        self.set(PARKED);
        heavy_barrier();
    }

    /// Says when [`arm`](Self::arm)'s sleeper, a producer, wants to be woken. To be called before it.
    #[cfg(feature = "std")]
    pub(crate) fn wake_at(&self, position: usize) {
        self.wake_at.store(position, Ordering::Relaxed);
    }

    #[cfg(feature = "std")]
    pub(crate) fn disarm(&self) {
        self.state.fetch_and(!PARKED, Ordering::AcqRel);
    }

    /// Wakes this end if its flag is up. The flag comes down first, so that one sleep costs one wake-up.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake(&self) {
        if self.state.fetch_and(!PARKED, Ordering::AcqRel) & PARKED != 0 {
            #[cfg(feature = "std")]
            self.parker.unpark();
        }
    }
}

/// Both ends. Each is alone on its lines: it is read after every publication of the other side and almost never written.
pub struct Control {
    pub(crate) producer: Padded<End>,
    pub(crate) consumer: Padded<End>,
}

impl Control {
    #[cfg(feature = "std")]
    pub(crate) fn new(producer: Option<Parker>, consumer: Option<Parker>) -> Self {
        // Registers for membarrier here rather than at the first park.
        let _ = crate::sync::parks_are_bounded();
        Self { producer: Padded(End::new(producer)), consumer: Padded(End::new(consumer)) }
    }

    #[cfg(not(feature = "std"))]
    pub(crate) fn new() -> Self {
        Self { producer: Padded(End::new()), consumer: Padded(End::new()) }
    }

    /// To be called by the consumer after it has published `position` as its own.
    #[inline(always)]
    pub(crate) fn slots_freed(&self, position: usize) {
        if self.producer.after_publication() & PARKED != 0 {
            self.wake_producer(position);
        }
    }

    /// Wakes the producer if enough slots are free for it.
    #[cold]
    #[inline(never)]
    fn wake_producer(&self, position: usize) {
        // Acquire, for the position that was written before the flag.
        if self.producer.acquire() & PARKED != 0
            && position.wrapping_sub(self.producer.wake_at.load(Ordering::Relaxed)) as isize >= 0
        {
            self.producer.wake();
        }
    }

    /// To be called by the producer after a publication that found the consumer's `state`: asleep, or closed. Returns how much
    /// of what lies in front of `position` lies behind the seal of a closed queue.
    #[cold]
    #[inline(never)]
    pub(crate) fn handed_over(&self, state: u32, position: usize) -> usize {
        if state & PARKED != 0 {
            self.consumer.wake();
        }
        if state & CLOSED == 0 {
            return 0;
        }
        let mut looks = 0_u32;
        while self.consumer.acquire() & SEALED == 0 {
            looks = looks.wrapping_add(1);
            pause(looks);
        }
        let behind = position.wrapping_sub(self.consumer.sealed_at()) as isize;
        behind.max(0) as usize
    }

    /// Whether a producer's pushes are refused for good.
    pub(crate) fn refuses_pushes(&self) -> bool {
        // A consumer that is still closing may have freed slots, and an item that is pushed before its seal is accepted. Who
        // was told Closed by then would see a later push succeed.
        self.consumer.acquire() & SEALED != 0 || self.producer.acquire() & CLOSED != 0
    }

    /// Whether either end has closed, to the consumer: there may still be items.
    pub(crate) fn is_closed(&self) -> bool {
        (self.consumer.acquire() | self.producer.acquire()) & CLOSED != 0
    }

    /// Says that the producer pushes no more.
    pub(crate) fn close_by_producer(&self) {
        self.producer.set(CLOSED);
        if self.consumer.after_publication() & PARKED != 0 {
            self.consumer.wake();
        }
    }

    /// First half of the consumer's close; false if it has closed before. The consumer then takes note of the last item that
    /// is published, and says so by [`seal`](Self::seal).
    pub(crate) fn begin_close(&self) -> bool {
        if self.consumer.acquire() & CLOSED != 0 {
            return false;
        }
        self.consumer.set(CLOSED);
        heavy_barrier();
        true
    }

    /// Says that the consumer pops nothing from `position` on, to a producer that sleeps, too.
    pub(crate) fn seal(&self, position: usize) {
        self.consumer.seal(position);
        if self.producer.after_publication() & PARKED != 0 {
            self.producer.wake();
        }
    }

    /// Says that the consumer, which stands at `position`, pops no more, unless it has closed before.
    pub(crate) fn close_by_consumer(&self, position: usize) {
        if self.consumer.acquire() & SEALED == 0 {
            // Nobody will pop what is inside: a push that finds this takes its item back unless it was popped already.
            self.seal(position);
        }
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("producer", &self.producer.acquire())
            .field("consumer", &self.consumer.acquire())
            .finish()
    }
}
