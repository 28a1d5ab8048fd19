//! Published queues as printed, for tests and the bench only. This crate is not published, and no crate that is depends
//! on it.
//!
//! - The rings of the MCRingBuffer and B-Queue papers: the table below.
//! - [`fastflow`]: FastFlow's unbounded queue of pointers, as the case study found it.
//! - [`handoff`]: the synchronous queues that the paper on them compares with.
//!
//! # The rings
//!
//! Their faults are kept, because a result of the paper is a result of its faults too: Full that comes early, items
//! that stay invisible until more follow, threads that wait for each other for ever. [`corelane::spsc`] has the same
//! designs made safe. Changed is only what would make a form unsound; each file lists it under "What differs from
//! print".
//!
//! | module | what | items | hangs in a ring of two queues |
//! |---|---|---|---|
//! | [`basic_ring`] | BasicRingBuffer, Lamport's queue | any `Copy` | no |
//! | [`lock_ring`] | LockRingBuffer, a ring under a spin lock | any `Copy` | no |
//! | [`fast_forward`] | FastForward, as a baseline and tuned | words, not 0 | no |
//! | [`mcring`] | MCRingBuffer | any `Copy` | yes |
//! | [`mcring_timer`] | with a timer that has the producer inject unused elements | any `Copy` | yes |
//! | [`mcring_callback`] | with a consumer that has the outgoing queues flushed | any `Copy` | no |
//! | [`b_queue`] | B-Queue without, with plain, with self-adaptive backtracking | words, not 0 | without backtracking |
//!
//! What the forms have in common:
//!
//! - Where the papers have plain or volatile variables that both threads use, and count on x86 to keep their order,
//!   there are atomics with the weakest orders that are sound. On x86 they are the same instructions.
//! - Variables that the papers call local are one thread's, but they lie in the queue's own memory, placed as the paper
//!   places them: their cache lines are part of what was measured.
//! - A queue has as many slots as it was asked for, not a power of two: the papers measure 2,000. What is left in a
//!   queue is forgotten with it, hence `Copy`.
//! - An element that must not be NULL is a `NonZero<usize>`: one word, as the pointers of the papers, but a number,
//!   which any thread may hold without an `unsafe` promise.
//! - Nothing closes, nothing parks, nothing counts: the papers' functions return at once, and so does everything here.

pub mod b_queue;
pub mod basic_ring;
pub mod fast_forward;
pub mod fastflow;
pub mod handoff;
pub mod lock_ring;
pub mod mcring;
pub mod mcring_callback;
pub mod mcring_timer;
mod slots;

/// The producer's end of a paper form: `Insert` or `enqueue`.
pub trait Enqueue<T>: Send {
    /// Inserts an item.
    ///
    /// # Errors
    /// Gives the item back where the printed function returns a failure, which need not mean that the queue is full.
    fn enqueue(&mut self, item: T) -> Result<(), T>;
}

/// The consumer's end of a paper form: `Extract` or `dequeue`.
pub trait Dequeue<T>: Send {
    /// Extracts an item; `None` where the printed function returns a failure, which need not mean that the queue is
    /// empty.
    fn dequeue(&mut self) -> Option<T>;
}
