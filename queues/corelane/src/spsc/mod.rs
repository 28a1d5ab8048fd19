//! Queues from one producer to one consumer. The lane is the one to start with: [`channel`] makes it.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::channel(8);
//! producer.push(1).unwrap();
//! assert_eq!(consumer.pop(), Ok(1));
//! ```
//!
//! # Promises
//!
//! - **Order.** First in, first out; each item exactly once. Any `T: Send`: zero, NULL and zero-sized items too.
//! - **Bound.** Never more than `capacity` items inside. [`linked`] has as much as there is memory, and says `Full`
//!   where the allocator refuses more.
//! - **`Empty` is exact.** An item whose push has returned is never held back.
//! - **`Full` may come early** by [`release_lag`](Producer::release_lag), which is 0 for small queues and at most an
//!   eighth of the capacity.
//! - **`try_` calls never wait.** They hold no read-modify-write and no fence, unless the other end sleeps: then the
//!   call wakes it, by a system call. [`locked`] alone has a lock, to show what it costs.
//! - **No deadlock of `try_` calls.** Two queues in a ring never hang two threads that only use `try_` calls, as long
//!   as at most `capacity - release_lag` items are in flight.
//! - **In place.** Items can be written and read [where they lie](Producer::reserve), many at once [where they lie side
//!   by side](Contiguous).
//! - **Waiting** is a [strategy](crate::wait) chosen by type. The side that sleeps pays for the barrier, not the side
//!   that publishes.
//! - **Counting** is a type parameter, [`stats`]: it costs nothing unless it is asked for.
//! - **An item that is never popped is dropped exactly once.**
//!
//! # What the other thread can change
//!
//! - A queue that is not full becomes full only by its producer's own pushes. A full one may have room at any time.
//! - A queue that is not empty becomes empty only by its consumer's own pops. An empty one may have items at any time.
//! - So `len` is an upper bound for the producer and a lower bound for the consumer.
//! - A closed queue stays closed. After the producer is gone, the consumer still gets everything.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::channel(1);
//! assert_eq!(producer.try_push(1), Ok(()));
//! assert!(producer.try_push(2).unwrap_err().is_full());
//! assert_eq!(consumer.try_pop(), Ok(1));
//! assert_eq!(producer.try_push(2), Ok(()));
//! ```
//!
//! ```
//! use corelane::error::{TryPopError, TryPushError};
//!
//! let (mut producer, mut consumer) = corelane::spsc::channel(4);
//! producer.push('a').unwrap();
//! drop(producer);
//! assert_eq!(consumer.try_pop(), Ok('a'));
//! assert_eq!(consumer.try_pop(), Err(TryPopError::Closed));
//!
//! let (mut producer, mut consumer) = corelane::spsc::channel(4);
//! producer.push('a').unwrap();
//! consumer.close();
//! assert_eq!(producer.try_push('b'), Err(TryPushError::Closed('b')));
//! assert_eq!(consumer.try_pop(), Ok('a'));
//! ```
//!
//! # Closing
//!
//! Either end closes by `close` or by being dropped.
//!
//! - **The producer closed.** Everything that it had pushed can still be popped. After that the consumer gets `Closed`.
//! - **The consumer closed by `close`.** A push that returned before can still be popped. A push that begins afterwards
//!   is refused. A push beside the close is either refused and gives its item back, or accepted, and then its item can
//!   be popped. So nothing is lost, and neither end waits for the other.
//! - **The consumer was dropped.** What is inside is dropped there and then: a sender of a reply, say, whose receiver
//!   waits. A push beside the drop is either refused and gives its item back, or accepted, and then its item is dropped
//!   as well. Later pushes are refused.
//!
//! Without membarrier (systems other than Linux, a sandbox that refuses the call, Miri) the consumer's `close` takes a
//! millisecond for that, as does its drop where items have a drop of their own, unless the producer has closed before.
//! Without `std` there is one exception: an item pushed beside the consumer's `close` or drop may be accepted and then
//! dropped with the queue.
//!
//! # Which one?
//!
//! | you have | take | because |
//! |---|---|---|
//! | anything, or you are unsure | [`lane`] | fastest for most item sizes; a round trip as fast as a bare word's |
//! | a producer that never waits for room | [`linked`] | a lane without a bound; a push may allocate; 34 kB at first |
//! | bytes: records, packets, log lines | [`stream`] | no box a message: the bytes lie in the queue; 132 kB at first |
//! | slices of plain data, 64 or more at a time | [`mcring`] | one copy and one publication a batch |
//! | single items, and the last free slot counts | [`multiline`] | a slot is free as soon as its item is popped |
//! | a queue of one or two items | [`lamport`] | nothing to cache or to batch there |
//! | a comparison with published designs | the others | each from its paper, made safe |
//!
//! Every design has a module with the same names: `channel`, `try_channel`, `channel_with`, `Producer`, `Consumer`.
//! Those of this module are the lane's. The constructors of [`linked`] take no capacity. [`stream`] moves bytes and has
//! handles of its own.
//!
//! With the feature `async` either end, except those of a [`stream`], can be turned into one that a task awaits:
//! `asynchronous`.
//!
//! # One pair of handles
//!
//! The handles are one pair of types, [`Producer`] and [`Consumer`]. The design is a type parameter, so code can be
//! generic over it without dynamic dispatch:
//!
//! ```
//! use corelane::spsc::{self, Design, McRing, Options};
//! use corelane::wait::Spin;
//!
//! fn relay<A: Design<u32>, B: Design<u32>>(from: &mut spsc::Consumer<u32, A>, to: &mut spsc::Producer<u32, B>) {
//!     while let Ok(item) = from.try_pop() {
//!         to.push(item).expect("the other side is there");
//!     }
//! }
//!
//! let (mut a, mut relay_in) = spsc::channel(8);
//! let (mut relay_out, mut b) = spsc::mcring::channel(8);
//! a.push(7).unwrap();
//! relay(&mut relay_in, &mut relay_out);
//! assert_eq!(b.pop(), Ok(7));
//!
//! // A design's own options, and another way to wait.
//! let options = Options::new().tuning(spsc::mcring::Tuning::new().batch(10)).wait(Spin);
//! let (mut producer, mut consumer) = spsc::mcring::channel_with(2000, options).unwrap();
//! producer.push_slice(&[1, 2, 3]).unwrap();
//! let mut items = Vec::new();
//! assert_eq!(consumer.pop_batch(&mut items, 100), Ok(3));
//! ```
//!
//! # How it is built
//!
//! 1. An algorithm is one file: where items lie, which side publishes what, and when.
//! 2. It implements a producer's and a consumer's half, of a few calls each.
//! 3. Everything else of the contract is written once over those halves.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `handle/` | `Producer` and `Consumer`: the contract, written once over every design; options |
//! | `asynchronous.rs` | both ends for tasks (feature `async`) |
//! | `design.rs` | what an algorithm has to provide |
//! | `ring.rs`, `slots.rs` | the index ring below `locked`, `lamport` and others; its slots |
//! | `cells.rs` | slots with flags, below `fastforward` and `bqueue` |
//! | `blocks.rs` | blocks, runs of them, and the halves, below `lane` and `linked` |
//! | `slices.rs`, `stats.rs` | many items in place; what an end counts, as a type |
//! | `stream/` | messages of bytes, with handles of its own |
//! | one file each | the designs |

/// The names every design's module offers, for its own type parameter.
macro_rules! aliases {
    ($design:ident, $module:ident) => {
        /// The sending end.
        pub type Producer<T, W = crate::wait::Adaptive, S = crate::spsc::NoStats> =
            crate::spsc::Producer<T, $design, W, S>;
        /// The receiving end.
        pub type Consumer<T, W = crate::wait::Adaptive, S = crate::spsc::NoStats> =
            crate::spsc::Consumer<T, $design, W, S>;

        /// Makes a queue for `capacity` items with the design's defaults.
        ///
        /// ```
        #[doc = concat!("let (mut producer, mut consumer) = corelane::spsc::", stringify!($module), "::channel(8);")]
        /// producer.push(1).unwrap();
        /// assert_eq!(consumer.pop(), Ok(1));
        /// ```
        ///
        /// # Panics
        /// Where [`try_channel`] returns an error.
        #[track_caller]
        pub fn channel<T: Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
            crate::error::made(try_channel(capacity))
        }

        /// Makes a queue for `capacity` items with the design's defaults.
        ///
        /// ```
        #[doc = concat!(
            "let (mut producer, mut consumer) = corelane::spsc::", stringify!($module), "::try_channel(8)?;"
        )]
        /// producer.push(1).unwrap();
        /// assert_eq!(consumer.pop(), Ok(1));
        /// # Ok::<(), corelane::error::ChannelError>(())
        /// ```
        ///
        /// # Errors
        /// A capacity of 0 or beyond what the indices hold, or no memory.
        pub fn try_channel<T: Send>(capacity: usize) -> Result<(Producer<T>, Consumer<T>), crate::error::ChannelError> {
            channel_with(capacity, crate::spsc::Options::default())
        }

        /// Makes a queue for `capacity` items.
        ///
        /// ```
        /// use corelane::spsc::Options;
        /// use corelane::wait::Spin;
        ///
        /// let options = Options::new().wait(Spin);
        #[doc = concat!(
            "let (mut producer, mut consumer) = corelane::spsc::", stringify!($module), "::channel_with(8, options)?;"
        )]
        /// producer.push(1).unwrap();
        /// assert_eq!(consumer.pop(), Ok(1));
        /// # Ok::<(), corelane::error::ChannelError>(())
        /// ```
        ///
        /// # Errors
        /// As [`try_channel`], and where the options contradict the capacity.
        pub fn channel_with<T: Send, W: crate::wait::Strategy, S: crate::spsc::Recorder>(
            capacity: usize,
            options: crate::spsc::Options<<$design as crate::spsc::Design<T>>::Tuning, W, S>,
        ) -> Result<(Producer<T, W, S>, Consumer<T, W, S>), crate::error::ChannelError> {
            crate::spsc::channel_with(capacity, options)
        }
    };
}
use aliases;

/// A design's parameters. Each is at its default until the method of its name sets it, so that more of them can be
/// added.
macro_rules! tuning {
    (
        $(#[$about:meta])*
        pub struct Tuning {
            $($(#[$doc:meta])* $field:ident($argument:ident: $type:ty),)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Tuning {
            $($field: Option<$type>,)+
        }

        impl Tuning {
            /// The defaults.
            pub const fn new() -> Self {
                Self { $($field: None),+ }
            }

            $(
                $(#[$doc])*
                pub const fn $field(mut self, $argument: $type) -> Self {
                    self.$field = Some($argument);
                    self
                }
            )+
        }
    };
}
use tuning;

#[cfg(feature = "async")]
pub mod asynchronous;
mod blocks;
mod cells;
mod design;
mod handle;
mod ring;
#[cfg(not(corelane_loom))] // Loom's cells are more than their contents.
mod slices;
mod slots;
pub mod stats;

pub mod bqueue;
pub mod fastforward;
pub mod lamport;
pub mod lane;
pub mod linked;
pub mod locked;
pub mod mcring;
pub mod multiline;
pub mod stream;

#[cfg(feature = "async")]
pub use asynchronous::{AsyncConsumer, AsyncProducer};
pub use design::Design;
#[doc(hidden)]
pub use handle::any_channel;
pub use handle::{Consumer, IntoIter, Iter, Options, Peeked, Producer, Reserved, channel_with};
pub use lane::{channel, try_channel};
#[cfg(not(corelane_loom))]
pub use slices::{Contiguous, PeekedSlice, ReservedSlice};
pub use stats::{Counting, NoStats, Recorder, Stats};

/// Re-exports the type of each design, and hands the list on: `corelane::each_design!(all)` calls the caller's
/// `all!` with it, for the tests and the examples.
macro_rules! designs {
    ($($module:ident::$Design:ident,)+) => {
        $(pub use $module::$Design;)+

        #[doc(hidden)]
        #[macro_export]
        macro_rules! each_design {
            ($then:ident) => {
                $then! { $($module::$Design,)+ }
            };
        }
    };
}

designs! {
    locked::Locked,
    lamport::Lamport,
    fastforward::FastForward,
    multiline::MultiLine,
    mcring::McRing,
    bqueue::BQueue,
    lane::Lane,
    linked::Linked,
}
