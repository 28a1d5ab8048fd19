//! Items of which each is dropped once, in the place of `counted.rs` on real threads. Each thread counts for itself,
//! because a shared count would order accesses that a queue should order.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The items that a thread has made and not dropped: how many, and the sum of what their numbers are mixed to.
struct Tally(Cell<[u64; 2]>);

/// The tallies of threads that are over.
static OVER: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

thread_local! {
    static TALLY: Tally = const { Tally(Cell::new([0; 2])) };
}

impl Tally {
    fn add(&self, items: u64, id: usize) {
        let [count, sum] = self.0.get();
        let mixed = (id as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0.set([count.wrapping_add(items), sum.wrapping_add(items.wrapping_mul(mixed ^ mixed >> 29))]);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        for (sum, own) in OVER.iter().zip(self.0.take()) {
            sum.fetch_add(own, Relaxed);
        }
    }
}

/// Before a scenario. There is one at a time.
pub(crate) fn forget_all() {
    TALLY.with(|tally| tally.0.take());
    OVER.iter().for_each(|sum| sum.store(0, Relaxed));
}

/// After a scenario, once the threads are joined that had items.
#[track_caller]
pub(crate) fn assert_all_dropped() {
    let own = TALLY.with(|tally| tally.0.get());
    let left: Vec<_> = OVER.iter().zip(own).map(|(over, own)| over.load(Relaxed).wrapping_add(own)).collect();
    assert_eq!(left, [0; 2], "an item was lost, or dropped twice");
}

/// An item with a number and memory of its own.
pub(crate) struct Item {
    pub(crate) id: usize,
    own: Box<usize>,
}

impl Item {
    /// Another item with this number.
    pub(crate) fn new(id: usize) -> Self {
        TALLY.with(|tally| tally.add(1, id));
        Self { id, own: Box::new(id) }
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        // The first failure is the one to report.
        if !std::thread::panicking() {
            assert_eq!(self.id, *self.own, "the item is another's");
            TALLY.with(|tally| tally.add(u64::MAX, self.id));
        }
    }
}
