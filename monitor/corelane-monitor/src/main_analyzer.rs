//! The third stage: the global analysis.

use crate::dispatch::Dispatcher;
use crate::groups::{Groups, Scan, block_threshold, to_one};
use crate::hash::HashKeys;
use crate::partial_result::{Answered, BlockPart, PartialResult};
use crate::probe::Probe;
use crate::report::{Alert, ProbeScan, Report, SourceCounts};
use crate::settings::Settings;
use crate::state_report::{Content, StateReport};
use crate::talkers::{Address, Talkers, Top, Volume};
use crate::through::{Known, Through};
use crate::twins::{self, twin};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;

/// Finds horizontal scans in the state reports of all SubAnalyzers, and joins their partial results. The order of the
/// reports does not matter. The order of the results decides only the order of the SubAnalyzers' packet counts.
#[derive(Debug)]
pub struct MainAnalyzer {
    /// Failures by (source, port).
    groups_v4: Groups<(u32, u16)>,
    groups_v6: Groups<(u128, u16)>,
    /// Failures of probes, by (kind, source, port).
    probes_v4: Groups<(Probe, u32, u16)>,
    probes_v6: Groups<(Probe, u128, u16)>,
    answered_v4: Vec<Answered<u32>>,
    answered_v6: Vec<Answered<u128>>,
    /// The traffic of each source, if it is counted.
    sources_v4: HashMap<u32, Volume, HashKeys>,
    sources_v6: HashMap<u128, Volume, HashKeys>,
    /// The number of sources to list, if they are counted.
    top_sources: Option<usize>,
    talkers: Talkers,
    /// The failures of each source and kind that count for a block: times and hosts.
    blocks: HashMap<(IpAddr, Option<Probe>), TimesAndHosts, HashKeys>,
    block_threshold: u64,
    /// The tunnels of hosts.
    through: Vec<Through>,
    keys: HashKeys,
    report: Report,
}

type TimesAndHosts = Vec<(u64, IpAddr)>;

/// Groups of failures, with their members where these may have come through tunnels.
fn groups<K: Hash + Eq + Copy>(settings: &Settings, keys: HashKeys) -> Groups<K> {
    let groups = Groups::new(settings.horizontal_threshold, keys);
    if settings.tunnels { groups.with_members() } else { groups }
}

/// The answers of [twins](crate::twins) outweigh failures of IPv6.
fn weigh_twins(groups: &mut Groups<(u128, u16)>, answered: &[Answered<u32>]) {
    let ports: HashSet<u16> = groups.scans().map(|&(_, port)| port).collect();
    let mut of_ports = HashMap::<u16, Vec<(u32, u32)>>::new();
    for key in answered.iter().filter(|key| key.probe.is_none() && ports.contains(&key.port)) {
        of_ports.entry(key.port).or_default().push((key.begun, key.source));
    }
    groups.outweigh(|&(_, port), begun| {
        let answers = of_ports.get(&port)?;
        let twin = twin(&begun, answers.iter().copied())?;
        Some(twins::outweighed(answers.iter().filter(|&&(_, source)| source == twin).count() as u64))
    });
}

impl MainAnalyzer {
    /// A MainAnalyzer without state.
    pub fn new(settings: &Settings) -> Self {
        let keys = HashKeys::random();
        MainAnalyzer {
            groups_v4: groups(settings, keys),
            groups_v6: groups(settings, keys),
            probes_v4: groups(settings, keys),
            probes_v6: groups(settings, keys),
            answered_v4: Vec::new(),
            answered_v6: Vec::new(),
            sources_v4: HashMap::with_hasher(keys),
            sources_v6: HashMap::with_hasher(keys),
            top_sources: settings.counting.map(|counting| counting.top),
            talkers: Talkers::new(settings.top, keys),
            blocks: HashMap::with_hasher(keys),
            block_threshold: block_threshold(settings),
            through: Vec::new(),
            keys,
            report: Report::default(),
        }
    }

    /// Takes a state report of any SubAnalyzer.
    #[inline]
    pub fn state_report(&mut self, report: StateReport) {
        let (port, time_ns, to) = (report.port(), report.time_ns(), || report.destination());
        match (report.content(), report.is_v6()) {
            (Content::Failed(None), false) => self.groups_v4.add((report.source_v4(), port), time_ns, to),
            (Content::Failed(None), true) => {
                self.groups_v6.add_begun((report.source_v6(), port), time_ns, report.lag().before(time_ns), to);
            }
            (Content::Failed(Some(probe)), false) => self.probes_v4.add((probe, report.source_v4(), port), time_ns, to),
            (Content::Failed(Some(probe)), true) => self.probes_v6.add((probe, report.source_v6(), port), time_ns, to),
            // The keys of a SubAnalyzer are in its result.
            (Content::Answered(_), _) => {}
            (Content::Polled(None), false) => self.groups_v4.add_polled((report.source_v4(), port)),
            (Content::Polled(None), true) => self.groups_v6.add_polled((report.source_v6(), port)),
            (Content::Polled(Some(probe)), false) => self.probes_v4.add_polled((probe, report.source_v4(), port)),
            (Content::Polled(Some(probe)), true) => self.probes_v6.add_polled((probe, report.source_v6(), port)),
            (Content::Sent { bytes, connections }, is_v6) => {
                let volume = Volume { flows: connections.into(), packets: 0, bytes };
                if is_v6 {
                    self.sources_v6.entry(report.source_v6()).or_default().add(&volume);
                } else {
                    self.sources_v4.entry(report.source_v4()).or_default().add(&volume);
                }
            }
        }
    }

    /// Takes tunnels of hosts.
    pub(crate) fn through(&mut self, noted: Vec<Through>) {
        self.through.extend(noted);
    }

    /// Takes the partial result of a SubAnalyzer. The calls come in the order of the SubAnalyzers' numbers, which
    /// becomes that of [`Report::analyzer_packets`].
    pub fn partial_result(&mut self, result: PartialResult) {
        self.report.analyzer_packets.push(result.packets);
        self.add(result);
    }

    /// Takes the partial result of the Dispatcher's own analysis.
    pub fn dispatchers_result(&mut self, result: PartialResult) {
        self.report.dispatcher_packets += result.packets;
        self.add(result);
    }

    fn add(&mut self, result: PartialResult) {
        let report = &mut self.report;
        report.tcp += result.tcp;
        report.malformed += result.malformed;
        report.evicted.flows += result.evicted_flows;
        report.evicted.failures += result.evicted_failures;
        report.flows += result.flows;
        *report.pairs.get_or_insert_default() += result.pairs;
        report.refused.add(&result.refused);
        report.rejected += result.rejected;
        report.unanswered += result.unanswered;
        report.failed_attempts += result.rejected + result.unanswered;
        report.alerts.extend(result.alerts);
        report.probe_scans.extend(result.probe_scans);
        for BlockPart { of, destination, times } in result.blocks {
            self.blocks.entry(of).or_default().extend(times.into_iter().map(|time_ns| (time_ns, destination)));
        }
        self.answered_v4.extend(result.answered_v4);
        self.answered_v6.extend(result.answered_v6);
        self.talkers.merge(result.talkers);
    }

    /// Makes the report, with the Dispatcher's own counts, once all SubAnalyzers' reports and results are here.
    pub fn finish(mut self, dispatcher: &Dispatcher) -> Report {
        // With the hosts that failed.
        fn horizontal<A: Address>(scan: Scan<(A, u16)>) -> (Vec<IpAddr>, Alert) {
            let Scan { key: (source, port), count, time_ns, members } = scan;
            (members, Alert::Horizontal { source: source.ip(), port, count, time_ns })
        }
        fn weigh<A: Address>(
            syns: &mut Groups<(A, u16)>,
            probes: &mut Groups<(Probe, A, u16)>,
            answered: &[Answered<A>],
        ) {
            syns.drop_small();
            probes.drop_small();
            let (of_syns, of_probes) = (answered.iter(), answered.iter());
            syns.add_answered(
                of_syns
                    .filter(|key| key.probe.is_none())
                    .map(|key| ((key.source, key.port), key.has_failed, to_one(None))),
            );
            probes.add_answered(
                of_probes
                    .filter_map(|key| Some(((key.probe?, key.source, key.port), key.has_failed, to_one(key.probe)))),
            );
        }
        fn probes<A: Address>(groups: &mut Groups<(Probe, A, u16)>) -> impl Iterator<Item = (Vec<IpAddr>, ProbeScan)> {
            groups.drain_scans().map(|Scan { key: (probe, source, port), count, time_ns, members }| {
                let scan = Alert::Horizontal { source: source.ip(), port, count, time_ns };
                (members, ProbeScan { probe, scan })
            })
        }
        let mut report = self.report;
        self.through.extend_from_slice(dispatcher.noted());
        let known = Known::of_all(self.through, self.keys);
        let tunnelled = &mut report.tunnelled;
        let mut note = |scan: &Alert, probe, destinations: &[IpAddr]| {
            let tunnel = destinations.iter().find_map(|&destination| known.of(scan.source(), destination, 0));
            tunnelled.extend(tunnel.map(|tunnel| (scan.name(probe), tunnel)));
        };
        report.alerts.iter().for_each(|scan| note(scan, None, scan.destination().as_slice()));
        report
            .probe_scans
            .iter()
            .for_each(|found| note(&found.scan, Some(found.probe), found.scan.destination().as_slice()));
        weigh(&mut self.groups_v4, &mut self.probes_v4, &self.answered_v4);
        weigh(&mut self.groups_v6, &mut self.probes_v6, &self.answered_v6);
        weigh_twins(&mut self.groups_v6, &self.answered_v4);
        let of_syns = self.groups_v4.drain_scans().map(horizontal);
        for (members, scan) in of_syns.chain(self.groups_v6.drain_scans().map(horizontal)) {
            note(&scan, None, &members);
            report.alerts.push(scan);
        }
        let of_probes = probes(&mut self.probes_v4);
        for (members, found) in of_probes.chain(probes(&mut self.probes_v6)) {
            note(&found.scan, Some(found.probe), &members);
            report.probe_scans.push(found);
        }
        // A source that has other scans of a kind is known already.
        report.alerts.iter().for_each(|scan| drop(self.blocks.remove(&(scan.source(), None))));
        report.probe_scans.iter().for_each(|found| drop(self.blocks.remove(&(found.scan.source(), Some(found.probe)))));
        for ((source, probe), mut failures) in self.blocks {
            failures.sort_unstable();
            let crossing = usize::try_from(self.block_threshold).ok().and_then(|crossing| failures.get(crossing));
            let Some(&(time_ns, _)) = crossing else { continue };
            let scan = Alert::Block { source, count: failures.len() as u64, time_ns };
            let hosts = failures.iter().take_while(|failure| failure.0 <= time_ns).map(|failure| failure.1);
            note(&scan, probe, &Vec::from_iter(hosts));
            match probe {
                None => report.alerts.push(scan),
                Some(probe) => report.probe_scans.push(ProbeScan { probe, scan }),
            }
        }
        report.alerts.sort_unstable_by_key(Alert::order);
        report.probe_scans.sort_unstable_by_key(ProbeScan::order);
        report.packets = dispatcher.packets();
        report.bytes = dispatcher.bytes();
        report.tcp += dispatcher.tcp();
        report.malformed += dispatcher.malformed();
        report.undecoded = dispatcher.undecoded();
        report.arp = dispatcher.arp();
        report.times = dispatcher.times();
        report.tunnels = dispatcher.tunnels();
        report.jumps = dispatcher.jumps();
        report.fragments = dispatcher.fragments();
        report.sources = self.top_sources.map(|n| {
            let mut top = Top::new(n);
            self.sources_v4.into_iter().for_each(|(source, volume)| top.add(source.ip(), volume));
            self.sources_v6.into_iter().for_each(|(source, volume)| top.add(source.ip(), volume));
            let counts = |Volume { flows, bytes, .. }, source| SourceCounts { source, connections: flows, bytes };
            top.finish().into_iter().map(|talker| counts(talker.volume, talker.id)).collect()
        });
        (report.conversations, report.hosts) = self.talkers.finish();
        report
    }
}
