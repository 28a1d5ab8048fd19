//! What lies between a capture and its analysis: a filter, and a copy of what passes it.

use crate::output::{Condition, Output, Stream, Units};
use corelane_monitor::{STEP_NS, Steps};
use corelane_net::capture::filter::Filter;
use corelane_net::capture::write::PcapngWriter;
use corelane_net::capture::{LinkType, Record};
use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The filter and the copy of a run's records.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    pub(crate) filter: Option<Filter>,
    pub(crate) copy: Option<CopyEnd>,
    /// The clock of an analysis that goes on: the copy has the times that the analysis sees.
    pub(crate) steps: Option<Steps>,
}

impl Tap {
    /// Whether it changes or copies anything.
    pub(crate) fn is_needed(&self) -> bool {
        self.filter.is_some() || self.copy.is_some()
    }

    /// The record as it is analysed; `None` if the filter drops it.
    #[inline]
    pub(crate) fn take<'a>(&mut self, mut record: Record<'a>) -> Option<Record<'a>> {
        if self.filter.as_ref().is_some_and(|filter| !filter.accepts(record.data, record.wire_len)) {
            return None;
        }
        if let Some(steps) = &mut self.steps {
            record.time_ns = steps.packet(record.time_ns);
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
        let waiting = (0..rings).map(|_| Waiting::default()).collect();
        let joint = Arc::new(Mutex::new(Joint { copy, waiting, counts: (0, 0) }));
        let share = |ring| Share { joint: Arc::clone(&joint), ring, gathered: Vec::new() };
        (0..rings).map(|ring| CopyEnd::Shared(share(ring))).collect()
    }

    /// How the file is, with the number of lost records.
    pub(crate) fn condition(&self) -> Condition {
        match self {
            CopyEnd::Own(copy) => copy.condition(),
            CopyEnd::Shared(share) => share.lock().copy.condition(),
        }
    }

    #[inline]
    fn take(&mut self, record: &Record<'_>) {
        match self {
            CopyEnd::Own(copy) => copy.take(record),
            CopyEnd::Shared(share) => share.gathered.push(Owned {
                time_ns: record.time_ns,
                wire_len: record.wire_len,
                link: record.link,
                data: record.data.into(),
            }),
        }
    }

    fn rest(&mut self, reopens: usize, begun_ns: Option<u64>) {
        match self {
            CopyEnd::Own(copy) => copy.rest(reopens, begun_ns),
            CopyEnd::Shared(share) => {
                let begun_ns = begun_ns.unwrap_or(0);
                share.pass(begun_ns);
                share.lock().copy.rest(reopens, Some(begun_ns));
            }
        }
    }

    fn finish(&mut self, begun_ns: Option<u64>, counts: Option<(u64, u64)>) {
        match self {
            CopyEnd::Own(copy) => copy.finish(begun_ns, counts),
            CopyEnd::Shared(share) => share.finish(begun_ns.unwrap_or(0), counts.unwrap_or_default()),
        }
    }
}

/// The end of one ring of a copy that several rings share. Their records wait until all have passed their step: the
/// file is in the order of steps, so that a replay, which has one clock, sees the same times.
#[derive(Debug)]
pub(crate) struct Share {
    joint: Arc<Mutex<Joint>>,
    ring: usize,
    /// Records since the last rest.
    gathered: Vec<Owned>,
}

#[derive(Debug)]
struct Joint {
    copy: Copy,
    waiting: Vec<Waiting>,
    /// Packets received and dropped, of the rings that have ended.
    counts: (u64, u64),
}

/// The records of one ring that wait for the other rings.
#[derive(Debug, Default)]
struct Waiting {
    records: VecDeque<Owned>,
    /// All its steps before this time are over.
    begun_ns: u64,
    is_over: bool,
}

#[derive(Debug)]
struct Owned {
    time_ns: u64,
    wire_len: u32,
    link: LinkType,
    data: Box<[u8]>,
}

impl Share {
    fn lock(&self) -> MutexGuard<'_, Joint> {
        self.joint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All steps of this ring before this time are over.
    fn pass(&mut self, begun_ns: u64) {
        let gathered = mem::take(&mut self.gathered);
        let mut joint = self.lock();
        let own = &mut joint.waiting[self.ring];
        own.records.extend(gathered);
        own.begun_ns = begun_ns;
        joint.write();
    }

    fn finish(&mut self, begun_ns: u64, (received, dropped): (u64, u64)) {
        self.pass(begun_ns);
        let mut joint = self.lock();
        joint.waiting[self.ring].is_over = true;
        joint.counts = (joint.counts.0 + received, joint.counts.1 + dropped);
        joint.write();
        if joint.waiting.iter().all(|ring| ring.is_over) {
            let end_ns = joint.waiting.iter().map(|ring| ring.begun_ns).max();
            let counts = joint.counts;
            joint.copy.finish(end_ns, Some(counts));
        }
    }
}

impl Joint {
    /// Writes the records of all steps that all rings have passed, step by step.
    fn write(&mut self) {
        let going_on = self.waiting.iter().filter(|ring| !ring.is_over);
        let over_ns = going_on.map(|ring| ring.begun_ns).min().unwrap_or(u64::MAX);
        let mut records = Vec::new();
        for ring in &mut self.waiting {
            let count = ring.records.iter().take_while(|record| record.time_ns < over_ns).count();
            records.extend(ring.records.drain(..count));
        }
        records.sort_by_key(|record| record.time_ns / STEP_NS);
        for Owned { time_ns, wire_len, link, data } in &records {
            self.copy.take(&Record { time_ns: *time_ns, wire_len: *wire_len, link: *link, data });
        }
    }
}

/// A copy of what is analysed, as pcapng. It outlives full disks, as an enduring [`Stream`] does.
#[derive(Debug)]
pub(crate) struct Copy {
    /// `None` before the first record, whose link type the file begins with, and after the end.
    writer: Option<PcapngWriter<Stream>>,
    stream: Option<Stream>,
    snaplen: u32,
    interface: Option<String>,
    reopens: usize,
    /// Records since the last time that all were written.
    waiting: u64,
    lost: u64,
    condition: Condition,
}

impl Copy {
    pub(crate) fn to(output: Output, snaplen: u32, interface: Option<String>) -> Self {
        let stream = output.into_stream().enduring(Units::Records);
        Copy {
            writer: None,
            stream: Some(stream),
            snaplen,
            interface,
            reopens: 0,
            waiting: 0,
            lost: 0,
            condition: Condition::default(),
        }
    }

    /// How the file is, with the number of lost records.
    pub(crate) fn condition(&self) -> Condition {
        Condition { dropped: self.lost, ..self.condition.clone() }
    }

    fn take(&mut self, record: &Record<'_>) {
        let link = record.link;
        if let Some(stream) = self.stream.take() {
            self.writer = self.begin(stream, link);
        }
        let name = self.interface.as_deref();
        let Some(writer) = &mut self.writer else { return self.lost += 1 };
        let written = writer
            .interface(link, self.snaplen, name)
            .and_then(|interface| writer.write(interface, record.time_ns, record.wire_len, record.data));
        match written {
            Ok(()) => self.waiting += 1,
            // A record that the format cannot hold.
            Err(_) => self.lost += 1,
        }
    }

    fn begin(&self, stream: Stream, link: LinkType) -> Option<PcapngWriter<Stream>> {
        PcapngWriter::new(stream, link, self.snaplen, self.interface.as_deref()).ok()
    }

    fn flush(&mut self) {
        let waiting = mem::take(&mut self.waiting);
        let Some(writer) = &mut self.writer else { return };
        let before = writer.get_ref().condition().dropped;
        // A stream takes all, and says in its condition what it has lost.
        let _ = writer.flush();
        writer.get_mut().put(&[]);
        self.condition = writer.get_ref().condition();
        if self.condition.dropped > before {
            self.lost += waiting;
        }
    }

    fn rest(&mut self, reopens: usize, begun_ns: Option<u64>) {
        if reopens != self.reopens {
            self.reopens = reopens;
            self.finish(begun_ns, None);
            if let Some(stream) = &mut self.stream {
                stream.reopen();
            }
        } else {
            self.flush();
        }
    }

    /// Ends the file; what is taken after this begins another one.
    fn finish(&mut self, begun_ns: Option<u64>, counts: Option<(u64, u64)>) {
        self.flush();
        if let Some(mut writer) = self.writer.take() {
            let _ = writer.finish(begun_ns, counts.map(|(received, _)| received), counts.map(|(_, dropped)| dropped));
            writer.get_mut().put(&[]);
            self.stream = Some(writer.into_inner());
        }
    }
}
