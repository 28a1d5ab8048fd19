//! What the tests are generic over, and what they share.

use corelane::mpmc::{self, Design, NoStats, Options, Queue};
use corelane::wait::{Adaptive, Strategy};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A design under test.
pub(crate) trait Case: 'static {
    type Design: Carries;
    const BOUNDED: bool;
    /// Whether a thread that waits for long sleeps.
    const SLEEPS: bool;
}

/// 4 KiB.
pub(crate) type Page = [u64; 512];

/// An item whose address must be a multiple of 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(128))]
pub(crate) struct Wide(pub(crate) u64);

macro_rules! carries {
    ($($item:ty),+) => {
        /// A design, for all the items of this suite.
        pub(crate) trait Carries: Sized + 'static $(+ Design<$item>)+ {}

        impl<D: 'static> Carries for D where D: $(Design<$item> +)+ {}
    };
}
carries!(
    (),
    u8,
    u64,
    usize,
    [u8; 3],
    [u64; 3],
    [u64; 7],
    [u64; 8],
    Page,
    Wide,
    Box<u64>,
    Option<Box<u64>>,
    String,
    Cell<u64>,
    Tracked
);

pub(crate) type Under<C, T, W = Adaptive, S = NoStats> = Queue<T, <C as Case>::Design, W, S>;

/// Small ones, one that is no power of two, some of many lines.
pub(crate) const CAPACITIES: [usize; 7] = [1, 2, 3, 7, 8, 100, 1024];
/// Where positions start: at 0, and so that they wrap around soon.
pub(crate) const STARTS: [usize; 2] = [0, usize::MAX - 3];

pub(crate) fn queue_from<C: Case, T: Send>(capacity: usize, start: usize) -> Under<C, T>
where
    C::Design: Design<T>,
{
    mpmc::queue_with(capacity, Options::new().start_at(start)).expect("a good capacity")
}

pub(crate) fn queue<C: Case, T: Send>(capacity: usize) -> Under<C, T>
where
    C::Design: Design<T>,
{
    queue_from::<C, T>(capacity, usize::MAX - 3)
}

pub(crate) fn waiting<C: Case, T: Send, W: Strategy>(capacity: usize, wait: W) -> Under<C, T, W>
where
    C::Design: Design<T>,
{
    mpmc::queue_with(capacity, Options::new().wait(wait)).expect("a good capacity")
}

/// Short, and longer than any spin.
pub(crate) const NAP: Duration = Duration::from_millis(5);
/// Far longer than a test.
pub(crate) const LONG: Duration = Duration::from_secs(100);

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "never came true: {what}");
        std::thread::yield_now();
    }
}

/// Marsaglia's xorshift: the same tests every time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % end as u64) as usize
    }

    /// Usually nothing, sometimes some hundred pauses, rarely a time slice.
    pub(crate) fn pause(&mut self) {
        match self.below(64) {
            0 => std::thread::yield_now(),
            1..4 => (0..self.below(500)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }
}

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

    pub(crate) fn drops(&self) -> Vec<u32> {
        self.0.iter().map(|drops| drops.load(Relaxed)).collect()
    }

    #[track_caller]
    pub(crate) fn assert_each_dropped_once(&self) {
        assert!(self.drops().iter().all(|&drops| drops == 1), "{:?}", self.drops());
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
