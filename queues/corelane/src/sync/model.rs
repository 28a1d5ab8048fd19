//! What shuttle's models are made of: time, and atomics and memory at which shuttle can stop a thread.
//!
//! Shuttle runs the threads of a model one at a time, in an order that it draws. It changes from one thread to another
//! only where it is called. So a call precedes every access to an atomic, and to memory behind a cell.
//!
//! - Atomics are `core`'s, in size and place too, so that blocks and segments are as large as they really are. Each
//!   access takes effect at once and everywhere: there are no orderings here, which are loom's to check.
//! - An access to memory lasts until the next turn of its thread. Two that meet, one of them a write, are a race.
//! - A timed wait may be over at any moment, however long it is. Another thread's wake-up may come first, or come to a
//!   wait whose time is up. When the wait is over so much time has passed. Apart from that the clock goes on by a
//!   little with each look at it.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ops::{Add, AddAssign, Deref, DerefMut, Range, Sub};
use core::sync::atomic::Ordering;
use core::time::Duration;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::{self, Thread};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

/// Lets shuttle change to another thread.
pub fn step() {
    // Drops may come after the end of a model.
    if shuttle::current::try_get_current_task().is_some() {
        shuttle::sync::atomic::AtomicBool::new(false).load(Ordering::SeqCst);
    }
}

macro_rules! atomics {
    ($($name:ident $(<$t:ident>)?: $value:ty { $($op:ident)* })+) => {
        $(
            /// `core`'s, with a call of shuttle in front of each access.
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub struct $name $(<$t>)? (core::sync::atomic::$name $(<$t>)?);

            #[allow(missing_docs, reason = "as those of `core`")]
            impl $(<$t>)? $name $(<$t>)? {
                pub const fn new(value: $value) -> Self {
                    Self(core::sync::atomic::$name::new(value))
                }

                pub fn load(&self, order: Ordering) -> $value {
                    step();
                    self.0.load(order)
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    step();
                    self.0.store(value, order);
                }

                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    step();
                    self.0.swap(value, order)
                }

                pub fn compare_exchange(
                    &self,
                    old: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    step();
                    self.0.compare_exchange(old, new, success, failure)
                }

                /// Fails now and then for no reason, as it may.
                pub fn compare_exchange_weak(
                    &self,
                    old: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    step();
                    if thread_rng().gen_ratio(1, 16) {
                        return Err(self.0.load(failure));
                    }
                    self.0.compare_exchange(old, new, success, failure)
                }

                $(
                    pub fn $op(&self, value: $value, order: Ordering) -> $value {
                        step();
                        self.0.$op(value, order)
                    }
                )*
            }
        )+
    };
}

atomics! {
    AtomicBool: bool { fetch_or fetch_and }
    AtomicU8: u8 { fetch_or fetch_and }
    AtomicU16: u16 { fetch_add }
    AtomicU32: u32 { fetch_or fetch_and fetch_add fetch_sub }
    AtomicU64: u64 { fetch_or fetch_and fetch_add fetch_sub }
    AtomicUsize: usize { fetch_or fetch_and fetch_add fetch_sub }
    AtomicPtr<T>: *mut T {}
}

/// What is done to memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// An access that is not over yet.
struct Access {
    bytes: Range<usize>,
    kind: Kind,
}

std::thread_local! {
    // All threads of a model are one of the system's.
    static ACCESSES: RefCell<Vec<(u64, Access)>> = const { RefCell::new(Vec::new()) };
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    static CLOCK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The caller is about to access so much memory.
///
/// # Panics
/// If another thread is doing so, and one of them writes.
#[track_caller]
pub(crate) fn access<T>(start: *const T, count: usize, kind: Kind) {
    struct Over(u64);
    impl Drop for Over {
        fn drop(&mut self) {
            ACCESSES.with_borrow_mut(|accesses| accesses.retain(|(number, _)| *number != self.0));
        }
    }
    let bytes = start.addr()..start.addr() + count * size_of::<T>();
    let meets = |other: &Access| {
        (kind == Kind::Write || other.kind == Kind::Write)
            && bytes.start < other.bytes.end
            && other.bytes.start < bytes.end
    };
    let races = ACCESSES.with_borrow(|accesses| accesses.iter().any(|(_, other)| meets(other)));
    assert!(!races || std::thread::panicking(), "a race: two threads access the same memory, and one of them writes");
    let number = NUMBER.get();
    NUMBER.set(number + 1);
    ACCESSES.with_borrow_mut(|accesses| accesses.push((number, Access { bytes, kind })));
    let _over = Over(number);
    step();
}

/// How far the clock goes on between two looks at it.
const TICK: Duration = Duration::from_micros(1);
/// A longer wait has no end.
const LONGEST: Duration = Duration::from_secs(3600);

/// A time of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// The present.
    pub fn now() -> Self {
        step();
        CLOCK.set(CLOCK.get() + TICK);
        Self(CLOCK.get())
    }

    /// That much later, if there is such a time.
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).map(Self)
    }

    /// The time between an earlier time and this one; zero if it is later.
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time since then.
    pub fn elapsed(self) -> Duration {
        Self::now() - self
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        self.0 += duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

/// Shuttle's mutex, whose guards know it.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// The lock of a [`Mutex`], held until this is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    guard: shuttle::sync::MutexGuard<'a, T>,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// A mutex that is not locked.
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    /// As that of `std`.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        match self.0.lock() {
            Ok(guard) => Ok(MutexGuard { guard, mutex: self }),
            Err(poisoned) => Err(PoisonError::new(MutexGuard { guard: poisoned.into_inner(), mutex: self })),
        }
    }

    /// As that of `std`.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Ok(MutexGuard { guard, mutex: self }),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Poisoned(poisoned)) => {
                let guard = MutexGuard { guard: poisoned.into_inner(), mutex: self };
                Err(TryLockError::Poisoned(PoisonError::new(guard)))
            }
        }
    }

    /// As that of `std`.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A condition variable with timed waits, which shuttle's are not.
#[derive(Debug, Default)]
pub struct Condvar {
    /// The threads that wait, the first one first.
    waiters: Waiters,
}

type Waiters = Arc<std::sync::Mutex<VecDeque<Arc<Waiter>>>>;

#[derive(Debug)]
struct Waiter {
    over: core::sync::atomic::AtomicBool,
    thread: Thread,
}

impl Waiter {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// To be called when it is out of the list.
    fn wake(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

impl Condvar {
    /// No thread waits there yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// As that of `std`.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.sleep(guard, None)
    }

    /// As that of `std`, but for the part of its result that is not needed here.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        match self.sleep(guard, Some(timeout).filter(|&timeout| timeout < LONGEST)) {
            Ok(guard) => Ok((guard, ())),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), ()))),
        }
    }

    fn sleep<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Option<Duration>) -> LockResult<MutexGuard<'a, T>> {
        let MutexGuard { guard, mutex } = guard;
        // Others may have a turn before it is unlocked, and none from there to the park.
        drop(guard);
        let waiter = Arc::new(Waiter { over: false.into(), thread: thread::current() });
        list(&self.waiters).push_back(waiter.clone());
        if let Some(timeout) = timeout {
            let (waiters, waiter, end) = (self.waiters.clone(), waiter.clone(), CLOCK.get() + timeout);
            // Soon half of the time, otherwise when others have had turns.
            let turns = if thread_rng().gen_ratio(1, 2) { 0 } else { thread_rng().gen_range(1..16) };
            thread::spawn(move || time_out(&waiters, &waiter, end, turns));
        }
        while !waiter.is_over() {
            thread::park();
        }
        mutex.lock()
    }

    /// As that of `std`: any of the threads that wait.
    pub fn notify_one(&self) {
        step();
        let mut waiters = list(&self.waiters);
        if waiters.is_empty() {
            return;
        }
        let at = thread_rng().gen_range(0..waiters.len());
        let waiter = waiters.remove(at).expect("there are more");
        drop(waiters);
        waiter.wake();
    }

    /// As that of `std`.
    pub fn notify_all(&self) {
        step();
        let waiters = core::mem::take(&mut *list(&self.waiters));
        waiters.iter().for_each(|waiter| waiter.wake());
    }
}

/// Not shuttle's lock: it is never held from one turn to the next.
fn list(waiters: &Waiters) -> std::sync::MutexGuard<'_, VecDeque<Arc<Waiter>>> {
    waiters.try_lock().expect("one thread runs at a time")
}

/// The thread that ends another one's wait.
fn time_out(waiters: &Waiters, waiter: &Arc<Waiter>, end: Duration, turns: usize) {
    for _ in 0..turns {
        if waiter.is_over() {
            return;
        }
        thread::yield_now();
    }
    let mut list = list(waiters);
    if let Some(at) = list.iter().position(|other| Arc::ptr_eq(other, waiter)) {
        list.remove(at);
        drop(list);
        CLOCK.set(CLOCK.get().max(end));
        waiter.wake();
    }
}
