//! The calendar: which conversation sends which packet.
//!
//! Packet number t of the capture is slot t. A conversation that goes on d packets later takes the first free slot from
//! there on. A slot that is still free at its turn opens something new. So the number of conversations regulates
//! itself: there are as many as fill every slot. The slots are also the clock (`Clock`), so the time of an answer is
//! known when the question is sent.
//!
//! The slots are a ring with a bit for each: whether it is taken. Memory is fixed, and both `take` and `find` need a
//! few instructions.
//!
//! A free slot is always found. When slot t has its turn, all taken slots lie in t+1..=t+horizon: no conversation has
//! asked for more than `horizon` by then, or been pushed further than t+horizon+1. (Induction: a turn frees one slot or
//! finds it free, and takes at most one.) So slot t+horizon+1 is free.

use super::random::{mix, scale};

/// Slots of the ring.
const SLOTS: u64 = 1 << 16;
/// No conversation may sleep longer than this many packets.
pub(super) const LONGEST: u64 = SLOTS - 2;

/// The slots of the packets to come.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    /// The owner of each slot; valid only where the bit is set.
    owners: Box<[u32]>,
    /// A bit for each slot: whether it is taken.
    taken: Box<[u64]>,
    horizon: u64,
}

impl Calendar {
    pub(super) fn new(horizon: u64) -> Self {
        assert!((1..=LONGEST).contains(&horizon));
        Self {
            owners: vec![0; SLOTS as usize].into_boxed_slice(),
            taken: vec![0; SLOTS as usize / 64].into_boxed_slice(),
            horizon,
        }
    }

    /// Takes the owner of slot `now`. Every slot must be taken in its turn.
    #[inline]
    pub(super) fn take(&mut self, now: u64) -> Option<u32> {
        let at = (now % SLOTS) as usize;
        let bit = 1 << (at % 64);
        let word = &mut self.taken[at / 64];
        let taken = *word & bit != 0;
        *word &= !bit;
        taken.then(|| self.owners[at])
    }

    /// The first free slot that is at least `delay` after slot `now`, the current one.
    #[inline]
    pub(super) fn find(&self, now: u64, delay: u64) -> u64 {
        let mut slot = now + delay.clamp(1, self.horizon);
        loop {
            let at = (slot % SLOTS) as usize;
            let free = !self.taken[at / 64] >> (at % 64);
            if free != 0 {
                return slot + u64::from(free.trailing_zeros());
            }
            slot += 64 - at as u64 % 64;
        }
    }

    /// Gives `owner` a slot that [`find`](Self::find) found in the same turn.
    #[inline]
    pub(super) fn put(&mut self, slot: u64, owner: u32) {
        let at = (slot % SLOTS) as usize;
        self.taken[at / 64] |= 1 << (at % 64);
        self.owners[at] = owner;
    }
}

/// The times of the packets: they are `gap_ns` apart, each at a random time within its own gap.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    start_ns: u64,
    gap_ns: u64,
    key: u64,
}

impl Clock {
    pub(super) fn new(start_ns: u64, gap_ns: u64, key: u64) -> Self {
        Self { start_ns, gap_ns, key }
    }

    #[inline]
    pub(super) fn time(&self, slot: u64) -> u64 {
        self.start_ns + slot * self.gap_ns + scale(mix(self.key.wrapping_add(slot)), self.gap_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::random::Random;
    use super::*;

    #[test]
    fn it_does_what_a_sorted_map_does() {
        for horizon in [1, 2, 63, 64, 65, 1_000, LONGEST] {
            let mut random = Random::new(horizon);
            let (mut calendar, mut model) = (Calendar::new(horizon), BTreeMap::new());
            for now in 0..300_000 {
                let owner = calendar.take(now);
                assert_eq!(owner, model.remove(&now), "horizon {horizon}, slot {now}");
                // Long and short sleeps alternate, and now and then there is none.
                let delay = if now % 7 < 3 { horizon } else { 1 + random.below(horizon) };
                if random.below(100) > 0 {
                    let slot = calendar.find(now, delay);
                    let expected = (now + delay..).find(|slot| !model.contains_key(slot)).unwrap();
                    assert_eq!(slot, expected);
                    assert!(slot <= now + horizon + 1);
                    calendar.put(slot, now as u32);
                    model.insert(slot, now as u32);
                }
            }
        }
    }

    #[test]
    fn time_never_goes_back() {
        let clock = Clock::new(1_000, 100, 5);
        for slot in 0..100_000 {
            let time = clock.time(slot);
            assert_eq!((time - 1_000) / 100, slot);
        }
    }
}
