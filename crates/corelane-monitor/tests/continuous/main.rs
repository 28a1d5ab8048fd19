//! Analysis without an end, from outside: packets in, lines, scans and numbers out.

mod memory;
#[allow(dead_code, reason = "shared with the tests of whole captures, which need more of it")]
#[path = "../it/packets.rs"]
mod packets;
mod planted;
mod reference;
mod same;
mod silence;
mod support;
