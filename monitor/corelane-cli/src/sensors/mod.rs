//! Batches from sensors to aggregators: how they travel, and where they wait.
//!
//! ```text
//! a sensor                                                        an aggregator
//!
//! append ──▶ Spool ──▶ FOLDER/SENSOR/EPOCH/FIRST.batches ──▶ Log ──▶ Files ──▶ next     file:DIR
//!                                   │                                  ▲
//!                                   │          DIR/aggregators/A-B.snapshot
//!                                   │
//!                                   └──▶ Log ──▶ Sender ──▶ stream ──▶ Nats ──▶ next    nats://…, tls://…
//!                                                             object store ▲
//! ```
//!
//! A batch is a string of bytes here, with an epoch and a sequence. A sensor writes it to its log first, whatever the
//! engine is: what a killed process had appended is there when it starts again. With files an aggregator reads that
//! log; with NATS a thread sends from it, and trims it as the server acknowledges.
//!
//! Every batch comes at least once, and those of a sensor in their order, but for repetitions: the aggregator drops
//! sequences that it has seen. An aggregator stores a snapshot together with its position, and reads on from there
//! after a restart. What no stored snapshot needs any more is removed.
//!
//! | file | what |
//! |---|---|
//! | `engine.rs` | what an aggregator asks of an engine; places, snapshots, errors |
//! | `log.rs` | the log's format, its reader, and what trims it |
//! | `spool.rs` | the log's writer |
//! | `files.rs` | the engine of a folder |
//! | `nats.rs` | a connection to a NATS server, the stream and the settings |
//! | `nats/sender.rs` | from a log to the stream |
//! | `nats/reader.rs` | the engine of a NATS server |
//! | `connection.rs` | its options |
//! | `no_nats.rs` | in its place without the feature `nats` |

mod connection;
mod engine;
mod files;
mod log;
#[cfg(feature = "nats")]
mod nats;
#[cfg(not(feature = "nats"))]
#[path = "no_nats.rs"]
mod nats;
mod spool;

pub(crate) use self::{
    connection::Connection,
    engine::{Engine, EngineError, Place, Read, shards_name},
    files::Files,
    log::{is_sensor_name, write_private},
    nats::{NatsOptions, Sender, engine as nats_engine},
    spool::{Full, Spool, SpoolError},
};
