//! The progress bar: one line on the standard error, if that is a terminal, and the work takes longer than a moment.

use corelane_monitor::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The progress of the work. The worker writes it at most a few thousand times a second, and the bar reads it.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// Packets, and their bytes on the wire.
    pub(crate) packets: Progress,
    /// The position in the total, in the total's unit.
    position: AtomicU64,
    /// The number of the file that is read, and of all files.
    file: AtomicUsize,
    files: AtomicUsize,
}

// Relaxed: for show only.
impl Gauge {
    pub(crate) fn set(&self, position: u64) {
        self.position.store(position, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, by: u64) {
        self.position.fetch_add(by, Ordering::Relaxed);
    }

    /// Which of so many files is read.
    pub(crate) fn set_file(&self, number: usize, all: usize) {
        self.file.store(number, Ordering::Relaxed);
        self.files.store(all, Ordering::Relaxed);
    }

    /// The place of the file that is read, where there are several.
    fn place(&self) -> Option<(usize, usize)> {
        let (number, all) = (self.file.load(Ordering::Relaxed), self.files.load(Ordering::Relaxed));
        (all > 1).then_some((number, all))
    }

    fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }
}

/// The text of the line beside the bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressKind {
    Packets,
    /// Packets, and bytes of the files that they are in.
    Captures,
    /// Packets, and their bytes on the wire.
    Wire,
    Bytes,
    /// Only the elapsed time.
    Time,
}

/// A progress bar that lives as long as the work.
#[derive(Debug)]
pub(crate) struct Meter {
    bar: ProgressBar,
    ticker: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

/// The time between two reads of the gauge.
const TICK: Duration = Duration::from_millis(100);
/// Work that takes no longer than this shows no progress.
const MOMENT: Duration = Duration::from_secs(2);

impl Meter {
    /// Shows `gauge` under the name `what` until dropped, as a bar if the total is known.
    pub(crate) fn start(
        what: &'static str,
        kind: ProgressKind,
        total: Option<u64>,
        gauge: &Arc<Gauge>,
        quiet: bool,
    ) -> Self {
        if quiet || !io::stderr().is_terminal() || dumb() {
            return Meter { bar: ProgressBar::hidden(), ticker: None };
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(style(total.is_some()));
        bar.set_prefix(what);
        let stop = Arc::new(AtomicBool::new(false));
        let ticker = {
            let (bar, gauge, stop) = (bar.clone(), Arc::clone(gauge), Arc::clone(&stop));
            thread::Builder::new().name("progress".to_owned()).spawn(move || tick(&bar, what, kind, &gauge, &stop))
        };
        // Without a thread there is no progress bar, and all else works.
        Meter { bar, ticker: ticker.ok().map(|thread| (stop, thread)) }
    }

    /// Takes the bar away while something else is written.
    pub(crate) fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.ticker.take() {
            stop.store(true, Ordering::Relaxed);
            thread.thread().unpark();
            // A panic of that thread has been shown already and is no reason to lose the report.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

fn tick(bar: &ProgressBar, what: &str, kind: ProgressKind, gauge: &Gauge, stop: &AtomicBool) {
    let count = || match kind {
        ProgressKind::Packets | ProgressKind::Captures | ProgressKind::Wire => gauge.packets.packets(),
        ProgressKind::Bytes => gauge.position(),
        ProgressKind::Time => 0,
    };
    let (unit, per) = match kind {
        ProgressKind::Packets | ProgressKind::Captures | ProgressKind::Wire => (" packets", ""),
        ProgressKind::Bytes => ("B", "B"),
        ProgressKind::Time => ("", ""),
    };
    let start = Instant::now();
    let (mut before, mut looked, mut rate) = (count(), start, None);
    while !stop.load(Ordering::Relaxed) {
        thread::park_timeout(TICK);
        let (now, seconds) = (count(), looked.elapsed().as_secs_f64());
        if seconds < TICK.as_secs_f64() / 2.0 {
            continue;
        }
        let latest = now.saturating_sub(before) as f64 / seconds;
        // This averages over about a second.
        let rate = rate.insert(rate.map_or(latest, |rate: f64| rate * 0.9 + latest * 0.1));
        (before, looked) = (now, Instant::now());
        if start.elapsed() < MOMENT {
            continue;
        }
        if let Some((number, all)) = gauge.place() {
            bar.set_prefix(format!("{what} {number} of {all}"));
        }
        if kind != ProgressKind::Time {
            let read = match kind {
                ProgressKind::Captures => Some(gauge.position()),
                ProgressKind::Wire => Some(gauge.packets.bytes()),
                _ => None,
            };
            let read = read.map_or_else(String::new, |bytes| format!("{}B  ", scaled(bytes as f64)));
            bar.set_message(format!("{read}{}{unit}  {}{per}/s", scaled(now as f64), scaled(*rate)));
        }
        bar.set_position(gauge.position());
        bar.tick();
    }
}

fn style(has_total: bool) -> ProgressStyle {
    let template = match (has_total, color(io::stderr().is_terminal())) {
        (true, true) => "{prefix} {wide_bar:.cyan/dim} {percent:>3} %  {msg}  {left}",
        (true, false) => "{prefix} {wide_bar} {percent:>3} %  {msg}  {left}",
        (false, true) => "{spinner:.cyan} {prefix}  {msg}  {elapsed}",
        (false, false) => "{spinner} {prefix}  {msg}  {elapsed}",
    };
    let style = ProgressStyle::with_template(template).expect("the templates are right").progress_chars("━╸─");
    style.with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
        // At first the time is not known. The line keeps its length then.
        let seconds = state.eta().as_secs_f64().ceil();
        let _ = match state.elapsed() {
            elapsed if elapsed < Duration::from_secs(1) || state.pos() == 0 => write!(out, "{:12}", ""),
            _ if seconds < 100.0 => write!(out, "{seconds:>3.0} s left  "),
            _ => write!(out, "{:>3.0} min left", (seconds / 60.0).ceil()),
        };
    })
}

/// Whether escape sequences are welcome: on terminals, unless the user says no (<https://no-color.org>), and wherever
/// the user asks for them, as in front of `less -R` (<https://bixense.com/clicolors>).
pub(crate) fn color(is_terminal: bool) -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    set("NO_COLOR").is_none() && (forced || is_terminal && !dumb())
}

fn dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Formats a number in seven columns, so that the line does not jump.
fn scaled(value: f64) -> String {
    let mut value = value;
    for prefix in [" ", "k", "M", "G", "T"] {
        if value < 999.95 {
            return if prefix == " " { format!("{value:>5.0}  ") } else { format!("{value:>5.1} {prefix}") };
        }
        value /= 1000.0;
    }
    format!("{value:>5.0} P")
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn numbers_have_one_width() {
        for (value, text) in [(0.0, "    0  "), (999.0, "  999  "), (1000.0, "  1.0 k"), (23_456_789.0, " 23.5 M")] {
            assert_eq!(scaled(value), text);
        }
        assert_eq!(scaled(999_960.0), "  1.0 M");
    }
}
