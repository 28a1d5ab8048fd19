//! The connections and bytes of each source: the example of section III-A3 of the MCRingBuffer paper.
//!
//! 1. For each source a partition counts the bytes that it sent and the connections that it began since the last state
//!    report. A connection is a flow, TCP or UDP, whose first packet came from the source.
//! 2. A state report is due when the bytes reach M, the setting [`Counting::every`](crate::Counting::every), or when
//!    the connections reach the most that a report can hold. It takes both counts along, and they start over at 0.
//! 3. When the capture ends, the remaining counts are reported too. So the MainAnalyzer's sums are exact, whatever M
//!    is.
//!
//! A source has many peers, so its counts come from many partitions. Each partition reports for itself, so the reports,
//! and not only the sums, are the same for any number of SubAnalyzers.
//!
//! Memory: an entry of 32 bytes (IPv4) or 64 (IPv6) for each source of each partition, and one for each source in the
//! MainAnalyzer.

use bytemuck::Zeroable;

/// The most connections that a state report can hold.
const MOST_CONNECTIONS: u16 = u16::MAX;

/// The counts of a source since the last state report.
#[derive(Clone, Copy, Debug, Default, Zeroable)]
pub(crate) struct Sent {
    bytes: u64,
    connections: u64,
}

impl Sent {
    /// Counts a packet; returns the bytes and connections to report if a report is due.
    #[inline(always)]
    pub(crate) fn add(&mut self, wire_len: u32, begins: bool, every: u64) -> Option<(u64, u16)> {
        self.bytes += u64::from(wire_len);
        self.connections += u64::from(begins);
        if self.bytes < every && self.connections < u64::from(MOST_CONNECTIONS) { None } else { self.take() }
    }

    /// The counts that are left to report; `None` if there are none.
    pub(crate) fn take(&mut self) -> Option<(u64, u16)> {
        let Sent { bytes, connections } = std::mem::take(self);
        // A packet's record may claim 0 bytes, and the packet still begins a connection.
        (bytes > 0 || connections > 0).then(|| (bytes, u16::try_from(connections).unwrap_or(MOST_CONNECTIONS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_due_every_so_many_bytes_and_hold_all_that_was_counted() {
        let mut sent = Sent::default();
        assert_eq!(sent.take(), None);
        assert_eq!(sent.add(999, true, 1000), None);
        assert_eq!(sent.add(1, false, 1000), Some((1000, 1)));
        assert_eq!(sent.add(5000, true, 1000), Some((5000, 1)));
        assert_eq!(sent.take(), None);
        assert_eq!(sent.add(7, true, 1000), None);
        assert_eq!(sent.add(0, true, 1000), None);
        assert_eq!(sent.take(), Some((7, 2)));
        assert_eq!(sent.add(0, true, 1000), None);
        assert_eq!(sent.take(), Some((0, 1)));
    }

    #[test]
    fn a_report_is_due_before_it_cannot_say_the_connections() {
        let mut sent = Sent::default();
        let mut reported = 0;
        for _ in 0..200_000 {
            reported += sent.add(0, true, u64::MAX).map_or(0, |(_, connections)| u64::from(connections));
        }
        assert_eq!(reported + sent.take().map_or(0, |(_, connections)| u64::from(connections)), 200_000);
    }
}
