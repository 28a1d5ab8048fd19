//! The keyed hash of every table of this crate.
//!
//! The sender of the packets chooses the keys of the tables, so without a secret it could fill one chain. The hash is
//! one 64x64 -> 128 bit multiply of two words, each masked with a secret drawn for this run, folded to 64 bits. That
//! costs a few cycles, and SipHash costs tens. No result may depend on the secrets: only positions in tables do.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The secrets with which all stages of one run hash.
#[derive(Clone, Copy)]
pub(crate) struct HashKeys([u64; 6]);

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

impl HashKeys {
    pub(crate) fn random() -> Self {
        let source = RandomState::new();
        HashKeys(std::array::from_fn(|i| source.hash_one(i)))
    }

    /// Hashes a key of up to six words. Positions are taken from the upper bits.
    #[inline(always)]
    pub(crate) fn hash<const N: usize>(&self, key: &[u64; N]) -> u64 {
        const { assert!(N <= 6) }
        let mut hash = 0;
        let mut i = 0;
        while i < N {
            let second = if i + 1 < N { key[i + 1] } else { 0 };
            hash = folded_multiply(hash ^ key[i] ^ self.0[i], second ^ self.0[i + 1]);
            i += 2;
        }
        hash
    }
}

impl BuildHasher for HashKeys {
    type Hasher = FoldHasher;

    #[inline]
    fn build_hasher(&self) -> FoldHasher {
        FoldHasher { hash: self.0[0], secret: self.0[1] }
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
