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
//! - An accepted task is run once, or [`shutdown_now`](ThreadPool::shutdown_now) returns it. A refused task comes back
//!   in the error, except where the [`Rejection`] policy runs or drops it. A task that goes with a [`Worker`] that your
//!   code drops, or that a policy drops, is counted.
//! - A waiting thread and a new task never miss each other. In a pool without a queue, one compare-and-swap decides
//!   whether the thread gets the task or ends. There is no separate count of idle threads.
//! - No task waits while a thread of the pool is free. With a queue, no task waits while one more thread may be
//!   started, either. A pool with a queue may start one more thread although another thread is just waking up.
//! - If a thread cannot be started, the caller gets an error with the task inside. If another thread will run the task,
//!   there is no error.
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
//! - A panic ends its task, not the thread. The [handle](TaskHandle) or the [handler](Builder::on_panic) gets the
//!   panic. `docs/guarantees.md` in the repository says what a panic leaves behind wherever else your code runs: hooks,
//!   drops, [`start_with`](Builder::start_with). None of it runs under a lock of the pool.
//! - [`join`](ThreadPool::join) returns when the threads have ended and the destructors of their thread-locals have
//!   run. The drop of the last handle waits in the same way, unless [`OnDrop`] says otherwise or a thread of the pool
//!   drops it.
//! - Idle threads sleep. The thread that fell asleep last is used first, so the others may end. [`Fairness::Fair`]
//!   reverses this order.
//! - [`execute`](ThreadPool::execute) allocates nothing for a closure that captures at most three words, and one box
//!   for a larger closure. [`spawn`](ThreadPool::spawn) allocates a place for closure and result.
//! - Waiting times are measured only [if asked for](Builder::measure_waits), which takes two of the three words. The
//!   counts that are always kept cost no sharing: each thread counts in words of its own.
//!
//! The tests in `tests/conformance` check these promises for every kind of pool. `tests/loom.rs` checks them under
//! every interleaving of small cases, and `tests/shuttle.rs` under drawn schedules of larger cases.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `pool.rs`, `builder.rs`, `settings.rs` | the handle; how a pool is made; its settings |
//! | `hand_off.rs` | no queue: a task goes to a waiting thread, or to a new one |
//! | `queue.rs`, `backlog.rs`, `chunks.rs` | a queue in front of that, its contents, its chunks |
//! | `policy.rs` | which of the two takes a task, rejection, new limits |
//! | `shared.rs`, `slot.rs`, `worker.rs` | the threads and the phase; the data of one thread; its life |
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
