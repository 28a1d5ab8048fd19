//! The monitor: a capture in, connections and port scans out, with one answer however many cores share the work.
//!
//! It has the three stages of section III of the MCRingBuffer paper:
//!
//! 1. the [`Dispatcher`] decodes each record just enough to know its partition, a hash of the sum of its two addresses,
//!    and sends its facts on as [`Slot`]s;
//! 2. a [`SubAnalyzer`] owns whole partitions, and with them all state of their address pairs: flows, connection
//!    attempts, probes, vertical scans. It sends a [`StateReport`] when an attempt fails, which is the only thing that
//!    can change the global result;
//! 3. the [`MainAnalyzer`] finds horizontal scans in the state reports of all SubAnalyzers, and makes the [`Report`].
//!
//! The stages know no threads and no queues. [`run_single`] calls them one after the other; [`run`] makes threads of
//! them and joins them by the queues a [`Plan`] names.
//!
//! # Why the answer is always the same
//!
//! - All packets of an address pair have one partition, a partition has one SubAnalyzer, and the slots reach it in the
//!   order of the capture. Flows and attempts depend on nothing else.
//! - Nothing that crosses partitions depends on an order of arrival: counts are summed, the time of a scan is that of
//!   the (threshold + 1)-th failure in order of time, and lists are sorted by orders without ties.
//! - Table positions come from keyed hashes and differ from run to run, but only sets are ever taken from a table.
//!
//! # Limits
//!
//! Flows are kept until the capture ends, at about 60 bytes each for IPv4 and 100 for IPv6; so are, for about as much,
//! each attempt that failed, each key (source, destination, port) of a [probe](Probe), which are all keys that a UDP
//! datagram asked for, and, where they are [counted](Counting), each source of each partition. A partition holds at
//! most 2^29 of each family, and one more panics. Partitions are filled evenly unless many flows have one address pair,
//! which is in one.
//!
//! # Example
//!
//! ```no_run
//! use corelane_monitor::{Progress, Settings, run_single};
//! use corelane_net::capture::{Options, Reader};
//!
//! let reader = Reader::open("capture.pcap".as_ref(), &Options::default())?;
//! let report = run_single([reader], &Settings::default(), &Progress::new(), |_, error| eprintln!("{error}"));
//! report.write_json(std::io::stdout())?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `dispatch.rs`, `slot.rs` | the Dispatcher: records to slots; slots and partitions |
//! | `analyzer/` | SubAnalyzer: flows, attempts, probes, vertical scans, sources |
//! | `main_analyzer.rs` | MainAnalyzer: horizontal scans, the report |
//! | `state_report.rs`, `partial_result.rs` | what goes to it on the way, and at the end |
//! | `pipeline.rs`, `single.rs`, `share.rs` | stages as threads; in one thread; partitions that move |
//! | `inspect/`, `eve/` | the second analysis; events in Suricata's format |
//! | `report.rs`, `summary.rs`, `talkers.rs` | the report, its forms, top talkers |
//! | `settings.rs`, `network.rs`, `memory.rs` | what the user can choose; a limit for all memory |
//! | `table.rs`, `groups.rs`, `key.rs`, `hash.rs`, `pages.rs`, `room.rs` | tables: keys, memory, room |
//! | `run.rs`, `source.rs`, `probe.rs` | what the stages of a run share; records; kinds of probes |

mod analyzer;
mod dispatch;
pub mod eve;
mod groups;
mod hash;
mod inspect;
mod key;
mod main_analyzer;
mod memory;
mod network;
mod pages;
mod partial_result;
mod pipeline;
mod probe;
mod report;
mod room;
mod run;
mod settings;
mod share;
mod single;
pub mod slot;
mod source;
mod state_report;
mod summary;
mod table;
mod talkers;

pub use analyzer::SubAnalyzer;
pub use dispatch::Dispatcher;
pub use inspect::{Findings, Inspection, Seen, inspect};
pub use main_analyzer::MainAnalyzer;
pub use memory::limit_memory;
pub use network::{Ignored, Network};
pub use partial_result::PartialResult;
pub use pipeline::{Plan, PlanError, QueueKind, run};
pub use probe::Probe;
pub use report::{Alert, ProbeScan, Report, SourceCounts, Timing};
pub use room::Refused;
pub use run::Run;
pub use settings::{Counting, Rule, Settings};
pub use share::Sharing;
pub use single::run_single;
pub use slot::{PARTITIONS, Slot, analyzer_of};
pub use source::{Progress, Source};
pub use state_report::{Failure, StateReport, Told};
pub use summary::Style;
pub use talkers::{Pair, Talker, Volume};

/// What `corelane-bench` may reach, to join the stages of [`inspect`](inspect()) by queues that no user is offered. No
/// interface for other crates: it changes without notice.
#[doc(hidden)]
pub mod seam {
    pub use crate::inspect::{Chunk, Item, ItemConsumer, ItemProducer, inspect_over};
}
