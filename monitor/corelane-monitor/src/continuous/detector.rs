//! The state of the address pairs of a stage, in tables whose entries get old.
//!
//! | table | an entry is over |
//! |---|---|
//! | flows | [`TCP_S`] or [`UDP_S`] after the last packet, [`CLOSED_S`] after that of a closed one |
//! | attempts | when their failure or, of an answered one, its SYN is forgotten |
//! | probes | when their failure or answer is forgotten |
//!
//! An attempt fails at its deadline, and a UDP key is judged [`ASKED_S`] after its first datagram. Both are written
//! down under the step in which that is due. All else is judged when it is met: an entry that is over counts as new. A
//! full table drops what is over before it grows. Where it may not grow, what was answered leaves it first, then what
//! was told, the oldest before the others. What was written down of entries that have left their table is dropped when
//! there may be much of it, so that it takes no more memory than the tables allow.

use super::Continuous;
use super::due::Due;
use super::recent::Recent;
use crate::analyzer::attempts::{self, Attempt, Step};
use crate::analyzer::family::Family;
use crate::analyzer::probes::{self, Event};
use crate::analyzer::{CHUNK, PerPartition, bits, per_partition};
use crate::key::Key;
use crate::lending::{self, Lent};
use crate::partial_result::PartialResult;
use crate::polls::Tries;
use crate::probe::Probe;
use crate::room::Room;
use crate::run::Run;
use crate::settings::Settings;
use crate::slot::Slot;
use crate::state_report::{Failure, StateReport, Verdict};
use crate::steps::{STEP_NS, begin_of, step_of};
use crate::table::{Table, limit};
use crate::talkers::Talkers;
use crate::twins::Lag;
use bytemuck::Zeroable;
use corelane_net::decode::UDP;
use corelane_net::decode::flags::{ACK, FIN, RST, SYN};

/// How long a TCP flow lasts after its last packet, in seconds.
const TCP_S: u64 = 300;
/// The same for UDP.
const UDP_S: u64 = 60;
/// The same for a TCP flow that was reset or that both ends have closed.
const CLOSED_S: u64 = 5;
/// How long a UDP key may go without an answer, in seconds.
const ASKED_S: u64 = 60;
/// How long after it was sent a UDP probe without an answer fails, in nanoseconds; those of the last such time of a
/// capture fail at its end.
pub(crate) const UDP_FAILS_NS: u64 = ASKED_S * STEP_NS;

/// So few keys that leave their table untold say nothing of their source.
const FEW: u64 = 8;

/// The tables whose keys may be reported again.
const ATTEMPTS: usize = 0;
const PROBES: usize = 1;

/// Set in the rank of an entry that was not told, beside its time.
const UNTOLD: u64 = 1 << 63;
/// The same of an attempt that has failed, beside a quarter of its time.
const TOLD: u64 = 1 << 62;

/// Slots that are [sifted](Detector::sift) together: whole packets.
pub(crate) const SIFTED: usize = 64;
/// Slots that are gathered to be processed together, before fewer than [`SIFTED`] more.
pub(crate) const SLOTS: usize = 256;

/// What a detector has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// TCP and UDP packets.
    packets: u64,
    /// Flows begun.
    flows: u64,
    rejected: u64,
    unanswered: u64,
    /// Flows that left a full table before they were over.
    evicted_flows: u64,
    /// The same of attempts and probes: their failures are not known any longer.
    evicted_failures: u64,
}

/// A flow, as far as its beginning and its end are concerned.
#[derive(Clone, Copy, Debug, Default, Zeroable)]
struct Seen {
    /// The step of its last packet.
    touched: u64,
    /// [`LIVE`] and the following; the lowest bits are the beginning that [`probes`] keeps.
    marks: u64,
}

const BEGINNING: u64 = 7;
/// There was a packet: an entry of zeros is new.
const LIVE: u64 = 1 << 3;
/// The end with the lesser address and port has closed …
const LESSER_CLOSED: u64 = 1 << 4;
/// … and the other.
const GREATER_CLOSED: u64 = 1 << 5;
const BOTH_CLOSED: u64 = LESSER_CLOSED | GREATER_CLOSED;
const IS_UDP: u64 = 1 << 6;
/// The end with the lesser address and port has sent something, the other at the next bit.
const SENT: u64 = 1 << 7;

impl Seen {
    fn is_closed(&self) -> bool {
        self.marks & BOTH_CLOSED == BOTH_CLOSED
    }

    #[inline(always)]
    fn is_over(&self, now: u64) -> bool {
        let of_tcp = if self.is_closed() { CLOSED_S } else { TCP_S };
        let lasts = if self.marks & IS_UDP != 0 { UDP_S } else { of_tcp };
        (now.saturating_sub(self.touched) > lasts) | (self.marks == 0)
    }
}

/// A key that was asked by a probe.
#[derive(Clone, Copy, Debug, Default, Zeroable)]
struct Asked {
    /// The time of the first probe.
    time: u64,
    state: Asking,
    tries: Tries,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Zeroable)]
#[repr(u32)]
enum Asking {
    /// The entry was made this moment.
    #[default]
    New,
    /// It was asked for once, which says nothing yet.
    Once,
    /// No answer came back yet.
    Waiting,
    /// An answer came back.
    Answered,
    /// That was reported, or is a failure that is no poll.
    Told,
    /// Its failure was reported. If it is polled, the time is that of its last probe.
    Failed,
}

impl Asked {
    /// Whether all is said of it.
    fn is_told(&self) -> bool {
        matches!(self.state, Asking::Told | Asking::Failed)
    }
}

/// One address family's state.
#[derive(Debug)]
struct Tables<A: Family> {
    flows: PerPartition<Table<A::Key, Seen, A::FlowAlign>>,
    attempts: PerPartition<Table<A::Key, Attempt, A::AttemptAlign>>,
    probes: PerPartition<Table<A::Key, Asked, A::AttemptAlign>>,
    recent: Recent<A>,
    /// How many flows of each partition had a packet in this step …
    touched: PerPartition<u32>,
    /// … and how many are too many for packets to be [sifted](Detector::sift) out.
    crowds: PerPartition<u32>,
    /// Before this step failures of each partition may be of keys that failed before, and left their table too early.
    /// Of attempts and of probes, as a batch has all of these before any of those.
    again: PerPartition<[u64; 2]>,
    attempts_due: Due<A::Key>,
    probes_due: Due<A::Key>,
}

/// What both address families share.
#[derive(Debug)]
struct Common {
    settings: Settings,
    continuous: Continuous,
    run: Run,
    /// The current step.
    now: u64,
    /// The room of each partition.
    lent: Lent,
    counts: Counts,
    outbox: Vec<StateReport>,
}

/// The state of some partitions, with the work that their packets and steps cause.
#[derive(Debug)]
pub(crate) struct Detector {
    common: Common,
    v4: Tables<u32>,
    v6: Tables<u128>,
}

impl Detector {
    pub(crate) fn new(settings: &Settings, continuous: &Continuous, run: &Run) -> Self {
        let run = Run { room: Room::of(settings), ..run.clone() };
        let (settings, continuous) = (settings.clone(), *continuous);
        let (counts, outbox) = (Counts::default(), Vec::new());
        let lent = lending::at_first();
        let (v4, v6) = (Tables::new(run.room, &lent), Tables::new(run.room, &lent));
        let common = Common { settings, continuous, run, now: 0, lent, counts, outbox };
        Detector { common, v4, v6 }
    }

    /// From now on partitions have this room. It is at the beginning of a step, after its [pass](Detector::pass).
    pub(crate) fn lend(&mut self, lent: &Lent) {
        let Detector { common, v4, v6 } = self;
        common.lent = *lent;
        v4.lend(common);
        v6.lend(common);
    }

    /// Keeps the packets of one address family that say something new, in front, and returns the number of their slots.
    /// A packet leaves everything as it is if its flow had another of this direction in this step, and if it neither
    /// opens nor closes. Then it is counted here, and is not to be processed.
    pub(crate) fn sift(&mut self, slots: &mut [Slot]) -> usize {
        match is_v6(slots) {
            false => self.v4.sift(slots, &mut self.common),
            true => self.v6.sift(slots, &mut self.common),
        }
    }

    /// Processes the packets of one address family, in the order in which the Dispatcher gave them.
    pub(crate) fn process(&mut self, slots: &[Slot]) {
        match is_v6(slots) {
            false => self.v4.process(slots, &mut self.common),
            true => self.v6.process(slots, &mut self.common),
        }
    }

    /// All steps before this time are over.
    pub(crate) fn pass(&mut self, begun_ns: u64) {
        let Detector { common, v4, v6 } = self;
        v4.pass(begun_ns, common);
        v6.pass(begun_ns, common);
        let step = step_of(begun_ns);
        if step > common.now {
            common.now = step;
            v4.touched.fill(0);
            v6.touched.fill(0);
        }
    }

    /// The run is over: all that is open fails, at the times at which it would.
    pub(crate) fn finish(&mut self) {
        let Detector { common, v4, v6 } = self;
        v4.judge(u64::MAX, u64::MAX, common);
        v6.judge(u64::MAX, u64::MAX, common);
    }

    /// The counts so far.
    pub(crate) fn result(&self) -> PartialResult {
        let counts = &self.common.counts;
        let mut result = PartialResult::new(Talkers::new(0, self.common.run.keys));
        result.packets = counts.packets;
        result.flows = counts.flows;
        result.rejected = counts.rejected;
        result.unanswered = counts.unanswered;
        result.evicted_flows = counts.evicted_flows;
        result.evicted_failures = counts.evicted_failures;
        result
    }

    /// Whether there are reports to be taken.
    pub(crate) fn has_reports(&self) -> bool {
        !self.common.outbox.is_empty()
    }

    /// Takes the reports.
    pub(crate) fn take_reports(&mut self) -> std::vec::Drain<'_, StateReport> {
        self.common.outbox.drain(..)
    }
}

impl Common {
    /// Reports what became of a key, so long after its SYN. Before the step `again` it may have been reported before.
    fn send<A: Family>(&mut self, key: &A::Key, time_ns: u64, verdict: Verdict, lag: Lag, again: u64) {
        let tried = A::tried(key);
        if self.settings.ignores(&tried) {
            return;
        }
        match verdict.failure().filter(|_| tried.probe.is_none()) {
            Some(Failure::Rejected) => self.counts.rejected += 1,
            Some(Failure::Unanswered) => self.counts.unanswered += 1,
            None => {}
        }
        self.outbox.push(A::state_report(tried, time_ns, verdict).after(lag).again(self.now < again));
    }

    /// Keys that leave their table before they could be judged. A fast scan fills a table before its first probe is
    /// late, and would go unseen. So a source of more than a scan's worth of them, or of most and not few, is judged by
    /// what is known: no busy host waits for so many answers in one partition. Of others there is only the count.
    fn judge_early<A: Family>(&mut self, mut keys: Vec<(A::Key, Verdict)>, time_ns: u64, again: u64) {
        let threshold = self.settings.vertical_threshold.min(self.settings.horizontal_threshold);
        let threshold = threshold.min((keys.len() as u64 / 2).max(FEW));
        keys.sort_unstable_by_key(|(key, _)| A::tried(key).source);
        for of_source in keys.chunk_by(|(a, _), (b, _)| A::tried(a).source == A::tried(b).source) {
            if of_source.len() as u64 > threshold {
                let lag = Lag::UNKNOWN;
                of_source.iter().for_each(|(key, verdict)| self.send::<A>(key, time_ns, *verdict, lag, again));
            }
        }
    }

    /// Whether this attempt is over, and what became of it is forgotten.
    fn has_forgotten(&self, attempt: &Attempt) -> bool {
        !attempt.is_open() && self.forgets(attempt.time())
    }

    /// Whether what was told with this time is forgotten.
    fn forgets(&self, time_ns: u64) -> bool {
        self.continuous.forgets(self.now, time_ns)
    }
}

/// While fewer flows of a partition than this had a packet in a step, none of them leaves its table in that step; the
/// table has this capacity at most. They leave a full one when three quarters of it are not over, and three quarters of
/// those had a packet in this step. Each packet that waits to be processed may be of one flow more.
fn crowd(largest: usize) -> u32 {
    let leave = limit(largest) as u64 / 16 * 9;
    u32::try_from(leave.saturating_sub((SLOTS + SIFTED) as u64)).unwrap_or(u32::MAX)
}

fn crowds<A: Family>(room: Room, lent: &Lent) -> PerPartition<u32> {
    Box::new(lent.map(|lent| crowd(room.flows(A::ENTRY, lent))))
}

/// Makes room for another flow of a partition; returns how many left before they were over.
#[inline(always)]
fn renew_flows<A: Family>(flows: &mut Table<A::Key, Seen, A::FlowAlign>, partition: u8, common: &Common) -> u64 {
    let largest = common.run.room.flows(A::ENTRY, common.lent[usize::from(partition)]);
    flows.renew(&common.run, largest, |flow| flow.is_over(common.now), |flow| flow.touched, |_, _| {})
}

/// The hash of a flow, of which the slot has the upper half: the one that says where it lies.
#[inline(always)]
fn flow_hash(slot: &Slot) -> u64 {
    u64::from(slot.flow_hash()) << 32
}

/// Whether this is a SYN that opens.
#[inline(always)]
fn begins(slot: &Slot) -> bool {
    slot.flags() & (SYN | ACK | RST | FIN) == SYN
}

fn is_v6(slots: &[Slot]) -> bool {
    slots.first().is_some_and(Slot::is_v6)
}

/// Slots that are processed together, with sets of their packets, and the slots behind them.
struct Chunk<'a> {
    slots: &'a [Slot],
    behind: &'a [Slot],
    /// Packets with a flow, by their first slots.
    packets: u64,
    /// Packets without one.
    asking: u64,
    /// Those that touch attempts.
    touching: u64,
    /// Those that may be probes.
    probing: u64,
}

/// The first slots of the packets in so many slots.
#[inline(always)]
const fn bits_of_first<A: Family>(len: usize) -> u64 {
    let all = if A::SLOTS == 1 { u64::MAX } else { u64::MAX / 3 };
    if len == 0 { 0 } else { all & u64::MAX >> (CHUNK - len) }
}

impl<'a> Chunk<'a> {
    #[inline(always)]
    fn first<A: Family>(slots: &'a [Slot]) -> Self {
        let (slots, behind) = slots.split_at(slots.len().min(CHUNK));
        let mut chunk = Chunk { slots, behind, packets: 0, asking: 0, touching: 0, probing: 0 };
        for (i, slot) in slots.iter().enumerate().step_by(A::SLOTS) {
            chunk.packets |= u64::from(!slot.has_no_flow()) << i;
            chunk.touching |= attempts::touches(slot) << i;
            chunk.probing |= probes::may_probe(slot) << i;
        }
        chunk.asking = bits_of_first::<A>(slots.len()) & !chunk.packets;
        chunk.touching &= chunk.packets;
        chunk
    }
}

impl<A: Family> Tables<A> {
    fn new(room: Room, lent: &Lent) -> Self {
        Tables {
            flows: per_partition(),
            attempts: per_partition(),
            probes: per_partition(),
            recent: Recent::default(),
            touched: per_partition(),
            crowds: crowds::<A>(room, lent),
            again: per_partition(),
            attempts_due: Due::new(),
            probes_due: Due::new(),
        }
    }

    /// Partitions have other room: those with more than that evict.
    fn lend(&mut self, common: &mut Common) {
        self.crowds = crowds::<A>(common.run.room, &common.lent);
        for partition in 0..=u8::MAX {
            let at = usize::from(partition);
            let (lent, room) = (common.lent[at], common.run.room);
            if self.flows[at].capacity() > room.flows(A::ENTRY, lent) {
                common.counts.evicted_flows += renew_flows::<A>(&mut self.flows[at], partition, common);
            }
            if self.attempts[at].capacity() > room.failures(A::ENTRY, lent) {
                self.room_for_attempt(partition, begin_of(common.now), common);
            }
            if self.probes[at].capacity() > room.failures(A::ENTRY, lent) {
                self.room_for_probe(partition, begin_of(common.now), common);
            }
        }
    }

    /// As [`Detector::sift`]. Whether a packet stays is hard to foresee, so there is no branch on it.
    fn sift(&mut self, slots: &mut [Slot], common: &mut Common) -> usize {
        let mut kept = 0;
        for at in (0..slots.len()).step_by(A::SLOTS) {
            // Without ACK a segment is a probe.
            let flags = slots[at].flags();
            let is_quiet = (flags & (SYN | FIN | RST) == 0) & ((flags & ACK != 0) | (slots[at].protocol() == UDP));
            let partition = usize::from(slots[at].partition());
            let is_calm = self.touched[partition] < self.crowds[partition];
            let known = self.recent.had(&slots[at..], common.now) & is_quiet & is_calm;
            slots.copy_within(at..at + A::SLOTS, kept);
            kept += if known { 0 } else { A::SLOTS };
        }
        common.counts.packets += ((slots.len() - kept) / A::SLOTS) as u64;
        kept
    }

    /// What a chunk needs is on its way while the chunk before it is processed.
    fn process(&mut self, slots: &[Slot], common: &mut Common) {
        let mut next = Chunk::first::<A>(slots);
        self.fetch(&next, common);
        while !next.slots.is_empty() {
            let chunk = next;
            next = Chunk::first::<A>(chunk.behind);
            self.fetch(&next, common);
            self.chunk(&chunk, common);
        }
    }

    /// Starts to fetch the entries that these packets need.
    #[inline(always)]
    fn fetch(&self, chunk: &Chunk<'_>, common: &Common) {
        let Chunk { slots, packets, touching, .. } = *chunk;
        for i in bits(packets) {
            self.flows[usize::from(slots[i].partition())].prefetch(flow_hash(&slots[i]));
        }
        for i in bits(touching) {
            let hash = A::attempt_key(slots, i).hash(&common.run.keys);
            self.attempts[usize::from(slots[i].partition())].prefetch(hash);
        }
    }

    /// Processes these packets. A walk for each kind of table is so short that the processor works on several packets
    /// at once, and the order of packets matters to none but their own table.
    #[inline(always)]
    fn chunk(&mut self, chunk: &Chunk<'_>, common: &mut Common) {
        let Chunk { slots: chunk, packets, asking, touching, probing, .. } = *chunk;
        common.counts.packets += u64::from(packets.count_ones());
        let (mut probes, mut answers, mut refusals) = (0_u64, 0_u64, 0_u64);
        for i in bits(packets) {
            match self.flow(chunk, i, probing >> i & 1 != 0, common) {
                None => {}
                Some(Event::Probe) => probes |= 1 << i,
                Some(Event::Answer) => answers |= 1 << i,
                Some(Event::Refusal) => refusals |= 1 << i,
            }
        }
        for i in bits(if common.settings.probes { asking } else { 0 }) {
            *(if probes::question(&chunk[i]) == Event::Probe { &mut probes } else { &mut answers }) |= 1 << i;
        }
        let event = |i: usize| match () {
            () if probes >> i & 1 != 0 => Event::Probe,
            () if refusals >> i & 1 != 0 => Event::Refusal,
            () => Event::Answer,
        };
        let events = probes | answers | refusals;
        for i in bits(events) {
            let hash = Self::probe_key(chunk, i, event(i)).hash(&common.run.keys);
            self.probes[usize::from(chunk[i].partition())].prefetch(hash);
        }
        for i in bits(touching) {
            self.attempt(chunk, i, common);
        }
        for i in bits(events) {
            self.probe(chunk, i, event(i), common);
        }
    }

    /// Updates the flow of the packet that begins at this slot. The result is what a packet that may be a probe is.
    #[inline(always)]
    fn flow(&mut self, chunk: &[Slot], i: usize, may_probe: bool, common: &mut Common) -> Option<Event> {
        let slot = &chunk[i];
        let (flags, now) = (slot.flags(), common.now);
        let is_udp = slot.protocol() == UDP;
        let flows = &mut self.flows[usize::from(slot.partition())];
        let (key, hash) = (A::flow_key(chunk, i), flow_hash(slot));
        let flow = match flows.find(&key, hash) {
            Some(position) => flows.value_at(position),
            None => {
                common.counts.evicted_flows += renew_flows::<A>(flows, slot.partition(), common);
                flows.entry(&common.run, &key, hash)
            }
        };
        // With few branches, as which way they go is hard to foresee.
        let is_first = flow.is_over(now) | (flow.is_closed() & begins(slot));
        if is_first {
            common.counts.flows += 1;
            flow.marks = LIVE | if is_udp { IS_UDP } else { probes::begin(slot) };
        }
        if is_first | (flow.touched != now) {
            self.touched[usize::from(slot.partition())] += 1;
        }
        flow.touched = now;
        let sent = SENT << u32::from(!slot.is_by_lesser());
        let is_silent = flow.marks & sent == 0;
        flow.marks |= sent;
        let closes = if slot.is_by_lesser() { LESSER_CLOSED } else { GREATER_CLOSED };
        flow.marks |= if flags & FIN != 0 { closes } else { 0 } | if flags & RST != 0 { BOTH_CLOSED } else { 0 };
        if flags & RST != 0 && is_silent && probes::refuses(flow.marks & BEGINNING, slot) {
            return common.settings.probes.then_some(Event::Refusal);
        }
        if !(may_probe && common.settings.probes) {
            return None;
        }
        if !is_udp {
            return probes::began(flow.marks & BEGINNING, slot).then_some(Event::Probe);
        }
        let (beginning, event) = probes::datagram(flow.marks & BEGINNING, slot, A::is_to_many(chunk, i));
        flow.marks = flow.marks & !BEGINNING | beginning;
        event
    }

    /// Updates the attempt of a packet that touches one.
    fn attempt(&mut self, chunk: &[Slot], i: usize, common: &mut Common) {
        let slot = &chunk[i];
        let (key, partition) = (A::attempt_key(chunk, i), slot.partition());
        if begins(slot) {
            self.room_for_attempt(partition, slot.time_ns(), common);
        }
        let table = &mut self.attempts[usize::from(partition)];
        let is_over = |attempt: &Attempt| common.has_forgotten(attempt);
        match attempts::step(table, &common.run, &common.settings, &key, slot, Some(&common.continuous), is_over) {
            Step::Opened => {
                let deadline = slot.time_ns().saturating_add(common.settings.syn_timeout_ns);
                let tables = &mut self.attempts;
                self.attempts_due.add(step_of(deadline), partition, key, |step, partition, key| {
                    attempt_due(&mut tables[usize::from(partition)], key, step, common).is_some()
                });
            }
            Step::Answered(lag) => common.send::<A>(&key, slot.time_ns(), Verdict::Answered, lag, 0),
            Step::Failed(verdict, time_ns, lag) => {
                common.send::<A>(&key, time_ns, verdict, lag, self.again[usize::from(partition)][ATTEMPTS]);
            }
            Step::Polled => common.send::<A>(&key, slot.time_ns(), Verdict::Polled, Lag::UNKNOWN, 0),
            Step::Nothing => {}
        }
    }

    /// Makes room for another attempt of a partition. Those that were answered leave first, and then those that were
    /// told.
    #[inline(always)]
    fn room_for_attempt(&mut self, partition: u8, time_ns: u64, common: &mut Common) {
        let at = usize::from(partition);
        let largest = common.run.room.failures(A::ENTRY, common.lent[at]);
        let is_over = |attempt: &Attempt| common.has_forgotten(attempt);
        let rank = |attempt: &Attempt| match () {
            () if attempt.is_open() => attempt.time() >> 1 | UNTOLD,
            () if attempt.is_answered() => attempt.time() >> 2,
            () => attempt.time() >> 2 | TOLD,
        };
        let (mut open, mut answered) = (Vec::new(), 0);
        let evicted = self.attempts[at].renew(&common.run, largest, is_over, rank, |key, attempt| {
            answered += u64::from(attempt.is_answered());
            if attempt.is_open() && !attempt.is_known() {
                open.push((*key, Verdict::Failed(Failure::Unanswered)));
            }
        });
        if evicted > answered {
            self.evicted(ATTEMPTS, partition, evicted - answered, open, time_ns, common);
        }
    }

    /// The same of probes.
    #[inline(always)]
    fn room_for_probe(&mut self, partition: u8, time_ns: u64, common: &mut Common) {
        let at = usize::from(partition);
        let largest = common.run.room.failures(A::ENTRY, common.lent[at]);
        let is_over = |asked: &Asked| asked.is_told() && common.forgets(asked.time);
        let rank = |asked: &Asked| asked.time | if asked.is_told() { 0 } else { UNTOLD };
        let mut unreported = Vec::new();
        let evicted = self.probes[at].renew(&common.run, largest, is_over, rank, |key, asked| match asked.state {
            // Not a minute after it was sent, as others.
            Asking::Waiting => unreported.push((*key, Verdict::Failed(Failure::Rejected))),
            Asking::Answered => unreported.push((*key, Verdict::Answered)),
            Asking::New | Asking::Once | Asking::Told | Asking::Failed => {}
        });
        if evicted > 0 {
            self.evicted(PROBES, partition, evicted, unreported, time_ns, common);
        }
    }

    /// So many keys of a partition left their table before they were over; these of them were not told.
    #[cold]
    fn evicted(
        &mut self,
        of: usize,
        partition: u8,
        count: u64,
        untold: Vec<(A::Key, Verdict)>,
        time_ns: u64,
        common: &mut Common,
    ) {
        common.counts.evicted_failures += count;
        let again = &mut self.again[usize::from(partition)][of];
        common.judge_early::<A>(untold, time_ns, *again);
        *again = common.now.saturating_add(common.continuous.forget_s).saturating_add(1);
    }

    #[inline(always)]
    fn probe_key(chunk: &[Slot], i: usize, event: Event) -> A::Key {
        match event {
            Event::Refusal => A::probe_key(chunk, i, Probe::Ack, true),
            event => A::probe_key(chunk, i, probes::kind(&chunk[i]), event == Event::Answer),
        }
    }

    fn probe(&mut self, chunk: &[Slot], i: usize, event: Event, common: &mut Common) {
        let slot = &chunk[i];
        let key = Self::probe_key(chunk, i, event);
        let hash = key.hash(&common.run.keys);
        let table = &mut self.probes[usize::from(slot.partition())];
        if event == Event::Answer {
            if let Some(position) = table.find(&key, hash)
                && let asked = table.value_at(position)
                && matches!(asked.state, Asking::Once | Asking::Waiting)
            {
                asked.state = Asking::Answered;
            }
            return;
        }
        self.room_for_probe(slot.partition(), slot.time_ns(), common);
        let table = &mut self.probes[usize::from(slot.partition())];
        let asked = table.entry(&common.run, &key, hash);
        let is_over = asked.is_told() && common.forgets(asked.time);
        let time = slot.time_ns();
        if asked.state != Asking::New && !is_over {
            if matches!(asked.state, Asking::Waiting | Asking::Failed) && probes::may_be_polled(probes::kind(slot)) {
                let was_polled = asked.tries.is_polled();
                asked.tries = asked.tries.then(time);
                if asked.state == Asking::Failed && asked.tries.is_polled() {
                    // It is not forgotten while it is polled.
                    asked.time = time;
                    if !was_polled {
                        common.send::<A>(&key, time, Verdict::Polled, Lag::UNKNOWN, 0);
                    }
                    return;
                }
            }
            if asked.state == Asking::Once && probes::is_again(asked.time, time) {
                asked.state = Asking::Waiting;
            }
            // A ring may bring packets of several processors out of order.
            let is_waiting = matches!(asked.state, Asking::Once | Asking::Waiting);
            if is_waiting && time < asked.time && judged(time) == judged(asked.time) {
                asked.time = time;
            }
            return;
        }
        let probe = A::tried(&key).probe.filter(|probe| probe.waits());
        if let Some(probe) = probe {
            let state = if probes::is_asked_again(probe) { Asking::Once } else { Asking::Waiting };
            *asked = Asked { time, state, tries: Tries::first(time) };
            let tables = &mut self.probes;
            self.probes_due.add(judged(time), slot.partition(), key, |step, partition, key| {
                probe_due(&mut tables[usize::from(partition)], key, step, common).is_some()
            });
        } else {
            *asked = Asked { time, state: Asking::Told, tries: Tries::default() };
            let again = self.again[usize::from(slot.partition())][PROBES];
            common.send::<A>(&key, time, Verdict::Failed(Failure::Unanswered), Lag::UNKNOWN, again);
        }
    }

    /// All steps before this time are over.
    fn pass(&mut self, begun_ns: u64, common: &mut Common) {
        while let Some(step) = self.attempts_due.first().into_iter().chain(self.probes_due.first()).min()
            && begin_of(step + 1) <= begun_ns
        {
            self.judge(step, begin_of(step + 1), common);
        }
    }

    /// Judges all that is due up to this step. No packet before `time_ns` follows.
    fn judge(&mut self, last: u64, time_ns: u64, common: &mut Common) {
        while let Some((step, keys)) = self.attempts_due.take(last) {
            for (partition, key) in &keys {
                let table = &mut self.attempts[usize::from(*partition)];
                let Some(attempt) = attempt_due(table, key, step, common) else { continue };
                if let Step::Failed(verdict, time_ns, lag) = attempt.finish(&common.settings, time_ns) {
                    common.send::<A>(key, time_ns, verdict, lag, self.again[usize::from(*partition)][ATTEMPTS]);
                }
            }
            self.attempts_due.give_back(keys);
        }
        while let Some((step, keys)) = self.probes_due.take(last) {
            for (partition, key) in &keys {
                let table = &mut self.probes[usize::from(*partition)];
                let Some((asked, verdict)) = probe_due(table, key, step, common) else { continue };
                let Some(verdict) = verdict else {
                    if let Some(position) = table.find(key, key.hash(&common.run.keys)) {
                        table.remove_at(&common.run.keys, position);
                    }
                    continue;
                };
                let time = asked.time.saturating_add(begin_of(ASKED_S)).min(time_ns);
                let state = if verdict == Verdict::Answered { Asking::Told } else { Asking::Failed };
                *asked = Asked { time, state, ..*asked };
                common.send::<A>(key, time, verdict, Lag::UNKNOWN, self.again[usize::from(*partition)][PROBES]);
            }
            self.probes_due.give_back(keys);
        }
    }
}

/// The attempt that fails at the end of this step. It may have been answered since that was written down, and another
/// one opened; or it has left the table for want of memory.
fn attempt_due<'a, K: Key, A: Copy + Default + Zeroable>(
    table: &'a mut Table<K, Attempt, A>,
    key: &K,
    step: u64,
    common: &Common,
) -> Option<&'a mut Attempt> {
    let position = table.find(key, key.hash(&common.run.keys))?;
    let attempt = table.value_at(position);
    (attempt.is_open() && step_of(attempt.deadline(&common.settings)) == step).then_some(attempt)
}

/// The key of probes that is judged at the end of this step, and the verdict, if there is one.
fn probe_due<'a, K: Key, A: Copy + Default + Zeroable>(
    table: &'a mut Table<K, Asked, A>,
    key: &K,
    step: u64,
    common: &Common,
) -> Option<(&'a mut Asked, Option<Verdict>)> {
    let position = table.find(key, key.hash(&common.run.keys))?;
    let asked = table.value_at(position);
    if judged(asked.time) != step {
        return None;
    }
    let verdict = match asked.state {
        Asking::Once => None,
        Asking::Waiting => Some(Verdict::Failed(Failure::Unanswered)),
        Asking::Answered => Some(Verdict::Answered),
        Asking::New | Asking::Told | Asking::Failed => return None,
    };
    Some((asked, verdict))
}

/// The step at whose end a UDP key is judged that was asked at this time.
fn judged(time_ns: u64) -> u64 {
    step_of(time_ns.saturating_add(begin_of(ASKED_S)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane_net::decode::flags::PSH;
    use corelane_net::decode::{TCP, Transport};

    const CLIENT: u32 = 0x0a00_0001;
    const SERVER: (u32, u16) = (0x0a00_0002, 80);

    /// A detector for tables of these bytes.
    fn detector(table_bytes: Option<u64>) -> Detector {
        let settings = Settings { table_bytes, probes: true, ..Settings::default() };
        Detector::new(&settings, &Continuous::default(), &Run::new())
    }

    /// What it says of packets of one pair of hosts, so of one partition, in so many steps: its counts, and how many of
    /// the packets it knew. The ports are drawn from so many, and a port has some packets in a row.
    fn play(
        table_bytes: Option<u64>,
        ports: u64,
        is_v6: bool,
        steps: u64,
        uses: bool,
    ) -> (Counts, Vec<StateReport>, usize) {
        let mut detector = detector(table_bytes);
        let mut known = 0;
        let mut state = 7_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let (mut slots, mut sifted) = (Vec::new(), 0);
        for step in 1..=steps {
            detector.pass(begin_of(step));
            for number in 0..3_000 {
                // As at a mark within a step.
                if number % 500 == 499 {
                    detector.pass(begin_of(step));
                }
                let port = below(ports) as u16;
                for _ in 0..=below(4) {
                    let flags = [ACK, ACK, ACK, PSH | ACK, 0, SYN, SYN | ACK, FIN | ACK, RST][below(9) as usize];
                    let protocol = if below(8) == 0 { UDP } else { TCP };
                    let flags = if protocol == UDP { 0 } else { flags };
                    let ((source, source_port), (destination, destination_port)) =
                        if below(3) == 0 { (SERVER, (CLIENT, port)) } else { ((CLIENT, port), SERVER) };
                    let (keys, time_ns) = (&detector.common.run.keys, begin_of(step));
                    let v6 = Transport {
                        source: u128::from(source),
                        destination: u128::from(destination),
                        source_port,
                        destination_port,
                        protocol,
                        flags,
                        hops: 64,
                        is_at_zero: false,
                    };
                    match is_v6 {
                        false => slots.push(Slot::v4(keys, time_ns, 60, &v6.to_v4())),
                        true => slots.extend(Slot::v6(keys, time_ns, 60, &v6)),
                    }
                    if uses && slots.len() == sifted + SIFTED {
                        sifted += detector.sift(&mut slots[sifted..]);
                        known += slots.len() - sifted;
                        slots.truncate(sifted);
                    }
                    if slots.len() >= SLOTS {
                        detector.process(&slots);
                        slots.clear();
                        sifted = 0;
                    }
                }
            }
            detector.process(&slots);
            slots.clear();
            sifted = 0;
        }
        detector.finish();
        let mut reports: Vec<_> = detector.take_reports().collect();
        reports.sort_unstable_by_key(|report| format!("{report:?}"));
        (detector.common.counts, reports, known)
    }

    #[test]
    fn packets_that_are_known_would_have_changed_nothing() {
        // Few flows; many, all of which have a place; and more than the table holds.
        for (table_bytes, ports) in [(None, 50), (None, 60_000), (Some(1600 << 20), 50), (Some(1600 << 20), 60_000)] {
            for is_v6 in [false, true] {
                let name = format!("{table_bytes:?}, {ports} ports, IPv6: {is_v6}");
                let (counts, reports, known) = play(table_bytes, ports, is_v6, 12, true);
                assert!(known > 0, "{name}: none was known");
                let evicts = table_bytes.is_some() && ports > 1000;
                assert_eq!(counts.evicted_flows > 0, evicts, "{name}");
                assert_eq!((counts, reports, 0), play(table_bytes, ports, is_v6, 12, false), "{name}");
            }
        }
    }
}
