//! Numbers, times and names as the screen writes them.

use corelane_monitor::Timestamp;
use corelane_monitor::facts::Port;

/// A number in at most five columns: `999`, `1.2k`, `34M`.
pub(super) fn short(value: u64) -> String {
    let mut value = value as f64;
    for unit in ["", "k", "M", "G", "T"] {
        // What is rounded up to the next unit is written in that.
        if value < 9.95 && !unit.is_empty() {
            return format!("{value:.1}{unit}");
        }
        if value < 999.5 {
            return format!("{value:.0}{unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.0}P")
}

/// A time of day in UTC, to the second.
pub(super) fn clock(time_ns: u64) -> String {
    Timestamp::of(time_ns).time()
}

/// A time with its date in UTC, to the second.
pub(super) fn moment(time_ns: u64) -> String {
    let time = Timestamp::of(time_ns);
    format!("{} {}", time.date(), time.time())
}

/// How long something took or takes, in seconds: `12 s`, `3 min`, `5 h`, `2 d`.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A port and, if it is not one of TCP, its carrier.
pub(super) fn port(port: Port) -> String {
    if port.is_tcp { port.number.to_string() } else { format!("{}/udp", port.number) }
}

/// A text from packets, harmless on a terminal: nothing in it moves the cursor, turns the direction of writing, or
/// takes no room.
pub(super) fn clean(text: &str) -> String {
    let is_harmful = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
            || matches!(letter, '\u{fff9}'..='\u{fffb}')
            || matches!(letter, '\u{300}'..='\u{36f}' | '\u{e0000}'..='\u{e0fff}')
    };
    if !text.chars().any(is_harmful) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_harmful(letter) {
            true => clean.extend(letter.escape_unicode()),
            false => clean.push(letter),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane_monitor::grouped;

    #[test]
    fn short_numbers_have_at_most_five_columns() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (9_949, "9.9k"),
            (9_950, "10k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
            (34_400_000, "34M"),
            (u64::MAX, "18447P"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn times_and_spans() {
        assert_eq!(clock(86_400_000_000_000 + 3_723_999_999_999), "01:02:03");
        assert_eq!(moment(u64::MAX), "2554-07-21 23:34:33");
        assert_eq!([0, 119, 120, 7200, 200_000].map(span), ["0 s", "119 s", "2 min", "2 h", "2 d"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn texts_from_packets_cannot_move_the_cursor() {
        assert_eq!(clean("www.example.com"), "www.example.com");
        assert_eq!(clean("a\x1b[2J\r\n"), "a\\u{1b}[2J\\u{d}\\u{a}");
        assert_eq!(clean("evil\u{202e}moc"), "evil\\u{202e}moc");
        assert_eq!(clean("e\u{301}\u{200b}"), "e\\u{301}\\u{200b}");
        assert_eq!(clean("münchen.example, 日本"), "münchen.example, 日本");
    }
}
