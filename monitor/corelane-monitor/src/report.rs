//! The report of an analysis, and its outputs for machines: one JSON document, the timing line. EVE is in `eve`.
//!
//! This module prints nothing: it writes to the writer that the caller gives.

use crate::probe::Probe;
use crate::room::Refused;
use crate::steps::Jumps;
use crate::talkers::{Pair, Talker};
use corelane_net::decode::Tunnel;
use corelane_net::defrag;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

/// A scan.
///
/// As JSON its first key is `kind`: `"vertical"`, `"horizontal"` or `"block"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Alert {
    /// One source failed at many ports of one destination.
    Vertical {
        /// The scanner.
        source: IpAddr,
        /// The scanned host.
        destination: IpAddr,
        /// The number of distinct ports, in the whole capture.
        count: u64,
        /// The time of the failure that crossed the threshold, in order of time; nanoseconds since the epoch.
        time_ns: u64,
    },
    /// One source failed at one port of many destinations.
    Horizontal {
        /// The scanner.
        source: IpAddr,
        /// The scanned port.
        port: u16,
        /// The number of distinct destinations, in the whole capture.
        count: u64,
        /// The time of the failure that crossed the threshold, in order of time; nanoseconds since the epoch.
        time_ns: u64,
    },
    /// One source failed at several ports of several destinations, of each at fewer than make a scan of their own.
    Block {
        /// The scanner.
        source: IpAddr,
        /// The number of distinct ports of distinct destinations, without the first four of each destination.
        count: u64,
        /// The time of the failure that crossed the threshold, in order of time; nanoseconds since the epoch.
        time_ns: u64,
    },
}

impl Alert {
    /// The time at which the threshold was crossed, in nanoseconds since the epoch.
    pub fn time_ns(&self) -> u64 {
        match *self {
            Alert::Vertical { time_ns, .. } | Alert::Horizontal { time_ns, .. } | Alert::Block { time_ns, .. } => {
                time_ns
            }
        }
    }

    /// The scanner.
    pub fn source(&self) -> IpAddr {
        match *self {
            Alert::Vertical { source, .. } | Alert::Horizontal { source, .. } | Alert::Block { source, .. } => source,
        }
    }

    /// The number of distinct ports or destinations.
    pub fn count(&self) -> u64 {
        match *self {
            Alert::Vertical { count, .. } | Alert::Horizontal { count, .. } | Alert::Block { count, .. } => count,
        }
    }

    /// `vertical`, `horizontal` or `block`.
    pub fn kind(&self) -> &'static str {
        match self {
            Alert::Vertical { .. } => "vertical",
            Alert::Horizontal { .. } => "horizontal",
            Alert::Block { .. } => "block",
        }
    }

    pub(crate) fn set_count(&mut self, now: u64) {
        let (Alert::Vertical { count, .. } | Alert::Horizontal { count, .. } | Alert::Block { count, .. }) = self;
        *count = now;
    }

    /// The scanned host of a vertical scan.
    pub fn destination(&self) -> Option<IpAddr> {
        match *self {
            Alert::Vertical { destination, .. } => Some(destination),
            Alert::Horizontal { .. } | Alert::Block { .. } => None,
        }
    }

    /// What [`count`](Alert::count) counts, for a scan by these probes.
    pub fn unit(&self, probe: Option<Probe>) -> &'static str {
        match (self, probe) {
            (Alert::Horizontal { .. }, _) => "host",
            (_, Some(Probe::Protocol)) => "protocol",
            _ => "port",
        }
    }

    /// The scanned port of a horizontal scan; 0 if its probes [have none](Probe::has_port).
    pub fn port(&self) -> Option<u16> {
        match *self {
            Alert::Horizontal { port, .. } => Some(port),
            Alert::Vertical { .. } | Alert::Block { .. } => None,
        }
    }

    /// What tells it apart from the other scans of a whole capture, with the kind of its probes.
    pub fn name(&self, probe: Option<Probe>) -> ScanName {
        (probe, self.source(), self.destination(), self.port())
    }

    /// The order: by time, kind, source, and destination or port. Addresses: IPv4 before IPv6, then as numbers.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        (self.time_ns(), self.kind(), self.source(), self.destination(), self.port())
    }
}

/// Kind of probes, source, destination and port of a scan.
pub type ScanName = (Option<Probe>, IpAddr, Option<IpAddr>, Option<u16>);

/// A scan by other probes than SYNs.
///
/// As JSON its first key is `probe`, the name of the kind in lowercase letters, followed by those of an [`Alert`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbeScan {
    /// The kind of the probes.
    pub probe: Probe,
    /// Source, destination and count. The time is that of the probe that crossed the threshold.
    #[serde(flatten)]
    pub scan: Alert,
}

impl ProbeScan {
    /// The order of alerts, and then by probe.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        (self.scan.order(), self.probe)
    }
}

/// The traffic of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SourceCounts {
    /// The source.
    pub source: IpAddr,
    /// Flows whose first packet it sent.
    pub connections: u64,
    /// Bytes on the wire of the TCP and UDP packets that it sent.
    pub bytes: u64,
}

/// The results of an analysis. In its serialized form it has the keys of the JSON report, which has no fields from
/// [`probe_scans`](Report::probe_scans) on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Records of the capture.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// TCP packets with a whole 20-byte header.
    pub tcp: u64,
    /// Distinct bidirectional (protocol, address and port, address and port) of TCP and UDP packets.
    pub flows: u64,
    /// Distinct address pairs of the flows; `None` for a run without an end, which forgets them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u64>,
    /// Records whose IP, TCP or UDP header is wrong or cut; of a header in several fragments, the datagram that they
    /// become.
    pub malformed: u64,
    /// Records in which no IP header was reached.
    pub undecoded: u64,
    /// Distinct (source, destination, destination port) of failed attempts.
    pub failed_attempts: u64,
    /// Those of them that were ended by an RST.
    pub rejected: u64,
    /// Those of them without an answer in time.
    pub unanswered: u64,
    /// The scans, in order of time.
    pub alerts: Vec<Alert>,
    /// The sources that sent most bytes, if they [were counted](crate::Counting). The order is by bytes, then by
    /// connections, both with the larger first, then by address with the lesser first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<SourceCounts>>,
    /// Counts of tunnels, if they were [opened](crate::Settings::tunnels); in JSON only if there were any.
    #[serde(skip_serializing_if = "Tunnels::are_none")]
    pub tunnels: Option<Tunnels>,
    /// The packets and attempts that were refused for want of [room](crate::limit_memory); in JSON only if there are
    /// any.
    #[serde(skip_serializing_if = "Refused::is_empty")]
    pub refused: Refused,
    /// What the kernel and the outputs of a live capture counted, if this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Captured>,
    /// What was given up for want of memory before its time, in a run [without an end](crate::Continuous); in JSON only
    /// if there is any.
    #[serde(skip_serializing_if = "Evicted::is_empty")]
    pub evicted: Evicted,
    /// The scans that a run without an end has found, by SYNs and by other probes. [`alerts`](Report::alerts) and
    /// [`probe_scans`](Report::probe_scans) then hold the latest [`LATEST`] of them all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scans: Option<[u64; 2]>,
    /// Records of ARP, which are among the [undecoded](Report::undecoded) ones.
    #[serde(skip)]
    pub arp: u64,
    /// The groups of failures that such a run holds.
    #[serde(skip)]
    pub scan_groups: u64,
    /// Times that such a run did not believe.
    #[serde(skip)]
    pub jumps: Jumps,
    /// Counts of fragments. TCP and UDP headers that lie in several are seen when their datagram is whole.
    #[serde(skip)]
    pub fragments: defrag::Counts,
    /// The scans by other probes than SYNs, in order of time; in JSON only by
    /// [`write_json_with_probes`](Report::write_json_with_probes).
    #[serde(skip)]
    pub probe_scans: Vec<ProbeScan>,
    /// The tunnels that scans came through, by [`Alert::name`].
    #[serde(skip)]
    pub tunnelled: BTreeMap<ScanName, Tunnel>,
    /// The least and the largest time of any record.
    #[serde(skip)]
    pub times: Option<(u64, u64)>,
    /// TCP and UDP packets that each SubAnalyzer processed.
    #[serde(skip)]
    pub analyzer_packets: Vec<u64>,
    /// TCP and UDP packets that the Dispatcher processed itself, while it would only have waited.
    #[serde(skip)]
    pub dispatcher_packets: u64,
    /// The address pairs with the most bytes.
    #[serde(skip)]
    pub conversations: Vec<Talker<Pair>>,
    /// The hosts with the most bytes sent and received.
    #[serde(skip)]
    pub hosts: Vec<Talker<IpAddr>>,
}

/// Counts of a capture from an interface, since its start. At any time `kernel_packets` is the sum of the packets that
/// were analysed, of those that were dropped, and of those that still wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// The interface.
    pub interface: String,
    /// Packets that passed the filter.
    pub kernel_packets: u64,
    /// Those of them for which the ring had no room.
    pub kernel_drops: u64,
    /// How often the ring became full.
    pub freezes: u64,
    /// Packets of which not all bytes were captured.
    pub truncated: u64,
    /// Attempts to write or to reopen an output that failed.
    pub output_errors: u64,
    /// Lines and records that were lost because an output could not be written for long.
    pub output_dropped: u64,
}

/// The most scans that the report of a run without an end lists.
pub const LATEST: usize = 1000;

/// Counts of what was given up for want of memory before its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evicted {
    /// Flows: a later packet of theirs counts as a new one.
    pub flows: u64,
    /// Attempts and probes: if they failed they may count again.
    pub failures: u64,
    /// Groups of failures: scans may go unseen.
    pub groups: u64,
}

impl Evicted {
    /// Whether nothing was given up.
    pub fn is_empty(&self) -> bool {
        *self == Evicted::default()
    }
}

/// Counts of packets that came through tunnels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tunnels {
    /// Packets of which at least one tunnel was opened.
    pub opened: u64,
    /// Packets with more tunnels than are [opened](corelane_net::decode::DEEPEST).
    pub too_deep: u64,
    /// Packets of tunnels that came in fragments, each counted at its first. They are not opened.
    pub fragmented: u64,
}

impl Tunnels {
    /// serde passes a reference.
    #[expect(clippy::ref_option)]
    fn are_none(tunnels: &Option<Self>) -> bool {
        tunnels.unwrap_or_default() == Self::default()
    }
}

/// The time and memory of an analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The wall time from the first record to the report.
    pub wall: Duration,
    /// Processor time of all threads together.
    pub cpu: Duration,
    /// The most memory that the process had at one time, in bytes, mapped files included; `None` if it is not known.
    pub peak_memory: Option<u64>,
}

impl Timing {
    /// `count` divided by the wall time; 0 if no time was measured.
    pub fn per_second(&self, count: u64) -> f64 {
        let seconds = self.wall.as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }
}

impl Report {
    /// Writes the report as one JSON document in one line. Its content depends only on the packets and the settings.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        write_line(&mut out, self)
    }

    /// Writes the same with one key more, `probe_scans`.
    pub fn write_json_with_probes(&self, mut out: impl Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Document<'a> {
            #[serde(flatten)]
            report: &'a Report,
            probe_scans: &'a [ProbeScan],
        }
        write_line(&mut out, &Document { report: self, probe_scans: &self.probe_scans })
    }

    /// Writes the times, the memory and the packets of each thread, as one JSON document in one line. It has
    /// `dispatcher_packets` only if there are any, and `peak_memory_bytes` only if it is known.
    pub fn write_timing(&self, timing: &Timing, mut out: impl Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Line<'a> {
            wall_s: f64,
            cpu_s: f64,
            packets_per_second: f64,
            analyzer_packets: &'a [u64],
            #[serde(skip_serializing_if = "is_zero")]
            dispatcher_packets: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            peak_memory_bytes: Option<u64>,
        }
        // serde passes a reference.
        #[expect(clippy::trivially_copy_pass_by_ref)]
        fn is_zero(&count: &u64) -> bool {
            count == 0
        }
        let line = Line {
            wall_s: timing.wall.as_secs_f64(),
            cpu_s: timing.cpu.as_secs_f64(),
            packets_per_second: timing.per_second(self.packets),
            analyzer_packets: &self.analyzer_packets,
            dispatcher_packets: self.dispatcher_packets,
            peak_memory_bytes: timing.peak_memory,
        };
        write_line(&mut out, &line)
    }
}

pub(crate) fn write_line(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, document)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_ordered_by_time_kind_source_and_target() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let vertical = |time_ns, source, destination| Alert::Vertical {
            source: ip(source),
            destination: ip(destination),
            count: 21,
            time_ns,
        };
        let horizontal = |time_ns, source, port| Alert::Horizontal { source: ip(source), port, count: 21, time_ns };
        let ordered = [
            vertical(1, "9.9.9.9", "1.1.1.1"),
            horizontal(2, "9.0.0.1", 80),
            horizontal(2, "10.0.0.1", 9),
            horizontal(2, "10.0.0.1", 80),
            horizontal(2, "::1", 1),
            vertical(2, "1.1.1.1", "9.0.0.1"),
            vertical(2, "1.1.1.1", "10.0.0.1"),
            vertical(2, "::1", "::2"),
            vertical(2, "::1", "::10"),
        ];
        let mut sorted = ordered.to_vec();
        sorted.reverse();
        sorted.sort_by_key(Alert::order);
        assert_eq!(sorted, ordered);
    }
}
