//! Sensors and aggregators as processes: `monitor --publish` and `corelane aggregate`, over a folder of files always,
//! and over a NATS server where there is one. They are killed at random moments, cut off, given hostile bytes, and the
//! answer is looked at: it has to be that of one monitor over the whole capture.
//!
//! | variable | what |
//! |---|---|
//! | `CORELANE_SENSOR_RUNS` | runs with kills, 2 unless said; each prints its seed |
//! | `CORELANE_SENSOR_SEED` | the seed of the first of them |
//! | `CORELANE_SENSOR_MINUTES` | minutes of the run in which everything is restarted again and again |

#![cfg(target_os = "linux")]

mod alike;
#[path = "../../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;
#[path = "../../../corelane-monitor/tests/continuous/choices.rs"]
mod choices;
mod clocks;
mod disk;
mod distributed;
mod endure;
#[path = "../../src/metrics/tests/exposition.rs"]
mod exposition;
mod hostile;
mod kills;
#[path = "../support/lines.rs"]
mod lines;
mod load;
mod nats;
#[path = "../support/nats_server.rs"]
mod nats_server;
mod network;
#[path = "../../../corelane-monitor/tests/it/packets.rs"]
#[allow(dead_code, reason = "shared with the tests of whole captures, which need more of it")]
mod packets;
#[path = "../support/program.rs"]
#[allow(dead_code, reason = "shared with the tests of the program, which need more of it")]
mod program;
mod restarts;
mod site;
mod split;
