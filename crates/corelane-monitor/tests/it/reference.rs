//! The monitor contract once more, as plainly as it can be written: everything is collected, then judged.

use crate::packets::{ACK, FIN, Packet, RST, SYN};
use corelane_monitor::{Alert, Rule, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) flows: u64,
    pub(crate) pairs: u64,
    pub(crate) rejected: u64,
    pub(crate) unanswered: u64,
    pub(crate) alerts: Vec<Alert>,
}

/// What one key saw: time, and 'S' for a SYN, 'A' for a SYN-ACK, 'R' for an RST.
type History = Vec<(u64, char)>;

/// The failure of a key: whether it was rejected, and when.
fn judge(history: &History, settings: &Settings, end: u64) -> Option<(bool, u64)> {
    if settings.rule == Rule::Paper {
        let answered = history.iter().any(|&(_, what)| what == 'A');
        let opened = history.iter().filter(|&&(_, what)| what == 'S').map(|&(time, _)| time).min();
        return opened.filter(|_| !answered).map(|time| (false, time));
    }
    let mut opened: Option<u64> = None;
    for &(time, what) in history {
        match opened {
            None if what == 'S' => opened = Some(time),
            None => {}
            Some(opening) if time >= opening + settings.syn_timeout_ns => {
                return Some((false, opening + settings.syn_timeout_ns));
            }
            Some(_) if what == 'R' => return Some((true, time)),
            Some(_) if what == 'A' => opened = None,
            Some(_) => {}
        }
    }
    opened.map(|opening| (false, end.min(opening + settings.syn_timeout_ns)))
}

/// The group's count and crossing, if there are more failures than the threshold.
fn crossing(times: &[u64], threshold: u64) -> Option<(u64, u64)> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(threshold as usize).map(|&time| (times.len() as u64, time))
}

pub(crate) fn analyse(packets: &[Packet], settings: &Settings) -> Findings {
    let end = packets.iter().map(|packet| packet.time_ns).max().unwrap_or(0);
    let mut flows = BTreeSet::new();
    let mut pairs = BTreeSet::new();
    let mut histories: BTreeMap<(IpAddr, IpAddr, u16), History> = BTreeMap::new();
    for packet in packets {
        let mut ends = [(packet.source, packet.source_port), (packet.destination, packet.destination_port)];
        ends.sort_unstable();
        flows.insert((packet.flags.is_some(), ends));
        let mut addresses = [packet.source, packet.destination];
        addresses.sort_unstable();
        pairs.insert(addresses);
        let flags = packet.flags.unwrap_or(0);
        let forth = (packet.source, packet.destination, packet.destination_port);
        let back = (packet.destination, packet.source, packet.source_port);
        let (key, what) = match (flags & RST != 0, flags & SYN != 0, flags & ACK != 0, flags & FIN != 0) {
            (true, ..) => (back, 'R'),
            (_, true, true, _) => (back, 'A'),
            (_, true, false, false) => (forth, 'S'),
            _ => continue,
        };
        histories.entry(key).or_default().push((packet.time_ns, what));
    }
    let mut findings =
        Findings { flows: flows.len() as u64, pairs: pairs.len() as u64, rejected: 0, unanswered: 0, alerts: vec![] };
    let mut vertical: BTreeMap<(IpAddr, IpAddr), Vec<u64>> = BTreeMap::new();
    let mut horizontal: BTreeMap<(IpAddr, u16), Vec<u64>> = BTreeMap::new();
    for ((source, destination, port), history) in &histories {
        if let Some((rejected, time)) = judge(history, settings, end) {
            findings.rejected += u64::from(rejected);
            findings.unanswered += u64::from(!rejected);
            vertical.entry((*source, *destination)).or_default().push(time);
            horizontal.entry((*source, *port)).or_default().push(time);
        }
    }
    // Horizontal comes before vertical, and the maps are in order, so a stable sort by time leaves the right order.
    for ((source, port), times) in horizontal {
        if let Some((count, time_ns)) = crossing(&times, settings.horizontal_threshold) {
            findings.alerts.push(Alert::Horizontal { source, port, count, time_ns });
        }
    }
    for ((source, destination), times) in vertical {
        if let Some((count, time_ns)) = crossing(&times, settings.vertical_threshold) {
            findings.alerts.push(Alert::Vertical { source, destination, count, time_ns });
        }
    }
    findings.alerts.sort_by_key(Alert::time_ns);
    findings
}
