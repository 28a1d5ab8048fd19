//! The log of a sensor's batches in a folder: its format, its reader, and what trims it.
//!
//! # Format
//!
//! `FOLDER/SENSOR/EPOCH/FIRST.batches` is a segment: EPOCH, and FIRST, the sequence of its first record, are 16
//! hexadecimal digits each. Numbers are little-endian.
//!
//! | bytes | of a segment |
//! |---|---|
//! | 8 | `CLbatch\n` |
//! | 4 | version, 1 |
//! | … | records |
//!
//! | bytes | of a record |
//! |---|---|
//! | 4 | length of the batch, at most [`MOST_BATCH`] |
//! | 4 | CRC-32 of all that follows |
//! | 8 | sequence |
//! | … | the batch |
//!
//! `FOLDER/SENSOR/trimmed` holds an epoch, a sequence and their CRC-32: the batches up to there are not needed any
//! more. It may be old or missing; then some batches are sent again. `FOLDER/SENSOR/lock` is the writer's.
//!
//! # Who may do what
//!
//! One process writes. Any number read, and any may remove whole segments that are not needed; so each looks at the
//! folder anew instead of remembering what is in it. A reader keeps a segment open that is removed under it.
//!
//! A record that is not whole is the end of a log, for now: its writer is at it, or was killed and will cut it off.
//! It is damage if a whole record follows it, or a later segment: the writer begins one only behind whole records.

use corelane_monitor::sensors::{MOST_BYTES, SensorName};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The longest batch, in bytes.
pub(crate) const MOST_BATCH: usize = MOST_BYTES;

/// Bytes of a segment before its first record.
pub(super) const HEADER: u64 = 12;

/// Bytes of a record before its batch.
pub(super) const RECORD: usize = 16;

const MAGIC: [u8; 8] = *b"CLbatch\n";
const VERSION: u32 = 1;

/// The folder of the aggregators' snapshots, beside those of the sensors.
pub(super) const AGGREGATORS: &str = "aggregators";

/// Whether a sensor may be named so: a [`SensorName`], and not `aggregators`.
pub(crate) fn is_sensor_name(name: &str) -> bool {
    name.parse::<SensorName>().is_ok() && name != AGGREGATORS
}

/// A batch of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The epoch that it belongs to.
    pub(crate) epoch: u64,
    /// Its number in the epoch, from 0.
    pub(crate) sequence: u64,
    /// What was appended.
    pub(crate) bytes: Vec<u8>,
}

/// A segment, as the folder showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) epoch: u64,
    pub(super) first: u64,
    pub(super) length: u64,
    pub(super) path: PathBuf,
}

/// The header of each segment.
pub(super) fn header() -> [u8; HEADER as usize] {
    let mut header = [0; HEADER as usize];
    header[..8].copy_from_slice(&MAGIC);
    header[8..].copy_from_slice(&VERSION.to_le_bytes());
    header
}

/// A record, from its sequence and its batch.
pub(super) fn record(sequence: u64, batch: &[u8]) -> Vec<u8> {
    let sequence = sequence.to_le_bytes();
    let mut record = Vec::with_capacity(RECORD + batch.len());
    record.extend_from_slice(&u32::try_from(batch.len()).expect("batches are shorter").to_le_bytes());
    record.extend_from_slice(&checksum(sequence, batch).to_le_bytes());
    record.extend_from_slice(&sequence);
    record.extend_from_slice(batch);
    record
}

fn checksum(sequence: [u8; 8], batch: &[u8]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&sequence);
    checksum.update(batch);
    checksum.finalize()
}

/// The folder of an epoch.
pub(super) fn epoch_path(folder: &Path, epoch: u64) -> PathBuf {
    folder.join(format!("{epoch:016x}"))
}

/// The file of a segment.
pub(super) fn segment_path(folder: &Path, epoch: u64, first: u64) -> PathBuf {
    epoch_path(folder, epoch).join(format!("{first:016x}.batches"))
}

/// The number that 16 hexadecimal digits, as these names have them, stand for.
fn number(name: &str) -> Option<u64> {
    let number = u64::from_str_radix(name, 16).ok()?;
    (format!("{number:016x}") == name).then_some(number)
}

/// What is in a folder that may not be there; names that are no text are of nothing here.
pub(super) fn entries(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

/// The segments of a sensor's folder in their order. Other files are left alone.
pub(super) fn segments(folder: &Path) -> io::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for epoch in entries(folder)?.iter().filter_map(|name| number(name)) {
        let of_epoch = epoch_path(folder, epoch);
        for name in entries(&of_epoch)? {
            let Some(first) = name.strip_suffix(".batches").and_then(number) else { continue };
            let path = of_epoch.join(name);
            match fs::metadata(&path) {
                Ok(metadata) => segments.push(Segment { epoch, first, length: metadata.len(), path }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    segments.sort_unstable_by_key(|segment| (segment.epoch, segment.first));
    Ok(segments)
}

/// Options of files that no other user reads, writes or locks: batches say who has tried what.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a folder that no other user enters, with those that it is in, unless they are there.
pub(super) fn create_folders(path: &Path) -> io::Result<()> {
    // A process that has given up its rights cannot even ask.
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Writes such a file anew.
pub(crate) fn write_private(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    private().write(true).create(true).truncate(true).open(path)?.write_all(bytes.as_ref())
}

/// Removes a file that may have gone already.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes what is not needed any more from a sensor's folder: all up to and with this batch. Only whole segments go,
/// and the last that holds a record stays, so that the writer finds out how far it was.
pub(super) fn trim(folder: &Path, epoch: u64, sequence: u64) -> io::Result<()> {
    let mut mark = [0; 20];
    mark[..8].copy_from_slice(&epoch.to_le_bytes());
    mark[8..16].copy_from_slice(&sequence.to_le_bytes());
    let checksum = crc32fast::hash(&mark[..16]);
    mark[16..].copy_from_slice(&checksum.to_le_bytes());
    // Not the sensor that has gone for good, and whose folder was removed, comes back by this.
    if trimmed(folder) < Some((epoch, sequence)) && folder.exists() {
        write_private(&folder.join("trimmed"), mark)?;
    }
    let segments = segments(folder)?;
    let last = segments.iter().rposition(|segment| segment.length > HEADER).unwrap_or(0);
    for pair in segments.windows(2).take(last) {
        let [segment, next] = pair else { unreachable!("windows of two") };
        let is_needless = segment.epoch < epoch
            || (segment.epoch == epoch && next.epoch == epoch && next.first <= sequence.saturating_add(1));
        if !is_needless {
            break;
        }
        remove(&segment.path)?;
        if next.epoch != segment.epoch {
            // It may hold what is not ours.
            let _ = fs::remove_dir(epoch_path(folder, segment.epoch));
        }
    }
    Ok(())
}

/// How far a sensor's folder was trimmed, as far as that is known.
pub(super) fn trimmed(folder: &Path) -> Option<(u64, u64)> {
    let mark: [u8; 20] = fs::read(folder.join("trimmed")).ok()?.try_into().ok()?;
    let part = |at: usize| u64::from_le_bytes(mark[at..at + 8].try_into().expect("eight bytes"));
    (crc32fast::hash(&mark[..16]).to_le_bytes() == mark[16..]).then(|| (part(0), part(8)))
}

/// What is at some place of a segment.
#[derive(Debug)]
pub(super) enum Found {
    /// A whole record, and where it ends.
    Batch { sequence: u64, bytes: Vec<u8>, end: u64 },
    /// A damaged record, and where the whole one behind it begins.
    Damaged { end: u64 },
    /// The end of the file.
    End,
    /// A part of a record, or a damaged one that no whole one follows.
    Torn,
}

/// What is at this place of a segment; after the header only.
pub(super) fn find(file: &mut File, offset: u64) -> io::Result<Found> {
    Ok(match read_one(file, offset)? {
        // The writer has gone on behind it.
        Found::Damaged { end } if matches!(read_one(file, end)?, Found::Batch { .. }) => Found::Damaged { end },
        Found::Damaged { .. } => Found::Torn,
        found => found,
    })
}

fn read_one(file: &mut File, offset: u64) -> io::Result<Found> {
    file.seek(SeekFrom::Start(offset))?;
    let mut head = [0; RECORD];
    match read_most(file, &mut head)? {
        0 => return Ok(Found::End),
        RECORD => {}
        _ => return Ok(Found::Torn),
    }
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let (length, expected) = (word(0) as usize, word(4));
    if length > MOST_BATCH {
        return Ok(Found::Torn);
    }
    let mut bytes = vec![0; length];
    if read_most(file, &mut bytes)? < length {
        return Ok(Found::Torn);
    }
    let sequence: [u8; 8] = head[8..].try_into().expect("eight bytes");
    let end = offset + (RECORD + length) as u64;
    Ok(match checksum(sequence, &bytes) == expected {
        true => Found::Batch { sequence: u64::from_le_bytes(sequence), bytes, end },
        false => Found::Damaged { end },
    })
}

/// Reads until the file or the room ends.
fn read_most(file: &mut File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// The beginning of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// Records follow.
    Header,
    /// It is not written yet.
    Torn,
    /// Another version's.
    Version(u32),
    /// Something else.
    Other,
}

/// How a segment begins.
pub(super) fn beginning(file: &mut File) -> io::Result<Beginning> {
    file.seek(SeekFrom::Start(0))?;
    let mut found = [0; HEADER as usize];
    if read_most(file, &mut found)? < found.len() {
        return Ok(Beginning::Torn);
    }
    let version = u32::from_le_bytes(found[8..].try_into().expect("four bytes"));
    Ok(match (found[..8] == MAGIC, version) {
        (true, VERSION) => Beginning::Header,
        (true, _) => Beginning::Version(version),
        (false, _) => Beginning::Other,
    })
}

/// A reader of one sensor's log, in any thread or process.
#[derive(Debug)]
pub(crate) struct Log {
    folder: PathBuf,
    /// The epoch, and the next sequence in it, that has not been given out; `None` before the first batch.
    position: Option<(u64, u64)>,
    open: Option<Open>,
    /// The epoch and the first sequence of the segment that was read last, to its end.
    past: Option<(u64, u64)>,
    damaged: u64,
}

/// The segment that is being read.
#[derive(Debug)]
struct Open {
    epoch: u64,
    first: u64,
    file: File,
    /// Where the next record begins; 0 while the header was not there.
    offset: u64,
    /// Whether a later segment was there already, so that this one does not grow any more.
    is_final: bool,
}

impl Log {
    /// A reader of the log of `sensor` in `folder`, which need not be there yet. It begins at the position, an epoch
    /// and the next sequence in it, or at what is there behind it; without one at the oldest batch.
    pub(crate) fn open(folder: &Path, sensor: &str, position: Option<(u64, u64)>) -> Log {
        Log { folder: folder.join(sensor), position, open: None, past: None, damaged: 0 }
    }

    /// The next batch, if there is a whole one. Sequences may be missing: what was dropped or damaged.
    ///
    /// # Errors
    ///
    /// A folder or a file that cannot be read, not that it is missing or damaged. The next call tries again.
    pub(crate) fn next(&mut self) -> io::Result<Option<Batch>> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(segment) = self.following()? else { return Ok(None) };
                match File::open(&segment.path) {
                    Ok(file) => {
                        let Segment { epoch, first, .. } = segment;
                        self.open = Some(Open { epoch, first, file, offset: 0, is_final: false });
                    }
                    // It was trimmed or dropped a moment ago.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                continue;
            };
            let found = match open.offset {
                0 => match beginning(&mut open.file)? {
                    Beginning::Header => {
                        open.offset = HEADER;
                        continue;
                    }
                    Beginning::Torn => Found::Torn,
                    Beginning::Version(_) | Beginning::Other => {
                        self.damaged += 1;
                        self.leave();
                        continue;
                    }
                },
                offset => find(&mut open.file, offset)?,
            };
            match found {
                Found::Batch { sequence, bytes, end } => {
                    open.offset = end;
                    let epoch = open.epoch;
                    if self.position.is_none_or(|position| (epoch, sequence) >= position) {
                        self.position = Some((epoch, sequence.saturating_add(1)));
                        return Ok(Some(Batch { epoch, sequence, bytes }));
                    }
                }
                Found::Damaged { end } => {
                    open.offset = end;
                    self.damaged += 1;
                }
                // Once a later segment is there, what this one holds is final, and has to be read once more.
                Found::End | Found::Torn if !open.is_final => {
                    let key = (open.epoch, open.first);
                    let is_final = segments(&self.folder)?.last().is_some_and(|last| (last.epoch, last.first) > key);
                    match &mut self.open {
                        Some(open) if is_final => open.is_final = true,
                        _ => return Ok(None),
                    }
                }
                Found::End => self.leave(),
                Found::Torn => {
                    self.damaged += 1;
                    self.leave();
                }
            }
        }
    }

    /// Where the next batch will be: the epoch, and the next sequence in it; `None` before the first batch.
    pub(crate) fn position(&self) -> Option<(u64, u64)> {
        self.position
    }

    /// How many records, or ends of segments, were skipped because they are damaged.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Ends the segment that is being read.
    fn leave(&mut self) {
        self.past = self.open.take().map(|open| (open.epoch, open.first));
    }

    /// The segment to read next.
    fn following(&self) -> io::Result<Option<Segment>> {
        let mut segments = segments(&self.folder)?;
        segments.retain(|segment| self.past.is_none_or(|past| (segment.epoch, segment.first) > past));
        let Some(position) = self.position else { return Ok(segments.into_iter().next()) };
        // That which holds the position; else the first behind it.
        let holds = |segment: &Segment| segment.epoch == position.0 && segment.first <= position.1;
        let at = segments.iter().rposition(holds);
        let at = at.or_else(|| segments.iter().position(|segment| (segment.epoch, segment.first) > position));
        Ok(at.map(|at| segments.swap_remove(at)))
    }
}
