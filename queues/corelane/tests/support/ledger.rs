//! Items whose fate every model checks.

use loom::cell::UnsafeCell;
use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    /// How often each item of this execution was dropped. Loom runs all threads of a model on one, and does not see it.
    static DROPS: RefCell<BTreeMap<usize, usize>> = const { RefCell::new(BTreeMap::new()) };
}

/// An item with memory of its own, so that loom sees a thread that reads it before it was handed over.
pub(crate) struct Item {
    id: usize,
    written: Box<UnsafeCell<usize>>,
}

impl Item {
    /// An item with a number that no other of the execution has.
    pub(crate) fn new(id: usize) -> Self {
        assert_eq!(DROPS.with_borrow_mut(|drops| drops.insert(id, 0)), None, "item {id} is made twice");
        let item = Self { id, written: Box::new(UnsafeCell::new(0)) };
        // SAFETY: loom checks that no other thread accesses it now.
        item.written.with_mut(|value| unsafe { *value = id + 100 });
        item
    }

    pub(crate) fn read(&self) -> usize {
        // SAFETY: loom checks that no other thread writes it now.
        assert_eq!(self.written.with(|value| unsafe { *value }), self.id + 100);
        self.id
    }

    /// Before an execution.
    pub(super) fn forget_all() {
        DROPS.take();
    }

    /// After every execution; a model that keeps an end which must keep no item asks before that goes.
    #[track_caller]
    pub(crate) fn assert_each_dropped_once() {
        DROPS.with_borrow(|drops| assert!(drops.values().all(|&drops| drops == 1), "drops of each item: {drops:?}"));
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        // The first failure is the one to report.
        if !std::thread::panicking() {
            self.read();
            DROPS.with_borrow_mut(|drops| *drops.get_mut(&self.id).expect("it was made") += 1);
        }
    }
}
