//! `stats`: what was counted, at the end and, in a run without one, ever again.

use super::Events;
use super::json::{self, key};
use crate::findings::Findings;
use crate::report::{Report, Tunnels};
use crate::steps::{Jumps, STEP_NS};
use corelane_net::protocol::Protocol;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Writes the event of a run so far, with Suricata's counters as far as they are counted here, and under `corelane` all
/// others.
///
/// It holds only what follows from the packets, the settings and the limits, but for `capture`, `corelane.capture` and
/// `corelane.outputs` of an interface.
///
/// # Errors
/// Those of `out`.
pub fn write_stats(report: &Report, findings: &Findings, mut out: impl Write) -> io::Result<()> {
    let (first, last) = report.times.unwrap_or_default();
    let conversations = &findings.conversations;
    let counts: Map<_, _> = conversations.iter().map(|(name, count)| (name.into(), count.into())).collect();
    let fragments = &findings.fragments;
    let [udp, tcp] = findings.flows();
    let listed = (report.alerts.len() + report.probe_scans.len()) as u64;
    let scans = report.scans.map_or(listed, |scans| scans.iter().sum());
    let mut stats = json!({
        "uptime": last / 1_000_000_000 - first / 1_000_000_000,
        "decoder": {
            "pkts": report.packets,
            "bytes": report.bytes,
            "invalid": report.malformed,
            "tcp": conversations.tcp_packets,
            "udp": conversations.udp_packets,
            "arp": report.arp,
            "unknown_ethertype": report.undecoded - report.arp,
        },
        "flow": {
            "total": tcp + udp,
            "tcp": tcp,
            "udp": udp,
            "tcp_reuse": conversations.replaced,
            "memuse": findings.conversation_bytes,
            "end": {
                "state": { "new": findings.ended[0], "established": findings.ended[1], "closed": findings.ended[2] },
            },
        },
        "tcp": {
            "sessions": tcp,
            "midstream_pickups": conversations.midstream,
            "reassembly_gap": conversations.gaps,
            "overlap": conversations.retransmitted,
            "overlap_diff_data": conversations.conflicts,
        },
        "defrag": {
            "max_trackers_reached": fragments.evicted,
            "max_frags_reached": fragments.too_many_pieces,
            "memuse": findings.fragment_bytes,
        },
        "app_layer": { "flow": flows(findings), "tx": transactions(findings) },
        "corelane": {
            "failed_attempts": report.failed_attempts,
            "alerts": scans,
            "refused": report.refused,
            "conversations": counts,
            "fragments": {
                "fragments": fragments.fragments,
                "whole": fragments.whole,
                "duplicates": fragments.duplicates,
                "overlaps": fragments.overlaps,
                "teardrops": fragments.teardrops,
                "conflicts": fragments.conflicts,
                "malformed": fragments.malformed,
                "cut": fragments.cut,
                "refused": fragments.refused,
                "evicted": fragments.evicted,
                "too_many_pieces": fragments.too_many_pieces,
                "timed_out": fragments.timed_out,
            },
        },
    });
    if let Some(tunnels) = report.tunnels {
        let Tunnels { opened, too_deep, fragmented } = tunnels;
        stats["corelane"]["tunnels"] = json!({ "opened": opened, "too_deep": too_deep, "fragmented": fragmented });
    }
    if let Some(capture) = &report.capture {
        stats["capture"] = json!({
            "kernel_packets": capture.kernel_packets,
            "kernel_drops": capture.kernel_drops,
        });
        stats["corelane"]["capture"] = json!({
            "interface": capture.interface,
            "freezes": capture.freezes,
            "truncated": capture.truncated,
        });
        stats["corelane"]["outputs"] = json!({ "errors": capture.output_errors, "dropped": capture.output_dropped });
    }
    if let Some([syn, probes]) = report.scans {
        stats["corelane"]["scans"] = json!({ "syn": syn, "probes": probes, "groups": report.scan_groups });
        stats["corelane"]["evicted"] = json!(report.evicted);
        let Jumps { ahead, set_back, shift_ns } = report.jumps;
        stats["corelane"]["clock"] = json!({ "ahead": ahead, "set_back": set_back, "shift_s": shift_ns / STEP_NS });
    }
    let mut line = Vec::new();
    json::object(&mut line, |event| {
        event.time(key!("timestamp"), last);
        event.text(key!("event_type"), "stats");
        event.value(key!("stats"), &stats);
    });
    line.push(b'\n');
    out.write_all(&line)
}

/// Suricata tells the carrier where a protocol has two.
fn with_carrier(protocol: Protocol, is_tcp: bool) -> String {
    let name = protocol.name();
    match (protocol, is_tcp) {
        (Protocol::Dns, true) => format!("{name}_tcp"),
        (Protocol::Dns, false) => format!("{name}_udp"),
        (Protocol::BitTorrent, false) => "bittorrent_dht".to_owned(),
        _ => name.to_owned(),
    }
}

fn flows(findings: &Findings) -> Map<String, Value> {
    let mut flows = Map::new();
    let identified =
        findings.protocols.iter().map(|(&(protocol, is_tcp), volume)| (with_carrier(protocol, is_tcp), volume));
    let unidentified = ["failed_udp", "failed_tcp"].map(str::to_owned).into_iter().zip(&findings.unidentified);
    for (name, volume) in identified.chain(unidentified) {
        let count = flows.entry(name).or_insert_with(|| 0.into());
        *count = (count.as_u64().unwrap_or(0) + volume.flows).into();
    }
    flows
}

fn transactions(findings: &Findings) -> Map<String, Value> {
    let mut transactions = Map::new();
    for (name, event_type) in Events::NAMES.into_iter().filter(|(_, event_type)| Events::MESSAGES.has(*event_type)) {
        let [udp, tcp] = findings.seen.events(event_type);
        if event_type == Events::DNS {
            transactions.insert(with_carrier(Protocol::Dns, false), udp.into());
            transactions.insert(with_carrier(Protocol::Dns, true), tcp.into());
        } else {
            transactions.insert(name.to_owned(), (udp + tcp).into());
        }
    }
    transactions
}
