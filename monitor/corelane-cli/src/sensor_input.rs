//! Shared by the commands that read sensor batches, `aggregate` and `top --from`: an engine, ignored batches, silence
//! and clocks.

mod clocks;

pub(crate) use clocks::Clocks;

#[cfg(target_os = "linux")]
use crate::confine::Confinement;
use crate::exit::complain;
use crate::sensors::{Connection, Engine, Files, NatsOptions, Place, nats_engine};
use corelane_monitor::STEP_NS;
use corelane_monitor::sensors::{BatchError, Refusal, SensorCounts, SensorName};
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long the next batch is waited for before other work is looked at.
pub(crate) const WAIT: Duration = Duration::from_millis(100);
/// Batches between two looks at the clock, where they come without end.
pub(crate) const AT_ONCE: usize = 256;
/// How far the clock of a sensor may be ahead.
const AHEAD: Duration = Duration::from_secs(60);
const AHEAD_NS: u64 = AHEAD.as_nanos() as u64;

/// What is done with an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// States are stored there, and what is missing is made.
    Aggregate,
    /// Nothing is changed there.
    Look,
}

/// The engine of a place, as `--from` names it.
pub(crate) fn engine(from: &str, connection: &Connection, purpose: Purpose) -> Result<Box<dyn Engine>, String> {
    let place: Place = from.parse().map_err(|error| format!("--from: {error}"))?;
    Ok(match &place {
        Place::Files(folder) if !folder.is_dir() => {
            return Err(format!("--from {from}: there is no such folder; sensors make it with --publish"));
        }
        Place::Files(folder) => Box::new(Files::new(folder)),
        Place::Nats(url) => {
            let engine = nats_engine(url, &NatsOptions::new(connection), purpose == Purpose::Look);
            engine.map_err(|error| format!("--from: {error}"))?
        }
    })
}

/// What a process keeps that reads batches there. An aggregator makes and removes files beside them.
#[cfg(target_os = "linux")]
pub(crate) fn confinement(from: &str, connection: &Connection, purpose: Purpose) -> Result<Confinement, String> {
    let mut confinement = Confinement::default();
    match from.parse().map_err(|error| format!("--from: {error}"))? {
        Place::Files(folder) if purpose == Purpose::Aggregate => {
            if folder.is_dir() {
                // Now, as the process makes no folders later.
                Files::prepare(&folder).map_err(|error| format!("--from {from}: {error}"))?;
                confinement.folders_rw.push(folder);
                confinement.keeps.writing = true;
            }
        }
        Place::Files(folder) => {
            confinement.readable.push(folder);
            confinement.keeps.reading = true;
        }
        Place::Nats(_) => {
            confinement.keeps.servers = true;
            confinement.readable.extend(connection.readable());
            connection.warn();
        }
    }
    Ok(confinement)
}

/// The clock here, in nanoseconds since the epoch.
pub(crate) fn now_ns() -> u64 {
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(here.as_nanos()).unwrap_or(u64::MAX)
}

/// The latest time that a batch may be of.
pub(crate) fn latest_ns(now_ns: u64) -> u64 {
    now_ns.saturating_add(AHEAD_NS)
}

/// The latest epoch that a run may have.
pub(crate) fn latest_epoch(now_ns: u64) -> u64 {
    latest_ns(now_ns) / STEP_NS
}

/// Ignored batches, by reasons, all of which are there from the start.
#[derive(Debug)]
pub(crate) struct Refusals(pub(crate) BTreeMap<&'static str, u64>);

impl Default for Refusals {
    fn default() -> Self {
        Refusals(REASONS.map(|reason| (reason, 0)).into())
    }
}

impl Refusals {
    /// Counts one, and logs the first of each kind.
    pub(crate) fn count(&mut self, refusal: &Refusal) {
        let reason = reason(refusal);
        let count = self.0.entry(reason).or_insert(0);
        *count += 1;
        if *count == 1 && *refusal != Refusal::Again {
            complain(format_args!("batch ignored: {}", why(refusal)));
        }
    }
}

/// All that [`reason`] gives.
const REASONS: [&str; 8] =
    ["again", "damaged", "future", "not expected", "old run", "other name", "other version", "too many sensors"];

/// The reason why a batch is ignored, for numbers.
fn reason(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Error(BatchError::Version(_)) => "other version",
        Refusal::Error(_) => "damaged",
        Refusal::Again => "again",
        Refusal::OldRun => "old run",
        Refusal::Stranger(_) => "not expected",
        Refusal::OtherName(_) => "other name",
        Refusal::Future(_) => "future",
        Refusal::Crowded(_) => "too many sensors",
    }
}

/// The same for people.
fn why(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Error(error) => error.to_string(),
        Refusal::Again => "already received".to_owned(),
        Refusal::OldRun => "its sensor has begun a later run; two sensors may have one name".to_owned(),
        Refusal::Stranger(sensor) => format!("--expect does not name its sensor {sensor}"),
        Refusal::OtherName(sensor) => format!("it names sensor {sensor}, and another sensor sent it"),
        Refusal::Future(sensor) => {
            format!(
                "the clock of {sensor} is, or was at its start, more than {} s ahead of the local clock",
                AHEAD.as_secs()
            )
        }
        Refusal::Crowded(sensor) => {
            format!("there are too many sensors beside {sensor}: name those that are with --expect")
        }
    }
}

/// Which sensors are silent, or behind. While batches may be there that were not read, that means nothing.
///
/// A sensor on an interface is behind that has not passed the time that the local clock had a while ago, where another
/// one has. Where none has, they read captures, or all are late, and there is nothing to be compared.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// When the last batch of a sensor came, or the sensor was known to be missing.
    last_received: BTreeMap<SensorName, Instant>,
    /// Since when all batches are read.
    caught_up: Option<Instant>,
    /// Since when there is always a sensor that is behind: not the same one, or names would take turns.
    behind: Option<Instant>,
}

impl Silence {
    pub(crate) fn received(&mut self, sensor: SensorName) {
        self.last_received.insert(sensor, Instant::now());
    }

    /// Those that are present, and have been silent or behind for so long, with the nanoseconds that they are behind;
    /// 0 if silent. `here_ns` is the local clock. Each look counts: it says whether all is read by now.
    pub(crate) fn look(
        &mut self,
        (now, here_ns): (Instant, u64),
        is_caught_up: bool,
        timeout: Duration,
        present: &[SensorCounts],
    ) -> Vec<(SensorName, u64)> {
        match is_caught_up {
            true => drop(self.caught_up.get_or_insert(now)),
            false => self.caught_up = None,
        }
        let since_ns = here_ns.saturating_sub(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        let is_behind = |sensor: &SensorCounts| sensor.begun_ns < since_ns;
        let some_are = is_caught_up && present.iter().any(is_behind) && !present.iter().all(is_behind);
        self.behind = some_are.then(|| self.behind.unwrap_or(now));
        let too_long = self.behind.is_some_and(|since| now - since >= timeout);
        let mut out = Vec::new();
        for counts in present {
            let last = self.last_received.entry(counts.sensor.clone()).or_insert(now);
            if !is_caught_up {
                *last = now;
            } else if now - *last >= timeout {
                out.push((counts.sensor.clone(), 0));
            } else if too_long && is_behind(counts) {
                out.push((counts.sensor.clone(), here_ns - counts.begun_ns));
            }
        }
        out
    }

    /// Forgets the other sensors.
    pub(crate) fn retain(&mut self, is_known: impl Fn(&str) -> bool) {
        self.last_received.retain(|sensor, _| is_known(sensor.as_str()));
    }

    /// Whether all batches have been read for so long.
    pub(crate) fn is_caught_up_for(&self, time: Duration, now: Instant) -> bool {
        self.caught_up.is_some_and(|since| now - since >= time)
    }

    /// Whether no sensor has sent for so long.
    pub(crate) fn is_total(&self, timeout: Duration, now: Instant) -> bool {
        self.is_caught_up_for(timeout, now) && self.last_received.values().all(|&last| now - last >= timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> SensorName {
        name.parse().unwrap()
    }

    fn present(sensor: &str, begun_ns: u64) -> SensorCounts {
        let sensor = name(sensor);
        SensorCounts { sensor, begun_ns, batches: 0, reports: 0, late: 0, is_present: true, has_ended: false }
    }

    /// Seconds of the local clock, each with those that each sensor has passed; all have sent a moment ago.
    fn behind(looks: &[(u64, &[u64])]) -> Vec<(u64, String, u64)> {
        let (second, begin) = (1_000_000_000, Instant::now());
        let (mut silence, mut out) = (Silence::default(), Vec::new());
        for &(at, begun) in looks {
            let now = begin + Duration::from_secs(at);
            let sensors = ["a", "b", "c"].into_iter().zip(begun);
            let sensors: Vec<_> = sensors.map(|(name, begun)| present(name, begun * second)).collect();
            silence.last_received.extend(sensors.iter().map(|counts| (counts.sensor.clone(), now)));
            let found = silence.look((now, (1000 + at) * second), true, Duration::from_secs(30), &sensors);
            out.extend(found.into_iter().map(|(sensor, behind_ns)| (at, sensor.to_string(), behind_ns / second)));
        }
        out
    }

    #[test]
    fn one_that_is_slow_but_not_silent_is_found_by_what_it_is_behind() {
        let of_b = |at, behind| (at, "b".to_owned(), behind);
        let mut looks: Vec<(u64, [u64; 2])> = (0..80).map(|at| (at, [999 + at, 995 + at / 20])).collect();
        let said =
            |looks: &[(u64, [u64; 2])]| behind(&looks.iter().map(|(at, begun)| (*at, &begun[..])).collect::<Vec<_>>());
        assert_eq!(said(&looks)[0], of_b(57, 60), "behind since 27");
        // One that comes up to the other in time is waited for, and one that is always a little late.
        looks.iter_mut().filter(|(at, _)| *at >= 55).for_each(|(at, begun)| begun[1] = 990 + *at);
        assert_eq!(said(&looks), []);
        // Both are late, or read captures.
        looks.iter_mut().for_each(|(_, begun)| begun.iter_mut().for_each(|second| *second /= 2));
        assert_eq!(said(&looks), []);
        // Names that take turns to be slow.
        let turns: Vec<_> = (0..80).map(|at| (at, [999 + at, if at % 10 == 9 { 999 + at } else { 960 }])).collect();
        assert_eq!(said(&turns), []);
        let three: Vec<(u64, [u64; 3])> =
            turns.iter().map(|&(at, [a, b])| (at, [a, b, if at % 10 == 9 { 960 } else { a }])).collect();
        let found = behind(&three.iter().map(|(at, begun)| (*at, &begun[..])).collect::<Vec<_>>());
        assert_eq!(found[0], of_b(30, 70), "always another");
    }

    #[test]
    fn silence_means_nothing_before_all_is_read() {
        let (timeout, begin) = (Duration::from_secs(30), Instant::now());
        let mut silence = Silence::default();
        let look = |silence: &mut Silence, second: u64, is_caught_up: bool| {
            let now = begin + Duration::from_secs(second);
            let silent = silence.look((now, 0), is_caught_up, timeout, &[present("a", 0), present("b", 0)]);
            (silent.len(), silence.is_total(timeout, now))
        };
        assert_eq!(look(&mut silence, 0, false), (0, false));
        assert_eq!(look(&mut silence, 100, false), (0, false), "much is to be read");
        assert_eq!(look(&mut silence, 110, true), (0, false));
        assert_eq!(look(&mut silence, 129, true), (0, false));
        assert_eq!(look(&mut silence, 131, true), (2, false), "silent since 100, all read since 110");
        silence.last_received.insert(name("a"), begin + Duration::from_secs(132));
        assert_eq!(look(&mut silence, 150, true), (1, false));
        assert_eq!(look(&mut silence, 151, false), (0, false), "the server is gone for a moment");
        assert_eq!(look(&mut silence, 180, true), (0, false));
        assert_eq!(look(&mut silence, 211, true), (2, true));
    }
}
