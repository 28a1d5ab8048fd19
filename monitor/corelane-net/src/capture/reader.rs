//! The reader: an input, a format, and the position in both.

use std::io::Read;
use std::path::Path;

use super::error::{OpenError, Part, Place, ReadError, Warning};
use super::input::Input;
use super::memory::Memory;
use super::pcap::{self, Pcap};
use super::pcapng::{self, PcapNg, Scout, Survey};
use super::record::Record;
use super::step::{Found, LONGEST, Step, Stop};

/// Records that one walk finds. Their headers are still in the first cache when their bytes are looked at.
const AT_ONCE: usize = 16;

/// Options for reading a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Reads and unpacks the whole input into memory before [`Reader::open`] returns.
    pub preload: bool,
}

impl Options {
    /// Sets [`Options::preload`].
    #[must_use]
    pub fn preload(mut self, preload: bool) -> Self {
        self.preload = preload;
        self
    }
}

/// Reads a capture, record by record.
///
/// ```
/// use corelane_net::capture::Reader;
/// # fn capture() -> Vec<u8> {
/// #     let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
/// #     bytes.extend([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 60, 0, 0, 0, 7, 8, 9]);
/// #     bytes
/// # }
/// let mut reader = Reader::from_bytes(capture())?;
/// let mut bytes = 0;
/// while reader.read(1024, |record| bytes += u64::from(record.wire_len))? > 0 {}
/// assert_eq!(bytes, 60);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    input: Input,
    format: Format,
    /// Bytes of the unpacked capture before the input's window.
    offset: u64,
    /// Records handed over.
    records: u64,
    last_time: u64,
    /// What the last walk has found.
    found: Vec<Found>,
    /// The bytes that the window needs before the next walk, and the part of a record or block that they belong to.
    owed: Option<(Part, usize)>,
    /// An error behind records that were handed over; the next call returns it.
    pending: Option<ReadError>,
    ended: bool,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

impl Reader {
    /// Opens a capture. The path `-` means the standard input. The content shows whether it is pcap or pcapng, and
    /// whether it is packed by gzip or zstd.
    pub fn open(input: &Path, options: &Options) -> Result<Self, OpenError> {
        Self::new(Input::open(input, options.preload)?)
    }

    /// Reads a capture that is in memory, packed or not.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::new(Input::from_bytes(bytes)?)
    }

    /// Reads a capture from any source, packed or not. `size` is the number of its bytes, if that is known: no more are
    /// read, and fewer are an error.
    pub fn from_read(
        source: impl Read + Send + 'static,
        size: Option<u64>,
        options: &Options,
    ) -> Result<Self, OpenError> {
        Self::new(Input::from_stream(Box::new(source), size, options.preload)?)
    }

    pub(super) fn new(mut input: Input) -> Result<Self, OpenError> {
        let (format, used) = recognise(&mut input)?;
        input.consume(used);
        let (offset, found) = (used as u64, Vec::with_capacity(AT_ONCE));
        Ok(Self { input, format, offset, records: 0, last_time: 0, found, owed: None, pending: None, ended: false })
    }

    /// Hands up to `max` records to `sink`, in the order of the file, and returns their number; 0 is the end.
    ///
    /// The number may be less than `max` before the end: records that are there do not wait for bytes that a pipe may
    /// bring later.
    ///
    /// # Errors
    ///
    /// A call that fails has handed over nothing: earlier calls have handed over everything before the place of the
    /// error. If reading can go on ([`ReadError::goes_on`]), the next call does so; otherwise it returns 0.
    ///
    /// # Panics
    ///
    /// If `max` is 0, as the result would look like the end.
    #[inline]
    pub fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, ReadError> {
        assert!(max > 0, "`max` is 0: ask for at least one record");
        let mut records = 0;
        loop {
            if records == 0 && !self.is_ready()? {
                return Ok(0);
            }
            let step = self.walk((max - records).min(AT_ONCE));
            let window = self.input.window();
            self.found.iter().for_each(|found| sink(found.record(window)));
            records += step.records;
            let has_more = matches!(step.stop, Stop::Full);
            self.settle(step);
            if records == max || (records > 0 && !has_more) {
                return Ok(records);
            }
        }
    }

    /// Whether there is something to walk over; `false` at the end.
    fn is_ready(&mut self) -> Result<bool, ReadError> {
        self.settle_debt();
        self.pending.take().map_or(Ok(!self.ended), Err)
    }

    /// Finds the next records. It knows no sink, so it is compiled once, and not for each caller of [`Self::read`].
    fn walk(&mut self, max: usize) -> Step {
        self.found.clear();
        let window = self.input.window();
        match &mut self.format {
            Format::Pcap(format) => format.walk(window, max, &mut self.last_time, &mut self.found),
            Format::PcapNg(format) => format.walk(window, max, &mut self.last_time, &mut self.found),
        }
    }

    /// Moves on by the bytes of a walk, and records the consequence of its stop.
    fn settle(&mut self, step: Step) {
        self.consume(step.used);
        self.records += step.records as u64;
        match step.stop {
            Stop::Full => {}
            // The wait comes later: records that are there do not wait for bytes that may take long to come.
            Stop::Short { part, needed } => self.owed = Some((part, needed)),
            Stop::TooLong { length, limit } => {
                self.end(Some(ReadError::TooLong { place: self.place(), length, limit }));
            }
            Stop::Damaged(what) => self.end(Some(ReadError::Damaged { place: self.place(), what })),
            Stop::Skip { reason, bytes } => {
                // The format has counted this record already.
                let place = Place { record: self.records + self.skipped(), offset: self.offset };
                self.pending = Some(ReadError::Skipped { place, reason });
                self.consume(bytes);
            }
        }
    }

    /// Fills the window with the bytes for which the last walk stopped.
    #[inline]
    fn settle_debt(&mut self) {
        if let Some((part, needed)) = self.owed.take() {
            self.fill(part, needed);
        }
    }

    #[cold]
    fn fill(&mut self, part: Part, needed: usize) {
        match self.input.fill(needed) {
            Ok(true) => {}
            Ok(false) => {
                let have = self.input.window().len();
                let cut = ReadError::Cut { place: self.place(), part, needed, have };
                self.end((have > 0).then_some(cut));
            }
            Err(error) => {
                let compression = self.input.compression();
                self.end(Some(ReadError::Input { place: self.place(), compression, error }));
            }
        }
    }

    fn end(&mut self, error: Option<ReadError>) {
        self.ended = true;
        self.pending = error;
    }

    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.offset += bytes as u64;
    }

    /// The place of the next record.
    fn place(&self) -> Place {
        Place { record: self.records + self.skipped() + 1, offset: self.offset }
    }

    /// The memory that the next records are lent from. A caller that keeps a record can clone this instead of copying
    /// the record. `None` for an input that comes bit by bit, as from a pipe: each such memory holds little, and a copy
    /// takes less memory.
    ///
    /// A record may lie elsewhere nevertheless: [`Memory::place`] then returns `None`. While a clone exists, the reader
    /// fills other memory. So a caller that keeps many clones should count their bytes.
    pub fn memory(&mut self) -> Option<&Memory> {
        if self.input.memory().is_some() {
            self.settle_debt();
        }
        self.input.memory()
    }

    /// Bytes of the input that have been used. For a packed input these are packed bytes, unless it was preloaded.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// Bytes of the whole input, counted as in [`Reader::position`], if they are known.
    pub fn size(&self) -> Option<u64> {
        self.input.size()
    }

    /// Records handed over so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Unusable records that were skipped so far.
    pub fn skipped(&self) -> u64 {
        match &self.format {
            Format::Pcap(_) => 0,
            Format::PcapNg(format) => format.skipped,
        }
    }

    /// Takes the warnings for the user: nothing was lost. Each is returned once.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        match &mut self.format {
            Format::Pcap(_) => Vec::new(),
            Format::PcapNg(format) => std::mem::take(&mut format.warnings),
        }
    }

    /// The end of the capture in nanoseconds since the epoch: the latest that the interface statistics of a pcapng
    /// capture have given so far. `None` if none did, and for pcap. Statistics mostly come last, so the answer is final
    /// once [`Reader::read`] has returned 0.
    ///
    /// It is what the file claims: it may lie before a record, or anywhere in 64 bits.
    pub fn end_ns(&self) -> Option<u64> {
        match &self.format {
            Format::Pcap(_) => None,
            Format::PcapNg(format) => format.end_ns,
        }
    }

    /// The first comment of a pcapng capture's first section, if it has one; `None` for pcap.
    ///
    /// It is what the file claims, of up to 65,535 bytes.
    pub fn comment(&self) -> Option<&str> {
        match &self.format {
            Format::Pcap(_) => None,
            Format::PcapNg(format) => format.comment.as_deref(),
        }
    }

    /// The time of the last record. A record without a time takes it over.
    pub fn last_time_ns(&self) -> u64 {
        self.last_time
    }

    /// Sets the time for a first record without a time: the last time of the previous file.
    pub fn set_last_time_ns(&mut self, time_ns: u64) {
        self.last_time = time_ns;
    }
}

/// Identifies the format, and the number of bytes of its header in the window.
fn recognise(input: &mut Input) -> Result<(Format, usize), OpenError> {
    if !fill(input, 4)? {
        return Err(match input.window() {
            [] => OpenError::Empty,
            start => OpenError::NotACapture { start: start.to_vec() },
        });
    }
    let start = *input.window().first_chunk::<4>().expect("just filled");
    if u32::from_le_bytes(start) == pcapng::SECTION {
        return recognise_pcapng(input).map(|format| (format, 0));
    }
    let Some((order, magic)) = pcap::recognise(start) else {
        return Err(OpenError::NotACapture { start: start.to_vec() });
    };
    fill(input, pcap::FILE_HEADER)?;
    let window = input.window();
    let header = window.first_chunk().ok_or(OpenError::CutHeader { needed: pcap::FILE_HEADER, have: window.len() })?;
    Ok((Format::Pcap(Pcap::new(order, magic, header)?), pcap::FILE_HEADER))
}

/// Searches for an interface whose frames can be decoded. The search covers the whole input if that can be read again,
/// and ends at the first packet otherwise.
fn recognise_pcapng(input: &mut Input) -> Result<Format, OpenError> {
    let (mut at_end, rewinds) = (!input.is_stream(), input.rewinds());
    let mut scout = Scout::new(at_end || rewinds);
    let mut has_passed = false;
    loop {
        match scout.survey(input.window(), at_end)? {
            Survey::Readable => break,
            Survey::UnknownLink(link) => return Err(OpenError::UnknownLink(link)),
            Survey::Short(needed) if at_end => {
                return Err(OpenError::CutHeader { needed, have: input.window().len() });
            }
            Survey::Short(needed) if rewinds => {
                let passed = scout.take_passed();
                input.consume(passed);
                has_passed |= passed > 0;
                at_end = !fill(input, needed - passed)?;
            }
            // The search keeps no more than that: reading will show the error.
            Survey::Short(needed) if needed > LONGEST as usize => break,
            Survey::Short(needed) => at_end = !fill(input, needed)?,
        }
    }
    if has_passed {
        input.rewind().map_err(|error| OpenError::Read { compression: None, error })?;
    }
    Ok(Format::PcapNg(PcapNg::new(scout.comment())))
}

fn fill(input: &mut Input, needed: usize) -> Result<bool, OpenError> {
    input.fill(needed).map_err(|error| OpenError::Read { compression: input.compression(), error })
}
