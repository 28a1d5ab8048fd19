//! What the tests share: the queues under test, threads that are known to wait, items that count their drops.

use corelane::handoff::{Fairness, SynchronousQueue};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A kind of synchronous queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Fair,
    Unfair,
    /// Unfair, with elimination.
    Eliminating,
}

impl Mode {
    pub(crate) fn queue<V: Send>(self) -> SynchronousQueue<V> {
        match self {
            Self::Eliminating => SynchronousQueue::with_elimination(),
            Self::Fair | Self::Unfair => SynchronousQueue::new(self.fairness()),
        }
    }

    pub(crate) fn fairness(self) -> Fairness {
        if self.is_fair() { Fairness::Fair } else { Fairness::Unfair }
    }

    pub(crate) fn is_fair(self) -> bool {
        matches!(self, Self::Fair)
    }
}

/// Short, and longer than any spin.
pub(crate) const T: Duration = Duration::from_millis(20);
/// Far longer than a test, on a busy machine too, and less than the watchdog waits.
pub(crate) const LONG: Duration = Duration::from_secs(50);

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "never came true: {what}");
        std::thread::yield_now();
    }
}

/// Runs a call and says how long it took.
pub(crate) fn timed<R>(call: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = call();
    (result, start.elapsed())
}

/// Makes items, and knows how many exist.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    alive: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl Ledger {
    pub(crate) fn item(&self, value: u64) -> Item {
        self.alive.fetch_add(1, SeqCst);
        Item { value: Box::new(value), ledger: self.clone(), bomb: false }
    }

    /// An item whose drop panics.
    pub(crate) fn bomb(&self) -> Item {
        let mut item = self.item(0);
        item.bomb = true;
        item
    }

    pub(crate) fn alive(&self) -> usize {
        self.alive.load(SeqCst)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(SeqCst)
    }
}

pub(crate) struct Item {
    pub(crate) value: Box<u64>,
    ledger: Ledger,
    bomb: bool,
}

impl Drop for Item {
    fn drop(&mut self) {
        assert!(self.ledger.alive.fetch_sub(1, SeqCst) > 0, "dropped twice");
        self.ledger.dropped.fetch_add(1, SeqCst);
        assert!(!self.bomb, "bomb");
    }
}
