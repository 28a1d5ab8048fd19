//! How a run ends, and what it says about itself on the standard error.

use std::fmt::Display;
use std::process::ExitCode;

/// How the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done, or the reader of the output has gone.
    Done,
    /// Something is missing: of the input, of the output, of what a limit of memory left room for, or of what the demo
    /// should have found.
    Partial,
    /// Wrong usage, or nothing could be read or written at all.
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
    /// The one that tells more: a signal, then that something is missing.
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

/// Tells the user what is wrong, in one line.
pub(crate) fn complain(what: impl Display) {
    use std::io::Write;
    // If this fails the user cannot be told.
    let _ = writeln!(std::io::stderr().lock(), "corelane: {}", one_line(&what.to_string()));
}

/// Tells why nothing was done.
pub(crate) fn refused(why: impl Display) -> Exit {
    complain(why);
    Exit::Failed
}

/// A name may hold anything, also what would break a line or talk to the terminal.
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
