//! The second analysis from outside: captures in, events out.

mod broken;
#[path = "../../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;
mod facts;
mod limits;
mod numbers;
mod order;
#[allow(dead_code, reason = "shared with the tests of whole captures, which need more of it")]
#[path = "../it/packets.rs"]
mod packets;
#[allow(dead_code, reason = "shared with the tests of parts, which need more of it")]
#[path = "../support/records.rs"]
mod records;
#[allow(dead_code, reason = "not all are needed everywhere")]
#[path = "../support/runs.rs"]
mod runs;
mod support;
mod truth;
mod tunnels;
mod vlans;
mod wire;
