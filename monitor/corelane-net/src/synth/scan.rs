//! The planted scans.
//!
//! Every scan has a source that no other traffic uses, so scans never add up with one another or with the background.
//! Its probes go to different ports of one target, or to one port of different targets, each key once. The monitor's
//! own rules settle the outcome of a probe as soon as the slot of its answer is known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::address::{Plan, to_ip};
use super::config::Config;
use super::frame::{Ends, Options};
use super::random::{Random, scale};
use super::traffic::ephemeral;
use super::truth::{Alert, Probe as Kind, Reply, Scanned, THRESHOLD, Tally};

/// The fewest and the most failures that a scan aims at.
const SIZES: [u64; 2] = [25, 8_000];
/// Probes of a near miss that are accepted. Besides these, as many fail as are just no scan.
const NEAR_MISS_ACCEPTED: u64 = 5;
/// At most one of this many packets belongs to a scan.
const SHARE: u64 = 4;

/// The outcome of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is answered.
    Answered(Reply),
    /// It is not answered, and the scanner repeats it this many times.
    Silent(u8),
    /// The scanner repeats it and then gets an answer, perhaps after the deadline.
    Late(Reply),
}

/// The reactions of a scanned network, in sixteenths of the probes.
#[derive(Clone, Copy, Debug)]
struct Manner {
    accepted: u64,
    rejected: u64,
    late: u64,
    /// All other probes get no answer; whether the scanner repeats those.
    again: bool,
}

const MANNERS: [Manner; 3] = [
    // Hosts without a firewall.
    Manner { accepted: 1, rejected: 15, late: 0, again: false },
    // A firewall that drops, or no host.
    Manner { accepted: 1, rejected: 0, late: 0, again: false },
    // Everything at once.
    Manner { accepted: 2, rejected: 6, late: 3, again: true },
];

/// The reactions to datagrams: hosts, or firewalls before them, drop most.
const UDP_MANNER: Manner = Manner { accepted: 1, rejected: 0, late: 1, again: true };

/// One scan, and its results so far.
#[derive(Clone, Debug)]
struct Scan {
    /// The kind of its probes; `None` is SYNs.
    kind: Option<Kind>,
    horizontal: bool,
    v6: bool,
    near_miss: bool,
    manner: Manner,
    /// Address of the source.
    source: u64,
    /// The place of the target or, in a horizontal scan, of the first target; see [`Plan::target`].
    place: u64,
    /// The port or, in a vertical scan, the first port minus one.
    port: u16,
    /// The distance from port to port. It is a power of two, so the ports repeat only after all 65,535.
    stride: u64,
    probes: u64,
    sent: u64,
    start: u64,
    /// Packets of the capture from probe to probe.
    interval: u64,
    tally: Tally,
}

/// The next probe of a scan.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) kind: Option<Kind>,
    pub(super) ends: Ends,
    pub(super) options: Options,
    pub(super) fate: Fate,
}

/// All scans of a capture.
#[derive(Clone, Debug)]
pub(super) struct Scans {
    scans: Vec<Scan>,
    /// The slot of the next probe of each unfinished scan.
    due: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Scans {
    pub(super) fn new(config: &Config, plan: &Plan, random: &mut Random) -> Self {
        let mut scans = choose(config, plan, random);
        schedule(&mut scans, config.packets, random);
        let due = scans.iter().enumerate().map(|(number, scan)| Reverse((scan.start, number as u32))).collect();
        Self { scans, due }
    }

    /// The scan that has waited longest for a slot, if one waits.
    #[inline]
    pub(super) fn due(&self, now: u64) -> Option<u32> {
        let &Reverse((due, number)) = self.due.peek()?;
        (due <= now).then_some(number)
    }

    /// The next probe of the scan that is [`due`](Self::due).
    pub(super) fn probe(&mut self, plan: &Plan, random: &mut Random) -> Probe {
        let Reverse((_, number)) = self.due.pop().expect("a scan is due");
        let scan = &mut self.scans[number as usize];
        let probe = scan.probe(plan, random);
        scan.sent += 1;
        if scan.sent < scan.probes {
            self.due.push(Reverse((scan.start + scan.sent * scan.interval, number)));
        }
        probe
    }

    /// Counts a probe that failed at this time, unless the capture ends before.
    pub(super) fn failed(&mut self, number: u32, time_ns: u64) {
        self.scans[number as usize].tally.add(time_ns);
    }

    /// Counts a UDP probe that was answered.
    pub(super) fn answered(&mut self, number: u32) {
        self.scans[number as usize].tally.add_answered();
    }

    /// The alerts of all scans, if the last record has time `end`.
    pub(super) fn alerts(&self, plan: &Plan, end: u64) -> Vec<Alert> {
        let mut alerts: Vec<_> = self.scans.iter().filter_map(|scan| scan.alert(plan, end)).collect();
        alerts.sort_unstable();
        alerts
    }
}

/// Chooses scans until the wanted number or their share of the packets is reached.
fn choose(config: &Config, plan: &Plan, random: &mut Random) -> Vec<Scan> {
    let wanted =
        [config.vertical_scans, config.horizontal_scans, config.probe_scans].into_iter().map(u64::from).sum::<u64>();
    let mut budget = config.packets / SHARE;
    // A probe costs about two packets, and there are near misses too.
    let largest = (budget / (wanted + wanted / 3).max(1) / 4).clamp(SIZES[0], SIZES[1]);
    let mut left = [config.vertical_scans, config.horizontal_scans, config.probe_scans];
    let mut scans = Vec::new();
    let mut planted = 0;
    let mut probing = 0;
    while left != [0, 0, 0] {
        // They alternate while there are both.
        let mut horizontal = left[0] == 0 || (left[1] > 0 && planted % 2 == 1);
        let mut kind = None;
        if left[..2] == [0, 0] {
            left[2] -= 1;
            kind = Some(Kind::ALL[probing % Kind::ALL.len()]);
            // With this, eight scans show every kind in both shapes.
            horizontal = (probing + probing / Kind::ALL.len()) % 2 == 1;
            probing += 1;
        } else {
            left[usize::from(horizontal)] -= 1;
        }
        let near_miss = planted % 3 == 1;
        for near_miss in [false, true].into_iter().take(1 + usize::from(near_miss)) {
            let scan = Scan::new(scans.len() as u64, planted, kind, [horizontal, near_miss], largest, plan, random);
            let cost = scan.probes * 2;
            if cost > budget {
                return scans;
            }
            budget -= cost;
            scans.push(scan);
        }
        planted += 1;
    }
    scans
}

/// Spreads the scans over the capture. Each starts in its own part of it; most are quick, and some last until the end.
fn schedule(scans: &mut [Scan], packets: u64, random: &mut Random) {
    let parts = scans.len() as u64;
    // The last tenth is left for the answers.
    let usable = packets - packets / 10;
    for (number, scan) in (0_u64..).zip(scans) {
        scan.start = scale(random.next(), usable / parts) + usable / parts * number;
        let quick = (1 + random.below(200)) * scan.probes;
        let rest = usable - scan.start;
        let length = match number % 5 {
            3 => rest,
            // These may still be at work when the capture ends.
            4 if parts > 8 && !scan.near_miss => rest + packets / 9,
            _ => quick.min(rest),
        };
        scan.interval = length / scan.probes;
    }
}

impl Scan {
    fn new(
        number: u64,
        planted: u64,
        kind: Option<Kind>,
        [horizontal, near_miss]: [bool; 2],
        largest: u64,
        plan: &Plan,
        random: &mut Random,
    ) -> Self {
        // Kinds alternate. So twelve scans show both kinds over both IP versions in all three manners, and the first
        // three show all manners.
        let v6 = planted / 2 % 2 == 1;
        let manner = match kind {
            Some(Kind::Udp) => UDP_MANNER,
            _ => MANNERS[((planted + planted / 4) % 3) as usize],
        };
        let failures = (SIZES[0] - 1 + random.zipf(largest)).clamp(SIZES[0], largest);
        // A fourth more for the probes that are accepted, perhaps late.
        let probes = match (near_miss, kind) {
            (false, _) => failures + failures / 4 + 2,
            // Every one of these fails.
            (true, Some(Kind::Fin | Kind::Null | Kind::Xmas | Kind::SynFin | Kind::Odd)) => THRESHOLD as u64,
            (true, _) => THRESHOLD as u64 + NEAR_MISS_ACCEPTED,
        };
        let ports = match kind {
            Some(Kind::Udp) => [53, 69, 123, 137, 161, 389, 1900, 11_211],
            _ => [22, 23, 80, 443, 445, 1433, 3306, 3389],
        };
        Self {
            kind,
            horizontal,
            v6,
            near_miss,
            manner,
            source: plan.scanner(v6, number),
            place: random.below(1 << 16),
            port: if horizontal { ports[random.below(8) as usize] } else { random.below(65_535) as u16 },
            stride: 1 << random.below(16),
            probes,
            sent: 0,
            start: 0,
            interval: 0,
            tally: Tally::default(),
        }
    }

    fn probe(&self, plan: &Plan, random: &mut Random) -> Probe {
        let (place, port) = if self.horizontal {
            (self.place + self.sent, self.port)
        } else {
            (self.place, 1 + ((u64::from(self.port) + self.sent * self.stride) % 65_535) as u16)
        };
        let addresses = [self.source, plan.target(self.v6, place)];
        let ends = Ends { v6: self.v6, addresses, ports: [ephemeral(random), port] };
        let options = if self.source & 1 == 0 && self.kind.is_none() { Options::SegmentSize } else { Options::None };
        Probe { kind: self.kind, ends, options, fate: self.fate(random) }
    }

    fn fate(&self, random: &mut Random) -> Fate {
        if self.near_miss {
            // Accepted probes come first, so that the capture's end does not cut off their answers.
            return match self.sent {
                sent if sent < NEAR_MISS_ACCEPTED => Fate::Answered(Reply::Accept),
                sent if sent % 2 == 0 => Fate::Answered(Reply::Reject),
                sent => Fate::Silent((sent % 4 / 2) as u8),
            };
        }
        let Manner { accepted, rejected, late, again } = self.manner;
        match random.below(16) {
            draw if draw < accepted => Fate::Answered(Reply::Accept),
            draw if draw < accepted + rejected => Fate::Answered(Reply::Reject),
            draw if draw < accepted + rejected + late => {
                Fate::Late(if draw % 2 == 0 { Reply::Accept } else { Reply::Reject })
            }
            _ => Fate::Silent(u8::from(again)),
        }
    }

    fn alert(&self, plan: &Plan, end: u64) -> Option<Alert> {
        let (count, time_ns) = self.tally.alert(end)?;
        let scanned = if self.horizontal {
            Scanned::Horizontal { port: self.port }
        } else {
            Scanned::Vertical { destination: to_ip(self.v6, plan.target(self.v6, self.place)) }
        };
        Some(Alert { probe: self.kind, source: to_ip(self.v6, self.source), scanned, count, time_ns })
    }
}
