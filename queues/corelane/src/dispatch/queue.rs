//! What a fan-out needs of the queue to one worker: a sender that never sleeps by itself, and a receiver.

use crate::end::wait::Look;
use crate::error::{ChannelError, Closed, PopTimeoutError, TryPopError, TryPushError};
use crate::spsc::{self, Consumer, Design, Options, Producer};
use crate::start::START;
use crate::wait::{Selectable, Strategy};
use core::fmt::Debug;
use std::time::Duration;
use std::vec::Vec;

/// A kind of queue between the dispatcher and one worker, as a type parameter: every [`Design`] is one, and
/// [`Mpmc`](super::Mpmc) of one of [`mpmc`](crate::mpmc).
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
    fn create<W: Strategy>(capacity: usize, tuning: Self::Tuning, wait: W) -> Result<Ends<T, Self, W>, ChannelError>;
}

/// The two ends of a queue.
pub(super) type Ends<T, Q, W> = (<Q as Queue<T>>::Sender<W>, <Q as Queue<T>>::Receiver<W>);

pub(super) mod sealed {
    pub trait Sealed<T> {}

    impl<T, D: crate::spsc::Design<T>> Sealed<T> for D {}
}

/// The dispatcher's end. An item that it has pushed is there for the receiver; none is held back.
///
/// It never says Closed: the receiver closes nothing while there is a dispatcher, see [`Seat`](super::seat::Seat).
#[doc(hidden)]
#[allow(private_bounds, reason = "implemented and called by this crate only")]
pub trait Sender<T>: Selectable + Look + Send {
    fn try_push(&mut self, item: T) -> Result<(), TryPushError<T>>;

    /// Pushes as many of the `most` items at `from` as there is room for, with one synchronisation a batch where the
    /// queue can, and says how many.
    ///
    /// # Safety
    /// There are so many, and those that are pushed are the queue's.
    unsafe fn push_from(&mut self, from: *const T, most: usize) -> usize;

    /// How many items are inside: an upper bound.
    fn len(&self) -> usize;

    /// Whether the receiver's thread sleeps, or its task waits, as a hint.
    fn receiver_sleeps(&self) -> bool;

    fn capacity(&self) -> usize;

    fn close(&mut self);
}

/// The worker's end.
#[doc(hidden)]
#[allow(private_bounds, reason = "implemented and called by this crate only")]
pub trait Receiver<T>: Selectable + Look + Send {
    fn try_pop(&mut self) -> Result<T, TryPopError>;

    fn pop(&mut self) -> Result<T, Closed>;

    fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopTimeoutError>;

    /// Pops as many as there are, up to `max`.
    fn pop_some(&mut self, items: &mut Vec<T>, max: usize) -> usize;

    /// As [`pop_some`](Self::pop_some), one by one.
    fn give_some(&mut self, max: usize, each: &mut impl FnMut(T)) -> usize;

    fn wait_for_item(&mut self) -> Result<(), Closed>;

    /// How many items are inside: a lower bound.
    fn len(&self) -> usize;

    fn is_closed(&self) -> bool;
}

impl<T: Send, D: Design<T>> Queue<T> for D {
    type Tuning = <D as Design<T>>::Tuning;
    type Sender<W: Strategy> = Producer<T, D, W>;
    type Receiver<W: Strategy> = Consumer<T, D, W>;

    fn create<W: Strategy>(capacity: usize, tuning: Self::Tuning, wait: W) -> Result<Ends<T, Self, W>, ChannelError> {
        // They share the caches of the dispatcher's CPU.
        spsc::any_channel(capacity, Options::new().tuning(tuning).wait(wait).compact().start_at(START))
    }
}

impl<T: Send, D: Design<T>, W: Strategy> Sender<T> for Producer<T, D, W> {
    #[inline(always)]
    fn try_push(&mut self, item: T) -> Result<(), TryPushError<T>> {
        self.try_push(item)
    }

    #[inline]
    unsafe fn push_from(&mut self, from: *const T, most: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.push_from(from, most) }.unwrap_or(0)
    }

    fn len(&self) -> usize {
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
    fn try_pop(&mut self) -> Result<T, TryPopError> {
        self.try_pop()
    }

    #[inline(always)]
    fn pop(&mut self) -> Result<T, Closed> {
        self.pop()
    }

    fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopTimeoutError> {
        self.pop_timeout(timeout)
    }

    #[inline]
    fn pop_some(&mut self, items: &mut Vec<T>, max: usize) -> usize {
        self.pop_some(items, max)
    }

    #[inline]
    fn give_some(&mut self, max: usize, each: &mut impl FnMut(T)) -> usize {
        self.give_some(max, each)
    }

    #[inline]
    fn wait_for_item(&mut self) -> Result<(), Closed> {
        self.wait_for_item()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}
