//! What lies between a capture and its analysis: a filter, and a copy of what passes it.

use crate::output::{Condition, Output, Stream, Units};
use corelane_monitor::Steps;
use corelane_net::capture::filter::Filter;
use corelane_net::capture::write::PcapngWriter;
use corelane_net::capture::{LinkType, Record};
use std::mem;

/// The filter and the copy of a run's records.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    pub(crate) filter: Option<Filter>,
    pub(crate) copy: Option<Copy>,
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
