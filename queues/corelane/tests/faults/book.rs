//! What became of each item of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// Items are numbered as they are made. Each is received once, or was still its producer's when that panicked; and each
/// is dropped once.
#[derive(Clone, Debug)]
pub(crate) struct Book(Arc<Pages>);

#[derive(Debug)]
struct Pages {
    made: AtomicUsize,
    received: Vec<AtomicU32>,
    dropped: Vec<AtomicU32>,
}

impl Book {
    pub(crate) fn new(most: usize) -> Self {
        let zeros = || (0..most).map(|_| AtomicU32::new(0)).collect();
        Self(Arc::new(Pages { made: AtomicUsize::new(0), received: zeros(), dropped: zeros() }))
    }

    pub(crate) fn item(&self) -> Item {
        Item { id: self.0.made.fetch_add(1, Relaxed), book: self.clone() }
    }

    /// How many items there were so far.
    pub(crate) fn made(&self) -> usize {
        self.0.made.load(Relaxed)
    }

    #[track_caller]
    fn receive(&self, id: usize) {
        assert_eq!(self.0.received[id].fetch_add(1, Relaxed), 0, "item {id} has come twice");
    }

    pub(crate) fn received(&self, id: usize) -> bool {
        self.0.received[id].load(Relaxed) == 1
    }

    /// The items that no thread received.
    pub(crate) fn missing(&self) -> Vec<usize> {
        (0..self.made()).filter(|&id| !self.received(id)).collect()
    }

    #[track_caller]
    pub(crate) fn assert_each_dropped_once(&self) {
        for id in 0..self.made() {
            assert_eq!(self.0.dropped[id].load(Relaxed), 1, "drops of item {id} of {}", self.made());
        }
    }
}

/// An item whose drop is the user's code.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) id: usize,
    book: Book,
}

impl Item {
    /// Notes that the item has come.
    #[track_caller]
    pub(crate) fn note(&self) {
        self.book.receive(self.id);
    }

    /// Notes that the item has come, and drops it.
    #[track_caller]
    pub(crate) fn receive(self) {
        self.note();
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        self.book.0.dropped[self.id].fetch_add(1, Relaxed);
        crate::fuse::tick();
    }
}
