//! File descriptors in a wait: `poll` over them, and over an event that wakes the thread for everything else.
//!
//! A wait asks its descriptors by `poll`, without a time, each time it looks at its ends and comes to the first of
//! them: one system call for all descriptors of a set. A thread that sleeps does so in `poll`, too. The other end of a
//! queue wakes it there by an [`Event`], an `eventfd`.

use core::mem::size_of;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;
use std::vec::Vec;

/// For the kernel; more than it has a number for is as good as for ever.
pub(super) fn timespec(left: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        // Below 10^9, which every width of it holds.
        tv_nsec: left.subsec_nanos() as _,
    }
}

/// What makes `poll` return.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no memory of ours is involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, which no other code knows.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Stays set until it is cleared. Fails only where it is set many times already.
    pub(crate) fn set(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes are read from `one`.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes are written to `count`.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
    }
}

/// What a descriptor is to be ready for.
#[derive(Clone, Copy, Debug)]
pub enum Interest {
    /// A read does not block.
    Readable,
    /// A write does not block.
    Writable,
}

/// The descriptors of a set.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The first is the event's. One that was removed is negative, which `poll` passes over.
    polls: Vec<libc::pollfd>,
}

const IGNORED: RawFd = -1;

fn pollfd(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

impl Descriptors {
    pub(crate) fn new(event: &Event) -> Self {
        Self { polls: Vec::from([pollfd(event.0.as_raw_fd(), libc::POLLIN)]) }
    }

    /// Returns its place.
    pub(crate) fn add(&mut self, fd: RawFd, interest: Interest) -> usize {
        let events = match interest {
            Interest::Readable => libc::POLLIN,
            Interest::Writable => libc::POLLOUT,
        };
        let free = self.polls.iter().position(|poll| poll.fd == IGNORED);
        match free {
            Some(at) => {
                self.polls[at] = pollfd(fd, events);
                at
            }
            None => {
                self.polls.push(pollfd(fd, events));
                self.polls.len() - 1
            }
        }
    }

    pub(crate) fn remove(&mut self, at: usize) {
        self.polls[at] = pollfd(IGNORED, 0);
    }

    /// Whether it was ready, or has failed, which a call on it will tell, when [`ask`](Self::ask) was called last.
    pub(crate) fn is_ready(&self, at: usize) -> bool {
        self.polls[at].revents != 0
    }

    /// Looks at all of them.
    pub(crate) fn ask(&mut self) {
        self.poll(Some(Duration::ZERO));
    }

    /// Sleeps until one is ready, the event is set, the time is up, or sooner for no reason.
    pub(crate) fn sleep(&mut self, event: &Event, timeout: Option<Duration>) {
        self.poll(timeout);
        if self.is_ready(0) {
            event.clear();
        }
    }

    fn poll(&mut self, timeout: Option<Duration>) {
        let limit = timeout.map(timespec);
        let limit = limit.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: so many structures are there, and the time lives as long as the call; no signal mask.
        let ready =
            unsafe { libc::ppoll(self.polls.as_mut_ptr(), self.polls.len() as libc::nfds_t, limit, core::ptr::null()) };
        if ready < 0 {
            // More than the process may have open: a call on each will tell more. Otherwise a signal, or no memory.
            let all = io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
            for poll in &mut self.polls[1..] {
                poll.revents = if all && poll.fd != IGNORED { libc::POLLNVAL } else { 0 };
            }
            self.polls[0].revents = 0;
        }
    }
}
