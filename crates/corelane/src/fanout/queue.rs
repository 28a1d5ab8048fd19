//! What a fan-out needs of the queue to one worker: a sender that never sleeps by itself, and a receiver.

use crate::error::{ChannelError, Drained, PopError, PopTimeoutError, PushError};
#[cfg(feature = "async")]
use crate::spsc::task::Awaited;
use crate::spsc::{self, Consumer, Design, Options, Producer};
use crate::wait::{Parker, Strategy, Waitable};
use core::fmt::Debug;
use std::time::Duration;
use std::vec::Vec;

/// A kind of queue between the dispatcher and one worker, as a type parameter: every [`Design`] is one, and [`Mpmc`](super::Mpmc) of one of
/// [`mpmc`](crate::mpmc).
///
/// Sealed: the accounting of jobs rests on what the implementations promise.
pub trait Queue<T>: sealed::Sealed<T> + Sized + 'static {
    /// The queue's own options.
    type Tuning: Clone + Debug + Default;
    #[doc(hidden)]
    type Sender<W: Strategy>: Sender<T>;
    #[doc(hidden)]
    type Receiver<W: Strategy>: Receiver<T>;

    #[doc(hidden)]
    fn create<W: Strategy>(
        capacity: usize,
        tuning: Self::Tuning,
        wait: W,
        dispatcher: &Parker,
    ) -> Result<Ends<T, Self, W>, ChannelError>;
}

/// The two ends of a queue.
pub(super) type Ends<T, Q, W> = (<Q as Queue<T>>::Sender<W>, <Q as Queue<T>>::Receiver<W>);

pub(super) mod sealed {
    pub trait Sealed<T> {}

    impl<T, D: crate::spsc::Design<T>> Sealed<T> for D {}
}

/// Where no task waits there is nothing to it.
#[cfg(not(feature = "async"))]
pub(crate) trait Awaited {}

#[cfg(not(feature = "async"))]
impl<E> Awaited for E {}

/// The dispatcher's end. An item that it has pushed is there for the receiver; none is held back.
///
/// It never says Closed: the receiver closes nothing while there is a dispatcher, see [`Seat`](super::seat::Seat).
#[doc(hidden)]
#[allow(private_bounds, reason = "nobody else implements it, or calls it")]
pub trait Sender<T>: Waitable + Awaited + Send {
    fn try_push(&mut self, item: T) -> Result<(), PushError<T>>;

    /// Pushes items until the iterator ends or there is no room; with one synchronisation a batch, where the queue can.
    fn push_iter(&mut self, items: &mut impl Iterator<Item = T>) -> usize;

    fn push_slice(&mut self, items: &[T]) -> usize
    where
        T: Copy;

    /// How many items are inside: an upper bound.
    fn len(&mut self) -> usize;

    /// Whether the receiver's thread sleeps, or its task waits, as a hint.
    fn receiver_sleeps(&self) -> bool;

    fn capacity(&self) -> usize;

    fn close(&mut self);
}

/// The worker's end.
#[doc(hidden)]
#[allow(private_bounds, reason = "nobody else implements it, or calls it")]
pub trait Receiver<T>: Awaited + Send {
    fn try_pop(&mut self) -> Result<T, PopError>;

    fn pop(&mut self) -> Result<T, Drained>;

    fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopTimeoutError>;

    fn pop_into(&mut self, items: &mut Vec<T>, max: usize) -> usize;

    fn drain(&mut self, max: usize, each: impl FnMut(T)) -> usize;

    fn wait_for_item(&mut self) -> Result<(), Drained>;

    /// How many items are inside: a lower bound.
    fn len(&mut self) -> usize;

    fn is_closed(&self) -> bool;
}

impl<T: Send, D: Design<T>> Queue<T> for D {
    type Tuning = <D as Design<T>>::Tuning;
    type Sender<W: Strategy> = Producer<T, D, W>;
    type Receiver<W: Strategy> = Consumer<T, D, W>;

    fn create<W: Strategy>(
        capacity: usize,
        tuning: Self::Tuning,
        wait: W,
        dispatcher: &Parker,
    ) -> Result<Ends<T, Self, W>, ChannelError> {
        // They share the caches of the dispatcher's CPU.
        spsc::channel_with(capacity, Options::new().tuning(tuning).wait(wait).producer_parker(dispatcher).compact())
    }
}

impl<T: Send, D: Design<T>, W: Strategy> Sender<T> for Producer<T, D, W> {
    #[inline(always)]
    fn try_push(&mut self, item: T) -> Result<(), PushError<T>> {
        self.try_push(item)
    }

    #[inline]
    fn push_iter(&mut self, items: &mut impl Iterator<Item = T>) -> usize {
        self.push_iter(items)
    }

    #[inline(always)]
    fn push_slice(&mut self, items: &[T]) -> usize
    where
        T: Copy,
    {
        self.push_slice(items)
    }

    fn len(&mut self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn receiver_sleeps(&self) -> bool {
        self.consumer_sleeps()
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn close(&mut self) {
        self.close();
    }
}

impl<T: Send, D: Design<T>, W: Strategy> Receiver<T> for Consumer<T, D, W> {
    #[inline(always)]
    fn try_pop(&mut self) -> Result<T, PopError> {
        self.try_pop()
    }

    #[inline(always)]
    fn pop(&mut self) -> Result<T, Drained> {
        self.pop()
    }

    fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopTimeoutError> {
        self.pop_timeout(timeout)
    }

    #[inline]
    fn pop_into(&mut self, items: &mut Vec<T>, max: usize) -> usize {
        self.pop_into(items, max)
    }

    #[inline]
    fn drain(&mut self, max: usize, each: impl FnMut(T)) -> usize {
        self.drain(max, each)
    }

    #[inline]
    fn wait_for_item(&mut self) -> Result<(), Drained> {
        self.wait_for_item()
    }

    fn len(&mut self) -> usize {
        self.len()
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}
