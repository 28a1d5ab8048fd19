//! The monitor contract once more, as plainly as it can be written: everything is collected, then judged.

use crate::packets::{Key, Packet, has_outlasted};
use corelane_monitor::{Alert, Network, Probe, ProbeScan, Settings, SourceCounts};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) flows: u64,
    pub(crate) pairs: u64,
    pub(crate) rejected: u64,
    pub(crate) unanswered: u64,
    pub(crate) alerts: Vec<Alert>,
    pub(crate) probe_scans: Vec<ProbeScan>,
    pub(crate) sources: Option<Vec<SourceCounts>>,
}

/// What one key saw: time, and 'S' for a SYN, 'A' for a SYN-ACK, 'R' for an RST, 'Z' for that of a closed port, and the
/// client's port.
type History = Vec<(u64, char, u16)>;

/// What became of a key: whether it was ever answered.
fn was_answered(history: &History, settings: &Settings, end: u64) -> bool {
    let judged = judge(history, settings, end);
    let has_opened = history.iter().any(|&(_, what, _)| what == 'S');
    judged.map_or(has_opened, |(_, time)| time.is_none())
}

/// The failure of a key: whether it was rejected, and when, unless it was answered before.
fn judge(history: &History, settings: &Settings, end: u64) -> Option<(bool, Option<u64>)> {
    let mut opened: Option<u64> = None;
    let (mut first, mut answered): (Option<u64>, Option<u64>) = (None, None);
    let mut known = false;
    let mut from = 0;
    for &(time, what, port) in history {
        match opened {
            None if what == 'S' => {
                known |= has_outlasted(*first.get_or_insert(time), time, settings);
                (opened, from) = (Some(time), port);
            }
            None if what == 'Z'
                && port == from
                && answered.is_some_and(|answered| time < answered + settings.syn_timeout_ns) =>
            {
                return Some((true, (!known).then_some(time)));
            }
            None => {}
            Some(opening) if time >= opening + settings.syn_timeout_ns => {
                return Some((false, (!known).then_some(opening + settings.syn_timeout_ns)));
            }
            Some(_) if matches!(what, 'R' | 'Z') => return Some((true, (!known).then_some(time))),
            Some(_) if what == 'A' => (opened, answered) = (None, opened),
            Some(_) => {}
        }
    }
    opened.map(|opening| (false, (!known).then_some(end.min(opening + settings.syn_timeout_ns))))
}

fn is_ignored(settings: &Settings, source: IpAddr, target: IpAddr, port: u16) -> bool {
    settings.ignored.iter().any(|rule| {
        let is_of = |network: Option<Network>, address| network.is_none_or(|network| network.contains(address));
        is_of(rule.source, source) && is_of(rule.target, target) && rule.port.is_none_or(|of_rule| of_rule == port)
    })
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
    let mut histories: BTreeMap<Key, History> = BTreeMap::new();
    for packet in packets {
        flows.insert((packet.flags.is_some(), packet.ends()));
        let mut addresses = [packet.source, packet.destination];
        addresses.sort_unstable();
        pairs.insert(addresses);
        if let Some((key, what)) = packet.attempt() {
            histories.entry(key).or_default().push((packet.time_ns, what, packet.client_port()));
        }
    }
    let mut findings = Findings {
        flows: flows.len() as u64,
        pairs: pairs.len() as u64,
        rejected: 0,
        unanswered: 0,
        alerts: vec![],
        probe_scans: vec![],
        sources: None,
    };
    // The times of failures, how many were answered, and how many of these failed later.
    type Syns = (Vec<u64>, u64, u64);
    let mut vertical: BTreeMap<(IpAddr, IpAddr), Syns> = BTreeMap::new();
    let mut horizontal: BTreeMap<(IpAddr, u16), Syns> = BTreeMap::new();
    for ((source, destination, port), history) in &histories {
        if is_ignored(settings, *source, *destination, *port) {
            continue;
        }
        if was_answered(history, settings, end) {
            vertical.entry((*source, *destination)).or_default().1 += 1;
            horizontal.entry((*source, *port)).or_default().1 += 1;
        }
        if let Some((rejected, time)) = judge(history, settings, end) {
            findings.rejected += u64::from(rejected);
            findings.unanswered += u64::from(!rejected);
            vertical.entry((*source, *destination)).or_default().2 += u64::from(time.is_none());
            horizontal.entry((*source, *port)).or_default().2 += u64::from(time.is_none());
            vertical.entry((*source, *destination)).or_default().0.extend(time);
            horizontal.entry((*source, *port)).or_default().0.extend(time);
        }
    }
    // Horizontal comes before vertical, and the maps are in order, so a stable sort by time leaves the right order.
    let crossing_of = |(times, answers, known): &Syns, threshold| {
        let found = crossing(times, threshold).filter(|(count, _)| count > answers);
        found.map(|(count, time_ns)| (count + known, time_ns))
    };
    for ((source, port), group) in horizontal {
        if let Some((count, time_ns)) = crossing_of(&group, settings.horizontal_threshold) {
            findings.alerts.push(Alert::Horizontal { source, port, count, time_ns });
        }
    }
    for ((source, destination), group) in vertical {
        if let Some((count, time_ns)) = crossing_of(&group, settings.vertical_threshold) {
            findings.alerts.push(Alert::Vertical { source, destination, count, time_ns });
        }
    }
    findings.alerts.sort_by_key(Alert::time_ns);
    findings.sources = settings.counting.map(|counting| sources(packets, counting.top));
    if settings.probes {
        findings.probe_scans = probe_scans(packets, settings);
    }
    findings
}

fn sources(packets: &[Packet], top: usize) -> Vec<SourceCounts> {
    let mut begun = BTreeSet::new();
    let mut sources: BTreeMap<IpAddr, (u64, u64)> = BTreeMap::new();
    for packet in packets {
        let (connections, bytes) = sources.entry(packet.source).or_default();
        *connections += u64::from(begun.insert((packet.flags.is_some(), packet.ends())));
        *bytes += packet.frame().len() as u64;
    }
    let counts = |(source, (connections, bytes))| SourceCounts { source, connections, bytes };
    let mut sources: Vec<_> = sources.into_iter().map(counts).collect();
    // In the order of addresses so far, which decides where the rest is alike.
    sources.sort_by_key(|counts| (Reverse(counts.bytes), Reverse(counts.connections)));
    sources.truncate(top);
    sources
}

/// Kind, source, destination, port.
type Probed = (Probe, IpAddr, IpAddr, u16);

fn probe_scans(packets: &[Packet], settings: &Settings) -> Vec<ProbeScan> {
    let mut flows: BTreeMap<_, Vec<&Packet>> = BTreeMap::new();
    for packet in packets {
        flows.entry((packet.flags.is_some(), packet.ends())).or_default().push(packet);
    }
    // The earliest time of each key, and whether anything came back.
    let mut keys: BTreeMap<Probed, (u64, bool)> = BTreeMap::new();
    for flow in flows.values() {
        let first = flow[0];
        let mut fails = |probe: Probe, packet: &Packet, time_ns: u64| {
            let key = keys.entry((probe, packet.source, packet.destination, packet.destination_port));
            let (time, _) = key.or_insert((time_ns, false));
            *time = time_ns.min(*time);
        };
        if first.flags.is_some() {
            let begun = |packet: &&&Packet| (packet.source, packet.source_port) == (first.source, first.source_port);
            for packet in flow.iter().filter(begun) {
                packet.probe().into_iter().for_each(|probe| fails(probe, packet, packet.time_ns));
            }
            if let Some(reset) = flow.get(1).filter(|reset| first.is_refused_by(reset)) {
                fails(Probe::Ack, first, reset.time_ns);
            }
            continue;
        }
        let Some(probe) = first.probe() else { continue };
        let from = (first.source, first.source_port);
        let answered = flow.iter().any(|packet| (packet.source, packet.source_port) != from);
        let key = keys.entry((probe, first.source, first.destination, first.destination_port));
        let (time, ever) = key.or_insert((first.time_ns, false));
        *time = first.time_ns.min(*time);
        *ever |= answered;
    }
    // The failures' times, and how many were answered.
    type Group = (Vec<u64>, u64);
    let mut vertical: BTreeMap<(Probe, IpAddr, IpAddr), Group> = BTreeMap::new();
    let mut horizontal: BTreeMap<(Probe, IpAddr, u16), Group> = BTreeMap::new();
    for ((probe, source, destination, port), (time, answered)) in keys {
        if is_ignored(settings, source, destination, port) {
            continue;
        }
        let of_host = Some(vertical.entry((probe, source, destination)).or_default());
        let of_port = (probe != Probe::Ack).then(|| horizontal.entry((probe, source, port)).or_default());
        for (times, answers) in of_host.into_iter().chain(of_port) {
            if answered { *answers += 1 } else { times.push(time) }
        }
    }
    let scan = |(times, answers): &Group, threshold| {
        crossing(times, threshold).filter(|(count, _)| count * 5 > (count + answers) * 4)
    };
    let mut scans = Vec::new();
    for ((probe, source, port), group) in &horizontal {
        if let Some((count, time_ns)) = scan(group, settings.horizontal_threshold) {
            let scan = Alert::Horizontal { source: *source, port: *port, count, time_ns };
            scans.push(ProbeScan { probe: *probe, scan });
        }
    }
    for ((probe, source, destination), group) in &vertical {
        if let Some((count, time_ns)) = scan(group, settings.vertical_threshold) {
            let scan = Alert::Vertical { source: *source, destination: *destination, count, time_ns };
            scans.push(ProbeScan { probe: *probe, scan });
        }
    }
    let order = |found: &ProbeScan| match found.scan {
        Alert::Horizontal { source, port, time_ns, .. } => (time_ns, 0, source, None, port, found.probe),
        Alert::Vertical { source, destination, time_ns, .. } => (time_ns, 1, source, Some(destination), 0, found.probe),
        Alert::Block { .. } => panic!("there are too few hosts and ports"),
    };
    scans.sort_by_key(order);
    scans
}
