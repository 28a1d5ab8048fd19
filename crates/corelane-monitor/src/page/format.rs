//! Times and names as the page writes them.

use crate::probe::Probe;
use crate::report::Timestamp;
use crate::summary::{duration, grouped};

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

/// The kind of a scan's probes.
pub(super) fn by(probe: Option<Probe>) -> String {
    probe.map_or_else(|| "SYN".to_owned(), |probe| probe.to_string())
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

/// How many things there were in a while. Less than a second has no rate.
pub(super) fn rate(count: u64, ns: u64) -> String {
    if ns < SECOND_NS {
        return format!("{} in {}", grouped(count), duration(ns));
    }
    let rate = count as f64 / (ns as f64 / 1e9);
    let (rate, unit) = match rate {
        rate if rate >= 0.5 => (rate, "a second"),
        rate if rate * 60.0 >= 0.5 => (rate * 60.0, "a minute"),
        rate => (rate * 3600.0, "an hour"),
    };
    if rate >= 10.0 { format!("{} {unit}", grouped(rate.round() as u64)) } else { format!("{rate:.1} {unit}") }
}

/// The most things in a while.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peak {
    count: u64,
    ns: u64,
}

impl Peak {
    /// The most things that there were in a row of bins. Bins shorter than a second are taken together: few things in
    /// a moment are no rate.
    pub(super) fn of(counts: impl IntoIterator<Item = u64>, width_ns: u64) -> Self {
        let counts: Vec<_> = counts.into_iter().collect();
        let many = usize::try_from(SECOND_NS.div_ceil(width_ns.max(1))).unwrap_or(usize::MAX).min(counts.len());
        let most = counts.windows(many.max(1)).map(|some| some.iter().sum()).max();
        Peak { count: most.unwrap_or(0), ns: width_ns.saturating_mul(many as u64) }
    }

    /// This peak, or that of a part if it is higher: one of a shorter while may be. What has no rate is not compared.
    pub(super) fn or_of_part(self, part: Self) -> Self {
        let scaled = |count: u64, ns: u64| u128::from(count) * u128::from(ns);
        let is_higher = part.ns >= SECOND_NS && scaled(part.count, self.ns) > scaled(self.count, part.ns);
        if is_higher { part } else { self }
    }

    /// The peak as a rate.
    pub(super) fn text(self) -> String {
        rate(self.count, self.ns)
    }
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
        assert_eq!(rate(1000, second), "1,000 a second");
        assert_eq!(rate(2, second), "2.0 a second");
        assert_eq!((rate(10, 60 * second), rate(3, 3600 * second)), ("10 a minute".into(), "3.0 an hour".into()));
        assert_eq!(rate(10, second / 100), "10 in 0.010 s");
    }

    #[test]
    fn bins_shorter_than_a_second_make_no_rate_by_themselves() {
        let ms = 1_000_000;
        let peak = |counts: &[u64], width_ns| Peak::of(counts.iter().copied(), width_ns).text();
        assert_eq!(peak(&[7, 0, 3], ms), "10 in 0.003 s");
        let mut counts = vec![0; 120];
        (counts[3], counts[70], counts[100]) = (500, 30, 40);
        // Of the bins that are taken together no second has more than the one with 500.
        assert_eq!(peak(&counts, 16 * ms), "496 a second");
        assert_eq!(peak(&counts, 512 * ms), "488 a second");
        assert_eq!(peak(&counts, 1024 * ms), "488 a second");
        assert_eq!(peak(&[], ms), "0 in 0.000 s");
    }

    #[test]
    fn a_peak_is_no_lower_than_that_of_its_part() {
        let ms = 1_000_000;
        let (all, part) = (Peak::of([6000, 100], 20_000 * ms), Peak::of([0, 518, 20], 1024 * ms));
        assert_eq!((all.text(), all.or_of_part(part).text()), ("300 a second".into(), "506 a second".into()));
        assert_eq!(part.or_of_part(all).text(), "506 a second");
        // Many in a moment are no rate.
        assert_eq!(all.or_of_part(Peak::of([900], ms)).text(), "300 a second");
        assert_eq!(Peak::default().or_of_part(Peak::default()).text(), "0 in 0.000 s");
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
