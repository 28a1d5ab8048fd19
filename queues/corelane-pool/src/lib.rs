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
//!   there is no error, and the pool tries a start again for the next task.
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
//!   panic. [A table](self#when-your-code-panics) says what a panic leaves behind elsewhere.
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
//! # When your code panics
//!
//! No code of yours runs under a lock of the pool, so it may call the pool. Only [`start_with`](Builder::start_with)
//! must not wait for a task: there the pool refuses a task that would have to wait. Neither there nor in a thread of
//! the pool does a call wait for the end of the pool. "Reported" means counted in [`Counts::panicked`] and handed to
//! [`on_panic`](Builder::on_panic). The pool goes on in every case.
//!
//! | where your code runs | what a panic there leaves behind |
//! |---|---|
//! | a task | its thread goes on; counted; the `TaskHandle` takes it; reported if the handle is dropped |
//! | a task of a scope | all other tasks run, then `scope` panics with the first payload; further panics are reported |
//! | the closure of a scope | its tasks run, then the panic goes on; those of its tasks are reported |
//! | a task that its caller runs | as in a thread of the pool; `execute` returns `Ok`, `spawn` a handle |
//! | the drop of a result | reported, if the handle was dropped before |
//! | the drop of a task | reported, where the pool drops it: discarded, or with its worker; its handle says `Dropped` |
//! | a hook | reported; all goes on as if the hook had returned |
//! | `on_panic` | nothing: the panic that it got stays counted |
//! | the drop of a payload | nothing, where the pool drops it |
//! | `start_with`, before the thread has begun | reported; the thread never runs; the task comes back with `NoThread` |
//! | `start_with`, after that | reported; the thread and the task run; `join` does not wait for its thread-locals |
//! | the drop of an error of `start_with` | reported, where another thread runs the task; else the error is yours |
//! | a thread around `Worker::run` | before: it never starts, its task comes back or is `discarded`; after: nothing |
//! | the drop of hooks and of `start_with` | the panic goes on in the thread that lets go of the pool last |
//!
//! An error of `start_with` leaves behind what its panic does, and both are in [`Counts::failed_starts`]. A panic in a
//! destructor of a thread-local ends the process, as in all of Rust.
//!
//! # Features
//!
//! - `portable-atomic`: for machines of 32 bits without atomics of 64, which are made of locks then.
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
//! | `current.rs` | what the current thread is to a pool |
//! | `task.rs`, `scoped.rs`, `closure.rs` | results; tasks that borrow; small closures without a box |
//! | `error.rs`, `sync.rs` | refused tasks; the one file that knows std, loom and shuttle |
#![deny(unsafe_code)]

#[cfg(not(any(target_has_atomic = "64", feature = "portable-atomic")))]
compile_error!("this machine has no atomics of 64 bits: turn on the feature `portable-atomic`");

mod backlog;
mod builder;
mod chunks;
#[allow(unsafe_code)]
mod closure;
mod current;
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

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
