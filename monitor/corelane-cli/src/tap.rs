//! What lies between a capture and its analysis: a filter, and a copy of what passes it.

mod share;

use crate::output::{Condition, Output, OutputError, Stream, Units};
use corelane_monitor::Steps;
use corelane_net::capture::filter::Filter;
use corelane_net::capture::write::PcapngWriter;
use corelane_net::capture::{LinkType, Record};
use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use share::{MOST_WAITING, Share};

/// The filter and the copy of a run's records.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    pub(crate) filter: Option<Filter>,
    pub(crate) copy: Option<CopyEnd>,
    /// The clock of an analysis that goes on, as the copy tells at its end how far it was.
    pub(crate) steps: Option<Steps>,
}

impl Tap {
    /// Whether it changes or copies anything.
    pub(crate) fn is_needed(&self) -> bool {
        self.filter.is_some() || self.copy.is_some()
    }

    /// Empties the file of the copy, before its first record.
    pub(crate) fn begin(&self) -> Result<(), OutputError> {
        match &self.copy {
            Some(CopyEnd::Own(copy)) => copy.stream.iter().try_for_each(|stream| stream.output().begin()),
            _ => Ok(()),
        }
    }

    /// The record as it is analysed; `None` if the filter drops it.
    #[inline]
    pub(crate) fn take<'a>(&mut self, record: Record<'a>) -> Option<Record<'a>> {
        if self.filter.as_ref().is_some_and(|filter| !filter.accepts(record.data, record.wire_len)) {
            return None;
        }
        if let Some(steps) = &mut self.steps {
            steps.packet(record.time_ns);
        }
        if let Some(copy) = &mut self.copy {
            copy.take(&record);
        }
        Some(record)
    }

    /// No record before this time follows.
    pub(crate) fn pass(&mut self, time_ns: u64) {
        if let Some(steps) = &mut self.steps {
            steps.pass(time_ns);
        }
        if let Some(CopyEnd::Shared(share)) = &mut self.copy {
            share.pass(time_ns);
        }
    }

    /// Waits until the copy can take records, at most for so long; says whether it can. It cannot where this ring is
    /// far ahead of the others that share it.
    pub(crate) fn wait_for_room(&self, most: Duration) -> bool {
        match &self.copy {
            Some(CopyEnd::Shared(share)) => share.wait_for_room(most),
            Some(CopyEnd::Own(_)) | None => true,
        }
    }

    /// The time at which the current step began, if there are steps.
    pub(crate) fn begun_ns(&self) -> Option<u64> {
        self.steps.map(|steps| steps.begun_ns())
    }

    /// No more records are at hand: those that were copied may be wanted.
    pub(crate) fn rest(&mut self, reopens: usize) {
        let begun_ns = self.begun_ns();
        if let Some(copy) = &mut self.copy {
            copy.rest(reopens, begun_ns);
        }
    }

    /// Ends the copy, with the packets that were received and dropped, if that is known.
    pub(crate) fn finish(&mut self, counts: Option<(u64, u64)>) {
        self.steps.iter_mut().for_each(Steps::finish);
        let begun_ns = self.begun_ns();
        if let Some(copy) = &mut self.copy {
            copy.finish(begun_ns, counts);
        }
    }
}

/// Where a tap copies to.
#[derive(Debug)]
pub(crate) enum CopyEnd {
    Own(Box<Copy>),
    /// One of several rings that share a copy.
    Shared(Share),
}

impl CopyEnd {
    pub(crate) fn own(copy: Copy) -> Self {
        CopyEnd::Own(Box::new(copy))
    }

    /// The ends for so many rings.
    pub(crate) fn shared(copy: Copy, rings: usize) -> Vec<Self> {
        Share::all(copy, rings, MOST_WAITING).into_iter().map(CopyEnd::Shared).collect()
    }

    /// How the file is, with the number of lost records.
    pub(crate) fn condition(&self) -> Condition {
        match self {
            CopyEnd::Own(copy) => copy.condition(),
            CopyEnd::Shared(share) => share.condition(),
        }
    }

    #[inline]
    fn take(&mut self, record: &Record<'_>) {
        match self {
            CopyEnd::Own(copy) => copy.take(record),
            CopyEnd::Shared(share) => share.take(record),
        }
    }

    fn rest(&mut self, reopens: usize, begun_ns: Option<u64>) {
        match self {
            CopyEnd::Own(copy) => copy.rest(reopens, begun_ns),
            CopyEnd::Shared(share) => share.rest(reopens),
        }
    }

    fn finish(&mut self, begun_ns: Option<u64>, counts: Option<(u64, u64)>) {
        match self {
            CopyEnd::Own(copy) => copy.finish(begun_ns, counts),
            CopyEnd::Shared(share) => share.finish(begun_ns.unwrap_or(0), counts.unwrap_or_default()),
        }
    }
}

/// What precedes the seed of the run in the comment of its copy.
const SEED: &str = "corelane monitor --seed ";

/// The seed of the run that made a copy with this comment.
pub(crate) fn seed_in(comment: &str) -> Option<u64> {
    comment.strip_prefix(SEED)?.parse().ok()
}

/// Bytes of packets that are handed on at a time, so that few are lost together on a full disk.
const TOGETHER: usize = 256 << 10;

/// A copy of what is analysed, as pcapng. It outlives full disks, as an enduring [`Stream`] does.
#[derive(Debug)]
pub(crate) struct Copy {
    /// `None` before the first packet, if the file's link type is not known before.
    writer: Option<PcapngWriter<Stream>>,
    stream: Option<Stream>,
    snaplen: u32,
    interface: Option<String>,
    seed: u64,
    /// The link type that the file's header has last.
    link: Option<LinkType>,
    reopens: usize,
    /// Packets and bytes since the last time that all were handed on.
    packets: u64,
    bytes: usize,
    /// How many packets are in each record of the stream that is not written yet.
    pending: VecDeque<u64>,
    /// The stream's records that were dropped.
    dropped: u64,
    lost: u64,
    condition: Condition,
}

impl Copy {
    /// A copy of packets from files, with the most bytes to keep of each.
    pub(crate) fn to(output: Output, snaplen: u32) -> Self {
        Copy {
            writer: None,
            stream: Some(output.into_stream().enduring(Units::Records)),
            snaplen,
            interface: None,
            seed: 0,
            link: None,
            reopens: 0,
            packets: 0,
            bytes: 0,
            pending: VecDeque::new(),
            dropped: 0,
            lost: 0,
            condition: Condition::default(),
        }
    }

    /// A copy of packets from an interface whose frames have this link type.
    pub(crate) fn of_interface(output: Output, snaplen: u32, interface: String, link: LinkType, seed: u64) -> Self {
        let mut copy = Copy { interface: Some(interface), seed, ..Copy::to(output, snaplen) };
        copy.begin(link);
        copy.hand_on();
        copy
    }

    /// The seed of the run, before the first packet.
    pub(crate) fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// How the file is, with the number of lost packets.
    pub(crate) fn condition(&self) -> Condition {
        Condition { dropped: self.lost, ..self.condition.clone() }
    }

    fn take(&mut self, record: &Record<'_>) {
        self.begin(record.link);
        let name = self.interface.as_deref();
        let Some(writer) = &mut self.writer else { return self.lost += 1 };
        let written = writer
            .interface(record.link, self.snaplen, name)
            .and_then(|interface| writer.write(interface, record.time_ns, record.wire_len, record.data));
        if written.is_err() {
            // A record that the format cannot hold.
            return self.lost += 1;
        }
        if self.link != Some(record.link) {
            self.link = Some(record.link);
            let header = writer.header();
            writer.get_mut().begin_files_with(header);
        }
        self.packets += 1;
        self.bytes += record.data.len();
        if self.bytes >= TOGETHER {
            self.hand_on();
        }
    }

    /// Begins the file, if it is not begun.
    #[inline]
    fn begin(&mut self, link: LinkType) {
        let Some(stream) = self.stream.take() else { return };
        let (name, comment) = (self.interface.as_deref(), format!("{SEED}{}", self.seed));
        self.writer = PcapngWriter::commented(stream, link, self.snaplen, name, &comment).ok();
        self.link = Some(link);
        if let Some(writer) = &mut self.writer {
            let header = writer.header();
            writer.get_mut().begin_files_with(header);
        }
    }

    /// Gives the stream all packets so far, as one record of it, which is written or lost as a whole.
    fn hand_on(&mut self) {
        let Some(writer) = &mut self.writer else { return };
        // A stream takes all, and says in its condition what it has lost.
        let _ = writer.flush();
        let stream = writer.get_mut();
        if stream.records().1 {
            self.pending.push_back(mem::take(&mut self.packets));
            self.bytes = 0;
        }
        stream.put(&[]);
        self.count();
    }

    /// Finds out what became of the stream's records: the oldest ones are written, the newest ones dropped.
    fn count(&mut self) {
        let Some(writer) = &self.writer else { return };
        self.condition = writer.get_ref().condition();
        while self.dropped < self.condition.dropped {
            self.dropped += 1;
            self.lost += self.pending.pop_back().unwrap_or(0);
        }
        let (waiting, _) = writer.get_ref().records();
        self.pending.drain(..self.pending.len().saturating_sub(waiting));
    }

    fn rest(&mut self, reopens: usize, begun_ns: Option<u64>) {
        self.hand_on();
        if reopens != self.reopens {
            self.reopens = reopens;
            self.end(begun_ns, None);
            if let Some(writer) = &mut self.writer {
                writer.get_mut().reopen();
            }
            self.count();
        }
    }

    /// Writes what ends a file.
    fn end(&mut self, begun_ns: Option<u64>, counts: Option<(u64, u64)>) {
        self.hand_on();
        if let Some(writer) = &mut self.writer {
            // Errors are the stream's, see above.
            let _ = writer.finish(begun_ns, counts.map(|(received, _)| received), counts.map(|(_, dropped)| dropped));
            self.hand_on();
        }
    }

    /// Ends the file. What cannot be written now is lost.
    fn finish(&mut self, begun_ns: Option<u64>, counts: Option<(u64, u64)>) {
        // Without any packet as well it is a capture.
        self.begin(LinkType::ETHERNET);
        self.end(begun_ns, counts);
        if let Some(writer) = &mut self.writer {
            writer.get_mut().flush_now();
        }
        self.count();
        self.lost += self.pending.drain(..).sum::<u64>();
    }
}
