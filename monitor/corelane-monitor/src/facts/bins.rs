//! Sums over time, in bins whose width doubles when there would be too many.
//!
//! A bin begins at a multiple of its width since the epoch. So two bins of one width become one of the next, and the
//! result depends only on what was added: not on its order, and not on how it was spread over several of these.

/// What is added up in a bin.
pub(crate) trait Sum: Default {
    fn add(&mut self, other: &Self);
}

impl<const N: usize> Sum for [u32; N]
where
    [u32; N]: Default,
{
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(sum, count)| *sum += count);
    }
}

/// The least width, in nanoseconds.
const LEAST_NS: u64 = 1_000_000;

/// The place of no bin.
const NOWHERE: usize = usize::MAX;

/// At most `MOST` bins in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins<B, const MOST: usize> {
    width_ns: u64,
    /// The first bin's begin, in widths.
    first: u64,
    bins: Vec<B>,
    /// Where the latest bin begins, and its place.
    begin_ns: u64,
    place: usize,
}

impl<B, const MOST: usize> Default for Bins<B, MOST> {
    fn default() -> Self {
        Bins { width_ns: LEAST_NS, first: 0, bins: Vec::new(), begin_ns: 0, place: NOWHERE }
    }
}

impl<B, const MOST: usize> Bins<B, MOST> {
    /// The width of a bin, in nanoseconds: a power of two in milliseconds.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// When the first bin begins, in nanoseconds since the epoch.
    pub fn begin_ns(&self) -> u64 {
        self.first.saturating_mul(self.width_ns)
    }

    /// The bins, without a hole.
    pub fn bins(&self) -> &[B] {
        &self.bins
    }
}

impl<B, const MOST: usize> Bins<B, MOST> {
    /// The bin of a time, in nanoseconds since the epoch.
    #[inline(always)]
    pub(crate) fn at(&mut self, time_ns: u64) -> &mut B
    where
        B: Sum,
    {
        // Packets come in order of time, nearly.
        if time_ns.wrapping_sub(self.begin_ns) >= self.width_ns || self.place >= self.bins.len() {
            self.find(time_ns);
        }
        &mut self.bins[self.place]
    }

    /// The bin of a time that is not about that of the latest packet: the next call of [`at`](Self::at) is as
    /// fast as if this one had not been.
    #[inline]
    pub(crate) fn aside(&mut self, time_ns: u64) -> &mut B
    where
        B: Sum,
    {
        let place = (time_ns / self.width_ns).wrapping_sub(self.first);
        if place >= self.bins.len() as u64 {
            return self.at(time_ns);
        }
        &mut self.bins[place as usize]
    }

    #[cold]
    fn find(&mut self, time_ns: u64)
    where
        B: Sum,
    {
        if self.bins.is_empty() {
            self.first = time_ns / self.width_ns;
        }
        loop {
            let number = time_ns / self.width_ns;
            let (first, last) = (self.first.min(number), (self.first + self.bins.len() as u64).max(number + 1));
            if last - first > MOST as u64 {
                self.double();
                continue;
            }
            if first < self.first {
                self.bins.splice(0..0, (first..self.first).map(|_| B::default()));
                self.first = first;
            }
            self.bins.resize_with((last - first) as usize, B::default);
            self.place = (number - first) as usize;
            self.begin_ns = number * self.width_ns;
            return;
        }
    }

    /// Makes one bin of two.
    fn double(&mut self)
    where
        B: Sum,
    {
        let old = std::mem::take(&mut self.bins);
        let first = self.first / 2;
        for (number, bin) in (self.first..).zip(&old) {
            let place = (number / 2 - first) as usize;
            if place == self.bins.len() {
                self.bins.push(B::default());
            }
            self.bins[place].add(bin);
        }
        self.width_ns = self.width_ns.saturating_mul(2);
        (self.first, self.place) = (first, NOWHERE);
    }

    /// The same in at most so many bins, two or more.
    pub(crate) fn within(&self, most: usize) -> Self
    where
        B: Sum + Clone,
    {
        let mut all = self.clone();
        while all.bins.len() > most {
            all.double();
        }
        all
    }

    /// Adds those of another part of the capture.
    pub(crate) fn merge(&mut self, other: &Self)
    where
        B: Sum,
    {
        while self.width_ns < other.width_ns {
            self.double();
        }
        for (number, bin) in (other.first..).zip(&other.bins) {
            self.at(number * other.width_ns).add(bin);
        }
        self.place = NOWHERE;
    }

    /// Forgets what depends on the order in which all was added.
    pub(crate) fn settle(&mut self) {
        (self.begin_ns, self.place) = (0, NOWHERE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Few = Bins<[u32; 1], 8>;

    fn of(times: &[u64]) -> Few {
        let mut bins = Few::default();
        times.iter().for_each(|&time| bins.at(time)[0] += 1);
        bins.settle();
        bins
    }

    #[test]
    fn neither_order_nor_parts_matter() {
        let times: Vec<_> = (0..1000_u64).map(|i| 1_700_000_000_000_000_000 + i * i * 7_919_000).collect();
        let all = of(&times);
        assert_eq!(all.bins().iter().map(|bin| bin[0]).sum::<u32>(), 1000);
        assert!(all.bins().len() > 4 && all.bins().len() <= 8, "{all:?}");
        let mut backwards = times.clone();
        backwards.reverse();
        assert_eq!(of(&backwards), all);
        for parts in [2, 3, 7] {
            let mut sum = Few::default();
            for part in 0..parts {
                let own: Vec<_> = times.iter().copied().skip(part).step_by(parts).collect();
                sum.merge(&of(&own));
            }
            sum.settle();
            assert_eq!(sum, all, "{parts}");
        }
    }

    #[test]
    fn a_bin_has_what_came_within_its_width() {
        let bins = of(&[0, 999_999, 1_000_000, 7_999_999]);
        assert_eq!((bins.width_ns(), bins.begin_ns()), (1_000_000, 0));
        assert_eq!(bins.bins(), [[2], [1], [0], [0], [0], [0], [0], [1]]);
        let bins = of(&[0, 999_999, 1_000_000, 7_999_999, 8_000_000]);
        assert_eq!((bins.width_ns(), bins.bins()), (2_000_000, &[[3], [0], [0], [1], [1]][..]));
    }

    #[test]
    fn times_at_the_epoch_are_times_after_the_width_has_changed() {
        let mut bins = Few::default();
        [0, 20_000_000, 0, 1].iter().for_each(|&time| bins.at(time)[0] += 1);
        let mut sum = Few::default();
        sum.merge(&bins);
        sum.merge(&of(&[0]));
        assert_eq!(sum.bins(), [[4], [0], [0], [0], [0], [1]]);
    }

    #[test]
    fn fewer_bins_are_those_that_would_have_been() {
        let times: Vec<_> = (0..300_u64).map(|i| 1_700_000_000_000_000_000 + i * i * 7_919_000).collect();
        let mut many = Bins::<[u32; 1], 1024>::default();
        times.iter().for_each(|&time| many.at(time)[0] += 1);
        let (some, few) = (many.within(8), of(&times));
        assert!(many.bins().len() > 500, "{}", many.bins().len());
        assert_eq!((some.width_ns(), some.begin_ns(), some.bins()), (few.width_ns(), few.begin_ns(), few.bins()));
    }

    #[test]
    fn the_largest_times_are_times() {
        let bins = of(&[0, u64::MAX]);
        assert_eq!(bins.bins().iter().map(|bin| bin[0]).sum::<u32>(), 2);
        assert!(bins.bins().len() <= 8);
    }
}
