//! The monitor finds connections and port scans in a capture, with one answer however many cores share the work.
//!
//! It has the three stages of section III of the MCRingBuffer paper:
//!
//! 1. The [`Dispatcher`] decodes each record just enough to know its partition, a hash of the sum of its two addresses.
//!    It sends the record's facts on as [`Slot`]s.
//! 2. A [`SubAnalyzer`] owns whole partitions, and with them all state of their address pairs: flows, connection
//!    attempts, probes, vertical scans. It sends a [`StateReport`] of each key that failed, when it is known what
//!    became of it.
//! 3. The [`MainAnalyzer`] finds horizontal scans in the state reports of all SubAnalyzers, and makes the [`Report`].
//!
//! The stages use neither threads nor queues themselves. A [`Job`] runs each in a thread of its own, joined by
//! [lanes](corelane::spsc::lane), or calls them one after the other: the [`Plan`] has their number.
//!
//! # Why the answer is always the same
//!
//! - All packets of an address pair have one partition, one SubAnalyzer holds a partition at a time, and its slots come
//!   in the order of the capture. Flows and attempts depend on nothing else.
//! - Nothing that crosses partitions depends on an order of arrival. Counts are summed, the time of a scan is that of
//!   the (threshold + 1)-th failure in order of time, and lists are sorted by orders without ties.
//! - Table positions come from keyed hashes and differ from run to run, but only sets are ever taken from a table.
//!
//! With [`Continuous`] a run has no end: on an interface, or over captures by the same rules. Time passes in
//! [`Steps`], at whose ends alone anything expires, and scans are given out as they are found.
//!
//! # Limits
//!
//! In captures that end, flows are kept until then, at about 60 bytes each for IPv4 and 100 for IPv6. The following are
//! kept too, at about as much each:
//!
//! - every attempt that failed;
//! - every key (source, destination, port) of a [probe](Probe), which includes every key that a UDP datagram asked for;
//! - every source of each partition, where sources are [counted](Counting).
//!
//! A partition holds at most 2^29 of each for each address family, and one more panics. Partitions are filled evenly,
//! unless many flows have one address pair: a pair is in one partition.
//!
//! # Example
//!
//! ```no_run
//! use corelane_monitor::{Job, Observer, Plan, Progress, Settings};
//! use corelane_net::capture::{Options, Reader};
//!
//! let reader = Reader::open("capture.pcap".as_ref(), &Options::default())?;
//! let job = Job::scans(Settings::default(), Plan::default());
//! let damage = &|_, error| eprintln!("{error}");
//! let (report, _) = job.run([reader], Observer { progress: &Progress::new(), damage, found: &mut |_| {} })?;
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
//! | `state_report.rs`, `partial_result.rs` | the MainAnalyzer's input while packets flow, and at the end |
//! | `job.rs` | a run: what it depends on, and where its results go |
//! | `plan.rs` | how many stages there are, and their CPUs |
//! | `inspect/`, `eve/`, `findings.rs` | the second analysis; events in Suricata's format; the numbers |
//! | `facts/`, `page/` | facts for people; the page that shows them |
//! | `steps.rs`, `continuous/` | the clock of runs without an end; their scan detector, which forgets |
//! | `inspect/collect.rs` | one order of events and scans, and the report, for all runs that inspect or go on |
//! | `through.rs` | the tunnels that probes came through |
//! | `sensors/` | batches of state reports for other machines; their aggregator |
//! | `report.rs`, `summary.rs`, `talkers.rs` | the report, its forms, top talkers |
//! | `settings.rs`, `network.rs`, `memory.rs` | the choices of the user; a limit for all memory |
//! | `table.rs`, `groups.rs`, `key.rs`, `hash.rs`, `huge_pages.rs`, `room.rs` | tables: keys, memory, room |
//! | `run.rs`, `source.rs`, `probe.rs`, `time.rs` | the shared state of a run; records; kinds of probes; the calendar |

mod analyzer;
mod continuous;
mod dispatch;
pub mod eve;
pub mod facts;
mod findings;
mod groups;
mod hash;
mod huge_pages;
mod inspect;
mod job;
mod key;
mod lending;
mod main_analyzer;
mod memory;
mod network;
mod page;
mod partial_result;
mod plan;
mod polls;
mod probe;
mod report;
mod room;
mod run;
pub mod sensors;
mod settings;
pub mod slot;
mod source;
mod state_report;
mod steps;
mod summary;
mod table;
mod talkers;
mod through;
mod time;
mod twins;

pub use analyzer::SubAnalyzer;
pub use continuous::{Continuous, ScanEvent, ScanState};
pub use dispatch::Dispatcher;
pub use eve::Seen;
pub use findings::Findings;
pub use inspect::{Found, Inspection};
pub use job::{Job, Observer};
pub use main_analyzer::MainAnalyzer;
pub use memory::limit_memory;
pub use network::{Ignored, Network};
pub use page::Origin;
pub use partial_result::PartialResult;
pub use plan::{Plan, PlanError};
pub use probe::Probe;
pub use report::{Alert, Captured, Evicted, LATEST, ProbeScan, Report, ScanName, SourceCounts, Timing, Tunnels};
pub use room::Refused;
pub use run::Run;
pub use settings::{Counting, Settings};
pub use slot::{PARTITIONS, Slot, analyzer_of};
pub use source::{Progress, Silence, Source};
pub use state_report::{Content, Failure, StateReport};
pub use steps::{Jumps, STEP_NS, Steps};
pub use summary::{Style, grouped};
pub use talkers::{Pair, Talker, Volume};
pub use through::Through;
pub use time::Timestamp;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
