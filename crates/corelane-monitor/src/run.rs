//! What the stages of one run have in common besides their settings.

use crate::hash::HashKeys;
use crate::pages::Pool;

/// The secrets of a run's hashes and the memory of its tables. Clones are the same run.
#[derive(Clone, Debug)]
pub struct Run {
    pub(crate) keys: HashKeys,
    pub(crate) pool: Pool,
}

impl Run {
    /// A new run: new secrets, no memory yet.
    pub fn new() -> Self {
        Run { keys: HashKeys::random(), pool: Pool::new() }
    }
}

impl Default for Run {
    fn default() -> Self {
        Run::new()
    }
}
