//! Items whose drops are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How often each tracked item was dropped.
#[derive(Clone)]
pub(crate) struct Ledger(Arc<Vec<AtomicU32>>);

impl Ledger {
    pub(crate) fn new(items: usize) -> Self {
        Self(Arc::new((0..items).map(|_| AtomicU32::new(0)).collect()))
    }

    pub(crate) fn item(&self, id: usize) -> Tracked {
        Tracked { id, explosive: false, ledger: self.clone() }
    }

    /// An item whose drop panics.
    pub(crate) fn explosive(&self, id: usize) -> Tracked {
        Tracked { id, explosive: true, ledger: self.clone() }
    }

    pub(crate) fn drops(&self, id: usize) -> u32 {
        self.0[id].load(Relaxed)
    }

    /// The first so many items were dropped once, the others never.
    #[track_caller]
    pub(crate) fn assert_dropped_once(&self, items: usize) {
        for id in 0..self.0.len() {
            assert_eq!(self.drops(id), u32::from(id < items), "drops of item {id}, of {items}");
        }
    }
}

/// An item that tells its ledger when it is dropped.
pub(crate) struct Tracked {
    pub(crate) id: usize,
    explosive: bool,
    ledger: Ledger,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.ledger.0[self.id].fetch_add(1, Relaxed);
        assert!(!self.explosive, "a drop that panics");
    }
}
