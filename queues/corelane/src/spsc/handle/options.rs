//! How a queue is made.

use super::{Consumer, Producer};
use crate::bound::Bounded;
use crate::end::Control;
use crate::error::ChannelError;
use crate::spsc::design::{Design, Request};
use crate::spsc::stats::{NoStats, Recorder};
use crate::wait::{Adaptive, Strategy};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;

/// How a queue is made: the design's own options, the wait strategy, what it counts.
///
/// ```
/// use corelane::spsc::{Counting, Options, bqueue, lane};
/// use corelane::wait::Spin;
///
/// // What is not set is as in `channel`, for every design.
/// let (_producer, _consumer) = bqueue::channel_with::<u32, _, _>(64, Options::new().wait(Spin)).unwrap();
/// let options = Options::new().tuning(lane::Tuning::new().compact()).wait(Spin).stats::<Counting>();
/// let (mut producer, _consumer) = lane::channel_with(64, options).unwrap();
/// producer.push(7).unwrap();
/// assert_eq!(producer.stats().pushes, 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options<O = crate::spsc::lane::Tuning, W = Adaptive, S = NoStats> {
    pub(in crate::spsc) tuning: O,
    pub(in crate::spsc) wait: W,
    pub(in crate::spsc) compact: bool,
    /// Where the indices start.
    pub(in crate::spsc) start: usize,
    stats: PhantomData<S>,
}

impl<O: Default> Options<O> {
    /// The defaults, of whichever design the queue will be.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<O, W, S> Options<O, W, S> {
    /// The design's own options, such as batch sizes: the defaults unless they are set.
    pub fn tuning(mut self, tuning: O) -> Self {
        self.tuning = tuning;
        self
    }

    /// How both ends wait.
    pub fn wait<V: Strategy>(self, wait: V) -> Options<O, V, S> {
        Options { tuning: self.tuning, wait, compact: self.compact, start: self.start, stats: self.stats }
    }

    /// What both ends count: [`Counting`](crate::spsc::Counting) makes them offer `stats()`.
    pub fn stats<R: Recorder>(self) -> Options<O, W, R> {
        Options { tuning: self.tuning, wait: self.wait, compact: self.compact, start: self.start, stats: PhantomData }
    }

    /// What [`lane::Tuning::compact`](crate::spsc::lane::Tuning::compact) asks of a lane, where the design may be any.
    pub(crate) fn compact(mut self) -> Self {
        self.compact = true;
        self
    }

    /// Lets the indices start here instead of at 0, so that a test reaches their wrap-around.
    #[doc(hidden)]
    pub fn start_at(mut self, index: usize) -> Self {
        self.start = index;
        self
    }
}

/// Makes a queue of any design with a bound, named by the type parameter `D`.
///
/// # Errors
/// A capacity of 0 or beyond what the indices hold, options that contradict it, or no memory.
///
/// ```
/// use corelane::Bounded;
/// use corelane::spsc::{self, Design, Lamport, Lane, NoStats, Options};
/// use corelane::wait::Spin;
///
/// fn first<D: Design<u32> + Bounded>() -> u32 {
///     let options = Options::new().wait(Spin);
///     let (mut producer, mut consumer) = spsc::channel_with::<u32, D, _, NoStats>(8, options).unwrap();
///     producer.push(7).unwrap();
///     consumer.pop().unwrap()
/// }
/// assert_eq!(first::<Lane>(), first::<Lamport>());
/// ```
#[expect(clippy::type_complexity, reason = "a pair of handles is what the reader looks for")]
pub fn channel_with<T: Send, D: Design<T> + Bounded, W: Strategy, S: Recorder>(
    capacity: usize,
    options: Options<D::Tuning, W, S>,
) -> Result<(Producer<T, D, W, S>, Consumer<T, D, W, S>), ChannelError> {
    any_channel(capacity, options)
}

/// As [`channel_with`], for what works over all designs: one without a bound takes no notice of the capacity.
///
/// # Errors
/// As [`channel_with`].
#[doc(hidden)]
#[expect(clippy::type_complexity, reason = "a pair of handles is what the reader looks for")]
pub fn any_channel<T: Send, D: Design<T>, W: Strategy, S: Recorder>(
    capacity: usize,
    options: Options<D::Tuning, W, S>,
) -> Result<(Producer<T, D, W, S>, Consumer<T, D, W, S>), ChannelError> {
    if capacity == 0 {
        return Err(ChannelError::ZeroCapacity);
    }
    // Differences of positions are read as signed numbers.
    if capacity > isize::MAX as usize / 2 {
        return Err(ChannelError::TooLarge);
    }
    let control = Control::new();
    let request =
        Request { capacity, compact: options.compact, tuning: &options.tuning, control, start: options.start };
    // Before there is a queue: the clone of a user's strategy may panic.
    let wait = options.wait.clone();
    let (producer, consumer) = D::create(request)?;
    // Only now: `create` has refused what makes no sense.
    let lag = D::release_lag(capacity, &options.tuning);
    Ok((
        Producer { raw: ManuallyDrop::new(producer), wait, lag, stats: S::default(), one_thread: PhantomData },
        Consumer { raw: ManuallyDrop::new(consumer), wait: options.wait, stats: S::default(), one_thread: PhantomData },
    ))
}
