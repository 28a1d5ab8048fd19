//! Errors of a live capture, and news of its interface.

use std::fmt;
use std::io;

use super::{LONGEST_SNAPLEN, SHORTEST_SNAPLEN};

/// An interface cannot be captured from.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// There is no interface of that name.
    NoInterface {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        available: Vec<String>,
    },
    /// This process may not capture.
    NotPermitted {
        /// The call that was refused.
        call: &'static str,
        /// The message of the system.
        error: io::Error,
    },
    /// The kernel has no memory for the ring, or no ring can be so large.
    RingTooLarge {
        /// Bytes of the ring.
        bytes: u64,
        /// The message of the system; `None` if it was not asked.
        error: Option<io::Error>,
    },
    /// The kernel refused the filter.
    FilterRefused {
        /// The number of its instructions.
        instructions: usize,
        /// The message of the system.
        error: io::Error,
    },
    /// The number of bytes to keep of a frame is out of range.
    BadSnaplen(u32),
    /// The interface's frames have a header that is not known here.
    UnknownLink {
        /// The interface.
        name: String,
        /// The kernel's number (`ARPHRD_`) for it.
        kind: u16,
    },
    /// Any other call failed.
    System {
        /// The call, or the option that was set.
        call: &'static str,
        /// The message of the system.
        error: io::Error,
    },
}

impl LiveError {
    /// The error of a call, by the error that the system returned.
    pub(super) fn of(call: &'static str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted { call, error },
            _ => Self::System { call, error },
        }
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInterface { name, available } if available.is_empty() => {
                write!(f, "there is no interface {name}, and no other one that could be listed")
            }
            Self::NoInterface { name, available } => {
                write!(f, "there is no interface {name}; there are {}", available.join(", "))
            }
            Self::NotPermitted { call, error } => write!(
                f,
                "not permitted to capture ({call}: {error}); it needs the capability CAP_NET_RAW: run as root, give it \
                 to the program by `setcap cap_net_raw+ep PROGRAM`, or to a service by \
                 `AmbientCapabilities=CAP_NET_RAW`"
            ),
            Self::RingTooLarge { bytes, error } => {
                write!(f, "a ring of {bytes} bytes is too large")?;
                match error {
                    Some(error) => write!(f, " for the kernel's memory ({error})")?,
                    None => f.write_str(": the kernel makes none of 4 GiB or more")?,
                }
                f.write_str("; ask for a smaller one")
            }
            Self::FilterRefused { instructions, error } => {
                write!(f, "the kernel refuses the filter of {instructions} instructions ({error}); ")?;
                f.write_str("check that it ends with a return, jumps only forwards, and has at most 4096 instructions")
            }
            Self::BadSnaplen(snaplen) => write!(
                f,
                "{snaplen} bytes of a frame cannot be kept; ask for {SHORTEST_SNAPLEN} to {LONGEST_SNAPLEN} bytes"
            ),
            Self::UnknownLink { name, kind } => write!(
                f,
                "frames of the interface {name} (hardware type {kind}) cannot be decoded; \
                 capture from an Ethernet, loopback, PPP or IP tunnel interface"
            ),
            Self::System { call, error } => write!(f, "capturing failed: {call}: {error}"),
        }
    }
}

impl std::error::Error for LiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotPermitted { error, .. } | Self::FilterRefused { error, .. } | Self::System { error, .. } => {
                Some(error)
            }
            Self::RingTooLarge { error: Some(error), .. } => Some(error),
            _ => None,
        }
    }
}

/// What became of the interface. None of it ends the capture.
#[derive(Debug)]
#[non_exhaustive]
pub enum News {
    /// It was set down, or has no carrier. No frames come.
    Down,
    /// It is up again, and frames come.
    Up,
    /// It was deleted, or moved to another network namespace. It is looked for by its name from now on.
    Gone,
    /// It is there again, with a new ring. Frames that it saw before are not known.
    Back,
    /// It is there again, but cannot be captured from. That is retried, and not reported again before [`News::Back`].
    Refused(LiveError),
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down => f.write_str("the interface is down; waiting for it"),
            Self::Up => f.write_str("the interface is up"),
            Self::Gone => f.write_str("the interface is gone; waiting for one of its name"),
            Self::Back => f.write_str("the interface is back"),
            Self::Refused(error) => write!(f, "the interface is back, but {error}; trying again"),
        }
    }
}
