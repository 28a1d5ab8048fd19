//! Queues between cores: each design from its paper, behind one contract, and one flagship, the lane.
//!
//! ```
//! let (mut producer, mut consumer) = corelane::spsc::channel(1024);
//!
//! let worker = std::thread::spawn(move || {
//!     let mut sum = 0;
//!     // Waits for items; ends when the producer is gone and everything was popped.
//!     while let Ok(item) = consumer.pop() {
//!         sum += item;
//!     }
//!     sum
//! });
//! for item in 1..=1000_u64 {
//!     producer.push(item).expect("the worker is there");
//! }
//! drop(producer);
//! assert_eq!(worker.join().unwrap(), 500_500);
//! ```
//!
//! # Which queue?
//!
//! From one producer to one consumer, through a buffer, bounded unless the table says otherwise: all of [`spsc`]. Start
//! with the [lane](spsc::lane): [`spsc::channel`].
//!
//! | you have | take | because |
//! |---|---|---|
//! | anything, or you are unsure | [`spsc::lane`] | lowest latency; few cache lines move, whatever the item |
//! | a producer that must never wait | [`spsc::linked`] | the lane without a bound; gives memory back after a burst |
//! | bytes: records, packets, log lines | [`spsc::stream`] | the bytes lie in the queue, without a box a message |
//! | slices of plain data, hundreds at a time | [`spsc::mcring`] | one copy and one publication a batch |
//! | a queue of one or two items | [`spsc::lamport`] | nothing to cache or to batch there |
//! | a comparison with published designs | the others in [`spsc`] | each from its paper, made safe |
//!
//! Any number of threads on both sides, and no buffer between them: [`handoff`], where a put waits for its take.
//!
//! | you have | take | because |
//! |---|---|---|
//! | work for any thread that is free | [`handoff::SynchronousQueue`], [`Unfair`] | those that are awake are served |
//! | requests to be served in turn | [`handoff::SynchronousQueue`], [`Fair`] | first come, first served |
//! | items that may be left behind | [`handoff::TransferQueue`] | the producer chooses, item by item; unbounded |
//! | threads that work in pairs, an item for an item | [`handoff::Exchanger`] | any two threads make a pair |
//!
//! Any number of threads on both sides, and a buffer between them: all of [`mpmc`]. Start with [`mpmc::ticket`]:
//! [`mpmc::channel`].
//!
//! | you have | take | because |
//! |---|---|---|
//! | threads that share a queue of work | [`mpmc::ticket`] | bounded; one compare-and-swap an item, or a batch |
//! | the same, and threads that may be stopped anywhere | [`mpmc::scq`] | lock-free; no call says `Busy` |
//! | many producers, each one's items in order | [`mpmc::lanes`] | a lane for each producer; they never meet |
//! | producers that must never wait | [`mpmc::michael_scott`] | lock-free; no bound |
//! | items that pile up, and memory that is wanted back | [`mpmc::two_lock`] | no bound; memory is what is inside |
//! | a comparison with the paper on batch queues | the others in [`mpmc`] | each from its source, made safe |
//!
//! One thread that hands out work to several, with a queue for each of them: [`dispatch`], over any design of [`spsc`],
//! lanes unless another is named.
//!
//! | you have | take | because |
//! |---|---|---|
//! | one thread in front of several | [`dispatch::channel`] | workers do not contend; a job is seen at once |
//! | jobs of one key that are to stay in order | [`dispatch::ByKey`] | one worker a key |
//! | jobs of uneven length | [`dispatch::LeastLoaded`], [`mpmc::ticket`] | the shortest queue; one for all |
//! | results of all workers for one thread | [`dispatch::Collector`] | a queue from each, taken from in turn |
//!
//! A few producers that are known from the start: a queue of [`spsc`] from each costs less an item than one that they
//! share, and keeps the order of each; [`mpmc::lanes`] is that for producers, and consumers, that come and go.
//!
//! One thread, or one task, waits for many ends, of any of these queues, and for sockets and other file descriptors:
//! [`wait::Select`].
//!
//! # What every queue of `spsc` promises
//!
//! - Any `T: Send`: zero, NULL and zero-sized items too. FIFO, exactly once, never more than `capacity` items inside
//!   ([`spsc::linked`] has as much as there is memory, and says `Full` where the allocator refuses more).
//! - `try_` calls never wait, and their fast paths hold no read-modify-write and no fence ([`spsc::locked`] alone has a
//!   lock, to show what it costs). `Empty` is exact: an item whose push has returned is never held back. `Full` may
//!   come early by [`release_lag`](spsc::Producer::release_lag), which is 0 for small queues and at most an eighth of
//!   the capacity.
//! - Two queues in a ring never hang two threads that only use `try_` calls, as long as at most
//!   `capacity - release_lag` items are in flight.
//! - Waiting is a [strategy](wait) chosen by type. The side that sleeps pays for the wake-up, not the side that
//!   publishes.
//! - Items can be written and read [in place](spsc::Producer::reserve), many at once [where they lie side by
//!   side](spsc::Contiguous).
//! - Counting is a type parameter, [`spsc::stats`]: it costs nothing unless it is asked for.
//! - Either side may close, by call or by drop; what then becomes of an item is said in [`spsc`](spsc#closing). An item
//!   that is never popped is dropped exactly once.
//!
//! The tests in `tests/contract` hold every design to this, and those in `tests/loom.rs` under every interleaving of
//! small cases. [`handoff`] has its own promises; `tests/handoff` and `tests/loom_handoff.rs` hold it to them. So has
//! [`mpmc`], with `tests/mpmc` and `tests/loom_mpmc.rs`. `tests/shuttle` runs all of them at real sizes, under
//! schedules that are drawn.
//!
//! # Features
//!
//! - `std` (default): parking and timed waits. Without it the crate is `no_std` with `alloc`, and waits spin: the
//!   [adaptive](wait::Adaptive) strategy, too, which handles that name none have in every build.
//! - `async`: either end of every queue of [`spsc`] but the [`stream`](spsc::stream), and of a [`dispatch`], may be a
//!   task's instead of a thread's, on any executor, with `Stream` and `Sink`; a dropped future loses nothing. See
//!   `spsc::asynchronous` and `dispatch::asynchronous`. For every other end, as of [`mpmc`], a task waits by
//!   `wait::Select::wait_async`. Adds futures-core and futures-sink, which are traits and no code.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `spsc`, `mpmc`, `dispatch`, `handoff` | the families, an algorithm a file |
//! | `wait` | how a thread or a task waits, and `Select` |
//! | `end`, `mem` | below every family: what an end is and how it closes; buffers, segments, links |
//! | `sync.rs` | the one file that knows core, std, loom and shuttle; in `sync/model.rs` what shuttle needs |
//! | `error.rs`, `bound.rs`, `prefetch.rs` | errors; bounded or not, as a type; cache hints |
//! | `papers.rs` | hidden: what `corelane-papers` may reach |
//!
//! [`Unfair`]: handoff::Fairness::Unfair
//! [`Fair`]: handoff::Fairness::Fair
#![cfg_attr(not(feature = "std"), no_std)]
// Its pages say what is there with which feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(loom, shuttle))]
extern crate std;

mod bound;
#[cfg(feature = "std")]
pub mod dispatch;
mod end;
pub mod error;
#[cfg(target_has_atomic = "64")]
pub mod handoff;
mod mem;
#[cfg(target_has_atomic = "64")]
pub mod mpmc;
#[cfg(feature = "papers")]
#[doc(hidden)]
pub mod papers;
mod prefetch;
pub mod spsc;
mod sync;
pub mod wait;

pub use bound::{Bounded, Unbounded};
pub use prefetch::prefetch_read;
#[cfg(loom)]
#[doc(hidden)]
pub use sync::Barrier;
#[cfg(shuttle)]
#[doc(hidden)]
pub use sync::model;
