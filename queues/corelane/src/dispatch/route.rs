//! Which worker gets a job.

use crate::macros::debug;
use std::boxed::Box;
use std::vec;

/// How the dispatcher chooses a worker: [`RoundRobin`], [`LeastLoaded`] or [`ByKey`].
///
/// Sealed: what is promised about order and about full queues depends on it.
pub trait Route<T>: sealed::Sealed + Send {
    /// A job goes where it is told, or waits; it never goes elsewhere.
    #[doc(hidden)]
    const BOUND: bool;

    /// Before the first worker joins.
    #[doc(hidden)]
    fn begin(&mut self, batch: usize);

    /// The worker for this job.
    #[doc(hidden)]
    fn choose<L: Load>(&mut self, job: &T, lines: &mut [L]) -> usize;

    /// Where jobs may go without another choice, and how many.
    #[doc(hidden)]
    fn run(&self) -> (usize, usize);

    /// So many did.
    #[doc(hidden)]
    fn sent(&mut self, jobs: usize);

    /// There was no room, but at this worker.
    #[doc(hidden)]
    fn moved(&mut self, to: usize);

    /// A worker has joined behind the others, which are so many now.
    #[doc(hidden)]
    fn joined(&mut self, count: usize);

    /// The worker at this place has left; those behind it move up. So many are left.
    #[doc(hidden)]
    fn left(&mut self, at: usize, count: usize);
}

mod sealed {
    pub trait Sealed {}
}

/// What a route may know of a worker.
#[doc(hidden)]
pub trait Load {
    /// Jobs in its queue: an upper bound.
    fn len(&self) -> usize;

    /// It waits for jobs, asleep.
    fn sleeps(&self) -> bool;
}

/// Each worker in turn gets a batch of jobs: the default.
///
/// The jobs of a batch are dispatched one by one, and none waits for the others. A batch ends early when its worker has
/// no more room, or when its worker still has jobs to do and the next worker sleeps. So jobs that take long, or come
/// slowly, go one to each worker. Short jobs that come fast go batch by batch, which moves fewer lines and wakes
/// workers less often.
///
/// ```
/// use corelane::dispatch::{Builder, RoundRobin};
///
/// let (mut dispatcher, mut workers) = Builder::new(2).batch(2).route(RoundRobin::new()).build()?;
/// (0..6).for_each(|job| dispatcher.dispatch(job).unwrap());
/// drop(dispatcher);
/// assert!(workers[0].jobs().eq([0, 1, 4, 5]));
/// assert!(workers[1].jobs().eq([2, 3]));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    batch: usize,
    at: usize,
    /// Of the batch.
    left: usize,
}

impl RoundRobin {
    /// Starts with the first worker.
    pub fn new() -> Self {
        Self::default()
    }

    fn next(&self, count: usize) -> usize {
        if self.at + 1 < count { self.at + 1 } else { 0 }
    }

    #[cold]
    fn turn<L: Load>(&mut self, next: usize, lines: &mut [L]) {
        // In the middle of a batch the next one sleeps. It is worth a wake-up if there is work to be shared.
        if self.left == 0 || lines[self.at].len() > 0 {
            self.at = next;
            self.left = self.batch;
        }
    }
}

impl sealed::Sealed for RoundRobin {}

impl<T> Route<T> for RoundRobin {
    const BOUND: bool = false;

    fn begin(&mut self, batch: usize) {
        *self = Self { batch, at: 0, left: batch };
    }

    #[inline(always)]
    fn choose<L: Load>(&mut self, _: &T, lines: &mut [L]) -> usize {
        let next = self.next(lines.len());
        if self.left == 0 || lines[next].sleeps() {
            self.turn(next, lines);
        }
        self.at
    }

    #[inline(always)]
    fn run(&self) -> (usize, usize) {
        (self.at, self.left)
    }

    #[inline(always)]
    fn sent(&mut self, jobs: usize) {
        self.left -= jobs;
    }

    fn moved(&mut self, to: usize) {
        self.at = to;
        self.left = self.batch;
    }

    fn joined(&mut self, _: usize) {}

    fn left(&mut self, at: usize, count: usize) {
        if self.at > at {
            self.at -= 1;
        } else if self.at == at {
            // The one that has moved up is next.
            self.at = if at < count { at } else { 0 };
            self.left = self.batch;
        }
    }
}

/// The worker whose queue is shortest; among equals one that sleeps, then the next in turn.
///
/// It looks at every queue for each job, or for each batch of those that are dispatched together: a line a worker,
/// which that worker writes. So it is for jobs that take longer than that, and whose lengths differ.
///
/// A worker tells of the jobs it takes a little late. So the count may be too high by
/// [`release_lag`](crate::spsc::Producer::release_lag), over [`linked`](crate::spsc::linked) by a segment.
///
/// ```
/// use corelane::dispatch::{Builder, LeastLoaded};
///
/// let (mut dispatcher, mut workers) = Builder::new(2).capacity(8).route(LeastLoaded::new()).build()?;
/// (0..4).for_each(|job| dispatcher.dispatch(job).unwrap());
/// assert_eq!((workers[1].pop(), workers[1].pop()), (Ok(1), Ok(3)));
/// dispatcher.dispatch(4).unwrap();
/// dispatcher.dispatch(5).unwrap();
/// drop(dispatcher);
/// // The other one had two still.
/// assert!(workers[0].jobs().eq([0, 2]));
/// assert!(workers[1].jobs().eq([4, 5]));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LeastLoaded {
    batch: usize,
    at: usize,
    /// Of those that are dispatched together.
    left: usize,
}

impl LeastLoaded {
    /// Starts with the first worker.
    pub fn new() -> Self {
        Self::default()
    }
}

impl sealed::Sealed for LeastLoaded {}

impl<T> Route<T> for LeastLoaded {
    const BOUND: bool = false;

    fn begin(&mut self, batch: usize) {
        *self = Self { batch, at: usize::MAX, left: batch };
    }

    fn choose<L: Load>(&mut self, _: &T, lines: &mut [L]) -> usize {
        let count = lines.len();
        let first = if self.at.wrapping_add(1) < count { self.at.wrapping_add(1) } else { 0 };
        let turns = (first..count).chain(0..first);
        self.at = turns.min_by_key(|&at| (lines[at].len(), !lines[at].sleeps())).unwrap_or(0);
        self.left = self.batch;
        self.at
    }

    fn run(&self) -> (usize, usize) {
        (self.at, self.left)
    }

    fn sent(&mut self, jobs: usize) {
        self.left -= jobs;
    }

    fn moved(&mut self, to: usize) {
        self.at = to;
        self.left = self.batch;
    }

    fn joined(&mut self, _: usize) {}

    fn left(&mut self, _: usize, _: usize) {}
}

/// Buckets of keys. Where there are more workers than that, some get no job.
const BUCKETS: usize = 1024;
/// The owner of a bucket whose worker has left.
const NOBODY: u16 = u16::MAX;

/// All jobs of one key go to the same worker, in order, as long as no worker joins or leaves.
///
/// Keys are hashed to 1,024 buckets, and each worker owns its share of them. A worker that joins is given buckets by
/// all others; those of a worker that leaves are dealt out to the rest. No other key changes its worker then.
///
/// - After a leave, the jobs that come back go out before any later job: of one key they are still done in order,
///   behind what the worker that left is doing at that time.
/// - After a join, the jobs of a key that has changed its worker may be done beside those that are still in the old
///   worker's queue. Where that matters, let all be done before a worker joins.
///
/// ```
/// use corelane::dispatch::{Builder, ByKey};
///
/// let (mut dispatcher, mut workers) =
///     Builder::new(2).route(ByKey::new(|job: &(u64, i64)| job.0)).build::<(u64, i64)>().unwrap();
/// for job in [(7, 100), (8, 50), (7, -30)] {
///     dispatcher.dispatch(job).unwrap();
/// }
/// drop(dispatcher);
/// let of_7 = |worker: &mut corelane::dispatch::Worker<(u64, i64)>| {
///     worker.jobs().filter(|job| job.0 == 7).collect::<Vec<_>>()
/// };
/// let mut all = workers.iter_mut().map(of_7).collect::<Vec<_>>();
/// all.sort();
/// assert_eq!(all, [vec![], vec![(7, 100), (7, -30)]]);
/// ```
#[derive(Clone)]
pub struct ByKey<F> {
    key: F,
    owners: Box<[u16; BUCKETS]>,
}

impl<F> ByKey<F> {
    /// By the key that this function gives a job. It need not be spread evenly: it is mixed.
    pub fn new(key: F) -> Self {
        Self { key, owners: Box::new([NOBODY; BUCKETS]) }
    }

    /// Gives each worker an even share, with as few changes as that takes.
    fn even_out(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let mut shares = vec![0; count];
        // No worker keeps more than this.
        let most = BUCKETS.div_ceil(count);
        for owner in self.owners.iter_mut() {
            match shares.get_mut(usize::from(*owner)) {
                Some(share) if *share < most => *share += 1,
                _ => *owner = NOBODY,
            }
        }
        let least = BUCKETS / count;
        // Some may have kept one more than others can get then.
        for worker in 0..count {
            while shares[worker] < least && !self.owners.contains(&NOBODY) {
                let rich = (0..count).max_by_key(|&rich| shares[rich]).unwrap_or(worker);
                let bucket = self.owners.iter().position(|&owner| usize::from(owner) == rich);
                self.owners[bucket.unwrap_or(0)] = worker as u16;
                shares[rich] -= 1;
                shares[worker] += 1;
            }
            while shares[worker] < least {
                let Some(bucket) = self.owners.iter().position(|&owner| owner == NOBODY) else { break };
                self.owners[bucket] = worker as u16;
                shares[worker] += 1;
            }
        }
        for bucket in 0..BUCKETS {
            if self.owners[bucket] == NOBODY {
                // The first of the poorest: so no worker behind the first 1,024 ever owns one.
                let poor = (0..count).min_by_key(|&poor| shares[poor]).unwrap_or(0);
                self.owners[bucket] = poor as u16;
                shares[poor] += 1;
            }
        }
    }
}

impl<F> sealed::Sealed for ByKey<F> {}

impl<T, F: FnMut(&T) -> u64 + Send> Route<T> for ByKey<F> {
    const BOUND: bool = true;

    fn begin(&mut self, _: usize) {}

    #[inline]
    fn choose<L: Load>(&mut self, job: &T, _: &mut [L]) -> usize {
        // Fibonacci hashing: the upper bits of the product depend on all of the key.
        let mixed = (self.key)(job).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bucket = (mixed ^ mixed >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BUCKETS.ilog2());
        usize::from(self.owners[bucket as usize])
    }

    fn run(&self) -> (usize, usize) {
        (0, 1)
    }

    fn sent(&mut self, _: usize) {}

    fn moved(&mut self, _: usize) {}

    fn joined(&mut self, count: usize) {
        self.even_out(count);
    }

    fn left(&mut self, at: usize, count: usize) {
        for owner in self.owners.iter_mut().filter(|owner| **owner != NOBODY) {
            match usize::from(*owner).cmp(&at) {
                core::cmp::Ordering::Less => {}
                core::cmp::Ordering::Equal => *owner = NOBODY,
                core::cmp::Ordering::Greater => *owner -= 1,
            }
        }
        self.even_out(count);
    }
}

debug! { [F] ByKey<[F]>: self }

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    struct Line;

    impl Load for Line {
        fn len(&self) -> usize {
            0
        }

        fn sleeps(&self) -> bool {
            false
        }
    }

    #[test]
    fn buckets_are_shared_out_evenly_beside_more_than_65535_workers() {
        const COUNT: usize = (1 << 16) + BUCKETS;
        let mut route = ByKey::new(|job: &u64| *job);
        let owners = |route: &mut ByKey<_>| {
            (0..20 * BUCKETS as u64).map(|job| route.choose(&job, &mut [Line])).collect::<Vec<_>>()
        };
        Route::<u64>::joined(&mut route, COUNT);
        let before = owners(&mut route);
        let left = before[0];
        Route::<u64>::left(&mut route, left, COUNT - 1);
        let after = owners(&mut route);
        // One a worker, and no key has gone to another but those of the worker that has left.
        assert_eq!([&before, &after].map(|owners| owners.iter().collect::<BTreeSet<_>>().len()), [BUCKETS; 2]);
        let moved_up = |owner: usize| if owner > left { owner - 1 } else { owner };
        assert!(before.iter().zip(&after).all(|(&old, &new)| old == left || moved_up(old) == new));
    }
}
