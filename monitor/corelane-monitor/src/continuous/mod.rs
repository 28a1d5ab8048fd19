//! The scan detector for runs without an end: its memory does not grow with time.
//!
//! Time passes in [steps](crate::Steps), and only the end of a step expires anything. So the answer depends on the
//! packets alone, and neither on the number of stages nor on how long the wire was silent.
//!
//! 1. A stage (`detector.rs`) holds flows, attempts and asked UDP keys of whole partitions, as the
//!    [SubAnalyzer](crate::SubAnalyzer) does, by the same rules. It forgets each some time after its last packet or its
//!    failure. It reports each failure in the step of its time. Packets that say nothing new are only counted
//!    (`recent.rs`).
//! 2. The output stage (`scans.rs`) takes the failures of a step when all stages have passed it, in order of time. It
//!    counts them by group and says which groups are scans.
//!
//! # Why the answer is always the same
//!
//! - What is over is judged by steps alone when it is met: an entry that is over counts as new. When it is removed
//!   from its table changes nothing but memory.
//! - The failures of a step are sorted without ties before they count.
//! - Where a limit of memory is met, the oldest leave a table first, by their times.

mod answers;
mod begun;
mod detector;
mod due;
mod recent;
mod scans;

use crate::steps::step_of;

pub(crate) use detector::UDP_FAILS_NS;
pub(crate) use detector::{Detector, SIFTED, SLOTS};
pub use scans::{ScanEvent, ScanState};
pub(crate) use scans::{Scans, ScansState};

/// The settings of a run without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuous {
    /// How long a failure counts after its time, in seconds.
    pub forget_s: u64,
    /// How long a scan that was alerted is only counted, in seconds.
    pub suppress_s: u64,
    /// The seconds between two [snapshots](crate::Found::Snapshot).
    pub snapshot_s: u64,
    /// Whether the failures themselves are given out, as [`Found::Step`](crate::Found::Step).
    pub reports: bool,
    /// Bytes of tables whose memory is made before the first packet, as an interface does not wait while the system
    /// finds a page: [`READY`](Self::READY) for one. No more than a quarter of what all tables may have.
    pub ready_bytes: u64,
}

impl Continuous {
    /// Bytes that are made ready for an interface.
    pub const READY: u64 = 64 << 20;

    /// The number of the aligned window of [`forget_s`](Self::forget_s) that a time is in.
    pub(crate) fn window(&self, time_ns: u64) -> u64 {
        step_of(time_ns) / self.forget_s.max(1)
    }

    /// Whether a failure of this time counts no longer in the step `now`.
    fn forgets(&self, now: u64, time_ns: u64) -> bool {
        now.saturating_sub(step_of(time_ns)) > self.forget_s
    }
}

impl Default for Continuous {
    /// Failures count for 15 minutes, scans are alerted once an hour, and there is a snapshot every 10 seconds.
    /// No memory is made ready.
    fn default() -> Self {
        Continuous { forget_s: 15 * 60, suppress_s: 60 * 60, snapshot_s: 10, reports: false, ready_bytes: 0 }
    }
}
