//! `alert`: a scan.

use super::EveTunnel;
use crate::continuous::{ScanEvent, ScanState};
use crate::probe::Probe;
use crate::report::{Alert, Report, write_line};
use crate::time::Timestamp;
use corelane_net::decode::Tunnel;
use serde::Serialize;
use std::io::{self, Write};
use std::net::IpAddr;

/// Writes a scan that was found, or has ended, while the run goes on. The time of the event is that of the failure by
/// which it was found or, at its end, of its last failure.
///
/// # Errors
/// Those of `out`.
pub fn write_scan(event: &ScanEvent, mut out: impl Write) -> io::Result<()> {
    write(&mut out, &event.scan, event.probe, Some(event.state), event.tunnel.as_ref())
}

impl Report {
    /// Writes the scans, by SYNs and by other probes, as `alert` records of Suricata's EVE format, one JSON document a
    /// line.
    ///
    /// A vertical scan has no `dest_port` and a horizontal one has no `dest_ip`, as there are many. Pings and ARP have
    /// no `dest_port` at all.
    pub fn write_eve(&self, mut out: impl Write) -> io::Result<()> {
        let mut scans: Vec<_> = self.alerts.iter().map(|alert| (alert, None)).collect();
        scans.extend(self.probe_scans.iter().map(|found| (&found.scan, Some(found.probe))));
        scans.sort_by_key(|(alert, probe)| (alert.order(), *probe));
        scans
            .into_iter()
            .try_for_each(|(alert, probe)| write(&mut out, alert, probe, None, self.tunnelled.get(&alert.name(probe))))
    }
}

/// Writes a scan; by SYNs if no probe is named.
fn write(
    out: &mut impl Write,
    alert: &Alert,
    probe: Option<Probe>,
    state: Option<ScanState>,
    tunnel: Option<&Tunnel>,
) -> io::Result<()> {
    write_line(out, &EveRecord { tunnel: tunnel.map(EveTunnel::new), ..EveRecord::new(alert, probe, state) })
}

/// The first signature number. The numbers lie in the range for local use. Each kind of probe has two, first for
/// vertical scans and then for horizontal ones; SYNs come first.
const SIGNATURES: u32 = 1_000_001;
/// The first signature number of blocks, of which each kind of probe has one.
const BLOCKS: u32 = 1_000_101;

#[derive(Serialize)]
struct EveRecord {
    timestamp: String,
    event_type: &'static str,
    src_ip: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    dest_ip: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dest_port: Option<u16>,
    proto: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnel: Option<EveTunnel>,
    alert: EveAlert,
    scan: EveScan,
}

#[derive(Serialize)]
struct EveAlert {
    action: &'static str,
    gid: u32,
    signature_id: u32,
    rev: u32,
    signature: String,
    category: &'static str,
    severity: u32,
}

/// The fields that Suricata does not have.
#[derive(Serialize)]
struct EveScan {
    /// Absent for captures that end.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    kind: &'static str,
    /// Absent for SYNs.
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<Probe>,
    count: u64,
    time_ns: u64,
    /// Only for a scan that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_ns: Option<u64>,
}

impl EveRecord {
    fn new(alert: &Alert, probe: Option<Probe>, state: Option<ScanState>) -> Self {
        let dest_port = alert.port().filter(|_| probe.is_none_or(Probe::has_port));
        let number = probe.map_or(0, Probe::number);
        let signature_id = match alert {
            Alert::Vertical { .. } => SIGNATURES + 2 * number,
            Alert::Horizontal { .. } => SIGNATURES + 2 * number + 1,
            Alert::Block { .. } => BLOCKS + number,
        };
        let (state, last_ns) = match state {
            None => (None, None),
            Some(ScanState::Found) => (Some("found"), None),
            Some(ScanState::Ended { last_ns }) => (Some("ended"), Some(last_ns)),
        };
        let by = match probe {
            None => "TCP port".to_owned(),
            Some(probe @ (Probe::Udp | Probe::Sctp)) => format!("{probe} port"),
            Some(probe @ (Probe::Ping | Probe::Arp | Probe::Protocol)) => probe.to_string(),
            Some(probe) => format!("TCP {probe}"),
        };
        let signature = format!("CORELANE SCAN {} {by} scan", alert.kind());
        EveRecord {
            timestamp: Timestamp::of(last_ns.unwrap_or(alert.time_ns())).eve().escape_ascii().to_string(),
            event_type: "alert",
            src_ip: alert.source(),
            dest_ip: alert.destination(),
            dest_port,
            proto: probe.map_or("TCP", |probe| probe.carrier(alert.source().is_ipv6())),
            tunnel: None,
            alert: EveAlert {
                action: "allowed",
                gid: 1,
                signature_id,
                rev: 1,
                signature,
                category: "Detection of a Network Scan",
                severity: 3,
            },
            scan: EveScan { state, kind: alert.kind(), probe, count: alert.count(), time_ns: alert.time_ns(), last_ns },
        }
    }
}
