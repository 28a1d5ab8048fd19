//! The verdicts of a rule.

use super::protocol::Protocol;

/// The most bytes of a side that are examined.
pub const PREFIX: usize = 4096;

/// The end that a side is, where its bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    Client,
    Server,
    Either,
}

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Yes(Protocol, &'static str, Speaker),
    No,
    /// These bytes do not decide.
    More,
}
