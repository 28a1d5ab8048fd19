//! What a rule says.

use super::protocol::Protocol;

/// How many bytes of a side are looked at.
pub const PREFIX: usize = 4096;

/// Whether a side's words show which end it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    Client,
    Server,
    Either,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Yes(Protocol, &'static str, Speaker),
    No,
    /// Not to be told from these bytes.
    More,
}
