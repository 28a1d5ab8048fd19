//! The progress of a run: a bar on terminals, a line now and then elsewhere.

use crate::runner::Watcher;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// The measuring thread draws this between two measurements, so nothing else runs during a measurement.
#[derive(Debug)]
pub(crate) struct Meter {
    experiment: &'static str,
    bar: Option<ProgressBar>,
    told: Instant,
}

/// The time between two lines if there is no terminal.
const TELL: Duration = Duration::from_secs(10);

impl Meter {
    pub(crate) fn new(experiment: &'static str) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3} %  {msg}");
            bar.set_style(style.expect("the template is right").progress_chars("━╸─"));
            bar.set_prefix(experiment);
            bar
        });
        Meter { experiment, bar, told: Instant::now() }
    }
}

impl Watcher for Meter {
    fn begins(&mut self, what: &str, done: usize, of: usize, left: Duration) {
        let left = time(left);
        if let Some(bar) = &self.bar {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
            bar.set_message(format!("{left}  {what}"));
        } else if self.told.elapsed() > TELL {
            self.told = Instant::now();
            eprintln!("{}: {} %, {left}", self.experiment, 100 * done / of);
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn time(left: Duration) -> String {
    match left.as_secs_f64() {
        seconds if seconds < 100.0 => format!("{seconds:>3.0} s left  "),
        seconds => format!("{:>3.0} min left", (seconds / 60.0).ceil()),
    }
}
