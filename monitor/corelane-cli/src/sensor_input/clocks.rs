//! Whether the clocks of sensors go with the one here.
//!
//! A sensor on an interface sends a batch each second, when that second is over by its own clock. If both clocks are
//! right, its batches are always a little late. If they are always very late, its clock is behind, or the way takes so
//! long. Of batches that come at another pace, as of captures, or after a server was away, nothing can be said.

use corelane_monitor::sensors::{Header, News, SensorEvent, SensorName, SensorNews};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a sensor is looked at before it is judged.
const WINDOW: Duration = Duration::from_secs(10);
/// Batches that have to come in that time.
const FEWEST: u64 = 5;
/// How far the latest and the earliest may be apart.
const STEADY_NS: i64 = 2_000_000_000;
/// A clock goes right if it is at most so far behind: a second has to be over, and a batch to come here …
const BEHIND_NS: i64 = 5_000_000_000;
/// … or so far ahead.
const AHEAD_NS: i64 = 2_000_000_000;

/// What is known of the clocks of all sensors.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    sensors: BTreeMap<SensorName, Clock>,
}

#[derive(Debug)]
struct Clock {
    since: Instant,
    batches: u64,
    /// How late batches have come, least and most.
    behind_ns: (i64, i64),
    /// Whether it was said to be wrong.
    is_reported: bool,
}

impl Clocks {
    /// Forgets the other sensors.
    pub(crate) fn retain(&mut self, is_known: impl Fn(&str) -> bool) {
        self.sensors.retain(|sensor, _| is_known(sensor.as_str()));
    }

    /// A batch has come; `here_ns` is the clock here. Gives out what there is to say.
    pub(crate) fn look(&mut self, header: &Header, here_ns: u64, now: Instant) -> Option<News> {
        let Header { sensor, begun_ns, .. } = header;
        let behind_ns = i64::try_from(i128::from(here_ns) - i128::from(*begun_ns)).unwrap_or(i64::MAX);
        let first = Clock { since: now, batches: 0, behind_ns: (i64::MAX, i64::MIN), is_reported: false };
        let clock = self.sensors.entry(sensor.clone()).or_insert(first);
        clock.batches += 1;
        clock.behind_ns = (clock.behind_ns.0.min(behind_ns), clock.behind_ns.1.max(behind_ns));
        if now - clock.since < WINDOW {
            return None;
        }
        let (least, most) = clock.behind_ns;
        let is_steady = clock.batches >= FEWEST && most - least <= STEADY_NS;
        let is_wrong = least > BEHIND_NS || most < -AHEAD_NS;
        (clock.since, clock.batches, clock.behind_ns) = (now, 0, (i64::MAX, i64::MIN));
        if !is_steady || clock.is_reported == is_wrong {
            return None;
        }
        clock.is_reported = is_wrong;
        let news = SensorNews::Clock { behind_ns: if is_wrong { least } else { 0 } };
        Some(News::Sensor(SensorEvent { sensor: sensor.clone(), news, time_ns: *begun_ns }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// What is said of a sensor whose batches come each so many milliseconds, behind by so many.
    fn said(clocks: &mut Clocks, begin: Instant, batches: impl IntoIterator<Item = (u64, i64)>) -> Vec<i64> {
        let sensor: SensorName = "a".parse().unwrap();
        let look = |(at_ms, behind_ms): (u64, i64)| {
            let here_ns = 1_000_000 * SECOND + at_ms * 1_000_000;
            let begun_ns = here_ns.checked_add_signed(-behind_ms * 1_000_000).unwrap();
            let header = Header {
                sensor: sensor.clone(),
                epoch: 1,
                sequence: 0,
                before: 0,
                since_ns: begun_ns,
                begun_ns,
                more: false,
                is_last: false,
            };
            match clocks.look(&header, here_ns, begin + Duration::from_millis(at_ms))? {
                News::Sensor(SensorEvent { news: SensorNews::Clock { behind_ns }, .. }) => Some(behind_ns / 1_000_000),
                news => panic!("{news:?}"),
            }
        };
        batches.into_iter().filter_map(look).collect()
    }

    #[test]
    fn a_clock_that_is_wrong_is_reported_once_and_again_when_it_is_right() {
        let begin = Instant::now();
        let each_second = |from: u64, behind_ms| (from..from + 60).map(move |at| (1000 * at, behind_ms));
        for (wrong, reported) in [
            (10_100, Some(10_100)),
            (3_600_000, Some(3_600_000)),
            (5_000, None),
            (1_300, None),
            (-9_900, Some(-9_900)),
            (-1_900, None),
        ] {
            let mut clocks = Clocks::default();
            let first = said(&mut clocks, begin, each_second(0, wrong));
            assert_eq!(first, Vec::from_iter(reported), "{wrong}");
            let right = said(&mut clocks, begin, each_second(60, 200));
            assert_eq!(right, Vec::from_iter(reported.map(|_| 0)), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_said_of_what_comes_at_another_pace() {
        let begin = Instant::now();
        // A log that was held up: from five minutes behind to none within a minute.
        let held_up = (0..300u64).map(|at| (200 * at, 300_000 - 1000 * at as i64));
        // A few batches say nothing.
        let few = (0..20).map(|at| (5000 * at, 10_000));
        assert!(said(&mut Clocks::default(), begin, held_up).is_empty());
        assert!(said(&mut Clocks::default(), begin, few).is_empty());
    }
}
