//! The message from a SubAnalyzer to the MainAnalyzer when the capture is over.

use crate::report::{Alert, ProbeScan};
use crate::room::Refused;
use crate::talkers::Talkers;

/// The results of a [`SubAnalyzer`](crate::SubAnalyzer), which the [`MainAnalyzer`](crate::MainAnalyzer) joins.
#[derive(Debug)]
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
    pub(crate) alerts: Vec<Alert>,
    pub(crate) probe_scans: Vec<ProbeScan>,
    /// Source and port of each UDP key that was answered.
    pub(crate) answered_v4: Vec<(u32, u16)>,
    pub(crate) answered_v6: Vec<(u128, u16)>,
    pub(crate) talkers: Talkers,
}

impl PartialResult {
    /// TCP and UDP packets that the SubAnalyzer processed.
    pub fn packets(&self) -> u64 {
        self.packets
    }
}
