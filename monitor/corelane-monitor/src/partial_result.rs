//! The message from a SubAnalyzer to the MainAnalyzer when the capture is over.

use crate::probe::Probe;
use crate::report::{Alert, ProbeScan};
use crate::room::Refused;
use crate::talkers::Talkers;
use std::net::IpAddr;

/// The results of a [`SubAnalyzer`](crate::SubAnalyzer), which the [`MainAnalyzer`](crate::MainAnalyzer) joins.
#[derive(Clone, Debug)]
pub struct PartialResult {
    pub(crate) packets: u64,
    /// TCP packets, and in `malformed` packets malformed behind their addresses: only a stage that decodes counts
    /// these.
    pub(crate) tcp: u64,
    pub(crate) malformed: u64,
    pub(crate) flows: u64,
    pub(crate) pairs: u64,
    pub(crate) rejected: u64,
    pub(crate) unanswered: u64,
    pub(crate) refused: Refused,
    /// What left the tables of a [`Detector`](crate::continuous::Detector) before its time.
    pub(crate) evicted_flows: u64,
    pub(crate) evicted_failures: u64,
    pub(crate) alerts: Vec<Alert>,
    pub(crate) probe_scans: Vec<ProbeScan>,
    pub(crate) blocks: Vec<BlockPart>,
    pub(crate) answered_v4: Vec<Answered<u32>>,
    pub(crate) answered_v6: Vec<Answered<u128>>,
    pub(crate) talkers: Talkers,
}

/// A key that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered<A> {
    pub(crate) probe: Option<Probe>,
    /// Whether it failed later.
    pub(crate) has_failed: bool,
    pub(crate) source: A,
    pub(crate) port: u16,
    /// The [tick](crate::twins::tick) at which it was first tried.
    pub(crate) begun: u32,
}

/// What a host counts for a block.
#[derive(Clone, Debug)]
pub(crate) struct BlockPart {
    /// Source and kind of probes.
    pub(crate) of: (IpAddr, Option<Probe>),
    pub(crate) destination: IpAddr,
    /// The times of failures.
    pub(crate) times: Vec<u64>,
}

impl PartialResult {
    /// The result of a stage that has found nothing.
    pub(crate) fn new(talkers: Talkers) -> Self {
        PartialResult {
            packets: 0,
            tcp: 0,
            malformed: 0,
            flows: 0,
            pairs: 0,
            rejected: 0,
            unanswered: 0,
            refused: Refused::default(),
            evicted_flows: 0,
            evicted_failures: 0,
            alerts: Vec::new(),
            probe_scans: Vec::new(),
            blocks: Vec::new(),
            answered_v4: Vec::new(),
            answered_v6: Vec::new(),
            talkers,
        }
    }

    /// TCP and UDP packets that the SubAnalyzer processed.
    pub fn packets(&self) -> u64 {
        self.packets
    }
}
