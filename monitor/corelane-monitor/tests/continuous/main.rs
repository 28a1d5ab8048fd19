//! Analysis without an end, from outside: packets in, lines, scans and numbers out.

#[path = "../../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;
mod choices;
mod errors;
mod facts;
mod jumps;
mod memory;
#[allow(dead_code, reason = "shared with the tests of whole captures, which need more of it")]
#[path = "../it/packets.rs"]
mod packets;
mod planted;
mod reference;
#[allow(dead_code, reason = "not all are needed everywhere")]
#[path = "../support/runs.rs"]
mod runs;
mod same;
mod silence;
mod support;
#[allow(dead_code, reason = "not all are needed everywhere")]
#[path = "../support/traffic.rs"]
mod traffic;
