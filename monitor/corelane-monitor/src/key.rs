//! Keys of tables. Slots carry hashes of some.

use crate::hash::HashKeys;
use bytemuck::Zeroable;

/// A key of some words. The last is never zero: a zero there marks an empty position.
pub(crate) trait Key: Copy + Zeroable {
    const EMPTY: Self;
    fn is_empty(&self) -> bool;
    fn equals(&self, other: &Self) -> bool;
    fn hash(&self, keys: &HashKeys) -> u64;
}

impl<const N: usize> Key for [u64; N] {
    const EMPTY: Self = [0; N];

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self[N - 1] == 0
    }

    /// Equality without the call of `memcmp` that `==` of arrays becomes.
    #[inline(always)]
    fn equals(&self, other: &Self) -> bool {
        let mut difference = 0;
        for i in 0..N {
            difference |= self[i] ^ other[i];
        }
        difference == 0
    }

    #[inline(always)]
    fn hash(&self, keys: &HashKeys) -> u64 {
        keys.hash(self)
    }
}

/// The hash of a flow's key, which tables use and slots carry.
#[inline(always)]
pub(crate) fn flow_hash<K: Key>(keys: &HashKeys, key: &K) -> u32 {
    (key.hash(keys) >> 32) as u32
}
