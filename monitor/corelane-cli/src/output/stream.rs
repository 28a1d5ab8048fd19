//! An output that is written bit by bit, for seconds or for months.

use super::{Output, OutputError, To};
use crate::exit::{Exit, complain};
use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Bytes that are written at a time.
const STREAM: usize = 64 << 10;

/// Bytes that an enduring stream keeps while it cannot write.
const MOST_PENDING: usize = 4 << 20;

/// How long an enduring stream that failed waits before it tries again.
const RETRY: Duration = Duration::from_secs(1);

/// The time between two lines about errors of an enduring stream.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// An output that is written bit by bit. Once that fails it takes no more, unless it is [enduring](Stream::enduring).
#[derive(Debug)]
pub(crate) struct Stream {
    output: Output,
    pending: Vec<u8>,
    failure: Option<io::Error>,
    endurance: Option<Endurance>,
    /// Bytes that still fit on the disk of the file, where a test says so.
    #[cfg(test)]
    room: Option<usize>,
}

/// What a reader can only use as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Units {
    /// Each ends behind a line feed.
    Lines,
    /// Each ends where a [`put`](Stream::put) ends.
    Records,
}

/// How an enduring stream is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Attempts to write or to reopen that have failed.
    pub(crate) errors: u64,
    /// Units that were lost because too much was pending.
    pub(crate) dropped: u64,
    /// The error of the last attempt; `None` if it succeeded.
    pub(crate) error: Option<String>,
}

/// What an enduring stream knows beside its pending bytes.
#[derive(Debug)]
struct Endurance {
    units: Units,
    /// Where the pending units end, in order. Lines show that themselves.
    ends: Vec<usize>,
    /// Bytes of the first pending unit that have been written and could not be taken back.
    begun: usize,
    /// The bound of the pending bytes once units were dropped: where the last kept one ends. A shorter unit must not
    /// slip in behind a gap, so that the gap is one.
    full: Option<usize>,
    /// The standard output without the buffer of the library, which does not say what of it has been written.
    direct: Option<File>,
    /// Whether the file is to be opened again.
    reopen: bool,
    /// What a file that was opened again begins with.
    preamble: Vec<u8>,
    retry_at: Option<Instant>,
    /// The last line about an error, and whether it still holds.
    said: Option<Instant>,
    is_said: bool,
    condition: Condition,
}

impl Stream {
    pub(super) fn new(output: Output) -> Self {
        Stream {
            pending: Vec::with_capacity(STREAM),
            output,
            failure: None,
            endurance: None,
            #[cfg(test)]
            room: None,
        }
    }

    /// Makes the stream outlive errors, as for a service whose disk was full for an hour.
    ///
    /// - No unit is torn: what was written of one is cut away again from a file, and completed later in a pipe.
    /// - Pending units are kept, 4 MiB of them, and written once that is possible; it is tried once a second, by calls
    ///   of [`put`](Stream::put) and [`flush`](Stream::flush). Newer ones are dropped, and counted.
    /// - An error is logged, once a minute at most, and so is its end.
    /// - Only the standard output whose reader has gone is no longer written.
    /// - A line that a crash has torn in a file is ended before the first one.
    pub(crate) fn enduring(mut self, units: Units) -> Self {
        let direct = match &self.output.to {
            To::Stdout => standard_output().ok(),
            To::File(..) => None,
        };
        let condition = Condition::default();
        self.endurance = Some(Endurance {
            units,
            ends: Vec::new(),
            begun: 0,
            full: None,
            direct,
            reopen: false,
            preamble: Vec::new(),
            retry_at: None,
            said: None,
            is_said: false,
            condition,
        });
        if units == Units::Lines {
            self.pending.extend_from_slice(self.output.torn());
        }
        self
    }

    /// The output.
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    /// Takes more bytes, which end with a unit. An empty slice means that no more are at hand, and that the bytes so
    /// far may be wanted. Says whether the stream still has a reader.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
        self.take(bytes);
        if let Some(endurance) = &mut self.endurance {
            endurance.end_unit(self.pending.len());
        }
        self.go_on(bytes.is_empty())
    }

    /// Writes all pending units. Says the same as [`put`](Stream::put).
    pub(crate) fn flush(&mut self) -> bool {
        self.go_on(true)
    }

    /// Opens the file again by its name, once the pending units are written: what was put before goes to the old file,
    /// if that takes it, and what is put from now on to the new one. If the new file cannot be opened, the old one goes
    /// on, and opening is tried again as writing is. The standard output, devices and pipes stay as they are.
    pub(crate) fn reopen(&mut self) {
        match &mut self.endurance {
            Some(endurance) => {
                endurance.reopen = true;
                // The user who has made room or a folder does not want to wait.
                endurance.retry_at = None;
                self.go_on(true);
            }
            None => {
                if self.flush()
                    && let Err(error) = self.output.reopen()
                {
                    self.failure = Some(error);
                }
            }
        }
    }

    /// Sets what each file begins with that [`reopen`](Stream::reopen) opens, now or later: records need a header.
    pub(crate) fn begin_files_with(&mut self, preamble: Vec<u8>) {
        if let Some(endurance) = &mut self.endurance {
            endurance.preamble = preamble;
        }
    }

    /// Writes all pending units as [`flush`](Stream::flush) does, without waiting until it is time to try again.
    pub(crate) fn flush_now(&mut self) -> bool {
        if let Some(endurance) = &mut self.endurance {
            endurance.retry_at = None;
        }
        self.flush()
    }

    /// The records that wait to be written, and whether another one has begun.
    pub(crate) fn records(&self) -> (usize, bool) {
        let Some(Endurance { ends, .. }) = &self.endurance else { return (0, false) };
        (ends.len(), self.pending.len() > ends.last().copied().unwrap_or(0))
    }

    /// How an enduring stream is; all is well with any other one, whose [`finish`](Stream::finish) says the rest.
    pub(crate) fn condition(&self) -> Condition {
        self.endurance.as_ref().map_or_else(Condition::default, |endurance| endurance.condition.clone())
    }

    /// Ends the stream. If the reader has gone away it has seen enough: that is no error. Units that were dropped make
    /// the output partial.
    pub(crate) fn finish(mut self) -> Result<Exit, OutputError> {
        if let Some(endurance) = &mut self.endurance {
            endurance.end_unit(self.pending.len());
            if endurance.units == Units::Lines && self.pending.last().is_some_and(|&last| last != b'\n') {
                self.pending.push(b'\n');
            }
        }
        self.flush_now();
        let endured = self.endurance.map(|endurance| endurance.condition).unwrap_or_default();
        let failure = self.failure.or(endured.error.map(io::Error::other));
        match failure {
            None if endured.dropped > 0 => Ok(Exit::Partial),
            None => Ok(Exit::Done),
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
            Some(error) => Err(OutputError { name: self.output.to_string(), error }),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.pending.extend_from_slice(bytes);
        }
    }

    /// Writes if it is time to. Says whether the stream still has a reader.
    fn go_on(&mut self, is_wanted: bool) -> bool {
        if self.failure.is_none() && (is_wanted || self.pending.len() >= STREAM) {
            if self.endurance.is_some() { self.endure() } else { self.write_pending() }
        }
        self.failure.is_none()
    }

    fn write_pending(&mut self) {
        let written = match &self.output.to {
            To::Stdout => io::stdout().lock().write_all(&self.pending).and_then(|()| io::stdout().flush()),
            To::File(file, _) => (&*file).write_all(&self.pending),
        };
        self.failure = written.err();
        self.pending.clear();
    }

    /// Writes the pending units and reopens the file, if it is time to try that.
    fn endure(&mut self) {
        let Some(endurance) = &self.endurance else { return };
        if endurance.retry_at.is_none_or(|at| Instant::now() >= at) {
            let mut tried = self.write_units();
            let Some(endurance) = &mut self.endurance else { return };
            if endurance.reopen {
                match self.output.reopen() {
                    Ok(is_other) => {
                        endurance.reopen = false;
                        if is_other {
                            endurance.begin_file(&mut self.pending, self.output.torn());
                            #[cfg(test)]
                            (self.room = None);
                        }
                        if is_other || tried.is_err() {
                            tried = self.write_units();
                        }
                    }
                    Err(error) => {
                        let error = io::Error::new(error.kind(), format!("cannot be opened again: {error}"));
                        tried = tried.and(Err(error));
                    }
                }
            }
            self.conclude(tried);
        }
        if let Some(endurance) = &mut self.endurance
            && endurance.condition.error.is_some()
        {
            endurance.bound(&mut self.pending, MOST_PENDING);
        }
    }

    fn conclude(&mut self, tried: io::Result<()>) {
        let Some(endurance) = &mut self.endurance else { return };
        let condition = &mut endurance.condition;
        match tried {
            Ok(()) => {
                (endurance.retry_at, condition.error) = (None, None);
                if std::mem::take(&mut endurance.is_said) {
                    complain(format_args!("{}: is written again", self.output));
                }
                // Megabytes may have been pending.
                self.pending.shrink_to(STREAM);
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && self.output.is_stdout() => {
                self.failure = Some(error);
                self.pending = Vec::new();
            }
            Err(error) => {
                condition.errors += 1;
                if endurance.said.is_none_or(|said| said.elapsed() >= REPORT_INTERVAL) {
                    (endurance.said, endurance.is_said) = (Some(Instant::now()), true);
                    complain(format_args!(
                        "{}: cannot be written: {error}; trying again each second, while {} MiB wait at most",
                        self.output,
                        MOST_PENDING >> 20
                    ));
                }
                condition.error = Some(error.to_string());
                endurance.retry_at = Some(Instant::now() + RETRY);
            }
        }
    }

    /// Writes all whole units. After an error those that are not written stay pending.
    fn write_units(&mut self) -> io::Result<()> {
        let Some(endurance) = &self.endurance else { return Ok(()) };
        let all = endurance.whole(&self.pending, self.pending.len());
        let mut at = endurance.begun;
        let mut tried = Ok(());
        while at < all && tried.is_ok() {
            match self.write_some(at, all) {
                Ok(0) => tried = Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => at += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => tried = Err(error),
            }
        }
        let Some(endurance) = &mut self.endurance else { return tried };
        let whole = endurance.whole(&self.pending, at);
        let torn = at - whole;
        endurance.begun = if torn == 0 || self.output.cut(torn as u64) { 0 } else { torn };
        endurance.forget(&mut self.pending, 0, whole);
        if whole > 0 {
            endurance.full = None;
        }
        tried
    }

    /// Writes a part of the pending bytes. Says how many were written.
    fn write_some(&mut self, from: usize, to: usize) -> io::Result<usize> {
        let bytes = &self.pending[from..to];
        #[cfg(test)]
        let bytes = match &mut self.room {
            Some(0) => return Err(io::ErrorKind::StorageFull.into()),
            Some(room) => {
                let fits = (*room).min(bytes.len());
                *room -= fits;
                &bytes[..fits]
            }
            None => bytes,
        };
        match (&self.output.to, &self.endurance) {
            (To::File(file, _), _) => (&*file).write(bytes),
            (To::Stdout, Some(Endurance { direct: Some(direct), .. })) => (&*direct).write(bytes),
            (To::Stdout, _) => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush()).map(|()| bytes.len())
            }
        }
    }
}

impl Endurance {
    /// Marks that a unit ends behind so many pending bytes.
    fn end_unit(&mut self, end: usize) {
        if self.units == Units::Records && end > self.ends.last().copied().unwrap_or(0) {
            self.ends.push(end);
        }
    }

    /// The pending bytes go to a new file.
    fn begin_file(&mut self, pending: &mut Vec<u8>, torn: &[u8]) {
        self.begun = 0;
        let preamble = if self.units == Units::Lines { torn } else { &self.preamble };
        let length = preamble.len();
        if length > 0 {
            pending.splice(0..0, preamble.iter().copied());
            if self.units == Units::Records {
                self.ends.iter_mut().for_each(|end| *end += length);
                self.ends.insert(0, length);
            }
            self.full = self.full.map(|full| full + length);
        }
    }

    /// Where the last unit ends within the first `within` of the pending bytes.
    fn whole(&self, pending: &[u8], within: usize) -> usize {
        match self.units {
            Units::Lines => pending[..within].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1),
            Units::Records => self.ends[..self.ends.partition_point(|&end| end <= within)].last().copied().unwrap_or(0),
        }
    }

    /// Where the first unit ends, if it is whole.
    fn first(&self, pending: &[u8]) -> usize {
        match self.units {
            Units::Lines => pending.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1),
            Units::Records => self.ends.first().copied().unwrap_or(0),
        }
    }

    /// Removes whole units from the pending bytes. Says how many.
    fn forget(&mut self, pending: &mut Vec<u8>, from: usize, to: usize) -> u64 {
        let count = match self.units {
            Units::Lines => pending[from..to].iter().filter(|&&byte| byte == b'\n').count(),
            Units::Records => {
                let before = self.ends.len();
                self.ends.retain(|&end| end <= from || end > to);
                let after = self.ends.len();
                self.ends.iter_mut().filter(|end| **end > to).for_each(|end| *end -= to - from);
                before - after
            }
        };
        pending.drain(from..to);
        count as u64
    }

    /// Drops the newest whole units until no more than so many bytes are pending, and all further ones until some of
    /// them are written. Bytes behind them, of a unit that is not whole yet, stay, and so does a unit that has been
    /// begun.
    fn bound(&mut self, pending: &mut Vec<u8>, most: usize) {
        let (all, most) = (self.whole(pending, pending.len()), self.full.unwrap_or(most));
        if all > most {
            let kept = self.whole(pending, most);
            let kept = if kept == 0 && self.begun > 0 { self.first(pending) } else { kept };
            self.condition.dropped += self.forget(pending, kept, all);
            self.full = Some(kept);
        }
    }
}

impl Write for Stream {
    /// Takes bytes of a unit, which the next [`put`](Stream::put) or a line feed ends. Never fails:
    /// [`finish`](Stream::finish) returns the error.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes);
        self.go_on(false);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The standard output without a buffer.
fn standard_output() -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        io::stdout().as_fd().try_clone_to_owned().map(File::from)
    }
    #[cfg(not(unix))]
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::output::{How, Output};
    use std::fs;
    use std::path::{Path, PathBuf};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    fn stream(path: &Path, units: Units) -> Stream {
        Output::append(path).expect("a file").into_stream().enduring(units)
    }

    /// Line number `i`, long enough that bounds are reached.
    fn line(i: usize) -> Vec<u8> {
        format!("{{\"line\":{i},\"filler\":\"{}\"}}\n", "x".repeat(i % 97)).into_bytes()
    }

    /// A record of a length and that many bytes, line feeds among them.
    fn record(i: usize) -> Vec<u8> {
        let length = 1 + i % 61;
        let mut record = vec![length as u8];
        record.extend((0..length).map(|at| if at % 3 == 0 { b'\n' } else { i as u8 }));
        record
    }

    fn unit(units: Units, i: usize) -> Vec<u8> {
        if units == Units::Lines { line(i) } else { record(i) }
    }

    fn together(units: Units, numbers: impl IntoIterator<Item = usize>) -> Vec<u8> {
        numbers.into_iter().flat_map(|i| unit(units, i)).collect()
    }

    /// As if a second had passed.
    fn let_time_pass(stream: &mut Stream) {
        stream.endurance.as_mut().unwrap().retry_at = None;
    }

    fn pending(stream: &Stream) -> usize {
        stream.pending.len()
    }

    #[test]
    fn a_full_disk_never_holds_a_torn_unit_and_gets_all_once_there_is_room() {
        for units in [Units::Lines, Units::Records] {
            let all = together(units, 0..20);
            // Every place at which the disk can be full.
            for room in 0..all.len() {
                let folder = folder();
                let path = folder.path().join("out");
                let mut stream = stream(&path, units);
                stream.room = Some(room);
                for i in 0..20 {
                    assert!(stream.put(&unit(units, i)));
                }
                assert!(stream.flush());
                let whole = (0..=20).map(|n| together(units, 0..n)).rfind(|whole| whole.len() <= room).unwrap();
                assert_eq!(fs::read(&path).unwrap(), whole, "{units:?} {room}");
                let condition = stream.condition();
                assert_eq!((condition.errors, condition.dropped), (1, 0));
                assert!(condition.error.unwrap().contains("storage"));
                // A unit that was cut away leaves no hole behind it either.
                let_time_pass(&mut stream);
                stream.room = None;
                assert!(stream.put(&unit(units, 20)) && stream.flush());
                assert_eq!(fs::read(&path).unwrap(), together(units, 0..21), "{units:?} {room}");
                assert_eq!(stream.condition(), Condition { errors: 1, dropped: 0, error: None });
                assert_eq!(stream.finish().unwrap(), Exit::Done);
            }
        }
    }

    #[test]
    fn a_file_that_was_not_opened_to_append_has_no_holes_either() {
        let folder = folder();
        let path = folder.path().join("out");
        let mut stream = Output::create(&path).unwrap().into_stream().enduring(Units::Lines);
        stream.room = Some(line(0).len() + 3);
        stream.put(&together(Units::Lines, 0..2));
        stream.flush();
        assert_eq!(fs::read(&path).unwrap(), line(0));
        stream.room = None;
        let_time_pass(&mut stream);
        stream.flush();
        assert_eq!(fs::read(&path).unwrap(), together(Units::Lines, 0..2));
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_gets_the_rest_of_a_unit_later() {
        use std::io::{Read, pipe};
        for units in [Units::Lines, Units::Records] {
            let all = together(units, 0..7);
            for room in 0..all.len() {
                let (mut reader, writer) = pipe().unwrap();
                let to = To::File(File::from(std::os::fd::OwnedFd::from(writer)), PathBuf::from("pipe"));
                let mut stream =
                    Output { to, how: How::Append, given: PathBuf::from("pipe") }.into_stream().enduring(units);
                stream.room = Some(room);
                (0..7).for_each(|i| assert!(stream.put(&unit(units, i))));
                assert!(stream.flush());
                // It stays the same pipe.
                stream.reopen();
                // Another one in the middle of the same unit.
                stream.room = Some(1);
                let_time_pass(&mut stream);
                stream.flush();
                stream.room = None;
                let_time_pass(&mut stream);
                stream.flush();
                assert_eq!(stream.finish().unwrap(), Exit::Done);
                let mut got = Vec::new();
                reader.read_to_end(&mut got).unwrap();
                assert_eq!(got, all, "{units:?} {room}");
            }
        }
    }

    #[test]
    fn what_is_pending_has_a_bound_beyond_which_whole_units_are_dropped_and_counted() {
        for units in [Units::Lines, Units::Records] {
            let folder = folder();
            let path = folder.path().join("out");
            let mut stream = stream(&path, units);
            stream.room = Some(unit(units, 0).len() + 1);
            let mut put = 0;
            while stream.condition().dropped < 5_000 {
                let many = together(units, put..put + 100);
                if units == Units::Lines {
                    stream.put(&many);
                } else {
                    (put..put + 100).for_each(|i| assert!(stream.put(&unit(units, i))));
                }
                put += 100;
                assert!(pending(&stream) <= MOST_PENDING + many.len());
            }
            let dropped = stream.condition().dropped as usize;
            assert!(stream.condition().errors >= 1);
            // A unit that is put in pieces is not cut either.
            let last = unit(units, put);
            stream.write_all(&last[..last.len() / 2]).unwrap();
            stream.flush();
            stream.room = None;
            let_time_pass(&mut stream);
            stream.put(&last[last.len() / 2..]);
            stream.flush();
            let mut lines = together(units, 0..put - dropped);
            lines.extend(&last);
            assert!(lines.len() > MOST_PENDING - 200);
            assert!(fs::read(&path).unwrap() == lines, "{units:?} {put} {dropped}");
            assert_eq!(stream.condition().error, None);
            assert!(stream.pending.capacity() <= 2 * STREAM);
            assert_eq!(stream.finish().unwrap(), Exit::Partial, "something is missing");
        }
    }

    #[test]
    fn it_is_tried_once_a_second() {
        let folder = folder();
        let path = folder.path().join("out");
        let mut stream = stream(&path, Units::Lines);
        stream.room = Some(0);
        let start = Instant::now();
        let mut calls = 0_u32;
        while calls < 1_000 {
            stream.put(b"line\n");
            stream.flush();
            calls += 1;
        }
        let errors = stream.condition().errors;
        assert!(errors >= 1 && errors <= 1 + start.elapsed().as_secs(), "{errors}");
        // Not before its time, though there is room.
        stream.room = None;
        stream.endurance.as_mut().unwrap().retry_at = Some(Instant::now() + Duration::from_secs(3600));
        stream.flush();
        assert_eq!(fs::read(&path).unwrap(), b"");
        // The wish of a user is an occasion.
        stream.reopen();
        assert_eq!(fs::read(&path).unwrap(), b"line\n".repeat(1_000));
    }

    #[test]
    fn rotation_tears_and_loses_nothing() {
        for units in [Units::Lines, Units::Records] {
            let folder = folder();
            let path = folder.path().join("out");
            let mut stream = stream(&path, units);
            let mut all = Vec::new();
            for turn in 0..30 {
                for i in turn * 100..(turn + 1) * 100 {
                    stream.put(&unit(units, i));
                }
                let old = folder.path().join(format!("out.{turn}"));
                fs::rename(&path, &old).unwrap();
                // Between the rename and the signal the old file still grows.
                stream.put(&unit(units, 3));
                stream.reopen();
                let part = fs::read(&old).unwrap();
                assert_eq!(part, together(units, (turn * 100..(turn + 1) * 100).chain([3])));
                all.extend(part);
                assert_eq!(fs::read(&path).unwrap(), b"");
            }
            assert_eq!(all, together(units, (0..30).flat_map(|turn| (turn * 100..(turn + 1) * 100).chain([3]))));
            // Without a rename it goes on behind what is there.
            stream.put(&unit(units, 1));
            stream.reopen();
            stream.put(&unit(units, 2));
            assert_eq!(stream.finish().unwrap(), Exit::Done);
            assert_eq!(fs::read(&path).unwrap(), together(units, 1..3));
        }
    }

    #[test]
    fn one_that_does_not_endure_can_be_reopened_too() {
        let folder = folder();
        let (path, old) = (folder.path().join("out"), folder.path().join("old"));
        let mut stream = Output::create(&path).unwrap().into_stream();
        stream.put(b"one\n");
        fs::rename(&path, &old).unwrap();
        stream.reopen();
        stream.put(b"two\n");
        assert_eq!(stream.finish().unwrap(), Exit::Done);
        assert_eq!((fs::read(&old).unwrap(), fs::read(&path).unwrap()), (b"one\n".to_vec(), b"two\n".to_vec()));
    }

    #[test]
    fn a_folder_that_is_gone_costs_nothing() {
        let folder = folder();
        let (logs, away) = (folder.path().join("logs"), folder.path().join("away"));
        fs::create_dir(&logs).unwrap();
        let path = logs.join("out");
        let mut stream = stream(&path, Units::Lines);
        stream.put(b"one\n");
        fs::rename(&logs, &away).unwrap();
        stream.reopen();
        assert!(stream.condition().error.unwrap().contains("cannot be opened again"));
        let_time_pass(&mut stream);
        stream.put(b"two\n");
        stream.flush();
        assert_eq!(stream.condition().errors, 2);
        assert_eq!(fs::read(away.join("out")).unwrap(), b"one\ntwo\n");
        fs::create_dir(&logs).unwrap();
        stream.put(b"three\n");
        let_time_pass(&mut stream);
        stream.flush();
        stream.put(b"four\n");
        stream.flush();
        assert_eq!(stream.condition(), Condition { errors: 2, dropped: 0, error: None });
        assert_eq!(fs::read(away.join("out")).unwrap(), b"one\ntwo\nthree\n");
        assert_eq!(fs::read(&path).unwrap(), b"four\n");
    }

    #[test]
    fn a_new_disk_takes_over_from_a_full_one() {
        let folder = folder();
        let (path, old) = (folder.path().join("out"), folder.path().join("old"));
        let mut stream = stream(&path, Units::Lines);
        stream.room = Some(line(0).len() + 5);
        stream.put(&together(Units::Lines, 0..10));
        stream.flush();
        fs::rename(&path, &old).unwrap();
        // The old one still has no room.
        stream.room = Some(0);
        stream.reopen();
        assert_eq!(fs::read(&old).unwrap(), line(0));
        assert_eq!(fs::read(&path).unwrap(), together(Units::Lines, 1..10));
        assert_eq!(stream.condition(), Condition { errors: 1, dropped: 0, error: None });
        // If nothing could be taken back from the old one, the new one gets the whole unit all the same.
        stream.put(&line(10));
        stream.room = Some(0);
        stream.endurance.as_mut().unwrap().begun = 3;
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"of another process").unwrap();
        fs::rename(&path, &old).unwrap();
        stream.reopen();
        assert_eq!(fs::read(&path).unwrap(), line(10));
    }

    #[test]
    fn every_new_file_of_records_begins_with_the_preamble() {
        let folder = folder();
        let (logs, away) = (folder.path().join("logs"), folder.path().join("away"));
        fs::create_dir(&logs).unwrap();
        let path = logs.join("out");
        let mut stream = stream(&path, Units::Records);
        let with = |numbers: std::ops::Range<usize>| [b"preamble".to_vec(), together(Units::Records, numbers)].concat();
        stream.begin_files_with(b"preamble".to_vec());
        stream.room = Some(record(0).len() + 1);
        (0..5).for_each(|i| assert!(stream.put(&record(i))));
        stream.flush();
        assert_eq!(stream.records(), (4, false));
        // From a full disk to another one, while one is begun.
        fs::rename(&path, logs.join("old")).unwrap();
        stream.room = Some(0);
        stream.write_all(&record(5)).unwrap();
        stream.reopen();
        assert_eq!(fs::read(logs.join("old")).unwrap(), record(0));
        assert_eq!(fs::read(&path).unwrap(), with(1..5));
        assert_eq!(stream.records(), (0, true));
        // The same file again.
        stream.put(&[]);
        stream.reopen();
        assert_eq!(fs::read(&path).unwrap(), with(1..6));
        // To a folder that is there only later.
        fs::rename(&logs, &away).unwrap();
        stream.reopen();
        stream.put(&record(6));
        let_time_pass(&mut stream);
        stream.flush();
        assert_eq!(fs::read(away.join("out")).unwrap(), with(1..7));
        fs::create_dir(&logs).unwrap();
        let_time_pass(&mut stream);
        stream.flush();
        assert_eq!(fs::read(&path).unwrap(), with(0..0), "it is a whole file at once");
        stream.put(&record(7));
        stream.flush_now();
        assert_eq!(fs::read(&path).unwrap(), with(7..8));
        assert_eq!(stream.condition().dropped, 0);
    }

    #[test]
    fn what_another_process_has_written_is_not_cut_away() {
        let folder = folder();
        let path = folder.path().join("out");
        let mut other = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let output = Output::append(&path).unwrap();
        let To::File(file, _) = &output.to else { panic!() };
        let mut file: &File = file;
        file.write_all(b"torn").unwrap();
        other.write_all(b"other\n").unwrap();
        assert!(!output.cut(4));
        assert_eq!(fs::read(&path).unwrap(), b"tornother\n");
        file.write_all(b"torn").unwrap();
        assert!(output.cut(4));
        assert_eq!(fs::read(&path).unwrap(), b"tornother\n");
    }

    #[test]
    fn devices_stay_as_they_are() {
        let Ok(output) = Output::append(Path::new("/dev/null")) else { return };
        let mut stream = output.into_stream().enduring(Units::Lines);
        stream.reopen();
        assert!(stream.put(b"line\n") && stream.flush());
        assert_eq!(stream.condition(), Condition::default());
        let mut full = Output::append(Path::new("/dev/full")).unwrap().into_stream().enduring(Units::Lines);
        assert!(full.put(b"line\n") && full.flush(), "a full disk is no end");
        assert_eq!(full.condition().errors, 1);
        assert!(full.finish().unwrap_err().to_string().contains("/dev/full: cannot be written"));
    }

    #[test]
    fn what_a_service_wrote_before_is_kept() {
        let folder = folder();
        let path = folder.path().join("out");
        for i in 0..3 {
            let mut stream = stream(&path, Units::Lines);
            stream.put(&line(i));
            stream.finish().unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), together(Units::Lines, 0..3));
    }

    #[test]
    fn a_torn_line_is_ended_and_torn_records_are_left() {
        let folder = folder();
        let path = folder.path().join("out");
        for (before, between) in [("", ""), ("whole\n", ""), ("whole\ntorn", "\n")] {
            fs::write(&path, before).unwrap();
            let mut stream = stream(&path, Units::Lines);
            stream.put(b"one\n");
            stream.finish().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{before}{between}one\n"));
            fs::write(&path, before).unwrap();
            Output::append(&path).unwrap().write(|out| out.write_all(b"one\n")).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{before}{between}one\n"));
            // A run that writes nothing ends it too.
            fs::write(&path, before).unwrap();
            super::tests::stream(&path, Units::Lines).finish().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{before}{between}"));
        }
        fs::write(&path, "torn").unwrap();
        let mut stream = stream(&path, Units::Records);
        stream.put(b"one");
        stream.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"tornone");
    }

    #[test]
    fn a_file_is_emptied_when_its_run_begins_and_not_before() {
        let folder = folder();
        let path = folder.path().join("out");
        for _ in 0..2 {
            fs::write(&path, "of an earlier run").unwrap();
            let output = Output::open(&path, How::Replace, &Interrupt::default()).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"of an earlier run");
            output.begin().unwrap();
            output.write(|out| out.write_all(b"new")).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
        }
        Output::append(&path).unwrap().begin().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new", "what is appended to stays");
        drop(Output::create(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    /// The number may be another file's by then.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_was_given_open_is_not_opened_by_its_number_again() {
        use std::os::fd::AsRawFd;
        let folder = folder();
        let given = folder.path().join("given");
        for folder in ["/dev/fd", "/proc/self/fd"] {
            let file = fs::OpenOptions::new().append(true).create(true).open(&given).unwrap();
            let mut stream = stream(&Path::new(folder).join(file.as_raw_fd().to_string()), Units::Lines);
            stream.put(b"one\n");
            // From here on the number is no file's, or any other's.
            drop(file);
            stream.reopen();
            stream.put(b"two\n");
            assert_eq!(stream.condition(), Condition::default());
            assert_eq!(stream.finish().unwrap(), Exit::Done);
        }
        assert_eq!(fs::read(&given).unwrap(), b"one\ntwo\n".repeat(2));
        for plain in ["/dev/null", "/dev/fd", "eve.json", "/tmp/dev/fd/1", "/dev/fd/1/eve.json"] {
            assert!(!crate::output::is_descriptor(Path::new(plain)), "{plain}");
        }
    }

    /// The disk of [`a_disk_that_is_really_full`].
    const DISK: &str = "CORELANE_TEST_DISK";

    #[test]
    fn a_disk_that_is_really_full() {
        let Some(disk) = std::env::var_os(DISK) else {
            // Again with a disk of 256 KiB that only the other process sees, and that ends with it.
            let folder = folder();
            let script = "mount -t tmpfs -o size=256k tmpfs \"$0\" && exec \"$@\"";
            let mut command = std::process::Command::new("unshare");
            command.args(["--mount", "sh", "-c", script]).arg(folder.path()).arg(std::env::current_exe().unwrap());
            command.args(["--exact", "output::stream::tests::a_disk_that_is_really_full", "--nocapture"]);
            let output = command.env(DISK, folder.path()).output();
            match output {
                Ok(output) if String::from_utf8_lossy(&output.stdout).contains("test result: ok. 1 passed") => {}
                Ok(output) if String::from_utf8_lossy(&output.stdout).contains("running 1 test") => {
                    panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
                }
                other => drop(writeln!(io::stderr(), "SKIPPED: a small disk cannot be mounted: {other:?}")),
            }
            return;
        };
        let disk = Path::new(&disk);
        let (path, ballast) = (disk.join("out"), disk.join("ballast"));
        fs::write(&ballast, vec![0; 150_000]).unwrap();
        let mut stream = stream(&path, Units::Lines);
        let mut put = 0;
        while stream.condition().errors == 0 {
            stream.put(&line(put));
            put += 1;
        }
        let part = fs::read(&path).unwrap();
        assert!(part.ends_with(b"\n") && together(Units::Lines, 0..put).starts_with(&part), "{put}");
        fs::remove_file(&ballast).unwrap();
        let_time_pass(&mut stream);
        stream.put(&line(put));
        stream.flush();
        assert_eq!(stream.condition().error, None);
        assert!(fs::read(&path).unwrap() == together(Units::Lines, 0..=put));
    }
}
