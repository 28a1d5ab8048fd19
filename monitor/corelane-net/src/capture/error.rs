//! Errors and warnings about an input. No message names the file: the caller knows the name and writes it in front.

use std::fmt;
use std::io;

use super::record::LinkType;

/// The compression of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// One or more gzip members.
    Gzip,
    /// One or more zstd frames.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// Nothing of the input can be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The input could not be opened.
    Open(io::Error),
    /// The input is a directory.
    Directory,
    /// The input opened, but its first bytes could not be read or unpacked.
    Read {
        /// How the input is packed, if it is.
        compression: Option<Compression>,
        /// The message of the system or the unpacker.
        error: io::Error,
    },
    /// The input is packed by zstd, and the feature `zstd` is off.
    NoZstd,
    /// There is not enough memory to hold the input.
    NoMemory(io::Error),
    /// The input holds no bytes.
    Empty,
    /// The first bytes belong to no format known here.
    NotACapture {
        /// The first bytes; there may be fewer than four.
        start: Vec<u8>,
    },
    /// The input ends inside the header that every capture starts with.
    CutHeader {
        /// Bytes the header has.
        needed: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// The header that the capture starts with contradicts itself.
    BadHeader(&'static str),
    /// All frames have a link type that cannot be decoded.
    UnknownLink(LinkType),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => match error.kind() {
                io::ErrorKind::NotFound => f.write_str("no such file; check its name and folder"),
                io::ErrorKind::PermissionDenied => f.write_str("permission denied; get read access to it"),
                _ => write!(f, "cannot be opened: {error}"),
            },
            Self::Directory => f.write_str("is a directory, not a capture; name the files in it"),
            Self::Read { compression, error } => describe_input(f, *compression, error),
            Self::NoZstd => f.write_str(
                "is packed by zstd, and this program was built without it; `zstd -dc` unpacks it, or build corelane-net \
                 with its feature `zstd`",
            ),
            Self::NoMemory(error) => {
                write!(f, "not enough memory to hold the input: {error}; free some, or do not preload it")
            }
            Self::Empty => f.write_str("is empty, without even a capture's header; check what wrote it"),
            Self::NotACapture { start } => {
                f.write_str("is not a pcap or pcapng capture (starts with")?;
                for byte in start {
                    write!(f, " {byte:02x}")?;
                }
                f.write_str("); name a capture, plain or packed by gzip or zstd")
            }
            Self::CutHeader { needed, have } => {
                write!(f, "ends inside the capture's header ({have} of {needed} bytes); copy or capture it again")
            }
            Self::BadHeader(what) => write!(f, "the capture's header is damaged: {what}; copy or capture it again"),
            Self::UnknownLink(LinkType(link)) => {
                write!(
                    f,
                    "frames of link type {link} cannot be decoded; capture as Ethernet, 802.11, PPP, IP or Linux cooked"
                )
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(error) | Self::NoMemory(error) | Self::Read { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// A place in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The record, counted from 1.
    pub record: u64,
    /// The byte of the unpacked capture where the record or block starts, counted from 0.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} at byte {}", self.record, self.offset)
    }
}

/// A part of a record or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The fields that state how long it is.
    Header,
    /// All that follows them.
    Data,
}

/// The input ended early or is damaged. Everything that was whole before has been handed over.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The input ends inside a record. Nothing follows.
    Cut {
        /// The record.
        place: Place,
        /// The part that is cut.
        part: Part,
        /// Bytes the record or block has as far as is known, its header included.
        needed: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// A record claims to be longer than any frame can be. Nothing follows, as the start of the next record is not
    /// known.
    TooLong {
        /// The record.
        place: Place,
        /// The length it claims.
        length: u32,
        /// The longest length accepted in this capture.
        limit: u32,
    },
    /// A record cannot be distinguished from its neighbours. Nothing follows.
    Damaged {
        /// The record.
        place: Place,
        /// What contradicts itself.
        what: &'static str,
    },
    /// A record was skipped, and reading goes on. Only the first one of a section is reported; see
    /// [`Reader::skipped`](super::Reader::skipped).
    Skipped {
        /// The record.
        place: Place,
        /// Why.
        reason: SkipReason,
    },
    /// The input cannot be read or unpacked any further.
    Input {
        /// The record that would have been next.
        place: Place,
        /// How the input is packed, if it is.
        compression: Option<Compression>,
        /// The message of the system or the unpacker.
        error: io::Error,
    },
}

/// Why a record was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// The section describes no such interface, so the link type and the unit of time are unknown.
    NoInterface(u32),
    /// The record's block is too short for the length that it claims.
    Overrun,
}

impl ReadError {
    /// Where the input ended or is damaged.
    pub fn place(&self) -> Place {
        match self {
            Self::Cut { place, .. }
            | Self::TooLong { place, .. }
            | Self::Damaged { place, .. }
            | Self::Skipped { place, .. }
            | Self::Input { place, .. } => *place,
        }
    }

    /// Whether records may follow.
    pub fn goes_on(&self) -> bool {
        matches!(self, Self::Skipped { .. })
    }
}

/// The end of the message about damage behind which nothing can be read.
const REST: &str = ", so the rest is not read; copy or capture it again";

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place())?;
        match self {
            Self::Cut { part, needed, have, .. } => {
                match part {
                    Part::Header => write!(f, "the input ends inside the header ({have} of {needed} bytes)")?,
                    Part::Data => {
                        write!(f, "the input ends inside the data ({have} of {needed} bytes with the header)")?;
                    }
                }
                f.write_str("; if it was longer, copy it again")
            }
            Self::TooLong { length, limit, .. } => {
                write!(f, "a length of {length} bytes is above the limit of {limit}")?;
                f.write_str(REST)
            }
            Self::Damaged { what, .. } => write!(f, "{what}{REST}"),
            Self::Skipped { reason, .. } => match reason {
                SkipReason::NoInterface(id) => {
                    write!(f, "skipped, as the section has no interface {id}; check what wrote the capture")
                }
                SkipReason::Overrun => {
                    f.write_str("skipped, as its data do not fit into its block; check what wrote the capture")
                }
            },
            Self::Input { compression, error, .. } => describe_input(f, *compression, error),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Input { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// A warning for the user, although nothing was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// An interface has a link type that cannot be decoded; its frames count as undecoded.
    UnknownLink {
        /// The interface's number in its section.
        interface: usize,
        /// Its link type.
        link: LinkType,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLink { interface, link: LinkType(link) } => {
                write!(
                    f,
                    "frames of interface {interface} (link type {link}) cannot be decoded; all other frames are read"
                )
            }
        }
    }
}

fn describe_input(f: &mut fmt::Formatter<'_>, compression: Option<Compression>, error: &io::Error) -> fmt::Result {
    match compression {
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            write!(f, "the input ended early: {error}; read it while nothing changes it")
        }
        None => write!(f, "the input cannot be read: {error}; check where it comes from"),
        Some(packed) if error.kind() == io::ErrorKind::UnexpectedEof => {
            write!(f, "the {packed} data end early; copy or pack them again")
        }
        Some(packed) => write!(f, "the {packed} data are damaged: {error}; copy or pack them again"),
    }
}
