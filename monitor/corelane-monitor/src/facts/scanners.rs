//! The stories of scans and of those that scan, made once it is known which scans there are.
//!
//! All attempts and probes are walked once. The walk has no order, as tables are hashed, so all that is kept is a sum,
//! a set, or the least of a set.

use super::Facts;
use super::bins::{Bins, Sum};
use super::part::{Port, Span};
use crate::analyzer::kept::{Outcome, Trial, Trials};
use crate::hash::HashKeys;
use crate::probe::Probe;
use crate::report::{Alert, Report};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

/// Scanners that are kept.
const SCANNERS: usize = 24;
/// Stories that are kept.
const STORIES: usize = 300;
/// Targets of a scanner that are kept.
const ROWS: usize = 2048;
/// Answers of a scan that are kept.
const OPEN: usize = 64;
/// The parts that ports are put in.
pub(crate) const COLUMNS: u32 = 128;

/// The part of a port: 64 of the ports below 1024, and 64 of the others.
pub(crate) fn column(port: u16) -> u32 {
    if port < 1024 { u32::from(port) / 16 } else { 64 + (u32::from(port) - 1024) / 1008 }
}

/// Attempts over time.
pub type Attempts = Bins<Tries, 1024>;

/// Attempts of a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// Those that failed.
    pub failed: u32,
    /// Those that were answered.
    pub answered: u32,
    /// The least and the largest time of any.
    pub span: Span,
}

impl Tries {
    fn count(&self) -> u64 {
        u64::from(self.failed) + u64::from(self.answered)
    }
}

impl Sum for Tries {
    fn add(&mut self, other: &Self) {
        self.failed += other.failed;
        self.answered += other.answered;
        self.span.add(other.span);
    }
}

/// A port that answered a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opened {
    /// The host.
    pub host: IpAddr,
    /// The port.
    pub port: Port,
}

/// What is told of the attempts of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanDetails {
    /// The attempts that failed: distinct ports of distinct hosts.
    pub failed: u64,
    /// Those of them that were SYNs and that an RST ended.
    pub rejected: u64,
    /// Those of them that were other probes than SYNs: datagrams without an answer, or segments that no stack sends.
    pub probes: u64,
    /// The least and the largest time, in nanoseconds since the epoch: of attempts, or of their rejections.
    pub span: Span,
    /// The same over time.
    pub attempts: Attempts,
    /// What answered: the least hosts and ports, in that order.
    pub open: BTreeSet<Opened>,
    /// Whether more ports answered.
    pub more_open: bool,
    /// How many answered: of TCP only a SYN is, so no port is counted twice.
    pub answered: u64,
}

impl ScanDetails {
    /// When most of it happened: the shortest time that holds nine of ten attempts, to a bin, and how many it holds.
    pub fn most(&self) -> (Span, u64) {
        let all = self.failed + self.answered;
        let enough = all - all / 10;
        let length = |span: Span| span.1.saturating_sub(span.0);
        let bins: Vec<_> = self.attempts.bins().iter().filter(|bin| bin.count() > 0).collect();
        let (mut least, mut first, mut count) = ((self.span, all), 0, 0);
        for last in &bins {
            count += last.count();
            while count - bins[first].count() >= enough {
                count -= bins[first].count();
                first += 1;
            }
            let span = Span(bins[first].span.0, last.span.1);
            if count >= enough && length(span) < length(least.0) {
                least = (span, count);
            }
        }
        least
    }

    fn add(&mut self, trial: &Trial) {
        let Trial { destination: host, port, probe, time_ns, outcome, .. } = *trial;
        let is_answered = outcome == Outcome::Answered;
        let span = Span(time_ns, time_ns);
        self.span.add(span);
        let tries = Tries { failed: u32::from(!is_answered), answered: u32::from(is_answered), span };
        self.attempts.at(time_ns).add(&tries);
        if !is_answered {
            self.failed += 1;
            self.rejected += u64::from(outcome == Outcome::Rejected);
            self.probes += u64::from(probe.is_some());
            return;
        }
        self.answered += 1;
        if !has_ports(probe) {
            return;
        }
        self.open.insert(Opened { host, port: Port { is_tcp: probe != Some(Probe::Udp), number: port } });
        if self.open.len() > OPEN {
            self.open.pop_last();
            self.more_open = true;
        }
    }
}

/// Whether what a probe asks for is a port of TCP or UDP.
fn has_ports(probe: Option<Probe>) -> bool {
    !matches!(probe, Some(Probe::Ping | Probe::Arp | Probe::Protocol | Probe::Sctp))
}

/// The story of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// The scan.
    pub scan: Alert,
    /// The kind of its probes; `None` is a SYN.
    pub probe: Option<Probe>,
    /// What became of its attempts.
    pub details: ScanDetails,
}

/// A host that a scanner tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The parts of the ports at which attempts failed, as bits.
    pub failed: u128,
    /// The same of attempts that were answered.
    pub open: u128,
}

/// A source of scans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanner {
    /// The source.
    pub source: IpAddr,
    /// Its vertical and its horizontal scans.
    pub scans: [u64; 2],
    /// The kinds of their probes; `None` is a SYN.
    pub probes: BTreeSet<Option<Probe>>,
    /// What is told of the attempts of all its scans.
    pub details: ScanDetails,
    /// The hosts that it tried, the least first.
    pub rows: BTreeMap<IpAddr, Row>,
    /// Whether there were more.
    pub more_rows: bool,
    /// The distinct ports that it tried.
    pub ports: u64,
}

impl Scanner {
    fn new(source: IpAddr) -> Self {
        Scanner {
            source,
            scans: [0; 2],
            probes: BTreeSet::new(),
            details: ScanDetails::default(),
            rows: BTreeMap::new(),
            more_rows: false,
            ports: 0,
        }
    }

    fn row(&mut self, trial: &Trial) {
        let row = self.rows.entry(trial.destination).or_default();
        let bit = 1 << column(trial.port);
        if trial.outcome != Outcome::Answered {
            row.failed |= bit;
        } else {
            row.open |= bit;
        }
        if self.rows.len() > ROWS {
            self.rows.pop_last();
            self.more_rows = true;
        }
    }
}

/// What a scan is found by: its source and probe, and its host or port.
type Vertical = (IpAddr, IpAddr, Option<Probe>);
type Horizontal = (IpAddr, u16, Option<Probe>);

/// Tells the stories of the scans in the report.
pub(crate) fn describe_scans(report: &Report, trials: &[Trials], facts: &mut Facts) {
    let by_syn = report.alerts.iter().map(|scan| (scan, None));
    let by_probe = report.probe_scans.iter().map(|found| (&found.scan, Some(found.probe)));
    let mut scans: Vec<_> = by_syn.chain(by_probe).collect();
    if scans.is_empty() {
        return;
    }
    scans.sort_by_key(|(scan, probe)| (Reverse(scan.count()), scan.order(), *probe));
    // Each attempt is looked up in all three, and there may be very many.
    let keys = HashKeys::random();
    let mut vertical = HashMap::<Vertical, usize, _>::with_hasher(keys);
    let mut horizontal = HashMap::<Horizontal, usize, _>::with_hasher(keys);
    let mut blocks = HashMap::<(IpAddr, Option<Probe>), usize, _>::with_hasher(keys);
    let mut numbers = HashMap::<IpAddr, usize, _>::with_hasher(keys);
    let mut scanners = BTreeMap::<IpAddr, (u64, Scanner)>::new();
    for (number, &(scan, probe)) in scans.iter().enumerate() {
        let source = scan.source();
        match *scan {
            Alert::Vertical { destination, .. } => drop(vertical.insert((source, destination, probe), number)),
            Alert::Horizontal { port, .. } => drop(horizontal.insert((source, port, probe), number)),
            // All that a source did of this kind.
            Alert::Block { .. } => drop(blocks.insert((source, probe), number)),
        }
        let (weight, scanner) = scanners.entry(source).or_insert_with(|| (0, Scanner::new(source)));
        *weight += scan.count();
        scanner.scans[usize::from(matches!(scan, Alert::Horizontal { .. }))] += 1;
        scanner.probes.insert(probe);
    }
    let mut scanners: Vec<_> = scanners.into_values().collect();
    scanners.sort_by_key(|(weight, scanner)| (Reverse(*weight), scanner.source));
    facts.more_scanners = scanners.len().saturating_sub(SCANNERS) as u64;
    facts.more_stories = scans.len().saturating_sub(STORIES) as u64;
    scanners.truncate(SCANNERS);
    facts.scanners = scanners.into_iter().map(|(_, scanner)| scanner).collect();
    let story = |&(scan, probe): &(&Alert, _)| Story { scan: scan.clone(), probe, details: ScanDetails::default() };
    facts.stories = scans.iter().take(STORIES).map(story).collect();
    numbers.extend(facts.scanners.iter().enumerate().map(|(number, scanner)| (scanner.source, number)));
    let mut ports = vec![[0_u64; 1024]; facts.scanners.len()];
    for trials in trials {
        trials.each(|trial| {
            let Trial { source, destination, port, probe, outcome, .. } = *trial;
            let of_scan = [
                vertical.get(&(source, destination, probe)),
                horizontal.get(&(source, port, probe)),
                blocks.get(&(source, probe)).filter(|_| outcome != Outcome::Answered),
            ];
            for &number in of_scan.into_iter().flatten() {
                if let Some(story) = facts.stories.get_mut(number) {
                    story.details.add(trial);
                }
            }
            let Some(&number) = numbers.get(&source) else { return };
            let in_scan = of_scan.iter().any(Option::is_some);
            let scanner = &mut facts.scanners[number];
            if in_scan {
                scanner.details.add(trial);
            }
            if has_ports(probe) && (outcome != Outcome::Answered || in_scan) {
                ports[number][usize::from(port) / 64] |= 1 << (port % 64);
                scanner.row(trial);
            }
        });
        facts.may_lack_answers |= trials.are_cut();
    }
    for (scanner, ports) in facts.scanners.iter_mut().zip(ports) {
        scanner.ports = ports.iter().map(|ports| u64::from(ports.count_ones())).sum();
        scanner.details.attempts.settle();
    }
    facts.stories.iter_mut().for_each(|story| story.details.attempts.settle());
}
