//! The state of an aggregator: groups of failures, and how far each sensor has come.

use super::batch::{Batch, BatchError, Header, SensorName};
use crate::continuous::{Continuous, ScanEvent, Scans, ScansState};
use crate::room;
use crate::settings::Settings;
use crate::steps::{STEP_NS, begin_of, step_of};
use crate::through::Through;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// What an [`Aggregator`] has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A scan was found, or has ended.
    Scan(ScanEvent),
    /// Something has become of a sensor.
    Sensor(SensorEvent),
}

/// What has become of a sensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensorEvent {
    /// The sensor.
    pub sensor: SensorName,
    /// What has become of it.
    pub news: SensorNews,
    /// When it has, in nanoseconds since the epoch and by the sensor's own time; for one that is left out that up to
    /// which all is over, 0 if nothing is.
    pub time_ns: u64,
}

/// Writes a sentence for people.
impl fmt::Display for SensorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |time_ns| {
            let time = Timestamp::of(time_ns);
            format!("{} {}", time.date(), time.time())
        };
        write!(f, "sensor {}: ", self.sensor)?;
        match self.news {
            SensorNews::Began { since_ns } => write!(f, "began a run at {}", at(since_ns)),
            SensorNews::Lost { since_ns: 0, until_ns, reports: Some(reports) } => {
                write!(f, "its batches before {} are gone: {reports} failures", at(until_ns))
            }
            SensorNews::Lost { since_ns, until_ns, reports } => {
                write!(f, "lost from {} to {}", at(since_ns), at(until_ns))?;
                reports.map_or(Ok(()), |reports| write!(f, ": {reports} failures"))
            }
            SensorNews::LeftOut { waiting: 0, behind_ns: 0 } => f.write_str("left out: silent"),
            SensorNews::LeftOut { waiting: 0, behind_ns } => {
                write!(f, "left out: it is {:.0} s behind", behind_ns as f64 / 1e9)
            }
            SensorNews::LeftOut { waiting, .. } => {
                write!(f, "left out: it is behind, and {waiting} failures of other sensors wait for it")
            }
            SensorNews::Clock { behind_ns } => {
                let seconds = behind_ns.unsigned_abs() as f64 / 1e9;
                match behind_ns {
                    0 => f.write_str("its clock is right again"),
                    1.. => {
                        write!(f, "its clock is {seconds:.0} s behind the local clock, or its batches take that long")
                    }
                    _ => write!(f, "its clock is {seconds:.0} s ahead of the local clock"),
                }
            }
            SensorNews::Back { late } => write!(f, "back, with {late} failures that came late"),
            SensorNews::Ended => f.write_str("its run has ended"),
        }
    }
}

/// What may become of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SensorNews {
    /// A run of it has begun, at this time in nanoseconds since the epoch.
    Began {
        /// The time.
        since_ns: u64,
    },
    /// Batches of it are missing: it was killed, or its disk was full, or they were removed before they were read.
    Lost {
        /// They are of the time from here, in nanoseconds since the epoch …
        since_ns: u64,
        /// … to here.
        until_ns: u64,
        /// How many reports they had, of all shards, if that is known.
        reports: Option<u64>,
    },
    /// Steps pass without it: it was silent for too long, or is so far behind that others wait too long for it, or that
    /// there is no room for what waits.
    LeftOut {
        /// So many failures of others waited for it, if there was no room; 0 otherwise.
        waiting: u64,
        /// So far it was behind, in nanoseconds, if it was behind for too long; 0 otherwise.
        behind_ns: u64,
    },
    /// Its clock is not that of the aggregator. A program finds this out, as there is no clock here.
    Clock {
        /// By so many nanoseconds it is behind; less than 0 if it is ahead.
        behind_ns: i64,
    },
    /// It has come close to the time up to which all is over, and steps wait for it again.
    Back {
        /// How many of its reports came late, and have counted at later times than their own.
        late: u64,
    },
    /// Its run has ended.
    Ended,
}

/// Why a batch does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not a valid batch.
    Error(BatchError),
    /// It was seen before.
    Again,
    /// A later run of its sensor has begun.
    OldRun,
    /// There are sensors that are expected, and it is of none of them.
    Stranger(SensorName),
    /// It came as another sensor's.
    OtherName(SensorName),
    /// It is of a time that is still to come.
    Future(SensorName),
    /// None are expected, and there are as many sensors as may be.
    Crowded(SensorName),
}

/// How far a sensor has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensorCounts {
    /// The sensor.
    pub sensor: SensorName,
    /// All its steps before this time are over, in nanoseconds since the epoch.
    pub begun_ns: u64,
    /// Batches of its runs that have counted.
    pub batches: u64,
    /// Reports of the shards of this aggregator that have counted.
    pub reports: u64,
    /// Those of them that came late.
    pub late: u64,
    /// Whether steps wait for it.
    pub is_present: bool,
    /// Whether its run has ended.
    pub has_ended: bool,
}

/// What is known of a sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sensor {
    /// Its run, if it was heard.
    epoch: Option<u64>,
    /// The next batch of it.
    next: u64,
    /// The reports of all shards in batches before that.
    before: u64,
    /// All steps before this time are over.
    begun_ns: u64,
    /// Left out, until it is so close to the time up to which all is over.
    out: Option<u64>,
    has_ended: bool,
    batches: u64,
    reports: u64,
    late: u64,
    /// Those since it was left out.
    late_now: u64,
}

impl Sensor {
    /// Whether steps wait for it.
    fn is_present(&self) -> bool {
        self.out.is_none() && !self.has_ended
    }
}

/// Finds scans in the batches of all sensors. See [the module](super).
#[derive(Debug)]
pub struct Aggregator {
    scans: Scans,
    settings: Fixed,
    sensors: BTreeMap<String, Sensor>,
    /// Whether other sensors are refused.
    is_closed: bool,
    /// All steps before this time are over.
    begun_ns: u64,
    /// Those before this time may end though no sensor is waited for.
    alone_ns: u64,
    /// So many reports may wait, or steps in place of three.
    most_waiting: u64,
}

/// The settings that a snapshot is restored with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fixed {
    shards: (u8, u8),
    vertical_threshold: u64,
    horizontal_threshold: u64,
    forget_s: u64,
    suppress_s: u64,
}

/// The form of a snapshot.
#[derive(Serialize, Deserialize)]
struct Saved<'a> {
    settings: Fixed,
    begun_ns: u64,
    alone_ns: u64,
    sensors: BTreeMap<String, Sensor>,
    scans: ScansState<'a>,
}

impl Saved<'_> {
    fn read(snapshot: &[u8]) -> Result<Self, SnapshotError> {
        let bytes = snapshot.strip_prefix(SNAPSHOT).ok_or(SnapshotError::Damaged)?;
        postcard::from_bytes(bytes).map_err(|_| SnapshotError::Damaged)
    }
}

/// A sensor that was silent is waited for again when it is so close to the time up to which all is over. One whose
/// clock is a little behind would not come back otherwise.
const LET_IN_NS: u64 = 60 * STEP_NS;
/// One for which there was no room to wait would be left out again, unless it has come up to the others.
const LET_IN_CLOSE_NS: u64 = 2 * STEP_NS;

/// The most sensors if none are expected: any program that may publish can make names.
const MOST_SENSORS: usize = 1024;
/// If none are expected, one that has ended or is left out is forgotten when it is so far behind what is over.
const FORGET_NS: u64 = 24 * 3600 * STEP_NS;

const SNAPSHOT: &[u8; 4] = b"CLA\x06";

/// Why a snapshot cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// It is none of this version, or damaged.
    Damaged,
    /// It was made with other settings.
    OtherSettings(String),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Damaged => f.write_str("not a snapshot of this version, or damaged"),
            SnapshotError::OtherSettings(settings) => write!(f, "made with other settings: {settings}"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fixed { shards: (first, last), vertical_threshold, horizontal_threshold, forget_s, suppress_s } = self;
        write!(
            f,
            "shards {first}-{last}, thresholds {vertical_threshold} and {horizontal_threshold}, {forget_s} s until a \
             failure is forgotten, {suppress_s} s until a scan is reported again"
        )
    }
}

impl Aggregator {
    /// One that has heard nothing. Of the settings the thresholds and the limit of memory count. Steps wait for all
    /// sensors that are expected, and others are refused; if none are, steps wait for those that were heard, which are
    /// 1024 at most. Then the first that has ended or is left out gives way to a new one, and if there is none, the new
    /// one is refused.
    pub fn new(
        settings: &Settings,
        continuous: &Continuous,
        shards: RangeInclusive<u8>,
        expected: impl IntoIterator<Item = SensorName>,
    ) -> Self {
        let sensors: BTreeMap<_, _> =
            expected.into_iter().map(|name| (name.as_str().to_owned(), Sensor::default())).collect();
        Aggregator {
            scans: Scans::new(settings, &Continuous { reports: false, ..*continuous }),
            settings: Fixed {
                shards: (*shards.start(), *shards.end()),
                vertical_threshold: settings.vertical_threshold,
                horizontal_threshold: settings.horizontal_threshold,
                forget_s: continuous.forget_s,
                suppress_s: continuous.suppress_s,
            },
            is_closed: !sensors.is_empty(),
            sensors,
            begun_ns: 0,
            alone_ns: 0,
            most_waiting: room::waiting(settings),
        }
    }

    /// Goes on from a snapshot of one that was made by the same settings. Those that are expected may differ: others
    /// are not waited for any longer.
    ///
    /// # Errors
    /// If the bytes are no snapshot, or one of other settings. Then nothing has changed.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<(), SnapshotError> {
        let saved = Saved::read(snapshot)?;
        if saved.settings != self.settings {
            return Err(SnapshotError::OtherSettings(saved.settings.to_string()));
        }
        self.go_on(saved);
        Ok(())
    }

    /// One that goes on from a snapshot with the shards, thresholds and times that this was made with. Of the settings
    /// the limit of memory counts. Steps wait for the sensors of the snapshot, and no others are refused.
    ///
    /// # Errors
    /// If the bytes are no snapshot.
    pub fn of_snapshot(snapshot: &[u8], settings: &Settings) -> Result<Self, SnapshotError> {
        let saved = Saved::read(snapshot)?;
        let Fixed { shards: (first, last), vertical_threshold, horizontal_threshold, forget_s, suppress_s } =
            saved.settings;
        let settings = Settings { vertical_threshold, horizontal_threshold, ..settings.clone() };
        let continuous = Continuous { forget_s, suppress_s, ..Continuous::default() };
        let mut aggregator = Aggregator::new(&settings, &continuous, first..=last, []);
        aggregator.go_on(saved);
        Ok(aggregator)
    }

    fn go_on(&mut self, saved: Saved) {
        let expected = std::mem::replace(&mut self.sensors, saved.sensors);
        if self.is_closed {
            self.sensors.retain(|name, _| expected.contains_key(name));
            expected.into_iter().for_each(|(name, sensor)| {
                self.sensors.entry(name).or_insert(sensor);
            });
        }
        (self.begun_ns, self.alone_ns) = (saved.begun_ns, saved.alone_ns);
        self.scans.restore(saved.scans);
    }

    /// The state, to go on from later.
    pub fn snapshot(&self) -> Vec<u8> {
        let saved = Saved {
            settings: self.settings.clone(),
            begun_ns: self.begun_ns,
            alone_ns: self.alone_ns,
            sensors: self.sensors.clone(),
            scans: self.scans.state(),
        };
        postcard::to_extend(&saved, SNAPSHOT.to_vec()).unwrap_or_else(|error| panic!("memory takes all bytes: {error}"))
    }

    /// The shards whose sources it knows.
    pub fn shards(&self) -> RangeInclusive<u8> {
        self.settings.shards.0..=self.settings.shards.1
    }

    /// Takes the bytes of a batch, which came as that of this sensor. Those of a sensor come in order; between sensors
    /// there is none. A batch of a later time than `latest_ns`, in nanoseconds since the epoch, is refused: a clock
    /// that is far ahead would end all steps up to its time. But if it ends the run, nothing else of it counts. One of
    /// a later epoch is refused, too: no run with a right clock would count any more. `news` gets what has become of
    /// the sensor; scans come by [`advance`](Self::advance). Returns the batch, with the reports of its shards.
    ///
    /// # Errors
    /// Why the batch does not count.
    pub fn take(
        &mut self,
        batch: &[u8],
        sensor: &str,
        latest_ns: u64,
        mut news: impl FnMut(News),
    ) -> Result<Batch, Refusal> {
        let mut batch = Batch::decode(batch, &self.shards()).map_err(Refusal::Error)?;
        let Header { sensor: name, epoch, begun_ns, is_last, .. } = &batch.header;
        if name.as_str() != sensor {
            return Err(Refusal::OtherName(name.clone()));
        }
        let is_ahead = *begun_ns > latest_ns;
        if *epoch > step_of(latest_ns) || is_ahead && !is_last {
            return Err(Refusal::Future(name.clone()));
        }
        if is_ahead {
            let begun_ns = self.sensors.get(sensor).map_or(0, |sensor| sensor.begun_ns).max(self.begun_ns);
            batch = batch.without_content(begun_ns);
        }
        let Batch { header, count, reports, others, through } = &batch;
        let name = &header.sensor;
        if self.is_closed && !self.sensors.contains_key(name.as_str()) {
            return Err(Refusal::Stranger(name.clone()));
        }
        if !self.is_closed && self.sensors.len() >= MOST_SENSORS && !self.sensors.contains_key(name.as_str()) {
            let absent = self.sensors.iter().filter(|(_, sensor)| !sensor.is_present());
            let first = absent.min_by_key(|(_, sensor)| sensor.begun_ns).map(|(name, _)| name.clone());
            self.sensors.remove(&first.ok_or_else(|| Refusal::Crowded(name.clone()))?);
        }
        let now_ns = self.begun_ns;
        let mut report = |time_ns, what| news(News::Sensor(SensorEvent { sensor: name.clone(), news: what, time_ns }));
        let sensor = self.sensors.entry(name.as_str().to_owned()).or_default();
        match sensor.epoch {
            Some(epoch) if epoch > header.epoch => return Err(Refusal::OldRun),
            Some(epoch) if epoch == header.epoch && header.sequence < sensor.next => return Err(Refusal::Again),
            Some(epoch) if epoch == header.epoch => {
                // A sensor whose disk was full goes on with the next number.
                if header.sequence > sensor.next || header.before > sensor.before {
                    let reports = header.before.checked_sub(sensor.before);
                    let (since_ns, until_ns) = (sensor.begun_ns, header.since_ns);
                    report(until_ns, SensorNews::Lost { since_ns, until_ns, reports });
                }
                sensor.has_ended = false;
            }
            before => {
                // What a run has left behind that was not ended.
                if before.is_some() && !sensor.has_ended && header.since_ns > sensor.begun_ns {
                    let (since_ns, until_ns) = (sensor.begun_ns, header.since_ns);
                    report(until_ns, SensorNews::Lost { since_ns, until_ns, reports: None });
                }
                report(header.since_ns, SensorNews::Began { since_ns: header.since_ns });
                if header.sequence > 0 {
                    let (until_ns, reports) = (header.since_ns, Some(header.before));
                    report(until_ns, SensorNews::Lost { since_ns: 0, until_ns, reports });
                }
                // The clock of a new run may have been put right.
                (sensor.epoch, sensor.has_ended, sensor.begun_ns) = (Some(header.epoch), false, header.since_ns);
                // What is over would be held up by a run that begins long ago, and by the next.
                let behind_ns = now_ns.saturating_sub(header.since_ns);
                if behind_ns > LET_IN_NS && sensor.out.is_none() {
                    (sensor.out, sensor.late_now) = (Some(LET_IN_NS), 0);
                    report(now_ns, SensorNews::LeftOut { waiting: 0, behind_ns });
                }
            }
        }
        (sensor.next, sensor.before) = (header.sequence.saturating_add(1), header.before.saturating_add(*count));
        sensor.batches += 1;
        sensor.reports += reports.len() as u64;
        for report in reports {
            let is_late = report.time_ns() < now_ns;
            sensor.late += u64::from(is_late);
            sensor.late_now += u64::from(is_late);
            self.scans.report(report.at(report.time_ns().max(now_ns)));
        }
        for report in others {
            self.scans.report(report.at(report.time_ns().max(now_ns)));
        }
        for it in through {
            self.scans.through(Through { time_ns: it.time_ns.max(now_ns), ..*it });
        }
        if !header.more {
            sensor.begun_ns = sensor.begun_ns.max(header.begun_ns);
        }
        if sensor.out.is_some_and(|close_ns| sensor.begun_ns.saturating_add(close_ns) >= now_ns) {
            sensor.out = None;
            report(sensor.begun_ns, SensorNews::Back { late: std::mem::take(&mut sensor.late_now) });
        }
        if header.is_last {
            sensor.has_ended = true;
            report(sensor.begun_ns, SensorNews::Ended);
        }
        Ok(batch)
    }

    /// Lets those steps end that all sensors have passed. Sensors that are expected hold steps back before they were
    /// heard too.
    ///
    /// If more reports wait then than there is room for, the sensors that hold them back are left out. That is all that
    /// is done then, and `true` comes back: one who would decide the same after a restart takes a
    /// [snapshot](Self::snapshot) before the next call, which lets the steps end that waited for them.
    ///
    /// If no sensor holds them back, as those that wait are a flood or are dated ahead, they count at once, by the
    /// latest time of all sensors. After a restart they may count at other times.
    pub fn advance(&mut self, mut news: impl FnMut(News)) -> bool {
        let begun_ns = self.present().map(|(_, sensor)| sensor.begun_ns).min();
        self.pass(begun_ns.unwrap_or(self.alone_ns), &mut news);
        if self.scans.waiting_room() <= self.most_waiting {
            return false;
        }
        // One that is so close would be back at once.
        let is_close = |sensor: &Sensor| Some(sensor.begun_ns) <= begun_ns.map(|it| it.saturating_add(LET_IN_CLOSE_NS));
        if self.present().all(|(_, sensor)| is_close(sensor)) {
            let end_ns = self.sensors.values().map(|sensor| sensor.begun_ns).max().unwrap_or(0).max(self.begun_ns);
            self.scans.count_early(end_ns, |scan| news(News::Scan(scan)));
            return false;
        }
        let behind = self.present().filter(|(_, sensor)| Some(sensor.begun_ns) == begun_ns);
        let behind: Vec<_> = behind.map(|(name, _)| name.clone()).collect();
        let waiting = self.waiting();
        let left_out = SensorNews::LeftOut { waiting, behind_ns: 0 };
        behind.iter().for_each(|name| self.leave(name, left_out, LET_IN_CLOSE_NS, &mut news));
        true
    }

    /// Sensors that steps wait for.
    fn present(&self) -> impl Iterator<Item = (&String, &Sensor)> {
        self.sensors.iter().filter(|(_, sensor)| sensor.is_present())
    }

    /// If no sensor is waited for, as all have ended or are left out, [`advance`](Self::advance) lets those steps end
    /// from now on that any of them has passed. Says whether there are such. A run that begins later may be late then.
    pub fn go_on_alone(&mut self) -> bool {
        let begun_ns = self.sensors.values().map(|sensor| sensor.begun_ns).max().unwrap_or(0);
        let is_due = begun_ns > self.begun_ns.max(self.alone_ns) && self.present().next().is_none();
        if is_due {
            self.alone_ns = begun_ns;
        }
        is_due
    }

    fn pass(&mut self, begun_ns: u64, news: &mut impl FnMut(News)) {
        let over = |&step: &u64| begin_of(step.saturating_add(1)) <= begun_ns;
        while let Some(step) = self.scans.next_due().filter(over) {
            self.scans.end(step, |scan| news(News::Scan(scan)));
        }
        if !self.is_closed && begun_ns > self.begun_ns {
            let is_old = |sensor: &Sensor| sensor.begun_ns.saturating_add(FORGET_NS) < begun_ns;
            self.sensors.retain(|_, sensor| sensor.is_present() || !is_old(sensor));
        }
        self.begun_ns = self.begun_ns.max(begun_ns);
    }

    /// Steps do not wait for this sensor any longer, which is silent or by so many nanoseconds behind, until it has
    /// come up to the others: to within a minute, and half of what it was behind.
    pub fn leave_out(&mut self, sensor: &SensorName, behind_ns: u64, news: impl FnMut(News)) {
        let close_ns = if behind_ns > 0 { LET_IN_NS.min(behind_ns / 2) } else { LET_IN_NS };
        self.leave(sensor.as_str(), SensorNews::LeftOut { waiting: 0, behind_ns }, close_ns, news);
    }

    fn leave(&mut self, sensor: &str, left_out: SensorNews, close_ns: u64, mut news: impl FnMut(News)) {
        let known = self.sensors.get_mut(sensor).filter(|known| known.is_present());
        if let (Some(known), Ok(sensor)) = (known, sensor.parse()) {
            (known.out, known.late_now) = (Some(close_ns), 0);
            news(News::Sensor(SensorEvent { sensor, news: left_out, time_ns: self.begun_ns }));
        }
    }

    /// Whether there are sensors, and the runs of all have ended.
    pub fn have_all_ended(&self) -> bool {
        !self.sensors.is_empty() && self.sensors.values().all(|sensor| sensor.has_ended)
    }

    /// Nothing more comes, as at the end of a capture: all that is left counts, and scans that go on end.
    pub fn finish(mut self, mut news: impl FnMut(News)) {
        let end_ns = self.sensors.values().map(|sensor| sensor.begun_ns).max().unwrap_or(0).max(self.begun_ns);
        self.pass(end_ns, &mut news);
        self.scans.finish(end_ns, |scan| news(News::Scan(scan)));
    }

    /// All steps before this time are over, in nanoseconds since the epoch.
    pub fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// The number of groups of failures.
    pub fn groups(&self) -> u64 {
        self.scans.len() as u64
    }

    /// How many groups were given up for want of memory.
    pub fn evicted(&self) -> u64 {
        self.scans.evicted()
    }

    /// Reports that wait until all sensors have passed their step.
    pub fn waiting(&self) -> u64 {
        self.scans.waiting()
    }

    /// Scans found, by SYNs and by other probes.
    pub fn found(&self) -> [u64; 2] {
        self.scans.found()
    }

    /// Scans that were told and are only counted for now, in no order: as they were found, but for the count, which is
    /// that of their failures so far.
    pub fn going_on(&self) -> impl Iterator<Item = ScanEvent> {
        self.scans.going_on()
    }

    /// Whether this sensor is expected, or was heard and is not forgotten.
    pub fn knows(&self, sensor: &str) -> bool {
        self.sensors.contains_key(sensor)
    }

    /// How far the sensors have come.
    pub fn sensors(&self) -> impl Iterator<Item = SensorCounts> {
        self.sensors.iter().filter_map(|(name, sensor)| {
            Some(SensorCounts {
                sensor: name.parse().ok()?,
                begun_ns: sensor.begun_ns,
                batches: sensor.batches,
                reports: sensor.reports,
                late: sensor.late,
                is_present: sensor.is_present(),
                has_ended: sensor.has_ended,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::continuous::ScanState;
    use crate::sensors::batch::encode;
    use crate::state_report::{Failure, StateReport, Tried, Verdict};
    use crate::steps::STEP_NS;

    const FAILED: Verdict = Verdict::Failed(Failure::Unanswered);

    fn name(name: &str) -> SensorName {
        name.parse().unwrap()
    }

    /// A sensor that fails at the next port of one host in each second.
    struct Scanned {
        header: Header,
        port: u16,
    }

    impl Scanned {
        fn new(sensor: &str, epoch: u64, second: u64) -> Self {
            let time_ns = second * STEP_NS;
            let header = Header {
                sensor: name(sensor),
                epoch,
                sequence: 0,
                before: 0,
                since_ns: time_ns,
                begun_ns: time_ns,
                more: false,
                is_last: false,
            };
            Scanned { header, port: 0 }
        }

        fn second(&mut self) -> Vec<u8> {
            self.port += 1;
            let destination = u32::from_be_bytes([10, 0, 0, self.header.sensor.as_str().len() as u8]);
            let tried = Tried { source: 7, destination, port: self.port, probe: None };
            let mut reports = vec![StateReport::v4(tried, self.header.since_ns + 5, FAILED)];
            self.header.begun_ns += STEP_NS;
            let mut bytes = Vec::new();
            encode(&mut self.header, &mut reports, &[], |_, batch| bytes.extend_from_slice(batch));
            bytes
        }
    }

    fn aggregator(expected: &[&str]) -> Aggregator {
        let settings = Settings { vertical_threshold: 2, ..Settings::default() };
        Aggregator::new(&settings, &Continuous::default(), 0..=255, expected.iter().map(|it| name(it)))
    }

    /// What is said of a batch and of the steps that it ends, in few words.
    fn said(aggregator: &mut Aggregator, batch: &[u8]) -> Vec<String> {
        let mut said = Vec::new();
        let mut receive = |news| {
            said.push(match news {
                News::Scan(scan) => format!("scan {} at {}", scan.scan.count(), scan.scan.time_ns() / STEP_NS),
                News::Sensor(SensorEvent { sensor, news, time_ns }) => {
                    format!("{sensor} at {}: {news:?}", time_ns / STEP_NS)
                }
            });
        };
        // As whose a batch comes is what it says, of those that can be read.
        let sensor = Batch::decode(batch, &(0..=255)).map_or(String::new(), |batch| batch.header.sensor.to_string());
        if let Err(refusal) = aggregator.take(batch, &sensor, 1000 * STEP_NS, &mut receive) {
            return vec![format!("{refusal:?}")];
        }
        while aggregator.advance(&mut receive) {}
        said
    }

    fn seconds(aggregator: &mut Aggregator, sensor: &mut Scanned, count: usize) -> Vec<String> {
        (0..count).flat_map(|_| said(aggregator, &sensor.second())).collect()
    }

    #[test]
    fn what_a_sensor_has_held_back_is_told_though_all_others_have_ended() {
        let mut aggregator = aggregator(&["a", "bb"]);
        let mut a = Scanned::new("a", 1, 100);
        seconds(&mut aggregator, &mut a, 4);
        a.header.is_last = true;
        assert_eq!(said(&mut aggregator, &a.second()), ["a at 105: Ended"]);
        assert!(!aggregator.go_on_alone(), "the other is waited for");
        aggregator.leave_out(&name("bb"), 0, drop);
        let mut scans = 0;
        let mut count = |news| scans += usize::from(matches!(news, News::Scan(_)));
        aggregator.advance(&mut count);
        assert!(aggregator.go_on_alone());
        assert!(!aggregator.go_on_alone(), "it is decided");
        // Another that goes on from here does not have to decide it.
        let snapshot = aggregator.snapshot();
        let mut again = super::tests::aggregator(&["a", "bb"]);
        again.restore(&snapshot).unwrap();
        again.advance(drop);
        assert_eq!(again.begun_ns(), 105 * STEP_NS);
        aggregator.advance(&mut count);
        assert!(!aggregator.go_on_alone(), "nothing is left");
        assert_eq!((scans, aggregator.begun_ns(), aggregator.waiting()), (1, 105 * STEP_NS, 0));
    }

    #[test]
    fn steps_wait_for_a_sensor_that_is_expected_until_it_is_left_out_and_what_it_brings_then_is_late() {
        let mut aggregator = aggregator(&["a", "bb"]);
        let (mut a, mut b) = (Scanned::new("a", 1, 200), Scanned::new("bb", 1, 142));
        assert_eq!(seconds(&mut aggregator, &mut a, 5), ["a at 200: Began { since_ns: 200000000000 }"]);
        assert_eq!(aggregator.waiting(), 5);
        let mut news = Vec::new();
        aggregator.leave_out(&name("bb"), 0, |it| news.push(it));
        // A second time changes nothing.
        aggregator.leave_out(&name("bb"), 0, |it| news.push(it));
        assert!(
            matches!(
                &news[..],
                [News::Sensor(SensorEvent { news: SensorNews::LeftOut { waiting: 0, behind_ns: 0 }, .. })]
            ),
            "{news:?}"
        );
        assert_eq!(seconds(&mut aggregator, &mut a, 1), ["scan 3 at 202"]);
        // Its third failure is of 144, and counts at 206, where all others are.
        let expected = ["bb at 142: Began { since_ns: 142000000000 }"];
        assert_eq!(seconds(&mut aggregator, &mut b, 3), expected);
        assert_eq!(seconds(&mut aggregator, &mut a, 1), ["scan 3 at 206"]);
        assert_eq!(seconds(&mut aggregator, &mut b, 1), Vec::<String>::new());
        assert_eq!(seconds(&mut aggregator, &mut b, 1), ["bb at 147: Back { late: 5 }"]);
        assert_eq!(aggregator.begun_ns(), 207 * STEP_NS);
        // From now on it is waited for again.
        seconds(&mut aggregator, &mut a, 3);
        assert_eq!(aggregator.begun_ns(), 207 * STEP_NS);
        let counts: Vec<_> = aggregator.sensors().map(|it| (it.batches, it.reports, it.late, it.is_present)).collect();
        assert_eq!(counts, [(10, 10, 0, true), (5, 5, 5, true)]);
        // The last step would never end if a clock that is ahead were believed.
        let future = ["Future(SensorName(\"a\"))"];
        assert_eq!(said(&mut aggregator, &Scanned::new("a", 2, 1000).second()), future);
        // Nor would a run with a right clock count again behind an epoch that is ahead.
        for epoch in [1001, u64::MAX] {
            assert_eq!(said(&mut aggregator, &Scanned::new("a", epoch, 207).second()), future);
        }
        assert_eq!(said(&mut aggregator, &a.second()), Vec::<String>::new());
        assert_eq!(aggregator.take(&a.second(), "bb", u64::MAX, drop), Err(Refusal::OtherName(name("a"))));
    }

    #[test]
    fn one_that_is_behind_is_left_out_when_there_is_no_room_to_wait_and_comes_back_when_it_has_come_up() {
        let mut aggregator = aggregator(&["a", "bb", "ccc"]);
        // Four failures, each of a step of its own.
        aggregator.most_waiting = 16;
        let (mut a, mut b, mut c) =
            (Scanned::new("a", 1, 200), Scanned::new("bb", 1, 199), Scanned::new("ccc", 1, 205));
        for sensor in [&mut a, &mut b, &mut c] {
            seconds(&mut aggregator, sensor, 1);
        }
        seconds(&mut aggregator, &mut a, 2);
        assert_eq!((aggregator.waiting(), aggregator.begun_ns()), (4, 200 * STEP_NS));
        let expected = ["bb at 200: LeftOut { waiting: 5, behind_ns: 0 }", "scan 3 at 202"];
        assert_eq!(seconds(&mut aggregator, &mut a, 1), expected);
        assert_eq!((aggregator.waiting(), aggregator.begun_ns()), (1, 204 * STEP_NS), "a is waited for");
        // Three seconds behind it would be left out again.
        assert_eq!(seconds(&mut aggregator, &mut b, 1), Vec::<String>::new());
        assert_eq!(seconds(&mut aggregator, &mut b, 1), ["bb at 202: Back { late: 2 }"]);
        // One that is alone waits for no other.
        for sensor in ["a", "ccc"] {
            aggregator.leave_out(&name(sensor), 0, drop);
        }
        assert_eq!(seconds(&mut aggregator, &mut b, 2), Vec::<String>::new());
        assert_eq!((aggregator.waiting(), aggregator.begun_ns()), (5, 204 * STEP_NS));
    }

    /// Failures dated ahead, in batches behind which more of the same time follow, wait for no sensor that could be
    /// left out. They count early, with or without others.
    #[test]
    fn no_more_waits_than_there_is_room_for_and_what_is_dated_ahead_counts_early() {
        for others in [&["bb"][..], &[]] {
            let mut aggregator = aggregator(&[]);
            aggregator.most_waiting = 100;
            let (mut evil, mut b) = (Scanned::new("evil", 1, 300), Scanned::new("bb", 1, 300));
            seconds(&mut aggregator, &mut evil, 1);
            others.iter().for_each(|_| drop(seconds(&mut aggregator, &mut b, 1)));
            if others.is_empty() {
                aggregator.leave_out(&name("evil"), 0, drop);
            }
            let mut scans = 0;
            for number in 0..100 {
                evil.header.since_ns = 301 * STEP_NS;
                // Some of one second, some of many.
                let ahead = |port: u16| 302 + if number % 2 == 0 { 0 } else { u64::from(port) };
                let mut reports: Vec<_> = (0..50)
                    .map(|port| {
                        let tried = Tried { source: number, destination: 7, port, probe: None };
                        StateReport::v4(tried, ahead(port) * STEP_NS, FAILED)
                    })
                    .collect();
                let mut batch = Vec::new();
                let mut header = Header { more: true, ..evil.header.clone() };
                encode(&mut header, &mut reports, &[], |_, bytes| batch.extend_from_slice(bytes));
                // Encoded without a rest, it says that there is none.
                batch[4] |= 1;
                (evil.header.sequence, evil.header.before) = (header.sequence, header.before);
                scans += said(&mut aggregator, &batch).iter().filter(|news| news.starts_with("scan")).count();
                assert!(aggregator.waiting() <= 100 && aggregator.scans.waiting_room() <= 100, "{number}");
            }
            assert!(scans > 90, "{scans}");
            assert_eq!(aggregator.begun_ns(), 301 * STEP_NS);
        }
    }

    /// Else each run that begins long ago would hold up all others until the clock has left it out.
    #[test]
    fn a_run_that_begins_long_before_what_is_over_is_not_waited_for_until_it_is_close() {
        let mut aggregator = aggregator(&[]);
        let mut a = Scanned::new("a", 1, 1000 - 100);
        seconds(&mut aggregator, &mut a, 5);
        for epoch in 1..3 {
            let mut b = Scanned::new("bb", epoch, 300);
            let expected = [
                "bb at 300: Began { since_ns: 300000000000 }",
                "bb at 905: LeftOut { waiting: 0, behind_ns: 605000000000 }",
            ];
            // The next is left out still.
            assert_eq!(seconds(&mut aggregator, &mut b, 1), expected[..3 - epoch as usize]);
            seconds(&mut aggregator, &mut a, 1);
            assert_eq!(aggregator.begun_ns(), (905 + epoch) * STEP_NS);
        }
        let mut b = Scanned::new("bb", 3, 840);
        seconds(&mut aggregator, &mut b, 6);
        assert!(aggregator.sensors().all(|sensor| sensor.is_present != (sensor.sensor == name("bb"))));
        assert_eq!(seconds(&mut aggregator, &mut b, 1), ["bb at 847: Back { late: 9 }"]);
        let mut c = Scanned::new("ccc", 1, 860);
        assert_eq!(seconds(&mut aggregator, &mut c, 1), ["ccc at 860: Began { since_ns: 860000000000 }"]);
    }

    #[test]
    fn one_that_was_left_out_for_what_it_was_behind_is_back_when_it_is_half_as_far() {
        let mut aggregator = aggregator(&["a", "bb"]);
        let (mut a, mut b) = (Scanned::new("a", 1, 200), Scanned::new("bb", 1, 200));
        seconds(&mut aggregator, &mut a, 40);
        seconds(&mut aggregator, &mut b, 1);
        aggregator.leave_out(&name("bb"), 39 * STEP_NS, drop);
        aggregator.advance(drop);
        assert_eq!(aggregator.begun_ns(), 240 * STEP_NS);
        assert_eq!(seconds(&mut aggregator, &mut b, 19), Vec::<String>::new());
        assert_eq!(seconds(&mut aggregator, &mut b, 1), ["bb at 221: Back { late: 20 }"]);
    }

    #[test]
    fn what_is_missing_is_said_and_what_was_seen_does_not_count() {
        let mut aggregator = aggregator(&[]);
        let mut a = Scanned::new("a", 5, 100);
        let batches: Vec<_> = (0..6).map(|_| a.second()).collect();
        // The aggregator has come too late for the first.
        let expected = [
            "a at 101: Began { since_ns: 101000000000 }",
            "a at 101: Lost { since_ns: 0, until_ns: 101000000000, reports: Some(1) }",
        ];
        assert_eq!(said(&mut aggregator, &batches[1]), expected);
        assert_eq!(said(&mut aggregator, &batches[1]), ["Again"]);
        assert_eq!(said(&mut aggregator, &batches[0]), ["Again"]);
        let expected = ["a at 104: Lost { since_ns: 102000000000, until_ns: 104000000000, reports: Some(2) }"];
        assert_eq!(said(&mut aggregator, &batches[4]), expected);
        // It was killed, and has begun again three seconds later.
        let mut again = Scanned::new("a", 6, 108);
        let expected = [
            "a at 108: Lost { since_ns: 105000000000, until_ns: 108000000000, reports: None }",
            "a at 108: Began { since_ns: 108000000000 }",
        ];
        assert_eq!(said(&mut aggregator, &again.second())[..2], expected);
        assert_eq!(said(&mut aggregator, &batches[5]), ["OldRun"]);
        let mut strict = super::tests::aggregator(&["b"]);
        assert_eq!(said(&mut strict, &batches[0]), ["Stranger(SensorName(\"a\"))"]);
        assert_eq!(said(&mut strict, b"CLB\x09..."), ["Error(Version(9))"]);
        assert_eq!(strict.sensors().count(), 1);
    }

    /// A capture may have a record of a time that is still to come. What follows it is of that time, too.
    #[test]
    fn the_end_of_a_run_is_one_though_its_time_is_still_to_come_and_says_what_is_lost() {
        let mut aggregator = aggregator(&["a", "bb"]);
        let (mut a, mut b) = (Scanned::new("a", 1, 100), Scanned::new("bb", 1, 5000));
        seconds(&mut aggregator, &mut a, 3);
        (a.header.since_ns, a.header.begun_ns) = (7000 * STEP_NS, 7000 * STEP_NS);
        assert_eq!(seconds(&mut aggregator, &mut a, 2), ["Future(SensorName(\"a\"))"; 2]);
        a.header.is_last = true;
        let last = a.second();
        let expected = ["a at 103: Lost { since_ns: 103000000000, until_ns: 103000000000, reports: Some(3) }"];
        assert_eq!(said(&mut aggregator, &last), [expected[0], "a at 103: Ended"]);
        assert_eq!(said(&mut aggregator, &last), ["Again"]);
        // Another one has nothing else.
        b.header.is_last = true;
        assert_eq!(said(&mut aggregator, &b.second()).last().unwrap(), "bb at 0: Ended");
        assert!(aggregator.have_all_ended());
        let mut scans = Vec::new();
        aggregator.finish(|news| scans.push(news));
        assert!(matches!(&scans[..], [News::Scan(found), News::Scan(_)] if found.scan.count() == 3), "{scans:?}");
    }

    /// Who may publish can make as many names as it likes.
    #[test]
    fn names_take_no_more_memory_than_those_of_the_most_sensors_and_are_forgotten() {
        let mut aggregator = aggregator(&[]);
        let mut honest = Scanned::new("honest", 1, 100);
        seconds(&mut aggregator, &mut honest, 1);
        let evil = |number: usize| Scanned::new(&format!("x{number:063}"), 1, 100 + number as u64 / 1000).second();
        for number in 1..MOST_SENSORS {
            assert_eq!(said(&mut aggregator, &evil(number)).len(), 1);
        }
        assert!(said(&mut aggregator, &evil(5000))[0].starts_with("Crowded"));
        // Those that have ended or are left out give way, the first of them first.
        for number in [1, 1001, 2] {
            aggregator.leave_out(&name(&format!("x{number:063}")), 0, drop);
        }
        for number in 5001..5004 {
            assert_eq!(said(&mut aggregator, &evil(number)).len(), 1, "{number}");
            let is_there = [1, 2, 1001].map(|number| aggregator.knows(&format!("x{number:063}")));
            assert_eq!(is_there.iter().filter(|&&is_there| is_there).count(), 5003 - number);
            assert_eq!(is_there[2], number < 5003, "it has come further");
        }
        assert!(said(&mut aggregator, &evil(5004))[0].starts_with("Crowded"));
        let names: Vec<_> = aggregator.sensors().map(|it| it.sensor).collect();
        assert!(names.len() == MOST_SENSORS && names.contains(&name("honest")));
        names.iter().filter(|it| it.as_str() != "honest").for_each(|it| aggregator.leave_out(it, 0, drop));
        let snapshot = aggregator.snapshot();
        let hour = 3600 * STEP_NS;
        for day in 1..3 {
            (honest.header.since_ns, honest.header.begun_ns) = (day * 23 * hour, day * 23 * hour);
            let batch = honest.second();
            aggregator.take(&batch, "honest", u64::MAX, drop).unwrap();
            aggregator.advance(drop);
            assert_eq!(aggregator.sensors().count(), if day == 1 { MOST_SENSORS } else { 1 });
        }
        assert!(aggregator.knows("honest") && aggregator.snapshot().len() < snapshot.len() / 100);
        // Those that are expected are not forgotten.
        let mut strict = super::tests::aggregator(&["honest", "other"]);
        strict.take(&Scanned::new("honest", 1, 1_000_000).second(), "honest", u64::MAX, drop).unwrap();
        strict.leave_out(&name("other"), 0, drop);
        strict.advance(drop);
        assert!(strict.begun_ns() > FORGET_NS && strict.knows("other"));
    }

    #[test]
    fn a_snapshot_is_gone_on_from_with_the_same_settings_alone() {
        let mut first = aggregator(&["a", "bb"]);
        let mut a = Scanned::new("a", 1, 100);
        seconds(&mut first, &mut a, 4);
        let snapshot = first.snapshot();
        // Now `bb` is not waited for any longer.
        let mut second = aggregator(&["a", "c"]);
        second.restore(&snapshot).unwrap();
        let names: Vec<_> = second.sensors().map(|it| (it.sensor.to_string(), it.batches)).collect();
        assert_eq!(names, [("a".to_owned(), 4), ("c".to_owned(), 0)]);
        second.leave_out(&name("c"), 0, |_| {});
        assert_eq!(seconds(&mut second, &mut a, 1), ["scan 3 at 102"]);
        let settings = Settings { vertical_threshold: 3, ..Settings::default() };
        let mut other = Aggregator::new(&settings, &Continuous::default(), 0..=255, []);
        let error = other.restore(&snapshot).unwrap_err().to_string();
        assert!(error.contains("thresholds 2 and 20"), "{error}");
        for cut in [0, 3, snapshot.len() / 2, snapshot.len() - 1] {
            assert_eq!(other.restore(&snapshot[..cut]), Err(SnapshotError::Damaged), "{cut}");
        }
    }

    #[test]
    fn one_that_only_looks_knows_the_settings_of_a_snapshot_and_what_goes_on() {
        let settings = Settings { vertical_threshold: 2, ..Settings::default() };
        let mut first = Aggregator::new(&settings, &Continuous::default(), 0..=200, [name("a")]);
        let mut a = Scanned::new("a", 1, 100);
        seconds(&mut first, &mut a, 5);
        let looks = Aggregator::of_snapshot(&first.snapshot(), &Settings::default()).unwrap();
        assert_eq!((looks.shards(), looks.snapshot()), (0..=200, first.snapshot()));
        let going_on: Vec<_> = looks.going_on().collect();
        let [ScanEvent { scan, state: ScanState::Found, .. }] = &going_on[..] else { panic!("{going_on:?}") };
        assert_eq!((scan.time_ns() / STEP_NS, scan.count()), (102, 5));
        // Its end belongs to it, though the count is another one.
        let mut ended = Vec::new();
        looks.finish(|news| ended.push(news));
        assert!(matches!(&ended[..], [News::Scan(end)] if end.is_of(&going_on[0])), "{ended:?}");
        assert!(Aggregator::of_snapshot(&first.snapshot()[1..], &settings).is_err());
    }
}
