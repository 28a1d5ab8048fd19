//! The captures of a run as one source of records.

use crate::exit::left_out;
use crate::interrupt::Interrupt;
use crate::output::{Condition, OutputError, is_standard};
use crate::progress::Gauge;
use crate::tap::{CopyEnd, Tap, seed_in};
use corelane::error::PopTimeoutError;
use corelane::spsc::{self, Consumer};
use corelane_monitor::{Silence, Source};
use corelane_net::capture::{Memory, OpenError, Options, ReadError, Reader, Record, Warning};
use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A message about one of the captures.
#[derive(Debug)]
pub(crate) struct Fault {
    name: String,
    what: What,
}

#[derive(Debug)]
enum What {
    Unreadable(OpenError),
    Damaged(ReadError),
    /// So many skipped records; one of them has been reported.
    Skipped(u64),
    Note(Warning),
}

impl Fault {
    /// Whether a part of the input is missing in the report.
    pub(crate) fn is_loss(&self) -> bool {
        !matches!(self.what, What::Note(_))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match &self.what {
            What::Unreadable(OpenError::NoZstd) => {
                write!(f, "is packed by zstd, which `zstd -dc` unpacks; {}", left_out("zstd", "zstd"))
            }
            What::Unreadable(error) => error.fmt(f),
            What::Damaged(error) => error.fmt(f),
            What::Skipped(records) => write!(f, "{records} records were skipped in all and are not in the report"),
            What::Note(warning) => warning.fmt(f),
        }
    }
}

/// The interrupt and the gauge for readers of slow inputs.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) interrupt: Interrupt,
    pub(crate) gauge: Arc<Gauge>,
}

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Piece by piece.
    Read,
    /// All of the file before the analysis begins.
    Preload,
    /// Files are mapped instead. The user has promised that no process changes them.
    Map,
}

/// The captures. They are opened one after the other as they are needed, or all at first.
#[derive(Debug)]
pub(crate) struct Inputs {
    watch: Watch,
    mode: ReadMode,
    /// The number of all captures.
    all: usize,
    waiting: VecDeque<PathBuf>,
    open: VecDeque<Open>,
    faults: VecDeque<Fault>,
    /// Preloaded captures stay until the clock has stopped: giving back gigabytes takes time.
    finished: Vec<Reader>,
    /// Bytes of the captures that are finished.
    done: u64,
    last_time_ns: u64,
    /// The time at which the last capture says that it ended.
    end_ns: Option<u64>,
    /// A filter and a copy, if there are any.
    tap: Option<Tap>,
    seed: Option<u64>,
    readable: usize,
    cut_short: bool,
}

#[derive(Debug)]
struct Open {
    name: String,
    reader: Reader,
    skips_told: u64,
}

impl Inputs {
    pub(crate) fn new(files: &[PathBuf], mode: ReadMode, watch: &Watch) -> Self {
        Inputs {
            watch: watch.clone(),
            mode,
            all: files.len(),
            waiting: files.iter().cloned().collect(),
            open: VecDeque::new(),
            faults: VecDeque::new(),
            finished: Vec::new(),
            done: 0,
            last_time_ns: 0,
            end_ns: None,
            tap: None,
            seed: None,
            readable: 0,
            cut_short: false,
        }
    }

    /// Inputs of one capture that is in memory already.
    pub(crate) fn of(name: &str, reader: Reader, watch: &Watch) -> Self {
        let mut inputs = Inputs::new(&[], ReadMode::Preload, watch);
        inputs.readable = 1;
        inputs.open.push_back(Open { name: name.to_owned(), reader, skips_told: 0 });
        inputs
    }

    /// The same, with a filter or a copy.
    pub(crate) fn through(self, tap: Tap) -> Self {
        Inputs { tap: tap.is_needed().then_some(tap), ..self }
    }

    /// The same, with a seed that was given.
    pub(crate) fn with_seed(self, seed: Option<u64>) -> Self {
        Inputs { seed, ..self }
    }

    /// Empties the file of the copy, if there is one.
    pub(crate) fn begin_copy(&self) -> Result<(), OutputError> {
        self.tap.iter().try_for_each(Tap::begin)
    }

    /// The seed of the run, once captures are [open](Inputs::open), which its copy has too: the one that was given, or
    /// else the one that the first capture was made with as a copy.
    pub(crate) fn seed(&mut self) -> u64 {
        let made_with = || self.open.front()?.reader.comment().and_then(seed_in);
        let seed = self.seed.or_else(made_with).unwrap_or(0);
        if let Some(CopyEnd::Own(copy)) = self.tap.as_mut().and_then(|tap| tap.copy.as_mut()) {
            copy.set_seed(seed);
        }
        seed
    }

    /// Ends the copy, if there is one; says how it is.
    pub(crate) fn finish_copy(&mut self) -> Option<Condition> {
        let tap = self.tap.as_mut()?;
        tap.finish(None);
        tap.copy.as_ref().map(|copy| copy.condition())
    }

    /// The number of bytes to read, if all captures have a size.
    pub(crate) fn size(&self) -> Option<u64> {
        let open = self.open.iter().map(|open| open.reader.size());
        // A file that cannot be read counts as empty.
        let waiting = self.waiting.iter().map(|path| match fs::metadata(path) {
            _ if is_standard(path) => None,
            Ok(facts) if facts.is_file() => Some(facts.len()),
            Ok(facts) if !facts.is_dir() => None,
            _ => Some(0),
        });
        open.chain(waiting).sum()
    }

    /// Whether opening the captures reads them.
    pub(crate) fn is_preloaded(&self) -> bool {
        self.mode == ReadMode::Preload
    }

    /// Opens captures: the first that can be read, or all of them to preload them. Says whether any can be read.
    pub(crate) fn open(&mut self) -> bool {
        while (self.is_preloaded() || self.open.is_empty()) && self.open_next() {}
        self.readable > 0
    }

    /// Takes the messages up to now.
    pub(crate) fn faults(&mut self) -> impl Iterator<Item = Fault> {
        self.faults.drain(..)
    }

    /// Whether the user ended the reading before the input did.
    pub(crate) fn was_cut_short(&self) -> bool {
        self.cut_short
    }

    /// Opens the next capture, if there is one.
    fn open_next(&mut self) -> bool {
        let Some(path) = self.waiting.pop_front() else { return false };
        self.watch.gauge.set_file(self.all - self.waiting.len(), self.all);
        let name = if is_standard(&path) { "standard input".to_owned() } else { path.display().to_string() };
        let opened = open(&path, self.mode, &self.watch);
        if self.watch.interrupt.is_set() {
            // The interrupt may have cut the input, so its error is not reported.
            self.cut_short = true;
            return false;
        }
        match opened {
            Ok(reader) => {
                self.readable += 1;
                self.open.push_back(Open { name, reader, skips_told: 0 });
            }
            Err(error) => self.faults.push_back(Fault { name, what: What::Unreadable(error) }),
        }
        true
    }

    /// Closes the first open capture, which has ended.
    fn finish(&mut self) {
        let Some(Open { name, mut reader, skips_told }) = self.open.pop_front() else { return };
        self.last_time_ns = reader.last_time_ns();
        self.end_ns = reader.end_ns();
        self.done += reader.size().unwrap_or(0);
        if reader.skipped() > skips_told {
            self.faults.push_back(Fault { name: name.clone(), what: What::Skipped(reader.skipped()) });
        }
        for warning in reader.take_warnings() {
            self.faults.push_back(Fault { name: name.clone(), what: What::Note(warning) });
        }
        if self.is_preloaded() {
            self.finished.push(reader);
        }
        self.open();
        let left = self.open.len();
        if let Some(next) = self.open.front_mut() {
            if self.mode == ReadMode::Preload {
                self.watch.gauge.set_file(self.all - left + 1, self.all);
            }
            next.reader.set_last_time_ns(self.last_time_ns);
        }
    }
}

impl Source for Inputs {
    type Error = Fault;

    #[inline]
    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Fault> {
        loop {
            if let Some(fault) = self.faults.pop_front() {
                return Err(fault);
            }
            let Some(Open { name, reader, skips_told }) = self.open.front_mut() else { return Ok(0) };
            if self.watch.interrupt.is_set() {
                self.cut_short = true;
                return Ok(0);
            }
            let read = match &mut self.tap {
                None => reader.read(max, &mut sink),
                Some(tap) => {
                    let mut passed = 0;
                    // Compiled in place once, above, is enough.
                    let sink: &mut dyn FnMut(Record<'_>) = &mut sink;
                    let read = reader.read(max, |record| {
                        if let Some(record) = tap.take(record) {
                            passed += 1;
                            sink(record);
                        }
                    });
                    tap.rest(0);
                    // With none that passed this is not the end yet.
                    if read.as_ref().is_ok_and(|&records| records > 0 && passed == 0) {
                        continue;
                    }
                    read
                }
            };
            self.watch.gauge.set(self.done + reader.position());
            match read {
                // This is the end of the capture, unless the interrupt ended it.
                Ok(0) if !self.watch.interrupt.is_set() => self.finish(),
                Ok(0) => {}
                Ok(records) => return Ok(records),
                Err(_) if self.watch.interrupt.is_set() => {}
                // Only the first skipped record of a capture is reported by itself: damage may be everywhere.
                Err(error) if error.goes_on() && *skips_told > 0 => {}
                Err(error) => {
                    *skips_told += u64::from(error.goes_on());
                    return Err(Fault { name: name.clone(), what: What::Damaged(error) });
                }
            }
        }
    }

    fn silence(&mut self) -> Silence {
        let time_ns = self.end_ns.filter(|_| !self.cut_short);
        if let (Some(tap), Some(time_ns)) = (&mut self.tap, time_ns) {
            tap.pass(time_ns);
        }
        Silence::End { time_ns }
    }

    fn memory(&mut self) -> Option<&Memory> {
        self.open.front_mut()?.reader.memory()
    }
}

fn open(path: &Path, mode: ReadMode, watch: &Watch) -> Result<Reader, OpenError> {
    let options = Options::default().preload(mode == ReadMode::Preload);
    if is_standard(path) {
        if io::stdin().is_terminal() {
            return Err(OpenError::Open(io::Error::other("it is a terminal; pipe a capture into it, or name a file")));
        }
        return Reader::from_read(Pump::start(|| Ok(io::stdin()), watch), None, &options);
    }
    let facts = fs::metadata(path).map_err(OpenError::Open)?;
    if facts.is_dir() {
        return Err(OpenError::Directory);
    }
    if !facts.is_file() {
        // A pipe may keep us waiting even while it is opened.
        let path = path.to_owned();
        return Reader::from_read(Pump::start(|| File::open(path), watch), None, &options);
    }
    match mode {
        ReadMode::Read => Reader::open(path, &options),
        ReadMode::Preload => {
            let file = File::open(path).map_err(OpenError::Open)?;
            Reader::from_read(Watched { file, watch: watch.clone() }, Some(facts.len()), &options)
        }
        // SAFETY: the user has asked for it by `--mmap`, whose help says that no process may change or shorten the
        // files meanwhile, and it is the user who says where our standard output goes. To no other name of an input
        // does the program write: `outputs::check` refuses that.
        ReadMode::Map => unsafe { Reader::open_mapped(path) },
    }
}

/// A file that is loaded with a progress bar. Reading ends when the user says so.
struct Watched {
    file: File,
    watch: Watch,
}

/// Bytes of one read: few enough that it ends soon after the user says so.
const STEP: usize = 8 << 20;

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.interrupt.is_set() {
            return Ok(0);
        }
        let step = buffer.len().min(STEP);
        let count = self.file.read(&mut buffer[..step])?;
        self.watch.gauge.advance(count as u64);
        Ok(count)
    }
}

/// An input that may keep us waiting as long as it likes, a pipe above all. A thread of its own reads it, so that the
/// user's interrupt is noticed while no bytes come. The bytes come through a lane.
struct Pump {
    chunks: Consumer<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    used: usize,
    watch: Watch,
}

/// Bytes of a chunk. Pipes hold no more than 64 KiB, unless asked for.
const CHUNK: usize = 256 << 10;
const CHUNKS: usize = 8;
/// The time between two checks of the interrupt while no bytes come.
const PATIENCE: Duration = Duration::from_millis(50);

impl Pump {
    fn start<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static, watch: &Watch) -> Self {
        let (mut filled, chunks) = spsc::channel(CHUNKS);
        let fill = move || {
            let mut source = match open() {
                Ok(source) => source,
                Err(error) => return drop(filled.push(Err(error))),
            };
            let mut buffer = vec![0; CHUNK];
            loop {
                let chunk = match source.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => Ok(buffer[..count].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = chunk.is_err();
                // The queue is closed: the analysis has ended and takes no more chunks.
                if filled.push(chunk).is_err() || failed {
                    return;
                }
            }
        };
        let chunks = match thread::Builder::new().name("input".to_owned()).spawn(fill) {
            Ok(_) => chunks,
            Err(error) => {
                let (mut failed, chunks) = spsc::channel(1);
                let text = format!("no thread can be started to read it: {error}");
                let _ = failed.push(Err(io::Error::new(error.kind(), text)));
                chunks
            }
        };
        Pump { chunks, chunk: Vec::new(), used: 0, watch: watch.clone() }
    }
}

impl Read for Pump {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.chunk.len() {
            if self.watch.interrupt.is_set() {
                return Ok(0);
            }
            match self.chunks.pop_timeout(PATIENCE) {
                Ok(chunk) => {
                    self.chunk = chunk?;
                    self.used = 0;
                }
                Err(PopTimeoutError::Closed) => return Ok(0),
                Err(_) => {}
            }
        }
        let count = (&self.chunk[self.used..]).read(buffer)?;
        self.used += count;
        Ok(count)
    }
}
