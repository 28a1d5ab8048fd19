//! The index from a key's hash to its conversation's number: open addressing with linear probing.
//!
//! 1. A word is 32 bits of the key's hash and 1 + the number of the conversation; the word 0 is empty. So words that do
//!    not match are rejected without a look at the conversation, eight words lie in one cache line, and neither growth
//!    nor removal needs the keys.
//! 2. A position is the upper bits of the hash. At most half of the positions are taken; then the index doubles.
//! 3. When a word is removed, those behind it move back into the hole.
//!
//! `hashbrown` does not fit: its tombstones make the time of its growth depend on the hashes, which have random keys.
//! Here the memory is a function of the numbers of conversations, now and before. So the same conversations are evicted
//! in every run.

#[derive(Debug, Default)]
pub(super) struct Index {
    words: Box<[u64]>,
    /// A hash shifted to the right by this is a position.
    shift: u32,
    len: usize,
}

const FIRST: usize = 16;

fn word(hash: u32, number: u32) -> u64 {
    u64::from(hash) << 32 | (u64::from(number) + 1)
}

impl Index {
    #[inline]
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn next(&self, position: usize) -> usize {
        (position + 1) & (self.words.len() - 1)
    }

    /// The number with this hash that `is` accepts.
    #[inline]
    pub(super) fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        if self.words.is_empty() {
            return None;
        }
        let mut position = self.home(hash);
        loop {
            let word = self.words[position];
            if word == 0 {
                return None;
            }
            let number = (word as u32).wrapping_sub(1);
            if (word >> 32) as u32 == hash && is(number) {
                return Some(number);
            }
            position = self.next(position);
        }
    }

    /// The number of positions after the next insertion, if that needs more of them.
    pub(super) fn larger(&self) -> Option<usize> {
        (2 * (self.len + 1) > self.words.len()).then(|| (2 * self.words.len()).max(FIRST))
    }

    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        if let Some(larger) = self.larger() {
            self.resize(larger);
        }
        self.len += 1;
        self.put(word(hash, number));
    }

    fn put(&mut self, word: u64) {
        let mut position = self.home((word >> 32) as u32);
        while self.words[position] != 0 {
            position = self.next(position);
        }
        self.words[position] = word;
    }

    #[cold]
    fn resize(&mut self, positions: usize) {
        let old = std::mem::replace(&mut self.words, vec![0; positions].into());
        self.shift = 32 - positions.ilog2();
        old.iter().filter(|&&word| word != 0).for_each(|&word| self.put(word));
    }

    fn position(&self, hash: u32, number: u32) -> usize {
        let word = word(hash, number);
        let mut position = self.home(hash);
        while self.words[position] != word {
            position = self.next(position);
        }
        position
    }

    /// Removes a number, which must be in the index.
    pub(super) fn remove(&mut self, hash: u32, number: u32) {
        let mask = self.words.len() - 1;
        let mut hole = self.position(hash, number);
        let mut at = hole;
        loop {
            at = self.next(at);
            let word = self.words[at];
            if word == 0 {
                break;
            }
            // A word may move back into the hole unless its home lies behind the hole.
            let home = self.home((word >> 32) as u32);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.words[hole] = word;
                hole = at;
            }
        }
        self.words[hole] = 0;
        self.len -= 1;
        // This is far below the number that makes it grow, so that it does not grow and shrink by turns.
        if self.words.len() > FIRST && 16 * self.len < self.words.len() {
            self.resize(self.words.len() / 2);
        }
    }

    /// A conversation got another number.
    pub(super) fn renumber(&mut self, hash: u32, from: u32, to: u32) {
        let position = self.position(hash, from);
        self.words[position] = word(hash, to);
    }

    pub(super) fn reserved_bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// The bytes that it would reserve with this many positions.
    pub(super) fn bytes_of(positions: usize) -> usize {
        positions * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Hashes of few bits, at either end of the range, so that many are equal and runs wrap around.
        #[test]
        fn holds_what_a_map_holds(
            steps in prop::collection::vec((0_u32..48, any::<bool>()), 1..400),
            low in any::<bool>(),
        ) {
            let hash = |key: u32| if low { key % 5 } else { u32::MAX - key % 7 };
            let mut index = Index::default();
            let mut map = HashMap::new();
            for (key, insert) in steps {
                match map.get(&key) {
                    None if insert => {
                        index.insert(hash(key), key);
                        map.insert(key, ());
                    }
                    Some(()) if !insert => {
                        index.remove(hash(key), key);
                        map.remove(&key);
                    }
                    _ => {}
                }
                for key in 0..48 {
                    let found = index.find(hash(key), |number| number == key);
                    prop_assert_eq!(found, map.contains_key(&key).then_some(key));
                }
                prop_assert!(2 * map.len() <= index.words.len());
                prop_assert!(index.words.len() <= FIRST || 16 * map.len() >= index.words.len() / 2);
            }
        }
    }

    #[test]
    fn a_number_can_change() {
        let mut index = Index::default();
        index.insert(9, 1);
        index.insert(9, 2);
        index.renumber(9, 2, 0);
        assert_eq!(index.find(9, |number| number == 0), Some(0));
        assert_eq!(index.find(9, |number| number == 2), None);
        assert_eq!(index.find(9, |number| number == 1), Some(1));
    }
}
