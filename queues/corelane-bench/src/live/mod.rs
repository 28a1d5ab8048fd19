//! What live capture costs: frames of one thread, through a pair of virtual interfaces, to a reader.
//!
//! - `host.rs` starts this program once more, in network namespaces of its own (`guest.rs`), and tells it what to play;
//!   all contenders are played by that one process;
//! - `frames.rs` holds the frames; `sender.rs` sends them from one CPU, evenly or as fast as it can; `receiver.rs` has
//!   the contenders, which have the other CPUs;
//! - `search.rs` finds the highest rate without a drop.
//!
//! # What counts
//!
//! The CPU time of the receiver is that of the whole process without the sender's thread. A virtual interface has no
//! interrupts: what the kernel does for a frame, down to the copy into the ring, it does within the sender's call, on
//! the sender's CPU. So that work counts to no contender; nor, where it is late, does that of the kernel's own threads.
//! What counts is all that a reader does: waiting for blocks, reading them, and what comes after.

#[cfg(target_os = "linux")]
mod frames;
#[cfg(target_os = "linux")]
mod guest;
mod host;
#[cfg(target_os = "linux")]
mod receiver;
mod search;
#[cfg(target_os = "linux")]
mod sender;

#[cfg(target_os = "linux")]
pub(crate) use guest::guest;
pub(crate) use host::Host;
pub(crate) use search::{Best, Search, highest};

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long frames may lie in the ring when the sender stops. More of them say that the reader is too slow.
const BEHIND: Duration = Duration::from_millis(100);

/// What reads the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Contender {
    /// Adds up the frames and their bytes.
    Counting {
        /// Whether its ring leaves out payload, as the monitor's does where no payload is looked into.
        headers_only: bool,
    },
    /// The monitor as `corelane monitor -i` runs it.
    Monitor {
        /// As `--analyzers` says.
        analyzers: usize,
        /// Whether payload is looked into and all events are written, as `--eve` does. They are dropped then.
        eve: bool,
    },
}

impl Contender {
    /// Whether its ring leaves out payload.
    pub(crate) fn headers_only(self) -> bool {
        match self {
            Contender::Counting { headers_only } => headers_only,
            Contender::Monitor { eve, .. } => !eve,
        }
    }
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Traffic {
    /// Many hosts, planted scans, and payload of zeros.
    Scans,
    /// HTTP, TLS and DNS.
    Conversations,
}

/// One run of a contender.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) contender: Contender,
    pub(crate) traffic: Traffic,
    /// Frames a second.
    pub(crate) rate: f64,
    /// How long frames are sent before the window begins.
    pub(crate) warm: Duration,
    /// The window: what is measured.
    pub(crate) window: Duration,
}

/// What came of it. `read` counts frames that the reader got from the ring.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Played {
    /// In the window.
    pub(crate) sent: u64,
    pub(crate) read: u64,
    pub(crate) wall: Duration,
    /// CPU time of all threads but the sender's, in the window.
    pub(crate) cpu: Duration,
    /// Frames sent at the end of the window and not read then.
    pub(crate) behind: u64,
    /// So many of them may be in a block of the ring that the kernel has not handed over.
    pub(crate) in_block: u64,
    /// From the first frame until the ring was empty: frames that were sent, those that reached the ring or found no
    /// room in it, and the latter.
    pub(crate) all_sent: u64,
    pub(crate) received: u64,
    pub(crate) dropped: u64,
}

impl Played {
    /// Frames a second that were sent.
    pub(crate) fn offered(&self) -> f64 {
        self.sent as f64 / self.wall.as_secs_f64()
    }

    /// Frames a second that were read.
    pub(crate) fn reached(&self) -> f64 {
        self.read as f64 / self.wall.as_secs_f64()
    }

    /// Frames that the kernel lost before they reached the ring.
    pub(crate) fn lost(&self) -> u64 {
        self.all_sent.saturating_sub(self.received)
    }

    /// Whether each frame reached the reader.
    pub(crate) fn is_whole(&self) -> bool {
        self.dropped == 0 && self.received == self.all_sent
    }

    /// Whether the reader could have gone on so. A ring of 64 MiB hides for some time that it is too slow.
    pub(crate) fn keeps_up(&self) -> bool {
        let behind = self.behind.saturating_sub(self.in_block);
        self.is_whole() && self.read > 0 && behind as f64 <= self.offered() * BEHIND.as_secs_f64()
    }
}

/// There is nothing to capture from elsewhere.
#[cfg(not(target_os = "linux"))]
pub(crate) fn guest(_quick: bool) -> Result<(), String> {
    Err(host::ONLY_LINUX.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAYED: Played = Played {
        sent: 200_000,
        read: 198_000,
        wall: Duration::from_secs(2),
        cpu: Duration::from_millis(20),
        behind: 2_000,
        in_block: 1_000,
        all_sent: 250_000,
        received: 250_000,
        dropped: 0,
    };

    #[test]
    fn a_reader_keeps_up_if_nothing_is_lost_and_little_waits() {
        assert_eq!((PLAYED.offered(), PLAYED.reached(), PLAYED.lost()), (100_000.0, 99_000.0, 0));
        assert!(PLAYED.is_whole() && PLAYED.keeps_up());
        assert!(Played { behind: 11_000, ..PLAYED }.keeps_up());
        for (worse, is_whole) in [
            (Played { dropped: 1, ..PLAYED }, false),
            (Played { received: 249_999, ..PLAYED }, false),
            (Played { behind: 11_001, ..PLAYED }, true),
            (Played { behind: 10_001, in_block: 0, ..PLAYED }, true),
            (Played { read: 0, ..PLAYED }, true),
        ] {
            assert!(!worse.keeps_up() && worse.is_whole() == is_whole, "{worse:?}");
        }
        assert_eq!(Played { received: 249_999, ..PLAYED }.lost(), 1);
    }
}
