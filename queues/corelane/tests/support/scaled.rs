//! Loops that are as long as the machine allows: many rounds, but neither more than a slow one can do in time nor so
//! few that they show nothing.

use std::ops::Range;
use std::time::{Duration, Instant};

/// At most `rounds.end` rounds, and none after so much time, once `rounds.start` are done. An interpreter does the
/// fewest.
pub(crate) fn at_most(time: Duration, rounds: Range<u64>) -> impl Iterator<Item = u64> {
    /// The clock is not asked in between: the rounds shall be close to each other.
    const LOOK: u64 = 16;
    let begin = Instant::now();
    let end = if cfg!(miri) { rounds.start.min(rounds.end) } else { rounds.end };
    (0..end).take_while(move |&round| round < rounds.start || !round.is_multiple_of(LOOK) || begin.elapsed() < time)
}
