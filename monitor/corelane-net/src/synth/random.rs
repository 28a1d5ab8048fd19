//! Random numbers.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014): a
//! counter with an odd step, scrambled. Its code is in this file, and every distribution below uses whole numbers only.
//! So a seed gives the same bytes on every machine and with every version of every library.

/// The step of the counter: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        // Scrambled, so that neighbouring seeds do not give the same stream a few steps apart.
        Self { state: mix(seed ^ 0x636f_7265_6c61_6e65) }
    }

    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number below `n`, evenly drawn.
    #[inline]
    pub(super) fn below(&mut self, n: u64) -> u64 {
        scale(self.next(), n)
    }

    /// A rank below `n`. Rank k comes about as often as 1 / (k + 1): Zipf's law in steps of powers of two.
    ///
    /// Every octave of ranks (1, 2-3, 4-7, …) is equally likely, and so is every rank of an octave.
    #[inline]
    pub(super) fn zipf(&mut self, n: u64) -> u64 {
        let octaves = u64::from(u64::BITS - n.leading_zeros());
        loop {
            let first = 1_u64 << self.below(octaves);
            let rank = first + self.below(first);
            if rank <= n {
                return rank - 1;
            }
        }
    }

    /// A length in `4..4 << 15`, heavy-tailed: each octave comes 0.45 times as often as the one before it. That is a
    /// bounded Pareto distribution with exponent 1.15 in steps of powers of two. The mean is about 26.
    #[inline]
    pub(super) fn pareto(&mut self) -> u32 {
        let mut left = self.next() >> 32;
        let mut first = 4;
        // 0.45 of 2^32: the tail that goes on to the next octave.
        while left < 1_932_735_283 && first < 4 << 14 {
            left = (left << 32) / 1_932_735_283;
            first <<= 1;
        }
        first + self.below(u64::from(first)) as u32
    }
}

/// The scrambler of SplitMix64: a bijection in which every bit of `x` touches every bit of the result.
#[inline]
pub(super) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Scales a random number to `0..n`.
#[inline]
pub(super) fn scale(random: u64, n: u64) -> u64 {
    ((u128::from(random) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_published_algorithm() {
        // The first numbers of the reference implementation with seed 1234567.
        let mut random = Random { state: 1_234_567 };
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        assert_eq!(random.next(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn zipf_reaches_every_rank_and_prefers_the_first() {
        for n in [1, 2, 3, 4, 5, 8, 100] {
            let mut random = Random::new(n);
            let mut seen = vec![0_u32; n as usize];
            (0..20_000).for_each(|_| seen[random.zipf(n) as usize] += 1);
            assert!(seen.iter().all(|&count| count > 0), "{n}: {seen:?}");
            assert!(seen.iter().all(|&count| count <= seen[0] + seen[0] / 4), "{n}: {seen:?}");
        }
    }

    #[test]
    fn pareto_stays_within_its_bounds_and_has_the_promised_mean() {
        let mut random = Random::new(3);
        let lengths: Vec<u64> = (0..400_000).map(|_| u64::from(random.pareto())).collect();
        let mean = lengths.iter().sum::<u64>() / lengths.len() as u64;
        assert!((22..31).contains(&mean), "{mean}");
        assert_eq!(*lengths.iter().min().unwrap(), 4);
        assert!((10_000..4 << 15).contains(lengths.iter().max().unwrap()));
    }
}
