//! The outputs of results: the standard output or a file. Errors are distinguished by whether they matter.

mod stream;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use corelane_monitor::Timestamp;

use crate::exit::{Exit, complain};
use crate::interrupt::Interrupt;

pub(crate) use stream::Stream;
pub(crate) use stream::{Condition, Units};

/// How often a pipe is looked at that has no reader.
const LOOK: Duration = Duration::from_millis(50);

/// What becomes of what a file holds when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It goes, once the file is [begun](Output::begin): a run that is refused costs nothing. A file that another run
    /// writes so is refused.
    Replace,
    /// It stays, and the output is written behind it: what a service writes survives its restart.
    Append,
    /// It stays, and the output is a file of its own: under the name itself where that is free, else under one with the
    /// time. So no two runs write one file, and no restart empties one.
    Apart,
}

/// An output. It is opened before the work begins, so that errors show early.
#[derive(Debug)]
pub(crate) struct Output {
    to: To,
    how: How,
    /// The name that was given; that of the file may have a time.
    given: PathBuf,
}

#[derive(Debug)]
enum To {
    Stdout,
    File(File, PathBuf),
}

/// An error, and the output that it belongs to.
#[derive(Debug)]
pub(crate) struct OutputError {
    name: String,
    error: io::Error,
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot be written: {}; check the folder, the access and the free space", self.name, self.error)
    }
}

impl Output {
    /// The standard output.
    pub(crate) fn stdout() -> Self {
        Output { to: To::Stdout, how: How::Append, given: PathBuf::new() }
    }

    /// Creates a file, or empties it.
    #[cfg(test)]
    pub(crate) fn create(path: &Path) -> Result<Self, OutputError> {
        let output = Self::open(path, How::Replace, &Interrupt::default())?;
        output.begin().map(|()| output)
    }

    /// Opens a file to write behind what it holds.
    #[cfg(test)]
    pub(crate) fn append(path: &Path) -> Result<Self, OutputError> {
        Self::open(path, How::Append, &Interrupt::default())
    }

    /// Opens a file, or creates it; `-` is the standard output. A pipe without a reader is waited for until
    /// the interrupt, and that is said.
    pub(crate) fn open(path: &Path, how: How, interrupt: &Interrupt) -> Result<Self, OutputError> {
        if is_standard(path) {
            return Ok(Self::stdout());
        }
        let failed = |error| OutputError { name: path.display().to_string(), error };
        // Devices and pipes cannot be emptied, and take what all write. Of a file that was given open the giver knows
        // who else writes it.
        let is_file = fs::metadata(path).map_or(true, |facts| facts.is_file()) && !is_descriptor(path);
        let (file, own) = match how {
            How::Apart if is_file => {
                let (file, own) = apart(path).map_err(failed)?;
                if own != path {
                    complain(format_args!("{}: is there already; the packets go to {}", path.display(), own.display()));
                }
                (file, own)
            }
            _ => (open(path, how, interrupt).map_err(failed)?, path.to_owned()),
        };
        if how == How::Replace && is_file && !lock(&file).unwrap_or(true) {
            return Err(failed(io::Error::other("another run writes it")));
        }
        Ok(Output { to: To::File(file, own), how, given: path.to_owned() })
    }

    /// Empties a file that is replaced. Before the first byte is written.
    pub(crate) fn begin(&self) -> Result<(), OutputError> {
        match &self.to {
            To::File(file, _) if self.how == How::Replace => {
                let emptied = file.metadata().and_then(|facts| if facts.is_file() { file.set_len(0) } else { Ok(()) });
                emptied.map_err(|error| OutputError { name: self.to_string(), error })
            }
            _ => Ok(()),
        }
    }

    /// Whether the bytes go to a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        match &self.to {
            To::Stdout => io::stdout().is_terminal(),
            To::File(file, _) => file.is_terminal(),
        }
    }

    /// Writes all of `body`. If the reader has gone away it has seen enough: that is no error.
    pub(crate) fn write(&self, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Exit, OutputError> {
        let body = |out: &mut dyn Write| {
            out.write_all(self.torn())?;
            body(out)
        };
        let written = match &self.to {
            To::Stdout => through(io::stdout().lock(), body),
            To::File(file, _) => through(file, body),
        };
        match written {
            Ok(()) => Ok(Exit::Done),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
            Err(error) => Err(OutputError { name: self.to_string(), error }),
        }
    }

    /// Whether it is the standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.to, To::Stdout)
    }

    /// Makes a stream of the output, for bytes that come while the work goes on.
    pub(crate) fn into_stream(self) -> Stream {
        Stream::new(self)
    }

    /// What ends the last line of a file that is appended to: nothing, unless a crash has torn it.
    fn torn(&self) -> &'static [u8] {
        let To::File(file, _) = &self.to else { return b"" };
        let is_torn = || -> io::Result<bool> {
            let (mut file, mut last): (&File, _) = (file, [b'\n']);
            if self.how == How::Append && file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
            }
            Ok(last != *b"\n")
        };
        // What may not be read is left as it is.
        if is_torn().unwrap_or(false) { b"\n" } else { b"" }
    }

    /// Opens the file again by the name that was given, which may mean another file since, as [`How`] says. Says
    /// whether it is another file. The standard output, devices, pipes and [descriptors](is_descriptor) stay as they
    /// are. After an error the old file stays open.
    fn reopen(&mut self) -> io::Result<bool> {
        let To::File(file, path) = &mut self.to else { return Ok(false) };
        let old = file.metadata()?;
        if !old.is_file() || is_descriptor(path) {
            return Ok(false);
        }
        if self.how == How::Apart {
            let is_free = *path != self.given && !self.given.exists();
            if !is_free && fs::metadata(&*path).is_ok_and(|facts| is_same(&old, &facts)) {
                return Ok(false);
            }
            (*file, *path) = apart(&self.given)?;
            return Ok(true);
        }
        let new = append_to(path)?;
        let is_other = !is_same(&old, &new.metadata()?);
        *file = new;
        self.how = How::Append;
        Ok(is_other)
    }

    /// Takes the last `torn` bytes, which were just written, away from a file. Says whether that was possible.
    fn cut(&self, torn: u64) -> bool {
        let To::File(file, _) = &self.to else { return false };
        let cut = || -> io::Result<bool> {
            let facts = file.metadata()?;
            let mut file: &File = file;
            // After a write this is where it ended, also in a file that is appended to. If the file ends elsewhere,
            // another process writes it too, and the last bytes are not ours.
            let end = file.stream_position()?;
            let Some(whole) = end.checked_sub(torn).filter(|_| facts.is_file() && facts.len() == end) else {
                return Ok(false);
            };
            file.set_len(whole)?;
            // Without this the next write to a file that is not appended to would leave a hole.
            file.seek(SeekFrom::Start(whole)).map(|_| true)
        };
        cut().unwrap_or(false)
    }

    /// Removes a file that is not whole, and says so. Devices and pipes stay.
    pub(crate) fn remove(self) {
        if let To::File(file, path) = self.to
            && file.metadata().is_ok_and(|facts| facts.is_file())
        {
            match std::fs::remove_file(&path) {
                Ok(()) => complain(format_args!("{}: removed, as it was not complete", path.display())),
                Err(error) => {
                    complain(format_args!("{}: not complete, and not removed: {error}; remove it", path.display()));
                }
            }
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            To::Stdout => f.write_str("standard output"),
            To::File(_, path) => path.display().fmt(f),
        }
    }
}

/// Opens a file for an output that is not one of its own.
fn open(path: &Path, how: How, interrupt: &Interrupt) -> io::Result<File> {
    #[cfg(unix)]
    if fs::metadata(path).is_ok_and(|facts| std::os::unix::fs::FileTypeExt::is_fifo(&facts.file_type())) {
        return open_pipe(path, interrupt);
    }
    let _ = interrupt;
    match how {
        How::Append => append_to(path),
        _ => OpenOptions::new().write(true).create(true).truncate(false).open(path),
    }
}

/// Opens a file to write behind what it holds, and to read its last byte, if that is allowed.
fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    match options.clone().read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => options.open(path),
        opened => opened,
    }
}

/// Opens a pipe. The system's own wait for a reader would have no end.
#[cfg(unix)]
fn open_pipe(path: &Path, interrupt: &Interrupt) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let mut is_said = false;
    loop {
        match rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
            Ok(pipe) => {
                rustix::fs::fcntl_setfl(&pipe, OFlags::empty())?;
                return Ok(pipe.into());
            }
            Err(rustix::io::Errno::NXIO) => {}
            Err(error) => return Err(error.into()),
        }
        if interrupt.is_set() {
            return Err(io::Error::other("nobody has read this pipe"));
        }
        if !std::mem::replace(&mut is_said, true) {
            complain(format_args!("{}: nobody reads this pipe; waiting for a reader, or Ctrl-C", path.display()));
        }
        thread::sleep(LOOK);
    }
}

/// Opens a file that no other run writes, and that holds nothing: of this name, or of one with the time.
fn apart(given: &Path) -> io::Result<(File, PathBuf)> {
    let options = {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        options
    };
    let file = options.open(given)?;
    if lock(&file).unwrap_or(true) && file.metadata()?.len() == 0 {
        return Ok((file, given.to_owned()));
    }
    let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let time = Timestamp::of(u64::try_from(now_ns).unwrap_or(u64::MAX));
    let time = format!("{}T{}Z", time.date(), time.time()).replace(['-', ':'], "");
    // Where the file really is, as all that is opened later has to be there.
    let place = given.canonicalize()?;
    let extension = place.extension().map(|extension| format!(".{}", extension.display())).unwrap_or_default();
    let stem = place.file_stem().unwrap_or_default().display();
    for number in 1_u64.. {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = place.with_file_name(format!("{stem}-{time}{number}{extension}"));
        let file = options.open(&path)?;
        if lock(&file).unwrap_or(true) && file.metadata()?.len() == 0 {
            return Ok((file, path));
        }
    }
    unreachable!("there are fewer files")
}

/// Takes a file for as long as it is open. Says whether no other process has it.
///
/// # Errors
///
/// Those of file systems without locks.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use rustix::fs::{FlockOperation, flock};
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(true)
    }
}

fn through<W: Write>(to: W, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(64 << 10, to);
    body(&mut buffered)?;
    buffered.flush()
}

/// Whether both are facts about one file; unknown where files have no numbers.
fn is_same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (a, b);
        false
    }
}

/// Whether both names lead to one existing file, also by links of either kind.
fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        // Paths are not enough: a file may have any number of hard links.
        match (fs::metadata(a), fs::metadata(b)) {
            (Ok(a), Ok(b)) => a.is_file() && is_same(&a, &b),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b && a.is_file(),
        _ => false,
    }
}

/// Whether bytes written to both would mix, also if the file does not exist yet. A device may take everything.
pub(crate) fn is_one_output(a: &Path, b: &Path) -> bool {
    if is_standard(a) || is_standard(b) {
        return a == b;
    }
    let is_device = fs::metadata(a).is_ok_and(|facts| !facts.is_file());
    !is_device && (a == b || same_file(a, b) || place(a).is_some_and(|of_a| place(b) == Some(of_a)))
}

/// Whether a path stands for the standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a path stands for a file that the process was given open, as in `--eve >(gzip > eve.json.gz)`. It is opened
/// by the giver's rights, and once: the number may be another file's later.
pub(crate) fn is_descriptor(path: &Path) -> bool {
    let is_in = |folder| path.parent() == Some(Path::new(folder));
    is_in("/dev/fd")
        || is_in("/proc/self/fd")
        || ["/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name))
}

/// The folders of files that are opened again by their names: where they really are. Those of devices have all others
/// in them, disks among them, and links to files of other folders.
#[cfg(target_os = "linux")]
pub(crate) fn folders<'a>(outputs: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let files = outputs.filter(|path| !is_standard(path) && !is_descriptor(path));
    let files = files.filter_map(|path| path.canonicalize().ok()).filter(|path| path.is_file());
    let mut folders: Vec<PathBuf> = files.filter_map(|path| path.parent().map(Path::to_owned)).collect();
    folders.dedup();
    folders
}

/// Sets the rights of all files that are made from here on, if they are given.
pub(crate) fn set_mode(mode: Option<u16>) {
    #[cfg(unix)]
    if let Some(mode) = mode {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode((0o666 & !mode).into()));
    }
    let _ = mode;
}

/// The folder in which a file is, or would be created; `None` for what is no file.
#[cfg(target_os = "linux")]
pub(crate) fn place_of(path: &Path) -> Option<PathBuf> {
    match fs::metadata(path) {
        Ok(facts) => path.canonicalize().ok().filter(|_| facts.is_file())?.parent().map(Path::to_owned),
        Err(_) => place(path)?.parent().map(Path::to_owned),
    }
}

/// The path at which a file would be created.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}
