//! Queues that move items from thread to thread: each design from its paper, behind one contract, and one flagship, the
//! [lane](spsc::lane).
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
//! | threads | buffer | start with |
//! |---|---|---|
//! | one sends, one receives | yes | [`spsc::channel`] |
//! | any number on both sides | yes | [`mpmc::channel`] |
//! | one sends, several receive, a queue for each | yes | [`dispatch::channel`] |
//! | any number on both sides | no: a put waits for its take | [`handoff::SynchronousQueue`] |
//! | one thread or task waits for many ends, and for file descriptors | | [`wait::Select`] |
//!
//! Each family's page has a table of its designs: [`spsc`](spsc#which-one), [`mpmc`](mpmc#which-one),
//! [`dispatch`](dispatch#which-route), [`handoff`]. [A guide](guide::choosing) says how to use them well, and
//! [another](guide::waiting) how they wait.
//!
//! A few producers that are known from the start are best served by a queue of [`spsc`] each. That costs less an item
//! than one queue that they share, and keeps the order of each. [`mpmc::lanes`] does the same for producers and
//! consumers that come and go.
//!
//! # Promises
//!
//! These hold in every family. Each family's page has the rest, and the exceptions; [a guide](guide::guarantees) what
//! all share, such as what a panic of your code leaves behind.
//!
//! - **Nothing is lost.** An item is taken once, or comes back to the call that could not hand it over, or is dropped
//!   once with the queue.
//! - **A bounded queue never holds more than its capacity.**
//! - **`try_` calls never wait** for items, for room or for a partner.
//! - **`Empty` is exact** in [`spsc`] and [`mpmc`]. An item whose push has returned is never held back.
//! - **A queue can be closed**, by a call, or by the drop of a side's handles. Each family says what then becomes of
//!   its items.
//! - **The side that sleeps pays for the barrier.** The side that publishes pays only if the other one sleeps: then it
//!   wakes it, by a system call. How a side waits is a [strategy](wait) chosen by type.
//! - **Counting costs nothing** unless a type parameter asks for it: [`spsc::stats`], `mpmc::stats`.
//!
//! One suite of tests holds every design of a family to its promises, and models run small cases of each under every
//! interleaving.
//!
//! # What makes a queue
//!
//! One rule in every family, and in `corelane-pool`:
//!
//! | call | what cannot be made |
//! |---|---|
//! | a short form: `channel`, `queue`, a clone of a lane's sender, `ThreadPool::fixed` | panics at the caller's line |
//! | one that begins with `try_`, takes options (`channel_with`, `build`), or adds an end | is an error |
//! | `new`, and others whose arguments cannot be wrong | |
//!
//! A short form says which call returns the error instead.
//!
//! # Features
//!
//! - `std` (default): parking and timed waits. Without it the crate is `no_std` with `alloc`, and waits spin. The
//!   [adaptive](wait::Adaptive) strategy, which handles that name none have in every build, then spins too.
//! - `async`: a task awaits an end instead of a thread, on any executor, with `Stream` and `Sink`; a dropped future
//!   loses nothing. It adds futures-core and futures-sink, which are traits and no code.
//!   - Either end of every queue of [`spsc`] but the [`stream`](spsc::stream): `spsc::asynchronous`. Without `std` as
//!     well: each publication holds a full fence then, and a waker that panics ends the program.
//!   - Either end of a [`dispatch`]: `dispatch::asynchronous`, with `std`.
//!   - Every other end, as of [`mpmc`]: `wait::Select::wait_async`, with `std`.
//! - `portable-atomic`: for machines whose atomics do not compare and swap, as thumbv6m, and for those of 32 bits
//!   without atomics of 64, which [`mpmc`] and [`handoff`] need. They come from the crate of that name, where a program
//!   chooses what they are made of, as by its feature `critical-section`. What is made of locks there is not lock-free.
//! - `papers`: nothing for users; what the project's own crate of published queues may reach.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `spsc`, `mpmc`, `dispatch`, `handoff` | the families, an algorithm a file |
//! | `wait` | how a thread or a task waits, and `Select` |
//! | `end`, `mem` | below every family: what an end is and how it closes; buffers, segments, links |
//! | `sync.rs` | the one file that knows core, std, loom and shuttle; in `sync/model.rs` what shuttle needs |
//! | `start.rs` | where indices and counts start, in tests of their wrap-around too |
//! | `error.rs`, `bound.rs`, `prefetch.rs` | errors; bounded or not, as a type; cache hints |
//! | `items.rs`, `macros.rs` | the iterators of every family; what many types have in the same way |
//! | `papers.rs` | hidden: what `corelane-papers` may reach |
//! | `guide/` | pages of documentation |
#![cfg_attr(not(feature = "std"), no_std)]
// Where there are no atomics of 64 bits, `mpmc` and `handoff` are not there, and without `std` no thread sleeps: what
// these alone use is idle.
#![cfg_attr(
    not(all(feature = "std", any(target_has_atomic = "64", feature = "portable-atomic"))),
    allow(dead_code, unused_imports)
)]
// Its pages say what is there with which feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(corelane_loom, corelane_shuttle))]
extern crate std;

#[cfg(any(all(corelane_loom, not(feature = "loom")), all(corelane_shuttle, not(feature = "shuttle"))))]
compile_error!("with --cfg corelane_loom or --cfg corelane_shuttle corelane needs its feature of that name");
#[cfg(not(any(target_has_atomic = "ptr", feature = "portable-atomic")))]
compile_error!("this machine's atomics do not compare and swap: turn on the feature `portable-atomic`");

mod bound;
#[cfg(feature = "std")]
pub mod dispatch;
mod end;
pub mod error;
#[cfg(doc)]
pub mod guide;
#[cfg(any(target_has_atomic = "64", feature = "portable-atomic"))]
pub mod handoff;
mod items;
mod macros;
mod mem;
#[cfg(any(target_has_atomic = "64", feature = "portable-atomic"))]
pub mod mpmc;
#[cfg(feature = "papers")]
#[doc(hidden)]
pub mod papers;
mod prefetch;
pub mod spsc;
mod start;
mod sync;
pub mod wait;

pub use bound::{Bounded, Unbounded};
pub use items::Items;
pub use prefetch::prefetch_read;
#[cfg(corelane_loom)]
#[doc(hidden)]
pub use sync::Barrier;
#[cfg(corelane_shuttle)]
#[doc(hidden)]
pub use sync::model;

/// The examples of the README.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
