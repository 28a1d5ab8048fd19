//! What holds in every family, beside the promises on the pages of [`spsc`](crate::spsc#promises),
//! [`mpmc`](crate::mpmc#promises), [`dispatch`](crate::dispatch#promises) and [`handoff`](crate::handoff#promises).
//!
//! # The names of calls
//!
//! | call | does |
//! |---|---|
//! | `push`, `pop`, `reserve`, `peek` | waits until it is done, or the queue is closed |
//! | `try_push`, `try_pop` and so on | never waits |
//! | `push_timeout`, `pop_timeout` | waits at most so long |
//! | `push_batch`, `pop_batch` | a push waits for room for all items, a pop for at least one |
//! | `try_push_batch`, `try_pop_batch` | as many as possible; the rest stays in the vector |
//! | `push_slice`, `pop_slice` | the same for slices of `Copy` items |
//! | `put`, `take` | hand-off: returns when the partner has the item |
//!
//! A name means the same in every family. [`error`](crate::error) has the error of each.
//!
//! # Also promised
//!
//! - **Batches are not atomic.** A `try_` batch says how many items it moved.
//! - **A guard publishes nothing by accident.** A reservation that is dropped or forgotten publishes nothing.
//! - **Memory is touched when the queue is made**, so no page fault falls into the first lap.
//! - With the last `Receiver` of [`mpmc`](crate::mpmc) a sender of a reply inside goes, and the thread that waits for
//!   the reply learns of it. Without `std` an item that was pushed beside that drop may stay in `ticket` until the
//!   queue goes. A `Queue` that threads share by reference has no receivers: close it, and pop.
//!
//! # When your code panics
//!
//! Nothing is lost, nothing hangs, and nothing is reported twice. No code of yours runs under a lock of a queue, so it
//! may call the queue. As in all of Rust, a panic in a destructor ends the process if another panic unwinds there. The
//! page of `corelane-pool` has such a table of the pool.
//!
//! | where your code runs | what a panic there leaves behind |
//! |---|---|
//! | the wake-up by a waker | it reaches the panic hook and goes no further; all others are woken, its task is not |
//! | the drop of a waker | the same |
//! | the clone of a waker | it goes on in the poll, which has changed nothing |
//! | the drop of an item, by the last receiver | all others are dropped; then it goes on, maybe in a push beside it |
//! | the drop of an item, in `release` | the item is popped |
//! | the closure of `pop_each` | the item that it was given is popped, the others are inside |
//! | the key of a job that is handed out | a single job is dropped; what is left of a batch is in the vector |
//! | the key of a job that came back | it stays with the dispatcher, as do those behind it, and then the new job |
//! | the work of a worker, in `run` | the dispatcher is told, once; what was in the queue comes back |
//! | the drop of a job, by a dispatcher | each worker is told that it is gone, and keeps what is in its queue |
//! | the drop of a job, by a worker that panics | it reaches the panic hook, and the worker's panic goes on |
//! | the closure of `dispatch_collecting` | the result that it was given is gone, and the job is dropped |
//! | a wait strategy | nothing is popped; one item or job is dropped; what is left of a batch is in the vector |
//! | `as_ref` of a message | the messages of the batch before it are pushed |
//!
//! # Dropped futures
//!
//! With the feature `async` a future may be dropped at any point. The pages `spsc::asynchronous` and
//! `dispatch::asynchronous` say what becomes of the item.
//!
//! # Platforms
//!
//! The oldest compiler is Rust 1.88. Linux on x86-64 and aarch64 comes first; other systems compile, and sleep with the
//! standard library. [Features](crate#features) are for machines without `std` or without atomics.
