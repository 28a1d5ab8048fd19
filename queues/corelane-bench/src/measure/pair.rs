//! A queue for a measurement, and the number of items that go through it.

use crate::contender::{Pair, Unable};
use crate::item::Item;
use crate::topology::{self, Cpu, Near};
use std::thread;

/// Makes a queue. On a machine with several packages, this runs on the CPU that will write into the queue first, so
/// that its memory is near that CPU.
pub(crate) fn pair_on<P: Pair<T>, T: Item>(cpu: Option<Cpu>, capacity: usize) -> Result<(P::Tx, P::Rx), Unable> {
    let several = || topology::places().iter().any(|place| place.near == Near::Machine);
    // A thread that a queue starts would be pinned as well.
    let Some(cpu) = cpu.filter(|_| !P::HAS_A_THREAD && several()) else { return P::pair(capacity) };
    let made = thread::spawn(move || {
        topology::pin(cpu);
        P::pair(capacity)
    });
    made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Rounds a number of items to a multiple of the contender's grain.
pub(crate) fn whole<P: Pair<T>, T: Item>(count: u64) -> u64 {
    count.max(1).next_multiple_of(P::GRAIN)
}
