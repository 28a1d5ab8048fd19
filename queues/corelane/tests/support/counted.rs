//! Items of which each is dropped once.

use std::cell::RefCell;

thread_local! {
    /// Whether each item that this schedule has made has been dropped. Its threads are one, and a scheduler does not
    /// see it.
    static DROPPED: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
}

/// Before a scenario.
pub(crate) fn forget_all() {
    DROPPED.take();
}

/// After a scenario.
#[track_caller]
pub(crate) fn assert_all_dropped() {
    DROPPED.with_borrow(|dropped| assert!(dropped.iter().all(|&dropped| dropped), "an item was lost"));
}

/// An item with a number and memory of its own.
pub(crate) struct Item {
    pub(crate) id: usize,
    serial: Box<usize>,
}

impl Item {
    /// Another item with this number.
    pub(crate) fn new(id: usize) -> Self {
        let serial = DROPPED.with_borrow_mut(|dropped| {
            dropped.push(false);
            dropped.len() - 1
        });
        Self { id, serial: Box::new(serial) }
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        // The first failure is the one to report.
        if !std::thread::panicking() {
            let twice = DROPPED.with_borrow_mut(|dropped| std::mem::replace(&mut dropped[*self.serial], true));
            assert!(!twice, "item {} was dropped twice", self.id);
        }
    }
}
