//! What many sensors report: how far each has come, the failed attempts of each second, and the main sources.

use super::{ENTRIES, FEW, Recent, SECONDS, add, halve};
use crate::top::filter::Subject;
use corelane_monitor::sensors::{Header, SensorCounts, SensorName};
use corelane_monitor::{Content, STEP_NS, ScanEvent, StateReport};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;

/// A sensor that is so close to the clock here goes by it.
const CLOSE_NS: u64 = 600 * STEP_NS;

/// The sensors of a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    /// All steps before this time are over, in nanoseconds since the epoch; 0 if none is.
    pub(crate) over_ns: u64,
    /// Why no batches come, if that is so.
    pub(crate) problem: Option<String>,
    /// Whether all that is there was read.
    pub(crate) is_caught_up: bool,
    /// Failures that wait until all sensors have passed their step.
    pub(crate) waiting: u64,
    /// Batches and records that do not count.
    pub(crate) refused: u64,
    /// The second by the clock here, from any moment on, and that of the last message.
    pub(crate) now: u64,
    pub(crate) said: u64,
    /// The time by the clock here, in nanoseconds since the epoch, if the sensors go by the same; else 0.
    clock_ns: u64,
    pub(crate) sensors: BTreeMap<SensorName, Sensor>,
    pub(crate) sources: HashMap<IpAddr, Source>,
    /// Whether sources were given up.
    pub(crate) is_cut: bool,
    /// Failed attempts of the last seconds, by the sensors' own times, and which second is the last.
    seconds: (VecDeque<u64>, u64),
}

/// A sensor.
#[derive(Clone, Debug)]
pub(crate) struct Sensor {
    /// How far it has come, over all shards.
    pub(crate) counts: SensorCounts,
    /// Its failed attempts, by its own time.
    recent: Recent,
    /// How many failures are known to be lost, and whether there are others.
    pub(crate) lost: (u64, bool),
}

/// What steps do with a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Presence {
    /// They pass without it, as it is silent.
    LeftOut,
    /// They wait for it.
    Present,
    /// Its run has ended.
    Ended,
}

/// Where failed attempts come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) failures: u64,
    /// Those that came in the last seconds by the clock here.
    recent: Recent,
    pub(crate) last_ns: u64,
    /// The sensors that saw it, and whether there are more.
    pub(crate) sensors: (Vec<SensorName>, bool),
}

impl Presence {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Presence::LeftOut => "left out",
            Presence::Present => "present",
            Presence::Ended => "ended",
        }
    }
}

impl Site {
    /// Takes the reports of a batch. What came while much was to be read says nothing of the last seconds.
    pub(crate) fn reports(&mut self, header: &Header, reports: &[StateReport]) {
        let failed = |report: &&StateReport| matches!(report.content(), Content::Failed(_));
        let last = header.begun_ns.saturating_sub(1);
        let mut seconds = BTreeMap::new();
        for report in reports.iter().filter(failed) {
            // At the end of a run there are some whose time is still to come.
            *seconds.entry(report.time_ns().min(last) / STEP_NS).or_insert(0) += 1;
        }
        for (second, count) in seconds {
            self.column(second).into_iter().for_each(|column| *column += count);
            self.sensor(&header.sensor).recent.add(second, count);
        }
        let now = self.is_caught_up.then_some(self.now);
        for of_source in reports.chunk_by(|a, b| a.source() == b.source()) {
            let count = of_source.iter().filter(failed).count() as u64;
            if count == 0 {
                continue;
            }
            let source = self.sources.entry(of_source[0].source()).or_default();
            source.failures += count;
            now.into_iter().for_each(|now| source.recent.add(now, count));
            source.last_ns = of_source.iter().map(StateReport::time_ns).fold(source.last_ns, u64::max);
            source.sensors.1 |= !add(&mut source.sensors.0, FEW, header.sensor.clone());
        }
    }

    /// Reports of a sensor are missing: so many, if that is known.
    pub(crate) fn lost(&mut self, sensor: &SensorName, reports: Option<u64>) {
        let lost = &mut self.sensor(sensor).lost;
        lost.0 = lost.0.saturating_add(reports.unwrap_or(0));
        lost.1 |= reports.is_none();
    }

    /// Takes how far sensors have come: one that has some shards here and some there comes several times.
    pub(crate) fn come(&mut self, counts: impl IntoIterator<Item = SensorCounts>) {
        let mut sum = BTreeMap::<SensorName, SensorCounts>::new();
        for counts in counts {
            let Some(known) = sum.get_mut(&counts.sensor) else {
                sum.insert(counts.sensor.clone(), counts);
                continue;
            };
            known.begun_ns = known.begun_ns.min(counts.begun_ns);
            known.batches = known.batches.max(counts.batches);
            known.reports += counts.reports;
            known.late += counts.late;
            known.is_present |= counts.is_present;
            known.has_ended &= counts.has_ended;
        }
        self.sensors.retain(|name, _| sum.contains_key(name));
        for (name, counts) in sum {
            self.sensor(&name).counts = counts;
        }
        if let Some(furthest) = self.furthest_ns().filter(|&furthest| furthest > 0) {
            self.column((furthest - 1) / STEP_NS);
        }
    }

    /// Gives up sources, if there are too many, but none of scans.
    pub(crate) fn tidy<'a>(&mut self, scans: impl IntoIterator<Item = &'a ScanEvent>) {
        if self.sources.len() <= ENTRIES {
            return;
        }
        let scanners: HashSet<_> = scans.into_iter().map(|event| event.scan.source()).collect();
        let now = self.now;
        self.is_cut |=
            halve(&mut self.sources, |address, source| (scanners.contains(address), source.rate(now), source.failures));
    }

    /// Failed attempts of each of the last seconds.
    pub(crate) fn seconds(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.seconds.0.iter().copied()
    }

    /// Failed attempts a second, over all sensors.
    pub(crate) fn rate(&self) -> u64 {
        self.sensors.values().map(Sensor::rate).sum()
    }

    /// Takes the time by the clock here. It says something of sensors once one of them has come close to it: those of
    /// captures do not.
    pub(crate) fn clock(&mut self, now_ns: u64) {
        let is_close = self.furthest_ns().is_some_and(|furthest| furthest.saturating_add(CLOSE_NS) >= now_ns);
        if is_close || self.clock_ns > 0 {
            self.clock_ns = now_ns;
        }
    }

    /// How far a sensor is behind the clock, or behind the one that has come furthest, in nanoseconds, if it has sent.
    pub(crate) fn lag_ns(&self, sensor: &Sensor) -> Option<u64> {
        let has_sent = sensor.counts.batches > 0;
        let furthest = self.furthest_ns().filter(|_| has_sent)?.max(self.clock_ns);
        Some(furthest.saturating_sub(sensor.counts.begun_ns))
    }

    fn furthest_ns(&self) -> Option<u64> {
        self.sensors.values().map(|sensor| sensor.counts.begun_ns).max()
    }

    fn sensor(&mut self, name: &SensorName) -> &mut Sensor {
        self.sensors.entry(name.clone()).or_insert_with(|| Sensor::new(name))
    }

    /// The column of a second, if it is one of the last. Later ones are made.
    fn column(&mut self, second: u64) -> Option<&mut u64> {
        let (columns, last) = &mut self.seconds;
        if columns.is_empty() {
            *last = second;
            columns.push_back(0);
        }
        let later = usize::try_from(second.saturating_sub(*last)).unwrap_or(usize::MAX).min(SECONDS);
        columns.extend(std::iter::repeat_n(0, later));
        columns.drain(..columns.len().saturating_sub(SECONDS));
        *last = second.max(*last);
        let back = usize::try_from(*last - second).ok().filter(|&back| back < SECONDS)?;
        while columns.len() <= back {
            columns.push_front(0);
        }
        let place = columns.len() - 1 - back;
        columns.get_mut(place)
    }
}

impl Sensor {
    fn new(name: &SensorName) -> Self {
        let counts = SensorCounts {
            sensor: name.clone(),
            begun_ns: 0,
            batches: 0,
            reports: 0,
            late: 0,
            is_present: true,
            has_ended: false,
        };
        Sensor { counts, recent: Recent::default(), lost: (0, false) }
    }

    pub(crate) fn presence(&self) -> Presence {
        match self.counts {
            SensorCounts { has_ended: true, .. } => Presence::Ended,
            SensorCounts { is_present: true, .. } => Presence::Present,
            _ => Presence::LeftOut,
        }
    }

    /// Failed attempts a second in the last seconds of its own time; none while it is not present.
    pub(crate) fn rate(&self) -> u64 {
        match self.presence() {
            Presence::Present => self.recent.rate(self.counts.begun_ns.saturating_sub(1) / STEP_NS),
            Presence::LeftOut | Presence::Ended => 0,
        }
    }

    pub(crate) fn subject(&self) -> Subject {
        let name = self.counts.sensor.as_str().to_lowercase();
        Subject { names: vec![name], text: self.presence().name().to_owned(), ..Subject::default() }
    }
}

impl Source {
    /// Failures a second, as seen from this second.
    pub(crate) fn rate(&self, now: u64) -> u64 {
        self.recent.rate(now)
    }

    pub(crate) fn subject(&self, address: IpAddr) -> Subject {
        let names = self.sensors.0.iter().map(|sensor| sensor.as_str().to_lowercase()).collect();
        Subject { hosts: vec![address], names, ..Subject::default() }
    }
}

/// Batches of sensors, made for tests.
#[cfg(test)]
pub(crate) mod batches {
    use super::{STEP_NS, Sensor, SensorCounts, SensorName};
    use corelane_monitor::sensors::{VERSION, shard_of};
    use std::ops::Range;

    /// How far a sensor has come: one that is present, and has sent if it has come any far.
    pub(crate) fn counts(sensor: &str, begun_s: u64, reports: u64) -> SensorCounts {
        let unheard = Sensor::new(&sensor.parse().unwrap()).counts;
        SensorCounts { begun_ns: begun_s * STEP_NS, batches: u64::from(begun_s > 0), reports, ..unheard }
    }

    /// A sensor, and the second of its next batch.
    pub(crate) struct Made {
        name: SensorName,
        pub(crate) second: u64,
        sequence: u64,
        before: u64,
    }

    pub(crate) fn made(name: &str, second: u64) -> Made {
        Made { name: name.parse().unwrap(), second, sequence: 0, before: 0 }
    }

    impl Made {
        /// A second that is never sent: one batch with a failure is missing.
        pub(crate) fn miss(&mut self) {
            (self.second, self.sequence, self.before) = (self.second + 1, self.sequence + 1, self.before + 1);
        }

        /// The batch of the next second: a source tries these ports of a host in vain.
        pub(crate) fn batch(&mut self, source: [u8; 4], ports: Range<u16>) -> Vec<u8> {
            let mut bytes = [&b"CLB"[..], &[VERSION, 0]].concat();
            bytes.push(self.name.as_str().len() as u8);
            bytes.extend(self.name.as_str().bytes());
            let since_ns = self.second * STEP_NS;
            for word in [1, self.sequence, self.before, since_ns, since_ns + STEP_NS] {
                bytes.extend(word.to_le_bytes());
            }
            let count = ports.len() as u8;
            assert!(count < 50, "lengths of two bytes are enough for this");
            bytes.push(count);
            if count > 0 {
                let length = usize::from(count) * 12;
                bytes.extend([shard_of(source.into()), length as u8 | 0x80, (length >> 7) as u8]);
            }
            for port in ports {
                bytes.push(0);
                bytes.extend(source);
                bytes.extend([10, 0, 0, 5]);
                bytes.extend(port.to_le_bytes());
                // A nanosecond later.
                bytes.push(2);
            }
            (self.second, self.sequence) = (self.second + 1, self.sequence + 1);
            self.before += u64::from(count);
            bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sensor: &str, begun_s: u64, reports: u64) -> SensorCounts {
        SensorCounts { late: 1, ..batches::counts(sensor, begun_s, reports) }
    }

    #[test]
    fn columns_are_by_the_sensors_time_also_where_one_is_behind() {
        let mut site = Site::default();
        for (second, failures) in [(100, 2), (102, 3), (98, 5), (1 << 40, 7), (101, 9)] {
            if let Some(column) = site.column(second) {
                *column += failures;
            }
            if second == 98 {
                assert_eq!(site.seconds().collect::<Vec<_>>(), [5, 0, 2, 0, 3]);
            }
        }
        let columns: Vec<_> = site.seconds().collect();
        assert_eq!((columns.len(), columns[SECONDS - 1], columns.iter().sum::<u64>()), (SECONDS, 7, 7));
    }

    #[test]
    fn a_sensor_is_the_sum_of_what_is_known_of_its_shards() {
        let mut site = Site::default();
        let out = SensorCounts { is_present: false, ..counts("b", 7, 5) };
        site.come([counts("a", 10, 3), counts("a", 8, 4), out]);
        let [a, b] = ["a", "b"].map(|name| site.sensors[&name.parse::<SensorName>().unwrap()].clone());
        assert_eq!((a.counts.reports, a.counts.late, a.counts.begun_ns), (7, 2, 8 * STEP_NS));
        assert_eq!((a.presence(), b.presence()), (Presence::Present, Presence::LeftOut));
        let lags = |site: &Site| [site.lag_ns(&a), site.lag_ns(&b)].map(|lag| lag.map(|lag_ns| lag_ns / STEP_NS));
        assert_eq!(lags(&site), [Some(0), Some(1)]);
        site.clock(1000 * STEP_NS);
        assert_eq!(lags(&site), [Some(0), Some(1)], "they are of another time");
        site.clock(20 * STEP_NS);
        assert_eq!(lags(&site), [Some(12), Some(13)]);
        site.clock(5000 * STEP_NS);
        assert_eq!(lags(&site), [Some(4992), Some(4993)], "it is theirs, and all are silent");
    }
}
