//! Times and names as the page writes them.

use crate::probe::Probe;
use crate::summary::grouped;
use crate::time::Timestamp;

const SECOND_NS: u64 = 1_000_000_000;

/// The time of the capture, by which all times are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    first_ns: u64,
    /// Whether everything happened in one day.
    one_day: bool,
    /// Whether it took so little time that parts of seconds matter.
    is_short: bool,
}

impl Clock {
    pub(super) fn of(times: Option<(u64, u64)>) -> Self {
        let (first_ns, last_ns) = times.unwrap_or_default();
        let one_day = Timestamp::of(first_ns).date() == Timestamp::of(last_ns).date();
        Clock { first_ns, one_day, is_short: last_ns - first_ns < 60_000_000_000 }
    }

    /// A time, with its date unless that is the same everywhere.
    pub(super) fn time(&self, time_ns: u64) -> String {
        let full = Timestamp::of(time_ns).human();
        let end = if self.is_short { full.len() } else { full.len() - ".000".len() };
        full[if self.one_day { "0000-00-00 ".len() } else { 0 }..end].to_owned()
    }

    /// The date, if it is the same everywhere.
    pub(super) fn date(&self) -> Option<String> {
        self.one_day.then(|| Timestamp::of(self.first_ns).date())
    }

    /// Milliseconds since the capture began, for the page's script.
    pub(super) fn millis(&self, time_ns: u64) -> u64 {
        (time_ns / 1_000_000).saturating_sub(self.begin_millis())
    }

    /// When the capture began, in milliseconds since the epoch.
    pub(super) fn begin_millis(&self) -> u64 {
        self.first_ns / 1_000_000
    }
}

/// The kind of a scan's probes. One by "SYN" would be taken for one that leaves connections half-open.
pub(super) fn by(probe: Option<Probe>) -> String {
    probe.map_or_else(|| "TCP".to_owned(), |probe| probe.to_string())
}

/// A list of ports, of which those in a row are joined: `22, 80-83`.
pub(super) fn ports(ports: impl IntoIterator<Item = u16>) -> String {
    let mut rows: Vec<(u16, u16)> = Vec::new();
    for port in ports {
        match rows.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(port) => *last = port,
            Some((_, last)) if *last == port => {}
            _ => rows.push((port, port)),
        }
    }
    let text =
        |&(first, last): &(u16, u16)| if first == last { first.to_string() } else { format!("{first}–{last}") };
    rows.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Says how many more there were.
pub(super) fn more(count: u64, is_least: bool) -> String {
    match (count, is_least) {
        (0, true) => " and more".to_owned(),
        (_, true) => format!(" and at least {} more", grouped(count)),
        (_, false) => format!(" and {} more", grouped(count)),
    }
}

/// How often something happened. Less than a second has no rate.
pub(super) fn rate(count: u64, ns: u64) -> Option<String> {
    if ns < SECOND_NS {
        return None;
    }
    let rate = count as f64 / (ns as f64 / 1e9);
    let (rate, unit) = match rate {
        rate if rate >= 0.5 => (rate, "a second"),
        rate if rate * 60.0 >= 0.5 => (rate * 60.0, "a minute"),
        rate => (rate * 3600.0, "an hour"),
    };
    Some(if rate >= 10.0 { format!("{} {unit}", grouped(rate.round() as u64)) } else { format!("{rate:.1} {unit}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_a_row_are_joined() {
        assert_eq!(ports([22, 80, 81, 81, 82, 443]), "22, 80–82, 443");
        assert_eq!(ports([]), "");
        assert_eq!(ports([65534, 65535]), "65534–65535");
    }

    #[test]
    fn rates_have_a_unit_that_fits() {
        let second = 1_000_000_000;
        let rate = |count, ns| rate(count, ns).unwrap_or_default();
        assert_eq!(rate(1000, second), "1,000 a second");
        assert_eq!(rate(2, second), "2.0 a second");
        assert_eq!((rate(10, 60 * second), rate(3, 3600 * second)), ("10 a minute".into(), "3.0 an hour".into()));
        assert_eq!(rate(10, second - 1), "");
    }

    #[test]
    fn times_are_as_long_as_they_have_to_be() {
        let day = 86_400_000_000_000;
        let short = Clock::of(Some((day, day + 1_500_000_000)));
        assert_eq!(short.time(day + 1_500_000_000), "00:00:01.500");
        let long = Clock::of(Some((day, 3 * day)));
        assert_eq!((long.time(2 * day), long.date()), ("1970-01-03 00:00:00".to_owned(), None));
        assert_eq!(Clock::of(Some((day, 2 * day - 1))).date().as_deref(), Some("1970-01-02"));
    }
}
