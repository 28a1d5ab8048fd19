//! The alerts that a monitor must find.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt::{self, Write};
use std::net::IpAddr;

/// An attempt without an answer has failed after this time.
pub(super) const SYN_TIMEOUT_NS: u64 = 3_000_000_000;
/// More failures than this make a scan.
pub(super) const THRESHOLD: usize = 20;

/// The target of a scan.
///
/// The order is that of the kinds' names: horizontal before vertical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scanned {
    /// One port of many hosts.
    Horizontal {
        /// The port.
        port: u16,
    },
    /// Many ports of one host.
    Vertical {
        /// The host.
        destination: IpAddr,
    },
}

/// The probes of a scan, if they are not SYNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// TCP segments with FIN alone.
    Fin,
    /// TCP segments without a flag.
    Null,
    /// TCP segments with FIN, PSH and URG.
    Xmas,
    /// UDP datagrams.
    Udp,
    /// TCP segments with SYN and FIN.
    SynFin,
    /// TCP segments with FIN and PSH.
    Odd,
}

impl Probe {
    /// Every kind.
    pub const ALL: [Probe; 6] = [Probe::Fin, Probe::Null, Probe::Xmas, Probe::Udp, Probe::SynFin, Probe::Odd];
}

/// Writes the name in the report.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Probe::Fin => "fin",
            Probe::Null => "null",
            Probe::Xmas => "xmas",
            Probe::Udp => "udp",
            Probe::SynFin => "synfin",
            Probe::Odd => "odd",
        })
    }
}

/// A scan as a monitor with the default threshold and timeout reports it.
///
/// The order is that of the report: by time, kind, source, and destination or port; then by probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alert {
    /// The probes, if they are not SYNs.
    pub probe: Option<Probe>,
    /// The scanner.
    pub source: IpAddr,
    /// The target.
    pub scanned: Scanned,
    /// The number of failed attempts, or probes, in the whole capture.
    pub count: u64,
    /// The time of the failure that crossed the threshold, in nanoseconds since the epoch.
    pub time_ns: u64,
}

impl Ord for Alert {
    fn cmp(&self, other: &Self) -> Ordering {
        let vertical = |alert: &Self| matches!(alert.scanned, Scanned::Vertical { .. });
        self.time_ns
            .cmp(&other.time_ns)
            .then_with(|| vertical(self).cmp(&vertical(other)))
            .then_with(|| self.source.cmp(&other.source))
            .then_with(|| self.scanned.cmp(&other.scanned))
            .then_with(|| self.probe.cmp(&other.probe))
            .then_with(|| self.count.cmp(&other.count))
    }
}

impl PartialOrd for Alert {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One JSON object with the keys of the monitor's report.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { probe, source, scanned, count, time_ns } = self;
        f.write_str("{")?;
        if let Some(probe) = probe {
            write!(f, r#""probe": "{probe}", "#)?;
        }
        match scanned {
            Scanned::Vertical { destination } => {
                write!(f, r#""kind": "vertical", "source": "{source}", "destination": "{destination}", "#)?;
            }
            Scanned::Horizontal { port } => {
                write!(f, r#""kind": "horizontal", "source": "{source}", "port": {port}, "#)?;
            }
        }
        write!(f, r#""count": {count}, "time_ns": {time_ns}}}"#)
    }
}

/// The alerts as one JSON array, in the order given.
///
/// ```
/// use corelane_net::synth::{Alert, Scanned, truth_json};
///
/// let source = "10.0.0.1".parse()?;
/// let alert = Alert { probe: None, source, scanned: Scanned::Horizontal { port: 22 }, count: 21, time_ns: 5 };
/// assert_eq!(
///     truth_json(&[alert]),
///     r#"[{"kind": "horizontal", "source": "10.0.0.1", "port": 22, "count": 21, "time_ns": 5}]"#,
/// );
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn truth_json(alerts: &[Alert]) -> String {
    let mut json = String::from("[");
    for (i, alert) in alerts.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        write!(json, "{comma}{alert}").expect("a String takes everything");
    }
    json.push(']');
    json
}

/// The reply: a datagram or none to a UDP probe, and an RST or none to other probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// SYN+ACK: the port is open.
    Accept,
    /// RST: the port is closed.
    Reject,
}

/// The time at which an attempt failed, if it did. A deadline may lie after the end of the capture.
pub(super) fn failure(opened: u64, reply: Option<(Reply, u64)>) -> Option<u64> {
    let deadline = opened + SYN_TIMEOUT_NS;
    match reply {
        Some((Reply::Accept, time)) if time < deadline => None,
        Some((Reply::Reject, time)) if time < deadline => Some(time),
        _ => Some(deadline),
    }
}

/// The time at which a key of a scan failed, if it did: for an attempt, as above; for a probe, the time of sending. A
/// UDP probe fails only if no datagram came back.
pub(super) fn probe_failure(probe: Option<Probe>, opened: u64, reply: Option<(Reply, u64)>) -> Option<u64> {
    match probe {
        None => failure(opened, reply),
        Some(Probe::Udp) => reply.is_none().then_some(opened),
        Some(_) => Some(opened),
    }
}

/// The failures of one scan, as far as an alert needs them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    count: u64,
    /// The number of UDP probes that were answered.
    answered: u64,
    /// The earliest failures, one more than the threshold; the last of them crossed it.
    first: BinaryHeap<u64>,
}

impl Tally {
    pub(super) fn add(&mut self, failure: u64) {
        self.count += 1;
        self.first.push(failure);
        if self.first.len() > THRESHOLD + 1 {
            self.first.pop();
        }
    }

    pub(super) fn add_answered(&mut self) {
        self.answered += 1;
    }

    /// Count and time of the alert in a capture whose last record has time `end`; `None` if the scan is none.
    ///
    /// The capture's end cuts deadlines short, but does not change the order of the failures. So the failure that
    /// crosses the threshold is found first, and its time is cut then.
    pub(super) fn alert(&self, end: u64) -> Option<(u64, u64)> {
        let crossed = *self.first.peek()?;
        (self.count > THRESHOLD as u64 && self.count > 4 * self.answered).then_some((self.count, crossed.min(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_until_just_before_the_deadline() {
        const DEADLINE: u64 = 100 + 3_000_000_000;
        assert_eq!(failure(100, None), Some(DEADLINE));
        assert_eq!(failure(100, Some((Reply::Accept, DEADLINE - 1))), None);
        assert_eq!(failure(100, Some((Reply::Accept, DEADLINE))), Some(DEADLINE));
        assert_eq!(failure(100, Some((Reply::Reject, DEADLINE - 1))), Some(DEADLINE - 1));
        assert_eq!(failure(100, Some((Reply::Reject, DEADLINE))), Some(DEADLINE));
    }

    #[test]
    fn the_twenty_first_failure_in_time_makes_the_alert() {
        let mut tally = Tally::default();
        assert_eq!(tally.alert(1_000), None);
        (0..20).rev().for_each(|time| tally.add(time));
        assert_eq!(tally.alert(1_000), None);
        tally.add(500);
        assert_eq!(tally.alert(1_000), Some((21, 500)));
        assert_eq!(tally.alert(400), Some((21, 400)));
        tally.add(30);
        tally.add(600);
        assert_eq!(tally.alert(1_000), Some((23, 30)));
        (0..5).for_each(|_| tally.add_answered());
        assert_eq!(tally.alert(1_000), Some((23, 30)));
        tally.add_answered();
        assert_eq!(tally.alert(1_000), None);
    }

    #[test]
    fn alerts_sort_by_time_kind_and_numbers() {
        let alert = |time_ns, scanned, source: &str| Alert {
            probe: None,
            source: source.parse().unwrap(),
            scanned,
            count: 21,
            time_ns,
        };
        let vertical = |to: &str| Scanned::Vertical { destination: to.parse().unwrap() };
        let sorted = [
            alert(1, vertical("10.0.0.9"), "::1"),
            alert(2, Scanned::Horizontal { port: 100 }, "9.0.0.1"),
            alert(2, Scanned::Horizontal { port: 9 }, "10.0.0.1"),
            alert(2, Scanned::Horizontal { port: 100 }, "10.0.0.1"),
            alert(2, Scanned::Horizontal { port: 1 }, "::1"),
            alert(2, vertical("10.0.0.9"), "9.0.0.1"),
            alert(2, vertical("10.0.0.10"), "9.0.0.1"),
            alert(2, vertical("::1"), "9.0.0.1"),
            alert(2, vertical("1.0.0.1"), "10.0.0.1"),
        ];
        let mut mixed = sorted;
        mixed.reverse();
        mixed.sort();
        assert_eq!(mixed, sorted);
    }

    #[test]
    fn json_has_the_keys_of_the_report_in_their_order() {
        assert_eq!(truth_json(&[]), "[]");
        let alerts = [
            Alert {
                probe: None,
                source: "2001:db8:0:0::1".parse().unwrap(),
                scanned: Scanned::Vertical { destination: "2001:db8::2".parse().unwrap() },
                count: 25,
                time_ns: 1,
            },
            Alert {
                probe: Some(Probe::Xmas),
                source: "1.2.3.4".parse().unwrap(),
                scanned: Scanned::Horizontal { port: 443 },
                count: 30,
                time_ns: 2,
            },
        ];
        assert_eq!(
            truth_json(&alerts),
            r#"[{"kind": "vertical", "source": "2001:db8::1", "destination": "2001:db8::2", "count": 25, "time_ns": 1}, "#
                .to_owned()
                + r#"{"probe": "xmas", "kind": "horizontal", "source": "1.2.3.4", "port": 443, "count": 30, "time_ns": 2}]"#
        );
    }
}
