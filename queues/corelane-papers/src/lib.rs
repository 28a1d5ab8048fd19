//! Published queues as printed, for tests and the bench only. This crate is not published, and no published crate
//! depends on it.
//!
//! - The rings of the MCRingBuffer and B-Queue papers: the table below.
//! - [`fastflow`]: FastFlow's unbounded queue of pointers, as the case study found it.
//! - [`handoff`]: the synchronous queues that the paper on them compares with.
//!
//! # The rings
//!
//! The faults of the printed forms are kept, because the papers' results depend on them: Full comes early, items stay
//! invisible until more follow, and threads wait for each other for ever. [`corelane::spsc`] has the same designs made
//! safe. A form is changed only where it would be unsound; each file lists the changes under "What differs from print".
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
//! Rules that hold for every form:
//!
//! - The papers use plain or volatile variables from both threads, and rely on x86 to keep their order. Here these
//!   variables are atomics with the weakest orders that are sound. On x86 they compile to the same instructions.
//! - A variable that a paper calls local belongs to one thread, but it lies in the queue's own memory, where the paper
//!   places it: its cache line is part of the measurement.
//! - A queue has as many slots as its caller asks for, not a power of two: the papers measure 2,000. Items left in a
//!   queue are not dropped with it, hence `Copy`.
//! - An element that must not be NULL is a `NonZero<usize>`. It is one word, as the pointers of the papers are, but it
//!   is a number, which any thread may hold without an `unsafe` promise.
//! - No form closes, parks or counts. The papers' functions return at once, and so does every call here.

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
    /// Gives the item back if the printed function returns a failure. A failure need not mean that the queue is full.
    fn enqueue(&mut self, item: T) -> Result<(), T>;
}

/// The consumer's end of a paper form: `Extract` or `dequeue`.
pub trait Dequeue<T>: Send {
    /// Extracts an item. `None` if the printed function returns a failure, which need not mean that the queue is empty.
    fn dequeue(&mut self) -> Option<T>;
}
