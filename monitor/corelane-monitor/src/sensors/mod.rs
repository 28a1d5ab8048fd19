//! Scans over many sensors: what each tells, and what joins it.
//!
//! One machine's MainAnalyzer hears all SubAnalyzers of one capture. A scanner that shows few hosts to each of many
//! taps is seen by none of them. So a sensor, which is a monitor [in steps](crate::Continuous), gives out its
//! [state reports](crate::Found::Step), and an [`Aggregator`] is the MainAnalyzer of all of them:
//!
//! ```text
//!  sensor: stages ─ state reports ─▶ batches of a step ─┐
//!  sensor: stages ─ state reports ─▶ batches of a step ─┼─ any transport ─▶ Aggregator ─▶ scans
//!  sensor: stages ─ state reports ─▶ batches of a step ─┘                   (of some shards of sources)
//! ```
//!
//! There is no thread, queue or network here: bytes come and go by whatever the program uses.
//!
//! # Why the answer is that of one monitor
//!
//! - A failure depends on the packets of its address pair alone, and each pair is at one sensor.
//! - A step is over when all sensors have passed it. Its failures then count in an order without ties: the same as
//!   where one monitor sees all packets. At the end of all sensors, what was open fails by the latest of their times.
//! - A group of failures has one source, and a source is in one [shard](shard_of()). So aggregators that share the
//!   shards give together the scans of one.
//! - Transport may bring a batch again. Batches have numbers, and those that were seen are dropped. A
//!   [snapshot](Aggregator::snapshot) has the state and these numbers.
//!
//! A sensor that is silent for too long is [left out](Aggregator::leave_out): steps pass without it, and what it brings
//! later counts at the time up to which all is over.

mod aggregator;
mod batch;

pub use aggregator::{Aggregator, News, Refusal, SensorCounts, SensorEvent, SensorNews, SnapshotError};
pub use batch::{Batch, BatchError, Header, MOST_BYTES, SensorName, VERSION, encode, shard_of};
