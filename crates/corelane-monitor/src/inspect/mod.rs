//! The second analysis: what the conversations of a capture say.
//!
//! It runs on the same stages as the scan detector, and together with it: the B-Queue paper's pipeline (section 5.3,
//! Figure 11) of an input stage that balances packets over pipelines, application stages that run a TCP/IP stack, a
//! protocol identifier and the parsers to completion, and an output stage that collects results round robin.
//!
//! ```text
//!               packets, chunks, marks                 harvests
//!              ┌─ queue ─▶ application stage 0 ─ queue ─┐
//! Dispatcher ──┼─ queue ─▶ application stage 1 ─ queue ─┼─▶ output stage ─▶ events, report
//!      ▲       └─ queue ─▶ application stage n ─ queue ─┘      │
//!      └──────────────────────── credits ──────────────────────┘
//! ```
//!
//! 1. The Dispatcher finds a packet's IP header and addresses, and sends an item (`item.rs`) of 32 bytes: where
//!    the bytes lie, not the bytes. They lie in a chunk that all stages share (`feed.rs`): a block that a reader has
//!    filled from a file, or all of a capture that is in memory; the bytes of a pipe are copied into chunks, once.
//! 2. A stage (`stage.rs`) owns whole partitions, with the conversations *and* the scan detector's state of their
//!    address pairs. It decodes a packet once, for both. It makes events of what it finds, as lines of text, and state
//!    reports.
//! 3. The output stage merges (`merge.rs`) the lines of all stages, and is the MainAnalyzer of the scan detector too.
//!
//! # Marks
//!
//! The Dispatcher puts a mark into every queue when a second of the capture's time has passed, and after a number of
//! packets. Only there time passes for a partition: what has waited for too long is over. So a partition's state is a
//! function of its packets and of the marks between them, and the marks are a function of the capture.
//!
//! # Order
//!
//! An event has a key (`lines.rs`): the number of the packet, or of the mark, that brought it about, then its
//! partition; those of one key stay as they are. A stage's keys ascend, and it says how far it has come. The output
//! stage lets out what no stage can come before any more. The Dispatcher tells it so at each mark, and when nothing
//! more may come for a while: a stage whose partitions are quiet holds nothing back. So the events are the same bytes
//! for every number of stages, every queue, capacity and batch, evictions included.
//!
//! # Why no stage waits in a circle
//!
//! - The output stage takes from every queue whatever comes, and waits for none in particular. So no stage waits for it
//!   for ever.
//! - A stage waits for items, and for room in its queue to the output stage: see above.
//! - The Dispatcher waits for room in a stage's queue, which the stage makes, as it needs nothing but what is in there.
//!   And it waits for credit, so that what the output stage has to keep is bounded: at most `feed::AHEAD` strides of
//!   packets are on their way, and `feed::MOST_HELD` bytes of chunks. Before it waits all that it has gathered is sent,
//!   so every stage can come to the packet that the credit is for.
//! - A stage that panics closes its queues: the Dispatcher stops, the output stage takes what the others have, and the
//!   panic goes on where the stage is joined.
//!
//! All of it counts on queues that show what is in them. Those of the papers as printed do not: with them, as the bench
//! has them by [`inspect_over`], it may hang.
//!
//! Partitions do not move here (see `share.rs`): a stage has several times the Dispatcher's work, and what a
//! conversation holds would have to move with it.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `item.rs`, `feed.rs` | what travels to a stage; chunks, marks, credits |
//! | `stage.rs` | a stage: the TCP/IP stack, the parsers and the scan detector of whole partitions |
//! | `records.rs`, `talk.rs` | what happens in conversations, as events and in numbers; what is kept of one |
//! | `lines.rs`, `merge.rs` | events and their order; the output stage's work |
//! | `pipeline.rs`, `ends.rs` | stages as threads, or in one; what they ask of a queue |
//! | `findings.rs`, `summary.rs` | the numbers, and their table |

mod ends;
mod feed;
mod findings;
mod item;
mod lines;
mod merge;
mod pipeline;
mod records;
mod stage;
mod summary;
mod talk;

pub use ends::{ItemConsumer, ItemProducer};
pub use findings::{Findings, Seen};
pub use item::{Chunk, Item};
pub use pipeline::{inspect, inspect_over};

use crate::eve::Events;
use corelane_net::{conversation, defrag};

/// What the second analysis is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The events to be written.
    pub events: Events,
    /// What the conversations of one of the 256 partitions may hold.
    pub conversations: conversation::Limits,
    /// What the fragments of one partition may hold.
    pub fragments: defrag::Limits,
}

impl Default for Inspection {
    /// All events, within the usual limits: 320 MiB.
    fn default() -> Self {
        Inspection {
            events: Events::ALL,
            conversations: conversation::Limits::default(),
            fragments: defrag::Limits::default(),
        }
    }
}
