//! What the tests are generic over, and what they share.

use corelane::spsc::{self, Design, Options};
use corelane::wait::{Adaptive, Strategy};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A design with its options.
pub(crate) trait Case: Send + Sync + 'static {
    type Design: Carries<Options = Self::Options>;
    type Options: Clone + Send + Sync + 'static;

    fn tuning(capacity: usize) -> Self::Options;
}

/// 4 KiB.
pub(crate) type Page = [u64; 512];

/// An item whose address must be a multiple of 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(256))]
pub(crate) struct Wide(pub(crate) u64);

/// An item that is neither Debug nor Sync.
pub(crate) struct Silent(pub(crate) Cell<u64>);

macro_rules! carries {
    ($($item:ty),+) => {
        /// A design, for all the items of this suite.
        pub(crate) trait Carries: Sized + 'static $(+ Design<$item, Tuning = Self::Options>)+ {
            type Options;
        }

        impl<D: 'static, O> Carries for D where D: $(Design<$item, Tuning = O> +)+ {
            type Options = O;
        }
    };
}
carries!(
    (),
    u8,
    u64,
    [u8; 28],
    [u64; 3],
    [u64; 4],
    [u64; 7],
    [u64; 8],
    Page,
    Wide,
    Box<u64>,
    Arc<u64>,
    String,
    Option<Box<u64>>,
    Silent,
    Tracked
);

pub(crate) type Tx<T, C, W = Adaptive> = spsc::Producer<T, <C as Case>::Design, W>;
pub(crate) type Rx<T, C, W = Adaptive> = spsc::Consumer<T, <C as Case>::Design, W>;

/// The smallest ones, those around the first release lag, one that is no power of two, one of many blocks.
pub(crate) const CAPACITIES: [usize; 8] = [1, 2, 3, 63, 64, 65, 100, 2000];
/// Where indices start: at 0, and so that they wrap around soon.
pub(crate) const STARTS: [usize; 2] = [0, usize::MAX - 3];

/// A queue's options with everything that a test may want to set.
pub(crate) fn options<C: Case, W: Strategy>(capacity: usize, wait: W) -> Options<C::Options, W> {
    Options::new().tuning(C::tuning(capacity)).wait(wait)
}

#[allow(clippy::type_complexity, reason = "the pair of handles is the point")]
pub(crate) fn queue_with<T: Send, C: Case, W: Strategy>(
    capacity: usize,
    options: Options<C::Options, W>,
) -> (Tx<T, C, W>, Rx<T, C, W>)
where
    C::Design: Design<T, Tuning = C::Options>,
{
    spsc::channel_with(capacity, options).expect("a good capacity and good options")
}

pub(crate) fn queue_from<T: Send, C: Case>(capacity: usize, start: usize) -> (Tx<T, C>, Rx<T, C>)
where
    C::Design: Design<T, Tuning = C::Options>,
{
    queue_with::<T, C, _>(capacity, options::<C, _>(capacity, Adaptive).start_at(start))
}

pub(crate) fn queue<T: Send, C: Case>(capacity: usize) -> (Tx<T, C>, Rx<T, C>)
where
    C::Design: Design<T, Tuning = C::Options>,
{
    queue_from::<T, C>(capacity, 0)
}

/// Pushes until the queue is full; returns how many.
pub(crate) fn fill<D: Design<u64>, W>(tx: &mut spsc::Producer<u64, D, W>, from: u64) -> u64 {
    (from..).take_while(|&item| tx.try_push(item).is_ok()).count() as u64
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
            1..4 => self.spin(500),
            _ => {}
        }
    }

    /// Less than so many pause instructions.
    pub(crate) fn spin(&mut self, most: usize) {
        for _ in 0..self.below(most) {
            std::hint::spin_loop();
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
