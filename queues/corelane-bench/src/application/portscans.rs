//! Section III of the MCRingBuffer paper: vertical scans in the SubAnalyzers, horizontal ones in the MainAnalyzer.
//!
//! A source has a failed attempt at each pair of a destination and a port to which it sent a SYN, and from which no
//! SYN-ACK came in the whole trace. More than [`THRESHOLD`] of them are a scan: vertical, of one destination;
//! horizontal, of one port (III-B1).
//!
//! 1. An element is a packet's time and header (III-A1).
//! 2. A SubAnalyzer keeps the statistics of 5-tuple flows, the attempts, and the number of failed ones of each address
//!    pair (III-A2).
//! 3. The first SYN of an attempt makes a state report, and so does its first SYN-ACK. "A state report is sent only
//!    when it leads to a change in the global analysis result" (III-A3), so a SYN-ACK before its SYN makes none, and
//!    neither does the SYN then. The reports carry frequency counts, so the MainAnalyzer needs no attempts: it adds and
//!    subtracts 1 at (source, port).
//! 4. With [`counts`](Portscans::counts), the examples of III-A3 too: a report when a host begins a connection and when
//!    that is released, by the first FIN or RST, and one for every [`UNIT`] bytes that a host has sent. At the end come
//!    reports of the rest.

use super::{Application, Ring, Trace, pointers, rings};
use crate::item::Block;
use corelane_net::capture::Record;
use corelane_net::decode::flags::{ACK, FIN, RST, SYN};
use corelane_net::decode::{Decoded, Transport, datagram, decode, mapped, transport};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;

/// More failed attempts than this are a scan.
const THRESHOLD: u64 = 20;
/// The bytes for which a host's SubAnalyzer sends a report, M in III-A3.
const UNIT: u64 = 1 << 14;

/// Finds scans in a trace.
#[derive(Debug)]
pub(crate) struct Portscans {
    pub(crate) trace: Arc<Trace>,
    /// Whether the connections and bytes of each host are counted.
    pub(crate) counts: bool,
}

/// A decoded packet.
#[derive(Clone, Copy)]
struct Header {
    time_ns: u64,
    wire_len: u32,
    transport: Transport<u128>,
}

const HEADER: usize = 7;
const REPORT: usize = 4;

fn halves(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}

fn address(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

impl Header {
    #[inline(always)]
    fn element(&self) -> Block<HEADER> {
        let Transport { source, destination, source_port, destination_port, protocol, flags, .. } = self.transport;
        let ([a, b], [c, d]) = (halves(source), halves(destination));
        let ports = u64::from(source_port) << 48 | u64::from(destination_port) << 32;
        // The protocol is not 0, so no packet is an end mark.
        Block([self.time_ns, a, b, c, d, ports | u64::from(protocol) << 8 | u64::from(flags), self.wire_len.into()])
    }

    #[inline(always)]
    fn of(Block([time_ns, a, b, c, d, rest, wire_len]): Block<HEADER>) -> Self {
        let transport = Transport {
            source: address(a, b),
            destination: address(c, d),
            source_port: (rest >> 48) as u16,
            destination_port: (rest >> 32) as u16,
            protocol: (rest >> 8) as u8,
            flags: rest as u8,
            hops: 0,
            is_at_zero: false,
        };
        Header { time_ns, wire_len: wire_len as u32, transport }
    }
}

/// What a state report says of a host.
#[derive(Clone, Copy)]
enum State {
    /// It has one more failed attempt at this port.
    Tried(u16),
    /// One less: it was answered.
    Answered(u16),
    Begun,
    Released,
    Sent(u64),
}

#[inline(always)]
fn report(host: u128, state: State) -> Block<REPORT> {
    let (kind, value) = match state {
        State::Tried(port) => (1, port.into()),
        State::Answered(port) => (2, port.into()),
        State::Begun => (3, 0),
        State::Released => (4, 0),
        State::Sent(bytes) => (5, bytes),
    };
    let [high, low] = halves(host);
    Block([kind, high, low, value])
}

/// An attempt's key: source, destination, port.
type Attempt = (u128, u128, u16);
/// A flow's key: its ends, the lesser first, and the protocol.
type Flow = ((u128, u16), (u128, u16), u8);

/// What an attempt has seen.
#[derive(Clone, Copy, Default)]
struct Seen {
    syn: bool,
    syn_ack: bool,
}

#[derive(Default)]
struct Statistics {
    packets: u64,
    bytes: u64,
    last_ns: u64,
    begun_by: u128,
    is_released: bool,
}

/// The state of a SubAnalyzer.
#[derive(Default)]
pub(crate) struct Sub {
    flows: HashMap<Flow, Statistics>,
    attempts: HashMap<Attempt, Seen>,
    /// Failed attempts of each address pair.
    failed: HashMap<(u128, u128), u64>,
    /// Bytes that hosts sent since their last report.
    unsent: HashMap<u128, u64>,
}

/// The results of a SubAnalyzer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Local {
    pub(crate) flows: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) last_ns: u64,
    pub(crate) failed: u64,
    vertical: Vec<Scan>,
}

/// The state of the MainAnalyzer.
#[derive(Default)]
pub(crate) struct Main {
    /// Failed attempts by (source, port).
    failed: HashMap<(u128, u16), i64>,
    hosts: BTreeMap<u128, Host>,
}

/// The counts of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) begun: u64,
    pub(crate) released: u64,
    pub(crate) bytes: u64,
}

/// A scan, with the number of failed attempts. IPv4 addresses are mapped into IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scan {
    Horizontal { source: u128, port: u16, count: u64 },
    Vertical { source: u128, destination: u128, count: u64 },
}

/// All that was found. The sums make every lost packet and every lost report show.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) scans: BTreeSet<Scan>,
    pub(crate) sums: Local,
    /// The failed attempts by the state reports, which are as many as those of the SubAnalyzers.
    pub(crate) reported: i64,
    pub(crate) hosts: BTreeMap<u128, Host>,
}

impl Application for Portscans {
    type Packet = Block<HEADER>;
    type Report = Block<REPORT>;
    type Sub = Sub;
    type Local = Local;
    type Main = Main;
    type Answer = Answer;
    /// "For simplicity, we let the kernel decide the core assignment for the threads."
    const PINNED: bool = false;

    /// The batches of III-B1: 50 to the SubAnalyzers, and 1 from them, "since state reports arrive less frequently and
    /// we want to process them immediately".
    fn rings() -> Vec<Ring<Block<HEADER>, Block<REPORT>>> {
        rings([50, 1], (pointers, pointers))
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    #[inline(always)]
    fn dispatch(&self, _: usize, record: &Record<'_>) -> Option<(u128, Block<HEADER>)> {
        let transport = match decode(record.link, record.data) {
            Decoded::V6(packet) => packet,
            Decoded::V4(packet) => {
                let Transport { source_port, destination_port, protocol, flags, hops, is_at_zero, .. } = packet;
                let (source, destination) = (mapped(packet.source), mapped(packet.destination));
                Transport { source, destination, source_port, destination_port, protocol, flags, hops, is_at_zero }
            }
            // The first one of a packet has its header, mostly.
            Decoded::Fragment => transport(&datagram(record).ok()?).ok()?,
            _ => return None,
        };
        let header = Header { time_ns: record.time_ns, wire_len: record.wire_len, transport };
        Some((transport.source.wrapping_add(transport.destination), header.element()))
    }

    fn sub_analyzer(&self) -> Sub {
        Sub::default()
    }

    #[inline(always)]
    fn analyse(&self, sub: &mut Sub, packet: Block<HEADER>, reports: &mut Vec<Block<REPORT>>) {
        let Header { time_ns, wire_len, transport } = Header::of(packet);
        let Transport { source, destination, source_port, destination_port, protocol, flags, .. } = transport;
        let (from, to) = ((source, source_port), (destination, destination_port));
        let flow = sub.flows.entry((from.min(to), from.max(to), protocol)).or_default();
        flow.packets += 1;
        flow.bytes += u64::from(wire_len);
        flow.last_ns = flow.last_ns.max(time_ns);
        if self.counts {
            if flow.packets == 1 {
                flow.begun_by = source;
                reports.push(report(source, State::Begun));
            }
            if flags & (FIN | RST) != 0 && !mem::replace(&mut flow.is_released, true) {
                reports.push(report(flow.begun_by, State::Released));
            }
            let unsent = sub.unsent.entry(source).or_default();
            *unsent += u64::from(wire_len);
            if *unsent >= UNIT {
                reports.push(report(source, State::Sent(mem::take(unsent))));
            }
        }
        if flags & (SYN | RST) != SYN {
            return;
        }
        if flags & ACK != 0 {
            let seen = sub.attempts.entry((destination, source, source_port)).or_default();
            if !mem::replace(&mut seen.syn_ack, true) && seen.syn {
                *sub.failed.entry((destination, source)).or_default() -= 1;
                reports.push(report(destination, State::Answered(source_port)));
            }
        } else if flags & FIN == 0 {
            let seen = sub.attempts.entry((source, destination, destination_port)).or_default();
            if !mem::replace(&mut seen.syn, true) && !seen.syn_ack {
                *sub.failed.entry((source, destination)).or_default() += 1;
                reports.push(report(source, State::Tried(destination_port)));
            }
        }
    }

    fn finish(&self, sub: Sub, reports: &mut Vec<Block<REPORT>>) -> Local {
        reports.extend(sub.unsent.into_iter().map(|(host, bytes)| report(host, State::Sent(bytes))));
        let mut local = Local { flows: sub.flows.len() as u64, ..Local::default() };
        for flow in sub.flows.values() {
            local.packets += flow.packets;
            local.bytes += flow.bytes;
            local.last_ns = local.last_ns.max(flow.last_ns);
        }
        for ((source, destination), count) in sub.failed {
            local.failed += count;
            local.vertical.extend((count > THRESHOLD).then_some(Scan::Vertical { source, destination, count }));
        }
        local
    }

    #[inline(always)]
    fn aggregate(main: &mut Main, Block([kind, high, low, value]): Block<REPORT>) {
        let host = address(high, low);
        match kind {
            1 => *main.failed.entry((host, value as u16)).or_default() += 1,
            2 => *main.failed.entry((host, value as u16)).or_default() -= 1,
            3 => main.hosts.entry(host).or_default().begun += 1,
            4 => main.hosts.entry(host).or_default().released += 1,
            _ => main.hosts.entry(host).or_default().bytes += value,
        }
    }

    fn answer(main: Main, locals: Vec<Local>) -> Answer {
        let (mut scans, mut sums) = (BTreeSet::new(), Local::default());
        for local in locals {
            sums.flows += local.flows;
            sums.packets += local.packets;
            sums.bytes += local.bytes;
            sums.last_ns = sums.last_ns.max(local.last_ns);
            sums.failed += local.failed;
            scans.extend(local.vertical);
        }
        let reported = main.failed.values().sum();
        for ((source, port), count) in main.failed {
            let count = count.try_into().unwrap_or(0);
            scans.extend((count > THRESHOLD).then_some(Scan::Horizontal { source, port, count }));
        }
        Answer { scans, sums, reported, hosts: main.hosts }
    }
}
