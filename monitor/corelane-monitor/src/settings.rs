//! The settings of the analysis itself.

use crate::network::Ignored;
use crate::state_report::Tried;
use crate::talkers::Address;
use std::num::NonZeroU64;

/// Settings for counting sources: see [`Report::sources`](crate::Report::sources).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// The bytes that a source sends for each state report, M in section III-A3 of the MCRingBuffer paper. The number
    /// of reports depends on it, the result does not.
    pub every: NonZeroU64,
    /// The number of sources to list.
    pub top: usize,
}

/// The settings of one analysis. The results depend only on these and on the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// An answer this long after the SYN, or later, is too late.
    pub syn_timeout_ns: u64,
    /// More distinct failed ports than this, of one destination by one source, are a vertical scan.
    pub vertical_threshold: u64,
    /// More distinct failed destinations than this, on one port by one source, are a horizontal scan.
    pub horizontal_threshold: u64,
    /// Whether to find scans by FIN, NULL, Xmas and UDP [probes](crate::Probe). If not, the work for them is saved.
    pub probes: bool,
    /// Whether [tunnels](corelane_net::decode::innermost) are opened. Then a packet's innermost IP header decides what
    /// it is, else the outermost.
    pub tunnels: bool,
    /// What is ignored in scans.
    pub ignored: Vec<Ignored>,
    /// Whether and how to count the connections and bytes of each source. `None` saves the work for it.
    pub counting: Option<Counting>,
    /// The number of top talkers to find; 0 saves the work for them.
    pub top: usize,
    /// The most bytes of the tables and of everything that follows from them; `None` is no limit. See
    /// [`limit_memory`](crate::limit_memory).
    pub table_bytes: Option<u64>,
    /// Says which address pairs share a partition, and so the room of it. Results depend on it only where room was
    /// wanting; the order of events of one moment and their flows' names depend on it too. For packets that come from
    /// anywhere it should be drawn: a sender that knows it can fill one partition.
    pub seed: u64,
}

impl Settings {
    /// Whether this attempt or probe is ignored.
    #[inline]
    pub(crate) fn ignores<A: Address>(&self, tried: &Tried<A>) -> bool {
        let Tried { source, destination, port, .. } = *tried;
        self.ignored.iter().any(|ignored| ignored.has(source.ip(), destination.ip(), port))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            syn_timeout_ns: 3_000_000_000,
            vertical_threshold: 20,
            horizontal_threshold: 20,
            probes: true,
            tunnels: false,
            ignored: Vec::new(),
            counting: None,
            top: 10,
            table_bytes: None,
            seed: 0,
        }
    }
}
