//! What the user can choose about the analysis itself.

use crate::network::Ignored;
use std::num::NonZeroU64;

/// When a connection attempt counts as failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// The attempt is refused by an RST, or has no answer within the time-out, or none before the capture ends.
    #[default]
    Timed,
    /// Section III-B of the MCRingBuffer paper: a source sends a SYN to a destination and port and the capture holds no
    /// SYN-ACK for them, whenever. There is no time-out and an RST changes nothing, so all failures are "unanswered".
    ///
    /// The paper gives a failure no time. Here it is the earliest time of the key's SYNs: the only moment such an
    /// attempt has, and one that does not depend on the order in which the packets are looked at.
    Paper,
}

/// How sources are counted: see [`Report::sources`](crate::Report::sources).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// A state report for each so many bytes that a source sent, M in section III-A3 of the MCRingBuffer paper. The
    /// result does not depend on it; how many reports there are does.
    pub every: NonZeroU64,
    /// How many sources to list.
    pub top: usize,
}

/// The settings of one analysis. Results are a function of these and of the packets, of nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// An answer this long after the SYN, or later, is too late.
    pub syn_timeout_ns: u64,
    /// More distinct failed ports than this, of one destination by one source, are a vertical scan.
    pub vertical_threshold: u64,
    /// More distinct failed destinations than this, on one port by one source, are a horizontal scan.
    pub horizontal_threshold: u64,
    /// What "failed" means.
    pub rule: Rule,
    /// Whether to look for scans by FIN, NULL, Xmas and UDP [probes](crate::Probe). Without, the work for them is
    /// saved.
    pub probes: bool,
    /// The networks that count for no scan.
    pub ignored: Ignored,
    /// Whether to count what each source began and sent. Without, the work for it is saved.
    pub counting: Option<Counting>,
    /// How many top talkers to find. With 0 the work for them is saved.
    pub top: usize,
    /// Bytes that the tables, and what follows from them, may come to; `None` is as many as they need. See
    /// [`limit_memory`](crate::limit_memory).
    pub table_bytes: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            syn_timeout_ns: 3_000_000_000,
            vertical_threshold: 20,
            horizontal_threshold: 20,
            rule: Rule::Timed,
            probes: true,
            ignored: Ignored::none(),
            counting: None,
            top: 10,
            table_bytes: None,
        }
    }
}
