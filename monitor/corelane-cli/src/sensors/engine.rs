//! What an aggregator asks of an engine, whatever carries the batches.

use super::log::is_sensor_name;
use crate::exit::left_out;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What is said of a server's name without the feature `nats`.
pub(super) fn without_nats() -> String {
    left_out("NATS", "nats")
}

/// Where batches go to and come from, as `--publish` and `--from` name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `file:DIR`: a folder that sensors and aggregators of one machine share.
    Files(PathBuf),
    /// `nats://HOST:PORT`, or `tls://HOST:PORT`: a NATS server with JetStream; several with commas between them are
    /// those of a cluster.
    Nats(String),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(folder) = text.strip_prefix("file:") {
            return match folder {
                "" => Err("file: needs a folder, as in file:/var/lib/corelane".into()),
                folder => Ok(Place::Files(folder.into())),
            };
        }
        let servers = text.split(',').map(server).collect::<Result<Vec<_>, _>>()?;
        if !cfg!(feature = "nats") {
            return Err(without_nats());
        }
        Ok(Place::Nats(servers.join(",")))
    }
}

/// The URL of a server, without what is not needed.
fn server(text: &str) -> Result<String, String> {
    let Some(server) = ["nats://", "tls://"].iter().find_map(|scheme| text.strip_prefix(scheme)) else {
        return Err("it has to begin with file:, nats:// or tls://".into());
    };
    let server = server.strip_suffix('/').unwrap_or(server);
    // The user's part may be a secret: no message repeats it.
    if server.contains('@') {
        return Err("a command line is no place for a password: give a credentials file, or the token in the \
                        environment variable CORELANE_NATS_TOKEN"
            .into());
    }
    if server.contains(['/', '?', '#', ' ']) {
        return Err("behind the host and the port nothing may follow".into());
    }
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (server, None),
    };
    if host.is_empty() || (host.contains(':') && !(host.starts_with('[') && host.ends_with(']'))) {
        return Err("it needs a host, as in nats://127.0.0.1:4222 or nats://[::1]:4222".into());
    }
    if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return Err("its port has to be a number from 1 to 65535".into());
    }
    let scheme = &text[..text.find(':').expect("it begins with a scheme") + 3];
    Ok(format!("{scheme}{server}"))
}

impl Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Files(folder) => write!(out, "file:{}", folder.display()),
            Place::Nats(url) => out.write_str(url),
        }
    }
}

/// An aggregator's state, and where in the batches it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// For [`begin`](Engine::begin): the engine's own.
    pub(crate) position: Vec<u8>,
    /// The state, as it was given to [`store`](Engine::store).
    pub(crate) bytes: Vec<u8>,
}

/// What [`next`](Engine::next) found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The next batch. Nothing is said of its content: it may be anything that a peer sent.
    Batch(Vec<u8>),
    /// None came within the time.
    Nothing,
}

/// What carries the batches of all sensors to an aggregator, and keeps its snapshots.
///
/// The batches of one sensor come in the order of their epochs and sequences, each at least once; one that comes again
/// may be followed by others that come again. Between sensors there is no order.
pub(crate) trait Engine: Send {
    /// The last stored snapshot of these shards.
    ///
    /// # Errors
    ///
    /// A server that cannot be reached for some seconds, a store that cannot be read, or a snapshot that is damaged.
    fn load(&mut self, shards: RangeInclusive<u8>) -> Result<Option<Snapshot>, EngineError>;

    /// The shards of all stored snapshots.
    ///
    /// # Errors
    ///
    /// A server that cannot be reached for some seconds, or a store that cannot be read.
    fn stored(&mut self) -> Result<Vec<RangeInclusive<u8>>, EngineError>;

    /// A position behind which is all that is behind any of these; `None` if only the oldest batch is one.
    ///
    /// # Errors
    ///
    /// A position from another engine.
    fn least(&self, positions: &[&[u8]]) -> Result<Option<Vec<u8>>, EngineError>;

    /// Begins to read behind `position`; without one at the oldest batch that is there.
    ///
    /// # Errors
    ///
    /// A position from another engine.
    fn begin(&mut self, position: Option<&[u8]>) -> Result<(), EngineError>;

    /// The next batch, for which it waits at most this long.
    ///
    /// # Errors
    ///
    /// Those of files that cannot be read. A server that cannot be reached is no error: it is waited for.
    fn next(&mut self, wait: Duration) -> Result<Read, EngineError>;

    /// The sensor in whose folder, or as whose message, the last batch came.
    fn sensor(&self) -> &str;

    /// That of the last batch that [`next`](Engine::next) gave out.
    fn position(&self) -> Vec<u8>;

    /// Whether all that was there a moment ago, two seconds at most, has been given out: so that a sensor's silence
    /// before that means something. It does not while a server cannot be reached, or the reader has fallen behind.
    fn is_caught_up(&self) -> bool;

    /// Stores a snapshot of these shards with [`position`](Engine::position), instead of the one that is there; then
    /// removes the batches that no stored snapshot needs, if those cover all shards.
    ///
    /// # Errors
    ///
    /// As of a full disk, or a server that cannot be reached for some seconds. Then either snapshot is there, whole;
    /// and what could not be removed is by a later call.
    fn store(&mut self, shards: RangeInclusive<u8>, snapshot: &[u8]) -> Result<(), EngineError>;

    /// Forgets how far the other sensors have come, where their names cost those that make them nothing.
    fn retain(&mut self, _is_known: &dyn Fn(&str) -> bool) {}

    /// How many records or messages could not be read at all.
    fn damaged(&self) -> u64;

    /// Why no batches come, if that is so.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// How old the knowledge may be that [`is_caught_up`](Engine::is_caught_up) rests on.
pub(super) const FRESH: Duration = Duration::from_secs(2);

/// Why an engine did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum EngineError {
    /// A file, or what was tried with it.
    Io(PathBuf, io::Error),
    /// A stored snapshot that is damaged, or another version's: its place.
    Snapshot(String),
    /// A position from another engine.
    Position,
    /// There is no connection to the server: its URL, and why.
    Disconnected(String, String),
    /// What the server was asked, and what it answered.
    Server(&'static str, String),
}

impl Display for EngineError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Io(path, error) => write!(out, "{}: {error}", path.display()),
            EngineError::Snapshot(place) => {
                write!(out, "{place} is damaged, or of another version: remove it to begin without a snapshot")
            }
            EngineError::Position => {
                out.write_str("the snapshot's position belongs to another engine: remove the snapshot")
            }
            EngineError::Disconnected(url, why) => write!(out, "{url} is not connected: {why}"),
            EngineError::Server(what, why) => write!(out, "the NATS server could not {what}: {why}"),
        }
    }
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            EngineError::Io(_, error) => Some(error),
            _ => None,
        }
    }
}

/// What a stored snapshot begins with.
const MAGIC: [u8; 8] = *b"corelane";

/// The version of what follows.
const VERSION: u32 = 1;

/// Magic, version, length of the position, length of the state, CRC-32 of the lengths and the position, CRC-32 of the
/// state; numbers are little-endian.
pub(super) const SNAPSHOT_HEADER: usize = 8 + 4 + 4 + 8 + 4 + 4;

/// The longest position: thousands of sensors.
const MOST_POSITION: usize = 16 << 20;

/// What a stored snapshot begins with: the header and the position. The state follows.
pub(super) fn snapshot_head(position: &[u8], bytes: &[u8]) -> Vec<u8> {
    let position_length = u32::try_from(position.len()).expect("a position is far shorter").to_le_bytes();
    let length = (bytes.len() as u64).to_le_bytes();
    let mut head = Vec::with_capacity(SNAPSHOT_HEADER + position.len());
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&position_length);
    head.extend_from_slice(&length);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&position_length);
    checksum.update(&length);
    checksum.update(position);
    head.extend_from_slice(&checksum.finalize().to_le_bytes());
    head.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    head.extend_from_slice(position);
    head
}

/// The position of a stored snapshot, of which it reads no more than the head; `None` if that is damaged.
pub(super) fn read_position(from: &mut impl io::Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; SNAPSHOT_HEADER];
    if !fill(from, &mut head)? || head[..8] != MAGIC || head[8..12] != VERSION.to_le_bytes() {
        return Ok(None);
    }
    let length = u32::from_le_bytes(head[12..16].try_into().expect("four bytes")) as usize;
    if length > MOST_POSITION {
        return Ok(None);
    }
    let mut position = vec![0; length];
    if !fill(from, &mut position)? {
        return Ok(None);
    }
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&head[12..24]);
    checksum.update(&position);
    Ok((checksum.finalize().to_le_bytes() == head[24..28]).then_some(position))
}

/// A stored snapshot from its bytes; `None` if it is damaged.
pub(super) fn read_snapshot(mut stored: Vec<u8>) -> Option<Snapshot> {
    let position = read_position(&mut &stored[..]).expect("a slice is read without errors")?;
    let length = u64::from_le_bytes(stored[16..24].try_into().expect("eight bytes"));
    let checksum: [u8; 4] = stored[28..32].try_into().expect("four bytes");
    let bytes = stored.split_off(SNAPSHOT_HEADER + position.len());
    let is_whole = bytes.len() as u64 == length && crc32fast::hash(&bytes).to_le_bytes() == checksum;
    is_whole.then_some(Snapshot { position, bytes })
}

/// Whether there were so many bytes.
fn fill(from: &mut impl io::Read, bytes: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// For each sensor an epoch, and a sequence in it.
pub(super) type Positions = BTreeMap<String, (u64, u64)>;

/// Appends the positions of sensors to the bytes of a position.
pub(super) fn put_positions(bytes: &mut Vec<u8>, positions: &Positions) {
    for (name, (epoch, sequence)) in positions {
        bytes.push(u8::try_from(name.len()).expect("names have at most 64 bytes"));
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&epoch.to_le_bytes());
        bytes.extend_from_slice(&sequence.to_le_bytes());
    }
}

/// The positions that [`put_positions`] wrote; `None` if these bytes are something else.
pub(super) fn take_positions(mut rest: &[u8]) -> Option<Positions> {
    let mut positions = Positions::new();
    while let Some((&length, behind)) = rest.split_first() {
        let (name, behind) = behind.split_at_checked(usize::from(length))?;
        let (epoch, behind) = behind.split_first_chunk()?;
        let (sequence, behind) = behind.split_first_chunk()?;
        let name = std::str::from_utf8(name).ok().filter(|name| is_sensor_name(name))?;
        positions.insert(name.into(), (u64::from_le_bytes(*epoch), u64::from_le_bytes(*sequence)));
        rest = behind;
    }
    Some(positions)
}

/// The name of a snapshot by its shards: `A-B`.
pub(crate) fn shards_name(shards: &RangeInclusive<u8>) -> String {
    format!("{}-{}", shards.start(), shards.end())
}

/// The shards that such a name means.
pub(super) fn shards_of(name: &str) -> Option<RangeInclusive<u8>> {
    let (first, last) = name.split_once('-')?;
    let shards = first.parse().ok()?..=last.parse().ok()?;
    (!shards.is_empty() && shards_name(&shards) == name).then_some(shards)
}

/// Whether these ranges leave no shard out.
pub(super) fn cover_all<'a>(ranges: impl Iterator<Item = &'a RangeInclusive<u8>>) -> bool {
    let mut covered = [false; 256];
    for shards in ranges {
        covered[usize::from(*shards.start())..=usize::from(*shards.end())].fill(true);
    }
    covered.iter().all(|&covered| covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        for (text, place) in
            [("file:/var/lib/x", Place::Files("/var/lib/x".into())), ("file:x", Place::Files("x".into()))]
        {
            assert_eq!(text.parse(), Ok(place), "{text}");
        }
        for (text, place) in [
            ("nats://127.0.0.1:4222", Place::Nats("nats://127.0.0.1:4222".into())),
            ("nats://host/", Place::Nats("nats://host".into())),
            ("tls://[::1]:4222", Place::Nats("tls://[::1]:4222".into())),
            ("tls://[::1]", Place::Nats("tls://[::1]".into())),
            ("nats://a,nats://b:4223/,tls://c", Place::Nats("nats://a,nats://b:4223,tls://c".into())),
        ] {
            let read = if cfg!(feature = "nats") { Ok(place) } else { Err(without_nats()) };
            assert_eq!(text.parse(), read, "{text}");
        }
        for (text, part) in [
            ("", "begin with"),
            ("http://host", "begin with"),
            ("/var/lib", "begin with"),
            ("file:", "needs a folder"),
            ("nats://", "needs a host"),
            ("nats://:4222", "needs a host"),
            ("nats://::1", "needs a host"),
            ("nats://host:0", "port"),
            ("nats://host:65536", "port"),
            ("nats://host:", "port"),
            ("nats://host/x", "nothing may follow"),
            ("nats://a,b", "begin with"),
            ("nats://a,", "begin with"),
            ("nats://a,file:b", "begin with"),
            ("nats://a,nats://secret@b", "no place for a password"),
            ("nats://secret@host", "no place for a password"),
            ("tls://user:secret@host", "no place for a password"),
        ] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains(part) && !error.contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn a_snapshot_that_lacks_or_changes_a_byte_is_none() {
        let (position, bytes) = (b"position".to_vec(), b"state of some kind".to_vec());
        let mut stored = snapshot_head(&position, &bytes);
        stored.extend_from_slice(&bytes);
        assert_eq!(read_position(&mut &stored[..]).unwrap(), Some(position.clone()));
        assert_eq!(read_snapshot(stored.clone()), Some(Snapshot { position, bytes }));
        for length in 0..stored.len() {
            assert_eq!(read_snapshot(stored[..length].to_vec()), None, "cut at {length}");
            let mut other = stored.clone();
            other[length] ^= 0x40;
            assert_eq!(read_snapshot(other), None, "changed at {length}");
        }
        stored.push(0);
        assert_eq!(read_snapshot(stored), None, "longer");
    }

    #[test]
    fn ranges_of_shards_have_names() {
        assert_eq!(shards_of("0-255"), Some(0..=255));
        assert_eq!(shards_of(&shards_name(&(7..=7))), Some(7..=7));
        for name in ["", "0", "0-256", "-1-3", "3-2", "00-255", "0-255.new", "+1-2"] {
            assert_eq!(shards_of(name), None, "{name}");
        }
        assert!(cover_all([0..=99, 90..=254, 255..=255].iter()));
        assert!(!cover_all([0..=99, 101..=255].iter()));
        assert!(!cover_all([].iter()));
    }
}
