//! The output of an aggregator: a file of events, or lines of text.

use crate::exit::{Exit, complain};
use crate::output::{Condition, Output, Stream, Units, is_standard};
use corelane_monitor::eve;
use corelane_monitor::sensors::News;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where scans and news of sensors go.
pub(super) struct NewsOutput {
    /// `None` are lines of text on the standard output.
    eve: Option<Eve>,
    /// Why the state is not stored, if it is not.
    pub(super) problem: Option<String>,
    /// Whether the reader of the standard output has gone.
    pub(super) is_gone: bool,
}

struct Eve {
    stream: Stream,
    /// If it is a file that can be looked into.
    path: Option<PathBuf>,
    /// The [keys](key) of lines that were written behind the last snapshot, which come again now …
    known: HashMap<Vec<u8>, u64>,
    /// … and where the first of them begins.
    behind: u64,
}

impl NewsOutput {
    /// Opens the output. `written` is the length that a file had at the snapshot that is gone on from: what is behind
    /// that comes again, and is not written again.
    pub(super) fn open(eve: Option<&Path>, written: Option<u64>) -> Result<Self, String> {
        let Some(path) = eve else { return Ok(NewsOutput { eve: None, problem: None, is_gone: false }) };
        let refusal = |error: io::Error| format!("{}: {error}", path.display());
        let is_file = !is_standard(path) && fs::metadata(path).map_or(true, |facts| facts.is_file());
        let mut known = HashMap::new();
        if let Some(written) = written.filter(|_| is_file) {
            known = lines_behind(path, written).map_err(refusal)?;
        }
        let output = Output::append(path).map_err(|error| error.to_string())?;
        let stream = output.into_stream().enduring(Units::Lines);
        let path = is_file.then(|| path.to_owned());
        let eve = Some(Eve { stream, path, known, behind: written.unwrap_or(0) });
        Ok(NewsOutput { eve, problem: None, is_gone: false })
    }

    pub(super) fn write(&mut self, news: &News) {
        if let News::Sensor(event) = news {
            complain(event);
        }
        match (&mut self.eve, news) {
            (None, News::Scan(scan)) => self.is_gone |= writeln!(io::stdout().lock(), "{scan}").is_err(),
            (None, News::Sensor(_)) => {}
            (Some(eve), news) => {
                let mut line = Vec::new();
                // Memory takes all bytes.
                let _ = match news {
                    News::Scan(scan) => eve::write_scan(scan, &mut line),
                    News::Sensor(event) => eve::write_sensor(event, &mut line),
                };
                match eve.known.get_mut(key(&line)) {
                    Some(1) => drop(eve.known.remove(key(&line))),
                    Some(count) => *count -= 1,
                    None => self.is_gone |= !eve.stream.put(&line),
                }
            }
        }
    }

    pub(super) fn flush(&mut self) {
        match &mut self.eve {
            Some(eve) => drop(eve.stream.flush()),
            None => drop(io::stdout().lock().flush()),
        }
    }

    pub(super) fn reopen(&mut self) {
        if let Some(eve) = &mut self.eve {
            eve.stream.reopen();
            eve.behind = 0;
        }
    }

    pub(super) fn condition(&self) -> Option<(&'static str, Condition)> {
        self.eve.as_ref().map(|eve| ("events", eve.stream.condition()))
    }

    /// All batches are read: what has not come again by now will not. But if a sensor is among it that was left
    /// out, the state was not stored after that, and the clock will decide it again, and all that comes of it.
    pub(super) fn forget_known(&mut self, clock_is_over: bool) {
        if let Some(eve) = &mut self.eve {
            let is_left_out = |line: &[u8]| line.windows(LEFT_OUT.len()).any(|part| part == LEFT_OUT);
            if clock_is_over || !eve.known.keys().any(|line| is_left_out(line)) {
                eve.known = HashMap::new();
            }
        }
    }

    /// The length of the file, once all is in it, or its length before what is to come again. `None`
    /// means that something cannot be written.
    pub(super) fn written(&mut self) -> Option<u64> {
        let Some(eve) = &mut self.eve else { return Some(0) };
        eve.stream.flush();
        if eve.stream.condition().error.is_some() {
            return None;
        }
        if !eve.known.is_empty() {
            return Some(eve.behind);
        }
        Some(eve.path.as_ref().and_then(|path| fs::metadata(path).ok()).map_or(0, |facts| facts.len()))
    }

    pub(super) fn finish(&mut self) -> Result<Exit, String> {
        match self.eve.take() {
            None => Ok(Exit::Done),
            Some(eve) => eve.stream.finish().map_err(|error| error.to_string()),
        }
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

    /// Else a file would never be written on, and all its lines be kept.
    #[test]
    fn lines_that_are_not_told_again_are_forgotten_when_all_is_read_and_what_the_clock_says_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.json");
        let mut output = NewsOutput::open(Some(&path), None).unwrap();
        let before = output.written().unwrap();
        for state in [SensorNews::Ended, SensorNews::Back { late: 1 }, SensorNews::LeftOut { waiting: 0, behind_ns: 0 }]
        {
            output.write(&news(state));
        }
        output.finish().unwrap();
        let length = fs::metadata(&path).unwrap().len();
        let mut output = NewsOutput::open(Some(&path), Some(before)).unwrap();
        output.write(&news(SensorNews::Ended));
        assert_eq!(output.written(), Some(before));
        output.forget_known(false);
        assert_eq!(output.written(), Some(before), "it may be left out again");
        output.write(&news(SensorNews::LeftOut { waiting: 5, behind_ns: 0 }));
        assert_eq!(output.written(), Some(before), "another line may come of it");
        output.forget_known(false);
        assert_eq!(output.written(), Some(length), "nothing is in it twice");
        let mut output = NewsOutput::open(Some(&path), Some(before)).unwrap();
        output.forget_known(true);
        assert_eq!(output.written(), Some(length));
    }
}
