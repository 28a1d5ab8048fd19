//! An episode, as the code that runs its queue sees it.

use super::load::Random;
use super::watch::Watch;
use std::time::Instant;

/// The data an episode gets.
pub(crate) struct Episode<'a> {
    pub(crate) watch: &'a Watch,
    pub(crate) random: Random,
    /// When the traffic has to end.
    pub(crate) until: Instant,
}
