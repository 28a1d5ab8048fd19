//! Counts of durations, fine enough for percentiles: 64 buckets for each power of two, so within 1.6 %.

const SUB_BITS: u32 = 6;
const SUB: usize = 1 << SUB_BITS;

/// Counts of unsigned values.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// An empty histogram with room for every value, so that counting never allocates.
    pub(crate) fn new() -> Self {
        Histogram { counts: vec![0; (64 - SUB_BITS as usize + 1) * SUB], total: 0 }
    }

    /// Counts a value.
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.total += 1;
    }

    /// The value that `percent` of all values do not exceed, to a bucket's width. 0 without values.
    pub(crate) fn percentile(&self, percent: f64) -> u64 {
        let rank = ((percent / 100.0 * self.total as f64).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle(bucket);
            }
        }
        0
    }
}

/// Values below `SUB` have a bucket each; above, the leading `SUB_BITS` + 1 bits choose it.
fn bucket(value: u64) -> usize {
    let high = 63_u32.saturating_sub(value.leading_zeros());
    if high < SUB_BITS {
        return value as usize;
    }
    let shift = high - SUB_BITS;
    (shift as usize + 1) * SUB + ((value >> shift) as usize - SUB)
}

/// A value in the middle of the bucket.
fn middle(bucket: usize) -> u64 {
    if bucket < SUB {
        return bucket as u64;
    }
    let shift = (bucket / SUB - 1) as u32;
    let first = ((bucket % SUB + SUB) as u64) << shift;
    first + ((1_u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_within_a_bucket() {
        for value in (0..2000).chain([1 << 20, (1 << 40) + 12345, u64::MAX / 3, u64::MAX]) {
            let near = middle(bucket(value));
            assert!(near.abs_diff(value) as f64 <= value as f64 / 64.0, "{value} came back as {near}");
        }
    }

    #[test]
    fn buckets_are_in_order() {
        let mut last = 0;
        for value in 0..100_000_u64 {
            let this = bucket(value);
            assert!(this == last || this == last + 1, "{value}");
            last = this;
        }
    }

    #[test]
    fn percentiles_are_the_ranks_they_name() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile(50.0), 0);
        for value in 1..=60 {
            histogram.add(value);
        }
        assert_eq!(histogram.percentile(50.0), 30);
        assert_eq!(histogram.percentile(100.0), 60);
        assert_eq!(histogram.percentile(0.0), 1);
        assert_eq!(histogram.percentile(99.0), 60);
    }
}
