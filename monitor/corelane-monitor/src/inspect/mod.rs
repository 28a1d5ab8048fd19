//! The stages of every run, and the second analysis: the protocols and events of the conversations of a capture.
//!
//! Where only headers count and time does not pass, the Dispatcher decodes and hands over slots, and partitions move
//! (`share.rs`). All else here is about runs whose stages decode: the scan detector runs together with the second
//! analysis, or alone without an end. Those stages are those of the B-Queue paper's
//! pipeline (section 5.3, Figure 11). An input stage balances packets over pipelines. Application stages run a TCP/IP
//! stack, a protocol identifier and the parsers to completion. An output stage collects results round robin.
//!
//! ```text
//!               packets, chunks, marks                 harvests
//!              ┌─ queue ─▶ application stage 0 ─ queue ─┐
//! Dispatcher ──┼─ queue ─▶ application stage 1 ─ queue ─┼─▶ output stage ─▶ events, report
//!      ▲       └─ queue ─▶ application stage n ─ queue ─┘      │
//!      └──────────────────────── credits ──────────────────────┘
//! ```
//!
//! 1. The Dispatcher finds a packet's IP header and addresses, and sends an item of 32 bytes (`item.rs`). The item says
//!    where the packet's bytes lie. They lie in a chunk that all stages share (`feed.rs`): a block that a reader has
//!    filled from a file, or a whole capture in memory. Only the bytes of a pipe are copied, once, into chunks of their
//!    own.
//! 2. A stage (`stage.rs`) owns whole partitions: their conversations, *and* the scan detector's state of their address
//!    pairs. It decodes a packet once, for both. It sends events as lines of text, and state reports.
//! 3. The output stage merges (`merge.rs`) the lines of all stages. It is the MainAnalyzer of the scan detector as
//!    well.
//!
//! # Marks
//!
//! The Dispatcher puts a mark into every queue when a second of the capture's time has passed, and after a number of
//! packets. Time passes for a partition only at marks: there it gives up everything that has waited for too long. So a
//! partition's state is a function of its packets and of the marks between them, and the marks are a function of the
//! capture.
//!
//! # Order
//!
//! The events are the same bytes for every number of stages and every capacity of the queues, evictions included:
//!
//! - An event has a key (`lines.rs`): first the number of the packet, or of the mark, that caused it, then its
//!   partition. Events of one key keep their order.
//! - A stage's keys ascend, and the stage reports how far it has come, also within a mark, where its state reports come
//!   before its lines. The output stage publishes a line once no stage can send an earlier one.
//! - The Dispatcher tells a stage at each mark how far it can report, and also when nothing more may come for a while.
//!   So a stage whose partitions are quiet holds nothing back.
//!
//! # Why no stage waits in a circle
//!
//! - The output stage takes from every queue whatever comes, and waits for none in particular. So no stage waits for it
//!   for ever. At a mark a stage may bring all that its conversations have kept: there one that is far ahead waits for
//!   those behind it (`merge.rs`), which come to the end of the mark without anything more from the Dispatcher.
//! - A stage waits for items, and for room in its queue to the output stage.
//! - The Dispatcher waits for room in a stage's queue. The stage makes that room, since it needs only the items in the
//!   queue.
//! - The Dispatcher waits for credit too, so that the memory of the output stage is bounded: at most `feed::AHEAD`
//!   strides of packets and `feed::MOST_HELD` bytes of chunks are on their way. It sends all gathered items before it
//!   waits, so every stage can come to the packet that the credit is for.
//! - A stage that panics closes its queues. Then the Dispatcher stops, the output stage takes the results of the
//!   others, and the panic goes on where the stage is joined.
//!
//! The argument needs queues that show every item in them, as the lane does.
//!
//! Partitions do not move then: a stage has several times the Dispatcher's work, and all that
//! a conversation holds would have to move with it.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `item.rs`, `feed.rs` | items; chunks, marks and credits |
//! | `stage.rs` | a stage: the TCP/IP stack, the parsers and the scan detector of whole partitions |
//! | `records.rs`, `talk.rs` | events and numbers of conversations; the state of one |
//! | `lines.rs`, `merge.rs` | events and their order |
//! | `collect.rs` | the output stage's work: events and scans in one order, and the report |
//! | `pipeline.rs`, `queues.rs` | stages as threads or in one thread; queues |
//! | `tap.rs` | reading: all that is compiled for the type of a source |
//! | `share.rs` | stages that get slots; moves of partitions |

mod collect;
mod feed;
mod item;
mod lines;
mod merge;
mod pipeline;
mod queues;
mod records;
mod share;
mod stage;
mod talk;
mod tap;

pub use collect::Found;
pub(crate) use pipeline::start;
pub(crate) use queues::queued_bytes;

use crate::eve::Events;
use corelane_net::{conversation, defrag};

/// The settings of the second analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The events that are written.
    pub events: Events,
    /// Whether connections that were refused or not answered are flows among them: in a flood each packet is one.
    pub attempts: bool,
    /// The limits of the conversations of each of the 256 partitions.
    pub conversations: conversation::Limits,
    /// The limits of the fragments of each partition.
    pub fragments: defrag::Limits,
    /// Whether conversations are followed. If not there are no events of theirs, and the work for them is saved.
    pub payload: bool,
    /// Whether [facts](crate::Findings::facts) for people are gathered, for which conversations have to be followed.
    /// They are of a whole capture; in a run [without an end](crate::Continuous) of the time between two
    /// [snapshots](Found::Snapshot).
    pub facts: bool,
}

impl Default for Inspection {
    /// All events, within the usual limits: 320 MiB.
    fn default() -> Self {
        Inspection {
            events: Events::ALL,
            attempts: true,
            conversations: conversation::Limits::default(),
            fragments: defrag::Limits::default(),
            payload: true,
            facts: false,
        }
    }
}
