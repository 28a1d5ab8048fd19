//! What travels: numbered items of any size.

use std::hint::black_box;

/// An item that carries a number, so that the receiving end can check order and loss.
pub(crate) trait Item: Copy + Default + Send + Sync + 'static {
    /// Size in bytes.
    const BYTES: usize;

    /// Makes this item number `number`.
    fn stamp(&mut self, number: u64);

    /// The number in the item, if all of it is there.
    fn number(&self) -> u64;
}

/// The smallest item: travels in registers on both sides.
impl Item for u64 {
    const BYTES: usize = 8;

    #[inline(always)]
    fn stamp(&mut self, number: u64) {
        *self = number;
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        *self
    }
}

/// An item of `WORDS` words.
///
/// Both ends pass it through `black_box`, so that a contender copies all of it in and all of it out, no matter how much of
/// its code the compiler sees through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Default for Block<WORDS> {
    fn default() -> Self {
        Block([0; WORDS])
    }
}

impl<const WORDS: usize> Item for Block<WORDS> {
    const BYTES: usize = 8 * WORDS;

    #[inline(always)]
    fn stamp(&mut self, number: u64) {
        self.0[0] = number;
        self.0[WORDS - 1] = number;
        black_box(self);
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        let Block(words) = black_box(self);
        // A torn item has no number that anyone expects.
        if words[0] == words[WORDS - 1] { words[0] } else { u64::MAX }
    }
}
