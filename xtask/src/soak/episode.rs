//! An episode, as its queue sees it.

use super::load::Random;
use super::watch::Watch;
use std::time::Instant;

/// What an episode is given.
pub(crate) struct Episode<'a> {
    pub(crate) watch: &'a Watch,
    pub(crate) random: Random,
    /// When the traffic is to end.
    pub(crate) until: Instant,
}
