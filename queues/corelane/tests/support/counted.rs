//! Items of which each is dropped once.

use std::sync::{Arc, Mutex};

/// Whether each item that was made has been dropped. A scheduler does not see it.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<bool>>>);

impl Ledger {
    /// Another item with this number.
    pub(crate) fn item(&self, id: usize) -> Item {
        let mut dropped = self.0.lock().unwrap();
        dropped.push(false);
        Item { id, serial: Box::new(dropped.len() - 1), ledger: self.clone() }
    }

    #[track_caller]
    pub(crate) fn assert_all_dropped(&self) {
        let dropped = self.0.lock().unwrap();
        assert!(dropped.iter().all(|&dropped| dropped), "an item was lost");
    }
}

/// An item with a number and memory of its own.
pub(crate) struct Item {
    pub(crate) id: usize,
    serial: Box<usize>,
    ledger: Ledger,
}

impl Drop for Item {
    fn drop(&mut self) {
        // The first failure is the one to report.
        if !std::thread::panicking() {
            let twice = std::mem::replace(&mut self.ledger.0.lock().unwrap()[*self.serial], true);
            assert!(!twice, "item {} was dropped twice", self.id);
        }
    }
}
