//! The second stage: all state of the address pairs that a SubAnalyzer owns.
//!
//! Every packet touches its flow, and the flow's line is rarely in the first cache: the fetch costs more than all the
//! work. So a [`SubAnalyzer`] takes slots in batches and walks each batch several times:
//!
//! 1. Sort the batch into sets of bits (IPv4, IPv6, packets that touch an attempt, packets that may be probes). The
//!    walk over a set needs no branch on the kind of a packet.
//! 2. Start to fetch the line of the flow index at each packet's hash, which the Dispatcher computed. Do the same for
//!    attempts.
//! 3. Look the flows up in the index, and start to fetch their lines.
//! 4. Update the flows, whose lines are there or on their way; then the attempts.
//! 5. Most packets that may be probes belong to a flow that is settled. Start to fetch the entries of the others, and
//!    update those.
//!
//! The state is divided into [`PARTITIONS`], each with its own tables. Address pairs, vertical scans and top talkers
//! need whole groups, and only at the end. So they are computed at the end from flows and attempts, one partition after
//! the other: their tables stay in the cache, and packets pay nothing for them.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `flows.rs`, `attempts.rs`, `probes.rs` | a table each, and its rules |
//! | `sources.rs` | what each source sent and began |
//! | `kept.rs` | what is kept for the stories of scans |
//! | `family.rs` | IPv4 and IPv6 in slots and keys |

pub(crate) mod attempts;
pub(crate) mod family;
mod flows;
pub(crate) mod kept;
pub(crate) mod probes;
mod sources;

use crate::groups::{Groups, to_one};
use crate::hash::HashKeys;
use crate::key::Key;
use crate::partial_result::{Answered, BlockPart, PartialResult};
use crate::probe::Probe;
use crate::report::{Alert, ProbeScan};
use crate::room::{Refused, Room};
use crate::run::Run;
use crate::settings::Settings;
use crate::slot::{PARTITIONS, Slot};
use crate::state_report::{Failure, StateReport, TOGETHER, Tried, Verdict};
use crate::table::Table;
use crate::talkers::{Talkers, Volume};
use crate::twins;

use attempts::Attempt;
use corelane_net::decode::flags::RST;
use family::Family;
use flows::{Flow, FlowTable};
use kept::{FamilyTrials, Trials};
use probes::{Event, Probed};
use sources::Sent;
use std::collections::HashMap;
use std::vec::Drain;

/// The most slots that are walked at once: one bit of a word each.
pub(crate) const CHUNK: usize = 64;

/// The state of some partitions, with the work that their packets cause.
#[derive(Debug)]
pub struct SubAnalyzer {
    common: Common,
    v4: Tables<u32>,
    v6: Tables<u128>,
    /// The first slot of an IPv6 packet whose second slot comes with the next batch.
    half: Option<Slot>,
    packets: u64,
    trials: Option<Trials>,
}

/// What both address families share.
#[derive(Debug)]
struct Common {
    settings: Settings,
    run: Run,
    /// All bits, or no bit if probes are not asked for.
    probing: u64,
    rejected: u64,
    unanswered: u64,
    outbox: Vec<StateReport>,
    /// Whether all attempts and probes are kept for [`Trials`].
    keeps: bool,
}

/// The state of one partition, on its way from one stage to another.
#[derive(Debug)]
pub(crate) struct PartitionState {
    v4: PartitionTables<u32>,
    v6: PartitionTables<u128>,
}

type PartitionTables<A> = (Flows<A>, Attempts<A>, Probes<A>, Sources<A>);
type Flows<A> = FlowTable<<A as Family>::Key, <A as Family>::FlowAlign>;
type Attempts<A> = Table<<A as Family>::Key, Attempt, <A as Family>::AttemptAlign>;
type Probes<A> = Table<<A as Family>::Key, Probed, <A as Family>::AttemptAlign>;
type Sources<A> = Table<<A as Family>::SourceKey, Sent, <A as Family>::AttemptAlign>;

pub(crate) type PerPartition<T> = Box<[T; PARTITIONS]>;

/// A table of each partition, all empty.
pub(crate) fn per_partition<T: Default>() -> PerPartition<T> {
    Box::new(std::array::from_fn(|_| T::default()))
}

/// One address family's state.
#[derive(Debug)]
struct Tables<A: Family> {
    flows: PerPartition<Flows<A>>,
    attempts: PerPartition<Attempts<A>>,
    probes: PerPartition<Probes<A>>,
    sources: PerPartition<Sources<A>>,
    /// The number of each packet's flow, by the packet's slot in the chunk.
    numbers: Box<[u32; CHUNK]>,
}

impl SubAnalyzer {
    /// A SubAnalyzer without state. It owns the partitions whose slots it is given, by a Dispatcher of the same run.
    pub fn new(settings: &Settings, run: &Run) -> Self {
        SubAnalyzer {
            common: Common {
                settings: settings.clone(),
                run: Run { room: Room::of(settings), ..run.clone() },
                probing: if settings.probes { u64::MAX } else { 0 },
                rejected: 0,
                unanswered: 0,
                outbox: Vec::new(),
                keeps: false,
            },
            v4: Tables::default(),
            v6: Tables::default(),
            half: None,
            packets: 0,
            trials: None,
        }
    }

    /// Keeps all attempts and probes for the stories of scans, which are to be [taken](SubAnalyzer::take_trials).
    pub(crate) fn keep_trials(&mut self) {
        self.common.keeps = true;
    }

    /// Processes slots in the order in which the [`Dispatcher`](crate::Dispatcher) gave them. Batches may have any
    /// length and may end anywhere, also between the two slots of an IPv6 packet; batches of 32 or more hide the memory
    /// best. State reports that result wait until they are [taken](SubAnalyzer::take_reports).
    pub fn process(&mut self, batch: &[Slot]) {
        let mut batch = batch;
        if let Some(first) = self.half
            && let Some((rest, behind)) = batch.split_first()
        {
            self.half = None;
            self.process_chunk(&[first, *rest]);
            batch = behind;
        }
        while !batch.is_empty() {
            let mut length = batch.len().min(CHUNK);
            if batch[length - 1].is_v6() {
                length -= 1;
                if length + 1 == batch.len() {
                    self.half = Some(batch[length]);
                    batch = &batch[..length];
                }
            }
            let (chunk, behind) = batch.split_at(length);
            self.process_chunk(chunk);
            batch = behind;
        }
    }

    /// Processes at most [`CHUNK`] slots, with IPv6 packets whole.
    fn process_chunk(&mut self, chunk: &[Slot]) {
        let Kinds { v4, v6, touching, mut probing } = Kinds::of(chunk);
        probing &= self.common.probing;
        let packets = (v4 | v6).count_ones();
        self.packets += u64::from(packets);
        if v4.count_ones() as usize == chunk.len() {
            // The usual case, and counting is less work than taking bits out of a word.
            self.v4.process(chunk, 0..chunk.len(), [touching, probing, 0], &mut self.common);
            return;
        }
        let [mut asking_v4, mut asking_v6] = [0; 2];
        if (packets + v6.count_ones()) as usize != chunk.len() {
            [asking_v4, asking_v6] = without_flow(chunk).map(|asking| asking & self.common.probing);
        }
        self.v4.process(chunk, bits(v4), [touching & v4, probing & v4, asking_v4], &mut self.common);
        self.v6.process(chunk, bits(v6), [touching & v6, probing & v6, asking_v6], &mut self.common);
    }

    /// The state reports for the MainAnalyzer that wait to be taken.
    pub fn reports(&self) -> &[StateReport] {
        &self.common.outbox
    }

    /// Takes the state reports. They may reach the MainAnalyzer in any order.
    pub fn take_reports(&mut self) -> Drain<'_, StateReport> {
        self.common.outbox.drain(..)
    }

    /// Takes all attempts and probes of a capture that is [over](SubAnalyzer::finish), if they are kept.
    pub(crate) fn take_trials(&mut self) -> Option<Trials> {
        self.trials.take()
    }

    /// Takes a partition's state out. The caller does so only between two packets.
    pub(crate) fn take_partition(&mut self, partition: u8) -> PartitionState {
        debug_assert!(self.half.is_none(), "a partition moves between two packets");
        PartitionState { v4: self.v4.take(partition), v6: self.v6.take(partition) }
    }

    /// Goes on with a partition that comes from another stage.
    pub(crate) fn put_partition(&mut self, partition: u8, state: PartitionState) {
        self.v4.put(partition, state.v4);
        self.v6.put(partition, state.v6);
    }

    /// Ends the capture; `max_time` is the largest time of any record, [`Dispatcher::max_time`]. Attempts that are
    /// still open fail, so the last state reports are ready only after this call. Leaves the SubAnalyzer without state.
    ///
    /// [`Dispatcher::max_time`]: crate::Dispatcher::max_time
    pub fn finish(&mut self, max_time: u64) -> PartialResult {
        let mut reports = Vec::new();
        let result = self.finish_sending(max_time, &mut |some| reports.extend(some));
        reports.append(&mut self.common.outbox);
        self.common.outbox = reports;
        result
    }

    /// The same, giving the state reports to `send` partition by partition, but for the last few.
    pub(crate) fn finish_sending(
        &mut self,
        max_time: u64,
        send: &mut dyn FnMut(Drain<'_, StateReport>),
    ) -> PartialResult {
        let mut result = PartialResult::new(Talkers::new(self.common.settings.top, self.common.run.keys));
        result.packets = std::mem::take(&mut self.packets);
        let v4 = self.v4.finish(max_time, &mut self.common, &mut result, send);
        let v6 = self.v6.finish(max_time, &mut self.common, &mut result, send);
        let settings = &self.common.settings;
        self.trials = self.common.keeps.then(|| Trials { v4, v6, settings: settings.clone(), max_time });
        self.half = None;
        result.rejected = std::mem::take(&mut self.common.rejected);
        result.unanswered = std::mem::take(&mut self.common.unanswered);
        result
    }
}

impl Common {
    /// Counts a failure. Its state report waits for the end of the capture, when it is known what became of the others.
    fn failed<A: Family>(&mut self, attempt: &A::Key, failure: Failure) {
        if self.settings.ignores(&A::tried(attempt)) {
            return;
        }
        match failure {
            Failure::Rejected => self.rejected += 1,
            Failure::Unanswered => self.unanswered += 1,
        }
    }
}

/// The packets of a chunk that have no flow, as sets of bits, those of IPv4 and of IPv6.
#[cold]
fn without_flow(chunk: &[Slot]) -> [u64; 2] {
    let mut asking = [0; 2];
    for (i, slot) in chunk.iter().enumerate().filter(|(_, slot)| slot.has_no_flow()) {
        asking[usize::from(slot.is_v6())] |= 1 << i;
    }
    asking
}

/// The packets of a chunk that have a flow, as sets of bits: of the slots where they begin.
struct Kinds {
    v4: u64,
    v6: u64,
    /// Those that touch an attempt; second slots may be among them, and packets without a flow.
    touching: u64,
    /// Those that may be probes; the same.
    probing: u64,
}

impl Kinds {
    /// The packets of at most [`CHUNK`] slots, with IPv6 packets whole. Needs no branch on the kind of a packet.
    #[inline(always)]
    fn of(chunk: &[Slot]) -> Self {
        let mut kinds = Kinds { v4: 0, v6: 0, touching: 0, probing: 0 };
        for (i, slot) in chunk.iter().enumerate().take(CHUNK) {
            kinds.v4 |= u64::from(slot.has_flow_v4()) << i;
            kinds.v6 |= u64::from(slot.has_flow_v6()) << i;
            kinds.touching |= attempts::touches(slot) << i;
            kinds.probing |= probes::may_probe(slot) << i;
        }
        kinds
    }
}

/// The positions of the bits of a set, in order.
#[inline(always)]
pub(crate) fn bits(mut set: u64) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let bit = set.trailing_zeros() as usize;
        set &= set - 1;
        Some(bit)
    })
}

impl<A: Family> Default for Tables<A> {
    fn default() -> Self {
        Tables {
            flows: per_partition(),
            attempts: per_partition(),
            probes: per_partition(),
            sources: per_partition(),
            numbers: Box::new([0; CHUNK]),
        }
    }
}

impl<A: Family> Tables<A> {
    fn take(&mut self, partition: u8) -> PartitionTables<A> {
        let partition = usize::from(partition);
        (
            std::mem::take(&mut self.flows[partition]),
            std::mem::take(&mut self.attempts[partition]),
            std::mem::take(&mut self.probes[partition]),
            std::mem::take(&mut self.sources[partition]),
        )
    }

    fn put(&mut self, partition: u8, (flows, attempts, probes, sources): PartitionTables<A>) {
        let partition = usize::from(partition);
        debug_assert!(self.flows[partition].len() == 0, "a partition is in one place only");
        (self.flows[partition], self.attempts[partition]) = (flows, attempts);
        (self.probes[partition], self.sources[partition]) = (probes, sources);
    }

    /// Processes the packets that begin at these slots. Those in `touching` touch attempts, and those in `probing` may
    /// be probes. Those in `asking` have no flow.
    #[inline(always)]
    fn process(
        &mut self,
        chunk: &[Slot],
        packets: impl Iterator<Item = usize> + Clone,
        [touching, probing, asking]: [u64; 3],
        common: &mut Common,
    ) {
        for i in packets.clone() {
            self.flows[usize::from(chunk[i].partition())].prefetch(chunk[i].flow_hash());
        }
        for i in bits(touching) {
            let hash = A::attempt_key(chunk, i).hash(&common.run.keys);
            self.attempts[usize::from(chunk[i].partition())].prefetch(hash);
        }
        for i in packets.clone() {
            self.numbers[i % CHUNK] = self.flows[usize::from(chunk[i].partition())].look(chunk[i].flow_hash());
        }
        if common.settings.counting.is_none() {
            for i in packets.clone() {
                self.flow(chunk, i, common).add(chunk[i].wire_len());
            }
        } else {
            self.process_counting(chunk, packets.clone(), common);
        }
        let mut resets = 0_u64;
        for i in bits(touching) {
            let slot = &chunk[i];
            resets |= u64::from(slot.flags() & RST != 0) << i;
            let key = A::attempt_key(chunk, i);
            let attempts = &mut self.attempts[usize::from(slot.partition())];
            let step = attempts::step(attempts, &common.run, &common.settings, &key, slot, None, |_| false);
            if let Some(failure) = step.failure() {
                common.failed::<A>(&key, failure);
            }
        }
        if resets != 0 && common.probing != 0 {
            self.process_resets(chunk, packets.clone(), resets, common);
        }
        if probing | asking != 0 {
            self.process_probes(chunk, probing, asking, common);
        }
    }

    /// Those of these RSTs that are the second packet of their flow may show that the first was a probe. The flows have
    /// counted all `packets` already.
    #[cold]
    fn process_resets(
        &mut self,
        chunk: &[Slot],
        packets: impl Iterator<Item = usize> + Clone,
        resets: u64,
        common: &Common,
    ) {
        for i in bits(resets) {
            let flow = self.flow(chunk, i, common);
            if !probes::refuses(flow.beginning(), &chunk[i]) {
                continue;
            }
            let (key, counted) = (A::flow_key(chunk, i), flow.packets());
            let is_behind = |&j: &usize| j > i && A::flow_key(chunk, j).equals(&key);
            if counted == 2 + packets.clone().filter(is_behind).count() as u64 {
                let key = A::probe_key(chunk, i, Probe::Ack, true);
                let table = &mut self.probes[usize::from(chunk[i].partition())];
                probes::step(table, &common.run, &key, Probe::Ack, Event::Refusal, chunk[i].time_ns());
            }
        }
    }

    /// Updates the flows, and the counts of their packets' sources.
    #[inline(never)]
    fn process_counting(&mut self, chunk: &[Slot], packets: impl Iterator<Item = usize> + Clone, common: &mut Common) {
        let every = common.settings.counting.map_or(u64::MAX, |counting| counting.every.get());
        for i in packets.clone() {
            let hash = A::source_key(chunk, i).hash(&common.run.keys);
            self.sources[usize::from(chunk[i].partition())].prefetch(hash);
        }
        for i in packets {
            let wire_len = chunk[i].wire_len();
            let flow = self.flow(chunk, i, common);
            flow.add(wire_len);
            let begins = flow.packets() == 1;
            let key = A::source_key(chunk, i);
            let sources = &mut self.sources[usize::from(chunk[i].partition())];
            let refused = sources.refused();
            let due = sources.entry(&common.run, &key, key.hash(&common.run.keys)).add(wire_len, begins, every);
            // A source that was not taken is not reported: the MainAnalyzer would keep a source that no partition
            // keeps.
            if let Some((bytes, connections)) = due
                && sources.refused() == refused
            {
                common.outbox.push(A::sent_report(&key, bytes, connections));
            }
        }
    }

    /// The flow of the packet that begins at slot `i`; [`FlowTable::look`] has found its number.
    #[inline(always)]
    fn flow(&mut self, chunk: &[Slot], i: usize, common: &Common) -> &mut Flow {
        let (slot, number) = (&chunk[i], self.numbers[i % CHUNK]);
        let flows = &mut self.flows[usize::from(slot.partition())];
        flows.flow(&common.run, &A::flow_key(chunk, i), slot.flow_hash(), number, || probes::begin(slot))
    }

    /// Processes those packets in `probing` and `asking` that are probes, or answer one.
    #[inline(always)]
    fn process_probes(&mut self, chunk: &[Slot], probing: u64, asking: u64, common: &mut Common) {
        let (mut probes, mut answers) = (0_u64, 0_u64);
        for i in bits(asking) {
            *(if probes::question(&chunk[i]) == Event::Probe { &mut probes } else { &mut answers }) |= 1 << i;
        }
        for i in bits(probing) {
            let to_many = A::is_to_many(chunk, i);
            let Some(event) = probes::event(self.flow(chunk, i, common), &chunk[i], to_many) else {
                continue;
            };
            *(if event == Event::Probe { &mut probes } else { &mut answers }) |= 1 << i;
            let key = A::probe_key(chunk, i, probes::kind(&chunk[i]), event == Event::Answer);
            self.probes[usize::from(chunk[i].partition())].prefetch(key.hash(&common.run.keys));
        }
        for i in bits(probes | answers) {
            let event = if probes >> i & 1 != 0 { Event::Probe } else { Event::Answer };
            let probe = probes::kind(&chunk[i]);
            let key = A::probe_key(chunk, i, probe, event == Event::Answer);
            let table = &mut self.probes[usize::from(chunk[i].partition())];
            probes::step(table, &common.run, &key, probe, event, chunk[i].time_ns());
        }
    }

    /// Returns the tables of trials, if they are kept.
    fn finish(
        &mut self,
        max_time: u64,
        common: &mut Common,
        result: &mut PartialResult,
        send: &mut dyn FnMut(Drain<'_, StateReport>),
    ) -> FamilyTrials<A> {
        let mut trials = FamilyTrials::default();
        let settings = common.settings.clone();
        let mut answered = Vec::new();
        let mut pairs = HashMap::<(A, A), Volume, HashKeys>::with_hasher(common.run.keys);
        let mut groups = Groups::new(settings.vertical_threshold, common.run.keys);
        let mut probe_groups = Groups::new(settings.vertical_threshold, common.run.keys);
        let tables = self.flows.iter_mut().zip(self.attempts.iter_mut());
        let tables = tables.zip(self.probes.iter_mut()).zip(self.sources.iter_mut());
        for (((flows, attempts), probes), sources) in tables {
            result.refused.add(&Refused {
                flow_packets: flows.refused(),
                attempts: attempts.refused() + probes.refused(),
                source_packets: sources.refused(),
            });
            let flows = std::mem::take(flows);
            for entry in flows.entries() {
                let (packets, bytes) = (entry.flow.packets(), entry.flow.bytes);
                pairs.entry(A::pair(&entry.key)).or_default().add(&Volume { flows: 1, packets, bytes });
            }
            result.flows += flows.len() as u64;
            result.pairs += pairs.len() as u64;
            result.talkers.add(pairs.drain());

            let attempts = std::mem::take(attempts);
            for mut entry in attempts.iter().copied() {
                let tried @ Tried { source, destination, .. } = A::tried(entry.key());
                if settings.ignores(&tried) {
                    continue;
                }
                if let Some(failure) = entry.value.finish(&settings, max_time).failure() {
                    common.failed::<A>(entry.key(), failure);
                }
                if let Some((failure, time_ns)) = entry.value.failed().filter(|_| !entry.value.is_known()) {
                    groups.add((source, destination), time_ns, || destination.ip());
                    let report = A::state_report(tried, time_ns, Verdict::Failed(failure));
                    common.outbox.push(report.after(entry.value.lag()));
                    if entry.value.is_polled() {
                        common.outbox.push(A::state_report(tried, time_ns, Verdict::Polled));
                    }
                }
                if entry.value.was_answered() {
                    let has_failed = entry.value.failed().is_some();
                    let begun = twins::tick(entry.value.since_ns());
                    A::answered(result).push(Answered { probe: None, has_failed, source, port: tried.port, begun });
                }
            }
            let was_answered = attempts.iter().filter(|entry| entry.value.was_answered());
            groups.add_answered(was_answered.filter_map(|entry| {
                let tried @ Tried { source, destination, .. } = A::tried(entry.key());
                let mut attempt = entry.value;
                attempt.finish(&settings, max_time);
                (!settings.ignores(&tried)).then(|| ((source, destination), attempt.failed().is_some(), to_one(None)))
            }));
            result.blocks.extend(groups.parts().map(|(&(source, destination), times)| BlockPart {
                of: (source.ip(), None),
                destination: destination.ip(),
                times,
            }));
            result.alerts.extend(groups.drain_scans().map(|scan| Alert::Vertical {
                source: scan.key.0.ip(),
                destination: scan.key.1.ip(),
                count: scan.count,
                time_ns: scan.time_ns,
            }));

            let probes = std::mem::take(probes);
            for entry in probes.iter() {
                let tried @ Tried { source, destination, port, probe: Some(probe) } = A::tried(entry.key()) else {
                    continue;
                };
                if settings.ignores(&tried) {
                    continue;
                }
                if let Some(time_ns) = entry.value.failed() {
                    if probe.has_port() {
                        probe_groups.add((probe, source, destination), time_ns, || destination.ip());
                    }
                    if probe.counts_hosts() {
                        common.outbox.push(A::state_report(tried, time_ns, Verdict::Failed(Failure::Unanswered)));
                        if entry.value.is_polled() {
                            common.outbox.push(A::state_report(tried, time_ns, Verdict::Polled));
                        }
                    }
                } else if entry.value.is_answered() {
                    if probe.has_port() {
                        answered.push(((probe, source, destination), false, to_one(Some(probe))));
                    }
                    let begun = twins::tick(entry.value.time());
                    A::answered(result).push(Answered { probe: Some(probe), has_failed: false, source, port, begun });
                }
            }
            probe_groups.add_answered(answered.drain(..));
            for mut entry in std::mem::take(sources).iter().copied() {
                if let Some((bytes, connections)) = entry.value.take() {
                    common.outbox.push(A::sent_report(entry.key(), bytes, connections));
                }
            }
            result.blocks.extend(probe_groups.parts().map(|(&(probe, source, destination), times)| BlockPart {
                of: (source.ip(), Some(probe)),
                destination: destination.ip(),
                times,
            }));
            result.probe_scans.extend(probe_groups.drain_scans().map(|scan| {
                let (probe, source, destination) = scan.key;
                let (source, destination) = (source.ip(), destination.ip());
                ProbeScan {
                    probe,
                    scan: Alert::Vertical { source, destination, count: scan.count, time_ns: scan.time_ns },
                }
            }));
            if common.keeps {
                trials.attempts.push(attempts);
                trials.probes.push(probes);
            }
            if common.outbox.len() >= TOGETHER {
                send(common.outbox.drain(..));
            }
        }
        trials
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Counting;
    use crate::table::{Align32, Align64, Entry};
    use corelane_net::decode::{TCP, Transport};
    use std::num::NonZeroU64;

    const SYN: Transport<u32> = Transport {
        source: 9,
        destination: 3,
        source_port: 1000,
        destination_port: 80,
        protocol: TCP,
        flags: 0x02,
        hops: 64,
        is_at_zero: false,
    };

    #[test]
    fn an_entry_is_its_share_of_a_cache_line() {
        assert_eq!(size_of::<flows::Entry<[u64; 2], Align32>>(), 32);
        assert_eq!(size_of::<flows::Entry<[u64; 5], Align64>>(), 64);
        assert_eq!(size_of::<Entry<[u64; 2], Attempt, Align32>>(), 32);
        assert_eq!(size_of::<Entry<[u64; 5], Attempt, Align64>>(), 64);
        assert_eq!(size_of::<Entry<[u64; 2], Probed, Align32>>(), 32);
        assert_eq!(size_of::<Entry<[u64; 5], Probed, Align64>>(), 64);
        assert_eq!(size_of::<Entry<[u64; 1], Sent, Align32>>(), 32);
        assert_eq!(size_of::<Entry<[u64; 3], Sent, Align64>>(), 64);
        assert_eq!(size_of::<Slot>(), 32);
    }

    #[test]
    fn a_flow_has_both_directions() {
        let back = Transport { source: 3, destination: 9, source_port: 80, destination_port: 1000, ..SYN };
        let run = Run::new();
        let keys = run.keys;
        let mut analyzer = SubAnalyzer::new(&Settings::default(), &run);
        analyzer.process(&[
            Slot::v4(&keys, 50, 100, &SYN),
            Slot::v4(&keys, 40, 10, &back),
            Slot::v4(&keys, 60, 1, &SYN),
        ]);
        let flows = &analyzer.v4.flows[usize::from(Slot::v4(&keys, 0, 0, &SYN).partition())];
        let all: Vec<_> = flows.entries().map(|entry| (entry.flow.packets(), entry.flow.bytes)).collect();
        assert_eq!(all, [(3, 111)]);
    }

    #[test]
    fn an_attempt_of_its_own_clock_fails_and_is_told_at_the_end() {
        let other = Transport { destination_port: 81, ..SYN };
        let run = Run::new();
        let keys = run.keys;
        let mut analyzer = SubAnalyzer::new(&Settings { syn_timeout_ns: 10, ..Settings::default() }, &run);
        analyzer.process(&[Slot::v4(&keys, 0, 60, &SYN), Slot::v4(&keys, 100, 60, &other)]);
        analyzer.process(&[Slot::v4(&keys, 11, 60, &SYN)]);
        assert!(analyzer.reports().is_empty());
        assert_eq!(analyzer.finish(105).unanswered, 2);
        let told = |port: u16, time_ns| {
            let tried = Tried { source: 9, destination: 3, port, probe: None };
            StateReport::v4(tried, time_ns, Verdict::Failed(Failure::Unanswered))
        };
        let mut reports: Vec<_> = analyzer.take_reports().collect();
        reports.sort_unstable_by_key(StateReport::port);
        assert_eq!(reports, [told(80, 10), told(81, 105)]);
    }

    #[test]
    fn a_source_that_was_not_taken_is_not_reported() {
        let run = Run::new();
        let counting = NonZeroU64::new(1).map(|every| Counting { every, top: 10 });
        for (table_bytes, taken) in [(None, 1000), (Some(0), 0)] {
            let settings = Settings { counting, table_bytes, ..Settings::default() };
            let mut analyzer = SubAnalyzer::new(&settings, &run);
            for source in 0..1000 {
                analyzer.process(&[Slot::v4(&run.keys, 0, 60, &Transport { source, ..SYN })]);
            }
            let reported = analyzer.take_reports().count();
            let refused = analyzer.finish(0).refused.source_packets;
            assert_eq!((reported, refused), (taken, 1000 - taken as u64));
        }
    }

    #[test]
    fn every_set_of_bits_is_walked_in_order() {
        for set in [0, 1, 1 << 63, u64::MAX, 0x8421_0000_1248_0001] {
            let walked: Vec<_> = bits(set).collect();
            let expected: Vec<_> = (0..64).filter(|bit| set >> bit & 1 == 1).collect();
            assert_eq!(walked, expected);
        }
    }
}
