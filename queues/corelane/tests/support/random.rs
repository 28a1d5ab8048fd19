//! Numbers that are random enough for a test.

/// Marsaglia's xorshift: the same tests every time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % end as u64) as usize
    }

    /// Usually nothing, sometimes some hundred pauses, rarely a time slice.
    pub(crate) fn pause(&mut self) {
        match self.below(64) {
            0 => std::thread::yield_now(),
            1..4 => self.spin(500),
            _ => {}
        }
    }

    /// Less than so many pause instructions.
    pub(crate) fn spin(&mut self, most: usize) {
        for _ in 0..self.below(most) {
            std::hint::spin_loop();
        }
    }
}
