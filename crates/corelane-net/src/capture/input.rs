//! Where the bytes come from: a whole input in memory, or a stream through a sliding buffer.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::error::{Compression, OpenError};
use super::map::{self, Bytes, Growing, Memory};

/// Bytes a stream's buffer starts with. It grows only for a record that does not fit.
const BUFFER: usize = 256 << 10;
/// Bytes read at once from the source of a packed stream.
const PACKED_BUFFER: usize = 128 << 10;

/// The bytes from the reader's position on.
#[derive(Debug)]
pub(super) enum Input {
    /// All of them are at hand.
    Whole {
        bytes: Memory,
        at: usize,
        /// Why loading ended early, told when the bytes before it are used up.
        failure: Option<io::Error>,
        compression: Option<Compression>,
    },
    /// They come bit by bit.
    Stream(Stream),
}

impl Input {
    /// Opens a path, `-` being the standard input.
    pub(super) fn open(path: &Path, preload: bool) -> Result<Self, OpenError> {
        if path.as_os_str() == "-" {
            return Self::from_stream(Box::new(io::stdin()), None, preload);
        }
        let file = File::open(path).map_err(OpenError::Open)?;
        let facts = file.metadata().map_err(OpenError::Open)?;
        if facts.is_dir() {
            return Err(OpenError::Directory);
        }
        // Pipes and devices have no length, nor have some files that a kernel makes up.
        if !facts.is_file() || facts.len() == 0 {
            return Self::from_stream(Box::new(file), None, preload);
        }
        Self::from_file(file, facts.len(), preload)
    }

    /// Takes an input that is in memory already.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        match compression_of(&bytes) {
            None => Ok(Self::whole(Bytes::Owned(bytes))),
            Some(_) => {
                let size = bytes.len() as u64;
                Self::from_stream(Box::new(io::Cursor::new(bytes)), Some(size), false)
            }
        }
    }

    fn from_file(mut file: File, size: u64, preload: bool) -> Result<Self, OpenError> {
        let failed = |error| OpenError::Read { compression: None, error };
        let head = Head::read(&mut file).map_err(failed)?;
        if compression_of(head.bytes()).is_some() {
            return Self::packed_or_plain(head, Box::new(file), Some(size), preload);
        }
        let len = usize::try_from(size)
            .map_err(|_| OpenError::NoMemory(io::Error::other("larger than the address space")))?;
        if preload {
            let source = Source { head, inner: Box::new(file), count: 0 };
            let room = Growing::with_len(len).map_err(OpenError::NoMemory)?;
            return Self::load(Unpacker::Plain(source), room, false);
        }
        match map::map_file(&file) {
            Ok(bytes) => Ok(Self::whole(bytes)),
            // Some file systems cannot map.
            Err(_) => Self::packed_or_plain(head, Box::new(file), Some(size), false),
        }
    }

    /// Takes what can be read only once, from the front.
    pub(super) fn from_stream(
        mut inner: Box<dyn Read + Send>,
        size: Option<u64>,
        preload: bool,
    ) -> Result<Self, OpenError> {
        let head = Head::read(&mut inner).map_err(|error| OpenError::Read { compression: None, error })?;
        Self::packed_or_plain(head, inner, size, preload)
    }

    fn packed_or_plain(
        head: Head,
        inner: Box<dyn Read + Send>,
        size: Option<u64>,
        preload: bool,
    ) -> Result<Self, OpenError> {
        let unpacker = Unpacker::new(Source { head, inner, count: 0 })?;
        if preload {
            let room = Growing::unbounded().map_err(OpenError::NoMemory)?;
            return Self::load(unpacker, room, true);
        }
        Ok(Self::Stream(Stream { unpacker, size, buffer: Vec::new(), start: 0, end: 0, ended: false }))
    }

    fn whole(bytes: Bytes) -> Self {
        Self::Whole { bytes: Memory::new(bytes), at: 0, failure: None, compression: None }
    }

    /// Reads everything into memory. A failure on the way keeps what came before it.
    fn load(mut unpacker: Unpacker, mut room: Growing, may_grow: bool) -> Result<Self, OpenError> {
        let compression = unpacker.compression();
        let failure = loop {
            if room.is_full() {
                if !may_grow {
                    break None;
                }
                room.grow().map_err(OpenError::NoMemory)?;
            }
            match room.read_from(&mut unpacker) {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) => break Some(error),
            }
        };
        Ok(Self::Whole { bytes: Memory::new(Bytes::Anonymous(room)), at: 0, failure, compression })
    }

    /// What is at hand, from the position on.
    #[inline]
    pub(super) fn window(&self) -> &[u8] {
        match self {
            Self::Whole { bytes, at, .. } => &bytes[*at..],
            Self::Stream(stream) => stream.window(),
        }
    }

    /// All bytes, if they are at hand.
    pub(super) fn memory(&self) -> Option<&Memory> {
        match self {
            Self::Whole { bytes, .. } => Some(bytes),
            Self::Stream(_) => None,
        }
    }

    /// Moves the position over bytes of the window.
    #[inline]
    pub(super) fn consume(&mut self, count: usize) {
        match self {
            Self::Whole { at, .. } => *at += count,
            Self::Stream(stream) => stream.start += count,
        }
    }

    /// Sees to it that the window holds at least `needed` bytes; false if the input ends before.
    pub(super) fn fill(&mut self, needed: usize) -> io::Result<bool> {
        match self {
            Self::Whole { bytes, at, failure, .. } => {
                if bytes.len() - *at >= needed {
                    return Ok(true);
                }
                failure.take().map_or(Ok(false), Err)
            }
            Self::Stream(stream) => stream.fill(needed),
        }
    }

    /// Whether a longer window may have to be waited for.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        match self {
            Self::Whole { compression, .. } => *compression,
            Self::Stream(stream) => stream.unpacker.compression(),
        }
    }

    /// Bytes used of what [`Input::size`] counts.
    pub(super) fn position(&self) -> u64 {
        match self {
            Self::Whole { at, .. } => *at as u64,
            Self::Stream(stream) => match &stream.unpacker {
                Unpacker::Plain(source) => source.count - (stream.end - stream.start) as u64,
                packed => packed.source().count,
            },
        }
    }

    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Self::Whole { bytes, .. } => Some(bytes.len() as u64),
            Self::Stream(stream) => stream.size,
        }
    }
}

/// A stream seen through a buffer that slides over it.
#[derive(Debug)]
pub(super) struct Stream {
    unpacker: Unpacker,
    size: Option<u64>,
    buffer: Vec<u8>,
    /// The window is `buffer[start..end]`.
    start: usize,
    end: usize,
    ended: bool,
}

impl Stream {
    #[inline]
    fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn fill(&mut self, needed: usize) -> io::Result<bool> {
        while self.end - self.start < needed {
            if self.ended {
                return Ok(false);
            }
            self.make_room();
            match self.unpacker.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Moves the window to the front, or doubles the buffer if the window is all of it: then what a damaged length
    /// claims is not allocated before as much has really come.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize((self.buffer.len() * 2).max(BUFFER), 0);
        }
    }
}

/// The first bytes of a source, read ahead to see what it is.
#[derive(Debug, Default)]
struct Head {
    bytes: [u8; 4],
    len: usize,
    used: usize,
}

impl Head {
    fn read(source: &mut impl Read) -> io::Result<Self> {
        let mut head = Self::default();
        while head.len < head.bytes.len() {
            match source.read(&mut head.bytes[head.len..]) {
                Ok(0) => break,
                Ok(count) => head.len += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(head)
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The raw input: its first bytes again, then the rest, counted.
struct Source {
    head: Head,
    inner: Box<dyn Read + Send>,
    count: u64,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut left = &self.head.bytes()[self.head.used..];
        let count = if left.is_empty() { self.inner.read(buffer)? } else { left.read(buffer)? };
        if self.head.used < self.head.len {
            self.head.used += count;
        }
        self.count += count as u64;
        Ok(count)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("count", &self.count).finish_non_exhaustive()
    }
}

type Zstd = zstd::stream::read::Decoder<'static, BufReader<Source>>;

/// The raw input, unpacked.
enum Unpacker {
    Plain(Source),
    Gzip(Box<flate2::bufread::MultiGzDecoder<BufReader<Source>>>),
    Zstd(Box<Zstd>),
}

impl Unpacker {
    fn new(source: Source) -> Result<Self, OpenError> {
        let Some(compression) = compression_of(source.head.bytes()) else {
            return Ok(Self::Plain(source));
        };
        let source = BufReader::with_capacity(PACKED_BUFFER, source);
        Ok(match compression {
            Compression::Gzip => Self::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(source))),
            Compression::Zstd => {
                let decoder = Zstd::with_buffer(source).map_err(OpenError::NoMemory)?;
                Self::Zstd(Box::new(decoder))
            }
        })
    }

    fn compression(&self) -> Option<Compression> {
        match self {
            Self::Plain(_) => None,
            Self::Gzip(_) => Some(Compression::Gzip),
            Self::Zstd(_) => Some(Compression::Zstd),
        }
    }

    fn source(&self) -> &Source {
        match self {
            Self::Plain(source) => source,
            Self::Gzip(decoder) => decoder.get_ref().get_ref(),
            Self::Zstd(decoder) => decoder.get_ref().get_ref(),
        }
    }
}

impl Read for Unpacker {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker")
            .field("compression", &self.compression())
            .field("source", self.source())
            .finish_non_exhaustive()
    }
}

/// What the first bytes say about packing.
fn compression_of(start: &[u8]) -> Option<Compression> {
    match start {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        // A frame, or one of the frames that a reader is to skip.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
        _ => None,
    }
}
