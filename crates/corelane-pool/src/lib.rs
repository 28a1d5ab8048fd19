//! A thread pool whose idle threads wait in a synchronous queue.
//!
//! ```
//! let pool = corelane_pool::ThreadPool::cached();
//!
//! let answer = pool.spawn(|| 6 * 7).expect("a thread for it");
//! pool.execute(|| println!("somewhere else")).expect("a thread for it");
//! assert_eq!(answer.join().unwrap(), 42);
//! pool.join(); // What was accepted is done, and the threads are gone.
//! ```
//!
//! # Which pool?
//!
//! | tasks | pool | because |
//! |---|---|---|
//! | wait or take long, or wait for each other | [`ThreadPool::cached`] | each begins at once |
//! | many, short, for all cores | [`ThreadPool::fixed`] | a thread takes many at a time |
//! | the same, from callers that must not run ahead | [`ThreadPool::bounded`], a [`Rejection`] | an exact bound |
//! | few now and many then | a [`Builder`] with a queue | threads first, then the queue; idle threads leave |
//! | borrow from their caller | [`ThreadPool::scope`], in any pool | returns when all are over, and helps |
//!
//! # Promises
//!
//! - A task that is accepted is run once, or returned by [`shutdown_now`](ThreadPool::shutdown_now). One that is not
//!   comes back in the error, but for the policies that say otherwise ([`Rejection`]).
//! - A thread that waits and a task that comes never miss each other: without a queue, one compare-and-swap decides
//!   whether the thread has the task or ends; there is no count of idle threads beside it.
//! - No task waits while a thread of the pool is free, nor, with a queue, while one more may be started. With a queue
//!   one more may be started although a thread is on its way from sleep.
//! - A thread that cannot be started is an error with the task inside, or none at all if another thread will run the
//!   task.
//!
//! ```
//! use corelane_pool::{Reason, ThreadPool};
//!
//! let pool = ThreadPool::builder().start_with(|_| Err(std::io::ErrorKind::WouldBlock.into())).build().unwrap();
//! let rejected = pool.spawn(|| 6 * 7).unwrap_err();
//! assert!(matches!(rejected.reason(), Reason::NoThread(_)));
//! assert_eq!(rejected.into_task()(), 42);
//! ```
//!
//! - A panic ends its task, not the thread: the [handle](TaskHandle) has it, or the [handler](Builder::on_panic).
//! - [`join`](ThreadPool::join) returns when the threads have ended, the destructors of their thread-locals among the
//!   things that are over. So does the drop of the last handle, unless [`OnDrop`] says otherwise or a thread of the
//!   pool drops it.
//! - Threads that have nothing to do sleep; those that came last are used first, so the others may leave.
//!   [`Fairness::Fair`] has it the other way round.
//! - [`execute`](ThreadPool::execute) allocates nothing for a closure that captures three words or less, a box for
//!   another; [`spawn`](ThreadPool::spawn) allocates a place for closure and result. Waiting times are measured
//!   [if asked for](Builder::measure_waits), which takes two of the three words; what is always counted, each thread
//!   counts for itself.
//!
//! The tests in `tests/conformance` hold every kind of pool to this, and those in `tests/loom.rs` under every
//! interleaving of small cases, those in `tests/shuttle.rs` under drawn schedules of larger ones.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `pool.rs`, `builder.rs`, `settings.rs` | the handle; how a pool is made; what it is told |
//! | `hand_off.rs` | no queue: a task goes to a waiting thread, or to a new one |
//! | `queue.rs`, `backlog.rs`, `chunks.rs` | a queue in front of that, what is in it, its chunks |
//! | `policy.rs` | which of the two takes a task, rejection, new limits |
//! | `shared.rs`, `slot.rs`, `worker.rs` | which threads there are, and phases; what is known of one; its life |
//! | `task.rs`, `scoped.rs`, `closure.rs` | results; tasks that borrow; small closures without a box |
//! | `error.rs`, `sync.rs` | refused tasks; the one file that knows std, loom and shuttle |
#![deny(unsafe_code)]

mod backlog;
mod builder;
mod chunks;
#[allow(unsafe_code)]
mod closure;
mod error;
mod hand_off;
mod policy;
mod pool;
mod queue;
#[allow(unsafe_code)]
mod scoped;
mod settings;
mod shared;
mod slot;
mod sync;
mod task;
mod worker;

pub use builder::Builder;
pub use corelane::handoff::{CancelToken, Fairness};
pub use error::{BuildError, JoinError, Reason, Rejected};
pub use pool::{ThreadPool, Waits};
pub use scoped::Scope;
pub use settings::{OnDrop, Queueing, Rejection};
pub use shared::Counts;
pub use task::{Task, TaskHandle};
pub use worker::Worker;
