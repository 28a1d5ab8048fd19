//! One dispatcher hands out jobs to any number of workers, with a queue for each of them.
//!
//! ```
//! use corelane::dispatch::Builder;
//!
//! let (mut dispatcher, workers) = Builder::new(3).batch(50).build().unwrap();
//! let sums = std::thread::scope(|scope| {
//!     // Each worker ends when the dispatcher is gone and its jobs are done.
//!     let work = |mut worker: corelane::dispatch::Worker<u64>| scope.spawn(move || worker.jobs().sum::<u64>());
//!     let threads = workers.into_iter().map(work).collect::<Vec<_>>();
//!     for job in 1..=1000 {
//!         dispatcher.dispatch(job).expect("there are workers");
//!     }
//!     dispatcher.join().expect("no worker panics");
//!     threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
//! });
//! assert_eq!(sums, 500_500);
//! ```
//!
//! # Promises
//!
//! - **No job is stranded.** Once `dispatch` has returned, the job's worker finds it, whatever the dispatcher does
//!   next: sleep, compute, block elsewhere. No time limit and no flush are needed for that, as there is no buffer
//!   before the queue.
//! - **Each job is accounted for.** One worker takes it, or it comes back. A job that a worker has taken is the
//!   worker's own: if the worker leaves then, or panics, the dispatcher does not hear of that job again.
//! - **What comes back goes out with the dispatcher's next call**, whichever that is. Only the dispatcher has an end of
//!   the other workers' queues, so a job of a worker that left waits for that call. This is the one thing
//!   [`flush`](Dispatcher::flush) is for.
//! - **A panic surfaces.** A worker that panics in [`run`](Worker::run) leaves with its panic. Nothing is dispatched
//!   from then on until the dispatcher has [taken](Dispatcher::take_panic) it. The worker's jobs are still there, for
//!   the others or for the [caller](Dispatcher::take_returned). A worker that is dropped by a panic outside of `run`
//!   reports that, too, without the payload.
//! - **Order.** A worker takes its jobs in the order of their dispatch. By key that makes an order of the jobs of each
//!   key; [`ByKey`] says what happens when workers come and go.
//! - **Back pressure.** A queue holds its capacity at most. A refused job comes back in the error.
//! - **Progress.** `try_dispatch` is wait-free as long as the queue's `try_push` is, and so is `try_pop`. A worker that
//!   leaves takes a lock of its own, once; a dispatcher waits for that lock only when it ends itself.
//! - **Memory.** A queue of the given capacity for each worker, [as small](crate::spsc::lane::Tuning::compact) as that
//!   allows, and two words that it shares with the dispatcher. Jobs of workers that left lie in a vector of the
//!   dispatcher until they go out again.
//!
//! A job is not held back for the rest of its batch:
//!
//! ```
//! let (mut dispatcher, mut workers) = corelane::dispatch::Builder::new(1).batch(50).build().unwrap();
//! dispatcher.dispatch("the first of a batch").unwrap();
//! assert_eq!(workers[0].try_pop(), Ok("the first of a batch"));
//! ```
//!
//! A job of a worker that left is not lost:
//!
//! ```
//! let (mut dispatcher, mut workers) = corelane::dispatch::channel(2, 8);
//! for job in 0..8 {
//!     dispatcher.dispatch(job).unwrap();
//! }
//! // All have gone to worker 0, as one batch. It does one and leaves: the others go to worker 1.
//! assert_eq!(workers[0].pop(), Ok(0));
//! workers.remove(0).leave().unwrap();
//! assert_eq!(dispatcher.flush(), 0);
//! drop(dispatcher);
//! assert!(workers[0].jobs().eq(1..8));
//! ```
//!
//! # When to use it, and when not
//!
//! Use it where one thread hands out work and the workers need not balance it among themselves: a reader of packets or
//! requests in front of analysers, a stage of a pipeline that is to be several.
//!
//! Do not use it where any thread may submit work. Do not use it where the lengths of jobs are so uneven that a job
//! behind a long one has to move to a worker that is free. In both cases take one shared queue, such as `mpmc::ticket`,
//! or a thread pool with one, such as `corelane-pool`.
//!
//! # Which route?
//!
//! | you have | take | because |
//! |---|---|---|
//! | one thread in front of several | [`channel`] | workers do not contend; a job is seen at once |
//! | jobs of one key that are to stay in order | [`ByKey`] | one worker a key |
//! | jobs of uneven length | [`LeastLoaded`] | the shortest queue |
//! | results of all workers for one thread | [`Collector`] | a queue from each, taken from in turn |
//!
//! With the feature `async` the dispatcher and any worker can be turned into one that a task awaits: `asynchronous`.
//!
//! # How it works
//!
//! Source: "Per-Thread Batch Queues For Multithreaded Programs" (Nguyen, Chun), sections 3.2 and 3.3: one queue a
//! worker, so that workers do not contend with each other, and many jobs with one synchronisation. The paper puts a
//! batch together before it enters the queue. Here the batch grows in the queue itself (step 3).
//!
//! 1. The [`Dispatcher`] has one queue to each [`Worker`], of any [`Queue`]: the lane unless another is named, any
//!    design of [`spsc`](crate::spsc), or [one](Mpmc) of [`mpmc`](crate::mpmc).
//! 2. A [`Route`] chooses the worker of a job: [in turn](RoundRobin), batch by batch; [by key](ByKey); or [the one with
//!    the fewest jobs](LeastLoaded).
//! 3. The job is written into that worker's queue, where the worker sees it at once. No job waits for the rest of its
//!    batch. A batch is
//!    - what follows the first job to the same worker: consecutive slots, so the lines of one worker's jobs are no
//!      other's;
//!    - what a call of [`dispatch_slice`](Dispatcher::dispatch_slice) or [`dispatch_batch`](Dispatcher::dispatch_batch)
//!      publishes together;
//!    - what a worker finds when it [takes](Worker::pop_batch): all that has come since, with one synchronisation.
//! 4. A full queue sends a job to another worker, unless the job is bound to this one. If no queue has room, the
//!    dispatcher is told, or waits.
//! 5. A worker that leaves hands its queue to the dispatcher, with all that is in it. Those jobs go out again before
//!    any later one. `seat.rs` says how that is done without a race, without a check in the way of a job, and without a
//!    cost to queues that no worker leaves.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `dispatcher.rs`, `worker.rs` | the two ends: room, returns, panics |
//! | `route.rs` | which worker gets a job |
//! | `queue.rs`, `mpmc.rs` | what the queue to a worker has to provide; queues of `mpmc` as such |
//! | `seat.rs`, `panic.rs` | how a worker leaves, and what it leaves; its panic |
//! | `collector.rs` | results back |
//! | `asynchronous.rs` | both ends for tasks (feature `async`) |

#[cfg(feature = "async")]
pub mod asynchronous;
mod collector;
mod dispatcher;
#[cfg(any(target_has_atomic = "64", feature = "portable-atomic"))]
mod mpmc;
mod panic;
mod queue;
mod route;
mod seat;
mod worker;

#[cfg(feature = "async")]
pub use asynchronous::{AsyncDispatcher, AsyncWorker};
pub use collector::Collector;
pub use dispatcher::{Builder, Dispatcher, Unfinished, channel};
#[cfg(any(target_has_atomic = "64", feature = "portable-atomic"))]
pub use mpmc::Mpmc;
pub use panic::WorkerPanic;
pub use queue::Queue;
pub use route::{ByKey, LeastLoaded, RoundRobin, Route};
pub use worker::{Jobs, Worker};
