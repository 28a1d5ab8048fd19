//! The writer of a sensor's log: what was appended is there after the process was killed, and the disk has a bound.

use super::log::{
    Beginning, Found, HEADER, MOST_BATCH, RECORD, Segment, beginning, create_folders, epoch_path, find, header,
    is_sensor_name, private, record, remove, segment_path, segments, trimmed,
};
use std::fmt::{self, Display};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes after which a segment is followed by another; fewer if the bound is less than eight of them.
const SEGMENT: u64 = 8 << 20;

/// The least bound: the segment that is written, which stays, and a batch beside it have to have room.
pub(crate) const LEAST_BYTES: u64 = 2 << 20;

/// What becomes of a batch that has no room within the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The oldest segments go. For live sensors, whose packets do not wait.
    DropOldest,
    /// It is refused with [`SpoolError::Full`]. For sensors that read files, which try again later.
    Wait,
}

/// A log that is written. It is the only one on its folder, and survives its process at any moment.
///
/// A power loss may take what the system had not yet written to the disk.
#[derive(Debug)]
pub(crate) struct Spool {
    /// `FOLDER/SENSOR`.
    folder: PathBuf,
    most_bytes: u64,
    segment_bytes: u64,
    full: Full,
    last: Option<(u64, u64)>,
    /// The newest epoch of which there is a segment.
    newest: Option<u64>,
    /// The epoch and the sequence of the next batch; `None` before an epoch was begun.
    next: Option<(u64, u64)>,
    /// The segment that is written.
    open: Option<Open>,
    /// The length of all segments; they may be fewer, as others trim.
    total: u64,
    cut: u64,
    _lock: File,
    /// Bytes that still fit on the disk, where a test says so.
    #[cfg(test)]
    room: Option<usize>,
}

#[derive(Debug)]
struct Open {
    segment: Segment,
    file: File,
    /// Whether bytes of a failed attempt may be behind the length.
    is_torn: bool,
}

impl Spool {
    /// Opens the log of `sensor` in `folder`, or makes it. What a killed process left behind the last whole record is
    /// cut off. All segments together have at most `most_bytes`, of which `full` says what it means.
    ///
    /// # Errors
    ///
    /// A name or a bound that cannot be; a log that another process writes; files that cannot be read or written, or
    /// are something else.
    pub(crate) fn open(folder: &Path, sensor: &str, most_bytes: u64, full: Full) -> Result<Spool, SpoolError> {
        if !is_sensor_name(sensor) {
            return Err(SpoolError::Name(sensor.into()));
        }
        if most_bytes < LEAST_BYTES {
            return Err(SpoolError::Bound(most_bytes));
        }
        let folder = folder.join(sensor);
        let failed = |error| SpoolError::Io(folder.clone(), error);
        create_folders(&folder).map_err(failed)?;
        let lock = lock(&folder)?;
        let found = segments(&folder).map_err(failed)?;
        // A process that has given up its rights leaves empty ones behind.
        for entry in fs::read_dir(&folder).map_err(failed)?.flatten() {
            let _ = fs::remove_dir(entry.path());
        }
        let mut spool = Spool {
            most_bytes,
            segment_bytes: SEGMENT.min(most_bytes / 8),
            full,
            last: None,
            newest: found.last().map(|segment| segment.epoch),
            next: None,
            open: None,
            total: found.iter().map(|segment| segment.length).sum(),
            cut: 0,
            _lock: lock,
            #[cfg(test)]
            room: None,
            folder,
        };
        for (at, segment) in found.into_iter().rev().enumerate() {
            // Only the newest can be torn. Those before it are looked at where it has no record.
            if spool.recover(segment, at == 0)? {
                break;
            }
        }
        Ok(spool)
    }

    /// Finds the last batch of a segment, or what its name says of it. Says whether there is one.
    fn recover(&mut self, segment: Segment, is_newest: bool) -> Result<bool, SpoolError> {
        let path = segment.path.clone();
        let failed = |error| SpoolError::Io(path.clone(), error);
        let mut file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed)?;
        let mut end = 0;
        let mut last = segment.first.checked_sub(1);
        match beginning(&mut file).map_err(failed)? {
            Beginning::Torn => {}
            Beginning::Version(version) => return Err(SpoolError::Version(path, version)),
            Beginning::Other => return Err(SpoolError::Other(path)),
            Beginning::Header => {
                end = HEADER;
                loop {
                    match find(&mut file, end).map_err(failed)? {
                        Found::Batch { sequence, end: behind, .. } => {
                            last = Some(sequence);
                            end = behind;
                        }
                        Found::Damaged { end: behind } => end = behind,
                        Found::End | Found::Torn => break,
                    }
                }
            }
        }
        let Some(last) = last else {
            // A first segment without a record: its epoch has to be begun again.
            return Ok(false);
        };
        self.last = Some((segment.epoch, last));
        if is_newest {
            self.next = Some((segment.epoch, last.saturating_add(1)));
            self.cut = segment.length - end;
            self.total -= self.cut;
            let segment = Segment { length: end, ..segment };
            self.open = Some(Open { segment, file, is_torn: true });
            self.mend()?;
        }
        Ok(true)
    }

    /// The epoch and the sequence of the last batch that was appended, in this process or before; `None` if there was
    /// none.
    pub(crate) fn last(&self) -> Option<(u64, u64)> {
        self.last
    }

    /// Bytes behind the last whole record that were cut off when the log was opened.
    #[cfg(test)]
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    /// Begins an epoch: the next batch has the sequence 0. Without it the batches go on in the epoch of
    /// [`last`](Spool::last).
    ///
    /// # Errors
    ///
    /// An epoch that is not larger than all that were begun before; one of which no batch was appended may be begun
    /// again.
    pub(crate) fn begin(&mut self, epoch: u64) -> Result<(), SpoolError> {
        let newest = self.newest.max(self.next.map(|next| next.0));
        if newest.is_some_and(|newest| epoch < newest) || self.last.is_some_and(|last| epoch <= last.0) {
            return Err(SpoolError::Epoch(epoch));
        }
        // Now, as a process that has given up its rights makes no folders.
        let path = epoch_path(&self.folder, epoch);
        create_folders(&path).map_err(|error| SpoolError::Io(path, error))?;
        self.next = Some((epoch, 0));
        self.open = None;
        Ok(())
    }

    /// Appends a batch of at most [`MOST_BATCH`] bytes with the next sequence. Says how many batches, that were not
    /// [trimmed](Spool::trim), went for it.
    ///
    /// # Errors
    ///
    /// - [`SpoolError::Full`] from a spool that waits.
    /// - [`SpoolError::Io`], as of a full disk. The log is whole, and the same batch may be tried again.
    /// - No epoch was begun, or the batch is too long.
    pub(crate) fn append(&mut self, batch: &[u8]) -> Result<u64, SpoolError> {
        let Some((epoch, sequence)) = self.next else { return Err(SpoolError::NoEpoch) };
        if batch.len() > MOST_BATCH {
            return Err(SpoolError::Long(batch.len()));
        }
        let length = (RECORD + batch.len()) as u64;
        let has_room =
            |open: &Open| open.segment.length <= HEADER || open.segment.length + length <= self.segment_bytes;
        let needs_segment = !self.open.as_ref().is_some_and(has_room);
        let needed = length + if needs_segment { HEADER } else { 0 };
        let mut dropped = 0;
        if self.total + needed > self.most_bytes {
            // Others trim too.
            let found = segments(&self.folder).map_err(|error| SpoolError::Io(self.folder.clone(), error))?;
            self.total = found.iter().map(|segment| segment.length).sum();
            if self.total + needed > self.most_bytes {
                match self.full {
                    Full::Wait => return Err(SpoolError::Full),
                    Full::DropOldest => dropped = self.drop_oldest(&found, needed, needs_segment)?,
                }
            }
        }
        self.write(needs_segment, epoch, sequence, &record(sequence, batch))?;
        self.last = Some((epoch, sequence));
        self.next = Some((epoch, sequence.saturating_add(1)));
        Ok(dropped)
    }

    /// Removes all up to and with this batch, as far as whole segments hold nothing else. The last segment stays.
    ///
    /// # Errors
    ///
    /// Those of the files; another call may succeed.
    #[cfg(test)]
    pub(crate) fn trim(&self, epoch: u64, sequence: u64) -> Result<(), SpoolError> {
        super::log::trim(&self.folder, epoch, sequence).map_err(|error| SpoolError::Io(self.folder.clone(), error))
    }

    /// Removes the oldest segments, until so many bytes more are within the bound. Says how many batches went that
    /// were not trimmed.
    fn drop_oldest(&mut self, found: &[Segment], needed: u64, is_left: bool) -> Result<u64, SpoolError> {
        let needless = trimmed(&self.folder);
        let mut dropped = 0;
        for (at, segment) in found.iter().enumerate() {
            let is_written = self.open.as_ref().is_some_and(|open| open.segment.path == segment.path);
            // Where the last batch is, a restart has to find.
            if self.total + needed <= self.most_bytes || (is_written && !is_left) {
                break;
            }
            let failed = |error| SpoolError::Io(segment.path.clone(), error);
            dropped += match found.get(at + 1).filter(|next| next.epoch == segment.epoch) {
                Some(next) => {
                    let begin = match needless {
                        Some((epoch, _)) if epoch > segment.epoch => next.first,
                        Some((epoch, sequence)) if epoch == segment.epoch => sequence.saturating_add(1),
                        _ => segment.first,
                    };
                    next.first.saturating_sub(begin.max(segment.first))
                }
                None => count(segment, needless).map_err(failed)?,
            };
            remove(&segment.path).map_err(failed)?;
            self.total -= segment.length;
            if found.get(at + 1).is_none_or(|next| next.epoch != segment.epoch) {
                // It is not empty if it is written, or holds what is not ours.
                let _ = fs::remove_dir(epoch_path(&self.folder, segment.epoch));
            }
        }
        Ok(dropped)
    }

    /// Appends a record, in a new segment if that is needed.
    fn write(&mut self, needs_segment: bool, epoch: u64, sequence: u64, record: &[u8]) -> Result<(), SpoolError> {
        if needs_segment {
            let path = segment_path(&self.folder, epoch, sequence);
            let failed = |error| SpoolError::Io(path.clone(), error);
            let folder = epoch_path(&self.folder, epoch);
            if !folder.is_dir() {
                create_folders(&folder).map_err(failed)?;
            }
            // It may be there, without a record: that of a process that was killed, or a disk that was full.
            let file = private().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
            self.newest = self.newest.max(Some(epoch));
            let segment = Segment { epoch, first: sequence, length: 0, path };
            self.open = Some(Open { segment, file, is_torn: true });
        }
        self.mend()?;
        let open = self.open.as_mut().expect("there is a segment");
        open.is_torn = true;
        #[cfg(test)]
        let room = self.room.unwrap_or(usize::MAX);
        #[cfg(not(test))]
        let room = usize::MAX;
        let begun = &record[..record.len().min(room)];
        let written = open.file.write_all(begun).and_then(|()| match begun.len() == record.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        });
        if let Err(error) = written {
            let path = open.segment.path.clone();
            // If this fails too, the next attempt cuts first.
            let _ = self.mend();
            return Err(SpoolError::Io(path, error));
        }
        open.is_torn = false;
        open.segment.length += record.len() as u64;
        self.total += record.len() as u64;
        Ok(())
    }

    /// Makes the segment end where its last whole record does, and begin with its header.
    fn mend(&mut self) -> Result<(), SpoolError> {
        use std::io::{Seek, SeekFrom};
        let Some(open) = self.open.as_mut().filter(|open| open.is_torn) else { return Ok(()) };
        let Open { segment, file, .. } = open;
        let mut mend = || {
            file.set_len(segment.length)?;
            file.seek(SeekFrom::Start(segment.length))?;
            if segment.length == 0 {
                #[cfg(test)]
                if self.room.is_some_and(|room| room < HEADER as usize) {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                file.write_all(&header())?;
                segment.length = HEADER;
                self.total += HEADER;
            }
            Ok(())
        };
        mend().map_err(|error| SpoolError::Io(segment.path.clone(), error))?;
        open.is_torn = false;
        Ok(())
    }
}

/// How many batches of a segment are behind the given one.
fn count(segment: &Segment, behind: Option<(u64, u64)>) -> io::Result<u64> {
    let mut file = match File::open(&segment.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        file => file?,
    };
    let (mut end, mut batches) = (HEADER, 0);
    loop {
        match find(&mut file, end)? {
            Found::Batch { sequence, end: next, .. } => {
                batches += u64::from(Some((segment.epoch, sequence)) > behind);
                end = next;
            }
            Found::Damaged { end: next } => end = next,
            Found::End | Found::Torn => return Ok(batches),
        }
    }
}

/// Locks the folder for as long as the file is open.
fn lock(folder: &Path) -> Result<File, SpoolError> {
    let path = folder.join("lock");
    let mut options = private();
    options.write(true).create(true).truncate(false);
    // No other handle there may be.
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
    let file = match options.open(&path) {
        #[cfg(windows)]
        Err(error) if error.raw_os_error() == Some(32) => return Err(SpoolError::Locked(folder.into())),
        file => file.map_err(|error| SpoolError::Io(path.clone(), error))?,
    };
    // Whoever may read it may lock it, and so may end this sensor: one of an earlier version too.
    #[cfg(unix)]
    let _ = file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600));
    match crate::output::lock(&file) {
        Ok(true) => Ok(file),
        Ok(false) => Err(SpoolError::Locked(folder.into())),
        Err(error) => Err(SpoolError::Io(path, error)),
    }
}

/// Why a log could not be opened or written.
#[derive(Debug)]
pub(crate) enum SpoolError {
    /// A name that no sensor may have.
    Name(String),
    /// A bound below [`LEAST_BYTES`].
    Bound(u64),
    /// Another process writes in this folder.
    Locked(PathBuf),
    /// A file that is no segment.
    Other(PathBuf),
    /// A segment of another version.
    Version(PathBuf, u32),
    /// There is no room within the bound, and nothing may go.
    Full,
    /// A batch of so many bytes.
    Long(usize),
    /// No epoch was begun.
    NoEpoch,
    /// An epoch that is not larger than those before.
    Epoch(u64),
    /// A file, or what was tried with it.
    Io(PathBuf, io::Error),
}

impl Display for SpoolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpoolError::Name(name) => write!(
                out,
                "a sensor cannot be named {name:?}: a name has 1 to 64 letters, digits, _ or -, and is not aggregators"
            ),
            SpoolError::Bound(bytes) => {
                write!(out, "a spool of {bytes} bytes is too small: it needs {LEAST_BYTES} at least")
            }
            SpoolError::Locked(folder) => {
                write!(out, "{}: another process is this sensor: give each its own name", folder.display())
            }
            SpoolError::Other(path) => {
                write!(out, "{} is no segment of a sensor's log: move it away", path.display())
            }
            SpoolError::Version(path, version) => {
                write!(out, "{} has version {version}, which this program does not write", path.display())
            }
            SpoolError::Full => out.write_str("the spool is full"),
            SpoolError::Long(length) => write!(out, "a batch of {length} bytes is longer than {MOST_BATCH}"),
            SpoolError::NoEpoch => out.write_str("no epoch was begun"),
            SpoolError::Epoch(epoch) => write!(
                out,
                "epoch {epoch} is not behind the last one: the clock may have gone back since the sensor ran"
            ),
            SpoolError::Io(path, error) => write!(out, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for SpoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SpoolError::Io(_, error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::{Batch, Log, header, trim};
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    const MANY: u64 = 1 << 30;

    fn open(folder: &Path, most_bytes: u64, full: Full) -> Spool {
        Spool::open(folder, "tap", most_bytes, full).unwrap()
    }

    /// A batch that says which it is, of some length.
    fn batch(sequence: u64, length: usize) -> Vec<u8> {
        let mut batch = vec![sequence as u8; length];
        let number = sequence.to_le_bytes();
        let count = length.min(8);
        batch[..count].copy_from_slice(&number[..count]);
        batch
    }

    fn read(log: &mut Log) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| log.next().unwrap()).map(|batch| (batch.epoch, batch.sequence)).collect()
    }

    /// All that is there for a new reader.
    fn read_all(folder: &Path) -> Vec<(u64, u64)> {
        read(&mut Log::open(folder, "tap", None))
    }

    fn files(folder: &Path) -> Vec<(u64, u64)> {
        segments(&folder.join("tap")).unwrap().iter().map(|segment| (segment.epoch, segment.first)).collect()
    }

    fn size(folder: &Path) -> u64 {
        segments(&folder.join("tap")).unwrap().iter().map(|segment| segment.length).sum()
    }

    #[test]
    fn batches_come_back_as_they_were_appended() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), MANY, Full::DropOldest);
        assert_eq!(spool.last(), None);
        assert!(matches!(spool.append(b"x"), Err(SpoolError::NoEpoch)));
        let mut log = Log::open(folder.path(), "tap", None);
        assert_eq!(log.next().unwrap(), None);
        let mut expected = Vec::new();
        for (epoch, lengths) in [(3, &[0, 1, 100, MOST_BATCH][..]), (u64::MAX, &[7])] {
            spool.begin(epoch).unwrap();
            for (sequence, &length) in (0..).zip(lengths) {
                let bytes = batch(sequence, length);
                assert_eq!(spool.append(&bytes).unwrap(), 0);
                assert_eq!(spool.last(), Some((epoch, sequence)));
                expected.push(Batch { epoch, sequence, bytes });
            }
        }
        assert!(matches!(spool.append(&vec![0; MOST_BATCH + 1]), Err(SpoolError::Long(_))));
        for expected in expected {
            assert_eq!(log.next().unwrap(), Some(expected));
        }
        assert_eq!((log.next().unwrap(), log.damaged(), log.position()), (None, 0, Some((u64::MAX, 1))));
    }

    #[test]
    fn epochs_only_grow() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..2 {
            let mut spool = open(folder.path(), MANY, Full::DropOldest);
            if round == 0 {
                spool.begin(7).unwrap();
                spool.append(b"a").unwrap();
            }
            for epoch in [0, 6, 7] {
                assert!(matches!(spool.begin(epoch), Err(SpoolError::Epoch(_))), "{epoch}");
            }
        }
        let mut spool = open(folder.path(), MANY, Full::DropOldest);
        spool.begin(9).unwrap();
        // Nothing came of it yet.
        spool.begin(9).unwrap();
        assert!(matches!(spool.begin(8), Err(SpoolError::Epoch(8))));
    }

    #[test]
    fn a_log_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), "tap", None);
        for round in 0..5_u64 {
            let mut spool = open(folder.path(), MANY, Full::DropOldest);
            assert_eq!((spool.last(), spool.cut()), (round.checked_sub(1).map(|last| (1, last)), 0));
            if round == 0 {
                spool.begin(1).unwrap();
            }
            spool.append(&batch(round, 50)).unwrap();
            assert_eq!(read(&mut log), [(1, round)]);
        }
        assert_eq!(files(folder.path()), [(1, 0)], "one segment is enough");
    }

    #[test]
    fn only_one_process_writes() {
        let folder = tempfile::tempdir().unwrap();
        let spool = open(folder.path(), MANY, Full::DropOldest);
        let error = Spool::open(folder.path(), "tap", MANY, Full::DropOldest).unwrap_err();
        assert!(matches!(error, SpoolError::Locked(_)) && error.to_string().contains("its own name"), "{error}");
        Spool::open(folder.path(), "other", MANY, Full::DropOldest).unwrap();
        drop(spool);
        open(folder.path(), MANY, Full::DropOldest);
    }

    #[test]
    fn names_and_bounds_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let long = "a".repeat(65);
        for name in ["", ".", "..", "a/b", "a b", "é", "aggregators", &long] {
            let opened = Spool::open(folder.path(), name, MANY, Full::Wait);
            assert!(matches!(opened, Err(SpoolError::Name(_))), "{name}");
        }
        Spool::open(folder.path(), &long[1..], MANY, Full::Wait).unwrap();
        assert!(matches!(Spool::open(folder.path(), "a", LEAST_BYTES - 1, Full::Wait), Err(SpoolError::Bound(_))));
    }

    /// A process may be killed when any part of a record is written: another finds what was whole, goes on, and a
    /// reader that was there all the time sees nothing of it.
    #[test]
    fn a_torn_end_is_cut_off_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = segment_path(&folder.path().join("tap"), 5, 0);
        let mut spool = open(folder.path(), MANY, Full::DropOldest);
        spool.begin(5).unwrap();
        spool.append(&batch(0, 20)).unwrap();
        let whole = fs::read(&path).unwrap();
        spool.append(&batch(1, 30)).unwrap();
        drop(spool);
        let longer = fs::read(&path).unwrap();
        for length in whole.len()..longer.len() {
            fs::write(&path, &longer[..length]).unwrap();
            let mut log = Log::open(folder.path(), "tap", None);
            assert_eq!(read(&mut log), [(5, 0)], "{length}");
            let mut spool = open(folder.path(), MANY, Full::DropOldest);
            assert_eq!((spool.last(), spool.cut()), (Some((5, 0)), (length - whole.len()) as u64), "{length}");
            assert_eq!(fs::read(&path).unwrap(), whole, "{length}");
            assert_eq!(log.next().unwrap(), None);
            spool.append(&batch(1, 40)).unwrap();
            let next = log.next().unwrap().unwrap();
            assert_eq!((next.sequence, next.bytes, log.damaged()), (1, batch(1, 40), 0), "{length}");
        }
        // So are bytes that are not a part of a record, but for a batch that is whole.
        for at in whole.len()..longer.len() {
            let mut other = longer.clone();
            other[at] ^= 1;
            fs::write(&path, &other).unwrap();
            assert_eq!(read_all(folder.path()), [(5, 0)], "{at}");
            assert_eq!(open(folder.path(), MANY, Full::DropOldest).last(), Some((5, 0)), "{at}");
            assert_eq!(fs::read(&path).unwrap(), whole, "{at}");
        }
    }

    #[test]
    fn a_process_may_be_killed_before_the_first_record() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), MANY, Full::DropOldest);
        spool.begin(1).unwrap();
        spool.append(b"a").unwrap();
        drop(spool);
        let path = segment_path(&folder.path().join("tap"), 2, 0);
        fs::create_dir(path.parent().unwrap()).unwrap();
        let mut whole = header().to_vec();
        whole.extend_from_slice(&record(0, b"torn"));
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let mut log = Log::open(folder.path(), "tap", None);
            assert_eq!(read(&mut log), [(1, 0)]);
            let mut spool = open(folder.path(), MANY, Full::DropOldest);
            assert_eq!(spool.last(), Some((1, 0)), "{length}");
            // A reader may have left the epoch already.
            assert!(matches!(spool.append(b"b"), Err(SpoolError::NoEpoch)));
            spool.begin(2).unwrap();
            spool.append(b"b").unwrap();
            assert_eq!((read(&mut log), log.damaged()), (vec![(2, 0)], 0), "{length}");
        }
    }

    #[test]
    fn a_segment_that_was_begun_says_how_far_the_log_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = segment_path(&folder.path().join("tap"), 2, 17);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for bytes in [&header()[..], &header()[..5], b""] {
            fs::write(&path, bytes).unwrap();
            let mut spool = open(folder.path(), MANY, Full::DropOldest);
            assert_eq!(spool.last(), Some((2, 16)));
            spool.append(b"x").unwrap();
            assert_eq!(read_all(folder.path()), [(2, 17)]);
        }
    }

    #[test]
    fn other_files_are_refused_or_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = segment_path(&folder.path().join("tap"), 2, 0);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let name = path.parent().unwrap().join("0000000000000001.batches.old");
        fs::write(&name, "not a segment").unwrap();
        fs::write(&path, "something else entirely").unwrap();
        let error = Spool::open(folder.path(), "tap", MANY, Full::Wait).unwrap_err();
        assert!(matches!(&error, SpoolError::Other(other) if *other == path), "{error}");
        let mut other = header();
        other[8] = 2;
        fs::write(&path, other).unwrap();
        let error = Spool::open(folder.path(), "tap", MANY, Full::Wait).unwrap_err();
        assert!(matches!(&error, SpoolError::Version(other, 2) if *other == path), "{error}");
        let mut log = Log::open(folder.path(), "tap", None);
        assert_eq!((read(&mut log), log.damaged()), (Vec::new(), 1));
        fs::remove_file(&path).unwrap();
        open(folder.path(), MANY, Full::Wait);
        assert!(name.exists());
    }

    /// Damage costs the record that it is in, if the lengths are as they were.
    #[test]
    fn damage_in_the_middle_is_skipped_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = segment_path(&folder.path().join("tap"), 1, 0);
        let mut spool = open(folder.path(), MANY, Full::DropOldest);
        spool.begin(1).unwrap();
        for sequence in 0..3 {
            spool.append(&batch(sequence, 40)).unwrap();
        }
        drop(spool);
        let whole = fs::read(&path).unwrap();
        let second = HEADER as usize + RECORD + 40;
        for at in second..second + RECORD + 40 {
            let mut other = whole.clone();
            other[at] ^= 0x80;
            fs::write(&path, &other).unwrap();
            let mut log = Log::open(folder.path(), "tap", None);
            let is_length = at < second + 4;
            let found = read(&mut log);
            match is_length {
                false => assert_eq!((found, log.damaged()), (vec![(1, 0), (1, 2)], 1), "{at}"),
                // Where the next record begins is not known, and the writer might be at this one.
                true => assert_eq!((found, log.damaged()), (vec![(1, 0)], 0), "{at}"),
            }
            // A later segment says that no writer is.
            let later = segment_path(&folder.path().join("tap"), 1, 3);
            let mut bytes = header().to_vec();
            bytes.extend_from_slice(&record(3, b"later"));
            fs::write(&later, bytes).unwrap();
            assert_eq!((read(&mut log), log.damaged()), (vec![(1, 3)], 1), "{at}");
            fs::remove_file(&later).unwrap();
        }
        // The writer leaves it where it is: its sequence was given away.
        let mut other = whole.clone();
        other[second + RECORD] ^= 1;
        fs::write(&path, &other).unwrap();
        let spool = open(folder.path(), MANY, Full::DropOldest);
        assert_eq!((spool.last(), spool.cut()), (Some((1, 2)), 0));
    }

    #[test]
    fn a_reader_begins_at_any_position() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), LEAST_BYTES, Full::DropOldest);
        let mut all = Vec::new();
        for epoch in [2, 4] {
            spool.begin(epoch).unwrap();
            for sequence in 0..9 {
                spool.append(&batch(sequence, 100 << 10)).unwrap();
                all.push((epoch, sequence));
            }
        }
        assert!(files(folder.path()).len() > 8);
        for position in [(0, 0), (2, 0), (2, 3), (2, 8), (2, 9), (3, 5), (4, 0), (4, 8), (4, 9), (5, 0)] {
            let mut log = Log::open(folder.path(), "tap", Some(position));
            let expected = all.iter().copied().filter(|&batch| batch >= position).collect::<Vec<_>>();
            assert_eq!((read(&mut log), log.damaged()), (expected, 0), "{position:?}");
        }
    }

    #[test]
    fn the_oldest_segments_go_when_the_bound_is_reached() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), LEAST_BYTES, Full::DropOldest);
        let (mut appended, mut dropped) = (0, 0);
        for epoch in 1..=3 {
            spool.begin(epoch).unwrap();
            for sequence in 0..40 {
                dropped += spool.append(&batch(sequence, if sequence % 2 == 0 { 90 << 10 } else { 5 })).unwrap();
                appended += 1;
                assert!(size(folder.path()) <= LEAST_BYTES);
            }
        }
        let left = read_all(folder.path());
        assert_eq!(dropped, appended - left.len() as u64);
        assert!(left.len() > 20 && dropped > 50 && left.ends_with(&[(3, 39)]));
        // The longest batches leave one segment at a time.
        for _ in 0..6 {
            spool.append(&vec![0; MOST_BATCH]).unwrap();
            assert!(size(folder.path()) <= LEAST_BYTES);
        }
        assert_eq!(read_all(folder.path()), [(3, 43), (3, 44), (3, 45)]);
        let folders = super::super::log::entries(&folder.path().join("tap")).unwrap();
        assert_eq!(folders.iter().filter(|name| name.len() == 16).count(), 1, "empty epochs go: {folders:?}");
    }

    #[test]
    fn batches_that_nobody_needs_are_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), LEAST_BYTES, Full::DropOldest);
        spool.begin(1).unwrap();
        let append =
            |spool: &mut Spool, count| -> u64 { (0..count).map(|_| spool.append(&[0; 100 << 10]).unwrap()).sum() };
        assert_eq!(append(&mut spool, 3), 0);
        // Two are in a segment: that of 2 and 3 stays.
        spool.trim(1, 2).unwrap();
        let lost = append(&mut spool, 40);
        let left = read_all(folder.path());
        assert_eq!(lost, left[0].1 - 3);
    }

    #[test]
    fn a_spool_that_waits_refuses_until_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), LEAST_BYTES, Full::Wait);
        spool.begin(1).unwrap();
        for round in 0..3 {
            while spool.append(&vec![round; MOST_BATCH]).is_ok() {}
            assert!(matches!(spool.append(&vec![round; MOST_BATCH]), Err(SpoolError::Full)));
            let (epoch, last) = spool.last().unwrap();
            let left = read_all(folder.path());
            assert!(left.len() == 3 && left[2] == (epoch, last), "{left:?}");
            // Another process may trim too.
            trim(&folder.path().join("tap"), epoch, last).unwrap();
        }
        // Short ones fill it to the last bytes.
        while spool.append(&[1; 100]).is_ok() {}
        assert!(size(folder.path()) > LEAST_BYTES - 200 && size(folder.path()) <= LEAST_BYTES);
    }

    #[test]
    fn trimming_leaves_what_is_needed_and_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), LEAST_BYTES, Full::DropOldest);
        for epoch in [1, 2] {
            spool.begin(epoch).unwrap();
            for sequence in 0..4 {
                spool.append(&batch(sequence, 200 << 10)).unwrap();
            }
        }
        let expected = |from: usize| [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1), (2, 2), (2, 3)][from..].to_vec();
        assert_eq!(files(folder.path()), expected(0));
        for (epoch, sequence, from) in [
            (0, 99, 0),
            (1, 0, 1),
            (1, 0, 1),
            (1, 2, 3),
            // How many batches the last one of an epoch has is not known from names.
            (1, 3, 3),
            (2, 0, 5),
            (1, 1, 5),
            (2, 3, 7),
            (9, 9, 7),
        ] {
            spool.trim(epoch, sequence).unwrap();
            assert_eq!(files(folder.path()), expected(from), "{epoch} {sequence}");
        }
        drop(spool);
        assert_eq!(trimmed(&folder.path().join("tap")), Some((9, 9)));
        let mut spool = open(folder.path(), LEAST_BYTES, Full::DropOldest);
        assert_eq!(spool.last(), Some((2, 3)));
        spool.append(b"x").unwrap();
        assert_eq!(spool.last(), Some((2, 4)));
        assert!(!folder.path().join("tap").join(format!("{:016x}", 1)).exists());
    }

    #[test]
    fn the_last_batch_is_known_after_a_new_epoch_was_trimmed_to() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), LEAST_BYTES, Full::DropOldest);
        spool.begin(1).unwrap();
        spool.append(b"a").unwrap();
        spool.begin(2).unwrap();
        spool.room = Some(HEADER as usize);
        spool.append(b"b").unwrap_err();
        spool.trim(1, 0).unwrap();
        drop(spool);
        assert_eq!(open(folder.path(), LEAST_BYTES, Full::DropOldest).last(), Some((1, 0)));
    }

    #[test]
    fn a_full_disk_tears_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), "tap", None);
        let mut spool = open(folder.path(), MANY, Full::DropOldest);
        spool.begin(1).unwrap();
        let (first, second) = (batch(0, 20), batch(1, 30));
        for room in 0..RECORD + first.len() {
            spool.room = Some(room);
            let error = spool.append(&first).unwrap_err();
            assert!(matches!(&error, SpoolError::Io(_, error) if error.kind() == io::ErrorKind::StorageFull));
            assert_eq!((spool.last(), log.next().unwrap()), (None, None), "{room}");
        }
        spool.room = None;
        spool.append(&first).unwrap();
        for room in 0..RECORD + second.len() {
            spool.room = Some(room);
            spool.append(&second).unwrap_err();
            assert_eq!(size(folder.path()), HEADER + (RECORD + first.len()) as u64, "{room}");
        }
        spool.room = None;
        spool.append(&second).unwrap();
        assert_eq!(spool.total, size(folder.path()));
        assert_eq!((read(&mut log), log.damaged()), (vec![(1, 0), (1, 1)], 0));
    }

    /// A writer does not wait for a reader that has failed.
    struct Release<'a>(&'a AtomicU64);

    impl Drop for Release<'_> {
        fn drop(&mut self) {
            self.0.store(u64::MAX, Ordering::Relaxed);
        }
    }

    /// Segments are so short that their ends are met at every moment of a reader.
    #[test]
    fn a_reader_beside_the_writer_sees_every_batch_once() {
        let folder = tempfile::tempdir().unwrap();
        let count = 4000;
        let length = |sequence: u64| (sequence % 97) as usize;
        let read_to = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for epoch in 1..=3 {
                    // A process that ends, and another.
                    let mut spool = open(folder.path(), MANY, Full::Wait);
                    spool.segment_bytes = 300;
                    spool.begin(epoch).unwrap();
                    for sequence in 0..count {
                        // The reader is at the end all the time, and the folder short.
                        while (epoch - 1) * count + sequence > read_to.load(Ordering::Relaxed).saturating_add(6) {
                            std::thread::yield_now();
                        }
                        spool.append(&batch(sequence, length(sequence))).unwrap();
                    }
                }
            });
            let _release = Release(&read_to);
            let mut log = Log::open(folder.path(), "tap", None);
            let mut expected = (1..=3).flat_map(|epoch| (0..count).map(move |sequence| (epoch, sequence)));
            let mut read = |log: &mut Log| {
                while let Some(next) = log.next().unwrap() {
                    assert_eq!(Some((next.epoch, next.sequence)), expected.next());
                    assert_eq!(next.bytes, batch(next.sequence, length(next.sequence)));
                    if next.sequence % 50 == 0 {
                        trim(&folder.path().join("tap"), next.epoch, next.sequence).unwrap();
                    }
                    read_to.fetch_add(1, Ordering::Relaxed);
                }
            };
            while !writer.is_finished() {
                read(&mut log);
            }
            writer.join().unwrap();
            read(&mut log);
            assert_eq!((expected.next(), log.damaged()), (None, 0));
        });
    }

    /// A reader that is slower than the bound finds gaps, and never a damaged or a repeated batch.
    #[test]
    fn a_reader_survives_what_goes_under_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), LEAST_BYTES, Full::DropOldest);
        let mut log = Log::open(folder.path(), "tap", None);
        spool.begin(1).unwrap();
        let mut found = Vec::new();
        let mut dropped = 0;
        for sequence in 0..200 {
            dropped += spool.append(&batch(sequence, 60 << 10)).unwrap();
            if sequence % 5 == 0 {
                found.extend(log.next().unwrap().map(|batch| batch.sequence));
            }
        }
        found.extend(read(&mut log).iter().map(|batch| batch.1));
        assert!(found.is_sorted_by(|a, b| a < b) && found.last() == Some(&199) && log.damaged() == 0);
        assert!(dropped > 100 && (found.len() as u64) < 200);
    }
}
