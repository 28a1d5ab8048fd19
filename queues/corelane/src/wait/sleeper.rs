//! Where a thread or a task sleeps, and what wakes it.
//!
//! Every wait that sleeps, in any family, does so at a [`Sleeper`]. A thread has one for its waits, and one more for
//! those of a [`Select`](super::Select) that waits for file descriptors as well, where it is woken in `poll`. A select
//! whose wait is a task's borrows one of a third kind, which wakes the task.
//!
//! # How it works
//!
//! 1. A place to sleep is made when one is first needed, and never freed: a thread that ends leaves it to the next. A
//!    waker that comes late still finds one. If another thread sleeps there by then, it is woken for nothing, looks at
//!    what it waits for, and sleeps again.
//! 2. A thread takes its place along for each wait, and puts it back after that. One that is about to end, and has
//!    nowhere to put it, leaves it to the next thread each time.
//! 3. By the descriptor of a place a thread is woken in `poll`. It is closed when the thread ends: it is a [`Late`]
//!    value, as a waker that comes late must not write to a number that is another file's. A child that was forked
//!    makes one of its own, as both processes would be woken by the other's.
//! 4. An end that is about to park writes its thread's sleeper into its [`SleeperCell`] and raises its flag after that.
//!    The thread that takes the flag down reads the cell.
//!
//! So there are, of each kind of place, as many as threads (or sets that a task has waited with) ever had one at once,
//! each of less than 100 bytes; and a descriptor for each thread that lives and has waited with descriptors.
//!
//! # Synchronization
//!
//! - cell, store-release (its owner) → load-acquire (the waker): the place is made before the waker looks into it. The
//!   flag does not say so: a waker that comes late has taken it down for one wait, and finds the sleeper of a later
//!   one, of a thread to which the end has gone on meanwhile.
//! - flag, which its owner raises after it has written the cell (release) and the waker takes down before it reads
//!   (acquire): the waker finds that sleeper, or a later one.
//! - What the waker did before is visible to the woken: by the token, by the descriptor's write and read, or by
//!   [`WakerCell`].

#[cfg(feature = "async")]
use super::WakerCell;
#[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
use super::{late::Late, poll::Event};
use crate::sync::{Acquire, AtomicPtr, Instant, Release, Written, parks_are_bounded};
use alloc::boxed::Box;
#[cfg(not(any(corelane_loom, corelane_shuttle)))]
use core::cell::Cell;
use core::fmt;
use core::ptr;
#[cfg(any(feature = "async", not(any(corelane_loom, corelane_shuttle))))]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
#[cfg(any(feature = "async", not(any(corelane_loom, corelane_shuttle))))]
use std::vec::Vec;

pub(crate) use platform::Token;

/// The longest park where a wake-up may be missed (no membarrier), or cannot come (no descriptor to be woken by).
pub(crate) const BOUND: Duration = Duration::from_millis(1);

/// How long a park may last that is to end by then: no longer than [`BOUND`] where a wake-up may be missed. `None` is
/// for ever.
pub(crate) fn park_limit(deadline: Option<Instant>) -> Option<Duration> {
    let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
    if parks_are_bounded() { Some(left.map_or(BOUND, |left| left.min(BOUND))) } else { left }
}

/// Memory that a sleeper is the address of, as [`Written`].
struct Place {
    token: Token,
    kind: Kind,
}

/// How a thread that sleeps there is woken, besides by the token. The kind of a place never changes.
enum Kind {
    Thread,
    /// A thread that sleeps in `poll`, where it looks at this descriptor, too.
    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    Poll(Late<Event>),
    #[cfg(feature = "async")]
    Task(WakerCell),
}

/// A place to sleep that is never freed.
#[derive(Clone, Copy)]
pub struct Sleeper(&'static Written<Place>);

impl Sleeper {
    fn new(kind: Kind) -> Self {
        Self(Box::leak(Box::new(Written::new(Place { token: Token::new(), kind }))))
    }

    /// Sleeps until [`unpark`](Self::unpark), the deadline, or sooner for no reason. An unpark that came before counts.
    pub(crate) fn park(self, deadline: Option<Instant>) {
        // Loom knows no time: there such a park is over once other threads have had their turns.
        #[cfg(corelane_loom)]
        if parks_are_bounded() {
            return crate::sync::yield_now();
        }
        self.0.token.wait(park_limit(deadline));
    }

    /// Wakes the thread that sleeps here, or spares the next one its sleep.
    pub(crate) fn unpark(self) {
        match &self.0.kind {
            Kind::Thread => self.0.token.notify(),
            #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
            Kind::Poll(event) => drop(event.with(Event::set)),
            #[cfg(feature = "async")]
            Kind::Task(waker) => {
                self.0.token.notify();
                waker.wake();
            }
        }
    }

    /// What a thread that sleeps in `poll` is woken by, if that is where it sleeps.
    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    pub(crate) fn event(self) -> Option<&'static Late<Event>> {
        match &self.0.kind {
            Kind::Poll(event) => Some(event),
            _ => None,
        }
    }

    /// The waker of a sleeper that [`Borrowed::task`] has made.
    #[cfg(feature = "async")]
    pub(crate) fn waker(self) -> Option<&'static WakerCell> {
        match &self.0.kind {
            Kind::Task(waker) => Some(waker),
            _ => None,
        }
    }

    /// Whether it was woken since this was last asked.
    #[cfg(feature = "async")]
    pub(crate) fn was_woken(self) -> bool {
        self.0.token.take()
    }
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl fmt::Debug for Sleeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sleeper").field(&ptr::from_ref(self.0)).finish()
    }
}

/// A sleeper that no other thread sleeps at. It goes to the next thread when this is dropped.
#[cfg(any(feature = "async", not(any(corelane_loom, corelane_shuttle))))]
#[derive(Debug)]
pub(crate) struct Borrowed(Sleeper);

/// Unused sleepers.
#[cfg(any(feature = "async", not(any(corelane_loom, corelane_shuttle))))]
static FREE: Mutex<Vec<Sleeper>> = Mutex::new(Vec::new());

#[cfg(any(feature = "async", not(any(corelane_loom, corelane_shuttle))))]
impl Borrowed {
    fn find(is_it: impl Fn(&Kind) -> bool) -> Option<Self> {
        if cfg!(any(corelane_loom, corelane_shuttle)) {
            return None;
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let at = free.iter().position(|sleeper| is_it(&sleeper.0.kind))?;
        Some(Self(free.swap_remove(at)))
    }

    #[cfg(not(any(corelane_loom, corelane_shuttle)))]
    fn thread() -> Self {
        Self::find(|kind| matches!(kind, Kind::Thread)).unwrap_or_else(|| Self(Sleeper::new(Kind::Thread)))
    }

    /// For a thread that sleeps in `poll`.
    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    fn poll() -> std::io::Result<Self> {
        let event = Event::new()?;
        let found = Self::find(|kind| matches!(kind, Kind::Poll(event) if event.is_empty()));
        let place = found.unwrap_or_else(|| Self(Sleeper::new(Kind::Poll(Late::new()))));
        place.0.event().expect("of that kind").put(event);
        Ok(place)
    }

    /// Whether another process may sleep there.
    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    fn is_ours(&self) -> bool {
        self.0.event().and_then(|event| event.with(Event::is_ours)).unwrap_or(false)
    }

    /// For a task.
    #[cfg(feature = "async")]
    pub(crate) fn task() -> Self {
        Self::find(|kind| matches!(kind, Kind::Task(_)))
            .unwrap_or_else(|| Self(Sleeper::new(Kind::Task(WakerCell::new()))))
    }

    #[cfg(feature = "async")]
    pub(crate) fn sleeper(&self) -> Sleeper {
        self.0
    }
}

#[cfg(any(feature = "async", not(any(corelane_loom, corelane_shuttle))))]
impl Drop for Borrowed {
    fn drop(&mut self) {
        if cfg!(any(corelane_loom, corelane_shuttle)) {
            return;
        }
        #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
        if let Some(event) = self.0.event() {
            event.take_away();
        }
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// This thread's sleeper, for one wait. The thread keeps it after that.
#[cfg(not(any(corelane_loom, corelane_shuttle)))]
pub(crate) struct Own {
    /// None while it is dropped.
    borrowed: Option<Borrowed>,
    home: &'static Home,
}

#[cfg(not(any(corelane_loom, corelane_shuttle)))]
type Home = std::thread::LocalKey<Cell<Option<Borrowed>>>;

#[cfg(not(any(corelane_loom, corelane_shuttle)))]
std::thread_local! {
    static THREAD: Cell<Option<Borrowed>> = const { Cell::new(None) };
    #[cfg(target_os = "linux")]
    static POLL: Cell<Option<Borrowed>> = const { Cell::new(None) };
}

#[cfg(not(any(corelane_loom, corelane_shuttle)))]
impl Own {
    /// To sleep by [`park`](Sleeper::park).
    pub(crate) fn new() -> Self {
        let kept = THREAD.try_with(Cell::take).ok().flatten();
        Self { borrowed: Some(kept.unwrap_or_else(Borrowed::thread)), home: &THREAD }
    }

    /// To sleep in `poll`. Where the process can have no descriptor more to be woken by: as [`new`](Self::new).
    #[cfg(target_os = "linux")]
    pub(crate) fn in_poll() -> Self {
        let kept = POLL.try_with(Cell::take).ok().flatten().filter(Borrowed::is_ours);
        match kept.map_or_else(Borrowed::poll, Ok) {
            Ok(borrowed) => Self { borrowed: Some(borrowed), home: &POLL },
            Err(_) => Self::new(),
        }
    }

    pub(crate) fn sleeper(&self) -> Sleeper {
        self.borrowed.as_ref().expect("it is there until the drop").0
    }
}

#[cfg(not(any(corelane_loom, corelane_shuttle)))]
impl Drop for Own {
    fn drop(&mut self) {
        let borrowed = self.borrowed.take();
        // In a thread that is about to end the call is dropped, and with it what goes to the next thread.
        let _ = self.home.try_with(move |home| home.set(borrowed));
    }
}

/// A model's is made in the model, for each wait.
#[cfg(any(corelane_loom, corelane_shuttle))]
pub(crate) struct Own(Sleeper);

#[cfg(any(corelane_loom, corelane_shuttle))]
impl Own {
    pub(crate) fn new() -> Self {
        Self(Sleeper::new(Kind::Thread))
    }

    pub(crate) fn sleeper(&self) -> Sleeper {
        self.0
    }
}

/// Where an end says which thread sleeps for it. That end writes it; a thread that wakes the end reads it.
pub(crate) struct SleeperCell(AtomicPtr<Written<Place>>);

impl SleeperCell {
    /// Of an end for which no thread ever slept.
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// To be called before the flag is raised that says that a thread sleeps.
    pub(crate) fn set(&self, sleeper: Sleeper) {
        self.0.store(ptr::from_ref(sleeper.0).cast_mut(), Release);
    }

    /// To be called when the flag is down again.
    pub(crate) fn clear(&self) {
        self.0.store(ptr::null_mut(), crate::sync::Relaxed);
    }

    /// To be called by the thread that has taken that flag down, and so sees the sleeper of it, or of a later one.
    pub(crate) fn get(&self) -> Option<Sleeper> {
        Self::sleeper(self.0.load(Acquire))
    }

    /// Puts a sleeper in, or none, and takes out the one before: by a read-modify-write that both sides may make, so
    /// that of two the second sees all that the thread of the first did before.
    pub(crate) fn swap(&self, sleeper: Option<Sleeper>) -> Option<Sleeper> {
        let place = sleeper.map_or(ptr::null_mut(), |sleeper| ptr::from_ref(sleeper.0).cast_mut());
        Self::sleeper(self.0.swap(place, crate::sync::AcqRel))
    }

    fn sleeper(place: *mut Written<Place>) -> Option<Sleeper> {
        // SAFETY: null, or the address of a place, which exists for ever (`Sleeper::new` leaks it).
        unsafe { place.as_ref() }.map(Sleeper)
    }
}

/// A binary token over a futex: `notify` sets it, `wait` takes it.
///
/// # Synchronization
/// `notify` sets the token with release and `wait` takes it with acquire, so what the waker did before is visible to
/// the woken. The kernel compares the word before it sleeps, so a token set between the swap and the call is not slept
/// over.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(any(corelane_loom, corelane_shuttle))))]
mod platform {
    use core::sync::atomic::{
        AtomicU32,
        Ordering::{Acquire, Release},
    };
    use std::time::Duration;

    pub(crate) struct Token(AtomicU32);

    impl Token {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(0))
        }

        /// Takes the token, if it is set.
        pub(crate) fn take(&self) -> bool {
            self.0.swap(0, Acquire) == 1
        }

        pub(crate) fn wait(&self, timeout: Option<Duration>) {
            if self.take() {
                return;
            }
            let limit = timeout.map(crate::wait::poll::timespec);
            let limit = limit.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
            // SAFETY: the word lives as long as `self`, the time (relative, for FUTEX_WAIT) as long as the call. Every
            // outcome, an error included, is a wake-up that may be spurious.
            unsafe {
                libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 0, limit);
            }
            self.take();
        }

        pub(crate) fn notify(&self) {
            if self.0.swap(1, Release) == 0 {
                // SAFETY: the word lives as long as `self`.
                unsafe {
                    libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
                }
            }
        }
    }
}

/// The same token over a mutex and a condition variable: other systems (those of 32 bits among them, where the kernel
/// and the C library may differ about the width of a time), and the model checkers.
#[cfg(any(not(all(target_os = "linux", target_pointer_width = "64")), corelane_loom, corelane_shuttle))]
mod platform {
    use crate::sync::{Condvar, Mutex};
    use std::time::Duration;

    pub(crate) struct Token {
        set: Mutex<bool>,
        changed: Condvar,
    }

    impl Token {
        pub(crate) fn new() -> Self {
            Self { set: Mutex::new(false), changed: Condvar::new() }
        }

        pub(crate) fn wait(&self, timeout: Option<Duration>) {
            let mut set = self.set.lock().expect("nothing panics under this lock");
            if !*set {
                set = match timeout {
                    None => self.changed.wait(set).expect("nothing panics under this lock"),
                    Some(left) => self.changed.wait_timeout(set, left).expect("nothing panics under this lock").0,
                };
            }
            *set = false;
        }

        /// Takes the token, if it is set.
        #[cfg(feature = "async")]
        pub(crate) fn take(&self) -> bool {
            core::mem::take(&mut *self.set.lock().expect("nothing panics under this lock"))
        }

        pub(crate) fn notify(&self) {
            *self.set.lock().expect("nothing panics under this lock") = true;
            self.changed.notify_one();
        }
    }
}
