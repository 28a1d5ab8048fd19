//! How ends wait, beside what the page of [`wait`](crate::wait) says: keep the default,
//! [`Adaptive`](crate::wait::Adaptive), unless you know better.
//!
//! [`Options::wait`](crate::spsc::Options::wait) names a strategy when a queue is made.
//!
//! # What waiting costs
//!
//! An item that comes within 2 µs of the last one is seen after 0.16 µs by `Adaptive` and 0.14 µs by `Spin`; after 100
//! µs it takes 29 µs instead of 0.12, and a quarter of the CPU time (Zen 3, 2026-11-22; `docs/benchmarks.md` has all
//! gaps). Beside a thread that computes on the same CPU, sleeping is best. `Adaptive` learns that in 50 to 100 ms;
//! until then it loses time slices of 4 ms where items come every 20 µs or faster.
//!
//! # Between many threads
//!
//! A call for a single item of `ticket`, `scq`, `michael_scott` or `two_lock` that finds nothing may make 16 to 128
//! pauses before it looks again, whatever the strategy: 0.4 to 3 µs on Zen 5. It does so where the side then finds more
//! than four items, which one wait in 128 tries out. Otherwise both sides would write the same cache lines in turns.
//! Items that come one by one are not kept waiting, but for that one wait in 128.
//!
//! # Without membarrier
//!
//! On other systems than Linux, and as soon as a sandbox refuses the system call, a thread sleeps at most 1 ms at a
//! time. An idle task is polled a second time, a millisecond later, by a thread of the library, `corelane-timer`. That
//! thread exists only while tasks wait so, and for a second after that. A consumer that closes its queue, or a last
//! receiver that finds a push in progress, looks once more after a millisecond, so that no item stays behind.
//!
//! # What stays behind
//!
//! - A thread that has slept keeps a place to sleep, of less than 100 bytes, and leaves it to the next thread when it
//!   ends. There are as many as threads ever had one at once; they are not freed.
//! - A thread that has waited with file descriptors keeps an `eventfd` until it ends. A set that a task has waited with
//!   keeps one until it is dropped. Where the process can have no more descriptors, such a wait looks again each
//!   millisecond.
//! - **After a fork** the child waits at places of its own: neither process wakes the other, or takes its wake-ups.
//!   What threads of the parent had opened stays open in the child until it calls `exec`.
//!
//! # Time-outs
//!
//! A call with a time-out that fails does not return before its time is over.
//!
//! # Many queues at once
//!
//! A [`Select`](crate::wait::Select) waits for the first of many ends, of every family, and on Linux of file
//! descriptors. Another end may take the place of one in the set, by its key: each wait asks the end that is there.
//!
//! # Tasks
//!
//! After a number of ready calls in a row an end that a task awaits returns `Pending` once, so that other tasks of the
//! executor get a turn.
