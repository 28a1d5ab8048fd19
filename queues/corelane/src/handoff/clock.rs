//! What time it is: for how long a wake-up takes, and for the first of an arena's random numbers.

use crate::sync::HAS_CLOCK;
use std::time::SystemTime;

/// Nanoseconds, never 0. Wraps around, and jumps when the system's clock is set, which costs a sample.
pub(super) fn clock() -> u32 {
    // A model is the same each time.
    if cfg!(any(corelane_loom, corelane_shuttle)) || !HAS_CLOCK {
        return 1;
    }
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u32 | 1
}
