//! The counts that the directory wrote.

use std::collections::BTreeMap;

/// The counts of one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) items: u64,
    pub(crate) counts: Vec<Count>,
    pub(crate) lines: Vec<Line>,
}

/// The accesses of one thread in the regions of one length; length 0 stands for memory outside regions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Count {
    pub(crate) thread: usize,
    pub(crate) region: u64,
    pub(crate) accesses: u64,
    /// Reads of lines that another thread wrote and this thread did not hold.
    pub(crate) reads: u64,
    /// Writes to lines that other threads held and this thread did not.
    pub(crate) writes: u64,
    /// Writes to lines that this thread and other threads held.
    pub(crate) upgrades: u64,
}

impl Count {
    /// How many lines came to this thread.
    pub(crate) fn moved(&self) -> u64 {
        self.reads + self.writes
    }
}

/// A line of a small region, or of no region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) region: u64,
    pub(crate) offset: u64,
    pub(crate) moved: u64,
}

/// Cache lines moved an item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerItem {
    /// Lines that moved to the taking threads.
    pub(crate) out: f64,
    /// Lines that moved to the putting threads.
    pub(crate) back: f64,
    /// Copies that other threads lost although no line moved.
    pub(crate) upgrades: f64,
}

impl Reading {
    pub(crate) fn per_item(&self, putters: usize) -> PerItem {
        let sum = |of: &dyn Fn(&Count) -> u64| self.counts.iter().map(of).sum::<u64>() as f64 / self.items as f64;
        PerItem {
            out: sum(&|count| if count.thread >= putters { count.moved() } else { 0 }),
            back: sum(&|count| if count.thread < putters { count.moved() } else { 0 }),
            upgrades: sum(&|count| count.upgrades),
        }
    }

    /// The remote accesses of the taking thread that made the most of them; `out` in the result.
    pub(crate) fn worst(&self, putters: usize) -> PerItem {
        let mut threads: BTreeMap<usize, u64> = BTreeMap::new();
        for count in self.counts.iter().filter(|count| count.thread >= putters) {
            *threads.entry(count.thread).or_default() += count.moved() + count.upgrades;
        }
        let out = threads.values().max().map_or(f64::NAN, |&most| most as f64);
        PerItem { out, back: 0.0, upgrades: 0.0 }
    }

    /// How many lines moved to any thread.
    pub(crate) fn moved(&self) -> u64 {
        self.counts.iter().map(Count::moved).sum()
    }

    pub(crate) fn accesses(&self) -> u64 {
        self.counts.iter().map(|count| count.accesses).sum()
    }
}

/// Reads the directory's file: the cases by their numbers.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<usize, Reading>, String> {
    let mut readings: BTreeMap<usize, Reading> = BTreeMap::new();
    let mut last = None;
    for line in text.lines() {
        let mut words = line.split(' ');
        let what = words.next();
        let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
        let reading = last.and_then(|last| readings.get_mut(&last));
        match (what, numbers.as_deref(), reading) {
            (Some("case"), Ok(&[case, items]), _) => {
                readings.insert(case as usize, Reading { items, ..Reading::default() });
                last = Some(case as usize);
            }
            (Some("count"), Ok(&[thread, region, accesses, reads, writes, upgrades]), Some(reading)) => {
                reading.counts.push(Count { thread: thread as usize, region, accesses, reads, writes, upgrades });
            }
            (Some("line"), Ok(&[region, offset, moved]), Some(reading)) => {
                reading.lines.push(Line { region, offset, moved });
            }
            _ => return Err(format!("the emulator's plugin wrote '{line}', which is not a count; run it again")),
        }
    }
    Ok(readings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_directory_is_read() {
        let text = "case 3 10\ncount 0 64 7 0 5 1\ncount 1 64 9 5 0 2\ncount 1 0 2 1 0 0\nline 64 0 11\ncase 4 1\n";
        let readings = parse(text).unwrap();
        assert_eq!(readings.keys().copied().collect::<Vec<_>>(), [3, 4]);
        assert_eq!(readings[&3].per_item(1), PerItem { out: 0.6, back: 0.5, upgrades: 0.3 });
        assert_eq!((readings[&3].moved(), readings[&3].accesses()), (11, 18));
        assert_eq!(readings[&3].worst(1).out, 8.0);
        assert!(readings[&4].worst(1).out.is_nan());
        assert_eq!(readings[&3].lines, [Line { region: 64, offset: 0, moved: 11 }]);
        for wrong in ["count 0 64 7 0 5 1", "case 3", "case 3 x", "case 1 1\nother 1 1"] {
            assert!(parse(wrong).unwrap_err().contains("wrote"), "{wrong}");
        }
    }
}
