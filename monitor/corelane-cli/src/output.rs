//! The outputs of results: the standard output or a file. Errors are distinguished by whether they matter.

mod stream;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, complain};

pub(crate) use stream::Stream;
pub(crate) use stream::{Condition, Units};

/// An output. It is opened before the work begins, so that errors show early.
#[derive(Debug)]
pub(crate) struct Output {
    to: To,
    /// Whether what the file held stays in it.
    keeps: bool,
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
        Output { to: To::Stdout, keeps: true }
    }

    /// Creates a file, or empties it.
    #[cfg(test)]
    pub(crate) fn create(path: &Path) -> Result<Self, OutputError> {
        let output = Self::replace(path)?;
        output.empty().map(|()| output)
    }

    /// The same, but that a file is left as it is until it is [emptied](Output::empty): a run that is refused costs
    /// nothing.
    pub(crate) fn replace(path: &Path) -> Result<Self, OutputError> {
        Self::open(path, OpenOptions::new().write(true).create(true).truncate(false), false)
    }

    /// Opens a file to write behind what it holds, or creates it; `-` is the standard output. What a service writes
    /// survives its restart.
    pub(crate) fn append(path: &Path) -> Result<Self, OutputError> {
        Self::open(path, OpenOptions::new().append(true).create(true), true)
    }

    fn open(path: &Path, options: &OpenOptions, keeps: bool) -> Result<Self, OutputError> {
        if is_standard(path) {
            return Ok(Self::stdout());
        }
        match options.open(path) {
            Ok(file) => Ok(Output { to: To::File(file, path.to_owned()), keeps }),
            Err(error) => Err(OutputError { name: path.display().to_string(), error }),
        }
    }

    /// Empties the file, unless it was opened to append. Before the first byte is written.
    pub(crate) fn empty(&self) -> Result<(), OutputError> {
        match &self.to {
            To::File(file, _) if !self.keeps => {
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

    /// Opens the file again by its name, which may mean another file since, and writes behind what that holds. Says
    /// whether it is another file. The standard output, devices, pipes and [descriptors](is_descriptor) stay as they
    /// are. After an error the old file stays open.
    fn reopen(&mut self) -> io::Result<bool> {
        let To::File(file, path) = &mut self.to else { return Ok(false) };
        let old = file.metadata()?;
        if !old.is_file() || is_descriptor(path) {
            return Ok(false);
        }
        let new = OpenOptions::new().append(true).create(true).open(path)?;
        let is_other = !is_same(&old, &new.metadata()?);
        *file = new;
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
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
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

/// The path at which a file would be created.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}
