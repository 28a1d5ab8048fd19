//! What the tests are generic over, and what they share.

pub(crate) use crate::random::Random;
pub(crate) use crate::tracked::{Ledger, Tracked};
use corelane::mpmc::{self, Design, NoStats, Options, Queue};
use corelane::wait::{Adaptive, Strategy};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A design under test.
pub(crate) trait Case: 'static {
    type Design: Carries;
    const BOUNDED: bool;
    /// Whether a thread that waits for long sleeps.
    const SLEEPS: bool;
    /// Whether an item gets a place first and its turn later: so a thread in the middle of a call takes room of its
    /// own, and `Full` may come early; and a batch is several steps.
    const BY_PLACES: bool = false;
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
    [u64; 0],
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
pub(crate) const CAPACITIES: [usize; 7] = [1, 2, 3, 7, 8, 100, if cfg!(miri) { 128 } else { 1024 }];
/// Where positions start: at 0, and so that they wrap around soon.
pub(crate) const STARTS: [usize; 2] = [0, usize::MAX - 3];

pub(crate) fn queue_from<C: Case, T: Send>(capacity: usize, start: usize) -> Under<C, T>
where
    C::Design: Design<T>,
{
    mpmc::any_queue(capacity, Options::new().start_at(start)).expect("a good capacity")
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
    mpmc::any_queue(capacity, Options::new().wait(wait)).expect("a good capacity")
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
