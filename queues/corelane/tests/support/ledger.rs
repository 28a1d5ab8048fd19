//! Items whose fate a model checks.

use loom::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What happened to the items of one execution: how often each was dropped. Loom does not see it.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<[AtomicUsize; 8]>);

impl Ledger {
    pub(crate) fn item(&self, id: usize) -> Item {
        let item = Item { id, written: Box::new(UnsafeCell::new(0)), ledger: self.clone() };
        // SAFETY: loom checks that no other thread accesses it now.
        item.written.with_mut(|value| unsafe { *value = id + 100 });
        item
    }

    #[track_caller]
    pub(crate) fn assert_each_dropped_once(&self, items: usize) {
        let drops = self.0.iter().map(|drops| drops.load(Relaxed)).collect::<Vec<_>>();
        for (id, &drops) in drops.iter().enumerate() {
            assert_eq!(drops, usize::from(id < items), "drops of item {id}");
        }
    }
}

/// An item with memory of its own, so that loom sees a thread that reads it before it was handed over.
pub(crate) struct Item {
    id: usize,
    written: Box<UnsafeCell<usize>>,
    ledger: Ledger,
}

impl Item {
    pub(crate) fn read(&self) -> usize {
        // SAFETY: loom checks that no other thread writes it now.
        assert_eq!(self.written.with(|value| unsafe { *value }), self.id + 100);
        self.id
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        // The first failure is the one to report.
        if !std::thread::panicking() {
            self.read();
            self.ledger.0[self.id].fetch_add(1, Relaxed);
        }
    }
}
