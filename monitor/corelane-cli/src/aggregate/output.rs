//! The output of an aggregator: a file of events, or lines of text.

use crate::exit::{Exit, complain};
use crate::interrupt::Interrupt;
use crate::output::{Condition, How, Output, Stream, Units, is_standard};
use corelane_monitor::eve;
use corelane_monitor::sensors::News;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where scans and news of sensors go.
pub(super) struct NewsOutput {
    /// `None` once it has ended.
    stream: Option<Stream>,
    /// Whether these are lines of text, as the scans of a monitor, and not events.
    is_text: bool,
    /// If it is a file that can be looked into.
    path: Option<PathBuf>,
    /// The [keys](key) of lines that were written behind the last snapshot, which come again now …
    known: HashMap<Vec<u8>, u64>,
    /// … and where the first of them begins.
    behind: u64,
    /// Why the state is not stored, if it is not.
    pub(super) problem: Option<String>,
    /// Whether the reader of the standard output has gone.
    pub(super) is_gone: bool,
}

impl NewsOutput {
    /// Opens the output. `written` is the length that a file had at the snapshot that is gone on from: what is behind
    /// that comes again, and is not written again.
    pub(super) fn open(eve: Option<&Path>, written: Option<u64>, interrupt: &Interrupt) -> Result<Self, String> {
        let path = eve.unwrap_or(Path::new("-"));
        let refusal = |error: io::Error| format!("{}: {error}", path.display());
        let is_file = !is_standard(path) && fs::metadata(path).map_or(true, |facts| facts.is_file());
        let mut known = HashMap::new();
        if let Some(written) = written.filter(|_| is_file) {
            known = lines_behind(path, written).map_err(refusal)?;
        }
        let output = Output::open(path, How::Append, interrupt).map_err(|error| error.to_string())?;
        Ok(NewsOutput {
            stream: Some(output.into_stream().enduring(Units::Lines)),
            is_text: eve.is_none(),
            path: is_file.then(|| path.to_owned()),
            known,
            behind: written.unwrap_or(0),
            problem: None,
            is_gone: false,
        })
    }

    pub(super) fn write(&mut self, news: &News) {
        if let News::Sensor(event) = news {
            complain(event);
        }
        let Some(stream) = &mut self.stream else { return };
        let mut line = Vec::new();
        // Memory takes all bytes.
        let _ = match news {
            News::Scan(scan) if self.is_text => writeln!(line, "{scan}"),
            News::Scan(scan) => eve::write_scan(scan, &mut line),
            News::Sensor(_) if self.is_text => return,
            News::Sensor(event) => eve::write_sensor(event, &mut line),
        };
        match self.known.get_mut(key(&line)) {
            Some(1) => drop(self.known.remove(key(&line))),
            Some(count) => *count -= 1,
            None => self.is_gone |= !stream.put(&line),
        }
    }

    pub(super) fn flush(&mut self) {
        self.is_gone |= self.stream.as_mut().is_some_and(|stream| !stream.flush());
    }

    pub(super) fn reopen(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.reopen();
            self.behind = 0;
        }
    }

    pub(super) fn condition(&self) -> Option<(&'static str, Condition)> {
        self.stream.as_ref().map(|stream| ("events", stream.condition()))
    }

    /// All batches are read: what has not come again by now will not. But if a sensor is among it that was left
    /// out, the state was not stored after that, and the clock will decide it again, and all that comes of it.
    pub(super) fn forget_known(&mut self, clock_is_over: bool) {
        let is_left_out = |line: &[u8]| line.windows(LEFT_OUT.len()).any(|part| part == LEFT_OUT);
        if clock_is_over || !self.known.keys().any(|line| is_left_out(line)) {
            self.known = HashMap::new();
        }
    }

    /// The length of the file, once all is in it, or its length before what is to come again. `None`
    /// means that something cannot be written.
    pub(super) fn written(&mut self) -> Option<u64> {
        self.flush();
        if self.condition().is_some_and(|(_, condition)| condition.error.is_some()) {
            return None;
        }
        if !self.known.is_empty() {
            return Some(self.behind);
        }
        Some(self.path.as_ref().and_then(|path| fs::metadata(path).ok()).map_or(0, |facts| facts.len()))
    }

    /// Ends it. What cannot be written is said, and is missing.
    pub(super) fn finish(&mut self) -> Exit {
        let finished = self.stream.take().map_or(Ok(Exit::Done), Stream::finish);
        finished.unwrap_or_else(|error| {
            complain(error);
            Exit::Partial
        })
    }
}

/// In the line of a sensor that is left out.
const LEFT_OUT: &[u8] = br#""state":"left_out""#;

/// What a line has in common with the same one when it comes again. Scans are the same bytes. News of a sensor have the
/// time that the others have reached by then, and that is another one each time; and so is how much
/// waited for one that is left out.
fn key(line: &[u8]) -> &[u8] {
    const SENSOR: &[u8] = br#""event_type":"sensor""#;
    let timestamp = line.iter().position(|&byte| byte == b',').map_or(0, |comma| comma + 1);
    let Some(sensor) = line[timestamp..].starts_with(SENSOR).then_some(&line[timestamp..]) else { return line };
    let left_out = sensor.windows(LEFT_OUT.len()).position(|part| part == LEFT_OUT);
    left_out.map_or(sensor, |at| &sensor[..at + LEFT_OUT.len()])
}

/// The whole lines of a file behind this length, by their keys, with how often each is there. What is torn at its end
/// is cut off. A file that is shorter is a new one: all its lines are behind.
fn lines_behind(path: &Path, written: u64) -> io::Result<HashMap<Vec<u8>, u64>> {
    let mut known = HashMap::new();
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(known),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut end = if written <= length { written } else { 0 };
    file.seek(SeekFrom::Start(end))?;
    let mut lines = BufReader::new(&file);
    loop {
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(known);
        }
        if line.last() != Some(&b'\n') {
            return cut(&file, end).map(|()| known);
        }
        end += line.len() as u64;
        *known.entry(key(&line).to_owned()).or_insert(0) += 1;
    }
}

fn cut(file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)
}

/// A snapshot, with the length of the file of events before it.
pub(super) fn join(written: u64, state: &[u8]) -> Vec<u8> {
    [&written.to_le_bytes(), state].concat()
}

/// The parts of [`join`].
pub(super) fn split(snapshot: &[u8]) -> Option<(u64, &[u8])> {
    let (written, state) = snapshot.split_first_chunk()?;
    Some((u64::from_le_bytes(*written), state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane_monitor::sensors::{SensorEvent, SensorNews};

    fn news(news: SensorNews) -> News {
        News::Sensor(SensorEvent { sensor: "a".parse().unwrap(), news, time_ns: 1_000_000_000 })
    }

    fn open(path: &Path, written: Option<u64>) -> NewsOutput {
        NewsOutput::open(Some(path), written, &Interrupt::default()).unwrap()
    }

    /// Whether it was begun before the last state or behind it, or there is no state.
    #[test]
    fn a_line_that_a_crash_has_torn_is_no_part_of_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.json");
        for written in [None, Some(0), Some(8), Some(99)] {
            fs::write(&path, "{\"a\":1}\n{\"tor").unwrap();
            let mut output = open(&path, written);
            output.forget_known(true);
            output.write(&news(SensorNews::Ended));
            output.finish();
            let text = fs::read_to_string(&path).unwrap();
            let (torn, whole): (Vec<_>, Vec<_>) = text.lines().partition(|line| *line == "{\"tor");
            assert!(whole.len() == 2 && torn.len() <= 1 && text.ends_with("}\n"), "{written:?}: {text}");
            whole.into_iter().for_each(|line| drop(serde_json::from_str::<serde_json::Value>(line).expect("JSON")));
        }
    }

    /// Else a file would never be written on, and all its lines be kept.
    #[test]
    fn lines_that_are_not_told_again_are_forgotten_when_all_is_read_and_what_the_clock_says_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.json");
        let mut output = open(&path, None);
        let before = output.written().unwrap();
        for state in [SensorNews::Ended, SensorNews::Back { late: 1 }, SensorNews::LeftOut { waiting: 0, behind_ns: 0 }]
        {
            output.write(&news(state));
        }
        output.finish();
        let length = fs::metadata(&path).unwrap().len();
        let mut output = open(&path, Some(before));
        output.write(&news(SensorNews::Ended));
        assert_eq!(output.written(), Some(before));
        output.forget_known(false);
        assert_eq!(output.written(), Some(before), "it may be left out again");
        output.write(&news(SensorNews::LeftOut { waiting: 5, behind_ns: 0 }));
        assert_eq!(output.written(), Some(before), "another line may come of it");
        output.forget_known(false);
        assert_eq!(output.written(), Some(length), "nothing is in it twice");
        let mut output = open(&path, Some(before));
        output.forget_known(true);
        assert_eq!(output.written(), Some(length));
    }
}
