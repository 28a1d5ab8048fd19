//! The sources of bytes: a whole input in memory, or a stream that is read block by block.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use super::error::{Compression, OpenError};
use super::memory::{Bytes, Growing, Memory};
use super::step::LONGEST;

/// Bytes of a block. Only a record that does not fit gets a larger one.
const BLOCK: usize = 1 << 20;
/// The most lent blocks that are remembered. Such a block is filled again when no other handle holds it.
const REMEMBERED: usize = 16;
/// Bytes read at once from the source of a packed stream.
const PACKED_BUFFER: usize = 128 << 10;

/// The bytes from the reader's position on.
#[derive(Debug)]
pub(super) enum Input {
    /// All of them are at hand.
    Whole {
        bytes: Memory,
        at: usize,
        /// The error that ended loading early; it is returned when the bytes before it are used up.
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
        // Pipes, devices and some files that a kernel makes up have no length.
        if !facts.is_file() || facts.len() == 0 {
            return Self::from_stream(Box::new(file), None, preload);
        }
        Self::from_file(file, facts.len(), preload)
    }

    /// Makes an input of bytes that are in memory already.
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
        let head = Head::again(&mut file)?;
        if !preload || head.compression().is_some() {
            return Self::packed_or_plain(head, Inner::File(file), Some(size), preload);
        }
        let len = usize::try_from(size)
            .map_err(|_| OpenError::NoMemory(io::Error::other("it is larger than the address space")))?;
        let room = Growing::with_len(len).map_err(OpenError::NoMemory)?;
        Self::load(Unpacker::new(Source::new(head, Inner::File(file), Some(size)))?, room, false)
    }

    /// Makes an input of a source that can be read only once, from the front.
    pub(super) fn from_stream(
        mut inner: Box<dyn Read + Send>,
        size: Option<u64>,
        preload: bool,
    ) -> Result<Self, OpenError> {
        let head = Head::read(&mut inner).map_err(|error| OpenError::Read { compression: None, error })?;
        Self::packed_or_plain(head, Inner::Other(inner), size, preload)
    }

    fn packed_or_plain(head: Head, inner: Inner, size: Option<u64>, preload: bool) -> Result<Self, OpenError> {
        let unpacker = Unpacker::new(Source::new(head, inner, size))?;
        if preload {
            let room = Growing::unbounded().map_err(OpenError::NoMemory)?;
            return Self::load(unpacker, room, true);
        }
        Ok(Self::Stream(Stream::new(unpacker)))
    }

    pub(super) fn whole(bytes: Bytes) -> Self {
        Self::Whole { bytes: Memory::new(bytes), at: 0, failure: None, compression: None }
    }

    /// Reads everything into memory. A failure on the way keeps the bytes before it.
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

    /// The bytes that are at hand, from the position on.
    #[inline]
    pub(super) fn window(&self) -> &[u8] {
        match self {
            Self::Whole { bytes, at, .. } => &bytes[*at..],
            Self::Stream(stream) => stream.window(),
        }
    }

    /// The memory that the window lies in, if filling it keeps no reader waiting: then it holds as much as it can.
    pub(super) fn memory(&self) -> Option<&Memory> {
        match self {
            Self::Whole { bytes, .. } => Some(bytes),
            Self::Stream(stream) => stream.unpacker.source().is_file().then_some(&stream.block),
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

    /// Fills the window to at least `needed` bytes; false if the input ends before that.
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

    /// Whether the window can become longer.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Whether the input can be read once more.
    pub(super) fn rewinds(&self) -> bool {
        match self {
            Self::Whole { .. } => false,
            Self::Stream(stream) => matches!(&stream.unpacker, Unpacker::Plain(source) if source.is_file()),
        }
    }

    /// Goes back to the first byte of an input that [can be read once more](Input::rewinds).
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        if let Self::Stream(stream) = self
            && let Unpacker::Plain(source) = &mut stream.unpacker
        {
            source.rewind()?;
            (stream.start, stream.end, stream.ended) = (0, 0, false);
            stream.failure = None;
        }
        Ok(())
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        match self {
            Self::Whole { compression, .. } => *compression,
            Self::Stream(stream) => stream.unpacker.compression(),
        }
    }

    /// Bytes used, of those that [`Input::size`] counts.
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
            Self::Stream(stream) => stream.unpacker.source().size,
        }
    }
}

/// A stream that is read block by block.
///
/// A block that no other handle holds is filled again. A block that is held elsewhere stays as it is, and another one
/// follows it. The unused end of a block, the beginning of a record, is moved to the front of the next.
#[derive(Debug)]
pub(super) struct Stream {
    unpacker: Unpacker,
    block: Memory,
    /// The window is `block[start..end]`.
    start: usize,
    end: usize,
    /// Blocks that other handles hold, or held.
    lent: Vec<Memory>,
    ended: bool,
    /// The error that ended the stream; it is returned when the bytes before it are used up.
    failure: Option<io::Error>,
}

impl Stream {
    fn new(unpacker: Unpacker) -> Self {
        let block = Memory::with_room(0);
        Self { unpacker, block, start: 0, end: 0, lent: Vec::new(), ended: false, failure: None }
    }

    #[inline]
    fn window(&self) -> &[u8] {
        &self.block[self.start..self.end]
    }

    fn fill(&mut self, needed: usize) -> io::Result<bool> {
        if self.window().len() < needed && !self.ended {
            self.make_room(needed);
            self.read_on(needed);
        }
        if self.window().len() < needed { self.failure.take().map_or(Ok(false), Err) } else { Ok(true) }
    }

    /// Moves the window to the front of a block that may be written and has room for `needed` bytes.
    fn make_room(&mut self, needed: usize) {
        let len = self.end - self.start;
        // A large window gets twice its size: while the start of a capture is searched, it may be moved often.
        let room = needed.max(BLOCK).max((2 * len).min(LONGEST as usize));
        match self.block.get_mut() {
            Some(block) if block.len() == room => block.copy_within(self.start..self.end, 0),
            _ => {
                let mut next = self.take(room);
                let front = next.get_mut().expect("this is its only handle");
                front[..len].copy_from_slice(self.window());
                let before = std::mem::replace(&mut self.block, next);
                if before.len() == BLOCK && self.lent.len() < REMEMBERED {
                    self.lent.push(before);
                }
            }
        }
        (self.start, self.end) = (0, len);
    }

    /// Returns a block of `room` bytes that no other handle holds.
    fn take(&mut self, room: usize) -> Memory {
        if room > BLOCK {
            // A large block replaces the remembered ones, so that they do not add up.
            self.lent.clear();
        }
        let free = self.lent.iter_mut().position(|block| block.get_mut().is_some());
        free.map_or_else(|| Memory::with_room(room), |at| self.lent.swap_remove(at))
    }

    /// Reads until the window holds `needed` bytes. A file keeps no reader waiting, so it is read until the block is
    /// full.
    fn read_on(&mut self, needed: usize) {
        let least = if self.unpacker.source().is_file() { usize::MAX } else { needed };
        let block = self.block.get_mut().expect("this is its only handle");
        while self.end < block.len() && self.end - self.start < least {
            match self.unpacker.read(&mut block[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
            if self.ended {
                return;
            }
        }
    }
}

/// The first bytes of a source, read ahead to identify it.
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

    /// Reads the first bytes of a file, which is then at its first byte again.
    fn again(file: &mut File) -> Result<Self, OpenError> {
        let head = Self::read(file).and_then(|head| file.rewind().map(|()| Self { used: head.len, ..head }));
        head.map_err(|error| OpenError::Read { compression: None, error })
    }

    /// The compression that they show.
    fn compression(&self) -> Option<Compression> {
        compression_of(&self.bytes[..self.len])
    }
}

/// Whether a file is packed. Leaves the file at its first byte.
pub(super) fn is_packed(file: &mut File) -> Result<bool, OpenError> {
    Head::again(file).map(|head| head.compression().is_some())
}

/// The source under the counter.
enum Inner {
    /// A file can be read again, and keeps no reader waiting.
    File(File),
    Other(Box<dyn Read + Send>),
}

/// The raw input: its first bytes again, then the rest; counts the bytes.
struct Source {
    head: Head,
    inner: Inner,
    count: u64,
    /// The number of all bytes, if it is known.
    size: Option<u64>,
}

impl Source {
    fn new(head: Head, inner: Inner, size: Option<u64>) -> Self {
        Self { head, inner, count: 0, size }
    }

    fn is_file(&self) -> bool {
        matches!(self.inner, Inner::File(_))
    }

    fn rewind(&mut self) -> io::Result<()> {
        if let Inner::File(file) = &mut self.inner {
            file.rewind()?;
            self.count = 0;
        }
        Ok(())
    }
}

impl Read for Source {
    /// Ignores bytes that were appended to a file since it was opened.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size.map_or(u64::MAX, |size| size.saturating_sub(self.count));
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..most];
        let mut head = &self.head.bytes[self.head.used..self.head.len];
        let count = match &mut self.inner {
            _ if !head.is_empty() => {
                let count = head.read(buffer)?;
                self.head.used += count;
                count
            }
            Inner::File(file) => file.read(buffer)?,
            Inner::Other(inner) => inner.read(buffer)?,
        };
        self.count += count as u64;
        match self.size {
            Some(size) if count == 0 && most > 0 => {
                let what = format!("{} of {size} bytes are there", self.count);
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, what))
            }
            _ => Ok(count),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("count", &self.count).field("size", &self.size).finish_non_exhaustive()
    }
}

#[cfg(feature = "zstd")]
type Zstd = zstd::stream::read::Decoder<'static, BufReader<Source>>;

/// The raw input, unpacked.
enum Unpacker {
    Plain(Source),
    Gzip(Box<flate2::bufread::MultiGzDecoder<BufReader<Source>>>),
    #[cfg(feature = "zstd")]
    Zstd(Box<Zstd>),
}

impl Unpacker {
    fn new(source: Source) -> Result<Self, OpenError> {
        let Some(compression) = source.head.compression() else {
            return Ok(Self::Plain(source));
        };
        let source = BufReader::with_capacity(PACKED_BUFFER, source);
        Ok(match compression {
            Compression::Gzip => Self::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(source))),
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => return Err(OpenError::NoZstd),
            #[cfg(feature = "zstd")]
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
            #[cfg(feature = "zstd")]
            Self::Zstd(_) => Some(Compression::Zstd),
        }
    }

    fn source(&self) -> &Source {
        match self {
            Self::Plain(source) => source,
            Self::Gzip(decoder) => decoder.get_ref().get_ref(),
            #[cfg(feature = "zstd")]
            Self::Zstd(decoder) => decoder.get_ref().get_ref(),
        }
    }
}

impl Read for Unpacker {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            #[cfg(feature = "zstd")]
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

/// The compression that the first bytes show.
fn compression_of(start: &[u8]) -> Option<Compression> {
    match start {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        // A frame, or one of the frames that a reader has to skip.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
        _ => None,
    }
}
