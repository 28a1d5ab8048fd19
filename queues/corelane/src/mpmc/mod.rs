//! Queues that any number of threads push into and any number of threads pop from.
//!
//! [`channel`] makes a [`Sender`] and a [`Receiver`]. Clone one of them for each further thread. When the last sender
//! is gone, receivers pop what is inside and then get [`Closed`](crate::error::Closed). When the last receiver is gone,
//! a push is refused and gives its item back.
//!
//! ```
//! use corelane::mpmc;
//!
//! let (sender, receiver) = mpmc::channel(1024);
//! let workers = [(); 3].map(|()| {
//!     let receiver = receiver.clone();
//!     // Waits for items; ends when every sender is gone and everything was popped.
//!     std::thread::spawn(move || receiver.iter().sum::<u64>())
//! });
//! for item in 1..=1000 {
//!     sender.push(item).expect("the workers are there");
//! }
//! drop(sender);
//! assert_eq!(workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u64>(), 500_500);
//! ```
//!
//! # Promises
//!
//! - **Order.** First in, first out; each item once. Any `T: Send`.
//! - **Bound.** Never more than `capacity` items inside.
//! - **Linearizable.** Each call takes effect at one moment between its beginning and its end. A batch is a sequence of
//!   single calls, each with its moment. Where a batch is made in one step, nothing comes between them.
//! - **`try_` calls never wait for another thread.** Where one would have to, it says `Busy`, which claims nothing
//!   about the queue. A thread that is alone never sees `Busy`. There is one exception: a thread that has a sleeping
//!   thread to wake takes a lock for a few instructions, and so does a thread that falls asleep.
//! - **`Full` and `Empty` are exact**, except `Full` of [`scq`].
//! - **A batch takes one synchronization** where single calls take one each. A push takes its items from the caller's
//!   vector and leaves there what it does not push. A pop waits for one item, takes up to a limit, and appends to the
//!   caller's vector.
//! - **[`close`](Queue::close) ends the queue for all threads.** A push comes before the close, and its item can be
//!   popped; or after it, and its item comes back. Pops get what is inside, then `Closed`. What is never popped is
//!   dropped with the queue. The drop of the last [`Sender`], or of the last [`Receiver`], closes the queue in the same
//!   way; with the last receiver what is inside is dropped, too, and what a push beside it leaves there.
//! - **Visibility.** What a thread did before a push is visible to the thread that popped the item.
//! - **Waiting** is a [strategy](crate::wait) chosen by type. A thread that waits for long sleeps, and another thread
//!   pays for its wake-up. No call pays while no thread sleeps.
//! - **Counting** is a type parameter: [`stats`].
//!
//! `try_` calls:
//!
//! ```
//! use corelane::error::{TryPopError, TryPushError};
//! use corelane::mpmc;
//!
//! let queue = mpmc::queue(1);
//! assert_eq!(queue.try_pop(), Err(TryPopError::Empty));
//! assert_eq!(queue.try_push('a'), Ok(()));
//! assert_eq!(queue.try_push('b'), Err(TryPushError::Full('b')));
//! ```
//!
//! Batches:
//!
//! ```
//! # use corelane::mpmc;
//! let queue = mpmc::queue(3);
//! let mut items = vec![1, 2, 3, 4];
//! assert_eq!(queue.try_push_batch(&mut items), Ok(3));
//! assert_eq!(items, [4]);
//! let mut popped = Vec::new();
//! assert_eq!(queue.pop_batch(&mut popped, 10), Ok(3));
//! assert_eq!(popped, [1, 2, 3]);
//! ```
//!
//! Closing:
//!
//! ```
//! # use corelane::mpmc;
//! use corelane::error::Closed;
//!
//! let queue = mpmc::queue(3);
//! queue.push('a').unwrap();
//! queue.close();
//! assert_eq!(queue.push('b'), Err(Closed('b')));
//! assert_eq!(queue.pop(), Ok('a'));
//! assert_eq!(queue.pop(), Err(Closed(())));
//! ```
//!
//! # Which one?
//!
//! | you have | take | bound | progress |
//! |---|---|---|---|
//! | threads that share a queue | [`ticket`] | capacity | `try_` calls lock-free; as a whole non-blocking only |
//! | the same, over eight a side, or stopped | [`scq`] | capacity | lock-free; a stopped thread keeps its slot |
//! | producers, each with its order | [`lanes`] | each its own | pushes wait-free; a pop keeps one lane to itself |
//! | producers that never wait; stopped threads | [`michael_scott`] | memory | lock-free |
//! | items that pile up, and memory that is wanted back | [`two_lock`] | memory | blocking, each end by itself |
//! | a comparison with the paper on batch queues | [`condvar`] | capacity | blocking |
//! | the same, with threads that never sleep | [`busy_wait`] | capacity | blocking |
//!
//! Each module says what memory its queue takes.
//!
//! Every design has a module with the same names: `channel`, `try_channel`, `channel_with`, `Sender`, `Receiver`, and
//! `queue`, `try_queue`, `queue_with`, `Queue`. Those of this module are [`ticket`]'s, except [`channel_with`] and
//! [`queue_with`], which make any design. [`lanes`] has its own `Sender` and `Receiver`, and no `Queue`: there the
//! promises hold for each sender's lane.
//!
//! # Other ways to share and to wait
//!
//! Handles are a layer over one type, [`Queue`]. [`queue`] makes one to be shared by reference or in an `Arc`: any
//! thread may push and pop, and a [`close`](Queue::close) ends it. The algorithm is a type parameter, so code can be
//! generic over it without dynamic dispatch.
//!
//! ```
//! use corelane::mpmc;
//!
//! let queue = mpmc::queue(1024);
//! let sum = std::thread::scope(|scope| {
//!     let workers = [(); 3].map(|()| {
//!         scope.spawn(|| {
//!             let mut sum = 0;
//!             // Waits for items; ends when the queue is closed and everything was popped.
//!             while let Ok(item) = queue.pop() {
//!                 sum += item;
//!             }
//!             sum
//!         })
//!     });
//!     for item in 1..=1000_u64 {
//!         queue.push(item).expect("it is open");
//!     }
//!     queue.close();
//!     workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u64>()
//! });
//! assert_eq!(sum, 500_500);
//! ```
//!
//! A task waits for one queue or for several by [`Select::wait_async`](crate::wait::Select#method.wait_async), with the
//! feature `async`.
//!
//! # How it is built
//!
//! 1. An algorithm is one file, which makes attempts (`design.rs`).
//! 2. Waiting is written once over those attempts (`queue.rs`, `sleepers.rs`).
//! 3. The handles are written once over the queue (`handles.rs`).
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `queue.rs`, `handles.rs` | `Queue`: the contract, written once; `Sender` and `Receiver` over it |
//! | `design.rs`, `stats.rs` | what an algorithm has to provide; what a queue counts, as a type |
//! | `side.rs`, `sleepers.rs` | at which side a call comes; the threads that sleep there |
//! | `pace.rs` | how long a side stays away before it looks again |
//! | `nodes.rs` | the nodes of `michael_scott` |
//! | `lock.rs`, `deque.rs` | the lock of designs that do not sleep under it; what lies under a lock |
//! | one file each | `ticket`, `scq`, `lanes`, `michael_scott`, `two_lock`, `condvar`, `busy_wait` |
#![allow(rustdoc::private_intra_doc_links)]

/// The names every design's module offers, for its own type parameter.
macro_rules! aliases {
    ($design:ident, $module:ident, bounded) => {
        crate::mpmc::aliases! {
            $design, "bounded", concat!("corelane::mpmc::", stringify!($module)), "8", "8, ", " for `capacity` items",
            "A capacity of 0 or beyond what positions hold, or no memory.", [capacity], capacity
        }
    };
    ($design:ident, $module:ident, unbounded) => {
        crate::mpmc::aliases! {
            $design, "unbounded", concat!("corelane::mpmc::", stringify!($module)), "", "", "", "No memory.", [], 64
        }
    };
    (
        $design:ident, $alias:literal, $path:expr, $one:literal, $with:literal, $for:literal, $errors:literal,
        [$($capacity:ident)?], $any:expr
    ) => {
        /// The queue.
        pub type Queue<T, W = crate::wait::Adaptive, S = crate::mpmc::NoStats> =
            crate::mpmc::Queue<T, $design, W, S>;

        /// The handle that pushes.
        pub type Sender<T, W = crate::wait::Adaptive, S = crate::mpmc::NoStats> =
            crate::mpmc::Sender<T, $design, W, S>;

        /// The handle that pops.
        pub type Receiver<T, W = crate::wait::Adaptive, S = crate::mpmc::NoStats> =
            crate::mpmc::Receiver<T, $design, W, S>;

        #[doc = concat!("Makes a queue", $for, " with the defaults, and a handle for each side.")]
        ///
        /// ```
        #[doc = concat!("let (sender, receiver) = ", $path, "::channel(", $one, ");")]
        /// sender.push(1).unwrap();
        /// assert_eq!(receiver.pop(), Ok(1));
        /// ```
        ///
        /// # Panics
        /// Where [`try_channel`] returns an error.
        #[doc(alias = $alias)]
        #[track_caller]
        pub fn channel<T: Send>($($capacity: usize)?) -> (Sender<T>, Receiver<T>) {
            crate::error::made(try_channel($($capacity)?))
        }

        #[doc = concat!("Makes a queue", $for, " with the defaults, and a handle for each side.")]
        ///
        /// ```
        #[doc = concat!("let (sender, receiver) = ", $path, "::try_channel(", $one, ")?;")]
        /// sender.push(1).unwrap();
        /// assert_eq!(receiver.pop(), Ok(1));
        /// # Ok::<(), corelane::error::ChannelError>(())
        /// ```
        ///
        /// # Errors
        #[doc = $errors]
        pub fn try_channel<T: Send>(
            $($capacity: usize)?
        ) -> Result<(Sender<T>, Receiver<T>), crate::error::ChannelError> {
            channel_with($($capacity,)? crate::mpmc::Options::default())
        }

        #[doc = concat!("Makes a queue", $for, ", and a handle for each side.")]
        ///
        /// ```
        /// use corelane::mpmc::Options;
        /// use corelane::wait::Yield;
        ///
        /// let options = Options::new().wait(Yield);
        #[doc = concat!("let (sender, receiver) = ", $path, "::channel_with(", $with, "options)?;")]
        /// sender.push(1).unwrap();
        /// assert_eq!(receiver.pop(), Ok(1));
        /// # Ok::<(), corelane::error::ChannelError>(())
        /// ```
        ///
        /// # Errors
        /// As [`try_channel`].
        #[allow(clippy::type_complexity, reason = "the two types are what it returns")]
        pub fn channel_with<T: Send, W: crate::wait::Strategy, S: crate::mpmc::Recorder>(
            $($capacity: usize,)?
            options: crate::mpmc::Options<W, S>,
        ) -> Result<(Sender<T, W, S>, Receiver<T, W, S>), crate::error::ChannelError> {
            crate::mpmc::any_channel($any, options)
        }

        #[doc = concat!("Makes a queue", $for, " with the defaults.")]
        ///
        /// ```
        #[doc = concat!("let queue = ", $path, "::queue(", $one, ");")]
        /// queue.push(1).unwrap();
        /// assert_eq!(queue.pop(), Ok(1));
        /// ```
        ///
        /// # Panics
        /// Where [`try_queue`] returns an error.
        #[track_caller]
        pub fn queue<T: Send>($($capacity: usize)?) -> Queue<T> {
            crate::error::made(try_queue($($capacity)?))
        }

        #[doc = concat!("Makes a queue", $for, " with the defaults.")]
        ///
        /// ```
        #[doc = concat!("let queue = ", $path, "::try_queue(", $one, ")?;")]
        /// queue.push(1).unwrap();
        /// assert_eq!(queue.pop(), Ok(1));
        /// # Ok::<(), corelane::error::ChannelError>(())
        /// ```
        ///
        /// # Errors
        #[doc = $errors]
        pub fn try_queue<T: Send>($($capacity: usize)?) -> Result<Queue<T>, crate::error::ChannelError> {
            queue_with($($capacity,)? crate::mpmc::Options::default())
        }

        #[doc = concat!("Makes a queue", $for, ".")]
        ///
        /// ```
        /// use corelane::mpmc::Options;
        /// use corelane::wait::Yield;
        ///
        #[doc = concat!("let queue = ", $path, "::queue_with(", $with, "Options::new().wait(Yield))?;")]
        /// queue.push(1).unwrap();
        /// assert_eq!(queue.pop(), Ok(1));
        /// # Ok::<(), corelane::error::ChannelError>(())
        /// ```
        ///
        /// # Errors
        /// As [`try_queue`].
        pub fn queue_with<T: Send, W: crate::wait::Strategy, S: crate::mpmc::Recorder>(
            $($capacity: usize,)?
            options: crate::mpmc::Options<W, S>,
        ) -> Result<Queue<T, W, S>, crate::error::ChannelError> {
            crate::mpmc::any_queue($any, options)
        }
    };
}
use aliases;

mod deque;
mod design;
mod handles;
mod pace;
mod queue;
mod side;
#[cfg(feature = "std")]
mod sleepers;
pub mod stats;

pub mod busy_wait;
#[cfg(feature = "std")]
pub mod condvar;
#[cfg(feature = "std")]
pub mod lanes;
mod lock;
pub mod michael_scott;
mod nodes;
pub mod scq;
pub mod ticket;
pub mod two_lock;

pub use busy_wait::BusyWait;
#[cfg(feature = "std")]
pub use condvar::Condvar;
pub use design::Design;
#[doc(hidden)]
pub use handles::any_channel;
pub use handles::{IntoIter, Iter, Receiver, Sender, channel_with};
pub use michael_scott::MichaelScott;
#[doc(hidden)]
pub use queue::any_queue;
pub use queue::{Options, Queue, UNBOUNDED, queue_with};
#[cfg(feature = "std")]
pub use queue::{PopSide, PushSide};
pub use scq::Scq;
pub use stats::{Attempts, Counting, NoStats, Recorder, Stats};
pub use ticket::{Ticket, channel, queue, try_channel, try_queue};
pub use two_lock::TwoLock;
