//! The keyed hash of every table of this crate.
//!
//! The sender of the packets chooses the keys of the tables, so without a secret it could fill one chain. The hash is
//! one 64x64 -> 128 bit multiply of two words, each masked with a secret drawn for this run, folded to 64 bits. That
//! costs a few cycles, and SipHash costs tens. No result may depend on these secrets: only positions in tables do.
//!
//! Partitions have secrets of their own, which follow from the [seed](crate::Settings::seed): a sender that knew the
//! partition of its packets could fill that one. What a full partition forgets does depend on the seed.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The secrets with which all stages of one run hash.
#[derive(Clone, Copy)]
pub(crate) struct HashKeys {
    tables: [u64; 6],
    partitions: [u64; 4],
}

impl std::fmt::Debug for HashKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKeys(..)")
    }
}

#[inline(always)]
const fn folded_multiply(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    product as u64 ^ (product >> 64) as u64
}

/// SplitMix64's last step: words that are alike become words that are not.
#[inline(always)]
pub(crate) const fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

impl HashKeys {
    /// New secrets for tables, and the partitions of seed 0.
    pub(crate) fn random() -> Self {
        HashKeys::seeded(0)
    }

    /// New secrets for tables, and the partitions of this seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        let source = RandomState::new();
        // Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators" (2014), SplitMix64.
        let mut state = seed;
        let partitions = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mixed(state)
        });
        HashKeys { tables: std::array::from_fn(|i| source.hash_one(i)), partitions }
    }

    /// The partition of a pair of IPv4 addresses, in either order.
    #[inline(always)]
    pub(crate) fn partition_v4(&self, source: u32, destination: u32) -> u8 {
        let [a, b, ..] = self.partitions;
        let (lesser, greater) = (source.min(destination), source.max(destination));
        let pair = u64::from(lesser) << 32 | u64::from(greater);
        (folded_multiply(pair ^ a, b) >> 56) as u8
    }

    /// The partition of a pair of IPv6 addresses, in either order.
    #[inline(always)]
    pub(crate) fn partition_v6(&self, source: u128, destination: u128) -> u8 {
        let [a, b, c, d] = self.partitions;
        let (lesser, greater) = (source.min(destination), source.max(destination));
        let hash = folded_multiply((lesser >> 64) as u64 ^ a, lesser as u64 ^ b);
        (folded_multiply(hash ^ (greater >> 64) as u64 ^ c, greater as u64 ^ d) >> 56) as u8
    }

    /// A hash of two words that depends on the seed alone.
    #[inline(always)]
    pub(crate) fn seeded_hash(&self, [first, second]: [u64; 2]) -> u64 {
        let [a, b, c, d] = self.partitions;
        folded_multiply(folded_multiply(first ^ c, second ^ d) ^ a, b)
    }

    /// Hashes a key of up to six words. Positions are taken from the upper bits.
    #[inline(always)]
    pub(crate) fn hash<const N: usize>(&self, key: &[u64; N]) -> u64 {
        const { assert!(N <= 6) }
        let mut hash = 0;
        let mut i = 0;
        while i < N {
            let second = if i + 1 < N { key[i + 1] } else { 0 };
            hash = folded_multiply(hash ^ key[i] ^ self.tables[i], second ^ self.tables[i + 1]);
            i += 2;
        }
        hash
    }
}

impl BuildHasher for HashKeys {
    type Hasher = FoldHasher;

    #[inline]
    fn build_hasher(&self) -> FoldHasher {
        FoldHasher { hash: self.tables[0], secret: self.tables[1] }
    }
}

/// The same multiply behind the standard interface, for the tables off the packet path.
#[derive(Debug)]
pub(crate) struct FoldHasher {
    hash: u64,
    secret: u64,
}

impl Hasher for FoldHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.hash = folded_multiply(self.hash ^ value, self.secret);
    }

    #[inline]
    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
        self.write_u64((value >> 64) as u64);
    }
}
