//! An application stage: all state of the partitions that it owns, the scan detector's among it.
//!
//! A packet goes through the scan detector's tables in batches, as in [`analyzer`](crate::analyzer), and through the
//! TCP/IP stack, the identifier and the parsers to completion. At the end of a batch what was found is a [`Harvest`].

use super::Inspection;
use super::item::{Chunk, Frame, Item};
use super::lines::{Key, Lines, Spares};
use super::records::Records;
use super::talk::Talk;
use crate::analyzer::SubAnalyzer;
use crate::analyzer::kept::Trials;
use crate::continuous::{Continuous, Detector, SIFTED, SLOTS};
use crate::dispatch::Sink;
use crate::facts::{Gatherer, Lists, StageFacts};
use crate::findings::Findings;
use crate::hash::HashKeys;
use crate::lending::Lent;
use crate::partial_result::PartialResult;
use crate::room;
use crate::run::Run;
use crate::settings::Settings;
use crate::slot::{PARTITIONS, Slot};
use crate::source::LINE;
use crate::state_report::{StateReport, TOGETHER};
use crate::steps::{STEP_NS, begin_of, ends_with, step_of};
use crate::talkers::Talkers;
use crate::through::{Passages, Through, hosts};
use corelane::prefetch_read;
use corelane_net::capture::LinkType;
use corelane_net::conversation::{Partition, Side};
use corelane_net::decode::{
    Datagram, NoPacket, Question, TCP, Transport, Vlans, arp_at, datagram_at, question, transport,
};
use std::vec::Drain;

/// What a stage has found, for the output stage.
#[derive(Debug, Default)]
pub(crate) struct Harvest {
    pub(super) lines: Lines,
    pub(super) reports: Vec<StateReport>,
    /// The tunnels of hosts, before the failures of their steps count.
    pub(super) through: Vec<Through>,
    /// All numbers so far, for each mark that asked for them.
    pub(super) snapshots: Vec<Numbers>,
    /// The stage finds nothing more that comes before this.
    pub(super) passed: Key,
    /// All its reports that come before this were given out: within a mark they come first.
    pub(super) reported: Key,
}

impl Harvest {
    /// Gives `out` reports, in harvests that have nothing else.
    pub(super) fn send(mut reports: Drain<'_, StateReport>, out: &mut dyn FnMut(Harvest)) {
        while reports.len() > 0 {
            out(Harvest { reports: reports.by_ref().take(TOGETHER).collect(), ..Harvest::default() });
        }
    }
}

/// What a stage has counted.
pub(crate) type Counts = (PartialResult, Findings);

/// All that a stage knows, at a mark that asks for it and at the end.
#[derive(Debug)]
pub(crate) struct Numbers {
    pub(super) counts: Counts,
    /// The facts for people since the last time, if they are gathered.
    pub(super) facts: Option<StageFacts>,
    /// All attempts and probes of a capture that is over, if facts are gathered.
    pub(super) trials: Option<Trials>,
}

impl Numbers {
    /// Those of a stage that looks at headers alone.
    pub(super) fn of_headers(result: PartialResult) -> Self {
        Numbers { counts: (result, Findings::default()), facts: None, trials: None }
    }
}

/// The scan detector of a stage.
enum Scanner {
    /// For captures that end.
    Whole(Box<SubAnalyzer>),
    /// For time that passes in steps.
    Stepped(Box<Detector>),
}

impl Scanner {
    /// Keeps the packets that say something new, and returns the number of their slots.
    fn sift(&mut self, slots: &mut [Slot]) -> usize {
        match self {
            Scanner::Whole(_) => slots.len(),
            Scanner::Stepped(detector) => detector.sift(slots),
        }
    }

    fn process(&mut self, slots: &[Slot]) {
        match self {
            Scanner::Whole(analyzer) => analyzer.process(slots),
            Scanner::Stepped(detector) => detector.process(slots),
        }
    }

    fn has_reports(&self) -> bool {
        match self {
            Scanner::Whole(analyzer) => !analyzer.reports().is_empty(),
            Scanner::Stepped(detector) => detector.has_reports(),
        }
    }

    fn take_reports(&mut self) -> Drain<'_, StateReport> {
        match self {
            Scanner::Whole(analyzer) => analyzer.take_reports(),
            Scanner::Stepped(detector) => detector.take_reports(),
        }
    }

    fn take_trials(&mut self) -> Option<Trials> {
        match self {
            Scanner::Whole(analyzer) => analyzer.take_trials(),
            Scanner::Stepped(_) => None,
        }
    }

    fn finish(&mut self, max_time: u64, out: &mut dyn FnMut(Harvest)) -> PartialResult {
        match self {
            Scanner::Whole(analyzer) => analyzer.finish_sending(max_time, &mut |reports| Harvest::send(reports, out)),
            Scanner::Stepped(detector) => {
                detector.finish();
                detector.result()
            }
        }
    }
}

/// Slots of one address family that wait to be processed together.
struct Waiting {
    slots: Box<[Slot; SLOTS + SIFTED]>,
    len: usize,
    /// As many say something new.
    sifted: usize,
}

impl Waiting {
    fn new() -> Self {
        Waiting { slots: Box::new([Slot::default(); SLOTS + SIFTED]), len: 0, sifted: 0 }
    }

    /// Adds those of a packet.
    #[inline(always)]
    fn push<const N: usize>(&mut self, scans: &mut Scanner, packet: [Slot; N]) {
        *self.slots[self.len..].first_chunk_mut().expect("a packet fits, as the buffer is sifted in time") = packet;
        self.len += N;
        if self.len >= self.sifted + SIFTED {
            self.sift(scans);
        }
    }

    #[inline(never)]
    fn sift(&mut self, scans: &mut Scanner) {
        self.sifted += scans.sift(&mut self.slots[self.sifted..self.len]);
        self.len = self.sifted;
        if self.len >= SLOTS {
            self.process(scans);
        }
    }

    fn process(&mut self, scans: &mut Scanner) {
        scans.process(&self.slots[..self.len]);
        (self.len, self.sifted) = (0, 0);
    }
}

/// One partition, of which there is nothing before its first packet.
struct Cell {
    partition: Partition<Talk>,
    named: u64,
    /// The most that its conversations, and its fragments, had reserved at a mark.
    most_bytes: [usize; 2],
}

impl Cell {
    fn measure(&mut self) {
        let bytes = [self.partition.conversations().reserved_bytes(), self.partition.fragments().reserved_bytes()];
        self.most_bytes.iter_mut().zip(bytes).for_each(|(most, bytes)| *most = bytes.max(*most));
    }

    /// The partition, and where all goes that is found in it.
    #[inline]
    fn split<'a>(
        &'a mut self,
        partition: u8,
        key: Key,
        inspection: &Inspection,
        lines: &'a mut Lines,
        findings: &'a mut Findings,
        facts: &'a mut Option<Box<Gatherer>>,
    ) -> (&'a mut Partition<Talk>, Records<'a>) {
        let facts = facts.as_deref_mut().map(|facts| facts.of(partition));
        let Inspection { events: wanted, attempts, .. } = *inspection;
        let named = &mut self.named;
        let records = Records { key, partition, named, wanted, attempts, lines, findings, facts, out: None };
        (&mut self.partition, records)
    }
}

/// Bytes of lines after which they are taken, though there is more to do: between two packets, as one may bring about a
/// hundred times its size.
pub(super) const ENOUGH: usize = 32 << 10;
/// The step of what happens when all steps are over.
const LAST: u64 = u64::MAX >> 8;

pub(super) struct Stage<'a> {
    inspection: Inspection,
    spares: &'a Spares,
    keys: HashKeys,
    /// TCP packets with a whole header.
    tcp: u64,
    /// Packets with a header that is wrong or cut behind the addresses.
    malformed: u64,
    v4: Waiting,
    v6: Waiting,
    scans: Scanner,
    passages: Passages,
    cells: Vec<Option<Box<Cell>>>,
    /// Where fragments are put together.
    buffer: Vec<u8>,
    chunk: Option<Chunk>,
    /// The number of the last mark.
    marked: u64,
    /// The times of the current step, or all: how much has passed when a packet comes is within them.
    times: (u64, u64),
    /// All steps before this are over, and what was due in them is done.
    step: u64,
    passed: Key,
    /// That came from the Dispatcher since the last harvest.
    has_passed: bool,
    lines: Lines,
    snapshots: Vec<Numbers>,
    findings: Findings,
    /// If facts are gathered.
    facts: Option<Box<Gatherer>>,
}

/// Packets for the scan detector alone, which were counted.
impl Sink for Stage<'_> {
    #[inline(always)]
    fn slots<const N: usize>(&mut self, mut packet: [Slot; N]) {
        packet[0] = packet[0].at(self.now(packet[0].time_ns()));
        let waiting = if N == 1 { &mut self.v4 } else { &mut self.v6 };
        waiting.push(&mut self.scans, packet);
    }
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        settings: &Settings,
        continuous: Option<&Continuous>,
        inspection: &Inspection,
        run: &Run,
        spares: &'a Spares,
    ) -> Self {
        let gathers = inspection.facts && inspection.payload;
        let scans = match continuous {
            None => {
                let mut analyzer = SubAnalyzer::new(settings, run);
                if gathers {
                    analyzer.keep_trials();
                }
                Scanner::Whole(Box::new(analyzer))
            }
            Some(continuous) => Scanner::Stepped(Box::new(Detector::new(settings, continuous, run))),
        };
        let mut inspection = *inspection;
        if !inspection.payload {
            inspection.fragments = room::fragments(settings);
        }
        Stage {
            inspection,
            spares,
            keys: run.keys,
            tcp: 0,
            malformed: 0,
            v4: Waiting::new(),
            v6: Waiting::new(),
            scans,
            passages: Passages::new(settings, continuous.is_some(), run.keys),
            cells: (0..PARTITIONS).map(|_| None).collect(),
            buffer: Vec::new(),
            chunk: None,
            marked: 0,
            times: (0, u64::MAX),
            step: 0,
            passed: Key::default(),
            has_passed: false,
            lines: Lines::default(),
            snapshots: Vec::new(),
            findings: Findings::default(),
            facts: gathers.then(|| {
                let lists = if continuous.is_none() { Lists::PAGE } else { Lists::STEP };
                Box::new(Gatherer::new(lists, run.keys))
            }),
        }
    }

    /// Follows the orders, and leaves none. Gives out what was found whenever there is [`ENOUGH`].
    pub(super) fn follow(&mut self, items: &mut Vec<Item>, out: &mut dyn FnMut(Harvest)) {
        self.fetch(items);
        for item in items.drain(..) {
            match item {
                Item::Packet { time_ns, at, len, wire_len, link, behind, network, outermost, partition } => {
                    let Some(chunk) = self.chunk.take() else { continue };
                    let data = &chunk[at.get()..at.get() + len as usize];
                    let link = LinkType(link.into());
                    let frame = Frame { time_ns, wire_len, link, data, network, outermost, partition };
                    self.packet(self.marked + u64::from(behind), &frame);
                    self.chunk = Some(chunk);
                }
                Item::Chunk(chunk) => self.chunk = Some(chunk),
                Item::Mark { number, time_ns, snapshot } => self.mark(number, time_ns, snapshot, out),
                Item::Lent(lent) => self.lend(&lent),
                Item::Passed { number } => {
                    self.chunk = None;
                    self.pass(number);
                }
            }
            if self.waiting() >= ENOUGH {
                self.send(out);
            }
        }
    }

    /// Asks for the headers of all packets. They are in the Dispatcher's cache, and would be waited for one by one.
    fn fetch(&self, items: &[Item]) {
        let mut bytes = self.chunk.as_deref();
        for item in items {
            match item {
                Item::Chunk(chunk) => bytes = Some(chunk),
                Item::Packet { at, network, .. } => {
                    let header = at.get() + usize::from(*network);
                    for line in [header, header + LINE] {
                        if let Some(byte) = bytes.and_then(|bytes| bytes.get(line)) {
                            prefetch_read(byte);
                        }
                    }
                }
                Item::Mark { .. } | Item::Lent(_) | Item::Passed { .. } => {}
            }
        }
    }

    /// How much time has passed when a packet of this time comes.
    #[inline(always)]
    fn now(&self, time_ns: u64) -> u64 {
        time_ns.clamp(self.times.0, self.times.1)
    }

    /// A packet of a partition that is this stage's. It is not passed before something follows: until then its chunk is
    /// held.
    #[inline]
    pub(super) fn packet(&mut self, number: u64, frame: &Frame<'_>) {
        self.passed = Key::packet(number, 0);
        let Frame { network, outermost, .. } = *frame;
        let Ok(mut datagram) = datagram_at(frame.data, network, frame.wire_len) else {
            self.without_ip(frame);
            return;
        };
        if outermost != network {
            datagram.outermost = frame.data.get(usize::from(outermost)..).unwrap_or_default();
            let hosts = hosts(transport(&datagram), || question(&datagram));
            self.through(frame, &datagram, hosts);
        }
        datagram.vlans = Vlans::of(frame.link, frame.data, outermost);
        let now_ns = self.now(frame.time_ns);
        if let Some(facts) = &mut self.facts {
            facts.packet(now_ns, datagram.protocol, frame.wire_len);
            facts.wraps(frame.data, outermost, network);
        }
        if datagram.fragment.is_some() {
            return self.fragment(number, frame, &datagram);
        }
        self.detect(frame.time_ns, frame.wire_len, datagram.is_v4, transport(&datagram), || question(&datagram));
        if self.inspection.payload {
            self.converse(number, frame, frame.wire_len, 1, &datagram);
        }
    }

    /// A fragment. If it has a TCP or UDP header, the scan detector sees that at once, as in captures without the other
    /// fragments; else when the datagram is whole.
    #[cold]
    fn fragment(&mut self, number: u64, frame: &Frame<'_>, datagram: &Datagram<'_>) {
        let found = transport(datagram);
        if found != Err(NoPacket::Malformed) {
            self.detect(frame.time_ns, frame.wire_len, datagram.is_v4, found, || question(datagram));
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let now_ns = self.now(frame.time_ns);
        let partition = &mut self.cell(frame.partition).partition;
        if let Some(whole) = partition.fragment(now_ns, frame.wire_len, datagram, &mut buffer) {
            if let Some(found) = whole.transport() {
                let question = whole.question();
                self.through(frame, datagram, hosts(found, || question));
                self.detect(frame.time_ns, whole.wire_len, datagram.is_v4, found, || question);
            }
            if self.inspection.payload {
                self.converse(number, frame, whole.wire_len, whole.frames, &whole.datagram);
            }
        }
        self.buffer = buffer;
    }

    /// Notes through which tunnels a packet came, if it did.
    fn through(&mut self, frame: &Frame<'_>, datagram: &Datagram<'_>, hosts: Option<(u128, u128)>) {
        if let Some((source, destination)) = hosts
            && !datagram.outermost.is_empty()
        {
            let now_ns = self.now(frame.time_ns);
            self.passages.see(frame.partition, (source, destination, datagram.is_v4), now_ns, datagram.outermost);
        }
    }

    /// A frame of ARP that asks or answers, or one whose IP header is wrong behind the addresses.
    #[cold]
    fn without_ip(&mut self, frame: &Frame<'_>) {
        match arp_at(frame.data, frame.network) {
            Some(question) => self.slots([Slot::question_v4(&self.keys, frame.time_ns, frame.wire_len, &question)]),
            None => self.malformed += 1,
        }
    }

    #[inline]
    fn cell(&mut self, partition: u8) -> &mut Cell {
        let Inspection { conversations, fragments, .. } = &self.inspection;
        self.cells[usize::from(partition)].get_or_insert_with(|| {
            Box::new(Cell { partition: Partition::new(conversations, fragments), named: 0, most_bytes: [0; 2] })
        })
    }

    /// A datagram for its conversation.
    #[inline]
    fn converse(&mut self, number: u64, frame: &Frame<'_>, wire_len: u32, frames: u32, datagram: &Datagram<'_>) {
        self.cell(frame.partition);
        let now_ns = self.now(frame.time_ns);
        let Some(cell) = &mut self.cells[usize::from(frame.partition)] else { return };
        let key = Key::packet(number, frame.partition);
        let (lines, findings, facts) = (&mut self.lines, &mut self.findings, &mut self.facts);
        let (state, mut records) = cell.split(frame.partition, key, &self.inspection, lines, findings, facts);
        state.whole([now_ns, frame.time_ns], wire_len, frames, datagram, &mut records);
    }

    /// Counts a packet, and gives the scan detector what it needs of it.
    #[inline]
    fn detect(
        &mut self,
        time_ns: u64,
        wire_len: u32,
        is_v4: bool,
        found: Result<Transport<u128>, NoPacket>,
        question: impl FnOnce() -> Option<Question<u128>>,
    ) {
        let packet = match found {
            Ok(packet) => packet,
            Err(NoPacket::Other) => {
                match question() {
                    Some(question) if is_v4 => {
                        self.slots([Slot::question_v4(&self.keys, time_ns, wire_len, &question.to_v4())]);
                    }
                    Some(question) => self.slots(Slot::question_v6(&self.keys, time_ns, wire_len, &question)),
                    None => {}
                }
                return;
            }
            Err(NoPacket::Malformed) => {
                self.malformed += 1;
                return;
            }
        };
        self.tcp += u64::from(packet.protocol == TCP);
        if is_v4 {
            self.slots([Slot::v4(&self.keys, time_ns, wire_len, &packet.to_v4())]);
        } else {
            self.slots(Slot::v6(&self.keys, time_ns, wire_len, &packet));
        }
    }

    /// Time passes, before the packet of this number. What ends then may be all that there is, so lines are given out
    /// whenever there are [`ENOUGH`].
    pub(super) fn mark(&mut self, number: u64, time_ns: u64, snapshot: bool, out: &mut dyn FnMut(Harvest)) {
        self.send_snapshots(out);
        self.marked = number;
        self.has_passed = true;
        if matches!(self.scans, Scanner::Whole(_)) {
            self.passed = Key::mark(number, 0, 0);
            self.each(number, 0, self.passed, out, |partition, records| partition.expire(time_ns, records));
            // That the mark is over, others wait for.
            self.passed = Key::packet(number, 0);
            return;
        }
        self.end_steps(number, time_ns, out);
        self.passed = Key::mark(number, step_of(time_ns), 0);
        if snapshot {
            let (counts, facts) = (self.counts(), self.gather(time_ns));
            self.snapshots.push(Numbers { counts, facts, trials: None });
        }
    }

    /// Partitions have this room from now on; a step has just begun.
    pub(super) fn lend(&mut self, lent: &Lent) {
        if let Scanner::Stepped(detector) = &mut self.scans {
            detector.lend(lent);
        }
    }

    /// All steps before this time are over: what is due in them expires, step by step.
    fn end_steps(&mut self, number: u64, begun_ns: u64, out: &mut dyn FnMut(Harvest)) {
        self.v4.process(&mut self.scans);
        self.v6.process(&mut self.scans);
        let Scanner::Stepped(detector) = &mut self.scans else { return };
        detector.pass(begun_ns);
        self.times = (begun_ns, begun_ns.saturating_add(STEP_NS - 1));
        out(Harvest { through: self.passages.take(), ..Harvest::default() });
        Harvest::send(self.scans.take_reports(), out);
        let reported = Key::mark(number, step_of(begun_ns), 0);
        // At every mark and after all that expires, not when other partitions of this stage have something due.
        self.measure();
        while let Some(step) = self.next_due().filter(|&step| begin_of(step + 1) <= begun_ns) {
            let end_ns = begin_of(step + 1);
            self.each(number, step, reported, out, |partition, records| {
                // What is done may leave something else that is due.
                while let Some(due) = partition.next_due().filter(|&due| due <= end_ns) {
                    partition.expire(end_ns, records);
                    if partition.next_due() == Some(due) {
                        break;
                    }
                }
            });
            self.measure();
            self.step = step + 1;
        }
        self.step = self.step.max(step_of(begun_ns));
    }

    /// Takes the facts of the time before this, those of conversations that go on among them.
    fn gather(&mut self, time_ns: u64) -> Option<StageFacts> {
        let facts = self.facts.as_deref_mut()?;
        let since_ns = facts.since_ns();
        for (number, cell) in (0..=u8::MAX).zip(&mut self.cells) {
            let Some(cell) = cell else { continue };
            let mut gather = facts.of(number);
            cell.partition.active_since(since_ns, |conversation, talk| {
                let (protocol, client) =
                    talk.as_ref().map_or((None, Side::Originator), |talk| (talk.protocol(), talk.client()));
                let kept = (talk.is_some(), talk.and_then(|talk| talk.kept.as_deref_mut()));
                gather.count(conversation, protocol, client, kept, false);
            });
        }
        Some(facts.take_before(time_ns))
    }

    /// The first step, of those that are not over, at whose end something expires.
    fn next_due(&self) -> Option<u64> {
        let due = self.cells.iter().flatten().filter_map(|cell| cell.partition.next_due());
        due.map(ends_with).filter(|&step| step >= self.step).min()
    }

    /// The next packet has this number at least.
    pub(super) fn pass(&mut self, number: u64) {
        self.passed = self.passed.max(Key::mark(number, 0, 0));
        self.has_passed = true;
    }

    /// Does something with each partition at a mark. Reports were given out up to `reported`.
    fn each(
        &mut self,
        number: u64,
        step: u64,
        reported: Key,
        out: &mut dyn FnMut(Harvest),
        mut act: impl FnMut(&mut Partition<Talk>, &mut Records<'_>),
    ) {
        let spares = self.spares;
        for (partition, cell) in (0..=u8::MAX).zip(&mut self.cells) {
            let Some(cell) = cell else { continue };
            cell.measure();
            let key = Key::mark(number, step, partition);
            let (lines, findings, facts) = (&mut self.lines, &mut self.findings, &mut self.facts);
            let (state, mut records) = cell.split(partition, key, &self.inspection, lines, findings, facts);
            let out = &mut |lines: &mut Lines| {
                let lines = std::mem::replace(lines, spares.take());
                out(Harvest { lines, passed: key, reported, ..Harvest::default() });
            };
            records.out = Some(out);
            act(state, &mut records);
        }
    }

    /// Measures the memory of all partitions.
    fn measure(&mut self) {
        self.cells.iter_mut().flatten().for_each(|cell| cell.measure());
    }

    /// Bytes of lines that wait to be taken.
    pub(super) fn waiting(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is anything to be taken that others wait for.
    pub(super) fn has_news(&self) -> bool {
        self.has_passed || !self.lines.is_empty() || self.scans.has_reports()
    }

    /// Gives out what was found so far; last of all how far the stage has come.
    pub(super) fn send(&mut self, out: &mut dyn FnMut(Harvest)) {
        self.v4.process(&mut self.scans);
        self.v6.process(&mut self.scans);
        Harvest::send(self.scans.take_reports(), out);
        self.has_passed = false;
        // Lines that are empty keep their memory here.
        let lines = match self.lines.is_empty() {
            true => Lines::default(),
            false => std::mem::replace(&mut self.lines, self.spares.take()),
        };
        let snapshots = std::mem::take(&mut self.snapshots);
        let through = self.passages.take();
        out(Harvest { lines, through, snapshots, passed: self.passed, ..Harvest::default() });
    }

    /// Gives out all numbers that were asked for, before it says that it has passed where they were.
    fn send_snapshots(&mut self, out: &mut dyn FnMut(Harvest)) {
        if !self.snapshots.is_empty() {
            self.send(out);
        }
    }

    /// The capture is over, after so many packets: gives out all that is left to be found.
    pub(super) fn finish(&mut self, packets: u64, max_time: u64, out: &mut dyn FnMut(Harvest)) -> Numbers {
        self.v4.process(&mut self.scans);
        self.v6.process(&mut self.scans);
        self.send_snapshots(out);
        self.each(packets + 1, LAST, Key::default(), out, |partition, records| partition.finish(records));
        self.passed = Key::END;
        let mut result = self.scans.finish(max_time, out);
        (result.tcp, result.malformed) = (self.tcp, self.malformed);
        let (facts, trials) = (self.gather(max_time), self.scans.take_trials());
        self.send(out);
        Numbers { counts: (result, self.findings()), facts, trials }
    }

    /// The numbers so far, where time passes in steps.
    fn counts(&self) -> Counts {
        let mut result = match &self.scans {
            Scanner::Stepped(detector) => detector.result(),
            Scanner::Whole(_) => PartialResult::new(Talkers::new(0, self.keys)),
        };
        (result.tcp, result.malformed) = (self.tcp, self.malformed);
        (result, self.findings())
    }

    fn findings(&self) -> Findings {
        let mut findings = self.findings.clone();
        for cell in self.cells.iter().flatten() {
            let Cell { partition, most_bytes, .. } = &**cell;
            findings.conversations.add(partition.conversations().counts());
            findings.fragments.add(partition.fragments().counts());
            findings.others += partition.others();
            findings.malformed += partition.malformed();
            findings.conversation_bytes += most_bytes[0] as u64;
            findings.fragment_bytes += most_bytes[1] as u64;
        }
        findings
    }
}
