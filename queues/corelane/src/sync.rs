//! The one file that knows core, portable-atomic, std, loom and shuttle: everything else imports its atomics, cells and
//! threads from here.
//!
//! Besides the re-exports it holds what the algorithms share: [`Padded`], the [`Slot`] an item lives in, and the
//! asymmetric barrier of the park protocol (see [`crate::wait`]).

#[cfg(all(corelane_loom, feature = "std"))]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(corelane_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize},
    },
};

#[cfg(corelane_shuttle)]
pub mod model;
#[cfg(corelane_shuttle)]
pub(crate) use model::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};
#[cfg(all(corelane_shuttle, feature = "std"))]
pub(crate) use model::{Condvar, Instant, Mutex, MutexGuard};

/// Atomics that no model sees.
#[cfg(not(feature = "portable-atomic"))]
pub(crate) use core::sync::atomic as plain;
#[cfg(feature = "portable-atomic")]
pub(crate) use portable_atomic as plain;

#[cfg(all(target_has_atomic = "ptr", not(corelane_loom)))]
pub(crate) use alloc::sync::Arc;
#[cfg(all(any(target_has_atomic = "64", feature = "portable-atomic"), not(any(corelane_loom, corelane_shuttle))))]
pub(crate) use plain::AtomicU64;
#[cfg(not(any(corelane_loom, corelane_shuttle)))]
pub(crate) use plain::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize};
#[cfg(all(not(target_has_atomic = "ptr"), feature = "portable-atomic"))]
pub(crate) use portable_atomic_util::Arc;
#[cfg(all(feature = "std", not(any(corelane_loom, corelane_shuttle))))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
#[cfg(all(feature = "std", not(corelane_shuttle), not(all(target_family = "wasm", target_os = "unknown"))))]
pub(crate) use std::time::Instant;
#[cfg(any(not(feature = "std"), all(not(corelane_shuttle), target_family = "wasm", target_os = "unknown")))]
pub(crate) use timeless::Instant;

#[cfg(not(corelane_loom))]
pub(crate) use cell::UnsafeCell;

use core::mem::MaybeUninit;
pub(crate) use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

/// The place of one item. Whether it holds one is the algorithm's to know.
pub(crate) type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// A browser's machine has the standard library, but its clock panics.
pub(crate) const HAS_CLOCK: bool = !cfg!(all(target_family = "wasm", target_os = "unknown"));

/// Where there is no clock it is always the same time: a wait until some time is over at once.
#[cfg(any(not(feature = "std"), all(not(corelane_shuttle), target_family = "wasm", target_os = "unknown")))]
mod timeless {
    use core::ops::{Add, Sub};
    use core::time::Duration;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[allow(unreachable_pub, reason = "not every machine has the family that shows it")]
    pub struct Instant;

    impl Instant {
        pub(crate) fn now() -> Self {
            Self
        }

        pub(crate) fn elapsed(self) -> Duration {
            Duration::ZERO
        }

        pub(crate) fn checked_add(self, _: Duration) -> Option<Self> {
            Some(Self)
        }

        pub(crate) fn saturating_duration_since(self, _: Self) -> Duration {
            Duration::ZERO
        }
    }

    impl Add<Duration> for Instant {
        type Output = Self;

        fn add(self, _: Duration) -> Self {
            Self
        }
    }

    impl Sub for Instant {
        type Output = Duration;

        fn sub(self, _: Self) -> Duration {
            Duration::ZERO
        }
    }
}

#[cfg(not(corelane_loom))]
mod cell {
    use super::{reads, writes};

    /// `core`'s cell with loom's interface, so that loom and shuttle see every access to an item.
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// As loom's.
        #[inline(always)]
        pub const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        /// As loom's.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            reads(self.0.get(), 1);
            f(self.0.get())
        }

        /// As loom's.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            writes(self.0.get(), 1);
            f(self.0.get())
        }
    }
}

/// To be called before so much memory is read that other threads write. Shuttle looks for a thread that is just writing
/// it.
#[cfg(not(corelane_loom))]
#[inline(always)]
pub(crate) fn reads<T>(start: *const T, count: usize) {
    #[cfg(corelane_shuttle)]
    model::access(start, count, model::Kind::Read);
    let _ = (start, count);
}

/// As `reads`, before memory is written.
#[cfg(not(corelane_loom))]
#[inline(always)]
pub(crate) fn writes<T>(start: *const T, count: usize) {
    #[cfg(corelane_shuttle)]
    model::access(start, count, model::Kind::Write);
    let _ = (start, count);
}

/// Makes an empty slot where it lies, without one on the stack, because an item may be larger than the stack. Outside
/// of loom an empty slot is any memory.
///
/// A generic function is compiled in the crate that uses it, and this example is compiled without optimization:
///
/// ```
/// # #[cfg(not(miri))]
/// # {
/// use corelane::handoff::{Exchanger, Fairness, SynchronousQueue, TransferQueue};
/// use corelane::{mpmc, spsc};
///
/// /// Twice the stack of the thread below.
/// type Large = [u8; 4 << 20];
///
/// fn is_made<D: spsc::Design<Large>>(name: &str) {
///     let make = || {
///         let options = spsc::Options::new().tuning(D::Tuning::default());
///         let (mut producer, consumer) = spsc::any_channel::<Large, D, _, _>(2, options).unwrap();
///         producer.reserve().unwrap().as_uninit_mut();
///         drop((producer, consumer));
///     };
///     std::thread::scope(|scope| {
///         let thread = std::thread::Builder::new().name(name.into()).stack_size(2 << 20);
///         thread.spawn_scoped(scope, make).unwrap();
///     });
/// }
/// macro_rules! are_made {
///     ($($module:ident::$Design:ident,)+) => { $(is_made::<spsc::$Design>(stringify!($module));)+ };
/// }
/// corelane::each_design!(are_made);
///
/// fn others(name: &str, make: fn()) {
///     let thread = std::thread::Builder::new().name(name.into()).stack_size(2 << 20);
///     thread.spawn(make).unwrap().join().unwrap();
/// }
/// others("ticket", || drop(mpmc::queue::<Large>(2)));
/// others("michael_scott", || drop(mpmc::michael_scott::queue::<Large>()));
/// others("two_lock", || drop(mpmc::two_lock::queue::<Large>()));
/// others("fair", || drop(SynchronousQueue::<Large>::new(Fairness::Fair)));
/// others("unfair", || drop(SynchronousQueue::<Large>::new(Fairness::Unfair)));
/// others("transfer", || drop(TransferQueue::<Large>::new()));
/// others("exchanger", || drop(Exchanger::<Large>::new()));
/// # }
/// ```
///
/// # Safety
/// `slot` is the memory of a slot that no other thread knows.
#[inline(always)]
pub(crate) unsafe fn init_slot<T>(slot: *mut Slot<T>) {
    #[cfg(corelane_loom)]
    // SAFETY: the caller's memory.
    unsafe {
        slot.write(UnsafeCell::new(MaybeUninit::uninit()));
    }
    let _ = slot;
}

/// Memory that is written once, before other threads know of it. Loom sees each use of it, and reports one by a thread
/// to which the writing was not done.
pub(crate) struct Written<T>(UnsafeCell<T>);

// SAFETY: no thread writes the cell, so all that threads share is `&T`.
unsafe impl<T: Sync> Sync for Written<T> {}

impl<T> Written<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
}

impl<T> core::ops::Deref for Written<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: no thread writes the cell, and the value lives as long as `self`.
        self.0.with(|value| unsafe { &*value })
    }
}

/// 128 bytes: two lines of 64, because the neighbouring line is fetched along with a missed one on x86-64, and one line
/// of the aarch64 cores that have lines of 128.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> core::ops::Deref for Padded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(corelane_loom)]
pub use barrier::Barrier;
#[cfg(corelane_loom)]
pub(crate) use barrier::outwait;
pub(crate) use barrier::{heavy_barrier, load_after_store, parks_are_bounded};

/// The asymmetric barrier between a publisher, which runs for every item, and a parker, which runs when there is
/// nothing to do. Each side writes its own word and then reads the other's. One of the two must see the other's write.
///
/// Two full fences would do, one of them for every item. Instead the parker pays for both. Membarrier makes every
/// running thread of the process pass a full fence at some point during the call.
///
/// - Either the publisher's store came before that point, and the parker sees it when it looks again,
/// - or the publisher's load comes after it, and sees the parker's flag.
///
/// Without `std` there is no system to ask, and no thread that parks. There a publisher pays for tasks by a full fence
/// of its own, if there can be any: one instruction of a few cycles on the small machines that this is for.
#[cfg(not(any(corelane_loom, corelane_shuttle)))]
mod barrier {
    use super::{AtomicU32, Relaxed};
    use core::sync::atomic::{Ordering::SeqCst, compiler_fence, fence};

    /// The publisher's half: loads the other's word after its own store, as far as the compiler goes.
    #[inline(always)]
    pub(crate) fn load_after_store(word: &AtomicU32) -> u32 {
        if cfg!(all(feature = "async", not(feature = "std"))) {
            fence(SeqCst);
        } else {
            compiler_fence(SeqCst);
        }
        word.load(Relaxed)
    }

    /// The parker's half. Where membarrier is refused, [`parks_are_bounded`] says so afterwards.
    pub(crate) fn heavy_barrier() {
        fence(SeqCst);
        if !parks_are_bounded() {
            membarrier::barrier();
        }
    }

    /// True where there is no membarrier, and from the moment on at which it was refused. The parker may then miss a
    /// store that was still on its way, so no park lasts longer than a millisecond.
    pub(crate) fn parks_are_bounded() -> bool {
        !membarrier::is_available()
    }

    #[cfg(all(feature = "std", target_os = "linux", not(miri)))]
    mod membarrier {
        use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

        /// What the kernel has said. No thread waits for another's first call: registering twice is registering once.
        static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
        const UNKNOWN: u8 = 0;
        const AVAILABLE: u8 = 1;
        /// For good: to this thread now or to another before, by a kernel without the call or by a sandbox.
        const REFUSED: u8 = 2;

        fn call(command: libc::c_int) -> libc::c_long {
            // SAFETY: membarrier reads and writes no memory of ours; a kernel that does not know the call or the
            // command answers with an error.
            unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
        }

        /// Registers the process on the first call.
        pub(super) fn is_available() -> bool {
            match ANSWER.load(Relaxed) {
                UNKNOWN => register(),
                answer => answer == AVAILABLE,
            }
        }

        #[cold]
        fn register() -> bool {
            let answer = if call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 { AVAILABLE } else { REFUSED };
            // A refusal that another thread has met meanwhile stays.
            ANSWER.compare_exchange(UNKNOWN, answer, Relaxed, Relaxed).map_or_else(|said| said, |_| answer) == AVAILABLE
        }

        /// A sandbox may refuse the call any time after the process was registered: from then on there is no
        /// membarrier.
        pub(super) fn barrier() {
            if call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 {
                ANSWER.store(REFUSED, Relaxed);
            }
        }
    }

    // Miri does not know the call.
    #[cfg(not(all(feature = "std", target_os = "linux", not(miri))))]
    mod membarrier {
        /// As good as available where a fence on both sides does without, and in WebAssembly, in which all accesses to
        /// atomics have one order.
        pub(super) fn is_available() -> bool {
            cfg!(any(not(feature = "std"), target_family = "wasm"))
        }

        pub(super) fn barrier() {}
    }
}

/// Models know no membarrier. A full fence on both sides stands for it. That is what the real barrier amounts to
/// whenever the parker runs it, and the algorithms rely on it in that case only.
///
/// But a fence after every publication does more than that, and hides an acquire or a release that is missing
/// elsewhere. So loom's models run with less, too.
#[cfg(corelane_loom)]
mod barrier {
    use super::{AtomicU32, Relaxed, Release};
    use alloc::boxed::Box;
    use core::cell::Cell;
    use core::sync::atomic::Ordering::SeqCst;
    use loom::sync::atomic::fence;

    /// What stands for the asymmetric barrier in a model.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Barrier {
        /// A full fence on both sides.
        Fences,
        /// The parker changes its word by a read-modify-write in any case. Here the publisher looks at it by one, too:
        /// the one that comes second sees the first, and what the first did before.
        ReadModifyWrite,
        /// Nothing: for models in which no end parks, and none closes before the other is done.
        Nothing,
        /// Nothing, and the algorithms know it: a system without membarrier, where only a task's waits are exact.
        Absent,
    }

    std::thread_local! {
        static BARRIER: Cell<Barrier> = const { Cell::new(Barrier::Fences) };
        /// How often threads of this execution have [waited](outwait).
        static WAITS: Cell<usize> = const { Cell::new(0) };
        static MEANWHILE: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
    }

    loom::thread_local! {
        /// How many of those waits this thread has come past.
        static PASSED: Cell<usize> = Cell::new(0);
    }

    impl Barrier {
        /// Runs this thread's models with this barrier.
        pub fn stands_in<R>(self, models: impl FnOnce() -> R) -> R {
            BARRIER.set(self);
            models()
        }

        /// To be called when an execution begins.
        pub fn begin() {
            WAITS.set(0);
            MEANWHILE.set(None);
        }

        /// The next thread of this execution that closes an end, and would wait for publishers where there is no
        /// membarrier, makes this call then.
        pub fn meanwhile(call: impl FnOnce() + 'static) {
            MEANWHILE.set(Some(Box::new(call)));
        }
    }

    pub(super) fn is_read_modify_write() -> bool {
        BARRIER.get() == Barrier::ReadModifyWrite
    }

    pub(crate) fn load_after_store(word: &AtomicU32) -> u32 {
        match BARRIER.get() {
            Barrier::Fences => fence(SeqCst),
            Barrier::ReadModifyWrite => return word.fetch_or(0, Release),
            Barrier::Nothing => {}
            Barrier::Absent => pass(),
        }
        word.load(Relaxed)
    }

    /// Sees what threads that have waited since had written before.
    fn pass() {
        if PASSED.with(|passed| passed.replace(WAITS.get())) != WAITS.get() {
            fence(SeqCst);
        }
    }

    /// A millisecond passes. After that no publisher overlooks what this thread has written before, and what was
    /// published by those that have overlooked it is to be seen: this thread does not see again what it has seen if
    /// there is newer. What a thread writes later may be overlooked again.
    pub(crate) fn outwait() {
        if let Some(call) = MEANWHILE.take() {
            call();
        }
        if parks_are_bounded() {
            WAITS.set(WAITS.get() + 1);
            pass();
            loom::thread::yield_now();
        }
    }

    pub(crate) fn heavy_barrier() {
        if BARRIER.get() == Barrier::Fences {
            fence(SeqCst);
        }
    }

    pub(crate) fn parks_are_bounded() -> bool {
        BARRIER.get() == Barrier::Absent
    }
}

/// Shuttle knows one order only.
#[cfg(corelane_shuttle)]
mod barrier {
    use super::{AtomicU32, Relaxed};

    pub(crate) fn load_after_store(word: &AtomicU32) -> u32 {
        word.load(Relaxed)
    }

    pub(crate) fn heavy_barrier() {}

    pub(crate) fn parks_are_bounded() -> bool {
        false
    }
}

/// One turn of a busy wait.
#[inline(always)]
pub(crate) fn spin_loop() {
    #[cfg(corelane_loom)]
    loom::thread::yield_now();
    #[cfg(corelane_shuttle)]
    shuttle::hint::spin_loop();
    #[cfg(not(any(corelane_loom, corelane_shuttle)))]
    core::hint::spin_loop();
}

/// Looks at words of 64 bits, which not every machine has.
#[cfg(any(target_has_atomic = "64", feature = "portable-atomic"))]
mod wide {
    use super::{Acquire, AtomicU64, Release, SeqCst};

    /// A full fence before a look whose answer may be that there is nothing. With it the answer is true at some moment
    /// of the call, and calls on several queues agree on one order.
    #[inline(always)]
    pub(crate) fn full_fence() {
        #[cfg(corelane_loom)]
        loom::sync::atomic::fence(SeqCst);
        #[cfg(not(any(corelane_loom, corelane_shuttle)))]
        core::sync::atomic::fence(SeqCst);
    }

    /// A load-acquire of a word that decides something.
    ///
    /// Loom looks for a race with the last access to a word only. So a thread that loads the word and then changes it
    /// hides another thread's load. Loom's models therefore run a second time with read-modify-writes in the loads'
    /// place, see [`Barrier::ReadModifyWrite`](crate::Barrier).
    #[inline(always)]
    pub(crate) fn look(word: &AtomicU64) -> u64 {
        #[cfg(corelane_loom)]
        if super::barrier::is_read_modify_write() {
            return word.fetch_or(0, Acquire);
        }
        word.load(Acquire)
    }

    /// A store-release of a word that others may [`look`] at. Where looks are read-modify-writes, loom would let one
    /// that came before write the old value back after it.
    #[inline(always)]
    pub(crate) fn set(word: &AtomicU64, value: u64) {
        #[cfg(corelane_loom)]
        if super::barrier::is_read_modify_write() {
            word.swap(value, Release);
            return;
        }
        word.store(value, Release);
    }

    /// As `look`, where all accesses to all such words have one order. Loom knows no such order but that of fences.
    #[inline(always)]
    pub(crate) fn strict_look(word: &AtomicU64) -> u64 {
        #[cfg(corelane_loom)]
        {
            full_fence();
            if super::barrier::is_read_modify_write() {
                return word.fetch_or(0, SeqCst);
            }
        }
        word.load(SeqCst)
    }
}
#[cfg(any(target_has_atomic = "64", feature = "portable-atomic"))]
pub(crate) use wide::{full_fence, look, set, strict_look};

/// As `look`, at a pointer that may be null.
#[cfg(feature = "papers")]
#[inline(always)]
pub(crate) fn look_at<T>(pointer: &AtomicPtr<T>) -> *mut T {
    #[cfg(corelane_loom)]
    if barrier::is_read_modify_write() {
        let null = core::ptr::null_mut();
        return pointer.compare_exchange(null, null, Acquire, Acquire).unwrap_or_else(|found| found);
    }
    pointer.load(Acquire)
}

/// As `set`, of a pointer that others may [`look_at`].
#[cfg(feature = "papers")]
#[inline(always)]
pub(crate) fn set_to<T>(pointer: &AtomicPtr<T>, value: *mut T) {
    #[cfg(corelane_loom)]
    if barrier::is_read_modify_write() {
        pointer.swap(value, Release);
        return;
    }
    pointer.store(value, Release);
}

/// Before another attempt of a lock-free operation, which was disturbed by another thread. Nothing, but for the model
/// checkers: to them an attempt may see what was there before for ever.
#[inline(always)]
pub(crate) fn retry() {
    #[cfg(any(corelane_loom, corelane_shuttle))]
    spin_loop();
}

/// A growing distance between the attempts of a lock-free operation that lose to other threads': twice as many pauses
/// each time. Each attempt moves the line that all of the threads need, also an attempt in vain, and between many
/// threads most are in vain.
#[derive(Debug)]
pub(crate) struct Backoff(u32);

impl Backoff {
    const MOST: u32 = 64;

    pub(crate) const fn new() -> Self {
        Self(1)
    }

    /// Before the next attempt.
    #[inline]
    pub(crate) fn spend(&mut self) {
        // To the model checkers one more look is enough.
        let pauses = if cfg!(any(corelane_loom, corelane_shuttle)) { 1 } else { self.0 };
        for _ in 0..pauses {
            spin_loop();
        }
        self.0 = Self::MOST.min(2 * self.0);
    }
}

/// One turn of a short wait for the other side's next few instructions; yields now and then, should it be preempted.
pub(crate) fn pause(looks: u32) {
    #[cfg(feature = "std")]
    if looks.is_multiple_of(64) {
        return yield_now();
    }
    let _ = looks;
    spin_loop();
}

/// Lets another thread run.
#[cfg(feature = "std")]
pub(crate) fn yield_now() {
    #[cfg(corelane_loom)]
    loom::thread::yield_now();
    #[cfg(corelane_shuttle)]
    shuttle::thread::yield_now();
    #[cfg(not(any(corelane_loom, corelane_shuttle)))]
    std::thread::yield_now();
}
