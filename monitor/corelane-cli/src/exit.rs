//! The end of a run, and its messages on the standard error.

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All work was done, or the reader of the output has gone.
    Done,
    /// Something is missing: in the input, in the output, in the results for want of memory under a limit, or in the
    /// scans that the demo should have found.
    Partial,
    /// The usage was wrong, or nothing could be read or written at all.
    Failed,
    /// A signal ended it early.
    Signal(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Partial => 1,
            Exit::Failed => 2,
            Exit::Signal(number) => 128 + number,
        })
    }
}

impl Exit {
    /// The graver exit: a signal first, then that something is missing.
    pub(crate) fn and(self, other: Exit) -> Exit {
        let weight = |exit| match exit {
            Exit::Done => 0,
            Exit::Partial => 1,
            Exit::Failed => 2,
            Exit::Signal(_) => 3,
        };
        if weight(other) > weight(self) { other } else { self }
    }
}

type Sink = Box<dyn Fn(&str) + Send>;

/// Where messages go while the terminal shows something else.
static SINK: Mutex<Option<Sink>> = Mutex::new(None);

fn sink() -> MutexGuard<'static, Option<Sink>> {
    SINK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Messages go elsewhere while this lives.
#[derive(Debug)]
pub(crate) struct Diverted;

/// Gives all messages to `to` until the result is dropped.
#[must_use]
pub(crate) fn divert(to: impl Fn(&str) + Send + 'static) -> Diverted {
    *sink() = Some(Box::new(to));
    Diverted
}

impl Drop for Diverted {
    fn drop(&mut self) {
        *sink() = None;
    }
}

/// Logs a fault in one line.
pub(crate) fn complain(what: impl Display) {
    use std::io::Write;
    let line = one_line(&what.to_string());
    match &*sink() {
        Some(to) => to(&line),
        // If this fails there is nowhere to log it.
        None => drop(writeln!(std::io::stderr().lock(), "corelane: {line}")),
    }
}

/// The message for what this program was built without, with the commands that get it.
pub(crate) fn left_out(what: &str, feature: &str) -> String {
    // What the program has already is not lost. `full` is all but libpcap.
    let libpcap = if feature == "libpcap" || cfg!(feature = "libpcap") { ",libpcap" } else { "" };
    format!(
        "this program was built without {what}, the feature `{feature}`; in a checkout of corelane \
         `cargo run --release --features full{libpcap} -- ...` has it, and `cargo install --path monitor/corelane-cli \
         --locked --profile dist --features full{libpcap}` installs it"
    )
}

/// Logs why nothing was done.
pub(crate) fn refused(why: impl Display) -> Exit {
    complain(why);
    Exit::Failed
}

/// Makes a text safe for one line: a name may hold characters that break a line or control the terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() { line.extend(character.escape_default()) } else { line.push(character) }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_on_its_line() {
        assert_eq!(one_line("a\nb\x1b[1mü"), "a\\nb\\u{1b}[1mü");
    }

    #[test]
    fn the_graver_end_counts() {
        assert_eq!(Exit::Done.and(Exit::Partial), Exit::Partial);
        assert_eq!(Exit::Signal(2).and(Exit::Partial), Exit::Signal(2));
        assert_eq!(Exit::Partial.and(Exit::Done), Exit::Partial);
    }
}
