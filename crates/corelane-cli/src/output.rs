//! The outputs of results: the standard output or a file. Errors are told apart by whether they matter.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, complain};

/// An output. It is opened before the work begins, so that errors show early.
#[derive(Debug)]
pub(crate) struct Output {
    to: To,
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
        Output { to: To::Stdout }
    }

    /// Creates a file, or empties it; `-` is the standard output.
    pub(crate) fn create(path: &Path) -> Result<Self, OutputError> {
        if is_standard(path) {
            return Ok(Self::stdout());
        }
        match File::create(path) {
            Ok(file) => Ok(Output { to: To::File(file, path.to_owned()) }),
            Err(error) => Err(OutputError { name: path.display().to_string(), error }),
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
        Stream { pending: Vec::with_capacity(STREAM), output: self, failure: None }
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

/// Bytes that are written at a time.
const STREAM: usize = 64 << 10;

/// An output that is written bit by bit. Once that fails it takes no more.
#[derive(Debug)]
pub(crate) struct Stream {
    output: Output,
    pending: Vec<u8>,
    failure: Option<io::Error>,
}

impl Stream {
    /// Takes more bytes. An empty slice means that no more are at hand, and that the bytes so far may be wanted. Says
    /// whether the stream still has a reader.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
        if self.failure.is_none() {
            self.pending.extend_from_slice(bytes);
        }
        if bytes.is_empty() || self.pending.len() >= STREAM {
            return self.flush();
        }
        self.failure.is_none()
    }

    /// Writes all pending bytes. Says the same as [`put`](Stream::put).
    pub(crate) fn flush(&mut self) -> bool {
        if self.failure.is_none() {
            let written = match &self.output.to {
                To::Stdout => io::stdout().lock().write_all(&self.pending).and_then(|()| io::stdout().flush()),
                To::File(file, _) => (&*file).write_all(&self.pending),
            };
            self.failure = written.err();
            self.pending.clear();
        }
        self.failure.is_none()
    }

    /// Ends the stream. If the reader has gone away it has seen enough: that is no error.
    pub(crate) fn finish(mut self) -> Result<Exit, OutputError> {
        self.flush();
        match self.failure {
            None => Ok(Exit::Done),
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
            Some(error) => Err(OutputError { name: self.output.to_string(), error }),
        }
    }
}

impl Write for Stream {
    /// Never fails: [`finish`](Stream::finish) returns the error.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn through<W: Write>(to: W, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(64 << 10, to);
    body(&mut buffered)?;
    buffered.flush()
}

/// Whether both names lead to one existing file, also by links of either kind.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // Paths alone do not tell: a file may have any number of hard links.
        match (fs::metadata(a), fs::metadata(b)) {
            (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
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

/// The path at which a file would be created.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}
