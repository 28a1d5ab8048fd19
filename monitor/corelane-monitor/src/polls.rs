//! Pollers: a key that its source tries again and again at equal distances.
//!
//! Load balancers, collectors of metrics and the like try a target that is down as regularly as one that is up. A key
//! is polled when three distances in a row between its tries are [equal](EQUAL), each from [`SHORTEST`] to [`LONGEST`].
//! Then its failure makes no scan of a port; of a file at most [`MOST`] failures of a group are left out. Scanners try
//! again about a second later, or each time in another order. One that runs in a loop is told by the ports of a host,
//! or because it tries more hosts than a poller. Retransmissions by kernels come from the same port, and are no tries.

/// A poller has at most so many hosts of one port: more are a scan of a file.
pub(crate) const MOST: u64 = 100;
/// The parts of a second in which distances are counted.
pub(crate) const TICK_NS: u64 = 1_000_000_000 / 64;
/// In ticks, 1.75 seconds.
const SHORTEST: u64 = 112;
/// In ticks, six minutes.
const LONGEST: u64 = 360 * 64;
/// Distances are equal that differ by no more than this part of the one before.
const EQUAL: u64 = 8;

/// The last distance between two tries, and how many before it were equal, in [`BITS`](Self::BITS) bits.
///
/// The distance has six bits, shifted left by a number of four bits above them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cadence(pub(crate) u16);

impl Cadence {
    pub(crate) const BITS: u32 = 12;
    /// The shift of the number of equal ones before it.
    const EQUALS: u32 = 10;
    /// So many are enough.
    const POLLED: u16 = 2;

    pub(crate) fn is_polled(self) -> bool {
        self.0 >> Self::EQUALS == Self::POLLED
    }

    fn distance(self) -> u64 {
        u64::from(self.0 & 63) << (self.0 >> 6 & 15)
    }

    /// Behind another try, so many ticks after the last. What is polled stays so.
    pub(crate) fn then(self, ticks: u64) -> Cadence {
        if self.is_polled() {
            return self;
        }
        if !(SHORTEST..=LONGEST).contains(&ticks) {
            return Cadence(0);
        }
        let is_equal = ticks.abs_diff(self.distance()) * EQUAL <= self.distance();
        let equals = if is_equal { (self.0 >> Self::EQUALS) + 1 } else { 0 };
        let shift = (ticks.ilog2() - 5) as u16;
        Cadence(equals << Self::EQUALS | shift << 6 | (ticks >> shift) as u16)
    }
}

/// The time of the last try of a key, and its cadence. Of the time four hours are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Zeroable)]
pub(crate) struct Tries(u32);

impl Tries {
    /// The bits of the time.
    const TIME: u32 = (1 << (32 - Cadence::BITS)) - 1;

    /// A first try.
    pub(crate) fn first(time_ns: u64) -> Self {
        Tries((time_ns / TICK_NS) as u32 & Self::TIME)
    }

    pub(crate) fn is_polled(self) -> bool {
        self.cadence().is_polled()
    }

    fn cadence(self) -> Cadence {
        Cadence((self.0 >> (32 - Cadence::BITS)) as u16)
    }

    /// Behind another try.
    pub(crate) fn then(self, time_ns: u64) -> Self {
        let Tries(now) = Tries::first(time_ns);
        let cadence = self.cadence().then((now.wrapping_sub(self.0) & Self::TIME).into());
        Tries(u32::from(cadence.0) << (32 - Cadence::BITS) | now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// After how many tries at these times, in milliseconds, the key is polled.
    fn polled(times: impl IntoIterator<Item = u64>) -> Option<usize> {
        let mut times = times.into_iter().map(|time| (14_399_990 + time) * MS);
        let mut tries = Tries::first(times.next()?);
        times.position(|time| {
            tries = tries.then(time);
            tries.is_polled()
        })
    }

    fn every(apart: u64) -> impl Iterator<Item = u64> {
        (0..20).map(move |number| number * apart)
    }

    #[test]
    fn three_equal_distances_in_a_row_are_a_poll() {
        for apart in [1_800, 2_000, 5_000, 15_000, 59_999, 300_000, 340_000] {
            assert_eq!(polled(every(apart)), Some(2), "{apart}");
            // A twelfth late, and early.
            let late = every(apart).map(|at| at + at / apart % 2 * (apart / 25));
            assert_eq!(polled(late), (apart > 1_800).then_some(2), "{apart}");
            assert_eq!(polled([0, 1, 2, 3, 4, 5].map(|at| at * apart + at % 2 * (apart / 6))), None, "{apart}");
        }
        assert_eq!(polled([0, 700, 5_700, 10_700, 12_000, 17_000, 22_000, 27_000]), Some(6));
        for apart in [0, 500, 1_000, 1_500, 1_700, 361_000, 3_600_000] {
            assert_eq!(polled(every(apart)), None, "{apart}");
        }
        // A kernel's distances, and those of a mail server.
        assert_eq!(polled([0, 1_000, 3_000, 7_000, 15_000, 31_000]), None);
        assert_eq!(polled([0, 300_000, 900_000, 2_100_000]), None);
    }
}
