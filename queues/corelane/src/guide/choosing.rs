//! How to choose a queue, and how to use it well. [A table](crate#which-queue) names the families, and each family's
//! page its designs. `docs/benchmarks.md` in the repository has the figures.
//!
//! # When another queue than the lane
//!
//! The [lane](crate::spsc::lane) is the fastest of [`spsc`](crate::spsc) for most sizes of items, but not here:
//!
//! - **Slices of 64 and more items, on CPUs that share a cache.** An index ring copies whole slices:
//!   [`mcring`](crate::spsc::mcring) and [`multiline`](crate::spsc::multiline), or the crate rtrb. On Zen 5 `mcring`
//!   was ahead from 16 items on.
//! - **Both ends on one CPU.** A queue that yields at once beats one that spins first.
//! - **Items of 256 bytes and more.** In some runs `mcring` or `multiline` was ahead: measure.
//! - **Several threads on one side**: [`mpmc`](crate::mpmc).
//!
//! # A pipeline
//!
//! A pipeline stops from either side, because an end closes when it is dropped:
//!
//! ```
//! use corelane::spsc;
//! use std::thread;
//!
//! let (mut read, mut to_work) = spsc::channel::<[u8; 64]>(1024);
//! let (mut worked, mut to_write) = spsc::channel::<[u8; 64]>(1024);
//! let reader = thread::spawn(move || {
//!     for number in 0..100 {
//!         if read.push([number; 64]).is_err() {
//!             return; // The worker is gone.
//!         }
//!     } // Here `read` is dropped: the worker takes what is inside, then ends.
//! });
//! let worker = thread::spawn(move || {
//!     while let Ok(item) = to_work.pop() {
//!         if worked.push(item).is_err() {
//!             return; // The writer is gone, and now the reader's next push fails too.
//!         }
//!     }
//! });
//! let written = to_write.iter().count();
//! reader.join().unwrap();
//! worker.join().unwrap();
//! assert_eq!(written, 100);
//! ```
//!
//! - **Move the ends into their threads.** An end that a scoped thread only borrows is not dropped when that thread
//!   ends, so nothing closes and its neighbours wait for ever.
//! - **Join before you use a result.** A thread that panics drops its ends too, and its neighbours see a usual end.
//!   Where a stage has to know by itself, let the first stage send "complete" as its last item: `Closed` without it is
//!   failure.
//! - **A capacity** of 1,024 is a good start. It should be several batches; more evens out longer bursts, and costs
//!   memory and cache.
//!
//! # Memory
//!
//! The defaults are for a few busy queues. Where there are thousands, make them smaller:
//!
//! | queue of 8-byte items | bytes when new | smaller | bytes then |
//! |---|---|---|---|
//! | `spsc::channel(1024)` | 17 k | [`lane::Tuning::compact`](crate::spsc::lane::Tuning::compact) | 10 k |
//! | `spsc::channel(1)` | 1 k | | |
//! | `spsc::linked::channel()` | 34 k | `linked::Tuning::new().segment(8)` | 2 k |
//! | `spsc::stream::channel()` | 132 k | `stream::Tuning::new().segment(256)` | 2 k |
//! | `mpmc::channel(1024)` | 17 k | a smaller capacity: 64 | 2 k |
//! | `mpmc::lanes::channel(1024)`, each sender | 18 k | a smaller capacity: 64 | 3 k |
//! | `mpmc::michael_scott::channel()` | 5 k | `two_lock` | 1 k |
//! | `dispatch::channel(4, 1024)` | 43 k | a smaller capacity: 64 | 8 k |
//! | `SynchronousQueue`, `TransferQueue` | 16 k | none: one for many threads, not one a request | |
//!
//! Small segments ask the allocator more often.
//!
//! # Low latency, and real-time threads
//!
//! - **Lowest latency**: [`Spin`](crate::wait::Spin) on both ends, each with a CPU of its own.
//! - **A thread that must not block or make system calls**: `try_` calls only, of a bounded queue. One that finds the
//!   other end asleep makes a system call, so the other end must not sleep: it uses `try_` calls as well, or `Spin`,
//!   and neither `Select` nor an async end. Drop the last handle on another thread: it frees the queue's memory.
//! - **A slice as a whole or not at all**: check first that [`try_push_slice`] has room for it.
//! - A lane's consumer close behind the producer pauses for up to 1 µs (Zen 5) for more items, except where that does
//!   not help. [`slip(0)`](crate::spsc::lane::Tuning::slip) switches it off. `corelane-bench run policies`, in
//!   the repository, measures each value of a [`Tuning`](crate::spsc::lane::Tuning).
//!
//! [`try_push_slice`]: crate::spsc::Producer::try_push_slice
//!
//! # Data or pointers
//!
//! Send data wherever a message has to be made anyway: the allocation is what costs, not the queue. A
//! [`stream`](crate::spsc::stream) moves 142 M messages of 5 to 20 bytes a second where boxes through `linked` move 11
//! M (Zen 3, 2026-11-22). Send pointers where the data exists already and stays.
//!
//! # Workers, tasks, pools
//!
//! - `cargo run --profile dist -p corelane --example job_server` in the repository, with `--example job_client` as its
//!   load, shows [`dispatch`](crate::dispatch) over TCP.
//! - Tasks to run, not items to move: the crate `corelane-pool`.
//! - Between tasks of one thread nothing of this is needed: use a `VecDeque`.
