//! What each end offers to a select, and to the one loop that waits.

#[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
use super::poll::Interest;
use super::sleeper::Sleeper;
#[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
use std::os::fd::RawFd;

/// What a [`Select`](super::Select) can wait for.
///
/// | end | is ready when |
/// |---|---|
/// | [`spsc::Consumer`], [`stream::Consumer`] | there is an item |
/// | [`spsc::Producer`](crate::spsc::Producer), [`stream::Producer`](crate::spsc::stream::Producer) | there is room |
/// | [`mpmc::Receiver`](crate::mpmc::Receiver), [`Queue::pop_side`](crate::mpmc::Queue::pop_side) | there is an item |
/// | [`mpmc::Sender`](crate::mpmc::Sender), [`Queue::push_side`](crate::mpmc::Queue::push_side) | there is room |
/// | [`mpmc::lanes::Receiver`](crate::mpmc::lanes::Receiver) | there is an item in any lane |
/// | [`mpmc::lanes::Sender`](crate::mpmc::lanes::Sender) | there is room in its lane |
/// | [`dispatch::Worker`](crate::dispatch::Worker) | there is a job |
/// | [`dispatch::Dispatcher`] | a job would find room, or a worker has panicked or all have left |
/// | [`dispatch::Collector`](crate::dispatch::Collector) | there is a result, or a producer has left |
/// | [`handoff::TakeTicket`], [`PutTicket`] | its request is decided |
/// | [`handoff::CancelToken`](crate::handoff::CancelToken) | it is cancelled |
/// | [`Readable`](super::Readable), [`Writable`](super::Writable) (Linux) | a call on the descriptor would not block |
///
/// An end is also ready when its queue is closed: the next call on it says so, and each wait after that names it again,
/// until it is [removed](super::Select::remove). A ticket that was followed up is ready no more. A `&mut` of an end is
/// an end.
///
/// Sealed: a wait rests on what the ends promise each other.
///
/// ```compile_fail,E0277
/// struct Mine;
///
/// impl corelane::wait::Selectable for Mine {}
/// ```
///
/// [`spsc::Consumer`]: crate::spsc::Consumer
/// [`stream::Consumer`]: crate::spsc::stream::Consumer
/// [`dispatch::Dispatcher`]: crate::dispatch::Dispatcher
/// [`handoff::TakeTicket`]: crate::handoff::TakeTicket
/// [`PutTicket`]: crate::handoff::PutTicket
#[diagnostic::on_unimplemented(
    message = "a select cannot wait for `{Self}`",
    note = "an end is added as itself or as `&mut end`; a file descriptor in `Readable` or `Writable`; a queue that \
            threads share by reference as its `pop_side()` or `push_side()`"
)]
pub trait Selectable: sealed::Sealed {
    /// Whether the end is ready; a producer, with so many free slots.
    #[doc(hidden)]
    fn ready(&mut self, room: usize) -> bool;

    /// Raises the flag, for so many free slots, and says which thread sleeps.
    #[doc(hidden)]
    fn arm(&mut self, room: usize, sleeper: Sleeper);

    /// Takes the flag down, if it is this sleeper's.
    #[doc(hidden)]
    fn disarm(&mut self, sleeper: Sleeper);

    /// The `room` that the other two are given, where a caller asks for so much.
    #[doc(hidden)]
    fn needs(&self, amount: usize) -> usize {
        amount
    }

    /// For what `poll` knows about.
    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    #[doc(hidden)]
    fn descriptor(&self) -> Option<(RawFd, Interest)> {
        None
    }
}

/// Makes a select wait for an end: by its [`Look`](crate::end::wait::Look), or as for a part of it that is one.
macro_rules! selectable {
    ([$($generics:tt)*] $end:ty) => {
        impl<$($generics)*> $crate::wait::selectable::sealed::Sealed for $end {}

        impl<$($generics)*> $crate::wait::Selectable for $end {
            fn ready(&mut self, room: usize) -> bool {
                $crate::end::wait::look(self, room).is_some()
            }

            fn arm(&mut self, room: usize, sleeper: $crate::wait::Sleeper) {
                $crate::end::wait::Look::wake_for(self, room);
                $crate::end::wait::Look::shared(self).arm(sleeper);
            }

            fn disarm(&mut self, _: $crate::wait::Sleeper) {
                $crate::end::wait::Look::shared(self).disarm();
            }

            #[track_caller]
            fn needs(&self, amount: usize) -> usize {
                $crate::end::wait::Look::room_of(self, amount)
            }
        }
    };
    ([$($generics:tt)*] $end:ty, $part:ident) => {
        impl<$($generics)*> $crate::wait::selectable::sealed::Sealed for $end {}

        impl<$($generics)*> $crate::wait::Selectable for $end {
            fn ready(&mut self, room: usize) -> bool {
                self.$part.ready(room)
            }

            fn arm(&mut self, room: usize, sleeper: $crate::wait::Sleeper) {
                self.$part.arm(room, sleeper);
            }

            fn disarm(&mut self, sleeper: $crate::wait::Sleeper) {
                self.$part.disarm(sleeper);
            }

            #[track_caller]
            fn needs(&self, amount: usize) -> usize {
                self.$part.needs(amount)
            }
        }
    };
}
pub(crate) use selectable;

pub(crate) mod sealed {
    pub trait Sealed {}

    impl<E: Sealed + ?Sized> Sealed for &mut E {}
}

impl<E: Selectable + ?Sized> Selectable for &mut E {
    fn ready(&mut self, room: usize) -> bool {
        (**self).ready(room)
    }

    fn arm(&mut self, room: usize, sleeper: Sleeper) {
        (**self).arm(room, sleeper);
    }

    fn disarm(&mut self, sleeper: Sleeper) {
        (**self).disarm(sleeper);
    }

    #[track_caller]
    fn needs(&self, amount: usize) -> usize {
        (**self).needs(amount)
    }

    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    fn descriptor(&self) -> Option<(RawFd, Interest)> {
        (**self).descriptor()
    }
}
