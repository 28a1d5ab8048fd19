//! Shared channels, of every design of `corelane::mpmc` and of lanes, by the same traits.

use corelane::error::{ChannelError, Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::{self, Design, NoStats, Options, lanes};
use corelane::wait::{Selectable, Strategy};
use std::fmt::Debug;
use std::time::Duration;

macro_rules! ends {
    ($($end:ident of $handle:ident: $($more:path)? {
        $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+
    })+) => { $(
        #[allow(dead_code, reason = "not every suite calls all")]
        pub(crate) trait $end<T>: Clone + Debug + Selectable + Send $(+ $more)? {
            $(fn $call(&mut self $(, $argument: $type)*) -> $answer;)+
        }

        impl<T: Send, D: Design<T>, W: Strategy> $end<T> for mpmc::$handle<T, D, W>
        where
            Self: Send,
        {
            $(fn $call(&mut self $(, $argument: $type)*) -> $answer {
                Self::$call(self $(, $argument)*)
            })+
        }

        impl<T: Send, W: Strategy> $end<T> for lanes::$handle<T, W>
        where
            Self: Send,
        {
            $(fn $call(&mut self $(, $argument: $type)*) -> $answer {
                Self::$call(self $(, $argument)*)
            })+
        }
    )+ };
}

ends! {
    Tx of Sender: {
        fn try_push(item: T) -> Result<(), TryPushError<T>>;
        fn push(item: T) -> Result<(), Closed<T>>;
        fn push_timeout(item: T, time: Duration) -> Result<(), PushTimeoutError<T>>;
        fn try_push_batch(items: &mut Vec<T>) -> Result<usize, TryPushError<()>>;
        fn push_batch(items: &mut Vec<T>) -> Result<(), Closed>;
        fn push_batch_timeout(items: &mut Vec<T>, time: Duration) -> Result<(), PushTimeoutError<()>>;
        fn close() -> ();
        fn is_closed() -> bool;
        fn len() -> usize;
        fn is_empty() -> bool;
        fn capacity() -> usize;
    }
    Rx of Receiver: IntoIterator<Item = T> {
        fn try_pop() -> Result<T, TryPopError>;
        fn pop() -> Result<T, Closed>;
        fn pop_timeout(time: Duration) -> Result<T, PopTimeoutError>;
        fn try_pop_batch(items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError>;
        fn pop_batch(items: &mut Vec<T>, max: usize) -> Result<usize, Closed>;
        fn pop_batch_timeout(items: &mut Vec<T>, max: usize, time: Duration) -> Result<usize, PopTimeoutError>;
        fn close() -> ();
        fn is_closed() -> bool;
    }
}

pub(crate) type Ends<C, T, W> = (<C as Shared>::Tx<T, W>, <C as Shared>::Rx<T, W>);

#[allow(dead_code, reason = "not every suite asks all")]
pub(crate) trait Shared: Send + Sync + 'static {
    type Tx<T: Send + 'static, W: Strategy + Sync>: Tx<T> + 'static;
    type Rx<T: Send + 'static, W: Strategy + Sync>: Rx<T> + 'static;

    const BOUNDED: bool = true;
    const SLEEPS: bool = true;
    /// Whether the items of a batch are pushed and popped place by place, with others in between.
    const BY_PLACES: bool = false;
    /// Whether each sender has a capacity and an order of its own.
    const LANES: bool = false;

    fn channel<T: Send + 'static, W: Strategy + Sync>(
        capacity: usize,
        options: Options<W>,
    ) -> Result<Ends<Self, T, W>, ChannelError>;
}

macro_rules! shared {
    ($name:ident, $design:ident, [$bound:ident $sleeps:ident $places:ident $stopped:ident]) => {
        impl Shared for mpmc::$design {
            type Tx<T: Send + 'static, W: Strategy + Sync> = mpmc::Sender<T, Self, W>;
            type Rx<T: Send + 'static, W: Strategy + Sync> = mpmc::Receiver<T, Self, W>;

            const BOUNDED: bool = says!($bound);
            const SLEEPS: bool = says!($sleeps);
            const BY_PLACES: bool = says!($places);

            fn channel<T: Send + 'static, W: Strategy + Sync>(
                capacity: usize,
                options: Options<W>,
            ) -> Result<Ends<Self, T, W>, ChannelError> {
                mpmc::any_channel::<T, Self, W, NoStats>(capacity, options)
            }
        }
    };
}
shared_designs!(shared);

pub(crate) struct Lanes;

impl Shared for Lanes {
    type Tx<T: Send + 'static, W: Strategy + Sync> = lanes::Sender<T, W>;
    type Rx<T: Send + 'static, W: Strategy + Sync> = lanes::Receiver<T, W>;

    const LANES: bool = true;

    fn channel<T: Send + 'static, W: Strategy + Sync>(
        capacity: usize,
        options: Options<W>,
    ) -> Result<Ends<Self, T, W>, ChannelError> {
        lanes::channel_with(capacity, options)
    }
}
