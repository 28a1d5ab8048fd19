//! What the tests are generic over, and what they share.

pub(crate) use crate::random::Random;
pub(crate) use crate::tracked::{Ledger, Tracked};
use corelane::spsc::{self, Design, Options};
use corelane::wait::{Adaptive, Strategy};
use std::cell::Cell;
use std::sync::Arc;

/// A design with its options.
pub(crate) trait Case: Send + Sync + 'static {
    type Design: Carries<Options = Self::Options>;
    type Options: Clone + Default + Send + Sync + 'static;

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
pub(crate) const CAPACITIES: [usize; 8] = [1, 2, 3, 63, 64, 65, 100, LARGE];
/// Many blocks; an interpreter takes some for many.
pub(crate) const LARGE: usize = if cfg!(miri) { 200 } else { 2000 };
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
    spsc::any_channel(capacity, options).expect("a good capacity and good options")
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
