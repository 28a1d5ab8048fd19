//! The place where a thread sleeps.

use crate::sync::{Arc, Instant, parks_are_bounded};
use core::fmt;
use std::time::Duration;

/// Where a waiting thread sleeps, and what the other end of a queue wakes.
///
/// Clones are the same parker. Ends of several queues that one thread serves may be given clones of one parker (see
/// [`Options`](crate::spsc::Options)), so that [`any`](super::any) can sleep for all of them at once. Only one thread may
/// sleep on a parker at a time; a second one would take the first one's wake-up.
#[derive(Clone)]
pub struct Parker(Arc<platform::Token>);

pub(crate) use platform::Token;

/// The longest park where a wake-up may be missed (no membarrier).
const BOUND: Duration = Duration::from_millis(1);

impl Parker {
    /// A parker that no queue knows yet.
    pub fn new() -> Self {
        Self(Arc::new(platform::Token::new()))
    }

    /// True where both are clones of one parker.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sleeps until [`unpark`](Self::unpark), the deadline, or sooner for no reason. An unpark that came before counts.
    pub(crate) fn park(&self, deadline: Option<Instant>) {
        let mut timeout = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if parks_are_bounded() {
            timeout = Some(timeout.map_or(BOUND, |left| left.min(BOUND)));
        }
        self.0.wait(timeout);
    }

    /// Wakes the thread that sleeps here, or spares the next one its sleep.
    pub(crate) fn unpark(&self) {
        self.0.notify();
    }
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Parker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parker").field(&Arc::as_ptr(&self.0)).finish()
    }
}

/// A binary token over a futex: `notify` sets it, `wait` takes it.
///
/// # Synchronization
/// `notify` sets the token with release and `wait` takes it with acquire, so what the waker did before is visible to the
/// woken. The kernel compares the word before it sleeps, so a token set between the swap and the call is not slept over.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(any(loom, shuttle))))]
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

        pub(crate) fn wait(&self, timeout: Option<Duration>) {
            if self.0.swap(0, Acquire) == 1 {
                return;
            }
            let limit = timeout.map(|left| libc::timespec {
                tv_sec: left.as_secs().try_into().unwrap_or(libc::time_t::MAX),
                tv_nsec: left.subsec_nanos().into(),
            });
            let limit = limit.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
            // SAFETY: the word lives as long as `self`, the time (relative, for FUTEX_WAIT) as long as the call. Every
            // outcome, an error included, is a wake-up that may be spurious.
            unsafe {
                libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 0, limit);
            }
            self.0.swap(0, Acquire);
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

/// The same token over a mutex and a condition variable: other systems (those of 32 bits among them, where the kernel and
/// the C library may differ about the width of a time), and the model checkers.
#[cfg(any(not(all(target_os = "linux", target_pointer_width = "64")), loom, shuttle))]
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

        pub(crate) fn notify(&self) {
            *self.set.lock().expect("nothing panics under this lock") = true;
            self.changed.notify_one();
        }
    }
}
