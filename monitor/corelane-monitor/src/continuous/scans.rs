//! Scans among the failures of all stages, step by step.
//!
//! A failure counts in two groups: that of its source and destination, whose members are ports, and that of its source
//! and port, whose members are destinations. A group
//!
//! 1. keeps its latest failures, at most one more than the threshold, each for the time after which it is forgotten;
//! 2. is a scan when it has more than the threshold, unless answers outweigh them: of SYNs as many, of UDP keys one of
//!    five. Both are counted in windows, which are aligned, of the time after which a failure is forgotten. The greater
//!    number of the current window and of that before it counts. In a step answers count before failures, and not
//!    those that failures refute;
//! 3. is then alerted and keeps nothing. For some time it only counts its failures. At the end of that it says how many
//!    there were, and is gone: if the scan goes on it is alerted anew.
//!
//! The failure of a key that was answered before makes no scan, but counts in one: also those of the current window
//! and of that before it, when it is found. A failure whose key is [polled](crate::polls) later is taken out of the
//! group of its port, if that is no scan by then.
//!
//! The answers of a [twin](crate::twins) count as a group's own, for as long as it has failures. Which address is one
//! is judged when the group would be a scan, by a log of the latest IPv6 SYNs that failed and IPv4 SYNs that were
//! answered.
//!
//! The failures of a host beyond its first four also count in the block of their source. A host or port that becomes a
//! scan leaves it, so blocks are judged at the end of a step: a fast scan of some hosts is none.

use super::answers::{Answers, AnswersState, Tally};
use super::begun::{Begun, BegunState};
use super::{Continuous, UDP_FAILS_NS};
use crate::groups;
use crate::hash::HashKeys;
use crate::probe::Probe;
use crate::report::Alert;
use crate::settings::Settings;
use crate::state_report::{Content, StateReport};
use crate::steps::{begin_of, step_of};
use crate::through::{Known, Through};
use crate::twins::{self, twin};
use corelane_net::decode::Tunnel;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

/// News of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanEvent {
    /// The kind of the probes; `None` for SYNs.
    pub probe: Option<Probe>,
    /// The scan. Its time is that of the failure by which it was found, also when it has ended. A datagram fails when
    /// it is judged, a minute after it was sent: here all times of a scan by UDP are of the datagrams. The count is
    /// that of the failures by which it was found or, at its end, of all.
    pub scan: Alert,
    /// The time of the first of these failures, likewise, in nanoseconds since the epoch.
    pub first_ns: u64,
    /// So many different ports or hosts failed at least. A failure is forgotten after a while, and the same one counts
    /// anew then: these are those that failed before that. If they are as many as all, there are no others.
    pub distinct: u64,
    /// The tunnel of the first of these failures that came through one, if any did.
    pub tunnel: Option<Tunnel>,
    /// Whether it was found or has ended.
    pub state: ScanState,
}

/// What has become of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanState {
    /// It was found.
    Found,
    /// It was counted for as long as scans are not alerted again.
    Ended {
        /// The time of its last failure, in nanoseconds since the epoch.
        last_ns: u64,
    },
}

/// The most pairs of hosts whose tunnels are known.
const MOST_TUNNELS: usize = 1 << 16;
/// The most attempts in the log in which twins are looked for …
const MOST_BEGUN: usize = 1 << 16;
/// … and the most looks in a step.
const MOST_LOOKS: u32 = 256;
/// The failures of a group that its own cost includes …
const FEW: usize = 4;
/// … and those that cost as much as another group.
const MORE: usize = 400 / size_of::<(u64, Member)>();

/// The list of a step takes as much as so many of twice a report's size: its place, and the four that it begins with.
const STEP_ROOM: u64 = 3;
/// A tunnel takes as much as so many reports.
const TUNNEL_ROOM: u64 = (size_of::<Through>().div_ceil(size_of::<StateReport>())) as u64;

/// Source, kind and target.
pub(super) type Key = (IpAddr, Option<Probe>, Target);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Target {
    Host(IpAddr),
    Port(u16),
    /// Several ports of several hosts, of which its members are hosts.
    Block,
}

/// What a failure is for a group.
#[derive(Clone, Copy, Debug)]
enum Failed {
    /// One that changes nothing: it is known, or its scan is, or answers outweigh it.
    Known,
    /// One more, and there are so many now.
    Counted(usize),
    /// That by which the group is a scan.
    Found,
}

/// So many tallies take as much as a group.
const TALLIES: usize = 2;

/// The member of a group: what its target leaves open.
type Member = Target;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Group {
    /// Failures and their members, in order of time.
    failures: VecDeque<(u64, Member)>,
    failed: Tally,
    quiet: Option<Quiet>,
    twin: Option<Ipv4Addr>,
    /// The first failure that came through a tunnel.
    through: Option<Box<Through>>,
    /// The step at whose end it is to be looked at.
    due: u64,
}

/// A scan that was alerted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Quiet {
    /// When the first failure counted, for the rule of [`distinct`](Quiet::distinct).
    first_ns: u64,
    /// These are the times of the event.
    found_ns: u64,
    last_ns: u64,
    count: u64,
    /// Those before the first can be forgotten: until then no member fails twice.
    distinct: u64,
}

impl Quiet {
    /// One more failure. The first of the times is when it counts, and the other one that of the event.
    fn count(&mut self, [time_ns, sent_ns]: [u64; 2], continuous: &Continuous) {
        self.count += 1;
        self.distinct += u64::from(!continuous.forgets(step_of(time_ns), self.first_ns));
        self.last_ns = self.last_ns.max(sent_ns);
    }
}

/// The groups of all sources.
#[derive(Debug)]
pub(crate) struct Scans {
    thresholds: [usize; 2],
    block_threshold: usize,
    /// Blocks that have too many failures in this step: the times of the first of these, and how many they had more
    /// than they keep.
    crowded: BTreeMap<Key, ([u64; 2], u64)>,
    continuous: Continuous,
    groups: HashMap<Key, Group, HashKeys>,
    /// Those of them that were alerted. Each takes less than the failures that it no longer has.
    alerted: BTreeSet<Key>,
    answers: Answers,
    begun: Begun,
    /// How often twins were looked for in this step.
    looks: u32,
    /// Groups by the step at whose end they are to be looked at. Those that are due elsewhere by now do not count.
    due: BTreeMap<u64, Vec<Key>>,
    /// The reports of each step that is not over, and how many they are.
    pending: BTreeMap<u64, Vec<StateReport>>,
    waiting: u64,
    /// The tunnels of hosts that were noted in steps that are not over …
    noted: BTreeMap<u64, Vec<Through>>,
    waiting_tunnels: u64,
    /// … and before.
    tunnels: Known,
    /// Those that have counted, where they are given out, and their tunnels.
    counted: Option<(Vec<StateReport>, Vec<Through>)>,
    /// What they take, in groups of [`FEW`] failures, is at most so much.
    most_groups: usize,
    /// The failures for which groups have room beyond the first [`FEW`].
    more: usize,
    evicted: u64,
    /// Scans found, by SYNs and by other probes.
    found: [u64; 2],
}

/// All that there is to go on from. Groups are borrowed, as a copy would double what they take.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScansState<'a> {
    groups: Vec<(Key, Cow<'a, Group>)>,
    answers: AnswersState,
    begun: BegunState,
    pending: Vec<StateReport>,
    noted: Vec<Through>,
    tunnels: Vec<Through>,
    evicted: u64,
    found: [u64; 2],
}

impl Scans {
    pub(crate) fn new(settings: &Settings, continuous: &Continuous) -> Self {
        let threshold = |threshold: u64| usize::try_from(threshold).unwrap_or(usize::MAX);
        let most_groups = crate::room::groups(settings);
        Scans {
            thresholds: [threshold(settings.vertical_threshold), threshold(settings.horizontal_threshold)],
            block_threshold: threshold(groups::block_threshold(settings)),
            crowded: BTreeMap::new(),
            continuous: *continuous,
            groups: HashMap::with_hasher(HashKeys::random()),
            alerted: BTreeSet::new(),
            answers: Answers::new(most_groups),
            begun: Begun::new((most_groups / 16).clamp(64, MOST_BEGUN)),
            looks: 0,
            due: BTreeMap::new(),
            pending: BTreeMap::new(),
            waiting: 0,
            noted: BTreeMap::new(),
            waiting_tunnels: 0,
            tunnels: Known::new((most_groups / 16).clamp(64, MOST_TUNNELS), HashKeys::random()),
            counted: continuous.reports.then(Default::default),
            most_groups,
            more: 0,
            evicted: 0,
            found: [0; 2],
        }
    }

    /// The state, in an order that is always the same.
    pub(crate) fn state(&self) -> ScansState<'_> {
        let mut groups: Vec<_> = self.groups.iter().map(|(key, group)| (*key, Cow::Borrowed(group))).collect();
        groups.sort_unstable_by_key(|(key, _)| *key);
        let pending = self.pending.values().flatten().copied().collect();
        let noted = self.noted.values().flatten().copied().collect();
        ScansState {
            groups,
            answers: self.answers.state(),
            begun: self.begun.state(),
            pending,
            noted,
            tunnels: self.tunnels.all(),
            evicted: self.evicted,
            found: self.found,
        }
    }

    /// Goes on from a state.
    pub(crate) fn restore(&mut self, state: ScansState<'_>) {
        (self.evicted, self.found) = (state.evicted, state.found);
        (self.due, self.pending, self.waiting) = (BTreeMap::new(), BTreeMap::new(), 0);
        state.groups.iter().for_each(|(key, group)| self.due.entry(group.due).or_default().push(*key));
        self.groups.clear();
        self.groups.extend(state.groups.into_iter().map(|(key, group)| (key, group.into_owned())));
        self.more = self.groups.values().map(Group::more).sum();
        self.alerted = self.groups.iter().filter(|(_, group)| group.quiet.is_some()).map(|(key, _)| *key).collect();
        self.answers.restore(state.answers);
        self.begun.restore(state.begun);
        state.pending.into_iter().for_each(|report| self.report(report));
        self.noted.clear();
        self.waiting_tunnels = 0;
        state.noted.into_iter().for_each(|through| self.through(through));
        self.tunnels.restore(state.tunnels);
    }

    /// Takes the tunnel between two hosts, in any order. It counts for the failures of its step and later ones.
    pub(crate) fn through(&mut self, through: Through) {
        self.noted.entry(step_of(through.time_ns)).or_default().push(through);
        self.waiting_tunnels += 1;
    }

    /// Takes a report, in any order. It counts when its step is over.
    pub(crate) fn report(&mut self, report: StateReport) {
        self.pending.entry(step_of(report.time_ns())).or_default().push(report);
        self.waiting += 1;
    }

    /// The first step at whose end there is something to be done.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let pending = self.pending.first_key_value().map(|(&step, _)| step);
        let noted = self.noted.first_key_value().map(|(&step, _)| step);
        pending.into_iter().chain(noted).chain(self.due.first_key_value().map(|(&step, _)| step)).min()
    }

    /// A step is over, and all before it. `news` gets what has become of scans, in order.
    pub(crate) fn end(&mut self, step: u64, news: impl FnMut(ScanEvent)) {
        let mut events = Vec::new();
        self.count_until(step, &mut events);
        while let Some(due) = self.due.first_entry()
            && *due.key() <= step
        {
            let (due, keys) = due.remove_entry();
            keys.into_iter().for_each(|key| self.look(key, due, &mut events));
        }
        give_out(events, news);
    }

    /// Counts all that waits, by this time at the latest: there is no room for more. Later reports of the same steps
    /// count behind them.
    #[cold]
    pub(crate) fn count_early(&mut self, time_ns: u64, news: impl FnMut(ScanEvent)) {
        let mut events = Vec::new();
        for reports in self.pending.values_mut() {
            reports.iter_mut().for_each(|report| *report = report.not_after(time_ns));
        }
        self.count_until(u64::MAX, &mut events);
        give_out(events, news);
    }

    /// The run is over at this time: all that is left counts, by then or at its time, and every scan that is not over
    /// ends.
    pub(crate) fn finish(&mut self, time_ns: u64, news: impl FnMut(ScanEvent)) {
        let mut events = Vec::new();
        let pending = std::mem::take(&mut self.pending);
        self.waiting = 0;
        for (&step, reports) in &pending {
            self.note(step);
            self.give_out(step, reports);
        }
        let limit = |report: StateReport| if report.is_sent_before() { report } else { report.not_after(time_ns) };
        pending.into_values().flatten().for_each(|report| self.report(limit(report)));
        let counted = self.counted.take();
        self.count_until(u64::MAX, &mut events);
        self.counted = counted;
        self.due.clear();
        self.more = 0;
        self.alerted.clear();
        events.extend(self.groups.drain().filter_map(|(key, group)| group.ended(key)));
        give_out(events, news);
    }

    /// Counts the reports of this step and all before it.
    fn count_until(&mut self, step: u64, events: &mut Vec<ScanEvent>) {
        while let Some(pending) = self.pending.first_entry()
            && *pending.key() <= step
        {
            let (now, mut reports) = pending.remove_entry();
            self.waiting -= reports.len() as u64;
            self.note(now);
            if self.counted.is_some() {
                reports.sort_unstable_by_key(order);
                self.give_out(now, &reports);
            }
            self.looks = 0;
            self.begun.add(now, &reports);
            let failures = answers_first(&mut reports);
            let (answers, failures) = reports.split_at_mut(failures);
            let window = self.continuous.window(begin_of(now));
            self.answers.pass(window);
            self.answers.add(answers, window);
            self.answers.take_back(failures, window);
            failures.sort_unstable_by_key(order);
            for report in failures {
                self.count(report, events);
                // Not at the end of the step: one second of a flood may exceed the limit many times.
                self.evict(events);
            }
            self.find_blocks(events);
        }
        self.note(step);
    }

    /// The tunnels that were noted up to this step count from now on.
    fn note(&mut self, step: u64) {
        while let Some(noted) = self.noted.first_entry()
            && *noted.key() <= step
        {
            let (now, noted) = noted.remove_entry();
            self.waiting_tunnels -= noted.len() as u64;
            self.tunnels.add(noted, now);
        }
    }

    /// Looks for the twin of a group that has more failures than its threshold.
    fn find_twin(&mut self, (source, probe, target): Key, threshold: usize) -> Option<Ipv4Addr> {
        let (Target::Port(port), None, true) = (target, probe, source.is_ipv6()) else { return None };
        if self.looks >= MOST_LOOKS {
            return None;
        }
        self.looks += 1;
        let failures = self.begun.of_source(source, port);
        twin(failures.get(..=threshold)?, self.begun.of_v4(port)).map(Ipv4Addr::from_bits)
    }

    /// Gives out reports of this step and their tunnels, where they are asked for.
    fn give_out(&mut self, step: u64, reports: &[StateReport]) {
        let Some((counted, through)) = &mut self.counted else { return };
        counted.extend_from_slice(reports);
        for report in reports {
            let (source, destination, time_ns) = (report.source(), report.destination(), report.time_ns());
            if let Some(tunnel) = self.tunnels.of(source, destination, step) {
                through.push(Through { source, destination, time_ns, tunnel });
            }
        }
        through.sort_unstable();
        through.dedup_by_key(|through| through.pair());
    }

    fn count(&mut self, report: &StateReport, events: &mut Vec<ScanEvent>) {
        let (source, port, time_ns) = (report.source(), report.port(), report.time_ns());
        let (host, port) = (Target::Host(report.destination()), Target::Port(port));
        for ((target, member), threshold) in [(host, port), (port, host)].into_iter().zip(self.thresholds) {
            match report.content() {
                Content::Failed(Some(probe)) if !counts(target, probe) => {}
                Content::Failed(probe) => {
                    let tunnel = self.tunnels.of(source, report.destination(), step_of(time_ns));
                    let through =
                        tunnel.map(|tunnel| Through { source, destination: report.destination(), time_ns, tunnel });
                    let (key, times) = ((source, probe, target), [time_ns, report.sent_ns()]);
                    let others = self.groups.get(&key).and_then(|group| group.quiet).map(|quiet| quiet.distinct);
                    let failed = match report.is_known() {
                        true => self.known(key, times),
                        false => self.failed(key, (member, through), times, threshold, events),
                    };
                    if report.is_again()
                        && let Some((group, distinct)) = self.groups.get_mut(&key).zip(others)
                    {
                        // It counts, but perhaps not as another one.
                        group.quiet.iter_mut().for_each(|quiet| quiet.distinct = distinct);
                    }
                    self.block(key, through, times, failed, events);
                }
                Content::Polled(probe) if matches!(target, Target::Port(_)) => {
                    self.take_out((source, probe, target), member, time_ns);
                }
                Content::Polled(_) | Content::Answered(_) | Content::Sent { .. } => {}
            }
        }
    }

    /// Counts a key that was answered before, at the same times as [`failed`](Scans::failed).
    fn known(&mut self, key: Key, times: [u64; 2]) -> Failed {
        match self.groups.get_mut(&key).and_then(|group| group.quiet.as_mut()) {
            Some(quiet) => quiet.count(times, &self.continuous),
            None => self.answers.fail(&key, self.continuous.window(times[0])),
        }
        Failed::Known
    }

    /// A member is polled: its failure does not count any longer, if it does and the group is no scan.
    fn take_out(&mut self, key: Key, member: Member, time_ns: u64) {
        let Some(group) = self.groups.get_mut(&key) else { return };
        let Some(place) = group.failures.iter().position(|&(_, known)| known == member) else { return };
        group.failures.remove(place);
        group.failed.pass(self.continuous.window(time_ns)).take_back();
        if group.failures.is_empty()
            && let Some(group) = self.groups.remove(&key)
        {
            self.more -= group.more();
        }
    }

    /// The first of the times is when it counts, and the other one that of the event.
    fn failed(
        &mut self,
        key: Key,
        (member, through): (Member, Option<Through>),
        [time_ns, sent_ns]: [u64; 2],
        threshold: usize,
        events: &mut Vec<ScanEvent>,
    ) -> Failed {
        let forget_s = self.continuous.forget_s;
        let window = self.continuous.window(time_ns);
        let queue = &mut self.due;
        let group = self.groups.entry(key).or_insert_with(|| {
            let due = step_of(time_ns).saturating_add(forget_s);
            queue.entry(due).or_default().push(key);
            Group::new(due)
        });
        if let Some(quiet) = &mut group.quiet {
            quiet.count([time_ns, sent_ns], &self.continuous);
            return Failed::Known;
        }
        group.forget(step_of(time_ns), &self.continuous);
        if key.2 != Target::Block && group.failures.iter().any(|&(_, known)| known == member) {
            return Failed::Known;
        }
        if group.failures.len() > threshold {
            group.failures.pop_front();
            if let Some((_, more)) = self.crowded.get_mut(&key).filter(|_| key.2 == Target::Block) {
                *more += 1;
            }
        }
        let more = group.more();
        group.failures.push_back((time_ns, member));
        group.failed.pass(window).now += 1;
        self.more += group.more() - more;
        if group.through.is_none() {
            group.through = through.map(Box::new);
        }
        let (failures, failed, twin) = (group.failures.len(), group.failed.most(), group.twin);
        let outweighed = self.outweighed(key, window);
        if failed <= outweighed {
            return Failed::Known;
        }
        if failures <= threshold {
            return Failed::Counted(failures);
        }
        if let Some(twin) = twin.or_else(|| self.find_twin(key, threshold)) {
            self.groups.entry(key).and_modify(|group| group.twin = Some(twin));
            if failed <= outweighed + twins::outweighed(self.outweighed((twin.into(), key.1, key.2), window)) {
                return Failed::Known;
            }
        }
        if key.2 == Target::Block {
            self.crowded.entry(key).or_insert(([time_ns, sent_ns], 0));
            return Failed::Known;
        }
        self.find(key, [time_ns, sent_ns], 0, events);
        Failed::Found
    }

    /// So many failures are outweighed by answers in this window.
    fn outweighed(&mut self, key: Key, window: u64) -> u64 {
        groups::to_one(key.1) * self.answers.get(&key).map_or(0, |tally| tally.pass(window).most())
    }

    /// A group is a scan, by the failure of these times, and had so many more than it keeps.
    fn find(&mut self, key: Key, [time_ns, sent_ns]: [u64; 2], more: u64, events: &mut Vec<ScanEvent>) {
        let window = self.continuous.window(time_ns);
        let Some(group) = self.groups.get_mut(&key) else { return };
        let distinct = group.failures.len() as u64 + more;
        let known = self.answers.take_failed(&key, window);
        // Answers may have outweighed more failures than it keeps.
        let in_windows = if key.2 == Target::Block { 0 } else { group.failed.sum() };
        let count = distinct.max(in_windows) + known;
        let first_ns = group.failures.front().map_or(time_ns, |&(first_ns, _)| first_ns);
        let quiet = Quiet { first_ns, found_ns: sent_ns, last_ns: sent_ns, count, distinct };
        self.more -= group.more();
        group.failures = VecDeque::new();
        group.failed = Tally::default();
        group.quiet = Some(quiet);
        self.alerted.insert(key);
        group.due = step_of(time_ns).saturating_add(self.continuous.suppress_s);
        self.due.entry(group.due).or_default().push(key);
        self.found[usize::from(key.1.is_some())] += 1;
        events.extend(group.event(key, ScanState::Found));
    }

    /// A step is over: blocks are found that no scan of a host or port has made too small.
    fn find_blocks(&mut self, events: &mut Vec<ScanEvent>) {
        for (key, (times, more)) in std::mem::take(&mut self.crowded) {
            if self.groups.get(&key).is_some_and(|block| block.failures.len() > self.block_threshold) {
                self.find(key, times, more, events);
            }
        }
    }

    /// Counts a failure of a group of a host for the block of its source, and gives up what scans have on their own.
    fn block(
        &mut self,
        (source, probe, target): Key,
        through: Option<Through>,
        times: [u64; 2],
        failed: Failed,
        events: &mut Vec<ScanEvent>,
    ) {
        let key = (source, probe, Target::Block);
        match failed {
            Failed::Known => {}
            Failed::Found => {
                if let Some(block) = self.groups.get_mut(&key) {
                    let is_other = |member| matches!(target, Target::Host(_)) && member != target;
                    block.failures.retain(|&(_, member)| is_other(member));
                    if block.failures.len() <= self.block_threshold {
                        self.crowded.remove(&key);
                    }
                }
            }
            Failed::Counted(ports) => {
                let from = groups::BLOCK_FROM as usize;
                if !matches!(target, Target::Host(_)) || ports < from {
                    return;
                }
                // A port that fails again after a while counts once.
                if let Some(block) = self.groups.get_mut(&key) {
                    let of_host = block.failures.iter().filter(|(_, member)| *member == target);
                    if of_host.count() > ports - from
                        && let Some(first) = block.failures.iter().position(|(_, member)| *member == target)
                    {
                        block.failures.remove(first);
                    }
                }
                self.failed(key, (target, through), times, self.block_threshold, events);
            }
        }
    }

    /// Looks at a group that is due at the end of this step: forgets failures, and removes it if none are left.
    fn look(&mut self, key: Key, step: u64, events: &mut Vec<ScanEvent>) {
        let Some(group) = self.groups.get_mut(&key).filter(|group| group.due == step) else { return };
        // One that is quiet has no failures.
        group.forget(step.saturating_add(1), &self.continuous);
        match group.failures.back() {
            Some(&(time_ns, _)) => {
                group.due = step_of(time_ns).saturating_add(self.continuous.forget_s);
                self.due.entry(group.due).or_default().push(key);
            }
            None => self.remove(key, events),
        }
    }

    /// Removes a group; if it was alerted, that scan has ended.
    fn remove(&mut self, key: Key, events: &mut Vec<ScanEvent>) {
        let Some(group) = self.groups.remove(&key) else { return };
        self.more -= group.more();
        let ended = group.ended(key);
        if ended.is_some() {
            self.alerted.remove(&key);
        }
        events.extend(ended);
    }

    /// If there are too many groups, gives up the older half of those that are not alerted, or of those that are, or of
    /// both: where they take half of what may be. Scans that are given up end early.
    #[inline]
    fn evict(&mut self, events: &mut Vec<ScanEvent>) {
        if self.groups.len() + self.more / MORE > self.most() {
            self.halve(events);
        }
    }

    /// What answers leave to groups.
    fn most(&self) -> usize {
        self.most_groups - (self.answers.room() / TALLIES).min(self.most_groups)
    }

    #[cold]
    fn halve(&mut self, events: &mut Vec<ScanEvent>) {
        let before = self.groups.len();
        for is_quiet in [false, true] {
            let alike = self.groups.iter().filter(|(_, group)| group.quiet.is_some() == is_quiet);
            let mut more = 0;
            let mut old: Vec<(u64, Key)> = alike
                .inspect(|(_, group)| more += group.more())
                .map(|(key, group)| (group.latest_ns(), *key))
                .collect();
            // Of both one is not below this if together they are too many.
            if old.len() + more / MORE < self.most().div_ceil(2) {
                continue;
            }
            let half = old.len().div_ceil(2);
            if half < old.len() {
                old.select_nth_unstable(half);
                old.truncate(half);
            }
            old.into_iter().for_each(|(_, key)| self.remove(key, events));
        }
        self.evicted += (before - self.groups.len()) as u64;
        self.due.retain(|_, keys| {
            keys.retain(|key| self.groups.contains_key(key));
            keys.shrink_to(2 * keys.len());
            !keys.is_empty()
        });
    }

    /// Scans that were alerted and are only counted for now, in no order. Their count is that of the failures so far.
    pub(crate) fn going_on(&self) -> impl Iterator<Item = ScanEvent> {
        self.alerted.iter().filter_map(|key| self.groups.get(key)?.event(*key, ScanState::Found))
    }

    /// The number of failures so far of a scan that was alerted, if it is only counted now.
    pub(crate) fn count_now(&self, event: &ScanEvent) -> Option<u64> {
        let target = match event.scan {
            Alert::Vertical { destination, .. } => Target::Host(destination),
            Alert::Horizontal { port, .. } => Target::Port(port),
            Alert::Block { .. } => Target::Block,
        };
        let quiet = self.groups.get(&(event.scan.source(), event.probe, target))?.quiet?;
        (quiet.found_ns == event.scan.time_ns()).then_some(quiet.count)
    }

    /// Takes the reports that have counted, where they are given out. At the end of the run those that would have
    /// counted later are among them.
    pub(crate) fn take_counted(&mut self) -> Option<(Vec<StateReport>, Vec<Through>)> {
        self.counted.as_mut().map(std::mem::take)
    }

    /// The number of groups.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The number of reports whose step is not over.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The same and, as so many reports, the tunnels that wait, and what the list of each step takes beside them.
    pub(crate) fn waiting_room(&self) -> u64 {
        let steps = (self.pending.len() + self.noted.len()) as u64;
        self.waiting + TUNNEL_ROOM * self.waiting_tunnels + STEP_ROOM * steps
    }

    /// How many groups were given up for want of memory.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Scans found, by SYNs and by other probes.
    pub(crate) fn found(&self) -> [u64; 2] {
        self.found
    }
}

/// Gives out the news of a step, in order.
fn give_out(mut events: Vec<ScanEvent>, news: impl FnMut(ScanEvent)) {
    events.sort_unstable_by_key(ScanEvent::order);
    events.into_iter().for_each(news);
}

/// Whether a failed probe of this kind counts for the hosts of a port, or the ports of a host.
fn counts(target: Target, probe: Probe) -> bool {
    if matches!(target, Target::Port(_)) { probe.counts_hosts() } else { probe.has_port() }
}

/// The order in which the failures of a step count, behind its answers.
pub(super) fn order(report: &StateReport) -> impl Ord + use<> {
    let is_failure = matches!(report.content(), Content::Failed(_));
    (is_failure, report.time_ns(), report.source(), report.destination(), report.port(), report.probe())
}

/// Puts answers in front of failures, and returns how many they are.
fn answers_first(reports: &mut [StateReport]) -> usize {
    let mut answers = 0;
    for at in 0..reports.len() {
        if let Content::Answered(_) = reports[at].content() {
            reports.swap(answers, at);
            answers += 1;
        }
    }
    answers
}

impl Group {
    /// One without a failure.
    fn new(due: u64) -> Self {
        Group { failures: VecDeque::new(), failed: Tally::default(), quiet: None, twin: None, through: None, due }
    }

    /// The failures for which it has room beyond the first [`FEW`].
    fn more(&self) -> usize {
        self.failures.capacity().saturating_sub(FEW)
    }

    /// The time of its last failure.
    fn latest_ns(&self) -> u64 {
        let kept = self.failures.back().map_or(0, |&(time_ns, _)| time_ns);
        self.quiet.map_or(kept, |quiet| quiet.last_ns)
    }

    /// That its scan has ended, if it was alerted.
    fn ended(&self, key: Key) -> Option<ScanEvent> {
        self.event(key, ScanState::Ended { last_ns: self.quiet?.last_ns })
    }

    /// What has become of its scan, if it was alerted.
    fn event(&self, (source, probe, target): Key, state: ScanState) -> Option<ScanEvent> {
        let Quiet { first_ns, found_ns: time_ns, count, distinct, .. } = self.quiet?;
        let scan = match target {
            Target::Host(destination) => Alert::Vertical { source, destination, count, time_ns },
            Target::Port(port) => Alert::Horizontal { source, port, count, time_ns },
            Target::Block => Alert::Block { source, count, time_ns },
        };
        // The first may have been judged early, when there was no room.
        let late_ns = if probe.is_some_and(Probe::waits) { UDP_FAILS_NS } else { 0 };
        let first_ns = first_ns.saturating_sub(late_ns).min(time_ns);
        let tunnel = self.through.as_ref().map(|through| through.tunnel);
        Some(ScanEvent { probe, scan, first_ns, distinct, tunnel, state })
    }

    /// Forgets failures that do not count in this step. Where all are forgotten it begins anew: a run that ends counts
    /// what waits, and looks at no group in between.
    fn forget(&mut self, now: u64, continuous: &Continuous) {
        while self.failures.front().is_some_and(|&(time_ns, _)| continuous.forgets(now, time_ns)) {
            self.failures.pop_front();
        }
        if self.failures.is_empty() && self.quiet.is_none() {
            let failures = std::mem::take(&mut self.failures);
            *self = Group { failures, ..Group::new(self.due) };
        }
    }
}

impl ScanEvent {
    /// Whether both are about one scan.
    pub fn is_of(&self, other: &ScanEvent) -> bool {
        let name = |event: &ScanEvent| (event.scan.order(), event.probe);
        name(self) == name(other)
    }

    /// The order of news of one step: those of scans that have ended come last.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        (self.state != ScanState::Found, self.scan.order(), self.probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_report::{Failure, Tried, Verdict};

    const FAILED: Verdict = Verdict::Failed(Failure::Unanswered);

    fn scans(threshold: u64, forget_s: u64, suppress_s: u64) -> Scans {
        let settings =
            Settings { vertical_threshold: threshold, horizontal_threshold: u64::MAX, ..Settings::default() };
        Scans::new(&settings, &Continuous { forget_s, suppress_s, ..Continuous::default() })
    }

    fn report(step: u64, source: u32, port: u16, verdict: Verdict) -> StateReport {
        let probe = Some(Probe::Udp);
        StateReport::v4(Tried { source, destination: 9, port, probe }, begin_of(step) + u64::from(port), verdict)
    }

    /// What is reported up to the end of this step, each with the step; nothing is looked at when it is not due.
    fn until(scans: &mut Scans, last: u64) -> Vec<(u64, u64, ScanState)> {
        let mut events = Vec::new();
        while let Some(step) = scans.next_due().filter(|&step| step <= last) {
            scans.end(step, |event| events.push((step, event.scan.count(), event.state)));
        }
        events
    }

    fn ended(last: StateReport) -> ScanState {
        ScanState::Ended { last_ns: last.sent_ns() }
    }

    #[test]
    fn a_group_is_gone_when_its_last_failure_is_forgotten() {
        let mut scans = scans(5, 10, 100);
        for step in [100, 104, 104, 107] {
            scans.report(report(step, 1, step as u16, FAILED));
        }
        assert_eq!(until(&mut scans, 116), []);
        // Its source and port have a group for each port.
        assert_eq!(scans.len(), 1 + 1);
        assert_eq!(until(&mut scans, 117), []);
        assert_eq!((scans.len(), scans.next_due(), scans.due.len()), (0, None, 0));
    }

    #[test]
    fn entries_of_a_group_that_was_there_before_do_not_count() {
        // The first group is found and over long before it would have been looked at, and another one is in its place.
        for (forget_s, suppress_s) in [(10, 3), (3, 10), (5, 5), (4, 0), (0, 4)] {
            let mut scans = scans(1, forget_s, suppress_s);
            scans.report(report(100, 1, 1, FAILED));
            scans.report(report(100, 1, 2, FAILED));
            let mut events = until(&mut scans, 100 + suppress_s);
            let again = 101 + suppress_s;
            scans.report(report(again, 1, 3, FAILED));
            let last = report(again, 1, 4, FAILED);
            scans.report(last);
            events.extend(until(&mut scans, u64::MAX));
            let expected = [
                (100, 2, ScanState::Found),
                (100 + suppress_s, 2, ended(report(100, 1, 2, FAILED))),
                (again, 2, ScanState::Found),
                (again + suppress_s, 2, ended(last)),
            ];
            assert_eq!(events, expected, "{forget_s} {suppress_s}");
            assert_eq!((scans.len(), scans.due.len(), scans.pending.len()), (0, 0, 0));
        }
    }

    #[test]
    fn a_member_counts_once() {
        let mut scans = scans(1, 10, 10);
        // A stage that has lost the key for want of memory reports it again.
        for step in [100, 101, 102] {
            scans.report(report(step, 1, 1, FAILED));
        }
        assert_eq!(until(&mut scans, 109), []);
        scans.report(report(110, 1, 2, FAILED));
        assert_eq!(until(&mut scans, 110), [(110, 2, ScanState::Found)]);
    }

    #[test]
    fn answers_count_in_their_window_and_in_the_next_whether_failures_were_there_or_not() {
        for (step, is_found) in [(101, false), (119, false), (120, true)] {
            let mut scans = scans(7, 10, 10);
            (0..2).for_each(|number| scans.report(report(100, 1, 1000 + number, Verdict::Answered)));
            (0..8).for_each(|number| scans.report(report(step, 1, number, FAILED)));
            assert_eq!(until(&mut scans, step).len(), usize::from(is_found), "{step}");
            assert_eq!(scans.answers.room() == 0, is_found, "{step}: older ones take no memory");
        }
    }

    #[test]
    fn the_fewest_answers_leave_where_there_is_no_room() {
        let settings = Settings { table_bytes: Some(100 * 400 * 4), ..Settings::default() };
        let mut scans = Scans::new(&settings, &Continuous::default());
        for source in 1..400 {
            (0..1 + u16::from(source == 1))
                .for_each(|port| scans.report(report(100, source, port, Verdict::Answered).at(begin_of(100))));
        }
        assert_eq!(until(&mut scans, 100), []);
        assert!(scans.answers.room() <= 100, "{}", scans.answers.room());
        let (most, none) = (report(100, 1, 1, FAILED), report(100, 500, 1, FAILED));
        let mut of = |report: StateReport| {
            let key = (report.source(), report.probe(), Target::Host(report.destination()));
            scans.answers.get(&key).map(|tally| tally.most())
        };
        assert_eq!((of(most), of(none)), (Some(2), None));
    }

    /// The room of a group with many failures is that of several.
    #[test]
    fn groups_of_many_failures_are_fewer() {
        let of = |failures: u16| {
            let settings = Settings {
                vertical_threshold: 100,
                horizontal_threshold: 100,
                table_bytes: Some(1000 * 400 * 4),
                ..Settings::default()
            };
            let mut scans = Scans::new(&settings, &Continuous::default());
            // Source by source, and each tries the same ports.
            for source in 0..400 {
                let time_ns = begin_of(100) + 1000 * u64::from(source);
                (0..failures).for_each(|port| scans.report(report(100, source, port, FAILED).at(time_ns)));
            }
            scans.end(100, |_| {});
            let bytes =
                |group: &Group| 400 + group.failures.capacity().saturating_sub(FEW) * size_of::<(u64, Member)>();
            let bytes: usize = scans.groups.values().map(bytes).sum();
            assert!((1000 * 400 / 4..=1000 * 400 + 8000).contains(&bytes), "{bytes}");
            assert_eq!(scans.more, scans.groups.values().map(Group::more).sum::<usize>());
            scans.groups.values().filter(|group| group.failures.len() > 4).count()
        };
        assert_eq!(of(1), 0);
        let many = of(64);
        assert!((1..1000 * 400 / (64 * 24)).contains(&many), "{many}");
    }

    /// Each source is a scan: nothing but groups that are quiet.
    #[test]
    fn the_limit_of_groups_is_kept_by_scans_that_are_over_early() {
        let run = || {
            let settings = Settings { vertical_threshold: 1, table_bytes: Some(100 * 400 * 4), ..Settings::default() };
            let mut scans = Scans::new(&settings, &Continuous::default());
            let mut events = Vec::new();
            for step in 100..400 {
                for (source, port) in [(2 * step, 1), (2 * step, 2), (2 * step + 1, 1), (2 * step + 1, 2)] {
                    scans.report(report(step, source as u32, port, FAILED));
                }
                // This one goes on.
                scans.report(report(step, 1, step as u16, FAILED));
                scans.end(step, |event| events.push(event));
                assert!(scans.len() <= 100, "{}", scans.len());
                assert!(scans.due.values().map(Vec::len).sum::<usize>() <= 200);
            }
            let evicted = scans.evicted();
            scans.finish(u64::MAX, |event| events.push(event));
            (events, evicted)
        };
        let (events, evicted) = run();
        assert!(evicted > 300, "{evicted}");
        let of = |is_found: bool| events.iter().filter(|event| (event.state == ScanState::Found) == is_found).count();
        assert_eq!((of(true), of(false)), (601, 601), "each is reported once, and over once");
        // Which of them go does not depend on the keys of a hash.
        assert_eq!(run(), (events, evicted));
    }
}
