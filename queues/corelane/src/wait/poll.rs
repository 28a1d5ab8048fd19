//! File descriptors in a wait: `poll` over them, and over an event that wakes the thread for everything else.
//!
//! A wait asks its descriptors by `poll`, without a time, each time it looks at its ends and comes to the first of
//! them: one system call for all descriptors of a set. Their numbers are asked for each time, as another end may have
//! taken the place of the one before, and its number may be another file's. A thread that sleeps does so in `poll`,
//! too. The other end of a queue wakes it there by an [`Event`], an `eventfd`.

use core::mem::size_of;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;
use std::vec::Vec;

/// For the kernel; what is longer than 68 years is as good as for ever.
pub(super) fn timespec(left: Duration) -> libc::timespec {
    // SAFETY: zeroes are a value of it. C libraries differ in the names of its types, and in what lies between them.
    let mut limit: libc::timespec = unsafe { core::mem::zeroed() };
    limit.tv_sec = left.as_secs().min(i32::MAX as u64) as _;
    // Below 10^9, which every width of it holds.
    limit.tv_nsec = left.subsec_nanos() as _;
    limit
}

/// What makes `poll` return.
#[derive(Debug)]
pub(crate) struct Event {
    fd: OwnedFd,
    /// The process that has made it. A child that is forked has its number, too.
    process: u32,
}

impl Event {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no memory of ours is involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, which no other code knows.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, process: std::process::id() })
    }

    /// Whether no other process waits for it, or sets it.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Stays set until it is cleared. Fails only where it is set many times already.
    pub(crate) fn set(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes are read from `one`.
        unsafe { libc::write(self.fd.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes are written to `count`.
        unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
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
    /// The first is the event's while the thread sleeps.
    polls: Vec<libc::pollfd>,
}

/// `poll` passes over a negative one.
const NO_EVENT: libc::pollfd = pollfd(-1, libc::POLLIN);

const fn pollfd(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

impl Descriptors {
    pub(crate) fn new() -> Self {
        Self { polls: Vec::new() }
    }

    /// Makes room for so many.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.polls.clear();
        self.polls.reserve(count + 1);
    }

    /// Looks at these, and at no others from now on.
    pub(crate) fn ask(&mut self, descriptors: impl Iterator<Item = (RawFd, Interest)>) {
        self.polls.clear();
        self.polls.push(NO_EVENT);
        self.polls.extend(descriptors.map(|(fd, interest)| {
            pollfd(fd, if matches!(interest, Interest::Readable) { libc::POLLIN } else { libc::POLLOUT })
        }));
        self.poll(Some(Duration::ZERO));
    }

    /// Whether the one of this number, counted from 0, was ready when they were last [asked](Self::ask). One that has
    /// failed is, as a call on it will tell.
    pub(crate) fn is_ready(&self, number: usize) -> bool {
        self.polls[number + 1].revents != 0
    }

    /// Sleeps until one that was [asked](Self::ask) last is ready, the event is set, the time is up, or sooner for no
    /// reason.
    pub(crate) fn sleep(&mut self, event: &Event, timeout: Option<Duration>) {
        self.polls[0].fd = event.fd.as_raw_fd();
        self.poll(timeout);
        if self.polls[0].revents != 0 {
            event.clear();
        }
        self.polls[0] = NO_EVENT;
    }

    /// As [`sleep`](Self::sleep), for a short time, where there is no event.
    pub(crate) fn nap(&mut self, timeout: Duration) {
        self.poll(Some(timeout));
    }

    fn poll(&mut self, timeout: Option<Duration>) {
        let limit = timeout.map(timespec);
        let limit = limit.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: so many structures are there, and the time lives as long as the call; no signal mask.
        let ready =
            unsafe { libc::ppoll(self.polls.as_mut_ptr(), self.polls.len() as libc::nfds_t, limit, core::ptr::null()) };
        if ready < 0 {
            // No answer after a signal, or without memory. After any other error there will be none: they are more than
            // the process may have open, or a sandbox refuses the call. A call on each will tell more.
            let error = io::Error::last_os_error().raw_os_error();
            let all = !matches!(error, Some(libc::EINTR | libc::EAGAIN | libc::ENOMEM));
            for poll in &mut self.polls {
                poll.revents = if all && poll.fd >= 0 { libc::POLLNVAL } else { 0 };
            }
        }
    }
}
