//! The reader: an input, a format, and where the two have come to.

use std::io::Read;
use std::path::Path;

use super::error::{OpenError, Part, Place, ReadError, Warning};
use super::input::Input;
use super::memory::Memory;
use super::pcap::{self, Pcap};
use super::pcapng::{self, PcapNg, Scout, Survey};
use super::record::Record;
use super::step::{LONGEST, Step, Stop};

/// How to read a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Reads the whole input into memory before [`Reader::open`] returns, unpacked.
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
    /// What the window is to hold before it is walked on, and what that is part of.
    owed: Option<(Part, usize)>,
    /// Found behind records that were handed over, told by the next call.
    pending: Option<ReadError>,
    ended: bool,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

impl Reader {
    /// Opens a capture. The path `-` means the standard input. pcap and pcapng are known by their content, as are gzip
    /// and zstd around them.
    pub fn open(input: &Path, options: &Options) -> Result<Self, OpenError> {
        Self::new(Input::open(input, options.preload)?)
    }

    /// Takes a capture that is in memory, packed or not.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::new(Input::from_bytes(bytes)?)
    }

    /// Takes a capture from anything that can be read, packed or not. `size` is how many bytes it has, where that is
    /// known: no more are read, and fewer are an error.
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
        let offset = used as u64;
        Ok(Self { input, format, offset, records: 0, last_time: 0, owed: None, pending: None, ended: false })
    }

    /// Hands up to `max` records to `sink`, in the order of the file, and says how many; 0 is the end.
    ///
    /// The count may be short of `max` before the end: what is there is not held back for what a pipe may bring later.
    ///
    /// # Errors
    ///
    /// Everything before the place of the error has been handed over by earlier calls: a call that fails has handed
    /// over nothing. If reading can go on ([`ReadError::goes_on`]) the next call does, else it returns 0.
    ///
    /// # Panics
    ///
    /// If `max` is 0, as the answer would look like the end.
    #[inline]
    pub fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, ReadError> {
        assert!(max > 0, "`max` is 0: ask for at least one record");
        loop {
            self.settle_debt();
            if let Some(error) = self.pending.take() {
                return Err(error);
            }
            if self.ended {
                return Ok(0);
            }
            let window = self.input.window();
            let step = match &mut self.format {
                Format::Pcap(format) => format.walk(window, max, &mut self.last_time, &mut sink),
                Format::PcapNg(format) => format.walk(window, max, &mut self.last_time, &mut sink),
            };
            let records = step.records;
            self.settle(step);
            if records > 0 {
                return Ok(records);
            }
        }
    }

    /// Moves on by what a walk did, and makes out what follows from why it stopped.
    fn settle(&mut self, step: Step) {
        self.consume(step.used);
        self.records += step.records as u64;
        match step.stop {
            Stop::Full => {}
            // Not at once: records that are there do not wait for bytes that may take long to come.
            Stop::Short { part, needed } => self.owed = Some((part, needed)),
            Stop::TooLong { length, limit } => {
                self.end(Some(ReadError::TooLong { place: self.place(), length, limit }));
            }
            Stop::Damaged(what) => self.end(Some(ReadError::Damaged { place: self.place(), what })),
            Stop::Skip { reason, bytes } => {
                // The format has counted this one already.
                let place = Place { record: self.records + self.skipped(), offset: self.offset };
                self.pending = Some(ReadError::Skipped { place, reason });
                self.consume(bytes);
            }
        }
    }

    /// Sees to it that the window holds what the last walk stopped for.
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

    /// Of the next record.
    fn place(&self) -> Place {
        Place { record: self.records + self.skipped() + 1, offset: self.offset }
    }

    /// The bytes that the next records are lent from, so that a caller that keeps a record need not copy it, but clones
    /// these. `None` for what comes bit by bit, as from a pipe: then there is little in each of these, and copying it
    /// takes less memory.
    ///
    /// Now and then a record lies elsewhere nevertheless; [`Memory::place`] tells. The reader reads on into other
    /// memory as long as there is a clone. So a caller that keeps many should count their bytes.
    pub fn memory(&mut self) -> Option<&Memory> {
        if self.input.memory().is_some() {
            self.settle_debt();
        }
        self.input.memory()
    }

    /// Bytes of the input that have been used: of the packed ones if it is packed, unless it was preloaded.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// Bytes of the input in the terms of [`Reader::position`], where they are known.
    pub fn size(&self) -> Option<u64> {
        self.input.size()
    }

    /// Records handed over so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Records that were not usable and left out so far.
    pub fn skipped(&self) -> u64 {
        match &self.format {
            Format::Pcap(_) => 0,
            Format::PcapNg(format) => format.skipped,
        }
    }

    /// What the user should be told although nothing was lost, each once.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        match &mut self.format {
            Format::Pcap(_) => Vec::new(),
            Format::PcapNg(format) => std::mem::take(&mut format.warnings),
        }
    }

    /// The time of the last record, which a record without a time takes.
    pub fn last_time_ns(&self) -> u64 {
        self.last_time
    }

    /// Sets the time that a first record without a time takes: the last one of the file before.
    pub fn set_last_time_ns(&mut self, time_ns: u64) {
        self.last_time = time_ns;
    }
}

/// Finds out the format, and how many bytes of the window its header takes.
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

/// Looks for an interface whose frames can be decoded: through all of what can be read again, else up to the first
/// packet.
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
            // So much is not kept for that: reading will tell.
            Survey::Short(needed) if needed > LONGEST as usize => break,
            Survey::Short(needed) => at_end = !fill(input, needed)?,
        }
    }
    if has_passed {
        input.rewind().map_err(|error| OpenError::Read { compression: None, error })?;
    }
    Ok(Format::PcapNg(PcapNg::new()))
}

fn fill(input: &mut Input, needed: usize) -> Result<bool, OpenError> {
    input.fill(needed).map_err(|error| OpenError::Read { compression: input.compression(), error })
}
