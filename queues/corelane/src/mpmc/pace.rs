//! How long a thread that finds nothing stays away before it looks again.
//!
//! The problem: where both sides of a queue are equally quick, each call of one finds just what the last call of the
//! other has left. Both then write the same lines in turns, and each item costs several moves of those lines. A side
//! that stays away for a while finds many items at once, and leaves the other side alone meanwhile, as FastForward's
//! slip does. But a side whose items come one by one would only find them later.
//!
//! # How it works
//!
//! 1. One wait in [`PROBE`] begins with [`FIRST`] pauses. If more than [`FEW`] items are there after them, the next
//!    waits begin so, too.
//! 2. The number of pauses doubles, up to [`MOST`], while that brings fewer than [`PLENTY`] items. When a wait brings
//!    few, the side stops. So items that come one by one are late by the pauses in one of [`PROBE`] waits.
//! 3. Calls that move batches do not stay away: there are many items whenever there are any, so a worker would stay
//!    away each time.
//! 4. What is kept is a hint: threads that write it at once may lose what another one has learnt, and nothing else.
//!
//! `docs/benchmarks.md` has the figures ("What single decisions bring").

use crate::start::START_32;
use crate::sync::{Padded, spin_loop};
// Not loom's: nothing is ordered by a hint.
use crate::sync::plain::{AtomicU32, Ordering::Relaxed};

const PROBE: u32 = 128;
const FIRST: u32 = 16;
const MOST: u32 = 128;
const FEW: usize = 4;
const PLENTY: usize = 64;

/// What the threads at one side of a queue have learnt. They write it when they wait, so it has a line of its own.
#[derive(Debug, Default)]
pub(super) struct Pace(Padded<Learnt>);

#[derive(Debug)]
struct Learnt {
    /// How many pauses a wait begins with; 0: none.
    pauses: AtomicU32,
    /// How many waits have begun with none.
    waits: AtomicU32,
}

/// A multiple of [`PROBE`].
const NO_WAITS: u32 = START_32 & !(PROBE - 1);

impl Default for Learnt {
    fn default() -> Self {
        Self { pauses: AtomicU32::new(0), waits: AtomicU32::new(NO_WAITS) }
    }
}

impl Pace {
    /// At the beginning of a wait, after an attempt in vain. True if the thread has stayed away: then it says by
    /// [`learn`](Self::learn) what it found.
    pub(super) fn stay_away(&self) -> bool {
        let pauses = self.pauses();
        for _ in 0..pauses {
            spin_loop();
        }
        pauses != 0
    }

    /// With how many pauses the present wait begins.
    fn pauses(&self) -> u32 {
        let pauses = self.0.pauses.load(Relaxed);
        if pauses != 0 {
            return pauses;
        }
        let waits = self.0.waits.load(Relaxed).wrapping_add(1);
        self.0.waits.store(waits, Relaxed);
        if waits.is_multiple_of(PROBE) { FIRST } else { 0 }
    }

    /// A thread that had stayed away could make so many calls at once.
    pub(super) fn learn(&self, calls: usize) {
        let pauses = self.0.pauses.load(Relaxed);
        let next = match calls {
            0..=FEW => 0,
            _ if pauses == 0 => FIRST,
            _ if calls < PLENTY => MOST.min(2 * pauses),
            _ => pauses,
        };
        if next != pauses {
            self.0.pauses.store(next, Relaxed);
        }
    }
}

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::*;

    /// Whether no wait has begun at this side.
    #[cfg(feature = "std")]
    fn is_fresh(pace: &Pace) -> bool {
        pace.0.waits.load(Relaxed) == NO_WAITS && pace.0.pauses.load(Relaxed) == 0
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_call_that_need_not_wait_does_not_stay_away() {
        let (queue, soon) = (crate::mpmc::queue(1000), std::time::Duration::from_millis(1));
        for _ in 0..2 * PROBE {
            queue.push_timeout(7, soon).unwrap();
        }
        for _ in 0..PROBE {
            assert_eq!((queue.pop_timeout(soon), queue.pop()), (Ok(7), Ok(7)));
        }
        assert!(queue.paces().iter().all(is_fresh));
        assert!(queue.pop_timeout(soon).is_err());
        assert!(!is_fresh(&queue.paces()[1]));
    }

    #[test]
    fn what_comes_one_by_one_is_stayed_away_from_once_in_many_waits() {
        let pace = Pace::default();
        let mut away = 0;
        for _ in 0..10 * PROBE {
            if pace.pauses() != 0 {
                away += 1;
                pace.learn(1);
            }
        }
        assert_eq!(away, 10);
    }

    #[test]
    fn a_side_that_finds_many_stays_away_longer_until_it_finds_plenty_and_no_more_when_it_finds_few() {
        let pace = Pace::default();
        assert!((1..PROBE).all(|_| pace.pauses() == 0));
        assert_eq!(pace.pauses(), FIRST);
        pace.learn(FEW + 1);
        assert_eq!(pace.pauses(), FIRST);
        pace.learn(PLENTY - 1);
        assert_eq!(pace.pauses(), 2 * FIRST);
        pace.learn(PLENTY);
        assert_eq!(pace.pauses(), 2 * FIRST);
        (0..10).for_each(|_| pace.learn(PLENTY - 1));
        assert_eq!(pace.pauses(), MOST);
        pace.learn(FEW);
        assert_eq!(pace.pauses(), 0);
    }
}
