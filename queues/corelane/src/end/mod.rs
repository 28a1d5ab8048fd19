//! What an end of a queue is, whatever the family: whether it is parked, has closed, or is gone.
//!
//! # Closing
//!
//! Either end closes by `close` or by being dropped.
//!
//! **The producer closes.** It can push no more. So a consumer that sees the flag, looks again and still finds nothing
//! has drained the queue.
//!
//! **The consumer closes.** It has to agree with a producer in the middle of a push on whether that item was accepted,
//! without a check before each push. So the producer finds out afterwards, in the same word that tells it of a parked
//! consumer:
//!
//! 1. The consumer sets `CLOSED`, executes the heavy barrier, and takes note of the last item that is published then.
//!    It decides by a compare-exchange that the seal lies behind that item: it will never look further, and `NOTED`
//!    says so to itself. Where there is no membarrier it waits for a millisecond before it takes note: an item whose
//!    push has overlooked `CLOSED` is to be seen by then.
//! 2. A producer that finds `CLOSED` after its publication tries to decide by the same word that the seal lies behind
//!    what it has just published.
//!    - If the producer is the first, these items are accepted, and it publishes no more. The consumer, whose note may
//!      be older, takes note once more.
//!    - If the consumer was the first, the producer takes back what lies behind the seal. No other thread will ever
//!      touch those items.
//!
//! So neither end waits for the other, wherever that is stopped: a push is wait-free in this moment, too. A producer
//! that has decided takes nothing back, because the consumer may still be looking for the last item.
//!
//! The edges, all of `sealed_by`, which is changed once:
//! - the producer decides, release → the consumer's failed compare-exchange or load, acquire: where the seal lies, and
//!   all that was published before, are visible to the second note;
//! - the consumer decides, release → the producer's failed compare-exchange or load, acquire: where the seal lies is
//!   visible, and the consumer's look for the last item comes before the producer takes anything back.
//!
//! `NOTED` is set and read by the consumer's end alone, which is one thread at a time.
//!
//! A consumer that is dropped closes, too, and then drops what is inside. Where items have no drop there is nothing to
//! agree on: it decides that the seal lies where it stands.
//!
//! By the park protocol's argument (see [`crate::wait`]) a push that did not find the flag has published before the
//! consumer takes note. What that means for an item is said in the [module](crate::spsc#closing).
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | this file | parked, closed, sealed |
//! | `wait.rs`, `task.rs` | the loop that waits for an end; a task's wait |

#[cfg(feature = "async")]
pub(crate) mod task;
pub(crate) mod wait;

use crate::sync::{AtomicU32, AtomicUsize, Ordering, Padded, heavy_barrier, load_after_store};
#[cfg(feature = "async")]
use crate::wait::WakerCell;
use crate::wait::outwait_publishers;
#[cfg(feature = "std")]
use crate::wait::{Sleeper, SleeperCell};
// Not loom's: one end alone reaches them.
use core::sync::atomic::AtomicBool;
use core::sync::atomic::AtomicPtr;
#[cfg(feature = "async")]
use core::task::Waker;

/// This end sleeps, or is about to.
const PARKED: u32 = 1;
/// This end has closed the queue.
const CLOSED: u32 = 1 << 1;
/// The consumer has closed or was dropped, and it is decided behind which item it will never look.
const SEALED: u32 = 1 << 2;

/// The consumer has closed, and has taken note of where the seal lies.
const NOTED: u32 = 1 << 5;

/// Which end has decided where the seal lies: none, or the end whose word this is.
const UNDECIDED: u32 = 0;
const BY_CONSUMER: u32 = 1;
const BY_PRODUCER: u32 = 2;

/// In the word of [`Control::defer`]: the producer is to be woken.
pub(crate) const ROOM: u32 = 1 << 1;

/// A task of this end waits, or is about to.
const AWAITED: u32 = if cfg!(feature = "async") { 1 << 3 } else { 0 };
/// This end is a task's, and there is no membarrier: a publisher does not rely on a look at this word but changes it.
/// See [`End::become_task`].
const INSISTENT: u32 = if cfg!(feature = "async") { 1 << 4 } else { 0 };
/// This end may have to be woken.
const WAITS: u32 = PARKED | AWAITED | INSISTENT;

/// One end as the other end sees it.
///
/// `state` is 0 while the end neither waits nor has closed. Its own end sets bits in it. The other end takes `PARKED`
/// or `AWAITED` down when it wakes this one. The producer sets `SEALED` in the consumer's `state` when it has learnt
/// where the seal lies. Both ends write it in cold paths only, so the other end's load of it after every publication
/// hits its own cache.
pub(crate) struct End {
    state: AtomicU32,
    /// Where this end would put the seal. Written before it decides so.
    sealed_at: AtomicUsize,
    /// A waiting producer wants to be woken when the consumer's position has reached this. Written before `PARKED` or
    /// `AWAITED` is set.
    wake_at: AtomicUsize,
    /// The thread that sleeps while `PARKED` is up.
    #[cfg(feature = "std")]
    sleeper: SleeperCell,
    #[cfg(feature = "async")]
    waker: WakerCell,
}

impl End {
    fn new() -> Self {
        Self {
            state: AtomicU32::new(0),
            sealed_at: AtomicUsize::new(0),
            wake_at: AtomicUsize::new(0),
            #[cfg(feature = "std")]
            sleeper: SleeperCell::new(),
            #[cfg(feature = "async")]
            waker: WakerCell::new(),
        }
    }

    /// The state as it is after everything this thread has published so far. Not ordered by itself: an end that finds
    /// `CLOSED` looks again by [`acquire`](Self::acquire).
    #[inline(always)]
    pub(crate) fn after_publication(&self) -> u32 {
        load_after_store(&self.state)
    }

    /// Whether this end's thread sleeps, or its task waits, or is about to. A hint.
    #[inline(always)]
    pub(crate) fn sleeps(&self) -> bool {
        self.state.load(Ordering::Relaxed) & (PARKED | AWAITED) != 0
    }

    /// The state, with everything its end did before it set the bits.
    fn acquire(&self) -> u32 {
        self.state.load(Ordering::Acquire)
    }

    /// Sets bits, after everything this thread did before.
    fn set(&self, bits: u32) {
        self.state.fetch_or(bits, Ordering::AcqRel);
    }

    /// First step of a park: raises the flag, so that the other end's next publication wakes this sleeper. The caller
    /// passes the [`heavy_barrier`], once for all ends of its wait, looks at the queue once more before it sleeps, and
    /// takes the flag down again by [`disarm`](Self::disarm) in any case.
    #[cfg(feature = "std")]
    pub(crate) fn arm(&self, sleeper: Sleeper) {
        self.sleeper.set(sleeper);
        self.set(PARKED);
    }

    /// Says when [`arm`](Self::arm)'s sleeper or [`await_with`](Self::await_with)'s task, a producer, wants to be
    /// woken. To be called before it.
    pub(crate) fn wake_at(&self, position: usize) {
        self.wake_at.store(position, Ordering::Relaxed);
    }

    #[cfg(feature = "std")]
    pub(crate) fn disarm(&self) {
        self.state.fetch_and(!PARKED, Ordering::AcqRel);
    }

    /// Takes the flag down as [`wake`](Self::wake) does, and leaves the wake-up to the caller. For an end that no task
    /// waits for but by a select.
    #[cfg(feature = "std")]
    pub(crate) fn lower(&self) -> Option<Sleeper> {
        let state = self.state.fetch_and(!PARKED, Ordering::AcqRel);
        if state & PARKED != 0 { self.sleeper.get() } else { None }
    }

    /// Wakes this end if its flag is up. The flag comes down first, so that one wait costs one wake-up.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake(&self) {
        let state = self.state.fetch_and(!(PARKED | AWAITED), Ordering::AcqRel);
        #[cfg(feature = "std")]
        if state & PARKED != 0
            && let Some(sleeper) = self.sleeper.get()
        {
            sleeper.unpark();
        }
        #[cfg(feature = "async")]
        if state & AWAITED != 0 {
            self.waker.wake();
        }
        let _ = state;
    }
}

/// An end whose waits are a task's, see the header of `spsc/asynchronous.rs`.
#[cfg(feature = "async")]
impl End {
    /// Makes this end a task's. Returns true where publishers may for a moment overlook that.
    ///
    /// A parked thread that has missed a publication, as it can where there is no membarrier, finds it within a
    /// millisecond. For a task no timer does that. So there each publisher, having seen `INSISTENT`, looks at the word
    /// by a read-modify-write. That comes either after the read-modify-write that raises the flag, and sees the flag;
    /// or before it, and then the end that raises the flag sees what was published.
    ///
    /// A publisher that has not seen the bit yet has published just now. For so long a task must go on looking.
    pub(crate) fn become_task(&self) -> bool {
        // Only this end sets that bit.
        let insists = self.state.load(Ordering::Relaxed) & INSISTENT != 0;
        let overlooked = !insists && crate::sync::parks_are_bounded();
        if overlooked {
            self.set(INSISTENT);
        }
        overlooked
    }

    /// Makes this end a thread's again.
    pub(crate) fn become_thread(&self) {
        self.state.fetch_and(!(AWAITED | INSISTENT), Ordering::AcqRel);
        self.waker.exchange(None);
    }

    /// The first half of a task's wait: says which task to wake. Returns false if the other end is in the middle of a
    /// wake-up: the task must be polled again.
    pub(crate) fn await_with(&self, waker: &Waker) -> bool {
        self.waker.exchange(Some(waker.clone()))
    }

    /// Whether the flag is up. It may have come down meanwhile; then the end that took it down takes the waker that is
    /// there now.
    pub(crate) fn is_awaited(&self) -> bool {
        self.state.load(Ordering::Relaxed) & AWAITED != 0
    }

    /// The second half, if the flag is not up: raises it, so that the other end's next publication wakes the task. The
    /// caller passes the [`heavy_barrier`], once for all ends that its task waits for, and looks at the queue once
    /// more. The flag may stay up: at worst a task is polled once for nothing.
    pub(crate) fn raise(&self) {
        self.set(AWAITED);
    }

    /// Lets go of a waker that is of no use any more.
    fn forget_task(&self) {
        self.waker.exchange(None);
    }
}

/// Both ends. Each is alone on its lines: it is read after every publication of the other side and almost never
/// written.
#[expect(missing_debug_implementations, reason = "a part of a queue")]
pub struct Control {
    pub(crate) producer: Padded<End>,
    pub(crate) consumer: Padded<End>,
    /// Changed once, by a compare-exchange of either end.
    sealed_by: AtomicU32,
    /// Null, or see [`defer`](Self::defer).
    deferred: AtomicPtr<AtomicU32>,
    /// Whether the producer has halted. The producer's alone, and here and not in its handle: a flag that a call may
    /// set would stay in a register of every loop that pushes.
    halted: AtomicBool,
}

impl Control {
    pub(crate) fn new() -> Self {
        // Registers for membarrier here rather than at the first park.
        let _ = crate::sync::parks_are_bounded();
        Self {
            producer: Padded(End::new()),
            consumer: Padded(End::new()),
            sealed_by: AtomicU32::new(UNDECIDED),
            deferred: AtomicPtr::default(),
            halted: AtomicBool::new(false),
        }
    }

    /// The producer finds no room from now on.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
    }

    /// To be asked by the producer, before it looks for room.
    #[inline(always)]
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Relaxed)
    }

    /// To be called by the consumer after it has published `position` as its own.
    #[inline(always)]
    pub(crate) fn slots_freed(&self, position: usize) {
        if self.producer.after_publication() & WAITS != 0 {
            self.wake_producer(position);
        }
    }

    /// Wakes the producer if enough slots are free for it.
    #[cold]
    #[inline(never)]
    fn wake_producer(&self, position: usize) {
        // Acquire, for the position that was written before the flag.
        let state = self.producer.acquire();
        #[cfg(feature = "async")]
        let state = match state & INSISTENT {
            0 => state,
            _ => self.producer.state.fetch_or(0, Ordering::AcqRel),
        };
        if state & (PARKED | AWAITED) != 0
            && position.wrapping_sub(self.producer.wake_at.load(Ordering::Relaxed)) as isize >= 0
        {
            self.wake_or_defer();
        }
    }

    /// From now on the consumer does not wake the producer, but sets [`ROOM`] in this word: it is under a lock, under
    /// which no foreign waker may run. Its owner looks at the word when it has left the lock, and wakes the producer by
    /// [`lower`](End::lower).
    ///
    /// # Safety
    /// The word is there until the consumer is dropped.
    pub(crate) unsafe fn defer(&self, word: &AtomicU32) {
        self.deferred.store(core::ptr::from_ref(word).cast_mut(), Ordering::Relaxed);
    }

    /// To be called by the consumer, when it is under no lock any more.
    pub(crate) fn defer_no_more(&self) {
        self.deferred.store(core::ptr::null_mut(), Ordering::Relaxed);
    }

    fn wake_or_defer(&self) {
        // SAFETY: null, or there by the promise of `defer`: only the consumer comes here.
        if let Some(word) = unsafe { self.deferred.load(Ordering::Relaxed).as_ref() } {
            word.fetch_or(ROOM, Ordering::AcqRel);
            return;
        }
        self.producer.wake();
    }

    /// To be called by the producer after a publication that found the consumer's `state` not 0: it waits, or has
    /// closed.
    ///
    /// If the consumer has closed, returns how much of what lies in front of `position` lies behind the seal. That is
    /// nothing where the producer has decided the seal. Then it has to [halt](super::design::RawProducer::halt), as the
    /// consumer may still be looking for the end of what is published.
    #[cold]
    #[inline(never)]
    pub(crate) fn handed_over(&self, state: u32, position: usize) -> Option<usize> {
        if state & WAITS != 0 {
            self.consumer.wake();
        }
        if state & CLOSED == 0 {
            return None;
        }
        let decided_by = match self.decide(BY_PRODUCER, position) {
            BY_PRODUCER => &self.producer,
            _ => &self.consumer,
        };
        // Now, not when the consumer goes on, whichever end has decided: the next push is refused.
        self.consumer.set(SEALED);
        let behind = position.wrapping_sub(decided_by.sealed_at.load(Ordering::Relaxed)) as isize;
        Some(behind.max(0) as usize)
    }

    /// Puts the seal at `position` unless it is decided already. Returns the end that has decided; its `sealed_at` is
    /// visible then, and what it had published.
    fn decide(&self, by: u32, position: usize) -> u32 {
        let decided = self.sealed_by.load(Ordering::Acquire);
        if decided != UNDECIDED {
            return decided;
        }
        let end = if by == BY_PRODUCER { &self.producer } else { &self.consumer };
        end.sealed_at.store(position, Ordering::Relaxed);
        match self.sealed_by.compare_exchange(UNDECIDED, by, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => by,
            Err(decided) => decided,
        }
    }

    /// Whether a producer's pushes are refused for good.
    pub(crate) fn refuses_pushes(&self) -> bool {
        // A consumer that is still closing may have freed slots, and an item that is pushed before the seal is
        // accepted. A caller that was told Closed by then would see a later push succeed.
        self.consumer.acquire() & SEALED != 0 || self.producer.acquire() & CLOSED != 0
    }

    /// Whether either end has closed, to the consumer: there may still be items.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_sealed() || self.is_closed_by_producer()
    }

    /// Whether the consumer has closed, to the consumer.
    pub(crate) fn is_sealed(&self) -> bool {
        self.consumer.acquire() & NOTED != 0
    }

    /// To the consumer, which then sees all that was ever pushed.
    pub(crate) fn is_closed_by_producer(&self) -> bool {
        self.producer.acquire() & CLOSED != 0
    }

    /// Says that the producer pushes no more.
    pub(crate) fn close_by_producer(&self) {
        self.producer.set(CLOSED);
        if self.consumer.after_publication() & WAITS != 0 {
            self.consumer.wake();
        }
        #[cfg(feature = "async")]
        self.producer.forget_task();
    }

    /// Closes the queue by its consumer's half, which takes note of the last item that is published by `note`, and says
    /// behind which position.
    pub(crate) fn close<C>(half: &mut C, control: fn(&C) -> &Self, note: fn(&mut C) -> usize) {
        if control(half).begin_close() {
            Self::outwait();
        }
        Self::end_close(half, control, note);
    }

    /// First half of the consumer's [close](Self::close). Returns whether the producer may publish beside it, as it may
    /// not when the consumer has closed before. If so, the caller [outwaits](Self::outwait) it, once for all queues
    /// that it closes.
    pub(crate) fn begin_close(&self) -> bool {
        if self.is_sealed() {
            return false;
        }
        self.consumer.set(CLOSED);
        !self.is_closed_by_producer()
    }

    /// From now on a producer finds that the consumer is closing, or what it has published is to be seen.
    pub(crate) fn outwait() {
        heavy_barrier();
        outwait_publishers();
    }

    /// Second half, unless it is over.
    pub(crate) fn end_close<C>(half: &mut C, control: fn(&C) -> &Self, note: fn(&mut C) -> usize) {
        if control(half).is_sealed() {
            return;
        }
        let end = note(half);
        if !control(half).seal(end) {
            let end = note(half);
            debug_assert_eq!(
                control(half).producer.sealed_at.load(Ordering::Relaxed),
                end,
                "nothing is published behind the producer's seal"
            );
        }
    }

    /// Says that the consumer pops nothing from `position` on, to a producer that waits, too.
    ///
    /// Returns false if the producer has decided before: it has published more, which is accepted, and publishes
    /// nothing after that. Then the consumer is to take note anew.
    fn seal(&self, position: usize) -> bool {
        let decided = self.decide(BY_CONSUMER, position);
        self.consumer.set(CLOSED | SEALED | NOTED);
        if self.producer.after_publication() & WAITS != 0 {
            self.wake_or_defer();
        }
        decided == BY_CONSUMER
    }

    /// Says that the consumer, which stands at `position`, pops no more, unless it has closed before.
    pub(crate) fn close_by_consumer(&self, position: usize) {
        if self.consumer.acquire() & SEALED == 0 {
            self.defer_no_more();
            // No consumer will pop what is inside: a push that finds this takes its item back unless it was popped
            // already.
            self.seal(position);
        }
        #[cfg(feature = "async")]
        self.consumer.forget_task();
    }
}
