//! Times in the calendar.

/// A time in the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    year: u64,
    month: u64,
    day: u64,
    second_of_day: u64,
    nanosecond: u64,
}

impl Timestamp {
    /// A time in nanoseconds since the epoch.
    pub fn of(time_ns: u64) -> Self {
        let (seconds, nanosecond) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
        // Years begin in March here, so the leap day is their last. There are 719_468 days from 0000-03-01 to the
        // epoch.
        let days = days + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        Timestamp { year, month, day, second_of_day, nanosecond }
    }

    fn clock(&self) -> (u64, u64, u64) {
        (self.second_of_day / 3600, self.second_of_day / 60 % 60, self.second_of_day % 60)
    }

    /// The time as Suricata writes it: microseconds, then the offset from UTC. Every event has one.
    pub(crate) fn eve(&self) -> [u8; 31] {
        let mut text = *b"0000-00-00T00:00:00.000000+0000";
        let mut put = |from: usize, to: usize, mut value: u64| {
            for digit in text[from..to].iter_mut().rev() {
                *digit = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        let (hour, minute, second) = self.clock();
        put(0, 4, self.year);
        put(5, 7, self.month);
        put(8, 10, self.day);
        put(11, 13, hour);
        put(14, 16, minute);
        put(17, 19, second);
        put(20, 26, self.nanosecond / 1000);
        text
    }

    /// The date, such as `2024-02-29`.
    pub fn date(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// The time of day to the second, such as `13:46:46`.
    pub fn time(&self) -> String {
        let (hour, minute, second) = self.clock();
        format!("{hour:02}:{minute:02}:{second:02}")
    }

    /// For people, to the millisecond.
    pub(crate) fn human(&self) -> String {
        let (hour, minute, second) = self.clock();
        let (year, month, day, millis) = (self.year, self.month, self.day, self.nanosecond / 1_000_000);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_follow_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000+0000"),
            (951_782_399, "2000-02-28T23:59:59.000000+0000"),
            (951_868_799, "2000-02-29T23:59:59.000000+0000"),
            (951_868_800, "2000-03-01T00:00:00.000000+0000"),
            (1_321_019_206, "2011-11-11T13:46:46.000000+0000"),
            (4_107_542_400, "2100-03-01T00:00:00.000000+0000"),
            (1_735_689_599, "2024-12-31T23:59:59.000000+0000"),
        ] {
            assert_eq!(Timestamp::of(seconds * 1_000_000_000).eve(), expected.as_bytes());
        }
        assert_eq!(&Timestamp::of(1_999_999_999).eve(), b"1970-01-01T00:00:01.999999+0000");
        assert_eq!(Timestamp::of(u64::MAX).human(), "2554-07-21 23:34:33.709");
    }
}
