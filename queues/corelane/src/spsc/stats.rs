//! What an end of a queue counts about itself, as a type parameter: nothing, or everything.
//!
//! ```
//! use corelane::spsc::{self, Counting, Options};
//!
//! let options = Options::new().stats::<Counting>();
//! let (mut producer, mut consumer) = spsc::lane::channel_with(4, options).unwrap();
//! assert_eq!(producer.try_push_slice(&[1, 2, 3, 4, 5]), Ok(4));
//! consumer.pop().unwrap();
//! assert!(consumer.pop_batch(&mut Vec::new(), 10) == Ok(3) && consumer.try_pop().is_err());
//!
//! let stats = producer.stats().and(&consumer.stats());
//! assert_eq!((stats.pushes, stats.full, stats.high_water), (4, 1, 4));
//! assert_eq!((stats.pops, stats.empty), (4, 1));
//! ```
//!
//! - Each end counts its own calls in its own handle, so counting moves no cache line between cores.
//! - [`NoStats`], the default, is no code and no memory at all.
//! - An end's counts are its thread's to read. [`Stats::and`] joins those of both.

use core::fmt;

/// Counts of one end, or of both; those that are the other end's business stay 0.
///
/// ```
/// use corelane::spsc::{Counting, Options, lane};
///
/// let (mut producer, mut consumer) = lane::channel_with(4, Options::new().stats::<Counting>())?;
/// producer.push_slice(&[1, 2, 3]).unwrap();
/// consumer.pop().unwrap();
/// let both = producer.stats().and(&consumer.stats());
/// assert_eq!((both.pushes, both.pops), (3, 1));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Items pushed.
    pub pushes: u64,
    /// Items popped.
    pub pops: u64,
    /// Calls that pushed less than they were asked to, because the queue was full and not closed, and looks of those
    /// that wait.
    pub full: u64,
    /// Calls that popped nothing, because the queue was empty.
    pub empty: u64,
    /// Waits of this end: calls of the strategy that did not find the queue ready before.
    pub waits: u64,
    /// The most items that were inside after a push. An upper bound, as the producer knows of pops a little late; at
    /// most the capacity. Of a [`stream`](crate::spsc::stream) it is bytes, as its
    /// [limit](crate::spsc::stream::Tuning::limit) counts them.
    pub high_water: usize,
    /// How many items were handed over at a time.
    pub batches: BatchSizes,
    /// Blocks that the consumer of a [`lane`](crate::spsc::lane) or a [`linked`](crate::spsc::linked) one took when it
    /// last looked ahead: the more, the further it is behind the producer. 0 of other designs, and as long as no block
    /// was full.
    pub taken: usize,
    /// How often that consumer takes the full blocks that there are before it waits a moment for more again. The number
    /// doubles, up to 1,024, each time that the wait did not help, and is 0 when it did.
    pub abstains: u32,
}

impl Stats {
    /// The counts of both ends: sums, and the larger high-water mark. Of [`batches`](Self::batches) each end has its
    /// own view, so those are summed as well: see [`BatchSizes`].
    #[must_use]
    pub fn and(&self, other: &Stats) -> Stats {
        Stats {
            pushes: self.pushes + other.pushes,
            pops: self.pops + other.pops,
            full: self.full + other.full,
            empty: self.empty + other.empty,
            waits: self.waits + other.waits,
            high_water: self.high_water.max(other.high_water),
            batches: BatchSizes(core::array::from_fn(|i| self.batches.0[i] + other.batches.0[i])),
            taken: self.taken + other.taken,
            abstains: self.abstains + other.abstains,
        }
    }
}

/// A histogram of batch sizes in powers of two.
///
/// A batch is what a call hands over, or gives back, in one step: in an index queue all that lies side by side, in a
/// lane a block at most, where each slot has a flag a single item.
///
/// ```
/// use corelane::spsc::{Counting, Options, mcring};
///
/// let (mut producer, _consumer) = mcring::channel_with(64, Options::new().stats::<Counting>())?;
/// producer.push(0).unwrap();
/// producer.push_slice(&[1, 2, 3, 4, 5]).unwrap();
/// let batches = producer.stats().batches;
/// // One of a single item, and one of 4 to 7.
/// assert!(batches.iter().eq([(1, 1), (4, 1)]));
/// assert_eq!(batches.count(), 2);
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchSizes([u64; BatchSizes::CLASSES]);

impl BatchSizes {
    /// Classes of sizes: from 1, 2, 4, … up to 2^15 and more.
    pub const CLASSES: usize = 16;

    /// Each class with batches in it: its least size, and the number of batches from there to twice that size; the last
    /// class has no upper end.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(|(class, &count)| (1 << class, count))
    }

    /// All batches.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    #[inline]
    fn add(&mut self, size: usize) {
        if let Some(class) = size.checked_ilog2() {
            self.0[(class as usize).min(Self::CLASSES - 1)] += 1;
        }
    }
}

impl fmt::Debug for BatchSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Whether an end counts: [`NoStats`] or [`Counting`].
///
/// Sealed.
pub trait Recorder: sealed::Recorder + Default + Send + 'static {}

pub(super) mod sealed {
    pub trait Recorder {
        /// A batch of this size was pushed; `inside` says how many items the queue holds at most.
        #[inline(always)]
        fn pushed(&mut self, _n: usize, _inside: impl FnOnce() -> usize) {}
        /// A batch of this size was popped.
        #[inline(always)]
        fn popped(&mut self, _n: usize) {}
        /// A call found no free slot; `refused` says whether an item was refused for that.
        #[inline(always)]
        fn full(&mut self, _refused: impl FnOnce() -> bool) {}
        #[inline(always)]
        fn empty(&mut self) {}
        #[inline(always)]
        fn waited(&mut self) {}
    }
}

/// Counts nothing, and costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoStats;

impl Recorder for NoStats {}
impl sealed::Recorder for NoStats {}

/// Counts everything. A push then also looks at the consumer's position, for [`Stats::high_water`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting(Stats);

impl Counting {
    pub(super) fn stats(&self) -> Stats {
        self.0
    }
}

impl Recorder for Counting {}

impl sealed::Recorder for Counting {
    fn pushed(&mut self, n: usize, inside: impl FnOnce() -> usize) {
        self.0.pushes += n as u64;
        self.0.batches.add(n);
        self.0.high_water = self.0.high_water.max(inside());
    }

    fn popped(&mut self, n: usize) {
        self.0.pops += n as u64;
        self.0.batches.add(n);
    }

    fn full(&mut self, refused: impl FnOnce() -> bool) {
        self.0.full += u64::from(refused());
    }

    fn empty(&mut self) {
        self.0.empty += 1;
    }

    fn waited(&mut self) {
        self.0.waits += 1;
    }
}
