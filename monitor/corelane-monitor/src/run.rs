//! The state that the stages of one run share, beside their settings.

use crate::hash::HashKeys;
use crate::huge_pages::Pool;
use crate::room::Room;

/// The secrets of a run's hashes, and the memory of its tables. Clones are the same run.
#[derive(Clone, Debug)]
pub struct Run {
    pub(crate) keys: HashKeys,
    pub(crate) pool: Pool,
    /// The room of a table.
    pub(crate) room: Room,
}

impl Run {
    /// A new run, with new secrets and no memory yet, and the [seed](crate::Settings::seed) 0.
    pub fn new() -> Self {
        Run::seeded(0)
    }

    /// The same with this seed.
    pub fn seeded(seed: u64) -> Self {
        Run { keys: HashKeys::seeded(seed), pool: Pool::new(), room: Room::UNLIMITED }
    }
}

impl Default for Run {
    fn default() -> Self {
        Run::new()
    }
}
